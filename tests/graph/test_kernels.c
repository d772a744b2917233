/* Steps become kernels: what joins what, what is read and written, how many FLOP and bytes. All numbers
 * are worked out by hand; on one rank and in one microbatch there are 32 tokens. */
#include "end_work.h"
#include "sample.h"
#include "suite.h"

static void assert_kernels(const etch_placed *placed, const etch_placed_region *region, const char *expected)
{
    ck_assert_str_eq(sample_kernels(placed, region), expected);
}

/* ---- grouping ------------------------------------------------------------------------------------------ */

static void a_residual_joins_the_product_before_it(etch_arena *arena)
{
    etch_placed *placed = sample_place(sample_residual(arena));
    assert_kernels(placed, placed->forward,
                   "rms_norm: x g -> h, 4096 FLOP, 4160 bytes\n"
                   "einsum+silu: h w1 -> gate s, 141312 FLOP, 14336 bytes\n"
                   "einsum+einsum: h w3 s -> up a, 133120 FLOP, 18432 bytes\n"
                   "einsum+add: a w2 x -> z, 132096 FLOP, 12288 bytes\n"
                   "rms_norm: z g2 -> n, 4096 FLOP, 4160 bytes\n"
                   "einsum: n head -> logits, 262144 FLOP, 18432 bytes\n"
                   "cross_entropy: logits labels -> l stat, 20480 FLOP, 8452 bytes\n");
}

START_TEST(test_residual_joins_product)
{
    etch_with_arena(a_residual_joins_the_product_before_it);
}
END_TEST

static void behind_an_all_reduce_it_joins_the_norm(etch_arena *arena)
{
    sample *x = sample_residual(arena);
    sample_shard(x, "F", TP);
    etch_placed *placed = sample_place(x);
    assert_kernels(placed, placed->forward,
                   "rms_norm: x g -> h, 4096 FLOP, 4160 bytes\n"
                   "einsum+silu: h w1 -> gate s, 35328 FLOP, 5120 bytes\n"
                   "einsum+einsum: h w3 s -> up a, 33280 FLOP, 6144 bytes\n"
                   "einsum: a w2 -> y, 32768 FLOP, 4096 bytes\n"
                   "all_reduce over tp: y, 2048 bytes\n"
                   "add+rms_norm: x y g2 -> z n, 5120 FLOP, 8256 bytes\n"
                   "einsum: n head -> logits, 262144 FLOP, 18432 bytes\n"
                   "cross_entropy: logits labels -> l stat, 20480 FLOP, 8452 bytes\n");
    assert_kernels(placed, placed->backward,
                   "cross_entropy_dx: one logits labels stat -> dlogits, 16384 FLOP, 16644 bytes\n"
                   "einsum: dlogits head -> dn, 262144 FLOP, 18432 bytes\n"
                   "einsum: dlogits n ->, adds dhead, 262144 FLOP, 43008 bytes\n"
                   "rms_norm_bwd: dn z g2 -> dz, adds dg2, 9216 FLOP, 6464 bytes\n"
                   "einsum+einsum+einsum+silu_dx: dz w2 up s gate -> dup dgate, 38400 FLOP, 8192 bytes\n"
                   "einsum: dz a ->, adds dw2, 32768 FLOP, 7168 bytes\n"
                   "einsum: dup w3 -> dh, 32768 FLOP, 4096 bytes\n"
                   "einsum: dup h ->, adds dw3, 32768 FLOP, 7168 bytes\n"
                   "einsum+add_cotangents: dgate w1 dh -> dh, 33792 FLOP, 6144 bytes\n"
                   "einsum: dgate h ->, adds dw1, 32768 FLOP, 7168 bytes\n"
                   "all_reduce over tp: dh, 2048 bytes\n"
                   "rms_norm_bwd: dh x g ->, adds dg, 9216 FLOP, 4416 bytes\n");
}

