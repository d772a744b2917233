/* The table of options, and taking a command line apart by it. */
#define _GNU_SOURCE /* getopt_long */

#include "cli_int.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum option_id {
    OPT_CONFIG,
    OPT_PLAN,
    OPT_RUN,
    OPT_STAGE,
    OPT_SET,
    OPT_SWEEP,
    OPT_OVER,
    OPT_PLANS,
    OPT_CONFIGS,
    OPT_WHERE,
    OPT_SELECT,
    OPT_BEST,
    OPT_TOP,
    OPT_PARETO,
    OPT_EXPLAIN,
    OPT_YES,
    OPT_SHARD,
    OPT_RESUME,
    OPT_PLOT,
    OPT_FOR,
    OPT_METHOD,
    OPT_PIPELINE,
    OPT_AFTER,
    OPT_BY,
    OPT_COUNT_BY,
    OPT_WHY,
    OPT_DEFAULTS,
    OPT_BOUND,
    OPT_FORMAT,
    OPT_GROUPS,
    OPT_EAGER,
    OPT_RENDEZVOUS,
    OPT_SEEDS,
    OPT_TEXT,
    OPT_MACHINE,
    OPT_STACK,
    OPT_SLOW,
    OPT_CHECK,
    OPT_STREAMS,
    OPT_TIMES,
    OPT_TIMELINE,
    OPT_REPORT,
    OPT_RANKS,
    OPT_FORM,
    OPT_DIFF,
    OPT_LEADING,
    OPT_GRANULARITY,
    OPT_NAMES,
    OPT_ATTRS,
    OPT_ASTRA_SIM,
    OPT_HUMAN,
    OPT_OUTPUT,
    OPT_NAME,
    OPT_DRY_RUN,
    OPT_FORCE,
    OPT_NO_SYNC,
    OPT_JOBS,
    OPT_JSON,
    OPT_COLOR,
    OPT_QUIET,
    OPT_VERBOSE,
    OPT_HELP,
    OPT_VERSION,
    OPT_COUNT
} option_id;

typedef struct option_row {
    const char *name;
    /* 0: none */
    char letter;
    /* NULL: takes none */
    const char *argument;
    /* which take it */
    unsigned commands;
    const char *help;
} option_row;

