"""Stage by stage: what the nodes of a trace add up to is what queries say, for every shipped model and plan,
cut in every way; what formulas say of the first, a middle and the last stage is what each stage has; and it
is what a reader computes by hand, unit by unit."""

import collections
import itertools
import json
import re
from fractions import Fraction

import decoder
from etchtest import (GPT, LLAMA, Case, Formula, Point, ask, lower, main, run, succeed, table, trace, value,
                      with_plans)
from pipeline import SCHEDULES, Stages, chunks_of, held
from test_numbers import LLAMA_DIMS
from test_zero import edited

SIZES = {LLAMA: dict(hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=24, vocab=36),
         GPT: dict(hidden=24, heads=4, vocab=52, positions=37)}
STEP = dict(batch=24, seq=16)
PLAN = re.compile(r"parallel (?P<name>\w+) \{.*?\n(?P<body>.*?)^\}\n", re.S | re.M)


def cut_plans(text, schedule, counts):
    """Every plan of a model with its stages cut like this, under the name that it has: name -> axes of the
    mesh, and a spec of them all."""
    meshes = {}
    stage = f"  stage (embed, layer, head) @ pp, schedule = {schedule}" + (f", counts = {counts}" if counts
                                                                           else "")

    def cut(match):
        body = "\n".join(line for line in match["body"].splitlines() if not line.lstrip().startswith("stage"))
        axes = re.search(r"mesh +\[(.*?)\]", body)[1].split(", ")
        meshes[match["name"]] = ["pp"] + [axis for axis in axes if axis != "pp"]
        body = re.sub(r"mesh +\[.*?\]", f"mesh [{', '.join(meshes[match['name']])}]", body)
        return f"parallel {match['name']} {{\n{body}\n{stage}\n}}\n"

    return PLAN.sub(cut, text), meshes


def text_of(spec):
    """The text of a model for a folder of its own."""
    return edited("") if spec == LLAMA else with_plans(spec)


def widths(axes):
    """A small mesh with these axes: two ranks along each, but four would be many for all of them."""
    return {axis: 2 if axis in ("dp", "tp", "cp") else 1 for axis in axes}


class Totals(Stages):
    def every(self, model, ways):
        for schedule, stages, layers, counts in ways:
            micro = stages if chunks_of(schedule) > 1 else 3
            text, meshes = cut_plans(text_of(model), schedule, counts)
            spec = self.write("cut.etch", text)
            for plan, axes in meshes.items():
                mesh = {**widths(axes), "pp": stages}
                sets = {**SIZES[model], **STEP, "batch": 4 * micro, "micro": micro, "layers": layers, **mesh}
                name = f"{plan}.{schedule[:13]}.{chunks_of(schedule)}.{layers}.{len(counts or [])}"
                with self.subTest(model=model.stem, schedule=schedule, counts=counts, layers=layers,
                                  plan=plan):
                    folder = lower(self.scratch / name, spec, plan=plan, sets=sets)
                    self.assertFine(folder)
                    self.assertStages(folder, spec, plan, sets, mesh)

    WAYS = [("gpipe", 3, 5, None), ("one_f_one_b", 2, 3, [1, 4]), ("one_f_one_b", 3, 3, [1, 3, 1]),
            ("interleaved(virtual = 2)", 2, 4, None), ("interleaved(virtual = 3)", 2, 6, [1, 2, 1, 1, 2, 1]),
            ("zb_v", 3, 5, None), ("zb_v", 2, 4, [2, 1, 2, 1])]

    def test_llama(self):
        self.every(LLAMA, self.WAYS)

    def test_gpt(self):
        self.every(GPT, self.WAYS)

    def test_the_order_of_axes(self):
        """Stages over two axes, and inside of others."""
        text = text_of(LLAMA).replace("stage (embed, layer, head) @ pp\n",
                                      "stage (embed, layer, head) @ (po,pp)\n")
        mesh = dict(po=2, dp=2, pp=2, tp=1)
        spec = self.write("axes.etch", text.replace("mesh  [pp, dp, tp]", "mesh  [po, dp, pp, tp]"))
        sets = {**SIZES[LLAMA], **STEP, "micro": 3, "layers": 7, **mesh}
        folder = lower(self.scratch / "axes", spec, plan="megatron_pp", sets=sets)
        self.assertFine(folder)
        rows, _ = table(spec, "rank_flops(step)", "stage", plan="megatron_pp", sets=sets)
        totals = {rank: row["num_ops"] for row in trace.totals(folder) for rank in row["ranks"]}
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        for po, dp, pp in itertools.product(range(2), repeat=3):
            stage = 2 * po + pp
            padding = int(manifest["stages"][stage]["flop_padding"])
            self.assertEqual(rows[str(stage)], totals[4 * po + 2 * dp + pp] - padding)


