/* What a sweep is asked for: options, and a block of the spec where they say nothing. */
#include "session/sweep/sweep_int.h"

#include <stdlib.h>
#include <string.h>

/* Adds the pieces of a list, without the space around them. */
static void split(etch_arena *arena, const char *text, etch_texts *out)
{
    while (text) {
        const size_t length = etch_piece_of_list(text);
        size_t begin = strspn(text, " \t\n"), end = length;
        while (end > begin && strchr(" \t\n", text[end - 1]))
            end--;
        if (end > begin)
            ETCH_PUSH(arena, out, etch_copy_text(arena, text + begin, end - begin));
        text = text[length] ? text + length + 1 : NULL;
    }
}

static bool refuse(etch_session *session, const char *why, const char *help)
{
    etch_diag *diag = etch_error(session->diags, ETCH_E_SWEEP_REQUEST, (etch_span){0, 0}, "%s", why);
    return etch_help(diag, "%s", help);
}

/* Adds a name, or with "all" each. False: there is none. */
static bool add_known(etch_arena *arena, const char *name, const char *const *known, uint32_t count,
                      etch_texts *out)
{
    const bool all = strcmp(name, "all") == 0;
    bool found = all;
    for (uint32_t i = 0; i < count; i++)
        if (all || strcmp(known[i], name) == 0) {
            ETCH_PUSH(arena, out, known[i]);
            found = true;
        }
    return found;
}

/* What a list of names is of. */
static const struct named {
    etch_listing what;
    const char *name;
    etch_code unknown;
} kinds[ETCH_CHOICE_MACHINE] = {[ETCH_CHOICE_PLAN] = {ETCH_LIST_PLANS, "plan", ETCH_E_UNKNOWN_PLAN},
                                [ETCH_CHOICE_CONFIG] = {ETCH_LIST_CONFIGS, "config", ETCH_E_UNKNOWN_CONFIG},
                                [ETCH_CHOICE_RUN] = {ETCH_LIST_RUNS, "run", ETCH_E_RUN}};

/* Names of an option, or of the line of the block where that is not given. False after an error. */
static bool read_names(etch_session *session, etch_choice_kind kind, const char *option,
                       const etch_sweep_names *line, const char *in_force, etch_sweep_request *out)
{
    const struct named *k = &kinds[kind];
    etch_sweep_choice choice = {.kind = kind, .name = k->name};
    etch_texts given = {0};
    const char *const *known;
    const uint32_t count = etch_spec_list(session->spec, k->what, &known);
    split(session->arena, option, &given);
    for (uint32_t i = 0; line && !option && i < line->count; i++)
        ETCH_PUSH(session->arena, &given, line->at[i]);
    for (uint32_t i = 0; i < given.count; i++) {
        if (add_known(session->arena, given.at[i], known, count, &choice.values))
            continue;
        etch_diag *diag = etch_error(session->diags, k->unknown, (etch_span){0, 0}, "there is no %s '%s'",
                                     k->name, given.at[i]);
        const char *near = etch_nearest(given.at[i], known, count);
        if (near)
            etch_help(diag, "did you mean '%s'?", near);
        return false;
    }
    choice.named = given.count > 0;
    if (!choice.named)
        ETCH_PUSH(session->arena, &choice.values, in_force);
    ETCH_PUSH(session->arena, &out->choices, choice);
    return true;
}

/* False after an error. */
static bool read_machines(etch_session *session, const etch_sweep_options *o, etch_sweep_request *out)
{
    etch_sweep_choice choice = {.kind = ETCH_CHOICE_MACHINE, .name = "machine", .named = o->names_machines};
    for (size_t i = 0; i < o->machine_count; i++) {
        if (!o->machines[i].name || !o->machines[i].spec)
            return refuse(session, "a machine needs a name and a spec", "`etch help machines` lists some");
        ETCH_PUSH(session->arena, &choice.values, etch_copy_string(session->arena, o->machines[i].name));
    }
    if (o->machine_count == 0)
        ETCH_PUSH(session->arena, &choice.values, NULL);
    choice.named = choice.named && o->machine_count > 0;
    ETCH_PUSH(session->arena, &out->choices, choice);
    return true;
}

/* "plan.schedule = gpipe, interleaved(virtual = 2)": what has a point in its name is chosen from texts. */
static bool is_choice(const char *axis)
{
    return axis[strcspn(axis, ".=")] == '.';
}

/* False after an error. */
static bool read_choice(etch_session *session, const char *axis, etch_sweep_request *out)
{
    etch_arena *arena = session->arena;
    const char *sign = strchr(axis, '=');
    etch_texts name = {0}, whole = {0};
    etch_sweep_choice choice = {.kind = ETCH_CHOICE_NUMBER, .named = true};
    if (sign) {
        split(arena, etch_copy_text(arena, axis, (size_t)(sign - axis)), &name);
        split(arena, sign + 1, &whole);
    }
    if (name.count != 1 || whole.count == 0)
        return etch_spec_report_empty_axis(session->spec, axis);
    const size_t length = strlen(whole.at[0]);
    if (whole.count == 1 && whole.at[0][0] == '[' && whole.at[0][length - 1] == ']')
        split(arena, etch_copy_text(arena, whole.at[0] + 1, length - 2), &choice.values);
    else
        choice.values = whole;
    choice.name = name.at[0];
    if (strncmp(choice.name, "plan.", 5) == 0)
        choice.kind = ETCH_CHOICE_OPTION;
    if (choice.values.count == 0)
        return etch_spec_report_empty_axis(session->spec, axis);
    for (uint32_t i = 0; i < out->choices.count; i++)
        if (strcmp(out->choices.at[i].name, choice.name) == 0) {
            etch_error(session->diags, ETCH_E_SWEEP_VALUES, (etch_span){0, 0},
                       "the values of '%s' are given twice", choice.name);
            return false;
        }
    ETCH_PUSH(arena, &out->choices, choice);
    return true;
}

