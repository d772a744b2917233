/* `offload optimizer @ host, ahead = 1`: what is in the memory of the host instead of the device's. */
#include "lang/plan/plan_int.h"

#include <string.h>

static bool is_word(const etch_ast_expr *value, const char *word)
{
    return value->kind == ETCH_AST_NAME && strcmp(value->name.text, word) == 0;
}

/* ---- what ---------------------------------------------------------------------------------------------- */

/* What a rank holds, by the names of memory(C). */
static const struct held {
    const char *name;
    /* 0: the passes need it all the time */
    uint32_t bits;
} held[] = {{"master", ETCH_OFFLOAD_MASTER},
            {"moments", ETCH_OFFLOAD_MOMENTS},
            {"optimizer", ETCH_OFFLOAD_MASTER | ETCH_OFFLOAD_MOMENTS},
            {"weights", 0},
            {"grads", 0},
            {"activations", 0},
            {"cache", 0}};
enum { HELD_COUNT = sizeof held / sizeof *held };

static const char help[] = "write offload optimizer @ host, or master or moments, which are parts of it";

/* It stays on the device. */
static void refuse_held(etch_plan_builder *b, const etch_ast_expr *value)
{
    etch_diag *diag =
        etch_error(b->spec->diags, ETCH_E_PLAN_LATER, value->span,
                   "offloading '%s' is part of the language but is not given meaning yet", value->name.text);
    etch_help(diag, "%s", help);
}

static void refuse_unknown(etch_plan_builder *b, const etch_ast_expr *value)
{
    const char *names[HELD_COUNT];
    for (uint32_t i = 0; i < HELD_COUNT; i++)
        names[i] = held[i].name;
    etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, value->span,
                                 "offload lists what the optimizer keeps in the memory of the host");
    if (value->kind == ETCH_AST_NAME)
        etch_suggest_name(diag, value->name.text, names, HELD_COUNT);
    etch_help(diag, "%s", help);
}

static uint32_t bits_of(etch_plan_builder *b, const etch_ast_expr *value)
{
    for (uint32_t i = 0; i < HELD_COUNT; i++)
        if (is_word(value, held[i].name)) {
            if (!held[i].bits)
                refuse_held(b, value);
            return held[i].bits;
        }
    if (value->kind != ETCH_AST_BROKEN && !is_word(value, "none"))
        refuse_unknown(b, value);
    return 0;
}

static void read_states(etch_plan_builder *b, const etch_ast_def *def)
{
    const etch_ast_expr *value = def->value;
    b->plan->offload = (etch_offload){.ahead = ETCH_OFFLOAD_AHEAD, .span = def->span};
    if (value->kind != ETCH_AST_TUPLE) {
        b->plan->offload.states = bits_of(b, value);
        return;
    }
    for (uint32_t i = 0; i < value->items.count; i++)
        b->plan->offload.states |= bits_of(b, value->items.at[i]);
}

void etch_plan_read_offload(etch_plan_builder *b, const etch_ast_def *def)
{
    if (etch_plan_is_first(b, def, b->plan->offload.span))
        read_states(b, def);
}

/* ---- the line ------------------------------------------------------------------------------------------ */

static void read_ahead(etch_plan_builder *b, const etch_ast_def *def, uint64_t *ahead)
{
    enum { MOST_DIGITS = 9 };
    const etch_ast_expr *value = def->value;
    if (value->kind == ETCH_AST_BROKEN)
        return;
    if (value->kind != ETCH_AST_INTEGER || strlen(value->name.text) > MOST_DIGITS) {
        etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, value->span,
                                     "'ahead' is a number: how many weight groups before the one that is "
                                     "updated states are loaded");
        etch_help(diag, "write ahead = 1");
        return;
    }
    *ahead = 0;
    for (const char *digit = value->name.text; *digit; digit++)
        *ahead = 10 * *ahead + (uint64_t)(*digit - '0');
}

static const char *const options[] = {"ahead"};
enum { OPTION_COUNT = sizeof options / sizeof *options };

const char *etch_offload_option_at(uint32_t index)
{
    return index < OPTION_COUNT ? options[index] : NULL;
}

static void read_option(etch_plan_builder *b, const etch_ast_def *def, etch_offload *out)
{
    if (strcmp(def->name.text, "ahead") == 0) {
        read_ahead(b, def, &out->ahead);
        return;
    }
    etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->name.span,
                                 "an offload line has no option '%s'", def->name.text);
    etch_suggest_name(diag, def->name.text, options, OPTION_COUNT);
    etch_help(diag, "it has %s", etch_names_listed(b->spec->arena, options, OPTION_COUNT));
}

static bool is_host(const etch_ast_mesh *mesh)
{
    return mesh->axes.count == 1 && mesh->axes.at[0].text && strcmp(mesh->axes.at[0].text, "host") == 0;
}

void etch_plan_read_offload_line(etch_plan_builder *b, const etch_ast_line *line)
{
    if (etch_plan_set_of(b->spec, "offload"))
        return; /* it stands in the place of the line */
    if (!is_host(&line->mesh)) {
        etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, line->mesh.span,
                                     "what is offloaded goes to the memory of the host, and to no mesh axis");
        etch_help(diag, "write offload optimizer @ host");
    }
    if (!etch_plan_is_first(b, &line->defs.at[0], b->plan->offload.span))
        return;
    read_states(b, &line->defs.at[0]);
    b->plan->offload.span = line->span;
    for (uint32_t i = 1; i < line->defs.count; i++)
        if (!etch_plan_given_before(b, line, i))
            read_option(b, &line->defs.at[i], &b->plan->offload);
}
