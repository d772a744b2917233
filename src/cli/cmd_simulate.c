/* etch simulate: how long a step takes on a machine, and where the time goes. */
#define _POSIX_C_SOURCE 200809L

#include "timeline_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { TEXT = 48 };

/* ---- plain ------------------------------------------------------------------------------------------ */

/* Picoseconds as people read them: "12.345678901234 s", "3.5 us", exactly. */
static void time_text(uint64_t ps, char text[TEXT])
{
    static const struct {
        const char *name;
        uint64_t scale;
        int digits;
    } units[] = {{"s", 1000000000000, 12}, {"ms", 1000000000, 9}, {"us", 1000000, 6}, {"ns", 1000, 3}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (ps < units[i].scale)
            continue;
        int used = snprintf(text, TEXT, "%" PRIu64 ".%0*" PRIu64, ps / units[i].scale, units[i].digits,
                            ps % units[i].scale);
        while (text[used - 1] == '0')
            used--;
        used -= text[used - 1] == '.';
        snprintf(text + used, (size_t)(TEXT - used), " %s", units[i].name);
        return;
    }
    snprintf(text, TEXT, "%" PRIu64 " ps", ps);
}

static void print_time(const char *name, uint64_t ps)
{
    char text[TEXT];
    time_text(ps, text);
    cli_print_field(name, "%s", text);
}

/* Tenths of a percent, rounded to the nearest. */
static void print_part(const char *name, uint64_t part, uint64_t whole)
{
    __extension__ typedef unsigned __int128 wide;
    const unsigned tenths = whole ? (unsigned)(((wide)part * 2000 + whole) / ((wide)whole * 2)) : 0;
    printf("  %s %u.%u %%", name, tenths / 10, tenths % 10);
}

static bool same_class(const etch_simulation *s, const etch_simulation_class *a,
                       const etch_simulation_class *b)
{
    bool same = a->computing == b->computing && a->waiting == b->waiting && a->idle == b->idle;
    for (size_t i = 0; same && i < s->axes_count; i++)
        same = a->exposed[i] == b->exposed[i];
    return same;
}

/* Do the stages have several parts, or classes of their own? */
static const char *title(const etch_simulation *s, const etch_simulation_class *c, char text[TEXT])
{
    bool alone = true, parts = false;
    for (size_t i = 0; i < s->class_count; i++) {
        alone = alone &&
                (&s->classes[i] == c || s->classes[i].stage != c->stage || s->classes[i].part != c->part);
        parts = parts || s->classes[i].part > 0;
    }
    int used = snprintf(text, TEXT, "%s %" PRIu32, s->plan ? "stage" : "program", c->stage);
    if (parts)
        used += snprintf(text + used, (size_t)(TEXT - used), ", part %" PRIu32, c->part);
    if (!alone)
        snprintf(text + used, (size_t)(TEXT - used), ", as rank %" PRIu32, c->first_rank);
    return text;
}

/* Classes in a row whose time goes the same way are told at once. */
static void print_classes(const etch_simulation *s)
{
    for (size_t first = 0, end; first < s->class_count; first = end) {
        const etch_simulation_class *c = &s->classes[first];
        char name[TEXT], last[TEXT];
        uint64_t ranks = 0;
        for (end = first; end < s->class_count && same_class(s, c, &s->classes[end]); end++)
            ranks += s->classes[end].ranks;
        printf("%s%s%s: %" PRIu64 " rank%s\n", title(s, c, name), end - first > 1 ? " to " : "",
               end - first > 1 ? title(s, &s->classes[end - 1], last) : "", ranks, ranks == 1 ? "" : "s");
        print_part("computing", c->computing, s->step);
        for (size_t i = 0; i < s->axes_count; i++)
            if (c->exposed[i] > 0)
                print_part(s->axes[i], c->exposed[i], s->step);
        print_part("waiting", c->waiting, s->step);
        print_part("idle", c->idle, s->step);
        putchar('\n');
    }
}

