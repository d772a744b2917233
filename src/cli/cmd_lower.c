/* etch lower: traces of every rank, and what they add up to. */
#define _POSIX_C_SOURCE 200809L

#include "cli_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- plain ------------------------------------------------------------------------------------------ */

/* A name, a number, and how people say it. */
static void print_number(const char *name, const char *number, const char *human, bool wanted)
{
    if (wanted)
        printf("%-46s %s  (%s)\n", name, number, human);
    else
        printf("%-46s %s\n", name, number);
}

static const char *comm_name(const etch_output_comm *comm)
{
    return comm->receives ? "recv" : etch_collective_name(comm->collective);
}

static void print_stage(const etch_output_stage *stage, bool human)
{
    char name[256];
    print_number("rank_flops(step)", stage->flop, stage->flop_human, human);
    print_number("traffic(step)", stage->bytes, stage->bytes_human, human);
    for (size_t i = 0; i < stage->comm_count; i++) {
        const etch_output_comm *comm = &stage->comm[i];
        snprintf(name, sizeof name, "comm(step, op = %s, axis = %s)", comm_name(comm), comm->axes);
        print_number(name, comm->bytes, comm->bytes_human, human);
    }
}

/* What goes between the memories of device and host. */
static void print_host(const etch_output_stage *stage, bool human)
{
    if (stage->loads > 0)
        print_number("reads(host)", stage->loaded, stage->loaded_human, human);
    if (stage->stores > 0)
        print_number("writes(host)", stage->stored, stage->stored_human, human);
}

static bool same_stage(const etch_output_stage *a, const etch_output_stage *b)
{
    bool same = a->nodes == b->nodes && a->comm_count == b->comm_count && strcmp(a->flop, b->flop) == 0 &&
                strcmp(a->bytes, b->bytes) == 0 && strcmp(a->loaded, b->loaded) == 0 &&
                strcmp(a->stored, b->stored) == 0;
    for (size_t i = 0; same && i < a->comm_count; i++)
        same = a->comm[i].collective == b->comm[i].collective && a->comm[i].receives == b->comm[i].receives &&
               strcmp(a->comm[i].axes, b->comm[i].axes) == 0 &&
               strcmp(a->comm[i].bytes, b->comm[i].bytes) == 0;
    return same;
}

/* Every part of every stage by itself. */
static void print_parts(const etch_output_report *report, bool human)
{
    for (size_t i = 0; i < report->stage_count; i++) {
        const etch_output_stage *stage = &report->stages[i];
        if (report->stage_count > report->part_count)
            printf("stage %u, ", (unsigned)stage->stage);
        printf("part %u: %u nodes on each rank\n", (unsigned)stage->part, (unsigned)stage->nodes);
        print_stage(stage, human);
        print_host(stage, human);
    }
}

/* Stages in a row that do the same are told at once. */
static void print_stages(const etch_output_report *report, bool human)
{
    for (size_t first = 0, end; first < report->stage_count; first = end) {
        const etch_output_stage *stage = &report->stages[first];
        for (end = first + 1; end < report->stage_count && same_stage(stage, &report->stages[end]);)
            end++;
        if (end - first > 1)
            printf("stages %zu-%zu: %u nodes on each rank\n", first, end - 1, (unsigned)stage->nodes);
        else if (report->stage_count > 1)
            printf("stage %zu: %u nodes on each rank\n", first, (unsigned)stage->nodes);
        print_stage(stage, human);
        print_host(stage, human);
    }
}

/* Would ASTRA-sim run on what was written? It takes two ranks and more, all of their traces, a descriptor for
 * each, and no path of groups with "empty" in it. */
static bool can_simulate(const etch_output_report *report)
{
    enum { OTHER_FILES = 64 }; /* as in the script */
    struct rlimit files;
    return report->written && report->ranks > 1 && report->ranks_written == report->ranks &&
           (report->groups == 0 || !strstr(report->folder, "empty")) &&
           (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_max == RLIM_INFINITY ||
            files.rlim_max >= (rlim_t)report->ranks + OTHER_FILES);
}

/* A line that a shell takes as it stands. */
static void print_run(const char *folder)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+,:@%=-";
    const char *here = *folder == '-' ? "./" : "";
    if (folder[strspn(folder, plain)] == '\0') {
        cli_print_field("run", "sh %s%s/astra-sim.sh AstraSim_Analytical_Congestion_Unaware", here, folder);
        return;
    }
    printf("%-9s sh %s'", "run", here);
    for (; *folder; folder++)
        if (*folder == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*folder);
    printf("'/astra-sim.sh AstraSim_Analytical_Congestion_Unaware\n");
}

