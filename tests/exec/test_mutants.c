/* The tests of the op table can fail: each column of each row is changed in a copy of the table, and what the
 * tests of that row say must change. */
#define _POSIX_C_SOURCE 200809L
#include "exec_check.h"
#include "exec_profile.h"
#include "exec_traffic.h"
#include "mutations.h"
#include "suite.h"
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the profiles as they are written down ------------------------------------------------------------- */

static const char *profile_path(char path[4096])
{
    snprintf(path, 4096, "%s/tests/exec/rows.txt", getenv("ETCH_SOURCE_DIR"));
    return path;
}

/* What `etch help ops` says, and all cases. */
static const char *all_profiles(etch_arena *arena, const etch_table *table)
{
    etch_buf out = {.arena = arena};
    const exec_case *c;
    for (uint32_t i = 0; (c = exec_case_at(i)) != NULL; i++)
        etch_buf_puts(&out, exec_profile(arena, c, table));
    return out.text;
}

static char *read_profiles(etch_arena *arena)
{
    char path[4096], *text;
    size_t length;
    const char *why;
    ck_assert_int_eq(etch_read_file(arena, profile_path(path), 1 << 24, &text, &length, &why), ETCH_OK);
    return text;
}

/* The first line that differs, of the first text. */
static const char *first_difference(etch_arena *arena, const char *a, const char *b)
{
    const char *line = a;
    for (; *a && *a == *b; a++, b++)
        if (*a == '\n')
            line = a + 1;
    return *a || *b ? etch_copy_text(arena, line, strcspn(line, "\n")) : NULL;
}

static void compare_profiles(etch_arena *arena)
{
    const char *seen = all_profiles(arena, NULL);
    if (getenv("UPDATE")) {
        char path[4096];
        FILE *file = fopen(profile_path(path), "w");
        ck_assert(file && fputs(seen, file) >= 0 && fclose(file) == 0);
    }
    const char *difference = first_difference(arena, seen, read_profiles(arena));
    ck_assert_msg(!difference, "tests/exec/rows.txt differs at: %s (UPDATE=1 takes over what is seen)",
                  difference);
}

START_TEST(rows_cost_what_is_written_down)
{
    etch_with_arena(compare_profiles);
}
END_TEST

/* ---- the tests of one row, with a table ---------------------------------------------------------------- */

typedef struct trial {
    const etch_table *table;
    const char *row;
    witness seen;
    const char *profiles; /* as written down */
} trial;

static bool region_has(const etch_region *region, const char *row)
{
    for (uint32_t i = 0; i < region->items.count; i++)
        if (strcmp(region->items.at[i].op->row->name, row) == 0)
            return true;
    return false;
}

/* Numbers where one of the first three weights, and where every weight, is a partial sum. */
static const char *check_partial(etch_arena *arena, const exec_case *c, const etch_table *table,
                                 uint32_t count)
{
    const exec_case_setting setting = {.table = table, .partial = count};
    exec_model *m = exec_case_build(arena, c, &setting);
    etch_placed *placed = verified(
        etch_place(exec_train(m, NULL), exec_plan(arena, m->sym, "z=2 | Z@z"), ETCH_GRANULARITY_KERNEL));
    const char *failure = placed ? exec_check_placed(placed, 3) : NULL;
    return failure || count > 4 ? failure
                                : check_partial(arena, c, table, count < 4 ? 2 * count : UINT32_MAX);
}

/* Numbers of the whole, of every dim divided by two ranks, and of partial sums. */
static const char *check_numbers(etch_arena *arena, const exec_case *c, const etch_table *table)
{
    exec_case_setting setting = {.table = table};
    const char *failure =
        exec_check_gradients(exec_train(exec_case_build(arena, c, &setting), NULL), 3, true);
    for (uint32_t i = 0; exec_divided_dims[i] && !failure; i++)
        for (uint32_t k = 0; exec_divided_dims[k] && !failure; k++) {
            exec_model *m = exec_case_build(arena, c, &setting);
            const char *text =
                i == k ? etch_text(arena, "a=2 | %s@a", exec_divided_dims[i])
                       : etch_text(arena, "a=2 b=2 | %s@a %s@b", exec_divided_dims[i], exec_divided_dims[k]);
            etch_placed *placed = verified(
                etch_place(exec_train(m, NULL), exec_plan(arena, m->sym, text), ETCH_GRANULARITY_KERNEL));
            failure = placed ? exec_check_placed(placed, 3) : NULL;
        }
    return failure ? failure : check_partial(arena, c, table, 1);
}

