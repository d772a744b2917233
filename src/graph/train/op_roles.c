/* Roles of ops for counting conventions, found by how they are connected: the products that give the logits,
 * those that choose experts, the norms between two projections, and the dims of tokens. */
#include "graph/train/op_roles.h"
#include "graph/ir/cursor.h"
#include "graph/train/train_int.h"

#include <string.h>

/* The roles of a tensor's readers. */
typedef struct result_roles {
    /* something reads it */
    bool read;
    /* something reads it that is no product with a weight, nor a view */
    bool elsewhere;
    /* the loss or the caller reads it, through elementwise ops */
    bool decides;
    /* an op chooses by it, or by what other ops than products make of it */
    bool chooses;
    /* scores, before or after a mask that is an op of its own */
    bool masked;
    /* a product with a weight made it: itself, or under views */
    bool projected;
    /* a weight, or a view of one */
    bool weight;
} result_roles;

typedef struct marking {
    const etch_graph *graph;
    etch_op_roles *roles;
    /* by tensor id */
    result_roles *of;
} marking;

static bool is_projection(const marking *m, const etch_op *op)
{
    return etch_op_is_matmul(op) && op->row->role == ETCH_ROLE_PRODUCT &&
           (m->of[op->ins[0]->id].weight || m->of[op->ins[1]->id].weight);
}

static void role(const marking *m, const etch_op *op, etch_op_role_bit as)
{
    m->roles->of[op->id] = (unsigned char)(m->roles->of[op->id] | as);
}

/* Does it hide scores that other ops compute? */
static bool masks(const etch_op *op)
{
    return op->row->hides && op->row->hides(op);
}

/* ---- along the program: where values come from --------------------------------------------------------- */

static void note_sequence(const marking *m, const etch_dim *dim)
{
    if (!dim)
        return;
    m->roles->sequence[dim->id] = true;
    m->roles->has_sequence = true;
}

/* Tokens are the queries of an attention, and dims that stand in one activation beside a renaming of theirs:
 * scores. */
static void find_sequence(const marking *m, const etch_op *op)
{
    const etch_tensor *result = op->outs[0];
    note_sequence(m, etch_op_division(op).queries);
    for (uint32_t i = 0; i < result->rank && etch_op_is_matmul(op); i++)
        if (result->dims[i]->alias && etch_has_dim(result, result->dims[i]->alias))
            note_sequence(m, result->dims[i]->alias);
}

static void pass_forward(const marking *m, const etch_op *op)
{
    const bool projection = is_projection(m, op), view = etch_op_is_view(op);
    find_sequence(m, op);
    if (op->row->family == ETCH_FAMILY_LOOKUP && m->of[op->ins[0]->id].weight)
        role(m, op, ETCH_OP_EMBEDDING);
    bool masked = masks(op);
    for (uint32_t i = 0; i < op->in_count; i++) {
        if (!m->of[op->ins[i]->id].masked)
            continue;
        if (etch_op_is_matmul(op))
            role(m, op, ETCH_OP_MASKED);
        masked = masked || (etch_op_is_elementwise(op) && (view || etch_covers(op->ins[i], op->outs[0])));
    }
    for (uint32_t i = 0; i < op->out_count; i++) {
        result_roles *result = &m->of[op->outs[i]->id];
        result->masked = masked;
        result->weight = view && m->of[op->ins[0]->id].weight;
        result->projected = view ? m->of[op->ins[0]->id].projected : projection;
    }
}

/* ---- against the program: where values go -------------------------------------------------------------- */

/* Of all results of an op together. */
static result_roles roles_of_results(const marking *m, const etch_op *op)
{
    result_roles all = {0};
    for (uint32_t i = 0; i < op->out_count; i++) {
        const result_roles *result = &m->of[op->outs[i]->id];
        all.read = all.read || result->read;
        all.elsewhere = all.elsewhere || result->elsewhere;
        all.decides = all.decides || result->decides;
        all.chooses = all.chooses || result->chooses;
        all.masked = all.masked || result->masked;
    }
    return all;
}

