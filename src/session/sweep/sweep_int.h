/* What the files of a sweep share.
 *
 *     request.c    what is asked for, as lists of texts
 *     frame.c      one plan and config: axes, and conditions on them
 *     structure.c  what decides structure
 *     cuts.c       which statements fail for all rows behind some values
 *     inputs.c     which axes formulas speak of
 *     machine.c    what steps run on
 *     walk.c       the rows of a frame, one after the other
 *     cases.c      formulas of one case, compiled
 *     keys.c       which case a row is of
 *     behind.c     statements about quantities that fail for all its rows behind some values
 *     evaluate.c   formulas of many rows
 *     block.c      many rows at once
 *     blocks.c     some blocks at a time
 *     timed.c      times of steps
 *     shapes_int.h those of rows whose steps differ in numbers alone
 *     exact.c      numbers of any size
 *     message.c    what one session says, said by another
 *     rows.c       the best rows, rows that no other is better than
 *     print.c      rows as text
 *     plot.c       rows as a picture
 *     sink.c       where text goes
 *     lowered.c    traces of rows
 *     output.c     what comes of rows
 *     part_int.h   rows of one of several processes, and what goes on later
 *     crew_int.h   rows that several processes compute at a time
 *     tell.c       which rows are left out, and why
 *     sweep.c      the whole */
#ifndef ETCH_SESSION_SWEEP_SWEEP_INT_H
#define ETCH_SESSION_SWEEP_SWEEP_INT_H

#include "session/query/query.h"

/* ---- exact.c ------------------------------------------------------------------------------------------- */

/* number/denominator, which is above 0; or a text, where these do not hold it, "123" or "7/2", and of what is
 * known to some digits, "12.5" or "4.06e9". */
typedef struct etch_exact {
    int64_t number, denominator;
    const char *text;
} etch_exact;

/* `arena` is for what does not fit. */
int etch_exact_compare(etch_arena *arena, etch_exact a, etch_exact b);
bool etch_exact_divides(etch_arena *arena, etch_exact divisor, etch_exact number);
bool etch_exact_is_integer(etch_exact a);
bool etch_exact_holds(etch_arena *arena, etch_relation relation, etch_exact left, etch_exact right);
/* A number as it is written; `arena` holds what is long. */
etch_exact etch_exact_read(etch_arena *arena, const char *text);
/* A constant; false: it does not fit a fraction of words. */
bool etch_exact_of(etch_sym *sym, etch_expr constant, etch_exact *out);

/* ---- message.c ---------------------------------------------------------------------------------------- */

/* A copy of a message that outlives its session. */
const etch_diag *etch_sweep_copy(etch_arena *arena, const etch_diag *diag);
/* Says a message of another session on the same spec. */
void etch_sweep_repeat(etch_session *session, const etch_diag *diag);
/* The same place in the files of this session; nowhere, where it is in none of them. */
etch_span etch_sweep_span(const etch_session *session, etch_span span);

/* ---- request.c ----------------------------------------------------------------------------------------- */

typedef ETCH_VEC(const char *) etch_texts;

/* What rows may differ in beside numbers. */
typedef enum etch_choice_kind {
    ETCH_CHOICE_PLAN,
    ETCH_CHOICE_CONFIG,
    ETCH_CHOICE_RUN,
    ETCH_CHOICE_MACHINE,
    /* these four are there always, in this order; then, in the order of the request: */
    ETCH_CHOICE_ALWAYS,
    /* an option of plans, "plan.schedule" */
    ETCH_CHOICE_OPTION = ETCH_CHOICE_ALWAYS,
    /* a number of a machine, "nvlink.bandwidth" */
    ETCH_CHOICE_NUMBER
} etch_choice_kind;

typedef struct etch_sweep_choice {
    etch_choice_kind kind;
    /* of its column */
    const char *name;
    /* has it one? */
    bool named;
    /* one NULL: that of the session */
    etch_texts values;
} etch_sweep_choice;

/* What a sweep is asked for, whoever says it. */
typedef struct etch_sweep_request {
    /* "tp = 1, 2" */
    etch_texts over;
    /* the first is the slowest; all are slower than axes */
    ETCH_VEC(etch_sweep_choice) choices;
    /* one statement each, as it is written */
    etch_texts where;
    /* all that is computed, each once; what is selected first */
    etch_texts exprs;
    /* of the expressions */
    uint32_t best;
    ETCH_VEC(uint32_t) pareto;
    bool has_best;
    uint64_t top;
} etch_sweep_request;

