/* Lexer: text of one source -> tokens, one at a time.
 *
 * A newline ends a statement unless it stands inside ( ) or [ ], or the last token continues: one of , +
 * - * / ^ = (or nothing yet, or another newline). A `;` ends a statement too; inside brackets it is a
 * token of its own. Comments run from # to the end of the line. */
#ifndef ETCH_LANG_SYNTAX_LEXER_INT_H
#define ETCH_LANG_SYNTAX_LEXER_INT_H

#include "base/base.h"

/* Bytes of a name, and of a qualified name. */
enum { ETCH_NAME_LIMIT = 200 };

/* Kinds of line that a keyword may start. */
enum { ETCH_LINE_ITEM = 1, ETCH_LINE_BODY = 2, ETCH_LINE_PLAN = 4, ETCH_LINE_SWEEP = 8 };

typedef enum etch_token_kind {
#define TOKEN(name, text) ETCH_TOKEN_##name,
#define MARK(name, text) ETCH_TOKEN_##name,
#define KEYWORD(name, text, starts) ETCH_TOKEN_##name,
#include "lang/syntax/tokens.def"
    ETCH_TOKEN_COUNT
} etch_token_kind;

typedef struct etch_token {
    etch_token_kind kind;
    etch_span span;
    /* points into the source; span.end - span.start bytes */
    const char *text;
    /* bytes since the start of its line */
    uint32_t column;
    /* column of the first token of its line */
    uint32_t indent;
    bool first_on_line;
} etch_token;

typedef struct etch_lexer {
    const etch_source *source;
    /* NULL: look ahead without reporting */
    etch_diags *diags;
    /* next byte */
    uint32_t at;
    uint32_t line_start;
    uint32_t indent;
    /* open ( and [ */
    uint32_t depth;
    etch_token_kind last;
    /* no token on this line yet */
    bool line_empty;
    /* a text from a command line: newlines end nothing */
    bool bracketed;
    /* not a text: reported once, then only END */
    bool broken;
} etch_lexer;

/* At the start of `source`. A byte order mark is skipped. `bracketed`: newlines never end anything (text
 * from a command line). */
void etch_lexer_start(etch_lexer *lexer, const etch_source *source, etch_diags *diags, bool bracketed);
/* The next token; END again and again after the last. Errors are reported here: a character outside the
 * language gives BAD, a byte that no text has gives END and sets `broken`. */
etch_token etch_lexer_next(etch_lexer *lexer);
/* Kind of the token after the last one, without moving. */
etch_token_kind etch_lexer_peek(const etch_lexer *lexer);

/* "->" for ETCH_TOKEN_ARROW, "module" for ETCH_TOKEN_MODULE, "name" for ETCH_TOKEN_NAME. */
const char *etch_token_text(etch_token_kind kind);
bool etch_token_is_keyword(etch_token_kind kind);
/* The kinds of line that a token of this kind starts: ETCH_LINE_... */
unsigned etch_token_starts(etch_token_kind kind);
/* The keyword among those that start one of the kinds of line `starts` that is nearest to `word`;
 * ETCH_TOKEN_NONE when none is near. */
etch_token_kind etch_token_nearest(const char *word, unsigned starts);

#endif