static void print_bytes(const etch_output_report *report, const etch_output_options *options)
{
    if (!options->zstd)
        cli_print_field("bytes", "%" PRIu64 " in %" PRIu64 " files", report->bytes, report->files);
    else if (!report->written)
        cli_print_field("bytes", "%" PRIu64 " in %" PRIu64 " files, before they are compressed",
                        report->unpacked_bytes, report->files);
    else
        cli_print_field("bytes", "%" PRIu64 " in %" PRIu64 " files, %" PRIu64 " before they were compressed",
                        report->bytes, report->files, report->unpacked_bytes);
}

static void print_plain(const etch_output_report *report, bool human, const etch_output_options *options)
{
    cli_print_field("model", "%s", report->model);
    if (report->config)
        cli_print_field("config", "%s", report->config);
    if (report->run)
        cli_print_field("run", "%s", report->run);
    cli_print_field("plan", "%s", report->plan);
    cli_print_field("ranks", "%u in %u class%s", (unsigned)report->ranks, (unsigned)report->classes,
                    report->classes == 1 ? "" : "es");
    if (report->groups_along > 0)
        cli_print_field("groups", "%u, and %u along dimensions of the network", (unsigned)report->groups,
                        (unsigned)report->groups_along);
    else
        cli_print_field("groups", "%u", (unsigned)report->groups);
    if (report->stage_count == 1)
        cli_print_field("nodes", "%" PRIu64 ", of each rank %u", report->nodes,
                        (unsigned)report->stages[0].nodes);
    else
        cli_print_field("nodes", "%" PRIu64, report->nodes);
    if (report->ranks_written < report->ranks)
        cli_print_field("traces", "of %u of the ranks", (unsigned)report->ranks_written);
    if (options->link)
        cli_print_field("links", "%u of %u traces", (unsigned)report->links, (unsigned)report->ranks_written);
    print_bytes(report, options);
    if (report->written)
        cli_print_field("written", "%s", report->folder);
    if (options->astra_sim && !options->zstd && !options->archive && can_simulate(report))
        print_run(report->folder);
    if (report->part_count > 1)
        print_parts(report, human);
    else
        print_stages(report, human);
}

/* ---- JSON ------------------------------------------------------------------------------------------- */

static json_t *stage_json(const etch_output_stage *stage, bool in_parts, bool *failed)
{
    json_t *object = json_object(), *comm = json_array();
    for (size_t i = 0; i < stage->comm_count; i++) {
        json_t *row = json_object();
        cli_json_set(row, "collective", cli_json_text(comm_name(&stage->comm[i])), failed);
        cli_json_set(row, "axes", cli_json_text(stage->comm[i].axes), failed);
        cli_json_set(row, "bytes", cli_json_text(stage->comm[i].bytes), failed);
        cli_json_set(row, "nodes", json_integer((json_int_t)stage->comm[i].nodes), failed);
        cli_json_append(comm, row, failed);
    }
    if (in_parts) {
        cli_json_set(object, "stage", json_integer((json_int_t)stage->stage), failed);
        cli_json_set(object, "part", json_integer((json_int_t)stage->part), failed);
    }
    cli_json_set(object, "ranks", json_integer((json_int_t)stage->ranks), failed);
    cli_json_set(object, "nodes_per_rank", json_integer((json_int_t)stage->nodes), failed);
    cli_json_set(object, "rank_flops", cli_json_text(stage->flop), failed);
    cli_json_set(object, "traffic", cli_json_text(stage->bytes), failed);
    cli_json_set(object, "comm", comm, failed);
    if (stage->loads + stage->stores > 0) {
        json_t *host = json_object();
        cli_json_set(host, "bytes_loaded", cli_json_text(stage->loaded), failed);
        cli_json_set(host, "loads", json_integer((json_int_t)stage->loads), failed);
        cli_json_set(host, "bytes_stored", cli_json_text(stage->stored), failed);
        cli_json_set(host, "stores", json_integer((json_int_t)stage->stores), failed);
        cli_json_set(object, "host", host, failed);
    }
    return object;
}

