"""Scopes and pins of plans: `for mlp { ... }` with other axes, pins on a module's tensor. Collectives by
hand."""

import collections
import itertools

import decoder
from decoder import BF16, F32, add
from etchtest import BASE, LLAMA, Case, ask, lower, main, run, value, with_plans
from test_collectives import COLLECTIVES
from test_numbers import LLAMA_DIMS

PLANS = """
parallel whole_mlp {                           # attention and vocabulary over tp, every rank computes the MLP
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  for mlp { shard F @ () }
}
parallel other_axis {                            # the MLP on an axis of its own
  mesh  [dp, tp, xp]
  shard B @ dp, K @ tp, V @ tp
  for mlp { shard F @ xp }
}
parallel batch_mlp {                             # the MLP is data parallel over both axes
  mesh  [dp, tp]
  shard B @ dp, K @ tp, V @ tp
  for mlp { shard B @ (dp,tp) }
}
parallel pinned_whole {                          # says what is so anyway
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  pin   residual [B@dp, S, H]
  pin   attention.q [B@dp, S, K@tp, G, D]
}
parallel pinned_output {                         # the result of the scores over the sequence, and back
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  pin   core.o [B@dp, S@tp, K, G, D]
}
"""
SIZES = dict(layers=3, hidden=64, heads=8, kv_heads=4, head_dim=16, ffn=96, vocab=128)
MESH = dict(dp=2, tp=4, micro=2, batch=16, seq=32)


def mlp_weights(v):
    return 3 * v.layers * v.hidden * v.ffn


def collectives(plan, v):
    tally = collections.defaultdict(int)
    products, gains = decoder.llama_weights(v)
    tokens = v.batch / v.micro / v.dp * v.seq
    whole = BF16 * tokens * v.hidden
    calls = v.micro * v.layers
    add(tally, "forward", "all_reduce", "tp", v.micro * (3 * F32 * tokens + whole) + calls * whole)
    add(tally, "backward", "all_reduce", "tp", v.micro * whole + calls * whole)
    before_mlp = v.layers * v.hidden if plan == "batch_mlp" else 0  # gains of the norms in front of it
    add(tally, "sync", "all_reduce", "dp", F32 * ((products - mlp_weights(v)) / v.tp + gains - before_mlp))
    if plan == "whole_mlp":
        add(tally, "sync", "all_reduce", "dp", F32 * mlp_weights(v))
    elif plan == "other_axis":
        add(tally, "forward", "all_reduce", "xp", calls * whole)
        add(tally, "backward", "all_reduce", "xp", calls * whole)
        add(tally, "sync", "all_reduce", "dp", F32 * mlp_weights(v) / v.xp)
    elif plan == "batch_mlp":
        # Each rank takes its share of the batch for nothing; the norm is computed for that share only. The
        # results are gathered behind the module, and so is the cotangent of what the norm was given.
        add(tally, "forward", "all_gather", "tp", calls * whole / v.tp)
        add(tally, "backward", "all_gather", "tp", calls * whole / v.tp)
        add(tally, "sync", "all_reduce", "(dp,tp)", F32 * (mlp_weights(v) + before_mlp))
    else:
        add(tally, "forward", "all_reduce", "tp", calls * whole)
        add(tally, "backward", "all_reduce", "tp", calls * whole)
        add(tally, "sync", "all_reduce", "dp", F32 * mlp_weights(v) / v.tp)
    if plan == "pinned_output":
        # From heads to sequence and back for wo, and back once more in backward; the cotangent is made where
        # o was.
        result = BF16 * tokens * v.heads * v.head_dim / v.tp
        add(tally, "forward", "all_to_all", "tp", calls * 2 * result)
        add(tally, "backward", "all_to_all", "tp", calls * result)
    return tally


