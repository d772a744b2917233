/* Traces as a job that can be run: programs of ranks, each once, and groups in families. */
#include "session/api/simulate_int.h"

#include <stdlib.h>
#include <string.h>

#include "trace/trace.h"

typedef struct loading {
    etch_session *session;
    etch_arena *arena;
    const etch_trace_loader *loader;
    etch_trace_folder folder;
    etch_job *job;
    ETCH_VEC(etch_group_family) families;
    /* by group: its family */
    uint32_t *family_of;
    ETCH_VEC(etch_class_program) programs;
    ETCH_VEC(uint64_t) hashes;
    ETCH_VEC(etch_workload) workloads;
    uint32_t rank;
    bool uses_host;
} loading;

/* ---- groups -------------------------------------------------------------------------------------------- */

/* By the ids of the first group and of the last. */
static void name_families(loading *l)
{
    uint32_t *last = ETCH_NEW_ARRAY(l->arena, l->families.count, uint32_t);
    for (uint32_t g = 0; g < l->folder.group_count; g++)
        last[l->family_of[g]] = l->folder.groups[g].id;
    for (uint32_t f = 0; f < l->families.count; f++) {
        etch_group_family *family = &l->families.at[f];
        family->label = family->count > 1 ? etch_text(l->arena, "groups %u-%u", family->first_id, last[f])
                        : family->first_id == 0 ? "all ranks"
                                                : etch_text(l->arena, "group %u", family->first_id);
    }
}

/* Groups of equal size that share no rank are a family. */
static void find_families(loading *l)
{
    ETCH_VEC(bool *) taken = {0};
    const uint32_t ranks = l->folder.rank_count;
    uint32_t **members = ETCH_NEW_ARRAY(l->arena, l->folder.group_count, uint32_t *);
    l->family_of = ETCH_NEW_ARRAY(l->arena, l->folder.group_count, uint32_t);
    for (uint32_t g = 0; g < l->folder.group_count; g++) {
        const etch_trace_member_list *group = &l->folder.groups[g];
        uint32_t f = 0;
        for (; f < l->families.count; f++) {
            bool fits = l->families.at[f].size == group->count;
            for (uint32_t k = 0; fits && k < group->count; k++)
                fits = !taken.at[f][group->ranks[k]];
            if (fits)
                break;
        }
        if (f == l->families.count) {
            members[f] = ETCH_NEW_ARRAY(l->arena, ranks, uint32_t);
            ETCH_PUSH(l->arena, &taken, ETCH_NEW_ARRAY(l->arena, ranks, bool));
            ETCH_PUSH(l->arena, &l->families,
                      ((etch_group_family){.first_id = group->id, .size = group->count}));
        }
        etch_group_family *family = &l->families.at[f];
        memcpy(members[f] + (size_t)family->count++ * group->count, group->ranks,
               group->count * sizeof *group->ranks);
        family->members = members[f];
        for (uint32_t k = 0; k < group->count; k++)
            taken.at[f][group->ranks[k]] = true;
        l->family_of[g] = f;
    }
    name_families(l);
}

/* ---- one rank ------------------------------------------------------------------------------------------ */

static bool refuse(const loading *l, const etch_loaded_node *node, const char *why)
{
    etch_error(l->session->diags, ETCH_E_MACHINE_UNFIT, (etch_span){0, 0}, "rank %u, node %llu: %s",
               (unsigned)l->rank, (unsigned long long)node->id, why);
    return false;
}

static int by_id(const void *a, const void *b)
{
    return etch_order(*(const uint64_t *)a, ((const etch_loaded_node *)b)->id);
}

/* The place of a node that it waits for; UINT32_MAX: it does not come before. */
static uint32_t place_of(const etch_loaded_rank *rank, uint32_t before, uint64_t id)
{
    const etch_loaded_node *found =
        before ? bsearch(&id, rank->nodes, before, sizeof *rank->nodes, by_id) : NULL;
    return found ? (uint32_t)(found - rank->nodes) : UINT32_MAX;
}

static uint32_t workload_of(loading *l, const etch_loaded_node *node)
{
    const bool measured = node->work == ETCH_LOADED_NOTHING || node->microseconds > 0;
    const uint64_t lasts = node->microseconds * 1000000;
    const uint64_t flop = measured ? 0 : node->flop;
    for (uint32_t i = l->workloads.count; i-- > 0;) {
        const etch_workload *w = &l->workloads.at[i];
        if (w->is_measured == measured && w->lasts == lasts && w->flop == flop)
            return i;
    }
    ETCH_PUSH(l->arena, &l->workloads,
              ((etch_workload){.kind = ETCH_PRODUCT_PLAIN,
                               .dtype = etch_dtype_name(ETCH_BF16),
                               .flop = flop,
                               .is_measured = measured,
                               .lasts = lasts}));
    return l->workloads.count - 1;
}

