/* Plans: `parallel NAME { ... }` turned into what placement works with. */
#include "lang/plan/plan_int.h"

#include <string.h>

/* ---- lines --------------------------------------------------------------------------------------------- */

static etch_diag *refuse(etch_plan_builder *b, etch_span span, const char *what)
{
    return etch_error(b->spec->diags, ETCH_E_PLAN_LATER, span,
                      "%s is part of the language but is not given meaning yet", what);
}

static etch_shard shard_of(etch_ast_name dim, etch_span span, const etch_axis_list *axes)
{
    etch_shard shard = {.dim = dim.text, .axis_count = axes->count, .span = span};
    memcpy(shard.axes, axes->at, sizeof axes->at);
    return shard;
}

typedef ETCH_VEC(etch_shard) shard_list;

/* One dim is sharded once by one map. */
static void add_shard(etch_plan_builder *b, shard_list *list, etch_ast_name dim, etch_span span,
                      const etch_ast_mesh *mesh)
{
    etch_axis_list axes;
    if (!etch_mesh_axes(b, mesh, &axes))
        return;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->at[i].dim != dim.text)
            continue;
        etch_diag *diag =
            etch_error(b->spec->diags, ETCH_E_SHARD_TWICE, span, "dim '%s' is sharded twice", dim.text);
        etch_note(diag, list->at[i].span, "it is sharded here already");
        etch_help(diag, "several axes of one dim are one list: %s @ (a, b)", dim.text);
        return;
    }
    etch_shard shard = shard_of(dim, span, &axes);
    shard.known = etch_select_dim(b->spec, dim);
    ETCH_PUSH(b->spec->arena, list, shard);
}

/* A dim that a pin lists without axes: the tensor has it, whole. */
static void add_whole_dim(etch_plan_builder *b, shard_list *list, etch_ast_name dim, etch_span span)
{
    etch_select_dim(b->spec, dim);
    ETCH_PUSH(b->spec->arena, list, (etch_shard){.dim = dim.text, .bare = true, .span = span});
}

static void read_pin(etch_plan_builder *b, const etch_ast_line *line, etch_pin *pin)
{
    shard_list shards = {0};
    const etch_ast_axis *rest = NULL;
    *pin = (etch_pin){.selector = line->what.at[0].text, .span = line->span};
    etch_select_tensor(b->spec, line->what.at[0]);
    for (uint32_t i = 0; i < line->shape.count; i++) {
        const etch_ast_axis *axis = &line->shape.at[i];
        if (axis->rest && rest)
            etch_note(etch_error(b->spec->diags, ETCH_E_SHARD_TWICE, axis->span,
                                 "'..' is all dims that the pin does not name: it stands once"),
                      rest->span, "it stands here already");
        if (axis->rest) {
            pin->rest = true;
            rest = axis;
            continue;
        }
        if (axis->size->kind == ETCH_AST_NAME) {
            if (axis->placed)
                add_shard(b, &shards, axis->size->name, axis->span, &axis->mesh);
            else
                add_whole_dim(b, &shards, axis->size->name, axis->span);
        } else if (axis->size->kind != ETCH_AST_BROKEN) {
            etch_error(b->spec->diags, ETCH_E_NOT_A_DIM, axis->span, "a pin lists dims by name");
        }
    }
    for (uint32_t i = 0; i < shards.count; i++)
        ETCH_PUSH(b->spec->arena, &pin->shards, shards.at[i]);
}

/* What is written, with single spaces. */
static const char *one_line(etch_spec *spec, etch_span span)
{
    etch_buf out = {.arena = spec->arena};
    etch_buf_puts(&out, "");
    for (const char *at = etch_written(spec, span); *at;) {
        const size_t gap = strspn(at, " \t\r\n"), length = strcspn(at + gap, " \t\r\n");
        if (gap > 0 && out.length > 0)
            etch_buf_puts(&out, " ");
        etch_buf_add(&out, at + gap, length);
        at += gap + length;
    }
    return out.text;
}

