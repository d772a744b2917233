/* Inside lower: bind -> outline -> unroll. An outline is the placed graph in numbers, its loops still
 * loops; unrolling it gives the program of a rank. */
#ifndef ETCH_LOWER_INT_H
#define ETCH_LOWER_INT_H

#include "lower/lower.h"

enum {
    /* bytes: simulators loop or reject below */
    ETCH_LEAST_PAYLOAD = 64,
    /* Of the first computation of a rank, bytes or FLOP: one that ends in the nanosecond in which it begins
     * ends ASTRA-sim. No machine of the next years gets through as many in one. */
    ETCH_LEAST_FIRST_BYTES = 1 << 15,
    ETCH_LEAST_FIRST_FLOP = 1 << 25,
    ETCH_LOOP_DEPTH = 64,
    /* iterations of a loop in a microbatch, those of the loops around it together */
    ETCH_MOST_RUNS = 1 << 22,
    /* of the program of a rank; what reads traces takes no more */
    ETCH_MOST_RANK_NODES = 1 << 22,
    /* most bytes of a loop's name, and of what follows it, in the name of a node */
    ETCH_LOOP_NAME = 16,
    ETCH_TASK_NAME = 40,
    ETCH_MESSAGE_NAME = 48,
    /* most bytes of what runs of a ring and its messages add to a name, beside a number */
    ETCH_RING_NAME = 16,
    /* bytes of a full name beside its path, at most: type, phase, "mb", stage */
    ETCH_FULL_NAME = 64
};

/* Ids of nodes are below these. */
#define ETCH_NO_NODE UINT32_MAX      /* the maker of what no node makes: weights, inputs, zeros */
#define ETCH_UNMADE (UINT32_MAX - 1) /* the maker of what has not been made yet */
#define ETCH_MOST_NODES (UINT32_MAX - 2)
/* Cells of the microbatches under way, of all programs of a job together: every stage fills them for
 * itself. */
enum { ETCH_MOST_JOB_CELLS = 250000000 };

typedef ETCH_VEC(etch_workload) etch_workloads;

/* Text and its bytes. */
typedef struct etch_word {
    const char *text;
    uint32_t length;
} etch_word;

etch_word etch_word_of(const char *text);

/* Ends with ETCH_EINTERNAL unless what must hold for every placed graph does. */
void etch_lower_require(etch_arena *arena, bool holds);

/* ---- bind.c: values ------------------------------------------------------------------------------------ */

/* A variable without a value and the first thing that needs it. */
typedef struct etch_missing_value {
    etch_expr var;
    etch_span span;
    const char *what;
} etch_missing_value;

/* The values that a number may have. */
typedef struct etch_condition {
    int64_t least;
    /* more than `least` */
    bool above;
    /* may be no integer */
    bool fraction;
    /* and at most 1 */
    bool share;
} etch_condition;

/* A number of the model or of the plan, and what has to hold of it. */
typedef struct etch_asked {
    etch_expr expr;
    etch_condition condition;
    etch_span span;
    /* "dim " and "embed" */
    const char *kind, *name;
    /* lowering does without its value */
    bool optional;
} etch_asked;

/* Values, and what they are put into. */
typedef struct etch_bound {
    etch_arena *arena;
    etch_sym *sym;
    etch_diags *diags;
    const etch_values *from;
    /* as they are given, and put into one another */
    etch_expr *vars, *values;
    /* values of expressions */
    etch_map known;
    ETCH_VEC(etch_asked) asked;
    ETCH_VEC(etch_missing_value) missing;
} etch_bound;

/* The mesh and the step in numbers. */
typedef struct etch_extent {
    uint32_t axis_count;
    uint32_t axis_size[ETCH_MAX_AXES];
    /* bits of the axes of more than one rank */
    uint32_t larger_axes;
    uint32_t rank_count;
    etch_pipe pipe;
} etch_extent;

/* Looks at everything that lowering reads of values for a placed graph: what is missing, assumptions, sizes,
 * requirements. ETCH_OK, or the status that the diagnostics explain. `scratch` keeps what is bound, and
 * `values` outlives it. */
