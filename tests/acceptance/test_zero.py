"""ZeRO-1: what the ranks of an axis would hold alike of the optimizer is divided among them. Gradients are
reduce-scattered, each rank updates its part of every weight, and the parts are gathered; by hand, weight by
weight."""

import collections
import itertools
import math
import re

from decoder import BF16, F32
from etchtest import (BASE, GPT, LLAMA, Case, Point, ask, attribute, lower, main, messages, run, succeed,
                      table,
                      traces, value, with_plans)
from test_collectives import COLLECTIVES
from test_numbers import GPT_DIMS, LLAMA_DIMS

# hardly divisible by anything
SIZES = dict(layers=2, hidden=20, heads=8, kv_heads=4, head_dim=3, ffn=28, vocab=44)
GPT_SIZES = dict(layers=2, hidden=24, heads=4, vocab=52, positions=37)
STEP = dict(batch=48, seq=12, micro=2)

PLANS = """
parallel sharded {
  mesh  [dp]
  shard B @ dp
  zero  1 @ dp
}
parallel hybrid {                                # parts within dp, copies of them over rep
  mesh  [rep, dp, tp]
  shard B @ (rep,dp), K @ tp, F @ tp, V @ tp
  zero  1 @ dp
}
parallel everything {                       # gains, which tp does not divide, are updated in parts over both
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  zero  1 @ (dp,tp)
}
parallel tensor_only {
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  zero  1 @ tp
}
"""


def edited(more, *changes):
    """llama.etch with other lines, for a folder of its own."""
    text = with_plans(LLAMA).replace('"base.etch"', f'"{BASE}"') + more
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def llama_weights(v):
    """(elements, does tp divide it, how many there are)."""
    query, key = v.hidden * v.heads * v.head_dim, v.hidden * v.kv_heads * v.head_dim
    return [(v.hidden * v.vocab, True, 2), (query, True, 2 * v.layers), (key, True, 2 * v.layers),
            (v.hidden * v.ffn, True, 3 * v.layers), (v.hidden, False, 2 * v.layers + 1)]


def gpt_weights(v):
    square, gain = v.hidden ** 2, (v.hidden, False)
    return [(v.vocab * v.hidden, True, 1), (v.positions * v.hidden, False, 1), (square, True, 4 * v.layers),
            (v.hidden, True, 3 * v.layers), (4 * square, True, 2 * v.layers), (4 * v.hidden, True, v.layers),
            (*gain, 6 * v.layers + 2)]


def llama_sync(plan, v):
    """(collective, axes) -> bytes at the end of a step; and the elements that a rank updates."""
    tally, updated = collections.defaultdict(int), 0
    for elements, divided, count in (llama_weights if plan != "gpt" else gpt_weights)(v):
        if plan == "sharded":
            part = math.ceil(elements / v.dp)
            tally["reduce_scatter", "dp"] += count * F32 * part * v.dp
            tally["all_gather", "dp"] += count * BF16 * part
        elif plan in ("megatron_zero", "gpt"):
            part = math.ceil((elements / v.tp if divided else elements) / v.dp)
            tally["reduce_scatter", "dp"] += count * F32 * part * v.dp
            tally["all_gather", "dp"] += count * BF16 * part
            if not divided:  # each rank of tp has seen its own tokens only
                tally["all_reduce", "tp"] += count * F32 * part
        elif plan == "hybrid":
            part = math.ceil((elements / v.tp if divided else elements) / v.dp)
            tally["reduce_scatter", "dp"] += count * F32 * part * v.dp
            tally["all_reduce", "rep"] += count * F32 * part
            tally["all_gather", "dp"] += count * BF16 * part
        elif plan == "everything":
            part = math.ceil(elements / v.tp / v.dp)
            # of gains: of the part that tp has cut
            tally["reduce_scatter", "dp"] += count * F32 * part * v.dp
            tally["all_gather", "dp" if divided else "(dp,tp)"] += count * BF16 * part
        else:
            part = elements / v.tp if divided else math.ceil(elements / v.tp)
            tally["all_reduce", "dp"] += count * F32 * part
            if not divided:
                tally["all_gather", "tp"] += count * BF16 * part
        updated += count * part
    return tally, updated


LLAMA_PLANS = {"sharded": ("dp",), "megatron_zero": ("dp", "tp", "(dp,tp)"),
               "hybrid": ("rep", "dp", "tp", "(rep,dp)"),
               "everything": ("dp", "tp", "(dp,tp)"), "tensor_only": ("dp", "tp", "(dp,tp)")}