/* An axis of numbers, or a choice. False after an error. */
static bool add_axis(etch_session *session, const char *axis, etch_sweep_request *out)
{
    if (is_choice(axis))
        return read_choice(session, axis, out);
    ETCH_PUSH(session->arena, &out->over, axis);
    return true;
}

static uint32_t add_expr(etch_session *session, etch_sweep_request *r, const char *text)
{
    for (uint32_t i = 0; i < r->exprs.count; i++)
        if (strcmp(r->exprs.at[i], text) == 0)
            return i;
    ETCH_PUSH(session->arena, &r->exprs, text);
    return r->exprs.count - 1;
}

static bool read_top(etch_session *session, const char *text, uint64_t *top)
{
    char *end;
    const unsigned long long value = strtoull(text, &end, 10);
    *top = value;
    if (*text >= '0' && *text <= '9' && *end == '\0' && value > 0)
        return true;
    etch_error(session->diags, ETCH_E_SWEEP_REQUEST, (etch_span){0, 0}, "'%.40s' is no number of best rows",
               text);
    return false;
}

/* What is computed: options before the lines of the block. */
static bool read_results(etch_session *session, const etch_sweep_options *o, const etch_sweep_block_text *b,
                         etch_sweep_request *out)
{
    etch_arena *arena = session->arena;
    etch_texts select = {0}, pareto = {0};
    const bool chosen = o->best || o->pareto;
    const char *best = o->best ? o->best : b && !chosen ? b->best : NULL;
    split(arena, o->select, &select);
    split(arena, o->pareto, &pareto);
    for (uint32_t i = 0; b && !o->select && i < b->select.count; i++)
        ETCH_PUSH(arena, &select, b->select.at[i]);
    for (uint32_t i = 0; b && !chosen && i < b->pareto.count; i++)
        ETCH_PUSH(arena, &pareto, b->pareto.at[i]);
    for (uint32_t i = 0; i < select.count; i++)
        add_expr(session, out, select.at[i]);
    out->has_best = best != NULL;
    if (best)
        out->best = add_expr(session, out, best);
    for (uint32_t i = 0; i < pareto.count; i++)
        ETCH_PUSH(arena, &out->pareto, add_expr(session, out, pareto.at[i]));
    const char *top = b && !o->pareto ? b->top : NULL;
    out->top = o->top ? o->top : 1;
    if (!o->top && top && !read_top(session, top, &out->top))
        return false;
    if (best && pareto.count > 0)
        return refuse(session, "a sweep prints its best rows, or its Pareto front, and not both",
                      "leave out one of --best and --pareto; or ask twice");
    if (!best && (o->top || top))
        return refuse(session, "the number of best rows needs what they are best in",
                      "say --best EXPR: the rows where it is least");
    if (o->verify && !o->lower)
        return refuse(session, "there are no traces to be verified", "say where they go: --lower DIR");
    if (o->lower && !best && pareto.count == 0)
        return refuse(session, "traces are written of the rows that are chosen",
                      "say which: --best EXPR, also with --top N, or --pareto EXPR,EXPR");
    if (o->lower && o->shard)
        return refuse(session, "a share of the rows does not know which are chosen of all",
                      "leave out --lower, and lower the rows that `etch merge` prints");
    return out->exprs.count > 0 ||
           refuse(session, "a sweep needs what to compute",
                  "say --select 'memory(peak), comm(step)', or --best EXPR, or --pareto EXPR,EXPR");
}

bool etch_sweep_read(etch_session *session, const etch_sweep_options *o, etch_sweep_request *out)
{
    etch_arena *arena = session->arena;
    const etch_sweep_block_text *b = o->sweep ? etch_spec_sweep(session->spec, o->sweep) : NULL;
    if (o->sweep && !b)
        return false;
    if (!read_names(session, ETCH_CHOICE_PLAN, o->plans, b ? &b->plans : NULL, session->options.plan, out) ||
        !read_names(session, ETCH_CHOICE_CONFIG, o->configs, b ? &b->configs : NULL, session->options.config,
                    out) ||
        !read_names(session, ETCH_CHOICE_RUN, o->runs, b ? &b->runs : NULL, session->options.run, out))
        return false;
    if (!read_machines(session, o, out))
        return false;
    for (uint32_t i = 0; b && i < b->over.count; i++)
        if (!add_axis(session, b->over.at[i], out))
            return false;
    for (size_t i = 0; i < o->over_count; i++)
        if (!add_axis(session, etch_copy_string(arena, o->over[i]), out))
            return false;
    for (uint32_t i = 0; b && i < b->where.count; i++)
        ETCH_PUSH(arena, &out->where, b->where.at[i]);
    for (size_t i = 0; i < o->where_count; i++)
        split(arena, o->where[i], &out->where);
    return read_results(session, o, b, out);
}
