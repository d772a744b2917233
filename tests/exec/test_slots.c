/* Pipelines run as slots: all stages and ranks do what the schedule says, with messages between them, and compute what one
 * rank computes. */
#include "exec_slots.h"
#include "exec_zoo.h"
#include "suite.h"

/* ---- models ------------------------------------------------------------------------------------------- */

/* Four layers between a projection and a head; `is_tied`: one weight for both of these. */
static exec_model *build_layers(etch_arena *arena, uint32_t micro, uint32_t layers, bool is_tied)
{
    exec_model *m = exec_model_new(arena, "B=8 S=4 H=4 F=8 V=4", micro);
    etch_tensor *table = exec_weight(m, "emb", "V H"), *head = is_tied ? table : exec_weight(m, "head", "V H");
    etch_tensor *x = exec_call_row(m, "e", "gather", "V", table, exec_ids(m, "ids", "B S"), NULL);
    exec_tag(m, x, "residual");
    x = exec_repeat(m, "layer", layers, x);
    etch_tensor *h = exec_product(m, "h", x, exec_weight(m, "up", "H F"), "B S F");
    h = exec_call_row(m, "a", "gelu", "", h, NULL, NULL);
    h = exec_sum(m, "x", x, exec_product(m, "y", h, exec_weight(m, "down", "F H"), "B S H"));
    exec_tag(m, h, "residual");
    x = exec_end(m, h);
    etch_tensor *n = exec_call_row(m, "n", "rms_norm", "H", x, exec_weight(m, "g", "H"), NULL);
    exec_head_loss(m, n, head);
    return m;
}

typedef struct staged {
    uint32_t micro, layers;
    bool is_tied;
    const char *recompute, *plan;
} staged;

static const staged staged_models[] = {
    {2, 4, false, NULL, "pp=2 | stage layer@pp gpipe"},
    {2, 4, false, NULL, "pp=2 | stage layer@pp"},
    {4, 4, false, NULL, "pp=4 | stage layer@pp"},
    {4, 4, false, NULL, "pp=2 | stage layer@pp interleaved virtual=2"},
    {4, 5, false, NULL, "pp=2 | stage layer@pp interleaved virtual=2"},
    {4, 4, false, NULL, "pp=2 | stage layer@pp counts=1,3"},
    {4, 4, true, NULL, "pp=2 | stage layer@pp"},
    {4, 4, true, "all", "pp=2 | stage layer@pp"},
    {2, 4, true, NULL, "pp=2 dp=2 | B@dp | stage layer@pp"},
    {2, 4, true, NULL, "pp=2 dp=2 tp=2 | B@dp F@tp V@tp | pin residual B@dp S@tp | stage layer@pp"},
    {2, 4, true, NULL, "pp=2 dp=2 | B@dp | zero dp | stage layer@pp"},
    {2, 4, true, NULL, "pp=2 dp=2 | B@dp | zero 2 dp | stage layer@pp"},
    {2, 4, true, NULL, "pp=2 dp=2 | B@dp | zero 3 dp | stage layer@pp"},
    {2, 4, true, "all", "pp=2 dp=2 | B@dp | zero 3 dp | stage layer@pp interleaved virtual=2"},
    {2, 4, true, NULL, "pp=2 dp=2 | B@dp | each | stage layer@pp"},
};

static void check_staged(etch_arena *arena, const staged *c)
{
    exec_model *m = build_layers(arena, c->micro, c->layers, c->is_tied);
    const etch_training *training = exec_train(m, c->recompute);
    const etch_plan *plan = exec_plan(arena, m->sym, c->plan);
    const etch_placed *placed = etch_place(training, plan, ETCH_GRANULARITY_KERNEL);
    ck_assert_msg(placed != NULL, "%s is refused", c->plan);
    const char *failure = exec_check_slots(placed, 1);
    ck_assert_msg(!failure, "%s%s%s: %s", c->is_tied ? "tied, " : "", c->recompute ? "recomputed, " : "",
                  c->plan, failure);
}

static void layers(etch_arena *arena)
{
    for (uint32_t i = 0; i < sizeof staged_models / sizeof *staged_models; i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        check_staged(own, &staged_models[i]);
        etch_arena_free(own);
    }
}

START_TEST(stages_compute_what_one_rank_computes)
{
    etch_with_arena(layers);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("slots");
    ETCH_ADD_TESTS(suite, stages_compute_what_one_rank_computes);
    return suite;
}
