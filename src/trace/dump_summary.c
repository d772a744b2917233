/* A dump for people: what all nodes add up to. */
#include "trace/text_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums of 2^64 nodes of 64 bits each. */
__extension__ typedef __int128 total;

/* ---- tallies ------------------------------------------------------------------------------------------- */

/* Nodes of one kind; what `number` and `text` are depends on the table. */
typedef struct tally {
    int64_t number;
    etch_trace_text text;
    uint64_t nodes;
    total flop, bytes;
} tally;

/* Tallies, found by hash. */
typedef struct tallies {
    etch_arena *arena;
    tally *at;
    /* index in `at` and one more, 0 for free; twice as many as there is room in `at` */
    uint32_t *slots;
    uint32_t count, capacity;
} tallies;

static uint32_t hash_of(int64_t number, etch_trace_text text)
{
    uint32_t hash = 2166136261u;
    for (unsigned i = 0; i < 8; i++)
        hash = (hash ^ (uint8_t)((uint64_t)number >> 8 * i)) * 16777619u;
    for (size_t i = 0; i < text.length; i++)
        hash = (hash ^ (uint8_t)text.at[i]) * 16777619u;
    return hash ^ hash >> 16;
}

/* The slot of a key, or the free one where it belongs. */
static uint32_t *find_slot(const tallies *t, int64_t number, etch_trace_text text)
{
    const uint32_t mask = 2 * t->capacity - 1;
    uint32_t i = hash_of(number, text) & mask;
    for (; t->slots[i] != 0; i = (i + 1) & mask) {
        const tally *found = &t->at[t->slots[i] - 1];
        if (found->number == number && found->text.length == text.length &&
            (text.length == 0 || memcmp(found->text.at, text.at, text.length) == 0))
            break;
    }
    return &t->slots[i];
}

static void widen(tallies *t)
{
    t->at = etch_vec_grow(t->arena, t->at, &t->capacity, sizeof *t->at);
    t->slots = ETCH_NEW_ARRAY(t->arena, 2 * (size_t)t->capacity, uint32_t);
    for (uint32_t i = 0; i < t->count; i++)
        *find_slot(t, t->at[i].number, t->at[i].text) = i + 1;
}

static tally *tally_of(tallies *t, int64_t number, etch_trace_text text)
{
    if (t->count == t->capacity)
        widen(t);
    uint32_t *slot = find_slot(t, number, text);
    if (*slot == 0) {
        const char *copy = etch_copy_text(t->arena, text.at ? text.at : "", text.length);
        t->at[t->count++] = (tally){.number = number, .text = {copy, text.length}};
        *slot = t->count;
    }
    return &t->at[*slot - 1];
}

typedef struct etch_summary {
    uint64_t files;
    /* by type */
    tallies types;
    /* by phase */
    tallies phases;
    /* by collective and group: "" for all ranks */
    tallies collectives;
} etch_summary;

