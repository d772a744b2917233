/* What ASTRA-sim needs beside the traces: a machine whose network has a dimension for each axis of the mesh,
 * the same as one switch for the backend that knows one dimension only, the same as a spec, and the command
 * that runs it. Bandwidths, latencies and the speed of a rank are round numbers for a user to edit. */
#include "emit/emit_int.h"

#include <string.h>

#include "graph/graph.h"

#define NETWORK "network.yml"
#define SYSTEM "system.json"
#define FLAT_NETWORK "network-1d.yml"
#define FLAT_SYSTEM "system-1d.json"
#define MEMORY "memory.json"
#define COMMAND "astra-sim.sh"
#define MACHINE "machine.etch"

static const char *const names[ETCH_ASTRA_SIM_FILES] = {NETWORK, SYSTEM,  FLAT_NETWORK, FLAT_SYSTEM,
                                                        MEMORY,  COMMAND, MACHINE};

/* The numbers of the machine, as its files have them. A dimension's bandwidth and latency, of the innermost
 * and of those further out: GB/s and ns. */
#define INNER_BANDWIDTH 400
#define OUTER_BANDWIDTH 50
#define INNER_LATENCY 500
#define OUTER_LATENCY 1000
#define ENDPOINT_DELAY 10 /* ns */
#define PEAK 1000         /* TFLOP/s */
#define MEMORY_BANDWIDTH 3000
#define HOST_BANDWIDTH 50

uint32_t etch_astra_sim_file(const char *file)
{
    uint32_t at = 0;
    while (at < ETCH_ASTRA_SIM_FILES && strcmp(file, names[at]) != 0)
        at++;
    return at;
}

/* The dimensions of the network: mesh axes of more than one rank, innermost first, since neighbouring ranks
 * differ in the innermost; a single rank has a network of one. */
typedef struct dimensions {
    uint32_t count;
    const etch_mesh_axis *at[ETCH_MAX_AXES];
} dimensions;

static dimensions dimensions_of(const etch_job *job)
{
    static const etch_mesh_axis alone = {.name = "one rank", .size = 1};
    dimensions d = {0};
    for (uint32_t i = job->mesh_count; i-- > 0;)
        if (job->mesh[i].size > 1)
            d.at[d.count++] = &job->mesh[i];
    if (d.count == 0)
        d.at[d.count++] = &alone;
    return d;
}

/* "key: [ a, b ]": the first value for the innermost dimension, the other for all further out. */
static void put_row(etch_buf *out, const char *key, const dimensions *d, int inner, int outer)
{
    etch_buf_printf(out, "%s: [ ", key);
    for (uint32_t i = 0; i < d->count; i++)
        etch_buf_printf(out, "%s%d.0", i ? ", " : "", i ? outer : inner);
    etch_buf_puts(out, " ]");
}

static void put_network(etch_buf *out, const dimensions *d)
{
    etch_buf_puts(out, "# Dimensions, innermost first:");
    for (uint32_t i = 0; i < d->count; i++)
        etch_buf_printf(out, " %s", d->at[i]->name);
    etch_buf_puts(out, "\n");
    etch_buf_puts(out, "topology: [ ");
    for (uint32_t i = 0; i < d->count; i++)
        etch_buf_printf(out, "%sRing", i ? ", " : "");
    etch_buf_puts(out, " ]\nnpus_count: [ ");
    for (uint32_t i = 0; i < d->count; i++)
        etch_buf_printf(out, "%s%u", i ? ", " : "", (unsigned)d->at[i]->size);
    etch_buf_puts(out, " ]\n");
    put_row(out, "bandwidth", d, INNER_BANDWIDTH, OUTER_BANDWIDTH);
    etch_buf_puts(out, "  # GB/s\n");
    put_row(out, "latency", d, INNER_LATENCY, OUTER_LATENCY);
    etch_buf_puts(out, "  # ns\n");
}

/* All ranks behind one switch, each as fast as the slowest dimension lets it be. */
static void put_flat_network(etch_buf *out, const etch_job *job, const dimensions *d)
{
    const bool inner = d->count == 1;
    etch_buf_printf(out,
                    "# All ranks, for the congestion-aware backend, which knows one dimension\n"
                    "topology: [ Switch ]\n"
                    "npus_count: [ %u ]\n"
                    "bandwidth: [ %d.0 ]  # GB/s\n"
                    "latency: [ %d.0 ]  # ns\n",
                    (unsigned)job->rank_count, inner ? INNER_BANDWIDTH : OUTER_BANDWIDTH,
                    inner ? INNER_LATENCY : OUTER_LATENCY);
}

/* The same machine for `etch simulate`. ASTRA-sim's GB/s of networks are 2^30 bytes. A step of a ring takes
 * the latency and what an endpoint needs; where it reduces, the next one begins when both operands have been
 * read from the memory and the sum is there. */
