/* Dims of one name: those of two files, or of two modules, are as different as any, and a message that shows
 * both by their name alone is a riddle. */
#include "lang/model/model_int.h"

#include <string.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '\'';
}

/* Does the text have the name as a word? */
static bool mentions(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name))
        if ((at == text || !is_letter(at[-1])) && !is_letter(at[length]))
            return true;
    return false;
}

/* Is it about dims that do not fit? */
static bool is_of_dims(const etch_diag *diag)
{
    return diag->severity == ETCH_ERROR && diag->code >= ETCH_E_DIM_TWICE &&
           diag->code <= ETCH_E_CARRIED_TYPE;
}

static const etch_dim *earlier_homonym(const etch_graph *graph, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (strcmp(graph->dims.at[i]->name, graph->dims.at[index]->name) == 0)
            return graph->dims.at[i];
    return NULL;
}

void etch_note_homonyms(const etch_builder *b, const etch_diags_mark *since)
{
    for (etch_diag *diag = etch_diags_since(b->spec->diags, since); diag; diag = diag->next)
        for (uint32_t i = 0; is_of_dims(diag) && i < b->graph->dims.count; i++) {
            const etch_dim *dim = b->graph->dims.at[i], *first = earlier_homonym(b->graph, i);
            if (!first || !mentions(diag->message, dim->name))
                continue;
            etch_note(diag, first->span, "a dim %s is declared here", first->name);
            if (dim->window_of)
                etch_note(diag, dim->span,
                          "a cache with a window shows its last elements: they are not the same");
            else
                etch_note(diag, dim->span, "another dim %s here: they are not the same", dim->name);
            break;
        }
}
