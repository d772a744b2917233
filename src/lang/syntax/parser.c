/* The parser's tools: tokens, errors, recovery, brackets, blocks. */
#include "lang/syntax/parser_int.h"

#include <string.h>

#include <stdio.h>

enum { MAX_ERRORS = 20, MAX_SHOWN = 60 };

void etch_parse_start(etch_parser *parser, const etch_ast_context *context, const etch_source *source,
                      bool bracketed)
{
    *parser = (etch_parser){.arena = context->arena, .names = context->names, .diags = context->diags};
    etch_lexer_start(&parser->lexer, source, context->diags, bracketed);
    parser->token = etch_lexer_next(&parser->lexer);
    parser->previous = parser->token;
    parser->previous.span.end = parser->previous.span.start;
    parser->stopped = parser->lexer.broken;
    parser->tokens = 1;
}

/* ---- errors ------------------------------------------------------------------------------------------ */

static void enter_panic(etch_parser *p)
{
    if (!p->panic) {
        p->held = p->token;
        p->token.kind = ETCH_TOKEN_PANIC;
        p->panic = true;
    }
}

static void stop(etch_parser *p)
{
    enter_panic(p);
    p->stopped = true;
}

/* Can something be reported now? Not when the lexer has said it already, or the statement failed before. */
static bool may_report(etch_parser *p)
{
    return !p->panic && !p->stopped && p->token.kind != ETCH_TOKEN_BAD;
}

static ETCH_PRINTF(4, 0) etch_diag *report(etch_parser *p, etch_code code, etch_span span, const char *format,
                                           va_list args)
{
    va_list copy;
    va_copy(copy, args);
    int length = vsnprintf(NULL, 0, format, copy);
    va_end(copy);
    char *text = etch_alloc(p->arena, (size_t)(length < 0 ? 0 : length) + 1);
    vsnprintf(text, (size_t)(length < 0 ? 0 : length) + 1, format, args);
    return etch_error(p->diags, code, span, "%s", text);
}

etch_diag *etch_parse_fail(etch_parser *p, etch_code code, etch_span span, const char *format, ...)
{
    etch_diag *diag = NULL;
    if (may_report(p)) {
        va_list args;
        va_start(args, format);
        diag = report(p, code, span, format, args);
        va_end(args);
        p->stopped = etch_error_count(p->diags) >= MAX_ERRORS;
    }
    enter_panic(p);
    return diag;
}

etch_diag *etch_parse_complain(etch_parser *p, etch_code code, etch_span span, const char *format, ...)
{
    if (!may_report(p)) {
        return NULL;
    }
    va_list args;
    va_start(args, format);
    etch_diag *diag = report(p, code, span, format, args);
    va_end(args);
    if (etch_error_count(p->diags) >= MAX_ERRORS) {
        stop(p);
    }
    return diag;
}

const char *etch_parse_describe(etch_parser *p, const etch_token *token)
{
    uint32_t length = token->span.end - token->span.start;
    const char *more = length > MAX_SHOWN ? "..." : "";
    int shown = (int)(length > MAX_SHOWN ? MAX_SHOWN : length);
    switch (token->kind) {
    case ETCH_TOKEN_NAME:
        return etch_text(p->arena, "name '%.*s%s'", shown, token->text, more);
    case ETCH_TOKEN_INTEGER:
    case ETCH_TOKEN_REAL:
        return etch_text(p->arena, "number %.*s%s", shown, token->text, more);
    case ETCH_TOKEN_STRING:
        return "a string";
    case ETCH_TOKEN_NEWLINE:
        return *token->text == ';' ? "';'" : "end of line";
    case ETCH_TOKEN_END:
        return p->lexer.bracketed ? "end of the text" : "end of file";
    default:
        return etch_text(p->arena, "%s'%s'", etch_token_is_keyword(token->kind) ? "keyword " : "",
                         etch_token_text(token->kind));
    }
}

/* Is the current token beyond the line of the one before? Then what is missing is missing there. */
static bool line_is_over(const etch_parser *p)
{
    if (p->previous.kind == ETCH_TOKEN_NEWLINE || p->previous.span.end == p->previous.span.start) {
        return false; /* at the start of a statement */
    }
    return p->token.kind == ETCH_TOKEN_NEWLINE || p->token.kind == ETCH_TOKEN_END || p->token.first_on_line;
}

