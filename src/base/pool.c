/* Work on several threads. */
#include "base/base.h"

#include <pthread.h>
#include <stdlib.h>

enum { MAX_THREADS = 256 };

typedef struct pool {
    /* holds the three below */
    pthread_mutex_t lock;
    /* the item that is handed out next */
    size_t next;
    /* the smallest item that failed, `count` when none did */
    size_t failed;
    /* of that item */
    etch_status status;
    size_t count;
    etch_status (*work)(void *data, size_t i);
    void *data;
} pool;

/* Items are handed out in order: when one has failed, all before it were started, and the smallest failure is
 * the same for any number of threads. */
static bool take_item(pool *p, size_t *i)
{
    pthread_mutex_lock(&p->lock);
    bool more = p->next < p->count && p->next < p->failed;
    if (more)
        *i = p->next++;
    pthread_mutex_unlock(&p->lock);
    return more;
}

static void report_failure(pool *p, size_t i, etch_status status)
{
    pthread_mutex_lock(&p->lock);
    if (i < p->failed) {
        p->failed = i;
        p->status = status;
    }
    pthread_mutex_unlock(&p->lock);
}

static void *run_items(void *data)
{
    pool *p = data;
    size_t i;
    while (take_item(p, &i)) {
        etch_status status = p->work(p->data, i);
        if (status != ETCH_OK)
            report_failure(p, i, status);
    }
    return NULL;
}

etch_status etch_parallel(unsigned threads, size_t count, etch_status (*work)(void *data, size_t i),
                          void *data)
{
    pool p = {.failed = count, .status = ETCH_OK, .count = count, .work = work, .data = data};
    pthread_t helpers[MAX_THREADS];
    unsigned running = 0;
    if (pthread_mutex_init(&p.lock, NULL) != 0)
        return ETCH_ENOMEM;
    /* The caller works too. A thread that cannot be started only makes the rest slower. */
    while (running < MAX_THREADS && running + 1 < threads && running + 1 < count) {
        if (pthread_create(&helpers[running], NULL, run_items, &p) != 0)
            break;
        running++;
    }
    run_items(&p);
    for (unsigned i = 0; i < running; i++)
        pthread_join(helpers[i], NULL);
    pthread_mutex_destroy(&p.lock);
    return p.status;
}

/* ---- turns --------------------------------------------------------------------------------------------- */

struct etch_turns {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    /* whose turn it is */
    size_t next;
    bool failed;
};

etch_turns *etch_turns_new(void)
{
    etch_turns *turns = malloc(sizeof *turns);
    if (!turns)
        return NULL;
    turns->next = 0;
    turns->failed = false;
    if (pthread_mutex_init(&turns->lock, NULL) == 0) {
        if (pthread_cond_init(&turns->moved, NULL) == 0)
            return turns;
        pthread_mutex_destroy(&turns->lock);
    }
    free(turns);
    return NULL;
}

void etch_turns_free(etch_turns *turns)
{
    if (!turns)
        return;
    pthread_cond_destroy(&turns->moved);
    pthread_mutex_destroy(&turns->lock);
    free(turns);
}

bool etch_turns_take(etch_turns *turns, size_t i)
{
    pthread_mutex_lock(&turns->lock);
    while (turns->next != i && !turns->failed)
        pthread_cond_wait(&turns->moved, &turns->lock);
    const bool mine = !turns->failed;
    pthread_mutex_unlock(&turns->lock);
    return mine;
}

void etch_turns_end(etch_turns *turns, bool fine)
{
    pthread_mutex_lock(&turns->lock);
    turns->next++;
    turns->failed = turns->failed || !fine;
    pthread_cond_broadcast(&turns->moved);
    pthread_mutex_unlock(&turns->lock);
}
