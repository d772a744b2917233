"""Random statements as users of this field write them, with sums over stages and positions, under random
assumptions.

usage: test_statements.py PROGRAM      (PROGRAM: decide)

Whatever is proved must hold at random points that satisfy the assumptions; a witness must satisfy them and
make the statement false; assumptions that are said to contradict must hold nowhere. All of that in exact
arithmetic of Python.
"""

import random
import re
import sys

from effort import effort, first_seed
import exact
import test_facts_more as suite

NAMES = ["L", "pp", "tp", "heads", "kv", "seq", "w", "i"]
DIVISORS = ["pp", "tp", "2", "3", "4", "8", "kv", "w"]
POINTS = 12


def term(rng):
    return rng.choice(NAMES + ["1", "2", "3", "5", "8"])


def linear(rng):
    parts = [rng.choice(["", "2*", "3*", "tp*", "w*"]) + term(rng) for _ in range(rng.randint(1, 3))]
    text = parts[0]
    for part in parts[1:]:
        text += rng.choice([" + ", " - "]) + part
    return text


def value(rng, depth=2):
    """An expression, mostly an integer."""
    kind = rng.randrange(13) if depth else 0
    if kind < 3:
        return linear(rng)
    inner = value(rng, depth - 1)
    if kind == 3:
        return f"floor(({inner})/{rng.choice(DIVISORS)})"
    if kind == 4:
        return f"ceil(({inner})/{rng.choice(DIVISORS)})*{rng.choice(DIVISORS)}"
    if kind == 5:
        return f"(({inner}) % {rng.choice(DIVISORS)})"
    if kind == 6:
        return f"{rng.choice(['max', 'min'])}({inner}, {linear(rng)})"
    if kind == 7:
        return f"abs({inner})"
    if kind == 8:
        return f"({inner})*({linear(rng)})"
    if kind == 9:
        return f"({inner})^2"
    if kind == 10:
        body = rng.choice(["k", "k^2", "k*w", "min(k, w)", "max(k, seq)", "floor((L + pp - k)/pp)", "(k % 3)",
                           "w - k"])
        return f"sum(k, {rng.choice(['0', '1'])}, {rng.choice(['pp - 1', 'pp', '3', 'w'])}, {body})"
    if kind == 11:
        return f"pow2({inner}){rng.choice(['', '*w', '*tp'])}"
    return f"({inner})/{rng.choice(DIVISORS)}"


def assumption(rng):
    a, b = rng.sample(NAMES, 2)
    kind = rng.randrange(11)
    if kind < 3:
        return f"{a} | {b}"
    if kind == 3:
        return f"{rng.choice(['2', '3', '8', '128', 'tp*kv'])} | {a}"
    if kind == 4:
        return f"{a} >= {b}{rng.choice(['', ' + 1', '*2'])}"
    if kind == 5:
        return f"{a} <= {rng.choice(['4', '8', '64'])}"
    if kind == 6:
        return f"{a} == {rng.choice(['2*', 'w*', 'tp*', ''])}{b}"
    if kind > 8:
        inside = rng.choice([a, a, a, f"{a}*{b}", f"{a}/{b}", f"{a} + {b}"])
        return f"pow2({inside}) == {rng.choice(['1', '1', '1', '0'])}"
    if kind == 8 and rng.random() < 0.3:
        return f"{a} != {rng.choice([b, '1', '2'])}"
    if kind == 7:
        return f"{a} % {rng.choice(['2', '3', '8'])} == {rng.choice(['0', '1'])}"
    return f"{a} >= {rng.choice(['2', '3', '8'])}"


def near(rng, text):
    """A text that differs little, so that many statements are nearly true."""
    kind = rng.randrange(6)
    if kind == 0:
        return f"{text} + {rng.choice(['1', '0', 'w', 'tp - 1'])}"
    if kind == 1:
        return f"({text})*{rng.choice(['1', 'w/w', 'tp'])}"
    if kind == 2:
        return text.replace("floor", "ceil", 1)
    if kind == 3:
        return text.replace("max", "min", 1)
    if kind == 4:
        return re.sub(rf"\b{rng.choice(NAMES)}\b", rng.choice(NAMES), text, count=1)
    return value(rng)


def statement(rng):
    left = value(rng)
    kind = rng.randrange(8)
    if kind == 0:
        return f"integer {left}"
    if kind == 1:
        return f"{rng.choice(DIVISORS)} | {left}"
    return f"{left} {rng.choice(['==', '==', '>=', '<=', '>', '<', '!='])} {near(rng, left)}"


def row(rng):
    assumptions = [assumption(rng) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]
    if rng.random() < 0.3:
        assumptions.insert(0, "i from 0")
    return "; ".join(assumptions), statement(rng), ""


def holds_at_points(assumed, said, rng):
    for _ in range(POINTS):
        point = assumed.point(rng, said.names, tries=20)
        if point and said.holds(point) is False:
            return f"is said to hold, and is false at {suite.show(point)}"
    return None


def wrong_answer(assumed, said, found, rng):
    word, *witness = found.split()
    if word == "yes":
        return holds_at_points(assumed, said, rng)
    if word == "no":
        return suite.refutes(assumed, said, witness, rng)
    if word == "contradiction":
        point = assumed.point(rng, said.names, tries=50)
        return point and f"the assumptions are said to contradict, and hold at {suite.show(point)}"
    return None if word == "unknown" else f"is answered {found}"


def main():
    first = first_seed(1)
    rng = random.Random(first)
    count = effort(2000)
    rows = [row(rng) for _ in range(count)]
    answers = {}
    for (assumptions, text, _), found in zip(rows, suite.ask(sys.argv[1], rows), strict=True):
        word = found.split()[0]
        answers[word] = answers.get(word, 0) + 1
        wrong = wrong_answer(exact.Assumptions(assumptions), exact.Statement(text), found, rng)
        if wrong:
            sys.exit(f"ETCH_TEST_SEED={first}: under '{assumptions}': {text} {wrong}")
    print(answers)
    # the test means something
    if answers.get("yes", 0) < count / 20 or answers.get("no", 0) < count / 5:
        sys.exit("too few statements were decided")


if __name__ == "__main__":
    main()
