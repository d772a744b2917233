/* The syntax tree as S-expressions: one line for each item, statement and line of a plan, indented by
 * nesting. */
#include "lang/syntax/syntax.h"

static void dump_body(const etch_ast_body *body, unsigned depth, etch_buf *out);
static void dump_lines(const etch_ast_lines *lines, unsigned depth, etch_buf *out);

static void new_line(etch_buf *out, unsigned depth)
{
    etch_buf_puts(out, "\n");
    for (unsigned i = 0; i < depth; i++) {
        etch_buf_puts(out, "  ");
    }
}

/* ---- expressions ------------------------------------------------------------------------------------- */

static void dump_names(const char *head, const etch_ast_names *names, etch_buf *out)
{
    etch_buf_printf(out, "(%s", head);
    for (uint32_t i = 0; i < names->count; i++) {
        etch_buf_printf(out, "%s%s", *head || i ? " " : "", names->at[i].text);
    }
    etch_buf_puts(out, ")");
}

static const char *operator_text(const etch_ast_expr *expr)
{
    switch (expr->op) {
    case 'f':
        return "//";
    case '=':
        return "==";
    case 'n':
        return "!=";
    case 'l':
        return "<=";
    case 'g':
        return ">=";
    case '<':
        return "<";
    case '>':
        return ">";
    case '|':
        return "|";
    case 'i':
        return "in";
    case '+':
        return "+";
    case '-':
        return "-";
    case '*':
        return "*";
    case '/':
        return "/";
    case '%':
        return "%";
    default:
        return "^";
    }
}

static void dump_call(const etch_ast_expr *expr, etch_buf *out)
{
    etch_buf_printf(out, "(call %s", expr->name.text);
    for (uint32_t i = 0; i < expr->args.count; i++) {
        const etch_ast_arg *arg = &expr->args.at[i];
        etch_buf_puts(out, " ");
        if (arg->name.text) {
            etch_buf_printf(out, "(: %s ", arg->name.text);
        }
        etch_ast_dump_expr(arg->value, out);
        etch_buf_puts(out, arg->name.text ? ")" : "");
    }
    etch_buf_puts(out, ")");
}

static void dump_renames(const etch_ast_expr *expr, etch_buf *out)
{
    etch_buf_puts(out, "(rename ");
    if (expr->called)
        dump_call(expr->called, out);
    else
        etch_buf_puts(out, expr->name.text);
    for (uint32_t i = 0; i < expr->renames.count; i++) {
        const etch_ast_rename *rename = &expr->renames.at[i];
        etch_buf_puts(out, " (");
        dump_names("", &rename->from, out);
        etch_buf_puts(out, " -> ");
        dump_names("", &rename->to, out);
        etch_buf_puts(out, ")");
    }
    etch_buf_puts(out, ")");
}

static void dump_exprs(const char *head, const etch_ast_exprs *exprs, etch_buf *out)
{
    etch_buf_printf(out, "(%s", head);
    for (uint32_t i = 0; i < exprs->count; i++) {
        etch_buf_puts(out, " ");
        etch_ast_dump_expr(exprs->at[i], out);
    }
    etch_buf_puts(out, ")");
}

void etch_ast_dump_expr(const etch_ast_expr *expr, etch_buf *out)
{
    switch (expr->kind) {
    case ETCH_AST_BROKEN:
        etch_buf_puts(out, "(broken)");
        break;
    case ETCH_AST_INTEGER:
    case ETCH_AST_REAL:
    case ETCH_AST_NAME:
        etch_buf_puts(out, expr->name.text);
        break;
    case ETCH_AST_STRING:
        etch_buf_printf(out, "\"%s\"", expr->name.text);
        break;
    case ETCH_AST_TRUTH:
        etch_buf_puts(out, expr->truth ? "true" : "false");
        break;
    case ETCH_AST_CALL:
        dump_call(expr, out);
        break;
    case ETCH_AST_RENAME:
        dump_renames(expr, out);
        break;
    case ETCH_AST_NEGATE:
        etch_buf_puts(out, "(neg ");
        etch_ast_dump_expr(expr->left, out);
        etch_buf_puts(out, ")");
        break;
    case ETCH_AST_BINARY:
    case ETCH_AST_COMPARE:
        etch_buf_printf(out, "(%s ", operator_text(expr));
        etch_ast_dump_expr(expr->left, out);
        etch_buf_puts(out, " ");
        etch_ast_dump_expr(expr->right, out);
        etch_buf_puts(out, ")");
        break;
    case ETCH_AST_TUPLE:
        dump_exprs("tuple", &expr->items, out);
        break;
    case ETCH_AST_LIST:
        dump_exprs("list", &expr->items, out);
        break;
    }
}

