/* What the processes of a world say to each other. The first byte of a message says what it is:
 *
 *     D  bytes for whoever waits for them
 *     E  from a process to process 0, once, its last: its status, the code of its first error, and lines: the
 *        error and what would help
 *     S  from process 0, once: stop, or you may go; the status of all */
#define _POSIX_C_SOURCE 200809L

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DATA = 'D', END = 'E', STOP = 'S' };

/* What is known of another process. */
typedef struct peer {
    /* the message that came last, from malloc */
    char *bytes;
    size_t length, room;
    /* it has said E; it was told S, or has told it */
    bool ended, stopped;
    /* of its last message */
    etch_status status;
} peer;

struct etch_world {
    etch_transport transport;
    /* by rank */
    peer *peers;
    /* a message on its way out, from malloc */
    char *out;
    size_t out_room;
};

etch_world *etch_world_new(const etch_transport *transport)
{
    etch_world *world = calloc(1, sizeof *world);
    peer *peers = calloc(transport->size, sizeof *peers);
    if (!world || !peers) {
        free(world);
        free(peers);
        return NULL;
    }
    *world = (etch_world){.transport = *transport, .peers = peers};
    return world;
}

void etch_world_free(etch_world *world)
{
    if (!world)
        return;
    for (unsigned i = 0; i < world->transport.size; i++)
        free(world->peers[i].bytes);
    free(world->peers);
    free(world->out);
    free(world);
}

unsigned etch_world_rank(const etch_world *world)
{
    return world ? world->transport.rank : 0;
}

unsigned etch_world_size(const etch_world *world)
{
    return world ? world->transport.size : 1;
}

/* ---- messages ------------------------------------------------------------------------------------------ */

static bool make_room(char **bytes, size_t *room, size_t length)
{
    if (length <= *room)
        return true;
    char *wider = realloc(*bytes, length + length / 2);
    if (!wider)
        return false;
    *bytes = wider;
    *room = length + length / 2;
    return true;
}

static etch_status fail(etch_diags *diags, unsigned other, const char *why)
{
    if (diags)
        etch_error(diags, ETCH_E_WORLD, (etch_span){0, 0}, "process %u cannot be reached: %s", other, why);
    return ETCH_EIO;
}

static etch_status send(etch_world *w, etch_diags *diags, unsigned to, char kind, const void *bytes,
                        size_t length)
{
    if (!make_room(&w->out, &w->out_room, length + 1))
        return ETCH_ENOMEM;
    *w->out = kind;
    if (length > 0)
        memcpy(w->out + 1, bytes, length);
    const char *why = w->transport.send(w->transport.data, to, w->out, length + 1);
    return why ? fail(diags, to, why) : ETCH_OK;
}

etch_status etch_world_send(etch_world *w, etch_diags *diags, unsigned to, const void *bytes, size_t length)
{
    return send(w, diags, to, DATA, bytes, length);
}

etch_status etch_world_send_all(etch_world *w, etch_diags *diags, const void *bytes, size_t length)
{
    etch_status status = ETCH_OK;
    for (unsigned i = 1; status == ETCH_OK && i < w->transport.size; i++)
        status = send(w, diags, i, DATA, bytes, length);
    return status;
}

/* Takes the next message of a process, if it is there. */
static etch_status look(etch_world *w, etch_diags *diags, unsigned from, bool *there)
{
    const etch_transport *t = &w->transport;
    peer *p = &w->peers[from];
    size_t length;
    const char *why = t->probe(t->data, from, there, &length);
    if (why)
        return fail(diags, from, why);
    if (!*there)
        return ETCH_OK;
    if (!make_room(&p->bytes, &p->room, length + 1))
        return ETCH_ENOMEM;
    why = t->receive(t->data, from, p->bytes, length);
    if (why || length == 0)
        return fail(diags, from, why ? why : "a message is empty");
    p->length = length;
    p->bytes[length] = '\0';
    p->ended = p->ended || *p->bytes == END;
    p->stopped = p->stopped || *p->bytes == STOP;
    if (*p->bytes != DATA)
        p->status = (etch_status)atoi(p->bytes + 1);
    return ETCH_OK;
}

/* Nothing is there yet: leaves the processor to who has work, the longer the longer nothing comes. */
static void wait_a_little(unsigned times)
{
    enum { SHORTEST = 10000, DOUBLINGS = 7 }; /* nanoseconds */
    nanosleep(&(struct timespec){0, SHORTEST << (times / 8 < DOUBLINGS ? times / 8 : DOUBLINGS)}, NULL);
}

/* ---- endings ------------------------------------------------------------------------------------------- */

void etch_world_stop(etch_world *w, etch_status status)
{
    char text[12];
    snprintf(text, sizeof text, "%d", (int)status);
    for (unsigned i = 1; i < w->transport.size; i++) {
        peer *p = &w->peers[i];
        if (!p->stopped)
            (void)send(w, NULL, i, STOP, text, strlen(text)); /* who cannot be reached does not wait */
        p->stopped = true;
    }
}

