"""Runs the examples of README.md and docs/*.md.

An example is a fenced block of kind `console`: lines `$ COMMAND`, a trailing backslash continues on the next
line, each followed by what the command prints on stdout and then on stderr. A line `...` stands for any
number of lines. Commands of one file run one after the other in one folder that holds `models`, and what
blocks of kind `etch NAME` say: each is a spec with that file name. They must end with status 0, unless their
output is said to begin with an error, or with a statement that is refuted or unknown. With UPDATE=1 the files
are written anew; blocks with `...` stay as they are.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import console  # noqa: E402

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPEC = re.compile(r"^```etch (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(block):
    """Yields (command lines, expected lines)."""
    lines = block.splitlines()
    i = 0
    while i < len(lines):
        if not lines[i].startswith("$ "):
            sys.exit(f"a console block begins with a command, not with {lines[i]!r}")
        command = [lines[i]]
        i += 1
        while command[-1].endswith("\\"):
            command.append(lines[i])
            i += 1
        start = i
        while i < len(lines) and not lines[i].startswith("$ "):
            i += 1
        yield command, lines[start:i]


def matches(expected, seen):
    """Whether the lines are equal, `...` standing for any number of lines."""
    if not expected:
        return not seen
    if expected[0] == "...":
        return any(matches(expected[1:], seen[i:]) for i in range(len(seen) + 1))
    return bool(seen) and expected[0] == seen[0] and matches(expected[1:], seen[1:])


def run_block(shell, name, block):
    """Returns the block as it should be, the number of commands, and how many of them print something
    else."""
    written, failed, count = [], 0, 0
    for command, expected in commands(block):
        stdout, stderr, status = shell.run("\n".join(command)[2:])
        seen = [line.rstrip() for line in (stdout + stderr).splitlines()]
        count += 1
        may_fail = any(re.match(r"\S+: error\[|error\[|refuted$|unknown$", line) for line in expected)
        if not matches(expected, seen) or (status != 0) != may_fail:
            failed += 1
            console.show_difference(f"{name}: {command[0]} (exit status {status})", expected, seen)
        written += command + (expected if "..." in expected else seen)
    return "\n".join(written) + "\n", count, failed


def run_file(path):
    shell = console.Shell(path.stem, [console.SOURCE / "models", console.SOURCE / "machines"])
    count = failed = 0

    def replace(match):
        nonlocal count, failed
        block, commands_run, differ = run_block(shell, path.name, match[1])
        count += commands_run
        failed += differ
        return f"```console\n{block}```"

    text = path.read_text(encoding="utf-8")
    for spec in SPEC.finditer(text):
        (shell.folder / "work" / spec[1]).write_text(spec[2], encoding="utf-8")
    changed = BLOCK.sub(replace, text)
    if console.UPDATE and changed != text:
        path.write_text(changed, encoding="utf-8")
        failed = 0
    return count, failed


def main():
    files = [console.SOURCE / "README.md", *sorted((console.SOURCE / "docs").glob("*.md"))]
    results = [run_file(path) for path in files]
    count = sum(result[0] for result in results)
    if count == 0:
        sys.exit("no examples found")
    console.finish(sum(result[1] for result in results), f"{count} examples")


main()
