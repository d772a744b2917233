/* The quantities of queries: what each means as a selection of cost items. */
#include "session/query/query.h"

#include <string.h>

enum {
    BY_OP = 1 << ETCH_BY_OP,
    BY_MODULE = 1 << ETCH_BY_MODULE,
    BY_PHASE = 1 << ETCH_BY_PHASE,
    BY_COLLECTIVE = 1 << ETCH_BY_COLLECTIVE,
    BY_AXIS = 1 << ETCH_BY_AXIS,
    BY_STAGE = 1 << ETCH_BY_STAGE,
    BY_TERM = 1 << ETCH_BY_TERM,
    BY_LAYER = 1 << ETCH_BY_LAYER,
    BY_CLASS = 1 << ETCH_BY_CLASS,
    OF_WEIGHTS = BY_MODULE | BY_TERM | BY_LAYER,
    OF_KEPT = BY_OP | BY_MODULE | BY_TERM | BY_LAYER,
    OF_JOB = BY_OP | BY_MODULE | BY_PHASE | BY_TERM | BY_LAYER,
    OF_RANK = OF_JOB | BY_STAGE,
    OF_HELD = OF_WEIGHTS | BY_STAGE | BY_CLASS,
    OF_COLLECTIVES = OF_RANK | BY_COLLECTIVE | BY_AXIS
};

/* clang-format off */
static const etch_quantity_row rows[] = {
    {"params", ETCH_OF_PART, ETCH_PARAMS, ETCH_ALL, OF_WEIGHTS, ETCH_UNIT_ELEMENTS, "weights",
     ETCH_NOT_TIMED},
    {"trainable", ETCH_OF_PART, ETCH_PARAMS, ETCH_ONLY_TRAINABLE, OF_WEIGHTS, ETCH_UNIT_ELEMENTS,
     "weights that have a gradient", ETCH_NOT_TIMED},
    {"active_params", ETCH_OF_PART, ETCH_ACTIVE, ETCH_ALL, OF_WEIGHTS, ETCH_UNIT_ELEMENTS,
     "weights that one token uses", ETCH_NOT_TIMED},
    {"flops", ETCH_OF_PHASE, ETCH_FLOPS, ETCH_ALL, OF_JOB, ETCH_UNIT_FLOP,
     "work of the whole job; a multiply-add is 2", ETCH_NOT_TIMED},
    {"matmul_flops", ETCH_OF_PHASE, ETCH_FLOPS, ETCH_ONLY_MATMUL, OF_JOB, ETCH_UNIT_FLOP,
     "of it, the products", ETCH_NOT_TIMED},
    {"elementwise", ETCH_OF_PHASE, ETCH_FLOPS, ETCH_ONLY_ELEMENTWISE, OF_JOB, ETCH_UNIT_FLOP,
     "of it, all but the products", ETCH_NOT_TIMED},
    {"rank_flops", ETCH_OF_PHASE, ETCH_RANK_FLOPS, ETCH_ALL, OF_RANK, ETCH_UNIT_FLOP, "work of one rank",
     ETCH_NOT_TIMED},
    {"traffic", ETCH_OF_PHASE, ETCH_TRAFFIC, ETCH_ALL, OF_RANK, ETCH_UNIT_BYTES,
     "memory that one rank reads and writes; traffic(host): what goes to its host and back", ETCH_NOT_TIMED},
    {"reads", ETCH_OF_PHASE, ETCH_TRAFFIC, ETCH_ONLY_READ, OF_RANK, ETCH_UNIT_BYTES, "of it, what is read",
     ETCH_NOT_TIMED},
    {"writes", ETCH_OF_PHASE, ETCH_TRAFFIC, ETCH_ONLY_WRITTEN, OF_RANK, ETCH_UNIT_BYTES,
     "of it, what is written", ETCH_NOT_TIMED},
    {"comm", ETCH_OF_PHASE, ETCH_COMM, ETCH_ALL, OF_COLLECTIVES, ETCH_UNIT_BYTES,
     "payload of the collectives of one rank", ETCH_NOT_TIMED},
    {"wire", ETCH_OF_PHASE, ETCH_WIRE, ETCH_ALL, OF_COLLECTIVES, ETCH_UNIT_BYTES,
     "what one rank sends for them, in rings", ETCH_NOT_TIMED},
    {"rank_params", ETCH_OF_PART, ETCH_RANK_PARAMS, ETCH_ALL, OF_WEIGHTS | BY_STAGE, ETCH_UNIT_ELEMENTS,
     "weights that one rank holds", ETCH_NOT_TIMED},
    {"memory", ETCH_OF_CLASS, ETCH_HELD, ETCH_ALL, OF_HELD, ETCH_UNIT_BYTES,
     "what one rank holds: memory(peak), or of it C", ETCH_NOT_TIMED},
    {"saved", ETCH_OF_CALL, ETCH_SAVED, ETCH_ALL, OF_KEPT, ETCH_UNIT_BYTES,
     "what a microbatch keeps of the forward pass for the backward pass; of the whole job", ETCH_NOT_TIMED},
    {"rank_saved", ETCH_OF_CALL, ETCH_RANK_SAVED, ETCH_ALL, OF_KEPT | BY_STAGE, ETCH_UNIT_BYTES,
     "the same, of one rank", ETCH_NOT_TIMED},
    {"time", ETCH_OF_PHASE, ETCH_FLOPS, ETCH_ALL, 0, ETCH_UNIT_SECONDS,
     "of a step on a machine", ETCH_TIMED_SECONDS},
    {"tokens_per_second", ETCH_OF_PHASE, ETCH_FLOPS, ETCH_ALL, 0, ETCH_UNIT_TOKENS_A_SECOND,
     "of the whole job in a step", ETCH_TIMED_TOKENS},
    {"mfu", ETCH_OF_PHASE, ETCH_FLOPS, ETCH_ALL, 0, ETCH_UNIT_NONE,
     "FLOP of products, without recomputation, over what all devices could do in a step", ETCH_TIMED_MFU},
    {"hfu", ETCH_OF_PHASE, ETCH_FLOPS, ETCH_ALL, 0, ETCH_UNIT_NONE,
     "the same with recomputation", ETCH_TIMED_HFU},
    {"days", ETCH_OF_PHASE, ETCH_FLOPS, ETCH_ALL, 0, ETCH_UNIT_DAYS,
     "that tokens = N take", ETCH_TIMED_DAYS},
    {"device_hours", ETCH_OF_PHASE, ETCH_FLOPS, ETCH_ALL, 0, ETCH_UNIT_HOURS,
     "of all devices for tokens = N", ETCH_TIMED_DEVICE_HOURS},
    {"cost", ETCH_OF_PHASE, ETCH_FLOPS, ETCH_ALL, 0, ETCH_UNIT_NONE,
     "of tokens = N at price = P for an hour of a device", ETCH_TIMED_COST},
    {"goodput", ETCH_OF_PHASE, ETCH_FLOPS, ETCH_ALL, 0, ETCH_UNIT_NONE,
     "what mtbf = S of a device, checkpoint = S and restart = S leave of the time", ETCH_TIMED_GOODPUT},
};
/* clang-format on */
enum { ROW_COUNT = sizeof rows / sizeof *rows };

