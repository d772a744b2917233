/* Files and their imports. */
#define _XOPEN_SOURCE 700 /* mkdtemp, mkdir, symlink */
#include "lang/syntax/syntax.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct scene {
    etch_arena *arena;
    char folder[64];
    etch_ast_context context;
    etch_ast_files files;
    etch_status status;
} scene;

static const char *in_folder(const scene *s, const char *name)
{
    return etch_text(s->arena, "%s/%s", s->folder, name);
}

static void put(const scene *s, const char *name, const char *text)
{
    FILE *file = fopen(in_folder(s, name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static scene new_scene(etch_arena *arena)
{
    scene s = {.arena = arena, .folder = "/tmp/etch_loading_XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(s.folder));
    ck_assert_int_eq(mkdir(in_folder(&s, "sub"), 0700), 0);
    return s;
}

static void load(scene *s, const char *name)
{
    s->context = (etch_ast_context){
        .arena = s->arena, .names = etch_names_new(s->arena), .diags = etch_diags_new(s->arena)};
    s->status = etch_ast_load(&s->context, in_folder(s, name), NULL, &s->files);
}

static void end_scene(const scene *s)
{
    static const char *const names[] = {"sub/c.etch", "sub",    "a.etch",   "b.etch",
                                        "c.etch",     "d.etch", "link.etch"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        remove(in_folder(s, names[i]));
    }
    remove(s->folder);
}

/* Paths of the files that were loaded, within the folder. */
static const char *loaded(const scene *s)
{
    etch_buf out = {.arena = s->arena};
    etch_buf_puts(&out, "");
    for (uint32_t i = 0; i < s->files.count; i++) {
        etch_buf_printf(&out, "%s%s", i ? " " : "", s->files.at[i]->source->path + strlen(s->folder) + 1);
    }
    return out.text;
}

/* The only diagnostic, without the name of the folder. */
static const etch_diag *only_error(const scene *s, char *message, size_t size)
{
    const etch_diag *diag = etch_diags_first(s->context.diags);
    ck_assert_ptr_nonnull(diag);
    ck_assert_ptr_null(diag->next);
    size_t length = 0;
    for (const char *at = diag->message; *at && length + 1 < size;) {
        if (strncmp(at, s->folder, strlen(s->folder)) == 0) {
            at += strlen(s->folder) + 1;
        } else {
            message[length++] = *at++;
        }
    }
    message[length] = 0;
    return diag;
}

static void diamond(etch_arena *arena)
{
    scene s = new_scene(arena);
    put(&s, "a.etch", "etch 1\nimport \"b.etch\"\nimport \"sub/c.etch\" as c\nimport \"link.etch\"\n");
    put(&s, "b.etch", "etch 1\nimport \"d.etch\" (x)\n");
    put(&s, "sub/c.etch", "etch 1\nimport \"../d.etch\"\nimport \"../sub/../b.etch\"\n");
    put(&s, "d.etch", "etch 1\nparam x\n");
    ck_assert_int_eq(symlink("d.etch", in_folder(&s, "link.etch")), 0);
    load(&s, "a.etch");
    ck_assert_int_eq(s.status, ETCH_OK);
    ck_assert_str_eq(loaded(&s), "d.etch b.etch sub/c.etch a.etch");
    const etch_ast *root = s.files.at[3];
    ck_assert_ptr_eq(root->items.at[0].file, s.files.at[1]);
    ck_assert_ptr_eq(root->items.at[1].file, s.files.at[2]);
    ck_assert_ptr_eq(root->items.at[2].file, s.files.at[0]);
    ck_assert_ptr_eq(s.files.at[2]->items.at[1].file, s.files.at[1]);
    end_scene(&s);
}

START_TEST(every_file_is_read_once_and_after_its_imports)
{
    etch_with_arena(diamond);
}
END_TEST

static void cycles(etch_arena *arena)
{
    scene s = new_scene(arena);
    char message[400];
    put(&s, "a.etch", "etch 1\nimport \"b.etch\"\n");
    put(&s, "b.etch", "etch 1\nparam p\nimport \"sub/c.etch\"\n");
    put(&s, "sub/c.etch", "etch 1\nimport \"../b.etch\"\n");
    load(&s, "a.etch");
    ck_assert_int_eq(s.status, ETCH_EINPUT);
    const etch_diag *diag = only_error(&s, message, sizeof message);
    ck_assert_int_eq(diag->code, ETCH_E_IMPORT_CYCLE);
    ck_assert_str_eq(message, "'b.etch' imports itself: b.etch -> sub/c.etch -> b.etch");
    uint32_t line, column;
    const etch_source *source = etch_source_at(s.context.diags, diag->span, &line, &column);
    ck_assert_str_eq(source->path, in_folder(&s, "sub/c.etch"));
    ck_assert_uint_eq(line, 2);
    ck_assert_uint_eq(column, 8);
    put(&s, "a.etch", "etch 1\nimport \"a.etch\"\n");
    load(&s, "a.etch");
    ck_assert_int_eq(only_error(&s, message, sizeof message)->code, ETCH_E_IMPORT_CYCLE);
    ck_assert_str_eq(message, "'a.etch' imports itself");
    end_scene(&s);
}

START_TEST(a_cycle_names_its_files)
{
    etch_with_arena(cycles);
}
END_TEST

static void unreadable(etch_arena *arena)
{
    scene s = new_scene(arena);
    char message[400];
    put(&s, "a.etch", "etch 1\nimport \"nothing.etch\"\n");
    load(&s, "a.etch");
    ck_assert_int_eq(s.status, ETCH_EINPUT);
    ck_assert_int_eq(only_error(&s, message, sizeof message)->code, ETCH_E_IMPORT_UNREADABLE);
    ck_assert_str_eq(message, "cannot read 'nothing.etch': no such file");
    ck_assert_ptr_null(s.files.at[0]->items.at[0].file);
    put(&s, "a.etch", "etch 1\nimport \"sub\"\n");
    load(&s, "a.etch");
    ck_assert_int_eq(s.status, ETCH_EINPUT);
    only_error(&s, message, sizeof message);
    ck_assert_str_eq(message, "cannot read 'sub': is a directory");
    load(&s, "sub");
    ck_assert_int_eq(s.status, ETCH_EIO);
    ck_assert_int_eq(only_error(&s, message, sizeof message)->code, ETCH_E_SPEC_UNREADABLE);
    ck_assert_str_eq(message, "cannot read 'sub': is a directory");
    end_scene(&s);
}

START_TEST(a_file_that_cannot_be_read_says_why)
{
    etch_with_arena(unreadable);
}
END_TEST

static void errors_inside(etch_arena *arena)
{
    scene s = new_scene(arena);
    char message[400];
    put(&s, "a.etch", "etch 1\nimport \"b.etch\"\nimport \"c.etch\"\n");
    put(&s, "b.etch", "etch 1\nparam = 3\n");
    put(&s, "c.etch", "etch 1\nimport \"b.etch\"\n");
    load(&s, "a.etch");
    ck_assert_int_eq(s.status, ETCH_EINPUT);
    const etch_diag *diag = only_error(&s, message, sizeof message);
    ck_assert_str_eq(message, "expected the name of a param, found '='");
    ck_assert_str_eq(etch_source_at(s.context.diags, diag->span, NULL, NULL)->path, in_folder(&s, "b.etch"));
    ck_assert_str_eq(loaded(&s), "b.etch c.etch a.etch");
    end_scene(&s);
}

START_TEST(an_error_in_an_import_is_reported_once_in_its_own_file)
{
    etch_with_arena(errors_inside);
}
END_TEST

static void deep_imports(etch_arena *arena)
{
    scene s = new_scene(arena);
    char message[400];
    for (int i = 0; i < 100; i++) {
        put(&s, etch_text(arena, "i%d.etch", i), etch_text(arena, "etch 1\nimport \"i%d.etch\"\n", i + 1));
    }
    put(&s, "i100.etch", "etch 1\n");
    load(&s, "i0.etch");
    ck_assert_int_eq(only_error(&s, message, sizeof message)->code, ETCH_E_IMPORT_DEPTH);
    load(&s, "i50.etch");
    ck_assert_int_eq(s.status, ETCH_OK);
    ck_assert_uint_eq(s.files.count, 51);
    for (int i = 0; i <= 100; i++) {
        remove(in_folder(&s, etch_text(arena, "i%d.etch", i)));
    }
    end_scene(&s);
}

START_TEST(imports_have_a_greatest_depth)
{
    etch_with_arena(deep_imports);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("loading");
    ETCH_ADD_TESTS(suite, every_file_is_read_once_and_after_its_imports, a_cycle_names_its_files,
                   a_file_that_cannot_be_read_says_why,
                   an_error_in_an_import_is_reported_once_in_its_own_file, imports_have_a_greatest_depth);
    return suite;
}
