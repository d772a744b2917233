/* Runs of steps: what is asked of them has no formula. Rows whose steps differ in numbers alone are told
 * together (shapes.c), and each row that is left is run by itself. */
#include "session/sweep/shapes_int.h"

#include <string.h>

typedef enum run_state { RUN_LEFT, RUN_DONE, RUN_UNMET, RUN_REFUSED } run_state;

/* One row, in a session of its own. */
typedef struct run_row {
    etch_sweep_block *block;
    uint32_t row;
    etch_mem *mem;
    etch_arena *arena;
    etch_session *session;
    run_state state;
    etch_reason_text reason;
    /* by expression, where it is of the run */
    const char **texts;
    /* by statement, likewise: does it hold? */
    bool *met;
    /* what its machine lacks, in place of which it took something else; NULL: nothing */
    const char *lacks;
} run_row;

typedef ETCH_VEC(run_row) run_rows;

/* ---- one row ------------------------------------------------------------------------------------------- */

/* Statements about the run, all of them, as of those about formulas. */
static etch_status judge(void *data)
{
    run_row *r = data;
    etch_session *session = r->session;
    const etch_sweep_frame *frame = r->block->frame;
    const etch_quantities quantities = etch_session_quantities(session);
    const etch_plan *plan;
    const etch_settings *settings =
        etch_session_plan(session, &plan) ? etch_session_settings(session, plan) : NULL;
    bool all = true;
    session->stack = r->block->sweep->options->stack;
    for (uint32_t i = 0; settings && i < r->block->sweep->request.where.count; i++) {
        if (frame->kinds[i] != ETCH_WHERE_TIMED)
            continue;
        const etch_claim claim =
            etch_spec_claim(session->spec, frame->where[i], "statement", plan, &quantities);
        const etch_claim bound = claim.left ? etch_claim_apply(session, &claim, settings) : claim;
        if (!bound.left || (bound.relation != ETCH_REL_TRUE && !bound.right))
            return ETCH_EINPUT;
        r->met[i] = etch_session_judge(session, &claim, settings).truth == ETCH_YES;
        all = all && r->met[i];
    }
    r->state = all ? RUN_DONE : RUN_UNMET;
    return settings ? ETCH_OK : ETCH_EINPUT;
}

static etch_status ask(run_row *r)
{
    const etch_sweep *sweep = r->block->sweep;
    const etch_query_options options = {.struct_size = sizeof options, .stack = sweep->options->stack};
    const etch_answer *answer;
    etch_status status = ETCH_OK;
    for (uint32_t i = 0; status == ETCH_OK && i < sweep->request.exprs.count; i++) {
        if (!r->block->frame->timed[i])
            continue;
        status = etch_session_query(r->session, r->block->frame->exprs[i], &options, &answer);
        if (status == ETCH_OK && !answer->amount.is_number)
            return ETCH_EINPUT;
        if (status == ETCH_OK)
            r->texts[i] = etch_copy_string(r->arena, answer->amount.text);
    }
    return status;
}

static void note_lack(run_row *r)
{
    for (const etch_diag *diag = r->session ? etch_diags_first(r->session->diags) : NULL; diag;
         diag = diag->next)
        if (diag->code == ETCH_E_MACHINE_LACKS && !r->lacks)
            r->lacks = etch_copy_string(r->arena, diag->message);
}

static etch_status run(void *data)
{
    run_row *r = data;
    const etch_sweep *sweep = r->block->sweep;
    const etch_sweep_frame *frame = r->block->frame;
    r->arena = etch_arena_new(r->mem);
    r->texts = ETCH_NEW_ARRAY(r->arena, sweep->request.exprs.count, const char *);
    r->met = ETCH_NEW_ARRAY(r->arena, sweep->request.where.count, bool);
    etch_status status;
    r->session = etch_frame_open(sweep, r->arena, frame, etch_block_row(r->arena, r->block, r->row), &status);
    if (r->session && frame->machine)
        r->session->cluster = frame->machine->cluster;
    if (status == ETCH_OK)
        status = etch_session_run(r->session, judge, r);
    if (status == ETCH_OK && r->state == RUN_DONE)
        status = ask(r);
    if (status == ETCH_ENOMEM)
        return status;
    note_lack(r);
    if (status != ETCH_OK) {
        r->state = RUN_REFUSED;
        r->reason = etch_sweep_reason_of(r->arena, r->session);
    }
    return ETCH_OK;
}

static etch_status run_one(void *data, size_t i)
{
    run_row *r = &((run_rows *)data)->at[i];
    if (atomic_load(&r->block->sweep->session->cancel) != 0)
        return ETCH_OK; /* it is left */
    r->mem = etch_mem_new(ETCH_MEMORY_LIMIT);
    const etch_status status = r->mem ? etch_guard(r->mem, run, r) : ETCH_ENOMEM;
    etch_session_close(r->session);
    r->session = NULL;
    return status;
}

