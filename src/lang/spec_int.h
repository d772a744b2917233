/* Declarations that the files beside this header share. */
#ifndef ETCH_LANG_SPEC_INT_H
#define ETCH_LANG_SPEC_INT_H

#include "lang/lang.h"

/* Defaults that need themselves; configs that bind twice, or what is nowhere declared. */
void etch_bindings_check(etch_spec *spec);

#endif
