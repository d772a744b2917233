/* Fields that configs of all families have, and those that decoders after Llama share. */
#include "import/families/family.h"

/* Text, tokens, training and generation as the libraries around a model keep them: no cost depends on it. */
#define NAMES_AND_LABELS                                                                                    \
    ETCH_ANY("model_type"), ETCH_ANY("architectures"), ETCH_ANY("_name_or_path name_or_path"),              \
        ETCH_ANY("transformers_version"), ETCH_ANY("_commit_hash"), ETCH_ANY("tokenizer_class"),            \
        ETCH_ANY("finetuning_task"), ETCH_ANY("task_specific_params"), ETCH_ANY("problem_type"),            \
        ETCH_ANY("prefix"), ETCH_ANY("id2label"), ETCH_ANY("label2id"), ETCH_ANY("num_labels _num_labels"), \
        ETCH_ANY("return_dict use_return_dict"), ETCH_ANY("output_attentions"), ETCH_ANY("torchscript"),    \
        ETCH_ANY("output_hidden_states"), ETCH_ANY("is_decoder"), ETCH_ANY("output_past"),                  \
        ETCH_ANY("use_bfloat16"), ETCH_ANY("tf_legacy_loss"), ETCH_ANY("language"),                         \
        ETCH_ANY("_attn_implementation"), ETCH_ANY("attn_implementation _attn_implementation_autoset"),     \
        ETCH_ANY("gradient_checkpointing")
#define TOKENS                                                                                              \
    ETCH_ANY("bos_token_id"), ETCH_ANY("eos_token_id"), ETCH_ANY("pad_token_id"), ETCH_ANY("sep_token_id"), \
        ETCH_ANY("unk_token_id"), ETCH_ANY("mask_token_id"), ETCH_ANY("decoder_start_token_id"),            \
        ETCH_ANY("forced_bos_token_id"), ETCH_ANY("forced_eos_token_id"), ETCH_ANY("max_length"),           \
        ETCH_ANY("min_length"), ETCH_ANY("do_sample"), ETCH_ANY("early_stopping"), ETCH_ANY("num_beams"),   \
        ETCH_ANY("num_beam_groups"), ETCH_ANY("diversity_penalty"), ETCH_ANY("temperature"),                \
        ETCH_ANY("top_k"), ETCH_ANY("top_p"), ETCH_ANY("typical_p"), ETCH_ANY("repetition_penalty"),        \
        ETCH_ANY("length_penalty"), ETCH_ANY("no_repeat_ngram_size"), ETCH_ANY("bad_words_ids"),            \
        ETCH_ANY("encoder_no_repeat_ngram_size"), ETCH_ANY("num_return_sequences"),                         \
        ETCH_ANY("output_scores"), ETCH_ANY("return_dict_in_generate"), ETCH_ANY("remove_invalid_values"),  \
        ETCH_ANY("exponential_decay_length_penalty"), ETCH_ANY("suppress_tokens"),                          \
        ETCH_ANY("begin_suppress_tokens"), ETCH_ANY("chunk_size_feed_forward")
#define NUMBERS_WITHOUT_COST                                                                              \
    ETCH_ANY("initializer_range"), ETCH_ANY("initializer_factor"), ETCH_ANY("use_cache"),                 \
        ETCH_ANY("rms_norm_eps"), ETCH_ANY("layer_norm_epsilon layer_norm_eps"),                          \
        ETCH_ANY("max_position_embeddings max_sequence_length model_max_length"), ETCH_ANY("rope_theta"), \
        ETCH_ANY("rope_scaling"), ETCH_ANY("rope_parameters"), ETCH_ANY("pretraining_tp"),                \
        ETCH_ANY("router_aux_loss_coef"), ETCH_ANY("output_router_logits"), ETCH_ANY("router_jitter_noise")

/* Rotary positions turn whole heads, wherever the fields stand. */
#define ROTARY                                                                                            \
    ETCH_FITS(                                                                                            \
        "partial_rotary_factor rope_parameters.partial_rotary_factor rope_scaling.partial_rotary_factor", \
        "1 null", NULL, "rotates whole heads")

#define QUANTISED                                                                                         \
    {.names = "quantization_config compression_config",                                                   \
     .kind = ETCH_FIELD_FITS,                                                                             \
     .fits = "null {}",                                                                                   \
     .verdict = ETCH_FIELD_WARNED,                                                                        \
     .why = "counts the weights that packed numbers stand for, in its own dtypes"},                       \
        ETCH_FITS(                                                                                        \
            "quantization_config.quant_method compression_config.quant_method",                           \
            "fp8 mxfp4 gptq awq bitsandbytes compressed-tensors fbgemm_fp8 torchao hqq aqlm eetq quanto " \
            "higgs vptq spqr bitnet fp_quant auto-round modelopt null",                                   \
            NULL, "can only stand for weights in one of the ways that are known")

const etch_field_row etch_fields_common[] = {
    NAMES_AND_LABELS,
    TOKENS,
    NUMBERS_WITHOUT_COST,
    ROTARY,
    QUANTISED,
    {.names = "torch_dtype dtype", .kind = ETCH_FIELD_DTYPE, .fits = "bfloat16 float16 float32"},
    {.names = "auto_map", .kind = ETCH_FIELD_CODE},
    ETCH_FITS("is_encoder_decoder", "false null", "false", "has no encoder"),
    ETCH_FITS("add_cross_attention", "false null", "false", "has no attention to an encoder"),
    ETCH_FITS("cross_attention_hidden_size", "null", "null", "has no attention to an encoder"),
    ETCH_FITS("tie_encoder_decoder", "false null", "false", "shares no weights between two stacks"),
    ETCH_FITS("pruned_heads", "{} null", "{}", "has all heads of every layer"),
    ETCH_NO_FIELD,
};

const etch_field_row etch_fields_gated[] = {
    ETCH_FITS("hidden_act", "silu swish", "silu", "computes silu in its MLP"),
    ETCH_FITS("attention_bias", "false null", "false", "has no biases in attention"),
    ETCH_FITS("mlp_bias", "false null", "false", "has no biases in its MLP"),
    ETCH_WARN("attention_dropout", "0 null", "0", "has no dropout of attention: in training that costs more"),
    ETCH_NO_FIELD,
};
