/* The order in which the stages of a plan work, and the time that it takes when slots of one direction take
 * equally long. */
#include "session/view/pipeline_int.h"

/* Of the picture: stages times weight groups of time. */
enum { MOST_CELLS = 1 << 20, FORWARD_TIME = 1, BACKWARD_TIME = 2 }; /* halves: as forward */

typedef struct showing {
    etch_session *session;
    etch_compiled *p;
    /* NULL: the plan has one stage */
    const etch_stage_line *line;
    /* as the spec has them */
    etch_pipe_sizes sizes;
    etch_pipe pipe;
    etch_pipeline_report *report;
} showing;

/* ---- what the plan says ----------------------------------------------------------------------------- */

static void find_sizes(showing *s)
{
    etch_sym *sym = s->session->sym;
    const etch_train *train = &s->p->training->train;
    const etch_expr one = etch_int(sym, 1);
    s->line = s->p->plan->stage;
    s->sizes = (etch_pipe_sizes){one, s->line ? s->line->chunks : one, train->micro ? train->micro : one};
    for (uint32_t i = 0; s->line && i < s->line->axis_count; i++)
        s->sizes.stages = etch_mul(sym, s->sizes.stages, s->p->plan->mesh.at[s->line->axes[i]].size);
}

static void report_unbound(const showing *s, etch_expr value, etch_span span, const char *what)
{
    const etch_expr *vars = NULL;
    const uint32_t count = etch_vars_of(s->session->sym, value, &vars);
    etch_buf names = {.arena = s->session->arena}, set = {.arena = s->session->arena};
    etch_buf_puts(&names, "");
    etch_buf_puts(&set, "");
    for (uint32_t i = 0; i < count; i++) {
        etch_buf_printf(&names, "%s%s", i ? ", " : "", etch_var_name(vars[i]));
        etch_buf_printf(&set, "%s%s=...", i ? "," : "", etch_var_name(vars[i]));
    }
    etch_diag *diag = etch_error(s->session->diags, ETCH_E_UNBOUND, span, "no value for %s", names.text);
    etch_note(diag, (etch_span){0, 0}, "%s needs it", what);
    etch_help(diag, "give %s: --set %s", count > 1 ? "them" : "it", set.text);
}

/* Binds a number from 1 to `most`; 0 after a reported error. */
static uint64_t number_of(const showing *s, etch_expr expr, etch_span span, const char *what, uint64_t most)
{
    etch_session *session = s->session;
    const etch_expr value = etch_compiled_apply(session, s->p, expr);
    uint64_t number;
    if (value && !etch_is_constant(value)) {
        report_unbound(s, value, span, what);
        return 0;
    }
    if (value && etch_to_u64(value, &number) && number >= 1 && number <= most)
        return number;
    etch_diag *diag = etch_error(session->diags, ETCH_E_BOUND_SIZE, span, "%s is %s", what,
                                 value ? etch_expr_text(session->sym, value) : "undefined");
    etch_help(diag, "it is an integer from 1 to %llu", (unsigned long long)most);
    return 0;
}

static bool bind_sizes(showing *s)
{
    const etch_span line = s->line ? s->line->span : s->p->plan->span;
    const etch_span train = s->p->training->train.span;
    const uint64_t stages = number_of(s, s->sizes.stages, line, "the number of stages", ETCH_MOST_STAGES);
    const uint64_t chunks =
        number_of(s, s->sizes.chunks, line, "the number of chunks of a stage", ETCH_MOST_CHUNKS);
    const uint64_t micro =
        number_of(s, s->sizes.microbatches, train, "the number of microbatches", ETCH_MOST_MICROBATCHES);
    if (!stages || !chunks || !micro)
        return false;
    const bool is_cut = stages > 1; /* else it is lowered as if there were no stage line */
    s->pipe = (etch_pipe){.schedule = is_cut ? s->line->schedule : etch_schedule_default(),
                          .stages = (uint32_t)stages,
                          .chunks = is_cut ? (uint32_t)chunks : 1,
                          .microbatches = micro,
                          .trains = s->p->model->trains};
    return etch_pipe_fits(s->session->diags, line, &s->pipe);
}

bool etch_view_pipe(etch_session *session, etch_compiled *p, etch_pipe *pipe)
{
    showing s = {.session = session, .p = p};
    find_sizes(&s);
    const bool fine = bind_sizes(&s);
    *pipe = s.pipe;
    return fine;
}

static bool fits(const showing *s)
{
    const uint64_t longest = (uint64_t)MOST_CELLS / s->pipe.stages;
    const uint64_t pairs = s->pipe.microbatches * s->pipe.chunks + s->pipe.stages;
    if (pairs <= longest / (FORWARD_TIME + BACKWARD_TIME))
        return true;
    etch_diag *diag = etch_error(s->session->diags, ETCH_E_SHOW_TOO_LARGE, (etch_span){0, 0},
                                 "a pipeline of %u stages with %llu slots in each is too large to be shown",
                                 (unsigned)s->pipe.stages, (unsigned long long)etch_action_count(&s->pipe));
    etch_help(diag, "show fewer stages or microbatches: the pattern is the same");
    return false;
}

