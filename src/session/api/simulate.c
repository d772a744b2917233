/* Steps on machines: the job of a plan, run on a cluster, and what it comes to. */
#include "session/api/simulate_int.h"

#include "simulate/simulate.h"

typedef struct simulating {
    etch_session *session;
    const etch_simulation_options *options;
    etch_simulation *result;
} simulating;

/* Millionths, and picoseconds, as powers of ten. */
enum { MILLIONTHS = 6, PICO = 12 };

/* ---- what a step is worth ------------------------------------------------------------------------------ */

/* FLOP of the products of the whole job, forward and backward. */
static etch_expr model_flop(etch_session *session, etch_compiled *p)
{
    const etch_cost_list *costs = etch_compiled_graph_costs(session, p);
    etch_expr sum = etch_int(session->sym, 0);
    for (uint32_t i = 0; i < costs->count; i++) {
        const etch_cost *cost = &costs->at[i];
        if (cost->measure == ETCH_FLOPS && cost->matmul &&
            (cost->phase == ETCH_FORWARD || cost->phase == ETCH_BACKWARD))
            sum = etch_add(session->sym, sum, etch_mul(session->sym, cost->each, cost->times));
    }
    return etch_compiled_apply(session, p, sum);
}

static etch_expr ten_to(etch_session *session, int power)
{
    return etch_pow(session->sym, etch_int(session->sym, 10), power);
}

/* The floor of amount * 10^power / divisor; false where it is no number that fits. */
static bool floor_of(etch_session *session, etch_expr amount, int power, etch_expr divisor, uint64_t *out)
{
    const etch_expr ratio =
        amount ? etch_div(session->sym, etch_mul(session->sym, amount, ten_to(session, power)), divisor)
               : NULL;
    return ratio && etch_to_u64(etch_floor(session->sym, ratio), out);
}

static void add_worth(etch_session *session, etch_compiled *p, const etch_cluster *cluster,
                      etch_simulation *out)
{
    etch_sym *sym = session->sym;
    const etch_expr step = etch_int(sym, (int64_t)out->step);
    const etch_token_counts tokens = etch_graph_tokens(p->model->graph);
    const etch_peak *peak = etch_device_peak(cluster->device, etch_dtype_name(ETCH_BF16));
    const etch_expr count = tokens.count == 1 ? etch_compiled_apply(session, p, tokens.at[0].count) : NULL;
    uint64_t mfu;
    if (count && etch_to_u64(count, &out->tokens) && out->step > 0)
        (void)floor_of(session, count, PICO, step, &out->tokens_per_second); /* else it stays 0 */
    out->mfu = -1;
    if (!peak || out->step == 0)
        return;
    const etch_expr rate = etch_mul(sym, etch_int(sym, peak->rate.digits), ten_to(session, peak->rate.power));
    const etch_expr possible = etch_mul(sym, etch_mul(sym, rate, step), etch_int(sym, out->ranks));
    if (floor_of(session, model_flop(session, p), PICO + MILLIONTHS, possible, &mfu) && mfu <= INT64_MAX)
        out->mfu = (int64_t)mfu;
}

/* ---- the result ---------------------------------------------------------------------------------------- */

/* A node of a program; what is not said of it has no annotation. */
static etch_simulation_node node_of(const etch_job *job, const etch_simulated *from, uint32_t program,
                                    uint32_t index)
{
    const etch_class_program *p = &job->programs[program];
    const etch_node *node = &p->nodes[index];
    const etch_annotated *says = &p->annotated[index];
    const etch_annotation_value *value = says->value;
    const bool message = node->type == ETCH_NODE_SEND || node->type == ETCH_NODE_RECV;
    etch_simulation_node out = {.name = p->names + node->name,
                                .phase = value[ETCH_ANNOTATION_PHASE].text,
                                .op = value[ETCH_ANNOTATION_OP_TYPE].text,
                                .work = node->type == ETCH_NODE_COMP    ? ETCH_STEP_COMPUTES
                                        : node->type == ETCH_NODE_COLL  ? ETCH_STEP_MEETS
                                        : node->type == ETCH_NODE_SEND  ? ETCH_STEP_SENDS
                                        : node->type == ETCH_NODE_LOAD  ? ETCH_STEP_LOADS
                                        : node->type == ETCH_NODE_STORE ? ETCH_STEP_STORES
                                                                        : ETCH_STEP_RECEIVES,
                                .axes = from->message_label,
                                .flop = node->type == ETCH_NODE_COMP ? node->flop : 0,
                                .bytes = node->bytes,
                                .microbatch = -1,
                                .layer = -1};
    if (node->type == ETCH_NODE_COLL)
        out.axes = from->family_label[node->family];
    if (etch_node_moves(node->type))
        out.axes = node->type == ETCH_NODE_LOAD ? from->load_label : from->store_label;
    const etch_peer peer = message ? p->peers[node->peer] : (etch_peer){0};
    out.peer = peer.offset;
    if (peer.shift) {
        out.axes = from->ring_label[peer.axis];
        out.peer = peer.shift;
        out.ring = job->mesh[peer.axis].size;
        out.stride = etch_mesh_stride(job, peer.axis);
    }
    if (says->given >> ETCH_ANNOTATION_MODULE & 1)
        out.module = value[ETCH_ANNOTATION_MODULE].text;
    if (says->given >> ETCH_ANNOTATION_MICROBATCH & 1)
        out.microbatch = (int64_t)value[ETCH_ANNOTATION_MICROBATCH].number;
    if (says->given >> ETCH_ANNOTATION_LAYER & 1)
        out.layer = (int64_t)value[ETCH_ANNOTATION_LAYER].number;
    return out;
}

