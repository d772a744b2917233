/* Encoders, and models of several towers. What a config leaves out is what the class of its model type takes
 * then. */
#include "import/families/family.h"

#define HAS_DROPOUT "has no dropout: in training that costs more"
#define GELU "gelu gelu_new gelu_fast gelu_pytorch_tanh"
#define CLIP_GELU GELU " quick_gelu"

/* ---- BERT, ViT ----------------------------------------------------------------------------------------- */

static const etch_field_row bert[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "12"),
    ETCH_SIZE("hidden_size", "hidden", "768"),
    ETCH_SIZE("num_attention_heads", "heads", "12"),
    ETCH_SIZE("intermediate_size", "ffn", "3072"),
    ETCH_SIZE("vocab_size", "vocab", "30522"),
    ETCH_SIZE("max_position_embeddings", "positions", "512"),
    ETCH_SIZE("type_vocab_size", "segments", "2"),
    ETCH_FITS("hidden_act", GELU, "gelu", "computes gelu in its MLP"),
    ETCH_FITS("position_embedding_type", "absolute", "absolute", "has learned positions"),
    ETCH_FITS("tie_word_embeddings", "true", "true", "has no head but the embedding"),
    ETCH_FITS("is_decoder", "false", "false", "lets tokens see all others"),
    ETCH_WARN("hidden_dropout_prob", "+", "0.1", "has dropout: in training that costs more than none"),
    ETCH_WARN("attention_probs_dropout_prob", "0", "0.1",
              "has no dropout of the weights of attention: in training that costs more"),
    ETCH_ANY("classifier_dropout"),
    ETCH_NO_FIELD,
};

static const etch_field_row albert[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "12"),
    ETCH_SIZE("hidden_size", "hidden", "4096"),
    ETCH_SIZE("embedding_size", "narrow", "128"),
    ETCH_SIZE("num_attention_heads", "heads", "64"),
    ETCH_SIZE("intermediate_size", "ffn", "16384"),
    ETCH_SIZE("vocab_size", "vocab", "30000"),
    ETCH_SIZE("max_position_embeddings", "positions", "512"),
    ETCH_SIZE("type_vocab_size", "segments", "2"),
    ETCH_FITS("num_hidden_groups", "1", "1", "has one set of weights for all layers"),
    ETCH_FITS("inner_group_num", "1", "1", "has one layer in that set"),
    ETCH_FITS("hidden_act", GELU, "gelu_new", "computes gelu in its MLP"),
    ETCH_FITS("position_embedding_type", "absolute", "absolute", "has learned positions"),
    ETCH_FITS("tie_word_embeddings", "true", "true", "has no head but the embedding"),
    ETCH_FITS("is_decoder", "false", "false", "lets tokens see all others"),
    ETCH_WARN("hidden_dropout_prob", "0", "0", HAS_DROPOUT),
    ETCH_WARN("attention_probs_dropout_prob", "0", "0", HAS_DROPOUT),
    ETCH_ANY("classifier_dropout_prob"),
    /* of a code before the published one */
    ETCH_FITS("net_structure_type", "0", "0", "has layers one behind the other"),
    ETCH_FITS("num_memory_blocks", "0", "0", "has no memory beside its layers"),
    ETCH_FITS("gap_size", "0", "0", "has layers one behind the other"),
    ETCH_FITS("down_scale_factor", "1", "1", "has layers of one width"),
    ETCH_NO_FIELD,
};

static const etch_field_row vit[] = {
    ETCH_LAYERS("num_hidden_layers", "layers", "12"),
    ETCH_SIZE("hidden_size", "hidden", "768"),
    ETCH_SIZE("num_attention_heads", "heads", "12"),
    ETCH_SIZE("intermediate_size", "ffn", "3072"),
    ETCH_SIZE("image_size", "image", "224"),
    ETCH_SIZE("patch_size", "patch", "16"),
    ETCH_SIZE("num_channels", "channels", "3"),
    /* labels as the file lists them; two without a list */
    {.names = "id2label num_labels _num_labels",
     .kind = ETCH_FIELD_MEMBERS,
     .param = "classes",
     .absent = "2"},
    ETCH_FITS("qkv_bias", "true", "true", "has biases on queries, keys and values"),
    ETCH_FITS("hidden_act", GELU, "gelu", "computes gelu in its MLP"),
    ETCH_WARN("hidden_dropout_prob", "0", "0", HAS_DROPOUT),
    ETCH_WARN("attention_probs_dropout_prob", "0", "0", HAS_DROPOUT),
    ETCH_ANY("encoder_stride"),
    ETCH_ANY("pooler_output_size"),
    ETCH_ANY("pooler_act"),
    ETCH_NO_FIELD,
};

