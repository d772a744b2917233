"""Compares canonical forms with SymPy.

usage: test_sympy.py PROGRAM (PROGRAM: canonical, reads an expression per line, writes its canonical text)

1. What PROGRAM prints has the value of what it read: by SymPy's `cancel` where there is neither floor nor
   max, else at random points.
2. Rational expressions that SymPy finds equal have one text: each is also written expanded, factored and over
   one denominator.
"""

import random
import subprocess
import sys

from effort import effort, first_seed

try:
    import sympy
except ImportError:
    sys.exit("python3-sympy is missing")

NAMES = ["a", "b", "c", "d"]
SYMBOLS = {name: sympy.Symbol(name, integer=True, positive=True) for name in NAMES}


def number(rng):
    return str(rng.choice([0, 1, 2, 3, 5, 7, 12, 10**10, 2**63, 2**64 + 1]))


def rational(rng, depth):
    """A random expression without floor and max."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(NAMES) if rng.random() < 0.75 else number(rng)
    kind = rng.random()
    left = rational(rng, depth - 1)
    if kind < 0.1:
        return f"({left})^{rng.randint(-2, 3)}"
    if kind < 0.25:
        return f"({left})/({rational(rng, depth - 1)})"
    return f"({left}) {rng.choice('+-*')} ({rational(rng, depth - 1)})"


def any_expression(rng, depth):
    if depth == 0 or rng.random() < 0.2:
        return rational(rng, 0)
    kind = rng.random()
    left = any_expression(rng, depth - 1)
    right = any_expression(rng, depth - 1)
    if kind < 0.15:
        return f"floor(({left})/{rng.choice(NAMES + ['2', '3', '8'])})"
    if kind < 0.25:
        return f"ceil(({left})/{rng.choice(NAMES + ['2', '3', '8'])})"
    if kind < 0.4:
        return f"{rng.choice(['max', 'min'])}({left}, {right})"
    if kind < 0.5:
        return f"({left}) % {rng.choice(NAMES + ['2', '3', '8'])}"
    if kind < 0.55:
        return f"abs({left})"
    if kind < 0.62:
        return f"pow2({left})"
    return f"({left}) {rng.choice('+-*')} ({right})"


def value(text, point):
    """The exact value of a text of ours at a point, by Python's own fractions; None where undefined."""
    scope = {name: sympy.Rational(v) for name, v in point.items()}
    scope |= {"max": max, "min": min, "abs": abs, "floor": lambda x: sympy.Rational(x.p // x.q),
              "ceil": lambda x: sympy.Rational(-(-x.p // x.q)), "Number": sympy.Rational,
              "pow2": lambda x: sympy.Rational(x.q == 1 and x.p > 0 and bin(x.p).count("1") == 1)}
    result = eval(as_python(text), {"__builtins__": {}}, scope)
    return None if result in (sympy.zoo, sympy.nan, sympy.oo, -sympy.oo) else result


def as_python(text):
    out, i = [], 0
    while i < len(text):
        j = i
        while j < len(text) and text[j].isdigit():
            j += 1
        # numbers become rationals, but an exponent stays an integer
        if j > i and out and out[-1].isalpha():
            out.append(text[i:j])  # the end of a name
            i = j
        elif j > i:
            before = text[:i].rstrip()
            out.append(text[i:j] if before.endswith(("^", "^-")) else f"Number({text[i:j]})")
            i = j
        else:
            out.append("**" if text[i] == "^" else text[i])
            i += 1
    return "".join(out)


def to_sympy(text):
    return eval(as_python(text), {"__builtins__": {}}, SYMBOLS | {"Number": sympy.Integer})


def to_text(expression):
    return str(expression).replace("**", "^")


class Program:
    def __init__(self, path):
        self.path = path

    def __call__(self, lines):
        # the first line declares the variables: texts depend on their order
        text = "\n".join([" + ".join(NAMES), *lines]) + "\n"
        run = subprocess.run([self.path], input=text, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"{self.path} ended with status {run.returncode}: {run.stderr}")
        return run.stdout.splitlines()[1:]


def defined_rationals(rng, count):
    found = []
    while len(found) < count:
        text = rational(rng, 3)
        expression = to_sympy(text)
        if not expression.has(sympy.zoo, sympy.nan, sympy.oo):
            found.append((text, expression))
    return found


def check_rationals(program, rng, count):
    cases = defined_rationals(rng, count)
    for (text, expression), ours in zip(cases, program([text for text, _ in cases])):
        if ours == "undefined":
            # somewhere inside SymPy removed a division by 0 that is one for all values
            continue
        if sympy.cancel(to_sympy(ours) - expression) != 0:
            sys.exit(f"{text} became {ours}")
    # one text for one value
    forms = [("expand", sympy.expand), ("factor", sympy.factor), ("together", sympy.together),
             ("cancel", sympy.cancel)]
    reference = program([text for text, _ in cases])
    for name, form in forms:
        rewritten = program([to_text(form(expression)) for _, expression in cases])
        for (text, _), one, other in zip(cases, reference, rewritten):
            if "undefined" not in (one, other) and one != other:
                sys.exit(f"{text} is {one}; after {name} it is {other}")


def check_values(program, rng, count):
    texts = [any_expression(rng, 4) for _ in range(count)]
    for text, ours in zip(texts, program(texts)):
        for _ in range(5):
            point = {name: rng.choice([1, 2, 3, 4, 7, 8, 15, 64, 1000, 10**12]) for name in NAMES}
            expected = value(text, point)
            if expected is not None and (ours == "undefined" or value(ours, point) != expected):
                sys.exit(f"{text} became {ours}, which differs at {point}")


def main():
    first = first_seed(1)
    print(f"ETCH_TEST_SEED={first}")
    program = Program(sys.argv[1])
    check_rationals(program, random.Random(first), effort(300))
    check_values(program, random.Random(first + 1), effort(400))


main()
