"""Faults come together: from one call on all fail, or one fails while another failure is handled. A command
that writes nothing changes nothing; one that writes leaves what stands when it is killed, and says what
went wrong. The next one works."""

import sys

import faulty
import standing

WRITING = ("lower", "assemble")


def what_is_wrong(seen, usual, before):
    """Of a command that writes nothing, or to which memory is lacking."""
    unhindered = (seen.status, seen.out, seen.files) == (usual.status, usual.out, usual.files)
    refused = seen.status == faulty.FAILED and seen.err != b"" and seen.files == before
    if not unhindered and not refused:
        yield f"status {seen.status}, {len(seen.out)} bytes, {sorted(seen.files)}, {seen.err[-400:].decode()}"


def hold_onward(bench, name, command):
    """From a call on nothing of its kind works."""
    usual, counts, wrong, runs = bench.run(command), bench.count(), [], 0
    bench.prepare(command)
    before = faulty.snapshot(bench.work)
    for kind in ("memory",) if command.words[0] in WRITING else ("memory", "call"):
        for n in faulty.sampled(counts[kind], 8):
            seen = bench.run(command, f"{kind}:{n}+")
            runs += 1
            wrong += [f"{name}, {kind}:{n}+: {what}" for what in what_is_wrong(seen, usual, before)]
    return runs, wrong


def ends_well(stand, seen):
    """Does the status say what stands?"""
    new = standing.within(seen.files, stand.writer.target) == stand.new
    if seen.status == 0:
        return new and (seen.files == stand.usual.files or b"warning" in seen.err)
    return seen.status == faulty.FAILED and seen.err != b""


def hold_writer(stand, faults):
    wrong = []
    for fault in faults:
        seen = stand.run(fault)
        if not ends_well(stand, seen):
            wrong.append(f"{stand.name}, {fault}: status {seen.status}, {seen.err.decode()}")
        wrong += [f"{stand.name}, {fault}: {what}" for what in
                  (*stand.mistakes(seen.files), *stand.mistakes_of_next(seen.files))]
    return len(faults), wrong


def pairs(stand, wanted):
    """Two calls of which the second is made because the first one failed, or after it."""
    for first in faulty.sampled(stand.counts["call"], wanted):
        stand.run(f"call:{first}")
        later = stand.bench.count()["call"] - first
        for second in faulty.sampled(later, 2):
            yield f"call:{first},call:{first + second}"


def main():
    bench = standing.bench_of(sys.argv[1])
    held = [hold_onward(bench, name, command) for name, command in faulty.COMMANDS.items()]
    for name in standing.WRITERS:
        for way in (standing.EXCHANGES, standing.PLAIN)[:2 if "earlier" in name else 1]:
            stand = standing.Standing(bench, name, way)
            onward = [f"call:{n}+" for n in faulty.sampled(stand.counts["call"], 15)]
            held.append(hold_writer(stand, onward + list(pairs(stand, 10))))
    runs, wrong = sum(more for more, _ in held), [what for _, mistakes in held for what in mistakes]
    faulty.finish("faults.compound", runs, wrong)


main()
