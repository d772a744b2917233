#include "lang/syntax/lexer_int.h"

#include <string.h>

static const struct {
    const char *text;
    uint32_t length;
    bool keyword;
    unsigned starts;
} tokens[ETCH_TOKEN_COUNT] = {
#define TOKEN(name, text) [ETCH_TOKEN_##name] = {text, sizeof(text) - 1, false, 0},
#define MARK(name, text) [ETCH_TOKEN_##name] = {text, sizeof(text) - 1, false, 0},
#define KEYWORD(name, text, starts) [ETCH_TOKEN_##name] = {text, sizeof(text) - 1, true, starts},
#include "lang/syntax/tokens.def"
};

enum { FIRST_MARK = ETCH_TOKEN_ARROW, FIRST_SHORT_MARK = ETCH_TOKEN_LESS, FIRST_KEYWORD = ETCH_TOKEN_ETCH };

/* All marks in their order: those of two characters, then those of one. */
static const char marks[] =
#define MARK(name, text) text
#include "lang/syntax/tokens.def"
    ;
enum { SHORT_MARKS = 2 * (FIRST_SHORT_MARK - FIRST_MARK) };
_Static_assert(sizeof marks - 1 - SHORT_MARKS == FIRST_KEYWORD - FIRST_SHORT_MARK, "long marks stand first");

const char *etch_token_text(etch_token_kind kind)
{
    return tokens[kind].text;
}

bool etch_token_is_keyword(etch_token_kind kind)
{
    return tokens[kind].keyword;
}

unsigned etch_token_starts(etch_token_kind kind)
{
    return tokens[kind].starts;
}

etch_token_kind etch_token_nearest(const char *word, unsigned starts)
{
    const char *candidates[ETCH_TOKEN_COUNT];
    etch_token_kind kinds[ETCH_TOKEN_COUNT];
    size_t count = 0;
    for (int kind = FIRST_KEYWORD; kind < ETCH_TOKEN_COUNT; kind++) {
        if (tokens[kind].starts & starts) {
            candidates[count] = tokens[kind].text;
            kinds[count++] = (etch_token_kind)kind;
        }
    }
    const char *nearest = etch_nearest(word, candidates, count);
    for (size_t i = 0; nearest && i < count; i++) {
        if (strcmp(candidates[i], nearest) == 0) {
            return kinds[i];
        }
    }
    return ETCH_TOKEN_NONE;
}

/* ---- characters --------------------------------------------------------------------------------------- */

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* Byte at `offset` from the next one; 0 past the end (a real NUL never gets that far). */
static unsigned char byte_at(const etch_lexer *lx, uint32_t offset)
{
    uint32_t left = lx->source->length - lx->at;
    return offset < left ? (unsigned char)lx->source->text[lx->at + offset] : 0;
}

static etch_span span_of(const etch_lexer *lx, uint32_t from, uint32_t to)
{
    return (etch_span){lx->source->base + from, lx->source->base + to};
}

/* Bytes of the UTF-8 character at the next byte, with its code point; 0 when it is malformed (also
 * overlong forms, surrogates, and what is above U+10FFFF). */
static uint32_t decode(const etch_lexer *lx, uint32_t *point)
{
    unsigned char lead = byte_at(lx, 0);
    if (lead < 0x80) {
        *point = lead;
        return 1;
    }
    uint32_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4) {
        return 0;
    }
    uint32_t value = lead & (0x7Fu >> length);
    for (uint32_t i = 1; i < length; i++) {
        unsigned char next = byte_at(lx, i);
        if ((next & 0xC0) != 0x80) {
            return 0;
        }
        value = value << 6 | (next & 0x3Fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
        return 0;
    }
    *point = value;
    return length;
}

static void break_off(etch_lexer *lx, etch_diag *diag)
{
    if (diag) {
        etch_help(diag, "a spec is UTF-8 text; the rest of this file is not read");
    }
    lx->broken = true;
}