etch_status etch_bind(etch_arena *scratch, const etch_values *values, etch_bound **bound,
                      etch_extent *extent) ETCH_MUST_CHECK;
/* The same without a look at anything. */
etch_bound *etch_bound_new(etch_arena *scratch, etch_sym *sym, etch_diags *diags, const etch_values *values);
/* The value of an expression, computed once: a constant when `etch_bind` went well, NULL when it is
 * undefined. */
etch_expr etch_bound_value(etch_bound *bound, etch_expr expr);
/* Its text, "undefined" for NULL. */
const char *etch_bound_text(etch_bound *bound, etch_expr expr);
/* The values given, in their order; texts live in `arena`. */
const etch_binding *etch_bound_list(etch_bound *bound, etch_arena *arena);

/* ---- conditions.c: what must hold of values ------------------------------------------------------------ */

/* Lists the numbers of the model, and of the plan. */
void etch_bound_ask(etch_bound *bound);
/* Do the values hold, what has none as long as some value would do? Reports what does not. Fills the extent
 * as far as there are values. */
bool etch_check_values(etch_bound *bound, etch_extent *extent);

/* ---- groups.c ------------------------------------------------------------------------------------------ */

/* Whom a collective joins: the ranks that differ in some mesh axes only; or, where stages are listed, those
 * of these stages that are alike in all else. */
typedef struct etch_group_set {
    /* axes larger than 1, at least one */
    uint32_t axes;
    /* ascending; NULL: the axes alone say it */
    const uint32_t *stages;
    uint32_t stage_count;
} etch_group_set;

typedef ETCH_VEC(struct etch_task *) etch_tasks;

/* The families of the job, whose mesh is set: one for each different set of the collectives, in rising order
 * of axes, then of stages. Tells every collective its family. They have no ids yet. */
void etch_families_make(etch_arena *arena, const etch_placed *placed, etch_tasks *collectives, etch_job *job);
/* Numbers the groups that the programs of the job use. */
void etch_families_number(etch_arena *arena, etch_job *job);
/* The same for families of another mesh, which know what stages they are of. */
void etch_families_resize(etch_arena *arena, etch_job *job);
/* The place of a rank on a mesh axis. */
uint32_t etch_rank_coordinate(const etch_job *job, uint32_t rank, uint32_t axis);
/* The first rank of a stage. */
uint32_t etch_stage_rank(const etch_job *job, uint32_t stage);

/* ---- outline.c: the program before it is unrolled ------------------------------------------------------ */

/* Where the maker of a value is looked up: a body keeps its registers once for each time that it runs in a
 * microbatch. */
typedef struct etch_register {
    /* NULL: no node makes it */
    const struct etch_body *body;
    uint32_t index;
} etch_register;

/* A task becomes one node each time it runs. */
typedef struct etch_task {
    /* NULL: belongs to the end of the step */
    const etch_step_task *of;
    /* exact, before the least values of a trace */
    uint64_t flop, bytes;
    /* of `workloads` of the outline */
    uint32_t workload;
    /* what it reads, of a kernel */
    etch_register *reads;
    uint32_t read_count;
    /* those that it adds into in place; at the end of the step: those that it reads */
    ETCH_VEC(uint32_t)
    gradients;
    /* of its body: where its node is kept */
    uint32_t index;
    /* of an attention whose blocks go round; NULL: it runs once */
    const struct etch_ring_task *ring;
    /* a message that goes round: the place of its axis in the mesh of the job, plus one; 0: between stages */
    uint32_t ring_place;
    /* collective */
    etch_group_set group;
    /* collective */
    uint16_t family;
    /* as in etch_node */
    uint8_t type, collective;
    /* puts weights together: issued before its weight group begins */
    bool gathers;
    /* what an attention sends round: messages beside its runs, no node of its own */
    bool goes_round;
    /* for the first microbatch only */
    bool once;
    /* it makes gradients of weights alone, and has an action of its own */
    bool weight_half;
    etch_phase phase;
    /* what follows microbatch and loops */
    etch_word name;
    /* in the form of the step */
    uint32_t number;
    /* static */
    const char *op_type;
    /* in the job's arena; NULL: not asked for, or of none */
    const char *module;
} etch_task;

