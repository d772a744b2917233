/* Top level of a file, and the texts of a command line. */
#include "lang/syntax/parser_int.h"

#include <string.h>

/* ---- the version line -------------------------------------------------------------------------------- */

static const char *const version_help = "start the file with the line 'etch 1'";

/* Value of decimal digits, at most 1,000,000. */
static uint32_t small_number(const char *text, uint32_t length)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < length && text[i] != '.'; i++) {
        value = value * 10 + (uint32_t)(text[i] - '0');
        if (value > 1000000) {
            return 1000000;
        }
    }
    return value;
}

static void report_newer(etch_parser *p, const etch_token *version)
{
    int length = (int)(version->span.end - version->span.start);
    etch_diag *diag =
        etch_parse_fail(p, ETCH_E_NEWER_VERSION, version->span,
                        "this file is written in version %.*s of the language; this etch reads version %d",
                        length > 20 ? 20 : length, version->text, ETCH_LANGUAGE_MAJOR);
    if (diag) {
        etch_help(diag, "install a newer etch");
    }
    p->stopped = true;
}

static void parse_version_number(etch_parser *p)
{
    etch_token version = p->token;
    if (version.kind != ETCH_TOKEN_INTEGER && version.kind != ETCH_TOKEN_REAL) {
        etch_diag *diag = etch_parse_fail(p, ETCH_E_BAD_VERSION, version.span,
                                          "expected the version of the language, found %s",
                                          etch_parse_describe(p, &version));
        if (diag) {
            etch_help(diag, "%s", version_help);
        }
        return;
    }
    uint32_t major = small_number(version.text, version.span.end - version.span.start);
    if (major > ETCH_LANGUAGE_MAJOR) {
        report_newer(p, &version);
        return;
    }
    if (major < ETCH_LANGUAGE_MAJOR || version.kind == ETCH_TOKEN_REAL) {
        etch_diag *diag = etch_parse_complain(p, ETCH_E_BAD_VERSION, version.span,
                                              "there is no version %.*s of the language",
                                              (int)(version.span.end - version.span.start), version.text);
        if (diag) {
            etch_help(diag, "the version is one whole number: 'etch 1'");
        }
    }
    etch_parse_advance(p);
    if (!etch_parse_at(p, ETCH_TOKEN_NEWLINE) && !etch_parse_at(p, ETCH_TOKEN_END)) {
        etch_parse_fail(p, ETCH_E_BAD_VERSION, p->token.span, "nothing else stands on the version line");
    }
}

/* ---- items ------------------------------------------------------------------------------------------- */

static void parse_import(etch_parser *p, etch_ast_item *item)
{
    item->kind = ETCH_AST_IMPORT;
    etch_token path = p->token;
    if (!etch_parse_accept(p, ETCH_TOKEN_STRING)) {
        etch_diag *diag = etch_parse_expected(p, "a file in quotes");
        if (diag) {
            etch_help(diag, "write import \"base.etch\"; its path is relative to this file");
        }
        return;
    }
    item->name =
        (etch_ast_name){etch_name(p->names, path.text + 1, path.span.end - path.span.start - 2), path.span};
    if (etch_parse_at(p, ETCH_TOKEN_OPEN_ROUND)) {
        etch_bracket bracket = etch_parse_open(p, "list of imported names");
        item->listed = true;
        item->names = etch_parse_names(p, "a name to import");
        etch_parse_close(p, &bracket);
    } else if (etch_parse_accept(p, ETCH_TOKEN_AS)) {
        item->alias = etch_parse_name(p, "a name for the import");
    }
}

static void parse_use(etch_parser *p, etch_ast_item *item)
{
    item->kind = ETCH_AST_USE;
    etch_token what = p->token;
    bool plan = what.kind == ETCH_TOKEN_NAME && strcmp(etch_parse_text(p, &what), "plan") == 0;
    if (!plan && what.kind != ETCH_TOKEN_CONFIG) {
        etch_parse_expected(p, "'config' or 'plan' after 'use'");
        return;
    }
    item->what = (etch_ast_name){etch_parse_text(p, &what), what.span};
    etch_parse_advance(p);
    item->name = etch_parse_name(p, plan ? "the name of a plan" : "the name of a config");
}

