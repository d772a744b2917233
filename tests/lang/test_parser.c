/* Texts of a command line; spans of the tree; inputs that are made to hurt. */
#include "lang/syntax/syntax.h"
#include "suite.h"

#include <string.h>

static etch_ast_context new_context(etch_arena *arena)
{
    return (etch_ast_context){.arena = arena, .names = etch_names_new(arena), .diags = etch_diags_new(arena)};
}

static const etch_source *add(const etch_ast_context *context, const char *name, const char *text)
{
    const etch_source *source = etch_source_add(context->diags, name, text, strlen(text));
    ck_assert_ptr_nonnull(source);
    return source;
}

/* ---- texts of a command line ------------------------------------------------------------------------- */

static void queries(etch_arena *arena)
{
    static const struct {
        const char *text, *tree;
    } cases[] = {
        {"flops(step)/params(model)", "(/ (call flops step) (call params model))"},
        {"  a == b  ", "(== a b)"},
        {"a | b", "(| a b)"},
        {"comm(step, op = all_reduce, axis = (dp,tp), of = block.attention)",
         "(call comm step (: op all_reduce) (: axis (tuple dp tp)) (: of block.attention))"},
        {"memory(peak, stage = 1)", "(call memory peak (: stage 1))"},
        {"a\n+ b\n", "(+ a b)"},
        {"a - b - c", "(- (- a b) c)"},
        {"a ^ b ^ c", "(^ a (^ b c))"},
        {"-a ^ 2 * b", "(* (neg (^ a 2)) b)"},
        {"2 ^ -a * b", "(* (^ 2 (neg a)) b)"},
        {"a // b % c / d", "(/ (% (// a b) c) d)"},
        {"0.30", "0.30"},
        {"(a)", "a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        etch_ast_context context = new_context(arena);
        const etch_ast_expr *expr = etch_ast_parse_query(&context, add(&context, "<query>", cases[i].text));
        ck_assert_msg(expr != NULL, "%s", cases[i].text);
        etch_buf out = {.arena = arena};
        etch_ast_dump_expr(expr, &out);
        ck_assert_str_eq(out.text, cases[i].tree);
    }
}

START_TEST(a_query_is_an_expression_or_a_predicate)
{
    etch_with_arena(queries);
}
END_TEST

static void bad_queries(etch_arena *arena)
{
    static const struct {
        const char *text;
        etch_code code;
        uint32_t column;
        const char *message;
    } cases[] = {
        {"", ETCH_E_UNEXPECTED, 1, "expected a value, found end of the text"},
        {"a +", ETCH_E_UNEXPECTED, 4, "expected a value after '+', found end of the text"},
        {"a b", ETCH_E_NO_END, 3, "expected the end of the expression, found name 'b'"},
        {"flops(step", ETCH_E_OPEN_BRACKET, 11,
         "expected ')' to close the argument list, found end of the text"},
        {"a = b", ETCH_E_ASSIGN_IN_PREDICATE, 3, "'=' binds a name; this is a comparison"},
        {"a; b", ETCH_E_NO_END, 2, "expected the end of the expression, found ';'"},
        {"a == b == c", ETCH_E_CHAINED_COMPARISON, 8, "a predicate has one comparison"},
        {"f(a))", ETCH_E_NO_END, 5, "expected the end of the expression, found ')'"},
        {"$", ETCH_E_BAD_CHARACTER, 1, "'$' (U+0024) has no meaning here"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        etch_ast_context context = new_context(arena);
        ck_assert_ptr_null(etch_ast_parse_query(&context, add(&context, "<query>", cases[i].text)));
        const etch_diag *diag = etch_diags_first(context.diags);
        ck_assert_ptr_nonnull(diag);
        ck_assert_ptr_null(diag->next);
        uint32_t line, column;
        ck_assert_str_eq(etch_source_at(context.diags, diag->span, &line, &column)->path, "<query>");
        ck_assert_str_eq(diag->message, cases[i].message);
        ck_assert_int_eq(diag->code, cases[i].code);
        ck_assert_uint_eq(column, cases[i].column);
    }
}

START_TEST(a_bad_query_has_one_diagnostic_with_its_place)
{
    etch_with_arena(bad_queries);
}
END_TEST

static void settings(etch_arena *arena)
{
    etch_ast_context context = new_context(arena);
    etch_ast_defs defs = {0};
    ck_assert(etch_ast_parse_settings(&context, add(&context, "<set>", "dp=8, tp = 2*dp,seq=8192"), &defs));
    ck_assert_uint_eq(defs.count, 3);
    ck_assert_str_eq(defs.at[1].name.text, "tp");
    etch_buf out = {.arena = arena};
    etch_ast_dump_expr(defs.at[1].value, &out);
    ck_assert_str_eq(out.text, "(* 2 dp)");
    defs = (etch_ast_defs){0};
    ck_assert(!etch_ast_parse_settings(&context, add(&context, "<set>", "dp"), &defs));
    ck_assert_str_eq(etch_diags_first(context.diags)->message,
                     "expected '=' after 'dp', found end of the text");
}

START_TEST(settings_bind_names_to_expressions)
{
    etch_with_arena(settings);
}
END_TEST

/* ---- spans ------------------------------------------------------------------------------------------- */

static void expect_text(const etch_source *source, etch_span span, const char *text)
{
    uint32_t start = span.start - source->base, length = span.end - span.start;
    ck_assert_uint_le(start + length, source->length);
    ck_assert_msg(length == strlen(text) && memcmp(source->text + start, text, length) == 0,
                  "'%.*s' is not '%s'", (int)length, source->text + start, text);
}

static void spans(etch_arena *arena)
{
    etch_ast_context context = new_context(arena);
    add(&context, "before", "something else");
    const etch_source *source = add(&context, "test",
                                    "etch 1\n"
                                    "model m(x[B, S@(cp,tp)]: i32; n = 3) -> y[B] {  # one\n"
                                    "  repeat n*2 as i { x = (a + f(x, over = S)) * x[S->T]  tag t, u }\n"
                                    "  if i < 2 { } else if q { } else { }\n"
                                    "}\n"
                                    "parallel p { stage (a.b, c) @ pp, k = 1\n }\n");
    const etch_ast *ast = etch_ast_parse(&context, source);
    ck_assert_uint_eq(etch_error_count(context.diags), 0);
    ck_assert_uint_eq(ast->items.count, 2);
    const etch_ast_item *model = &ast->items.at[0];
    expect_text(source, model->name.span, "m");
    expect_text(source, model->inputs.at[0].span, "x[B, S@(cp,tp)]: i32");
    expect_text(source, model->inputs.at[0].axes.at[1].span, "S@(cp,tp)");
    expect_text(source, model->inputs.at[0].axes.at[1].mesh.span, "(cp,tp)");
    expect_text(source, model->inputs.at[0].type.span, "i32");
    expect_text(source, model->defs.at[0].span, "n = 3");
    expect_text(source, model->results.at[0].span, "y[B]");
    const etch_ast_stmt *loop = &model->body.at[0];
    expect_text(source, loop->span, "repeat n*2 as i { x = (a + f(x, over = S)) * x[S->T]  tag t, u }");
    expect_text(source, loop->count->span, "n*2");
    const etch_ast_stmt *let = &loop->body.at[0];
    expect_text(source, let->span, "x = (a + f(x, over = S)) * x[S->T]  tag t, u");
    expect_text(source, let->tags.at[1].span, "u");
    const etch_ast_expr *product = let->value;
    expect_text(source, product->span, "(a + f(x, over = S)) * x[S->T]");
    expect_text(source, product->op_span, "*");
    expect_text(source, product->left->span, "(a + f(x, over = S))");
    expect_text(source, product->left->right->span, "f(x, over = S)");
    expect_text(source, product->left->right->name.span, "f");
    expect_text(source, product->left->right->args.at[1].name.span, "over");
    expect_text(source, product->right->renames.at[0].span, "S->T");
    const etch_ast_stmt *branch = &model->body.at[1];
    ck_assert_uint_eq(branch->arms.count, 3);
    expect_text(source, branch->arms.at[0].span, "if i < 2 { }");
    expect_text(source, branch->arms.at[1].span, "else if q { }");
    expect_text(source, branch->arms.at[2].span, "else { }");
    const etch_ast_line *stage = &ast->items.at[1].lines.at[0];
    expect_text(source, stage->span, "stage (a.b, c) @ pp, k = 1");
    expect_text(source, stage->what.at[0].span, "a.b");
    expect_text(source, ast->items.at[1].span, "parallel p { stage (a.b, c) @ pp, k = 1\n }");
}

START_TEST(nodes_know_their_text)
{
    etch_with_arena(spans);
}
END_TEST

static void names(etch_arena *arena)
{
    etch_ast_context context = new_context(arena);
    const etch_ast *ast = etch_ast_parse(
        &context, add(&context, "test", "etch 1\nparam abc\ndim B = abc, C = x . y, D = x.y\n"));
    const etch_ast_defs *dims = &ast->items.at[1].defs;
    ck_assert_ptr_eq(ast->items.at[0].defs.at[0].name.text, dims->at[0].value->name.text);
    ck_assert_ptr_eq(dims->at[1].value->name.text, dims->at[2].value->name.text);
    ck_assert_ptr_eq(dims->at[2].value->name.text, etch_name_of(context.names, "x.y"));
}

START_TEST(equal_names_are_one)
{
    etch_with_arena(names);
}
END_TEST

/* ---- inputs that are made to hurt -------------------------------------------------------------------- */

/* Parses `head` and then `piece` again and again, up to `size` bytes. */
static void flood(etch_arena *arena, const char *head, const char *piece, size_t size)
{
    etch_arena *own = etch_arena_new(etch_arena_mem(arena));
    etch_ast_context context = new_context(own);
    char *text = etch_alloc(own, size);
    size_t length = strlen(head), step = strlen(piece);
    memcpy(text, head, length);
    for (; length + step <= size; length += step) {
        memcpy(text + length, piece, step);
    }
    const etch_source *source = etch_source_add(context.diags, "flood", text, length);
    size_t before = etch_mem_used(etch_arena_mem(own));
    etch_ast_parse(&context, source);
    /* arenas take small chunks, then one of two megabytes */
    ck_assert_uint_le(etch_mem_used(etch_arena_mem(own)) - before, (size_t)3 << 20);
    ck_assert_msg(etch_error_count(context.diags) == 1, "'%s' '%s': %u errors", head, piece,
                  etch_error_count(context.diags));
    etch_arena_free(own);
}

static void floods(etch_arena *arena)
{
    static const char *const heads[] = {"", "etch 1\n", "etch 1\ncheck ", "etch 1\nmodule ",
                                        "etch 1\nmodule m(x) -> y { y = "};
    static const char *const pieces[] = {"(",   "[",  "{",  "-",       "1^", "1+",
                                         "(1+", "f(", "x[", "if a { ", "a.", "f(a = "};
    for (size_t h = 0; h < sizeof heads / sizeof *heads; h++) {
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            flood(arena, heads[h], pieces[i], 300 * 1000);
        }
    }
    flood(arena, "", "(", 10 * 1000 * 1000);
    flood(arena, "etch 1\ncheck ", "[", 10 * 1000 * 1000);
}

START_TEST(ten_megabytes_of_anything_nested_are_one_diagnostic)
{
    etch_with_arena(floods);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("parser");
    ETCH_ADD_TESTS(suite, a_query_is_an_expression_or_a_predicate,
                   a_bad_query_has_one_diagnostic_with_its_place, settings_bind_names_to_expressions,
                   nodes_know_their_text, equal_names_are_one,
                   ten_megabytes_of_anything_nested_are_one_diagnostic);
    return suite;
}
