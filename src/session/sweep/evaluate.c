/* Formulas of rows of a block. */
#include "session/sweep/sweep_int.h"

/* The values of one axis at some rows. */
static etch_column gather(const etch_sweep_block *b, etch_arena *arena, uint32_t axis, const uint32_t *rows,
                          uint32_t count)
{
    const int64_t *numbers = b->numbers[axis], *denominators = b->denominators[axis];
    int64_t *values = ETCH_NEW_ARRAY(arena, count, int64_t), *below = NULL;
    bool same = true;
    for (uint32_t i = 0; i < count; i++) {
        values[i] = numbers[rows[i]];
        same = same && values[i] == values[0];
    }
    if (denominators) {
        below = ETCH_NEW_ARRAY(arena, count, int64_t);
        for (uint32_t i = 0; i < count; i++) {
            below[i] = denominators[rows[i]];
            same = same && below[i] == below[0];
        }
    }
    return (etch_column){values, below, same};
}

etch_status etch_block_evaluate(const etch_sweep_block *b, etch_arena *arena, const etch_program *program,
                                const uint32_t *inputs, const uint32_t *rows, uint32_t count,
                                etch_sweep_values *out)
{
    const size_t formulas = etch_program_formulas(program), variables = etch_program_variables(program);
    etch_column *columns = ETCH_NEW_ARRAY(arena, variables + 1, etch_column);
    for (size_t i = 0; i < variables; i++)
        columns[i] = gather(b, arena, inputs[i], rows, count);
    out->count = count;
    out->values = ETCH_NEW_ARRAY(arena, formulas * count, int64_t);
    out->kinds = ETCH_NEW_ARRAY(arena, formulas * count, unsigned char);
    return etch_program_evaluate(program, count, columns, out->values, out->kinds, out->workspace);
}
