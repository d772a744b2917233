#include "exec_spec.h"

#include "exec_env.h"

#include "graph/ir/row.h"

#include <check.h>
#include <string.h>

typedef struct writer {
    const exec_model *m;
    const etch_graph *graph;
    etch_arena *arena;
    const char *
        *called; /* by tensor id: what statements call it where that is not its name; NULL: its name */
    const char **modules; /* by scope id */
    bool *written;        /* by tensor id: weights that are declared */
    etch_buf definitions; /* of the modules that are done */
} writer;

/* Where statements are being written. */
typedef struct place {
    etch_buf *out;
    const etch_scope *scope;
    uint32_t depth;
} place;

/* ---- names ------------------------------------------------------------------------------------------ */

static bool is_op_of(const etch_item *item, etch_use use)
{
    return item->op && item->op->row->use == use;
}

typedef ETCH_VEC(const char *) name_list;

static bool is_listed(const name_list *names, const char *name)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (strcmp(names->at[i], name) == 0)
            return true;
    return false;
}

static void name_one(exec_model *m, name_list *taken, etch_tensor *tensor)
{
    if (is_listed(taken, tensor->name) || etch_row_named(m->graph->table, tensor->name))
        tensor->name = etch_text(m->arena, "%s_%u", tensor->name, tensor->id);
    ETCH_PUSH(m->arena, taken, tensor->name);
}

/* What one call makes of several ops has a name at its end only. */
static uint32_t parts_of_call(const etch_item *item)
{
    return is_op_of(item, ETCH_USE_LOAD) ? 4 : 1;
}

/* How many a statement takes: all, or the first without what is kept for backward only. */
static uint32_t results_of(const etch_op *op)
{
    return etch_row_is_several(op->row) ? op->out_count : 1;
}

static void name_region(exec_model *m, name_list *taken, etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_loop *loop = region->items.at[i].loop;
        if (!loop) {
            i += parts_of_call(&region->items.at[i]) - 1;
            const etch_op *op = region->items.at[i].op;
            for (uint32_t r = 0; r < results_of(op); r++)
                name_one(m, taken, op->outs[r]);
            continue;
        }
        for (uint32_t c = 0; c < etch_loop_carries(loop)->count; c++) {
            etch_tensor *result = etch_loop_carries(loop)->at[c].result;
            name_one(m, taken, result);
            for (uint32_t k = 0; k < loop->bodies.count; k++)
                loop->bodies.at[k]->carries.at[c].in->name = result->name;
        }
        for (uint32_t k = 0; k < loop->bodies.count; k++)
            name_region(m, taken, loop->bodies.at[k]);
    }
}

void exec_spec_name(exec_model *m)
{
    const etch_graph *graph = m->graph;
    name_list taken = {0};
    for (uint32_t i = 0; i < graph->scopes.count; i++)
        ETCH_PUSH(m->arena, &taken, graph->scopes.at[i]->module);
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        if (graph->tensors.at[i]->kind == ETCH_INPUT || graph->tensors.at[i]->kind == ETCH_WEIGHT ||
            graph->tensors.at[i]->constant)
            name_one(m, &taken, graph->tensors.at[i]);
    name_region(m, &taken, graph->forward);
}

static const char *call_of(const writer *w, const etch_tensor *tensor)
{
    return w->called[tensor->id] ? w->called[tensor->id] : tensor->name;
}

static uint32_t calls_of_module(const etch_graph *graph, const char *module, uint32_t before)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < before; i++)
        count += strcmp(graph->scopes.at[i]->module, module) == 0;
    return count;
}

static void name_modules(writer *w)
{
    const uint32_t count = w->graph->scopes.count;
    w->modules = ETCH_NEW_ARRAY(w->arena, count, const char *);
    for (uint32_t i = 1; i < count; i++) {
        const char *module = w->graph->scopes.at[i]->module;
        const uint32_t number = calls_of_module(w->graph, module, i);
        w->modules[i] = calls_of_module(w->graph, module, count) == 1
                            ? module
                            : etch_text(w->arena, "%s_%u", module, number + 1);
    }
}

/* ---- words ------------------------------------------------------------------------------------------ */

