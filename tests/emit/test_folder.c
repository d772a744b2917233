/* What happens to the output folder: a run appears as a whole or not at all, and what others wrote is
 * theirs. */
#define _DEFAULT_SOURCE /* flock */
#define _XOPEN_SOURCE 700

#include "emitting.h"
#include "jobs.h"
#include "suite.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* A scene: an empty folder to play in, and two jobs of different size. */
typedef struct scene {
    etch_arena *arena;
    const char *place;
    const etch_job *large, *small; /* 16 and 4 ranks */
} scene;

static scene begin(etch_arena *arena)
{
    static const job_recipe large = {
        .mesh = {8, 2}, .families = {1, 2}, .classes = 2, .collectives = 20, .seed = 3, .computations = 300};
    static const job_recipe small = {
        .mesh = {4}, .families = {1}, .classes = 1, .collectives = 4, .seed = 4, .computations = 30};
    return (scene){.arena = arena,
                   .place = tree_new(arena),
                   .large = job_make(arena, &large),
                   .small = job_make(arena, &small)};
}

static void end(const scene *s)
{
    tree_remove(s->place);
}

static const char *in(const scene *s, const char *name)
{
    return etch_text(s->arena, "%s/%s", s->place, name);
}

static etch_emit_options to(const scene *s, const char *name)
{
    return emitting_options(in(s, name));
}

static void emit_to(const scene *s, const char *name, const etch_job *job)
{
    etch_emit_options options = to(s, name);
    emitting_works(s->arena, job, &options);
}

/* The target must be refused, and nothing may change. */
static void refuses(const scene *s, const etch_emit_options *options, etch_status status, etch_code code,
                    const char *text)
{
    const char *before = tree_snapshot(s->arena, s->place);
    emitting_fails(s->arena, s->large, options, status, code, text);
    ck_assert_str_eq(tree_snapshot(s->arena, s->place), before);
}

