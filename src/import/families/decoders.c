/* Dense decoders. What a config leaves out is what the class of its model type takes then. */
#include "import/families/family.h"

#define HEAD_DIM "= hidden_size / num_attention_heads"
#define SAME_HEADS "= num_attention_heads"
#define DIVIDES "num_key_value_heads | num_attention_heads"

/* ---- Llama, Mistral ------------------------------------------------------------------------------------ */

static const etch_field_row llama[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "32"),
    ETCH_SIZE("hidden_size", "hidden", "4096"),
    ETCH_SIZE("num_attention_heads", "heads", "32"),
    ETCH_SIZE_NULL("num_key_value_heads", "kv_heads", SAME_HEADS, SAME_HEADS),
    ETCH_SIZE_NULL("head_dim", "head_dim", HEAD_DIM, HEAD_DIM),
    ETCH_SIZE("intermediate_size", "ffn", "11008"),
    ETCH_SIZE("vocab_size", "vocab", "32000"),
    ETCH_FITS("tie_word_embeddings", "true false", "false", NULL),
    ETCH_NO_FIELD,
};

static const etch_field_row mistral[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "32"),
    ETCH_SIZE("hidden_size", "hidden", "4096"),
    ETCH_SIZE("num_attention_heads", "heads", "32"),
    ETCH_SIZE_NULL("num_key_value_heads", "kv_heads", "8", SAME_HEADS),
    ETCH_SIZE_NULL("head_dim", "head_dim", HEAD_DIM, HEAD_DIM),
    ETCH_SIZE("intermediate_size", "ffn", "14336"),
    ETCH_SIZE("vocab_size", "vocab", "32000"),
    ETCH_SIZE_NULL("sliding_window", "window", "4096", "none"),
    ETCH_FITS("tie_word_embeddings", "false", "false", "has a head of its own"),
    ETCH_NO_FIELD,
};

/* ---- Qwen 2 and 3 -------------------------------------------------------------------------------------- */

#define QWEN_ATTENTION                                                            \
    ETCH_FLAG_TO("tie_word_embeddings", "tied", "false"),                         \
        ETCH_FITS("use_sliding_window", "false null", "false", "has no windows"), \
        ETCH_ANY("sliding_window"), ETCH_ANY("max_window_layers"),                \
        ETCH_KINDS("layer_types", "full_attention", "has no windows")

static const etch_field_row qwen2[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "32"),
    ETCH_SIZE("hidden_size", "hidden", "4096"),
    ETCH_SIZE("num_attention_heads", "heads", "32"),
    ETCH_SIZE_NULL("num_key_value_heads", "kv_heads", "32", SAME_HEADS),
    ETCH_SIZE_NULL("head_dim", "head_dim", HEAD_DIM, HEAD_DIM),
    ETCH_SIZE("intermediate_size", "ffn", "22016"),
    ETCH_SIZE("vocab_size", "vocab", "151936"),
    QWEN_ATTENTION,
    ETCH_FITS("attention_bias qkv_bias", "true", "true", "has biases on queries, keys and values"),
    ETCH_NO_FIELD,
};

static const etch_field_row qwen3[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "32"),
    ETCH_SIZE("hidden_size", "hidden", "4096"),
    ETCH_SIZE("num_attention_heads", "heads", "32"),
    ETCH_SIZE_NULL("num_key_value_heads", "kv_heads", "32", SAME_HEADS),
    ETCH_SIZE_NULL("head_dim", "head_dim", "128", HEAD_DIM),
    ETCH_SIZE("intermediate_size", "ffn", "22016"),
    ETCH_SIZE("vocab_size", "vocab", "151936"),
    QWEN_ATTENTION,
    ETCH_NO_FIELD,
};

/* ---- Gemma --------------------------------------------------------------------------------------------- */

#define GEMMA                                                                                                \
    ETCH_FITS("tie_word_embeddings", "true", "true", "has no head but the embedding"),                       \
        ETCH_FITS("hidden_activation", "gelu_pytorch_tanh gelu gelu_new null", "gelu_pytorch_tanh",          \
                  "computes gelu in its MLP"),                                                               \
        ETCH_FITS("hidden_act", "gelu gelu_pytorch_tanh gelu_new null", "gelu", "computes gelu in its MLP"), \
        ETCH_ANY("query_pre_attn_scalar"), ETCH_ANY("cache_implementation")

