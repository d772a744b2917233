/* The axes that variables of compiled formulas are. */
#include "session/sweep/sweep_int.h"

#include <string.h>

const uint32_t *etch_frame_inputs(etch_arena *arena, const etch_sweep_frame *frame,
                                  const etch_program *program)
{
    const size_t count = etch_program_variables(program);
    uint32_t *inputs = ETCH_NEW_ARRAY(arena, count + 1, uint32_t);
    for (size_t i = 0; i < count; i++) {
        inputs[i] = UINT32_MAX;
        for (uint32_t k = 0; k < frame->axis_count; k++)
            if (strcmp(frame->axes[k].name, etch_program_variable(program, i)) == 0)
                inputs[i] = k;
    }
    return inputs;
}
