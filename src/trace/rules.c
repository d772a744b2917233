/* What a node must say by itself. Rules have three ranks. What ASTRA-sim throws at, loops in or never ends
 * with breaks the run: an error. What it runs otherwise than it is written, or what Chakra's own feeder reads
 * as 0, changes the run: a warning. What no simulator minds is style: a remark. */
#include "trace/verify_int.h"

#include <inttypes.h>
#include <string.h>

/* The machine of nominal durations, which give runs something definite: 100 TFLOP/s, 1 TB/s of memory. */
enum { FLOP_PER_NANOSECOND = 100000, BYTES_PER_NANOSECOND = 1000 };

typedef struct checking {
    const etch_rule_context *context;
    const etch_trace_node *node;
    etch_node_ref ref;
    /* what simulators know; NULL where it is missing */
    const etch_trace_attr *attrs[ETCH_ATTRIBUTE_COUNT];
} checking;

#define COMPLAIN(c, severity, code, help, ...) \
    etch_find((c)->context->findings, (severity), (code), (c)->ref, (help), __VA_ARGS__)

static bool is_integer(unsigned kind)
{
    return !etch_chakra_is_list(kind) && kind >= ETCH_KIND_INT32 && kind <= ETCH_KIND_BOOL;
}

static const char *article(const char *kind)
{
    return *kind == 'i' ? "an" : "a";
}

/* ---- which attributes are there ------------------------------------------------------------------------ */

/* Does ASTRA-sim read the attribute on such a node? */
static bool is_read(const checking *c, etch_chakra_attribute attribute)
{
    const bool moves = c->node->type == ETCH_TYPE_COMM_SEND || c->node->type == ETCH_TYPE_COMM_RECV;
    switch (attribute) {
    case ETCH_ATTRIBUTE_IS_CPU_OP:
        return true;
    case ETCH_ATTRIBUTE_NUM_OPS:
        return c->node->type == ETCH_TYPE_COMP;
    case ETCH_ATTRIBUTE_TENSOR_SIZE:
        return c->node->type >= ETCH_TYPE_MEM_LOAD && c->node->type <= ETCH_TYPE_COMP;
    case ETCH_ATTRIBUTE_COMM_SIZE:
        return moves || c->node->type == ETCH_TYPE_COMM_COLL;
    case ETCH_ATTRIBUTE_COMM_SRC:
    case ETCH_ATTRIBUTE_COMM_DST:
    case ETCH_ATTRIBUTE_COMM_TAG:
        return moves;
    case ETCH_ATTRIBUTE_COMM_TYPE:
    case ETCH_ATTRIBUTE_PG_NAME:
    case ETCH_ATTRIBUTE_COMM_PRIORITY:
    case ETCH_ATTRIBUTE_INVOLVED_DIM:
        return c->node->type == ETCH_TYPE_COMM_COLL;
    default: /* lists of tensors: only where memory is tracked, and passed over where they are no lists */
        return false;
    }
}

/* ASTRA-sim takes an integer of any kind and throws where there is none; Chakra's own feeder reads another
 * kind as 0. */
static etch_severity weigh_kind(const checking *c, const etch_trace_attr *attr)
{
    if (!is_read(c, attr->known))
        return ETCH_REMARK;
    if (!is_integer(etch_chakra_attribute_kind(attr->known)) || !is_integer(attr->kind) || attr->count != 1)
        return ETCH_ERROR;
    const bool both_zero = attr->known == ETCH_ATTRIBUTE_IS_CPU_OP && attr->values[0].integer == 0;
    return both_zero ? ETCH_REMARK : ETCH_WARNING;
}

static void check_kind(checking *c, const etch_trace_attr *attr)
{
    const char *name = etch_chakra_attribute_name(attr->known);
    const char *kind = etch_chakra_kind_name(etch_chakra_attribute_kind(attr->known));
    const etch_severity severity = weigh_kind(c, attr);
    static const char *const helps[] = {
        [ETCH_ERROR] = "ASTRA-sim's feeder throws, Chakra's own reads another kind as 0",
        [ETCH_WARNING] = "ASTRA-sim's feeder takes it, Chakra's own reads another kind as 0",
        [ETCH_REMARK] = NULL};
    if (attr->kind == etch_chakra_attribute_kind(attr->known))
        return;
    if (attr->kind == ETCH_KIND_NONE)
        COMPLAIN(c, severity, ETCH_E_VERIFY_ATTR_KIND, NULL, "%s has no value; it should be %s %s", name,
                 article(kind), kind);
    else
        COMPLAIN(c, severity, ETCH_E_VERIFY_ATTR_KIND, helps[severity], "%s is %s %s; simulators read %s %s",
                 name, article(etch_chakra_kind_name(attr->kind)), etch_chakra_kind_name(attr->kind),
                 article(kind), kind);
}

