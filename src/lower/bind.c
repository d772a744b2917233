/* From expressions to numbers: what has a value, and whether the values may stand together. */
#include "lower/lower_int.h"

#include <inttypes.h>
#include <string.h>

typedef struct bound_entry {
    etch_expr expr, value;
} bound_entry;

/* A variable without a value and the first thing that needs it. */
typedef struct missing_value {
    etch_expr var;
    etch_span span;
    const char *what;
} missing_value;

struct etch_bound {
    etch_arena *arena;
    etch_sym *sym;
    etch_diags *diags;
    const etch_lower_options *options;
    const etch_placed *placed;
    const etch_graph *graph;
    etch_expr *vars, *values;
    bound_entry *entries; /* open addressing; capacity is a power of two */
    size_t entry_count, capacity;
    ETCH_VEC(missing_value) missing;
};

/* ---- values -------------------------------------------------------------------------------------------- */

static bound_entry *find_entry(bound_entry *entries, size_t capacity, etch_expr expr)
{
    uint64_t hash = (uint64_t)(uintptr_t)expr * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(hash >> 32) & (capacity - 1);
    while (entries[at].expr && entries[at].expr != expr)
        at = (at + 1) & (capacity - 1);
    return &entries[at];
}

static void grow_entries(etch_bound *b)
{
    size_t capacity = b->capacity == 0 ? 256 : b->capacity * 2;
    bound_entry *entries = ETCH_NEW_ARRAY(b->arena, capacity, bound_entry);
    for (size_t i = 0; i < b->capacity; i++)
        if (b->entries[i].expr)
            *find_entry(entries, capacity, b->entries[i].expr) = b->entries[i];
    b->entries = entries;
    b->capacity = capacity;
}

etch_expr etch_bound_value(etch_bound *b, etch_expr expr)
{
    if (!expr || etch_is_constant(expr))
        return expr;
    if (b->entry_count >= b->capacity / 2)
        grow_entries(b);
    bound_entry *entry = find_entry(b->entries, b->capacity, expr);
    if (!entry->expr) {
        entry->expr = expr;
        entry->value = etch_subst(b->sym, expr, b->options->given_count, b->vars, b->values);
        b->entry_count++;
    }
    return entry->value;
}

/* Puts values into values until they are numbers, or stay as they are. */
static void settle_given(etch_bound *b)
{
    const etch_lower_options *o = b->options;
    b->vars = ETCH_NEW_ARRAY(b->arena, o->given_count, etch_expr);
    b->values = ETCH_NEW_ARRAY(b->arena, o->given_count, etch_expr);
    for (uint32_t i = 0; i < o->given_count; i++) {
        b->vars[i] = o->given[i].var;
        b->values[i] = o->given[i].value;
    }
    bool changed = true;
    for (uint32_t round = 0; changed && round < o->given_count; round++) {
        changed = false;
        for (uint32_t i = 0; i < o->given_count; i++) {
            if (!b->values[i] || etch_is_constant(b->values[i]))
                continue;
            etch_expr value = etch_subst(b->sym, b->values[i], o->given_count, b->vars, b->values);
            changed = changed || value != b->values[i];
            b->values[i] = value;
        }
    }
}

/* ---- messages ------------------------------------------------------------------------------------------ */

const char *etch_bound_text(etch_bound *b, etch_expr expr)
{
    return expr ? etch_expr_text(b->sym, expr) : "undefined";
}

/* "K = kv_heads = 8"; "tp = 3" where the size has the name of its variable. */
static const char *named_value(etch_bound *b, const char *name, etch_expr expr)
{
    const char *text = etch_bound_text(b, expr), *value = etch_bound_text(b, etch_bound_value(b, expr));
    const char *var = expr ? etch_var_name(expr) : NULL;
    if (!expr || etch_is_constant(expr) || (var && strcmp(var, name) == 0))
        return etch_text(b->arena, "%s = %s", name, value);
    return etch_text(b->arena, "%s = %s = %s", name, text, value);
}

static const etch_given *given_to(const etch_bound *b, etch_expr var)
{
    for (uint32_t i = 0; i < b->options->given_count; i++)
        if (b->options->given[i].var == var)
            return &b->options->given[i];
    return NULL;
}

