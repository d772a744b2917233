/* Declarations that the files that build plans share: the mesh of the plan at hand, and names that plans may
 * select. */
#ifndef ETCH_LANG_PLAN_PLAN_INT_H
#define ETCH_LANG_PLAN_PLAN_INT_H

#include "lang/plan/lookup.h"

/* An axis of the mesh, or a product of axes, while the plan is built. */
typedef struct etch_mesh_name {
    etch_ast_name name;
    /* of an axis */
    const etch_ast_def *def;
    /* of a product */
    const etch_ast_place *place;
    /* of its evaluation */
    uint8_t state;
} etch_mesh_name;

typedef struct etch_plan_builder {
    etch_spec *spec;
    const etch_symbol *symbol;
    etch_plan *plan;
    /* as in plan->mesh */
    ETCH_VEC(etch_mesh_name) axes;
    ETCH_VEC(etch_mesh_name) products;
    /* where the plan, and the scope in work, say so; or nowhere */
    etch_span plan_recompute, scope_recompute;
} etch_plan_builder;

/* Options of a plan that have a meaning, by index; NULL past the end. */
const char *etch_plan_option_at(uint32_t index);

/* An ordered list of mesh axes. */
typedef struct etch_axis_list {
    uint32_t at[ETCH_MAX_AXES];
    uint32_t count;
    uint32_t bits;
} etch_axis_list;

/* ---- mesh.c ---- */

/* Reads the mesh and the products of axes of the plan. */
void etch_mesh_build(etch_plan_builder *b);
/* The axes that stand behind '@', products expanded. False after an error. */
bool etch_mesh_axes(etch_plan_builder *b, const etch_ast_mesh *mesh, etch_axis_list *out);

/* ---- recompute.c ---- */

/* `recompute = ...` in the plan, or in the scope at this place of its list (counted from 1). What scopes say
 * is added to what the plan says. */
void etch_plan_read_recompute(etch_plan_builder *b, const etch_ast_def *def, uint32_t place);

/* ---- listed.c ---- */

/* The schedule `list("F0 B0", ..)`, and the chunks of each of its stages. NULL after an error. */
const etch_schedule *etch_plan_read_listed(etch_spec *spec, const etch_ast_expr *value, etch_expr *chunks);

/* ---- offload.c ---- */

/* `offload = (optimizer, master)`, or `none`; and the line `offload optimizer @ host, ahead = 1`. */
void etch_plan_read_offload(etch_plan_builder *b, const etch_ast_def *def);
void etch_plan_read_offload_line(etch_plan_builder *b, const etch_ast_line *line);
/* Options of the line by index; NULL past the end. */
const char *etch_offload_option_at(uint32_t index);

/* ---- pad.c ---- */

/* `V = 128*tp` of a pad line. */
void etch_plan_read_pad(etch_plan_builder *b, const etch_ast_def *def);

/* ---- ranks.c ---- */

/* `order = (tp, dp)`: how ranks are numbered. What is wrong is reported. */
void etch_plan_read_order(etch_plan_builder *b, const etch_ast_def *def);
/* `ranks = 64`: how many there are. */
void etch_plan_read_ranks(etch_plan_builder *b, const etch_ast_def *def);

/* ---- stage.c ---- */

/* Reads a stage line on these axes. What is wrong is reported, and is left at its default. */
const etch_stage_line *etch_stage_read(etch_plan_builder *b, const etch_ast_line *line,
                                       const etch_axis_list *axes);

/* Reports mesh axes of the stage line that other lines of the plan use as well. */
void etch_stage_check_axes(etch_plan_builder *b);

/* Options of a stage line by index; NULL past the end. */
const char *etch_stage_option_at(uint32_t index);

/* ---- zero.c ---- */

/* Reads a zero line, of the plan or of a scope. What is wrong is reported; false when there is no line to
 * speak of. */
bool etch_zero_read(etch_plan_builder *b, const etch_ast_line *line, bool in_scope, etch_zero *out);
/* Its options by index; NULL past the end. */
const char *etch_zero_option_at(uint32_t index);

/* ---- options.c: what a plan says beside placement, given for the first time ---- */

/* Is this the first time that the plan says so? Else that is reported. `earlier`: where it did, nowhere for
 * the first. */
bool etch_plan_is_first(etch_plan_builder *b, const etch_ast_def *def, etch_span earlier);
/* Was the option at `index` of the line given before in it? Then that is reported. */
bool etch_plan_given_before(etch_plan_builder *b, const etch_ast_line *line, uint32_t index);
/* What stands in place of an option of plans, set from outside; NULL: nothing does. */
const etch_ast_def *etch_plan_set_of(const etch_spec *spec, const char *option);
/* `bucket = layer`, `bucket = step`, or bytes. */
void etch_plan_read_bucket(etch_plan_builder *b, const etch_ast_def *def);
/* `attend = ring` or `gather`. */
void etch_plan_read_attend(etch_plan_builder *b, const etch_ast_def *def);
/* `balance = true` or `false`. */
void etch_plan_read_balance(etch_plan_builder *b, const etch_ast_def *def);

/* ---- select.c: plans are bound late, so a name that nothing has is a warning; a plan of an imported file
 * notes it among its lacks ---- */

/* Has a dim of the spec this name? Warns where none has. */
bool etch_select_dim(etch_spec *spec, etch_ast_name dim);
/* Warns when the spec has no such tag or module.tensor. */
void etch_select_tensor(etch_spec *spec, etch_ast_name selector);
/* Has the spec such a loop, tag, module, path of modules or module.tensor? Warns where it has not. */
bool etch_select_part(etch_spec *spec, etch_ast_name selector);
/* Warns when nothing of the spec has this name; reports a tag or a module, which is no loop. */
void etch_select_loop(etch_spec *spec, etch_ast_name selector);
/* Warns that only the mesh speaks of this number. */
void etch_select_size(etch_spec *spec, const etch_namespace *space, etch_ast_name name);

#endif
