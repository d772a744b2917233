/* Traces: written, shown as text, made from text, verified. Part of etch/etch.h. */
#ifndef ETCH_TRACES_H
#define ETCH_TRACES_H

#include "etch/world.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- lower -------------------------------------------------------------------------------------------- */

/* How a collective says who takes part. */
typedef enum etch_output_groups {
    /* as in the file, unless it would hold more groups than ASTRA-sim numbers; then by dimensions */
    ETCH_OUTPUT_GROUPS_AUTO,
    /* by the number of a group in comm_group.json */
    ETCH_OUTPUT_GROUPS_FILE,
    /* by dimensions of the network where its ranks are whole ones, of one stage; else by number */
    ETCH_OUTPUT_GROUPS_DIMS
} etch_output_groups;

/* Everything but `struct_size`, and one of `folder`, `archive`, `stream` and `dry_run`, may be zero. */
typedef struct etch_output_options {
    /* sizeof(etch_output_options) */
    size_t struct_size;
    /* where to write; may be NULL for a dry run. Created when missing. A folder that holds nothing but an
     * earlier run is replaced as a whole when this one succeeds */
    const char *folder;
    /* of the traces, <name>.<rank>.et; NULL: the model's name */
    const char *name;
    /* 0 counts as 1. The bytes written do not depend on it */
    unsigned threads;
    /* write also into a folder that holds other files; those stay */
    bool force;
    /* change nothing on disk */
    bool dry_run;
    /* also write what ASTRA-sim needs beside traces and groups: network.yml, system.json, memory.json,
     * astra-sim.sh with the command, and the machine as a spec, machine.etch */
    bool astra_sim;
    /* write the traces of these only, "0,2,8-15"; NULL: of all. Groups, manifest and totals are those of all
     * ranks */
    const char *ranks;
    /* of nodes */
    etch_naming names;
    /* what nodes say beside what simulators read: several of those of `etch_annotation_at`, joined by commas;
     * NULL: nothing */
    const char *attrs;
    /* end before the files are on the disk: faster, and lost with the power */
    bool no_sync;
    /* traces of equal bytes are one file with several names (hard links), as far as the file system lets
     * them */
    bool link;
    etch_output_groups groups;
    /* each trace is a zstd frame, <name>.<rank>.et.zst; equal ones are compressed once */
    bool zstd;
    /* processes that write the traces together (etch/world.h), into a folder that all see; NULL: this one
     * writes all. The bytes written do not depend on it */
    etch_world *world;
    /* in place of `folder`: the same files as one POSIX tar archive of this name. It appears when it is
     * complete, also in place of an archive that an earlier run wrote; equal traces are, with `link`, links
     * in it. Neither `force` nor `world` goes with it */
    const char *archive;
    /* in place of both: such an archive goes into this open file, 1 of stdout; 0: none does. What it has got
     * of a run that fails stays there, without a manifest, which comes last */
    int stream;
} etch_output_options;

/* Attributes that nodes can have for people and their scripts; NULL after the last. A node has those that
 * mean something of it.
 *   phase       string_val  forward, recompute, backward, sync, optimizer
 *   layer       int64_val   iteration of the outermost loop that the node is in
 *   microbatch  int64_val   from 0; none at the end of a step
 *   op_type     string_val  as in `--by op` and `--by collective`: einsum, all_gather; send, recv
 *   module      string_val  the module it is of: llama.block.attention; none of messages */
ETCH_API const char *etch_annotation_at(size_t i);

/* Payload of one rank in a step, as comm_size counts it. */
typedef struct etch_output_comm {
    etch_collective collective;
    /* the other end of ETCH_SEND: what the rank receives */
    bool receives;
    /* "tp", "(dp,tp)" */
    const char *axes;
    const char *bytes, *bytes_human;
    uint64_t nodes;
} etch_output_comm;

/* Ranks of one pipeline stage, and of one part of it where parts do unequal work; numbers are of one of its
 * ranks and one step, less the padding that simulators ask for. */
typedef struct etch_output_stage {
    uint32_t ranks, nodes;
    const char *flop, *flop_human;
    /* read and written */
    const char *bytes, *bytes_human;
    const etch_output_comm *comm;
    size_t comm_count;
    uint32_t stage, part;
    /* between the memories of device and host; no nodes: nothing is */
    uint64_t loads, stores;
    const char *loaded, *loaded_human, *stored, *stored_human;
} etch_output_stage;

typedef struct etch_output_report {
    /* config and folder, or archive, may be NULL */
    const char *model, *plan, *config, *folder;
    /* the name of the train or infer block; NULL when it has none */
    const char *run;
    /* false for a dry run: the same numbers, of what would be written */
    bool written;
    uint32_t ranks;
    /* programs: ranks of one class differ in group ids only */
    uint32_t classes;
    /* communication groups in comm_group.json */
    uint32_t groups;
    /* as many as `ranks`, unless some were chosen */
    uint32_t ranks_written;
    /* of the ranks written */
    uint64_t nodes;
    uint64_t files;
    /* on disk, all files; of a dry run with `zstd` 0, since it compresses nothing */
    uint64_t bytes;
    /* stage by stage, and part by part of each */
    const etch_output_stage *stages;
    size_t stage_count;
    /* of each stage: 1 unless ranks of a stage do unequal work */
    uint32_t part_count;
    /* with `link`: traces that are further names of another one */
    uint32_t links;
    /* communication groups along dimensions of the network, which no file lists */
    uint32_t groups_along;
    /* all files, before traces are compressed */
    uint64_t unpacked_bytes;
} etch_output_report;

