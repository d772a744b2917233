#include "exec_zoo.h"
#include "exec_env.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- a decoder with grouped queries, rotary positions and a gated MLP ------------------------------- */

static etch_tensor *rms(exec_model *m, etch_tensor *x)
{
    etch_tensor *in = exec_enter(m, "norm", x);
    return exec_leave(m, "n", exec_call_row(m, "n", "rms_norm", "H", in, exec_weight(m, "g", "H"), NULL));
}

static etch_tensor *grouped_attention(exec_model *m, etch_tensor *x)
{
    etch_tensor *in = exec_enter(m, "attention", x);
    etch_tensor *q = exec_product(m, "q", in, exec_weight(m, "wq", "H K G D"), "B S K G D");
    etch_tensor *k = exec_product(m, "k", in, exec_weight(m, "wk", "H K D"), "B S K D");
    etch_tensor *v = exec_product(m, "v", in, exec_weight(m, "wv", "H K D"), "B S K D");
    q = exec_call_row(m, "q", "rope", "D", q, NULL, NULL);
    k = exec_cache(m, "k", exec_call_row(m, "k", "rope", "D", k, NULL, NULL), "S", "T", 0);
    v = exec_cache(m, "v", v, "S", "T", 0);
    etch_tensor *o = exec_attend(m, "o", q, k, v, "T", "D", true);
    return exec_leave(m, "y", exec_product(m, "y", o, exec_weight(m, "wo", "K G D H"), "B S H"));
}

static etch_tensor *gated_mlp(exec_model *m, etch_tensor *x)
{
    etch_tensor *in = exec_enter(m, "mlp", x);
    etch_tensor *gate = exec_product(m, "gate", in, exec_weight(m, "wg", "H F"), "B S F");
    etch_tensor *up = exec_product(m, "up", in, exec_weight(m, "wu", "H F"), "B S F");
    etch_tensor *s = exec_call_row(m, "s", "silu", "", gate, NULL, NULL);
    etch_tensor *a = exec_product(m, "a", s, up, "B S F");
    return exec_leave(m, "y", exec_product(m, "y", a, exec_weight(m, "wd", "F H"), "B S H"));
}

static etch_tensor *residual(exec_model *m, etch_tensor *x, etch_tensor *y)
{
    etch_tensor *sum = exec_sum(m, "x", x, y);
    exec_tag(m, sum, "residual");
    return sum;
}

static etch_tensor *embedding(exec_model *m, etch_tensor *table)
{
    etch_tensor *x = exec_call_row(m, "e", "gather", "V", table, exec_ids(m, "ids", "B S"), NULL);
    exec_tag(m, x, "residual");
    return x;
}

static etch_tensor *llama_layers(exec_model *m)
{
    etch_tensor *x = exec_repeat(m, "layer", 2, embedding(m, exec_weight(m, "emb", "V H")));
    x = residual(m, x, grouped_attention(m, rms(m, x)));
    x = residual(m, x, gated_mlp(m, rms(m, x)));
    return exec_end(m, x);
}

static exec_model *build_llama(etch_arena *arena, uint32_t micro)
{
    exec_model *m = exec_model_new(arena, "B=8 S=4 T=4 H=4 K=4 G=2 D=2 F=8 V=12", micro);
    etch_tensor *x = llama_layers(m);
    exec_head_loss(m, rms(m, x), exec_weight(m, "head", "H V"));
    return m;
}

etch_training *exec_served_llama(etch_arena *arena, exec_model **model)
{
    exec_model *m = *model = exec_model_new(arena, "B=8 S=4 T=6 H=4 K=4 G=2 D=2 F=8 V=12", 1);
    m->graph->serves = true;
    etch_tensor *x = llama_layers(m);
    etch_tensor *unused = exec_repeat(m, "unused", 3, x);
    exec_end(m, exec_call_row(m, "unused", "tanh", "", unused, NULL, NULL));
    etch_tensor *head = exec_weight(m, "head", "H V");
    etch_tensor *z = exec_product(m, "z", rms(m, x), head, "B S V");
    exec_tag(m, exec_call_row(m, "l", "cross_entropy", "V", z, exec_ids(m, "labels", "B S"), NULL), "loss");
    return exec_serve(m, z);
}

const char *const exec_served_plans[] = {
    "",
    "dp=2 | B@dp",
    "tp=2 | K@tp F@tp V@tp",
    "dp=2 tp=2 | B@dp K@tp F@tp V@tp",
    "dp=2 tp=2 | B@dp K@tp F@tp V@tp | pin residual B@dp S@tp",
    "a=2 b=2 | K@a G@b F@a,b V@a,b",
    "tp=2 | H@tp",
    "cp=2 | S@cp",
    "cp=2 | T@cp",
    "cp=2 tp=2 | S@cp K@tp F@tp V@tp",
    "a=2 b=2 | D@a K@b",
    NULL,
};

