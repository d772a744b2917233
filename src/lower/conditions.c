/* Conditions on values: one list for traces, which have all of them, and for formulas, which may leave
 * some open. A value that is open is refused only when no number would do. */
#include "lower/lower_int.h"

#include <inttypes.h>
#include <string.h>

/* ---- given values -------------------------------------------------------------------------------------- */

static void check_given(etch_bound *b)
{
    for (uint32_t i = 0; i < b->from->given_count; i++) {
        const etch_given *given = &b->from->given[i];
        etch_expr value = b->values[i];
        if (!value)
            etch_error(b->diags, ETCH_E_BOUND_SIZE, given->span, "the value of %s is undefined", given->name);
        else if (etch_is_constant(value) && !etch_is_integer_constant(value) &&
                 etch_is_integer(b->sym, given->var, NULL) == ETCH_YES)
            etch_error(b->diags, ETCH_E_BOUND_SIZE, given->span, "%s = %s is not an integer", given->name,
                       etch_bound_text(b, value));
    }
}

/* ---- words --------------------------------------------------------------------------------------------- */

/* "K = kv_heads = 8"; "tp = 3" where the size has the name of its variable. */
static const char *named(etch_bound *b, const char *name, etch_expr expr)
{
    const char *text = etch_bound_text(b, expr), *value = etch_bound_text(b, etch_bound_value(b, expr));
    const char *var = expr ? etch_var_name(expr) : NULL;
    if (!expr || etch_is_constant(expr) || etch_bound_value(b, expr) == expr ||
        (var && strcmp(var, name) == 0))
        return etch_text(b->arena, "%s = %s", name, value);
    return etch_text(b->arena, "%s = %s = %s", name, text, value);
}

static const etch_given *given_to(const etch_bound *b, etch_expr var)
{
    for (uint32_t i = 0; i < b->from->given_count; i++)
        if (b->from->given[i].var == var)
            return &b->from->given[i];
    return NULL;
}

/* Says which values `expr` was computed from, and where those stand, but for those of `said`, which may be
 * NULL. */
static void note_other_values(etch_bound *b, etch_diag *diag, etch_expr expr, etch_expr said)
{
    const etch_expr *vars = NULL, *before = NULL;
    const uint32_t count = expr ? etch_vars_of(b->sym, expr, &vars) : 0;
    const uint32_t known = said ? etch_vars_of(b->sym, said, &before) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const etch_given *given = given_to(b, vars[i]);
        for (uint32_t k = 0; k < known; k++)
            given = before[k] == vars[i] ? NULL : given;
        if (given)
            etch_note(diag, given->span, "%s = %s (%s)", given->name,
                      etch_bound_text(b, etch_bound_value(b, vars[i])), given->from);
    }
}

static void note_values(etch_bound *b, etch_diag *diag, etch_expr expr)
{
    note_other_values(b, diag, expr, NULL);
}

/* ---- sizes --------------------------------------------------------------------------------------------- */

static const char *low_text(etch_bound *b, const etch_condition *c)
{
    return c->above ? etch_text(b->arena, "is not above %" PRId64, c->least)
                    : etch_text(b->arena, "is less than %" PRId64, c->least);
}

/* Why a number does not meet the condition; NULL: it does. */
static const char *why_not(etch_bound *b, etch_expr number, const etch_condition *c)
{
    int64_t fits;
    if (!c->fraction && !etch_is_integer_constant(number))
        return "is not an integer";
    const int order = etch_constant_compare(b->sym, number, etch_int(b->sym, c->least));
    if (order < 0 || (order == 0 && c->above))
        return low_text(b, c);
    if (c->share && etch_constant_compare(b->sym, number, etch_int(b->sym, 1)) > 0)
        return "is more than 1";
    return c->fraction || etch_to_i64(number, &fits) ? NULL : "is too large";
}

/* Why no value of what is open makes it meet the condition; NULL: for all that is known, one does. Most sizes
 * are products of what is above 0, and plainly do. */
