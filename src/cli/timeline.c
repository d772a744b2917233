/* The run of a step as events for ui.perfetto.dev, in the JSON format of Chrome's traces: a process for each
 * rank that is drawn, a thread for each stream, a counter of memory. An event is a line, so that no tree of
 * all of them is ever in memory; texts are quoted by jansson. Microseconds are written as exact decimals. */
#include "timeline_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Of a process: computations, then a stream of each axes, then receives from each other rank. */
enum { COMPUTE_THREAD = 0 };

typedef struct writing {
    FILE *out;
    const etch_simulation *s;
    bool failed, begun;
    /* of the rank at work: ranks that it receives from, less its own */
    int64_t *peers;
    uint32_t peer_count, peer_room;
} writing;

/* ---- one line ------------------------------------------------------------------------------------------ */

/* A text in quotes. */
static void put_text(writing *w, const char *text)
{
    json_t *value = cli_json_text(text);
    char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    w->failed = w->failed || !quoted;
    fputs(quoted ? quoted : "null", w->out);
    free(quoted);
    json_decref(value);
}

static void begin_line(writing *w, const char *phase, uint32_t process, uint32_t thread)
{
    fprintf(w->out, "%s\n{\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, w->begun ? "," : "", phase,
            process, thread);
    w->begun = true;
}

/* Picoseconds as microseconds. */
static void put_time(writing *w, const char *key, uint64_t ps)
{
    fprintf(w->out, ",\"%s\":%" PRIu64 ".%06" PRIu64, key, ps / 1000000, ps % 1000000);
}