static void check_signature(etch_parser *p)
{
    if (!etch_parse_at(p, ETCH_TOKEN_ASSIGN)) {
        return;
    }
    etch_diag *diag =
        etch_parse_fail(p, ETCH_E_UNEXPECTED, p->token.span, "a tensor argument has no default");
    if (diag) {
        etch_help(diag, "parameters of a module stand after ';': (x[.., X]; X = H)");
    }
}

static void parse_signature(etch_parser *p, etch_ast_item *item)
{
    if (!etch_parse_at(p, ETCH_TOKEN_OPEN_ROUND)) {
        etch_parse_expected(p, "'(' and the arguments");
        return;
    }
    etch_bracket bracket = etch_parse_open(p, "argument list");
    if (!etch_parse_at(p, ETCH_TOKEN_CLOSE_ROUND)) {
        etch_parse_tensors(p, "an argument", &item->inputs);
        check_signature(p);
        if (etch_parse_accept(p, ETCH_TOKEN_SEMICOLON)) {
            etch_parse_params(p, &item->defs);
        }
    }
    etch_parse_close(p, &bracket);
    etch_parse_expect(p, ETCH_TOKEN_ARROW, "'->' and the result");
    if (etch_parse_at(p, ETCH_TOKEN_OPEN_ROUND)) {
        etch_bracket results = etch_parse_open(p, "list of results");
        item->several = true;
        etch_parse_tensors(p, "a result", &item->results);
        etch_parse_close(p, &results);
    } else {
        ETCH_PUSH(p->arena, &item->results, etch_parse_tensor(p, "the result"));
    }
}

static void parse_module(etch_parser *p, etch_ast_item *item, etch_ast_item_kind kind)
{
    item->kind = kind;
    const char *what = kind == ETCH_AST_MODEL ? "model" : "module";
    item->name = etch_parse_name(p, etch_text(p->arena, "the name of the %s", what));
    parse_signature(p, item);
    etch_parse_body(p, what, item->name.text, &item->body);
}

static void parse_option_line(etch_parser *p, void *into)
{
    etch_parse_options(p, into);
}

static void parse_options_block(etch_parser *p, etch_ast_item *item, etch_ast_item_kind kind,
                                const char *what)
{
    item->kind = kind;
    if (kind != ETCH_AST_TRAIN || !etch_parse_at(p, ETCH_TOKEN_OPEN_BRACE)) {
        item->name = etch_parse_name(p, etch_text(p->arena, "the name of the %s block", what));
    }
    etch_open_block block = {.what = what, .name = item->name.text};
    etch_parse_block(p, block, parse_option_line, &item->defs);
}

/* `memory(peak) <= 80 GB`: in the tree, the last number times its unit. */
static void parse_condition(etch_parser *p, etch_ast_exprs *into)
{
    etch_ast_expr *test = etch_parse_predicate(p);
    const bool listed = test->kind == ETCH_AST_COMPARE && test->op == 'i';
    const etch_ast_name unit = listed ? (etch_ast_name){0} : etch_parse_unit(p);
    if (unit.text) {
        etch_ast_expr *name = ETCH_NEW(p->arena, etch_ast_expr), *number = ETCH_NEW(p->arena, etch_ast_expr);
        etch_ast_expr **end = test->kind == ETCH_AST_COMPARE ? &test->right : &test;
        *name = (etch_ast_expr){.kind = ETCH_AST_NAME, .span = unit.span, .name = unit, .height = 1};
        *number = (etch_ast_expr){.kind = ETCH_AST_BINARY,
                                  .span = etch_parse_since(p, (*end)->span),
                                  .op = '*',
                                  .op_span = unit.span,
                                  .left = *end,
                                  .right = name,
                                  .height = (*end)->height};
        *end = number;
        test->span = etch_parse_since(p, test->span);
    }
    ETCH_PUSH(p->arena, into, test);
}

