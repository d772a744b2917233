/* Graphs before they are placed, as text: one line an op, for reading. */
#include "graph/explain/explain.h"
#include "graph/ir/row.h"

/* "q[B,S,K,D]" */
static void put_tensors(etch_buf *out, etch_tensor *const *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(out, "%s%s", i ? ", " : "", etch_tensor_text(out->arena, tensors[i]));
}

static void put_op(etch_buf *out, const etch_op *op, int indent)
{
    etch_buf_printf(out, "%*s%s ", indent, "", etch_phase_name(op->phase));
    put_tensors(out, op->outs, op->out_count);
    etch_buf_printf(out, " = %s(", etch_row_name(op->row));
    put_tensors(out, op->ins, op->in_count);
    etch_buf_puts(out, ")");
    for (uint32_t i = 0; i < op->out_count; i++)
        if (op->outs[i]->adds_to)
            etch_buf_printf(out, ", added to the gradient of %s", op->outs[i]->adds_to->of->name);
    etch_buf_puts(out, "\n");
}

/* Goes as deep as loops are nested. */
static void put_region(etch_buf *out, etch_sym *sym, const etch_dump_values *values,
                       const etch_region *region, int indent)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_loop *loop = region->items.at[i].loop;
        if (!loop) {
            put_op(out, region->items.at[i].op, indent);
            continue;
        }
        for (uint32_t k = 0; k < loop->bodies.count; k++) {
            etch_buf_printf(out, "%*s%s %s, %s of %s times%s {\n", indent, "", k ? "} or" : "repeat",
                            loop->name, etch_dump_text(sym, values, loop->bodies.at[k]->count),
                            etch_dump_text(sym, values, loop->count), loop->forward ? ", in reverse" : "");
            put_region(out, sym, values, loop->bodies.at[k], indent + 2);
        }
        etch_buf_printf(out, "%*s}\n", indent, "");
    }
    for (uint32_t i = 0; i < region->carries.count; i++)
        etch_buf_printf(out, "%*scarries %s -> %s\n", indent, "", region->carries.at[i].in->name,
                        region->carries.at[i].out->name);
}

void etch_graph_dump(const etch_graph *graph, const etch_region *backward, const etch_dump_values *values,
                     etch_buf *out)
{
    etch_buf_puts(out, "forward\n");
    put_region(out, graph->sym, values, graph->forward, 2);
    if (!backward)
        return;
    etch_buf_puts(out, "backward\n");
    put_region(out, graph->sym, values, backward, 2);
}
