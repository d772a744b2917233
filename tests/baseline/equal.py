"""Whether two texts are one formula: by arithmetic at a few points, which shares nothing with the program,
and by `etch prove`."""

import functools
import math
import pathlib
import random
import re
import shlex
import subprocess
import tempfile
from fractions import Fraction

import baseline

FORMULA = re.compile(r"[\w'+\-*/^%(),.<>=\[\] ]+")
NUMBER = re.compile(r"-?\d+(/\d+)?")
NAME = re.compile(r"[A-Za-z_][\w]*'*")
TERMS = 100  # that stand in one bracket: the language reads 400 operations in a row


def pow2(value):
    return int(value.denominator == 1 and value > 0 and value.numerator & (value.numerator - 1) == 0)


FUNCTIONS = {"max": max, "min": min, "abs": abs, "floor": lambda value: Fraction(math.floor(value)),
             "ceil": lambda value: Fraction(math.ceil(value)), "pow2": pow2}


def names_of(text):
    return [name for name in dict.fromkeys(NAME.findall(text)) if name not in FUNCTIONS]


def value(text, point):
    """A formula as a number, or None where it has none or is more than arithmetic."""
    code = re.sub(r"(?<![\w.])\d+(?![\w.])", lambda match: f"Fraction({match[0]})", text.replace("^", "**"))
    try:
        # texts of etch alone
        return eval(code, {"__builtins__": {}}, {"Fraction": Fraction, **FUNCTIONS, **point})
    except (ArithmeticError, SyntaxError, NameError, TypeError, ValueError, AttributeError):
        return None


def grouped(text):
    """The same sum with brackets around every so many terms."""
    terms, depth, begin = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and at > 0 and sign in "+-" and text[at - 1:at + 2] == f" {sign} ":
            terms.append(text[begin:at].strip())
            begin = at if sign == "-" else at + 1
    terms.append(text[begin:].strip())
    if len(terms) <= TERMS:
        return text
    groups = [terms[at:at + TERMS] for at in range(0, len(terms), TERMS)]
    return " + ".join(f"({' + '.join(f'({term})' for term in group)})" for group in groups)


def columns(text):
    """What stands in the columns of a line, and for each of the stages in one."""
    return re.split(r" {2,}|; | in (?=stage )", text.strip())


def length(text):
    """In characters, of which a rounding takes as many up as down."""
    return len(text.replace("floor(", "ceil("))


class Prover:
    def __init__(self, program):
        self.program = program

    def why_not(self, command, old, new):
        """None if a formula is only written otherwise, or those of a line are, else what is against it."""
        one, other = columns(old), columns(new)
        if len(one) != len(other):
            return "different"
        found = [self.why_not_of_one(command, *cells) for cells in zip(one, other) if cells[0] != cells[1]]
        return next(filter(None, found), None)

    def why_not_of_one(self, command, old, new):
        if NUMBER.fullmatch(old) or NUMBER.fullmatch(new):
            return "different"
        if not (FORMULA.fullmatch(old) and FORMULA.fullmatch(new)):
            return "different"
        if not self.same_numbers(old, new):
            return "different"
        arguments = shlex.split(command)
        context = [arguments[1]]
        for option in ("--plan", "--run"):
            if option in arguments:
                context += [option, arguments[arguments.index(option) + 1]]
        if not self.proved(tuple(context), old, new):
            return "not proved to be equal"
        return "equal, but longer" if length(new) > length(old) else None

    @staticmethod
    def same_numbers(old, new):
        """No point that was tried tells them apart, and one at least has numbers."""
        names, compared = sorted({*names_of(old), *names_of(new)}), 0
        plain_old, plain_new = old.replace("'", "_"), new.replace("'", "_")
        for seed in range(8):
            chance = random.Random(seed)
            most = (4, 30, 1000)[seed % 3]
            point = {name.replace("'", "_"): Fraction(chance.randint(1, most)) for name in names}
            one, other = value(plain_old, point), value(plain_new, point)
            if one is None or other is None:
                continue
            compared += 1
            if one != other:
                return False
        return compared > 0

    @functools.lru_cache(maxsize=4096)
    def proved(self, context, old, new):
        """By the program: for all values of what the texts name, else with what the spec says of them."""
        names = {name: name.replace("'", "_prime").replace("stage", "stage_number")
                 for name in names_of(f"{old} {new}")}

        def text_of(formula):
            return NAME.sub(lambda match: names.get(match[0], match[0]), grouped(formula))

        statement = f"0 + ({text_of(old)}) == {text_of(new)}"  # which is no option
        params = "".join(f"param {name}{' >= 0' if name == 'stage_number' else ''}\n"
                         for name in names.values())
        if self.holds(f"etch 1\n{params}", statement):
            return True
        stage = "param stage_number >= 0\n" if "stage_number" in names.values() else ""
        return self.holds(f'etch 1\nimport "{baseline.SOURCE / context[0]}"\n{stage}', statement,
                          *context[1:])

    def holds(self, spec, statement, *chosen):
        with tempfile.TemporaryDirectory(prefix="etch-baseline.") as folder:
            path = pathlib.Path(folder, "statement.etch")
            path.write_text(spec, encoding="utf-8")
            try:
                done = subprocess.run([self.program, "prove", path, statement, *chosen, "-q"], text=True,
                                      stdin=subprocess.DEVNULL, capture_output=True, check=False)
            except OSError:  # longer than an argument may be
                return False
        return done.returncode == 0 and done.stdout.startswith("proved")