#define SCENE_TEST(name)                       \
    static void name(const scene *s);          \
    static void name##_body(etch_arena *arena) \
    {                                          \
        scene s = begin(arena);                \
        name(&s);                              \
        end(&s);                               \
    }                                          \
    START_TEST(test_##name)                    \
    {                                          \
        etch_with_arena(name##_body);          \
    }                                          \
    END_TEST                                   \
    static void name(const scene *s)

/* ---- targets that can be used -------------------------------------------------------------------------- */

SCENE_TEST(a_missing_folder_is_created_with_its_parents)
{
    struct stat info;
    mode_t mask = umask(027);
    emit_to(s, "a/b/out", s->large);
    umask(mask);
    ck_assert_uint_eq(tree_count(in(s, "a/b/out")), 16 + 2);
    ck_assert_uint_eq(tree_count(in(s, "a/b")), 1); /* nothing hidden is left */
    ck_assert_int_eq(stat(in(s, "a/b/out"), &info), 0);
    ck_assert_int_eq(info.st_mode & 07777, 0750);
    ck_assert_int_eq(stat(in(s, "a/b/out/tiny.15.et"), &info), 0);
    ck_assert_int_eq(info.st_mode & 07777, 0640);
}

SCENE_TEST(slashes_at_the_end_mean_nothing)
{
    emit_to(s, "out///", s->small);
    ck_assert_uint_eq(tree_count(in(s, "out")), 4 + 2);
    emit_to(s, "out/", s->large);
    ck_assert_uint_eq(tree_count(in(s, "out")), 16 + 2);
    ck_assert_uint_eq(tree_count(s->place), 1);
}

SCENE_TEST(an_empty_folder_is_used_and_keeps_its_permissions)
{
    struct stat info;
    ck_assert_int_eq(mkdir(in(s, "out"), 0700), 0);
    emit_to(s, "out", s->small);
    ck_assert_int_eq(stat(in(s, "out"), &info), 0);
    ck_assert_int_eq(info.st_mode & 07777, 0700);
    ck_assert_uint_eq(tree_count(in(s, "out")), 4 + 2);
    ck_assert_uint_eq(tree_count(s->place), 1);
}

SCENE_TEST(an_earlier_run_is_replaced_as_a_whole)
{
    emit_to(s, "out", s->small);
    const char *fresh = tree_snapshot(s->arena, s->place);
    emit_to(s, "out", s->large);
    ck_assert_uint_eq(tree_count(in(s, "out")), 16 + 2);
    emit_to(s, "out", s->small);
    ck_assert_str_eq(tree_snapshot(s->arena, s->place), fresh);
}

SCENE_TEST(an_earlier_run_under_another_name_is_replaced)
{
    etch_emit_options options = to(s, "out");
    options.name = "other";
    emitting_works(s->arena, s->large, &options);
    emit_to(s, "out", s->small);
    ck_assert_uint_eq(tree_count(in(s, "out")), 4 + 2);
}

/* Emits, and finds that the first message is this one about what a killed run left. */
static void emit_and_hear(const scene *s, const etch_emit_options *options, const char *text)
{
    etch_emit_result result;
    etch_diags *diags = etch_diags_new(s->arena);
    ck_assert_int_eq(etch_emit(etch_arena_mem(s->arena), s->small, options, diags, &result), ETCH_OK);
    ck_assert_ptr_nonnull(etch_diags_first(diags));
    ck_assert_int_eq(etch_diags_first(diags)->code, ETCH_E_OUTPUT_KILLED);
    ck_assert_msg(strstr(etch_diags_first(diags)->message, text), "%s", etch_diags_first(diags)->message);
}

SCENE_TEST(what_a_killed_run_left_is_removed_and_named)
{
    const char *left = in(s, etch_text(s->arena, ".etch-%ld-0", (long)getpid()));
    const etch_emit_options options = to(s, "out");
    ck_assert_int_eq(mkdir(left, 0700), 0);
    tree_write(etch_text(s->arena, "%s/tiny.0.et", left), "half");
    emit_and_hear(s, &options, left);
    ck_assert_uint_eq(tree_count(s->place), 1);
    ck_assert_uint_eq(tree_count(in(s, "out")), 4 + 2);
    emit_to(s, "out", s->small); /* nothing more to say */
}

SCENE_TEST(the_only_copy_of_an_earlier_run_is_kept_and_named)
{
    const etch_emit_options options = to(s, "out");
    emit_to(s, "earlier", s->small);
    ck_assert_int_eq(rename(in(s, "earlier"), in(s, ".etch-old-1-0")), 0);
    emit_and_hear(s, &options, ".etch-old-1-0' holds what a killed run was about to replace");
    ck_assert_uint_eq(tree_count(in(s, ".etch-old-1-0")), 4 + 2);
    ck_assert_int_eq(mkdir(in(s, ".etch-1-0"), 0700), 0);
    ck_assert_int_eq(mkdir(in(s, ".etch-1-0/old"), 0700), 0);
    ck_assert_int_eq(rename(in(s, ".etch-old-1-0"), in(s, ".etch-1-0/old/x")), 0);
    emit_and_hear(s, &options, ".etch-1-0/old' holds what a killed run was about to replace");
    ck_assert_uint_eq(tree_count(in(s, ".etch-1-0/old/x")), 4 + 2);
}

/* Locks say who is alive. */
SCENE_TEST(the_folder_of_a_run_at_work_is_left_alone)
{
    ck_assert_int_eq(mkdir(in(s, ".etch-1-0"), 0700), 0);
    ck_assert_int_eq(mkdir(in(s, ".etch-mine"), 0700), 0);
    ck_assert_int_eq(symlink("elsewhere", in(s, ".etch-2-0")), 0);
    const int file = open(in(s, ".etch-1-0"), O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(flock(file, LOCK_EX), 0);
    emit_to(s, "out", s->small);
    ck_assert_uint_eq(tree_count(s->place), 4);
    close(file);
}

/* Somebody who looks at a folder while it is replaced, again and again, sees a run at any moment. */
typedef struct looking {
    const char *manifest;
    atomic_int ends;
    size_t looks, misses;
} looking;

static void *look(void *data)
{
    looking *l = data;
    while (!atomic_load(&l->ends)) {
        l->looks++;
        l->misses += access(l->manifest, R_OK) != 0;
    }
    return NULL;
}

SCENE_TEST(a_run_is_there_while_it_is_replaced)
{
    looking l = {.manifest = in(s, "out/manifest.json")};
    pthread_t other;
    emit_to(s, "out", s->small);
    ck_assert_int_eq(pthread_create(&other, NULL, look, &l), 0);
    for (int i = 0; i < 20; i++)
        emit_to(s, "out", i % 2 ? s->small : s->large);
    atomic_store(&l.ends, 1);
    pthread_join(other, NULL);
    ck_assert_uint_gt(l.looks, 100);
    ck_assert_uint_eq(l.misses, 0);
}

SCENE_TEST(a_folder_that_is_replaced_keeps_permissions_and_group)
{
    const gid_t group = 12345; /* only root gives files to any group */
    struct stat info;
    emit_to(s, "out", s->small);
    ck_assert_int_eq(chmod(in(s, "out"), 0751), 0);
    const bool can_give = chown(in(s, "out"), (uid_t)-1, group) == 0 && chmod(in(s, "out"), 02751) == 0;
    emit_to(s, "out", s->large);
    ck_assert_int_eq(stat(in(s, "out"), &info), 0);
    ck_assert_int_eq(info.st_mode & 07777, can_give ? 02751 : 0751);
    ck_assert(!can_give || info.st_gid == group);
    ck_assert_int_eq(stat(in(s, "out/tiny.0.et"), &info), 0);
    ck_assert(!can_give || info.st_gid == group);
}

/* The folder that one stands in cannot be renamed: its files are put into it. */
SCENE_TEST(the_current_folder_is_filled)
{
    char before[4096];
    etch_emit_options options = emitting_options(".");
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    emit_to(s, "expected", s->small);
    ck_assert_int_eq(mkdir(in(s, "out"), 0777), 0);
    ck_assert_int_eq(chdir(in(s, "out")), 0);
    emitting_works(s->arena, s->large, &options);
    ck_assert_uint_eq(tree_count("."), 16 + 2);
    emitting_works(s->arena, s->small, &options);
    const char *found = tree_snapshot(s->arena, ".");
    ck_assert_int_eq(chdir(in(s, "expected")), 0);
    ck_assert_str_eq(found, tree_snapshot(s->arena, "."));
    ck_assert_int_eq(chdir(before), 0);
}

/* ---- targets that belong to others --------------------------------------------------------------------- */

SCENE_TEST(files_of_others_are_refused)
{
    ck_assert_int_eq(mkdir(in(s, "out"), 0777), 0);
    tree_write(in(s, "out/notes.txt"), "mine");
    etch_emit_options options = to(s, "out");
    refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_TAKEN, "'notes.txt'");
    tree_write(in(s, "out/manifest.json"),
               "{\"format\": \"other\", \"ranks\": 4, \"traces\": {\"name\": \"tiny\"}}");
    refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_TAKEN, "'manifest.json'");
    tree_write(in(s, "out/manifest.json"), "[1, 2");
    refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_TAKEN, "--force");
}