static const char *why_never(etch_bound *b, etch_expr open, const etch_condition *c)
{
    etch_sym *sym = b->sym;
    const etch_expr least = etch_int(sym, c->least);
    etch_witness witness = {0};
    if (c->above ? etch_at_least(sym, least, open, NULL) == ETCH_YES
                 : etch_at_least(sym, open, least, &witness) != ETCH_YES &&
                       etch_above(sym, least, open, NULL) == ETCH_YES)
        return low_text(b, c);
    if (c->share && etch_above(sym, open, etch_int(sym, 1), NULL) == ETCH_YES)
        return "is more than 1";
    if (c->fraction || etch_is_integer(sym, open, NULL) == ETCH_YES)
        return NULL;
    etch_expr rest = etch_mod(sym, open, etch_int(sym, 1));
    return rest && etch_different(sym, rest, etch_int(sym, 0), NULL) == ETCH_YES ? "is not an integer" : NULL;
}

/* Reports what does not meet its condition. */
static void check_number(etch_bound *b, const etch_asked *asked)
{
    const etch_expr value = etch_bound_value(b, asked->expr);
    const char *why = !value                     ? "is undefined"
                      : !etch_is_constant(value) ? why_never(b, value, &asked->condition)
                                                 : why_not(b, value, &asked->condition);
    if (!why)
        return;
    etch_diag *diag = etch_error(b->diags, ETCH_E_BOUND_SIZE, asked->span, "%s%s %s", asked->kind,
                                 named(b, asked->name, asked->expr), why);
    note_values(b, diag, asked->expr);
}

/* The value of a size, which is at least 1; 0: it has none, or a wrong one. */
static uint64_t size_of(etch_bound *b, etch_expr expr)
{
    uint64_t size;
    return etch_to_u64(etch_bound_value(b, expr), &size) ? size : 0;
}

/* ---- what is asked for --------------------------------------------------------------------------------- */

/* A number, if it is there. */
static void ask(etch_bound *b, etch_expr expr, etch_condition condition, etch_span span, const char *kind,
                const char *name)
{
    if (expr)
        ETCH_PUSH(b->arena, &b->asked, (etch_asked){expr, condition, span, kind, name, false});
}

static const etch_condition count = {.least = 1}, count_or_none = {.least = 0}, average = {.fraction = true};

/* Those that tensors have, in the order of the graph. */
static void ask_dims(etch_bound *b, const etch_graph *graph)
{
    etch_map used = {0};
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        for (uint32_t d = 0; d < graph->tensors.at[i]->rank; d++)
            etch_map_set(b->arena, &used, graph->tensors.at[i]->dims[d], graph);
    for (uint32_t i = 0; i < graph->dims.count; i++) {
        const etch_dim *dim = graph->dims.at[i];
        if (etch_map_find(&used, dim))
            ask(b, dim->size,
                dim->average_sized  ? average
                : dim->may_be_empty ? count_or_none
                                    : count,
                dim->span, "dim ", dim->name);
    }
}

/* Of the plan, where it says what is recomputed, else of the train block. */
static void ask_recompute(etch_bound *b, const etch_recompute *recompute)
{
    for (uint32_t i = 0; i < recompute->selectors.count; i++)
        ask(b, recompute->selectors.at[i].first, count_or_none, recompute->selectors.at[i].span, "",
            "the number of iterations that are recomputed");
}

static void ask_plan(etch_bound *b, const etch_plan *plan)
{
    const etch_stage_line *line = plan->stage;
    for (uint32_t i = 0; i < plan->mesh.count; i++)
        ask(b, plan->mesh.at[i].size, count, plan->mesh.at[i].span, "mesh axis ", plan->mesh.at[i].name);
    ask(b, plan->ranks.count, count, plan->ranks.span, "", "the number of ranks");
    if (line)
        ask(b, line->chunks, count, line->span, "", "the number of chunks of a stage");
    for (uint32_t i = 0; line && i < line->count_count; i++)
        ask(b, line->counts[i], count, line->span, "",
            etch_text(b->arena, "count %" PRIu32 " of the stages' units", i + 1));
    for (uint32_t i = 0; i < plan->pads.count; i++)
        ask(b, plan->pads.at[i].multiple, count, plan->pads.at[i].span, "", "what a dim is padded to");
    if (plan->bucketing == ETCH_BUCKET_BY_SIZE)
        ask(b, plan->bucket, count, plan->bucket_span, "", "the size of buckets");
}

