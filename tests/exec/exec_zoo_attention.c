/* Attention as Gemma 2, gpt-oss and T5 have it. */
#include "exec_zoo.h"

#include <stddef.h>

static etch_tensor *rms(exec_model *m, etch_tensor *x)
{
    etch_tensor *in = exec_enter(m, "norm", x);
    return exec_leave(m, "n", exec_call_row(m, "n", "rms_norm", "H", in, exec_weight(m, "g", "H"), NULL));
}

static etch_tensor *mlp(exec_model *m, etch_tensor *x, const char *dims)
{
    etch_tensor *in = exec_enter(m, "mlp", x);
    etch_tensor *h = exec_product(m, "h", in, exec_weight(m, "w1", "H F"), etch_text(m->arena, "%s F", dims));
    h = exec_call_row(m, "h", "silu", "", h, NULL, NULL);
    h = exec_product(m, "y", h, exec_weight(m, "w2", "F H"), etch_text(m->arena, "%s H", dims));
    return exec_leave(m, "y", h);
}

static etch_tensor *tagged(exec_model *m, etch_tensor *x, const char *tag)
{
    exec_tag(m, x, tag);
    return x;
}

static etch_tensor *residual(exec_model *m, etch_tensor *x, etch_tensor *y)
{
    return tagged(m, exec_sum(m, "x", x, y), "residual");
}

static etch_tensor *embedding(exec_model *m, etch_tensor *table)
{
    return tagged(m, exec_call_row(m, "e", "gather", "V", table, exec_ids(m, "ids", "B S"), NULL),
                  "residual");
}

/* ---- Gemma 2: window and full attention in turn, norms on both sides, capped scores and logits --------- */

static etch_tensor *grouped(exec_model *m, etch_tensor *x, exec_options options)
{
    etch_tensor *in = exec_enter(m, "attention", x);
    etch_tensor *q = exec_product(m, "q", in, exec_weight(m, "wq", "H K G D"), "B S K G D");
    etch_tensor *k = exec_product(m, "k", in, exec_weight(m, "wk", "H K D"), "B S K D");
    etch_tensor *v = exec_product(m, "v", in, exec_weight(m, "wv", "H K D"), "B S K D");
    q = exec_call_row(m, "q", "rope", "D", q, NULL, NULL);
    k = exec_cache(m, "k", exec_call_row(m, "k", "rope", "D", k, NULL, NULL), "S", "T",
                   options.rolling ? options.window : 0);
    v = exec_cache(m, "v", v, "S", "T", options.rolling ? options.window : 0);
    etch_tensor *o = exec_attend_with(m, "o", q, k, v, "T", "D", options);
    return exec_leave(m, "y", exec_product(m, "y", o, exec_weight(m, "wo", "K G D H"), "B S H"));
}

static etch_tensor *capped_block(exec_model *m, etch_tensor *x, int window, bool rolling)
{
    const exec_options options = {.causal = true, .window = window, .cap = 2, .rolling = rolling};
    x = residual(m, x, rms(m, grouped(m, rms(m, x), options)));
    return residual(m, x, rms(m, mlp(m, rms(m, x), "B S")));
}

static etch_tensor *gemma2_logits(exec_model *m, int window, bool rolling)
{
    etch_tensor *table = exec_weight(m, "emb", "V H"), *x = exec_repeat(m, "layer", 2, embedding(m, table));
    x = exec_end(m, capped_block(m, capped_block(m, x, window, rolling), 0, false));
    etch_tensor *logits = exec_product(m, "r", rms(m, x), table, "B S V");
    return exec_call_number(m, "z", "softcap", 3, 1, logits);
}

etch_training *exec_served_gemma2(etch_arena *arena, exec_model **m, const char *sizes, int window,
                                  bool rolling)
{
    *m = exec_model_new(arena, etch_text(arena, "B=4 H=4 K=4 G=2 D=2 F=4 V=8 %s", sizes), 1);
    (*m)->graph->serves = true;
    return exec_serve(*m, (*m)->served = gemma2_logits(*m, window, rolling));
}

