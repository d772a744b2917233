/* Names for tensors and calls, such that a reader who has the spec at hand knows what is meant. */
#include <string.h>

#include "session/view/graph_int.h"

/* How often a name was given in a call. */
typedef struct use {
    uint32_t scope;
    /* NULL: an empty place */
    const char *name;
    uint32_t count;
} use;

typedef struct naming {
    etch_arena *arena;
    const etch_graph *graph;
    etch_view_names names;
    /* by op id: the result of the innermost statement that it belongs to */
    const etch_tensor **statement;
    /* by tensor id: what a backward loop's gradient is of, that it carries on */
    const etch_tensor **carried;
    /* by tensor id: one of several parts of a gradient */
    bool *is_summand;
    /* a hash table with open addresses */
    use *uses;
    uint32_t use_mask;
} naming;

/* ---- counting uses ---------------------------------------------------------------------------------- */

static uint32_t hash(uint32_t scope, const char *name)
{
    uint32_t value = 2166136261u ^ scope;
    for (; *name; name++)
        value = (value ^ (unsigned char)*name) * 16777619u;
    return value;
}

/* Room for one name of every tensor and scope, and of every statement. */
static void make_uses(naming *n)
{
    const uint64_t most = 2ull * n->graph->tensors.count + n->graph->scopes.count;
    uint64_t size = 16;
    while (size < 2 * most)
        size *= 2;
    n->uses = ETCH_NEW_ARRAY(n->arena, size, use);
    n->use_mask = (uint32_t)(size - 1);
}

/* How often the name has been used in the scope, this time among them. */
static uint32_t count_use(naming *n, uint32_t scope, const char *name)
{
    uint32_t i = hash(scope, name) & n->use_mask;
    while (n->uses[i].name && (n->uses[i].scope != scope || strcmp(n->uses[i].name, name) != 0))
        i = (i + 1) & n->use_mask;
    if (!n->uses[i].name)
        n->uses[i] = (use){scope, name, 0};
    return ++n->uses[i].count;
}

static const char *distinct(naming *n, uint32_t scope, const char *name)
{
    const uint32_t count = count_use(n, scope, name);
    return count > 1 ? etch_text(n->arena, "%s#%u", name, (unsigned)count) : name;
}

/* "y.1", "y.2", ... */
static const char *numbered(naming *n, uint32_t scope, const char *name)
{
    const uint32_t count = count_use(n, scope, etch_text(n->arena, "%s.", name));
    return etch_text(n->arena, "%s.%u", name, (unsigned)count);
}

/* ---- what a tensor is ------------------------------------------------------------------------------- */

/* Is it a value of the forward pass, computed again? */
static bool is_again(const etch_tensor *t)
{
    return t->of && strcmp(t->name, t->of->name) == 0;
}

static const etch_tensor *first_time(const etch_tensor *t)
{
    while (t && is_again(t))
        t = t->of;
    return t;
}

/* What a gradient is with respect to. */
static const etch_tensor *target_of(const naming *n, const etch_tensor *gradient)
{
    const etch_tensor *carried = n->carried[gradient->id];
    return carried ? carried : first_time(gradient->of);
}

/* The op that adds up what several uses contribute to a gradient. */
static bool is_total(const etch_op *op)
{
    return op && op->phase == ETCH_BACKWARD && !op->forward && !op->outs[0]->adds_to;
}

bool etch_view_passes(const etch_op *op)
{
    return op->edge != ETCH_NO_EDGE || (is_total(op) && op->in_count == 1);
}

const etch_scope *etch_view_naming_scope(const etch_graph *graph, const etch_tensor *tensor)
{
    while (tensor->of)
        tensor = tensor->of;
    const etch_op *op = tensor->producer;
    const etch_scope *scope = op && op->edge == ETCH_LEAVE ? op->scope->parent : tensor->scope;
    return scope ? scope : graph->scopes.at[0];
}

/* ---- statements ------------------------------------------------------------------------------------- */

/* Statements of a module end before the statement that calls it: the first one that has an op is the
 * innermost. */
static void find_statements(naming *n)
{
    n->statement = ETCH_NEW_ARRAY(n->arena, n->graph->op_count, const etch_tensor *);
    for (uint32_t i = 0; i < n->graph->tensors.count; i++) {
        const etch_tensor *t = n->graph->tensors.at[i];
        for (uint32_t op = t ? t->first_op : 0; t && !t->of && op < t->end_op; op++)
            if (!n->statement[op])
                n->statement[op] = t;
    }
}

/* What enters an iteration backwards is the gradient of what the forward iteration carries on; what leaves
 * the loop is that of what entered it. */
static void find_carried(naming *n, const etch_region *region);