/* Of an attribute that is there twice, ASTRA-sim reads the first. */
static void collect(checking *c)
{
    for (uint32_t i = 0; i < c->node->attr_count; i++) {
        const etch_trace_attr *attr = &c->node->attrs[i];
        if (attr->known == ETCH_ATTRIBUTE_UNKNOWN)
            continue;
        if (c->attrs[attr->known]) {
            COMPLAIN(c, ETCH_WARNING, ETCH_E_VERIFY_ATTR_TWICE,
                     "ASTRA-sim's feeder reads the first, Chakra's own the last",
                     "the attribute %s is there twice", etch_chakra_attribute_name(attr->known));
            continue;
        }
        check_kind(c, attr);
        c->attrs[attr->known] = attr;
    }
}

static void complain_missing(checking *c, etch_severity severity, etch_chakra_attribute attribute)
{
    COMPLAIN(c, severity, ETCH_E_VERIFY_ATTR_MISSING, NULL, "a %s node needs the attribute %s",
             etch_chakra_type_brief(c->node->type), etch_chakra_attribute_name(attribute));
}

/* The integer of an attribute that may be of any kind of integers; false when there is none. */
static bool get(const checking *c, etch_chakra_attribute attribute, int64_t *value)
{
    const etch_trace_attr *attr = c->attrs[attribute];
    if (!attr || !is_integer(attr->kind) || attr->count != 1)
        return false;
    *value = attr->values[0].integer;
    return true;
}

/* The same, and a complaint when the attribute is missing. */
static bool need(checking *c, etch_chakra_attribute attribute, int64_t *value)
{
    if (!c->attrs[attribute])
        complain_missing(c, ETCH_ERROR, attribute);
    return get(c, attribute, value);
}

static void check_cpu_op(checking *c, bool communicates)
{
    int64_t value;
    if (!c->attrs[ETCH_ATTRIBUTE_IS_CPU_OP])
        complain_missing(c, ETCH_WARNING, ETCH_ATTRIBUTE_IS_CPU_OP);
    else if (communicates && get(c, ETCH_ATTRIBUTE_IS_CPU_OP, &value) && value != 0)
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_CPU_OP, "set is_cpu_op to false",
                 "is_cpu_op is true on a communication, where simulators throw");
}

/* ---- computation and memory ---------------------------------------------------------------------------- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t recorded_time(const checking *c)
{
    return c->node->duration > UINT64_MAX / 1000 ? UINT64_MAX / 1000 : larger(c->node->duration * 1000, 1);
}

/* A node that was recorded may have a duration instead of work, and one on the CPU has nothing else.
 * tensor_size holds unsigned numbers. */
static void check_compute(checking *c, etch_node_facts *facts)
{
    int64_t flop = 0, bytes = 0, on_cpu = 0;
    facts->work = ETCH_WORK_COMPUTE;
    check_cpu_op(c, false);
    facts->time = recorded_time(c);
    if (get(c, ETCH_ATTRIBUTE_IS_CPU_OP, &on_cpu) && on_cpu != 0)
        return;
    if (!c->attrs[ETCH_ATTRIBUTE_NUM_OPS] && !c->attrs[ETCH_ATTRIBUTE_TENSOR_SIZE] && c->node->duration > 0) {
        complain_missing(c, ETCH_WARNING, ETCH_ATTRIBUTE_NUM_OPS);
        return;
    }
    if (need(c, ETCH_ATTRIBUTE_NUM_OPS, &flop) && flop < 1)
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_NUM_OPS, "let it compute 1 FLOP at least",
                 "num_ops is %" PRId64 ": the node takes 9.2e18 ns", flop);
    if (need(c, ETCH_ATTRIBUTE_TENSOR_SIZE, &bytes) && bytes == 0)
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_TENSOR_SIZE, "let it move 1 byte at least",
                 "tensor_size is 0: ASTRA-sim passes over the node, and nothing that depends on it runs");
    facts->brief = flop < ETCH_LEAST_FIRST_FLOP && (uint64_t)bytes < ETCH_LEAST_FIRST_BYTES;
    facts->time =
        larger(flop > 0 ? (uint64_t)flop / FLOP_PER_NANOSECOND : 0, (uint64_t)bytes / BYTES_PER_NANOSECOND) +
        1;
}