/* False after an error. */
bool etch_sweep_read(etch_session *session, const etch_sweep_options *options, etch_sweep_request *out);

/* ---- frame.c ------------------------------------------------------------------------------------------- */

/* Why rows are refused. */
typedef struct etch_reason_text {
    etch_code code;
    /* without values: "dim B" */
    const char *text;
} etch_reason_text;

/* A piece of a list whose numbers depend on axes before it. */
typedef struct etch_sweep_piece {
    etch_values_kind kind;
    uint32_t count;
    /* first of the formulas of the axis */
    uint32_t formula;
} etch_sweep_piece;

typedef struct etch_sweep_axis {
    /* of the sweep's columns */
    uint32_t column;
    const char *name;
    /* a fraction may stand for it; else an integer from `least` on */
    bool real;
    int64_t least;
    /* its value decides structure: each has a case of its own */
    bool decides;
    /* the size of a mesh axis: formulas are those of axes larger than 1 */
    bool is_size;
    /* a factor of the equation; without values: all that fit */
    bool is_factor, is_free;
    /* values, where they do not depend on others */
    const etch_exact *values;
    uint32_t value_count;
    /* else: formulas, and what they are of */
    const etch_sweep_piece *pieces;
    uint32_t piece_count;
    etch_program *program;
    /* by variable of the program: which axis */
    const uint32_t *inputs;
} etch_sweep_axis;

/* A formula or two of a program and what is asked of them. */
typedef struct etch_sweep_claim {
    etch_relation relation;
    /* of the program */
    uint32_t left, right;
} etch_sweep_claim;

/* What statements are for all rows behind the values of the axes up to one. */
typedef struct etch_sweep_cuts {
    /* NULL: nothing is known there */
    etch_program *program;
    const uint32_t *inputs;
    /* no row meets the statement where one does not hold */
    const etch_sweep_claim *claims;
    const uint32_t *of;
    uint32_t count;
    /* how many rows there are behind; 0: that depends */
    uint64_t rows;
    /* all plain statements speak of the axes up to this one alone */
    bool plain_before;
} etch_sweep_cuts;

typedef enum etch_where_kind {
    /* over params and axes */
    ETCH_WHERE_PLAIN,
    /* the equation */
    ETCH_WHERE_SOLVED,
    /* of quantities */
    ETCH_WHERE_QUANTITY,
    /* of runs of the step */
    ETCH_WHERE_TIMED
} etch_where_kind;

typedef struct etch_sweep_frame {
    uint32_t number;
    /* by choice of the request */
    const char **choices;
    const char *plan, *config, *run;
    /* the frame whose formulas these rows have: it differs from this one in its machine alone */
    const struct etch_sweep_frame *formulas;
    /* what steps run on; NULL: the spec says it, or nothing is run */
    const struct etch_sweep_machine_of *machine;
    /* by expression: is it of a run of the step? */
    const bool *timed;
    /* likewise: is it one quantity of a run and nothing else, which is known to some digits? */
    const bool *measured;
    /* some expression or statement is */
    bool times;
    /* in the order of the rows */
    etch_sweep_axis *axes;
    uint32_t axis_count;
    /* what the product of the factors is; 0: there is no equation */
    uint64_t product;
    uint32_t last_factor;
    /* by statement */
    const etch_where_kind *kinds;
    const char *const *where, *const *exprs;
    /* of plain statements, by statement; NULL: there are none */
    etch_sweep_claim *claims;
    etch_program *program;
    const uint32_t *inputs;
    /* by axis; NULL: there are none */
    const etch_sweep_cuts *cuts;
    /* every value decides: a case for each row */
    bool by_row;
    /* all rows are refused */
    bool refused;
    etch_reason_text reason;
    /* it is a request that no session understands; the message, to be said again */
    const etch_diag *why;
    /* the first error of the model with all axes open, which values may end or not; NULL: it has none */
    const etch_diag *open_error;
} etch_sweep_frame;

/* ---- columns, rows, cases ------------------------------------------------------------------------------ */

