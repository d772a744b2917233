#include "emitting.h"

#include "suite.h"

#include <string.h>

etch_emit_options emitting_options(const char *folder)
{
    return (etch_emit_options){.folder = folder,
                               .name = "tiny",
                               .tool_version = "0.1.0",
                               .spec_sha256 =
                                   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                               .threads = 2};
}

static void expect(const etch_diags *diags, etch_code code, const char *text, etch_arena *arena)
{
    etch_buf out = {.arena = arena};
    const etch_diag *first = etch_diags_first(diags);
    ck_assert_ptr_nonnull(first);
    etch_diags_render(diags, &out);
    ck_assert_msg(first->code == code && strstr(out.text, text), "expected '%s', found:\n%s", text, out.text);
}

etch_emit_result emitting_works(etch_arena *arena, const etch_job *job, const etch_emit_options *options)
{
    etch_emit_result result;
    etch_diags *diags = etch_diags_new(arena);
    etch_status status = etch_emit(etch_arena_mem(arena), job, options, diags, &result);
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    etch_diags_render(diags, &out);
    ck_assert_msg(status == ETCH_OK, "status %d:\n%s", (int)status, out.text);
    ck_assert_msg(!etch_diags_first(diags), "unexpected:\n%s", out.text);
    return result;
}

void emitting_fails(etch_arena *arena, const etch_job *job, const etch_emit_options *options,
                    etch_status status, etch_code code, const char *text)
{
    etch_emit_result result;
    etch_diags *diags = etch_diags_new(arena);
    ck_assert_int_eq(etch_emit(etch_arena_mem(arena), job, options, diags, &result), status);
    ck_assert_uint_eq(etch_error_count(diags), 1);
    expect(diags, code, text, arena);
}

void emitting_warns(etch_arena *arena, const etch_job *job, const etch_emit_options *options, etch_code code,
                    const char *text)
{
    etch_emit_result result;
    etch_diags *diags = etch_diags_new(arena);
    ck_assert_int_eq(etch_emit(etch_arena_mem(arena), job, options, diags, &result), ETCH_OK);
    ck_assert_uint_eq(etch_error_count(diags), 0);
    expect(diags, code, text, arena);
}