class Formulas(Case):
    def setUp(self):
        super().setUp()
        self.spec = self.write("llama.etch", edited(PLANS))

    def test_collectives_of_the_end_of_a_step(self):
        for plan, axes in LLAMA_PLANS.items():
            for op, axis in itertools.product(COLLECTIVES, axes):
                with self.subTest(plan=plan, op=op, axis=axis):
                    text = ask(self.spec, f"comm(sync, op = {op}, axis = {axis})", plan=plan)
                    self.assertFormula(lambda v: llama_sync(plan, v)[0].get((op, axis), 0), text, LLAMA_DIMS)
            with self.subTest(plan=plan):
                text = ask(self.spec, "comm(sync)", plan=plan)
                self.assertFormula(lambda v: sum(llama_sync(plan, v)[0].values()), text, LLAMA_DIMS)

    def test_optimizer(self):
        for plan in LLAMA_PLANS:
            with self.subTest(plan):
                self.assertFormula(lambda v: 12 * llama_sync(plan, v)[1],
                                   ask(self.spec, "rank_flops(optimizer)", plan=plan), LLAMA_DIMS)
                self.assertFormula(lambda v: 30 * llama_sync(plan, v)[1],
                                   ask(self.spec, "traffic(optimizer)", plan=plan), LLAMA_DIMS)

    def test_the_rest_of_the_step_is_the_same(self):
        for query in ("comm(forward)", "comm(backward)", "rank_flops(forward)", "rank_flops(backward)",
                      "flops(optimizer)", "traffic(forward)", "traffic(backward)"):
            with self.subTest(query):
                self.assertEqual(ask(self.spec, query, plan="megatron_sp"),
                                 ask(self.spec, query, plan="megatron_zero"))

    def test_modules_add_up(self):
        sets = {**SIZES, **STEP, "dp": 3, "tp": 4}
        rows, total = table(self.spec, "comm(sync)", "module", plan="megatron_zero", sets=sets)
        self.assertEqual(total, sum(rows.values()))
        self.assertGreater(len(rows), 3)

    def test_gpt(self):
        for op, axis in itertools.product(COLLECTIVES, ("dp", "tp", "(dp,tp)")):
            with self.subTest(op=op, axis=axis):
                text = ask(GPT, f"comm(sync, op = {op}, axis = {axis})", plan="megatron_zero")
                self.assertFormula(lambda v: llama_sync("gpt", v)[0].get((op, axis), 0), text, GPT_DIMS)
        self.assertFormula(lambda v: 12 * llama_sync("gpt", v)[1],
                           ask(GPT, "rank_flops(optimizer)", plan="megatron_zero"), GPT_DIMS)


class Facts(Case):
    """Where sizes are known to be divisible there is no padding, and nothing is rounded up."""

    FACTS = "param dp, tp\nassume dp*tp | hidden, tp | kv_heads, tp | ffn, tp | vocab\n"

    def test_ring_traffic_is_that_of_one_all_reduce(self):
        """Rajbhandari et al. 2020 (arXiv 1910.02054): 2 Psi elements times (d - 1)/d, sharded or not."""
        checks = """
check wire(sync, plan = sharded) == 2*2*params(model)*(dp - 1)/dp
check wire(sync, plan = sharded) == wire(sync, plan = ddp)
check comm(sync, plan = sharded) == 2*params(model)*(1 + 1/dp)
check rank_flops(optimizer, plan = sharded)*dp == flops(optimizer)
"""
        bf16 = self.write("bf16.etch", edited(PLANS + self.FACTS + "dtype grads = bf16\n" + checks))
        done = succeed("check", bf16)
        self.assertEqual(6, len(re.findall(r"(?m)^proved ", done.out)), done)

    def test_nothing_is_rounded(self):
        spec = self.write("facts.etch", edited(PLANS + self.FACTS))
        for plan in ("sharded", "megatron_zero", "everything"):
            for query in ("comm(step)", "wire(step)", "rank_flops(step)", "traffic(step)"):
                with self.subTest(plan=plan, query=query):
                    text = ask(spec, query, plan=plan)
                    self.assertNotRegex(text, "ceil|floor")
        self.assertIn("ceil", ask(LLAMA, "comm(sync)", plan="megatron_zero"))

    def test_what_is_divided_adds_up(self):
        """The ranks update all weights together, each once, when nothing is padded."""
        sets = dict(layers=3, hidden=64, heads=8, kv_heads=4, head_dim=16, ffn=96, vocab=128, batch=16,
                    seq=32,
                    micro=1, dp=4, tp=4)
        spec = self.write("llama.etch", edited(PLANS))
        ranks = 16 * value(spec, "rank_flops(optimizer)", plan="everything", sets=sets)
        self.assertEqual(value(spec, "flops(optimizer)", sets=sets), ranks)


