/* Programs against the interpreter of placed graphs, against costs, and a small one by hand. */
#include "suite.h"

#include "oracle.h"

#include <stdlib.h>
#include <string.h>

static const char *shape_text(etch_arena *arena, const shape *s)
{
    return etch_text(arena,
                     "shape %d: plan %d, %d microbatches, %d layers, %d steps, dp %d, tp %d, recompute %s",
                     (int)(s - all_shapes), (int)s->plan, (int)s->micro, (int)s->layers, (int)s->steps,
                     (int)s->dp, (int)s->tp, s->recompute ? s->recompute : "none");
}

static void with_each_shape(etch_arena *arena,
                            void (*check)(const built *b, const shape *s, const etch_job *job))
{
    for (const shape *s = all_shapes; s->build; s++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        const built *b = build(own, s);
        check(b, s, lower_built(b));
        etch_arena_free(own);
    }
}

/* ---- the interpreter ----------------------------------------------------------------------------------- */

static etch_comm_type comm_type_of(etch_collective move)
{
    switch (move) {
    case ETCH_ALL_REDUCE:
        return ETCH_COMM_ALL_REDUCE;
    case ETCH_ALL_GATHER:
        return ETCH_COMM_ALL_GATHER;
    case ETCH_REDUCE_SCATTER:
        return ETCH_COMM_REDUCE_SCATTER;
    default:
        return ETCH_COMM_ALL_TO_ALL;
    }
}

static const char *ids_text(etch_arena *arena, const uint32_t *ids, uint32_t count)
{
    etch_buf text = {.arena = arena};
    etch_buf_puts(&text, "");
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(&text, " %u", (unsigned)ids[i]);
    return text.text;
}

static uint64_t at_least(int64_t number, uint64_t least)
{
    return (uint64_t)number < least ? least : (uint64_t)number;
}

/* Bytes that the node has at least: a first computation that takes no time would end ASTRA-sim. */
static uint64_t least_bytes(const oracle_node *want, bool first)
{
    enum { FIRST_BYTES = 32768, FIRST_FLOP = 33554432 };
    if (want->collective)
        return 64;
    return first && want->flop < FIRST_FLOP ? FIRST_BYTES : 1;
}

static void check_node(const shape *s, etch_arena *arena, const etch_job *job, uint32_t id,
                       const oracle_node *want, bool first)
{
    const etch_class_program *program = &job->programs[0];
    const etch_node *node = &program->nodes[id];
    const char *name = program->names + node->name;
    const char *where = etch_text(arena, "%s: node %u %s", shape_text(arena, s), (unsigned)id, name);
    ck_assert_msg(node->type == (want->collective ? ETCH_NODE_COLL : ETCH_NODE_COMP), "%s: type", where);
    const uint32_t *deps = program->deps + node->first_dep;
    bool same = node->dep_count == want->dep_count;
    for (uint32_t i = 0; same && i < want->dep_count; i++)
        same = deps[i] == want->deps[i];
    ck_assert_msg(same, "%s: parents are%s, expected%s", where, ids_text(arena, deps, node->dep_count),
                  ids_text(arena, want->deps, want->dep_count));
    ck_assert_msg(node->bytes == at_least(want->bytes, least_bytes(want, first)), "%s: bytes", where);
    ck_assert_msg(name[0] == want->phase, "%s: phase", where);
    if (want->microbatch >= 0)
        ck_assert_msg(atoi(name + 1) == want->microbatch, "%s: microbatch", where);
    if (!want->collective) {
        ck_assert_msg(node->flop == at_least(want->flop, 1), "%s: FLOP", where);
        return;
    }
    uint32_t wide = (s->dp > 1 ? 1u << DP : 0) | (s->tp > 1 ? 1u << TP : 0);
    ck_assert_msg(node->collective == comm_type_of(want->move), "%s: collective", where);
    ck_assert_msg(job->families[node->family].axes == (want->axes & wide), "%s: axes", where);
}

static void check_against_oracle(const built *b, const shape *s, const etch_job *job)
{
    oracle expected = oracle_run(b, s);
    ck_assert_uint_eq(job->program_count, 1);
    uint32_t start = 0;
    while (start < expected.count &&
           (expected.nodes[start].collective || expected.nodes[start].dep_count > 0))
        start++;
    for (uint32_t id = 0; id < expected.count && id < job->programs[0].node_count; id++)
        check_node(s, b->x->arena, job, id, &expected.nodes[id], id == start);
    ck_assert_msg(job->programs[0].node_count == expected.count, "%s: %u nodes, expected %u",
                  shape_text(b->x->arena, s), (unsigned)job->programs[0].node_count,
                  (unsigned)expected.count);
}

