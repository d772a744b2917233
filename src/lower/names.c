/* Names of nodes, for people: "F0.layer3.attention.q" is q of the module attention, in iteration 3 of loop
 * layer, in the forward pass of microbatch 0. A module around everything that a loop does says nothing
 * more than the loop, and is left out. */
#include "lower/lower_int.h"

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

enum { MOST_MODULES = ETCH_TASK_NAME }; /* each takes a byte at least */

/* At most `most` bytes of `text`, whole characters of UTF-8. */
static uint32_t cut_length(const char *text, uint32_t most)
{
    size_t length = strlen(text);
    if (length <= most)
        return (uint32_t)length;
    uint32_t cut = most;
    while (cut > 0 && ((unsigned char)text[cut] & 0xC0) == 0x80)
        cut--;
    return cut;
}

static const char *cut_text(etch_arena *arena, const char *text, uint32_t most, uint32_t *length)
{
    *length = cut_length(text, most);
    return etch_copy_text(arena, text, *length);
}

const char *etch_loop_label(etch_arena *arena, const etch_loop *loop, uint32_t *length)
{
    return cut_text(arena, loop->name, ETCH_LOOP_NAME, length);
}

/* ---- modules ------------------------------------------------------------------------------------------- */

typedef struct naming {
    etch_arena *arena;
    const etch_placed *placed;
    const etch_outline *outline;
    /* by scope id: the module, numbered when its caller calls it more than once, in each class of iterations
     * anew */
    const char **labels;
} naming;

static uint32_t parent_id(const etch_scope *scope)
{
    return scope->parent ? scope->parent->id + 1 : 0;
}

/* The class of iterations that the call is in, as a number; 0 outside loops and in first classes. */
static uint64_t class_of(const etch_scope *scope)
{
    for (const etch_region *region = scope->region; region; region = region->parent)
        if (region->index > 0)
            return ((uint64_t)region->loop->id << 32) + region->index;
    return 0;
}

static int by_caller_and_module(const void *a, const void *b)
{
    const etch_scope *x = *(const etch_scope *const *)a, *y = *(const etch_scope *const *)b;
    if (parent_id(x) != parent_id(y))
        return parent_id(x) < parent_id(y) ? -1 : 1;
    if (class_of(x) != class_of(y))
        return class_of(x) < class_of(y) ? -1 : 1;
    int order = strcmp(x->module, y->module);
    return order != 0 ? order : x->id < y->id ? -1 : x->id > y->id;
}

static void label_scopes(naming *n, const etch_graph *graph)
{
    uint32_t count = graph->scopes.count, number = 1;
    const etch_scope **sorted = ETCH_NEW_ARRAY(n->arena, count, const etch_scope *);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = graph->scopes.at[i];
    qsort(sorted, count, sizeof *sorted, by_caller_and_module);
    n->labels = ETCH_NEW_ARRAY(n->arena, count, const char *);
    for (uint32_t i = 0; i < count; i++) {
        bool again = i > 0 && parent_id(sorted[i]) == parent_id(sorted[i - 1]) &&
                     class_of(sorted[i]) == class_of(sorted[i - 1]) &&
                     strcmp(sorted[i]->module, sorted[i - 1]->module) == 0;
        number = again ? number + 1 : 1;
        const char *module = sorted[i]->module;
        n->labels[sorted[i]->id] = again ? etch_text(n->arena, "%s#%u", module, (unsigned)number) : module;
    }
}

static uint32_t scope_depth(const etch_scope *scope)
{
    uint32_t depth = 0;
    for (; scope; scope = scope->parent)
        depth++;
    return depth;
}