static const etch_field_row gemma[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "28"),
    ETCH_SIZE("hidden_size", "hidden", "3072"),
    ETCH_SIZE("num_attention_heads", "heads", "16"),
    ETCH_SIZE_NULL("num_key_value_heads", "kv_heads", "16", NULL),
    ETCH_SIZE("head_dim", "head_dim", "256"),
    ETCH_SIZE("intermediate_size", "ffn", "24576"),
    ETCH_SIZE("vocab_size", "vocab", "256000"),
    GEMMA,
    ETCH_FITS("use_bidirectional_attention", "false null", "false", "lets tokens see only those before them"),
    ETCH_NO_FIELD,
};

static const etch_field_row gemma2[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "26"),
    ETCH_SIZE("hidden_size", "hidden", "2304"),
    ETCH_SIZE("num_attention_heads", "heads", "8"),
    ETCH_SIZE("num_key_value_heads", "kv_heads", "4"),
    ETCH_SIZE("head_dim", "head_dim", "256"),
    ETCH_SIZE("intermediate_size", "ffn", "9216"),
    ETCH_SIZE("vocab_size", "vocab", "256000"),
    ETCH_SIZE("sliding_window sliding_window_size", "window", "4096"),
    ETCH_FITS("attn_logit_softcapping", "+", "50", "caps scores"),
    ETCH_FITS("final_logit_softcapping", "+", "30", "caps what its head gives"),
    ETCH_KINDS("layer_types", "sliding_attention full_attention", "has windows in every other layer"),
    ETCH_FITS("use_bidirectional_attention", "false null", "false", "lets tokens see only those before them"),
    GEMMA,
    ETCH_NO_FIELD,
};

static const etch_field_row gemma3[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "26"),
    ETCH_SIZE("hidden_size", "hidden", "2304"),
    ETCH_SIZE("num_attention_heads", "heads", "8"),
    ETCH_SIZE("num_key_value_heads", "kv_heads", "4"),
    ETCH_SIZE("head_dim", "head_dim", "256"),
    ETCH_SIZE("intermediate_size", "ffn", "9216"),
    ETCH_SIZE("vocab_size", "vocab", "262208"),
    ETCH_SIZE("sliding_window", "window", "4096"),
    ETCH_FITS("sliding_window_pattern _sliding_window_pattern", "6", "6",
              "has windows in five of six layers"),
    ETCH_KINDS("layer_types",
               "sliding_attention sliding_attention sliding_attention sliding_attention sliding_attention "
               "full_attention",
               "has windows in five of six layers"),
    ETCH_FITS("attn_logit_softcapping", "null", "null", "caps no scores"),
    ETCH_FITS("final_logit_softcapping", "null", "null", "does not cap what its head gives"),
    ETCH_FITS("use_bidirectional_attention", "false null", "false", "lets tokens see only those before them"),
    ETCH_ANY("rope_local_base_freq"),
    ETCH_WARN("vision_config", "null", "null",
              "is the language model alone: what reads images, and what joins it, is not counted"),
    ETCH_ANY("mm_tokens_per_image"),
    ETCH_ANY("image_token_index image_token_id"),
    ETCH_ANY("boi_token_index boi_token_id"),
    ETCH_ANY("eoi_token_index eoi_token_id"),
    ETCH_ANY("text_config"),
    GEMMA,
    ETCH_NO_FIELD,
};

/* ---- OLMo 2, GPT-2 ------------------------------------------------------------------------------------- */

static const etch_field_row olmo2[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "32"),
    ETCH_SIZE("hidden_size", "hidden", "4096"),
    ETCH_SIZE("num_attention_heads", "heads", "32"),
    ETCH_SIZE_NULL("num_key_value_heads", "kv_heads", SAME_HEADS, SAME_HEADS),
    ETCH_SIZE_NULL("head_dim", "head_dim", HEAD_DIM, HEAD_DIM),
    ETCH_SIZE("intermediate_size", "ffn", "11008"),
    ETCH_SIZE("vocab_size", "vocab", "50304"),
    ETCH_FITS("tie_word_embeddings", "false", "false", "has a head of its own"),
    ETCH_NO_FIELD,
};

#define HAS_DROPOUT "has dropout of a rate above 0: in training that costs more than none"