const etch_quantity_row *etch_quantity_row_at(size_t index)
{
    return index < ROW_COUNT ? &rows[index] : NULL;
}

const etch_quantity_row *etch_quantity_row_of(const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

bool etch_quantity_of_rank(const etch_quantity_row *row)
{
    return row->timing || (row->measure != ETCH_PARAMS && row->measure != ETCH_ACTIVE &&
                           row->measure != ETCH_FLOPS && row->measure != ETCH_SAVED);
}

static bool of_collectives(const etch_quantity_row *row)
{
    return row->measure == ETCH_COMM || row->measure == ETCH_WIRE;
}

/* Of weights, buffers are asked for apart; none of them is trained. */
static bool of_parameters(const etch_quantity_row *row)
{
    return row->subject == ETCH_OF_PART && row->only != ETCH_ONLY_TRAINABLE;
}

/* ---- listings --------------------------------------------------------------------------------------- */

static void describe_row(const etch_quantity_row *row, etch_buf *out)
{
    static const char *const subjects[] = {
        [ETCH_OF_PHASE] = "(P)", [ETCH_OF_PART] = "(X)", [ETCH_OF_CALL] = "(of=X)", [ETCH_OF_CLASS] = "(C)"};
    etch_buf call = {.arena = out->arena};
    etch_buf_printf(&call, "%s%s", row->name,
                    etch_timed_of_many(row) ? "(..)"
                    : row->timing           ? "(step)"
                                            : subjects[row->subject]);
    etch_buf_printf(out, "%-18s %-9s %s\n", call.text, etch_unit_name(row->unit), row->help);
}

void etch_quantity_describe_all(etch_buf *out)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        describe_row(&rows[i], out);
    etch_buf_puts(out, "\n");
    for (size_t i = 0; etch_memory_class_at(i); i++)
        etch_buf_printf(out, "memory(%s)%*s%s\n", etch_memory_class_at(i)->name,
                        (int)(20 - strlen(etch_memory_class_at(i)->name)), "", etch_memory_class_at(i)->help);
}