/* Binds all params and axes, and writes one trace for each rank, comm_group.json and manifest.json. Nothing
 * is left on disk when it fails, and what was there stays.
 * ETCH_EINPUT: values are missing, contradict an assumption or a requirement of the plan, or the folder holds
 * files of others. ETCH_EIO: cannot write. ETCH_ELIMIT: a limit of traces, or cancelled. */
ETCH_API etch_status etch_session_lower(etch_session *session, const etch_output_options *options,
                                        const etch_output_report **report);

/* ---- traces for people -------------------------------------------------------------------------------- */

typedef enum etch_dump_as {
    /* what all nodes add up to, as tables */
    ETCH_DUMP_AS_SUMMARY,
    /* a JSON object on a line for each node */
    ETCH_DUMP_AS_JSON,
    /* the text form of traces: `etch_session_assemble` gives back the same bytes */
    ETCH_DUMP_AS_TEXT
} etch_dump_as;

/* Everything but `struct_size` may be zero. */
typedef struct etch_dumping_options {
    /* sizeof(etch_dumping_options) */
    size_t struct_size;
    etch_dump_as as;
    /* those that are wanted, "0,2,8-15"; NULL: all */
    const char *ranks;
} etch_dumping_options;

/* Where text goes, piece by piece; not NUL-terminated. Returns false when it cannot be written. */
typedef bool (*etch_write)(void *data, const char *text, size_t length);

/* Reads Chakra traces of any tool, one message at a time, and says what is in them. `path` is a trace or a
 * folder; `options` NULL: all zero; `data` is handed to `write`. The session needs no spec.
 * ETCH_EINPUT: something is no trace; what comes before has been written, as text also what it is made of.
 * ETCH_EIO: a file cannot be read, or `write` failed. ETCH_ELIMIT: cancelled. */
ETCH_API etch_status etch_session_dump(etch_session *session, const char *path,
                                       const etch_dumping_options *options, etch_write write, void *data);

/* Everything but `struct_size` and `folder` may be zero. */
typedef struct etch_assembling_options {
    /* sizeof(etch_assembling_options) */
    size_t struct_size;
    /* where to write; new or empty */
    const char *folder;
    /* replace also a folder that holds nothing but files of the names that the text has */
    bool force;
    /* end before the files are on the disk: faster, and lost with the power */
    bool no_sync;
} etch_assembling_options;

typedef struct etch_assembled {
    const char *folder;
    uint32_t files;
    /* of all files */
    uint64_t bytes;
} etch_assembled;

/* Makes a folder of the files that `text`, in the text form of traces, describes; it may describe broken
 * ones. `name` is for messages. The session needs no spec. Nothing is left when it fails, and what was there
 * stays. ETCH_EINPUT: mistakes in the text, or the folder holds something else. ETCH_EIO: cannot write.
 * ETCH_ELIMIT: the text is too large, or cancelled. */
ETCH_API etch_status etch_session_assemble(etch_session *session, const char *name, const char *text,
                                           size_t length, const etch_assembling_options *options,
                                           const etch_assembled **result);

/* ---- verify ------------------------------------------------------------------------------------------- */

/* Everything but `struct_size` and `path` may be zero. */
typedef struct etch_verification_options {
    /* sizeof(etch_verification_options) */
    size_t struct_size;
    /* a folder of traces, or a folder and the name of the traces: "out", "out/llama" */
    const char *path;
    /* the file of groups; NULL: comm_group.json beside the traces, when it is there */
    const char *groups;
    /* 0 counts as 1. The result does not depend on it */
    unsigned threads;
    /* how sends end */
    etch_protocol protocol;
    /* runs with random durations, from the seeds 1, 2, ... */
    uint32_t seeds;
} etch_verification_options;

/* What a rank held at most at any moment of the runs with random durations. */
typedef struct etch_rank_marks {
    /* nodes that wait for nothing but a slot or their end */
    uint32_t ready;
    /* microbatches of which some work has begun, and some not finished */
    uint32_t in_flight;
} etch_rank_marks;

typedef struct etch_verification {
    /* of all that was asked for: the worst, or ETCH_VERDICT_BY_PROTOCOL */
    etch_verdict_kind verdict;
    /* of each protocol; ETCH_VERDICT_COUNT: not asked for */
    etch_verdict_kind eager, rendezvous;
    uint32_t ranks, groups;
    /* different programs: ranks of one differ in groups, peers and tags only */
    uint32_t programs;
    /* ranks that do not finish */
    uint32_t stalled;
    /* of all ranks */
    uint64_t nodes, bytes;
    /* nodes by what they do */
    uint64_t computations, collectives, sends, receives, memory;
    /* by rank; NULL without seeds */
    const etch_rank_marks *marks;
} etch_verification;

/* Reads the traces of all ranks, whoever wrote them, holds them against every rule that simulators rely
 * on, and says whether all ranks run to the end. The session needs no spec. ETCH_OK: no errors, and the
 * verdict is ETCH_VERDICT_ALWAYS. ETCH_EUNKNOWN: no errors, and ETCH_VERDICT_BY_TIMING or
 * ETCH_VERDICT_BY_PROTOCOL. ETCH_EINPUT: errors. ETCH_EIO: something cannot be read. ETCH_ELIMIT: too large,
 * or cancelled by `etch_session_cancel`. `*result` is NULL when there is nothing to tell. */
ETCH_API etch_status etch_session_verify(etch_session *session, const etch_verification_options *options,
                                         const etch_verification **result);

#ifdef __cplusplus
}
#endif

#endif