/* ---- Whisper ------------------------------------------------------------------------------------------- */

/* The class took a model of its own at first, and takes that of whisper-tiny now: sizes have to be said. */
static const etch_field_row whisper[] = {
    ETCH_LAYERS("encoder_layers", "enc_layers", NULL),
    ETCH_LAYERS("decoder_layers", "dec_layers", NULL),
    ETCH_SIZE("d_model hidden_size", "hidden", NULL),
    ETCH_SIZE("encoder_attention_heads num_attention_heads", "heads", NULL),
    ETCH_SIZE("decoder_attention_heads", NULL, NULL),
    ETCH_SIZE("encoder_ffn_dim", "ffn", NULL),
    ETCH_SIZE("decoder_ffn_dim", NULL, NULL),
    ETCH_SIZE("vocab_size", "vocab", "51865"),
    ETCH_SIZE("num_mel_bins", "mels", "80"),
    ETCH_SIZE("max_source_positions", "src", "1500"),
    ETCH_SIZE("max_target_positions", "positions", "448"),
    ETCH_ANY("num_hidden_layers"),
    ETCH_FITS("is_encoder_decoder", "true", "true", "has an encoder and a decoder"),
    ETCH_FITS("activation_function", GELU, "gelu", "computes gelu in its MLP"),
    ETCH_FITS("tie_word_embeddings", "true", "true", "has no head but the embedding"),
    ETCH_WARN("dropout", "0", "0", HAS_DROPOUT),
    ETCH_WARN("attention_dropout", "0", "0", HAS_DROPOUT),
    ETCH_WARN("activation_dropout", "0", "0", HAS_DROPOUT),
    ETCH_WARN("encoder_layerdrop", "0", "0", "leaves out no layers: in training that costs less"),
    ETCH_WARN("decoder_layerdrop", "0", "0", "leaves out no layers: in training that costs less"),
    ETCH_ANY("scale_embedding"),
    ETCH_ANY("init_std"),
    ETCH_ANY("apply_spec_augment"),
    ETCH_ANY("mask_time_prob"),
    ETCH_ANY("mask_time_length"),
    ETCH_ANY("mask_time_min_masks"),
    ETCH_ANY("mask_feature_prob"),
    ETCH_ANY("mask_feature_length"),
    ETCH_ANY("mask_feature_min_masks"),
    ETCH_ANY("median_filter_width"),
    ETCH_ANY("use_weighted_layer_sum"),
    ETCH_ANY("classifier_proj_size"),
    ETCH_ANY("forced_decoder_ids"),
    ETCH_ANY("alignment_heads"),
    ETCH_NO_FIELD,
};

/* ---- CLIP ---------------------------------------------------------------------------------------------- */

/* The objects that end with _dict are what old configs have, and count where they are. */
#define TEXT(name) "text_config_dict." name " text_config." name
#define IMAGES(name) "vision_config_dict." name " vision_config." name