static etch_span error_span(const etch_parser *p)
{
    if (line_is_over(p)) {
        return (etch_span){p->previous.span.end, p->previous.span.end};
    }
    return p->token.span;
}

etch_diag *etch_parse_expected(etch_parser *p, const char *what)
{
    bool next_line = line_is_over(p) && p->token.first_on_line && p->token.kind != ETCH_TOKEN_END;
    const char *found = next_line ? "end of line" : etch_parse_describe(p, &p->token);
    return etch_parse_fail(p, ETCH_E_UNEXPECTED, error_span(p), "expected %s, found %s", what, found);
}

bool etch_parse_enter(etch_parser *p)
{
    if (++p->depth <= ETCH_AST_DEPTH) {
        return true;
    }
    etch_diag *diag =
        etch_parse_fail(p, ETCH_E_TOO_DEEP, p->token.span, "nested more than %d levels deep", ETCH_AST_DEPTH);
    if (diag) {
        etch_help(diag, "the rest of this file is not read");
    }
    stop(p);
    return false;
}

void etch_parse_leave(etch_parser *p)
{
    p->depth--;
}

/* ---- tokens ------------------------------------------------------------------------------------------ */

/* A tree takes up to 300 bytes for a token: what a text may have of them is a limit of memory. The first one
 * too many is reported, unless there are errors already; of the files that follow nothing is read. */
static void stop_at_limit(etch_parser *p)
{
    etch_diag *diag = NULL;
    if (p->tokens == ETCH_SPEC_TOKENS + 1 && etch_error_count(p->diags) == 0)
        diag = etch_parse_fail(p, ETCH_E_SPEC_TOO_LARGE, p->token.span,
                               "the spec has more than %d words and signs", ETCH_SPEC_TOKENS);
    if (diag)
        etch_help(diag, "the rest is not read");
    stop(p);
}

void etch_parse_advance(etch_parser *p)
{
    if (p->panic) {
        return;
    }
    p->previous = p->token;
    p->token = etch_lexer_next(&p->lexer);
    if (p->lexer.broken) {
        stop(p);
    } else if (++p->tokens > ETCH_SPEC_TOKENS) {
        stop_at_limit(p);
    }
}

bool etch_parse_at(const etch_parser *p, etch_token_kind kind)
{
    return p->token.kind == kind;
}

bool etch_parse_accept(etch_parser *p, etch_token_kind kind)
{
    if (p->token.kind != kind) {
        return false;
    }
    etch_parse_advance(p);
    return true;
}

bool etch_parse_expect(etch_parser *p, etch_token_kind kind, const char *what)
{
    if (etch_parse_accept(p, kind)) {
        return true;
    }
    etch_parse_expected(p, what);
    return false;
}

const char *etch_parse_text(etch_parser *p, const etch_token *token)
{
    return etch_name(p->names, token->text, token->span.end - token->span.start);
}

etch_span etch_parse_since(const etch_parser *p, etch_span start)
{
    return (etch_span){start.start, p->previous.span.end > start.start ? p->previous.span.end : start.end};
}

static void help_weight(etch_diag *diag)
{
    etch_help(diag,
              "a trained tensor is declared by a line of its own: weight w[H,F]; `param n` at the top level "
              "declares a number");
}

/* A keyword stands where a name should. When more words follow, it was meant as the keyword and the
 * statement is lost. */
static void report_keyword(etch_parser *p, const char *what)
{
    const char *word = etch_token_text(p->token.kind);
    etch_token_kind next = etch_lexer_peek(&p->lexer);
    etch_diag *diag = etch_parse_complain(p, ETCH_E_KEYWORD_AS_NAME, p->token.span,
                                          "'%s' is a word of the language and cannot be a name", word);
    if (diag && p->token.kind == ETCH_TOKEN_PARAM && next == ETCH_TOKEN_OPEN_ROUND) {
        help_weight(diag);
    } else if (diag) {
        etch_help(diag, "expected %s; choose another word, such as '%s_'", what, word);
    }
    if (next == ETCH_TOKEN_NAME || next == ETCH_TOKEN_INTEGER || next == ETCH_TOKEN_STRING ||
        next == ETCH_TOKEN_OPEN_BRACE || etch_token_is_keyword(next)) {
        enter_panic(p);
    }
}

