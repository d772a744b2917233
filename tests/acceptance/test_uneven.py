"""Causal attention whose queries are shared in contiguous parts: ranks do unequal work, by hand, in formulas
and in traces."""

import collections
import json

from etchtest import (LLAMA, MODELS, Case, ask, attribute, lower, main, messages, run, succeed, trace, traces,
                      value)
from test_numbers import LLAMA_DIMS

PLANS = """etch 1
import "{model}"
parallel even {{ mesh [dp, cp]; shard B @ dp, S @ cp }}
parallel parts {{ mesh [dp, cp]; shard B @ dp, S @ cp; balance = false }}
parallel nested {{ mesh [a, dp, b]; shard B @ dp, S @ (b,a); balance = false }}
parallel inside {{ mesh [a, b]; shard S @ (a,b); balance = false; for core {{ shard S @ a, K @ b }} }}
parallel staged {{
  mesh [pp, dp, cp]; shard B @ dp, S @ cp; balance = false; stage (embed, layer, head) @ pp
}}
parallel renumbered {{ mesh [dp, cp]; shard B @ dp, S @ cp; balance = false; order = (cp, dp) }}
"""
SETS = dict(layers=2, hidden=16, heads=4, kv_heads=2, head_dim=4, ffn=24, vocab=40, batch=8, seq=12, micro=2)


def seen(seq, parts, part, window=None):
    """Pairs of the queries of a part, counted one by one."""
    own = seq // parts
    return sum(min(query + 1, window or seq) for query in range(part * own, (part + 1) * own))


class Formulas(Case):
    def spec(self, model=LLAMA):
        return self.write("uneven.etch", PLANS.format(model=model))

    def test_the_last_part_has_most(self):
        """Rank i of cp has (S/cp)*(i*S/cp) + (S/cp)*(S/cp + 1)/2 pairs; 4 FLOP for each and element of a head
        forward, 10 backward."""
        spec = self.spec()
        for phase, flop in (("forward", 4), ("backward", 10)):
            for part, of in ((None, lambda v: v.cp - 1), ("last", lambda v: v.cp - 1), ("first", lambda v: 0),
                             ("2", lambda v: 2)):
                asked = f", part = {part}" if part else ""
                text = ask(spec, f"rank_flops({phase}, of = core{asked})", plan="parts")
                self.assertFormula(
                    lambda v: flop * v.batch / v.dp * v.heads * v.head_dim *
                    (v.seq / v.cp * of(v) * v.seq / v.cp + v.seq / v.cp * (v.seq / v.cp + 1) / 2), text,
                    LLAMA_DIMS)

    def test_pairs_one_by_one(self):
        spec = self.spec()
        for cp in (1, 2, 3, 4, 6):
            for part in range(cp):
                self.assertEqual(4 * 8 // 2 * 4 * 4 * seen(12, cp, part),
                                 value(spec, f"rank_flops(forward, of = core, part = {part})", None, "parts",
                                       dict(SETS, dp=2, cp=cp)))

    def test_all_parts_together(self):
        """What ranks do adds up to what there is to do."""
        spec = self.spec()
        for plan, sets, parts in (("parts", dict(dp=2, cp=4), 4), ("nested", dict(a=2, dp=2, b=3), 6),
                                  ("staged", dict(pp=1, dp=2, cp=3), 3)):
            for phase in ("forward", "backward"):
                bound = {**SETS, **sets}
                total = sum(value(spec, f"rank_flops({phase}, part = {part})", None, plan, bound)
                            for part in range(parts))
                self.assertEqual(value(spec, f"flops({phase})", None, plan, bound), 2 * total)

    def test_windows(self):
        """Late queries lose what the window hides from them: parts far enough from the front do the same."""
        spec = self.write("window.etch", """etch 1
param batch, seq, heads, width
dim B = batch, S = seq, N = heads, D = width, H = heads*width
module core(q[B,S,N,D], k[B,S,N,D], v[B,S,N,D]) -> o[B,S,N,D] {
  o = sdpa(q, k[S->S'], v[S->S'], dot = D, over = S', causal = true, window = 5)
}
model m(x[B,S,H]) -> y[B,S,N,D] {
  weight wq[H,N,D], wk[H,N,D], wv[H,N,D]
  q[B,S,N,D] = x * wq
  k[B,S,N,D] = x * wk
  v[B,S,N,D] = x * wv
  y   = core(q, k, v)
  l[] = sum(y * y, over = (B,S,N,D))  tag loss
}
train { model = m, optimizer = sgd }
parallel parts { mesh [cp]; shard S @ cp; balance = false }
parallel even { mesh [cp]; shard S @ cp }
""")
        sets = dict(batch=2, seq=24, heads=2, width=3, cp=4)
        work = [value(spec, f"rank_flops(forward, of = core, part = {part})", None, "parts", sets)
                for part in range(4)]
        self.assertEqual([4 * 2 * 2 * 3 * seen(24, 4, part, 5) for part in range(4)], work)
        self.assertEqual(work[3], value(spec, "rank_flops(forward, of = core)", None, "parts", sets))
        self.assertEqual(work[1], work[3])
        refused = run("query", spec, "rank_flops(forward)", "--plan", "even")
        self.assertEqual(1, refused.status)
        self.assertIn("balance = false", refused.err)

    def test_conventions_do_not_tell_parts_apart(self):
        spec = self.spec()
        for part in ("first", "last"):
            self.assertEqual(ask(spec, "rank_flops(forward, of = core, causal = full)", plan="even"),
                             ask(spec, f"rank_flops(forward, of = core, causal = full, part = {part})",
                                 plan="parts"))

    def test_what_it_demands(self):
        """No chunks: cp divides the sequence, and that is all."""
        spec = self.spec()
        demands = succeed("check", spec, "--plan", "parts").out
        self.assertIn("cp | seq", demands)
        self.assertNotIn("min(cp, 2)", demands)
        refused = run("lower", spec, "--plan", "even", "--set",
                      "cp=4,dp=1," + ",".join(f"{k}={v}" for k, v in SETS.items()),
                      "-o", self.scratch / "refused")
        self.assertEqual(1, refused.status)

    def test_mistakes(self):
        spec = self.spec()
        for asked, text in (("rank_flops(step, part = 4)", "there is no part '4'"),
                            ("comm(step, part = 0)", "no argument 'part'"),
                            ("rank_flops(step, part = late)", "there is no part 'late'")):
            done = run("query", spec, asked, "--plan", "parts", "--set", "cp=4")
            self.assertEqual(1, done.status)
            self.assertIn(text, done.err)