static const char *const llama_plans[] = {
    "",
    "dp=2 | B@dp",
    "tp=2 | K@tp F@tp V@tp",
    "tp=4 | K@tp F@tp V@tp",
    "tp=2 | K@tp F@tp V@tp | pin residual S@tp",
    "dp=2 tp=2 | B@dp K@tp F@tp V@tp",
    "dp=2 tp=2 | B@dp K@tp F@tp V@tp | pin residual B@dp S@tp",
    "tp=2 dp=2 | B@dp K@tp F@tp V@tp | pin residual B@dp S@tp",
    "dp=2 tp=4 | B@dp K@tp F@tp V@tp | pin residual B@dp S@tp",
    "a=2 b=2 | K@a,b F@a,b V@a,b",
    "a=2 b=2 | K@b,a F@b,a V@b,a | pin residual S@b,a",
    "dp=2 a=2 b=2 | B@dp K@a,b F@a,b V@a,b | pin residual B@dp S@a,b",
    "a=2 b=2 | K@a G@b F@a,b V@a,b",
    "dp=2 tp=2 | B@dp | for attention K@tp | for mlp F@tp",
    "dp=2 tp=2 | B@dp K@tp F@tp V@tp | for attention K@ | for mlp F@dp B@",
    "a=2 b=2 | B@a,b",
    "tp=2 | H@tp",
    "dp=2 tp=2 | B@dp H@tp",
    "dp=2 tp=2 | B@dp K@tp F@tp V@tp | pin residual B@dp H@tp",
    "dp=2 tp=2 | B@dp V@tp | pin residual B@dp,tp",
    "dp=2 | B@dp | zero dp",
    "dp=4 | B@dp | zero dp",
    "dp=2 tp=2 | B@dp K@tp F@tp V@tp | zero dp",
    "dp=2 tp=2 | B@dp K@tp F@tp V@tp | zero tp",
    "dp=2 tp=2 | B@dp K@tp F@tp V@tp | pin residual B@dp S@tp | zero dp",
    "dp=2 tp=2 | B@dp K@tp F@tp V@tp | pin residual B@dp S@tp | zero dp,tp",
    "rep=2 dp=2 | B@rep,dp | zero dp",
    "rep=2 dp=2 tp=2 | B@rep,dp K@tp F@tp V@tp | pin residual B@rep,dp S@tp | zero rep",
    "dp=2 x=2 | B@dp | zero x",
    "dp=2 x=2 | B@dp | zero dp,x",
    "cp=2 | S@cp",
    "cp=2 | S@cp | zero cp",
    "dp=2 cp=2 | B@dp S@cp | zero dp,cp",
    "cp=2 tp=2 | S@cp K@tp F@tp V@tp",
    "dp=2 cp=2 tp=2 | B@dp S@cp K@tp F@tp V@tp | pin residual B@dp S@cp,tp | zero dp,cp",
    "cp=2 tp=2 | S@cp K@tp F@tp V@tp | pin residual S@cp,tp",
    "a=2 b=2 | B@a,b | for attention S@b B@a",
    "dp=2 | B@dp | each",
    "dp=2 tp=2 | B@dp K@tp F@tp V@tp | pin residual B@dp S@tp | zero dp | each",
    "rep=2 dp=2 | B@rep,dp | zero dp | each",
    "cp=2 | S@cp | contiguous",
    "cp=4 | S@cp | contiguous",
    "dp=2 cp=2 tp=2 | B@dp S@cp K@tp F@tp V@tp | pin residual B@dp S@cp,tp | contiguous",
    "a=2 b=2 | S@b,a | zero a,b | contiguous",
    "a=2 b=2 | S@a,b | for attention S@a K@b | contiguous",
    "cp=2 | S@cp | rings",
    "cp=2 | S@cp | rings | zero cp",
    "cp=4 | S@cp | rings | contiguous",
    "dp=2 cp=2 tp=2 | B@dp S@cp K@tp F@tp V@tp | pin residual B@dp S@cp,tp | zero dp,cp | rings",
    "a=2 b=2 | S@a,b | for attention S@a K@b | rings",
    "a=2 b=2 | S@a,b | for attention S@a K@b | rings | contiguous",
    NULL,
};

/* ---- biases, learned positions, dropout, attention written out, a tied embedding -------------------- */

static etch_tensor *layer_norm(exec_model *m, etch_tensor *x)
{
    etch_tensor *in = exec_enter(m, "ln", x);
    etch_tensor *g = exec_weight(m, "g", "H"), *b = exec_weight(m, "b", "H");
    return exec_leave(m, "n", exec_call_row(m, "n", "layer_norm", "H", in, g, b));
}

static etch_tensor *dense(exec_model *m, const char *name, etch_tensor *x, const char *weight,
                          const char *bias, const char *dims)
{
    etch_tensor *y = exec_product(m, name, x, exec_weight(m, "w", weight), dims);
    return exec_sum(m, name, y, exec_weight(m, "bias", bias));
}

