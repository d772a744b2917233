/* Expressions and predicates. Binding power, weakest first: + -, then * / // %, then unary -, then ^ (to
 * the right). */
#include "lang/syntax/parser_int.h"

#include <string.h>

typedef struct etch_power {
    /* left 0: not an operator */
    uint8_t left, right;
    char op;
} etch_power;

enum { POWER_NEGATE = 30 };

static etch_power power_of(etch_token_kind kind)
{
    switch (kind) {
    case ETCH_TOKEN_PLUS:
        return (etch_power){10, 10, '+'};
    case ETCH_TOKEN_MINUS:
        return (etch_power){10, 10, '-'};
    case ETCH_TOKEN_TIMES:
        return (etch_power){20, 20, '*'};
    case ETCH_TOKEN_DIVIDE:
        return (etch_power){20, 20, '/'};
    case ETCH_TOKEN_FLOOR_DIVIDE:
        return (etch_power){20, 20, 'f'};
    case ETCH_TOKEN_MODULO:
        return (etch_power){20, 20, '%'};
    case ETCH_TOKEN_POWER:
        return (etch_power){40, 39, '^'};
    default:
        return (etch_power){0};
    }
}

static char comparison_of(etch_token_kind kind)
{
    switch (kind) {
    case ETCH_TOKEN_EQUAL:
        return '=';
    case ETCH_TOKEN_UNEQUAL:
        return 'n';
    case ETCH_TOKEN_AT_MOST:
        return 'l';
    case ETCH_TOKEN_AT_LEAST:
        return 'g';
    case ETCH_TOKEN_LESS:
        return '<';
    case ETCH_TOKEN_GREATER:
        return '>';
    case ETCH_TOKEN_BAR:
        return '|';
    default:
        return 0;
    }
}

static etch_ast_expr *climb(etch_parser *p, uint8_t least);

/* ---- nodes ------------------------------------------------------------------------------------------- */

static etch_ast_expr *new_expr(etch_parser *p, etch_ast_expr_kind kind, etch_span span)
{
    etch_ast_expr *expr = ETCH_NEW(p->arena, etch_ast_expr);
    expr->kind = kind;
    expr->span = span;
    expr->height = 1;
    return expr;
}

/* `parent` stands above `child`. Chains to the left grow without nesting, so height is checked here as
 * well. */
static void raise_above(etch_parser *p, etch_ast_expr *parent, const etch_ast_expr *child)
{
    if (parent->height > child->height) {
        return;
    }
    if (child->height < ETCH_AST_DEPTH) {
        parent->height = (uint16_t)(child->height + 1);
        return;
    }
    etch_diag *diag = etch_parse_fail(p, ETCH_E_TOO_DEEP, p->token.span,
                                      "expression of more than %d operations in a row", ETCH_AST_DEPTH);
    if (diag) {
        etch_help(diag, "give parts of it names of their own; the rest of this file is not read");
    }
    p->stopped = true;
}

static etch_ast_expr *new_operation(etch_parser *p, etch_ast_expr_kind kind, char op, etch_span at,
                                    etch_ast_expr *left, etch_ast_expr *right)
{
    etch_ast_expr *expr = new_expr(p, kind, etch_parse_since(p, left->span));
    expr->op = op;
    expr->op_span = at;
    expr->left = left;
    expr->right = right;
    raise_above(p, expr, left);
    raise_above(p, expr, right);
    return expr;
}

/* ---- primaries --------------------------------------------------------------------------------------- */

static etch_ast_expr *parse_literal(etch_parser *p)
{
    etch_token token = p->token;
    etch_parse_advance(p);
    etch_ast_expr *expr = new_expr(p, ETCH_AST_INTEGER, token.span);
    switch (token.kind) {
    case ETCH_TOKEN_TRUE:
    case ETCH_TOKEN_FALSE:
        expr->kind = ETCH_AST_TRUTH;
        expr->truth = token.kind == ETCH_TOKEN_TRUE;
        return expr;
    case ETCH_TOKEN_STRING:
        expr->kind = ETCH_AST_STRING;
        expr->name.span = token.span;
        expr->name.text = etch_name(p->names, token.text + 1, token.span.end - token.span.start - 2);
        return expr;
    case ETCH_TOKEN_REAL:
        expr->kind = ETCH_AST_REAL;
        break;
    default:
        break;
    }
    expr->name = (etch_ast_name){etch_parse_text(p, &token), token.span};
    return expr;
}

