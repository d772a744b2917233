#include "exec_change.h"

#include <math.h>
#include <string.h>

enum { MOST_RANKS = 64 };

/* Sums over one matrix: of the squares of the weight, and of what changes it; and of elements, how many. */
typedef struct sums {
    double weight, change;
    size_t elements;
} sums;

/* What a rank has: its elements, and what it knows of each matrix: sums, or elements. */
typedef struct part {
    size_t count;
    const double *places;
    double *change;
    sums *known, *before;
    double *values, *values_before;
    bool *has, *has_before;
} part;

struct exec_change {
    etch_arena *arena;
    bool multiplies;
    uint32_t steps;
    const exec_array *old;
    /* by element of the whole: its matrix, row and column */
    uint32_t *matrix, *row, *column;
    uint32_t matrices, rows, columns;
    part ranks[MOST_RANKS];
};

/* ---- matrices ------------------------------------------------------------------------------------------ */

/* What a dim of a weight is in the models that are run: each expert has a matrix of its own, one of whose
 * sides is the width of the model. */
typedef enum side { ROWS, COLUMNS, MATRICES } side;

static side side_of(const exec_array *weight, uint32_t d)
{
    const char *name = weight->dims[d]->name;
    return weight->rank > 2 && strcmp(name, "E") == 0 ? MATRICES : strcmp(name, "H") == 0 ? ROWS : COLUMNS;
}

static void find_matrices(exec_change *c)
{
    const exec_array *old = c->old;
    uint32_t *const sizes[] = {&c->rows, &c->columns, &c->matrices};
    uint32_t **const at[] = {&c->row, &c->column, &c->matrix};
    exec_walk w = exec_walk_over(1, (const exec_array *[]){old});
    for (int s = 0; s < 3; s++) {
        *sizes[s] = 1;
        *at[s] = ETCH_NEW_ARRAY(c->arena, old->size, uint32_t);
    }
    for (uint32_t d = 0; d < old->rank; d++)
        *sizes[side_of(old, d)] *= old->count[d];
    while (exec_walk_next(&w))
        for (uint32_t d = 0; d < old->rank; d++) {
            uint32_t *place = &(*at[side_of(old, d)])[w.at[0]];
            *place = *place * old->count[d] + exec_walk_index(&w, old->dims[d]);
        }
}

/* Muon leaves what is no matrix to another optimizer, and tables and heads. */
static bool is_left(const etch_tensor *weight)
{
    bool has_width = false;
    for (uint32_t d = 0; d < weight->rank; d++)
        has_width = has_width || strcmp(weight->dims[d]->name, "H") == 0;
    return !has_width || weight->rank < 2 || strcmp(weight->name, "emb") == 0 ||
           strcmp(weight->name, "head") == 0;
}

exec_change *exec_change_new(etch_arena *arena, const char *optimizer, uint32_t steps,
                             const etch_tensor *weight, const exec_array *old)
{
    const bool multiplies = strcmp(optimizer, "muon") == 0;
    if (multiplies ? is_left(weight) : strcmp(optimizer, "lamb") != 0)
        return NULL;
    exec_change *c = ETCH_NEW(arena, exec_change);
    *c = (exec_change){.arena = arena, .multiplies = multiplies, .steps = steps, .old = old};
    find_matrices(c);
    return c;
}

/* ---- products ------------------------------------------------------------------------------------------ */

/* What kernels have done: FLOP, and bytes of bf16 that they have read and written. */
typedef struct account {
    size_t flop, bytes;
} account;

static void moved(account *a, size_t elements)
{
    a->bytes += 2 * elements;
}

/* out = x y, or x times the transpose of y: m rows, n columns, sums of k. */
static void multiply(account *a, size_t m, size_t n, size_t k, const double *x, const double *y, bool turned,
                     double *out)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t l = 0; l < k; l++, a->flop += 2)
                sum += x[i * k + l] * (turned ? y[j * k + l] : y[l * n + j]);
            out[i * n + j] = sum;
        }
}

