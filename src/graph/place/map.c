/* The lines of a plan about a tensor: maps of scopes, pins, and the requirements on sizes that follow. */
#include <string.h>

#include "graph/place/place_int.h"

/* ---- maps of scopes --------------------------------------------------------------------------------- */

/* Puts `dim` on the axes of `shard`. The dim that one of them divides already; NULL: none does. */
static etch_state put_dim(const etch_shard *shard, const etch_dim *dim, etch_state *place)
{
    for (uint32_t i = 0; i < shard->axis_count; i++) {
        etch_state *at = &place[shard->axes[i]];
        if (*at && *at != dim)
            return *at;
        *at = dim;
    }
    return NULL;
}

/* Two lines put one axis on two dims of a tensor. `other`: that of the dim which has it in `place`. */
static void report_twice(etch_placer *p, const etch_tensor *tensor, const etch_shard *shard,
                         const etch_shard *other, const etch_state *place)
{
    uint32_t axis = shard->axes[0];
    for (uint32_t i = 0; i < shard->axis_count; i++)
        if (place[shard->axes[i]] && strcmp(place[shard->axes[i]]->name, shard->dim) != 0)
            axis = shard->axes[i];
    etch_diag *diag =
        etch_place_error(p, ETCH_E_AXIS_TWICE, shard->span, "mesh axis %s would divide both %s and %s of %s",
                         p->plan->mesh.at[axis].name, place[axis]->name, shard->dim, tensor->name);
    if (other)
        etch_note(diag, other->span, "it divides %s here", other->dim);
    etch_note(diag, tensor->span, "%s is declared here", tensor->name);
    etch_help(diag, "give one of them another axis, or clear it in a scope: for %s { shard %s @ () }",
              tensor->scope ? tensor->scope->module : "MODULE", shard->dim);
}

void etch_map_place(etch_placer *p, const etch_plan_region *plan_region, const etch_tensor *tensor,
                    etch_state *place)
{
    etch_state taken = NULL;
    memset(place, 0, p->axis_count * sizeof *place);
    for (uint32_t i = 0; i < tensor->rank && !taken; i++) {
        const etch_shard *shard = etch_map_dim(p->plan, plan_region, tensor->dims[i]);
        taken = shard ? put_dim(shard, tensor->dims[i], place) : NULL;
        if (taken)
            report_twice(p, tensor, shard, etch_map_dim(p->plan, plan_region, taken), place);
    }
}

/* ---- pins ------------------------------------------------------------------------------------------- */

static const etch_pin *pin_among(const etch_pin *pins, uint32_t count, const etch_tensor *tensor)
{
    for (uint32_t k = count; k-- > 0;)
        if (etch_tensor_is_selected(tensor, pins[k].selector))
            return &pins[k];
    return NULL;
}

const etch_pin *etch_map_find_pin(const etch_placed *placed, const etch_tensor *tensor)
{
    for (const etch_plan_region *plan_region = etch_plan_region_of(placed->plan_regions, tensor); plan_region;
         plan_region = plan_region->outer)
        for (uint32_t i = plan_region->overrides.count; i-- > 0;) {
            const etch_override *o = plan_region->overrides.at[i];
            const etch_pin *pin = pin_among(o->pins.at, o->pins.count, tensor);
            if (pin)
                return pin;
        }
    return pin_among(placed->plan->pins.at, placed->plan->pins.count, tensor);
}

const etch_shard *etch_map_dim_of(const etch_placer *p, const etch_tensor *tensor, const etch_dim *dim)
{
    return etch_map_dim(p->plan, etch_plan_region_of(&p->plan_regions, tensor), dim);
}

bool etch_map_fill(const etch_placer *p, const etch_tensor *tensor, const etch_dim *dim, etch_state *place)
{
    const etch_shard *shard = etch_map_dim_of(p, tensor, dim);
    for (uint32_t i = 0; shard && i < shard->axis_count; i++)
        if (!place[shard->axes[i]])
            place[shard->axes[i]] = dim;
    return shard;
}

