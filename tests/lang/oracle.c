#include "oracle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "etch.tab.h"

enum { MOST_NAME = 200, MOST_LEVELS = 500, MOST_WORD = 16 };

typedef struct word {
    const char *text;
    size_t length;
} word;

struct oracle {
    const char *at, *end;
    int depth; /* ( and [ that are open */
    int last;  /* the token before */
    bool refused;
    word *words; /* of numbered tokens */
    int count, capacity;
};

int oracle_parse(oracle *o);

void oracle_refuse(oracle *o)
{
    o->refused = true;
}

static int number_word(oracle *o, const char *text, size_t length)
{
    if (o->count == o->capacity) {
        o->capacity = o->capacity ? 2 * o->capacity : 64;
        o->words = realloc(o->words, (size_t)o->capacity * sizeof *o->words);
        if (!o->words)
            abort();
    }
    o->words[o->count] = (word){text, length};
    return o->count++;
}

static bool is(const oracle *o, int number, const char *text)
{
    const word *w = &o->words[number];
    return w->length == strlen(text) && memcmp(w->text, text, w->length) == 0;
}

void oracle_check_version(oracle *o, int integer)
{
    word *w = &o->words[integer];
    for (; w->length > 1 && *w->text == '0'; w->length--)
        w->text++;
    o->refused = o->refused || !is(o, integer, "1");
}

void oracle_check_plan(oracle *o, int name)
{
    o->refused = o->refused || !is(o, name, "plan");
}

void oracle_check_member(oracle *o, int name)
{
    o->refused = o->refused || !is(o, name, "in");
}

void oracle_check_instance(oracle *o, int name)
{
    o->refused = o->refused || !is(o, name, "instance");
}

void oracle_check_offload(oracle *o, int name)
{
    o->refused = o->refused || !is(o, name, "offload");
}

int oracle_length(oracle *o, int name)
{
    return (int)o->words[name].length;
}

int oracle_path(oracle *o, int length, int name)
{
    const int whole = length + 1 + oracle_length(o, name);
    o->refused = o->refused || whole > MOST_NAME;
    return whole;
}

int oracle_nest(oracle *o, int inner)
{
    o->refused = o->refused || inner >= MOST_LEVELS;
    return inner + 1;
}

/* ---- the scanner --------------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char peek(const oracle *o, size_t offset)
{
    return offset < (size_t)(o->end - o->at) ? o->at[offset] : '\0';
}

/* Is the whole text UTF-8 without control characters, but for tabs and ends of lines? */
static bool is_text(const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        const unsigned char c = (unsigned char)text[i];
        if (c < 0x80) {
            const bool line_end = c == '\n' || (c == '\r' && i + 1 < length && text[i + 1] == '\n');
            if ((c < 0x20 && c != '\t' && !line_end) || c == 0x7F)
                return false;
            i++;
            continue;
        }
        const size_t more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
        uint32_t point = c & (0x3Fu >> more);
        if (c < 0xC0 || c > 0xF7 || i + more >= length)
            return false;
        for (size_t k = 1; k <= more; k++) {
            const unsigned char next = (unsigned char)text[i + k];
            if (next >> 6 != 2)
                return false;
            point = point << 6 | (next & 0x3Fu);
        }
        const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
        if (point < least[more] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000) ||
            (point >= 0x80 && point < 0xA0))
            return false;
        i += more + 1;
    }
    return true;
}

static const struct keyword {
    const char *text;
    int token;
} keywords[] = {
    {"as", AS},       {"assume", ASSUME}, {"axis", AXIS},     {"check", CHECK},       {"config", CONFIG},
    {"dim", DIM},     {"dtype", DTYPE},   {"else", ELSE},     {"etch", ETCH},         {"false", FALSE_},
    {"for", FOR},     {"if", IF},         {"import", IMPORT}, {"infer", INFER},       {"mesh", MESH},
    {"model", MODEL}, {"module", MODULE}, {"pad", PAD},       {"parallel", PARALLEL}, {"param", PARAM},
    {"pin", PIN},     {"repeat", REPEAT}, {"shard", SHARD},   {"stage", STAGE},       {"sweep", SWEEP},
    {"tag", TAG},     {"train", TRAIN},   {"true", TRUE_},    {"use", USE},           {"weight", WEIGHT},
    {"where", WHERE}, {"zero", ZERO},     {"device", DEVICE}, {"cluster", CLUSTER},
};