/* An attention whose blocks go round, in numbers: its runs, of which one is for the rank's own block. */
typedef struct etch_ring_task {
    /* what it sends round, and the gradients of that; NULL: it makes none */
    const etch_task *out, *back;
    /* place of its axis in the mesh of the job */
    uint32_t axis;
    /* ranks of the ring; blocks that a rank computes with, the first of those that come; sums of gradients */
    uint64_t size, runs, sums;
    /* nodes of the runs, for a rank's own block and for another one; and of a sum */
    etch_task own, other, sum;
    /* bytes that all runs but the first read of what the run before has left */
    uint64_t carried;
    /* of one message */
    uint64_t out_bytes, back_bytes;
} etch_ring_task;

/* Which iterations of a loop are of which class. */
typedef struct etch_classes etch_classes;

/* Layers that use weights: of those from first to end the ones of a class; NULL: all. */
typedef struct etch_layer_use {
    etch_bound_interval layers;
    const etch_classes *classes;
    uint32_t class;
} etch_layer_use;

/* A task of the end of a step, run once for each weight group: an iteration of the loop, or all there
 * is. */
typedef struct etch_weight_task {
    etch_task task;
    etch_end_role role;
    const etch_weight_group *group;
    uint64_t weight_groups;
    /* of these layers it runs those of a class; NULL: all */
    const etch_classes *classes;
    uint32_t class;
    /* its iterations are layers of the chain: those of uses[0] */
    bool staged;
    /* else at the end of the step */
    bool every_microbatch;
    /* of every microbatch: the next one does not add to the same memory */
    bool anew;
    /* where the weights are used: stages that hold none of it do not run the task */
    ETCH_VEC(etch_layer_use) uses;
    /* text NULL: no loop */
    etch_word loop_name;
    /* its collectives go into this one of the outline's streams, plus one; 0: they are nodes */
    uint32_t stream;
} etch_weight_task;

typedef ETCH_VEC(etch_weight_task *) etch_weight_tasks;

/* Collectives of one kind that are sent in pieces of a given size, whichever units they are of. */
typedef struct etch_stream {
    /* the first of them */
    const etch_task *like;
    /* bytes of the first piece, and of the others but the last one; at least 1 */
    uint64_t first, limit;
    /* no tensor is cut: a piece ends with the one that reaches its bytes */
    bool of_tensors;
    etch_word name;
} etch_stream;

/* A loop-carried value, as seen around the loop, or as a body of the loop sees it. */
typedef struct etch_loop_value {
    /* what the first iteration takes; what an iteration leaves */
    etch_register from;
    /* index in the body's registers: of the result around the loop; of what an iteration takes */
    uint32_t at;
} etch_loop_value;

typedef struct etch_repeat {
    const etch_placed_loop *loop;
    /* by class */
    struct etch_body **bodies;
    uint32_t body_count;
    /* NULL: one */
    const etch_classes *classes;
    uint64_t count;
    /* it undoes a loop: iterations in falling order */
    bool reverse;
    /* false: iterations of nothing, of which there may be more than anyone can count */
    bool works;
    etch_loop_value *carried;
    /* makers on the way from one iteration to the next */
    uint32_t *carrying;
    uint32_t carried_count;
    etch_word name;
} etch_repeat;

typedef struct etch_body_item {
    /* one of the two */
    etch_task *task;
    etch_repeat *repeat;
    /* of the top level */
    /* with which layers of the chain it runs */
    etch_bound_interval layers;
    /* a loop whose iterations are these layers */
    bool staged;
} etch_body_item;

/* The outline of a region of the placed graph. Its n-th run in a microbatch is counted over the loops around
 * it, outermost first, by the forward order of their iterations: so a backward body finds what the forward
 * body of the same iterations made. */
