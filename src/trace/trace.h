/* The header of trace: reads Chakra traces, whoever wrote them.
 *
 * It shares the tables of the schema (chakra/chakra.h) with what writes traces, and nothing else. */
#ifndef ETCH_TRACE_H
#define ETCH_TRACE_H

#include <stdatomic.h>

#include "chakra/chakra.h"

/* ---- reading one file ---------------------------------------------------------------------------------- */

/* Part of a message; not NUL-terminated. Strings of the schema are valid UTF-8, `bytes` may be anything. */
typedef struct etch_trace_text {
    const char *at;
    size_t length;
} etch_trace_text;

/* A value, by the scalar of its kind: `number` of double and float (widened), `text` of string and bytes,
 * `integer` of the rest; the unsigned kinds as the same bits, bool as 0 or 1. */
typedef union etch_trace_value {
    int64_t integer;
    double number;
    etch_trace_text text;
} etch_trace_value;

typedef struct etch_trace_attr {
    etch_trace_text name, doc;
    /* what simulators know by this name, or ETCH_ATTRIBUTE_UNKNOWN */
    etch_chakra_attribute known;
    /* etch_chakra_kind; ETCH_KIND_NONE when the attribute has no value */
    uint8_t kind;
    /* of `values`: 1, or the length of a list */
    uint32_t count;
    const etch_trace_value *values;
} etch_trace_attr;

/* IOInfo: tensors as texts. */
typedef struct etch_trace_io {
    bool present;
    etch_trace_text values, shapes, types;
} etch_trace_io;

typedef struct etch_trace_metadata {
    /* of the message in the file */
    uint64_t offset, length;
    /* the message */
    const uint8_t *bytes;
    etch_trace_text version;
    const etch_trace_attr *attrs;
    uint32_t attr_count;
    /* fields that the schema does not have, or has with another encoding; skipped */
    uint32_t unknown;
} etch_trace_metadata;

typedef struct etch_trace_node {
    /* of the message in the file */
    uint64_t offset, length;
    /* the message */
    const uint8_t *bytes;
    uint64_t id;
    etch_trace_text name;
    /* etch_chakra_type, or any other number */
    int32_t type;
    const uint64_t *data_deps, *ctrl_deps;
    uint32_t data_dep_count, ctrl_dep_count;
    /* microseconds */
    uint64_t start_time, duration;
    etch_trace_io inputs, outputs;
    /* as they stand in the file, also when a name is there twice */
    const etch_trace_attr *attrs;
    uint32_t attr_count;
    /* as in etch_trace_metadata */
    uint32_t unknown;
} etch_trace_node;

/* Why a file cannot be read on. Where it is compressed, bytes are counted in what it holds. */
typedef struct etch_trace_error {
    /* the first message is a Node: there is no GlobalMetadata */
    bool headless;
    /* byte in the file */
    uint64_t offset;
    /* "the file ends within a message of 120 bytes" */
    char reason[192];
} etch_trace_error;

/* What a message may hold; more is an error of the file. */
enum {
    /* bytes */
    ETCH_TRACE_MESSAGE_LIMIT = 16 << 20,
    /* attributes */
    ETCH_TRACE_ATTR_LIMIT = 1 << 12,
    /* values of all its attributes, lists included */
    ETCH_TRACE_VALUE_LIMIT = 1 << 18,
    /* dependencies of each sort */
    ETCH_TRACE_DEP_LIMIT = 1 << 20
};

/* A trace that is read from its beginning to its end, one message in memory at a time. Safe on any thread
 * (it uses malloc and no arena), one thread at a time.
 *
 * Every valid encoding of the schema is accepted: fields in any order, unpacked lists, longer varints than
 * needed, unknown fields and groups. What is not valid protobuf is an error. */
typedef struct etch_trace_reader etch_trace_reader;

/* Opens a file, which is compressed where its name ends in ".et.zst", or `length` bytes in memory that must
 * stay, and reads GlobalMetadata. ETCH_EIO: the file cannot be opened or read; ETCH_EINPUT: it is no trace;
 * both fill `error`. ETCH_ENOMEM. Unless ETCH_OK, `*reader` is NULL. */
