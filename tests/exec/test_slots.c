/* Pipelines run as slots: all stages and ranks do what the schedule says, with messages between them, and
 * compute what one rank computes. */
#include "exec_slots.h"
#include "exec_zoo.h"
#include "suite.h"

#include "../graph/two_groups.h"
#include "verify.h"

#include <string.h>

/* ---- models ------------------------------------------------------------------------------------------- */

/* Four layers between a projection and a head; `is_tied`: one weight for both of these. */
static exec_model *build_layers(etch_arena *arena, uint32_t micro, uint32_t layers, bool is_tied)
{
    exec_model *m = exec_model_new(arena, "B=8 S=4 H=4 F=8 V=4", micro);
    etch_tensor *table = exec_weight(m, "emb", "V H"),
                *head = is_tied ? table : exec_weight(m, "head", "V H");
    etch_tensor *x = exec_call_row(m, "e", "gather", "V", table, exec_ids(m, "ids", "B S"), NULL);
    exec_tag(m, x, "residual");
    x = exec_repeat(m, "layer", layers, x);
    etch_tensor *h = exec_product(m, "h", x, exec_weight(m, "up", "H F"), "B S F");
    h = exec_call_row(m, "a", "gelu", "", h, NULL, NULL);
    h = exec_sum(m, "x", x, exec_product(m, "y", h, exec_weight(m, "down", "F H"), "B S H"));
    exec_tag(m, h, "residual");
    x = exec_end(m, h);
    etch_tensor *n = exec_call_row(m, "n", "rms_norm", "H", x, exec_weight(m, "g", "H"), NULL);
    exec_head_loss(m, n, head);
    return m;
}

/* Two loops and a head read what comes before both. */
static exec_model *build_shared(etch_arena *arena, uint32_t micro, uint32_t layers)
{
    exec_model *m = exec_model_new(arena, "B=8 S=4 H=4 V=4", micro);
    etch_tensor *table = exec_weight(m, "emb", "V H"), *head = exec_weight(m, "head", "V H");
    etch_tensor *x = exec_call_row(m, "e", "gather", "V", table, exec_ids(m, "ids", "B S"), NULL);
    etch_tensor *shared = exec_call_row(m, "shared", "silu", "", x, NULL, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        x = exec_repeat(m, i ? "second" : "first", layers, x);
        etch_tensor *g = exec_product(m, "g", x, exec_weight(m, "w", "H"), "B S H");
        etch_tensor *h =
            exec_product(m, "h", exec_call_row(m, "a", "gelu", "", g, NULL, NULL), shared, "B S H");
        x = exec_end(m, exec_sum(m, "x", x, h));
    }
    exec_head_loss(m, exec_sum(m, "y", x, shared), head);
    return m;
}

/* Four units in front of a head, of which each reads what comes before all of them. */
static exec_model *build_units(etch_arena *arena, uint32_t micro)
{
    static const char *const tags[] = {"t0", "t1", "t2", "t3"};
    exec_model *m = exec_model_new(arena, "B=8 S=4 H=4 V=4", micro);
    etch_tensor *table = exec_weight(m, "emb", "V H"), *head = exec_weight(m, "head", "V H");
    etch_tensor *x = exec_call_row(m, "e", "gather", "V", table, exec_ids(m, "ids", "B S"), NULL), *y = x;
    for (uint32_t i = 0; i < 4; i++) {
        y = exec_product(m, "y", exec_call_row(m, "a", "gelu", "", y, NULL, NULL), x, "B S H");
        exec_tag(m, y, tags[i]);
    }
    exec_head_loss(m, y, head);
    return m;
}

typedef struct staged {
    uint32_t micro, layers;
    bool is_tied;
    const char *recompute, *plan;
} staged;

