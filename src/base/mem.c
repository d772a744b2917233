/* Accounts, guards, arenas and blocks.
 *
 * An arena is a list of zeroed chunks, each given away from its low end. Chunks double up to 64 KB and have
 * the size of a huge page from then on: the kernel gives such a page at once, where small ones cost a fault
 * each, a quarter of the time of a short run. A large object gets a chunk of its own. With ETCH_ARENA_PLAIN
 * every object is a chunk of exactly its size, so that a sanitizer sees every byte that is used past an
 * object's end. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include "base/base.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 16, HUGE_PAGE = 2 << 20 };

/* The header of a chunk; its objects follow. */
typedef struct chunk {
    struct chunk *next;
    /* with the header: what the account was charged; of a spare one: what is to be zeroed */
    size_t size;
} chunk;

static_assert(sizeof(chunk) % ALIGNMENT == 0, "objects behind the header must be aligned");

#ifdef ETCH_ARENA_PLAIN
enum { FIRST_CHUNK = 0, LAST_DOUBLED = 0, LAST_CHUNK = 0 };
#else
enum { FIRST_CHUNK = 4 << 10, LAST_DOUBLED = 64 << 10, LAST_CHUNK = HUGE_PAGE - sizeof(chunk) };
#endif

struct etch_arena {
    etch_mem *mem;
    /* the arenas of one account, in the order of their serials */
    etch_arena *older, *newer;
    uint64_t serial;
    chunk *chunks;
    /* what is left of the newest small chunk */
    char *at;
    size_t left;
    size_t chunk_size;
};

/* The header of a block of its own; the bytes of the caller follow. */
typedef struct block {
    /* the blocks of one account, in the order of their serials */
    struct block *older, *newer;
    uint64_t serial;
    /* with the header */
    size_t size;
} block;

static_assert(sizeof(block) % ALIGNMENT == 0, "bytes behind the header must be aligned");

typedef struct guard_frame {
    jmp_buf place;
    struct guard_frame *outer;
    /* arenas and blocks from this one on began under the guard */
    uint64_t first_serial;
} guard_frame;

struct etch_mem {
    size_t limit, used, fail_after;
    /* of the next arena or block */
    uint64_t serial;
    etch_arena *newest;
    block *newest_block;
    /* a huge page that was given back: one arena often follows another; or NULL */
    chunk *spare;
    guard_frame *guard;
    etch_status trapped;
};

etch_mem *etch_mem_new(size_t limit)
{
    etch_mem *mem = calloc(1, sizeof *mem);
    if (mem)
        mem->limit = limit;
    return mem;
}

/* Frees the arenas and blocks whose serial is at least `first`. */
static void free_from(etch_mem *mem, uint64_t first)
{
    while (mem->newest && mem->newest->serial >= first)
        etch_arena_free(mem->newest);
    while (mem->newest_block && mem->newest_block->serial >= first)
        etch_block_free(mem, mem->newest_block + 1);
}

void etch_mem_free(etch_mem *mem)
{
    if (!mem)
        return;
    free_from(mem, 0);
    if (mem->spare)
        (void)munmap(mem->spare, HUGE_PAGE);
    free(mem);
}

size_t etch_mem_used(const etch_mem *mem)
{
    return mem->used;
}

void etch_mem_fail_after(etch_mem *mem, size_t n)
{
    mem->fail_after = n;
}

size_t etch_mem_limit(const etch_mem *mem)
{
    return mem->limit;
}

etch_status etch_guard(etch_mem *mem, etch_status (*body)(void *data), void *data)
{
    guard_frame frame = {.outer = mem->guard, .first_serial = mem->serial};
    etch_status status;
    mem->guard = &frame;
    if (setjmp(frame.place) == 0) {
        status = body(data);
    } else {
        status = mem->trapped;
        free_from(mem, frame.first_serial);
    }
    mem->guard = frame.outer;
    return status;
}

void etch_trap(etch_mem *mem, etch_status status)
{
    if (!mem->guard)
        abort(); /* a bug of the caller: there is nowhere to go */
    mem->trapped = status;
    longjmp(mem->guard->place, 1);
}

