/* Goes over what is in a region and in all bodies of its loops, in program order: a loop comes before what is
 * in it. Regions of graphs and placed ones have a cursor each, made alike. */
#ifndef ETCH_GRAPH_IR_CURSOR_H
#define ETCH_GRAPH_IR_CURSOR_H

#include "graph/ir/ir.h"

/* `root` is set by who begins: what is in it comes first; then what is in `then`, if it is set. */
#define ETCH_CURSOR(name, region_type, item_type)         \
    typedef struct name {                                 \
        const region_type *root, *then;                   \
        /* the item at hand, and the region it is in */   \
        const item_type *item;                            \
        const region_type *in;                            \
        /* index of the item after it, in that region */  \
        uint32_t next;                                    \
    } name;                                               \
    /* Goes on to the next item; false: there is none. */ \
    bool name##_next(name *at)

#define ETCH_CURSOR_NEXT(name, region_type)                          \
    bool name##_next(name *at)                                       \
    {                                                                \
        const region_type *in = at->in ? at->in : at->root;          \
        if (at->item && at->item->loop) {                            \
            in = at->item->loop->bodies.at[0];                       \
            at->next = 0;                                            \
        }                                                            \
        while (in && at->next == in->items.count) {                  \
            const void *loop = in->loop;                             \
            uint32_t body = 1;                                       \
            at->next = 0;                                            \
            if (in == at->root) {                                    \
                in = at->root = at->then;                            \
                at->then = NULL;                                     \
                continue;                                            \
            }                                                        \
            while (in->loop->bodies.at[body - 1] != in)              \
                body++;                                              \
            if (body < in->loop->bodies.count) {                     \
                in = in->loop->bodies.at[body];                      \
                continue;                                            \
            }                                                        \
            in = in->parent;                                         \
            while (in->items.at[at->next++].loop != loop) { /* on */ \
            }                                                        \
        }                                                            \
        at->in = in;                                                 \
        at->item = in ? &in->items.at[at->next++] : NULL;            \
        return in != NULL;                                           \
    }                                                                \
    bool name##_next(name *at)

ETCH_CURSOR(etch_cursor, etch_region, etch_item);

#endif
