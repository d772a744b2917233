/* Reads, writes and FLOP of kernels. A value that only its own kernel reads is never in memory; a value
 * that anything else reads is written once, and every kernel that reads it reads it once. */
#include "graph/step/step_int.h"

/* ---- steps and values ---------------------------------------------------------------------------------- */

typedef struct local {
    const etch_placed *placed;
    const etch_step *step;
    /* queries whose pairs are counted all together, or NULL */
    const etch_dim *counted;
    /* keys, of which the part of the queries that a rank has sees.. */
    const etch_dim *shown;
    /* ..so many */
    etch_expr seen;
} local;

static bool is_linked(const etch_step *step, etch_state factor, const etch_dim *dim)
{
    return factor && step->op && etch_op_dim_linked(step->op, factor) == dim;
}

/* Among how many ranks the step divides its work along a dim, or along one that it holds. */
static etch_expr parts_of(const local *l, const etch_dim *dim)
{
    uint32_t axes = 0;
    for (uint32_t i = 0; i < l->placed->plan->mesh.count; i++)
        if (l->step->factor[i] == dim || is_linked(l->step, l->step->factor[i], dim))
            axes |= 1u << i;
    return etch_group_size(l->placed, axes);
}

/* Size of a dim in the part of the work that one rank does; queries under a mask are counted all together. */
static etch_expr local_size(const void *data, const etch_dim *dim)
{
    const local *l = data;
    const etch_training *training = l->placed->training;
    etch_expr size = etch_placed_size(l->placed, dim);
    if (l->shown && dim == l->shown)
        return l->seen;
    return dim == l->counted ? size : etch_div(training->graph->sym, size, parts_of(l, dim));
}

static etch_expr whole_size(const void *data, const etch_dim *dim)
{
    return etch_placed_size(data, dim);
}

etch_expr etch_step_dim_size(const etch_placed *placed, const etch_step *step, const etch_dim *dim)
{
    const local here = {.placed = placed, .step = step};
    return local_size(&here, dim);
}

/* Ranks that have contiguous parts of the queries do unequal parts of the work, where that is counted. */
static bool see_part(local *l, const etch_flop_rule *rule)
{
    const etch_op *op = l->step->op;
    const etch_flop_call call = {l->placed->training->graph->sym, op, rule, whole_size, l->placed};
    if (l->step->work_share && op->row->seen)
        l->seen = op->row->seen(&call, l->step->work_share, parts_of(l, l->counted), &l->shown);
    if (l->seen)
        l->counted = NULL;
    return l->seen;
}

etch_expr etch_step_flop_by(const etch_placed *placed, const etch_step *step, const etch_flop_rule *rule)
{
    etch_sym *sym = placed->training->graph->sym;
    if (step->collective != ETCH_NO_COLLECTIVE)
        return etch_int(sym, 0);
    local here = {placed, step, etch_op_counted_queries(step->op), NULL, NULL};
    if (see_part(&here, rule))
        return etch_op_flop_by(sym, step->op, rule, local_size, &here);
    etch_expr flop = etch_op_flop_by(sym, step->op, rule, local_size, &here);
    /* A rank has the i-th chunk of its queries from the front and the i-th from the back: what the later one
     * sees more, the earlier one sees less, and every rank does an equal part of the pairs. */
    return here.counted ? etch_div(sym, flop, parts_of(&here, here.counted)) : flop;
}

etch_expr etch_step_flop(const etch_placed *placed, const etch_step *step)
{
    const etch_flop_rule as_executed = {0};
    return etch_step_flop_by(placed, step, &as_executed);
}

/* ---- uses ---------------------------------------------------------------------------------------------- */

typedef struct io {
    etch_placed *placed;
    etch_sym *sym;
    /* by value id; NULL: no kernel makes it */
    etch_kernel **made_by;
    /* by value id: something reads it */
    bool *used;
    /* by value id: something outside its kernel reads it */
    bool *leaves;
    /* by value id: the last kernel that listed it, counted from 1 */
    uint32_t *reader;
    /* by value id: the last kernel that reads all of it */
    uint32_t *whole;
    /* by tensor id of a gradient: the last kernel that adds to all of it */
    uint32_t *adder;
    /* by value id, where they have been asked for: several kernels read most values */
    etch_expr *elements;
    /* counted so far */
    uint32_t kernels;
} io;

static void make_in_region(const io *x, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->kernels.count; i++) {
        etch_kernel *kernel = region->kernels.at[i];
        for (uint32_t k = 0; k < kernel->steps.count; k++)
            for (uint32_t n = 0; n < kernel->steps.at[k]->out_count; n++)
                x->made_by[kernel->steps.at[k]->outs[n]->id] = kernel;
    }
}