bool etch_map_pin(etch_placer *p, const etch_tensor *tensor, etch_state *place)
{
    const etch_pin *pin = etch_map_find_pin(p->placed, tensor);
    if (!pin)
        return false;
    memset(place, 0, p->axis_count * sizeof *place);
    for (uint32_t i = 0; i < pin->shards.count && !p->failed; i++) {
        const etch_shard *shard = &pin->shards.at[i];
        const etch_dim *dim = NULL;
        for (uint32_t d = 0; d < tensor->rank; d++)
            if (strcmp(tensor->dims[d]->name, shard->dim) == 0)
                dim = tensor->dims[d];
        const etch_state taken = dim ? put_dim(shard, dim, place) : NULL;
        if (taken)
            report_twice(p, tensor, shard, etch_shard_find(pin->shards.at, pin->shards.count, taken->name),
                         place);
        if (dim)
            continue;
        etch_diag *diag = etch_place_error(p, ETCH_E_PIN_DIM, shard->span, "pin %s: %s has no dim %s",
                                           pin->selector, tensor->name, shard->dim);
        etch_note(diag, tensor->span, "%s is made here", tensor->name);
    }
    for (uint32_t d = 0; d < tensor->rank && pin->rest; d++)
        if (!etch_shard_find(pin->shards.at, pin->shards.count, tensor->dims[d]->name))
            etch_map_fill(p, tensor, tensor->dims[d], place);
    return true;
}

etch_span etch_place_pin(const etch_placed *placed, const etch_tensor *tensor)
{
    const etch_pin *pin = etch_map_find_pin(placed, tensor);
    return pin ? pin->span : (etch_span){0, 0};
}

/* ---- edges of parts ---------------------------------------------------------------------------------- */

void etch_map_boundary(etch_placer *p, const etch_boundary *boundary, const etch_tensor *tensor,
                       const etch_state *now, etch_state *place)
{
    etch_state map[ETCH_MAX_AXES];
    etch_map_place(p, boundary->to, tensor, map);
    for (uint32_t a = 0; a < p->axis_count; a++) {
        place[a] = now[a];
        if (!(boundary->axes & (1u << a)))
            continue;
        /* A result's dim that the outer map does not name keeps its shards, and what is partial stays so:
         * whoever reads it knows best where to. */
        const bool keeps = boundary->leaves && !map[a] && now[a] &&
                           (etch_is_partial(now[a]) || !etch_map_dim(p->plan, boundary->to, now[a]));
        place[a] = keeps ? now[a] : map[a];
    }
}

/* ---- order of axes, requirements -------------------------------------------------------------------- */

/* The shard of the part's own scopes that puts a dim on one of the axes, or else the first scope. */
static etch_span line_of(const etch_plan_region *plan_region, uint32_t axes)
{
    etch_span line = {0, 0};
    for (uint32_t i = plan_region->overrides.count; i-- > 0;) {
        const etch_override *o = plan_region->overrides.at[i];
        for (uint32_t k = 0; k < o->shards.count; k++) {
            line = line.start ? line : o->span;
            for (uint32_t a = 0; a < o->shards.at[k].axis_count; a++)
                if (axes >> o->shards.at[k].axes[a] & 1)
                    return o->shards.at[k].span;
        }
    }
    return line;
}

etch_provenance etch_boundary_provenance(const etch_boundary *boundary, const etch_op *op,
                                         const etch_tensor *tensor)
{
    const etch_plan_region *plan_region = boundary->plan_region;
    return (etch_provenance){boundary->leaves ? ETCH_RULE_LEAVE : ETCH_RULE_ENTER,
                             .op = op,
                             .tensor = tensor,
                             .scope = plan_region->what.call,
                             .loop = plan_region->what.loop,
                             .result = plan_region->what.result,
                             .line = line_of(plan_region, boundary->axes)};
}

/* The first entry of the plan that puts `dim` on all of `axes`, wherever it stands. */
static const etch_shard *entry_with(const etch_placed *placed, const char *dim, uint32_t axes)
{
    for (uint32_t i = 0; i < placed->plan_regions->lines.count; i++) {
        const etch_shard *line = placed->plan_regions->lines.at[i];
        if (strcmp(line->dim, dim) == 0 && !(axes & ~etch_axes_of(line->axes, line->axis_count)))
            return line;
    }
    return NULL;
}

static const etch_dim *first_of(const etch_dim *dim)
{
    while (dim->alias)
        dim = dim->alias;
    return dim;
}

const etch_shard *etch_map_entry(const etch_placed *placed, const etch_dim *dim, uint32_t axes)
{
    const etch_graph *graph = placed->training->graph;
    const etch_shard *entry = entry_with(placed, dim->name, axes);
    for (uint32_t i = 0; i < graph->dims.count && !entry; i++)
        if (first_of(graph->dims.at[i]) == first_of(dim))
            entry = entry_with(placed, graph->dims.at[i]->name, axes);
    return entry;
}

bool etch_map_is_inside(const etch_placed *placed, const etch_dim *dim, uint32_t inner, uint32_t outer)
{
    const etch_shard *entry = etch_map_entry(placed, dim, (1u << inner) | (1u << outer));
    if (!entry)
        return inner > outer; /* never written together: the mesh's order */
    for (uint32_t i = 0; i < entry->axis_count; i++)
        if (entry->axes[i] == inner)
            return false;
        else if (entry->axes[i] == outer)
            return true;
    return false;
}

