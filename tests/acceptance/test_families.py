"""Parameters and FLOP of every config of some families, counted once more by formulas of this file from
the numbers of their architectures: layer by layer, as checkpoints hold them, without a look at the specs."""

import json

from etchtest import MODELS, Case, main, options, succeed, value


def linear(inputs, outputs, bias=True):
    return inputs * outputs + (outputs if bias else 0)


def layer_norm(width):
    return 2 * width


# ---- blocks ------------------------------------------------------------------------------------------------


def gpt_block(width, inner, norms=2):
    """Attention of heads that fill the width, and an MLP, with biases."""
    return linear(width, 3 * width) + linear(width, width) + linear(width, inner) + linear(inner, width) + (
        norms * layer_norm(width))


def grouped_attention(width, heads, groups, size, bias=False):
    return linear(width, (heads + 2 * groups) * size, bias) + linear(heads * size, width, False)


def gated(width, inner):
    return 3 * width * inner


def latent_attention(width, heads, q_rank, kv_rank, nope, rope, v_size):
    query = heads * (nope + rope)
    queries = width * q_rank + q_rank + q_rank * query if q_rank else width * query
    keys = width * (kv_rank + rope) + kv_rank + kv_rank * heads * (nope + v_size)
    return queries + keys + heads * v_size * width


def routed(width, experts, inner, shared, biased):
    return experts * gated(width, inner) + gated(width, shared * inner) + width * experts + (
        experts if biased else 0)


# ---- families ----------------------------------------------------------------------------------------------


def gpt_neox(layers, width, vocab):
    return layers * gpt_block(width, 4 * width) + 2 * vocab * width + layer_norm(width)


def bloom(layers, width, vocab=250880):
    return layers * gpt_block(width, 4 * width) + vocab * width + 2 * layer_norm(width)


def falcon(layers, width, heads, groups, norms, vocab=65024):
    block = grouped_attention(width, heads, groups, 64) + 8 * width * width + norms * layer_norm(width)
    return layers * block + vocab * width + layer_norm(width)


def phi3(layers, width, heads, groups, inner, vocab, tied=False):
    block = grouped_attention(width, heads, groups, 128 if heads < 32 or width > 3072 else 96) + gated(
        width, inner) + 2 * width
    return layers * block + (1 if tied else 2) * vocab * width + width


def deepseek(layers, dense, width, heads, q_rank, inner, experts, expert_inner, shared, vocab, biased):
    attention = latent_attention(width, heads, q_rank, 512, 128, 64, 128) + 2 * width
    sparse = routed(width, experts, expert_inner, shared, biased)
    return layers * attention + dense * gated(width, inner) + (layers - dense) * sparse + (
        2 * vocab * width + width)


def glm(layers, dense, width, inner, experts, expert_inner, head_norms, vocab=151552):
    attention = grouped_attention(width, 96, 8, 128, bias=True) + (2 * 128 if head_norms else 0) + 2 * width
    sparse = routed(width, experts, expert_inner, 1, True)
    return layers * attention + dense * gated(width, inner) + (layers - dense) * sparse + (
        2 * vocab * width + width)


def llama4(experts, every, layers=48, width=5120, vocab=202048):
    attention = grouped_attention(width, 40, 8, 128) + 2 * width
    sparse = layers // every
    return layers * attention + sparse * routed(width, experts, 8192, 1, False) + (
        layers - sparse) * gated(width, 16384) + 2 * vocab * width + width


def bert(layers, width, vocab=30522):
    words = (vocab + 512 + 2) * width + layer_norm(width)
    ends = linear(width, width) + linear(width, 2) + linear(width, width) + layer_norm(width) + vocab
    return words + layers * gpt_block(width, 4 * width) + ends


