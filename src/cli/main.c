/* etch: formulas of what a model and its plan cost, and traces of every rank. */
#include "cli/world.h"
#include "cli_int.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Freed memory up to so much stays with the program. */
enum { KEPT_BYTES = 32 << 20 };

static cli_exit run_command(const cli_arguments *arguments)
{
    switch (arguments->command->bit) {
    case CLI_CHECK:
        return cli_check(arguments);
    case CLI_QUERY:
        return cli_query(arguments);
    case CLI_PROVE:
        return cli_prove(arguments);
    case CLI_LOWER:
        return cli_lower(arguments);
    case CLI_SHOW:
        return cli_show(arguments);
    case CLI_VERIFY:
        return cli_verify(arguments);
    case CLI_DUMP:
        return cli_dump(arguments);
    case CLI_ASSEMBLE:
        return cli_assemble(arguments);
    case CLI_FIT:
        return cli_fit(arguments);
    case CLI_SIMULATE:
        return cli_simulate(arguments);
    case CLI_MEMORY:
        return cli_memory(arguments);
    case CLI_IMPORT:
        return cli_import(arguments);
    case CLI_SWEEP:
        return cli_sweep(arguments);
    case CLI_MERGE:
        return cli_merge(arguments);
    case CLI_SOLVE:
        return cli_solve(arguments);
    case CLI_HELP:
        return cli_help(arguments);
    default:
        return CLI_BUG;
    }
}

/* Joins the processes that mpirun has started, for what they can do together. A share of a sweep is one
 * process's own. */
static cli_exit join(cli_arguments *a, cli_world *world)
{
    const unsigned bit = a->command && !a->help && !a->version ? a->command->bit : 0;
    if (!(bit & (CLI_SWEEP | CLI_LOWER)) || a->sweep.shard)
        return CLI_DONE;
    const char *why = cli_world_open(world);
    if (why) {
        fprintf(stderr, "etch: %s\n", why);
        return CLI_USAGE;
    }
    a->world = world->processes;
    if (a->world && cli_is_piped(a->words[0]))
        return cli_usage_error(a->command, "several processes read a spec from a file");
    if (!a->has_jobs)
        a->output.threads = (a->output.threads + world->neighbours - 1) / world->neighbours;
    return CLI_DONE;
}

static cli_exit run(const cli_arguments *arguments)
{
    if (arguments->version) {
        printf("etch %s\n", ETCH_VERSION);
        return CLI_DONE;
    }
    if (arguments->help)
        return arguments->command ? cli_help_command(arguments->command) : cli_help_overview();
    return run_command(arguments);
}

int main(int argc, char **argv)
{
#ifdef __GLIBC__
    /* memory that one rank's trace gave back serves the next, and is not asked of the kernel again */
    (void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
#endif
    const char **sets = calloc(CLI_TEXT_LISTS * cli_text_room(argc, argv), sizeof *sets);
    cli_arguments arguments;
    cli_world world = {.neighbours = 1};
    if (!sets) {
        fprintf(stderr, "etch: %s\n", etch_status_text(ETCH_ENOMEM));
        return CLI_IO;
    }
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of writing, not the end */
    cli_exit status = cli_parse(argc, argv, sets, &arguments);
    if (status == CLI_DONE)
        status = join(&arguments, &world);
    if (status == CLI_DONE)
        status = run(&arguments);
    free(sets);
    status = cli_finish(status);
    cli_world_close(&world);
    return (int)status;
}
