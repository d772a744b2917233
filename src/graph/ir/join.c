/* One sum of all its terms, whatever names its parts have.
 *
 * requires: a forward graph whose outputs are known. provides: sums, differences, negations and added numbers
 * of which only the whole is read are one sum, then minus one where all of it is taken away, then one number.
 *
 * A part is in the module of the sum that it is a term of, and in the same body of a loop. It is read there
 * and nowhere else, and nobody speaks of it: no tag, no plan. So `b = x + a` and `y = b + m` are the sum
 * `y = x + a + m`, which is what placement, kernels and costs see. */
#include "graph/ir/cursor.h"
#include "graph/ir/ir_int.h"

/* Kinds of ops, in the order in which they make a sum. */
typedef enum sum_kind { SUM, MINUS, NUMBER, KINDS } sum_kind;

typedef struct sum_term {
    etch_tensor *tensor;
    bool taken;
} sum_term;

typedef struct sum {
    sum_term terms[ETCH_MAX_OPERANDS];
    uint32_t count;
    etch_expr number;
    /* what it is of, that of its result first */
    ETCH_VEC(etch_op *) parts;
    /* what forwards a part under another name */
    ETCH_VEC(etch_op *) names;
} sum;

typedef struct joining {
    etch_graph *graph;
    const char *const *spoken;
    uint32_t spoken_count;
    /* by tensor id: how often it is read */
    uint32_t *reads;
    /* by op id: the sum that it is a part of; NULL: it stays as it is */
    const sum **sum_of;
} joining;

static sum_kind kind_of(const joining *j, const etch_op *op)
{
    switch (op->row->use) {
    case ETCH_USE_SUM:
    case ETCH_USE_DIFFERENCE:
        return SUM;
    case ETCH_USE_SCALE:
        return op->attrs.number == etch_int(j->graph->sym, -1) ? MINUS : KINDS;
    case ETCH_USE_SHIFT:
        return NUMBER;
    default:
        return KINDS;
    }
}

static bool is_taken(const etch_op *op, uint32_t operand)
{
    if (op->row->use == ETCH_USE_DIFFERENCE)
        return operand == 1;
    return op->row->use == ETCH_USE_SCALE || op->attrs.taken >> operand & 1;
}

/* ---- what is a part ------------------------------------------------------------------------------------ */

static bool is_spoken_of(const joining *j, const etch_tensor *tensor)
{
    for (uint32_t i = 0; i < j->spoken_count; i++)
        if (etch_tensor_is_selected(tensor, j->spoken[i]))
            return true;
    return tensor->tag_count || tensor->is_result || tensor->wanted || tensor->dtype_of == tensor;
}

static bool is_passed_on(const etch_op *op)
{
    return op->row->use == ETCH_USE_COPY && !op->edge;
}

/* The sum that a term is, maybe under other names, where it is nothing but this term; NULL: it is none. */
static etch_op *part_of(const joining *j, const etch_tensor *term, const etch_op *root)
{
    for (;; term = term->producer->ins[0]) {
        etch_op *op = term->producer;
        if (!op || j->reads[term->id] != 1 || op->scope != root->scope ||
            term->region != root->outs[0]->region || is_spoken_of(j, term))
            return NULL;
        if (!is_passed_on(op))
            return kind_of(j, op) == KINDS ? NULL : op;
    }
}

static void read(const joining *j, const etch_tensor *tensor)
{
    if (tensor)
        j->reads[tensor->id]++;
}

static void count_reads(const joining *j)
{
    for (etch_cursor at = {.root = j->graph->forward}; etch_cursor_next(&at);) {
        for (uint32_t i = 0; at.item->op && i < at.item->op->in_count; i++)
            read(j, at.item->op->ins[i]);
        for (uint32_t k = 0; at.item->loop && k < at.item->loop->bodies.count; k++)
            for (uint32_t i = 0; i < etch_loop_carries(at.item->loop)->count; i++) {
                read(j, at.item->loop->bodies.at[k]->carries.at[i].init);
                read(j, at.item->loop->bodies.at[k]->carries.at[i].out);
            }
    }
}

