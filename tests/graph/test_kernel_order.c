/* Kernels of every granularity run in issue order: random models under random plans are "run" with nothing
 * but what earlier kernels wrote. */
#include "sample.h"
#include "suite.h"

enum { MODELS = 600, STATEMENTS = 14, MAX_VALUES = 64 };

/* ---- random models ------------------------------------------------------------------------------------- */

typedef struct dice {
    uint64_t state;
} dice;

static uint32_t roll(dice *d, uint32_t sides)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(d->state >> 33) % sides;
}

/* Values [B,S,H] and [B,S,F] that statements may use. */
typedef struct pool {
    sample *x;
    dice *dice;
    etch_tensor *wide[MAX_VALUES], *narrow[MAX_VALUES]; /* F and H */
    uint32_t wide_count, narrow_count;
    uint32_t names;
} pool;

static const char *fresh(pool *p, const char *prefix)
{
    return etch_text(p->x->arena, "%s%u", prefix, p->names++);
}

static etch_tensor *any(pool *p, bool wide)
{
    /* Recent values are likelier, as in models. */
    uint32_t count = wide ? p->wide_count : p->narrow_count, back = roll(p->dice, 3) ? 3 : count;
    uint32_t at = count - 1 - roll(p->dice, back < count ? back : count);
    return wide ? p->wide[at] : p->narrow[at];
}

static void keep(pool *p, bool wide, etch_tensor *value)
{
    if (roll(p->dice, 5) == 0)
        sample_tag(p->x, value, "pinned");
    if (wide)
        p->wide[p->wide_count++] = value;
    else
        p->narrow[p->narrow_count++] = value;
}

static void add_projection(pool *p, bool to_wide)
{
    etch_tensor *w = sample_weight(p->x, fresh(p, "w"), to_wide ? "hf" : "fh");
    keep(p, to_wide, sample_product(p->x, fresh(p, "p"), any(p, !to_wide), w, to_wide ? "bsf" : "bsh"));
}

static void add_statement(pool *p)
{
    sample *x = p->x;
    bool wide = p->wide_count > 0 && roll(p->dice, 2);
    const char *dims = wide ? "bsf" : "bsh";
    char over = wide ? 'f' : 'h';
    etch_tensor *value = any(p, wide);
    switch (roll(p->dice, 8)) {
    case 0:
        keep(p, wide, sample_call(x, fresh(p, "u"), "silu", value, NULL, 0, NULL));
        break;
    case 1:
        keep(p, wide, sample_sum(x, fresh(p, "s"), value, any(p, wide)));
        break;
    case 2:
        keep(p, wide, sample_product(x, fresh(p, "m"), value, any(p, wide), dims));
        break;
    case 3:
        keep(p, wide, sample_call(x, fresh(p, "d"), "dropout", value, NULL, 0, etch_ratio(x->sym, 1, 10)));
        break;
    case 4: {
        etch_tensor *g = sample_weight(x, fresh(p, "g"), wide ? "f" : "h");
        keep(p, wide, sample_call(x, fresh(p, "n"), "rms_norm", value, g, over, NULL));
        break;
    }
    case 5:
        keep(p, wide, etch_graph_pass(x->graph, ETCH_ENTER, value, fresh(p, "i"), (etch_span){0, 0}));
        break;
    default:
        add_projection(p, !wide);
        break;
    }
}

/* A loop whose body has a few statements and hands one value on. */
static void add_loop(pool *p)
{
    const etch_span nowhere = {0, 0};
    pool inside = *p;
    etch_tensor *result = NULL;
    etch_graph_begin(p->x->graph, fresh(p, "loop"), etch_int(p->x->sym, 3), nowhere);
    etch_tensor *in = etch_graph_carry(p->x->graph, any(p, false), nowhere);
    inside.names = p->names;
    inside.narrow[inside.narrow_count++] = in;
    for (int i = 0; i < 6; i++)
        add_statement(&inside);
    etch_tensor *out = sample_sum(p->x, fresh(&inside, "out"), in, any(&inside, false));
    p->names = inside.names;
    etch_graph_end(p->x->graph, &out, &result, 1);
    keep(p, false, result);
}

static etch_placed *random_model(etch_arena *arena, uint64_t seed)
{
    dice d = {seed};
    sample *x = sample_new(arena);
    x->granularity = (etch_granularity)(seed % ETCH_GRANULARITY_COUNT);
    pool p = {.x = x, .dice = &d};
    keep(&p, false, sample_input(x, "x", "bsh", ETCH_BF16));
    add_projection(&p, true);
    for (int i = 0; i < STATEMENTS; i++) {
        if (roll(&d, 8) == 0)
            add_loop(&p);
        else
            add_statement(&p);
    }
    add_projection(&p, false);
    sample_loss(x, p.narrow[p.narrow_count - 1]);
    sample_shard(x, "B", DP);
    if (roll(&d, 3))
        sample_shard(x, "F", TP);
    if (roll(&d, 3) == 0)
        sample_shard(x, "V", TP);
    if (roll(&d, 2))
        sample_pin(x, "pinned", "B", "S");
    x->train.recompute.all = roll(&d, 2);
    return sample_place(x);
}

