"""Runs cases of bad traces: the text of the traces, and what must be said of them.

    run_bad.py CASES.txt...

A case begins with a line `=== TITLE`. The lines behind it are traces in their text form, which `etch
assemble` makes the folder `t` of. A line `--- COMMAND` is run by sh in a folder that holds `t`; the lines
behind it are what the command writes to stdout; after `[stderr]` what it writes to stderr; after them `[exit
N]` when the exit status is not 0. With UPDATE=1 the file is written anew from what is seen.
"""

import os
import pathlib
import shutil
import sys

sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "support"))
import console  # noqa: E402


def parse(text):
    """(lines before the first case, [(title, trace lines, [(command, expected lines)])])"""
    prose, cases = [], []
    for line in text.splitlines():
        if line.startswith("=== "):
            cases.append((line[4:], [], []))
        elif not cases:
            prose.append(line)
        elif line.startswith("--- "):
            cases[-1][2].append((line[4:], []))
        elif cases[-1][2]:
            cases[-1][2][-1][1].append(line)
        else:
            cases[-1][1].append(line)
    return prose, cases


def stripped(lines):
    """Without empty lines at the end, which stand between cases."""
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def seen_lines(shell, command):
    stdout, stderr, status = shell.run(command)
    lines = stdout.splitlines()
    if stderr:
        lines += ["[stderr]"] + stderr.splitlines()
    if status:
        lines.append(f"[exit {status}]")
    return stripped(lines)


def run_case(shell, name, case):
    """The case as it should be written, and how many of its commands differ."""
    title, text, commands = case
    work = shell.folder / "work"
    shutil.rmtree(work)
    work.mkdir()
    (work / "t.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    _, stderr, status = shell.run("etch assemble t.txt -o t -q")
    if status != 0 or not commands:
        sys.exit(f"{name}: {title}: {stderr or 'no command'}")
    written, failed = [f"=== {title}", *text], 0
    for command, expected in commands:
        seen = seen_lines(shell, command)
        if seen != stripped(expected):
            failed += 1
            console.show_difference(f"{name}: {title}: {command}", stripped(expected), seen)
        written += [f"--- {command}", *seen, ""]
    return written, failed


def main():
    shell = console.Shell("bad", [])
    count = failed = 0
    for argument in sys.argv[1:]:
        path = pathlib.Path(argument)
        prose, cases = parse(path.read_text(encoding="utf-8"))
        written, of_file = prose, 0
        for case in cases:
            lines, differ = run_case(shell, path.name, case)
            written += lines
            of_file += differ
        count += len(cases)
        if console.UPDATE and of_file:
            path.write_text("\n".join(stripped(written)) + "\n", encoding="utf-8")
            of_file = 0
        failed += of_file
    if count == 0:
        sys.exit("no cases")
    console.finish(failed, f"{count} cases")


main()
