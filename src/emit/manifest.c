/* manifest.json: what was lowered, and what the traces add up to. Its keys are described at `etch_emit`. */
#define _POSIX_C_SOURCE 200809L

#include "emit/emit_int.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    FORMAT_VERSION = 1,
    /* a larger file is none of ours */
    MANIFEST_LIMIT = 64 << 20
};

/* ---- writing ------------------------------------------------------------------------------------------- */

/* Jansson takes over every value that it is given, also NULL, and says so with a status: one flag gathers
 * the failures. */
typedef struct writer {
    const etch_job *job;
    const etch_variants *variants;
    const etch_emit_options *options;
    const etch_manifest_files *files;
    bool failed;
} writer;

static void set(writer *w, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        w->failed = true;
}

static void append(writer *w, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        w->failed = true;
}

static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* Sums may be larger than any JSON reader's integers. */
static json_t *decimal(etch_total value)
{
    char text[40];
    char *at = text + sizeof text - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value > 0);
    return json_string(at);
}

static json_t *tool_json(writer *w)
{
    json_t *tool = json_object();
    set(w, tool, "name", json_string("etch"));
    set(w, tool, "version", json_string(w->options->tool_version));
    return tool;
}

static json_t *spec_json(writer *w)
{
    json_t *spec = json_object();
    set(w, spec, "sha256", json_string(w->options->spec_sha256));
    return spec;
}

static json_t *bindings_json(writer *w)
{
    json_t *bindings = json_array();
    for (uint32_t i = 0; i < w->job->binding_count; i++) {
        const etch_binding *binding = &w->job->bindings[i];
        json_t *row = json_object();
        set(w, row, "name", json_string(binding->name));
        set(w, row, "value", json_string(binding->value));
        set(w, row, "from", json_string(binding->from));
        append(w, bindings, row);
    }
    return bindings;
}

static json_t *mesh_json(writer *w)
{
    json_t *mesh = json_array();
    for (uint32_t i = 0; i < w->job->mesh_count; i++) {
        json_t *row = json_object();
        set(w, row, "axis", json_string(w->job->mesh[i].name));
        set(w, row, "size", number(w->job->mesh[i].size));
        append(w, mesh, row);
    }
    return mesh;
}

/* The ranks that are written, first and last of each run of them. */
static json_t *ranks_json(writer *w)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < w->options->ranks->count; i++) {
        const etch_interval *interval = &w->options->ranks->at[i];
        json_t *pair = json_array();
        append(w, pair, number(interval->first));
        append(w, pair, number(interval->last));
        append(w, list, pair);
    }
    return list;
}

/* What was written into the files that describe a machine. */
static json_t *machine_json(writer *w)
{
    json_t *machine = json_object();
    for (uint32_t i = 0; i < w->files->extra_count; i++) {
        const etch_extra_file *extra = &w->files->extras[i];
        const etch_piece piece = {extra->text, extra->length};
        char hash[ETCH_SHA256_TEXT];
        etch_sha256(&piece, 1, hash);
        set(w, machine, extra->name, json_string(hash));
    }
    return machine;
}

static json_t *traces_json(writer *w)
{
    json_t *traces = json_object();
    set(w, traces, "name", json_string(w->options->name));
    set(w, traces, "pattern", json_sprintf("%s.{rank}%s", w->options->name, etch_trace_suffix(w->options)));
    if (w->options->packs)
        set(w, traces, "compression", json_string("zstd"));
    set(w, traces, "schema", json_string(ETCH_CHAKRA_VERSION));
    set(w, traces, "bytes", decimal(w->files->trace_bytes));
    if (w->options->ranks)
        set(w, traces, "written", ranks_json(w));
    if (w->options->astra_sim)
        set(w, traces, "astra_sim", machine_json(w));
    return traces;
}

/* Numbers of dimensions, innermost first. */
static json_t *dimensions_json(writer *w, uint64_t dimensions)
{
    json_t *list = json_array();
    for (unsigned i = 0; dimensions >> i; i++)
        if (dimensions >> i & 1)
            append(w, list, number(i));
    return list;
}

