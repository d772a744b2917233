/* Memory over time: what a rank of each stage holds along a step, and what is there when it is most. */
#include <stdlib.h>
#include <string.h>

#include "session/view/graph_int.h"
#include "session/view/pipeline_int.h"

/* Of all stages together. */
enum { MOST_CURVE_ROWS = 1 << 17 };

typedef ETCH_VEC(etch_memory_item) items;

typedef struct showing {
    etch_session *session;
    etch_compiled *p;
    etch_pipe pipe;
    etch_view_names names;
    uint32_t rows;
    etch_memory_report *report;
} showing;

/* ---- what is there all the time ------------------------------------------------------------------------ */

static etch_memory_kind kind_of_cost(const etch_cost *cost)
{
    if (cost->measure != ETCH_HELD)
        return ETCH_BYTES_OF_CACHE;
    return cost->memory == ETCH_MEMORY_WEIGHTS ? ETCH_BYTES_OF_WEIGHTS
           : cost->memory == ETCH_MEMORY_GRADS ? ETCH_BYTES_OF_GRADS
                                               : ETCH_BYTES_OF_OPTIMIZER;
}

static etch_memory_kind kind_of_curve(etch_curve_kind kind)
{
    static const etch_memory_kind kinds[ETCH_CURVE_KINDS] = {
        [ETCH_CURVE_ACTIVATIONS] = ETCH_BYTES_OF_ACTIVATIONS,
        [ETCH_CURVE_GATHERED] = ETCH_BYTES_OF_GATHERED,
        [ETCH_CURVE_COMMUNICATION] = ETCH_BYTES_OF_COMMUNICATION,
        [ETCH_CURVE_WORKSPACE] = ETCH_BYTES_OF_WORKSPACE};
    return kinds[kind];
}

static bool is_constant(const etch_cost *cost)
{
    return cost->measure == ETCH_CACHED ||
           (cost->measure == ETCH_HELD && cost->memory != ETCH_MEMORY_ACTIVATIONS &&
            cost->memory != ETCH_MEMORY_WORKSPACE && cost->memory != ETCH_MEMORY_HOST);
}

static etch_memory_item item_of(const showing *s, etch_memory_kind kind, const etch_tensor *tensor,
                                uint64_t bytes)
{
    const etch_graph *graph = s->p->training->graph;
    const char *name = tensor->id < graph->tensors.count ? s->names.tensors[tensor->id] : NULL;
    const etch_tensor *made = tensor;
    while (made->of)
        made = made->of;
    const etch_scope *scope = etch_view_naming_scope(graph, tensor);
    return (etch_memory_item){.kind = kind,
                              .tensor = name ? name : tensor->name,
                              .module = etch_scope_path(s->session->arena, scope, NULL),
                              .location = etch_locate(s->session, made->span),
                              .bytes = bytes};
}

/* What the optimizer keeps of a weight is one item. */
static void add_constant(const showing *s, const etch_cost *cost, uint64_t bytes, items *out)
{
    etch_arena *arena = s->session->arena;
    const etch_memory_item item =
        cost->tensor
            ? item_of(s, kind_of_cost(cost), cost->tensor, bytes)
            : (etch_memory_item){.kind = kind_of_cost(cost),
                                 .tensor = etch_cost_op_name(cost),
                                 .module = cost->scope ? etch_scope_path(arena, cost->scope, NULL) : "",
                                 .location = etch_locate(s->session, cost->span),
                                 .bytes = bytes};
    etch_memory_item *last = out->count > 0 ? &out->at[out->count - 1] : NULL;
    if (last && last->kind == item.kind && strcmp(last->tensor, item.tensor) == 0 &&
        strcmp(last->module, item.module) == 0)
        last->bytes += bytes;
    else
        ETCH_PUSH(arena, out, item);
}