static void indent(const place *p)
{
    for (uint32_t i = 0; i < p->depth; i++)
        etch_buf_puts(p->out, "  ");
}

/* "x[B,S]: i32" */
static void write_tensor(etch_buf *out, const etch_tensor *tensor, etch_dtype usual)
{
    etch_buf_printf(out, "%s[", tensor->name);
    for (uint32_t i = 0; i < tensor->rank; i++)
        etch_buf_printf(out, "%s%s", i ? "," : "", tensor->dims[i]->name);
    etch_buf_puts(out, "]");
    if (tensor->dtype != usual)
        etch_buf_printf(out, ": %s", etch_dtype_name(tensor->dtype));
}

static void write_tags(etch_buf *out, const etch_tensor *tensor)
{
    name_list tags = {0};
    for (uint32_t i = 0; i < tensor->tag_count; i++) {
        if (is_listed(&tags, tensor->tags[i]))
            continue;
        etch_buf_printf(out, "%s%s", tags.count ? ", " : "  tag ", tensor->tags[i]);
        ETCH_PUSH(out->arena, &tags, tensor->tags[i]);
    }
}

/* "S", "(B,S)" */
static void write_dims(etch_buf *out, etch_dim *const *dims, uint32_t count)
{
    etch_buf_puts(out, count == 1 ? "" : "(");
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(out, "%s%s", i ? "," : "", dims[i]->name);
    etch_buf_puts(out, count == 1 ? "" : ")");
}

/* ---- ops -------------------------------------------------------------------------------------------- */

static void write_reduction(const writer *w, etch_buf *out, const etch_op *op)
{
    const etch_tensor *x = op->ins[0];
    etch_dim_list summed = {0};
    for (uint32_t i = 0; i < x->rank; i++)
        if (!etch_has_dim(op->outs[0], x->dims[i]))
            ETCH_PUSH(w->arena, &summed, x->dims[i]);
    etch_buf_printf(out, "sum(%s, over = ", call_of(w, x));
    write_dims(out, summed.at, summed.count);
    etch_buf_puts(out, ")");
}

static void write_renaming(const writer *w, etch_buf *out, const etch_op *op)
{
    etch_buf_printf(out, "%s[%s]", call_of(w, op->ins[0]), etch_renaming_text(w->arena, &op->attrs));
}

static void write_keyword(const writer *w, etch_buf *out, const etch_op *op, const etch_keyword_info *info)
{
    etch_attrs attrs = op->attrs;
    const etch_keyword_field field = etch_keyword_field_of(info, &attrs);
    if (!(etch_row_takes(op->row) & info->bit) || !etch_keyword_is_said(&field))
        return;
    etch_buf_puts(out, ", ");
    if (info->name)
        etch_buf_printf(out, "%s = ", info->name);
    if (info->bit == ETCH_KW_OVER && op->row->several)
        write_dims(out, attrs.to.at, 1); /* the whole */
    else if (info->bit == ETCH_KW_OVER && (op->row->each & info->bit))
        write_dims(out, attrs.from.at, attrs.from.count); /* the parts */
    else if (field.dims)
        write_dims(out, field.dims->at, field.dims->count);
    else if (field.flag)
        etch_buf_puts(out, "true");
    else if (field.dtype)
        etch_buf_puts(out, etch_dtype_name((etch_dtype)(*field.dtype - 1)));
    else
        etch_buf_puts(out, etch_expr_text(w->graph->sym, *field.number));
}

/* Operands by position, the number, what is left of the operands by name, keywords. */
static void write_call(const writer *w, etch_buf *out, const etch_op *op)
{
    const etch_operands operands = etch_operands_of(w->arena, op->row);
    const etch_keyword_info *info;
    uint32_t given = 0, slot = 0;
    ck_assert_msg(etch_row_is_called(op->row), "no spec can call %s", etch_row_name(op->row));
    etch_buf_printf(out, "%s(", etch_row_name(op->row));
    for (; slot < operands.most && given < op->in_count && !(op->attrs.absent >> slot & 1); slot++)
        etch_buf_printf(out, "%s%s", given ? ", " : "", call_of(w, op->ins[given])), given++;
    for (uint32_t i = 0; (info = etch_keyword_at(i)) != NULL; i++)
        if (!info->name)
            write_keyword(w, out, op, info);
    for (; slot < operands.most && given < op->in_count; slot++)
        if (!(op->attrs.absent >> slot & 1))
            etch_buf_printf(out, ", %s = %s", operands.names[slot], call_of(w, op->ins[given++]));
    for (uint32_t i = 0; (info = etch_keyword_at(i)) != NULL; i++)
        if (info->name)
            write_keyword(w, out, op, info);
    etch_buf_puts(out, ")");
}

