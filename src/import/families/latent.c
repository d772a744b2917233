/* Decoders with shared and routed experts behind dense layers, and Llama 4. What a config leaves out is what
 * the class of its model type takes then. */
#include "import/families/family.h"

#define OWN_HEAD ETCH_FITS("tie_word_embeddings", "false", "false", "has a head of its own")

/* ---- DeepSeek-V2 --------------------------------------------------------------------------------------- */

static const etch_field_row deepseek_v2[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "32"),
    ETCH_SIZE("hidden_size", "hidden", "4096"),
    ETCH_SIZE("num_attention_heads", "heads", "32"),
    ETCH_SIZE_NULL("num_key_value_heads", NULL, "= num_attention_heads", "= num_attention_heads"),
    {.names = "q_lora_rank", .kind = ETCH_FIELD_SIZE, .param = "q_rank", .absent = "1536", .null = "= 0"},
    ETCH_SIZE("kv_lora_rank", "kv_rank", "512"),
    ETCH_SIZE("qk_nope_head_dim", "nope", "128"),
    ETCH_SIZE("qk_rope_head_dim", "rope_dim", "64"),
    ETCH_SIZE("v_head_dim", "v_dim", "128"),
    ETCH_SIZE("intermediate_size", "ffn", "11008"),
    ETCH_SIZE("moe_intermediate_size", "expert_ffn", "1407"),
    ETCH_SIZE("n_routed_experts num_experts num_local_experts", "experts", "64"),
    /* the class has none, and cannot do without */
    ETCH_SIZE("num_experts_per_tok", "topk", NULL),
    ETCH_SIZE("n_shared_experts", "shared", "2"),
    {.names = "first_k_dense_replace", .kind = ETCH_FIELD_COUNT, .param = "dense_layers", .absent = "0"},
    ETCH_SIZE("vocab_size", "vocab", "32000"),
    ETCH_SIZE_NULL("n_group", NULL, "1", "1"),
    ETCH_SIZE_NULL("topk_group", NULL, "1", "1"),
    ETCH_FITS("topk_method", "greedy group_limited_greedy", "greedy",
              "chooses the best experts, of the best groups or of all"),
    ETCH_FITS("norm_topk_prob", "false null", "false", "takes the weights of the chosen experts as they are"),
    ETCH_FITS("scoring_func", "softmax", "softmax", "scores experts by softmax"),
    ETCH_FITS("moe_layer_freq", "1", "1", "has experts in every layer after the first ones"),
    /* scaling costs the same by any number */
    ETCH_ANY("routed_scaling_factor"),
    ETCH_ANY("aux_loss_alpha"),
    ETCH_ANY("seq_aux"),
    ETCH_ANY("ep_size"),
    ETCH_ANY("head_dim qk_head_dim"),
    OWN_HEAD,
    ETCH_NO_FIELD,
};

/* ---- GLM-4.5 ------------------------------------------------------------------------------------------- */

static const etch_field_row glm4_moe[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "46"),
    ETCH_SIZE("hidden_size", "hidden", "4096"),
    ETCH_SIZE("num_attention_heads", "heads", "96"),
    ETCH_SIZE("num_key_value_heads", "kv_heads", "8"),
    ETCH_SIZE_NULL("head_dim", "head_dim", "= hidden_size / num_attention_heads",
                   "= hidden_size / num_attention_heads"),
    ETCH_PART("partial_rotary_factor rope_parameters.partial_rotary_factor "
              "rope_scaling.partial_rotary_factor",
              "0.5"),
    ETCH_SIZE("intermediate_size", "ffn", "10944"),
    ETCH_SIZE("moe_intermediate_size", "expert_ffn", "1408"),
    ETCH_SIZE("n_routed_experts num_experts num_local_experts", "experts", "128"),
    ETCH_SIZE("num_experts_per_tok", "topk", "8"),
    ETCH_SIZE("n_shared_experts", "shared", "1"),
    ETCH_SIZE("first_k_dense_replace", "dense_layers", "1"),
    ETCH_SIZE("vocab_size", "vocab", "151552"),
    ETCH_SIZE("n_group", "groups", "1"),
    ETCH_SIZE("topk_group", "top_groups", "1"),
    ETCH_FLAG_TO("use_qk_norm", "head_norms", "false"),
    ETCH_FITS("attention_bias", "true", "false", "has biases on queries, keys and values"),
    ETCH_FITS("norm_topk_prob", "true", "true", "makes the weights of the chosen experts add up to 1"),
    ETCH_REMARK_ON("num_nextn_predict_layers", "0 null", "0",
                   "leaves out layers that predict further tokens"),
    ETCH_ANY("routed_scaling_factor"),
    OWN_HEAD,
    ETCH_NO_FIELD,
};

