/* The chain that a stage line lists: which parts of the forward pass are its layers.
 *
 * A name selects all loops of that name, one after the other, all calls of a module (by a path: those of its
 * callers), or the statements whose result has the tag or is the tensor. A statement is everything that it
 * takes to compute its result: norm and product of z = norm(x) * head. What several names select is of the
 * layer that comes first. */
#include <string.h>

#include "graph/ir/cursor.h"
#include "graph/stage/stage_int.h"

typedef struct selecting {
    etch_placer *p;
    etch_stages *stages;
    /* by name of the line, then op id: is the op of a statement that it selects? */
    bool **stated;
    /* by name of the line: it is a layer */
    bool *found;
} selecting;

static const char *name_at(const selecting *s, uint32_t k)
{
    return s->stages->line->selectors[k];
}

/* ---- what a name selects ------------------------------------------------------------------------------- */

static bool *stated_by(const selecting *s, const char *name)
{
    const etch_choices chosen = etch_choose(s->p->graph, name);
    bool *stated = ETCH_NEW_ARRAY(s->p->arena, s->p->graph->op_count, bool);
    for (etch_cursor at = {.root = s->p->graph->forward}; etch_cursor_next(&at);)
        for (uint32_t i = 0; at.item->op && i < chosen.count; i++)
            if (chosen.at[i].result && etch_choice_has(&chosen.at[i], at.item->op, at.in))
                stated[at.item->op->id] = true;
    return stated;
}

static bool op_is_selected(const selecting *s, const etch_op *op, uint32_t k)
{
    for (const etch_scope *scope = op->scope; scope && scope->parent; scope = scope->parent)
        if (etch_scope_is_called(scope, name_at(s, k), strlen(name_at(s, k))))
            return true;
    return s->stated[k][op->id];
}

static bool item_is_selected(const selecting *s, const etch_item *item, uint32_t k)
{
    return item->op ? op_is_selected(s, item->op, k) : strcmp(item->loop->name, name_at(s, k)) == 0;
}

/* ---- layers -------------------------------------------------------------------------------------------- */

/* A loop is a segment of its own; statements are of the segment of their name. */
static bool is_of_segment(const selecting *s, const etch_item *item, const etch_stage_segment *segment)
{
    return item->loop ? item->loop == segment->loop : item_is_selected(s, item, segment->selector);
}

static uint32_t entry_of(const selecting *s, const etch_item *item)
{
    for (uint32_t i = 0; i < s->stages->segments.count; i++)
        if (is_of_segment(s, item, &s->stages->segments.at[i]))
            return i;
    return ETCH_NO_SEGMENT;
}

static void add_segment(const selecting *s, uint32_t k, const etch_loop *loop)
{
    etch_sym *sym = s->p->sym;
    const etch_stage_segment segment = {.name = name_at(s, k),
                                        .selector = k,
                                        .loop = loop,
                                        .first = s->stages->layers,
                                        .count = loop ? loop->count : etch_int(sym, 1)};
    s->stages->layers = etch_add(sym, s->stages->layers, segment.count);
    ETCH_PUSH(s->p->arena, &s->stages->segments, segment);
    s->found[k] = true;
}

/* Begins a layer, or the layers of a loop, if the item is the first of one. */
static void add_entry(const selecting *s, const etch_item *item)
{
    for (uint32_t k = 0; k < s->stages->line->selector_count; k++) {
        if ((s->found[k] && !item->loop) || !item_is_selected(s, item, k))
            continue;
        add_segment(s, k, item->loop);
        return;
    }
}

/* Is it the name of a loop of no iteration, which is no part of the program? */
static const etch_loop *idle_loop(const selecting *s, uint32_t k)
{
    const etch_graph *graph = s->p->graph;
    for (uint32_t i = 0; i < graph->idle_loops.count; i++)
        if (strcmp(graph->idle_loops.at[i]->name, name_at(s, k)) == 0)
            return graph->idle_loops.at[i];
    return NULL;
}

/* The segments, in the order in which the program comes to them. */
static void find_entries(const selecting *s)
{
    const etch_region *forward = s->p->graph->forward;
    s->stages->layers = etch_int(s->p->sym, 0);
    s->stages->segment_of_op = ETCH_NEW_ARRAY(s->p->arena, s->p->graph->op_count, uint32_t);
    for (uint32_t i = 0; i < s->p->graph->op_count; i++)
        s->stages->segment_of_op[i] = ETCH_NO_SEGMENT;
    for (uint32_t i = 0; i < forward->items.count; i++) {
        const etch_item *item = &forward->items.at[i];
        if (entry_of(s, item) == ETCH_NO_SEGMENT)
            add_entry(s, item);
        if (item->op)
            s->stages->segment_of_op[item->op->id] = entry_of(s, item);
    }
    for (uint32_t k = 0; k < s->stages->line->selector_count && s->stages->segments.count == 0; k++)
        if (idle_loop(s, k)) /* a chain of no unit, which one stage can be */
            add_segment(s, k, idle_loop(s, k));
}