static json_t *family_json(writer *w, const etch_group_family *family)
{
    json_t *row = json_object();
    json_t *mesh_axes = json_array();
    for (uint32_t i = 0; i < w->job->mesh_count; i++)
        if (family->axes >> i & 1)
            append(w, mesh_axes, json_string(w->job->mesh[i].name));
    set(w, row, "axes", json_string(family->label));
    set(w, row, "mesh_axes", mesh_axes);
    if (family->dimensions)
        set(w, row, "dimensions", dimensions_json(w, family->dimensions));
    else
        set(w, row, "first_id", number(family->first_id));
    set(w, row, "groups", number(family->count));
    set(w, row, "size", number(family->size));
    return row;
}

static json_t *groups_json(writer *w)
{
    json_t *groups = json_object();
    json_t *families = json_array();
    for (uint32_t i = 0; i < w->job->family_count; i++)
        append(w, families, family_json(w, &w->job->families[i]));
    set(w, groups, "file", json_string(ETCH_CHAKRA_GROUP_FILE));
    set(w, groups, "groups", number(etch_group_count(w->job)));
    set(w, groups, "families", families);
    return groups;
}

static json_t *classes_json(writer *w)
{
    json_t *classes = json_array();
    for (uint32_t i = 0; i < w->job->program_count; i++) {
        json_t *row = json_object();
        set(w, row, "ranks", number(w->variants->class_ranks[i]));
        set(w, row, "nodes", number(w->job->programs[i].node_count));
        append(w, classes, row);
    }
    return classes;
}

static const char *comm_name(const etch_comm_total *comm)
{
    if (comm->type == ETCH_NODE_SEND)
        return comm->is_ring ? "permute" : "send";
    if (comm->type == ETCH_NODE_RECV)
        return "recv";
    switch (comm->collective) {
    case ETCH_COMM_ALL_REDUCE:
        return "all_reduce";
    case ETCH_COMM_ALL_GATHER:
        return "all_gather";
    case ETCH_COMM_REDUCE_SCATTER:
        return "reduce_scatter";
    default:
        return "all_to_all";
    }
}

static json_t *comm_json(writer *w, const etch_comm_total *comm)
{
    json_t *row = json_object();
    set(w, row, "collective", json_string(comm_name(comm)));
    set(w, row, "axes", json_string(comm->axes));
    set(w, row, "nodes", number(comm->count));
    set(w, row, "bytes", decimal(comm->bytes));
    set(w, row, "bytes_padding", decimal(comm->padded));
    return row;
}

static json_t *host_json(writer *w, const etch_stage_total *stage)
{
    json_t *row = json_object();
    set(w, row, "loads", number(stage->loads.count));
    set(w, row, "bytes_loaded", decimal(stage->loads.bytes));
    set(w, row, "stores", number(stage->stores.count));
    set(w, row, "bytes_stored", decimal(stage->stores.bytes));
    return row;
}

static json_t *stage_json(writer *w, const etch_stage_total *stage)
{
    json_t *row = json_object();
    json_t *comm = json_array();
    for (uint32_t i = 0; i < stage->comm_count; i++)
        append(w, comm, comm_json(w, &stage->comm[i]));
    if (w->job->work_share_count > 1) {
        set(w, row, "stage", number(stage->stage));
        set(w, row, "part", number(stage->work_share));
    }
    set(w, row, "ranks", number(stage->ranks));
    set(w, row, "nodes", number(stage->nodes));
    set(w, row, "flop", decimal(stage->flop));
    set(w, row, "flop_padding", decimal(stage->padded_flop));
    set(w, row, "bytes", decimal(stage->bytes));
    set(w, row, "bytes_padding", decimal(stage->padded_bytes));
    set(w, row, "comm", comm);
    if (w->job->uses_host)
        set(w, row, "host", host_json(w, stage));
    return row;
}

static json_t *stages_json(writer *w)
{
    json_t *stages = json_array();
    for (uint32_t i = 0; i < w->job->stage_count * w->job->work_share_count; i++)
        append(w, stages, stage_json(w, &w->job->stages[i]));
    return stages;
}

static json_t *name_or_null(const char *name)
{
    return name ? json_string(name) : json_null();
}

