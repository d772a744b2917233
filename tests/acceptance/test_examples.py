"""What is shown of shipped plans: whole jobs as they were trained, on their meshes, written, read back, and
added up; small ones of the same plans for every model that can have them."""

import json

from etchtest import LLAMA, MODELS, Case, Formula, ask, lower, main, settings, succeed, trace, value
from pipeline import Stages
from test_shipped import SMALL, axes_of, listing, params_of

MIXTRAL, DEEPSEEK = MODELS / "mixtral.etch", MODELS / "deepseek_v3.etch"
DECODERS = ("deepseek_v3", "gemma", "gemma2", "gemma3", "gpt", "gpt_oss", "llama", "llama3_2", "mamba2",
            "mistral", "mixtral", "olmo2",
            "qwen2", "qwen3", "qwen3_moe")
WINDOWS = ("gemma2", "gemma3", "gpt_oss")


class Examples(Stages):
    def written(self, spec, config, plan, **sets):
        """The folder of a job and its manifest; it keeps every rule and finishes whatever the timing."""
        folder = lower(self.scratch / plan, spec, config, plan, sets, more=["-q"])
        self.assertFine(folder)
        self.assertIn("always: every rank finishes", succeed("verify", folder).out)
        return folder, json.loads((folder / "manifest.json").read_text(encoding="utf-8"))

    def planned(self, spec, config, plan, **sets):
        done = succeed("lower", spec, "--config", config, "--plan", plan, "--set", settings(sets), "-o",
                       self.scratch / "none",
                       "--dry-run", "--format", "json", "-q")
        return json.loads(done.out)

    def test_mixtral(self):
        """8x7B, tp = 2, ep = 8, dp = 8, pp = 4: expert parallelism is all of data parallelism."""
        sets = dict(pp=4, dp=8, ep=8, tp=2, batch=32, micro=4, seq=4096)
        folder, manifest = self.written(MIXTRAL, "mixtral_8x7b", "moe_pp", **sets)
        self.assertEqual([("pp", 4), ("edp", 1), ("ep", 8), ("tp", 2)],
                         [(axis["axis"], axis["size"]) for axis in manifest["mesh"]])
        self.assertEqual(64, manifest["ranks"])
        config = dict(layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=1, expert_ffn=14336,
                      vocab=32000,
                      experts=8, topk=2)
        self.assertStages(folder, MIXTRAL, "moe_pp", {**config, **sets}, dict(pp=4, edp=1, ep=8, tp=2))
        # Nothing is left of the axis of one rank; a rank of 16 has one of the eight experts' halves.
        axes = {comm["axes"] for stage in manifest["stages"] for comm in stage["comm"]}
        self.assertFalse([text for text in axes if "edp" in text], axes)
        # Each layer sends its tokens' choices there and back, forward and backward: 2 of 4096 numbers for
        # each token.
        # the first stage also embeds, the last has the head: 34 units
        tokens, layers = 32 * 4096 // 8 // 2, [8, 9, 8, 7]
        sent = [sum(int(comm["bytes"]) for comm in stage["comm"] if comm["collective"] == "all_to_all")
                for stage in manifest["stages"]]
        self.assertEqual([4 * 2 * tokens * 2 * 4096 * count for count in layers], sent)

    def test_fsdp(self):
        """Llama 3 8B on 64 ranks: each layer is gathered forward and backward; table, last norm and head
        once; and gradients are scattered, in each microbatch."""
        sets = dict(dp=64, batch=128, micro=2, seq=8192)
        folder, manifest = self.written(LLAMA, "llama3_8b", "fsdp", **sets)
        self.assertEqual(64, manifest["ranks"])
        self.assertTotals(folder, LLAMA, "llama3_8b", "fsdp", sets)
        moved = {comm["collective"]: comm for row in trace.totals(folder) for comm in row["comm"]}
        self.assertEqual({"all_gather", "reduce_scatter"}, set(moved))
        psi, root = 8030261248, 2 * 128256 * 4096 + 4096
        self.assertEqual(2 * 2 * (2 * psi - root) // 64, moved["all_gather"]["comm_size"])
        self.assertEqual(2 * 4 * psi, moved["reduce_scatter"]["comm_size"])

    def test_ulysses(self):
        """Llama 3 8B, a sequence over eight ranks: in attention each has a KV head and its four query
        heads."""
        sets = dict(cp=8, dp=1, tp=1, batch=2, micro=2, seq=32768)
        folder, manifest = self.written(LLAMA, "llama3_8b", "ulysses", **sets)
        self.assertEqual(8, manifest["ranks"])
        self.assertTotals(folder, LLAMA, "llama3_8b", "ulysses", sets)
        moved = {comm["collective"]: comm for row in trace.totals(folder) for comm in row["comm"]}
        # Queries, keys, values and results, forward and backward, in each of 32 layers and two microbatches.
        self.assertEqual(8 * 32 * 2, moved["all_to_all"]["nodes"])
        self.assertEqual(2 * 32 * 2 * (32768 // 8) * (2 * 32 + 2 * 8) * 128 * 2,
                         moved["all_to_all"]["comm_size"])

    def test_llama_405b(self):
        """As it was trained: on 8192 and 16384 ranks, and on the longest sequences."""
        for plan, ranks, sets in (("megatron_pp", 8192,
                                   dict(dp=64, pp=16, tp=8, seq=8192, batch=2048, micro=32)),
                                  ("megatron_pp", 16384,
                                   dict(dp=128, pp=16, tp=8, seq=8192, batch=2048, micro=16)),
                                  ("long_context_pp", 16384,
                                   dict(dp=8, pp=16, cp=16, tp=8, seq=131072, batch=128, micro=16))):
            with self.subTest(plan=plan, ranks=ranks):
                self.assertEqual(ranks, self.planned(LLAMA, "llama3_405b", plan, **sets)["ranks"])
                # 126 layers, embedding and head are 128 units: eight for each stage.
                text = ask(LLAMA, "comm(forward, op = all_gather, axis = tp, of = layer)", "llama3_405b",
                           plan, sets)
                tokens = sets["batch"] * sets["seq"] // sets["dp"] // sets.get("cp", 1)
                self.assertEqual(2 * 2 * tokens * 16384 // 8, Formula(text).at(None))

    def test_deepseek(self):
        """2048 ranks: 16 stages of 128, 64 of which share the experts; states of the optimizer are
        divided."""
        sets = dict(pp=16, dp=128, ep=64, seq=4096, batch=15360, micro=120)
        self.assertEqual(2048, self.planned(DEEPSEEK, "v3", "expert_pp", **sets)["ranks"])
        payload = value(DEEPSEEK, "comm(forward, op = all_to_all, axis = ep, of = moe)", "v3", "expert_pp",
                        sets)
        self.assertEqual(2 * 2 * (15360 * 4096 // 128) * 8 * 7168, payload)


class Everywhere(Case):
    def test_every_decoder_has_the_common_plans(self):
        common = listing(MODELS / "plans.etch")["plans"]
        for name in DECODERS:
            plans = listing(MODELS / f"{name}.etch")["plans"]
            for plan in common:
                gathers = plan in ("context_gather", "context_ring", "long_context_pp")
                experts = plan.startswith("moe_")
                left_out = (name == "mamba2" and (gathers or experts or plan == "ulysses")) or (
                    name in WINDOWS and gathers) or (name in ("gemma2", "gemma3") and experts)
                with self.subTest(model=name, plan=plan):
                    self.assertEqual(not left_out, plan in plans)

    def test_tensor_parallelism_divides_every_decoder(self):
        """Half of the work of each layer: nothing that could be divided is done twice."""
        for name in DECODERS:
            spec = MODELS / f"{name}.etch"
            for plan in ("megatron", "megatron_sp", "moe_ep"):
                if plan not in listing(spec)["plans"] or (plan != "moe_ep" and "experts" in params_of(spec)):
                    continue
                known = params_of(spec) | axes_of(spec, plan)
                sets = {key: size for key,
                        size in {**SMALL, "dp": 1, "ep": 1, "seq": 64}.items() if key in known}
                with self.subTest(model=name, plan=plan):
                    one = value(spec, "rank_flops(forward)", None, plan, {**sets, "tp": 1})
                    two = value(spec, "rank_flops(forward)", None, plan, {**sets, "tp": 2})
                    self.assertLess(two, one * 3 / 5)

    def test_in_a_spec_of_ones_own(self):
        """Dims of other names: what has the names is divided, what has not is listed."""
        spec = self.write("own.etch", '''etch 1
import "plans.etch"
param batch, width, deep
dim B = batch, W = width, F = deep
model net(x[B,W]) -> y[B,W] {
  weight up[W,F], down[F,W]
  h[B,F] = x * up
  y      = gelu(h) * down
  l[]    = mean(y * y, over = (B,W))  tag loss
}
train { model = net, optimizer = sgd }
''')
        text = ask(spec, "comm(forward)", plan="megatron")
        self.assertFormula(lambda v: 2 * v.batch * v.width / v.dp, text, {})
        done = succeed("check", spec, "--plan", "megatron_sp")
        for lack in ("dim K", "dim A", "dim V", "tag residual", "dim S", "dim H"):
            self.assertIn(f"lacks     {lack}   of plan megatron_sp", done.out)
        self.assertNotIn("warning", done.err)
        own = self.write("same.etch", spec.read_text(encoding="utf-8").replace('import "plans.etch"\n', "")
                         + "parallel p { mesh [dp, tp]; shard B @ dp, K @ tp, F @ tp }\n")
        done = succeed("check", own)
        self.assertIn("warning[E0426]: no dim is called 'K'", done.err)
        self.assertNotIn("lacks", done.out)


if __name__ == "__main__":
    main()
