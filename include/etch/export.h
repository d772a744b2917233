/* Marks what a shared libetch shows. */
#ifndef ETCH_EXPORT_H
#define ETCH_EXPORT_H

#if defined(__GNUC__)
#define ETCH_API __attribute__((visibility("default")))
#else
#define ETCH_API
#endif

#endif