etch_ast_name etch_parse_name(etch_parser *p, const char *what)
{
    etch_token token = p->token;
    if (token.kind != ETCH_TOKEN_NAME) {
        if (!etch_token_is_keyword(token.kind) || line_is_over(p)) {
            etch_parse_expected(p, what);
            return (etch_ast_name){0};
        }
        report_keyword(p, what);
    }
    etch_parse_advance(p);
    return (etch_ast_name){etch_parse_text(p, &token), token.span};
}

etch_ast_name etch_parse_path(etch_parser *p, const char *what)
{
    etch_ast_name path = etch_parse_name(p, what);
    if (!etch_parse_at(p, ETCH_TOKEN_DOT)) {
        return path;
    }
    etch_buf text = {.arena = p->arena};
    etch_buf_puts(&text, path.text ? path.text : "");
    while (etch_parse_accept(p, ETCH_TOKEN_DOT)) {
        etch_ast_name part = etch_parse_name(p, "a name after '.'");
        etch_buf_printf(&text, ".%s", part.text ? part.text : "");
        if (text.length > ETCH_NAME_LIMIT) {
            etch_parse_fail(p, ETCH_E_LONG_NAME, etch_parse_since(p, path.span),
                            "a name of more than %d characters", ETCH_NAME_LIMIT);
        }
    }
    path.text = etch_name(p->names, text.text, text.length);
    path.span = etch_parse_since(p, path.span);
    return path;
}

/* ---- brackets and lists ------------------------------------------------------------------------------ */

etch_bracket etch_parse_open(etch_parser *p, const char *what)
{
    etch_bracket bracket = {.span = p->token.span,
                            .close = p->token.kind == ETCH_TOKEN_OPEN_ROUND ? ETCH_TOKEN_CLOSE_ROUND
                                                                            : ETCH_TOKEN_CLOSE_SQUARE,
                            .what = what};
    etch_parse_advance(p);
    return bracket;
}

void etch_parse_close(etch_parser *p, const etch_bracket *bracket)
{
    if (etch_parse_accept(p, bracket->close)) {
        return;
    }
    const char *close = etch_token_text(bracket->close);
    bool over = line_is_over(p) || p->token.kind == ETCH_TOKEN_CLOSE_ROUND ||
                p->token.kind == ETCH_TOKEN_CLOSE_SQUARE || p->token.kind == ETCH_TOKEN_OPEN_BRACE ||
                p->token.kind == ETCH_TOKEN_CLOSE_BRACE || p->token.kind == ETCH_TOKEN_ARROW ||
                p->token.kind == ETCH_TOKEN_ASSIGN;
    etch_diag *diag;
    if (over) {
        const char *found = p->token.first_on_line ? "end of line" : etch_parse_describe(p, &p->token);
        diag = etch_parse_fail(p, ETCH_E_OPEN_BRACKET, error_span(p),
                               "expected '%s' to close the %s, found %s", close, bracket->what, found);
    } else {
        diag =
            etch_parse_fail(p, ETCH_E_UNEXPECTED, p->token.span, "expected ',' or '%s' in the %s, found %s",
                            close, bracket->what, etch_parse_describe(p, &p->token));
    }
    if (diag) {
        etch_note(diag, bracket->span, "%s opened here", bracket->what);
    }
}

bool etch_parse_comma(etch_parser *p)
{
    if (!etch_parse_accept(p, ETCH_TOKEN_COMMA)) {
        return false;
    }
    switch (p->token.kind) {
    case ETCH_TOKEN_CLOSE_ROUND:
    case ETCH_TOKEN_CLOSE_SQUARE:
    case ETCH_TOKEN_CLOSE_BRACE:
    case ETCH_TOKEN_COMMA: {
        etch_span comma = p->previous.span;
        etch_diag *diag = etch_parse_complain(p, ETCH_E_STRAY_COMMA, comma, "nothing follows this ','");
        if (diag) {
            etch_help(diag, "remove it, or write what is missing after it");
        }
        while (etch_parse_accept(p, ETCH_TOKEN_COMMA)) {
        }
        return p->token.kind != ETCH_TOKEN_CLOSE_ROUND && p->token.kind != ETCH_TOKEN_CLOSE_SQUARE &&
               p->token.kind != ETCH_TOKEN_CLOSE_BRACE;
    }
    default:
        return true;
    }
}

etch_ast_names etch_parse_names(etch_parser *p, const char *what)
{
    etch_ast_names names = {0};
    do {
        ETCH_PUSH(p->arena, &names, etch_parse_name(p, what));
    } while (etch_parse_comma(p));
    return names;
}

/* ---- statements and blocks --------------------------------------------------------------------------- */

