/* How a call of the library ended. The numbers are stable. */
#ifndef ETCH_STATUS_H
#define ETCH_STATUS_H

typedef enum etch_status {
    ETCH_OK = 0,
    /* the input has errors: see the diagnostics */
    ETCH_EINPUT = 1,
    /* could not be decided */
    ETCH_EUNKNOWN = 2,
    /* a file or folder could not be read or written */
    ETCH_EIO = 3,
    /* memory is out */
    ETCH_ENOMEM = 4,
    /* a limit of the session was reached */
    ETCH_ELIMIT = 5,
    /* a bug of etch */
    ETCH_EINTERNAL = 6
} etch_status;

#endif
