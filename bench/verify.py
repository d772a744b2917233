#!/usr/bin/python3
"""How fast `etch verify` is: Llama-3-8B for 2,048 ranks, about half a gigabyte of traces, and one layer of it
for 131,072 ranks, about 1.4 gigabytes, with collectives along dimensions of the network, whose traces are all
equal, and with groups, whose traces all differ. Beside it, in the same run and in turns: plain_read.c, which
reads the same files with as many threads and does nothing with them, the least that any reader would have to
do. The files are in the page cache for both: where the disk takes part, FOLDER is better one in memory.

    verify.py [--ranks N] [FOLDER]       FOLDER: where to write the traces; else where temporary files go
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import measure

ROUNDS, MOST_TIMES = 5, 2
LAYERS = {2048: 32, 131072: 1}


def compile_plain(folder):
    """The other program, for this machine."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plain_read.c")
    program = f"{folder}/plain_read"
    subprocess.run(["cc", "-O2", "-std=c11", "-o", program, source, "-lpthread"], check=True)
    return program


def read_plainly(plain, folder, threads):
    """Elapsed seconds for reading every file of the folder."""
    done = subprocess.run([plain, folder, str(threads)], stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


def traces_of(etch, models, out, ranks=2048, groups=None):
    bound = f"dp={ranks // 8},tp=8,batch={ranks // 4},micro=2,seq=8192,layers={LAYERS[ranks]}"
    return [etch, "lower", f"{models}/llama.etch", "--config", "llama3_8b", "--plan", "megatron_sp",
            "--set", bound, "-q", "-o", out, *measure.unsynced(etch),
            *(["--groups", groups] if groups else [])]


def compare(etch, models, ranks, groups, where):
    """How many times as long as plain reading the slowest of the runs takes."""
    folder = tempfile.mkdtemp(prefix="etch-bench.", dir=where)
    out, counts = f"{folder}/out", sorted({1, os.cpu_count()})
    verify = [etch, "verify", out, "-q", "-j"]
    try:
        plain = compile_plain(folder)
        measure.once(traces_of(etch, models, out, ranks, groups), lambda: None)
        told = json.loads(subprocess.run([*verify, "1", "--format", "json"], stdout=subprocess.PIPE,
                                         check=True).stdout)
        taken = {threads: [] for threads in counts}
        for _ in range(ROUNDS):
            for threads, rounds in taken.items():
                rounds.append((read_plainly(plain, out, threads),
                               measure.once([*verify, str(threads)], lambda: None)[0]))
    finally:
        shutil.rmtree(folder)
    nodes = told["nodes"]["all"]
    print(f"{ranks} ranks, groups {groups}, {nodes} nodes, {told['bytes']} bytes, verdict {told['verdict']}")
    worst = 0
    for threads, rounds in taken.items():
        read, verified = (statistics.median(column) for column in zip(*rounds))
        times = statistics.median(verified / read for read, verified in rounds)
        worst = max(worst, times)
        print(f"-j {threads}: plain reading {1000 * read:6.0f} ms, verify {1000 * verified:6.0f} ms, "
              f"{nodes / verified / 1e6:6.2f} million nodes/s, {times:.2f} times"
              f"{'' if times <= MOST_TIMES else ': TOO MUCH'}", flush=True)
    return worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, choices=LAYERS, action="append")
    parser.add_argument("folder", nargs="?")
    given = parser.parse_args()
    etch, models = measure.program()
    worst = [compare(etch, models, ranks, groups, given.folder)
             for ranks in given.ranks or LAYERS for groups in ("dims", "file")]
    print(f"medians of {ROUNDS}; limit: {MOST_TIMES} times")
    return 0 if max(worst) <= MOST_TIMES else 1


if __name__ == "__main__":
    sys.exit(main())
