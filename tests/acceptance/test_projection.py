"""A second projection inside the MLP (u2 = h * wx over a new dim, y = u2 * wy in place of the old last
product) changes parameters, FLOP and collectives by exactly what it must, whatever a plan says about the new
dim."""

import collections
import itertools

from decoder import BF16, F32, add
from etchtest import BASE, GPT, LLAMA, Case, Formula, Point, ask, lower, main, run, value
from test_collectives import COLLECTIVES
from test_numbers import GPT_DIMS, LLAMA_DIMS

DIMS = {**LLAMA_DIMS, "J2": "wide"}
OLD = "  y       = silu(g) * u * wd\n"
NEW = "  h[..,J]   = silu(g) * u\n  u2[..,J2] = h * wx\n  y         = u2 * wy\n"
PLANS = """
parallel wide_only {                             # the new dim over tp, the one before it whole
  mesh  [dp, tp]
  shard B @ dp, K @ tp, V @ tp, J2 @ tp
}
parallel both {                                  # wx would be divided twice
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp, J2 @ tp
}
"""
SIZES = dict(layers=3, hidden=64, heads=8, kv_heads=4, head_dim=16, ffn=96, vocab=128, wide=80)
MESH = dict(dp=2, tp=4, micro=2, batch=16, seq=32)


def weights(v):
    """Of attention with embedding and head; of the first products of all MLPs; wx; wy; gains."""
    query, key = v.heads * v.head_dim, v.kv_heads * v.head_dim
    rest = 2 * v.vocab * v.hidden + v.layers * (2 * v.hidden * query + 2 * v.hidden * key)
    first = v.layers * 2 * v.hidden * v.ffn
    return rest, first, v.layers * v.ffn * v.wide, v.layers * v.wide * v.hidden, (2 * v.layers + 1) * v.hidden


def collectives(plan, v):
    """By hand. Where only F is divided, u2 is left in partial sums by wx; a product reads it, so it is summed
    at once, and wy, which no axis divides, is applied to all of it: y needs no collective."""
    tally = collections.defaultdict(int)
    rest, first, wx, wy, gains = weights(v)
    if plan == "ddp":
        add(tally, "sync", "all_reduce", "dp", F32 * (rest + first + wx + wy + gains))
        return tally
    tokens = v.batch / v.micro / v.dp * v.seq
    whole = BF16 * tokens * v.hidden
    shard = whole / v.tp
    middle = BF16 * tokens * v.wide
    calls = v.micro * v.layers
    add(tally, "forward", "all_reduce", "tp", v.micro * 3 * F32 * tokens)
    if plan == "wide_only":
        # As usual, with J2 in the place of F: wx takes all of h, wy leaves partial sums. Behind wx the
        # cotangent of h is in partial sums. Two gradients are made of it, those of silu(g) and of u: it is
        # summed before.
        add(tally, "forward", "all_reduce", "tp", v.micro * whole + 2 * calls * whole)
        add(tally, "backward", "all_reduce", "tp",
            v.micro * whole + calls * (whole + BF16 * tokens * v.ffn))
        add(tally, "sync", "all_reduce", "dp", F32 * ((rest + wx + wy) / v.tp + first + gains))
    elif plan == "megatron":
        add(tally, "forward", "all_reduce", "tp", v.micro * whole + calls * (whole + middle))
        add(tally, "backward", "all_reduce", "tp", v.micro * whole + calls * 2 * whole)
        add(tally, "sync", "all_reduce", "dp", F32 * ((rest + first + wx) / v.tp + wy + gains))
    else:
        # y is wanted in shards of the sequence and can be computed so: the sum of u2 becomes shards, nothing
        # is left to reduce behind wy, which sees only the tokens of its shard. Backward gathers the cotangent
        # of u2 instead of that of y.
        add(tally, "forward", "reduce_scatter", "tp", v.micro * whole + calls * (whole + middle))
        add(tally, "forward", "all_gather", "tp", v.micro * shard + calls * 2 * shard)
        add(tally, "backward", "all_gather", "tp", v.micro * 2 * shard + calls * (3 * shard + middle / v.tp))
        add(tally, "backward", "reduce_scatter", "tp", v.micro * whole + calls * 2 * whole)
        add(tally, "sync", "all_reduce", "dp", F32 * (rest + first + wx) / v.tp)
        add(tally, "sync", "all_reduce", "(dp,tp)", F32 * (wy + gains))
    return tally


