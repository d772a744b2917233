/* Models as other libraries than Transformers keep them: Diffusers and PEFT. */
#include "import/families/family.h"

#define HAS_DROPOUT "has no dropout: in training that costs more"

/* ---- DiT, as Diffusers writes it ----------------------------------------------------------------------- */

static const etch_field_row dit[] = {
    ETCH_LAYERS("num_layers", "layers", "28"),
    ETCH_SIZE("num_attention_heads", "heads", "16"),
    ETCH_SIZE("attention_head_dim", "head_dim", "72"),
    ETCH_SIZE("sample_size", "latent", "32"),
    ETCH_SIZE("patch_size", "patch", "2"),
    ETCH_SIZE("in_channels", "channels", "4"),
    ETCH_SIZE_NULL("out_channels", NULL, "= in_channels", "= in_channels"),
    ETCH_SIZE("num_embeds_ada_norm", NULL, "1000"),
    ETCH_FITS("norm_type", "ada_norm_zero", "ada_norm_zero",
              "takes scales, shifts and gates from time and class"),
    ETCH_FITS("norm_elementwise_affine", "false", "false", "has norms without weights"),
    ETCH_FITS("activation_fn", "gelu-approximate gelu", "gelu-approximate", "computes gelu in its MLP"),
    ETCH_FITS("attention_bias", "true", "true", "has biases in attention"),
    ETCH_FITS("attention_type", "default", "default", "has attention to the image alone"),
    ETCH_FITS("cross_attention_dim", "null", "null", "has attention to the image alone"),
    ETCH_FITS("caption_channels", "null", "null", "is told a class, and no text"),
    ETCH_FITS("double_self_attention", "false", "false", "has one attention in a block"),
    ETCH_FITS("only_cross_attention", "false", "false", "has attention to the image alone"),
    ETCH_FITS("num_vector_embeds", "null", "null", "has squares of an image, and no codes"),
    ETCH_WARN("dropout", "0", "0", HAS_DROPOUT),
    ETCH_ANY("_class_name"),
    ETCH_ANY("_diffusers_version"),
    ETCH_ANY("norm_num_groups"),
    ETCH_ANY("norm_eps"),
    ETCH_ANY("upcast_attention"),
    ETCH_ANY("use_linear_projection"),
    ETCH_ANY("interpolation_scale"),
    ETCH_NO_FIELD,
};

/* The class that held all kinds of transformers once, and took other values for what is left out. */
static const etch_field_row transformer_2d[] = {
    ETCH_LAYERS("num_layers", "layers", "1"),
    ETCH_SIZE("attention_head_dim", "head_dim", "88"),
    ETCH_SIZE("sample_size", "latent", NULL),
    ETCH_SIZE("patch_size", "patch", NULL),
    ETCH_SIZE("in_channels", "channels", NULL),
    ETCH_SIZE("num_embeds_ada_norm", NULL, NULL),
    ETCH_FITS("norm_type", "ada_norm_zero", "layer_norm",
              "takes scales, shifts and gates from time and class"),
    ETCH_FITS("norm_elementwise_affine", "false", "true", "has norms without weights"),
    ETCH_FITS("activation_fn", "gelu-approximate gelu", "geglu", "computes gelu in its MLP"),
    ETCH_FITS("attention_bias", "true", "false", "has biases in attention"),
    ETCH_NO_FIELD,
};

#define DIT_SIZES                                                                    \
    ETCH_BIND("hidden", "num_attention_heads * attention_head_dim"),                 \
        ETCH_BIND("ffn", "4 * num_attention_heads * attention_head_dim"),            \
        ETCH_BIND("kinds", "num_embeds_ada_norm + 1"), /* that of no class is one */ \
        ETCH_BIND("waves", "256")
#define DIT_RULES "patch_size | sample_size", "out_channels == 2 * in_channels"

/* ---- LoRA, as PEFT writes it --------------------------------------------------------------------------- */

static const etch_field_row lora[] = {
    ETCH_FITS("peft_type", "LORA", "LORA", "trains two narrow weights beside projections"),
    ETCH_SIZE("r", "rank", "8"),
    ETCH_SIZE("lora_alpha", "alpha", "8"),
    {.names = "target_modules",
     .kind = ETCH_FIELD_SET,
     .fits = "q_proj v_proj",
     .why = "adapts projections of queries and of values"},
    ETCH_REMARK_ON("base_model_name_or_path", "null", "null",
                   "has the blocks of Llama: bind its sizes with --set layers, hidden, heads, kv_heads, "
                   "head_dim, ffn and vocab"),
    ETCH_FITS("task_type", "CAUSAL_LM null", "null", "predicts tokens"),
    ETCH_FITS("bias", "none", "none", "trains no biases"),
    ETCH_FITS("use_dora", "false", "false", "has no magnitudes beside directions"),
    ETCH_FITS("lora_bias", "false", "false", "has no biases in narrow products"),
    ETCH_FITS("modules_to_save", "null []", "null", "trains nothing else"),
    ETCH_FITS("trainable_token_indices", "null []", "null", "trains nothing else"),
    ETCH_FITS("target_parameters", "null []", "null", "adapts projections of queries and of values"),
    ETCH_FITS("exclude_modules", "null []", "null", "adapts every layer"),
    ETCH_FITS("layers_to_transform", "null []", "null", "adapts every layer"),
    ETCH_FITS("layers_pattern", "null []", "null", "adapts every layer"),
    ETCH_FITS("layer_replication", "null []", "null", "has each layer once"),
    ETCH_FITS("rank_pattern", "{} null", "{}", "has one rank"),
    ETCH_WARN("lora_dropout", "+", "0",
              "has dropout of a rate above 0: in training that costs more than none"),
    ETCH_ANY("alpha_pattern"),
    ETCH_ANY("use_rslora"),
    ETCH_ANY("fan_in_fan_out"),
    ETCH_ANY("inference_mode"),
    ETCH_ANY("init_lora_weights"),
    ETCH_ANY("auto_mapping"),
    ETCH_ANY("revision"),
    ETCH_ANY("loftq_config"),
    ETCH_ANY("megatron_config"),
    ETCH_ANY("megatron_core"),
    ETCH_ANY("peft_version"),
    ETCH_NO_FIELD,
};

/* ---- the families -------------------------------------------------------------------------------------- */

static const etch_import_family families[] = {
    {
        .architectures = "DiTTransformer2DModel",
        .file = "dit_blocks.etch",
        .model = "dit",
        .fields = {dit},
        .bindings = {DIT_SIZES},
        .rules = {DIT_RULES},
    },
    {
        .architectures = "Transformer2DModel",
        .file = "dit_blocks.etch",
        .model = "dit",
        .fields = {transformer_2d, dit},
        .bindings = {DIT_SIZES},
        .rules = {DIT_RULES},
    },
    {
        .mark = "peft_type",
        .file = "lora.etch",
        .model = "lora",
        .fields = {lora},
    },
};

ETCH_IMPORT_ROWS(adapted, families);