static etch_tensor *plain_attention(exec_model *m, etch_tensor *x)
{
    etch_tensor *in = exec_enter(m, "attention", x);
    etch_tensor *q = dense(m, "q", in, "H A D", "A D", "B S A D");
    etch_tensor *k = dense(m, "k", exec_rename(m, "xk", in, "S", "S'"), "H A D", "A D", "B S' A D");
    etch_tensor *v = dense(m, "v", exec_rename(m, "xv", in, "S", "S'"), "H A D", "A D", "B S' A D");
    etch_tensor *scores = exec_product(m, "scores", q, k, "B A S S'");
    scores = exec_call_number(m, "scores", "scale", 1, 2, scores);
    etch_tensor *p = exec_call_row(m, "p", "softmax", "S'", scores, NULL, NULL);
    p = exec_call_number(m, "p", "dropout", 1, 4, p);
    etch_tensor *o = exec_product(m, "o", p, v, "B S A D");
    return exec_leave(m, "y", dense(m, "y", o, "A D H", "H", "B S H"));
}

static etch_tensor *plain_mlp(exec_model *m, etch_tensor *x)
{
    etch_tensor *in = exec_enter(m, "mlp", x);
    etch_tensor *h = exec_call_row(m, "h", "gelu", "", dense(m, "h", in, "H F", "F", "B S F"), NULL, NULL);
    return exec_leave(m, "y", dense(m, "y", h, "F H", "H", "B S H"));
}

static exec_model *build_gpt(etch_arena *arena, uint32_t micro)
{
    exec_model *m = exec_model_new(arena, "B=8 S=4 S'=4 H=4 A=4 D=2 F=8 V=8 P=6", micro);
    etch_tensor *table = exec_weight(m, "tok", "V H"), *positions = exec_weight(m, "pos", "P H");
    etch_tensor *x = exec_sum(m, "x", embedding(m, table), exec_slice(m, "first", positions, "P", "S"));
    x = exec_call_number(m, "x", "dropout", 1, 4, x);
    exec_tag(m, x, "residual");
    x = exec_repeat(m, "layer", 2, x);
    x = residual(m, x, exec_call_number(m, "d", "dropout", 1, 4, plain_attention(m, layer_norm(m, x))));
    x = residual(m, x, exec_call_number(m, "d", "dropout", 1, 4, plain_mlp(m, layer_norm(m, x))));
    x = exec_end(m, x);
    exec_head_loss(m, layer_norm(m, x), table);
    return m;
}

static const char *const gpt_plans[] = {
    "",
    "dp=2 | B@dp",
    "tp=2 | A@tp F@tp V@tp",
    "tp=2 | A@tp F@tp V@tp | pin residual S@tp",
    "dp=2 tp=2 | B@dp A@tp F@tp V@tp",
    "dp=2 tp=2 | B@dp A@tp F@tp V@tp | pin residual B@dp S@tp",
    "dp=2 tp=4 | B@dp A@tp F@tp V@tp | pin residual B@dp S@tp",
    "a=2 b=2 | A@a,b F@b,a V@a,b | pin residual S@a,b",
    "tp=2 | S@tp",
    "tp=2 | S'@tp",
    "dp=2 tp=2 | B@dp | for attention A@tp | for mlp F@tp",
    "dp=2 tp=2 | B@dp H@tp",
    "a=2 b=2 | D@a F@b",
    "dp=2 tp=2 | B@dp A@tp F@tp V@tp | pin residual B@dp S@tp | zero dp",
    "cp=2 tp=2 | S@cp A@tp F@tp V@tp | zero cp",
    "dp=2 | B@dp | zero dp",
    NULL,
};

/* ---- a residual MLP with modules that plans place on their own -------------------------------------- */

static etch_tensor *bottleneck(exec_model *m, const char *module, etch_tensor *x)
{
    etch_tensor *in = exec_enter(m, module, x);
    etch_tensor *h = exec_product(m, "h", in, exec_weight(m, "w1", "H F"), "B S F");
    exec_tag(m, h, "hidden");
    h = exec_call_row(m, "h", "silu", "", h, NULL, NULL);
    return exec_leave(m, "y", exec_product(m, "y", h, exec_weight(m, "w2", "F H"), "B S H"));
}

static exec_model *build_mlp(etch_arena *arena, uint32_t micro)
{
    exec_model *m = exec_model_new(arena, "B=8 S=4 H=4 F=8 V=8", micro);
    etch_tensor *x = exec_input(m, "x", "B S H");
    x = exec_product(m, "x", x, exec_weight(m, "gain", "H"), "B S H");
    exec_tag(m, x, "residual");
    x = residual(m, x, bottleneck(m, "first", x));
    x = residual(m, x, bottleneck(m, "second", exec_call_row(m, "n", "rms_norm", "H", x, NULL, NULL)));
    x = residual(m, x, bottleneck(m, "third", x));
    exec_head_loss(m, x, exec_weight(m, "head", "H V"));
    return m;
}

static exec_model *with_sgd(exec_model *m, bool momentum, bool master)
{
    const etch_row *row = etch_optimizer_called(m->graph->table, "sgd");
    m->train.optimizer.row = momentum ? etch_optimizer_with_momentum(m->graph->table, row) : row;
    m->train.optimizer.master = master;
    return m;
}

static exec_model *build_sgd(etch_arena *arena, uint32_t micro)
{
    return with_sgd(build_mlp(arena, micro), false, false);
}

