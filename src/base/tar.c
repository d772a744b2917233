/* Archives: files as one stream, as POSIX says (ustar), and for what that has no room, pax records. Nothing
 * in them depends on the clock, the user or the machine. */
#define _GNU_SOURCE /* poll, O_CLOEXEC */

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what stands before a file ------------------------------------------------------------------------- */

/* Of a header: where fields are, and how long. */
enum {
    NAME_BYTES = 100,
    LINK_AT = 157,
    SIZE_AT = 124,
    SIZE_DIGITS = 11,
    SUM_AT = 148,
    SUM_BYTES = 8,
    KIND_AT = 156
};
#define MOST_SIZE ((UINT64_C(1) << 3 * SIZE_DIGITS) - 1)
#define RECORDS_NAME "././@PaxHeader"

static void put_octal(unsigned char *at, unsigned digits, uint64_t number)
{
    for (unsigned i = digits; i-- > 0; number >>= 3)
        at[i] = (unsigned char)('0' + (number & 7));
}

/* The sum of all bytes, with that of the sum itself as blanks. */
static void put_sum(unsigned char *block)
{
    uint64_t sum = 0;
    memset(block + SUM_AT, ' ', SUM_BYTES);
    for (size_t i = 0; i < ETCH_TAR_BLOCK; i++)
        sum += block[i];
    put_octal(block + SUM_AT, 6, sum);
    block[SUM_AT + 6] = '\0';
}

/* A header; what is too long for it is cut, and said by records before it. */
static void put_header(unsigned char *block, char kind, const char *name, uint64_t size, const char *link)
{
    static const struct {
        size_t at;
        const char *text;
    } fixed[] = {{100, "0000644"}, {108, "0000000"}, {116, "0000000"}, {136, "00000000000"},
                 {257, "ustar"},   {263, "00"},      {329, "0000000"}, {337, "0000000"}};
    memset(block, 0, ETCH_TAR_BLOCK);
    memcpy(block, name, strnlen(name, NAME_BYTES));
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        memcpy(block + fixed[i].at, fixed[i].text, strlen(fixed[i].text));
    put_octal(block + SIZE_AT, SIZE_DIGITS, size > MOST_SIZE ? 0 : size);
    block[KIND_AT] = (unsigned char)kind;
    if (link)
        memcpy(block + LINK_AT, link, strnlen(link, NAME_BYTES));
    put_sum(block);
}

/* "LENGTH key=value\n", whose length counts its own digits. */
static size_t put_record(char *at, size_t room, const char *key, const char *value)
{
    const size_t rest = strlen(key) + strlen(value) + 3;
    size_t length = rest + 1;
    while ((size_t)snprintf(NULL, 0, "%zu", length) + rest != length)
        length++;
    snprintf(at, room, "%zu %s=%s\n", length, key, value);
    return length;
}

/* Has a header room for a name, as every reader understands it? */
static bool fits(const char *name)
{
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at >= 0x80)
            return false;
    return strlen(name) <= NAME_BYTES;
}

size_t etch_tar_head(const char *name, uint64_t size, const char *link, unsigned char head[ETCH_TAR_HEAD])
{
    enum { RECORDS = 2 * ETCH_TAR_BLOCK };
    char records[RECORDS + 1] = "", number[24];
    size_t length = 0, at = 0;
    if (!fits(name))
        length += put_record(records, sizeof records, "path", name);
    if (link && !fits(link))
        length += put_record(records + length, sizeof records - length, "linkpath", link);
    if (size > MOST_SIZE) {
        snprintf(number, sizeof number, "%" PRIu64, size);
        length += put_record(records + length, sizeof records - length, "size", number);
    }
    if (length > 0) {
        const size_t blocks = (length + ETCH_TAR_BLOCK - 1) / ETCH_TAR_BLOCK * ETCH_TAR_BLOCK;
        put_header(head, 'x', RECORDS_NAME, length, NULL);
        memset(head + ETCH_TAR_BLOCK, 0, blocks);
        memcpy(head + ETCH_TAR_BLOCK, records, length);
        at = ETCH_TAR_BLOCK + blocks;
    }
    put_header(head + at, link ? '1' : '0', name, size, link);
    return at + ETCH_TAR_BLOCK;
}

