"""What a checkpoint holds, from its config alone: the tensors of each family, as the published model code
names and shapes them, with the values that this code takes for what a config leaves out. Nothing of etch is
read. A tensor that two places share stands once; the buffers of rotary positions, and modules that predict
further tokens, stand apart."""

import math
import re


class Config(dict):
    """Fields with the class's values for what is left out."""

    def __init__(self, given, **defaults):
        super().__init__({**defaults, **given})

    def __getattr__(self, name):
        return self[name]


def heads_of(c):
    """Query heads, key heads, and their size."""
    kv = c.get("num_key_value_heads") or c.num_attention_heads
    return c.num_attention_heads, kv, c.get("head_dim") or c.hidden_size // c.num_attention_heads


def attention(c, bias=(), norms=None):
    """Projections q, k, v and o; `norms`: shapes of norms of queries and keys."""
    a, kv, d = heads_of(c)
    h = c.hidden_size
    rows = {"q_proj": a * d, "k_proj": kv * d, "v_proj": kv * d, "o_proj": h}
    yield from ((f"{name}.weight", (rows[name], a * d if name == "o_proj" else h)) for name in rows)
    yield from ((f"{name}.bias", (rows[name],)) for name in bias)
    for name, shape in (norms or {}).items():
        yield f"{name}.weight", shape


def gated(h, f, prefix="mlp"):
    yield f"{prefix}.gate_proj.weight", (f, h)
    yield f"{prefix}.up_proj.weight", (f, h)
    yield f"{prefix}.down_proj.weight", (h, f)


def decoder(c, layer, tied):
    """`layer(i)` yields names and shapes; embeddings, final norm and head around them."""
    h = c.hidden_size
    yield "embed_tokens.weight", (c.vocab_size, h)
    for i in range(c.num_hidden_layers):
        yield from ((f"layers.{i}.{name}", shape) for name, shape in layer(i))
    yield "norm.weight", (h,)
    if not tied:
        yield "lm_head.weight", (c.vocab_size, h)


def norms(h, count):
    return ((f"norm{i}.weight", (h,)) for i in range(count))


def llama(given, **other):
    defaults = dict(vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32,
                    num_attention_heads=32, tie_word_embeddings=False)
    c = Config(given, **{**defaults, **other})

    def layer(_):
        yield from attention(c)
        yield from gated(c.hidden_size, c.intermediate_size)
        yield from norms(c.hidden_size, 2)
    return decoder(c, layer, c.tie_word_embeddings)


def mistral(given):
    return llama(given, intermediate_size=14336, num_key_value_heads=8)


def qwen2(given):
    c = Config(given, vocab_size=151936, hidden_size=4096, intermediate_size=22016, num_hidden_layers=32,
               num_attention_heads=32, num_key_value_heads=32, tie_word_embeddings=False)

    def layer(_):
        yield from attention(c, bias=("q_proj", "k_proj", "v_proj"))
        yield from gated(c.hidden_size, c.intermediate_size)
        yield from norms(c.hidden_size, 2)
    return decoder(c, layer, c.tie_word_embeddings)


def qwen3(given):
    c = Config(given, vocab_size=151936, hidden_size=4096, intermediate_size=22016, num_hidden_layers=32,
               num_attention_heads=32, num_key_value_heads=32, head_dim=128, tie_word_embeddings=False)
    d = heads_of(c)[2]

    def layer(_):
        yield from attention(c, norms={"q_norm": (d,), "k_norm": (d,)})
        yield from gated(c.hidden_size, c.intermediate_size)
        yield from norms(c.hidden_size, 2)
    return decoder(c, layer, c.tie_word_embeddings)