static void put_machine(etch_buf *out, const etch_job *job, const dimensions *d)
{
    etch_buf_puts(out, "# The machine of " NETWORK " and " SYSTEM ", for etch simulate\n"
                       "etch 1\n"
                       "device astra_sim_rank {\n");
    for (uint32_t i = 0, said = 0; i < ETCH_DTYPE_COUNT; i++)
        if (etch_dtype_is_real((etch_dtype)i))
            etch_buf_printf(out, "%s%s = %d TFLOP/s", said++ ? ", " : "  products ",
                            etch_dtype_name((etch_dtype)i), PEAK);
    etch_buf_printf(out, "\n  bandwidth = %d GB/s, passes = 3\n", MEMORY_BANDWIDTH);
    if (job->uses_host)
        etch_buf_printf(out, "  host = %d GB/s\n", HOST_BANDWIDTH);
    etch_buf_puts(out, "}\n"
                       "cluster astra_sim {\n"
                       "  device = astra_sim_rank, eager = true\n");
    for (uint32_t i = 0; i < d->count; i++)
        etch_buf_printf(out,
                        "  level %s { devices = %u, kind = ring, bandwidth = %d GiB/s, latency = %d ns }\n",
                        d->at[i]->name, (unsigned)d->at[i]->size, i ? OUTER_BANDWIDTH : INNER_BANDWIDTH,
                        (i ? OUTER_LATENCY : INNER_LATENCY) + ENDPOINT_DELAY);
    etch_buf_puts(out, "}\n");
}

/* How collectives are run: an entry for each dimension. */
typedef struct algorithm {
    const char *name;
    uint32_t count;
} algorithm;

/* An all-to-all sends straight to each member; a ring would pass everything on to its neighbours. ASTRA-sim
 * turns a list of several entries into rings for groups of some ranks, and takes one entry of a group of all
 * ranks, or of one along dimensions, for the first dimension only, unless it is one that means all ranks. */
static algorithm choose_all_to_all(const etch_job *job, const dimensions *d)
{
    bool of_all = false, of_some = false;
    for (uint32_t i = 0; i < job->program_count; i++)
        for (uint32_t k = 0; k < job->programs[i].node_count; k++) {
            const etch_node *node = &job->programs[i].nodes[k];
            if (node->type != ETCH_NODE_COLL || node->collective != ETCH_COMM_ALL_TO_ALL)
                continue;
            if (job->families[node->family].size == job->rank_count || job->families[node->family].dimensions)
                of_all = true;
            else
                of_some = true;
        }
    if (of_all && of_some)
        return (algorithm){"oneDirect1", 1};
    return (algorithm){"direct1", of_all ? d->count : 1};
}

static void put_algorithm(etch_buf *out, const char *collective, algorithm a)
{
    etch_buf_printf(out, "    \"%s-implementation\": [", collective);
    for (uint32_t i = 0; i < a.count; i++)
        etch_buf_printf(out, "%s\"%s\"", i ? ", " : "", a.name);
    etch_buf_puts(out, "],\n");
}

/* Without the roofline computations take no time. One chunk for each collective: a payload of the least size
 * that a trace has is not cut into pieces of nothing. */
static void put_system(etch_buf *out, algorithm ring, algorithm all_to_all)
{
    etch_buf_printf(out,
                    "{\n"
                    "    \"scheduling-policy\": \"FIFO\",\n"
                    "    \"endpoint-delay\": %d,\n"
                    "    \"active-chunks-per-dimension\": 1,\n"
                    "    \"preferred-dataset-splits\": 1,\n",
                    ENDPOINT_DELAY);
    put_algorithm(out, "all-reduce", ring);
    put_algorithm(out, "all-gather", ring);
    put_algorithm(out, "reduce-scatter", ring);
    put_algorithm(out, "all-to-all", all_to_all);
    etch_buf_printf(out,
                    "    \"collective-optimization\": \"baseline\",\n"
                    "    \"roofline-enabled\": 1,\n"
                    "    \"peak-perf\": %d,\n"
                    "    \"local-mem-bw\": %d\n"
                    "}\n",
                    PEAK, MEMORY_BANDWIDTH);
}

/* Loads and stores are of a memory that each rank has beside its own. */
static void put_memory(etch_buf *out, const etch_job *job)
{
    if (!job->uses_host)
        etch_buf_puts(out, "{\"memory-type\": \"NO_MEMORY_EXPANSION\"}\n");
    else
        etch_buf_printf(out,
                        "{\"memory-type\": \"PER_NPU_MEMORY_EXPANSION\", \"remote-mem-latency\": 0, "
                        "\"remote-mem-bw\": %d}\n",
                        HOST_BANDWIDTH);
}