static void check_memory(checking *c, etch_node_facts *facts)
{
    int64_t bytes = 0;
    facts->work = ETCH_WORK_MEMORY;
    check_cpu_op(c, false);
    if (need(c, ETCH_ATTRIBUTE_TENSOR_SIZE, &bytes) && bytes == 0)
        COMPLAIN(c, ETCH_WARNING, ETCH_E_VERIFY_TENSOR_SIZE, "let it move 1 byte at least",
                 "tensor_size is 0: it moves nothing");
    facts->size = (uint64_t)bytes;
    facts->time = facts->size / BYTES_PER_NANOSECOND + 1;
    if (c->context->set->remote_memory == ETCH_REMOTE_NONE)
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_REMOTE_MEMORY, "describe it in memory.json",
                 "it accesses remote memory, and memory.json says that there is none: ASTRA-sim ends");
    facts->frail = c->context->set->remote_memory == ETCH_REMOTE_UNKNOWN;
    if (facts->frail)
        COMPLAIN(c, ETCH_WARNING, ETCH_E_VERIFY_REMOTE_MEMORY, "describe it in memory.json",
                 "it accesses remote memory: where a machine has none, ASTRA-sim ends");
}

/* ---- communication ------------------------------------------------------------------------------------- */

/* What is sent at once; under rendezvous ASTRA-sim keeps it in 32 bits. */
static void check_rendezvous(checking *c, etch_node_facts *facts, uint64_t bytes)
{
    facts->oversized = c->context->protocol != ETCH_PROTOCOL_EAGER && bytes > INT32_MAX;
    if (facts->oversized)
        COMPLAIN(c, c->context->protocol == ETCH_PROTOCOL_BOTH ? ETCH_WARNING : ETCH_ERROR,
                 ETCH_E_VERIFY_RENDEZVOUS, "send it in several pieces",
                 "it sends %" PRIu64 " bytes at once: under rendezvous ASTRA-sim takes less than 2^31",
                 bytes);
}

static int64_t need_size(checking *c, bool *there)
{
    int64_t bytes = 0;
    *there = need(c, ETCH_ATTRIBUTE_COMM_SIZE, &bytes);
    return bytes;
}

/* An all-gather is cut into as many pieces as the simulator is told, before anything raises it; other
 * collectives are raised to a byte for each rank. */
static uint64_t check_payload(checking *c, bool gathers)
{
    bool there;
    const int64_t bytes = need_size(c, &there);
    if (!there || bytes >= ETCH_LEAST_PAYLOAD)
        return (uint64_t)bytes;
    if (gathers)
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_GATHER_SIZE, "gather 64 bytes at least",
                 "comm_size is %" PRId64 ": an all-gather of fewer bytes than chunks loops for ever", bytes);
    else if (bytes < 0)
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_COMM_SIZE, "communicate 64 bytes at least",
                 "comm_size is %" PRId64 ", which simulators read as 2^64 bytes less", bytes);
    else
        COMPLAIN(c, ETCH_WARNING, ETCH_E_VERIFY_COMM_SIZE, "communicate 64 bytes at least",
                 "comm_size is %" PRId64 ": where there are more ranks than bytes, simulators send more",
                 bytes);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

static uint64_t check_message_size(checking *c)
{
    bool there;
    const int64_t bytes = need_size(c, &there);
    if (!there || bytes >= ETCH_LEAST_PAYLOAD)
        return (uint64_t)bytes;
    if (bytes < 1)
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_COMM_SIZE, "send 1 byte at least",
                 "comm_size is %" PRId64 ", where ASTRA-sim ends", bytes);
    else
        COMPLAIN(c, ETCH_REMARK, ETCH_E_VERIFY_COMM_SIZE, NULL,
                 "comm_size is %" PRId64 ", less than the %d bytes that etch writes at least", bytes,
                 ETCH_LEAST_PAYLOAD);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