/* ---- collecting ---------------------------------------------------------------------------------------- */

/* Puts the operands of `op` where the sum has `gone` terms, from the i-th on. */
static void put(const joining *j, sum *s, uint32_t i, uint32_t gone, etch_op *op, bool taken)
{
    etch_sym *sym = j->graph->sym;
    const uint32_t more = op->in_count - gone;
    for (uint32_t k = s->count; k-- > i + gone;)
        s->terms[k + more] = s->terms[k];
    for (uint32_t k = 0; k < op->in_count; k++)
        s->terms[i + k] = (sum_term){op->ins[k], taken != is_taken(op, k)};
    s->count += more;
    if (kind_of(j, op) == NUMBER)
        s->number =
            taken ? etch_sub(sym, s->number, op->attrs.number) : etch_add(sym, s->number, op->attrs.number);
    ETCH_PUSH(j->graph->arena, &s->parts, op);
}

/* Puts what a part is made of in its place, while there is room. */
static void collect(const joining *j, sum *s, etch_op *root)
{
    put(j, s, 0, 0, root, false);
    for (uint32_t i = 0; i < s->count;) {
        const sum_term term = s->terms[i];
        etch_op *part = part_of(j, term.tensor, root);
        if (!part || s->count - 1 + part->in_count > ETCH_MAX_OPERANDS) {
            i++;
            continue;
        }
        for (etch_op *name = term.tensor->producer; name != part; name = name->ins[0]->producer)
            ETCH_PUSH(j->graph->arena, &s->names, name);
        put(j, s, i, 1, part, term.taken);
    }
}

static uint32_t count_added(const sum *s)
{
    uint32_t added = 0;
    for (uint32_t i = 0; i < s->count; i++)
        added += !s->terms[i].taken;
    return added;
}

/* Bits of the kinds of ops that make the sum. */
static uint32_t kinds_of(const sum *s)
{
    return (uint32_t)(s->count > 1) << SUM | (uint32_t)(count_added(s) == 0) << MINUS |
           (uint32_t)!etch_is_zero(s->number) << NUMBER;
}

/* Is it written so already? */
static bool is_normal(const joining *j, const sum *s)
{
    uint32_t kinds = 0;
    for (uint32_t i = s->parts.count; i-- > 0;) {
        const sum_kind kind = kind_of(j, s->parts.at[i]);
        if (kinds >> kind)
            return false;
        kinds |= 1u << kind;
    }
    return kinds == kinds_of(s);
}

/* Sums of parts, from where they are read on: what has become a part of one has no sum of its own. Goes as
 * deep as loops are nested. */
static void find_sums(const joining *j, const etch_region *region)
{
    for (uint32_t i = region->items.count; i-- > 0;) {
        const etch_item *item = &region->items.at[i];
        for (uint32_t k = 0; item->loop && k < item->loop->bodies.count; k++)
            find_sums(j, item->loop->bodies.at[k]);
        if (!item->op || kind_of(j, item->op) == KINDS || j->sum_of[item->op->id])
            continue;
        sum *s = ETCH_NEW(j->graph->arena, sum);
        s->number = etch_int(j->graph->sym, 0);
        collect(j, s, item->op);
        const bool joins = kinds_of(s) && !is_normal(j, s);
        for (uint32_t k = 0; joins && k < s->parts.count; k++)
            j->sum_of[s->parts.at[k]->id] = s;
        for (uint32_t k = 0; joins && k < s->names.count; k++)
            j->sum_of[s->names.at[k]->id] = s;
    }
}

/* ---- writing ------------------------------------------------------------------------------------------- */

/* Of several parts of a kind the one that is nearest to the result stays. */
static etch_op *part_of_kind(const joining *j, const sum *s, sum_kind kind)
{
    for (uint32_t i = 0; i < s->parts.count; i++)
        if (kind_of(j, s->parts.at[i]) == kind)
            return s->parts.at[i];
    return NULL;
}