struct etch_summary *etch_summary_new(etch_arena *arena)
{
    etch_summary *summary = ETCH_NEW(arena, etch_summary);
    summary->types.arena = summary->phases.arena = summary->collectives.arena = arena;
    return summary;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

enum { NO_COLLECTIVE = -1 };

/* What a summary counts of a node. */
typedef struct amounts {
    total num_ops, tensor_size, comm_size;
    int64_t comm_type;
    etch_trace_text group, phase;
} amounts;

static total number_of(const etch_trace_attr *attr)
{
    if (attr->count != 1)
        return 0;
    switch (etch_chakra_scalar_of(attr->kind)) {
    case ETCH_SCALAR_DOUBLE:
    case ETCH_SCALAR_FLOAT:
    case ETCH_SCALAR_STRING:
    case ETCH_SCALAR_BYTES:
        return 0;
    case ETCH_SCALAR_UINT64:
    case ETCH_SCALAR_FIXED64:
        return (total)(uint64_t)attr->values[0].integer;
    default:
        return (total)attr->values[0].integer;
    }
}

static etch_trace_text text_of(const etch_trace_attr *attr)
{
    return attr->kind == ETCH_KIND_STRING ? attr->values[0].text : (etch_trace_text){"", 0};
}

static bool is_called(etch_trace_text text, const char *name)
{
    return text.length == strlen(name) && (text.length == 0 || memcmp(text.at, name, text.length) == 0);
}

/* What stands before the first dot; empty when there is none. */
static etch_trace_text before_dot(etch_trace_text text)
{
    const char *dot = text.length > 0 ? memchr(text.at, '.', text.length) : NULL;
    return (etch_trace_text){text.at, dot ? (size_t)(dot - text.at) : 0};
}

/* "F0": a letter and digits. */
static bool is_short_word(etch_trace_text word, char letter)
{
    for (size_t i = 1; i < word.length; i++)
        if (word.at[i] < '0' || word.at[i] > '9')
            return false;
    return word.length > 0 && word.at[0] == letter;
}

/* The phase in a name as `etch lower` gives it: "F0.layer3.q", "COMP_NODE.forward.mb0.stage0.layer3.q". */
static const char *phase_in_name(const etch_trace_node *node)
{
    static const struct {
        char letter;
        const char *phase;
    } phases[] = {{'F', "forward"}, {'R', "recompute"}, {'B', "backward"}, {'S', "sync"}, {'O', "optimizer"}};
    const char *type = etch_chakra_type_name(node->type);
    const etch_trace_text first = before_dot(node->name);
    etch_trace_text second = {node->name.at, 0};
    if (type && first.length > 0 && is_called(first, type))
        second =
            before_dot((etch_trace_text){first.at + first.length + 1, node->name.length - first.length - 1});
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
        if (is_short_word(first, phases[i].letter) || is_called(second, phases[i].phase))
            return phases[i].phase;
    return "";
}

static amounts measure(const etch_trace_node *node)
{
    amounts a = {.comm_type = NO_COLLECTIVE};
    const char *phase = phase_in_name(node);
    a.phase = (etch_trace_text){phase, strlen(phase)};
    for (uint32_t i = 0; i < node->attr_count; i++) {
        const etch_trace_attr *attr = &node->attrs[i];
        if (attr->kind == ETCH_KIND_NONE)
            continue;
        if (attr->known == ETCH_ATTRIBUTE_NUM_OPS)
            a.num_ops = number_of(attr);
        else if (attr->known == ETCH_ATTRIBUTE_TENSOR_SIZE)
            a.tensor_size = number_of(attr);
        else if (attr->known == ETCH_ATTRIBUTE_COMM_SIZE)
            a.comm_size = number_of(attr);
        else if (attr->known == ETCH_ATTRIBUTE_COMM_TYPE && attr->count == 1)
            a.comm_type = (int64_t)number_of(attr);
        else if (attr->known == ETCH_ATTRIBUTE_PG_NAME)
            a.group = text_of(attr);
        else if (is_called(attr->name, "phase") && attr->kind == ETCH_KIND_STRING)
            a.phase = text_of(attr);
    }
    if (is_called(a.group, "0"))
        a.group.length = 0;
    return a;
}

static void count(tally *t, total flop, total bytes)
{
    t->nodes++;
    t->flop += flop;
    t->bytes += bytes;
}

static void add_node(etch_dump *dump, const etch_trace_node *node)
{
    etch_summary *s = dump->summary;
    const amounts a = measure(node);
    const bool computes = node->type == ETCH_TYPE_COMP;
    const bool communicates = node->type == ETCH_TYPE_COMM_COLL || node->type == ETCH_TYPE_COMM_SEND ||
                              node->type == ETCH_TYPE_COMM_RECV;
    const total flop = computes ? a.num_ops : 0;
    const total bytes = communicates ? a.comm_size : a.tensor_size;
    count(tally_of(&s->types, node->type, (etch_trace_text){"", 0}), flop, bytes);
    count(tally_of(&s->phases, 0, a.phase), flop, communicates ? 0 : bytes);
    if (node->type == ETCH_TYPE_COMM_COLL)
        count(tally_of(&s->collectives, a.comm_type, a.group), 0, bytes);
}

static void begin_file(etch_dump *dump)
{
    dump->summary->files++;
}

static void add_metadata(etch_dump *dump, const etch_trace_metadata *metadata)
{
    (void)dump;
    (void)metadata;
}

/* ---- tables -------------------------------------------------------------------------------------------- */

enum { COLUMNS = 4, NUMBER_TEXT = 48 };

/* Rows of a table; the numbers stand at the right of their columns. */
typedef struct table {
    etch_arena *arena;
    ETCH_VEC(const char *) cells;
    /* the first `labels` columns are text */
    uint32_t columns, labels;
} table;

static const char *number_text(etch_arena *arena, total value)
{
    char text[NUMBER_TEXT];
    char *at = text + sizeof text - 1;
    const bool negative = value < 0;
    *at = '\0';
    do {
        const int digit = (int)(value % 10);
        *--at = (char)('0' + (digit < 0 ? -digit : digit));
        value /= 10;
    } while (value != 0);
    if (negative)
        *--at = '-';
    return etch_copy_text(arena, at, strlen(at));
}

static void add_cell(table *t, const char *text)
{
    ETCH_PUSH(t->arena, &t->cells, text);
}

static void add_number(table *t, total value)
{
    add_cell(t, number_text(t->arena, value));
}

/* A text of the trace, which must not move the cursor of a terminal. */
static const char *shown(etch_arena *arena, etch_trace_text text)
{
    char *copy = etch_copy_text(arena, text.at, text.length);
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)copy[i] < 0x20 || copy[i] == 0x7f)
            copy[i] = '?';
    return copy;
}

