/* Names, tensors and definitions; statements of modules and models. */
#include <string.h>

#include "lang/syntax/parser_int.h"

/* ---- names and tensors ------------------------------------------------------------------------------- */

etch_ast_mesh etch_parse_mesh(etch_parser *p)
{
    etch_ast_mesh mesh = {.span = p->token.span};
    if (etch_parse_at(p, ETCH_TOKEN_OPEN_ROUND)) {
        etch_bracket bracket = etch_parse_open(p, "list of mesh axes");
        if (!etch_parse_at(p, ETCH_TOKEN_CLOSE_ROUND)) {
            mesh.axes = etch_parse_names(p, "a mesh axis");
        }
        etch_parse_close(p, &bracket);
    } else {
        ETCH_PUSH(p->arena, &mesh.axes, etch_parse_name(p, "a mesh axis or a list of them in ( )"));
    }
    mesh.span = etch_parse_since(p, mesh.span);
    return mesh;
}

static etch_ast_axis parse_axis(etch_parser *p)
{
    etch_ast_axis axis = {.span = p->token.span};
    if (etch_parse_accept(p, ETCH_TOKEN_DOTS)) {
        axis.rest = true;
        return axis;
    }
    axis.size = etch_parse_expr(p);
    if (etch_parse_accept(p, ETCH_TOKEN_AT)) {
        axis.placed = true;
        axis.mesh = etch_parse_mesh(p);
    }
    axis.span = etch_parse_since(p, axis.span);
    return axis;
}

etch_ast_axes etch_parse_shape(etch_parser *p)
{
    etch_ast_axes axes = {0};
    etch_bracket bracket = etch_parse_open(p, "list of dims");
    p->shape = &bracket;
    if (!etch_parse_at(p, ETCH_TOKEN_CLOSE_SQUARE)) {
        do {
            ETCH_PUSH(p->arena, &axes, parse_axis(p));
        } while (etch_parse_comma(p));
    }
    p->shape = NULL;
    if (etch_parse_at(p, ETCH_TOKEN_ARROW)) {
        etch_diag *diag =
            etch_parse_fail(p, ETCH_E_UNEXPECTED, p->token.span, "dims are renamed on the right of '=' only");
        if (diag) {
            etch_help(diag, "write y = x[A->B]");
        }
    }
    etch_parse_close(p, &bracket);
    return axes;
}

etch_ast_tensor etch_parse_tensor(etch_parser *p, const char *what)
{
    etch_ast_tensor tensor = {.span = p->token.span};
    tensor.name = etch_parse_name(p, what);
    if (etch_parse_at(p, ETCH_TOKEN_OPEN_SQUARE)) {
        tensor.shaped = true;
        tensor.axes = etch_parse_shape(p);
        if (etch_parse_accept(p, ETCH_TOKEN_COLON)) {
            tensor.type = etch_parse_name(p, "an element type, such as i32,");
        }
    } else if (etch_parse_at(p, ETCH_TOKEN_COLON)) {
        etch_diag *diag =
            etch_parse_fail(p, ETCH_E_UNEXPECTED, p->token.span, "a type stands after the dims");
        if (diag) {
            etch_help(diag, "write %s[...]: type", tensor.name.text ? tensor.name.text : "x");
        }
    }
    tensor.span = etch_parse_since(p, tensor.span);
    return tensor;
}

void etch_parse_tensors(etch_parser *p, const char *what, etch_ast_tensors *into)
{
    do {
        ETCH_PUSH(p->arena, into, etch_parse_tensor(p, what));
    } while (etch_parse_comma(p));
}

/* ---- definitions ------------------------------------------------------------------------------------- */

