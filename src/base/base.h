/* The header of base: memory, text, sources, diagnostics, threads. Every other module stands on it.
 *
 * Memory. A session owns one `etch_mem`, the account of everything it allocates, with a limit. Arenas draw
 * chunks from it. An allocation never returns NULL: when memory runs out or the limit is reached, control
 * goes back to the `etch_guard` of the session, which frees the arenas. Only base, and code called under a
 * guard on the same thread, may allocate this way; worker threads use `malloc` and report a status.
 *
 * Nothing here prints, exits or keeps global state. */
#ifndef ETCH_BASE_H
#define ETCH_BASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ETCH_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define ETCH_MUST_CHECK __attribute__((warn_unused_result))
#define ETCH_NORETURN __attribute__((noreturn))
#else
#define ETCH_PRINTF(fmt, args)
#define ETCH_MUST_CHECK
#define ETCH_NORETURN
#endif

#include "etch/kinds.h"    /* etch_severity: of a message */
#include "etch/relation.h" /* etch_truth: an answer */
#include "etch/status.h"   /* etch_status: how a call ended */
#include "etch/world.h"    /* etch_world: processes that work together */

/* ---- memory -------------------------------------------------------------------------------------------- */

typedef struct etch_mem etch_mem;
typedef struct etch_arena etch_arena;

/* A new account that may hold `limit` bytes at a time. NULL when memory is out. */
etch_mem *etch_mem_new(size_t limit);
/* Ends the account and frees every arena and block that still draws from it. NULL is allowed. */
void etch_mem_free(etch_mem *mem);
/* Bytes held at this moment by the arenas and blocks of `mem`. */
size_t etch_mem_used(const etch_mem *mem);
size_t etch_mem_limit(const etch_mem *mem);

/* Runs `body(data)`. Returns its status, or ETCH_ENOMEM / ETCH_ELIMIT / whatever `etch_trap` was given when
 * the body was cut short; the arenas and blocks that began under this guard are freed then, older ones stay.
 * Guards nest: a trap goes to the innermost. */
etch_status etch_guard(etch_mem *mem, etch_status (*body)(void *data), void *data) ETCH_MUST_CHECK;
/* Leaves the innermost guard of `mem` with `status`. There must be one. */
void etch_trap(etch_mem *mem, etch_status status) ETCH_NORETURN;
/* For tests: the n-th request of a chunk or block from now fails as if memory were out (0: never). */
void etch_mem_fail_after(etch_mem *mem, size_t n);

/* A block is memory for others who give it back one by one, as GMP does: `size` bytes, aligned to 16, not
 * zeroed. Never NULL; it ends with the account at latest. */
void *etch_block_new(etch_mem *mem, size_t size);
/* The block with `size` bytes, and what it had of them; it may have moved. After a trap it is as it was. */
void *etch_block_resize(etch_mem *mem, void *block, size_t size);
void etch_block_free(etch_mem *mem, void *block);

/* An arena gives memory that lives until the arena ends. It belongs to `mem` and ends with it at latest. */
etch_arena *etch_arena_new(etch_mem *mem);
void etch_arena_free(etch_arena *arena); /* NULL is allowed */
etch_mem *etch_arena_mem(const etch_arena *arena);
/* `size` zeroed bytes, aligned to 16. Never NULL. */
void *etch_alloc(etch_arena *arena, size_t size);
/* `count` zeroed objects of `size` bytes; an overflow of the product is ETCH_ELIMIT. Never NULL. */
void *etch_alloc_array(etch_arena *arena, size_t count, size_t size);
/* An object of the arena that had `before` bytes (0: none), with `after` of them: where it stands if it is
 * the newest of its arena, else a copy; what is added is zeroed. */
void *etch_alloc_grown(etch_arena *arena, void *object, size_t before, size_t after);
/* A NUL-terminated copy of `length` bytes of `text`. */
char *etch_copy_text(etch_arena *arena, const char *text, size_t length);
/* A copy of a NUL-terminated text; NULL of NULL. */
char *etch_copy_string(etch_arena *arena, const char *text);
/* printf into the arena. */
char *etch_text(etch_arena *arena, const char *format, ...) ETCH_PRINTF(2, 3);

#define ETCH_NEW(arena, type) ((type *)etch_alloc((arena), sizeof(type)))
#define ETCH_NEW_ARRAY(arena, count, type) ((type *)etch_alloc_array((arena), (count), sizeof(type)))

/* A growable array in an arena: `ETCH_VEC(int) v = {0}; ETCH_PUSH(arena, &v, 3); v.at[0]; v.count`. */
#define ETCH_VEC(type)            \
    struct {                      \
        type *at;                 \
        uint32_t count, capacity; \
    }
