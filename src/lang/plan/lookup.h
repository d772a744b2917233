/* Questions of expressions and settings about plans. */
#ifndef ETCH_LANG_PLAN_LOOKUP_H
#define ETCH_LANG_PLAN_LOOKUP_H

#include "lang/names/symbols.h"
#include "lang/plan/plan.h"

/* Is `name` an axis, a product of axes or a variable in the mesh of some plan of the spec or of its
 * imports? Says so without building plans. */
bool etch_plans_mention(const etch_spec *spec, const char *name);
bool etch_plan_mentions(const etch_symbol *symbol, const char *name);
/* Finds the plans that an expression names; none for NULL. */
void etch_plans_name(etch_spec *spec, const etch_ast_expr *expr);
/* Does the expression that is being read name several plans, one of them with such an axis? */
bool etch_named_plans_mention(const etch_spec *spec, const char *axis);
/* The size of an axis or product of axes, or the variable of the mesh called `name`. NULL when there is
 * none (no error). */
etch_expr etch_plan_value(etch_spec *spec, const etch_plan *plan, const char *name);
/* The variables that sizes of the mesh are made of and that are no params, in order of first use; each is
 * at least 1. */
uint32_t etch_plan_vars(etch_spec *spec, const etch_plan *plan, const etch_axis **vars);
/* Do the settings leave without effect what has no meaning yet? False after an error. */
bool etch_plan_check_bound(etch_spec *spec, const etch_plan *plan, const etch_settings *settings);
/* Params and dims as `space` sees them, then names of the plan (NULL: of any plan). */
etch_lookup etch_plan_lookup(etch_spec *spec, const etch_namespace *space, const etch_plan *plan);

#endif
