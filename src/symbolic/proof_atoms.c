/* What of a statement a proof may take up next: maxima, powers, atoms without a sign, roots. */
#include "symbolic/symbolic_int.h"

enum { MOST_FACTORS = 16 };

static bool is_choice(const sym_atom *atom)
{
    return atom->kind == ETCH_SYM_MAX || atom->kind == ETCH_SYM_POW2;
}

sym_atom *sym_inner_choice(etch_sym *sym, etch_expr a, uint32_t depth)
{
    sym_count_work(sym, a->count);
    for (uint32_t i = 0; depth > 0 && i < a->count; i++)
        for (uint32_t j = 0; j < a->terms[i].mono->count; j++) {
            const sym_atom *atom = a->terms[i].mono->at[j].atom;
            for (uint32_t k = 0; k < atom->count && atom->kind != ETCH_SYM_SUM; k++) {
                const etch_expr argument = atom->args[k];
                for (uint32_t t = 0; t < argument->count; t++)
                    for (uint32_t u = 0; u < argument->terms[t].mono->count; u++)
                        if (is_choice(argument->terms[t].mono->at[u].atom))
                            return argument->terms[t].mono->at[u].atom;
                sym_atom *deeper = sym_inner_choice(sym, argument, depth - 1);
                if (deeper)
                    return deeper;
            }
        }
    return NULL;
}

const sym_atom *sym_some_power(etch_expr a)
{
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < a->terms[i].mono->count; j++)
            if (a->terms[i].mono->at[j].atom->kind == ETCH_SYM_POW2)
                return a->terms[i].mono->at[j].atom;
    return NULL;
}

sym_atom **sym_opaque_atoms(etch_sym *sym, etch_expr a, uint32_t limit, uint32_t *count)
{
    sym_atom **atoms = sym_scratch_take(sym, limit, sizeof *atoms);
    *count = 0;
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < a->terms[i].mono->count; j++) {
            sym_atom *atom = a->terms[i].mono->at[j].atom;
            bool known = atom->kind == ETCH_SYM_VAR;
            for (uint32_t k = 0; !known && k < *count; k++)
                known = atoms[k] == atom;
            if (!known && *count < limit)
                atoms[(*count)++] = atom;
        }
    return atoms;
}

static bool is_subtracted(etch_expr a, const sym_atom *atom)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (sym_coef_sign(a->terms[i].coef) < 0 && sym_mono_exp(a->terms[i].mono, atom) > 0)
            return true;
    return false;
}

sym_atom *sym_next_max(etch_expr a, sym_atom *const *atoms, uint32_t count)
{
    sym_atom *found = NULL;
    bool found_subtracted = false;
    for (uint32_t i = 0; i < count; i++) {
        if (atoms[i]->kind != ETCH_SYM_MAX)
            continue;
        bool subtracted = is_subtracted(a, atoms[i]);
        bool better = subtracted != found_subtracted ? subtracted : !found || atoms[i]->depth > found->depth;
        if (!found || better) {
            found = atoms[i];
            found_subtracted = subtracted;
        }
    }
    return found;
}

const sym_mono *sym_root_of(etch_sym *sym, const sym_mono *mono)
{
    sym_power powers[MOST_FACTORS];
    if (mono->count > MOST_FACTORS)
        return NULL;
    for (uint32_t i = 0; i < mono->count; i++) {
        if (mono->at[i].exp % 2 != 0)
            return NULL;
        powers[i] = (sym_power){mono->at[i].atom, mono->at[i].exp / 2};
    }
    return sym_mono_from(sym, powers, mono->count);
}

bool sym_apart_from(const sym_mono *product, const sym_mono *x)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (sym_mono_exp(product, x->at[i].atom) != 0)
            return false;
    return true;
}