#define ETCH_PUSH(arena, vec, ...)                                                                    \
    ((void)((vec)->count < (vec)->capacity ||                                                         \
            ((vec)->at = etch_vec_grow((arena), (vec)->at, &(vec)->capacity, sizeof *(vec)->at), 0)), \
     (vec)->at[(vec)->count++] = __VA_ARGS__)
/* Used by ETCH_PUSH: doubles `capacity`, returns the place of the items. */
void *etch_vec_grow(etch_arena *arena, void *old, uint32_t *capacity, size_t size);

/* A table in an arena: what is known of each address. */
typedef struct etch_map_cell {
    const void *key, *value;
} etch_map_cell;
typedef struct etch_map {
    etch_map_cell *entries;
    /* the capacity is 0 or a power of two */
    uint32_t count, capacity;
} etch_map;
/* The value of a key; NULL where it has none. */
const void *etch_map_find(const etch_map *map, const void *key);
/* Sets the value of a key, which is not NULL, in place of the one that it has. */
void etch_map_set(etch_arena *arena, etch_map *map, const void *key, const void *value);

/* Text that grows in an arena; always NUL-terminated once something was added. */
typedef struct etch_buf {
    etch_arena *arena;
    char *text;
    size_t length, capacity;
} etch_buf;
void etch_buf_add(etch_buf *buf, const char *text, size_t length);
void etch_buf_puts(etch_buf *buf, const char *text);
void etch_buf_printf(etch_buf *buf, const char *format, ...) ETCH_PRINTF(2, 3);

/* -1, 0 or 1, as sorting wants it: is x below y, equal or above? */
static inline int etch_order(uint64_t x, uint64_t y)
{
    return x < y ? -1 : x > y;
}

/* ---- names --------------------------------------------------------------------------------------------- */

/* Interned names: equal texts have equal pointers within one table. */
typedef struct etch_names etch_names;
etch_names *etch_names_new(etch_arena *arena);
const char *etch_name(etch_names *names, const char *text, size_t length);
const char *etch_name_of(etch_names *names, const char *text);
/* The name among `count` candidates that is nearest to `text`: at most 2 letters inserted, left out, replaced
 * or swapped with a neighbour, and fewer than `text` has. The first of equals; NULL when none is near. */
const char *etch_nearest(const char *text, const char *const *candidates, size_t count);

/* ---- sources and diagnostics --------------------------------------------------------------------------- */

/* A range of bytes of one source. Sources share one line of offsets, so that two numbers say file and place.
 * {0, 0} is nowhere. */
typedef struct etch_span {
    uint32_t start, end;
} etch_span;

typedef struct etch_source {
    /* as the user wrote it */
    const char *path;
    /* `length` bytes, NUL-terminated after them */
    const char *text;
    uint32_t length;
    /* offset of the first byte in spans; the first source starts at 1 */
    uint32_t base;
} etch_source;

/* Codes, one row each in diag.def: enumerator, number, title. */
typedef enum etch_code {
    ETCH_NO_CODE = 0,
#define ETCH_DIAG(name, number, title) ETCH_##name = number,
#include "diag.def"
#undef ETCH_DIAG
} etch_code;

typedef struct etch_label {
    /* may be nowhere for a plain note */
    etch_span span;
    const char *message;
    struct etch_label *next;
} etch_label;

typedef struct etch_diag {
    etch_severity severity;
    etch_code code;
    etch_span span;
    /* one line, no full stop */
    const char *message;
    /* in the order they were added */
    etch_label *notes;
    etch_label *helps;
    struct etch_diag *next;
    struct etch_diags *owner;
} etch_diag;

/* Sources and what was found in them. At most 20 of each severity are kept; all are counted. */
typedef struct etch_diags etch_diags;
etch_diags *etch_diags_new(etch_arena *arena);
/* Adds a source; `text` is copied. NULL when all sources together pass ETCH_TOTAL_LIMIT bytes. */
enum { ETCH_TOTAL_LIMIT = 1 << 27 };
const etch_source *etch_source_add(etch_diags *diags, const char *path, const char *text, size_t length);
/* Source of a span, NULL for nowhere. `line` and `column` (both from 1; columns count characters of UTF-8)
 * may be NULL. */
const etch_source *etch_source_at(const etch_diags *diags, etch_span span, uint32_t *line, uint32_t *column);
uint32_t etch_error_count(const etch_diags *diags);
const etch_diag *etch_diags_first(const etch_diags *diags);
/* The first error from a message on; NULL: there is none. `diag` may be NULL. */
const etch_diag *etch_first_error(const etch_diag *diag);
/* Begins anew: nothing has been recorded. Sources stay. */
void etch_diags_forget(etch_diags *diags);

