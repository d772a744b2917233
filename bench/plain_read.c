/* Reads every file of a folder and does nothing with the bytes: the least that any reader has to do. Prints
 * the seconds that it took. One thread lists the names; then each takes the next one until all are read.
 *
 *     plain_read FOLDER THREADS
 */
#define _DEFAULT_SOURCE

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 17, MOST_THREADS = 256 };

typedef struct reading {
    int folder;
    char **names;
    size_t count;
    atomic_size_t next;
    atomic_bool failed;
} reading;

static void *read_files(void *data)
{
    reading *r = data;
    char *buffer = malloc(PIECE);
    for (size_t i; buffer && (i = atomic_fetch_add(&r->next, 1)) < r->count;) {
        const int file = openat(r->folder, r->names[i], O_RDONLY);
        ssize_t got;
        while ((got = read(file, buffer, PIECE)) > 0)
            ;
        if (got < 0)
            atomic_store(&r->failed, true);
        close(file);
    }
    if (!buffer)
        atomic_store(&r->failed, true);
    free(buffer);
    return NULL;
}

static void list_names(reading *r, DIR *stream)
{
    const struct dirent *entry;
    size_t room = 0;
    while ((entry = readdir(stream)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        if (r->count == room) {
            room = room ? 2 * room : 1024;
            r->names = realloc(r->names, room * sizeof *r->names);
        }
        if (!r->names || !(r->names[r->count++] = strdup(entry->d_name)))
            exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    reading r = {0};
    pthread_t threads[MOST_THREADS];
    const double begin = now();
    DIR *stream = argc == 3 ? opendir(argv[1]) : NULL;
    const int wanted = argc == 3 ? atoi(argv[2]) : 0;
    if (!stream || wanted < 1 || wanted > MOST_THREADS)
        return 2;
    r.folder = dirfd(stream);
    list_names(&r, stream);
    for (int i = 0; i < wanted; i++)
        if (pthread_create(&threads[i], NULL, read_files, &r) != 0)
            return 1;
    for (int i = 0; i < wanted; i++)
        pthread_join(threads[i], NULL);
    printf("%.6f\n", now() - begin);
    return atomic_load(&r.failed) ? 1 : 0;
}
