/* The graph of a model as a report: its ops in the order of the program, what is derived from them, and what
 * the backward pass keeps. */
#include "session/view/graph_int.h"

#include <string.h>

static size_t number_all(size_t *at, size_t count)
{
    size_t next = 0;
    for (size_t i = 0; i < count; i++)
        if (at[i] != ETCH_VIEW_NONE)
            at[i] = next++;
    return next;
}

/* ---- numbers and formulas --------------------------------------------------------------------------- */

/* Of a served model that runs in several steps the first one is shown. */
const char *etch_view_text(const etch_viewing *v, etch_expr value)
{
    const etch_graph *graph = v->p->training->graph;
    const etch_expr first = etch_int(v->sym, 0);
    if (graph->step)
        value = etch_subst(v->sym, value, 1, &graph->step, &first);
    return etch_expr_text(v->sym, etch_compiled_apply(v->session, v->p, value));
}

static etch_expr size_inside(const void *data, const etch_dim *dim)
{
    const etch_viewing *v = data;
    return etch_training_size(v->p->training, dim);
}

/* Has a microbatch a part of the dim only: of the batch, or of slots that its tokens fill? */
static bool is_divided(const etch_viewing *v, const etch_dim *dim)
{
    const etch_dim *batch = v->p->training->train.batch;
    return batch && etch_dim_is_packed_from(dim, batch);
}

etch_expr etch_view_size_by_dims(const void *data, const etch_dim *dim)
{
    const etch_viewing *v = data;
    const etch_expr var = v->dim_vars[dim->id]; /* none for keys that only their last are shown of */
    const etch_expr size = var ? var : dim->size;
    return is_divided(v, dim) ? etch_div(v->sym, size, v->dim_micro) : size;
}

static etch_expr micro_of(const etch_viewing *v)
{
    const etch_expr micro = v->p->training->train.micro;
    return micro ? micro : etch_int(v->sym, 1);
}

static bool has_microbatches(const etch_viewing *v)
{
    return etch_compiled_apply(v->session, v->p, micro_of(v)) != etch_int(v->sym, 1);
}

static etch_expr flop_of(const etch_viewing *v, const etch_op *op)
{
    return etch_mul(v->sym, micro_of(v), etch_op_flop(v->sym, op, size_inside, v));
}

/* "2*B*(S + 1)" */
const char *etch_view_dim_text(const etch_viewing *v, etch_expr value)
{
    etch_buf out = {.arena = v->arena};
    etch_expr_write(v->sym, value, ETCH_PLAIN, ETCH_FACTORED, &out);
    return out.text;
}

static const char *flop_by_dims(const etch_viewing *v, const etch_op *op)
{
    const etch_expr once = etch_op_flop(v->sym, op, etch_view_size_by_dims, v);
    return etch_view_dim_text(v, etch_mul(v->sym, v->dim_micro, once));
}

static etch_expr bytes_of(const etch_viewing *v, const etch_tensor *t)
{
    const etch_expr each = etch_int(v->sym, etch_dtype_bytes(t->dtype));
    return etch_mul(v->sym, each, etch_elements(v->sym, t, size_inside, v));
}

static const char *bytes_by_dims(const etch_viewing *v, const etch_tensor *t)
{
    const etch_expr each = etch_int(v->sym, etch_dtype_bytes(t->dtype));
    return etch_view_dim_text(v, etch_mul(v->sym, each, etch_elements(v->sym, t, etch_view_size_by_dims, v)));
}

static etch_expr runs_of(const etch_viewing *v, size_t loop)
{
    return loop == ETCH_VIEW_NONE ? etch_int(v->sym, 1) : v->loops.at[loop].runs;
}

/* ---- the parts of the report ------------------------------------------------------------------------ */

static const char *dim_name(const etch_viewing *v, uint32_t id)
{
    const char *name = v->graph->dims.at[id]->name;
    unsigned same = strcmp(name, "micro") == 0 ? 2 : 1; /* that is the number of microbatches */
    for (uint32_t i = 0; i < id; i++)
        same += v->dim_at[i] != ETCH_VIEW_NONE && strcmp(v->graph->dims.at[i]->name, name) == 0;
    return same > 1 ? etch_text(v->arena, "%s#%u", name, same) : name;
}

