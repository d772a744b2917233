/* Whatever a file holds, the reader takes it or says why not; and what it takes has a text from which the
 * same message is made again. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "trace/text_int.h"

typedef struct job {
    etch_mem *mem;
    const uint8_t *data;
    size_t size;
    etch_trace_reader *reader;
} job;

/* What becomes of one message. */
typedef struct work {
    etch_arena *arena;
    etch_encoder encoder;
    etch_buf body, text, made;
} work;

static etch_status keep(void *data, const char *const *names, uint32_t name_count, const char *bytes,
                        size_t length)
{
    work *w = data;
    (void)names;
    if (name_count != 1)
        abort();
    etch_buf_add(&w->made, bytes, length);
    return ETCH_OK;
}

/* `text` must give back `body` behind its length. */
static void check_text(work *w)
{
    etch_diags *diags = etch_diags_new(w->arena);
    const etch_source *source = etch_source_add(diags, "fuzz", w->text.text, w->text.length);
    const etch_text_sink sink = {keep, w};
    etch_buf framed = {.arena = w->arena};
    if (!source || etch_text_read(w->arena, diags, source, &sink) != ETCH_OK)
        abort();
    etch_put_varint(&framed, w->body.length);
    etch_buf_add(&framed, w->body.text, w->body.length);
    if (framed.length != w->made.length || memcmp(framed.text, w->made.text, framed.length) != 0)
        abort();
}

static work begin(etch_arena *arena)
{
    work w = {.arena = arena, .body = {.arena = arena}, .text = {.arena = arena}, .made = {.arena = arena}};
    etch_encoder_begin(&w.encoder, arena);
    etch_buf_puts(&w.body, "");
    etch_buf_puts(&w.text, "file x\n");
    return w;
}

/* Of the numbers that are no number, text knows one only. */
static bool has_nan(const etch_trace_attr *attrs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (attrs[i].kind < ETCH_KIND_DOUBLE || attrs[i].kind > ETCH_KIND_FLOAT + 1)
            continue;
        for (uint32_t k = 0; k < attrs[i].count; k++)
            if (attrs[i].values[k].number != attrs[i].values[k].number)
                return true;
    }
    return false;
}

static void check_metadata(etch_mem *mem, const etch_trace_metadata *metadata)
{
    etch_arena *arena = etch_arena_new(mem);
    work w = begin(arena);
    etch_encode_metadata(&w.encoder, &w.body, metadata);
    etch_text_metadata(&w.text, metadata);
    if (!has_nan(metadata->attrs, metadata->attr_count))
        check_text(&w);
    etch_arena_free(arena);
}

static void check_node(etch_mem *mem, const etch_trace_node *node)
{
    etch_arena *arena = etch_arena_new(mem);
    work w = begin(arena);
    etch_encode_node(&w.encoder, &w.body, node);
    etch_text_node(&w.text, node);
    if (!has_nan(node->attrs, node->attr_count))
        check_text(&w);
    etch_arena_free(arena);
}

static etch_status read_all(void *data)
{
    job *j = data;
    etch_trace_error error = {0};
    const etch_trace_node *node = NULL;
    etch_status status = etch_trace_open_bytes(j->data, j->size, &j->reader, &error);
    if (status == ETCH_OK)
        check_metadata(j->mem, etch_trace_head(j->reader));
    while (status == ETCH_OK && (status = etch_trace_next(j->reader, &node, &error)) == ETCH_OK && node)
        check_node(j->mem, node);
    if (status != ETCH_OK && (status != ETCH_EINPUT || error.reason[0] == '\0' || error.offset > j->size))
        abort();
    return ETCH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    job j = {.mem = etch_mem_new((size_t)256 << 20), .data = data, .size = size};
    if (!j.mem || etch_guard(j.mem, read_all, &j) != ETCH_OK)
        abort();
    etch_trace_close(j.reader);
    etch_mem_free(j.mem);
    return 0;
}