def qwen3_moe(given):
    c = Config(given, vocab_size=151936, hidden_size=2048, num_hidden_layers=24, num_attention_heads=32,
               num_key_value_heads=4, moe_intermediate_size=768, num_experts=128, tie_word_embeddings=False)
    d = heads_of(c)[2]

    def layer(_):
        yield from attention(c, norms={"q_norm": (d,), "k_norm": (d,)})
        yield "gate.weight", (c.num_experts, c.hidden_size)
        for e in range(c.num_experts):
            yield from gated(c.hidden_size, c.moe_intermediate_size, f"experts.{e}")
        yield from norms(c.hidden_size, 2)
    return decoder(c, layer, c.tie_word_embeddings)


def minimax(given):
    c = Config(given, vocab_size=32000, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
               num_attention_heads=32, num_key_value_heads=8, num_local_experts=8, tie_word_embeddings=False)
    heads, _, size = heads_of(c)
    h, all_heads = c.hidden_size, heads * size

    def layer(i):
        if c.attn_type_list[i]:
            yield from attention(c)
        else:
            yield "self_attn.qkv_proj.weight", (3 * all_heads, h)
            yield "self_attn.output_gate.weight", (all_heads, h)
            yield "self_attn.norm.weight", (all_heads,)
            yield "self_attn.out_proj.weight", (h, all_heads)
        yield "gate.weight", (c.num_local_experts, h)
        for e in range(c.num_local_experts):
            yield from gated(h, c.intermediate_size, f"experts.{e}")
        yield from norms(h, 2)
    return decoder(c, layer, c.tie_word_embeddings)


def mixtral(given):
    c = Config(given, vocab_size=32000, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
               num_attention_heads=32, num_key_value_heads=8, num_local_experts=8, tie_word_embeddings=False)

    def layer(_):
        yield from attention(c)
        yield "gate.weight", (c.num_local_experts, c.hidden_size)
        for e in range(c.num_local_experts):
            yield from gated(c.hidden_size, c.intermediate_size, f"experts.{e}")
        yield from norms(c.hidden_size, 2)
    return decoder(c, layer, c.tie_word_embeddings)


def gemma(given, norm_count=2, head_norms=False, **other):
    defaults = dict(vocab_size=256000, hidden_size=3072, intermediate_size=24576, num_hidden_layers=28,
                    num_attention_heads=16, num_key_value_heads=16, head_dim=256, tie_word_embeddings=True)
    c = Config(given, **{**defaults, **other})

    each_head = {name: (c.head_dim,) for name in ("q_norm", "k_norm")} if head_norms else None

    def layer(_):
        yield from attention(c, norms=each_head)
        yield from gated(c.hidden_size, c.intermediate_size)
        yield from norms(c.hidden_size, norm_count)
    return decoder(c, layer, c.tie_word_embeddings)


SMALL_GEMMA = dict(hidden_size=2304, intermediate_size=9216, num_hidden_layers=26, num_attention_heads=8,
                   num_key_value_heads=4)


def gemma2(given):
    return gemma(given, 4, **SMALL_GEMMA)


def gemma3(given):
    return gemma(given.get("text_config", given), 4, True, **SMALL_GEMMA, vocab_size=262208)


def olmo2(given):
    c = Config(given, vocab_size=50304, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32,
               num_attention_heads=32, tie_word_embeddings=False)
    a, kv, d = heads_of(c)

    def layer(_):
        yield from attention(c, norms={"q_norm": (a * d,), "k_norm": (kv * d,)})
        yield from gated(c.hidden_size, c.intermediate_size)
        yield from norms(c.hidden_size, 2)
    return decoder(c, layer, c.tie_word_embeddings)


def gpt2(given):
    c = Config(given, vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12, n_inner=None)
    h, f = c.n_embd, c.n_inner or 4 * c.n_embd
    yield "wte.weight", (c.vocab_size, h)
    yield "wpe.weight", (c.n_positions, h)
    for i in range(c.n_layer):
        for name, shape in (("attn.c_attn", (h, 3 * h)), ("attn.c_proj", (h, h)), ("mlp.c_fc", (h, f)),
                            ("mlp.c_proj", (f, h))):
            yield f"h.{i}.{name}.weight", shape
            yield f"h.{i}.{name}.bias", shape[1:]
        for name in ("ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"):
            yield f"h.{i}.{name}", (h,)
    yield "ln_f.weight", (h,)
    yield "ln_f.bias", (h,)