static void programs_are_what_the_interpreter_finds(etch_arena *arena)
{
    with_each_shape(arena, check_against_oracle);
}

START_TEST(test_interpreter)
{
    etch_with_arena(programs_are_what_the_interpreter_finds);
}
END_TEST

/* ---- names --------------------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void check_names(const built *b, const shape *s, const etch_job *job)
{
    const etch_class_program *program = &job->programs[0];
    const char **names = ETCH_NEW_ARRAY(b->x->arena, program->node_count, const char *);
    for (uint32_t i = 0; i < program->node_count; i++) {
        names[i] = program->names + program->nodes[i].name;
        ck_assert_msg(strlen(names[i]) < 64, "%s is long", names[i]);
    }
    qsort(names, program->node_count, sizeof *names, by_text);
    for (uint32_t i = 1; i < program->node_count; i++)
        ck_assert_msg(strcmp(names[i - 1], names[i]) != 0, "%s: two nodes %s", shape_text(b->x->arena, s),
                      names[i]);
}

static void names_are_short_and_unique(etch_arena *arena)
{
    with_each_shape(arena, check_names);
}

#define WORD "a_name_that_goes_on_and_on_"

/* Calls of one module twice in a loop, all with names that are too long. */
static void build_wordy(sample *x, etch_expr layers, etch_expr steps)
{
    const etch_span nowhere = {0, 0};
    etch_tensor *value = sample_weight(x, WORD WORD "emb", "vh"), *result;
    etch_tensor *ids = sample_input(x, WORD WORD "ids", "bs", ETCH_I32);
    (void)steps;
    value = sample_call(x, WORD WORD "e", "gather", value, ids, 'v', NULL);
    etch_graph_begin(x->graph, WORD WORD "layer", layers, nowhere);
    etch_tensor *in = etch_graph_carry(x->graph, value, nowhere), *out = in;
    for (int i = 0; i < 2; i++) {
        etch_graph_enter(x->graph, WORD WORD "mlp", nowhere);
        out = sample_sum(x, WORD WORD "x", out, sample_mlp(x, out));
        etch_graph_leave(x->graph);
    }
    etch_graph_end(x->graph, &out, &result, 1);
    sample_loss(x, result);
}

static void long_names_are_cut(etch_arena *arena)
{
    const shape s = {build_wordy, PLAN_TP, 8, 2, 2, 1, 2, 4, "all", true};
    const built *b = build(arena, &s);
    check_names(b, &s, lower_built(b));
}

START_TEST(test_long_names)
{
    etch_with_arena(long_names_are_cut);
}
END_TEST

static void names_tell_loops_and_modules(etch_arena *arena)
{
    const shape s = {build_nested, PLAN_NONE, 8, 1, 1, 1, 1, 1, NULL, false};
    const etch_class_program *p = &lower_built(build(arena, &s))->programs[0];
    bool layer = false, step = false;
    for (uint32_t i = 0; i < p->node_count; i++) {
        const char *name = p->names + p->nodes[i].name;
        layer = layer || strcmp(name, "F0.layer0.first.gate") == 0;
        step = step || strcmp(name, "F0.layer0.step0.second.gate") == 0;
    }
    ck_assert(layer && step);
}

START_TEST(test_loop_names)
{
    etch_with_arena(names_tell_loops_and_modules);
}
END_TEST

START_TEST(test_names)
{
    etch_with_arena(names_are_short_and_unique);
}
END_TEST

/* ---- totals -------------------------------------------------------------------------------------------- */

static int64_t cost_total(const built *b, const etch_cost_list *items, etch_measure measure)
{
    int64_t total = 0;
    for (uint32_t i = 0; i < items->count; i++)
        if (items->at[i].measure == measure)
            total += value_of(b, items->at[i].each) * value_of(b, items->at[i].times);
    return total;
}