/* clang-format off */
static const option_row rows[OPT_COUNT] = {
    [OPT_CONFIG] = {"config", 0, "NAME", CLI_SPEC | CLI_ROWS, "a config of the spec: a named set of values"},
    [OPT_PLAN] = {"plan", 0, "NAME", CLI_SPEC | CLI_ROWS,
                 "a plan of the spec; needed where it has several;\n"
                 "`show` then shows what is where, and collectives"},
    [OPT_RUN] = {"run", 0, "NAME", CLI_SPEC | CLI_ROWS, "a train or infer block of the spec"},
    [OPT_STAGE] = {"stage", 0,
                 "STAGE", CLI_QUERY | CLI_SHOW | CLI_MEMORY,
                 "pipeline stage of rank quantities: 0, 1, ..., first,\n"
                 "middle, last; else the heaviest (`show --plan` and\n"
                 "`memory`: all)"},
    [OPT_SET] = {"set", 0, "NAME=EXPR", CLI_SPEC | CLI_ROWS,
                 "values of params and mesh axes, instead of the\n"
                 "config's; repeatable, or joined by commas;\n"
                 "NAME=NAME leaves it without a value;\n"
                 "tokens=EXPR is the size of a step"},
    [OPT_SWEEP] = {"sweep", 0, "NAME", CLI_SWEEP, "a `sweep` block of the spec"},
    [OPT_OVER] = {"over", 0, "AXIS", CLI_SWEEP, "'NAME = VALUES': 1, 2, 4; range(1, 8); powers(2, 0, 3);\n"
                  "divisors(heads); repeatable, the last is the fastest"},
    [OPT_PLANS] = {"plans", 0, "LIST", CLI_SWEEP, "plans, joined by commas, or all"},
    [OPT_CONFIGS] = {"configs", 0, "LIST", CLI_SWEEP, "configs, likewise"},
    [OPT_WHERE] = {"where", 0, "PRED", CLI_SWEEP, "only rows for which it holds: 'ranks == 64, tp <= 8,\n"
                   "memory(peak) <= 80 GB'; repeatable"},
    [OPT_SELECT] = {"select", 0, "LIST", CLI_SWEEP, "what to print: expressions, joined by commas"},
    [OPT_BEST] = {"best", 0, "EXPR", CLI_SWEEP, "only the rows where it is least, the least first"},
    [OPT_TOP] = {"top", 0, "N", CLI_SWEEP, "how many of these; 1 when left out"},
    [OPT_PARETO] = {"pareto", 0, "LIST", CLI_SWEEP, "only rows that no other is better than in all of these"},
    [OPT_EXPLAIN] = {"explain", 0, NULL, CLI_SWEEP, "what a query says of the first row of each reason for\n"
                     "which rows are refused"},
    [OPT_YES] = {"yes", 0, NULL, CLI_SWEEP, "also more than 100000000 rows"},
    [OPT_SHARD] = {"shard", 0, "I/N", CLI_SWEEP, "only the I-th of N shares of the rows, into a part:\n"
                   "`etch merge` makes the whole of all parts"},
    [OPT_RESUME] = {"resume", 0, NULL, CLI_SWEEP, "go on where the same command ended before; keeps in\n"
                    "PATH.part what it can go on with"},
    [OPT_PLOT] = {"plot", 0, "FILE", CLI_SWEEP, "a picture of the rows, SVG: a front of two expressions, or\n"
                  "the first expression over two axes"},
    [OPT_FOR] = {"for", 0, "NAME", CLI_SOLVE, "the param or mesh axis to solve for; with values, only\n"
                 "these: 'tp = 1, 2, 4'; repeatable"},
    [OPT_METHOD] = {"method", 0, "WHAT", CLI_SOLVE, "only in this way: closed, bisection, each"},
    [OPT_PIPELINE] = {"pipeline", 0, NULL, CLI_SHOW, "the order in which the stages of a plan work"},
    [OPT_AFTER] = {"after", 0, "PASS", CLI_SHOW, "what a pass of the compiler has made: model, train,\n"
                   "place, stage, shard, fuse, step"},
    [OPT_BY] = {"by", 0, "WHAT", CLI_QUERY, "a table by op, module, phase, collective, axis,\n"
               "stage, term, layer, class"},
    [OPT_COUNT_BY] = {"count", 0,
                 "LIST", CLI_QUERY | CLI_PROVE | CLI_ROWS, "what counts as FLOP: megatron, narayanan, or\n"
                     "causal=full, router=no, ...: `etch help counts`"},
    [OPT_WHY] = {"why", 0, NULL, CLI_QUERY, "each term, and the op, module and place in the spec\n"
                 "behind each part of it"},
    [OPT_DEFAULTS] = {"defaults", 0, NULL, CLI_QUERY | CLI_PROVE | CLI_SHOW,
                 "bind params that have only a default, and mesh axes\n"
                 "without a value, to 1"},
    [OPT_BOUND] = {"bound", 0, NULL, CLI_CHECK, "check with everything bound, defaults too"},
    [OPT_FORMAT] = {"format", 0,
                 "FORMAT", CLI_SPEC | CLI_ROWS | CLI_VERIFY | CLI_DUMP | CLI_ASSEMBLE | CLI_FIT,
                 "of the result: plain (the default) or json; of a\n"
                    "query also latex, c, python; of a graph dot; of a\n"
                    "pipeline svg; of a sweep csv (the default), jsonl, table;\n"
                    "of `memory` also csv"},
    [OPT_FORM] = {"form", 0, "FORM", CLI_QUERY, "of a formula: shortest (the default), expanded,\n"
                  "factored, or relative to its first term"},
    [OPT_DIFF] = {"diff", 0, "NAME", CLI_QUERY, "the derivative by a param, dim or mesh axis"},
    [OPT_LEADING] = {"leading", 0, "NAME", CLI_QUERY, "only the terms of the highest degree in it"},
    [OPT_GROUPS] = {"groups", 0, "FILE", CLI_VERIFY | CLI_SIMULATE,
                    "the groups; else comm_group.json beside the traces"},
    [OPT_EAGER] = {"eager", 0, NULL, CLI_VERIFY, "only where sends end by themselves"},
    [OPT_RENDEZVOUS] = {"rendezvous", 0, NULL, CLI_VERIFY,
                        "only where sends wait until their receive is posted"},
    [OPT_SEEDS] = {"seeds", 0, "N", CLI_VERIFY, "also run with random durations, N times"},
    [OPT_RANKS] = {"ranks", 0, "LIST", CLI_LOWER | CLI_DUMP | CLI_SIMULATE,
                   "only these ranks: 0,2,8-15; of a timeline, else one\n"
                   "of each class"},
    [OPT_GRANULARITY] = {"granularity", 0, "WHAT", CLI_QUERY | CLI_LOWER | CLI_SIMULATE | CLI_ROWS,
                         "what becomes one node, and what traffic counts: op,\n"
                         "kernel (the default), block, library"},
    [OPT_NAMES] = {"names", 0, "WHAT", CLI_LOWER, "of nodes: short (the default), full, none"},
    [OPT_ATTRS] = {"attrs", 0, "LIST", CLI_LOWER, "attributes for people: phase, layer, microbatch,\n"
                   "op_type, module, joined by commas"},
    [OPT_ASTRA_SIM] = {"astra-sim", 0, NULL, CLI_LOWER, "also write what ASTRA-sim needs, and its command"},
    [OPT_TEXT] = {"text", 0, NULL, CLI_DUMP, "the text form of traces"},
    [OPT_MACHINE] = {"machine", 0, "M", CLI_FIT | CLI_SIMULATE | CLI_QUERY,
                     "the machine: a spec with a device, or the name of one\n"
                     "that comes with etch"},
    [OPT_STACK] = {"stack", 0, "NAME", CLI_SIMULATE | CLI_QUERY,
                   "of the machine: what runs on it, with its factors"},
    [OPT_SLOW] = {"slow", 0, "RANK:TIMES", CLI_SIMULATE,
                  "the device of one rank computes so many times as long,\n17:1.2"},
    [OPT_CHECK] = {"check", 0, NULL, CLI_FIT, "fit nothing: how good are the numbers of the machine?"},
    [OPT_STREAMS] = {"streams", 0, "WHAT", CLI_SIMULATE,
                     "of communication: axes (the default), those over\n"
                     "different axes run side by side; one, as in traces"},
    [OPT_TIMES] = {"times", 0, NULL, CLI_SIMULATE,
                   "with --format json: when each node begins, and how\n"
                   "long it takes"},
    [OPT_TIMELINE] = {"timeline", 0, "FILE", CLI_SIMULATE,
                      "write the run of ranks as events for ui.perfetto.dev"},
    [OPT_REPORT] = {"report", 0, "FILE", CLI_SIMULATE, "write a page about the run, for any browser"},
    [OPT_HUMAN] = {"human", 0, NULL, CLI_QUERY | CLI_LOWER, "also say numbers with three digits: 8.03 G"},
    [OPT_OUTPUT] = {"output", 'o', "PATH", CLI_LOWER | CLI_ASSEMBLE | CLI_IMPORT | CLI_SWEEP | CLI_MERGE,
                    "where the traces, the spec, or the rows go"},
    [OPT_NAME] = {"name", 0, "NAME", CLI_LOWER, "of the traces, NAME.<rank>.et; else the model's"},
    [OPT_DRY_RUN] = {"dry-run", 'n', NULL, CLI_LOWER, "say what would be written, and write nothing"},
    [OPT_FORCE] = {"force", 0, NULL, CLI_LOWER | CLI_ASSEMBLE | CLI_IMPORT,
                   "write into a folder that holds files; of `import`:\n"
                   "replace a file"},
    [OPT_NO_SYNC] = {"no-sync", 0, NULL, CLI_LOWER | CLI_ASSEMBLE, "end before the files are on the disk"},
    [OPT_JOBS] = {"jobs", 'j', "N", CLI_LOWER | CLI_VERIFY | CLI_ROWS,
                  "threads; as many as processors when left out"},
    [OPT_JSON] = {"json", 0, NULL,
                  CLI_EVERY & ~CLI_HELP,
                  "messages on stderr as JSON"},
    [OPT_COLOR] = {"color", 0, "WHEN", CLI_EVERY, "colour messages: auto (default), always, never"},
    [OPT_QUIET] = {"quiet", 'q', NULL,
                   CLI_EVERY & ~CLI_HELP,
                 "no messages unless there are errors"},
    [OPT_VERBOSE] = {"verbose", 'v', NULL, CLI_SPEC, "say which values are in force, and from where"},
    [OPT_HELP] = {"help", 'h', NULL, CLI_EVERY, "this help"},
    [OPT_VERSION] = {"version", 'V', NULL, CLI_EVERY, "the version of etch"},
};
/* clang-format on */