bool etch_tar_begins(const unsigned char *block, const char *name)
{
    unsigned char own[ETCH_TAR_BLOCK];
    put_header(own, '0', name, 0, NULL);
    memcpy(own + SIZE_AT, block + SIZE_AT, SIZE_DIGITS);
    put_sum(own);
    return memcmp(own, block, sizeof own) == 0;
}

/* ---- the stream ---------------------------------------------------------------------------------------- */

void etch_archive_begin(etch_archive *archive, int file, const atomic_int *cancel)
{
    struct stat info;
    archive->file = file;
    archive->own = -1;
    archive->cancel = cancel;
    archive->used = 0;
    if (fstat(file, &info) == 0 && S_ISFIFO(info.st_mode)) {
        char path[32];
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        archive->own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    }
}

static bool is_cancelled(const etch_archive *archive)
{
    return archive->cancel && atomic_load(archive->cancel) != 0;
}

/* Until there is room in the pipe, or nobody reads it any more. */
static int wait_for_room(const etch_archive *archive)
{
    enum { MILLISECONDS = 100 };
    struct pollfd one = {.fd = archive->own, .events = POLLOUT};
    int found = 0;
    while (found == 0 && !is_cancelled(archive)) {
        found = poll(&one, 1, MILLISECONDS);
        if (found < 0 && errno == EINTR)
            found = 0;
    }
    return found < 0 ? errno : is_cancelled(archive) ? ECANCELED : 0;
}

/* Past the buffer. A reader may stop to read for good: a pipe is never waited for without an end. */
static int pass_on(const etch_archive *archive, const void *bytes, size_t length)
{
    const char *at = bytes;
    if (archive->own < 0)
        return is_cancelled(archive) ? ECANCELED : etch_file_write(archive->file, bytes, length);
    while (length > 0) {
        const ssize_t written = write(archive->own, at, length);
        if (written < 0 && errno == EAGAIN) {
            const int error = wait_for_room(archive);
            if (error != 0)
                return error;
        } else if (written < 0 && errno != EINTR) {
            return errno;
        } else if (written > 0) {
            at += written;
            length -= (size_t)written;
        }
    }
    return 0;
}

static int flush(etch_archive *archive)
{
    const int error = pass_on(archive, archive->buffer, archive->used);
    archive->used = 0;
    return error;
}

int etch_archive_write(void *data, const void *bytes, size_t length)
{
    etch_archive *archive = data;
    int error = 0;
    if (length > sizeof archive->buffer - archive->used)
        error = flush(archive);
    if (error != 0 || length > sizeof archive->buffer)
        return error != 0 ? error : pass_on(archive, bytes, length);
    memcpy(archive->buffer + archive->used, bytes, length);
    archive->used += length;
    return 0;
}

int etch_archive_open(etch_archive *archive, const char *name, uint64_t size, const char *link)
{
    unsigned char head[ETCH_TAR_HEAD];
    return etch_archive_write(archive, head, etch_tar_head(name, size, link, head));
}

int etch_archive_close(etch_archive *archive, uint64_t size)
{
    static const unsigned char zeros[ETCH_TAR_BLOCK];
    return etch_archive_write(archive, zeros, (size_t)(-size % ETCH_TAR_BLOCK));
}

int etch_archive_put(etch_archive *archive, const char *name, const void *bytes, size_t length)
{
    int error = etch_archive_open(archive, name, length, NULL);
    if (error == 0)
        error = etch_archive_write(archive, bytes, length);
    return error == 0 ? etch_archive_close(archive, length) : error;
}

int etch_archive_finish(etch_archive *archive)
{
    static const unsigned char zeros[2 * ETCH_TAR_BLOCK];
    const int error = etch_archive_write(archive, zeros, sizeof zeros);
    return error == 0 ? flush(archive) : error;
}

void etch_archive_end(etch_archive *archive)
{
    if (archive->own >= 0)
        close(archive->own);
    archive->own = -1;
}
