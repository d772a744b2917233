/* fuzz_unpack INPUT FOLDER: writes the files of an input of the target `spec` into the folder, and prints the
 * path of the spec with the options of etch that the input asks for, one word a line:
 *
 *     fuzz_unpack crash-1234 /tmp/crash | xargs etch lower --dry-run */
#include "bundle.h"

#include <stdio.h>
#include <stdlib.h>

static uint8_t *read_all(const char *path, size_t *size)
{
    enum { LARGEST = 16 << 20 };
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = file ? malloc(LARGEST) : NULL;
    if (bytes)
        *size = fread(bytes, 1, LARGEST, file);
    if (file)
        fclose(file);
    return bytes;
}

int main(int argc, char **argv)
{
    static bundle b;
    size_t size = 0;
    if (argc != 3) {
        fputs("usage: fuzz_unpack INPUT FOLDER\n", stderr);
        return EXIT_FAILURE;
    }
    uint8_t *bytes = read_all(argv[1], &size);
    if (!bytes) {
        fprintf(stderr, "fuzz_unpack: cannot read %s\n", argv[1]);
        return EXIT_FAILURE;
    }
    bundle_split(&b, bytes, size);
    const bool written = bundle_write(&b, argv[2]);
    if (written)
        printf("%s/%s\n", argv[2], b.files[0].name);
    else
        fprintf(stderr, "fuzz_unpack: cannot write into %s\n", argv[2]);
    for (size_t i = 0; written && i < BUNDLE_OPTIONS; i++)
        if (b.options[i][0])
            printf("--%s\n%s\n", bundle_option_name((bundle_option)i), b.options[i]);
    free(bytes);
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}