typedef struct etch_body {
    /* in issue order */
    ETCH_VEC(etch_body_item) items;
    const etch_placed_region *region;
    /* NULL: top level */
    struct etch_body *parent;
    /* whose iteration it is; NULL: top level */
    const etch_repeat *repeat;
    /* of these iterations */
    uint32_t class;
    /* loops around it */
    uint32_t depth;
    /* in one microbatch; those of other classes have numbers, too. 0: it never runs */
    uint64_t runs;
    /* registers of one run */
    uint32_t register_count;
    uint64_t first_register;
    /* by loop-carried value */
    etch_loop_value *taken;
    /* of the backward body: when the step ends, after each iteration */
    etch_weight_tasks after_each;
} etch_body;

/* The accumulator of a weight's gradient: a copy for each iteration of the forward loops around the
 * weight. */
typedef struct etch_gradient {
    /* loops around the weight */
    uint32_t depth;
    /* over all of them */
    uint64_t copies;
    /* over those inside the outermost one */
    uint64_t group_copies;
    uint64_t first_register;
    /* parts of the backward body that add to it, ascending */
    ETCH_VEC(uint32_t) adders;
} etch_gradient;

/* The register of the node that makes a value of a message. A loop-carried value goes into the
 * first iteration of the receiver. */
typedef struct etch_passed_value {
    /* of the top level; or */
    etch_register reg;
    /* what this loop carries on */
    const etch_body_item *item;
    uint32_t carry;
} etch_passed_value;

typedef struct etch_chunk_message {
    etch_passed_value *wires;
    /* 0: nothing goes this way, and no message */
    uint32_t wire_count;
    uint64_t bytes;
    /* in the form of the step */
    uint32_t number;
    /* what is zeros on both sides, and is not sent */
    etch_passed_value *zeros;
    uint32_t zero_count;
} etch_chunk_message;

/* The layers that a stage holds: those of its chunks. */
typedef struct etch_held {
    uint32_t stage;
    const etch_bound_interval *chunks;
    uint32_t count;
    /* of a chain that is there twice: those of its first copy; else NULL */
    const struct etch_held *of_first_copy;
} etch_held;

/* How large the program of a stage is. */
typedef struct etch_size {
    /* exact */
    uint64_t nodes;
    /* at most */
    uint64_t deps, name_bytes;
} etch_size;

typedef struct etch_outline {
    etch_naming naming;
    unsigned annotations;
    /* of the job: for those of annotations, and for workloads */
    etch_arena *texts;
    /* of the job, begins with one that only moves bytes; NULL: not asked for */
    etch_workloads *workloads;
    /* NULL: not asked for */
    etch_step_form *form;
    /* backward may be NULL */
    etch_body *forward, *backward;
    /* these, and those of loops */
    ETCH_VEC(etch_body *) bodies;
    const etch_pipe *pipe;
    /* by stage */
    etch_held *held;
    /* of forward and of backward, by model chunk: between it and the next, which may be on the same stage;
     * then nothing is sent */
    etch_chunk_message *messages[2];
    /* of one microbatch */
    uint64_t register_count;
    ETCH_VEC(etch_gradient) gradients;
    uint64_t gradient_registers;
    /* of the end of the step, role by role; those of the norm are no nodes */
    etch_weight_tasks weight_tasks;
    /* reductions wait for the end of the step */
    bool reduce_last;
    /* there are tasks that do */
    bool gathers_weights;
    /* blocks of an attention go round */
    bool has_rings;
    /* how many units before its own a gather is issued */
    uint64_t ahead;
    /* of the plan's buckets; none where each weight group has its own */
    ETCH_VEC(etch_stream) streams;
    /* of clipping; NULL: none. The norm's numbers are those of its weight tasks */
    etch_task *norm, *norm_reduce;
    /* states of how many weight groups are loaded before the one that is updated; there are such tasks */
    uint64_t loads_ahead;
    bool moves_states;
    /* the job is to know where slots begin */
    bool marks_slots;
    /* those that run, in no order that means anything */
    etch_tasks collectives;
    /* by stage */
    etch_size *sizes;
} etch_outline;

/* The outline under a binding, without families; naming, annotations and texts have been set. ETCH_EINPUT and
 * ETCH_ELIMIT come with a diagnostic. */
etch_status etch_outline_make(etch_arena *scratch, const etch_placed *placed, etch_bound *bound,
                              const etch_extent *extent, etch_outline *outline) ETCH_MUST_CHECK;

