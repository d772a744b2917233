/* Stages seen one at a time: which part of the chain a stage holds, as multiplicities. */
#include <inttypes.h>

#include "graph/stage/stage_int.h"

/* ---- sizes --------------------------------------------------------------------------------------------- */

static uint64_t model_chunk_count(const etch_stage_numbers *n)
{
    return etch_model_chunk_count(n->map, n->stages, n->chunks);
}

/* "embed 1, layer 32, head 1" */
static void note_units(etch_diag *diag, const etch_placed *placed, const etch_stage_numbers *n)
{
    etch_buf text = {.arena = placed->arena};
    for (uint32_t i = 0; i < placed->stages->segments.count; i++)
        etch_buf_printf(&text, "%s%s %" PRIu64, i ? ", " : "", placed->stages->segments.at[i].name,
                        n->segments[i]);
    etch_note(diag, (etch_span){0, 0}, "its units: %s", text.text);
}

static bool counts_fit(const etch_placed *placed, const etch_stage_numbers *n)
{
    const etch_stage_line *line = placed->stages->line;
    uint64_t total = 0;
    bool fits = true;
    if (line->count_count != model_chunk_count(n))
        return etch_help(etch_error(placed->diags, ETCH_E_STAGE_COUNTS, line->span,
                                    "%" PRIu32 " counts of units for %" PRIu64 " %s", line->count_count,
                                    model_chunk_count(n), n->chunks > 1 ? "chunks of stages" : "stages"),
                         "give one for each chunk of each stage, in the order of the model");
    for (uint32_t i = 0; i < line->count_count && fits; i++) {
        if (n->counts[i] == 0)
            return etch_help(etch_error(placed->diags, ETCH_E_STAGE_COUNTS, line->span,
                                        "count %" PRIu32 " of the stages' units is 0", i + 1),
                             n->chunks > 1 ? "every chunk needs a unit" : "every stage needs a unit");
        fits = !__builtin_add_overflow(total, n->counts[i], &total);
    }
    if (fits && total == n->layers)
        return true;
    etch_diag *diag = etch_error(placed->diags, ETCH_E_STAGE_COUNTS, line->span,
                                 "the counts add up to %s%" PRIu64 " units, but the model has %" PRIu64,
                                 fits ? "" : "more than ", fits ? total : UINT64_MAX, n->layers);
    note_units(diag, placed, n);
    return etch_help(diag, "units are the iterations of the loops and the blocks that the line lists");
}

bool etch_stage_numbers_fit(const etch_placed *placed, const etch_stage_numbers *n)
{
    const etch_stages *stages = placed->stages;
    for (uint32_t i = 0; i < stages->segments.count; i++)
        if (n->segments[i] == 0)
            return etch_help(etch_error(placed->diags, ETCH_E_STAGE_COUNTS, stages->segments.at[i].loop->span,
                                        "loop %s of the stages runs 0 times", stages->segments.at[i].name),
                             "leave it out of the stage line");
    if (n->counts)
        return counts_fit(placed, n);
    if (n->layers >= model_chunk_count(n))
        return true;
    etch_diag *diag = etch_error(placed->diags, ETCH_E_STAGE_COUNTS, stages->line->span,
                                 "%" PRIu64 " %s not fill %" PRIu64 " %s", n->layers,
                                 n->layers == 1 ? "unit does" : "units do", model_chunk_count(n),
                                 n->chunks > 1 ? "chunks of stages" : "stages");
    note_units(diag, placed, n);
    return etch_help(diag, n->chunks > 1
                               ? "every chunk needs a unit: fewer stages or chunks, or more units in the line"
                               : "every stage needs a unit: fewer stages, or more units in the line");
}

static etch_expr *share_at(const etch_stage_view *view, etch_position position)
{
    return &view->shares[etch_position_segment(position)][etch_position_side(position)];
}

typedef struct viewing {
    const etch_placed *placed;
    const etch_stages *stages;
    etch_sym *sym;
    etch_expr zero, one;
    etch_stage_view *view;
} viewing;