SCENE_TEST(a_file_beside_an_earlier_run_is_refused)
{
    static const char *const names[] = {"network.yml",
                                        "tiny.4.et",
                                        "tiny.00.et",
                                        "tiny.-1.et",
                                        "tiny.et",
                                        "other.0.et",
                                        "tiny.1.et~",
                                        "tiny.1x.et",
                                        "tiny..et",
                                        ".hidden",
                                        "tiny.99999999999999999999.et"};
    etch_emit_options options = to(s, "out");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        emit_to(s, "out", s->small);
        const char *file = in(s, etch_text(s->arena, "out/%s", names[i]));
        tree_write(file, "mine");
        refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_TAKEN, names[i]);
        ck_assert_int_eq(unlink(file), 0);
    }
    ck_assert_int_eq(mkdir(in(s, "out/logs"), 0777), 0);
    refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_TAKEN, "'logs'");
}

SCENE_TEST(force_leaves_files_of_others_alone)
{
    size_t length;
    etch_emit_options options = to(s, "out");
    emit_to(s, "out", s->large);
    tree_write(in(s, "out/network.yml"), "mine");
    ck_assert_int_eq(mkdir(in(s, "out/logs"), 0777), 0);
    tree_write(in(s, "out/logs/run"), "mine too");
    options.force = true;
    emitting_works(s->arena, s->small, &options);
    ck_assert_uint_eq(tree_count(in(s, "out")), 4 + 2 + 2); /* no trace of ranks 4 to 15 */
    ck_assert_str_eq(tree_read(s->arena, in(s, "out/network.yml"), &length), "mine");
    ck_assert_str_eq(tree_read(s->arena, in(s, "out/logs/run"), &length), "mine too");
    emit_to(s, "expected", s->small);
    const char *manifest = tree_read(s->arena, in(s, "expected/manifest.json"), &length);
    ck_assert_str_eq(tree_read(s->arena, in(s, "out/manifest.json"), &length), manifest);
    ck_assert_uint_eq(tree_count(s->place), 2);
}

