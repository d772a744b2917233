"""Chunks that come back (zb_v): which stage holds which layers, by hand; formulas of the first, a middle and
the last stage are what each stage has; both ends of the model are on one stage, where tied weights are one;
and an order of a plan's own that goes to and fro."""

import json
import re

from etchtest import (GPT, LLAMA, Case, Formula, Point, ask, lower, main, messages, run, succeed, table,
                      traces, value)
from pipeline import Stages, windows

SPEC = """etch 1
import "{model}"
parallel pipe {{
  mesh [pp, dp, tp]
  shard B @ dp, {dims}
  stage (embed, layer, head) @ pp, schedule = {schedule}
}}
"""
DIMS = {LLAMA: "K @ tp, F @ tp, V @ tp", GPT: "A @ tp, F @ tp, V @ tp"}
SIZES = {LLAMA: dict(hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=24, vocab=36),
         GPT: dict(hidden=24, heads=4, vocab=52, positions=37)}
STEP = dict(batch=24, seq=16, micro=3)
WAYS = [(2, 4), (2, 7), (3, 5), (3, 4), (4, 9)]
ORDER = 'list("F0.0 F1.0 F0.1 I0.1 F1.1 I1.1 B0.0 B1.0 W0.1 W1.1", "F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0"'


def stages_of(layers, stages):
    """For each stage the units of its chunks: out along the chain, and back."""
    links = windows(layers + 2, stages, 2)
    return [(links[stage], links[2 * stages - 1 - stage]) for stage in range(stages)]


class Mirrored(Stages):
    def spec(self, model=LLAMA, schedule="zb_v"):
        return self.write("mirrored.etch", SPEC.format(model=model, dims=DIMS[model], schedule=schedule))

    def by_stage(self, spec, query, sets):
        rows, _ = table(spec, query, "stage", plan="pipe", sets=sets)
        return [rows[str(stage)] for stage in range(sets["pp"])]

    def test_layers(self):
        """Layers are equal, so FLOP forward are those of a layer for each, and what the ends have."""
        spec = self.spec()
        alone = {**SIZES[LLAMA], **STEP, "dp": 1, "tp": 1, "pp": 1}
        two, three = (value(spec, "rank_flops(forward)", plan="pipe", sets={**alone, "layers": layers})
                      for layers in (2, 3))
        for stages, layers in WAYS:
            found = self.by_stage(spec, "rank_flops(forward)", {**alone, "pp": stages, "layers": layers})
            for stage, chunks in enumerate(stages_of(layers, stages)):
                units = {unit for chunk in chunks for unit in chunk}
                held = len(units & set(range(1, layers + 1)))
                self.assertEqual(stage == 0, {0, layers + 1} <= units)
                self.assertEqual(held * (three - two) + (3 * two - 2 * three) * (stage == 0), found[stage])

    def test_messages(self):
        """The first stage and the last one send once less in each direction; traces are what queries say."""
        spec = self.spec()
        for stages, layers in WAYS:
            sets = {**SIZES[LLAMA], **STEP, "dp": 1, "tp": 1, "pp": stages, "layers": layers}
            each = 2 * 24 * 16 * 32
            self.assertEqual([(2 if stage in (0, stages - 1) else 4) * each for stage in range(stages)],
                             self.by_stage(spec, "comm(step, op = send)", sets))
            folder = lower(self.scratch / f"{stages}.{layers}", spec, plan="pipe", sets=sets)
            self.assertFine(folder)
            self.assertStages(folder, spec, "pipe", sets, dict(pp=stages, dp=1, tp=1))

    def test_formulas(self):
        for model in (LLAMA, GPT):
            spec = self.spec(model)
            for query in ("rank_flops(step)", "traffic(step)", "comm(step)", "comm(step, op = send)",
                          "rank_flops(optimizer)", "comm(sync)", "rank_params(model)",
                          "memory(activations)"):
                done = succeed("query", spec, query, "--plan", "pipe", "--by", "stage", "--format", "json")
                formulas = {row["label"]: Formula(row["formula"]) for row in json.loads(done.out)["rows"]}
                for stages, layers in ((2, 6), (2, 8), (3, 10), (4, 17), (5, 18)):
                    sets = {**SIZES[model], **STEP, "layers": layers, "dp": 2, "tp": 2, "pp": stages}
                    for stage, bound in enumerate(self.by_stage(spec, query, sets)):
                        kind = "first" if stage == 0 else "last" if stage == stages - 1 else "middle"
                        with self.subTest(model=model.stem, query=query, stages=stages, stage=stage):
                            self.assertEqual(bound, formulas[kind].at(Point(0, **sets, stage=stage)))

    def test_tied(self):
        """The table of GPT is on the first stage alone: all stages together have every weight once, and there
        is nothing to add up."""
        spec = self.spec(GPT)
        sets = {**SIZES[GPT], **STEP, "layers": 6, "dp": 1, "tp": 1, "pp": 3}
        self.assertEqual(value(spec, "params(model)", sets=sets),
                         sum(self.by_stage(spec, "rank_params(model)", sets)))
        self.assertEqual("0", ask(spec, "comm(sync, axis = pp, stage = first)", plan="pipe"))
        folder = lower(self.scratch / "tied", spec, plan="pipe", sets=sets)
        self.assertEqual([], [node.name for path in traces(folder).values() for node in messages(path)
                              if ".pp." in node.name])

    def test_an_order_of_its_own(self):
        spec = self.spec(schedule=ORDER + ", chunks = mirrored)")
        sets = {**SIZES[LLAMA], **STEP, "micro": 2, "layers": 6, "dp": 1, "tp": 1, "pp": 2}
        folder = lower(self.scratch / "order", spec, plan="pipe", sets=sets)
        self.assertFine(folder)
        self.assertStages(folder, spec, "pipe", sets, dict(pp=2, dp=1, tp=1))
        self.assertTrue(all(re.search(r"\.(send|recv)\.stage", node.name) is None or ".chunk" in node.name
                            for path in traces(folder).values() for node in messages(path)))


class Looped(Case):
    def test_the_order_of_the_other_map_stalls(self):
        """Chunk 1 of the first stage would be the third link: nothing comes back to it."""
        spec = self.write("looped.etch", SPEC.format(model=LLAMA, dims=DIMS[LLAMA], schedule=ORDER + ")"))
        done = run("check", spec)
        self.assertIn("E0443", done.err)


if __name__ == "__main__":
    main()
