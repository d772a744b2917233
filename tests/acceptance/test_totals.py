"""What the nodes of a rank add up to is what queries say, for every shipped model, config and plan at small
sizes; and the full-size run of Llama-3-8B on 64 ranks."""

import collections
import json
import re

import decoder
from etchtest import GPT, LLAMA, PLANS, Case, Point, attribute, lower, main, messages, trace, traces, value

# Every config, with its relations between sizes kept that matter to a plan: heads in groups, or not.
LLAMA_CONFIGS = {
    "llama2_7b": dict(layers=2, hidden=32, heads=4, kv_heads=4, head_dim=8, ffn=88, vocab=64),
    "llama2_70b": dict(layers=3, hidden=64, heads=32, kv_heads=4, head_dim=2, ffn=64, vocab=48),
    "llama3_8b": dict(layers=2, hidden=64, heads=16, kv_heads=4, head_dim=4, ffn=224, vocab=2004),
    "llama3_70b": dict(layers=3, hidden=16, heads=32, kv_heads=4, head_dim=6, ffn=28, vocab=12),
    "llama3_405b": dict(layers=2, hidden=8, heads=64, kv_heads=4, head_dim=2, ffn=52, vocab=20),
}
GPT_CONFIGS = {
    "gpt2": dict(layers=2, hidden=24, heads=4, vocab=52, positions=40),
    "gpt3_175b": dict(layers=3, hidden=32, heads=8, vocab=64, positions=16),
}
MESHES = (
    dict(dp=1, tp=1, micro=1),
    dict(dp=2, tp=1, micro=2),
    dict(dp=1, tp=4, micro=1),
    dict(dp=2, tp=2, micro=2),
    dict(dp=4, tp=2, micro=1),
)


class SmallSizes(Case):
    def lowered(self, spec, config, small, mesh, plan):
        sets = {**small, "batch": 8, "seq": 16, **mesh}
        if plan == "ddp":
            del sets["tp"]
        folder = lower(self.scratch / f"{config}.{plan}.{mesh['dp']}.{mesh['tp']}.{mesh['micro']}", spec,
                       config,
                       plan, sets)
        return folder, sets

    def every(self, spec, configs):
        for config, small in configs.items():
            for plan in PLANS:
                for mesh in MESHES:
                    if plan == "ddp" and mesh["tp"] > 1:
                        continue  # the plan has no such axis
                    with self.subTest(config=config, plan=plan, **mesh):
                        folder, sets = self.lowered(spec, config, small, mesh, plan)
                        self.assertTotals(folder, spec, config, plan, sets)
                        self.assertFine(folder)

    def test_llama(self):
        self.every(LLAMA, LLAMA_CONFIGS)

    def test_gpt(self):
        self.every(GPT, GPT_CONFIGS)

    def test_phases(self):
        """The same by phase: the letter in front of a node's name says which one it belongs to."""
        phases = {"F": "forward", "R": "recompute", "B": "backward", "S": "sync", "O": "optimizer"}
        mesh = dict(dp=2, tp=2, micro=2)
        for spec, configs, config in ((LLAMA, LLAMA_CONFIGS, "llama3_8b"), (GPT, GPT_CONFIGS, "gpt3_175b")):
            for plan in ("megatron", "megatron_sp"):
                folder, sets = self.lowered(spec, config, configs[config], mesh, plan)
                manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
                # Only a lookup has no FLOP; a node has one at least.
                padding = int(manifest["stages"][0]["flop_padding"])
                flops, payload = collections.Counter(forward=-padding), collections.Counter()
                for node in messages(traces(folder)[0]):
                    phase = phases[re.match("[A-Z]", node.name)[0]]
                    if node.type == trace.COMP:
                        flops[phase] += attribute(node, "num_ops")
                    else:
                        payload[phase] += attribute(node, "comm_size")
                for phase in phases.values():
                    with self.subTest(model=spec.stem, plan=plan, phase=phase):
                        self.assertEqual(value(spec, f"rank_flops({phase})", config, plan, sets),
                                         flops[phase])
                        self.assertEqual(value(spec, f"comm({phase})", config, plan, sets), payload[phase])

    def test_ranks_share_the_work(self):
        """Data parallel ranks do the work of the job together, except that each updates all weights."""
        config, small = "llama3_8b", LLAMA_CONFIGS["llama3_8b"]
        sets = {**small, "batch": 8, "seq": 16, "dp": 4, "micro": 1}
        for phase in ("forward", "backward"):
            job = value(LLAMA, f"flops({phase})", config, sets=sets)
            self.assertEqual(job, 4 * value(LLAMA, f"rank_flops({phase})", config, "ddp", sets))
        self.assertEqual(value(LLAMA, "flops(optimizer)", config, sets=sets),
                         value(LLAMA, "rank_flops(optimizer)", config, "ddp", sets))


class FullSize(Case):
    SETS = dict(dp=8, tp=8, batch=16, micro=2, seq=8192)

    def test_llama3_8b_on_64_ranks(self):
        folder = lower(self.scratch / "out", LLAMA, "llama3_8b", "megatron_sp", self.SETS)
        self.assertEqual([f"llama.{rank}.et" for rank in range(64)],
                         [path.name for _, path in sorted(traces(folder).items())])
        self.assertEqual(66, len(list(folder.iterdir())))
        self.assertFine(folder)
        self.assertTotals(folder, LLAMA, "llama3_8b", "megatron_sp", self.SETS)
        v = Point(0, layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256,
                  **self.SETS)
        expected = collections.Counter()
        for (_, op, axis), size in decoder.llama_collectives("megatron_sp", v).items():
            expected[op, axis] += size
        rows = trace.totals(folder)
        self.assertEqual(1, len(rows))
        found = {(row["collective"], row["axes"]): row["comm_size"] for row in rows[0]["comm"]}
        self.assertEqual(dict(expected), found)


if __name__ == "__main__":
    main()