/* Bytes of kernels on one rank. */
static const char *check_bytes(etch_arena *arena, const exec_case *c, const etch_table *table)
{
    const exec_case_setting setting = {.table = table};
    exec_model *m = exec_case_build(arena, c, &setting);
    const etch_placed *placed =
        etch_place(exec_train(m, NULL), exec_plan(arena, m->sym, ""), ETCH_GRANULARITY_KERNEL);
    return placed ? exec_check_traffic(placed, 3) : "refused";
}

/* Does a row that the graph has stand in the place of this one, because the model is served? */
static bool stands_for(const char *row, const etch_training *training)
{
    return training->graph->serves && etch_row_named(etch_table_builtin(), row)->serving != NULL;
}

static const char *check_help(etch_arena *arena, const trial *t)
{
    etch_buf seen = {.arena = arena}, expected = {.arena = arena};
    etch_row_describe(etch_row_named(t->table, t->row), &seen);
    etch_row_describe(etch_row_named(etch_table_builtin(), t->row), &expected);
    return strcmp(seen.text, expected.text) == 0 ? NULL : "the help differs";
}

static const char *check_case(etch_arena *arena, const exec_case *c, const trial *t)
{
    if (t->seen == BY_NUMBERS && !is_of_step(etch_row_named(etch_table_builtin(), t->row)))
        return check_numbers(arena, c, t->table);
    if (t->seen == BY_TRAFFIC && !exec_case_way_of(c).serves)
        return check_bytes(arena, c, t->table);
    const char *profile = exec_profile(arena, c, t->table);
    return strstr(t->profiles, profile) ? NULL : "the profile differs";
}

static const char *run_trial(etch_arena *outer, const trial *t)
{
    const char *failure = t->seen == BY_HELP ? check_help(outer, t) : NULL;
    const bool of_step = is_of_step(etch_row_named(etch_table_builtin(), t->row));
    const exec_case *c;
    for (uint32_t i = 0; t->seen != BY_HELP && !failure && (c = exec_case_at(i)) != NULL; i++) {
        etch_arena *arena = etch_arena_new(etch_arena_mem(outer));
        const etch_training *training = exec_train(exec_case_build(arena, c, NULL), NULL);
        const bool has = region_has(training->graph->forward, t->row) ||
                         (training->backward && region_has(training->backward, t->row));
        if (of_step || has || stands_for(t->row, training))
            failure = check_case(arena, c, t);
        if (!failure)
            etch_arena_free(arena);
    }
    return failure;
}