/* Of a stage that holds nothing. */
static viewing begin(const etch_placed *placed)
{
    const etch_stages *stages = placed->stages;
    const uint32_t segments = stages->segments.count, cuts = stages->cuts.count;
    etch_sym *sym = placed->training->graph->sym;
    viewing v = {placed, stages, sym, etch_int(sym, 0), etch_int(sym, 1), .view = NULL};
    v.view = ETCH_NEW(placed->arena, etch_stage_view);
    v.view->stages = stages;
    v.view->shares = etch_alloc_array(placed->arena, segments, sizeof *v.view->shares);
    v.view->ranges = etch_alloc_array(placed->arena, segments, sizeof *v.view->ranges);
    v.view->iterations = ETCH_NEW_ARRAY(placed->arena, segments, etch_expr *);
    for (uint32_t i = 0; i < segments; i++) {
        const etch_loop *loop = stages->segments.at[i].loop;
        v.view->iterations[i] = ETCH_NEW_ARRAY(placed->arena, loop ? loop->bodies.count : 0, etch_expr);
    }
    v.view->held = ETCH_NEW_ARRAY(placed->arena, segments, bool);
    v.view->whole = ETCH_NEW_ARRAY(placed->arena, segments, bool);
    v.view->forward = ETCH_NEW_ARRAY(placed->arena, cuts, etch_iterations);
    v.view->backward = ETCH_NEW_ARRAY(placed->arena, cuts, etch_iterations);
    for (uint32_t i = 0; i < segments * ETCH_SIDES; i++)
        *share_at(v.view, i) = v.zero;
    return v;
}

/* ---- with numbers -------------------------------------------------------------------------------------- */

etch_bound_interval etch_overlap(etch_bound_interval a, etch_bound_interval b)
{
    const etch_bound_interval both = {a.first > b.first ? a.first : b.first, a.end < b.end ? a.end : b.end};
    return both.first < both.end ? both : (etch_bound_interval){0, 0};
}

etch_bound_interval etch_layers_of_chunk(const etch_stage_numbers *n, uint64_t model_chunk)
{
    const uint64_t model_chunks = model_chunk_count(n), least = n->layers / model_chunks,
                   more = n->layers % model_chunks; /* model chunks with one layer more */
    etch_bound_interval layers = {model_chunk * least + (model_chunk < more ? model_chunk : more), 0};
    layers.end = layers.first + least + (model_chunk < more);
    if (n->counts) {
        layers.first = 0;
        for (uint64_t i = 0; i < model_chunk; i++)
            layers.first += n->counts[i];
        layers.end = layers.first + n->counts[model_chunk];
    }
    return layers;
}

etch_bound_interval etch_layers_of_position(const etch_stage_numbers *n, etch_position position)
{
    etch_bound_interval layers = {0, 0};
    for (uint32_t i = 0; i <= etch_position_segment(position); i++) {
        layers.first = layers.end;
        layers.end += n->segments[i];
    }
    if (etch_position_side(position) == ETCH_FIRST_OF)
        layers.end = layers.first + 1;
    if (etch_position_side(position) == ETCH_LAST_OF)
        layers.first = layers.end - 1;
    return layers;
}

bool etch_cut_is_before(const etch_stage_numbers *n, const etch_cut *cut, uint64_t layer)
{
    const etch_bound_interval segment =
        etch_layers_of_position(n, etch_position_at(cut->segment, ETCH_ALL_OF));
    return cut->inside ? segment.first < layer && layer < segment.end : segment.first == layer;
}

/* What a stage holds at a position in one of its model chunks. */
static void add_layers(const viewing *v, etch_position position, etch_bound_interval of,
                       etch_bound_interval held, uint32_t chunk)
{
    const etch_bound_interval both = etch_overlap(held, of);
    const uint32_t segment = etch_position_segment(position);
    etch_expr *share = share_at(v->view, position);
    if (both.end == 0)
        return;
    *share = etch_add(v->sym, *share, etch_int(v->sym, (int64_t)(both.end - both.first)));
    if (etch_position_side(position) != ETCH_ALL_OF)
        return;
    etch_layer_interval range = {etch_int(v->sym, (int64_t)(both.first - of.first)),
                                 etch_int(v->sym, (int64_t)(both.end - of.first)),
                                 etch_int(v->sym, (int64_t)(both.end - both.first)), chunk};
    ETCH_PUSH(v->placed->arena, &v->view->ranges[segment], range);
    v->view->held[segment] = true;
    v->view->whole[segment] = *share == etch_int(v->sym, (int64_t)(of.end - of.first));
}

uint32_t etch_stage_copies(const etch_stages *stages)
{
    return etch_schedule_copies(stages->line->schedule);
}

