#include "exec_profile.h"
#include "end_work.h"
#include "verify.h"

#include "exec_env.h"
#include "graph/ir/row.h"

#include <string.h>

const char *const exec_divided_dims[] = {"B", "S", "T", "H", "K", "D", "V", "P", NULL};

static etch_training *trained(etch_arena *arena, const exec_case *c, const etch_table *table,
                              uint32_t partial)
{
    const exec_case_setting setting = {.table = table, .partial = partial};
    exec_model *m = exec_case_build(arena, c, &setting);
    m->train.clip = true;
    m->graph->dtypes.dispatch.dtype = ETCH_F64 + 1; /* what goes to experts and what comes back differ */
    m->graph->dtypes.combine.dtype = ETCH_F32 + 1;
    const exec_case_way way = exec_case_way_of(c);
    if (way.optimizer) {
        const etch_row *row = etch_optimizer_called(m->graph->table, way.optimizer);
        m->train.optimizer.row = row && way.momentum    ? etch_optimizer_with_momentum(m->graph->table, row)
                                 : row && way.bits == 8 ? etch_optimizer_with_8_bits(m->graph->table, row)
                                                        : row;
        m->train.optimizer.ema = way.ema;
    } else if (table) {
        m->train.optimizer.row = etch_row_named(table, m->train.optimizer.row->name);
    }
    return exec_train(m, NULL);
}

/* ---- ops ----------------------------------------------------------------------------------------------- */

static void write_region(const etch_region *region, etch_buf *out)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_op *op = region->items.at[i].op;
        etch_buf_printf(out, "  %s %s:", etch_phase_name(op->phase), op->row->name);
        for (uint32_t k = 0; k < op->out_count; k++)
            etch_buf_printf(out, " %s%s %s", op->outs[k]->name,
                            etch_dims_text(out->arena, etch_dims_of(op->outs[k])),
                            etch_dtype_name(op->outs[k]->dtype));
        etch_buf_puts(out, "\n");
    }
}

static void set_count(etch_count *count, etch_count_item item, const char *value)
{
    while (strcmp(etch_count_value_name(item, count->at[item]), value) != 0)
        count->at[item]++;
}

/* What becomes of an item under a convention that differs from the work as executed wherever rows say what
 * one needs. */
static void write_count(const etch_training *training, const etch_op_roles *marks, const etch_cost *cost,
                        etch_buf *out)
{
    etch_count count = {0};
    etch_cost item = *cost;
    set_count(&count, ETCH_COUNT_RESCORE, "no");
    set_count(&count, ETCH_COUNT_NORMS, "no");
    set_count(&count, ETCH_COUNT_EMBEDDING, "yes");
    set_count(&count, ETCH_COUNT_ROUTER, "no");
    set_count(&count, ETCH_COUNT_LOGITS, "no");
    if (!etch_count_apply(&count, marks, training, NULL, &item))
        etch_buf_puts(out, ", not of convention");
    else if (item.each != cost->each)
        etch_buf_printf(out, ", %u of convention", exec_integer(item.each));
}

static void write_flop(const etch_training *training, etch_buf *out)
{
    etch_cost_list costs = {0};
    const etch_op_roles *marks = etch_op_roles_of(training, out->arena);
    etch_graph_costs(training, &costs);
    for (uint32_t i = 0; i < costs.count; i++) {
        const etch_cost *cost = &costs.at[i];
        if (cost->measure != ETCH_FLOPS)
            continue;
        etch_buf_printf(out, "  %s %s: %u FLOP%s", etch_phase_name(cost->phase), cost->row->name,
                        exec_integer(cost->each), cost->matmul ? ", a product" : "");
        write_count(training, marks, cost, out);
        etch_buf_puts(out, "\n");
    }
}

/* ---- ranks --------------------------------------------------------------------------------------------- */

static void write_kernels(const etch_placed_region *region, const char *phase, etch_buf *out)
{
    for (uint32_t i = 0; i < region->kernels.count; i++) {
        const etch_kernel *kernel = region->kernels.at[i];
        if (kernel->anchor->collective == ETCH_NO_COLLECTIVE)
            etch_buf_printf(out, "  %s node %s: %u bytes\n", phase, kernel->anchor->row->name,
                            exec_integer(kernel->bytes));
    }
}

