/* Tasks of the end of a step, weight group by weight group. */
#include "lower/unroll_int.h"

uint32_t etch_unroll_issue_of_group(etch_unroller *u, const etch_weight_task *task, uint64_t weight_group,
                                    uint32_t first_dep)
{
    const etch_prefix outer = u->at->prefix;
    etch_prefix_begin(u, task->every_microbatch, outer.microbatch);
    if (task->loop_name.text)
        etch_prefix_extend(&u->at->prefix, task->loop_name, weight_group);
    const uint32_t id = etch_unroll_issue(u, &task->task, first_dep);
    u->at->prefix = outer;
    return id;
}

void etch_unroll_each_group(etch_unroller *u, etch_end_role role, bool backwards,
                            void (*run)(etch_unroller *u, const etch_weight_task *task,
                                        uint64_t weight_group))
{
    for (uint32_t t = 0; t < u->outline->weight_tasks.count; t++) {
        const etch_weight_task *task = u->outline->weight_tasks.at[t];
        if (task->role != role || etch_weight_task_groups(u->held, task) == 0)
            continue;
        for (uint64_t i = 0; i < task->weight_groups; i++) {
            const uint64_t group = backwards ? task->weight_groups - 1 - i : i;
            if (etch_weight_task_has(u->held, task, group))
                run(u, task, group);
        }
    }
}
