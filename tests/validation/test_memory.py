"""Measured peaks of memory against `memory(peak)`: a part of docs/validation-time.md is what this test finds.
Nothing is fitted: rows are facts of memory.tsv. With UPDATE=1 the page is written anew."""

import csv
import math
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
ETCH = os.environ["ETCH"]
HERE = SOURCE / "tests" / "validation"
PAGE = SOURCE / "docs" / "validation-time.md"
BEGIN, END = "<!-- memory: tests/validation/test_memory.py -->\n", "<!-- end of memory -->\n"
# median and largest error of models without experts, in percent
MEDIAN, MOST = 3, 5


def table():
    with open(HERE / "memory.tsv", encoding="utf-8") as file:
        return list(csv.DictReader((line for line in file if line[0] != "#"), delimiter="\t"))


def gibibytes(row):
    done = subprocess.run([ETCH, "query", str(HERE / row["spec"]), "memory(peak)", "--plan", row["plan"],
                           "--set", row["sets"], "-q"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{row}\n{done.stderr}"
    return int(done.stdout) / 2**30


def off(found, row):
    return 100 * (found / float(row["gib"]) - 1)


def summary(errors):
    ordered = sorted(map(abs, errors))
    return f"{ordered[math.ceil(len(ordered) / 2) - 1]:.1f} % / {ordered[-1]:.1f} %"


def page(rows, found):
    yield "| row | measured, GiB | `memory(peak)` | peer |\n|---|---|---|---|\n"
    for row, gib in zip(rows, found):
        peer = float(row["peer"])
        yield (f"| {row['group']}: {row['row']} | {row['gib']} | {gib:.2f} ({off(gib, row):+.1f} %) | "
               f"{peer:.2f} ({off(peer, row):+.1f} %) |\n")
    yield "\n| rows | number | `memory(peak)`: median / most | peer | goal |\n|---|---|---|---|---|\n"
    for group in ("dense", "moe"):
        of = [(row, gib) for row, gib in zip(rows, found) if row["group"] == group]
        errors = [off(gib, row) for row, gib in of]
        goal = f"median {MEDIAN} %, most {MOST} %: met" if group == "dense" else ""
        yield (f"| {group} | {len(of)} | {summary(errors)} | "
               f"{summary(off(float(row['peer']), row) for row, _ in of)} | {goal} |\n")


def main():
    rows = table()
    found = [gibibytes(row) for row in rows]
    dense = sorted(abs(off(gib, row)) for row, gib in zip(rows, found) if row["group"] == "dense")
    failures = [] if len(dense) == 8 else [f"{len(dense)} rows of dense models"]
    if dense[math.ceil(len(dense) / 2) - 1] > MEDIAN or dense[-1] > MOST:
        failures.append(f"errors of dense models are {dense}")
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    written, tail = rest.split(END)
    new = "".join(page(rows, found))
    if os.environ.get("UPDATE"):
        PAGE.write_text(f"{head}{BEGIN}{new}{END}{tail}", encoding="utf-8")
    elif written != new:
        failures.append("docs/validation-time.md is not what is found: run the test with UPDATE=1")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