static void write_operator(const writer *w, etch_buf *out, const etch_op *op, const char *sign)
{
    etch_buf_printf(out, "%s %s %s", call_of(w, op->ins[0]), sign, call_of(w, op->ins[1]));
}

static void write_value(const writer *w, etch_buf *out, const etch_op *op)
{
    switch (op->row->use) {
    case ETCH_USE_PRODUCT:
        write_operator(w, out, op, "*");
        break;
    case ETCH_USE_QUOTIENT:
        write_operator(w, out, op, "/");
        break;
    case ETCH_USE_SUM:
        for (uint32_t i = 0; i < op->in_count; i++)
            etch_buf_printf(out, "%s%s",
                            i == 0                     ? ""
                            : op->attrs.taken >> i & 1 ? " - "
                                                       : " + ",
                            call_of(w, op->ins[i]));
        break;
    case ETCH_USE_DIFFERENCE:
        write_operator(w, out, op, "-");
        break;
    case ETCH_USE_REDUCTION:
        write_reduction(w, out, op);
        break;
    case ETCH_USE_SHIFT:
        etch_buf_printf(out, "%s + (%s)", call_of(w, op->ins[0]),
                        etch_expr_text(w->graph->sym, op->attrs.number));
        break;
    case ETCH_USE_RENAMING:
        write_renaming(w, out, op);
        break;
    case ETCH_USE_BROADCAST:
        etch_buf_puts(out, call_of(w, op->ins[0]));
        break;
    default:
        write_call(w, out, op);
    }
}

static void write_statement(const writer *w, const place *p, const etch_op *op)
{
    const uint32_t results = results_of(op);
    indent(p);
    etch_buf_puts(p->out, results > 1 ? "(" : "");
    for (uint32_t i = 0; i < results; i++) {
        etch_buf_puts(p->out, i ? ", " : "");
        write_tensor(p->out, op->outs[i], w->graph->dtypes.act);
    }
    etch_buf_puts(p->out, results > 1 ? ") = " : " = ");
    write_value(w, p->out, op);
    write_tags(p->out, op->outs[0]);
    etch_buf_puts(p->out, "\n");
}

/* The load of the choices, the sum of the scores, their product, and its scale. */
static void write_load_balance(const writer *w, const place *p, const etch_item *parts)
{
    const etch_op *load = parts[0].op;
    const etch_tensor *result = parts[3].op->outs[0];
    indent(p);
    write_tensor(p->out, result, w->graph->dtypes.act);
    etch_buf_printf(p->out, " = load_balance(%s, %s, over = ", call_of(w, parts[1].op->ins[0]),
                    call_of(w, load->ins[0]));
    write_dims(p->out, load->attrs.over.at, load->attrs.over.count);
    etch_buf_puts(p->out, ")");
    write_tags(p->out, result);
    etch_buf_puts(p->out, "\n");
}

/* Weights of the region and scope that were made before the tensor with this id. */
static void write_weights(const writer *w, const place *p, const etch_region *region, uint32_t before)
{
    for (uint32_t i = 0; i < w->graph->weights.count; i++) {
        const etch_tensor *weight = w->graph->weights.at[i];
        if (weight->region != region || weight->scope != p->scope || weight->id >= before ||
            w->written[weight->id])
            continue;
        w->written[weight->id] = true;
        indent(p);
        etch_buf_puts(p->out, "weight ");
        write_tensor(p->out, weight, w->graph->dtypes.weights);
        write_tags(p->out, weight);
        etch_buf_puts(p->out, weight->buffer ? "  tag buffer\n" : weight->frozen ? "  tag frozen\n" : "\n");
    }
}

