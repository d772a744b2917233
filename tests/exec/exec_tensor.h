/* Arrays of real numbers with named dims: what a tensor is on one rank, and walks over their indices. */
#ifndef ETCH_TEST_EXEC_TENSOR_H
#define ETCH_TEST_EXEC_TENSOR_H

#include "graph/graph.h"

#include <check.h>

/* Fails the test unless the condition holds. Check's own assertions write to a file each time that they hold.
 */
#define EXEC_REQUIRE(condition)             \
    do {                                    \
        if (!(condition))                   \
            ck_abort_msg("%s", #condition); \
    } while (0)

enum { EXEC_MAX_RANK = 8, EXEC_WALK_DIMS = 12, EXEC_WALK_ARRAYS = 6 };
#define EXEC_NOWHERE UINT32_MAX

/* Who has made a value: none of backward; an op of it; nobody, it is the zeros of a loop that runs no
 * iteration; iterations of a loop that is being run, or nobody. */
typedef enum exec_made { EXEC_GIVEN, EXEC_MADE, EXEC_NOTHING, EXEC_OPEN } exec_made;

/* The elements of a tensor that one rank holds: of each dim a range of its indices, or some that lie
 * apart, and behind them padding, which is memory as they are and stands for no element. */
typedef struct exec_array {
    uint32_t rank;
    const etch_dim *dims[EXEC_MAX_RANK];
    uint32_t first[EXEC_MAX_RANK], count[EXEC_MAX_RANK];
    uint32_t held[EXEC_MAX_RANK];         /* `count`, and the padding behind */
    const uint32_t *apart[EXEC_MAX_RANK]; /* the `count` indices, growing; NULL: those from `first` on */
    size_t size;                          /* with padding */
    double *at;                           /* the last dim runs fastest; walks leave padding out */
    exec_made made;
    double summed; /* of one rank: of the sums that its elements are, the largest of absolute values */
    /* Of what backward reads: */
    struct exec_array *memory;  /* the array whose memory it is; NULL: its own */
    const etch_tensor *made_as; /* by an op of the forward pass, and not only as a view */
    const etch_op *kept_for;    /* the first op of a later phase that has read it */
    bool is_kept;               /* on a rank: one has */
    uint32_t born, read;        /* on a rank: the steps that have made it, and read it last */
    uint32_t bytes;             /* likewise; of all elements */
    uint32_t microbatch;        /* likewise */
    struct exec_array *sent_as; /* received from another stage: what was sent there */
    struct exec_array *before;  /* likewise: what an earlier action of the stage had of the same value */
    uint32_t *together;         /* of copies that are gathered at once: the last read of any of them */
    bool *use;                  /* of a weight: set when an op or a move reads it */
    bool is_used;               /* on a stage: an op or a move has read it */
} exec_array;

/* Adds a dim to an array that has no elements yet. */
void exec_array_add_dim(exec_array *array, const etch_dim *dim, uint32_t first, uint32_t count);
/* The same, of which it has the `count` growing `indices`; the array keeps them, if they are no range. */
void exec_array_add_apart(exec_array *array, const etch_dim *dim, const uint32_t *indices, uint32_t count);
/* The same, of which it has what `from` has of its i-th dim. */
void exec_array_add_dim_of(exec_array *array, const exec_array *from, uint32_t i);
/* Holds `held` of the dim that was added last: what is behind its elements is padding. */
void exec_array_pad(exec_array *array, uint32_t held);
/* What it holds, and how many of that are no padding. */
size_t exec_array_size(const exec_array *array);
size_t exec_array_elements(const exec_array *array);
/* Gives the array its elements, all zero. */
void exec_array_fill(etch_arena *arena, exec_array *array);
/* Zeros with the dims and ranges of `like`; without the dims `less`. */
exec_array *exec_array_like(etch_arena *arena, const exec_array *like);
exec_array *exec_array_less(etch_arena *arena, const exec_array *like, etch_dim *const *less, uint32_t count);
/* Place of `dim` among those of the array, or -1. */
int exec_array_find(const exec_array *array, const etch_dim *dim);
/* Where the array has an index of its i-th dim: 0 .. count - 1, or EXEC_NOWHERE. */
uint32_t exec_array_place(const exec_array *array, uint32_t i, uint32_t index);
/* Do both hold the same ranges of the dims that they share? */
bool exec_arrays_agree(const exec_array *a, const exec_array *b);
/* The same dims and the same ranges? */
bool exec_arrays_alike(const exec_array *a, const exec_array *b);
double exec_array_largest(const exec_array *array); /* of absolute values */
/* "S[2..4) H[0..8) C{0 1 4 5} V[6..7)+1", where one of V is padding. */
const char *exec_array_text(etch_arena *arena, const exec_array *array);

/* All combinations of the indices of the dims of some arrays, none of padding, and where each array is at:
 *     exec_walk w = exec_walk_over(3, (const exec_array *[]){y, a, b});
 *     while (exec_walk_next(&w))
 *         y->at[w.at[0]] += a->at[w.at[1]] * b->at[w.at[2]]; */
typedef struct exec_walk {
    uint32_t rank, arrays;
    const etch_dim *dims[EXEC_WALK_DIMS];
    uint32_t first[EXEC_WALK_DIMS], count[EXEC_WALK_DIMS], index[EXEC_WALK_DIMS];
    const uint32_t *apart[EXEC_WALK_DIMS];
    size_t stride[EXEC_WALK_DIMS][EXEC_WALK_ARRAYS];
    size_t at[EXEC_WALK_ARRAYS];
    bool begun, ended;
} exec_walk;

/* The arrays must agree. */
exec_walk exec_walk_over(uint32_t count, const exec_array *const *arrays);
/* The next combination where the dim that changes fastest has no further index, or none was begun. */
bool exec_walk_carry(exec_walk *walk);

/* Goes to the first, then to the next combination; false when there is none. Most steps of a walk are along
 * one dim, and most of the time of a model is spent in walks. */
static inline bool exec_walk_next(exec_walk *walk)
{
    if (!walk->begun || walk->ended || walk->index[0] + 1 >= walk->count[0])
        return exec_walk_carry(walk);
    walk->index[0]++;
    for (uint32_t k = 0; k < walk->arrays; k++)
        walk->at[k] += walk->stride[0][k];
    return true;
}
/* Index of the walk's dim in the whole tensor; 0 for a dim that is not walked. */
uint32_t exec_walk_index(const exec_walk *walk, const etch_dim *dim);
/* The element of `array` at the walk's indices, where `special` (may be NULL) has the index `index`; NULL
 * when the array does not hold it. */
double *exec_walk_lookup(const exec_walk *walk, const exec_array *array, const etch_dim *special,
                         uint32_t index);

#endif
