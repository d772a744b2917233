#!/usr/bin/python3
"""etch, SymPy and FLINT on the expressions of bench/symbolic/*.txt, in one run: processor time on one core,
and ratios.

    symbolic.py [--quick] [BUILD]      BUILD: the folder of a release build; else build/release

Every engine replays the same operations and must find the same value at one configuration. No round may
profit from what an earlier one left in a cache: etch has a new context, SymPy new names for its symbols,
which is kinder than emptying its cache. SymPy's symbols carry no assumptions, which would cost it time.
Without FLINT (libflint-dev) its columns are left out. --quick is one short round, to see that all works.
"""

import fractions
import operator
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import sympy

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench" / "symbolic"))
import workload  # noqa: E402

EXPRESSIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
               "^": operator.pow,
               "int": sympy.Integer}


def must_expand_to_zero(left, right):
    if left != right and sympy.expand(left - right) != 0:
        sys.exit(f"SymPy finds {left} and {right} different")


def must_simplify_to_zero(left, right):
    if sympy.simplify(left - right) != 0:
        sys.exit(f"SymPy finds {left} and {right} different")


class SymPy:
    def __init__(self, name, check=must_expand_to_zero):
        self.work = workload.Workload(name)
        self.check = check
        self.rounds = 0
        self.rename()

    def rename(self):
        self.rounds += 1
        self.symbols = [sympy.Symbol(f"{v}{self.rounds}") for v in self.work.variables]

    def build(self):
        slots = {}
        workload.replay(self.work.statements, self.symbols, EXPRESSIONS, slots, self.check)
        return sympy.expand(slots[self.work.result])

    def renamed(self):
        self.rename()
        return self.build()

    def configuration(self, i):
        return [workload.configuration(v, i) for v in self.work.variables]


def median(budget, make, run, count=1):
    """Seconds of processor time of run(make()), the latter not counted, divided by `count`."""
    times, start = [], time.process_time()
    while not times or time.process_time() - start < budget:
        made = make()
        begin = time.process_time()
        run(made)
        times.append((time.process_time() - begin) / count)
    return statistics.median(times)


