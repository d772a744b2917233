/* The processes that mpirun, or srun, has started. world_mpi.c where etch is built with MPI, else
 * world_one.c. */
#ifndef ETCH_CLI_WORLD_H
#define ETCH_CLI_WORLD_H

#include "etch/etch.h"

enum { CLI_WORLD_REASON = 512 };

typedef struct cli_world {
    /* NULL where this is the only one */
    etch_world *processes;
    /* how many of them are on this machine */
    unsigned neighbours;
    /* room for what went wrong */
    char reason[CLI_WORLD_REASON];
} cli_world;

/* Joins the processes. NULL, or why they cannot be joined; `cli_world_close` must follow in any case. */
const char *cli_world_open(cli_world *world);
/* Waits for all of them. */
void cli_world_close(cli_world *world);

#endif
