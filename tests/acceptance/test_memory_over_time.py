"""Memory over time, as `etch memory` has it: the same bytes as the formulas of memory(C) at their most, never
more; equal to a walk through the slots; and what is there at the peak adds up to it."""

import csv
import io
import itertools
import json

import plans
from effort import NIGHTLY, effort, first_seed
from etchtest import GPT, LLAMA, MODELS, Case, main, run, settings, succeed, table, value
from shipped import SMALL, axes_of, params_of, runs_of, specs_of

SPECS = specs_of(MODELS)
NAMES = ("memory(activations)", "memory(workspace)", "memory(states)", "memory(cache)", "memory(peak)")
KEPT = ("activations",)
WORKED_ON = ("gathered", "communication", "workspace")
LASTING = ("weights", "grads", "optimizer", "cache")


def plans_of(spec):
    return json.loads(succeed("check", spec, "--format", "json").out)["plans"]


def small(spec, plan):
    names = params_of(spec) | axes_of(spec, plan)
    return {name: size for name, size in SMALL.items() if name in names}


def memory(spec, *options):
    return json.loads(succeed("memory", spec, "--format", "json", *options).out)


def by_stage(spec, what, plan, sets, of_run=None):
    quantity = f"{what[:-1]}, run = {of_run})" if of_run else what
    return list(table(spec, quantity, "stage", plan=plan, sets=sets)[0].values())


def of(answer, row, kinds):
    return sum(row["bytes"][answer["kinds"].index(kind)] for kind in kinds)


class Curve(Case):
    def assertStage(self, answer, stage, says):
        """`says`: what the formulas have of the stage."""
        rows = stage["rows"]
        kept = max(of(answer, row, KEPT) for row in rows)
        worked_on = max(of(answer, row, WORKED_ON) for row in rows)
        peak = rows[stage["peak"]]
        self.assertEqual(says["memory(workspace)"], worked_on)
        self.assertLessEqual(kept, says["memory(activations)"])
        for row in rows:
            self.assertEqual(sum(row["bytes"]), row["total"])
            self.assertEqual(says["memory(states)"] + says["memory(cache)"], of(answer, row, LASTING))
        self.assertEqual(max(row["total"] for row in rows), peak["total"])
        self.assertLessEqual(peak["total"], says["memory(peak)"])
        self.assertEqual(sum(item["bytes"] for item in stage["alive"]), peak["total"])
        for kind, bytes_ in zip(answer["kinds"], peak["bytes"]):
            self.assertEqual(sum(item["bytes"] for item in stage["alive"] if item["kind"] == kind), bytes_,
                             kind)
        together = any(of(answer, row, KEPT) == says["memory(activations)"]
                       and of(answer, row, WORKED_ON) == worked_on for row in rows)
        self.assertEqual(together, peak["total"] == says["memory(peak)"])
        return kept == says["memory(activations)"], together

    def check(self, spec, plan, of_run):
        sets = small(spec, plan)
        answer = memory(spec, "--plan", plan, "--set", settings(sets), *(["--run", of_run] if of_run else []))
        columns = [by_stage(spec, name, plan, sets, of_run) for name in NAMES]
        found = []
        for stage, says in zip(answer["stages"], zip(*columns), strict=True):
            with self.subTest(spec=spec.name, plan=plan, run=of_run, stage=stage["stage"]):
                found.append(self.assertStage(answer, stage, dict(zip(NAMES, says))))
        return found

    def test_shipped(self):
        """Every model under some of its plans; in the nights, under all."""
        exact = []
        for i, spec in enumerate(SPECS):
            its_plans = plans_of(spec)
            for plan in its_plans if NIGHTLY else its_plans[i % 4::4]:
                for of_run in runs_of(spec):
                    exact += self.check(spec, plan, of_run)
        self.assertTrue(all(kept for kept, _ in exact), "shipped models keep as much as the formulas say")
        self.assertTrue(any(together for _, together in exact))


class Shared(Curve):
    """Slots that a forward and a backward action share, of chunks that are of one microbatch or of two."""

    test_shipped = None

    def test_schedules(self):
        for schedule, model, more in itertools.product(
                ("zb_v", "dualpipe", "dualpipev"), (LLAMA, GPT),
                ("", "zero 3 @ dp", "zero 3 @ dp, keep = microbatch", "zero 2 @ dp\n  recompute = layer")):
            spec = self.write("chunks.etch", f'etch 1\nimport "{model}"\nparallel cut {{\n  mesh [pp, dp]\n'
                              f"  shard B @ dp\n  stage (embed, layer, head) @ pp, schedule = {schedule}\n"
                              f"  {more}\n}}\n")
            sizes = {**Walk.SIZES, "positions": 32, "layers": 9, "pp": 4, "micro": 8, "batch": 16}
            sets = {name: size for name, size in sizes.items() if name in params_of(model) | {"pp", "dp"}}
            answer = memory(spec, "--plan", "cut", "--set", settings(sets))
            columns = [by_stage(spec, name, "cut", sets) for name in NAMES]
            for stage, says in zip(answer["stages"], zip(*columns), strict=True):
                with self.subTest(schedule=schedule, model=model.stem, more=more, stage=stage["stage"]):
                    self.assertStage(answer, stage, dict(zip(NAMES, says)))


