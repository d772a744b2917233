/* The conditions on values as a list of formulas: for those who hold many values against them. It is what
 * conditions.c looks at, of one set of values. */
#include "lower/lower_int.h"

static void add_numbers(etch_arena *arena, const etch_bound *b, etch_musts *out)
{
    for (uint32_t i = 0; i < b->asked.count; i++) {
        const etch_asked *asked = &b->asked.at[i];
        const etch_must must = {.kind = ETCH_MUST_BE_NUMBER,
                                .left = asked->expr,
                                .least = asked->condition.least,
                                .above = asked->condition.above,
                                .fraction = asked->condition.fraction,
                                .share = asked->condition.share,
                                .code = ETCH_E_BOUND_SIZE,
                                .subject = etch_text(arena, "%s%s", asked->kind, asked->name)};
        ETCH_PUSH(arena, out, must);
    }
}

static void add_facts(etch_arena *arena, const etch_values *values, etch_musts *out)
{
    for (uint32_t i = 0; i < values->fact_count; i++) {
        const etch_claim *fact = &values->facts[i];
        const bool unary = fact->relation == ETCH_REL_TRUE;
        if (!fact->left || (!unary && !fact->right))
            continue;
        const etch_must must = {.kind = ETCH_MUST_HOLD,
                                .relation = fact->relation,
                                .left = fact->left,
                                .right = unary ? fact->left : fact->right,
                                .code = ETCH_E_FACT_BROKEN,
                                .subject = fact->text};
        ETCH_PUSH(arena, out, must);
    }
}

/* "B by dp * 2 * microbatches" */
static const char *division_text(etch_arena *arena, const etch_plan *plan, const etch_requirement *r)
{
    etch_buf text = {.arena = arena};
    const char *before = "";
    etch_buf_printf(&text, "%s by ", r->dim->name);
    for (uint32_t i = 0; i < plan->mesh.count; i++)
        if (r->axes >> i & 1) {
            etch_buf_printf(&text, "%s%s", before, plan->mesh.at[i].name);
            before = " * ";
        }
    if (r->paired) {
        etch_buf_printf(&text, "%s2", before);
        before = " * ";
    }
    if (r->micro)
        etch_buf_printf(&text, "%smicrobatches", before);
    return text.text;
}

static void add_divisions(etch_arena *arena, const etch_placed *placed, etch_musts *out)
{
    for (uint32_t i = 0; i < placed->requirements.count; i++) {
        const etch_requirement *r = &placed->requirements.at[i];
        const etch_must must = {.kind = ETCH_MUST_DIVIDE,
                                .left = r->divisor,
                                .right = r->size,
                                .code = ETCH_E_NOT_DIVISIBLE,
                                .subject = division_text(arena, placed->plan, r)};
        ETCH_PUSH(arena, out, must);
    }
}

static void add_ranks(etch_arena *arena, etch_sym *sym, const etch_plan *plan, etch_musts *out)
{
    etch_expr ranks = etch_int(sym, 1);
    for (uint32_t i = 0; i < plan->mesh.count; i++)
        ranks = etch_mul(sym, ranks, plan->mesh.at[i].size);
    const etch_must must = {.kind = ETCH_MUST_BE_RANKS,
                            .left = plan->ranks.count,
                            .right = ranks,
                            .code = ETCH_E_RANKS,
                            .subject = "the number of ranks"};
    if (plan->ranks.count)
        ETCH_PUSH(arena, out, must);
}

void etch_values_musts(etch_arena *arena, etch_sym *sym, const etch_values *values, etch_musts *out)
{
    etch_bound *b = etch_bound_new(arena, sym, NULL, values);
    add_facts(arena, values, out);
    etch_bound_ask(b);
    add_numbers(arena, b, out);
    if (!values->placed)
        return;
    add_ranks(arena, sym, values->placed->plan, out);
    add_divisions(arena, values->placed, out);
}

static bool divides(etch_sym *sym, etch_expr divisor, etch_expr number)
{
    const etch_expr quotient = etch_div(sym, number, divisor);
    return quotient && etch_is_integer_constant(quotient);
}

static bool is_number(etch_sym *sym, const etch_must *must, etch_expr value)
{
    int64_t fits;
    if (!must->fraction && (!etch_is_integer_constant(value) || !etch_to_i64(value, &fits)))
        return false;
    const int order = etch_constant_compare(sym, value, etch_int(sym, must->least));
    return order >= must->above && (!must->share || etch_constant_compare(sym, value, etch_int(sym, 1)) <= 0);
}

bool etch_must_holds(etch_sym *sym, const etch_must *must, etch_expr left, etch_expr right)
{
    switch (must->kind) {
    case ETCH_MUST_BE_NUMBER:
        return left && is_number(sym, must, left);
    case ETCH_MUST_HOLD:
        if (!left || !right)
            return false;
        return must->relation == ETCH_REL_TRUE      ? !etch_is_zero(left)
               : must->relation == ETCH_REL_DIVIDES ? divides(sym, left, right)
                                                    : etch_constants_hold(sym, must->relation, left, right);
    case ETCH_MUST_DIVIDE:
        return !left || !right || divides(sym, left, right);
    case ETCH_MUST_BE_RANKS:
        return !left || !right || left == right ||
               etch_constant_compare(sym, right, etch_int(sym, ETCH_MAX_RANKS)) > 0;
    }
    return false;
}
