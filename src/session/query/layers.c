/* Loops and their classes of iterations as rows of a table: `--by layer`. */
#include "session/query/query.h"

#include <string.h>

/* Among the loops of the same name beside it, the how manyth it is, from 1; 0: there is no other. */
static uint32_t place_among_namesakes(const etch_loop *loop)
{
    const etch_region *around = loop->bodies.at[0]->parent;
    uint32_t count = 0, place = 0;
    for (uint32_t i = 0; i < around->items.count; i++) {
        const etch_loop *other = around->items.at[i].loop;
        if (!other || (other != loop && strcmp(other->name, loop->name) != 0))
            continue;
        count++;
        if (other == loop)
            place = count;
    }
    return count > 1 ? place : 0;
}

/* The first iteration of the class of a body. */
static etch_expr first_iteration(etch_session *session, const etch_compiled *p, const etch_region *body)
{
    etch_sym *sym = session->sym;
    const etch_pattern *pattern = body->loop->pattern;
    for (uint32_t i = 0; i < pattern->segments.count; i++) {
        const etch_segment *segment = &pattern->segments.at[i];
        etch_expr first = NULL;
        for (uint32_t r = 0; r < pattern->period; r++) {
            if (segment->class_of[r] != body->index)
                continue;
            etch_expr period = etch_int(sym, pattern->period);
            etch_expr ahead = etch_mod(sym, etch_sub(sym, etch_int(sym, r), segment->first), period);
            first = first ? etch_min(sym, first, ahead) : ahead;
        }
        if (first)
            return etch_compiled_apply(session, p, etch_add(sym, segment->first, first));
    }
    return NULL;
}

/* group.layer[3] */
static void put_path(etch_session *session, const etch_compiled *p, etch_buf *out, const etch_region *body)
{
    if (body->parent && body->parent->loop) {
        put_path(session, p, out, body->parent);
        etch_buf_puts(out, ".");
    }
    const uint32_t place = place_among_namesakes(body->loop);
    etch_buf_puts(out, body->loop->name);
    if (place > 0)
        etch_buf_printf(out, "#%u", (unsigned)place);
    etch_expr first = body->loop->bodies.count > 1 ? first_iteration(session, p, body) : NULL;
    if (first)
        etch_buf_printf(out, "[%s]", etch_expr_text(session->sym, first));
}

const char *etch_layer_label(etch_session *session, const etch_compiled *p, const etch_region *body)
{
    if (!body)
        return "outside loops";
    etch_buf out = {.arena = session->arena};
    put_path(session, p, &out, body);
    return out.text;
}