static const staged staged_models[] = {
    {2, 4, false, NULL, "pp=2 | stage layer@pp gpipe"},
    {2, 4, false, NULL, "pp=2 | stage layer@pp"},
    {4, 4, false, NULL, "pp=4 | stage layer@pp"},
    {4, 4, false, NULL, "pp=2 | stage layer@pp interleaved virtual=2"},
    {4, 5, false, NULL, "pp=2 | stage layer@pp interleaved virtual=2"},
    {4, 4, false, NULL, "pp=2 | stage layer@pp counts=1,3"},
    {4, 4, true, NULL, "pp=2 | stage layer@pp"},
    {4, 4, true, "all", "pp=2 | stage layer@pp"},
    {2, 4, true, NULL, "pp=2 dp=2 | B@dp | stage layer@pp"},
    {2, 4, true, NULL, "pp=2 dp=2 tp=2 | B@dp F@tp V@tp | pin residual B@dp S@tp | stage layer@pp"},
    {2, 4, true, NULL, "pp=2 dp=2 | B@dp | zero dp | stage layer@pp"},
    {2, 4, true, NULL, "pp=2 dp=2 | B@dp | zero 2 dp | stage layer@pp"},
    {2, 4, true, NULL, "pp=2 dp=2 | B@dp | zero 3 dp | stage layer@pp"},
    {2, 4, true, "all", "pp=2 dp=2 | B@dp | zero 3 dp | stage layer@pp interleaved virtual=2"},
    {2, 4, true, NULL, "pp=2 dp=2 | B@dp | each | stage layer@pp"},
    {4, 4, false, NULL, "pp=2 | stage layer@pp zb_h1"},
    {8, 8, false, "all", "pp=4 | stage layer@pp zb_h1"},
    {2, 4, true, NULL, "pp=2 dp=2 tp=2 | B@dp F@tp V@tp | pin residual B@dp S@tp | stage layer@pp zb_h1"},
    {4, 4, true, NULL, "pp=2 dp=2 | B@dp | zero 2 dp | stage layer@pp zb_h1"},
    {4, 4, true, "all", "pp=2 dp=2 | B@dp | zero 3 dp | stage layer@pp zb_h1"},
    {4, 4, true, NULL, "pp=2 dp=2 | B@dp | each | stage layer@pp zb_h1"},
    {4, 4, false, NULL, "pp=2 | stage layer@pp zb_h2"},
    {8, 8, false, "all", "pp=4 | stage layer@pp zb_h2"},
    {2, 4, true, NULL, "pp=2 dp=2 tp=2 | B@dp F@tp V@tp | pin residual B@dp S@tp | stage layer@pp zb_h2"},
    {4, 4, true, "all", "pp=2 dp=2 | B@dp | zero 3 dp | stage layer@pp zb_h2"},
    {4, 4, true, NULL, "pp=2 dp=2 | B@dp | each | stage layer@pp zb_h2"},
    {4, 4, false, NULL, "pp=2 | stage layer@pp breadth_first virtual=2"},
    {2, 6, true, "all", "pp=2 dp=2 | B@dp | zero 3 dp | stage layer@pp breadth_first virtual=3"},
    {4, 4, true, NULL, "pp=2 dp=2 | B@dp | each | stage layer@pp breadth_first virtual=2"},
    {2, 4, true, NULL, "pp=2 | stage layer@pp list=F0,F1,B1,B0;F1,F0,B1,B0"},
    {2, 4, true, "all", "pp=2 dp=2 | B@dp | zero 3 dp | stage layer@pp list=F0,F1,I0,W0,B1;F0,I0,F1,B1,W0"},
    {2, 4, true, NULL,
     "pp=2 | stage layer@pp "
     "list=F1.0,F0.0,F1.1,F0.1,I1.1,I0.1,I1.0,I0.0,W0.0,W0.1,W1.0,W1.1;"
     "F1.0,F0.0,F1.1,F0.1,B1.1,I0.1,W0.1,B1.0,B0.0"},
    {2, 4, true, NULL,
     "pp=2 | stage layer@pp mirrored=F0.0,F1.0,F0.1,F1.1,B0.1,B1.1,B1.0,B0.0;"
     "F0.0,F1.0,F0.1,F1.1,B0.1,B1.1,B0.0,B1.0"},
    {4, 4, false, NULL, "pp=2 | stage layer@pp zb_v"},
    {4, 4, true, NULL, "pp=2 | stage layer@pp zb_v"},
    {8, 8, true, "all", "pp=4 | stage layer@pp zb_v"},
    {4, 7, true, NULL, "pp=3 | stage layer@pp zb_v"},
    {2, 4, true, NULL, "pp=2 dp=2 tp=2 | B@dp F@tp V@tp | pin residual B@dp S@tp | stage layer@pp zb_v"},
    {4, 4, true, "all", "pp=2 dp=2 | B@dp | zero 3 dp | stage layer@pp zb_v"},
    {4, 4, true, NULL, "pp=2 dp=2 | B@dp | each | stage layer@pp zb_v"},
    {4, 4, true, NULL, "pp=2 | stage layer@pp dualpipev"},
    {8, 7, true, "all", "pp=3 | stage layer@pp dualpipev"},
    {4, 4, true, "all", "pp=2 dp=2 | B@dp | zero 3 dp | stage layer@pp dualpipev"},
    {4, 4, true, NULL, "pp=2 dp=2 | B@dp | each | stage layer@pp dualpipev"},
    {4, 4, false, NULL, "pp=2 | stage layer@pp dualpipe"},
    {4, 4, true, NULL, "pp=2 | stage layer@pp dualpipe"},
    {8, 6, true, "all", "pp=4 | stage layer@pp dualpipe"},
    {4, 3, true, NULL, "pp=2 dp=2 tp=2 | B@dp F@tp V@tp | pin residual B@dp S@tp | stage layer@pp dualpipe"},
    {4, 4, true, "all", "pp=2 dp=2 | B@dp | zero dp | stage layer@pp dualpipe"},
    {4, 4, false, "all", "pp=2 dp=2 | B@dp | zero 3 dp | stage layer@pp dualpipe"},
    {4, 4, true, "all", "pp=2 dp=2 | B@dp | zero 3 dp | stage layer@pp dualpipe"},
    {4, 4, true, NULL, "pp=2 dp=2 | B@dp | each | stage layer@pp dualpipe"},
    {4, 4, false, NULL, "pp=2 | stage layer@pp list=F0,F1,F2,&B0,F3,&I1,W1,B2,B3;F0,B0,F1,F2,&B1,F3,&B2,B3"},
};