static exec_model *build_momentum(etch_arena *arena, uint32_t micro)
{
    return with_sgd(build_mlp(arena, micro), true, micro > 1);
}

static exec_model *build_8_bits(etch_arena *arena, uint32_t micro)
{
    exec_model *m = build_mlp(arena, micro);
    m->train.optimizer.row = etch_optimizer_with_8_bits(m->graph->table, m->train.optimizer.row);
    return m;
}

static exec_model *with_optimizer(exec_model *m, const char *name)
{
    m->train.optimizer.row = etch_optimizer_called(m->graph->table, name);
    return m;
}

static exec_model *build_lamb(etch_arena *arena, uint32_t micro)
{
    return with_optimizer(build_mlp(arena, micro), "lamb");
}

static exec_model *build_muon(etch_arena *arena, uint32_t micro)
{
    return with_optimizer(build_mlp(arena, micro), "muon");
}

static const char *const parts_plans[] = {
    "",
    "dp=2 tp=2 | B@dp F@tp V@tp",
    "dp=2 tp=2 | B@dp F@tp V@tp | zero dp",
    "dp=2 cp=2 | B@dp S@cp | zero dp,cp",
    "a=2 b=2 | B@a F@b | for second F@ H@b | zero a",
    "dp=4 | B@dp | zero dp",
    NULL,
};

static const char *const sgd_plans[] = {
    "", "dp=2 | B@dp", "dp=2 tp=2 | B@dp F@tp V@tp | zero dp", "dp=2 cp=2 | B@dp S@cp | zero cp", NULL,
};

static const char *const mlp_plans[] = {
    "dp=2 tp=2 | B@dp F@tp | for second F@ H@tp",
    "dp=2 tp=2 | B@dp F@tp | for second F@ S@tp",
    "dp=2 tp=2 | B@dp F@tp | for second,third F@dp B@",
    "dp=2 tp=2 | B@dp F@tp V@tp | pin residual B@dp S@tp | for second F@",
    "dp=2 tp=2 | B@dp F@tp V@tp | pin residual S@dp",
    "dp=2 tp=2 | B@dp F@tp V@tp | pin residual H@tp | pin hidden B@dp F@tp",
    "dp=2 tp=2 | B@dp F@tp | pin hidden B@tp S@dp",
    "a=2 b=2 | B@a | for first F@b | for second F@a,b B@ | for third S@b",
    "a=2 b=2 | B@a,b | for second B@a F@b",
    "a=2 b=2 c=2 | B@a | pin residual B@a S@b,c | for second F@b,c | for third F@c H@b",
    "a=2 b=2 | B@a F@b | pin second.y B@a H@b",
    "a=2 b=2 | B@a F@b | for third B@ S@a",
    NULL,
};

/* ---- loops in loops, weights and values from outside ------------------------------------------------ */

static exec_model *build_nested(etch_arena *arena, uint32_t micro)
{
    exec_model *m = exec_model_new(arena, "B=8 S=2 H=4 F=4 V=4", micro);
    etch_tensor *shared = exec_weight(m, "shared", "H F"), *back = exec_weight(m, "back", "F H");
    etch_tensor *start = embedding(m, exec_weight(m, "emb", "V H"));
    etch_tensor *outside = exec_call_row(m, "outside", "tanh", "", start, NULL, NULL);
    etch_tensor *x = exec_repeat(m, "outer", 2, start);
    etch_tensor *own = exec_weight(m, "own", "H");
    x = residual(m, x, exec_product(m, "scaled", outside, own, "B S H"));
    etch_tensor *before = exec_call_row(m, "before", "sigmoid", "", x, NULL, NULL);
    etch_tensor *y = exec_repeat(m, "inner", 3, x);
    etch_tensor *h = exec_call_row(m, "h", "rms_norm", "H", y, own, NULL);
    h = exec_product(m, "h", h, shared, "B S F");
    h = exec_product(m, "h", exec_call_row(m, "h", "silu", "", h, NULL, NULL), back, "B S H");
    h = exec_product(m, "h", h, exec_weight(m, "inmost", "H"), "B S H");
    y = residual(m, y, exec_product(m, "h", h, before, "B S H"));
    y = residual(m, y, outside);
    x = exec_end(m, y);
    x = exec_end(m, exec_sum(m, "x", x, start));
    exec_head_loss(m, rms(m, x), exec_weight(m, "head", "H V"));
    return m;
}

static const char *const nested_plans[] = {
    "",
    "dp=2 | B@dp",
    "tp=2 | F@tp V@tp",
    "dp=2 tp=2 | B@dp F@tp V@tp | pin residual B@dp S@tp",
    "dp=2 tp=2 | B@dp H@tp",
    "dp=2 tp=2 | B@dp F@tp | pin residual B@dp H@tp",
    "a=2 b=2 | B@a,b F@b",
    "dp=4 | B@dp | zero dp",
    "dp=2 tp=2 | B@dp F@tp V@tp | pin residual B@dp S@tp | zero dp,tp",
    NULL,
};