class SecondProjection(Case):
    def setUp(self):
        super().setUp()
        base = BASE.read_text(encoding="utf-8")
        for old, new in ((OLD, NEW), ("wd[J,X]", "wx[J,J2], wy[J2,X]"),
                         ("dim B = batch", "param wide\ndim J2 = wide\ndim B = batch")):
            self.assertEqual(1, base.count(old))
            base = base.replace(old, new)
        self.write("base.etch", base)
        lines = LLAMA.read_text(encoding="utf-8").splitlines(keepends=True)
        self.spec = self.write("llama.etch",
                               "".join(line for line in lines if not line.startswith("check")) + PLANS)

    def change(self, v):
        """Of the weights."""
        return v.layers * (v.ffn * v.wide + v.wide * v.hidden - v.ffn * v.hidden)

    def test_params(self):
        before = Formula(ask(LLAMA, "params(model)"), DIMS)
        text = ask(self.spec, "params(model)")
        self.assertFormula(lambda v: sum(weights(v)), text, DIMS)
        self.assertFormula(lambda v: before.at(v) + self.change(v), text, DIMS)

    def test_flops(self):
        for expression, times in (("matmul_flops(forward)", 2), ("matmul_flops(backward)", 4),
                                  ("flops(step)", 6)):
            with self.subTest(expression):
                update = 12 if expression == "flops(step)" else 0
                before = Formula(ask(LLAMA, expression), DIMS)
                self.assertFormula(lambda v: before.at(v) + (times * v.batch * v.seq + update) *
                                   self.change(v),
                                   ask(self.spec, expression), DIMS)

    def test_work_of_a_rank(self):
        """A product that no axis divides is done by every rank of tp; with the sequence in shards it is
        shared."""
        def shared(v):
            tokens, pairs = v.batch / v.dp * v.seq, v.batch / v.dp * v.seq * (v.seq + 1) / 2
            query, key = v.heads * v.head_dim, v.kv_heads * v.head_dim
            layer = 2 * v.hidden * query + 2 * v.hidden * key + 2 * v.hidden * v.ffn + v.ffn * v.wide
            gate = tokens * v.layers * v.ffn  # silu(g) * u: a product without a sum
            return 2 * tokens * (v.layers * layer + v.hidden * v.vocab) + 4 * v.layers * pairs * query + gate

        def last(v):
            return 2 * v.batch / v.dp * v.seq * v.layers * v.wide * v.hidden

        for plan, by_hand in (("megatron", lambda v: shared(v) / v.tp + last(v)),
                              ("megatron_sp", lambda v: (shared(v) + last(v)) / v.tp)):
            with self.subTest(plan):
                text = ask(self.spec, "rank_flops(forward, op = einsum) + rank_flops(forward, op = sdpa)",
                           plan=plan)
                self.assertFormula(by_hand, text, DIMS)

    def test_collectives(self):
        for plan in ("ddp", "megatron", "megatron_sp", "wide_only"):
            axes = ("dp",) if plan == "ddp" else ("dp", "tp", "(dp,tp)")
            for phase, op, axis in itertools.product(("forward", "backward", "sync"), COLLECTIVES, axes):
                with self.subTest(plan=plan, phase=phase, op=op, axis=axis):
                    text = ask(self.spec, f"comm({phase}, op = {op}, axis = {axis})", plan=plan)
                    self.assertFormula(lambda v: collectives(plan, v).get((phase, op, axis), 0), text, DIMS)

    def test_traces(self):
        for plan in ("ddp", "megatron", "megatron_sp", "wide_only"):
            with self.subTest(plan):
                sets = {**SIZES, **MESH}
                if plan == "ddp":
                    del sets["tp"]
                folder = lower(self.scratch / plan, self.spec, plan=plan, sets=sets)
                self.assertFine(folder)
                self.assertTotals(folder, self.spec, None, plan, sets)

    def test_a_weight_divided_twice_by_one_axis(self):
        done = run("query", self.spec, "comm(step)", "--plan", "both")
        self.assertEqual((1, 1), (done.status, len(done.errors())), done)
        self.assertIn("tp", done.errors()[0]["text"])
        self.assertIn("wx", done.err)

    def test_sum_of_all_collectives(self):
        sets = {**SIZES, **MESH}
        for plan in ("megatron", "megatron_sp"):
            total = value(self.spec, "comm(step)", plan=plan, sets=sets)
            self.assertEqual(sum(collectives(plan, Point(0, **sets)).values()), total)


class InGpt(Case):
    """The same in the MLP of GPT, whose layers are recomputed and which has biases."""

    def setUp(self):
        super().setUp()
        text = GPT.read_text(encoding="utf-8")
        for old, new in (("w2[F,H]", "wx[F,J], wy[J,H]"),
                         ("dim B = batch", "param wide\ndim J = wide, B = batch"),
                         ("y        = gelu(h) * w2 + b2", "u2[B,S,J] = gelu(h) * wx\n  y = u2 * wy + b2")):
            self.assertEqual(1, text.count(old), old)
            text = text.replace(old, new)
        lines = text.splitlines(keepends=True)
        self.spec = self.write("gpt.etch", "".join(line for line in lines if not line.startswith("check")))

    def test_change(self):
        def change(plan, phase, v):
            old, wx, wy = (4 * v.layers * v.hidden ** 2, 4 * v.layers * v.hidden * v.wide,
                           v.layers * v.wide * v.hidden)
            tokens = BF16 * v.batch / v.dp * v.seq * v.layers
            if plan == "ddp":
                return F32 * (wx + wy - old) if phase == "sync" else 0
            if phase == "sync":
                return F32 * ((wx - old) / v.tp + wy)
            if phase == "backward":  # what is gathered: the cotangent of u2, not that of y
                return tokens / v.tp * (v.wide - v.hidden) if plan == "megatron_sp" else 0
            return tokens * (v.wide - v.hidden)  # what is reduced: u2, not y

        for plan, phase in itertools.product(("ddp", "megatron", "megatron_sp"),
                                             ("forward", "recompute", "backward", "sync")):
            with self.subTest(plan=plan, phase=phase):
                before = Formula(ask(GPT, f"comm({phase})", plan=plan), GPT_DIMS)
                self.assertFormula(lambda v: before.at(v) + change(plan, phase, v),
                                   ask(self.spec, f"comm({phase})", plan=plan), {**GPT_DIMS, "J": "wide"})

    def test_traces(self):
        sets = dict(layers=2, hidden=32, heads=8, vocab=40, positions=24, wide=48, dp=2, tp=2, micro=2,
                    batch=8, seq=16)
        for plan in ("megatron", "megatron_sp"):
            with self.subTest(plan):
                folder = lower(self.scratch / plan, self.spec, plan=plan, sets=sets)
                self.assertFine(folder)
                self.assertTotals(folder, self.spec, None, plan, sets)


if __name__ == "__main__":
    main()
