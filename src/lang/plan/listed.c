/* `schedule = list("F0 F1 B0 B1", "F0 B0 F1 B1")`: an order of actions that the plan lists itself, a string
 * for each stage. An action is F, B, I or W, a microbatch, and where a stage has several chunks one of them;
 * `F3&B1` is two that share a slot; with `chunks = mirrored` behind the strings these go to and fro. */
#include "lang/plan/plan_int.h"

#include <inttypes.h>
#include <string.h>

typedef struct listed_action {
    etch_action action;
    etch_span span;
} listed_action;

typedef ETCH_VEC(listed_action) listed_actions;

typedef struct order_reader {
    etch_spec *spec;
    /* of the list, and by stage: of its string */
    etch_span span, *spans;
    /* by stage */
    listed_actions *stages;
    uint32_t stage_count;
    etch_chunk_map map;
} order_reader;

/* ---- reading ------------------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Digits from `at` on; returns their end. Nine at most. */
static const char *read_number(const char *at, const char *end, uint32_t *number)
{
    const char *first = at;
    for (*number = 0; at < end && at - first < 9 && *at >= '0' && *at <= '9'; at++)
        *number = 10 * *number + (uint32_t)(*at - '0');
    return at;
}

static bool read_action(const char *at, const char *end, etch_action *action)
{
    static const char letters[] = {[ETCH_ACTION_FORWARD] = 'F',
                                   [ETCH_ACTION_BACKWARD] = 'B',
                                   [ETCH_ACTION_INPUT_GRADIENTS] = 'I',
                                   [ETCH_ACTION_WEIGHT_GRADIENTS] = 'W'};
    unsigned kind = 0;
    uint32_t microbatch = 0;
    while (kind < ETCH_ACTION_COUNT && letters[kind] != *at)
        kind++;
    const char *number = at + 1, *after = read_number(number, end, &microbatch);
    *action = (etch_action){.kind = (etch_action_kind)kind, .microbatch = microbatch};
    if (kind == ETCH_ACTION_COUNT || after == number)
        return false;
    if (after < end && *after == '.') {
        number = after + 1;
        after = read_number(number, end, &action->chunk);
    }
    return after == end && after > number && action->chunk < ETCH_MOST_CHUNKS;
}

static bool report_word(const order_reader *r, const char *word, const char *end, etch_span span)
{
    etch_diag *diag = etch_error(r->spec->diags, ETCH_E_ORDER, span, "'%.*s' is no action of a stage",
                                 (int)(end - word), word);
    return etch_help(diag,
                     "F3 is microbatch 3 forward, B3 backward, I3 and W3 are the halves of B3; F3.1 is in "
                     "chunk 1 of the stage");
}

static bool report_slot(const order_reader *r, etch_span span, const char *what)
{
    etch_diag *diag = etch_error(r->spec->diags, ETCH_E_ORDER, span, "%s", what);
    return etch_help(diag,
                     "a slot is one action, or the forward one of a microbatch and after & one that takes "
                     "another microbatch back: F3&B1");
}

/* "F3&B1": one action, or two that share a slot, from `at` to `end`. */
static bool read_slot(order_reader *r, const char *begin, const char *at, const char *end, uint32_t start,
                      listed_actions *out)
{
    const char *word = at;
    const uint32_t first = out->count;
    for (const char *stop = at; at <= end; at = stop + 1) {
        for (stop = at; stop < end && *stop != '&';)
            stop++;
        listed_action listed = {.span = {start + (uint32_t)(at - begin), start + (uint32_t)(stop - begin)}};
        if (!read_action(at, stop, &listed.action))
            return report_word(r, at, stop, listed.span);
        listed.action.overlaps = out->count > first;
        ETCH_PUSH(r->spec->arena, out, listed);
    }
    const etch_span span = {start + (uint32_t)(word - begin), start + (uint32_t)(end - begin)};
    const etch_action *slot = &out->at[first].action, *other = &out->at[out->count - 1].action;
    if (out->count == first + 1)
        return true;
    if (out->count > first + 2)
        return report_slot(r, span, "a slot has two actions at most");
    if (slot->kind != ETCH_ACTION_FORWARD || other->kind == ETCH_ACTION_FORWARD)
        return report_slot(r, span, "these two actions cannot share a slot");
    return slot->microbatch != other->microbatch ||
           report_slot(r, span, "the actions of a slot are of one microbatch");
}

