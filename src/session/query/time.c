/* Times of a step as quantities: what its run on a cluster comes to. A run is in whole picoseconds and says
 * how far the formulas' own value may be away, so that values here are intervals. */
#include "session/query/query.h"

#include <string.h>

enum { PICO = 12 };

/* ---- which machine ------------------------------------------------------------------------------------- */

const etch_cluster *etch_session_cluster(etch_session *session, const etch_session *machine)
{
    const etch_cluster *const *clusters;
    const etch_spec *spec = (machine ? machine : session)->spec;
    const uint32_t count = spec ? etch_spec_clusters(spec, &clusters) : 0;
    if (count == 1)
        return clusters[0];
    etch_diag *diag = etch_error(session->diags, ETCH_E_MACHINE_CHOICE, (etch_span){0, 0},
                                 count ? "the spec has %u clusters" : "the spec has no cluster", count);
    if (machine)
        etch_help(diag, "name a spec with one `cluster NAME { device = .., level NAME { ... } }`");
    else
        etch_help(diag, "say which machine with --machine, or write `cluster NAME { ... }` into the spec");
    return NULL;
}

const etch_stack *etch_session_stack(etch_session *session, const etch_cluster *cluster, const char *name)
{
    const etch_stack *stack = etch_cluster_stack(cluster, name);
    if (stack)
        return stack;
    etch_diag *diag = etch_error(session->diags, ETCH_E_MACHINE_CHOICE, (etch_span){0, 0},
                                 "the cluster '%s' has no stack '%s'", cluster->name, name);
    etch_buf names = {.arena = session->arena};
    for (uint32_t i = 0; i < cluster->stacks.count; i++)
        etch_buf_printf(&names, "%s%s", i ? ", " : "", cluster->stacks.at[i].name);
    if (names.length)
        etch_help(diag, "it has %s", names.text);
    else
        etch_help(diag, "write one into the cluster: `stack %s { all = 1.1 }`", name);
    return NULL;
}

const char *etch_machine_lack(etch_arena *arena, const etch_device *device, unsigned kinds, unsigned *from)
{
    static const etch_kernel_kind of[] = {[ETCH_PRODUCT_NONE] = ETCH_KERNEL_ELEMENTWISE,
                                          [ETCH_PRODUCT_PLAIN] = ETCH_KERNEL_PRODUCT,
                                          [ETCH_PRODUCT_GROUPED] = ETCH_KERNEL_GROUPED,
                                          [ETCH_PRODUCT_ATTENTION] = ETCH_KERNEL_ATTENTION};
    while (*from < sizeof of / sizeof *of) {
        const unsigned i = (*from)++;
        const char *instead = etch_device_stands_in(device, of[i]);
        if (instead && (kinds >> i & 1))
            return etch_text(arena, "the device '%s' has no line `fit %s`: its times are %s", device->name,
                             etch_kernel_kind_name(of[i]), instead);
    }
    return NULL;
}

void etch_remark_machine(etch_session *session, const etch_device *device, const etch_job *job)
{
    const char *lack;
    unsigned kinds = 0, from = 0;
    for (uint32_t i = 0; i < job->workload_count; i++)
        kinds |= 1u << job->workloads[i].kind;
    while ((lack = etch_machine_lack(session->arena, device, kinds, &from)) != NULL)
        etch_remark(session->diags, ETCH_E_MACHINE_LACKS, (etch_span){0, 0}, "%s", lack);
}

void etch_remark_uneven(etch_session *session, const etch_uneven *uneven)
{
    if (!uneven->axes)
        return;
    etch_diag *diag =
        etch_remark(session->diags, ETCH_E_MACHINE_UNFIT, (etch_span){0, 0},
                    "a group over %s does not divide evenly over level '%s': one of them has %u "
                    "of it, another %u",
                    uneven->axes, uneven->level, uneven->most, uneven->least);
    etch_note(diag, (etch_span){0, 0},
              "its collectives take as long as if all of it were as full as where "
              "most ranks are");
    etch_help(diag, "let the sizes of the mesh's inner axes divide those of the levels");
}

/* ---- the run ------------------------------------------------------------------------------------------- */

/* A step that has been run for the request. */
typedef struct etch_timed_run {
    struct etch_timed_run *next;
    etch_compiled *compiled;
    const etch_cluster *cluster;
    /* of the job */
    etch_expr ranks;
    /* all above 0 */
    etch_within seconds;
} etch_timed_run;

static etch_expr picoseconds(etch_sym *sym, uint64_t count)
{
    return etch_div(sym, etch_int(sym, (int64_t)count), etch_pow(sym, etch_int(sym, 10), PICO));
}

/* Runs the step: most are told from a few of their microbatches. The job that was run, or part of it, is left
 * in `job`. */
