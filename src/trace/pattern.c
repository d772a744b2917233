/* Patterns: traces that were read and broke no rule. The trace of another rank that differs from one only in
 * the groups of its collectives and the ends of its messages, and names as many different ones in the same
 * places, is the same program. So its bytes are compared, and of the nodes that differ only one for each
 * group and peer is decoded and held against the rules. What does not fit in every respect is read like the
 * first: a pattern never finds anything. */
#include "trace/rank_int.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* More patterns than these are of traces that have little in common. */
enum {
    BUCKETS = 1 << 8,
    MOST_PATTERNS = 1 << 9,
    MOST_BYTES = 64 << 20,
    MOST_LEADS = 64,
    MOST_HOLES = 1 << 20
};

struct etch_trace_pattern {
    struct etch_trace_pattern *next;
    size_t length;
    etch_hole *holes;
    etch_lead *leads;
    uint32_t hole_count, lead_count;
    /* with copies of its own */
    etch_rank rank;
    etch_rank_counts counts;
    uint8_t bytes[];
};

struct etch_pattern_table {
    /* holds all below; patterns that are there do not change */
    pthread_mutex_t lock;
    etch_trace_pattern *buckets[BUCKETS];
    uint32_t count;
    size_t bytes;
};

/* ---- where a trace may differ -------------------------------------------------------------------------- */

/* Bytes of the value of an attribute that is nothing but its name and this value, in the shortest form; 0:
 * it is written otherwise. */
static size_t value_bytes(const etch_trace_attr *attr, const uint8_t **value)
{
    enum { SHORT = 0x80, NAME_TAG = ETCH_FIELD_ATTR_NAME << 3 | ETCH_WIRE_BYTES };
    const uint8_t *name = (const uint8_t *)attr->name.at, *at = name + attr->name.length;
    const bool is_text = attr->kind == ETCH_KIND_STRING;
    uint64_t tag, number;
    if (attr->count != 1 || attr->name.length >= SHORT || name[-1] != attr->name.length ||
        name[-2] != NAME_TAG || name[-3] >= SHORT)
        return 0;
    const uint8_t *end = name - 2 + name[-3];
    if (end <= at)
        return 0;
    const int tag_bytes = etch_wire_varint(at, end, &tag);
    const uint64_t wire = is_text ? ETCH_WIRE_BYTES : ETCH_WIRE_VARINT;
    if (tag_bytes <= 0 || tag != ((uint64_t)attr->kind << 3 | wire))
        return 0;
    at += tag_bytes;
    const int number_bytes = etch_wire_varint(at, end, &number);
    if (number_bytes <= 0 || at + number_bytes + (is_text ? number : 0) != end)
        return 0;
    if (!is_text && number != (uint64_t)attr->values[0].integer)
        return 0;
    *value = is_text ? at + number_bytes : at;
    return (size_t)(end - *value);
}

static bool may_differ(const etch_trace_attr *attr)
{
    return attr->known == ETCH_ATTRIBUTE_PG_NAME || attr->known == ETCH_ATTRIBUTE_COMM_SRC ||
           attr->known == ETCH_ATTRIBUTE_COMM_DST;
}

/* Adds the holes of a node; false when one cannot be told. */
static bool add_holes(etch_sketch *s, const etch_trace_node *node)
{
    bool failed = false;
    for (uint32_t i = 0; i < node->attr_count; i++) {
        const etch_trace_attr *attr = &node->attrs[i];
        const uint8_t *value;
        if (!may_differ(attr))
            continue;
        const size_t length = value_bytes(attr, &value);
        s->holes = etch_reserve(s->holes, s->hole_count, &s->hole_capacity, sizeof *s->holes, &failed);
        if (length == 0 || failed || s->hole_count == MOST_HOLES)
            return false;
        s->holes[s->hole_count] = (etch_hole){.offset = node->offset + (size_t)(value - node->bytes),
                                              .length = (uint8_t)length,
                                              .attribute = (uint8_t)attr->known,
                                              .of = s->hole_count};
        s->hole_count++;
    }
    return true;
}

/* Does the lead have the same holes, with the same bytes? */
static bool is_alike(const etch_sketch *s, const etch_lead *lead, uint32_t first, uint32_t count)
{
    bool same = lead->hole_count == count;
    for (uint32_t i = 0; same && i < count; i++) {
        const etch_hole *a = &s->holes[lead->first_hole + i], *b = &s->holes[first + i];
        same = a->attribute == b->attribute && a->length == b->length &&
               memcmp(s->bytes + a->offset, s->bytes + b->offset, a->length) == 0;
    }
    return same;
}

void etch_sketch_begin(etch_sketch *sketch, const uint8_t *bytes)
{
    sketch->bytes = bytes;
    sketch->hole_count = sketch->lead_count = 0;
    sketch->is_unfit = bytes == NULL;
}

