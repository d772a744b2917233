/* The order in which the cursor goes over a region. */
#include "graph/ir/cursor.h"
#include "suite.h"

/* op 1; loop 1 { op 2; loop 2 { op 3 } } or { } or { op 4 }; op 5, and a region with op 6 alone. */
typedef struct tree {
    etch_op ops[7];
    etch_loop loops[3];
    etch_region top, other, bodies[4];
} tree;

static void add_op(etch_arena *arena, etch_region *region, etch_op *op)
{
    ETCH_PUSH(arena, &region->items, (etch_item){.op = op});
}

static void add_loop(etch_arena *arena, etch_region *region, etch_loop *loop, etch_region *bodies,
                     uint32_t count)
{
    ETCH_PUSH(arena, &region->items, (etch_item){.loop = loop});
    for (uint32_t i = 0; i < count; i++) {
        bodies[i].parent = region;
        bodies[i].loop = loop;
        ETCH_PUSH(arena, &loop->bodies, &bodies[i]);
    }
}

static tree *make_tree(etch_arena *arena)
{
    tree *t = ETCH_NEW(arena, tree);
    for (uint32_t i = 0; i < 7; i++)
        t->ops[i].id = i;
    t->loops[1].id = 1;
    t->loops[2].id = 2;
    add_op(arena, &t->top, &t->ops[1]);
    add_loop(arena, &t->top, &t->loops[1], t->bodies, 3);
    add_op(arena, &t->top, &t->ops[5]);
    add_op(arena, &t->bodies[0], &t->ops[2]);
    add_loop(arena, &t->bodies[0], &t->loops[2], &t->bodies[3], 1);
    add_op(arena, &t->bodies[3], &t->ops[3]);
    add_op(arena, &t->bodies[2], &t->ops[4]);
    add_op(arena, &t->other, &t->ops[6]);
    return t;
}

/* "1 (1 2 ..": ops by their ids, loops after a parenthesis. Each item is where the cursor says. */
static const char *order_of(etch_arena *arena, const etch_region *root, const etch_region *then)
{
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    for (etch_cursor at = {.root = root, .then = then}; etch_cursor_next(&at);) {
        etch_buf_printf(&out, "%s%s%u", out.length ? " " : "", at.item->loop ? "(" : "",
                        at.item->loop ? at.item->loop->id : at.item->op->id);
        ck_assert_ptr_eq(&at.in->items.at[at.next - 1], at.item);
    }
    return out.text;
}

static void orders(etch_arena *arena)
{
    const tree *t = make_tree(arena);
    const etch_region empty = {0};
    ck_assert_str_eq(order_of(arena, &t->top, NULL), "1 (1 2 (2 3 4 5");
    ck_assert_str_eq(order_of(arena, &t->top, &t->other), "1 (1 2 (2 3 4 5 6");
    ck_assert_str_eq(order_of(arena, &t->bodies[0], NULL), "2 (2 3");
    ck_assert_str_eq(order_of(arena, &t->bodies[1], &t->bodies[2]), "4");
    ck_assert_str_eq(order_of(arena, &empty, &t->other), "6");
    ck_assert_str_eq(order_of(arena, &empty, NULL), "");
    ck_assert_str_eq(order_of(arena, NULL, NULL), "");
}

START_TEST(loops_come_before_what_is_in_them)
{
    etch_with_arena(orders);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("graph.cursor");
    ETCH_ADD_TESTS(suite, loops_come_before_what_is_in_them);
    return suite;
}
