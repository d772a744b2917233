/* Steps that differ in numbers, mesh and microbatches alone are told from what they have in common, and take
 * as long as when all of their nodes are run, to the picosecond. */
#include <stdio.h>
#include <stdlib.h>

#include "session/query/query.h"
#include "simulate/simulate.h"
#include "suite.h"

typedef struct shape_case {
    /* `first`: of the step that the shape is made of; `other`: of the one that is told */
    const char *spec, *plan, *schedule, *first, *other;
    bool is_told;
} shape_case;

#define LLAMA "layers=16,hidden=64,heads=8,kv_heads=8,head_dim=8,ffn=64,vocab=64,"
#define MIXTRAL LLAMA "experts=4,topk=2,expert_ffn=64,"
#define FEW "seq=64,batch=1280,micro="
#define MORE "seq=128,batch=76800,micro="

static const shape_case cases[] = {
    {"llama", "fsdp", NULL, LLAMA FEW "40,dp=8", LLAMA MORE "240,dp=16", true},
    {"llama", "hsdp", NULL, LLAMA FEW "20,rep=2,part=4", LLAMA MORE "40,rep=4,part=8", true},
    {"llama", "ddp", NULL, LLAMA FEW "1,dp=2", LLAMA MORE "1,dp=8", true},
    {"llama", "megatron_sp", NULL, LLAMA FEW "2,dp=2,tp=2", LLAMA MORE "2,dp=8,tp=8", true},
    {"llama", "megatron_zero", NULL, LLAMA FEW "20,dp=4,tp=2", LLAMA MORE "120,dp=8,tp=4", true},
    {"llama", "megatron_pp", "plan.schedule=gpipe", LLAMA FEW "64,pp=4,dp=2,tp=2",
     LLAMA MORE "100,pp=4,dp=4,tp=4", true},
    {"llama", "megatron_pp", "plan.schedule=one_f_one_b", LLAMA FEW "40,pp=8,dp=2,tp=2",
     LLAMA MORE "240,pp=8,dp=4,tp=4", true},
    {"llama", "megatron_pp", "plan.schedule=one_f_one_b", LLAMA FEW "5,pp=4,dp=2,tp=2",
     LLAMA MORE "5,pp=4,dp=8,tp=4", true},
    {"llama", "megatron_pp", "plan.schedule=zb_h1", LLAMA FEW "40,pp=4,dp=2,tp=2",
     LLAMA MORE "200,pp=4,dp=2,tp=8", true},
    {"llama", "megatron_pp", "plan.recompute=full", LLAMA FEW "40,pp=4,dp=2,tp=2",
     LLAMA MORE "200,pp=4,dp=2,tp=8", true},
    {"llama", "megatron_interleaved", NULL, LLAMA FEW "64,pp=4,dp=2,tp=2", LLAMA MORE "160,pp=4,dp=4,tp=4",
     true},
    {"llama", "megatron_interleaved", "plan.schedule=interleaved(virtual = 4)", LLAMA FEW "64,pp=2,dp=2,tp=2",
     LLAMA MORE "120,pp=2,dp=2,tp=8", true},
    {"mixtral", "moe_pp", NULL, MIXTRAL FEW "40,pp=4,dp=4,ep=2,tp=2", MIXTRAL MORE "200,pp=4,dp=8,ep=4,tp=4",
     true},
    {"mixtral", "moe_ep", NULL, MIXTRAL FEW "4,dp=8,ep=4,tp=2", MIXTRAL MORE "4,dp=8,ep=2,tp=4", true},
    {"llama", "long_context_pp", NULL, LLAMA FEW "32,pp=4,dp=2,cp=2,tp=2",
     LLAMA MORE "160,pp=4,dp=2,cp=4,tp=2", true},
    {"llama", "context_gather", NULL, LLAMA FEW "20,dp=2,cp=4,tp=2", LLAMA MORE "40,dp=2,cp=8,tp=4", true},
    /* parts of a causal context do unlike work */
    {"llama", "long_context_pp", "plan.balance=false", LLAMA FEW "32,pp=4,dp=2,cp=2,tp=2",
     LLAMA MORE "160,pp=4,dp=2,cp=2,tp=2", false},
    /* a brief job does not show what slots wait for */
    {"llama", "megatron_pp", "plan.schedule=dualpipev", LLAMA FEW "64,pp=4,dp=2,tp=2",
     LLAMA MORE "80,pp=4,dp=4,tp=2", false},
};

static etch_session *open_spec(const char *spec, const shape_case *c, const char *sizes)
{
    char path[4096];
    const etch_session_options options = {.struct_size = sizeof options,
                                          .spec = path,
                                          .plan = c ? c->plan : NULL,
                                          .sets = sizes ? &sizes : NULL,
                                          .set_count = sizes != NULL,
                                          .plan_sets = c ? &c->schedule : NULL,
                                          .plan_set_count = c && c->schedule};
    etch_session *session;
    snprintf(path, sizeof path, "%s/%s.etch", getenv("ETCH_SOURCE_DIR"), spec);
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    return session;
}

/* A step: what it is made of, with values, and how long it takes when it is run. */
typedef struct shown {
    const etch_cluster *cluster;
    const etch_stack *stack;
    etch_session *session;
    const etch_job *job;
    etch_step_form form;
    const etch_simulated *run;
    etch_task_numbers *numbers;
    etch_compiled *p;
} shown;

static uint64_t number_of(const shown *s, etch_expr expr, bool is_average)
{
    etch_sym *sym = s->session->sym;
    uint64_t number = 0;
    if (!expr)
        return 0;
    etch_expr value = etch_settings_apply(sym, s->p->settings, expr);
    if (is_average)
        value = etch_ceil(sym, value);
    return etch_to_u64(value, &number) ? number : 0; /* that of a part is not told */
}

