/* What a sweep is asked for: options, and a block of the spec where they say nothing. */
#include "session/sweep/sweep_int.h"

#include <stdlib.h>
#include <string.h>

/* The piece of a list before the next comma that is in no brackets. */
static size_t piece_length(const char *text)
{
    size_t length = 0;
    for (int depth = 0; text[length]; length++) {
        if (strchr("([{", text[length]))
            depth++;
        else if (strchr(")]}", text[length]))
            depth--;
        else if (text[length] == ',' && depth <= 0)
            break;
    }
    return length;
}

/* Adds the pieces of a list, without the space around them. */
static void split(etch_arena *arena, const char *text, etch_texts *out)
{
    while (text) {
        const size_t length = piece_length(text);
        size_t begin = strspn(text, " \t\n"), end = length;
        while (end > begin && strchr(" \t\n", text[end - 1]))
            end--;
        if (end > begin)
            ETCH_PUSH(arena, out, etch_copy_text(arena, text + begin, end - begin));
        text = text[length] ? text + length + 1 : NULL;
    }
}

/* Names of a list; "all": all that there are. False after an error. */
static bool read_names(etch_session *session, etch_listing what, const etch_texts *given, etch_texts *out)
{
    static const char *const kinds[] = {[ETCH_LIST_PLANS] = "plan", [ETCH_LIST_CONFIGS] = "config"};
    const char *const *known;
    const uint32_t count = etch_spec_list(session->spec, what, &known);
    for (uint32_t i = 0; i < given->count; i++) {
        const bool all = strcmp(given->at[i], "all") == 0;
        uint32_t k = 0;
        while (k < count && (all || strcmp(known[k], given->at[i]) != 0)) {
            if (all)
                ETCH_PUSH(session->arena, out, known[k]);
            k++;
        }
        if (!all && k < count)
            ETCH_PUSH(session->arena, out, known[k]);
        if (all || k < count)
            continue;
        const bool plans = what == ETCH_LIST_PLANS;
        etch_diag *diag = etch_error(session->diags, plans ? ETCH_E_UNKNOWN_PLAN : ETCH_E_UNKNOWN_CONFIG,
                                     (etch_span){0, 0}, "there is no %s '%s'", kinds[what], given->at[i]);
        const char *near = etch_nearest(given->at[i], known, count);
        if (near)
            etch_help(diag, "did you mean '%s'?", near);
        return false;
    }
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

static bool refuse(etch_session *session, const char *why, const char *help)
{
    etch_diag *diag = etch_error(session->diags, ETCH_E_SWEEP_REQUEST, (etch_span){0, 0}, "%s", why);
    return etch_help(diag, "%s", help);
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
    for (uint32_t i = 0; b && i < b->over.count; i++)
        ETCH_PUSH(arena, &out->over, b->over.at[i]);
    for (size_t i = 0; i < o->over_count; i++)
        ETCH_PUSH(arena, &out->over, etch_copy_string(arena, o->over[i]));
    for (uint32_t i = 0; b && i < b->where.count; i++)
        ETCH_PUSH(arena, &out->where, b->where.at[i]);
    for (size_t i = 0; i < o->where_count; i++)
        split(arena, o->where[i], &out->where);
    etch_texts plans = {0}, configs = {0};
    split(arena, o->plans, &plans);
    split(arena, o->configs, &configs);
    for (uint32_t i = 0; b && !o->plans && i < b->plans.count; i++)
        ETCH_PUSH(arena, &plans, b->plans.at[i]);
    for (uint32_t i = 0; b && !o->configs && i < b->configs.count; i++)
        ETCH_PUSH(arena, &configs, b->configs.at[i]);
    if (!read_names(session, ETCH_LIST_PLANS, &plans, &out->plans) ||
        !read_names(session, ETCH_LIST_CONFIGS, &configs, &out->configs))
        return false;
    out->names_plans = out->plans.count > 0;
    out->names_configs = out->configs.count > 0;
    if (!out->names_plans)
        ETCH_PUSH(arena, &out->plans, session->options.plan);
    if (!out->names_configs)
        ETCH_PUSH(arena, &out->configs, session->options.config);
    return read_results(session, o, b, out);
}
