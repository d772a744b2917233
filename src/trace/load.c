/* Traces as a run of them needs them: what each node does, and for which it waits, without names. */
#include <stdlib.h>

#include "trace/verify_int.h"

struct etch_trace_loader {
    etch_trace_set set;
    etch_trace_groups groups;
};

static const etch_trace_member_list *lists_of(etch_arena *arena, const etch_trace_loader *loader)
{
    etch_trace_member_list *lists = ETCH_NEW_ARRAY(arena, loader->groups.count, etch_trace_member_list);
    for (uint32_t i = 0; i < loader->groups.count; i++) {
        const etch_trace_group *group = &loader->groups.at[i];
        uint32_t *all = group->ranks ? NULL : ETCH_NEW_ARRAY(arena, group->count, uint32_t);
        for (uint32_t r = 0; all && r < group->count; r++)
            all[r] = r;
        lists[i] = (etch_trace_member_list){group->id, group->count, all ? all : group->ranks};
    }
    return lists;
}

etch_status etch_trace_loader_open(etch_arena *arena, const char *path, const char *groups, etch_diags *diags,
                                   etch_trace_loader **out, etch_trace_folder *folder)
{
    const etch_verify_options options = {.path = path, .groups = groups};
    etch_trace_loader *loader = ETCH_NEW(arena, etch_trace_loader);
    etch_status status = etch_trace_set_find(arena, &options, diags, &loader->set);
    if (status == ETCH_OK)
        status = etch_trace_groups_read(arena, &loader->set, diags, &loader->groups);
    *out = status == ETCH_OK ? loader : NULL;
    *folder = (etch_trace_folder){0};
    if (status != ETCH_OK)
        return status;
    *folder = (etch_trace_folder){.name = loader->set.prefix,
                                  .rank_count = loader->set.rank_count,
                                  .groups = lists_of(arena, loader),
                                  .group_count = loader->groups.count};
    return ETCH_OK;
}

/* ---- one rank ------------------------------------------------------------------------------------------ */

typedef ETCH_VEC(etch_loaded_node) nodes;

static uint64_t integer_of(const etch_trace_node *node, etch_chakra_attribute attribute)
{
    for (uint32_t i = 0; i < node->attr_count; i++)
        if (node->attrs[i].known == attribute && node->attrs[i].count == 1)
            return (uint64_t)node->attrs[i].values[0].integer;
    return 0;
}

static etch_loaded_work work_of(const etch_trace_node *node, etch_work work)
{
    switch (work) {
    case ETCH_WORK_NOTHING:
        return ETCH_LOADED_NOTHING;
    case ETCH_WORK_COMPUTE:
        return ETCH_LOADED_COMPUTES;
    case ETCH_WORK_COLLECTIVE:
        return ETCH_LOADED_COLLECTIVE;
    case ETCH_WORK_SEND:
        return ETCH_LOADED_SENDS;
    case ETCH_WORK_RECEIVE:
        return ETCH_LOADED_RECEIVES;
    case ETCH_WORK_MEMORY:
        break;
    }
    return node->type == ETCH_TYPE_MEM_LOAD ? ETCH_LOADED_LOADS : ETCH_LOADED_STORES;
}

static int by_number(const void *a, const void *b)
{
    return etch_order(*(const uint64_t *)a, *(const uint64_t *)b);
}

static int by_id(const void *a, const void *b)
{
    return etch_order(((const etch_loaded_node *)a)->id, ((const etch_loaded_node *)b)->id);
}

static void add_node(etch_arena *arena, const etch_rule_context *context, const etch_trace_node *node,
                     nodes *out)
{
    etch_node_facts facts = {0};
    etch_rules_check(context, node, &facts);
    uint64_t *waits = ETCH_NEW_ARRAY(arena, (size_t)node->data_dep_count + node->ctrl_dep_count, uint64_t);
    uint32_t count = 0, left = 0;
    for (uint32_t i = 0; i < node->data_dep_count; i++)
        waits[count++] = node->data_deps[i];
    for (uint32_t i = 0; i < node->ctrl_dep_count; i++)
        waits[count++] = node->ctrl_deps[i];
    if (count > 1)
        qsort(waits, count, sizeof *waits, by_number);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || waits[i] != waits[i - 1])
            waits[left++] = waits[i];
    const bool computes = facts.work == ETCH_WORK_COMPUTE;
    const etch_loaded_node loaded = {.id = node->id,
                                     .work = work_of(node, facts.work),
                                     .collective = facts.collective,
                                     .flop = computes ? integer_of(node, ETCH_ATTRIBUTE_NUM_OPS) : 0,
                                     .bytes =
                                         computes ? integer_of(node, ETCH_ATTRIBUTE_TENSOR_SIZE) : facts.size,
                                     .microseconds = computes ? node->duration : 0,
                                     .group = facts.group,
                                     .peer = facts.peer,
                                     .tag = facts.tag,
                                     .waits = waits,
                                     .wait_count = left};
    ETCH_PUSH(arena, out, loaded);
}

etch_status etch_trace_load(etch_arena *arena, const etch_trace_loader *loader, uint32_t rank,
                            etch_diags *diags, etch_loaded_rank *out)
{
    etch_findings findings = {0};
    const etch_rule_context context = {.groups = &loader->groups,
                                       .set = &loader->set,
                                       .rank = rank,
                                       .rank_count = loader->set.rank_count,
                                       .protocol = ETCH_PROTOCOL_RENDEZVOUS,
                                       .findings = &findings};
    const char *path = etch_text(arena, "%s.%u%s", loader->set.prefix, (unsigned)rank,
                                 loader->set.packed[rank] ? ETCH_CHAKRA_SUFFIX_ZSTD : ETCH_CHAKRA_SUFFIX);
    etch_trace_reader *reader;
    etch_trace_error error;
    const etch_trace_node *node = NULL;
    nodes all = {0};
    etch_status status = etch_trace_open(path, &reader, &error);
    while (status == ETCH_OK && (status = etch_trace_next(reader, &node, &error)) == ETCH_OK && node)
        add_node(arena, &context, node, &all);
    etch_trace_close(reader);
    etch_findings_free(&findings);
    if (status == ETCH_EINPUT || status == ETCH_EIO)
        etch_error(diags, ETCH_E_VERIFY_UNREADABLE, (etch_span){0, 0}, "'%s' cannot be read: %s", path,
                   error.reason);
    if (all.count > 1)
        qsort(all.at, all.count, sizeof *all.at, by_id);
    *out = (etch_loaded_rank){all.at, all.count};
    return status;
}
