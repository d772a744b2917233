/* One rank: its trace is read once, held against the rules that concern it alone, and condensed. */
#define _POSIX_C_SOURCE 200809L

#include "trace/rank_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const etch_node_ref whole_rank = {ETCH_NO_NODE, {NULL, 0}};

/* ---- growing ------------------------------------------------------------------------------------------- */

#define RESERVE(d, array, number, room)                                                                \
    ((d)->array = etch_reserve((d)->array, (d)->number, &(d)->room, sizeof *(d)->array, &(d)->failed), \
     !(d)->failed)

static bool add_dep(etch_rank_draft *d, uint64_t dep)
{
    if (!RESERVE(d, deps, dep_count, dep_capacity))
        return false;
    d->deps[d->dep_count++] = dep > UINT32_MAX ? UINT32_MAX : (uint32_t)dep;
    return true;
}

/* The place of `value` in a list of the rank's own that grows when it is new. */
static uint32_t local_index(etch_rank_draft *d, etch_number_table *table, uint32_t **list, uint32_t *count,
                            uint32_t *capacity, uint32_t value)
{
    const uint32_t *known = etch_table_get(table, value);
    if (known)
        return *known;
    *list = etch_reserve(*list, *count, capacity, sizeof **list, &d->failed);
    if (d->failed || !etch_table_add(table, value, *count)) {
        d->failed = true;
        return 0;
    }
    (*list)[*count] = value;
    return (*count)++;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void complain_twice(const etch_rank_job *job, const etch_trace_node *node, uint64_t dep)
{
    etch_find(job->findings, ETCH_WARNING, ETCH_E_VERIFY_DEP_TWICE, (etch_node_ref){node->id, node->name},
              "Chakra's own feeder waits for each of them, and for ever",
              "it depends on node %" PRIu64 " twice", dep);
}

static void check_twice(etch_rank_draft *d, const etch_trace_node *node, const uint64_t *deps, uint32_t count)
{
    enum { FEW = 16 };
    if (count <= FEW) {
        for (uint32_t i = 1; i < count; i++)
            for (uint32_t k = 0; k < i; k++)
                if (deps[i] == deps[k]) {
                    complain_twice(d->job, node, deps[i]);
                    return;
                }
        return;
    }
    uint64_t *sorted = malloc(count * sizeof *sorted);
    if (!sorted) {
        d->failed = true;
        return;
    }
    memcpy(sorted, deps, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_u64);
    for (uint32_t i = 1; i < count; i++)
        if (sorted[i] == sorted[i - 1]) {
            complain_twice(d->job, node, sorted[i]);
            break;
        }
    free(sorted);
}

static bool holds(const uint64_t *deps, uint32_t count, uint64_t dep)
{
    for (uint32_t i = 0; i < count; i++)
        if (deps[i] == dep)
            return true;
    return false;
}

static void add_deps(etch_rank_draft *d, const etch_trace_node *node)
{
    const uint32_t data_count = node->data_dep_count;
    check_twice(d, node, node->data_deps, data_count);
    for (uint32_t i = 0; i < data_count; i++)
        add_dep(d, node->data_deps[i]);
    if (node->ctrl_dep_count == 0)
        return;
    check_twice(d, node, node->ctrl_deps, node->ctrl_dep_count);
    d->ctrl_nodes++;
    for (uint32_t i = 0; i < node->ctrl_dep_count; i++)
        if (data_count > 64 || !holds(node->data_deps, data_count, node->ctrl_deps[i]))
            add_dep(d, node->ctrl_deps[i]);
}

static void add_comm(etch_rank_draft *d, const etch_trace_node *node, const etch_node_facts *facts)
{
    etch_rank *rank = d->job->result;
    etch_comm comm = {.size = facts->size,
                      .node = d->node_count,
                      .work = (uint8_t)facts->work,
                      .collective = facts->collective};
    d->runnable = d->runnable && !facts->broken && (facts->group != ETCH_NONE || facts->peer != ETCH_NONE);
    if (facts->work == ETCH_WORK_COLLECTIVE) {
        comm.local = local_index(d, &d->groups, &rank->groups, &rank->group_count, &d->group_capacity,
                                 facts->group == ETCH_NONE ? 0 : facts->group);
    } else {
        comm.local = local_index(d, &d->peers, &rank->peers, &rank->peer_count, &d->peer_capacity,
                                 facts->peer == ETCH_NONE ? 0 : facts->peer);
        comm.message = rank->tag_count;
        rank->tags =
            etch_reserve(rank->tags, rank->tag_count, &d->tag_capacity, sizeof *rank->tags, &d->failed);
        if (!d->failed)
            rank->tags[rank->tag_count++] = facts->tag;
    }
    etch_sketch_note(&d->sketch, node, facts, comm.local);
    if (RESERVE(d, comms, comm_count, comm_capacity))
        d->comms[d->comm_count++] = comm;
}

/* The number that the text begins with, when a dot ends it. */
static uint32_t number_before_dot(const char *text, size_t length)
{
    enum { MOST_DIGITS = 9 };
    uint32_t number = 0;
    size_t at = 0;
    for (; at < length && at < MOST_DIGITS && text[at] >= '0' && text[at] <= '9'; at++)
        number = number * 10 + (uint32_t)(text[at] - '0');
    return at > 0 && at < length && text[at] == '.' ? number : ETCH_NONE;
}

/* "F12.layer3.mlp" and "COMP_NODE.forward.mb12.stage0.layer3.mlp" belong to microbatch 12. */
static uint32_t read_label(etch_trace_text name)
{
    static const char mark[] = {'.', 'm', 'b'};
    if (name.length > 1 && memchr("FRBW", name.at[0], 4)) {
        const uint32_t number = number_before_dot(name.at + 1, name.length - 1);
        if (number != ETCH_NONE)
            return number;
    }
    for (size_t at = 0; at + sizeof mark < name.length; at++)
        if (memcmp(name.at + at, mark, sizeof mark) == 0)
            return number_before_dot(name.at + at + sizeof mark, name.length - at - sizeof mark);
    return ETCH_NONE;
}

static void add_node(etch_rank_draft *d, const etch_trace_node *node)
{
    etch_node_facts facts;
    const etch_rule_context context = etch_rank_context(d->job, d->job->findings);
    if (!RESERVE(d, nodes, node_count, node_capacity))
        return;
    etch_rules_check(&context, node, &facts);
    etch_tensors_add(&d->tensors, node, d->job->findings);
    if (node->id > UINT32_MAX - 1) {
        etch_find(d->job->findings, ETCH_ERROR, ETCH_E_VERIFY_ID_LARGE, (etch_node_ref){node->id, node->name},
                  NULL, "ids are below 2^32");
        d->large_ids = true;
    }
    etch_draft_node *it = &d->nodes[d->node_count];
    *it = (etch_draft_node){
        .id = (uint32_t)node->id, .work = (uint8_t)facts.work, .brief = facts.brief, .value = facts.time};
    d->job->result->frail = d->job->result->frail || facts.frail;
    d->job->result->oversized = d->job->result->oversized || facts.oversized;
    if (d->job->options->seeds > 0)
        it->label = facts.work == ETCH_WORK_COMPUTE ? read_label(node->name) : ETCH_NONE;
    if (facts.work == ETCH_WORK_MEMORY || facts.work == ETCH_WORK_NOTHING || facts.work == ETCH_WORK_COMPUTE)
        it->value = facts.time;
    else
        it->value = d->comm_count;
    add_deps(d, node);
    it->dep_end = d->dep_count;
    if (facts.work >= ETCH_WORK_COLLECTIVE)
        add_comm(d, node, &facts);
    d->job->counts->of[facts.work]++;
    d->dense = d->dense && node->id == d->node_count;
    d->node_count++;
}

/* ---- the file ------------------------------------------------------------------------------------------ */

static void complain_mode(const etch_rank_job *job)
{
    etch_find(job->findings, ETCH_WARNING, ETCH_E_VERIFY_NOT_WRITABLE, whole_rank, NULL,
              "the trace is not writable: ASTRA-sim opens it so");
}

static etch_status check_mode(const etch_rank_job *job, const char *path, etch_trace_error *error)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        snprintf(error->reason, sizeof error->reason, "%s", strerror(errno));
        return ETCH_EIO;
    }
    job->counts->bytes = (uint64_t)info.st_size;
    if ((info.st_mode & S_IWUSR) == 0)
        complain_mode(job);
    return ETCH_OK;
}

