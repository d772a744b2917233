"""What `etch show --plan` says: collectives add up to what queries say and to what traces hold, each has a
reason that names lines which exist, and changes placements as its kind does; placements follow from those of
the operands."""

import atexit
import collections
import functools
import json
import math
import os
import pathlib
import re
import shutil
import tempfile
from fractions import Fraction

import test_shipped
from dot import Dot
from effort import NIGHTLY
from etchtest import LLAMA, MODELS, POINTS, Case, Formula, main, run, settings, succeed, table

BYTES = {"f64": 8, "f32": 4, "bf16": 2, "f16": 2, "f8": 1, "i64": 8, "i32": 4, "i8": 1, "bool": 1}
RULES = {"operand", "merge", "pin", "result", "enter", "leave", "loop", "statistic", "cotangent", "total",
         "summand",
         "ring", "weight", "reduce", "update", "tie", "clip", "optimizer", "stage", "whole"}
LEAVE_PLACES = {"statistic", "ring"}  # what they move is held as before
MIXTRAL = MODELS / "mixtral.etch"


class Placement:
    """The report on a plan, with names in place of indices where that is what a reader wants."""

    def __init__(self, spec, *arguments):
        self.report = json.loads(succeed("show", spec, *arguments, "--format", "json").out)
        for key in ("dims", "tensors", "loops", "modules", "values", "steps", "handed", "collectives",
                    "totals", "stages"):
            setattr(self, key, self.report[key])
        self.padded = {pad["dim"]: pad["size"] for pad in self.report["pads"]}
        self.axes = {axis["name"]: axis["size"] for axis in self.report["mesh"]}

    def shards(self, value):
        """Dim -> the axes that divide it, outermost first."""
        return {shard["dim"]: tuple(shard["axes"]) for shard in self.values[value]["shards"]}

    def states(self, value):
        """Axis -> a dim, or "partial"."""
        found = {axis: dim for dim, axes in self.shards(value).items() for axis in axes}
        for axis in self.values[value]["partial"]:
            assert axis not in found
            found[axis] = "partial"
        return found

    def elements(self, value):
        """Of a value on one rank and microbatch, by hand."""
        tensor = self.tensors[self.values[value]["tensor"]]
        count = Fraction(1)
        for dim in tensor["dims"]:
            count *= Fraction(self.padded.get(dim, self.dims[dim]["size"]))
            if self.dims[dim]["divided"]:
                count /= int(self.report["micro"])
        for axes in self.shards(value).values():
            for axis in axes:
                count /= int(self.axes[axis])
        if self.values[value]["parts"]:
            count = Fraction(math.ceil(count / math.prod(int(self.axes[axis])
                                                         for axis in self.values[value]["parts"])))
        return count, BYTES[tensor["dtype"]]


# Ways to hold weights and gradients, and to send them, that no shipped plan has alone.
MORE = f"""etch 1
import "{LLAMA}"
parallel gathered {{ mesh [dp]; shard B @ dp; zero 3 @ dp }}
parallel copied   {{ mesh [dp, tp]; shard B @ (dp,tp); zero 3 @ tp }}
parallel grads    {{ mesh [dp, tp]; shard B @ dp, K @ tp, F @ tp, V @ tp; zero 2 @ dp; bucket = step }}
parallel buckets  {{
  mesh [dp, tp]; shard B @ dp, K @ tp, F @ tp; pin residual [B@dp, S@tp, H]; bucket = 1000
}}
parallel keeping  {{
  mesh [dp, tp]; shard B @ dp, K @ tp, F @ tp; pin residual [B@dp, S@tp, H]; keep = gathers
}}
parallel padded   {{ mesh [dp, tp]; shard B @ dp, V @ tp; pad V = 100*tp }}
parallel staged   {{
  mesh [pp, dp, cp]; shard B @ dp, S @ cp; zero 3 @ (dp,cp); stage (embed, layer, head) @ pp
}}
"""


def written(name, text):
    folder = pathlib.Path(tempfile.mkdtemp(dir=os.getcwd(), prefix="plans."))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@functools.lru_cache(maxsize=None)