/* A moment in the record. */
typedef struct etch_diags_mark {
    etch_diag **end;
    uint32_t counts[ETCH_SEVERITY_COUNT], repeats[ETCH_SEVERITY_COUNT];
} etch_diags_mark;
etch_diags_mark etch_diags_now(const etch_diags *diags);
/* The first that was recorded since then and kept; it and those after it may be added to. NULL: none. */
etch_diag *etch_diags_since(const etch_diags *diags, const etch_diags_mark *mark);
/* The same, and takes them out of the record: nothing was said since then. */
const etch_diag *etch_diags_retract(etch_diags *diags, const etch_diags_mark *mark);
/* From now on errors have this note, as "with config 'small'", also those that were said before and are said
 * again; other diagnostics when they are new. NULL: no more. */
void etch_diags_note_all(etch_diags *diags, const char *note);

/* Records an error, a warning or a remark. What was said before of the same place, word for word, is counted
 * and not kept again. Never NULL; the result takes notes and helps at once (the next call may hand out the
 * same object when no more are kept). */
etch_diag *etch_error(etch_diags *diags, etch_code code, etch_span span, const char *format, ...)
    ETCH_PRINTF(4, 5);
etch_diag *etch_warning(etch_diags *diags, etch_code code, etch_span span, const char *format, ...)
    ETCH_PRINTF(4, 5);
etch_diag *etch_remark(etch_diags *diags, etch_code code, etch_span span, const char *format, ...)
    ETCH_PRINTF(4, 5);
/* What is known (a place, or nowhere) and what would help. False, for checks that end with it. */
bool etch_note(etch_diag *diag, etch_span span, const char *format, ...) ETCH_PRINTF(3, 4);
bool etch_help(etch_diag *diag, const char *format, ...) ETCH_PRINTF(2, 3);
/* Appends all diagnostics as text for a person: `path:line:column: error[E0203]: message`, the source line
 * (long lines are cut around the span), a caret and tildes by display width, notes with their places, helps,
 * and how many were not kept. Characters that would disturb a terminal are shown as U+FFFD. */
void etch_diags_render(const etch_diags *diags, etch_buf *out);
/* The title of a code, NULL for a number that is none. Codes are shown as "E0203". */
const char *etch_code_title(etch_code code);

/* Reads a whole regular file into `arena`, NUL-terminated behind `*length` bytes. ETCH_EIO with `*why` set to
 * a static text when it is missing, a directory, unreadable, "is a directory", or, ETCH_FILE_TOO_LARGE, has
 * more bytes than `limit`. */
#define ETCH_FILE_TOO_LARGE "is too large"
etch_status etch_read_file(etch_arena *arena, const char *path, size_t limit, char **text, size_t *length,
                           const char **why) ETCH_MUST_CHECK;

/* Files of a folder by their names, sorted. None where it cannot be read, and of a large folder not all. */
typedef ETCH_VEC(const char *) etch_file_names;
etch_file_names etch_files_of(etch_arena *arena, const char *folder);

/* ---- files in folders; safe on any thread -------------------------------------------------------------- */

/* Each returns 0 or an errno; `folder` is open. */
int etch_file_create(int folder, const char *name, int *file) ETCH_MUST_CHECK;
int etch_file_write(int file, const void *bytes, size_t length) ETCH_MUST_CHECK;
int etch_file_close(int file) ETCH_MUST_CHECK;
/* Puts bytes somewhere; into an open file, of which `data` is the number. */
typedef int (*etch_put)(void *data, const void *bytes, size_t length);
int etch_put_into_file(void *data, const void *bytes, size_t length) ETCH_MUST_CHECK;
/* A file at once. */
int etch_file_put(int folder, const char *name, const void *bytes, size_t length) ETCH_MUST_CHECK;

/* Called for an entry of an open folder; ends by an errno. */
typedef int (*etch_visit)(void *data, int folder, const char *name);
/* Visits every entry of the folder at `path` until one visit returns an errno. Returns that, why the folder
 * cannot be read, or 0. */
int etch_for_each_entry(const char *path, etch_visit visit, void *data) ETCH_MUST_CHECK;
/* Removes a file; one that is gone already is removed. */
int etch_remove_entry(void *data, int folder, const char *name);
/* Removes a folder and the files in it that `remove_entry` removes. Returns 0 or an errno. */
int etch_remove_folder(const char *path, etch_visit remove_entry, void *data) ETCH_MUST_CHECK;
/* Returns a descriptor, or -1 and errno. */
int etch_open_folder(const char *path) ETCH_MUST_CHECK;

