/* Times of rows whose steps have shapes: the numbers of their tasks are evaluated for many rows at a time. */
#include "session/sweep/shapes_int.h"

#include <stdlib.h>
#include <string.h>

/* Rows that are evaluated together. */
enum { TOGETHER = 128 };

/* What one thread works with. */
struct etch_sweep_timer {
    etch_mem *mem;
    etch_timer *timer;
    etch_workspace *workspace;
};

typedef struct timing {
    etch_sweep_block *block;
    unsigned threads;
    const etch_cluster *cluster;
    const etch_stack *stack;
    etch_row_shape *rows;
    uint32_t count;
    /* by case, rows that follow each other */
    ETCH_VEC(uint32_t) firsts;
    /* rows of one shape that follow each other; and one more */
    ETCH_VEC(uint32_t) pieces;
} timing;

/* ---- cases --------------------------------------------------------------------------------------------- */

static int by_row(const void *a, const void *b)
{
    const etch_row_shape *x = a, *y = b;
    return etch_order(x->row, y->row);
}

static etch_status sort_case(void *data, size_t i)
{
    const timing *t = data;
    const uint32_t first = t->firsts.at[i], end = t->firsts.at[i + 1];
    return etch_case_sort_shapes(t->block, t->block->cases[t->rows[first].row], t->cluster, t->rows + first,
                                 end - first);
}

/* Rows of one case next to each other, cases as they come first. */
static void group_cases(timing *t)
{
    etch_sweep_block *b = t->block;
    etch_row_shape *sorted = ETCH_NEW_ARRAY(b->arena, t->count, etch_row_shape);
    bool *is_taken = ETCH_NEW_ARRAY(b->arena, t->count, bool);
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (is_taken[i])
            continue;
        ETCH_PUSH(b->arena, &t->firsts, count);
        for (uint32_t k = i; k < t->count; k++)
            if (b->cases[t->rows[k].row] == b->cases[t->rows[i].row]) {
                is_taken[k] = true;
                sorted[count++] = t->rows[k];
            }
    }
    ETCH_PUSH(b->arena, &t->firsts, count);
    if (count)
        memcpy(t->rows, sorted, count * sizeof *sorted);
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

/* A number of a task: not below 0, and rounded up where it may be. */
static bool number_of(const etch_sweep_values *values, uint32_t formula, uint32_t i, bool rounds,
                      uint64_t *out)
{
    *out = 0;
    if (formula == UINT32_MAX)
        return true;
    const size_t at = (size_t)formula * values->count + i;
    int64_t number = values->values[at], above, below;
    if (values->kinds[at] == ETCH_VALUE_RATIONAL && rounds &&
        etch_workspace_fraction(values->workspace, number, &above, &below) && above > 0)
        number = above / below + (above % below != 0);
    else if (values->kinds[at] != ETCH_VALUE_INTEGER)
        return false;
    *out = (uint64_t)number;
    return number >= 0;
}

static bool numbers_of(const etch_case_shape *shape, const etch_sweep_values *values, uint32_t i,
                       etch_task_numbers *out)
{
    bool fine = true;
    for (uint32_t t = 0; fine && t < shape->form->tasks.count; t++) {
        const etch_task_form *form = &shape->form->tasks.at[t];
        etch_task_numbers *n = &out[t];
        *n = (etch_task_numbers){
            .load = {.kind = form->kind, .backward = form->backward, .dtype = form->dtype}};
        uint64_t *const into[ETCH_SHAPE_NUMBERS] = {&n->bytes,  &n->flop,   &n->load.flop, &n->load.keys,
                                                    &n->load.m, &n->load.n, &n->load.k,    &n->load.batch};
        for (uint32_t k = 0; fine && k < ETCH_SHAPE_NUMBERS; k++)
            fine = number_of(values, shape->numbers[t].at[k], i, form->is_average, into[k]);
    }
    return fine;
}

/* One thread and a piece. */
typedef struct timing_piece {
    timing *t;
    struct etch_sweep_timer *timer;
    uint32_t first, end;
} timing_piece;

static etch_status time_piece(void *data)
{
    const timing_piece *p = data;
    etch_row_shape *rows = p->t->rows + p->first;
    const uint32_t count = p->end - p->first;
    const etch_case_shape *shape = rows[0].shape;
    if (!p->timer->timer)
        p->timer->timer = etch_timer_new(etch_arena_new(p->timer->mem));
    etch_arena *scratch = etch_arena_new(p->timer->mem);
    uint32_t *numbers = ETCH_NEW_ARRAY(scratch, count, uint32_t);
    etch_task_numbers *tasks = ETCH_NEW_ARRAY(scratch, shape->form->tasks.count, etch_task_numbers);
    etch_sweep_values values = {.workspace = p->timer->workspace};
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = rows[i].row;
    const etch_status status = etch_block_evaluate(p->t->block, scratch, shape->values.program,
                                                   shape->values.inputs, numbers, count, &values);
    etch_timer *timer = p->timer->timer;
    etch_timer_begin(timer, shape->shape, p->t->cluster, p->t->stack);
    for (uint32_t i = 0; status == ETCH_OK && i < count; i++)
        if (numbers_of(shape, &values, i, tasks))
            etch_timer_add(timer, rows[i].place, rows[i].flow, tasks, &rows[i].time, &rows[i].is_timed);
    etch_timer_end(timer);
    for (uint32_t i = 0; i < count; i++)
        rows[i].is_timed = rows[i].is_timed && rows[i].time.step > rows[i].time.error;
    etch_arena_free(scratch);
    return status;
}