/* ---- objectives in modules, in loops, and made of one another --------------------------------------- */

/* The mean over experts of what a router says, squared. */
static void balance(exec_model *m, etch_tensor *x)
{
    etch_tensor *in = exec_enter(m, "balance", x);
    etch_tensor *p = exec_product(m, "scores", in, exec_weight(m, "router", "H E"), "B S E");
    p = exec_call_row(m, "p", "softmax", "E", p, NULL, NULL);
    etch_tensor *l = exec_reduce(m, "l", exec_product(m, "squares", p, p, "B S E"), "");
    l = exec_call_number(m, "l", "scale", 1, 10, l);
    exec_tag(m, exec_leave(m, "l", l), "loss");
}

static exec_model *build_objectives(etch_arena *arena, uint32_t micro)
{
    exec_model *m = exec_model_new(arena, "B=8 S=4 H=4 E=4 F=8 V=8", micro);
    etch_tensor *table = exec_weight(m, "emb", "V H"), *head = exec_weight(m, "head", "H V");
    etch_tensor *x = exec_repeat(m, "layer", 2, embedding(m, table));
    balance(m, x);
    x = residual(m, x, bottleneck(m, "mlp", rms(m, x)));
    x = exec_end(m, x);
    exec_head_loss(m, rms(m, x), head);
    etch_tensor *next = residual(m, x, bottleneck(m, "mtp", rms(m, x)));
    etch_tensor *z = exec_product(m, "later", rms(m, next), head, "B S V");
    etch_tensor *l = exec_call_row(m, "l", "cross_entropy", "V", z, exec_ids(m, "labels", "B S"), NULL);
    exec_tag(m, l, "loss"); /* and once more through the third */
    exec_tag(m, exec_call_number(m, "l", "scale", 3, 10, l), "loss");
    return m;
}

static const char *const objectives_plans[] = {
    "",
    "dp=2 | B@dp",
    "tp=2 | F@tp V@tp",
    "dp=2 tp=2 | B@dp F@tp V@tp | pin residual B@dp S@tp",
    "dp=2 tp=2 | B@dp H@tp",
    "dp=2 tp=2 | B@dp E@tp",
    "dp=2 tp=2 | B@dp F@tp V@tp | zero dp",
    "cp=2 | S@cp",
    NULL,
};

/* ---- weights that are not trained -------------------------------------------------------------------- */

static void freeze(exec_model *m, const char *const *selectors, uint32_t count)
{
    m->train.freeze = selectors;
    m->train.freeze_count = count;
}

/* A low-rank path beside each projection, and nothing else trained. */
static exec_model *build_adapted(etch_arena *arena, uint32_t micro)
{
    static const char *const frozen[] = {"norm",         "mlp",       "attention.wq",
                                         "attention.wo", "model.emb", "model.head"};
    exec_model *m = exec_model_new(arena, "B=8 S=4 T=4 H=4 K=4 D=2 F=8 V=8 R=2", micro);
    etch_tensor *x = exec_repeat(m, "layer", 2, embedding(m, exec_weight(m, "emb", "V H")));
    etch_tensor *in = exec_enter(m, "attention", rms(m, x));
    etch_tensor *wq = exec_weight(m, "wq", "H K D");
    etch_tensor *down = exec_product(m, "down", in, exec_weight(m, "a", "H R"), "B S R");
    etch_tensor *side = exec_product(m, "side", down, exec_weight(m, "b", "R K D"), "B S K D");
    etch_tensor *q = exec_sum(m, "q", exec_product(m, "q", in, wq, "B S K D"), side);
    etch_tensor *keys = exec_rename(m, "keys", q, "S", "T");
    etch_tensor *o = exec_attend(m, "o", q, keys, keys, "T", "D", true);
    x = residual(m, x, exec_leave(m, "y", exec_product(m, "y", o, exec_weight(m, "wo", "K D H"), "B S H")));
    x = residual(m, x, gated_mlp(m, rms(m, x)));
    x = exec_end(m, x);
    exec_head_loss(m, rms(m, x), exec_weight(m, "head", "H V"));
    freeze(m, frozen, sizeof frozen / sizeof *frozen);
    return m;
}

/* A tower that is run and not trained, with a loss of its own that trains nothing. */
static exec_model *build_tower(etch_arena *arena, uint32_t micro)
{
    static const char *const frozen[] = {"lower", "table"};
    exec_model *m = exec_model_new(arena, "B=8 S=4 H=4 E=4 F=8 V=8", micro);
    etch_tensor *table = exec_weight(m, "emb", "V H");
    exec_tag(m, table, "table");
    etch_tensor *x = exec_repeat(m, "lower", 2, embedding(m, table));
    balance(m, x);
    x = residual(m, x, bottleneck(m, "mlp", rms(m, x)));
    x = exec_end(m, x);
    x = exec_repeat(m, "upper", 2, x);
    x = residual(m, x, bottleneck(m, "mlp", rms(m, x)));
    x = exec_end(m, x);
    exec_head_loss(m, rms(m, x), exec_weight(m, "head", "H V"));
    freeze(m, frozen, sizeof frozen / sizeof *frozen);
    return m;
}