/* `stage` in a scope does nothing where its axes are 1. */
static void add_pending(etch_plan_builder *b, const etch_ast_line *line)
{
    etch_spec *spec = b->spec;
    etch_axis_list axes;
    if (!etch_mesh_axes(b, &line->mesh, &axes))
        return;
    const char *text = one_line(spec, (etch_span){line->span.start, line->mesh.span.end});
    ETCH_PUSH(spec->arena, &b->plan->pending, (etch_pending){text, axes.bits, line->span});
}

/* A plan cuts the model once. */
static void read_stage(etch_plan_builder *b, const etch_ast_line *line)
{
    etch_axis_list axes;
    if (!etch_mesh_axes(b, &line->mesh, &axes))
        return;
    if (b->plan->stage) {
        etch_diag *diag =
            etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, line->span, "a plan has one stage line");
        etch_note(diag, b->plan->stage->span, "it is here");
        etch_help(diag, "one line lists all units: stage (embed, layer, head) @ pp");
        return;
    }
    b->plan->stage = etch_stage_read(b, line, &axes);
}

/* Options without meaning yet. */
static const char *const later_options[] = {"capacity", "save"};

static bool is_option(const etch_ast_def *def, const char *name)
{
    return strcmp(def->name.text, name) == 0;
}

/* What is recomputed under this plan, whatever the train block says. */
static void read_recompute(etch_plan_builder *b, const etch_ast_def *def, uint32_t place)
{
    if (etch_plan_is_first(b, def, place ? b->scope_recompute : b->plan_recompute))
        etch_plan_read_recompute(b, def, place);
}

/* `reduce = layer`, `end` or `microbatch`: when gradients are reduced. */
static void read_reduce(etch_plan_builder *b, const etch_ast_def *def)
{
    const char *when = def->value->kind == ETCH_AST_NAME ? def->value->name.text : "";
    if (!etch_plan_is_first(b, def, b->plan->reduce_span))
        return;
    b->plan->reduce_span = def->span;
    b->plan->reduce_last = strcmp(when, "end") == 0;
    b->plan->reduce_each = strcmp(when, "microbatch") == 0;
    if (b->plan->reduce_last || b->plan->reduce_each || strcmp(when, "layer") == 0 ||
        def->value->kind == ETCH_AST_BROKEN)
        return;
    etch_diag *diag =
        etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->value->span,
                   "gradients are reduced by layer, at the end of the step, or in each microbatch");
    etch_help(diag,
              "write reduce = layer, as soon as a layer is complete, reduce = end, or reduce = microbatch");
}

static void read_order(etch_plan_builder *b, const etch_ast_def *def)
{
    if (etch_plan_is_first(b, def, b->plan->order_span))
        etch_plan_read_order(b, def);
}

static void read_ranks(etch_plan_builder *b, const etch_ast_def *def)
{
    if (etch_plan_is_first(b, def, b->plan->ranks.span))
        etch_plan_read_ranks(b, def);
}

/* A scope could say otherwise than the plan around it; that has no meaning yet. */
static bool may_come_in_scope(const etch_ast_def *def)
{
    return is_option(def, "keep") || is_option(def, "offload") || is_option(def, "balance") ||
           is_option(def, "attend");
}

/* What is said once, for all of the model, and why. */
static void refuse_in_scope(etch_plan_builder *b, const etch_ast_def *def)
{
    const char *why =
        etch_text(b->spec->arena, "'%s' is of all ranks: a scope has none of its own", def->name.text);
    if (may_come_in_scope(def)) {
        refuse(b, def->span, etch_text(b->spec->arena, "'%s' in a scope", def->name.text));
        return;
    }
    if (is_option(def, "reduce") || is_option(def, "bucket"))
        why = "gradients are reduced together, those of several modules in one collective: a scope cannot "
              "say when";
    etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->span, "%s", why);
    etch_help(diag, "write it outside of the scope, for the whole plan");
}

