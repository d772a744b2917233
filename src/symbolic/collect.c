/* Collecting the terms of an expression by monomials in some of its variables. */
#include <stdlib.h>

#include "symbolic/symbolic_int.h"

/* A term of the sum: its part in the variables collected by, and the rest. */
typedef struct piece {
    const sym_mono *key;
    sym_term rest;
} piece;

/* By decreasing degree, then by order of declaration; equal keys stay together. */
static int compare_keys(const void *a, const void *b)
{
    const sym_mono *x = ((const piece *)a)->key, *y = ((const piece *)b)->key;
    if (x->degree != y->degree)
        return x->degree > y->degree ? -1 : 1;
    return sym_mono_compare(y, x);
}

static const sym_mono *part_in(etch_sym *sym, const sym_mono *mono, const bool *chosen)
{
    const sym_mono *part = sym->unit;
    for (uint32_t i = 0; i < mono->count; i++) {
        sym_atom *atom = mono->at[i].atom;
        if (atom->kind == ETCH_SYM_VAR && chosen[atom->index])
            part = sym_mono_mul(sym, part, sym_mono_of(sym, atom, mono->at[i].exp));
    }
    return part;
}

/* The sum of the rests of `count` pieces. Those over a denominator may have become reducible. */
static etch_expr sum_of_rests(etch_sym *sym, const piece *pieces, uint32_t count)
{
    sym_terms *whole = sym_terms_new(sym);
    etch_expr fractions = sym->zero;
    for (uint32_t i = 0; i < count; i++) {
        const sym_mono *mono = pieces[i].rest.mono;
        if (!(mono->flags & ETCH_SYM_HAS_RECIP)) {
            sym_terms_push(sym, whole, mono, pieces[i].rest.coef);
            continue;
        }
        sym_atom *recip = mono->at[mono->count - 1].atom;
        const sym_mono *num = sym_mono_div(sym, mono, sym_mono_of(sym, recip, 1));
        etch_expr part = sym_div(sym, sym_monomial(sym, num, pieces[i].rest.coef), recip->args[0]);
        fractions = sym_add(sym, fractions, part);
    }
    return sym_add(sym, sym_terms_collect(sym, whole), fractions);
}

uint32_t etch_collect(etch_sym *sym, etch_expr a, uint32_t count, const etch_expr *vars,
                      etch_collected **parts)
{
    *parts = NULL;
    a = sym_refresh(sym, a);
    if (!a || a->count == 0)
        return 0;
    sym_scratch_mark mark = sym_scratch_top(sym);
    bool *chosen = sym_scratch_take(sym, sym->vars.count + 1, sizeof *chosen);
    for (uint32_t i = 0; i < count; i++) {
        const sym_atom *atom = sym_var_of(vars[i]);
        if (atom)
            chosen[atom->index] = true;
    }
    piece *pieces = sym_scratch_take(sym, a->count, sizeof *pieces);
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *key = part_in(sym, a->terms[i].mono, chosen);
        pieces[i] = (piece){key, {sym_mono_div(sym, a->terms[i].mono, key), a->terms[i].coef}};
    }
    qsort(pieces, a->count, sizeof *pieces, compare_keys);
    ETCH_VEC(etch_collected) found = {0};
    for (uint32_t from = 0, to; from < a->count; from = to) {
        for (to = from; to < a->count && pieces[to].key == pieces[from].key;)
            to++;
        etch_expr coef = sum_of_rests(sym, pieces + from, to - from);
        if (coef->count)
            ETCH_PUSH(sym->arena, &found,
                      (etch_collected){sym_monomial(sym, pieces[from].key, ETCH_SYM_ONE), coef});
    }
    sym_scratch_release(sym, mark);
    *parts = found.at;
    return found.count;
}