/* ---- names that are no layers -------------------------------------------------------------------------- */

static bool model_selects(const selecting *s, uint32_t k)
{
    for (etch_cursor at = {.root = s->p->graph->forward}; etch_cursor_next(&at);)
        if (item_is_selected(s, at.item, k))
            return true;
    return false;
}

/* The layer that has what the name selects; NULL when nothing outside loops is selected. */
static const char *unit_with(const selecting *s, uint32_t k)
{
    const etch_region *forward = s->p->graph->forward;
    for (uint32_t i = 0; i < forward->items.count; i++)
        if (item_is_selected(s, &forward->items.at[i], k))
            return s->stages->segments.at[entry_of(s, &forward->items.at[i])].name;
    return NULL;
}

static bool is_called(const selecting *s, const etch_loop *loop, uint32_t k)
{
    return loop && strcmp(loop->name, name_at(s, k)) == 0;
}

/* The name of the line means all its loops. One that is inside a loop of another name is no layer: what the
 * name means would be a part of it. */
static void check_nested(const selecting *s, uint32_t k)
{
    for (etch_cursor at = {.root = s->p->graph->forward}; etch_cursor_next(&at);) {
        if (!is_called(s, at.item->loop, k) || !at.in->loop)
            continue;
        const etch_region *around = at.in;
        while (around->loop && !is_called(s, around->loop, k))
            around = around->parent;
        if (around->loop)
            continue;
        etch_diag *diag =
            etch_error(s->p->graph->diags, ETCH_E_STAGE_UNIT, s->stages->line->selector_spans[k],
                       "'%s' names several loops, and one of them is inside another loop", name_at(s, k));
        etch_note(diag, at.item->loop->span, "this one, inside of '%s'", at.in->loop->name);
        for (uint32_t i = 0; i < s->stages->segments.count; i++)
            if (is_called(s, s->stages->segments.at[i].loop, k))
                etch_note(diag, s->stages->segments.at[i].loop->span,
                          "this one is a unit for each iteration");
        etch_help(diag, "give the loops different names, `repeat n as NAME`");
        s->p->failed = true;
        return;
    }
}

/* Names that are listed and are no segment of the chain. A name that the model does not have at all may be
 * one of another model that shares the plan. */
static void check_names(const selecting *s)
{
    const etch_stage_line *line = s->stages->line;
    for (uint32_t k = 0; k < line->selector_count; k++) {
        if (s->found[k]) {
            check_nested(s, k);
            continue;
        }
        if (!model_selects(s, k)) {
            if (!s->p->plan->shared && !idle_loop(s, k) &&
                (!line->selectors_known || line->selectors_known[k]))
                etch_remark(s->p->graph->diags, ETCH_E_UNKNOWN_SELECTOR, line->selector_spans[k],
                            "no statement of model %s is '%s': this has no effect", s->p->graph->model,
                            name_at(s, k));
            continue;
        }
        const char *layer = unit_with(s, k);
        etch_diag *diag = etch_place_error(s->p, ETCH_E_STAGE_UNIT, line->selector_spans[k],
                                           layer ? "'%s' is no unit of its own: all of it is in unit '%s'"
                                                 : "'%s' cannot be a unit of stages: it is inside a loop%s",
                                           name_at(s, k), layer ? layer : "");
        etch_help(diag, layer ? "leave it out, or give its statements a tag that no other unit has"
                              : "list the loop around it: each of its iterations is a unit");
    }
    if (s->stages->segments.count > 0 || s->p->failed)
        return;
    etch_diag *diag =
        etch_place_error(s->p, ETCH_E_STAGE_UNIT, line->span,
                         "model %s has none of the units that the stages list", s->p->graph->model);
    etch_help(diag, "list loops (`repeat n as NAME`), tags or modules of the model in program order");
}

bool etch_stage_segments(etch_placer *p, etch_stages *stages)
{
    const uint32_t count = stages->line->selector_count;
    selecting s = {.p = p, .stages = stages};
    s.stated = ETCH_NEW_ARRAY(p->arena, count, bool *);
    s.found = ETCH_NEW_ARRAY(p->arena, count, bool);
    for (uint32_t k = 0; k < count; k++)
        s.stated[k] = stated_by(&s, name_at(&s, k));
    find_entries(&s);
    check_names(&s);
    return !p->failed;
}