class Traces(Case):
    def lowered(self, spec, plan, sets):
        folder = lower(self.scratch / f"{plan}.{'.'.join(str(size) for size in sets.values())}", spec,
                       plan=plan,
                       sets=sets)
        self.assertFine(folder)
        self.assertTotals(folder, spec, None, plan, sets)
        return folder

    def test_totals(self):
        spec = self.write("llama.etch", edited(PLANS))
        for mesh in (dict(dp=2, tp=2), dict(dp=3, tp=4), dict(dp=1, tp=2), dict(dp=4, tp=1)):
            for plan in LLAMA_PLANS:
                sets = {**SIZES, **STEP, **mesh}
                if plan == "sharded":
                    del sets["tp"]
                if plan == "hybrid":
                    sets["rep"] = 2
                with self.subTest(plan=plan, **mesh):
                    folder = self.lowered(spec, plan, sets)
                    v = Point(0, **{"tp": 1, **sets})
                    _, updated = llama_sync(plan, v)
                    nodes = [node for node in messages(traces(folder)[0]) if node.name.startswith("O")]
                    self.assertEqual(12 * updated, sum(attribute(node, "num_ops") for node in nodes))

    def test_gpt(self):
        for mesh in (dict(dp=2, tp=2), dict(dp=3, tp=4), dict(dp=1, tp=4), dict(dp=4, tp=1)):
            with self.subTest(**mesh):
                self.lowered(GPT, "megatron_zero", {**GPT_SIZES, **STEP, **mesh})

    def test_order(self):
        """Gradients of a layer are reduced, its part of the weights is updated, and what was updated is
        gathered."""
        clip = self.write("clip.etch", edited(PLANS, ("accumulate = (B, micro)",
                                                      "accumulate = (B, micro), clip = 1.0")))
        for spec in (LLAMA, clip):
            sets = {**SIZES, **STEP, "dp": 3, "tp": 2}
            folder = self.lowered(spec, "megatron_zero", sets)
            nodes = {node.name: node for node in messages(traces(folder)[0])}
            names = {node.id: name for name, node in nodes.items()}

            def parents(name):
                return [names[parent] for parent in nodes[name].data_deps]

            def above(name):
                found, open_ = set(), [name]
                while open_:
                    for parent in parents(open_.pop()):
                        if parent not in found:
                            found.add(parent)
                            open_.append(parent)
                return found

            for layer in range(sets["layers"]):
                unit = f"layer{layer}."
                reduced = [f"S.{unit}grads.dp.reduce_scatter", f"S.{unit}grads.tp.all_reduce"]
                self.assertIn(reduced[0], parents(reduced[1]))
                self.assertTrue(set(reduced) <= above(f"O.{unit}adamw"), unit)
                self.assertIn(f"O.{unit}adamw", parents(f"S.{unit}weights.dp.all_gather"))
                if spec == clip:
                    self.assertIn("S.grad_norm.all_reduce", parents(f"O.{unit}adamw"))
            if spec == clip:  # each rank squares what it updates
                self.assertEqual(2 * llama_sync("megatron_zero", Point(0, **sets))[1],
                                 attribute(nodes["O.grad_norm"], "num_ops"))

    def test_an_axis_of_one_rank_divides_nothing(self):
        sets = {**SIZES, **STEP, "dp": 1, "tp": 2}
        for query in ("comm(step)", "rank_flops(step)", "traffic(step)"):
            self.assertEqual(value(LLAMA, query, plan="megatron_sp", sets=sets),
                             value(LLAMA, query, plan="megatron_zero", sets=sets))


class Refused(Case):
    def test_nothing_to_divide(self):
        spec = self.write("tiny.etch", """etch 1
param batch, hidden, ffn
dim B = batch, H = hidden, F = ffn
model tiny(x[B,H]) -> l[] {
  weight w[H,F], v[F,H]
  h[B,F] = x * w
  y[B,H] = h * v
  l      = sum(y, over = (B,H))  tag loss
}
train { model = tiny, optimizer = adamw(master = true) }
parallel p {
  mesh  [dp, tp]
  shard B @ dp, F @ tp
  zero  1 @ tp
}
""")
        done = run("query", spec, "comm(step)")
        self.assertEqual((1, 1), (done.status, len(done.errors())), done)
        error = done.errors()[0]
        self.assertEqual(("E0404", "14"), (error["code"], error["line"]))
        self.assertIn("tp", error["text"])


if __name__ == "__main__":
    main()
