/* A dump: which files, and reading each once. */
#define _POSIX_C_SOURCE 200809L

#include "trace/text_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 16, GROUP_FILE_LIMIT = 48 << 20 };

static const etch_span nowhere = {0, 0};

/* ---- the sink ------------------------------------------------------------------------------------------ */

static etch_status flush(etch_dump *dump)
{
    bool fine = dump->out.length == 0 ||
                dump->options->out.write(dump->options->out.data, dump->out.text, dump->out.length);
    dump->out.length = 0;
    return fine ? ETCH_OK : ETCH_EIO;
}

static etch_status flush_pieces(etch_dump *dump)
{
    if (dump->options->cancel && atomic_load(dump->options->cancel) != 0)
        return ETCH_ELIMIT;
    return dump->out.length < PIECE ? ETCH_OK : flush(dump);
}

/* ---- which ranks --------------------------------------------------------------------------------------- */

/* Whether a trace is asked for; `rank` is -1 when its name says none. */
static bool is_wanted(const etch_intervals *wanted, int64_t rank)
{
    return wanted->count == 0 || (rank >= 0 && etch_intervals_hold(wanted, (uint32_t)rank));
}

static etch_status read_ranks(const etch_dump *dump, etch_intervals *wanted)
{
    const char *ranks = dump->options->ranks;
    if (!ranks || etch_intervals_read(dump->arena, ranks, wanted))
        return ETCH_OK;
    etch_diag *diag =
        etch_error(dump->diags, ETCH_E_DUMP_RANKS, nowhere, "'%.80s' is no list of ranks", ranks);
    etch_help(diag, "list ranks and ranges of them, as in 0,2,8-15");
    return ETCH_EINPUT;
}

/* ---- which files --------------------------------------------------------------------------------------- */

/* A file of a folder; `stem` is as long as what stands before the rank. */
typedef struct entry {
    const char *name;
    size_t stem;
    /* -1: the name says none */
    int64_t rank;
    bool is_packed;
} entry;

typedef struct listing {
    entry *at;
    uint32_t count, capacity;
} listing;

/* <name>.<rank>.et, or .et.zst, the rank as it is written without padding. */
static entry parse_name(const char *name)
{
    entry e = {.name = name, .stem = strlen(name), .rank = -1};
    const size_t end = etch_chakra_stem(name, &e.is_packed);
    size_t start = end;
    uint64_t rank = 0;
    while (start > 0 && name[start - 1] >= '0' && name[start - 1] <= '9')
        start--;
    const bool padded = name[start] == '0' && end - start > 1;
    if (start == 0 || start == end || name[start - 1] != '.' || padded)
        return e;
    for (size_t i = start; i < end && rank <= UINT32_MAX; i++)
        rank = rank * 10 + (uint64_t)(name[i] - '0');
    if (rank > UINT32_MAX)
        return e;
    e.stem = start;
    e.rank = (int64_t)rank;
    return e;
}

static bool is_trace_name(const char *name)
{
    bool is_packed;
    return etch_chakra_stem(name, &is_packed) > 0;
}

static int by_name_and_rank(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    size_t shorter = x->stem < y->stem ? x->stem : y->stem;
    int order = memcmp(x->name, y->name, shorter);
    if (order != 0 || x->stem != y->stem)
        return order != 0 ? order : x->stem < y->stem ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->is_packed - y->is_packed;
}

typedef struct scan {
    const etch_dump *dump;
    DIR *stream;
    const etch_intervals *wanted;
    listing *files;
} scan;

static etch_status scan_folder(void *data)
{
    const scan *s = data;
    for (;;) {
        errno = 0;
        const struct dirent *found = readdir(s->stream);
        if (!found)
            return errno == 0 ? ETCH_OK : ETCH_EIO;
        if (!is_trace_name(found->d_name))
            continue;
        entry e = parse_name(found->d_name);
        if (!is_wanted(s->wanted, e.rank))
            continue;
        e.name = etch_copy_text(s->dump->arena, e.name, strlen(e.name));
        ETCH_PUSH(s->dump->arena, s->files, e);
    }
}

static etch_status refuse_folder(const etch_dump *dump, const char *path)
{
    etch_error(dump->diags, ETCH_E_DUMP_PATH, nowhere, "cannot read the folder '%s'", path);
    return ETCH_EIO;
}

