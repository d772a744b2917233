/* Finding the chain: for the passes. */
#ifndef ETCH_GRAPH_STAGE_LAYERS_H
#define ETCH_GRAPH_STAGE_LAYERS_H

#include "graph/stage/stage.h"

struct etch_placer;

/* Sets the stage positions of steps and loops, and `stages`, when the plan has a stage line. */
void etch_stages_find(struct etch_placer *p);

#endif
