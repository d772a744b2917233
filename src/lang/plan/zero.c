/* `zero 3 @ (nodes,gpus), root = true, group = layer, keep = false, again = gpus, prefetch = 1,
 * reduce = microbatch`. */
#include "lang/plan/plan_int.h"

#include <string.h>

static bool is_word(const etch_ast_expr *value, const char *word)
{
    return value->kind == ETCH_AST_NAME && strcmp(value->name.text, word) == 0;
}

/* Says what an option may be, unless its value was reported already. */
static void report(etch_plan_builder *b, const etch_ast_def *def, const char *may_be)
{
    if (def->value->kind != ETCH_AST_BROKEN)
        etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->value->span, "'%s' of a zero line is %s",
                   def->name.text, may_be);
}

/* A name, or several in parentheses. */
static etch_ast_names names_of(etch_plan_builder *b, const etch_ast_expr *value)
{
    etch_ast_names names = {0};
    const uint32_t count = value->kind == ETCH_AST_TUPLE ? value->items.count : 1;
    for (uint32_t i = 0; i < count; i++) {
        const etch_ast_expr *item = value->kind == ETCH_AST_TUPLE ? value->items.at[i] : value;
        if (item->kind != ETCH_AST_NAME)
            return (etch_ast_names){0};
        ETCH_PUSH(b->spec->arena, &names, ((etch_ast_name){item->name.text, item->span}));
    }
    return names;
}

static void read_again(etch_plan_builder *b, const etch_ast_def *def, etch_zero *out)
{
    const etch_ast_mesh mesh = {.axes = names_of(b, def->value), .span = def->value->span};
    etch_axis_list axes;
    if (mesh.axes.count == 0) {
        report(b, def, "axes, over which backward gathers: gpus, (a, b)");
        return;
    }
    if (!etch_mesh_axes(b, &mesh, &axes))
        return;
    if (axes.bits & ~out->axes) {
        etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->value->span,
                                     "'again' gathers over some of the axes that divide the weights");
        etch_note(diag, out->span, "these are here");
        return;
    }
    out->backward_axes = axes.bits;
}

static void read_keep(etch_plan_builder *b, const etch_ast_def *def, etch_zero *out)
{
    const etch_ast_expr *value = def->value;
    if (value->kind == ETCH_AST_TRUTH)
        out->keep = value->truth ? ETCH_KEEP_MICROBATCH : ETCH_KEEP_GROUP;
    else if (is_word(value, "microbatch"))
        out->keep = ETCH_KEEP_MICROBATCH;
    else if (is_word(value, "step"))
        out->keep = ETCH_KEEP_STEP;
    else
        report(b, def, "false, microbatch (or true) or step: how long gathered weights last");
}

static void read_root(etch_plan_builder *b, const etch_ast_def *def, etch_zero *out)
{
    if (def->value->kind == ETCH_AST_TRUTH)
        out->root = def->value->truth;
    else
        report(b, def, "true or false: are the weights of no iteration gathered once, until backward");
}

static void read_prefetch(etch_plan_builder *b, const etch_ast_def *def, etch_zero *out)
{
    enum { MOST_DIGITS = 9 };
    const etch_ast_expr *value = def->value;
    if (value->kind != ETCH_AST_INTEGER || strlen(value->name.text) > MOST_DIGITS) {
        report(b, def, "a number: how many groups ahead weights are gathered");
        return;
    }
    out->ahead = 0;
    for (const char *digit = value->name.text; *digit; digit++)
        out->ahead = 10 * out->ahead + (uint64_t)(*digit - '0');
}

static void read_reduce(etch_plan_builder *b, const etch_ast_def *def, etch_zero *out)
{
    if (is_word(def->value, "step") || (is_word(def->value, "microbatch") && out->level > 1))
        out->whole = is_word(def->value, "step");
    else if (out->level > 1)
        report(b, def, "microbatch or step: when gradients are reduced");
    else
        report(b, def, "step: zero 1 adds up whole gradients");
}

