/* From a rank as its trace has it to its program: nodes in the order of their ids, dependencies that
 * exist, and whether these order what the rank communicates. */
#include "trace/rank_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CYCLE_SHOWN = 6, SEARCH_STEPS = 1 << 24 };

typedef struct condensing {
    etch_rank_draft *d;
    /* of nodes */
    uint32_t count;
    /* in the file, by index; NULL when they are the indexes */
    uint32_t *positions;
    /* by position; NULL likewise */
    uint32_t *indexes;
    /* by index; NULL when they are the indexes */
    uint32_t *ids;
    /* indexes, parents before children; NULL when indexes are in such an order */
    uint32_t *topological;
    /* dependencies on nodes of larger or equal index */
    uint32_t backward;
    etch_rank_program *p;
} condensing;

static uint32_t position_of(const condensing *c, uint32_t index)
{
    return c->positions ? c->positions[index] : index;
}

static uint32_t index_at(const condensing *c, uint32_t position)
{
    return c->indexes ? c->indexes[position] : position;
}

static uint32_t id_of(const condensing *c, uint32_t index)
{
    return c->ids ? c->ids[index] : index;
}

static uint32_t first_dep(const condensing *c, uint32_t position)
{
    return position > 0 ? c->d->nodes[position - 1].dep_end : 0;
}

/* ---- complaints ---------------------------------------------------------------------------------------- */

static etch_node_ref name_node(const condensing *c, uint32_t index, etch_named_node *node)
{
    return etch_rank_node(c->d->job->set, c->d->job->rank, id_of(c, index), node);
}

static bool keeps(const condensing *c, etch_severity severity, etch_code code)
{
    return etch_findings_keep(c->d->job->findings, severity, code);
}

/* ---- ids ----------------------------------------------------------------------------------------------- */

typedef struct id_place {
    uint32_t id, position;
} id_place;

