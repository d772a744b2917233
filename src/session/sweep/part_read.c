/* Parts of sweeps, read. Whatever stands in a file, what is not whole, or of another sweep, is found. */
#define _POSIX_C_SOURCE 200809L

#include "session/sweep/part_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_LINE = 1 << 20 };
#define LONGEST_RECORD (UINT64_C(1) << 30)

/* ---- bytes --------------------------------------------------------------------------------------------- */

static bool fill(etch_part_reader *r)
{
    ssize_t got;
    if (r->more)
        return r->more(r);
    do
        got = read(r->file, r->buffer, sizeof r->buffer);
    while (got < 0 && errno == EINTR);
    r->bytes = r->buffer;
    r->at = 0;
    r->end = got > 0 ? (size_t)got : 0;
    return r->end > 0;
}

/* A line without its end; NULL: there is none that ends. */
static char *read_line(etch_part_reader *r, etch_arena *arena)
{
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    while (out.length < LONGEST_LINE && (r->at < r->end || fill(r))) {
        const char *from = r->bytes + r->at, *end = memchr(from, '\n', r->end - r->at);
        const size_t length = end ? (size_t)(end - from) : r->end - r->at;
        etch_buf_add(&out, from, length);
        r->at += length + (end != NULL);
        if (end)
            return etch_copy_text(arena, out.text, out.length);
    }
    return NULL;
}

static char *read_bytes(etch_part_reader *r, etch_arena *arena, uint64_t count)
{
    etch_buf out = {.arena = arena}; /* grows with what is there, whatever a line says */
    while (out.length < count && (r->at < r->end || fill(r))) {
        const uint64_t rest = count - out.length, here = r->end - r->at;
        etch_buf_add(&out, r->bytes + r->at, (size_t)(here < rest ? here : rest));
        r->at += (size_t)(here < rest ? here : rest);
    }
    if (out.length < count)
        return NULL;
    etch_buf_add(&out, "", 0);
    return out.text ? out.text : etch_copy_text(arena, "", 0);
}

/* A number and the space behind it. */
static bool take_number(const char **at, uint64_t *number)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *number = strtoull(*at, &end, 10);
    *at = *end == ' ' ? end + 1 : end;
    return errno == 0;
}

static bool take_word(const char **at, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0 || (*at)[length] != ' ')
        return false;
    *at += length + 1;
    return true;
}

const char *etch_part_text(char *field)
{
    char *to = field;
    if (strcmp(field, ETCH_PART_NOTHING) == 0)
        return NULL;
    for (const char *from = field; *from; from++) {
        const bool special = *from == '\\' && from[1];
        from += special;
        *to++ = (char)(special && *from == 't' ? '\t' : special && *from == 'n' ? '\n' : *from);
    }
    *to = '\0';
    return field;
}

/* FNV-1a, by words: not against malice, but against what is cut short. */
uint64_t etch_part_sum(const char *line, size_t line_length, const void *bytes, size_t length)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    const unsigned char *at = bytes;
    for (size_t i = 0; i < line_length; i++)
        hash = (hash ^ (unsigned char)line[i]) * UINT64_C(1099511628211);
    for (; length >= sizeof hash; length -= sizeof hash, at += sizeof hash) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * UINT64_C(1099511628211);
        hash ^= hash >> 32;
    }
    for (; length > 0; length--)
        hash = (hash ^ *at++) * UINT64_C(1099511628211);
    return hash;
}

/* ---- header and records -------------------------------------------------------------------------------- */

/* Not even the beginning of a part. */
static bool is_other(int file)
{
    static const char magic[] = ETCH_PART_MAGIC "\n";
    char first[sizeof magic - 1];
    const ssize_t got = pread(file, first, sizeof first, 0);
    return got < 0 || memcmp(first, magic, (size_t)got) != 0;
}

bool etch_part_open(etch_part_reader *r, etch_arena *arena, const char **why)
{
    etch_buf head = {.arena = arena};
    uint64_t shard = 0, shards = 0, length = sizeof ETCH_PART_MAGIC;
    const char *at, *line = read_line(r, arena);
    *why = "is no part of a sweep";
    r->is_other = is_other(r->file);
    if (!line || r->is_other)
        return false;
    line = at = read_line(r, arena);
    bool fine = line && take_word(&at, "shard") && take_number(&at, &shard) && take_number(&at, &shards) &&
                shard >= 1 && shard <= shards && shards < UINT32_MAX;
    length += line ? strlen(line) + 1 : 0;
    etch_buf_puts(&head, "");
    while (fine && (line = read_line(r, arena)) != NULL && strcmp(line, "end") != 0) {
        etch_buf_printf(&head, "%s\n", line);
        fine = head.length < LONGEST_RECORD;
    }
    *why = "ends within its header";
    r->is_other = line != NULL && !fine;
    if (!fine || !line)
        return false;
    r->shard = (uint32_t)shard;
    r->shards = (uint32_t)shards;
    r->head = head.text;
    r->whole = length + head.length + strlen("end\n");
    return true;
}

/* The sum behind the last space of a line is that of the rest and of some bytes. */
static bool has_sum(const char *line, const void *bytes, size_t length)
{
    const char *last = strrchr(line, ' ');
    return last && strlen(last + 1) == 16 &&
           strtoull(last + 1, NULL, 16) == etch_part_sum(line, (size_t)(last - line), bytes, length);
}