static etch_status show(void *data)
{
    shown *s = data;
    etch_arena *arena = s->session->arena;
    etch_compiled *p = s->p = etch_compiled_get(s->session, NULL, NULL, true, (etch_span){0, 0});
    ck_assert(p && etch_compiled_place(s->session, p));
    etch_kernels_count(p->placed);
    etch_lower_options options = {.values = etch_compiled_values(s->session, p, p->placed),
                                  .workloads = true};
    const etch_simulate_options how = {.cluster = s->cluster, .stack = s->stack};
    ck_assert_int_eq(etch_lower(arena, &options, &s->job), ETCH_OK);
    ck_assert_int_eq(etch_simulate(arena, s->session->diags, s->job, &how, &s->run), ETCH_OK);
    options.form = &s->form;
    options.brief = 1;
    ck_assert_int_eq(etch_lower(arena, &options, &s->job), ETCH_OK);
    s->numbers = ETCH_NEW_ARRAY(arena, s->form.tasks.count, etch_task_numbers);
    for (uint32_t i = 0; i < s->form.tasks.count; i++) {
        const etch_task_form *f = &s->form.tasks.at[i];
        const bool rounds = f->is_average;
        s->numbers[i] = (etch_task_numbers){.flop = number_of(s, f->flop, rounds),
                                            .bytes = number_of(s, f->bytes, rounds),
                                            .load = {.kind = f->kind,
                                                     .backward = f->backward,
                                                     .dtype = f->dtype,
                                                     .flop = number_of(s, f->product_flop, rounds),
                                                     .keys = number_of(s, f->keys, rounds),
                                                     .m = number_of(s, f->m, rounds),
                                                     .n = number_of(s, f->n, rounds),
                                                     .k = number_of(s, f->k, rounds),
                                                     .batch = number_of(s, f->batch, rounds)}};
    }
    return ETCH_OK;
}

/* Another row: its tasks compute and move three times as much. */
static etch_task_numbers *larger(const shown *s)
{
    etch_task_numbers *numbers = ETCH_NEW_ARRAY(s->session->arena, s->form.tasks.count, etch_task_numbers);
    for (uint32_t i = 0; i < s->form.tasks.count; i++) {
        numbers[i] = s->numbers[i];
        numbers[i].flop *= 3;
        numbers[i].bytes *= 3;
        numbers[i].load.flop *= 3;
    }
    return numbers;
}

/* The step of `s` from the shape: as one of more rows than are timed at once, of which every other one is
 * another. */
static void tell(etch_step_shape *shape, const shown *s)
{
    enum { ROWS = 21 };
    etch_arena *arena = s->session->arena;
    uint32_t *sizes = ETCH_NEW_ARRAY(arena, s->job->mesh_count, uint32_t);
    etch_step_time times[ROWS];
    bool told[ROWS];
    for (uint32_t i = 0; i < s->job->mesh_count; i++)
        sizes[i] = s->job->mesh[i].size;
    const etch_shape_place *place = etch_step_shape_place(arena, shape, s->cluster, sizes);
    const etch_shape_flow *flow = etch_step_shape_flow(arena, shape, s->job->pipe->microbatches);
    ck_assert(place && flow);
    ck_assert(etch_form_shows(&s->form, s->job, s->job->pipe->microbatches));
    etch_timer *timer = etch_timer_new(arena);
    const etch_task_numbers *numbers[] = {s->numbers, larger(s)};
    etch_timer_begin(timer, shape, s->cluster, s->stack);
    for (int i = 0; i < ROWS; i++)
        etch_timer_add(timer, place, flow, numbers[i % 2], &times[i], &told[i]);
    etch_timer_end(timer);
    for (int i = 0; i < ROWS; i++) {
        ck_assert(told[i]);
        if (i % 2) {
            ck_assert_uint_gt(times[i].step, times[0].step);
            ck_assert_uint_eq(times[i].step, times[1].step);
            continue;
        }
        ck_assert_uint_eq(times[i].step, s->run->step);
        ck_assert_uint_eq(times[i].error, s->run->error);
    }
}

START_TEST(steps_of_a_shape_take_as_long_as_their_runs)
{
    const shape_case *c = &cases[_i];
    char spec[256];
    snprintf(spec, sizeof spec, "models/%s", c->spec);
    etch_session *machine = open_spec("machines/h100_sxm", NULL, NULL);
    const etch_cluster *cluster = etch_session_cluster(machine, NULL);
    ck_assert(cluster && cluster->stacks.count > 0);
    shown first = {.cluster = cluster, .session = open_spec(spec, c, c->first)};
    shown other = {
        .cluster = cluster, .stack = &cluster->stacks.at[0], .session = open_spec(spec, c, c->other)};
    ck_assert_int_eq(etch_session_run_bound(first.session, show, &first), ETCH_OK);
    ck_assert_int_eq(etch_session_run_bound(other.session, show, &other), ETCH_OK);
    etch_step_shape *shape =
        etch_step_shape_make(first.session->arena, first.job, &first.form, first.cluster);
    const bool is_told =
        shape && etch_step_shape_flow(first.session->arena, shape, first.job->pipe->microbatches);
    ck_assert_msg(is_told == c->is_told, "%s", c->plan);
    if (is_told) {
        ck_assert_uint_eq(first.form.tasks.count, other.form.tasks.count);
        tell(shape, &first);
        tell(shape, &other);
    }
    etch_session_close(first.session);
    etch_session_close(other.session);
    etch_session_close(machine);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("shapes");
    TCase *tests = tcase_create("steps");
    tcase_add_loop_test(tests, steps_of_a_shape_take_as_long_as_their_runs, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(suite, tests);
    return suite;
}