/* ---- declarations ------------------------------------------------------------------------------------ */

static void dump_def(const etch_ast_def *def, etch_buf *out)
{
    etch_buf_printf(out, " (%s", def->name.text);
    if (def->type.text) {
        etch_buf_printf(out, " %s", def->type.text);
    }
    if (def->least) {
        etch_buf_puts(out, " >= ");
        etch_ast_dump_expr(def->least, out);
    }
    if (def->value) {
        etch_buf_puts(out, def->average ? " ~ " : " = ");
        etch_ast_dump_expr(def->value, out);
    }
    if (def->unit.text) {
        etch_buf_printf(out, " %s", def->unit.text);
    }
    etch_buf_puts(out, ")");
}

static void dump_defs(const etch_ast_defs *defs, etch_buf *out)
{
    for (uint32_t i = 0; i < defs->count; i++) {
        dump_def(&defs->at[i], out);
    }
}

static void dump_axes(const etch_ast_axes *axes, etch_buf *out)
{
    etch_buf_puts(out, "[");
    for (uint32_t i = 0; i < axes->count; i++) {
        const etch_ast_axis *axis = &axes->at[i];
        etch_buf_puts(out, i ? " " : "");
        if (axis->rest) {
            etch_buf_puts(out, "..");
            continue;
        }
        etch_ast_dump_expr(axis->size, out);
        if (axis->placed) {
            dump_names("@", &axis->mesh.axes, out);
        }
    }
    etch_buf_puts(out, "]");
}

static void dump_tensors(const char *head, const etch_ast_tensors *tensors, etch_buf *out)
{
    etch_buf_printf(out, " (%s", head);
    for (uint32_t i = 0; i < tensors->count; i++) {
        const etch_ast_tensor *tensor = &tensors->at[i];
        etch_buf_printf(out, " (%s", tensor->name.text);
        if (tensor->shaped) {
            etch_buf_puts(out, " ");
            dump_axes(&tensor->axes, out);
        }
        if (tensor->type.text) {
            etch_buf_printf(out, " %s", tensor->type.text);
        }
        etch_buf_puts(out, ")");
    }
    etch_buf_puts(out, ")");
}

static void dump_tags(const etch_ast_names *tags, etch_buf *out)
{
    if (tags->count) {
        etch_buf_puts(out, " ");
        dump_names("tag", tags, out);
    }
}

/* ---- statements -------------------------------------------------------------------------------------- */

static void dump_arms(const etch_ast_arms *arms, unsigned depth, etch_buf *out)
{
    for (uint32_t i = 0; i < arms->count; i++) {
        const etch_ast_arm *arm = &arms->at[i];
        new_line(out, depth);
        if (arm->test) {
            etch_buf_puts(out, "(when ");
            etch_ast_dump_expr(arm->test, out);
        } else {
            etch_buf_puts(out, "(else");
        }
        dump_body(&arm->body, depth + 1, out);
        etch_buf_puts(out, ")");
    }
}

