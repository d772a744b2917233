/* Blocks of rows that are under way, some at a time. */
#include "session/sweep/sweep_int.h"

/* ---- one after the other ------------------------------------------------------------------------------- */

static etch_status start_block(void *data)
{
    etch_sweep_block *b = data;
    const uint32_t axes = b->frame->axis_count, statements = b->sweep->request.where.count;
    b->arena = etch_arena_new(b->mem);
    b->numbers = ETCH_NEW_ARRAY(b->arena, axes, int64_t *);
    b->denominators = ETCH_NEW_ARRAY(b->arena, axes, int64_t *);
    for (uint32_t i = 0; i < axes; i++)
        b->numbers[i] = ETCH_NEW_ARRAY(b->arena, b->capacity, int64_t);
    b->asked = ETCH_NEW_ARRAY(b->arena, statements, uint64_t);
    b->met = ETCH_NEW_ARRAY(b->arena, statements, uint64_t);
    return ETCH_OK;
}

etch_status etch_blocks_next(etch_sweep *sweep, const etch_sweep_frame *frame, etch_sweep_block **block)
{
    etch_sweep_block *b = *block = &sweep->blocks[sweep->block_count];
    *b =
        (etch_sweep_block){.sweep = sweep, .frame = frame, .first_row = sweep->walked, .chunk = sweep->chunk};
    b->capacity = sweep->block_rows ? sweep->block_rows : ETCH_SWEEP_BLOCK;
    b->mem = etch_mem_new(ETCH_MEMORY_LIMIT);
    if (!b->mem)
        return ETCH_ENOMEM;
    sweep->block_count++;
    return etch_guard(b->mem, start_block, b);
}

void etch_blocks_free(etch_sweep *sweep)
{
    for (uint32_t i = 0; i < sweep->block_count; i++)
        if (sweep->blocks[i].mem)
            etch_mem_free(sweep->blocks[i].mem);
    sweep->block_count = 0;
}

typedef struct adding {
    etch_sweep_block *block;
    const etch_exact *row;
} adding;

static etch_status add_row(void *data)
{
    const adding *a = data;
    etch_sweep_block *b = a->block;
    for (uint32_t i = 0; i < b->frame->axis_count; i++) {
        b->numbers[i][b->count] = a->row[i].number;
        if (a->row[i].denominator != 1 && !b->denominators[i]) {
            b->denominators[i] = ETCH_NEW_ARRAY(b->arena, b->capacity, int64_t);
            for (uint32_t k = 0; k < b->count; k++)
                b->denominators[i][k] = 1;
        }
        if (b->denominators[i])
            b->denominators[i][b->count] = a->row[i].denominator;
    }
    if (b->skipped > 0 && !b->before) {
        b->before = ETCH_NEW_ARRAY(b->arena, b->capacity, uint64_t);
        for (uint32_t k = 0; k < b->count; k++)
            b->before[k] = k;
    }
    if (b->before)
        b->before[b->count] = b->count + b->skipped;
    b->count++;
    return ETCH_OK;
}

etch_status etch_block_add(etch_sweep_block *block, const etch_exact *row)
{
    adding a = {block, row};
    return etch_guard(block->mem, add_row, &a);
}

void etch_block_add_cut(etch_sweep_block *b, uint64_t count, bool by_quantity)
{
    for (uint32_t s = 0; s < b->sweep->request.where.count; s++) {
        const etch_where_kind kind = b->frame->kinds[s];
        if (kind == ETCH_WHERE_PLAIN || (by_quantity && kind == ETCH_WHERE_QUANTITY))
            b->asked[s] += count;
        if (kind == ETCH_WHERE_PLAIN && by_quantity)
            b->met[s] += count;
    }
    b->unmet += count;
    b->skipped += count;
}

/* ---- some blocks at a time ----------------------------------------------------------------------------- */

static etch_status sort_guarded(void *data)
{
    return etch_block_sort(data);
}