/* The innermost scope around both; NULL stands for no scope at all. */
static const etch_scope *common_scope(const etch_scope *a, const etch_scope *b)
{
    uint32_t a_depth = scope_depth(a), b_depth = scope_depth(b);
    for (; a_depth > b_depth; a_depth--)
        a = a->parent;
    for (; b_depth > a_depth; b_depth--)
        b = b->parent;
    while (a != b) {
        a = a->parent;
        b = b->parent;
    }
    return a;
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

/* The tensor under all modules. */
static const char *full_path_of(const naming *n, const etch_step *step)
{
    const char *path = tensor_of(step);
    if (step->scope)
        path = etch_text(n->arena, "%s.%s", etch_scope_path(n->arena, step->scope, n->labels), path);
    if (step->collective != ETCH_NO_COLLECTIVE)
        path = etch_text(n->arena, "%s.%s", path, etch_collective_name(step->collective));
    return path;
}

/* The tensor, under as many of the innermost modules as there is room for. */
static const char *path_of(const naming *n, const etch_step *step, const etch_scope *around)
{
    const char *modules[MOST_MODULES];
    const char *tensor = tensor_of(step), *collective = NULL;
    if (step->collective != ETCH_NO_COLLECTIVE)
        collective = etch_collective_name(step->collective);
    uint32_t count = 0, tail = collective ? (uint32_t)strlen(collective) + 1 : 0;
    uint32_t tensor_length = cut_length(tensor, ETCH_TASK_NAME - tail), length = tensor_length + tail;
    for (const etch_scope *s = step->scope; s && s != around && count < MOST_MODULES; s = s->parent) {
        size_t more = strlen(n->labels[s->id]) + 1;
        if (more > ETCH_TASK_NAME - length)
            break;
        modules[count++] = n->labels[s->id];
        length += (uint32_t)more;
    }
    etch_buf path = {.arena = n->arena};
    while (count-- > 0)
        etch_buf_printf(&path, "%s.", modules[count]);
    etch_buf_add(&path, tensor, tensor_length);
    if (collective)
        etch_buf_printf(&path, ".%s", collective);
    return path.text;
}

/* Of weights that are gathered at once: as at the end of a step, what lies between loops is known by the
 * first of them. */
static const char *gather_of(const naming *n, const etch_body *body, const etch_step *gather)
{
    uint32_t length;
    const char *path = etch_text(n->arena, "weights.%s.%s", etch_axes_label(n->placed, gather->axes),
                                 etch_collective_name(gather->collective));
    const char *first = cut_text(n->arena, tensor_of(gather), ETCH_TASK_NAME, &length);
    return body->parent ? path : etch_text(n->arena, "%s.%s", first, path);
}

void etch_name_task(etch_arena *arena, etch_task *task, etch_phase phase, const char *name)
{
    task->phase = phase;
    task->name = etch_copy_text(arena, name, strlen(name));
    task->name_length = (uint32_t)strlen(name);
}

typedef struct named_task {
    etch_task *task;
    uint32_t order;
} named_task;

static int by_name(const void *a, const void *b)
{
    const named_task *x = a, *y = b;
    if (x->task->phase != y->task->phase)
        return x->task->phase < y->task->phase ? -1 : 1;
    int order = strcmp(x->task->name, y->task->name);
    return order != 0 ? order : x->order < y->order ? -1 : x->order > y->order;
}

/* Numbers tasks of one name in issue order. */
static void number_tasks(const naming *n, const etch_body *body)
{
    named_task *sorted = ETCH_NEW_ARRAY(n->arena, body->items.count, named_task);
    uint32_t count = 0, number = 1;
    for (uint32_t i = 0; i < body->items.count; i++)
        if (body->items.at[i].task)
            sorted[count++] = (named_task){body->items.at[i].task, i};
    qsort(sorted, count, sizeof *sorted, by_name);
    const char *last = NULL; /* as it was before it got a number */
    etch_phase last_phase = ETCH_PHASE_COUNT;
    for (uint32_t i = 0; i < count; i++) {
        etch_task *task = sorted[i].task;
        bool again = last && task->phase == last_phase && strcmp(task->name, last) == 0;
        number = again ? number + 1 : 1;
        last = task->name;
        last_phase = task->phase;
        if (again)
            etch_name_task(n->arena, task, task->phase,
                           etch_text(n->arena, "%s#%u", task->name, (unsigned)number));
    }
}

/* The annotation of what belongs to a scope. */
static const char *module_of(const etch_outline *outline, const etch_scope *scope)
{
    if (!scope || !(outline->annotations >> ETCH_ANNOTATION_MODULE & 1))
        return NULL;
    return etch_scope_path(outline->texts, scope, NULL);
}

/* `forward`: the region of the forward pass that the body runs, repeats or undoes. Goes as deep as loops
 * are nested. */
static void name_body(const naming *n, etch_body *body, const etch_placed_region *forward)
{
    const etch_scope *around = scope_around(forward);
    for (uint32_t i = 0; i < body->items.count; i++) {
        etch_task *task = body->items.at[i].task;
        if (!task) {
            const etch_repeat *repeat = body->items.at[i].repeat;
            const etch_placed_loop *reversed = repeat->loop->forward;
            for (uint32_t k = 0; k < repeat->body_count; k++)
                name_body(n, repeat->bodies[k], (reversed ? reversed : repeat->loop)->bodies.at[k]);
            continue;
        }
        const etch_step *anchor = task->kernel->anchor;
        const bool full = n->outline->naming == ETCH_NAMES_FULL;
        const char *path = task->gathers ? gather_of(n, body, anchor)
                           : full        ? full_path_of(n, anchor)
                                         : path_of(n, anchor, around);
        etch_name_task(n->arena, task, anchor->phase, path);
        task->module = module_of(n->outline, anchor->scope);
    }
    number_tasks(n, body);
}

void etch_name_tasks(etch_arena *arena, const etch_placed *placed, const etch_outline *outline)
{
    naming n = {.arena = arena, .placed = placed, .outline = outline};
    label_scopes(&n, placed->training->graph);
    name_body(&n, outline->forward, placed->forward);
    if (outline->backward)
        name_body(&n, outline->backward, placed->forward);
}

/* ---- the end of a step --------------------------------------------------------------------------------- */

static const etch_scope *scope_of_weights(const etch_weight_group *weight_group)
{
    const etch_scope *around = NULL;
    for (uint32_t i = 0; i < weight_group->weights.count; i++) {
        const etch_scope *scope = weight_group->weights.at[i]->scope;
        around = i > 0 ? common_scope(around, scope) : scope;
    }
    return around;
}

void etch_name_weight_task(etch_arena *arena, const etch_outline *outline, etch_weight_task *weight_task,
                           const etch_weight_group *weight_group, etch_phase phase, const char *what)
{
    const char *name = what;
    if (weight_group->loop) {
        weight_task->loop_name = etch_loop_label(arena, weight_group->loop, &weight_task->loop_name_length);
    } else if (weight_group->weights.count > 0) { /* what lies between loops is known by its first weight */
        uint32_t length;
        const char *weight = cut_text(arena, weight_group->weights.at[0]->name, ETCH_TASK_NAME, &length);
        name = etch_text(arena, "%s.%s", weight, what);
    }
    etch_name_task(arena, &weight_task->task, phase, name);
    weight_task->task.module = module_of(outline, scope_of_weights(weight_group));
}