static void read_group(etch_plan_builder *b, const etch_ast_def *def, etch_zero *out)
{
    const etch_ast_names names = names_of(b, def->value);
    if (out->weight_groups || out->by_weight) {
        etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->name.span,
                   "'group' and 'unit', its old name, are one option");
        return;
    }
    out->by_weight = is_word(def->value, "weight");
    if (out->by_weight)
        return;
    if (out->level < 3) {
        report(b, def, "weight, each by itself: zero 3 also gathers by the iterations of loops");
        return;
    }
    const char **weight_groups = ETCH_NEW_ARRAY(b->spec->arena, names.count, const char *);
    etch_span *spans = ETCH_NEW_ARRAY(b->spec->arena, names.count, etch_span);
    for (uint32_t i = 0; i < names.count; i++) {
        etch_select_loop(b->spec, names.at[i]);
        weight_groups[i] = names.at[i].text;
        spans[i] = names.at[i].span;
    }
    if (names.count == 0)
        report(
            b, def,
            "a loop, whose iterations gather what they read: layer, (enc, dec); or weight: each by itself");
    out->weight_groups = weight_groups;
    out->group_spans = spans;
    out->group_count = names.count;
}

static const struct option {
    const char *name;
    /* the least that it means something for */
    uint32_t level;
    /* of an old name: the one that took its place */
    const char *now;
    void (*read)(etch_plan_builder *b, const etch_ast_def *def, etch_zero *out);
} options[] = {{"again", 3, NULL, read_again},   {"group", 1, NULL, read_group},
               {"keep", 3, NULL, read_keep},     {"prefetch", 3, NULL, read_prefetch},
               {"reduce", 1, NULL, read_reduce}, {"root", 3, NULL, read_root},
               {"unit", 3, "group", read_group}};
enum { OPTION_COUNT = sizeof options / sizeof *options };

const char *etch_zero_option_at(uint32_t index)
{
    return index < OPTION_COUNT ? options[index].name : NULL;
}

static const struct option *option_named(const char *name)
{
    for (uint32_t i = 0; i < OPTION_COUNT; i++)
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    return NULL;
}

static void read_option(etch_plan_builder *b, const etch_ast_def *def, bool in_scope, etch_zero *out)
{
    const struct option *option = option_named(def->name.text);
    if (!option) {
        const char *names[OPTION_COUNT];
        uint32_t count = 0;
        for (uint32_t i = 0; i < OPTION_COUNT; i++)
            if (!options[i].now)
                names[count++] = options[i].name;
        etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->name.span,
                                     "a zero line has no option '%s'", def->name.text);
        etch_suggest_name(diag, def->name.text, names, count);
        etch_help(diag, "it has %s", etch_names_listed(b->spec->arena, names, count));
    } else if (in_scope && option->read == read_prefetch) {
        etch_diag *diag =
            etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->name.span,
                       "weights of all scopes are gathered in one order: 'prefetch' is said once");
        etch_help(diag, "write it on the zero line of the plan");
    } else if (out->level < option->level) {
        etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->name.span,
                                     "'%s' speaks of weights that are gathered, and zero %u divides none",
                                     option->name, out->level);
        etch_help(diag, "zero 3 divides the weights, too");
    } else {
        if (option->now)
            etch_remark(b->spec->diags, ETCH_E_OLD_WORD, def->name.span,
                        "'%s' of a zero line is called '%s' now; the old word is understood until etch 0.2",
                        option->name, option->now);
        option->read(b, def, out);
    }
}

bool etch_zero_read(etch_plan_builder *b, const etch_ast_line *line, bool in_scope, etch_zero *out)
{
    etch_axis_list axes;
    const char *level = line->level.text;
    if (strcmp(level, "1") != 0 && strcmp(level, "2") != 0 && strcmp(level, "3") != 0) {
        etch_help(etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, line->level.span,
                             "there is no ZeRO level %s", level),
                  "1 divides the states of the optimizer, 2 the gradients as well, 3 the weights as well");
        return false;
    }
    const bool fine = etch_mesh_axes(b, &line->mesh, &axes);
    *out = (etch_zero){.level = (uint32_t)(level[0] - '0'),
                       .axes = axes.bits,
                       .whole = level[0] == '1',
                       .ahead = ETCH_ZERO_AHEAD,
                       .span = line->span};
    for (uint32_t i = 0; i < line->defs.count; i++)
        if (fine && !etch_plan_given_before(b, line, i))
            read_option(b, &line->defs.at[i], in_scope, out);
    if (fine && out->backward_axes && out->keep != ETCH_KEEP_GROUP)
        etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, line->span,
                   "'again' says what backward gathers, and with this 'keep' it gathers nothing");
    return fine;
}