/* '=' of a definition; '==' is reported and taken for it. */
static bool accept_assign(etch_parser *p)
{
    if (etch_parse_at(p, ETCH_TOKEN_EQUAL)) {
        etch_diag *diag = etch_parse_complain(p, ETCH_E_EQUAL_IN_BINDING, p->token.span,
                                              "'==' compares; here a name gets a value");
        if (diag) {
            etch_help(diag, "write '='");
        }
        return etch_parse_accept(p, ETCH_TOKEN_EQUAL);
    }
    return etch_parse_accept(p, ETCH_TOKEN_ASSIGN);
}

static etch_ast_def parse_param(etch_parser *p)
{
    etch_ast_def def = {.span = p->token.span};
    def.name = etch_parse_name(p, "the name of a param");
    if (etch_parse_accept(p, ETCH_TOKEN_AT_LEAST)) {
        def.least = etch_parse_expr(p);
    } else if (etch_parse_at(p, ETCH_TOKEN_NAME)) {
        def.type = etch_parse_name(p, "a type");
    }
    if (accept_assign(p)) {
        def.value = etch_parse_expr(p);
    }
    def.span = etch_parse_since(p, def.span);
    return def;
}

static etch_ast_def parse_dim(etch_parser *p)
{
    etch_ast_def def = {.span = p->token.span};
    def.name = etch_parse_name(p, "the name of a dim");
    if (etch_parse_accept(p, ETCH_TOKEN_TILDE)) {
        def.average = true;
    } else if (!accept_assign(p)) {
        etch_diag *diag = etch_parse_expected(p, "'=' and the size of the dim");
        if (diag) {
            etch_help(diag, "a dim is an exact size 'B = batch' or one on average 'C ~ B*S/E'");
        }
    }
    def.value = etch_parse_expr(p);
    def.span = etch_parse_since(p, def.span);
    return def;
}

static etch_ast_def parse_binding(etch_parser *p, bool any_word)
{
    etch_ast_def def = {.span = p->token.span};
    if (any_word && etch_token_is_keyword(p->token.kind) && etch_lexer_peek(&p->lexer) == ETCH_TOKEN_ASSIGN) {
        def.name = (etch_ast_name){etch_parse_text(p, &p->token), p->token.span};
        etch_parse_advance(p);
    } else {
        def.name = etch_parse_name(p, "a name and its value");
    }
    if (!accept_assign(p)) {
        etch_parse_expected(p, etch_text(p->arena, "'=' after '%s'", def.name.text ? def.name.text : "it"));
    }
    def.value = any_word ? etch_parse_option_value(p) : etch_parse_expr(p);
    def.span = etch_parse_since(p, def.span);
    return def;
}

void etch_parse_params(etch_parser *p, etch_ast_defs *into)
{
    do {
        ETCH_PUSH(p->arena, into, parse_param(p));
    } while (etch_parse_comma(p));
}

void etch_parse_dims(etch_parser *p, etch_ast_defs *into)
{
    do {
        ETCH_PUSH(p->arena, into, parse_dim(p));
    } while (etch_parse_comma(p));
}

void etch_parse_bindings(etch_parser *p, etch_ast_defs *into)
{
    do {
        ETCH_PUSH(p->arena, into, parse_binding(p, false));
    } while (etch_parse_comma(p));
}

void etch_parse_options(etch_parser *p, etch_ast_defs *into)
{
    do {
        ETCH_PUSH(p->arena, into, parse_binding(p, true));
    } while (etch_parse_comma(p));
}

/* ---- statements -------------------------------------------------------------------------------------- */

static const char *const where_body = "in a module or model";

static etch_ast_names parse_tags(etch_parser *p)
{
    etch_ast_names none = {0};
    return etch_parse_accept(p, ETCH_TOKEN_TAG) ? etch_parse_names(p, "a tag") : none;
}

