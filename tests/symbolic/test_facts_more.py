"""The facts of facts_more.tsv: what is true is proved, what is false is refuted.

usage: test_facts_more.py PROGRAM      (PROGRAM: decide)

A witness must satisfy every assumption and make the statement false, in exact arithmetic of Python. So that
the list itself is right, what it says is true must hold at random points that satisfy the assumptions. Where
`unknown` is expected, the right answer is better still.
"""

import pathlib
import random
import subprocess
import sys
from fractions import Fraction

from effort import first_seed
import exact

POINTS = 30


def read_list():
    rows = []
    for line in pathlib.Path(__file__).with_name("facts_more.tsv").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            fields = line.split("\t")
            if fields[2] not in ("yes", "no", "unknown") or (fields[2] == "unknown") != (len(fields) == 4):
                sys.exit(f"not a row: {line}")
            rows.append(fields)
    return rows


def ask(program, rows):
    text = "".join(f"{assumptions}\t{statement}\n" for assumptions, statement, *_ in rows)
    run = subprocess.run([program], input=text, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{program} ended with status {run.returncode}: {run.stderr}")
    return run.stdout.splitlines()


def true_at_points(assumed, statement, rng):
    """A point where a statement of the list that claims to be true is false, or a text that says what is
    wrong."""
    checked = 0
    for _ in range(POINTS):
        point = assumed.point(rng, statement.names)
        if point and statement.holds(point) is False:
            return f"is false at {show(point)}"
        checked += bool(point)
    return None if checked >= POINTS / 2 else f"could be checked at {checked} points only"


def show(point):
    return ", ".join(f"{n} = {v}" for n, v in sorted(point.items()))


def refutes(assumed, statement, words, rng):
    """What is wrong with a witness. Variables that nothing ties to the statement are not named."""
    point = {name: Fraction(number) for name, number in (w.split("=") for w in words)}
    tied = [s for s in assumed.statements if s.names <= point.keys()]
    if not all(assumed.allow(n, v) for n, v in point.items()) or not all(s.holds(point) for s in tied):
        return f"the witness {show(point)} breaks an assumption"
    every = assumed.point(rng, statement.names, fixed=point) or point
    # undefined: simplification gave a side a value, or it is too long to be added up here
    if statement.names <= every.keys() and statement.holds(every):
        return f"the witness {show(every)} does not refute it"
    return None


def main():
    rows = read_list()
    first = first_seed(1)
    rng = random.Random(first)
    count = {"yes": 0, "no": 0, "unknown": 0}
    failed = 0
    for (assumptions, text, expected, *why), found in zip(rows, ask(sys.argv[1], rows), strict=True):
        assumed, statement = exact.Assumptions(assumptions), exact.Statement(text)
        word, *witness = found.split()
        better = expected == "unknown" and word == ("yes" if why[0].startswith("true") else "no")
        wrong = f"is answered {word}, not {expected}" if word != expected and not better else None
        if word == "no":
            wrong = refutes(assumed, statement, witness, rng) or wrong
        if expected == "yes" or (why and why[0].startswith("true")):
            wrong = true_at_points(assumed, statement, rng) or wrong
        if wrong:
            print(f"ETCH_TEST_SEED={first}: under '{assumptions}': {text} {wrong}")
            failed += 1
        count[expected] += 1
    print(count)
    if count["yes"] < 60 or count["no"] < 40:
        sys.exit("the list is too short")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
