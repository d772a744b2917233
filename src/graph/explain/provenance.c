/* Why collectives are there, in words. What a placement knows of a collective is its cause and the values
 * before and after it; from these follow what made the value so, what needs it otherwise, and the lines of
 * the plan behind both. */
#include <string.h>

#include "graph/explain/explain.h"
#include "graph/place/placer.h"
#include "graph/step/kernel.h"

const char *etch_rule_name(etch_rule rule)
{
    static const char *const names[ETCH_RULE_COUNT] = {
        [ETCH_RULE_NONE] = "none",           [ETCH_RULE_OPERAND] = "operand",
        [ETCH_RULE_MERGE] = "merge",         [ETCH_RULE_PIN] = "pin",
        [ETCH_RULE_RESULT] = "result",       [ETCH_RULE_ENTER] = "enter",
        [ETCH_RULE_LEAVE] = "leave",         [ETCH_RULE_LOOP] = "loop",
        [ETCH_RULE_STATISTIC] = "statistic", [ETCH_RULE_COTANGENT] = "cotangent",
        [ETCH_RULE_TOTAL] = "total",         [ETCH_RULE_SUMMAND] = "summand",
        [ETCH_RULE_WEIGHT] = "weight",       [ETCH_RULE_REDUCE] = "reduce",
        [ETCH_RULE_UPDATE] = "update",       [ETCH_RULE_SHARED_WEIGHT] = "tie",
        [ETCH_RULE_CLIP] = "clip",           [ETCH_RULE_STAGE] = "stage",
        [ETCH_RULE_WHOLE] = "whole",         [ETCH_RULE_RING] = "ring",
        [ETCH_RULE_OPTIMIZER] = "optimizer",
    };
    return (unsigned)rule < ETCH_RULE_COUNT ? names[rule] : NULL;
}

static const etch_span nowhere = {0, 0};

/* What is being explained, and how. */
typedef const etch_explaining explainer;

static uint32_t axis_count(explainer *t)
{
    return t->placed->plan->mesh.count;
}

/* ---- placements ---------------------------------------------------------------------------------------- */

static uint32_t axes_of_dim(explainer *t, const etch_state *place, uint32_t axes, const etch_dim *dim,
                            uint32_t out[ETCH_MAX_AXES])
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < axis_count(t); a++) {
        if (place[a] != dim || !(axes & t->axes & 1u << a))
            continue;
        uint32_t at = count++;
        for (; at > 0 && etch_map_is_inside(t->placed, dim, out[at - 1], a); at--)
            out[at] = out[at - 1];
        out[at] = a;
    }
    return count;
}

uint32_t etch_place_axes(const etch_explaining *how, const etch_state *place, const etch_dim *dim,
                         uint32_t axes[ETCH_MAX_AXES])
{
    return axes_of_dim(how, place, how->axes, dim, axes);
}

/* "(cp,tp)", with the names that the plan gives to products. */
static void put_axes(const etch_plan *plan, const uint32_t *axes, uint32_t count, etch_buf *out)
{
    const etch_product *all = etch_product_at(plan, axes, count);
    const bool is_list = count > 1 && !(all && all->axis_count == count);
    etch_buf_puts(out, is_list ? "(" : "");
    for (uint32_t i = 0; i < count;) {
        const etch_product *product = etch_product_at(plan, axes + i, count - i);
        etch_buf_printf(out, "%s%s", i ? "," : "", product ? product->name : plan->mesh.at[axes[i]].name);
        i += product ? product->axis_count : 1;
    }
    etch_buf_puts(out, is_list ? ")" : "");
}

/* "S@(cp,tp)"; false when none of the axes divides the dim. */
static bool put_dim(explainer *t, const etch_state *place, uint32_t axes, const etch_dim *dim, const char *at,
                    etch_buf *out)
{
    uint32_t inside[ETCH_MAX_AXES];
    const uint32_t count = axes_of_dim(t, place, axes, dim, inside);
    if (!count)
        return false;
    etch_buf_printf(out, "%s%s", dim->name, at);
    put_axes(t->placed->plan, inside, count, out);
    return true;
}