/* A reason, and the rows that it stands for. */
typedef struct etch_tally {
    etch_reason_text reason;
    uint64_t count;
    /* the first of them */
    uint64_t row;
    const etch_sweep_frame *frame;
    const etch_exact *values;
} etch_tally;

typedef ETCH_VEC(etch_tally) etch_tallies;

enum { ETCH_SWEEP_BLOCK = 8192 };

/* The values that decide, and which sizes are 1. */
typedef struct etch_case_key {
    /* that formulas are of */
    const etch_sweep_frame *frame;
    /* by axis of the frame: its value where it decides, else 1 where it is a size of 1; else it is open,
     * which a denominator of 0 says */
    const etch_exact *values;
    /* is each value a case of its own? */
    bool by_row;
    uint64_t hash;
} etch_case_key;

/* Rows one after the other, of one frame, and those between that are cut. */
typedef struct etch_sweep_block {
    struct etch_sweep *sweep;
    const etch_sweep_frame *frame;
    etch_mem *mem;
    etch_arena *arena;
    /* of the first; of the consecutive rows that this is */
    uint64_t first_row, chunk;
    uint32_t count, capacity;
    /* that are cut; by row: how many rows are before it, NULL: all of them are here */
    uint64_t skipped, *before;
    /* by axis of the frame, [axis][row]; no denominators where all are 1 */
    int64_t **numbers, **denominators;
    /* by row: do the plain statements hold? NULL: nobody has asked */
    bool *passes;
    /* by row that passes: its case; NULL: not known yet */
    struct etch_sweep_case **cases;
    /* by row: do its values fit its case? Rows that do not no longer pass */
    bool *fits;
    /* cases with such rows that are not complete */
    ETCH_VEC(struct etch_sweep_case *) wanted;
    /* of cases that nobody knows yet */
    ETCH_VEC(etch_case_key) new_keys;
    /* by row to print: what the expressions are; else NULL */
    etch_exact **results;
    /* the sweep was stopped before all runs of its rows were done */
    bool cut;
    /* by statement: rows that it was asked of, and for which it holds */
    uint64_t *asked, *met;
    uint64_t unmet, written;
    etch_tallies tallies;
    /* rows as text, where nothing is to be known of others */
    etch_buf text;
} etch_sweep_block;

typedef enum etch_case_state {
    ETCH_CASE_NEW,
    /* what its values must be is known */
    ETCH_CASE_FITS,
    /* and what is asked of its rows */
    ETCH_CASE_READY,
    /* all rows of it */
    ETCH_CASE_REFUSED,
    /* its formulas could not be had: each row is a case of its own */
    ETCH_CASE_BY_ROW
} etch_case_state;

/* A condition on the values of a case. */
typedef struct etch_case_must {
    etch_must must;
    /* formulas of the program */
    uint32_t left, right;
} etch_case_must;

/* Formulas, compiled, and the axes that its variables are. */
typedef struct etch_case_program {
    etch_program *program;
    const uint32_t *inputs;
} etch_case_program;

/* What the rows of a case behind the values of the axes up to one have in common. */
typedef struct etch_case_cut {
    /* NULL: nothing is known */
    etch_program *program;
    const uint32_t *inputs;
    /* where these hold, no row is refused */
    const etch_case_must *musts;
    uint32_t must_count;
    /* no row meets the statement where one does not hold */
    const etch_sweep_claim *claims;
    const uint32_t *of;
    uint32_t count;
} etch_case_cut;

/* Formulas of a case, in the session that they are made in. */
typedef struct etch_case_look {
    etch_session *session;
    const etch_settings *settings;
    /* of the expressions, with the values of the case */
    const etch_expr *exprs;
    const etch_case_must *musts;
    uint32_t must_count;
    /* what `left` and `right` of the conditions count */
    const etch_expr *must_formulas;
} etch_case_look;