static void check_head(const etch_rank_job *job, const etch_trace_metadata *head)
{
    if (head->unknown > 0)
        etch_find(job->findings, ETCH_WARNING, ETCH_E_VERIFY_METADATA, whole_rank, NULL,
                  "the first message has fields that GlobalMetadata does not have");
}

static etch_status read_nodes(etch_rank_draft *d, etch_trace_reader *reader, etch_trace_error *error)
{
    const atomic_int *cancel = d->job->options->cancel;
    const etch_trace_node *node;
    etch_status status;
    while ((status = etch_trace_next(reader, &node, error)) == ETCH_OK && node) {
        add_node(d, node);
        if (d->failed || d->job->findings->out_of_memory || d->tensors.failed)
            return ETCH_ENOMEM;
        if (d->node_count > ETCH_RANK_NODE_LIMIT || d->dep_count > ETCH_RANK_DEP_LIMIT) {
            etch_find(d->job->findings, ETCH_ERROR, ETCH_E_VERIFY_LIMIT, whole_rank, NULL,
                      "the trace has more than %d nodes or %d dependencies", ETCH_RANK_NODE_LIMIT,
                      ETCH_RANK_DEP_LIMIT);
            return ETCH_ELIMIT;
        }
        if (cancel && d->node_count % 4096 == 0 && atomic_load(cancel) != 0)
            return ETCH_ELIMIT;
    }
    return status;
}

static etch_status read_opened(etch_rank_draft *d, etch_trace_reader *reader, etch_trace_error *error)
{
    check_head(d->job, etch_trace_head(reader));
    const etch_status status = read_nodes(d, reader, error);
    if (d->job->set->packed[d->job->rank])
        d->job->counts->bytes = etch_trace_position(reader);
    return status;
}