/* The numbers of a call. */
static void ask_op(etch_bound *b, const etch_op *op)
{
    static const etch_condition conditions[] = {
        [ETCH_COUNT] = {.least = 1},
        [ETCH_COUNT_OR_NONE] = {.least = 0},
        [ETCH_POSITIVE] = {.above = true, .fraction = true},
        [ETCH_NOT_NEGATIVE] = {.fraction = true},
        [ETCH_SHARE] = {.fraction = true, .share = true},
    };
    const unsigned takes = etch_row_takes(op->row);
    etch_attrs attrs = op->attrs;
    const etch_keyword_info *info;
    for (uint32_t i = 0; takes && (info = etch_keyword_at(i)) != NULL; i++) {
        if (info->kind != ETCH_KIND_NUMBER || !(takes & info->bit))
            continue;
        const etch_expr number = *etch_keyword_field_of(info, &attrs).number;
        const etch_number_range range = info->name ? info->range : etch_row_number(op->row);
        if (number && range != ETCH_ANY_NUMBER)
            ETCH_PUSH(b->arena, &b->asked,
                      (etch_asked){number, conditions[range], op->span,
                                   etch_text(b->arena, "%s: ", etch_row_name(op->row)),
                                   info->name ? info->name : "its number", true});
    }
}

static void ask_loop(etch_bound *b, const etch_loop *loop)
{
    ask(b, loop->count, count_or_none, loop->span, "",
        etch_text(b->arena, "the count of loop %s", loop->name));
}

/* The counts of loops, and the numbers of calls; `root` is a region. */
static void ask_region(etch_bound *b, const etch_region *root)
{
    for (etch_cursor at = {.root = root}; etch_cursor_next(&at);)
        if (at.item->loop)
            ask_loop(b, at.item->loop);
        else
            ask_op(b, at.item->op);
}

/* Loops that never run are no part of the program: what stands there is asked for all the same. */
static void ask_idle_loop(etch_bound *b, const etch_loop *loop)
{
    ask_loop(b, loop);
    for (uint32_t i = 0; i < loop->bodies.count; i++)
        ask_region(b, loop->bodies.at[i]);
}

void etch_bound_ask(etch_bound *b)
{
    const etch_training *training = b->from->training;
    if (!training) /* then only assumptions are looked at */
        return;
    const etch_graph *graph = training->graph;
    const etch_span train = training->train.span;
    ask(b, training->train.micro, count, train, "", "the number of microbatches");
    ask(b, graph->steps, count, train, "", "the number of steps");
    ask_recompute(b, &training->train.recompute);
    ask_dims(b, graph);
    ask_region(b, graph->forward);
    for (uint32_t i = 0; i < graph->idle_loops.count; i++)
        ask_idle_loop(b, graph->idle_loops.at[i]);
    if (b->from->placed)
        ask_plan(b, b->from->placed->plan);
}

/* ---- the plan ------------------------------------------------------------------------------------------ */

/* "dp = 2, tp = 4" */
static const char *mesh_text(etch_bound *b, const etch_extent *extent)
{
    etch_buf text = {.arena = b->arena};
    for (uint32_t i = 0; i < extent->axis_count; i++)
        etch_buf_printf(&text, "%s%s = %" PRIu32, i ? ", " : "", b->from->placed->plan->mesh.at[i].name,
                        extent->axis_size[i]);
    return text.length ? text.text : "no axes";
}

/* The axis alone would make it up: its size, or 0. */
static uint64_t fitting_size(const etch_extent *extent, uint32_t axis, uint64_t ranks)
{
    const uint32_t others = extent->axis_size[axis] ? extent->rank_count / extent->axis_size[axis] : 0;
    return others > 0 && ranks % others == 0 ? ranks / others : 0;
}

/* Has the mesh, all of whose axes have values, as many ranks as the plan asks for? */
static void check_ranks(etch_bound *b, const etch_extent *extent)
{
    const etch_plan *plan = b->from->placed->plan;
    const uint64_t ranks = size_of(b, plan->ranks.count);
    if (ranks == 0 || ranks == extent->rank_count || extent->rank_count > ETCH_MAX_RANKS)
        return;
    etch_diag *diag = etch_error(b->diags, ETCH_E_RANKS, plan->ranks.span,
                                 "the plan asks for %" PRIu64 " ranks, and its mesh has %" PRIu32, ranks,
                                 extent->rank_count);
    etch_note(diag, plan->mesh.count ? plan->mesh.at[0].span : plan->span, "the mesh: %s",
              mesh_text(b, extent));
    note_values(b, diag, plan->ranks.count);
    for (uint32_t i = 0; i < plan->mesh.count; i++) {
        const char *name = etch_var_name(plan->mesh.at[i].size);
        const uint64_t size = fitting_size(extent, i, ranks);
        if (name && size > 0) {
            etch_help(diag, "%s = %" PRIu64 " would make %" PRIu64, name, size, ranks);
            return;
        }
    }
}