typedef struct etch_sweep_case {
    struct etch_sweep *sweep;
    /* is shown the formulas once they are known; NULL: nobody is */
    void (*look)(void *data, const etch_case_look *look);
    void *look_data;
    struct etch_sweep_case *next;
    etch_case_key key;
    /* while it is compiled: cases.c */
    struct etch_case_work *work;
    etch_mem *mem;
    etch_arena *arena;
    etch_case_state state;
    etch_reason_text reason;
    etch_case_program musts, claims, exprs;
    const etch_case_must *must;
    uint32_t must_count;
    /* among those to be completed */
    bool listed;
    /* of statements about quantities: which */
    const etch_sweep_claim *claim;
    const uint32_t *claim_of;
    uint32_t claim_count;
    /* by axis; NULL: there are none */
    etch_case_cut *cuts;
    /* of steps of its rows: shapes.c */
    ETCH_VEC(struct etch_case_shape *) shapes;
    etch_arena *shape_arena;
    bool has_no_shapes;
} etch_sweep_case;

/* A row that is kept. */
typedef struct etch_kept_row {
    uint64_t row;
    const etch_sweep_frame *frame;
    /* by axis of its frame; by expression */
    etch_exact *values, *results;
} etch_kept_row;

/* Where text goes. */
typedef struct etch_sweep_sink {
    etch_session *session;
    const etch_sweep_options *options;
    /* the folder of a file, and the file; -1: none */
    int folder, file;
    const char *name;
    /* empty: there is none */
    char hidden[300];
} etch_sweep_sink;

typedef struct etch_walk_level {
    const etch_exact *values;
    uint32_t count, at, capacity;
    etch_exact *own;
} etch_walk_level;

/* The rows of a frame. */
typedef struct etch_walk {
    etch_arena *arena;
    etch_session *session;
    const etch_sweep_frame *frame;
    /* whose statements cut; NULL: none do */
    const struct etch_sweep *sweep;
    etch_walk_level *levels;
    etch_workspace *workspace;
    /* the axis that moves next */
    uint32_t level;
    bool started, over, failed;
    /* a row is there that nobody has taken; rows before it that were cut, of which nobody has, by a statement
     * about a quantity or a plain one */
    bool ready;
    uint64_t cut;
    bool cut_by_quantity;
} etch_walk;

typedef struct etch_sweep {
    etch_session *session;
    const etch_sweep_options *options;
    /* of all below; the session may be cut short */
    etch_mem *mem;
    etch_arena *arena;
    etch_sweep_request request;
    ETCH_VEC(etch_sweep_frame *) frames;
    ETCH_VEC(struct etch_sweep_machine_of *) machines;
    /* of all frames, whatever the request says; NULL: each finds its own */
    const struct etch_sweep_machine_of *machine;
    /* what machines lack, as far as it was said */
    etch_texts told;
    /* runs of steps are asked for */
    bool times;
    /* of all frames */
    ETCH_VEC(etch_program *) programs;
    /* by thread, of those that find times of steps */
    struct etch_sweep_timer *timers;
    unsigned timer_count;
    /* names of columns: axes */
    etch_texts columns;
    /* by hash */
    etch_sweep_case **cases;
    uint32_t case_slots, case_count;
    /* of cases, open */
    atomic_int sessions;
    ETCH_VEC(etch_sweep_case *) new_cases;
    /* under way */
    etch_sweep_block *blocks;
    uint32_t block_count;
    etch_tallies tallies;
    uint64_t *asked, *met;
    ETCH_VEC(etch_kept_row) kept;
    ETCH_VEC(etch_kept_row) spare;
    etch_walk walk;
    /* rows that the walk has passed, and chunks of them: see part_int.h */
    uint64_t walked, chunk;
    /* rows of a block */
    uint32_t block_rows;
    /* what is computed goes into a part; NULL: into the sink */
    struct etch_part *part;
    /* the processes that share its rows; NULL: this one does all */
    struct etch_crew *crew;
    /* that are open */
    ETCH_VEC(int) files;
    /* the names of the columns are written */
    bool has_head;
    etch_sweep_sink sink;
    /* of a picture */
    etch_sweep_sink plot;
    etch_sweep_options plot_options;
    etch_sweep_report *report;
} etch_sweep;

/* Adds refused rows of a reason. */
void etch_sweep_add_tally(etch_sweep *sweep, const etch_tally *tally);
/* Writes rows as text, after the names of the columns. */
etch_status etch_sweep_write(etch_sweep *sweep, const char *text, size_t length);
/* Says that the sweep was stopped: ETCH_ELIMIT. */
etch_status etch_sweep_report_stop(etch_sweep *sweep);
/* Writes the rows that were kept, says what is left out, and closes the sink. */
etch_status etch_sweep_finish(etch_sweep *sweep);