/* Leaves fewer microbatches to the programs of an outline, whose `pipe` has them already. */
etch_status etch_outline_shorten(etch_arena *scratch, const etch_placed *placed, const etch_extent *extent,
                                 etch_outline *outline) ETCH_MUST_CHECK;

/* An outline in the making. */
typedef struct etch_outliner {
    /* scratch */
    etch_arena *arena;
    const etch_placed *placed;
    etch_bound *bound;
    const etch_extent *extent;
    etch_outline *outline;
    /* by step id: the task's register; body NULL: a step that is no node */
    etch_register *made_by;
    /* by value id: of loop-carried values */
    etch_register *carried;
    /* by tensor id of a gradient */
    uint32_t *gradient_index;
    /* of a chain that is cut */
    etch_stage_numbers numbers;
    /* of the first thing that was reported */
    etch_status status;
} etch_outliner;

/* ---- tasks.c: what the parts of an outline share ------------------------------------------------------- */

/* FLOP or bytes (`what`) of a node; reports what they cannot be. `kernel` is NULL at the end of the step. */
uint64_t etch_task_number(etch_outliner *o, etch_expr expr, const char *what, const etch_kernel *kernel,
                          const char *name);
/* What the task is: all but its name, and its numbers; and these. */
void etch_task_begin(const etch_outliner *o, etch_task *task, const etch_step_task *of, const etch_row *row);
void etch_task_size(etch_outliner *o, etch_task *task, const etch_step_task *of);
/* The value of what is a whole number, or the program is wrong. */
uint64_t etch_bound_number(etch_outliner *o, etch_expr expr);
/* The register of what makes `value`, as a task in `reader` finds it; body NULL: no node does. */
etch_register etch_register_of(etch_outliner *o, const etch_value *value, const etch_body *reader);
/* Reports, once, that `what` makes a program too long. */
void etch_too_many_nodes(etch_outliner *o, etch_span span, const char *what);

/* ---- ring.c -------------------------------------------------------------------------------------------- */

/* Finds what goes round for the task of an attention, once that has its numbers. */
void etch_ring_outline(etch_outliner *o, etch_task *task, const etch_body *body);
/* Nodes of one run of the task. */
uint64_t etch_ring_nodes(const etch_ring_task *ring);

/* ---- form.c: what a job is made of, see etch_step_form ------------------------------------------------- */

/* Notes a number that the outline depends on. */
void etch_form_guard(etch_outliner *o, etch_expr expr, uint64_t value);
/* Notes a task; its number. */
uint32_t etch_form_task(etch_outliner *o, uint8_t type, uint8_t collective, bool is_average, etch_expr flop,
                        etch_expr bytes);
/* Notes of a task what etch_task_set_workload does. */
void etch_form_workload(etch_outliner *o, const etch_task *task, const etch_kernel_product *product);
/* Notes the mesh, the stages and their chunks, and of a brief job with how many microbatches it is made. */
void etch_form_extent(etch_arena *arena, const etch_placed *placed, const etch_extent *whole,
                      etch_step_form *form);

/* ---- workload.c ---------------------------------------------------------------------------------------- */

/* Notes what the time of a computation depends on, where that is asked for. */
void etch_task_set_workload(etch_outliner *o, etch_task *task, const etch_kernel *kernel);
/* The same of one that does `flop` of those of the kernel, for one of `blocks` parts of the keys. */
void etch_task_set_block_workload(etch_outliner *o, etch_task *task, const etch_kernel *kernel,
                                  uint64_t blocks);
/* The same of a task of the end of a step. */
void etch_task_set_end_workload(etch_outliner *o, etch_task *task, const etch_step_task *of);

/* ---- classes.c ----------------------------------------------------------------------------------------- */

/* NULL when all iterations are of one class. */
const etch_classes *etch_classes_make(etch_outliner *o, const etch_loop *loop);
/* Class 0 without classes. */
uint32_t etch_class_at(const etch_classes *classes, uint64_t iteration);
/* How many of the iterations are of the class. */
uint64_t etch_class_members(const etch_classes *classes, uint32_t class, etch_bound_interval held);

