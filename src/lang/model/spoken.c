/* Tensors that plans speak of by their names. */
#include "lang/model/model_int.h"

#include <string.h>

/* Lines of a scope are inside of it. Goes as deep as scopes are nested. */
static void add_spoken(const etch_spec *spec, const etch_ast_lines *lines, etch_spoken *out)
{
    for (uint32_t i = 0; i < lines->count; i++) {
        const etch_ast_line *line = &lines->at[i];
        const bool selects =
            line->kind == ETCH_AST_PIN || line->kind == ETCH_AST_SCOPE || line->kind == ETCH_AST_STAGE;
        for (uint32_t k = 0; selects && k < line->what.count; k++)
            if (strchr(line->what.at[k].text, '.'))
                ETCH_PUSH(spec->arena, out, line->what.at[k].text);
        if (line->kind == ETCH_AST_SCOPE)
            add_spoken(spec, &line->lines, out);
    }
}

etch_spoken etch_spoken_of(const etch_spec *spec)
{
    etch_spoken spoken = {0};
    for (uint32_t i = 0; i < spec->symbols.count; i++)
        if (spec->symbols.at[i]->kind == ETCH_SYMBOL_PLAN)
            add_spoken(spec, &spec->symbols.at[i]->item->lines, &spoken);
    return spoken;
}
