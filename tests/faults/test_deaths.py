"""The process is killed before each call that changes files. On disk is then the earlier folder or the new
one, each whole, or no manifest says that there is one. The next run works, takes away what the killed one
left, and names what it must not."""

import sys

import faulty
import standing

KILLED = -9


def hold(bench, name, way):
    stand = standing.Standing(bench, name, way)
    wrong = []
    for n in range(1, stand.counts["death"] + 1):
        seen = stand.run(f"death:{n}")
        if seen.status != KILLED and (seen.status, seen.files) != (stand.usual.status, stand.usual.files):
            wrong.append(f"status {seen.status}")
        wrong += [f"{stand.name} {n}: {what}" for what in
                  (*stand.mistakes(seen.files), *stand.mistakes_of_next(seen.files))]
        may_stay = way or name == "lower, a folder of others"
        if not may_stay and standing.hidden(faulty.snapshot(bench.work)):
            wrong.append(f"{stand.name} {n}: a hidden folder stays")
    return stand.counts["death"], wrong


def main():
    bench = standing.bench_of(sys.argv[1])
    runs, wrong = 0, []
    for name in standing.WRITERS:
        for way in (standing.EXCHANGES, standing.PLAIN):
            more, mistaken = hold(bench, name, way)
            runs += more
            wrong += mistaken
    faulty.finish("faults.deaths", runs, wrong)


main()
