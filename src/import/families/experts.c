/* Decoders with experts. */
#include "import/families/family.h"

#define HEAD_DIM "= hidden_size / num_attention_heads"
#define SAME_HEADS "= num_attention_heads"
#define DIVIDES "num_key_value_heads | num_attention_heads"
#define OWN_HEAD ETCH_FITS("tie_word_embeddings", "false", "false", "has a head of its own")
/* The width of an MLP that the models do not have. */
#define NO_MLP ETCH_BIND("ffn", "1")

static const etch_field_row mixtral[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "32"),
    ETCH_SIZE("hidden_size", "hidden", "4096"),
    ETCH_SIZE("num_attention_heads", "heads", "32"),
    ETCH_SIZE_NULL("num_key_value_heads", "kv_heads", "8", SAME_HEADS),
    ETCH_SIZE_NULL("head_dim", "head_dim", HEAD_DIM, HEAD_DIM),
    ETCH_SIZE("intermediate_size", "expert_ffn", "14336"),
    ETCH_SIZE("vocab_size", "vocab", "32000"),
    ETCH_SIZE("num_local_experts num_experts", "experts", "8"),
    ETCH_SIZE("num_experts_per_tok", "topk", "2"),
    ETCH_FITS("sliding_window", "null", "null", "has no windows"),
    OWN_HEAD,
    ETCH_NO_FIELD,
};

static const etch_field_row qwen3_moe[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "24"),
    ETCH_SIZE("hidden_size", "hidden", "2048"),
    ETCH_SIZE("num_attention_heads", "heads", "32"),
    ETCH_SIZE_NULL("num_key_value_heads", "kv_heads", "4", SAME_HEADS),
    ETCH_SIZE_NULL("head_dim", "head_dim", HEAD_DIM, HEAD_DIM),
    ETCH_SIZE("moe_intermediate_size", "expert_ffn", "768"),
    ETCH_SIZE("vocab_size", "vocab", "151936"),
    ETCH_SIZE("num_experts num_local_experts", "experts", "128"),
    ETCH_SIZE("num_experts_per_tok", "topk", "8"),
    ETCH_FITS("norm_topk_prob", "true", "false", "makes the weights of the chosen experts add up to 1"),
    ETCH_FITS("decoder_sparse_step", "1", "1", "has experts in every layer"),
    ETCH_FITS("mlp_only_layers", "[] null", "[]", "has experts in every layer"),
    /* of layers without experts */
    ETCH_ANY("intermediate_size"),
    ETCH_FITS("use_sliding_window", "false null", "false", "has no windows"),
    ETCH_ANY("sliding_window"),
    ETCH_ANY("max_window_layers"),
    ETCH_KINDS("layer_types", "full_attention", "has no windows"),
    OWN_HEAD,
    ETCH_NO_FIELD,
};

static const etch_field_row gpt_oss[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "36"),
    ETCH_SIZE("hidden_size", "hidden", "2880"),
    ETCH_SIZE("num_attention_heads", "heads", "64"),
    ETCH_SIZE("num_key_value_heads", "kv_heads", "8"),
    ETCH_SIZE("head_dim", "head_dim", "64"),
    ETCH_SIZE("intermediate_size", "expert_ffn", "2880"),
    ETCH_SIZE("vocab_size", "vocab", "201088"),
    ETCH_SIZE("num_local_experts num_experts", "experts", "128"),
    ETCH_SIZE("num_experts_per_tok experts_per_token", "topk", "4"),
    ETCH_SIZE("sliding_window", "window", "128"),
    ETCH_KINDS("layer_types", "sliding_attention full_attention", "has windows in every other layer"),
    ETCH_FITS("attention_bias", "true", "true", "has biases in attention"),
    ETCH_ANY("swiglu_limit"),
    ETCH_ANY("initial_context_length"),
    OWN_HEAD,
    ETCH_NO_FIELD,
};