static etch_placed *placed_layers(etch_arena *arena, const staged *c)
{
    exec_model *m = build_layers(arena, c->micro, c->layers, c->is_tied);
    const etch_training *training = exec_train(m, c->recompute);
    const etch_plan *plan = exec_plan(arena, m->sym, c->plan);
    etch_placed *placed = etch_place(training, plan, ETCH_GRANULARITY_KERNEL);
    ck_assert_msg(placed != NULL, "%s is refused", c->plan);
    return placed;
}

static void check_staged(etch_arena *arena, const staged *c)
{
    const etch_placed *placed = placed_layers(arena, c);
    const char *failure = exec_check_slots(placed, 1);
    ck_assert_msg(!failure, "%s%s%s: %s", c->is_tied ? "tied, " : "", c->recompute ? "recomputed, " : "",
                  c->plan, failure);
}

static void layers(etch_arena *arena)
{
    for (uint32_t i = 0; i < sizeof staged_models / sizeof *staged_models; i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        check_staged(own, &staged_models[i]);
        etch_arena_free(own);
    }
}

/* A schedule that is in no table. */
static void own_schedule(etch_arena *arena)
{
    static const char *const plans[] = {"pp=2 | stage layer@pp", "pp=4 | stage layer@pp",
                                        "pp=2 dp=2 | B@dp | zero 3 dp | stage layer@pp"};
    for (uint32_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        exec_model *m = build_layers(arena, 4, 8, i % 2);
        const etch_plan *plan = exec_plan(arena, m->sym, plans[i]);
        ((etch_stage_line *)(uintptr_t)plan->stage)->schedule = &etch_schedule_two_groups;
        const etch_placed *placed = etch_place(exec_train(m, NULL), plan, ETCH_GRANULARITY_KERNEL);
        ck_assert_ptr_nonnull(placed);
        const char *failure = exec_check_slots(placed, 1);
        ck_assert_msg(!failure, "%s: %s", plans[i], failure);
    }
}

