/* Questions of loading and binding about models: those that programs build, options of train and infer
 * blocks. */
#ifndef ETCH_LANG_MODEL_BLOCKS_H
#define ETCH_LANG_MODEL_BLOCKS_H

#include "lang/model/model.h"
#include "lang/names/symbols.h"

/* Gives the spec models that programs build, as if it declared them. */
void etch_natives_declare(etch_spec *spec, const etch_native *natives, size_t count);
/* What builds a model; NULL: the spec says it. */
const etch_native *etch_native_of(const etch_spec *spec, const etch_symbol *model);
/* The spec that the model is built for. */
etch_spec *etch_site_spec(etch_site *site);

bool etch_is_train_option(const char *name);
bool etch_is_infer_option(const char *name);
/* Options by index; NULL past the end. */
const char *etch_train_option_at(uint32_t index);
const char *etch_infer_option_at(uint32_t index);

/* ---- filling what a run says --------------------------------------------------------------------------- */

/* Fills `train`; `dim_of` finds the graph's dim of a global dim. False after an error. */
bool etch_train_fill(etch_spec *spec, const etch_symbol *symbol,
                     etch_dim *(*dim_of)(void *data, etch_ast_name name), void *data, etch_train *train);
/* How often an infer block runs its model, each time behind what the runs before have left in the caches;
 * NULL: once, or after an error. */
etch_expr etch_infer_steps(etch_spec *spec, const etch_symbol *symbol);
/* `accumulate = (B, micro)`, of both kinds of blocks. */
void etch_run_accumulate(etch_spec *spec, const etch_symbol *run, const etch_ast_def *def,
                         etch_dim *(*dim_of)(void *data, etch_ast_name name), void *data, etch_train *train);
/* Reads the lines of an infer block: microbatches into `train`; `outputs`: the names after `output =`, none
 * when it is left out. False after an error. */
bool etch_infer_read(etch_spec *spec, const etch_symbol *symbol,
                     etch_dim *(*dim_of)(void *data, etch_ast_name name), void *data, etch_train *train,
                     etch_ast_names *outputs);

#endif