static const etch_field_row clip[] = {
    ETCH_LAYERS(IMAGES("num_hidden_layers"), "layers", "12"),
    ETCH_SIZE(IMAGES("hidden_size"), "hidden", "768"),
    ETCH_SIZE(IMAGES("num_attention_heads"), "heads", "12"),
    ETCH_SIZE(IMAGES("intermediate_size"), "ffn", "3072"),
    ETCH_SIZE(IMAGES("image_size"), "image", "224"),
    ETCH_SIZE(IMAGES("patch_size"), "patch", "32"),
    ETCH_SIZE(IMAGES("num_channels"), "channels", "3"),
    ETCH_FITS(IMAGES("hidden_act"), CLIP_GELU, "quick_gelu", "computes gelu in its MLPs"),
    ETCH_WARN(IMAGES("attention_dropout"), "0", "0", HAS_DROPOUT),
    ETCH_WARN(IMAGES("dropout"), "0", "0", HAS_DROPOUT),
    /* of the tower alone: both are compared in the width that the whole file says */
    ETCH_ANY(IMAGES("projection_dim")),
    ETCH_ANY(IMAGES("tie_word_embeddings")),
    ETCH_LAYERS(TEXT("num_hidden_layers"), "text_layers", "12"),
    ETCH_SIZE(TEXT("hidden_size"), "text_hidden", "512"),
    ETCH_SIZE(TEXT("num_attention_heads"), "text_heads", "8"),
    ETCH_SIZE(TEXT("intermediate_size"), "text_ffn", "2048"),
    ETCH_SIZE(TEXT("vocab_size"), "vocab", "49408"),
    ETCH_SIZE(TEXT("max_position_embeddings"), "seq", "77"),
    ETCH_FITS(TEXT("hidden_act"), CLIP_GELU, "quick_gelu", "computes gelu in its MLPs"),
    ETCH_WARN(TEXT("attention_dropout"), "0", "0", HAS_DROPOUT),
    ETCH_WARN(TEXT("dropout"), "0", "0", HAS_DROPOUT),
    ETCH_ANY(TEXT("projection_dim")),
    ETCH_ANY(TEXT("tie_word_embeddings")),
    ETCH_SIZE("projection_dim", "width", "512"),
    ETCH_ANY("logit_scale_init_value"),
    ETCH_NO_FIELD,
};

/* ---- LLaVA --------------------------------------------------------------------------------------------- */

static const etch_field_row llava[] = {
    ETCH_FITS("text_config.model_type", "llama", "llama", "has the blocks of Llama"),
    ETCH_LAYERS("text_config.num_hidden_layers", "layers", "32"),
    ETCH_SIZE("text_config.hidden_size", "hidden", "4096"),
    ETCH_SIZE("text_config.num_attention_heads", "heads", "32"),
    ETCH_SIZE_NULL("text_config.num_key_value_heads", "kv_heads", "= text_config.num_attention_heads",
                   "= text_config.num_attention_heads"),
    ETCH_SIZE_NULL("text_config.head_dim", "head_dim",
                   "= text_config.hidden_size / text_config.num_attention_heads",
                   "= text_config.hidden_size / text_config.num_attention_heads"),
    ETCH_SIZE("text_config.intermediate_size", "ffn", "11008"),
    ETCH_SIZE("text_config.vocab_size", "vocab", "32000"),
    ETCH_FITS("text_config.hidden_act", "silu swish", "silu", "computes silu in the MLP of its text"),
    ETCH_FITS("text_config.attention_bias", "false null", "false", "has no biases in attention of its text"),
    ETCH_FITS("text_config.mlp_bias", "false null", "false", "has no biases in the MLP of its text"),
    ETCH_FITS("text_config.tie_word_embeddings", "false", "false", "has a head of its own"),
    ETCH_WARN("text_config.attention_dropout", "0 null", "0", HAS_DROPOUT),
    {.names = "vision_config",
     .kind = ETCH_FIELD_OBJECT,
     .why = "without it the class takes a tower of its own, and not that of its class"},
    ETCH_FITS("vision_config.model_type", "clip_vision_model", "clip_vision_model", "has the tower of CLIP"),
    ETCH_LAYERS("vision_config.num_hidden_layers", NULL, "12"),
    ETCH_SIZE("vision_config.hidden_size", "image_hidden", "768"),
    ETCH_SIZE("vision_config.num_attention_heads", "image_heads", "12"),
    ETCH_SIZE("vision_config.intermediate_size", "image_ffn", "3072"),
    ETCH_SIZE("vision_config.image_size", "image", "224"),
    ETCH_SIZE("vision_config.patch_size", "patch", "32"),
    ETCH_SIZE("vision_config.num_channels", "channels", "3"),
    ETCH_FITS("vision_config.hidden_act", CLIP_GELU, "quick_gelu", "computes gelu in its tower"),
    ETCH_WARN("vision_config.attention_dropout", "0", "0", HAS_DROPOUT),
    ETCH_WARN("vision_config.dropout", "0", "0", HAS_DROPOUT),
    ETCH_ANY("vision_config.projection_dim"),
    ETCH_ANY("vision_config.tie_word_embeddings"),
    ETCH_ANY("vision_config.vocab_size"),
    ETCH_FITS("vision_feature_layer", "-2", "-2", "reads what the last layer but one of its tower gives"),
    ETCH_FITS("vision_feature_select_strategy", "default", "default", "leaves out the token of the class"),
    ETCH_FITS("projector_hidden_act", GELU, "gelu", "computes gelu in its projector"),
    ETCH_FITS("multimodal_projector_bias", "true", "true", "has biases in its projector"),
    ETCH_FITS("tie_word_embeddings", "false", "false", "has a head of its own"),
    ETCH_ANY("image_token_index image_token_id"),
    ETCH_ANY("image_seq_length"),
    ETCH_ANY("ignore_index"),
    ETCH_ANY("vocab_size"),
    ETCH_NO_FIELD,
};