/* The stage as one of a chain that is there once. */
static const etch_stage_view *view_of_first_copy(const etch_placed *placed, const etch_stage_numbers *n,
                                                 uint32_t stage)
{
    etch_stage_numbers once = *n;
    once.map = ETCH_MAP_LOOPED;
    once.chunks = n->chunks / etch_chunk_copies(n->map);
    return etch_chunk_copies(n->map) > 1 ? etch_stage_view_of(placed, &once, stage) : NULL;
}

const etch_stage_view *etch_stage_view_of(const etch_placed *placed, const etch_stage_numbers *n,
                                          uint32_t stage)
{
    viewing v = begin(placed);
    const uint64_t model_chunks = model_chunk_count(n);
    etch_stage_numbers *numbers = ETCH_NEW(placed->arena, etch_stage_numbers);
    *numbers = *n;
    v.view->numbers = numbers;
    v.view->of_first_copy = view_of_first_copy(placed, n, stage);
    const etch_chunk_map map = n->map;
    for (uint32_t chunk = 0; chunk < n->chunks; chunk++) {
        const uint64_t model_chunk = etch_model_chunk(map, n->stages, (etch_chunk_place){stage, chunk});
        const bool sends = model_chunk + 1 < model_chunks && !etch_chunk_turns(map, n->stages, model_chunk);
        const bool sends_back = model_chunk > 0 && !etch_chunk_turns(map, n->stages, model_chunk - 1);
        const etch_bound_interval held = etch_layers_of_chunk(n, model_chunk);
        for (uint32_t i = 0; i < v.stages->segments.count * ETCH_SIDES; i++)
            add_layers(&v, i, etch_layers_of_position(n, i), held, chunk);
        for (uint32_t i = 0; i < v.stages->cuts.count; i++) {
            const etch_cut *cut = &v.stages->cuts.at[i];
            const uint64_t first =
                etch_layers_of_position(n, etch_position_at(cut->segment, ETCH_ALL_OF)).first;
            if (sends && etch_cut_is_before(n, cut, held.end))
                ETCH_PUSH(placed->arena, &v.view->forward[i], etch_int(v.sym, (int64_t)(held.end - first)));
            if (sends_back && etch_cut_is_before(n, cut, held.first))
                ETCH_PUSH(placed->arena, &v.view->backward[i],
                          etch_int(v.sym, (int64_t)(held.first - first)));
        }
    }
    return v.view;
}

/* ---- as formulas --------------------------------------------------------------------------------------- */

/* The one loop of the chain; UINT32_MAX when there is none, or another. */
static uint32_t only_loop(const etch_stages *stages)
{
    uint32_t loop = UINT32_MAX, count = 0;
    for (uint32_t i = 0; i < stages->segments.count; i++)
        if (stages->segments.at[i].loop) {
            loop = i;
            count++;
        }
    return count == 1 ? loop : UINT32_MAX;
}

/* Layers of a model chunk. */
static etch_expr units_of_chunk(const viewing *v, etch_expr model_chunks, etch_expr model_chunk)
{
    etch_sym *sym = v->sym;
    const etch_expr top = etch_sub(sym, etch_add(sym, v->stages->layers, model_chunks), v->one);
    return etch_floor_div(sym, etch_sub(sym, top, model_chunk), model_chunks);
}

/* The first layer of a model chunk, as they are spread evenly. */
static etch_expr first_unit(const viewing *v, etch_expr model_chunks, etch_expr model_chunk)
{
    etch_sym *sym = v->sym;
    etch_expr layers = v->stages->layers, least = etch_floor_div(sym, layers, model_chunks);
    etch_expr more = etch_sub(sym, layers, etch_mul(sym, model_chunks, least)); /* chunks with one more */
    return etch_add(sym, etch_mul(sym, model_chunk, least), etch_min(sym, model_chunk, more));
}

/* A stage of a chain of formulas. */
typedef struct formed {
    etch_chunk_map map;
    etch_expr stages, number;
    uint32_t chunks;
    /* of the stages; and does it hold the first link of the chain, and the last? */
    bool first, last, begins, ends;
} formed;