/* ---- time ------------------------------------------------------------------------------------------- */

typedef struct clock {
    const etch_pipe *pipe;
    /* by stage */
    etch_pipeline_slot **slots;
    /* by stage: slots done */
    uint64_t *next;
    /* of forward, and of backward or its first half, by link and microbatch; 0: not done */
    uint64_t *ends[2];
    /* a stack of stages to look at, each once */
    uint32_t *waiting;
    bool *is_waiting;
    uint32_t waiting_count;
} clock;

static void look_at(clock *c, uint32_t stage)
{
    if (!c->is_waiting[stage])
        c->waiting[c->waiting_count++] = stage;
    c->is_waiting[stage] = true;
}

static uint64_t *end_of(const clock *c, bool backward, uint64_t model_chunk, uint64_t microbatch)
{
    return &c->ends[backward][model_chunk * c->pipe->microbatches + microbatch];
}

/* When what a slot needs is there; false: not yet known. */
static bool ready_at(const clock *c, const etch_pipeline_slot *slot, uint64_t *when)
{
    const uint64_t model_chunk = slot->link;
    const uint64_t last =
        etch_model_chunk_count(etch_schedule_map(c->pipe->schedule), c->pipe->stages, c->pipe->chunks) - 1;
    *when = 0;
    if (slot->kind == ETCH_ACTION_WEIGHT_GRADIENTS)
        *when = *end_of(c, true, model_chunk, slot->microbatch);
    else if (slot->kind != ETCH_ACTION_FORWARD && model_chunk < last)
        *when = *end_of(c, true, model_chunk + 1, slot->microbatch);
    else if (slot->kind != ETCH_ACTION_FORWARD)
        *when = *end_of(c, false, model_chunk, slot->microbatch);
    else if (model_chunk > 0)
        *when = *end_of(c, false, model_chunk - 1, slot->microbatch);
    else
        return true;
    return *when > 0;
}

/* How many slots, from this one on, run together: what they need and what they take, one after the other.
 * 0: something that they need is not yet known. */
static uint64_t together(const clock *c, const etch_pipeline_slot *slots, uint64_t most, uint64_t *start,
                         uint64_t *time)
{
    uint64_t count = 0;
    *time = 0;
    do {
        const etch_pipeline_slot *slot = &slots[count];
        const bool is_second = slot->overlaps && slot->kind == ETCH_ACTION_WEIGHT_GRADIENTS &&
                               slot[-1].kind == ETCH_ACTION_INPUT_GRADIENTS;
        uint64_t ready = 0;
        if (!is_second && !ready_at(c, slot, &ready))
            return 0;
        *start = ready > *start ? ready : *start;
        *time += slot->kind == ETCH_ACTION_BACKWARD ? BACKWARD_TIME : FORWARD_TIME;
    } while (++count < most && slots[count].overlaps);
    return count;
}

/* Does the slots of a stage as far as they can be done. */
static void advance(clock *c, uint32_t stage)
{
    const uint64_t count = etch_action_count(c->pipe), first = c->next[stage];
    while (c->next[stage] < count) {
        etch_pipeline_slot *slots = &c->slots[stage][c->next[stage]];
        uint64_t start = c->next[stage] > 0 ? slots[-1].end : 0, time;
        const uint64_t all = together(c, slots, count - c->next[stage], &start, &time);
        if (all == 0)
            break;
        for (uint64_t i = 0; i < all; i++) {
            slots[i].start = start;
            slots[i].end = start + time;
            if (slots[i].kind != ETCH_ACTION_WEIGHT_GRADIENTS)
                *end_of(c, slots[i].kind != ETCH_ACTION_FORWARD, slots[i].link, slots[i].microbatch) =
                    start + time;
        }
        c->next[stage] += all;
    }
    if (c->next[stage] == first)
        return;
    look_at(c, stage + 1 < c->pipe->stages ? stage + 1 : 0);
    look_at(c, stage > 0 ? stage - 1 : c->pipe->stages - 1);
}

/* Sets the times of all slots; returns the end of the last one. */
static uint64_t run_clock(etch_arena *arena, const etch_pipe *pipe, etch_pipeline_slot **slots)
{
    clock c = {.pipe = pipe, .slots = slots};
    const size_t cells = (size_t)(pipe->microbatches * pipe->chunks * pipe->stages);
    c.next = ETCH_NEW_ARRAY(arena, pipe->stages, uint64_t);
    c.waiting = ETCH_NEW_ARRAY(arena, pipe->stages, uint32_t);
    c.is_waiting = ETCH_NEW_ARRAY(arena, pipe->stages, bool);
    c.ends[0] = ETCH_NEW_ARRAY(arena, cells, uint64_t);
    c.ends[1] = ETCH_NEW_ARRAY(arena, cells, uint64_t);
    for (uint32_t stage = pipe->stages; stage-- > 0;)
        look_at(&c, stage);
    while (c.waiting_count > 0) {
        const uint32_t stage = c.waiting[--c.waiting_count];
        c.is_waiting[stage] = false;
        advance(&c, stage);
    }
    uint64_t end = 0;
    for (uint32_t stage = 0; stage < pipe->stages; stage++) {
        const uint64_t own = slots[stage][etch_action_count(pipe) - 1].end;
        end = own > end ? own : end;
    }
    return end;
}

