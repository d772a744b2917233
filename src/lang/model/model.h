/* Models of a spec, and those that programs build. Part of what other modules see of lang. */
#ifndef ETCH_LANG_MODEL_MODEL_H
#define ETCH_LANG_MODEL_MODEL_H

#include "lang/names/names.h"

etch_graph *etch_site_graph(etch_site *site);
etch_names *etch_site_names(etch_site *site);
/* The dim that the spec calls `name`, or its prime. NULL after an error. */
etch_dim *etch_site_dim(etch_site *site, const char *name);

typedef struct etch_model {
    etch_graph *graph;
    /* meaningful when `trains`; when `serves`, the microbatches */
    etch_train train;
    /* its run is a train block */
    bool trains;
    /* its run is an infer block: only what the run asks for is left of the graph */
    bool serves;
    const char *name;
    /* the block's name; NULL when it has none */
    const char *run;
    /* of the block's name; nowhere without a block */
    etch_span run_span;
} etch_model;

/* Elaborates the model that `run` (the name of a train or infer block), the run that is taken when none is
 * named, or the spec's only model names. `settings` decide `if` and other structure; where they do not,
 * defaults do (a remark says so when a param has neither). `plan` (may be NULL) changes the dtypes of the
 * spec; where it recomputes some iterations of a loop, they are classes of their own. NULL after an error. */
etch_model *etch_spec_elaborate(etch_spec *spec, const char *run, const etch_settings *settings,
                                const etch_plan *plan);

/* Reads the models and modules of the spec's own file that no elaboration has read so far, each by itself,
 * with its dims as they stand: for what is wrong in them. What cannot be known without a call is remarked
 * on. */
void etch_spec_read_rest(etch_spec *spec, const etch_settings *settings);

#endif