/* The actions of a string, a slot for each word. */
static bool read_stage_order(order_reader *r, const etch_ast_expr *text, listed_actions *out)
{
    const char *begin = text->name.text, *at = begin;
    while (*at) {
        if (is_blank(*at)) {
            at++;
            continue;
        }
        const char *end = at;
        while (*end && !is_blank(*end))
            end++;
        if (!read_slot(r, begin, at, end, text->span.start + 1, out))
            return false;
        at = end;
    }
    return true;
}

/* `chunks = mirrored`, the last of the list */
static bool comes_back(const etch_ast_arg *arg)
{
    return arg->name.text && strcmp(arg->name.text, "chunks") == 0 && arg->value->kind == ETCH_AST_NAME &&
           strcmp(arg->value->name.text, "mirrored") == 0;
}

static bool read_strings(order_reader *r, const etch_ast_expr *value)
{
    const uint32_t given = value->kind == ETCH_AST_CALL ? value->args.count : 0;
    const bool is_mirrored = given > 0 && comes_back(&value->args.at[given - 1]);
    const uint32_t count = given - is_mirrored;
    bool strings = count > 0;
    r->map = is_mirrored ? ETCH_MAP_MIRRORED : ETCH_MAP_LOOPED;
    r->stage_count = count;
    r->stages = ETCH_NEW_ARRAY(r->spec->arena, count, listed_actions);
    r->spans = ETCH_NEW_ARRAY(r->spec->arena, count, etch_span);
    for (uint32_t i = 0; i < count; i++)
        strings = strings && !value->args.at[i].name.text && value->args.at[i].value->kind == ETCH_AST_STRING;
    if (!strings) {
        etch_diag *diag = etch_error(r->spec->diags, ETCH_E_SCHEDULE, value->span,
                                     "schedule 'list' needs the order of each stage, as strings");
        return etch_help(diag, "for example list(\"F0 F1 B0 B1\", \"F0 B0 F1 B1\")");
    }
    for (uint32_t i = 0; i < count; i++) {
        r->spans[i] = value->args.at[i].value->span;
        if (!read_stage_order(r, value->args.at[i].value, &r->stages[i]))
            return false;
    }
    return true;
}

/* Numbers are one more than the largest that is listed. */
static etch_action_order *order_of(const order_reader *r)
{
    etch_arena *arena = r->spec->arena;
    const etch_action **actions = ETCH_NEW_ARRAY(arena, r->stage_count, const etch_action *);
    uint64_t *counts = ETCH_NEW_ARRAY(arena, r->stage_count, uint64_t);
    etch_action_order *order = ETCH_NEW(arena, etch_action_order);
    *order = (etch_action_order){.stages = r->stage_count, .chunks = 1, .map = r->map, .microbatches = 1};
    for (uint32_t stage = 0; stage < r->stage_count; stage++) {
        const listed_actions *listed = &r->stages[stage];
        etch_action *own = ETCH_NEW_ARRAY(arena, listed->count, etch_action);
        for (uint32_t i = 0; i < listed->count; i++) {
            own[i] = listed->at[i].action;
            if (own[i].chunk >= order->chunks)
                order->chunks = own[i].chunk + 1;
            if (own[i].microbatch >= order->microbatches)
                order->microbatches = own[i].microbatch + 1;
            order->overlaps = order->overlaps || own[i].overlaps;
            order->has_halves = order->has_halves || own[i].kind == ETCH_ACTION_INPUT_GRADIENTS ||
                                own[i].kind == ETCH_ACTION_WEIGHT_GRADIENTS;
        }
        actions[stage] = own;
        counts[stage] = listed->count;
    }
    order->actions = actions;
    order->counts = counts;
    return order;
}

