/* Layouts that people describe, as they write them, on models as they are shipped: the loss and all gradients
 * of the ranks are those of one rank, and they keep, read and write the bytes that are said. For Ulysses,
 * experts folded into other axes, heads over two axes, padding, and parts of a model with placements of their
 * own. */
#include "exec_alive.h"
#include "exec_bind.h"
#include "exec_check.h"
#include "suite.h"
#include "verify.h"

#include <stdlib.h>

typedef struct layout {
    const char *model, *plan;
    const char *sets[6]; /* of the mesh, and other sizes; each is run */
} layout;

#define DECODER "batch = 4, seq = 8, layers = 2, hidden = 4, head_dim = 2, ffn = 8, vocab = 8, micro = 2"

/* The mesh's own sizes are params here, so that they are given as sizes are. */
static void run(etch_arena *arena, const layout *l, const char *sets)
{
    const char *path = etch_text(arena, "%s/models/layout.etch", getenv("ETCH_SOURCE_DIR"));
    const char *text = etch_text(arena,
                                 "etch 1\nimport \"%s.etch\"\nuse config tiny\nuse plan layout\n"
                                 "config tiny { %s }\n"
                                 "train small { model = %s, optimizer = adamw, accumulate = (B, micro) }\n"
                                 "parallel layout {\n%s\n}\n",
                                 l->model, sets, l->model, l->plan);
    const exec_bound bound = exec_bind(arena, path, text, "small", "layout", NULL);
    ck_assert_msg(bound.training != NULL, "%s\n%s", exec_messages(arena, bound.diags), text);
    etch_placed *placed = verified(etch_place(bound.training, bound.plan, ETCH_GRANULARITY_KERNEL));
    ck_assert_msg(placed != NULL, "%s\n%s", exec_messages(arena, bound.diags), text);
    const char *failure = exec_check_step(placed, 1);
    ck_assert_msg(!failure, "%s\n%s", failure, text);
}

static void run_all(etch_arena *arena, const layout *layouts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (const char *const *sets = layouts[i].sets; *sets; sets++) {
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            run(own, &layouts[i], *sets);
            etch_arena_free(own);
        }
}
#define RUN_ALL(arena, layouts) run_all((arena), (layouts), sizeof(layouts) / sizeof *(layouts))

/* ---- heads --------------------------------------------------------------------------------------------- */

/* Groups of heads that share keys, when there are more ranks than keys: from fewer ranks than keys to all
 * heads. */
static void heads(etch_arena *arena)
{
    static const layout layouts[] = {
        {"llama",
         "mesh [dp, kv = min(tp, kv_heads), g = tp/min(tp, kv_heads)]\naxis tp = (kv, g)\n"
         "shard B @ dp, K @ kv, G @ g, F @ tp, V @ tp",
         {DECODER ", heads = 8, kv_heads = 2, dp = 1, tp = 1",
          DECODER ", heads = 8, kv_heads = 2, dp = 2, tp = 2",
          DECODER ", heads = 8, kv_heads = 2, dp = 2, tp = 4",
          DECODER ", heads = 8, kv_heads = 2, dp = 1, tp = 8",
          DECODER ", heads = 8, kv_heads = 4, dp = 1, tp = 8"}},
        {"llama",
         "mesh [dp, kv = min(tp, kv_heads), g = tp/min(tp, kv_heads)]\naxis tp = (kv, g)\n"
         "shard B @ dp, K @ kv, G @ g, F @ tp, V @ tp\npin residual [B@dp, S@tp, H]\nzero 1 @ dp",
         {DECODER ", heads = 8, kv_heads = 2, dp = 2, tp = 4",
          DECODER ", heads = 4, kv_heads = 1, dp = 2, tp = 4"}},
    };
    RUN_ALL(arena, layouts);
}

START_TEST(more_ranks_than_heads_with_keys)
{
    etch_with_arena(heads);
}
END_TEST

/* ---- sequences ----------------------------------------------------------------------------------------- */

