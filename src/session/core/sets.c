/* What is set, by whom it is for: "plan.schedule = gpipe, micro = 4" is of the plan, and of a param. */
#include "session/core/core.h"

#include <string.h>

size_t etch_piece_of_list(const char *text)
{
    size_t length = 0;
    bool quoted = false;
    for (int depth = 0; text[length]; length++) {
        quoted = quoted != (text[length] == '"');
        if (quoted)
            continue;
        if (strchr("([{", text[length]))
            depth++;
        else if (strchr(")]}", text[length]))
            depth--;
        else if (text[length] == ',' && depth <= 0)
            break;
    }
    return length;
}

/* A piece after the first one of a plan, "plan.zero = 1" or "zero = 1"; NULL: it is the value of a param. */
static const char *option_in(const char *piece)
{
    static const char plan[] = "plan.";
    piece += strspn(piece, " \t\n");
    if (strncmp(piece, plan, sizeof plan - 1) == 0)
        return piece + sizeof plan - 1;
    return etch_plan_has_option(piece, strcspn(piece, " \t\n=")) ? piece : NULL;
}

void etch_session_divide_sets(etch_arena *arena, const etch_session_options *given, etch_session_options *own)
{
    ETCH_VEC(const char *) sets = {0}, plan_sets = {0};
    for (size_t i = 0; i < given->set_count; i++)
        ETCH_PUSH(arena, &sets, etch_copy_string(arena, given->sets[i]));
    for (size_t i = 0; i < given->plan_set_count; i++) {
        const char *text = given->plan_sets[i];
        etch_buf of_plan = {.arena = arena};
        for (bool first = true;; first = false) {
            const size_t length = etch_piece_of_list(text);
            const char *piece = etch_copy_text(arena, text, length);
            const char *option = first ? piece : option_in(piece);
            if (option)
                etch_buf_printf(&of_plan, "%s%s", first ? "" : ", ", option);
            else
                ETCH_PUSH(arena, &sets, piece);
            if (!text[length])
                break;
            text += length + 1;
        }
        ETCH_PUSH(arena, &plan_sets, of_plan.text ? of_plan.text : "");
    }
    own->sets = sets.at;
    own->set_count = sets.count;
    own->plan_sets = plan_sets.at;
    own->plan_set_count = plan_sets.count;
}