/* Length of the character at the next byte, or 0 after an error that ends the file. There is a next byte. */
static uint32_t take_character(etch_lexer *lx, uint32_t *point)
{
    uint32_t length = decode(lx, point);
    if (length == 0) {
        break_off(lx, lx->diags ? etch_error(lx->diags, ETCH_E_BAD_UTF8, span_of(lx, lx->at, lx->at + 1),
                                             "byte 0x%02X is not part of a UTF-8 character", byte_at(lx, 0))
                                : NULL);
        return 0;
    }
    uint32_t c = *point;
    bool line_end = c == '\n' || (c == '\r' && byte_at(lx, 1) == '\n');
    if ((c < 0x20 || (c >= 0x7F && c < 0xA0)) && c != '\t' && !line_end) {
        break_off(lx, lx->diags ? etch_error(lx->diags, ETCH_E_CONTROL_CHARACTER,
                                             span_of(lx, lx->at, lx->at + length),
                                             "control character U+%04X in the text", c)
                                : NULL);
        return 0;
    }
    return length;
}

/* ---- tokens ------------------------------------------------------------------------------------------ */

void etch_lexer_start(etch_lexer *lexer, const etch_source *source, etch_diags *diags, bool bracketed)
{
    *lexer = (etch_lexer){.source = source, .diags = diags, .line_empty = true, .bracketed = bracketed};
    if (source->length >= 3 && memcmp(source->text, "\xEF\xBB\xBF", 3) == 0) {
        lexer->at = lexer->line_start = 3; /* a byte order mark */
    }
}

static bool continues(etch_token_kind last)
{
    switch (last) {
    case ETCH_TOKEN_NONE:
    case ETCH_TOKEN_NEWLINE:
    case ETCH_TOKEN_COMMA:
    case ETCH_TOKEN_PLUS:
    case ETCH_TOKEN_MINUS:
    case ETCH_TOKEN_TIMES:
    case ETCH_TOKEN_DIVIDE:
    case ETCH_TOKEN_POWER:
    case ETCH_TOKEN_ASSIGN:
        return true;
    default:
        return false;
    }
}

static etch_token make(etch_lexer *lx, etch_token_kind kind, uint32_t from)
{
    etch_token token = {.kind = kind,
                        .span = span_of(lx, from, lx->at),
                        .text = lx->source->text + from,
                        .column = from - lx->line_start,
                        .first_on_line = lx->line_empty};
    if (lx->line_empty) {
        lx->indent = token.column;
        lx->line_empty = false;
    }
    token.indent = lx->indent;
    lx->last = kind;
    return token;
}

/* Moves over the newline at the next byte; true when it ends a statement. */
static bool cross_newline(etch_lexer *lx)
{
    lx->at++;
    return lx->depth == 0 && !lx->bracketed && !continues(lx->last);
}

static void begin_line(etch_lexer *lx)
{
    lx->line_start = lx->at;
    lx->line_empty = true;
}

static void skip_comment(etch_lexer *lx)
{
    uint32_t point;
    while (lx->at < lx->source->length && byte_at(lx, 0) != '\n') {
        if (byte_at(lx, 0) >= ' ' && byte_at(lx, 0) <= '~') {
            lx->at++;
            continue;
        }
        uint32_t length = take_character(lx, &point);
        if (length == 0) {
            return;
        }
        lx->at += length;
    }
}

static etch_token lex_string(etch_lexer *lx)
{
    uint32_t from = lx->at++;
    uint32_t point;
    while (lx->at < lx->source->length) {
        unsigned char c = byte_at(lx, 0);
        if (c == '"') {
            lx->at++;
            return make(lx, ETCH_TOKEN_STRING, from);
        }
        if (c == '\n' || c == '\r') {
            break;
        }
        uint32_t length = take_character(lx, &point);
        if (length == 0) {
            return make(lx, ETCH_TOKEN_END, lx->at);
        }
        lx->at += length;
    }
    if (lx->diags) {
        etch_diag *diag = etch_error(lx->diags, ETCH_E_OPEN_STRING, span_of(lx, from, lx->at),
                                     "this string is not closed on its line");
        etch_help(diag, "end it with '\"'");
    }
    return make(lx, ETCH_TOKEN_BAD, from);
}