class Whole(Case):
    """However it is cut, the stages have together what one stage would have."""

    def stages(self, spec, query, plan, sets, stages):
        rows, _ = table(spec, query, "stage", plan=plan, sets={**sets, "pp": stages})
        return sum(rows[str(stage)] for stage in range(stages))

    def test_sums(self):
        for spec, plan in itertools.product((LLAMA, GPT), ("megatron_pp", "megatron_interleaved")):
            sets = {**SIZES[spec], **STEP, "layers": 6, "micro": 4, "dp": 2, "tp": 2}
            one = {query: value(spec, query, plan=plan, sets={**sets, "pp": 1})
                   for query in ("rank_flops(forward)", "rank_flops(backward)", "rank_flops(recompute)",
                                 "rank_flops(optimizer)", "comm(forward, axis = tp)", "comm(sync, axis = dp)",
                                 "traffic(forward)", "traffic(optimizer)")}
            # elements of the embedding that a rank of each end has
            tied = 52 * 24 // 2 // 2 if spec == GPT else 0
            extra = {"rank_flops(optimizer)": 12 * tied, "traffic(optimizer)": 30 * tied,
                     "comm(sync, axis = dp)": decoder.F32 * 2 * tied + decoder.BF16 * tied}
            for stages in (2, 3, 4):
                for query, whole in one.items():
                    with self.subTest(model=spec.stem, plan=plan, stages=stages, query=query):
                        found = self.stages(spec, query, plan, sets, stages)
                        # Between two stages what is recomputed or sent is read once more, or written.
                        if not query.startswith("traffic(forward"):
                            self.assertEqual(whole + extra.get(query, 0), found)
                        else:
                            self.assertGreaterEqual(found, whole)

    def test_one_stage_is_as_without(self):
        """With pp bound to 1 a plan is the plan without its stage line, whatever the schedule."""
        for model, schedule in itertools.product((LLAMA, GPT), SCHEDULES[:3]):
            spec = self.write("cut.etch", cut_plans(text_of(model), schedule, None)[0])
            sets = {**SIZES[model], **STEP, "layers": 3, "micro": 2, "dp": 2, "tp": 2}
            both = []
            for name, of, more in (("staged", spec, {"pp": 1}), ("plain", model, {})):
                folder = lower(self.scratch / f"{model.stem}.{schedule}.{name}", of, plan="megatron_zero",
                               sets={**sets, **more})
                self.assertFine(folder)
                both.append(trace.totals(folder))
            for staged, plain in zip(*both):
                # A bucket may be cut in two where its weights could be in two stages.
                self.assertEqual(self.sizes(plain), self.sizes(staged))

    @staticmethod
    def sizes(row):
        sizes = {(comm["collective"], comm["axes"]): comm["comm_size"] for comm in row["comm"]}
        return row["ranks"], row["num_ops"], row["tensor_size"], sizes

    def test_parameters(self):
        """Weights that are updated: those of the units, twelve FLOP and thirty bytes each."""
        v = Point(0, **SIZES[LLAMA], layers=1)
        query, key = v.hidden * v.heads * v.head_dim, v.hidden * v.kv_heads * v.head_dim
        layer = 2 * query + 2 * key + 3 * v.hidden * v.ffn + 2 * v.hidden
        for stages, layers, schedule in ((4, 7, "one_f_one_b"), (3, 4, "gpipe"),
                                         (2, 5, "interleaved(virtual = 2)")):
            spec = self.write("cut.etch", cut_plans(text_of(LLAMA), schedule, None)[0])
            sets = {**SIZES[LLAMA], **STEP, "layers": layers, "micro": 2, "dp": 1, "tp": 1, "pp": stages}
            rows, _ = table(spec, "rank_flops(optimizer)", "stage", plan="megatron", sets=sets)
            for stage in range(stages):
                units = held(layers + 2, stages, stage, chunks_of(schedule))
                elements = sum(layer for unit in units if 0 < unit <= layers)
                elements += v.vocab * v.hidden * ((0 in units) + (layers + 1 in units))
                elements += v.hidden * (layers + 1 in units)  # the last norm's gain
                self.assertEqual(12 * elements, rows[str(stage)], (stages, stage))