/* out = scale x + by y, in the kernel that has made y. */
static void combine(account *a, size_t count, double scale, const double *x, double by, double *y)
{
    for (size_t i = 0; i < count; i++, a->flop += by == 1 ? 2 : 3)
        y[i] = scale * x[i] + by * y[i];
}

/* Newton and Schulz's iteration of fifth order on x, of m rows and n columns, m the fewer. */
static void make_orthogonal(account *a, etch_arena *arena, uint32_t steps, size_t m, size_t n, double *x)
{
    double *square = ETCH_NEW_ARRAY(arena, m * m, double), *b = ETCH_NEW_ARRAY(arena, m * m, double),
           *next = ETCH_NEW_ARRAY(arena, m * n, double), norm = 0;
    for (size_t i = 0; i < m * n; i++, a->flop += 2)
        norm += x[i] * x[i];
    moved(a, m * n);
    for (size_t i = 0; i < m * n; i++, a->flop++)
        x[i] /= sqrt(norm) + 1e-7;
    moved(a, 2 * m * n);
    for (uint32_t s = 0; s < steps; s++) {
        multiply(a, m, m, n, x, x, true, square);
        moved(a, m * n + m * m);
        multiply(a, m, m, m, square, square, false, b);
        combine(a, m * m, -4.7750, square, 2.0315, b);
        moved(a, m * m + m * m);
        multiply(a, m, n, m, b, x, false, next);
        combine(a, m * n, 3.4445, x, 1, next);
        moved(a, m * m + 2 * m * n);
        memcpy(x, next, m * n * sizeof *x);
    }
}

/* Of each matrix, of which all elements are known, as `has` says (NULL: of all). */
static account multiply_all(const exec_change *c, const double *values, const bool *has, double *out)
{
    account a = {0};
    const size_t m = c->rows < c->columns ? c->rows : c->columns, n = (size_t)c->rows * c->columns / m;
    for (uint32_t number = 0; number < c->matrices; number++) {
        double *x = ETCH_NEW_ARRAY(c->arena, m * n, double);
        size_t known = 0;
        for (size_t i = 0; i < c->old->size; i++) {
            if (c->matrix[i] != number || (has && !has[i]))
                continue;
            x[c->rows <= c->columns ? c->row[i] * n + c->column[i] : c->column[i] * n + c->row[i]] =
                values[i];
            known++;
        }
        if (known == m * n)
            make_orthogonal(&a, c->arena, c->steps, m, n, x);
        for (size_t i = 0; i < c->old->size; i++)
            if (c->matrix[i] == number)
                out[i] = known < m * n           ? NAN
                         : c->rows <= c->columns ? x[c->row[i] * n + c->column[i]]
                                                 : x[c->column[i] * n + c->row[i]];
    }
    return a;
}

size_t exec_change_flop(const exec_change *c, uint32_t rank, size_t *bytes)
{
    double *out = ETCH_NEW_ARRAY(c->arena, c->old->size, double);
    const account a = multiply_all(c, c->ranks[rank].values, c->ranks[rank].has, out);
    *bytes = a.bytes;
    return a.flop;
}

/* ---- elements ------------------------------------------------------------------------------------------ */

/* As adamw would change it, with moments of this step alone, and some decay; along a first momentum. */
static double change_of(const exec_change *c, double old, double slope)
{
    return c->multiplies ? slope + 0.95 * slope : slope / (fabs(slope) + 1) + old / 8;
}

static double ratio(const sums *s)
{
    return s->change > 0 ? sqrt(s->weight / s->change) : 1;
}

static void add_element(const exec_change *c, sums *known, size_t place, double change)
{
    known[c->matrix[place]].weight += c->old->at[place] * c->old->at[place];
    known[c->matrix[place]].change += change * change;
    known[c->matrix[place]].elements++;
}