/* The same of constants. */
static void write_constants(const writer *w, const place *p, const etch_region *region, uint32_t before)
{
    for (uint32_t i = 0; i < w->graph->tensors.count; i++) {
        const etch_tensor *made = w->graph->tensors.at[i];
        if (!made->constant || made->region != region || made->scope != p->scope || made->id >= before ||
            w->written[made->id])
            continue;
        w->written[made->id] = true;
        indent(p);
        write_tensor(p->out, made, w->graph->dtypes.act);
        if (made->constant->number)
            etch_buf_printf(p->out, " = %s\n", etch_expr_text(w->graph->sym, made->constant->number));
        else
            etch_buf_printf(p->out, " = iota(%s)\n", made->dims[0]->name);
    }
}

/* ---- modules ---------------------------------------------------------------------------------------- */

static void write_items(writer *w, const place *p, const etch_region *region, uint32_t first, uint32_t end);

static bool is_edge(const etch_item *item, etch_edge edge, const etch_scope *scope)
{
    return item->op && item->op->edge == edge && item->op->scope == scope;
}

/* Items of a call: arguments enter from `first`, the body, results leave from `leave` to before `end`. */
typedef struct call {
    const etch_scope *scope;
    const etch_region *region;
    uint32_t first, body, leave, end;
} call;

static call call_at(const etch_region *region, uint32_t first, uint32_t end)
{
    const etch_item *items = region->items.at;
    call c = {.scope = items[first].op->scope, .region = region, .first = first, .body = first, .end = first};
    while (is_edge(&items[c.body], ETCH_ENTER, c.scope))
        c.body++;
    for (uint32_t i = first; i < end; i++)
        if (is_edge(&items[i], ETCH_LEAVE, c.scope))
            c.end = i + 1;
    c.leave = c.end;
    while (is_edge(&items[c.leave - 1], ETCH_LEAVE, c.scope))
        c.leave--;
    return c;
}

/* What the ops from `first` to before `end` make, in brackets where it is several. */
static void write_results(const writer *w, etch_buf *out, const call *c)
{
    const bool several = c->end - c->leave > 1;
    etch_buf_puts(out, several ? "(" : "");
    for (uint32_t i = c->leave; i < c->end; i++) {
        etch_buf_puts(out, i > c->leave ? ", " : "");
        write_tensor(out, c->region->items.at[i].op->outs[0], w->graph->dtypes.act);
    }
    etch_buf_puts(out, several ? ")" : "");
}

static void write_definition(writer *w, const call *c)
{
    etch_buf text = {.arena = w->arena};
    const place inside = {.out = &text, .scope = c->scope, .depth = 1};
    etch_buf_printf(&text, "module %s(", w->modules[c->scope->id]);
    for (uint32_t i = c->first; i < c->body; i++) {
        etch_buf_puts(&text, i > c->first ? ", " : "");
        write_tensor(&text, c->region->items.at[i].op->outs[0], w->graph->dtypes.act);
    }
    etch_buf_puts(&text, ") -> ");
    write_results(w, &text, c);
    etch_buf_puts(&text, " {\n");
    write_items(w, &inside, c->region, c->body, c->leave);
    for (uint32_t i = c->leave; i < c->end; i++) {
        const etch_op *op = c->region->items.at[i].op;
        etch_buf_printf(&text, "  %s = %s\n", op->outs[0]->name, call_of(w, op->ins[0]));
    }
    etch_buf_puts(&text, "}\n");
    etch_buf_puts(&w->definitions, text.text);
}

static uint32_t write_module(writer *w, const place *p, const etch_region *region, uint32_t first,
                             uint32_t end)
{
    const call c = call_at(region, first, end);
    write_definition(w, &c);
    indent(p);
    write_results(w, p->out, &c);
    etch_buf_printf(p->out, " = %s(", w->modules[c.scope->id]);
    for (uint32_t i = c.first; i < c.body; i++)
        etch_buf_printf(p->out, "%s%s", i > c.first ? ", " : "", call_of(w, region->items.at[i].op->ins[0]));
    etch_buf_puts(p->out, ")");
    write_tags(p->out, region->items.at[c.leave].op->outs[0]);
    etch_buf_puts(p->out, "\n");
    return c.end;
}