/* "partial over tp" or "partial maximum over tp", of some axes; NULL: it is neither there. */
static const char *partial_text(explainer *t, const etch_state *place, uint32_t axes)
{
    const uint32_t sums = etch_axes_held(t->placed->plan, place, ETCH_PARTIAL) & t->axes & axes;
    const uint32_t partial = etch_axes_partial(t->placed->plan, place) & t->axes & axes;
    return partial ? etch_text(t->arena, "%s over %s", sums ? "partial" : "partial maximum",
                               etch_axes_label(t->placed, partial))
                   : NULL;
}

static const char *place_text(explainer *t, const etch_tensor *tensor, const etch_state *place)
{
    etch_buf out = {.arena = t->arena};
    etch_buf_puts(&out, "[");
    for (uint32_t i = 0; i < tensor->rank; i++) {
        etch_buf_puts(&out, i ? "," : "");
        if (!put_dim(t, place, t->axes, tensor->dims[i], "@", &out))
            etch_buf_puts(&out, tensor->dims[i]->name);
    }
    etch_buf_puts(&out, "]");
    const char *partial = partial_text(t, place, t->axes);
    if (partial)
        etch_buf_printf(&out, " %s", partial);
    return out.text;
}

const char *etch_value_text(const etch_explaining *how, const etch_value *value)
{
    const char *text = place_text(how, value->tensor, value->place);
    const uint32_t flat = value->sharded_flat & how->axes;
    return flat ? etch_text(how->arena, "%s in parts over %s", text, etch_axes_label(how->placed, flat))
                : text;
}

static const etch_shard *line_of_dim(const etch_placed *placed, const etch_scope *scope, const etch_dim *dim,
                                     uint32_t axis)
{
    const etch_plan_region *around = etch_plan_region_around(placed->plan_regions, scope);
    const etch_shard *mapped = etch_map_dim(placed->plan, around, dim);
    if (mapped && etch_axes_of(mapped->axes, mapped->axis_count) >> axis & 1)
        return mapped;
    return etch_map_entry(placed, dim, 1u << axis);
}

/* Slots that no line divides are divided as the tokens are that fill them. */
static const etch_shard *line_of(const etch_placed *placed, const etch_scope *scope, const etch_dim *dim,
                                 uint32_t axis)
{
    const etch_shard *line = line_of_dim(placed, scope, dim, axis);
    for (uint32_t i = 0; !line && i < dim->packed_from.count; i++)
        line = line_of_dim(placed, scope, dim->packed_from.at[i], axis);
    return line;
}

etch_span etch_place_line(const etch_placed *placed, const etch_scope *scope, const etch_dim *dim,
                          uint32_t axis)
{
    const etch_shard *line = line_of(placed, scope, dim, axis);
    return line ? line->span : nowhere;
}

/* ---- phrases ------------------------------------------------------------------------------------------- */

static void say(explainer *t, etch_phrase_role role, bool of_plan, etch_span span, const char *text)
{
    ETCH_PUSH(t->arena, t->out, (etch_phrase){role, of_plan, text, span});
}

#define explain(t, role, span, ...) \
    say(t, role, (role) == ETCH_PHRASE_LINE, span, etch_text((t)->arena, __VA_ARGS__))

/* What a line of the plan asks for by itself. */
#define explain_by_plan(t, role, line, ...) \
    say(t, role, (line).start != 0, line, etch_text((t)->arena, __VA_ARGS__))

/* Of a line that was told already nothing more is said. */
static void explain_line(explainer *t, const etch_shard *line)
{
    for (uint32_t i = 0; line && i < t->out->count; i++)
        if (t->out->at[i].span.start == line->span.start && t->out->at[i].span.end == line->span.end)
            return;
    if (!line || !line->axis_count)
        return;
    etch_buf text = {.arena = t->arena};
    etch_buf_printf(&text, "%s @ ", line->dim);
    put_axes(t->placed->plan, line->axes, line->axis_count, &text);
    explain(t, ETCH_PHRASE_LINE, line->span, "%s", text.text);
}

static const char *name_of(explainer *t, const etch_tensor *tensor)
{
    const char *name = t->names ? t->names[tensor->id] : NULL;
    return name ? name : tensor->name;
}

static const char *module_of(explainer *t, const etch_scope *scope)
{
    return etch_scope_path(t->arena, scope ? scope : t->placed->training->graph->scopes.at[0], NULL);
}

/* "einsum(x, wq) in llama.block.attention" */
static const char *op_text(explainer *t, const etch_op *op)
{
    etch_buf out = {.arena = t->arena};
    etch_buf_printf(&out, "%s(", etch_row_name(op->row));
    for (uint32_t i = 0; i < op->in_count; i++)
        etch_buf_printf(&out, "%s%s", i ? ", " : "", name_of(t, op->ins[i]));
    etch_buf_printf(&out, ") in %s", module_of(t, op->scope));
    return out.text;
}

