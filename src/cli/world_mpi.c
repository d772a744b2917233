/* Processes that talk by MPI. Nobody waits inside MPI, which would keep a processor busy: messages are asked
 * after, and what others do not take at once is asked after as well. */
#define _POSIX_C_SOURCE 200809L

#include "cli/world.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include <mpi.h>

enum { TAG = 0 };

_Static_assert(CLI_WORLD_REASON >= MPI_MAX_ERROR_STRING, "what MPI says has room");

static const char *reason(cli_world *world, int error)
{
    int length;
    if (error == MPI_SUCCESS)
        return NULL;
    return MPI_Error_string(error, world->reason, &length) == MPI_SUCCESS ? world->reason : "MPI failed";
}

static const char *send(void *data, unsigned to, const void *bytes, size_t length)
{
    enum { PAUSE = 20000 }; /* nanoseconds */
    MPI_Request request;
    int done = 0;
    if (length > INT_MAX)
        return "a message is too long for MPI";
    int error = MPI_Isend(bytes, (int)length, MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD, &request);
    while (error == MPI_SUCCESS && !done) {
        error = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (error == MPI_SUCCESS && !done)
            nanosleep(&(struct timespec){0, PAUSE}, NULL);
    }
    return reason(data, error);
}

static const char *probe(void *data, unsigned from, bool *there, size_t *length)
{
    MPI_Status status;
    int flag = 0, count = 0;
    int error = MPI_Iprobe((int)from, TAG, MPI_COMM_WORLD, &flag, &status);
    if (error == MPI_SUCCESS && flag)
        error = MPI_Get_count(&status, MPI_BYTE, &count);
    *there = flag != 0;
    *length = (size_t)count;
    return reason(data, error);
}

static const char *receive(void *data, unsigned from, void *bytes, size_t length)
{
    return reason(data,
                  MPI_Recv(bytes, (int)length, MPI_BYTE, (int)from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* Starting MPI without a launcher takes time, and a process more. */
static bool is_launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return true;
    return false;
}

/* How many processes are on this machine. */
static unsigned count_neighbours(void)
{
    MPI_Comm here;
    int count = 1;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) == MPI_SUCCESS) {
        MPI_Comm_size(here, &count);
        MPI_Comm_free(&here);
    }
    return (unsigned)count;
}

const char *cli_world_open(cli_world *world)
{
    int rank, size, provided;
    *world = (cli_world){.neighbours = 1};
    if (!is_launched())
        return NULL;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        return "MPI cannot be started";
    if (provided < MPI_THREAD_FUNNELED)
        return "this MPI does not know threads";
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    world->neighbours = count_neighbours();
    const etch_transport transport = {.struct_size = sizeof transport,
                                      .rank = (unsigned)rank,
                                      .size = (unsigned)size,
                                      .send = send,
                                      .probe = probe,
                                      .receive = receive,
                                      .data = world};
    world->processes = etch_world_new(&transport);
    return world->processes ? NULL : etch_status_text(ETCH_ENOMEM);
}

void cli_world_close(cli_world *world)
{
    int is_started = 0;
    etch_world_free(world->processes);
    if (MPI_Initialized(&is_started) == MPI_SUCCESS && is_started)
        MPI_Finalize();
}