/* Which link of the chain a chunk is. */
static etch_expr model_chunk_of(const viewing *v, const formed *stage, uint32_t chunk)
{
    etch_sym *sym = v->sym;
    if (stage->map == ETCH_MAP_DUPLICATED) {
        const etch_expr other = etch_sub(sym, etch_sub(sym, stage->stages, v->one), stage->number);
        return chunk == 0 ? etch_smaller(sym, stage->number, other) : etch_larger(sym, stage->number, other);
    }
    const bool comes_back = stage->map == ETCH_MAP_MIRRORED && chunk % 2 == 1;
    const etch_expr first = etch_mul(sym, stage->stages, etch_int(sym, (int64_t)chunk + comes_back));
    return comes_back ? etch_sub(sym, etch_sub(sym, first, v->one), stage->number)
                      : etch_add(sym, first, stage->number);
}

/* Notes the iterations that the chunks of a stage hold. The first of all begins where the loop does, the last
 * of all ends where it does. */
static void add_ranges(const viewing *v, uint32_t loop, const formed *stage)
{
    etch_sym *sym = v->sym;
    const uint32_t lines = stage->chunks / etch_chunk_copies(stage->map);
    etch_expr model_chunks = etch_mul(sym, stage->stages, etch_int(sym, lines)), before = etch_int(sym, loop);
    const etch_expr after = etch_int(sym, v->stages->segments.count - 1 - loop);
    for (uint32_t chunk = 0; chunk < stage->chunks; chunk++) {
        etch_expr model_chunk = model_chunk_of(v, stage, chunk);
        etch_expr next = etch_add(sym, model_chunk, v->one);
        etch_layer_interval range = {etch_sub(sym, first_unit(v, model_chunks, model_chunk), before),
                                     etch_sub(sym, first_unit(v, model_chunks, next), before),
                                     units_of_chunk(v, model_chunks, model_chunk), chunk};
        if (stage->begins && chunk == 0) {
            range.low = v->zero;
            range.size = etch_sub(sym, range.size, before);
        }
        if (stage->ends && chunk + 1 == stage->chunks) {
            range.high = v->stages->segments.at[loop].count;
            range.size = etch_sub(sym, range.size, after);
        }
        ETCH_PUSH(v->placed->arena, &v->view->ranges[loop], range);
    }
}

/* Does the stage send what this chunk makes to another one? Backward: what it makes of cotangents. */
static bool sends(const formed *stage, uint32_t chunk, bool backward)
{
    const bool turns_late = stage->map == ETCH_MAP_MIRRORED && stage->last;
    const bool turns_early = stage->map == ETCH_MAP_MIRRORED && stage->first;
    const bool outward = chunk % 2 == 0;
    if (backward ? chunk == 0 && stage->begins : chunk + 1 == stage->chunks && stage->ends)
        return false;
    return !(outward != backward ? turns_late : turns_early);
}

/* Every cut is between two iterations: where a chunk begins or ends, but the first or the last of all. */
static void add_ends(const viewing *v, uint32_t loop, const formed *stage)
{
    const etch_layer_intervals *ranges = &v->view->ranges[loop];
    for (uint32_t i = 0; i < v->stages->cuts.count; i++)
        for (uint32_t k = 0; v->stages->cuts.at[i].inside && k < ranges->count; k++) {
            if (sends(stage, k, false))
                ETCH_PUSH(v->placed->arena, &v->view->forward[i], ranges->at[k].high);
            if (sends(stage, k, true))
                ETCH_PUSH(v->placed->arena, &v->view->backward[i], ranges->at[k].low);
        }
}

/* All of a block. */
static void hold_block(const viewing *v, uint32_t segment, uint32_t chunk)
{
    for (int side = 0; side < ETCH_SIDES; side++)
        v->view->shares[segment][side] = v->one;
    v->view->held[segment] = v->view->whole[segment] = true;
    ETCH_PUSH(v->placed->arena, &v->view->ranges[segment],
              (etch_layer_interval){v->zero, v->one, v->one, chunk});
}

