/* Bytes that kernels read and write, counted on runs, against what the product says: of all rows of the op
 * table divided in every way, of models of the zoo and of random models, with kernels of each granularity. */
#include "effort.h"
#include "exec_cases.h"
#include "exec_check.h"
#include "exec_random.h"
#include "exec_ranks.h"
#include "exec_traffic.h"
#include "exec_zoo.h"
#include "suite.h"

#include "graph/ir/row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODELS = 200 };

/* ---- rows --------------------------------------------------------------------------------------------- */

static const char *const names[] = {"", "B", "S", "T", "H", "K", "D", "V", "P", "E", "C", "W", "N", "Y"};

/* Plans that were run, and those with padding; of batches that ranks share unevenly. */
typedef struct tally {
    uint32_t run, padded, uneven;
} tally;

/* Refused: NULL. `t`: may be NULL. */
static const char *check_plan(exec_model *m, const char *recompute, const char *lines,
                              etch_granularity granularity, tally *t)
{
    const etch_training *training = exec_train(m, recompute);
    const etch_placed *placed = etch_place(training, exec_plan(m->arena, m->sym, lines), granularity);
    if (!placed || !exec_requirements_hold(placed))
        return NULL;
    if (t) {
        t->run++;
        t->padded += exec_is_padded(placed, NULL);
        t->uneven += exec_is_padded(placed, "B");
    }
    const char *failure = exec_check_traffic(placed, 3);
    return failure ? etch_text(m->arena, "%s, by %s: %s", lines, etch_granularity_name(granularity), failure)
                   : NULL;
}

static void check_case(etch_arena *outer, const exec_case *c, const char *dim, etch_granularity granularity)
{
    etch_arena *arena = etch_arena_new(etch_arena_mem(outer));
    exec_model *m = exec_case_build(arena, c, NULL);
    const char *plan = *dim ? etch_text(arena, "a=2 | %s@a", dim) : "";
    const char *failure = exec_case_way_of(c).serves ? NULL : check_plan(m, NULL, plan, granularity, NULL);
    ck_assert_msg(!failure, "%s, %s", c->name, failure);
    etch_arena_free(arena);
}

static void rows(etch_arena *arena)
{
    const exec_case *c;
    for (uint32_t i = 0; (c = exec_case_at(i)) != NULL; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            for (etch_granularity g = 0; g < ETCH_GRANULARITY_COUNT; g++)
                check_case(arena, c, names[k], g);
}

START_TEST(rows_move_what_is_said)
{
    etch_with_arena(rows);
}
END_TEST

/* A table of which a kernel looks up rows and that it reads as a whole, too, in either order. */
static void tied(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, "B=4 S=8 H=4 V=8", 1);
    etch_tensor *w = exec_weight(m, "w", "V H");
    etch_tensor *e = exec_call_row(m, "e", "gather", "V", w, exec_ids(m, "ids", "B S"), NULL);
    exec_head_loss(m, e, w);
    for (etch_granularity g = 0; g < ETCH_GRANULARITY_COUNT; g++) {
        const char *failure = check_plan(m, NULL, "", g, NULL);
        ck_assert_msg(!failure, "%s", failure);
    }
}

START_TEST(rows_and_the_whole_of_a_table_are_moved)
{
    etch_with_arena(tied);
}
END_TEST

/* ---- elements ----------------------------------------------------------------------------------------- */

/* Rows of which some results depend on no more than a part of an operand: it is counted as a whole all the
 * same. */
static const struct {
    const char *row;
    uint32_t operand;
    const char *why;
} counted_whole[] = {
    {"scan", 0, "before the first place there is nothing that it could hand on"},
    {"scan_bwd", 1, "likewise"},
    {"scan_bwd", 2, "no decay has the result of the last place"},
    {"topk", 0, "the executor is given the routing, and does not ask the scores"},
    {"softmax", 0, "scores that a mask hides are moved, too"},
    {"max_pool_dx", 1,
     "most elements are not the largest of their window, which is found out by reading them"},
    {"max_ties", 0, "most elements are not the largest, which is found out by reading them"},
    {"max_dx", 1, "likewise"},
    {"max_dx", 2, "likewise, where no element read is the largest"},
};

enum { COUNTED_WHOLE = sizeof counted_whole / sizeof *counted_whole };

/* What is read in vain: row by row, and which of those that are known. */
typedef struct idle {
    etch_buf text;
    bool seen[COUNTED_WHOLE];
} idle;

