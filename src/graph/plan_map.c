/* What a plan says of a tensor: maps of scopes, pins, and the requirements on sizes that follow. */
#include <string.h>

#include "graph/place_int.h"

/* ---- maps of scopes --------------------------------------------------------------------------------- */

static bool override_names(const etch_override *o, const etch_scope *scope)
{
    for (uint32_t i = 0; i < o->module_count; i++)
        if (strcmp(o->modules[i], scope->module) == 0)
            return true;
    return false;
}

static const etch_shard *find_shard(const etch_shard *shards, uint32_t count, const char *dim)
{
    for (uint32_t i = count; i-- > 0;) /* a later line overrules an earlier one */
        if (strcmp(shards[i].dim, dim) == 0)
            return &shards[i];
    return NULL;
}

/* The entry that the scope's own overrides give, or NULL. */
static const etch_shard *own_entry(const placer *p, const etch_scope *scope, const char *dim)
{
    for (uint32_t i = p->plan->overrides.count; i-- > 0;) {
        const etch_override *o = &p->plan->overrides.at[i];
        const etch_shard *shard =
            override_names(o, scope) ? find_shard(o->shards.at, o->shards.count, dim) : NULL;
        if (shard)
            return shard;
    }
    return NULL;
}

const etch_shard *etch_map_dim(const placer *p, const etch_scope *scope, const etch_dim *dim)
{
    for (const etch_scope *s = scope; s; s = s->parent) {
        const etch_shard *shard = own_entry(p, s, dim->name);
        if (shard)
            return shard;
    }
    return find_shard(p->plan->shards.at, p->plan->shards.count, dim->name);
}

static void clear_place(const placer *p, etch_state *place)
{
    for (uint32_t a = 0; a < p->axis_count; a++)
        place[a] = NULL;
}

/* Puts `dim` of `tensor` on the axes of `shard`. */
static void put_dim(placer *p, const etch_tensor *tensor, const etch_dim *dim, const etch_shard *shard,
                    etch_state *place)
{
    for (uint32_t i = 0; i < shard->axis_count; i++) {
        uint32_t axis = shard->axes[i];
        if (place[axis] && place[axis] != dim) {
            etch_diag *diag =
                etch_error(p->graph->diags, ETCH_E_AXIS_TWICE, shard->span,
                           "mesh axis %s would divide both %s and %s of %s", p->plan->mesh.at[axis].name,
                           place[axis]->name, dim->name, tensor->name);
            etch_note(diag, tensor->span, "%s is declared here", tensor->name);
            etch_help(diag, "give one of them another axis, or clear it in a scope: for %s { shard %s @ () }",
                      tensor->scope ? tensor->scope->module : "MODULE", dim->name);
            p->failed = true;
            return;
        }
        place[axis] = dim;
    }
}

void etch_map_place(placer *p, const etch_scope *scope, const etch_tensor *tensor, etch_state *place)
{
    clear_place(p, place);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const etch_shard *shard = etch_map_dim(p, scope, tensor->dims[i]);
        if (shard)
            put_dim(p, tensor, tensor->dims[i], shard, place);
    }
}

/* ---- pins ------------------------------------------------------------------------------------------- */

static bool pin_selects(const etch_pin *pin, const etch_tensor *tensor)
{
    for (uint32_t i = 0; i < tensor->tag_count; i++)
        if (strcmp(tensor->tags[i], pin->selector) == 0)
            return true;
    const char *dot = strrchr(pin->selector, '.');
    if (!dot || !tensor->scope || strcmp(dot + 1, tensor->name) != 0)
        return false;
    size_t length = (size_t)(dot - pin->selector);
    return strlen(tensor->scope->module) == length &&
           strncmp(pin->selector, tensor->scope->module, length) == 0;
}

static const etch_pin *find_pin(const placer *p, const etch_tensor *tensor)
{
    for (const etch_scope *s = tensor->scope; s; s = s->parent)
        for (uint32_t i = p->plan->overrides.count; i-- > 0;) {
            const etch_override *o = &p->plan->overrides.at[i];
            for (uint32_t k = o->pins.count; override_names(o, s) && k-- > 0;)
                if (pin_selects(&o->pins.at[k], tensor))
                    return &o->pins.at[k];
        }
    for (uint32_t k = p->plan->pins.count; k-- > 0;)
        if (pin_selects(&p->plan->pins.at[k], tensor))
            return &p->plan->pins.at[k];
    return NULL;
}

