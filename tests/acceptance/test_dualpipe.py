"""DualPipe, whose chain is there twice (DeepSeek-AI 2024, arXiv 2412.19437): what a stage holds, computes
and sends, by hand; the stages that have the same weights add up their gradients; formulas of the first, a
middle and the last stage are what each stage has; and numbers of stages and microbatches that it has no order
for."""

import json

from etchtest import (GPT, LLAMA, Formula, Point, lower, main, messages, run, succeed, table, traces,
                      value)
from pipeline import Stages, windows

SPEC = """etch 1
import "{model}"
{trains}parallel pipe {{
  mesh [pp, dp, tp]
  shard B @ dp, {dims}
  stage (embed, layer, head) @ pp, schedule = dualpipe
  {more}
}}
"""
DIMS = {LLAMA: "K @ tp, F @ tp, V @ tp", GPT: "A @ tp, F @ tp, V @ tp"}
SIZES = {LLAMA: dict(hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=24, vocab=36),
         GPT: dict(hidden=24, heads=4, vocab=52, positions=37)}
STEP = dict(batch=48, seq=16, micro=12)
WAYS = [(2, 4), (2, 7), (4, 6), (4, 9), (6, 11)]


def stages_of(layers, stages):
    """For each stage its units: those of a link of the chain, and of the link as far from the other end."""
    links = windows(layers + 2, stages)
    return [{*links[stage], *links[stages - 1 - stage]} for stage in range(stages)]