/* How a value is held on some axes: "whole", "partial maximum over tp", "divided along S @ tp". */
static const char *state_text(explainer *t, const etch_state *place, uint32_t axes)
{
    etch_buf out = {.arena = t->arena};
    const char *partial = partial_text(t, place, axes);
    if (partial)
        etch_buf_puts(&out, partial);
    for (uint32_t a = 0; a < axis_count(t); a++) {
        bool told = !etch_is_sharded(place[a]) || !(axes >> a & 1);
        for (uint32_t b = 0; b < a && !told; b++)
            told = place[b] == place[a] && axes >> b & 1;
        if (told)
            continue;
        etch_buf_puts(&out, out.length ? ", " : "divided along ");
        put_dim(t, place, axes, place[a], " @ ", &out);
    }
    return out.length ? out.text : "whole";
}

/* ---- what asks for a collective ------------------------------------------------------------------------ */

static const char *part_text(explainer *t, const etch_provenance *provenance)
{
    if (provenance->loop)
        return etch_text(t->arena, "loop %s", provenance->loop->name);
    return provenance->result ? etch_text(t->arena, "the statement of %s", name_of(t, provenance->result))
                              : module_of(t, provenance->scope);
}

/* Is the value, under whatever name, the largest of something, not a sum? */
static bool is_maximum(const etch_tensor *tensor)
{
    const etch_op *op = etch_route_root(etch_origin(tensor))->producer;
    return op && op->row->reduction == ETCH_REDUCTION_MAX;
}

/* `to`: where a value goes that is `moved` over some axes. */
static void explain_need(explainer *t, const etch_provenance *why, const etch_state *to, uint32_t axes,
                         const etch_tensor *moved, etch_phrase_role role)
{
    const etch_tensor *of = why->tensor ? why->tensor : moved;
    const char *name = name_of(t, of), *state = state_text(t, to, axes);
    switch (why->rule) {
    case ETCH_RULE_OPERAND:
        explain(t, role, why->op->span, "needed %s by %s", state, op_text(t, why->op));
        break;
    case ETCH_RULE_MERGE:
        explain(t, role, why->op->span, "needed %s by %s, which merges dims", state, op_text(t, why->op));
        break;
    case ETCH_RULE_STATISTIC:
        explain(t, role, why->op->span, "%s needs a statistic of all shards", op_text(t, why->op));
        break;
    case ETCH_RULE_PIN:
        explain_by_plan(t, role, why->line, "%s is pinned as %s", name, place_text(t, moved, to));
        return;
    case ETCH_RULE_RESULT:
        explain(t, role, of->span, "%s is a result of the run, which is not partial", name);
        break;
    case ETCH_RULE_LOOP:
        explain(t, role, why->loop->span, "loop %s hands %s on as %s", why->loop->name, name,
                place_text(t, moved, to));
        break;
    case ETCH_RULE_ENTER:
        explain_by_plan(t, role, why->line, "%s enters %s, which has it %s", name, part_text(t, why), state);
        break;
    case ETCH_RULE_LEAVE:
        explain_by_plan(t, role, why->line, "%s leaves %s, outside of which it is %s", name,
                        part_text(t, why), state);
        break;
    case ETCH_RULE_COTANGENT:
        explain(t, role, of->span, "a gradient goes to where its value was made: %s is %s", name, state);
        break;
    case ETCH_RULE_TOTAL:
        explain(t, role, of->span, "parts of the gradient of %s are held differently, and are added", name);
        break;
    case ETCH_RULE_SUMMAND:
        explain(t, role, of->span, "%s is a %s of what ranks have, each of which needs the whole gradient",
                name, is_maximum(of) ? "maximum" : "sum");
        break;
    case ETCH_RULE_RING:
        explain_by_plan(t, role, why->line, "%s goes round block by block for %s", name, op_text(t, why->op));
        return;
    case ETCH_RULE_WEIGHT:
        explain(t, role, of->of->span, "the gradient goes to where weight %s is: %s", name_of(t, of->of),
                state);
        break;
    default:
        break;
    }
    const etch_scope *scope = why->op ? why->op->scope : moved->scope;
    for (uint32_t a = 0; role != ETCH_PHRASE_MADE && a < axis_count(t); a++)
        if (axes >> a & 1 && etch_is_sharded(to[a]))
            explain_line(t, line_of(t->placed, scope, to[a], a));
}

