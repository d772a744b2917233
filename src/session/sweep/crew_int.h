/* A sweep of several processes (etch/world.h). All go through its rows; the chunk i, as in part_int.h, is
 * computed by process i mod n. Process 0 writes. */
#ifndef ETCH_SESSION_SWEEP_CREW_INT_H
#define ETCH_SESSION_SWEEP_CREW_INT_H

#include "session/sweep/part_int.h"

/* What comes of another process. */
typedef struct etch_crew_source {
    struct etch_crew *crew;
    uint32_t from;
    /* of the bytes that came last */
    etch_status status;
    etch_part_reader reader;
} etch_crew_source;

typedef struct etch_crew {
    etch_sweep *sweep;
    etch_world *world;
    uint32_t rank, size;
    /* chunks that an earlier run has recorded; all of them are */
    uint64_t done;
    bool finished;
    /* of process 0: the chunk that comes next; by process */
    uint64_t next;
    etch_crew_source *sources;
    /* of others: records that were not sent yet; NULL: there are none */
    etch_arena *scratch;
    etch_buf out;
} etch_crew;

/* All say that they are of one sweep, and process 0, whose part is open, what is done. */
etch_status etch_crew_begin(etch_crew *crew) ETCH_MUST_CHECK;
/* Is a chunk to be computed here? */
bool etch_crew_is_own(const etch_crew *crew, uint64_t chunk);
/* Process 0 takes what came of the chunks of others before the chunk `until`. Where one of them was stopped,
 * so is the sweep. */
etch_status etch_crew_take(etch_crew *crew, uint64_t until) ETCH_MUST_CHECK;
/* Others pass on what came of a block, soon or when they flush. */
etch_status etch_crew_add(etch_crew *crew, const etch_sweep_block *block,
                          const etch_buf *kept) ETCH_MUST_CHECK;
etch_status etch_crew_flush(etch_crew *crew) ETCH_MUST_CHECK;
/* Has process 0 told this one to stop? */
bool etch_crew_is_stopped(const etch_crew *crew);
/* Nothing is missing: process 0 takes the rest. */
etch_status etch_crew_finish(etch_crew *crew) ETCH_MUST_CHECK;
#endif