START_TEST(test_residual_joins_norm)
{
    etch_with_arena(behind_an_all_reduce_it_joins_the_norm);
}
END_TEST

/* Sequence parallelism: a quarter of the tokens is held between the products; shards are read, not copied. */
static void sharded_residuals_work_on_shards(etch_arena *arena)
{
    sample *x = sample_residual(arena);
    sample_shard(x, "F", TP);
    sample_pin(x, "residual", "B", "S");
    etch_placed *placed = sample_place(x);
    assert_kernels(placed, placed->forward,
                   "rms_norm: x g -> h, 4096 FLOP, 4160 bytes\n"
                   "einsum+silu: h w1 -> gate s, 35328 FLOP, 5120 bytes\n"
                   "einsum+einsum: h w3 s -> up a, 33280 FLOP, 6144 bytes\n"
                   "einsum: a w2 -> y, 32768 FLOP, 4096 bytes\n"
                   "reduce_scatter over tp: y, 2048 bytes\n"
                   "add+rms_norm: x y g2 -> z n, 1280 FLOP, 2112 bytes\n"
                   "einsum: n head -> logits, 65536 FLOP, 10752 bytes\n"
                   "cross_entropy: logits labels -> l stat, 5120 FLOP, 2116 bytes\n");
}

START_TEST(test_sharded_residual)
{
    etch_with_arena(sharded_residuals_work_on_shards);
}
END_TEST

/* z = h + x and q = n + h, where h and n are norms of x and z; `pinned`: z is sharded, h is not. */
static etch_placed *sums_of_norms(etch_arena *arena, bool pinned)
{
    sample *x = sample_new(arena);
    etch_tensor *in = sample_input(x, "x", "bsh", ETCH_BF16);
    etch_tensor *g = sample_weight(x, "g", "h"), *g2 = sample_weight(x, "g2", "h");
    etch_tensor *h = sample_call(x, "h", "rms_norm", in, g, 'h', NULL);
    etch_tensor *z = sample_sum(x, "z", h, in);
    sample_tag(x, z, "residual");
    etch_tensor *n = sample_call(x, "n", "rms_norm", z, g2, 'h', NULL);
    sample_loss(x, sample_sum(x, "q", n, h));
    sample_shard(x, "B", DP);
    if (pinned)
        sample_pin(x, "residual", "B", "S");
    return sample_place(x);
}

static void another_placement_is_another_kernel(etch_arena *arena)
{
    etch_placed *whole = sums_of_norms(arena, false), *sharded = sums_of_norms(arena, true);
    assert_kernels(whole, whole->forward,
                   "rms_norm+add: x g -> h z, 5120 FLOP, 6208 bytes\n"
                   "rms_norm+add: z g2 h -> q, 5120 FLOP, 6208 bytes\n"
                   "einsum: q head -> logits, 262144 FLOP, 18432 bytes\n"
                   "cross_entropy: logits labels -> l stat, 20480 FLOP, 8452 bytes\n");
    assert_kernels(sharded, sharded->forward,
                   "rms_norm: x g -> h, 4096 FLOP, 4160 bytes\n"
                   "add+rms_norm: h x g2 -> z n, 1280 FLOP, 2112 bytes\n"
                   "add+einsum: n h head -> q logits, 65792 FLOP, 11776 bytes\n"
                   "cross_entropy: logits labels -> l stat, 5120 FLOP, 2116 bytes\n");
}

START_TEST(test_placements_apart)
{
    etch_with_arena(another_placement_is_another_kernel);
}
END_TEST

/* ---- what is read and written -------------------------------------------------------------------------- */