exec_model *exec_build_gemma2(etch_arena *arena, uint32_t micro)
{
    exec_model *m = exec_model_new(arena, "B=4 S=4 T=4 H=4 K=4 G=2 D=2 F=4 V=8", micro);
    etch_tensor *logits = gemma2_logits(m, 2, false);
    exec_tag(m, exec_call_row(m, "l", "cross_entropy", "V", logits, exec_ids(m, "labels", "B S"), NULL),
             "loss");
    return m;
}

const char *const exec_gemma2_plans[] = {
    "",
    "dp=2 | B@dp",
    "tp=2 | K@tp F@tp V@tp",
    "tp=2 | K@tp F@tp V@tp | pin residual S@tp",
    "dp=2 tp=2 | B@dp K@tp F@tp V@tp | pin residual B@dp S@tp | zero dp",
    "dp=2 tp=4 | B@dp K@tp F@tp V@tp",
    "a=2 b=2 | K@a G@b F@a,b V@a,b",
    "cp=2 | S@cp | for attention S@",
    "cp=2 | S@cp | contiguous",
    "dp=2 cp=2 | B@dp S@cp | zero dp,cp | contiguous",
    "dp=2 tp=2 | B@dp H@tp",
    NULL,
};

/* ---- gpt-oss: biases, sinks ---------------------------------------------------------------------------- */

static etch_tensor *dense(exec_model *m, const char *name, etch_tensor *x, const char *weight,
                          const char *bias, const char *dims)
{
    etch_tensor *y = exec_product(m, name, x, exec_weight(m, "w", weight), dims);
    return exec_sum(m, name, y, exec_weight(m, "bias", bias));
}

static etch_tensor *sunk(exec_model *m, etch_tensor *x, int window)
{
    etch_tensor *in = exec_enter(m, "attention", x);
    etch_tensor *q = dense(m, "q", in, "H K G D", "K G D", "B S K G D");
    etch_tensor *k = exec_cache(m, "k", dense(m, "k", in, "H K D", "K D", "B S K D"), "S", "T", 0);
    etch_tensor *v = exec_cache(m, "v", dense(m, "v", in, "H K D", "K D", "B S K D"), "S", "T", 0);
    const exec_options options = {.causal = true, .window = window, .sink = exec_weight(m, "sink", "K G")};
    etch_tensor *o = exec_attend_with(m, "o", q, k, v, "T", "D", options);
    return exec_leave(m, "y", dense(m, "y", o, "K G D H", "H", "B S H"));
}

static exec_model *build_sinks(etch_arena *arena, uint32_t micro, int window)
{
    exec_model *m = exec_model_new(arena, "B=4 S=4 T=4 H=4 K=4 G=2 D=2 F=4 V=8", micro);
    etch_tensor *x = exec_repeat(m, "layer", 2, embedding(m, exec_weight(m, "emb", "V H")));
    x = residual(m, x, sunk(m, rms(m, x), 0));
    x = residual(m, x, sunk(m, rms(m, x), window));
    x = exec_end(m, residual(m, x, mlp(m, rms(m, x), "B S")));
    exec_head_loss(m, rms(m, x), exec_weight(m, "head", "H V"));
    return m;
}

exec_model *exec_build_sinks(etch_arena *arena, uint32_t micro)
{
    return build_sinks(arena, micro, 3);
}

/* No window: queries may be shared. */
exec_model *exec_build_shared_sinks(etch_arena *arena, uint32_t micro)
{
    return build_sinks(arena, micro, 0);
}

const char *const exec_shared_sinks_plans[] = {
    "cp=2 | S@cp",
    "dp=2 cp=2 | B@dp S@cp | zero dp,cp",
    "cp=2 tp=2 | S@cp K@tp F@tp V@tp | pin residual S@cp,tp",
    NULL,
};

/* ---- T5: an encoder, a decoder that attends to itself and to the encoder, biases from tables of
 * distances */

