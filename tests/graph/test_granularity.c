/* Which steps become one node, op by op and block by block; kernels have tests of their own. All numbers are
 * worked out by hand: a rank has 32 tokens, of 2048 bytes where they are H wide, 4096 where F, 8192 where
 * V. */
#include "sample.h"
#include "suite.h"

static etch_placed *placed_by(etch_arena *arena, etch_granularity granularity, bool sharded)
{
    sample *x = sample_residual(arena);
    x->granularity = granularity;
    if (sharded)
        sample_shard(x, "F", TP);
    return sample_place(x);
}

static void each_op_is_a_node(etch_arena *arena)
{
    const etch_placed *placed = placed_by(arena, ETCH_GRANULARITY_OP, false);
    ck_assert_str_eq(sample_kernels(placed, placed->forward),
                     "rms_norm: x g -> h, 4096 FLOP, 4160 bytes\n"
                     "einsum: h w1 -> gate, 131072 FLOP, 10240 bytes\n"
                     "einsum: h w3 -> up, 131072 FLOP, 10240 bytes\n"
                     "silu: gate -> s, 10240 FLOP, 8192 bytes\n"
                     "einsum: s up -> a, 2048 FLOP, 12288 bytes\n"
                     "einsum: a w2 -> y, 131072 FLOP, 10240 bytes\n"
                     "add: x y -> z, 1024 FLOP, 6144 bytes\n"
                     "rms_norm: z g2 -> n, 4096 FLOP, 4160 bytes\n"
                     "einsum: n head -> logits, 262144 FLOP, 18432 bytes\n"
                     "cross_entropy: logits labels -> l stat, 20480 FLOP, 8452 bytes\n");
}

START_TEST(test_each_op_is_a_node)
{
    etch_with_arena(each_op_is_a_node);
}
END_TEST

/* Reads x, the weights and the labels; y stays inside. Backward reads what the products and norms were
 * given. */
static void a_phase_is_a_node(etch_arena *arena)
{
    const etch_placed *placed = placed_by(arena, ETCH_GRANULARITY_BLOCK, false);
    ck_assert_str_eq(sample_kernels(placed, placed->forward),
                     "rms_norm+einsum+einsum+silu+einsum+einsum+add+rms_norm+einsum+cross_entropy: "
                     "x g w1 w3 w2 g2 head labels -> h gate up s a z n logits l stat, "
                     "697344 FLOP, 53636 bytes\n");
    ck_assert_uint_eq(placed->backward->kernels.count, 1);
}

START_TEST(test_a_phase_is_a_node)
{
    etch_with_arena(a_phase_is_a_node);
}
END_TEST

/* What a collective hands on leaves one node and enters the next. */
static void collectives_are_between_blocks(etch_arena *arena)
{
    const etch_placed *placed = placed_by(arena, ETCH_GRANULARITY_BLOCK, true);
    ck_assert_str_eq(sample_kernels(placed, placed->forward),
                     "rms_norm+einsum+einsum+silu+einsum+einsum: x g w1 w3 w2 -> h gate up s a y, "
                     "105472 FLOP, 13376 bytes\n"
                     "all_reduce over tp: y, 2048 bytes\n"
                     "add+rms_norm+einsum+cross_entropy: x y g2 head labels -> z n logits l stat, "
                     "287744 FLOP, 24900 bytes\n");
    ck_assert_uint_eq(placed->backward->kernels.count, 3);
}

START_TEST(test_collectives_are_between_blocks)
{
    etch_with_arena(collectives_are_between_blocks);
}
END_TEST

/* One table is read row by row and as a matrix, and its gradient added to in both ways: a node that does both
 * to all of it moves all of it once, besides the rows that were touched before. */
static void a_tied_table(etch_arena *arena)
{
    sample *x = sample_new(arena);
    x->granularity = ETCH_GRANULARITY_BLOCK;
    etch_tensor *ids = sample_input(x, "ids", "bs", ETCH_I32),
                *labels = sample_input(x, "labels", "bs", ETCH_I32);
    etch_tensor *table = sample_weight(x, "table", "vh");
    etch_tensor *in = sample_call(x, "in", "gather", table, ids, 'v', NULL);
    etch_tensor *logits = sample_product(x, "logits", in, table, "bsv");
    sample_tag(x, sample_call(x, "l", "cross_entropy", logits, labels, 'v', NULL), "loss");
    sample_shard(x, "B", DP);
    const etch_placed *placed = sample_place(x);
    /* forward: rows 2048, table 8192, ids and labels 128 each; in 2048, logits 8192, l 4 and stat 128
     * written */
    ck_assert_str_eq(sample_kernels(placed, placed->forward),
                     "gather+einsum+cross_entropy: table ids labels -> in logits l stat, "
                     "282624 FLOP, 20868 bytes\n");
    /* backward: logits and table 8192 each, in 2048, labels, ids and stat 128 each, the seed 4; the gradient
     * of 4096 elements, read and written, 32768 */
    ck_assert_str_eq(sample_kernels(placed, placed->backward),
                     "cross_entropy_dx+einsum+einsum+scatter: one logits labels stat table in ids ->, "
                     "adds dtable, adds dtable, 541696 FLOP, 51588 bytes\n");
}

START_TEST(test_a_tied_table)
{
    etch_with_arena(a_tied_table);
}
END_TEST

/* Products stand alone. What they make enters the kernel of the elementwise ops after them, and these are no
 * part of the next product; an add joins the norm that reads it. */
static void products_stand_alone(etch_arena *arena)
{
    const etch_placed *placed = placed_by(arena, ETCH_GRANULARITY_LIBRARY, false);
    ck_assert_str_eq(sample_kernels(placed, placed->forward),
                     "rms_norm: x g -> h, 4096 FLOP, 4160 bytes\n"
                     "einsum: h w1 -> gate, 131072 FLOP, 10240 bytes\n"
                     "einsum: h w3 -> up, 131072 FLOP, 10240 bytes\n"
                     "silu+einsum: gate up -> s a, 12288 FLOP, 16384 bytes\n"
                     "einsum: a w2 -> y, 131072 FLOP, 10240 bytes\n"
                     "add+rms_norm: x y g2 -> z n, 5120 FLOP, 8256 bytes\n"
                     "einsum: n head -> logits, 262144 FLOP, 18432 bytes\n"
                     "cross_entropy: logits labels -> l stat, 20480 FLOP, 8452 bytes\n");
}

START_TEST(test_products_stand_alone)
{
    etch_with_arena(products_stand_alone);
}
END_TEST

START_TEST(test_names)
{
    ck_assert_str_eq(etch_granularity_name(ETCH_GRANULARITY_KERNEL), "kernel");
    ck_assert_str_eq(etch_granularity_name(ETCH_GRANULARITY_OP), "op");
    ck_assert_str_eq(etch_granularity_name(ETCH_GRANULARITY_BLOCK), "block");
    ck_assert_str_eq(etch_granularity_name(ETCH_GRANULARITY_LIBRARY), "library");
    ck_assert_ptr_null(etch_granularity_name(ETCH_GRANULARITY_COUNT));
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("graph.granularity");
    ETCH_ADD_TESTS(suite, test_each_op_is_a_node, test_a_phase_is_a_node, test_collectives_are_between_blocks,
                   test_a_tied_table, test_products_stand_alone, test_names);
    return suite;
}