/* Says which values `expr` was computed from, and where those stand. */
static void note_values(etch_bound *b, etch_diag *diag, etch_expr expr)
{
    const etch_expr *vars = NULL;
    uint32_t count = expr ? etch_vars_of(b->sym, expr, &vars) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const etch_given *given = given_to(b, vars[i]);
        if (given)
            etch_note(diag, given->span, "%s = %s (%s)", given->name,
                      etch_bound_text(b, etch_bound_value(b, vars[i])), given->from);
    }
}

/* ---- what needs a value -------------------------------------------------------------------------------- */

static bool is_known_missing(const etch_bound *b, etch_expr var)
{
    for (uint32_t i = 0; i < b->missing.count; i++)
        if (b->missing.at[i].var == var)
            return true;
    return false;
}

/* `what` is a format for `name`. */
static void need(etch_bound *b, etch_expr expr, etch_span span, const char *kind, const char *name)
{
    etch_expr value = etch_bound_value(b, expr);
    if (!value || etch_is_constant(value))
        return;
    const etch_expr *vars;
    uint32_t count = etch_vars_of(b->sym, value, &vars);
    for (uint32_t i = 0; i < count; i++) {
        if (is_known_missing(b, vars[i]))
            continue;
        const char *what = etch_text(b->arena, "%s%s%s", kind, name ? " " : "", name ? name : "");
        ETCH_PUSH(b->arena, &b->missing, (missing_value){vars[i], span, what});
    }
}

static void need_region(etch_bound *b, const etch_placed_region *region, uint32_t depth)
{
    if (depth > ETCH_LOOP_DEPTH)
        return; /* the outline refuses it */
    for (uint32_t i = 0; i < region->kernels.count; i++) {
        const etch_kernel *kernel = region->kernels.at[i];
        const etch_op *op = kernel->anchor->op;
        etch_span span = op ? op->span : (etch_span){0, 0};
        need(b, kernel->flop, span, "this op", NULL);
        need(b, kernel->bytes, span, "this op", NULL);
    }
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (!loop)
            continue;
        need(b, loop->loop->count, loop->loop->span, "loop", loop->loop->name);
        for (uint32_t k = 0; k < loop->bodies.count; k++) {
            need(b, loop->loop->bodies.at[k]->count, loop->loop->span, "loop", loop->loop->name);
            need_region(b, loop->bodies.at[k], depth + 1);
        }
    }
}

/* Dims that tensors have, each once, in the order of the graph. */
static uint32_t used_dims(etch_bound *b, const etch_dim ***used)
{
    const etch_graph *graph = b->graph;
    uint32_t count = 0, id_end = 0;
    for (uint32_t i = 0; i < graph->dims.count; i++)
        if (graph->dims.at[i]->id >= id_end)
            id_end = graph->dims.at[i]->id + 1;
    bool *marks = ETCH_NEW_ARRAY(b->arena, id_end, bool);
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        for (uint32_t d = 0; d < graph->tensors.at[i]->rank; d++)
            marks[graph->tensors.at[i]->dims[d]->id] = true;
    *used = ETCH_NEW_ARRAY(b->arena, graph->dims.count, const etch_dim *);
    for (uint32_t i = 0; i < graph->dims.count; i++)
        if (marks[graph->dims.at[i]->id])
            (*used)[count++] = graph->dims.at[i];
    return count;
}

