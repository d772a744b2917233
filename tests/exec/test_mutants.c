/* The tests of the op table can fail: each column of each row is changed in a copy of the table, and what the
 * tests of that row say must change. */
#define _POSIX_C_SOURCE 200809L
#include "exec_check.h"
#include "exec_profile.h"
#include "exec_traffic.h"
#include "mutations.h"
#include "suite.h"
#include "verify.h"

#include "graph/ir/families/family.h"

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

/* ---- mutations ----------------------------------------------------------------------------------------- */

/* Is it a row of the step's end, a move, or one that calls become others of: one that no graph has? */
static bool is_of_step(const etch_row *row)
{
    return row->role == ETCH_ROLE_RESHARD || row->use == ETCH_USE_AVERAGE || row->use == ETCH_USE_NORM ||
           row->use == ETCH_USE_EMA || row->work;
}

/* A row that backward alone has: it divides its work as its forward op does, and partial sums pass as that
 * says. */
static bool is_derived(const etch_row *row)
{
    return !row->shape && !row->several && !row->compose;
}

/* Counts more by a constant that counts; the derivation asks for what a sum of cotangents costs. */
static bool more_flop(etch_row *row, uint32_t constant)
{
    bool applies = row->flop.by && row->flop.constants[constant] > 0 && row->use != ETCH_USE_TOTAL;
    row->flop.constants[constant]++;
    return applies;
}
static bool more_flop_first(etch_row *row)
{
    return more_flop(row, 0);
}
static bool more_flop_second(etch_row *row)
{
    return more_flop(row, 1);
}
static bool more_flop_third(etch_row *row)
{
    return more_flop(row, 2);
}
static bool more_flop_fourth(etch_row *row)
{
    return more_flop(row, 3);
}

static bool no_flop(etch_row *row)
{
    bool applies = row->flop.by && row->use != ETCH_USE_TOTAL;
    row->flop.by = NULL;
    return applies;
}

static bool some_flop(etch_row *row)
{
    bool applies = !row->flop.by && row->role != ETCH_ROLE_RESHARD && row->use != ETCH_USE_AVERAGE;
    row->flop.by = &etch_flop_per_result;
    row->flop.constants[0] = 1;
    return applies;
}

/* Lets an axis divide what the op needs as a whole. */
static bool let_pass(const etch_row *row, etch_factor *factor)
{
    bool applies = *factor != ETCH_FACTOR_PASS && !is_derived(row);
    *factor = ETCH_FACTOR_PASS;
    return applies;
}
static bool over_passes(etch_row *row)
{
    return let_pass(row, &row->over);
}
static bool dot_passes(etch_row *row)
{
    return let_pass(row, &row->dot);
}
static bool state_passes(etch_row *row)
{
    return let_pass(row, &row->state);
}

/* Gathers what could stay divided. */
static bool over_is_whole(etch_row *row)
{
    bool applies = row->over != ETCH_FACTOR_WHOLE && (etch_row_takes(row) & ETCH_KW_OVER) &&
                   row->use != ETCH_USE_AVERAGE;
    row->over = ETCH_FACTOR_WHOLE;
    return applies;
}

static bool partial_passes(etch_row *row)
{
    bool applies = row->linear == ETCH_LINEAR_NO && !is_of_step(row) && !is_derived(row);
    row->linear = ETCH_LINEAR_EACH;
    return applies;
}

static bool is_gradient_of_none(const etch_row *row)
{
    return !row->grads || !row->grads[0].row;
}

/* Copies the rules so that one can be changed. */
static etch_grad *own_rules(etch_row *row)
{
    static etch_grad rules[8];
    uint32_t count = 0;
    while (row->grads[count].row)
        rules[count] = row->grads[count], count++;
    rules[count] = (etch_grad){NULL, NULL, NULL};
    row->grads = rules;
    return rules;
}

static bool first_rule_lost(etch_row *row)
{
    if (is_gradient_of_none(row))
        return false;
    row->grads++;
    return true;
}

static bool last_rule_lost(etch_row *row)
{
    if (is_gradient_of_none(row) || !row->grads[1].row)
        return false;
    etch_grad *rules = own_rules(row);
    uint32_t last = 0;
    while (rules[last + 1].row)
        last++;
    rules[last] = (etch_grad){NULL, NULL, NULL};
    return true;
}

