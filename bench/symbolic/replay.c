#define _POSIX_C_SOURCE 200809L

#include "replay.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void fail(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s\n", path, why);
    exit(EXIT_FAILURE);
}

static void *grow(void *old, size_t count, size_t size)
{
    /* at every power of two */
    if (count & (count - 1))
        return old;
    void *grown = realloc(old, (count ? 2 * count : 1) * size);
    if (!grown)
        fail("replay", "memory is out");
    return grown;
}

static void read_tokens(workload *w, statement *s, char **rest)
{
    for (char *word; (word = strtok_r(NULL, " \n", rest)) != NULL;) {
        s->tokens = grow(s->tokens, s->count, sizeof *s->tokens);
        s->tokens[s->count++] = (token){word[0], word[1] ? strtoll(word + 1, NULL, 10) : 0};
        w->divides |= word[0] == '/';
    }
}

/* var NAME LEAST STEPS FACTOR */
static void read_var(workload *w, const char *path, char **rest)
{
    char *words[4];
    for (int i = 0; i < 4; i++)
        if ((words[i] = strtok_r(NULL, " \n", rest)) == NULL || w->var_count == WORKLOAD_VARS)
            fail(path, "a variable that makes no sense, or too many of them");
    w->vars[w->var_count++] = (variable){strdup(words[0]), strtoll(words[1], NULL, 10),
                                         strtoull(words[2], NULL, 10), strtoull(words[3], NULL, 10)};
}

static void read_line(workload *w, const char *path, char *line)
{
    char *rest, *word = strtok_r(line, " \n", &rest);
    if (!word)
        return;
    if (strcmp(word, "var") == 0) {
        read_var(w, path, &rest);
        return;
    }
    if (strcmp(word, "begin") == 0) {
        w->begin = w->count;
        return;
    }
    statement s = {.kind = word[0]};
    if (s.kind == 'l') {
        word = strtok_r(NULL, " \n", &rest);
        s.slot = word ? (uint32_t)strtoul(word, NULL, 10) : 0;
        w->result = s.slot;
        if (s.slot >= w->slot_count)
            w->slot_count = s.slot + 1;
    } else if (s.kind != 'c') {
        fail(path, "a statement of an unknown kind");
    }
    read_tokens(w, &s, &rest);
    w->statements = grow(w->statements, w->count, sizeof *w->statements);
    w->statements[w->count++] = s;
}

workload workload_read(const char *path)
{
    workload w = {0};
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;
    if (!file)
        fail(path, "cannot be read");
    while (getline(&line, &capacity, file) >= 0)
        read_line(&w, path, line);
    free(line);
    fclose(file);
    if (w.count == 0)
        fail(path, "no statements");
    return w;
}

void workload_free(workload *w)
{
    for (uint32_t i = 0; i < w->count; i++)
        free(w->statements[i].tokens);
    for (uint32_t i = 0; i < w->var_count; i++)
        free(w->vars[i].name);
    free(w->statements);
}

double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int64_t configuration(const variable *var, uint64_t i)
{
    uint64_t mixed = (i + 1) * var->factor * UINT64_C(0x9e3779b97f4a7c15);
    return var->least << ((mixed >> 40) % var->steps);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double measure(double budget, double batch, double (*round)(void *data), void *data)
{
    enum { MOST = 2000 };
    double times[MOST];
    size_t count = 0;
    double start = cpu_seconds();
    while (count < MOST && (count < 3 || cpu_seconds() - start < budget))
        times[count++] = round(data);
    qsort(times, count, sizeof *times, by_value);
    return times[count / 2] / batch;
}
