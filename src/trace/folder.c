/* Which traces there are: <name>.<rank>.et in a folder. */
#define _POSIX_C_SOURCE 200809L

#include "trace/verify_int.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What ASTRA-sim is told of remote memory, as `etch lower --astra-sim` calls it. */
#define MEMORY_FILE "memory.json"

enum { MOST_RANKS = 1 << 20 };

typedef struct found {
    /* interned */
    const char *name;
    uint32_t rank;
    bool is_packed;
} found;

typedef struct survey {
    etch_arena *arena;
    etch_diags *diags;
    DIR *stream;
    const char *folder;
    /* the name of the traces; NULL: whatever is there */
    const char *wanted;
    etch_names *names;
    ETCH_VEC(found) traces;
    /* a file that would be a trace under another number */
    const char *odd;
    bool has_groups, has_manifest, has_memory, too_large;
} survey;

/* ---- looking ------------------------------------------------------------------------------------------- */

/* Takes "<name>.<rank>.et", or ".et.zst", apart. A rank that is padded, or too large, makes no trace. */
static void add_file(survey *s, const char *file)
{
    bool is_packed;
    const size_t length = etch_chakra_stem(file, &is_packed);
    size_t digits = 0;
    while (digits < length && file[length - digits - 1] >= '0' && file[length - digits - 1] <= '9')
        digits++;
    const size_t name = length - digits;
    if (digits == 0 || name < 2 || file[name - 1] != '.')
        return;
    if (s->wanted && (strncmp(s->wanted, file, name - 1) != 0 || s->wanted[name - 1] != '\0'))
        return;
    if ((digits > 1 && file[name] == '0') || digits > 10) {
        s->odd = etch_copy_text(s->arena, file, strlen(file));
        return;
    }
    const uint64_t rank = strtoull(file + name, NULL, 10);
    if (rank >= MOST_RANKS)
        s->too_large = true;
    else
        ETCH_PUSH(s->arena, &s->traces,
                  ((found){etch_name(s->names, file, name - 1), (uint32_t)rank, is_packed}));
}

static etch_status refuse_folder(const survey *s, int error)
{
    etch_error(s->diags, ETCH_E_VERIFY_UNREADABLE, (etch_span){0, 0}, "'%s' cannot be read: %s", s->folder,
               strerror(error));
    return ETCH_EIO;
}

static etch_status read_entries(void *data)
{
    survey *s = data;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(s->stream);
        if (!entry)
            return errno == 0 ? ETCH_OK : refuse_folder(s, errno);
        if (strcmp(entry->d_name, ETCH_CHAKRA_GROUP_FILE) == 0)
            s->has_groups = true;
        if (strcmp(entry->d_name, ETCH_MANIFEST_FILE) == 0)
            s->has_manifest = true;
        if (strcmp(entry->d_name, MEMORY_FILE) == 0)
            s->has_memory = true;
        add_file(s, entry->d_name);
    }
}

static etch_status read_folder(survey *s)
{
    s->stream = opendir(s->folder);
    if (!s->stream)
        return refuse_folder(s, errno);
    /* The stream is not the arena's: it must be closed also when memory runs out. */
    etch_status status = etch_guard(etch_arena_mem(s->arena), read_entries, s);
    closedir(s->stream);
    return status;
}

/* ---- choosing ------------------------------------------------------------------------------------------ */

static int by_name_and_rank(const void *a, const void *b)
{
    const found *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (order != 0 || x->rank != y->rank)
        return order != 0 ? order : x->rank < y->rank ? -1 : 1;
    return x->is_packed - y->is_packed;
}

static etch_status refuse_nothing(const survey *s)
{
    etch_diag *diag =
        etch_error(s->diags, ETCH_E_VERIFY_NO_TRACES, (etch_span){0, 0},
                   "there are no traces '%s/%s.<rank>.et'", s->folder, s->wanted ? s->wanted : "<name>");
    if (s->odd)
        etch_note(diag, (etch_span){0, 0}, "'%s' is none: ranks are written 0, 1, ..., 9, 10 without padding",
                  s->odd);
    return ETCH_EINPUT;
}

static etch_status refuse_several(const survey *s, const char *one, const char *other)
{
    etch_diag *diag = etch_error(s->diags, ETCH_E_VERIFY_PREFIXES, (etch_span){0, 0},
                                 "'%s' holds traces of several names: '%s' and '%s'", s->folder, one, other);
    etch_help(diag, "say which: etch verify %s/%s", s->folder, one);
    return ETCH_EINPUT;
}

static etch_status refuse_both(const survey *s, const found *of)
{
    etch_diag *diag = etch_error(s->diags, ETCH_E_VERIFY_PREFIXES, (etch_span){0, 0},
                                 "'%s' holds two traces of rank %u: '%s.%u%s' and '%s.%u%s'", s->folder,
                                 (unsigned)of->rank, of->name, (unsigned)of->rank, ETCH_CHAKRA_SUFFIX,
                                 of->name, (unsigned)of->rank, ETCH_CHAKRA_SUFFIX_ZSTD);
    etch_help(diag, "remove one of them");
    return ETCH_EINPUT;
}