/* The gradient of another function: of those with the same arguments, the last one in the table. */
static bool another_gradient(etch_row *row)
{
    if (is_gradient_of_none(row))
        return false;
    const etch_table *table = etch_table_builtin();
    const etch_row *each;
    etch_grad *rule = own_rules(row);
    const char *found = NULL;
    for (uint32_t i = 0; (each = etch_row_at(table, i)) != NULL; i++) {
        /* A row without keywords has not what those with keywords read. */
        const etch_grad *other = row->needs || !each->needs ? each->grads : NULL;
        for (; other && other->row; other++)
            if (strcmp(other->args, rule->args) == 0 && strcmp(other->row, rule->row) != 0 &&
                strcmp(other->into, rule->into) == 0) {
                found = other->row;
            }
    }
    if (found)
        rule->row = found;
    return found != NULL;
}

/* The cotangent comes last instead of first. */
static bool arguments_turned(etch_row *row)
{
    if (is_gradient_of_none(row) || !strchr(row->grads->args, ' '))
        return false;
    static char turned[64];
    const char *space = strchr(row->grads->args, ' ');
    snprintf(turned, sizeof turned, "%s %.*s", space + 1, (int)(space - row->grads->args), row->grads->args);
    own_rules(row)->args = turned;
    return true;
}

/* Two operands get each other's cotangent. */
static bool targets_turned(etch_row *row)
{
    if (is_gradient_of_none(row) || !strchr(row->grads->into, ' '))
        return false;
    static char turned[32];
    snprintf(turned, sizeof turned, "%s", row->grads->into);
    turned[0] = row->grads->into[2];
    turned[2] = row->grads->into[0];
    own_rules(row)->into = turned;
    return true;
}

static bool map_not_inverted(etch_row *row)
{
    bool applies = row->inverts_map;
    row->inverts_map = false;
    return applies;
}

static bool no_view(etch_row *row)
{
    bool applies = row->view;
    row->view = false;
    return applies;
}

static bool a_view(etch_row *row)
{
    bool applies = !row->view && row->role == ETCH_ROLE_FREE;
    row->view = true;
    return applies;
}

static bool other_scores(etch_row *row)
{
    bool applies = row->divide || (etch_row_takes(row) & ETCH_KW_STATE) || row->scores_first > 0;
    row->scores_first ^= 1;
    return applies;
}

static bool no_division(etch_row *row)
{
    bool applies = row->divide != NULL;
    row->divide = NULL;
    return applies;
}

static bool other_routing(etch_row *row)
{
    bool applies = row->routing != ETCH_ROUTING_NONE;
    row->routing = row->routing == ETCH_ROUTING_FILLS ? ETCH_ROUTING_EMPTIES : ETCH_ROUTING_FILLS;
    return applies;
}

static bool no_statistic(etch_row *row)
{
    bool applies = row->stat_reductions > 0;
    row->stat_reductions--;
    return applies;
}

static bool extra_lost(etch_row *row)
{
    bool applies = row->extra.name != NULL && !row->stays;
    row->extra.name = NULL;
    return applies;
}

/* What the run before has left is any number, so that only profiles tell which. */
static bool state_lost(etch_row *row)
{
    bool applies = row->extra.name != NULL && row->stays;
    row->extra.name = NULL;
    return applies;
}

static bool extra_of_another(etch_row *row)
{
    bool applies = row->extra.name != NULL && !row->stays;
    row->extra.like = row->extra.like == ETCH_EXTRA_AS_RESULT ? ETCH_EXTRA_OF(0) : ETCH_EXTRA_AS_RESULT;
    return applies;
}

static bool state_of_another(etch_row *row)
{
    bool applies = row->extra.name != NULL && row->stays;
    row->extra.like = row->extra.like == ETCH_EXTRA_AS_RESULT ? ETCH_EXTRA_OF(0) : ETCH_EXTRA_AS_RESULT;
    return applies;
}

static bool extra_of_all(etch_row *row)
{
    bool applies = row->extra_reads != 0;
    row->extra_reads = 0;
    return applies;
}