/* ---- the families -------------------------------------------------------------------------------------- */

static const etch_import_family families[] = {
    {
        .types = "bert",
        .architectures = "BertForPreTraining BertForMaskedLM",
        .file = "bert.etch",
        .model = "bert",
        .fields = {bert},
        .bindings = {ETCH_BIND("head_dim", "hidden_size / num_attention_heads")},
    },
    {
        .types = "albert",
        .architectures = "AlbertForPreTraining AlbertForMaskedLM",
        .file = "albert.etch",
        .model = "albert",
        .fields = {albert},
        .bindings = {ETCH_BIND("head_dim", "hidden_size / num_attention_heads")},
    },
    {
        .types = "vit",
        .architectures = "ViTForImageClassification",
        .file = "vit.etch",
        .model = "vit",
        .fields = {vit},
        .bindings = {ETCH_BIND("head_dim", "hidden_size / num_attention_heads")},
        .rules = {"patch_size | image_size"},
    },
    {
        .types = "whisper",
        .architectures = "WhisperForConditionalGeneration",
        .file = "whisper.etch",
        .model = "whisper",
        .fields = {whisper},
        .bindings = {ETCH_BIND("head_dim", "d_model / encoder_attention_heads"),
                     ETCH_BIND("tgt", "max_target_positions")},
        .rules = {"decoder_attention_heads == encoder_attention_heads", "decoder_ffn_dim == encoder_ffn_dim"},
    },
    {
        .types = "clip",
        .parts = "text_config vision_config text_config_dict vision_config_dict",
        .architectures = "CLIPModel",
        .file = "clip.etch",
        .model = "clip",
        .fields = {clip},
        .bindings = {ETCH_BIND("head_dim",
                               "vision_config_dict.hidden_size / vision_config_dict.num_attention_heads"),
                     ETCH_BIND("text_head_dim",
                               "text_config_dict.hidden_size / text_config_dict.num_attention_heads")},
        .rules = {"vision_config_dict.patch_size | vision_config_dict.image_size"},
    },
    {
        .types = "llava",
        .parts = "text_config vision_config",
        .architectures = "LlavaForConditionalGeneration",
        .file = "llava.etch",
        .model = "llava",
        .lacks = "the last layer of the tower, and the norm behind it, which nothing reads",
        .fields = {llava},
        .bindings = {ETCH_BIND("image_layers", "vision_config.num_hidden_layers - 1"),
                     ETCH_BIND("image_head_dim",
                               "vision_config.hidden_size / vision_config.num_attention_heads")},
        .rules = {"text_config.num_key_value_heads | text_config.num_attention_heads",
                  "2 <= vision_config.num_hidden_layers",
                  "vision_config.patch_size | vision_config.image_size"},
    },
};

ETCH_IMPORT_ROWS(towers, families);
