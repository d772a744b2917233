/* Plans of a spec. Part of what other modules see of lang. */
#ifndef ETCH_LANG_PLAN_PLAN_H
#define ETCH_LANG_PLAN_PLAN_H

#include "lang/names/names.h"

/* The plan called `name`; with NULL, the one that `use plan` names or the only one. NULL: error reported
 * when `needed`, else there is none. Declares its mesh axes as variables. */
const etch_plan *etch_spec_plan(etch_spec *spec, const char *name, bool needed, etch_span asked);
/* Puts options in place of those of every plan: "plan.schedule = gpipe". Mistakes go to the diagnostics;
 * those that a plan makes of it, once it is asked for. */
void etch_plans_set(etch_spec *spec, const char *text);
/* What is set, one line each, without spaces; NULL: nothing is. */
const char *etch_plans_set_text(etch_spec *spec);
/* Is a name one that `plan.NAME = VALUE` sets? */
bool etch_plan_has_option(const char *name, size_t length);
/* Has the plan that `name` says, likewise, errors that were reported before? */
bool etch_spec_plan_is_broken(etch_spec *spec, const char *name);
/* An imported file that declares plans, some of which the spec sees: how many it declares, and the names of
 * those there. */
typedef struct etch_plan_file {
    const char *path;
    uint32_t declared, seen;
    const char *const *names;
} etch_plan_file;
/* In the order in which files are read. */
uint32_t etch_spec_plan_files(const etch_spec *spec, const etch_plan_file **files);
/* May quantities of one rank be asked? False after an error: a line of the plan that has no meaning yet would
 * have an effect, because its mesh axis has no value, or one larger than 1. */
bool etch_spec_pending_ready(etch_spec *spec, const etch_plan *plan, const etch_settings *settings);
/* While quantities are asked for: the plans that the expression names, "a, b"; NULL unless there are several.
 * An axis that one of them has may have a value with all of them. */
const char *etch_spec_named_plans(etch_spec *spec);

#endif
