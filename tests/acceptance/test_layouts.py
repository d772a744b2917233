"""Layouts that papers describe: Ulysses alone and with a ring, experts folded over the ranks of attention's
axes, more ranks than heads with keys. Collectives derived by hand, their number counted in traces, totals and
endings of the traces."""

import collections
import itertools
import json
import re
from fractions import Fraction

import decoder
from decoder import BF16, F32, add
from etchtest import BASE, LLAMA, MODELS, Case, ask, lower, main, run, succeed, value
from test_collectives import COLLECTIVES
from test_numbers import LLAMA_DIMS

PLANS = """
parallel ulysses_tp {
  mesh  [dp, uly, tp]
  shard B @ dp, S @ uly, K @ tp, F @ tp, V @ tp
  for core { shard S @ (), K @ (tp,uly) }
}
parallel usp {
  mesh  [dp, ring, uly, tp]
  shard B @ dp, S @ (ring,uly), K @ tp, F @ tp, V @ tp
  for core { shard S @ ring, K @ (tp,uly) }
}
"""
TWO_AXES = """
param tp
parallel two_axes {
  mesh  [dp, kv = min(tp, kv_heads), g = tp/min(tp, kv_heads)]
  axis  tp = (kv, g)
  shard B @ dp, K @ kv, G @ g, F @ tp, V @ tp
}
"""
FOLDED = """
param cp = 1, tp = 1
parallel folded {
  mesh  [edp = dp*cp*tp/ep, x = ep/(cp*tp), cp, tp]
  axis  dp = (edp, x), ep = (x, cp, tp)
  shard B @ dp, S @ cp, K @ tp, F @ tp, V @ tp
  pin   residual [B@dp, S@(cp,tp), H]
  zero  1 @ (dp,cp)
  for experts_mlp { shard E @ ep, C @ edp }
}
"""
SIZES = dict(layers=2, hidden=32, heads=16, kv_heads=8, head_dim=4, ffn=64, vocab=64, batch=8, seq=32,
             micro=2)


def exchanged(v):
    """Bytes that a rank gives to the all-to-alls of one layer and microbatch: Q, K, V and O."""
    tokens = v.batch / v.micro / v.dp * v.seq / v.uly
    return BF16 * tokens * (2 * v.heads + 2 * v.kv_heads) * v.head_dim / v.tp


def gathered(v):
    """Keys, or values, of one layer and microbatch inside of attention, of the heads and all tokens of a
    rank."""
    return BF16 * v.batch / v.micro / v.dp * v.seq * v.kv_heads * v.head_dim / v.tp / v.uly


def attention(v, ring):
    calls = v.micro * v.layers
    part = Fraction(1, v.ring) if ring else 1
    tally = collections.defaultdict(int)
    add(tally, "forward", "all_to_all", "uly", calls * exchanged(v) * part)
    add(tally, "backward", "all_to_all", "uly", calls * exchanged(v) * part)
    if ring:
        add(tally, "forward", "all_gather", "ring", calls * 2 * gathered(v) / v.ring)
        add(tally, "backward", "all_gather", "ring", calls * 2 * gathered(v) / v.ring)
        add(tally, "backward", "reduce_scatter", "ring", calls * 2 * gathered(v))
    return tally


def two_axes(v):
    """Heads over kv and g. What backward computes of keys and values is a sum over the groups of heads, and
    stays one: all that goes back to the residual is a sum over both axes, added up once."""
    tally = collections.defaultdict(int)
    calls, tokens = v.micro * v.layers, v.batch / v.micro / v.dp * v.seq
    whole = BF16 * tokens * v.hidden
    add(tally, "forward", "all_reduce", "(kv,g)", v.micro * (whole + 3 * F32 * tokens) + calls * 2 * whole)
    add(tally, "backward", "all_reduce", "(kv,g)", v.micro * whole + calls * 2 * whole)
    return tally


