/* etch built without MPI: every process is alone. */
#include "cli/world.h"

#include <stdlib.h>

const char *cli_world_open(cli_world *world)
{
    const char *size = getenv("OMPI_COMM_WORLD_SIZE"); /* set by mpirun alone */
    *world = (cli_world){.neighbours = 1};
    if (!size || atoi(size) < 2)
        return NULL;
    return "mpirun started several processes, and this etch is built without MPI: each would do all of the "
           "work; build it with -DETCH_MPI=ON, or divide a sweep with --shard";
}

void cli_world_close(cli_world *world)
{
    etch_world_free(world->processes);
}