void exec_change_prepare(exec_change *c, uint32_t rank, size_t count, const double *places,
                         const double *slopes)
{
    EXEC_REQUIRE(rank < MOST_RANKS);
    part *p = &c->ranks[rank];
    *p = (part){.count = count,
                .places = places,
                .change = ETCH_NEW_ARRAY(c->arena, count, double),
                .known = ETCH_NEW_ARRAY(c->arena, c->matrices, sums),
                .before = ETCH_NEW_ARRAY(c->arena, c->matrices, sums),
                .values = ETCH_NEW_ARRAY(c->arena, c->old->size, double),
                .values_before = ETCH_NEW_ARRAY(c->arena, c->old->size, double),
                .has = ETCH_NEW_ARRAY(c->arena, c->old->size, bool),
                .has_before = ETCH_NEW_ARRAY(c->arena, c->old->size, bool)};
    for (size_t i = 0; i < count; i++) {
        const size_t place = (size_t)places[i];
        p->values[place] = p->change[i] = change_of(c, c->old->at[place], slopes[i]);
        p->has[place] = true;
        add_element(c, p->known, place, p->change[i]);
    }
}

/* ---- what ranks tell each other ------------------------------------------------------------------------ */

size_t exec_change_share_bytes(const exec_change *c, uint32_t rank, size_t held)
{
    size_t matrices = 0;
    for (uint32_t m = 0; m < c->matrices; m++)
        matrices += c->ranks[rank].known[m].elements > 0;
    return c->multiplies ? 2 * held : 2 * sizeof(float) * matrices;
}

void exec_change_share_begin(exec_change *c)
{
    for (uint32_t r = 0; r < MOST_RANKS; r++) {
        part *p = &c->ranks[r];
        if (!p->known)
            continue;
        memcpy(p->before, p->known, c->matrices * sizeof *p->known);
        memcpy(p->values_before, p->values, c->old->size * sizeof *p->values);
        memcpy(p->has_before, p->has, c->old->size * sizeof *p->has);
    }
}

void exec_change_share(exec_change *c, uint32_t rank, uint32_t other)
{
    part *own = &c->ranks[rank];
    const part *from = &c->ranks[other];
    for (uint32_t m = 0; m < c->matrices; m++) {
        own->known[m].weight += from->before[m].weight;
        own->known[m].change += from->before[m].change;
        own->known[m].elements += from->before[m].elements;
    }
    for (size_t i = 0; i < c->old->size; i++) {
        if (!from->has_before[i])
            continue;
        own->values[i] = own->has[i] ? NAN : from->values_before[i]; /* nobody tells what one knows */
        own->has[i] = true;
    }
}

/* ---- the last part ------------------------------------------------------------------------------------- */

const double *exec_change_of_part(const exec_change *c, uint32_t rank)
{
    const part *p = &c->ranks[rank];
    double *out = ETCH_NEW_ARRAY(c->arena, p->count, double),
           *all = ETCH_NEW_ARRAY(c->arena, c->old->size, double);
    if (c->multiplies)
        multiply_all(c, p->values, p->has, all);
    for (size_t i = 0; i < p->count; i++) {
        const size_t place = (size_t)p->places[i];
        out[i] = c->multiplies ? all[place] : p->change[i] * ratio(&p->known[c->matrix[place]]);
    }
    return out;
}

const double *exec_change_of_whole(const exec_change *c, const exec_array *slope)
{
    double *change = ETCH_NEW_ARRAY(c->arena, c->old->size, double),
           *out = ETCH_NEW_ARRAY(c->arena, c->old->size, double);
    sums *known = ETCH_NEW_ARRAY(c->arena, c->matrices, sums);
    exec_walk w = exec_walk_over(2, (const exec_array *[]){c->old, slope});
    while (exec_walk_next(&w)) {
        change[w.at[0]] = change_of(c, c->old->at[w.at[0]], slope->at[w.at[1]]);
        add_element(c, known, w.at[0], change[w.at[0]]);
    }
    if (c->multiplies)
        multiply_all(c, change, NULL, out);
    for (size_t i = 0; i < c->old->size && !c->multiplies; i++)
        out[i] = change[i] * ratio(&known[c->matrix[i]]);
    return out;
}
