/* Verification: files, groups, each rank by itself, and all ranks together. */
#include "trace/rank_int.h"

#include <pthread.h>
#include <stdlib.h>

enum { BATCH_RANKS = 16 };

typedef struct verifying {
    etch_arena *arena;
    const etch_verify_options *options;
    etch_diags *diags;
    etch_verify_result *result;
    etch_trace_set set;
    etch_trace_groups groups;
    etch_program_table *programs;
    etch_pattern_table *patterns;
    etch_rank *ranks;
    etch_findings *findings;
    etch_rank_counts *counts;
    /* of one protocol after the other */
    bool rendezvous;
    /* the other one has come to its end */
    bool adds;
    /* of all ranks. Not there where one rank of each class was enough: then there is nothing to explain */
    etch_run run;
    etch_fold fold;
    bool is_folded, has_tried;
    /* runs with random durations */
    /* holds what is below */
    pthread_mutex_t lock;
    etch_verify_marks *marks;
    /* the smallest, or ETCH_NONE */
    uint32_t stalling_seed;
} verifying;

static const etch_span nowhere = {0, 0};

const char *etch_protocol_name(etch_protocol protocol)
{
    static const char *const names[ETCH_PROTOCOL_COUNT] = {[ETCH_PROTOCOL_BOTH] = "both",
                                                           [ETCH_PROTOCOL_EAGER] = "eager",
                                                           [ETCH_PROTOCOL_RENDEZVOUS] = "rendezvous"};
    return (unsigned)protocol < ETCH_PROTOCOL_COUNT ? names[protocol] : NULL;
}

const char *etch_verdict_name(etch_verdict_kind verdict)
{
    static const char *const names[ETCH_VERDICT_COUNT] = {[ETCH_VERDICT_NONE] = "none",
                                                          [ETCH_VERDICT_ALWAYS] = "always",
                                                          [ETCH_VERDICT_BY_TIMING] = "timing",
                                                          [ETCH_VERDICT_STALLS] = "stalls",
                                                          [ETCH_VERDICT_BY_PROTOCOL] = "protocol"};
    return (unsigned)verdict < ETCH_VERDICT_COUNT ? names[verdict] : NULL;
}

static etch_verdict_kind *verdict_of(const verifying *v)
{
    return &v->result->verdicts[v->rendezvous ? ETCH_PROTOCOL_RENDEZVOUS : ETCH_PROTOCOL_EAGER];
}

static void note_stalled(verifying *v)
{
    if (v->run.stalled > v->result->stalled)
        v->result->stalled = v->run.stalled;
}

static etch_status check_cancel(const verifying *v)
{
    if (!v->options->cancel || atomic_load(v->options->cancel) == 0)
        return ETCH_OK;
    etch_error(v->diags, ETCH_E_OUTPUT_CANCELLED, nowhere, "the run was cancelled");
    return ETCH_ELIMIT;
}

/* ---- every rank by itself ------------------------------------------------------------------------------ */

static etch_status read_rank(const verifying *v, uint32_t rank, etch_desk *desk)
{
    const etch_rank_job job = {.options = v->options,
                               .set = &v->set,
                               .groups = &v->groups,
                               .programs = v->programs,
                               .patterns = v->patterns,
                               .desk = desk,
                               .rank = rank,
                               .findings = &v->findings[rank],
                               .result = &v->ranks[rank],
                               .counts = &v->counts[rank]};
    return etch_rank_read(&job);
}

/* Ranks in a row, which share a desk. */
static etch_status read_batch(void *data, size_t i)
{
    const verifying *v = data;
    const uint32_t first = (uint32_t)i * BATCH_RANKS, left = v->set.rank_count - first;
    etch_desk desk = {0};
    etch_status status = ETCH_OK;
    for (uint32_t k = 0; k < left && k < BATCH_RANKS && status == ETCH_OK; k++)
        status = read_rank(v, first + k, &desk);
    etch_desk_free(&desk);
    return status;
}

