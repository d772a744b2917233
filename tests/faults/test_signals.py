"""A signal that asks for an end comes before each call of the system. The run ends in order and leaves all
as it was, or it was complete already; one that comes before anything is written ends the program as usual.
A second signal ends it at once: then stands what stands when it is killed.

With the word `threads` the signal meets a run of several threads, for ThreadSanitizer."""

import signal
import sys

import faulty
import standing

SIGNALS = (signal.SIGINT, signal.SIGTERM)
CANCELLED = 4


def is_fine(stand, end, seen):
    """Is it an end in order?"""
    if seen.status == stand.usual.status:
        return seen.files == stand.usual.files and seen.out == stand.usual.out
    if seen.status == -end:
        return seen.files == stand.before
    return seen.status == CANCELLED and seen.files == stand.before and b"cancelled" in seen.err


def hold_one(stand):
    """Returns how many runs were cancelled, and what was wrong."""
    wrong, cancelled = [], 0
    for n in range(1, stand.counts["signal"] + 1):
        end = SIGNALS[n % len(SIGNALS)]
        seen = stand.run(f"signal:{n}", ETCH_FAULT_SIGNAL=str(int(end)))
        cancelled += seen.status == CANCELLED
        if not is_fine(stand, end, seen):
            wrong.append(f"{stand.name}, {end.name} at {n}: status {seen.status}, {seen.err.decode()}")
    return cancelled, wrong


def hold_two(stand):
    """The second of two signals ends the run, wherever it is; of each call the next but two."""
    wrong = []
    for n in faulty.sampled(stand.counts["signal"], 6):
        seen = stand.run(f"signal:{n},signal:{n + 3}", ETCH_FAULT_SIGNAL=str(int(signal.SIGINT)))
        if seen.status not in (0, CANCELLED, -signal.SIGINT):
            wrong.append(f"status {seen.status}")
        wrong += [f"{stand.name}, twice at {n}: {what}" for what in
                  (*stand.mistakes(seen.files), *stand.mistakes_of_next(seen.files))]
    return wrong


def hold_threads(bench):
    """Runs of four threads, at calls of the main thread and of all others."""
    command = faulty.Command((*faulty.LOWER, "-j", "4", "-o", "out", "--set", "batch=32,dp=8"))
    usual = bench.run(command)
    assert usual.status == 0, usual
    wrong, cancelled, counts = [], 0, bench.count()
    for n in faulty.sampled(counts["signal"], 25):
        seen = bench.run(command, f"signal:{n}", ETCH_FAULT_SIGNAL=str(int(signal.SIGINT)))
        cancelled += seen.status == CANCELLED
        expected = {0: usual.files, CANCELLED: {}, -signal.SIGINT: {}}
        if seen.status not in expected or seen.files != expected[seen.status]:
            wrong.append(f"four threads, at {n}: status {seen.status}, {sorted(seen.files)}, "
                         f"{seen.err.decode()}")
    return cancelled, wrong


def main():
    if sys.argv[2:] == ["threads"]:
        cancelled, wrong = hold_threads(faulty.Bench(sys.argv[1]))
        faulty.finish("faults.interrupted", cancelled, wrong, "runs cancelled")
    bench, wrong, cancelled = standing.bench_of(sys.argv[1]), [], 0
    for name in standing.WRITERS:
        for way in (standing.EXCHANGES, standing.PLAIN)[:2 if "earlier" in name else 1]:
            stand = standing.Standing(bench, name, way)
            ended, mistaken = hold_one(stand)
            cancelled += ended
            wrong += mistaken + hold_two(stand)
    faulty.finish("faults.signals", cancelled, wrong, "runs cancelled")


main()
