/* Inside emit: how a job becomes bytes, and bytes become files. */
#ifndef ETCH_EMIT_INT_H
#define ETCH_EMIT_INT_H

#include "chakra/chakra.h"
#include "emit/emit.h"

/* Its name in the hidden folder: a manifest is there under its own name only where the run is complete,
 * whenever the process ends. */
#define ETCH_MANIFEST_WAITING "." ETCH_MANIFEST_FILE

enum { ETCH_FILE_NAME = 256 }; /* room for the name of any file in the folder, with its NUL */

/* ---- encode.c: the canonical encoding ------------------------------------------------------------------ */

/* What differs between the ranks of a program is left blank: the rank itself and the peers of its messages,
 * as varints, and the ids of its groups, by family, as digits. */
enum {
    ETCH_BLANK_OWN,
    ETCH_BLANK_PEERS,
    ETCH_MOST_PEERS = 8,
    ETCH_BLANK_FAMILIES = ETCH_BLANK_PEERS + ETCH_MOST_PEERS
};
uint32_t etch_blank_count(const etch_job *job);
uint16_t etch_blank_of_family(uint16_t family);
/* The values of a rank, by blank; 0 for a family in which it has no group. */
void etch_blanks_fill(const etch_job *job, uint32_t rank, uint32_t *values);
/* Bytes of a value. */
uint8_t etch_blank_width(uint32_t blank, uint32_t value);

/* A blank in a chunk. */
typedef struct etch_patch {
    size_t offset;
    uint16_t blank;
} etch_patch;

/* A run of encoded nodes of one program, valid for all ranks whose blanks are equally long, after
 * `etch_chunk_patch`. */
typedef struct etch_chunk {
    uint8_t *bytes;
    size_t length;
    etch_patch *patches;
    size_t patch_count;
} etch_chunk;

/* Bytes of a whole trace; what any chunk of it needs at most; what any but the last has at least. */
typedef struct etch_trace_size {
    uint64_t bytes;
    size_t chunk_bytes, chunk_patches, chunk_least;
} etch_trace_size;

/* Digits of a group id. */
uint8_t etch_id_width(uint32_t id);
/* `widths`: bytes of the values, by blank. */
etch_trace_size etch_trace_measure(const etch_job *job, const etch_class_program *program,
                                   const uint8_t *widths);
/* Replaces what `chunk` holds by the nodes from `first` on, about a megabyte of them; GlobalMetadata goes
 * before node 0. Returns the node after them. */
uint32_t etch_chunk_encode(const etch_job *job, const etch_class_program *program, const uint8_t *widths,
                           uint32_t first, etch_chunk *chunk);
/* Room for any chunk of such a trace, from malloc. False: memory is out; `etch_chunk_free` follows in any
 * case. */
bool etch_chunk_new(etch_chunk *chunk, const etch_trace_size *size);
void etch_chunk_free(etch_chunk *chunk);
/* Writes the values of one rank, by blank, into their places. */
void etch_chunk_patch(etch_chunk *chunk, const uint8_t *widths, const uint32_t *values);

/* ---- dimensions.c: collectives that need no group ------------------------------------------------------ */

/* Of the network: mesh axes of more than one rank. */
uint32_t etch_dimension_count(const etch_job *job);
/* `job`, or one like it whose families are written in the form that is asked for. */
const etch_job *etch_groups_choose(etch_arena *arena, const etch_job *job, etch_group_form form);

/* ---- astra_sim.c: files for a simulator ---------------------------------------------------------------- */

typedef struct etch_extra_file {
    const char *name, *text;
    size_t length;
} etch_extra_file;

enum { ETCH_ASTRA_SIM_FILES = 7 };
/* Makes them, in `arena`, and returns how many: where collectives are along dimensions, without the two of a
 * network of one dimension; of one rank, without the machine as a spec. `name`: of the traces. */
uint32_t etch_astra_sim_files(etch_arena *arena, const etch_job *job, const char *name,
                              etch_extra_file files[ETCH_ASTRA_SIM_FILES]);
/* Which of them has this name: an index; ETCH_ASTRA_SIM_FILES: none. */
uint32_t etch_astra_sim_file(const char *file);

/* ---- variant.c: which ranks share bytes ---------------------------------------------------------------- */