/* By program: what its nodes are; they are there once for all classes of it. */
static const etch_simulation_node *const *nodes_of(etch_arena *arena, const etch_job *job,
                                                   const etch_simulated *from)
{
    const etch_simulation_node **all =
        ETCH_NEW_ARRAY(arena, job->program_count, const etch_simulation_node *);
    for (uint32_t p = 0; p < job->program_count && job->programs[p].annotated; p++) {
        etch_simulation_node *nodes =
            ETCH_NEW_ARRAY(arena, job->programs[p].node_count, etch_simulation_node);
        for (uint32_t i = 0; i < job->programs[p].node_count; i++)
            nodes[i] = node_of(job, from, p, i);
        all[p] = nodes;
    }
    return all;
}

static const etch_simulation_class *classes_of(etch_arena *arena, const etch_job *job,
                                               const etch_simulated *from)
{
    etch_simulation_class *classes = ETCH_NEW_ARRAY(arena, from->class_count, etch_simulation_class);
    const etch_simulation_node *const *nodes = nodes_of(arena, job, from);
    for (uint32_t i = 0; i < from->class_count; i++) {
        const etch_simulated_class *c = &from->classes[i];
        classes[i] = (etch_simulation_class){.stage = job->stages[c->program].stage,
                                             .part = job->stages[c->program].work_share,
                                             .first_rank = c->first_rank,
                                             .ranks = c->rank_count,
                                             .computing = c->computing,
                                             .exposed = c->exposed,
                                             .waiting = c->waiting,
                                             .idle = c->idle,
                                             .begins = c->begins,
                                             .lasts = c->lasts,
                                             .node_count = job->programs[c->program].node_count,
                                             .nodes = nodes[c->program]};
    }
    return classes;
}

static etch_simulation *result_of(etch_session *session, const etch_job *job, const etch_cluster *cluster,
                                  const etch_simulated *from)
{
    etch_arena *arena = session->arena;
    etch_simulation *out = ETCH_NEW(arena, etch_simulation);
    const char **axes = ETCH_NEW_ARRAY(arena, from->label_count, const char *);
    for (uint32_t i = 0; i < from->label_count; i++)
        axes[i] = etch_copy_string(arena, from->labels[i]);
    etch_simulation_place *path = ETCH_NEW_ARRAY(arena, from->path_count, etch_simulation_place);
    for (uint32_t i = 0; i < from->path_count; i++)
        path[i] = (etch_simulation_place){from->path[i].class, from->path[i].node};
    const etch_peak *peak = etch_device_peak(cluster->device, etch_dtype_name(ETCH_BF16));
    *out = (etch_simulation){.model = job->model,
                             .plan = job->plan,
                             .config = job->config,
                             .run = job->run,
                             .cluster = etch_copy_string(arena, cluster->name),
                             .device = etch_copy_string(arena, cluster->device->name),
                             .ranks = job->rank_count,
                             .step = from->step,
                             .error = from->error,
                             .lower = from->lower,
                             .upper = from->upper,
                             .axes = axes,
                             .axes_count = from->label_count,
                             .classes = classes_of(arena, job, from),
                             .class_count = from->class_count,
                             .class_of = from->class_of,
                             .path = path,
                             .path_count = from->path_count,
                             .free_axes = from->free,
                             .free_computing = from->free ? from->free[from->label_count] : 0,
                             .bandwidth = etch_decimal_double(cluster->device->bandwidth),
                             .peak = peak ? etch_decimal_double(peak->rate) : 0};
    return out;
}

static const char *decimal_text(etch_arena *arena, etch_decimal value, etch_dimension dimension)
{
    etch_buf text = {.arena = arena};
    etch_decimal_print(&text, value, dimension);
    return text.text;
}

static void add_stack(etch_session *session, const etch_stack *stack, etch_simulation *out)
{
    etch_arena *arena = session->arena;
    out->stack = etch_copy_string(arena, stack->name);
    out->stack_all = decimal_text(arena, stack->all, ETCH_OF_NOTHING);
    out->stack_attention = decimal_text(arena, stack->attention, ETCH_OF_NOTHING);
    out->stack_launch = decimal_text(arena, etch_decimal_of((int64_t)stack->launch, -PICO), ETCH_OF_TIME);
}

