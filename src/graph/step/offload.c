/* What is in the memory of the host instead of the device's. */
#include "graph/step/step_int.h"

etch_expr etch_offloaded_bytes(const etch_placed *placed, const etch_tensor *weight)
{
    const etch_training *training = placed->training;
    etch_sym *sym = training->graph->sym;
    const uint32_t states = placed->plan->offload.states;
    etch_expr bytes = etch_int(sym, 0);
    if (!states || !training->train.optimizer.row)
        return bytes;
    const etch_expr elements = etch_held_elements(placed, weight, ETCH_HOLDS_STATES);
    if (states & ETCH_OFFLOAD_MASTER)
        bytes = etch_mul(sym, elements, etch_int(sym, etch_lasting_master_bytes(training)));
    if (states & ETCH_OFFLOAD_MOMENTS)
        bytes =
            etch_add(sym, bytes, etch_moment_bytes(training, etch_optimizer_of(training, weight), elements));
    return bytes;
}

bool etch_offload_is_idle(const etch_placed *placed)
{
    if (!placed->plan->offload.states || !placed->backward)
        return false;
    for (uint32_t i = 0; i < placed->program->end.count; i++)
        if (placed->program->end.at[i]->end == ETCH_END_LOAD)
            return false;
    return true;
}

void etch_remark_idle_offload(const etch_placed *placed)
{
    const etch_graph *graph = placed->training->graph;
    etch_diag *diag =
        etch_remark(graph->diags, ETCH_E_OFFLOAD_NOTHING, placed->plan->offload.span,
                    "the optimizer keeps nothing of this of model %s: it has no effect", graph->model);
    etch_help(diag, "adamw keeps moments, and with master = true copies of the weights");
}
