/* Summands put together into products: the common factor of all, then the factor that saves the most where it
 * is taken out of the rest, and so on; in the end what stands before equal sums. */
#include <stdlib.h>
#include <string.h>

#include "symbolic/text/text_int.h"

enum { MAX_ITEMS = 2048, MAX_DEPTH = 8 };

typedef struct factorer {
    etch_sym *sym;
    sym_style *style;
    uint32_t depth;
    /* by id of an atom: items with it as a factor, and below the line; all 0 between uses */
    uint32_t (*uses)[2];
} factorer;

static sym_items split(factorer *f, sym_items items);

/* ---- common factors ------------------------------------------------------------------------------------ */

/* The powers that both have above the line, and both below. */
static const sym_mono *shared_powers(etch_sym *sym, const sym_mono *a, const sym_mono *b)
{
    const sym_mono *above = sym_mono_meet(sym, sym_mono_part(sym, a, 1), sym_mono_part(sym, b, 1), -1);
    return sym_mono_mul(sym, above,
                        sym_mono_meet(sym, sym_mono_part(sym, a, -1), sym_mono_part(sym, b, -1), 1));
}

/* What all items share: a coefficient (negative where all are) and a monomial. */
static sym_term common_factor(etch_sym *sym, const sym_items *items)
{
    sym_term common = {items->at[0].mono, ETCH_SYM_ZERO};
    bool negative = true;
    for (uint32_t i = 0; i < items->count; i++) {
        const sym_item *it = &items->at[i];
        common.coef = sym_coef_gcd(sym, common.coef, it->coef);
        common.mono = shared_powers(sym, common.mono, it->mono);
        negative = negative && sym_coef_sign(it->coef) < 0;
    }
    if (negative)
        common.coef = sym_coef_neg(sym, common.coef);
    return common;
}

/* The items divided by what they share. */
static sym_items divided(factorer *f, const sym_items *items, sym_term common)
{
    etch_sym *sym = f->sym;
    sym_items inner = {sym_scratch_take(sym, items->count, sizeof *inner.at), items->count};
    for (uint32_t i = 0; i < items->count; i++) {
        inner.at[i] = items->at[i];
        inner.at[i].coef = sym_coef_div(sym, inner.at[i].coef, common.coef);
        inner.at[i].mono = sym_mono_div(sym, inner.at[i].mono, common.mono);
    }
    return inner;
}

/* common * (items / common) as one item. */
static sym_item group(factorer *f, const sym_items *items, sym_term common)
{
    sym_items *inner = sym_scratch_take(f->sym, 1, sizeof *inner);
    *inner = divided(f, items, common);
    if (f->depth < MAX_DEPTH) {
        f->depth++;
        *inner = split(f, *inner);
        f->depth--;
    }
    sym_item whole = {.coef = common.coef,
                      .mono = common.mono,
                      .group_count = 1,
                      .groups = inner,
                      .degree = items->at[0].degree,
                      .rank = items->at[0].rank};
    if (inner->count > 1)
        return whole;
    /* what was left is one product */
    whole.coef = sym_coef_mul(f->sym, whole.coef, inner->at[0].coef);
    whole.mono = sym_mono_mul(f->sym, whole.mono, inner->at[0].mono);
    whole.group_count = inner->at[0].group_count;
    whole.groups = inner->at[0].groups;
    return whole;
}

/* ---- shared factors ------------------------------------------------------------------------------------ */

static bool has_factor(const sym_item *it, const sym_atom *atom, int sign)
{
    int32_t exp = sym_mono_exp(it->mono, atom);
    return sign < 0 ? exp < 0 : exp > 0;
}

/* An atom as a factor, or below the line. */
typedef struct shared {
    const sym_atom *atom;
    int sign;
} shared;

enum { TRIED = 3 };

static bool was_tried(const shared *tried, uint32_t count, const sym_atom *atom, int sign)
{
    for (uint32_t i = 0; i < count; i++)
        if (tried[i].atom == atom && tried[i].sign == sign)
            return true;
    return false;
}

/* The atom that saves the most symbols when the items that share it have it once; the first in order of atoms
 * among equals; after those that were tried. */