/* ---- running them -------------------------------------------------------------------------------------- */

typedef struct run {
    const etch_placed *placed;
    bool *there;     /* by value id: in memory */
    uint32_t *where; /* by step id: how many kernels hold it */
    uint32_t kernels;
} run;

/* The value whose memory is meant: steps without a node are views. */
static const etch_value *under_views(const etch_value *value)
{
    while (value->step && value->step->kernel == UINT32_MAX)
        value = value->step->ins[0];
    return value;
}

static bool is_there(const run *r, const etch_value *value)
{
    const etch_value *memory = under_views(value);
    bool given = memory->tensor->kind == ETCH_INPUT || memory->tensor->kind == ETCH_WEIGHT ||
                 memory->tensor->kind == ETCH_CONSTANT;
    return given || r->there[memory->id];
}

static bool made_before(const etch_kernel *kernel, uint32_t step, const etch_value *value)
{
    const etch_value *memory = under_views(value);
    for (uint32_t i = 0; i < step; i++)
        for (uint32_t k = 0; k < kernel->steps.at[i]->out_count; k++)
            if (kernel->steps.at[i]->outs[k] == memory)
                return true;
    return false;
}

static void run_kernel(run *r, const etch_placed_region *region, uint32_t index)
{
    const etch_kernel *kernel = region->kernels.at[index];
    for (uint32_t i = 0; i < kernel->steps.count; i++) {
        const etch_step *step = kernel->steps.at[i];
        ck_assert_uint_eq(step->kernel, index);
        ck_assert_int_eq(step->phase, kernel->anchor->phase);
        r->where[step->id]++;
        for (uint32_t k = 0; k < step->in_count; k++)
            ck_assert_msg(made_before(kernel, i, step->ins[k]) || is_there(r, step->ins[k]),
                          "%s reads %s too early", etch_row_name(step->row), step->ins[k]->tensor->name);
    }
    for (uint32_t i = 0; i < kernel->reads.count; i++)
        ck_assert(is_there(r, kernel->reads.at[i]));
    for (uint32_t i = 0; i < kernel->writes.count; i++) {
        ck_assert(!r->there[kernel->writes.at[i]->id]);
        r->there[kernel->writes.at[i]->id] = true;
    }
    r->kernels++;
}

static void run_region(run *r, const etch_placed_region *region)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (next < region->kernels.count && region->kernels.at[next]->item == i)
            run_kernel(r, region, next++);
        if (!loop)
            continue;
        for (uint32_t k = 0; k < etch_loop_carries(loop)->count; k++) {
            const etch_placed_carry *carry = &etch_loop_carries(loop)->at[k];
            ck_assert(!carry->init || is_there(r, carry->init));
            r->there[carry->in->id] = true;
        }
        run_region(r, loop->bodies.at[0]);
        for (uint32_t k = 0; k < etch_loop_carries(loop)->count; k++) {
            ck_assert(is_there(r, etch_loop_carries(loop)->at[k].out));
            r->there[etch_loop_carries(loop)->at[k].result->id] = true;
        }
    }
    ck_assert_uint_eq(next, region->kernels.count);
}

/* Every step is in the kernel that it names and in no other; views are in none. */
static void check_steps(const run *r, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        if (step)
            ck_assert_uint_eq(r->where[step->id], step->kernel == UINT32_MAX ? 0 : 1);
        else
            check_steps(r, region->items.at[i].loop->bodies.at[0]);
    }
}

static void models_run_in_issue_order(etch_arena *arena)
{
    uint32_t kernels = 0;
    for (uint64_t seed = 1; seed <= MODELS; seed++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_placed *placed = random_model(own, seed);
        run r = {.placed = placed};
        r.there = ETCH_NEW_ARRAY(own, placed->value_count, bool);
        r.where = ETCH_NEW_ARRAY(own, placed->step_count, uint32_t);
        run_region(&r, placed->forward);
        run_region(&r, placed->backward);
        check_steps(&r, placed->forward);
        check_steps(&r, placed->backward);
        kernels += r.kernels;
        etch_arena_free(own);
    }
    ck_assert_uint_gt(kernels, 20 * MODELS);
}

START_TEST(test_issue_order)
{
    etch_with_arena(models_run_in_issue_order);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("kernel_order");
    ETCH_ADD_TESTS(suite, test_issue_order);
    return suite;
}