/* The peer's index, as it lies from the rank. */
static uint16_t peer_of(const loading *l, etch_peer *peers, uint32_t *count, uint32_t peer)
{
    const int64_t difference = (int64_t)peer - (int64_t)l->rank;
    uint32_t i = 0;
    while (i < *count && peers[i].offset != difference)
        i++;
    if (i == *count && i < UINT16_MAX)
        peers[(*count)++] = (etch_peer){.offset = difference};
    return (uint16_t)i;
}

static bool fill_node(loading *l, const etch_loaded_node *from, etch_peer *peers, uint32_t *peer_count,
                      etch_node *to)
{
    to->bytes = from->bytes;
    switch (from->work) {
    case ETCH_LOADED_LOADS:
    case ETCH_LOADED_STORES:
        to->type = from->work == ETCH_LOADED_LOADS ? ETCH_NODE_LOAD : ETCH_NODE_STORE;
        l->uses_host = true;
        return true;
    case ETCH_LOADED_NOTHING:
    case ETCH_LOADED_COMPUTES:
        if (from->microseconds > INT64_MAX / 1000000)
            return refuse(l, from, "it takes longer than can be counted in picoseconds");
        to->type = ETCH_NODE_COMP;
        to->flop = from->flop;
        to->workload = workload_of(l, from);
        return true;
    case ETCH_LOADED_COLLECTIVE:
        to->type = ETCH_NODE_COLL;
        to->collective = from->collective;
        if (from->collective != ETCH_COMM_ALL_REDUCE && from->collective != ETCH_COMM_ALL_GATHER &&
            from->collective != ETCH_COMM_ALL_TO_ALL && from->collective != ETCH_COMM_REDUCE_SCATTER)
            return refuse(l, from, "there is no time of this collective");
        to->family = (uint16_t)l->family_of[from->group];
        return true;
    case ETCH_LOADED_SENDS:
    case ETCH_LOADED_RECEIVES:
        to->type = from->work == ETCH_LOADED_SENDS ? ETCH_NODE_SEND : ETCH_NODE_RECV;
        to->tag = (uint32_t)from->tag;
        to->peer = peer_of(l, peers, peer_count, from->peer);
        return true;
    }
    return false;
}

static int by_message(const void *a, const void *b)
{
    const etch_node *x = a, *y = b;
    return x->type != y->type   ? etch_order(x->type, y->type)
           : x->peer != y->peer ? etch_order(x->peer, y->peer)
                                : etch_order(x->tag, y->tag);
}

/* A run knows messages by their tags. */
static bool tags_differ(const loading *l, etch_arena *scratch, const etch_class_program *p)
{
    ETCH_VEC(etch_node) messages = {0};
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].type == ETCH_NODE_SEND || p->nodes[i].type == ETCH_NODE_RECV)
            ETCH_PUSH(scratch, &messages, p->nodes[i]);
    if (messages.count > 1)
        qsort(messages.at, messages.count, sizeof *messages.at, by_message);
    for (uint32_t i = 1; i < messages.count; i++)
        if (by_message(&messages.at[i - 1], &messages.at[i]) == 0) {
            etch_error(l->session->diags, ETCH_E_MACHINE_UNFIT, (etch_span){0, 0},
                       "rank %u has two messages with tag %u to or from rank %lld: a run cannot tell them "
                       "apart",
                       (unsigned)l->rank, messages.at[i].tag,
                       (long long)(l->rank + p->peers[messages.at[i].peer].offset));
            return false;
        }
    return true;
}

/* False: the rank does what is not run, which has been said. */
static bool make_program(loading *l, etch_arena *scratch, const etch_loaded_rank *rank,
                         etch_class_program *out)
{
    etch_node *nodes = ETCH_NEW_ARRAY(scratch, rank->node_count, etch_node);
    etch_peer *peers = ETCH_NEW_ARRAY(scratch, l->folder.rank_count, etch_peer);
    ETCH_VEC(uint32_t) deps = {0};
    uint32_t peer_count = 0;
    for (uint32_t i = 0; i < rank->node_count; i++) {
        const etch_loaded_node *node = &rank->nodes[i];
        if (!fill_node(l, node, peers, &peer_count, &nodes[i]))
            return false;
        nodes[i].first_dep = deps.count;
        for (uint32_t k = 0; k < node->wait_count; k++) {
            const uint32_t at = place_of(rank, i, node->waits[k]);
            if (at == UINT32_MAX)
                return refuse(l, node,
                              "it waits for a node with a higher id: a run issues nodes by their ids");
            ETCH_PUSH(scratch, &deps, at);
        }
        nodes[i].dep_count = deps.count - nodes[i].first_dep;
    }
    *out = (etch_class_program){.nodes = nodes,
                                .node_count = rank->node_count,
                                .deps = deps.at,
                                .names = "",
                                .peers = peers,
                                .peer_count = peer_count};
    return tags_differ(l, scratch, out);
}

/* ---- programs ------------------------------------------------------------------------------------------ */

