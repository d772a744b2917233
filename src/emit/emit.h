/* The header of emit: writes a lowered job as Chakra traces into a folder.
 *
 * A finished folder holds
 *   <name>.<rank>.et   a trace for each rank: a GlobalMetadata message and the nodes, each after its length
 *                      as a varint, in the canonical encoding (fields in the order of their numbers, shortest
 *                      varints, defaults left out); or <name>.<rank>.et.zst, the same as a zstd frame with a
 *                      checksum
 *   comm_group.json    group id -> ranks in ring order. Without groups it is the empty object, from which
 *                      simulators read no group
 *   manifest.json      what was lowered and what it adds up to: see `etch_emit`
 * and, where they are asked for,
 *   network.yml, system.json, memory.json, astra-sim.sh, machine.etch
 *                      a machine with a network of one dimension for each axis of the mesh, the command that
 *                      runs ASTRA-sim on it and the traces, and the machine as a spec
 *
 * The files are written into a hidden folder beside (or, see `force`, inside) the target and appear under
 * their names when all of them are complete; the manifest comes last. The bytes depend on the job and the
 * options and on nothing else: not on the number of threads, the clock, the host or the path. */
#ifndef ETCH_EMIT_H
#define ETCH_EMIT_H

#include <stdatomic.h>

#include "lower/lower.h"

/* How a collective says who takes part. */
typedef enum etch_group_form {
    /* as the file, unless it would hold more groups than simulators number; then as the dimensions */
    ETCH_GROUPS_AUTO,
    /* each group has an id in the group file */
    ETCH_GROUPS_FILE,
    /* the dimensions of the network where that can be (see dimensions.c), else an id */
    ETCH_GROUPS_DIMENSIONS
} etch_group_form;

typedef struct etch_emit_options {
    /* the target. Missing: it and its parents are created */
    const char *folder;
    /* of the traces: "<name>.<rank>.et" */
    const char *name;
    /* for the manifest, e.g. "0.1.0" */
    const char *tool_version;
    /* for the manifest: 64 digits, see `etch_sha256` */
    const char *spec_sha256;
    /* 0 counts as 1 */
    unsigned threads;
    /* The ranks whose traces are written; NULL: all. Groups and manifest are those of the whole job. */
    const etch_intervals *ranks;
    /* A folder that holds nothing but an earlier run is replaced as a whole, and an empty one is used. In
     * a folder with other files the run is refused, or with `force` the files of this run take their
     * places one by one and all others stay as they are; so do files for ASTRA-sim that are not as an earlier
     * run wrote them. */
    bool force;
    /* Each trace is a zstd frame, "<name>.<rank>.et.zst"; equal ones are compressed once. */
    bool packs;
    /* Traces of equal bytes are one file with several names (hard links), as far as the file system lets
     * them; the others are written. */
    bool links;
    etch_group_form groups;
    /* also what ASTRA-sim needs */
    bool astra_sim;
    /* What is written is on the disk, too, before a manifest says that it is there. */
    bool syncs;
    /* When it is not 0 any more, the run ends soon and leaves nothing. May be NULL; a signal handler may set
     * it. */
    const atomic_int *cancel;
    /* Processes that write the traces together, each some, into a folder that all see; each makes the same
     * call. Process 0 does what is to be done once. NULL: this one does all. */
    etch_world *world;
    /* In place of `folder`: one file, a POSIX tar archive of the same files, the manifest last. It has its
     * name when it is complete, also in place of one of an earlier run. Equal traces are, with `links`, links
     * in it. */
    const char *archive;
    /* In place of both: this open file gets such an archive; 0: none does. What it has got stays there. */
    int stream;
} etch_emit_options;

/* What was written, or would be. */
typedef struct etch_emit_result {
    uint64_t files;
    /* with a trace */
    uint32_t ranks;
    /* traces that are further names of another one */
    uint32_t links;
    /* of all files. Where traces are compressed, 0 unless they were written */
    uint64_t bytes;
    /* the same, before traces are compressed */
    uint64_t unpacked_bytes;
    /* of the traces, before they are compressed */
    uint64_t trace_bytes;
    /* of the ranks that are written */
    uint64_t nodes;
    /* in the group file */
    uint32_t groups;
    /* groups that are along dimensions of the network, and in no file */
    uint32_t groups_along;
} etch_emit_result;

/* Writes the traces of `job`. Everything that is not ETCH_OK comes with a diagnostic (except ETCH_ENOMEM)
 * and leaves no folder that looks finished; a target that existed keeps what it held (with `force` in a
 * folder with other files: may lose an earlier run): ETCH_EINPUT the target cannot be used, ETCH_EIO it
 * could not be written, ETCH_ELIMIT a value does not fit in a trace, or cancelled, ETCH_EINTERNAL the job
 * breaks a rule that simulators rely on. Warnings say what is written but strains simulators.
 *
 * manifest.json, in this order: `format` ("etch-manifest"), `format_version`, `tool`, `spec`, `model`,
 * `plan`, `config` (or null), `bindings`, `mesh` (outermost axis first), `ranks`, `traces` (with
 * `compression`, "zstd", where they are compressed; `bytes` are those before that; with `written`: the
 * first and last of each run of ranks that have one, unless all have; with `astra_sim`: the
 * SHA-256 of each of its files, where they are there), `comm_groups` (families: one set of mesh axes,
 * groups with consecutive ids from `first_id`, or instead `dimensions` of the network, innermost 0, that
 * they are along), `classes` (ranks of one program) and `stages`. A stage holds sums over the nodes of one
 * of its ranks, as decimal text: the sum of num_ops is `flop` + `flop_padding`, of tensor_size `bytes` +
 * `bytes_padding`, of comm_size by collective and axes `bytes` + `bytes_padding` of that row. Padding is
 * what the least values that simulators accept (1 FLOP, 1 byte, 32768 bytes of a first computation, 64
 * bytes of a collective) added to the exact sums. */
etch_status etch_emit(etch_mem *mem, const etch_job *job, const etch_emit_options *options, etch_diags *diags,
                      etch_emit_result *result) ETCH_MUST_CHECK;

/* The result that `etch_emit` would have, exact to the byte, without touching the disk. `folder`,
 * `threads`, `force` and `cancel` are not read. How many bytes compressed traces have is not known. */
etch_status etch_emit_measure(etch_mem *mem, const etch_job *job, const etch_emit_options *options,
                              etch_diags *diags, etch_emit_result *result) ETCH_MUST_CHECK;

/* SHA-256, in hexadecimal digits, of `count` pieces one after the other, as of one file. */
enum { ETCH_SHA256_TEXT = 65 };
typedef struct etch_piece {
    const void *bytes;
    size_t length;
} etch_piece;
void etch_sha256(const etch_piece *pieces, size_t count, char text[ETCH_SHA256_TEXT]);

#endif