static const char *const frozen_plans[] = {
    "",
    "dp=2 | B@dp",
    "tp=2 | K@tp F@tp V@tp",
    "dp=2 tp=2 | B@dp K@tp F@tp V@tp | pin residual B@dp S@tp",
    "dp=2 tp=2 | B@dp H@tp",
    "dp=2 tp=2 | B@dp F@tp V@tp | zero dp",
    "dp=2 tp=2 | B@dp K@tp F@tp | zero dp",
    "cp=2 | S@cp",
    NULL,
};

/* ---- iterations of several classes ------------------------------------------------------------------ */

/* The first iteration does one thing; the others another with a loop in it, or nothing. */
static exec_model *build_classes(etch_arena *arena, uint32_t micro)
{
    exec_model *m = exec_model_new(arena, "B=8 S=2 H=4 F=4 V=4", micro);
    etch_tensor *shared = exec_weight(m, "shared", "H F"), *back = exec_weight(m, "back", "F H");
    etch_tensor *start = embedding(m, exec_weight(m, "emb", "V H"));
    etch_tensor *x = exec_repeat(m, "layer", 4, start);
    etch_tensor *h = exec_product(m, "h", rms(m, x), exec_weight(m, "up", "H F"), "B S F");
    h = exec_product(m, "h", exec_call_row(m, "h", "gelu", "", h, NULL, NULL), back, "B S H");
    x = exec_or(m, residual(m, x, h));
    etch_tensor *y = exec_repeat(m, "inner", 3, x);
    h = exec_product(m, "h", rms(m, y), shared, "B S F");
    y = residual(m, y, exec_product(m, "h", h, back, "B S H"));
    y = exec_or(m, y);
    y = residual(m, y, exec_product(m, "h", start, exec_weight(m, "gain", "H"), "B S H"));
    exec_classes(m, "101");
    x = exec_or(m, exec_end(m, y));
    exec_classes(m, "0121");
    x = exec_end(m, x);
    exec_head_loss(m, rms(m, x), exec_weight(m, "head", "H V"));
    return m;
}

/* ---- experts that tokens choose, a shared one, and the loss that balances them ------------------------- */

static etch_tensor *experts(exec_model *m, etch_tensor *xe)
{
    etch_tensor *in = exec_enter(m, "experts", xe);
    etch_tensor *g = exec_product(m, "g", in, exec_weight(m, "wg", "E H I"), "E C I");
    etch_tensor *u = exec_product(m, "u", in, exec_weight(m, "wu", "E H I"), "E C I");
    g = exec_sum(m, "g", g, exec_weight(m, "bg", "E I"));
    etch_tensor *h = exec_product(m, "h", exec_call_row(m, "s", "silu", "", g, NULL, NULL), u, "E C I");
    return exec_leave(m, "y", exec_product(m, "y", h, exec_weight(m, "wd", "E I H"), "E C H"));
}

/* `top`: the tokens' weights are normalized after the choice, as softmax of what was chosen; else before. */
static etch_tensor *moe(exec_model *m, etch_tensor *x, bool top)
{
    etch_tensor *in = exec_enter(m, "moe", x);
    etch_tensor *r = exec_product(m, "r", in, exec_weight(m, "wr", "H E"), "B S E"), *p = r;
    if (!top)
        p = exec_call_row(m, "p", "sigmoid", "", r, NULL, NULL);
    etch_tensor *idx = exec_topk(m, "idx", p, "E", "Q");
    etch_tensor *w = exec_call_row(m, "w", "gather", "E", p, idx, NULL);
    w = exec_call_row(m, "w", top ? "softmax" : "normalize", "Q", w, NULL, NULL);
    etch_tensor *ye = experts(m, exec_dispatch(m, "xe", in, idx, "B S", "C"));
    etch_tensor *z = exec_collect(m, "z", ye, idx, "E", "C");
    exec_tag(m, z, "results");
    etch_tensor *y = exec_product(m, "y", z, w, "B S H");
    if (!top) {
        etch_tensor *aux = exec_call_row(m, "balance", "load_balance", "E", p, idx, NULL);
        exec_tag(m, exec_call_number(m, "aux", "scale", 1, 8, aux), "loss");
        y = exec_sum(m, "y", y, plain_mlp(m, in));
    }
    return exec_leave(m, "y", y);
}

static exec_model *build_experts(etch_arena *arena, uint32_t micro, bool top)
{
    exec_model *m = exec_model_new(arena, "B=8 S=8 H=4 F=4 V=4 E=4 Q=2 C=32 I=4", micro);
    etch_tensor *x = embedding(m, exec_weight(m, "emb", "V H"));
    exec_tag(m, x, "residual");
    x = exec_repeat(m, "layer", 2, x);
    x = residual(m, x, moe(m, rms(m, x), top));
    x = exec_end(m, x);
    exec_head_loss(m, rms(m, x), exec_weight(m, "head", "H V"));
    return m;
}

static exec_model *build_moe(etch_arena *arena, uint32_t micro)
{
    return build_experts(arena, micro, false);
}

