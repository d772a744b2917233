#!/usr/bin/python3
"""How fast `etch verify` is: Llama-3-8B for 2,048 ranks, about half a gigabyte of traces, and one layer of it
for 131,072 ranks, about 1.4 gigabytes. Beside it, in the same run: one thread that reads the same files and
does nothing with them, the least that any reader would have to do. The files are in the page cache for both.

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

ROUNDS, PIECE = 5, 1 << 17
LEAST = 2e6  # nodes a second, on all processors
LAYERS = {2048: 32, 131072: 1}


def read_plainly(folder):
    """Elapsed seconds for reading every file of the folder."""
    start, buffer = time.perf_counter(), bytearray(PIECE)
    for entry in os.scandir(folder):
        file = os.open(entry.path, os.O_RDONLY)
        while os.readv(file, [buffer]) > 0:
            pass
        os.close(file)
    return time.perf_counter() - start


def traces_of(etch, models, out, ranks=2048):
    bound = f"dp={ranks // 8},tp=8,batch={ranks // 4},micro=2,seq=8192,layers={LAYERS[ranks]}"
    return [etch, "lower", f"{models}/llama.etch", "--config", "llama3_8b", "--plan", "megatron_sp",
            "--set", bound, "-q", "-o", out, *measure.unsynced(etch)]


def compare(etch, models, ranks, where):
    """Nodes a second of the run with all threads."""
    folder = tempfile.mkdtemp(prefix="etch-bench.", dir=where)
    out, threads = f"{folder}/out", os.cpu_count()
    verify = [etch, "verify", out, "-q", "-j"]
    try:
        measure.once(traces_of(etch, models, out, ranks), lambda: None)
        told = json.loads(subprocess.run([*verify, "1", "--format", "json"], stdout=subprocess.PIPE,
                                         check=True).stdout)
        nodes, size = told["nodes"]["all"], told["bytes"]
        taken = {"plain reading": [], "verify, 1 thread": [], f"verify, {threads} threads": []}
        for _ in range(ROUNDS):
            rounds = (read_plainly(out), measure.once([*verify, "1"], lambda: None)[0],
                      measure.once([*verify, str(threads)], lambda: None)[0])
            for label, seconds in zip(taken, rounds):
                taken[label].append(seconds)
    finally:
        shutil.rmtree(folder)
    print(f"{ranks} ranks, {nodes} nodes, {size} bytes, verdict {told['verdict']}; medians of {ROUNDS}")
    plain = statistics.median(taken["plain reading"])
    for label, times in taken.items():
        seconds = statistics.median(times)
        print(f"{label:18}  {1000 * seconds:7.0f} ms  {nodes / seconds / 1e6:6.2f} million nodes/s  "
              f"{seconds / plain:5.1f} times plain reading")
    return nodes / seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, choices=LAYERS, action="append")
    parser.add_argument("folder", nargs="?")
    given = parser.parse_args()
    etch, models = measure.program()
    speeds = [compare(etch, models, ranks, given.folder) for ranks in given.ranks or LAYERS]
    return 0 if min(speeds) >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
