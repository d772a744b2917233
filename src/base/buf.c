/* Arrays and texts that grow in an arena: each growth doubles, where they stand if nothing came after them;
 * else the old place stays with the arena. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_ITEMS = 4, FIRST_BYTES = 128 };

void *etch_vec_grow(etch_arena *arena, void *old, uint32_t *capacity, size_t size)
{
    uint32_t before = *capacity;
    if (before > UINT32_MAX / 2)
        etch_trap(etch_arena_mem(arena), ETCH_ELIMIT);
    uint32_t after = before ? before * 2 : FIRST_ITEMS;
    if (after > SIZE_MAX / size)
        etch_trap(etch_arena_mem(arena), ETCH_ELIMIT);
    void *place = etch_alloc_grown(arena, old, before * size, after * size);
    *capacity = after;
    return place;
}

/* Makes room for `length` more bytes and the NUL. */
static void reserve(etch_buf *buf, size_t length)
{
    if (length >= SIZE_MAX / 2 - buf->length)
        etch_trap(etch_arena_mem(buf->arena), ETCH_ELIMIT);
    size_t need = buf->length + length + 1;
    if (need <= buf->capacity)
        return;
    size_t capacity = buf->capacity ? buf->capacity * 2 : FIRST_BYTES;
    if (capacity < need)
        capacity = need;
    buf->text = etch_alloc_grown(buf->arena, buf->text, buf->capacity, capacity);
    buf->capacity = capacity;
}

void etch_buf_add(etch_buf *buf, const char *text, size_t length)
{
    reserve(buf, length);
    if (length > 0)
        memcpy(buf->text + buf->length, text, length);
    buf->length += length;
    buf->text[buf->length] = '\0';
}

void etch_buf_puts(etch_buf *buf, const char *text)
{
    etch_buf_add(buf, text, strlen(text));
}

void etch_buf_printf(etch_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        etch_trap(etch_arena_mem(buf->arena), ETCH_ELIMIT);
    reserve(buf, (size_t)length);
    va_start(args, format);
    vsnprintf(buf->text + buf->length, (size_t)length + 1, format, args);
    va_end(args);
    buf->length += (size_t)length;
}
