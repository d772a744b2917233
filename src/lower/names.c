/* Names of nodes, for people: "F0.layer3.attention.q" is q of the module attention, in iteration 3 of loop
 * layer, in the forward pass of microbatch 0. A module around everything that a loop does says nothing
 * more than the loop, and is left out. */
#include "lower/lower_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *etch_naming_name(etch_naming naming)
{
    static const char *const names[ETCH_NAMING_COUNT] = {
        [ETCH_NAMES_SHORT] = "short", [ETCH_NAMES_FULL] = "full", [ETCH_NAMES_NONE] = "none"};
    return (unsigned)naming < ETCH_NAMING_COUNT ? names[naming] : NULL;
}

typedef struct annotation_row {
    const char *name;
    bool text;
} annotation_row;

#define X(enumerator, name, text) {name, text},
static const annotation_row annotations[ETCH_ANNOTATION_COUNT] = {ETCH_ANNOTATIONS(X)};
#undef X

const char *etch_annotation_name(etch_annotation annotation)
{
    return (unsigned)annotation < ETCH_ANNOTATION_COUNT ? annotations[annotation].name : NULL;
}

bool etch_annotation_is_text(etch_annotation annotation)
{
    return annotations[annotation].text;
}

/* At most `most` bytes of `text`, whole characters of UTF-8. */
static etch_word cut_word(const char *text, uint32_t most)
{
    etch_word word = etch_word_of(text);
    if (word.length <= most)
        return word;
    word.length = most;
    while (word.length > 0 && ((unsigned char)text[word.length] & 0xC0) == 0x80)
        word.length--;
    return word;
}

etch_word etch_loop_label(const etch_loop *loop)
{
    return cut_word(loop->name, ETCH_LOOP_NAME);
}

typedef struct naming {
    etch_arena *arena;
    const etch_placed *placed;
    const etch_outline *outline;
    /* by scope id: the module, numbered when its caller calls it more than once, in each class of iterations
     * anew */
    const char **labels;
} naming;

/* ---- equal names --------------------------------------------------------------------------------------- */

/* A name, which others may have that stand in the same place; what stands there has an order. */
typedef struct numbered {
    uint64_t place[2];
    const char *name;
    uint32_t order;
} numbered;

static int by_place(const numbered *x, const numbered *y)
{
    const int outer = etch_order(x->place[0], y->place[0]), inner = etch_order(x->place[1], y->place[1]);
    return outer ? outer : inner ? inner : strcmp(x->name, y->name);
}

static int by_place_and_order(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    const int order = by_place(x, y);
    return order ? order : etch_order(x->order, y->order);
}

/* "mlp", "mlp#2", "mlp#3": numbers names that are equal in one place, in their order. */
static void number_names(const naming *n, numbered *names, uint32_t count)
{
    numbered last = {.name = NULL}; /* as it was before it got a number */
    qsort(names, count, sizeof *names, by_place_and_order);
    for (uint32_t i = 0, number = 1; i < count; i++) {
        number = last.name && by_place(&last, &names[i]) == 0 ? number + 1 : 1;
        last = names[i];
        if (number > 1)
            names[i].name = etch_text(n->arena, "%s#%" PRIu32, last.name, number);
    }
}

/* ---- modules ------------------------------------------------------------------------------------------- */

/* The class of iterations that the call is in, as a number; 0 outside loops and in first classes. */
static uint64_t class_of(const etch_scope *scope)
{
    for (const etch_region *region = scope->region; region; region = region->parent)
        if (region->index > 0)
            return ((uint64_t)region->loop->id << 32) + region->index;
    return 0;
}

static void label_scopes(naming *n, const etch_graph *graph)
{
    const uint32_t count = graph->scopes.count;
    numbered *names = ETCH_NEW_ARRAY(n->arena, count, numbered);
    n->labels = ETCH_NEW_ARRAY(n->arena, count, const char *);
    for (uint32_t i = 0; i < count; i++) {
        const etch_scope *scope = graph->scopes.at[i];
        const uint64_t caller = scope->parent ? scope->parent->id + UINT64_C(1) : 0;
        names[i] = (numbered){{caller, class_of(scope)}, scope->module, i};
    }
    number_names(n, names, count);
    for (uint32_t i = 0; i < count; i++)
        n->labels[names[i].order] = names[i].name;
}

/* The innermost scope around both; NULL stands for no scope at all. Scopes have ids above their callers'. */
static const etch_scope *common_scope(const etch_scope *a, const etch_scope *b)
{
    while (a && b && a != b) {
        const bool deeper = a->id > b->id;
        a = deeper ? a->parent : a;
        b = deeper ? b : b->parent;
    }
    return a == b ? a : NULL;
}

/* ---- tasks --------------------------------------------------------------------------------------------- */

/* The innermost scope around all kernels of a region, or of all bodies of a loop, without those of the loops
 * in them. */
static const etch_scope *scope_around(const etch_placed_region *region)
{
    const etch_scope *around = NULL;
    const uint32_t count = region->loop ? region->loop->bodies.count : 1;
    bool any = false;
    for (uint32_t k = 0; k < count; k++) {
        const etch_placed_region *body = region->loop ? region->loop->bodies.at[k] : region;
        for (uint32_t i = 0; i < body->kernels.count; i++) {
            const etch_scope *scope = body->kernels.at[i]->anchor->scope;
            around = any ? common_scope(around, scope) : scope;
            any = true;
        }
    }
    return around;
}

