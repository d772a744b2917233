#!/usr/bin/python3
"""One program against another, in pairs: every figure of bench/ that one etch has, for both of them in turns
in one run, so that both see the same machine. The ratio is old over new, the median of those of all pairs;
the status is 1 when it is below 1 by more than the pairs differ among themselves.

    against.py [--models FOLDER] [--rounds N] [--only TEXT] OLD NEW

OLD, NEW     two programs etch; beside each are the programs of bench/symbolic, where they were built
--models     specs for the old program, where it does not read those of this tree
--rounds     pairs of short commands (10); of long ones a third as many
--only       figures whose name has this text
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import compile as compiling
import emit_vs_write
import lower_405b
import lower_64
import measure
import query_cold
import verify

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "symbolic"))
import workload  # noqa: E402

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"
SYMBOLIC = [("build", "layer"), ("build", "step"), ("build", "narayanan"), ("build", "shapes"),
            ("evaluate", "step"), ("print", "step"), ("derivatives", "step"), ("stress", "product")]
BUDGET = "0.2"  # seconds of a round of bench/symbolic


def short_ones(etch, models, folder):
    del folder
    compiled = {**compiling.compile_all(etch, models, True), **compiling.compile_all(etch, models, False),
                **compiling.sizes_of(etch, models)}
    return {**{f"query_cold: {label}": words
               for label, words in query_cold.commands_of(etch, models).items()},
            **{f"compile: {label}": words for label, words in compiled.items()}}


def long_ones(etch, models, folder):
    out = f"{folder}/out"
    figures = {f"{module.__name__}: {label}": command for module in (lower_64, lower_405b, emit_vs_write)
               for label, command in module.commands_of(etch, models, out).items()}
    traces = f"{folder}/traces"
    if not os.path.exists(traces):
        subprocess.run([str(word) for word in verify.traces_of(etch, models, traces)], check=True,
                       stdout=subprocess.DEVNULL)
    for threads in sorted({1, os.cpu_count()}):
        figures[f"verify: {threads} threads"] = [etch, "verify", traces, "-q", "-j", str(threads)]
    return figures


def symbolic(folder, etch):
    """Figures of the symbolic core, which its program times itself; none where it is not built."""
    program = pathlib.Path(etch).resolve().parent / "bench" / "symbolic" / "bench_etch"
    if not os.access(program, os.X_OK):
        return {}
    for _, name in SYMBOLIC:
        pathlib.Path(folder, name).write_text(workload.Workload(name).text(), encoding="utf-8")
    return {f"symbolic: {task} {name}": [str(program), task, f"{folder}/{name}", BUDGET]
            for task, name in SYMBOLIC}


def process_time(command, clean):
    return measure.once([str(word) for word in command], clean)[1]


def time_told(command, clean):
    clean()
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0])


def runs(command):
    nothing = subprocess.DEVNULL
    return subprocess.run([str(word) for word in command], stdin=nothing, stdout=nothing, stderr=nothing,
                          check=False).returncode == 0


class Pairs:
    def __init__(self, only):
        self.only = only
        self.slower = []
        self.ratios = []

    def compare(self, old, new, rounds, take, clean):
        """`old`, `new`: label -> words. Both in turns, whoever is first changing."""
        for label, command in new.items():
            if self.only not in label or label not in old:
                continue
            clean()
            if take is process_time and not runs(old[label]):
                print(f"{label:60} the old program does not do this", flush=True)
                continue
            pairs = []
            for i in range(rounds):
                both = [(0, old[label]), (1, command)]
                times = {which: take(words, clean) for which, words in (both if i % 2 else both[::-1])}
                pairs.append((times[0], times[1]))
            self.show(label, pairs)

    def show(self, label, pairs):
        ratios = [before / after for before, after in pairs]
        ratio = statistics.median(ratios)
        low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratio, ratio, ratio)
        before, after = (1000 * statistics.median(column) for column in zip(*pairs))
        print(f"{label:60} {before:11.4g} {after:11.4g}  {ratio:6.2f}  {low:.2f}..{high:.2f}", flush=True)
        self.ratios.append(ratio)
        if ratio < 1 and high < 1:
            self.slower.append(f"{label}: {ratio:.2f}")


def main():
    words = argparse.ArgumentParser(description="one etch against another, in pairs")
    words.add_argument("--models", default=str(MODELS))
    words.add_argument("--rounds", type=int, default=10)
    words.add_argument("--only", default="")
    words.add_argument("old")
    words.add_argument("new")
    given = words.parse_args()
    folder = tempfile.mkdtemp(prefix="etch-bench.")
    homes = [f"{folder}/old", f"{folder}/new"]
    for home in homes:
        os.mkdir(home)

    def clean():
        for home in homes:
            shutil.rmtree(f"{home}/out", ignore_errors=True)

    etches = [os.path.abspath(given.old), os.path.abspath(given.new)]
    models = [pathlib.Path(given.models).resolve(), MODELS]
    pairs = Pairs(given.only)
    print(f"{'':60} {'old ms':>11} {'new ms':>11}   ratio  half of all pairs")
    try:
        pairs.compare(*(short_ones(*which) for which in zip(etches, models, homes)), given.rounds,
                      process_time, clean)
        pairs.compare(*(symbolic(home, etch) for home, etch in zip(homes, etches)), given.rounds // 3 + 1,
                      time_told, clean)
        pairs.compare(*(long_ones(*which) for which in zip(etches, models, homes)), given.rounds // 3 + 1,
                      process_time, clean)
    finally:
        shutil.rmtree(folder)
    if pairs.ratios:
        print(f"\n{len(pairs.ratios)} figures; ratio {min(pairs.ratios):.2f} to {max(pairs.ratios):.2f}, "
              f"median {statistics.median(pairs.ratios):.2f}")
    for text in pairs.slower:
        print(f"slower: {text}")
    return 1 if pairs.slower else 0


if __name__ == "__main__":
    sys.exit(main())
