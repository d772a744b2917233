/* What the time of a computation depends on, in numbers. */
#include "lower/lower_int.h"

static bool is_same(const etch_workload *a, const etch_workload *b)
{
    return a->kind == b->kind && a->backward == b->backward && a->dtype == b->dtype && a->flop == b->flop &&
           a->keys == b->keys && a->m == b->m && a->n == b->n && a->k == b->k && a->batch == b->batch;
}

static uint32_t index_of(const etch_outliner *o, const etch_workload *workload)
{
    etch_workloads *all = o->outline->workloads;
    for (uint32_t i = 0; i < all->count; i++)
        if (is_same(&all->at[i], workload))
            return i;
    ETCH_PUSH(o->outline->texts, all, *workload);
    return all->count - 1;
}

/* `kernel`: that it is of; NULL: of the end of a step. */
static void set_product(etch_outliner *o, etch_task *task, const etch_kernel *kernel,
                        const etch_kernel_product *product, uint64_t blocks)
{
    if (product->kind == ETCH_PRODUCT_NONE)
        return;
    etch_workload workload = {.kind = (uint8_t)product->kind,
                              .backward = product->backward,
                              .dtype = etch_dtype_name(product->dtype)};
    workload.flop = etch_task_number(o, product->flop, "FLOP of products", kernel, task->name.text);
    if (blocks > 1) /* a kernel of its own, which computes nothing else */
        workload.flop = task->flop;
    if (product->keys)
        workload.keys = etch_task_number(o, product->keys, "keys", kernel, task->name.text) / blocks;
    const etch_expr sides[] = {product->m, product->n, product->k, product->batch};
    uint64_t *const into[] = {&workload.m, &workload.n, &workload.k, &workload.batch};
    for (int i = 0; product->m && i < 4; i++)
        *into[i] = etch_task_number(o, sides[i], "a side of a product", kernel, task->name.text);
    task->workload = index_of(o, &workload);
    if (o->outline->form)
        etch_form_workload(o, task, product);
}

void etch_task_set_block_workload(etch_outliner *o, etch_task *task, const etch_kernel *kernel,
                                  uint64_t blocks)
{
    if (!o->outline->workloads || !kernel)
        return;
    const etch_kernel_product product = etch_kernel_product_of(o->placed, kernel);
    set_product(o, task, kernel, &product, blocks);
}

void etch_task_set_workload(etch_outliner *o, etch_task *task, const etch_kernel *kernel)
{
    etch_task_set_block_workload(o, task, kernel, 1);
}

void etch_task_set_end_workload(etch_outliner *o, etch_task *task, const etch_step_task *of)
{
    if (o->outline->workloads && of->product)
        set_product(o, task, NULL, of->product, 1);
}