static char *map(size_t size)
{
    char *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return place == MAP_FAILED ? NULL : place;
}

/* Zeroed memory of the size of a huge page, and where one may lie: newer kernels choose such a place. */
static void *take_huge_page(etch_mem *mem)
{
    chunk *spare = mem->spare;
    if (spare) {
        mem->spare = NULL;
        return memset(spare, 0, spare->size);
    }
    char *place = map(HUGE_PAGE);
    if (place && (uintptr_t)place % HUGE_PAGE != 0) {
        (void)munmap(place, HUGE_PAGE);
        if (!(place = map(2 * HUGE_PAGE)))
            return NULL;
        const size_t before = (HUGE_PAGE - (uintptr_t)place % HUGE_PAGE) % HUGE_PAGE;
        if (before > 0)
            (void)munmap(place, before);
        (void)munmap(place + before + HUGE_PAGE, HUGE_PAGE - before);
        place += before;
    }
#ifdef MADV_HUGEPAGE
    if (place)
        (void)madvise(place, HUGE_PAGE, MADV_HUGEPAGE); /* a kernel without them gives small ones */
#endif
    return place;
}

/* A trap when the account may not hold `size` bytes more, or a test wants this request to fail. */
static void ask_for(etch_mem *mem, size_t size)
{
    if (size > mem->limit - mem->used)
        etch_trap(mem, ETCH_ELIMIT);
    if (mem->fail_after > 0 && --mem->fail_after == 0)
        etch_trap(mem, ETCH_ENOMEM);
}

/* `size` zeroed bytes charged to the account; a trap when there are none. */
static void *mem_take(etch_mem *mem, size_t size)
{
    ask_for(mem, size);
    void *taken = size == HUGE_PAGE ? take_huge_page(mem) : calloc(1, size);
    if (!taken)
        etch_trap(mem, ETCH_ENOMEM);
    mem->used += size;
    return taken;
}

static void mem_give_back(etch_mem *mem, void *taken, size_t size)
{
    mem->used -= size;
    if (size == HUGE_PAGE)
        (void)munmap(taken, HUGE_PAGE);
    else
        free(taken);
}

/* `at`: where the arena's newest small chunk is free from. */
static void chunk_give_back(etch_mem *mem, chunk *c, const char *at)
{
    const size_t used = at > (char *)c && at <= (char *)c + c->size ? (size_t)(at - (char *)c) : c->size;
    if (c->size != HUGE_PAGE || mem->spare) {
        mem_give_back(mem, c, c->size);
        return;
    }
    mem->used -= c->size;
    mem->spare = c;
    c->size = used;
}

/* A block that stands in a new place: its neighbours learn of it. */
static void *block_placed(etch_mem *mem, block *b)
{
    if (b->older)
        b->older->newer = b;
    if (b->newer)
        b->newer->older = b;
    else
        mem->newest_block = b;
    return b + 1;
}

/* The size with the header. */
static size_t block_total(etch_mem *mem, size_t size)
{
    if (size > SIZE_MAX - sizeof(block))
        etch_trap(mem, ETCH_ELIMIT);
    return sizeof(block) + size;
}

void *etch_block_new(etch_mem *mem, size_t size)
{
    const size_t total = block_total(mem, size);
    ask_for(mem, total);
    block *b = malloc(total);
    if (!b)
        etch_trap(mem, ETCH_ENOMEM);
    mem->used += total;
    *b = (block){.older = mem->newest_block, .serial = mem->serial++, .size = total};
    return block_placed(mem, b);
}

void *etch_block_resize(etch_mem *mem, void *at, size_t size)
{
    block *b = (block *)at - 1;
    const size_t before = b->size, total = block_total(mem, size);
    ask_for(mem, total > before ? total - before : 0);
    b = realloc(b, total);
    if (!b)
        etch_trap(mem, ETCH_ENOMEM);
    mem->used = mem->used - before + total;
    b->size = total;
    return block_placed(mem, b);
}

void etch_block_free(etch_mem *mem, void *at)
{
    block *b = (block *)at - 1;
    if (b->older)
        b->older->newer = b->newer;
    if (b->newer)
        b->newer->older = b->older;
    else
        mem->newest_block = b->older;
    mem->used -= b->size;
    free(b);
}