enum { FIRST_LONG = 256 }; /* value of the first option for getopt_long; letters are below */

bool cli_option_at(size_t i, cli_option *option)
{
    if (i >= OPT_COUNT)
        return false;
    const option_row *row = &rows[i];
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

/* ---- values ----------------------------------------------------------------------------------------- */

/* The index of `text` among `count` choices. */
static bool choose(const cli_arguments *a, option_id id, const char *text, const char *const *choices,
                   int count, int *chosen)
{
    for (*chosen = 0; *chosen < count; ++*chosen)
        if (strcmp(choices[*chosen], text) == 0)
            return true;
    const char *near = etch_suggest(text, choices, (size_t)count);
    char names[128] = "";
    for (int i = 0; i < count; i++) {
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "", choices[i]);
    }
    if (near)
        cli_usage_error(a->command, "--%s takes one of %s, not '%s'; did you mean '%s'?", rows[id].name,
                        names, text, near);
    else
        cli_usage_error(a->command, "--%s takes one of %s, not '%s'", rows[id].name, names, text);
    return false;
}

static bool choose_breakdown(cli_arguments *a, const char *text)
{
    enum { MOST = 16 };
    const char *names[MOST];
    int count = 0, chosen;
    while (count < MOST && etch_breakdown_name((etch_breakdown)(count + 1))) {
        names[count] = etch_breakdown_name((etch_breakdown)(count + 1));
        count++;
    }
    if (!choose(a, OPT_BY, text, names, count, &chosen))
        return false;
    a->query.by = (etch_breakdown)(chosen + 1);
    return true;
}