static etch_status list_folder(const etch_dump *dump, const char *path, const etch_intervals *wanted,
                               listing *files)
{
    scan s = {dump, opendir(path), wanted, files};
    if (!s.stream)
        return refuse_folder(dump, path);
    etch_status status = etch_guard(etch_arena_mem(dump->arena), scan_folder, &s);
    closedir(s.stream);
    if (status == ETCH_EIO)
        return refuse_folder(dump, path);
    if (files->count > 1)
        qsort(files->at, files->count, sizeof *files->at, by_name_and_rank);
    return status;
}

/* ---- one file ------------------------------------------------------------------------------------------ */

typedef struct passage {
    etch_dump *dump;
    const etch_dump_way *way;
    const char *path;
    etch_trace_reader *reader;
    etch_trace_error error;
} passage;

static etch_status pass(void *data)
{
    passage *p = data;
    etch_dump *dump = p->dump;
    const etch_trace_node *node;
    etch_status status = etch_trace_open(p->path, &p->reader, &p->error);
    if (status != ETCH_OK)
        return status;
    const etch_trace_metadata *head = etch_trace_head(p->reader);
    p->way->metadata(dump, head);
    dump->any = true;
    dump->end = head->offset + head->length;
    while ((status = etch_trace_next(p->reader, &node, &p->error)) == ETCH_OK && node) {
        p->way->node(dump, node);
        dump->end = node->offset + node->length;
        status = flush_pieces(dump);
        if (status != ETCH_OK)
            break;
    }
    return status;
}

typedef struct leftover {
    etch_dump *dump;
    int file;
} leftover;

static etch_status copy_rest(void *data)
{
    const leftover *l = data;
    etch_dump *dump = l->dump;
    uint8_t bytes[4096];
    ssize_t got;
    while ((got = pread(l->file, bytes, sizeof bytes, (off_t)dump->end)) > 0) {
        etch_text_bytes(&dump->out, bytes, (size_t)got);
        dump->end += (uint64_t)got;
        etch_status status = flush_pieces(dump);
        if (status != ETCH_OK)
            return status;
    }
    return got < 0 ? ETCH_EIO : ETCH_OK;
}

