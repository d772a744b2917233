"""The collectives of a step, derived from the plans, against collectives by hand: as formulas and as
numbers."""

import itertools
from fractions import Fraction

import decoder
from etchtest import GPT, LLAMA, PLANS, POINTS, Case, Formula, Point, ask, main, value
from test_numbers import GPT_DIMS, LLAMA_DIMS

MODELS = ((LLAMA, LLAMA_DIMS, decoder.llama_collectives), (GPT, GPT_DIMS, decoder.gpt_collectives))
PHASES = ("forward", "recompute", "backward", "sync", "optimizer")
COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all")


def axes_of(plan):
    return ("dp",) if plan == "ddp" else ("dp", "tp", "(dp,tp)")


def payload(tally, op, axis):
    return sum(size for (_, of_op, of_axis), size in tally.items() if (of_op, of_axis) == (op, axis))


def ranks_of(axis, v):
    return {"dp": v.dp, "tp": v.tp, "(dp,tp)": v.dp * v.tp}[axis]


class Formulas(Case):
    def test_every_phase_collective_and_axis(self):
        for spec, dims, collectives in MODELS:
            for plan in PLANS:
                for phase, op, axis in itertools.product(PHASES, COLLECTIVES, axes_of(plan)):
                    with self.subTest(model=spec.stem, plan=plan, phase=phase, op=op, axis=axis):
                        text = ask(spec, f"comm({phase}, op = {op}, axis = {axis})", plan=plan)
                        self.assertFormula(lambda v: collectives(plan, v).get((phase, op, axis), 0), text,
                                           dims)

    def test_sums(self):
        for spec, dims, collectives in MODELS:
            for plan in PLANS:
                with self.subTest(model=spec.stem, plan=plan):
                    text = ask(spec, "comm(step)", plan=plan)
                    self.assertFormula(lambda v: sum(collectives(plan, v).values()), text, dims)

    def test_ring_traffic_of_a_layer(self):
        """Without sequence parallelism, and with it when gathered inputs are not kept: 8 and 10 times b s h
        (t-1)/t."""
        for plan, times in (("megatron", 8), ("megatron_sp", 10)):
            with self.subTest(plan):
                found = Formula(ask(LLAMA, "wire(step, axis = tp)", plan=plan), LLAMA_DIMS)
                for v in POINTS:
                    unit = v.batch / v.dp * v.seq * v.hidden * (v.tp - 1) / v.tp
                    deeper = Point(v.seed, layers=v.layers + 1)
                    self.assertEqual(times * decoder.BF16 * unit, found.at(deeper) - found.at(v))

    def test_ring_traffic(self):
        for spec, dims, collectives in MODELS:
            for plan in PLANS:
                for op, axis in itertools.product(COLLECTIVES[:3], axes_of(plan)):
                    with self.subTest(model=spec.stem, plan=plan, op=op, axis=axis):
                        text = ask(spec, f"wire(step, op = {op}, axis = {axis})", plan=plan)
                        self.assertFormula(lambda v: decoder.wire(op, payload(collectives(plan, v), op, axis),
                                                                  ranks_of(axis, v)), text, dims)


class Numbers(Case):
    LLAMA_SIZES = dict(layers=3, hidden=64, heads=8, kv_heads=4, head_dim=16, ffn=96, vocab=128)
    GPT_SIZES = dict(layers=3, hidden=64, heads=8, vocab=128, positions=48)

    def numbers(self, spec, collectives, model, plan, mesh):
        sets = {**model, **mesh, "batch": 16, "seq": 32}
        v = Point(0, **sets)
        tally = collectives(plan, v)
        if plan == "ddp":
            sets = {name: number for name, number in sets.items() if name != "tp"}
        for op in COLLECTIVES[:3]:
            sent = moved = 0
            for axis in axes_of(plan):
                ranks = ranks_of(axis, v)
                size = payload(tally, op, axis) if ranks > 1 else Fraction(0)
                sent, moved = sent + decoder.wire(op, size, ranks), moved + size
                if v.dp > 1 and (plan == "ddp" or v.tp > 1):
                    with self.subTest(model=spec.stem, plan=plan, op=op, axis=axis, **mesh):
                        query = f"(step, op = {op}, axis = {axis})"
                        self.assertEqual(size, value(spec, "comm" + query, plan=plan, sets=sets))
                        self.assertEqual(decoder.wire(op, size, ranks),
                                         value(spec, "wire" + query, plan=plan, sets=sets))
            with self.subTest(model=spec.stem, plan=plan, op=op, **mesh):
                self.assertEqual(moved, value(spec, f"comm(step, op = {op})", plan=plan, sets=sets))
                self.assertEqual(sent, value(spec, f"wire(step, op = {op})", plan=plan, sets=sets))

    def test_small_meshes(self):
        for mesh in (dict(dp=2, tp=2, micro=2), dict(dp=4, tp=1, micro=1), dict(dp=1, tp=4, micro=4),
                     dict(dp=1, tp=1, micro=2), dict(dp=2, tp=4, micro=1)):
            for plan in PLANS:
                self.numbers(LLAMA, decoder.llama_collectives, self.LLAMA_SIZES, plan, mesh)
                self.numbers(GPT, decoder.gpt_collectives, self.GPT_SIZES, plan, mesh)

    def test_two_all_reduces_a_layer(self):
        """Two of (batch/micro)*seq*hidden/dp elements per layer and microbatch forward, and two backward."""
        sets = dict(dp=8, tp=8, batch=16, micro=2, seq=8192)
        for phase in ("forward", "backward"):
            query = f"comm({phase}, op = all_reduce, axis = tp)"
            deep = value(LLAMA, query, "llama3_8b", "megatron", sets)
            flat = value(LLAMA, query, "llama3_8b", "megatron", {**sets, "layers": 31})
            self.assertEqual(2 * (2 * (16 // 2) * 8192 * 4096 // 8) * 2, deep - flat)

    def test_published_payload(self):
        """GPT-3 175B, one sequence of 2048 tokens in bf16: 50331648 bytes in each all-reduce."""
        sets = dict(dp=1, tp=8, batch=1, micro=1, seq=2048)
        query = "comm(forward, op = all_reduce, axis = tp)"
        deep = value(GPT, query, "gpt3_175b", "megatron", sets)
        flat = value(GPT, query, "gpt3_175b", "megatron", {**sets, "layers": 95})
        self.assertEqual(2 * 50331648, deep - flat)


if __name__ == "__main__":
    main()