static const char *granularity_at(size_t i)
{
    return etch_granularity_name((etch_granularity)i);
}

static const char *naming_at(size_t i)
{
    return etch_naming_name((etch_naming)i);
}

/* The index of one of the choices that `at` lists. */
static bool choose_listed(const cli_arguments *a, option_id id, const char *text, const char *(*at)(size_t i),
                          int *chosen)
{
    enum { MOST = 16 };
    const char *names[MOST];
    int count = 0;
    while (count < MOST && at((size_t)count)) {
        names[count] = at((size_t)count);
        count++;
    }
    return choose(a, id, text, names, count, chosen);
}

/* An option that takes one of a list. */
static bool store_listed(cli_arguments *a, option_id id, const char *text)
{
    int chosen;
    const char *(*const at)(size_t i) = id == OPT_AFTER         ? etch_pass_at
                                        : id == OPT_GRANULARITY ? granularity_at
                                                                : naming_at;
    if (!choose_listed(a, id, text, at, &chosen))
        return false;
    if (id == OPT_AFTER)
        a->pass = at((size_t)chosen);
    else if (id == OPT_GRANULARITY)
        a->session.granularity = (etch_granularity)chosen;
    else
        a->output.names = (etch_naming)chosen;
    return true;
}

/* The format of a sweep's rows; -1: it is none. */
static int find_format_of_rows(const char *text)
{
    for (int i = 0; etch_sweep_format_name((etch_sweep_format)i); i++)
        if (strcmp(etch_sweep_format_name((etch_sweep_format)i), text) == 0)
            return i;
    return -1;
}

static bool choose_format(cli_arguments *a, const char *text)
{
    enum { MOST = 8 };
    const char *names[MOST];
    int count = 0, chosen;
    for (; count + 2 < MOST && etch_notation_name((etch_notation)count); count++)
        names[count] = etch_notation_name((etch_notation)count);
    names[count] = "dot";
    names[count + 1] = "svg";
    if (strcmp(text, "text") == 0)
        text = names[ETCH_PLAIN];
    const int of_rows = find_format_of_rows(text);
    if (of_rows >= 0) {
        a->sweep.format = (etch_sweep_format)of_rows;
        a->of_rows = text;
        return true;
    }
    if (!choose(a, OPT_FORMAT, text, names, count + 2, &chosen))
        return false;
    a->not_of_rows = text;
    a->dot = chosen == count;
    a->svg = chosen == count + 1;
    a->format = a->dot || a->svg ? ETCH_PLAIN : (etch_notation)chosen;
    return true;
}