/* What is left of a file that could not be read on. */
static etch_status add_rest(etch_dump *dump, const char *path)
{
    bool is_packed;
    etch_buf_puts(&dump->out, "# no message can be read from here on\n");
    if (etch_chakra_stem(path, &is_packed) > 0 && is_packed)
        return ETCH_OK; /* what it holds there cannot be read either, or is no trace */
    leftover l = {dump, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (l.file < 0)
        return ETCH_EIO;
    etch_status status = etch_guard(etch_arena_mem(dump->arena), copy_rest, &l);
    close(l.file);
    return status;
}

static etch_status read_file(etch_dump *dump, const etch_dump_way *way, const char *path)
{
    passage p = {.dump = dump, .way = way, .path = path};
    dump->end = 0;
    way->begin(dump);
    etch_status status = etch_guard(etch_arena_mem(dump->arena), pass, &p);
    etch_trace_close(p.reader);
    if (status == ETCH_EIO && p.error.reason[0] != '\0')
        etch_error(dump->diags, ETCH_E_DUMP_TRACE, nowhere, "cannot read '%s': %s", path, p.error.reason);
    if (status != ETCH_EINPUT)
        return status;
    etch_error(dump->diags, ETCH_E_DUMP_TRACE, nowhere, "%s: byte %" PRIu64 ": %s", path, p.error.offset,
               p.error.reason);
    etch_status rest = way == &etch_dump_as_text ? add_rest(dump, path) : ETCH_OK;
    return rest == ETCH_OK ? status : rest;
}

/* ---- all files ----------------------------------------------------------------------------------------- */

/* Adds the group file to a text. */
static etch_status add_groups(etch_dump *dump, const char *folder)
{
    char *text;
    size_t length;
    const char *why;
    const char *path = etch_text(dump->arena, "%s/%s", folder, ETCH_CHAKRA_GROUP_FILE);
    if (access(path, F_OK) != 0)
        return ETCH_OK;
    if (etch_read_file(dump->arena, path, GROUP_FILE_LIMIT, &text, &length, &why) != ETCH_OK) {
        etch_error(dump->diags, ETCH_E_DUMP_TRACE, nowhere, "%s: %s", path, why);
        return ETCH_EIO;
    }
    etch_buf_printf(&dump->out, "file %s\n", ETCH_CHAKRA_GROUP_FILE);
    etch_text_lines(&dump->out, text, length);
    return ETCH_OK;
}

static int by_rank(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Whoever asks for a rank expects its trace. */
static etch_status check_found(const etch_dump *dump, const etch_intervals *wanted, const listing *files)
{
    int64_t *ranks = ETCH_NEW_ARRAY(dump->arena, files->count, int64_t);
    uint32_t at = 0;
    for (uint32_t i = 0; i < files->count; i++)
        ranks[i] = files->at[i].rank;
    if (files->count > 1)
        qsort(ranks, files->count, sizeof *ranks, by_rank);
    for (uint32_t i = 0; i < wanted->count; i++) {
        int64_t rank = wanted->at[i].first;
        for (; at < files->count && ranks[at] <= rank; at++)
            rank += ranks[at] == rank;
        if (rank > wanted->at[i].last)
            continue;
        etch_error(dump->diags, ETCH_E_DUMP_PATH, nowhere, "'%s' has no trace of rank %" PRId64,
                   dump->options->path, rank);
        return ETCH_EINPUT;
    }
    return ETCH_OK;
}

static etch_status dump_folder(etch_dump *dump, const etch_dump_way *way, const etch_intervals *wanted)
{
    const char *folder = dump->options->path;
    listing files = {0};
    etch_status worst = ETCH_OK;
    etch_status status = list_folder(dump, folder, wanted, &files);
    if (status == ETCH_OK)
        status = check_found(dump, wanted, &files);
    if (status == ETCH_OK && files.count == 0) {
        etch_diag *diag = etch_error(dump->diags, ETCH_E_DUMP_PATH, nowhere, "'%s' holds no traces", folder);
        etch_help(diag, "traces are files called <name>.<rank>%s", ETCH_CHAKRA_SUFFIX);
        return ETCH_EINPUT;
    }
    for (uint32_t i = 0; i < files.count && status == ETCH_OK; i++) {
        dump->file = files.at[i].name;
        dump->rank = files.at[i].rank;
        status = read_file(dump, way, etch_text(dump->arena, "%s/%s", folder, dump->file));
        if (status == ETCH_EINPUT) { /* the other files are worth showing */
            worst = status;
            status = ETCH_OK;
        }
    }
    if (status == ETCH_OK && way == &etch_dump_as_text)
        status = add_groups(dump, folder);
    return status == ETCH_OK ? worst : status;
}

static etch_status dump_one(etch_dump *dump, const etch_dump_way *way, const etch_intervals *wanted)
{
    const char *path = dump->options->path, *slash = strrchr(path, '/');
    dump->file = slash ? slash + 1 : path;
    dump->rank = is_trace_name(dump->file) ? parse_name(dump->file).rank : -1;
    listing files = {0};
    if (is_wanted(wanted, dump->rank))
        ETCH_PUSH(dump->arena, &files, (entry){.rank = dump->rank});
    etch_status status = check_found(dump, wanted, &files);
    return status == ETCH_OK ? read_file(dump, way, path) : status;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

etch_status etch_trace_dump(etch_arena *arena, const etch_dump_options *options, etch_diags *diags)
{
    static const etch_dump_way *const ways[] = {[ETCH_DUMP_SUMMARY] = &etch_dump_as_summary,
                                                [ETCH_DUMP_JSON] = &etch_dump_as_json,
                                                [ETCH_DUMP_TEXT] = &etch_dump_as_text};
    const etch_dump_way *way = ways[options->form];
    etch_dump dump = {.arena = arena, .diags = diags, .options = options, .summary = etch_summary_new(arena)};
    dump.out.arena = dump.body.arena = arena;
    etch_encoder_begin(&dump.encoder, arena);
    etch_intervals wanted = {0};
    etch_status status = read_ranks(&dump, &wanted);
    if (status == ETCH_OK)
        status = is_folder(options->path) ? dump_folder(&dump, way, &wanted) : dump_one(&dump, way, &wanted);
    if (status == ETCH_OK || status == ETCH_EINPUT) {
        if (dump.any)
            way->finish(&dump);
        etch_status written = flush(&dump);
        status = written == ETCH_OK ? status : written;
    }
    return status;
}