/* Of a row that is told. */
static void note_lack(const timing *t, etch_row_shape *row)
{
    unsigned from = 0;
    if (row->is_timed)
        row->lacks = etch_machine_lack(t->block->arena, t->cluster->device, row->shape->kinds, &from);
}

static etch_status end(void *data)
{
    timing *t = data;
    for (uint32_t i = 0; i < t->count; i++)
        if (i > 0 && t->rows[i].is_timed && t->rows[i - 1].is_timed &&
            t->rows[i].shape == t->rows[i - 1].shape)
            t->rows[i].lacks = t->rows[i - 1].lacks;
        else
            note_lack(t, &t->rows[i]);
    qsort(t->rows, t->count, sizeof *t->rows, by_row);
    return ETCH_OK;
}

/* The pieces of one thread. */
static etch_status time_pieces(void *data, size_t thread)
{
    timing *t = data;
    struct etch_sweep_timer *timer = &t->block->sweep->timers[thread];
    etch_status status = ETCH_OK;
    if (!timer->mem && !(timer->mem = etch_mem_new(ETCH_MEMORY_LIMIT)))
        return ETCH_ENOMEM;
    if (!timer->workspace)
        status = etch_workspace_new(&timer->workspace);
    for (size_t i = thread; status == ETCH_OK && i + 1 < t->pieces.count; i += t->threads) {
        timing_piece piece = {t, timer, t->pieces.at[i], t->pieces.at[i + 1]};
        if (atomic_load(&t->block->sweep->session->cancel) == 0 && t->rows[piece.first].place)
            status = etch_guard(timer->mem, time_piece, &piece);
    }
    return status;
}

static bool is_one_piece(const etch_row_shape *a, const etch_row_shape *b)
{
    return (a->place != NULL) == (b->place != NULL) && a->shape == b->shape;
}

/* Rows of a shape next to each other within their case; then cut. */
static etch_status cut_pieces(void *data)
{
    timing *t = data;
    uint32_t first = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (i == 0 || !is_one_piece(&t->rows[i - 1], &t->rows[i]) || i - first == TOGETHER) {
            first = i;
            ETCH_PUSH(t->block->arena, &t->pieces, i);
        }
    }
    ETCH_PUSH(t->block->arena, &t->pieces, t->count);
    return ETCH_OK;
}

static etch_status begin(void *data)
{
    timing *t = data;
    etch_sweep *sweep = t->block->sweep;
    const etch_sweep_machine_of *machine = t->block->frame->machine;
    t->cluster = machine ? machine->cluster : etch_session_cluster(sweep->session, sweep->session->machine);
    if (t->cluster && sweep->options->stack)
        t->stack = etch_session_stack(sweep->session, t->cluster, sweep->options->stack);
    group_cases(t);
    return ETCH_OK;
}

/* Shapes are kept as long as all cases take no more than so many bytes. */
static void limit_shapes(etch_sweep *sweep)
{
    const size_t most = (size_t)256 << 20;
    size_t used = 0;
    for (uint32_t i = 0; i < sweep->case_slots; i++)
        for (const etch_sweep_case *at = sweep->cases[i]; at; at = at->next)
            used += at->shapes.count > 0 ? etch_mem_used(at->mem) : 0;
    for (uint32_t i = 0; used > most && i < sweep->case_slots; i++)
        for (etch_sweep_case *at = sweep->cases[i]; at; at = at->next)
            etch_case_free_shapes(at);
}

static etch_status begin_timers(void *data)
{
    const timing *t = data;
    etch_sweep *sweep = t->block->sweep;
    if (sweep->timers) /* it is asked for by as many each time */
        return ETCH_OK;
    sweep->timers = ETCH_NEW_ARRAY(sweep->arena, t->threads, struct etch_sweep_timer);
    sweep->timer_count = t->threads;
    return ETCH_OK;
}

/* Is a time of the step all that statements leave to runs? */
static bool may_tell(const etch_sweep_block *b)
{
    for (uint32_t i = 0; i < b->sweep->request.where.count; i++)
        if (b->frame->kinds[i] == ETCH_WHERE_TIMED)
            return false;
    return !b->frame->by_row;
}

etch_status etch_block_time_shapes(etch_sweep_block *block, unsigned threads, etch_row_shape *rows,
                                   uint32_t count)
{
    timing t = {.block = block, .threads = threads, .rows = rows, .count = count};
    if (!may_tell(block) || count == 0)
        return ETCH_OK;
    limit_shapes(block->sweep);
    etch_status status = etch_guard(block->mem, begin, &t);
    if (status == ETCH_OK)
        status = etch_guard(block->sweep->mem, begin_timers, &t);
    if (status == ETCH_OK && t.cluster)
        status = etch_parallel(threads, t.firsts.count - 1, sort_case, &t);
    if (status == ETCH_OK && t.cluster)
        status = etch_guard(block->mem, cut_pieces, &t);
    if (status == ETCH_OK && t.cluster)
        status = etch_parallel(threads, threads, time_pieces, &t);
    return status == ETCH_OK && t.cluster ? etch_guard(block->mem, end, &t) : status;
}

void etch_timers_free(etch_sweep *sweep)
{
    for (unsigned i = 0; i < sweep->timer_count; i++) {
        etch_workspace_free(sweep->timers[i].workspace);
        if (sweep->timers[i].mem)
            etch_mem_free(sweep->timers[i].mem);
    }
    sweep->timer_count = 0;
}
