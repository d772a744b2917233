"""Causal attention whose queries are shared in contiguous parts: ranks do unequal work, by hand, in formulas
and in traces."""

import collections
import json

from etchtest import (LLAMA, MODELS, SOURCE, Case, ask, attribute, lower, main, messages, run, succeed, trace,
                      traces, value)
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


VIT = SOURCE / "tests/cli/specs/pic.etch"
BASE = dict(side=14, layers=2, hidden=48, heads=12, head_dim=4, ffn=96, classes=10)


def rounded(size, multiple):
    return -(-size // multiple) * multiple


class Padded(Case):
    """197 tokens of a picture, and pictures, that no axis divides: counted by hand."""

    def asked(self, quantity, plan, spec=VIT, **sets):
        return value(spec, quantity, None, plan, {**BASE, **sets})

    def test_queries_over_ranks(self):
        """A rank has the queries of its part, padding included, and sees all keys, padding included."""
        for cp in (2, 3, 8):
            tokens = rounded(197, cp)
            sets = dict(batch=2, cp=cp)
            self.assertEqual(4 * 2 * 12 * 4 * tokens // cp * tokens,
                             self.asked("rank_flops(forward, of = core)", "cp", **sets))
            self.assertEqual(10 * 2 * 12 * 4 * tokens // cp * tokens * 2,
                             self.asked("rank_flops(backward, op = sdpa_bwd)", "cp", **sets))
            self.assertEqual(4 * 2 * 12 * 4 * 197 * 197,
                             self.asked("flops(forward, of = core)", "cp", **sets))
            part, whole = 2 * 2 * 12 * 4 * tokens // cp, 2 * 2 * 12 * 4 * tokens
            statistic = 4 * 2 * 12 * tokens // cp
            self.assertEqual(2 * part + 2 * whole + statistic,
                             self.asked("traffic(forward, of = core)", "cp", **sets))
            self.assertEqual(3 * part + statistic, self.asked("rank_saved(of = core)", "cp", **sets))
            self.assertEqual(2 * part, self.asked("comm(forward, of = core)", "cp", **sets))

    def test_heads_over_ranks_and_a_residual_in_parts(self):
        """Heads are padded, too: 12 over 8 are 16."""
        tokens, heads = 200, 16
        sets = dict(batch=2, dp=1, tp=8)
        self.assertEqual(4 * 2 * heads // 8 * 4 * tokens * tokens,
                         self.asked("rank_flops(forward, of = core)", "sp", **sets))
        # into attention and MLP, and to the class's token; out of each, and of the sum with the positions
        self.assertEqual(2 * 2 * 48 * (tokens // 8 * (2 * 2 + 1) + tokens * 2 * 2),
                         self.asked("comm(forward)", "sp", **sets))

    def test_causal_queries(self):
        """An early and a late chunk of the padded sequence, or contiguous parts of it."""
        spec = self.write("padded.etch", f"""etch 1
import "{LLAMA}"
parallel even {{ mesh [dp, cp]; shard B @ dp, S @ cp; pad S = 2*cp }}
parallel parts {{ mesh [dp, cp]; shard B @ dp, S @ cp; pad S = cp; balance = false }}
""")
        for seq in (7, 12, 13):
            for cp in (2, 3):
                sets = {**SETS, "seq": seq, "dp": 1, "cp": cp}
                every = rounded(seq, 2 * cp)
                self.assertEqual(4 * 8 * 4 * 4 * every * (every + 1) // 2 // cp,
                                 value(spec, "rank_flops(forward, of = core)", None, "even", sets))
                every = rounded(seq, cp)
                for part in range(cp):
                    self.assertEqual(4 * 8 * 4 * 4 * seen(every, cp, part),
                                     value(spec, f"rank_flops(forward, of = core, part = {part})", None,
                                           "parts", sets))

    def test_batches(self):
        """512 over 36: the rank that has most has 15, and all count as it does; each microbatch is padded."""
        self.assertEqual(4 * 12 * 4 * 197 * 197 * 15,
                         self.asked("rank_flops(forward, of = core)", "uneven", batch=512, dp=36))
        text = f"""etch 1
import "{LLAMA}"
parallel p {{ mesh [dp]; shard B @ dp; pad B = dp }}
"""
        spec = self.write("batch.etch", text)
        served_spec = self.write("served.etch", text + "param context = 9\n"
                                 "infer decode { model = llama, output = z, seq = 1, past = context }\n")
        sizes = {name: size for name, size in SETS.items() if name != "seq"}
        for batch, micro, dp in ((10, 2, 4), (12, 3, 4), (5, 1, 8)):
            sets = dict(SETS, batch=batch, micro=micro, dp=dp)
            self.assertEqual(micro * -(-batch // micro // dp) * 4 * 4 * 4 * seen(12, 1, 0),
                             value(spec, "rank_flops(forward, of = core)", None, "p", sets))
            served = dict(sizes, batch=batch, dp=dp, context=9)
            self.assertEqual(-(-batch // dp) * 2 * 2 * 2 * 4 * 2 * 10,
                             value(served_spec, "memory(cache, run = decode)", None, "p", served))

    def test_traces(self):
        for plan, sets in (("cp", dict(batch=2, cp=3)), ("sp", dict(batch=2, dp=2, tp=8)),
                           ("uneven", dict(batch=5, dp=3))):
            with self.subTest(plan):
                folder = lower(self.scratch / plan, VIT, plan=plan, sets={**BASE, **sets})
                self.assertFine(folder)
                self.assertTotals(folder, VIT, None, plan, {**BASE, **sets})


if __name__ == "__main__":
    main()