/* ---- loops ------------------------------------------------------------------------------------------ */

enum { MOST_ITERATIONS = 32 };

/* Is it what the condition says of the iterations that are left? */
static bool says(const etch_loop *loop, const bool *left, uint32_t class, uint32_t modulus, uint32_t number,
                 char relation)
{
    for (uint32_t i = 0; i < exec_integer(loop->count); i++) {
        const uint32_t value = modulus ? i % modulus : i;
        const bool holds = relation == '<'   ? value < number
                           : relation == '>' ? value >= number
                           : relation == '=' ? value == number
                                             : value != number;
        if (left[i] && holds != (exec_class(loop, i) == class))
            return false;
    }
    return true;
}

/* The condition on the index that the iterations of a class meet, and no others that are left. */
static const char *condition(const writer *w, const etch_loop *loop, const bool *left, uint32_t class)
{
    static const char relations[] = "<>=!";
    static const char *const words[] = {"<", ">=", "==", "!="};
    const uint32_t count = exec_integer(loop->count), start = loop->pattern->period > 1 ? 2 : 0;
    for (uint32_t tries = 0; tries <= count; tries++) {
        const uint32_t modulus = (start + tries) % (count + 1);
        for (uint32_t number = 0; modulus != 1 && number <= count; number++)
            for (uint32_t r = 0; r < 4; r++) {
                if (!says(loop, left, class, modulus, number, relations[r]))
                    continue;
                return modulus ? etch_text(w->arena, "%s %% %u %s %u", loop->name, modulus, words[r], number)
                               : etch_text(w->arena, "%s %s %u", loop->name, words[r], number);
            }
    }
    ck_abort_msg("no condition says which iterations of %s are of class %u", loop->name, class);
    return NULL;
}

/* Does the body hand on as one value what it was handed as another? Then that needs a name of its own. */
static bool trades(const etch_region *body)
{
    for (uint32_t i = 0; i < body->carries.count; i++)
        for (uint32_t k = 0; k < body->carries.count; k++)
            if (i != k && body->carries.at[i].out == body->carries.at[k].in)
                return true;
    return false;
}

static void write_body(writer *w, const place *p, const etch_region *body)
{
    const place inside = {.out = p->out, .scope = p->scope, .depth = p->depth + 1};
    for (uint32_t i = 0; i < body->carries.count && trades(body); i++) {
        const etch_tensor *in = body->carries.at[i].in;
        const char *name = etch_text(w->arena, "%s_in_%u", in->name, in->id);
        indent(&inside);
        etch_buf_printf(p->out, "%s = %s\n", name, in->name);
        w->called[in->id] = name;
    }
    write_items(w, &inside, body, 0, body->items.count);
    for (uint32_t i = 0; i < body->carries.count; i++) {
        indent(&inside);
        etch_buf_printf(p->out, "%s = %s\n", body->carries.at[i].in->name,
                        call_of(w, body->carries.at[i].out));
    }
}

static void write_classes(writer *w, const place *p, const etch_loop *loop)
{
    const place inside = {.out = p->out, .scope = p->scope, .depth = p->depth + 1};
    bool left[MOST_ITERATIONS];
    ck_assert_uint_le(exec_integer(loop->count), MOST_ITERATIONS);
    memset(left, true, sizeof left);
    for (uint32_t k = 0; k < loop->bodies.count; k++) {
        if (k == 0)
            indent(&inside);
        etch_buf_puts(p->out, k ? " else " : "");
        if (k + 1 < loop->bodies.count)
            etch_buf_printf(p->out, "if %s ", condition(w, loop, left, k));
        etch_buf_puts(p->out, "{\n");
        write_body(w, &inside, loop->bodies.at[k]);
        indent(&inside);
        etch_buf_puts(p->out, "}");
        for (uint32_t i = 0; i < exec_integer(loop->count); i++)
            left[i] = left[i] && exec_class(loop, i) != k;
    }
    etch_buf_puts(p->out, "\n");
}