static void check_comm_type(checking *c, etch_node_facts *facts)
{
    int64_t type;
    if (!need(c, ETCH_ATTRIBUTE_COMM_TYPE, &type))
        return;
    const char *name = etch_chakra_collective_name(type);
    facts->collective = name ? (uint8_t)type : UINT8_MAX;
    switch (type) {
    case ETCH_COLLECTIVE_ALL_REDUCE:
    case ETCH_COLLECTIVE_ALL_GATHER:
    case ETCH_COLLECTIVE_ALL_TO_ALL:
    case ETCH_COLLECTIVE_REDUCE_SCATTER:
        return;
    case ETCH_COLLECTIVE_BROADCAST:
        COMPLAIN(c, ETCH_WARNING, ETCH_E_VERIFY_COMM_TYPE, NULL,
                 "comm_type is 5, BROADCAST, which simulators can replay, not simulate");
        return;
    default:
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_COMM_TYPE,
                 "simulators run 0 ALL_REDUCE, 2 ALL_GATHER, 6 ALL_TO_ALL and 7 REDUCE_SCATTER",
                 "comm_type is %" PRId64 "%s%s, where simulators throw", type, name ? ", " : "",
                 name ? name : "");
    }
}

/* The number in pg_name; false when it is none. */
static bool read_group(etch_trace_text text, uint64_t *id)
{
    *id = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || i >= 10)
            return false;
        *id = *id * 10 + (uint64_t)(text.at[i] - '0');
    }
    return true;
}

/* What is wrong with a group matters where it is used. */
static bool check_group_ranks(checking *c, const etch_trace_group *group)
{
    char text[ETCH_GROUP_TEXT];
    const char *name = etch_trace_group_text(group, text);
    if (group->twice != ETCH_NONE)
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_GROUP_RANKS, NULL, "%s lists rank %u twice", name,
                 (unsigned)group->twice);
    else if (group->beyond)
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_GROUP_RANKS, NULL,
                 "%s lists %" PRId64 ", and there are traces of ranks 0 to %u", name, group->stranger,
                 (unsigned)c->context->rank_count - 1);
    else if (group->count == 1)
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_GROUP_OF_ONE, "leave the node out: it moves nothing",
                 "%s has this rank alone: a collective of one never finishes", name);
    else
        return true;
    return false;
}

/* The dimensions of the network that involved_dim says of a collective of no group; all: there is none. */
static uint64_t dimensions_of(const checking *c)
{
    const etch_trace_attr *attr = c->attrs[ETCH_ATTRIBUTE_INVOLVED_DIM];
    const uint32_t count = c->context->set->dimension_count;
    const uint64_t all = (UINT64_C(1) << count) - 1;
    uint64_t found = 0;
    if (!attr || attr->kind != ETCH_KIND_BOOL_LIST || attr->count < count)
        return all;
    for (uint32_t i = 0; i < count; i++)
        if (attr->values[i].integer)
            found |= UINT64_C(1) << i;
    return found;
}

/* The index of the rank's group where the set knows who takes part in a collective along some dimensions of
 * the network; else 0, that of all ranks. */
static uint32_t group_along(const checking *c)
{
    const uint32_t found =
        etch_trace_group_along(c->context->groups, c->context->set, dimensions_of(c), c->context->rank);
    return found == ETCH_NONE ? 0 : found;
}