/* FLOP of a rank, and collectives in order. */
static void write_division(const etch_placed *placed, const char *name, etch_buf *out)
{
    etch_cost_list costs = {0};
    uint32_t flop = 0;
    etch_placed_costs(placed, NULL, &costs);
    for (uint32_t i = 0; i < costs.count; i++)
        if (costs.at[i].measure == ETCH_RANK_FLOPS)
            flop += exec_integer(costs.at[i].each);
    etch_buf_printf(out, "  %s divided: %u FLOP a rank", name, flop);
    for (uint32_t i = 0; i < costs.count; i++)
        if (costs.at[i].measure == ETCH_COMM)
            etch_buf_printf(out, ", %s %s %u", etch_phase_name(costs.at[i].phase),
                            etch_collective_name(costs.at[i].collective), exec_integer(costs.at[i].each));
    etch_buf_puts(out, "\n");
}

/* `name`: of what is divided, for the reader. */
static void divide(etch_arena *arena, const etch_training *training, const char *dim, const char *name,
                   etch_buf *out)
{
    etch_sym *sym = training->graph->sym;
    etch_plan *plan = exec_plan(arena, sym, etch_text(arena, "a=2 | %s@a", dim));
    const etch_placed *placed = verified(etch_place(training, plan, ETCH_GRANULARITY_KERNEL));
    if (placed)
        write_division(placed, name, out);
    else
        etch_buf_printf(out, "  %s divided: refused\n", name);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static bool routes(const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++)
        if (region->items.at[i].op->row->routing != ETCH_ROUTING_NONE)
            return true;
    return false;
}

/* The last part of updates under no name, those before under that of their row. */
static void write_updates(const etch_placed *placed, etch_buf *out)
{
    static const etch_end_role parts[] = {ETCH_END_PREPARE, ETCH_END_REFINE, ETCH_END_UPDATE};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        const end_works works = end_works_of(placed, parts[k]);
        for (uint32_t i = 0; i < works.count; i++)
            etch_buf_printf(out, "  %s: %u bytes\n",
                            parts[k] == ETCH_END_UPDATE ? "update" : etch_row_name(works.at[i].row),
                            exec_integer(works.at[i].bytes));
    }
}

static void write_case(etch_arena *arena, const exec_case *c, const etch_table *table, etch_buf *out)
{
    const etch_training *training = trained(arena, c, table, 0);
    write_region(training->graph->forward, out);
    if (training->backward)
        write_region(training->backward, out);
    write_flop(training, out);
    const etch_placed *whole = verified(
        etch_place(training, exec_plan(arena, training->graph->sym, "a=1"), ETCH_GRANULARITY_KERNEL));
    write_kernels(whole->forward, "forward", out);
    if (whole->backward)
        write_kernels(whole->backward, "backward", out);
    if (exec_case_way_of(c).optimizer)
        write_updates(whole, out);
    for (uint32_t i = 0; exec_divided_dims[i]; i++)
        divide(arena, trained(arena, c, table, 0), exec_divided_dims[i], exec_divided_dims[i], out);
    if (routes(training->graph->forward)) /* tokens go to their experts and come back */
        divide(arena, trained(arena, c, table, 0), "B@a | for experts E", "B, and E of experts,", out);
    static const char *const sums[] = {"sum of the first weight", "sum of the second weight",
                                       "sum of the third weight", "sum of each weight"};
    for (uint32_t i = 0; i < 4; i++)
        divide(arena, trained(arena, c, table, i < 3 ? 1u << i : UINT32_MAX), "Z", sums[i], out);
}

const char *exec_profile(etch_arena *arena, const exec_case *c, const etch_table *table)
{
    etch_buf out = {.arena = arena};
    etch_buf_printf(&out, "%s\n", c->name);
    write_case(arena, c, table, &out);
    return out.text;
}