/* Adds what lasts; false where something has no value. */
static bool add_constants(const showing *s, const etch_stage_item *stage, items *out)
{
    etch_held_by by = {s->session, s->p};
    const etch_cost_list *costs = etch_compiled_stage_memory(s->session, s->p, stage, false, NULL);
    for (uint32_t i = 0; i < costs->count; i++) {
        const etch_cost *cost = &costs->at[i];
        uint64_t bytes;
        if (!is_constant(cost))
            continue;
        const etch_expr amount = etch_held_amount(&by, etch_mul(s->session->sym, cost->each, cost->times));
        if (!amount || !etch_to_u64(amount, &bytes) || bytes > INT64_MAX / 2)
            return false;
        if (bytes > 0)
            add_constant(s, cost, bytes, out);
    }
    return true;
}

/* ---- stages -------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const etch_memory_item *x = a, *y = b;
    const int module = strcmp(x->module, y->module), tensor = strcmp(x->tensor, y->tensor);
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->kind != y->kind ? (int)x->kind - (int)y->kind : module ? module : tensor;
}

static void copy_slots(const showing *s, const etch_curve *curve, etch_memory_stage *out)
{
    etch_memory_slot *slots = ETCH_NEW_ARRAY(s->session->arena, curve->action_count, etch_memory_slot);
    for (uint32_t i = 0; i < curve->action_count; i++)
        slots[i] = (etch_memory_slot){curve->actions[i].kind, curve->actions[i].chunk,
                                      curve->actions[i].microbatch, curve->actions[i].overlaps};
    out->slots = slots;
    out->slot_count = curve->action_count;
}

/* False: it is more than 64 bits have. */
static bool copy_rows(const showing *s, const etch_curve *curve, const items *all, etch_memory_stage *out)
{
    etch_memory_row *rows = ETCH_NEW_ARRAY(s->session->arena, curve->row_count, etch_memory_row);
    uint64_t lasting[ETCH_MEMORY_KINDS] = {0};
    bool fits = true;
    for (uint32_t i = 0; i < all->count; i++) {
        uint64_t *sum = &lasting[all->at[i].kind];
        *sum += all->at[i].bytes;
        fits = fits && *sum <= INT64_MAX / 2;
    }
    for (uint32_t i = 0; fits && i < curve->row_count; i++) {
        const etch_curve_row *from = &curve->rows[i];
        rows[i] = (etch_memory_row){
            .slot = from->action, .loop = from->loop ? from->loop->name : NULL, .iteration = from->iteration};
        memcpy(rows[i].bytes, lasting, sizeof lasting);
        for (int k = 0; k < ETCH_CURVE_KINDS; k++)
            rows[i].bytes[kind_of_curve((etch_curve_kind)k)] = from->bytes[k];
        for (int k = 0; k < ETCH_MEMORY_KINDS; k++) {
            fits = fits && rows[i].bytes[k] <= INT64_MAX - rows[i].total;
            rows[i].total += fits ? rows[i].bytes[k] : 0;
        }
    }
    out->rows = rows;
    out->row_count = curve->row_count;
    out->peak = curve->peak;
    return fits;
}

static void report_open(const showing *s, const etch_stage_item *stage)
{
    etch_session *session = s->session;
    const etch_cost_list *costs = etch_compiled_stage_memory(session, s->p, stage, false, NULL);
    etch_expr *amounts = ETCH_NEW_ARRAY(session->arena, costs->count, etch_expr);
    for (uint32_t i = 0; i < costs->count; i++)
        amounts[i] =
            etch_compiled_apply(session, s->p, etch_mul(session->sym, costs->at[i].each, costs->at[i].times));
    etch_diag *diag = etch_error(session->diags, ETCH_E_UNBOUND, (etch_span){0, 0},
                                 "what a rank holds over time is no number of bytes, or too large");
    etch_help_unbound(session, diag, amounts, costs->count);
}

static etch_status report_long(const showing *s)
{
    etch_diag *diag = etch_error(s->session->diags, ETCH_E_SHOW_TOO_LARGE, (etch_span){0, 0},
                                 "memory over time has more than %d rows: iterations of microbatches",
                                 (int)MOST_CURVE_ROWS);
    etch_help(diag, "ask for one stage with --stage, or for fewer microbatches");
    return ETCH_ELIMIT;
}