def count(folder, collective):
    """Nodes of the collective in the trace of a rank, and their axes."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    rows = [row for row in manifest["stages"][0]["comm"] if row["collective"] == collective]
    return {row["axes"]: row["nodes"] for row in rows}


SIX = """
param dp = 1, tp = 1, virtual = 1
parallel p1_hsdp {
  mesh  [rep, fsdp, tp]
  axis  dp = (rep, fsdp)
  shard B @ dp, K @ tp, F @ tp, V @ tp
  pin   residual [B@dp, S@tp, H]
  zero  3 @ fsdp, group = layer, keep = false, prefetch = 1
}
parallel p2_llama405b {
  mesh  [dp, pp, cp, tp]
  shard B @ dp, S @ cp, K @ tp, F @ tp, V @ tp
  pin   residual [B@dp, S@(cp,tp), H]
  zero  2 @ (dp,cp)
  stage (embed, layer, head) @ pp, schedule = interleaved(virtual = virtual)
}
parallel p3_folded {
  mesh  [pp, edp = dp*cp*tp/ep, x = ep/(cp*tp), cp, tp]
  axis  dp = (edp, x), ep = (x, cp, tp)
  shard B @ dp, S @ cp, K @ tp, F @ tp, V @ tp
  pin   residual [B@dp, S@(cp,tp), H]
  zero  1 @ (dp,cp)
  for experts_mlp { shard E @ ep, C @ edp }
}
parallel p4_usp {
  mesh  [dp, ring, uly, tp]
  shard B @ dp, S @ (ring,uly), K @ tp, F @ tp, V @ tp
  for core { shard S @ ring, K @ (tp,uly) }
}
parallel p5_hpz {
  mesh  [nodes, gpus]
  shard B @ (nodes,gpus)
  zero  3 @ (nodes,gpus), group = layer, again = gpus
  offload = (optimizer, master)
}
parallel p6_kv_replicated {
  mesh  [dp, kv = min(tp, kv_heads), g = tp/min(tp, kv_heads)]
  axis  tp = (kv, g)
  shard B @ dp, K @ kv, G @ g, F @ tp, V @ tp
}
"""


class Layouts(Case):
    def setUp(self):
        super().setUp()
        for path in MODELS.glob("*.etch"):
            self.write(path.name, path.read_text(encoding="utf-8"))
        self.llama = self.write("long.etch", 'etch 1\nimport "llama.etch"\n' + PLANS)

    def compare(self, spec, plan, by_hand, axes, collectives=COLLECTIVES, dims=LLAMA_DIMS):
        for phase, op, axis in itertools.product(("forward", "backward"), collectives, axes):
            with self.subTest(phase=phase, op=op, axis=axis):
                text = ask(spec, f"comm({phase}, op = {op}, axis = {axis})", plan=plan)
                self.assertFormula(lambda v: by_hand(v).get((phase, op, axis), 0), text, dims)

    def traces(self, spec, plan, sets):
        folder = lower(self.scratch / f"{plan}{len(list(self.scratch.iterdir()))}", spec, plan=plan,
                       sets=sets)
        self.assertFine(folder)
        self.assertTotals(folder, spec, None, plan, sets)
        return folder

    def test_six_plans(self):
        """Plans of the first design, over models that have all that they name."""
        spec = self.write("six.etch",
                          'etch 1\nimport "llama.etch"\nimport "deepseek_v3.etch" (experts_mlp, E, C)\n' +
                          SIX)
        for plan, mesh in (("p1_hsdp", dict(rep=2, fsdp=2, tp=2)),
                           ("p2_llama405b", dict(dp=2, pp=2, cp=2, tp=2)),
                           ("p4_usp", dict(dp=1, ring=2, uly=2, tp=2)), ("p5_hpz", dict(nodes=2, gpus=2)),
                           ("p6_kv_replicated", dict(dp=1, tp=16)),
                           ("p3_folded", dict(pp=1, dp=2, cp=2, tp=2, ep=4))):
            with self.subTest(plan):
                done = succeed("check", spec, "--plan", plan)
                self.assertEqual([], done.errors())
                sets = {**SIZES, **mesh}
                self.assertFine(lower(self.scratch / plan, spec, plan=plan, sets=sets))

    def test_ulysses(self):
        self.compare(self.llama, "ulysses_tp", lambda v: attention(v, False), ("uly", "(uly,tp)"))
        for mesh in (dict(dp=1, uly=4, tp=2), dict(dp=2, uly=2, tp=1), dict(dp=1, uly=8, tp=1)):
            folder = self.traces(self.llama, "ulysses_tp", {**SIZES, **mesh})
            # Queries, keys, values and the result, and their four gradients.
            self.assertEqual({"uly": 8 * SIZES["layers"] * SIZES["micro"]}, count(folder, "all_to_all"))

    def test_ulysses_around_a_ring(self):
        self.compare(self.llama, "usp", lambda v: attention(v, True), ("uly", "ring", "(ring,uly)"))
        folder = self.traces(self.llama, "usp", {**SIZES, "dp": 1, "ring": 2, "uly": 2, "tp": 2})
        self.assertEqual({"uly": 8 * SIZES["layers"] * SIZES["micro"]}, count(folder, "all_to_all"))

    def test_work_is_shared(self):
        for plan, divisor in (("ulysses_tp", "dp*uly*tp"), ("usp", "dp*ring*uly*tp")):
            text = (f"{self.llama.read_text(encoding='utf-8')}param dp, uly, tp, ring\n"
                    "check rank_flops(forward, op = sdpa, ")
            spec = self.write("work.etch", f"{text}plan = {plan})*{divisor} == flops(forward, op = sdpa)\n")
            self.assertIn("\nproved ", succeed("check", spec, "--plan", plan).out)

    def test_more_ranks_than_heads_with_keys(self):
        spec = self.write("two.etch", 'etch 1\nimport "llama.etch"\n' + TWO_AXES)
        self.compare(spec, "two_axes", two_axes, ("kv", "g", "(kv,g)", "dp"))
        for kv_heads, tp in ((8, 2), (8, 8), (4, 8), (2, 16), (1, 4), (2, 1)):
            folder = self.traces(spec, "two_axes", {**SIZES, "kv_heads": kv_heads, "dp": 1, "tp": tp})
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            self.assertEqual(tp, manifest["ranks"])
            names = {name for row in manifest["comm_groups"]["families"] for name in row["mesh_axes"]}
            self.assertEqual({axis for axis,
                              size in (("kv", min(tp, kv_heads)), ("g", tp // min(tp, kv_heads)))
                              if size > 1}, names)

    def test_other_dims_of_a_pin(self):
        """`..` is what the map says of dims that a pin does not list, on the axes that it leaves."""
        shards = "B @ dp, S @ cp, K @ tp, F @ tp, V @ tp"
        text = "\n".join(
            f"parallel {name} {{ mesh [dp, cp, tp]; shard {lines}; pin residual [{dims}] }}"
            for name, lines, dims in (("listed", shards, "B@dp, S@(cp,tp), H"),
                                      ("others", shards, ".., S@(cp,tp)"),
                                      ("last", shards, "S@(cp,tp), .., H"),
                                      ("taken", "B @ dp, S @ cp, H @ tp", ".., S@(cp,tp)"),
                                      ("no_batch", shards, "B, S@(cp,tp), H"),
                                      ("unlisted", shards, "S@(cp,tp), H"),
                                      ("no_cp", shards, ".., S@tp"),
                                      ("meant", shards, "B@(), S@(cp,tp), H"),
                                      ("moved", shards, "B@dp, S@tp, H@cp")))
        spec = self.write("pins.etch", f'etch 1\nimport "llama.etch"\n{text}\n')
        asked = {name: ask(spec, "comm(step)", plan=name)
                 for name in ("listed", "others", "last", "meant", "unlisted")}
        self.assertEqual(asked["listed"], asked["others"])
        self.assertEqual(asked["listed"], asked["last"])
        self.assertEqual(asked["meant"], asked["unlisted"])
        self.assertNotEqual(asked["listed"], asked["meant"])
        said = {name: re.findall(r"remark\[E0406\]: (.*)",
                                 succeed("query", spec, "comm(step)", "--plan", name).err)
                for name in ("listed", "others", "last", "taken", "no_batch", "unlisted", "no_cp", "meant",
                             "moved")}
        whole = "pin residual: {} is whole on all ranks of {}, which the plan divides it over"
        self.assertEqual({**dict.fromkeys(("listed", "others", "last", "taken", "meant", "moved"), []),
                          "no_batch": [whole.format("B", "dp")], "unlisted": [whole.format("B", "dp")],
                          "no_cp": [whole.format("S", "cp")]}, said)

    def test_one_axis_is_not_enough(self):
        done = run("lower", LLAMA, "--dry-run", "--plan", "megatron", "--set",
                   ",".join(f"{name}={size}" for name,
                            size in {**SIZES, "kv_heads": 2, "dp": 1, "tp": 8}.items()))
        self.assertEqual((1, ["E0523"]), (done.status, [error["code"] for error in done.errors()]), done)
        told = done.err
        done = run("check", LLAMA, "--plan", "megatron", "--set", "kv_heads=2,tp=8,heads=8")
        self.assertEqual(1, done.status)
        for text in (told, done.err):
            self.assertIn("mesh [.., kv = min(tp, kv_heads), g = tp/min(tp, kv_heads)], axis tp = (kv, g), "
                          "shard K @ kv, G @ g", text)

    def test_experts_on_the_ranks_of_attention(self):
        """Two all-to-alls forward and two backward, over all axes of ep at once; FLOP do not know of ep;
        gradients of experts are reduced over edp alone."""
        spec = self.write("fold.etch", 'etch 1\nimport "mixtral.etch"\n' + FOLDED)
        sizes = {**SIZES, "experts": 16, "topk": 2, "expert_ffn": 64, "ffn": 1, "batch": 32}
        for mesh in (dict(dp=4, cp=2, tp=2, ep=8), dict(dp=4, cp=2, tp=2, ep=16),
                     dict(dp=2, cp=2, tp=2, ep=4)):
            sets = {**sizes, **mesh}
            folder = self.traces(spec, "folded", sets)
            self.assertEqual([4 * sizes["layers"] * sizes["micro"]],
                             list(count(folder, "all_to_all").values()))
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            families = {tuple(row["mesh_axes"]) for row in manifest["comm_groups"]["families"]}
            self.assertIn(("x", "cp", "tp") if mesh["ep"] > 4 else ("cp", "tp"), families)
            ranks = mesh["dp"] * mesh["cp"] * mesh["tp"]
            tokens = sizes["batch"] * sizes["seq"] // ranks
            self.assertEqual(4 * sizes["layers"] * BF16 * tokens * sizes["topk"] * sizes["hidden"],
                             value(spec, "comm(step, op = all_to_all)", plan="folded", sets=sets))
            # One call: three products, and that of gate and values.
            self.assertEqual(tokens * sizes["topk"] * sizes["expert_ffn"] * (6 * sizes["hidden"] + 1),
                             value(spec, "rank_flops(forward, of = experts_mlp, op = einsum)", plan="folded",
                                   sets=sets))


if __name__ == "__main__":
    main()