static void missing_assign(etch_parser *p, const etch_ast_stmt *stmt)
{
    bool call = etch_parse_at(p, ETCH_TOKEN_OPEN_ROUND);
    bool sign = etch_parse_at(p, ETCH_TOKEN_PLUS) || etch_parse_at(p, ETCH_TOKEN_MINUS) ||
                etch_parse_at(p, ETCH_TOKEN_TIMES) || etch_parse_at(p, ETCH_TOKEN_DIVIDE);
    const etch_ast_name *name = &stmt->tensors.at[0].name;
    const char *text = etch_token_text(p->token.kind);
    etch_diag *diag = etch_parse_expected(p, "'=' and a value");
    if (diag && sign && name->text && !stmt->tuple)
        etch_help(diag, "write %s = %s %s ...", name->text, name->text, text);
    if (diag && call && name->text && !stmt->tuple) {
        etch_help(diag, "a call gives its result a name: y = %s(...)", name->text);
    }
}

static void parse_let(etch_parser *p, etch_ast_stmt *stmt)
{
    stmt->kind = ETCH_AST_LET;
    if (etch_parse_at(p, ETCH_TOKEN_OPEN_ROUND)) {
        etch_bracket bracket = etch_parse_open(p, "list of results");
        stmt->tuple = true;
        etch_parse_tensors(p, "a result", &stmt->tensors);
        etch_parse_close(p, &bracket);
    } else {
        ETCH_PUSH(p->arena, &stmt->tensors, etch_parse_tensor(p, "a statement"));
    }
    if (!accept_assign(p)) {
        missing_assign(p, stmt);
    }
    stmt->value = etch_parse_expr(p);
    stmt->tags = parse_tags(p);
}

/* Is the line `instance NAME ..`? The word is a name everywhere else. */
static bool is_at_instance(etch_parser *p)
{
    return etch_parse_at(p, ETCH_TOKEN_NAME) && strcmp(etch_parse_text(p, &p->token), "instance") == 0 &&
           etch_lexer_peek(&p->lexer) == ETCH_TOKEN_NAME;
}

/* The name of a module, or that with parameters in ( ). */
static bool is_of_module(const etch_ast_expr *value)
{
    return value->kind == ETCH_AST_NAME || value->kind == ETCH_AST_CALL;
}

static void parse_instance(etch_parser *p, etch_ast_stmt *stmt)
{
    etch_ast_def *def = &stmt->instance;
    stmt->kind = ETCH_AST_INSTANCE;
    etch_parse_advance(p);
    def->span = p->token.span;
    def->name = etch_parse_name(p, "the name of an instance");
    if (!accept_assign(p))
        etch_parse_expected(p, "'=' and a module");
    if (!etch_parse_at(p, ETCH_TOKEN_NAME))
        etch_parse_expected(p, "a module");
    const etch_span start = p->token.span;
    def->value = etch_parse_expr(p);
    def->span = etch_parse_since(p, def->span);
    if (is_of_module(def->value) || p->panic)
        return;
    etch_diag *diag = etch_parse_fail(p, ETCH_E_UNEXPECTED, etch_parse_since(p, start),
                                      "an instance is of a module, with its parameters in ( )");
    if (diag && def->name.text)
        etch_help(diag, "write instance %s = MODULE, or MODULE(parameter = value), and call %s(x)",
                  def->name.text, def->name.text);
}

static void parse_repeat(etch_parser *p, etch_ast_stmt *stmt)
{
    stmt->kind = ETCH_AST_REPEAT;
    stmt->count = etch_parse_expr(p);
    if (etch_parse_accept(p, ETCH_TOKEN_AS)) {
        stmt->index = etch_parse_name(p, "the name of the loop");
    }
    etch_parse_body(p, "loop", stmt->index.text, &stmt->body);
}