/* ---- part.c -------------------------------------------------------------------------------------------- */

/* Reads "3/8". False after an error. */
bool etch_part_read_share(etch_session *session, const char *text, uint32_t *shard, uint32_t *shards);
/* Opens the part of a sweep whose frames are known, or goes on with it; then `finished` may be true. */
etch_status etch_part_begin(struct etch_part *part) ETCH_MUST_CHECK;
/* Is a chunk to be computed here? */
bool etch_part_is_own(const struct etch_part *part, uint64_t chunk);
/* Adds a block that is computed, and the records of its rows that are kept. */
etch_status etch_part_add(struct etch_part *part, const etch_sweep_block *block,
                          const etch_buf *kept) ETCH_MUST_CHECK;
void etch_part_put_row(etch_buf *out, const etch_sweep *sweep, const etch_kept_row *row);
/* Nothing is missing: of several shares the file takes its name. */
etch_status etch_part_finish(struct etch_part *part) ETCH_MUST_CHECK;
/* Writes the rows of a part of all into the sink of its sweep; and removes it. */
etch_status etch_part_copy(struct etch_part *part) ETCH_MUST_CHECK;
void etch_part_remove(struct etch_part *part);
void etch_part_end(struct etch_part *part);

/* ---- message.c ----------------------------------------------------------------------------------------- */

/* The first error of a session; NULL: there is none. */
const etch_diag *etch_sweep_first_error(const etch_session *session);
/* No row of the frame is computed, for this reason; NULL: nobody knows. */
void etch_frame_refuse(etch_sweep *sweep, etch_sweep_frame *frame, const etch_diag *why);

/* ---- sweep.c ------------------------------------------------------------------------------------------- */

/* Gives a sweep memory of its own; and takes all that it has away, whatever has come of it. */
etch_status etch_sweep_begin(etch_sweep *sweep) ETCH_MUST_CHECK;
void etch_sweep_end(etch_sweep *sweep);

/* Reads a sweep's request for a value of each choice. */
etch_sweep_frame *etch_frame_new(etch_sweep *sweep, const char *const *choices);
/* Opens a session on the spec of the sweep with values for the axes of a frame. `values`, by axis: a
 * denominator of 0 leaves it open; NULL: all are. NULL: memory is out. */
etch_session *etch_frame_open(const etch_sweep *sweep, etch_arena *arena, const etch_sweep_frame *frame,
                              const etch_exact *values, etch_status *status);
/* `ranks` of a text as the product of the plan's axes; the text itself where there is none. */
const char *etch_frame_ranks(etch_session *session, const etch_plan *plan, const char *text);

/* ---- inputs.c ------------------------------------------------------------------------------------------ */

/* By variable of a program: which axis it is. UINT32_MAX: none. */
const uint32_t *etch_frame_inputs(etch_arena *arena, const etch_sweep_frame *frame,
                                  const etch_program *program);

/* ---- machine.c ----------------------------------------------------------------------------------------- */

/* A cluster that steps run on, in a session of its own, read by all threads. */
typedef struct etch_sweep_machine_of {
    /* "h100_sxm"; NULL: the spec of the sweep */
    const char *name;
    /* numbers that are set: "nvlink.bandwidth = 900 GB/s" */
    etch_texts sets;
    etch_session *session;
    /* NULL: there is none */
    const etch_cluster *cluster;
    /* why not */
    const etch_diag *why;
} etch_sweep_machine_of;

/* Finds the machine of a frame, if it has one. False: it cannot be had, which the frame then says. */
bool etch_frame_find_machine(etch_sweep *sweep, etch_sweep_frame *frame);
void etch_machines_close(etch_sweep *sweep);

/* ---- structure.c --------------------------------------------------------------------------------------- */

typedef void (*etch_structure_fn)(void *data, etch_expr value);
/* Calls `each` with the values that decide the structure of a model, and of its stages where it is placed. */
void etch_structure_each(const etch_compiled *compiled, etch_structure_fn each, void *data);
/* The same of sizes of the mesh that are computed from others, and may be 1 where none of these is. */
void etch_structure_of_mesh(etch_sym *sym, const etch_settings *settings, const etch_plan *plan,
                            etch_structure_fn each, void *data);