/* Files for ASTRA-sim are a starting point: what their owner has made of them is nobody else's. */
SCENE_TEST(an_edited_machine_is_never_touched)
{
    static const char *const names[] = {"network.yml",    "system.json",    "memory.json", "astra-sim.sh",
                                        "network-1d.yml", "system-1d.json", "machine.etch"};
    size_t length;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *folder = etch_text(s->arena, "out%u", (unsigned)i);
        const char *file = in(s, etch_text(s->arena, "%s/%s", folder, names[i]));
        etch_emit_options options = to(s, folder);
        options.astra_sim = true;
        emitting_works(s->arena, s->large, &options);
        emitting_works(s->arena, s->large, &options); /* as it was written, it is replaced */
        tree_write(file, "mine");
        refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_TAKEN, "which is not as etch wrote it");
        options.astra_sim = false;
        refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_TAKEN, "which is not as etch wrote it");
        options.force = true;
        options.astra_sim = true;
        etch_diags *diags = etch_diags_new(s->arena);
        etch_emit_result result;
        ck_assert_int_eq(etch_emit(etch_arena_mem(s->arena), s->small, &options, diags, &result), ETCH_OK);
        ck_assert_int_eq(etch_diags_first(diags)->code, ETCH_E_OUTPUT_KEPT);
        ck_assert_uint_eq(tree_count(in(s, folder)), result.files + 1);
        ck_assert_str_eq(tree_read(s->arena, file, &length), "mine");
        options.astra_sim = false;
        emitting_works(s->arena, s->small, &options);
        ck_assert_str_eq(tree_read(s->arena, file, &length), "mine");
        ck_assert_uint_eq(tree_count(in(s, folder)), 4 + 2 + 1);
    }
}

SCENE_TEST(force_changes_nothing_where_it_is_not_needed)
{
    etch_emit_options options = to(s, "out");
    options.force = true;
    emitting_works(s->arena, s->large, &options);
    emitting_works(s->arena, s->small, &options);
    ck_assert_uint_eq(tree_count(in(s, "out")), 4 + 2);
}

SCENE_TEST(a_folder_in_the_place_of_a_file_is_refused_even_by_force)
{
    etch_emit_options options = to(s, "out");
    options.force = true;
    ck_assert_int_eq(mkdir(in(s, "out"), 0777), 0);
    ck_assert_int_eq(mkdir(in(s, "out/tiny.3.et"), 0777), 0);
    refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_TAKEN, "'tiny.3.et'");
}

