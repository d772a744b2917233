/* Declarations that the files of the parser share. Recursive descent; expressions by binding power.
 *
 * Errors. The first error of a statement is reported and puts the parser into panic: the current token
 * becomes PANIC, which no rule accepts, so every rule on the way out returns without reading or
 * reporting. The loop over statements then calls `recover`, which skips to the next one. An error after
 * which the text can still be read as meant (`etch_parse_complain`) does not panic. */
#ifndef ETCH_LANG_SYNTAX_PARSER_INT_H
#define ETCH_LANG_SYNTAX_PARSER_INT_H

#include "lang/syntax/lexer_int.h"
#include "lang/syntax/syntax.h"

/* An open { }. */
typedef struct etch_open_block {
    const struct etch_open_block *outer;
    /* "module" */
    const char *what;
    /* or NULL */
    const char *name;
    /* ETCH_LINE_...: the keywords that start its lines */
    unsigned lines;
    etch_span opened;
    uint32_t indent;
} etch_open_block;

typedef struct etch_bracket {
    etch_span span;
    etch_token_kind close;
    /* "argument list" */
    const char *what;
} etch_bracket;

typedef struct etch_parser {
    etch_arena *arena;
    etch_names *names;
    etch_diags *diags;
    etch_lexer lexer;
    /* the current one */
    etch_token token;
    /* the last one that was accepted */
    etch_token previous;
    /* in panic: the token that did not fit */
    etch_token held;
    bool panic;
    /* nothing more is read: too deep, too many errors, not a text */
    bool stopped;
    uint32_t depth;
    /* read so far, with those of the files before */
    uint32_t tokens;
    /* the innermost open one */
    const etch_open_block *block;
    /* the list of dims that is being read */
    const etch_bracket *shape;
    /* start of the token before which open blocks have been reported */
    uint32_t open_reported;
    /* a } that does not stand under the line it closes, and what it closes */
    etch_span odd_close;
    etch_span odd_open;
} etch_parser;

void etch_parse_start(etch_parser *parser, const etch_ast_context *context, const etch_source *source,
                      bool bracketed);

/* ---- tokens ---- */

void etch_parse_advance(etch_parser *p);
bool etch_parse_at(const etch_parser *p, etch_token_kind kind);
bool etch_parse_accept(etch_parser *p, etch_token_kind kind);
/* Accepts a token of this kind or reports that `what` was expected. */
bool etch_parse_expect(etch_parser *p, etch_token_kind kind, const char *what);
/* A name, interned. A keyword in its place is reported and taken as the name. */
etch_ast_name etch_parse_name(etch_parser *p, const char *what);
/* name.name.name as one text */
etch_ast_name etch_parse_path(etch_parser *p, const char *what);
/* The current token's text, interned. */
const char *etch_parse_text(etch_parser *p, const etch_token *token);
/* From `start` to the end of the last accepted token. */
etch_span etch_parse_since(const etch_parser *p, etch_span start);

/* ---- errors ---- */

/* Reports and panics. NULL when nothing is reported because something was before. */
etch_diag *etch_parse_fail(etch_parser *p, etch_code code, etch_span span, const char *format, ...)
    ETCH_PRINTF(4, 5);
/* "expected WHAT, found ..." at the current token, or after the last one when the line is over. */
etch_diag *etch_parse_expected(etch_parser *p, const char *what);
/* Reports without panic. NULL in panic. */
etch_diag *etch_parse_complain(etch_parser *p, etch_code code, etch_span span, const char *format, ...)
    ETCH_PRINTF(4, 5);
/* The token as a message calls it: "name 'x'", "'->'", "end of line". */
const char *etch_parse_describe(etch_parser *p, const etch_token *token);
/* Counts one level of nesting; false, with a diagnostic, when there are too many. Every call is paired
 * with a leave. */
bool etch_parse_enter(etch_parser *p);
void etch_parse_leave(etch_parser *p);

/* ---- brackets, lists, blocks ---- */

/* Accepts the current opening bracket. */
etch_bracket etch_parse_open(etch_parser *p, const char *what);
void etch_parse_close(etch_parser *p, const etch_bracket *bracket);
/* Accepts a comma between items of a list; a comma with nothing after it is reported. */
bool etch_parse_comma(etch_parser *p);

typedef void (*etch_parse_line)(etch_parser *p, void *into);
/* { lines }: calls `line` for each, and recovers after each that failed. Its places are filled in here. */
void etch_parse_block(etch_parser *p, etch_open_block block, etch_parse_line line, void *into);
/* Calls `first` for the first statement and `line` for the others, up to the end of the file. */
void etch_parse_file(etch_parser *p, etch_parse_line first, etch_parse_line line, void *into);
/* At the start of a line: the keyword of one of the kinds `lines` that it starts with, also a misspelt
 * one (reported); NONE for every other line; PANIC after a keyword that starts lines elsewhere, or a
 * word that starts none (reported). Moves past nothing. */
etch_token_kind etch_parse_keyword(etch_parser *p, unsigned lines, const char *where);

/* ---- grammar ---- */

etch_ast_expr *etch_parse_expr(etch_parser *p);
/* What an option may be: also the word `weight`, as a name. */
etch_ast_expr *etch_parse_option_value(etch_parser *p);
etch_ast_expr *etch_parse_predicate(etch_parser *p);
void etch_parse_predicates(etch_parser *p, etch_ast_exprs *into);

etch_ast_names etch_parse_names(etch_parser *p, const char *what);
etch_ast_mesh etch_parse_mesh(etch_parser *p);
etch_ast_axes etch_parse_shape(etch_parser *p);
etch_ast_tensor etch_parse_tensor(etch_parser *p, const char *what);
void etch_parse_tensors(etch_parser *p, const char *what, etch_ast_tensors *into);

/* NAME, NAME = EXPR, NAME >= EXPR = EXPR, NAME TYPE = EXPR */
void etch_parse_params(etch_parser *p, etch_ast_defs *into);
/* NAME = EXPR, NAME ~ EXPR */
void etch_parse_dims(etch_parser *p, etch_ast_defs *into);
/* NAME = EXPR */
void etch_parse_bindings(etch_parser *p, etch_ast_defs *into);
/* WORD = EXPR, where the word may be a keyword */
void etch_parse_options(etch_parser *p, etch_ast_defs *into);

/* { statements }, after the header of a module, model, loop or branch. */
void etch_parse_body(etch_parser *p, const char *what, const char *name, etch_ast_body *into);
/* { lines } of a device or cluster; `what` is the word that begins it. */
void etch_parse_machine(etch_parser *p, const char *what, const char *name, etch_ast_lines *into);
/* WORD = EXPR UNIT, where the word may be a keyword and the unit left out */
void etch_parse_numbers(etch_parser *p, etch_ast_defs *into);
/* us, GB/s: a unit behind a number, as one text; without text where there is none. */
etch_ast_name etch_parse_unit(etch_parser *p);
/* { lines } of a plan or of a scope in it. */
void etch_parse_plan(etch_parser *p, const char *what, const char *name, etch_ast_lines *into);

#endif
