/* The run of an emission: everything is prepared and checked, then written aside, then put in place. */
#include "emit/emit_int.h"

#include <stdlib.h>
#include <string.h>

typedef struct emission {
    const etch_job *job;
    const etch_emit_options *options;
    etch_diags *diags;
    etch_arena *arena;
    etch_variants variants;
    /* from malloc */
    char *manifest;
    size_t manifest_length;
    etch_extra_file extras[ETCH_ASTRA_SIM_FILES];
    uint32_t extra_count;
    etch_folder folder;
    etch_emit_result result;
} emission;

/* ---- preparing ----------------------------------------------------------------------------------------- */

static etch_status check_name(const emission *e)
{
    const char *name = e->options->name;
    /* The longest file name ends in ".4294967295" and the suffix. */
    if (*name != '\0' && *name != '.' && !strchr(name, '/') && !etch_has_control(name) &&
        strlen(name) + 12 + strlen(etch_trace_suffix(e->options)) <= ETCH_FILE_NAME)
        return ETCH_OK;
    etch_error(e->diags, ETCH_E_OUTPUT_NAME, (etch_span){0, 0},
               "traces cannot be named '%.80s': a file name without '/', control characters and a dot in "
               "front is needed",
               name);
    return ETCH_EINPUT;
}

/* Ranks that are asked for are there. */
static etch_status check_ranks(const emission *e)
{
    const etch_intervals *ranks = e->options->ranks;
    const uint32_t last = ranks ? ranks->at[ranks->count - 1].last : 0;
    if (!ranks || last < e->job->rank_count)
        return ETCH_OK;
    etch_diag *diag =
        etch_error(e->diags, ETCH_E_OUTPUT_RANKS, (etch_span){0, 0}, "there is no rank %u", (unsigned)last);
    etch_help(diag, "the mesh has %u ranks, from 0 to %u", (unsigned)e->job->rank_count,
              (unsigned)e->job->rank_count - 1);
    return ETCH_EINPUT;
}

static uint32_t ranks_of(const etch_variant *variant)
{
    return variant->count + variant->twin_count;
}

static uint64_t count_nodes(const emission *e)
{
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < e->variants.count; i++)
        nodes += (uint64_t)e->variants.at[i].program->node_count * ranks_of(&e->variants.at[i]);
    return nodes;
}

static uint64_t count_trace_bytes(const emission *e)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < e->variants.count; i++)
        bytes += ranks_of(&e->variants.at[i]) * e->variants.at[i].size.bytes;
    return bytes;
}

static uint64_t count_extra_bytes(const emission *e)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < e->extra_count; i++)
        bytes += e->extras[i].length;
    return bytes;
}