static const etch_field_row deepseek_v3[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "61"),
    ETCH_SIZE("hidden_size", "hidden", "7168"),
    ETCH_SIZE("num_attention_heads", "heads", "128"),
    ETCH_SIZE_NULL("num_key_value_heads", NULL, SAME_HEADS, SAME_HEADS),
    {.names = "q_lora_rank", .kind = ETCH_FIELD_SIZE, .param = "q_rank", .absent = "1536", .null = "= 0"},
    ETCH_SIZE("kv_lora_rank", "kv_rank", "512"),
    ETCH_SIZE("qk_nope_head_dim", "nope", "128"),
    ETCH_SIZE("qk_rope_head_dim", "rope_dim", "64"),
    ETCH_SIZE("v_head_dim", "v_dim", "128"),
    ETCH_SIZE("intermediate_size", "ffn", "18432"),
    ETCH_SIZE("moe_intermediate_size", "expert_ffn", "2048"),
    ETCH_SIZE("n_routed_experts num_local_experts", "experts", "256"),
    ETCH_SIZE("num_experts_per_tok", "topk", "8"),
    ETCH_SIZE("n_shared_experts", "shared", "1"),
    ETCH_SIZE("first_k_dense_replace", "dense_layers", "3"),
    ETCH_SIZE("vocab_size", "vocab", "129280"),
    ETCH_SIZE("n_group", "groups", "8"),
    ETCH_SIZE("topk_group", "top_groups", "4"),
    ETCH_FITS("moe_layer_freq", "1", "1", "has experts in every layer after the first ones"),
    ETCH_FITS("norm_topk_prob", "true", "true", "makes the weights of the chosen experts add up to 1"),
    ETCH_FITS("scoring_func", "sigmoid", "sigmoid", "scores experts by sigmoid"),
    ETCH_FITS("topk_method", "noaux_tc", "noaux_tc", "chooses experts by scores with a bias"),
    ETCH_REMARK_ON("num_nextn_predict_layers num_mtp_layers", "0 null", "0",
                   "leaves out modules that predict further tokens: `--set mtp=1` counts one"),
    ETCH_ANY("routed_scaling_factor"),
    ETCH_ANY("aux_loss_alpha"),
    ETCH_ANY("seq_aux"),
    ETCH_ANY("ep_size"),
    ETCH_ANY("head_dim qk_head_dim"),
    ETCH_ANY("rope_interleave"),
    OWN_HEAD,
    ETCH_NO_FIELD,
};

static const etch_import_family families[] = {
    {
        .types = "mixtral",
        .architectures = "MixtralForCausalLM",
        .file = "mixtral.etch",
        .model = "mixtral",
        .fields = {mixtral, etch_fields_gated},
        .bindings = {NO_MLP},
        .rules = {DIVIDES, "num_experts_per_tok <= num_local_experts"},
    },
    {
        .types = "qwen3_moe",
        .architectures = "Qwen3MoeForCausalLM",
        .file = "qwen3_moe.etch",
        .model = "qwen3_moe",
        .fields = {qwen3_moe, etch_fields_gated},
        .bindings = {NO_MLP},
        .rules = {DIVIDES, "num_experts_per_tok <= num_experts"},
    },
    {
        .types = "gpt_oss",
        .architectures = "GptOssForCausalLM",
        .file = "gpt_oss.etch",
        .model = "gpt_oss",
        .fields = {gpt_oss, etch_fields_gated},
        .bindings = {NO_MLP},
        .rules = {DIVIDES, "num_experts_per_tok <= num_local_experts"},
    },
    {
        .types = "deepseek_v3",
        .architectures = "DeepseekV3ForCausalLM",
        .code = "configuration_deepseek modeling_deepseek",
        .file = "deepseek_v3.etch",
        .model = "deepseek_v3",
        .fields = {deepseek_v3, etch_fields_gated},
        .bindings = {ETCH_BIND("biased", "1"), ETCH_BIND("mtp", "0")},
        .rules = {"num_experts_per_tok <= n_routed_experts", "first_k_dense_replace <= num_hidden_layers",
                  "n_group | n_routed_experts", "topk_group <= n_group",
                  "num_key_value_heads == num_attention_heads"},
    },
    {
        .types = "kimi_k2",
        .architectures = "DeepseekV3ForCausalLM KimiK2ForCausalLM",
        .code = "configuration_deepseek modeling_deepseek",
        .file = "deepseek_v3.etch",
        .model = "deepseek_v3",
        .fields = {deepseek_v3, etch_fields_gated},
        .bindings = {ETCH_BIND("biased", "1"), ETCH_BIND("mtp", "0")},
        .rules = {"num_experts_per_tok <= n_routed_experts", "first_k_dense_replace <= num_hidden_layers",
                  "n_group | n_routed_experts", "topk_group <= n_group",
                  "num_key_value_heads == num_attention_heads"},
    },
};

ETCH_IMPORT_ROWS(experts, families);
