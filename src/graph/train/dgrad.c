/* The two parts of the backward pass: cotangents of activations, which earlier layers wait for (dgrad), and
 * gradients of weights, which nothing waits for before the end of the step (wgrad). */
#include "graph/train/train_int.h"

/* A weight, or computed from weights alone. Operands have smaller ids. */
static bool is_of_weights(const bool *of_weights, const etch_tensor *tensor)
{
    if (tensor->kind == ETCH_WEIGHT)
        return true;
    bool all = tensor->producer && tensor->producer->in_count > 0;
    for (uint32_t i = 0; all && i < tensor->producer->in_count; i++)
        all = of_weights[tensor->producer->ins[i]->id];
    return all;
}

const bool *etch_weight_gradients(const etch_training *training)
{
    const etch_graph *graph = training->graph;
    bool *of_weights = ETCH_NEW_ARRAY(graph->arena, graph->tensors.count, bool);
    for (uint32_t i = 0; i < graph->tensors.count; i++) {
        const etch_tensor *tensor = graph->tensors.at[i], *first = etch_origin(tensor);
        of_weights[i] = first == tensor ? is_of_weights(of_weights, tensor) : of_weights[first->id];
    }
    return of_weights;
}

bool etch_is_weight_gradient(const bool *weight_gradients, const etch_op *op)
{
    for (uint32_t i = 0; i < op->out_count; i++)
        if (!op->outs[i]->optional_result && !weight_gradients[op->outs[i]->id])
            return false;
    return op->phase == ETCH_BACKWARD;
}
