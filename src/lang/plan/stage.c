/* `stage (embed, layer, head) @ pp, schedule = interleaved(virtual = v), counts = [...]`. */
#include "lang/plan/plan_int.h"

#include <string.h>

/* "gpipe, one_f_one_b, interleaved(virtual = v)" */
static const char *schedules_text(etch_spec *spec)
{
    etch_buf text = {.arena = spec->arena};
    const etch_schedule *schedule;
    for (uint32_t i = 0; (schedule = etch_schedule_at(i)) != NULL; i++)
        etch_buf_printf(&text, "%s%s%s", i ? ", " : "", etch_schedule_name(schedule),
                        etch_schedule_takes_order(schedule)  ? "(\"F0 ..\", ..)"
                        : etch_schedule_has_chunks(schedule) ? "(virtual = v)"
                                                             : "");
    return text.text;
}

static void no_schedule(etch_plan_builder *b, etch_span span, const char *name)
{
    etch_spec *spec = b->spec;
    if (name) {
        ETCH_VEC(const char *) names = {0};
        for (uint32_t i = 0; etch_schedule_at(i); i++)
            ETCH_PUSH(spec->arena, &names, etch_schedule_name(etch_schedule_at(i)));
        etch_diag *diag = etch_error(spec->diags, ETCH_E_SCHEDULE, span, "there is no schedule '%s'", name);
        etch_suggest_name(diag, name, names.at, names.count);
        etch_help(diag, "schedules are %s", schedules_text(spec));
        return;
    }
    etch_diag *diag = etch_error(spec->diags, ETCH_E_SCHEDULE, span, "a schedule is given by its name");
    etch_help(diag, "schedules are %s", schedules_text(spec));
}

static etch_expr number_of(etch_plan_builder *b, const etch_ast_expr *expr)
{
    const etch_lookup lookup = etch_plan_lookup(b->spec, b->symbol->home, b->plan);
    return etch_number_of(b->spec, expr, &lookup);
}

static void read_chunks(etch_plan_builder *b, const etch_ast_expr *value, etch_stage_line *out)
{
    etch_spec *spec = b->spec;
    const char *name = etch_schedule_name(out->schedule);
    const uint32_t count = value->kind == ETCH_AST_CALL ? value->args.count : 0;
    out->chunks = etch_int(spec->sym, etch_schedule_chunks(out->schedule));
    if (!etch_schedule_has_chunks(out->schedule)) {
        if (value->kind == ETCH_AST_CALL)
            etch_error(spec->diags, ETCH_E_SCHEDULE, value->span, "schedule '%s' takes no options", name);
        return;
    }
    const etch_ast_arg *arg = count == 1 ? &value->args.at[0] : NULL;
    if (!arg || !arg->name.text || strcmp(arg->name.text, "virtual") != 0) {
        etch_diag *diag = etch_error(spec->diags, ETCH_E_SCHEDULE, value->span,
                                     "schedule '%s' needs the number of chunks that a stage holds", name);
        etch_help(diag, "for example %s(virtual = 2)", name);
        return;
    }
    out->chunks = number_of(b, arg->value);
}

static void read_schedule(etch_plan_builder *b, const etch_ast_expr *value, etch_stage_line *out)
{
    if (value->kind == ETCH_AST_BROKEN)
        return;
    if (value->kind != ETCH_AST_NAME && value->kind != ETCH_AST_CALL) {
        no_schedule(b, value->span, NULL);
        return;
    }
    const etch_schedule *schedule = etch_schedule_named(value->name.text);
    if (!schedule) {
        no_schedule(b, value->name.span, value->name.text);
        return;
    }
    if (etch_schedule_takes_order(schedule)) {
        schedule = etch_plan_read_listed(b->spec, value, &out->chunks);
        out->schedule = schedule ? schedule : out->schedule;
        return;
    }
    out->schedule = schedule;
    read_chunks(b, value, out);
}

static void read_counts(etch_plan_builder *b, const etch_ast_expr *value, etch_stage_line *out)
{
    if (value->kind == ETCH_AST_BROKEN)
        return;
    if (value->kind != ETCH_AST_LIST) {
        etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, value->span,
                                     "counts are a list: the units of each stage");
        etch_help(diag, "for example counts = [7, 8, 8, 7]");
        return;
    }
    etch_expr *counts = ETCH_NEW_ARRAY(b->spec->arena, value->items.count, etch_expr);
    for (uint32_t i = 0; i < value->items.count; i++)
        counts[i] = number_of(b, value->items.at[i]);
    out->counts = counts;
    out->count_count = value->items.count;
}

static const struct option {
    const char *name;
    void (*read)(etch_plan_builder *b, const etch_ast_expr *value, etch_stage_line *out);
} options[] = {{"counts", read_counts}, {"schedule", read_schedule}};
enum { OPTION_COUNT = sizeof options / sizeof *options };

const char *etch_stage_option_at(uint32_t index)
{
    return index < OPTION_COUNT ? options[index].name : NULL;
}

