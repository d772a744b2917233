#include "mutations.h"

#include <stdio.h>
#include <string.h>

/* Is it a row of the step's end, a move, or one that calls become others of: one that no graph has? */
bool is_of_step(const etch_row *row)
{
    return row->role == ETCH_ROLE_RESHARD || row->use == ETCH_USE_AVERAGE || row->use == ETCH_USE_NORM ||
           row->use == ETCH_USE_EMA || row->updates;
}

/* A row that backward alone has: it divides its work as its forward op does, and partial sums pass as that
 * says. */
static bool is_derived(const etch_row *row)
{
    return !row->shape && !row->several && !row->compose;
}

/* Counts more by a constant that counts; the derivation asks for what a sum of cotangents costs. */
static bool more_flop(etch_row *row, uint32_t constant)
{
    bool applies = row->flop.by && row->flop.constants[constant] > 0 && row->use != ETCH_USE_TOTAL;
    row->flop.constants[constant]++;
    return applies;
}
static bool more_flop_first(etch_row *row)
{
    return more_flop(row, 0);
}
static bool more_flop_second(etch_row *row)
{
    return more_flop(row, 1);
}
static bool more_flop_third(etch_row *row)
{
    return more_flop(row, 2);
}
static bool more_flop_fourth(etch_row *row)
{
    return more_flop(row, 3);
}

static bool no_flop(etch_row *row)
{
    bool applies = row->flop.by && row->use != ETCH_USE_TOTAL;
    row->flop.by = NULL;
    return applies;
}

static bool some_flop(etch_row *row)
{
    bool applies = !row->flop.by && row->role != ETCH_ROLE_RESHARD && row->use != ETCH_USE_AVERAGE;
    row->flop.by = &etch_flop_per_result;
    row->flop.constants[0] = 1;
    return applies;
}

/* Lets an axis divide what the op needs as a whole. */
static bool let_pass(const etch_row *row, etch_factor *factor)
{
    bool applies = *factor != ETCH_FACTOR_PASS && !is_derived(row);
    *factor = ETCH_FACTOR_PASS;
    return applies;
}
static bool over_passes(etch_row *row)
{
    return let_pass(row, &row->over);
}
static bool dot_passes(etch_row *row)
{
    return let_pass(row, &row->dot);
}
static bool state_passes(etch_row *row)
{
    return let_pass(row, &row->state);
}

/* Gathers what could stay divided. */
static bool over_is_whole(etch_row *row)
{
    bool applies = row->over != ETCH_FACTOR_WHOLE && (etch_row_takes(row) & ETCH_KW_OVER) &&
                   row->use != ETCH_USE_AVERAGE;
    row->over = ETCH_FACTOR_WHOLE;
    return applies;
}

static bool partial_passes(etch_row *row)
{
    bool applies = row->linear == ETCH_LINEAR_NO && !is_of_step(row) && !is_derived(row);
    row->linear = ETCH_LINEAR_EACH;
    return applies;
}

static bool is_gradient_of_none(const etch_row *row)
{
    return !row->grads || !row->grads[0].row;
}

/* Copies the rules so that one can be changed. */
static etch_grad *own_rules(etch_row *row)
{
    static etch_grad rules[8];
    uint32_t count = 0;
    while (row->grads[count].row)
        rules[count] = row->grads[count], count++;
    rules[count] = (etch_grad){NULL, NULL, NULL};
    row->grads = rules;
    return rules;
}

static bool first_rule_lost(etch_row *row)
{
    if (is_gradient_of_none(row))
        return false;
    row->grads++;
    return true;
}

static bool last_rule_lost(etch_row *row)
{
    if (is_gradient_of_none(row) || !row->grads[1].row)
        return false;
    etch_grad *rules = own_rules(row);
    uint32_t last = 0;
    while (rules[last + 1].row)
        last++;
    rules[last] = (etch_grad){NULL, NULL, NULL};
    return true;
}