static etch_ast_arg parse_arg(etch_parser *p)
{
    etch_ast_arg arg = {0};
    bool word = p->token.kind == ETCH_TOKEN_NAME || etch_token_is_keyword(p->token.kind);
    if (word && etch_lexer_peek(&p->lexer) == ETCH_TOKEN_ASSIGN) {
        arg.name = (etch_ast_name){etch_parse_text(p, &p->token), p->token.span};
        etch_parse_advance(p);
        etch_parse_advance(p);
    }
    arg.value = etch_parse_expr(p);
    return arg;
}

static void parse_args(etch_parser *p, etch_ast_expr *call)
{
    etch_bracket bracket = etch_parse_open(p, "argument list");
    if (!etch_parse_at(p, ETCH_TOKEN_CLOSE_ROUND)) {
        do {
            etch_ast_arg arg = parse_arg(p);
            ETCH_PUSH(p->arena, &call->args, arg);
            raise_above(p, call, arg.value);
        } while (etch_parse_comma(p));
    }
    etch_parse_close(p, &bracket);
}

/* x[0], as other languages have it. */
static void report_position(etch_parser *p)
{
    etch_diag *diag = etch_parse_expected(p, "a dim to rename");
    if (diag) {
        etch_help(diag,
                  "[ ] renames dims, x[S->S'], and takes no element: slice(x, over = S, to = T) gives the "
                  "first ones");
    }
}

/* A, or (A, B) */
static etch_ast_names parse_group(etch_parser *p)
{
    etch_ast_names names = {0};
    if (etch_parse_at(p, ETCH_TOKEN_OPEN_ROUND)) {
        etch_bracket bracket = etch_parse_open(p, "list of dims");
        names = etch_parse_names(p, "a dim");
        etch_parse_close(p, &bracket);
    } else if (etch_parse_at(p, ETCH_TOKEN_INTEGER) || etch_parse_at(p, ETCH_TOKEN_MINUS) ||
               etch_parse_at(p, ETCH_TOKEN_COLON)) {
        report_position(p);
    } else {
        ETCH_PUSH(p->arena, &names, etch_parse_name(p, "a dim to rename"));
    }
    return names;
}

/* NAME[ opened something else than a renaming. */
static void report_no_renaming(etch_parser *p, const etch_ast_expr *expr)
{
    if (p->shape) { /* x[A, y[B]: the list before was to be closed */
        etch_diag *diag = etch_parse_fail(p, ETCH_E_OPEN_BRACKET, expr->span,
                                          "expected ']' to close the list of dims, found a tensor");
        if (diag) {
            etch_note(diag, p->shape->span, "list of dims opened here");
        }
        return;
    }
    etch_diag *diag = etch_parse_expected(p, "'->'");
    if (diag) {
        etch_help(diag,
                  "after a tensor in an expression, [ ] renames dims: x[S->S']; its dims are known already");
    }
}

static void parse_renames(etch_parser *p, etch_ast_expr *expr)
{
    etch_bracket bracket = etch_parse_open(p, "renaming");
    do {
        etch_ast_rename rename = {.span = p->token.span};
        rename.from = parse_group(p);
        if (!etch_parse_accept(p, ETCH_TOKEN_ARROW)) {
            report_no_renaming(p, expr);
        }
        rename.to = parse_group(p);
        rename.span = etch_parse_since(p, rename.span);
        ETCH_PUSH(p->arena, &expr->renames, rename);
    } while (etch_parse_comma(p));
    etch_parse_close(p, &bracket);
}

/* The word of plans is a function as well. */
static bool is_pad_call(etch_parser *p)
{
    return etch_parse_at(p, ETCH_TOKEN_PAD) && etch_lexer_peek(&p->lexer) == ETCH_TOKEN_OPEN_ROUND;
}

/* f(x)[S->S'] */
static etch_ast_expr *parse_renamed_call(etch_parser *p, etch_ast_expr *call)
{
    etch_ast_expr *expr = new_expr(p, ETCH_AST_RENAME, call->span);
    expr->name = call->name;
    expr->called = call;
    raise_above(p, expr, call);
    parse_renames(p, expr);
    expr->span = etch_parse_since(p, call->span);
    return expr;
}