static void write_loop(writer *w, const place *p, const etch_loop *loop)
{
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++) {
        const etch_carry *carry = &etch_loop_carries(loop)->at[i];
        indent(p);
        etch_buf_printf(p->out, "%s = %s\n", carry->in->name, call_of(w, carry->init));
    }
    indent(p);
    etch_buf_printf(p->out, "repeat %s as %s {\n", etch_expr_text(w->graph->sym, loop->count), loop->name);
    if (loop->bodies.count > 1)
        write_classes(w, p, loop);
    else
        write_body(w, p, loop->bodies.at[0]);
    indent(p);
    etch_buf_puts(p->out, "}\n");
}

/* Of what is made from the i-th item on, the oldest: sums may have younger parts. */
static uint32_t first_tensor(const etch_region *region, uint32_t i)
{
    uint32_t first = UINT32_MAX;
    for (; i < region->items.count; i++) {
        const etch_item *item = &region->items.at[i];
        const uint32_t id = item->op ? item->op->outs[0]->id : etch_loop_carries(item->loop)->at[0].in->id;
        first = id < first ? id : first;
    }
    return first;
}

static void write_items(writer *w, const place *p, const etch_region *region, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end;) {
        const etch_item *item = &region->items.at[i];
        write_weights(w, p, region, first_tensor(region, i));
        write_constants(w, p, region, first_tensor(region, i));
        if (item->op && item->op->scope != p->scope) {
            i = write_module(w, p, region, i, end);
            continue;
        }
        if (item->loop)
            write_loop(w, p, item->loop);
        else if (is_op_of(item, ETCH_USE_LOAD))
            write_load_balance(w, p, item);
        else
            write_statement(w, p, item->op);
        i += parts_of_call(item);
    }
    write_weights(w, p, region, UINT32_MAX);
}

/* ---- declarations and runs -------------------------------------------------------------------------- */

/* `H'` is there where H is. */
static void write_declarations(const writer *w, etch_buf *out)
{
    const etch_dtypes *dtypes = &w->graph->dtypes;
    const char *before = "dim ";
    for (uint32_t i = 0; i < w->graph->dims.count; i++) {
        const etch_dim *dim = w->graph->dims.at[i];
        if (strchr(dim->name, '\''))
            continue;
        etch_buf_printf(out, "%s%s %s %s", before, dim->name, dim->average_sized ? "~" : "=",
                        etch_expr_text(w->graph->sym, dim->size));
        before = ", ";
    }
    etch_buf_printf(out, "\ndtype act = %s, weights = %s, grads = %s, optim = %s\n",
                    etch_dtype_name(dtypes->act), etch_dtype_name(dtypes->weights),
                    etch_dtype_name(dtypes->grads), etch_dtype_name(dtypes->optim));
}

/* All that the spec calls so. */
static void write_selector(const writer *w, etch_buf *out, const char *selector, bool *first)
{
    bool found = false;
    for (uint32_t i = 1; i <= w->graph->scopes.count; i++) {
        const bool last = i == w->graph->scopes.count;
        if (last ? found : strcmp(w->graph->scopes.at[i]->module, selector) != 0)
            continue;
        etch_buf_printf(out, "%s%s", *first ? "" : ", ", last ? selector : w->modules[i]);
        *first = false;
        found = true;
    }
}

static void write_selectors(const writer *w, etch_buf *out, const char *const *selectors, uint32_t count)
{
    bool first = true;
    etch_buf_puts(out, "(");
    for (uint32_t i = 0; i < count; i++)
        write_selector(w, out, selectors[i], &first);
    etch_buf_puts(out, ")");
}

static void write_recompute(const writer *w, etch_buf *out)
{
    const etch_recompute *recompute = &w->m->train.recompute;
    const char **selectors = ETCH_NEW_ARRAY(out->arena, recompute->selectors.count, const char *);
    if (!recompute->all && recompute->selectors.count == 0)
        return;
    etch_buf_puts(out, ", recompute = ");
    if (recompute->all) {
        etch_buf_puts(out, recompute->needed ? "needed" : "full");
        return;
    }
    etch_buf_puts(out, recompute->needed ? "needed" : "");
    for (uint32_t i = 0; i < recompute->selectors.count; i++)
        selectors[i] = recompute->selectors.at[i].selector;
    write_selectors(w, out, selectors, recompute->selectors.count);
}