static void parse_sweep_line(etch_parser *p, void *into)
{
    etch_ast_item *item = into;
    if (etch_parse_accept(p, ETCH_TOKEN_WHERE)) {
        do
            parse_condition(p, &item->tests);
        while (etch_parse_comma(p));
    } else {
        etch_parse_bindings(p, &item->defs);
    }
}

static void parse_sweep(etch_parser *p, etch_ast_item *item)
{
    item->kind = ETCH_AST_SWEEP;
    item->name = etch_parse_name(p, "the name of the sweep");
    etch_open_block block = {.what = "sweep", .name = item->name.text, .lines = ETCH_LINE_SWEEP};
    etch_parse_block(p, block, parse_sweep_line, item);
}

static void parse_definitions(etch_parser *p, etch_ast_item *item, etch_ast_item_kind kind)
{
    item->kind = kind;
    if (kind == ETCH_AST_PARAM) {
        etch_parse_params(p, &item->defs);
    } else if (kind == ETCH_AST_DIMS) {
        etch_parse_dims(p, &item->defs);
    } else {
        etch_parse_bindings(p, &item->defs);
    }
}

static void parse_tests(etch_parser *p, etch_ast_item *item, etch_ast_item_kind kind)
{
    item->kind = kind;
    if (kind == ETCH_AST_CHECK) {
        ETCH_PUSH(p->arena, &item->tests, etch_parse_predicate(p));
    } else {
        etch_parse_predicates(p, &item->tests);
    }
}

static void parse_rest_of_item(etch_parser *p, etch_token_kind keyword, etch_ast_item *item)
{
    switch (keyword) {
    case ETCH_TOKEN_IMPORT:
        parse_import(p, item);
        break;
    case ETCH_TOKEN_USE:
        parse_use(p, item);
        break;
    case ETCH_TOKEN_PARAM:
        parse_definitions(p, item, ETCH_AST_PARAM);
        break;
    case ETCH_TOKEN_DIM:
        parse_definitions(p, item, ETCH_AST_DIMS);
        break;
    case ETCH_TOKEN_DTYPE:
        parse_definitions(p, item, ETCH_AST_DTYPE);
        break;
    case ETCH_TOKEN_ASSUME:
        parse_tests(p, item, ETCH_AST_ASSUME);
        break;
    case ETCH_TOKEN_CHECK:
        parse_tests(p, item, ETCH_AST_CHECK);
        break;
    case ETCH_TOKEN_MODULE:
        parse_module(p, item, ETCH_AST_MODULE);
        break;
    case ETCH_TOKEN_MODEL:
        parse_module(p, item, ETCH_AST_MODEL);
        break;
    case ETCH_TOKEN_CONFIG:
        parse_options_block(p, item, ETCH_AST_CONFIG, "config");
        break;
    case ETCH_TOKEN_TRAIN:
        parse_options_block(p, item, ETCH_AST_TRAIN, "train");
        break;
    case ETCH_TOKEN_INFER:
        parse_options_block(p, item, ETCH_AST_INFER, "infer");
        break;
    case ETCH_TOKEN_PARALLEL:
        item->kind = ETCH_AST_PARALLEL;
        item->name = etch_parse_name(p, "the name of the plan");
        etch_parse_plan(p, "plan", item->name.text, &item->lines);
        break;
    case ETCH_TOKEN_DEVICE:
    case ETCH_TOKEN_CLUSTER: {
        const bool device = keyword == ETCH_TOKEN_DEVICE;
        item->kind = device ? ETCH_AST_DEVICE : ETCH_AST_CLUSTER;
        item->name = etch_parse_name(p, device ? "the name of the device" : "the name of the cluster");
        etch_parse_machine(p, device ? "device" : "cluster", item->name.text, &item->lines);
        break;
    }
    default:
        parse_sweep(p, item);
        break;
    }
}

