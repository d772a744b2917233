/* Taking a command line apart by the table of options. */
#define _GNU_SOURCE /* getopt_long */

#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_LONG = 256 }; /* value of the first option for getopt_long; letters are below */

/* ---- values ----------------------------------------------------------------------------------------- */

/* The index of `text` among `count` choices. */
static bool choose(const cli_arguments *a, cli_option_id id, const char *text, const char *const *choices,
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
        cli_usage_error(a->command, "--%s takes one of %s, not '%s'; did you mean '%s'?",
                        cli_option_rows[id].name, names, text, near);
    else
        cli_usage_error(a->command, "--%s takes one of %s, not '%s'", cli_option_rows[id].name, names, text);
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
    if (!choose(a, CLI_OPT_BY, text, names, count, &chosen))
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
static bool choose_listed(const cli_arguments *a, cli_option_id id, const char *text,
                          const char *(*at)(size_t i), int *chosen)
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
static bool store_listed(cli_arguments *a, cli_option_id id, const char *text)
{
    int chosen;
    const char *(*const at)(size_t i) = id == CLI_OPT_AFTER         ? etch_pass_at
                                        : id == CLI_OPT_GRANULARITY ? granularity_at
                                                                    : naming_at;
    if (!choose_listed(a, id, text, at, &chosen))
        return false;
    if (id == CLI_OPT_AFTER)
        a->pass = at((size_t)chosen);
    else if (id == CLI_OPT_GRANULARITY)
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
    if (!choose(a, CLI_OPT_FORMAT, text, names, count + 2, &chosen))
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
    if (!choose(a, CLI_OPT_FORM, text, names, count, &chosen))
        return false;
    a->query.form = (etch_form)chosen;
    return true;
}

static bool choose_streams(cli_arguments *a, const char *text)
{
    static const char *const names[] = {"axes", "one"};
    int chosen;
    if (!choose(a, CLI_OPT_STREAMS, text, names, 2, &chosen))
        return false;
    a->simulation.one_stream = chosen == 1;
    return true;
}

static bool choose_color(cli_arguments *a, const char *text)
{
    static const char *const names[] = {"auto", "always", "never"};
    int chosen;
    if (!choose(a, CLI_OPT_COLOR, text, names, 3, &chosen))
        return false;
    a->color = (cli_color)chosen;
    return true;
}

enum { MOST_JOBS = 1024, MOST_COUNTED = 1000000 };

static bool read_number(const cli_arguments *a, cli_option_id id, const char *text, long most, long *number)
{
    char *end;
    errno = 0;
    *number = strtol(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0' && *number >= 1 && *number <= most)
        return true;
    cli_usage_error(a->command, "--%s takes a number from 1 to %ld, not '%s'", cli_option_rows[id].name, most,
                    text);
    return false;
}

/* --jobs, --seeds, --top */
static bool store_number(cli_arguments *a, cli_option_id id, const char *text)
{
    long number;
    if (!read_number(a, id, text, id == CLI_OPT_JOBS ? MOST_JOBS : MOST_COUNTED, &number))
        return false;
    if (id == CLI_OPT_JOBS)
        a->output.threads = (unsigned)number;
    else if (id == CLI_OPT_SEEDS)
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
    if (!choose_listed(a, CLI_OPT_METHOD, text, method_at, &chosen))
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
static bool store_rows(cli_arguments *a, cli_option_id id, const char *value)
{
    switch (id) {
    case CLI_OPT_SWEEP:
        a->sweep.sweep = value;
        return true;
    case CLI_OPT_OVER:
        a->over[a->sweep.over_count++] = value;
        return true;
    case CLI_OPT_PLANS:
        a->sweep.plans = value;
        return true;
    case CLI_OPT_CONFIGS:
        a->sweep.configs = value;
        return true;
    case CLI_OPT_RUNS:
        a->sweep.runs = value;
        return true;
    case CLI_OPT_MACHINES:
        a->machines = value;
        return true;
    case CLI_OPT_WHERE:
        a->where[a->sweep.where_count++] = value;
        return true;
    case CLI_OPT_SELECT:
        a->sweep.select = value;
        return true;
    case CLI_OPT_BEST:
        a->sweep.best = value;
        return true;
    case CLI_OPT_TOP:
        return store_number(a, id, value);
    case CLI_OPT_PARETO:
        a->sweep.pareto = value;
        return true;
    case CLI_OPT_EXPLAIN:
        a->sweep.explain = true;
        return true;
    case CLI_OPT_EVERY_ROW:
        a->sweep.every_row = true;
        return true;
    case CLI_OPT_SHARD:
        a->sweep.shard = value;
        return true;
    case CLI_OPT_RESUME:
        a->sweep.resume = true;
        return true;
    case CLI_OPT_PLOT:
        a->sweep.plot = value;
        return true;
    case CLI_OPT_LOWER:
        a->sweep.lower = value;
        return true;
    case CLI_OPT_VERIFY:
        a->sweep.verify = true;
        return true;
    case CLI_OPT_FOR:
        a->over[a->solve.name_count++] = value;
        return true;
    case CLI_OPT_METHOD:
        return choose_method(a, value);
    default:
        a->sweep.yes = true;
        return true;
    }
}

/* "nvlink.bandwidth = 900 GB/s": what is set has a point in its name. */
static bool is_of_machine(const char *text)
{
    return text[strcspn(text, ".=,")] == '.';
}

/* "plan.schedule = gpipe" */
static bool is_of_plan(const char *text)
{
    return strncmp(text, "plan.", 5) == 0;
}

static void store_setting(cli_arguments *a, const char *text, const char **sets)
{
    if (is_of_plan(text))
        a->plan_sets[a->session.plan_set_count++] = text;
    else if (is_of_machine(text))
        a->machine_sets[a->machine_set_count++] = text;
    else
        sets[a->session.set_count++] = text;
}

#define WORD_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.'"

/* "plan.schedule = gpipe": does the setting of an option or of a part of a machine begin here? */
static bool is_of_part(const char *text)
{
    const size_t length = strspn(text, WORD_LETTERS);
    return (*text < '0' || *text > '9') && memchr(text, '.', length) &&
           text[length + strspn(text + length, " ")] == '=';
}

/* The next comma that is in no brackets and no quotes; NULL: there is none. */
static char *next_comma(char *text)
{
    bool quoted = false;
    int depth = 0;
    for (; *text; text++) {
        quoted = quoted != (*text == '"');
        depth += !quoted && strchr("([{", *text);
        depth -= !quoted && strchr(")]}", *text);
        if (!quoted && depth <= 0 && *text == ',')
            return text;
    }
    return NULL;
}

/* "micro = 4, plan.schedule = gpipe": each part begins a text of its own. */
static void store_set(cli_arguments *a, char *text, const char **sets)
{
    char *at = text;
    for (char *comma; (comma = next_comma(at)) != NULL;) {
        at = comma + 1 + strspn(comma + 1, " ");
        if (!is_of_part(at))
            continue;
        *comma = '\0';
        store_setting(a, text, sets);
        text = at;
    }
    store_setting(a, text, sets);
}

/* Notes one option. False after a usage error. */
static bool store(cli_arguments *a, cli_option_id id, char *value, const char **sets)
{
    switch (id) {
    case CLI_OPT_CONFIG:
        a->session.config = value;
        return true;
    case CLI_OPT_PLAN:
        a->session.plan = value;
        return true;
    case CLI_OPT_RUN:
        a->session.run = value;
        return true;
    case CLI_OPT_STAGE:
        a->session.stage = value;
        return true;
    case CLI_OPT_SET:
        store_set(a, value, sets);
        return true;
    case CLI_OPT_SWEEP:
    case CLI_OPT_OVER:
    case CLI_OPT_PLANS:
    case CLI_OPT_CONFIGS:
    case CLI_OPT_RUNS:
    case CLI_OPT_MACHINES:
    case CLI_OPT_WHERE:
    case CLI_OPT_SELECT:
    case CLI_OPT_BEST:
    case CLI_OPT_TOP:
    case CLI_OPT_PARETO:
    case CLI_OPT_EXPLAIN:
    case CLI_OPT_EVERY_ROW:
    case CLI_OPT_SHARD:
    case CLI_OPT_RESUME:
    case CLI_OPT_PLOT:
    case CLI_OPT_LOWER:
    case CLI_OPT_VERIFY:
    case CLI_OPT_YES:
    case CLI_OPT_FOR:
    case CLI_OPT_METHOD:
        return store_rows(a, id, value);
    case CLI_OPT_PIPELINE:
        a->view = CLI_VIEW_PIPELINE;
        return true;
    case CLI_OPT_AFTER:
        a->view = CLI_VIEW_PASS;
        return store_listed(a, id, value);
    case CLI_OPT_BY:
        return choose_breakdown(a, value);
    case CLI_OPT_COUNT_BY:
        a->session.count = value;
        return true;
    case CLI_OPT_WHY:
        a->query.why = true;
        return true;
    case CLI_OPT_DEFAULTS:
    case CLI_OPT_BOUND:
        a->session.defaults = true;
        return true;
    case CLI_OPT_FORMAT:
        return choose_format(a, value);
    case CLI_OPT_GROUPS:
        a->groups = value;
        return true;
    case CLI_OPT_EAGER:
        a->eager = true;
        return true;
    case CLI_OPT_RENDEZVOUS:
        a->rendezvous = true;
        return true;
    case CLI_OPT_SEEDS:
        return store_number(a, id, value);
    case CLI_OPT_RANKS:
        a->ranks = a->output.ranks = value;
        return true;
    case CLI_OPT_GRANULARITY:
    case CLI_OPT_NAMES:
        return store_listed(a, id, value);
    case CLI_OPT_ATTRS:
        a->output.attrs = value;
        return true;
    case CLI_OPT_ASTRA_SIM:
        a->output.astra_sim = true;
        return true;
    case CLI_OPT_TEXT:
        a->text = true;
        return true;
    case CLI_OPT_MACHINE:
        a->machine = value;
        return true;
    case CLI_OPT_STACK:
        a->query.stack = a->simulation.stack = a->sweep.stack = a->solve.stack = value;
        return true;
    case CLI_OPT_SLOW:
        return read_slow(a, value);
    case CLI_OPT_TIMELINE:
        a->timeline = value;
        return true;
    case CLI_OPT_REPORT:
        a->report = value;
        return true;
    case CLI_OPT_CHECK:
        a->check = true;
        return true;
    case CLI_OPT_STREAMS:
        return choose_streams(a, value);
    case CLI_OPT_TIMES:
        a->simulation.times = true;
        return true;
    case CLI_OPT_FORM:
        return choose_form(a, value);
    case CLI_OPT_DIFF:
        a->query.derivative = value;
        return true;
    case CLI_OPT_LEADING:
        a->query.leading = value;
        return true;
    case CLI_OPT_HUMAN:
        a->human = true;
        return true;
    case CLI_OPT_OUTPUT:
        a->output.folder = value;
        return true;
    case CLI_OPT_NAME:
        a->output.name = value;
        return true;
    case CLI_OPT_DRY_RUN:
        a->output.dry_run = true;
        return true;
    case CLI_OPT_FORCE:
        a->output.force = true;
        return true;
    case CLI_OPT_LINK:
        a->output.link = true;
        return true;
    case CLI_OPT_ZSTD:
        a->output.zstd = true;
        return true;
    case CLI_OPT_NO_SYNC:
        a->output.no_sync = true;
        return true;
    case CLI_OPT_JOBS:
        a->has_jobs = true;
        return store_number(a, id, value);
    case CLI_OPT_JSON:
        a->json = true;
        return true;
    case CLI_OPT_COLOR:
        return choose_color(a, value);
    case CLI_OPT_QUIET:
        a->quiet = true;
        return true;
    case CLI_OPT_VERBOSE:
        a->verbose = true;
        return true;
    case CLI_OPT_HELP:
        a->help = true;
        return true;
    case CLI_OPT_VERSION:
        a->version = true;
        return true;
    case CLI_OPT_COUNT:
        break;
    }
    return false;
}

/* ---- the command line ------------------------------------------------------------------------------- */

typedef struct tables {
    struct option longs[CLI_OPT_COUNT + 1];
    char letters[2 * CLI_OPT_COUNT + 3];
} tables;

static void make_tables(tables *t)
{
    /* '-': words come in their order among the options; ':': a missing argument can be told from an unknown
     * option. */
    char *letter = t->letters;
    *letter++ = '-';
    *letter++ = ':';
    for (int i = 0; i < CLI_OPT_COUNT; i++) {
        t->longs[i] = (struct option){cli_option_rows[i].name,
                                      cli_option_rows[i].argument ? required_argument : no_argument, NULL,
                                      FIRST_LONG + i};
        if (!cli_option_rows[i].letter)
            continue;
        *letter++ = cli_option_rows[i].letter;
        if (cli_option_rows[i].argument)
            *letter++ = ':';
    }
    *letter = '\0';
    t->longs[CLI_OPT_COUNT] = (struct option){0};
}

static cli_option_id option_of(int value)
{
    if (value >= FIRST_LONG)
        return (cli_option_id)(value - FIRST_LONG);
    for (int i = 0; i < CLI_OPT_COUNT; i++)
        if (cli_option_rows[i].letter == value)
            return (cli_option_id)i;
    return CLI_OPT_COUNT;
}

/* Said twice, one of the two would be left out without a word. Values of --set add up; how messages look and
 * how many threads there are may come from an alias that is overruled. */
static bool may_repeat(cli_option_id id)
{
    return !cli_option_rows[id].argument || id == CLI_OPT_SET || id == CLI_OPT_OVER || id == CLI_OPT_WHERE ||
           id == CLI_OPT_FOR || id == CLI_OPT_COLOR || id == CLI_OPT_JOBS;
}

static cli_exit refuse_unknown(const cli_arguments *a, char **argv)
{
    if (optopt >= FIRST_LONG)
        return cli_usage_error(a->command, "--%s takes no value", cli_option_rows[optopt - FIRST_LONG].name);
    if (optopt != 0)
        return cli_usage_error(a->command, "unknown option '-%c'", optopt);
    const char *names[CLI_OPT_COUNT];
    for (int i = 0; i < CLI_OPT_COUNT; i++)
        names[i] = cli_option_rows[i].name;
    const char *text = argv[optind - 1];
    char name[32] = "";
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text + 2, "="), text + 2);
    const char *near = etch_suggest(name, names, CLI_OPT_COUNT);
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
static cli_exit check_words(const cli_arguments *a, const bool given[CLI_OPT_COUNT])
{
    const cli_command *c = a->command;
    if (a->help || a->version)
        return CLI_DONE;
    if (!c) {
        cli_usage_error(NULL, "no command");
        return CLI_USAGE;
    }
    for (int i = 0; i < CLI_OPT_COUNT; i++)
        if (given[i] && !(cli_option_rows[i].commands & c->bit))
            return cli_usage_error(c, "`etch %s` has no option --%s", c->name, cli_option_rows[i].name);
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
    if (a->machine && a->machines)
        return cli_usage_error(c, "one of --machine and --machines: a machine, or a column of them");
    if (a->machine_set_count > 0 && !a->machine && !a->machines)
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

size_t cli_text_room(int argc, char *const *argv)
{
    size_t room = (size_t)argc + 1;
    for (int i = 0; i < argc; i++)
        for (const char *c = argv[i]; *c; c++)
            room += *c == ',';
    return room;
}

cli_exit cli_parse(int argc, char **argv, const char **sets, cli_arguments *a)
{
    const size_t room = cli_text_room(argc, argv);
    tables t;
    bool given[CLI_OPT_COUNT + 1] = {false};
    int value;
    cli_exit status = CLI_DONE;
    *a = (cli_arguments){.session.sets = sets,
                         .session.plan_sets = sets + 5 * room,
                         .over = sets + room,
                         .where = sets + 2 * room,
                         .machine_sets = sets + 3 * room,
                         .words = sets + 4 * room,
                         .plan_sets = sets + 5 * room,
                         .output.threads = processors()};
    make_tables(&t);
    opterr = 0;
    while (status == CLI_DONE && (value = getopt_long(argc, argv, t.letters, t.longs, NULL)) != -1) {
        if (value == 1) {
            status = add_word(a, optarg);
        } else if (value == '?') {
            status = refuse_unknown(a, argv);
        } else if (value == ':') {
            status =
                cli_usage_error(a->command, "--%s needs a value", cli_option_rows[option_of(optopt)].name);
        } else {
            const cli_option_id id = option_of(value);
            if (given[id] && !may_repeat(id))
                status = cli_usage_error(a->command, "--%s is given twice", cli_option_rows[id].name);
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
