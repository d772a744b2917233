/* The program of a rank: every run of every task, in issue order, with the nodes that it waits for.
 *
 * A node waits for the makers of what it reads, and for those that hold the order: a collective for the
 * one before it; a node that waits for nothing in its slot, for the last computation before the slot. A
 * node that adds into a gradient waits for the one that did so before, so that the last of them stands for
 * all. */
#include "lower/lower_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX_BYTES = 32 + (ETCH_LOOP_DEPTH + 1) * (ETCH_LOOP_NAME + 24) };

/* What one microbatch in flight has made: cells of all bodies. */
typedef struct frame {
    uint32_t *cells;
    bool taken;
    uint64_t microbatch;
} frame;

/* What stands between the phase and the rest of a name: microbatch and iterations, "0.layer3.". */
typedef struct prefix {
    char text[PREFIX_BYTES];
    uint32_t length;
} prefix;

typedef struct unroller {
    etch_arena *arena; /* scratch */
    const etch_outline *outline;
    etch_sums *sums;
    etch_node *nodes;
    uint32_t *deps;
    char *names;
    uint32_t node_count, dep_count, name_bytes;
    ETCH_VEC(frame) frames;
    uint32_t *cells;                   /* of the frame at work */
    uint32_t *gradients;               /* makers of gradients, by cell */
    uint64_t run[ETCH_LOOP_DEPTH + 2]; /* by depth: the run at work of the body at that depth */
    prefix prefix;
    uint32_t slot_first;  /* first node of the slot */
    uint32_t before_slot; /* last computation before it */
    uint32_t last_comp, last_collective;
    uint32_t clipped; /* makes the norm of all gradients */
    bool ending;      /* the last microbatch goes back */
} unroller;

/* ---- text ---------------------------------------------------------------------------------------------- */

static void add_bytes(char *text, uint32_t *length, const char *bytes, uint32_t count)
{
    memcpy(text + *length, bytes, count);
    *length += count;
}

