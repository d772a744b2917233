/* Models that a program has built, as text of the language: what a failure prints, so that it can be run with
 * the program and by hand. */
#ifndef ETCH_TEST_EXEC_SPEC_H
#define ETCH_TEST_EXEC_SPEC_H

#include "exec_model.h"

/* Gives every tensor of a forward graph the name that the text below calls it by: one of its own. Before the
 * graph is trained, so that what is derived is called alike. */
void exec_spec_name(exec_model *m);

/* The forward graph, what m->train says of training it, and the plan unless it is NULL. The names must be
 * those of exec_spec_name. A module that is called several times is as many modules, with numbers behind the
 * name, and the selectors of recomputation and plan name them all. */
const char *exec_spec_text(const exec_model *m, const etch_plan *plan);

#endif
