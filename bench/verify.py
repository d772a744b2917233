#!/usr/bin/python3
"""How fast `etch verify` is: Llama-3-8B for 2,048 ranks, about half a gigabyte of traces. Beside it, in the
same run: one thread that reads the same files and does nothing with them, the least that any reader would
have to do. The files are in the page cache for both.

    verify.py [FOLDER]       where to write the traces; else where temporary files go
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import measure

RANKS, ROUNDS, PIECE = 2048, 5, 1 << 17
LEAST = 2e6  # nodes a second, on all processors
BOUND = ["--config", "llama3_8b", "--plan", "megatron_sp", "--set",
         f"dp={RANKS // 8},tp=8,batch=512,micro=2,seq=8192"]


def read_plainly(folder):
    """Elapsed seconds for reading every file of the folder."""
    start, buffer = time.perf_counter(), bytearray(PIECE)
    for entry in os.scandir(folder):
        file = os.open(entry.path, os.O_RDONLY)
        while os.readv(file, [buffer]) > 0:
            pass
        os.close(file)
    return time.perf_counter() - start


def traces_of(etch, models, out):
    return [etch, "lower", f"{models}/llama.etch", *BOUND, "-q", "-o", out]


def main():
    etch, models = measure.program()
    folder = tempfile.mkdtemp(prefix="etch-bench.", dir=sys.argv[1] if len(sys.argv) > 1 else None)
    out, threads = f"{folder}/out", os.cpu_count()
    verify = [etch, "verify", out, "-q", "-j"]
    try:
        measure.once(traces_of(etch, models, out), lambda: None)
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
    print(f"{nodes} nodes, {size} bytes, verdict {told['verdict']}; medians of {ROUNDS}")
    plain = statistics.median(taken["plain reading"])
    for label, times in taken.items():
        seconds = statistics.median(times)
        print(f"{label:18}  {1000 * seconds:7.0f} ms  {nodes / seconds / 1e6:6.2f} million nodes/s  "
              f"{seconds / plain:5.1f} times plain reading")
    return 0 if nodes / seconds >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