static etch_status find_time(etch_session *session, etch_compiled *p, const etch_simulate_options *options,
                             const etch_job **job, etch_step_time *out)
{
    enum { BRIEF_TRIES = 2 };
    const etch_simulated *run;
    etch_style style = {.workloads = true, .brief = 1};
    for (; style.brief <= BRIEF_TRIES; style.brief++) {
        const etch_status status = etch_compiled_lower(session, p, &style, job);
        if (status != ETCH_OK || etch_simulate_brief(session->arena, *job, options, out))
            return status;
        if (!(*job)->pipe)
            break;
    }
    style.brief = 0;
    etch_status status = (*job)->pipe ? etch_compiled_lower(session, p, &style, job) : ETCH_OK;
    if (status == ETCH_OK)
        status = etch_simulate(session->arena, session->diags, *job, options, &run);
    if (status == ETCH_OK)
        *out = (etch_step_time){run->step, run->error, run->uneven};
    return status;
}

/* NULL after a reported error. */
static const etch_timed_run *run_step(etch_session *session, const etch_quantity *q, etch_compiled *p,
                                      const etch_cluster *cluster)
{
    etch_sym *sym = session->sym;
    etch_simulate_options options = {.cluster = cluster};
    const etch_job *job = NULL;
    etch_step_time time;
    if (session->stack && !(options.stack = etch_session_stack(session, cluster, session->stack)))
        return NULL;
    if (!etch_compiled_place(session, p))
        return NULL;
    const etch_status status = find_time(session, p, &options, &job, &time);
    if (job)
        etch_remark_default_axes(session, p, NULL);
    if (status != ETCH_OK)
        return NULL;
    etch_remark_machine(session, cluster->device, job);
    etch_remark_uneven(session, &time.uneven);
    if (time.step <= time.error) {
        etch_error(session->diags, ETCH_E_MACHINE_UNFIT, q->span,
                   "the step is as short as the error of its time: nothing is known of it");
        return NULL;
    }
    etch_timed_run *out = ETCH_NEW(session->arena, etch_timed_run);
    *out = (etch_timed_run){.next = session->timed_runs,
                            .compiled = p,
                            .cluster = cluster,
                            .ranks = etch_int(sym, job->rank_count),
                            .seconds = {.low = picoseconds(sym, time.step - time.error),
                                        .value = picoseconds(sym, time.step),
                                        .high = picoseconds(sym, time.step + time.error)}};
    session->timed_runs = out;
    return out;
}

/* The run that the quantity is of. NULL after a reported error. */
static const etch_timed_run *run_of(etch_session *session, const etch_quantity *q)
{
    const etch_cluster *cluster =
        session->cluster ? session->cluster : etch_session_cluster(session, session->machine);
    const etch_span span = q->plan ? q->plan_span : q->span;
    etch_compiled *p = cluster ? etch_compiled_get(session, q->run, q->plan, true, span) : NULL;
    session->latest = p;
    for (const etch_timed_run *known = session->timed_runs; p && known; known = known->next)
        if (known->compiled == p)
            return known;
    return p ? run_step(session, q, p, cluster) : NULL;
}

/* ---- what it is worth ---------------------------------------------------------------------------------- */

/* FLOP of products of the whole job in one phase, by the convention of the question. NULL after an error. */
static etch_expr products_of(etch_session *session, const etch_quantity *q, const char *phase)
{
    etch_quantity asked = *q;
    etch_shares shares = {0};
    asked.name = "matmul_flops";
    asked.first = phase;
    if (!etch_quantity_pick(session, &asked, etch_quantity_row_of(asked.name), &shares))
        return NULL;
    return shares.at[0].sum;
}

static bool add_products(etch_session *session, const etch_quantity *q, const char *phase, etch_expr *sum)
{
    const etch_expr flop = products_of(session, q, phase);
    *sum = flop ? etch_add(session->sym, *sum, flop) : NULL;
    return flop != NULL;
}

/* What all devices could do in a second at the peak of bf16. NULL after an error. */
static etch_expr possible(etch_session *session, const etch_quantity *q, const etch_timed_run *run)
{
    const etch_device *device = run->cluster->device;
    const etch_peak *peak = etch_device_peak(device, etch_dtype_name(ETCH_BF16));
    etch_sym *sym = session->sym;
    if (peak) {
        const etch_expr unit = etch_pow(sym, etch_int(sym, 10), peak->rate.power);
        return etch_mul(sym, etch_mul(sym, etch_int(sym, peak->rate.digits), unit), run->ranks);
    }
    etch_diag *diag = etch_error(session->diags, ETCH_E_MACHINE_UNFIT, q->span,
                                 "the device '%s' has no peak for products of bf16, which '%s' is a share of",
                                 device->name, q->name);
    etch_help(diag, "write it into the device: `products bf16 = 312 TFLOP/s`");
    return NULL;
}

