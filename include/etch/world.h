/* Several processes that answer one call together, as those that `mpirun` starts. Part of etch/etch.h. */
#ifndef ETCH_WORLD_H
#define ETCH_WORLD_H

#include "etch/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a process reaches the others: by MPI, or whatever joins the processes of a program. Messages from one
 * process to another come in the order in which they were sent. Functions return NULL, or what is wrong, a
 * text that lives until the next call. The thread that calls the library calls them. */
typedef struct etch_transport {
    /* sizeof(etch_transport) */
    size_t struct_size;
    /* of this process, from 0; and how many there are */
    unsigned rank, size;
    /* hands a message to another process; `bytes` may go when it returns, which may wait for the other */
    const char *(*send)(void *data, unsigned to, const void *bytes, size_t length);
    /* is a message of another process there, and how long is it? Does not wait */
    const char *(*probe)(void *data, unsigned from, bool *there, size_t *length);
    /* takes the message that `probe` has found */
    const char *(*receive)(void *data, unsigned from, void *bytes, size_t length);
    void *data;
} etch_transport;

/* The processes of a program. Each opens a session on the same spec with the same options, makes one call
 * that takes a world, with the same options, and then `etch_world_end`. Process 0 writes, has the report and
 * the messages; the others have none. */
typedef struct etch_world etch_world;

/* `transport` is copied; its functions are called until the world is freed. NULL: memory is out. */
ETCH_API etch_world *etch_world_new(const etch_transport *transport);
/* NULL is allowed. */
ETCH_API void etch_world_free(etch_world *world);
/* 0 where `world` is NULL. */
ETCH_API unsigned etch_world_rank(const etch_world *world);

/* Ends what the processes do together; each calls it once, whatever came before. `status`: what this process
 * has come to; `session` may be NULL. Process 0 waits for all others, and if one of them failed alone, says
 * why among the messages of its session. Returns what all have come to, to all. `world` NULL: `status`. */
ETCH_API etch_status etch_world_end(etch_world *world, etch_session *session, etch_status status);

#ifdef __cplusplus
}
#endif

#endif