def gpt_oss(given):
    c = Config(given, vocab_size=201088, hidden_size=2880, intermediate_size=2880, num_hidden_layers=36,
               num_attention_heads=64, num_key_value_heads=8, head_dim=64, num_local_experts=128,
               tie_word_embeddings=False)
    h, f, e = c.hidden_size, c.intermediate_size, c.num_local_experts

    def layer(_):
        yield from attention(c, bias=("q_proj", "k_proj", "v_proj", "o_proj"))
        yield "sinks", (c.num_attention_heads,)
        yield "router.weight", (e, h)
        yield "router.bias", (e,)
        yield "experts.gate_up_proj", (e, h, 2 * f)
        yield "experts.gate_up_proj_bias", (e, 2 * f)
        yield "experts.down_proj", (e, f, h)
        yield "experts.down_proj_bias", (e, h)
        yield from norms(h, 2)
    return decoder(c, layer, c.tie_word_embeddings)


def latent_attention(c):
    h, a = c.hidden_size, c.num_attention_heads
    d = c.qk_nope_head_dim + c.qk_rope_head_dim
    if c.q_lora_rank is None:
        yield "q_proj.weight", (a * d, h)
    else:
        yield "q_a_proj.weight", (c.q_lora_rank, h)
        yield "q_a_layernorm.weight", (c.q_lora_rank,)
        yield "q_b_proj.weight", (a * d, c.q_lora_rank)
    yield "kv_a_proj_with_mqa.weight", (c.kv_lora_rank + c.qk_rope_head_dim, h)
    yield "kv_a_layernorm.weight", (c.kv_lora_rank,)
    yield "kv_b_proj.weight", (a * (c.qk_nope_head_dim + c.v_head_dim), c.kv_lora_rank)
    yield "o_proj.weight", (h, a * c.v_head_dim)


def deepseek_v3(given):
    c = Config(given, vocab_size=129280, hidden_size=7168, intermediate_size=18432,
               moe_intermediate_size=2048, num_hidden_layers=61, num_attention_heads=128,
               n_shared_experts=1, n_routed_experts=256,
               kv_lora_rank=512, q_lora_rank=1536, qk_rope_head_dim=64, v_head_dim=128, qk_nope_head_dim=128,
               first_k_dense_replace=3, tie_word_embeddings=False)

    def layer(i):
        yield from latent_attention(c)
        yield from norms(c.hidden_size, 2)
        if i < c.first_k_dense_replace:
            yield from gated(c.hidden_size, c.intermediate_size)
            return
        yield "gate.weight", (c.n_routed_experts, c.hidden_size)
        yield "gate.e_score_correction_bias", (c.n_routed_experts,)
        for e in range(c.n_routed_experts):
            yield from gated(c.hidden_size, c.moe_intermediate_size, f"experts.{e}")
        yield from gated(c.hidden_size, c.n_shared_experts * c.moe_intermediate_size, "shared_experts")
    return decoder(c, layer, c.tie_word_embeddings)


def mixer(name, h, inner, head_dim, groups, state, conv):
    heads, wide = inner // head_dim, inner + 2 * groups * state
    for part, shape in (("in_proj.weight", (inner + wide + heads, h)), ("conv1d.weight", (wide, 1, conv)),
                        ("conv1d.bias", (wide,)), ("A_log", (heads,)), ("D", (heads,)), ("dt_bias", (heads,)),
                        ("norm.weight", (inner,)), ("out_proj.weight", (h, inner))):
        yield f"{name}.{part}", shape


def mixers(layers, h, *sizes):
    for i in range(layers):
        yield from mixer(f"layers.{i}", h, *sizes)
        yield f"layers.{i}.ln.weight", (h,)
    yield "norm_f.weight", (h,)