/* The statement began at `start`, on a line indented by `indent`. Skips to the token after which, or at
 * which, the next one begins. A line that is not indented deeper than the statement begins a new one
 * even inside brackets that were left open. */
static void recover(etch_parser *p, uint32_t start, uint32_t indent)
{
    if (p->stopped) {
        return;
    }
    p->token = p->held;
    p->panic = false;
    uint32_t braces = 0;
    for (;; etch_parse_advance(p)) {
        etch_token_kind kind = p->token.kind;
        bool new_line = p->token.first_on_line && p->token.span.start > start && p->token.column <= indent;
        if (p->stopped || kind == ETCH_TOKEN_END) {
            p->open_reported = p->token.span.start; /* that blocks are open at the end would be no news */
            break;
        }
        if (new_line && (braces == 0 || (etch_token_starts(kind) & ETCH_LINE_ITEM))) {
            break;
        }
        if (kind == ETCH_TOKEN_OPEN_BRACE) {
            braces++;
        } else if (kind == ETCH_TOKEN_CLOSE_BRACE) {
            if (braces == 0) {
                break;
            }
            braces--;
        } else if (kind == ETCH_TOKEN_NEWLINE && braces == 0) {
            break;
        }
    }
    bool opener = p->token.kind == ETCH_TOKEN_OPEN_ROUND || p->token.kind == ETCH_TOKEN_OPEN_SQUARE;
    p->lexer.depth = opener ? 1 : 0;
}

/* What stands after a complete statement? */
static void end_statement(etch_parser *p)
{
    switch (p->token.kind) {
    case ETCH_TOKEN_NEWLINE:
    case ETCH_TOKEN_CLOSE_BRACE:
    case ETCH_TOKEN_END:
    case ETCH_TOKEN_PANIC:
        return;
    default:
        break;
    }
    etch_token token = p->token;
    etch_diag *diag =
        etch_parse_fail(p, ETCH_E_NO_END, token.span, "expected the end of the statement, found %s",
                        etch_parse_describe(p, &token));
    if (!diag) {
        return;
    }
    switch (token.kind) {
    case ETCH_TOKEN_NAME:
    case ETCH_TOKEN_INTEGER:
    case ETCH_TOKEN_REAL:
    case ETCH_TOKEN_OPEN_ROUND:
        etch_help(diag, "a product is written with '*'; another statement starts on a new line or after ';'");
        break;
    case ETCH_TOKEN_EQUAL:
    case ETCH_TOKEN_UNEQUAL:
    case ETCH_TOKEN_AT_MOST:
    case ETCH_TOKEN_AT_LEAST:
    case ETCH_TOKEN_LESS:
    case ETCH_TOKEN_GREATER:
    case ETCH_TOKEN_BAR:
        etch_help(
            diag,
            "a comparison stands in 'check', 'assume', 'if' and 'where' only, and there is one in each");
        break;
    case ETCH_TOKEN_AT:
        if (p->block && p->block->lines == ETCH_LINE_BODY) {
            etch_help(diag,
                      "a product of tensors is written y[..] = x * w: dims of both that y does not name are "
                      "summed");
        }
        break;
    case ETCH_TOKEN_CLOSE_ROUND:
    case ETCH_TOKEN_CLOSE_SQUARE:
        etch_help(diag, "no '%s' is open here", token.kind == ETCH_TOKEN_CLOSE_ROUND ? "(" : "[");
        break;
    default:
        if (etch_token_starts(token.kind)) {
            etch_help(diag, "another statement starts on a new line or after ';'");
        }
        break;
    }
}

/* One statement, with recovery. Always moves on. */
static void run_line(etch_parser *p, etch_parse_line line, void *into)
{
    etch_token first = p->token;
    line(p, into);
    end_statement(p);
    if (p->panic) {
        recover(p, first.span.start, first.indent);
        if (!p->stopped && p->token.span.start == first.span.start &&
            p->token.kind != ETCH_TOKEN_CLOSE_BRACE) {
            etch_parse_advance(p);
        }
    }
}

static void skip_newlines(etch_parser *p)
{
    while (etch_parse_accept(p, ETCH_TOKEN_NEWLINE)) {
    }
}

static const char *block_name(etch_parser *p, const etch_open_block *block)
{
    return block->name ? etch_text(p->arena, "%s '%s'", block->what, block->name) : block->what;
}