def shipped():
    """Every shipped spec with every run and every other plan, nightly with all, at sizes that everything
    divides."""
    found = []
    for turn, spec in enumerate(test_shipped.SPECS):
        plans = test_shipped.own_plans(spec)
        for plan in plans if NIGHTLY else plans[turn % 2::2] or plans:
            for of_run in test_shipped.runs_of(spec):
                names = test_shipped.params_of(spec) | test_shipped.axes_of(spec, plan)
                sets = {name: size for name, size in test_shipped.SMALL.items() if name in names}
                more = ["--plan", plan, "--set", settings(sets), *(["--run", of_run] if of_run else [])]
                found.append((spec, tuple(more), Placement(spec, *more)))
    spec = written("more.etch", MORE)
    for plan in test_shipped.own_plans(spec):
        axes = re.search(rf"parallel {plan} [^\[]*mesh \[(.*?)\]", MORE)[1].split(", ")
        names = test_shipped.params_of(LLAMA) | set(axes)
        sets = {name: size for name, size in test_shipped.SMALL.items() if name in names}
        more = ["--plan", plan, "--set", settings(sets)]
        found.append((spec, tuple(more), Placement(spec, *more)))
    return found


class Plans(Case):
    # ---- sums ----------------------------------------------------------------------------------------------

    def added(self, placement, key, stage):
        """What rows of collectives add up to: key(row) -> [times, bytes, wire]."""
        sums = collections.defaultdict(lambda: [0, 0, 0])
        for row in placement.collectives:
            share = row["stages"][stage]
            full = int(row["bytes"]) * int(share["times"])
            if not any(phrase["text"].startswith("bucket = ") for phrase in row["why"]):
                self.assertEqual(int(share["bytes"]), full, row)
            self.assertLessEqual(int(share["bytes"]), full)  # the last bucket may be smaller
            self.assertTrue(full == 0 or full - int(share["bytes"]) < int(row["bytes"]))
            for i, what in enumerate(("times", "bytes", "wire")):
                sums[key(row)][i] += int(share[what])
        return {label: sum_ for label, sum_ in sums.items() if any(sum_)}

    def test_collectives_add_up_to_queries(self):
        keys = {"collective": lambda row: row["collective"], "axis": lambda row: row["group"],
                "phase": lambda row: row["phase"]}
        for spec, more, p in shipped():
            for i, stage in enumerate(p.stages):
                if any(p.stages[:i]) and all(row["stages"][i] == {**row["stages"][i - 1], "stage": stage}
                                             for row in p.collectives):
                    continue  # as the one before
                named = f", stage = {stage}" if stage != "whole" else ""
                for measure, at in (("comm", 1), ("wire", 2)):
                    for by, key in keys.items():
                        done = succeed("query", spec, f"{measure}(step{named})", *more, "--by", by,
                                       "--format", "json")
                        answer = json.loads(done.out)
                        rows = {row["label"]: int(row["value"]) for row in answer["rows"]}
                        mine = {label: sums[at] for label, sums in self.added(p, key, i).items()}
                        self.assertEqual(rows, mine)
                        self.assertEqual(int(answer["value"]), sum(mine.values()))
                        self.assertEqual(answer["value"], p.report["sum"][i]["bytes" if at == 1 else "wire"])

    def test_collectives_add_up_to_traces(self):
        """How often, too: a node for each, a receive for each message of a neighbour."""
        for spec, more, p in shipped():
            stages = json.loads(succeed("lower", spec, *more, "--dry-run", "--format", "json").out)["stages"]
            self.assertEqual(len(stages), len(p.stages))
            for i, stage in enumerate(stages):
                written = {(row["collective"], row["axes"]): [row["nodes"], int(row["bytes"])]
                           for row in stage["comm"]
                           if row["collective"] != "recv"}
                mine = self.added(p, lambda row: (row["collective"], row["group"]), i)
                for key in [key for key in written if key[0] == "permute"]:
                    # keys and values are one message, to each of the other ranks
                    self.assertGreaterEqual(2 * written[key][0], mine[key][0])
                    written[key][0] = mine[key][0]
                self.assertEqual(written, {key: sums[:2] for key, sums in mine.items()})
                listed = {(row["collective"], row["group"]): row["stages"][i] for row in p.totals}
                for key, sums in mine.items():
                    self.assertEqual([str(value) for value in sums],
                                     [listed[key][what] for what in ("times", "bytes", "wire")])

    def test_formulas_add_up_to_queries(self):
        for plan in ("ddp", "megatron", "megatron_sp", "megatron_zero", "context_gather", "ulysses"):
            p = Placement(LLAMA, "--plan", plan)
            for measure, what in (("comm", "bytes"), ("wire", "wire")):
                done = succeed("query", LLAMA, f"{measure}(step)", "--plan", plan, "--by", "collective",
                               "--format", "json")
                asked = {row["label"]: row["formula"] for row in json.loads(done.out)["rows"]}
                for point in POINTS:
                    sums = collections.Counter()
                    for row in p.collectives:
                        share = row["stages"][0]
                        sums[row["collective"]] += Formula(share[what]).at(point)
                        self.assertEqual(Formula(share["bytes"]).at(point),
                                         Formula(row["bytes"]).at(point) * Formula(share["times"]).at(point))
                    self.assertEqual({label: Formula(text).at(point) for label, text in asked.items()},
                                     dict(sums))

    def test_breakdowns_add_up(self):
        """Whatever a quantity of communication is split by, and whatever it is restricted to."""
        for spec, more, p in shipped():
            if spec.stem not in ("llama", "mixtral", "t5"):
                continue
            for asked in ("comm(step)", "wire(step)", "comm(backward)"):
                totals = set()
                for by in ("collective", "axis", "phase", "module", "op", "layer", "term"):
                    answer = json.loads(succeed("query", spec, asked, *more, "--by", by, "--format",
                                                "json").out)
                    self.assertEqual(int(answer["value"]), sum(int(row["value"]) for row in answer["rows"]),
                                     (more, by))
                    totals.add(answer["value"])
                self.assertEqual(1, len(totals))
            stages, heaviest = table(spec, "comm(step)", "stage", None, more[1], dict(
                pair.split("=") for pair in more[3].split(",")))
            self.assertEqual(heaviest, max(stages.values()))
            self.assertEqual({int(share["bytes"]) for share in p.report["sum"]}, set(stages.values()))
            for row in p.totals:
                alone = json.loads(succeed("query", spec,
                                           f"comm(step, op = {row['collective']}, axis = {row['group']})",
                                           *more,
                                           "--by", "phase", "--format", "json").out)
                self.assertEqual(int(alone["value"]), max(int(share["bytes"]) for share in row["stages"]))

    def test_what_is_sent_in_another_dtype(self):
        """Dispatch in f8 with a scale in f32 for every 32 elements, gradients in bf16."""
        spec = self.write("experts.etch", f"""etch 1
import "{MIXTRAL}"
parallel narrow {{
  mesh  [edp = dp/ep, ep]
  axis  dp = (edp, ep)
  shard B @ dp
  for experts_mlp {{ shard E @ ep, C @ edp }}
  dtype dispatch = f8(block = 32), grads_comm = bf16
}}
""")
        p = Placement(spec, "--plan", "narrow")
        dims = {dim["name"]: dim["size"] for dim in p.dims}
        rows = [row for row in p.collectives if row["collective"] == "all_to_all"]
        self.assertEqual({"f8", "bf16"}, {row["dtype"] for row in rows})
        for row in rows:
            for point in POINTS:
                local = Formula("H*E*C/(dp*micro)", dims).at(point)
                by_hand = local + 4 * math.ceil(local / 32) if row["dtype"] == "f8" else 2 * local
                self.assertEqual(by_hand, Formula(row["bytes"]).at(point))
        synced = [row for row in p.collectives if row["rule"] == "reduce"]
        asked = succeed("query", spec, "comm(sync, op = all_reduce)", "--plan", "narrow").out.strip()
        for point in POINTS:
            self.assertEqual(Formula(asked).at(point),
                             sum(Formula(row["stages"][0]["bytes"]).at(point) for row in synced))

    def test_formulas_over_dims_say_the_same(self):
        for spec, plan, axes in ((LLAMA, "megatron_sp", {}), (LLAMA, "ulysses", {}),
                                 (MIXTRAL, "moe_ep", {"edp": "dp/ep"})):
            p = Placement(spec, "--plan", plan)
            dims = {**{dim["name"]: dim["size"] for dim in p.dims}, **axes}
            rows = [row for row in p.collectives if row["bytes_by_dims"]]
            self.assertGreater(len(rows), 5)
            for row in rows + p.values:
                for point in POINTS:
                    self.assertEqual(Formula(row["bytes"]).at(point),
                                     Formula(row["bytes_by_dims"], dims).at(point))

    # ---- placements ----------------------------------------------------------------------------------------

    def test_values_have_their_size(self):
        for _, _, p in shipped():
            for i, value in enumerate(p.values):
                count, width = p.elements(i)
                self.assertEqual(Fraction(value["bytes"]), count * width, value)

    def test_a_payload_is_what_a_rank_puts_in(self):
        for _, _, p in shipped():
            for step in p.steps:
                if step["collective"] is None:
                    continue
                row = p.collectives[step["collective"]]
                self.assertEqual(int(row["bytes"]),
                                 sum(math.prod(p.elements(value)) for value in step["ins"]), row)
                self.assertEqual(row["ranks"], str(math.prod(int(p.axes[axis]) for axis in row["axes"])))

    def test_moves_change_what_their_kind_changes(self):
        """On the axes of the group, and on no other: from one state to another."""
        for _, _, p in shipped():
            for step in p.steps:
                if step["name"] not in ("slice_shard", "all_gather", "all_reduce", "reduce_scatter",
                                        "all_to_all"):
                    continue
                row = p.collectives[step["collective"]] if step["collective"] is not None else None
                if row is None and step["loop"] is not None and p.loops[step["loop"]]["count"] == "0":
                    continue  # it never runs: on no stage is there a row of it
                self.assertEqual(step["name"] == "slice_shard", row is None)
                if row and row["rule"] == "whole":
                    for value, whole in zip(step["ins"], step["outs"]):
                        self.assertEqual(row["axes"], p.values[value]["parts"])
                        self.assertEqual((p.states(value), []), (p.states(whole), p.values[whole]["parts"]))
                    continue
                before, after = p.states(step["ins"][0]), p.states(step["outs"][0])
                changed = {axis for axis in p.axes if before.get(axis) != after.get(axis)}
                if row and row["rule"] == "statistic":
                    self.assertEqual(before, after)
                    continue
                if row:
                    self.assertEqual(changed, set(row["axes"]), row)
                for axis in changed:
                    kinds = [None if state is None else "partial" if state == "partial" else "dim"
                             for state in (before.get(axis), after.get(axis))]
                    self.assertEqual(kinds, {"slice_shard": [None, "dim"], "all_gather": ["dim", None],
                                             "all_reduce": ["partial", None],
                                             "reduce_scatter": ["partial", "dim"],
                                             "all_to_all": ["dim", "dim"]}[step["name"]], row)

    def test_no_chain_repeats_a_collective(self):
        """What one tensor needs at one point is one collective of a kind, over all axes that need it."""
        for _, _, p in shipped():
            for step in p.steps:
                before = p.values[step["ins"][0]]["step"] if step["collective"] is not None else None
                while before is not None and p.steps[before]["collective"] is not None:
                    same_reason = [p.collectives[s["collective"]]["why"][-1:]
                                   for s in (step, p.steps[before])]
                    statistic = p.collectives[step["collective"]]["rule"] == "statistic"
                    if step["name"] == p.steps[before]["name"] and not statistic:
                        self.assertNotEqual(*same_reason)
                    before = p.values[p.steps[before]["ins"][0]]["step"]

    def test_sizes_shrink_along_a_chain(self):
        """What becomes smaller comes first; where one axis leaves a dim that another joins, what leaves
        (R5)."""
        order = ["reduce_scatter", "all_to_all", "all_reduce", "all_gather"]
        longest = 0
        for _, _, p in shipped():
            chains = {}  # by the last step: kinds of a chain that one need asks for
            for i, step in enumerate(p.steps):
                if step["collective"] is None or p.collectives[step["collective"]]["rule"] in LEAVE_PLACES:
                    continue
                need = [w["text"].split(" ")[-3:] for w in p.collectives[step["collective"]]["why"]
                        if w["part"] == "needed"]
                before = p.values[step["ins"][0]]["step"]
                chain, asked = chains.pop(before, ([], need))
                kinds = [*chain, order.index(step["name"])] if asked == need else [order.index(step["name"])]
                chains[i] = kinds, need
                longest = max(longest, len(kinds))
                self.assertIn(kinds, (sorted(set(kinds)), sorted(set(kinds), reverse=True)))
        self.assertGreater(longest, 1)

    def test_queries_name_lines_of_the_plan(self):
        for plan in ("megatron_sp", "megatron_zero", "ulysses"):
            answer = json.loads(succeed("query", LLAMA, "comm(step)", "--plan", plan, "--why", "--format",
                                        "json").out)
            count = 0
            for term in answer["terms"]:
                for reason in term["from"]:
                    count += 1
                    said = [phrase for phrase in reason["why"] if phrase["of_plan"]]
                    self.assertTrue(said)
                    for phrase in said:
                        self.assertTrue(phrase["location"]["file"].endswith("plans.etch"))
                        self.assertTrue(self.line(phrase["location"]).strip())
            self.assertGreater(count, 20)

    def test_products_hold_what_follows_from_their_operands(self):
        """An axis that divides a dim which is summed leaves a partial sum, one that divides a dim which is
        kept divides the result; an operand that has the dim is divided along it, another is whole."""
        count = 0
        for _, _, p in shipped():
            for step in p.steps:
                if step["name"] != "einsum":
                    continue
                count += 1
                dims = [set(p.tensors[p.values[value]["tensor"]]["dims"])
                        for value in (*step["ins"], *step["outs"])]
                for axis in p.axes:
                    *ins, out = [p.states(value).get(axis) for value in (*step["ins"], *step["outs"])]
                    if "partial" in ins:
                        self.assertEqual((ins.count("partial"), len(ins) - 1), (1, ins.count(None)))
                        self.assertEqual("partial", out)
                        continue
                    factors = {state for state in (*ins, out) if state not in (None, "partial")}
                    self.assertLessEqual(len(factors), 1)
                    for factor in factors:
                        for state, has in zip(ins, dims):
                            self.assertEqual(factor if factor in has else None, state)
                        self.assertEqual(factor if factor in dims[-1] else "partial", out)
                    if not factors:
                        self.assertIsNone(out)
        self.assertGreater(count, 500)

    def test_sums_hold_what_their_operands_hold(self):
        for _, _, p in shipped():
            for step in p.steps:
                if step["name"] not in ("add", "sub", "add_cotangents", "silu", "gelu", "relu"):
                    continue
                out = p.states(step["outs"][0])
                for value in step["ins"]:
                    has = set(p.tensors[p.values[value]["tensor"]]["dims"])
                    want = {axis: dim for axis, dim in out.items() if dim == "partial" or dim in has}
                    self.assertEqual(want, p.states(value))

    def test_loops_hand_on_what_they_take(self):
        for _, _, p in shipped():
            for handed in p.handed:
                ends = [p.states(handed[end]) for end in ("init", "in", "out", "result")
                        if handed[end] is not None]
                self.assertNotIn("partial", ends[0].values())
                self.assertTrue(all(set(end) == set(ends[0]) for end in ends))

    def test_what_is_stated_is_told_apart(self):
        p = Placement(LLAMA, "--plan", "megatron_sp")
        by_kind = collections.defaultdict(set)
        for value in p.values:
            by_kind[p.tensors[value["tensor"]]["kind"]].add(value["source"])
        self.assertEqual({"map"}, by_kind["weight"] | by_kind["input"])
        pinned = [value for value in p.values if value["source"] == "pin"]
        self.assertEqual({"[B@dp,S@tp,H]"}, {value["place"] for value in pinned})
        lines = (MODELS / "plans.etch").read_text(encoding="utf-8").splitlines()
        for value in pinned:
            self.assertIn("pin   residual", lines[value["line"]["line"] - 1])
            self.assertIn("residual", p.tensors[value["tensor"]]["tags"])
        for value in p.values:
            for shard in value["shards"]:
                if value["source"] == "map":
                    self.assertRegex(lines[shard["line"]["line"] - 1], r"^ +shard ")

    # ---- reasons -------------------------------------------------------------------------------------------

    def line(self, location):
        path = pathlib.Path(location["file"])
        lines = path.read_text(encoding="utf-8").splitlines()
        self.assertLessEqual(location["line"], len(lines))
        return lines[location["line"] - 1]

    def test_every_collective_has_a_reason(self):
        for _, _, p in shipped():
            for row in p.collectives:
                self.assertIn(row["rule"], RULES)
                parts = [phrase["part"] for phrase in row["why"]]
                self.assertEqual(1, parts.count("needed"), row)
                self.assertLessEqual(set(parts), {"made", "needed", "plan"})
                self.assertTrue(any(phrase["location"] for phrase in row["why"]), row)
                if row["step"] is not None:
                    self.assertEqual("made", parts[0])
                for phrase in row["why"]:
                    self.assertTrue(phrase["text"])
                    if not phrase["location"]:
                        continue
                    line = self.line(phrase["location"])
                    if phrase["part"] == "plan" and " @ " in phrase["text"]:
                        what = re.match(r"\w+", phrase["text"])[0]
                        self.assertRegex(line, rf"\b{what}\b.*@")

    def test_every_collective_names_a_line_of_the_plan(self):
        for _, _, p in shipped():
            for row in p.collectives:
                lines = [phrase for phrase in row["why"] if phrase["of_plan"] and phrase["location"]]
                self.assertTrue(lines, row)

    def test_reasons_of_a_block(self):
        """Megatron's two pairs, by hand: what makes each partial or divided, and what wants it otherwise."""
        p = Placement(LLAMA, "block", "--plan", "megatron_sp")
        forward = [(row["collective"], row["why"][0]["text"],
                    next(w["text"] for w in row["why"] if w["part"] == "needed"))
                   for row in p.collectives if row["phase"] == "forward"]
        self.assertEqual(forward, [
            ("all_gather", "divided along S @ tp by rms_norm(x, g) in llama.block.norm",
             "needed whole by einsum(x, wq) in llama.block.attention"),
            ("reduce_scatter",
             "partial over tp from einsum(y.3, wo) in llama.block.attention, which sums over K",
             "needed divided along S @ tp by add(x, y.2) in llama.block"),
            ("all_gather", "divided along S @ tp by rms_norm(x, g) in llama.block.norm",
             "needed whole by einsum(x, wg) in llama.block.mlp"),
            ("reduce_scatter", "partial over tp from einsum(y.2, wd) in llama.block.mlp, which sums over F",
             "needed divided along S @ tp by add(y, z.2) in llama.block")])

    def test_reasons_at_the_end_of_a_step(self):
        p = Placement(LLAMA, "--plan", "megatron_zero")
        lines = (MODELS / "plans.etch").read_text(encoding="utf-8").splitlines()
        found = collections.Counter()
        for row in p.collectives:
            if row["phase"] != "sync":
                continue
            said = " ".join(lines[w["location"]["line"] - 1] for w in row["why"] if w["part"] == "plan")
            kinds = {"reduce_scatter": ("reduce", "zero  1 @ dp"), "all_gather": ("update", "zero  1 @ dp"),
                     "all_reduce": ("reduce", "pin   residual")}
            rule, line = kinds[row["collective"]]
            self.assertEqual(rule, row["rule"])
            self.assertIn(line, said)
            self.assertEqual({"weight"}, {p.tensors[t]["kind"] for t in row["tensors"]})
            found[row["collective"]] += 1
        self.assertEqual({"reduce_scatter": 3, "all_gather": 3, "all_reduce": 2}, dict(found))

    def test_stages_clip_and_tied_weights(self):
        text = """etch 1
param batch, seq, layers, hidden, vocab
dim B = batch, S = seq, H = hidden, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
model tied(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight emb[V,H]
  x[B,S,H] = gather(emb, ids, over = V)  tag embed
  repeat layers as layer {
    weight w[H,H']
    h[B,S,H'] = x * w
    x = x + relu(h[H'->H])
  }
  z[B,S,V] = x * emb                             tag head
  l[]      = cross_entropy(z, labels, over = V)  tag head, loss
}
train { model = tied, optimizer = adamw, accumulate = (B, 4), clip = 1 }
parallel p {
  mesh  [pp, dp]
  shard B @ dp
  stage (embed, layer, head) @ pp
}
"""
        spec = self.write("tied.etch", text)
        p = Placement(spec, "--set", "batch=16,seq=8,layers=6,hidden=4,vocab=10,pp=4,dp=2", "--plan", "p")
        rules = {row["rule"]: row for row in p.collectives}
        lines = text.splitlines()
        for rule, kind, group, line in (("tie", "all_reduce", "pp", "  stage (embed, layer, head) @ pp"),
                                        ("clip", "all_reduce", "(pp,dp)", lines[15]),
                                        ("stage", "send", "pp", lines[19])):
            self.assertEqual((kind, group), (rules[rule]["collective"], rules[rule]["group"]))
            needed = next(w for w in rules[rule]["why"] if w["part"] == "needed")
            self.assertEqual(line, lines[needed["location"]["line"] - 1])
        self.assertEqual(["1", "0", "0", "1"], [share["times"] for share in rules["tie"]["stages"]])
        self.assertEqual([str(4 * 10 * 4), "0"], [share["bytes"] for share in rules["tie"]["stages"]][:2])
        self.assertEqual(["emb"], [p.tensors[t]["name"] for t in rules["tie"]["tensors"]])
        forward = [row for row in p.collectives if row["rule"] == "stage" and row["phase"] == "forward"]
        self.assertEqual(["2*B*S*H/(dp*micro)"] * len(forward), [row["bytes_by_dims"] for row in forward])
        self.assertEqual(["x"],
                         sorted({p.tensors[t]["name"].split("#")[0] for row in forward
                                 for t in row["tensors"]}))
        self.assertEqual([4, 4, 4, 0],
                         [sum(int(row["stages"][s]["times"]) for row in forward) for s in range(4)])

    # ---- parts, axes of size 1, other forms ----------------------------------------------------------------

    def test_a_part_has_the_collectives_that_stand_in_it(self):
        whole = Placement(LLAMA, "--plan", "megatron_sp")
        for part, path in (("attention", "block.attention"), ("mlp", "block.mlp"), ("block", "block")):
            p = Placement(LLAMA, part, "--plan", "megatron_sp")

            def row(g, c):
                return (c["collective"], c["group"], c["phase"], c["bytes"], c["rule"],
                        g.modules[c["module"]]["path"],
                        c["stages"][0]["bytes"])

            inside = [row(whole, c) for c in whole.collectives
                      if f"{whole.modules[c['module']]['path']}.".startswith(f"{path}.")
                      and c["phase"] != "sync"]
            mine = [row(p, c) for c in p.collectives if c["phase"] != "sync"]
            self.assertEqual(collections.Counter(inside), collections.Counter(mine))
            self.assertTrue(inside)

    def test_one_stage(self):
        p = Placement(LLAMA, "--plan", "megatron_pp", "--stage", "last")
        self.assertEqual(["last"], p.stages)
        asked = succeed("query", LLAMA, "comm(step, stage = last)", "--plan", "megatron_pp").out.strip()
        for point in POINTS:
            self.assertEqual(Formula(asked).at(point), Formula(p.report["sum"][0]["bytes"]).at(point))

    def test_axes_of_one_rank_are_gone(self):
        text = succeed("show", LLAMA, "--plan", "megatron_sp", "--set", "tp=1,dp=4").out
        self.assertNotIn("@tp", text)
        self.assertNotIn("over tp", text)
        p = Placement(LLAMA, "--plan", "megatron_sp", "--set", "tp=1,dp=4")
        self.assertEqual({("all_reduce", "dp")}, {(row["collective"], row["group"]) for row in p.collectives})
        alone = Placement(LLAMA, "--plan", "ddp", "--set", "dp=1")
        self.assertEqual(([], []), (alone.collectives, alone.totals))

    def test_products_have_the_names_of_the_plan(self):
        p = Placement(MIXTRAL, "--plan", "moe_ep")
        groups = {row["group"] for row in p.collectives}
        self.assertEqual({"tp", "ep", "dp", "edp", "(dp,tp)"}, groups)
        by_axis = json.loads(succeed("query", MIXTRAL, "comm(step)", "--plan", "moe_ep", "--by", "axis",
                                     "--format", "json").out)
        self.assertEqual(groups, {row["label"] for row in by_axis["rows"]})
        for group in groups:
            asked = succeed("query", MIXTRAL, f"comm(step, axis = {group})", "--plan", "moe_ep").out.strip()
            self.assertEqual({asked}, {row["formula"] for row in by_axis["rows"] if row["label"] == group})
        places = {value["place"] for value in p.values}
        self.assertIn("[B@dp,S@tp,H]", places)

    def test_the_text_says_it_first(self):
        text = succeed("show", LLAMA, "--plan", "megatron_sp", "--config", "llama3_8b", "--set",
                       "batch=128,seq=4096,micro=4,dp=8,tp=4").out
        first = text.split("\nforward", 1)[0]
        for word in ("all_gather", "reduce_scatter", "all_reduce", "total", "GB)"):
            self.assertIn(word, first)
        sums, total = table(LLAMA, "comm(step)", "collective", "llama3_8b", "megatron_sp",
                            dict(batch=128, seq=4096, micro=4, dp=8, tp=4))
        self.assertIn(f" {total} ", first)
        self.assertIn(f" {sums['reduce_scatter']} ", first)
        self.assertIn("pin ", text)

    def test_pictures(self):
        for spec, more, p in shipped():
            picture = Dot(succeed("show", spec, *more, "--format", "dot").out)
            hexagons = {node for node,
                        (_, attributes) in picture.nodes.items() if attributes.get("shape") == "hexagon"}
            self.assertEqual(len(p.collectives), len(hexagons))
            self.assertEqual({f"s{i}" for i, step in enumerate(p.steps) if not step["passes"]},
                             {node for node in picture.nodes if node[0] == "s"})
            for a, b, _ in picture.edges:
                self.assertIn(a, picture.nodes)
                self.assertIn(b, picture.nodes)
            for node in hexagons:
                number = int(re.match(r"#(\d+) ", picture.nodes[node][1]["label"])[1])
                row = p.collectives[number - 1]
                self.assertIn(f"{row['collective']} over {row['group']}", picture.nodes[node][1]["label"])

    def test_the_same_bytes_twice(self):
        for form in ("plain", "json", "dot"):
            once = succeed("show", MIXTRAL, "--plan", "moe_ep", "--format", form).out
            self.assertEqual(once, succeed("show", MIXTRAL, "--plan", "moe_ep", "--format", form).out)

    def test_errors(self):
        for more, code in ((["--plan", "megatorn"], "E0421"), (["atention", "--plan", "megatron"], "E0624"),
                           (["--plan", "megatron_pp", "--stage", "5", "--set", "pp=2,layers=4"], "E0631"),
                           (["--stage", "first"], None)):
            done = run("show", LLAMA, *more)
            self.assertNotEqual(0, done.status)
            self.assertEqual("", done.out)
            if code:
                self.assertIn(code, [error["code"] for error in done.errors()])


if __name__ == "__main__":
    main()