def vit(layers, width, patch, image=224, classes=1000):
    places = (image // patch) ** 2 + 1
    return linear(3 * patch ** 2, width) + width + places * width + layers * gpt_block(width, 4 * width) + (
        layer_norm(width) + linear(width, classes))


def whisper(layers, width, vocab, mels):
    """Keys have no bias, neither in the second attention of a decoder's layer."""
    attention = linear(width, 3 * width) - width + linear(width, width) + layer_norm(width)
    mlp = linear(width, 4 * width) + linear(4 * width, width) + layer_norm(width)
    sound = linear(3 * mels, width) + linear(3 * width, width)
    return sound + layers * (attention + mlp) + layers * (2 * attention + mlp) + 2 * layer_norm(width) + (
        (vocab + 448) * width)


def resnet(blocks):
    """A convolution has no bias, and a norm behind it with two numbers for each channel."""
    total, inputs = 7 * 7 * 3 * 64 + 2 * 64, 64
    for stage, count in enumerate(blocks):
        inner, outputs = 64 << stage, 256 << stage
        for block in range(count):
            total += inputs * inner + 9 * inner * inner + inner * outputs + 2 * (2 * inner + outputs)
            total += inputs * outputs + 2 * outputs if block == 0 else 0
            inputs = outputs
    return total + linear(inputs, 1000)


def embeddings(width):
    """Of time and of classes."""
    return linear(256, width) + linear(width, width) + 1001 * width


def dit(layers, width):
    """Norms have no weights of their own; positions are a table that is not trained."""
    block = gpt_block(width, 4 * width, norms=0) + linear(width, 6 * width)
    ends = linear(2 * 2 * 4, width) + embeddings(width)
    return layers * block + ends + linear(width, 2 * width) + linear(width, 2 * 2 * 8)


def clip(layers, width, patch, text_width, shared, image=224, text_layers=12, vocab=49408, tokens=77):
    """Two towers, the number that sharpens their products, and no bias where squares are projected."""
    places = (image // patch) ** 2 + 1
    images = 3 * patch ** 2 * width + (1 + places) * width + layers * gpt_block(width, 4 * width) + (
        2 * layer_norm(width) + width * shared)
    texts = (vocab + tokens) * text_width + text_layers * gpt_block(text_width, 4 * text_width) + (
        layer_norm(text_width) + text_width * shared)
    return images + texts + 1


def llama(layers, width, heads, groups, inner, vocab):
    block = grouped_attention(width, heads, groups, 128) + gated(width, inner) + 2 * width
    return layers * block + 2 * vocab * width + width


def llava(width=1024, places=577):
    """CLIP's encoder without its last layer and the norm behind it; two products to Llama's width."""
    images = 3 * 14 ** 2 * width + (1 + places) * width + 23 * gpt_block(width, 4 * width) + layer_norm(width)
    return images + linear(width, 4096) + linear(4096, 4096) + llama(32, 4096, 32, 32, 11008, 32064)


def albert(width):
    """Embeddings of 128, one layer for all, a product of what stands for the text, and two heads."""
    words = (30000 + 512 + 2) * 128 + layer_norm(128) + linear(128, width)
    heads = linear(width, 128) + layer_norm(128) + 30000 + linear(width, 2)
    return words + gpt_block(width, 4 * width) + linear(width, width) + heads


def minimax():
    """Of 80 layers 70 have lightning attention with a gate and a norm, 10 softmax; 32 experts in each."""
    lightning = 5 * 6144 * 64 * 128 + 64 * 128
    experts = 32 * gated(6144, 9216) + 32 * 6144
    return (70 * lightning + 10 * grouped_attention(6144, 64, 8, 128) + 80 * (experts + 2 * 6144) +
            2 * 200064 * 6144 + 6144)


LLAMAS = {"llama2_7b": (32, 4096, 32, 32, 11008, 32000), "llama2_70b": (80, 8192, 64, 8, 28672, 32000),
          "llama3_8b": (32, 4096, 32, 8, 14336, 128256), "llama3_70b": (80, 8192, 64, 8, 28672, 128256)}


def adapters(layers, width, heads, groups, _, __, rank=8):
    """Beside the projections of queries and of values."""
    return layers * rank * (2 * width + (heads + groups) * 128)


COUNTS = {
    "gpt_neox": {"pythia_160m": gpt_neox(12, 768, 50304), "pythia_1_4b": gpt_neox(24, 2048, 50304),
                 "pythia_6_9b": gpt_neox(32, 4096, 50432), "pythia_12b": gpt_neox(36, 5120, 50688),
                 "gpt_neox_20b": gpt_neox(44, 6144, 50432)},
    "bloom": {"bloom_560m": bloom(24, 1024), "bloom_7b1": bloom(30, 4096), "bloom_176b": bloom(70, 14336)},
    "falcon": {"falcon_7b": falcon(32, 4544, 71, 1, 1), "falcon_40b": falcon(60, 8192, 128, 8, 2),
               "falcon_180b": falcon(80, 14848, 232, 8, 2)},
    "phi3": {"phi3_mini_4k": phi3(32, 3072, 32, 32, 8192, 32064),
             "phi3_medium_4k": phi3(40, 5120, 40, 10, 17920, 32064),
             "phi4": phi3(40, 5120, 40, 10, 17920, 100352),
             "phi4_mini": phi3(32, 3072, 24, 8, 8192, 200064, tied=True)},
    "deepseek_v2": {"v2": deepseek(60, 1, 5120, 128, 1536, 12288, 160, 1536, 2, 102400, False),
                    "v2_lite": deepseek(27, 1, 2048, 16, 0, 10944, 64, 1408, 2, 102400, False)},
    "kimi_k2": {"kimi_k2": deepseek(61, 1, 7168, 64, 1536, 18432, 384, 2048, 1, 163840, True)},
    "glm4_moe": {"glm4_5": glm(92, 3, 5120, 12288, 160, 1536, True),
                 "glm4_5_air": glm(46, 1, 4096, 10944, 128, 1408, False)},
    "albert": {"albert_base_v2": albert(768), "albert_xxlarge_v2": albert(4096)},
    "minimax": {"minimax_text_01": minimax()},
    "llama4": {"llama4_scout": llama4(16, 1), "llama4_maverick": llama4(128, 2)},
    "bert": {"bert_base_uncased": bert(12, 768), "bert_large_uncased": bert(24, 1024)},
    "vit": {"vit_b_16": vit(12, 768, 16), "vit_b_32": vit(12, 768, 32), "vit_l_16": vit(24, 1024, 16),
            "vit_h_14": vit(32, 1280, 14, image=518)},
    "whisper": {"whisper_tiny": whisper(4, 384, 51865, 80), "whisper_small": whisper(12, 768, 51865, 80),
                "whisper_large_v3": whisper(32, 1280, 51866, 128)},
    "resnet": {"resnet50": resnet((3, 4, 6, 3)), "resnet101": resnet((3, 4, 23, 3)),
               "resnet152": resnet((3, 8, 36, 3))},
    "clip": {"clip_b_32": clip(12, 768, 32, 512, 512), "clip_b_16": clip(12, 768, 16, 512, 512),
             "clip_l_14": clip(24, 1024, 14, 768, 768)},
    "llava": {"llava_1_5_7b": llava()},
    "lora": {name: llama(*sizes) + adapters(*sizes) for name, sizes in LLAMAS.items()},
    "dpo": {name: 2 * llama(*sizes) for name, sizes in LLAMAS.items()},
    "distillation": {"llama3_70b_to_8b": llama(*LLAMAS["llama3_8b"]) + llama(*LLAMAS["llama3_70b"])},
    "dit_blocks": {"dit_xl_2": dit(28, 1152) + 27 * embeddings(1152)},
    "dit": {"dit_s_2": dit(12, 384), "dit_b_2": dit(12, 768), "dit_xl_2": dit(28, 1152)},
}


# ---- products of one forward pass, of one sequence or image ------------------------------------------------


def pairs(seq, window):
    """Pairs of query and key under a causal mask, counted query by query."""
    return sum(min(query + 1, window) for query in range(seq))


def falcon_products(seq):
    """40B: of each layer's weights, of scores and values, and of the head."""
    weights = 60 * (grouped_attention(8192, 128, 8, 64) + 8 * 8192 ** 2) + 65024 * 8192
    return 2 * seq * weights + 60 * 4 * pairs(seq, seq) * 128 * 64


def phi3_products(seq):
    """Mini 4k, with its windows."""
    weights = 32 * (grouped_attention(3072, 32, 32, 96) + gated(3072, 8192)) + 32064 * 3072
    return 2 * seq * weights + 32 * 4 * pairs(seq, 2047) * 32 * 96


def llama4_products(seq):
    """Maverick: of four layers three see chunks; the router, one expert and the shared one in every other."""
    attention = 48 * grouped_attention(5120, 40, 8, 128)
    sparse, dense = 24 * (5120 * 128 + 2 * gated(5120, 8192)), 24 * gated(5120, 16384)
    seen = 36 * (seq // 8192) * pairs(8192, 8192) + 12 * pairs(seq, seq)
    return 2 * seq * (attention + sparse + dense + 202048 * 5120) + 4 * seen * 40 * 128


def vit_products():
    """B/16: squares, 12 layers over 197 places, the class."""
    layer = 2 * 197 * 12 * 768 ** 2 + 4 * 197 ** 2 * 768
    return 2 * 196 * 768 * 768 + 12 * layer + 2 * 768 * 1000


def resnet_products():
    """50: each convolution on the image that it makes; a stage's first block halves it at its second one."""
    total, inputs, side = 112 ** 2 * 7 * 7 * 3 * 64, 64, 56
    for stage, count in enumerate((3, 4, 6, 3)):
        inner, outputs = 64 << stage, 256 << stage
        for block in range(count):
            before = side
            side = side // 2 if block == 0 and stage else side
            total += before ** 2 * inputs * inner + side ** 2 * (9 * inner ** 2 + inner * outputs)
            total += side ** 2 * inputs * outputs if block == 0 else 0
            inputs = outputs
    return 2 * (total + inputs * 1000)


PRODUCTS = [
    ("falcon", "falcon_40b", {"seq": 2048}, falcon_products(2048)),
    ("phi3", "phi3_mini_4k", {"seq": 4096}, phi3_products(4096)),
    ("llama4", "llama4_maverick", {"seq": 16384}, llama4_products(16384)),
    ("llama4", "llama4_maverick", {"seq": 8192}, llama4_products(8192)),
    ("vit", "vit_b_16", {}, vit_products()),
    ("resnet", "resnet50", {}, resnet_products()),
]


# Bytes that the caches keep of a token, in 16 bits: keys and values of all layers, or what they are made of.
CACHED = {
    ("gpt_neox", "pythia_160m"): 12 * 2 * 768 * 2, ("bloom", "bloom_560m"): 24 * 2 * 1024 * 2,
    ("falcon", "falcon_7b"): 32 * 2 * 64 * 2, ("falcon", "falcon_40b"): 60 * 2 * 8 * 64 * 2,
    ("phi3", "phi4"): 40 * 2 * 10 * 128 * 2, ("deepseek_v2", "v2"): 60 * (512 + 64) * 2,
    ("glm4_moe", "glm4_5_air"): 46 * 2 * 8 * 128 * 2,
}
SERVED = """etch 1
import "{}"
param context
infer decode {{ model = {}, output = z, seq = 1, past = context }}
parallel one {{ mesh [dp]; shard B @ dp }}
"""

# Jobs of many ranks: family, config, plan, settings, ranks; and how many layers are written and read back.
JOBS = [
    ("kimi_k2", "kimi_k2", "expert_pp", dict(pp=16, dp=64, ep=64, batch=1024, micro=16, seq=4096), 16),
    ("llama4", "llama4_maverick", "moe_pp", dict(pp=4, dp=64, ep=64, tp=4, batch=512, micro=8, seq=8192), 4),
]


class Families(Case):
    def test_jobs(self):
        """1024 ranks, of all layers; of a few they are written with one microbatch, and run to their end."""
        for family, config, plan, sets, layers in JOBS:
            with self.subTest(config):
                spec, out = MODELS / f"{family}.etch", self.scratch / family
                planned = succeed("lower", spec, *options(config, plan, sets), "-o", out, "--dry-run",
                                  "--format", "json", "-q")
                self.assertEqual(1024, json.loads(planned.out)["ranks"])
                few = {**sets, "layers": layers, "micro": 1}
                succeed("lower", spec, *options(config, plan, few), "-o", out, "--no-sync", "-q")
                self.assertIn("always: every rank finishes", succeed("verify", out).out)

    def test_params(self):
        for family, configs in COUNTS.items():
            for config, count in configs.items():
                with self.subTest(config):
                    self.assertEqual(count, value(MODELS / f"{family}.etch", "params(model)", config))

    def test_every_config_is_counted(self):
        for family, configs in COUNTS.items():
            found = json.loads(succeed("check", MODELS / f"{family}.etch", "--format", "json").out)["configs"]
            self.assertEqual(sorted(configs), sorted(found), family)

    def test_trained(self):
        """Of recipes: adapters alone, one of two copies, the smaller of two models, all but the tower."""
        for name, sizes in LLAMAS.items():
            self.assertEqual(adapters(*sizes), value(MODELS / "lora.etch", "trainable(model)", name))
            self.assertEqual(llama(*sizes), value(MODELS / "dpo.etch", "trainable(model)", name))
        self.assertEqual(llama(*LLAMAS["llama3_8b"]),
                         value(MODELS / "distillation.etch", "trainable(model)", "llama3_70b_to_8b"))

    def test_served(self):
        """A token is decoded behind 999; the least that is read for it are the caches of all 1000."""
        for (family, config), count in CACHED.items():
            with self.subTest(config):
                spec = self.write(f"{config}.etch", SERVED.format(MODELS / f"{family}.etch", family))
                sets = {"batch": 4, "dp": 2, "context": 999}
                self.assertEqual(2 * 1000 * count, value(spec, "memory(cache)", config, "one", sets))
                self.assertGreater(value(spec, "reads(forward)", config, "one", sets), 2 * 1000 * count)

    def test_products(self):
        for family, config, sets, count in PRODUCTS:
            with self.subTest(config, **sets):
                found = value(MODELS / f"{family}.etch", "matmul_flops(forward)", config,
                              sets={"batch": 3, **sets})
                self.assertEqual(3 * count, found)


if __name__ == "__main__":
    main()