/* A name, a call, or a tensor with renamed dims. */
static etch_ast_expr *parse_named(etch_parser *p)
{
    etch_span start = p->token.span;
    etch_ast_expr *expr = new_expr(p, ETCH_AST_NAME, start);
    if (etch_parse_at(p, ETCH_TOKEN_MODEL) || is_pad_call(p)) {
        expr->name = (etch_ast_name){etch_parse_text(p, &p->token), start};
        etch_parse_advance(p);
    } else {
        expr->name = etch_parse_path(p, "a value");
    }
    if (etch_parse_at(p, ETCH_TOKEN_OPEN_ROUND)) {
        expr->kind = ETCH_AST_CALL;
        parse_args(p, expr);
        expr->span = etch_parse_since(p, start);
        return etch_parse_at(p, ETCH_TOKEN_OPEN_SQUARE) ? parse_renamed_call(p, expr) : expr;
    }
    if (etch_parse_at(p, ETCH_TOKEN_OPEN_SQUARE)) {
        expr->kind = ETCH_AST_RENAME;
        parse_renames(p, expr);
    }
    expr->span = etch_parse_since(p, start);
    return expr;
}

static void parse_values(etch_parser *p, etch_ast_expr *into)
{
    do {
        etch_ast_expr *value = etch_parse_expr(p);
        ETCH_PUSH(p->arena, &into->items, value);
        raise_above(p, into, value);
    } while (etch_parse_comma(p));
}

/* ( ) around one value only groups; the span then includes the brackets. */
static etch_ast_expr *parse_round(etch_parser *p)
{
    etch_span start = p->token.span;
    etch_bracket bracket = etch_parse_open(p, "parenthesis");
    etch_ast_expr *tuple = new_expr(p, ETCH_AST_TUPLE, start);
    parse_values(p, tuple);
    etch_parse_close(p, &bracket);
    etch_ast_expr *expr = tuple->items.count == 1 ? tuple->items.at[0] : tuple;
    expr->span = etch_parse_since(p, start);
    return expr;
}

static etch_ast_expr *parse_list(etch_parser *p)
{
    etch_span start = p->token.span;
    etch_bracket bracket = etch_parse_open(p, "list");
    etch_ast_expr *list = new_expr(p, ETCH_AST_LIST, start);
    parse_values(p, list);
    etch_parse_close(p, &bracket);
    list->span = etch_parse_since(p, start);
    return list;
}

static etch_ast_expr *parse_negation(etch_parser *p)
{
    etch_span at = p->token.span;
    etch_parse_advance(p);
    etch_ast_expr *operand = climb(p, POWER_NEGATE);
    etch_ast_expr *expr = new_expr(p, ETCH_AST_NEGATE, etch_parse_since(p, at));
    expr->op = '-';
    expr->op_span = at;
    expr->left = operand;
    raise_above(p, expr, operand);
    return expr;
}

static void expected_value(etch_parser *p)
{
    const char *what = "a value";
    switch (p->previous.kind) {
    case ETCH_TOKEN_NEWLINE:
    case ETCH_TOKEN_NONE:
        break;
    default:
        if (p->previous.span.end > p->previous.span.start) {
            what = etch_text(p->arena, "a value after %s", etch_parse_describe(p, &p->previous));
        }
    }
    etch_diag *diag = etch_parse_expected(p, what);
    if (!diag) {
        return;
    }
    switch (p->held.kind) {
    case ETCH_TOKEN_NEWLINE:
        etch_help(diag, "a line goes on when it ends with one of , + - * / ^ = or inside ( ) and [ ]");
        break;
    case ETCH_TOKEN_DOT:
        etch_help(diag, "decimals start with a digit: 0.5");
        break;
    case ETCH_TOKEN_TIMES:
        etch_help(diag, "powers of numbers are written a^2, the square of a tensor square(x)");
        break;
    default:
        break;
    }
}

