/* Declarations that the files of stage share. */
#ifndef ETCH_GRAPH_STAGE_STAGE_INT_H
#define ETCH_GRAPH_STAGE_STAGE_INT_H

#include "graph/place/placer.h"
#include "graph/stage/layers.h"

/* Finds the segments of the chain that the line of `stages` lists. False after an error. */
bool etch_stage_segments(etch_placer *p, etch_stages *stages);

#endif