static void need_all(etch_bound *b)
{
    const etch_placed *placed = b->placed;
    const etch_train *train = &placed->training->train;
    const etch_dim **dims;
    uint32_t dim_count = used_dims(b, &dims);
    for (uint32_t i = 0; i < dim_count; i++)
        need(b, dims[i]->size, dims[i]->span, "dim", dims[i]->name);
    for (uint32_t i = 0; i < placed->plan->mesh.count; i++) {
        const etch_axis *axis = &placed->plan->mesh.at[i];
        need(b, axis->size, axis->span, "mesh axis", axis->name);
    }
    if (placed->plan->ranks.count)
        need(b, placed->plan->ranks.count, placed->plan->ranks.span, "the number of ranks", NULL);
    for (uint32_t i = 0; i < placed->plan->pads.count; i++)
        need(b, placed->plan->pads.at[i].multiple, placed->plan->pads.at[i].span, "the padding of dim",
             placed->plan->pads.at[i].dim);
    need(b, train->micro, train->span, "the number of microbatches", NULL);
    for (uint32_t i = 0; i < placed->requirements.count; i++) {
        const etch_requirement *r = &placed->requirements.at[i];
        need(b, r->size, r->span, "the division of dim", r->dim->name);
        need(b, r->divisor, r->span, "the division of dim", r->dim->name);
    }
    need_region(b, placed->forward, 0);
    if (placed->backward)
        need_region(b, placed->backward, 0);
    for (uint32_t i = 0; i < placed->buckets.count; i++)
        need(b, placed->buckets.at[i].bytes, train->span, "the sum of gradients", NULL);
    for (uint32_t i = 0; i < placed->ties.count; i++)
        need(b, placed->ties.at[i].bytes, train->span, "the sum of gradients", NULL);
    for (uint32_t i = 0; i < placed->gathers.count; i++)
        need(b, placed->gathers.at[i].bytes, train->span, "the gathering of weights", NULL);
    for (uint32_t i = 0; i < placed->updates.count; i++) {
        need(b, placed->updates.at[i].flop, train->span, "the optimizer", NULL);
        need(b, placed->updates.at[i].bytes, train->span, "the optimizer", NULL);
    }
}

static void need_buckets(etch_bound *b)
{
    const etch_plan *plan = b->placed->plan;
    if (plan->bucketing == ETCH_BUCKET_BY_SIZE)
        need(b, plan->bucket, plan->bucket_span, "the size of buckets", NULL);
}

static void need_stages(etch_bound *b)
{
    const etch_stages *stages = b->placed->stages;
    if (!stages)
        return;
    need(b, stages->units, stages->line->span, "the chain of stages", NULL);
    need(b, stages->line->chunks, stages->line->span, "the schedule", NULL);
    for (uint32_t i = 0; i < stages->line->count_count; i++)
        need(b, stages->line->counts[i], stages->line->span, "the count of units", NULL);
    for (uint32_t i = 0; i < stages->cuts.count; i++) {
        need(b, stages->cuts.at[i].forward_bytes, stages->line->span, "the message between stages", NULL);
        need(b, stages->cuts.at[i].backward_bytes, stages->line->span, "the message between stages", NULL);
    }
}

static void report_missing(etch_bound *b)
{
    if (b->missing.count == 0)
        return;
    etch_buf names = {.arena = b->arena}, set = {.arena = b->arena};
    for (uint32_t i = 0; i < b->missing.count; i++) {
        const char *name = etch_var_name(b->missing.at[i].var);
        etch_buf_printf(&names, "%s%s", i > 0 ? ", " : "", name);
        etch_buf_printf(&set, "%s%s=...", i > 0 ? "," : "", name);
    }
    const missing_value *first = &b->missing.at[0];
    etch_diag *diag = etch_error(b->diags, ETCH_E_UNBOUND, first->span, "no value for %s", names.text);
    for (uint32_t i = 0; i < b->missing.count; i++) {
        const missing_value *m = &b->missing.at[i];
        etch_note(diag, m->span, "%s needs %s", m->what, etch_var_name(m->var));
    }
    etch_help(diag, "give %s: --set %s", b->missing.count > 1 ? "them" : "it", set.text);
}

/* ---- what values must be ------------------------------------------------------------------------------- */

static void check_given(etch_bound *b)
{
    for (uint32_t i = 0; i < b->options->given_count; i++) {
        const etch_given *given = &b->options->given[i];
        etch_expr value = b->values[i];
        if (!value)
            etch_error(b->diags, ETCH_E_BOUND_SIZE, given->span, "the value of %s is undefined", given->name);
        else if (etch_is_constant(value) && !etch_is_integer_constant(value) &&
                 etch_is_integer(b->sym, given->var, NULL) == ETCH_YES)
            etch_error(b->diags, ETCH_E_BOUND_SIZE, given->span, "%s = %s is not an integer", given->name,
                       etch_bound_text(b, value));
    }
}

