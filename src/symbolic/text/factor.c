/* Summands put together into products: the common factor of all, then the factor that most of the rest
 * share, and so on. */
#include <string.h>

#include "symbolic/text/text_int.h"

enum { MAX_ITEMS = 512, MAX_DEPTH = 8 };

typedef struct factorer {
    etch_sym *sym;
    uint32_t depth;
    /* by id of an atom: items with it as a factor, and below the line; all 0 between uses */
    uint32_t (*uses)[2];
} factorer;

static sym_items split(factorer *f, sym_items items);

/* ---- common factors ------------------------------------------------------------------------------------ */

/* What all items share: a coefficient (negative where all are) and a monomial. */
static sym_term common_factor(etch_sym *sym, const sym_items *items)
{
    sym_term common = {items->at[0].mono, ETCH_SYM_ZERO};
    bool negative = true;
    for (uint32_t i = 0; i < items->count; i++) {
        const sym_item *it = &items->at[i];
        common.coef = sym_coef_gcd(sym, common.coef, it->coef);
        common.mono = sym_mono_meet(sym, common.mono, it->mono, -1);
        negative = negative && sym_coef_sign(it->coef) < 0;
    }
    if (negative)
        common.coef = sym_coef_neg(sym, common.coef);
    return common;
}

/* common * (items / common) as one item. */
static sym_item group(factorer *f, const sym_items *items, sym_term common)
{
    etch_sym *sym = f->sym;
    sym_items inner = {sym_scratch_take(sym, items->count, sizeof *inner.at), items->count};
    for (uint32_t i = 0; i < items->count; i++) {
        inner.at[i] = items->at[i];
        inner.at[i].coef = sym_coef_div(sym, inner.at[i].coef, common.coef);
        inner.at[i].mono = sym_mono_div(sym, inner.at[i].mono, common.mono);
    }
    if (f->depth < MAX_DEPTH) {
        f->depth++;
        inner = split(f, inner);
        f->depth--;
    }
    return (sym_item){.form = ETCH_SYM_GROUP,
                      .coef = common.coef,
                      .mono = common.mono,
                      .count = inner.count,
                      .group = inner.at,
                      .degree = items->at[0].degree};
}

/* ---- shared factors ------------------------------------------------------------------------------------ */

static bool has_factor(const sym_item *it, const sym_atom *atom, int sign)
{
    int32_t exp = sym_mono_exp(it->mono, atom);
    return sign < 0 ? exp < 0 : exp > 0;
}

/* The atom, as a factor or below the line, that most items share; the first in order of atoms among
 * equals. */
static uint32_t most_shared(factorer *f, const sym_items *items, const sym_atom **atom, int *sign)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < items->count; i++)
        for (uint32_t j = 0; j < items->at[i].mono->count; j++)
            f->uses[items->at[i].mono->at[j].atom->id][items->at[i].mono->at[j].exp < 0]++;
    for (uint32_t i = 0; i < items->count; i++)
        for (uint32_t j = 0; j < items->at[i].mono->count; j++) {
            const sym_power *power = &items->at[i].mono->at[j];
            uint32_t *uses = &f->uses[power->atom->id][power->exp < 0];
            if (*uses > most || (*uses == most && most > 0 && power->atom->label < (*atom)->label)) {
                most = *uses;
                *atom = power->atom;
                *sign = power->exp < 0 ? -1 : 1;
            }
        }
    for (uint32_t i = 0; i < items->count; i++)
        for (uint32_t j = 0; j < items->at[i].mono->count; j++)
            f->uses[items->at[i].mono->at[j].atom->id][items->at[i].mono->at[j].exp < 0] = 0;
    return most;
}

/* Does taking `common` out of `count` items write fewer factors? */
static bool pays(uint32_t count, sym_term common)
{
    return count > 1 && (count - 1) * (common.mono->count + !sym_coef_is_one(common.coef)) > 1;
}

/* Puts those items that share the most into one, at the place of the first of them. False: nothing to
 * gain. */
static bool split_once(factorer *f, sym_items *items)
{
    const sym_atom *atom = NULL;
    int sign = 0;
    if (most_shared(f, items, &atom, &sign) < 2)
        return false;
    sym_items in = {sym_scratch_take(f->sym, items->count, sizeof *in.at), 0};
    for (uint32_t i = 0; i < items->count; i++)
        if (has_factor(&items->at[i], atom, sign))
            in.at[in.count++] = items->at[i];
    sym_term common = common_factor(f->sym, &in);
    if (!pays(in.count, common))
        return false;
    uint32_t kept = 0;
    bool placed = false;
    sym_item whole = group(f, &in, common);
    for (uint32_t i = 0; i < items->count; i++) {
        bool shares = has_factor(&items->at[i], atom, sign);
        if (!shares || !placed)
            items->at[kept++] = shares ? whole : items->at[i];
        placed = placed || shares;
    }
    items->count = kept;
    return true;
}

static sym_items split(factorer *f, sym_items items)
{
    while (items.count > 2 && split_once(f, &items))
        ;
    return items;
}

/* ---- the two ways -------------------------------------------------------------------------------------- */

sym_items sym_factor_items(etch_sym *sym, sym_items items)
{
    factorer f = {.sym = sym};
    if (items.count < 2 || items.count > MAX_ITEMS)
        return items;
    sym_item *copy = sym_scratch_take(sym, items.count, sizeof *copy);
    memcpy(copy, items.at, items.count * sizeof *copy);
    items.at = copy;
    f.uses = sym_scratch_take(sym, sym->atom_count, sizeof *f.uses);
    sym_term common = common_factor(sym, &items);
    if (common.mono->count == 0 && sym_coef_is_one(common.coef))
        return split(&f, items);
    items.at[0] = group(&f, &items, common);
    items.count = 1;
    return items;
}

/* The factors of an item that are never 0: it can be divided by them wherever it has a value. */
static sym_term nonzero_part(etch_sym *sym, const sym_item *it)
{
    sym_term part = {sym->unit, it->coef};
    for (uint32_t i = 0; i < it->mono->count; i++) {
        sym_power power = it->mono->at[i];
        if (power.exp < 0 ||
            (power.atom->kind == ETCH_SYM_VAR && (power.atom->is_real || power.atom->lower > 0)))
            part.mono = sym_mono_mul(sym, part.mono, sym_mono_of(sym, power.atom, power.exp));
    }
    return part;
}

sym_items sym_relate_items(etch_sym *sym, sym_items items)
{
    factorer f = {.sym = sym, .depth = MAX_DEPTH};
    sym_term common = items.count < 2 ? (sym_term){sym->unit, ETCH_SYM_ONE} : nonzero_part(sym, &items.at[0]);
    if (common.mono->count == 0 && sym_coef_is_one(common.coef))
        return items;
    sym_item *whole = sym_scratch_take(sym, 1, sizeof *whole);
    *whole = group(&f, &items, common);
    return (sym_items){whole, 1};
}
