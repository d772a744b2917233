/* Lines of plans: `parallel NAME { ... }` and `for SELECTORS { ... }`. */
#include "lang/syntax/parser_int.h"

#include <string.h>

/* A selector, or (a, b.c) */
static etch_ast_names parse_selectors(etch_parser *p)
{
    etch_ast_names names = {0};
    const char *what = "a tag, module or loop";
    if (!etch_parse_at(p, ETCH_TOKEN_OPEN_ROUND)) {
        ETCH_PUSH(p->arena, &names, etch_parse_path(p, what));
        return names;
    }
    etch_bracket bracket = etch_parse_open(p, "list of selectors");
    do {
        ETCH_PUSH(p->arena, &names, etch_parse_path(p, what));
    } while (etch_parse_comma(p));
    etch_parse_close(p, &bracket);
    return names;
}

static void parse_mesh_line(etch_parser *p, etch_ast_line *line)
{
    line->kind = ETCH_AST_MESH;
    if (!etch_parse_at(p, ETCH_TOKEN_OPEN_SQUARE)) {
        etch_parse_expected(p, "'[' and the axes of the mesh, outermost first");
        return;
    }
    etch_bracket bracket = etch_parse_open(p, "mesh");
    do {
        etch_ast_def axis = {.span = p->token.span};
        axis.name = etch_parse_name(p, "a mesh axis");
        if (etch_parse_accept(p, ETCH_TOKEN_ASSIGN)) {
            axis.value = etch_parse_expr(p);
        }
        axis.span = etch_parse_since(p, axis.span);
        ETCH_PUSH(p->arena, &line->defs, axis);
    } while (etch_parse_comma(p));
    etch_parse_close(p, &bracket);
}

/* NAME sign MESH */
static etch_ast_place parse_place(etch_parser *p, etch_token_kind sign, const char *what)
{
    etch_ast_place place = {.span = p->token.span};
    place.name = etch_parse_name(p, what);
    etch_parse_expect(p, sign, etch_text(p->arena, "'%s' and mesh axes", etch_token_text(sign)));
    place.mesh = etch_parse_mesh(p);
    place.span = etch_parse_since(p, place.span);
    return place;
}

static void parse_places(etch_parser *p, etch_ast_line *line, etch_ast_line_kind kind, etch_token_kind sign,
                         const char *what)
{
    line->kind = kind;
    do {
        ETCH_PUSH(p->arena, &line->places, parse_place(p, sign, what));
    } while (etch_parse_comma(p));
}

static void parse_pin(etch_parser *p, etch_ast_line *line)
{
    line->kind = ETCH_AST_PIN;
    ETCH_PUSH(p->arena, &line->what, etch_parse_path(p, "a tag or tensor to pin"));
    if (!etch_parse_at(p, ETCH_TOKEN_OPEN_SQUARE)) {
        etch_parse_expected(p, "'[' and the dims with their axes");
        return;
    }
    line->shape = etch_parse_shape(p);
}

/* @ MESH, key = value, ... `example`: of such a line. */
static void parse_target(etch_parser *p, etch_ast_line *line, const char *example)
{
    etch_parse_expect(p, ETCH_TOKEN_AT, etch_text(p->arena, "'@' and mesh axes as in '%s'", example));
    line->mesh = etch_parse_mesh(p);
    if (etch_parse_comma(p)) {
        etch_parse_options(p, &line->defs);
    }
}

static void parse_zero(etch_parser *p, etch_ast_line *line)
{
    line->kind = ETCH_AST_ZERO;
    etch_token level = p->token;
    if (etch_parse_expect(p, ETCH_TOKEN_INTEGER, "a ZeRO level, 1, 2 or 3, as in 'zero 3 @ dp'"))
        line->level = (etch_ast_name){etch_parse_text(p, &level), level.span};
    parse_target(p, line, "zero 3 @ dp");
}

/* Is it `offload EXPR ..`? The word is a name everywhere else: `offload = EXPR` is an option. */
static bool is_at_offload(etch_parser *p)
{
    return etch_parse_at(p, ETCH_TOKEN_NAME) && strcmp(etch_parse_text(p, &p->token), "offload") == 0 &&
           etch_lexer_peek(&p->lexer) != ETCH_TOKEN_ASSIGN;
}

/* offload EXPR @ host, key = value, ... */
static void parse_offload(etch_parser *p, etch_ast_line *line)
{
    etch_ast_def what = {.name = {etch_parse_text(p, &p->token), p->token.span}};
    line->kind = ETCH_AST_OFFLOAD;
    etch_parse_advance(p);
    what.span = p->token.span;
    what.value = etch_parse_expr(p);
    what.span = etch_parse_since(p, what.span);
    ETCH_PUSH(p->arena, &line->defs, what);
    parse_target(p, line, "offload optimizer @ host");
}

static void parse_scope(etch_parser *p, etch_ast_line *line)
{
    line->kind = ETCH_AST_SCOPE;
    line->what = parse_selectors(p);
    const char *name = line->what.count ? line->what.at[0].text : NULL;
    etch_parse_plan(p, "scope", name, &line->lines);
}

static void parse_plan_line(etch_parser *p, void *into)
{
    etch_ast_lines *lines = into;
    etch_ast_line line = {.span = p->token.span, .kind = ETCH_AST_OPTIONS};
    const bool offloads = is_at_offload(p);
    const etch_token_kind keyword =
        offloads ? ETCH_TOKEN_NONE : etch_parse_keyword(p, ETCH_LINE_PLAN, "in a 'parallel' block");
    if (keyword != ETCH_TOKEN_NONE) {
        etch_parse_advance(p);
    }
    switch (keyword) {
    case ETCH_TOKEN_MESH:
        parse_mesh_line(p, &line);
        break;
    case ETCH_TOKEN_AXIS:
        parse_places(p, &line, ETCH_AST_AXIS, ETCH_TOKEN_ASSIGN, "a name for a product of mesh axes");
        break;
    case ETCH_TOKEN_SHARD:
        parse_places(p, &line, ETCH_AST_SHARD, ETCH_TOKEN_AT, "a dim to shard");
        break;
    case ETCH_TOKEN_PIN:
        parse_pin(p, &line);
        break;
    case ETCH_TOKEN_PAD:
        line.kind = ETCH_AST_PAD;
        etch_parse_bindings(p, &line.defs);
        break;
    case ETCH_TOKEN_DTYPE:
        line.kind = ETCH_AST_DTYPES;
        etch_parse_bindings(p, &line.defs);
        break;
    case ETCH_TOKEN_ZERO:
        parse_zero(p, &line);
        break;
    case ETCH_TOKEN_STAGE:
        line.kind = ETCH_AST_STAGE;
        line.what = parse_selectors(p);
        parse_target(p, &line, "stage (embed, layer, head) @ pp");
        break;
    case ETCH_TOKEN_FOR:
        parse_scope(p, &line);
        break;
    default:
        if (offloads)
            parse_offload(p, &line);
        else
            etch_parse_options(p, &line.defs);
        break;
    }
    line.span = etch_parse_since(p, line.span);
    if (!p->panic) {
        ETCH_PUSH(p->arena, lines, line);
    }
}

void etch_parse_plan(etch_parser *p, const char *what, const char *name, etch_ast_lines *into)
{
    etch_open_block block = {.what = what, .name = name, .lines = ETCH_LINE_PLAN};
    etch_parse_block(p, block, parse_plan_line, into);
}
