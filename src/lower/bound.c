/* From expressions to numbers: values put into them, and into one another. */
#include "lower/lower_int.h"

#include <inttypes.h>
#include <string.h>

static etch_bound_entry *find_entry(etch_bound_entry *entries, size_t capacity, etch_expr expr)
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
    etch_bound_entry *entries = ETCH_NEW_ARRAY(b->arena, capacity, etch_bound_entry);
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
    etch_bound_entry *entry = find_entry(b->entries, b->capacity, expr);
    if (!entry->expr) {
        entry->expr = expr;
        entry->value = etch_subst(b->sym, expr, b->from->given_count, b->vars, b->values);
        b->entry_count++;
    }
    return entry->value;
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

const char *etch_bound_named(etch_bound *b, const char *name, etch_expr expr)
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

void etch_bound_note(etch_bound *b, etch_diag *diag, etch_expr expr)
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

uint32_t etch_bound_dims(etch_bound *b, const etch_dim ***dims)
{
    const etch_graph *graph = b->from->training->graph;
    uint32_t count = 0, id_end = 0;
    for (uint32_t i = 0; i < graph->dims.count; i++)
        if (graph->dims.at[i]->id >= id_end)
            id_end = graph->dims.at[i]->id + 1;
    bool *marks = ETCH_NEW_ARRAY(b->arena, id_end, bool);
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        for (uint32_t d = 0; d < graph->tensors.at[i]->rank; d++)
            marks[graph->tensors.at[i]->dims[d]->id] = true;
    *dims = ETCH_NEW_ARRAY(b->arena, graph->dims.count, const etch_dim *);
    for (uint32_t i = 0; i < graph->dims.count; i++)
        if (marks[graph->dims.at[i]->id])
            (*dims)[count++] = graph->dims.at[i];
    return count;
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