static bool most_shared(factorer *f, const sym_items *items, shared *tried, uint32_t count)
{
    shared *best = &tried[count];
    uint64_t most = 0;
    for (uint32_t i = 0; i < items->count; i++)
        for (uint32_t j = 0; j < items->at[i].mono->count; j++)
            f->uses[items->at[i].mono->at[j].atom->id][items->at[i].mono->at[j].exp < 0]++;
    for (uint32_t i = 0; i < items->count; i++)
        for (uint32_t j = 0; j < items->at[i].mono->count; j++) {
            const sym_power *power = &items->at[i].mono->at[j];
            uint32_t *uses = &f->uses[power->atom->id][power->exp < 0];
            uint64_t saved =
                *uses < 2 ? 0 : (*uses - 1) * (1 + sym_symbols_of_atom(f->sym, f->style, power->atom));
            const int sign = power->exp < 0 ? -1 : 1;
            if ((saved > most || (saved == most && most > 0 && power->atom->label < best->atom->label)) &&
                !was_tried(tried, count, power->atom, sign)) {
                most = saved;
                *best = (shared){power->atom, sign};
            }
            *uses = 0;
        }
    return most > 0;
}

static uint64_t symbols_of(factorer *f, const sym_items *items)
{
    uint64_t symbols = 0;
    for (uint32_t i = 0; i < items->count; i++)
        symbols += sym_symbols_of_item(f->sym, f->style, &items->at[i]);
    return symbols;
}

/* ---- a sum that stands elsewhere, too ------------------------------------------------------------------ */

static int by_mono(const void *a, const void *b)
{
    const sym_item *const *x = a, *const *y = b;
    return (*x)->mono->id < (*y)->mono->id ? -1 : (*x)->mono->id > (*y)->mono->id;
}

/* Items without groups, by their monomials, each once. */
typedef struct plain_items {
    sym_item **at;
    uint32_t count;
} plain_items;

static plain_items plain_items_of(factorer *f, const sym_items *items)
{
    plain_items plain = {sym_scratch_take(f->sym, items->count + 1, sizeof *plain.at), 0};
    for (uint32_t i = 0; i < items->count; i++)
        if (items->at[i].group_count == 0)
            plain.at[plain.count++] = &items->at[i];
    qsort(plain.at, plain.count, sizeof *plain.at, by_mono);
    return plain;
}

static sym_item *find_item(const plain_items *plain, const sym_mono *mono)
{
    uint32_t low = 0, high = plain->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (plain->at[middle]->mono == mono)
            return plain->at[middle];
        if (plain->at[middle]->mono->id < mono->id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* What the items have where m * it stands; NULL: nothing, or it is no plain item. */
static sym_item *multiple_of(factorer *f, const plain_items *plain, const sym_item *it, sym_term m)
{
    return it->group_count ? NULL : find_item(plain, sym_mono_mul(f->sym, it->mono, m.mono));
}

/* How many symbols it saves that the items have m * sum as well, or unless `all` most of it, where sum stands
 * behind `common`. */
static int64_t saved_by_multiple(factorer *f, const plain_items *plain, const sym_items *sum, sym_term common,
                                 sym_term m, bool all)
{
    etch_sym *sym = f->sym;
    const int64_t once = (int64_t)sym_symbols_of_term(sym, f->style, common.mono, common.coef);
    int64_t saved = -2 - (int64_t)sym_symbols_of_term(sym, f->style, m.mono, m.coef);
    uint32_t found = 0;
    for (uint32_t i = 0; i < sum->count; i++) {
        const sym_item *it = multiple_of(f, plain, &sum->at[i], m);
        if (!it && all)
            return 0;
        if (!it) {
            saved -= once;
            continue;
        }
        sym_coef left = sym_coef_sub(sym, it->coef, sym_coef_mul(sym, sum->at[i].coef, m.coef));
        saved += (int64_t)sym_symbols_of_term(sym, f->style, it->mono, it->coef);
        saved -= (int64_t)sym_symbols_of_term(sym, f->style, it->mono, left);
        found++;
    }
    return found > 1 ? saved : 0;
}

/* Is what m has below the line below that of the item? */
static bool divides_as(const sym_mono *m, const sym_mono *item)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (m->at[i].exp < 0 && sym_mono_exp(item, m->at[i].atom) >= 0)
            return false;
    return true;
}

/* The term m that saves the most; false: none saves anything. */
static bool find_multiple(factorer *f, const plain_items *plain, const sym_items *sum, sym_term common,
                          bool all, sym_term *m)
{
    enum { LOOKED_AT = 2, MOST = 16, FACTORS = 3 };
    etch_sym *sym = f->sym;
    int64_t most = 0;
    for (uint32_t i = 0; i < sum->count && i < LOOKED_AT; i++)
        for (uint32_t j = 0, tried = 0; j < plain->count && tried < MOST; j++) {
            if (sum->at[i].mono->count > plain->at[j]->mono->count + FACTORS)
                continue;
            sym_term other = {sym_mono_div(sym, plain->at[j]->mono, sum->at[i].mono),
                              sym_coef_div(sym, plain->at[j]->coef, sum->at[i].coef)};
            if (other.mono->count > FACTORS || !divides_as(other.mono, plain->at[j]->mono))
                continue;
            tried++;
            int64_t saved = saved_by_multiple(f, plain, sum, common, other, all);
            if (saved > most) {
                most = saved;
                *m = other;
            }
        }
    return most > 0;
}

/* Takes m * sum from the items; those that become 0 are left out later. What of the sum is not there goes
 * from `in` to the items. */
static void take_multiple(factorer *f, sym_items *in, sym_items *rest, const sym_items *sum, sym_term m)
{
    etch_sym *sym = f->sym;
    const plain_items plain = plain_items_of(f, rest);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sum->count; i++) {
        sym_item *it = multiple_of(f, &plain, &sum->at[i], m);
        if (!it) {
            rest->at[rest->count++] = in->at[i];
            continue;
        }
        it->coef = sym_coef_sub(sym, it->coef, sym_coef_mul(sym, sum->at[i].coef, m.coef));
        in->at[kept++] = in->at[i];
    }
    in->count = kept;
}