START_TEST(a_schedule_of_ones_own_computes_the_same)
{
    etch_with_arena(own_schedule);
}
END_TEST

START_TEST(stages_compute_what_one_rank_computes)
{
    etch_with_arena(layers);
}
END_TEST

/* Bytes of a message: 8/2 sequences of a microbatch, 4 tokens, 4 elements of bf16, two values. Between the
 * layers go what they hand on and the cotangent of what all of them share, however many have read it. */
static void check_shared(etch_arena *arena, exec_model *m, const char *chain, uint32_t most)
{
    const etch_training *training = exec_train(m, NULL);
    const etch_plan *plan = exec_plan(arena, m->sym, etch_text(arena, "pp=2 | stage %s@pp", chain));
    const etch_placed *placed = verified(etch_place(training, plan, ETCH_GRANULARITY_KERNEL));
    const char *failure = exec_check_slots(placed, 1);
    ck_assert_msg(!failure, "%s: %s", chain, failure);
    for (uint32_t i = 0; i < placed->stages->cuts.count; i++) {
        const uint32_t bytes = exec_integer(placed->stages->cuts.at[i].backward_bytes);
        ck_assert_msg(bytes <= most, "%s: %u bytes go back over cut %u", chain, bytes, i);
    }
}

static void shared(etch_arena *arena)
{
    check_shared(arena, build_shared(arena, 2, 3), "first,second", 2 * 8 / 2 * 4 * 4 * 2);
    check_shared(arena, build_units(arena, 2), "t0,t1,t2,t3", 2 * 8 / 2 * 4 * 4 * 2);
}

START_TEST(cotangents_are_added_before_they_are_sent)
{
    etch_with_arena(shared);
}
END_TEST

/* ---- mistakes ------------------------------------------------------------------------------------------ */

static void lose_value(etch_placed *placed)
{
    etch_cut *cut = &placed->stages->cuts.at[0];
    cut->forward.count--;
    cut->forward_bytes = etch_int(placed->training->graph->sym, 0);
}

static void lose_cotangent(etch_placed *placed)
{
    etch_cut *cut = &placed->stages->cuts.at[0];
    cut->backward.count--;
    cut->backward_bytes = etch_int(placed->training->graph->sym, 0);
}

static etch_value *result_called(const etch_placed *placed, const char *name)
{
    for (uint32_t i = 0; i < placed->forward->items.count; i++) {
        const etch_step *step = placed->forward->items.at[i].step;
        if (step && strcmp(step->outs[0]->tensor->name, name) == 0)
            return step->outs[0];
    }
    ck_abort_msg("nothing makes %s", name);
    return NULL;
}

static void send_too_much(etch_placed *placed)
{
    etch_cut *cut = &placed->stages->cuts.at[0];
    etch_value *more = result_called(placed, "e");
    ETCH_PUSH(placed->arena, &cut->forward,
              ((etch_crossing){.value = more, .is_read = true, .is_made = true}));
    cut->forward_bytes =
        etch_add(placed->training->graph->sym, cut->forward_bytes, etch_value_bytes(placed, more));
}

static void count_wrong(etch_placed *placed)
{
    etch_cut *cut = &placed->stages->cuts.at[0];
    cut->backward_bytes = etch_add(placed->training->graph->sym, cut->backward_bytes,
                                   etch_int(placed->training->graph->sym, 2));
}

static void run_elsewhere(etch_placed *placed)
{
    result_called(placed, "n")->step->position = etch_position_at(0, ETCH_FIRST_OF);
}