/* ---- arguments -------------------------------------------------------------------------------------- */

/* Which items count. */
typedef struct filter {
    const etch_quantity_row *row;
    /* that of the row, unless the quantity is of the host's memory */
    etch_measure measure;
    /* of FLOP */
    etch_count count;
    const etch_op_roles *roles;
    /* bits 1 << etch_phase */
    unsigned phases;
    /* of backward */
    enum { BOTH_GRADIENTS, ONLY_DGRAD, ONLY_WGRAD } gradients;
    /* NULL: any */
    const char *op;
    /* those over exactly `axes` */
    bool of_axes;
    /* without axes that are bound to 1 */
    uint32_t axes;
    /* NULL: everything */
    const etch_selected *part;
    /* of memory */
    const etch_memory_class *held;
    /* as well as parameters */
    bool buffers;
    /* which part of uneven work; NULL: the last one, which has most */
    etch_expr share;
} filter;

/* Says which arguments there are instead. */
static void refuse_argument(etch_session *session, const etch_quantity *q, const etch_quantity_row *row,
                            const char *argument, etch_span span)
{
    const bool counted = row->measure == ETCH_FLOPS || row->measure == ETCH_RANK_FLOPS;
    etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_ARGUMENT, span, "'%s' has no argument '%s'",
                                 q->name, argument);
    etch_help(diag, "its arguments are of, run, plan%s%s%s%s%s%s", row->breakdowns & BY_OP ? ", op" : "",
              of_collectives(row) ? ", axis" : "", etch_quantity_of_rank(row) ? ", stage" : "",
              row->measure == ETCH_RANK_FLOPS ? ", part" : "", counted ? ", count" : "",
              of_parameters(row) ? ", buffers" : "");
}

/* The part that is asked for; NULL: all of the model. */
static const char *part_of(const etch_quantity *q, const etch_quantity_row *row)
{
    const bool is_part = row->subject == ETCH_OF_PART || row->subject == ETCH_OF_CALL;
    const char *selector = q->of ? q->of : is_part ? q->first : NULL;
    return selector && strcmp(selector, "model") != 0 ? selector : NULL;
}

static bool check_arguments(etch_session *session, const etch_quantity *q, const etch_quantity_row *row)
{
    bool fine = true;
    if (q->op && !(row->breakdowns & BY_OP)) {
        refuse_argument(session, q, row, "op", q->op_span);
        fine = false;
    }
    if (q->stage && (!etch_quantity_of_rank(row) || part_of(q, row))) {
        if (part_of(q, row))
            etch_error(session->diags, ETCH_E_QUERY_ARGUMENT, q->stage_span,
                       "one call of '%s' costs the same on every stage that has it", part_of(q, row));
        else
            refuse_argument(session, q, row, "stage", q->stage_span);
        fine = false;
    }
    if (q->part && row->measure != ETCH_RANK_FLOPS) {
        refuse_argument(session, q, row, "part", q->part_span);
        fine = false;
    }
    if (q->buffers_span.start && !of_parameters(row)) {
        refuse_argument(session, q, row, "buffers", q->buffers_span);
        fine = false;
    }
    if (q->count_words > 0 && row->measure != ETCH_FLOPS && row->measure != ETCH_RANK_FLOPS) {
        refuse_argument(session, q, row, q->counts[0].item ? q->counts[0].item : "count", q->counts[0].span);
        fine = false;
    }
    if (q->number_count > 0) {
        refuse_argument(session, q, row, q->numbers[0].name, q->numbers[0].span);
        fine = false;
    }
    if (q->axis_count > 0 && !of_collectives(row)) {
        refuse_argument(session, q, row, "axis", q->axis_span);
        fine = false;
    }
    return fine;
}

