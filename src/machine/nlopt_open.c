#include "machine/nlopt_open.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* The fields have the types of the functions. */
#define SAME(name, result, arguments)                                             \
    _Static_assert(_Generic(&nlopt_##name, result(*) arguments : 1, default : 0), \
                   "nlopt_" #name " is declared with other types");
ETCH_NLOPT_FUNCTIONS(SAME)

/* POSIX lets an object pointer hold the address of a function, C does not: it is copied. */
static bool find(void *library, const char *name, void *field)
{
    void *address = dlsym(library, name);
    memcpy(field, &address, sizeof address);
    return address != NULL;
}

const char *etch_nlopt_open(etch_nlopt *out)
{
    *out = (etch_nlopt){.library = dlopen(ETCH_NLOPT_FILE, RTLD_NOW | RTLD_LOCAL)};
    bool whole = out->library != NULL;
#define FIND(name, result, arguments) whole = whole && find(out->library, "nlopt_" #name, &out->name);
    ETCH_NLOPT_FUNCTIONS(FIND)
    if (out->library && !whole)
        etch_nlopt_close(out);
    return whole ? NULL : "NLopt does the fit, and " ETCH_NLOPT_FILE " is not installed (Debian: libnlopt0)";
}

void etch_nlopt_close(etch_nlopt *nlopt)
{
    (void)dlclose(nlopt->library);
    nlopt->library = NULL;
}