/* Sizes of the axes, as far as they have values; false: not all have. */
static bool measure_mesh(etch_bound *b, etch_extent *extent)
{
    const etch_plan *plan = b->from->placed->plan;
    const uint64_t too_many = ETCH_MAX_RANKS + 1;
    uint64_t ranks = 1;
    bool known = true;
    extent->axis_count = plan->mesh.count;
    for (uint32_t i = 0; i < plan->mesh.count; i++) {
        uint64_t size = size_of(b, plan->mesh.at[i].size);
        size = size > too_many ? too_many : size;
        known = known && size > 0;
        ranks = ranks * (size > 0 ? size : 1) > too_many ? too_many : ranks * (size > 0 ? size : 1);
        extent->axis_size[i] = (uint32_t)size;
        if (size > 1)
            extent->larger_axes |= UINT32_C(1) << i;
    }
    extent->rank_count = (uint32_t)ranks;
    return known;
}

/* The shape of the pipeline. */
static etch_pipe measure_pipe(etch_bound *b, const etch_extent *extent)
{
    const etch_placed *placed = b->from->placed;
    const etch_stage_line *line = placed->plan->stage;
    const uint64_t micro = size_of(b, placed->training->train.micro);
    etch_pipe pipe = {etch_schedule_default(), 1, 1, micro ? micro : 1, placed->backward != NULL};
    uint64_t stages = 1;
    for (uint32_t i = 0; line && i < line->axis_count && stages <= ETCH_MAX_RANKS; i++)
        stages *= extent->axis_size[line->axes[i]];
    if (stages <= 1 || stages > ETCH_MAX_RANKS)
        return pipe;
    const uint64_t chunks = size_of(b, line->chunks);
    pipe.schedule = line->schedule;
    pipe.stages = (uint32_t)stages;
    pipe.chunks = chunks > ETCH_MOST_CHUNKS ? ETCH_MOST_CHUNKS : chunks ? (uint32_t)chunks : 1;
    return pipe;
}

/* ---- facts --------------------------------------------------------------------------------------------- */

static bool divides(etch_sym *sym, etch_expr divisor, etch_expr number)
{
    etch_expr quotient = etch_div(sym, number, divisor);
    return quotient && etch_is_integer_constant(quotient);
}

static bool fact_holds(etch_sym *sym, etch_relation relation, etch_expr left, etch_expr right)
{
    if (relation == ETCH_REL_TRUE)
        return !etch_is_zero(left);
    if (relation == ETCH_REL_DIVIDES)
        return divides(sym, left, right);
    return etch_constants_hold(sym, relation, left, right);
}

static void check_fact(etch_bound *b, const etch_claim *fact)
{
    static const char *const broken[] = {
        [ETCH_REL_EQ] = "is not equal to",      [ETCH_REL_NE] = "is equal to",
        [ETCH_REL_LE] = "is greater than",      [ETCH_REL_GE] = "is less than",
        [ETCH_REL_LT] = "is not less than",     [ETCH_REL_GT] = "is not greater than",
        [ETCH_REL_DIVIDES] = "does not divide", [ETCH_REL_TRUE] = "is false",
    };
    bool unary = fact->relation == ETCH_REL_TRUE;
    if (!fact->left || (!unary && !fact->right))
        return;
    etch_expr left = etch_bound_value(b, fact->left), right = unary ? left : etch_bound_value(b, fact->right);
    if ((left && !etch_is_constant(left)) || (right && !etch_is_constant(right)))
        return;
    if (left && right && fact_holds(b->sym, fact->relation, left, right))
        return;
    etch_diag *diag =
        etch_error(b->diags, ETCH_E_FACT_BROKEN, fact->span, "assumption '%s' does not hold: %s %s%s%s",
                   fact->text, etch_bound_text(b, left), broken[fact->relation], unary ? "" : " ",
                   unary ? "" : etch_bound_text(b, right));
    /* A variable on both sides is noted once. */
    note_values(b, diag, unary ? fact->left : etch_add(b->sym, etch_pow(b->sym, fact->left, 2), fact->right));
}

