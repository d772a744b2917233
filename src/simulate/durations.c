/* How long nodes take: each kind, size and place of them is asked of the machine once. */
#include "simulate/simulate_int.h"

/* What a list of numbers is of. */
typedef enum timed_kind { COMPUTATION, COLLECTIVE, MESSAGE, MOVE } timed_kind;

/* The number of a time; `*known`: it has been asked before. */
static uint32_t number_of(etch_sim *sim, timed_kind kind, uint32_t what, uint32_t where, uint64_t bytes,
                          bool *known)
{
    const uint32_t list[] = {kind, what, where, (uint32_t)bytes, (uint32_t)(bytes >> 32)};
    const uint32_t number = etch_sim_number(&sim->timed, list, sizeof list / sizeof *list);
    *known = number < sim->times.count;
    return number;
}

static uint32_t add(etch_sim *sim, uint32_t number, const char *lacks, etch_picoseconds time)
{
    if (lacks && !sim->lacks)
        sim->lacks = lacks;
    ETCH_PUSH(sim->arena, &sim->times, time);
    return number;
}

etch_computation etch_sim_computation(const etch_workload *load, uint64_t bytes)
{
    static const etch_kernel_kind kinds[] = {[ETCH_PRODUCT_NONE] = ETCH_KERNEL_ELEMENTWISE,
                                             [ETCH_PRODUCT_PLAIN] = ETCH_KERNEL_PRODUCT,
                                             [ETCH_PRODUCT_GROUPED] = ETCH_KERNEL_GROUPED,
                                             [ETCH_PRODUCT_ATTENTION] = ETCH_KERNEL_ATTENTION};
    return (etch_computation){.kind = kinds[load->kind],
                              .dtype = load->dtype,
                              .backward = load->backward,
                              .flop = load->flop,
                              .bytes = bytes,
                              .keys = load->keys,
                              .m = load->m,
                              .n = load->n,
                              .k = load->k,
                              .batch = load->batch};
}

uint32_t etch_sim_compute(etch_sim *sim, const etch_node *node, bool slow)
{
    bool known;
    const uint32_t number = number_of(sim, COMPUTATION, node->workload, slow, node->bytes, &known);
    if (known)
        return number;
    const etch_workload *load = &sim->job->workloads[node->workload];
    if (load->is_measured)
        return add(sim, number, NULL, (etch_picoseconds){.count = load->lasts});
    const etch_computation computation = etch_sim_computation(load, node->bytes);
    etch_picoseconds time = {0};
    const char *lacks = etch_computation_time(sim->results, sim->cluster->device, sim->options->stack,
                                              slow ? &sim->options->slow : NULL, &computation, &time);
    return add(sim, number, lacks, time);
}

uint64_t etch_sim_buffer(uint8_t collective, uint64_t bytes, uint32_t ranks)
{
    if (collective == ETCH_COMM_ALL_GATHER && __builtin_mul_overflow(bytes, ranks, &bytes))
        bytes = UINT64_MAX;
    return bytes;
}

etch_node_collective etch_sim_collective_of(uint8_t collective)
{
    static const etch_node_collective ops[ETCH_COMM_KINDS] = {
        [ETCH_COMM_ALL_REDUCE] = ETCH_NODE_ALL_REDUCE,
        [ETCH_COMM_ALL_GATHER] = ETCH_NODE_ALL_GATHER,
        [ETCH_COMM_ALL_TO_ALL] = ETCH_NODE_ALL_TO_ALL,
        [ETCH_COMM_REDUCE_SCATTER] = ETCH_NODE_REDUCE_SCATTER,
    };
    return ops[collective];
}

uint32_t etch_sim_collective(etch_sim *sim, const etch_node *node, uint32_t spread)
{
    bool known;
    const uint64_t bytes =
        etch_sim_buffer(node->collective, node->bytes, sim->job->families[node->family].size);
    const uint32_t number = number_of(sim, COLLECTIVE, node->collective, spread, bytes, &known);
    if (known)
        return number;
    uint32_t levels;
    const uint32_t *counts = etch_sim_list_at(&sim->spreads, spread, &levels);
    etch_picoseconds time = {0};
    const char *lacks = etch_collective_time(sim->results, sim->cluster, sim->options->stack,
                                             etch_sim_collective_of(node->collective), bytes, counts, &time);
    return add(sim, number, lacks, time);
}

uint32_t etch_sim_message(etch_sim *sim, uint64_t bytes, uint32_t level)
{
    bool known;
    const uint32_t number = number_of(sim, MESSAGE, 0, level, bytes, &known);
    if (known)
        return number;
    etch_picoseconds time = {0};
    const char *lacks =
        etch_message_time(sim->results, sim->cluster, sim->options->stack, level, bytes, &time);
    return add(sim, number, lacks, time);
}

uint32_t etch_sim_move(etch_sim *sim, uint64_t bytes)
{
    bool known;
    const uint32_t number = number_of(sim, MOVE, 0, 0, bytes, &known);
    if (known)
        return number;
    etch_picoseconds time = {0};
    const char *lacks = etch_host_time(sim->results, sim->cluster->device, sim->options->stack, bytes, &time);
    return add(sim, number, lacks, time);
}