/* ---- what is wrong ------------------------------------------------------------------------------------- */

/* "F3", "B2.1" */
static const char *action_text(const order_reader *r, const etch_action_order *order, etch_action action)
{
    static const char *const letters[] = {[ETCH_ACTION_FORWARD] = "F",
                                          [ETCH_ACTION_BACKWARD] = "B",
                                          [ETCH_ACTION_INPUT_GRADIENTS] = "I",
                                          [ETCH_ACTION_WEIGHT_GRADIENTS] = "W"};
    const char *chunk = order->chunks > 1 ? etch_text(r->spec->arena, ".%" PRIu32, action.chunk) : "";
    return etch_text(r->spec->arena, "%s%" PRIu64 "%s", letters[action.kind], action.microbatch, chunk);
}

static void report_cycle(const order_reader *r, const etch_action_order *order, const etch_order_fault *fault)
{
    etch_diag *diag = etch_error(r->spec->diags, ETCH_E_ORDER, r->stages[fault->stage].at[fault->at].span,
                                 "the stages wait for each other for ever");
    for (uint32_t i = 0; i < fault->cycle_count; i++) {
        const etch_order_wait *wait = &fault->cycle[i];
        etch_note(diag, r->stages[wait->stage].at[wait->at].span,
                  "stage %" PRIu32 " waits here for %s of stage %" PRIu32, wait->stage,
                  action_text(r, order, wait->needed), wait->other);
    }
}

static void report_fault(const order_reader *r, const etch_action_order *order, const etch_order_fault *fault)
{
    etch_diags *diags = r->spec->diags;
    const listed_actions *stage = &r->stages[fault->stage];
    etch_diag *diag = NULL;
    switch (fault->kind) {
    case ETCH_ORDER_TWICE:
        diag = etch_error(diags, ETCH_E_ORDER, stage->at[fault->at].span, "stage %" PRIu32 " does %s twice",
                          fault->stage, action_text(r, order, stage->at[fault->at].action));
        etch_note(diag, stage->at[fault->before].span, "it is done here already");
        return;
    case ETCH_ORDER_EARLY:
        etch_error(diags, ETCH_E_ORDER, stage->at[fault->at].span,
                   "stage %" PRIu32 " has not done %s before %s", fault->stage,
                   action_text(r, order, fault->needed), action_text(r, order, stage->at[fault->at].action));
        return;
    case ETCH_ORDER_MISSING:
        diag = etch_error(diags, ETCH_E_ORDER, r->spans[fault->stage], "stage %" PRIu32 " does not do %s",
                          fault->stage, action_text(r, order, fault->needed));
        etch_note(diag, r->span, "the order has microbatches 0 to %" PRIu64 " and chunks 0 to %" PRIu32,
                  order->microbatches - 1, order->chunks - 1);
        return;
    case ETCH_ORDER_STALL:
        report_cycle(r, order, fault);
        return;
    }
}

/* ---- the schedule -------------------------------------------------------------------------------------- */

const etch_schedule *etch_plan_read_listed(etch_spec *spec, const etch_ast_expr *value, etch_expr *chunks)
{
    order_reader r = {.spec = spec, .span = value->span};
    if (!read_strings(&r, value))
        return NULL;
    const etch_action_order *order = order_of(&r);
    etch_order_fault fault;
    if (!etch_order_check(spec->arena, order, &fault)) {
        report_fault(&r, order, &fault);
        return NULL;
    }
    *chunks = etch_int(spec->sym, order->chunks);
    return etch_order_schedule(spec->arena, order);
}