static void note_idle(idle *all, const char *row, uint32_t operand, const char *name)
{
    for (size_t i = 0; i < COUNTED_WHOLE; i++)
        if (strcmp(counted_whole[i].row, row) == 0 && counted_whole[i].operand == operand) {
            all->seen[i] = true;
            return;
        }
    for (const exec_convention *c = exec_conventions; c->row; c++)
        if (c->reads_rows && operand == 0 && strcmp(c->row, row) == 0)
            return;
    const char *line = etch_text(all->text.arena, "%s, operand %u, of case %s\n", row, operand, name);
    if (!strstr(all->text.text, line))
        etch_buf_puts(&all->text, line);
}

enum { PROBED = 12 }; /* elements of an operand */

typedef struct probe {
    exec_run *run;
    const etch_op *op;
    exec_array *right[EXEC_MAX_RESULTS];
    const exec_array *ins[EXEC_MAX_OPERANDS];
} probe;

/* False: it cannot be computed. */
static bool compute(const probe *p, exec_array **outs)
{
    exec_env env = p->run->env;
    exec_call call = {.env = &env, .arena = p->run->values.arena, .op = p->op, .salt = 1};
    env.failure = NULL;
    for (uint32_t i = 0; i < p->op->in_count; i++)
        call.ins[i] = p->ins[i];
    for (uint32_t i = 0; i < p->op->out_count; i++)
        call.outs[i] = outs[i] = exec_whole(&env, p->run->values.arena, p->op->outs[i]);
    exec_op(&call);
    return !env.failure;
}

static bool differs(const probe *p)
{
    exec_array *outs[EXEC_MAX_RESULTS];
    if (!compute(p, outs))
        return true; /* it was read */
    for (uint32_t i = 0; i < p->op->out_count; i++)
        if (memcmp(outs[i]->at, p->right[i]->at, outs[i]->size * sizeof *outs[i]->at) != 0)
            return true;
    return false;
}

/* Does any result change with this element of the operand? */
static bool matters(probe *p, uint32_t operand, size_t element)
{
    static const double changes[] = {1000, -1000, 1, -1, 0.25};
    const exec_array *right = p->ins[operand];
    exec_array *wrong = exec_array_like(p->run->values.arena, right);
    bool is_read = false;
    memcpy(wrong->at, right->at, right->size * sizeof *right->at);
    p->ins[operand] = wrong;
    for (size_t i = 0; i < sizeof changes / sizeof *changes && !is_read; i++) {
        wrong->at[element] = right->at[element] + changes[i];
        is_read = differs(p);
    }
    p->ins[operand] = right;
    return is_read;
}

/* Numbers where one that is zero, as what was dropped, would hide what another operand is read for. */
static const exec_array *without_zeros(exec_run *run, const etch_tensor *tensor)
{
    const exec_array *now = exec_run_value(run, &run->env, tensor);
    if (tensor->dtype == ETCH_I32 || tensor->dtype == ETCH_I64 || tensor->dtype == ETCH_I8)
        return now;
    exec_array *other = exec_array_like(run->values.arena, now);
    for (size_t i = 0; i < other->size; i++)
        other->at[i] = 0.5 + exec_random(tensor->id, i);
    return other;
}

static void probe_op(exec_run *run, const exec_case *c, const etch_op *op, idle *all)
{
    probe real = {.run = run, .op = op}, full = real;
    for (uint32_t i = 0; i < op->in_count; i++) {
        real.ins[i] = exec_run_value(run, &run->env, op->ins[i]);
        full.ins[i] = without_zeros(run, op->ins[i]);
    }
    compute(&real, real.right);
    compute(&full, full.right);
    for (uint32_t i = 0; i < op->in_count; i++)
        for (uint32_t k = 0; k < PROBED; k++) {
            const size_t element = exec_mix(op->id * 31 + i, k) % real.ins[i]->size;
            if (!matters(&real, i, element) && !matters(&full, i, element))
                note_idle(all, etch_row_name(op->row), i, c->name);
        }
}

static void probe_region(exec_run *run, const exec_case *c, const etch_region *region, idle *all)
{
    for (uint32_t i = 0; i < region->items.count; i++)
        if (region->items.at[i].op->row->role != ETCH_ROLE_FREE)
            probe_op(run, c, region->items.at[i].op, all);
}

