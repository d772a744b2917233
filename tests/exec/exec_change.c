#include "exec_change.h"

#include <math.h>
#include <string.h>

enum { MOST_RANKS = 64 };

/* Sums over one matrix: of the squares of the weight, and of what changes it; and of elements, how many. */
typedef struct sums {
    double weight, change;
    size_t elements;
} sums;

/* What a rank has: its elements, and what it knows of each matrix. */
typedef struct part {
    size_t count;
    const double *places;
    double *change;
    sums *known, *before;
} part;

struct exec_change {
    etch_arena *arena;
    const exec_array *old;
    /* by element of the whole: which matrix it is of */
    uint32_t *matrix;
    uint32_t matrices;
    part ranks[MOST_RANKS];
};

/* Each expert has a matrix of its own. */
static bool counts_matrices(const exec_array *weight, const etch_dim *dim)
{
    return weight->rank > 2 && strcmp(dim->name, "E") == 0;
}

static void find_matrices(exec_change *c)
{
    const exec_array *old = c->old;
    exec_walk w = exec_walk_over(1, (const exec_array *[]){old});
    c->matrices = 1;
    c->matrix = ETCH_NEW_ARRAY(c->arena, old->size, uint32_t);
    for (uint32_t d = 0; d < old->rank; d++)
        c->matrices *= counts_matrices(old, old->dims[d]) ? old->count[d] : 1;
    while (exec_walk_next(&w))
        for (uint32_t d = 0; d < old->rank; d++)
            if (counts_matrices(old, old->dims[d]))
                c->matrix[w.at[0]] = c->matrix[w.at[0]] * old->count[d] + exec_walk_index(&w, old->dims[d]);
}

exec_change *exec_change_new(etch_arena *arena, const char *optimizer, const exec_array *old)
{
    if (strcmp(optimizer, "lamb") != 0)
        return NULL;
    exec_change *c = ETCH_NEW(arena, exec_change);
    c->arena = arena;
    c->old = old;
    find_matrices(c);
    return c;
}

/* As adamw would change it, with moments of this step alone, and some decay. */
static double change_of(double old, double slope)
{
    return slope / (fabs(slope) + 1) + old / 8;
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
                .before = ETCH_NEW_ARRAY(c->arena, c->matrices, sums)};
    for (size_t i = 0; i < count; i++) {
        const size_t place = (size_t)places[i];
        p->change[i] = change_of(c->old->at[place], slopes[i]);
        add_element(c, p->known, place, p->change[i]);
    }
}

size_t exec_change_share_bytes(const exec_change *c, uint32_t rank)
{
    size_t matrices = 0;
    for (uint32_t m = 0; m < c->matrices; m++)
        matrices += c->ranks[rank].known[m].elements > 0;
    return 2 * sizeof(float) * matrices;
}

void exec_change_share_begin(exec_change *c)
{
    for (uint32_t r = 0; r < MOST_RANKS; r++)
        if (c->ranks[r].known)
            memcpy(c->ranks[r].before, c->ranks[r].known, c->matrices * sizeof(sums));
}

void exec_change_share(exec_change *c, uint32_t rank, uint32_t other)
{
    for (uint32_t m = 0; m < c->matrices; m++) {
        c->ranks[rank].known[m].weight += c->ranks[other].before[m].weight;
        c->ranks[rank].known[m].change += c->ranks[other].before[m].change;
        c->ranks[rank].known[m].elements += c->ranks[other].before[m].elements;
    }
}

const double *exec_change_of_part(const exec_change *c, uint32_t rank)
{
    const part *p = &c->ranks[rank];
    double *out = ETCH_NEW_ARRAY(c->arena, p->count, double);
    for (size_t i = 0; i < p->count; i++)
        out[i] = p->change[i] * ratio(&p->known[c->matrix[(size_t)p->places[i]]]);
    return out;
}

const double *exec_change_of_whole(const exec_change *c, const exec_array *slope)
{
    double *out = ETCH_NEW_ARRAY(c->arena, c->old->size, double);
    sums *known = ETCH_NEW_ARRAY(c->arena, c->matrices, sums);
    exec_walk w = exec_walk_over(2, (const exec_array *[]){c->old, slope});
    while (exec_walk_next(&w)) {
        out[w.at[0]] = change_of(c->old->at[w.at[0]], slope->at[w.at[1]]);
        add_element(c, known, w.at[0], out[w.at[0]]);
    }
    for (size_t i = 0; i < c->old->size; i++)
        out[i] *= ratio(&known[c->matrix[i]]);
    return out;
}