/* ---- chain.c: which layers stages hold ----------------------------------------------------------------- */

/* Shares the layers among the stages; reports a chain that they cannot share. */
void etch_chain_cut(etch_outliner *o);
/* Fills in the messages between the stages, once bodies are linked. */
void etch_chain_messages(etch_outliner *o);
/* Is there more than one stage? Else one holds everything, which is one layer. */
bool etch_is_cut(const etch_outliner *o);
/* The layers of a stage position. */
etch_bound_interval etch_layers_at(etch_outliner *o, etch_position position);
bool etch_held_any(const etch_held *held, etch_bound_interval layers);
/* Those of `layers` that are among `held`, counted from the first of them. */
etch_bound_interval etch_layers_from(etch_bound_interval layers, etch_bound_interval held);
/* How many of these layers, which are a loop's, the stage holds of a class. */
uint64_t etch_held_members(const etch_held *held, etch_bound_interval layers, const etch_classes *classes,
                           uint32_t class);
/* Weight groups of the task that the stage holds; does it hold this one? */
uint64_t etch_weight_task_groups(const etch_held *held, const etch_weight_task *task);
bool etch_weight_task_has(const etch_held *held, const etch_weight_task *task, uint64_t weight_group);
/* The last part of the backward body on the stage that adds to a gradient of the task; the last of all when
 * none does. */
uint32_t etch_weight_task_item(const etch_outline *outline, const etch_held *held,
                               const etch_weight_task *task);

/* ---- end.c: the end of a step -------------------------------------------------------------------------- */

/* Gradients are known before the tasks that add into them, and what synchronises and uses them after. */
void etch_end_gradients(etch_outliner *o);
void etch_end_tasks(etch_outliner *o);

/* ---- stream.c: buckets of a given size ----------------------------------------------------------------- */

/* Gives the tasks of buckets and gathers their streams, where the plan wants that. */
void etch_streams_make(etch_outliner *o);
/* The number of pieces in which the stage sends a stream. */
etch_total etch_stream_pieces(etch_arena *arena, const etch_outline *outline, const etch_held *held,
                              uint32_t stream);

/* A task of the end of a step for one of its units. */
typedef struct etch_due {
    const etch_weight_task *task;
    uint64_t weight_group;
} etch_due;

/* Bytes of a stream that are sent at once, and what they are of; the first and the last in part, it may
 * be. */
typedef struct etch_stream_piece {
    const etch_stream *stream;
    uint64_t number, bytes;
    /* until the next call */
    const etch_due *members;
    uint32_t member_count;
} etch_stream_piece;

/* The streams of a stage while it is unrolled: tasks are added as they are complete, and pieces taken until
 * there is none. */
typedef struct etch_flows etch_flows;
etch_flows *etch_flows_new(etch_arena *arena, const etch_outline *outline, const etch_held *held);
void etch_flows_add(etch_flows *flows, etch_due due);
bool etch_flows_next(etch_flows *flows, etch_stream_piece *piece);

/* ---- count.c ------------------------------------------------------------------------------------------- */

/* The size of a stage's program; reports a program that is too long. */
etch_size etch_outline_count(etch_outliner *o, uint32_t stage);

/* ---- names.c ------------------------------------------------------------------------------------------- */

/* Names the tasks of all bodies by module and tensor; no two of a body have the same name. */
void etch_name_tasks(const etch_outliner *o);
/* Names a task of the end of a step, which does `what`. */
void etch_name_weight_task(const etch_outliner *o, etch_weight_task *task, const etch_step_task *of,
                           const char *what);
/* The name of a loop as nodes have it. */
etch_word etch_loop_label(const etch_loop *loop);

/* ---- unroll.c ------------------------------------------------------------------------------------------ */

/* The program of a stage of the job, in `arena`. Adds it up in `total`, whose stage is set, and in `comm`,
 * sums and counts alone: by etch_comm_type and family, then what is sent, then what is received. */
void etch_unroll(etch_arena *arena, const etch_job *job, const etch_outline *outline,
                 etch_class_program *program, etch_stage_total *total, etch_comm_total *comm);

#endif
