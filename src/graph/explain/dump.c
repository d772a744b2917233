/* A placed graph as text: one line a step, for tests and for reading. */
#include "graph/explain/explain.h"
#include "graph/ir/row.h"
#include "graph/step/program.h"

typedef struct dump {
    const etch_placed *placed;
    etch_buf *out;
} dump;

/* "q[B@dp,S,K@tp,D]", with "+tp" after it where it is a partial sum, "^tp" where it is a partial maximum, and
 * "/dp" where ranks hold flat parts. */
static void put_value(const dump *d, const etch_value *value)
{
    const etch_tensor *t = value->tensor;
    const etch_plan *plan = d->placed->plan;
    etch_buf_printf(d->out, "%s[", t->name);
    for (uint32_t i = 0; i < t->rank; i++) {
        etch_buf_printf(d->out, "%s%s", i ? "," : "", t->dims[i]->name);
        for (uint32_t a = 0; a < plan->mesh.count; a++)
            if (value->place[a] == t->dims[i])
                etch_buf_printf(d->out, "@%s", plan->mesh.at[a].name);
    }
    etch_buf_puts(d->out, "]");
    for (uint32_t a = 0; a < plan->mesh.count; a++)
        if (etch_is_partial(value->place[a]))
            etch_buf_printf(d->out, "%c%s", value->place[a] == ETCH_PARTIAL ? '+' : '^',
                            plan->mesh.at[a].name);
    if (value->sharded_flat)
        etch_buf_printf(d->out, "/%s", etch_axes_label(d->placed, value->sharded_flat));
}

static void put_values(const dump *d, etch_value *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        etch_buf_puts(d->out, i ? ", " : "");
        put_value(d, values[i]);
    }
}

/* " over tp: operand of rms_norm" */
static void put_provenance(const dump *d, const etch_step *step)
{
    const etch_provenance *provenance = &step->provenance;
    etch_buf_printf(d->out, " over %s: %s", etch_axes_label(d->placed, step->axes),
                    etch_rule_name(provenance->rule));
    if (provenance->op)
        etch_buf_printf(d->out, " of %s", etch_row_name(provenance->op->row));
}

static void put_step(const dump *d, const etch_step *step, int indent)
{
    etch_buf_printf(d->out, "%*s%c ", indent, "", etch_phase_name(step->phase)[0]);
    put_values(d, step->outs, step->out_count);
    etch_buf_printf(d->out, " = %s(", etch_row_name(step->row));
    put_values(d, step->ins, step->in_count);
    etch_buf_puts(d->out, ")");
    if (step->collective)
        put_provenance(d, step);
    for (uint32_t i = 0; i < step->out_count; i++)
        if (step->accumulate_into[i])
            etch_buf_printf(d->out, " into %s", step->accumulate_into[i]->name);
    if (step->kernel != UINT32_MAX)
        etch_buf_printf(d->out, " #%u", step->kernel);
    etch_buf_puts(d->out, "\n");
}

static void put_region(const dump *d, const etch_placed_region *region, int indent)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (!loop) {
            put_step(d, region->items.at[i].step, indent);
            continue;
        }
        etch_buf_printf(d->out, "%*srepeat %s%s {\n", indent, "", loop->loop->name,
                        loop->forward ? " backwards" : "");
        for (uint32_t k = 0; k < loop->bodies.count; k++) {
            if (k > 0)
                etch_buf_printf(d->out, "%*s} or {\n", indent, "");
            put_region(d, loop->bodies.at[k], indent + 2);
        }
        etch_buf_printf(d->out, "%*s}\n", indent, "");
    }
}

void etch_placed_dump(const etch_placed *placed, etch_buf *out)
{
    const dump d = {.placed = placed, .out = out};
    put_region(&d, placed->forward, 0);
    if (placed->backward) {
        etch_buf_puts(out, "backward\n");
        put_region(&d, placed->backward, 0);
    }
    for (uint32_t i = 0; placed->program && i < placed->program->end.count; i++) {
        const etch_step_task *task = placed->program->end.at[i];
        if (task->end != ETCH_END_REDUCE)
            continue;
        etch_buf_printf(out, "reduce over %s:", etch_axes_label(placed, task->axes));
        for (uint32_t k = 0; k < task->contributions.count; k++)
            etch_buf_printf(out, " %s", task->contributions.at[k].gradient->name);
        etch_buf_puts(out, "\n");
    }
}

const char *etch_dump_text(etch_sym *sym, const etch_dump_values *values, etch_expr expr)
{
    return etch_expr_text(sym, values->apply ? values->apply(values->data, expr) : expr);
}

void etch_stages_dump(const etch_placed *placed, const etch_dump_values *values, etch_buf *out)
{
    const etch_stages *stages = placed->stages;
    etch_sym *sym = placed->training->graph->sym;
    if (!stages)
        return;
    etch_buf_puts(out, "chain\n");
    for (uint32_t i = 0; i < stages->segments.count; i++) {
        const etch_stage_segment *segment = &stages->segments.at[i];
        etch_buf_printf(out, "  %s %s", etch_dump_text(sym, values, segment->count), segment->name);
        etch_buf_printf(out, ", from %s on\n", etch_dump_text(sym, values, segment->first));
    }
    for (uint32_t i = 0; i < stages->cuts.count; i++) {
        const etch_cut *cut = &stages->cuts.at[i];
        const char *name = stages->segments.at[cut->segment].name;
        etch_buf_printf(out, "  cut %s %s: bytes %s forward", cut->inside ? "inside" : "before", name,
                        etch_dump_text(sym, values, cut->forward_bytes));
        etch_buf_printf(out, ", %s backward\n", etch_dump_text(sym, values, cut->backward_bytes));
    }
}