/* A rank whose trace has the bytes of that of another one, which is smaller. */
typedef struct etch_twin {
    uint32_t rank, of;
} etch_twin;

/* Ranks of one class whose blanks are equally long: their traces differ in these only. */
typedef struct etch_variant {
    const etch_class_program *program;
    /* by blank; 0 for what the program does not use */
    const uint8_t *widths;
    /* ascending, without those of `twins` */
    uint32_t *ranks;
    uint32_t count;
    /* with links, or where they are compressed once: those of each rank beside each other, ascending */
    const etch_twin *twins;
    uint32_t twin_count;
    etch_trace_size size;
} etch_variant;

typedef struct etch_variants {
    etch_variant *at;
    uint32_t count;
    /* by class: number of ranks, written or not */
    uint32_t *class_ranks;
    /* ranks */
    uint32_t written;
} etch_variants;

/* Holds the job against every rule of a trace that its numbers can break, warns of what simulators do not
 * like. `form`: what was asked for. */
etch_status etch_job_check(const etch_job *job, etch_group_form form, etch_diags *diags) ETCH_MUST_CHECK;
/* `ranks`: those to write; NULL: all. */
void etch_variants_find(etch_arena *arena, const etch_job *job, const etch_intervals *ranks,
                        etch_variants *variants);

/* ---- twins.c: which ranks have equal bytes ------------------------------------------------------------- */

/* Takes ranks whose bytes are those of a smaller one out of `ranks`, into `twins`. */
void etch_twins_find(etch_arena *arena, const etch_job *job, etch_variant *variant);

/* ---- folder.c: the output folder ----------------------------------------------------------------------- */

/* The files of one run: its traces, the group file and the manifest. */
typedef struct etch_run_files {
    /* there is such a run: the folder has a manifest of ours */
    bool known;
    /* of the traces */
    char name[ETCH_FILE_NAME];
    const char *suffix;
    uint32_t rank_count;
    /* with what ASTRA-sim needs */
    bool astra_sim;
    /* what was written into these files, as SHA-256; "" where that is not known */
    char machine[ETCH_ASTRA_SIM_FILES][ETCH_SHA256_TEXT];
} etch_run_files;

typedef struct etch_folder {
    /* where the files go; it is their place one by one in a folder that others have files in */
    etch_target out;
    /* the run at hand */
    etch_run_files ours;
    /* of it that are written; NULL: all */
    const etch_intervals *ranks;
    const etch_extra_file *extras;
    uint32_t extra_count;
    /* what the target holds already */
    etch_run_files earlier;
    /* files for ASTRA-sim, by index, that are there and are not as the earlier run wrote them: nobody but
     * their owner touches them */
    bool kept[ETCH_ASTRA_SIM_FILES];
    /* open on the target while it is filled, else -1 */
    int filled;
    /* where what it held is meanwhile, else NULL */
    const char *aside;
    /* open on `aside`, else -1 */
    int old;
    /* files that took their places */
    uint32_t placed;
} etch_folder;

/* Looks at the target and decides on the way; changes nothing. ETCH_EINPUT: it cannot be used. */
etch_status etch_folder_inspect(etch_folder *folder, const char *path, bool force) ETCH_MUST_CHECK;
/* Makes the files appear under their names; `etch_target_begin` was called. When that or anything later
 * fails, `etch_folder_abandon` must follow. */
etch_status etch_folder_commit(etch_folder *folder) ETCH_MUST_CHECK;
/* Leaves the target as it was. Allocates nothing from the arena. */
void etch_folder_abandon(etch_folder *folder);

/* That write traces, few enough for the files that they have open. */
unsigned etch_emit_threads(const etch_emit_options *options);
void etch_trace_name(const char *name, uint32_t rank, const char *suffix, char file_name[ETCH_FILE_NAME]);
/* Of the traces of a run. */
const char *etch_trace_suffix(const etch_emit_options *options);

/* ---- shared.c: several processes ----------------------------------------------------------------------- */

/* Does process 0 write the rest? Is the i-th piece of what they divide this process's own? Both without a
 * world, too: all below does nothing then. */
bool etch_shared_is_helper(const etch_emit_options *options);
bool etch_shared_has(const etch_emit_options *options, size_t i);
/* All have the same manifest. */
etch_status etch_shared_begin(const etch_emit_options *options, etch_diags *diags, const char *manifest,
                              size_t length) ETCH_MUST_CHECK;
