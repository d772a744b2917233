/* What is known of a rank: where its trace is, what that calls a node, what rules are asked with. */
#define _POSIX_C_SOURCE 200809L

#include "trace/rank_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool etch_rank_path(const etch_trace_set *set, uint32_t rank, char *path, size_t size)
{
    const int length = snprintf(path, size, "%s.%" PRIu32 "%s", set->prefix, rank,
                                set->packed[rank] ? ETCH_CHAKRA_SUFFIX_ZSTD : ETCH_CHAKRA_SUFFIX);
    return length > 0 && (size_t)length < size;
}

etch_node_ref etch_rank_node(const etch_trace_set *set, uint32_t rank, uint64_t id, etch_named_node *node)
{
    char path[ETCH_RANK_PATH];
    etch_trace_reader *reader = NULL;
    etch_trace_error error;
    const etch_trace_node *it;
    node->ref = (etch_node_ref){id, {node->name, 0}};
    if (!etch_rank_path(set, rank, path, sizeof path) || etch_trace_open(path, &reader, &error) != ETCH_OK)
        return node->ref;
    while (etch_trace_next(reader, &it, &error) == ETCH_OK && it)
        if (it->id == id) {
            node->ref.name.length = it->name.length < sizeof node->name ? it->name.length : sizeof node->name;
            if (node->ref.name.length > 0)
                memcpy(node->name, it->name.at, node->ref.name.length);
            break;
        }
    etch_trace_close(reader);
    return node->ref;
}

etch_rule_context etch_rank_context(const etch_rank_job *job, etch_findings *findings)
{
    return (etch_rule_context){.groups = job->groups,
                               .set = job->set,
                               .rank = job->rank,
                               .protocol = job->options->protocol,
                               .rank_count = job->set->rank_count,
                               .findings = findings};
}

void etch_rank_free(etch_rank *rank)
{
    free(rank->groups);
    free(rank->peers);
    if (!rank->shares_tags)
        free(rank->tags);
    *rank = (etch_rank){0};
}