class Random(Curve):
    """Random plans: stages of several schedules, unequal chunks, weights in parts, recomputation."""

    FIRST = first_seed(0)
    COUNT = effort(40)
    test_shipped = None

    def test_plans(self):
        refused = 0
        for seed in range(self.FIRST, self.FIRST + self.COUNT):
            plan = plans.Plan(seed)
            spec, sets = self.write(f"{seed}.etch", plan.text()), plan.bound()
            done = run("memory", spec, "--format", "json", "--plan", "random", "--set", settings(sets))
            if done.status:
                self.assertIn(done.errors()[0]["code"], plans.REASONS, done)
                refused += 1
                continue
            answer = json.loads(done.out)
            columns = [by_stage(spec, name, "random", sets) for name in NAMES]
            for stage, says in zip(answer["stages"], zip(*columns), strict=True):
                with self.subTest(seed=seed, stage=stage["stage"]):
                    self.assertStage(answer, stage, dict(zip(NAMES, says)))
        self.assertLess(8 * refused, self.COUNT + 8)


class Walk(Case):
    """What is kept, against the order of the slots and what a microbatch keeps."""

    SIZES = dict(layers=6, hidden=64, heads=8, kv_heads=4, head_dim=8, ffn=96, vocab=128, batch=48, seq=32,
                 micro=6, pp=2, dp=2, tp=2)
    PLAN = """
parallel cut {
  mesh  [pp, dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  stage (embed, layer, head) @ pp, schedule = SCHEDULE
}
"""

    def answer(self, schedule):
        text = f'import "{LLAMA}"' + self.PLAN.replace("SCHEDULE", schedule)
        spec = self.write("s.etch", "etch 1\n" + text)
        return spec, memory(spec, "--plan", "cut", "--set", settings(self.SIZES))

    def check(self, schedule):
        spec, answer = self.answer(schedule)
        kept = by_stage(spec, "rank_saved(of = model)", "cut", self.SIZES)
        layer = value(spec, "rank_saved(of = layer)", plan="cut", sets=self.SIZES)
        for stage, of_one in zip(answer["stages"], kept, strict=True):
            held = {"forward": 0, "backward": 0}
            for slot, what in enumerate(stage["slots"]):
                rows = [row for row in stage["rows"] if row["slot"] == slot]
                inside = [of(answer, row, KEPT) for row in rows]
                back = what["direction"] == "backward"
                before = (held["forward"] - held["backward"]) * of_one
                held[what["direction"]] += 1
                self.assertEqual(before + (0 if back else of_one), inside[0 if back else -1])
                self.assertEqual(sorted(inside, reverse=back), inside)
                looping = [of(answer, row, KEPT) for row in rows if row["loop"]]
                looping = looping[::-1] if back else looping
                self.assertEqual(layer, looping[1] - looping[0])
                # the last iteration leaves what the head keeps
                self.assertLessEqual(layer, looping[2] - looping[1])
                turns = [row["iteration"] for row in rows if row["loop"]]
                self.assertEqual(sorted(turns, reverse=back), turns)
                self.assertEqual(3, len(turns))

    def test_schedules(self):
        for schedule in ("gpipe", "one_f_one_b"):
            with self.subTest(schedule=schedule):
                self.check(schedule)

    def test_halves(self):
        """Between the halves of backward less is there than before the first, and something."""
        _, answer = self.answer("zb_h1")
        for stage in answer["stages"]:
            whole = of(answer, max(stage["rows"], key=lambda row: of(answer, row, KEPT)), KEPT)
            last = [row for row in stage["rows"] if row["slot"] == len(stage["slots"]) - 1]
            self.assertEqual(1, len(last))
            self.assertTrue(0 < of(answer, last[0], KEPT) < whole)


class Forms(Case):
    OPTIONS = ("--plan", "megatron_pp", "--set", settings(
        {name: size for name, size in SMALL.items() if name in params_of(LLAMA) | {"dp", "tp", "pp"}}))

    def test_csv(self):
        answer = memory(LLAMA, *self.OPTIONS)
        table_ = list(csv.DictReader(io.StringIO(
            succeed("memory", LLAMA, "--format", "csv", *self.OPTIONS).out)))
        wanted = [(stage, stage["slots"][row["slot"]], row) for stage in answer["stages"]
                  for row in stage["rows"]]
        self.assertEqual(len(wanted), len(table_))
        for (stage, slot, row), line in zip(wanted, table_):
            self.assertEqual([str(stage["stage"]), str(row["slot"]), slot["direction"],
                              str(slot["microbatch"]), str(slot["chunk"]), row["loop"] or "",
                              "" if row["iteration"] is None else str(row["iteration"]),
                              *map(str, row["bytes"]), str(row["total"])], list(line.values()))

    def test_stage(self):
        one = memory(LLAMA, "--stage", "1", *self.OPTIONS)
        self.assertEqual(memory(LLAMA, *self.OPTIONS)["stages"][1:], one["stages"])

    def test_refused(self):
        for words, code in ((("--stage", "7"), "E0631"), (("--set", "micro=3"), "E0523"),
                            (("--set", "hidden=hidden"), "E0520")):
            done = run("memory", LLAMA, *self.OPTIONS, *words)
            self.assertEqual((1, "", [code]),
                             (done.status, done.out, [error["code"] for error in done.errors()]), done)


if __name__ == "__main__":
    main()
