/* What may not become a trace, what is warned of, and the hash of a spec. */
#include "emitting.h"
#include "jobs.h"
#include "suite.h"
#include "tree.h"

#include <string.h>

static const job_recipe recipe = {
    .mesh = {4, 2}, .families = {1, 2}, .classes = 1, .collectives = 6, .computations = 40, .seed = 11};

/* ---- rules --------------------------------------------------------------------------------------------- */

/* Breaks one rule in a job; `nodes` are those of its only program. */
typedef struct breach {
    void (*commit)(etch_arena *arena, etch_job *job, etch_node *nodes);
    etch_status status;
    etch_code code;
    const char *text;
} breach;

static etch_node *first_of(etch_job *job, etch_node *nodes, uint8_t type)
{
    for (uint32_t i = 1; i < job->programs[0].node_count; i++)
        if (nodes[i].type == type)
            return &nodes[i];
    return NULL;
}

static void no_flop(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)arena;
    first_of(job, nodes, ETCH_NODE_COMP)->flop = 0;
}

static void no_bytes(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)arena;
    first_of(job, nodes, ETCH_NODE_COMP)->bytes = 0;
}

static void too_many_flop(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)arena;
    first_of(job, nodes, ETCH_NODE_COMP)->flop = (uint64_t)INT64_MAX + 1;
}

static void too_large_payload(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)arena;
    first_of(job, nodes, ETCH_NODE_COLL)->bytes = UINT64_MAX;
}

static void too_small_payload(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)arena;
    first_of(job, nodes, ETCH_NODE_COLL)->bytes = 63;
}

static void unknown_collective(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)arena;
    first_of(job, nodes, ETCH_NODE_COLL)->collective = 5;
}

static void unknown_family(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)arena;
    first_of(job, nodes, ETCH_NODE_COLL)->family = 2;
}

static void unknown_type(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)arena;
    first_of(job, nodes, ETCH_NODE_COMP)->type = 1;
}

/* Gives the second node these parents. */
static void set_deps(etch_arena *arena, etch_job *job, etch_node *nodes, uint32_t first, uint32_t second)
{
    uint32_t *deps = ETCH_NEW_ARRAY(arena, 2, uint32_t);
    etch_class_program *program = ETCH_NEW(arena, etch_class_program);
    deps[0] = first;
    deps[1] = second;
    *program =
        (etch_class_program){.nodes = nodes, .node_count = 4, .deps = deps, .names = job->programs[0].names};
    for (uint32_t i = 0; i < program->node_count; i++)
        nodes[i] = (etch_node){.type = ETCH_NODE_COMP, .flop = 1, .bytes = 1, .dep_count = i == 3 ? 2 : 0};
    job->programs = program;
}

static void duplicate_dep(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    set_deps(arena, job, nodes, 1, 1);
}

static void unordered_deps(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    set_deps(arena, job, nodes, 2, 1);
}

static void own_dep(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    set_deps(arena, job, nodes, 1, 3);
}

static void empty_program(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)nodes;
    job->programs = ETCH_NEW(arena, etch_class_program);
}

static void no_ranks(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)arena, (void)nodes;
    job->rank_count = 0;
}

static void unknown_class(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)nodes;
    uint32_t *class_of = ETCH_NEW_ARRAY(arena, job->rank_count, uint32_t);
    class_of[3] = 1;
    job->class_of = class_of;
}

static etch_group_family *own_families(etch_arena *arena, etch_job *job)
{
    etch_group_family *families = ETCH_NEW_ARRAY(arena, job->family_count, etch_group_family);
    memcpy(families, job->families, job->family_count * sizeof *families);
    job->families = families;
    return families;
}

static void group_of_one(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)nodes;
    etch_group_family *families = own_families(arena, job);
    families[1].size = 1;
    families[1].count = job->rank_count;
}

static void missing_member(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)nodes;
    own_families(arena, job)[0].size--;
}

static void gap_in_ids(etch_arena *arena, etch_job *job, etch_node *nodes)
{
    (void)nodes;
    own_families(arena, job)[1].first_id++;
}

static const breach breaches[] = {
    {no_flop, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "computes nothing"},
    {no_bytes, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "moves nothing"},
    {too_many_flop, ETCH_ELIMIT, ETCH_E_TRACE_VALUE, "9223372036854775808 FLOP"},
    {too_large_payload, ETCH_ELIMIT, ETCH_E_TRACE_VALUE, "18446744073709551615 bytes"},
    {too_small_payload, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "less than 64 bytes"},
    {unknown_collective, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "no known collective"},
    {unknown_family, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "in no group"},
    {unknown_type, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "no known type"},
    {duplicate_dep, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "dependencies out of order"},
    {unordered_deps, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "dependencies out of order"},
    {own_dep, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "dependencies out of order"},
    {empty_program, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "a program without nodes"},
    {no_ranks, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "no ranks"},
    {unknown_class, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "a rank without a program"},
    {group_of_one, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "a group of one rank"},
    {missing_member, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "do not cover the ranks"},
    {gap_in_ids, ETCH_EINTERNAL, ETCH_E_TRACE_RULE, "ids that do not follow each other"},
};