/* All have the hidden folder open that process 0 has created. */
etch_status etch_shared_open(const etch_emit_options *options, etch_target *target) ETCH_MUST_CHECK;
/* Goes on when all are here. */
etch_status etch_shared_meet(const etch_emit_options *options, etch_diags *diags) ETCH_MUST_CHECK;
/* Has process 0 ended the run? */
bool etch_shared_is_stopped(const etch_emit_options *options);
/* The traces of all are there. `*links`: of this process; process 0 then has the sum. */
etch_status etch_shared_finish(const etch_emit_options *options, etch_diags *diags,
                               uint32_t *links) ETCH_MUST_CHECK;

typedef struct etch_traces_written {
    /* further names of another one */
    uint32_t links;
    /* of all traces, as they are in their files */
    uint64_t bytes;
} etch_traces_written;

/* ---- archive.c: everything as one file ----------------------------------------------------------------- */

/* What an archive holds beside traces. */
typedef struct etch_archive_rest {
    const etch_extra_file *extras;
    uint32_t extra_count;
    const char *manifest;
    size_t manifest_length;
} etch_archive_rest;

/* Looks at what has the name of the archive, and names the target; changes nothing. `*mode`: the permissions
 * of what is replaced; 0: nothing is. ETCH_EINPUT: it cannot be. */
etch_status etch_archive_inspect(etch_folder *folder, const etch_emit_options *options,
                                 unsigned *mode) ETCH_MUST_CHECK;
/* Writes the archive; `etch_target_begin` was called unless it is a stream. It has its name then, or all of
 * it is in the stream. */
etch_status etch_archive_write_all(etch_arena *arena, const etch_job *job, const etch_variants *variants,
                                   const etch_emit_options *options, const etch_archive_rest *rest,
                                   unsigned mode, etch_folder *folder,
                                   etch_traces_written *written) ETCH_MUST_CHECK;

/* ---- what goes into the folder ------------------------------------------------------------------------- */

/* traces.c: writes all traces of this process into `folder`. */
etch_status etch_traces_write(etch_arena *arena, const etch_job *job, const etch_variants *variants,
                              const etch_emit_options *options, const etch_folder *folder,
                              etch_traces_written *written) ETCH_MUST_CHECK;

/* pack.c: puts a frame of `bytes` bytes before compression. The level is that of zstd without options. NULL:
 * memory is out. */
typedef struct etch_packer etch_packer;
etch_packer *etch_packer_new(etch_put put, void *data, uint64_t bytes);
void etch_packer_free(etch_packer *packer); /* NULL is allowed */
/* Each returns 0 or an errno, ENOMEM where memory is out. `*written`: bytes of the whole frame. */
int etch_packer_add(etch_packer *packer, const void *bytes, size_t length) ETCH_MUST_CHECK;
int etch_packer_end(etch_packer *packer, uint64_t *written) ETCH_MUST_CHECK;

/* groups.c: the group file, put, or only counted where `put` is NULL; written into a folder. Return 0 or an
 * errno. */
int etch_groups_put(const etch_job *job, etch_put put, void *data, uint64_t *size) ETCH_MUST_CHECK;
int etch_groups_write(const etch_job *job, int folder) ETCH_MUST_CHECK;
/* Groups with ids, and those along dimensions. */
uint32_t etch_group_count(const etch_job *job);
uint32_t etch_group_count_along(const etch_job *job);

/* What the manifest says of other files. */
typedef struct etch_manifest_files {
    uint64_t trace_bytes;
    /* a user may edit them: their hashes tell */
    const etch_extra_file *extras;
    uint32_t extra_count;
} etch_manifest_files;
/* manifest.c. The caller frees `*text`. */
etch_status etch_manifest_text(const etch_job *job, const etch_variants *variants,
                               const etch_emit_options *options, const etch_manifest_files *files,
                               char **text, size_t *length) ETCH_MUST_CHECK;
/* What the manifest in the target says of its run; `known` is false when there is none of ours. ETCH_EIO,
 * with a diagnostic, or ETCH_ENOMEM when that cannot be told. */
etch_status etch_manifest_read(const etch_folder *folder, etch_run_files *run) ETCH_MUST_CHECK;

#endif
