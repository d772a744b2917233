"""Shipped machines are what `etch fit` finds in machines/data, and are as good as docs/time.md says.

Times of every row are held against the formulas of oracle.py, which share nothing with etch; errors are those
of the oracle. With UPDATE=1 the table of errors in docs/time.md is written anew.
"""

import json
import os
import pathlib
import subprocess
import sys

import oracle

SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
ETCH = os.environ["ETCH"]
MACHINES = SOURCE / "machines"
PAGE = SOURCE / "docs" / "time.md"
BEGIN, END = "<!-- errors: tests/machine/test_fit.py -->\n", "<!-- end of errors -->\n"
failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)


def fit(name, machine, *options):
    command = [ETCH, "fit", str(MACHINES / "data" / f"{name}.tsv"), "--machine",
               str(MACHINES / f"{machine}.etch"), "--format", "json", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def check_rows(where, found, rows, times, expected_parts):
    """The answers of etch, row by row, are those of the oracle."""
    by_line = {row["line"]: row for row in rows}
    expect(sorted(f["line"] for f in found["rows"]) == sorted(times), f"{where}: rows differ")
    for answer in found["rows"]:
        line = answer["line"]
        expect(answer["part"] == expected_parts[line], f"{where}:{line}: {answer['part']}")
        time, slack = times[line], oracle.D("1e-30")
        low, high = oracle.D(answer["low"]), oracle.D(answer["high"])
        expect(low - slack <= time <= high + slack, f"{where}:{line}: {time} is not in {low} to {high}")
        expect(high - low <= time * oracle.D("1e-14"), f"{where}:{line}: {low} to {high} is wide")
        measured = oracle.D(by_line[line]["us"]) / 10**6
        expect(abs(oracle.D(answer["measured"]) / measured - 1) < oracle.D("1e-15"), f"{where}:{line}: us")
        if "cycles" in by_line[line]:
            # these rows count the cycle 0 too, which those of SCALE-Sim's own tests do not
            expect(answer["cycles"] + 1 == int(by_line[line]["cycles"]), f"{where}:{line}: cycles")


def check_table(name, machine, rows):
    """What one table says of one machine: (row, part, error) of each row."""
    kind, formula, large = oracle.TABLES[name]
    where, numbers = f"{name}.tsv, {machine.name}", machine.fits[kind]
    expected_parts = oracle.parts(rows, large)
    rows = [row for row in rows if kind in ("collectives", "elementwise", "systolic")
            or row["dtype"] in machine.peaks]
    times = {row["line"]: formula(machine, row, numbers) for row in rows}
    check_rows(where, fit(name, machine.name, "--check"), rows, times, expected_parts)
    line = fit(name, machine.name)["fit"]
    expect(line in machine.lines, f"{where}: `etch fit` finds: {line}")
    errors = {line: abs(float(time * 10**6 / oracle.D(row["us"])) - 1)
              for row in rows for line, time in [(row["line"], times[row["line"]])]}
    return [(row, expected_parts[row["line"]], errors[row["line"]]) for row in rows]


def check_copy(machine, kind):
    """A machine of which nothing was measured has the line of another one."""
    line = [line for line in machine.lines if line.startswith(f"fit {kind} ")]
    others = [other for other in oracle.machines(MACHINES) if other.name != machine.name]
    expect(any(line[0] in other.lines for other in others), f"{machine.name}: nobody measured `{line[0]}`")


def collect():
    found = {}
    for machine in oracle.machines(MACHINES):
        for name, (kind, _, _) in oracle.TABLES.items():
            table = oracle.table(MACHINES / "data" / f"{name}.tsv")
            rows = [row for row in table if row["machine"] == machine.name]
            if kind in machine.fits and not rows:
                check_copy(machine, kind)
            elif kind in machine.fits:
                found[name, machine.name] = check_table(name, machine, rows)
    return found


def wide(row):
    return row["dtype"] == "bf16" and min(int(row[c]) for c in "mnk") >= 512


def long(row):
    return row["phase"] == "forward" and int(row["queries"]) >= 2048 and row["head_dim"] == "128"


def eight(row):
    return row["ranks"] == "8" and int(row["bytes"]) >= 2**20


def large_reduction(row):
    return row["ranks"] == "8" and row["op"] == "all_reduce" and int(row["bytes"]) >= 2**26


# Which rows, of which part, how far off at most: the median of all machines together, the median of each,
# nine tenths of all. A class without bounds is shown, and not promised.
KEPT, ALL = ("kept out",), ("kept out", "used")
ANY = ("kept out", "used", "aside")
CLASSES = [
    ("gemm", "products, bf16, dims >= 512", wide, KEPT, (0.055, 0.10, 0.16)),
    ("gemm", "products, f8", lambda r: r["dtype"] == "f8", ANY, None),
    ("gemm", "products, bf16, a dim below 128", lambda r: min(int(r[c]) for c in "mnk") < 128, ANY, None),
    ("moe", "grouped products, 128 rows a group or more", lambda r: True, KEPT, (0.15, 0.15, None)),
    ("attention", "attention, forward, 2,048 keys or more, head 128", long, ALL,
     {"a100_sxm": 0.05, "h100_sxm": 0.05, "b200_sxm": 0.12}),
    ("attention", "attention, backward", lambda r: r["phase"] == "backward", ANY, None),
    ("attention", "attention, decoding", lambda r: r["queries"] == "1" and int(r["keys"]) > 1, ANY, None),
    ("elementwise", "elementwise kernels and norms", lambda r: True, KEPT, None),
    ("collectives", "collectives in a node", lambda r: True, KEPT, (0.09, None, None)),
    ("collectives", "collectives in a node, 8 ranks from 1 MiB", eight, KEPT, (0.15, None, None)),
    ("collectives", "all-reduce of 8 ranks from 64 MiB", large_reduction, ALL, (0.15, 0.15, None)),
    ("systolic", "products on a systolic array", lambda r: True, KEPT, None),
]


def bound(bounds, machine):
    """What is promised of one machine."""
    if isinstance(bounds, dict):
        return bounds.get(machine)
    return bounds[1] if bounds else None


def percent(value):
    return f"{100 * value:.1f} %"


def report(found):
    lines = ["| kernels | machine | rows | median | p90 |", "|---|---|---|---|---|"]
    for name, title, chosen, of, bounds in CLASSES:
        together = []
        for (table, machine), rows in found.items():
            errors = [error for row, part, error in rows if table == name and part in of and chosen(row)]
            if not errors:
                continue
            together += errors
            median, most = oracle.quantile(errors, 5), bound(bounds, machine)
            lines.append(f"| {title} | `{machine}` | {len(errors)} | {percent(median)} | "
                         f"{percent(oracle.quantile(errors, 9))} |")
            expect(most is None or median <= most, f"{title}, {machine}: {percent(median)}")
        expect(len(together) > 3, f"{title}: {len(together)} rows are no measure")
        median, p90 = oracle.quantile(together, 5), oracle.quantile(together, 9)
        lines.append(f"| {title} | all | {len(together)} | {percent(median)} | {percent(p90)} |")
        if isinstance(bounds, tuple):
            expect(median <= bounds[0], f"{title}: {percent(median)}")
            expect(bounds[2] is None or p90 <= bounds[2], f"{title}: p90 {percent(p90)}")
        if isinstance(bounds, dict):
            measured = {machine for (table, machine) in found if table == name}
            expect(set(bounds) <= measured, f"{title}: machines")
    return "\n".join(lines) + "\n"


def main():
    text = report(collect())
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    shown, after = rest.split(END)
    if os.environ.get("UPDATE") == "1" and not failures:
        PAGE.write_text(before + BEGIN + text + END + after, encoding="utf-8")
    else:
        expect(shown == text, f"docs/time.md shows other errors than these; UPDATE=1 writes them:\n{text}")
    for failure in failures[:20]:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