/* ---- walk.c -------------------------------------------------------------------------------------------- */

/* `sweep`: whose statements cut rows; NULL: none do. */
void etch_walk_start(etch_walk *walk, etch_arena *arena, etch_session *session, const etch_sweep_frame *frame,
                     const etch_sweep *sweep);
/* The next row, by axis, where none is cut. False: there is none, or `failed` after an error. */
bool etch_walk_next(etch_walk *walk, etch_exact *row);
/* Goes on to rows that are cut, or to a row, unless some wait to be taken. False as above. */
bool etch_walk_more(etch_walk *walk, etch_exact *row);
/* Takes up to so many rows that are cut; 0: the row is next. */
uint64_t etch_walk_take_cut(etch_walk *walk, uint64_t most);
/* Takes the row. */
void etch_walk_take_row(etch_walk *walk);
/* Passes so many rows, and says how many there were. */
uint64_t etch_walk_skip(etch_walk *walk, etch_exact *row, uint64_t count);
void etch_walk_end(etch_walk *walk);
/* How many values a piece stands for, and the i-th. False: they are none, or too many. */
bool etch_piece_values(etch_arena *arena, etch_values_kind kind, const etch_exact *arguments, uint32_t count,
                       etch_exact **values, uint32_t *value_count);
enum { ETCH_SWEEP_VALUES = 10000000 };
/* What a piece wants, for people. */
const char *etch_piece_needs(etch_values_kind kind);

/* ---- keys.c -------------------------------------------------------------------------------------------- */

/* The case of a key; NULL: nobody knows it yet. */
etch_sweep_case *etch_case_find(const etch_sweep *sweep, const etch_case_key *key);
/* Is a condition met by its two sides, where they are `defined`? `arena` is for what is long. */
bool etch_case_must_is_met(etch_arena *arena, const etch_must *must, bool defined, etch_exact left,
                           etch_exact right);
/* The key of a row of a frame; its values are put into `values`. */
etch_case_key etch_case_key_of(const etch_sweep_frame *frame, bool by_row, const etch_exact *row,
                               etch_exact *values);

/* ---- cases.c-------------------------------------------------------------------------------------------- */

/* Adds the case of a key, to be compiled. */
void etch_case_add(etch_sweep *sweep, const etch_case_key *key);
/* Compiles what the values of its rows must be; on any thread. */
etch_status etch_case_begin(etch_sweep_case *self);
/* Compiles what is asked of its rows, some of which are left; on any thread. */
etch_status etch_case_complete(etch_sweep_case *self);
void etch_case_free(etch_sweep_case *self);
/* ---- behind.c ------------------------------------------------------------------------------------------ */

/* Of a case that is being completed: of its conditions and statements, as those count them. */
typedef struct etch_case_formulas {
    etch_sym *sym;
    /* of the session */
    etch_arena *arena;
    const etch_expr *musts, *claims;
} etch_case_formulas;

/* Finds what cuts. */
void etch_case_find_cuts(etch_sweep_case *self, const etch_case_formulas *given);
/* Why a session refuses its values; "it cannot be computed" where nothing says so. */
etch_reason_text etch_sweep_reason_of(etch_arena *arena, const etch_session *session);

/* ---- block.c ------------------------------------------------------------------------------------------- */

/* Finds the case of each row for which the plain statements hold; on any thread. Rows of cases that cannot be
 * compiled as a whole become cases of their own. */
etch_status etch_block_sort(etch_sweep_block *block);
/* Refuses the rows whose values do not fit their cases; on any thread. */
etch_status etch_block_fit(etch_sweep_block *block);
/* Computes the rows whose cases are complete; on any thread. */
etch_status etch_block_compute(etch_sweep_block *block);
/* Makes text of its rows, where they go out as they come; after all has been computed. */
void etch_block_finish(etch_sweep_block *block);
/* The number of a row of the sweep. */
uint64_t etch_block_number(const etch_sweep_block *block, uint32_t row);
/* Refuses a row. */
void etch_block_refuse(etch_sweep_block *block, uint32_t row, etch_reason_text reason);
/* The values of a row, by axis. */
etch_exact *etch_block_row(etch_arena *arena, const etch_sweep_block *block, uint32_t row);
/* Adds rows of a reason, which stay in memory of whoever has them. */
etch_tally *etch_tally_add(etch_arena *arena, etch_tallies *all, const etch_tally *tally);
/* Do rows go out as they come? */
bool etch_sweep_streams(const etch_sweep *sweep);