static void sequences(etch_arena *arena)
{
    static const layout layouts[] = {
        {"llama",
         "mesh [dp, uly]\nshard B @ dp, S @ uly\nfor core { shard S @ (), K @ uly }",
         {DECODER ", heads = 8, kv_heads = 4, dp = 1, uly = 4",
          DECODER ", heads = 4, kv_heads = 2, dp = 2, uly = 2"}},
        {"llama",
         "mesh [dp, uly, tp]\nshard B @ dp, S @ uly, K @ tp, F @ tp, V @ tp\n"
         "for core { shard S @ (), K @ (tp,uly) }",
         {DECODER ", heads = 8, kv_heads = 4, dp = 1, uly = 2, tp = 2"}},
        {"llama", /* keys are too few: their groups are divided as well */
         "mesh [dp, uly, tp]\nshard B @ dp, S @ uly, K @ tp, F @ tp, V @ tp\n"
         "for attention.core { shard S @ (), G @ uly }",
         {DECODER ", heads = 8, kv_heads = 2, dp = 1, uly = 2, tp = 2"}},
        {"llama",
         "mesh [dp, ring, uly, tp]\nshard B @ dp, S @ (ring,uly), K @ tp, F @ tp, V @ tp\n"
         "for core { shard S @ ring, K @ (tp,uly) }",
         {DECODER ", heads = 8, kv_heads = 4, dp = 1, ring = 2, uly = 2, tp = 2",
          DECODER ", heads = 4, kv_heads = 2, dp = 2, ring = 2, uly = 2, tp = 1"}},
        {"llama",
         "mesh [dp, ring, uly, tp]\nshard B @ dp, S @ (ring,uly), K @ tp, F @ tp, V @ tp\n"
         "pin residual [B@dp, S@(ring,uly,tp), H]\nzero 1 @ (dp,ring,uly)\nfor layer { for core { shard S @ "
         "ring, K @ "
         "(tp,uly) } }",
         {DECODER ", heads = 8, kv_heads = 4, dp = 1, ring = 2, uly = 2, tp = 2"}},
    };
    RUN_ALL(arena, layouts);
}

START_TEST(heads_inside_attention_and_the_sequence_outside)
{
    etch_with_arena(sequences);
}
END_TEST

/* ---- experts ------------------------------------------------------------------------------------------- */

#define EXPERTS                                                                                             \
    "batch = 8, seq = 16, layers = 2, hidden = 4, heads = 4, kv_heads = 2, head_dim = 2, ffn = 1, vocab = " \
    "4, experts = 8, "                                                                                      \
    "topk = 2, expert_ffn = 4, micro = 1"

static void experts(etch_arena *arena)
{
    static const layout layouts[] = {
        {"mixtral", /* ranks of attention's axes are ranks of experts */
         "mesh [edp = dp*cp*tp/ep, x = ep/(cp*tp), cp, tp]\naxis dp = (edp, x), ep = (x, cp, tp)\n"
         "shard B @ dp, S @ cp, K @ tp, V @ tp\npin residual [B@dp, S@(cp,tp), H]\nzero 1 @ (dp,cp)\n"
         "for experts_mlp { shard E @ ep, C @ edp }",
         {EXPERTS ", dp = 2, cp = 2, tp = 2, ep = 4", EXPERTS ", dp = 2, cp = 2, tp = 2, ep = 8",
          EXPERTS ", dp = 4, cp = 1, tp = 2, ep = 4", EXPERTS ", dp = 2, cp = 2, tp = 1, ep = 4"}},
        {"mixtral", /* experts are divided otherwise than heads */
         "mesh [edp = dp/(ep*etp), ep, etp, tp]\naxis dp = (edp, ep, etp)\n"
         "shard B @ dp, K @ tp, V @ tp\nfor experts_mlp { shard E @ ep, C @ edp, I @ etp }",
         {EXPERTS ", dp = 4, ep = 2, etp = 2, tp = 2", EXPERTS ", dp = 8, ep = 2, etp = 4, tp = 1"}},
        {"mixtral", /* more */
         "mesh [edp = dp*tp/(ep*etp), ep, e = etp/tp, tp]\naxis dp = (edp, ep, e), etp = (e, tp)\n"
         "shard B @ dp, K @ tp, V @ tp\npin residual [B@dp, S@tp, H]\nzero 1 @ dp\n"
         "for moe { for experts_mlp { shard E @ ep, C @ edp, I @ etp } }",
         {EXPERTS ", dp = 4, ep = 2, etp = 4, tp = 2", EXPERTS ", dp = 4, ep = 2, etp = 2, tp = 2"}},
        {"mixtral", /* and less: whole experts, on all ranks of tp others */
         "mesh [dp, tp]\nshard B @ dp, K @ tp, V @ tp\npin residual [B@dp, S@tp, H]\n"
         "for moe.experts_mlp { shard E @ (dp,tp), C @ () }",
         {EXPERTS ", dp = 2, tp = 2", EXPERTS ", dp = 4, tp = 2"}},
    };
    RUN_ALL(arena, layouts);
}

