/* Configs as text: JSON as Python reads it, with NaN, Infinity and -Infinity. Values keep where they stand,
 * and numbers how they are written: a library that converts them could say neither. */
#include "import/import_int.h"

#include <string.h>

typedef struct reader {
    etch_arena *arena;
    etch_diags *diags;
    etch_names *names;
    const etch_source *source;
    uint32_t at, depth;
} reader;

static etch_span span_of(const reader *r, uint32_t start, uint32_t end)
{
    return (etch_span){r->source->base + start, r->source->base + end};
}

/* Says what stands where something else should. False. */
static bool refuse(const reader *r, const char *expected)
{
    const bool ends = r->at >= r->source->length;
    const etch_span span = span_of(r, r->at - (ends && r->at > 0), r->at + !ends);
    if (ends)
        etch_error(r->diags, ETCH_E_CONFIG_JSON, span, "the text ends where %s should stand", expected);
    else
        etch_error(r->diags, ETCH_E_CONFIG_JSON, span, "%s should stand here", expected);
    return false;
}

static char peek(const reader *r)
{
    return r->source->text[r->at]; /* NUL after the last */
}

static void skip_blanks(reader *r)
{
    while (r->at < r->source->length && strchr(" \t\r\n", peek(r)) && peek(r))
        r->at++;
}

static bool take(reader *r, char c)
{
    skip_blanks(r);
    if (peek(r) != c || r->at >= r->source->length)
        return false;
    r->at++;
    return true;
}

/* ---- texts --------------------------------------------------------------------------------------------- */

static void add_utf8(etch_buf *out, uint32_t c)
{
    char bytes[4];
    size_t count = 0;
    if (c < 0x80) {
        bytes[count++] = (char)c;
    } else {
        const unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
        bytes[count++] = (char)(first[more] | c >> 6 * more);
        for (unsigned i = more; i-- > 0;)
            bytes[count++] = (char)(0x80 | (c >> 6 * i & 0x3F));
    }
    etch_buf_add(out, bytes, count);
}

/* Four digits of \u. */
static bool read_unit(reader *r, uint32_t *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = peek(r) ? strchr(digits, peek(r)) : NULL;
        if (!digit)
            return refuse(r, "four hexadecimal digits");
        *unit = *unit << 4 | (uint32_t)((digit - digits) & 15);
    }
    return true;
}

/* Bytes of the character of UTF-8 that begins here; 0: there is none. */
static uint32_t character(const reader *r)
{
    const unsigned char *at = (const unsigned char *)r->source->text + r->at;
    const uint32_t more = *at < 0x80 ? 0 : *at >= 0xF0 ? 3 : *at >= 0xE0 ? 2 : 1;
    if (*at < ' ' || (*at >= 0x80 && *at < 0xC2) || *at > 0xF4)
        return 0;
    for (uint32_t i = 1; i <= more; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    const bool longer = (*at == 0xE0 && at[1] < 0xA0) || (*at == 0xF0 && at[1] < 0x90);
    const bool beyond = (*at == 0xED && at[1] >= 0xA0) || (*at == 0xF4 && at[1] >= 0x90);
    return longer || beyond ? 0 : more + 1;
}

/* After the backslash. Halves of a pair that stand alone become U+FFFD. */
static bool read_escape(reader *r, etch_buf *out)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *letter = peek(r) ? strchr(letters, peek(r)) : NULL;
    uint32_t high, low;
    if (letter) {
        r->at++;
        etch_buf_add(out, &meant[letter - letters], 1);
        return true;
    }
    if (peek(r) != 'u')
        return refuse(r, "one of \" \\ / b f n r t u");
    r->at++;
    if (!read_unit(r, &high))
        return false;
    if (high == 0) {
        r->at--;
        return refuse(r, "a character other than NUL");
    }
    if (high >= 0xD800 && high < 0xDC00 && peek(r) == '\\' && r->source->text[r->at + 1] == 'u') {
        const uint32_t before = r->at;
        r->at += 2;
        if (!read_unit(r, &low))
            return false;
        if (low >= 0xDC00 && low < 0xE000) {
            add_utf8(out, 0x10000 + ((high - 0xD800) << 10 | (low - 0xDC00)));
            return true;
        }
        r->at = before;
    }
    add_utf8(out, high >= 0xD800 && high < 0xE000 ? 0xFFFD : high);
    return true;
}

static bool read_text(reader *r, const char **text, etch_span *span)
{
    const uint32_t start = r->at++;
    etch_buf out = {.arena = r->arena};
    etch_buf_puts(&out, "");
    for (;;) {
        const uint32_t from = r->at;
        for (uint32_t bytes; peek(r) != '"' && peek(r) != '\\' && (bytes = character(r)) > 0;)
            r->at += bytes;
        etch_buf_add(&out, r->source->text + from, r->at - from);
        if (peek(r) == '"')
            break;
        if (peek(r) != '\\')
            return refuse(r, "a character of UTF-8, or the end of a text,");
        r->at++;
        if (!read_escape(r, &out))
            return false;
    }
    r->at++;
    *span = span_of(r, start, r->at);
    *text = out.text;
    return true;
}

/* ---- numbers and words --------------------------------------------------------------------------------- */

static uint32_t skip_digits(reader *r)
{
    const uint32_t start = r->at;
    while (peek(r) >= '0' && peek(r) <= '9')
        r->at++;
    return r->at - start;
}