static int scan_word(oracle *o, int *value)
{
    const char *start = o->at;
    while (is_letter(peek(o, 0)) || is_digit(peek(o, 0)))
        o->at++;
    while (peek(o, 0) == '\'')
        o->at++;
    const size_t length = (size_t)(o->at - start);
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strlen(keywords[i].text) == length && memcmp(keywords[i].text, start, length) == 0)
            return keywords[i].token;
    *value = number_word(o, start, length);
    return length > MOST_NAME ? BAD : NAME;
}

static int scan_number(oracle *o, int *value)
{
    const char *start = o->at;
    int token = INTEGER;
    while (is_digit(peek(o, 0)))
        o->at++;
    if (peek(o, 0) == '.' && is_digit(peek(o, 1))) {
        token = REAL;
        for (o->at++; is_digit(peek(o, 0));)
            o->at++;
    }
    *value = number_word(o, start, (size_t)(o->at - start));
    return is_letter(peek(o, 0)) ? BAD : token;
}

static int scan_string(oracle *o)
{
    for (o->at++; o->at < o->end && *o->at != '\n' && *o->at != '\r'; o->at++)
        if (*o->at == '"') {
            o->at++;
            return STRING;
        }
    return BAD;
}

static int scan_mark(oracle *o)
{
    static const struct {
        char text[3];
        int token;
    } pairs[] = {{"->", ARROW},      {"==", EQUAL}, {"!=", UNEQUAL}, {"<=", LESS_EQUAL},
                 {">=", MORE_EQUAL}, {"//", FLOOR}, {"..", REST}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (peek(o, 0) == pairs[i].text[0] && peek(o, 1) == pairs[i].text[1]) {
            o->at += 2;
            return pairs[i].token;
        }
    const char c = *o->at++;
    if (!strchr("()[]{},;:=+-*/%^<>|@~.", c))
        return BAD;
    if (c == '(' || c == '[')
        o->depth++;
    if ((c == ')' || c == ']') && o->depth > 0)
        o->depth--;
    if ((c == '{' || c == '}') && o->depth > 0)
        return BAD;
    return c == ';' && o->depth == 0 ? END_ : c;
}

static bool goes_on(int token)
{
    return token == END_ || token == 0 || (token > 0 && token < 128 && strchr(",+-*/^=", token));
}

static int scan(oracle *o, int *value)
{
    for (; o->at < o->end; o->at++) {
        const char c = *o->at;
        if (c == '#')
            while (o->at + 1 < o->end && o->at[1] != '\n')
                o->at++;
        else if (c == '\n' && o->depth == 0 && !goes_on(o->last)) {
            o->at++;
            return END_;
        } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
            break;
    }
    if (o->at == o->end)
        return 0;
    if (is_letter(*o->at))
        return scan_word(o, value);
    if (is_digit(*o->at))
        return scan_number(o, value);
    return *o->at == '"' ? scan_string(o) : scan_mark(o);
}

int oracle_lex(int *value, oracle *o)
{
    int token;
    do /* an empty statement means nothing */
        token = scan(o, value);
    while (token == END_ && (o->last == END_ || o->last == 0));
    o->last = token;
    return token;
}

bool oracle_accepts(const char *text, size_t length)
{
    oracle o = {.at = text, .end = text + length};
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        o.at += 3;
    bool accepted = is_text(o.at, (size_t)(o.end - o.at)) && oracle_parse(&o) == 0 && !o.refused;
    free(o.words);
    return accepted;
}
