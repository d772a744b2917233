/* The step program as text: one line a task, for reading. */
#include "graph/explain/explain.h"
#include "graph/step/program.h"

typedef struct dump {
    const etch_placed *placed;
    etch_sym *sym;
    const etch_dump_values *values;
    etch_buf *out;
} dump;

/* "flop 2*batch*hidden^2, bytes 4*batch*hidden" */
static void put_numbers(const dump *d, const etch_step_task *task)
{
    if (!etch_is_zero(task->flop))
        etch_buf_printf(d->out, " flop %s,", etch_dump_text(d->sym, d->values, task->flop));
    etch_buf_printf(d->out, " bytes %s\n", etch_dump_text(d->sym, d->values, task->bytes));
}

/* " (einsum, add)": the rows of its ops; the weights of a task of the end. */
static void put_contributions(const dump *d, const etch_step_task *task)
{
    etch_buf_puts(d->out, " (");
    for (uint32_t i = 0; i < task->contributions.count; i++) {
        const etch_step_contribution *c = &task->contributions.at[i];
        const char *name = task->end ? (c->tensor ? c->tensor->name : "all") : etch_row_name(c->row);
        etch_buf_printf(d->out, "%s%s", i ? ", " : "", name);
    }
    etch_buf_puts(d->out, ")");
}

/* "backward compute (einsum, add): flop .., bytes .."; "forward all_reduce over tp (all_reduce): bytes .." */
static void put_task(const dump *d, const etch_step_task *task, int indent)
{
    const bool moves = task->kind == ETCH_TASK_LOAD || task->kind == ETCH_TASK_STORE;
    static const char *const when[] = {[ETCH_EACH_MICROBATCH] = "",
                                       [ETCH_FIRST_MICROBATCH] = " with the first microbatch",
                                       [ETCH_ONCE_A_STEP] = " once a step"};
    etch_buf_printf(d->out, "%*s%s %s", indent, "", etch_phase_name(task->phase),
                    task->kind == ETCH_TASK_COMPUTE ? "compute"
                    : task->kind == ETCH_TASK_LOAD  ? "load from the host"
                    : task->kind == ETCH_TASK_STORE ? "store to the host"
                                                    : etch_collective_name(task->collective));
    if (task->kind != ETCH_TASK_COMPUTE && !moves)
        etch_buf_printf(d->out, " over %s", etch_axes_label(d->placed, task->axes));
    if (task->kind != ETCH_TASK_MESSAGE)
        put_contributions(d, task);
    etch_buf_printf(d->out, "%s:", when[task->when]);
    put_numbers(d, task);
}

/* Goes as deep as loops are nested. */
static void put_body(const dump *d, const etch_step_body *body, int indent)
{
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_step_repeat *repeat = body->items.at[i].repeat;
        if (!repeat) {
            put_task(d, body->items.at[i].task, indent);
            continue;
        }
        for (uint32_t k = 0; k < repeat->bodies.count; k++) {
            const etch_region *of = repeat->bodies.at[k]->region->of;
            etch_buf_printf(d->out, "%*s%s %s, %s times%s {\n", indent, "", k ? "} or" : "repeat",
                            of->loop->name, etch_dump_text(d->sym, d->values, of->count),
                            of->loop->forward ? ", in reverse" : "");
            put_body(d, repeat->bodies.at[k], indent + 2);
        }
        etch_buf_printf(d->out, "%*s}\n", indent, "");
    }
}

static void put_tasks(const dump *d, const char *title, const etch_step_tasks *tasks)
{
    if (tasks->count > 0)
        etch_buf_printf(d->out, "%s\n", title);
    for (uint32_t i = 0; i < tasks->count; i++)
        put_task(d, tasks->at[i], 2);
}

void etch_step_program_dump(const etch_step_program *program, const etch_dump_values *values, etch_buf *out)
{
    const dump d = {program->placed, program->placed->training->graph->sym, values, out};
    etch_buf_printf(out, "microbatches %s\nforward\n", etch_dump_text(d.sym, values, program->micro));
    put_body(&d, program->forward, 2);
    if (program->backward) {
        etch_buf_puts(out, "backward\n");
        put_body(&d, program->backward, 2);
    }
    put_tasks(&d, "messages between stages", &program->messages);
    put_tasks(&d, "end of the step", &program->end);
}
