"""Every shipped spec, with every plan and train block that it has or imports: it is checked without a
warning, its traces are written in small, and they finish whatever the timing; their totals are those of the
formulas."""

import json
import pathlib
import re

from etchtest import MODELS, Case, main, run, settings, succeed
from shipped import SMALL, axes_of, params_of, runs_of, specs_of
SPECS = specs_of(MODELS)
SEVERAL_LOSSES = ("bert", "albert")  # of words and of texts, which are not as many


def listing(spec):
    return json.loads(succeed("check", spec, "--format", "json").out)


def own_plans(spec):
    """The plans that a spec with a model has or imports; of one that imports its model those that it adds
    itself."""
    text = spec.read_text(encoding="utf-8")
    return listing(spec)["plans"] if re.search(r"^model ", text,
                                               re.M) else re.findall(r"^parallel\s+(\w+)", text, re.M)


class Shipped(Case):
    def lower(self, spec, plan, of_run):
        """Small traces of all ranks; those without stages are held against the formulas."""
        names = params_of(spec) | axes_of(spec, plan)
        sets = {name: size for name, size in SMALL.items() if name in names}
        folder = self.scratch / f"{spec.stem}.{plan}.{of_run}"
        succeed("lower", spec, "--plan", plan, "--set", settings(sets), "-o", folder,
                *(["--run", of_run] if of_run else []))
        succeed("verify", folder)
        if len(json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["stages"]) == 1:
            self.assertTotals(folder, spec, None, plan, sets, of_run)
        self.assertFine(folder)

    def test_lowered(self):
        for spec in SPECS:
            for plan in own_plans(spec):
                for of_run in runs_of(spec):
                    with self.subTest(spec=spec.name, plan=plan, run=of_run):
                        self.lower(spec, plan, of_run)

    def test_no_warning(self):
        for spec in SPECS:
            with self.subTest(spec=spec.name):
                self.assertNotIn("warning", succeed("check", spec).err)

    def test_tokens(self):
        """Tokens of a step give the batch: those that are judged of each sequence are as many as here."""
        lengths = {"t5": "tgt", "whisper": "tgt", "chunk": "new", "decode": None, "vit": None, "clip": None,
                   "resnet": None, "dit": None, "dit_blocks": None}
        for spec in SPECS:
            for of_run in runs_of(spec):
                length = lengths.get(of_run or spec.stem, "seq")
                sets = {name: size for name, size in SMALL.items() if name in params_of(spec) - {"batch"}}
                sets["tokens"] = 48 * (SMALL[length] if length else 1)
                named = ["--run", of_run] if of_run else []
                with self.subTest(spec=spec.name, run=of_run):
                    if spec.stem in SEVERAL_LOSSES:
                        said = run("query", spec, "batch", "--set", settings(sets)).err
                        self.assertIn("E0511", said)
                        continue
                    found = succeed("query", spec, "batch", "--set", settings(sets), *named).out
                    self.assertEqual(found.split(), ["48"])

    def test_plans_taken(self):
        """`check` says how many plans of plans.etch a spec takes: as many as the table has."""
        table = pathlib.Path(__file__).with_name("plans_taken.tsv").read_text(encoding="utf-8")
        rows = [line.split("\t") for line in table.splitlines() if not line.startswith("#")]
        declared = len(re.findall(r"^parallel ", (MODELS / "plans.etch").read_text(encoding="utf-8"), re.M))
        found = {}
        for spec in SPECS:
            takes = {row["file"]: row for row in listing(spec)["takes"]}
            row = takes.get(str(MODELS / "plans.etch"), {"declared": declared, "taken": 0})
            self.assertEqual(row["declared"], declared)
            found[spec.stem] = row["taken"]
        self.assertEqual(found, {name: int(taken) for name, taken in rows})


if __name__ == "__main__":
    main()
