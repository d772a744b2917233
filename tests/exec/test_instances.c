/* Instances: the gradient of a weight that several calls read is the slope of the loss, and ranks compute,
 * keep and move what they should, wherever the calls are. */
#include "exec_alive.h"
#include "exec_bind.h"
#include "exec_check.h"
#include "suite.h"
#include "verify.h"

static const char modules[] =
    "etch 1\n"
    "param batch, hidden, ffn, layers, micro\n"
    "dim B = batch, H = hidden, F = ffn\n"
    "use config tiny\nuse plan tested\n"
    "module mlp(x[B,H]) -> y[B,H] {\n"
    "  weight up[H,F], down[F,H]\n"
    "  h[B,F] = x * up\n"
    "  y = silu(h) * down\n"
    "}\n"
    "module block(x[B,H]; again = 0) -> y[B,H] {\n"
    "  weight g[H]\n"
    "  instance f = mlp\n"
    "  y = x + f(rms_norm(x, g, over = H))\n"
    "  if again { y = y + f(y) }\n"
    "}\n"
    "module twice(x[B,H]; f) -> y[B,H] { y = f(f(x)) }\n"
    "train once { model = m, optimizer = adamw(master = true), accumulate = (B, micro) }\n";

/* Each ends in one loss of m. */
static const char *const models[] = {
    /* two towers, layer by layer */
    "model m(p[B,H], q[B,H]) -> l[] {\n"
    "  a = p\n  b = q\n"
    "  repeat layers as layer {\n"
    "    instance f = block(again = 1)\n"
    "    a = f(a)\n    b = f(b)\n"
    "  }\n"
    "  l[] = mean(square(a - b), over = (B,H))  tag loss\n"
    "}\n",
    /* all layers alike, some of another tower, and once more behind them */
    "model m(p[B,H], q[B,H]) -> l[] {\n"
    "  instance f = block\n"
    "  a = p\n  b = q\n"
    "  repeat layers as layer {\n"
    "    a = f(a)\n"
    "    if layer % 2 == 0 { b = f(b, again = 1) }\n"
    "  }\n"
    "  a = f(a)\n"
    "  l[] = mean(square(a - b), over = (B,H))  tag loss\n"
    "}\n",
    /* handed to a module, among layers of their own */
    "model m(p[B,H], q[B,H]) -> l[] {\n"
    "  instance f = mlp\n"
    "  a = p + f(q)\n"
    "  repeat layers as layer {\n"
    "    a = block(a) + twice(a, f = f)\n"
    "  }\n"
    "  l[] = mean(square(a), over = (B,H))  tag loss\n"
    "}\n",
};

/* The rest of a plan, and sizes of its mesh: 1 to 8 ranks. */
static const char *const plans[][2] = {
    {"shard B @ dp", "dp = 1, tp = 1, pp = 1"},
    {"shard B @ dp, F @ tp", "dp = 2, tp = 2, pp = 1"},
    {"shard B @ dp\nzero 2 @ dp", "dp = 2, tp = 1, pp = 1"},
    {"shard B @ dp, F @ tp\nzero 3 @ dp", "dp = 2, tp = 2, pp = 1"},
    {"shard B @ dp\nzero 3 @ dp, keep = step, group = weight", "dp = 4, tp = 1, pp = 1"},
    {"shard B @ dp, H @ tp\nrecompute = layer", "dp = 1, tp = 2, pp = 1"},
    {"shard B @ dp\nstage layer @ pp", "dp = 1, tp = 1, pp = 2"},
    {"shard B @ dp, F @ tp\nzero 1 @ dp\nstage layer @ pp, schedule = zb_h1", "dp = 2, tp = 2, pp = 2"},
    {"shard B @ dp\nzero 3 @ dp\nstage layer @ pp, schedule = interleaved(virtual = 2)",
     "dp = 2, tp = 1, pp = 2"},
};

static void run(etch_arena *arena, const char *model, size_t p)
{
    const char *plan = plans[p][0], *mesh = plans[p][1];
    const char *text =
        etch_text(arena,
                  "%s%sconfig tiny { batch = 8, hidden = 4, ffn = 4, layers = 4, micro = 2, %s }\n"
                  "parallel tested {\nmesh [pp, dp, tp]\n%s\n}\n",
                  modules, model, mesh, plan);
    const exec_bound bound = exec_bind(arena, "instances.etch", text, "once", "tested", NULL);
    ck_assert_msg(bound.training != NULL, "%s\n%s", exec_messages(arena, bound.diags), text);
    const char *failure = p == 0 ? exec_check_gradients(bound.training, 1, true) : NULL;
    ck_assert_msg(!failure, "%s\n%s", failure, text);
    etch_placed *placed = verified(etch_place(bound.training, bound.plan, ETCH_GRANULARITY_KERNEL));
    ck_assert_msg(placed != NULL, "%s\n%s", exec_messages(arena, bound.diags), text);
    failure = exec_check_step(placed, 1);
    ck_assert_msg(!failure, "%s\n%s", failure, text);
}

static void run_all(etch_arena *arena)
{
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            run(own, models[m], p);
            etch_arena_free(own);
        }
}

START_TEST(calls_share_weights)
{
    etch_with_arena(run_all);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("instances");
    ETCH_ADD_TESTS(suite, calls_share_weights);
    return suite;
}