/* `traffic(host)`: in all phases, what goes between the memories of host and device. */
static bool is_of_host(const etch_quantity *q, const etch_quantity_row *row)
{
    return row->measure == ETCH_TRAFFIC && q->first && strcmp(q->first, "host") == 0;
}

static bool find_phases(etch_session *session, const etch_quantity *q, filter *f)
{
    const char *names[ETCH_PHASE_COUNT + 3];
    for (unsigned i = 0; i < ETCH_PHASE_COUNT; i++)
        names[i] = etch_phase_name((etch_phase)i);
    names[ETCH_PHASE_COUNT] = "step";
    names[ETCH_PHASE_COUNT + 1] = "dgrad";
    names[ETCH_PHASE_COUNT + 2] = "wgrad";
    if (is_of_host(q, f->row)) {
        f->measure = ETCH_HOST_TRAFFIC;
        f->phases = (1u << ETCH_PHASE_COUNT) - 1;
        return true;
    }
    if (q->first) {
        for (unsigned i = 0; i < ETCH_PHASE_COUNT; i++) {
            if (strcmp(names[i], q->first) == 0) {
                f->phases = 1u << i;
                return true;
            }
        }
        f->phases = (1u << ETCH_PHASE_COUNT) - 1;
        if (strcmp(q->first, "step") == 0)
            return true;
        f->phases = 1u << ETCH_BACKWARD;
        f->gradients = strcmp(q->first, "dgrad") == 0   ? ONLY_DGRAD
                       : strcmp(q->first, "wgrad") == 0 ? ONLY_WGRAD
                                                        : BOTH_GRADIENTS;
        if (f->gradients != BOTH_GRADIENTS)
            return true;
    }
    etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_PHASE, q->first ? q->first_span : q->span,
                                 q->first ? "'%s' is no phase of a step" : "'%s' needs a phase",
                                 q->first ? q->first : q->name);
    const char *near = q->first ? etch_nearest(q->first, names, ETCH_PHASE_COUNT + 3) : NULL;
    if (near)
        etch_help(diag, "did you mean '%s'?", near);
    etch_help(diag,
              "phases are forward, recompute, backward (dgrad and wgrad), sync, optimizer, and step: all of "
              "them");
    return false;
}

/* The names that `op =` may have: collectives for what is communicated, else the rows of the op table. */
static const char *op_name_at(const etch_quantity_row *row, uint32_t i)
{
    if (!of_collectives(row)) {
        const etch_row *named = etch_row_at(etch_table_builtin(), i);
        return named ? etch_row_name(named) : NULL;
    }
    return i + ETCH_REDUCE_SCATTER < ETCH_COLLECTIVE_COUNT
               ? etch_collective_name((etch_collective)(i + ETCH_REDUCE_SCATTER))
               : NULL;
}

static bool find_op(etch_session *session, const etch_quantity *q, const etch_quantity_row *row)
{
    ETCH_VEC(const char *) names = {0};
    const char *name;
    for (uint32_t i = 0; (name = op_name_at(row, i)) != NULL; i++) {
        if (strcmp(name, q->op) == 0)
            return true;
        ETCH_PUSH(session->arena, &names, name);
    }
    etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_OP, q->op_span, "there is no %s '%s'",
                                 of_collectives(row) ? "collective" : "op", q->op);
    const char *near = etch_nearest(q->op, names.at, names.count);
    if (near)
        etch_help(diag, "did you mean '%s'?", near);
    else if (of_collectives(row))
        etch_help(
            diag,
            "collectives are all_reduce, reduce_scatter, all_gather, all_to_all, permute; send is between "
            "stages");
    else
        etch_help(diag, "`etch help ops` lists them");
    return false;
}

/* The bits of the mesh axis, or of the product of axes, called `name`; 0 when there is none. */
static uint32_t axis_bits(const etch_plan *plan, const char *name)
{
    uint32_t bits = 0;
    for (uint32_t k = 0; k < plan->mesh.count; k++)
        if (strcmp(plan->mesh.at[k].name, name) == 0)
            return 1u << k;
    for (uint32_t i = 0; i < plan->products.count; i++)
        for (uint32_t k = 0; k < plan->products.at[i].axis_count; k++)
            if (strcmp(plan->products.at[i].name, name) == 0)
                bits |= 1u << plan->products.at[i].axes[k];
    return bits;
}

