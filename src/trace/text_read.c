/* Lines of text as files: one statement to a line, one table of statements. */
#include "trace/text_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MISTAKES = 1000 }; /* with more, it is some other kind of text */

typedef enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_STRING, TOKEN_EQUAL } token_kind;

typedef struct token {
    token_kind kind;
    etch_span span;
    /* of a string what the quotes stand for */
    etch_trace_text text;
} token;

/* The message that is being described. */
typedef enum message_kind { NO_MESSAGE, METADATA, NODE } message_kind;

typedef struct reading {
    etch_arena *arena;
    etch_diags *diags;
    const etch_source *source;
    const etch_text_sink *sink;
    /* the rest of the line at hand */
    const char *at, *line_end;
    /* the next one of it */
    token token;
    /* lines with one */
    uint32_t mistakes;
    /* of this line */
    bool line_wrong;

    /* of the file at hand; none before the first */
    ETCH_VEC(const char *) names;
    /* its bytes */
    etch_buf file;

    message_kind message;
    etch_trace_metadata metadata;
    etch_trace_node node;
    ETCH_VEC(uint64_t) data_deps;
    ETCH_VEC(uint64_t) ctrl_deps;
    /* attributes and raw bytes, which go after the other fields */
    etch_buf tail;
    ETCH_VEC(etch_trace_value) values;
    etch_buf body;
    etch_encoder encoder;
} reading;

/* ---- mistakes ------------------------------------------------------------------------------------------ */

/* Only the first mistake of a line is told: what follows mostly comes from it. */
static etch_diag *mistake(reading *r, etch_code code, etch_span span, const char *format, ...)
    ETCH_PRINTF(4, 5);

static etch_diag *mistake(reading *r, etch_code code, etch_span span, const char *format, ...)
{
    va_list args;
    if (r->line_wrong)
        return NULL;
    r->line_wrong = true;
    r->mistakes++;
    char text[256];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return etch_error(r->diags, code, span, "%s", text);
}

static void expected(reading *r, const char *what)
{
    mistake(r, ETCH_E_TEXT_LINE, r->token.span, "%s is expected here", what);
}

static void suggest(etch_diag *diag, const char *near)
{
    if (diag && near)
        etch_help(diag, "did you mean '%s'?", near);
}

/* ---- tokens -------------------------------------------------------------------------------------------- */