static int width_of(const table *t, uint32_t column)
{
    size_t widest = 0;
    for (uint32_t i = column; i < t->cells.count; i += t->columns)
        if (strlen(t->cells.at[i]) > widest)
            widest = strlen(t->cells.at[i]);
    return (int)widest;
}

static void print_table(const table *t, etch_buf *out)
{
    int widths[COLUMNS];
    for (uint32_t column = 0; column < t->columns; column++)
        widths[column] = width_of(t, column);
    etch_buf_puts(out, "\n");
    for (uint32_t i = 0; i < t->cells.count; i++) {
        const uint32_t column = i % t->columns;
        const int width = column < t->labels ? -widths[column] : widths[column];
        etch_buf_printf(out, "%*s%s", width, t->cells.at[i], column + 1 == t->columns ? "\n" : "  ");
    }
}

/* ---- the summary --------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const tally *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void print_types(const etch_summary *s, etch_buf *out)
{
    table t = {.arena = out->arena, .columns = 4, .labels = 1};
    add_cell(&t, "type");
    add_cell(&t, "nodes");
    add_cell(&t, "FLOP");
    add_cell(&t, "bytes");
    for (uint32_t i = 0; i < s->types.count; i++) {
        const tally *of = &s->types.at[i];
        const char *name = etch_chakra_type_brief(of->number);
        add_cell(&t, name ? name : etch_text(out->arena, "%" PRId64, of->number));
        add_number(&t, (total)of->nodes);
        add_number(&t, of->flop);
        add_number(&t, of->bytes);
    }
    print_table(&t, out);
}

static void print_phases(const etch_summary *s, etch_buf *out)
{
    table t = {.arena = out->arena, .columns = 4, .labels = 1};
    add_cell(&t, "phase");
    add_cell(&t, "nodes");
    add_cell(&t, "FLOP");
    add_cell(&t, "bytes");
    for (uint32_t i = 0; i < s->phases.count; i++) {
        const tally *of = &s->phases.at[i];
        add_cell(&t, of->text.length > 0 ? shown(out->arena, of->text) : "(none)");
        add_number(&t, (total)of->nodes);
        add_number(&t, of->flop);
        add_number(&t, of->bytes);
    }
    if (s->phases.count > 1 || (s->phases.count == 1 && s->phases.at[0].text.length > 0))
        print_table(&t, out);
}

/* Decimal ids in their order, other names after them. */
static int compare_groups(etch_trace_text a, etch_trace_text b)
{
    if (a.length != b.length)
        return a.length < b.length ? -1 : 1;
    return a.length > 0 ? memcmp(a.at, b.at, a.length) : 0;
}

