/* The program of a stage: every run of every task, in issue order, with the nodes that it waits for.
 *
 * A node waits for the makers of what it reads, and for those that hold the order: a collective or a send for
 * the one before it; a node that waits for nothing in its stretch, which is a slot or an iteration in it, for
 * the last computation before the stretch; a receive for the first computation of the slot before the one
 * that needs it. A node that adds into a gradient waits for the one that did so before, so that the last of
 * them stands for all. */
#include "lower/lower_int.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX_BYTES = ETCH_FULL_NAME + (ETCH_LOOP_DEPTH + 1) * (ETCH_LOOP_NAME + 24) };

/* What one microbatch in flight through one chunk has made: cells of all bodies. */
typedef struct frame {
    uint32_t *cells;
    bool taken;
    uint32_t chunk;
    uint64_t microbatch;
} frame;

/* Where in the step nodes are: what stands between the phase and the rest of a name, "0.layer3.", and the same
 * for annotations. */
typedef struct prefix {
    char text[PREFIX_BYTES];
    uint32_t length;
    bool in_microbatch, in_layer;
    uint64_t microbatch, layer;
} prefix;

/* The last nodes that a node waits for, at any distance, by number; 0: none. All collectives and sends are in
 * one order, so that who waits for one waits for those before it. */
typedef struct reach {
    uint32_t comm, receive;
    uint32_t comp; /* counted among the computations; of a computation: itself */
} reach;

/* A computation waits for one of the so many before it: that keeps those that are ready at once few, whatever
 * the model has side by side. */
enum { COMP_WINDOW = 8 };

typedef struct unroller {
    etch_arena *arena; /* scratch */
    const etch_outline *outline;
    uint32_t stage;
    etch_window window; /* units of the chunk at work */
    uint32_t chunk;
    etch_sums *sums;
    etch_node *nodes;
    etch_annotated *annotated; /* NULL: nothing is to be said */
    uint32_t *deps;
    char *names;
    int64_t *peers;
    uint32_t peer_count;
    uint32_t node_count, dep_count, name_bytes;
    ETCH_VEC(frame) frames;
    uint32_t *cells;          /* of the frame at work */
    uint32_t *gradients;      /* makers of gradients, by cell */
    uint32_t *reduced;        /* by the same: what added the last microbatch to the part of a rank */
    etch_gather_runs gathers; /* of weights, in the order of the units that need them */
    uint32_t gathers_issued, gathers_met;
    uint32_t *kept; /* by cell: what was gathered for all microbatches */
    etch_unit_count units;
    uint64_t unit_begun;    /* the last unit that has a node, counted by `units` */
    etch_unit_tasks *after; /* by part of the backward body: buckets that stand behind it */
    ETCH_VEC(etch_due) due; /* buckets that are complete and not issued yet */
    etch_flows *flows;
    uint64_t *left;                    /* by chunk: backward slots still to run */
    uint64_t run[ETCH_LOOP_DEPTH + 2]; /* by depth: the run at work of the body at that depth */
    prefix prefix;
    uint32_t stretch_first;  /* first node of the stretch */
    uint32_t before_stretch; /* last computation before it */
    uint32_t slot_comp;      /* first computation of the slot at work, or of the last one that had any */
    bool slot_computes;      /* the slot at work has had one */
    uint32_t last_comp, last_comm;
    uint32_t comp_count;
    uint32_t window_comps[COMP_WINDOW]; /* the last computations, by their count */
    reach *reaches;                     /* by node */
    uint32_t late_comm, late_recv;      /* computations that wait for the latest of these so far */
    uint32_t ahead_comm,
        ahead_recv;   /* those of them that may end after the last computation before the stretch */
    etch_task *norm;  /* while it is counted up */
    uint32_t clipped; /* makes the norm of all gradients */
    bool ending;      /* the last microbatch goes back through the chunk */
} unroller;

/* ---- names -------------------------------------------------------------------------------------------- */

/* "0.", or ".mb0.stage1." of a full name. */
static void begin_prefix(unroller *u, bool in_microbatch, uint64_t microbatch)
{
    const bool full = u->outline->naming == ETCH_NAMES_FULL;
    prefix *p = &u->prefix;
    p->length = 0;
    p->in_microbatch = in_microbatch;
    p->in_layer = false;
    p->microbatch = microbatch;
    if (full && in_microbatch)
        etch_text_add_word(p->text, &p->length, ".mb");
    if (in_microbatch)
        etch_text_add_number(p->text, &p->length, microbatch);
    if (full) {
        etch_text_add_word(p->text, &p->length, ".stage");
        etch_text_add_number(p->text, &p->length, u->stage);
    }
    p->text[p->length++] = '.';
}

/* "layer3." */
static void extend_prefix(prefix *p, const char *loop_name, uint32_t loop_name_length, uint64_t iteration)
{
    if (!p->in_layer)
        p->layer = iteration;
    p->in_layer = true;
    etch_text_add(p->text, &p->length, loop_name, loop_name_length);
    etch_text_add_number(p->text, &p->length, iteration);
    p->text[p->length++] = '.';
}

