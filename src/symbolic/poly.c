/* Interned expressions and the lists of terms that become them. */
#include <stdlib.h>
#include <string.h>

#include "symbolic/symbolic_int.h"

/* ---- lists --------------------------------------------------------------------------------------------- */

sym_terms *sym_terms_new(etch_sym *sym)
{
    sym_terms *list = sym->pool;
    if (!list)
        return ETCH_NEW(sym->arena, sym_terms);
    sym->pool = list->next;
    list->count = 0;
    return list;
}

void sym_terms_free(etch_sym *sym, sym_terms *list)
{
    list->next = sym->pool;
    sym->pool = list;
}

void sym_terms_push(etch_sym *sym, sym_terms *list, const sym_mono *mono, sym_coef coef)
{
    if (list->count == ETCH_SYM_MAX_WORK / 8)
        sym_limit(sym);
    ETCH_PUSH(sym->arena, list, (sym_term){mono, coef});
}

void sym_terms_push_all(etch_sym *sym, sym_terms *list, etch_expr a)
{
    for (uint32_t i = 0; i < a->count; i++)
        sym_terms_push(sym, list, a->terms[i].mono, a->terms[i].coef);
}

void sym_terms_add_scaled(etch_sym *sym, sym_terms *out, const sym_term *a, uint32_t a_count,
                          const sym_term *b, uint32_t b_count, const sym_mono *mono, sym_coef coef)
{
    uint32_t i = 0;
    sym_count_work(sym, (uint64_t)a_count + b_count);
    for (uint32_t j = 0; j < b_count; j++) {
        const sym_mono *product = sym_mono_mul(sym, b[j].mono, mono);
        sym_coef value = sym_coef_is_one(coef) ? b[j].coef : sym_coef_mul(sym, b[j].coef, coef);
        int order = -1;
        for (; i < a_count && (order = sym_mono_compare(product, a[i].mono)) < 0; i++)
            sym_terms_push(sym, out, a[i].mono, a[i].coef);
        if (i < a_count && order == 0)
            value = sym_coef_add(sym, value, a[i++].coef);
        if (!sym_coef_is_zero(value))
            sym_terms_push(sym, out, product, value);
    }
    for (; i < a_count; i++)
        sym_terms_push(sym, out, a[i].mono, a[i].coef);
}

/* ---- sorting ------------------------------------------------------------------------------------------- */

static int by_decreasing_monomial(const void *a, const void *b)
{
    return sym_mono_compare(((const sym_term *)b)->mono, ((const sym_term *)a)->mono);
}

static void sort(sym_terms *list)
{
    enum { FEW = 12 };
    if (list->count > FEW) {
        qsort(list->at, list->count, sizeof *list->at, by_decreasing_monomial);
        return;
    }
    for (uint32_t i = 1; i < list->count; i++) {
        sym_term term = list->at[i];
        uint32_t j = i;
        for (; j > 0 && sym_mono_compare(list->at[j - 1].mono, term.mono) < 0; j--)
            list->at[j] = list->at[j - 1];
        list->at[j] = term;
    }
}

/* A mark for every monomial. Marks of earlier uses stay: who reads one checks that it is right. */
static uint32_t *slots(etch_sym *sym)
{
    if (sym->slot_capacity < sym->mono_count) {
        sym->slot_capacity = sym->mono_count * 2;
        sym->slot_of = ETCH_NEW_ARRAY(sym->arena, sym->slot_capacity, uint32_t);
    }
    return sym->slot_of;
}

/* Adds like terms: a monomial's mark says where its first term is, counted from 1. */
static void add_like_terms(etch_sym *sym, sym_terms *list)
{
    uint32_t *slot_of = slots(sym);
    uint32_t kept = 0;
    sym_count_work(sym, list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        sym_term term = list->at[i];
        uint32_t slot = slot_of[term.mono->id];
        if (slot > 0 && slot <= kept && list->at[slot - 1].mono == term.mono) {
            list->at[slot - 1].coef = sym_coef_add(sym, list->at[slot - 1].coef, term.coef);
        } else {
            list->at[kept++] = term;
            slot_of[term.mono->id] = kept;
        }
    }
    list->count = 0;
    for (uint32_t i = 0; i < kept; i++)
        if (!sym_coef_is_zero(list->at[i].coef))
            list->at[list->count++] = list->at[i];
}