/* Has a name characters that a terminal would obey? */
bool etch_has_control(const char *name);
/* Records that `path` (or, when `file` is not NULL, this file in it) could not be handled; always
 * ETCH_EIO. `verb`: "write", "create folder". */
etch_status etch_io_error(etch_diags *diags, const char *verb, const char *path, const char *file, int error);
/* Records that the run was cancelled; always ETCH_ELIMIT. */
etch_status etch_cancelled(etch_diags *diags, const char *path);

/* ---- archives ------------------------------------------------------------------------------------------ */

/* Files as one stream, POSIX tar: all of them of nobody in particular, of no time, for all to read. */
enum { ETCH_TAR_BLOCK = 512, ETCH_TAR_HEAD = 4 * ETCH_TAR_BLOCK };
/* What stands before the bytes of a file, whose name has up to 255; returns its length. `link`: the file is a
 * further name of this one, without bytes of its own, and `size` is 0; NULL: it is not. */
size_t etch_tar_head(const char *name, uint64_t size, const char *link, unsigned char head[ETCH_TAR_HEAD]);
/* Is the block what stands before a file of this name, of any size? */
bool etch_tar_begins(const unsigned char *block, const char *name);

typedef struct etch_archive {
    int file;
    /* the same pipe, opened once more, so that waiting for its reader can be ended; -1: it is none */
    int own;
    const atomic_int *cancel;
    size_t used;
    unsigned char buffer[1 << 16];
} etch_archive;

/* The archive goes into an open file. When `cancel`, which may be NULL, is not 0 any more, what is called
 * next returns ECANCELED. */
void etch_archive_begin(etch_archive *archive, int file, const atomic_int *cancel);
/* Each returns 0 or an errno. A file: opened, written, closed with its size; or at once. The bytes are the
 * file's when `etch_archive_finish` has returned. */
int etch_archive_open(etch_archive *archive, const char *name, uint64_t size,
                      const char *link) ETCH_MUST_CHECK;
int etch_archive_write(void *archive, const void *bytes, size_t length) ETCH_MUST_CHECK;
int etch_archive_close(etch_archive *archive, uint64_t size) ETCH_MUST_CHECK;
int etch_archive_put(etch_archive *archive, const char *name, const void *bytes,
                     size_t length) ETCH_MUST_CHECK;
int etch_archive_finish(etch_archive *archive) ETCH_MUST_CHECK;
/* After anything; the file stays open. */
void etch_archive_end(etch_archive *archive);

/* ---- a folder that appears when all of it is there ----------------------------------------------------- */

/* Hidden folders: of new files, with what they replace in a folder of others; of an earlier run while the
 * new one takes its name. Two numbers follow. */
#define ETCH_HIDDEN ".etch-"
#define ETCH_HIDDEN_OLD ".etch-old-"
#define ETCH_ASIDE "old"
#define ETCH_REPLACED "replaced" /* the same, once the new run is complete */

/* How the folder of the files, which is written under a hidden name, gets to the target. */
typedef enum etch_target_way {
    /* the target and its parents are created: it takes the target's name */
    ETCH_TARGET_MISSING,
    /* it takes the target's name */
    ETCH_TARGET_EMPTY,
    /* it and the target exchange their names, and the earlier run is removed */
    ETCH_TARGET_EARLIER,
    /* it is inside the target; its owner moves the files to their places */
    ETCH_TARGET_WITHIN
} etch_target_way;

typedef struct etch_target {
    etch_arena *arena;
    etch_diags *diags;
    /* without slashes at the end, and the folder that it is in */
    const char *path, *parent;
    etch_target_way way;
    /* permissions and group of a target that exists */
    unsigned mode, group;
    /* what is written is on the disk before it has its name */
    bool syncs;
    /* the file that says that a folder is complete; of one that is removed it goes first. May be NULL */
    const char *mark;
    /* folders that were created, outermost first, and what that one is in */
    const char **new_parents, *outer;
    uint32_t new_parent_count;
    /* the folder of the files until it has its name, else NULL */
    const char *hidden;
    /* open on it, and locked, else -1 */
    int files;
} etch_target;

/* Sets the path of a target. */
void etch_target_name(etch_target *target, const char *path);
/* Can a target that exists not be renamed, because it is "." or "..", the root, or where a file system is
 * mounted? */
bool etch_target_is_fixed(const etch_target *target);
/* Creates the hidden folder, in a place without leftovers; `way`, `mode` and `group` have been set. When it
 * or anything later fails, `etch_target_abandon` must follow. */