/* Runs the tests of a row in a process of their own: whatever ends them otherwise than well has noticed. */
static bool is_noticed(etch_arena *arena, const trial *t)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "w", stdout))
            _exit(2);
        for (int file = 3; file < 256; file++) /* what Check is told there is not told of this process */
            close(file);
        /* Of its own time: a busy machine is no mistake. An alarm would reach Check, which kills the whole
         * group. */
        if (setrlimit(RLIMIT_CPU, &(struct rlimit){600, 600}) != 0)
            _exit(2);
        _exit(run_trial(arena, t) ? 1 : 0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Changes that make no difference, and why. */
static const struct {
    const char *row, *change, *why;
} equals[] = {
    {"einsum", "grads: arguments", "a product commutes"},
    {"conv", "grads: arguments", "likewise"},
    {"pad_dx", "view: yes", "only a pin divides what it is given; test_rows has one"},
    {"batch_norm", "over: whole", "statistics of parts differ, so no case divides what they are taken of"},
    {"sum", "over: whole", "when called, the dims that it keeps say what `over` does"},
    {"cache", "over: whole", "its map says what `over` does"},
    {"dropout", "extra: like", "its mask has the dims of either"},
    {"token_nll", "extra: like", "its statistics and its result have the same dims"},
    {"ssd_from", "state: like", "its state and its result have the same dims beside positions"},
    {"layer_norm", "grads: another", "that of batch_norm is the same function"},
    {"batch_norm", "grads: another", "that of layer_norm is the same function"},
    {"square", "grads: arguments", "cotangent and operand commute"},
    {"identity", "grads: another", "a renaming of no dim is the identity"},
    {"transpose", "grads: another", "likewise"},
    {"dropout", "grads: arguments", "cotangent and mask commute"},
    {"scatter", "linear: each", "its result has the dim that the rows lack, so no partial sum passes"},
    {"broadcast", "linear: no", "likewise"},
    {"topk", "linear: each", "its result has choices, which scores lack"},
    {"dispatch", "linear: each", "its result has experts, which tokens lack"},
    {"load", "linear: each", "indices are no partial sums"},
    {"max_ties", "role", "it reads nothing that backward makes, so that no kernel before takes it in"},
    {"adamw", "flop: none", "the step's end takes FLOP by element of the weight"},
    {"adamw_8bit", "flop: none", "likewise"},
    {"sgd", "flop: none", "likewise"},
    {"sgd_momentum", "flop: none", "likewise"},
    {"grad_norm", "flop: none", "likewise"},
    {"ema", "flop: none", "likewise"},
};

static bool makes_a_difference(const char *row, const char *change)
{
    for (size_t i = 0; i < sizeof equals / sizeof *equals; i++)
        if (strcmp(equals[i].row, row) == 0 && strcmp(equals[i].change, change) == 0)
            return false;
    return true;
}

/* ---- all of them --------------------------------------------------------------------------------------- */

/* The builtin table with one row made wrong; NULL when the mutation does not apply to it. */
static const etch_table *mutant(etch_arena *arena, const etch_row *row, const mutation *m)
{
    const etch_table *builtin = etch_table_builtin();
    const etch_rows **families = ETCH_NEW_ARRAY(arena, builtin->count, const etch_rows *);
    bool applies = false;
    for (uint32_t f = 0; f < builtin->count; f++) {
        const etch_rows *family = families[f] = builtin->families[f];
        if (row < family->at || row >= family->at + family->count)
            continue;
        etch_row *rows = ETCH_NEW_ARRAY(arena, family->count, etch_row);
        etch_rows *own = ETCH_NEW(arena, etch_rows);
        memcpy(rows, family->at, family->count * sizeof *rows);
        *own = (etch_rows){rows, family->count};
        families[f] = own;
        applies = m->apply(&rows[row - family->at]);
    }
    etch_table *table = ETCH_NEW(arena, etch_table);
    *table = (etch_table){families, builtin->count};
    return applies ? table : NULL;
}

static void try_mutation(etch_arena *arena, const etch_row *row, const mutation *m, const char *profiles,
                         etch_buf *missed)
{
    if (row->compose && m->seen != BY_HELP)
        return; /* its calls are those of other rows */
    const etch_table *table = mutant(arena, row, m);
    const trial t = {.table = table, .row = row->name, .seen = m->seen, .profiles = profiles};
    if (table && is_noticed(arena, &t) != makes_a_difference(row->name, m->name))
        etch_buf_printf(missed, "%s: %s\n", row->name, m->name);
}

static void try_all(etch_arena *arena)
{
    const char *profiles = read_profiles(arena);
    const etch_row *row;
    etch_buf missed = {.arena = arena};
    etch_buf_puts(&missed, "");
    for (uint32_t r = 0; (row = etch_row_at(etch_table_builtin(), r)) != NULL; r++)
        for (const mutation *m = mutations; m->name; m++)
            try_mutation(arena, row, m, profiles, &missed);
    ck_assert_msg(missed.length == 0, "not noticed, or noticed though it makes no difference\n%s",
                  missed.text);
}

START_TEST(every_wrong_column_is_noticed)
{
    etch_with_arena(try_all);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("mutants");
    ETCH_ADD_TESTS(suite, rows_cost_what_is_written_down, every_wrong_column_is_noticed);
    return suite;
}
