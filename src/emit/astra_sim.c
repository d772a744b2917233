/* What ASTRA-sim needs beside the traces: a machine whose network has a dimension for each axis of the mesh,
 * the same as one switch for the backend that knows one dimension only, and the command that runs it.
 * Bandwidths, latencies and the speed of a rank are round numbers for a user to edit: nothing is derived from
 * them. */
#include "emit/emit_int.h"

#include <string.h>

#define NETWORK "network.yml"
#define SYSTEM "system.json"
#define FLAT_NETWORK "network-1d.yml"
#define FLAT_SYSTEM "system-1d.json"
#define MEMORY "memory.json"
#define COMMAND "astra-sim.sh"

static const char *const names[ETCH_ASTRA_SIM_FILES] = {NETWORK,     SYSTEM, FLAT_NETWORK,
                                                        FLAT_SYSTEM, MEMORY, COMMAND};

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
static void put_row(etch_buf *out, const char *key, const dimensions *d, const char *inner, const char *outer)
{
    etch_buf_printf(out, "%s: [ ", key);
    for (uint32_t i = 0; i < d->count; i++)
        etch_buf_printf(out, "%s%s", i ? ", " : "", i ? outer : inner);
    etch_buf_puts(out, " ]");
}

static void put_network(etch_buf *out, const dimensions *d)
{
    etch_buf_puts(out, "# Dimensions, innermost first:");
    for (uint32_t i = 0; i < d->count; i++)
        etch_buf_printf(out, " %s", d->at[i]->name);
    etch_buf_puts(out, "\n");
    put_row(out, "topology", d, "Ring", "Ring");
    etch_buf_puts(out, "\nnpus_count: [ ");
    for (uint32_t i = 0; i < d->count; i++)
        etch_buf_printf(out, "%s%u", i ? ", " : "", (unsigned)d->at[i]->size);
    etch_buf_puts(out, " ]\n");
    put_row(out, "bandwidth", d, "400.0", "50.0");
    etch_buf_puts(out, "  # GB/s\n");
    put_row(out, "latency", d, "500.0", "1000.0");
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
                    "bandwidth: [ %s ]  # GB/s\n"
                    "latency: [ %s ]  # ns\n",
                    (unsigned)job->rank_count, inner ? "400.0" : "50.0", inner ? "500.0" : "1000.0");
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
    etch_buf_puts(out, "{\n"
                       "    \"scheduling-policy\": \"FIFO\",\n"
                       "    \"endpoint-delay\": 10,\n"
                       "    \"active-chunks-per-dimension\": 1,\n"
                       "    \"preferred-dataset-splits\": 1,\n");
    put_algorithm(out, "all-reduce", ring);
    put_algorithm(out, "all-gather", ring);
    put_algorithm(out, "reduce-scatter", ring);
    put_algorithm(out, "all-to-all", all_to_all);
    etch_buf_puts(out, "    \"collective-optimization\": \"baseline\",\n"
                       "    \"roofline-enabled\": 1,\n"
                       "    \"peak-perf\": 1000,\n"
                       "    \"local-mem-bw\": 3000\n"
                       "}\n");
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
    etch_buf_puts(&text[4], "{\"memory-type\": \"NO_MEMORY_EXPANSION\"}\n");
    put_command(&text[5], job, name);
    uint32_t count = 0;
    for (uint32_t i = 0; i < ETCH_ASTRA_SIM_FILES; i++)
        if (text[i].length > 0)
            files[count++] = (etch_extra_file){names[i], text[i].text, text[i].length};
    return count;
}