etch_part_next etch_part_read(etch_part_reader *r, etch_arena *arena, etch_part_record *out)
{
    char *line = read_line(r, arena);
    const char *at = line;
    if (!line)
        return ETCH_PART_TORN;
    if (take_word(&at, "done"))
        return take_number(&at, &r->chunks) && take_number(&at, &r->rows) && has_sum(line, NULL, 0)
                   ? ETCH_PART_DONE
                   : ETCH_PART_TORN;
    if (!take_word(&at, "record") || !take_number(&at, &out->chunk) || !take_number(&at, &out->rows) ||
        !take_number(&at, &out->unmet) || !take_number(&at, &out->written) ||
        !take_number(&at, &out->length) || out->length > LONGEST_RECORD)
        return ETCH_PART_TORN;
    out->bytes = read_bytes(r, arena, out->length);
    if (!out->bytes || !has_sum(line, out->bytes, out->length))
        return ETCH_PART_TORN;
    r->whole += strlen(line) + 1 + out->length;
    return ETCH_PART_RECORD;
}

/* ---- what a record says -------------------------------------------------------------------------------- */

/* Numbers with a space between; in place. False: they are not as many. */
static bool take_exacts(etch_arena *arena, char *text, etch_exact *out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const size_t length = strcspn(text, " ");
        const bool last = text[length] == '\0';
        if (length == 0 || last != (i + 1 == count))
            return false;
        text[length] = '\0';
        out[i] = etch_exact_read(arena, text);
        text += length + 1;
    }
    return true;
}

/* The field behind the next tab; NULL: there is none. */
static char *next_field(char *at)
{
    char *tab = strchr(at, '\t');
    if (!tab)
        return NULL;
    *tab = '\0';
    return tab + 1;
}

static const etch_sweep_frame *take_frame(const etch_sweep *sweep, const char **at)
{
    uint64_t number;
    return take_number(at, &number) && number < sweep->frames.count ? sweep->frames.at[number] : NULL;
}

static bool apply_tally(etch_sweep *sweep, const char *at)
{
    etch_tally tally = {0};
    uint64_t code;
    if (!take_number(&at, &code) || !take_number(&at, &tally.count) || !take_number(&at, &tally.row) ||
        !(tally.frame = take_frame(sweep, &at)))
        return false;
    char *text = (char *)(uintptr_t)at, *values = next_field(text);
    etch_exact *row = ETCH_NEW_ARRAY(sweep->arena, tally.frame->axis_count, etch_exact);
    if (!values || !take_exacts(sweep->arena, values, row, tally.frame->axis_count))
        return false;
    tally.values = row;
    tally.reason = (etch_reason_text){(etch_code)code, etch_part_text(text)};
    etch_sweep_add_tally(sweep, &tally);
    return true;
}

static bool apply_row(etch_sweep *sweep, etch_arena *scratch, const char *at)
{
    etch_kept_row row = {0};
    if (!take_number(&at, &row.row) || !(row.frame = take_frame(sweep, &at)))
        return false;
    char *text = (char *)(uintptr_t)at, *results = next_field(text);
    row.values = ETCH_NEW_ARRAY(scratch, row.frame->axis_count, etch_exact);
    row.results = ETCH_NEW_ARRAY(scratch, sweep->request.exprs.count, etch_exact);
    if (!results || !take_exacts(scratch, text, row.values, row.frame->axis_count) ||
        !take_exacts(scratch, results, row.results, sweep->request.exprs.count))
        return false;
    etch_rows_offer(sweep, &row);
    return true;
}

const char *etch_part_rows(const etch_part_record *record)
{
    static const char mark[] = "rows\n";
    const char *at = record->bytes;
    while (at && strncmp(at, mark, sizeof mark - 1) != 0)
        at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
    return at ? at + sizeof mark - 1 : NULL;
}

bool etch_part_apply(etch_sweep *sweep, etch_part_record *record, const char **text, size_t *length)
{
    etch_arena *scratch = etch_arena_new(sweep->mem);
    char *line = record->bytes;
    uint32_t statement = 0;
    bool fine = true;
    for (char *end; fine && strncmp(line, "rows\n", 5) != 0; line = end + 1) {
        const char *at = line;
        uint64_t asked, met;
        end = strchr(line, '\n');
        if (!end) {
            fine = false;
            break;
        }
        *end = '\0';
        if (take_word(&at, "asked")) {
            fine =
                statement < sweep->request.where.count && take_number(&at, &asked) && take_number(&at, &met);
            if (fine) {
                sweep->asked[statement] += asked;
                sweep->met[statement++] += met;
            }
        } else if (take_word(&at, "tally")) {
            fine = apply_tally(sweep, at);
        } else {
            fine = take_word(&at, "row") && apply_row(sweep, scratch, at);
        }
    }
    etch_arena_free(scratch);
    if (!fine)
        return false;
    *text = line + 5;
    *length = (size_t)(record->bytes + record->length - *text);
    sweep->report->rows += record->rows;
    sweep->report->unmet += record->unmet;
    sweep->report->written += record->written;
    return true;
}