static void dump_stmt(const etch_ast_stmt *stmt, unsigned depth, etch_buf *out)
{
    new_line(out, depth);
    switch (stmt->kind) {
    case ETCH_AST_WEIGHT:
        etch_buf_puts(out, "(weight");
        dump_tensors("tensors", &stmt->tensors, out);
        dump_tags(&stmt->tags, out);
        break;
    case ETCH_AST_DIM:
        etch_buf_puts(out, "(dim");
        dump_defs(&stmt->dims, out);
        break;
    case ETCH_AST_INSTANCE:
        etch_buf_printf(out, "(instance %s ", stmt->instance.name.text);
        etch_ast_dump_expr(stmt->instance.value, out);
        break;
    case ETCH_AST_LET:
        etch_buf_puts(out, "(let");
        dump_tensors(stmt->tuple ? "split" : "one", &stmt->tensors, out);
        etch_buf_puts(out, " ");
        etch_ast_dump_expr(stmt->value, out);
        dump_tags(&stmt->tags, out);
        break;
    case ETCH_AST_REPEAT:
        etch_buf_puts(out, "(repeat ");
        etch_ast_dump_expr(stmt->count, out);
        etch_buf_printf(out, " (as%s%s)", stmt->index.text ? " " : "",
                        stmt->index.text ? stmt->index.text : "");
        dump_body(&stmt->body, depth + 1, out);
        break;
    case ETCH_AST_IF:
        etch_buf_puts(out, "(if");
        dump_arms(&stmt->arms, depth + 1, out);
        break;
    }
    etch_buf_puts(out, ")");
}

static void dump_body(const etch_ast_body *body, unsigned depth, etch_buf *out)
{
    for (uint32_t i = 0; i < body->count; i++) {
        dump_stmt(&body->at[i], depth, out);
    }
}

/* ---- plans ------------------------------------------------------------------------------------------- */

static void dump_places(const char *head, const etch_ast_places *places, etch_buf *out)
{
    etch_buf_printf(out, "(%s", head);
    for (uint32_t i = 0; i < places->count; i++) {
        etch_buf_printf(out, " (%s ", places->at[i].name.text);
        dump_names("@", &places->at[i].mesh.axes, out);
        etch_buf_puts(out, ")");
    }
}

static void dump_line(const etch_ast_line *line, unsigned depth, etch_buf *out)
{
    new_line(out, depth);
    switch (line->kind) {
    case ETCH_AST_MESH:
        etch_buf_puts(out, "(mesh");
        break;
    case ETCH_AST_AXIS:
        dump_places("axis", &line->places, out);
        break;
    case ETCH_AST_SHARD:
        dump_places("shard", &line->places, out);
        break;
    case ETCH_AST_PIN:
        etch_buf_printf(out, "(pin %s ", line->what.at[0].text);
        dump_axes(&line->shape, out);
        break;
    case ETCH_AST_PAD:
        etch_buf_puts(out, "(pad");
        break;
    case ETCH_AST_DTYPES:
        etch_buf_puts(out, "(dtype");
        break;
    case ETCH_AST_OPTIONS:
        etch_buf_puts(out, "(option");
        break;
    case ETCH_AST_ZERO:
        etch_buf_printf(out, "(zero %s ", line->level.text);
        dump_names("@", &line->mesh.axes, out);
        break;
    case ETCH_AST_STAGE:
        etch_buf_puts(out, "(stage ");
        dump_names("", &line->what, out);
        etch_buf_puts(out, " ");
        dump_names("@", &line->mesh.axes, out);
        break;
    case ETCH_AST_OFFLOAD:
        etch_buf_puts(out, "(move ");
        dump_names("@", &line->mesh.axes, out);
        break;
    case ETCH_AST_SCOPE:
        etch_buf_puts(out, "(for ");
        dump_names("", &line->what, out);
        dump_lines(&line->lines, depth + 1, out);
        break;
    case ETCH_AST_NUMBERS:
    case ETCH_AST_PART:
        etch_buf_puts(out, line->kind == ETCH_AST_PART ? "(part " : "(numbers ");
        dump_names("", &line->what, out);
        if (line->kind == ETCH_AST_PART)
            dump_lines(&line->lines, depth + 1, out);
        break;
    }
    dump_defs(&line->defs, out);
    etch_buf_puts(out, ")");
}

