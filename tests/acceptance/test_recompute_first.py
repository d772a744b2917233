"""The first layers of a model recomputed, the others not: traces, formulas and memory are those of a model of
which each layer is one or the other."""

import re

from etchtest import MODELS, ask, lower, main, messages, nameless, run, traces, value
from pipeline import Stages
from shipped import params_of

SIZES = dict(layers=6, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=24, vocab=36, batch=16, seq=16,
             micro=4, dp=2, tp=2)
MESH = "dp", "tp"
DEEPSEEK = dict(dense_layers=1, experts=8, topk=2, expert_ffn=16, shared=1, q_rank=24, kv_rank=16, nope=8,
                rope_dim=8, v_dim=8, groups=1, top_groups=1, biased=0, mtp=0)
PLAN = """parallel {name} {{
  mesh [pp, dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  stage (embed, layer, head) @ pp, schedule = {schedule}
  {more}
  recompute = {what}
}}
"""
SCHEDULES = "one_f_one_b", "interleaved(virtual = 2)", "zb_v"


def spec_of(kinds, schedule="one_f_one_b", more="", train="", model="llama"):
    plans = "".join(PLAN.format(name=name, what=what, schedule=schedule, more=more)
                    for name, what in kinds.items())
    return f'etch 1\nimport "{MODELS / model}.etch"\nparam n >= 0 = 2\n{train}{plans}'


KINDS = {"kept": "none", "all": "layer", "some": "layer(first = n)", "chain": "full(first = n)"}
# Two loops of one name, one behind the other, and a loop inside of one.
TWO = """etch 1
param batch, width, deep, inside, n >= 0 = 0
dim B = batch, W = width
module step(x[B,W]) -> y[B,W] {
  weight u[W,W']
  h[B,W'] = x * u
  y = gelu(h)[W'->W]
}
model two(x[B,W]) -> l[] {
  repeat deep as layer { x = step(x) }
  weight m[W,W']
  y[B,W'] = x * m
  x = y[W'->W]
  repeat deep as layer {
    repeat inside as inner { x = step(x) }
  }
  l[] = mean(x, over = (B,W))  tag loss
}
train { model = two, optimizer = sgd, recompute = %s }
parallel p { mesh [dp]; shard B @ dp }
"""