static void add_dims(etch_viewing *v)
{
    etch_graph_report *r = v->report;
    r->dim_count = number_all(v->dim_at, v->graph->dims.count);
    etch_view_dim *dims = ETCH_NEW_ARRAY(v->arena, r->dim_count, etch_view_dim);
    v->dim_vars = ETCH_NEW_ARRAY(v->arena, v->graph->dims.count, etch_expr);
    for (uint32_t i = 0; i < v->graph->dims.count; i++) {
        const etch_dim *dim = v->graph->dims.at[i];
        if (v->dim_at[i] == ETCH_VIEW_NONE)
            continue;
        const bool divided = is_divided(v, dim) && has_microbatches(v);
        dims[v->dim_at[i]] =
            (etch_view_dim){dim_name(v, i), etch_view_text(v, dim->size), dim->average_sized, divided};
        v->dim_vars[i] = etch_var(v->sym, dims[v->dim_at[i]].name);
    }
    v->dim_micro = has_microbatches(v) ? etch_var(v->sym, "micro") : etch_int(v->sym, 1);
    r->dims = dims;
}

static const size_t *indices_of(const etch_viewing *v, etch_tensor *const *tensors, uint32_t count)
{
    size_t *list = ETCH_NEW_ARRAY(v->arena, count, size_t);
    for (uint32_t i = 0; i < count; i++)
        list[i] = v->tensor_at[tensors[i]->id];
    return list;
}

static const char *constant_of(const etch_viewing *v, const etch_tensor *t)
{
    if (!t->constant)
        return NULL;
    return t->constant->number ? etch_view_text(v, t->constant->number) : "iota";
}

static etch_view_tensor view_of_tensor(const etch_viewing *v, const etch_tensor *t)
{
    size_t *dims = ETCH_NEW_ARRAY(v->arena, t->rank, size_t);
    for (uint32_t i = 0; i < t->rank; i++)
        dims[i] = v->dim_at[t->dims[i]->id];
    return (etch_view_tensor){
        .name = v->names.tensors[t->id],
        .kind = t->kind,
        .dtype = t->dtype,
        .dims = dims,
        .dim_count = t->rank,
        .bytes = etch_view_text(v, bytes_of(v, t)),
        .module = v->scope_at[etch_view_naming_scope(v->graph, t)->id],
        .loop = etch_view_loop_at(v, t->region),
        .of = t->of ? v->tensor_at[t->of->id] : ETCH_VIEW_NONE,
        .added_to = t->adds_to ? v->tensor_at[t->adds_to->id] : ETCH_VIEW_NONE,
        .frozen = t->frozen,
        .passed = t->producer && etch_view_passes(t->producer),
        .tags = t->of ? NULL : t->tags,
        .tag_count = t->of ? 0 : t->tag_count,
        .location = etch_locate(v->session, t->span),
        .constant = constant_of(v, t),
        .buffer = t->buffer,
    };
}

static void add_tensors(etch_viewing *v)
{
    etch_graph_report *r = v->report;
    r->tensor_count = number_all(v->tensor_at, v->graph->tensors.count);
    etch_view_tensor *tensors = ETCH_NEW_ARRAY(v->arena, r->tensor_count, etch_view_tensor);
    for (uint32_t i = 0; i < v->graph->tensors.count; i++)
        if (v->tensor_at[i] != ETCH_VIEW_NONE)
            tensors[v->tensor_at[i]] = view_of_tensor(v, v->graph->tensors.at[i]);
    r->tensors = tensors;
}

/* "S", "(A, B)" */
static void put_dims(const etch_viewing *v, etch_dim *const *dims, uint32_t count, etch_buf *out)
{
    etch_buf_puts(out, count > 1 ? "(" : "");
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(out, "%s%s", i ? ", " : "", v->report->dims[v->dim_at[dims[i]->id]].name);
    etch_buf_puts(out, count > 1 ? ")" : "");
}

static void put_keyword(const etch_viewing *v, const etch_keyword_info *info, const etch_keyword_field *field,
                        etch_buf *out)
{
    etch_buf_puts(out, out->length ? ", " : "");
    if (info->name)
        etch_buf_printf(out, "%s = ", info->name);
    if (field->dims)
        put_dims(v, field->dims->at, field->dims->count, out);
    else if (field->dtype)
        etch_buf_puts(out, etch_dtype_name((etch_dtype)(*field->dtype - 1)));
    else
        etch_buf_puts(out, field->flag ? "true" : etch_view_text(v, *field->number));
}

static bool is_over(const etch_attrs *a, const etch_dim *dim)
{
    for (uint32_t i = 0; i < a->over.count; i++)
        if (a->over.at[i] == dim)
            return true;
    return false;
}

/* Where `over` holds parts of a dim and the whole of it, leaves what a spec would say: the whole that is
 * split, or the parts that are joined. */