static void dump_lines(const etch_ast_lines *lines, unsigned depth, etch_buf *out)
{
    for (uint32_t i = 0; i < lines->count; i++) {
        dump_line(&lines->at[i], depth, out);
    }
}

/* ---- items ------------------------------------------------------------------------------------------- */

static void dump_import(const etch_ast_item *item, etch_buf *out)
{
    etch_buf_printf(out, " \"%s\"", item->name.text);
    if (item->listed) {
        etch_buf_puts(out, " ");
        dump_names("names", &item->names, out);
    }
    if (item->alias.text) {
        etch_buf_printf(out, " (as %s)", item->alias.text);
    }
}

static void dump_module(const etch_ast_item *item, etch_buf *out)
{
    etch_buf_printf(out, " %s", item->name.text);
    dump_tensors("inputs", &item->inputs, out);
    etch_buf_puts(out, " (params");
    dump_defs(&item->defs, out);
    etch_buf_puts(out, ")");
    dump_tensors(item->several ? "results" : "result", &item->results, out);
    dump_body(&item->body, 1, out);
}

static void dump_item(const etch_ast_item *item, etch_buf *out)
{
    static const char *const heads[] = {
        [ETCH_AST_IMPORT] = "import",     [ETCH_AST_USE] = "use",       [ETCH_AST_PARAM] = "param",
        [ETCH_AST_DIMS] = "dim",          [ETCH_AST_ASSUME] = "assume", [ETCH_AST_DTYPE] = "dtype",
        [ETCH_AST_CHECK] = "check",       [ETCH_AST_MODULE] = "module", [ETCH_AST_MODEL] = "model",
        [ETCH_AST_CONFIG] = "config",     [ETCH_AST_TRAIN] = "train",   [ETCH_AST_INFER] = "infer",
        [ETCH_AST_PARALLEL] = "parallel", [ETCH_AST_SWEEP] = "sweep",   [ETCH_AST_DEVICE] = "device",
        [ETCH_AST_CLUSTER] = "cluster",
    };
    etch_buf_printf(out, "(%s", heads[item->kind]);
    switch (item->kind) {
    case ETCH_AST_IMPORT:
        dump_import(item, out);
        break;
    case ETCH_AST_USE:
        etch_buf_printf(out, " %s %s", item->what.text, item->name.text);
        break;
    case ETCH_AST_PARAM:
    case ETCH_AST_DIMS:
    case ETCH_AST_DTYPE:
        dump_defs(&item->defs, out);
        break;
    case ETCH_AST_ASSUME:
    case ETCH_AST_CHECK:
        etch_buf_puts(out, " ");
        dump_exprs("tests", &item->tests, out);
        break;
    case ETCH_AST_MODULE:
    case ETCH_AST_MODEL:
        dump_module(item, out);
        break;
    case ETCH_AST_CONFIG:
    case ETCH_AST_TRAIN:
    case ETCH_AST_INFER:
        etch_buf_printf(out, " %s", item->name.text ? item->name.text : "()");
        dump_defs(&item->defs, out);
        break;
    case ETCH_AST_PARALLEL:
    case ETCH_AST_DEVICE:
    case ETCH_AST_CLUSTER:
        etch_buf_printf(out, " %s", item->name.text);
        dump_lines(&item->lines, 1, out);
        break;
    case ETCH_AST_SWEEP:
        etch_buf_printf(out, " %s", item->name.text);
        dump_defs(&item->defs, out);
        etch_buf_puts(out, " ");
        dump_exprs("where", &item->tests, out);
        break;
    }
    etch_buf_puts(out, ")\n");
}

void etch_ast_dump(const etch_ast *ast, etch_buf *out)
{
    for (uint32_t i = 0; i < ast->items.count; i++) {
        dump_item(&ast->items.at[i], out);
    }
}