static void run_nowhere(etch_placed *placed)
{
    etch_placed_region *backward = placed->backward;
    for (uint32_t i = 0; i < backward->items.count; i++)
        if (backward->items.at[i].step)
            backward->items.at[i].step->position = ETCH_NO_POSITION;
}

static etch_step_task *shared_reduction(const etch_placed *placed)
{
    for (uint32_t i = 0; i < placed->program->end.count; i++)
        if (placed->program->end.at[i]->end == ETCH_END_REDUCE_SHARED)
            return placed->program->end.at[i];
    ck_abort_msg("no weight is shared");
    return NULL;
}

static void share_nothing(etch_placed *placed)
{
    shared_reduction(placed)->contributions.count = 0;
}

static void share_too_little(etch_placed *placed)
{
    shared_reduction(placed)->contributions.at[0].payload = etch_int(placed->training->graph->sym, 4);
}

static void forget_use(etch_placed *placed)
{
    const etch_graph *graph = placed->training->graph;
    for (uint32_t i = 0; i < graph->weights.count; i++)
        if (placed->stages->uses[graph->weights.at[i]->id].count > 1)
            placed->stages->uses[graph->weights.at[i]->id].count = 1;
}

static etch_action *actions_of(exec_slots *s, uint32_t stage)
{
    etch_action *actions = ETCH_NEW_ARRAY(s->arena, s->action_count, etch_action);
    memcpy(actions, s->actions[stage], s->action_count * sizeof *actions);
    ((const etch_action **)(uintptr_t)s->actions)[stage] = actions;
    return actions;
}

/* The first action goes back before anything has gone forward. */
static void go_back_first(exec_slots *s)
{
    etch_action *actions = actions_of(s, 0);
    actions[0] = (etch_action){.kind = ETCH_ACTION_BACKWARD};
}

static void skip_action(exec_slots *s)
{
    for (uint32_t i = 0; i < s->chain.stages; i++)
        actions_of(s, i);
    s->action_count--;
}

static void repeat_action(exec_slots *s)
{
    for (uint32_t i = 0; i < s->chain.stages; i++) {
        etch_action *actions = actions_of(s, i);
        actions[s->action_count - 1] = actions[s->action_count - 2];
    }
}

typedef struct mistake {
    void (*in_plan)(etch_placed *placed);
    void (*in_schedule)(exec_slots *s);
    const char *told; /* part of what must be said */
} mistake;

static const mistake mistakes[] = {
    {NULL, NULL, NULL},
    {lose_value, NULL, "is read where it is not made"},
    {lose_cotangent, NULL, "is read where it is not made"},
    {send_too_much, NULL, "is sent and nobody reads it"},
    {count_wrong, NULL, "a message has 64 bytes, 66 are said"},
    {run_elsewhere, NULL, "is read where it is not made"},
    {run_nowhere, NULL, "is read where it is not made"},
    {share_nothing, NULL, "on one rank it is"},
    {share_too_little, NULL, "stages add up 64 bytes, 4 are said"},
    {forget_use, NULL, "is not said to be there"},
    {NULL, go_back_first,
     "it stalls; stage 0 waits for backward of microbatch 0 by stage 1; stage 1 waits for forward of "
     "microbatch 0 by stage 0"},
    {NULL, skip_action, "runs 1 times, not 2"},
    {NULL, repeat_action, "runs 10 times, not 8"},
};

static void plant(etch_arena *arena)
{
    const staged tied = {2, 4, true, NULL, "pp=2 dp=2 | B@dp | stage layer@pp"};
    for (uint32_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_placed *placed = placed_layers(own, &tied);
        if (mistakes[i].in_plan)
            mistakes[i].in_plan(placed);
        exec_slots *s = exec_slots_new(own, placed, 1);
        if (mistakes[i].in_schedule)
            mistakes[i].in_schedule(s);
        exec_slots_run(s);
        if (!s->failure)
            s->failure = s->unneeded;
        if (mistakes[i].told)
            ck_assert_msg(s->failure && strstr(s->failure, mistakes[i].told), "mistake %u: %s", i,
                          s->failure ? s->failure : "nobody notices");
        else
            ck_assert_msg(!s->failure, "%s", s->failure);
        exec_slots_release(s);
        etch_arena_free(own);
    }
}