bool etch_map_pin(placer *p, const etch_tensor *tensor, etch_state *place)
{
    const etch_pin *pin = find_pin(p, tensor);
    if (!pin)
        return false;
    clear_place(p, place);
    for (uint32_t i = 0; i < pin->shards.count; i++) {
        const etch_shard *shard = &pin->shards.at[i];
        const etch_dim *dim = NULL;
        for (uint32_t d = 0; d < tensor->rank; d++)
            if (strcmp(tensor->dims[d]->name, shard->dim) == 0)
                dim = tensor->dims[d];
        if (p->failed)
            return true;
        if (dim) {
            put_dim(p, tensor, dim, shard, place);
            continue;
        }
        etch_diag *diag = etch_error(p->graph->diags, ETCH_E_PIN_DIM, shard->span, "pin %s: %s has no dim %s",
                                     pin->selector, tensor->name, shard->dim);
        etch_note(diag, tensor->span, "%s is made here", tensor->name);
        p->failed = true;
    }
    return true;
}

etch_span etch_map_pin_line(const placer *p, const etch_tensor *tensor)
{
    const etch_pin *pin = find_pin(p, tensor);
    return pin ? pin->span : (etch_span){0, 0};
}

/* ---- edges of scopes -------------------------------------------------------------------------------- */

uint32_t etch_map_touched(const placer *p, const etch_scope *scope)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < p->plan->overrides.count; i++) {
        const etch_override *o = &p->plan->overrides.at[i];
        for (uint32_t k = 0; override_names(o, scope) && k < o->shards.count; k++) {
            const etch_dim named = {.name = o->shards.at[k].dim};
            const etch_shard *outer = scope->parent
                                          ? etch_map_dim(p, scope->parent, &named)
                                          : find_shard(p->plan->shards.at, p->plan->shards.count, named.name);
            for (uint32_t a = 0; a < o->shards.at[k].axis_count; a++)
                bits |= 1u << o->shards.at[k].axes[a];
            for (uint32_t a = 0; outer && a < outer->axis_count; a++)
                bits |= 1u << outer->axes[a];
        }
    }
    return bits;
}

etch_span etch_map_edge_line(const placer *p, const etch_scope *scope, uint32_t axes)
{
    etch_span line = {0, 0};
    for (uint32_t i = p->plan->overrides.count; i-- > 0;) {
        const etch_override *o = &p->plan->overrides.at[i];
        for (uint32_t k = 0; override_names(o, scope) && k < o->shards.count; k++) {
            line = line.start ? line : o->span;
            for (uint32_t a = 0; a < o->shards.at[k].axis_count; a++)
                if (axes >> o->shards.at[k].axes[a] & 1)
                    return o->shards.at[k].span;
        }
    }
    return line;
}

void etch_map_edge(placer *p, const etch_op *op, uint32_t touched, const etch_state *now, etch_state *place)
{
    const etch_scope *scope = op->edge == ETCH_ENTER ? op->scope : op->scope->parent;
    etch_state map[ETCH_MAX_AXES];
    etch_map_place(p, scope, op->outs[0], map);
    for (uint32_t a = 0; a < p->axis_count; a++) {
        place[a] = now[a];
        if (!(touched & (1u << a)))
            continue;
        place[a] = map[a];
        /* A result's dim that the outer map does not name keeps its shards, and a partial sum stays one: whoever
         * reads it knows best where to. */
        bool keeps = op->edge == ETCH_LEAVE && !map[a] && now[a] &&
                     (now[a] == ETCH_PARTIAL || !etch_map_dim(p, scope, now[a]));
        if (keeps)
            place[a] = now[a];
    }
}

/* ---- order of axes, requirements -------------------------------------------------------------------- */

typedef struct shard_walk {
    const placer *p;
    const char *dim;
    const etch_shard *found;
    uint32_t axes; /* bits that the entry must have */
} shard_walk;

static void visit_shards(shard_walk *w, const etch_shard *shards, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bits = 0;
        for (uint32_t a = 0; a < shards[i].axis_count; a++)
            bits |= 1u << shards[i].axes[a];
        if (!w->found && strcmp(shards[i].dim, w->dim) == 0 && (bits & w->axes) == w->axes)
            w->found = &shards[i];
    }
}

