"""Reads the cases of tests/cli/cases; run_case.py says what a case is."""

INDENT = "  "


def parse(text):
    """Yields ("prose", line), and ("command", command lines, expected lines)."""
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        if not lines[i].startswith(INDENT + "$ "):
            yield "prose", lines[i]
            i += 1
            continue
        command, expected = [lines[i][len(INDENT) + 2:]], []
        i += 1
        while i < len(lines) and lines[i].startswith(INDENT + "> "):
            command.append(lines[i][len(INDENT) + 2:])
            i += 1
        while i < len(lines) and (not lines[i] or (lines[i].startswith(INDENT) and
                                                   not lines[i].startswith(INDENT + "$ "))):
            expected.append(lines[i][len(INDENT):])
            i += 1
        while expected and not expected[-1]:
            expected.pop()
            i -= 1
        yield "command", command, expected


def commands(path):
    """The commands of a case, each as a shell takes it."""
    parts = parse(path.read_text(encoding="utf-8"))
    return ["\n".join(part[1]) for part in parts if part[0] == "command"]