/* Which traces are compressed. A rank has one trace. */
static etch_status find_packed(const survey *s, etch_trace_set *set)
{
    bool *packed = ETCH_NEW_ARRAY(s->arena, set->rank_count, bool);
    for (uint32_t i = 0; i < s->traces.count; i++) {
        const found *it = &s->traces.at[i];
        if (i > 0 && it[-1].rank == it->rank)
            return refuse_both(s, it);
        packed[it->rank] = it->is_packed;
    }
    set->packed = packed;
    return ETCH_OK;
}

static void report_missing(const survey *s, etch_trace_set *set, const char *name)
{
    uint32_t first = 0;
    while (first < s->traces.count && s->traces.at[first].rank == first)
        first++;
    set->missing = set->rank_count - s->traces.count;
    if (set->missing == 0)
        return;
    etch_diag *diag = etch_error(s->diags, ETCH_E_VERIFY_RANK_MISSING, (etch_span){0, 0},
                                 "rank %u has no trace: there is no '%s/%s.%u.et'", (unsigned)first,
                                 s->folder, name, (unsigned)first);
    etch_note(diag, (etch_span){0, 0}, "%u of %u ranks have none", (unsigned)set->missing,
              (unsigned)set->rank_count);
    if (s->odd)
        etch_note(diag, (etch_span){0, 0}, "'%s' is none: ranks are written 0, 1, ..., 9, 10 without padding",
                  s->odd);
}

/* Bit i for each number i of a list; 0: it is none. */
static uint64_t read_dimensions(const json_t *list, uint32_t count)
{
    uint64_t dimensions = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_int_t at = json_integer_value(json_array_get(list, i));
        if (at < 0 || at >= (json_int_t)count)
            return 0;
        dimensions |= UINT64_C(1) << at;
    }
    return dimensions;
}

/* The dimensions of the network, and along which of them collectives are, as `etch lower` wrote them. */
static void read_network(const json_t *root, etch_trace_set *set)
{
    const json_t *mesh = json_object_get(root, "mesh"), *row;
    const json_t *families = json_object_get(json_object_get(root, "comm_groups"), "families");
    uint64_t ranks = 1;
    size_t i;
    for (i = json_array_size(mesh); i-- > 0 && set->dimension_count < ETCH_MOST_DIMENSIONS;) {
        const json_int_t size = json_integer_value(json_object_get(json_array_get(mesh, i), "size"));
        if (size > 1 && size <= MOST_RANKS) {
            set->dimensions[set->dimension_count++] = (uint32_t)size;
            ranks = ranks > MOST_RANKS ? ranks : ranks * (uint64_t)size;
        }
    }
    json_array_foreach(families, i, row)
    {
        const uint64_t along = read_dimensions(json_object_get(row, "dimensions"), set->dimension_count);
        if (along && set->along_count == ETCH_MOST_ALONG)
            ranks = 0; /* more than `etch lower` writes */
        else if (along)
            set->along[set->along_count++] = along;
    }
    if (set->along_count == 0 || ranks != set->rank_count)
        set->along_count = set->dimension_count = 0;
}

/* Do ranks of a stage move states to the memory of the host and back? Then their machine has one. */
static void read_host(const json_t *root, etch_trace_set *set)
{
    const json_t *stage;
    size_t i;
    json_array_foreach(json_object_get(root, "stages"), i, stage)
    {
        if (json_object_get(stage, "host"))
            set->remote_memory = ETCH_REMOTE_SOME;
    }
}

/* What the manifest says of the traces, where `etch lower` wrote them. Returns how many ranks the run had of
 * which it wrote some only; 0: it wrote all. */
static uint64_t read_manifest(const survey *s, etch_trace_set *set)
{
    enum { MOST_BYTES = 64 << 20 };
    char *text;
    size_t length;
    const char *why, *path = etch_text(s->arena, "%s/%s", s->folder, ETCH_MANIFEST_FILE);
    if (!s->has_manifest || etch_read_file(s->arena, path, MOST_BYTES, &text, &length, &why) != ETCH_OK)
        return 0;
    json_t *root = json_loadb(text, length, 0, NULL);
    const char *format = json_string_value(json_object_get(root, "format"));
    const json_int_t ranks = json_integer_value(json_object_get(root, "ranks"));
    const bool ours = format && strcmp(format, ETCH_MANIFEST_FORMAT) == 0;
    const bool some = ours && json_object_get(json_object_get(root, "traces"), "written");
    if (ours) {
        read_network(root, set);
        read_host(root, set);
    }
    json_decref(root);
    return some && ranks > 0 ? (uint64_t)ranks : 0;
}