/* ---- what made a value so ------------------------------------------------------------------------------ */

/* The operand that a partial value comes from, where the op has not made it itself. */
static etch_value *operand_held(const etch_step *step, uint32_t axis, etch_state state)
{
    for (uint32_t i = 0; i < step->in_count; i++)
        if (step->ins[i]->place[axis] == state)
            return step->ins[i];
    return NULL;
}

static const etch_dim *before_view(const etch_op *op, const etch_dim *dim)
{
    return etch_is_sharded(dim) ? etch_op_dim_before(op, dim) : dim;
}

/* The value that first was as `value` is on `axis`, under views, moves over other axes and what lets it
 * through as it is partial; `dim` becomes what it is divided along there. */
static etch_value *first_so(etch_value *value, uint32_t axis, etch_state *dim)
{
    while (value->step) {
        const etch_step *step = value->step;
        etch_value *before = step->ins && step->in_count ? etch_value_before(value) : NULL;
        if (step->collective != ETCH_NO_COLLECTIVE) {
            if (step->axes >> axis & 1)
                break;
        } else if (etch_op_is_view(step->op)) {
            *dim = before_view(step->op, *dim);
        } else {
            before = etch_is_partial(*dim) && !step->factor[axis] ? operand_held(step, axis, *dim) : NULL;
        }
        if (!before || before->place[axis] != *dim)
            break;
        value = before;
    }
    return value;
}

/* The loop that carries the tensor: into an iteration, or out of the last one. */
static const etch_loop *loop_of(const etch_region *region, const etch_tensor *tensor)
{
    if (!region)
        return NULL;
    for (uint32_t i = 0; region->loop && i < region->carries.count; i++)
        if (region->carries.at[i].in == tensor)
            return region->loop;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < etch_loop_carries(loop)->count; k++)
            if (etch_loop_carries(loop)->at[k].result == tensor)
                return loop;
    }
    return NULL;
}

static const char *kind_of(const etch_tensor *tensor)
{
    return tensor->constant ? "constant" : tensor->kind == ETCH_WEIGHT ? "weight" : "input";
}

static void explain_made(explainer *t, etch_value *value, uint32_t axes)
{
    uint32_t axis = 0;
    while (axis < axis_count(t) && !(axes >> axis & 1))
        axis++;
    if (axis == axis_count(t))
        return;
    etch_state dim = value->place[axis];
    const char *state = state_text(t, value->place, axes);
    etch_value *first = first_so(value, axis, &dim);
    const etch_step *step = first->step;
    const etch_tensor *tensor = first->tensor;
    const etch_scope *scope = tensor->scope;
    if (step && step->collective != ETCH_NO_COLLECTIVE) {
        explain_need(t, &step->provenance, first->place, axes, tensor, ETCH_PHRASE_MADE);
        if (step->provenance.rule == ETCH_RULE_PIN)
            return;
    } else if (step) {
        const etch_dim *reduced = etch_is_partial(dim) ? step->factor[axis] : NULL;
        const char *how = dim == ETCH_PARTIAL ? "sums" : "takes the maximum";
        scope = step->op->scope;
        if (reduced)
            explain(t, ETCH_PHRASE_MADE, step->op->span, "%s from %s, which %s over %s", state,
                    op_text(t, step->op), how, reduced->name);
        else
            explain(t, ETCH_PHRASE_MADE, step->op->span, "%s by %s", state, op_text(t, step->op));
        dim = reduced ? reduced : dim;
    } else if (tensor->kind == ETCH_WEIGHT || tensor->kind == ETCH_INPUT || tensor->constant) {
        explain(t, ETCH_PHRASE_MADE, tensor->span, "%s as %s %s is", state, kind_of(tensor),
                name_of(t, tensor));
    } else {
        const etch_loop *loop = loop_of(tensor->region, tensor);
        explain(t, ETCH_PHRASE_MADE, loop ? loop->span : tensor->span, "%s as %s%s hands it on", state,
                loop ? "loop " : "its loop", loop ? loop->name : "");
    }
    if (etch_is_sharded(dim))
        explain_line(t, line_of(t->placed, scope, dim, axis));
}