/* The gradient of another function: of those with the same arguments, the last one in the table. */
static bool another_gradient(etch_row *row)
{
    if (is_gradient_of_none(row))
        return false;
    const etch_table *table = etch_table_builtin();
    const etch_row *each;
    etch_grad *rule = own_rules(row);
    const char *found = NULL;
    for (uint32_t i = 0; (each = etch_row_at(table, i)) != NULL; i++) {
        /* A row without keywords has not what those with keywords read. */
        const etch_grad *other = row->needs || !each->needs ? each->grads : NULL;
        for (; other && other->row; other++)
            if (strcmp(other->args, rule->args) == 0 && strcmp(other->row, rule->row) != 0 &&
                strcmp(other->into, rule->into) == 0) {
                found = other->row;
            }
    }
    if (found)
        rule->row = found;
    return found != NULL;
}

/* The cotangent comes last instead of first. */
static bool arguments_turned(etch_row *row)
{
    if (is_gradient_of_none(row) || !strchr(row->grads->args, ' '))
        return false;
    static char turned[64];
    const char *space = strchr(row->grads->args, ' ');
    snprintf(turned, sizeof turned, "%s %.*s", space + 1, (int)(space - row->grads->args), row->grads->args);
    own_rules(row)->args = turned;
    return true;
}

/* Two operands get each other's cotangent. */
static bool targets_turned(etch_row *row)
{
    if (is_gradient_of_none(row) || !strchr(row->grads->into, ' '))
        return false;
    static char turned[32];
    snprintf(turned, sizeof turned, "%s", row->grads->into);
    turned[0] = row->grads->into[2];
    turned[2] = row->grads->into[0];
    own_rules(row)->into = turned;
    return true;
}

static bool map_not_inverted(etch_row *row)
{
    bool applies = row->inverts_map;
    row->inverts_map = false;
    return applies;
}

static bool no_view(etch_row *row)
{
    bool applies = row->view;
    row->view = false;
    return applies;
}

static bool a_view(etch_row *row)
{
    bool applies = !row->view && row->role == ETCH_ROLE_FREE;
    row->view = true;
    return applies;
}

static bool other_scores(etch_row *row)
{
    bool applies = row->divide || (etch_row_takes(row) & ETCH_KW_STATE) || row->scores_first > 0;
    row->scores_first ^= 1;
    return applies;
}

static bool no_division(etch_row *row)
{
    bool applies = row->divide != NULL;
    row->divide = NULL;
    return applies;
}

static bool other_routing(etch_row *row)
{
    bool applies = row->routing != ETCH_ROUTING_NONE;
    row->routing = row->routing == ETCH_ROUTING_FILLS ? ETCH_ROUTING_EMPTIES : ETCH_ROUTING_FILLS;
    return applies;
}

static bool no_statistic(etch_row *row)
{
    bool applies = row->stat_reductions > 0;
    row->stat_reductions--;
    return applies;
}

static bool extra_lost(etch_row *row)
{
    bool applies = row->extra.name != NULL && !row->stays;
    row->extra.name = NULL;
    return applies;
}

/* What the run before has left is any number, so that only profiles tell which. */
static bool state_lost(etch_row *row)
{
    bool applies = row->extra.name != NULL && row->stays;
    row->extra.name = NULL;
    return applies;
}

static bool extra_of_another(etch_row *row)
{
    bool applies = row->extra.name != NULL && !row->stays;
    row->extra.like = row->extra.like == ETCH_EXTRA_AS_RESULT ? ETCH_EXTRA_OF(0) : ETCH_EXTRA_AS_RESULT;
    return applies;
}

static bool state_of_another(etch_row *row)
{
    bool applies = row->extra.name != NULL && row->stays;
    row->extra.like = row->extra.like == ETCH_EXTRA_AS_RESULT ? ETCH_EXTRA_OF(0) : ETCH_EXTRA_AS_RESULT;
    return applies;
}

static bool extra_of_all(etch_row *row)
{
    bool applies = row->extra_reads != 0;
    row->extra_reads = 0;
    return applies;
}

static bool extra_wider(etch_row *row)
{
    bool applies = row->extra.name != NULL && !row->extra.dtype_as_result;
    row->extra.dtype = ETCH_F64;
    return applies;
}

static bool extra_of_a_dtype(etch_row *row)
{
    bool applies = row->extra.dtype_as_result;
    row->extra.dtype_as_result = false;
    row->extra.dtype = ETCH_F64;
    return applies;
}