def mamba2(given):
    c = Config(given, num_heads=128, head_dim=64, vocab_size=32768, hidden_size=4096, state_size=128,
               num_hidden_layers=64, expand=2, conv_kernel=4, n_groups=8, tie_word_embeddings=False)
    for name in ("embeddings.weight", "lm_head.weight")[:1 if c.tie_word_embeddings else 2]:
        yield name, (c.vocab_size, c.hidden_size)
    yield from mixers(c.num_hidden_layers, c.hidden_size, c.expand * c.hidden_size, c.head_dim, c.n_groups,
                      c.state_size, c.conv_kernel)


def nemotron_h(given):
    c = Config(given, vocab_size=131072, hidden_size=4096, intermediate_size=21504, num_attention_heads=32,
               num_key_value_heads=8, attention_head_dim=128, mamba_num_heads=128, mamba_head_dim=64,
               n_groups=8, ssm_state_size=128, conv_kernel=4,
               hybrid_override_pattern="M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-")
    h, heads = c.hidden_size, c.attention_head_dim
    for name in ("embeddings.weight", "lm_head.weight"):
        yield name, (c.vocab_size, h)
    for i, kind in enumerate(c.hybrid_override_pattern):
        name = f"layers.{i}.mixer"
        yield f"layers.{i}.norm.weight", (h,)
        if kind == "M":
            yield from mixer(name, h, c.mamba_num_heads * c.mamba_head_dim, c.mamba_head_dim, c.n_groups,
                             c.ssm_state_size, c.conv_kernel)
        elif kind == "*":
            for part, count in (("q", c.num_attention_heads), ("k", c.num_key_value_heads),
                                ("v", c.num_key_value_heads)):
                yield f"{name}.{part}_proj.weight", (count * heads, h)
            yield f"{name}.o_proj.weight", (h, c.num_attention_heads * heads)
        else:
            yield f"{name}.up_proj.weight", (c.intermediate_size, h)
            yield f"{name}.down_proj.weight", (h, c.intermediate_size)
    yield "norm_f.weight", (h,)