/* The current token cannot stand in the block. One report for all blocks that it finds open. */
static void report_open_block(etch_parser *p, const etch_open_block *block)
{
    etch_token found = p->token;
    if (p->open_reported && p->open_reported == found.span.start) {
        enter_panic(p);
        return;
    }
    p->open_reported = found.span.start;
    etch_diag *diag = etch_parse_fail(p, ETCH_E_OPEN_BLOCK, block->opened, "%s opened here is not closed",
                                      block_name(p, block));
    if (!diag) {
        return;
    }
    etch_note(diag, found.span, "%s stands where its '}' is missing", etch_parse_describe(p, &found));
    for (const etch_open_block *outer = block->outer; outer; outer = outer->outer) {
        etch_note(diag, outer->opened, "%s opened here is not closed either", block_name(p, outer));
    }
    if (p->odd_close.end) {
        etch_note(diag, p->odd_close,
                  "this '}' does not stand under the line that it closes: is one missing before it?");
        etch_note(diag, p->odd_open, "it closes this '{'");
    }
}

/* A param that stands further in than the line of the block: a tensor was meant, and no brace is missing. */
static bool is_misplaced_param(const etch_parser *p, const etch_open_block *block)
{
    return block->lines == ETCH_LINE_BODY && p->token.kind == ETCH_TOKEN_PARAM &&
           p->token.column > block->indent;
}

/* Does the current line belong to no block, but to the file? */
static bool begins_item(const etch_parser *p, const etch_open_block *block)
{
    unsigned starts = etch_token_starts(p->token.kind);
    return !is_misplaced_param(p, block) && p->token.first_on_line && (starts & ETCH_LINE_ITEM) &&
           !(starts & block->lines) && etch_lexer_peek(&p->lexer) != ETCH_TOKEN_ASSIGN;
}

void etch_parse_block(etch_parser *p, etch_open_block block, etch_parse_line line, void *into)
{
    block.opened = p->token.span;
    block.indent = p->token.indent;
    block.outer = p->block;
    if (!etch_parse_expect(p, ETCH_TOKEN_OPEN_BRACE,
                           etch_text(p->arena, "'{' and the lines of the %s", block.what))) {
        return;
    }
    p->block = &block;
    if (etch_parse_enter(p)) {
        for (;;) {
            skip_newlines(p);
            if (p->stopped || etch_parse_at(p, ETCH_TOKEN_CLOSE_BRACE)) {
                break;
            }
            if (etch_parse_at(p, ETCH_TOKEN_END) || begins_item(p, &block)) {
                report_open_block(p, &block);
                break;
            }
            run_line(p, line, into);
        }
    }
    etch_parse_leave(p);
    p->block = block.outer;
    etch_token close = p->token;
    if (etch_parse_accept(p, ETCH_TOKEN_CLOSE_BRACE) && close.first_on_line && close.column != block.indent &&
        !p->odd_close.end) {
        p->odd_close = close.span;
        p->odd_open = block.opened;
    }
}

static void report_stray_brace(etch_parser *p)
{
    etch_span span = p->token.span;
    etch_diag *diag = etch_parse_complain(p, ETCH_E_STRAY_BRACE, span, "this '}' closes nothing");
    if (diag && p->odd_close.end) {
        etch_note(diag, p->odd_close, "this '}' does not stand under the line that it closes");
    }
    etch_parse_advance(p);
}

void etch_parse_file(etch_parser *p, etch_parse_line first, etch_parse_line line, void *into)
{
    skip_newlines(p);
    if (!p->stopped) {
        run_line(p, first, into);
    }
    for (;;) {
        skip_newlines(p);
        if (p->stopped || etch_parse_at(p, ETCH_TOKEN_END)) {
            return;
        }
        if (etch_parse_at(p, ETCH_TOKEN_CLOSE_BRACE)) {
            report_stray_brace(p);
            continue;
        }
        p->odd_close = p->odd_open = (etch_span){0};
        run_line(p, line, into);
    }
}

static const char *home_of(unsigned starts)
{
    return starts & ETCH_LINE_ITEM   ? "at the top level of a file"
           : starts & ETCH_LINE_BODY ? "in a module or model"
           : starts & ETCH_LINE_PLAN ? "in a 'parallel' block"
                                     : "in a 'sweep' block";
}