static uint32_t check_group(checking *c)
{
    const etch_trace_groups *groups = c->context->groups;
    const etch_trace_attr *attr = c->attrs[ETCH_ATTRIBUTE_PG_NAME];
    uint64_t id = 0;
    if (attr && attr->kind == ETCH_KIND_STRING && !read_group(attr->values[0].text, &id)) {
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_PG_NAME, NULL, "pg_name is '%.*s', and no decimal number",
                 (int)(attr->values[0].text.length < 40 ? attr->values[0].text.length : 40),
                 attr->values[0].text.at);
        return ETCH_NONE;
    }
    const uint32_t found = id > 0 ? etch_trace_group_find(groups, id) : group_along(c);
    if (found == ETCH_NONE && groups->broken)
        return ETCH_NONE;
    if (found == ETCH_NONE) {
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_GROUP_UNKNOWN, NULL, "the groups have no group %" PRIu64, id);
        return ETCH_NONE;
    }
    if (!etch_trace_group_has(&groups->at[found], c->context->rank)) {
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_GROUP_MEMBER, NULL, "group %" PRIu64 " does not have this rank",
                 id);
        return ETCH_NONE;
    }
    return check_group_ranks(c, &groups->at[found]) ? found : ETCH_NONE;
}

/* All dimensions of the network take part, and it is known how many these are. */
static bool knows_dimensions(const checking *c, const etch_trace_attr *attr)
{
    const uint32_t count = c->context->set->dimension_count;
    return count > 0 && attr->count >= count && dimensions_of(c) == (UINT64_C(1) << count) - 1;
}

/* Of a group, the simulator asks all dimensions; of all ranks, those that involved_dim says. */
static void check_dimensions(checking *c, etch_node_facts *facts)
{
    const etch_trace_attr *attr = c->attrs[ETCH_ATTRIBUTE_INVOLVED_DIM];
    uint32_t involved = 0;
    if (!attr || attr->kind != ETCH_KIND_BOOL_LIST || facts->group != 0 || knows_dimensions(c, attr))
        return;
    for (uint32_t i = 0; i < attr->count; i++)
        involved += attr->values[i].integer != 0;
    if (involved == 0) {
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_DIMENSIONS, "leave involved_dim out",
                 "involved_dim involves no dimension: the collective never finishes");
    } else if (involved < attr->count) {
        facts->frail = true;
        COMPLAIN(c, ETCH_WARNING, ETCH_E_VERIFY_DIMENSIONS, "leave involved_dim out, and give it a group",
                 "involved_dim leaves dimensions out: who takes part depends on the network");
    } else if (attr->count < ETCH_ASSUMED_DIMENSIONS) {
        facts->frail = true;
        COMPLAIN(c, ETCH_WARNING, ETCH_E_VERIFY_DIMENSIONS, "leave involved_dim out",
                 "involved_dim has %u value%s: a network of more dimensions reads beyond them",
                 (unsigned)attr->count, attr->count == 1 ? "" : "s");
    }
}

static void check_collective(checking *c, etch_node_facts *facts)
{
    facts->work = ETCH_WORK_COLLECTIVE;
    check_cpu_op(c, true);
    check_comm_type(c, facts);
    facts->size = check_payload(c, facts->collective == ETCH_COLLECTIVE_ALL_GATHER);
    facts->group = check_group(c);
    check_dimensions(c, facts);
    if (facts->group != ETCH_NONE && c->context->groups->at[facts->group].count > 0)
        check_rendezvous(c, facts,
                         facts->collective == ETCH_COLLECTIVE_ALL_GATHER
                             ? facts->size
                             : facts->size / c->context->groups->at[facts->group].count);
}

/* An end of a message, of which one is this rank. */
static bool check_rank(checking *c, etch_chakra_attribute attribute, int64_t rank)
{
    if (rank >= 0 && rank < (int64_t)c->context->rank_count)
        return true;
    COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_PEER, NULL, "%s is %" PRId64 ", and there are ranks 0 to %u",
             etch_chakra_attribute_name(attribute), rank, (unsigned)c->context->rank_count - 1);
    return false;
}

static void check_peer(checking *c, etch_node_facts *facts)
{
    const bool sends = facts->work == ETCH_WORK_SEND;
    const etch_chakra_attribute own = sends ? ETCH_ATTRIBUTE_COMM_SRC : ETCH_ATTRIBUTE_COMM_DST;
    const etch_chakra_attribute other = sends ? ETCH_ATTRIBUTE_COMM_DST : ETCH_ATTRIBUTE_COMM_SRC;
    int64_t here, there;
    if (!c->attrs[own])
        COMPLAIN(c, ETCH_REMARK, ETCH_E_VERIFY_ATTR_MISSING, NULL,
                 "a %s node should have the attribute %s; without it ASTRA-sim takes its rank",
                 etch_chakra_type_brief(c->node->type), etch_chakra_attribute_name(own));
    if (get(c, own, &here) && here != (int64_t)c->context->rank) {
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_PEER, NULL, "%s is %" PRId64 " in a trace of rank %u",
                 etch_chakra_attribute_name(own), here, (unsigned)c->context->rank);
        return;
    }
    if (!need(c, other, &there) || !check_rank(c, other, there))
        return;
    if (there == (int64_t)c->context->rank)
        COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_PEER, NULL, "comm_src and comm_dst are both %" PRId64, there);
    else
        facts->peer = (uint32_t)there;
}