static bool extra_wider(etch_row *row)
{
    bool applies = row->extra.name != NULL && !row->extra.dtype_as_result;
    row->extra.dtype = ETCH_F64;
    return applies;
}

static bool extra_of_a_dtype(etch_row *row)
{
    bool applies = row->extra.dtype_as_result;
    row->extra.dtype_as_result = false;
    row->extra.dtype = ETCH_F64;
    return applies;
}

static bool other_dtype(etch_row *row)
{
    bool applies = !is_derived(row) && !is_of_step(row); /* derived results: of what they derive from */
    row->dtype = row->dtype == ETCH_RESULT_F32 ? ETCH_RESULT_ACT : ETCH_RESULT_F32;
    return applies;
}

static bool no_product(etch_row *row)
{
    bool applies = row->matmul;
    row->matmul = false;
    return applies;
}

static bool a_product(etch_row *row)
{
    bool applies = !row->matmul && row->flop.by && row->role != ETCH_ROLE_PRODUCT && !is_of_step(row);
    row->matmul = true;
    return applies;
}

static bool other_role(etch_row *row)
{
    bool applies =
        row->role == ETCH_ROLE_KERNEL || row->role == ETCH_ROLE_POINTWISE || row->role == ETCH_ROLE_PRODUCT;
    row->role = row->role == ETCH_ROLE_POINTWISE ? ETCH_ROLE_KERNEL : ETCH_ROLE_POINTWISE;
    return applies && !is_of_step(row) && row->use != ETCH_USE_TOTAL;
}

static bool touches_all(etch_row *row)
{
    bool applies = row->touch != ETCH_TOUCH_ALL;
    row->touch = ETCH_TOUCH_ALL;
    return applies;
}

static bool no_partial_passes(etch_row *row)
{
    bool applies =
        row->linear != ETCH_LINEAR_NO && !row->view && row->use != ETCH_USE_TOTAL; /* a rule of its own */
    row->linear = ETCH_LINEAR_NO;
    return applies;
}

static bool never_elided(etch_row *row)
{
    bool applies = row->elide_same;
    row->elide_same = false;
    return applies;
}

static bool other_shape(etch_row *row)
{
    bool applies =
        !is_derived(row) && row->use != ETCH_USE_PRODUCT && row->use != ETCH_USE_QUOTIENT && !is_of_step(row);
    row->shape = NULL;
    row->several = NULL;
    return applies;
}

static bool unused(etch_row *row)
{
    const etch_use was = row->use;
    row->use = ETCH_USE_NONE;
    return was != ETCH_USE_NONE && was != ETCH_USE_ALL_TO_ALL && was != ETCH_USE_SLICE_SHARD &&
           was != ETCH_USE_REDUCE_SCATTER && was != ETCH_USE_PERMUTE;
}

static bool one_operand_less(etch_row *row)
{
    bool applies = strchr(row->operands, ' ') != NULL;
    if (applies)
        row->operands = strchr(row->operands, ' ') + 1;
    return applies;
}

static bool takes_nothing(etch_row *row)
{
    bool applies = etch_row_takes(row) != 0;
    row->needs = row->options = 0;
    return applies;
}

static bool needs_nothing(etch_row *row)
{
    bool applies = row->needs != 0;
    row->options |= row->needs;
    row->needs = 0;
    return applies;
}

static bool no_lead(etch_row *row)
{
    bool applies = row->lead != 0 && !is_derived(row);
    row->lead = 0;
    return applies;
}

static bool no_links(etch_row *row)
{
    bool applies = row->links;
    row->links = false;
    return applies;
}

static bool nothing_again(etch_row *row)
{
    bool applies = row->flop.again > 0;
    row->flop.again = 0;
    return applies;
}

static bool no_family(etch_row *row)
{
    bool applies = row->family != ETCH_FAMILY_NONE;
    row->family = ETCH_FAMILY_NONE;
    return applies;
}

static bool a_norm(etch_row *row)
{
    bool applies = row->family == ETCH_FAMILY_NONE && !row->matmul && row->role != ETCH_ROLE_RESHARD &&
                   row->flop.by && !is_of_step(row);
    row->family = ETCH_FAMILY_NORM;
    return applies;
}

static bool other_help(etch_row *row)
{
    row->help = "";
    return true;
}

