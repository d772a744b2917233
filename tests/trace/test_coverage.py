"""Every rule of `etch verify` has a bad trace that breaks it: each of its diagnostic codes stands in the
expected output of a case."""

import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
ROW = re.compile(r"ETCH_DIAG\(E_VERIFY_(\w+), (8\d\d), ")
LEAST = 40


def main():
    rows = ROW.findall((SOURCE / "src" / "base" / "diag.def").read_text(encoding="utf-8"))
    text = "".join(path.read_text(encoding="utf-8")
                   for path in sorted((SOURCE / "tests" / "trace" / "bad").glob("*.txt")))
    cases = text.count("\n=== ")
    missing = [f"E0{number} {name}" for name, number in rows if f"[E0{number}]" not in text]
    for line in missing:
        print(f"no bad trace shows {line}")
    if cases < LEAST:
        print(f"there are {cases} bad traces, fewer than {LEAST}")
    if not rows:
        print("no codes found")
    sys.exit(1 if missing or cases < LEAST or not rows else 0)


main()