etch_status etch_target_begin(etch_target *target) ETCH_MUST_CHECK;
/* What was written is on the disk; the entries of an open folder; the name of the target, with a warning
 * where that fails. All do nothing unless `syncs`. */
etch_status etch_target_sync_files(const etch_target *target) ETCH_MUST_CHECK;
etch_status etch_target_sync_entries(const etch_target *target, int folder) ETCH_MUST_CHECK;
void etch_target_sync_name(const etch_target *target);
/* The hidden folder takes the name of the target, unless that is filled. `remove_earlier` is called for each
 * entry of a folder that was replaced. */
etch_status etch_target_appear(etch_target *target, etch_visit remove_earlier, void *data) ETCH_MUST_CHECK;
/* The file `name` of the hidden folder, which is all that it holds, takes the name of the target; `file`:
 * open on it, and closed. */
etch_status etch_target_appear_file(etch_target *target, const char *name, int file) ETCH_MUST_CHECK;
/* Ends the lock. */
void etch_target_close(etch_target *target);
/* Removes the hidden folder and the parents that were created. Allocates nothing from the arena. */
void etch_target_abandon(etch_target *target);

/* ---- threads ------------------------------------------------------------------------------------------- */

/* Calls work(data, i) for every i in 0..count-1 on up to `threads` threads, the caller's among them, and
 * waits. Returns the status of the smallest i whose status is not ETCH_OK; items after it may not run. */
etch_status etch_parallel(unsigned threads, size_t count, etch_status (*work)(void *data, size_t i),
                          void *data) ETCH_MUST_CHECK;

/* Items of such work that take turns in the order of their numbers, as writers of one file must. */
typedef struct etch_turns etch_turns;
etch_turns *etch_turns_new(void);        /* NULL: memory is out */
void etch_turns_free(etch_turns *turns); /* NULL is allowed */
/* Waits until all items before the i-th have had their turns. False: one of them failed, and there is no turn
 * for this one. */
bool etch_turns_take(etch_turns *turns, size_t i);
/* Ends the turn of the item that has it, and all that come where it failed. */
void etch_turns_end(etch_turns *turns, bool fine);

/* ---- processes ----------------------------------------------------------------------------------------- */

/* 1 where `world` is NULL. */
unsigned etch_world_size(const etch_world *world);
/* Sends bytes to process 0, or from it to another one; from process 0 to all others. Like all below, with a
 * message in `diags` where others cannot be reached. */
etch_status etch_world_send(etch_world *world, etch_diags *diags, unsigned to, const void *bytes,
                            size_t length) ETCH_MUST_CHECK;
etch_status etch_world_send_all(etch_world *world, etch_diags *diags, const void *bytes,
                                size_t length) ETCH_MUST_CHECK;
/* Waits for bytes of another process, with a NUL behind them, which stay until the next that it sends. Where
 * that process ended instead: its status, with its message if it had one; where process 0 says that all end,
 * ETCH_ELIMIT. `cancel` not 0: process 0 tells the others to end, and waits on; others return ETCH_ELIMIT. */
etch_status etch_world_receive(etch_world *world, etch_diags *diags, unsigned from, const atomic_int *cancel,
                               const char **bytes, size_t *length) ETCH_MUST_CHECK;
/* Process 0 tells all others to end. Has it? Others ask this now and then. */
void etch_world_stop(etch_world *world, etch_status status);
bool etch_world_is_stopped(etch_world *world);
/* Process 0 tells the others to stop, and waits until they have: what they share is its own then. `world` may
 * be NULL. */
void etch_world_halt(etch_world *world, etch_status status);
/* The end: see `etch_world_end`. `diags` may be NULL. */
etch_status etch_world_gather(etch_world *world, etch_diags *diags, etch_status status) ETCH_MUST_CHECK;

/* ---- lists of numbers ---------------------------------------------------------------------------------- */

/* From `first` to `last`, both included. */
typedef struct etch_interval {
    uint32_t first, last;
} etch_interval;
typedef ETCH_VEC(etch_interval) etch_intervals;

/* Reads a list as users write it, "0,2,8-15", in any order, into the empty `out`: intervals in rising order,
 * none touching the next. False when the text is no list. */
bool etch_intervals_read(etch_arena *arena, const char *text, etch_intervals *out);
bool etch_intervals_hold(const etch_intervals *intervals, uint32_t number);

/* Sorts ids and drops repetitions; returns how many are left. */
uint32_t etch_sort_ids(uint32_t *ids, uint32_t count);

#endif