/* As a word of the shell. */
static void put_quoted(etch_buf *out, const char *text)
{
    etch_buf_puts(out, "'");
    for (; *text; text++) {
        if (*text == '\'')
            etch_buf_puts(out, "'\\'");
        etch_buf_add(out, text, 1);
    }
    etch_buf_puts(out, "'");
}

/* ASTRA-sim opens a file for each rank, and some others. Where more than a shell allows by itself are allowed
 * at all, the script asks for them. */
static void put_checks(etch_buf *out, const etch_job *job)
{
    enum { OTHER_FILES = 64 };
    etch_buf_printf(out,
                    "files=%u\n"
                    "most=$(ulimit -n)\n"
                    "if [ \"$most\" != unlimited ] && [ \"$most\" -lt \"$files\" ]; then\n"
                    "    ulimit -n \"$files\" 2>/dev/null || {\n"
                    "        echo \"$0: ASTRA-sim opens a file for each rank, $files in all;\" \\\n"
                    "            \"ulimit -n allows $most\" >&2\n"
                    "        exit 1\n"
                    "    }\n"
                    "fi\n",
                    (unsigned)job->rank_count + OTHER_FILES);
    if (etch_group_count(job) > 0)
        etch_buf_puts(
            out,
            "case $here in\n"
            "*empty*)\n"
            "    echo \"$0: ASTRA-sim reads no groups from a path with \\\"empty\\\" in it: $here\" >&2\n"
            "    exit 1\n"
            "    ;;\n"
            "esac\n");
}

/* The log lies beside the folder: what is in the folder is replaced by the next run of etch. */
static void put_command(etch_buf *out, const etch_job *job, const char *name)
{
    etch_buf_puts(out,
                  "#!/bin/sh\n"
                  "# Runs ASTRA-sim on the traces beside this file: sh " COMMAND " [PROGRAM [OPTION...]]\n"
                  "program=${1:-AstraSim_Analytical_Congestion_Unaware}\n"
                  "[ $# -eq 0 ] || shift\n"
                  "here=$(CDPATH='' cd -- \"$(dirname -- \"$0\")\" && pwd) || exit 1\n"
                  "case ${program##*/} in\n");
    if (etch_group_count_along(job) > 0)
        etch_buf_puts(
            out,
            "*Congestion_Aware*)\n"
            "    echo \"$0: collectives are along dimensions of the network, and $program knows one;\" \\\n"
            "        \"write groups: etch lower --groups file\" >&2\n"
            "    exit 1\n"
            "    ;;\n");
    else
        etch_buf_puts(out, "*Congestion_Aware*) machine=-1d ;;\n");
    etch_buf_puts(out, "*) machine= ;;\n"
                       "esac\n");
    put_checks(out, job);
    etch_buf_puts(out, "exec \"$program\" \\\n"
                       "    --workload-configuration=\"$here\"/");
    put_quoted(out, name);
    etch_buf_puts(out, " \\\n"
                       "    --comm-group-configuration=\"$here\"/" ETCH_CHAKRA_GROUP_FILE " \\\n"
                       "    --system-configuration=\"$here/system$machine.json\" \\\n"
                       "    --remote-memory-configuration=\"$here\"/" MEMORY " \\\n"
                       "    --network-configuration=\"$here/network$machine.yml\" \\\n"
                       "    --logging-folder=\"$here.log\" \\\n"
                       "    \"$@\"\n");
}

uint32_t etch_astra_sim_files(etch_arena *arena, const etch_job *job, const char *name,
                              etch_extra_file files[ETCH_ASTRA_SIM_FILES])
{
    const dimensions d = dimensions_of(job);
    etch_buf text[ETCH_ASTRA_SIM_FILES];
    for (uint32_t i = 0; i < ETCH_ASTRA_SIM_FILES; i++)
        text[i] = (etch_buf){.arena = arena};
    put_network(&text[0], &d);
    put_system(&text[1], (algorithm){"ring", d.count}, choose_all_to_all(job, &d));
    if (etch_group_count_along(job) == 0) { /* of a network of one dimension, where none is named */
        put_flat_network(&text[2], job, &d);
        put_system(&text[3], (algorithm){"ring", 1}, (algorithm){"direct1", 1});
    }
    put_memory(&text[4], job);
    put_command(&text[5], job, name);
    if (job->rank_count > 1)
        put_machine(&text[6], job, &d);
    uint32_t count = 0;
    for (uint32_t i = 0; i < ETCH_ASTRA_SIM_FILES; i++)
        if (text[i].length > 0)
            files[count++] = (etch_extra_file){names[i], text[i].text, text[i].length};
    return count;
}