static void find_carried_by(naming *n, const etch_region *body, const etch_region *forward)
{
    for (uint32_t b = 0; b < body->carries.count; b++)
        for (uint32_t f = 0; f < forward->carries.count; f++) {
            const etch_carry *back = &body->carries.at[b], *ahead = &forward->carries.at[f];
            if (first_time(back->in->of) != first_time(ahead->in))
                continue;
            n->carried[back->in->id] = first_time(ahead->out);
            n->carried[back->result->id] = first_time(ahead->init);
        }
}

static void find_carried(naming *n, const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++) {
            find_carried(n, loop->bodies.at[k]);
            if (loop->forward)
                find_carried_by(n, loop->bodies.at[k], loop->forward->bodies.at[k]);
        }
    }
}

static void find_summands(naming *n)
{
    n->is_summand = ETCH_NEW_ARRAY(n->arena, n->graph->tensors.count, bool);
    for (uint32_t i = 0; i < n->graph->tensors.count; i++) {
        const etch_tensor *t = n->graph->tensors.at[i];
        if (!t || !is_total(t->producer) || t->producer->in_count == 1)
            continue;
        for (uint32_t k = 0; k < t->producer->in_count; k++) {
            const etch_tensor *part = t->producer->ins[k];
            n->is_summand[part->id] = part->of && target_of(n, part) == target_of(n, t);
        }
    }
}

/* ---- names ------------------------------------------------------------------------------------------ */

static void name_calls(naming *n)
{
    n->names.calls = ETCH_NEW_ARRAY(n->arena, n->graph->scopes.count, const char *);
    for (uint32_t i = 0; i < n->graph->scopes.count; i++) {
        const etch_scope *scope = n->graph->scopes.at[i];
        /* tensors may be called like modules: a sign that no name has keeps them apart */
        const char *key = etch_text(n->arena, "(%s", scope->module);
        const uint32_t count = scope->parent ? count_use(n, scope->parent->id, key) : 1;
        n->names.calls[i] =
            count > 1 ? etch_text(n->arena, "%s#%u", scope->module, (unsigned)count) : scope->module;
    }
}

/* "dx"; "d(x#2)" */
static const char *gradient_name(const naming *n, const char *target)
{
    return etch_text(n->arena, strpbrk(target, "#.(") ? "d(%s)" : "d%s", target);
}

static const char *name_gradient(naming *n, const etch_tensor *t, uint32_t scope)
{
    if (t->adds_to)
        return n->names.tensors[t->adds_to->id];
    const char *name = gradient_name(n, n->names.tensors[target_of(n, t)->id]);
    if (n->is_summand[t->id])
        return numbered(n, scope, name);
    if (is_total(t->producer) && t->producer->in_count == 1) {
        const etch_tensor *part = t->producer->ins[0];
        if (part->of && target_of(n, part) == target_of(n, t))
            return n->names.tensors[part->id];
    }
    return distinct(n, scope, name);
}

/* Has backward found it out about a result, whose cotangent it is not? */
static bool is_found(const etch_tensor *t)
{
    const etch_op *forward = t->producer && t->producer->phase == ETCH_BACKWARD ? t->producer->forward : NULL;
    return forward && t->of && first_time(t->of) == first_time(forward->outs[0]);
}

static const char *name_tensor(naming *n, const etch_tensor *t)
{
    const uint32_t scope = etch_view_naming_scope(n->graph, t)->id;
    const etch_op *op = t->producer;
    if (is_again(t))
        return distinct(n, scope, etch_text(n->arena, "%s.again", n->names.tensors[t->of->id]));
    if (is_found(t))
        return distinct(n, scope,
                        etch_text(n->arena, "%s.%s", n->names.tensors[t->of->id], etch_row_name(op->row)));
    if (t->of)
        return name_gradient(n, t, scope);
    if (op && t->output > 0) /* its mask, its statistic */
        return distinct(n, scope, etch_text(n->arena, "%s.%s", n->names.tensors[op->outs[0]->id], t->name));
    const etch_tensor *statement =
        op && op->edge != ETCH_ENTER && t->end_op == 0 ? n->statement[op->id] : NULL;
    if (statement && statement != t && etch_view_naming_scope(n->graph, statement)->id == scope)
        return numbered(n, scope, statement->name);
    return distinct(n, scope, t->name);
}

etch_view_names etch_view_name_graph(etch_arena *arena, const etch_training *training)
{
    const etch_graph *graph = training->graph;
    naming n = {.arena = arena, .graph = graph};
    make_uses(&n);
    name_calls(&n);
    find_statements(&n);
    n.carried = ETCH_NEW_ARRAY(arena, graph->tensors.count, const etch_tensor *);
    if (training->backward)
        find_carried(&n, training->backward);
    find_summands(&n);
    n.names.tensors = ETCH_NEW_ARRAY(arena, graph->tensors.count, const char *);
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        if (graph->tensors.at[i])
            n.names.tensors[i] = name_tensor(&n, graph->tensors.at[i]);
    return n.names;
}