/* The axes of more than one rank among `axes`. */
static uint32_t wide_axes(const built *b, uint32_t axes)
{
    uint32_t wide = 0;
    for (uint32_t a = 0; a < b->placed->plan->mesh.count; a++)
        if (axes >> a & 1 && value_of(b, b->placed->plan->mesh.at[a].size) > 1)
            wide |= 1u << a;
    return wide;
}

static int64_t comm_cost(const built *b, const etch_cost_list *items, const etch_comm_total *row)
{
    int64_t total = 0;
    for (uint32_t i = 0; i < items->count; i++) {
        const etch_cost *item = &items->at[i];
        if (item->measure == ETCH_COMM && comm_type_of(item->collective) == row->collective &&
            strcmp(etch_axes_label(b->placed, wide_axes(b, item->axes)), row->axes) == 0)
            total += value_of(b, item->each) * value_of(b, item->times);
    }
    return total;
}

static void check_totals(const built *b, const shape *s, const etch_job *job)
{
    etch_cost_list items = {0};
    const etch_stage_total *stage = &job->stages[0];
    etch_placed_costs(b->placed, NULL, &items);
    ck_assert_msg((int64_t)stage->flop == cost_total(b, &items, ETCH_RANK_FLOPS), "%s",
                  shape_text(b->x->arena, s));
    ck_assert_msg((int64_t)stage->bytes == cost_total(b, &items, ETCH_TRAFFIC), "%s",
                  shape_text(b->x->arena, s));
    for (uint32_t i = 0; i < stage->comm_count; i++)
        ck_assert_msg((int64_t)stage->comm[i].bytes == comm_cost(b, &items, &stage->comm[i]), "%s: %s",
                      shape_text(b->x->arena, s), stage->comm[i].axes);
}

static void totals_are_the_costs(etch_arena *arena)
{
    with_each_shape(arena, check_totals);
}

START_TEST(test_totals)
{
    etch_with_arena(totals_are_the_costs);
}
END_TEST

/* Sums over nodes are the totals with their paddings. */
static void check_sums(const built *b, const shape *s, const etch_job *job)
{
    const etch_class_program *program = &job->programs[0];
    const etch_stage_total *stage = &job->stages[0];
    etch_total flop = 0, bytes = 0, comm = 0, comm_total = 0;
    uint64_t collectives = 0;
    (void)b;
    (void)s;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const etch_node *node = &program->nodes[i];
        bool collective = node->type == ETCH_NODE_COLL;
        flop += collective ? 0 : node->flop;
        bytes += collective ? 0 : node->bytes;
        comm += collective ? node->bytes : 0;
    }
    for (uint32_t i = 0; i < stage->comm_count; i++) {
        comm_total += stage->comm[i].bytes + stage->comm[i].padded;
        collectives += stage->comm[i].count;
    }
    ck_assert(flop == stage->flop + stage->padded_flop);
    ck_assert(bytes == stage->bytes + stage->padded_bytes);
    ck_assert(comm == comm_total);
    ck_assert_uint_le(collectives, program->node_count);
    ck_assert_uint_eq(stage->nodes, program->node_count);
    ck_assert_uint_eq(stage->ranks, job->rank_count);
}

static void totals_are_the_sums_of_nodes(etch_arena *arena)
{
    with_each_shape(arena, check_sums);
}

START_TEST(test_sums)
{
    etch_with_arena(totals_are_the_sums_of_nodes);
}
END_TEST

/* ---- by hand ------------------------------------------------------------------------------------------- */

static const char *name_of(const etch_class_program *program, uint32_t id)
{
    return program->names + program->nodes[id].name;
}

static uint32_t id_of(const etch_class_program *program, const char *name)
{
    for (uint32_t i = 0; i < program->node_count; i++)
        if (strcmp(name_of(program, i), name) == 0)
            return i;
    ck_abort_msg("no node is called %s", name);
}

/* Ids of the first and the last node whose name begins so. */
static uint32_t first_with(const etch_class_program *program, const char *prefix)
{
    for (uint32_t i = 0; i < program->node_count; i++)
        if (strncmp(name_of(program, i), prefix, strlen(prefix)) == 0)
            return i;
    ck_abort_msg("no node's name begins with %s", prefix);
}

static uint32_t last_with(const etch_class_program *program, const char *prefix)
{
    for (uint32_t i = program->node_count; i-- > 0;)
        if (strncmp(name_of(program, i), prefix, strlen(prefix)) == 0)
            return i;
    ck_abort_msg("no node's name begins with %s", prefix);
}

