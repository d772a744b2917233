"""What etch writes in C, Python, LaTeX and JSON has the value of what it read.

usage: test_notations.py PROGRAM      (PROGRAM: notations.c; CC in the environment compiles C)

Values are those of exact.py at random points. C is compiled and run; Python is read by Python itself, with
fractions, and by SymPy; JSON is evaluated here. Derivatives are compared with SymPy's.
"""

import ast
import json
import math
import os
import random
import re
import subprocess
import sys
from fractions import Fraction

from effort import effort, first_seed
import exact

try:
    import sympy
except ImportError:
    sys.exit("python3-sympy is missing")

NAMES = ["a", "b", "c", "d"]
# SymPy's own names must not win over ours, nor may keywords: see RENAMED.
RENAMED = {"a": "a", "b": "S", "c": "N", "d": "lambda"}
SYMBOLS = {name: sympy.Symbol(name, integer=True, positive=True) for name in RENAMED.values()}
POINTS = 6
FORMS = ["shortest", "expanded", "factored", "relative"]  # of which PROGRAM writes each text, in this order
C_SUM = "static double pow2(double x) { int e; return x >= 1 && frexp(x, &e) == 0.5; }\n" \
    "#define SUM(i, low, high, body) \\\n" \
    "    __extension__({double s_ = 0; for (double i = (low); i <= (high); i++) s_ += (body); s_;})\n"


def number(rng):
    return str(rng.choice([1, 2, 3, 5, 7, 8, 12, 24]))


def rational(rng, depth):
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(NAMES) if rng.random() < 0.75 else number(rng)
    kind, left = rng.random(), rational(rng, depth - 1)
    if kind < 0.15:
        return f"({left})^{rng.randint(1, 3)}"
    if kind < 0.3:
        return f"({left})/({rational(rng, depth - 2 if depth > 2 else 0)})"
    return f"({left}) {rng.choice('+-*')} ({rational(rng, depth - 1)})"


def general(rng, depth):
    if depth == 0 or rng.random() < 0.15:
        return rational(rng, 0)
    kind, left, right = rng.random(), general(rng, depth - 1), general(rng, depth - 1)
    divisor = rng.choice(NAMES + ["2", "3", "8", "(a + b)"])
    if kind < 0.2:
        return f"floor(({left})/{divisor})"
    if kind < 0.3:
        return f"ceil(({left})/{divisor})"
    if kind < 0.4:
        return f"{rng.choice(['max', 'min'])}({left}, {right})"
    if kind < 0.5:
        return f"({left}) % {divisor}"
    if kind < 0.55:
        return f"abs({left})"
    if kind < 0.58:
        return f"pow2({left})"
    if kind < 0.62:
        return f"({left})/({divisor} + floor({rng.choice(NAMES)}/3))"
    if kind < 0.66:
        return f"sum(i, 1, {rng.choice(NAMES)}, floor((({left}) + i)/{divisor}))"
    return f"({left}) {rng.choice('+-*')} ({right})"


def point_of(rng):
    return {name: Fraction(rng.choice([1, 2, 3, 4, 5, 7, 8, 15, 24])) for name in NAMES}


def value(text, point):
    try:
        return exact.value(exact.parse(text), point)
    except ZeroDivisionError:
        return None


class Case:
    """An expression of ours, its values at some points, and what PROGRAM wrote for it."""

    def __init__(self, text, rng):
        self.text = text
        self.points = [point_of(rng) for _ in range(POINTS)]
        self.values = [value(text, point) for point in self.points]

    def fail(self, notation, written, point, found, expected):
        sys.exit(f"{self.text} in {notation} is {written}, worth {found} at {point}, not {expected}")

    def defined(self):
        return ((i, point, v) for i, (point, v) in enumerate(zip(self.points, self.values)) if v is not None)


def renamed(text):
    """Ours with other names, so that those with a meaning elsewhere are met."""
    out, word = [], ""
    for char in text + " ":
        if char.isalnum() or char == "_":
            word += char
            continue
        out += [RENAMED.get(word, word), char]
        word = ""
    return "".join(out).rstrip()


