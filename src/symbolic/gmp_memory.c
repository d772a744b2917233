/* What GMP takes its memory from.
 *
 * GMP asks functions that are set for the whole process, and takes no NULL from them. So there is one set for
 * all threads, and each thread has an account, or none: with one, memory is blocks of the account, and when
 * there is no more, the guard of the account ends what GMP was about, and frees its blocks. Nothing else is
 * held then: variables of GMP that were under way are not used again. Without an account the functions are
 * those that were set before, so that a program that uses GMP itself notices nothing.
 *
 * These are the only variables of this library that belong to no session: GMP leaves no other way. */
#include <pthread.h>

#include "symbolic/symbolic_int.h"

static void *(*allocate_before)(size_t size);
static void *(*resize_before)(void *at, size_t old_size, size_t size);
static void (*free_before)(void *at, size_t size);
static pthread_once_t installed = PTHREAD_ONCE_INIT;

/* of the thread; NULL: none */
static _Thread_local etch_mem *account;

/* No account while memory is asked for: a trap leaves none behind. */
static void *allocate(size_t size)
{
    etch_mem *mem = account;
    if (!mem)
        return allocate_before(size);
    account = NULL;
    void *at = etch_block_new(mem, size);
    account = mem;
    return at;
}

static void *resize(void *at, size_t old_size, size_t size)
{
    etch_mem *mem = account;
    if (!mem)
        return resize_before(at, old_size, size);
    account = NULL;
    at = etch_block_resize(mem, at, size);
    account = mem;
    return at;
}

static void give_back(void *at, size_t size)
{
    if (account)
        etch_block_free(account, at);
    else
        free_before(at, size);
}

static void install(void)
{
    mp_get_memory_functions(&allocate_before, &resize_before, &free_before);
    mp_set_memory_functions(allocate, resize, give_back);
}

void sym_gmp_begin(etch_mem *mem)
{
    (void)pthread_once(&installed, install);
    account = mem;
}

void sym_gmp_end(void)
{
    account = NULL;
}