/* ---- evaluate.c ---------------------------------------------------------------------------------------- */

/* What formulas are for some rows: value and kind of formula f in row i at f*count + i. */
typedef struct etch_sweep_values {
    etch_workspace *workspace;
    uint32_t count;
    int64_t *values;
    unsigned char *kinds;
} etch_sweep_values;
/* Evaluates a program for rows of a block. The workspace is that of `out`, the rest lives in the arena. */
etch_status etch_block_evaluate(const etch_sweep_block *block, etch_arena *arena, const etch_program *program,
                                const uint32_t *inputs, const uint32_t *rows, uint32_t count,
                                etch_sweep_values *out);

/* ---- blocks.c ------------------------------------------------------------------------------------------ */

/* A block of the sweep for rows of a frame, behind those that there are: there is room for it. */
etch_status etch_blocks_next(etch_sweep *sweep, const etch_sweep_frame *frame, etch_sweep_block **block);
/* Adds a row, by axis; there is room for it. */
etch_status etch_block_add(etch_sweep_block *block, const etch_exact *row);
/* Adds rows that are cut, by a statement about a quantity or a plain one. */
void etch_block_add_cut(etch_sweep_block *block, uint64_t count, bool by_quantity);
/* ---- timed.c ------------------------------------------------------------------------------------------- */

/* Runs the step of each row of a block that is left, and leaves those for which statements about it hold. */
etch_status etch_block_run(etch_sweep_block *block, unsigned threads);

/* Computes the blocks of the sweep. */
etch_status etch_blocks_compute(etch_sweep *sweep, unsigned threads);
void etch_blocks_free(etch_sweep *sweep);

/* Ends what threads keep of times of steps. */
void etch_timers_free(etch_sweep *sweep);
/* Ends the programs of the shapes of a case. */
void etch_case_free_shapes(etch_sweep_case *of);

/* ---- lowered.c ----------------------------------------------------------------------------------------- */

/* Writes the traces of the rows that were kept, into folders of their own. */
etch_status etch_sweep_lower(etch_sweep *sweep);

/* ---- rows.c, print.c, sink.c, tell.c ------------------------------------------------------------------- */

/* Keeps a copy of a row, or not. */
bool etch_rows_offer(etch_sweep *sweep, const etch_kept_row *row);

/* "7/2" */
const char *etch_exact_text(etch_arena *arena, etch_exact value);
void etch_print_head(const etch_sweep *sweep, etch_buf *out);
void etch_print_row(const etch_sweep *sweep, const etch_sweep_frame *frame, const etch_exact *values,
                    const etch_exact *results, etch_buf *out);
/* All of the rows, in columns. */
void etch_print_table(const etch_sweep *sweep, const etch_kept_row *rows, uint32_t count, etch_buf *out);
/* Can the rows of the sweep, whose frames are known, be drawn? False after an error. */
bool etch_plot_fits(etch_sweep *sweep);
/* A picture of the rows that are kept, SVG. False after an error. */
bool etch_plot(etch_sweep *sweep, etch_buf *out);
const char *etch_row_text(const etch_sweep *sweep, const etch_sweep_frame *frame, const etch_exact *values);
/* "plan fsdp, config llama3_8b"; "" where there is nothing to say. */
const char *etch_frame_text(const etch_sweep *sweep, const etch_sweep_frame *frame);

/* behind the name of a file that misses rows */
#define ETCH_SINK_PARTIAL ".partial"
etch_status etch_sink_open(etch_sweep_sink *sink) ETCH_MUST_CHECK;
etch_status etch_sink_write(etch_sweep_sink *sink, const char *text, size_t length) ETCH_MUST_CHECK;
/* The file takes its name; `whole`: nothing is missing. */
etch_status etch_sink_close(etch_sweep_sink *sink, bool whole) ETCH_MUST_CHECK;
/* Removes what is not complete; after anything. */
void etch_sink_abandon(etch_sweep_sink *sink);

/* Says which rows are left out. False: none is left, which is an error. */
bool etch_sweep_tell(etch_sweep *sweep);
#endif