/* `parents`: names, ends with NULL. */
static void assert_parents(const etch_class_program *program, const char *name, const char *const *parents)
{
    const etch_node *node = &program->nodes[id_of(program, name)];
    uint32_t count = 0;
    for (; parents[count]; count++) {
        uint32_t id = id_of(program, parents[count]), found = 0;
        for (uint32_t i = 0; i < node->dep_count; i++)
            found += program->deps[node->first_dep + i] == id;
        ck_assert_msg(found == 1, "%s does not wait for %s", name, parents[count]);
    }
    ck_assert_msg(node->dep_count == count, "%s waits for %u nodes", name, (unsigned)node->dep_count);
}

#define ASSERT_PARENTS(program, name, ...) \
    assert_parents((program), (name), (const char *const[]){__VA_ARGS__, NULL})

static void a_small_program_by_hand(etch_arena *arena)
{
    const shape s = {build_decoder, PLAN_TP, 8, 2, 2, 1, 2, 4, NULL, true};
    const etch_class_program *p = &lower_built(build(arena, &s))->programs[0];

    /* One forward one backward, layers backwards, each bucket right behind its layer, then norm and
     * updates. */
    const char *const order[] = {"F0.e",       "F0.layer0.",  "F0.layer1.",
                                 "F0.logits",  "B0.dlogits",  "B0.layer1.",
                                 "B0.layer0.", "B0.demb",     "F1.e",
                                 "F1.layer0.", "F1.layer1.",  "B1.dlogits",
                                 "S.head.",    "B1.layer1.",  "S.layer1.",
                                 "B1.layer0.", "S.layer0.",   "B1.demb",
                                 "S.emb.",     "O.grad_norm", "S.grad_norm.all_reduce",
                                 "O.emb.",     "O.layer0.",   "O.layer1.",
                                 "O.head."};
    for (size_t i = 1; i < sizeof order / sizeof *order; i++)
        ck_assert_msg(first_with(p, order[i - 1]) < first_with(p, order[i]), "%s after %s", order[i - 1],
                      order[i]);
    ck_assert_uint_eq(first_with(p, "S.layer1."), last_with(p, "B1.layer1.") + 1);
    ck_assert_uint_eq(first_with(p, "S.layer0."), last_with(p, "B1.layer0.") + 1);
    ck_assert_uint_eq(first_with(p, "S.emb."), last_with(p, "B1.demb") + 1);
    ck_assert_uint_eq(first_with(p, "O.head."), p->node_count - 1);

    ck_assert_uint_eq(p->nodes[0].dep_count, 0);
    ASSERT_PARENTS(p, "F0.e.all_reduce", "F0.e");
    ASSERT_PARENTS(p, "F0.layer0.mlp.y", "F0.layer0.mlp.up");
    ASSERT_PARENTS(p, "F0.layer0.y.all_reduce", "F0.layer0.mlp.y", "F0.e.all_reduce");
    ASSERT_PARENTS(p, "F0.layer0.x", "F0.e.all_reduce", "F0.layer0.y.all_reduce");
    ASSERT_PARENTS(p, "F0.layer1.x", "F0.layer0.x", "F0.layer1.y.all_reduce");
    /* A slot begins behind the last computation of the slot before it. */
    ASSERT_PARENTS(p, "F1.e", "B0.demb");
    /* The second microbatch adds to what the first has left. */
    ASSERT_PARENTS(p, "B0.dhead", "F0.layer1.x", "B0.dlogits");
    ASSERT_PARENTS(p, "B1.dhead", "B0.dhead", "F1.layer1.x", "B1.dlogits");
    /* So does an iteration, where nothing in it is waited for. */
    ASSERT_PARENTS(p, "B1.layer1.mlp.dw2", "B0.layer1.mlp.dw2", "F1.layer1.mlp.up", "B1.de.all_reduce",
                   "B1.dhead");
    /* Iterations are undone with the values that they had. */
    ASSERT_PARENTS(p, "B0.layer1.mlp.dw1", "F0.layer1.mlp.h", "B0.layer1.mlp.da");
    ASSERT_PARENTS(p, "B0.layer0.mlp.dw1", "F0.layer0.mlp.h", "B0.layer0.mlp.da");
    ASSERT_PARENTS(p, "S.emb.grads.dp.all_reduce", "B1.demb", "S.layer0.grads.dp.all_reduce");
    ASSERT_PARENTS(p, "O.grad_norm", "S.head.grads.dp.all_reduce", "S.layer1.grads.dp.all_reduce",
                   "S.layer0.grads.dp.all_reduce", "S.emb.grads.dp.all_reduce", "B1.demb");
    ASSERT_PARENTS(p, "S.grad_norm.all_reduce", "O.grad_norm", "S.emb.grads.dp.all_reduce");
    ASSERT_PARENTS(p, "O.layer1.adamw", "S.layer1.grads.dp.all_reduce", "S.grad_norm.all_reduce",
                   "O.layer0.adamw");
}

