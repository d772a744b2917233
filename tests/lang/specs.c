#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "specs.h"

#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *path_of(const spec_scene *s, const char *name)
{
    return etch_text(s->arena, "%s/%s", s->folder, name);
}

static void put(spec_scene *s, const char *name, const char *text, size_t length)
{
    FILE *file = fopen(path_of(s, name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("etch 1\n", file), 0);
    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
    ETCH_PUSH(s->arena, &s->files, name);
}

static void put_all(spec_scene *s, const char *text)
{
    const char *name = "a.etch";
    for (;;) {
        const char *next = strncmp(text, "--- ", 4) == 0 ? text : strstr(text, "\n--- ");
        const size_t length = next ? (size_t)(next - text) + (next != text) : strlen(text);
        put(s, name, text, length);
        if (!next)
            return;
        next += next == text ? 4 : 5;
        const size_t name_length = strcspn(next, "\n");
        name = etch_copy_text(s->arena, next, name_length);
        text = next + name_length + (next[name_length] == '\n');
    }
}

spec_scene specs_load(etch_arena *arena, const char *text)
{
    spec_scene s = {.arena = arena, .folder = "/tmp/etch_specs_XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(s.folder));
    put_all(&s, text);
    s.sym = etch_sym_new(arena);
    s.diags = etch_diags_new(arena);
    s.spec =
        etch_spec_load(arena, s.sym, s.diags, &(etch_spec_source){.path = path_of(&s, "a.etch")}, &s.status);
    ck_assert((s.spec != NULL) == (s.status == ETCH_OK));
    return s;
}

void specs_end(const spec_scene *s)
{
    for (uint32_t i = 0; i < s->files.count; i++)
        remove(path_of(s, s->files.at[i]));
    ck_assert_int_eq(rmdir(s->folder), 0);
}

static void add_place(const spec_scene *s, etch_span span, etch_buf *out)
{
    uint32_t line, column;
    const etch_source *source = etch_source_at(s->diags, span, &line, &column);
    if (!source || span.end == 0)
        return;
    const size_t folder = strlen(s->folder);
    const char *path =
        strncmp(source->path, s->folder, folder) == 0 ? source->path + folder + 1 : source->path;
    etch_buf_printf(out, "%s:%u:%u ", path, line, column);
}

/* Without the name of the folder. */
static void add_text(const spec_scene *s, const char *text, etch_buf *out)
{
    const char *at;
    while ((at = strstr(text, s->folder)) != NULL) {
        etch_buf_add(out, text, (size_t)(at - text));
        text = at + strlen(s->folder) + 1;
    }
    etch_buf_printf(out, "%s\n", text);
}

static void add_labels(const spec_scene *s, const etch_label *labels, const char *kind, etch_buf *out)
{
    for (const etch_label *label = labels; label; label = label->next) {
        etch_buf_printf(out, "  %s ", kind);
        add_place(s, label->span, out);
        add_text(s, label->message, out);
    }
}

const char *specs_messages(const spec_scene *s)
{
    static const char *const severities[] = {"", "warning ", "remark "};
    etch_buf out = {.arena = s->arena};
    etch_buf_puts(&out, "");
    for (const etch_diag *diag = etch_diags_first(s->diags); diag; diag = diag->next) {
        etch_buf_printf(&out, "%sE%04d ", severities[diag->severity], (int)diag->code);
        add_place(s, diag->span, &out);
        add_text(s, diag->message, &out);
        add_labels(s, diag->notes, "note", &out);
        add_labels(s, diag->helps, "help", &out);
    }
    return out.text;
}

const char *specs_settings(const spec_scene *s, const etch_settings *settings)
{
    etch_buf out = {.arena = s->arena};
    etch_buf_puts(&out, "");
    for (uint32_t i = 0; i < settings->count; i++) {
        const etch_setting *setting = &settings->at[i];
        etch_buf_printf(&out, "%s%s = %s (%s)", i ? ", " : "", setting->name,
                        etch_expr_text(s->sym, setting->value), etch_given_by_name(setting->from));
    }
    return out.text;
}

void specs_expect(const char *what, const char *found, const char *expected)
{
    ck_assert_msg(strcmp(found, expected) == 0, "%s\n---- found\n%s\n---- expected\n%s\n----", what, found,
                  expected);
}
