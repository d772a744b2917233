/* Dense decoders whose blocks differ from Llama's. What a config leaves out is what the class of its model
 * type takes then. */
#include "import/families/family.h"

#define HAS_DROPOUT "has no dropout: in training that costs more"
#define GELU "gelu gelu_new gelu_fast gelu_pytorch_tanh"
/* What part of a head is rotated, wherever it is said. */
#define ROTATED \
    "partial_rotary_factor rope_parameters.partial_rotary_factor rope_scaling.partial_rotary_factor"

/* ---- Falcon -------------------------------------------------------------------------------------------- */

static const etch_field_row falcon[] = {
    ETCH_LAYERS("num_hidden_layers n_layer", "layers", "32"),
    ETCH_SIZE("n_embed hidden_size", "hidden", "4544"),
    ETCH_SIZE("num_attention_heads n_head", "heads", "71"),
    /* counts in the new blocks, and where each head has keys of its own */
    ETCH_SIZE_NULL("num_kv_heads n_head_kv", NULL, "= num_attention_heads", "= num_attention_heads"),
    ETCH_FITS("multi_query", "true false", "true", NULL),
    ETCH_FITS("new_decoder_architecture", "true false", "false", NULL),
    ETCH_SIZE_NULL("num_ln_in_parallel_attn", NULL, "2", "2"),
    ETCH_SIZE_NULL("ffn_hidden_size", "ffn", "= 4 * n_embed", "= 4 * n_embed"),
    ETCH_SIZE("vocab_size", "vocab", "65024"),
    ETCH_FITS("parallel_attn", "true", "true", "has attention and MLP side by side"),
    ETCH_FITS("bias", "false", "false", "has no biases in its products"),
    ETCH_FITS("alibi", "false", "false", "has rotary positions"),
    ETCH_FITS("activation", GELU, "gelu", "computes gelu in its MLP"),
    ETCH_FITS("tie_word_embeddings", "true", "true", "has no head but the embedding"),
    ETCH_WARN("hidden_dropout", "0", "0", HAS_DROPOUT),
    ETCH_WARN("attention_dropout", "0", "0", HAS_DROPOUT),
    ETCH_NO_FIELD,
};

/* ---- Phi-3 and Phi-4 ----------------------------------------------------------------------------------- */

static const etch_field_row phi3[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "32"),
    ETCH_SIZE("hidden_size", "hidden", "3072"),
    ETCH_SIZE("num_attention_heads", "heads", "32"),
    ETCH_SIZE_NULL("num_key_value_heads", "kv_heads", "= num_attention_heads", "= num_attention_heads"),
    ETCH_SIZE_NULL("head_dim", "head_dim", "= hidden_size / num_attention_heads",
                   "= hidden_size / num_attention_heads"),
    ETCH_SIZE("intermediate_size", "ffn", "8192"),
    ETCH_SIZE("vocab_size", "vocab", "32064"),
    ETCH_SIZE_NULL("sliding_window", "window", "none", "none"),
    ETCH_FLAG_TO("tie_word_embeddings", "tied", "false"),
    ETCH_PART(ROTATED, "1"),
    ETCH_FITS("lm_head_bias", "false", "false", "has no bias in its head"),
    ETCH_FITS("full_attn_mod", "1", "1", "has the same attention in every layer"),
    ETCH_ANY("original_max_position_embeddings"),
    ETCH_ANY("interpolate_factor"),
    ETCH_WARN("resid_pdrop", "0", "0", HAS_DROPOUT),
    ETCH_WARN("embd_pdrop", "0", "0", HAS_DROPOUT),
    ETCH_NO_FIELD,
};

/* ---- BLOOM --------------------------------------------------------------------------------------------- */

static const etch_field_row bloom[] = {
    ETCH_LAYERS("n_layer num_hidden_layers", "layers", "2"),
    ETCH_SIZE("n_embed hidden_size", "hidden", "64"),
    ETCH_SIZE("n_head num_attention_heads", "heads", "8"),
    ETCH_SIZE("vocab_size", "vocab", "250880"),
    ETCH_FITS("tie_word_embeddings", "true", "true", "has no head but the embedding"),
    ETCH_FITS("apply_residual_connection_post_layernorm", "false", "false", "adds to what the norm is given"),
    /* the class computes four times the width, whatever it says */
    ETCH_ANY("n_inner"),
    ETCH_WARN("hidden_dropout", "0", "0", HAS_DROPOUT),
    ETCH_WARN("attention_dropout", "0", "0", HAS_DROPOUT),
    ETCH_ANY("attention_softmax_in_fp32"),
    ETCH_ANY("masked_softmax_fusion"),
    ETCH_ANY("bias_dropout_fusion"),
    ETCH_ANY("skip_bias_add"),
    ETCH_ANY("skip_bias_add_qkv"),
    ETCH_ANY("offset_alibi"),
    ETCH_ANY("slow_but_exact"),
    ETCH_ANY("seq_length"),
    ETCH_NO_FIELD,
};