static etch_status show_stage(showing *s, const etch_stage_item *stage, etch_memory_stage *out)
{
    etch_arena *arena = s->session->arena, *scratch = etch_arena_new(etch_arena_mem(arena));
    etch_held_by by = {s->session, s->p};
    const etch_valuation values = {etch_held_amount, &by};
    uint64_t number = 0;
    const bool counted = etch_to_u64(stage->place.stage, &number);
    const etch_curve_options options = {.placed = s->p->placed,
                                        .stage = stage->view,
                                        .number = (uint32_t)number,
                                        .pipe = s->pipe,
                                        .values = &values,
                                        .most_rows = MOST_CURVE_ROWS - s->rows};
    etch_curve curve;
    items all = {0};
    etch_curve_result result = counted ? etch_placed_curve(scratch, &options, &curve) : ETCH_CURVE_OPEN;
    if (result == ETCH_CURVE_FINE && !(add_constants(s, stage, &all) && copy_rows(s, &curve, &all, out)))
        result = ETCH_CURVE_OPEN;
    if (result == ETCH_CURVE_FINE) {
        copy_slots(s, &curve, out);
        for (uint32_t i = 0; i < curve.item_count; i++)
            ETCH_PUSH(
                arena, &all,
                item_of(s, kind_of_curve(curve.items[i].kind), curve.items[i].tensor, curve.items[i].bytes));
        if (all.count > 1)
            qsort(all.at, all.count, sizeof *all.at, by_size);
        out->items = all.at;
        out->item_count = all.count;
        out->stage = (uint32_t)number;
        s->rows += curve.row_count;
    }
    etch_arena_free(scratch);
    if (result == ETCH_CURVE_OPEN)
        report_open(s, stage);
    return result == ETCH_CURVE_FINE ? ETCH_OK : result == ETCH_CURVE_TOO_LONG ? report_long(s) : ETCH_EINPUT;
}

/* ---- the report ---------------------------------------------------------------------------------------- */

static uint64_t peak_of(const etch_memory_stage *stage)
{
    return stage->row_count > 0 ? stage->rows[stage->peak].total : 0;
}

static etch_status show(void *data)
{
    showing *s = data;
    etch_session *session = s->session;
    etch_stage_list list = {0};
    s->p = etch_compiled_get(session, NULL, NULL, true, (etch_span){0, 0});
    if (!s->p || !etch_compiled_place(session, s->p) || !etch_compiled_fit(session, s->p) ||
        !etch_view_pipe(session, s->p, &s->pipe) ||
        !etch_session_stages(session, s->p, session->options.stage, (etch_span){0, 0}, &list))
        return ETCH_EINPUT;
    etch_remark_default_axes(session, s->p, NULL);
    s->names = etch_view_name_graph(session->arena, s->p->training);
    etch_memory_stage *stages = ETCH_NEW_ARRAY(session->arena, list.count, etch_memory_stage);
    etch_memory_report *report = ETCH_NEW(session->arena, etch_memory_report);
    *report = (etch_memory_report){.model = s->p->model->name,
                                   .plan = s->p->plan->name,
                                   .config = etch_spec_config(session->spec, session->options.config),
                                   .run = s->p->model->run,
                                   .stages = stages,
                                   .stage_count = list.count};
    for (uint32_t i = 0; i < list.count; i++) {
        const etch_status status = show_stage(s, &list.at[i], &stages[i]);
        if (status != ETCH_OK)
            return status;
        if (peak_of(&stages[i]) > peak_of(&stages[report->heaviest]))
            report->heaviest = i;
    }
    s->report = report;
    return ETCH_OK;
}

etch_status etch_session_memory(etch_session *session, const etch_memory_report **report)
{
    showing s = {.session = session};
    const etch_status status = etch_session_run_bound(session, show, &s);
    *report = status == ETCH_OK ? s.report : NULL;
    return status;
}
