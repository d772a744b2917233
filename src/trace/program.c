/* Programs of ranks, each held once. */
#include "trace/verify_int.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1 << 12 };
#define MOST_BYTES ((size_t)2 << 30) /* of all programs together */

struct etch_program_table {
    /* holds all below */
    pthread_mutex_t lock;
    etch_rank_program *buckets[BUCKETS];
    size_t bytes, most;
    uint32_t count;
};

etch_program_table *etch_program_table_new(size_t most)
{
    etch_program_table *table = calloc(1, sizeof *table);
    if (table && pthread_mutex_init(&table->lock, NULL) != 0) {
        free(table);
        table = NULL;
    }
    if (table)
        table->most = most ? most : MOST_BYTES;
    return table;
}

void etch_program_table_free(etch_program_table *table)
{
    if (!table)
        return;
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (etch_rank_program *p = table->buckets[i], *next; p; p = next) {
            next = p->next;
            free(p);
        }
    pthread_mutex_destroy(&table->lock);
    free(table);
}

uint32_t etch_program_table_count(const etch_program_table *table)
{
    return table->count;
}

/* ---- one program --------------------------------------------------------------------------------------- */

static size_t rounded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

etch_rank_program *etch_program_new(uint32_t nodes, uint32_t edges, uint32_t comms, bool ids, bool labels)
{
    const size_t n = nodes, words = sizeof(uint32_t);
    const size_t lists = rounded((n * (ids ? 3u : 2u) + (labels ? n : 0) + 1 + edges) * words);
    const size_t bytes = n * sizeof(uint64_t) + comms * sizeof(etch_comm) + lists + rounded(n);
    etch_rank_program *p = calloc(1, sizeof *p + bytes);
    if (!p)
        return NULL;
    p->node_count = nodes;
    p->edge_count = edges;
    p->comm_count = comms;
    p->byte_count = bytes;
    p->values = p->bytes;
    p->comms = (etch_comm *)(void *)(p->values + n);
    p->waits = (uint32_t *)(void *)(p->comms + comms);
    p->first_child = p->waits + n;
    p->children = p->first_child + n + 1;
    p->ids = ids ? p->children + edges : NULL;
    p->labels = labels ? p->children + edges + (ids ? n : 0) : NULL;
    p->work = (uint8_t *)p->waits + lists;
    return p;
}

static uint64_t hash_bytes(const etch_rank_program *p)
{
    uint64_t hash = p->byte_count;
    for (size_t i = 0; i < p->byte_count / 8; i++) {
        hash = (hash ^ p->bytes[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

static bool is_equal(const etch_rank_program *a, const etch_rank_program *b)
{
    return a->hash == b->hash && a->node_count == b->node_count && a->edge_count == b->edge_count &&
           a->comm_count == b->comm_count && !a->ids == !b->ids && a->byte_count == b->byte_count &&
           memcmp(a->bytes, b->bytes, a->byte_count) == 0;
}

/* The equal program, or NULL when `program` has been added. */
static etch_rank_program *find_or_add(etch_program_table *table, etch_rank_program *program)
{
    etch_rank_program **bucket = &table->buckets[program->hash % BUCKETS];
    for (etch_rank_program *p = *bucket; p; p = p->next)
        if (is_equal(p, program))
            return p;
    program->next = *bucket;
    *bucket = program;
    table->bytes += program->byte_count;
    table->count++;
    return NULL;
}

const etch_rank_program *etch_program_intern(etch_program_table *table, etch_rank_program *program)
{
    program->hash = hash_bytes(program);
    pthread_mutex_lock(&table->lock);
    etch_rank_program *equal = find_or_add(table, program);
    const bool fits = table->bytes <= table->most;
    pthread_mutex_unlock(&table->lock);
    if (equal)
        free(program);
    if (!fits)
        return NULL;
    return equal ? equal : program;
}
