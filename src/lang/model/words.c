/* Words of other libraries for what the language writes otherwise: what to write in their place. */
#include "lang/model/model_int.h"

#include <string.h>

#define ATTENTION "write sdpa(q, k, v, dot = D, over = S'), as the modules of models/ do"
#define NUMBERS "numbers are rounded and compared in a size, dim N = ceil(n/2)"

typedef struct word {
    const char *name, *help;
} word;

#define PRODUCT "a product of tensors is written y[..] = x * w: dims of both that y does not name are summed"
#define GROUPS "dims have names: x[(N,P)->M] makes one of two, x[M->(N,P)] two of one"
#define ORDER "dims have names: their order says nothing, and tensors are read as they are"
#define ALIGNED "what lacks a dim is the same along it: nothing needs a dim of size 1, or to be expanded"

static const word words[] = {
    {"attention", ATTENTION},
    {"bmm", PRODUCT},
    {"broadcast", ALIGNED},
    {"broadcast_to", ALIGNED},
    {"cat", "write concat(a, b, over = (N,M))"},
    {"ceil", NUMBERS},
    {"chunk", "write (a[..,N], b[..,M]) = split(x, over = D)"},
    {"concatenate", "write concat(a, b, over = (N,M))"},
    {"dense", PRODUCT},
    {"div", "write x / y"},
    {"dot", PRODUCT},
    {"einsum", PRODUCT},
    {"expand", ALIGNED},
    {"flatten", GROUPS},
    {"floor", NUMBERS},
    {"linear", PRODUCT},
    {"matmul", PRODUCT},
    {"min", NUMBERS},
    {"mm", PRODUCT},
    {"multiply", "write x * y"},
    {"permute", ORDER},
    {"pow", "write x * x; square, sqrt, rsqrt and reciprocal are functions"},
    {"rearrange", GROUPS},
    {"reshape", GROUPS},
    {"scaled_dot_product_attention", ATTENTION},
    {"squeeze", ALIGNED},
    {"sub", "write x - y"},
    {"swapaxes", ORDER},
    {"unflatten", GROUPS},
    {"unsqueeze", ALIGNED},
    {"view", GROUPS},
};

void etch_help_word(etch_diag *diag, const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *method = dot ? dot + 1 : name;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].name, method) == 0)
            etch_help(diag, "%s", words[i].help);
}
