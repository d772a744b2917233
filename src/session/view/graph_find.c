/* Which part of a graph is shown: its ops and loops, what the backward pass keeps of it, and what these
 * mention. */
#include "session/view/graph_int.h"

/* Where a walk is. */
typedef struct place {
    /* of the report */
    size_t loop;
    /* the body of the forward pass that this is, or derives from; NULL: none */
    const etch_region *forward;
} place;

enum { WANTED = 1 }; /* any index but NONE: numbers are given when all is known */

static size_t *no_indices(const etch_viewing *v, size_t count)
{
    size_t *at = ETCH_NEW_ARRAY(v->arena, count, size_t);
    for (size_t i = 0; i < count; i++)
        at[i] = ETCH_VIEW_NONE;
    return at;
}

/* ---- which ops, loops and values -------------------------------------------------------------------- */

const etch_scope *etch_view_scope(const etch_viewing *v, const etch_scope *scope)
{
    return scope ? scope : v->graph->scopes.at[0];
}

const etch_selected *etch_view_selected_of(const etch_viewing *v, etch_scope *scope,
                                           const etch_region *forward, const etch_tensor *tensor)
{
    const etch_cost cost = {.scope = scope, .body = forward, .tensor = tensor};
    for (uint32_t i = 0; i < v->parts.count; i++)
        if (etch_selected_holds(&v->parts.at[i], &cost))
            return &v->parts.at[i];
    return NULL;
}

static void find_region(etch_viewing *v, const etch_region *region, place at);

static void find_body(etch_viewing *v, const etch_region *body, place at)
{
    const uint32_t ops = v->ops.count, index = v->loops.count;
    const etch_expr around = at.loop == ETCH_VIEW_NONE ? etch_int(v->sym, 1) : v->loops.at[at.loop].runs;
    ETCH_PUSH(v->arena, &v->loops, (etch_shown_loop){body, at.loop, etch_mul(v->sym, around, body->count)});
    find_region(v, body, (place){index, etch_forward_body(body)});
    if (v->ops.count == ops)
        v->loops.count = index; /* nothing of it is wanted */
}

/* Goes as deep as loops are nested. */
static void find_region(etch_viewing *v, const etch_region *region, place at)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_op *op = region->items.at[i].op;
        const etch_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            find_body(v, loop->bodies.at[k], at);
        if (loop)
            continue;
        const etch_selected *part = etch_view_selected_of(v, op->scope, at.forward, op->outs[0]);
        if (v->selector && !part)
            continue;
        v->op_at[op->id] = v->ops.count;
        ETCH_PUSH(v->arena, &v->ops, (etch_shown_op){op, at.loop, part});
    }
}

size_t etch_view_loop_at(const etch_viewing *v, const etch_region *body)
{
    for (size_t i = 0; body && i < v->loops.count; i++)
        if (v->loops.at[i].body == body)
            return i;
    return ETCH_VIEW_NONE;
}

static const etch_op *first_op(const etch_region *region)
{
    const etch_op *op = NULL;
    for (uint32_t i = 0; i < region->items.count && !op; i++) {
        const etch_item *item = &region->items.at[i];
        op = item->op;
        for (uint32_t k = 0; item->loop && k < item->loop->bodies.count && !op; k++)
            op = first_op(item->loop->bodies.at[k]);
    }
    return op;
}

/* What the backward pass keeps of the part. */
static void find_saved(etch_viewing *v)
{
    etch_saved_list saved = {0};
    etch_graph_saved(v->p->training, &saved);
    for (uint32_t i = 0; i < saved.count; i++) {
        const etch_saved *kept = &saved.at[i];
        const etch_tensor *t = kept->tensor;
        if (!v->selector ||
            etch_view_selected_of(v, t->producer ? t->producer->scope : t->scope, kept->body, t))
            ETCH_PUSH(v->arena, &v->saved, (etch_shown_saved){t, kept->reader, kept->times});
    }
}