def mamba2_ssm(given):
    c = Config(given, d_model=2560, n_layer=64, vocab_size=50277, pad_vocab_size_multiple=8,
               tie_embeddings=True)
    s = Config(given["ssm_cfg"], d_state=128, d_conv=4, expand=2, headdim=64, ngroups=1)
    rows = -(-c.vocab_size // c.pad_vocab_size_multiple) * c.pad_vocab_size_multiple
    for name in ("embedding.weight", "lm_head.weight")[:1 if c.tie_embeddings else 2]:
        yield name, (rows, c.d_model)
    yield from mixers(c.n_layer, c.d_model, s.expand * c.d_model, s.headdim, s.ngroups, s.d_state, s.d_conv)


def t5(given):
    c = Config(given, vocab_size=32128, d_model=512, d_kv=64, d_ff=2048, num_layers=6,
               num_decoder_layers=None, num_heads=8, relative_attention_num_buckets=32)
    h, wide = c.d_model, c.num_heads * c.d_kv
    yield "shared.weight", (c.vocab_size, h)
    layers = c.num_decoder_layers or c.num_layers
    for stack, count, attentions in (("encoder", c.num_layers, 1), ("decoder", layers, 2)):
        yield f"{stack}.relative_attention_bias.weight", (c.relative_attention_num_buckets, c.num_heads)
        for i in range(count):
            for k in range(attentions):
                yield from ((f"{stack}.{i}.{k}.{name}.weight", (wide, h)) for name in "qkv")
                yield f"{stack}.{i}.{k}.o.weight", (h, wide)
            yield f"{stack}.{i}.wi.weight", (c.d_ff, h)
            yield f"{stack}.{i}.wo.weight", (h, c.d_ff)
            yield from ((f"{stack}.{i}.{name}", shape) for name, shape in norms(h, attentions + 1))
        yield f"{stack}.final_layer_norm.weight", (h,)


# ---- older decoders ----------------------------------------------------------------------------------------


def linear(name, rows, columns, bias=True):
    yield f"{name}.weight", (rows, columns)
    if bias:
        yield f"{name}.bias", (rows,)


def layer_norm(name, h):
    yield f"{name}.weight", (h,)
    yield f"{name}.bias", (h,)


def falcon(given):
    c = Config(given, vocab_size=65024, hidden_size=4544, num_hidden_layers=32, num_attention_heads=71,
               num_kv_heads=None, multi_query=True, new_decoder_architecture=False,
               num_ln_in_parallel_attn=None, ffn_hidden_size=None)
    h, a = c.hidden_size, c.num_attention_heads
    d, f = h // a, c.ffn_hidden_size or 4 * h
    kv = c.num_kv_heads or a
    if c.multi_query and not c.new_decoder_architecture:
        kv = 1
    two = c.new_decoder_architecture and (c.num_ln_in_parallel_attn or 2) == 2
    yield "word_embeddings.weight", (c.vocab_size, h)
    for i in range(c.num_hidden_layers):
        yield from linear(f"h.{i}.query_key_value", (a + 2 * kv) * d, h, False)
        yield from linear(f"h.{i}.dense", h, a * d, False)
        yield from linear(f"h.{i}.dense_h_to_4h", f, h, False)
        yield from linear(f"h.{i}.dense_4h_to_h", h, f, False)
        for name in ("ln_attn", "ln_mlp") if two else ("input_layernorm",):
            yield from layer_norm(f"h.{i}.{name}", h)
    yield from layer_norm("ln_f", h)


def phi3(given):
    c = Config(given, vocab_size=32064, hidden_size=3072, intermediate_size=8192, num_hidden_layers=32,
               num_attention_heads=32, tie_word_embeddings=False)

    def layer(_):
        yield from attention(c)
        yield from gated(c.hidden_size, c.intermediate_size)
        yield from norms(c.hidden_size, 2)
    return decoder(c, layer, c.tie_word_embeddings)


def gpt_like(layers, h, f):
    """Blocks with one product for queries, keys and values, and biases everywhere."""
    for i in range(layers):
        yield from linear(f"h.{i}.query_key_value", 3 * h, h)
        yield from linear(f"h.{i}.dense", h, h)
        yield from linear(f"h.{i}.dense_h_to_4h", f, h)
        yield from linear(f"h.{i}.dense_4h_to_h", h, f)
        yield from layer_norm(f"h.{i}.input_layernorm", h)
        yield from layer_norm(f"h.{i}.post_attention_layernorm", h)


def bloom(given):
    c = Config(given, vocab_size=250880, hidden_size=64, n_layer=2)
    h = c.get("n_embed", c.hidden_size)
    yield "word_embeddings.weight", (c.vocab_size, h)
    yield from layer_norm("word_embeddings_layernorm", h)
    yield from gpt_like(c.n_layer, h, 4 * h)
    yield from layer_norm("ln_f", h)


def gpt_neox(given):
    c = Config(given, vocab_size=50432, hidden_size=6144, num_hidden_layers=44, intermediate_size=24576)
    yield "embed_in.weight", (c.vocab_size, c.hidden_size)
    yield from gpt_like(c.num_hidden_layers, c.hidden_size, c.intermediate_size)
    yield from layer_norm("final_layer_norm", c.hidden_size)
    yield "embed_out.weight", (c.vocab_size, c.hidden_size)


# ---- experts -----------------------------------------------------------------------------------------------


def expert_layers(c, mixer, corrected):
    """Dense layers first, then a shared expert and routed ones; `corrected`: the choice has a bias."""
    def layer(i):
        yield from mixer()
        yield from norms(c.hidden_size, 2)
        if i < c.first_k_dense_replace:
            yield from gated(c.hidden_size, c.intermediate_size)
            return
        yield "gate.weight", (c.n_routed_experts, c.hidden_size)
        if corrected:
            yield "gate.e_score_correction_bias", (c.n_routed_experts,)
        for e in range(c.n_routed_experts):
            yield from gated(c.hidden_size, c.moe_intermediate_size, f"experts.{e}")
        yield from gated(c.hidden_size, c.n_shared_experts * c.moe_intermediate_size, "shared_experts")
    return decoder(c, layer, False)


def deepseek_v2(given):
    c = Config(given, vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32,
               num_attention_heads=32, first_k_dense_replace=0, kv_lora_rank=512, q_lora_rank=1536,
               n_routed_experts=64, n_shared_experts=2, qk_nope_head_dim=128, qk_rope_head_dim=64,
               v_head_dim=128, moe_intermediate_size=1407)
    return expert_layers(c, lambda: latent_attention(c), False)


def glm4_moe(given):
    c = Config(given, vocab_size=151552, hidden_size=4096, intermediate_size=10944, num_hidden_layers=46,
               num_attention_heads=96, num_key_value_heads=8, moe_intermediate_size=1408,
               n_shared_experts=1, n_routed_experts=128, first_k_dense_replace=1, use_qk_norm=False)
    d = heads_of(c)[2]
    each_head = {"q_norm": (d,), "k_norm": (d,)} if c.use_qk_norm else None
    return expert_layers(c, lambda: attention(c, ("q_proj", "k_proj", "v_proj"), each_head), True)


def llama4(given):
    c = Config(given.get("text_config", given), vocab_size=202048, hidden_size=5120, intermediate_size=8192,
               intermediate_size_mlp=16384, num_hidden_layers=48, num_attention_heads=40,
               num_key_value_heads=8, head_dim=128, num_local_experts=16, interleave_moe_layer_step=1)
    h, f, e = c.hidden_size, c.intermediate_size, c.num_local_experts

    def layer(i):
        yield from attention(c)
        yield from norms(h, 2)
        if (i + 1) % c.interleave_moe_layer_step:
            yield from gated(h, c.intermediate_size_mlp)
            return
        yield "router.weight", (e, h)
        yield "experts.gate_up_proj", (e, h, 2 * f)
        yield "experts.down_proj", (e, f, h)
        yield from gated(h, f, "shared_expert")
    return decoder(c, layer, False)


# ---- encoders ----------------------------------------------------------------------------------------------


def encoder_layers(prefix, layers, h, f, crossed=False, key_bias=True):
    for i in range(layers):
        for attended in ("self_attn", "encoder_attn") if crossed else ("self_attn",):
            for name in ("q", "k", "v", "out"):
                yield from linear(f"{prefix}.{i}.{attended}.{name}", h, h, key_bias or name != "k")
            yield from layer_norm(f"{prefix}.{i}.{attended}.norm", h)
        yield from linear(f"{prefix}.{i}.fc1", f, h)
        yield from linear(f"{prefix}.{i}.fc2", h, f)
        yield from layer_norm(f"{prefix}.{i}.norm", h)


def bert(given):
    c = Config(given, vocab_size=30522, hidden_size=768, num_hidden_layers=12, intermediate_size=3072,
               max_position_embeddings=512, type_vocab_size=2)
    h = c.hidden_size
    yield "word_embeddings.weight", (c.vocab_size, h)
    yield "position_embeddings.weight", (c.max_position_embeddings, h)
    yield "token_type_embeddings.weight", (c.type_vocab_size, h)
    yield from layer_norm("embeddings.LayerNorm", h)
    yield from encoder_layers("layer", c.num_hidden_layers, h, c.intermediate_size)
    yield from linear("pooler.dense", h, h)
    yield "cls.predictions.bias", (c.vocab_size,)
    yield from linear("cls.predictions.transform.dense", h, h)
    yield from layer_norm("cls.predictions.transform.LayerNorm", h)
    yield from linear("cls.seq_relationship", 2, h)


def albert(given):
    c = Config(given, vocab_size=30000, embedding_size=128, hidden_size=4096, num_hidden_layers=12,
               intermediate_size=16384, max_position_embeddings=512, type_vocab_size=2)
    h, e = c.hidden_size, c.embedding_size
    for name, rows in (("word", c.vocab_size), ("position", c.max_position_embeddings),
                       ("token_type", c.type_vocab_size)):
        yield f"{name}_embeddings.weight", (rows, e)
    yield from layer_norm("embeddings.LayerNorm", e)
    yield from linear("encoder.embedding_hidden_mapping_in", h, e)
    yield from encoder_layers("albert_layer_groups.0.albert_layers", 1, h, c.intermediate_size)
    yield from linear("pooler", h, h)
    yield "predictions.bias", (c.vocab_size,)
    yield from linear("predictions.dense", e, h)
    yield from layer_norm("predictions.LayerNorm", e)
    yield from linear("sop_classifier.classifier", 2, h)


def images(c, prefix, layers):
    """A token for the whole, squares of an image, and layers."""
    h, patch = c.hidden_size, c.patch_size
    yield f"{prefix}.class_embedding", (h,)
    yield f"{prefix}.patch_embedding.weight", (h, c.num_channels, patch, patch)
    yield f"{prefix}.position_embedding.weight", ((c.image_size // patch) ** 2 + 1, h)
    yield from encoder_layers(prefix, layers, h, c.intermediate_size)


def vit(given):
    c = Config(given, hidden_size=768, num_hidden_layers=12, intermediate_size=3072, image_size=224,
               patch_size=16, num_channels=3)
    labels = len(c["id2label"]) if "id2label" in c else c.get("num_labels", 2)
    yield from images(c, "vit", c.num_hidden_layers)
    yield "vit.patch_embedding.bias", (c.hidden_size,)
    yield from layer_norm("layernorm", c.hidden_size)
    yield from linear("classifier", labels, c.hidden_size)


def whisper(given):
    c = Config(given, vocab_size=51865, num_mel_bins=80, max_target_positions=448)
    h = c.d_model
    yield "conv1.weight", (h, c.num_mel_bins, 3)
    yield "conv1.bias", (h,)
    yield "conv2.weight", (h, h, 3)
    yield "conv2.bias", (h,)
    yield from encoder_layers("encoder", c.encoder_layers, h, c.encoder_ffn_dim, key_bias=False)
    yield from layer_norm("encoder.layer_norm", h)
    yield "embed_tokens.weight", (c.vocab_size, h)
    yield "embed_positions.weight", (c.max_target_positions, h)
    yield from encoder_layers("decoder", c.decoder_layers, h, c.decoder_ffn_dim, True, key_bias=False)
    yield from layer_norm("decoder.layer_norm", h)


CLIP_IMAGES = dict(hidden_size=768, num_hidden_layers=12, intermediate_size=3072, image_size=224,
                   patch_size=32, num_channels=3)


def clip(given):
    v = Config({**given.get("vision_config", {}), **(given.get("vision_config_dict") or {})}, **CLIP_IMAGES)
    t = Config({**given.get("text_config", {}), **(given.get("text_config_dict") or {})}, vocab_size=49408,
               hidden_size=512, intermediate_size=2048, num_hidden_layers=12, max_position_embeddings=77)
    width = given.get("projection_dim", 512)
    yield from images(v, "vision", v.num_hidden_layers)
    yield from layer_norm("vision.pre_layrnorm", v.hidden_size)
    yield from layer_norm("vision.post_layernorm", v.hidden_size)
    yield from linear("visual_projection", width, v.hidden_size, False)
    yield "text.token_embedding.weight", (t.vocab_size, t.hidden_size)
    yield "text.position_embedding.weight", (t.max_position_embeddings, t.hidden_size)
    yield from encoder_layers("text", t.num_hidden_layers, t.hidden_size, t.intermediate_size)
    yield from layer_norm("text.final_layer_norm", t.hidden_size)
    yield from linear("text_projection", width, t.hidden_size, False)
    yield "logit_scale", ()


def llava(given):
    """Without the layer of the tower behind the one that is read, and the norm behind that."""
    v = Config(given["vision_config"], **CLIP_IMAGES)
    t = given.get("text_config", {})
    h = t.get("hidden_size", 4096)
    yield from images(v, "vision", v.num_hidden_layers - 1)
    yield from layer_norm("vision.pre_layrnorm", v.hidden_size)
    yield from linear("projector.linear_1", h, v.hidden_size)
    yield from linear("projector.linear_2", h, h)
    yield from llama(t)


def dit(given):
    """As Diffusers stores it; positions are computed, and norms have no weights."""
    c = Config(given, num_attention_heads=16, attention_head_dim=72, in_channels=4, out_channels=None,
               num_layers=28, patch_size=2, num_embeds_ada_norm=1000)
    h, patch = c.num_attention_heads * c.attention_head_dim, c.patch_size
    yield "pos_embed.proj.weight", (h, c.in_channels, patch, patch)
    yield "pos_embed.proj.bias", (h,)
    for i in range(c.num_layers):
        block = f"transformer_blocks.{i}"
        yield from linear(f"{block}.norm1.emb.timestep_embedder.linear_1", h, 256)
        yield from linear(f"{block}.norm1.emb.timestep_embedder.linear_2", h, h)
        yield f"{block}.norm1.emb.class_embedder.embedding_table.weight", (c.num_embeds_ada_norm + 1, h)
        yield from linear(f"{block}.norm1.linear", 6 * h, h)
        for name in ("to_q", "to_k", "to_v", "to_out.0"):
            yield from linear(f"{block}.attn1.{name}", h, h)
        yield from linear(f"{block}.ff.net.0.proj", 4 * h, h)
        yield from linear(f"{block}.ff.net.2", h, 4 * h)
    yield from linear("proj_out_1", 2 * h, h)
    yield from linear("proj_out_2", patch * patch * (c.out_channels or c.in_channels), h)


FAMILIES = {"llama": llama, "mistral": mistral, "mixtral": mixtral, "qwen2": qwen2, "qwen3": qwen3,
            "qwen3_moe": qwen3_moe, "minimax_text_01": minimax,
            "gemma": gemma, "gemma2": gemma2, "gemma3_text": gemma3, "gemma3": gemma3,
            "olmo2": olmo2, "gpt2": gpt2, "gpt_oss": gpt_oss, "deepseek_v3": deepseek_v3, "mamba2": mamba2,
            "t5": t5, "falcon": falcon, "phi3": phi3, "bloom": bloom, "gpt_neox": gpt_neox,
            "deepseek_v2": deepseek_v2, "kimi_k2": deepseek_v3, "glm4_moe": glm4_moe, "llama4_text": llama4,
            "llama4": llama4, "albert": albert, "bert": bert,
            "vit": vit, "whisper": whisper, "nemotron_h": nemotron_h,
            "clip": clip, "llava": llava}


def elements(config):
    """Of all tensors of a config's checkpoint."""
    family = FAMILIES[config["model_type"]] if "model_type" in config else (
        dit if "_class_name" in config else mamba2_ssm)
    tensors = dict(family(config))
    return sum(math.prod(shape) for shape in tensors.values())


def active(config):
    """Of the tensors that one token meets: topk of the experts of a layer."""
    inner = config.get("text_config", config)
    names = ("num_local_experts", "num_experts", "n_routed_experts")
    count = next((inner[name] for name in names if name in inner), 1)
    met = routed = 0
    for name, shape in dict(FAMILIES[config["model_type"]](config)).items():
        if re.search(r"(^|\.)experts\.", name):
            routed += math.prod(shape)
        else:
            met += math.prod(shape)
    return met + routed * inner.get("num_experts_per_tok", count) // count