bool etch_world_is_stopped(etch_world *w)
{
    bool there = false;
    peer *first = &w->peers[0];
    if (w->transport.rank > 0 && !first->stopped && look(w, NULL, 0, &there) != ETCH_OK)
        return true;
    return first->stopped;
}

/* The next line of a text, which it ends; NULL: there is none. */
static char *next_line(char **at)
{
    char *line = *at, *end = line ? strchr(line, '\n') : NULL;
    if (!end)
        return NULL;
    *end = '\0';
    *at = end + 1;
    return line;
}

/* Says what another process has said at its end. */
static void repeat(const etch_world *w, etch_diags *diags, unsigned from)
{
    char *at = w->peers[from].bytes + 1;
    char *code = strchr(at, ' ');
    if (!diags || !next_line(&at))
        return;
    const char *text = next_line(&at);
    if (!text || !*text)
        return;
    etch_diag *diag = etch_error(diags, (etch_code)(code ? atoi(code) : 0), (etch_span){0, 0}, "%s", text);
    for (const char *help; (help = next_line(&at)) != NULL;)
        etch_help(diag, "%s", help);
    etch_note(diag, (etch_span){0, 0}, "said by process %u of %u", from, w->transport.size);
}

static etch_status end_of_peer(etch_world *w, etch_diags *diags, unsigned from)
{
    const etch_status status = w->peers[from].status;
    if (status == ETCH_OK) {
        etch_error(diags, ETCH_E_WORLD, (etch_span){0, 0}, "process %u has ended before the others", from);
        return ETCH_EINTERNAL;
    }
    repeat(w, diags, from);
    return status;
}

etch_status etch_world_receive(etch_world *w, etch_diags *diags, unsigned from, const atomic_int *cancel,
                               const char **bytes, size_t *length)
{
    peer *p = &w->peers[from];
    if (p->ended)
        return end_of_peer(w, diags, from);
    for (unsigned times = 0;; times++) {
        bool there = false;
        const etch_status status = p->stopped && from == 0 ? ETCH_OK : look(w, diags, from, &there);
        if (status != ETCH_OK)
            return status;
        if (there && *p->bytes == DATA) {
            *bytes = p->bytes + 1;
            *length = p->length - 1;
            return ETCH_OK;
        }
        if (there && *p->bytes == END)
            return end_of_peer(w, diags, from);
        if (p->stopped && from == 0)
            return ETCH_ELIMIT;
        if (cancel && atomic_load(cancel) != 0) {
            if (w->transport.rank > 0)
                return ETCH_ELIMIT;
            etch_world_stop(w, ETCH_ELIMIT);
        }
        wait_a_little(times);
    }
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* What process 0 is told at the end of another. */
static void put_end(char *text, size_t size, const etch_diags *diags, etch_status status)
{
    const etch_diag *error = diags ? etch_first_error(etch_diags_first(diags)) : NULL;
    int length = snprintf(text, size, "%d %u\n%.1000s\n", (int)status, error ? (unsigned)error->code : 0,
                          error ? error->message : "");
    for (const etch_label *help = error ? error->helps : NULL; help && length < (int)size / 2;
         help = help->next)
        length += snprintf(text + length, size - (size_t)length, "%.1000s\n", help->message);
}

static etch_status leave(etch_world *w, const etch_diags *diags, etch_status status)
{
    enum { MOST_BYTES = 4096 };
    char text[MOST_BYTES];
    peer *first = &w->peers[0];
    put_end(text, sizeof text, diags, status);
    if (send(w, NULL, 0, END, text, strlen(text)) != ETCH_OK)
        return status;
    for (unsigned times = 0; !first->stopped; times++) {
        bool there;
        if (look(w, NULL, 0, &there) != ETCH_OK)
            return status;
        if (!there)
            wait_a_little(times);
    }
    return first->status;
}

/* Waits until a process has ended, whatever it sends before that. */
static etch_status wait_for(etch_world *w, etch_diags *diags, unsigned other)
{
    for (unsigned times = 0; !w->peers[other].ended; times++) {
        bool there;
        const etch_status status = look(w, diags, other, &there);
        if (status != ETCH_OK)
            return status;
        if (there)
            times = 0;
        else
            wait_a_little(times);
    }
    return ETCH_OK;
}

void etch_world_halt(etch_world *w, etch_status status)
{
    if (!w || w->transport.rank > 0)
        return;
    etch_world_stop(w, status);
    for (unsigned i = 1; i < w->transport.size; i++)
        (void)wait_for(w, NULL, i); /* who cannot be reached does nothing any more */
}

etch_status etch_world_gather(etch_world *w, etch_diags *diags, etch_status status)
{
    if (w->transport.rank > 0)
        return leave(w, diags, status);
    if (status != ETCH_OK)
        etch_world_stop(w, status);
    for (unsigned i = 1; i < w->transport.size; i++) {
        const bool is_first = status == ETCH_OK;
        const etch_status ended = wait_for(w, is_first ? diags : NULL, i);
        if (is_first)
            status = ended;
        if (status == ETCH_OK && w->peers[i].status != ETCH_OK)
            status = end_of_peer(w, diags, i);
    }
    etch_world_stop(w, status);
    return status;
}