static bool print_json(const etch_output_report *report, const etch_output_options *options)
{
    bool failed = false;
    json_t *root = json_object(), *stages = json_array();
    for (size_t i = 0; i < report->stage_count; i++)
        cli_json_append(stages, stage_json(&report->stages[i], report->part_count > 1, &failed), &failed);
    cli_json_set(root, "schema", json_string("etch-lower/1"), &failed);
    cli_json_set(root, "model", cli_json_text(report->model), &failed);
    cli_json_set(root, "config", cli_json_text(report->config), &failed);
    if (report->run)
        cli_json_set(root, "run", cli_json_text(report->run), &failed);
    cli_json_set(root, "plan", cli_json_text(report->plan), &failed);
    cli_json_set(root, "written", cli_json_text(report->written ? report->folder : NULL), &failed);
    cli_json_set(root, "ranks", json_integer((json_int_t)report->ranks), &failed);
    cli_json_set(root, "classes", json_integer((json_int_t)report->classes), &failed);
    cli_json_set(root, "groups", json_integer((json_int_t)report->groups), &failed);
    cli_json_set(root, "nodes", json_integer((json_int_t)report->nodes), &failed);
    cli_json_set(root, "ranks_written", json_integer((json_int_t)report->ranks_written), &failed);
    if (report->groups_along > 0)
        cli_json_set(root, "groups_along", json_integer((json_int_t)report->groups_along), &failed);
    if (options->link)
        cli_json_set(root, "links", json_integer((json_int_t)report->links), &failed);
    cli_json_set(root, "files", json_integer((json_int_t)report->files), &failed);
    const bool is_known = report->written || !options->zstd;
    cli_json_set(root, "bytes", is_known ? json_integer((json_int_t)report->bytes) : json_null(), &failed);
    if (options->zstd)
        cli_json_set(root, "unpacked_bytes", json_integer((json_int_t)report->unpacked_bytes), &failed);
    cli_json_set(root, "stages", stages, &failed);
    return cli_print_json(root) && !failed;
}

static bool choose_groups(const char *text, etch_output_groups *groups)
{
    static const char *const names[] = {[ETCH_OUTPUT_GROUPS_AUTO] = "auto",
                                        [ETCH_OUTPUT_GROUPS_FILE] = "file",
                                        [ETCH_OUTPUT_GROUPS_DIMS] = "dims"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            *groups = (etch_output_groups)i;
            return true;
        }
    return false;
}

/* "-" is stdout, "X.tar" an archive, everything else a folder. */
static cli_exit choose_output(const cli_arguments *a, etch_output_options *options)
{
    const char *path = options->folder;
    if (!path && !options->dry_run)
        return cli_usage_error(a->command, "say where the traces go with -o DIR, or ask with --dry-run");
    const bool to_stdout = path && strcmp(path, "-") == 0;
    if (to_stdout && !options->dry_run && isatty(STDOUT_FILENO))
        return cli_usage_error(a->command, "an archive is no text for a terminal: pipe it, or say -o X.tar");
    if (to_stdout && !options->dry_run && a->format == ETCH_JSON)
        return cli_usage_error(a->command, "the archive goes to stdout: ask for JSON with --dry-run");
    if (!to_stdout && (!path || !cli_is_archive(path)))
        return CLI_DONE;
    options->folder = NULL;
    options->archive = to_stdout ? NULL : path;
    options->stream = to_stdout ? STDOUT_FILENO : 0;
    return CLI_DONE;
}

cli_exit cli_lower(const cli_arguments *arguments)
{
    etch_output_options options = arguments->output;
    const cli_exit unfit = choose_output(arguments, &options);
    if (unfit != CLI_DONE)
        return unfit;
    if (arguments->groups && !choose_groups(arguments->groups, &options.groups))
        return cli_usage_error(arguments->command, "--groups takes one of auto, file, dims, not '%s'",
                               arguments->groups);
    etch_status status;
    etch_session *session = cli_open(arguments, &status);
    options.struct_size = sizeof options;
    options.world = arguments->world;
    const etch_output_report *report;
    if (status == ETCH_OK) {
        cli_catch_signals(session);
        status = etch_session_lower(session, &options, &report);
        cli_forget_signals();
    }
    if (status == ETCH_OK && report && (options.stream == 0 || options.dry_run)) {
        if (arguments->format == ETCH_PLAIN)
            print_plain(report, arguments->human, &options);
        else if (!print_json(report, &options))
            status = ETCH_ENOMEM;
    }
    return cli_close(arguments, session, status);
}
