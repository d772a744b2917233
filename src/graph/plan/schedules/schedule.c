/* The table of schedules, and what is asked of any. */
#include <inttypes.h>
#include <string.h>

#include "graph/plan/schedules/generator.h"

/* ---- the table -------------------------------------------------------------------------------------- */

#define ROW(NAME, name) [ETCH_SCHEDULE_##NAME] = &etch_schedule_##name,
static const etch_schedule *const schedules[ETCH_SCHEDULE_COUNT] = {ETCH_SCHEDULE_TABLE(ROW)};
#undef ROW

const etch_schedule *etch_schedule_at(uint32_t index)
{
    return index < ETCH_SCHEDULE_COUNT ? schedules[index] : NULL;
}

const etch_schedule *etch_schedule_named(const char *name)
{
    for (uint32_t i = 0; i < ETCH_SCHEDULE_COUNT; i++)
        if (strcmp(schedules[i]->name, name) == 0)
            return schedules[i];
    return NULL;
}

const etch_schedule *etch_schedule_default(void)
{
    return &etch_schedule_one_f_one_b;
}

const char *etch_schedule_name(const etch_schedule *schedule)
{
    return schedule->name;
}

etch_schedule_kind etch_schedule_kind_of(const etch_schedule *schedule)
{
    unsigned kind = 0;
    while (kind < ETCH_SCHEDULE_COUNT && schedules[kind] != schedule &&
           !(schedule->order && schedules[kind]->takes_order))
        kind++;
    return (etch_schedule_kind)kind;
}

const char *etch_schedule_kind_name(etch_schedule_kind kind)
{
    return (unsigned)kind < ETCH_SCHEDULE_COUNT ? schedules[kind]->name : NULL;
}

bool etch_schedule_has_chunks(const etch_schedule *schedule)
{
    return schedule->has_chunks;
}

uint32_t etch_schedule_copies(const etch_schedule *schedule)
{
    return etch_chunk_copies(schedule->map);
}

uint32_t etch_schedule_chunks(const etch_schedule *schedule)
{
    return schedule->chunks > 0 ? schedule->chunks : 1;
}

etch_chunk_map etch_schedule_map(const etch_schedule *schedule)
{
    return schedule->map;
}

bool etch_schedule_has_halves(const etch_schedule *schedule)
{
    return schedule->has_halves;
}

bool etch_schedule_overlaps(const etch_schedule *schedule)
{
    return schedule->overlaps;
}

bool etch_schedule_pairs(const etch_schedule *schedule, const etch_pipe_sizes *sizes, etch_expr stage,
                         uint32_t forward, uint32_t backward)
{
    return schedule->overlaps && schedule->pairs(schedule, sizes, stage, forward, backward);
}

bool etch_schedule_counts_microbatches(const etch_schedule *schedule)
{
    return schedule->order || schedule->least_for_stage > 0 || etch_schedule_copies(schedule) > 1;
}

bool etch_schedule_takes_order(const etch_schedule *schedule)
{
    return schedule->takes_order;
}

const etch_action_order *etch_schedule_order(const etch_schedule *schedule)
{
    return schedule->order;
}

const char *etch_action_kind_name(etch_action_kind kind)
{
    static const char *const names[ETCH_ACTION_COUNT] = {[ETCH_ACTION_FORWARD] = "forward",
                                                         [ETCH_ACTION_BACKWARD] = "backward",
                                                         [ETCH_ACTION_INPUT_GRADIENTS] = "input_gradients",
                                                         [ETCH_ACTION_WEIGHT_GRADIENTS] = "weight_gradients"};
    return (unsigned)kind < ETCH_ACTION_COUNT ? names[kind] : NULL;
}

/* ---- actions ------------------------------------------------------------------------------------------ */

uint64_t etch_chunk_microbatches(const etch_pipe *pipe)
{
    return pipe->microbatches / etch_chunk_copies(pipe->schedule->map);
}

uint64_t etch_action_count(const etch_pipe *pipe)
{
    const uint64_t backward = pipe->schedule->has_halves ? 2 : 1;
    return etch_chunk_microbatches(pipe) * pipe->chunks * (1 + (pipe->trains ? backward : 0));
}

const etch_action *etch_actions(etch_arena *arena, const etch_pipe *pipe, uint32_t stage)
{
    etch_action_list list = {ETCH_NEW_ARRAY(arena, (size_t)etch_action_count(pipe), etch_action), 0};
    pipe->schedule->actions(&list, pipe, stage);
    return list.at;
}

static bool report_too_few(etch_diags *diags, etch_span span, const etch_pipe *pipe)
{
    const etch_schedule *schedule = pipe->schedule;
    const uint64_t least = (uint64_t)schedule->least_for_stage * pipe->stages;
    etch_diag *diag = etch_error(diags, ETCH_E_ORDER_SIZE, span,
                                 "%s trains with %" PRIu32
                                 " microbatches or more for each stage, and %" PRIu32 " stages have %" PRIu64,
                                 schedule->name, schedule->least_for_stage, pipe->stages, pipe->microbatches);
    return etch_help(diag, "have %" PRIu64 " microbatches or more, or fewer stages", least);
}