static void broken_rules(etch_arena *arena)
{
    const char *place = tree_new(arena);
    etch_emit_options options = emitting_options(etch_text(arena, "%s/out", place));
    for (size_t i = 0; i < sizeof breaches / sizeof *breaches; i++) {
        etch_node *nodes;
        etch_job *job = job_copy(arena, job_make(arena, &recipe), &nodes);
        breaches[i].commit(arena, job, nodes);
        emitting_fails(arena, job, &options, breaches[i].status, breaches[i].code, breaches[i].text);
        ck_assert_uint_eq(tree_count(place), 0);
    }
    tree_remove(place);
}

START_TEST(test_broken_rules_are_found_before_anything_is_written)
{
    etch_with_arena(broken_rules);
}
END_TEST

/* ---- warnings ------------------------------------------------------------------------------------------ */

/* What the measurement warns of; a NULL text: of nothing. */
static void measures(etch_arena *arena, const etch_job *job, etch_code code, const char *text)
{
    etch_emit_options options = emitting_options(NULL);
    options.groups = ETCH_GROUPS_FILE;
    etch_emit_result result;
    etch_diags *diags = etch_diags_new(arena);
    ck_assert_int_eq(etch_emit_measure(etch_arena_mem(arena), job, &options, diags, &result), ETCH_OK);
    ck_assert_uint_eq(result.files, job->rank_count + 2);
    const etch_diag *first = etch_diags_first(diags);
    ck_assert_int_eq(first != NULL, text != NULL);
    if (!first)
        return;
    ck_assert_int_eq(first->severity, ETCH_WARNING);
    ck_assert_int_eq(first->code, code);
    ck_assert_ptr_nonnull(strstr(first->message, text));
}

static void many_groups(etch_arena *arena)
{
    static const job_recipe most = {
        .mesh = {2, 2144}, .families = {1, 2, 3}, .classes = 1, .collectives = 3, .seed = 1};
    static const job_recipe more = {
        .mesh = {2, 2145}, .families = {1, 2, 3}, .classes = 1, .collectives = 3, .seed = 1};
    measures(arena, job_make(arena, &most), ETCH_E_TRACE_GROUPS, NULL);
    measures(arena, job_make(arena, &more), ETCH_E_TRACE_GROUPS, "2148 groups");
}

START_TEST(test_more_groups_than_simulators_number_are_warned_of)
{
    etch_with_arena(many_groups);
}
END_TEST

static void many_nodes(etch_arena *arena)
{
    enum { MOST = 1 << 20 };
    etch_node *nodes = ETCH_NEW_ARRAY(arena, MOST + 1, etch_node);
    for (uint32_t i = 0; i <= MOST; i++)
        nodes[i] = (etch_node){.type = ETCH_NODE_COMP, .flop = 1, .bytes = 1};
    etch_class_program program = {.nodes = nodes, .node_count = MOST, .names = ""};
    uint32_t class_of = 0;
    etch_job job = {.rank_count = 1, .programs = &program, .program_count = 1, .class_of = &class_of};
    measures(arena, &job, ETCH_E_TRACE_NODES, NULL);
    program.node_count = MOST + 1;
    measures(arena, &job, ETCH_E_TRACE_NODES, "1048577 nodes");
}

START_TEST(test_more_nodes_than_readers_take_are_warned_of)
{
    etch_with_arena(many_nodes);
}
END_TEST

static void path_without_groups(etch_arena *arena)
{
    const char *place = tree_new(arena);
    etch_emit_options options = emitting_options(etch_text(arena, "%s/not-empty", place));
    emitting_warns(arena, job_make(arena, &recipe), &options, ETCH_E_OUTPUT_EMPTY, "not-empty");
    tree_remove(place);
}

START_TEST(test_paths_that_hide_the_groups_are_warned_of)
{
    etch_with_arena(path_without_groups);
}
END_TEST

/* ---- without groups, and the hash ---------------------------------------------------------------------- */

static void no_groups(etch_arena *arena)
{
    static const job_recipe alone = {.mesh = {3}, .classes = 2, .computations = 5, .seed = 2};
    size_t length;
    const char *place = tree_new(arena);
    etch_emit_options options = emitting_options(etch_text(arena, "%s/empty", place)); /* no warning */
    etch_emit_result result = emitting_works(arena, job_make(arena, &alone), &options);
    ck_assert_uint_eq(result.groups, 0);
    ck_assert_str_eq(tree_read(arena, etch_text(arena, "%s/empty/comm_group.json", place), &length), "{}\n");
    tree_remove(place);
}

START_TEST(test_without_groups_the_group_file_is_an_empty_object)
{
    etch_with_arena(no_groups);
}
END_TEST

/* The examples of FIPS 180-2, whole and in pieces. */
START_TEST(test_hashes)
{
    char text[ETCH_SHA256_TEXT];
    etch_sha256(NULL, 0, text);
    ck_assert_str_eq(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    etch_sha256(&(etch_piece){"abc", 3}, 1, text);
    ck_assert_str_eq(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const etch_piece pieces[] = {
        {"abcdbcdecdefdefgefghfghighijhi", 30}, {NULL, 0}, {"jkijkljklmklmnlmnomnopnopq", 26}};
    etch_sha256(pieces, 3, text);
    ck_assert_str_eq(text, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("emit.rules");
    ETCH_ADD_TESTS(suite, test_broken_rules_are_found_before_anything_is_written,
                   test_more_groups_than_simulators_number_are_warned_of,
                   test_more_nodes_than_readers_take_are_warned_of,
                   test_paths_that_hide_the_groups_are_warned_of,
                   test_without_groups_the_group_file_is_an_empty_object, test_hashes);
    return suite;
}