etch_status etch_trace_open(const char *path, etch_trace_reader **reader,
                            etch_trace_error *error) ETCH_MUST_CHECK;
etch_status etch_trace_open_bytes(const void *bytes, size_t length, etch_trace_reader **reader,
                                  etch_trace_error *error) ETCH_MUST_CHECK;
void etch_trace_close(etch_trace_reader *reader); /* NULL is allowed */

/* Valid until the first call of `etch_trace_next`. */
const etch_trace_metadata *etch_trace_head(const etch_trace_reader *reader);
/* The next node, valid until the next call; `*node` is NULL after the last one. Errors as above; the reader
 * can then only be closed. */
etch_status etch_trace_next(etch_trace_reader *reader, const etch_trace_node **node,
                            etch_trace_error *error) ETCH_MUST_CHECK;
/* Bytes read so far, all messages that were handed out with their lengths. */
uint64_t etch_trace_position(const etch_trace_reader *reader);

/* ---- do the traces of all ranks run to their end? ------------------------------------------------------ */

typedef struct etch_verify_options {
    /* a folder, or a folder and the name of the traces: "out", "out/llama" */
    const char *path;
    /* the file of groups; NULL: comm_group.json beside the traces, when it is there */
    const char *groups;
    /* 0 counts as 1. The result does not depend on it */
    unsigned threads;
    /* under rendezvous a send holds the communication slot until its receive is posted */
    etch_protocol protocol;
    /* that the different programs of the ranks may have together; 0: the default */
    size_t program_bytes;
    /* runs with random durations, from the seeds 1, 2, ..., for the marks of the result */
    uint32_t seeds;
    /* when it is not 0 any more, the run ends soon. May be NULL */
    const atomic_int *cancel;
} etch_verify_options;

/* The most that a rank held at any moment of the runs with random durations. */
typedef struct etch_verify_marks {
    /* nodes whose parents are finished and that are not finished themselves */
    uint32_t ready;
    /* microbatches: a node labelled with it has begun, and not all of them are finished */
    uint32_t in_flight;
} etch_verify_marks;

typedef struct etch_verify_result {
    /* of all that was asked for */
    etch_verdict_kind verdict;
    /* by protocol; ETCH_VERDICT_COUNT: not asked for */
    etch_verdict_kind verdicts[ETCH_PROTOCOL_COUNT];
    /* traces that were found; groups of the file */
    uint32_t ranks, groups;
    /* different programs: ranks of one differ in groups, peers and tags only */
    uint32_t programs;
    /* of all ranks */
    uint64_t nodes, bytes;
    /* nodes by what they do */
    uint64_t computations, collectives, sends, receives, memory;
    /* ranks that do not finish */
    uint32_t stalled;
    /* by rank; NULL without seeds */
    const etch_verify_marks *marks;
} etch_verify_result;

/* Holds traces against every rule that simulators rely on, and runs them: one compute slot and one
 * communication slot for each rank, ready nodes in the order of their ids.
 *
 * Every broken rule is a diagnostic: an error when it breaks the run, a warning when it changes the run, a
 * remark when no simulator minds. ETCH_OK: no error, and ETCH_VERDICT_ALWAYS. ETCH_EUNKNOWN: no error, and
 * ETCH_VERDICT_BY_TIMING or ETCH_VERDICT_BY_PROTOCOL. ETCH_EINPUT: errors, or ETCH_VERDICT_STALLS. ETCH_EIO:
 * a file cannot be read. ETCH_ELIMIT: too large, or cancelled. `result` is filled as far as things went; what
 * it points to lives in `arena`. */
etch_status etch_verify(etch_arena *arena, const etch_verify_options *options, etch_diags *diags,
                        etch_verify_result *result) ETCH_MUST_CHECK;

/* ---- traces as a run needs them ------------------------------------------------------------------------ */

typedef enum etch_loaded_work {
    /* passes in no time */
    ETCH_LOADED_NOTHING,
    ETCH_LOADED_COMPUTES,
    /* from a memory that is not the rank's own, and to it */
    ETCH_LOADED_LOADS,
    ETCH_LOADED_STORES,
    ETCH_LOADED_COLLECTIVE,
    ETCH_LOADED_SENDS,
    ETCH_LOADED_RECEIVES
} etch_loaded_work;