/* The product of two items. */
static sym_item product_of(factorer *f, const sym_item *a, const sym_item *b)
{
    sym_item product = {.coef = sym_coef_mul(f->sym, a->coef, b->coef),
                        .mono = sym_mono_mul(f->sym, a->mono, b->mono),
                        .group_count = a->group_count + b->group_count,
                        .degree = b->degree,
                        .rank = b->rank};
    product.groups = sym_scratch_take(f->sym, product.group_count, sizeof *product.groups);
    memcpy(product.groups, a->groups, a->group_count * sizeof *product.groups);
    memcpy(product.groups + a->group_count, b->groups, b->group_count * sizeof *product.groups);
    return product;
}

/* What is in `in` as common * sum; as (common + m..) * sum, where the rest has m * sum as well. */
static sym_item group_with_multiples(factorer *f, sym_items *in, sym_items *rest)
{
    enum { MOST = 4, LARGEST = 512 };
    etch_sym *sym = f->sym;
    const sym_term common = common_factor(sym, in);
    sym_items before = {sym_scratch_take(sym, MOST + 1, sizeof *before.at), 1};
    before.at[0] = (sym_item){.coef = common.coef, .mono = common.mono, .degree = common.mono->degree};
    while (in->count > 1 && rest->count > 1 && rest->count <= LARGEST && before.count <= MOST) {
        const sym_items sum = divided(f, in, common);
        const plain_items plain = plain_items_of(f, rest);
        sym_term m;
        /* what the first has taken elsewhere stays with the sum */
        if (!find_multiple(f, &plain, &sum, common, before.count > 1, &m))
            break;
        take_multiple(f, in, rest, &sum, m);
        before.at[before.count] = (sym_item){.coef = m.coef, .mono = m.mono};
        before.at[before.count++].degree = m.mono->degree;
    }
    if (before.count == 1)
        return group(f, in, common);
    for (uint32_t i = 0; i < before.count; i++)
        for (uint32_t k = 0; k < before.count; k++)
            before.at[i].rank += sym_mono_compare(before.at[k].mono, before.at[i].mono) > 0;
    sym_items sum = divided(f, in, common);
    const sym_item factor = group(f, &before, common_factor(sym, &before));
    const sym_item whole = group(f, &sum, common_factor(sym, &sum));
    return product_of(f, &factor, &whole);
}

/* Puts those items that share the atom into one, at the place of the first of them. False: nothing to
 * gain. */
