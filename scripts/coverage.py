#!/usr/bin/env python3
"""What tests have run of the sources: lines and branches, by folder, from the counts of gcov.

    coverage.py [--list] [--lines PERCENT] [--branches PERCENT] BUILD [PREFIX...]

BUILD is a build of the preset `coverage` in which tests have run. A PREFIX, as src/lang, leaves out what does
not begin with it. --list prints each line that was not run (`0`), and each whose branches were not all taken
(`taken/all`), with its text. With --lines or --branches the exit status is 1 where less was run.

Of asserts, and of lines that say so, branches are not counted: they are there for what cannot be."""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNREACHABLE = ("assert(", "abort()", "__builtin_unreachable")


def counts_of(build):
    """File -> line -> [times it was run, times of each branch], over all objects that have the line."""
    found = collections.defaultdict(dict)
    data = sorted(build.rglob("*.gcda"))
    if not data:
        raise SystemExit(f"coverage.py: nothing was run in {build}")
    for path in data:
        if "CMakeFiles" not in path.parts or "tests" in path.parts:
            continue
        done = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout", str(path)],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=build, check=True)
        for part in done.stdout.splitlines():
            for unit in json.loads(part)["files"]:
                add(found, unit)
    return found


def add(found, unit):
    path = pathlib.Path(unit["file"])
    path = path if path.is_absolute() else ROOT / path
    if not path.is_relative_to(ROOT / "src"):
        return
    lines = found[str(path.relative_to(ROOT))]
    for line in unit["lines"]:
        times = [branch["count"] for branch in line.get("branches", []) if not branch.get("throw")]
        known = lines.get(line["line_number"])
        if known is None:
            lines[line["line_number"]] = [line["count"], times]
            continue
        known[0] += line["count"]
        if len(known[1]) == len(times):
            known[1] = [a + b for a, b in zip(known[1], times)]
        elif len(times) > len(known[1]):
            known[1] = times


class Sum:
    def __init__(self):
        self.lines = self.run = self.branches = self.taken = 0

    def add(self, count, times):
        self.lines += 1
        self.run += count > 0
        self.branches += len(times)
        self.taken += sum(time > 0 for time in times)

    def share(self, part, all_of):
        return 100 * part / all_of if all_of else 100.0

    def text(self):
        return (f"{self.share(self.run, self.lines):6.2f} % of {self.lines:6} lines"
                f"{self.share(self.taken, self.branches):8.2f} % of {self.branches:6} branches")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--list", action="store_true")
    options.add_argument("--lines", type=float, default=0)
    options.add_argument("--branches", type=float, default=0)
    options.add_argument("build", type=pathlib.Path)
    options.add_argument("prefixes", nargs="*")
    given = options.parse_args()
    found, sums, everything = counts_of(given.build.resolve()), collections.defaultdict(Sum), Sum()
    for path, lines in sorted(found.items()):
        if given.prefixes and not path.startswith(tuple(given.prefixes)):
            continue
        text = (ROOT / path).read_text(encoding="utf-8").splitlines()
        for number, (count, times) in sorted(lines.items()):
            words = text[number - 1] if number <= len(text) else ""
            times = [] if any(word in words for word in UNREACHABLE) else times
            for which in (sums["/".join(path.split("/")[:2])], everything):
                which.add(count, times)
            taken = sum(time > 0 for time in times)
            if given.list and (count == 0 or taken < len(times)):
                print(f"{path}:{number}: {'0' if count == 0 else f'{taken}/{len(times)}'}\t{words.strip()}")
    for folder, total in sorted(sums.items()):
        print(f"{folder:16}{total.text()}")
    print(f"{'all':16}{everything.text()}")
    share = everything.share(everything.run, everything.lines), everything.share(everything.taken,
                                                                                everything.branches)
    sys.exit(share[0] < given.lines or share[1] < given.branches)


if __name__ == "__main__":
    main()