static void add_counts(verifying *v)
{
    etch_verify_result *r = v->result;
    for (uint32_t rank = 0; rank < v->set.rank_count; rank++) {
        const etch_rank_counts *c = &v->counts[rank];
        r->nodes += c->nodes;
        r->bytes += c->bytes;
        r->computations += c->of[ETCH_WORK_COMPUTE];
        r->memory += c->of[ETCH_WORK_MEMORY];
        r->collectives += c->of[ETCH_WORK_COLLECTIVE];
        r->sends += c->of[ETCH_WORK_SEND];
        r->receives += c->of[ETCH_WORK_RECEIVE];
        for (uint32_t i = 0; i < v->ranks[rank].group_count; i++)
            v->groups.at[v->ranks[rank].groups[i]].used = true;
    }
    r->ranks = v->set.rank_count;
    r->groups = v->groups.numbered - 1;
    r->programs = etch_program_table_count(v->programs);
}

/* A group that nothing uses is left over; very many say that the file is not about these ranks. */
static void report_unused(const verifying *v)
{
    enum { GROUPS_OF_A_RANK = 16, ANY_GROUPS = 64 };
    uint32_t count = 0, first = 0;
    for (uint32_t i = v->groups.numbered - 1; i > 0; i--)
        if (!v->groups.at[i].used) {
            count++;
            first = v->groups.at[i].id;
        }
    if (count == 0)
        return;
    if (count > (uint64_t)GROUPS_OF_A_RANK * v->set.rank_count + ANY_GROUPS) {
        etch_diag *many = etch_warning(v->diags, ETCH_E_VERIFY_GROUP_MANY, nowhere,
                                       "no collective is of %u of the %u groups", (unsigned)count,
                                       (unsigned)v->groups.numbered - 1);
        etch_help(many, "this seems to be the group file of other traces");
        return;
    }
    etch_diag *diag = etch_remark(v->diags, ETCH_E_VERIFY_GROUP_UNUSED, nowhere,
                                  "no collective is of group %u", (unsigned)first);
    if (count > 1)
        etch_note(diag, nowhere, "nor of %u other groups", (unsigned)count - 1);
}

static bool can_run(const verifying *v)
{
    bool all = true;
    for (uint32_t rank = 0; rank < v->set.rank_count && all; rank++)
        all = v->ranks[rank].program != NULL;
    return all;
}

static bool is_ordered(const verifying *v)
{
    bool all = true;
    for (uint32_t rank = 0; rank < v->set.rank_count && all; rank++)
        all = v->ranks[rank].ordered;
    return all;
}

static bool is_frail(const verifying *v)
{
    bool any = false;
    for (uint32_t rank = 0; rank < v->set.rank_count && !any; rank++)
        any = v->ranks[rank].frail;
    return any;
}

static bool is_oversized(const verifying *v)
{
    bool any = false;
    for (uint32_t rank = 0; rank < v->set.rank_count && !any; rank++)
        any = v->ranks[rank].oversized;
    return any;
}

/* ---- all ranks together -------------------------------------------------------------------------------- */

static etch_run new_run(const verifying *v, etch_timing timing)
{
    return (etch_run){.ranks = v->ranks,
                      .groups = &v->groups,
                      .rank_count = v->set.rank_count,
                      .timing = timing,
                      .rendezvous = v->rendezvous,
                      .cancel = v->options->cancel,
                      .set = &v->set};
}

static etch_status run_seed(void *data, size_t i)
{
    verifying *v = data;
    etch_run run = new_run(v, ETCH_TIMING_RANDOM);
    run.seed = i + 1;
    const etch_status status = etch_run_go(&run);
    pthread_mutex_lock(&v->lock);
    for (uint32_t rank = 0; status == ETCH_OK && rank < run.rank_count; rank++) {
        const etch_verify_marks *of = &run.lanes[rank].marks;
        etch_verify_marks *most = &v->marks[rank];
        most->ready = of->ready > most->ready ? of->ready : most->ready;
        most->in_flight = of->in_flight > most->in_flight ? of->in_flight : most->in_flight;
    }
    if (run.stalled > 0 && i + 1 < v->stalling_seed)
        v->stalling_seed = (uint32_t)i + 1;
    pthread_mutex_unlock(&v->lock);
    etch_run_free(&run);
    return status;
}

/* The run of the smallest seed under which ranks stall, once more: for what is to be said of it. */
static etch_status explain_seed(verifying *v)
{
    v->run = new_run(v, ETCH_TIMING_RANDOM);
    v->run.seed = v->stalling_seed;
    const etch_status status = etch_run_go(&v->run);
    if (status != ETCH_OK)
        return status;
    *verdict_of(v) = ETCH_VERDICT_STALLS;
    note_stalled(v);
    etch_run_explain(&v->run, v->adds, v->arena, v->diags);
    etch_run_free(&v->run);
    return ETCH_OK;
}