/* ---- requirements of the plan -------------------------------------------------------------------------- */

/* "dp * tp" of "dp" and "tp" */
static const char *product(etch_bound *b, const char *factors, const char *factor)
{
    return *factors ? etch_text(b->arena, "%s * %s", factors, factor) : factor;
}

/* The divisor in words: "mesh axis tp = 3", "mesh axes dp * tp = 8 * 3 = 24". */
static const char *describe_divisor(etch_bound *b, const etch_requirement *r)
{
    const etch_plan *plan = b->from->placed->plan;
    const char *names = "", *values = "";
    uint32_t axes = 0;
    for (uint32_t i = 0; i < plan->mesh.count; i++)
        if (r->axes >> i & 1) {
            names = product(b, names, plan->mesh.at[i].name);
            values = product(b, values, etch_bound_text(b, etch_bound_value(b, plan->mesh.at[i].size)));
            axes++;
        }
    const char *kind = axes == 0 ? "the number of " : axes == 1 ? "mesh axis " : "mesh axes ";
    if (r->paired) {
        names = product(b, names, "2");
        values = product(b, values, "2");
    }
    if (r->micro) {
        const etch_expr micro = b->from->training->train.micro;
        names = product(b, names, "microbatches");
        values = product(b, values, etch_bound_text(b, etch_bound_value(b, micro)));
    }
    const char *total = etch_bound_text(b, etch_bound_value(b, r->divisor));
    if (axes + r->paired + r->micro <= 1)
        return *names ? etch_text(b->arena, "%s%s = %s", kind, names, total) : total;
    return etch_text(b->arena, "%s%s = %s = %s", kind, names, values, total);
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The common divisor of the sizes of all requirements with this divisor; 0 when one of them is too large for
 * it. */
static int64_t common_size(etch_bound *b, etch_expr divisor)
{
    int64_t common = 0, size;
    for (uint32_t i = 0; i < b->from->placed->requirements.count; i++) {
        const etch_requirement *r = &b->from->placed->requirements.at[i];
        if (r->divisor != divisor)
            continue;
        if (!etch_to_i64(etch_bound_value(b, r->size), &size) || size < 1)
            return 0;
        common = common_divisor(size, common);
    }
    return common;
}

/* The nearest sizes of the one axis that would divide all that it must, looked for a while in both
 * directions. */
static void suggest_axis(etch_bound *b, etch_diag *diag, const etch_requirement *r)
{
    enum { TRIES = 4096 };
    int64_t size = common_size(b, r->divisor), divisor;
    const char *name = etch_var_name(r->divisor);
    if (!name || r->micro || size < 1 || !etch_to_i64(etch_bound_value(b, r->divisor), &divisor) ||
        divisor < 1)
        return;
    int64_t below = divisor < size ? divisor : size, above = 0;
    for (int i = 0; i < TRIES && below > 1 && size % below != 0; i++)
        below--;
    for (int64_t i = divisor; i < size && i < divisor + TRIES && above == 0; i++)
        if (size % i == 0)
            above = i;
    if (size % below == 0 && above > 0)
        etch_help(diag, "%s = %" PRId64 " or %" PRId64 " would divide", name, below, above);
    else if (size % below == 0)
        etch_help(diag, "%s = %" PRId64 " would divide", name, below);
}

static void suggest_two_axes(etch_bound *b, etch_diag *diag, const etch_requirement *r)
{
    int64_t size, divisor;
    if (!etch_to_i64(etch_bound_value(b, r->size), &size) ||
        !etch_to_i64(etch_bound_value(b, r->divisor), &divisor))
        return;
    const char *advice = etch_two_axes_text(b->from->placed, r, size, divisor);
    if (advice)
        etch_help(diag, "or spread two dims over two axes: %s", advice);
}

/* Of what is open it is enough that a value may do: of what the spec alone excludes, nobody has given one. */
static bool is_met(etch_bound *b, const etch_requirement *r)
{
    etch_expr size = etch_bound_value(b, r->size), divisor = etch_bound_value(b, r->divisor);
    if (!size || !divisor || (size == r->size && divisor == r->divisor && !etch_is_constant(size)))
        return true; /* undefined is reported of dims and axes */
    if (etch_is_constant(size) && etch_is_constant(divisor))
        return divides(b->sym, divisor, size);
    return etch_above(b->sym, divisor, size, NULL) != ETCH_YES;
}

/* The dim that this one was renamed from as a whole, which is the one that a plan pads. */
static const etch_dim *first_name(const etch_dim *dim)
{
    while (dim->alias && dim->alias->size == dim->size)
        dim = dim->alias;
    return dim;
}

/* Of what the same axes ask of the dim under all its names: two chunks for each rank, if anything does. */
static const etch_requirement *strictest(const etch_placed *placed, const etch_requirement *r)
{
    for (uint32_t i = 0; i < placed->requirements.count; i++) {
        const etch_requirement *other = &placed->requirements.at[i];
        if (other->paired && other->axes == r->axes && first_name(other->dim) == first_name(r->dim))
            return other;
    }
    return r;
}

/* Each microbatch is padded. */
static void suggest_padding(etch_bound *b, etch_diag *diag, const etch_requirement *r)
{
    const etch_placed *placed = b->from->placed;
    const etch_dim *dim = first_name(r->dim);
    const etch_pad *pad = etch_pad_of(placed->plan, dim);
    etch_requirement of_microbatches = *r;
    of_microbatches.divisor = r->micro ? placed->training->train.micro : etch_int(b->sym, 1);
    if (!r->axes || !is_met(b, &of_microbatches) || (!pad && !etch_may_be_padded(placed, dim)))
        return;
    const char *multiple =
        etch_expr_text(b->sym, etch_div(b->sym, strictest(placed, r)->divisor, of_microbatches.divisor));
    if (pad)
        etch_help(diag, "the plan rounds it up to a multiple of %s: it takes one of %s",
                  etch_expr_text(b->sym, pad->multiple), multiple);
    else
        etch_help(diag, "or let ranks round it up, in the plan: pad %s = %s", dim->name, multiple);
}

/* One wrong divisor is one mistake, whatever it fails to divide: the first dim is the message, the others are
 * notes. */
static void check_requirement(etch_bound *b, uint32_t index)
{
    const etch_requirement *all = b->from->placed->requirements.at, *r = &all[index];
    if (is_met(b, r))
        return;
    for (uint32_t i = 0; i < index; i++)
        if (all[i].divisor == r->divisor && !is_met(b, &all[i]))
            return;
    etch_diag *diag = etch_error(b->diags, ETCH_E_NOT_DIVISIBLE, r->span, "%s is not divisible by %s",
                                 named(b, r->dim->name, r->size), describe_divisor(b, r));
    etch_note(diag, r->dim->span, "%s is declared here", r->dim->name);
    note_values(b, diag, r->size);
    note_other_values(b, diag, r->divisor, r->size);
    if (r->paired)
        etch_note(diag, r->span, "each rank has two chunks of %s, so that all do the same causal work",
                  r->dim->name);
    for (uint32_t i = index + 1; i < b->from->placed->requirements.count; i++)
        if (all[i].divisor == r->divisor && !is_met(b, &all[i]))
            etch_note(diag, all[i].span, "%s is not divisible either",
                      named(b, all[i].dim->name, all[i].size));
    suggest_axis(b, diag, r);
    suggest_two_axes(b, diag, r);
    suggest_padding(b, diag, r);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

/* Each step would say again what the one before has found. */
bool etch_check_values(etch_bound *b, etch_extent *extent)
{
    const etch_placed *placed = b->from->placed;
    const uint32_t errors = etch_error_count(b->diags);
    check_given(b);
    for (uint32_t i = 0; i < b->from->fact_count; i++)
        check_fact(b, &b->from->facts[i]);
    if (etch_error_count(b->diags) != errors)
        return false;
    for (uint32_t i = 0; i < b->asked.count; i++)
        check_number(b, &b->asked.at[i]);
    if (placed && measure_mesh(b, extent))
        check_ranks(b, extent);
    if (placed)
        extent->pipe = measure_pipe(b, extent);
    if (etch_error_count(b->diags) != errors)
        return false;
    if (placed && placed->plan->stage)
        etch_pipe_fits(b->diags, placed->plan->stage->span, &extent->pipe);
    for (uint32_t i = 0; placed && i < placed->requirements.count; i++)
        check_requirement(b, i);
    return etch_error_count(b->diags) == errors;
}