/* The one loop of the chain is segment `loop`. */
static etch_stage_view *view_of_class(const etch_placed *placed, uint32_t loop, etch_stage_class class,
                                      etch_chunk_map map, etch_expr stages, uint32_t chunks, etch_expr number)
{
    viewing v = begin(placed);
    const uint32_t segments = v.stages->segments.count;
    const bool first = class == ETCH_STAGE_FIRST, last = class == ETCH_STAGE_LAST;
    const bool is_twice = etch_chunk_copies(map) > 1;
    v.view->stage_count = stages;
    v.view->ends_first = etch_chain_ends_first(map, chunks);
    const formed stage = {
        .map = map,
        .stages = stages,
        .number = first  ? v.zero
                  : last ? etch_sub(v.sym, stages, v.one)
                         : number,
        .chunks = chunks,
        .first = first,
        .last = last,
        .begins = first || (last && is_twice),
        .ends = is_twice             ? first || last
                : v.view->ends_first ? first
                                     : last,
    };
    for (uint32_t i = 0; i < segments; i++)
        if (i < loop ? stage.begins : i > loop && stage.ends)
            hold_block(&v, i, i < loop ? 0 : chunks - 1);
    etch_expr *shares = v.view->shares[loop];
    v.view->held[loop] = true;
    add_ranges(&v, loop, &stage);
    for (uint32_t chunk = 0; chunk < chunks; chunk++)
        shares[ETCH_ALL_OF] = etch_add(v.sym, shares[ETCH_ALL_OF], v.view->ranges[loop].at[chunk].size);
    shares[ETCH_FIRST_OF] = stage.begins ? v.one : v.zero;
    shares[ETCH_LAST_OF] = stage.ends ? v.one : v.zero;
    add_ends(&v, loop, &stage);
    return v.view;
}

const etch_stage_view *etch_stage_view_class(const etch_placed *placed, etch_stage_class class,
                                             etch_expr stages, uint32_t chunks, etch_expr number)
{
    const etch_stages *chain = placed->stages;
    const uint32_t loop = only_loop(chain), copies = etch_stage_copies(chain);
    if (loop == UINT32_MAX || chain->line->counts)
        return NULL;
    etch_stage_view *view =
        view_of_class(placed, loop, class, etch_schedule_map(chain->line->schedule), stages, chunks, number);
    if (copies > 1)
        view->of_first_copy =
            view_of_class(placed, loop, class, ETCH_MAP_LOOPED, stages, chunks / copies, number);
    return view;
}

/* ---- some of the chunks -------------------------------------------------------------------------------- */

const etch_stage_view *etch_stage_view_chunks(const etch_placed *placed, const etch_stage_view *of,
                                              uint32_t first, uint32_t last)
{
    viewing v = begin(placed);
    v.view->numbers = of->numbers;
    v.view->stage_count = of->stage_count;
    v.view->ends_first = of->ends_first;
    v.view->of_first_copy = of->of_first_copy;
    for (uint32_t i = 0; i < v.stages->segments.count; i++) {
        const etch_layer_intervals *all = &of->ranges[i];
        etch_layer_intervals *ranges = &v.view->ranges[i];
        etch_expr *shares = v.view->shares[i];
        for (uint32_t k = 0; k < all->count && all->at[k].chunk <= last; k++) {
            if (all->at[k].chunk < first)
                continue;
            ETCH_PUSH(placed->arena, ranges, all->at[k]);
            shares[ETCH_ALL_OF] =
                etch_add(v.sym, shares[ETCH_ALL_OF], etch_sub(v.sym, all->at[k].high, all->at[k].low));
        }
        if (ranges->count == 0)
            continue;
        const bool begins = ranges->at[0].chunk == all->at[0].chunk;
        const bool ends = ranges->at[ranges->count - 1].chunk == all->at[all->count - 1].chunk;
        v.view->held[i] = true;
        v.view->whole[i] = begins && ends && of->whole[i];
        shares[ETCH_FIRST_OF] = begins ? of->shares[i][ETCH_FIRST_OF] : v.zero;
        shares[ETCH_LAST_OF] = ends ? of->shares[i][ETCH_LAST_OF] : v.zero;
    }
    return v.view;
}

/* ---- questions ----------------------------------------------------------------------------------------- */

etch_expr etch_stage_share(const etch_stage_view *view, etch_position position)
{
    return *share_at(view, position);
}

etch_expr etch_stage_iterations(etch_sym *sym, const etch_stage_view *view, etch_position position,
                                const etch_region *body)
{
    const uint32_t segment = etch_position_segment(position);
    if (!body->loop->pattern)
        return etch_stage_share(view, position);
    /* A loop in reverse has the classes of its loop. Counting asks which of two formulas is larger. */
    etch_expr *count = &view->iterations[segment][body->index];
    if (*count)
        return *count;
    etch_expr sum = etch_int(sym, 0);
    for (uint32_t i = 0; i < view->ranges[segment].count; i++) {
        const etch_layer_interval *held = &view->ranges[segment].at[i];
        sum = etch_add(sym, sum, etch_class_share(sym, body, held->low, held->size));
    }
    return *count = sum;
}