static exec_model *build_top_moe(etch_arena *arena, uint32_t micro)
{
    return build_experts(arena, micro, true);
}

static exec_model *build_moe_lamb(etch_arena *arena, uint32_t micro)
{
    return with_optimizer(build_moe(arena, micro), "lamb");
}

static exec_model *build_moe_muon(etch_arena *arena, uint32_t micro)
{
    return with_optimizer(build_moe(arena, micro), "muon");
}

static const char *const parts_moe_plans[] = {
    "",
    "ep=2 | B@ep | for experts E@ep",
    "edp=2 ep=2 | B@edp,ep | for experts E@ep C@edp | zero edp,ep",
    "a=2 b=2 | B@a F@b | for experts E@a I@b | zero a",
    NULL,
};

static const char *const moe_plans[] = {
    "",
    "dp=2 | B@dp",
    "tp=2 | F@tp | for experts I@tp",
    "tp=2 | F@tp V@tp | pin residual S@tp | for experts I@tp",
    "dp=2 | S@dp",
    "ep=2 | B@ep | for experts E@ep",
    "ep=4 | B@ep | for experts E@ep",
    "ep=2 | E@ep",
    "ep=2 | for experts E@ep",
    "a=2 | Q@a",
    "a=2 | Q@a | for experts E@a",
    "edp=2 ep=2 | B@edp,ep | for experts E@ep C@edp",
    "edp=2 ep=2 | B@edp,ep | for experts E@ep C@edp | zero edp,ep",
    "a=2 b=2 | B@b,a | for experts E@a C@b",
    "a=2 b=2 | B@a,b | for experts E@b,a",
    "a=2 b=2 | B@a Q@b | for experts E@a C@b",
    "ep=2 cp=2 | B@ep S@cp | for experts E@ep C@cp",
    "dp=2 cp=2 | B@dp S@cp | for experts E@cp C@dp",
    "dp=2 cp=2 | B@dp S@cp | for experts E@dp,cp",
    "a=2 b=2 | B@a | for experts E@b",
    "a=2 b=2 | B@a | for experts C@a,b",
    "a=2 b=2 | B@a | for experts C@b",
    "a=2 b=2 | B@a | for experts C@ E@b",
    "a=2 b=2 | C@a | for experts C@b",                     /* a joins beside b, and b leaves beside a */
    "a=2 b=2 c=2 | E@b C@a | for experts E@c C@b",         /* the same, while experts move */
    "a=2 b=2 | B@a | pin results B@a,b | for experts E@a", /* b divides what dispatch left whole */
    "a=2 b=2 c=2 | S@c C@a | pin results B@b S@c | for experts C@a",
    "ep=2 tp=2 | B@ep F@tp V@tp | for experts E@ep I@tp",
    "ep=2 tp=2 | B@ep F@tp V@tp | pin residual B@ep S@tp | for experts E@ep I@tp",
    "ep=2 tp=2 | B@ep F@tp V@tp | pin residual B@ep S@tp | for experts E@ep,tp",
    "ep=2 tp=2 | B@ep F@tp V@tp | for experts E@tp,ep",
    "ep=2 tp=2 | B@ep F@tp V@tp | pin residual B@ep H@tp | for experts E@ep I@tp",
    "edp=2 ep=2 tp=2 | B@edp,ep F@tp V@tp | pin residual B@edp,ep S@tp | for experts E@ep C@edp I@tp",
    "edp=2 ep=2 tp=2 | B@edp,ep F@tp V@tp | pin residual B@edp,ep S@tp | for experts E@ep C@edp I@tp | zero "
    "edp,ep",
    NULL,
};

/* ---- slots that are routed once more ------------------------------------------------------------------- */

static exec_model *build_experts_of_experts(etch_arena *arena, uint32_t micro)
{
    exec_model *m = exec_model_new(arena, "B=8 S=4 H=4 V=4 E=4 Q=2 C=16 G=2 P=64 I=2", micro);
    etch_tensor *x = embedding(m, exec_weight(m, "emb", "V H"));
    etch_tensor *p = exec_product(m, "p", x, exec_weight(m, "wp", "H E"), "B S E");
    etch_tensor *idx = exec_topk(m, "idx", p, "E", "Q");
    etch_tensor *xe = exec_dispatch(m, "xe", x, idx, "B S", "C");
    etch_tensor *r = exec_product(m, "s", xe, exec_weight(m, "ws", "E H G"), "E C G");
    etch_tensor *next = exec_topk(m, "next", r, "G", "Q");
    etch_tensor *xg = exec_enter(m, "inner", exec_dispatch(m, "xg", xe, next, "E C", "P"));
    etch_tensor *h = exec_product(m, "h", xg, exec_weight(m, "wu", "G H I"), "G P I");
    h = exec_call_row(m, "t", "tanh", "", h, NULL, NULL);
    etch_tensor *yg = exec_leave(m, "yg", exec_product(m, "yg", h, exec_weight(m, "wd", "G I H"), "G P H"));
    etch_tensor *ye = exec_collect(m, "ye", yg, next, "G", "P");
    etch_tensor *w = exec_call_row(m, "w", "gather", "G", r, next, NULL);
    ye = exec_product(m, "ye", ye, w, "E C H");
    exec_tag(m, ye, "between");
    etch_tensor *y = exec_collect(m, "z", ye, idx, "E", "C");
    y = exec_product(m, "y", y, exec_call_row(m, "v", "gather", "E", p, idx, NULL), "B S H");
    exec_head_loss(m, rms(m, y), exec_weight(m, "head", "H V"));
    return m;
}

