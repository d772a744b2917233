"""Random plans for the shipped models: traces keep all rules and finish whatever the timing, their totals are
those of the formulas, stage by stage, and of an axis that has one rank nothing is left. ETCH_TEST_SEED
chooses the first plan, ETCH_TEST_MULT multiplies their number."""

import collections
import json
import math
import shutil

import plans
from effort import effort, first_seed
from etchtest import Formula, Point, lower, main, number, options, run, succeed, table, trace, value
from pipeline import Stages, stage_of

FIRST, COUNT = first_seed(0), effort(120)
NAME = "random"


class Random(Stages):
    def each(self, check):
        """Runs `check` with each plan that can be, its spec and what is bound. The others, which must be few,
        say why not and where."""
        refused = collections.Counter()
        for seed in range(FIRST, FIRST + COUNT):
            plan = plans.Plan(seed)
            spec = self.write(f"{seed}.etch", plan.text())
            with self.subTest(seed=seed, model=plan.model):
                try:
                    done = run("lower", spec, "--dry-run", *options(plan=NAME, sets=plan.bound()))
                    if done.status == 0:
                        check(plan, spec, plan.bound())
                    else:
                        refused[self.reason(done)] += 1
                except AssertionError as error:
                    raise AssertionError(f"{error}\n{plan.model} with "
                                         f"{plan.bound()}:\n{plan.body(plan.mesh)}") from None
            for path in self.scratch.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.assertLess(8 * sum(refused.values()), COUNT + 8, refused)

    def reason(self, done):
        """The code of an error of the plan, with a place."""
        self.assertEqual(1, done.status, done)
        error = done.errors()[0]
        self.assertIn(error["code"], plans.REASONS, done)
        self.assertTrue(error["line"], done)
        return error["code"]

    def lowered(self, plan, spec, left=None):
        folder = self.scratch / f"{spec.stem}.out"
        lower(folder, spec, plan=NAME, sets=plan.bound(left))
        self.assertFine(folder)
        return folder

    def test_traces(self):
        def check(plan, spec, sets):
            folder = self.lowered(plan, spec)
            if not plan.balanced:
                self.assertParts(folder, spec, sets)
            elif plan.mesh.get("pp", 1) > 1:
                self.assertStages(folder, spec, NAME, sets, self.mesh_of(folder))
            else:
                self.assertTotals(folder, spec, None, NAME, sets)
            self.assertIn("verdict   always", succeed("verify", folder, "--seeds", 3).out)

        self.each(check)

    def assertParts(self, folder, spec, sets):
        """Each row of the manifest, which the traces have come to, is what queries say of its stage and part
        of the sequence."""
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        for index, row in enumerate(manifest["stages"]):
            stage = ["--stage", row.get("stage", index)] if "pp" in self.mesh_of(folder) else []

            def asked(query):
                return number(succeed("query", spec, query, *options(plan=NAME, sets=sets), *stage).out)

            part = f", part = {row['part']}" if "part" in row else ""
            self.assertEqual(asked(f"rank_flops(step{part})"), int(row["flop"]), row)
            self.assertEqual(asked("traffic(step)"), int(row["bytes"]), row)
            for comm in row["comm"]:
                if comm["collective"] != "recv":
                    query = f"comm(step, op = {comm['collective']}, axis = {comm['axes']})"
                    self.assertEqual(asked(query), int(comm["bytes"]), query)
            sent = sum(int(comm["bytes"]) for comm in row["comm"] if comm["collective"] != "recv")
            self.assertEqual(asked("comm(step)"), sent, row)

    def test_axes_of_one_rank(self):
        """Of groups and collectives nothing of them is left: they are those of the plan without these axes.
        What stays is where kernels end, and that a gradient's part which would be moved is added by a node of
        its own."""
        def check(plan, spec, sets):
            wide = {axis for axis, size in plan.mesh.items() if size > 1}
            folder = self.lowered(plan, spec)
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            for family in manifest["comm_groups"]["families"]:
                self.assertLessEqual(set(family["mesh_axes"]), wide)
            # With stages, also with one, what several of them could read is gathered for each; and axes that
            # divide one dim together, and others apart, leave it together.
            stay = {"pp"} if plan.weights_in_parts else set()
            stay |= {"kv", "g"} if {"kv", "g"} & wide else set()
            left = [axis for axis in plan.mesh if axis in wide | stay]
            if len(left) == len(plan.mesh):
                return
            less = self.write(f"{plan.seed}.less.etch", plan.text(left))
            other = self.lowered(plan, less, left)
            self.assertEqual(self.comm(other), self.comm(folder))
            for phase in ("forward", "recompute", "optimizer"):
                query = f"rank_flops({phase})"
                self.assertEqual(value(less, query, plan=NAME, sets=plan.bound(left)),
                                 value(spec, query, plan=NAME, sets=sets), query)

        self.each(check)

    @staticmethod
    def mesh_of(folder):
        """axis -> size, in the order in which ranks are numbered."""
        mesh = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["mesh"]
        return {axis["axis"]: axis["size"] for axis in mesh}

    def comm(self, folder):
        """Of each stage, without padding: the collectives of a rank."""
        mesh = self.mesh_of(folder)
        stages = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["stages"]
        of_stage = {row.get("stage", index): row for index, row in enumerate(stages)}
        found = [{} for _ in of_stage]
        for row in trace.totals(folder):
            for stage in {stage_of(rank, mesh) for rank in row["ranks"]}:
                found[stage] = self.without_padding(row, of_stage[stage])
        for row in found:
            del row["traffic"], row["rank_flops"]
        return found

    def test_formulas(self):
        """Formulas in the sizes of the mesh have the values that they have when these are bound."""
        def check(plan, spec, sets):
            if min(plan.mesh.values()) == 1:
                return  # formulas hold for axes of more
            free = {name: size for name, size in sets.items() if name not in plan.mesh or name == "pp"}
            stage = ["--stage", plan.chance.randrange(plan.mesh["pp"])] if "pp" in plan.mesh else []
            for query in ("rank_flops(step)", "traffic(step)", "comm(step)", "wire(step)"):
                text = succeed("query", spec, query, *options(plan=NAME, sets=free), *stage).out
                bound = succeed("query", spec, query, *options(plan=NAME, sets=sets), *stage).out
                self.assertEqual(number(bound), Formula(text).at(Point(0, **sets)), f"{query} = {text}")

        self.each(check)

    def test_ranks_do_the_work(self):
        """All of the job, together, at least once."""
        def check(plan, spec, sets):
            ranks = math.prod(plan.mesh.values())
            found = value(spec, "rank_flops(forward)", plan=NAME, sets=sets)
            if plan.mesh.get("pp", 1) > 1:
                rows, _ = table(spec, "rank_flops(forward)", "stage", plan=NAME, sets=sets)
                found, ranks = sum(rows[str(stage)]
                                   for stage in range(plan.mesh["pp"])), ranks // plan.mesh["pp"]
            self.assertGreaterEqual(ranks * found, value(spec, "flops(forward)", plan=NAME, sets=sets))

        self.each(check)


if __name__ == "__main__":
    main()