static void parse_item(etch_parser *p, void *into)
{
    etch_ast *ast = into;
    etch_ast_item item = {.span = p->token.span};
    if (etch_parse_at(p, ETCH_TOKEN_ETCH)) {
        etch_parse_fail(p, ETCH_E_BAD_VERSION, p->token.span,
                        "the version line stands once, at the start of the file");
        return;
    }
    etch_token_kind keyword = etch_parse_keyword(p, ETCH_LINE_ITEM, "at the top level");
    if (keyword == ETCH_TOKEN_NONE || keyword == ETCH_TOKEN_PANIC) {
        etch_diag *diag =
            etch_parse_expected(p, "a declaration such as 'param', 'dim', 'module' or 'parallel'");
        if (diag && p->held.kind == ETCH_TOKEN_NAME) {
            etch_help(
                diag,
                "values are computed inside 'module' and 'model'; a size is declared by 'param' or 'dim'");
        }
        return;
    }
    etch_parse_advance(p);
    parse_rest_of_item(p, keyword, &item);
    item.span = etch_parse_since(p, item.span);
    if (!p->panic) {
        ETCH_PUSH(p->arena, &ast->items, item);
    }
}

static void parse_first(etch_parser *p, void *into)
{
    if (etch_parse_accept(p, ETCH_TOKEN_ETCH)) {
        parse_version_number(p);
        return;
    }
    bool item = (etch_token_starts(p->token.kind) & ETCH_LINE_ITEM) != 0;
    bool word = etch_parse_at(p, ETCH_TOKEN_NAME);
    etch_diag *diag =
        item ? etch_parse_complain(p, ETCH_E_NO_VERSION, p->token.span, "the version line is missing")
             : etch_parse_fail(p, ETCH_E_NO_VERSION, p->token.span, "the version line is missing");
    if (diag) {
        etch_help(diag, "%s", version_help);
    }
    if (item) {
        parse_item(p, into);
    } else if (!word) {
        p->stopped = true; /* nothing here looks like a spec: more messages would not help */
    }
}

/* ---- entry points ------------------------------------------------------------------------------------ */

etch_ast *etch_ast_parse(const etch_ast_context *context, const etch_source *source)
{
    etch_ast *ast = ETCH_NEW(context->arena, etch_ast);
    ast->source = source;
    etch_parser parser;
    etch_parse_start(&parser, context, source, false);
    parser.tokens += context->tokens ? *context->tokens : 0;
    etch_parse_file(&parser, parse_first, parse_item, ast);
    if (context->tokens)
        *context->tokens = parser.tokens;
    return ast;
}

/* The end of a text from a command line. */
static bool finish(etch_parser *p)
{
    if (!etch_parse_at(p, ETCH_TOKEN_END)) {
        etch_parse_fail(p, ETCH_E_NO_END, p->token.span, "expected the end of the expression, found %s",
                        etch_parse_describe(p, &p->token));
    }
    return !p->panic && !p->stopped;
}

etch_ast_expr *etch_ast_parse_query(const etch_ast_context *context, const etch_source *source)
{
    uint32_t errors = etch_error_count(context->diags);
    etch_parser parser;
    etch_parse_start(&parser, context, source, true);
    etch_ast_expr *expr = etch_parse_predicate(&parser);
    return finish(&parser) && etch_error_count(context->diags) == errors ? expr : NULL;
}

bool etch_ast_parse_numbers(const etch_ast_context *context, const etch_source *source,
                            etch_ast_defs *numbers)
{
    uint32_t errors = etch_error_count(context->diags);
    etch_parser parser;
    etch_parse_start(&parser, context, source, true);
    etch_parse_numbers(&parser, numbers);
    return finish(&parser) && etch_error_count(context->diags) == errors;
}

bool etch_ast_parse_settings(const etch_ast_context *context, const etch_source *source,
                             etch_ast_defs *settings)
{
    uint32_t errors = etch_error_count(context->diags);
    etch_parser parser;
    etch_parse_start(&parser, context, source, true);
    etch_parse_bindings(&parser, settings);
    return finish(&parser) && etch_error_count(context->diags) == errors;
}

bool etch_ast_parse_options(const etch_ast_context *context, const etch_source *source,
                            etch_ast_defs *options)
{
    uint32_t errors = etch_error_count(context->diags);
    etch_parser parser;
    etch_parse_start(&parser, context, source, true);
    etch_parse_options(&parser, options);
    return finish(&parser) && etch_error_count(context->diags) == errors;
}
