/* Lines of machines: `device NAME { ... }` and `cluster NAME { ... }`. */
#include "lang/syntax/parser_int.h"

etch_ast_name etch_parse_unit(etch_parser *p)
{
    if (!etch_parse_at(p, ETCH_TOKEN_NAME))
        return (etch_ast_name){0};
    const etch_ast_name unit = etch_parse_name(p, "a unit");
    if (!etch_parse_accept(p, ETCH_TOKEN_DIVIDE))
        return unit;
    const etch_ast_name each = etch_parse_name(p, "a unit of time");
    if (p->panic)
        return unit;
    return (etch_ast_name){etch_name_of(p->names, etch_text(p->arena, "%s/%s", unit.text, each.text)),
                           etch_parse_since(p, unit.span)};
}

/* A word, which may be a keyword. */
static etch_ast_name parse_word(etch_parser *p)
{
    if (!etch_token_is_keyword(p->token.kind))
        return etch_parse_name(p, "what the number is of");
    const etch_ast_name word = {etch_parse_text(p, &p->token), p->token.span};
    etch_parse_advance(p);
    return word;
}

void etch_parse_numbers(etch_parser *p, etch_ast_defs *into)
{
    do {
        etch_ast_def def = {.span = p->token.span};
        def.name = parse_word(p);
        etch_parse_expect(p, ETCH_TOKEN_ASSIGN, "'=' and a value");
        def.value = etch_parse_option_value(p);
        def.unit = etch_parse_unit(p);
        def.span = etch_parse_since(p, def.span);
        ETCH_PUSH(p->arena, into, def);
    } while (etch_parse_comma(p));
}

static bool at_word(const etch_parser *p)
{
    return etch_parse_at(p, ETCH_TOKEN_NAME) && etch_lexer_peek(&p->lexer) != ETCH_TOKEN_ASSIGN;
}

static void add_line(etch_parser *p, etch_ast_lines *lines, etch_ast_line *line)
{
    line->span = etch_parse_since(p, line->span);
    if (!p->panic)
        ETCH_PUSH(p->arena, lines, *line);
}

/* The words of a line before its numbers or its brace: `level nvlink {`. */
static etch_ast_line start_line(etch_parser *p)
{
    etch_ast_line line = {.span = p->token.span, .kind = ETCH_AST_NUMBERS};
    for (int i = 0; i < 2 && at_word(p); i++)
        ETCH_PUSH(p->arena, &line.what, etch_parse_name(p, "a word"));
    return line;
}

static void parse_part_line(etch_parser *p, void *into)
{
    etch_ast_line line = start_line(p);
    etch_parse_numbers(p, &line.defs);
    add_line(p, into, &line);
}

static void parse_machine_line(etch_parser *p, void *into)
{
    etch_ast_line line = start_line(p);
    if (line.what.count == 2 && etch_parse_at(p, ETCH_TOKEN_OPEN_BRACE)) {
        line.kind = ETCH_AST_PART;
        const etch_open_block block = {.what = line.what.at[0].text, .name = line.what.at[1].text};
        etch_parse_block(p, block, parse_part_line, &line.lines);
    } else {
        etch_parse_numbers(p, &line.defs);
    }
    add_line(p, into, &line);
}

void etch_parse_machine(etch_parser *p, const char *what, const char *name, etch_ast_lines *into)
{
    const etch_open_block block = {.what = what, .name = name};
    etch_parse_block(p, block, parse_machine_line, into);
}
