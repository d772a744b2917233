/* Products of two sums.
 *
 * Large ones go through packed exponents. The exponents of each atom range over least..greatest in either
 * factor, so those of the product have a known range, and a monomial is one word: its exponents, counted from
 * the least, as digits of a number whose bases are the ranges. Products of monomials are then sums of words,
 * and their order is the order of terms. Coefficients are integers over a common denominator, summed in 128
 * bits. Like terms meet in an array over all words if that is not much larger than the work, else in a hash
 * table. What does not fit (words of more than 64 bits, sums of more than 127) is done term by term. */
#include <stdlib.h>
#include <string.h>

#include "symbolic/symbolic_int.h"

enum {
    /* below this packing costs more than it saves */
    FEW_PAIRS = 400,
    /* with nonzero exponents in the factors */
    MOST_PACKED_ATOMS = 64,
    /* pairs that may stand in a list of terms */
    MOST_LISTED = 6000000,
    /* pairs whose terms may meet in a hash table, */
    MOST_HASHED = 40000000,
    /* in an array */
    MOST_ADDED = 200000000,
    /* of the array over all words */
    DENSE_CELLS = 1 << 20,
    /* cells that one pair of terms is worth */
    DENSE_PER_PAIR = 8
};

/* ---- term by term -------------------------------------------------------------------------------------- */

static uint64_t longest_coef(etch_expr a)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t limbs = sym_coef_limbs(a->terms[i].coef);
        most = limbs > most ? limbs : most;
    }
    return most;
}

static etch_expr multiply_listed(etch_sym *sym, etch_expr a, etch_expr b)
{
    uint64_t pairs = (uint64_t)a->count * b->count;
    uint64_t words = longest_coef(a) * longest_coef(b);
    if (pairs > MOST_LISTED)
        sym_limit_of(sym, "products of terms in one multiplication", MOST_LISTED);
    if (pairs * words > ETCH_SYM_MAX_WORK)
        sym_limit(sym);
    sym_count_work(sym, pairs * words);
    sym_terms *out = sym_terms_new(sym);
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < b->count; j++)
            sym_terms_push(sym, out, sym_mono_mul(sym, a->terms[i].mono, b->terms[j].mono),
                           sym_coef_mul(sym, a->terms[i].coef, b->terms[j].coef));
    return sym_terms_collect(sym, out);
}

/* ---- packing ------------------------------------------------------------------------------------------- */

/* What one atom is in a word: (exponent - least) * unit, for exponents of the product. */
typedef struct digit {
    sym_atom *atom;
    /* in each factor */
    int32_t least[2], greatest[2];
    uint64_t unit;
} digit;

typedef struct packing {
    etch_sym *sym;
    /* in the order of atoms: the first has the largest unit */
    digit *digits;
    uint32_t count;
    /* words are below this */
    uint64_t cells;
    /* coefficient = factor * integer, of each factor of the product */
    sym_coef factor[2];
} packing;

/* A factor of the product in words and integers. */
typedef struct packed {
    uint64_t *words;
    int64_t *coefs;
    uint32_t count;
    /* greatest magnitude of a coefficient */
    uint64_t longest;
} packed;

static uint32_t find_digit(const packing *p, const sym_atom *atom)
{
    uint32_t low = 0, high = p->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->digits[middle].atom->label < atom->label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Notes the exponents of factor `which`. False: too many atoms. */
static bool note_ranges(packing *p, etch_expr a, int which)
{
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < a->terms[i].mono->count; j++) {
            const sym_power *power = &a->terms[i].mono->at[j];
            uint32_t at = find_digit(p, power->atom);
            if (at == p->count || p->digits[at].atom != power->atom) {
                if (p->count == MOST_PACKED_ATOMS)
                    return false;
                memmove(p->digits + at + 1, p->digits + at, (p->count - at) * sizeof *p->digits);
                p->digits[at] = (digit){.atom = power->atom};
                p->count++;
            }
            digit *d = &p->digits[at];
            if (power->exp < d->least[which])
                d->least[which] = power->exp;
            if (power->exp > d->greatest[which])
                d->greatest[which] = power->exp;
        }
    return true;
}