/* `keep = gathers` or `keep = none`: does backward use the copies that forward has gathered? */
static void read_keep(etch_plan_builder *b, const etch_ast_def *def)
{
    const char *what = def->value->kind == ETCH_AST_NAME ? def->value->name.text : "";
    if (!etch_plan_is_first(b, def, b->plan->keep_span))
        return;
    b->plan->keep_span = def->span;
    b->plan->keep_gathers = strcmp(what, "gathers") == 0;
    if (b->plan->keep_gathers || strcmp(what, "none") == 0 || def->value->kind == ETCH_AST_BROKEN)
        return;
    etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->value->span,
                                 "a plan keeps gathers for the backward pass, or none of them");
    etch_help(diag, "write keep = gathers; without it backward gathers again what forward had gathered");
}

static void read_bucket(etch_plan_builder *b, const etch_ast_def *def)
{
    if (etch_plan_is_first(b, def, b->plan->bucket_span))
        etch_plan_read_bucket(b, def);
}

static void read_balance(etch_plan_builder *b, const etch_ast_def *def)
{
    if (etch_plan_is_first(b, def, b->plan->balance_span))
        etch_plan_read_balance(b, def);
}

static void read_attend(etch_plan_builder *b, const etch_ast_def *def)
{
    if (etch_plan_is_first(b, def, b->plan->attend_span))
        etch_plan_read_attend(b, def);
}

/* Options that have a meaning in a plan; `recompute` has one in scopes, too. */
typedef struct plan_option {
    const char *name;
    void (*read)(etch_plan_builder *b, const etch_ast_def *def);
} plan_option;
static const plan_option plan_options[] = {{"attend", read_attend},
                                           {"balance", read_balance},
                                           {"bucket", read_bucket},
                                           {"keep", read_keep},
                                           {"offload", etch_plan_read_offload},
                                           {"order", read_order},
                                           {"ranks", read_ranks},
                                           {"recompute", NULL},
                                           {"reduce", read_reduce}};

const char *etch_plan_option_at(uint32_t index)
{
    return index < sizeof plan_options / sizeof *plan_options ? plan_options[index].name : NULL;
}

/* NULL: it has none. */
static const plan_option *option_of(const etch_ast_def *def)
{
    for (uint32_t i = 0; i < sizeof plan_options / sizeof plan_options[0]; i++)
        if (is_option(def, plan_options[i].name))
            return &plan_options[i];
    return NULL;
}

/* It has none. What was meant may be an option with a meaning. */
static void refuse_plan_option(etch_plan_builder *b, const etch_ast_def *def)
{
    enum {
        MEANT = sizeof plan_options / sizeof plan_options[0],
        LATER = sizeof later_options / sizeof later_options[0]
    };
    etch_arena *arena = b->spec->arena;
    const char *known[MEANT + LATER];
    for (uint32_t i = 0; i < MEANT; i++)
        known[i] = plan_options[i].name;
    for (uint32_t i = 0; i < LATER; i++) {
        known[MEANT + i] = later_options[i];
        if (strcmp(later_options[i], def->name.text) == 0) {
            refuse(b, def->span, etch_text(arena, "'%s' in a plan", def->name.text));
            return;
        }
    }
    etch_diag *diag = etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->name.span,
                                 "a plan has no option '%s'", def->name.text);
    if (etch_help_place_of_option(diag, def->name.text))
        return;
    etch_suggest_name(diag, def->name.text, known, MEANT + LATER);
    etch_help(diag, "it has %s; sizes of axes stand in the mesh, mesh [dp = 8]",
              etch_names_listed(arena, known, MEANT));
}