static void visit_pins(shard_walk *w, const etch_pin *pins, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        visit_shards(w, pins[i].shards.at, pins[i].shards.count);
}

/* The first entry of the plan that puts `dim` on all of `axes`, wherever it stands. */
static const etch_shard *entry_with(const placer *p, const char *dim, uint32_t axes)
{
    const etch_plan *plan = p->plan;
    shard_walk w = {.p = p, .dim = dim, .axes = axes};
    visit_shards(&w, plan->shards.at, plan->shards.count);
    visit_pins(&w, plan->pins.at, plan->pins.count);
    for (uint32_t i = 0; i < plan->overrides.count; i++) {
        visit_shards(&w, plan->overrides.at[i].shards.at, plan->overrides.at[i].shards.count);
        visit_pins(&w, plan->overrides.at[i].pins.at, plan->overrides.at[i].pins.count);
    }
    return w.found;
}

static const etch_dim *first_of(const etch_dim *dim)
{
    while (dim->twin)
        dim = dim->twin;
    return dim;
}

const etch_shard *etch_map_entry(const placer *p, const etch_dim *dim, uint32_t axes)
{
    const etch_shard *entry = entry_with(p, dim->name, axes);
    for (uint32_t i = 0; i < p->graph->dims.count && !entry; i++)
        if (first_of(p->graph->dims.at[i]) == first_of(dim))
            entry = entry_with(p, p->graph->dims.at[i]->name, axes);
    return entry;
}

bool etch_map_is_inside(const placer *p, const etch_dim *dim, uint32_t inner, uint32_t outer)
{
    const etch_shard *entry = etch_map_entry(p, dim, (1u << inner) | (1u << outer));
    if (!entry)
        return inner > outer; /* never written together: the mesh's order */
    for (uint32_t i = 0; i < entry->axis_count; i++)
        if (entry->axes[i] == inner)
            return false;
        else if (entry->axes[i] == outer)
            return true;
    return false;
}

static etch_requirement *find_requirement(const placer *p, const etch_dim *dim, uint32_t axes)
{
    for (uint32_t i = 0; i < p->placed->requirements.count; i++)
        if (p->placed->requirements.at[i].dim == dim && p->placed->requirements.at[i].axes == axes)
            return &p->placed->requirements.at[i];
    return NULL;
}

static etch_span require_span(const placer *p, const etch_dim *dim, uint32_t axes)
{
    const etch_shard *entry = axes ? entry_with(p, dim->name, axes) : NULL;
    for (uint32_t a = 0; !entry && a < p->axis_count; a++)
        if (axes & (1u << a))
            entry = entry_with(p, dim->name, 1u << a);
    return entry ? entry->span : axes ? p->plan->span : p->training->train.span;
}

void etch_map_require(placer *p, const etch_tensor *tensor, const etch_state *place)
{
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const etch_dim *dim = tensor->dims[i];
        uint32_t axes = 0;
        const etch_dim *batch = p->training->train.batch;
        bool micro = batch && etch_dim_holds(dim, batch) && p->training->train.micro != etch_int(p->sym, 1);
        etch_expr divisor = micro ? p->training->train.micro : etch_int(p->sym, 1);
        for (uint32_t a = 0; a < p->axis_count; a++)
            if (place[a] == dim) {
                axes |= 1u << a;
                divisor = etch_mul(p->sym, divisor, p->plan->mesh.at[a].size);
            }
        if ((!axes && !micro) || dim->ragged || find_requirement(p, dim, axes))
            continue;
        etch_requirement need = {.dim = dim,
                                 .size = dim->size,
                                 .divisor = divisor,
                                 .axes = axes,
                                 .micro = micro,
                                 .span = require_span(p, dim, axes)};
        ETCH_PUSH(p->arena, &p->placed->requirements, need);
    }
}

void etch_map_require_pairs(placer *p, const etch_dim *dim, uint32_t axes)
{
    etch_requirement *need = find_requirement(p, dim, axes); /* NULL for a size on average */
    if (!need || need->paired)
        return;
    etch_expr ranks = etch_group_size(p->placed, axes); /* a rank that is alone needs no chunks */
    need->divisor = etch_mul(p->sym, need->divisor, etch_min(p->sym, ranks, etch_int(p->sym, 2)));
    need->paired = true;
}