etch_expr sym_terms_collect(etch_sym *sym, sym_terms *list)
{
    add_like_terms(sym, list);
    sort(list);
    return sym_terms_finish(sym, list);
}

/* ---- interning ----------------------------------------------------------------------------------------- */

static bool equal_terms(const sym_term *a, const sym_term *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].mono != b[i].mono || !sym_coef_equal(a[i].coef, b[i].coef))
            return false;
    return true;
}

static etch_expr intern(etch_sym *sym, const sym_term *terms, uint32_t count)
{
    uint64_t hash = count;
    if (count > 1)
        sym_count_work(sym, ETCH_SYM_WORK_OF_LOOKUP + (uint64_t)count);
    for (uint32_t i = 0; i < count; i++)
        hash = sym_mix(hash, terms[i].mono->node.hash + sym_coef_hash(terms[i].coef));
    uint32_t probe = 0;
    for (sym_node *node; (node = sym_table_next(&sym->polys, hash, &probe));) {
        etch_expr poly = (etch_expr)node;
        if (poly->count == count && equal_terms(poly->terms, terms, count))
            return poly;
    }
    if (count > sym->limits.terms)
        sym_limit_of(sym, "terms of one expression", sym->limits.terms);
    if (count > 1) /* a variable must not be half declared when the limit ends what declares it */
        sym_count_work(sym, ETCH_SYM_WORK_OF_NODE + (uint64_t)ETCH_SYM_WORK_OF_TERM * count);
    struct etch_poly *poly = etch_alloc(sym->arena, sizeof *poly + count * sizeof *terms);
    poly->node.hash = hash;
    poly->id = sym->poly_count++;
    poly->count = count;
    poly->epoch = sym->epoch;
    for (uint32_t i = 0; i < count; i++) {
        poly->terms[i] = terms[i];
        poly->flags |= terms[i].mono->flags;
        if (poly->depth < terms[i].mono->depth)
            poly->depth = terms[i].mono->depth;
    }
    sym_table_add_missed(sym, &sym->polys, &poly->node, probe);
    return poly;
}

etch_expr sym_terms_finish(etch_sym *sym, sym_terms *list)
{
    etch_expr result = intern(sym, list->at, list->count);
    sym_terms_free(sym, list);
    return result;
}

etch_expr sym_monomial(etch_sym *sym, const sym_mono *mono, sym_coef coef)
{
    if (sym_coef_is_zero(coef))
        return sym->zero;
    sym_term term = {mono, coef};
    return intern(sym, &term, 1);
}

etch_expr sym_constant(etch_sym *sym, sym_coef value)
{
    return sym_monomial(sym, sym->unit, value);
}

int sym_compare(etch_expr a, etch_expr b)
{
    if (a == b)
        return 0;
    for (uint32_t i = 0; i < a->count && i < b->count; i++) {
        int order = sym_mono_compare(a->terms[i].mono, b->terms[i].mono);
        if (order == 0)
            order = sym_coef_compare(a->terms[i].coef, b->terms[i].coef);
        if (order != 0)
            return order;
    }
    return a->count < b->count ? -1 : 1;
}

sym_atom *sym_atom_of(etch_expr a)
{
    if (a->count != 1 || !sym_coef_is_one(a->terms[0].coef) || a->terms[0].mono->count != 1)
        return NULL;
    sym_power power = a->terms[0].mono->at[0];
    return power.exp == 1 ? power.atom : NULL;
}

sym_coef sym_coefficient(etch_expr a, const sym_mono *mono)
{
    uint32_t low = 0, high = a->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = sym_mono_compare(a->terms[middle].mono, mono);
        if (order == 0)
            return a->terms[middle].coef;
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return ETCH_SYM_ZERO;
}