/* What may be meant by a number of `digits` characters with a word behind it. */
static void help_number(etch_diag *diag, const char *text, uint32_t digits, uint32_t length)
{
    static const char thousands[] = "kMGT";
    const char letter = text[digits] == 'K' ? 'k' : text[digits] == 'B' ? 'G' : text[digits];
    const char *power = length == digits + 1 ? strchr(thousands, letter) : NULL;
    const int group = power ? (int)(power - thousands) + 1 : 0, shown = digits > 40 ? 40 : (int)digits;
    if (letter == 'e' || letter == 'E')
        etch_help(diag, "write powers of ten out: 3*10^9");
    else if (group > 0)
        etch_help(diag, "write the power of ten, or of two, that is meant: %.*s*10^%d, %.*s*2^%d", shown,
                  text, 3 * group, shown, text, 10 * group);
    else
        etch_help(diag, "a name starts with a letter or '_'");
}

static etch_token lex_number(etch_lexer *lx)
{
    uint32_t from = lx->at;
    etch_token_kind kind = ETCH_TOKEN_INTEGER;
    while (is_digit(byte_at(lx, 0))) {
        lx->at++;
    }
    if (byte_at(lx, 0) == '.' && is_digit(byte_at(lx, 1))) {
        kind = ETCH_TOKEN_REAL;
        lx->at++;
        while (is_digit(byte_at(lx, 0))) {
            lx->at++;
        }
    }
    if (!is_letter(byte_at(lx, 0))) {
        return make(lx, kind, from);
    }
    const uint32_t word = lx->at;
    while (is_letter(byte_at(lx, 0)) || is_digit(byte_at(lx, 0)) || byte_at(lx, 0) == '\'') {
        lx->at++;
    }
    if (lx->diags) {
        etch_diag *diag = etch_error(lx->diags, ETCH_E_BAD_NUMBER, span_of(lx, from, lx->at),
                                     "'%.*s' is neither a number nor a name",
                                     (int)(lx->at - from > 40 ? 40 : lx->at - from), lx->source->text + from);
        help_number(diag, lx->source->text + from, word - from, lx->at - from);
    }
    return make(lx, ETCH_TOKEN_BAD, from);
}

static etch_token lex_word(etch_lexer *lx)
{
    const uint32_t from = lx->at;
    const char *word = lx->source->text + from, *end = lx->source->text + lx->source->length, *at = word;
    while (at < end && (is_letter((unsigned char)*at) || is_digit((unsigned char)*at))) {
        at++;
    }
    while (at < end && *at == '\'') {
        at++;
    }
    const uint32_t length = (uint32_t)(at - word);
    lx->at = from + length;
    /* most names are capitals or one letter, which no keyword is */
    for (int kind = FIRST_KEYWORD; length > 1 && word[0] >= 'a' && kind < ETCH_TOKEN_COUNT; kind++) {
        if (tokens[kind].length == length && tokens[kind].text[0] == word[0] &&
            memcmp(tokens[kind].text, word, length) == 0) {
            return make(lx, (etch_token_kind)kind, from);
        }
    }
    if (length > ETCH_NAME_LIMIT) {
        if (lx->diags) {
            etch_error(lx->diags, ETCH_E_LONG_NAME, span_of(lx, from, lx->at),
                       "a name of more than %d characters", ETCH_NAME_LIMIT);
        }
        return make(lx, ETCH_TOKEN_BAD, from);
    }
    return make(lx, ETCH_TOKEN_NAME, from);
}

static etch_token lex_mark(etch_lexer *lx, etch_token_kind kind)
{
    uint32_t from = lx->at;
    lx->at += tokens[kind].length;
    switch (kind) {
    case ETCH_TOKEN_OPEN_ROUND:
    case ETCH_TOKEN_OPEN_SQUARE:
        lx->depth++;
        break;
    case ETCH_TOKEN_CLOSE_ROUND:
    case ETCH_TOKEN_CLOSE_SQUARE:
        lx->depth -= lx->depth > 0;
        break;
    case ETCH_TOKEN_OPEN_BRACE:
    case ETCH_TOKEN_CLOSE_BRACE:
        lx->depth = 0; /* braces never stand in brackets: one that was left open ends here */
        break;
    case ETCH_TOKEN_SEMICOLON:
        if (lx->depth == 0) {
            kind = ETCH_TOKEN_NEWLINE;
        }
        break;
    default:
        break;
    }
    return make(lx, kind, from);
}