/* Is `expr` an integer from `least` on, that fits? Reports what is not, as kind and name. */
static bool check_size(etch_bound *b, etch_expr expr, int64_t least, etch_span span, const char *kind,
                       const char *name, uint64_t *size)
{
    etch_expr value = etch_bound_value(b, expr);
    if (value && !etch_is_constant(value))
        return false; /* reported as missing */
    int64_t number = 0;
    bool fits = value && etch_to_i64(value, &number);
    if (fits && number >= least) {
        *size = (uint64_t)number;
        return true;
    }
    const char *why = "is undefined";
    if (value && !etch_is_integer_constant(value))
        why = "is not an integer";
    else if (value)
        why = fits || etch_constant_compare(b->sym, value, etch_int(b->sym, 0)) < 0
                  ? etch_text(b->arena, "is less than %" PRId64, least)
                  : "is too large";
    etch_diag *diag =
        etch_error(b->diags, ETCH_E_BOUND_SIZE, span, "%s%s %s", kind, named_value(b, name, expr), why);
    note_values(b, diag, expr);
    return false;
}

static void check_dims(etch_bound *b)
{
    const etch_plan *plan = b->placed->plan;
    uint64_t multiple;
    for (uint32_t i = 0; i < plan->pads.count; i++)
        check_size(b, plan->pads.at[i].multiple, 1, plan->pads.at[i].span, "", "what a dim is padded to",
                   &multiple);
    const etch_dim **dims;
    uint32_t count = used_dims(b, &dims);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t size;
        if (!dims[i]->ragged) /* an average may be a fraction */
            check_size(b, dims[i]->size, 1, dims[i]->span, "dim ", dims[i]->name, &size);
    }
}

static void check_loops(etch_bound *b, const etch_placed_region *region, uint32_t depth)
{
    if (depth > ETCH_LOOP_DEPTH)
        return;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (!loop)
            continue;
        uint64_t count;
        const char *what = etch_text(b->arena, "the count of loop %s", loop->loop->name);
        if (!loop->loop->forward) /* a backward loop has the count of the loop that it undoes */
            check_size(b, loop->loop->count, 0, loop->loop->span, "", what, &count);
        for (uint32_t k = 0; k < loop->bodies.count; k++)
            check_loops(b, loop->bodies.at[k], depth + 1);
    }
}

/* Counts of units that the plan gives, and the shape of the pipeline; what it says of a pipeline of one stage
 * does not matter. */
static void check_stages(etch_bound *b, etch_extent *extent)
{
    const etch_stage_line *line = b->placed->plan->stage;
    uint64_t chunks = 1, units;
    etch_total stages = 1;
    extent->stage_count = extent->chunk_count = 1;
    for (uint32_t i = 0; line && i < line->axis_count; i++)
        stages *= extent->axis_size[line->axes[i]];
    if (!line || stages <= 1 || stages > ETCH_MAX_RANKS)
        return;
    extent->stage_count = (uint32_t)stages;
    check_size(b, line->chunks, 1, line->span, "", "the number of chunks of a stage", &chunks);
    extent->chunk_count = chunks > ETCH_MOST_CHUNKS ? ETCH_MOST_CHUNKS : (uint32_t)chunks;
    for (uint32_t i = 0; i < line->count_count; i++)
        check_size(b, line->counts[i], 1, line->span, "",
                   etch_text(b->arena, "count %" PRIu32 " of the stages' units", i + 1), &units);
}

/* "dp = 2, tp = 4" */
static const char *mesh_text(etch_bound *b, const etch_extent *extent)
{
    etch_buf text = {.arena = b->arena};
    for (uint32_t i = 0; i < extent->axis_count; i++)
        etch_buf_printf(&text, "%s%s = %" PRIu32, i ? ", " : "", b->placed->plan->mesh.at[i].name,
                        extent->axis_size[i]);
    return text.length ? text.text : "no axes";
}

/* The axis alone would make it up: its size, or 0. */
static uint64_t fitting_size(const etch_extent *extent, uint32_t axis, uint64_t ranks)
{
    const uint32_t others = extent->axis_size[axis] ? extent->rank_count / extent->axis_size[axis] : 0;
    return others > 0 && ranks % others == 0 ? ranks / others : 0;
}

