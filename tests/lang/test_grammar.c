/* Every case of grammar/accept parses without a word, into the tree beside it when there is one. Every
 * case of grammar/reject is refused with exactly the diagnostics beside it. Every diagnostic of the
 * syntax has a case. */
#include "corpus.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

static const char *rendered(const etch_ast_context *context)
{
    etch_buf out = {.arena = context->arena};
    etch_diags_render(context->diags, &out);
    return out.text ? out.text : "";
}

static void accept_case(etch_arena *arena, const corpus_case *item)
{
    etch_ast_context context = corpus_context(arena);
    etch_ast_files files;
    etch_status status = etch_ast_load(&context, item->path, NULL, &files);
    ck_assert_msg(status == ETCH_OK && !etch_diags_first(context.diags), "%s", rendered(&context));
    const char *expected = corpus_beside(arena, item, "tree");
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    etch_ast_dump(files.at[files.count - 1], &out);
    bool whole_spec = strncmp(item->name, "spec_", 5) == 0;
    if (whole_spec || corpus_update(arena, item, "tree", out.text)) {
        return;
    }
    ck_assert_msg(expected != NULL, "%s has no tree beside it (ETCH_UPDATE=1 writes it)", item->path);
    ck_assert_msg(strcmp(out.text, expected) == 0, "%s: the tree differs:\n%s", item->path, out.text);
}

static void accept_all(etch_arena *arena)
{
    corpus cases = corpus_read(arena, "accept");
    for (uint32_t i = 0; i < cases.count; i++) {
        accept_case(arena, &cases.at[i]);
    }
}

START_TEST(every_accepted_case_parses_into_its_tree)
{
    etch_with_arena(accept_all);
}
END_TEST

/* "E0110 3:14 expected ..." for each. */
static const char *summary(const etch_ast_context *context)
{
    etch_buf out = {.arena = context->arena};
    for (const etch_diag *diag = etch_diags_first(context->diags); diag; diag = diag->next) {
        uint32_t line = 0, column = 0;
        etch_source_at(context->diags, diag->span, &line, &column);
        etch_buf_printf(&out, "E%04d %u:%u %s\n", (int)diag->code, line, column, diag->message);
    }
    return out.text ? out.text : "";
}

static void reject_case(etch_arena *arena, const corpus_case *item, bool *seen)
{
    etch_ast_context context = corpus_context(arena);
    const etch_source *source = etch_source_add(context.diags, item->path, item->text, item->length);
    ck_assert_ptr_nonnull(source);
    etch_ast_parse(&context, source);
    const char *found = summary(&context);
    for (const etch_diag *diag = etch_diags_first(context.diags); diag; diag = diag->next) {
        seen[diag->code] = true;
    }
    ck_assert_msg(etch_error_count(context.diags) > 0, "%s is accepted", item->path);
    if (corpus_update(arena, item, "expect", found)) {
        return;
    }
    const char *expected = corpus_beside(arena, item, "expect");
    ck_assert_msg(expected != NULL, "%s has no .expect beside it (ETCH_UPDATE=1 writes it)", item->path);
    ck_assert_msg(strcmp(found, expected) == 0, "%s:\nexpected\n%sfound\n%s", item->path, expected, found);
}

static void reject_all(etch_arena *arena)
{
    static const struct {
        int code;
        const char *name;
    } codes[] = {
#define ETCH_DIAG(name, number, title) {number, #name},
#include "base/diag.def"
#undef ETCH_DIAG
    };
    bool *seen = ETCH_NEW_ARRAY(arena, 1000, bool);
    corpus cases = corpus_read(arena, "reject");
    for (uint32_t i = 0; i < cases.count; i++) {
        reject_case(arena, &cases.at[i], seen);
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        bool syntax = codes[i].code >= 100 && codes[i].code < 200;
        ck_assert_msg(!syntax || seen[codes[i].code], "no case of grammar/reject shows %s", codes[i].name);
    }
}

START_TEST(every_rejected_case_has_its_diagnostics)
{
    etch_with_arena(reject_all);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("grammar");
    ETCH_ADD_TESTS(suite, every_accepted_case_parses_into_its_tree, every_rejected_case_has_its_diagnostics);
    return suite;
}
