/* Operands of backward for which either of two forward values serves: the slope of a sigmoid follows from its
 * operand and from its result.
 *
 * requires: a derived backward pass. provides: ops that read the value of the two that is kept anyway.
 *
 * A value is kept that something else in backward reads, and what is no result of forward is there anyway.
 * What an iteration carries to the next is kept where the next one reads it: not of the last one, so
 * nothing of a loop of one iteration. It serves where no value does that is kept in each iteration: one more
 * is kept then, whatever the count, where the operand would be one in each. So the choice is best for every
 * count.
 * Where neither is kept, one of them has to be. A value is the result of one op, so that pairs of an operand
 * and a result are the edges of trees: taken from the leaves on, a pair is best served by its operand where
 * another pair has that, too, and equally by both where none has. */
#include "graph/ir/cursor.h"
#include "graph/train/train_int.h"

etch_tensor *etch_either_read(etch_deriver *d, etch_tensor *first, etch_tensor *second, uint32_t slot)
{
    const bool gone = etch_recompute_is_missing(d, second);
    if (etch_recompute_is_missing(d, first))
        return etch_recompute_read(d, gone ? first : second);
    if (!gone)
        ETCH_PUSH(d->graph->arena, &d->either,
                  (etch_either){.slot = slot, .other = etch_recompute_version(d, second)});
    return etch_recompute_version(d, first);
}

void etch_either_add(etch_deriver *d, etch_op *op)
{
    for (uint32_t i = d->either.count; i-- > 0 && !d->either.at[i].op;)
        d->either.at[i].op = op;
}

typedef ETCH_VEC(etch_either) either_list;

typedef struct keeping {
    const etch_deriver *d;
    /* by tensor id: the value is there in backward, whichever of its pair is read */
    bool *kept;
    /* by tensor id: of how many pairs it is that are not served yet */
    uint32_t *pairs;
} keeping;

/* The value whose memory it is. */
static const etch_tensor *under(const etch_tensor *tensor)
{
    while (tensor->producer && tensor->producer->row->role == ETCH_ROLE_FREE)
        tensor = tensor->producer->ins[0];
    return tensor;
}

/* ---- what is kept -------------------------------------------------------------------------------------- */

/* Weights and inputs are there anyway, and so is what is recomputed. */
static bool is_kept(const keeping *k, const etch_tensor *tensor)
{
    const etch_tensor *value = under(tensor);
    return k->kept[value->id] || value->kind != ETCH_ACT || value->of;
}

static void keep(const keeping *k, const etch_tensor *tensor)
{
    k->kept[under(tensor)->id] = true;
}

/* By op id: bits of the operands that are of a pair. */
static uint32_t *open_operands(const etch_deriver *d)
{
    uint32_t *open = ETCH_NEW_ARRAY(d->graph->arena, d->graph->op_count, uint32_t);
    for (uint32_t i = 0; i < d->either.count; i++)
        open[d->either.at[i].op->id] |= 1u << d->either.at[i].slot;
    return open;
}

static void keep_reads(const keeping *k)
{
    const uint32_t *open = open_operands(k->d);
    for (etch_cursor at = {.root = k->d->training->backward}; etch_cursor_next(&at);) {
        const etch_op *op = at.item->op;
        for (uint32_t i = 0; op && i < op->in_count; i++)
            if (!(open[op->id] & 1u << i))
                keep(k, op->ins[i]);
        for (uint32_t c = 0; at.item->loop && c < etch_loop_carries(at.item->loop)->count; c++)
            if (etch_loop_carries(at.item->loop)->at[c].init)
                keep(k, etch_loop_carries(at.item->loop)->at[c].init);
    }
}

/* What enters an iteration, of whatever class, is what the one before it has made, of whatever class, or what
 * the loop begins with. */
static void keep_carried(const keeping *k)
{
    for (etch_cursor at = {.root = k->d->graph->forward}; etch_cursor_next(&at);) {
        const etch_loop *loop = at.item->loop;
        for (uint32_t c = 0; loop && c < etch_loop_carries(loop)->count; c++) {
            bool kept = false;
            for (uint32_t b = 0; b < loop->bodies.count; b++)
                kept = kept || is_kept(k, loop->bodies.at[b]->carries.at[c].in);
            if (kept)
                keep(k, etch_loop_carries(loop)->at[c].init);
            for (uint32_t b = 0; kept && b < loop->bodies.count; b++)
                keep(k, loop->bodies.at[b]->carries.at[c].out);
        }
    }
}

/* ---- pairs --------------------------------------------------------------------------------------------- */

static void serve(const keeping *k, const etch_either *pair, etch_tensor *by)
{
    pair->op->ins[pair->slot] = by;
    keep(k, by);
}

/* By what is kept. True: it is served. */
static bool serve_kept(const keeping *k, const etch_either *pair)
{
    etch_tensor *first = pair->op->ins[pair->slot];
    const bool served = is_kept(k, first) || is_kept(k, pair->other);
    if (served)
        serve(k, pair, is_kept(k, first) ? first : pair->other);
    return served;
}

/* A value from outside of a loop is one for all iterations. */
static void serve_best(const keeping *k, const etch_either *pair)
{
    etch_tensor *first = pair->op->ins[pair->slot];
    etch_tensor *operand = etch_op_reads_result(pair->op, pair->slot) ? pair->other : first;
    const etch_tensor *result = operand == first ? pair->other : first;
    const bool is_outer = under(operand)->region != under(result)->region;
    serve(k, pair, is_outer || k->pairs[under(operand)->id] > 1 ? operand : first);
}

/* Serves what is served by what is kept so far, and gives the others. */
static void serve_all_kept(const keeping *k, const etch_either *pairs, uint32_t count, either_list *left)
{
    for (uint32_t i = 0; i < count; i++)
        if (!serve_kept(k, &pairs[i]))
            ETCH_PUSH(k->d->graph->arena, left, pairs[i]);
}

void etch_either_end(etch_deriver *d)
{
    etch_arena *arena = d->graph->arena;
    const uint32_t tensors = d->graph->tensors.count;
    const keeping k = {d, ETCH_NEW_ARRAY(arena, tensors, bool), ETCH_NEW_ARRAY(arena, tensors, uint32_t)};
    either_list open = {0}, left = {0};
    keep_reads(&k);
    serve_all_kept(&k, d->either.at, d->either.count, &open);
    keep_carried(&k);
    serve_all_kept(&k, open.at, open.count, &left);
    for (uint32_t i = 0; i < left.count; i++) {
        k.pairs[under(left.at[i].op->ins[left.at[i].slot])->id]++;
        k.pairs[under(left.at[i].other)->id]++;
    }
    for (uint32_t i = 0; i < left.count; i++)
        if (!serve_kept(&k, &left.at[i]))
            serve_best(&k, &left.at[i]);
}