static etch_expr tokens_of(etch_session *session, const etch_quantity *q, const etch_timed_run *run)
{
    const etch_token_counts tokens = etch_graph_tokens(run->compiled->model->graph);
    if (tokens.count == 1)
        return etch_compiled_apply(session, run->compiled, tokens.at[0].count);
    etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_TOKENS, q->span,
                                 tokens.count ? "tokens of model '%s' are more than one number"
                                              : "model '%s' does not say what its tokens are",
                                 run->compiled->model->name);
    etch_help(diag, "tokens are the elements of the labels, or of what looks up weights");
    return NULL;
}

/* What the run is of the amount: amount/seconds. */
static etch_within rate_of(etch_sym *sym, etch_expr amount, const etch_within *seconds)
{
    return (etch_within){.low = etch_div(sym, amount, seconds->high),
                         .value = etch_div(sym, amount, seconds->value),
                         .high = etch_div(sym, amount, seconds->low)};
}

static bool set_share(etch_session *session, const etch_quantity *q, const etch_quantity_row *row,
                      const etch_timed_run *run, etch_within *out)
{
    etch_expr flop = etch_int(session->sym, 0);
    if (!add_products(session, q, "forward", &flop))
        return false;
    if (run->compiled->model->trains && !add_products(session, q, "backward", &flop))
        return false;
    if (run->compiled->model->trains && row->timing == ETCH_TIMED_HFU &&
        !add_products(session, q, "recompute", &flop))
        return false;
    const etch_expr most = possible(session, q, run);
    if (most)
        *out = rate_of(session->sym, etch_div(session->sym, flop, most), &run->seconds);
    return most != NULL;
}

/* ---- public functions ---------------------------------------------------------------------------------- */

static bool takes_count(const etch_quantity_row *row)
{
    return row->timing == ETCH_TIMED_MFU || row->timing == ETCH_TIMED_HFU;
}

static bool refuse(etch_session *session, const etch_quantity *q, const char *argument, etch_span span)
{
    etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_ARGUMENT, span, "'%s' has no argument '%s'",
                                 q->name, argument);
    etch_help(diag, "its arguments are run, plan%s",
              takes_count(etch_quantity_row_of(q->name)) ? ", count" : "");
    return false;
}

static bool check_arguments(etch_session *session, const etch_quantity *q, const etch_quantity_row *row)
{
    const bool whole = !q->first && etch_timed_of_many(row);
    if (!whole && (!q->first || strcmp(q->first, "step") != 0)) {
        etch_diag *diag =
            etch_error(session->diags, ETCH_E_QUERY_PHASE, q->first ? q->first_span : q->span,
                       q->first ? "'%s' is known of a whole step, and not of '%s'" : "'%s' is of a step",
                       q->name, q->first);
        etch_help(diag, "ask for %s%s; `etch simulate` says where the time of a step goes", q->name,
                  etch_timed_argument(row));
        return false;
    }
    if (q->of)
        return refuse(session, q, "of", q->of_span);
    if (q->op)
        return refuse(session, q, "op", q->op_span);
    if (q->axis_count > 0)
        return refuse(session, q, "axis", q->axis_span);
    if (q->stage)
        return refuse(session, q, "stage", q->stage_span);
    if (q->part)
        return refuse(session, q, "part", q->part_span);
    if (q->buffers_span.end)
        return refuse(session, q, "buffers", q->buffers_span);
    if (q->count_words > 0 && !takes_count(row))
        return refuse(session, q, q->counts[0].item ? q->counts[0].item : "count", q->counts[0].span);
    return etch_many_allow(session, q, row);
}

bool etch_timed_allow(etch_session *session, const etch_quantity *q, const etch_quantity_row *row)
{
    if (!check_arguments(session, q, row))
        return false;
    if (session->options.granularity != ETCH_GRANULARITY_BLOCK)
        return true;
    etch_error(session->diags, ETCH_E_MACHINE_UNFIT, q->span,
               "a block as one node has no time: ask for kernels, or ops");
    return false;
}

bool etch_timed_of(etch_session *session, const etch_quantity *q, const etch_quantity_row *row,
                   etch_within *out)
{
    const etch_timed_run *run = etch_timed_allow(session, q, row) ? run_of(session, q) : NULL;
    if (!run)
        return false;
    if (row->timing == ETCH_TIMED_SECONDS) {
        *out = run->seconds;
        return true;
    }
    if (row->timing == ETCH_TIMED_ENERGY)
        return etch_energy_of(session, q, run->compiled, run->cluster,
                              session->stack ? etch_cluster_stack(run->cluster, session->stack) : NULL, out);
    if (takes_count(row))
        return set_share(session, q, row, run, out);
    const bool counts = row->timing != ETCH_TIMED_GOODPUT;
    const etch_expr tokens = counts ? tokens_of(session, q, run) : NULL;
    if (counts && !tokens)
        return false;
    if (etch_timed_of_many(row))
        return etch_many_of(session, q, row,
                            &(etch_one_step){run->compiled, tokens, run->ranks, &run->seconds}, out);
    if (tokens)
        *out = rate_of(session->sym, tokens, &run->seconds);
    return tokens != NULL;
}