static void use(const io *x, etch_value *value, const etch_kernel *by)
{
    uint32_t id = etch_value_memory(value, NULL)->id;
    x->used[id] = true;
    if (x->made_by[id] != by)
        x->leaves[id] = true;
}

static void use_in_region(const io *x, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->kernels.count; i++) {
        const etch_kernel *kernel = region->kernels.at[i];
        for (uint32_t k = 0; k < kernel->steps.count; k++)
            for (uint32_t n = 0; n < kernel->steps.at[k]->in_count; n++)
                use(x, kernel->steps.at[k]->ins[n], kernel);
    }
    for (uint32_t k = 0; k < region->carries.count; k++) {
        if (region->carries.at[k].init)
            use(x, region->carries.at[k].init, NULL);
        use(x, region->carries.at[k].out, NULL);
    }
}

/* ---- one kernel ---------------------------------------------------------------------------------------- */

static void add_bytes(const io *x, etch_expr *to, etch_expr elements, uint32_t width)
{
    *to = etch_add(x->sym, *to, etch_mul(x->sym, elements, etch_int(x->sym, width)));
}

static etch_expr elements_of(const io *x, const etch_value *value)
{
    etch_expr *elements = &x->elements[value->id];
    if (!*elements)
        *elements = etch_value_elements(x->placed, value);
    return *elements;
}

static uint32_t width_of(const etch_value *value)
{
    return etch_dtype_bytes(value->tensor->dtype);
}

/* The slots that an op fills experts with, of which `weight` has a share for each expert; NULL for most. */
static const etch_dim *slots_of(const etch_op *op, const etch_tensor *weight)
{
    for (uint32_t i = 0; i < op->in_count; i++)
        for (uint32_t d = 0; d < op->ins[i]->rank; d++) {
            const etch_dim *dim = op->ins[i]->dims[d];
            if (dim->experts && etch_has_dim(weight, dim->experts) && !etch_has_dim(weight, dim))
                return dim;
        }
    return NULL;
}

/* Elements of an operand that the step reads. Where few tokens are served, experts without one are left out;
 * in training every expert has some. */
static etch_expr elements_read(const io *x, const etch_step *step, const etch_value *root)
{
    etch_expr all = elements_of(x, root);
    const bool few = x->placed->training->graph->serves && root->tensor->kind == ETCH_WEIGHT && step->op;
    const etch_dim *slots = few ? slots_of(step->op, root->tensor) : NULL;
    if (!slots)
        return all;
    const local l = {.placed = x->placed, .step = step};
    return etch_mul(x->sym, all, etch_min(x->sym, etch_int(x->sym, 1), local_size(&l, slots)));
}

/* Of memory that outlives the run most of what is read was there before. */
static void read_operands(io *x, etch_kernel *kernel, const etch_step *step)
{
    for (uint32_t i = 0; i < step->in_count; i++) {
        etch_value *root = etch_value_root(step->ins[i]);
        bool own = x->made_by[etch_value_memory(step->ins[i], NULL)->id] == kernel;
        if (own && !etch_value_stays(root))
            continue;
        if (x->whole[root->id] == x->kernels)
            continue;
        bool rows = step->row->touch == ETCH_TOUCH_ROWS_READ && i == 0;
        if (!rows)
            x->whole[root->id] = x->kernels;
        if (!own && x->reader[root->id] != x->kernels)
            ETCH_PUSH(x->placed->arena, &kernel->reads, root);
        x->reader[root->id] = x->kernels;
        etch_expr elements = rows ? elements_of(x, step->outs[0]) : elements_read(x, step, root);
        add_bytes(x, &kernel->read, elements, width_of(root));
    }
}

/* A result that only its own kernel reads is not written; a first result that nobody reads was asked for
 * all the same. */
static bool is_written(const io *x, const etch_step *step, uint32_t result)
{
    const etch_value *value = step->outs[result];
    bool wanted = result == 0 && !value->tensor->optional_result;
    return x->leaves[value->id] || etch_value_stays(value) || (wanted && !x->used[value->id]);
}

/* A gradient is read, added to and written back, by all steps of a kernel at once. */
static void add_to_gradient(const io *x, etch_kernel *kernel, const etch_tensor *gradient,
                            const etch_value *added, bool rows)
{
    if (x->adder[gradient->id] == x->kernels)
        return;
    if (!rows)
        x->adder[gradient->id] = x->kernels;
    const uint32_t width = etch_dtype_bytes(x->placed->training->graph->dtypes.grads);
    add_bytes(x, &kernel->read, elements_of(x, added), width);
    add_bytes(x, &kernel->written, elements_of(x, added), width);
}