static void say_parts(const etch_viewing *v, const etch_op *op, etch_attrs *said)
{
    ETCH_VEC(etch_dim *) parts = {0};
    for (uint32_t i = 0; i < said->to.count; i++) {
        if (!is_over(said, said->to.at[i]) || (said->from.at[i] && !is_over(said, said->from.at[i])))
            return;
        if (said->from.at[i])
            ETCH_PUSH(v->arena, &parts, said->from.at[i]);
    }
    if (said->to.count == 0)
        return;
    const bool split = etch_row_is_several(op->row);
    said->over = split ? (etch_dim_view){said->to.at, 1} : ETCH_DIMS(parts);
    said->to.count = 0;
}

static const char *arguments_of(const etch_viewing *v, const etch_op *op)
{
    etch_attrs said = op->attrs;
    say_parts(v, op, &said);
    etch_buf out = {.arena = v->arena};
    etch_buf_puts(&out, "");
    if (said.over.count == 0) { /* else a keyword says what takes the place of `over` */
        etch_buf_puts(&out, etch_renaming_text(v->arena, &said));
        said.to.count = 0;
    }
    const unsigned takes = etch_row_takes(op->forward ? op->forward->row : op->row);
    const etch_keyword_info *info;
    for (uint32_t i = 0; (info = etch_keyword_at(i)) != NULL; i++) {
        const etch_keyword_field field = etch_keyword_field_of(info, &said);
        if ((takes & info->bit) && etch_keyword_is_said(&field))
            put_keyword(v, info, &field, &out);
    }
    return out.text;
}

static etch_view_op view_of_op(const etch_viewing *v, const etch_shown_op *shown)
{
    const etch_op *op = shown->op;
    return (etch_view_op){
        .name = etch_row_name(op->row),
        .arguments = arguments_of(v, op),
        .phase = op->phase,
        .ins = indices_of(v, op->ins, op->in_count),
        .outs = indices_of(v, op->outs, op->out_count),
        .in_count = op->in_count,
        .out_count = op->out_count,
        .module = v->scope_at[etch_view_scope(v, op->scope)->id],
        .loop = shown->loop,
        .forward = op->forward ? v->op_at[op->forward->id] : ETCH_VIEW_NONE,
        .derives = op->forward ? etch_row_name(op->forward->row) : NULL,
        .flop = etch_view_text(v, flop_of(v, op)),
        .flop_by_dims = flop_by_dims(v, op),
        .runs = etch_view_text(v, runs_of(v, shown->loop)),
        .passes = etch_view_passes(op),
        .location = etch_locate(v->session, op->span),
    };
}

static void add_ops(etch_viewing *v)
{
    etch_graph_report *r = v->report;
    r->op_count = v->ops.count;
    etch_view_op *ops = ETCH_NEW_ARRAY(v->arena, v->ops.count, etch_view_op);
    for (uint32_t i = 0; i < v->ops.count; i++)
        ops[i] = view_of_op(v, &v->ops.at[i]);
    r->ops = ops;
}

static size_t index_of(const etch_viewing *v, const etch_tensor *tensor)
{
    return tensor ? v->tensor_at[tensor->id] : ETCH_VIEW_NONE;
}

/* Which iterations are of the class: "0 to 17 where layer % 6 is 4, 5". */
static void put_segment(const etch_viewing *v, const etch_region *body, const etch_segment *segment,
                        etch_buf *out)
{
    const uint32_t period = body->loop->pattern->period;
    uint32_t members = 0, said = 0;
    for (uint32_t r = 0; r < period; r++)
        members += segment->class_of[r] == body->index;
    if (members == 0 || etch_at_least(v->sym, segment->first, segment->end, NULL) == ETCH_YES)
        return;
    const etch_expr last = etch_sub(v->sym, segment->end, etch_int(v->sym, 1));
    etch_buf_printf(out, "%s%s", out->length ? "; " : "", etch_view_text(v, segment->first));
    if (segment->first != last)
        etch_buf_printf(out, " to %s", etch_view_text(v, last));
    if (members == period)
        return;
    etch_buf_printf(out, " where %s %% %u is", body->loop->name, (unsigned)period);
    for (uint32_t r = 0; r < period; r++)
        if (segment->class_of[r] == body->index)
            etch_buf_printf(out, "%s %u", said++ ? "," : "", (unsigned)r);
}

static const char *iterations_of(const etch_viewing *v, const etch_region *body)
{
    const etch_pattern *pattern = body->loop->pattern;
    etch_buf out = {.arena = v->arena};
    etch_buf_puts(&out, "");
    for (uint32_t i = 0; pattern && i < pattern->segments.count; i++)
        put_segment(v, body, &pattern->segments.at[i], &out);
    return pattern ? out.text : NULL;
}