/* Options of a plan, or of the scope at this place in its list. */
static void read_options(etch_plan_builder *b, const etch_ast_line *line, uint32_t place)
{
    for (uint32_t i = 0; i < line->defs.count; i++) {
        const etch_ast_def *def = &line->defs.at[i];
        const plan_option *option = option_of(def);
        if (place == 0 && etch_plan_set_of(b->spec, def->name.text))
            continue; /* another one stands in its place */
        if (!option)
            refuse_plan_option(b, def);
        else if (!option->read)
            read_recompute(b, def, place);
        else if (place > 0)
            refuse_in_scope(b, def);
        else
            option->read(b, def);
    }
}

/* `zero` of the plan, or of a scope of it, for whose weights it stands in place of the one around it. */
static void read_zero(etch_plan_builder *b, const etch_ast_line *line, bool in_scope, etch_zero *zero)
{
    etch_zero read;
    if (!etch_zero_read(b, line, in_scope, &read))
        return;
    if (zero->level) {
        etch_diag *diag = etch_error(b->spec->diags, ETCH_E_ZERO_TWICE, line->span, "%s has one zero line",
                                     in_scope ? "a scope" : "a plan");
        etch_note(diag, zero->span, "it is here");
        etch_help(diag, "several axes are one list: zero 1 @ (a, b)");
        return;
    }
    *zero = read;
}

static void refuse_pad_in_scope(etch_plan_builder *b, const etch_ast_line *line)
{
    etch_diag *diag =
        etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, line->span,
                   "a dim is padded everywhere or nowhere: values with it go in and out of scopes");
    etch_help(diag, "write it outside of the scope, for the whole plan");
}

/* Lines that mean the same in a plan and in a scope of it. */
static void read_common(etch_plan_builder *b, const etch_ast_line *line, uint32_t place)
{
    switch (line->kind) {
    case ETCH_AST_PAD:
        if (place > 0)
            refuse_pad_in_scope(b, line);
        for (uint32_t i = 0; !place && i < line->defs.count; i++)
            etch_plan_read_pad(b, &line->defs.at[i]);
        break;
    case ETCH_AST_DTYPES:
        if (place > 0)
            refuse(b, line->span, "'dtype' in a scope");
        else
            etch_precision_read(b->spec, &line->defs, &b->plan->precision);
        break;
    case ETCH_AST_OPTIONS:
        read_options(b, line, place);
        break;
    default:
        break;
    }
}

static void read_scope(etch_plan_builder *b, const etch_ast_line *line, uint32_t outer);

/* `place`: that of the scope in the plan's list plus one; 0: of the plan itself. */
static void read_scope_line(etch_plan_builder *b, const etch_ast_line *line, shard_list *shards,
                            etch_override *scope, uint32_t place)
{
    etch_pin pin;
    switch (line->kind) {
    case ETCH_AST_SHARD:
        for (uint32_t i = 0; i < line->places.count; i++) {
            const etch_ast_place *at = &line->places.at[i];
            add_shard(b, shards, at->name, at->span, &at->mesh);
        }
        break;
    case ETCH_AST_PIN:
        read_pin(b, line, &pin);
        ETCH_PUSH(b->spec->arena, &scope->pins, pin);
        break;
    case ETCH_AST_ZERO:
        read_zero(b, line, place > 0, place > 0 ? &scope->zero : &b->plan->zero);
        break;
    case ETCH_AST_STAGE:
        if (place > 0)
            add_pending(b, line);
        else
            read_stage(b, line);
        break;
    case ETCH_AST_OFFLOAD:
        if (place > 0)
            refuse_in_scope(b, &line->defs.at[0]);
        else
            etch_plan_read_offload_line(b, line);
        break;
    case ETCH_AST_SCOPE:
        read_scope(b, line, place);
        break;
    default:
        read_common(b, line, place);
    }
}

