/* Cases of attention with its options, and of softmax under a mask. */
#include "exec_cases.h"

#include <stddef.h>

/* Queries, keys and values of one sequence x[B,S,H]: q[B,S,K,D], k[B,T,D], v[B,T,V]. */
static etch_tensor *self_attention(exec_model *m, exec_options options)
{
    etch_tensor *x = exec_weight(m, "x", "B S H");
    etch_tensor *seen = exec_rename(m, "seen", x, "S", "T");
    etch_tensor *q = exec_product(m, "q", x, exec_weight(m, "wq", "H K D"), "B S K D");
    etch_tensor *k = exec_product(m, "k", seen, exec_weight(m, "wk", "H D"), "B T D");
    etch_tensor *v = exec_product(m, "v", seen, exec_weight(m, "wv", "H V"), "B T V");
    return exec_attend_with(m, "y", q, k, v, "T", "D", options);
}

static etch_tensor *window_attention(exec_model *m)
{
    return self_attention(m, (exec_options){.causal = true, .window = 3});
}

/* A query sees itself alone. */
static etch_tensor *narrow_attention(exec_model *m)
{
    return self_attention(m, (exec_options){.causal = true, .window = 1});
}

static etch_tensor *wide_window_attention(exec_model *m)
{
    return self_attention(m, (exec_options){.causal = true, .window = 8});
}

static etch_tensor *sink_attention(exec_model *m)
{
    return self_attention(m, (exec_options){.causal = true, .sink = exec_weight(m, "sink", "K")});
}

static etch_tensor *biased_attention(exec_model *m)
{
    return self_attention(m, (exec_options){.bias = exec_weight(m, "bias", "K S T")});
}

static etch_tensor *key_bias_attention(exec_model *m)
{
    return self_attention(m, (exec_options){.causal = true, .bias = exec_weight(m, "bias", "B T")});
}

static etch_tensor *capped_attention(exec_model *m)
{
    return self_attention(m, (exec_options){.causal = true, .cap = 1});
}

/* 8 * 9/2 pairs: what the mask leaves, said by the user. */
static etch_tensor *paired_attention(exec_model *m)
{
    return self_attention(m, (exec_options){.causal = true, .pairs = 36});
}

static etch_tensor *all_pairs_attention(exec_model *m)
{
    return self_attention(m, (exec_options){.pairs = 64});
}

static etch_tensor *full_option_attention(exec_model *m)
{
    etch_tensor *sink = exec_weight(m, "sink", "S K"), *bias = exec_weight(m, "bias", "K T");
    return self_attention(m,
                          (exec_options){.causal = true, .window = 5, .cap = 2, .sink = sink, .bias = bias});
}

/* One head, of one sequence. */
static etch_tensor *single_attention(exec_model *m, etch_tensor *x)
{
    etch_tensor *k = exec_rename(m, "k", x, "S", "T"), *v = exec_rename(m, "v", x, "S", "T");
    return exec_attend(m, "y", x, k, v, "T", "D", true);
}

/* What attention gives, pooled over chunks of the sequence: a rank has an early and a late part of the
 * queries, and whole chunks of both. */
static etch_tensor *pooled_attention(exec_model *m)
{
    etch_tensor *y = single_attention(m, exec_weight(m, "x", "B S D"));
    etch_tensor *chunks = exec_regroup(m, "chunks", y, "S", "E K");
    return exec_product(m, "pooled", chunks, exec_weight(m, "w", "K D"), "B E D");
}

/* Chunks first, and attention along the sequence that they make. */
static etch_tensor *merged_attention(exec_model *m)
{
    etch_tensor *chunks =
        exec_product(m, "c", exec_weight(m, "x", "B E K"), exec_weight(m, "w", "K D"), "B E K D");
    return single_attention(m, exec_regroup(m, "s", chunks, "E K", "S"));
}

/* The keys have heads that the queries lack. */
static etch_tensor *heads_of_keys(exec_model *m)
{
    return exec_attend(m, "y", exec_weight(m, "q", "B S D"), exec_weight(m, "k", "B T K D"),
                       exec_weight(m, "v", "B T K D"), "T", "D", false);
}

static etch_tensor *masked_probabilities(exec_model *m)
{
    etch_tensor *x = exec_weight(m, "x", "B S H");
    etch_tensor *k =
        exec_product(m, "k", exec_rename(m, "seen", x, "S", "T"), exec_weight(m, "w", "H K"), "B T K H");
    etch_tensor *scores = exec_product(m, "s", x, k, "B K S T");
    return exec_masked_softmax(m, "p", scores, "T", 0);
}

static etch_tensor *window_probabilities(exec_model *m)
{
    etch_tensor *x = exec_weight(m, "x", "B S H");
    etch_tensor *scores = exec_product(m, "s", x, exec_rename(m, "seen", x, "S", "T"), "B S T");
    return exec_masked_softmax(m, "p", scores, "T", 3);
}

const exec_case exec_attention_cases[] = {
    {"window attention", window_attention},
    {"narrow attention", narrow_attention},
    {"wide window attention", wide_window_attention},
    {"sink attention", sink_attention},
    {"biased attention", biased_attention},
    {"key bias attention", key_bias_attention},
    {"capped attention", capped_attention},
    {"paired attention", paired_attention},
    {"all pairs attention", all_pairs_attention},
    {"full option attention", full_option_attention},
    {"pooled attention", pooled_attention},
    {"merged attention", merged_attention},
    {"heads of keys", heads_of_keys},
    {"masked probabilities", masked_probabilities},
    {"window probabilities", window_probabilities},
    {NULL, NULL},
};