static int by_collective_and_group(const void *a, const void *b)
{
    const tally *x = a, *y = b;
    int order = by_number(a, b);
    return order != 0 ? order : compare_groups(x->text, y->text);
}

/* The id of a group, -1 when its name is none. */
static int64_t group_id(etch_trace_text name)
{
    int64_t id = 0;
    if (name.length == 0 || name.length > 18 || name.at[0] == '0')
        return -1;
    for (size_t i = 0; i < name.length; i++) {
        if (name.at[i] < '0' || name.at[i] > '9')
            return -1;
        id = id * 10 + (name.at[i] - '0');
    }
    return id;
}

/* How many tallies from the first on are of the same work in groups whose ids follow each other. */
static uint32_t run_length(const tally *first, uint32_t left)
{
    const int64_t id = group_id(first->text);
    uint32_t n = 1;
    while (id >= 0 && n < left && first[n].number == first->number && first[n].nodes == first->nodes &&
           first[n].bytes == first->bytes && group_id(first[n].text) == id + n)
        n++;
    return n;
}

static const char *group_text(etch_arena *arena, const tally *first, uint32_t n)
{
    if (first->text.length == 0)
        return "all ranks";
    return n == 1 ? shown(arena, first->text)
                  : etch_text(arena, "%s-%s, each", first->text.at, first[n - 1].text.at);
}

static const char *collective_text(etch_arena *arena, int64_t collective)
{
    const char *name = etch_chakra_collective_query(collective);
    if (collective == NO_COLLECTIVE)
        return "(no type)";
    return name ? name : etch_text(arena, "%" PRId64, collective);
}

static void print_collectives(const etch_summary *s, etch_buf *out)
{
    table t = {.arena = out->arena, .columns = 4, .labels = 2};
    add_cell(&t, "collective");
    add_cell(&t, "group");
    add_cell(&t, "nodes");
    add_cell(&t, "bytes");
    for (uint32_t i = 0, n; i < s->collectives.count; i += n) {
        const tally *of = &s->collectives.at[i];
        n = run_length(of, s->collectives.count - i);
        add_cell(&t, collective_text(out->arena, of->number));
        add_cell(&t, group_text(out->arena, of, n));
        add_number(&t, (total)of->nodes);
        add_number(&t, of->bytes);
    }
    if (s->collectives.count > 0)
        print_table(&t, out);
}

static void sort(tallies *t, int (*compare)(const void *a, const void *b))
{
    if (t->count > 1)
        qsort(t->at, t->count, sizeof *t->at, compare); /* nothing is looked up any more */
}

static void finish(etch_dump *dump)
{
    etch_summary *s = dump->summary;
    etch_buf *out = &dump->out;
    uint64_t nodes = 0;
    sort(&s->types, by_number);
    sort(&s->collectives, by_collective_and_group);
    for (uint32_t i = 0; i < s->types.count; i++)
        nodes += s->types.at[i].nodes;
    etch_buf_printf(out, "traces    %" PRIu64 "\nnodes     %" PRIu64 "\n", s->files, nodes);
    if (nodes > 0)
        print_types(s, out);
    print_phases(s, out);
    print_collectives(s, out);
}

const etch_dump_way etch_dump_as_summary = {begin_file, add_metadata, add_node, finish};