etch_arena *etch_arena_new(etch_mem *mem)
{
    etch_arena *arena = mem_take(mem, sizeof *arena);
    arena->mem = mem;
    arena->serial = mem->serial++;
    arena->chunk_size = FIRST_CHUNK;
    arena->older = mem->newest;
    if (mem->newest)
        mem->newest->newer = arena;
    mem->newest = arena;
    return arena;
}

void etch_arena_free(etch_arena *arena)
{
    if (!arena)
        return;
    etch_mem *mem = arena->mem;
    for (chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        chunk_give_back(mem, c, arena->at);
    }
    if (arena->older)
        arena->older->newer = arena->newer;
    if (arena->newer)
        arena->newer->older = arena->older;
    else
        mem->newest = arena->older;
    mem_give_back(mem, arena, sizeof *arena);
}

etch_mem *etch_arena_mem(const etch_arena *arena)
{
    return arena->mem;
}

/* A new chunk with room for `size` bytes; returns that room. */
static char *chunk_new(etch_arena *arena, size_t size)
{
    if (size > SIZE_MAX - sizeof(chunk))
        etch_trap(arena->mem, ETCH_ELIMIT);
    size_t total = sizeof(chunk) + size;
    chunk *c = mem_take(arena->mem, total);
    c->size = total;
    c->next = arena->chunks;
    arena->chunks = c;
    return (char *)(c + 1);
}

/* Begins the next small chunk, unless the limit is too near for more than the object at hand. */
static bool begin_chunk(etch_arena *arena, size_t size)
{
    const etch_mem *mem = arena->mem;
    if (size > arena->chunk_size / 4 || arena->chunk_size + sizeof(chunk) > mem->limit - mem->used)
        return false;
    arena->at = chunk_new(arena, arena->chunk_size);
    arena->left = arena->chunk_size;
    if (arena->chunk_size != LAST_CHUNK)
        arena->chunk_size = arena->chunk_size == LAST_DOUBLED ? LAST_CHUNK : arena->chunk_size * 2;
    return true;
}

void *etch_alloc(etch_arena *arena, size_t size)
{
    if (size == 0)
        size = 1;
    size_t padding = (ALIGNMENT - size % ALIGNMENT) % ALIGNMENT;
    bool fits = padding <= arena->left && size <= arena->left - padding;
    if (!fits && !begin_chunk(arena, size))
        return chunk_new(arena, size);
    void *object = arena->at;
    arena->at += size + padding;
    arena->left -= size + padding;
    return object;
}

void *etch_alloc_array(etch_arena *arena, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        etch_trap(arena->mem, ETCH_ELIMIT);
    return etch_alloc(arena, count * size);
}

void *etch_alloc_grown(etch_arena *arena, void *object, size_t before, size_t after)
{
    const size_t old = (before + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const size_t added = (after + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT - old;
    if (before > 0 && (char *)object + old == arena->at && added <= arena->left) {
        arena->at += added;
        arena->left -= added;
        return object;
    }
    void *grown = etch_alloc(arena, after);
    if (before > 0)
        memcpy(grown, object, before);
    return grown;
}

char *etch_copy_text(etch_arena *arena, const char *text, size_t length)
{
    if (length == SIZE_MAX)
        etch_trap(arena->mem, ETCH_ELIMIT);
    char *copy = etch_alloc(arena, length + 1);
    if (length > 0)
        memcpy(copy, text, length);
    return copy;
}

char *etch_copy_string(etch_arena *arena, const char *text)
{
    return text ? etch_copy_text(arena, text, strlen(text)) : NULL;
}

char *etch_text(etch_arena *arena, const char *format, ...)
{
    char first[128]; /* most texts fit, and are made once */
    va_list args;
    va_start(args, format);
    int length = vsnprintf(first, sizeof first, format, args);
    va_end(args);
    if (length < 0)
        etch_trap(arena->mem, ETCH_ELIMIT);
    if ((size_t)length < sizeof first)
        return etch_copy_text(arena, first, (size_t)length);
    char *text = etch_alloc(arena, (size_t)length + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}
