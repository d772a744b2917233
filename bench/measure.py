"""Runs of a program, measured: process time (user and system) and elapsed time, each the median of several
runs, and beside them runs of something that does nothing, taken in turns so that both see the same
machine."""

import functools
import os
import resource
import statistics
import subprocess
import sys
import time


def once(command, before):
    before()
    start, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    elapsed, now = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr.decode()}")
    return elapsed, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


@functools.cache
def unsynced(etch):
    """Words for `lower`, so that the speed of the program is measured and not that of a disk: older programs
    do not know them, and do not sync."""
    known = subprocess.run([etch, "help", "lower"], capture_output=True, check=True).stdout
    return ["--no-sync"] if b"--no-sync" in known else []


def compare(commands, rounds, before=lambda: None):
    """`commands`: label -> words. Label -> (elapsed, process time), in seconds."""
    taken = {label: [] for label in commands}
    for _ in range(rounds):
        for label, command in commands.items():
            taken[label].append(once([str(word) for word in command], before))
    return {label: tuple(statistics.median(column) for column in zip(*rows)) for label, rows in taken.items()}


def show(results):
    width = max(map(len, results))
    print(f"{'':{width}}  elapsed ms  process ms")
    for label, (elapsed, used) in results.items():
        print(f"{label:{width}}  {1000 * elapsed:10.2f}  {1000 * used:10.2f}")


def program():
    """$ETCH, or the release build."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.environ.get("ETCH", os.path.join(root, "build", "release", "etch"))
    if not os.access(path, os.X_OK):
        sys.exit(f"there is no program {path}: build the preset release, or set ETCH")
    return path, os.path.join(root, "models")