static void write_train(const writer *w, etch_buf *out, const char *model)
{
    const etch_train *train = &w->m->train;
    etch_buf_printf(out, "train { model = %s, optimizer = %s(master = %s)", model,
                    etch_row_name(train->optimizer.row), train->optimizer.master ? "true" : "false");
    if (train->batch)
        etch_buf_printf(out, ", accumulate = (%s, %s)", train->batch->name,
                        etch_expr_text(w->graph->sym, train->micro));
    if (train->clip)
        etch_buf_puts(out, ", clip = 1.0");
    write_recompute(w, out);
    etch_buf_puts(out, " }\n");
}

/* ---- plans ------------------------------------------------------------------------------------------ */

static void write_axes(const etch_plan *plan, etch_buf *out, const uint32_t *axes, uint32_t count)
{
    etch_buf_puts(out, count == 1 ? "" : "(");
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(out, "%s%s", i ? "," : "", plan->mesh.at[axes[i]].name);
    etch_buf_puts(out, count == 1 ? "" : ")");
}

static void write_shards(const etch_plan *plan, etch_buf *out, const etch_shard *shards, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        etch_buf_printf(out, "%s%s @ ", i ? ", " : "", shards[i].dim);
        write_axes(plan, out, shards[i].axes, shards[i].axis_count);
    }
}

static void write_map(const etch_plan *plan, etch_buf *out, const char *before, const etch_shard *shards,
                      uint32_t count, const etch_pin *pins, uint32_t pin_count)
{
    if (count) {
        etch_buf_printf(out, "%sshard ", before);
        write_shards(plan, out, shards, count);
        etch_buf_puts(out, "\n");
    }
    for (uint32_t i = 0; i < pin_count; i++) {
        etch_buf_printf(out, "%spin %s [", before, pins[i].selector);
        write_shards(plan, out, pins[i].shards.at, pins[i].shards.count);
        etch_buf_puts(out, !pins[i].rest ? "]\n" : pins[i].shards.count ? ", ..]\n" : "..]\n");
    }
}

static void write_bits(const etch_plan *plan, etch_buf *out, uint32_t bits)
{
    uint32_t axes[ETCH_MAX_AXES], count = 0;
    for (uint32_t a = 0; a < plan->mesh.count; a++)
        if (bits >> a & 1)
            axes[count++] = a;
    write_axes(plan, out, axes, count);
}

static void write_zero(const etch_plan *plan, etch_buf *out, const char *before, const etch_zero *zero)
{
    static const char *const keeps[] = {"false", "microbatch", "step"};
    if (!zero->level)
        return;
    etch_buf_printf(out, "%szero %u @ ", before, zero->level);
    write_bits(plan, out, zero->axes);
    if (zero->level > 1)
        etch_buf_printf(out, ", reduce = %s", zero->whole ? "step" : "microbatch");
    if (zero->by_weight)
        etch_buf_puts(out, ", group = weight");
    if (zero->level > 2)
        etch_buf_printf(out, ", keep = %s, root = %s", keeps[zero->keep], zero->root ? "true" : "false");
    if (zero->level > 2 && zero == &plan->zero)
        etch_buf_printf(out, ", prefetch = %u", (unsigned)zero->ahead);
    if (zero->backward_axes) {
        etch_buf_puts(out, ", again = ");
        write_bits(plan, out, zero->backward_axes);
    }
    etch_buf_puts(out, "\n");
}

/* Those that stand in the scope at this place of the list, counted from 1; 0: in the plan. */
static void write_scopes(const writer *w, etch_buf *out, const etch_plan *plan, uint32_t outer)
{
    for (uint32_t i = 0; i < plan->overrides.count; i++) {
        const etch_override *scope = &plan->overrides.at[i];
        if (scope->outer != outer)
            continue;
        etch_buf_puts(out, "  for ");
        write_selectors(w, out, scope->selectors, scope->selector_count);
        etch_buf_puts(out, " {\n");
        write_map(plan, out, "    ", scope->shards.at, scope->shards.count, scope->pins.at,
                  scope->pins.count);
        write_zero(plan, out, "    ", &scope->zero);
        write_scopes(w, out, plan, i + 1);
        etch_buf_puts(out, "  }\n");
    }
}

