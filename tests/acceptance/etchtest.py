"""What the acceptance tests share. They are users of the program: they run it on the shipped models and on
specs of their own, and hold its answers against arithmetic of their own. $ETCH is the program,
$ETCH_SOURCE_DIR the repository; every test works in a scratch folder of its own."""

import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from fractions import Fraction

ETCH = os.environ["ETCH"]
SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
MODELS = SOURCE / "models"
LLAMA, GPT, BASE = MODELS / "llama.etch", MODELS / "gpt.etch", MODELS / "base.etch"
COMMON = MODELS / "plans.etch"
PLANS = ("ddp", "megatron", "megatron_sp")

sys.path.insert(0, str(SOURCE / "tests" / "oracle"))
import trace  # noqa: E402  (reads traces with the official protobuf runtime)

DIAGNOSTIC = re.compile(r"^(?:(?P<path>[^\n]*?):(?P<line>\d+):(?P<column>\d+): )?(?:[^\n:]*: )?"
                        r"(?P<severity>error|warning|remark)(?:\[(?P<code>E\d{4})\])?: (?P<text>.*)$", re.M)



def with_plans(spec):
    """The text of a shipped spec with the common plans in place of their import, for tests that change them;
    those that divide experts only where there are experts."""
    text = spec.read_text(encoding="utf-8")
    plans = COMMON.read_text(encoding="utf-8").split("etch 1\n", 1)[1]
    if "experts_mlp" not in text:
        plans = re.sub(r"^parallel moe_.*?^\}\n", "", plans, flags=re.M | re.S)
    return re.sub(r'^import "plans.etch".*$', lambda match: plans, text, flags=re.M)


# ---- the program -------------------------------------------------------------------------------------------


class Run:
    """What a run of the program gave: status, standard output, standard error."""

    def __init__(self, arguments, process):
        self.command = " ".join(["etch", *arguments])
        self.status, self.out, self.err = process.returncode, process.stdout, process.stderr

    def __str__(self):
        return f"$ {self.command}\nstatus {self.status}\n{self.out[-3000:]}{self.err[-3000:]}"

    def errors(self):
        return [match for match in DIAGNOSTIC.finditer(self.err) if match["severity"] == "error"]


def settings(values):
    """{"dp": 2, "tp": 4} as the value of --set."""
    return ",".join(f"{name}={value}" for name, value in values.items())


def options(config=None, plan=None, sets=None):
    found = []
    if config:
        found += ["--config", config]
    if plan:
        found += ["--plan", plan]
    if sets:
        found += ["--set", settings(sets)]
    return found


