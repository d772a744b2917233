/* What ASTRA-sim needs beside the traces: a machine whose network has a dimension for each axis of the mesh,
 * and the command that runs it. Bandwidths, latencies and the speed of a rank are round numbers for a user to
 * edit: nothing is derived from them. */
#include "emit/emit_int.h"

#include <string.h>

#define NETWORK "network.yml"
#define SYSTEM "system.json"
#define MEMORY "memory.json"
#define COMMAND "astra-sim.sh"

static const char *const names[ETCH_ASTRA_SIM_FILES] = {NETWORK, SYSTEM, MEMORY, COMMAND};

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

static void put_algorithm(etch_buf *out, const char *collective, const dimensions *d)
{
    etch_buf_printf(out, "    \"%s-implementation\": [", collective);
    for (uint32_t i = 0; i < d->count; i++)
        etch_buf_puts(out, i ? ", \"ring\"" : "\"ring\"");
    etch_buf_puts(out, "],\n");
}

/* Without the roofline computations take no time. One chunk for each collective: a payload of the least size
 * that a trace has is not cut into pieces of nothing. */
static void put_system(etch_buf *out, const dimensions *d)
{
    etch_buf_puts(out, "{\n"
                       "    \"scheduling-policy\": \"FIFO\",\n"
                       "    \"endpoint-delay\": 10,\n"
                       "    \"active-chunks-per-dimension\": 1,\n"
                       "    \"preferred-dataset-splits\": 1,\n");
    put_algorithm(out, "all-reduce", d);
    put_algorithm(out, "all-gather", d);
    put_algorithm(out, "reduce-scatter", d);
    put_algorithm(out, "all-to-all", d);
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

static void put_command(etch_buf *out, const char *name)
{
    etch_buf_puts(out,
                  "#!/bin/sh\n"
                  "# Runs ASTRA-sim on the traces beside this file: sh " COMMAND " [PROGRAM [OPTION...]]\n"
                  "program=${1:-AstraSim_Analytical_Congestion_Unaware}\n"
                  "[ $# -eq 0 ] || shift\n"
                  "here=$(cd \"$(dirname \"$0\")\" && pwd) || exit 1\n"
                  "exec \"$program\" \\\n"
                  "    --workload-configuration=\"$here\"/");
    put_quoted(out, name);
    etch_buf_puts(out, " \\\n"
                       "    --comm-group-configuration=\"$here\"/" ETCH_CHAKRA_GROUP_FILE " \\\n"
                       "    --system-configuration=\"$here\"/" SYSTEM " \\\n"
                       "    --remote-memory-configuration=\"$here\"/" MEMORY " \\\n"
                       "    --network-configuration=\"$here\"/" NETWORK " \\\n"
                       "    \"$@\"\n");
}

void etch_astra_sim_files(etch_arena *arena, const etch_job *job, const char *name,
                          etch_extra_file files[ETCH_ASTRA_SIM_FILES])
{
    const dimensions d = dimensions_of(job);
    etch_buf text[ETCH_ASTRA_SIM_FILES] = {
        {.arena = arena}, {.arena = arena}, {.arena = arena}, {.arena = arena}};
    put_network(&text[0], &d);
    put_system(&text[1], &d);
    etch_buf_puts(&text[2], "{\"memory-type\": \"NO_MEMORY_EXPANSION\"}\n");
    put_command(&text[3], name);
    for (uint32_t i = 0; i < ETCH_ASTRA_SIM_FILES; i++)
        files[i] = (etch_extra_file){names[i], text[i].text, text[i].length};
}