/* Gives every digit its unit. False: words would need more than 64 bits. */
static bool set_units(packing *p)
{
    uint64_t unit = 1;
    for (uint32_t i = p->count; i-- > 0;) {
        digit *d = &p->digits[i];
        uint64_t range = (uint64_t)((int64_t)d->greatest[0] + d->greatest[1] - d->least[0] - d->least[1]) + 1;
        d->unit = unit;
        if (__builtin_mul_overflow(unit, range, &unit))
            return false;
    }
    p->cells = unit;
    return unit < UINT64_MAX;
}

/* coefficient / factor, an integer that fits. */
static bool pack_coef(packing *p, sym_coef coef, sym_coef factor, packed *out, uint32_t i)
{
    if (!sym_coef_is_one(factor))
        coef = sym_coef_div(p->sym, coef, factor);
    if (!sym_coef_is_small(coef))
        return false;
    uint64_t size = coef.num < 0 ? -(uint64_t)coef.num : (uint64_t)coef.num;
    out->longest = size > out->longest ? size : out->longest;
    out->coefs[i] = coef.num;
    return true;
}

/* Writes a factor of the product in words and integers; false when a coefficient does not fit. */
static bool pack(packing *p, etch_expr a, int which, packed *out)
{
    etch_sym *sym = p->sym;
    *out = (packed){.count = a->count};
    out->words = sym_scratch_take(sym, a->count, sizeof *out->words);
    out->coefs = sym_scratch_take(sym, a->count, sizeof *out->coefs);
    uint64_t base = 0;
    for (uint32_t k = 0; k < p->count; k++)
        base -= (uint64_t)(int64_t)p->digits[k].least[which] * p->digits[k].unit;
    bool integers = true;
    for (uint32_t i = 0; integers && i < a->count; i++)
        integers = sym_coef_is_integer(a->terms[i].coef);
    p->factor[which] = integers ? ETCH_SYM_ONE : sym_content(sym, a);
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = a->terms[i].mono;
        if (!pack_coef(p, a->terms[i].coef, p->factor[which], out, i))
            return false;
        uint64_t word = base; /* wraps around; the sum is in range again */
        for (uint32_t j = 0; j < mono->count; j++)
            word += (uint64_t)(int64_t)mono->at[j].exp * p->digits[find_digit(p, mono->at[j].atom)].unit;
        out->words[i] = word;
    }
    return true;
}

static uint32_t bits_of(uint64_t value)
{
    return value ? 64 - (uint32_t)__builtin_clzll(value) : 0;
}

/* Can no sum of products of coefficients leave 127 bits? */
static bool sums_fit(const packed *a, const packed *b)
{
    uint32_t most = a->count < b->count ? a->count : b->count;
    return bits_of(a->longest) + bits_of(b->longest) + bits_of(most) <= 127;
}

/* ---- adding like terms --------------------------------------------------------------------------------- */

typedef struct cell {
    uint64_t word;
    sym_wide sum;
} cell;

/* Appends the term of a word. */
static void unpack(const packing *p, uint64_t word, sym_wide sum, sym_coef factor, sym_terms *out)
{
    sym_power powers[MOST_PACKED_ATOMS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const digit *d = &p->digits[i];
        int64_t exp = (int64_t)(word / d->unit) + d->least[0] + d->least[1];
        word %= d->unit;
        if (exp != 0)
            powers[count++] = (sym_power){d->atom, sym_checked_exponent(p->sym, exp)};
    }
    sym_coef coef = sym_coef_of_wide(p->sym, sum);
    if (!sym_coef_is_one(factor))
        coef = sym_coef_mul(p->sym, coef, factor);
    sym_terms_push(p->sym, out, sym_mono_from(p->sym, powers, count), coef);
}

static void add_in_array(const packing *p, const packed *a, const packed *b, sym_coef factor, sym_terms *out)
{
    sym_wide *sums = sym_scratch_take(p->sym, p->cells, sizeof *sums);
    for (uint32_t i = 0; i < a->count; i++) {
        sym_wide *row = sums + a->words[i];
        sym_wide coef = a->coefs[i];
        for (uint32_t j = 0; j < b->count; j++)
            row[b->words[j]] += coef * b->coefs[j];
    }
    for (uint64_t word = p->cells; word-- > 0;)
        if (sums[word])
            unpack(p, word, sums[word], factor, out);
}