static void write_op(const joining *j, etch_op *op, etch_use use, etch_tensor *const *ins, uint32_t count,
                     const etch_attrs *attrs)
{
    op->row = etch_row_for(j->graph, use);
    op->attrs = *attrs;
    op->in_count = count;
    op->ins = ETCH_NEW_ARRAY(j->graph->arena, count, etch_tensor *);
    for (uint32_t i = 0; i < count; i++)
        op->ins[i] = ins[i];
}

/* What is added comes first. */
static void write_sum(const joining *j, const sum *s, etch_op *op)
{
    etch_tensor *ins[ETCH_MAX_OPERANDS];
    etch_attrs attrs = {0};
    const uint32_t added = count_added(s);
    uint32_t count = 0;
    for (int taken = 0; taken < 2; taken++)
        for (uint32_t i = 0; i < s->count; i++)
            if (s->terms[i].taken == taken) {
                attrs.taken |= (uint32_t)(taken && added) << count;
                ins[count++] = s->terms[i].tensor;
            }
    const bool is_pair = count == 2 && attrs.taken;
    attrs.taken = is_pair ? 0 : attrs.taken;
    write_op(j, op, is_pair ? ETCH_USE_DIFFERENCE : ETCH_USE_SUM, ins, count, &attrs);
}

/* A value on the way to the result `out`. */
static etch_tensor *inner_value(const joining *j, const etch_op *op, const etch_tensor *out)
{
    etch_tensor *inner =
        etch_tensor_new(j->graph, op->row->name, ETCH_ACT, out->dtype, etch_dims_of(out), op->span);
    inner->dtype_of = out->dtype_of;
    inner->scope = op->scope;
    return inner;
}

/* The ops of a sum in place of `root`, which makes its result: into the places of a region from `at` on.
 * Returns how many they are. */
static uint32_t write(const joining *j, const sum *s, const etch_op *root, etch_region *region, uint32_t at)
{
    etch_tensor *out = root->outs[0], *value = s->terms[0].tensor;
    const uint32_t kinds = kinds_of(s);
    uint32_t count = 0;
    for (uint32_t i = 1; i < s->parts.count; i++)
        s->parts.at[i]->outs[0]->part_of = out;
    for (uint32_t i = 0; i < s->names.count; i++)
        s->names.at[i]->outs[0]->part_of = out;
    etch_op *ops[KINDS];
    for (sum_kind kind = SUM; kind < KINDS; kind++)
        ops[kind] = part_of_kind(j, s, kind);
    for (sum_kind kind = SUM; kind < KINDS; kind++) {
        if (!(kinds >> kind & 1))
            continue;
        const etch_attrs attrs = {.number = kind == MINUS ? etch_int(j->graph->sym, -1) : s->number};
        if (kind == SUM)
            write_sum(j, s, ops[kind]);
        else
            write_op(j, ops[kind], kind == MINUS ? ETCH_USE_SCALE : ETCH_USE_SHIFT, &value, 1, &attrs);
        ops[kind]->span = root->span;
        value = kinds >> kind == 1 ? out : inner_value(j, ops[kind], out);
        value->producer = ops[kind];
        value->region = region;
        ops[kind]->outs[0] = value;
        region->items.at[at + count++] = (etch_item){.op = ops[kind]};
    }
    return count;
}

static void write_sums(const joining *j, etch_region *region)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_item item = region->items.at[i];
        const sum *s = item.op ? j->sum_of[item.op->id] : NULL;
        for (uint32_t k = 0; item.loop && k < item.loop->bodies.count; k++)
            write_sums(j, item.loop->bodies.at[k]);
        if (!s)
            region->items.at[left++] = item;
        else if (s->parts.at[0] == item.op) /* behind all its parts */
            left += write(j, s, item.op, region, left);
    }
    region->items.count = left;
}

void etch_graph_join_sums(etch_graph *graph, const char *const *spoken, uint32_t count)
{
    const joining j = {.graph = graph,
                       .spoken = spoken,
                       .spoken_count = count,
                       .reads = ETCH_NEW_ARRAY(graph->arena, graph->tensors.count, uint32_t),
                       .sum_of = ETCH_NEW_ARRAY(graph->arena, graph->op_count, const sum *)};
    count_reads(&j);
    find_sums(&j, graph->forward);
    write_sums(&j, graph->forward);
}