static const char *const experts_of_experts_plans[] = {
    "",
    "a=2 | B@a",
    "a=2 b=2 | B@a,b",
    "a=2 b=2 | B@a S@b",
    "a=2 b=2 | B@b,a | for inner G@a",
    "a=2 b=2 | B@a S@b | for inner G@b",
    "a=2 b=2 | B@a | for inner P@b",
    "a=2 b=2 | B@a | pin between E@b C@a | for inner G@a",
    "a=2 b=2 | C@a | pin between C@b | for inner P@b",
    NULL,
};

const exec_zoo exec_models[] = {
    {"llama", build_llama, NULL, llama_plans},
    {"llama, recomputed", build_llama, "all", llama_plans},
    {"llama, norms not kept, mlp recomputed", build_llama, "norm.n,mlp", llama_plans},
    {"llama, recomputed where needed", build_llama, "needed", llama_plans},
    {"gpt", build_gpt, NULL, gpt_plans},
    {"gpt, recomputed", build_gpt, "layer", gpt_plans},
    {"gpt, attention recomputed", build_gpt, "attention", gpt_plans},
    {"gpt, norms and attention not kept", build_gpt, "ln.n,attention.p", gpt_plans},
    {"mlp", build_mlp, NULL, mlp_plans},
    {"mlp, sgd", build_sgd, NULL, sgd_plans},
    {"mlp, momentum", build_momentum, NULL, sgd_plans},
    {"mlp, 8 bits", build_8_bits, NULL, sgd_plans},
    {"mlp, lamb", build_lamb, NULL, parts_plans},
    {"mlp, muon", build_muon, NULL, parts_plans},
    {"nested", build_nested, NULL, nested_plans},
    {"nested, inner loop recomputed", build_nested, "inner", nested_plans},
    {"nested, recomputed", build_nested, "outer", nested_plans},
    {"objectives", build_objectives, NULL, objectives_plans},
    {"objectives, recomputed", build_objectives, "all", objectives_plans},
    {"adapted", build_adapted, NULL, frozen_plans},
    {"adapted, recomputed", build_adapted, "layer", frozen_plans},
    {"tower", build_tower, NULL, frozen_plans},
    {"tower, recomputed", build_tower, "all", frozen_plans},
    {"classes", build_classes, NULL, nested_plans},
    {"classes, inner loop recomputed", build_classes, "inner", nested_plans},
    {"classes, recomputed", build_classes, "all", nested_plans},
    {"gemma2", exec_build_gemma2, NULL, exec_gemma2_plans},
    {"gemma2, recomputed", exec_build_gemma2, "layer", exec_gemma2_plans},
    {"sinks", exec_build_sinks, NULL, exec_gemma2_plans},
    {"sinks without windows", exec_build_shared_sinks, NULL, exec_shared_sinks_plans},
    {"t5", exec_build_t5, NULL, exec_t5_plans},
    {"t5, recomputed", exec_build_t5, "enc", exec_t5_plans},
    {"experts", build_moe, NULL, moe_plans},
    {"experts, recomputed", build_moe, "all", moe_plans},
    {"experts, lamb", build_moe_lamb, NULL, parts_moe_plans},
    {"experts, muon", build_moe_muon, NULL, parts_moe_plans},
    {"experts with normalized choices", build_top_moe, NULL, moe_plans},
    {"experts of experts", build_experts_of_experts, NULL, experts_of_experts_plans},
    {NULL, NULL, NULL, NULL},
};

/* "dp=2 .. | B@dp": the axes after B@. */
bool exec_zoo_has_microbatches(etch_arena *arena, const exec_zoo *zoo, const char *plan, uint32_t micro)
{
    uint32_t parts = micro;
    const char *at = strstr(plan, "B@");
    for (at = at ? at + 2 : ""; *at && *at != ' ';) {
        const size_t length = strcspn(at, ", ");
        for (const char *word = plan; *word && *word != '|'; word += strcspn(word, " ") + 1)
            if (strncmp(word, at, length) == 0 && word[length] == '=')
                parts *= (uint32_t)atoi(word + length + 1);
        at += length + (at[length] == ',');
    }
    const exec_model *m = zoo->build(arena, 1);
    const etch_graph *graph = m->graph;
    bool has_slots = false; /* of experts: as many as the sequences of a half choose */
    for (uint32_t i = 0; i < graph->dims.count; i++)
        has_slots = has_slots || strcmp(graph->dims.at[i]->name, "E") == 0;
    return !has_slots && exec_integer(exec_model_dim(m, "B")->size) % parts == 0;
}
