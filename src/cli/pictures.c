/* Pictures of a simulated step: which ranks are drawn, and the files. */
#include "timeline_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The ranks of a list, "0,2,8-15"; NULL: one of each class. False: what is wrong has been said. */
static bool choose_ranks(const etch_simulation *s, const char *list, bool *chosen)
{
    for (size_t i = 0; !list && i < s->class_count; i++)
        chosen[s->classes[i].first_rank] = true;
    for (const char *at = list; at && (*at || at == list);) {
        char *end;
        const unsigned long first = strtoul(at, &end, 10);
        unsigned long last = first;
        bool fine = *at >= '0' && *at <= '9';
        if (fine && *end == '-') {
            at = end + 1;
            fine = *at >= '0' && *at <= '9';
            last = strtoul(at, &end, 10);
        }
        fine = fine && (*end == ',' ? end[1] != '\0' : *end == '\0');
        if (!fine || first > last || last >= s->ranks) {
            fprintf(stderr, "etch: --ranks: there are ranks 0 to %" PRIu32 ", listed as in 0,2,8-15\n",
                    s->ranks - 1);
            return false;
        }
        for (unsigned long r = first; r <= last; r++)
            chosen[r] = true;
        at = *end ? end + 1 : end;
    }
    return true;
}

/* False: more is to be drawn than a file may hold, which has been said. */
static bool list_drawn(const etch_simulation *s, const bool *chosen, cli_drawn *drawn, size_t *count)
{
    uint64_t events = 0;
    *count = 0;
    for (uint32_t r = 0; r < s->ranks; r++) {
        if (!chosen[r])
            continue;
        drawn[*count] = (cli_drawn){r, &s->classes[s->class_of[r]]};
        events += drawn[(*count)++].class->node_count;
    }
    if (events <= CLI_MOST_EVENTS)
        return true;
    fprintf(stderr,
            "etch: a timeline has at most %d nodes, and these ranks have %" PRIu64 ": choose with --ranks\n",
            (int)CLI_MOST_EVENTS, events);
    return false;
}

static cli_exit write_timeline(const cli_arguments *arguments, const etch_simulation *s,
                               const etch_memory_report *memory)
{
    bool *chosen = calloc(s->ranks, sizeof *chosen);
    cli_drawn *drawn = calloc(s->ranks, sizeof *drawn);
    size_t count;
    cli_exit done = CLI_DONE;
    if (!chosen || !drawn) {
        fprintf(stderr, "etch: %s\n", etch_status_text(ETCH_ENOMEM));
        done = CLI_IO;
    } else if (!choose_ranks(s, arguments->ranks, chosen)) {
        done = CLI_USAGE;
    } else if (!list_drawn(s, chosen, drawn, &count)) {
        done = CLI_LIMIT;
    } else {
        done = cli_write_timeline(arguments->timeline, s, memory, drawn, count);
    }
    free(chosen);
    free(drawn);
    return done;
}

cli_exit cli_write_pictures(const cli_arguments *arguments, const etch_simulation *s,
                            const etch_memory_report *memory)
{
    cli_exit done = CLI_DONE;
    if (arguments->timeline)
        done = write_timeline(arguments, s, memory);
    if (done == CLI_DONE && arguments->report)
        done = cli_write_report(arguments->report, s, memory);
    return done;
}
