"""A bred spec that is refused loses what it is refused for, one thing at a time: most can be lowered then,
with what else is odd about them."""

import re

from breed import Spec
from spectree import read, tokens, write

TRIES = 8


def without_item(line, column):
    """A line of items, as `shard B @ dp, F @ tp`, without the one at a column; None where it has one item."""
    word, rest = line.split(None, 1)
    depth, items, start = 0, [], 0
    for at, sign in enumerate(rest + ","):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            items.append((start, at, rest[start:at].strip()))
            start = at + 1
    if len(items) < 2:
        return None
    at = column - 1 - line.index(rest, len(word))
    kept = [text for begin, end, text in items if not begin <= at <= end]
    indent = line[:len(line) - len(line.lstrip())]
    return f"{indent}{word} {', '.join(kept)}" if len(kept) < len(items) else None


def repaired(bred, done, text):
    """The text without what an error of `done` points at, or None."""
    missing = re.search(r"error\[E0520\]: no value for ([^\n]*)", done.err)
    if missing:
        for name in re.findall(r"[A-Za-z_]\w*", missing[1]):
            bred.sets[name] = 2
        return text
    found = re.search(r"^[^\n:]*\.etch:(\d+):(\d+): error", done.err, re.M)
    if not found:
        return None
    lines = text.split("\n")
    number, column = int(found[1]) - 1, int(found[2])
    line = lines[number]
    if line.lstrip().startswith(("shard", "stage")):
        less = without_item(line, column) if line.lstrip().startswith("shard") else None
        lines[number:number + 1] = [less] if less else []
    elif "{" in line or "}" in line or not line.startswith("  "):
        return None
    elif "zero" in line.split()[:1] and "," in line and not line.rstrip().endswith(")"):
        lines[number] = line[:line.rindex(",")]
    else:
        del lines[number]
    return "\n".join(lines)


def repair(asked):
    """Whether the spec, or what is left of it, is lowered."""
    bred = asked.bred
    text = bred.text()
    for _ in range(TRIES):
        done = asked.ask("lower", more=("--dry-run",))
        if done.status != 1:
            return done.status == 0
        text = repaired(bred, done, text)
        if text is None or list(tokens(text)).count("{") != list(tokens(text)).count("}"):
            return False
        bred.spec = Spec(read(text.split("\n", 1)[1]))
        text = "etch 1\n" + write(bred.spec.block) + "\n"
        with open(asked.path, "w", encoding="utf-8") as out:
            out.write(text)
        names = set(bred.spec.params) | set(bred.axes)
        for name in [name for name in bred.sets if name not in names]:
            del bred.sets[name]
    return False