/* Is a name with `next` after it meant as a keyword? */
static bool is_headword(unsigned lines, etch_token_kind next)
{
    if (lines != ETCH_LINE_BODY) {
        return next != ETCH_TOKEN_ASSIGN && next != ETCH_TOKEN_EQUAL;
    }
    return next == ETCH_TOKEN_NAME || next == ETCH_TOKEN_INTEGER || next == ETCH_TOKEN_STRING ||
           next == ETCH_TOKEN_OPEN_BRACE || etch_token_is_keyword(next);
}

/* "'weight', 'dim', ... or 'if'" */
static const char *headwords(etch_parser *p, unsigned lines)
{
    etch_buf text = {.arena = p->arena};
    for (int kind = 0; kind < ETCH_TOKEN_COUNT; kind++) {
        if (etch_token_starts((etch_token_kind)kind) & lines) {
            etch_buf_printf(&text, "%s'%s'", text.length ? ", " : "", etch_token_text((etch_token_kind)kind));
        }
    }
    etch_buf_puts(&text, lines == ETCH_LINE_BODY ? ", 'instance', or NAME = VALUE" : "");
    etch_buf_puts(&text, lines == ETCH_LINE_PLAN ? ", 'offload', or OPTION = VALUE" : "");
    return text.text;
}

/* What a word was to begin, maybe in another language; ETCH_TOKEN_NONE: nothing is known. */
static etch_token_kind meant_by(const char *word, unsigned lines)
{
    static const struct {
        const char *word;
        etch_token_kind kind;
    } others[] = {{"class", ETCH_TOKEN_MODULE}, {"def", ETCH_TOKEN_MODULE},
                  {"fn", ETCH_TOKEN_MODULE},    {"func", ETCH_TOKEN_MODULE},
                  {"loop", ETCH_TOKEN_REPEAT},  {"function", ETCH_TOKEN_MODULE},
                  {"while", ETCH_TOKEN_REPEAT}, {"plan", ETCH_TOKEN_PARALLEL}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(word, others[i].word) == 0 && etch_token_starts(others[i].kind) & lines)
            return others[i].kind;
    return etch_token_nearest(word, lines);
}

/* `stream S @ cp`, which the first drafts of the language had. */
static void report_stream(etch_parser *p, etch_span span)
{
    etch_diag *diag =
        etch_parse_fail(p, ETCH_E_GONE_WORD, span, "'stream' is no word of the language any more");
    if (diag) {
        etch_help(diag, "write `shard S @ cp`: ranks share the dim, and what needs all of it is gathered");
    }
}

etch_token_kind etch_parse_keyword(etch_parser *p, unsigned lines, const char *where)
{
    etch_token token = p->token;
    unsigned starts = etch_token_starts(token.kind);
    if (starts & lines) {
        return token.kind;
    }
    etch_token_kind next = etch_lexer_peek(&p->lexer);
    if (starts && next != ETCH_TOKEN_ASSIGN) {
        etch_diag *diag = etch_parse_fail(p, ETCH_E_MISPLACED, token.span, "'%s' cannot stand %s",
                                          etch_token_text(token.kind), where);
        if (diag) {
            etch_help(diag, "it belongs %s", home_of(starts));
        }
        if (diag && token.kind == ETCH_TOKEN_PARAM && lines == ETCH_LINE_BODY) {
            help_weight(diag);
        }
        if (diag && token.kind == ETCH_TOKEN_FOR && lines == ETCH_LINE_BODY) {
            etch_help(diag, "a loop of a model is written repeat layers as layer { .. }");
        }
        return ETCH_TOKEN_PANIC;
    }
    if (token.kind != ETCH_TOKEN_NAME || !is_headword(lines, next)) {
        return ETCH_TOKEN_NONE;
    }
    const char *word = etch_parse_text(p, &token);
    if (lines == ETCH_LINE_PLAN && strcmp(word, "stream") == 0) {
        report_stream(p, token.span);
        return ETCH_TOKEN_PANIC;
    }
    etch_token_kind meant = meant_by(word, lines);
    etch_diag *diag = etch_parse_complain(p, ETCH_E_UNKNOWN_STATEMENT, token.span,
                                          "no statement %s starts with '%s'", where, word);
    if (meant == ETCH_TOKEN_NONE) {
        enter_panic(p);
        if (diag) {
            etch_help(diag, "statements here start with %s", headwords(p, lines));
        }
        return ETCH_TOKEN_PANIC;
    }
    if (diag) {
        etch_help(diag, "did you mean '%s'?", etch_token_text(meant));
    }
    return p->panic ? ETCH_TOKEN_PANIC : meant;
}