/* Has the mesh as many ranks as the plan asks for? */
static void check_ranks(etch_bound *b, const etch_extent *extent)
{
    const etch_plan *plan = b->placed->plan;
    uint64_t ranks = 0;
    if (!plan->ranks.count ||
        !check_size(b, plan->ranks.count, 1, plan->ranks.span, "", "the number of ranks", &ranks) ||
        ranks == extent->rank_count || extent->rank_count == 0)
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

/* ETCH_ELIMIT when the mesh has too many ranks; errors of the input are counted by the caller. */
static etch_status check_extent(etch_bound *b, etch_extent *extent)
{
    const etch_plan *plan = b->placed->plan;
    const etch_train *train = &b->placed->training->train;
    etch_total ranks = 1;
    uint64_t size = 1;
    extent->axis_count = plan->mesh.count;
    for (uint32_t i = 0; i < plan->mesh.count; i++) {
        const etch_axis *axis = &plan->mesh.at[i];
        if (!check_size(b, axis->size, 1, axis->span, "mesh axis ", axis->name, &size))
            continue;
        ranks = ranks > ETCH_MAX_RANKS || size > ETCH_MAX_RANKS ? ETCH_MAX_RANKS + 1 : ranks * size;
        extent->axis_size[i] = size > ETCH_MAX_RANKS ? ETCH_MAX_RANKS + 1 : (uint32_t)size;
        if (size > 1)
            extent->wide |= UINT32_C(1) << i;
    }
    extent->micro = 1;
    if (train->micro)
        check_size(b, train->micro, 1, train->span, "", "the number of microbatches", &extent->micro);
    if (ranks > ETCH_MAX_RANKS) {
        etch_error(b->diags, ETCH_E_TOO_MANY_RANKS, plan->span,
                   "the mesh has more than the %d ranks that can be lowered", (int)ETCH_MAX_RANKS);
        return ETCH_ELIMIT;
    }
    extent->rank_count = (uint32_t)ranks;
    check_ranks(b, extent);
    check_stages(b, extent);
    if (plan->bucketing == ETCH_BUCKET_BY_SIZE)
        check_size(b, plan->bucket, 1, plan->bucket_span, "", "the size of buckets", &size);
    return ETCH_OK;
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

/* The divisor in words: "mesh axis tp = 3", "mesh axes dp * tp = 8 * 3 = 24". */
static const char *describe_divisor(etch_bound *b, const etch_requirement *r)
{
    etch_buf names = {.arena = b->arena}, values = {.arena = b->arena};
    uint32_t axes = 0, factors = 0;
    for (uint32_t i = 0; i < b->placed->plan->mesh.count; i++) {
        if (!(r->axes >> i & 1))
            continue;
        const etch_axis *axis = &b->placed->plan->mesh.at[i];
        etch_buf_printf(&names, "%s%s", factors > 0 ? " * " : "", axis->name);
        etch_buf_printf(&values, "%s%s", factors > 0 ? " * " : "",
                        etch_bound_text(b, etch_bound_value(b, axis->size)));
        axes++;
        factors++;
    }
    if (r->paired) {
        etch_buf_printf(&names, "%s2", factors > 0 ? " * " : "");
        etch_buf_printf(&values, "%s2", factors > 0 ? " * " : "");
        factors++;
    }
    if (r->micro) {
        etch_buf_printf(&names, "%smicrobatches", factors > 0 ? " * " : "");
        etch_buf_printf(&values, "%s%s", factors > 0 ? " * " : "",
                        etch_bound_text(b, etch_bound_value(b, b->placed->training->train.micro)));
        factors++;
    }
    const char *total = etch_bound_text(b, etch_bound_value(b, r->divisor));
    if (factors == 0)
        return total;
    const char *kind = axes == 0 ? "the number of " : axes == 1 ? "mesh axis " : "mesh axes ";
    if (factors == 1)
        return etch_text(b->arena, "%s%s = %s", kind, names.text, total);
    return etch_text(b->arena, "%s%s = %s = %s", kind, names.text, values.text, total);
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

/* What the sizes of all requirements with this divisor have in common; 0 when one of them is too large for
 * it. */
static int64_t common_size(etch_bound *b, etch_expr divisor)
{
    int64_t common = 0, size;
    for (uint32_t i = 0; i < b->placed->requirements.count; i++) {
        const etch_requirement *r = &b->placed->requirements.at[i];
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
    const char *advice = etch_two_axes_text(b->placed, r, size, divisor);
    if (advice)
        etch_help(diag, "or spread two dims over two axes: %s", advice);
}

static bool is_met(etch_bound *b, const etch_requirement *r)
{
    etch_expr size = etch_bound_value(b, r->size), divisor = etch_bound_value(b, r->divisor);
    if (!size || !divisor || !etch_is_constant(size) || !etch_is_constant(divisor))
        return true; /* reported as missing or undefined */
    return divides(b->sym, divisor, size);
}

/* One wrong divisor is one mistake, whatever it fails to divide: the first dim is the message, the others are
 * notes. */
static void check_requirement(etch_bound *b, uint32_t index)
{
    const etch_requirement *all = b->placed->requirements.at, *r = &all[index];
    if (is_met(b, r))
        return;
    for (uint32_t i = 0; i < index; i++)
        if (all[i].divisor == r->divisor && !is_met(b, &all[i]))
            return;
    etch_diag *diag = etch_error(b->diags, ETCH_E_NOT_DIVISIBLE, r->span, "%s is not divisible by %s",
                                 named_value(b, r->dim->name, r->size), describe_divisor(b, r));
    etch_note(diag, r->dim->span, "%s is declared here", r->dim->name);
    note_values(b, diag, r->size);
    note_values(b, diag, r->divisor);
    if (r->paired)
        etch_note(diag, r->span, "each rank has two chunks of %s, so that all do the same causal work",
                  r->dim->name);
    for (uint32_t i = index + 1; i < b->placed->requirements.count; i++)
        if (all[i].divisor == r->divisor && !is_met(b, &all[i]))
            etch_note(diag, all[i].span, "%s is not divisible either",
                      named_value(b, all[i].dim->name, all[i].size));
    suggest_axis(b, diag, r);
    suggest_two_axes(b, diag, r);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

etch_status etch_bind(etch_arena *scratch, const etch_lower_options *options, etch_bound **bound,
                      etch_extent *extent)
{
    const etch_placed *placed = options->placed;
    etch_bound *b = ETCH_NEW(scratch, etch_bound);
    *b = (etch_bound){.arena = scratch,
                      .sym = placed->training->graph->sym,
                      .diags = placed->diags,
                      .options = options,
                      .placed = placed,
                      .graph = placed->training->graph};
    *bound = b;
    uint32_t errors = etch_error_count(b->diags);
    settle_given(b);
    check_given(b);
    need_all(b);
    need_stages(b);
    need_buckets(b);
    report_missing(b);
    for (uint32_t i = 0; i < options->fact_count; i++)
        check_fact(b, &options->facts[i]);
    if (etch_error_count(b->diags) != errors)
        return ETCH_EINPUT; /* what follows would say the same again */
    etch_status status = check_extent(b, extent);
    check_dims(b);
    check_loops(b, placed->forward, 0);
    if (etch_error_count(b->diags) == errors) /* otherwise they would say the same again */
        for (uint32_t i = 0; i < placed->requirements.count; i++)
            check_requirement(b, i);
    if (status != ETCH_OK)
        return status;
    return etch_error_count(b->diags) == errors ? ETCH_OK : ETCH_EINPUT;
}

const etch_binding *etch_bound_list(etch_bound *b, etch_arena *arena)
{
    uint32_t count = b->options->given_count;
    etch_binding *list = ETCH_NEW_ARRAY(arena, count, etch_binding);
    for (uint32_t i = 0; i < count; i++) {
        const etch_given *given = &b->options->given[i];
        const char *value = etch_bound_text(b, b->values[i]);
        list[i].name = etch_copy_text(arena, given->name, strlen(given->name));
        list[i].value = etch_copy_text(arena, value, strlen(value));
        list[i].from = etch_copy_text(arena, given->from, strlen(given->from));
    }
    return list;
}