static etch_view_loop view_of_loop(const etch_viewing *v, const etch_shown_loop *shown)
{
    const etch_region *body = shown->body;
    const etch_loop *loop = body->loop, *undone = loop->forward;
    etch_view_carry *carries = ETCH_NEW_ARRAY(v->arena, body->carries.count, etch_view_carry);
    for (uint32_t i = 0; i < body->carries.count; i++) {
        const etch_carry *c = &body->carries.at[i];
        carries[i] = (etch_view_carry){index_of(v, c->init), index_of(v, c->in), index_of(v, c->out),
                                       index_of(v, c->result)};
    }
    return (etch_view_loop){.name = loop->name,
                            .count = etch_view_text(v, body->count),
                            .total = etch_view_text(v, loop->count),
                            .number = loop->id,
                            .iterations = iterations_of(v, body),
                            .module = v->scope_at[etch_view_loop_scope(v, shown)->id],
                            .parent = shown->parent,
                            .undoes = undone ? etch_view_loop_at(v, undone->bodies.at[body->index])
                                             : ETCH_VIEW_NONE,
                            .carries = carries,
                            .carry_count = body->carries.count,
                            .location = etch_locate(v->session, loop->span)};
}

static void add_loops(etch_viewing *v)
{
    etch_view_loop *loops = ETCH_NEW_ARRAY(v->arena, v->loops.count, etch_view_loop);
    for (uint32_t i = 0; i < v->loops.count; i++)
        loops[i] = view_of_loop(v, &v->loops.at[i]);
    v->report->loop_count = v->loops.count;
    v->report->loops = loops;
}

/* ---- modules ---------------------------------------------------------------------------------------- */

/* "block.norm#2" */
static const char *path_of(const etch_viewing *v, const etch_scope *scope)
{
    const char *path = etch_scope_path(v->arena, scope, v->names.calls);
    return scope->parent ? path + strlen(v->graph->scopes.at[0]->module) + 1 : path;
}

typedef ETCH_VEC(size_t) index_list;

typedef struct call {
    index_list arguments, results;
    /* where it stands */
    const etch_region *region;
} call;

/* Every value that goes into a call or comes out of it passes an op of its own. */
static call *find_calls(const etch_viewing *v)
{
    call *calls = ETCH_NEW_ARRAY(v->arena, v->graph->scopes.count, call);
    for (uint32_t i = 0; i < v->graph->tensors.count; i++) {
        const etch_tensor *t = v->graph->tensors.at[i];
        const etch_op *op = t ? t->producer : NULL;
        if (!op || op->edge == ETCH_NO_EDGE || op->phase != ETCH_FORWARD)
            continue;
        call *c = &calls[op->scope->id];
        c->region = t->region;
        if (v->op_at[op->id] == ETCH_VIEW_NONE)
            continue;
        if (op->edge == ETCH_ENTER)
            ETCH_PUSH(v->arena, &c->arguments, index_of(v, op->ins[0]));
        else
            ETCH_PUSH(v->arena, &c->results, index_of(v, t));
    }
    return calls;
}

static void add_modules(etch_viewing *v)
{
    const call *calls = find_calls(v);
    etch_graph_report *r = v->report;
    etch_view_module *modules = ETCH_NEW_ARRAY(v->arena, r->module_count, etch_view_module);
    for (uint32_t i = 0; i < v->graph->scopes.count; i++) {
        const etch_scope *scope = v->graph->scopes.at[i];
        if (v->scope_at[i] == ETCH_VIEW_NONE)
            continue;
        modules[v->scope_at[i]] =
            (etch_view_module){.name = v->names.calls[i],
                               .path = path_of(v, scope),
                               .parent = scope->parent ? v->scope_at[scope->parent->id] : ETCH_VIEW_NONE,
                               .loop = etch_view_loop_at(v, calls[i].region),
                               .arguments = calls[i].arguments.at,
                               .results = calls[i].results.at,
                               .argument_count = calls[i].arguments.count,
                               .result_count = calls[i].results.count,
                               .location = etch_locate(v->session, scope->span)};
    }
    r->modules = modules;
}

/* ---- what is kept, and sums ------------------------------------------------------------------------- */

static etch_view_saved view_of_saved(const etch_viewing *v, const etch_shown_saved *kept)
{
    const etch_op *reader = kept->reader;
    const etch_tensor *t = kept->tensor;
    return (etch_view_saved){.tensor = v->tensor_at[t->id],
                             .bytes = etch_view_text(v, etch_mul(v->sym, kept->times, bytes_of(v, t))),
                             .bytes_by_dims = bytes_by_dims(v, t),
                             .runs = etch_view_text(v, kept->times),
                             .reader = v->op_at[reader->id],
                             .reader_name = etch_row_name(reader->row),
                             .reader_phase = reader->phase,
                             .reader_derives = reader->forward ? etch_row_name(reader->forward->row) : NULL,
                             .reader_location = etch_locate(v->session, reader->span)};
}