void etch_sketch_note(etch_sketch *s, const etch_trace_node *node, const etch_node_facts *facts,
                      uint32_t local)
{
    const uint32_t first = s->hole_count;
    bool failed = false;
    if (s->is_unfit || !add_holes(s, node)) {
        s->is_unfit = true;
        return;
    }
    const uint32_t count = s->hole_count - first;
    for (uint32_t i = 0; i < s->lead_count; i++) {
        const etch_lead *lead = &s->leads[i];
        if (lead->facts.work != facts->work || lead->local != local || !is_alike(s, lead, first, count))
            continue;
        for (uint32_t k = 0; k < count; k++)
            s->holes[first + k].of = lead->first_hole + k;
        return;
    }
    s->leads = etch_reserve(s->leads, s->lead_count, &s->lead_capacity, sizeof *s->leads, &failed);
    s->is_unfit = failed || s->lead_count == MOST_LEADS;
    if (!s->is_unfit)
        s->leads[s->lead_count++] = (etch_lead){.offset = (size_t)node->offset,
                                                .length = (size_t)node->length,
                                                .facts = *facts,
                                                .local = local,
                                                .first_hole = first,
                                                .hole_count = count};
}

void etch_sketch_free(etch_sketch *sketch)
{
    free(sketch->holes);
    free(sketch->leads);
    *sketch = (etch_sketch){0};
}

/* ---- the table ----------------------------------------------------------------------------------------- */

etch_pattern_table *etch_pattern_table_new(void)
{
    etch_pattern_table *table = calloc(1, sizeof *table);
    if (table && pthread_mutex_init(&table->lock, NULL) != 0) {
        free(table);
        table = NULL;
    }
    return table;
}

static void free_pattern(etch_trace_pattern *pattern)
{
    if (pattern) {
        free(pattern->holes);
        free(pattern->leads);
        etch_rank_free(&pattern->rank);
    }
    free(pattern);
}

void etch_pattern_table_free(etch_pattern_table *table)
{
    if (!table)
        return;
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (etch_trace_pattern *p = table->buckets[i], *next; p; p = next) {
            next = p->next;
            free_pattern(p);
        }
    pthread_mutex_destroy(&table->lock);
    free(table);
}

static void *copy_of(const void *from, size_t count, size_t size, bool *failed)
{
    void *copy = malloc(count * size + 1);
    if (!copy)
        *failed = true;
    else if (count > 0)
        memcpy(copy, from, count * size);
    return copy;
}

/* NULL when memory is out. */
static etch_trace_pattern *make_pattern(const etch_sketch *s, const etch_rank_job *job, size_t length)
{
    etch_trace_pattern *p = malloc(sizeof *p + length);
    bool failed = false;
    if (!p)
        return NULL;
    const etch_rank *rank = job->result;
    *p = (etch_trace_pattern){.length = length, .hole_count = s->hole_count, .lead_count = s->lead_count};
    memcpy(p->bytes, s->bytes, length);
    p->holes = copy_of(s->holes, s->hole_count, sizeof *p->holes, &failed);
    p->leads = copy_of(s->leads, s->lead_count, sizeof *p->leads, &failed);
    p->rank = *rank;
    p->rank.groups = copy_of(rank->groups, rank->group_count, sizeof *rank->groups, &failed);
    p->rank.peers = copy_of(rank->peers, rank->peer_count, sizeof *rank->peers, &failed);
    p->rank.tags = copy_of(rank->tags, rank->tag_count, sizeof *rank->tags, &failed);
    p->counts = *job->counts;
    if (!failed)
        return p;
    free_pattern(p);
    return NULL;
}

void etch_pattern_keep(etch_pattern_table *table, const etch_sketch *sketch, const etch_rank_job *job,
                       size_t length)
{
    if (sketch->is_unfit || job->result->group_count > MOST_LEADS || job->result->peer_count > MOST_LEADS)
        return;
    pthread_mutex_lock(&table->lock);
    const bool fits = table->count < MOST_PATTERNS && length <= MOST_BYTES - table->bytes;
    if (fits) {
        table->count++;
        table->bytes += length;
    }
    pthread_mutex_unlock(&table->lock);
    etch_trace_pattern *pattern = fits ? make_pattern(sketch, job, length) : NULL;
    if (!pattern)
        return; /* what has none is read as a whole */
    pthread_mutex_lock(&table->lock);
    etch_trace_pattern **bucket = &table->buckets[length % BUCKETS];
    pattern->next = *bucket;
    *bucket = pattern;
    pthread_mutex_unlock(&table->lock);
}

/* ---- matching ------------------------------------------------------------------------------------------ */

typedef struct matching {
    const etch_rank_job *job;
    const etch_trace_pattern *p;
    etch_wire *wire;
    const uint8_t *bytes;
    etch_rank *result;
} matching;

