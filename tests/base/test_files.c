/* Reading files: what is read is complete, what is refused is named. */
#define _POSIX_C_SOURCE 200809L

#include "suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/etch-files-XXXXXX";

static void make_folder(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    ck_assert_int_eq(rmdir(folder), 0);
}

static const char *write_file(etch_arena *arena, const char *name, const char *text, size_t length)
{
    const char *path = etch_text(arena, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

static void whole_files_are_read(etch_arena *arena)
{
    static const size_t sizes[] = {0, 1, 4095, 4096, 1000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *content = etch_alloc(arena, sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            content[k] = (char)(k * 31 + k / 256);
        const char *path = write_file(arena, "file", content, sizes[i]);
        char *text;
        size_t length;
        const char *why;
        /* a limit of exactly the size is enough */
        ck_assert_int_eq(etch_read_file(arena, path, sizes[i], &text, &length, &why), ETCH_OK);
        ck_assert_uint_eq(length, sizes[i]);
        ck_assert_int_eq(memcmp(text, content, length), 0);
        ck_assert_int_eq(text[length], 0);
        unlink(path);
    }
}

START_TEST(test_whole_files)
{
    etch_with_arena(whole_files_are_read);
}
END_TEST

static void expect_refusal(etch_arena *arena, const char *path, const char *reason)
{
    char *text;
    size_t length;
    const char *why = NULL;
    ck_assert_int_eq(etch_read_file(arena, path, 10, &text, &length, &why), ETCH_EIO);
    ck_assert_str_eq(why, reason);
}

static void others_are_refused(etch_arena *arena)
{
    const char *large = write_file(arena, "large", "eleven bytes", 11);
    const char *pipe = etch_text(arena, "%s/pipe", folder);
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    expect_refusal(arena, folder, "is a directory");
    expect_refusal(arena, etch_text(arena, "%s/missing", folder), "no such file");
    expect_refusal(arena, etch_text(arena, "%s/file", large), "no such file");
    expect_refusal(arena, large, "is too large");
    expect_refusal(arena, pipe, "is not a regular file"); /* without waiting for a writer */
    expect_refusal(arena, "/dev/zero", "is not a regular file");
    expect_refusal(arena, "/proc/self/status", "is too large"); /* says of itself that it is empty */
    unlink(large);
    unlink(pipe);
}

START_TEST(test_refusals)
{
    etch_with_arena(others_are_refused);
}
END_TEST

static void files_of_unknown_size_are_read(etch_arena *arena)
{
    char *text;
    size_t length;
    const char *why;
    ck_assert_int_eq(etch_read_file(arena, "/proc/self/status", 1 << 20, &text, &length, &why), ETCH_OK);
    ck_assert_ptr_nonnull(strstr(text, "Threads:"));
    ck_assert_uint_eq(strlen(text), length);
}

START_TEST(test_unknown_size)
{
    etch_with_arena(files_of_unknown_size_are_read);
}
END_TEST

typedef struct job {
    etch_mem *mem;
    const char *path;
} job;

static etch_status read_it(void *data)
{
    const job *j = data;
    char *text;
    size_t length;
    const char *why;
    return etch_read_file(etch_arena_new(j->mem), j->path, 1 << 20, &text, &length, &why);
}

static int lowest_free_descriptor(void)
{
    int file = open("/dev/null", O_RDONLY);
    ck_assert_int_ge(file, 0);
    close(file);
    return file;
}

static void the_file_is_closed_when_memory_is_out(etch_arena *arena)
{
    char *content = etch_alloc(arena, 100000);
    job j = {.mem = etch_mem_new(50000), .path = write_file(arena, "file", content, 100000)};
    int before = lowest_free_descriptor();
    ck_assert_int_eq(etch_guard(j.mem, read_it, &j), ETCH_ELIMIT);
    ck_assert_int_eq(lowest_free_descriptor(), before);
    etch_mem_free(j.mem);
    unlink(j.path);
}

START_TEST(test_out_of_memory)
{
    etch_with_arena(the_file_is_closed_when_memory_is_out);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("files");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, make_folder, remove_folder);
    tcase_add_test(tcase, test_whole_files);
    tcase_add_test(tcase, test_refusals);
    tcase_add_test(tcase, test_unknown_size);
    tcase_add_test(tcase, test_out_of_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}