/* ---- Llama 4, its language model ----------------------------------------------------------------------- */

static const etch_field_row llama4[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "48"),
    ETCH_SIZE("hidden_size", "hidden", "5120"),
    ETCH_SIZE("num_attention_heads", "heads", "40"),
    ETCH_SIZE_NULL("num_key_value_heads", "kv_heads", "8", "= num_attention_heads"),
    ETCH_SIZE_NULL("head_dim", "head_dim", "128", "= hidden_size / num_attention_heads"),
    ETCH_SIZE("intermediate_size_mlp", "ffn", "16384"),
    ETCH_SIZE("intermediate_size", "expert_ffn", "8192"),
    ETCH_SIZE("num_local_experts num_experts", "experts", "16"),
    ETCH_SIZE("num_experts_per_tok", "topk", "1"),
    ETCH_SIZE("interleave_moe_layer_step", "moe_every", "1"),
    ETCH_SIZE("attention_chunk_size", "chunk", "8192"),
    ETCH_SIZE("vocab_size", "vocab", "202048"),
    ETCH_FLAG_TO("use_qk_norm", "head_norms", "true"),
    {.names = "moe_layers",
     .kind = ETCH_FIELD_STEPS,
     .fits = "interleave_moe_layer_step",
     .why = "has experts in those"},
    {.names = "no_rope_layers",
     .kind = ETCH_FIELD_KINDS,
     .absent = "[]",
     .fits = "1 1 1 0",
     .why = "has rotary positions in three of four layers"},
    ETCH_FITS("no_rope_layer_interval", "4", "4", "has rotary positions in three of four layers"),
    ETCH_KINDS("layer_types", "chunked_attention chunked_attention chunked_attention full_attention",
               "sees chunks in three of four layers"),
    ETCH_ANY("attn_temperature_tuning"),
    ETCH_ANY("attn_scale"),
    ETCH_ANY("floor_scale"),
    ETCH_ANY("for_llm_compressor"),
    ETCH_ANY("cache_implementation"),
    ETCH_WARN("vision_config", "null", "null",
              "is the language model alone: what reads images, and what joins it, is not counted"),
    ETCH_ANY("image_token_index image_token_id"),
    ETCH_ANY("boi_token_index boi_token_id"),
    ETCH_ANY("eoi_token_index eoi_token_id"),
    ETCH_ANY("text_config"),
    OWN_HEAD,
    ETCH_NO_FIELD,
};

/* ---- the families -------------------------------------------------------------------------------------- */

static const etch_import_family families[] = {
    {
        .types = "deepseek_v2",
        .architectures = "DeepseekV2ForCausalLM",
        .code = "configuration_deepseek modeling_deepseek",
        .file = "deepseek_v2.etch",
        .model = "deepseek_v2",
        .fields = {deepseek_v2, etch_fields_gated},
        .bindings = {ETCH_BIND_WHERE("groups", "n_group", "topk_method", "group_limited_greedy"),
                     ETCH_BIND("groups", "1"),
                     ETCH_BIND_WHERE("top_groups", "topk_group", "topk_method", "group_limited_greedy"),
                     ETCH_BIND("top_groups", "1")},
        .rules = {"num_experts_per_tok <= n_routed_experts", "1 <= first_k_dense_replace",
                  "first_k_dense_replace <= num_hidden_layers", "groups | n_routed_experts",
                  "top_groups <= groups", "num_key_value_heads == num_attention_heads"},
    },
    {
        .types = "glm4_moe",
        .architectures = "Glm4MoeForCausalLM",
        .file = "glm4_moe.etch",
        .model = "glm4_moe",
        .fields = {glm4_moe, etch_fields_gated},
        .bindings = {ETCH_BIND_WHERE("rotary_dim", "0", "partial_rotary_factor", "1"),
                     ETCH_BIND("rotary_dim", "head_dim * partial_rotary_factor"), ETCH_BIND("biased", "1")},
        .rules = {"num_key_value_heads | num_attention_heads", "num_experts_per_tok <= n_routed_experts",
                  "first_k_dense_replace <= num_hidden_layers", "n_group | n_routed_experts",
                  "topk_group <= n_group", "1 <= head_dim * partial_rotary_factor",
                  "2 | head_dim * partial_rotary_factor"},
    },
    {
        .types = "llama4_text",
        .wrappers = "llama4",
        .architectures = "Llama4ForCausalLM Llama4ForConditionalGeneration",
        .file = "llama4.etch",
        .model = "llama4",
        .fields = {llama4, etch_fields_gated},
        .rules = {"num_key_value_heads | num_attention_heads", "num_experts_per_tok <= num_local_experts"},
    },
};

ETCH_IMPORT_ROWS(latent, families);