/* "1.2" as a number above 0; false after a reported error. */
static bool read_slow(etch_session *session, const etch_simulation_options *options, const etch_job *job,
                      etch_decimal *out)
{
    enum { MOST_DIGITS = 18 };
    const char *text = options->slow;
    int32_t digits = 0, point = -1;
    int64_t value = 0;
    for (; (*text >= '0' && *text <= '9') || (*text == '.' && point < 0); text++) {
        if (*text == '.')
            point = digits;
        else if (++digits <= MOST_DIGITS)
            value = 10 * value + (*text - '0');
    }
    if (*text || value == 0 || digits > MOST_DIGITS)
        etch_error(session->diags, ETCH_E_MACHINE_VALUE, (etch_span){0, 0},
                   "how slow a device is is a number above 0 with at most 18 digits, as 1.2, not '%s'",
                   options->slow);
    else if (options->slow_rank >= job->rank_count)
        etch_error(session->diags, ETCH_E_MACHINE_UNFIT, (etch_span){0, 0},
                   "there is no rank %u that could be slow: the plan has %u", options->slow_rank,
                   job->rank_count);
    else {
        *out = etch_decimal_of(value, point < 0 ? 0 : point - digits);
        return true;
    }
    return false;
}

/* ---- public functions ---------------------------------------------------------------------------------- */

/* The stack that is asked for, or none; false after a reported error. */
static bool choose_stack(const simulating *s, etch_simulate_options *options)
{
    const char *name = s->options->stack;
    options->stack = name ? etch_session_stack(s->session, options->cluster, name) : NULL;
    return options->stack || !name;
}

/* Runs the job, of a spec or of traces. */
static etch_status run_job(simulating *s, const etch_job *job, etch_simulate_options *options)
{
    etch_session *session = s->session;
    const etch_simulated *simulated;
    options->slow_rank = s->options->slow_rank;
    if (s->options->slow && !read_slow(session, s->options, job, &options->slow))
        return ETCH_EINPUT;
    const etch_status status = etch_simulate(session->arena, session->diags, job, options, &simulated);
    if (status != ETCH_OK)
        return status;
    etch_simulation *result = result_of(session, job, options->cluster, simulated);
    result->one_stream = options->one_stream;
    result->mfu = -1;
    etch_remark_machine(session, options->cluster->device, job);
    etch_remark_uneven(session, &simulated->uneven);
    if (options->stack)
        add_stack(session, options->stack, result);
    result->slow = s->options->slow ? decimal_text(session->arena, options->slow, ETCH_OF_NOTHING) : NULL;
    result->slow_rank = s->options->slow_rank;
    s->result = result;
    return ETCH_OK;
}

static etch_status simulate_traces(void *data)
{
    simulating *s = data;
    const etch_job *job;
    if (s->options->nodes) {
        etch_error(s->session->diags, ETCH_NO_CODE, (etch_span){0, 0},
                   "of traces it is not said what nodes are");
        return ETCH_EINPUT;
    }
    etch_simulate_options options = {.cluster = etch_session_cluster(s->session, s->options->machine),
                                     .one_stream = true,
                                     .times = s->options->times};
    if (!options.cluster || !choose_stack(s, &options))
        return ETCH_EINPUT;
    const etch_status status =
        etch_traces_job(s->session, s->options->traces, s->options->groups,
                        options.cluster->eager ? ETCH_PROTOCOL_EAGER : ETCH_PROTOCOL_RENDEZVOUS, &job);
    return status == ETCH_OK ? run_job(s, job, &options) : status;
}

static etch_status simulate(void *data)
{
    simulating *s = data;
    etch_session *session = s->session;
    const etch_job *job;
    const etch_style style = {.workloads = true,
                              .annotations = s->options->nodes ? (1u << ETCH_ANNOTATION_COUNT) - 1 : 0};
    if (session->options.granularity == ETCH_GRANULARITY_BLOCK) {
        etch_error(session->diags, ETCH_E_MACHINE_UNFIT, (etch_span){0, 0},
                   "a block as one node has no time: simulate kernels, or ops");
        return ETCH_EINPUT;
    }
    etch_simulate_options options = {.cluster = etch_session_cluster(session, s->options->machine),
                                     .one_stream = s->options->one_stream,
                                     .times = s->options->times || s->options->nodes};
    etch_compiled *p =
        options.cluster ? etch_compiled_get(session, NULL, NULL, true, (etch_span){0, 0}) : NULL;
    if (!p || !choose_stack(s, &options) || !etch_compiled_place(session, p))
        return ETCH_EINPUT;
    etch_status status = etch_compiled_lower(session, p, &style, &job);
    if (status != ETCH_OK)
        return status;
    etch_remark_default_axes(session, p, NULL);
    status = run_job(s, job, &options);
    if (status == ETCH_OK)
        add_worth(session, p, options.cluster, s->result);
    return status;
}

etch_status etch_session_simulate(etch_session *session, const etch_simulation_options *options,
                                  const etch_simulation **simulation)
{
    etch_simulation_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    simulating s = {.session = session, .options = &own};
    const etch_status status = unfit        ? etch_session_refuse(session, unfit)
                               : own.traces ? etch_session_run_plain(session, simulate_traces, &s)
                                            : etch_session_run_bound(session, simulate, &s);
    *simulation = status == ETCH_OK ? s.result : NULL;
    return status;
}