static bool find_axes(etch_session *session, const etch_quantity *q, const etch_plan *plan, uint32_t *axes)
{
    for (uint32_t i = 0; i < q->axis_count; i++) {
        const uint32_t bits = axis_bits(plan, q->axes[i]);
        *axes |= bits;
        if (bits)
            continue;
        ETCH_VEC(const char *) names = {0};
        for (uint32_t k = 0; k < plan->mesh.count; k++)
            ETCH_PUSH(session->arena, &names, plan->mesh.at[k].name);
        for (uint32_t k = 0; k < plan->products.count; k++)
            ETCH_PUSH(session->arena, &names, plan->products.at[k].name);
        etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_AXIS, q->axis_span,
                                     "plan '%s' has no mesh axis '%s'", plan->name, q->axes[i]);
        const char *near = etch_nearest(q->axes[i], names.at, names.count);
        if (near)
            etch_help(diag, "did you mean '%s'?", near);
        etch_note(diag, plan->span, "the plan is here");
        return false;
    }
    return true;
}

/* ---- selection -------------------------------------------------------------------------------------- */

static bool counts(etch_session *session, const etch_compiled *p, const filter *f, const etch_cost *cost)
{
    const bool cached = f->held && f->held->cache && cost->measure == ETCH_CACHED;
    if ((cost->measure != f->measure && !cached) || (f->part && !etch_selected_holds(f->part, cost)))
        return false;
    if (f->row->subject == ETCH_OF_PART && cost->tensor->buffer && !f->buffers)
        return false;
    if (f->held && !cached && !(f->held->held >> cost->memory & 1))
        return false;
    if (f->row->subject == ETCH_OF_PHASE && !(f->phases >> cost->phase & 1))
        return false;
    if (f->gradients != BOTH_GRADIENTS && cost->of_weights != (f->gradients == ONLY_WGRAD))
        return false;
    if ((f->row->only == ETCH_ONLY_MATMUL && !cost->matmul) ||
        (f->row->only == ETCH_ONLY_ELEMENTWISE && cost->matmul) ||
        (f->row->only == ETCH_ONLY_TRAINABLE && !cost->trainable))
        return false;
    if (f->op && strcmp(f->op, etch_cost_op_name(cost)) != 0)
        return false;
    return !f->of_axes || f->axes == etch_compiled_axes(session, p, cost->axes);
}

static void note_open_axis(etch_session *session, const char *name, etch_expr size)
{
    for (uint32_t i = 0; i < session->open_axes.count; i++)
        if (strcmp(session->open_axes.at[i].name, name) == 0 && session->open_axes.at[i].size == size)
            return;
    ETCH_PUSH(session->arena, &session->open_axes, (etch_open_axis){name, size});
}

bool etch_cost_communicates(etch_session *session, const etch_compiled *p, const etch_cost *cost)
{
    uint32_t axes = etch_compiled_axes(session, p, cost->axes), open = 0;
    for (uint32_t k = 0; k < p->plan->mesh.count; k++) {
        if (!(axes >> k & 1))
            continue;
        etch_expr size = etch_compiled_apply(session, p, p->plan->mesh.at[k].size);
        if (size && etch_is_constant(size))
            return true;
        open |= 1u << k;
    }
    for (uint32_t k = 0; k < p->plan->mesh.count; k++)
        if (open >> k & 1)
            note_open_axis(session, p->plan->mesh.at[k].name,
                           etch_compiled_apply(session, p, p->plan->mesh.at[k].size));
    return open != 0;
}

/* The amount of an item that counts, once. */
static etch_expr amount_of(etch_sym *sym, const filter *f, const etch_cost *cost)
{
    return f->row->only == ETCH_ONLY_READ      ? cost->read
           : f->row->only == ETCH_ONLY_WRITTEN ? etch_sub(sym, cost->each, cost->read)
                                               : cost->each;
}

/* Of all steps of a served model; memory is that of the last. */
static etch_expr of_all_steps(etch_sym *sym, const etch_graph *graph, const etch_cost *cost, etch_expr amount)
{
    if (!graph->steps || !amount || cost->measure == ETCH_PARAMS || cost->measure == ETCH_RANK_PARAMS)
        return amount;
    const etch_expr last = etch_sub(sym, graph->steps, etch_int(sym, 1));
    const bool held = cost->measure == ETCH_CACHED || cost->measure == ETCH_HELD;
    return held ? etch_subst(sym, amount, 1, &graph->step, &last)
                : etch_sum_over(sym, graph->step, etch_int(sym, 0), last, amount);
}

