/* Steps of plans that come with etch are told from brief jobs, and take as long as when all of their nodes
 * are run, to the picosecond. */
#include <stdio.h>
#include <stdlib.h>

#include "session/query/query.h"
#include "simulate/simulate.h"
#include "suite.h"

typedef struct brief_case {
    const char *spec, *plan, *sizes, *schedule;
    /* from 1 on: how brief the job may be at most */
    uint32_t brief;
} brief_case;

#define SIZES "layers=14,hidden=64,heads=8,kv_heads=8,head_dim=8,ffn=64,vocab=64,seq=64,batch=1280,micro="

static const brief_case cases[] = {
    {"llama", "fsdp", SIZES "40,dp=8", NULL, 1},
    {"llama", "hsdp", SIZES "20,rep=2,part=4", NULL, 1},
    {"llama", "megatron_zero", SIZES "20,dp=4,tp=2", NULL, 1},
    {"llama", "context_gather", SIZES "20,dp=2,cp=4,tp=2", NULL, 1},
    {"llama", "megatron_pp", SIZES "64,pp=4,dp=2,tp=2", "plan.schedule=gpipe", 1},
    {"llama", "megatron_pp", SIZES "40,pp=8,dp=2,tp=2", "plan.schedule=one_f_one_b", 1},
    {"llama", "megatron_pp", SIZES "40,pp=4,dp=2,tp=2", "plan.schedule=zb_h1", 1},
    {"llama", "megatron_pp", SIZES "64,pp=4,dp=2,tp=2", "plan.schedule=zb_v", 2},
    {"llama", "long_context_pp", SIZES "32,pp=4,dp=2,cp=2,tp=2", "plan.recompute=full", 1},
    {"llama", "megatron_interleaved", SIZES "64,pp=4,dp=2,tp=2", NULL, 1},
    {"llama", "megatron_interleaved", SIZES "64,pp=2,dp=2,tp=2", "plan.schedule=interleaved(virtual = 4)", 1},
    {"mixtral", "moe_pp", SIZES "40,pp=4,dp=4,ep=2,tp=2,experts=4,topk=2,expert_ffn=64", NULL, 1},
};

static etch_session *open_spec(const char *spec, const brief_case *c, const char *machine_set)
{
    char path[4096];
    const etch_session_options options = {.struct_size = sizeof options,
                                          .spec = path,
                                          .plan = c ? c->plan : NULL,
                                          .sets = c ? &c->sizes : NULL,
                                          .set_count = c != NULL,
                                          .plan_sets = c ? &c->schedule : NULL,
                                          .plan_set_count = c && c->schedule,
                                          .machine_sets = &machine_set,
                                          .machine_set_count = machine_set != NULL};
    etch_session *session;
    snprintf(path, sizeof path, "%s/%s.etch", getenv("ETCH_SOURCE_DIR"), spec);
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    return session;
}

typedef struct comparing {
    const brief_case *c;
    etch_session *session;
    const etch_cluster *cluster;
    const etch_stack *stack;
} comparing;

static const etch_job *lower(const comparing *k, etch_compiled *p, uint32_t brief)
{
    const etch_style style = {.workloads = true, .brief = brief};
    const etch_job *job;
    ck_assert_int_eq(etch_compiled_lower(k->session, p, &style, &job), ETCH_OK);
    return job;
}

static etch_status compare(void *data)
{
    const comparing *k = data;
    etch_arena *arena = k->session->arena;
    etch_compiled *p = etch_compiled_get(k->session, NULL, NULL, true, (etch_span){0, 0});
    const etch_simulate_options options = {.cluster = k->cluster, .stack = k->stack};
    const etch_simulated *run;
    etch_step_time time;
    ck_assert(p && etch_compiled_place(k->session, p));
    ck_assert_int_eq(etch_simulate(arena, k->session->diags, lower(k, p, 0), &options, &run), ETCH_OK);
    ck_assert(!etch_simulate_brief(arena, lower(k, p, 0), &options, &time));
    bool known = false;
    for (uint32_t brief = 1; brief <= k->c->brief; brief++) {
        const etch_job *job = lower(k, p, brief);
        ck_assert(job->pipe && job->microbatches < job->pipe->microbatches);
        known = etch_simulate_brief(arena, job, &options, &time);
        ck_assert(!known || (time.step == run->step && time.error == run->error));
    }
    ck_assert_msg(known, "%s %s %s", k->c->spec, k->c->plan, k->c->schedule ? k->c->schedule : "");
    return ETCH_OK;
}

/* Alone, and as a stack runs it, with hosts that launch. */
START_TEST(brief_jobs_take_as_long_as_whole_ones)
{
    const brief_case *c = &cases[_i];
    char spec[256];
    snprintf(spec, sizeof spec, "models/%s", c->spec);
    etch_session *machine = open_spec("machines/h100_sxm", NULL, "llm_foundry.launch = 3 us");
    for (int with_stack = 0; with_stack < 2; with_stack++) {
        comparing k = {.c = c, .session = open_spec(spec, c, NULL)};
        k.cluster = etch_session_cluster(k.session, machine);
        ck_assert(k.cluster && k.cluster->stacks.count > 0);
        k.stack = with_stack ? &k.cluster->stacks.at[0] : NULL;
        ck_assert_int_eq(etch_session_run_bound(k.session, compare, &k), ETCH_OK);
        etch_session_close(k.session);
    }
    etch_session_close(machine);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("brief");
    TCase *tests = tcase_create("steps");
    tcase_add_loop_test(tests, brief_jobs_take_as_long_as_whole_ones, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(suite, tests);
    return suite;
}
