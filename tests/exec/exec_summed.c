#include "exec_summed.h"

#include <math.h>
#include <string.h>

double exec_allowed(const exec_array *expected)
{
    return 1e-9 * exec_array_largest(expected) + 1e-12 * fmax(expected->summed, 1);
}

/* What an element of the array is, or was added up from. */
static double magnitude(const exec_array *array)
{
    return fmax(array->summed, exec_array_largest(array));
}

/* Indices say which element is meant, and are no part of it. */
static bool is_number(const etch_tensor *tensor)
{
    return tensor->dtype < ETCH_I64;
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names;
}

/* How many terms of a product each element is the sum of. */
static double terms_of(const exec_call *call)
{
    double terms = 1;
    for (uint32_t i = 0; i < call->op->in_count; i++)
        for (uint32_t d = 0; d < call->op->ins[i]->rank; d++) {
            const etch_dim *dim = call->op->ins[i]->dims[d];
            bool is_known = etch_has_dim(call->op->outs[0], dim);
            for (uint32_t k = 0; k < i; k++)
                is_known = is_known || etch_has_dim(call->op->ins[k], dim);
            terms *= is_known ? 1 : exec_size(call->env, dim);
        }
    return terms;
}

/* Sums and products add up terms. Other ops pass on how far their operands may be off, by slopes that the
 * allowance has room for. */
void exec_note_summed(exec_call *call)
{
    static const char *const sums[] = {"add",        "sub", "add_cotangents", "sum", "negated_sum",
                                       "accumulate", NULL};
    const char *name = etch_row_name(call->op->row);
    double sum = 0, product = 1, most = 0;
    for (uint32_t i = 0; i < call->op->in_count; i++) {
        const double size = is_number(call->op->ins[i]) ? magnitude(call->ins[i]) : 0;
        sum += size;
        product *= size;
        most = fmax(most, size);
    }
    if (is_one_of(name, sums))
        most = sum * terms_of(call);
    else if (strcmp(name, "einsum") == 0)
        most = product * terms_of(call);
    for (uint32_t i = 0; i < call->op->out_count; i++)
        call->outs[i]->summed = most;
}
