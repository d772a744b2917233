/* The least that any program has to do that writes these files: as many, of the same names and sizes, from
 * one buffer in memory, by so many threads.
 *
 *   plain_write LIST FOLDER THREADS    prints elapsed seconds; LIST has lines "SIZE NAME", FOLDER is made
 */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 20, MOST_THREADS = 256 };

typedef struct entry {
    char *name;
    size_t size;
} entry;

typedef struct job {
    entry *files;
    size_t count;
    int folder;
    const char *piece;
    atomic_size_t next;
} job;

static void stop(const char *what)
{
    perror(what);
    exit(1);
}

/* Lines "SIZE NAME". */
static void read_list(const char *path, job *j)
{
    FILE *list = fopen(path, "r");
    char name[256];
    size_t size, capacity = 0;
    if (!list)
        stop(path);
    while (fscanf(list, "%zu %255s", &size, name) == 2) {
        if (j->count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            j->files = realloc(j->files, capacity * sizeof *j->files);
            if (!j->files)
                stop("memory");
        }
        j->files[j->count++] = (entry){strdup(name), size};
    }
    fclose(list);
}

static void *write_files(void *data)
{
    job *j = data;
    for (size_t i; (i = atomic_fetch_add(&j->next, 1)) < j->count;) {
        const int file = openat(j->folder, j->files[i].name, O_WRONLY | O_CREAT | O_EXCL, 0666);
        size_t left = j->files[i].size;
        while (file >= 0 && left > 0) {
            const ssize_t put = write(file, j->piece, left < PIECE ? left : PIECE);
            if (put < 0)
                stop(j->files[i].name);
            left -= (size_t)put;
        }
        if (file < 0 || close(file) != 0)
            stop(j->files[i].name);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    job j = {.folder = -1};
    pthread_t threads[MOST_THREADS];
    struct timespec start, end;
    const int count = argc == 4 ? atoi(argv[3]) : 0;
    if (count < 1 || count > MOST_THREADS) {
        fputs("usage: plain_write LIST FOLDER THREADS\n", stderr);
        return 2;
    }
    read_list(argv[1], &j);
    char *piece = malloc(PIECE);
    if (!piece)
        stop("memory");
    memset(piece, 'x', PIECE);
    j.piece = piece;
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (mkdir(argv[2], 0777) != 0 || (j.folder = open(argv[2], O_RDONLY | O_DIRECTORY)) < 0)
        stop(argv[2]);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, write_files, &j) != 0)
            stop("thread");
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.6f\n", (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
    return 0;
}