static bool does_not_stay(etch_row *row)
{
    bool applies = row->stays != 0;
    row->stays = 0;
    return applies;
}

static bool not_served(etch_row *row)
{
    bool applies = row->serving != NULL;
    row->serving = NULL;
    return applies;
}

static bool always_served(etch_row *row)
{
    bool applies = row->serving_if != 0;
    row->serving_if = 0;
    return applies;
}

static const mutation mutations[] = {
    {"constants: first", BY_NUMBERS, more_flop_first},
    {"constants: second", BY_NUMBERS, more_flop_second},
    {"constants: third", BY_NUMBERS, more_flop_third},
    {"constants: fourth", BY_NUMBERS, more_flop_fourth},
    {"flop: none", BY_NUMBERS, no_flop},
    {"flop: some", BY_NUMBERS, some_flop},
    {"over: pass", BY_NUMBERS, over_passes},
    {"over: whole", BY_PROFILE, over_is_whole},
    {"dot: pass", BY_NUMBERS, dot_passes},
    {"state: pass", BY_NUMBERS, state_passes},
    {"linear: each", BY_NUMBERS, partial_passes},
    {"linear: no", BY_PROFILE, no_partial_passes},
    {"grads: first lost", BY_NUMBERS, first_rule_lost},
    {"grads: last lost", BY_NUMBERS, last_rule_lost},
    {"grads: another", BY_NUMBERS, another_gradient},
    {"grads: arguments", BY_NUMBERS, arguments_turned},
    {"grads: targets", BY_NUMBERS, targets_turned},
    {"inverts_map", BY_NUMBERS, map_not_inverted},
    {"view: no", BY_PROFILE, no_view},
    {"view: yes", BY_NUMBERS, a_view},
    {"scores_first", BY_NUMBERS, other_scores},
    {"divide", BY_NUMBERS, no_division},
    {"stat_reductions", BY_PROFILE, no_statistic},
    {"extra: none", BY_NUMBERS, extra_lost},
    {"extra: like", BY_NUMBERS, extra_of_another},
    {"extra: dtype", BY_PROFILE, extra_wider},
    {"extra_reads", BY_NUMBERS, extra_of_all},
    {"dtype", BY_PROFILE, other_dtype},
    {"matmul: no", BY_PROFILE, no_product},
    {"matmul: yes", BY_PROFILE, a_product},
    {"role", BY_PROFILE, other_role},
    {"touch", BY_TRAFFIC, touches_all},
    {"elide_same", BY_PROFILE, never_elided},
    {"shape", BY_NUMBERS, other_shape},
    {"use", BY_PROFILE, unused},
    {"lead", BY_PROFILE, no_lead},
    {"links", BY_NUMBERS, no_links},
    {"routing", BY_PROFILE, other_routing},
    {"again", BY_PROFILE, nothing_again},
    {"family: none", BY_PROFILE, no_family},
    {"family: norm", BY_PROFILE, a_norm},
    {"stays", BY_PROFILE, does_not_stay},
    {"serving", BY_PROFILE, not_served},
    {"serving_if", BY_PROFILE, always_served},
    {"extra: dtype_as_result", BY_PROFILE, extra_of_a_dtype},
    {"state: none", BY_PROFILE, state_lost},
    {"state: like", BY_PROFILE, state_of_another},
    {"operands", BY_HELP, one_operand_less},
    {"takes", BY_HELP, takes_nothing},
    {"needs", BY_HELP, needs_nothing},
    {"help", BY_HELP, other_help},
    {NULL, BY_HELP, NULL},
};

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
    {"lamb", "flop: none", "likewise"},
    {"lamb_norms", "flop: none", "likewise"},
    {"muon", "flop: none", "likewise"},
    {"muon_momentum", "flop: none", "likewise"},
    {"newton_schulz", "flop: none", "likewise"},
    {"sgd", "update_reads: states", "it keeps none"},
    {"sgd", "update_writes: states", "it keeps none"},
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
    const mutation *const lists[] = {mutations, update_mutations};
    etch_buf missed = {.arena = arena};
    etch_buf_puts(&missed, "");
    for (uint32_t r = 0; (row = etch_row_at(etch_table_builtin(), r)) != NULL; r++)
        for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
            for (const mutation *m = lists[k]; m->name; m++)
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
