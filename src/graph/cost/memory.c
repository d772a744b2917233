/* The memory of one rank, as lists of items: weights, gradients, states, and saved values. */
#include "graph/cost/cost_int.h"

typedef struct listing {
    const etch_placed *placed;
    /* NULL: everything is on one stage */
    const etch_stage_view *stage;
    const etch_stage_place *place;
    const etch_training *training;
    etch_sym *sym;
    etch_arena *arena;
    /* by weight; NULL: nothing is trained */
    etch_tensor **gradients;
    etch_cost_list *out;
    /* how long what is listed is held */
    etch_hold hold;
} listing;

const char *etch_memory_name(etch_memory memory)
{
    static const char *const names[] = {
        [ETCH_MEMORY_WEIGHTS] = "weights",         [ETCH_MEMORY_GRADS] = "grads",
        [ETCH_MEMORY_MASTER] = "master",           [ETCH_MEMORY_MOMENTS] = "moments",
        [ETCH_MEMORY_ACTIVATIONS] = "activations", [ETCH_MEMORY_WORKSPACE] = "workspace",
        [ETCH_MEMORY_STAGING] = "staging",         [ETCH_MEMORY_HOST] = "host"};
    return (unsigned)memory < ETCH_MEMORY_COUNT ? names[memory] : NULL;
}

static void push(const listing *l, etch_cost item)
{
    if (!etch_is_zero(item.each) && !etch_is_zero(item.times))
        ETCH_PUSH(l->arena, l->out, item);
}

/* ---- weights ------------------------------------------------------------------------------------------- */

/* Elements that a rank holds of one copy of the weight, its gradient, or the optimizer's states of it. */
static etch_expr held_elements(const listing *l, const etch_tensor *weight, etch_memory memory)
{
    return etch_held_elements(l->placed, weight,
                              memory == ETCH_MEMORY_WEIGHTS ? ETCH_HOLDS_WEIGHT
                              : memory == ETCH_MEMORY_GRADS ? ETCH_HOLDS_GRADIENT
                                                            : ETCH_HOLDS_STATES);
}

/* Copies of the weight on the stage: one, or one for each iteration of the loops around it. */
static etch_expr copies_of(const listing *l, const etch_tensor *weight)
{
    etch_expr copies = etch_int(l->sym, 1);
    bool by_layer = false;
    for (const etch_region *body = weight->region; body && body->loop; body = body->parent) {
        const bool top = !body->parent || !body->parent->loop;
        const etch_position position =
            l->stage && top ? etch_stage_position_of(l->placed, body->loop) : ETCH_NO_POSITION;
        by_layer = by_layer || position != ETCH_NO_POSITION;
        copies =
            etch_mul(l->sym, copies,
                     position != ETCH_NO_POSITION ? etch_stage_iterations(l->sym, l->stage, position, body)
                                                  : body->count);
    }
    if (!l->stage || by_layer)
        return copies;
    return etch_mul(l->sym, copies,
                    etch_stage_presence(l->sym, l->stage, &l->placed->stages->uses[weight->id]));
}

static void push_bytes(const listing *l, const etch_tensor *weight, etch_expr copies, etch_memory memory,
                       etch_expr each)
{
    etch_cost item = etch_cost_of_weight(ETCH_HELD, weight, each, copies);
    item.phase = ETCH_OPTIMIZER;
    item.memory = memory;
    push(l, item);
}

/* So many bytes of each element. */
static void push_held(const listing *l, const etch_tensor *weight, etch_expr copies, etch_memory memory,
                      uint32_t bytes)
{
    push_bytes(l, weight, copies, memory,
               etch_mul(l->sym, held_elements(l, weight, memory), etch_int(l->sym, bytes)));
}

static void list_weight(const listing *l, const etch_tensor *weight)
{
    const etch_dtypes *dtypes = &l->training->graph->dtypes;
    const etch_expr copies = copies_of(l, weight);
    etch_cost item =
        etch_cost_of_weight(ETCH_RANK_PARAMS, weight, held_elements(l, weight, ETCH_MEMORY_WEIGHTS), copies);
    item.phase = ETCH_OPTIMIZER;
    item.trainable = l->gradients && l->gradients[weight->id];
    push(l, item);
    push_held(l, weight, copies, ETCH_MEMORY_WEIGHTS, etch_dtype_bytes(weight->dtype));
    if (!item.trainable)
        return;
    push_held(l, weight, copies, ETCH_MEMORY_GRADS, etch_dtype_bytes(dtypes->grads));
    if (!l->training->train.optimizer.row)
        return;
    const uint32_t away = l->placed->plan->offload.states;
    const uint32_t lasting = away & ETCH_OFFLOAD_MASTER ? etch_lasting_master_bytes(l->training) : 0;
    push_bytes(l, weight, copies, ETCH_MEMORY_HOST, etch_offloaded_bytes(l->placed, weight));
    push_held(l, weight, copies, ETCH_MEMORY_MASTER, etch_master_bytes(l->training) - lasting);
    if (!(away & ETCH_OFFLOAD_MOMENTS))
        push_bytes(l, weight, copies, ETCH_MEMORY_MOMENTS,
                   etch_moment_bytes(l->training, etch_optimizer_of(l->training, weight),
                                     held_elements(l, weight, ETCH_MEMORY_MOMENTS)));
}