typedef struct etch_loaded_node {
    uint64_t id;
    etch_loaded_work work;
    /* etch_chakra_collective */
    uint8_t collective;
    /* of a computation; its bytes, or the payload; what the trace says that a computation takes, or 0 */
    uint64_t flop, bytes, microseconds;
    /* collective: of the folder's groups. Message: the other rank */
    uint32_t group, peer;
    int32_t tag;
    /* ids of nodes, ascending, each once */
    const uint64_t *waits;
    uint32_t wait_count;
} etch_loaded_node;

/* In the order of their ids. */
typedef struct etch_loaded_rank {
    const etch_loaded_node *nodes;
    uint32_t node_count;
} etch_loaded_rank;

typedef struct etch_trace_member_list {
    uint32_t id, count;
    /* ascending */
    const uint32_t *ranks;
} etch_trace_member_list;

typedef struct etch_trace_folder {
    /* "out/llama" */
    const char *name;
    uint32_t rank_count;
    /* the first is that of all ranks */
    const etch_trace_member_list *groups;
    uint32_t group_count;
} etch_trace_folder;

typedef struct etch_trace_loader etch_trace_loader;

/* `path` and `groups` as in etch_verify_options. Of traces that `etch_verify` has found no error in. */
etch_status etch_trace_loader_open(etch_arena *arena, const char *path, const char *groups, etch_diags *diags,
                                   etch_trace_loader **loader, etch_trace_folder *folder) ETCH_MUST_CHECK;
/* The nodes of a rank live in `arena`. */
etch_status etch_trace_load(etch_arena *arena, const etch_trace_loader *loader, uint32_t rank,
                            etch_diags *diags, etch_loaded_rank *out) ETCH_MUST_CHECK;

/* ---- traces for people --------------------------------------------------------------------------------- */

typedef enum etch_dump_form {
    /* what all nodes add up to */
    ETCH_DUMP_SUMMARY,
    /* a JSON object on a line for each node */
    ETCH_DUMP_JSON,
    /* the text form: `etch_trace_assemble` gives back the same bytes */
    ETCH_DUMP_TEXT
} etch_dump_form;

/* Where text goes, piece by piece. `write` returns false when it cannot; that ends the call with ETCH_EIO. */
typedef struct etch_text_out {
    bool (*write)(void *data, const char *text, size_t length);
    void *data;
} etch_text_out;

typedef struct etch_dump_options {
    /* a trace, or a folder: all traces in it, in the order of names and ranks */
    const char *path;
    etch_dump_form form;
    /* only these: "0,2,8-15"; NULL: all */
    const char *ranks;
    etch_text_out out;
    /* as in etch_verify_options */
    const atomic_int *cancel;
} etch_dump_options;

/* Reads traces and says what is in them; one message is in memory at a time. ETCH_EINPUT: something is no
 * trace, and a diagnostic says where; what comes before is dumped, and as text also what it is made of.
 * ETCH_EIO: a file cannot be read. ETCH_ELIMIT: cancelled. */
etch_status etch_trace_dump(etch_arena *arena, const etch_dump_options *options,
                            etch_diags *diags) ETCH_MUST_CHECK;

typedef struct etch_assembly {
    uint32_t files;
    uint64_t bytes;
} etch_assembly;

typedef struct etch_assemble_options {
    /* new or empty; with `force` it may hold files that the text makes, and is replaced as a whole */
    const char *folder;
    bool force;
    /* What is written is on the disk, too, before the folder has its name. */
    bool syncs;
    /* When it is not 0 any more, the run ends soon and leaves nothing. May be NULL. */
    const atomic_int *cancel;
} etch_assemble_options;

/* Makes a folder of the files that a text describes (docs/trace-text.md). It holds all files afterwards; when
 * the call fails nothing is left, and what was there stays. ETCH_EINPUT: mistakes in the text, or the folder
 * holds something else. ETCH_EIO: cannot write. ETCH_ELIMIT: cancelled. */
etch_status etch_trace_assemble(etch_arena *arena, const etch_source *text,
                                const etch_assemble_options *options, etch_diags *diags,
                                etch_assembly *assembly) ETCH_MUST_CHECK;

#endif