START_TEST(test_by_hand)
{
    etch_with_arena(a_small_program_by_hand);
}
END_TEST

/* ---- families ------------------------------------------------------------------------------------------ */

static void only_families_in_use_exist(etch_arena *arena)
{
    const shape both = {build_decoder, PLAN_TP, 8, 2, 2, 1, 2, 4, NULL, true};
    const etch_job *job = lower_built(build(arena, &both));
    ck_assert_uint_eq(job->rank_count, 8);
    ck_assert_uint_eq(job->family_count, 3); /* outermost axis first, larger sets behind their parts */
    const uint32_t first[] = {1, 5, 7}, count[] = {4, 2, 1}, size[] = {2, 4, 8};
    const char *const label[] = {"dp", "tp", "(dp,tp)"};
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(job->families[i].axes, i + 1);
        ck_assert_uint_eq(job->families[i].first_id, first[i]);
        ck_assert_uint_eq(job->families[i].count, count[i]);
        ck_assert_uint_eq(job->families[i].size, size[i]);
        ck_assert_str_eq(job->families[i].label, label[i]);
    }
    const shape narrow = {build_decoder, PLAN_TP, 8, 2, 2, 1, 2, 1, NULL, true};
    job = lower_built(build(arena, &narrow)); /* the norm is summed over (dp,tp): now the ranks of dp */
    ck_assert_uint_eq(job->family_count, 1);
    ck_assert_uint_eq(job->families[0].size, 2);
    ck_assert_uint_eq(job->stages[0].comm_count, 1);
    ck_assert_str_eq(job->stages[0].comm[0].axes, "dp");
    ck_assert(job->stages[0].comm[0].padded == 60); /* the norm's four bytes */
    const shape alone = {build_decoder, PLAN_TP, 8, 2, 2, 1, 1, 1, NULL, true};
    job = lower_built(build(arena, &alone));
    ck_assert_uint_eq(job->family_count, 0);
    ck_assert_uint_eq(job->stages[0].comm_count, 0);
}

START_TEST(test_families)
{
    etch_with_arena(only_families_in_use_exist);
}
END_TEST

/* What a job says of its origin. */
static void jobs_say_what_they_are_of(etch_arena *arena)
{
    const shape s = {build_decoder, PLAN_TP, 8, 2, 2, 1, 2, 4, NULL, true};
    built *b = build(arena, &s);
    b->options.config = "tiny";
    const etch_job *job = lower_built(b);
    ck_assert_str_eq(job->model, "sample");
    ck_assert_str_eq(job->plan, "plan");
    ck_assert_str_eq(job->config, "tiny");
    ck_assert_uint_eq(job->mesh_count, 2);
    ck_assert_str_eq(job->mesh[1].name, "tp");
    ck_assert_uint_eq(job->mesh[1].size, 4);
    ck_assert_uint_eq(job->binding_count, 6);
    ck_assert_str_eq(job->bindings[0].name, "batch");
    ck_assert_str_eq(job->bindings[0].value, "8");
    ck_assert_str_eq(job->bindings[0].from, "set");
    ck_assert_uint_eq(job->stage_count, 1);
    for (uint32_t rank = 0; rank < job->rank_count; rank++)
        ck_assert_uint_eq(job->class_of[rank], 0);
}

START_TEST(test_origin)
{
    etch_with_arena(jobs_say_what_they_are_of);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("programs");
    ETCH_ADD_TESTS(suite, test_interpreter, test_names, test_long_names, test_loop_names, test_totals,
                   test_sums, test_by_hand, test_families, test_origin);
    return suite;
}