static void name_track(writing *w, const char *what, uint32_t process, uint32_t thread, const char *name)
{
    begin_line(w, "M", process, thread);
    fprintf(w->out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    put_text(w, name);
    fputs("}}", w->out);
    begin_line(w, "M", process, thread);
    fprintf(w->out, ",\"name\":\"%s\",\"args\":{\"sort_index\":%" PRIu32 "}}",
            strcmp(what, "process_name") == 0 ? "process_sort_index" : "thread_sort_index",
            strcmp(what, "process_name") == 0 ? process : thread);
}

/* ---- a rank -------------------------------------------------------------------------------------------- */

static void add_peer(writing *w, int64_t peer)
{
    if (w->peer_count == w->peer_room) {
        const uint32_t room = 2 * w->peer_room + 8;
        int64_t *peers = realloc(w->peers, room * sizeof *peers);
        w->failed = w->failed || !peers;
        if (!peers)
            return;
        w->peers = peers;
        w->peer_room = room;
    }
    w->peers[w->peer_count++] = peer;
}

/* The rank at the other end of a message. */
static int64_t peer_of(const etch_simulation_node *node, uint32_t rank)
{
    if (!node->ring)
        return (int64_t)rank + node->peer;
    const int64_t at = rank / node->stride % node->ring, size = node->ring;
    return (int64_t)rank + ((at + node->peer + size) % size - at) * node->stride;
}

static uint32_t thread_of(writing *w, const cli_drawn *rank, const etch_simulation_node *node)
{
    const int64_t peer = peer_of(node, rank->rank);
    const uint32_t receives = 1 + (uint32_t)w->s->axes_count;
    uint32_t i = 0;
    if (node->work == ETCH_STEP_COMPUTES)
        return COMPUTE_THREAD;
    if (node->work != ETCH_STEP_RECEIVES)
        return w->s->one_stream ? 1 : 1 + node->axes;
    while (i < w->peer_count && w->peers[i] != peer)
        i++;
    if (i == w->peer_count)
        add_peer(w, peer);
    return receives + i;
}

static void put_node(writing *w, const cli_drawn *rank, uint32_t i)
{
    const etch_simulation_node *node = &rank->class->nodes[i];
    begin_line(w, "X", rank->rank, thread_of(w, rank, node));
    put_time(w, "ts", rank->class->begins[i]);
    put_time(w, "dur", rank->class->lasts[i]);
    fputs(",\"name\":", w->out);
    put_text(w, node->name);
    fprintf(w->out, ",\"cat\":\"%s\",\"args\":{\"id\":%" PRIu32 ",\"op\":", node->phase, i);
    put_text(w, node->op);
    if (node->module) {
        fputs(",\"module\":", w->out);
        put_text(w, node->module);
    }
    if (node->microbatch >= 0)
        fprintf(w->out, ",\"microbatch\":%" PRId64, node->microbatch);
    if (node->layer >= 0)
        fprintf(w->out, ",\"layer\":%" PRId64, node->layer);
    if (node->work == ETCH_STEP_COMPUTES)
        fprintf(w->out, ",\"flop\":%" PRIu64, node->flop);
    else if (node->work == ETCH_STEP_SENDS || node->work == ETCH_STEP_RECEIVES)
        fprintf(w->out, ",\"peer\":%" PRId64, peer_of(node, rank->rank));
    fprintf(w->out, ",\"bytes\":%" PRIu64 "}}", node->bytes);
}

static void name_rank(writing *w, const cli_drawn *rank)
{
    char text[128];
    snprintf(text, sizeof text, "rank %" PRIu32 ", stage %" PRIu32, rank->rank, rank->class->stage);
    name_track(w, "process_name", rank->rank, 0, text);
    name_track(w, "thread_name", rank->rank, COMPUTE_THREAD, "compute");
    for (uint32_t i = 0; i < (w->s->one_stream ? 1 : w->s->axes_count); i++)
        name_track(w, "thread_name", rank->rank, 1 + i, w->s->one_stream ? "communication" : w->s->axes[i]);
    for (uint32_t i = 0; i < w->peer_count; i++) {
        snprintf(text, sizeof text, "from rank %" PRId64, w->peers[i]);
        name_track(w, "thread_name", rank->rank, 1 + (uint32_t)w->s->axes_count + i, text);
    }
}

static void put_memory(writing *w, const cli_drawn *rank, const etch_memory_stage *stage)
{
    size_t count;
    cli_memory_point *points = cli_memory_points(rank->class, stage, &count);
    w->failed = w->failed || !points;
    for (size_t i = 0; i < count; i++) {
        begin_line(w, "C", rank->rank, 0);
        put_time(w, "ts", points[i].begins);
        fputs(",\"name\":\"memory\",\"args\":{", w->out);
        for (int k = 0; k < ETCH_MEMORY_KINDS; k++)
            fprintf(w->out, "%s\"%s\":%" PRIu64, k ? "," : "", etch_memory_kind_name((etch_memory_kind)k),
                    points[i].row->bytes[k]);
        fputs("}}", w->out);
    }
    free(points);
}

static void put_rank(writing *w, const cli_drawn *rank, const etch_memory_report *memory)
{
    const etch_memory_stage *stage = cli_memory_stage(memory, rank->class);
    w->peer_count = 0;
    for (uint32_t i = 0; i < rank->class->node_count; i++)
        put_node(w, rank, i);
    name_rank(w, rank);
    if (stage)
        put_memory(w, rank, stage);
}

/* ---- the file ------------------------------------------------------------------------------------------ */

cli_exit cli_write_timeline(const char *path, const etch_simulation *s, const etch_memory_report *memory,
                            const cli_drawn *drawn, size_t count)
{
    cli_out_file file;
    writing w = {.s = s};
    if (!cli_out_begin(&file, path))
        return cli_out_end(&file, false);
    w.out = file.stream;
    fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"schema\":\"etch-timeline/1\",\"model\":", w.out);
    put_text(&w, s->model);
    fputs(",\"plan\":", w.out);
    put_text(&w, s->plan);
    fputs(",\"machine\":", w.out);
    put_text(&w, s->cluster);
    fprintf(w.out, ",\"step_ps\":\"%" PRIu64 "\"},\"traceEvents\":[", s->step);
    for (size_t i = 0; i < count; i++)
        put_rank(&w, &drawn[i], memory);
    fputs("\n]}\n", w.out);
    free(w.peers);
    if (w.failed)
        fprintf(stderr, "etch: %s\n", etch_status_text(ETCH_ENOMEM));
    return cli_out_end(&file, !w.failed);
}