/* Is a dim called `a` one that was renamed from or to one called `b`, or the same? Slots have no order. */
static bool are_one(const etch_placer *p, const char *a, const char *b)
{
    for (uint32_t i = 0; i < p->graph->dims.count; i++)
        for (uint32_t k = 0; k < p->graph->dims.count; k++) {
            const etch_dim *x = p->graph->dims.at[i], *y = p->graph->dims.at[k];
            if (strcmp(x->name, a) == 0 && strcmp(y->name, b) == 0 && first_of(x) == first_of(y) &&
                !x->packed_from.count)
                return true;
        }
    return false;
}

static uint32_t place_in(const etch_shard *shard, uint32_t axis)
{
    uint32_t at = 0;
    while (at < shard->axis_count && shard->axes[at] != axis)
        at++;
    return at;
}

/* Do both list two axes, in different orders? */
static bool orders_differ(const etch_shard *a, const etch_shard *b)
{
    for (uint32_t i = 0; i < a->axis_count; i++)
        for (uint32_t k = i + 1; k < a->axis_count; k++) {
            const uint32_t outer = place_in(b, a->axes[i]), inner = place_in(b, a->axes[k]);
            if (outer < b->axis_count && inner < b->axis_count && outer > inner)
                return true;
        }
    return false;
}

static void report_order(etch_placer *p, const etch_shard *line, const etch_shard *earlier)
{
    etch_diag *diag =
        etch_place_error(p, ETCH_E_AXIS_ORDER, line->span,
                         "the axes of %s stand in another order than elsewhere in the plan", line->dim);
    etch_note(diag, earlier->span, "here");
    etch_help(
        diag,
        "which part of a dim a rank holds follows from the order, the outer axis first: write one order "
        "in all lines");
}

void etch_map_check_orders(etch_placer *p)
{
    const etch_shard *const *lines = p->plan_regions.lines.at;
    for (uint32_t i = 0; i < p->plan_regions.lines.count && !p->failed; i++)
        for (uint32_t k = 0; k < i && !p->failed; k++)
            if (orders_differ(lines[i], lines[k]) && are_one(p, lines[i]->dim, lines[k]->dim))
                report_order(p, lines[i], lines[k]);
}

static etch_requirement *find_requirement(const etch_placer *p, const etch_dim *dim, uint32_t axes)
{
    for (uint32_t i = 0; i < p->placed->requirements.count; i++)
        if (p->placed->requirements.at[i].dim == dim && p->placed->requirements.at[i].axes == axes)
            return &p->placed->requirements.at[i];
    return NULL;
}

static etch_span require_span(const etch_placer *p, const etch_dim *dim, uint32_t axes)
{
    const etch_shard *entry = axes ? entry_with(p->placed, dim->name, axes) : NULL;
    for (uint32_t a = 0; !entry && a < p->axis_count; a++)
        if (axes & (1u << a))
            entry = entry_with(p->placed, dim->name, 1u << a);
    return entry ? entry->span : axes ? p->plan->span : p->training->train.span;
}

static etch_requirement *add_requirement(etch_placer *p, const etch_dim *dim, uint32_t axes, etch_expr size,
                                         etch_expr divisor)
{
    if (dim->average_sized || find_requirement(p, dim, axes))
        return NULL;
    etch_requirement need = {
        .dim = dim, .size = size, .divisor = divisor, .axes = axes, .span = require_span(p, dim, axes)};
    ETCH_PUSH(p->arena, &p->placed->requirements, need);
    return &p->placed->requirements.at[p->placed->requirements.count - 1];
}

/* `micro`: microbatches divide it, too. */
static void require(etch_placer *p, const etch_dim *dim, uint32_t axes, bool micro)
{
    if ((!axes && !micro) || dim->average_sized || find_requirement(p, dim, axes))
        return;
    etch_expr divisor = micro ? p->training->train.micro : etch_int(p->sym, 1);
    if (axes)
        divisor = etch_mul(p->sym, divisor, etch_group_size(p->placed, axes));
    etch_expr size = micro ? dim->size : etch_placed_size(p->placed, dim);
    if (etch_pad_of(p->plan, dim) && !micro && etch_divides(p->sym, divisor, size, NULL) == ETCH_YES)
        return; /* it is padded to that */
    etch_requirement *need = add_requirement(p, dim, axes, size, divisor);
    if (need)
        need->micro = micro;
}

static void require_of(etch_placer *p, const etch_dim *dim, uint32_t axes)
{
    const etch_dim *batch = p->training->train.batch;
    const bool micro =
        batch && etch_dim_is_packed_from(dim, batch) && p->training->train.micro != etch_int(p->sym, 1);
    const bool apart = micro && axes && etch_pad_of(p->plan, dim); /* each microbatch is padded */
    if (apart)
        require(p, dim, 0, true);
    require(p, dim, axes, micro && !apart);
}

