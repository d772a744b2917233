"""Every rule of `etch verify` has a bad trace that breaks it: each of its diagnostic codes stands in the
expected output of a case, and with each rank that docs/verify.md gives it."""

import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
ROW = re.compile(r"ETCH_DIAG\(E_VERIFY_(\w+), (8\d\d), ")
RULE = re.compile(r"^\| (.*?) \| (.*) \| (breaks|changes|style) \|$", re.M)
MESSAGES = {"breaks": "error", "changes": "warning", "style": "remark"}
LEAST = 40


def codes_of(cell):
    """"E0800-E0802, E0807" as a list."""
    codes = []
    for part in filter(None, cell.replace(" ", "").split(",")):
        first, _, last = part.replace("E", "").partition("-")
        codes += [f"E{number:04}" for number in range(int(first), int(last or first) + 1)]
    return codes


def rules():
    """(code, message, what must hold); a row without a code is of those of the row above."""
    text, codes = (SOURCE / "docs" / "verify.md").read_text(encoding="utf-8"), []
    for cell, rule, rank in RULE.findall(text[text.index("## The rules"):]):
        codes = codes_of(cell) or codes
        yield from ((code, MESSAGES[rank], rule) for code in codes)


def main():
    rows = ROW.findall((SOURCE / "src" / "base" / "diag.def").read_text(encoding="utf-8"))
    text = "".join(path.read_text(encoding="utf-8")
                   for path in sorted((SOURCE / "tests" / "trace" / "bad").glob("*.txt")))
    cases = text.count("\n=== ")
    missing = [f"E0{number} {name}" for name, number in rows if f"[E0{number}]" not in text]
    described = list(rules())
    missing += [f"{message}[{code}]: {rule}" for code, message, rule in described
                if f"{message}[{code}]" not in text]
    for line in missing:
        print(f"no bad trace shows {line}")
    if cases < LEAST:
        print(f"there are {cases} bad traces, fewer than {LEAST}")
    if not rows or len(described) < LEAST:
        print("codes or rules were not found")
    sys.exit(1 if missing or cases < LEAST or not rows or len(described) < LEAST else 0)


main()