static bool read_number(reader *r)
{
    r->at += peek(r) == '-';
    const bool zero = peek(r) == '0';
    const uint32_t whole = skip_digits(r);
    if (whole == 0)
        return refuse(r, "a digit");
    if (zero && whole > 1) {
        r->at -= whole;
        return refuse(r, "a number without zeros in front");
    }
    if (peek(r) == '.') {
        r->at++;
        if (skip_digits(r) == 0)
            return refuse(r, "a digit");
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->at++;
        r->at += peek(r) == '+' || peek(r) == '-';
        if (skip_digits(r) == 0)
            return refuse(r, "a digit");
    }
    return true;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool read_scalar(reader *r, etch_config_value *value)
{
    static const struct {
        const char *word;
        etch_config_kind kind;
    } words[] = {{"null", ETCH_CONFIG_NULL},       {"true", ETCH_CONFIG_FLAG},
                 {"false", ETCH_CONFIG_FLAG},      {"NaN", ETCH_CONFIG_NUMBER},
                 {"Infinity", ETCH_CONFIG_NUMBER}, {"-Infinity", ETCH_CONFIG_NUMBER}};
    const uint32_t start = r->at;
    bool found = false;
    for (size_t i = 0; i < sizeof words / sizeof *words && !found; i++) {
        const size_t length = strlen(words[i].word);
        found = strncmp(r->source->text + start, words[i].word, length) == 0 &&
                !is_word(r->source->text[start + length]);
        if (found) {
            value->kind = words[i].kind;
            r->at += (uint32_t)length;
        }
    }
    if (!found) {
        if (peek(r) != '-' && !(peek(r) >= '0' && peek(r) <= '9'))
            return refuse(r, "a value");
        value->kind = ETCH_CONFIG_NUMBER;
        if (!read_number(r))
            return false;
    }
    value->span = span_of(r, start, r->at);
    value->text = etch_copy_text(r->arena, r->source->text + start, r->at - start);
    return true;
}

/* ---- objects and lists --------------------------------------------------------------------------------- */

static bool read_value(reader *r, etch_config_value *value);

/* The name of a member and its colon. A name that stands twice is refused: of two values one would count. */
static bool read_name(reader *r, etch_config_field *field, etch_map *names)
{
    const char *text;
    skip_blanks(r);
    if (peek(r) != '"')
        return refuse(r, "the name of a field, in quotes,");
    if (!read_text(r, &text, &field->span))
        return false;
    field->name = etch_name_of(r->names, text);
    const etch_config_field *before = etch_map_find(names, field->name);
    if (before) {
        etch_diag *diag = etch_error(r->diags, ETCH_E_CONFIG_TWICE, field->span,
                                     "the field '%s' stands twice", field->name);
        etch_note(diag, before->span, "it stands here already");
        return false;
    }
    etch_map_set(r->arena, names, field->name, field);
    return take(r, ':') || refuse(r, "a colon");
}

static bool read_members(reader *r, etch_config_value *value, bool named)
{
    const char close = named ? '}' : ']';
    etch_map names = {0};
    if (take(r, close))
        return true;
    do {
        etch_config_field *field = ETCH_NEW(r->arena, etch_config_field);
        if (named && !read_name(r, field, &names))
            return false;
        if (!read_value(r, &field->value))
            return false;
        if (!named)
            field->span = field->value.span;
        ETCH_PUSH(r->arena, &value->members, field);
    } while (take(r, ','));
    return take(r, close) || refuse(r, named ? "a comma or }" : "a comma or ]");
}

static bool read_container(reader *r, etch_config_value *value, bool named)
{
    value->span = span_of(r, r->at, r->at + 1);
    if (r->depth == ETCH_CONFIG_DEPTH) {
        etch_error(r->diags, ETCH_E_TOO_DEEP, value->span, "objects and lists are nested more than %d deep",
                   (int)ETCH_CONFIG_DEPTH);
        return false;
    }
    r->at++;
    r->depth++;
    const bool fine = read_members(r, value, named);
    r->depth--;
    value->kind = named ? ETCH_CONFIG_OBJECT : ETCH_CONFIG_LIST;
    value->text = value->members.count == 0 ? (named ? "{}" : "[]") : named ? "{..}" : "[..]";
    return fine;
}

static bool read_value(reader *r, etch_config_value *value)
{
    skip_blanks(r);
    switch (peek(r)) {
    case '{':
        return read_container(r, value, true); /* at most ETCH_CONFIG_DEPTH deep */
    case '[':
        return read_container(r, value, false);
    case '"':
        value->kind = ETCH_CONFIG_TEXT;
        return read_text(r, &value->text, &value->span);
    default:
        return read_scalar(r, value);
    }
}

const etch_config_value *etch_config_read(etch_arena *arena, etch_diags *diags, const etch_source *source)
{
    reader r = {.arena = arena, .diags = diags, .names = etch_names_new(arena), .source = source};
    etch_config_value *root = ETCH_NEW(arena, etch_config_value);
    if (strncmp(source->text, "\xEF\xBB\xBF", 3) == 0)
        r.at = 3; /* a mark of the encoding */
    skip_blanks(&r);
    if (peek(&r) != '{')
        return refuse(&r, "the object of a config, {..},") ? root : NULL;
    if (!read_value(&r, root))
        return NULL;
    skip_blanks(&r);
    if (r.at < source->length)
        return refuse(&r, "the end of the text") ? root : NULL;
    return root;
}
