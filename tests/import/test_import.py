"""`etch import`, and configs in place of specs: numbers of published checkpoints, held as well against an
oracle that lists their tensors; what configs leave out, and what null means; what changes nothing; what is
refused, at which field."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from effort import NIGHTLY
import oracle

SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
ETCH = os.environ["ETCH"]
CONFIGS = SOURCE / "tests" / "import" / "configs"
MESSAGE = re.compile(r"^(?:(?P<path>[^\n:]*):(?P<line>\d+):\d+: )?"
                     r"(?P<kind>error|warning|remark)\[(?P<code>E\d+)\]: (?P<text>.*)$", re.M)


def run(*arguments, folder=None, text=None):
    environment = {**os.environ, "ETCH_PATH": str(SOURCE / "models")}
    return subprocess.run([ETCH, *map(str, arguments)], cwd=folder, input=text, capture_output=True,
                          text=True, env=environment, check=False)


def config(name, **changes):
    """A published config with fields in place of its own; `...` takes one out."""
    fields = {**json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8")), **changes}
    return {key: value for key, value in fields.items() if value is not ...}


# What a config of a type cannot leave out: the class has no value, or the file of the family does not do it.
NEEDED = {
    "gemma3": {"text_config": {}},
    "llama4": {"text_config": {}},
    "llava": {"vision_config": {}},
    "qwen3_moe": {"norm_topk_prob": True},
    "minimax_text_01": {"postnorm": True, "rotary_dim": 64, "attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1] * 4},
    "deepseek_v2": {"num_experts_per_tok": 6, "first_k_dense_replace": 1},
    "glm4_moe": {"attention_bias": True, "head_dim": 128},
    "whisper": {"d_model": 256, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 4,
                "decoder_attention_heads": 4, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536},
}


class Import(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, fields):
        path = self.folder / "config.json"
        path.write_text(fields if isinstance(fields, str) else json.dumps(fields, indent=1), encoding="utf-8")
        return path

    def ask(self, fields, query="params(model)", *options):
        done = run("query", self.write(fields), query, *options, folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout), [match.groupdict() for match in MESSAGE.finditer(done.stderr)]

    def spec(self, fields):
        done = run("import", self.write(fields))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def bound(self, fields):
        values = re.search(r"config imported \{ (.*) \}", self.spec(fields))[1]
        return dict(value.split(" = ") for value in values.split(", "))

    def refused(self, fields, code, says):
        """The command ends with status 1 and this error; gives the line that it names."""
        done = run("import", self.write(fields))
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        found = [m for m in MESSAGE.finditer(done.stderr) if m["kind"] == "error" and m["code"] == code]
        self.assertTrue(any(says in m["text"] for m in found), f"{says}\n{done.stderr}")
        return [int(m["line"] or 0) for m in found if says in m["text"]][0]


class Published(Import):
    def test_numbers(self):
        rows = (SOURCE / "tests/import/published.tsv").read_text(encoding="utf-8").splitlines()[1:]
        known = {name: int(number) for name, number, _ in (row.split("\t") for row in rows)}
        for path in sorted(CONFIGS.glob("*.json")):
            fields = json.loads(path.read_text(encoding="utf-8"))
            done = run("query", path, "params(model)", "-q")
            with self.subTest(path.stem):
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(int(done.stdout), oracle.elements(fields))
                self.assertEqual(int(done.stdout), known.pop(path.stem, int(done.stdout)))
        self.assertEqual(known, {})

    def test_active(self):
        """What a token uses: of the experts those that it is sent to."""
        for name in ("mixtral_8x7b", "qwen3_30b_a3b", "gpt_oss_20b", "deepseek_v3", "llama3_8b",
                     "deepseek_v2", "kimi_k2", "glm4_5_air", "llama4_scout", "llama4_maverick"):
            found = self.ask(config(name), "active_params(model)")[0]
            self.assertEqual(found, oracle.active(config(name)), name)

    def test_what_is_left_out(self):
        """A config that says nothing but its type is that of the class's own values."""
        for name in oracle.FAMILIES:
            fields = {"model_type": name, **NEEDED.get(name, {})}
            with self.subTest(name):
                self.assertEqual(self.ask(fields)[0], oracle.elements(fields))

    def test_every_field_is_optional(self):
        """Each field of each config in turn: what it is left out for is the class's value, or refused."""
        for name in ("llama3_2_1b", "gemma2_2b", "gpt2", "t5_small", "falcon_40b", "pythia_160m"):
            for field in config(name):
                fields = config(name, **{field: ...})
                done = run("query", self.write(fields), "params(model)", "-q")
                with self.subTest(f"{name} without {field}"):
                    if done.returncode == 0:
                        typed = {"model_type": config(name)["model_type"], **fields}
                        self.assertEqual(int(done.stdout), oracle.elements(typed))
                    else:
                        self.assertIn("error[E0286]", done.stderr)  # what is left does not divide

    def test_lowered(self):
        """What is imported is a whole spec: a step of it becomes traces."""
        lengths = {"t5": None, "clip": None, "vit": None, "whisper": None, None: None, "bert": 256,
                   "albert": 256}
        for path in sorted(CONFIGS.glob("*.json")):
            fields = json.loads(path.read_text(encoding="utf-8"))
            length = lengths.get(fields.get("model_type"), 1024)
            if "ssm_cfg" in fields:
                length = 1024
            sets = "batch=4,dp=2" + (f",seq={length}" if length else "")
            done = run("lower", path, "--plan", "ddp", "--set", sets, "-n", "-q")
            with self.subTest(path.stem):
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_spec_and_config_agree(self):
        for name in ("llama3_8b", "gpt_oss_20b", "t5_small"):
            path = CONFIGS / f"{name}.json"
            direct = run("query", path, "flops(step)", "-q", "--set", "batch=1,seq=1024" if name != "t5_small"
                         else "batch=1")
            (self.folder / "model.etch").write_text(run("import", path).stdout, encoding="utf-8")
            spec = run("query", self.folder / "model.etch", "flops(step)", "-q", "--set",
                       "batch=1,seq=1024" if name != "t5_small" else "batch=1")
            self.assertEqual((spec.returncode, spec.stdout), (0, direct.stdout), spec.stderr + direct.stderr)
            self.assertRegex(spec.stdout, r"^\d+\n$")