static void add_saved(etch_viewing *v)
{
    etch_view_saved *saved = ETCH_NEW_ARRAY(v->arena, v->saved.count, etch_view_saved);
    for (uint32_t i = 0; i < v->saved.count; i++)
        saved[i] = view_of_saved(v, &v->saved.at[i]);
    v->report->saved = saved;
    v->report->saved_count = v->saved.count;
}

static void add_totals(etch_viewing *v)
{
    ETCH_VEC(etch_view_total) list = {0};
    for (unsigned phase = 0; phase < ETCH_PHASE_COUNT; phase++) {
        etch_expr sum = etch_int(v->sym, 0);
        bool any = false;
        for (uint32_t i = 0; i < v->ops.count; i++) {
            const etch_shown_op *shown = &v->ops.at[i];
            if (shown->op->phase != (etch_phase)phase)
                continue;
            any = true;
            etch_expr flop = etch_mul(v->sym, flop_of(v, shown->op), runs_of(v, shown->loop));
            if (shown->part)
                flop = etch_div(v->sym, flop, shown->part->around);
            sum = etch_add(v->sym, sum, flop);
        }
        if (any)
            ETCH_PUSH(v->arena, &list, (etch_view_total){(etch_phase)phase, etch_view_text(v, sum)});
    }
    v->report->totals = list.at;
    v->report->total_count = list.count;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

/* Of several calls the first one; of several loops the first one, all classes of its iterations; all
 * tensors. */
static void keep_first(etch_viewing *v)
{
    const etch_region *first = v->parts.at[0].body, *last = first;
    uint32_t kept = 1;
    if (v->parts.at[0].tensor)
        return;
    for (uint32_t i = 1; i < v->parts.count; i++) {
        const etch_region *body = v->parts.at[i].body;
        if (body && body->loop == first->loop)
            kept++;
        v->report->calls += !body || body->loop != last->loop;
        last = body;
    }
    v->parts.count = kept;
}

/* The part that is asked for: of several calls of a module the first. False after a reported error. */
static bool find_part(etch_viewing *v)
{
    v->report->calls = 1;
    if (v->selector && strcmp(v->selector, "model") == 0)
        v->selector = NULL;
    if (!v->selector)
        return true;
    if (!etch_selection_find(v->session, v->p, v->selector, (etch_span){0, 0}, &v->parts))
        return false;
    v->report->part = etch_copy_text(v->arena, v->selector, strlen(v->selector));
    keep_first(v);
    return true;
}

bool etch_view_begin(etch_viewing *v, bool needs_plan)
{
    v->session->of_one_case = true;
    etch_session *session = v->session;
    v->arena = session->arena;
    v->sym = session->sym;
    v->p = etch_compiled_get(session, NULL, NULL, needs_plan, (etch_span){0, 0});
    if (!v->p || !(needs_plan ? etch_compiled_fit : etch_compiled_allow)(session, v->p))
        return false;
    v->graph = v->p->training->graph;
    v->report = ETCH_NEW(v->arena, etch_graph_report);
    *v->report = (etch_graph_report){.model = v->p->model->name,
                                     .config = etch_spec_config(session->spec, session->options.config),
                                     .trains = v->p->model->trains};
    if (!find_part(v))
        return false;
    v->names = etch_view_name_graph(v->arena, v->p->training);
    etch_view_find(v);
    return true;
}

void etch_view_finish(etch_viewing *v)
{
    v->report->module_count = number_all(v->scope_at, v->graph->scopes.count);
    v->report->micro = etch_view_text(v, micro_of(v));
    add_dims(v);
    add_tensors(v);
    add_ops(v);
    add_loops(v);
    add_modules(v);
    add_saved(v);
    add_totals(v);
    etch_remark_config_defaults(v->session);
}

static etch_status view(void *data)
{
    etch_viewing *v = data;
    if (!etch_view_begin(v, false))
        return ETCH_EINPUT;
    etch_view_finish(v);
    return ETCH_OK;
}

etch_status etch_session_graph(etch_session *session, const etch_view_options *options,
                               const etch_graph_report **report)
{
    etch_view_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    etch_viewing v = {.session = session, .selector = own.part};
    const etch_status status =
        unfit ? etch_session_refuse(session, unfit) : etch_session_run(session, view, &v);
    *report = status == ETCH_OK ? v.report : NULL;
    return status;
}