/* ---- the report ------------------------------------------------------------------------------------- */

static void add_stages(const showing *s)
{
    etch_arena *arena = s->session->arena;
    const etch_pipe *pipe = &s->pipe;
    const uint64_t count = etch_action_count(pipe);
    etch_pipeline_stage *stages = ETCH_NEW_ARRAY(arena, pipe->stages, etch_pipeline_stage);
    etch_pipeline_slot **slots = ETCH_NEW_ARRAY(arena, pipe->stages, etch_pipeline_slot *);
    for (uint32_t stage = 0; stage < pipe->stages; stage++) {
        const etch_action *order = etch_actions(arena, pipe, stage);
        slots[stage] = ETCH_NEW_ARRAY(arena, (size_t)count, etch_pipeline_slot);
        for (uint64_t i = 0; i < count; i++)
            slots[stage][i] =
                (etch_pipeline_slot){.kind = order[i].kind,
                                     .chunk = order[i].chunk,
                                     .link = etch_model_chunk(etch_schedule_map(pipe->schedule), pipe->stages,
                                                              (etch_chunk_place){stage, order[i].chunk}),
                                     .microbatch = order[i].microbatch,
                                     .overlaps = order[i].overlaps};
        stages[stage] =
            (etch_pipeline_stage){.in_flight = etch_in_flight(order, count, ETCH_HOLD_FORWARD_TO_WEIGHTS),
                                  .slots = slots[stage],
                                  .slot_count = (size_t)count};
    }
    s->report->time = run_clock(arena, pipe, slots);
    s->report->stages = stages;
    s->report->stage_count = pipe->stages;
}

/* From the first slot to the end of the last, of the stage that takes longest: its next step may follow at
 * once. Forward only, of all stages together. */
static uint64_t longest(const etch_pipeline_report *report)
{
    uint64_t most = report->trains ? 0 : report->time;
    for (size_t i = 0; i < report->stage_count; i++) {
        const etch_pipeline_stage *stage = &report->stages[i];
        const uint64_t own = stage->slots[stage->slot_count - 1].end - stage->slots[0].start;
        most = own > most ? own : most;
    }
    return most;
}

static void add_formulas(const showing *s)
{
    etch_sym *sym = s->session->sym;
    const etch_pipe *pipe = &s->pipe;
    etch_pipeline_report *report = s->report;
    const uint64_t each = pipe->trains ? FORWARD_TIME + BACKWARD_TIME : FORWARD_TIME;
    const int64_t busy = (int64_t)(each * etch_chunk_microbatches(pipe) * pipe->chunks);
    report->bubble = etch_expr_text(sym, etch_ratio(sym, (int64_t)longest(report) - busy, busy));
    etch_buf bubble = {.arena = s->session->arena};
    if (etch_bubble_formula_holds(pipe)) {
        etch_expr_write(sym, etch_bubble_formula(sym, pipe->schedule, &s->sizes, pipe->trains), ETCH_PLAIN,
                        ETCH_FACTORED, &bubble);
        report->bubble_formula = bubble.text;
    }
    /* No param is called like a keyword. */
    if (pipe->trains && s->line && !etch_schedule_order(s->line->schedule))
        report->in_flight_formula =
            etch_expr_text(sym, etch_in_flight_formula(sym, pipe->schedule, &s->sizes,
                                                       ETCH_HOLD_FORWARD_TO_WEIGHTS, etch_var(sym, "stage")));
}

static etch_status show(void *data)
{
    showing *s = data;
    etch_session *session = s->session;
    s->p = etch_compiled_get(session, NULL, NULL, true, (etch_span){0, 0});
    if (!s->p || !etch_compiled_divide(session, s->p))
        return ETCH_EINPUT;
    find_sizes(s);
    if (!bind_sizes(s))
        return ETCH_EINPUT;
    etch_remark_default_axes(session, s->p, s->sizes.stages);
    if (!fits(s))
        return ETCH_ELIMIT;
    etch_pipeline_report *report = ETCH_NEW(session->arena, etch_pipeline_report);
    *report = (etch_pipeline_report){.model = s->p->model->name,
                                     .plan = s->p->plan->name,
                                     .config = etch_spec_config(session->spec, session->options.config),
                                     .schedule = etch_schedule_kind_of(s->pipe.schedule),
                                     .trains = s->pipe.trains,
                                     .chunks = s->pipe.chunks,
                                     .microbatches = s->pipe.microbatches};
    s->report = report;
    add_stages(s);
    add_formulas(s);
    return ETCH_OK;
}

etch_status etch_session_pipeline(etch_session *session, const etch_pipeline_report **report)
{
    showing s = {.session = session};
    const etch_status status = etch_session_run_bound(session, show, &s);
    *report = status == ETCH_OK ? s.report : NULL;
    return status;
}
