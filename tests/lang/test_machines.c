/* Devices and clusters as text that reads back as the same, and numbers that are read exactly. */
#include "specs.h"
#include "suite.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *printed(const etch_spec *spec, etch_arena *arena)
{
    const etch_device *const *devices;
    const etch_cluster *const *clusters;
    const uint32_t count = etch_spec_devices(spec, &devices),
                   cluster_count = etch_spec_clusters(spec, &clusters);
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    for (uint32_t i = 0; i < count; i++)
        etch_device_print(&out, devices[i]);
    for (uint32_t i = 0; i < cluster_count; i++)
        etch_cluster_print(&out, clusters[i]);
    return out.text;
}

static const char *read_again(etch_arena *arena, const char *text)
{
    const spec_scene scene = specs_load(arena, text);
    ck_assert_msg(scene.spec != NULL, "%s\n%s", text, specs_messages(&scene));
    specs_end(&scene);
    return printed(scene.spec, arena);
}

static void expect_printed(etch_arena *arena, const char *text, const char *expected)
{
    const char *found = read_again(arena, text);
    specs_expect("machines", found, expected);
    specs_expect("machines, read again", read_again(arena, found), expected);
}

static void print_some(etch_arena *arena)
{
    expect_printed(arena, "device a { }\n", "device a {\n}\n");
    expect_printed(
        arena,
        "device a { memory = 80 GiB; passes = 3, slowdown = 5/4, bandwidth = 3.35 TB/s\n"
        "other = 66.9 TFLOP/s\n"
        "products f8 = 2*989.4 TFLOP/s, bf16 = 0.9894 PFLOP/s\n"
        "fit elementwise overhead = 2900 ns, memory = 3/4\n"
        "array columns = 64, rows = 2^7, dataflow = either; clock = 940 MHz }\n"
        "cluster b { level y { devices = (2, 4), kind = torus, latency = 0.5 us; bandwidth = 7*64 GB/s\n"
        "oversubscribed = 3/2; share = 2, use = 6 }\n"
        "level z { kind = switch }; device = a, eager = true }\n",
        "device a {\n"
        "  products f8 = 1978.8 TFLOP/s, bf16 = 989.4 TFLOP/s\n"
        "  other = 66.9 TFLOP/s\n"
        "  memory = 85.89934592 GB\n"
        "  bandwidth = 3350 GB/s\n"
        "  slowdown = 1.25\n"
        "  passes = 3\n"
        "  array rows = 128, columns = 64, dataflow = either\n"
        "  clock = 0.94 GHz\n"
        "  fit elementwise overhead = 2.9 us, memory = 0.75\n"
        "}\n"
        "cluster b {\n"
        "  device = a\n"
        "  eager = true\n"
        "  level y {\n"
        "    devices = (2, 4)\n"
        "    use = 6\n"
        "    kind = torus\n"
        "    bandwidth = 448 GB/s\n"
        "    share = 2\n"
        "    oversubscribed = 1.5\n"
        "    latency = 0.5 us\n"
        "    reduces = false\n"
        "  }\n"
        "  level z {\n"
        "    kind = switch\n"
        "    reduces = false\n"
        "  }\n"
        "}\n");
}

START_TEST(machines_are_printed_as_they_are_read)
{
    etch_with_arena(print_some);
}
END_TEST

static void reprint_shipped(etch_arena *arena)
{
    const char *folder = etch_text(arena, "%s/machines", getenv("ETCH_SOURCE_DIR"));
    DIR *list = opendir(folder);
    int count = 0;
    ck_assert_ptr_nonnull(list);
    for (const struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        const char *why;
        char *text;
        size_t length;
        if (!strstr(entry->d_name, ".etch"))
            continue;
        count++;
        const char *path = etch_text(arena, "%s/%s", folder, entry->d_name);
        ck_assert_int_eq(etch_read_file(arena, path, 1 << 20, &text, &length, &why), ETCH_OK);
        text = strstr(text, "etch 1\n") + strlen("etch 1\n"); /* which is put in front of every text */
        const char *once = read_again(arena, text);
        specs_expect(path, read_again(arena, once), once);
    }
    closedir(list);
    ck_assert_int_gt(count, 0);
}

START_TEST(shipped_machines_read_back_as_the_same)
{
    etch_with_arena(reprint_shipped);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("machines");
    ETCH_ADD_TESTS(suite, machines_are_printed_as_they_are_read, shipped_machines_read_back_as_the_same);
    return suite;
}