/* Notes the roles of the op's operands: their readers have been seen. */
static void pass_backward(const marking *m, const etch_op *op)
{
    const result_roles result = roles_of_results(m, op);
    const bool view = etch_op_is_view(op), projection = is_projection(m, op);
    const bool decides = result.decides || !result.read; /* what nobody reads, the caller gets */
    const bool elementwise = etch_op_is_elementwise(op);
    if (decides && etch_op_is_matmul(op))
        role(m, op, ETCH_OP_LOGITS);
    if (result.chooses && etch_op_is_matmul(op))
        role(m, op, ETCH_OP_ROUTER);
    if (result.masked && etch_op_is_matmul(op))
        role(m, op, ETCH_OP_MASKED);
    for (uint32_t i = 0; i < op->in_count; i++) {
        result_roles *operand = &m->of[op->ins[i]->id];
        operand->read = operand->read || !view || result.read;
        operand->elsewhere = operand->elsewhere || (view ? result.elsewhere : !projection);
        const bool loss = op->row->family == ETCH_FAMILY_LOSS && i == 0;
        const bool choice = op->row->family == ETCH_FAMILY_CHOICE && i == 0;
        const bool same = view || etch_covers(op->ins[i], op->outs[0]);
        operand->decides = operand->decides || loss || (decides && elementwise && same);
        operand->masked = operand->masked || (masks(op) && i == 0) || (result.masked && elementwise && same);
        operand->chooses = operand->chooses || choice || (result.chooses && !etch_op_is_matmul(op) && same);
    }
    if (op->row->family == ETCH_FAMILY_NORM && m->of[op->ins[0]->id].projected && result.read &&
        !result.elsewhere)
        role(m, op, ETCH_OP_LATENT_NORM);
}

/* A loop-carried value is read by whoever reads what comes out of the loop, and by the next iteration. */
static void leave_body(const marking *m, const etch_region *body)
{
    for (uint32_t i = 0; i < body->carries.count; i++) {
        const etch_carry *carry = &body->carries.at[i];
        result_roles *out = &m->of[carry->out->id];
        out->read = out->elsewhere = true;
        out->decides = out->decides || (carry->result && m->of[carry->result->id].decides);
    }
}

static void enter_loop(const marking *m, const etch_loop *loop)
{
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++) {
        const etch_tensor *init = etch_loop_carries(loop)->at[i].init;
        if (init)
            m->of[init->id].read = m->of[init->id].elsewhere = true;
    }
}

/* Goes as deep as loops are nested. */
static void walk_backward(const marking *m, const etch_region *region)
{
    for (uint32_t i = region->items.count; i-- > 0;) {
        const etch_loop *loop = region->items.at[i].loop;
        if (!loop) {
            pass_backward(m, region->items.at[i].op);
            continue;
        }
        for (uint32_t k = loop->bodies.count; k-- > 0;) {
            leave_body(m, loop->bodies.at[k]);
            walk_backward(m, loop->bodies.at[k]);
        }
        enter_loop(m, loop);
    }
}

/* ---- tags ---------------------------------------------------------------------------------------------- */

static bool is_norm(const etch_op *op)
{
    return op->row->family == ETCH_FAMILY_NORM;
}

/* Did the statement of `tensor` make the op? */
static bool made_by(const etch_tensor *tensor, const etch_op *op)
{
    return tensor->end_op > tensor->first_op ? op->id >= tensor->first_op && op->id < tensor->end_op
                                             : tensor->producer == op;
}

/* The roles that a tag gives to the ops of a statement. */
static const struct {
    const char *tag;
    bool (*of)(const etch_op *op);
    etch_op_role_bit role;
} tag_rows[] = {
    {"router", etch_op_is_matmul, ETCH_OP_ROUTER},
    {"mtp", is_norm, ETCH_OP_MTP_NORM},
};
enum { TAG_COUNT = sizeof tag_rows / sizeof *tag_rows };

static void mark_tagged(const marking *m, const etch_tensor *tagged, size_t row)
{
    for (etch_cursor at = {.root = m->graph->forward}; etch_cursor_next(&at);) {
        const etch_op *op = at.item->op;
        if (op && made_by(tagged, op) && tag_rows[row].of(op))
            role(m, op, tag_rows[row].role);
    }
}

static void find_tagged(const marking *m)
{
    for (uint32_t i = 0; i < m->graph->tensors.count; i++) {
        const etch_tensor *tensor = m->graph->tensors.at[i];
        for (size_t row = 0; tensor && !tensor->of && row < TAG_COUNT; row++)
            if (etch_has_tag(tensor, tag_rows[row].tag))
                mark_tagged(m, tensor, row);
    }
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

const etch_op_roles *etch_op_roles_of(const etch_training *training, etch_arena *arena)
{
    const etch_graph *graph = training->graph;
    etch_op_roles *roles = ETCH_NEW(arena, etch_op_roles);
    roles->op_count = graph->op_count;
    roles->of = ETCH_NEW_ARRAY(arena, graph->op_count, unsigned char);
    roles->sequence = ETCH_NEW_ARRAY(arena, graph->dims.count, bool);
    const marking m = {graph, roles, ETCH_NEW_ARRAY(arena, graph->tensors.count, result_roles)};
    for (uint32_t i = 0; i < graph->weights.count; i++)
        m.of[graph->weights.at[i]->id].weight = true;
    for (etch_cursor at = {.root = graph->forward}; etch_cursor_next(&at);)
        if (at.item->op)
            pass_forward(&m, at.item->op);
    walk_backward(&m, graph->forward);
    find_tagged(&m);
    return roles;
}
