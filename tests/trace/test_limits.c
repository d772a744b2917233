/* The programs of a folder, at the bytes that they may have together and above them. The other limits of
 * traces have files for inputs: tests/support/limits.py. */
#define _POSIX_C_SOURCE 200809L

#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/verify_int.h"

enum { PROGRAMS = 3, NODES = 40, EDGES = 39, COMMS = 5 };

/* Of one shape, and different ones for different numbers. */
static etch_rank_program *numbered(uint64_t number)
{
    etch_rank_program *p = etch_program_new(NODES, EDGES, COMMS, true, true);
    ck_assert_ptr_nonnull(p);
    p->values[0] = number;
    return p;
}

START_TEST(programs_fill_their_room)
{
    etch_rank_program *one = numbered(0);
    const size_t size = one->byte_count;
    free(one);
    for (size_t spare = 0; spare < 2; spare++) {
        etch_program_table *table = etch_program_table_new(PROGRAMS * size - 1 + spare);
        ck_assert_ptr_nonnull(table);
        for (uint64_t i = 0; i < PROGRAMS; i++) {
            const bool fits = i + 1 < PROGRAMS || spare;
            ck_assert_int_eq(etch_program_intern(table, numbered(i)) != NULL, fits);
            /* an equal one takes no room */
            ck_assert_int_eq(etch_program_intern(table, numbered(i)) != NULL, fits);
        }
        ck_assert_uint_eq(etch_program_table_count(table), PROGRAMS);
        etch_program_table_free(table);
    }
}
END_TEST

static const char text[] = "file t.0.et\nmetadata \"0.0.4\"\n"
                           "node 0 COMP \"a\"\n  bool_val is_cpu_op = false\n  int64_val num_ops = 8\n"
                           "  uint64_val tensor_size = 65536\n";

/* What a folder comes to whose programs may have `bytes`. */
static etch_status verified(etch_arena *arena, size_t bytes, etch_code *code)
{
    char folder[] = "/tmp/etch-limits-XXXXXX", path[64], inside[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(inside, sizeof inside, "%s/t", folder);
    etch_diags *diags = etch_diags_new(arena);
    const etch_source *source = etch_source_add(diags, "text", text, strlen(text));
    etch_assembly assembly;
    const etch_assemble_options assembling = {.folder = inside};
    ck_assert_int_eq(etch_trace_assemble(arena, source, &assembling, diags, &assembly), ETCH_OK);
    const etch_verify_options options = {.path = inside, .program_bytes = bytes};
    etch_verify_result result;
    etch_status status = etch_verify(arena, &options, diags, &result);
    *code = etch_diags_first(diags) ? etch_diags_first(diags)->code : ETCH_NO_CODE;
    (void)snprintf(path, sizeof path, "%s/t/t.0.et", folder);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(inside), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    return status;
}

static void too_large_programs_are_refused(etch_arena *arena)
{
    etch_rank_program *one = etch_program_new(1, 0, 0, false, false);
    const size_t size = one->byte_count;
    free(one);
    etch_code code;
    ck_assert_int_eq(verified(arena, size, &code), ETCH_OK);
    ck_assert_int_eq(code, ETCH_NO_CODE);
    ck_assert_int_eq(verified(arena, size - 1, &code), ETCH_ELIMIT);
    ck_assert_int_eq(code, ETCH_E_VERIFY_LIMIT);
}

START_TEST(too_large_programs)
{
    etch_with_arena(too_large_programs_are_refused);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("limits");
    ETCH_ADD_TESTS(suite, programs_fill_their_room, too_large_programs);
    return suite;
}