static int by_id(const void *a, const void *b)
{
    const id_place *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

static bool check_ids(condensing *c, const id_place *places)
{
    bool unique = true;
    for (uint32_t i = 1; i < c->count; i++) {
        if (places[i].id != places[i - 1].id)
            continue;
        unique = false;
        etch_named_node node;
        if (keeps(c, ETCH_ERROR, ETCH_E_VERIFY_ID_TWICE))
            etch_find(c->d->job->findings, ETCH_ERROR, ETCH_E_VERIFY_ID_TWICE, name_node(c, i, &node), NULL,
                      "two nodes have the id %" PRIu32 ": readers keep one of them", places[i].id);
    }
    if (unique && places[c->count - 1].id != c->count - 1)
        etch_find(c->d->job->findings, ETCH_REMARK, ETCH_E_VERIFY_ID_GAPS,
                  (etch_node_ref){ETCH_NO_NODE, {NULL, 0}}, "number the nodes of a rank 0, 1, 2, ...",
                  "ids have gaps: %" PRIu32 " nodes have ids up to %" PRIu32, c->count,
                  places[c->count - 1].id);
    return unique;
}

/* Orders nodes by their ids. */
static etch_status order_ids(condensing *c)
{
    if (c->d->dense || c->count == 0)
        return ETCH_OK;
    id_place *places = malloc(c->count * sizeof *places);
    c->positions = malloc(c->count * sizeof *c->positions);
    c->indexes = malloc(c->count * sizeof *c->indexes);
    c->ids = malloc(c->count * sizeof *c->ids);
    if (!places || !c->positions || !c->indexes || !c->ids) {
        free(places);
        return ETCH_ENOMEM;
    }
    for (uint32_t i = 0; i < c->count; i++)
        places[i] = (id_place){c->d->nodes[i].id, i};
    qsort(places, c->count, sizeof *places, by_id);
    for (uint32_t i = 0; i < c->count; i++) {
        c->positions[i] = places[i].position;
        c->indexes[places[i].position] = i;
        c->ids[i] = places[i].id;
    }
    const bool unique = check_ids(c, places);
    free(places);
    return unique ? ETCH_OK : ETCH_EINPUT;
}

static uint32_t find_id(const condensing *c, uint32_t id)
{
    if (!c->ids)
        return id < c->count ? id : ETCH_NONE;
    uint32_t low = 0, high = c->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (c->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->count && c->ids[low] == id ? low : ETCH_NONE;
}

/* ---- dependencies -------------------------------------------------------------------------------------- */

static void complain_dangling(condensing *c, uint32_t index, uint32_t id)
{
    etch_named_node node;
    if (keeps(c, ETCH_ERROR, ETCH_E_VERIFY_DEP_DANGLING))
        etch_find(c->d->job->findings, ETCH_ERROR, ETCH_E_VERIFY_DEP_DANGLING, name_node(c, index, &node),
                  "ASTRA-sim's feeder ends on it", "it depends on node %" PRIu32 ", which does not exist",
                  id);
}

static void complain_order(condensing *c, uint32_t index, uint32_t parent)
{
    etch_named_node node;
    if (keeps(c, ETCH_REMARK, ETCH_E_VERIFY_DEP_ORDER))
        etch_find(c->d->job->findings, ETCH_REMARK, ETCH_E_VERIFY_DEP_ORDER, name_node(c, index, &node),
                  "write parents before their children",
                  "it stands in the file before node %" PRIu32 ", which it depends on", id_of(c, parent));
}

/* Puts indexes in the place of ids. */
static void resolve_deps(condensing *c)
{
    etch_rank_draft *d = c->d;
    for (uint32_t position = 0; position < c->count; position++) {
        const uint32_t index = index_at(c, position);
        for (uint32_t i = first_dep(c, position); i < d->nodes[position].dep_end; i++) {
            const uint32_t parent = find_id(c, d->deps[i]);
            if (parent == ETCH_NONE) {
                complain_dangling(c, index, d->deps[i]);
                d->runnable = false;
            } else {
                c->backward += parent >= index;
                if (position_of(c, parent) > position)
                    complain_order(c, index, parent);
            }
            d->deps[i] = parent;
        }
    }
}

static void link_children(condensing *c)
{
    etch_rank_program *p = c->p;
    const etch_rank_draft *d = c->d;
    for (uint32_t index = 0; index < c->count; index++) {
        const uint32_t position = position_of(c, index);
        for (uint32_t i = first_dep(c, position); i < d->nodes[position].dep_end; i++)
            if (d->deps[i] != ETCH_NONE) {
                p->waits[index]++;
                p->first_child[d->deps[i] + 1]++;
            }
    }
    for (uint32_t index = 0; index < c->count; index++)
        p->first_child[index + 1] += p->first_child[index];
    /* Filling moves the begin of each list to its end, which is where the next one begins. */
    for (uint32_t index = 0; index < c->count; index++) {
        const uint32_t position = position_of(c, index);
        for (uint32_t i = first_dep(c, position); i < d->nodes[position].dep_end; i++)
            if (d->deps[i] != ETCH_NONE)
                p->children[p->first_child[d->deps[i]]++] = index;
    }
    memmove(p->first_child + 1, p->first_child, c->count * sizeof *p->first_child);
    p->first_child[0] = 0;
}

/* Simulators number the collectives of a rank that are of no numbered group one after the other. */
static void count_unnumbered(const condensing *c)
{
    const etch_rank *rank = c->d->job->result;
    uint32_t count = 0;
    for (uint32_t index = 0; index < c->count; index++) {
        etch_comm *comm =
            c->p->work[index] == ETCH_WORK_COLLECTIVE ? &c->p->comms[c->p->values[index]] : NULL;
        if (comm && c->d->job->groups->at[rank->groups[comm->local]].id == 0)
            comm->message = ++count;
    }
}

static etch_status make_program(condensing *c)
{
    const etch_rank_draft *d = c->d;
    uint32_t edges = 0;
    for (uint32_t i = 0; i < d->dep_count; i++)
        edges += d->deps[i] != ETCH_NONE;
    etch_rank_program *p =
        etch_program_new(c->count, edges, d->comm_count, c->ids != NULL, d->job->options->seeds > 0);
    if (!p)
        return ETCH_ENOMEM;
    c->p = p;
    for (uint32_t index = 0; index < c->count; index++) {
        const etch_draft_node *node = &d->nodes[position_of(c, index)];
        p->work[index] = node->work;
        p->values[index] = node->value;
        if (p->ids)
            p->ids[index] = c->ids[index];
        if (p->labels)
            p->labels[index] = node->label;
    }
    for (uint32_t i = 0; i < d->comm_count; i++) {
        p->comms[i] = d->comms[i];
        p->comms[i].node = index_at(c, d->comms[i].node);
    }
    if (d->job->set->dimension_count > 0)
        count_unnumbered(c);
    link_children(c);
    return ETCH_OK;
}

/* ---- circles ------------------------------------------------------------------------------------------- */

/* A parent of `index` that waits for ever, too. */
static uint32_t waiting_parent(const condensing *c, const uint32_t *pending, uint32_t index)
{
    const uint32_t position = position_of(c, index);
    for (uint32_t i = first_dep(c, position); i < c->d->nodes[position].dep_end; i++) {
        const uint32_t parent = c->d->deps[i];
        if (parent != ETCH_NONE && pending[parent] > 0)
            return parent;
    }
    return ETCH_NONE;
}

/* Following such parents from any such node leads into a circle: to a node that has been passed, and is
 * marked. */
static void complain_cycle(condensing *c, uint32_t *pending, uint32_t stuck)
{
    char text[CYCLE_SHOWN * 16] = "";
    size_t used = 0;
    uint32_t at = 0, length = 0;
    etch_named_node node;
    while (pending[at] == 0)
        at++;
    while (pending[at] != ETCH_NONE) {
        pending[at] = ETCH_NONE;
        at = waiting_parent(c, pending, at);
    }
    const uint32_t first = at;
    do {
        at = waiting_parent(c, pending, at);
        if (length++ < CYCLE_SHOWN)
            used += (size_t)snprintf(text + used, sizeof text - used, " -> %" PRIu32, id_of(c, at));
    } while (at != first);
    etch_find(c->d->job->findings, ETCH_ERROR, ETCH_E_VERIFY_DEP_CYCLE, name_node(c, first, &node),
              "readers leave such nodes out without a word",
              "it depends on itself, through %" PRIu32 " node%s:%s%s; %" PRIu32 " node%s", length,
              length == 1 ? "" : "s", text, length > CYCLE_SHOWN ? " ..." : "", stuck,
              stuck == 1 ? " never runs" : "s never run");
}

/* Parents before children. ETCH_EINPUT when there is no such order. */
static etch_status order_nodes(condensing *c)
{
    const etch_rank_program *p = c->p;
    uint32_t done = 0, ordered = 0;
    if (c->backward == 0)
        return ETCH_OK;
    uint32_t *pending = malloc(c->count * sizeof *pending);
    c->topological = malloc(c->count * sizeof *c->topological);
    if (!pending || !c->topological) {
        free(pending);
        return ETCH_ENOMEM;
    }
    memcpy(pending, p->waits, c->count * sizeof *pending);
    for (uint32_t i = 0; i < c->count; i++)
        if (pending[i] == 0)
            c->topological[ordered++] = i;
    for (; done < ordered; done++) {
        const uint32_t at = c->topological[done];
        for (uint32_t i = p->first_child[at]; i < p->first_child[at + 1]; i++)
            if (--pending[p->children[i]] == 0)
                c->topological[ordered++] = p->children[i];
    }
    if (ordered < c->count)
        complain_cycle(c, pending, c->count - ordered);
    free(pending);
    return ordered < c->count ? ETCH_EINPUT : ETCH_OK;
}

/* ---- what depends on the machine ----------------------------------------------------------------------- */

/* The computation that a rank begins with: the one of the smallest id that waits for nothing. */
static void check_start(condensing *c)
{
    const etch_rank_program *p = c->p;
    uint32_t at = 0;
    while (at < c->count && (p->waits[at] > 0 || p->work[at] != ETCH_WORK_COMPUTE))
        at++;
    if (at == c->count || !c->d->nodes[position_of(c, at)].brief)
        return;
    etch_named_node node;
    c->d->job->result->frail = true;
    etch_find(c->d->job->findings, ETCH_WARNING, ETCH_E_VERIFY_BRIEF, name_node(c, at, &node),
              "let the first computation of a rank move 32768 bytes",
              "the rank begins with it, and ASTRA-sim ends when it takes less than 1 ns");
}

static void check_passed_over(condensing *c)
{
    const etch_rank_program *p = c->p;
    for (uint32_t at = 0; at < c->count; at++) {
        if (p->work[at] != ETCH_WORK_NOTHING || p->first_child[at] == p->first_child[at + 1])
            continue;
        etch_named_node node;
        c->d->job->result->ordered = false;
        if (keeps(c, ETCH_WARNING, ETCH_E_VERIFY_PASSED_OVER))
            etch_find(c->d->job->findings, ETCH_WARNING, ETCH_E_VERIFY_PASSED_OVER, name_node(c, at, &node),
                      "let nothing depend on it",
                      "nodes depend on it, and begin only when something else of the rank ends");
    }
}

/* ---- order of communication ---------------------------------------------------------------------------- */

/* Memory nodes take the slot as well, and end by themselves: nobody waits for their turn. */
static bool is_ordered(uint8_t work)
{
    return work == ETCH_WORK_COLLECTIVE || work == ETCH_WORK_SEND;
}

static void complain_unordered(condensing *c, uint32_t before, uint32_t index)
{
    etch_named_node node, other;
    char text[ETCH_NODE_TEXT];
    c->d->job->result->ordered = false;
    if (!keeps(c, ETCH_WARNING, ETCH_E_VERIFY_UNORDERED))
        return;
    name_node(c, before, &other);
    etch_find(c->d->job->findings, ETCH_WARNING, ETCH_E_VERIFY_UNORDERED, name_node(c, index, &node),
              "let each collective and send of a rank depend on the one before it",
              "it does not wait for %s, and may be issued before it", etch_node_text(other.ref, text));
}

/* Collectives and sends must form a chain: in an order with parents first, each must
 * descend from the one before it. `latest` is, by node, 1 + the number of the last of them that it
 * descends from. */
static etch_status check_chain(condensing *c)
{
    const etch_rank_program *p = c->p;
    uint32_t count = 0, previous = ETCH_NONE;
    uint32_t *latest = calloc(c->count + 1, sizeof *latest);
    if (!latest)
        return ETCH_ENOMEM;
    for (uint32_t i = 0; i < c->count; i++) {
        const uint32_t at = c->topological ? c->topological[i] : i;
        if (is_ordered(p->work[at])) {
            if (latest[at] != count)
                complain_unordered(c, previous, at);
            latest[at] = ++count;
            previous = at;
        }
        for (uint32_t k = p->first_child[at]; k < p->first_child[at + 1]; k++)
            if (latest[p->children[k]] < latest[at])
                latest[p->children[k]] = latest[at];
    }
    free(latest);
    return ETCH_OK;
}

/* ---- receives of one key ------------------------------------------------------------------------------- */

/* A search along dependencies. */
typedef struct search {
    const etch_rank_program *p;
    uint32_t *stack;
    /* by node: the number of the search that has been there */
    uint32_t *seen;
    uint32_t number;
    /* of all searches */
    uint64_t steps;
} search;

static bool reaches(search *s, uint32_t from, uint32_t to)
{
    uint32_t depth = 0;
    s->number++;
    s->stack[depth++] = from;
    while (depth > 0 && s->steps < SEARCH_STEPS) {
        const uint32_t at = s->stack[--depth];
        for (uint32_t i = s->p->first_child[at]; i < s->p->first_child[at + 1]; i++) {
            const uint32_t child = s->p->children[i];
            s->steps++;
            if (child == to)
                return true;
            if (s->seen[child] == s->number)
                continue;
            s->seen[child] = s->number;
            s->stack[depth++] = child;
        }
    }
    return false;
}

typedef struct receive {
    const etch_comm *comm;
    int32_t tag;
} receive;

static int compare_keys(const receive *x, const receive *y)
{
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    if (x->comm->local != y->comm->local)
        return x->comm->local < y->comm->local ? -1 : 1;
    return x->comm->size < y->comm->size ? -1 : x->comm->size > y->comm->size;
}

static int by_key(const void *a, const void *b)
{
    const receive *x = a, *y = b;
    const int order = compare_keys(x, y);
    return order != 0 ? order : x->comm->node < y->comm->node ? -1 : x->comm->node > y->comm->node;
}

/* Of two receives of one key, the one that is posted first gets the message that is sent first: which one
 * that is must not depend on the timing. */
static etch_status check_keys(condensing *c, receive *receives, uint32_t count)
{
    search s = {.p = c->p};
    etch_status status = ETCH_OK;
    for (uint32_t i = 1; i < count && status == ETCH_OK; i++) {
        if (compare_keys(&receives[i - 1], &receives[i]) != 0)
            continue;
        if (!s.stack) {
            s.stack = malloc(((size_t)c->count + 1) * sizeof *s.stack);
            s.seen = calloc((size_t)c->count + 1, sizeof *s.seen);
        }
        if (!s.stack || !s.seen)
            status = ETCH_ENOMEM;
        else if (!reaches(&s, receives[i - 1].comm->node, receives[i].comm->node))
            complain_unordered(c, receives[i - 1].comm->node, receives[i].comm->node);
    }
    free(s.stack);
    free(s.seen);
    return status;
}

static etch_status check_receives(condensing *c)
{
    const etch_rank_program *p = c->p;
    uint32_t count = 0;
    if (c->d->job->counts->of[ETCH_WORK_RECEIVE] < 2)
        return ETCH_OK;
    receive *receives = malloc(p->comm_count * sizeof *receives);
    if (!receives)
        return ETCH_ENOMEM;
    for (uint32_t i = 0; i < p->comm_count; i++)
        if (p->comms[i].work == ETCH_WORK_RECEIVE)
            receives[count++] = (receive){&p->comms[i], c->d->job->result->tags[p->comms[i].message]};
    qsort(receives, count, sizeof *receives, by_key);
    const etch_status status = check_keys(c, receives, count);
    free(receives);
    return status;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

static etch_status condense(condensing *c)
{
    etch_status status = order_ids(c);
    if (status != ETCH_OK)
        return status;
    resolve_deps(c);
    status = make_program(c);
    if (status == ETCH_OK)
        status = order_nodes(c);
    if (status == ETCH_OK) {
        check_start(c);
        check_passed_over(c);
        status = check_chain(c);
    }
    return status == ETCH_OK ? check_receives(c) : status;
}

etch_status etch_rank_condense(etch_rank_draft *draft)
{
    condensing c = {.d = draft, .count = draft->node_count};
    draft->job->result->ordered = true;
    etch_status status = condense(&c);
    free(c.positions);
    free(c.indexes);
    free(c.ids);
    free(c.topological);
    if (status != ETCH_OK || !draft->runnable || draft->node_count == 0) {
        free(c.p);
        return status == ETCH_EINPUT ? ETCH_OK : status;
    }
    draft->job->result->program = etch_program_intern(draft->job->programs, c.p);
    if (draft->job->result->program)
        return ETCH_OK;
    etch_find(draft->job->findings, ETCH_ERROR, ETCH_E_VERIFY_LIMIT, (etch_node_ref){ETCH_NO_NODE, {NULL, 0}},
              NULL, "the different programs of the ranks together are too large");
    return ETCH_ELIMIT;
}