static bool same_outside(const etch_trace_pattern *p, const uint8_t *bytes)
{
    size_t at = 0;
    for (uint32_t i = 0; i < p->hole_count; i++) {
        const etch_hole *hole = &p->holes[i];
        if (memcmp(bytes + at, p->bytes + at, hole->offset - at) != 0)
            return false;
        at = hole->offset + hole->length;
    }
    return memcmp(bytes + at, p->bytes + at, p->length - at) == 0;
}

/* A number that is as long as the one of the pattern: what is behind it stays what it is. */
static bool is_number(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((bytes[i] & 0x80) != (i + 1 < length ? 0x80 : 0))
            return false;
    return true;
}

static bool holes_fit(const etch_trace_pattern *p, const uint8_t *bytes)
{
    for (uint32_t i = 0; i < p->hole_count; i++) {
        const etch_hole *hole = &p->holes[i];
        const uint8_t *at = bytes + hole->offset;
        if (hole->of != i ? memcmp(at, bytes + p->holes[hole->of].offset, hole->length) != 0
                          : hole->attribute != ETCH_ATTRIBUTE_PG_NAME && !is_number(at, hole->length))
            return false;
    }
    return true;
}

/* May the one group stand where the other one did, as far as rules of single nodes and the program see? */
static bool is_like(const matching *m, uint32_t a, uint32_t b)
{
    const etch_trace_group *groups = m->job->groups->at;
    return a != ETCH_NONE && (a == 0) == (b == 0) && (groups[a].id == 0) == (groups[b].id == 0) &&
           groups[a].count == groups[b].count;
}

/* Enters a group or a peer at its place, where another node may have put it. */
static bool enter(uint32_t *list, uint32_t local, uint32_t value)
{
    const bool fits = list[local] == ETCH_NONE || list[local] == value;
    list[local] = value;
    return fits && value != ETCH_NONE;
}

static bool lead_fits(matching *m, const etch_lead *lead, etch_findings *findings)
{
    const etch_rule_context context = etch_rank_context(m->job, findings);
    etch_trace_node node;
    etch_trace_error ignored;
    etch_node_facts facts;
    if (etch_wire_node(m->wire, m->bytes + lead->offset, lead->length, lead->offset, &node, &ignored) !=
        ETCH_OK)
        return false;
    etch_rules_check(&context, &node, &facts);
    const etch_node_facts *of = &lead->facts;
    if (findings->count > 0 || findings->errors > 0 || findings->out_of_memory || facts.work != of->work ||
        facts.collective != of->collective || facts.size != of->size || facts.tag != of->tag ||
        facts.broken || facts.frail || facts.oversized)
        return false;
    if (facts.work == ETCH_WORK_COLLECTIVE)
        return is_like(m, facts.group, of->group) && enter(m->result->groups, lead->local, facts.group);
    return enter(m->result->peers, lead->local, facts.peer);
}

static bool all_differ(const uint32_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (list[i] == list[k])
                return false;
    return true;
}

static uint32_t *empty_list(uint32_t count)
{
    uint32_t *list = malloc(count * sizeof *list + 1);
    for (uint32_t i = 0; list && i < count; i++)
        list[i] = ETCH_NONE;
    return list;
}

static bool leads_fit(matching *m)
{
    etch_findings findings = {0};
    bool fit = true;
    for (uint32_t i = 0; i < m->p->lead_count && fit; i++)
        fit = lead_fits(m, &m->p->leads[i], &findings);
    etch_findings_free(&findings);
    return fit && all_differ(m->result->groups, m->result->group_count) &&
           all_differ(m->result->peers, m->result->peer_count);
}

static etch_status match(matching *m, bool *matched)
{
    *matched = false;
    if (!same_outside(m->p, m->bytes) || !holes_fit(m->p, m->bytes))
        return ETCH_OK;
    *m->result = m->p->rank;
    m->result->shares_tags = true;
    m->result->groups = empty_list(m->result->group_count);
    m->result->peers = empty_list(m->result->peer_count);
    etch_status status = m->result->groups && m->result->peers ? ETCH_OK : ETCH_ENOMEM;
    *matched = status == ETCH_OK && leads_fit(m);
    if (!*matched)
        etch_rank_free(m->result);
    else
        *m->job->counts = m->p->counts;
    return status;
}

etch_status etch_pattern_match(etch_pattern_table *table, const etch_rank_job *job, etch_desk *desk,
                               bool *matched)
{
    matching m = {.job = job, .wire = &desk->wire, .bytes = desk->bytes, .result = job->result};
    etch_status status = ETCH_OK;
    pthread_mutex_lock(&table->lock);
    m.p = table->buckets[desk->length % BUCKETS];
    pthread_mutex_unlock(&table->lock);
    for (*matched = false; m.p && !*matched && status == ETCH_OK; m.p = m.p->next)
        if (m.p->length == desk->length)
            status = match(&m, matched);
    return status;
}