/* Nothing trainable stands behind the first dropout, so that nobody reads its mask. */
static void masks_are_written_for_readers(etch_arena *arena)
{
    sample *x = sample_new(arena);
    etch_tensor *in = sample_input(x, "x", "bsh", ETCH_BF16);
    etch_tensor *w1 = sample_weight(x, "w1", "hf"), *w2 = sample_weight(x, "w2", "fh");
    etch_expr rate = etch_ratio(x->sym, 1, 10);
    etch_tensor *d0 = sample_call(x, "d0", "dropout", in, NULL, 0, rate);
    etch_tensor *e = sample_product(x, "e", d0, w1, "bsf");
    etch_tensor *d1 = sample_call(x, "d1", "dropout", e, NULL, 0, rate);
    sample_loss(x, sample_product(x, "y", d1, w2, "bsh"));
    sample_shard(x, "B", DP);
    etch_placed *placed = sample_place(x);
    assert_kernels(placed, placed->forward,
                   "dropout+einsum+dropout: x w1 -> d0 d1 mask, 137216 FLOP, 14336 bytes\n"
                   "einsum: d1 w2 -> y, 131072 FLOP, 10240 bytes\n"
                   "einsum: y head -> logits, 262144 FLOP, 18432 bytes\n"
                   "cross_entropy: logits labels -> l stat, 20480 FLOP, 8452 bytes\n");
}

START_TEST(test_masks)
{
    etch_with_arena(masks_are_written_for_readers);
}
END_TEST

/* A table of 128 rows of which 32 are looked up and, in backward, added to. */
static void tables_move_rows(etch_arena *arena)
{
    sample *x = sample_new(arena);
    etch_tensor *ids = sample_input(x, "ids", "bs", ETCH_I32), *emb = sample_weight(x, "emb", "vh");
    sample_loss(x, sample_call(x, "x", "gather", emb, ids, 'v', NULL));
    sample_shard(x, "B", DP);
    etch_placed *placed = sample_place(x);
    assert_kernels(placed, placed->forward,
                   "gather: emb ids -> x, 0 FLOP, 4224 bytes\n"
                   "einsum: x head -> logits, 262144 FLOP, 18432 bytes\n"
                   "cross_entropy: logits labels -> l stat, 20480 FLOP, 8452 bytes\n");
    assert_kernels(placed, placed->backward,
                   "cross_entropy_dx: one logits labels stat -> dlogits, 16384 FLOP, 16644 bytes\n"
                   "einsum: dlogits head -> dx, 262144 FLOP, 18432 bytes\n"
                   "einsum: dlogits x ->, adds dhead, 262144 FLOP, 43008 bytes\n"
                   "scatter: dx ids ->, adds demb, 1024 FLOP, 10368 bytes\n");
}

START_TEST(test_tables)
{
    etch_with_arena(tables_move_rows);
}
END_TEST

/* Causal attention of one head of width F over a sequence of 16: 136 pairs. Scores are never in memory;
 * backward reads the operands, the result and a statistic. Rotations join what makes their operand, in
 * both passes. */