static void elements(etch_arena *arena)
{
    const exec_case *c;
    idle all = {.text = {.arena = arena}};
    etch_buf_puts(&all.text, "");
    for (uint32_t i = 0; (c = exec_case_at(i)) != NULL; i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        const etch_training *training = exec_train(exec_case_build(own, c, NULL), NULL);
        exec_run *run = exec_run_new(own, training, exec_data_new(own, training, 3));
        exec_run_forward(run, 0);
        exec_run_backward(run);
        probe_region(run, c, training->graph->forward, &all);
        if (training->backward)
            probe_region(run, c, training->backward, &all);
        etch_arena_free(run->values.arena);
        etch_arena_free(own);
    }
    ck_assert_msg(all.text.length == 0, "elements of operands that change nothing:\n%s", all.text.text);
    for (size_t i = 0; i < COUNTED_WHOLE; i++)
        ck_assert_msg(all.seen[i], "%s reads all of operand %u: take it out of the list",
                      counted_whole[i].row, counted_whole[i].operand);
}

START_TEST(rows_read_all_that_is_counted)
{
    etch_with_memory((size_t)1 << 30, elements);
}
END_TEST

/* ---- models ------------------------------------------------------------------------------------------- */

static void zoo(etch_arena *arena)
{
    for (const exec_zoo *z = exec_models; z->name; z++)
        for (uint32_t i = 0; z->plans[i]; i++) {
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            const char *failure = check_plan(z->build(own, 2), z->recompute, z->plans[i],
                                             (etch_granularity)(i % ETCH_GRANULARITY_COUNT), NULL);
            ck_assert_msg(!failure, "%s, %s", z->name, failure);
            etch_arena_free(own);
        }
}

START_TEST(models_of_the_zoo_move_what_is_said)
{
    etch_with_memory((size_t)1 << 30, zoo);
}
END_TEST

/* Is there a loop without iterations? What only they read leaves its kernel all the same. */
static bool runs_nothing(const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_loop *loop = region->items.at[i].loop;
        if (loop && exec_integer(loop->count) == 0)
            return true;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            if (runs_nothing(loop->bodies.at[k]))
                return true;
    }
    return false;
}

/* Where random models and their plans come from. */
typedef struct source {
    const char *name;
    exec_model *(*model)(etch_arena *arena, exec_dice *dice, const char **recompute);
    const char *(*plan)(const exec_model *m, exec_dice *dice);
} source;

static const source plain = {"plain", exec_random_model, exec_random_plan},
                    wide = {"wide", exec_random_wide_model, exec_random_plan},
                    rich = {"rich", exec_random_rich_model, exec_random_rich_plan},
                    padded = {"padded", exec_random_padded_model, exec_random_padded_plan};

/* Refused, or with a loop that runs nothing: NULL. */
static const char *check_random(etch_arena *arena, uint64_t seed, const source *from, tally *t)
{
    exec_dice dice = {exec_mix(seed, 0)}, plans = {exec_mix(seed, 1)};
    const char *recompute;
    exec_model *m = from->model(arena, &dice, &recompute);
    const char *plan = from->plan(m, &plans);
    if (runs_nothing(m->graph->forward))
        return NULL;
    return check_plan(m, recompute, plan, (etch_granularity)(seed % ETCH_GRANULARITY_COUNT), t);
}

static void random_models(etch_arena *arena)
{
    const uint64_t first = etch_test_seed(1), count = etch_effort(MODELS);
    tally t = {0};
    for (uint64_t seed = first; seed < first + count; seed++)
        for (uint32_t i = 0; i < 3; i++) {
            const source *from = i == 0 ? seed % 2 ? &plain : &wide : i == 1 ? &rich : &padded;
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            const char *failure = check_random(own, seed, from, &t);
            ck_assert_msg(!failure, "ETCH_TEST_SEED=%llu, %s: %s", (unsigned long long)seed, from->name,
                          failure);
            etch_arena_free(own);
        }
    printf("%u plans, %u with padding, %u of them of the batch\n", t.run, t.padded, t.uneven);
    ck_assert_msg(4 * t.padded > t.run && 8 * t.uneven > t.run, "%u plans, %u with padding, %u of the batch",
                  t.run, t.padded, t.uneven);
}

START_TEST(random_models_move_what_is_said)
{
    etch_with_memory((size_t)1 << 30, random_models);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("traffic");
    ETCH_ADD_TESTS(suite, rows_move_what_is_said, rows_and_the_whole_of_a_table_are_moved,
                   rows_read_all_that_is_counted, models_of_the_zoo_move_what_is_said,
                   random_models_move_what_is_said);
    return suite;
}