static bool other_dtype(etch_row *row)
{
    bool applies = !is_derived(row) && !is_of_step(row); /* derived results: of what they derive from */
    row->dtype = row->dtype == ETCH_RESULT_F32 ? ETCH_RESULT_ACT : ETCH_RESULT_F32;
    return applies;
}

static bool no_product(etch_row *row)
{
    bool applies = row->matmul;
    row->matmul = false;
    return applies;
}

static bool a_product(etch_row *row)
{
    bool applies = !row->matmul && row->flop.by && row->role != ETCH_ROLE_PRODUCT && !is_of_step(row);
    row->matmul = true;
    return applies;
}

static bool other_role(etch_row *row)
{
    bool applies =
        row->role == ETCH_ROLE_KERNEL || row->role == ETCH_ROLE_POINTWISE || row->role == ETCH_ROLE_PRODUCT;
    row->role = row->role == ETCH_ROLE_POINTWISE ? ETCH_ROLE_KERNEL : ETCH_ROLE_POINTWISE;
    return applies && !is_of_step(row) && row->use != ETCH_USE_TOTAL;
}

static bool touches_all(etch_row *row)
{
    bool applies = row->touch != ETCH_TOUCH_ALL;
    row->touch = ETCH_TOUCH_ALL;
    return applies;
}

static bool no_partial_passes(etch_row *row)
{
    bool applies =
        row->linear != ETCH_LINEAR_NO && !row->view && row->use != ETCH_USE_TOTAL; /* a rule of its own */
    row->linear = ETCH_LINEAR_NO;
    return applies;
}

static bool never_elided(etch_row *row)
{
    bool applies = row->elide_same;
    row->elide_same = false;
    return applies;
}

static bool other_shape(etch_row *row)
{
    bool applies =
        !is_derived(row) && row->use != ETCH_USE_PRODUCT && row->use != ETCH_USE_QUOTIENT && !is_of_step(row);
    row->shape = NULL;
    row->several = NULL;
    return applies;
}

static bool unused(etch_row *row)
{
    const etch_use was = row->use;
    row->use = ETCH_USE_NONE;
    return was != ETCH_USE_NONE && was != ETCH_USE_ALL_TO_ALL && was != ETCH_USE_SLICE_SHARD &&
           was != ETCH_USE_REDUCE_SCATTER && was != ETCH_USE_PERMUTE;
}

static bool one_operand_less(etch_row *row)
{
    bool applies = strchr(row->operands, ' ') != NULL;
    if (applies)
        row->operands = strchr(row->operands, ' ') + 1;
    return applies;
}

static bool takes_nothing(etch_row *row)
{
    bool applies = etch_row_takes(row) != 0;
    row->needs = row->options = 0;
    return applies;
}

static bool needs_nothing(etch_row *row)
{
    bool applies = row->needs != 0;
    row->options |= row->needs;
    row->needs = 0;
    return applies;
}

static bool no_lead(etch_row *row)
{
    bool applies = row->lead != 0 && !is_derived(row);
    row->lead = 0;
    return applies;
}

static bool no_links(etch_row *row)
{
    bool applies = row->links;
    row->links = false;
    return applies;
}

static bool nothing_again(etch_row *row)
{
    bool applies = row->flop.again > 0;
    row->flop.again = 0;
    return applies;
}

static bool no_family(etch_row *row)
{
    bool applies = row->family != ETCH_FAMILY_NONE;
    row->family = ETCH_FAMILY_NONE;
    return applies;
}

static bool a_norm(etch_row *row)
{
    bool applies = row->family == ETCH_FAMILY_NONE && !row->matmul && row->role != ETCH_ROLE_RESHARD &&
                   row->flop.by && !is_of_step(row);
    row->family = ETCH_FAMILY_NORM;
    return applies;
}

static bool other_help(etch_row *row)
{
    row->help = "";
    return true;
}

static bool does_not_stay(etch_row *row)
{
    bool applies = row->stays != 0;
    row->stays = 0;
    return applies;
}

static bool not_served(etch_row *row)
{
    bool applies = row->serving != NULL;
    row->serving = NULL;
    return applies;
}