class ByHand(Case):
    """Llama, unit by unit."""

    def test_forward(self):
        for stages, layers in ((2, 2), (3, 4), (4, 9)):
            v = Point(0, **SIZES[LLAMA], **STEP, layers=1)
            empty = Point(0, **SIZES[LLAMA], **STEP, layers=0)
            head = decoder.llama_forward(empty)
            layer = decoder.llama_forward(v) - head
            sets = {**SIZES[LLAMA], **STEP, "layers": layers, "micro": 3, "dp": 2, "tp": 2, "pp": stages}
            rows, _ = table(LLAMA, "rank_flops(forward)", "stage", plan="megatron_pp", sets=sets)
            for stage in range(stages):
                units = held(layers + 2, stages, stage)
                whole = sum(layer for unit in units if 0 < unit <= layers) + head * (layers + 1 in units)
                self.assertEqual(Fraction(whole) / 4, rows[str(stage)], (stages, stage))

    def test_collectives_over_tp(self):
        """Forward two gathers and two reduce-scatters a layer; the embedding has one of these, the head one
        of those."""
        stages, layers = 3, 5
        sets = {**SIZES[LLAMA], **STEP, "layers": layers, "micro": 3, "dp": 2, "tp": 2, "pp": stages}
        size = decoder.BF16 * STEP["batch"] // 2 * STEP["seq"] * 32
        scattered, _ = table(LLAMA, "comm(forward, op = reduce_scatter)", "stage", plan="megatron_pp",
                             sets=sets)
        gathered, _ = table(LLAMA, "comm(forward, op = all_gather)", "stage", plan="megatron_pp", sets=sets)
        for stage in range(stages):
            units = held(layers + 2, stages, stage)
            count = len([unit for unit in units if 0 < unit <= layers])
            self.assertEqual(size * (2 * count + (0 in units)), scattered[str(stage)])
            self.assertEqual(size // 2 * (2 * count + (layers + 1 in units)), gathered[str(stage)])

    def test_messages(self):
        """b s h for each boundary and direction, over tp under sequence parallelism, times the chunks."""
        for plan, chunks in (("megatron_pp", 1), ("megatron_interleaved", 2)):
            rows = {stage: ask(LLAMA, f"comm(step, op = send, stage = {stage})", plan=plan)
                    for stage in ("first", "middle", "last")}
            for stage, times in (("first", 2 * chunks - 1), ("middle", 2 * chunks), ("last", 2 * chunks - 1)):
                self.assertFormula(lambda v: times * 2 * v.batch * v.seq * v.hidden / v.dp / v.tp,
                                   rows[stage],
                                   LLAMA_DIMS)
            self.assertEqual(rows["first"],
                             ask(LLAMA, "comm(step, op = send, axis = pp, stage = first)", plan=plan))

    def test_as_many_stages_as_units(self):
        """The heaviest of 50000 stages of one unit each is one with a layer, or the head when that is
        more."""
        sets = {**SIZES[LLAMA], **STEP, "micro": 3, "dp": 2, "tp": 2, "pp": 50000, "layers": 49998}
        v = Point(0, **SIZES[LLAMA], **STEP, layers=1)
        head = decoder.llama_forward(Point(0, **SIZES[LLAMA], **STEP, layers=0))
        found = value(LLAMA, "rank_flops(forward)", plan="megatron_pp", sets=sets)
        self.assertEqual(max(decoder.llama_forward(v) - head, head) / 4, found)

    def test_a_bound_number_of_stages(self):
        """Two have no middle; a number that there is not is no stage."""
        rows = succeed("query", LLAMA, "comm(step, op = send)", "--plan", "megatron_pp", "--set", "pp=2",
                       "--by",
                       "stage").out.splitlines()
        self.assertEqual(["first", "last"],
                         [row.split()[0] for row in rows if not row.startswith("heaviest")])
        one = ask(LLAMA, "comm(step, op = send)", plan="megatron_pp", sets=dict(pp=2))
        self.assertFormula(lambda v: 2 * v.batch * v.seq * v.hidden / v.dp / v.tp, one, LLAMA_DIMS)
        for stage, status in (("1", 0), ("2", 1), ("middle", 1)):
            done = run("query", LLAMA, "comm(step)", "--plan", "megatron_pp", "--set", "pp=2", "--stage",
                       stage)
            self.assertEqual(status, done.status, done)


class Formulas(Case):
    """The formulas of the first, a middle and the last stage, with numbers put in, are what bound stages
    have."""

    QUERIES = ("rank_flops(step)", "traffic(step)", "comm(step)", "comm(step, op = send)",
               "rank_flops(optimizer)",
               "comm(sync)", "wire(step)")

    def formulas(self, spec, plan, query):
        done = succeed("query", spec, query, "--plan", plan, "--by", "stage", "--format", "json")
        return {row["label"]: Formula(row["formula"]) for row in json.loads(done.out)["rows"]}

    def test_formulas(self):
        for spec, plan in itertools.product((LLAMA, GPT), ("megatron_pp", "megatron_interleaved")):
            chunks = 2 if plan == "megatron_interleaved" else 1
            for query in self.QUERIES:
                formulas = self.formulas(spec, plan, query)
                self.assertLessEqual({"first", "middle", "last"}, set(formulas))
                for stages, layers in ((2, 3), (2, 8), (3, 6), (4, 9), (5, 11)):
                    if layers + 2 < 2 * chunks * stages:
                        continue  # a stage without a layer, perhaps
                    sets = {**SIZES[spec], **STEP, "layers": layers, "micro": 3, "dp": 2, "tp": 2,
                            "pp": stages}
                    rows, _ = table(spec, query, "stage", plan=plan, sets=sets)
                    for stage in range(stages):
                        kind = "first" if stage == 0 else "last" if stage == stages - 1 else "middle"
                        with self.subTest(model=spec.stem, plan=plan, query=query, stages=stages,
                                          layers=layers,
                                          stage=stage):
                            point = Point(0, **sets, stage=stage)
                            self.assertEqual(rows[str(stage)], formulas[kind].at(point))

    def test_a_numbered_stage(self):
        """`--stage 2` with the rest open is the formula of a middle stage with its number put in."""
        for query in ("rank_flops(forward)", "comm(step)"):
            middle = self.formulas(LLAMA, "megatron_pp", query)["middle"]
            two = succeed("query", LLAMA, query, "--plan", "megatron_pp", "--stage", "2")
            self.assertIn("pp > 3", two.err)
            for seed in range(3):
                point = Point(seed, stage=2)
                self.assertEqual(middle.at(point), Formula(two.out).at(point))

    def test_heaviest(self):
        """Without a stage it is the most that any stage has, and which one is said."""
        sets = {**SIZES[LLAMA], **STEP, "layers": 6, "micro": 3, "dp": 2, "tp": 2, "pp": 4}
        for query in ("rank_flops(step)", "comm(step)", "traffic(step)"):
            rows, most = table(LLAMA, query, "stage", plan="megatron_pp", sets=sets)
            stages = {label: size for label, size in rows.items() if label != "heaviest"}
            done = succeed("query", LLAMA, query, "--plan", "megatron_pp", "--set",
                           ",".join(f"{name}={size}" for name, size in sets.items()))
            self.assertEqual((max(stages.values()), most), (int(done.out), max(stages.values())))
            named = re.search(r"this is stage (\d+)", done.err)
            self.assertEqual(most, stages[named[1]])

    def test_by_collective_within_a_stage(self):
        sets = {**SIZES[LLAMA], **STEP, "layers": 6, "micro": 3, "dp": 2, "tp": 2, "pp": 4}
        for stage in ("0", "1", "3"):
            done = succeed("query", LLAMA, "comm(step)", "--plan", "megatron_pp", "--stage", stage, "--by",
                           "collective", "--format", "json", "--set",
                           ",".join(f"{name}={size}" for name, size in sets.items()))
            answer = json.loads(done.out)
            rows = collections.Counter({row["label"]: int(row["value"]) for row in answer["rows"]})
            self.assertEqual(int(answer["value"]), sum(rows.values()))
            for label, size in rows.items():
                self.assertEqual(size,
                                 value(LLAMA, f"comm(step, op = {label}, stage = {stage})",
                                       plan="megatron_pp",
                                       sets=sets))


if __name__ == "__main__":
    main()