static uint32_t dep_count(const etch_class_program *p)
{
    const etch_node *last = p->node_count ? &p->nodes[p->node_count - 1] : NULL;
    return last ? last->first_dep + last->dep_count : 0;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of(const etch_class_program *p)
{
    uint64_t hash = p->node_count;
    for (uint32_t i = 0; i < p->node_count; i++) {
        const etch_node *n = &p->nodes[i];
        hash = mix(mix(mix(hash, n->bytes), n->tag),
                   n->type | (uint64_t)n->peer << 8 | (uint64_t)n->family << 32);
    }
    return hash;
}

static bool is_same_node(const etch_node *a, const etch_node *b)
{
    return a->flop == b->flop && a->bytes == b->bytes && a->first_dep == b->first_dep &&
           a->dep_count == b->dep_count && a->tag == b->tag && a->peer == b->peer && a->family == b->family &&
           a->type == b->type && a->collective == b->collective;
}

static bool is_same(const etch_class_program *a, const etch_class_program *b)
{
    if (a->node_count != b->node_count || a->peer_count != b->peer_count || dep_count(a) != dep_count(b))
        return false;
    for (uint32_t i = 0; i < a->node_count; i++)
        if (!is_same_node(&a->nodes[i], &b->nodes[i]))
            return false;
    return (dep_count(a) == 0 || memcmp(a->deps, b->deps, dep_count(a) * sizeof *a->deps) == 0) &&
           (a->peer_count == 0 || memcmp(a->peers, b->peers, a->peer_count * sizeof *a->peers) == 0);
}

static void *copied(etch_arena *arena, const void *from, size_t bytes)
{
    void *to = etch_alloc(arena, bytes ? bytes : 1);
    if (bytes)
        memcpy(to, from, bytes);
    return to;
}

/* The number of the program, which is kept if it is new. */
static uint32_t number_of(loading *l, const etch_class_program *p)
{
    const uint64_t hash = hash_of(p);
    for (uint32_t i = 0; i < l->programs.count; i++)
        if (l->hashes.at[i] == hash && is_same(&l->programs.at[i], p))
            return i;
    etch_class_program kept = *p;
    kept.nodes = copied(l->arena, p->nodes, p->node_count * sizeof *p->nodes);
    kept.deps = copied(l->arena, p->deps, dep_count(p) * sizeof *p->deps);
    kept.peers = copied(l->arena, p->peers, p->peer_count * sizeof *p->peers);
    ETCH_PUSH(l->arena, &l->programs, kept);
    ETCH_PUSH(l->arena, &l->hashes, hash);
    return l->programs.count - 1;
}

static etch_status load_rank(loading *l, uint32_t *class)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(l->arena));
    etch_loaded_rank rank;
    etch_class_program program;
    etch_status status = etch_trace_load(scratch, l->loader, l->rank, l->session->diags, &rank);
    if (status == ETCH_OK && !make_program(l, scratch, &rank, &program))
        status = ETCH_EINPUT;
    if (status == ETCH_OK)
        *class = number_of(l, &program);
    etch_arena_free(scratch);
    return status;
}

/* ---- the job ------------------------------------------------------------------------------------------- */

static void fill_job(loading *l, uint32_t *class_of)
{
    etch_stage_total *stages = ETCH_NEW_ARRAY(l->arena, l->programs.count, etch_stage_total);
    for (uint32_t p = 0; p < l->programs.count; p++)
        stages[p].stage = p;
    const char *slash = strrchr(l->folder.name, '/');
    *l->job = (etch_job){.rank_count = l->folder.rank_count,
                         .programs = l->programs.at,
                         .program_count = l->programs.count,
                         .class_of = class_of,
                         .families = l->families.at,
                         .family_count = l->families.count,
                         .workloads = l->workloads.at,
                         .workload_count = l->workloads.count,
                         .stages = stages,
                         .stage_count = l->programs.count,
                         .work_share_count = 1,
                         .uses_host = l->uses_host,
                         .model = etch_copy_string(l->arena, slash ? slash + 1 : l->folder.name),
                         .message_label = "messages"};
}

etch_status etch_traces_job(etch_session *session, const char *path, const char *groups,
                            etch_protocol protocol, const etch_job **job)
{
    etch_trace_loader *loader;
    loading l = {.session = session, .arena = session->arena, .job = ETCH_NEW(session->arena, etch_job)};
    const etch_verify_options checked = {
        .path = path, .groups = groups, .threads = 1, .protocol = protocol, .cancel = &session->cancel};
    etch_verify_result verdict;
    etch_status status = etch_verify(session->arena, &checked, session->diags, &verdict);
    if (status == ETCH_OK || status == ETCH_EUNKNOWN)
        status = etch_trace_loader_open(l.arena, path, groups, session->diags, &loader, &l.folder);
    if (status != ETCH_OK)
        return status;
    l.loader = loader;
    find_families(&l);
    uint32_t *class_of = ETCH_NEW_ARRAY(l.arena, l.folder.rank_count, uint32_t);
    for (l.rank = 0; l.rank < l.folder.rank_count && status == ETCH_OK; l.rank++)
        status = load_rank(&l, &class_of[l.rank]);
    if (status != ETCH_OK)
        return status;
    fill_job(&l, class_of);
    *job = l.job;
    return ETCH_OK;
}