/* ---- collectives of steps ------------------------------------------------------------------------------ */

/* Over which dims a statistic is made, as the op divides its work. */
static void explain_statistic(explainer *t, const etch_step *step)
{
    const etch_step *maker = step->ins[0]->step;
    while (maker && maker->collective != ETCH_NO_COLLECTIVE)
        maker = maker->ins[0]->step;
    for (uint32_t a = 0; maker && a < axis_count(t); a++)
        if (step->axes >> a & 1 && maker->factor[a]) {
            explain(t, ETCH_PHRASE_MADE, maker->op->span, "each rank has seen its part of %s",
                    maker->factor[a]->name);
            explain_line(t, line_of(t->placed, maker->op->scope, maker->factor[a], a));
            return;
        }
}

/* The zero line that is there; NULL: none. */
static const etch_zero *zero_at(const explainer *t, etch_span line)
{
    const etch_plan *plan = t->placed->plan;
    for (uint32_t i = 0; i < plan->overrides.count; i++)
        if (line.start && plan->overrides.at[i].zero.span.start == line.start)
            return &plan->overrides.at[i].zero;
    return line.start ? &plan->zero : NULL;
}

static void explain_zero(explainer *t, const etch_provenance *provenance)
{
    const etch_zero *zero = zero_at(t, provenance->line);
    if (zero)
        explain(t, ETCH_PHRASE_LINE, provenance->line, "zero %u @ %s", (unsigned)zero->level,
                etch_axes_label(t->placed, zero->axes));
}

/* Weights that are gathered. */
static void explain_whole(explainer *t, const etch_step *gather)
{
    const etch_loop *loop = gather->provenance.loop;
    explain(t, ETCH_PHRASE_MADE, nowhere, "each rank of %s holds a part of the weights",
            etch_axes_label(t->placed, gather->ins[0]->sharded_flat & t->axes));
    explain_zero(t, &gather->provenance);
    if (loop)
        explain(t, ETCH_PHRASE_NEEDS, loop->span, "an iteration of %s reads them whole", loop->name);
    else if (etch_zero_roots(etch_zero_of(t->placed, gather->outs[0]->tensor), gather->outs[0]->tensor))
        explain(t, ETCH_PHRASE_NEEDS, nowhere,
                "what no iteration has is read whole from here to its backward");
    else
        explain(t, ETCH_PHRASE_NEEDS, nowhere, "what lies between loops reads them whole");
}

void etch_step_explain(const etch_explaining *how, const etch_step *step)
{
    const etch_provenance *why = &step->provenance;
    const uint32_t axes = step->axes & how->axes;
    if (why->rule == ETCH_RULE_WHOLE) {
        explain_whole(how, step);
        return;
    }
    if (why->rule == ETCH_RULE_STATISTIC)
        explain_statistic(how, step);
    else
        explain_made(how, step->ins[0], axes);
    explain_need(how, why, step->outs[0]->place, axes, step->ins[0]->tensor, ETCH_PHRASE_NEEDS);
}

/* ---- the end of a step, and stages --------------------------------------------------------------------- */

/* A step that adds a partial sum over `axis` into the gradient of the weight. */
static const etch_step *summing_step(const etch_placed *placed, const etch_provenance *provenance,
                                     uint32_t axis)
{
    for (etch_placed_cursor at = {.root = placed->backward}; etch_placed_cursor_next(&at);) {
        const etch_step *step = at.item->step;
        for (uint32_t k = 0; step && k < step->out_count; k++) {
            const etch_tensor *gradient = step->accumulate_into[k];
            if (gradient && gradient->of == provenance->tensor && step->outs[k]->place[axis] == ETCH_PARTIAL)
                return step;
        }
    }
    return NULL;
}

/* The step that sums over shards so that the gradient is partial over `axis`; NULL when there is none. */
static const etch_step *maker_of_sum(explainer *t, const etch_provenance *provenance, uint32_t axis)
{
    const etch_step *step = summing_step(t->placed, provenance, axis);
    etch_state dim = ETCH_PARTIAL;
    const etch_step *maker = step ? first_so(step->outs[0], axis, &dim)->step : NULL;
    return maker && maker->factor[axis] ? maker : NULL;
}

