/* State spaces; encoders with decoders. */
#include "import/families/family.h"

/* ---- Mamba-2 ------------------------------------------------------------------------------------------- */

static const etch_field_row mamba2[] = {
    ETCH_LAYERS("num_hidden_layers n_layer", "layers", "64"),
    ETCH_SIZE("hidden_size d_model", "hidden", "4096"),
    ETCH_SIZE("vocab_size", "vocab", "32768"),
    ETCH_SIZE("head_dim", "head_dim", "64"),
    ETCH_SIZE("num_heads", NULL, "128"),
    ETCH_SIZE("n_groups", "groups", "8"),
    ETCH_SIZE("state_size", "state", "128"),
    ETCH_SIZE("conv_kernel", "conv", "4"),
    ETCH_SIZE("chunk_size", "chunk", "256"),
    ETCH_SIZE("expand", NULL, "2"),
    /* derived of the others, and not read by the model */
    ETCH_ANY("intermediate_size"),
    ETCH_FITS("hidden_act", "silu swish", "silu", "computes silu"),
    ETCH_FITS("use_bias", "false", "false", "has no biases in its products"),
    ETCH_FITS("use_conv_bias", "true", "true", "has biases of convolutions"),
    ETCH_FITS("rms_norm", "true", "true", "has a norm before the last product"),
    ETCH_FITS("tie_word_embeddings", "true false", "false", NULL),
    ETCH_ANY("residual_in_fp32"),
    ETCH_ANY("rescale_prenorm_residual"),
    ETCH_ANY("time_step_rank"),
    ETCH_ANY("time_step_min"),
    ETCH_ANY("time_step_max"),
    ETCH_ANY("time_step_floor"),
    ETCH_ANY("time_step_limit"),
    ETCH_ANY("A_initializer_range"),
    ETCH_ANY("norm_before_gate"),
    ETCH_NO_FIELD,
};

/* As its authors published it, without a model type. */
static const etch_field_row mamba2_first[] = {
    ETCH_LAYERS("n_layer", "layers", "64"),
    ETCH_SIZE("d_model", "hidden", "2560"),
    ETCH_SIZE("vocab_size", NULL, "50277"),
    ETCH_SIZE("pad_vocab_size_multiple", NULL, "8"),
    ETCH_FITS("ssm_cfg.layer", "Mamba2", "Mamba1", "is of Mamba-2"),
    ETCH_SIZE("ssm_cfg.expand", NULL, "2"),
    ETCH_SIZE("ssm_cfg.headdim", "head_dim", "64"),
    ETCH_SIZE("ssm_cfg.ngroups", "groups", "1"),
    ETCH_SIZE("ssm_cfg.d_state", "state", "128"),
    ETCH_SIZE("ssm_cfg.d_conv", "conv", "4"),
    ETCH_SIZE("ssm_cfg.chunk_size", "chunk", "256"),
    ETCH_FITS("d_intermediate", "0", "0", "has no MLP"),
    ETCH_FITS("attn_layer_idx", "[] null", "[]", "has no attention"),
    ETCH_ANY("attn_cfg"),
    ETCH_FITS("rms_norm", "true", "true", "has RMSNorm"),
    ETCH_FITS("tie_embeddings", "true false", "true", NULL),
    ETCH_ANY("residual_in_fp32"),
    ETCH_ANY("fused_add_norm"),
    ETCH_NO_FIELD,
};

/* ---- T5 ------------------------------------------------------------------------------------------------ */

static const etch_field_row t5[] = {
    ETCH_LAYERS("num_layers num_hidden_layers", "enc_layers", "6"),
    {.names = "num_decoder_layers",
     .kind = ETCH_FIELD_LAYERS,
     .param = "dec_layers",
     .absent = "= num_layers",
     .null = "= num_layers"},
    ETCH_SIZE("d_model hidden_size", "hidden", "512"),
    ETCH_SIZE("num_heads num_attention_heads", "heads", "8"),
    ETCH_SIZE("d_kv head_dim", "head_dim", "64"),
    ETCH_SIZE("d_ff", "ffn", "2048"),
    ETCH_SIZE("vocab_size", "vocab", "32128"),
    ETCH_SIZE("relative_attention_num_buckets", "buckets", "32"),
    ETCH_ANY("relative_attention_max_distance"),
    ETCH_FITS("feed_forward_proj", "relu", "relu", "has two products and relu in its MLP"),
    ETCH_FITS("is_gated_act", "false", "false", "has two products in its MLP"),
    ETCH_FITS("dense_act_fn", "relu", "relu", "computes relu in its MLP"),
    ETCH_FITS("is_encoder_decoder", "true", "true", "has an encoder and a decoder"),
    ETCH_FITS("tie_word_embeddings", "true", "true", "has no head but the embedding"),
    ETCH_WARN("dropout_rate", "0", "0.1", "has no dropout: in training that costs more"),
    ETCH_ANY("classifier_dropout"),
    ETCH_ANY("n_positions"),
    ETCH_NO_FIELD,
};

static const etch_import_family families[] = {
    {
        .types = "mamba2",
        .architectures = "Mamba2ForCausalLM",
        .file = "mamba2_untied.etch",
        .model = "mamba2_untied",
        .variants = {{"tie_word_embeddings", "true", "mamba2.etch", "mamba2"}},
        .fields = {mamba2},
        .bindings = {ETCH_BIND("inner", "expand * hidden_size")},
        .rules = {"num_heads * head_dim == expand * hidden_size", "n_groups | num_heads"},
    },
    {
        .mark = "ssm_cfg",
        .architectures = "MambaLMHeadModel",
        .file = "mamba2_untied.etch",
        .model = "mamba2_untied",
        .variants = {{"tie_embeddings", "true", "mamba2.etch", "mamba2"}},
        .fields = {mamba2_first},
        .bindings = {ETCH_BIND("inner", "ssm_cfg.expand * d_model"),
                     ETCH_BIND("vocab", "vocab_size up pad_vocab_size_multiple")},
        .rules = {"ssm_cfg.headdim * ssm_cfg.ngroups | ssm_cfg.expand * d_model"},
    },
    {
        .types = "t5",
        .architectures = "T5ForConditionalGeneration T5WithLMHeadModel",
        .file = "t5.etch",
        .model = "t5",
        .fields = {t5},
    },
};

ETCH_IMPORT_ROWS(others, families);