START_TEST(experts_on_ranks_of_other_axes)
{
    etch_with_arena(experts);
}
END_TEST

/* ---- padding ------------------------------------------------------------------------------------------- */

#define ODD "batch = 4, seq = 8, layers = 2, hidden = 4, head_dim = 2, heads = 4, kv_heads = 2, micro = 2"

static void padding(etch_arena *arena)
{
    static const layout layouts[] = {
        {"llama",
         "mesh [dp, tp]\nshard B @ dp, K @ tp, F @ tp, V @ tp\npad V = 4*tp, F = tp",
         {ODD ", ffn = 7, vocab = 13, dp = 2, tp = 2", ODD ", ffn = 4, vocab = 8, dp = 1, tp = 2",
          ODD ", ffn = 5, vocab = 9, dp = 1, tp = 1"}},
        {"llama",
         "mesh [dp, tp]\nshard B @ dp, F @ tp, V @ tp\npin residual [B@dp, S@tp, H]\nzero 1 @ dp\n"
         "pad V = 2*tp\npad F = 2*tp",
         {ODD ", ffn = 7, vocab = 13, dp = 2, tp = 4", ODD ", ffn = 9, vocab = 3, dp = 2, tp = 4"}},
        {"llama", /* weights themselves in parts */
         "mesh [copies, dp, tp]\nshard B @ (copies,dp), F @ tp, V @ tp\nzero 3 @ dp\npad V = 8*tp, F = 4*tp",
         {ODD ", ffn = 7, vocab = 13, copies = 1, dp = 2, tp = 2",
          "batch = 8, seq = 8, layers = 2, hidden = 4, head_dim = 2, heads = 4, kv_heads = 2, micro = 2, ffn "
          "= 5, vocab = 9, copies = 2, dp = 2, tp = 1"}},
        {"mixtral", /* experts that the slots do not care about */
         "mesh [dp, tp]\nshard B @ dp, I @ tp, V @ tp\npad I = 4*tp, V = tp",
         {"batch = 4, seq = 4, layers = 1, hidden = 4, heads = 4, kv_heads = 2, head_dim = 2, ffn = 1, vocab "
          "= 5, "
          "experts = 4, topk = 2, expert_ffn = 5, micro = 1, dp = 1, tp = 2"}},
    };
    RUN_ALL(arena, layouts);
}

START_TEST(padding_changes_no_result)
{
    etch_with_arena(padding);
}
END_TEST

#define ODD_SEQ                                                                                              \
    "batch = 4, layers = 2, hidden = 4, head_dim = 2, heads = 4, kv_heads = 4, micro = 2, ffn = 4, vocab = " \
    "8"

/* Queries and keys behind the last are masked; ranks may have no token at all. */
static void padded_queries(etch_arena *arena)
{
    static const layout layouts[] = {
        {"llama",
         "mesh [dp, tp]\nshard B @ dp, K @ tp, F @ tp, V @ tp\npin residual [B@dp, S@tp, H]\nzero 1 @ dp\n"
         "pad S = tp",
         {ODD_SEQ ", seq = 7, dp = 2, tp = 2", ODD_SEQ ", seq = 5, dp = 1, tp = 4",
          ODD_SEQ ", seq = 1, dp = 2, tp = 2"}},
        {"llama",
         "mesh [cp]\nshard S @ cp\nzero 3 @ cp\npad S = 2*cp",
         {ODD_SEQ ", seq = 7, cp = 2", ODD_SEQ ", seq = 5, cp = 3"}},
        {"gemma2",
         "mesh [cp]\nshard S @ cp\nbalance = false\npad S = cp",
         {ODD_SEQ ", window = 3, seq = 7, cp = 4"}},
        {"llama",
         "mesh [uly]\nshard S @ uly\npad S = uly\nfor core {\nshard S @ (), K @ uly\n}",
         {ODD_SEQ ", seq = 7, uly = 4"}},
        {"gpt",
         "mesh [tp]\nshard A @ tp, F @ tp, V @ tp\npin residual [B, S@tp, H]\npad S = 4*tp",
         {"batch = 4, layers = 2, hidden = 8, heads = 4, micro = 2, vocab = 8, seq = 6, positions = 8, tp = "
          "2"}},
        {"vit", /* a token beside those of the image */
         "mesh [dp, tp]\nshard B @ dp, A @ tp, F @ tp\npin residual [B@dp, S@tp, H]\npad S = tp, B = dp",
         {"batch = 10, image = 4, patch = 2, channels = 1, classes = 3, layers = 1, hidden = 4, heads = 2, "
          "head_dim = 2, ffn = 4, micro = 2, dp = 4, tp = 2"}},
        {"t5",
         "mesh [tp]\nshard S @ tp, U @ tp\npad S = 2*tp, U = 2*tp",
         {"batch = 2, src = 7, tgt = 5, enc_layers = 1, dec_layers = 1, hidden = 4, heads = 4, head_dim = 2, "
          "ffn = 8, "
          "vocab = 8, micro = 2, tp = 2"}},
    };
    RUN_ALL(arena, layouts);
}

