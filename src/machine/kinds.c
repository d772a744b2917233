/* Kinds and their names; the numbers of the formula of each kind of kernel. */
#include "machine/machine.h"

#include <string.h>

/* Of the rate of attention forward, what backward has: measurements of forward alone do not tell. */
#define BACKWARD 0.84

/* ---- the numbers of each kind -------------------------------------------------------------------------- */

/* clang-format off */
static const etch_fit_row fits[ETCH_KERNEL_KINDS] = {
    [ETCH_KERNEL_PRODUCT] = {"products", {{"overhead", ETCH_OF_TIME, 1e-9, 1e-3, {3e-6, 1e-6}, false},
                                          {"reach", ETCH_OF_NOTHING, 0.01, 1, {0.7, 0.5}, false},
                                          {"memory", ETCH_OF_NOTHING, 0.01, 1, {0.7, 0.9}, false},
                                          {"norm", ETCH_OF_NOTHING, 1, 64, {2.5, 1.2}, false}}},
    [ETCH_KERNEL_GROUPED] = {"grouped", {{"overhead", ETCH_OF_TIME, 1e-9, 1e-3, {3e-6, 1e-5}, false},
                                         {"reach", ETCH_OF_NOTHING, 0.01, 1, {0.7, 0.5}, false},
                                         {"memory", ETCH_OF_NOTHING, 0.01, 1, {0.7, 0.3}, false},
                                         {"norm", ETCH_OF_NOTHING, 1, 64, {2.5, 1.2}, false}}},
    [ETCH_KERNEL_ATTENTION] = {"attention", {{"overhead", ETCH_OF_TIME, 1e-9, 1e-3, {1e-5, 4e-5}, false},
                                             {"reach", ETCH_OF_NOTHING, 0.01, 2, {0.6, 0.5}, false},
                                             {"ramp", ETCH_OF_NOTHING, 1, 1e5, {150, 1000}, false},
                                             {"backward", ETCH_OF_NOTHING, 0.01, 2, {BACKWARD}, true}}},
    [ETCH_KERNEL_ELEMENTWISE] = {"elementwise", {{"overhead", ETCH_OF_TIME, 1e-9, 1e-3, {5e-6, 1e-5}, false},
                                                 {"memory", ETCH_OF_NOTHING, 0.01, 1, {0.7, 0.4}, false}}},
    [ETCH_KERNEL_COLLECTIVE] = {"collectives", {{"start", ETCH_OF_TIME, 1e-9, 1e-3, {5e-6, 8e-6}, false},
                                                {"step", ETCH_OF_TIME, 1e-9, 1e-3, {6e-7, 1e-6}, false},
                                                {"reach", ETCH_OF_NOTHING, 0.01, 2, {0.75, 0.6}, false},
                                                {"norm", ETCH_OF_NOTHING, 0.25, 64, {0.6, 0.8}, false},
                                                {"reduce", ETCH_OF_NOTHING, 0.01, 2, {0.6, 0.5}, true}}},
    [ETCH_KERNEL_SYSTOLIC] = {"systolic", {{"overhead", ETCH_OF_TIME, 1e-9, 1e-3, {5e-7, 1e-6}, false},
                                           {"reach", ETCH_OF_NOTHING, 0.01, 64, {1, 0.5}, false}}},
};
/* clang-format on */

const etch_fit_row *etch_fit_row_of(etch_kernel_kind kind)
{
    return &fits[kind];
}

/* ---- stacks -------------------------------------------------------------------------------------------- */

const etch_stack *etch_cluster_stack(const etch_cluster *cluster, const char *name)
{
    for (uint32_t i = 0; i < cluster->stacks.count; i++)
        if (strcmp(cluster->stacks.at[i].name, name) == 0)
            return &cluster->stacks.at[i];
    return NULL;
}

/* ---- names --------------------------------------------------------------------------------------------- */

static const char *name_at(const char *const *names, uint32_t count, uint32_t at)
{
    return at < count ? names[at] : NULL;
}

const char *etch_dataflow_name(etch_dataflow dataflow)
{
    static const char *const names[] = {"weight", "input", "output", "either"};
    return name_at(names, ETCH_DATAFLOW_COUNT, (uint32_t)dataflow);
}

const char *etch_topology_name(etch_topology topology)
{
    static const char *const names[] = {"switch", "ring", "full", "torus"};
    return name_at(names, ETCH_TOPOLOGY_COUNT, (uint32_t)topology);
}

const char *etch_node_collective_name(etch_node_collective op)
{
    static const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
    return name_at(names, ETCH_NODE_COLLECTIVES, (uint32_t)op);
}

const char *etch_fit_part_name(etch_fit_part part)
{
    static const char *const names[] = {"used", "kept out", "aside", "given"};
    return name_at(names, ETCH_FIT_PARTS, (uint32_t)part);
}

const char *etch_kernel_kind_name(etch_kernel_kind kind)
{
    return (unsigned)kind < ETCH_KERNEL_KINDS ? fits[kind].name : NULL;
}
