/* What the files of op families share: the list of them, and shapes and FLOP that rows of several have.
 * The file of a family holds its rows with all that they say; the passes read rows, and see none of this. */
#ifndef ETCH_GRAPH_IR_FAMILIES_FAMILY_H
#define ETCH_GRAPH_IR_FAMILIES_FAMILY_H

#include "graph/ir/ir_int.h"

/* All families, in the order in which users see their rows. */
#define ETCH_FAMILIES(FAMILY) \
    FAMILY(products)          \
    FAMILY(views)             \
    FAMILY(parts)             \
    FAMILY(windows)           \
    FAMILY(elementwise)       \
    FAMILY(norms)             \
    FAMILY(attention)         \
    FAMILY(scan)              \
    FAMILY(lookups)           \
    FAMILY(losses)            \
    FAMILY(routing)           \
    FAMILY(derived)           \
    FAMILY(optimizers)        \
    FAMILY(moves)

#define ETCH_DECLARE_FAMILY(name) extern const etch_rows etch_family_##name;
ETCH_FAMILIES(ETCH_DECLARE_FAMILY)
#undef ETCH_DECLARE_FAMILY

/* The family `name`, of the array `rows`. */
#define ETCH_FAMILY(name) const etch_rows etch_family_##name = {rows, sizeof rows / sizeof rows[0]}

/* ---- rows ---------------------------------------------------------------------------------------- */

/* A row: its name, the names of its operands, what `help ops` says of it, and the columns in which it differs
 * from a kernel that is neither called nor costs anything. */
#define ETCH_ROW(label, names, text, ...)                           \
    {                                                               \
        .name = label, .operands = names, .help = text, __VA_ARGS__ \
    }
/* One that joins its neighbours; one that is no node: its results are in the memory of its operand. */
#define ETCH_POINTWISE(label, names, text, ...) \
    ETCH_ROW(label, names, text, .role = ETCH_ROLE_POINTWISE, __VA_ARGS__)
#define ETCH_FREE(label, names, text, ...)                                           \
    ETCH_ROW(label, names, text, .role = ETCH_ROLE_FREE, .linear = ETCH_LINEAR_EACH, \
             .dtype = ETCH_RESULT_AS_OPERAND, __VA_ARGS__)

/* What takes the place of a row when a model is served: it goes on from a state that the run before has
 * left, and replaces it. The state has the dims of the operand or result `of`, less `over`, and those of
 * `state`. */
#define ETCH_FROM_STATE(label, names, text, of, ...)                                                     \
    ETCH_ROW(label "_from", names, text, .uncalled = true,                                               \
             .extra = {.name = "state", .like = of, .dtype_as_result = true}, .stays = ETCH_EXTRA_OF(1), \
             __VA_ARGS__)

/* ---- shapes: dims of the result ------------------------------------------------------------------ */

/* Those of all operands: broadcast by name. */
bool etch_shape_union(etch_call *call, etch_dim_list *out);
/* Those of operand 0, which has `over` and the dims of the other operands (gains, biases). */
bool etch_shape_first(etch_call *call, etch_dim_list *out);
/* Those of operand 0 less `over`. */
bool etch_shape_less(etch_call *call, etch_dim_list *out);
/* Those of operand 0, mapped. */
bool etch_shape_replaced(etch_call *call, etch_dim_list *out);

/* ---- FLOP ---------------------------------------------------------------------------------------- */

extern const etch_flop etch_flop_per_result;   /* of each element of result 0 */
extern const etch_flop etch_flop_per_operand;  /* of each element of operand 0 */
extern const etch_flop etch_flop_per_addition; /* of each element of result 0, less one for each operand */

/* The FLOP column of rows: so many of each element. */
#define ETCH_PER_RESULT(constant)                              \
    {                                                          \
        .by = &etch_flop_per_result, .constants = { constant } \
    }
#define ETCH_PER_OPERAND(constant)                              \
    {                                                           \
        .by = &etch_flop_per_operand, .constants = { constant } \
    }

/* For functions of rows: the size of a dim, of several together, the elements of a tensor, and the product of
 * all dims of operands and results. */
etch_expr etch_flop_size(const etch_flop_call *call, const etch_dim *dim);
etch_expr etch_flop_product(const etch_flop_call *call, etch_dim_view dims);
/* Of the dims of `t` that neither `other` (may be NULL) has nor one of the lists. */
etch_expr etch_flop_beside(const etch_flop_call *call, const etch_tensor *t, const etch_tensor *other,
                           etch_dim_view a, etch_dim_view b);
etch_expr etch_flop_elements(const etch_flop_call *call, const etch_tensor *tensor);
etch_expr etch_flop_dims(const etch_flop_call *call);
/* So many for each of `count`: as the row's first constant says, or another. */
etch_expr etch_flop_each(const etch_flop_call *call, etch_expr count);
etch_expr etch_flop_times(const etch_flop_call *call, uint32_t constant, etch_expr count);

/* ---- routing ------------------------------------------------------------------------------------- */

/* Do the indices choose from `dim`, as far as that is known? Reports it when they do not. */
bool etch_route_fits(const etch_call *call, const etch_tensor *indices, const etch_dim *dim);

#endif