static bool choose_form(cli_arguments *a, const char *text)
{
    enum { MOST = 8 };
    const char *names[MOST];
    int count = 0, chosen;
    for (; count < MOST && etch_form_name((etch_form)count); count++)
        names[count] = etch_form_name((etch_form)count);
    if (!choose(a, OPT_FORM, text, names, count, &chosen))
        return false;
    a->query.form = (etch_form)chosen;
    return true;
}

static bool choose_streams(cli_arguments *a, const char *text)
{
    static const char *const names[] = {"axes", "one"};
    int chosen;
    if (!choose(a, OPT_STREAMS, text, names, 2, &chosen))
        return false;
    a->simulation.one_stream = chosen == 1;
    return true;
}

static bool choose_color(cli_arguments *a, const char *text)
{
    static const char *const names[] = {"auto", "always", "never"};
    int chosen;
    if (!choose(a, OPT_COLOR, text, names, 3, &chosen))
        return false;
    a->color = (cli_color)chosen;
    return true;
}

enum { MOST_JOBS = 1024, MOST_COUNTED = 1000000 };

static bool read_number(const cli_arguments *a, option_id id, const char *text, long most, long *number)
{
    char *end;
    errno = 0;
    *number = strtol(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0' && *number >= 1 && *number <= most)
        return true;
    cli_usage_error(a->command, "--%s takes a number from 1 to %ld, not '%s'", rows[id].name, most, text);
    return false;
}

/* --jobs, --seeds, --top */
static bool store_number(cli_arguments *a, option_id id, const char *text)
{
    long number;
    if (!read_number(a, id, text, id == OPT_JOBS ? MOST_JOBS : MOST_COUNTED, &number))
        return false;
    if (id == OPT_JOBS)
        a->output.threads = (unsigned)number;
    else if (id == OPT_SEEDS)
        a->seeds = (uint32_t)number;
    else
        a->sweep.top = (size_t)number;
    return true;
}

static const char *method_at(size_t i)
{
    return etch_solving_name((etch_solving)i);
}

static bool choose_method(cli_arguments *a, const char *text)
{
    int chosen;
    if (!choose_listed(a, OPT_METHOD, text, method_at, &chosen))
        return false;
    a->solve.method = (etch_solving)chosen;
    return true;
}

/* "17:1.2"; what stands after the colon is for etch to read. */
static bool read_slow(cli_arguments *a, const char *text)
{
    char *end;
    errno = 0;
    const long long rank = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != ':' || rank < 0 || rank > UINT32_MAX) {
        cli_usage_error(a->command,
                        "--slow takes a rank and how many times as long it computes, 17:1.2, not '%s'", text);
        return false;
    }
    a->simulation.slow_rank = (uint32_t)rank;
    a->simulation.slow = end + 1;
    return true;
}

/* Notes one option of what computes rows. False after a usage error. */
static bool store_rows(cli_arguments *a, option_id id, const char *value)
{
    switch (id) {
    case OPT_SWEEP:
        a->sweep.sweep = value;
        return true;
    case OPT_OVER:
        a->over[a->sweep.over_count++] = value;
        return true;
    case OPT_PLANS:
        a->sweep.plans = value;
        return true;
    case OPT_CONFIGS:
        a->sweep.configs = value;
        return true;
    case OPT_WHERE:
        a->where[a->sweep.where_count++] = value;
        return true;
    case OPT_SELECT:
        a->sweep.select = value;
        return true;
    case OPT_BEST:
        a->sweep.best = value;
        return true;
    case OPT_TOP:
        return store_number(a, id, value);
    case OPT_PARETO:
        a->sweep.pareto = value;
        return true;
    case OPT_EXPLAIN:
        a->sweep.explain = true;
        return true;
    case OPT_SHARD:
        a->sweep.shard = value;
        return true;
    case OPT_RESUME:
        a->sweep.resume = true;
        return true;
    case OPT_PLOT:
        a->sweep.plot = value;
        return true;
    case OPT_FOR:
        a->over[a->solve.name_count++] = value;
        return true;
    case OPT_METHOD:
        return choose_method(a, value);
    default:
        a->sweep.yes = true;
        return true;
    }
}

