/* Questions of later passes about placed steps and values. */
#ifndef ETCH_GRAPH_PLACE_STEPS_H
#define ETCH_GRAPH_PLACE_STEPS_H

#include "graph/ir/row.h"
#include "graph/place/place.h"

/* The role of a step's op; ETCH_ROLE_RESHARD for collectives, ETCH_ROLE_FREE for a rank's own shard of a
 * value. */
etch_role etch_step_role(const etch_step *step);
/* Is it an op whose result is its operand's memory: a view, or a slice of it? False for NULL. */
bool etch_step_shows(const etch_step *step);
/* The value whose memory `value` is, or is a part of: under renames, identities and slices. `*sharded`
 * (may be NULL) is set when a rank's own shard was taken on the way. */
etch_value *etch_value_memory(etch_value *value, bool *sharded);
/* Ranks in a group over the mesh axes `axes`. */
etch_expr etch_group_size(const etch_placed *placed, uint32_t axes);

#endif