START_TEST(mistakes_are_noticed)
{
    etch_with_arena(plant);
}
END_TEST

/* ---- models of the zoo --------------------------------------------------------------------------------- */

/* All loops of the top level, as a stage line lists them; "": there is none. How many layers that is. */
static const char *loops_of(const exec_model *m, uint32_t *layers)
{
    const etch_region *forward = m->graph->forward;
    etch_buf text = {.arena = m->arena};
    etch_buf_puts(&text, "");
    *layers = 0;
    for (uint32_t i = 0; i < forward->items.count; i++) {
        const etch_loop *loop = forward->items.at[i].loop;
        if (!loop)
            continue;
        etch_buf_printf(&text, "%s%s", *layers ? "," : "", loop->name);
        *layers += exec_integer(loop->count);
    }
    return text.text;
}

/* A plan of the zoo, or none, on two stages in front of it. False: it is refused. */
static bool check_zoo_plan(etch_arena *arena, const exec_zoo *zoo, const char *lines, uint32_t variant)
{
    static const char *const schedules[] = {
        "gpipe", "one_f_one_b", "interleaved virtual=2", "zb_h1", "breadth_first virtual=2", "zb_h2",
        "zb_v",  "dualpipev"};
    enum { COUNT = sizeof schedules / sizeof *schedules };
    const bool comes_back = variant % COUNT >= COUNT - 2, is_twice = variant % (2 * COUNT) == 2 * COUNT - 1;
    const char *loops, *schedule = is_twice ? "dualpipe" : schedules[variant % COUNT];
    const bool overlaps = strncmp(schedule, "dual", 4) == 0;
    const bool is_dual = overlaps && exec_zoo_has_microbatches(arena, zoo, lines, 4);
    exec_model *m = zoo->build(arena, is_dual ? 4 : 2); /* sequences, of 8 */
    uint32_t layers;
    loops = loops_of(m, &layers);
    if (layers < (strstr(schedule, "virtual") || comes_back ? 4 : 2))
        schedule = is_dual ? schedules[1] : "list=F0,F1,&B0,B1;F0,B0,F1,B1";
    else if (overlaps && !is_dual)
        schedule = "list=F0,F1,&B0,B1;F0,B0,F1,B1";
    if (layers < 2)
        return false;
    const char *text = etch_text(arena, "pp=2 %s | stage %s@pp %s", lines, loops, schedule);
    const etch_training *training = exec_train(m, zoo->recompute);
    const etch_placed *placed = etch_place(training, exec_plan(arena, m->sym, text), ETCH_GRANULARITY_KERNEL);
    if (!placed)
        return false;
    const char *failure = exec_check_slots(placed, 1);
    ck_assert_msg(!failure, "%s, %s: %s", zoo->name, text, failure);
    return true;
}

static void zoo(etch_arena *arena)
{
    uint32_t placed = 0, variant = 0;
    for (const exec_zoo *z = exec_models; z->name; z++)
        for (uint32_t i = 0; z->plans[i]; i++) {
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            placed += check_zoo_plan(own, z, z->plans[i], variant++);
            etch_arena_free(own);
        }
    ck_assert_uint_gt(placed, 300);
}

START_TEST(models_of_the_zoo_run_on_stages)
{
    etch_with_memory((size_t)1 << 30, zoo);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("slots");
    ETCH_ADD_TESTS(suite, mistakes_are_noticed, cotangents_are_added_before_they_are_sent,
                   stages_compute_what_one_rank_computes, a_schedule_of_ones_own_computes_the_same,
                   models_of_the_zoo_run_on_stages);
    return suite;
}