class Fields(Import):
    def test_null_apart_from_absent(self):
        self.assertEqual(self.bound(config("mistral_7b_v1", num_key_value_heads=...))["kv_heads"], "8")
        self.assertEqual(self.bound(config("mistral_7b_v1", num_key_value_heads=None))["kv_heads"], "32")
        self.assertEqual(self.bound(config("mistral_7b_v1", sliding_window=...))["window"], "4096")
        self.assertNotIn("window", self.bound(config("mistral_7b_v1", sliding_window=None)))
        self.assertEqual(self.bound(config("qwen3_0_6b", head_dim=...))["head_dim"], "128")
        self.assertEqual(self.bound(config("qwen3_0_6b", head_dim=None))["head_dim"], "64")
        self.assertEqual(self.bound(config("deepseek_v3", q_lora_rank=...))["q_rank"], "1536")
        self.assertEqual(self.bound(config("deepseek_v3", q_lora_rank=None))["q_rank"], "0")
        self.refused(config("gemma2_2b", attn_logit_softcapping=None), "E0285", "caps scores")
        self.refused(config("llama3_8b", hidden_size=None), "E0283", "'hidden_size' is null")

    def test_files(self):
        for fields, file in ((config("llama3_8b"), "llama.etch"), (config("llama3_2_1b"), "llama3_2.etch"),
                             (config("llama3_8b", tie_word_embeddings=...), "llama.etch"),
                             (config("mistral_7b_v1"), "mistral_window.etch"),
                             (config("mistral_7b_v3"), "mistral.etch"),
                             (config("mamba_codestral_7b"), "mamba2_untied.etch"),
                             (config("mamba_codestral_7b", tie_word_embeddings=True), "mamba2.etch"),
                             (config("mamba2_130m"), "mamba2.etch")):
            self.assertIn(f'import "{file}"', self.spec(fields))

    def test_windows_count(self):
        """A window of 4096 keys makes 8192 tokens cheaper, and 4096 no cheaper."""
        flops = {(name, seq): self.ask(config(name, vocab_size=32000), "matmul_flops(forward)", "--set",
                                       f"batch=1,seq={seq}")[0]
                 for name in ("mistral_7b_v1", "mistral_7b_v3") for seq in (4096, 8192)}
        self.assertEqual(flops["mistral_7b_v1", 4096], flops["mistral_7b_v3", 4096])
        fewer = 4096 * 4097 // 2  # pairs of queries 4097 to 8192 with keys before the window
        saved = flops["mistral_7b_v3", 8192] - flops["mistral_7b_v1", 8192]
        self.assertEqual(saved, 32 * 4 * 32 * 128 * fewer)

    def test_falcon(self):
        """New blocks have as many heads with keys as they say, and two norms but where they say one; old ones
        have one such head, or one each."""
        for changes, kv_heads, count in (({}, "8", "2"), ({"num_ln_in_parallel_attn": 1}, "8", "1"),
                                         ({"num_ln_in_parallel_attn": None}, "8", "2"),
                                         ({"multi_query": False}, "8", "2"),
                                         ({"new_decoder_architecture": False}, "1", "1"),
                                         ({"new_decoder_architecture": ...}, "1", "1"),
                                         ({"new_decoder_architecture": ..., "multi_query": False}, "8", "1"),
                                         ({"num_kv_heads": None}, "128", "2")):
            fields = config("falcon_40b", **changes)
            bound = self.bound(fields)
            self.assertEqual((bound["kv_heads"], bound["norms"]), (kv_heads, count), changes)
            self.assertEqual(self.ask(fields)[0], oracle.elements(fields), changes)
        self.assertEqual(self.bound(config("falcon_40b", ffn_hidden_size=1000))["ffn"], "1000")
        old = config("falcon_7b", n_layer=32, n_head=71, num_hidden_layers=..., num_attention_heads=...)
        self.assertEqual(self.spec(old), self.spec(config("falcon_7b")))

    def test_parts_of_heads(self):
        """A part of a head is rotated, in numbers that computers cannot write in full."""
        for said, size in ((0.25, "16"), (1, "0"), (1.0, "0"), (..., "16"), (0.5, "32"), (0.38, "24"),
                           ("1e-1", "6")):
            text = json.dumps(config("pythia_160m", rotary_pct=said)).replace('"1e-1"', "1e-1")
            self.assertEqual(self.bound(text)["rotary_dim"], size, said)
        self.assertEqual(self.bound(config("phi4_mini"))["rotary_dim"], "96")
        nested = {"partial_rotary_factor": 0.5}
        nested = config("phi4_mini", partial_rotary_factor=..., rope_parameters=nested)
        self.assertEqual(self.bound(nested)["rotary_dim"], "64")
        self.refused(config("pythia_160m", rotary_pct=0.4), "E0286", "2, 2, does not divide head_dim *")
        self.refused(config("pythia_160m", rotary_pct=0.01), "E0286", "is more than head_dim *")
        for wrong in (0, -0.25, 1.5, "0.25", None, 0.1234567891):
            self.refused(config("pythia_160m", rotary_pct=wrong), "E0283", "takes a number above 0")

    def test_groups_of_experts(self):
        """Chosen from only where the way of choosing says so."""
        self.assertEqual(self.bound(config("deepseek_v2"))["groups"], "8")
        greedy = self.bound(config("deepseek_v2", topk_method="greedy"))
        self.assertEqual((greedy["groups"], greedy["top_groups"]), ("1", "1"))
        self.assertEqual(self.bound(config("deepseek_v2_lite", n_group=None, topk_group=None))["groups"], "1")

    def test_layers_of_llama4(self):
        def text(name, **changes):
            return config(name, text_config={**config(name)["text_config"], **changes})
        spec = self.spec(config("llama4_maverick"))
        self.assertEqual(self.spec(text("llama4_maverick", moe_layers=list(range(1, 48, 2)))), spec)
        self.assertEqual(self.spec(text("llama4_maverick", no_rope_layers=[1, 1, 1, 0] * 12)), spec)
        self.assertEqual(self.spec(text("llama4_maverick", layer_types=(
            ["chunked_attention"] * 3 + ["full_attention"]) * 12)), spec)
        self.refused(text("llama4_maverick", moe_layers=list(range(48))), "E0285", "'moe_layers' lists other")
        self.refused(text("llama4_maverick", moe_layers=[1, 3]), "E0285", "'moe_layers' lists other")
        self.refused(text("llama4_maverick", no_rope_layers=[0, 1, 1, 1] * 12), "E0285", "layer 0 is 0")
        self.refused(text("llama4_scout", no_rope_layer_interval=2), "E0285", "three of four")
        self.refused(text("llama4_scout", attention_chunk_size=None), "E0283", "is null")

    def test_labels(self):
        """Classes are the labels that a config lists."""
        labels = {str(i): f"label {i}" for i in range(21)}
        self.assertEqual(self.bound(config("vit_b_16", num_labels=..., id2label=labels))["classes"], "21")
        self.assertEqual(self.bound(config("vit_b_16", num_labels=...))["classes"], "2")
        self.refused(config("vit_b_16", num_labels=..., id2label={}), "E0283", "is empty")

    def test_objects_of_towers(self):
        """Old configs have objects twice, and those that end with _dict count; each may have the fields that
        all configs have."""
        fields = config("clip_b_32", text_config_dict={"hidden_size": 256, "num_attention_heads": 4})
        number, messages = self.ask(fields)
        self.assertEqual(number, oracle.elements(fields))
        self.assertIn("E0286", [m["code"] for m in messages])
        self.assertEqual(self.ask(config("clip_l_14"))[1], [])
        self.assertEqual(self.ask(config("clip_b_32"))[1], [])
        _, messages = self.ask(config("clip_b_32", vision_config={
            **config("clip_b_32")["vision_config"], "novelty": 1, "num_key_value_heads": 2}))
        self.assertEqual([m["code"] for m in messages], ["E0288"])
        self.assertIn("'vision_config.novelty', 'vision_config.num_key_value_heads'", messages[0]["text"])
        self.refused(config("clip_b_32", text_config={"is_encoder_decoder": True}), "E0285", "no encoder")
        _, messages = self.ask(config("llava_1_5_7b"))
        self.assertEqual([(m["kind"], "leaves out the last layer of the tower" in m["text"])
                          for m in messages], [("remark", True)])
        self.refused(config("llava_1_5_7b", vision_config=...), "E0284", "'vision_config' is missing")
        self.refused(config("llava_1_5_7b", vision_config=3), "E0283", "takes an object")
        mistral = {"model_type": "mistral"}
        self.refused(config("llava_1_5_7b", text_config=mistral), "E0285", "blocks of Llama")
        self.assertEqual(self.ask({**config("llava_1_5_7b"), "text_config": {}})[0],
                         oracle.elements({**config("llava_1_5_7b"), "text_config": {}}))

    def test_diffusers(self):
        """The class of its own takes other values for what is left out than the one that held all kinds."""
        plain = {"_class_name": "DiTTransformer2DModel", "out_channels": 8}
        self.assertEqual(self.ask(plain)[0], self.ask(config("dit_xl_2"))[0])
        self.refused({"_class_name": "DiTTransformer2DModel"}, "E0286", "out_channels, 4, is not")
        self.refused(config("dit_xl_2", norm_type=...), "E0285", "left out, which means layer_norm")
        self.refused(config("dit_xl_2", norm_type="ada_norm_single"), "E0285", "from time and class")
        self.refused(config("dit_xl_2", patch_size=...), "E0284", "'patch_size' is missing")
        self.refused(config("dit_xl_2", cross_attention_dim=1152), "E0285", "image alone")
        self.refused(config("dit_xl_2", _class_name="PixArtTransformer2DModel"), "E0282", "'PixArt")

    def test_adapters(self):
        """What PEFT writes has a rank, and no sizes: those of its base are for the command line."""
        fields = {"peft_type": "LORA", "base_model_name_or_path": "meta-llama/Llama-2-7b-hf", "r": 16,
                  "lora_alpha": 32, "lora_dropout": 0.05, "bias": "none", "task_type": "CAUSAL_LM",
                  "target_modules": ["v_proj", "q_proj"], "inference_mode": True, "modules_to_save": None}
        self.assertEqual(self.bound(fields), {"rank": "16", "alpha": "32"})
        sizes = "layers=32,hidden=4096,heads=32,kv_heads=32,head_dim=128,ffn=11008,vocab=32000"
        number, messages = self.ask(fields, "trainable(model)", "--set", sizes)
        self.assertEqual(number, 2 * 4194304)  # what PEFT prints of rank 8, twice
        self.assertEqual([(m["kind"], "Llama-2-7b" in m["text"]) for m in messages], [("remark", True)])
        self.assertEqual(self.bound({"peft_type": "LORA"}), {"rank": "8", "alpha": "8"})
        for changes, says in (({"target_modules": ["q_proj"]}, "queries and of values"),
                              ({"target_modules": ["q_proj", "v_proj", "k_proj"]}, "queries and of values"),
                              ({"target_modules": ["q_proj", "q_proj"]}, "queries and of values"),
                              ({"target_modules": "all-linear"}, "queries and of values"),
                              ({"use_dora": True}, "magnitudes"), ({"bias": "all"}, "no biases"),
                              ({"rank_pattern": {"k_proj": 4}}, "one rank"),
                              ({"peft_type": "IA3"}, "narrow")):
            self.refused({**fields, **changes}, "E0285", says)

    def test_code_of_tokenizers(self):
        """Code that makes tokens computes nothing of the model."""
        code = {"AutoTokenizer": "some/one--tokenization_mine.Mine", "AutoProcessor": None}
        self.assertEqual(self.spec(config("llama3_8b", auto_map=code)), self.spec(config("llama3_8b")))

    def test_old_and_new_names(self):
        names = {"n_layer": "num_hidden_layers", "n_embd": "hidden_size", "n_head": "num_attention_heads"}
        old = config("gpt2")
        new = {names.get(key, key): value for key, value in old.items()}
        self.assertEqual(self.spec(old), self.spec(new))
        self.assertEqual(self.spec(config("llama3_8b")),
                         self.spec(config("llama3_8b", torch_dtype=..., dtype="bfloat16")))

    def test_rotary_parameters(self):
        nested = {"rope_type": "default", "rope_theta": 5e5}
        new = config("llama3_8b", rope_theta=..., rope_scaling=..., rope_parameters=nested)
        self.assertEqual(self.spec(config("llama3_8b")), self.spec(new))
        self.refused(config("llama3_8b", rope_parameters={**nested, "partial_rotary_factor": 0.5}), "E0285",
                     "rotates whole heads")
        self.refused(config("llama3_8b", partial_rotary_factor=0.25), "E0285", "rotates whole heads")

    def test_dtypes(self):
        for said, line in (("bfloat16", None), ("float16", "f16"), ("float32", "f32"),
                           ("torch.float32", "f32")):
            spec = self.spec(config("llama3_8b", torch_dtype=said))
            self.assertEqual(re.findall(r"^dtype act = (\w+), weights = (\w+)$", spec, re.M),
                             [(line, line)] if line else [])
        weights = {said: self.ask(config("llama3_8b", torch_dtype=said), "memory(weights)", "--plan", "ddp",
                                  "--set", "batch=1,seq=1024,dp=1")[0] for said in ("bfloat16", "float32")}
        self.assertEqual(weights["float32"], 2 * weights["bfloat16"])
        _, messages = self.ask(config("llama3_8b", torch_dtype="float8_e4m3fn"))
        self.assertEqual([(m["kind"], m["code"]) for m in messages], [("warning", "E0287")])

    def test_what_is_no_json(self):
        plain = (CONFIGS / "mamba_codestral_7b.json").read_text(encoding="utf-8")
        self.assertIn("Infinity", plain)
        for number in ("Infinity", "-Infinity", "NaN"):
            text = plain.replace("0.1,", f"{number},", 1)
            self.assertEqual(self.ask(text)[0], 7285403648)
        self.refused(plain.replace("4096", "Infinity", 1), "E0283", "'hidden_size' is Infinity")
        self.refused(plain.replace("4096", "NaN", 1), "E0283", "'hidden_size' is NaN")

    def test_patterns(self):
        """Any order of layers is counted as it stands."""
        for pattern in ("M", "*-M", "M-" * 59, "-" * 20 + "*M"):
            fields = config("nemotron_h_8b", hybrid_override_pattern=pattern, num_hidden_layers=len(pattern))
            self.assertEqual(self.ask(fields)[0], oracle.elements(fields), pattern)

    def test_wrappers(self):
        number, messages = self.ask(config("gemma3_4b"))
        self.assertEqual([(m["kind"], "vision_config" in m["text"]) for m in messages], [("warning", True)])
        inner = config("gemma3_4b")["text_config"]
        self.assertEqual(self.ask(inner)[0], number)
        self.refused(config("gemma3_4b", text_config=...), "E0284", "'text_config'")
        self.refused(config("gemma3_4b", text_config={"model_type": "llama"}), "E0282", "'llama'")

    def test_pipes_and_files(self):
        text = (CONFIGS / "llama3_8b.json").read_text(encoding="utf-8")
        self.assertEqual(run("query", "-", "params(model)", "-q", text=text).stdout, "8030261248\n")
        spec = run("import", CONFIGS / "llama3_8b.json").stdout
        self.assertEqual(run("import", "-", text=text).stdout, spec)
        target = self.folder / "model.etch"
        self.assertEqual(run("import", "-", "-o", target, text=text).returncode, 0)
        self.assertEqual(run("query", target, "params(model)", "-q").stdout, "8030261248\n")
        again = run("import", "-", "-o", target, text=text)
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertIn("--force", again.stderr)
        self.assertEqual(run("import", "-", "-o", target, "--force", text=text).returncode, 0)
        for command in (["check"], ["show"], ["prove", "vocab == 128256"],
                        ["lower", "--plan", "ddp", "--set", "batch=1,seq=128", "-n"],
                        ["sweep", "--select", "params(model)", "--over", "layers=1,2"],
                        ["simulate", "--machine", "h100_sxm", "--plan", "ddp",
                         "--set", "batch=2,seq=8,dp=2"]):
            done = run(command[0], CONFIGS / "llama3_8b.json", *command[1:], "-q")
            self.assertIn(done.returncode, (0, 5), done.stderr)
        self.assertEqual(run("import", self.folder).returncode, 3)
        self.assertEqual(run("import", self.folder / "missing.json").returncode, 3)