def run(program, cases):
    # the first line declares the variables: texts depend on their order
    lines = [" + ".join(RENAMED.values()), *(renamed(case.text) for case in cases)]
    done = subprocess.run([program], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{program} ended with status {done.returncode}: {done.stderr}")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for case, answer in zip(cases, answers[1:]):
        for notation in ("c", "python", "latex"):
            if len(answer[notation]) != len(FORMS):
                sys.exit(f"{case.text} is written in {len(answer[notation])} forms, not in {len(FORMS)}")
        case.answer = answer
    return answers[-1]


# ---- Python ------------------------------------------------------------------------------------------------


def identifiers(point):
    return {"a": point["a"], "S": point["b"], "N": point["c"], "_x6Cambda": point["d"]}


SCOPE = {"__builtins__": {}, "max": max, "min": min, "abs": abs, "Rational": Fraction,
         "pow2": exact.CALLS["pow2"]}


def check_python(case):
    for text in case.answer["python"]:
        if "Sum(" in text:
            continue
        for _, point, expected in case.defined():
            found = eval(text, dict(SCOPE), identifiers(point))
            if isinstance(found, float) or found != expected:
                case.fail("Python", text, point, found, expected)


def to_sympy(text):
    return sympy.sympify(text, locals={"a": SYMBOLS["a"], "S": SYMBOLS["S"], "N": SYMBOLS["N"],
                                       "_x6Cambda": SYMBOLS["lambda"]})


def sum_now(*arguments):
    return sympy.Sum(*arguments).doit()


class power_of_two(sympy.Function):
    """Of numbers; what has an index of a sum stays until that is a number."""

    @classmethod
    def eval(cls, x):
        if x.is_Rational:
            return sympy.Integer(int(exact.CALLS["pow2"](Fraction(int(x.p), int(x.q)))))
        return None


class Floors(ast.NodeTransformer):
    """Makes l // r a call."""

    def visit_BinOp(self, node):
        node = self.generic_visit(node)
        if isinstance(node.op, ast.FloorDiv):
            return ast.Call(ast.Name("floor_div", ast.Load()), [node.left, node.right], [])
        return node


def floors_negative_fraction(text, point):
    """SymPy 1.11 rounds these towards 0 when they are numbers."""
    met = []

    def floor_div(left, right):
        left, right = Fraction(left), Fraction(right)
        met.append(left / right < 0 and (left.denominator > 1 or right.denominator > 1))
        return left // right

    tree = ast.fix_missing_locations(Floors().visit(ast.parse(text, mode="eval")))
    scope = SCOPE | {"floor_div": floor_div, "Sum": lambda *_: 1, "pow2": lambda _: 1, "i": 1, "j": 1, "k": 1}
    eval(compile(tree, "written", "eval"), scope, identifiers(point))
    return any(met)


def check_sympy(case):
    """SymPy reads the text with numbers in place of the names: with symbols inside floors and maxima version
    1.11 has values of its own, and fails where sums stand inside of them."""
    text = case.answer["python"][FORMS.index("factored")]
    indices = {name: sympy.Symbol(name, integer=True) for name in "ijk"}
    for _, point, expected in list(case.defined())[:2]:
        if floors_negative_fraction(text, point):
            continue
        values = {name: sympy.Integer(int(v)) for name, v in identifiers(point).items()}
        found = sympy.sympify(text, locals=values | indices | {"Sum": sum_now, "pow2": power_of_two})
        if found != sympy.Rational(expected.numerator, expected.denominator):
            case.fail("SymPy", text, point, found, expected)


def check_symbols(case):
    """Of rational expressions: what SymPy reads with symbols, and the derivative."""
    original = to_sympy(renamed(case.text).replace("^", "**").replace("lambda", "_x6Cambda"))
    for text in case.answer["python"]:
        if sympy.cancel(to_sympy(text) - original) != 0:
            sys.exit(f"{case.text} is written {text}")
    ours, theirs = case.answer["slope"], sympy.diff(original, SYMBOLS["a"])
    if ours == "undefined" or case.answer["piecewise"] or sympy.cancel(to_sympy(ours) - theirs) != 0:
        sys.exit(f"the derivative of {case.text} is written {ours}; SymPy: {theirs}")


# ---- LaTeX -------------------------------------------------------------------------------------------------

# in this order; what closes a fraction comes last
LATEX = [(r"\\mathrm\{(\w+)\}", r"\1"), (r"\^\{(\d+)\}", r"**\1"),
         (r"\\left\\lfloor ", "floor("), (r"\\left\\lceil ", "ceil("), (r" \\right\\r(floor|ceil)", ")"),
         (r"\\(max|min)\\left\(", r"\1("), (r"\\left\|", "abs("), (r"\\right\|", ")"),
         (r"\\left\[", "bracket("), (r" \\ge 0\\right\]", ")"), (r"\\left\(", "("), (r"\\right\)", ")"),
         (r"\\operatorname\{pow2\}", "pow2"), (r"\\,", "*"), (r"\\bmod", "%"), (r"\\frac\{", "(("),
         (r"\}\{", ")/("), (r"\}", "))")]


def check_latex(case):
    """Read as mathematics is read; sums over an index aside."""
    for latex in case.answer["latex"]:
        text = latex
        for pattern, replacement in LATEX:
            text = re.sub(pattern, replacement, text)
        for _, point, expected in case.defined():
            scope = {RENAMED[name]: v for name, v in point.items()}
            found = expected if "sum" in text else latex_value(ast.parse(text.replace("lambda", "lambda_")),
                                                               scope)
            if found != expected:
                case.fail("LaTeX", latex, point, found, expected)


def latex_value(tree, scope):
    functions = {"max": max, "min": min, "abs": abs, "floor": math.floor, "ceil": math.ceil,
                 "bracket": lambda x: int(x >= 0), "pow2": lambda x: exact.CALLS["pow2"](Fraction(x))}
    exact_numbers = ast.fix_missing_locations(Exact().visit(ast.Expression(tree.body[0].value)))
    scope = {"lambda_" if name == "lambda" else name: v for name, v in scope.items()}
    return eval(compile(exact_numbers, "latex", "eval"),
                {"__builtins__": {}, "Fraction": Fraction} | functions, scope)


class Exact(ast.NodeTransformer):
    """Numbers become fractions, so that all quotients are exact."""

    def visit_BinOp(self, node):
        if isinstance(node.op, ast.Pow):
            return ast.BinOp(self.visit(node.left), node.op, node.right)
        node = self.generic_visit(node)
        if isinstance(node.op, ast.Div):
            node.left = ast.Call(ast.Name("Fraction", ast.Load()), [node.left], [])
        return node


# ---- JSON --------------------------------------------------------------------------------------------------


def json_value(expression, scope):
    return sum((term_value(term, scope) for term in expression["terms"]), Fraction(0))


def term_value(term, scope):
    product = Fraction(term["c"])
    for name, power in term["m"].items():
        product *= scope[name] ** power
    for factor in term.get("f", []):
        product *= factor_value(factor, scope) ** factor["power"]
    return product


def factor_value(factor, scope):
    if factor["op"] == "sum":
        count, body = factor["args"]
        index = f"#{factor['level']}"
        return sum((json_value(body, scope | {index: Fraction(i)})
                    for i in range(int(json_value(count, scope)))),
                   Fraction(0))
    args = [json_value(arg, scope) for arg in factor["args"]]
    return {"floor": lambda: Fraction(math.floor(args[0])), "max": lambda: max(args),
            "recip": lambda: 1 / args[0],
            "pow2": lambda: exact.CALLS["pow2"](args[0])}[factor["op"]]()


def check_json(case):
    for _, point, expected in case.defined():
        found = json_value(case.answer["json"], {RENAMED[name]: v for name, v in point.items()})
        if found != expected:
            case.fail("JSON", case.answer["json"], point, found, expected)


# ---- C -----------------------------------------------------------------------------------------------------


def c_function(name, body):
    return f"static void {name}(double *out, double a, double S, double N, double lambda)\n{{\n" \
        f"    (void)a, (void)S, (void)N, (void)lambda;\n{body}}}\n"


def c_program(cases, block):
    source, calls = "#include <math.h>\n#include <stdio.h>\n" + C_SUM, ""
    for i, case in enumerate(cases):
        texts = case.answer["c"]
        source += c_function(f"f{i}", "".join(f"    out[{k}] = {text};\n" for k, text in enumerate(texts)))
        for point in case.points:
            arguments = ", ".join(f"{point[name]}.0" for name in NAMES)
            calls += f'    f{i}(out, {arguments});\n'
            calls += f'    for (int k = 0; k < {len(texts)}; k++)\n        printf("%.17g\\n", out[k]);\n'
    count = len(cases) + 1
    stores = "".join(f"    out[{k}] = r{k};\n" for k in range(count))
    source += c_function("all", block + stores)
    for i, point in enumerate(cases[0].points):
        arguments = ", ".join(f"{point[name]}.0" for name in NAMES)
        calls += f"    all(out, {arguments});\n"
        calls += f'    for (int k = 0; k < {count}; k++)\n        printf("%.17g\\n", out[k]);\n'
    return source + f"int main(void)\n{{\n    double out[{count + len(FORMS)}];\n{calls}    return 0;\n}}\n"


def run_c(source):
    with open("written.c", "w") as file:
        file.write(source)
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O0", "-o", "written", "written.c", "-lm"]
    subprocess.run([os.environ.get("CC", "cc"), *flags], check=True)
    return subprocess.run(["./written"], capture_output=True, text=True, check=True).stdout.split()


def is_near(found, expected, case, point):
    """Within what rounding may do where terms cancel."""
    scope = {RENAMED[name]: v for name, v in point.items()}
    size = sum(abs(term_value(term, scope)) for term in case.answer["json"]["terms"])
    return abs(float(found) - float(expected)) <= 1e-9 * (1 + float(size))


def check_c(cases, block):
    found = iter(run_c(c_program(cases, block["c"])))
    for case in cases:
        for point, expected in zip(case.points, case.values):
            for text in case.answer["c"]:
                x = next(found)
                if expected is not None and not is_near(x, expected, case, point):
                    case.fail("C", text, point, x, expected)
    check_assignments(cases, found, block["c"])


def check_assignments(cases, found, text):
    """The roots are the line of declarations and all cases, at the points of the first."""
    for point in cases[0].points:
        next(found)
        for case in cases:
            x, expected = next(found), value(case.text, point)
            if expected is not None and not is_near(x, expected, case, point):
                case.fail("assignments", text, point, x, expected)


def check_python_assignments(cases, block):
    if "Sum(" in block["python"]:
        return
    for point in cases[0].points:
        expected = [value(case.text, point) for case in cases]
        if None in expected:
            continue
        scope = identifiers(point)
        exec(block["python"], dict(SCOPE), scope)
        found = [scope[f"r{i + 1}"] for i in range(len(cases))]
        if found != expected:
            sys.exit(f"{block['python']} gives {found}, not {expected} at {point}")


# ---- all ---------------------------------------------------------------------------------------------------


def main():
    first = first_seed(1)
    print(f"ETCH_TEST_SEED={first}")
    rng = random.Random(first)
    rationals = [Case(rational(rng, 4), rng) for _ in range(effort(80))]
    rationals = [case for case in rationals if any(v is not None for v in case.values)]
    cases = rationals + [Case(general(rng, 3), rng) for _ in range(effort(100))]
    block = run(sys.argv[1], cases)
    for case in cases:
        check_python(case)
        check_json(case)
        check_latex(case)
        check_sympy(case)
    for case in rationals:
        check_symbols(case)
    check_c(cases, block)
    # few at a time: where one is undefined, or has a sum, the whole block is
    for start in range(0, len(cases), 4):
        few = cases[start:start + 4]
        check_python_assignments(few, run(sys.argv[1], few))


main()