static void print_plain(const etch_simulation *s)
{
    char step[TEXT], error[TEXT];
    cli_print_field(s->plan ? "model" : "traces", "%s", s->model);
    if (s->config)
        cli_print_field("config", "%s", s->config);
    if (s->run)
        cli_print_field("run", "%s", s->run);
    if (s->plan)
        cli_print_field("plan", "%s", s->plan);
    cli_print_field("machine", "%s of %s", s->cluster, s->device);
    if (s->stack)
        cli_print_field("stack", "%s: all %s, attention %s, launch %s", s->stack, s->stack_all,
                        s->stack_attention, s->stack_launch);
    if (s->slow)
        cli_print_field("slow", "rank %" PRIu32 ": %s", s->slow_rank, s->slow);
    cli_print_field("ranks", "%" PRIu32 " in %zu class%s", s->ranks, s->class_count,
                    s->class_count == 1 ? "" : "es");
    time_text(s->step, step);
    time_text(s->error, error);
    cli_print_field("step", "%s, within %s", step, error);
    print_time("lower", s->lower);
    print_time("upper", s->upper);
    if (s->tokens > 0)
        cli_print_field("tokens/s", "%" PRIu64, s->tokens_per_second);
    if (s->mfu >= 0)
        cli_print_field("mfu", "%" PRId64 ".%02" PRId64 " %%", s->mfu / 10000, s->mfu / 100 % 100);
    print_classes(s);
}

/* ---- JSON ------------------------------------------------------------------------------------------- */

static json_t *numbers_json(const uint64_t *numbers, size_t count, bool *failed)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        cli_json_append(array, json_integer((json_int_t)numbers[i]), failed);
    return array;
}

static json_t *class_json(const etch_simulation *s, const etch_simulation_class *c, bool times, bool *failed)
{
    json_t *object = json_object(), *exposed = json_object();
    for (size_t i = 0; i < s->axes_count; i++)
        cli_json_set(exposed, s->axes[i], json_integer((json_int_t)c->exposed[i]), failed);
    cli_json_set(object, "stage", json_integer((json_int_t)c->stage), failed);
    cli_json_set(object, "part", json_integer((json_int_t)c->part), failed);
    cli_json_set(object, "first_rank", json_integer((json_int_t)c->first_rank), failed);
    cli_json_set(object, "ranks", json_integer((json_int_t)c->ranks), failed);
    cli_json_set(object, "computing", json_integer((json_int_t)c->computing), failed);
    cli_json_set(object, "exposed", exposed, failed);
    cli_json_set(object, "waiting", json_integer((json_int_t)c->waiting), failed);
    cli_json_set(object, "idle", json_integer((json_int_t)c->idle), failed);
    if (!times)
        return object;
    cli_json_set(object, "begins", numbers_json(c->begins, c->node_count, failed), failed);
    cli_json_set(object, "lasts", numbers_json(c->lasts, c->node_count, failed), failed);
    return object;
}

/* The critical path: pairs of a class and a node. */
static json_t *path_json(const etch_simulation *s, bool *failed)
{
    json_t *array = json_array();
    for (size_t i = 0; i < s->path_count; i++)
        cli_json_append(array,
                        json_pack("[I,I]", (json_int_t)s->path[i].class_index, (json_int_t)s->path[i].node),
                        failed);
    return array;
}

/* The step where one thing takes no time. */
static json_t *free_json(const etch_simulation *s, bool *failed)
{
    json_t *object = json_object();
    cli_json_set(object, "computing", json_integer((json_int_t)s->free_computing), failed);
    for (size_t i = 0; i < s->axes_count; i++)
        cli_json_set(object, s->axes[i], json_integer((json_int_t)s->free_axes[i]), failed);
    return object;
}

static json_t *stack_json(const etch_simulation *s, bool *failed)
{
    json_t *object = json_object();
    cli_json_set(object, "name", cli_json_text(s->stack), failed);
    cli_json_set(object, "all", cli_json_text(s->stack_all), failed);
    cli_json_set(object, "attention", cli_json_text(s->stack_attention), failed);
    cli_json_set(object, "launch", cli_json_text(s->stack_launch), failed);
    return object;
}