/* Room for states of the optimizer on their way between host and device. */
static void list_staging(const listing *l)
{
    const etch_cost staging = {
        .measure = ETCH_HELD,
        .memory = ETCH_MEMORY_STAGING,
        .phase = ETCH_OPTIMIZER,
        .each = etch_staging_bytes(l->placed, l->stage),
        .times = etch_int(l->sym, 1),
        .scope = l->training->graph->scopes.at[0],
        .span = l->placed->plan->offload.span,
    };
    push(l, staging);
}

/* ---- what is kept for backward ------------------------------------------------------------------------- */

/* One stage alone does one microbatch after the other, whatever the schedule. */
static bool is_cut(const listing *l)
{
    return l->placed->stages && l->place->stages != etch_int(l->sym, 1);
}

static etch_pipe_sizes sizes_of(const listing *l)
{
    return (etch_pipe_sizes){l->place->stages, etch_int(l->sym, l->place->chunks), l->training->train.micro};
}

/* Of what the second half of backward reads, the first item says how often it is held as what the first half
 * reads is; this, how often it is held beyond that. */
static etch_expr beyond_first_half(const listing *l, etch_expr held, etch_expr until_inputs)
{
    return l->hold == ETCH_HOLD_FORWARD_TO_WEIGHTS ? etch_sub(l->sym, held, until_inputs) : held;
}

/* Microbatches and chunks of which the stage holds something, at most. */
static etch_expr most_under_way(const listing *l, const etch_pipe_sizes *sizes)
{
    const etch_schedule *schedule = l->placed->stages->line->schedule;
    const etch_expr stage = l->place->stage;
    return beyond_first_half(
        l, etch_in_flight_formula(l->sym, schedule, sizes, l->hold, stage),
        etch_in_flight_formula(l->sym, schedule, sizes, ETCH_HOLD_FORWARD_TO_INPUTS, stage));
}

/* Microbatches of which a chunk holds something, at most. */
static etch_expr under_way(const listing *l, uint32_t chunk)
{
    const etch_schedule *schedule = l->placed->stages->line->schedule;
    const etch_pipe_sizes sizes = sizes_of(l);
    const etch_expr stage = l->place->stage;
    const uint32_t chunks = l->place->chunks;
    return beyond_first_half(
        l, etch_chunk_in_flight_formula(l->sym, schedule, &sizes, chunks, chunk, l->hold, stage),
        etch_chunk_in_flight_formula(l->sym, schedule, &sizes, chunks, chunk, ETCH_HOLD_FORWARD_TO_INPUTS,
                                     stage));
}

/* Are the chunks of microbatches of their own, so that each keeps what it reads? */
static bool is_apart(const listing *l)
{
    return is_cut(l) && l->stage && etch_stage_copies(l->placed->stages) > 1;
}

/* Values that a chunk of the stage keeps, and no chunk before it: what several read is there as long as the
 * first needs it. What waits for the second half of backward does so by itself in each. */
typedef ETCH_VEC(etch_expr) chunk_counts;

static etch_expr times_in(const listing *l, const etch_saved_list *saved, const etch_value *value)
{
    for (uint32_t i = 0; i < saved->count; i++)
        if (saved->at[i].value == value)
            return saved->at[i].times;
    return etch_int(l->sym, 0);
}

static chunk_counts counts_of(const listing *l, const etch_saved_list *kept, const etch_value *value)
{
    chunk_counts counts = {0};
    etch_expr before = etch_int(l->sym, 0);
    for (uint32_t chunk = 0; chunk < l->place->chunks; chunk++) {
        const etch_expr now = times_in(l, &kept[chunk], value);
        ETCH_PUSH(l->arena, &counts, etch_sub(l->sym, now, before));
        before = l->hold == ETCH_HOLD_INPUTS_TO_WEIGHTS || is_apart(l) ? before : now;
    }
    return counts;
}

/* All that is under way in chunks, as if each kept as many as the one with the fewest, and for each chunk
 * what it keeps more, as often as that is under way at most. */
static etch_expr all_under_way(const listing *l, const chunk_counts *counts)
{
    const etch_pipe_sizes sizes = sizes_of(l);
    etch_expr fewest = counts->at[0], sum = etch_int(l->sym, 0);
    for (uint32_t chunk = 1; chunk < counts->count; chunk++)
        fewest = etch_smaller(l->sym, fewest, counts->at[chunk]);
    for (uint32_t chunk = 0; chunk < counts->count; chunk++) {
        const etch_expr more = etch_sub(l->sym, counts->at[chunk], fewest);
        sum = etch_add(l->sym, sum, etch_mul(l->sym, more, under_way(l, chunk)));
    }
    const etch_expr all = most_under_way(l, &sizes);
    return etch_add(l->sym, sum, etch_mul(l->sym, all, fewest));
}