/* Whether all ranks finish cannot be seen in the traces of some. */
static etch_status refuse_some(const survey *s, uint64_t ranks)
{
    etch_diag *diag = etch_error(s->diags, ETCH_E_VERIFY_SOME_RANKS, (etch_span){0, 0},
                                 "'%s' holds the traces of %u of %llu ranks", s->folder,
                                 (unsigned)s->traces.count, (unsigned long long)ranks);
    etch_help(diag, "lower without --ranks to write those of all ranks");
    return ETCH_EINPUT;
}

/* A file of that name that says something else says nothing. */
static void read_memory(const survey *s, etch_trace_set *set)
{
    enum { MOST_BYTES = 1 << 20 };
    char *text;
    size_t length;
    const char *why, *path = etch_text(s->arena, "%s/" MEMORY_FILE, s->folder);
    if (!s->has_memory || etch_read_file(s->arena, path, MOST_BYTES, &text, &length, &why) != ETCH_OK)
        return;
    json_t *root = json_loadb(text, length, 0, NULL);
    const char *type = json_string_value(json_object_get(root, "memory-type"));
    if (type)
        set->remote_memory = strcmp(type, "NO_MEMORY_EXPANSION") == 0 ? ETCH_REMOTE_NONE : ETCH_REMOTE_SOME;
    json_decref(root);
}

static etch_status choose(survey *s, const etch_verify_options *options, etch_trace_set *set)
{
    if (s->too_large) {
        etch_error(s->diags, ETCH_E_VERIFY_LIMIT, (etch_span){0, 0}, "there are traces of ranks above %d",
                   MOST_RANKS - 1);
        return ETCH_ELIMIT;
    }
    if (s->traces.count == 0)
        return refuse_nothing(s);
    qsort(s->traces.at, s->traces.count, sizeof *s->traces.at, by_name_and_rank);
    const found *first = s->traces.at, *last = first + s->traces.count - 1;
    if (first->name != last->name)
        return refuse_several(s, first->name, last->name);
    set->rank_count = last->rank + 1;
    const etch_status status = find_packed(s, set);
    if (status != ETCH_OK)
        return status;
    const uint64_t ranks = read_manifest(s, set);
    if (s->traces.count < ranks)
        return refuse_some(s, ranks);
    set->prefix = etch_text(s->arena, "%s/%s", s->folder, first->name);
    report_missing(s, set, first->name);
    read_memory(s, set);
    if (options->groups)
        set->groups = options->groups;
    else if (s->has_groups)
        set->groups = etch_text(s->arena, "%s/%s", s->folder, ETCH_CHAKRA_GROUP_FILE);
    return ETCH_OK;
}

/* Does a name say that the file is a tar archive? */
static bool is_archive(const char *path)
{
    static const char suffix[] = ".tar";
    const size_t length = strlen(path);
    return length >= sizeof suffix && strcmp(path + length - (sizeof suffix - 1), suffix) == 0;
}

static etch_status refuse_archive(etch_diags *diags, const char *path)
{
    etch_diag *diag = etch_error(diags, ETCH_E_VERIFY_NO_TRACES, (etch_span){0, 0},
                                 "'%s' is an archive: its files are read from a folder", path);
    etch_help(diag, "unpack it: mkdir traces && tar -xf %s -C traces", path);
    return ETCH_EINPUT;
}

/* "out/llama" is the folder "out" and the name "llama". */
static void split_path(survey *s, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        s->folder = ".";
    else
        s->folder = slash > path ? etch_copy_text(s->arena, path, (size_t)(slash - path)) : "/";
    s->wanted = slash ? slash + 1 : path;
}

etch_status etch_trace_set_find(etch_arena *arena, const etch_verify_options *options, etch_diags *diags,
                                etch_trace_set *set)
{
    struct stat info;
    survey s = {.arena = arena, .diags = diags, .names = etch_names_new(arena)};
    *set = (etch_trace_set){.prefix = NULL};
    const bool there = stat(options->path, &info) == 0;
    s.folder = options->path; /* for the message */
    if (!there && errno != ENOENT && errno != ENOTDIR)
        return refuse_folder(&s, errno);
    if (there && S_ISDIR(info.st_mode)) {
        size_t length = strlen(options->path);
        while (length > 1 && options->path[length - 1] == '/')
            length--;
        s.folder = etch_copy_text(arena, options->path, length);
    } else {
        split_path(&s, options->path);
        if (there && is_archive(options->path))
            return refuse_archive(diags, options->path);
        if (there || stat(s.folder, &info) != 0) {
            etch_diag *diag =
                etch_error(diags, ETCH_E_VERIFY_NO_TRACES, (etch_span){0, 0},
                           there ? "'%s' is one file, and not the traces of all ranks" : "there is no '%s'",
                           options->path);
            etch_help(diag, "give the folder that holds the traces, or the folder and their name: out/llama");
            return there ? ETCH_EINPUT : ETCH_EIO;
        }
    }
    etch_status status = read_folder(&s);
    return status == ETCH_OK ? choose(&s, options, set) : status;
}
