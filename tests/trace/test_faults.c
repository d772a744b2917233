/* Memory runs out at many points of an assembly and of a dump: they say so, and leave nothing behind. */
#define _POSIX_C_SOURCE 200809L

#include "suite.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/trace.h"

#define FOLDER "faults"
enum { NODES = 3000 };

/* A call that is to fail, and the place where memory runs out. */
typedef struct attempt {
    etch_mem *mem;
    size_t fail_after; /* chunk requests; 0: never */
    etch_dump_form form;
    size_t written;
} attempt;

static bool count(void *data, const char *text, size_t length)
{
    attempt *a = data;
    (void)text;
    a->written += length;
    return true;
}

/* Two traces of many nodes in many groups, so that every buffer and table grows. */
static const char *make_text(etch_arena *arena)
{
    etch_buf text = {.arena = arena};
    etch_buf_puts(&text, "file t.0.et t.1.et\nmetadata \"0.0.4\"\n");
    for (unsigned i = 0; i < NODES; i++)
        etch_buf_printf(&text,
                        "node %u COMM_COLL \"reduce %u\"\n  int64_val comm_type = 0\n"
                        "  int64_val comm_size = 64\n  string_val pg_name = \"%u\"\n",
                        i, i, i + 1);
    etch_buf_puts(&text, "file comm_group.json\n| {}\n");
    return text.text;
}

static etch_status assemble(void *data)
{
    const attempt *a = data;
    etch_arena *arena = etch_arena_new(a->mem);
    etch_diags *diags = etch_diags_new(arena);
    const char *text = make_text(arena);
    const etch_source *source = etch_source_add(diags, "text", text, strlen(text));
    etch_assembly assembly;
    etch_mem_fail_after(a->mem, a->fail_after);
    return etch_trace_assemble(arena, source, &(etch_assemble_options){.folder = FOLDER}, diags, &assembly);
}

static etch_status dump(void *data)
{
    attempt *a = data;
    etch_arena *arena = etch_arena_new(a->mem);
    etch_diags *diags = etch_diags_new(arena);
    const etch_dump_options options = {.path = FOLDER, .form = a->form, .out = {count, a}};
    etch_mem_fail_after(a->mem, a->fail_after);
    return etch_trace_dump(arena, &options, diags);
}

static etch_status try(etch_status (*body)(void *data), attempt *a)
{
    a->mem = etch_mem_new((size_t)256 << 20);
    ck_assert_ptr_nonnull(a->mem);
    etch_status status = etch_guard(a->mem, body, a);
    etch_mem_free(a->mem);
    return status;
}

/* Fails requests of `body`: each of the first, then ever fewer, because in a build with plain arenas each
 * object is one. Returns how many there are, nearly. */
static size_t fail_many(etch_status (*body)(void *data), attempt *a, void (*check)(void))
{
    for (a->fail_after = 1;; a->fail_after += 1 + a->fail_after / 20) {
        etch_status status = try(body, a);
        if (status == ETCH_OK)
            return a->fail_after - 1;
        ck_assert_int_eq(status, ETCH_ENOMEM);
        check();
    }
}

static void remove_folder(void)
{
    static const char *const files[] = {"t.0.et", "t.1.et", "comm_group.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", FOLDER, files[i]);
        unlink(path);
    }
    rmdir(FOLDER);
}

static void check_nothing_there(void)
{
    struct stat info;
    char hidden[64];
    snprintf(hidden, sizeof hidden, ".etch-%ld-0", (long)getpid());
    ck_assert_int_ne(lstat(FOLDER, &info), 0);
    ck_assert_int_ne(lstat(hidden, &info), 0);
}

static void check_nothing(void)
{
}

START_TEST(memory_runs_out)
{
    attempt a = {.form = ETCH_DUMP_TEXT};
    remove_folder();
    ck_assert_uint_gt(fail_many(assemble, &a, check_nothing_there), 0);
    static const etch_dump_form forms[] = {ETCH_DUMP_SUMMARY, ETCH_DUMP_JSON, ETCH_DUMP_TEXT};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        a.form = forms[i];
        ck_assert_uint_gt(fail_many(dump, &a, check_nothing), 0);
    }
    remove_folder();
}
END_TEST

/* A sink that is full ends a dump. */
static bool refuse(void *data, const char *text, size_t length)
{
    (void)data;
    (void)text;
    return length == 0;
}

static etch_status dump_into_nothing(void *data)
{
    const attempt *a = data;
    etch_arena *arena = etch_arena_new(a->mem);
    const etch_dump_options options = {.path = FOLDER, .form = a->form, .out = {refuse, NULL}};
    return etch_trace_dump(arena, &options, etch_diags_new(arena));
}

START_TEST(nobody_takes_the_text)
{
    attempt a = {.form = ETCH_DUMP_JSON};
    remove_folder();
    ck_assert_int_eq(try(assemble, &a), ETCH_OK);
    ck_assert_int_eq(try(dump_into_nothing, &a), ETCH_EIO);
    a.form = ETCH_DUMP_SUMMARY;
    ck_assert_int_eq(try(dump_into_nothing, &a), ETCH_EIO);
    remove_folder();
}
END_TEST

/* A dump that was cancelled ends soon. */
static etch_status dump_cancelled(void *data)
{
    const attempt *a = data;
    atomic_int cancel = 1;
    etch_arena *arena = etch_arena_new(a->mem);
    const etch_dump_options options = {
        .path = FOLDER, .form = a->form, .out = {refuse, NULL}, .cancel = &cancel};
    return etch_trace_dump(arena, &options, etch_diags_new(arena));
}

START_TEST(somebody_cancels)
{
    attempt a = {.form = ETCH_DUMP_TEXT};
    remove_folder();
    ck_assert_int_eq(try(assemble, &a), ETCH_OK);
    ck_assert_int_eq(try(dump_cancelled, &a), ETCH_ELIMIT);
    remove_folder();
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("trace faults");
    ETCH_ADD_TESTS(suite, memory_runs_out, nobody_takes_the_text, somebody_cancels);
    return suite;
}