SCENE_TEST(what_is_no_folder_is_refused)
{
    etch_emit_options options = to(s, "out");
    tree_write(in(s, "out"), "mine");
    refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_KIND, "is a file");
    options.force = true;
    refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_KIND, "is a file");
    ck_assert_int_eq(mkdir(in(s, "real"), 0777), 0);
    ck_assert_int_eq(symlink("real", in(s, "link")), 0);
    options = to(s, "link/");
    refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_KIND, "is a symbolic link");
    options.folder = in(s, "a\nb");
    refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_KIND, "no name");
    options.folder = "";
    refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_KIND, "no name");
}

SCENE_TEST(names_of_traces_are_names_of_files)
{
    static const char *const names[] = {"", ".tiny", "a/b", "a\nb", "\x1b[31m"};
    etch_emit_options options = to(s, "out");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        options.name = names[i];
        refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_NAME, "cannot be named");
    }
    char name[256] = {0};
    memset(name, 'n', 241);
    options.name = name;
    emitting_works(s->arena, s->small, &options);
    name[241] = 'n';
    refuses(s, &options, ETCH_EINPUT, ETCH_E_OUTPUT_NAME, "cannot be named");
}

/* ---- what ASTRA-sim is told ---------------------------------------------------------------------------- */

/* Lists of several entries become rings for groups of some ranks; one entry is the first dimension for groups
 * of all, unless it says that it means all ranks. */
SCENE_TEST(an_all_to_all_is_no_ring)
{
    static const struct {
        uint64_t families[2];
        const char *expected;
    } rows[] = {{{1, 0}, "\"all-to-all-implementation\": [\"direct1\"]"},
                {{3, 0}, "\"all-to-all-implementation\": [\"direct1\", \"direct1\"]"},
                {{1, 3}, "\"all-to-all-implementation\": [\"oneDirect1\"]"}};
    size_t length;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const job_recipe recipe = {.mesh = {2, 4},
                                   .families = {rows[i].families[0], rows[i].families[1]},
                                   .classes = 1,
                                   .collectives = 40,
                                   .computations = 4,
                                   .seed = 5};
        const char *folder = etch_text(s->arena, "a%u", (unsigned)i);
        etch_emit_options options = to(s, folder);
        options.astra_sim = true;
        emitting_works(s->arena, job_make(s->arena, &recipe), &options);
        const char *text = tree_read(s->arena, in(s, etch_text(s->arena, "%s/system.json", folder)), &length);
        ck_assert_msg(strstr(text, rows[i].expected), "%s", text);
        text = tree_read(s->arena, in(s, etch_text(s->arena, "%s/system-1d.json", folder)), &length);
        ck_assert_msg(strstr(text, rows[0].expected), "%s", text);
    }
}

/* ---- faults -------------------------------------------------------------------------------------------- */

SCENE_TEST(folders_that_cannot_be_created)
{
    etch_emit_options options = to(s, "file/out");
    tree_write(in(s, "file"), "mine");
    refuses(s, &options, ETCH_EIO, ETCH_E_OUTPUT_IO, "cannot create folder");
    options = to(s, "file/deeper/out");
    refuses(s, &options, ETCH_EIO, ETCH_E_OUTPUT_IO, "cannot create folder");
    options.folder = "/proc/etch/out";
    refuses(s, &options, ETCH_EIO, ETCH_E_OUTPUT_IO, "cannot create folder '/proc/etch'");
    char *name = etch_alloc(s->arena, 5000);
    memset(name, 'n', 4999);
    options = to(s, name);
    refuses(s, &options, ETCH_EIO, ETCH_E_OUTPUT_IO, "too long");
    memset(name + 300, 0, 4699); /* the hidden folder can be created, this one cannot */
    options = to(s, etch_text(s->arena, "new/%s", name));
    refuses(s, &options, ETCH_EIO, ETCH_E_OUTPUT_IO, "too long");
}

SCENE_TEST(a_parent_that_may_not_be_written)
{
    etch_emit_options options = to(s, "closed/out");
    uid_t user = geteuid();
    ck_assert_int_eq(mkdir(in(s, "closed"), 0555), 0);
    ck_assert_int_eq(chmod(s->place, 0755), 0);
    if (user == 0) /* to whom everything is open */
        ck_assert_int_eq(seteuid(65534), 0);
    emitting_fails(s->arena, s->large, &options, ETCH_EIO, ETCH_E_OUTPUT_IO, "Permission denied");
    ck_assert_int_eq(seteuid(user), 0);
    ck_assert_uint_eq(tree_count(in(s, "closed")), 0);
}