static etch_status run_seeds(verifying *v)
{
    if (v->options->seeds == 0)
        return ETCH_OK;
    if (!v->marks)
        v->marks = ETCH_NEW_ARRAY(v->arena, v->set.rank_count, etch_verify_marks);
    v->stalling_seed = ETCH_NONE;
    if (pthread_mutex_init(&v->lock, NULL) != 0)
        return ETCH_ENOMEM;
    etch_status status = etch_parallel(v->options->threads, v->options->seeds, run_seed, v);
    pthread_mutex_destroy(&v->lock);
    v->result->marks = v->marks;
    if (status == ETCH_OK && v->stalling_seed != ETCH_NONE && *verdict_of(v) != ETCH_VERDICT_STALLS)
        status = explain_seed(v);
    return status;
}

/* One rank of each class. `*enough`: all ranks come to their end. */
static etch_status run_classes(verifying *v, bool *enough)
{
    *enough = false;
    if (!v->has_tried)
        v->is_folded = etch_fold_make(v->ranks, v->set.rank_count, &v->groups, &v->fold);
    v->has_tried = true;
    if (!v->is_folded)
        return ETCH_OK;
    etch_run run = new_run(v, ETCH_TIMING_NONE);
    run.ranks = v->fold.ranks;
    run.rank_count = v->fold.rank_count;
    run.groups = &v->fold.groups;
    run.findings = v->fold.findings;
    const etch_status status = etch_run_go(&run);
    *enough = status == ETCH_OK && etch_fold_finishes(&v->fold, &run);
    etch_run_free(&run);
    return status;
}

/* Where communication is ordered, one run stands for all: see docs/verify.md. */
static etch_status run_ranks(verifying *v)
{
    const bool ordered = is_ordered(v);
    bool enough = false;
    const etch_status class_status = ordered ? run_classes(v, &enough) : ETCH_OK;
    if (class_status != ETCH_OK)
        return class_status;
    v->run = (etch_run){0};
    if (enough) {
        *verdict_of(v) = is_frail(v) ? ETCH_VERDICT_BY_TIMING : ETCH_VERDICT_ALWAYS;
        return ETCH_OK;
    }
    v->run = new_run(v, ordered ? ETCH_TIMING_NONE : ETCH_TIMING_NOMINAL);
    v->run.findings = v->options->protocol == ETCH_PROTOCOL_BOTH && v->rendezvous ? NULL : v->findings;
    const etch_status status = etch_run_go(&v->run);
    if (status != ETCH_OK)
        return status;
    note_stalled(v);
    *verdict_of(v) = v->run.stalled > 0        ? ETCH_VERDICT_STALLS
                     : ordered && !is_frail(v) ? ETCH_VERDICT_ALWAYS
                                               : ETCH_VERDICT_BY_TIMING;
    return ETCH_OK;
}

static etch_status explain_ranks(verifying *v)
{
    if (v->run.lanes)
        etch_run_explain(&v->run, v->adds, v->arena, v->diags);
    etch_run_free(&v->run);
    return run_seeds(v);
}

/* ---- both protocols ------------------------------------------------------------------------------------ */

static bool finishes(etch_verdict_kind verdict)
{
    return verdict == ETCH_VERDICT_ALWAYS || verdict == ETCH_VERDICT_BY_TIMING;
}

/* After a look at eager sends. Where nothing is sent they are the same. */
static etch_status run_under_rendezvous(verifying *v)
{
    const etch_verdict_kind eager = *verdict_of(v);
    v->rendezvous = true;
    v->adds = finishes(eager);
    *verdict_of(v) = is_oversized(v) ? ETCH_VERDICT_NONE : eager;
    if (*verdict_of(v) == ETCH_VERDICT_NONE || v->result->sends == 0)
        return ETCH_OK;
    const etch_status status = run_ranks(v);
    return status == ETCH_OK && v->adds ? explain_ranks(v) : status;
}