/* Notes one option. False after a usage error. */
/* "nvlink.bandwidth = 900 GB/s": what is set has a point in its name. */
static bool is_of_machine(const char *text)
{
    return text[strcspn(text, ".=,")] == '.';
}

static bool store(cli_arguments *a, option_id id, const char *value, const char **sets)
{
    switch (id) {
    case OPT_CONFIG:
        a->session.config = value;
        return true;
    case OPT_PLAN:
        a->session.plan = value;
        return true;
    case OPT_RUN:
        a->session.run = value;
        return true;
    case OPT_STAGE:
        a->session.stage = value;
        return true;
    case OPT_SET:
        if (is_of_machine(value))
            a->machine_sets[a->machine_set_count++] = value;
        else
            sets[a->session.set_count++] = value;
        return true;
    case OPT_SWEEP:
    case OPT_OVER:
    case OPT_PLANS:
    case OPT_CONFIGS:
    case OPT_WHERE:
    case OPT_SELECT:
    case OPT_BEST:
    case OPT_TOP:
    case OPT_PARETO:
    case OPT_EXPLAIN:
    case OPT_SHARD:
    case OPT_RESUME:
    case OPT_PLOT:
    case OPT_YES:
    case OPT_FOR:
    case OPT_METHOD:
        return store_rows(a, id, value);
    case OPT_PIPELINE:
        a->view = CLI_VIEW_PIPELINE;
        return true;
    case OPT_AFTER:
        a->view = CLI_VIEW_PASS;
        return store_listed(a, id, value);
    case OPT_BY:
        return choose_breakdown(a, value);
    case OPT_COUNT_BY:
        a->session.count = value;
        return true;
    case OPT_WHY:
        a->query.why = true;
        return true;
    case OPT_DEFAULTS:
    case OPT_BOUND:
        a->session.defaults = true;
        return true;
    case OPT_FORMAT:
        return choose_format(a, value);
    case OPT_GROUPS:
        a->groups = value;
        return true;
    case OPT_EAGER:
        a->eager = true;
        return true;
    case OPT_RENDEZVOUS:
        a->rendezvous = true;
        return true;
    case OPT_SEEDS:
        return store_number(a, id, value);
    case OPT_RANKS:
        a->ranks = a->output.ranks = value;
        return true;
    case OPT_GRANULARITY:
    case OPT_NAMES:
        return store_listed(a, id, value);
    case OPT_ATTRS:
        a->output.attrs = value;
        return true;
    case OPT_ASTRA_SIM:
        a->output.astra_sim = true;
        return true;
    case OPT_TEXT:
        a->text = true;
        return true;
    case OPT_MACHINE:
        a->machine = value;
        return true;
    case OPT_STACK:
        a->query.stack = a->simulation.stack = value;
        return true;
    case OPT_SLOW:
        return read_slow(a, value);
    case OPT_TIMELINE:
        a->timeline = value;
        return true;
    case OPT_REPORT:
        a->report = value;
        return true;
    case OPT_CHECK:
        a->check = true;
        return true;
    case OPT_STREAMS:
        return choose_streams(a, value);
    case OPT_TIMES:
        a->simulation.times = true;
        return true;
    case OPT_FORM:
        return choose_form(a, value);
    case OPT_DIFF:
        a->query.derivative = value;
        return true;
    case OPT_LEADING:
        a->query.leading = value;
        return true;
    case OPT_HUMAN:
        a->human = true;
        return true;
    case OPT_OUTPUT:
        a->output.folder = value;
        return true;
    case OPT_NAME:
        a->output.name = value;
        return true;
    case OPT_DRY_RUN:
        a->output.dry_run = true;
        return true;
    case OPT_FORCE:
        a->output.force = true;
        return true;
    case OPT_NO_SYNC:
        a->output.no_sync = true;
        return true;
    case OPT_JOBS:
        return store_number(a, id, value);
    case OPT_JSON:
        a->json = true;
        return true;
    case OPT_COLOR:
        return choose_color(a, value);
    case OPT_QUIET:
        a->quiet = true;
        return true;
    case OPT_VERBOSE:
        a->verbose = true;
        return true;
    case OPT_HELP:
        a->help = true;
        return true;
    case OPT_VERSION:
        a->version = true;
        return true;
    case OPT_COUNT:
        break;
    }
    return false;
}

