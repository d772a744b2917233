"""The commands of the cases of tests/cli, some of them, and all in the nights: memory runs out, or a call
of the system fails, once or from then on. Whatever a command is, it ends as it does without a fault, or
says on stderr that it did not; it does not crash, finds no bug in itself, and leaves no hidden folder that
nobody names."""

import os
import pathlib
import random
import shutil
import subprocess
import sys

from effort import NIGHTLY, effort
import faulty

SOURCE = faulty.SOURCE
sys.path.insert(0, str(SOURCE / "tests" / "cli"))
os.environ["ETCH"] = sys.argv[1]
import console  # noqa: E402
import cases  # noqa: E402

COMMANDS = 90
KINDS = ("memory", "call")
BUG, FIRST_SIGNAL = 70, 128


def listing(folder):
    """What tells whether a command changed something."""
    return {str(path): (info.st_mtime_ns, info.st_size, info.st_ino) for path in folder.rglob("*")
            for info in (path.lstat(),)}


def copy(folder, to):
    """With links and pipes, as they are."""
    subprocess.run(["cp", "-a", folder, to], check=True)


def mistakes(shell, command, fault, seen, usual):
    out, err, status = seen
    if status == BUG or status >= FIRST_SIGNAL and status != usual[2] or "Sanitizer" in err:
        yield f"status {status}: {err[-2000:]}"
    if seen != usual and err in ("", usual[1]) and "2>" not in command:
        yield f"status {status} and not {usual[2]}, and nobody says why: {out[-200:]!r}"
    hidden = {path.name for path in (shell.folder / "work").rglob(".etch-*")}
    can_remove = not fault.endswith("+")
    if can_remove and any(name not in err for name in hidden):
        yield f"{hidden} stay"


def torture(shell, command, usual, counts, source):
    """Runs a command with a fault in a copy of what it found; `usual`: what it says without."""
    work, aside = shell.folder / "work", shell.folder / "aside"
    kind = source.choice([kind for kind in KINDS if counts.get(kind)])
    fault = f"{kind}:{source.randint(1, counts[kind])}{source.choice(('', '+'))}"
    before = listing(work)
    copy(work, aside)
    shell.environment["ETCH_FAULT"] = fault
    seen = shell.run(command)
    del shell.environment["ETCH_FAULT"]
    wrong = [f"{command}\n  {fault}: {what}" for what in mistakes(shell, command, fault, seen, usual)]
    if listing(work) == before:
        shutil.rmtree(aside)
    else:
        shutil.rmtree(work)
        aside.rename(work)
    return wrong


def hold_case(path, wanted, source):
    """Runs all commands of a case, and tortures those of the numbers that are wanted."""
    shell = console.Shell("case", [SOURCE / "models", SOURCE / "tests" / "cli" / "specs"])
    counts = pathlib.Path("counts").resolve()
    shell.environment["ETCH_FAULT_COUNTS"] = str(counts)
    wrong, last = [], max(wanted)
    for number, command in enumerate(cases.commands(path)):
        if number > last:
            break
        work, aside = shell.folder / "work", shell.folder / "first"
        if number in wanted:
            copy(work, aside)
        counts.unlink(missing_ok=True)
        usual = shell.run(command)
        if number not in wanted:
            continue
        after = shell.folder / "after"
        work.rename(after)
        aside.rename(work)
        if counts.exists():
            found = dict(line.split() for line in counts.read_text().splitlines())
            for _ in range(effort(1)):
                wrong += torture(shell, command, usual, {kind: int(n) for kind, n in found.items()}, source)
        shutil.rmtree(work)
        after.rename(work)
    return wrong


def main():
    source = random.Random(faulty.SEED)
    every = [(path, number) for path in sorted((SOURCE / "tests" / "cli" / "cases").glob("*.txt"))
             for number, _ in enumerate(cases.commands(path))]
    chosen = every if NIGHTLY else source.sample(every, effort(COMMANDS))
    wrong = []
    for path in sorted({path for path, _ in chosen}):
        wrong += hold_case(path, {number for of, number in chosen if of == path}, source)
    print(f"{len(every)} commands in all")
    faulty.finish("faults.cases", len(chosen), wrong, "commands")


main()
