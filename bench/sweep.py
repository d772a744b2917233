#!/usr/bin/python3
"""How fast sweeps are: 1,000,000 configurations of Llama-3-70B under megatron_pp, six quantities each, of
which 650,000 survive and are written as CSV. From nothing: reading, compiling, evaluating, writing. Beside it
the same formulas in plain Python, as `etch query --format python` prints them for one case, values only.
And what a planner asks first: the ten best of all plans and all factorisations of 512 ranks for Llama-3-405B
at 8192 tokens, with a peak under 80 GB, by communication and by time; elapsed. Beside a row of the latter
alone, a run of all of its nodes. Times of steps of rows that differ in numbers alone, with up to 8 stages and
with 16 of 8 chunks. And 64,000,000 rows of which statements over the first axes cut most off,
and 16,000,000 of which one about memory does, each beside looking at all of them.

    sweep.py [FOLDER]        where to write the rows; else where temporary files go
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

import measure

ROUNDS, SAMPLE = 3, 2000
LIMIT = 2.0  # s of process time
LIMIT_BEST = 2.0  # s elapsed
LIMIT_TIMED, LIMIT_CHUNKS = 20, 200  # us of process time a row
BEST, BEST_TIME = "best of 512 ranks", "best of 512 ranks by time"
ROW, RUN = "one row: query time(step)", "one row: simulate"
ON = ["--machine", "h100_sxm"]
CUT = "64,000,000 rows, most of them cut"
CUT_BY_MEMORY = "16,000,000 rows, most cut by memory(peak)"
TIMED, CHUNKS = "step times of rows, pp <= 8", "step times of rows, 16 stages of 8 chunks"
QUANTITIES = ["params(model)", "rank_flops(step)", "comm(step)", "memory(states)", "memory(activations)",
              "memory(peak)"]
PLAN = ["--config", "llama3_70b", "--plan", "megatron_pp"]
AXES = ["pp = 1, 2, 4, 8, 16", "tp = 1, 2, 4, 8, 16", "dp = powers(2, 0, 7)", "micro = powers(2, 0, 9)",
        "seq = range(512, 256000, 512)"]


def command(etch, models, out, threads):
    over = [word for axis in AXES for word in ("--over", axis)]
    return [etch, "sweep", f"{models}/llama.etch", *PLAN, "--set", "batch=2048", *over, "--select",
            ",".join(QUANTITIES), "-o", out, "-q", "-j", threads]


def best_command(etch, models, threads, expression, more=()):
    return [etch, "sweep", f"{models}/llama.etch", "--config", "llama3_405b", "--plans", "all", "--set",
            "batch=2048,seq=8192", "--over", "micro = powers(2, 9, 11)", "--where",
            "ranks == 512, memory(peak) <= 80 GB", "--best", expression, "--top", "10", "--select",
            f"memory(peak), {expression}", "-q", "-j", threads, *more]


def row_command(etch, words):
    return [etch, *words, "--config", "llama3_405b", "--plan", "long_context_pp", "--set",
            "batch=2048,seq=8192,micro=1024,dp=2,tp=8,pp=8,cp=4", *ON, "-q"]


def timed_command(etch, models, config, plan, sets, axes):
    return [etch, "sweep", f"{models}/llama.etch", "--config", config, "--plan", plan, *ON, "--set", sets,
            *(word for axis in axes for word in ("--over", axis)), "--select", "time(step)", "-q", "-j", 1]


def timed_commands(etch, models):
    return {TIMED: timed_command(etch, models, "llama3_70b", "megatron_pp", "batch=2048",
                                 ["pp = 1, 2, 4, 8", "tp = 1, 2, 4, 8", "micro = powers(2, 4, 9)",
                                  "dp = 1, 2, 4", "seq = range(512, 5120, 32)"]),
            CHUNKS: timed_command(etch, models, "llama3_405b", "megatron_interleaved",
                                  "batch=2048,layers=128,plan.schedule=interleaved(virtual = 8)",
                                  ["pp = 16", "tp = 4, 8", "micro = 64, 128", "dp = 1, 2, 4",
                                  "seq = range(512, 5120, 8)"])}


def cut_command(etch, models, *more):
    axes = [*AXES[:-1], "seq = range(8, 256000, 8)"]
    return [etch, "sweep", f"{models}/llama.etch", *PLAN, "--set", "batch=2048",
            *(word for axis in axes for word in ("--over", axis)), "--where",
            "pp*tp*dp >= 512, pp*tp*dp <= 512, tp <= 8", "--best", "memory(peak)", "-q", "-j", 1, *more]


def cut_by_memory_command(etch, models, *more):
    axes = ["dp = powers(2, 3, 6)", "micro = powers(2, 0, 3)", "batch = range(512, 512000, 512)",
            "seq = range(512, 512000, 512)"]
    return [etch, "sweep", f"{models}/llama.etch", "--config", "llama3_70b", "--plan", "fsdp",
            *(word for axis in axes for word in ("--over", axis)), "--where", "memory(peak) <= 80 GB",
            "--best", "-seq", "-q", "-j", 1, *more]


def in_python(etch, models):
    """Seconds for one configuration, values only, of the case of 8 stages."""
    texts = [subprocess.run([etch, "query", f"{models}/llama.etch", quantity, *PLAN, "--set",
                             "pp=8,batch=2048,dp=dp,tp=tp,micro=micro,seq=seq", "-q", "--defaults",
                             "--format", "python", "--stage", "0"] if "params" not in quantity else
                            [etch, "query", f"{models}/llama.etch", quantity, *PLAN, "-q", "--format",
                             "python"],
                            check=True, capture_output=True, text=True).stdout.strip().split("\n")[-1]
             for quantity in QUANTITIES]
    codes = [compile(text, "formula", "eval") for text in texts]
    import math
    from fractions import Fraction
    names = {"math": math, "Fraction": Fraction, "max": max, "min": min, "ceil": math.ceil,
             "ceiling": math.ceil, "floor": math.floor, "Max": max, "Min": min, "Rational": Fraction}
    start = time.process_time()
    for i in range(SAMPLE):
        values = dict(names, dp=Fraction(2), tp=Fraction(4), micro=Fraction(2),
                      seq=Fraction(512 + 512 * i))
        for code in codes:
            eval(code, values)  # pylint: disable=eval-used
    return (time.process_time() - start) / SAMPLE


def main():
    etch, models = measure.program()
    folder = tempfile.mkdtemp(prefix="etch-bench.", dir=sys.argv[1] if len(sys.argv) > 1 else None)
    threads = os.cpu_count()
    try:
        out = f"{folder}/rows.csv"
        results = measure.compare({"sweep, 1 thread": command(etch, models, out, 1),
                                   f"sweep, {threads} threads": command(etch, models, out, threads),
                                   BEST: best_command(etch, models, threads, "comm(step)"),
                                   BEST_TIME: best_command(etch, models, threads, "time(step)", ON),
                                   ROW: row_command(etch, ["query", f"{models}/llama.etch", "time(step)"]),
                                   RUN: row_command(etch, ["simulate", f"{models}/llama.etch"]),
                                   **timed_commands(etch, models), CUT: cut_command(etch, models),
                                   "the same, every row": cut_command(etch, models, "--every-row"),
                                   CUT_BY_MEMORY: cut_by_memory_command(etch, models),
                                   "of memory, every row": cut_by_memory_command(etch, models,
                                                                                 "--every-row")}, ROUNDS)
        with open(out, encoding="utf-8") as file:
            rows = sum(1 for _ in file) - 1
    finally:
        shutil.rmtree(folder)
    measure.show(results)
    used = results[f"sweep, {threads} threads"][1]
    each = in_python(etch, models)
    print(f"{rows} rows of 1000000 written; plain Python: {1e6 * each:.1f} us a row, "
          f"{1e6 * each / results['sweep, 1 thread'][1]:.0f} times as long as the sweep as a whole")
    slow = False
    for label, count, limit in ((TIMED, 4 * 4 * 6 * 3 * 145, LIMIT_TIMED),
                                (CHUNKS, 2 * 2 * 3 * 577, LIMIT_CHUNKS)):
        each = 1e6 * results[label][1] / count
        slow = slow or each > limit
        print(f"{label}: {each:.0f} us of process time each")
    print(f"all nodes of a row take {results[RUN][1] / results[ROW][1]:.0f} times as long as its time")
    sys.exit(slow or used > LIMIT or rows < 500000 or
             max(results[BEST][0], results[BEST_TIME][0]) > LIMIT_BEST)


main()