static void attention_keeps_its_scores(etch_arena *arena)
{
    const etch_span nowhere = {0, 0};
    sample *x = sample_new(arena);
    etch_dim *t = etch_graph_dim(x->graph, "T", etch_int(x->sym, 16), false, nowhere);
    etch_dim *const keys[] = {x->b, t, x->f};
    etch_attrs attrs = {.over = {&t, 1}, .dot = {&x->f, 1}, .causal = true};
    etch_tensor *in = sample_input(x, "x", "bsh", ETCH_BF16);
    etch_tensor *wq = sample_weight(x, "wq", "hf"), *wk = sample_weight(x, "wk", "hf");
    etch_tensor *wv = sample_weight(x, "wv", "hf"), *wo = sample_weight(x, "wo", "fh");
    etch_tensor *q = sample_call(x, "qr", "rope", sample_product(x, "q", in, wq, "bsf"), NULL, 'f', NULL);
    etch_tensor *xt = etch_graph_rename(x->graph, in, &x->s, &t, 1, nowhere);
    etch_tensor *k = etch_graph_product(x->graph, xt, wk, (etch_dim_view){keys, 3}, nowhere);
    etch_tensor *v = etch_graph_product(x->graph, xt, wv, (etch_dim_view){keys, 3}, nowhere);
    etch_graph_label(k, "k", NULL, 0, nowhere);
    etch_graph_label(v, "v", NULL, 0, nowhere);
    k = sample_call(x, "kr", "rope", k, NULL, 'f', NULL);
    etch_tensor *qkv[] = {q, k, v};
    etch_tensor *o = etch_graph_call(x->graph, etch_row_called(x->graph->table, "sdpa"), qkv, 3, &attrs,
                                     (etch_dim_view){0}, nowhere);
    etch_graph_label(o, "o", NULL, 0, nowhere);
    sample_loss(x, sample_product(x, "y", o, wo, "bsh"));
    sample_shard(x, "B", DP);
    etch_placed *placed = sample_place(x);
    assert_kernels(placed, placed->forward,
                   "einsum+rope: x wq -> qr, 137216 FLOP, 10240 bytes\n"
                   "einsum+rope: x wk -> kr, 137216 FLOP, 10240 bytes\n"
                   "einsum: x wv -> v, 131072 FLOP, 10240 bytes\n"
                   "sdpa: qr kr v -> o stat, 69632 FLOP, 16512 bytes\n"
                   "einsum: o wo -> y, 131072 FLOP, 10240 bytes\n"
                   "einsum: y head -> logits, 262144 FLOP, 18432 bytes\n"
                   "cross_entropy: logits labels -> l stat, 20480 FLOP, 8452 bytes\n");
    assert_kernels(placed, placed->backward,
                   "cross_entropy_dx: one logits labels stat -> dlogits, 16384 FLOP, 16644 bytes\n"
                   "einsum: dlogits head -> dy, 262144 FLOP, 18432 bytes\n"
                   "einsum: dlogits y ->, adds dhead, 262144 FLOP, 43008 bytes\n"
                   "einsum: dy wo -> do, 131072 FLOP, 10240 bytes\n"
                   "einsum: dy o ->, adds dwo, 131072 FLOP, 22528 bytes\n"
                   "sdpa_bwd+rope_dx+rope_dx: do qr kr v o stat -> dv dk dq, 186368 FLOP, 32896 bytes\n"
                   "einsum: dv x ->, adds dwv, 131072 FLOP, 22528 bytes\n"
                   "einsum: dk x ->, adds dwk, 131072 FLOP, 22528 bytes\n"
                   "einsum: dq x ->, adds dwq, 131072 FLOP, 22528 bytes\n");
}

START_TEST(test_attention)
{
    etch_with_arena(attention_keeps_its_scores);
}
END_TEST

/* The vocabulary over tp: a rank looks up what it has of 32 rows, and the loss reduces three numbers for
 * each token. */
static void a_vocabulary_is_divided(etch_arena *arena)
{
    sample *x = sample_new(arena);
    etch_tensor *ids = sample_input(x, "ids", "bs", ETCH_I32), *emb = sample_weight(x, "emb", "vh");
    sample_loss(x, sample_call(x, "x", "gather", emb, ids, 'v', NULL));
    sample_shard(x, "B", DP);
    sample_shard(x, "V", TP);
    etch_placed *placed = sample_place(x);
    assert_kernels(placed, placed->forward,
                   "gather: emb ids -> x, 0 FLOP, 4224 bytes\n"
                   "all_reduce over tp: x, 2048 bytes\n"
                   "einsum: x head -> logits, 65536 FLOP, 6144 bytes\n"
                   "cross_entropy: logits labels -> l stat, 5120 FLOP, 2308 bytes\n"
                   "all_reduce over tp: stat, 128 bytes\n"
                   "all_reduce over tp: stat, 128 bytes\n"
                   "all_reduce over tp: stat, 128 bytes\n");
    assert_kernels(placed, placed->backward,
                   "cross_entropy_dx: one logits labels stat -> dlogits, 4096 FLOP, 4356 bytes\n"
                   "einsum: dlogits head -> dx, 65536 FLOP, 6144 bytes\n"
                   "einsum: dlogits x ->, adds dhead, 65536 FLOP, 12288 bytes\n"
                   "all_reduce over tp: dx, 2048 bytes\n"
                   "scatter: dx ids ->, adds demb, 1024 FLOP, 10368 bytes\n");
}

