/* How a call of the library ended. The numbers are stable. */
#ifndef ETCH_STATUS_H
#define ETCH_STATUS_H

typedef enum etch_status {
    ETCH_OK = 0,
    ETCH_EINPUT = 1,   /* the input has errors: see the diagnostics */
    ETCH_EUNKNOWN = 2, /* could not be decided */
    ETCH_EIO = 3,      /* a file or folder could not be read or written */
    ETCH_ENOMEM = 4,   /* memory is out */
    ETCH_ELIMIT = 5,   /* a limit of the session was reached */
    ETCH_EINTERNAL = 6 /* a bug of etch */
} etch_status;

#endif