/* The current token is the first of the test. */
static void parse_if(etch_parser *p, etch_span start, etch_ast_stmt *stmt)
{
    stmt->kind = ETCH_AST_IF;
    bool more = true;
    while (more) {
        etch_ast_arm arm = {.test = etch_parse_predicate(p)};
        etch_parse_body(p, "branch", NULL, &arm.body);
        arm.span = etch_parse_since(p, start);
        ETCH_PUSH(p->arena, &stmt->arms, arm);
        start = p->token.span;
        if (!etch_parse_accept(p, ETCH_TOKEN_ELSE)) {
            return;
        }
        more = etch_parse_accept(p, ETCH_TOKEN_IF);
    }
    etch_ast_arm last = {0};
    etch_parse_body(p, "branch", NULL, &last.body);
    last.span = etch_parse_since(p, start);
    ETCH_PUSH(p->arena, &stmt->arms, last);
}

/* An 'else' that starts a line: reported, read, and left out. */
static void parse_lone_else(etch_parser *p)
{
    etch_diag *diag =
        etch_parse_complain(p, ETCH_E_LONE_ELSE, p->token.span, "this 'else' follows no branch");
    if (diag) {
        etch_help(diag, "write it on the line of the '}' before it: } else {");
    }
    etch_ast_stmt stmt = {0};
    etch_span start = p->token.span;
    etch_parse_advance(p);
    if (etch_parse_accept(p, ETCH_TOKEN_IF)) {
        parse_if(p, start, &stmt);
    } else {
        etch_parse_body(p, "branch", NULL, &stmt.body);
    }
}

/* Does the line start with an operator that should have ended the line before? */
static bool misplaced_operator(etch_parser *p)
{
    switch (p->token.kind) {
    case ETCH_TOKEN_PLUS:
    case ETCH_TOKEN_MINUS:
    case ETCH_TOKEN_TIMES:
    case ETCH_TOKEN_DIVIDE: {
        etch_diag *diag = etch_parse_fail(p, ETCH_E_UNEXPECTED, p->token.span,
                                          "a line cannot start with '%s'", etch_token_text(p->token.kind));
        if (diag) {
            etch_help(diag, "to go on with the line before, end that line with the operator");
        }
        return true;
    }
    default:
        return false;
    }
}

static void end_statement(etch_parser *p, etch_ast_stmt *stmt, etch_ast_body *body)
{
    stmt->span = etch_parse_since(p, stmt->span);
    if (!p->panic) {
        ETCH_PUSH(p->arena, body, *stmt);
    }
}

static void parse_statement(etch_parser *p, void *into)
{
    etch_ast_body *body = into;
    etch_ast_stmt stmt = {.span = p->token.span};
    if (etch_parse_at(p, ETCH_TOKEN_ELSE)) {
        parse_lone_else(p);
        return;
    }
    if (misplaced_operator(p)) {
        return;
    }
    if (is_at_instance(p)) {
        parse_instance(p, &stmt);
        end_statement(p, &stmt, body);
        return;
    }
    etch_token_kind keyword = etch_parse_keyword(p, ETCH_LINE_BODY, where_body);
    if (keyword != ETCH_TOKEN_NONE) {
        etch_parse_advance(p);
    }
    switch (keyword) {
    case ETCH_TOKEN_WEIGHT:
        stmt.kind = ETCH_AST_WEIGHT;
        etch_parse_tensors(p, "the name of a weight", &stmt.tensors);
        stmt.tags = parse_tags(p);
        break;
    case ETCH_TOKEN_DIM:
        stmt.kind = ETCH_AST_DIM;
        etch_parse_dims(p, &stmt.dims);
        break;
    case ETCH_TOKEN_REPEAT:
        parse_repeat(p, &stmt);
        break;
    case ETCH_TOKEN_IF:
        parse_if(p, stmt.span, &stmt);
        break;
    default:
        parse_let(p, &stmt);
        break;
    }
    end_statement(p, &stmt, body);
}

void etch_parse_body(etch_parser *p, const char *what, const char *name, etch_ast_body *into)
{
    etch_open_block block = {.what = what, .name = name, .lines = ETCH_LINE_BODY};
    etch_parse_block(p, block, parse_statement, into);
}