class Remarks(Import):
    def test_unknown_fields_are_named_once(self):
        _, messages = self.ask(config("llama3_8b", novelty=1, another="x"))
        self.assertEqual([(m["kind"], m["code"]) for m in messages], [("remark", "E0288")])
        self.assertIn("'novelty', 'another'", messages[0]["text"])
        _, messages = self.ask(config("llama3_8b", **{f"unknown{i}": i for i in range(1000)}))
        self.assertEqual(len(messages), 1)
        self.assertIn("1000 fields", messages[0]["text"])

    def test_fields_of_other_families(self):
        """They are not read, which is worth a warning where they say something."""
        _, messages = self.ask(config("llama3_8b", num_local_experts=8))
        self.assertEqual([(m["kind"], m["code"]) for m in messages], [("warning", "E0287")])
        _, messages = self.ask(config("llama3_8b", sliding_window=None, mlp_only_layers=[]))
        self.assertEqual(messages, [])

    def test_documented(self):
        """Every type that the program knows stands in the table of docs/import.md, with its file."""
        done = run("import", self.write({"model_type": "nothing"}))
        types = re.search(r"model types are (.*)", done.stderr)[1].split(", ")
        self.assertGreater(len(types), 10)
        table = [line for line in (SOURCE / "docs/import.md").read_text(encoding="utf-8").splitlines()
                 if line.startswith("| ")]
        for name in types:
            spec = self.spec({"model_type": name, **NEEDED.get(name, {})})
            file = re.search(r'import "(.*)"', spec)[1]
            self.assertTrue(any(f"`{name}`" in row and f"`{file}`" in row for row in table), (name, file))

    def test_contradictions(self):
        _, messages = self.ask(config("gpt2", num_hidden_layers=24))
        self.assertEqual([(m["kind"], m["code"]) for m in messages], [("warning", "E0286")])
        _, messages = self.ask(config("llama3_8b", architectures=["MistralForCausalLM"]))
        self.assertEqual([(m["kind"], m["code"]) for m in messages], [("warning", "E0286")])
        _, messages = self.ask(config("gpt2", n_layer=12.0, num_hidden_layers=12) | {"n_layer": 12})
        self.assertEqual(messages, [])

    def test_what_a_file_lacks(self):
        for name, changes, word in (("llama3_8b", {"attention_dropout": 0.1}, "attention_dropout"),
                                    ("gpt2", {"resid_pdrop": 0.0}, "resid_pdrop"),
                                    ("llama3_8b", {"quantization_config": {"quant_method": "gptq"}},
                                     "quantization_config")):
            _, messages = self.ask(config(name, **changes))
            self.assertEqual([(m["kind"], m["code"], word in m["text"]) for m in messages],
                             [("warning", "E0287", True)])


