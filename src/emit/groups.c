/* comm_group.json: one group per line. Only digits are written, so nothing has to be escaped. */
#include "emit/emit_int.h"

#include <stdio.h>
#include <string.h>

/* Collects text and passes it on, or only counts. */
typedef struct sink {
    /* NULL: only counts */
    etch_put put;
    void *data;
    int error;
    uint64_t size;
    size_t used;
    char buffer[1 << 15];
} sink;

static void sink_flush(sink *out)
{
    if (out->put && out->error == 0)
        out->error = out->put(out->data, out->buffer, out->used);
    out->size += out->used;
    out->used = 0;
}

static void sink_add(sink *out, const char *text, size_t length)
{
    if (length > sizeof out->buffer - out->used)
        sink_flush(out);
    memcpy(out->buffer + out->used, text, length);
    out->used += length;
}

static void sink_puts(sink *out, const char *text)
{
    sink_add(out, text, strlen(text));
}

static void sink_number(sink *out, uint32_t number)
{
    char text[16];
    int length = snprintf(text, sizeof text, "%u", (unsigned)number);
    sink_add(out, text, (size_t)length);
}

static void put_groups(const etch_job *job, const etch_group_family *family, const char **separator,
                       sink *out)
{
    for (uint32_t group = 0; !family->dimensions && group < family->count; group++) {
        sink_puts(out, *separator);
        sink_puts(out, "\n  \"");
        sink_number(out, family->first_id + group);
        sink_puts(out, "\": [");
        for (uint32_t k = 0; k < family->size; k++) {
            if (k > 0)
                sink_puts(out, ", ");
            sink_number(out, etch_group_rank(job, family, group, k));
        }
        sink_puts(out, "]");
        *separator = ",";
    }
}

int etch_groups_put(const etch_job *job, etch_put put, void *data, uint64_t *size)
{
    sink out = {.put = put, .data = data};
    const char *separator = "";
    sink_puts(&out, "{");
    for (uint32_t i = 0; i < job->family_count; i++)
        put_groups(job, &job->families[i], &separator, &out);
    sink_puts(&out, etch_group_count(job) > 0 ? "\n}\n" : "}\n");
    sink_flush(&out);
    *size = out.size;
    return out.error;
}

int etch_groups_write(const etch_job *job, int folder)
{
    int file;
    uint64_t size;
    int error = etch_file_create(folder, ETCH_CHAKRA_GROUP_FILE, &file);
    if (error != 0)
        return error;
    error = etch_groups_put(job, etch_put_into_file, &file, &size);
    const int close_error = etch_file_close(file);
    return error != 0 ? error : close_error;
}

uint32_t etch_group_count(const etch_job *job)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->family_count; i++)
        count += job->families[i].dimensions ? 0 : job->families[i].count;
    return count;
}

uint32_t etch_group_count_along(const etch_job *job)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->family_count; i++)
        count += job->families[i].dimensions ? job->families[i].count : 0;
    return count;
}