/* Of a chain that is there twice: half of the microbatches go through either copy. */
static bool report_odd(etch_diags *diags, etch_span span, const etch_pipe *pipe)
{
    const bool is_stages = pipe->stages % 2 == 1;
    const char *name = pipe->schedule->name, *what = is_stages ? "stages" : "microbatches";
    etch_diag *diag =
        etch_error(diags, ETCH_E_ORDER_SIZE, span, "%s has an even number of %s, and there are %" PRIu64,
                   name, what, is_stages ? pipe->stages : pipe->microbatches);
    return etch_help(diag, is_stages
                               ? "half of the stages hold what the other half holds: have an even number"
                               : "half of the microbatches come from either end: have an even number");
}

bool etch_pipe_fits(etch_diags *diags, etch_span span, const etch_pipe *pipe)
{
    const etch_action_order *order = pipe->schedule->order;
    const uint32_t copies = etch_schedule_copies(pipe->schedule);
    if (pipe->stages > 1 && (pipe->stages % copies != 0 || pipe->microbatches % copies != 0))
        return report_odd(diags, span, pipe);
    if (pipe->microbatches == 0)
        return true;
    if (pipe->trains && pipe->microbatches < (uint64_t)pipe->schedule->least_for_stage * pipe->stages)
        return report_too_few(diags, span, pipe);
    if (!order || (order->stages == pipe->stages && order->microbatches == pipe->microbatches))
        return true;
    etch_diag *diag = etch_error(diags, ETCH_E_ORDER_SIZE, span,
                                 "the order is one of %" PRIu32 " stages and %" PRIu64
                                 " microbatches, and there are %" PRIu32 " and %" PRIu64,
                                 order->stages, order->microbatches, pipe->stages, pipe->microbatches);
    return etch_help(diag, "list a string for each stage, with all microbatches");
}

uint64_t etch_in_flight(const etch_action *actions, uint64_t count, etch_hold hold)
{
    const bool from_inputs = hold == ETCH_HOLD_INPUTS_TO_WEIGHTS,
               to_inputs = hold == ETCH_HOLD_FORWARD_TO_INPUTS;
    uint64_t now = 0, most = 0;
    for (uint64_t i = 0; i < count; i++) {
        const bool begins =
            actions[i].kind == (from_inputs ? ETCH_ACTION_INPUT_GRADIENTS : ETCH_ACTION_FORWARD);
        const bool ends = to_inputs     ? etch_action_goes_back(actions[i])
                          : from_inputs ? actions[i].kind == ETCH_ACTION_WEIGHT_GRADIENTS
                                        : etch_action_ends(actions[i]);
        now += begins;
        now -= ends;
        most = now > most ? now : most;
    }
    return now == 0 ? most : 0; /* else nothing goes back */
}

/* ---- formulas --------------------------------------------------------------------------------------- */

etch_expr etch_in_flight_formula(etch_sym *sym, const etch_schedule *schedule, const etch_pipe_sizes *sizes,
                                 etch_hold hold, etch_expr stage)
{
    if (schedule->order)
        return etch_order_in_flight(sym, schedule, hold, ETCH_ALL_CHUNKS, stage);
    if (hold == ETCH_HOLD_FORWARD_TO_INPUTS ||
        (hold == ETCH_HOLD_FORWARD_TO_WEIGHTS && !schedule->has_halves))
        return schedule->in_flight(sym, sizes, stage);
    if (!schedule->has_halves)
        return etch_int(sym, 0);
    return hold == ETCH_HOLD_FORWARD_TO_WEIGHTS ? schedule->until_weights(sym, sizes, stage)
                                                : schedule->between_halves(sym, sizes, stage);
}

etch_expr etch_chunk_in_flight_formula(etch_sym *sym, const etch_schedule *schedule,
                                       const etch_pipe_sizes *sizes, uint32_t chunks, uint32_t chunk,
                                       etch_hold hold, etch_expr stage)
{
    if (schedule->order)
        return etch_order_in_flight(sym, schedule, hold, chunk, stage);
    if (hold == ETCH_HOLD_INPUTS_TO_WEIGHTS && !schedule->has_halves)
        return etch_int(sym, 0);
    if (schedule->chunk_in_flight && chunks > 1)
        return schedule->chunk_in_flight(sym, sizes, chunks, chunk, hold, stage);
    const etch_pipe_sizes one_chunk = {sizes->stages, etch_int(sym, 1), sizes->microbatches};
    return etch_in_flight_formula(sym, schedule, &one_chunk, hold, stage);
}

etch_expr etch_bubble_formula(etch_sym *sym, const etch_schedule *schedule, const etch_pipe_sizes *sizes,
                              bool trains)
{
    const etch_pipe_sizes folded =
        etch_schedule_copies(schedule) > 1 ? etch_pipe_sizes_folded(sym, sizes) : *sizes;
    const etch_expr others = etch_bubble_of_others(sym, &folded);
    uint64_t chunks = 1;
    if (trains)
        return schedule->bubble(sym, sizes);
    /* that of a chain which comes back is once more as long as it was out: from the last stage on */
    return etch_is_constant(sizes->chunks) && etch_to_u64(sizes->chunks, &chunks) &&
                   etch_chain_ends_first(schedule->map, (uint32_t)chunks)
               ? etch_div(sym, etch_mul(sym, etch_int(sym, 2), others), sizes->chunks)
               : etch_div(sym, others, sizes->chunks);
}

bool etch_bubble_formula_holds(const etch_pipe *pipe)
{
    if (!pipe->schedule->bubble)
        return false;
    return pipe->chunks == 1 || pipe->microbatches % pipe->stages == 0 ||
           (pipe->trains && pipe->schedule->bubble_is_exact);
}