etch_expr etch_cost_total(etch_session *session, const etch_compiled *p, const etch_cost *cost,
                          etch_expr amount)
{
    return etch_compiled_apply(session, p, of_all_steps(session->sym, p->training->graph, cost, amount));
}

static void pick(etch_session *session, const etch_compiled *p, const etch_cost_list *costs, const filter *f,
                 etch_picks *out)
{
    etch_sym *sym = session->sym;
    for (uint32_t i = 0; i < costs->count; i++) {
        const etch_cost *cost = &costs->at[i];
        etch_cost counted = *cost;
        if (f->roles && !etch_count_apply(&f->count, f->roles, p->training, p->placed, &counted))
            continue;
        if (!counts(session, p, f, &counted) ||
            (of_collectives(f->row) && !etch_cost_communicates(session, p, cost)))
            continue;
        etch_expr amount = etch_mul(sym, amount_of(sym, f, &counted), cost->times);
        if (f->part)
            amount = etch_div(sym, amount, etch_selected_times(sym, f->part, cost));
        if (p->placed)
            amount = etch_at_work_share(p->placed, amount, f->share);
        amount = etch_cost_total(session, p, cost, amount);
        if (amount && etch_is_zero(amount))
            continue;
        ETCH_PUSH(session->arena, out, (etch_pick){cost, amount});
    }
}

etch_expr etch_picks_sum(etch_session *session, const etch_picks *picks)
{
    etch_expr *amounts = ETCH_NEW_ARRAY(session->arena, picks->count, etch_expr);
    for (uint32_t i = 0; i < picks->count; i++)
        amounts[i] = picks->at[i].amount;
    return etch_sum(session->sym, picks->count, amounts);
}

static void report_calls(etch_session *session, const char *selector, etch_span span,
                         const etch_selected *first, etch_expr first_value, const etch_selected *other,
                         etch_expr other_value)
{
    const bool iterations = first->body && other->body && first->body->loop == other->body->loop;
    etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_CALLS, span,
                                 iterations ? "the iterations of loop '%s' differ in cost"
                                            : "'%s' happens in several places, which differ in cost",
                                 selector);
    if (iterations) {
        etch_note(diag, etch_selected_span(first), "one costs %s, another %s",
                  etch_expr_text(session->sym, first_value), etch_expr_text(session->sym, other_value));
        etch_help(diag, "ask for a module or tag in them");
        return;
    }
    etch_note(diag, etch_selected_span(first), "this one costs %s",
              etch_expr_text(session->sym, first_value));
    etch_note(diag, etch_selected_span(other), "this one costs %s",
              etch_expr_text(session->sym, other_value));
    etch_help(diag, "say which one by the module around it, as `--by module` shows them: caller.%s",
              selector);
}

/* The items of the first part of that name; all others must cost the same. */
static bool pick_part(etch_session *session, const etch_compiled *p, const etch_cost_list *costs, filter *f,
                      const char *selector, etch_span span, etch_picks *out)
{
    etch_selection parts = {0};
    if (!etch_selection_find(session, p, selector, span, &parts))
        return false;
    f->part = &parts.at[0];
    pick(session, p, costs, f, out);
    etch_expr value = etch_picks_sum(session, out);
    for (uint32_t i = 1; i < parts.count; i++) {
        etch_picks others = {0};
        f->part = &parts.at[i];
        pick(session, p, costs, f, &others);
        etch_expr other = etch_picks_sum(session, &others);
        if (value != other && etch_equal(session->sym, value, other, NULL) != ETCH_YES) {
            report_calls(session, selector, span, &parts.at[0], value, &parts.at[i], other);
            return false;
        }
    }
    return true;
}