/* Queries x[B,`own`,H], keys m[B,`other`,H]; the keys' dim is called `keys`. */
static etch_tensor *attend(exec_model *m, etch_tensor *x, etch_tensor *memory, const char *own,
                           const char *other, const char *keys, exec_options options)
{
    etch_tensor *in = exec_enter(m, "attention", x);
    etch_tensor *seen = exec_rename(m, "m", memory, other, keys);
    const char *queries = etch_text(m->arena, "B %s A D", own),
               *seen_dims = etch_text(m->arena, "B %s A D", keys);
    etch_tensor *q = exec_product(m, "q", in, exec_weight(m, "wq", "H A D"), queries);
    etch_tensor *k = exec_product(m, "k", seen, exec_weight(m, "wk", "H A D"), seen_dims);
    etch_tensor *v = exec_product(m, "v", seen, exec_weight(m, "wv", "H A D"), seen_dims);
    etch_tensor *o = exec_attend_with(m, "o", q, k, v, keys, "D", options);
    o = exec_product(m, "y", o, exec_weight(m, "wo", "A D H"), etch_text(m->arena, "B %s H", own));
    return exec_leave(m, "y", o);
}

static etch_tensor *distances(exec_model *m, const char *name, const char *dims)
{
    return exec_call_row(m, name, "gather", "N", exec_weight(m, name, "N A"), exec_ids(m, "r", dims), NULL);
}

static etch_tensor *encoder(exec_model *m, etch_tensor *x, etch_tensor *bias)
{
    x = exec_repeat(m, "enc", 2, x);
    etch_tensor *n = rms(m, x);
    x = residual(m, x, attend(m, n, n, "S", "S", "S'", (exec_options){.bias = bias}));
    x = residual(m, x, mlp(m, rms(m, x), "B S"));
    return rms(m, exec_end(m, x));
}

static etch_tensor *decoder(exec_model *m, etch_tensor *u, etch_tensor *memory, etch_tensor *bias)
{
    u = exec_repeat(m, "dec", 2, u);
    etch_tensor *n = rms(m, u);
    u = tagged(
        m, exec_sum(m, "u", u, attend(m, n, n, "U", "U", "U'", (exec_options){.causal = true, .bias = bias})),
        "answer");
    u = tagged(
        m, exec_sum(m, "u", u, attend(m, rms(m, u), memory, "U", "S", "S'", (exec_options){.causal = false})),
        "answer");
    u = tagged(m, exec_sum(m, "u", u, mlp(m, rms(m, u), "B U")), "answer");
    return rms(m, exec_end(m, u));
}

exec_model *exec_build_t5(etch_arena *arena, uint32_t micro)
{
    exec_model *m = exec_model_new(arena, "B=4 S=8 S'=8 U=4 U'=4 H=4 A=4 D=2 F=4 V=8 N=3", micro);
    etch_tensor *table = exec_weight(m, "emb", "V H");
    etch_tensor *near = distances(m, "be", "S S'"), *before = distances(m, "bd", "U U'");
    etch_tensor *memory = tagged(m, encoder(m, embedding(m, table), near), "memory");
    etch_tensor *u = exec_call_row(m, "u", "gather", "V", table, exec_ids(m, "tids", "B U"), NULL);
    u = decoder(m, tagged(m, u, "answer"), memory, before);
    etch_tensor *z = exec_product(m, "z", u, table, "B U V");
    exec_tag(m, exec_call_row(m, "l", "cross_entropy", "V", z, exec_ids(m, "labels", "B U"), NULL), "loss");
    return m;
}

const char *const exec_t5_plans[] = {
    "",
    "dp=2 | B@dp",
    "tp=2 | A@tp F@tp V@tp",
    "tp=2 | A@tp F@tp V@tp | pin residual S@tp | pin answer U@tp",
    "dp=2 tp=2 | B@dp A@tp F@tp V@tp | pin residual B@dp S@tp | pin answer B@dp U@tp | zero dp",
    "dp=2 tp=4 | B@dp A@tp F@tp V@tp",
    "cp=2 | S@cp U@cp",
    "cp=2 tp=2 | S@cp U@cp A@tp F@tp V@tp",
    "a=2 b=2 | S@a U@b",
    "dp=2 tp=2 | B@dp H@tp",
    NULL,
};