class Refused(Import):
    def test_features(self):
        for name, changes, says in (
                ("llama3_8b", {"hidden_act": "gelu"}, "'hidden_act' is \"gelu\""),
                ("llama3_8b", {"attention_bias": True}, "'attention_bias' is true"),
                ("llama3_8b", {"mlp_bias": True}, "'mlp_bias' is true"),
                ("llama3_8b", {"auto_map": {"AutoModel": "modeling_mine.Mine"}}, "'auto_map'"),
                ("deepseek_v3", {"auto_map": {"AutoModel": "some/one--modeling_mine.Mine"}}, "'auto_map'"),
                ("llama3_8b", {"architectures": ["LlamaForSequenceClassification"]}, "another head"),
                ("mistral_7b_v1", {"tie_word_embeddings": True}, "has a head of its own"),
                ("mixtral_8x7b", {"sliding_window": 4096}, "has no windows"),
                ("qwen2_0_5b", {"use_sliding_window": True}, "has no windows"),
                ("qwen2_0_5b", {"layer_types": ["full_attention"] * 23 + ["sliding_attention"]}, "layer 23"),
                ("qwen3_30b_a3b", {"decoder_sparse_step": 2}, "experts in every layer"),
                ("qwen3_30b_a3b", {"mlp_only_layers": [0]}, "experts in every layer"),
                ("qwen3_30b_a3b", {"norm_topk_prob": ...}, "left out, which means false"),
                ("gemma_2b", {"tie_word_embeddings": False}, "no head but the embedding"),
                ("gemma2_2b", {"layer_types": ["full_attention", "sliding_attention"] * 13}, "layer 0"),
                ("gemma3_1b", {"sliding_window_pattern": 4}, "five of six layers"),
                ("gpt2", {"add_cross_attention": True}, "no attention to an encoder"),
                ("gpt_oss_20b", {"attention_bias": False}, "has biases in attention"),
                ("gpt_oss_20b", {"quantization_config": {"quant_method": "mine"}}, "'quant_method' is"),
                ("deepseek_v3", {"scoring_func": "softmax"}, "sigmoid"),
                ("deepseek_v3", {"topk_method": "greedy"}, "with a bias"),
                ("mamba2_130m", {"ssm_cfg": {}}, "left out, which means Mamba1"),
                ("mamba_codestral_7b", {"use_bias": True}, "no biases"),
                ("nemotron_h_8b", {"hybrid_override_pattern": "ME" * 26}, "layer 1 is 'E'"),
                ("nemotron_h_8b", {"hybrid_override_pattern": "M\n" * 26}, "of byte 0x0a"),
                ("nemotron_h_8b", {"mlp_hidden_act": "silu"}, "square of relu"),
                ("minimax_text_01", {"attn_type_list": [0, 1] * 40}, "every eighth layer"),
                ("minimax_text_01", {"postnorm": ...}, "left out, which means false"),
                ("minimax_text_01", {"shared_intermediate_size": 1024}, "experts that all tokens share"),
                ("minimax_text_01", {"layernorm_mlp_beta": 0.5}, "multiplies no result"),
                ("t5_small", {"feed_forward_proj": "gated-gelu"}, "relu"),
                ("t5_small", {"tie_word_embeddings": False}, "no head but the embedding"),
                ("llama3_8b", {"is_encoder_decoder": True}, "no encoder"),
                ("falcon_7b", {"alibi": True}, "rotary positions"),
                ("falcon_7b", {"parallel_attn": False}, "side by side"),
                ("falcon_7b", {"bias": True}, "no biases"),
                ("phi4_mini", {"lm_head_bias": True}, "no bias in its head"),
                ("bloom_560m", {"apply_residual_connection_post_layernorm": True}, "norm is given"),
                ("pythia_160m", {"use_parallel_residual": False}, "side by side"),
                ("pythia_160m", {"attention_bias": False}, "has biases in attention"),
                ("deepseek_v2", {"norm_topk_prob": True}, "as they are"),
                ("deepseek_v2", {"scoring_func": "sigmoid"}, "softmax"),
                ("glm4_5", {"attention_bias": ...}, "left out, which means false"),
                ("bert_base_uncased", {"position_embedding_type": "relative_key"}, "learned positions"),
                ("bert_base_uncased", {"architectures": ["BertForQuestionAnswering"]}, "another head"),
                ("albert_base_v2", {"num_hidden_groups": 2}, "one set of weights for all layers"),
                ("albert_base_v2", {"inner_group_num": 2}, "one layer in that set"),
                ("vit_b_16", {"qkv_bias": False}, "has biases"),
                ("whisper_tiny", {"activation_function": "relu"}, "computes gelu"),
                ("llava_1_5_7b", {"vision_feature_layer": -1}, "last layer but one"),
                ("llava_1_5_7b", {"vision_feature_select_strategy": "full"}, "token of the class"),
                ("llama3_8b", {"attention_bias": "false"}, "'attention_bias' is \"false\"")):
            with self.subTest(f"{name} {changes}"):
                self.refused(config(name, **changes), "E0285", says)

    def test_values(self):
        for name, changes, code, says in (
                ("llama3_8b", {"hidden_size": -4096}, "E0283", "is -4096"),
                ("llama3_8b", {"hidden_size": 0}, "E0283", "is 0"),
                ("llama3_8b", {"hidden_size": 4096.5}, "E0283", "is 4096.5"),
                ("llama3_8b", {"hidden_size": "4096"}, "E0283", "is a text"),
                ("llama3_8b", {"hidden_size": [4096]}, "E0283", "is a list"),
                ("llama3_8b", {"hidden_size": True}, "E0283", "is true or false"),
                ("llama3_8b", {"num_hidden_layers": 10**12}, "E0283", "is 1000000000000"),
                ("llama3_8b", {"num_hidden_layers": 10**400}, "E0283", "is 1000000"),
                ("llama3_8b", {"num_key_value_heads": 5}, "E0286", "does not divide"),
                ("llama3_8b", {"num_attention_heads": 24}, "E0286", "is no whole number"),
                ("gpt2", {"n_head": 7}, "E0286", "does not divide"),
                ("gpt2", {"n_inner": 1000}, "E0286", "is not"),
                ("mixtral_8x7b", {"num_experts_per_tok": 9}, "E0286", "is more than"),
                ("deepseek_v3", {"first_k_dense_replace": 62}, "E0286", "is more than"),
                ("mamba_codestral_7b", {"num_heads": 64}, "E0286", "is not"),
                ("nemotron_h_8b", {"num_hidden_layers": 53}, "E0286", "52 letters for 53 layers"),
                ("nemotron_h_8b", {"hybrid_override_pattern": ""}, "E0286", "0 letters for 52 layers"),
                ("nemotron_h_8b", {"hybrid_override_pattern": ["M"]}, "E0283", "a letter for each layer"),
                ("gpt_oss_20b", {"layer_types": ["sliding_attention"]}, "E0286", "for 24 layers"),
                ("falcon_7b", {"num_attention_heads": 70}, "E0286", "is no whole number"),
                ("falcon_40b", {"num_kv_heads": 7}, "E0286", "does not divide"),
                ("deepseek_v2", {"num_experts_per_tok": ...}, "E0284", "'num_experts_per_tok' is missing"),
                ("deepseek_v2", {"first_k_dense_replace": ...}, "E0286", "first_k_dense_replace"),
                ("deepseek_v2", {"n_group": 7}, "E0286", "does not divide"),
                ("vit_b_16", {"patch_size": 15}, "E0286", "does not divide"),
                ("whisper_tiny", {"d_model": ...}, "E0284", "'d_model' is missing"),
                ("whisper_tiny", {"decoder_ffn_dim": 384}, "E0286", "is not"),
                ("clip_b_32", {"text_config": {"hidden_size": -1}}, "E0283", "'hidden_size' is -1"),
                ("llama4_scout", {"text_config": {"num_hidden_layers": 10**12}}, "E0283", "is 10000000"),
                ("llama3_8b", {"model_type": "lama"}, "E0282", "'lama'"),
                ("llama3_8b", {"model_type": 3}, "E0283", "takes a text"),
                ("llama3_8b", {"model_type": ..., "architectures": ...}, "E0282", "does not say"),
                ("llama3_8b", {"model_type": ..., "architectures": ["Mine"]}, "E0282", "'Mine'")):
            with self.subTest(f"{name} {changes}"):
                fields = config(name, **changes)
                line = self.refused(fields, code, says)
                lines = json.dumps(fields, indent=1).split("\n")
                here = [i for i, text in enumerate(lines, 1) for key, value in changes.items()
                        if isinstance(value, (int, float, str)) and f'"{key}"' in text]
                self.assertTrue(line in here or not here or code == "E0286", (line, here))

    def test_every_field_spoilt(self):
        """Fields of each config in turn have a value that they cannot have: an error names a line, or the
        field changes nothing, and the spec loads. One of four; in the nights all."""
        every = 1 if NIGHTLY else 4
        values = (-1, "x", 1.5, 10**12, [], {}, None, 0, True)
        turn = 0
        for path in sorted(CONFIGS.glob("*.json")):
            fields = json.loads(path.read_text(encoding="utf-8"))
            places = [(fields, name) for name in fields] + [
                (part, name) for part in fields.values() if isinstance(part, dict) for name in part]
            for part, name in places[len(path.stem) % every::every]:
                kept, part[name] = part[name], values[turn % len(values)]
                turn += 1
                done = run("query", self.write(fields), "params(model)", "-q", "--defaults")
                with self.subTest(f"{path.stem}: {name} = {part[name]}"):
                    self.assertIn(done.returncode, (0, 1), done.stderr)
                    lines = [m["line"] for m in MESSAGE.finditer(done.stderr) if m["kind"] == "error"]
                    self.assertEqual(done.returncode == 0, not lines, done.stderr)
                    self.assertTrue(all(lines), done.stderr)
                    self.assertEqual("config.json:" in done.stderr, done.returncode == 1, done.stderr)
                part[name] = kept

    def test_texts(self):
        good = (CONFIGS / "llama3_8b.json").read_text(encoding="utf-8")
        for text, code, says in (
                ("", "E0280", "ends"), ("[]", "E0280", "object"), ("{", "E0280", "ends"),
                ("{}", "E0282", "does not say"),
                (good.rstrip()[:-1], "E0280", "ends"), (good + "x", "E0280", "end of the text"),
                (good.replace(",", ",,", 1), "E0280", "name of a field"),
                (good.replace(":", " ", 1), "E0280", "colon"),
                (good.replace("32,", "032,", 1), "E0280", "zeros"),
                (good.replace("32,", "1e,", 1), "E0280", "digit"),
                (good.replace('"silu"', "'silu'"), "E0280", "value"),
                (good.replace('"silu"', '"si\\qlu"'), "E0280", "one of"),
                (good.replace('"silu"', '"si\nlu"'), "E0280", "end of a text"),
                (good.replace('"silu"', '"\\u0000"'), "E0280", "NUL"),
                (good.replace('"use_cache"', '"hidden_size": 1, "use_cache"'), "E0281", "twice"),
                (good.replace('"use_cache"', '"hidden\\u005fsize": 1, "use_cache"'), "E0281", "twice"),
                ('{"a":' * 64 + "1" + "}" * 64, "E0282", "does not say"),
                ('{"a":' * 65 + "1" + "}" * 65, "E0901", "nested"), ("[" * 100000, "E0280", "object"),
                ('{"a":' + "[" * 1000000, "E0901", "nested")):
            with self.subTest(text[:40]):
                self.refused(text, code, says)

    def test_large_files(self):
        """Sparse, so that nothing is written; and through a pipe just above the limit."""
        path = self.folder / "config.json"
        with open(path, "wb") as file:
            file.truncate(100 << 20)
        for command in (["import", path], ["query", path, "params(model)"]):
            done = run(*command)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("error[E0289]", done.stderr)
        fields = {**config("llama3_8b"), "padding": ""}
        room = (4 << 20) - len(json.dumps(fields))
        fits = run("import", "-", text=json.dumps({**fields, "padding": "x" * room}))
        self.assertEqual(fits.returncode, 0, fits.stderr)
        above = run("import", "-", text=json.dumps({**fields, "padding": "x" * (room + 1)}))
        self.assertEqual(above.returncode, 1)
        self.assertIn("error[E0289]", above.stderr)

    def test_bytes(self):
        path = self.folder / "config.json"
        for bad in (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x00", b"\xe2\x82"):
            path.write_bytes(b'{"model_type": "llama' + bad + b'"}')
            done = run("import", path)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("error[E0280]", done.stderr)
        path.write_text('\ufeff{"model_type": "llama", "π😀": 1}', encoding="utf-8")
        done = run("import", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("π😀", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
