/* The table of options, and printing it. */
#include "options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
const cli_option_row cli_option_rows[CLI_OPT_COUNT] = {
    [CLI_OPT_CONFIG] = {"config", 0, "NAME", CLI_SPEC | CLI_ROWS,
                 "a config of the spec: a named set of values"},
    [CLI_OPT_PLAN] = {"plan", 0, "NAME", CLI_SPEC | CLI_ROWS,
                 "a plan of the spec; needed where it has several;\n"
                 "`show` then shows what is where, and collectives"},
    [CLI_OPT_RUN] = {"run", 0, "NAME", CLI_SPEC | CLI_ROWS, "a train or infer block of the spec"},
    [CLI_OPT_STAGE] = {"stage", 0,
                 "STAGE", CLI_QUERY | CLI_SHOW | CLI_MEMORY,
                 "pipeline stage of rank quantities: 0, 1, ..., first,\n"
                 "middle, last; else the heaviest (`show --plan` and\n"
                 "`memory`: all)"},
    [CLI_OPT_SET] = {"set", 0, "NAME=EXPR", CLI_SPEC | CLI_ROWS,
                 "values of params and mesh axes, instead of the\n"
                 "config's; repeatable, or joined by commas;\n"
                 "NAME=NAME leaves it without a value;\n"
                 "tokens=EXPR is the size of a step;\n"
                 "plan.NAME=.. is an option of plans, plan.schedule=gpipe"},
    [CLI_OPT_SWEEP] = {"sweep", 0, "NAME", CLI_SWEEP, "a `sweep` block of the spec"},
    [CLI_OPT_OVER] = {"over", 0, "AXIS", CLI_SWEEP,
                 "'NAME = VALUES': 1, 2, 4; range(1, 8); powers(2, 0, 3);\n"
                  "divisors(heads); repeatable, the last is the fastest"},
    [CLI_OPT_PLANS] = {"plans", 0, "LIST", CLI_SWEEP, "plans, joined by commas, or all"},
    [CLI_OPT_CONFIGS] = {"configs", 0, "LIST", CLI_SWEEP, "configs, likewise"},
    [CLI_OPT_RUNS] = {"runs", 0, "LIST", CLI_SWEEP, "train and infer blocks, likewise"},
    [CLI_OPT_MACHINES] = {"machines", 0, "LIST", CLI_SWEEP,
                      "machines, joined by commas, for time(step) and the like;\n"
                      "--machine M is one, without a column"},
    [CLI_OPT_WHERE] = {"where", 0, "PRED", CLI_SWEEP, "only rows for which it holds: 'ranks == 64, tp <= 8,\n"
                   "memory(peak) <= 80 GB'; repeatable"},
    [CLI_OPT_SELECT] = {"select", 0, "LIST", CLI_SWEEP, "what to print: expressions, joined by commas"},
    [CLI_OPT_BEST] = {"best", 0, "EXPR", CLI_SWEEP, "only the rows where it is least, the least first"},
    [CLI_OPT_TOP] = {"top", 0, "N", CLI_SWEEP, "how many of these; 1 when left out"},
    [CLI_OPT_PARETO] = {"pareto", 0, "LIST", CLI_SWEEP,
                 "only rows that no other is better than in all of these"},
    [CLI_OPT_EXPLAIN] = {"explain", 0, NULL, CLI_SWEEP,
                 "what a query says of the first row of each reason for\n"
                     "which rows are refused"},
    [CLI_OPT_EVERY_ROW] = {"every-row", 0, NULL, CLI_SWEEP,
                 "look also at rows that a condition cuts off by the\n"
                 "hundred: the same output, later"},
    [CLI_OPT_YES] = {"yes", 0, NULL, CLI_SWEEP, "also more than 100000000 rows"},
    [CLI_OPT_SHARD] = {"shard", 0, "I/N", CLI_SWEEP, "only the I-th of N shares of the rows, into a part:\n"
                   "`etch merge` makes the whole of all parts"},
    [CLI_OPT_RESUME] = {"resume", 0, NULL, CLI_SWEEP, "go on where the same command ended before; keeps in\n"
                    "PATH.part what it can go on with"},
    [CLI_OPT_PLOT] = {"plot", 0, "FILE", CLI_SWEEP,
                 "a picture of the rows, SVG: a front of two expressions, or\n"
                  "the first expression over two axes"},
    [CLI_OPT_LOWER] = {"lower", 0, "DIR", CLI_SWEEP,
                   "write the traces of the best rows, or of the front: a\n"
                   "folder for each, named by its values"},
    [CLI_OPT_VERIFY] = {"verify", 0, NULL, CLI_SWEEP, "do these run to the end?"},
    [CLI_OPT_FOR] = {"for", 0, "NAME", CLI_SOLVE, "the param or mesh axis to solve for; with values, only\n"
                 "these: 'tp = 1, 2, 4'; repeatable"},
    [CLI_OPT_METHOD] = {"method", 0, "WHAT", CLI_SOLVE, "only in this way: closed, bisection, each"},
    [CLI_OPT_PIPELINE] = {"pipeline", 0, NULL, CLI_SHOW, "the order in which the stages of a plan work"},
    [CLI_OPT_AFTER] = {"after", 0, "PASS", CLI_SHOW, "what a pass of the compiler has made: model, train,\n"
                   "place, stage, shard, fuse, step"},
    [CLI_OPT_BY] = {"by", 0, "WHAT", CLI_QUERY, "a table by op, module, phase, collective, axis,\n"
               "stage, term, layer, class"},
    [CLI_OPT_COUNT_BY] = {"count", 0,
                 "LIST", CLI_QUERY | CLI_PROVE | CLI_ROWS, "what counts as FLOP: megatron, narayanan, or\n"
                     "causal=full, router=no, ...: `etch help counts`"},
    [CLI_OPT_WHY] = {"why", 0, NULL, CLI_QUERY, "each term, and the op, module and place in the spec\n"
                 "behind each part of it"},
    [CLI_OPT_DEFAULTS] = {"defaults", 0, NULL, CLI_QUERY | CLI_PROVE | CLI_SHOW,
                 "bind params that have only a default, and mesh axes\n"
                 "without a value, to 1"},
    [CLI_OPT_BOUND] = {"bound", 0, NULL, CLI_CHECK, "check with everything bound, defaults too"},
    [CLI_OPT_FORMAT] = {"format", 0,
                 "FORMAT", CLI_SPEC | CLI_ROWS | CLI_VERIFY | CLI_DUMP | CLI_ASSEMBLE | CLI_FIT,
                 "of the result: plain (the default) or json; of a\n"
                    "query also latex, c, python; of a graph dot; of a\n"
                    "pipeline svg; of a sweep csv (the default), jsonl, table;\n"
                    "of `memory` also csv"},
    [CLI_OPT_FORM] = {"form", 0, "FORM", CLI_QUERY, "of a formula: shortest (the default), expanded,\n"
                  "factored, or relative to its first term"},
    [CLI_OPT_DIFF] = {"diff", 0, "NAME", CLI_QUERY, "the derivative by a param, dim or mesh axis"},
    [CLI_OPT_LEADING] = {"leading", 0, "NAME", CLI_QUERY, "only the terms of the highest degree in it"},
    [CLI_OPT_GROUPS] = {"groups", 0, "WHAT", CLI_LOWER | CLI_VERIFY | CLI_SIMULATE,
                    "the file of groups; else comm_group.json beside the\n"
                    "traces. Of `lower`: how collectives say who takes part:\n"
                    "auto (the default), file, dims"},
    [CLI_OPT_EAGER] = {"eager", 0, NULL, CLI_VERIFY, "only where sends end by themselves"},
    [CLI_OPT_RENDEZVOUS] = {"rendezvous", 0, NULL, CLI_VERIFY,
                        "only where sends wait until their receive is posted"},
    [CLI_OPT_SEEDS] = {"seeds", 0, "N", CLI_VERIFY, "also run with random durations, N times"},
    [CLI_OPT_RANKS] = {"ranks", 0, "LIST", CLI_LOWER | CLI_DUMP | CLI_SIMULATE,
                   "only these ranks: 0,2,8-15; of a timeline, else one\n"
                   "of each class"},
    [CLI_OPT_GRANULARITY] = {"granularity", 0, "WHAT", CLI_QUERY | CLI_LOWER | CLI_SIMULATE | CLI_ROWS,
                         "what becomes one node, and what traffic counts: op,\n"
                         "kernel (the default), block, library"},
    [CLI_OPT_NAMES] = {"names", 0, "WHAT", CLI_LOWER, "of nodes: short (the default), full, none"},
    [CLI_OPT_ATTRS] = {"attrs", 0, "LIST", CLI_LOWER, "attributes for people: phase, layer, microbatch,\n"
                   "op_type, module, joined by commas"},
    [CLI_OPT_ASTRA_SIM] = {"astra-sim", 0, NULL, CLI_LOWER,
                 "also write what ASTRA-sim needs, and its command"},
    [CLI_OPT_TEXT] = {"text", 0, NULL, CLI_DUMP, "the text form of traces"},
    [CLI_OPT_MACHINE] = {"machine", 0, "M", CLI_FIT | CLI_SIMULATE | CLI_QUERY | CLI_SWEEP | CLI_SOLVE,
                     "the machine: a spec with a device, or the name of one\n"
                     "that comes with etch"},
    [CLI_OPT_STACK] = {"stack", 0, "NAME", CLI_SIMULATE | CLI_QUERY | CLI_SWEEP | CLI_SOLVE | CLI_FIT,
                   "of the machine: what runs on it, with its factors; of\n"
                   "`fit`: the one whose factors are found"},
    [CLI_OPT_SLOW] = {"slow", 0, "RANK:TIMES", CLI_SIMULATE,
                  "the device of one rank computes so many times as long,\n17:1.2"},
    [CLI_OPT_CHECK] = {"check", 0, NULL, CLI_FIT, "fit nothing: how good are the numbers of the machine?"},
    [CLI_OPT_STREAMS] = {"streams", 0, "WHAT", CLI_SIMULATE,
                     "of communication: axes (the default), those over\n"
                     "different axes run side by side; one, as in traces"},
    [CLI_OPT_TIMES] = {"times", 0, NULL, CLI_SIMULATE,
                   "with --format json: when each node begins, how long\n"
                   "it takes, and the critical path"},
    [CLI_OPT_TIMELINE] = {"timeline", 0, "FILE", CLI_SIMULATE,
                      "write the run of ranks as events for ui.perfetto.dev"},
    [CLI_OPT_REPORT] = {"report", 0, "FILE", CLI_SIMULATE, "write a page about the run, for any browser"},
    [CLI_OPT_HUMAN] = {"human", 0, NULL, CLI_QUERY | CLI_LOWER, "also say numbers with three digits: 8.03 G"},
    [CLI_OPT_OUTPUT] = {"output", 'o', "PATH", CLI_LOWER | CLI_ASSEMBLE | CLI_IMPORT | CLI_SWEEP | CLI_MERGE,
                    "where the traces, the spec, or the rows go; of\n"
                    "`lower` also X.tar, and -, a tar archive to stdout"},
    [CLI_OPT_NAME] = {"name", 0, "NAME", CLI_LOWER, "of the traces, NAME.<rank>.et; else the model's"},
    [CLI_OPT_DRY_RUN] = {"dry-run", 'n', NULL, CLI_LOWER, "say what would be written, and write nothing"},
    [CLI_OPT_FORCE] = {"force", 0, NULL, CLI_LOWER | CLI_ASSEMBLE | CLI_IMPORT,
                   "write into a folder that holds files; of `import`:\n"
                   "replace a file"},
    [CLI_OPT_LINK] = {"link", 0, NULL, CLI_LOWER,
                  "traces of equal bytes are one file with several names"},
    [CLI_OPT_ZSTD] = {"zstd", 0, NULL, CLI_LOWER, "traces are compressed: NAME.<rank>.et.zst"},
    [CLI_OPT_NO_SYNC] = {"no-sync", 0, NULL, CLI_LOWER | CLI_ASSEMBLE,
                 "end before the files are on the disk"},
    [CLI_OPT_JOBS] = {"jobs", 'j', "N", CLI_LOWER | CLI_VERIFY | CLI_ROWS | CLI_FIT,
                  "threads; as many as processors when left out"},
    [CLI_OPT_JSON] = {"json", 0, NULL,
                  CLI_EVERY & ~CLI_HELP,
                  "messages on stderr as JSON"},
    [CLI_OPT_COLOR] = {"color", 0, "WHEN", CLI_EVERY, "colour messages: auto (default), always, never"},
    [CLI_OPT_QUIET] = {"quiet", 'q', NULL,
                   CLI_EVERY & ~CLI_HELP,
                 "no messages unless there are errors"},
    [CLI_OPT_VERBOSE] = {"verbose", 'v', NULL, CLI_SPEC, "say which values are in force, and from where"},
    [CLI_OPT_HELP] = {"help", 'h', NULL, CLI_EVERY, "this help"},
    [CLI_OPT_VERSION] = {"version", 'V', NULL, CLI_EVERY, "the version of etch"},
};
/* clang-format on */