class RecomputeFirst(Stages):
    def recomputed(self, folder):
        """By rank: iterations of `layer` that are recomputed."""
        found = {}
        for rank, file in traces(folder).items():
            matches = (re.match(r"R\d+\.layer(\d+)\.", node.name) for node in messages(file))
            found[rank] = {int(match[1]) for match in matches if match}
        return found

    def trees(self, spec, plan, **sets):
        folder = self.scratch / f"out_{plan}"
        lower(folder, spec, plan=plan, sets={**SIZES, **sets}, more=["--force"])
        self.assertFine(folder)
        return {rank: nameless(file) for rank, file in traces(folder).items()}

    def test_none_and_all(self):
        """No layer, and as many as there are or more, are what has its own word."""
        for schedule in SCHEDULES:
            spec = self.write("own.etch", spec_of(KINDS, schedule))
            kept, every = (self.trees(spec, plan, pp=2) for plan in ("kept", "all"))
            for plan in ("some", "chain"):
                self.assertTrue(kept == self.trees(spec, plan, pp=2, n=0), schedule)
                self.assertTrue(every == self.trees(spec, plan, pp=2, n=6), schedule)
            self.assertTrue(every == self.trees(spec, "some", pp=2, n=9), schedule)
            for quantity in ("memory(peak)", "rank_flops(step)", "traffic(step)"):
                for n, same in ((0, "kept"), (6, "all"), (9, "all")):
                    sets = {**SIZES, "pp": 2, "n": n}
                    for stage in (0, 1):
                        self.assertEqual(
                            value(spec, f"{quantity[:-1]}, stage = {stage})", plan=same, sets=sets),
                            value(spec, f"{quantity[:-1]}, stage = {stage})", plan="some", sets=sets),
                            (schedule, quantity, n))

    def test_layers_of_stages(self):
        """Of 6 layers and two blocks on two stages the first has 3; sums of traces are what queries say."""
        for schedule in ("one_f_one_b", "zb_h1"):
            spec = self.write("own.etch", spec_of(KINDS, schedule))
            for n in (1, 3, 4, 5):
                sets = {**SIZES, "pp": 2, "n": n}
                folder = lower(self.scratch / "out", spec, plan="some", sets=sets, more=["--force"])
                self.assertFine(folder)
                self.assertStages(folder, spec, "some", sets, dict(pp=2, dp=2, tp=2))
                for rank, layers in self.recomputed(folder).items():
                    own = range(3) if rank < 4 else range(3, 6)
                    self.assertEqual({layer for layer in own if layer < n}, layers, (n, rank))
        sets = {**SIZES, "pp": 1}
        for n in (0, 2, 5, 6, 8):
            folder = lower(self.scratch / "one", spec, plan="some", sets={**sets, "n": n}, more=["--force"])
            self.assertTotals(folder, spec, None, "some", {**sets, "n": n})

    def test_each_layer_costs_one(self):
        """What a layer recomputes and what it no longer keeps, times their number."""
        spec = self.write("own.etch", spec_of(KINDS))
        sets = {**SIZES, "pp": 1}
        def of(quantity, plan, n):
            return value(spec, quantity, plan=plan, sets={**sets, "n": n})
        layer = of("rank_flops(recompute)", "all", 0) / 6
        kept, every = (of("memory(activations)", plan, 0) for plan in ("kept", "all"))
        for n in range(7):
            self.assertEqual(n * layer, of("rank_flops(recompute)", "some", n))
            self.assertEqual(kept - n * (kept - every) / 6, of("memory(activations)", "some", n))
        text = ask(spec, "rank_flops(recompute)", plan="some", sets={"pp": 1})
        self.assertIn("min(layers, n)", text)

    def test_stages_by_an_expression(self):
        """The layers of the first stage, written with the axis."""
        kinds = {"part": "layer(first = layers/pp)", "some": "layer(first = n)"}
        spec = self.write("own.etch", spec_of(kinds))
        self.assertEqual(self.trees(spec, "part", pp=2), self.trees(spec, "some", pp=2, n=3))

    def test_scopes_and_runs(self):
        """A train block says the same; a scope adds layers of what it speaks of alone."""
        train = "train own { model = llama, optimizer = adamw, accumulate = (B, micro), " \
                "recompute = layer(first = n) }\n"
        plan = "parallel p { mesh [dp, tp]; shard B @ dp, K @ tp; %s }\n"
        spec = self.write("own.etch", spec_of({}, train=train) + plan % "")
        asked = "rank_flops(recompute, run = own)"
        sets = {**SIZES, "n": 2}
        expected = value(spec, asked, plan="p", sets=sets)
        self.assertGreater(expected, 0)
        for line in ("recompute = layer(first = n)", "for layer { recompute = full(first = n) }",
                     "for layer { recompute = layer(first = n) }",
                     "for llama { recompute = full(first = n) }"):
            spec = self.write("own.etch", spec_of({}, train=train) + plan % line)
            self.assertEqual(expected, value(spec, asked, plan="p", sets=sets), line)

    def test_loops_of_one_name(self):
        """They count on; a loop inside of an iteration goes with it."""
        sets = dict(batch=8, width=4, deep=3, inside=2, dp=2)
        flops = {}
        for what in ("layer", "layer(first = n)", "full(first = n)"):
            spec = self.write("two.etch", TWO % what)
            for n in range(8):
                flops[what, n] = value(spec, "rank_flops(recompute)", plan="p", sets={**sets, "n": n})
        step = flops["layer", 0] / 9
        for n in range(8):
            expected = step * (min(n, 3) + 2 * min(max(n - 3, 0), 3))
            self.assertEqual(expected, flops["layer(first = n)", n], n)
            self.assertEqual(expected, flops["full(first = n)", n], n)

    def test_mistakes(self):
        """What has no first iterations, and what is no option."""
        for what, code, word in (("inner(first = 2)", "E0348", "this is none"),
                                 ("step(first = 2)", "E0348", "this is none"),
                                 ("layers(first = 2)", "E0348", "did you mean 'layer'"),
                                 ("layer(last = 2)", "E0220", "layer(first = 8)"),
                                 ("layer(2)", "E0220", "layer(first = 8)"),
                                 ("layer(first = 0 - 3)", "E0521", "-3 is less than 0"),
                                 ("layer(first = 3/2)", "E0521", "3/2 is not an integer"),
                                 ("layer(first = depth)", "E0210", "depth")):
            spec = self.write("two.etch", TWO % what)
            done = run("query", spec, "flops(step)", "-q")
            self.assertNotEqual(0, done.status, what)
            self.assertIn(word, done.err, what)
            self.assertIn(code, done.err, what)

    def test_layers_that_differ_already(self):
        """Of a prefix of dense layers, and layers by turns, the first are recomputed as any."""
        for model, sizes in (("deepseek_v3", DEEPSEEK), ("gemma2", {"window": 8})):
            spec = self.write("own.etch", spec_of(KINDS, model=model))
            params = params_of(MODELS / f"{model}.etch")
            sets = {name: size for name, size in {**SIZES, **sizes}.items() if name in params or name in MESH}
            for n in (1, 2, 4):
                folder = lower(self.scratch / "out", spec, plan="some", sets={**sets, "pp": 2, "n": n},
                               more=["--force"])
                self.assertFine(folder)
                self.assertStages(folder, spec, "some", {**sets, "pp": 2, "n": n}, dict(pp=2, dp=2, tp=2))
                layers = set().union(*self.recomputed(folder).values())
                self.assertEqual(set(range(n)), layers, model)


if __name__ == "__main__":
    main()