/* ---- a block ------------------------------------------------------------------------------------------- */

static void take(run_row *r)
{
    etch_sweep_block *b = r->block;
    const etch_sweep_request *request = &b->sweep->request;
    for (uint32_t i = 0; r->state != RUN_REFUSED && i < request->where.count; i++)
        if (b->frame->kinds[i] == ETCH_WHERE_TIMED) {
            b->asked[i]++;
            b->met[i] += r->met[i];
        }
    if (r->state == RUN_REFUSED) {
        r->reason.text = etch_copy_string(b->arena, r->reason.text);
        etch_block_refuse(b, r->row, r->reason);
    }
    b->unmet += r->state == RUN_UNMET;
    b->cut = b->cut || r->state == RUN_LEFT;
    for (uint32_t i = 0; r->state == RUN_DONE && i < request->exprs.count; i++)
        if (r->texts[i])
            b->results[r->row][i] = etch_exact_read(b->arena, r->texts[i]);
    if (r->state != RUN_DONE)
        b->results[r->row] = NULL;
}

/* Takes what the runs have come to, in the order of the rows. */
static etch_status take_all(void *data)
{
    run_rows *rows = data;
    for (uint32_t i = 0; i < rows->count; i++)
        take(&rows->at[i]);
    return ETCH_OK;
}

/* Rows that are left: those whose shapes may tell their steps, and those that are run. */
typedef struct listing {
    etch_sweep_block *block;
    ETCH_VEC(etch_row_shape) told;
    run_rows rows;
} listing;

static etch_status list(void *data)
{
    listing *l = data;
    etch_sweep_block *b = l->block;
    for (uint32_t i = 0; i < b->count; i++)
        if (b->results[i])
            ETCH_PUSH(b->arena, &l->told, ((etch_row_shape){.row = i}));
    return ETCH_OK;
}

/* Takes the times that shapes told, in the order of the rows; the others are run. */
static etch_status take_told(void *data)
{
    listing *l = data;
    etch_sweep_block *b = l->block;
    for (uint32_t i = 0; i < l->told.count; i++) {
        const etch_row_shape *row = &l->told.at[i];
        if (!row->is_timed) {
            ETCH_PUSH(b->arena, &l->rows, ((run_row){.block = b, .row = row->row}));
            continue;
        }
        const char *text =
            etch_seconds_text(b->arena, row->time.step - row->time.error, row->time.step + row->time.error);
        for (uint32_t k = 0; k < b->sweep->request.exprs.count; k++)
            if (b->frame->timed[k])
                b->results[row->row][k] = etch_exact_read(b->arena, text);
    }
    return ETCH_OK;
}

/* Each is said once. */
static void tell_lack(etch_sweep *sweep, const char *lacks)
{
    for (uint32_t i = 0; i < sweep->told.count; i++)
        if (strcmp(sweep->told.at[i], lacks) == 0)
            return;
    ETCH_PUSH(sweep->arena, &sweep->told, etch_copy_string(sweep->arena, lacks));
    etch_remark(sweep->session->diags, ETCH_E_MACHINE_LACKS, (etch_span){0, 0}, "%s", lacks);
}

/* Of rows that were told, and of rows that were run, in their order. */
static void tell_lacks(const listing *l, etch_status status)
{
    uint32_t run = 0;
    for (uint32_t i = 0; status == ETCH_OK && i < l->told.count; i++) {
        const etch_row_shape *row = &l->told.at[i];
        const char *lacks = row->is_timed ? row->lacks : l->rows.at[run++].lacks;
        if (lacks)
            tell_lack(l->block->sweep, lacks);
    }
}

static etch_status finish(void *data)
{
    etch_block_finish(data);
    return ETCH_OK;
}

etch_status etch_block_run(etch_sweep_block *b, unsigned threads)
{
    listing l = {.block = b};
    etch_status status = etch_guard(b->mem, list, &l);
    if (status == ETCH_OK)
        status = etch_block_time_shapes(b, threads, l.told.at, l.told.count);
    if (status == ETCH_OK)
        status = etch_guard(b->mem, take_told, &l);
    if (status == ETCH_OK)
        status = etch_parallel(threads, l.rows.count, run_one, &l.rows);
    if (status == ETCH_OK)
        status = etch_guard(b->mem, take_all, &l.rows);
    tell_lacks(&l, status);
    for (uint32_t i = 0; i < l.rows.count; i++)
        if (l.rows.at[i].mem)
            etch_mem_free(l.rows.at[i].mem);
    return status == ETCH_OK ? etch_guard(b->mem, finish, b) : status;
}
