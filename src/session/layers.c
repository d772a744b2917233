/* Loops as rows of a table: `--by layer`. */
#include "session/session_int.h"

#include <string.h>

static const etch_loop *around(const etch_loop *loop)
{
    const etch_region *home = loop->bodies.at[0]->parent;
    return home ? home->loop : NULL;
}

static bool same_path(const etch_loop *a, const etch_loop *b)
{
    while (a && b && strcmp(a->name, b->name) == 0) {
        a = around(a);
        b = around(b);
    }
    return !a && !b;
}

/* Loops whose path is that of `loop`, in program order: how many there are, and which of them it is. */
typedef struct namesakes {
    const etch_loop *loop;
    uint32_t count, place;
} namesakes;

/* Goes as deep as loops are nested. */
static void find_namesakes(namesakes *n, const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_loop *loop = region->items.at[i].loop;
        if (!loop)
            continue;
        if (same_path(loop, n->loop)) {
            n->count++;
            if (loop == n->loop)
                n->place = n->count;
        }
        for (uint32_t k = 0; k < loop->bodies.count; k++)
            find_namesakes(n, loop->bodies.at[k]);
    }
}

/* group.layer */
static void put_path(etch_buf *out, const etch_loop *loop)
{
    if (around(loop)) {
        put_path(out, around(loop));
        etch_buf_puts(out, ".");
    }
    etch_buf_puts(out, loop->name);
}

const char *etch_layer_label(etch_session *session, const etch_pipeline *p, const etch_loop *loop)
{
    if (!loop)
        return "outside loops";
    etch_buf out = {.arena = session->arena};
    namesakes n = {.loop = loop};
    put_path(&out, loop);
    find_namesakes(&n, p->training->graph->forward);
    if (n.count > 1)
        etch_buf_printf(&out, "#%u", (unsigned)n.place);
    return out.text;
}