static bool split_by(factorer *f, sym_items *items, const sym_atom *atom, int sign)
{
    sym_items in = {sym_scratch_take(f->sym, items->count, sizeof *in.at), 0};
    sym_items rest = {sym_scratch_take(f->sym, items->count, sizeof *rest.at), 0};
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < items->count; i++) {
        bool shares = has_factor(&items->at[i], atom, sign);
        if (shares && first == UINT32_MAX)
            first = rest.count;
        if (shares)
            in.at[in.count++] = items->at[i];
        else
            rest.at[rest.count++] = items->at[i];
    }
    sym_item whole = group_with_multiples(f, &in, &rest);
    uint64_t one = sym_symbols_of_item(f->sym, f->style, &whole), all = symbols_of(f, items);
    for (uint32_t i = 0; i < rest.count; i++)
        one += sym_coef_is_zero(rest.at[i].coef) ? 0 : sym_symbols_of_item(f->sym, f->style, &rest.at[i]);
    if (one > all)
        return false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i <= rest.count; i++) {
        if (i == first)
            items->at[kept++] = whole;
        if (i < rest.count && !sym_coef_is_zero(rest.at[i].coef))
            items->at[kept++] = rest.at[i];
    }
    items->count = kept;
    return true;
}

/* Puts those items that share the most into one. False: nothing to gain. */
static bool split_once(factorer *f, sym_items *items)
{
    shared tried[TRIED];
    for (uint32_t i = 0; i < TRIED && most_shared(f, items, tried, i); i++)
        if (split_by(f, items, tried[i].atom, tried[i].sign))
            return true;
    return false;
}

/* ---- equal sums ---------------------------------------------------------------------------------------- */

/* 1: the sums are equal, -1: one is the other's negative, 0: neither. */
static int compare_sums(etch_sym *sym, const sym_items *a, const sym_items *b);

static bool same_groups(etch_sym *sym, const sym_item *a, const sym_item *b)
{
    if (a->group_count != b->group_count)
        return false;
    for (uint32_t i = 0; i < a->group_count; i++)
        if (compare_sums(sym, &a->groups[i], &b->groups[i]) != 1)
            return false;
    return true;
}

static int compare_sums(etch_sym *sym, const sym_items *a, const sym_items *b)
{
    int sign = 0;
    if (a->count != b->count)
        return 0;
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_item *x = &a->at[i], *y = &b->at[i];
        int own = sym_coef_equal(x->coef, y->coef) ? 1 : -1;
        if (x->mono != y->mono || (sign && own != sign) || !same_groups(sym, x, y))
            return 0;
        if (own < 0 && !sym_coef_equal(x->coef, sym_coef_neg(sym, y->coef)))
            return 0;
        sign = own;
    }
    return sign;
}

/* The item without its k-th group, which is `sign` times another. */
static sym_item without_group(factorer *f, const sym_item *it, uint32_t k, int sign)
{
    sym_item rest = *it;
    rest.groups = sym_scratch_take(f->sym, it->group_count, sizeof *rest.groups);
    rest.group_count = 0;
    for (uint32_t i = 0; i < it->group_count; i++)
        if (i != k)
            rest.groups[rest.group_count++] = it->groups[i];
    if (sign < 0)
        rest.coef = sym_coef_neg(f->sym, rest.coef);
    return rest;
}

/* The group of the item that is this sum, or its negative; its count where there is none. */
static uint32_t find_sum(etch_sym *sym, const sym_item *it, const sym_items *sum, int *sign)
{
    uint32_t k = 0;
    while (k < it->group_count && !(*sign = compare_sums(sym, &it->groups[k], sum)))
        k++;
    return k;
}

/* m*G + n*G as (m + n)*G for the k-th group of the i-th item; false: no other item has it. */
static bool merge_sum(factorer *f, sym_items *items, uint32_t i, uint32_t k)
{
    sym_items sum = items->at[i].groups[k];
    sym_items in = {sym_scratch_take(f->sym, items->count, sizeof *in.at), 0};
    uint32_t kept = i;
    for (uint32_t j = i; j < items->count; j++) {
        int sign;
        uint32_t at = find_sum(f->sym, &items->at[j], &sum, &sign);
        if (at < items->at[j].group_count)
            in.at[in.count++] = without_group(f, &items->at[j], at, sign);
    }
    if (in.count < 2)
        return false;
    sym_item whole = group(f, &in, common_factor(f->sym, &in));
    sym_items *groups = sym_scratch_take(f->sym, whole.group_count + 1, sizeof *groups);
    memcpy(groups, whole.groups, whole.group_count * sizeof *groups);
    groups[whole.group_count++] = sum;
    whole.groups = groups;
    for (uint32_t j = i; j < items->count; j++) {
        int sign;
        bool has = find_sum(f->sym, &items->at[j], &sum, &sign) < items->at[j].group_count;
        if (!has)
            items->at[kept++] = items->at[j];
        else if (j == i)
            items->at[kept++] = whole;
    }
    items->count = kept;
    return true;
}