static const char *tensor_of(const etch_step *step)
{
    const char *name = step->outs[0]->tensor->name;
    return name ? name : etch_row_name(step->row);
}

/* The tensor, under as many of the innermost modules inside `around` as there is room for. */
static const char *path_of(const naming *n, const etch_step *step, const etch_scope *around, uint32_t most)
{
    const bool communicates = step->collective != ETCH_NO_COLLECTIVE;
    const etch_word tail =
        etch_word_of(communicates ? etch_text(n->arena, ".%s", etch_collective_name(step->collective)) : "");
    const etch_word tensor = cut_word(tensor_of(step), most - tail.length);
    const char *path = etch_text(n->arena, "%.*s%s", (int)tensor.length, tensor.text, tail.text);
    for (const etch_scope *s = step->scope; s && s != around; s = s->parent) {
        const char *longer = etch_text(n->arena, "%s.%s", n->labels[s->id], path);
        if (strlen(longer) > most)
            break;
        path = longer;
    }
    return path;
}

/* "wte.weights.dp.all_gather": what lies between loops is known by the first of the weights. */
static const char *under_first(etch_arena *arena, const char *first, const char *what)
{
    const etch_word weight = cut_word(first, ETCH_TASK_NAME);
    return etch_text(arena, "%.*s.%s", (int)weight.length, weight.text, what);
}

static const char *gather_of(const naming *n, const etch_body *body, const etch_step *gather)
{
    const char *what = etch_text(n->arena, "weights.%s.%s", etch_axes_label(n->placed, gather->axes),
                                 etch_collective_name(gather->collective));
    const bool alone = etch_zero_of(n->placed, gather->outs[0]->tensor)->by_weight;
    return body->parent && !alone ? what : under_first(n->arena, tensor_of(gather), what);
}

static void number_tasks(const naming *n, const etch_body *body)
{
    numbered *names = ETCH_NEW_ARRAY(n->arena, body->items.count, numbered);
    uint32_t count = 0;
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_task *task = body->items.at[i].task;
        if (task)
            names[count++] = (numbered){{(uint64_t)task->phase}, task->name.text, i};
    }
    number_names(n, names, count);
    for (uint32_t i = 0; i < count; i++)
        body->items.at[names[i].order].task->name = etch_word_of(names[i].name);
}

/* The annotation of what belongs to a scope. */
static const char *module_of(const etch_outline *outline, const etch_scope *scope)
{
    if (!scope || !(outline->annotations >> ETCH_ANNOTATION_MODULE & 1))
        return NULL;
    return etch_scope_path(outline->texts, scope, NULL);
}

/* `forward`: the region of the forward pass that the body runs, repeats or undoes. */
static void name_body(const naming *n, const etch_body *body, const etch_placed_region *forward)
{
    const bool full = n->outline->naming == ETCH_NAMES_FULL;
    const etch_scope *around = full ? NULL : scope_around(forward);
    for (uint32_t i = 0; i < body->items.count; i++) {
        etch_task *task = body->items.at[i].task;
        if (!task)
            continue;
        const etch_step *anchor = task->of->kernel->anchor;
        task->name =
            etch_word_of(task->gathers ? gather_of(n, body, anchor)
                                       : path_of(n, anchor, around, full ? UINT32_MAX : ETCH_TASK_NAME));
        task->module = module_of(n->outline, anchor->scope);
    }
    number_tasks(n, body);
}

void etch_name_tasks(const etch_outliner *o)
{
    naming n = {.arena = o->arena, .placed = o->placed, .outline = o->outline};
    label_scopes(&n, o->placed->training->graph);
    for (uint32_t i = 0; i < o->outline->bodies.count; i++) {
        const etch_body *body = o->outline->bodies.at[i];
        const etch_placed_loop *loop = body->repeat ? body->repeat->loop : NULL;
        if (loop && loop->forward)
            loop = loop->forward;
        name_body(&n, body, loop ? loop->bodies.at[body->class] : o->placed->forward);
    }
}

/* ---- the end of a step --------------------------------------------------------------------------------- */

/* The weight, with a number where others of the group before it have its name. */
static const char *name_among(etch_arena *arena, const etch_weight_group *group, const etch_tensor *weight)
{
    uint32_t number = 1;
    for (uint32_t i = 0; group->weights.at[i] != weight; i++)
        number += strcmp(group->weights.at[i]->name, weight->name) == 0;
    return number > 1 ? etch_text(arena, "%s.%" PRIu32, weight->name, number) : weight->name;
}

void etch_name_weight_task(const etch_outliner *o, etch_weight_task *task, const etch_step_task *of,
                           const char *what)
{
    const etch_weight_group *group = of->group;
    const etch_tensor *alone = of->alone ? of->contributions.at[0].tensor : NULL;
    const etch_scope *around = NULL;
    for (uint32_t i = 0; i < group->weights.count; i++) {
        const etch_scope *scope = group->weights.at[i]->scope;
        around = i > 0 ? common_scope(around, scope) : scope;
    }
    around = alone ? alone->scope : around;
    if (group->loop)
        task->loop_name = etch_loop_label(group->loop);
    if (alone)
        what = under_first(o->arena, name_among(o->arena, group, alone), what);
    else if (!group->loop && group->weights.count > 0)
        what = under_first(o->arena, group->weights.at[0]->name, what);
    task->task.name = etch_word_of(what);
    task->task.module = module_of(o->outline, around);
}