static etch_status sort_block(void *data, size_t i)
{
    etch_sweep *sweep = data;
    return etch_guard(sweep->blocks[i].mem, sort_guarded, &sweep->blocks[i]);
}

static etch_status compute_guarded(void *data)
{
    etch_sweep_block *block = data;
    const etch_status status = etch_block_compute(block);
    if (status == ETCH_OK && !block->frame->times)
        etch_block_finish(block);
    return status;
}

static etch_status compute_block(void *data, size_t i)
{
    etch_sweep *sweep = data;
    return etch_guard(sweep->blocks[i].mem, compute_guarded, &sweep->blocks[i]);
}

static etch_status compile_case(void *data, size_t i)
{
    etch_sweep *sweep = data;
    return etch_case_begin(sweep->new_cases.at[i]);
}

/* Until each row has its case, compiled: rows of a case that cannot be compiled get cases of their own. */
static etch_status find_cases(etch_sweep *sweep, unsigned threads)
{
    for (;;) {
        etch_status status = etch_parallel(threads, sweep->block_count, sort_block, sweep);
        if (status != ETCH_OK)
            return status;
        sweep->new_cases.count = 0;
        for (uint32_t i = 0; i < sweep->block_count; i++)
            for (uint32_t k = 0; k < sweep->blocks[i].new_keys.count; k++)
                etch_case_add(sweep, &sweep->blocks[i].new_keys.at[k]);
        if (sweep->new_cases.count == 0)
            return ETCH_OK;
        status = etch_parallel(threads, sweep->new_cases.count, compile_case, sweep);
        if (status != ETCH_OK)
            return status;
    }
}

static etch_status fit_guarded(void *data)
{
    return etch_block_fit(data);
}

static etch_status fit_block(void *data, size_t i)
{
    etch_sweep *sweep = data;
    return etch_guard(sweep->blocks[i].mem, fit_guarded, &sweep->blocks[i]);
}

static etch_status complete_case(void *data, size_t i)
{
    etch_sweep *sweep = data;
    return etch_case_complete(sweep->new_cases.at[i]);
}

/* The cases with rows that are left, each once. */
static void list_wanted(etch_sweep *sweep)
{
    sweep->new_cases.count = 0;
    for (uint32_t i = 0; i < sweep->block_count; i++)
        for (uint32_t k = 0; k < sweep->blocks[i].wanted.count; k++) {
            etch_sweep_case *wanted = sweep->blocks[i].wanted.at[k];
            if (!wanted->listed)
                ETCH_PUSH(sweep->arena, &sweep->new_cases, wanted);
            wanted->listed = true;
        }
}

/* Formulas are compiled for cases alone some of whose rows are left: most of what is asked for as a product
 * of values is refused, and that is known without. */
static etch_status complete_cases(etch_sweep *sweep, unsigned threads)
{
    bool again = true;
    while (again) {
        etch_status status = find_cases(sweep, threads);
        if (status == ETCH_OK)
            status = etch_parallel(threads, sweep->block_count, fit_block, sweep);
        if (status != ETCH_OK)
            return status;
        list_wanted(sweep);
        status = etch_parallel(threads, sweep->new_cases.count, complete_case, sweep);
        if (status != ETCH_OK)
            return status;
        again = false;
        for (uint32_t i = 0; i < sweep->new_cases.count; i++)
            again = again || sweep->new_cases.at[i]->state == ETCH_CASE_BY_ROW;
    }
    return ETCH_OK;
}

etch_status etch_blocks_compute(etch_sweep *sweep, unsigned threads)
{
    if (sweep->block_count == 0)
        return ETCH_OK;
    etch_status status = complete_cases(sweep, threads);
    if (status == ETCH_OK)
        status = etch_parallel(threads, sweep->block_count, compute_block, sweep);
    for (uint32_t i = 0; status == ETCH_OK && i < sweep->block_count; i++)
        if (sweep->blocks[i].frame->times)
            status = etch_block_run(&sweep->blocks[i], threads);
    return status;
}