class Scopes(Case):
    def setUp(self):
        super().setUp()
        self.write("base.etch", BASE.read_text(encoding="utf-8"))
        self.text = with_plans(LLAMA)
        self.spec = self.write("llama.etch", self.text + PLANS)

    def compare(self, plan, axes):
        for phase, op, axis in itertools.product(("forward", "backward", "sync"), COLLECTIVES, axes):
            with self.subTest(phase=phase, op=op, axis=axis):
                text = ask(self.spec, f"comm({phase}, op = {op}, axis = {axis})", plan=plan)
                self.assertFormula(lambda v: collectives(plan, v).get((phase, op, axis), 0), text, LLAMA_DIMS)

    def traces(self, plan, more=None):
        sets = {**SIZES, **MESH, **(more or {})}
        folder = lower(self.scratch / plan, self.spec, plan=plan, sets=sets)
        self.assertFine(folder)
        self.assertTotals(folder, self.spec, None, plan, sets)

    def test_a_scope_clears_an_axis(self):
        self.compare("whole_mlp", ("dp", "tp", "(dp,tp)"))
        self.traces("whole_mlp")

    def test_a_scope_takes_another_axis(self):
        self.compare("other_axis", ("dp", "tp", "xp", "(dp,tp)", "(dp,xp)", "(tp,xp)", "(dp,tp,xp)"))
        self.traces("other_axis", dict(tp=2, xp=3))
        self.traces("other_axis", dict(tp=2, xp=1))

    def test_a_scope_divides_the_batch_further(self):
        self.compare("batch_mlp", ("dp", "tp", "(dp,tp)"))
        self.traces("batch_mlp")

    def test_a_pin_that_says_what_is_so(self):
        self.compare("pinned_whole", ("dp", "tp", "(dp,tp)"))
        for query in ("comm(step)", "rank_flops(step)", "traffic(step)", "wire(backward)"):
            self.assertEqual(ask(self.spec, query, plan="megatron"),
                             ask(self.spec, query, plan="pinned_whole"))

    def test_a_pin_on_a_tensor_of_a_module(self):
        self.compare("pinned_output", ("dp", "tp", "(dp,tp)"))
        self.traces("pinned_output")

    def test_pins_and_scopes_that_name_nothing(self):
        # A plan may be used with other models: what this one lacks is said, and does no harm.
        for line in ("pin   attention.nothing [B@dp, S, H]", "for nothing { shard F @ () }",
                     "shard Nothing @ tp"):
            with self.subTest(line):
                text = self.text.replace("  shard B @ dp, K @ tp, A @ tp, F @ tp, V @ tp\n}",
                                         f"  shard B @ dp, K @ tp, F @ tp, V @ tp\n  {line}\n}}")
                self.assertNotEqual(self.text, text)
                spec = self.write("late.etch", text)
                done = run("query", spec, "comm(step)", "--plan", "megatron")
                self.assertEqual(0, done.status, done)
                self.assertIn("othing", done.err)
                self.assertEqual(ask(self.spec, "comm(step)", plan="megatron"), done.out.strip())

    def test_moves_that_cannot_be_made(self):
        """A scope takes a dim to another axis, in a loop and behind it: the shards of both axes would have to
        be taken apart in the wrong order."""
        text = """etch 1
param batch, seq, hidden, ffn, vocab
dim B = batch, S = seq, H = hidden, F = ffn, V = vocab
module mlp(x[B,S,H]) -> y[B,S,H] {
  weight w1[H,F], w2[F,H]
  u[B,S,F] = x * w1
  y        = relu(u) * w2
}
model tiny(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight emb[V,H], head[H,V]
  x[B,S,H] = gather(emb, ids, over = V)
  repeat 3 { x = x + mlp(x) }
  x        = x + mlp(x)
  z[B,S,V] = x * head
  l[]      = cross_entropy(z, labels, over = V)  tag loss
}
train { model = tiny, optimizer = adamw(master = true) }
parallel other { mesh [tp, xp]
  shard H @ xp
  for mlp { shard H @ tp } }
"""
        spec = self.write("other.etch", text)
        done = run("query", spec, "comm(step)")
        self.assertEqual((1, 1), (done.status, len(done.errors())), done)
        self.assertRegex(done.errors()[0]["text"], r"\bH\b")
        self.assertEqual("other.etch", done.errors()[0]["path"].split("/")[-1])

    def test_a_pin_with_a_dim_that_the_tensor_lacks(self):
        for pin in ("[B@dp, S, V@tp]", "[B@dp, S@tp, V]"):
            with self.subTest(pin):
                spec = self.write("pin.etch", self.text.replace("[B@dp, S@tp, H]", pin))
                done = run("query", spec, "comm(step)", "--plan", "megatron_sp")
                self.assertEqual((1, 1), (done.status, len(done.errors())), done)
                self.assertEqual(spec.name, done.errors()[0]["path"].split("/")[-1])

    def test_what_nothing_reads_is_not_moved(self):
        """Of what leaves a module, a loop or a statement only what is read, or is a result, is gathered."""
        text = """etch 1
param batch, hidden, layers
dim B = batch, H = hidden
module part(x[B,H], a[B,H]) -> (y[B,H], s[B,H]) {
  y = tanh(x)
  s = exp(y)
}
module outer(x[B,H]) -> (y[B,H], s[B,H]) {
  (y, s) = part(x, x)
}
model m(x[B,H]) -> (BODY
}
parallel calls { mesh [tp]; shard H @ (); for part { shard H @ tp } }
parallel both { mesh [tp]; shard H @ (); for (outer, part) { shard H @ tp } }
parallel loop { mesh [tp]; shard H @ (); for layer { shard H @ tp } }
parallel statement { mesh [tp]; shard H @ (); for tagged { shard H @ tp } }
"""
        bodies = {
            "one": "z[B,H]) {\n  (y[B,H], s[B,H]) = part(x, x)\n  z = gelu(y)",
            "other": "z[B,H]) {\n  (y[B,H], s[B,H]) = part(x, x)\n  z = gelu(s)",
            "result": "z[B,H]) {\n  (y[B,H], z[B,H]) = part(x, x)",
            "results": "y[B,H], z[B,H]) {\n  (y[B,H], z[B,H]) = part(x, x)",
            "nested": "z[B,H]) {\n  (y[B,H], s[B,H]) = outer(x)\n  z = gelu(y)",
            "renamed": "z[B,H]) {\n  (y[B,H], s[B,H]) = outer(x)\n  t = s\n  z = gelu(y)",
            "loops": "z[B,H]) {\n  y = x\n  s = x\n  repeat layers as layer {\n    y = tanh(y)\n"
                     "    s = exp(s)\n  }\n  z = gelu(y)",
            "tags": "z[B,H]) {\n  s = exp(x)  tag tagged\n  z = gelu(x)",
        }
        sizes = {"batch": 4, "hidden": 8, "tp": 2}
        whole = BF16 * 4 * 8 // 2  # what a gather brings
        for name, plan, gathers in (("one", "calls", 1), ("other", "calls", 1), ("result", "calls", 1),
                                    ("results", "calls", 2), ("nested", "both", 1), ("renamed", "both", 1),
                                    ("loops", "loop", 1), ("tags", "statement", 0)):
            with self.subTest(name):
                spec = self.write("m.etch", text.replace("BODY", bodies[name]))
                self.assertEqual(gathers * whole, value(spec, "comm(forward)", plan=plan, sets=sizes))


if __name__ == "__main__":
    main()