static bool is_trained(etch_session *session, const etch_compiled *p, const etch_quantity *q, const filter *f)
{
    const bool of_phase = f->row->subject == ETCH_OF_PHASE, forward = f->phases >> ETCH_FORWARD & 1;
    const bool runs = of_phase ? f->phases == 1u << ETCH_FORWARD || (forward && p->model->serves)
                               : f->row->measure != ETCH_SAVED && f->row->measure != ETCH_RANK_SAVED;
    if (runs || p->model->trains)
        return true;
    const char *asked = of_phase ? q->first : q->name, *hint = of_phase ? "ask for 'forward', or " : "";
    const etch_span span = of_phase ? q->first_span : q->span;
    if (p->model->serves) {
        etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_TRAIN, span,
                                     "'%s' needs a train block: an infer block runs forward only", asked);
        etch_help(diag, "%sname a train block: run = NAME", hint);
        return false;
    }
    etch_diag *diag =
        etch_error(session->diags, ETCH_E_QUERY_TRAIN, span,
                   "'%s' needs a train block: model '%s' is not trained", asked, p->model->name);
    etch_help(diag, "%sadd `train { model = %s, optimizer = adamw }` to the spec", hint, p->model->name);
    return false;
}

/* `part = first`, `last` or a number. False after a reported error. */
static bool find_share(etch_session *session, etch_compiled *p, const etch_quantity *q, etch_expr *share)
{
    etch_sym *sym = session->sym;
    if (!etch_compiled_place(session, p))
        return false;
    *share = strcmp(q->part, "first") == 0 ? etch_int(sym, 0) : etch_number(sym, q->part, strlen(q->part));
    if (strcmp(q->part, "last") == 0)
        return true;
    const etch_expr parts = etch_compiled_apply(session, p, etch_work_share_count(p->placed));
    if (*share && etch_is_integer_constant(*share) &&
        !(parts && etch_is_constant(parts) && etch_constant_compare(sym, *share, parts) >= 0))
        return true;
    etch_diag *diag =
        etch_error(session->diags, ETCH_E_QUERY_ARGUMENT, q->part_span, "there is no part '%s'", q->part);
    etch_help(diag, "parts are first, last, and numbers from 0 to before %s",
              parts ? etch_expr_text(sym, parts) : "their number");
    return false;
}

/* Makes the convention ready. False after a reported error. */
static bool find_count(etch_session *session, etch_compiled *p, const etch_quantity *q, filter *f)
{
    static const etch_count as_executed = {0};
    if (!etch_quantity_count(session, q, &f->count))
        return false;
    if (memcmp(f->count.at, as_executed.at, sizeof f->count.at) == 0)
        return true;
    f->roles = etch_compiled_op_roles(session, p);
    if (etch_count_fits(&f->count, f->roles))
        return true;
    etch_diag *diag =
        etch_error(session->diags, ETCH_E_QUERY_COUNT, q->span,
                   "model '%s' has no attention that says which dim is the sequence", p->model->name);
    etch_help(diag, "its logits cannot be those of the last token: leave out logits=last");
    return false;
}

/* The items of one stage, or of the graph. */
static bool pick_share(etch_session *session, etch_compiled *p, const etch_cost_list *costs,
                       const etch_quantity *q, filter *f, const char *label, etch_shares *out)
{
    const char *selector = part_of(q, f->row);
    const etch_span span = q->of ? q->of_span : q->first_span;
    etch_share share = {.label = label};
    if (!selector)
        pick(session, p, costs, f, &share.picks);
    else if (!pick_part(session, p, costs, f, selector, span, &share.picks))
        return false;
    share.sum = etch_picks_sum(session, &share.picks);
    ETCH_PUSH(session->arena, out, share);
    return true;
}

etch_expr etch_held_amount(void *data, etch_expr amount)
{
    const etch_held_by *h = data;
    const etch_cost held = {.measure = ETCH_HELD};
    return etch_cost_total(h->session, h->p, &held, etch_at_work_share(h->p->placed, amount, NULL));
}

/* The items of one rank of a stage that the quantity may select from. */
static const etch_cost_list *items_of(etch_session *session, etch_compiled *p, const filter *f,
                                      const etch_stage_item *stage)
{
    const etch_measure measure = f->measure;
    const bool held = measure == ETCH_RANK_SAVED || measure == ETCH_RANK_PARAMS || measure == ETCH_HELD;
    if (!held)
        return etch_compiled_stage_costs(session, p, stage ? stage->view : NULL, 1u << measure);
    etch_held_by by = {session, p};
    const etch_valuation values = {etch_held_amount, &by};
    return etch_compiled_stage_memory(session, p, stage,
                                      f->held && f->held->held >> ETCH_MEMORY_WORKSPACE & 1, &values);
}