/* ---- GPT-NeoX and Pythia ------------------------------------------------------------------------------- */

static const etch_field_row gpt_neox[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "44"),
    ETCH_SIZE("hidden_size", "hidden", "6144"),
    ETCH_SIZE("num_attention_heads", "heads", "64"),
    ETCH_SIZE("intermediate_size", "ffn", "24576"),
    ETCH_SIZE("vocab_size", "vocab", "50432"),
    ETCH_PART(ROTATED " rotary_pct", "0.25"),
    ETCH_FITS("use_parallel_residual", "true", "true", "has attention and MLP side by side"),
    ETCH_FITS("attention_bias", "true", "true", "has biases in attention"),
    ETCH_FITS("hidden_act", GELU, "gelu", "computes gelu in its MLP"),
    ETCH_FITS("tie_word_embeddings", "false", "false", "has a head of its own"),
    ETCH_WARN("hidden_dropout", "0", "0", HAS_DROPOUT),
    ETCH_WARN("attention_dropout", "0", "0", HAS_DROPOUT),
    ETCH_ANY("classifier_dropout"),
    ETCH_ANY("rotary_emb_base"),
    ETCH_NO_FIELD,
};

/* ---- the families -------------------------------------------------------------------------------------- */

static const etch_import_family families[] = {
    {
        .types = "falcon",
        .architectures = "FalconForCausalLM",
        .code = "configuration_falcon modeling_falcon",
        .file = "falcon.etch",
        .model = "falcon",
        .fields = {falcon},
        .bindings = {ETCH_BIND("head_dim", "n_embed / num_attention_heads"),
                     ETCH_BIND_WHERE("kv_heads", "num_kv_heads", "new_decoder_architecture", "true"),
                     ETCH_BIND_WHERE("kv_heads", "1", "multi_query", "true"),
                     ETCH_BIND("kv_heads", "num_kv_heads"),
                     ETCH_BIND_WHERE("norms", "num_ln_in_parallel_attn", "new_decoder_architecture", "true"),
                     ETCH_BIND("norms", "1")},
        .rules = {"kv_heads | num_attention_heads", "num_ln_in_parallel_attn <= 2"},
    },
    {
        .types = "phi3",
        .architectures = "Phi3ForCausalLM",
        .code = "configuration_phi3 modeling_phi3",
        .file = "phi3.etch",
        .model = "phi3",
        .fields = {phi3, etch_fields_gated},
        .bindings = {ETCH_BIND_WHERE("rotary_dim", "0", "partial_rotary_factor", "1"),
                     ETCH_BIND("rotary_dim", "head_dim * partial_rotary_factor")},
        .rules = {"num_key_value_heads | num_attention_heads", "1 <= head_dim * partial_rotary_factor",
                  "2 | head_dim * partial_rotary_factor"},
    },
    {
        .types = "bloom",
        .architectures = "BloomForCausalLM",
        .file = "bloom.etch",
        .model = "bloom",
        .fields = {bloom},
        .bindings = {ETCH_BIND("head_dim", "n_embed / n_head"), ETCH_BIND("ffn", "4 * n_embed")},
    },
    {
        .types = "gpt_neox",
        .architectures = "GPTNeoXForCausalLM",
        .file = "gpt_neox.etch",
        .model = "gpt_neox",
        .fields = {gpt_neox},
        .bindings = {ETCH_BIND("head_dim", "hidden_size / num_attention_heads"),
                     ETCH_BIND_WHERE("rotary_dim", "0", "partial_rotary_factor", "1"),
                     ETCH_BIND("rotary_dim", "head_dim * partial_rotary_factor")},
        .rules = {"1 <= head_dim * partial_rotary_factor", "2 | head_dim * partial_rotary_factor"},
    },
};

ETCH_IMPORT_ROWS(older, families);