def run(*arguments, **how):
    """Runs the program; `how` goes to subprocess.run."""
    arguments = [str(argument) for argument in arguments]
    process = subprocess.run([ETCH, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace",
                             check=False,
                             **how)
    return Run(arguments, process)


def succeed(*arguments, **how):
    done = run(*arguments, **how)
    if done.status != 0:
        raise AssertionError(f"the program failed\n{done}")
    return done


def number(text):
    value = Fraction(text.strip())
    return int(value) if value.denominator == 1 else value


def ask(spec, expression, config=None, plan=None, sets=None):
    """The answer to a query, as text."""
    return succeed("query", spec, expression, *options(config, plan, sets)).out.strip()


def value(spec, expression, config=None, plan=None, sets=None):
    """The answer to a query that is a number."""
    text = ask(spec, expression, config, plan, sets)
    try:
        return number(text)
    except ValueError as error:
        raise AssertionError(f"{expression} is no number but {text}") from error


def table(spec, expression, by, config=None, plan=None, sets=None):
    """Label -> number of a query with --by, and the total."""
    done = succeed("query", spec, expression, *options(config, plan, sets), "--by", by, "--format", "json")
    answer = json.loads(done.out)
    return {row["label"]: number(row["value"]) for row in answer["rows"]}, number(answer["value"])


def lower(folder, spec, config=None, plan=None, sets=None, more=()):
    succeed("lower", spec, *options(config, plan, sets), "-o", folder, "--no-sync", *more)
    return pathlib.Path(folder)


# ---- formulas ----------------------------------------------------------------------------------------------


class Point:
    """A value for every name: always the same, and different from one name and one seed to the next."""

    def __init__(self, seed, **values):
        self.seed = seed
        for name, size in values.items():
            setattr(self, name, Fraction(size))

    def __getattr__(self, name):
        return Fraction(random.Random(f"{self.seed} {name}").randrange(2, 10**6))


POINTS = [Point(seed) for seed in range(6)]  # formulas that agree here are the same, but for a miracle


class Formula:
    """A printed formula. `dims`: name of a dim -> its size as text, put in for the dim."""

    FUNCTIONS = {"Fraction": Fraction, "max": max, "min": min, "floor": math.floor, "ceil": math.ceil,
                 "abs": abs}

    def __init__(self, text, dims=None):
        self.text, self.dims = text, dims or {}

    @staticmethod
    def code(text):
        return re.sub(r"(?<![\w.])\d+(?![\w.])", lambda match: f"Fraction({match[0]})",
                      text.replace("^", "**"))

    def names(self):
        """The params and axes in it."""
        found = set()
        for name in re.findall(r"[A-Za-z_]\w*", self.text):
            found |= Formula(self.dims[name]).names() if name in self.dims else {name} - set(self.FUNCTIONS)
        return found

    def at(self, point):
        values = {name: getattr(point, name) for name in re.findall(r"[A-Za-z_]\w*", self.text)
                  if name not in self.FUNCTIONS and name not in self.dims}
        for name, size in self.dims.items():
            values[name] = Formula(size).at(point)
        return eval(self.code(self.text), {"__builtins__": {}}, {**self.FUNCTIONS, **values})


# ---- traces ------------------------------------------------------------------------------------------------


def messages(path):
    """The nodes of a trace as the official runtime decodes them; the metadata left out."""
    raw = list(trace.frames(path.read_bytes()))
    return [trace.NodeMessage.FromString(message) for message in raw[1:]]


def nameless(path):
    """The bytes of every node of a trace, without its name."""
    stripped = []
    for node in messages(path):
        node.ClearField("name")
        stripped.append(node.SerializeToString(deterministic=True))
    return stripped


def attribute(node, name):
    for candidate in node.attr:
        if candidate.name == name:
            return getattr(candidate, candidate.WhichOneof("value"))
    raise KeyError(name)


def traces(folder):
    """rank -> path."""
    return {int(path.name.split(".")[-2]): path for path in folder.iterdir() if path.suffix == ".et"}


def snapshot(folder):
    """Everything below a folder: relative path -> bytes of a file, None of a folder."""
    folder = pathlib.Path(folder)
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
            for path in sorted(folder.rglob("*"))}


# ---- tests -------------------------------------------------------------------------------------------------


class Case(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(dir=os.getcwd(), prefix="case."))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def write(self, name, text):
        """A file of the scratch folder. The common plans come along with a spec that imports them."""
        path = self.scratch / name
        if isinstance(text, bytes):
            path.write_bytes(text)
            return path
        path.write_text(text, encoding="utf-8")
        if 'import "plans.etch"' in text and not (path.parent / "plans.etch").exists():
            shutil.copy(COMMON, path.parent)
        return path

    def assertFormula(self, by_hand, text, dims):
        """A printed formula is, for all values, what a function of a point says."""
        for point in POINTS:
            self.assertEqual(by_hand(point), Formula(text, dims).at(point), text)

    def assertFine(self, folder):
        """A folder of traces keeps every rule that simulators rely on."""
        self.assertEqual([], trace.check(folder))

    def assertTotals(self, folder, spec, config, plan, sets, of_run=None):
        """What the nodes of every rank add up to, less the paddings that the manifest counts, is what queries
        say."""
        def asked(expression):
            named = f"{expression[:-1]}, run = {of_run})" if of_run else expression
            return value(spec, named, config, plan, sets)

        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        self.assertEqual(1, len(manifest["stages"]))
        stage = manifest["stages"][0]
        padding = {(row["collective"], row["axes"]): int(row["bytes_padding"]) for row in stage["comm"]}
        rows = trace.totals(folder)
        self.assertEqual(manifest["ranks"], sum(len(row["ranks"]) for row in rows))
        flops, moved, payload = asked("rank_flops(step)"), asked("traffic(step)"), asked("comm(step)")
        by_axis = {}
        for row in rows:
            self.assertEqual(flops, row["num_ops"] - int(stage["flop_padding"]))
            self.assertEqual(moved, row["tensor_size"] - int(stage["bytes_padding"]))
            found = {(comm["collective"], comm["axes"]): comm["comm_size"] for comm in row["comm"]}
            self.assertEqual(set(padding), set(found))
            for key, size in found.items():
                if key not in by_axis:
                    sent = "permute" if key[0] == "recv" else key[0]  # of one stage: what goes round
                    by_axis[key] = asked(f"comm(step, op = {sent}, axis = {key[1]})")
                self.assertEqual(by_axis[key], size - padding[key], key)
            self.assertEqual(payload, sum(size - padding[key] for key, size in found.items()
                                          if key[0] != "recv"))


def main():
    unittest.main(verbosity=1)