/* One call of a part costs the same on whatever stage it is. */
static bool pick_stages(etch_session *session, etch_compiled *p, const etch_quantity *q, filter *f,
                        etch_shares *out)
{
    etch_stage_list stages = {0};
    if (part_of(q, f->row))
        return pick_share(session, p, items_of(session, p, f, NULL), q, f, "", out);
    const char *wanted = q->stage ? q->stage : session->options.stage;
    if (!etch_session_stages(session, p, wanted, q->stage ? q->stage_span : q->span, &stages))
        return false;
    const bool held = f->row->measure == ETCH_HELD; /* differs by the number of the stage */
    for (uint32_t i = 0; i < stages.count; i++) {
        uint32_t same = 0;
        while (same < i && (held || stages.at[same].view != stages.at[i].view))
            same++;
        if (same < i) {
            etch_share share = out->at[same];
            share.label = stages.at[i].label;
            ETCH_PUSH(session->arena, out, share);
            continue;
        }
        const etch_cost_list *costs = items_of(session, p, f, &stages.at[i]);
        if (!pick_share(session, p, costs, q, f, stages.at[i].label, out))
            return false;
    }
    return true;
}

etch_compiled *etch_quantity_pick(etch_session *session, const etch_quantity *q, const etch_quantity_row *row,
                                  etch_shares *out)
{
    filter f = {.row = row, .measure = row->measure, .op = q->op, .buffers = q->buffers};
    if (!check_arguments(session, q, row) ||
        (row->subject == ETCH_OF_PHASE && !find_phases(session, q, &f)) ||
        (row->subject == ETCH_OF_CLASS && !(f.held = etch_memory_class_of(session, q))) ||
        (q->op && !find_op(session, q, row)))
        return NULL;
    if (row->subject == ETCH_OF_PART && !q->first) {
        etch_error(session->diags, ETCH_E_QUERY_PART, q->span, "'%s' needs a model or a module: %s(model)",
                   q->name, q->name);
        return NULL;
    }
    etch_compiled *p = etch_compiled_get(session, q->run, q->plan, etch_quantity_of_rank(row),
                                         q->plan ? q->plan_span : q->span);
    session->latest = p;
    if (!p || !is_trained(session, p, q, &f) ||
        !(etch_quantity_of_rank(row) ? etch_compiled_fit : etch_compiled_allow)(session, p) ||
        !find_count(session, p, q, &f) || (q->axis_count > 0 && !find_axes(session, q, p->plan, &f.axes)))
        return NULL;
    if (q->part && !find_share(session, p, q, &f.share))
        return NULL;
    f.of_axes = q->axis_count > 0;
    if (f.of_axes)
        f.axes = etch_compiled_axes(session, p, f.axes);
    const bool fine = etch_quantity_of_rank(row)
                          ? pick_stages(session, p, q, &f, out)
                          : pick_share(session, p, etch_compiled_graph_costs(session, p), q, &f, "", out);
    return fine ? p : NULL;
}

/* ---- the heaviest -------------------------------------------------------------------------------------- */

/* The sums of stages without those that a neighbour's is never less than: along a pipeline they fall, or
 * rise, over long intervals, and all pairs of many stages would be too many proofs. */
static uint32_t drop_neighbours(etch_sym *sym, const etch_shares *shares, etch_expr *out)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < shares->count; i++) {
        etch_expr sum = shares->at[i].sum;
        if (kept > 0 && etch_at_least(sym, out[kept - 1], sum, NULL) == ETCH_YES)
            continue;
        if (kept > 0 && etch_at_least(sym, sum, out[kept - 1], NULL) == ETCH_YES)
            kept--;
        out[kept++] = sum;
    }
    return kept;
}

etch_expr etch_shares_most(etch_session *session, const etch_shares *shares, uint32_t *which)
{
    enum { MANY_STAGES = 4 };
    etch_expr *sums = ETCH_NEW_ARRAY(session->arena, shares->count, etch_expr);
    uint32_t count = shares->count;
    for (uint32_t i = 0; i < count; i++)
        sums[i] = shares->at[i].sum;
    if (count > MANY_STAGES)
        count = drop_neighbours(session->sym, shares, sums);
    etch_expr most = sums[0];
    for (uint32_t i = 1; i < count; i++)
        most = etch_max(session->sym, most, sums[i]);
    *which = UINT32_MAX;
    for (uint32_t i = 0; i < shares->count && *which == UINT32_MAX; i++)
        if (shares->at[i].sum == most)
            *which = i;
    return most;
}