START_TEST(padded_queries_change_no_result)
{
    etch_with_arena(padded_queries);
}
END_TEST

/* The last ranks have fewer sequences, or none. */
static void padded_batches(etch_arena *arena)
{
    static const layout layouts[] = {
        {"llama",
         "mesh [dp]\nshard B @ dp\nzero 1 @ dp\npad B = dp",
         {"batch = 10, seq = 4, layers = 2, hidden = 4, head_dim = 2, heads = 4, kv_heads = 4, micro = 2, "
          "ffn = 4, "
          "vocab = 8, dp = 4",
          "batch = 5, seq = 4, layers = 2, hidden = 4, head_dim = 2, heads = 4, kv_heads = 4, micro = 1, ffn "
          "= 4, "
          "vocab = 8, dp = 4"}},
        {"gpt",
         "mesh [dp, tp]\nshard B @ dp, A @ tp, F @ tp\nzero 3 @ dp\npad B = dp, S = tp\npin residual [B@dp, "
         "S@tp, H]",
         {"batch = 6, seq = 3, positions = 4, layers = 1, hidden = 8, heads = 4, micro = 2, vocab = 8, dp = "
          "2, tp = 2"}},
    };
    RUN_ALL(arena, layouts);
}

START_TEST(padded_batches_change_no_result)
{
    etch_with_arena(padded_batches);
}
END_TEST

/* ---- parts of a model ---------------------------------------------------------------------------------- */

static void parts(etch_arena *arena)
{
    static const layout layouts[] = {
        {"llama",
         "mesh [dp, tp]\nshard B @ dp, V @ tp\nfor layer { shard B @ (dp,tp) }",
         {DECODER ", heads = 4, kv_heads = 2, dp = 1, tp = 2"}},
        {"llama",
         "mesh [dp, tp]\nshard B @ dp, V @ tp\nfor layer { shard S @ tp\nfor block.mlp { shard S @ (), F @ "
         "tp } }\n"
         "for head { shard S @ tp, V @ () }",
         {DECODER ", heads = 4, kv_heads = 2, dp = 2, tp = 2"}},
        {"llama",
         "mesh [dp, tp]\nshard B @ dp, V @ tp\nfor layer { shard B @ (dp,tp)\nfor mlp { shard F @ tp, B @ dp "
         "} }\n"
         "zero 3 @ (dp,tp)",
         {"batch = 8, seq = 8, layers = 2, hidden = 4, head_dim = 2, ffn = 8, vocab = 8, micro = 2, heads = "
          "4, "
          "kv_heads = 2, dp = 2, tp = 2"}},
        {"llama",
         "mesh [dp, tp]\nshard B @ dp, K @ tp, F @ tp\nfor (embed, head) { shard V @ (tp,dp), B @ () }\n"
         "for attention { recompute = core }",
         {DECODER ", heads = 4, kv_heads = 2, dp = 2, tp = 2"}},
    };
    RUN_ALL(arena, layouts);
}

START_TEST(parts_with_a_placement_of_their_own)
{
    etch_with_arena(parts);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("layouts");
    ETCH_ADD_TESTS(suite, more_ranks_than_heads_with_keys, heads_inside_attention_and_the_sequence_outside,
                   experts_on_ranks_of_other_axes, padding_changes_no_result, padded_queries_change_no_result,
                   padded_batches_change_no_result, parts_with_a_placement_of_their_own);
    return suite;
}
