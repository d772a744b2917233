#define _POSIX_C_SOURCE 200809L

#include "bundle.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const option_names[BUNDLE_OPTIONS] = {"config", "plan", "run", "set"};

const char *bundle_option_name(bundle_option option)
{
    return option_names[option];
}

/* ---- splitting ----------------------------------------------------------------------------------------- */

/* Of the line `#WORD VALUE` the value as text; false for every other line, and for values that do not fit. */
static bool value_of(const uint8_t *line, size_t length, const char *word, char *value, size_t room)
{
    const size_t head = strlen(word) + 2;
    if (length <= head || line[0] != '#' || memcmp(line + 1, word, head - 2) != 0 || line[head - 1] != ' ' ||
        length - head >= room || memchr(line, '\0', length))
        return false;
    memcpy(value, line + head, length - head);
    value[length - head] = '\0';
    return true;
}

static bool is_file_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    return name[0] != '.' && name[0] != '-' && strspn(name, allowed) == strlen(name);
}

static void begin_file(bundle *b, const char *name, const uint8_t *text)
{
    bundle_file *file = &b->files[b->count++];
    memcpy(file->name, name, strlen(name) + 1);
    file->text = text;
    file->size = 0;
}

/* `next` is behind the line. */
static void read_line(bundle *b, const uint8_t *line, size_t length, const uint8_t *next)
{
    char name[BUNDLE_NAME];
    if (b->count < BUNDLE_FILES && value_of(line, length, "file", name, sizeof name) && is_file_name(name)) {
        begin_file(b, name, next);
        return;
    }
    for (size_t i = 0; b->count == 1 && i < BUNDLE_OPTIONS; i++)
        value_of(line, length, option_names[i], b->options[i], sizeof b->options[i]);
    b->files[b->count - 1].size = (size_t)(next - b->files[b->count - 1].text);
}

void bundle_split(bundle *b, const uint8_t *data, size_t size)
{
    memset(b, 0, sizeof *b);
    begin_file(b, "spec.etch", data);
    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        const size_t length = end ? (size_t)(end - (data + at)) : size - at;
        const size_t next = end ? at + length + 1 : size;
        read_line(b, data + at, length, data + next);
        at = next;
    }
}

/* ---- files --------------------------------------------------------------------------------------------- */

static void path_of(const bundle_file *file, const char *folder, char path[4096])
{
    snprintf(path, 4096, "%s/%s", folder, file->name);
}

bool bundle_write(const bundle *b, const char *folder)
{
    for (size_t i = 0; i < b->count; i++) {
        char path[4096];
        path_of(&b->files[i], folder, path);
        FILE *file = fopen(path, "wb");
        if (!file)
            return false;
        const bool whole = fwrite(b->files[i].text, 1, b->files[i].size, file) == b->files[i].size;
        if (fclose(file) != 0 || !whole)
            return false;
    }
    return true;
}

void bundle_remove(const bundle *b, const char *folder)
{
    for (size_t i = 0; i < b->count; i++) {
        char path[4096];
        path_of(&b->files[i], folder, path);
        unlink(path);
    }
    rmdir(folder);
}