/* The mark that the text continues with, the longer one of two. There is a next byte. */
static etch_token_kind match_mark(const etch_lexer *lx)
{
    const unsigned char first = byte_at(lx, 0), second = byte_at(lx, 1);
    for (int i = 0; i < SHORT_MARKS; i += 2) {
        if (first == (unsigned char)marks[i] && second == (unsigned char)marks[i + 1]) {
            return (etch_token_kind)(FIRST_MARK + i / 2);
        }
    }
    const char *found = memchr(marks + SHORT_MARKS, first, FIRST_KEYWORD - FIRST_SHORT_MARK);
    return found ? (etch_token_kind)(FIRST_SHORT_MARK + (found - (marks + SHORT_MARKS))) : ETCH_TOKEN_NONE;
}

static const char *advice_on(uint32_t point)
{
    switch (point) {
    case 0x00A0:
    case 0x3000:
        return "this is a space of another kind; type a plain one";
    case 0x00D7:
    case 0x00B7:
    case 0x22C5:
        return "a product is written '*'";
    case 0x2212:
    case 0x2013:
    case 0x2014:
        return "minus is written '-'";
    case 0x2192:
        return "an arrow is written '->'";
    case 0x2264:
        return "write '<='";
    case 0x2265:
        return "write '>='";
    case 0x201C:
    case 0x201D:
        return "a string stands in plain quotes: \"base.etch\"";
    case 0x2019:
    case 0x2032:
        return "a second dim of the same size is written with a plain quote: H'";
    case '\'':
        return "a prime belongs right after a name: H'";
    case '!':
        return "'not equal' is written '!='";
    case '&':
        return "separate predicates by ','";
    default:
        return NULL;
    }
}

static etch_token lex_bad(etch_lexer *lx)
{
    uint32_t from = lx->at, point;
    uint32_t length = take_character(lx, &point);
    if (length == 0) {
        return make(lx, ETCH_TOKEN_END, from);
    }
    lx->at += length;
    if (lx->diags) {
        etch_diag *diag =
            etch_error(lx->diags, ETCH_E_BAD_CHARACTER, span_of(lx, from, lx->at),
                       "'%.*s' (U+%04X) has no meaning here", (int)length, lx->source->text + from, point);
        const char *advice = advice_on(point);
        if (advice) {
            etch_help(diag, "%s", advice);
        }
    }
    return make(lx, ETCH_TOKEN_BAD, from);
}

/* Moves to the next token. True when a statement ends on the way; `*newline` is then where. */
static bool skip_blanks(etch_lexer *lx, uint32_t *newline)
{
    while (lx->at < lx->source->length && !lx->broken) {
        unsigned char c = byte_at(lx, 0);
        if (c == ' ' || c == '\t' || (c == '\r' && byte_at(lx, 1) == '\n')) {
            lx->at++;
        } else if (c == '#') {
            skip_comment(lx);
        } else if (c == '\n') {
            *newline = lx->at;
            if (cross_newline(lx)) {
                return true;
            }
            begin_line(lx);
        } else {
            break;
        }
    }
    return false;
}

etch_token etch_lexer_next(etch_lexer *lx)
{
    uint32_t newline = 0;
    if (skip_blanks(lx, &newline)) {
        etch_token token = make(lx, ETCH_TOKEN_NEWLINE, newline);
        begin_line(lx);
        return token;
    }
    if (lx->broken || lx->at >= lx->source->length) {
        return make(lx, ETCH_TOKEN_END, lx->at);
    }
    unsigned char c = byte_at(lx, 0);
    if (is_letter(c)) {
        return lex_word(lx);
    }
    if (is_digit(c)) {
        return lex_number(lx);
    }
    if (c == '"') {
        return lex_string(lx);
    }
    etch_token_kind mark = match_mark(lx);
    return mark != ETCH_TOKEN_NONE ? lex_mark(lx, mark) : lex_bad(lx);
}

etch_token_kind etch_lexer_peek(const etch_lexer *lexer)
{
    etch_lexer ahead = *lexer;
    ahead.diags = NULL;
    return etch_lexer_next(&ahead).kind;
}