static bool always_served(etch_row *row)
{
    bool applies = row->serving_if != 0;
    row->serving_if = 0;
    return applies;
}

static bool no_optimizer(etch_row *row)
{
    bool applies = row->updates;
    row->updates = false;
    return applies;
}

static bool more_states(etch_row *row)
{
    row->states++;
    return row->updates;
}

static bool no_momentum(etch_row *row)
{
    bool applies = row->with_momentum != NULL;
    row->with_momentum = NULL;
    return applies;
}

static bool no_8_bits(etch_row *row)
{
    bool applies = row->with_8_bits != NULL;
    row->with_8_bits = NULL;
    return applies;
}

static bool smaller_block(etch_row *row)
{
    bool applies = row->state_block > 0;
    row->state_block = 16;
    return applies;
}

const mutation mutations[] = {
    {"constants: first", BY_NUMBERS, more_flop_first},
    {"constants: second", BY_NUMBERS, more_flop_second},
    {"constants: third", BY_NUMBERS, more_flop_third},
    {"constants: fourth", BY_NUMBERS, more_flop_fourth},
    {"flop: none", BY_NUMBERS, no_flop},
    {"flop: some", BY_NUMBERS, some_flop},
    {"over: pass", BY_NUMBERS, over_passes},
    {"over: whole", BY_PROFILE, over_is_whole},
    {"dot: pass", BY_NUMBERS, dot_passes},
    {"state: pass", BY_NUMBERS, state_passes},
    {"linear: each", BY_NUMBERS, partial_passes},
    {"linear: no", BY_PROFILE, no_partial_passes},
    {"grads: first lost", BY_NUMBERS, first_rule_lost},
    {"grads: last lost", BY_NUMBERS, last_rule_lost},
    {"grads: another", BY_NUMBERS, another_gradient},
    {"grads: arguments", BY_NUMBERS, arguments_turned},
    {"grads: targets", BY_NUMBERS, targets_turned},
    {"inverts_map", BY_NUMBERS, map_not_inverted},
    {"view: no", BY_PROFILE, no_view},
    {"view: yes", BY_NUMBERS, a_view},
    {"scores_first", BY_NUMBERS, other_scores},
    {"divide", BY_NUMBERS, no_division},
    {"stat_reductions", BY_PROFILE, no_statistic},
    {"extra: none", BY_NUMBERS, extra_lost},
    {"extra: like", BY_NUMBERS, extra_of_another},
    {"state: none", BY_PROFILE, state_lost},
    {"state: like", BY_PROFILE, state_of_another},
    {"extra: dtype", BY_PROFILE, extra_wider},
    {"extra_reads", BY_NUMBERS, extra_of_all},
    {"dtype", BY_PROFILE, other_dtype},
    {"matmul: no", BY_PROFILE, no_product},
    {"matmul: yes", BY_PROFILE, a_product},
    {"role", BY_PROFILE, other_role},
    {"touch", BY_TRAFFIC, touches_all},
    {"elide_same", BY_PROFILE, never_elided},
    {"shape", BY_NUMBERS, other_shape},
    {"use", BY_PROFILE, unused},
    {"lead", BY_PROFILE, no_lead},
    {"links", BY_NUMBERS, no_links},
    {"routing", BY_PROFILE, other_routing},
    {"again", BY_PROFILE, nothing_again},
    {"family: none", BY_PROFILE, no_family},
    {"family: norm", BY_PROFILE, a_norm},
    {"stays", BY_PROFILE, does_not_stay},
    {"serving", BY_PROFILE, not_served},
    {"serving_if", BY_PROFILE, always_served},
    {"extra: dtype_as_result", BY_PROFILE, extra_of_a_dtype},
    {"updates", BY_PROFILE, no_optimizer},
    {"states", BY_PROFILE, more_states},
    {"with_momentum", BY_PROFILE, no_momentum},
    {"with_8_bits", BY_PROFILE, no_8_bits},
    {"state_block", BY_PROFILE, smaller_block},
    {"operands", BY_HELP, one_operand_less},
    {"takes", BY_HELP, takes_nothing},
    {"needs", BY_HELP, needs_nothing},
    {"help", BY_HELP, other_help},
    {NULL, BY_HELP, NULL},
};