/* ---- the command line ------------------------------------------------------------------------------- */

typedef struct tables {
    struct option longs[OPT_COUNT + 1];
    char letters[2 * OPT_COUNT + 3];
} tables;

static void make_tables(tables *t)
{
    /* '-': words come in their order among the options; ':': a missing argument can be told from an unknown
     * option. */
    char *letter = t->letters;
    *letter++ = '-';
    *letter++ = ':';
    for (int i = 0; i < OPT_COUNT; i++) {
        t->longs[i] = (struct option){rows[i].name, rows[i].argument ? required_argument : no_argument, NULL,
                                      FIRST_LONG + i};
        if (!rows[i].letter)
            continue;
        *letter++ = rows[i].letter;
        if (rows[i].argument)
            *letter++ = ':';
    }
    *letter = '\0';
    t->longs[OPT_COUNT] = (struct option){0};
}

static option_id option_of(int value)
{
    if (value >= FIRST_LONG)
        return (option_id)(value - FIRST_LONG);
    for (int i = 0; i < OPT_COUNT; i++)
        if (rows[i].letter == value)
            return (option_id)i;
    return OPT_COUNT;
}

/* Said twice, one of the two would be left out without a word. Values of --set add up; how messages look and
 * how many threads there are may come from an alias that is overruled. */
static bool may_repeat(option_id id)
{
    return !rows[id].argument || id == OPT_SET || id == OPT_OVER || id == OPT_WHERE || id == OPT_FOR ||
           id == OPT_COLOR || id == OPT_JOBS;
}

static cli_exit refuse_unknown(const cli_arguments *a, char **argv)
{
    if (optopt >= FIRST_LONG)
        return cli_usage_error(a->command, "--%s takes no value", rows[optopt - FIRST_LONG].name);
    if (optopt != 0)
        return cli_usage_error(a->command, "unknown option '-%c'", optopt);
    const char *names[OPT_COUNT];
    for (int i = 0; i < OPT_COUNT; i++)
        names[i] = rows[i].name;
    const char *text = argv[optind - 1];
    char name[32] = "";
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text + 2, "="), text + 2);
    const char *near = etch_suggest(name, names, OPT_COUNT);
    if (near)
        return cli_usage_error(a->command, "unknown option '%s'; did you mean --%s?", text, near);
    return cli_usage_error(a->command, "unknown option '%s'", text);
}

static cli_exit refuse_command(const char *name)
{
    const char *names[16];
    size_t count = 0;
    for (const cli_command *command; (command = cli_command_at(count)) != NULL; count++)
        names[count] = command->name;
    const char *near = etch_suggest(name, names, count);
    if (near)
        return cli_usage_error(NULL, "unknown command '%s'; did you mean '%s'?", name, near);
    return cli_usage_error(NULL, "unknown command '%s'", name);
}

/* The command, or a word after it. */
static cli_exit add_word(cli_arguments *a, const char *word)
{
    if (!a->command) {
        a->command = cli_command_of(word);
        return a->command ? CLI_DONE : refuse_command(word);
    }
    if (a->word_count == a->command->most + 1)
        return cli_usage_error(a->command, "unexpected '%s'", word);
    a->words[a->word_count++] = word;
    return CLI_DONE;
}