/* From the disk, message by message. */
static etch_status read_stream(etch_rank_draft *d, const char *path, etch_trace_error *error)
{
    etch_trace_reader *reader;
    etch_status status = etch_trace_open(path, &reader, error);
    if (status == ETCH_OK)
        status = check_mode(d->job, path, error);
    if (status == ETCH_OK)
        status = read_opened(d, reader, error);
    etch_trace_close(reader);
    return status;
}

/* What is on the desk. */
static etch_status read_loaded(etch_rank_draft *d, etch_trace_error *error)
{
    const etch_desk *desk = d->job->desk;
    etch_trace_reader *reader;
    etch_status status = etch_trace_open_bytes(desk->bytes, desk->length, &reader, error);
    if (status != ETCH_OK)
        return status;
    d->job->counts->bytes = desk->length;
    if (!desk->is_writable)
        complain_mode(d->job);
    status = read_opened(d, reader, error);
    etch_trace_close(reader);
    return status;
}

static etch_status read_file(etch_rank_draft *d, const char *path, bool is_loaded)
{
    etch_trace_error error;
    const etch_status status = is_loaded ? read_loaded(d, &error) : read_stream(d, path, &error);
    if (status == ETCH_EIO)
        etch_find(d->job->findings, ETCH_ERROR, ETCH_E_VERIFY_UNREADABLE, whole_rank, NULL,
                  "the trace cannot be read: %s", error.reason);
    if (status == ETCH_EINPUT && error.headless)
        etch_find(d->job->findings, ETCH_ERROR, ETCH_E_VERIFY_METADATA, whole_rank,
                  "readers take the first message for GlobalMetadata and lose the node", "%s", error.reason);
    else if (status == ETCH_EINPUT)
        etch_find(d->job->findings, ETCH_ERROR, ETCH_E_VERIFY_BROKEN, whole_rank, NULL,
                  "the trace is broken at byte %" PRIu64 ": %s", error.offset, error.reason);
    return status;
}

static void check_counts(const etch_rank_draft *d)
{
    if (d->node_count == 0)
        etch_find(d->job->findings, ETCH_ERROR, ETCH_E_VERIFY_EMPTY, whole_rank, NULL,
                  "the trace has no nodes: simulators wait for the rank for ever");
    if (d->node_count > ETCH_MOST_NODES)
        etch_find(d->job->findings, ETCH_WARNING, ETCH_E_VERIFY_MANY_NODES, whole_rank, NULL,
                  "the trace has %" PRIu32 " nodes: Chakra's own feeder can crash above %d", d->node_count,
                  ETCH_MOST_NODES);
    if (d->ctrl_nodes > 0)
        etch_find(d->job->findings, ETCH_WARNING, ETCH_E_VERIFY_CTRL_DEPS, whole_rank,
                  "put every dependency into data_deps",
                  "%" PRIu32 " node%s ctrl_deps, which Chakra's own feeder ignores", d->ctrl_nodes,
                  d->ctrl_nodes == 1 ? " has" : "s have");
}

static void free_draft(etch_rank_draft *d)
{
    free(d->nodes);
    free(d->deps);
    free(d->comms);
    etch_table_free(&d->groups);
    etch_table_free(&d->peers);
    etch_tensors_free(&d->tensors);
    etch_sketch_free(&d->sketch);
}

/* The whole way, of a trace that fits no pattern. Without a fault it is one. */
static etch_status read_rank(const etch_rank_job *job, const char *path, bool is_loaded)
{
    etch_rank_draft d = {.job = job, .dense = true, .runnable = true};
    etch_sketch_begin(&d.sketch, is_loaded ? job->desk->bytes : NULL);
    etch_status status = read_file(&d, path, is_loaded);
    if (status == ETCH_OK) {
        check_counts(&d);
        status = d.large_ids ? ETCH_OK : etch_rank_condense(&d);
    }
    job->counts->nodes = d.node_count;
    if (status == ETCH_OK && job->result->program && job->findings->count == 0 && job->desk->is_writable)
        etch_pattern_keep(job->patterns, &d.sketch, job, job->desk->length);
    free_draft(&d);
    return status == ETCH_EINPUT ? ETCH_OK : status;
}

etch_status etch_rank_read(const etch_rank_job *job)
{
    char path[ETCH_RANK_PATH];
    bool is_known = false;
    if (job->options->cancel && atomic_load(job->options->cancel) != 0)
        return ETCH_ELIMIT;
    if (!etch_rank_path(job->set, job->rank, path, sizeof path)) {
        etch_find(job->findings, ETCH_ERROR, ETCH_E_VERIFY_UNREADABLE, whole_rank, NULL,
                  "the path is too long");
        return ETCH_EIO;
    }
    const bool is_loaded = etch_desk_load(job->desk, path, job->set->packed[job->rank]);
    etch_status status = ETCH_OK;
    if (is_loaded && job->desk->is_writable)
        status = etch_pattern_match(job->patterns, job, job->desk, &is_known);
    return status == ETCH_OK && !is_known ? read_rank(job, path, is_loaded) : status;
}
