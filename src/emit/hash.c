/* The hash that a manifest knows its spec by. */
#include "emit/emit.h"

#include <sys/types.h>

#include <sha256.h>

void etch_sha256(const etch_piece *pieces, size_t count, char text[ETCH_SHA256_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256_CTX context;
    SHA256_Init(&context);
    for (size_t i = 0; i < count; i++)
        SHA256_Update(&context, pieces[i].bytes, pieces[i].length);
    SHA256_Final(digest, &context);
    for (size_t i = 0; i < sizeof digest; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    text[2 * sizeof digest] = '\0';
}