static void add_number(char *text, uint32_t *length, uint64_t number)
{
    char digits[20];
    uint32_t count = 0;
    do {
        digits[sizeof digits - ++count] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    add_bytes(text, length, digits + sizeof digits - count, count);
}

/* "layer3." */
static void extend_prefix(prefix *p, const char *loop_name, uint32_t loop_name_length, uint64_t iteration)
{
    add_bytes(p->text, &p->length, loop_name, loop_name_length);
    add_number(p->text, &p->length, iteration);
    p->text[p->length++] = '.';
}

static uint32_t add_name(unroller *u, const etch_task *task)
{
    uint32_t start = u->name_bytes;
    u->names[u->name_bytes++] = task->phase;
    add_bytes(u->names, &u->name_bytes, u->prefix.text, u->prefix.length);
    add_bytes(u->names, &u->name_bytes, task->name, task->name_length);
    u->names[u->name_bytes++] = '\0';
    return start;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Sorts `count` ids and drops repetitions; returns how many are left. */
static uint32_t sort_unique(uint32_t *ids, uint32_t count)
{
    enum { FEW = 16 };
    if (count > FEW)
        qsort(ids, count, sizeof *ids, compare_ids);
    for (uint32_t i = 1; count <= FEW && i < count; i++) {
        uint32_t id = ids[i], k = i;
        for (; k > 0 && ids[k - 1] > id; k--)
            ids[k] = ids[k - 1];
        ids[k] = id;
    }
    uint32_t left = count > 0 ? 1 : 0;
    for (uint32_t i = 1; i < count; i++)
        if (ids[i] != ids[left - 1])
            ids[left++] = ids[i];
    return left;
}

/* Records a parent of the next node, unless no node makes the value. */
static void wait_for(unroller *u, uint32_t maker)
{
    etch_lower_require(u->arena, maker != ETCH_UNMADE);
    if (maker != ETCH_NO_NODE)
        u->deps[u->dep_count++] = maker;
}

static void add_sums(unroller *u, const etch_task *task, const etch_node *node)
{
    if (task->type == ETCH_NODE_COLL) {
        etch_comm_total *row = &u->sums->comm[task->tally];
        row->bytes += task->bytes;
        row->padded += node->bytes - task->bytes;
        row->count++;
        return;
    }
    u->sums->flop += task->flop;
    u->sums->padded_flop += node->flop - task->flop;
    u->sums->bytes += task->bytes;
    u->sums->padded_bytes += node->bytes - task->bytes;
}

/* Issues the node of a task whose parents from `first_dep` on have been recorded. Returns its id. */
static uint32_t issue(unroller *u, const etch_task *task, uint32_t first_dep)
{
    bool collective = task->type == ETCH_NODE_COLL;
    uint32_t id = u->node_count++;
    bool inside = false; /* waits for a node of its slot */
    for (uint32_t i = first_dep; i < u->dep_count; i++)
        inside = inside || u->deps[i] >= u->slot_first;
    if (collective && u->last_collective != ETCH_NO_NODE) {
        inside = inside || u->last_collective >= u->slot_first;
        wait_for(u, u->last_collective);
    }
    if (!inside)
        wait_for(u, u->before_slot);
    u->dep_count = first_dep + sort_unique(u->deps + first_dep, u->dep_count - first_dep);
    assert(u->dep_count == first_dep || u->deps[u->dep_count - 1] < id);

    etch_node *node = &u->nodes[id];
    node->type = task->type;
    node->collective = task->collective;
    node->family = task->family;
    node->flop = collective || task->flop > 0 ? task->flop : 1;
    node->bytes = task->bytes;
    uint64_t least = collective ? ETCH_LEAST_PAYLOAD : 1;
    if (node->bytes < least)
        node->bytes = least;
    node->name = add_name(u, task);
    node->first_dep = first_dep;
    node->dep_count = u->dep_count - first_dep;
    add_sums(u, task, node);
    *(collective ? &u->last_collective : &u->last_comp) = id;
    return id;
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

static uint32_t *cell_at(const unroller *u, const etch_body *body, uint32_t slot)
{
    return &u->cells[body->first_cell + u->run[body->depth] * body->slots + slot];
}

static uint32_t maker_of(const unroller *u, etch_cell cell)
{
    return cell.body ? *cell_at(u, cell.body, cell.slot) : ETCH_NO_NODE;
}

static void run_task(unroller *u, const etch_task *task, const etch_body *body)
{
    uint32_t first_dep = u->dep_count;
    for (uint32_t i = 0; i < task->read_count; i++)
        wait_for(u, maker_of(u, task->reads[i]));
    for (uint32_t i = 0; i < task->gradients.count; i++) {
        const etch_gradient *g = &u->outline->gradients.at[task->gradients.at[i]];
        wait_for(u, u->gradients[g->first_cell + u->run[g->depth]]);
    }
    uint32_t id = issue(u, task, first_dep);
    *cell_at(u, body, task->slot) = id;
    for (uint32_t i = 0; i < task->gradients.count; i++) {
        const etch_gradient *g = &u->outline->gradients.at[task->gradients.at[i]];
        u->gradients[g->first_cell + u->run[g->depth]] = id;
    }
}

/* ---- the end of a step --------------------------------------------------------------------------------- */

/* The makers of a gradient's copies in one unit. */
static uint32_t *unit_gradients(const unroller *u, const etch_gradient *gradient, uint64_t unit)
{
    return &u->gradients[gradient->first_cell + unit * gradient->unit_copies];
}

/* Runs a task of the end of the step for one of its units; a collective becomes the maker of its
 * gradients. */
static void run_unit_task(unroller *u, const etch_unit_task *unit_task, uint64_t unit)
{
    const etch_task *task = &unit_task->task;
    const prefix outer = u->prefix;
    u->prefix = (prefix){.text = ".", .length = 1};
    if (unit_task->loop_name)
        extend_prefix(&u->prefix, unit_task->loop_name, unit_task->loop_name_length, unit);
    uint32_t first_dep = u->dep_count;
    for (uint32_t i = 0; i < task->gradients.count; i++) {
        const etch_gradient *g = &u->outline->gradients.at[task->gradients.at[i]];
        const uint32_t *makers = unit_gradients(u, g, unit);
        for (uint64_t k = 0; k < g->unit_copies; k++)
            wait_for(u, makers[k]);
    }
    wait_for(u, u->clipped);
    uint32_t id = issue(u, task, first_dep);
    u->prefix = outer;
    for (uint32_t i = 0; task->type == ETCH_NODE_COLL && i < task->gradients.count; i++) {
        const etch_gradient *g = &u->outline->gradients.at[task->gradients.at[i]];
        uint32_t *makers = unit_gradients(u, g, unit);
        for (uint64_t k = 0; k < g->unit_copies; k++)
            makers[k] = id;
    }
}

static void begin_slot(unroller *u)
{
    u->slot_first = u->node_count;
    u->before_slot = u->last_comp;
}

static void run_norm(unroller *u)
{
    const etch_outline *outline = u->outline;
    if (!outline->norm)
        return;
    u->prefix = (prefix){.text = ".", .length = 1};
    uint32_t first_dep = u->dep_count;
    for (uint64_t i = 0; i < outline->gradient_cells; i++)
        wait_for(u, u->gradients[i]);
    u->clipped = issue(u, outline->norm, first_dep);
    if (!outline->norm_reduce)
        return;
    first_dep = u->dep_count;
    wait_for(u, u->clipped);
    u->clipped = issue(u, outline->norm_reduce, first_dep);
}

static void run_updates(unroller *u)
{
    begin_slot(u);
    run_norm(u);
    for (uint32_t i = 0; i < u->outline->updates.count; i++)
        for (uint64_t unit = 0; unit < u->outline->updates.at[i]->units; unit++)
            run_unit_task(u, u->outline->updates.at[i], unit);
}

/* ---- bodies -------------------------------------------------------------------------------------------- */

static void run_body(unroller *u, const etch_body *body);

/* Iterations hand values on: what the last one left goes into the next, and the loop's result is what the
 * last of all left. */
static void run_repeat(unroller *u, const etch_repeat *repeat, const etch_body *around)
{
    const etch_body *body = repeat->body;
    const uint32_t outer_prefix = u->prefix.length;
    const uint64_t first_run = u->run[around->depth] * repeat->count;
    for (uint32_t i = 0; i < repeat->handed_count; i++)
        repeat->handing[i] = maker_of(u, repeat->handed[i].init);
    for (uint64_t turn = 0; turn < repeat->count; turn++) {
        uint64_t iteration = repeat->reverse ? repeat->count - 1 - turn : turn;
        u->run[body->depth] = first_run + iteration;
        for (uint32_t i = 0; i < repeat->handed_count; i++)
            *cell_at(u, body, repeat->handed[i].in) = repeat->handing[i];
        extend_prefix(&u->prefix, repeat->name, repeat->name_length, iteration);
        run_body(u, body);
        u->prefix.length = outer_prefix;
        for (uint32_t i = 0; i < repeat->handed_count; i++)
            repeat->handing[i] = maker_of(u, repeat->handed[i].out);
        for (uint32_t i = 0; u->ending && i < repeat->after_each.count; i++)
            run_unit_task(u, repeat->after_each.at[i], iteration);
    }
    for (uint32_t i = 0; i < repeat->handed_count; i++)
        *cell_at(u, around, repeat->handed[i].result) = repeat->handing[i];
}

/* Goes as deep as loops are nested. */
static void run_body(unroller *u, const etch_body *body)
{
    for (uint32_t i = 0; i < body->parts.count; i++) {
        const etch_part *part = &body->parts.at[i];
        if (part->task)
            run_task(u, part->task, body);
        else
            run_repeat(u, part->repeat, body);
        for (uint32_t k = 0; u->ending && k < part->after.count; k++)
            run_unit_task(u, part->after.at[k], 0);
    }
}

/* ---- slots --------------------------------------------------------------------------------------------- */

/* The frame of a microbatch: the one that it has, or one that is free. */
static frame *frame_of(unroller *u, uint64_t microbatch)
{
    frame *found = NULL;
    for (uint32_t i = 0; i < u->frames.count; i++) {
        frame *f = &u->frames.at[i];
        if (f->taken && f->microbatch == microbatch)
            return f;
        if (!f->taken && !found)
            found = f;
    }
    size_t cells = (size_t)u->outline->cell_count;
    if (!found) {
        ETCH_PUSH(u->arena, &u->frames, (frame){.cells = ETCH_NEW_ARRAY(u->arena, cells, uint32_t)});
        found = &u->frames.at[u->frames.count - 1];
    }
    found->taken = true;
    found->microbatch = microbatch;
    for (size_t i = 0; i < cells; i++)
        found->cells[i] = ETCH_UNMADE;
    return found;
}

static void run_slot(unroller *u, etch_slot slot)
{
    const etch_outline *outline = u->outline;
    frame *f = frame_of(u, slot.microbatch);
    u->cells = f->cells;
    u->prefix.length = 0;
    add_number(u->prefix.text, &u->prefix.length, slot.microbatch);
    u->prefix.text[u->prefix.length++] = '.';
    begin_slot(u);
    run_body(u, slot.backward ? outline->backward : outline->forward);
    if (slot.backward || !outline->backward)
        f->taken = false;
}

void etch_unroll(etch_arena *arena, const etch_outline *outline, etch_program *program, etch_sums *sums)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(arena));
    unroller *u = ETCH_NEW(scratch, unroller);
    *u = (unroller){.arena = scratch, .outline = outline, .sums = sums};
    u->nodes = ETCH_NEW_ARRAY(arena, (size_t)outline->node_count, etch_node);
    u->deps = ETCH_NEW_ARRAY(arena, (size_t)outline->dep_count, uint32_t);
    u->names = etch_alloc(arena, (size_t)outline->name_bytes);
    u->gradients = ETCH_NEW_ARRAY(scratch, (size_t)outline->gradient_cells, uint32_t);
    for (uint64_t i = 0; i < outline->gradient_cells; i++)
        u->gradients[i] = ETCH_NO_NODE;
    u->before_slot = u->last_comp = u->last_collective = u->clipped = ETCH_NO_NODE;

    bool trains = outline->backward != NULL;
    uint64_t slots = etch_slot_count(outline->micro, trains);
    for (uint64_t i = 0; i < slots; i++) {
        u->ending = trains && i + 1 == slots;
        run_slot(u, etch_slot_at(i, trains));
    }
    u->ending = false;
    run_updates(u);
    etch_lower_require(scratch, u->node_count == outline->node_count && u->dep_count <= outline->dep_count &&
                                    u->name_bytes <= outline->name_bytes);
    *program =
        (etch_program){.nodes = u->nodes, .node_count = u->node_count, .deps = u->deps, .names = u->names};
    etch_arena_free(scratch);
}