void etch_map_require(etch_placer *p, const etch_tensor *tensor, const etch_state *place)
{
    for (uint32_t i = 0; i < tensor->rank; i++)
        require_of(p, tensor->dims[i], etch_axes_held(p->plan, place, tensor->dims[i]));
}

void etch_map_require_pairs(etch_placer *p, const etch_dim *dim, uint32_t axes)
{
    const etch_expr ranks = etch_group_size(p->placed, axes), two = etch_int(p->sym, 2);
    const etch_expr size = etch_placed_size(p->placed, dim);
    const etch_expr chunks = etch_min(p->sym, ranks, two); /* a rank that is alone needs none */
    if (etch_pad_of(p->plan, dim)) {
        if (etch_divides(p->sym, etch_mul(p->sym, ranks, two), size, NULL) == ETCH_YES ||
            etch_divides(p->sym, etch_mul(p->sym, ranks, chunks), size, NULL) == ETCH_YES)
            return;
        add_requirement(p, dim, axes, size, ranks);
    }
    etch_requirement *need = find_requirement(p, dim, axes); /* NULL for a size on average */
    if (!need || need->paired)
        return;
    need->divisor = etch_mul(p->sym, need->divisor, chunks);
    need->paired = true;
}

/* Is the dim divided over all of these axes somewhere, and is not yet known that two chunks fit? */
static bool may_lack_pairs(const etch_placer *p, const etch_dim *dim, uint32_t axes)
{
    bool divided = false;
    for (uint32_t i = 0; i < p->placed->requirements.count; i++) {
        const etch_requirement *r = &p->placed->requirements.at[i];
        if (r->paired && r->axes == axes && r->size == dim->size)
            return false;
        divided = divided || (r->dim == dim && !(axes & ~r->axes));
    }
    return divided;
}

static bool pair_over(etch_placer *p, const etch_dim *dim, uint32_t axes)
{
    require_of(p, dim, axes);
    etch_map_require_pairs(p, dim, axes);
    return !may_lack_pairs(p, dim, axes);
}

/* Does a size that as many ranks or more divide in two chunks each say so? */
static bool has_pairs(const etch_placer *p, const etch_dim *dim, uint32_t axes)
{
    for (uint32_t i = 0; i < p->placed->requirements.count; i++) {
        const etch_requirement *r = &p->placed->requirements.at[i];
        if (r->paired && !(axes & ~r->axes) && r->size == dim->size)
            return true;
    }
    return false;
}

/* The dim lies as a sequence does that the ranks of `axes` share, and other ranks divide it. Those of some of
 * these axes have chunks of several ranks, as many from either end; of all others a shard is any of it, which
 * is whole where the chunks are. */
static bool pair_otherwise(etch_placer *p, const etch_dim *dim, uint32_t axes)
{
    bool changed = false;
    for (uint32_t i = 0; i < p->placed->requirements.count; i++) {
        const etch_requirement r = p->placed->requirements.at[i];
        const uint32_t sharing = r.axes & ~axes ? axes : r.axes;
        if (r.dim == dim && r.axes && !has_pairs(p, dim, sharing))
            changed = pair_over(p, dim, sharing) || changed;
    }
    return changed;
}

/* Shards of `known` are shards of `other`: has this one two chunks for that reason? */
static bool pair_as(etch_placer *p, const etch_dim *known, const etch_dim *other)
{
    bool changed = false;
    for (uint32_t i = 0; i < p->placed->requirements.count; i++) {
        const etch_requirement need = p->placed->requirements.at[i];
        if (!need.paired || first_of(need.dim) != first_of(known))
            continue;
        if (may_lack_pairs(p, other, need.axes) && !has_pairs(p, other, need.axes))
            changed = pair_over(p, other, need.axes) || changed;
        else
            changed = pair_otherwise(p, other, need.axes) || changed;
    }
    return changed;
}

void etch_map_pair_regrouped(etch_placer *p)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (etch_cursor at = {.root = p->graph->forward}; etch_cursor_next(&at);) {
            const etch_attrs *attrs =
                at.item->op && etch_op_is_view(at.item->op) ? &at.item->op->attrs : NULL;
            for (uint32_t i = 0; attrs && i < attrs->from.count; i++)
                if (attrs->from.at[i] && attrs->to.at[i])
                    changed = pair_as(p, attrs->from.at[i], attrs->to.at[i]) ||
                              pair_as(p, attrs->to.at[i], attrs->from.at[i]) || changed;
        }
    }
}