/* Runs with a limit of the process that makes files fail, and says whether it ended well. */
static bool runs_within(const scene *s, const etch_emit_options *options, int resource, rlim_t limit)
{
    etch_emit_result result;
    etch_diags *diags = etch_diags_new(s->arena);
    struct rlimit before, during;
    ck_assert_int_eq(getrlimit(resource, &before), 0);
    during = before;
    during.rlim_cur = limit;
    ck_assert_int_eq(setrlimit(resource, &during), 0);
    etch_status status = etch_emit(etch_arena_mem(s->arena), s->large, options, diags, &result);
    ck_assert_int_eq(setrlimit(resource, &before), 0);
    if (status == ETCH_OK)
        return true;
    ck_assert_int_eq(status, ETCH_EIO);
    ck_assert_uint_eq(etch_error_count(diags), 1);
    ck_assert_int_eq(etch_diags_first(diags)->code, ETCH_E_OUTPUT_IO);
    return false;
}

/* Files of `limit` bytes at most: the traces fail first or the tables, in the middle or at their border. */
SCENE_TEST(files_that_become_too_large)
{
    signal(SIGXFSZ, SIG_IGN);
    etch_emit_options options = to(s, "new/out"), replacing = to(s, "old");
    emit_to(s, "old", s->small);
    const char *before = tree_snapshot(s->arena, s->place);
    bool works = false;
    for (rlim_t limit = 0; !works; limit += limit / 8 + 1) {
        works = runs_within(s, &options, RLIMIT_FSIZE, limit);
        if (works)
            break;
        ck_assert_str_eq(tree_snapshot(s->arena, s->place), before);
        ck_assert(!runs_within(s, &replacing, RLIMIT_FSIZE, limit));
        ck_assert_str_eq(tree_snapshot(s->arena, s->place), before);
    }
    ck_assert_uint_eq(tree_count(in(s, "new/out")), 16 + 2);
}

SCENE_TEST(too_few_open_files)
{
    etch_emit_options options = to(s, "new/out"), replacing = to(s, "old");
    options.threads = replacing.threads = 1; /* so that each limit has one outcome */
    emit_to(s, "old", s->small);
    const char *before = tree_snapshot(s->arena, s->place);
    int first = dup(0); /* the lowest number that is free */
    close(first);
    for (int more = 0; !runs_within(s, &options, RLIMIT_NOFILE, (rlim_t)(first + more)); more++) {
        ck_assert_str_eq(tree_snapshot(s->arena, s->place), before);
        ck_assert(!runs_within(s, &replacing, RLIMIT_NOFILE, (rlim_t)(first + more)));
        ck_assert_str_eq(tree_snapshot(s->arena, s->place), before);
    }
    ck_assert_uint_eq(tree_count(in(s, "new/out")), 16 + 2);
}

typedef struct starving {
    const scene *s;
    const etch_emit_options *options;
} starving;

static etch_status emit_starving(void *data)
{
    const starving *run = data;
    etch_emit_result result;
    etch_mem *mem = etch_arena_mem(run->s->arena);
    return etch_emit(mem, run->s->large, run->options, etch_diags_new(etch_arena_new(mem)), &result);
}

SCENE_TEST(memory_that_runs_out)
{
    etch_mem *mem = etch_arena_mem(s->arena);
    etch_emit_options options = to(s, "new/out");
    starving run = {s, &options};
    const char *before = tree_snapshot(s->arena, s->place);
    size_t failures = 0;
    for (size_t n = 1;; n++) {
        etch_mem_fail_after(mem, n);
        etch_status status = etch_guard(mem, emit_starving, &run);
        etch_mem_fail_after(mem, 0);
        if (status == ETCH_OK)
            break;
        ck_assert_int_eq(status, ETCH_ENOMEM);
        ck_assert_str_eq(tree_snapshot(s->arena, s->place), before);
        failures++;
    }
    ck_assert_uint_gt(failures, 0);
    ck_assert_uint_eq(tree_count(in(s, "new/out")), 16 + 2);
}

