/* Frozen contexts, and forks of them.
 *
 * A frozen context is only read. A fork is a context of its own, with tables of its own, that begins with the
 * variables, facts and limits of the frozen one; an expression of the frozen context gets its counterpart in
 * the fork, atom by atom, when it is first used there, and is remembered. So equality within a fork is
 * identity, the order of atoms and with it all output is that of any context with these variables, facts can
 * be added, and no thread ever writes where another one reads. (Tables that look into those of the frozen
 * context first would have to share its atoms, whose order and whose bounds change as a context is used.)
 *
 * Epochs tell whose an expression is: those of a fork begin where those of the frozen context end. */
#include "symbolic/symbolic_int.h"

void etch_sym_freeze(etch_sym *sym)
{
    sym->frozen = true;
}

bool etch_sym_is_frozen(const etch_sym *sym)
{
    return sym->frozen;
}

static etch_expr adopt(etch_sym *sym, etch_expr a);

/* The variable of a sum at the same level. */
static sym_atom *counterpart_of_index(etch_sym *sym, const sym_atom *atom)
{
    if (atom->bound_level > 0)
        return sym_bound_var(sym, atom->bound_level);
    for (const etch_sym *from = sym->parent; from; from = from->parent)
        for (uint32_t level = 0; level < from->index_vars.count; level++)
            if (from->index_vars.at[level] == atom)
                return sym_index_var(sym, level);
    etch_trap(etch_arena_mem(sym->arena), ETCH_EINTERNAL); /* an expression of some other context */
}

static sym_atom *counterpart(etch_sym *sym, const sym_atom *atom)
{
    etch_expr adopted = sym_memo_get(&sym->adopted, atom);
    if (adopted)
        return sym_atom_of(adopted);
    sym_atom *known;
    if (atom->kind == ETCH_SYM_VAR) {
        known = atom->name ? sym_atom_of(etch_var(sym, atom->name)) : counterpart_of_index(sym, atom);
    } else {
        sym_scratch_mark mark = sym_scratch_top(sym);
        etch_expr *args = sym_scratch_take(sym, atom->count, sizeof *args);
        for (uint32_t i = 0; i < atom->count; i++)
            args[i] = adopt(sym, atom->args[i]);
        known = sym_atom_intern(sym, atom->kind, atom->count, args);
        sym_scratch_release(sym, mark);
    }
    sym_memo_put(sym, &sym->adopted, atom, known->self);
    return known;
}

/* Says that an expression was not brought into canonical form under any facts. */
static void mark_raw(etch_sym *sym, etch_expr a)
{
    uint32_t probe = 0;
    sym_node *node = sym_table_next(&sym->polys, a->node.hash, &probe);
    while (node != &a->node)
        node = sym_table_next(&sym->polys, a->node.hash, &probe);
    ((struct etch_poly *)node)->epoch = sym->first_epoch;
}

/* The same structure in atoms of the fork, which may simplify under its facts. Numbers that do not fit into
 * words stay where they are: the frozen context lives longer. */
static etch_expr adopt(etch_sym *sym, etch_expr a)
{
    sym_terms *list = sym_terms_new(sym);
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = sym->unit;
        for (uint32_t k = 0; k < a->terms[i].mono->count; k++) {
            sym_power power = a->terms[i].mono->at[k];
            mono = sym_mono_mul(sym, mono, sym_mono_of(sym, counterpart(sym, power.atom), power.exp));
        }
        sym_terms_push(sym, list, mono, a->terms[i].coef);
    }
    uint32_t before = sym->poly_count;
    etch_expr result = sym_terms_collect(sym, list);
    if (sym->poly_count > before)
        mark_raw(sym, result);
    return result;
}

bool sym_is_foreign(const etch_sym *sym, etch_expr a)
{
    return sym->parent && a->epoch < sym->first_epoch && a != sym->zero && a != sym->one;
}

etch_expr etch_sym_adopt(etch_sym *sym, etch_expr a)
{
    if (!a || !sym_is_foreign(sym, a))
        return a;
    etch_expr known = sym_memo_get(&sym->adopted, a);
    if (!known) {
        known = adopt(sym, a);
        sym_memo_put(sym, &sym->adopted, a, known);
    }
    return sym_refresh(sym, known);
}

static void repeat_fact(etch_sym *sym, const sym_fact *fact)
{
    etch_expr a = etch_sym_adopt(sym, fact->a), b = etch_sym_adopt(sym, fact->b);
    etch_status status = ETCH_EUNKNOWN;
    switch (fact->kind) {
    case ETCH_SYM_FACT_DIVIDES:
        status = etch_assume_divides(sym, a, b, fact->origin, NULL);
        break;
    case ETCH_SYM_FACT_EQUAL:
        status = etch_assume_equal(sym, a, b, fact->origin, NULL);
        break;
    case ETCH_SYM_FACT_DIFFERENT:
        status = etch_assume_different(sym, a, b, fact->origin, NULL);
        break;
    case ETCH_SYM_FACT_AT_LEAST:
        status = etch_assume_at_least(sym, a, b, fact->origin, NULL);
        break;
    }
    if (status == ETCH_EINPUT)
        etch_trap(etch_arena_mem(sym->arena), ETCH_EINTERNAL); /* it did not contradict the others before */
}

etch_sym *etch_sym_fork(const etch_sym *frozen, etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_sym_set_limits(sym, &frozen->limits);
    sym->parent = frozen;
    sym->first_epoch = frozen->epoch + 1;
    sym->epoch = sym->first_epoch + 1;
    for (uint32_t i = 0; i < frozen->vars.count; i++) {
        const sym_atom *var = frozen->vars.at[i];
        if (!var->name)
            continue;
        sym_atom *own = sym_atom_of(etch_var(sym, var->name));
        own->lower = own->declared_lower = var->declared_lower;
        own->is_real = var->is_real;
    }
    sym_new_epoch(sym);
    for (uint32_t i = 0; i < frozen->facts.count; i++)
        repeat_fact(sym, &frozen->facts.at[i]);
    return sym;
}

void etch_sym_recover(etch_sym *sym)
{
    sym_scratch_reset(sym);
    sym->proof_nesting = sym->proof_work = 0;
    sym->tracing = false;
    sym->limit_reached = NULL;
    for (int i = 0; i < ETCH_SYM_MAX_NESTED; i++)
        sym_memo_clear(&sym->failed[i]);
}