static etch_span span_of(const reading *r, const char *start, const char *end)
{
    const uint32_t base = r->source->base;
    return (etch_span){base + (uint32_t)(start - r->source->text), base + (uint32_t)(end - r->source->text)};
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that stands behind a backslash at `r->at`, which moves on; -1 when it is none. */
static int escaped(reading *r)
{
    if (r->at == r->line_end)
        return -1;
    char c = *r->at++;
    if (c == 'n')
        return '\n';
    if (c == '"' || c == '\\')
        return c;
    if (c != 'x' || r->line_end - r->at < 2)
        return -1;
    int high = hex_digit(r->at[0]), low = hex_digit(r->at[1]);
    r->at += 2;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static void read_string(reading *r)
{
    const char *start = r->at++;
    char *text = etch_alloc(r->arena, (size_t)(r->line_end - start) + 1);
    size_t length = 0;
    while (r->at < r->line_end && *r->at != '"') {
        const char *character = r->at++;
        int byte = *character == '\\' ? escaped(r) : (unsigned char)*character;
        if (byte < 0) {
            mistake(r, ETCH_E_TEXT_LINE, span_of(r, character, r->at),
                    "a backslash stands before n, \", \\ or x and two hexadecimal digits");
            byte = '?';
        }
        text[length++] = (char)(unsigned char)byte;
    }
    if (r->at == r->line_end)
        mistake(r, ETCH_E_TEXT_LINE, span_of(r, start, r->line_end), "a quote has no end in its line");
    else
        r->at++;
    r->token = (token){TOKEN_STRING, span_of(r, start, r->at), {text, length}};
}

/* Reads the next token of the line. */
static void advance(reading *r)
{
    while (r->at < r->line_end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
    const char *start = r->at;
    if (r->at == r->line_end || *r->at == '#') {
        r->token = (token){TOKEN_END, span_of(r, start, start), {start, 0}};
    } else if (*r->at == '"') {
        read_string(r);
    } else if (*r->at == '=') {
        r->at++;
        r->token = (token){TOKEN_EQUAL, span_of(r, start, r->at), {start, 1}};
    } else {
        while (r->at < r->line_end && !memchr(" \t\r\"=#", *r->at, 6))
            r->at++;
        r->token = (token){TOKEN_WORD, span_of(r, start, r->at), {start, (size_t)(r->at - start)}};
    }
}

/* The text of the token at hand, NUL-terminated. */
static const char *copy_token(const reading *r)
{
    return etch_copy_text(r->arena, r->token.text.at, r->token.text.length);
}

static bool is_text(const reading *r)
{
    return r->token.kind == TOKEN_WORD || r->token.kind == TOKEN_STRING;
}

/* ---- values -------------------------------------------------------------------------------------------- */

static uint64_t read_unsigned(reading *r, uint64_t most, const char *what)
{
    char *end = NULL;
    const char *text = copy_token(r);
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (r->token.kind != TOKEN_WORD || *text < '0' || *text > '9' || *end != '\0') {
        expected(r, what);
        value = 0;
    } else if (errno != 0 || value > most) {
        mistake(r, ETCH_E_TEXT_VALUE, r->token.span, "%.40s is larger than %" PRIu64, text, most);
        value = 0;
    }
    advance(r);
    return value;
}

static int64_t read_signed(reading *r, int64_t least, int64_t most, const char *what)
{
    char *end = NULL;
    const char *text = copy_token(r);
    const char *digits = text + (*text == '-');
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (r->token.kind != TOKEN_WORD || *digits < '0' || *digits > '9' || *end != '\0') {
        expected(r, what);
        value = 0;
    } else if (errno != 0 || value < least || value > most) {
        mistake(r, ETCH_E_TEXT_VALUE, r->token.span, "%.40s is not between %" PRId64 " and %" PRId64, text,
                least, most);
        value = 0;
    }
    advance(r);
    return value;
}

static etch_trace_text read_text(reading *r, const char *what)
{
    etch_trace_text text = r->token.text;
    if (!is_text(r))
        expected(r, what);
    advance(r);
    return text;
}

static etch_trace_text read_quoted(reading *r, const char *what)
{
    if (r->token.kind != TOKEN_STRING)
        expected(r, what);
    return read_text(r, what);
}

static bool read_bool(reading *r)
{
    etch_trace_text text = r->token.text;
    bool yes = text.length == 4 && memcmp(text.at, "true", 4) == 0;
    if (r->token.kind != TOKEN_WORD || (!yes && (text.length != 5 || memcmp(text.at, "false", 5) != 0)))
        expected(r, "true or false");
    advance(r);
    return yes;
}

/* strtod wants the sign of the locale where texts have a point. */
static double read_double(reading *r)
{
    char sign[8], *end = NULL;
    char *text = etch_copy_text(r->arena, r->token.text.at, r->token.text.length);
    snprintf(sign, sizeof sign, "%.1f", 0.5);
    char *point = strchr(text, '.');
    if (point)
        *point = sign[1];
    double value = strtod(text, &end);
    if (r->token.kind != TOKEN_WORD || end == text || *end != '\0')
        expected(r, "a number");
    advance(r);
    return value;
}

static etch_trace_value read_value(reading *r, etch_chakra_scalar scalar)
{
    switch (scalar) {
    case ETCH_SCALAR_DOUBLE:
        return (etch_trace_value){.number = read_double(r)};
    case ETCH_SCALAR_FLOAT:
        return (etch_trace_value){.number = (double)(float)read_double(r)};
    case ETCH_SCALAR_UINT64:
    case ETCH_SCALAR_FIXED64:
        return (etch_trace_value){.integer = (int64_t)read_unsigned(r, UINT64_MAX, "a number from 0 on")};
    case ETCH_SCALAR_UINT32:
    case ETCH_SCALAR_FIXED32:
        return (etch_trace_value){.integer = (int64_t)read_unsigned(r, UINT32_MAX, "a number from 0 on")};
    case ETCH_SCALAR_INT32:
    case ETCH_SCALAR_SINT32:
    case ETCH_SCALAR_SFIXED32:
        return (etch_trace_value){.integer = read_signed(r, INT32_MIN, INT32_MAX, "an integer")};
    case ETCH_SCALAR_BOOL:
        return (etch_trace_value){.integer = read_bool(r)};
    case ETCH_SCALAR_STRING:
    case ETCH_SCALAR_BYTES:
        return (etch_trace_value){.text = read_quoted(r, "a text in quotes")};
    default:
        return (etch_trace_value){.integer = read_signed(r, INT64_MIN, INT64_MAX, "an integer")};
    }
}

/* Hexadecimal bytes up to the end of the line. */
static void read_bytes(reading *r, etch_buf *out)
{
    while (r->token.kind != TOKEN_END && !r->line_wrong) {
        etch_trace_text text = r->token.text;
        bool pairs = r->token.kind == TOKEN_WORD && text.length % 2 == 0;
        for (size_t i = 0; pairs && i < text.length; i += 2) {
            int high = hex_digit(text.at[i]), low = hex_digit(text.at[i + 1]);
            char byte = (char)(unsigned char)(high * 16 + low);
            pairs = high >= 0 && low >= 0;
            if (pairs)
                etch_buf_add(out, &byte, 1);
        }
        if (!pairs)
            expected(r, "a byte of two hexadecimal digits");
        advance(r);
    }
}

/* ---- messages ------------------------------------------------------------------------------------------ */

/* Ends the message that is being described: its bytes go to the file. */
static void end_message(reading *r)
{
    if (r->message == NO_MESSAGE)
        return;
    r->body.length = 0;
    if (r->message == METADATA) {
        etch_encode_metadata(&r->encoder, &r->body, &r->metadata);
    } else {
        r->node.data_deps = r->data_deps.at;
        r->node.data_dep_count = r->data_deps.count;
        r->node.ctrl_deps = r->ctrl_deps.at;
        r->node.ctrl_dep_count = r->ctrl_deps.count;
        etch_encode_node(&r->encoder, &r->body, &r->node);
    }
    etch_buf_add(&r->body, r->tail.text, r->tail.length);
    etch_put_varint(&r->file, r->body.length);
    etch_buf_add(&r->file, r->body.text, r->body.length);
    r->message = NO_MESSAGE;
}

static void begin_message(reading *r, message_kind kind)
{
    end_message(r);
    r->message = kind;
    r->metadata = (etch_trace_metadata){0};
    r->node = (etch_trace_node){0};
    r->data_deps.count = r->ctrl_deps.count = 0;
    r->tail.length = 0;
}

static etch_status end_file(reading *r)
{
    end_message(r);
    if (r->names.count == 0 || r->mistakes > 0)
        return ETCH_OK;
    return r->sink->put(r->sink->data, r->names.at, r->names.count, r->file.text, r->file.length);
}

/* ---- statements ---------------------------------------------------------------------------------------- */

static bool is_file_name(const char *name, size_t length)
{
    return length > 0 && length < 256 && strlen(name) == length && !strchr(name, '/') &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static void add_name(reading *r)
{
    const char *name = copy_token(r);
    if (!is_text(r))
        expected(r, "the name of a file");
    else if (!is_file_name(name, r->token.text.length))
        mistake(r, ETCH_E_TEXT_FILE, r->token.span, "'%.80s' is no name of a file in the folder", name);
    ETCH_PUSH(r->arena, &r->names, name);
    advance(r);
}

static void read_file_line(reading *r)
{
    r->names.count = 0;
    r->file.length = 0;
    do
        add_name(r);
    while (r->token.kind != TOKEN_END && !r->line_wrong);
}

static void read_metadata(reading *r)
{
    begin_message(r, METADATA);
    r->metadata.version = read_quoted(r, "the version, in quotes,");
}

static int32_t read_type(reading *r)
{
    const char *text = copy_token(r);
    const char *names[16];
    size_t count = 0;
    if (r->token.kind == TOKEN_WORD && (*text == '-' || (*text >= '0' && *text <= '9')))
        return (int32_t)read_signed(r, INT32_MIN, INT32_MAX, "the type of the node");
    for (int32_t i = 0; etch_chakra_type_brief(i) && count < sizeof names / sizeof *names; i++) {
        names[count++] = etch_chakra_type_brief(i);
        if (strcmp(text, etch_chakra_type_brief(i)) == 0 || strcmp(text, etch_chakra_type_name(i)) == 0) {
            advance(r);
            return i;
        }
    }
    suggest(mistake(r, ETCH_E_TEXT_LINE, r->token.span,
                    "the type of the node, as COMP, COMM_COLL or a number, is expected here"),
            etch_nearest(text, names, count));
    return 0;
}

static void read_node(reading *r)
{
    begin_message(r, NODE);
    r->node.id = read_unsigned(r, UINT64_MAX, "the id of the node");
    r->node.type = read_type(r);
    if (r->token.kind != TOKEN_END)
        r->node.name = read_quoted(r, "the name of the node, in quotes,");
}

static void read_data_deps(reading *r)
{
    while (r->token.kind != TOKEN_END && !r->line_wrong)
        ETCH_PUSH(r->arena, &r->data_deps, read_unsigned(r, UINT64_MAX, "the id of a node"));
}

static void read_ctrl_deps(reading *r)
{
    while (r->token.kind != TOKEN_END && !r->line_wrong)
        ETCH_PUSH(r->arena, &r->ctrl_deps, read_unsigned(r, UINT64_MAX, "the id of a node"));
}

static void read_start_time(reading *r)
{
    r->node.start_time = read_unsigned(r, UINT64_MAX, "microseconds");
}

static void read_duration(reading *r)
{
    r->node.duration = read_unsigned(r, UINT64_MAX, "microseconds");
}

static void read_io(reading *r, etch_trace_io *io)
{
    io->present = true;
    io->values = read_quoted(r, "a text in quotes (values)");
    io->shapes = read_quoted(r, "a text in quotes (shapes)");
    io->types = read_quoted(r, "a text in quotes (types)");
}

static void read_inputs(reading *r)
{
    read_io(r, &r->node.inputs);
}

static void read_outputs(reading *r)
{
    read_io(r, &r->node.outputs);
}

static void read_raw(reading *r)
{
    read_bytes(r, &r->tail);
}

static void read_bytes_line(reading *r)
{
    end_message(r);
    read_bytes(r, &r->file);
}

static void read_cut(reading *r)
{
    end_message(r);
    r->file.length -= (size_t)read_unsigned(r, r->file.length, "a number of bytes");
}

/* Where a statement may stand. */
typedef enum place { ANYWHERE, IN_FILE, IN_NODE, IN_MESSAGE } place;

typedef struct statement {
    const char *word;
    place place;
    void (*read)(reading *r);
} statement;

static const statement statements[] = {
    {"file", ANYWHERE, read_file_line},
    {"metadata", IN_FILE, read_metadata},
    {"node", IN_FILE, read_node},
    {"data_deps", IN_NODE, read_data_deps},
    {"ctrl_deps", IN_NODE, read_ctrl_deps},
    {"start_time_micros", IN_NODE, read_start_time},
    {"duration_micros", IN_NODE, read_duration},
    {"inputs", IN_NODE, read_inputs},
    {"outputs", IN_NODE, read_outputs},
    {"raw", IN_MESSAGE, read_raw},
    {"bytes", IN_FILE, read_bytes_line},
    {"cut", IN_FILE, read_cut},
};
enum { STATEMENT_COUNT = sizeof statements / sizeof *statements };
#define NO_VALUE "no_value" /* stands where the kind of an attribute would: it has none */

static bool is_in_place(reading *r, place where, etch_span word)
{
    if (where != ANYWHERE && r->names.count == 0)
        mistake(r, ETCH_E_TEXT_PLACE, word, "no file has begun yet: `file NAME` comes first");
    else if (where == IN_NODE && r->message != NODE)
        mistake(r, ETCH_E_TEXT_PLACE, word, "this belongs to a node, and no node has begun");
    else if (where == IN_MESSAGE && r->message == NO_MESSAGE)
        mistake(r, ETCH_E_TEXT_PLACE, word, "this belongs to a node or to the metadata, and none has begun");
    return !r->line_wrong;
}

/* The field number of a kind of attribute, ETCH_KIND_NONE for `no_value`, -1 for any other word. */
static int kind_of(const char *word)
{
    for (unsigned kind = ETCH_KIND_DOUBLE; kind <= ETCH_KIND_LAST; kind++)
        if (strcmp(etch_chakra_kind_name(kind), word) == 0)
            return (int)kind;
    return strcmp(word, NO_VALUE) == 0 ? ETCH_KIND_NONE : -1;
}

static void read_values(reading *r, etch_trace_attr *attr)
{
    const bool list = etch_chakra_is_list(attr->kind);
    if (r->token.kind != TOKEN_EQUAL) {
        expected(r, "'='");
        return;
    }
    advance(r);
    while (!r->line_wrong && (list ? r->token.kind != TOKEN_END : r->values.count == 0)) {
        if (list && r->token.kind == TOKEN_WORD && r->token.text.length == 3 &&
            memcmp(r->token.text.at, "doc", 3) == 0)
            break;
        ETCH_PUSH(r->arena, &r->values, read_value(r, etch_chakra_scalar_of(attr->kind)));
    }
}

static void read_attribute(reading *r, int kind)
{
    etch_trace_attr attr = {.kind = (uint8_t)kind, .name = read_text(r, "the name of the attribute")};
    r->values.count = 0;
    if (kind != ETCH_KIND_NONE)
        read_values(r, &attr);
    if (r->token.kind == TOKEN_WORD && r->token.text.length == 3 && memcmp(r->token.text.at, "doc", 3) == 0) {
        advance(r);
        attr.doc = read_quoted(r, "the doc_string, in quotes,");
    }
    attr.values = r->values.at;
    attr.count = r->values.count;
    if (!r->line_wrong)
        etch_encode_attr(&r->encoder, &r->tail,
                         r->message == NODE ? (uint32_t)ETCH_FIELD_ATTR : (uint32_t)ETCH_FIELD_METADATA_ATTR,
                         &attr);
}

static void refuse_word(reading *r, const char *word)
{
    const char *words[STATEMENT_COUNT + ETCH_KIND_LAST];
    size_t count = 0;
    for (size_t i = 0; i < STATEMENT_COUNT; i++)
        words[count++] = statements[i].word;
    for (unsigned kind = ETCH_KIND_DOUBLE; kind <= ETCH_KIND_LAST; kind++)
        words[count++] = etch_chakra_kind_name(kind);
    suggest(mistake(r, ETCH_E_TEXT_LINE, r->token.span, "no line begins with '%.40s'", word),
            etch_nearest(word, words, count));
}

static etch_status read_statement(reading *r)
{
    const char *word = copy_token(r);
    const etch_span span = r->token.span;
    etch_status status = ETCH_OK;
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        const statement *s = &statements[i];
        if (r->token.kind != TOKEN_WORD || strcmp(word, s->word) != 0)
            continue;
        if (s->place == ANYWHERE)
            status = end_file(r);
        advance(r);
        if (status == ETCH_OK && is_in_place(r, s->place, span))
            s->read(r);
        return status;
    }
    const int kind = r->token.kind == TOKEN_WORD ? kind_of(word) : -1;
    if (kind < 0) {
        refuse_word(r, word);
    } else if (is_in_place(r, IN_MESSAGE, span)) {
        advance(r);
        read_attribute(r, kind);
    }
    return ETCH_OK;
}

/* A line of a text file, as it is. */
static void read_plain(reading *r)
{
    const char *start = r->at;
    if (!is_in_place(r, IN_FILE, span_of(r, start, start + 1)))
        return;
    end_message(r);
    start += r->line_end - start > 1 && start[1] == ' ' ? 2 : 1;
    etch_buf_add(&r->file, start, (size_t)(r->line_end - start));
    etch_buf_add(&r->file, "\n", 1);
}

static etch_status read_line(reading *r)
{
    r->line_wrong = false;
    while (r->at < r->line_end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
    if (r->at < r->line_end && *r->at == '|') {
        read_plain(r);
        return ETCH_OK;
    }
    advance(r);
    if (r->token.kind == TOKEN_END)
        return ETCH_OK;
    etch_status status = read_statement(r);
    if (status == ETCH_OK && r->token.kind != TOKEN_END)
        expected(r, "the end of the line");
    return status;
}

etch_status etch_text_read(etch_arena *arena, etch_diags *diags, const etch_source *source,
                           const etch_text_sink *sink)
{
    reading r = {.arena = arena, .diags = diags, .source = source, .sink = sink};
    const char *end = source->text + source->length;
    etch_status status = ETCH_OK;
    r.file.arena = r.tail.arena = r.body.arena = arena;
    etch_buf_puts(&r.file, "");
    etch_buf_puts(&r.tail, "");
    etch_buf_puts(&r.body, "");
    etch_encoder_begin(&r.encoder, arena);
    for (const char *line = source->text; line < end && status == ETCH_OK && r.mistakes < MOST_MISTAKES;
         line = r.line_end + 1) {
        const char *line_end = memchr(line, '\n', (size_t)(end - line));
        r.at = line;
        r.line_end = line_end ? line_end : end;
        status = read_line(&r);
    }
    if (status == ETCH_OK)
        status = end_file(&r);
    return status == ETCH_OK && r.mistakes > 0 ? ETCH_EINPUT : status;
}