static etch_status prepare(emission *e)
{
    uint64_t group_bytes;
    etch_status status = check_name(e);
    if (status == ETCH_OK)
        e->job = etch_groups_choose(e->arena, e->job, e->options->groups);
    if (status == ETCH_OK)
        status = etch_job_check(e->job, e->options->groups, e->diags);
    if (status == ETCH_OK)
        status = check_ranks(e);
    if (status != ETCH_OK)
        return status;
    etch_variants_find(e->arena, e->job, e->options->ranks, &e->variants);
    for (uint32_t i = 0; (e->options->links || e->options->packs) && i < e->variants.count; i++) {
        etch_twins_find(e->arena, e->job, &e->variants.at[i]);
        e->result.links += e->options->links ? e->variants.at[i].twin_count : 0;
    }
    e->result.trace_bytes = count_trace_bytes(e);
    if (e->options->astra_sim)
        e->extra_count = etch_astra_sim_files(e->arena, e->job, e->options->name, e->extras);
    const etch_manifest_files files = {e->result.trace_bytes, e->extras, e->extra_count};
    status = etch_manifest_text(e->job, &e->variants, e->options, &files, &e->manifest, &e->manifest_length);
    if (status != ETCH_OK)
        return status;
    if (etch_groups_put(e->job, NULL, NULL, &group_bytes) != 0)
        return ETCH_EINTERNAL; /* counting has nothing that could fail */
    e->result.ranks = e->variants.written;
    e->result.files = (uint64_t)e->variants.written + 2 + e->extra_count;
    e->result.unpacked_bytes =
        e->result.trace_bytes + group_bytes + e->manifest_length + count_extra_bytes(e);
    e->result.bytes = e->options->packs ? 0 : e->result.unpacked_bytes;
    e->result.nodes = count_nodes(e);
    e->result.groups = etch_group_count(e->job);
    e->result.groups_along = etch_group_count_along(e->job);
    return ETCH_OK;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void warn_of_path(const emission *e)
{
    if (e->options->folder && etch_group_count(e->job) > 0 && strstr(e->options->folder, "empty"))
        etch_warning(e->diags, ETCH_E_OUTPUT_EMPTY, (etch_span){0, 0},
                     "the path '%s' contains \"empty\": ASTRA-sim reads no groups from it",
                     e->options->folder);
}

static void warn_of_traces(const emission *e)
{
    if (!e->options->astra_sim)
        return;
    if (e->options->packs)
        etch_help(etch_warning(e->diags, ETCH_E_OUTPUT_PACKED, (etch_span){0, 0},
                               "ASTRA-sim does not read compressed traces"),
                  "unpack them before it runs: zstd -d --rm %s/*%s",
                  e->options->folder ? e->options->folder : ".", ETCH_CHAKRA_SUFFIX_ZSTD);
    if (e->job->rank_count == 1)
        etch_warning(e->diags, ETCH_E_OUTPUT_ONE_RANK, (etch_span){0, 0},
                     "there is one rank: networks of ASTRA-sim have at least two");
    else if (e->variants.written < e->job->rank_count)
        etch_warning(e->diags, ETCH_E_OUTPUT_SOME_RANKS, (etch_span){0, 0},
                     "ASTRA-sim needs the traces of all %u ranks, and %u are written",
                     (unsigned)e->job->rank_count, (unsigned)e->variants.written);
}

/* What its owner has edited is not written. */
static void leave_out_kept(emission *e)
{
    for (uint32_t i = 0; i < e->extra_count; i++)
        if (e->folder.kept[i]) {
            e->result.files--;
            e->result.unpacked_bytes -= e->extras[i].length;
            etch_warning(e->diags, ETCH_E_OUTPUT_KEPT, (etch_span){0, 0},
                         "'%s/%s' is not as etch wrote it, and stays: see that it fits", e->folder.out.path,
                         e->extras[i].name);
        }
}

static etch_status write_tables(const emission *e)
{
    int error = etch_groups_write(e->job, e->folder.out.files);
    if (error != 0)
        return etch_io_error(e->diags, "write", e->folder.out.path, ETCH_CHAKRA_GROUP_FILE, error);
    for (uint32_t i = 0; i < e->extra_count; i++) {
        const etch_extra_file *extra = &e->extras[i];
        if (e->folder.kept[i])
            continue;
        error = etch_file_put(e->folder.out.files, extra->name, extra->text, extra->length);
        if (error != 0)
            return etch_io_error(e->diags, "write", e->folder.out.path, extra->name, error);
    }
    error = etch_file_put(e->folder.out.files, ETCH_MANIFEST_WAITING, e->manifest, e->manifest_length);
    if (error != 0)
        return etch_io_error(e->diags, "write", e->folder.out.path, ETCH_MANIFEST_FILE, error);
    return ETCH_OK;
}

static etch_status check_cancel(const emission *e)
{
    if (!e->options->cancel || atomic_load(e->options->cancel) == 0)
        return ETCH_OK;
    return etch_cancelled(e->diags, e->folder.out.path);
}

static etch_status measure(void *data)
{
    return prepare(data);
}

/* The traces of this process, and where it is the first, all of the rest. */
static etch_status write_files(emission *e)
{
    const bool is_helper = etch_shared_is_helper(e->options);
    etch_traces_written written = {0};
    etch_status status = etch_shared_open(e->options, &e->folder.out);
    if (status == ETCH_OK)
        status = etch_traces_write(e->arena, e->job, &e->variants, e->options, &e->folder, &written);
    if (status == ETCH_OK && is_helper)
        status = etch_target_sync_files(&e->folder.out);
    if (status == ETCH_OK)
        status = etch_shared_finish(e->options, e->diags, &written.links);
    e->result.links = written.links;
    e->result.bytes = e->result.unpacked_bytes - e->result.trace_bytes + written.bytes;
    if (status == ETCH_OK && !is_helper)
        status = write_tables(e);
    return status == ETCH_OK ? check_cancel(e) : status;
}

/* What another process does of a run. */
static etch_status write_share(emission *e)
{
    e->folder.out.syncs = e->options->syncs;
    etch_target_name(&e->folder.out, e->options->folder);
    return write_files(e);
}

/* What cannot be with an archive. */
static etch_status check_archive(const emission *e)
{
    const bool several = etch_world_size(e->options->world) > 1;
    if (!several && !e->options->force)
        return ETCH_OK;
    etch_diag *diag =
        etch_error(e->diags, several ? ETCH_E_WORLD : ETCH_E_OUTPUT_KIND, (etch_span){0, 0},
                   several ? "several processes do not write an archive together"
                           : "--force is of folders: an archive is replaced as a whole, or not");
    etch_help(diag, several ? "let them write a folder, or one process the archive"
                            : "remove the file that is in its place");
    return ETCH_EINPUT;
}

static etch_status write_archive(emission *e)
{
    const etch_archive_rest rest = {e->extras, e->extra_count, e->manifest, e->manifest_length};
    etch_traces_written written = {0};
    unsigned mode;
    etch_status status = check_archive(e);
    if (status == ETCH_OK)
        status = etch_archive_inspect(&e->folder, e->options, &mode);
    if (status != ETCH_OK)
        return status;
    warn_of_traces(e);
    e->folder.out.syncs = e->options->syncs;
    if (e->options->stream == 0)
        status = etch_target_begin(&e->folder.out);
    if (status == ETCH_OK)
        status = etch_archive_write_all(e->arena, e->job, &e->variants, e->options, &rest, mode, &e->folder,
                                        &written);
    e->result.links = written.links;
    e->result.bytes = e->result.unpacked_bytes - e->result.trace_bytes + written.bytes;
    etch_target_close(&e->folder.out);
    return status;
}

static etch_status write_all(void *data)
{
    emission *e = data;
    etch_status status = prepare(e);
    if (status == ETCH_OK && !e->options->folder)
        return write_archive(e);
    if (status == ETCH_OK)
        status = etch_shared_begin(e->options, e->diags, e->manifest, e->manifest_length);
    if (status != ETCH_OK)
        return status;
    if (etch_shared_is_helper(e->options))
        return write_share(e);
    warn_of_path(e);
    warn_of_traces(e);
    e->folder.ours.known = true;
    e->folder.ours.rank_count = e->job->rank_count;
    e->folder.ours.suffix = etch_trace_suffix(e->options);
    e->folder.ours.astra_sim = e->options->astra_sim;
    e->folder.ranks = e->options->ranks;
    e->folder.out.syncs = e->options->syncs;
    e->folder.extras = e->extras;
    e->folder.extra_count = e->extra_count;
    memcpy(e->folder.ours.name, e->options->name, strlen(e->options->name) + 1);
    status = etch_folder_inspect(&e->folder, e->options->folder, e->options->force);
    if (status != ETCH_OK)
        return status;
    leave_out_kept(e);
    status = etch_target_begin(&e->folder.out);
    if (status == ETCH_OK)
        status = write_files(e);
    return status == ETCH_OK ? etch_folder_commit(&e->folder) : status;
}

/* The arena is older than the guard, so that its paths outlive a trap and the hidden folder can be
 * removed. */
static etch_status run(etch_mem *mem, etch_status (*body)(void *data), const etch_job *job,
                       const etch_emit_options *options, etch_diags *diags, etch_emit_result *result)
{
    etch_arena *arena = etch_arena_new(mem);
    emission e = {.job = job,
                  .options = options,
                  .diags = diags,
                  .arena = arena,
                  .folder = {.out = {.arena = arena, .diags = diags, .mark = ETCH_MANIFEST_FILE, .files = -1},
                             .filled = -1,
                             .old = -1}};
    etch_status status = etch_guard(mem, body, &e);
    if (status != ETCH_OK) {
        etch_world_halt(options->world, status);
        etch_folder_abandon(&e.folder);
    }
    free(e.manifest);
    etch_arena_free(arena);
    *result = e.result;
    return status;
}

etch_status etch_emit(etch_mem *mem, const etch_job *job, const etch_emit_options *options, etch_diags *diags,
                      etch_emit_result *result)
{
    return run(mem, write_all, job, options, diags, result);
}

etch_status etch_emit_measure(etch_mem *mem, const etch_job *job, const etch_emit_options *options,
                              etch_diags *diags, etch_emit_result *result)
{
    return run(mem, measure, job, options, diags, result);
}