/* A scope stands in the list before those inside it. As deep as the parser lets scopes be. */
static void read_scope(etch_plan_builder *b, const etch_ast_line *line, uint32_t outer)
{
    etch_spec *spec = b->spec;
    etch_override scope = {.span = line->span, .outer = outer};
    const char **selectors = ETCH_NEW_ARRAY(spec->arena, line->what.count, const char *);
    for (uint32_t i = 0; i < line->what.count; i++) {
        etch_select_part(spec, line->what.at[i]);
        selectors[scope.selector_count++] = line->what.at[i].text;
    }
    scope.selectors = selectors;
    const uint32_t at = b->plan->overrides.count;
    ETCH_PUSH(spec->arena, &b->plan->overrides, scope);
    shard_list shards = {0};
    const etch_span around = b->scope_recompute;
    b->scope_recompute = (etch_span){0, 0};
    for (uint32_t i = 0; i < line->lines.count; i++)
        read_scope_line(b, &line->lines.at[i], &shards, &scope, at + 1);
    b->scope_recompute = around;
    for (uint32_t i = 0; i < shards.count; i++)
        ETCH_PUSH(spec->arena, &scope.shards, shards.at[i]);
    b->plan->overrides.at[at] = scope;
}

/* Options that are set from outside. Those of a stage line have been read with it. */
static void read_sets(etch_plan_builder *b)
{
    for (uint32_t i = 0; i < b->spec->plan_sets.count; i++) {
        const etch_ast_def *def = &b->spec->plan_sets.at[i];
        const plan_option *option = option_of(def);
        if (option && option->read)
            option->read(b, def);
        else if (option)
            read_recompute(b, def, 0);
        else if (!b->plan->stage)
            etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, def->span,
                       "plan '%s' has no stage line, which 'plan.%s' would be of", b->plan->name,
                       def->name.text);
    }
}

static void read_lines(etch_plan_builder *b)
{
    const etch_ast_lines *lines = &b->symbol->item->lines;
    shard_list shards = {0};
    etch_override top = {0};
    for (uint32_t i = 0; i < lines->count; i++) {
        const etch_ast_line *line = &lines->at[i];
        if (line->kind != ETCH_AST_MESH && line->kind != ETCH_AST_AXIS)
            read_scope_line(b, line, &shards, &top, 0);
    }
    for (uint32_t i = 0; i < shards.count; i++)
        ETCH_PUSH(b->spec->arena, &b->plan->shards, shards.at[i]);
    for (uint32_t i = 0; i < top.pins.count; i++)
        ETCH_PUSH(b->spec->arena, &b->plan->pins, top.pins.at[i]);
    read_sets(b);
}

static bool has_class_without_meaning(const etch_ast_defs *defs)
{
    for (uint32_t i = 0; i < defs->count; i++)
        if (is_option(&defs->at[i], "gemm"))
            return true;
    return false;
}

/* Does the plan have lines that are refused? */
static bool has_refused(const etch_ast_lines *lines, bool in_scope)
{
    for (uint32_t i = 0; i < lines->count; i++)
        switch (lines->at[i].kind) {
        case ETCH_AST_DTYPES:
            if (in_scope || has_class_without_meaning(&lines->at[i].defs))
                return true;
            break;
        case ETCH_AST_OPTIONS:
            for (uint32_t k = 0; k < lines->at[i].defs.count; k++)
                if (!option_of(&lines->at[i].defs.at[k]) ||
                    (in_scope && may_come_in_scope(&lines->at[i].defs.at[k])))
                    return true;
            break;
        case ETCH_AST_MESH:
        case ETCH_AST_AXIS:
        case ETCH_AST_OFFLOAD:
            if (in_scope)
                return true;
            break;
        case ETCH_AST_SCOPE:
            if (has_refused(&lines->at[i].lines, true))
                return true;
            break;
        case ETCH_AST_ZERO:
        case ETCH_AST_PAD:
        case ETCH_AST_SHARD:
        case ETCH_AST_PIN:
        case ETCH_AST_STAGE:
        case ETCH_AST_NUMBERS: /* of machines alone */
        case ETCH_AST_PART:
            break;
        }
    return false;
}