class DualPipe(Stages):
    def spec(self, model=LLAMA, more="", trains=""):
        return self.write("dual.etch", SPEC.format(model=model, dims=DIMS[model], more=more, trains=trains))

    def by_stage(self, spec, query, sets):
        rows, _ = table(spec, query, "stage", plan="pipe", sets=sets)
        return [rows[str(stage)] for stage in range(sets["pp"])]

    def test_layers(self):
        """A stage does half of the microbatches for each of its layers, which another one has as well; the
        optimizer all of it on both."""
        spec = self.spec()
        alone = {**SIZES[LLAMA], **STEP, "dp": 1, "tp": 1, "pp": 1}
        for query, share in (("rank_flops(forward)", 2), ("rank_flops(backward)", 2),
                             ("rank_flops(optimizer)", 1), ("rank_params(model)", 1),
                             ("memory(states)", 1)):
            two, three = (value(spec, query, plan="pipe", sets={**alone, "layers": layers})
                          for layers in (2, 3))
            ends = 3 * two - 2 * three
            for stages, layers in WAYS:
                found = self.by_stage(spec, query, {**alone, "pp": stages, "layers": layers})
                for stage, units in enumerate(stages_of(layers, stages)):
                    held = len(units & set(range(1, layers + 1)))
                    self.assertEqual(stage in (0, stages - 1), {0, layers + 1} <= units)
                    expected = held * (three - two) + ends * (stage in (0, stages - 1))
                    self.assertEqual(expected, share * found[stage], (query, stages, layers, stage))

    def test_messages(self):
        """Half of the microbatches pass a boundary in each copy of the chain, forward and back."""
        spec = self.spec()
        for stages, layers in WAYS:
            sets = {**SIZES[LLAMA], **STEP, "dp": 1, "tp": 1, "pp": stages, "layers": layers}
            each = 2 * 48 * 16 * 32
            self.assertEqual([(1 if stage in (0, stages - 1) else 2) * each for stage in range(stages)],
                             self.by_stage(spec, "comm(step, op = send)", sets))

    def test_gradients(self):
        """Of every weight, the two stages that hold it add up what they have, 4 bytes of an element: of what
        a rank updates, whose two moments have 8."""
        for model, more in ((LLAMA, ""), (LLAMA, "zero 1 @ dp"), (GPT, "zero 3 @ dp"),
                            (GPT, "zero 2 @ dp\n  reduce = microbatch")):
            sets = {**SIZES[model], **STEP, "layers": 9, "dp": 2, "tp": 1, "pp": 4}
            spec = self.spec(model, more)
            moments = self.by_stage(spec, "memory(moments)", sets)
            self.assertEqual([held // 2 for held in moments],
                             self.by_stage(spec, "comm(sync, axis = pp)", sets))
            folder = lower(self.scratch / f"{model.stem}.{len(more)}", spec, plan="pipe", sets=sets)
            self.assertFine(folder)
            self.assertStages(folder, spec, "pipe", sets, dict(pp=4, dp=2, tp=1))

    def test_norm(self):
        """All stages together square every gradient once, though they hold each twice."""
        sets = {**SIZES[GPT], **STEP, "layers": 9, "dp": 1, "tp": 1}
        spec = self.spec(GPT, trains="".join(
            f"train {name} {{ model = gpt, optimizer = sgd, accumulate = (B, micro){clip} }}\n"
            for name, clip in (("free", ""), ("clipped", ", clip = 1.0"))))
        norm = {}
        for stages in (1, 4):
            sums = [sum(self.by_stage(spec, f"rank_flops(optimizer, run = {name})", {**sets, "pp": stages}))
                    if stages > 1 else
                    value(spec, f"rank_flops(optimizer, run = {name})", plan="pipe", sets={**sets, "pp": 1})
                    for name in ("free", "clipped")]
            norm[stages] = sums[1] - sums[0]
        self.assertEqual(norm[1], norm[4])

    def test_groups(self):
        """Gradients of layers go between a stage and its mirror image, those of both ends as well."""
        spec = self.spec(GPT)
        sets = {**SIZES[GPT], **STEP, "layers": 10, "dp": 2, "tp": 1, "pp": 4}
        folder = lower(self.scratch / "groups", spec, plan="pipe", sets=sets)
        groups = json.loads((folder / "comm_group.json").read_text(encoding="utf-8"))
        crossing = {tuple(int(rank) for rank in members) for members in groups.values()
                    if len({int(rank) // 2 for rank in members}) > 1}
        self.assertEqual({(2 * stage + dp, 2 * (3 - stage) + dp) for stage in (0, 1) for dp in (0, 1)},
                         crossing)

    def test_formulas(self):
        for model in (LLAMA, GPT):
            spec = self.spec(model)
            for query in ("rank_flops(step)", "traffic(step)", "comm(step)", "comm(step, op = send)",
                          "rank_flops(optimizer)", "comm(sync)", "rank_params(model)", "memory(states)",
                          "memory(activations)"):
                done = succeed("query", spec, query, "--plan", "pipe", "--by", "stage", "--format", "json")
                formulas = {row["label"]: Formula(row["formula"]) for row in json.loads(done.out)["rows"]}
                for stages, layers in ((2, 3), (2, 6), (4, 9), (4, 17), (6, 11), (6, 18)):
                    sets = {**SIZES[model], **STEP, "layers": layers, "dp": 2, "tp": 2, "pp": stages}
                    for stage, bound in enumerate(self.by_stage(spec, query, sets)):
                        kind = "first" if stage == 0 else "last" if stage == stages - 1 else "middle"
                        with self.subTest(model=model.stem, query=query, stages=stages, layers=layers,
                                          stage=stage):
                            self.assertEqual(bound, formulas[kind].at(Point(0, **sets, stage=stage)))

    def test_microbatches(self):
        """Each goes through all of one copy: even ones from the first stage on, odd ones from the last."""
        spec = self.spec()
        sets = {**SIZES[LLAMA], **STEP, "layers": 6, "micro": 8, "dp": 1, "tp": 1, "pp": 4}
        folder = lower(self.scratch / "numbers", spec, plan="pipe", sets=sets)
        for rank, path in traces(folder).items():
            sent = {(node.name.split(".")[0], ".".join(node.name.split(".")[1:3])) for node in messages(path)
                    if node.name.startswith("F") and ".send." in node.name}
            expected = {(f"F{i}", f"send.stage{int(rank) + (1 if i % 2 == 0 else -1)}") for i in range(8)
                        if 0 <= int(rank) + (1 if i % 2 == 0 else -1) < 4}
            self.assertEqual(expected, sent)

    def test_numbers_without_an_order(self):
        spec = self.spec()
        sizes = ",".join(f"{name}={size}" for name, size in SIZES[LLAMA].items())
        for sets, said in (("pp=3,micro=8", "an even number of stages, and there are 3"),
                           ("pp=3", "an even number of stages, and there are 3"),
                           ("pp=4,micro=9", "an even number of microbatches, and there are 9"),
                           ("micro=9", "an even number of microbatches, and there are 9"),
                           ("pp=4,micro=6", "2 microbatches or more for each stage, and 4 stages have 6")):
            for query in ("comm(step)", "memory(peak)"):
                done = run("query", spec, query, "--plan", "pipe", "--set",
                           f"{sizes},batch=72,seq=16,layers=10,dp=1,tp=1,{sets}")
                self.assertEqual(1, done.status)
                self.assertIn("error[E0527]: dualpipe", done.err)
                self.assertIn(said, done.err)
        self.assertIn("an even number", run("query", spec, "comm(step)", "--plan", "pipe").err)

    def test_sweep(self):
        """Rows that it has an order for are those of queries; others are left out, and counted."""
        spec = self.spec()
        sets = {**SIZES[LLAMA], "batch": 48, "seq": 16, "layers": 10, "dp": 1, "tp": 1}
        words = ",".join(f"{name}={size}" for name, size in sets.items())
        done = succeed("sweep", spec, "--plan", "pipe", "--set", words, "--over", "pp = 2, 3, 4",
                       "--over", "micro = 3, 4, 6, 8, 12", "--select", "comm(step), memory(peak)",
                       "--format", "csv")
        rows = [line.split(",") for line in done.out.splitlines()[1:]]
        self.assertEqual([["2", "4"], ["2", "6"], ["2", "8"], ["2", "12"], ["4", "8"], ["4", "12"]],
                         [row[:2] for row in rows])
        for pp, micro, comm, peak in rows:
            at = {**sets, "pp": int(pp), "micro": int(micro)}
            self.assertEqual(int(comm), max(self.by_stage(spec, "comm(step)", at)))
            self.assertEqual(int(peak), max(self.by_stage(spec, "memory(peak)", at)))
        self.assertIn("9 refused, E0527", done.err)


if __name__ == "__main__":
    main()