/* ---- cancelling ---------------------------------------------------------------------------------------- */

SCENE_TEST(a_cancelled_run_leaves_nothing)
{
    atomic_int cancel = 1;
    etch_emit_options options = to(s, "new/out");
    options.cancel = &cancel;
    refuses(s, &options, ETCH_ELIMIT, ETCH_E_OUTPUT_CANCELLED, "cancelled");
    emit_to(s, "old", s->small);
    options.folder = in(s, "old");
    refuses(s, &options, ETCH_ELIMIT, ETCH_E_OUTPUT_CANCELLED, "cancelled");
    cancel = 0;
    emitting_works(s->arena, s->large, &options);
}

typedef struct interruption {
    const char *folder;
    atomic_int cancel;
} interruption;

/* Waits for the run to have begun, as a person at a terminal would. */
static void *interrupt(void *data)
{
    interruption *when = data;
    while (tree_count(when->folder) == 0)
        continue;
    atomic_store(&when->cancel, 1);
    return NULL;
}

/* A run that is cancelled at any moment is complete or leaves nothing. */
SCENE_TEST(a_run_is_cancelled_at_any_moment)
{
    job_recipe recipe = {.mesh = {512, 2}, .families = {2}, .classes = 1, .collectives = 50, .seed = 8};
    recipe.computations = 500;
    const etch_job *job = job_make(s->arena, &recipe);
    for (int round = 0; round < 5; round++) {
        pthread_t other;
        etch_emit_result result;
        interruption when = {.folder = s->place};
        etch_emit_options options = to(s, "out");
        options.cancel = &when.cancel;
        ck_assert_int_eq(pthread_create(&other, NULL, interrupt, &when), 0);
        etch_status status =
            etch_emit(etch_arena_mem(s->arena), job, &options, etch_diags_new(s->arena), &result);
        pthread_join(other, NULL);
        ck_assert(status == ETCH_OK || status == ETCH_ELIMIT);
        ck_assert_uint_eq(tree_count(s->place), status == ETCH_OK ? 1 : 0);
        if (status == ETCH_OK)
            tree_remove(options.folder);
    }
}

Suite *etch_suite(void)
{
    Suite *suite = suite_create("emit.folder");
    ETCH_ADD_TESTS(
        suite, test_a_missing_folder_is_created_with_its_parents, test_slashes_at_the_end_mean_nothing,
        test_an_empty_folder_is_used_and_keeps_its_permissions, test_an_earlier_run_is_replaced_as_a_whole,
        test_an_earlier_run_under_another_name_is_replaced, test_what_a_killed_run_left_is_removed_and_named,
        test_the_only_copy_of_an_earlier_run_is_kept_and_named,
        test_the_folder_of_a_run_at_work_is_left_alone, test_a_run_is_there_while_it_is_replaced,
        test_a_folder_that_is_replaced_keeps_permissions_and_group,

        test_the_current_folder_is_filled);
    ETCH_ADD_TESTS(suite, test_files_of_others_are_refused, test_a_file_beside_an_earlier_run_is_refused,
                   test_force_leaves_files_of_others_alone, test_an_edited_machine_is_never_touched,
                   test_an_all_to_all_is_no_ring, test_force_changes_nothing_where_it_is_not_needed,
                   test_a_folder_in_the_place_of_a_file_is_refused_even_by_force,
                   test_what_is_no_folder_is_refused, test_names_of_traces_are_names_of_files);
    ETCH_ADD_TESTS(suite, test_folders_that_cannot_be_created, test_a_parent_that_may_not_be_written,
                   test_files_that_become_too_large, test_too_few_open_files, test_memory_that_runs_out,
                   test_a_cancelled_run_leaves_nothing, test_a_run_is_cancelled_at_any_moment);
    return suite;
}