/* Cells by word, open addressing; the word of a free one is UINT64_MAX. */
typedef struct cell_table {
    cell *cells;
    /* a power of two */
    uint32_t count, capacity;
} cell_table;

static cell *cell_of(const cell_table *table, uint64_t word)
{
    uint32_t at = (uint32_t)(word * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (table->capacity - 1);
    while (table->cells[at].word != word && table->cells[at].word != UINT64_MAX)
        at = (at + 1) & (table->capacity - 1);
    return &table->cells[at];
}

static void set_capacity(etch_sym *sym, cell_table *table, uint32_t capacity)
{
    cell_table old = *table;
    table->cells = sym_scratch_take(sym, capacity, sizeof *table->cells);
    table->capacity = capacity;
    for (uint32_t i = 0; i < capacity; i++)
        table->cells[i].word = UINT64_MAX;
    for (uint32_t i = 0; i < old.capacity; i++)
        if (old.cells[i].word != UINT64_MAX)
            *cell_of(table, old.cells[i].word) = old.cells[i];
}

static int by_decreasing_word(const void *a, const void *b)
{
    uint64_t x = ((const cell *)a)->word, y = ((const cell *)b)->word;
    return (x < y) - (x > y);
}

static void add_in_table(const packing *p, const packed *a, const packed *b, sym_coef factor, sym_terms *out)
{
    enum { FIRST_CELLS = 256 };
    cell_table table = {0};
    set_capacity(p->sym, &table, FIRST_CELLS);
    for (uint32_t i = 0; i < a->count; i++) {
        if (table.count > 2 * (uint64_t)p->sym->limits.terms)
            sym_limit_of(p->sym, "terms of one expression", p->sym->limits.terms);
        while (table.count + (uint64_t)b->count > table.capacity / 2)
            set_capacity(p->sym, &table, table.capacity * 2);
        for (uint32_t j = 0; j < b->count; j++) {
            cell *c = cell_of(&table, a->words[i] + b->words[j]);
            table.count += c->word == UINT64_MAX;
            c->word = a->words[i] + b->words[j];
            c->sum += (sym_wide)a->coefs[i] * b->coefs[j];
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < table.capacity; i++)
        if (table.cells[i].word != UINT64_MAX && table.cells[i].sum)
            table.cells[kept++] = table.cells[i];
    qsort(table.cells, kept, sizeof *table.cells, by_decreasing_word);
    for (uint32_t i = 0; i < kept; i++)
        unpack(p, table.cells[i].word, table.cells[i].sum, factor, out);
}

/* NULL: it cannot be packed. */
static etch_expr multiply_packed(etch_sym *sym, etch_expr a, etch_expr b)
{
    uint64_t pairs = (uint64_t)a->count * b->count;
    packing p = {.sym = sym};
    p.digits = sym_scratch_take(sym, MOST_PACKED_ATOMS, sizeof *p.digits);
    packed x, y;
    if (!note_ranges(&p, a, 0) || !note_ranges(&p, b, 1) || !set_units(&p) || !pack(&p, a, 0, &x) ||
        !pack(&p, b, 1, &y) || !sums_fit(&x, &y))
        return NULL;
    sym_coef factor = sym_coef_mul(sym, p.factor[0], p.factor[1]);
    sym_terms *out = sym_terms_new(sym);
    bool dense = p.cells <= DENSE_CELLS && p.cells / DENSE_PER_PAIR <= pairs;
    if (pairs > (dense ? MOST_ADDED : MOST_HASHED))
        sym_limit_of(sym, "products of terms in one multiplication", dense ? MOST_ADDED : MOST_HASHED);
    if (dense)
        add_in_array(&p, &x, &y, factor, out);
    else
        add_in_table(&p, &x, &y, factor, out);
    return sym_terms_finish(sym, out);
}

etch_expr sym_mul_sums(etch_sym *sym, etch_expr a, etch_expr b)
{
    uint64_t pairs = (uint64_t)a->count * b->count;
    sym_count_work(sym, pairs);
    if (pairs >= FEW_PAIRS) {
        sym_scratch_mark mark = sym_scratch_top(sym);
        etch_expr result = multiply_packed(sym, a, b);
        sym_scratch_release(sym, mark);
        if (result)
            return result;
    }
    return multiply_listed(sym, a, b);
}