class Bench:
    def __init__(self, build, budget):
        self.programs = build / "bench" / "symbolic"
        self.budget = budget
        self.folder = tempfile.TemporaryDirectory(prefix="etch-bench.")
        self.values = {}
        self.missed = []

    def program(self, name, task, work):
        """Seconds of a round of one of our programs; None where it is not built."""
        path = self.programs / f"bench_{name}"
        if not os.access(path, os.X_OK):
            return None
        text = pathlib.Path(self.folder.name, work)
        if not text.exists():
            text.write_text(workload.Workload(work).text(), encoding="utf-8")
        done = subprocess.run([path, task, text, str(self.budget)], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(f"{path} {task} {work}: {done.stderr}")
        seconds, value, failed = done.stdout.split()
        self.agree(work, fractions.Fraction(value), name)
        if failed != "0":
            sys.exit(f"{path} {work}: {failed} checks failed")
        return float(seconds)

    def agree(self, work, value, who):
        if self.values.setdefault(work, value) != value:
            sys.exit(f"{work}: {who} finds {value}, not {self.values[work]}")

    def line(self, label, goal, ours, theirs, flint=None, flint_goal=None):
        """`theirs`: the name and the seconds of what SymPy does."""
        name, seconds = theirs
        text = f"{label:42} {show(ours)}   {name:20} {show(seconds)}  {ratio(seconds, ours, goal)}"
        if flint:
            text += f"   FLINT {show(flint)}  {ratio(flint, ours, flint_goal)}"
        print(text, flush=True)
        for found, wanted, who in ((seconds / ours, goal, name),
                                   (flint and flint / ours, flint_goal, "FLINT")):
            if wanted and found and found < wanted:
                self.missed.append(f"{label}: {found:,.3g} times {who}, not {wanted}")


def show(seconds):
    for unit, scale in (("s ", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        if seconds * scale >= 1 or unit == "ns":
            return f"{seconds * scale:7.3g} {unit}"
    return ""


def ratio(theirs, ours, goal):
    times = theirs / ours
    number = f"{times:,.0f}" if times >= 100 else f"{times:.3g}"
    return f"{number:>9}x" + (f" (goal {goal:,}x)" if goal else "")


# ---- what is measured --------------------------------------------------------------------------------------

def build(bench, label, name, goal, flint_goal=None):
    engine = SymPy(name)
    expanded = engine.build()
    bench.agree(name, as_fraction(expanded.subs(dict(zip(engine.symbols, engine.configuration(0))))), "SymPy")
    seconds = median(bench.budget, engine.rename, lambda _: engine.build())
    bench.line(label, goal, bench.program("etch", "build", name), ("expand", seconds),
               bench.program("flint", "build", name), flint_goal)


def equality(bench):
    ours, flint = bench.program("etch", "build", "narayanan"), bench.program("flint", "build", "narayanan")
    for what, check, goal in (("expand", must_expand_to_zero, 300),
                              ("simplify", must_simplify_to_zero, 5000)):
        engine = SymPy("narayanan", check)
        seconds = median(bench.budget, engine.rename, lambda _, e=engine: e.build())
        bench.line("Narayanan's closed form == sum over ops", goal, ours, (what, seconds), flint)


def product(bench):
    """SymPy's own polynomials: its expressions take minutes for this."""
    work = workload.Workload("product")
    inverses = [f"{v}_1" for v in work.variables]
    ring = sympy.ring(work.variables + inverses, sympy.QQ)[0]
    generators = dict(zip(work.variables, ring.gens))

    def divide(x, y):
        (exponents, c), = y.terms()
        half = len(work.variables)
        return x * ring({exponents[half:] + exponents[:half]: 1 / c})

    operations = EXPRESSIONS | {"/": divide, "int": ring.domain.convert}
    slots, begin = {}, work.statements.index(("begin",))
    variables = [generators[v] for v in work.variables]
    workload.replay(work.statements[:begin], variables, operations, slots, None)
    seconds = median(0, int,
                     lambda _: workload.replay(work.statements[begin + 1:], variables, operations, slots,
                                               None))
    bench.line("a product of 10,626 terms", None, bench.program("etch", "stress", "product"),
               ("ring", seconds),
               bench.program("flint", "stress", "product"), 0.25)


def as_fraction(number):
    return fractions.Fraction(int(number.p), int(number.q))


def evaluation(bench):
    engine = SymPy("step")
    expanded = engine.build()
    count = 20000 if bench.budget > 0.1 else 50
    ours, flint = bench.program("etch", "evaluate", "step"), bench.program("flint", "evaluate", "step")
    compiled = sympy.lambdify(engine.symbols, expanded, modules="math")
    points = [[fractions.Fraction(v) for v in engine.configuration(i)] for i in range(count)]
    bench.agree("step", fractions.Fraction(compiled(*points[0])), "lambdify")
    seconds = median(0, int, lambda _: [compiled(*p) for p in points], count)
    bench.line("exact values of a step formula", 200, ours, ("lambdify, Fraction", seconds), flint, 5)
    few = [dict(zip(engine.symbols, engine.configuration(i))) for i in range(20 if count > 50 else 1)]
    seconds = median(0, int, lambda _: [expanded.subs(p) for p in few], len(few))
    bench.line("exact values of a step formula", 100000, ours, ("subs", seconds), flint)


def printing(bench):
    engine = SymPy("step")
    expanded = engine.build()
    seconds = median(bench.budget, engine.renamed, str)
    bench.line(f"printing {len(expanded.args)} terms", 800, bench.program("etch", "print", "step"),
               ("str", seconds),
               bench.program("flint", "print", "step"))


def derivatives(bench):
    engine = SymPy("step")
    expanded = engine.build()
    seconds = median(bench.budget, engine.renamed, lambda e: [e.diff(v) for v in engine.symbols])
    bench.line(f"{len(engine.symbols)} derivatives of a step formula", 30000,
               bench.program("etch", "derivatives", "step"), ("diff", seconds),
               bench.program("flint", "derivatives", "step"))


def main():
    arguments = sys.argv[1:]
    quick = "--quick" in arguments
    arguments = [a for a in arguments if a != "--quick"]
    folder = pathlib.Path(arguments[0]) if arguments else ROOT / "build" / "release"
    bench = Bench(folder, 0.01 if quick else 2)
    if not os.access(bench.programs / "bench_etch", os.X_OK):
        sys.exit(f"there is no program {bench.programs / 'bench_etch'}: build the preset release")
    if not os.access(bench.programs / "bench_flint", os.X_OK):
        print("FLINT is not installed (libflint-dev): left out")
    build(bench, "building a layer's cost", "layer", 300, 2)
    build(bench, "building a step formula", "step", 600)
    equality(bench)
    evaluation(bench)
    build(bench, "shapes through 10,000 ops", "shapes", 50)
    printing(bench)
    derivatives(bench)
    product(bench)
    for text in [] if quick else bench.missed:
        print(f"missed: {text}")
    return 1 if bench.missed and not quick else 0


sys.exit(main())