const etch_scope *etch_view_loop_scope(const etch_viewing *v, const etch_shown_loop *shown)
{
    const etch_op *op = first_op(shown->body);
    if (shown->body->carries.count > 0)
        return etch_view_naming_scope(v->graph, shown->body->carries.at[0].in);
    return op && op->edge == ETCH_ENTER ? op->scope->parent : etch_view_scope(v, op ? op->scope : NULL);
}

/* ---- what they mention ------------------------------------------------------------------------------ */

void etch_view_mention_scope(etch_viewing *v, const etch_scope *scope)
{
    for (; scope && v->scope_at[scope->id] == ETCH_VIEW_NONE; scope = scope->parent)
        v->scope_at[scope->id] = WANTED;
}

void etch_view_mention(etch_viewing *v, const etch_tensor *t)
{
    for (; t && v->tensor_at[t->id] == ETCH_VIEW_NONE; t = t->of) {
        v->tensor_at[t->id] = WANTED;
        etch_view_mention_scope(v, etch_view_naming_scope(v->graph, t));
        etch_view_mention(v, t->adds_to);
        for (uint32_t i = 0; i < t->rank; i++)
            v->dim_at[t->dims[i]->id] = WANTED;
    }
}

/* Maps of parts and of merged dims have places without a dim. */
static void mention_dims(etch_viewing *v, etch_dim_view dims)
{
    for (uint32_t i = 0; i < dims.count; i++)
        if (dims.at[i])
            v->dim_at[dims.at[i]->id] = WANTED;
}

static void mention_op(etch_viewing *v, const etch_op *op)
{
    etch_view_mention_scope(v, etch_view_scope(v, op->scope));
    for (uint32_t i = 0; i < op->in_count; i++)
        etch_view_mention(v, op->ins[i]);
    for (uint32_t i = 0; i < op->out_count; i++)
        etch_view_mention(v, op->outs[i]);
    etch_attrs said = op->attrs;
    const etch_keyword_info *info;
    for (uint32_t i = 0; (info = etch_keyword_at(i)) != NULL; i++) {
        const etch_keyword_field field = etch_keyword_field_of(info, &said);
        if (field.dims)
            mention_dims(v, *field.dims);
    }
    mention_dims(v, op->attrs.from);
}

static void mention_carry(etch_viewing *v, const etch_carry *c)
{
    etch_view_mention(v, c->init);
    etch_view_mention(v, c->in);
    etch_view_mention(v, c->out);
    etch_view_mention(v, c->result);
}

static void mention_all(etch_viewing *v)
{
    v->scope_at[0] = WANTED;
    for (uint32_t i = 0; i < v->ops.count; i++)
        mention_op(v, v->ops.at[i].op);
    for (uint32_t i = 0; i < v->loops.count; i++) {
        etch_view_mention_scope(v, etch_view_loop_scope(v, &v->loops.at[i]));
        for (uint32_t k = 0; k < v->loops.at[i].body->carries.count; k++)
            mention_carry(v, &v->loops.at[i].body->carries.at[k]);
    }
    for (uint32_t i = 0; i < v->saved.count; i++)
        etch_view_mention(v, v->saved.at[i].tensor);
    if (v->selector)
        return;
    for (uint32_t i = 0; i < v->graph->tensors.count; i++) { /* also what no op reads */
        const etch_tensor *t = v->graph->tensors.at[i];
        if (t && (t->kind == ETCH_INPUT || t->kind == ETCH_WEIGHT || t->constant))
            etch_view_mention(v, t);
    }
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

void etch_view_find(etch_viewing *v)
{
    const etch_training *training = v->p->training;
    const place top = {ETCH_VIEW_NONE, NULL};
    v->op_at = no_indices(v, v->graph->op_count);
    v->tensor_at = no_indices(v, v->graph->tensors.count);
    v->scope_at = no_indices(v, v->graph->scopes.count);
    v->dim_at = no_indices(v, v->graph->dims.count);
    find_region(v, v->graph->forward, top);
    if (training->backward) {
        find_region(v, training->backward, top);
        find_saved(v);
    }
    mention_all(v);
}