static bool print_json(const etch_simulation *s, bool times)
{
    bool failed = false;
    json_t *root = json_object(), *classes = json_array(), *class_of = json_array();
    for (size_t i = 0; i < s->class_count; i++)
        cli_json_append(classes, class_json(s, &s->classes[i], times, &failed), &failed);
    for (uint32_t i = 0; times && i < s->ranks; i++)
        cli_json_append(class_of, json_integer((json_int_t)s->class_of[i]), &failed);
    cli_json_set(root, "schema", json_string("etch-simulate/1"), &failed);
    cli_json_set(root, "model", cli_json_text(s->model), &failed);
    cli_json_set(root, "config", cli_json_text(s->config), &failed);
    if (s->run)
        cli_json_set(root, "run", cli_json_text(s->run), &failed);
    cli_json_set(root, "plan", cli_json_text(s->plan), &failed);
    cli_json_set(root, "cluster", cli_json_text(s->cluster), &failed);
    cli_json_set(root, "device", cli_json_text(s->device), &failed);
    if (s->stack)
        cli_json_set(root, "stack", stack_json(s, &failed), &failed);
    if (s->slow)
        cli_json_set(root, "slow", json_pack("{s:I,s:s}", "rank", (json_int_t)s->slow_rank, "times", s->slow),
                     &failed);
    cli_json_set(root, "ranks", json_integer((json_int_t)s->ranks), &failed);
    cli_json_set(root, "step_ps", json_integer((json_int_t)s->step), &failed);
    cli_json_set(root, "error_ps", json_integer((json_int_t)s->error), &failed);
    cli_json_set(root, "lower_ps", json_integer((json_int_t)s->lower), &failed);
    cli_json_set(root, "upper_ps", json_integer((json_int_t)s->upper), &failed);
    cli_json_set(root, "tokens", s->tokens ? json_integer((json_int_t)s->tokens) : json_null(), &failed);
    cli_json_set(root, "tokens_per_second",
                 s->tokens ? json_integer((json_int_t)s->tokens_per_second) : json_null(), &failed);
    cli_json_set(root, "mfu_millionths", s->mfu >= 0 ? json_integer((json_int_t)s->mfu) : json_null(),
                 &failed);
    cli_json_set(root, "classes", classes, &failed);
    if (times)
        cli_json_set(root, "path", path_json(s, &failed), &failed);
    if (times)
        cli_json_set(root, "free", free_json(s, &failed), &failed);
    if (times)
        cli_json_set(root, "class_of", class_of, &failed);
    else
        json_decref(class_of);
    return cli_print_json(root) && !failed;
}

/* ---- the command ------------------------------------------------------------------------------------ */

/* A folder is one of traces, and so would be what is unpacked of an archive. */
static bool holds_traces(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && (S_ISDIR(info.st_mode) || cli_is_archive(path));
}

/* What is asked of specs alone; NULL: nothing. */
static const char *asked_of_spec(const cli_arguments *a)
{
    return a->session.config                               ? "--config"
           : a->session.plan                               ? "--plan"
           : a->session.run                                ? "--run"
           : a->session.set_count > 0                      ? "--set"
           : a->session.granularity != (etch_granularity)0 ? "--granularity"
           : a->timeline                                   ? "--timeline"
           : a->report                                     ? "--report"
                                                           : NULL;
}

/* The session of the spec, or one without for traces. */
static etch_session *open_subject(const cli_arguments *arguments, bool traces, etch_status *status)
{
    const etch_session_options none = {.struct_size = sizeof none};
    etch_session *session = NULL;
    if (!traces)
        return cli_open(arguments, status);
    *status = etch_session_open(&none, &session);
    return session;
}

cli_exit cli_simulate(const cli_arguments *arguments)
{
    etch_simulation_options options = arguments->simulation;
    const etch_simulation *result = NULL;
    etch_session *machine = NULL, *session;
    etch_status status = ETCH_OK;
    const bool draws = arguments->timeline || arguments->report;
    const etch_memory_report *memory = NULL;
    cli_exit drawn = CLI_DONE;
    options.struct_size = sizeof options;
    options.nodes = draws;
    const bool traces = holds_traces(arguments->words[0]);
    if (traces && asked_of_spec(arguments))
        return cli_usage_error(arguments->command, "%s is of a spec, and '%s' is a folder of traces",
                               asked_of_spec(arguments), arguments->words[0]);
    if (!traces && arguments->groups)
        return cli_usage_error(arguments->command, "--groups is of a folder of traces");
    if (traces) {
        options.traces = arguments->words[0];
        options.groups = arguments->groups;
    }
    if (arguments->machine) {
        machine = cli_open_machine(arguments, &status);
        if (status != ETCH_OK)
            return cli_close(arguments, machine, status);
        options.machine = machine;
    }
    session = open_subject(arguments, traces, &status);
    if (status == ETCH_OK)
        status = etch_session_simulate(session, &options, &result);
    if (status == ETCH_OK && draws)
        status = etch_session_memory(session, &memory);
    if (status == ETCH_OK && draws)
        drawn = cli_write_pictures(arguments, result, memory);
    if (status != ETCH_OK || drawn != CLI_DONE)
        result = NULL;
    if (result && arguments->format == ETCH_JSON && !print_json(result, options.times))
        status = ETCH_ENOMEM;
    if (result && arguments->format == ETCH_PLAIN)
        print_plain(result);
    etch_session_close(machine);
    const cli_exit closed = cli_close(arguments, session, status);
    return closed == CLI_DONE ? drawn : closed;
}