static void explain_gradients(explainer *t, const etch_provenance *provenance, uint32_t axes)
{
    for (uint32_t a = 0; a < axis_count(t); a++) {
        const etch_step *maker = axes >> a & 1 ? maker_of_sum(t, provenance, a) : NULL;
        if (!maker)
            continue;
        uint32_t together = 0;
        for (uint32_t b = a; b < axis_count(t); b++)
            if (axes >> b & 1 && maker->factor[b] == maker->factor[a] &&
                maker_of_sum(t, provenance, b) == maker)
                together |= 1u << b;
        explain(t, ETCH_PHRASE_MADE, maker->op->span,
                "gradients are partial over %s: each rank has its part of %s",
                etch_axes_label(t->placed, together), maker->factor[a]->name);
        for (uint32_t b = a; b < axis_count(t); b++)
            if (together >> b & 1)
                explain_line(t, line_of(t->placed, maker->op->scope, maker->factor[a], b));
        axes &= ~together;
    }
}

static void explain_bucket(explainer *t, const etch_provenance *provenance)
{
    const etch_plan *plan = t->placed->plan;
    const char *bucket = plan->bucketing == ETCH_BUCKET_BY_LAYER    ? "layer"
                         : plan->bucketing == ETCH_BUCKET_BY_STEP   ? "step"
                         : plan->bucketing == ETCH_BUCKET_BY_TENSOR ? "ddp"
                                                                    : NULL;
    if (plan->bucket_span.start && !provenance->every_microbatch)
        explain(t, ETCH_PHRASE_LINE, plan->bucket_span, "bucket = %s",
                bucket ? bucket : etch_expr_text(t->placed->training->graph->sym, plan->bucket));
}

/* Whose weights one collective takes. */
static const char *group_text(explainer *t, const etch_provenance *provenance)
{
    const etch_weight_group *weight_group = provenance->weight_group;
    const etch_bucketing by = t->placed->plan->bucketing;
    if ((by == ETCH_BUCKET_BY_STEP || by == ETCH_BUCKET_BY_SIZE) && !provenance->every_microbatch)
        return "all weights here";
    return weight_group && weight_group->loop
               ? etch_text(t->arena, "weights of each iteration of %s", weight_group->loop->name)
               : "weights outside of loops";
}

static void explain_reduction(explainer *t, const etch_provenance *provenance, const char *group)
{
    const char *weights = group_text(t, provenance);
    const etch_zero *sharded = zero_at(t, provenance->line);
    if (sharded && sharded->level > 1)
        explain(t, ETCH_PHRASE_NEEDS, nowhere, "each rank of %s keeps a part of the gradients of %s", group,
                weights);
    else
        explain(t, ETCH_PHRASE_NEEDS, nowhere, "%s are held alike over %s, and updated %s", weights, group,
                sharded ? "in parts" : "alike");
    explain_zero(t, provenance);
    explain_bucket(t, provenance);
}

void etch_provenance_explain(const etch_explaining *how, const etch_provenance *why, uint32_t axes)
{
    const char *group = etch_axes_label(how->placed, axes & how->axes);
    const etch_cut *cut = why->cut;
    switch (why->rule) {
    case ETCH_RULE_REDUCE:
        explain_gradients(how, why, axes & how->axes);
        explain_reduction(how, why, group);
        break;
    case ETCH_RULE_UPDATE:
        explain(how, ETCH_PHRASE_NEEDS, nowhere, "%s were updated in parts over %s, and are held whole",
                group_text(how, why), group);
        explain_zero(how, why);
        explain_bucket(how, why);
        break;
    case ETCH_RULE_SHARED_WEIGHT:
        explain_by_plan(how, ETCH_PHRASE_NEEDS, why->line,
                        "stages that use the same weights add up their gradients");
        break;
    case ETCH_RULE_CLIP:
        explain_by_plan(how, ETCH_PHRASE_NEEDS, why->line,
                        "gradients are clipped by the norm of all of them");
        break;
    case ETCH_RULE_OPTIMIZER:
        explain_by_plan(how, ETCH_PHRASE_NEEDS, why->line,
                        "%s asks what a weight is as a whole, of which ranks of %s update a part each",
                        etch_row_name(etch_optimizer_of(how->placed->training, why->tensor)), group);
        break;
    case ETCH_RULE_STAGE:
        explain_by_plan(how, ETCH_PHRASE_NEEDS, why->line,
                        cut->inside ? "a stage ends between iterations of %s" : "a stage ends before %s",
                        how->placed->stages->segments.at[cut->segment].name);
        break;
    default:
        break;
    }
}
