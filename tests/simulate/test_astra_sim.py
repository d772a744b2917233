"""`etch simulate` on the machine that `etch lower --astra-sim` writes, against the cycles that ASTRA-sim took
on the same traces (astra_sim.tsv): both of a spec and of its traces, within a hundredth. The table in
docs/time.md is what this test finds; UPDATE=1 writes it."""

import csv
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "acceptance"))
from etchtest import MODELS, SOURCE, Case, lower, options, succeed  # noqa: E402

MOST = 0.01
DOCS = SOURCE / "docs" / "time.md"
MARKS = "<!-- cycles: tests/simulate/test_astra_sim.py -->\n", "<!-- end of cycles -->\n"
HEAD = ("| model | plan and sizes | groups | ranks | ASTRA-sim | traces | spec |\n"
        "|---|---|---|---|---|---|---|\n")


def rows():
    lines = pathlib.Path(__file__).with_name("astra_sim.tsv").read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))


class Cycles(Case):
    def step(self, folder, *words):
        done = succeed("simulate", *words, "--machine", folder / "machine.etch", "--format", "json", "-q")
        answer = json.loads(done.out)
        return answer["ranks"], answer["step_ps"]

    def test_as_the_simulator(self):
        table = []
        for row in rows():
            spec = MODELS / f"{row['spec']}.etch"
            sizes = dict(size.split("=") for size in row["set"].split(","))
            with self.subTest(**row):
                folder = lower(self.scratch / "out", spec, row["config"], row["plan"], sizes,
                               ["--astra-sim", "--groups", row["groups"]])
                ranks, of_traces = self.step(folder, folder)
                said = options(row["config"], row["plan"], sizes)
                _, of_spec = self.step(folder, spec, *said, "--streams", "one")
                cycles = int(row["cycles"])
                off = [ps / (1000 * cycles) - 1 for ps in (of_traces, of_spec)]
                self.assertLess(max(map(abs, off)), MOST)
                plan = f"`{row['plan']}` {row['set'].replace(',', ', ')}"
                table.append(f"| {row['config']} | {plan} | {row['groups']} | {ranks} | {cycles} "
                             f"| {off[0]:+.3%} | {off[1]:+.3%} |\n")
        text = DOCS.read_text(encoding="utf-8")
        before, rest = text.split(MARKS[0])
        wanted = before + MARKS[0] + HEAD + "".join(table) + MARKS[1] + rest.split(MARKS[1])[1]
        if os.environ.get("UPDATE"):
            DOCS.write_text(wanted, encoding="utf-8")
        self.assertEqual(wanted, DOCS.read_text(encoding="utf-8"), "UPDATE=1 writes the table")


if __name__ == "__main__":
    unittest.main()
