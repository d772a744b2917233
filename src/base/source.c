/* Sources on one common line of offsets, their lines and columns. */
#include "base/base_int.h"

#include <string.h>

/* One more than the last offset in use, the place after the last byte of a source included. */
static uint32_t next_base(const etch_diags *diags)
{
    if (diags->sources.count == 0)
        return 1;
    const etch_source *last = &diags->sources.at[diags->sources.count - 1]->source;
    return last->base + last->length + 1;
}

static void index_lines(etch_arena *arena, etch_source_entry *entry)
{
    const char *text = entry->source.text;
    const uint32_t length = entry->source.length;
    uint32_t count = 1;
    for (uint32_t i = 0; i < length; i++)
        count += text[i] == '\n';
    entry->lines = ETCH_NEW_ARRAY(arena, count, uint32_t);
    entry->line_count = 1;
    for (uint32_t i = 0; i < length; i++) {
        if (text[i] == '\n')
            entry->lines[entry->line_count++] = i + 1;
    }
}

const etch_source *etch_source_add(etch_diags *diags, const char *path, const char *text, size_t length)
{
    const uint32_t base = next_base(diags);
    if (length > ETCH_TOTAL_LIMIT - diags->source_bytes || base > UINT32_MAX - ETCH_TOTAL_LIMIT - 1)
        return NULL;
    diags->source_bytes += (uint32_t)length;
    etch_source_entry *entry = ETCH_NEW(diags->arena, etch_source_entry);
    entry->source.path = etch_copy_text(diags->arena, path, strlen(path));
    entry->source.text = etch_copy_text(diags->arena, text, length);
    entry->source.length = (uint32_t)length;
    entry->source.base = base;
    index_lines(diags->arena, entry);
    ETCH_PUSH(diags->arena, &diags->sources, entry);
    return &entry->source;
}

static const etch_source_entry *find_source(const etch_diags *diags, uint32_t at)
{
    uint32_t low = 0, high = diags->sources.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (diags->sources.at[middle]->source.base <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    const etch_source_entry *entry = diags->sources.at[low - 1];
    return at - entry->source.base <= entry->source.length ? entry : NULL;
}

etch_source_point etch_source_place(const etch_diags *diags, uint32_t at)
{
    etch_source_point place = {.entry = find_source(diags, at)};
    if (!place.entry)
        return place;
    place.offset = at - place.entry->source.base;
    uint32_t low = 1, high = place.entry->line_count; /* the answer is low - 1: line 0 starts at 0 */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (place.entry->lines[middle] <= place.offset)
            low = middle + 1;
        else
            high = middle;
    }
    place.line = low - 1;
    return place;
}

etch_span etch_source_line(const etch_source_entry *entry, uint32_t line)
{
    const char *text = entry->source.text;
    const uint32_t start = entry->lines[line];
    uint32_t end = line + 1 < entry->line_count ? entry->lines[line + 1] - 1 : entry->source.length;
    if (end > start && text[end - 1] == '\r')
        end--;
    return (etch_span){start, end};
}

uint32_t etch_count_characters(const char *text, size_t length)
{
    uint32_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

const etch_source *etch_source_at(const etch_diags *diags, etch_span span, uint32_t *line, uint32_t *column)
{
    etch_source_point place = etch_source_place(diags, span.start);
    if (!place.entry)
        return NULL;
    if (line)
        *line = place.line + 1;
    if (column) {
        uint32_t start = place.entry->lines[place.line];
        *column = etch_count_characters(place.entry->source.text + start, place.offset - start) + 1;
    }
    return &place.entry->source;
}