/* F of forward, R, B, S, O. */
static char phase_letter(etch_phase phase)
{
    return (char)(etch_phase_name(phase)[0] - 'a' + 'A');
}

static uint32_t add_name(unroller *u, const etch_task *task)
{
    uint32_t start = u->name_bytes;
    switch (u->outline->naming) {
    case ETCH_NAMES_NONE:
        return 0; /* where an empty one stands */
    case ETCH_NAMES_FULL:
        etch_text_add_word(u->names, &u->name_bytes, etch_type_word(task->type));
        u->names[u->name_bytes++] = '.';
        etch_text_add_word(u->names, &u->name_bytes, etch_phase_name(task->phase));
        break;
    case ETCH_NAMES_SHORT:
    case ETCH_NAMING_COUNT:
        u->names[u->name_bytes++] = phase_letter(task->phase);
        break;
    }
    etch_text_add(u->names, &u->name_bytes, u->prefix.text, u->prefix.length);
    etch_text_add(u->names, &u->name_bytes, task->name, task->name_length);
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
    if (task->type != ETCH_NODE_COMP) {
        etch_comm_total *row = task->type == ETCH_NODE_SEND   ? &u->sums->send
                               : task->type == ETCH_NODE_RECV ? &u->sums->recv
                                                              : &u->sums->comm[task->tally];
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

/* Says what is asked for and means something of the node. */
static void annotate(const unroller *u, uint32_t id, const etch_task *task)
{
    if (!u->annotated)
        return;
    const prefix *at = &u->prefix;
    const bool means[ETCH_ANNOTATION_COUNT] = {[ETCH_ANNOTATION_PHASE] = true,
                                               [ETCH_ANNOTATION_LAYER] = at->in_layer,
                                               [ETCH_ANNOTATION_MICROBATCH] = at->in_microbatch,
                                               [ETCH_ANNOTATION_OP_TYPE] = true,
                                               [ETCH_ANNOTATION_MODULE] = task->module != NULL};
    etch_annotated *a = &u->annotated[id];
    for (unsigned i = 0; i < ETCH_ANNOTATION_COUNT; i++)
        if (means[i])
            a->given |= u->outline->annotations & 1u << i;
    a->value[ETCH_ANNOTATION_PHASE].text = etch_phase_name(task->phase);
    a->value[ETCH_ANNOTATION_LAYER].number = at->layer;
    a->value[ETCH_ANNOTATION_MICROBATCH].number = at->microbatch;
    a->value[ETCH_ANNOTATION_OP_TYPE].text = task->op_type;
    a->value[ETCH_ANNOTATION_MODULE].text = task->module;
}

/* Fills the node of a task, with a name, and counts it. */
static void fill_node(unroller *u, uint32_t id, const etch_task *task, uint32_t first_dep)
{
    const bool computes = task->type == ETCH_NODE_COMP;
    const uint64_t least = computes ? 1 : ETCH_LEAST_PAYLOAD;
    etch_node *node = &u->nodes[id];
    node->type = task->type;
    node->collective = task->collective;
    node->family = task->family;
    node->flop = computes && task->flop == 0 ? 1 : task->flop;
    node->bytes = task->bytes < least ? least : task->bytes;
    node->name = add_name(u, task);
    node->first_dep = first_dep;
    node->dep_count = u->dep_count - first_dep;
    annotate(u, id, task);
    add_sums(u, task, node);
}

/* Notes what the node waits for. */
static void note_reach(unroller *u, uint32_t id, const etch_node *node)
{
    reach most = {0};
    for (uint32_t i = 0; i < node->dep_count; i++) {
        const reach *parent = &u->reaches[u->deps[node->first_dep + i]];
        most.comm = parent->comm > most.comm ? parent->comm : most.comm;
        most.receive = parent->receive > most.receive ? parent->receive : most.receive;
        most.comp = parent->comp > most.comp ? parent->comp : most.comp;
    }
    if (node->type == ETCH_NODE_COMP) {
        u->window_comps[u->comp_count % COMP_WINDOW] = id;
        most.comp = ++u->comp_count;
    }
    if (node->type == ETCH_NODE_RECV)
        most.receive = id + 1;
    else if (node->type != ETCH_NODE_COMP)
        most.comm = id + 1;
    u->reaches[id] = most;
    if (node->type != ETCH_NODE_COMP)
        return;
    if (u->late_comm == ETCH_NO_NODE || most.comm >= u->reaches[u->late_comm].comm)
        u->late_comm = id;
    if (u->late_recv == ETCH_NO_NODE || most.receive >= u->reaches[u->late_recv].receive)
        u->late_recv = id;
}

/* A computation that waits for none of the last few waits for the earliest of them. */
static void keep_in_window(unroller *u, uint32_t first_dep)
{
    uint32_t latest = 0;
    for (uint32_t i = first_dep; i < u->dep_count; i++) {
        const uint32_t comp = u->reaches[u->deps[i]].comp;
        latest = comp > latest ? comp : latest;
    }
    if (u->comp_count >= latest + COMP_WINDOW)
        wait_for(u, u->window_comps[u->comp_count % COMP_WINDOW]);
}

/* Issues the node of a task whose parents from `first_dep` on have been recorded. Returns its id. */
static uint32_t issue(unroller *u, const etch_task *task, uint32_t first_dep)
{
    bool communicates = task->type != ETCH_NODE_COMP;
    uint32_t id = u->node_count++;
    bool inside = false; /* waits for a node of its stretch */
    for (uint32_t i = first_dep; i < u->dep_count; i++)
        inside = inside || u->deps[i] >= u->stretch_first;
    if (communicates && u->last_comm != ETCH_NO_NODE) {
        inside = inside || u->last_comm >= u->stretch_first;
        wait_for(u, u->last_comm);
    }
    if (!inside) {
        wait_for(u, u->before_stretch);
        wait_for(u, u->ahead_comm);
        wait_for(u, u->ahead_recv);
    }
    if (!communicates)
        keep_in_window(u, first_dep);
    u->dep_count = first_dep + sort_unique(u->deps + first_dep, u->dep_count - first_dep);
    assert(u->dep_count == first_dep || u->deps[u->dep_count - 1] < id);
    fill_node(u, id, task, first_dep);
    note_reach(u, id, &u->nodes[id]);
    if (communicates) {
        u->last_comm = id;
        return id;
    }
    u->last_comp = id;
    if (!u->slot_computes)
        u->slot_comp = id;
    u->slot_computes = true;
    return id;
}

/* What follows is a stretch of its own: nodes that wait for nothing in it wait for what comes before it. That is
 * its last computation, and one that may end still later, because it waits for communication and the last one
 * does not. */
static void begin_stretch(unroller *u)
{
    u->stretch_first = u->node_count;
    u->before_stretch = u->last_comp;
    u->ahead_comm = u->ahead_recv = ETCH_NO_NODE;
    if (u->last_comp == ETCH_NO_NODE)
        return;
    const reach *last = &u->reaches[u->last_comp];
    if (u->reaches[u->late_comm].comm > last->comm)
        u->ahead_comm = u->late_comm;
    if (u->reaches[u->late_recv].receive > last->receive)
        u->ahead_recv = u->late_recv;
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

static void gather_ahead(unroller *u, uint32_t node);

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
    gather_ahead(u, id);
}

/* ---- gathers of weights -------------------------------------------------------------------------------- */

/* Behind `trigger`, the first node of a unit before; when there is none, behind all that has computed. The part
 * that backward gathers from is there since forward gathered: that communication is earlier. */
static void issue_gather(unroller *u, etch_gather_run *run, uint32_t trigger)
{
    const prefix outer = u->prefix;
    begin_prefix(u, true, run->microbatch);
    if (run->repeat)
        extend_prefix(&u->prefix, run->repeat->name, run->repeat->name_length, run->iteration);
    const uint32_t first_dep = u->dep_count;
    wait_for(u, trigger != ETCH_NO_NODE ? trigger : u->last_comp);
    run->id = issue(u, run->task, first_dep);
    u->prefix = outer;
}

static void issue_gathers(unroller *u, uint64_t last_unit, uint32_t trigger)
{
    for (; u->gathers_issued < u->gathers.count && u->gathers.at[u->gathers_issued].unit <= last_unit;
         u->gathers_issued++)
        issue_gather(u, &u->gathers.at[u->gathers_issued], trigger);
}

/* A unit finds what was gathered for it. */
static void take_gather(unroller *u, const etch_task *task, const etch_body *body)
{
    uint32_t *cell = cell_at(u, body, task->slot);
    uint32_t *kept = &u->kept[cell - u->cells];
    if (!task->once || *kept == ETCH_NO_NODE) {
        issue_gathers(u, u->units.number, ETCH_NO_NODE);
        *kept = u->gathers.at[u->gathers_met++].id;
    }
    *cell = *kept;
}

/* With the first node of a unit, those that follow gather what they need. */
static void gather_ahead(unroller *u, uint32_t node)
{
    if (u->unit_begun == u->units.number)
        return;
    u->unit_begun = u->units.number;
    if (u->outline->ahead > 0)
        issue_gathers(u, u->units.number + u->outline->ahead, node);
}

/* ---- the end of a step --------------------------------------------------------------------------------- */

/* The first cell of a gradient's copies in one unit. */
static uint64_t unit_gradients(const etch_gradient *gradient, uint64_t unit)
{
    return gradient->first_cell + unit * gradient->unit_copies;
}

/* For the gradients that a task of the end of the step reads. */
static void wait_for_gradients(unroller *u, const etch_unit_task *unit_task, uint64_t unit)
{
    for (uint32_t i = 0; i < unit_task->task.gradients.count; i++) {
        const etch_gradient *g = &u->outline->gradients.at[unit_task->task.gradients.at[i]];
        const uint64_t first = unit_gradients(g, unit);
        for (uint64_t k = 0; k < g->unit_copies; k++) {
            const bool added = u->gradients[first + k] != ETCH_NO_NODE;
            wait_for(u, added ? u->gradients[first + k] : u->reduced[first + k]);
        }
    }
}

/* What makes a task's gradients from now on. The next microbatch makes them anew where each adds to the part of a
 * rank. */
static void make_gradients(unroller *u, const etch_unit_task *unit_task, uint64_t unit, uint32_t id)
{
    const etch_task *task = &unit_task->task;
    for (uint32_t i = 0; i < task->gradients.count; i++) {
        const etch_gradient *g = &u->outline->gradients.at[task->gradients.at[i]];
        const uint64_t first = unit_gradients(g, unit);
        for (uint64_t k = 0; k < g->unit_copies; k++) {
            u->gradients[first + k] = unit_task->anew ? ETCH_NO_NODE : id;
            u->reduced[first + k] = id;
        }
    }
}

/* A piece of a stream waits for all that it is of, and is their maker as far as it has them: the last piece of a
 * task stands for those before it. */
static void send_piece(unroller *u, const etch_stream_piece *piece)
{
    const prefix outer = u->prefix;
    etch_task task = piece->members[0].task->task;
    task.bytes = piece->bytes;
    task.name = piece->stream->name;
    task.name_length = piece->stream->name_length;
    task.module = NULL; /* of any */
    begin_prefix(u, false, 0);
    extend_prefix(&u->prefix, "bucket", 6, piece->number);
    u->prefix.in_layer = false;
    const uint32_t first_dep = u->dep_count;
    for (uint32_t i = 0; i < piece->member_count; i++)
        wait_for_gradients(u, piece->members[i].task, piece->members[i].unit);
    const uint32_t id = issue(u, &task, first_dep);
    u->prefix = outer;
    for (uint32_t i = 0; i < piece->member_count; i++)
        make_gradients(u, piece->members[i].task, piece->members[i].unit, id);
}

/* Runs a task of the end of the step for one of its units, which becomes the maker of its gradients: of their
 * sums, or of the weights that they have changed. */
static void run_unit_task(unroller *u, const etch_unit_task *unit_task, uint64_t unit)
{
    const etch_task *task = &unit_task->task;
    const prefix outer = u->prefix;
    etch_stream_piece piece;
    if (unit_task->stream) {
        etch_flows_add(u->flows, (etch_due){unit_task, unit});
        while (etch_flows_next(u->flows, &piece))
            send_piece(u, &piece);
        return;
    }
    begin_prefix(u, unit_task->every_microbatch, outer.microbatch);
    if (unit_task->loop_name)
        extend_prefix(&u->prefix, unit_task->loop_name, unit_task->loop_name_length, unit);
    uint32_t first_dep = u->dep_count;
    wait_for_gradients(u, unit_task, unit);
    if (task->type == ETCH_NODE_COMP) { /* one after the other, as the optimizer steps through its groups */
        wait_for(u, u->clipped);
        wait_for(u, u->last_comp);
    }
    uint32_t id = issue(u, task, first_dep);
    u->prefix = outer;
    make_gradients(u, unit_task, unit, id);
}

static bool is_of_class(const etch_unit_task *task, uint64_t unit)
{
    return etch_class_at(task->classes, unit) == task->class;
}

/* Calls `run` for the units of the task that the stage holds. */
static void each_unit(unroller *u, const etch_unit_task *task,
                      void (*run)(unroller *u, const etch_unit_task *task, uint64_t unit))
{
    const etch_chain *chain = &u->outline->chain;
    if (!task->staged) {
        for (uint64_t unit = 0; unit < task->units && etch_unit_task_runs(chain, u->stage, task); unit++)
            if (is_of_class(task, unit))
                run(u, task, unit);
        return;
    }
    for (uint32_t link = u->stage; link < etch_link_count(chain); link += chain->stage_count) {
        etch_window held = etch_overlap(chain->windows[link], task->uses[0]);
        for (uint64_t unit = held.first; unit < held.end; unit++)
            if (is_of_class(task, unit - task->uses[0].first))
                run(u, task, unit - task->uses[0].first);
    }
}

static void run_units(unroller *u, const etch_unit_tasks *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        each_unit(u, list->at[i], run_unit_task);
}

/* What is sent in pieces is reduced in the order in which the backward pass has made it: the units that were used
 * last come first. */
static void run_backwards(unroller *u, const etch_unit_task *task)
{
    const etch_chain *chain = &u->outline->chain;
    for (uint64_t unit = task->units; unit-- > 0;)
        if (is_of_class(task, unit) && etch_unit_task_holds(chain, u->stage, task, unit))
            run_unit_task(u, task, unit);
}

/* The reductions that wait for the end of the backward pass. */
static void reduce_last(unroller *u)
{
    const etch_unit_tasks *buckets = &u->outline->buckets;
    for (uint32_t i = 0; i < buckets->count; i++) {
        if (buckets->at[i]->every_microbatch)
            continue;
        if (u->outline->streams.count == 0)
            each_unit(u, buckets->at[i], run_unit_task);
        else
            run_backwards(u, buckets->at[i]);
    }
}

/* Adds a unit's work to the norm, which is counted up in the last of the nodes. */
static void add_to_norm(unroller *u, const etch_unit_task *unit_task, uint64_t unit)
{
    etch_task *norm = u->norm;
    const etch_task *task = &unit_task->task;
    norm->flop += task->flop;
    norm->bytes += task->bytes;
    wait_for_gradients(u, unit_task, unit);
}

static void run_norm(unroller *u)
{
    const etch_outline *outline = u->outline;
    if (!outline->norm)
        return;
    begin_prefix(u, false, 0);
    etch_task norm = *outline->norm;
    norm.bytes = ETCH_SCALAR_BYTES;
    u->norm = &norm;
    uint32_t first_dep = u->dep_count;
    for (uint32_t i = 0; i < outline->norms.count; i++)
        each_unit(u, outline->norms.at[i], add_to_norm);
    u->clipped = issue(u, &norm, first_dep);
    u->norm = NULL;
    if (!outline->norm_reduce)
        return;
    first_dep = u->dep_count;
    wait_for(u, u->clipped);
    u->clipped = issue(u, outline->norm_reduce, first_dep);
}

static void run_end(unroller *u)
{
    begin_stretch(u);
    if (u->outline->chain.reduce_last)
        reduce_last(u);
    run_units(u, &u->outline->ties);
    run_norm(u);
    run_units(u, &u->outline->updates);
    run_units(u, &u->outline->gathers);
}

/* ---- where buckets stand ------------------------------------------------------------------------------- */

static bool holds_part(const unroller *u, uint32_t part)
{
    return etch_stage_holds(&u->outline->chain, u->stage, u->outline->backward->parts.at[part].units);
}

/* The last part of the stage that adds to a gradient of the bucket; the last of all when none does. */
static uint32_t last_adder(const unroller *u, const etch_unit_task *bucket)
{
    const etch_body *backward = u->outline->backward;
    uint32_t last = UINT32_MAX;
    for (uint32_t g = 0; g < bucket->task.gradients.count; g++) {
        const etch_gradient *gradient = &u->outline->gradients.at[bucket->task.gradients.at[g]];
        for (uint32_t i = 0; i < gradient->adders.count; i++) {
            uint32_t part = gradient->adders.at[i];
            if (holds_part(u, part) && (last == UINT32_MAX || part > last))
                last = part;
        }
    }
    for (uint32_t part = backward->parts.count; last == UINT32_MAX && part-- > 0;)
        if (holds_part(u, part))
            last = part;
    return last;
}

/* Buckets of the top level stand at the end of the stretch between loops that completes them. */
static void place_buckets(unroller *u)
{
    const etch_body *backward = u->outline->backward;
    u->after = ETCH_NEW_ARRAY(u->arena, backward->parts.count, etch_unit_tasks);
    for (uint32_t i = 0; i < u->outline->buckets.count; i++) {
        etch_unit_task *bucket = u->outline->buckets.at[i];
        if (bucket->loop_name || !etch_unit_task_runs(&u->outline->chain, u->stage, bucket))
            continue;
        uint32_t at = last_adder(u, bucket);
        etch_lower_require(u->arena, at != UINT32_MAX);
        while (backward->parts.at[at].task && at + 1 < backward->parts.count &&
               backward->parts.at[at + 1].task && holds_part(u, at + 1))
            at++;
        ETCH_PUSH(u->arena, &u->after[at], bucket);
    }
}

/* ---- bodies -------------------------------------------------------------------------------------------- */

static void run_body(unroller *u, const etch_body *body);

/* Buckets follow what completes them, but let the message of the slot go first: the stage before waits for
 * it. */
static void run_due(unroller *u)
{
    for (uint32_t i = 0; i < u->due.count; i++)
        run_unit_task(u, u->due.at[i].task, u->due.at[i].unit);
    u->due.count = 0;
}

/* Iterations of nothing: there may be more of them than anyone can count. */
static bool does_nothing(const etch_repeat *repeat)
{
    for (uint32_t i = 0; i < repeat->body_count; i++)
        if (repeat->bodies[i]->parts.count > 0 || repeat->bodies[i]->after_each.count > 0)
            return false;
    return repeat->handed_count == 0;
}

/* Iterations hand values on: what the last one left goes into the next, and the loop's result is what the
 * last of all left. What the first iteration of a chunk is handed has come with a message. */
static void run_repeat(unroller *u, const etch_part *part, const etch_body *around)
{
    const etch_repeat *repeat = part->repeat;
    const etch_window turns = etch_part_turns(part, u->window);
    const bool begins = repeat->reverse ? turns.end == repeat->count : turns.first == 0;
    const bool ends = repeat->reverse ? turns.first == 0 : turns.end == repeat->count;
    const uint32_t outer_prefix = u->prefix.length;
    const bool outer_layer = u->prefix.in_layer;
    const uint64_t first_run = u->run[around->depth] * repeat->count;
    for (uint32_t i = 0; begins && i < repeat->handed_count; i++)
        repeat->handing[i] = maker_of(u, repeat->handed[i].init);
    for (uint64_t turn = 0; turn < turns.end - turns.first; turn++) {
        uint64_t iteration = repeat->reverse ? turns.end - 1 - turn : turns.first + turn;
        const etch_body *body = etch_body_at(repeat, iteration);
        u->run[body->depth] = first_run + iteration;
        for (uint32_t i = 0; (begins || turn > 0) && i < repeat->handed_count; i++)
            *cell_at(u, body, body->taken[i].in) = repeat->handing[i];
        run_due(u);
        extend_prefix(&u->prefix, repeat->name, repeat->name_length, iteration);
        if (!around->parent) {
            begin_stretch(u);
            etch_units_iteration(&u->units);
        }
        run_body(u, body);
        u->prefix.length = outer_prefix;
        u->prefix.in_layer = outer_layer;
        for (uint32_t i = 0; i < repeat->handed_count; i++)
            repeat->handing[i] = maker_of(u, body->taken[i].out);
        for (uint32_t i = 0; i < body->after_each.count; i++)
            if (u->ending || body->after_each.at[i]->every_microbatch)
                ETCH_PUSH(u->arena, &u->due, (etch_due){body->after_each.at[i], iteration});
    }
    for (uint32_t i = 0; ends && i < repeat->handed_count; i++)
        *cell_at(u, around, repeat->handed[i].result) = repeat->handing[i];
}

/* Does the part belong to the chunk at work? */
static bool is_at_work(const unroller *u, const etch_body *body, const etch_part *part)
{
    etch_window held = body->parent ? (etch_window){0, 1} : etch_overlap(u->window, part->units);
    return held.first < held.end;
}

/* Has the part run for the last time on the stage? A loop may be in several chunks. */
static bool is_complete(const unroller *u, const etch_part *part)
{
    const etch_chain *chain = &u->outline->chain;
    for (uint32_t chunk = 0; chunk < chain->chunk_count; chunk++) {
        etch_window held = etch_overlap(chain->windows[chunk * chain->stage_count + u->stage], part->units);
        if (held.first < held.end && u->left[chunk] > 0)
            return false;
    }
    return true;
}

/* Has the part run for the last time on the stage for the microbatch at work? Backward goes through the chunks in
 * falling order. */
static bool is_complete_now(const unroller *u, const etch_part *part)
{
    const etch_chain *chain = &u->outline->chain;
    for (uint32_t chunk = 0; chunk < u->chunk; chunk++) {
        etch_window held = etch_overlap(chain->windows[chunk * chain->stage_count + u->stage], part->units);
        if (held.first < held.end)
            return false;
    }
    return true;
}

/* What stands behind a part of the backward body. */
static void add_due(unroller *u, uint32_t part_index, const etch_part *part)
{
    const bool last = u->ending && is_complete(u, part), now = is_complete_now(u, part);
    for (uint32_t i = 0; i < u->after[part_index].count; i++) {
        const etch_unit_task *bucket = u->after[part_index].at[i];
        if (bucket->every_microbatch ? now : last)
            ETCH_PUSH(u->arena, &u->due, (etch_due){bucket, 0});
    }
}

/* Goes as deep as loops are nested. */
static void run_body(unroller *u, const etch_body *body)
{
    for (uint32_t i = 0; i < body->parts.count; i++) {
        const etch_part *part = &body->parts.at[i];
        if (!is_at_work(u, body, part))
            continue;
        run_due(u);
        if (part->task && !body->parent)
            etch_units_task(&u->units, part->task);
        if (part->task && part->task->gathers)
            take_gather(u, part->task, body);
        else if (part->task)
            run_task(u, part->task, body);
        else if (!does_nothing(part->repeat))
            run_repeat(u, part, body);
        if (body == u->outline->backward)
            add_due(u, i, part);
        if (part->repeat && !body->parent)
            etch_units_begin_stretch(&u->units);
    }
}

/* ---- messages ------------------------------------------------------------------------------------------ */

/* A message of the slot at work, between `link` and the one behind it. */
typedef struct passing {
    const etch_message *message;
    etch_slot slot;
    uint32_t link;  /* the earlier of the two */
    uint32_t other; /* the link that it comes from or goes to */
} passing;

static uint32_t peer_of(unroller *u, uint32_t other_stage)
{
    const int64_t *rank_of = u->outline->chain.rank_of;
    const int64_t difference = rank_of[other_stage] - rank_of[u->stage];
    uint32_t i = 0;
    while (i < u->peer_count && u->peers[i] != difference)
        i++;
    if (i == u->peer_count)
        u->peers[u->peer_count++] = difference;
    return i;
}

static etch_task task_of(const unroller *u, const passing *p, uint8_t type, char name[ETCH_MESSAGE_NAME])
{
    const etch_chain *chain = &u->outline->chain;
    const char *verb = type == ETCH_NODE_SEND ? "send" : "recv";
    uint32_t stage = p->other % chain->stage_count, chunk = p->other / chain->stage_count;
    int length = chain->chunk_count > 1
                     ? snprintf(name, ETCH_MESSAGE_NAME, "%s.stage%u.chunk%u", verb, stage, chunk)
                     : snprintf(name, ETCH_MESSAGE_NAME, "%s.stage%u", verb, stage);
    return (etch_task){.type = type,
                       .bytes = p->message->bytes,
                       .phase = p->slot.backward ? ETCH_BACKWARD : ETCH_FORWARD,
                       .op_type = verb,
                       .name = name,
                       .name_length = (uint32_t)length};
}

static void set_message(unroller *u, uint32_t id, const passing *p)
{
    const etch_chain *chain = &u->outline->chain;
    etch_node *node = &u->nodes[id];
    node->peer = (uint16_t)peer_of(u, p->other % chain->stage_count);
    node->tag = (uint32_t)((p->slot.microbatch * chain->chunk_count + p->link / chain->stage_count) * 2 +
                           p->slot.backward);
}

/* The cell of a value that a message brings. */
static uint32_t *arrival_of(unroller *u, const etch_wire *wire)
{
    if (!wire->repeat)
        return cell_at(u, wire->cell.body, wire->cell.slot);
    const etch_repeat *repeat = wire->repeat;
    const etch_body *top = repeat->bodies[0]->parent, *body = NULL;
    for (uint32_t i = 0; i < top->parts.count; i++) {
        if (top->parts.at[i].repeat != repeat)
            continue;
        etch_window turns = etch_part_turns(&top->parts.at[i], u->window);
        const uint64_t first = repeat->reverse ? turns.end - 1 : turns.first;
        body = etch_body_at(repeat, first);
        u->run[body->depth] = first;
    }
    return cell_at(u, body, body->taken[wire->carry].in);
}

/* A receive is posted while the slot before is at work: it waits for that slot's first computation. */
static void receive(unroller *u, const passing *p)
{
    char name[ETCH_MESSAGE_NAME];
    if (!p->message || p->message->wire_count == 0)
        return;
    const etch_task task = task_of(u, p, ETCH_NODE_RECV, name);
    const uint32_t id = u->node_count++, first_dep = u->dep_count;
    wait_for(u, u->slot_comp);
    fill_node(u, id, &task, first_dep);
    note_reach(u, id, &u->nodes[id]);
    set_message(u, id, p);
    for (uint32_t i = 0; i < p->message->wire_count; i++)
        *arrival_of(u, &p->message->wires[i]) = id;
}

static void send(unroller *u, const passing *p)
{
    char name[ETCH_MESSAGE_NAME];
    if (!p->message || p->message->wire_count == 0)
        return;
    const etch_task task = task_of(u, p, ETCH_NODE_SEND, name);
    const uint32_t first_dep = u->dep_count;
    for (uint32_t i = 0; i < p->message->wire_count; i++) {
        const etch_wire *wire = &p->message->wires[i];
        wait_for(u, wire->repeat ? wire->repeat->handing[wire->carry] : maker_of(u, wire->cell));
    }
    set_message(u, issue(u, &task, first_dep), p);
}

/* What comes in before the slot, or goes out after it. */
static passing passing_of(const unroller *u, etch_slot slot, bool out)
{
    const etch_chain *chain = &u->outline->chain;
    const uint32_t link = slot.chunk * chain->stage_count + u->stage;
    const bool later = out != slot.backward; /* the other link is the one behind this one */
    passing p = {.slot = slot, .link = later ? link : link - 1, .other = later ? link + 1 : link - 1};
    if (later ? link + 1 == etch_link_count(chain) : link == 0)
        return p;
    p.message = slot.backward ? &chain->backward[p.link] : &chain->forward[p.link];
    return p;
}

/* ---- slots --------------------------------------------------------------------------------------------- */

/* Forgets what the chunk at work may have made in these runs of a body: of the iterations that are units only its
 * own. Goes as deep as loops are nested. */
static void clear_cells(const unroller *u, uint32_t *cells, const etch_body *body, etch_window runs)
{
    uint32_t *first = cells + body->first_cell + runs.first * body->slots;
    for (uint64_t i = 0; i < (runs.end - runs.first) * body->slots; i++)
        first[i] = ETCH_UNMADE;
    for (uint32_t i = 0; i < body->parts.count; i++) {
        const etch_part *part = &body->parts.at[i];
        if (!part->repeat)
            continue;
        const uint64_t count = part->repeat->count;
        const etch_window inner = part->staged ? etch_part_turns(part, u->window)
                                               : (etch_window){runs.first * count, runs.end * count};
        for (uint32_t k = 0; k < part->repeat->body_count; k++)
            if (part->repeat->bodies[k]->runs > 0)
                clear_cells(u, cells, part->repeat->bodies[k], inner);
    }
}

/* The frame of a microbatch in a chunk: the one that it has, or one that is free. */
static frame *frame_of(unroller *u, etch_slot slot)
{
    frame *found = NULL;
    for (uint32_t i = 0; i < u->frames.count; i++) {
        frame *f = &u->frames.at[i];
        if (f->taken && f->microbatch == slot.microbatch && f->chunk == slot.chunk)
            return f;
        if (!f->taken && !found)
            found = f;
    }
    size_t cells = (size_t)u->outline->cell_count;
    if (!found) {
        ETCH_PUSH(u->arena, &u->frames, (frame){.cells = ETCH_NEW_ARRAY(u->arena, cells, uint32_t)});
        found = &u->frames.at[u->frames.count - 1];
        for (size_t i = 0; i < cells; i++)
            found->cells[i] = ETCH_UNMADE;
    }
    found->taken = true;
    found->microbatch = slot.microbatch;
    found->chunk = slot.chunk;
    clear_cells(u, found->cells, u->outline->forward, (etch_window){0, 1});
    if (u->outline->backward)
        clear_cells(u, found->cells, u->outline->backward, (etch_window){0, 1});
    return found;
}

static void run_slot(unroller *u, etch_slot slot)
{
    const etch_outline *outline = u->outline;
    const passing in = passing_of(u, slot, false), out = passing_of(u, slot, true);
    u->window = outline->chain.windows[slot.chunk * outline->chain.stage_count + u->stage];
    u->chunk = slot.chunk;
    frame *f = frame_of(u, slot);
    u->cells = f->cells;
    begin_prefix(u, true, slot.microbatch);
    receive(u, &in);
    begin_stretch(u);
    etch_units_begin_stretch(&u->units);
    u->slot_computes = false;
    u->ending = slot.backward && --u->left[slot.chunk] == 0 && !outline->chain.reduce_last;
    run_body(u, slot.backward ? outline->backward : outline->forward);
    u->ending = false;
    send(u, &out);
    run_due(u);
    if (slot.backward || !outline->backward)
        f->taken = false;
}

static void run_slots(unroller *u)
{
    const etch_chain *chain = &u->outline->chain;
    const etch_pipe pipe = {.schedule = chain->schedule,
                            .stages = chain->stage_count,
                            .chunks = chain->chunk_count,
                            .microbatches = u->outline->micro,
                            .trains = u->outline->backward != NULL};
    const uint64_t slot_count = etch_slot_count(&pipe);
    const etch_slot *slots = etch_slots(u->arena, &pipe, u->stage);
    u->left = ETCH_NEW_ARRAY(u->arena, chain->chunk_count, uint64_t);
    for (uint32_t i = 0; i < chain->chunk_count; i++)
        u->left[i] = u->outline->micro;
    etch_gather_runs_find(u->arena, u->outline, u->stage, slots, slot_count, &u->gathers);
    for (uint64_t i = 0; i < slot_count; i++)
        run_slot(u, slots[i]);
    etch_lower_require(u->arena, u->gathers_met == u->gathers.count);
}

void etch_unroll(etch_arena *arena, const etch_outline *outline, uint32_t stage, const etch_size *size,
                 etch_program *program, etch_sums *sums)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(arena));
    unroller *u = ETCH_NEW(scratch, unroller);
    *u = (unroller){.arena = scratch, .outline = outline, .stage = stage, .sums = sums};
    u->nodes = ETCH_NEW_ARRAY(arena, (size_t)size->nodes, etch_node);
    u->deps = ETCH_NEW_ARRAY(arena, (size_t)size->deps, uint32_t);
    u->names = etch_alloc(arena, (size_t)size->name_bytes);
    u->names[0] = '\0';
    if (outline->annotations != 0)
        u->annotated = ETCH_NEW_ARRAY(arena, (size_t)size->nodes, etch_annotated);
    u->peers = ETCH_NEW_ARRAY(arena, 2 * (size_t)outline->chain.chunk_count + 2, int64_t);
    u->reaches = ETCH_NEW_ARRAY(scratch, (size_t)size->nodes, reach);
    u->gradients = ETCH_NEW_ARRAY(scratch, (size_t)outline->gradient_cells, uint32_t);
    u->reduced = ETCH_NEW_ARRAY(scratch, (size_t)outline->gradient_cells, uint32_t);
    for (uint64_t i = 0; i < outline->gradient_cells; i++)
        u->gradients[i] = u->reduced[i] = ETCH_NO_NODE;
    if (outline->gathers_weights) {
        u->kept = ETCH_NEW_ARRAY(scratch, (size_t)outline->cell_count, uint32_t);
        for (uint64_t i = 0; i < outline->cell_count; i++)
            u->kept[i] = ETCH_NO_NODE;
    }
    u->late_comm = u->late_recv = u->ahead_comm = u->ahead_recv = ETCH_NO_NODE;
    u->before_stretch = u->last_comp = u->last_comm = u->slot_comp = u->clipped = ETCH_NO_NODE;
    u->flows = etch_flows_new(scratch, outline, stage);
    if (outline->backward)
        place_buckets(u);
    run_slots(u);
    run_end(u);
    etch_lower_require(scratch, u->node_count == size->nodes && u->dep_count <= size->deps &&
                                    u->name_bytes <= size->name_bytes);
    *program = (etch_program){.nodes = u->nodes,
                              .node_count = u->node_count,
                              .deps = u->deps,
                              .names = u->names,
                              .annotated = u->annotated,
                              .peers = u->peers,
                              .peer_count = u->peer_count};
    etch_arena_free(scratch);
}