START_TEST(test_vocabulary)
{
    etch_with_arena(a_vocabulary_is_divided);
}
END_TEST

/* ---- loops and recomputation --------------------------------------------------------------------------- */

/* Three layers x = x + dropout(mlp(x)), the loss. */
static sample *layered_model(etch_arena *arena)
{
    const etch_span nowhere = {0, 0};
    sample *x = sample_new(arena);
    etch_tensor *in = sample_input(x, "x", "bsh", ETCH_BF16), *result = NULL;
    etch_graph_begin(x->graph, "layer", etch_int(x->sym, 3), nowhere);
    etch_tensor *body = etch_graph_carry(x->graph, in, nowhere);
    etch_tensor *dropped =
        sample_call(x, "d", "dropout", sample_mlp(x, body), NULL, 0, etch_ratio(x->sym, 1, 10));
    etch_tensor *z = sample_sum(x, "z", body, dropped);
    etch_graph_end(x->graph, &z, &result, 1);
    sample_loss(x, result);
    sample_shard(x, "B", DP);
    x->train.recompute.all = true;
    return x;
}

/* Forward keeps no inner value of a layer. What is run again is a kernel of its own, never one with
 * backward; its last product is run and written though nobody reads it. */
static void recomputation_stays_apart(etch_arena *arena)
{
    etch_placed *placed = sample_place(layered_model(arena));
    assert_kernels(placed, placed->forward,
                   "layer:\n"
                   "    rms_norm: x g -> h, 4096 FLOP, 4160 bytes\n"
                   "    einsum+silu: h w1 -> s, 141312 FLOP, 10240 bytes\n"
                   "    einsum+einsum: h w3 s -> a, 133120 FLOP, 14336 bytes\n"
                   "    einsum+dropout+add: a w2 x -> z, 134144 FLOP, 12288 bytes\n"
                   "einsum: x head -> logits, 262144 FLOP, 18432 bytes\n"
                   "cross_entropy: logits labels -> l stat, 20480 FLOP, 8452 bytes\n");
    assert_kernels(placed, placed->backward,
                   "cross_entropy_dx: one logits labels stat -> dlogits, 16384 FLOP, 16644 bytes\n"
                   "einsum: dlogits head -> dx, 262144 FLOP, 18432 bytes\n"
                   "einsum: dlogits x ->, adds dhead, 262144 FLOP, 43008 bytes\n"
                   "layer:\n"
                   "    rms_norm: x g -> h, 4096 FLOP, 4160 bytes\n"
                   "    einsum+silu: h w1 -> gate s, 141312 FLOP, 14336 bytes\n"
                   "    einsum+einsum: h w3 s -> up a, 133120 FLOP, 18432 bytes\n"
                   "    einsum+dropout+add: a w2 x -> mask z, 134144 FLOP, 13312 bytes\n"
                   "    dropout_dx+einsum+einsum+einsum+silu_dx: dx mask w2 up s gate -> dy dup dgate, "
                   "155648 FLOP, 29696 bytes\n"
                   "    einsum: dy a ->, adds dw2, 131072 FLOP, 22528 bytes\n"
                   "    einsum: dup w3 -> dh, 131072 FLOP, 10240 bytes\n"
                   "    einsum: dup h ->, adds dw3, 131072 FLOP, 22528 bytes\n"
                   "    einsum+add_cotangents: dgate w1 dh -> dh, 132096 FLOP, 12288 bytes\n"
                   "    einsum: dgate h ->, adds dw1, 131072 FLOP, 22528 bytes\n"
                   "    rms_norm_bwd+add_cotangents: dh x g dx -> dx, adds dg, 10240 FLOP, 8512 bytes\n");
}