static void write_plan(const writer *w, etch_buf *out, const etch_plan *plan)
{
    static const char *const states[] = {NULL, "master", "moments", "optimizer"};
    etch_buf_printf(out, "parallel %s {\n  mesh [", plan->name);
    for (uint32_t a = 0; a < plan->mesh.count; a++)
        etch_buf_printf(out, "%s%s = %s", a ? ", " : "", plan->mesh.at[a].name,
                        etch_expr_text(w->graph->sym, plan->mesh.at[a].size));
    etch_buf_puts(out, "]\n");
    write_map(plan, out, "  ", plan->shards.at, plan->shards.count, plan->pins.at, plan->pins.count);
    write_zero(plan, out, "  ", &plan->zero);
    for (uint32_t i = 0; i < plan->pads.count; i++)
        etch_buf_printf(out, "  pad %s = %s\n", plan->pads.at[i].dim,
                        etch_expr_text(w->graph->sym, plan->pads.at[i].multiple));
    if (plan->bucketing == ETCH_BUCKET_BY_TENSOR)
        etch_buf_puts(out, "  bucket = ddp\n");
    if (plan->reduce_each)
        etch_buf_puts(out, "  reduce = microbatch\n");
    if (plan->contiguous)
        etch_buf_puts(out, "  balance = false\n");
    if (plan->rings)
        etch_buf_puts(out, "  attend = ring\n");
    if (plan->offload.states)
        etch_buf_printf(out, "  offload %s @ host, ahead = %u\n", states[plan->offload.states],
                        (unsigned)plan->offload.ahead);
    if (plan->keep_gathers)
        etch_buf_puts(out, "  keep = gathers\n");
    write_scopes(w, out, plan, 0);
    etch_buf_puts(out, "}\n");
}

/* ---- the door --------------------------------------------------------------------------------------- */

/* What the last statement makes. */
static const etch_tensor *last_of(const etch_graph *graph)
{
    const etch_item *item = &graph->forward->items.at[graph->forward->items.count - 1];
    return item->op ? item->op->outs[0] : etch_loop_carries(item->loop)->at[0].result;
}

static void write_model(writer *w, etch_buf *out, const char *model)
{
    const etch_graph *graph = w->graph;
    const place top = {.out = out, .scope = graph->scopes.at[0], .depth = 1};
    const char *before = "";
    etch_buf_printf(out, "model %s(", model);
    for (uint32_t i = 0; i < graph->tensors.count; i++) {
        if (graph->tensors.at[i]->kind != ETCH_INPUT)
            continue;
        etch_buf_puts(out, before);
        write_tensor(out, graph->tensors.at[i], graph->dtypes.act);
        before = ", ";
    }
    etch_buf_puts(out, ") -> ");
    write_tensor(out, last_of(graph), graph->dtypes.act);
    etch_buf_puts(out, " {\n");
    write_items(w, &top, graph->forward, 0, graph->forward->items.count);
    etch_buf_puts(out, "}\n");
}

const char *exec_spec_text(const exec_model *m, const etch_plan *plan)
{
    static const char model[] = "made";
    writer w = {.m = m, .graph = m->graph, .arena = m->arena, .definitions = {.arena = m->arena}};
    etch_buf text = {.arena = m->arena}, body = {.arena = m->arena};
    w.called = ETCH_NEW_ARRAY(m->arena, m->graph->tensors.count, const char *);
    w.written = ETCH_NEW_ARRAY(m->arena, m->graph->tensors.count, bool);
    name_modules(&w);
    etch_buf_puts(&w.definitions, "");
    write_model(&w, &body, model);
    etch_buf_puts(&text, "etch 1\n");
    write_declarations(&w, &text);
    etch_buf_puts(&text, w.definitions.text);
    etch_buf_puts(&text, body.text);
    write_train(&w, &text, model);
    if (plan)
        write_plan(&w, &text, plan);
    return text.text;
}
