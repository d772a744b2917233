/* From expressions to numbers: values put into them, and into one another. */
#include "lower/lower_int.h"

etch_expr etch_bound_value(etch_bound *b, etch_expr expr)
{
    if (!expr || etch_is_constant(expr))
        return expr;
    etch_expr value = etch_map_find(&b->known, expr);
    if (!value) {
        value = etch_subst(b->sym, expr, b->from->given_count, b->vars, b->values);
        etch_map_set(b->arena, &b->known, expr, value);
    }
    return value;
}

/* Puts values into values until they are numbers, or stay as they are. */
static void settle_given(etch_bound *b)
{
    const etch_values *o = b->from;
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

etch_bound *etch_bound_new(etch_arena *scratch, etch_sym *sym, etch_diags *diags, const etch_values *values)
{
    etch_bound *b = ETCH_NEW(scratch, etch_bound);
    *b = (etch_bound){.arena = scratch, .sym = sym, .diags = diags, .from = values};
    settle_given(b);
    return b;
}

const char *etch_bound_text(etch_bound *b, etch_expr expr)
{
    return expr ? etch_expr_text(b->sym, expr) : "undefined";
}

const etch_binding *etch_bound_list(etch_bound *b, etch_arena *arena)
{
    uint32_t count = b->from->given_count;
    etch_binding *list = ETCH_NEW_ARRAY(arena, count, etch_binding);
    for (uint32_t i = 0; i < count; i++) {
        const etch_given *given = &b->from->given[i];
        list[i] = (etch_binding){etch_copy_string(arena, given->name),
                                 etch_copy_string(arena, etch_bound_text(b, b->values[i])),
                                 etch_copy_string(arena, given->from)};
    }
    return list;
}