static const etch_field_row gpt2[] = {
    ETCH_LAYERS("n_layer num_hidden_layers", "layers", "12"),
    ETCH_SIZE("n_embd hidden_size", "hidden", "768"),
    ETCH_SIZE("n_head num_attention_heads", "heads", "12"),
    ETCH_SIZE_NULL("n_inner", NULL, "= 4 * n_embd", "= 4 * n_embd"),
    ETCH_SIZE("vocab_size", "vocab", "50257"),
    ETCH_SIZE("n_positions max_position_embeddings", "positions", "1024"),
    ETCH_ANY("n_ctx"),
    ETCH_FITS("activation_function", "gelu_new gelu gelu_pytorch_tanh gelu_fast", "gelu_new",
              "computes gelu in its MLP"),
    ETCH_FITS("tie_word_embeddings", "true", "true", "has no head but the embedding"),
    ETCH_FITS("scale_attn_weights", "true", "true", "scales scores"),
    ETCH_ANY("scale_attn_by_inverse_layer_idx"),
    ETCH_ANY("reorder_and_upcast_attn"),
    ETCH_WARN("resid_pdrop", "+", "0.1", HAS_DROPOUT),
    ETCH_WARN("embd_pdrop", "+", "0.1", HAS_DROPOUT),
    ETCH_WARN("attn_pdrop", "+", "0.1", HAS_DROPOUT),
    ETCH_ANY("summary_type"),
    ETCH_ANY("summary_use_proj"),
    ETCH_ANY("summary_activation"),
    ETCH_ANY("summary_proj_to_labels"),
    ETCH_ANY("summary_first_dropout"),
    ETCH_NO_FIELD,
};

/* ---- the families -------------------------------------------------------------------------------------- */

static const etch_import_family families[] = {
    {
        .types = "llama",
        .architectures = "LlamaForCausalLM LLaMAForCausalLM",
        .file = "llama.etch",
        .model = "llama",
        .variants = {{"tie_word_embeddings", "true", "llama3_2.etch", "llama3_2"}},
        .fields = {llama, etch_fields_gated},
        .rules = {DIVIDES},
    },
    {
        .types = "mistral",
        .architectures = "MistralForCausalLM",
        .file = "mistral_window.etch",
        .model = "mistral",
        .variants = {{"sliding_window", "null", "mistral.etch", "llama"}},
        .fields = {mistral, etch_fields_gated},
        .rules = {DIVIDES},
    },
    {
        .types = "qwen2",
        .architectures = "Qwen2ForCausalLM",
        .file = "qwen2.etch",
        .model = "qwen2",
        .fields = {qwen2, etch_fields_gated},
        .rules = {DIVIDES},
    },
    {
        .types = "qwen3",
        .architectures = "Qwen3ForCausalLM",
        .file = "qwen3.etch",
        .model = "qwen3",
        .fields = {qwen3, etch_fields_gated},
        .rules = {DIVIDES},
    },
    {
        .types = "gemma",
        .architectures = "GemmaForCausalLM",
        .file = "gemma.etch",
        .model = "gemma",
        .fields = {gemma, etch_fields_gated},
        .rules = {DIVIDES},
    },
    {
        .types = "gemma2",
        .architectures = "Gemma2ForCausalLM",
        .file = "gemma2.etch",
        .model = "gemma2",
        .fields = {gemma2, etch_fields_gated},
        .rules = {DIVIDES},
    },
    {
        .types = "gemma3_text",
        .wrappers = "gemma3",
        .architectures = "Gemma3ForCausalLM Gemma3ForConditionalGeneration",
        .file = "gemma3.etch",
        .model = "gemma3",
        .fields = {gemma3, etch_fields_gated},
        .rules = {DIVIDES},
    },
    {
        .types = "olmo2",
        .architectures = "Olmo2ForCausalLM",
        .file = "olmo2.etch",
        .model = "olmo2",
        .fields = {olmo2, etch_fields_gated},
        .rules = {DIVIDES},
    },
    {
        .types = "gpt2",
        .architectures = "GPT2LMHeadModel",
        .file = "gpt.etch",
        .model = "gpt",
        .fields = {gpt2},
        .rules = {"n_head | n_embd", "n_inner == 4 * n_embd"},
    },
};

ETCH_IMPORT_ROWS(decoders, families);