bool cli_option_at(size_t i, cli_option *option)
{
    if (i >= CLI_OPT_COUNT)
        return false;
    const cli_option_row *row = &cli_option_rows[i];
    *option = (cli_option){.letter = row->letter, .help = row->help, .commands = row->commands};
    snprintf(option->text, sizeof option->text, "--%s%s%s", row->name, row->argument ? " " : "",
             row->argument ? row->argument : "");
    return true;
}

void cli_print_options(unsigned commands, bool all)
{
    cli_option option;
    for (size_t i = 0; cli_option_at(i, &option); i++) {
        char text[sizeof option.text + 8];
        if (all ? (option.commands & commands) != commands : (option.commands & commands) == 0)
            continue;
        snprintf(text, sizeof text, "%c%c%c %s", option.letter ? '-' : ' ',
                 option.letter ? option.letter : ' ', option.letter ? ',' : ' ', option.text);
        const char *rest = option.help;
        for (const char *label = text; rest; label = "") {
            size_t length = strcspn(rest, "\n");
            printf("  %-21s %.*s\n", label, (int)length, rest);
            rest = rest[length] ? rest + length + 1 : NULL;
        }
    }
}

cli_exit cli_usage_error(const cli_command *command, const char *format, ...)
{
    va_list args;
    fputs("etch: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    if (command)
        fprintf(stderr, "usage: etch %s %s [options]\nSee `etch help %s`.\n", command->name, command->words,
                command->name);
    else
        fputs("See `etch help`.\n", stderr);
    return CLI_USAGE;
}