static void check_message(checking *c, etch_node_facts *facts)
{
    int64_t tag;
    check_cpu_op(c, true);
    facts->size = check_message_size(c);
    check_rendezvous(c, facts, facts->size);
    check_peer(c, facts);
    if (!need(c, ETCH_ATTRIBUTE_COMM_TAG, &tag))
        return;
    facts->tag = (int32_t)tag % (ETCH_MOST_TAG + 1);
    if (tag < 0 || tag > ETCH_MOST_TAG)
        COMPLAIN(c, ETCH_WARNING, ETCH_E_VERIFY_TAG, "ASTRA-sim divides it by 500000000 and takes the rest",
                 "comm_tag is %" PRId64 ", and not from 0 to %d", tag, ETCH_MOST_TAG);
}

/* ---- any node ------------------------------------------------------------------------------------------ */

static bool is_decimal(etch_trace_text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
    return text.length > 0;
}

static void check_tensors(checking *c, etch_chakra_attribute attribute)
{
    const etch_trace_attr *attr = c->attrs[attribute];
    if (!attr || attr->kind != ETCH_KIND_STRING_LIST)
        return;
    bool pairs = attr->count % 2 == 0;
    for (uint32_t i = 1; i < attr->count; i += 2)
        pairs = pairs && is_decimal(attr->values[i].text);
    if (!pairs)
        COMPLAIN(c, ETCH_WARNING, ETCH_E_VERIFY_TENSOR_LIST, NULL,
                 "%s is not a list of names, each with its bytes in decimal",
                 etch_chakra_attribute_name(attribute));
}

static void check_type(checking *c)
{
    const char *name = etch_chakra_type_name(c->node->type);
    if (c->node->type == ETCH_TYPE_INVALID) {
        COMPLAIN(c, ETCH_WARNING, ETCH_E_VERIFY_TYPE, NULL, "type 0, %s, which simulators pass over", name);
        return;
    }
    COMPLAIN(c, ETCH_ERROR, ETCH_E_VERIFY_TYPE, NULL, "type %" PRId32 "%s%s%s is none that simulators run",
             c->node->type, name ? ", " : "", name ? name : "", name ? "," : "");
}

void etch_rules_check(const etch_rule_context *context, const etch_trace_node *node, etch_node_facts *facts)
{
    checking c = {.context = context, .node = node, .ref = {node->id, node->name}};
    const uint32_t errors = context->findings->errors;
    *facts = (etch_node_facts){.group = ETCH_NONE, .peer = ETCH_NONE};
    collect(&c);
    switch (node->type) {
    case ETCH_TYPE_METADATA:
        break;
    case ETCH_TYPE_COMP:
        check_compute(&c, facts);
        break;
    case ETCH_TYPE_MEM_LOAD:
    case ETCH_TYPE_MEM_STORE:
        check_memory(&c, facts);
        break;
    case ETCH_TYPE_COMM_COLL:
        check_collective(&c, facts);
        break;
    case ETCH_TYPE_COMM_SEND:
    case ETCH_TYPE_COMM_RECV:
        facts->work = node->type == ETCH_TYPE_COMM_SEND ? ETCH_WORK_SEND : ETCH_WORK_RECEIVE;
        check_message(&c, facts);
        break;
    default:
        check_type(&c);
    }
    facts->broken = facts->work >= ETCH_WORK_COLLECTIVE && context->findings->errors > errors;
    check_tensors(&c, ETCH_ATTRIBUTE_INPUTS);
    check_tensors(&c, ETCH_ATTRIBUTE_OUTPUTS);
}