static etch_ast_expr *parse_primary(etch_parser *p)
{
    switch (p->token.kind) {
    case ETCH_TOKEN_INTEGER:
    case ETCH_TOKEN_REAL:
    case ETCH_TOKEN_STRING:
    case ETCH_TOKEN_TRUE:
    case ETCH_TOKEN_FALSE:
        return parse_literal(p);
    case ETCH_TOKEN_OPEN_ROUND:
        return parse_round(p);
    case ETCH_TOKEN_OPEN_SQUARE:
        return parse_list(p);
    case ETCH_TOKEN_MINUS:
        return parse_negation(p);
    case ETCH_TOKEN_NAME:
    case ETCH_TOKEN_MODEL:
        return parse_named(p);
    default:
        if (is_pad_call(p) || (etch_token_is_keyword(p->token.kind) && !p->token.first_on_line)) {
            return parse_named(p);
        }
        expected_value(p);
        return new_expr(p, ETCH_AST_BROKEN, p->previous.span);
    }
}

/* ---- operators --------------------------------------------------------------------------------------- */

static etch_ast_expr *climb(etch_parser *p, uint8_t least)
{
    if (!etch_parse_enter(p)) {
        etch_parse_leave(p);
        return new_expr(p, ETCH_AST_BROKEN, p->previous.span);
    }
    etch_ast_expr *left = parse_primary(p);
    for (;;) {
        etch_power power = power_of(p->token.kind);
        if (power.left <= least) {
            break;
        }
        etch_span at = p->token.span;
        etch_parse_advance(p);
        etch_ast_expr *right = climb(p, power.right);
        left = new_operation(p, ETCH_AST_BINARY, power.op, at, left, right);
    }
    etch_parse_leave(p);
    return left;
}

etch_ast_expr *etch_parse_expr(etch_parser *p)
{
    return climb(p, 0);
}

etch_ast_expr *etch_parse_option_value(etch_parser *p)
{
    if (!etch_parse_at(p, ETCH_TOKEN_WEIGHT))
        return etch_parse_expr(p);
    etch_ast_expr *word = new_expr(p, ETCH_AST_NAME, p->token.span);
    word->name = (etch_ast_name){etch_parse_text(p, &p->token), p->token.span};
    etch_parse_advance(p);
    return word;
}

/* `in` is a word only before a list. */
static bool is_membership(etch_parser *p)
{
    return etch_parse_at(p, ETCH_TOKEN_NAME) && strcmp(etch_parse_text(p, &p->token), "in") == 0 &&
           etch_lexer_peek(&p->lexer) == ETCH_TOKEN_OPEN_SQUARE;
}

/* `left in [..]` */
static etch_ast_expr *parse_membership(etch_parser *p, etch_ast_expr *left)
{
    const etch_span at = p->token.span;
    etch_parse_advance(p);
    etch_ast_expr *list = parse_list(p);
    return new_operation(p, ETCH_AST_COMPARE, 'i', at, left, list);
}

etch_ast_expr *etch_parse_predicate(etch_parser *p)
{
    etch_ast_expr *left = etch_parse_expr(p);
    if (is_membership(p))
        return parse_membership(p, left);
    char op = comparison_of(p->token.kind);
    if (etch_parse_at(p, ETCH_TOKEN_ASSIGN)) {
        etch_diag *diag = etch_parse_complain(p, ETCH_E_ASSIGN_IN_PREDICATE, p->token.span,
                                              "'=' binds a name; this is a comparison");
        if (diag) {
            etch_help(diag, "write '=='");
        }
        op = '=';
    }
    if (!op || p->panic) {
        return left;
    }
    etch_span at = p->token.span;
    etch_parse_advance(p);
    etch_ast_expr *right = etch_parse_expr(p);
    etch_ast_expr *expr = new_operation(p, ETCH_AST_COMPARE, op, at, left, right);
    if (comparison_of(p->token.kind)) {
        etch_diag *diag =
            etch_parse_fail(p, ETCH_E_CHAINED_COMPARISON, p->token.span, "a predicate has one comparison");
        if (diag) {
            etch_note(diag, at, "the first is here");
            etch_help(diag, "write two predicates: a <= b, b <= c");
        }
    }
    return expr;
}

void etch_parse_predicates(etch_parser *p, etch_ast_exprs *into)
{
    do {
        ETCH_PUSH(p->arena, into, etch_parse_predicate(p));
    } while (etch_parse_comma(p));
}