class Traces(Case):
    def totals(self, path):
        flop = traffic = 0
        for node in messages(path):
            if node.type == 4:
                flop += attribute(node, "num_ops")
                traffic += attribute(node, "tensor_size")
        return flop, traffic

    def test_ranks(self):
        spec = self.write("uneven.etch", PLANS.format(model=LLAMA))
        for plan, axes in (("parts", dict(dp=2, cp=3)), ("nested", dict(a=2, dp=2, b=3)),
                           ("inside", dict(a=2, b=2)),
                           ("staged", dict(pp=2, dp=1, cp=3)), ("renumbered", dict(dp=2, cp=3))):
            with self.subTest(plan):
                sets = {**SETS, **axes}
                folder = lower(self.scratch / plan, spec, plan=plan, sets=sets)
                self.assertFine(folder)
                self.assertIn("always", succeed("verify", folder).out)
                manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
                rows = {(row["stage"], row["part"]): row for row in manifest["stages"]}
                uneven = {"nested": ("a", "b"), "inside": ("a",)}.get(plan, ("cp",))
                order = ["cp", "dp"] if plan == "renumbered" else list(axes)
                classes = collections.Counter()
                for rank, path in traces(folder).items():
                    at, left = {}, rank
                    for axis in reversed(order):
                        at[axis], left = left % axes[axis], left // axes[axis]
                    part = 0
                    for axis in order:
                        if axis in uneven:
                            part = part * axes[axis] + at[axis]
                    row = rows[at.get("pp", 0), part]
                    classes[at.get("pp", 0), part] += 1
                    stage = f", stage = {at['pp']}" if "pp" in at else ""
                    flop, traffic = self.totals(path)
                    self.assertEqual(value(spec, f"rank_flops(step, part = {part}{stage})", None, plan, sets),
                                     flop - int(row["flop_padding"]))
                    self.assertEqual(int(row["bytes"]), traffic - int(row["bytes_padding"]))
                self.assertEqual({key: row["ranks"] for key, row in rows.items()}, dict(classes))
                self.assertEqual(manifest["classes"], [dict(ranks=row["ranks"], nodes=row["nodes"])
                                                       for row in manifest["stages"]])

    def test_nodes_differ_in_work_alone(self):
        spec = self.write("uneven.etch", PLANS.format(model=LLAMA))
        folder = lower(self.scratch / "out", spec, plan="parts", sets=dict(SETS, dp=1, cp=3))
        first, last = (messages(traces(folder)[rank]) for rank in (0, 2))
        differing = [one.name for one, other in zip(first, last) if one.type == 4 and
                     attribute(one, "num_ops") != attribute(other, "num_ops")]
        self.assertEqual(2 * 2 * 2, len(differing))  # phases, layers, microbatches
        self.assertEqual([], [name for name in differing if ".core" not in name])


if __name__ == "__main__":
    main()