/* How many of the value microbatches under way keep: `times` is what one of them does. */
static etch_expr times_under_way(const listing *l, etch_expr times)
{
    if (!is_cut(l))
        return times;
    if (l->place->chunks == 1)
        return etch_mul(l->sym, times, under_way(l, 0));
    /* all chunks are here, and are under way as a whole as often as the least of them */
    const etch_pipe_sizes sizes = sizes_of(l);
    const etch_expr all = most_under_way(l, &sizes);
    return etch_mul(l->sym, times, etch_div(l->sym, all, sizes.chunks));
}

static void push_activations(const listing *l, const etch_saved *saved, etch_expr times)
{
    etch_cost item = etch_cost_of_saved(l->sym, ETCH_HELD, saved);
    item.memory = ETCH_MEMORY_ACTIVATIONS;
    item.times = times;
    push(l, item);
}

/* What chunks keep under way; a value has a row wherever it is first read. */
static void list_chunks(const listing *l)
{
    const uint32_t chunks = l->place->chunks;
    etch_saved_list *kept = ETCH_NEW_ARRAY(l->arena, chunks, etch_saved_list);
    bool *done = ETCH_NEW_ARRAY(l->arena, l->placed->value_count, bool);
    for (uint32_t chunk = 0; chunk < chunks; chunk++)
        etch_placed_saved(l->placed, etch_view_of_kept(l->placed, l->stage, l->hold, chunk), l->hold,
                          &kept[chunk]);
    for (uint32_t chunk = chunks; chunk-- > 0;)
        for (uint32_t i = 0; i < kept[chunk].count; i++) {
            const etch_saved *saved = &kept[chunk].at[i];
            const chunk_counts counts = counts_of(l, kept, saved->value);
            if (!done[saved->value->id])
                push_activations(l, saved, all_under_way(l, &counts));
            done[saved->value->id] = true;
        }
}

/* How long and how often what is saved is held. */
static void list_under_way(const listing *l, const etch_saved_list *saved)
{
    if (l->placed->stages && l->stage && l->place->chunks > 1) {
        list_chunks(l);
        return;
    }
    for (uint32_t i = 0; i < saved->count; i++)
        push_activations(l, &saved->at[i], times_under_way(l, saved->at[i].times));
}

/* What microbatches keep, one in each chunk or one in all. */
static void list_saved(const listing *l)
{
    etch_saved_list saved = {0};
    for (uint32_t chunk = 0; chunk < (is_apart(l) ? l->place->chunks : 1); chunk++) {
        const etch_hold hold = ETCH_HOLD_FORWARD_TO_INPUTS;
        const etch_stage_view *view =
            is_apart(l) ? etch_view_of_kept(l->placed, l->stage, hold, chunk) : l->stage;
        etch_placed_saved(l->placed, view, hold, &saved);
    }
    for (uint32_t i = 0; i < saved.count; i++)
        push(l, etch_cost_of_saved(l->sym, ETCH_RANK_SAVED, &saved.at[i]));
    list_under_way(l, &saved);
}

/* What waits for the second half of backward, where that is an action of its own. */
static void list_held(listing l, etch_hold hold)
{
    etch_saved_list held = {0};
    etch_placed_saved(l.placed, l.stage, hold, &held);
    l.hold = hold;
    list_under_way(&l, &held);
}

/* One stage goes back without pause. */
static bool has_halves(const listing *l)
{
    return is_cut(l) && etch_schedule_has_halves(l->placed->stages->line->schedule);
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

void etch_placed_memory(const etch_placed *placed, const etch_stage_view *stage,
                        const etch_stage_place *place, etch_cost_list *out)
{
    const etch_graph *graph = placed->training->graph;
    const listing l = {
        .placed = placed,
        .stage = placed->stages ? stage : NULL,
        .place = place,
        .training = placed->training,
        .sym = graph->sym,
        .arena = placed->arena,
        .gradients = placed->backward ? etch_gradients_by_weight(placed->training, placed->arena) : NULL,
        .out = out,
    };
    for (uint32_t i = 0; i < graph->weights.count; i++)
        list_weight(&l, graph->weights.at[i]);
    list_staging(&l);
    if (placed->backward)
        list_saved(&l);
    if (placed->backward && has_halves(&l)) {
        list_held(l, ETCH_HOLD_FORWARD_TO_WEIGHTS);
        list_held(l, ETCH_HOLD_INPUTS_TO_WEIGHTS);
    }
}

void etch_placed_workspace(const etch_placed *placed, const etch_stage_view *stage,
                           const etch_stage_place *place, const etch_valuation *values, etch_cost_list *out)
{
    const etch_graph *graph = placed->training->graph;
    const listing l = {.arena = placed->arena, .out = out};
    const etch_cost workspace = {
        .measure = ETCH_HELD,
        .memory = ETCH_MEMORY_WORKSPACE,
        .each = placed->stages ? etch_workspace_bytes(placed, stage, place, values)
                               : etch_workspace_bytes(placed, NULL, NULL, values),
        .times = etch_int(graph->sym, 1),
        .scope = graph->scopes.at[0],
        .span = placed->plan->span,
    };
    push(&l, workspace);
}
