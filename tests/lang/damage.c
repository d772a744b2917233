#include "damage.h"

#include <stdlib.h>

/* xorshift64* */
static uint32_t draw(generator *g, uint32_t below)
{
    g->state ^= g->state >> 12;
    g->state ^= g->state << 25;
    g->state ^= g->state >> 27;
    return below ? (uint32_t)((g->state * 0x2545F4914F6CDD1DULL) >> 33) % below : 0;
}

static const char *const pieces[] = {
    "(",      ")",      "[",      "]",      "{",    "}",      ",",     ";",
    "\n",     "=",      "==",     "->",     "..",   "'",      "\"",    "#",
    "~",      "@",      ":",      "|",      "^",    "-",      "*",     "/",
    "//",     "module", "model",  "if",     "else", "repeat", "as",    "tag",
    "weight", "dim",    "param",  "for",    "zero", "etch",   "sweep", "where",
    "x",      "1.5",    "7",      "$",      "\r",   "\t",     "\xC3",  "\xE2\x86\x92",
    "import", "{{{{",   "device", "cluster"};

static void insert(etch_buf *out, generator *g)
{
    uint32_t count = sizeof pieces / sizeof *pieces;
    if (draw(g, 12) == 0) {
        char byte = (char)draw(g, 256);
        etch_buf_add(out, &byte, 1);
    } else {
        etch_buf_puts(out, pieces[draw(g, count)]);
    }
}

etch_buf damage_text(etch_arena *arena, const corpus_case *item, generator *g)
{
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    uint32_t wounds = 1 + draw(g, 4), length = (uint32_t)item->length, at = 0;
    for (uint32_t i = 0; i < wounds && at < length; i++) {
        uint32_t next = at + draw(g, length - at);
        etch_buf_add(&out, item->text + at, next - at);
        uint32_t range = draw(g, draw(g, 4) ? 6 : 200);
        range = range < length - next ? range : length - next;
        at = next;
        switch (draw(g, 4)) {
        case 0:
            at += range;
            break;
        case 1:
            etch_buf_add(&out, item->text + at, range);
            break;
        case 2:
            insert(&out, g);
            at += draw(g, 3) == 0 && at < length;
            break;
        default:
            insert(&out, g);
            break;
        }
    }
    if (at < length && draw(g, 10) != 0) {
        etch_buf_add(&out, item->text + at, length - at);
    }
    return out;
}