START_TEST(test_recomputation)
{
    etch_with_arena(recomputation_stays_apart);
}
END_TEST

/* ---- the end of a step --------------------------------------------------------------------------------- */

/* One unit for each layer, one for what follows. dg is 32, dw1, dw2, dw3 are 2048 elements each, dhead is
 * 4096. */
static void units_follow_use(etch_arena *arena)
{
    sample *x = layered_model(arena);
    x->train.clip = true;
    etch_placed *placed = sample_place(x);
    const end_works reductions = end_reductions(placed);
    ck_assert_uint_eq(reductions.count, 2);
    const end_works updates = end_updates(placed);
    ck_assert_uint_eq(updates.count, 2);
    const end_work *last = &reductions.at[0], *layer = &reductions.at[1];
    ck_assert_ptr_null(last->weight_group->loop);
    ck_assert_str_eq(layer->weight_group->loop->name, "layer");
    ck_assert_uint_eq(last->axes, 1u << DP);
    ck_assert_int_eq(sample_value(last->bytes), 4 * 4096);
    ck_assert_uint_eq(last->gradients.count, 1);
    ck_assert_int_eq(sample_value(layer->bytes), 4 * 6176);
    ck_assert_uint_eq(layer->gradients.count, 4);
    ck_assert_str_eq(updates.at[0].weight_group->loop->name, "layer");
    ck_assert_int_eq(sample_value(updates.at[0].flop), 12 * 6176);
    ck_assert_int_eq(sample_value(updates.at[0].bytes), 30 * 6176);
    ck_assert_int_eq(sample_value(updates.at[1].flop), 12 * 4096);
    const end_works norms = end_norms(placed);
    ck_assert_uint_eq(norms.count, 2);
    ck_assert_int_eq(sample_value(norms.at[0].flop), 2 * 6176);
    ck_assert_int_eq(sample_value(norms.at[0].bytes), 4 * 6176);
    ck_assert_int_eq(sample_value(norms.at[1].flop), 2 * 4096);
    ck_assert_int_eq(sample_value(norms.at[1].bytes), 4 * 4096);
}

START_TEST(test_units)
{
    etch_with_arena(units_follow_use);
}
END_TEST

/* Sequence parallelism: a rank sees a quarter of the tokens behind the sum, so that g2 and head are
 * partial over tp as well. */
static void axes_tell_buckets_apart(etch_arena *arena)
{
    sample *x = sample_residual(arena);
    x->train.optimizer.master = false;
    sample_shard(x, "F", TP);
    sample_pin(x, "residual", "B", "S");
    etch_placed *placed = sample_place(x);
    const end_works reductions = end_reductions(placed);
    ck_assert_uint_eq(reductions.count, 2);
    ck_assert_uint_eq(reductions.at[0].axes, 1u << DP);
    ck_assert_int_eq(sample_value(reductions.at[0].bytes), 4 * (32 + 3 * 512));
    ck_assert_uint_eq(reductions.at[1].axes, 1u << DP | 1u << TP);
    ck_assert_int_eq(sample_value(reductions.at[1].bytes), 4 * (32 + 4096));
    const end_works updates = end_updates(placed);
    ck_assert_uint_eq(updates.count, 1);
    ck_assert_int_eq(sample_value(updates.at[0].bytes), (4 + 2 + 8 + 2 + 8) * (32 + 3 * 512 + 32 + 4096));
    const end_works norms = end_norms(placed);
    ck_assert_uint_eq(norms.count, 0);
}

START_TEST(test_buckets)
{
    etch_with_arena(axes_tell_buckets_apart);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("kernels");
    ETCH_ADD_TESTS(suite, test_residual_joins_product, test_residual_joins_norm, test_sharded_residual,
                   test_placements_apart, test_masks, test_tables, test_attention, test_vocabulary,
                   test_recomputation, test_units, test_buckets);
    return suite;
}