static etch_verdict_kind worst_verdict(const etch_verify_result *r)
{
    const etch_verdict_kind eager = r->verdicts[ETCH_PROTOCOL_EAGER];
    const etch_verdict_kind rendezvous = r->verdicts[ETCH_PROTOCOL_RENDEZVOUS];
    if (eager == ETCH_VERDICT_COUNT)
        return rendezvous;
    if (rendezvous == ETCH_VERDICT_COUNT || !finishes(eager))
        return eager;
    if (!finishes(rendezvous))
        return ETCH_VERDICT_BY_PROTOCOL;
    return eager == ETCH_VERDICT_ALWAYS ? rendezvous : eager;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

static etch_status read_ranks(verifying *v)
{
    const uint32_t count = v->set.rank_count;
    v->ranks = ETCH_NEW_ARRAY(v->arena, count, etch_rank);
    v->findings = ETCH_NEW_ARRAY(v->arena, count, etch_findings);
    v->counts = ETCH_NEW_ARRAY(v->arena, count, etch_rank_counts);
    v->programs = etch_program_table_new(v->options->program_bytes);
    v->patterns = etch_pattern_table_new();
    if (!v->programs || !v->patterns)
        return ETCH_ENOMEM;
    return etch_parallel(v->options->threads, (count + BATCH_RANKS - 1) / BATCH_RANKS, read_batch, v);
}

static etch_status verify(void *data)
{
    verifying *v = data;
    etch_status status = etch_trace_set_find(v->arena, v->options, v->diags, &v->set);
    if (status != ETCH_OK)
        return status;
    const etch_status group_status = etch_trace_groups_read(v->arena, &v->set, v->diags, &v->groups);
    if (group_status != ETCH_OK && group_status != ETCH_EINPUT)
        return group_status;
    status = v->set.missing > 0 ? ETCH_OK : read_ranks(v);
    if (v->set.missing > 0)
        return ETCH_EINPUT;
    if (status == ETCH_ENOMEM)
        return status; /* of what was read, nothing can be said */
    add_counts(v);
    if (status == ETCH_OK && group_status == ETCH_OK && can_run(v))
        status = run_ranks(v);
    etch_findings_report(v->findings, v->set.rank_count, v->arena, v->diags);
    if (status == ETCH_OK && etch_error_count(v->diags) == 0)
        report_unused(v);
    if (status == ETCH_OK && *verdict_of(v) != ETCH_VERDICT_NONE)
        status = explain_ranks(v);
    /* What a simulator makes of broken rules is not to be foreseen. */
    if (etch_error_count(v->diags) > 0 && *verdict_of(v) != ETCH_VERDICT_STALLS)
        *verdict_of(v) = ETCH_VERDICT_NONE;
    if (status == ETCH_OK && v->options->protocol == ETCH_PROTOCOL_BOTH)
        status = run_under_rendezvous(v);
    return status == ETCH_ELIMIT && check_cancel(v) != ETCH_OK ? ETCH_ELIMIT : status;
}

static void free_all(verifying *v)
{
    if (v->ranks)
        etch_run_free(&v->run);
    for (uint32_t rank = 0; v->ranks && rank < v->set.rank_count; rank++)
        etch_rank_free(&v->ranks[rank]);
    for (uint32_t rank = 0; v->findings && rank < v->set.rank_count; rank++)
        etch_findings_free(&v->findings[rank]);
    etch_fold_free(&v->fold);
    etch_pattern_table_free(v->patterns);
    etch_program_table_free(v->programs);
}

etch_status etch_verify(etch_arena *arena, const etch_verify_options *options, etch_diags *diags,
                        etch_verify_result *result)
{
    verifying v = {.arena = arena,
                   .options = options,
                   .diags = diags,
                   .result = result,
                   .rendezvous = options->protocol == ETCH_PROTOCOL_RENDEZVOUS};
    *result = (etch_verify_result){.verdict = ETCH_VERDICT_NONE};
    for (unsigned i = 0; i < ETCH_PROTOCOL_COUNT; i++)
        if (options->protocol != ETCH_PROTOCOL_BOTH && (unsigned)options->protocol != i)
            result->verdicts[i] = ETCH_VERDICT_COUNT;
    /* Threads use malloc: what they hold must be freed also when the arena runs out. */
    etch_status status = etch_guard(etch_arena_mem(arena), verify, &v);
    free_all(&v);
    result->verdict = worst_verdict(result);
    if (status != ETCH_OK)
        return status;
    const bool broken = etch_error_count(diags) > 0;
    /* Something kept the ranks from running, and no error says what. */
    if (!broken && result->verdict == ETCH_VERDICT_NONE)
        return ETCH_EINTERNAL;
    if (broken)
        return ETCH_EINPUT;
    return result->verdict == ETCH_VERDICT_ALWAYS ? ETCH_OK : ETCH_EUNKNOWN;
}
