/* The end of a step: reduction of gradients, clipping norm, optimizer, by units. */
#include "graph/kernel_int.h"

/* ---- one element --------------------------------------------------------------------------------------- */

uint32_t etch_update_flop(const etch_training *training)
{
    const etch_row *row = training->train.optimizer.row;
    return row ? row->flop : 0;
}

/* Reads the gradient, the weight (its master copy when there is one) and two moments; writes all but the
 * gradient back, and the weight as well when it has a master copy. */
uint32_t etch_update_bytes(const etch_training *training, const etch_tensor *weight)
{
    if (!training->train.optimizer.row)
        return 0;
    uint32_t gradient = etch_dtype_bytes(training->graph->dtypes.grads);
    uint32_t state = etch_dtype_bytes(training->graph->dtypes.optim);
    uint32_t own = etch_dtype_bytes(weight->dtype);
    bool master = training->train.optimizer.master;
    uint32_t read = gradient + (master ? state : own) + 2 * state;
    uint32_t written = own + (master ? state : 0) + 2 * state;
    return read + written;
}

uint32_t etch_clip_flop(void)
{
    return etch_row_named("grad_norm")->flop;
}

uint32_t etch_clip_bytes(const etch_training *training)
{
    return etch_dtype_bytes(training->graph->dtypes.grads);
}

/* ---- units --------------------------------------------------------------------------------------------- */

etch_tensor **etch_gradients_by_weight(const etch_training *training, etch_arena *arena)
{
    const etch_graph *graph = training->graph;
    etch_tensor **by_id = ETCH_NEW_ARRAY(arena, graph->tensors.count, etch_tensor *);
    for (uint32_t i = 0; i < training->gradients.count; i++)
        by_id[graph->weights.at[i]->id] = training->gradients.at[i];
    return by_id;
}

typedef struct ending {
    etch_placed *placed;
    const etch_training *training;
    etch_sym *sym;
    etch_tensor **gradients; /* by weight */
} ending;

/* Elements of the i-th weight of a unit on one rank, all copies. */
static etch_expr unit_elements(const ending *e, const etch_unit *unit, uint32_t i)
{
    const etch_value *weight = e->placed->weight_of[unit->weights.at[i]->id];
    return etch_mul(e->sym, unit->copies.at[i], etch_value_elements(e->placed, weight));
}

static etch_expr times(const ending *e, etch_expr elements, uint32_t constant)
{
    return etch_mul(e->sym, elements, etch_int(e->sym, constant));
}

/* The smallest set of axes above `last` that gradients of the unit are partial over; 0 when there is none. */
static uint32_t axes_after(const ending *e, const etch_unit *unit, uint32_t last)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < unit->weights.count; i++) {
        const etch_tensor *weight = unit->weights.at[i];
        uint32_t axes = e->gradients[weight->id] ? e->placed->sync_axes[weight->id] : 0;
        if (axes > last && (next == 0 || axes < next))
            next = axes;
    }
    return next;
}

static void add_buckets(const ending *e, etch_unit *unit)
{
    etch_arena *arena = e->placed->arena;
    uint32_t width = etch_dtype_bytes(e->training->graph->dtypes.grads);
    for (uint32_t axes = axes_after(e, unit, 0); axes; axes = axes_after(e, unit, axes)) {
        etch_bucket bucket = {.unit = unit, .axes = axes, .bytes = etch_int(e->sym, 0)};
        for (uint32_t i = 0; i < unit->weights.count; i++) {
            const etch_tensor *weight = unit->weights.at[i];
            if (!e->gradients[weight->id] || e->placed->sync_axes[weight->id] != axes)
                continue;
            ETCH_PUSH(arena, &bucket.gradients, e->gradients[weight->id]);
            bucket.bytes = etch_add(e->sym, bucket.bytes, times(e, unit_elements(e, unit, i), width));
        }
        ETCH_PUSH(arena, &e->placed->buckets, bucket);
    }
}

static void add_update(const ending *e, etch_unit *unit)
{
    etch_update update = {.unit = unit, .flop = etch_int(e->sym, 0), .bytes = etch_int(e->sym, 0)};
    for (uint32_t i = 0; i < unit->weights.count; i++) {
        const etch_tensor *weight = unit->weights.at[i];
        if (!e->gradients[weight->id])
            continue;
        etch_expr elements = unit_elements(e, unit, i);
        ETCH_PUSH(e->placed->arena, &update.gradients, e->gradients[weight->id]);
        update.flop = etch_add(e->sym, update.flop, times(e, elements, etch_update_flop(e->training)));
        update.bytes =
            etch_add(e->sym, update.bytes, times(e, elements, etch_update_bytes(e->training, weight)));
    }
    if (update.gradients.count > 0)
        ETCH_PUSH(e->placed->arena, &e->placed->updates, update);
}

static void set_clip(const ending *e)
{
    etch_expr elements = etch_int(e->sym, 0);
    for (uint32_t u = 0; u < e->training->units.count; u++) {
        const etch_unit *unit = e->training->units.at[u];
        etch_expr runs = unit->loop ? unit->loop->count : etch_int(e->sym, 1);
        for (uint32_t i = 0; i < unit->weights.count; i++)
            if (e->gradients[unit->weights.at[i]->id])
                elements = etch_add(e->sym, elements, etch_mul(e->sym, runs, unit_elements(e, unit, i)));
    }
    e->placed->clip_flop = times(e, elements, etch_clip_flop());
    e->placed->clip_bytes = etch_add(e->sym, times(e, elements, etch_clip_bytes(e->training)),
                                     etch_int(e->sym, CLIP_RESULT_BYTES));
}

void etch_updates(etch_placed *placed)
{
    const etch_training *training = placed->training;
    etch_arena *scratch = etch_arena_new(etch_arena_mem(placed->arena));
    ending e = {
        .placed = placed,
        .training = training,
        .sym = training->graph->sym,
        .gradients = etch_gradients_by_weight(training, scratch),
    };
    for (uint32_t i = training->units.count; i-- > 0;)
        add_buckets(&e, training->units.at[i]);
    for (uint32_t i = 0; i < training->units.count && training->train.optimizer.row; i++)
        add_update(&e, training->units.at[i]);
    if (training->backward && training->train.clip)
        set_clip(&e);
    etch_arena_free(scratch);
}
