"""Runs one case: prose, and commands with what they must print.

    run_case.py CASE.txt

A line ` $ COMMAND` is run by sh; lines ` > MORE` continue it. The indented lines below are what it writes to
stdout; after ` [stderr]` what it writes to stderr; after them ` [exit N]` when the exit status is not 0.
Commands of a case run one after the other in one folder, in which `models` and `specs` (of tests/cli) can be
read. With UPDATE=1 the case is written anew from what is seen.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import console  # noqa: E402
from cases import INDENT, parse  # noqa: E402


def expected_lines(stdout, stderr, status):
    lines = stdout.splitlines()
    if stderr:
        lines += ["[stderr]"] + stderr.splitlines()
    if status:
        lines.append(f"[exit {status}]")
    return lines


def main():
    case = pathlib.Path(sys.argv[1])
    shell = console.Shell("case", [console.SOURCE / "models", console.SOURCE / "tests" / "cli" / "specs"])
    written, failed, count = [], 0, 0
    for part in parse(case.read_text(encoding="utf-8")):
        if part[0] == "prose":
            written.append(part[1])
            continue
        _, command, expected = part
        # Spaces at the end of a line, and empty lines at the end of an output, cannot be written down.
        seen = [line.rstrip() for line in expected_lines(*shell.run("\n".join(command)))]
        while seen and not seen[-1]:
            seen.pop()
        count += 1
        if seen != expected:
            failed += 1
            console.show_difference(f"{case.name}: {' '.join(command)}", expected, seen)
        written.append(f"{INDENT}$ {command[0]}")
        written += [f"{INDENT}> {line}" for line in command[1:]]
        written += [(INDENT + line).rstrip() for line in seen]
    if console.UPDATE and failed:
        case.write_text("\n".join(written) + "\n", encoding="utf-8")
        failed = 0
    if count == 0:
        sys.exit(f"{case}: no commands")
    console.finish(failed, f"{count} commands of {case.name}")


main()