static void merge_sums(factorer *f, sym_items *items)
{
    for (uint32_t i = 0; i < items->count; i++)
        for (uint32_t k = 0; k < items->at[i].group_count;)
            if (!merge_sum(f, items, i, k))
                k++;
            else
                k = 0;
}

static bool is_bare_sum(const sym_item *it)
{
    return it->group_count == 1 && it->mono->count == 0 &&
           (sym_coef_is_one(it->coef) || sym_coef_equal(it->coef, ETCH_SYM_MINUS_ONE));
}

/* a + (b + c) as a + b + c. */
static sym_items without_bare_sums(factorer *f, sym_items items)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < items.count; i++)
        count += is_bare_sum(&items.at[i]) ? items.at[i].groups->count : 1;
    if (count == items.count)
        return items;
    sym_items all = {sym_scratch_take(f->sym, count, sizeof *all.at), 0};
    for (uint32_t i = 0; i < items.count; i++) {
        const bool bare = is_bare_sum(&items.at[i]);
        const sym_items inner = bare ? *items.at[i].groups : (sym_items){&items.at[i], 1};
        for (uint32_t k = 0; k < inner.count; k++) {
            all.at[all.count] = inner.at[k];
            if (bare)
                all.at[all.count].coef = sym_coef_mul(f->sym, inner.at[k].coef, items.at[i].coef);
            all.count++;
        }
    }
    return all;
}

static sym_items split(factorer *f, sym_items items)
{
    while (items.count > 1 && split_once(f, &items))
        ;
    merge_sums(f, &items);
    items = without_bare_sums(f, items);
    qsort(items.at, items.count, sizeof *items.at, sym_by_degree);
    return items;
}

/* ---- the forms ----------------------------------------------------------------------------------------- */

sym_items sym_factor_items(etch_sym *sym, sym_style *style, sym_items items)
{
    factorer f = {.sym = sym, .style = style};
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

sym_items sym_relate_items(etch_sym *sym, sym_style *style, sym_items items)
{
    factorer f = {.sym = sym, .style = style, .depth = MAX_DEPTH};
    sym_term common = items.count < 2 ? (sym_term){sym->unit, ETCH_SYM_ONE} : nonzero_part(sym, &items.at[0]);
    if (common.mono->count == 0 && sym_coef_is_one(common.coef))
        return items;
    sym_item *whole = sym_scratch_take(sym, 1, sizeof *whole);
    *whole = group(&f, &items, common);
    return (sym_items){whole, 1};
}

/* A sum does not begin with a minus where it has a summand without: that one is moved to the front. */
static void begin_without_minus(sym_items items)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < items.count; i++)
        for (uint32_t k = 0; k < items.at[i].group_count; k++)
            begin_without_minus(items.at[i].groups[k]);
    while (first < items.count && sym_coef_sign(items.at[first].coef) < 0)
        first++;
    if (first == 0 || first == items.count)
        return;
    sym_item moved = items.at[first];
    memmove(items.at + 1, items.at, first * sizeof *items.at);
    items.at[0] = moved;
}

sym_items sym_arrange(etch_sym *sym, sym_style *style, etch_expr a)
{
    sym_items items = sym_items_of(sym, a, style);
    if (style->form == ETCH_SHORTEST)
        begin_without_minus(items);
    if (style->form == ETCH_EXPANDED || items.count < 2)
        return items;
    if (style->form == ETCH_RELATIVE)
        return sym_relate_items(sym, style, items);
    sym_items factored = sym_factor_items(sym, style, items);
    if (style->form == ETCH_FACTORED)
        return factored;
    begin_without_minus(factored);
    return sym_symbols_of_items(sym, style, factored) < sym_symbols_of_items(sym, style, items) ? factored
                                                                                                : items;
}