/* Refuses scopes with a mesh of their own. Names of axes mean nothing to the rest of such a plan. */
static bool refuse_own_meshes(etch_plan_builder *b, const etch_ast_lines *lines, bool in_scope)
{
    bool found = false;
    for (uint32_t i = 0; i < lines->count; i++) {
        const etch_ast_line *line = &lines->at[i];
        if (line->kind == ETCH_AST_SCOPE)
            found = refuse_own_meshes(b, &line->lines, true) || found;
        if (!in_scope || (line->kind != ETCH_AST_MESH && line->kind != ETCH_AST_AXIS))
            continue;
        etch_help(
            refuse(b, line->span, "a mesh of its own for a scope"),
            "cut the axes of the plan's mesh and place dims anew in the scope: mesh [dp, c, t], axis tp = "
            "(c,t); for vision { shard B @ (dp,c), K @ t }");
        found = true;
    }
    return found;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

static const etch_plan *build(etch_spec *spec, const etch_symbol *symbol)
{
    const uint32_t errors = etch_error_count(spec->diags);
    etch_plan_builder b = {.spec = spec, .symbol = symbol, .plan = ETCH_NEW(spec->arena, etch_plan)};
    b.plan->name = symbol->name;
    b.plan->zero.ahead = ETCH_ZERO_AHEAD;
    b.plan->shared = symbol->home != spec->main;
    b.plan->span = symbol->item->name.span;
    spec->shared_plan = b.plan->shared ? b.plan : NULL;
    if (!refuse_own_meshes(&b, &symbol->item->lines, false)) {
        etch_mesh_build(&b);
        read_lines(&b);
        etch_stage_check_axes(&b);
    }
    spec->shared_plan = NULL;
    if (etch_error_count(spec->diags) > errors) {
        ETCH_PUSH(spec->arena, &spec->broken_plans, symbol);
        return NULL;
    }
    ETCH_PUSH(spec->arena, &spec->plans, b.plan);
    return b.plan;
}

static etch_plan_file plan_file(const etch_spec *spec, const etch_namespace *space)
{
    const etch_namespace *own = spec->main;
    ETCH_VEC(const char *) names = {0};
    etch_plan_file file = {.path = space->ast->source->path};
    for (uint32_t i = 0; i < space->symbols.count; i++)
        file.declared +=
            space->symbols.at[i]->kind == ETCH_SYMBOL_PLAN && space->symbols.at[i]->home == space;
    for (uint32_t i = 0; i < own->symbols.count; i++)
        if (own->symbols.at[i]->kind == ETCH_SYMBOL_PLAN && own->symbols.at[i]->home == space)
            ETCH_PUSH(spec->arena, &names, own->symbols.at[i]->name);
    file.names = names.at;
    file.seen = names.count;
    return file;
}

uint32_t etch_spec_plan_files(const etch_spec *spec, const etch_plan_file **files)
{
    ETCH_VEC(etch_plan_file) list = {0};
    for (uint32_t i = 0; i < spec->spaces.count; i++) {
        const etch_plan_file file = plan_file(spec, spec->spaces.at[i]);
        if (file.seen > 0 && spec->spaces.at[i] != spec->main)
            ETCH_PUSH(spec->arena, &list, file);
    }
    *files = list.at;
    return list.count;
}

static const etch_symbol *choose(etch_spec *spec, const char *name, bool needed, etch_span asked)
{
    const char *wanted = name ? etch_name_of(spec->names, name) : spec->use_plan;
    const etch_symbol *symbol = NULL;
    uint32_t count = 0;
    if (wanted)
        symbol = etch_namespace_find(spec->main, wanted);
    else
        symbol = etch_only_symbol(spec, ETCH_SYMBOL_PLAN, &count);
    if (symbol && symbol->kind == ETCH_SYMBOL_PLAN)
        return symbol;
    if (!needed)
        return NULL;
    etch_diag *diag;
    if (wanted) {
        const char *const *names;
        diag = etch_error(spec->diags, ETCH_E_UNKNOWN_PLAN, asked, "there is no plan '%s'", wanted);
        const uint32_t known = etch_spec_list(spec, ETCH_LIST_PLANS, &names);
        etch_suggest_name(diag, wanted, names, known);
    } else {
        diag = etch_error(spec->diags, ETCH_E_UNKNOWN_PLAN, asked,
                          count == 0 ? "this needs a plan, and the spec has none"
                                     : "this needs a plan, and the spec has several");
        etch_help(diag, count == 0 ? "write one: parallel NAME { mesh [dp]; shard B @ dp }"
                                   : "choose one with --plan, or write `use plan NAME` in the spec");
    }
    etch_note(diag, (etch_span){0, 0}, "plans: %s", etch_listing_text(spec, ETCH_LIST_PLANS));
    return NULL;
}

static bool is_broken(const etch_spec *spec, const etch_symbol *symbol)
{
    for (uint32_t i = 0; i < spec->broken_plans.count; i++)
        if (spec->broken_plans.at[i] == symbol)
            return true;
    return false;
}

bool etch_spec_plan_is_broken(etch_spec *spec, const char *name)
{
    return is_broken(spec, choose(spec, name, false, (etch_span){0, 0}));
}

const etch_plan *etch_spec_plan(etch_spec *spec, const char *name, bool needed, etch_span asked)
{
    const etch_symbol *symbol = choose(spec, name, needed, asked);
    if (!symbol)
        return NULL;
    for (uint32_t i = 0; i < spec->plans.count; i++)
        if (spec->plans.at[i]->span.start == symbol->item->name.span.start)
            return spec->plans.at[i];
    if (is_broken(spec, symbol))
        return NULL;
    if (!needed && has_refused(&symbol->item->lines, false))
        return NULL; /* nobody asks for what the plan cannot do yet */
    return build(spec, symbol);
}

/* ---- lines without meaning yet ------------------------------------------------------------------------- */

/* Has a pending line axes that are bound to more than 1, or such that are not bound? */
static bool has_axes(etch_spec *spec, const etch_plan *plan, const etch_settings *settings,
                     const etch_pending *pending, bool bound)
{
    bool any = false;
    for (uint32_t i = 0; i < plan->mesh.count; i++) {
        if (!(pending->axes >> i & 1))
            continue;
        etch_expr size = etch_settings_apply(spec->sym, settings, plan->mesh.at[i].size);
        any = any || (size != etch_int(spec->sym, 1) && (size && etch_is_constant(size)) == bound);
    }
    return any;
}

/* The line is one of stages. */
static void help_pending(etch_diag *diag, const etch_plan *plan, const etch_pending *pending)
{
    if (plan->stage) {
        etch_note(diag, plan->stage->span, "the stages of the plan are these");
        etch_help(diag, "stages cut the whole model: leave this line out");
    } else {
        etch_help(diag,
                  "stages cut the whole model: write '%s' outside of all scopes, and list in it all that "
                  "they cut, as in stage (embed, layer, head) @ pp",
                  pending->text);
    }
}

static bool check_pending(etch_spec *spec, const etch_plan *plan, const etch_settings *settings, bool bound)
{
    bool fine = true;
    for (uint32_t i = 0; i < plan->pending.count; i++) {
        const etch_pending *pending = &plan->pending.at[i];
        if (!has_axes(spec, plan, settings, pending, bound))
            continue;
        etch_diag *diag =
            etch_error(spec->diags, ETCH_E_PLAN_LATER, pending->span,
                       "'%s' is part of the language but is not given meaning yet", pending->text);
        help_pending(diag, plan, pending);
        fine = false;
    }
    return fine;
}

bool etch_plan_check_bound(etch_spec *spec, const etch_plan *plan, const etch_settings *settings)
{
    return check_pending(spec, plan, settings, true);
}

bool etch_spec_pending_ready(etch_spec *spec, const etch_plan *plan, const etch_settings *settings)
{
    const bool bound = check_pending(spec, plan, settings, true);
    return check_pending(spec, plan, settings, false) && bound;
}