static json_t *manifest_json(writer *w)
{
    json_t *root = json_object();
    set(w, root, "format", json_string(ETCH_MANIFEST_FORMAT));
    set(w, root, "format_version", number(FORMAT_VERSION));
    set(w, root, "tool", tool_json(w));
    set(w, root, "spec", spec_json(w));
    set(w, root, "model", name_or_null(w->job->model));
    set(w, root, "plan", name_or_null(w->job->plan));
    set(w, root, "config", name_or_null(w->job->config));
    if (w->job->run)
        set(w, root, "run", name_or_null(w->job->run));
    set(w, root, "bindings", bindings_json(w));
    set(w, root, "mesh", mesh_json(w));
    set(w, root, "ranks", number(w->job->rank_count));
    set(w, root, "traces", traces_json(w));
    set(w, root, "comm_groups", groups_json(w));
    set(w, root, "classes", classes_json(w));
    set(w, root, "stages", stages_json(w));
    return root;
}

etch_status etch_manifest_text(const etch_job *job, const etch_variants *variants,
                               const etch_emit_options *options, const etch_manifest_files *files,
                               char **text, size_t *length)
{
    writer w = {.job = job, .variants = variants, .options = options, .files = files};
    json_t *root = manifest_json(&w);
    size_t size = w.failed ? 0 : json_dumpb(root, NULL, 0, JSON_INDENT(2));
    *text = size > 0 ? malloc(size + 1) : NULL;
    const bool fine = *text && json_dumpb(root, *text, size, JSON_INDENT(2)) == size; /* it allocates, too */
    json_decref(root);
    if (!fine) {
        free(*text);
        *text = NULL;
        return ETCH_ENOMEM;
    }
    (*text)[size] = '\n';
    *length = size + 1;
    return ETCH_OK;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static bool is_ours(const json_t *root)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    return format && strcmp(format, ETCH_MANIFEST_FORMAT) == 0;
}

/* Manifests of older runs say `true`, and nothing of what the files held. */
static void read_machine(json_t *machine, etch_run_files *run)
{
    const char *file;
    json_t *value;
    run->astra_sim = json_is_true(machine) || json_is_object(machine);
    json_object_foreach(machine, file, value)
    {
        const uint32_t at = etch_astra_sim_file(file);
        const char *hash = json_string_value(value);
        if (at < ETCH_ASTRA_SIM_FILES && hash && strlen(hash) + 1 == sizeof run->machine[at])
            memcpy(run->machine[at], hash, sizeof run->machine[at]);
    }
}

static void read_run(const json_t *root, etch_run_files *run)
{
    json_int_t ranks = json_integer_value(json_object_get(root, "ranks"));
    json_t *traces = json_object_get(root, "traces"), *packed = json_object_get(traces, "compression");
    const char *name = json_string_value(json_object_get(traces, "name"));
    if (!is_ours(root) || !name || strlen(name) >= sizeof run->name || ranks < 1 || ranks > UINT32_MAX)
        return;
    memcpy(run->name, name, strlen(name) + 1);
    run->rank_count = (uint32_t)ranks;
    run->suffix = packed ? ETCH_CHAKRA_SUFFIX_ZSTD : ETCH_CHAKRA_SUFFIX;
    read_machine(json_object_get(traces, "astra_sim"), run);
    run->known = true;
}

etch_status etch_manifest_read(const etch_folder *folder, etch_run_files *run)
{
    struct stat info;
    char *text;
    size_t length;
    const char *why;
    json_error_t error;
    const char *path = etch_text(folder->out.arena, "%s/%s", folder->out.path, ETCH_MANIFEST_FILE);
    *run = (etch_run_files){.known = false};
    if (lstat(path, &info) != 0)
        return errno == ENOENT
                   ? ETCH_OK
                   : etch_io_error(folder->out.diags, "read", folder->out.path, ETCH_MANIFEST_FILE, errno);
    if (!S_ISREG(info.st_mode) || info.st_size > MANIFEST_LIMIT)
        return ETCH_OK; /* none of ours */
    if (etch_read_file(folder->out.arena, path, MANIFEST_LIMIT, &text, &length, &why) != ETCH_OK) {
        etch_error(folder->out.diags, ETCH_E_OUTPUT_IO, (etch_span){0, 0}, "cannot read '%s': %s", path, why);
        return ETCH_EIO;
    }
    json_t *root = json_loadb(text, length, 0, &error);
    if (!root)
        return error.text[0] ? ETCH_OK : ETCH_ENOMEM; /* nothing to say of the text: memory is out */
    read_run(root, run);
    json_decref(root);
    return ETCH_OK;
}
