/* Every byte of a trace is what protobuf-c packs, for any number of threads, and as many as the
 * measurement says. */
#include "emitting.h"
#include "jobs.h"
#include "reference.h"
#include "suite.h"
#include "tree.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void compare_trace(etch_arena *arena, const etch_job *job, const char *folder, uint32_t rank)
{
    size_t length, expected_length;
    etch_arena *content = etch_arena_new(etch_arena_mem(arena));
    const char *bytes =
        tree_read(content, etch_text(content, "%s/tiny.%u.et", folder, (unsigned)rank), &length);
    uint8_t *expected = reference_trace(job, rank, &expected_length);
    ck_assert_ptr_nonnull(expected);
    ck_assert_uint_eq(length, expected_length);
    ck_assert_msg(memcmp(bytes, expected, length) == 0, "rank %u differs", (unsigned)rank);
    free(expected);
    etch_arena_free(content);
}

static uint64_t file_size(etch_arena *arena, const char *folder, const char *file)
{
    struct stat info;
    ck_assert_int_eq(stat(etch_text(arena, "%s/%s", folder, file), &info), 0);
    return (uint64_t)info.st_size;
}

static void compare_measure(etch_arena *arena, const etch_job *job, const etch_emit_options *options,
                            etch_emit_result written)
{
    etch_emit_result measured;
    etch_diags *diags = etch_diags_new(arena);
    uint64_t traces = 0;
    ck_assert_int_eq(etch_emit_measure(etch_arena_mem(arena), job, options, diags, &measured), ETCH_OK);
    for (uint32_t rank = 0; rank < job->rank_count; rank++)
        traces += file_size(arena, options->folder, etch_text(arena, "tiny.%u.et", (unsigned)rank));
    uint64_t tables = file_size(arena, options->folder, "comm_group.json") +
                      file_size(arena, options->folder, "manifest.json");
    ck_assert_uint_eq(measured.trace_bytes, traces);
    ck_assert_uint_eq(measured.bytes, traces + tables);
    ck_assert_uint_eq(measured.files, tree_count(options->folder));
    ck_assert_int_eq(memcmp(&measured, &written, sizeof measured), 0);
}

/* Ranks are compared `stride` apart. */
static void check_recipe(etch_arena *arena, const job_recipe *recipe, uint32_t stride)
{
    const char *place = tree_new(arena);
    const etch_job *job = job_make(arena, recipe);
    etch_emit_options options = emitting_options(etch_text(arena, "%s/out", place));
    etch_emit_result result = emitting_works(arena, job, &options);
    for (uint32_t rank = 0; rank < job->rank_count; rank += stride)
        compare_trace(arena, job, options.folder, rank);
    compare_measure(arena, job, &options, result);
    tree_remove(place);
}

static void random_programs(etch_arena *arena)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        job_recipe recipe = {.mesh = {2, 3, 2}, .families = {1, 2, 5, 7}, .classes = 3, .seed = seed};
        recipe.collectives = (uint32_t)(4 + seed % 37);
        recipe.computations = (uint32_t)(seed * seed);
        check_recipe(arena, &recipe, 1);
    }
}

START_TEST(test_random_programs_are_packed_as_protobuf_does)
{
    etch_with_arena(random_programs);
}
END_TEST

static void annotated_programs(etch_arena *arena)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        job_recipe recipe = {.mesh = {2, 3}, .families = {1, 2}, .classes = 2, .annotated = true};
        recipe.seed = seed;
        recipe.collectives = (uint32_t)(4 + seed % 7);
        recipe.computations = (uint32_t)(seed * seed);
        check_recipe(arena, &recipe, 1);
    }
}

START_TEST(test_annotations_are_packed_as_protobuf_does)
{
    etch_with_arena(annotated_programs);
}
END_TEST

/* 2,000 groups of two ranks, then some of many: ids of one to four digits within one family, and across
 * families. */
static void many_groups(etch_arena *arena)
{
    job_recipe recipe = {.mesh = {2, 1000, 2}, .families = {4, 2, 3, 7}, .classes = 2, .collectives = 9};
    recipe.computations = 12;
    recipe.seed = 77;
    check_recipe(arena, &recipe, 1);
}

START_TEST(test_ids_of_all_widths)
{
    etch_with_arena(many_groups);
}
END_TEST

/* Several megabytes a trace: chunks have borders, and ids and dependencies of one to three bytes. */
static void long_programs(etch_arena *arena)
{
    job_recipe recipe = {.mesh = {12, 2}, .families = {1, 2}, .classes = 1, .collectives = 9000};
    recipe.computations = 25000;
    recipe.seed = 5;
    check_recipe(arena, &recipe, 7);
}

START_TEST(test_long_programs)
{
    etch_with_arena(long_programs);
}
END_TEST

/* One node larger than any chunk: 600,000 parents. */
static void one_large_node(etch_arena *arena)
{
    enum { PARENTS = 600000 };
    etch_node *nodes = ETCH_NEW_ARRAY(arena, PARENTS + 2, etch_node);
    uint32_t *deps = ETCH_NEW_ARRAY(arena, PARENTS, uint32_t);
    for (uint32_t i = 0; i < PARENTS + 2; i++)
        nodes[i] = (etch_node){.type = ETCH_NODE_COMP, .flop = 1, .bytes = 1};
    for (uint32_t i = 0; i < PARENTS; i++)
        deps[i] = i;
    nodes[PARENTS].dep_count = PARENTS;
    etch_class_program program = {.nodes = nodes, .node_count = PARENTS + 2, .deps = deps, .names = ""};
    uint32_t class_of = 0;
    etch_job job = {.rank_count = 1, .programs = &program, .program_count = 1, .class_of = &class_of};
    const char *place = tree_new(arena);
    etch_emit_options options = emitting_options(etch_text(arena, "%s/out", place));
    etch_emit_result result = emitting_works(arena, &job, &options);
    compare_trace(arena, &job, options.folder, 0);
    compare_measure(arena, &job, &options, result);
    tree_remove(place);
}

START_TEST(test_a_node_larger_than_a_chunk)
{
    etch_with_arena(one_large_node);
}
END_TEST

static void any_number_of_threads(etch_arena *arena)
{
    static const unsigned threads[] = {0, 1, 2, 3, 8, 1000};
    const char *expected = NULL;
    job_recipe recipe = {
        .mesh = {4, 2, 16}, .families = {4, 3, 7}, .classes = 3, .collectives = 900, .seed = 9};
    recipe.computations = 2500;
    const etch_job *job = job_make(arena, &recipe);
    const char *place = tree_new(arena);
    etch_emit_options options = emitting_options(etch_text(arena, "%s/out", place));
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        options.threads = threads[i];
        emitting_works(arena, job, &options); /* each run replaces the one before it */
        const char *snapshot = tree_snapshot(arena, place);
        if (expected)
            ck_assert_str_eq(snapshot, expected);
        expected = snapshot;
    }
    tree_remove(place);
}

START_TEST(test_any_number_of_threads_writes_the_same)
{
    etch_with_arena(any_number_of_threads);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("emit.bytes");
    ETCH_ADD_TESTS(suite, test_random_programs_are_packed_as_protobuf_does,
                   test_annotations_are_packed_as_protobuf_does, test_ids_of_all_widths, test_long_programs,
                   test_a_node_larger_than_a_chunk, test_any_number_of_threads_writes_the_same);
    return suite;
}
