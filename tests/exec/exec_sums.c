#include "exec_sums.h"

#include <string.h>

/* Who reads a value of the backward pass, as far as it matters here. */
typedef struct reader {
    const etch_step *sum; /* a sum of cotangents of the top level */
    uint32_t count;       /* of all readers */
} reader;

static void find_readers(const etch_placed *placed, const etch_value *value, reader *out);

static bool is_sum(const etch_step *step)
{
    return step->op && step->collective == ETCH_NO_COLLECTIVE &&
           strcmp(etch_row_name(step->row), "add_cotangents") == 0;
}

static bool is_view(const etch_step *step)
{
    return step->op && step->collective == ETCH_NO_COLLECTIVE && etch_op_is_view(step->op);
}

static void add_reader(const etch_placed *placed, const etch_step *step, bool at_top, reader *out)
{
    if (is_view(step)) {
        find_readers(placed, step->outs[0], out);
        return;
    }
    out->count++;
    if (at_top && is_sum(step))
        out->sum = step;
}

static void find_in_region(const etch_placed *placed, const etch_placed_region *region,
                           const etch_value *value, reader *out)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_item *item = &region->items.at[i];
        for (uint32_t k = 0; item->step && k < item->step->in_count; k++)
            if (item->step->ins[k] == value)
                add_reader(placed, item->step, region == placed->backward, out);
        for (uint32_t b = 0; item->loop && b < item->loop->bodies.count; b++) {
            const etch_placed_region *body = item->loop->bodies.at[b];
            for (uint32_t k = 0; k < body->carries.count; k++) {
                out->count += b == 0 && body->carries.at[k].init == value;
                out->count += body->carries.at[k].out == value;
            }
            find_in_region(placed, body, value, out);
        }
    }
}

static void find_readers(const etch_placed *placed, const etch_value *value, reader *out)
{
    find_in_region(placed, placed->backward, value, out);
}

/* Does a loop only add to what it hands on? Then what comes before it could be what it begins with. */
static bool accumulates(const etch_placed_loop *loop, uint32_t carry)
{
    const etch_tensor *of = loop->bodies.at[0]->carries.at[carry].in->tensor->of;
    for (uint32_t b = 0; b < loop->loop->forward->bodies.count; b++)
        for (uint32_t k = 0; k < loop->loop->forward->bodies.at[b]->carries.count; k++)
            if (loop->loop->forward->bodies.at[b]->carries.at[k].in == of)
                return false; /* the cotangent of what the forward loop hands on */
    return true;
}

/* The only sum that a value of a cut is for, NULL where it is for more. Of what a loop adds up it is that of
 * the same tensor: another one, of which this is a term as it is, would have to be known beforehand. */
static const etch_step *sum_for(const etch_placed *placed, const etch_value *value)
{
    reader found = {0};
    const etch_tensor *of = NULL;
    for (uint32_t i = 0; i < placed->backward->items.count; i++) {
        const etch_placed_loop *loop = placed->backward->items.at[i].loop;
        for (uint32_t k = 0; loop && k < etch_loop_carries(loop)->count; k++)
            if (etch_loop_carries(loop)->at[k].in == value) {
                if (!accumulates(loop, k))
                    return NULL;
                value = etch_loop_carries(loop)->at[k].result;
                of = value->tensor->of;
            }
    }
    find_readers(placed, value, &found);
    const bool fits = found.sum && (!of || found.sum->outs[0]->tensor->of == of);
    return found.count == 1 && fits ? found.sum : NULL;
}

const char *exec_check_sums(const etch_placed *placed)
{
    for (uint32_t c = 0; placed->stages && placed->backward && c < placed->stages->cuts.count; c++) {
        const etch_crossings *sent = &placed->stages->cuts.at[c].backward;
        for (uint32_t i = 0; i < sent->count; i++)
            for (uint32_t k = 0; k < i; k++) {
                const etch_step *sum = sum_for(placed, sent->at[i].value);
                if (sum && sum == sum_for(placed, sent->at[k].value))
                    return etch_text(placed->arena, "two terms of %s are sent where their sum would do",
                                     sum->outs[0]->tensor->name);
            }
    }
    return NULL;
}
