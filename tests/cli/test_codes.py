"""Every diagnostic has a case that shows it to a user: its code stands in the expected output of a case of
tests/cli, tests/trace/bad or grammar/reject, or the table below says why it cannot."""

import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
CASES = ("tests/cli/cases/*.txt", "tests/trace/bad/*.txt", "grammar/reject/*.expect")
ROW = re.compile(r"^ETCH_DIAG\((E_\w+), (\d+), ", re.MULTILINE)

# Codes that no small input shows.
ELSEWHERE = {
    "E_NODE_FRACTION": "what a plan demands is refused first (E0523); tests/lower takes the demands away",
    "E_NETWORK": "only programs build networks; tests/session",
    "E_OUTPUT_LEFT": "a file cannot be removed; tests/faults",
    "E_OUTPUT_SYNC": "a folder cannot be synced; tests/faults",
    "E_TRACE_VALUE": "lowering refuses larger values first (E0912); tests/emit",
    "E_TRACE_RULE": "only a bug of etch breaks a rule; tests/emit",
    "E_SWEEP_STOPPED": "takes a signal; tests/acceptance/test_sweeps.py",
    "E_WORLD": "takes several processes; tests/mpi/test_ends.py",
    "E_SOURCES_TOO_LARGE": "takes 2 GiB of specs",
    "E_SPEC_TOO_LARGE": "takes 500 plans; tests/acceptance/test_limits.py",
    "E_PROGRAM_MEMORY": "takes all memory of a session; tests/lower has a smaller one",
    "E_SESSION_MEMORY": "takes all memory of a session; tests/session has a smaller one",
}


def main():
    rows = ROW.findall((SOURCE / "src/base/diag.def").read_text(encoding="utf-8"))
    shown = set()
    for pattern in CASES:
        for path in sorted(SOURCE.glob(pattern)):
            shown.update(re.findall(r"\bE(\d{4})\b", path.read_text(encoding="utf-8", errors="replace")))
    wrong = []
    for name, number in rows:
        seen = f"{int(number):04d}" in shown
        if seen == (name in ELSEWHERE):
            wrong.append(f"{name}, E{int(number):04d}: " +
                         ("a case shows it: take it off the table" if seen else
                           "no case shows it"))
    wrong += [f"{name}: there is no such diagnostic" for name in ELSEWHERE if name not in dict(rows)]
    numbers = [number for _, number in rows]
    wrong += [f"{number} is the number of two diagnostics" for number in sorted(set(numbers))
              if numbers.count(number) > 1]
    print("\n".join(wrong))
    sys.exit(1 if wrong or not rows or not shown else 0)


main()