static void write_results(const io *x, etch_kernel *kernel, const etch_step *step)
{
    for (uint32_t i = 0; i < step->out_count; i++) {
        bool rows = step->row->touch == ETCH_TOUCH_ROWS_WRITTEN && i == 0;
        etch_value *result = step->outs[i];
        if (step->accumulate_into[i]) {
            add_to_gradient(x, kernel, step->accumulate_into[i], rows ? step->ins[0] : result, rows);
        } else if (is_written(x, step, i)) {
            ETCH_PUSH(x->placed->arena, &kernel->writes, result);
            add_bytes(x, &kernel->written, elements_of(x, rows ? step->ins[0] : result), width_of(result));
            if (i > 0 && etch_value_stays(result)) /* a state: what the run before has left is read first */
                add_bytes(x, &kernel->read, elements_of(x, result), width_of(result));
        }
    }
}

/* Each run reads the operands, of what goes round a block, and what the run before has left; gradients of
 * what goes round are added up by nodes of their own. */
static void count_ring(const io *x, etch_kernel *kernel)
{
    etch_sym *sym = x->sym;
    const etch_ring ring = etch_ring_of(x->placed, kernel->anchor);
    const etch_expr none = etch_int(sym, 0), two = etch_int(sym, 2);
    etch_ring_io *each = &kernel->ring;
    *each = (etch_ring_io){.carried = none, .returned = none};
    for (uint32_t i = 0; i < kernel->writes.count; i++) {
        const etch_value *result = kernel->writes.at[i];
        add_bytes(x, result->blocks ? &each->returned : &each->carried, elements_of(x, result),
                  width_of(result));
    }
    each->written = etch_add(sym, each->carried, each->returned);
    each->added = etch_sub(sym, kernel->written, each->written);
    each->read = etch_sub(sym, kernel->read, each->added);
    const etch_expr sums = etch_mul(sym, ring.sums, each->returned);
    const etch_expr read[] = {each->added, etch_mul(sym, ring.runs, each->read),
                              etch_mul(sym, etch_sub(sym, ring.runs, etch_int(sym, 1)), each->carried),
                              etch_mul(sym, two, sums)};
    const etch_expr written[] = {each->added, etch_mul(sym, ring.runs, each->written), sums};
    kernel->read = etch_sum(sym, 4, read);
    kernel->written = etch_sum(sym, 3, written);
}

static void fill_kernel(io *x, etch_kernel *kernel)
{
    x->kernels++;
    kernel->reads.count = kernel->writes.count = 0;
    kernel->flop = kernel->read = kernel->written = etch_int(x->sym, 0);
    for (uint32_t i = 0; i < kernel->steps.count; i++) {
        etch_step *step = kernel->steps.at[i];
        step->flop = etch_step_flop(x->placed, step);
        kernel->flop = etch_add(x->sym, kernel->flop, step->flop);
        read_operands(x, kernel, step);
        write_results(x, kernel, step);
    }
    if (etch_step_role(kernel->anchor) == ETCH_ROLE_RESHARD) {
        kernel->written = etch_kernel_payload(x->placed, kernel);
        kernel->read = etch_int(x->sym, 0);
    }
    if (kernel->anchor->ring)
        count_ring(x, kernel);
    kernel->bytes = etch_add(x->sym, kernel->read, kernel->written);
}

void etch_kernel_io(etch_placed *placed)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(placed->arena));
    io x = {
        .placed = placed,
        .sym = placed->training->graph->sym,
        .made_by = ETCH_NEW_ARRAY(scratch, placed->value_count, etch_kernel *),
        .used = ETCH_NEW_ARRAY(scratch, placed->value_count, bool),
        .leaves = ETCH_NEW_ARRAY(scratch, placed->value_count, bool),
        .reader = ETCH_NEW_ARRAY(scratch, placed->value_count, uint32_t),
        .whole = ETCH_NEW_ARRAY(scratch, placed->value_count, uint32_t),
        .adder = ETCH_NEW_ARRAY(scratch, placed->training->graph->tensors.count, uint32_t),
        .elements = ETCH_NEW_ARRAY(scratch, placed->value_count, etch_expr),
    };
    for (uint32_t i = 0; i < placed->regions.count; i++)
        make_in_region(&x, placed->regions.at[i]);
    for (uint32_t i = 0; i < placed->regions.count; i++)
        use_in_region(&x, placed->regions.at[i]);
    for (uint32_t i = 0; i < placed->regions.count; i++)
        for (uint32_t k = 0; k < placed->regions.at[i]->kernels.count; k++)
            fill_kernel(&x, placed->regions.at[i]->kernels.at[k]);
    etch_arena_free(scratch);
}