static void read_option(etch_plan_builder *b, const etch_ast_def *def, etch_stage_line *out)
{
    const char *names[OPTION_COUNT];
    for (uint32_t i = 0; i < OPTION_COUNT; i++) {
        names[i] = options[i].name;
        if (strcmp(options[i].name, def->name.text) == 0) {
            options[i].read(b, def->value, out);
            return;
        }
    }
    etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->name.span,
                                 "a stage line has no option '%s'", def->name.text);
    etch_suggest_name(diag, def->name.text, names, OPTION_COUNT);
    etch_help(diag, "it has %s; what a schedule takes stands behind it, schedule = interleaved(virtual = 2)",
              etch_names_listed(b->spec->arena, names, OPTION_COUNT));
}

static bool listed_before(etch_plan_builder *b, const etch_ast_line *line, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++) {
        if (line->what.at[i].text != line->what.at[index].text)
            continue;
        etch_diag *diag = etch_error(b->spec->diags, ETCH_E_STAGE_UNIT, line->what.at[index].span,
                                     "'%s' is listed twice", line->what.at[index].text);
        etch_note(diag, line->what.at[i].span, "it is listed here already");
        return true;
    }
    return false;
}

const etch_stage_line *etch_stage_read(etch_plan_builder *b, const etch_ast_line *line,
                                       const etch_axis_list *axes)
{
    etch_spec *spec = b->spec;
    etch_stage_line *out = ETCH_NEW(spec->arena, etch_stage_line);
    const char **selectors = ETCH_NEW_ARRAY(spec->arena, line->what.count, const char *);
    etch_span *spans = ETCH_NEW_ARRAY(spec->arena, line->what.count, etch_span);
    bool *known = ETCH_NEW_ARRAY(spec->arena, line->what.count, bool);
    for (uint32_t i = 0; i < line->what.count; i++) {
        if (!listed_before(b, line, i))
            known[i] = etch_select_part(spec, line->what.at[i]);
        selectors[i] = line->what.at[i].text;
        spans[i] = line->what.at[i].span;
    }
    *out = (etch_stage_line){.selectors = selectors,
                             .selector_spans = spans,
                             .selectors_known = known,
                             .selector_count = line->what.count,
                             .axis_count = axes->count,
                             .schedule = etch_schedule_default(),
                             .chunks = etch_int(spec->sym, 1),
                             .span = line->span};
    memcpy(out->axes, axes->at, sizeof axes->at);
    for (uint32_t i = 0; i < line->defs.count; i++)
        if (!etch_plan_set_of(spec, line->defs.at[i].name.text) && !etch_plan_given_before(b, line, i))
            read_option(b, &line->defs.at[i], out);
    for (uint32_t i = 0; i < OPTION_COUNT; i++)
        if (etch_plan_set_of(spec, options[i].name))
            options[i].read(b, etch_plan_set_of(spec, options[i].name)->value, out);
    return out;
}

/* ---- axes ---------------------------------------------------------------------------------------------- */

/* Ranks of different stages hold different parts of the model: there is nothing that they could divide. */
static void refuse_axes(etch_plan_builder *b, const uint32_t *axes, uint32_t count, etch_span span)
{
    const etch_stage_line *line = b->plan->stage;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < line->axis_count; k++) {
            if (axes[i] != line->axes[k])
                continue;
            const char *name = b->plan->mesh.at[axes[i]].name;
            etch_diag *diag =
                etch_error(b->spec->diags, ETCH_E_STAGE_AXIS, span,
                           "mesh axis '%s' numbers the stages and cannot divide anything else", name);
            etch_note(diag, line->span, "the stages are here");
            etch_help(diag, "give the stages an axis of their own in the mesh");
            return;
        }
}

static void refuse_shards(etch_plan_builder *b, const etch_shard *shards, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        refuse_axes(b, shards[i].axes, shards[i].axis_count, shards[i].span);
}

static void refuse_pins(etch_plan_builder *b, const etch_pin *pins, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        refuse_shards(b, pins[i].shards.at, pins[i].shards.count);
}

static void refuse_zero(etch_plan_builder *b, const etch_zero *zero)
{
    for (uint32_t axis = 0; axis < b->plan->mesh.count; axis++)
        if (zero->axes >> axis & 1)
            refuse_axes(b, &axis, 1, zero->span);
}

void etch_stage_check_axes(etch_plan_builder *b)
{
    const etch_plan *plan = b->plan;
    if (!plan->stage)
        return;
    refuse_shards(b, plan->shards.at, plan->shards.count);
    refuse_pins(b, plan->pins.at, plan->pins.count);
    for (uint32_t i = 0; i < plan->overrides.count; i++) {
        refuse_shards(b, plan->overrides.at[i].shards.at, plan->overrides.at[i].shards.count);
        refuse_pins(b, plan->overrides.at[i].pins.at, plan->overrides.at[i].pins.count);
        refuse_zero(b, &plan->overrides.at[i].zero);
    }
    refuse_zero(b, &plan->zero);
}
