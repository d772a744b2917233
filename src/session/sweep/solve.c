/* `solve`: the largest, or least, values for which a statement holds. A statement is a sweep of its two
 * sides, of which only the rows are computed that decide. */
#include "session/sweep/solve_int.h"

#include <string.h>

const char *etch_solving_name(etch_solving method)
{
    static const char *const names[] = {[ETCH_SOLVE_AUTO] = "auto",
                                        [ETCH_SOLVE_CLOSED] = "closed",
                                        [ETCH_SOLVE_BISECTION] = "bisection",
                                        [ETCH_SOLVE_EACH] = "each"};
    return (unsigned)method < sizeof names / sizeof *names ? names[method] : NULL;
}

const char *etch_solution_kind_name(etch_solution_kind kind)
{
    static const char *const names[] = {[ETCH_SOLUTION_LARGEST] = "largest",
                                        [ETCH_SOLUTION_LEAST] = "least",
                                        [ETCH_SOLUTION_EVERY] = "every",
                                        [ETCH_SOLUTION_SOME] = "some",
                                        [ETCH_SOLUTION_EQUAL] = "equal"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

enum { MOST_NAMES = 16, MOST_OUTER = 100000 };

typedef struct solving {
    etch_session *session;
    const etch_solve_options *options;
    const char *statement;
    etch_sweep sweep;
    etch_sweep_options sweep_options;
    etch_solver solver;
    /* has the last name values of its own? */
    bool listed;
    /* why the values of the other names are refused; NULL: they are not */
    const char *refused;
    ETCH_VEC(etch_frontier_row) rows;
    etch_solution *solution;
} solving;

/* ---- the statement ------------------------------------------------------------------------------------- */

static bool refuse(solving *s, const char *why, const char *help)
{
    etch_diag *diag = etch_error(s->session->diags, ETCH_E_SOLVE_REQUEST, (etch_span){0, 0}, "%s", why);
    return etch_help(diag, "%s", help);
}

/* The comparison of a statement, which stands in no brackets; its length. 0: there is none. */
static size_t comparison_in(const char *text, size_t *at)
{
    int depth = 0;
    for (*at = 0; text[*at]; ++*at) {
        const char c = text[*at];
        depth += (c == '(' || c == '[') - (c == ')' || c == ']');
        if (depth == 0 && strchr("<>=!|", c))
            return text[*at + 1] == '=' ? 2 : 1;
    }
    return 0;
}

static const char *trimmed(etch_arena *arena, const char *text, size_t length)
{
    while (length > 0 && strchr(" \t\n", *text)) {
        text++;
        length--;
    }
    while (length > 0 && strchr(" \t\n", text[length - 1]))
        length--;
    return etch_copy_text(arena, text, length);
}

static bool read_statement(solving *s)
{
    static const struct {
        const char *text;
        etch_relation relation;
    } known[] = {{"<=", ETCH_REL_LE},
                 {"<", ETCH_REL_LT},
                 {">=", ETCH_REL_GE},
                 {">", ETCH_REL_GT},
                 {"==", ETCH_REL_EQ}};
    etch_arena *arena = s->session->arena;
    size_t at, count = sizeof known / sizeof *known, i = 0;
    const size_t length = comparison_in(s->statement, &at);
    while (i < count &&
           (strlen(known[i].text) != length || strncmp(known[i].text, s->statement + at, length)))
        i++;
    if (i == count)
        return refuse(s, "a statement that is solved compares two values with <=, <, >=, > or ==",
                      "write 'memory(peak) <= 80 GB'");
    s->solution->statement = etch_copy_string(arena, s->statement);
    s->solution->left = trimmed(arena, s->statement, at);
    s->solution->right = trimmed(arena, s->statement + at + length, strlen(s->statement + at + length));
    s->solution->relation = known[i].text;
    s->solver.equation = known[i].relation == ETCH_REL_EQ;
    s->solver.relation = s->solver.equation ? ETCH_REL_LE : known[i].relation;
    ETCH_PUSH(arena, &s->sweep.request.exprs, s->solution->left);
    ETCH_PUSH(arena, &s->sweep.request.exprs, s->solution->right);
    return true;
}

/* ---- the variables ------------------------------------------------------------------------------------- */

/* "batch", "batch, seq" or "tp = 1, 2": each is an axis; one without values gets one for the time being. */
static bool read_names(solving *s, bool *open)
{
    etch_arena *arena = s->session->arena;
    etch_sweep_request *r = &s->sweep.request;
    for (size_t i = 0; i < s->options->name_count; i++) {
        const char *text = s->options->names[i];
        const bool listed = strchr(text, '=') != NULL;
        while (*text && r->over.count < MOST_NAMES) {
            const size_t length = listed ? strlen(text) : strcspn(text, ",");
            const char *name = trimmed(arena, text, length);
            open[r->over.count] = !listed;
            if (*name)
                ETCH_PUSH(arena, &r->over, listed ? name : etch_text(arena, "%s = 1", name));
            text += length + (text[length] != '\0');
        }
    }
    s->listed = r->over.count > 0 && !open[r->over.count - 1];
    if (r->over.count == 0)
        return refuse(s, "nothing is named that the statement is to be solved for", "say --for batch");
    for (uint32_t i = 0; i < r->over.count; i++)
        if (r->over.at[i][strcspn(r->over.at[i], ".= ")] == '.')
            return refuse(s, etch_text(arena, "'%.80s' is no param and no mesh axis", r->over.at[i]),
                          "`etch sweep --over` has a row for each value of a machine's number or an option "
                          "of plans; or a param of the spec may be the number");
    if (r->over.count == MOST_NAMES)
        return refuse(s, "too many variables to solve for", "fewer than 16 can be");
    for (uint32_t i = 0; i + 1 < r->over.count; i++)
        if (open[i])
            return refuse(s, "of several variables all but the last need values",
                          "say which: --for 'batch = powers(2, 0, 10)' --for seq");
    return true;
}

static bool open_frame(solving *s)
{
    etch_sweep *sweep = &s->sweep;
    etch_session *session = s->session;
    etch_sweep_frame *frame = etch_frame_new(sweep, NULL);
    if (frame->refused) {
        if (frame->why)
            etch_sweep_repeat(session, frame->why);
        return false;
    }
    for (uint32_t i = 0; i < sweep->columns.count; i++)
        if (i >= frame->axis_count || frame->axes[i].column != i) {
            etch_diag *diag = etch_error(session->diags, ETCH_E_SOLVE_REQUEST, (etch_span){0, 0},
                                         "'%s' is an axis of other plans", sweep->columns.at[i]);
            return etch_help(diag, "say which: --plan NAME");
        }
    const char **names = ETCH_NEW_ARRAY(session->arena, frame->axis_count, const char *);
    for (uint32_t i = 0; i < frame->axis_count; i++)
        names[i] = etch_copy_string(session->arena, frame->axes[i].name);
    s->solution->names = names;
    s->solution->name_count = frame->axis_count;
    s->solver.frame = frame;
    s->solver.row = ETCH_NEW_ARRAY(sweep->arena, frame->axis_count, etch_exact);
    return true;
}

/* ---- answers ------------------------------------------------------------------------------------------- */

static const char *trouble_text(const etch_turning *c)
{
    switch (c->trouble) {
    case ETCH_TURNING_DECIDES:
        return "it decides how the model and its stages are built, so that each value has formulas of its "
               "own";
    case ETCH_TURNING_NOT_LINEAR:
        return "the difference of the sides is not linear in it";
    case ETCH_TURNING_NOT_MONOTONE:
        return c->wanted == ETCH_SOLVE_EACH
                   ? "its admissible values have no end"
                   : "nothing proves that the difference of the sides rises or falls "
                     "with it";
    case ETCH_TURNING_LOST:
        return "no admissible value is found near the place where the sides are equal";
    case ETCH_TURNING_ODD:
        return "1 is a case of its own, and does not go with the others";
    case ETCH_TURNING_TIMED:
        return "a time is the result of a run, and nothing proves how it moves with it";
    default:
        return c->why ? c->why : "there is no formula in which it is open";
    }
}

static etch_status report_trouble(solving *s, const etch_turning *c)
{
    const etch_diag *wrong = c->trouble == ETCH_TURNING_DECIDES ? s->solver.frame->open_error : NULL;
    if (wrong)
        etch_sweep_repeat(s->session, wrong);
    etch_diag *diag = etch_error(s->session->diags, ETCH_E_SOLVE_UNKNOWN, (etch_span){0, 0},
                                 "'%s' cannot be solved for %s: %s", s->statement, c->name,
                                 wrong ? "the model cannot be built while it is open" : trouble_text(c));
    etch_help(diag, "name its values: --for '%s = 1, 2, 4, 8'", c->name);
    return ETCH_EUNKNOWN;
}

static void keep_row(solving *s, const etch_solution_row *row)
{
    etch_arena *arena = s->sweep.arena;
    const uint32_t count = s->solver.frame->axis_count;
    etch_exact *values = ETCH_NEW_ARRAY(arena, count, etch_exact);
    memcpy(values, s->solver.row, count * sizeof *values);
    values[count - 1] = etch_exact_read(arena, row->answer ? row->answer->values[count - 1] : "0");
    ETCH_PUSH(arena, &s->rows, (etch_frontier_row){*row, values});
}

static etch_status solve_row(solving *s, const etch_exact *values, uint32_t count)
{
    etch_solution_row row = {0};
    etch_turning turning = {0};
    bool found = false;
    etch_status status;
    if (s->listed) {
        status = etch_solve_each(&s->solver, values, count, &row);
        found = row.answer || row.answer_count > 0;
    } else {
        status = etch_solve_inner(&s->solver, &row, &turning, &found);
    }
    if (status == ETCH_EUNKNOWN)
        return report_trouble(s, &turning);
    if (turning.trouble == ETCH_TURNING_REFUSED)
        s->refused = turning.why;
    if (status == ETCH_OK && found)
        keep_row(s, &row);
    return status;
}

static etch_status refuse_outer(solving *s)
{
    etch_diag *diag =
        etch_error(s->session->diags, ETCH_E_SOLVE_REQUEST, (etch_span){0, 0},
                   "there are more than %d combinations of the first variables", (int)MOST_OUTER);
    etch_help(diag, "give fewer values");
    return ETCH_EINPUT;
}

/* Have the names before the last one more values together than can be solved for? */
static bool has_too_many(solving *s, etch_exact *row)
{
    const etch_sweep_frame *frame = s->solver.frame;
    const uint32_t last = frame->axis_count - 1;
    etch_exact *before = s->solver.row;
    uint32_t count = 0;
    etch_walk_start(&s->sweep.walk, s->sweep.arena, s->session, frame, NULL);
    while (count <= MOST_OUTER && etch_walk_next(&s->sweep.walk, row)) {
        bool same = count > 0;
        for (uint32_t i = 0; same && i < last; i++)
            same = etch_exact_compare(s->sweep.arena, row[i], before[i]) == 0;
        count += !same;
        memcpy(before, row, frame->axis_count * sizeof *row);
    }
    etch_walk_end(&s->sweep.walk);
    return count > MOST_OUTER;
}

/* For all values of the names before the last one. */
static etch_status solve_all(solving *s)
{
    const etch_sweep_frame *frame = s->solver.frame;
    const uint32_t last = frame->axis_count - 1;
    etch_exact *row = ETCH_NEW_ARRAY(s->sweep.arena, frame->axis_count, etch_exact);
    ETCH_VEC(etch_exact) values = {0};
    etch_status status = ETCH_OK;
    if (has_too_many(s, row))
        return refuse_outer(s);
    if (s->sweep.walk.failed)
        return ETCH_EINPUT;
    etch_walk_start(&s->sweep.walk, s->sweep.arena, s->session, frame, NULL);
    bool more = etch_walk_next(&s->sweep.walk, row);
    while (status == ETCH_OK && more) {
        bool same = true;
        memcpy(s->solver.row, row, frame->axis_count * sizeof *row);
        values.count = 0;
        while (more && same) {
            ETCH_PUSH(s->sweep.arena, &values, row[last]);
            more = etch_walk_next(&s->sweep.walk, row);
            for (uint32_t i = 0; more && i < last; i++)
                same = same && etch_exact_compare(s->sweep.arena, row[i], s->solver.row[i]) == 0;
        }
        status = solve_row(s, values.at, values.count);
    }
    return s->sweep.walk.failed ? ETCH_EINPUT : status;
}

static etch_solution_point *copy_point(etch_arena *arena, const etch_solution_point *p, size_t count,
                                       etch_solution_point *own)
{
    const char **values = ETCH_NEW_ARRAY(arena, count, const char *);
    for (size_t i = 0; i < count; i++)
        values[i] = etch_copy_string(arena, p->values[i]);
    *own = (etch_solution_point){values, etch_copy_string(arena, p->left), etch_copy_string(arena, p->right)};
    return own;
}

/* The rows outlive the sweep. */
static void hand_over(solving *s)
{
    etch_arena *arena = s->session->arena;
    const size_t names = s->solution->name_count;
    etch_solution_row *rows = ETCH_NEW_ARRAY(arena, s->rows.count, etch_solution_row);
    for (uint32_t i = 0; i < s->rows.count; i++) {
        const etch_solution_row *from = &s->rows.at[i].row;
        rows[i] = *from;
        if (from->answer)
            rows[i].answer = copy_point(arena, from->answer, names, ETCH_NEW(arena, etch_solution_point));
        if (from->fails)
            rows[i].fails = copy_point(arena, from->fails, names, ETCH_NEW(arena, etch_solution_point));
        etch_solution_point *answers = ETCH_NEW_ARRAY(arena, from->answer_count, etch_solution_point);
        for (size_t k = 0; k < from->answer_count; k++)
            copy_point(arena, &from->answers[k], names, &answers[k]);
        rows[i].answers = answers;
    }
    s->solution->rows = rows;
    s->solution->row_count = s->rows.count;
}

/* What steps run on, where it is another one than the spec's. */
static bool find_machine(solving *s)
{
    const etch_session *machine = s->options->machine;
    if (!machine)
        return true;
    etch_sweep_machine_of *own = ETCH_NEW(s->sweep.arena, etch_sweep_machine_of);
    own->cluster = etch_session_cluster(s->session, machine);
    s->sweep.machine = own;
    return own->cluster != NULL;
}

static etch_status run(void *data)
{
    solving *s = data;
    bool open[MOST_NAMES + 1] = {false};
    s->solution = ETCH_NEW(s->session->arena, etch_solution);
    if (!find_machine(s) || !read_statement(s) || !read_names(s, open) || !open_frame(s))
        return ETCH_EINPUT;
    s->sweep.report = ETCH_NEW(s->session->arena, etch_sweep_report);
    s->sweep.blocks = ETCH_NEW_ARRAY(s->sweep.arena, 1, etch_sweep_block);
    const etch_status status = solve_all(s);
    if (status != ETCH_OK)
        return status;
    if (s->rows.count == 0) {
        etch_diag *diag = etch_error(s->session->diags, ETCH_E_SOLVE_NONE, (etch_span){0, 0},
                                     "'%s' holds for no admissible value of %s", s->statement,
                                     s->solution->names[s->solution->name_count - 1]);
        if (s->refused)
            etch_note(diag, (etch_span){0, 0}, "refused, whatever it is: %s", s->refused);
        return ETCH_EINPUT;
    }
    etch_frontier(s->sweep.arena, s->rows.at, &s->rows.count, (uint32_t)s->solution->name_count);
    hand_over(s);
    return ETCH_OK;
}

/* ---- the session --------------------------------------------------------------------------------------- */

static etch_status run_guarded(void *data)
{
    solving *s = data;
    return etch_guard(s->sweep.mem, run, s);
}

etch_status etch_session_solve(etch_session *session, const char *statement,
                               const etch_solve_options *options, const etch_solution **solution)
{
    etch_solve_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    solving s = {.session = session, .options = &own, .statement = statement};
    s.sweep_options = (etch_sweep_options){.format = ETCH_SWEEP_TABLE, .stack = own.stack};
    s.sweep.session = session;
    s.sweep.options = &s.sweep_options;
    s.sweep.sink =
        (etch_sweep_sink){.session = session, .options = &s.sweep_options, .folder = -1, .file = -1};
    s.solver.sweep = &s.sweep;
    s.solver.wanted = own.method;
    s.solver.threads = own.threads ? own.threads : 1;
    etch_status status = etch_sweep_begin(&s.sweep);
    if (status == ETCH_OK)
        status = unfit ? etch_session_refuse(session, unfit) : etch_session_run(session, run_guarded, &s);
    etch_sweep_end(&s.sweep);
    *solution = status == ETCH_OK && session->broken == ETCH_OK ? s.solution : NULL;
    return status;
}
