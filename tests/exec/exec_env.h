/* Where a run is: sizes of dims, the iteration of every loop, the microbatch; and what went wrong first. */
#ifndef ETCH_TEST_EXEC_ENV_H
#define ETCH_TEST_EXEC_ENV_H

#include "exec_tensor.h"

typedef struct exec_env {
    etch_arena *arena; /* for what lives as long as the run */
    const etch_training *training;
    uint32_t *now;              /* by loop id: the iteration that is run, undone or run again */
    bool *open;                 /* by loop id: `now` means something */
    uint32_t *size;             /* by dim id: elements in one microbatch */
    uint32_t *padded;           /* by dim id, of what is laid out: with padding */
    uint32_t *sequence;         /* by dim id: of the dim whose places it names, or its own */
    uint32_t *outermost;        /* by dim id: a dim of which shards are its shards, or itself */
    uint32_t *pairs;            /* by dim id: pairs of chunks that a dim is laid out in; 0: as it comes */
    struct exec_routes *routes; /* how the slots of experts lie; NULL: in the order of tokens */
    uint32_t micro, microbatch;
    const char *failure; /* NULL while all is well */
} exec_env;

exec_env exec_env_new(etch_arena *arena, const etch_training *training);
/* Keeps the first failure. */
void exec_fail(exec_env *env, const char *format, ...) ETCH_PRINTF(2, 3);

/* The value of a constant expression; a ratio, to nine digits. */
uint32_t exec_integer(etch_expr constant);
double exec_real(etch_sym *sym, etch_expr constant);
/* Elements of a dim in one microbatch. */
uint32_t exec_size(const exec_env *env, const etch_dim *dim);
/* Lays a dim, and all that it was renamed to or from as a whole, out in pairs of an early and a late chunk of
 * what it is padded to: 0 7 1 6 2 5 3 4 are four of them. A range of the dim's indices is then no range of
 * positions. What it was split into, or merged from, is laid out alike where its chunks are whole there.
 * `padded`: sizes with padding, by dim id. */
void exec_lay_out(exec_env *env, const etch_dim *dim, uint32_t pairs, const uint32_t *padded);
/* The index of what lies in a slot, counted with the padding; of padding, of what comes next. */
uint32_t exec_index_of_slot(const exec_env *env, const etch_dim *dim, uint32_t slot);
/* The place in the sequence of what has this index. */
uint32_t exec_position(const exec_env *env, const etch_dim *dim, uint32_t index);
/* The index of what is at this place. */
uint32_t exec_index(const exec_env *env, const etch_dim *dim, uint32_t position);
/* Are shards of one those of the other: was it renamed to it, or merged or split with it as the outer dim? */
bool exec_are_outermost(const exec_env *env, const etch_dim *a, const etch_dim *b);
/* All of a tensor in one microbatch, zero. */
exec_array *exec_whole(const exec_env *env, etch_arena *arena, const etch_tensor *tensor);

/* Begins an iteration of a loop, and of the loops whose values it reads: those that it undoes or repeats. */
void exec_iterate(exec_env *env, const etch_loop *loop, uint32_t iteration);
/* Ends the last iteration. */
void exec_iterated(exec_env *env, const etch_loop *loop);
/* Can values of the body of `home` be read here: is one of its iterations in force? */
bool exec_is_open(const exec_env *env, const etch_loop *home);

/* Arrays by id, one for each iteration of the loops around their home. */
typedef struct exec_store {
    etch_arena *arena;
    uint32_t count;
    exec_array ***at;
} exec_store;

exec_store exec_store_new(etch_arena *arena, uint32_t count);
/* The array in force of what lives in the body of `home` (NULL: at top level); to be set or read. */
exec_array **exec_slot(const exec_env *env, exec_store *store, uint32_t id, const etch_loop *home);
/* The loop around a loop, or NULL. */
const etch_loop *exec_outer(const etch_loop *loop);
/* The class of an iteration; of the turn-th iteration that runs, which of a backward loop is counted from the
 * end. */
uint32_t exec_class(const etch_loop *loop, uint32_t iteration);
uint32_t exec_turn_class(const etch_loop *loop, uint32_t turn);
/* Iterations that the body of `home` has in all, and the one in force. */
uint32_t exec_instances(const etch_loop *home);
/* Is this one of the class of the body, and so are those around it of theirs? */
bool exec_has_instance(const etch_region *body, uint32_t instance);
uint32_t exec_instance(const exec_env *env, const etch_loop *home);

/* A number in [0, 1) that depends on nothing but the arguments. */
double exec_random(uint64_t a, uint64_t b);
uint64_t exec_mix(uint64_t a, uint64_t b);

#endif