/* Options may stand before the command: only now is known whether it takes them. */
static cli_exit check_words(const cli_arguments *a, const bool given[OPT_COUNT])
{
    const cli_command *c = a->command;
    if (a->help || a->version)
        return CLI_DONE;
    if (!c) {
        cli_usage_error(NULL, "no command");
        return CLI_USAGE;
    }
    for (int i = 0; i < OPT_COUNT; i++)
        if (given[i] && !(rows[i].commands & c->bit))
            return cli_usage_error(c, "`etch %s` has no option --%s", c->name, rows[i].name);
    const bool is_table = c->bit == CLI_MEMORY && a->sweep.format == ETCH_SWEEP_CSV;
    if (a->of_rows && c->bit != CLI_SWEEP && !is_table)
        return cli_usage_error(c, "`etch %s` has no --format %s: that is of `etch sweep`", c->name,
                               a->of_rows);
    if (a->not_of_rows && c->bit == CLI_SWEEP)
        return cli_usage_error(c, "`etch sweep` has no --format %s: only csv, jsonl and table",
                               a->not_of_rows);
    if (c->bit != CLI_SHOW && (a->dot || a->svg))
        return cli_usage_error(c, "`etch %s` has no --format %s: that is of `etch show`", c->name,
                               a->dot ? "dot" : "svg");
    if (c->bit != CLI_QUERY && a->format != ETCH_PLAIN && a->format != ETCH_JSON)
        return cli_usage_error(c, "`etch %s` has no --format %s: only plain%s json", c->name,
                               etch_notation_name(a->format), c->bit == CLI_SHOW ? ", dot and" : " and");
    if (a->machine_set_count > 0 && !a->machine)
        return cli_usage_error(c, "'%s' is a number of a machine: say which with --machine M",
                               a->machine_sets[0]);
    if (c->bit == CLI_SIMULATE && a->ranks && !a->timeline)
        return cli_usage_error(c, "--ranks goes with --timeline");
    if (a->simulation.times && a->format != ETCH_JSON)
        return cli_usage_error(c, "--times goes with --format json");
    if (a->query.leading && (a->query.derivative || a->query.why || a->query.by != ETCH_BY_NOTHING))
        return cli_usage_error(c, "--leading stands without --by, --why and --diff");
    if (a->query.why && a->query.by != ETCH_BY_NOTHING)
        return cli_usage_error(c, "--why stands without --by");
    if (a->word_count > c->most)
        return cli_usage_error(c, "unexpected '%s'", a->words[c->most]);
    if (a->word_count == 0 && c->least > 0)
        return cli_usage_error(c, c->bit & (CLI_SPEC | CLI_ROWS) ? "no spec given" : "no file given");
    if (a->word_count < c->least)
        return cli_usage_error(c, "no %s given",
                               c->bit & (CLI_PROVE | CLI_SOLVE) ? "statement" : "expression");
    if ((c->bit & (CLI_SPEC | CLI_ROWS)) && !*a->words[0])
        return cli_usage_error(c, "SPEC is the path of a file, or - for the standard input");
    return CLI_DONE;
}

static unsigned processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : (unsigned)count;
}

cli_exit cli_parse(int argc, char **argv, const char **sets, cli_arguments *a)
{
    tables t;
    bool given[OPT_COUNT + 1] = {false};
    int value;
    cli_exit status = CLI_DONE;
    *a = (cli_arguments){.session.sets = sets,
                         .over = sets + argc + 1,
                         .where = sets + 2 * ((size_t)argc + 1),
                         .machine_sets = sets + 3 * ((size_t)argc + 1),
                         .words = sets + 4 * ((size_t)argc + 1),
                         .output.threads = processors()};
    make_tables(&t);
    opterr = 0;
    while (status == CLI_DONE && (value = getopt_long(argc, argv, t.letters, t.longs, NULL)) != -1) {
        if (value == 1) {
            status = add_word(a, optarg);
        } else if (value == '?') {
            status = refuse_unknown(a, argv);
        } else if (value == ':') {
            status = cli_usage_error(a->command, "--%s needs a value", rows[option_of(optopt)].name);
        } else {
            const option_id id = option_of(value);
            if (given[id] && !may_repeat(id))
                status = cli_usage_error(a->command, "--%s is given twice", rows[id].name);
            else if (!store(a, id, optarg, sets))
                status = CLI_USAGE;
            given[id] = true;
        }
    }
    while (status == CLI_DONE && optind < argc)
        status = add_word(a, argv[optind++]);
    if (a->command &&
        (a->command->bit == CLI_LOWER || a->command->bit == CLI_MEMORY || a->view == CLI_VIEW_PIPELINE))
        a->session.defaults = true; /* also for what --verbose says */
    return status == CLI_DONE ? check_words(a, given) : status;
}
