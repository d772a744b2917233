/* Functions of glibc that Debian's archives call in place of the plain ones, for a program that is linked
 * with another C library: scripts/platform.sh musl. The sizes that they would check are left out. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int __fprintf_chk(FILE *file, int flag, const char *format, ...)
{
    (void)flag;
    va_list rest;
    va_start(rest, format);
    const int length = vfprintf(file, format, rest);
    va_end(rest);
    return length;
}

int __vsnprintf_chk(char *at, size_t size, int flag, size_t room, const char *format, va_list rest)
{
    (void)flag, (void)room;
    return vsnprintf(at, size, format, rest);
}

int __snprintf_chk(char *at, size_t size, int flag, size_t room, const char *format, ...)
{
    (void)flag, (void)room;
    va_list rest;
    va_start(rest, format);
    const int length = vsnprintf(at, size, format, rest);
    va_end(rest);
    return length;
}

char *__strncpy_chk(char *to, const char *from, size_t length, size_t room)
{
    (void)room;
    return strncpy(to, from, length);
}
