"""Rows of sweeps are what queries say, digit by digit: random axes, values, plans and configs of the shipped
specs. A row that is printed has the numbers of as many queries; one that is not printed, some query of it is
refused. The rows are enumerated here, and the queries know nothing of sweeps."""

import itertools
import json
import os
import random
import re

from etchtest import LLAMA, MODELS, Case, main, run, settings, succeed
from shipped import SMALL, axes_of, params_of, runs_of

MULT = int(os.environ.get("ETCH_TEST_MULT", "1"))
SEED = int(os.environ.get("ETCH_TEST_SEED", "1"))
SWEEPS, ROWS = 150 * MULT, 20

OF_JOB = ["params(model)", "flops(step)", "flops(forward)", "matmul_flops(step)", "flops(step)/batch",
          "flops(step)/(3*params(model))"]
OF_RANK = ["rank_flops(step)", "comm(step)", "wire(step)", "traffic(step)", "memory(states)", "memory(peak)",
           "memory(activations)", "memory(workspace)", "rank_params(model)", "comm(forward)",
           "max(comm(step), memory(peak))", "comm(step) + 7*rank_flops(forward)"]
SERVED = ["flops(forward)", "rank_flops(forward)", "comm(forward)", "memory(cache)", "memory(peak)",
          "params(model)"]


def plans_of(spec):
    """Names of the plans that a spec sees."""
    text = re.sub(r"#.*", "", spec.read_text(encoding="utf-8"))
    found = re.findall(r"^parallel\s+(\w+)", text, re.M)
    for path, names in re.findall(r'^import "([^"]+)"[ \t]*(\([^)]*\))?', text, re.M):
        other = plans_of(spec.parent / path)
        found += [name for name in other if not names or name in re.findall(r"\w+", names)]
    return found


def configs_of(spec):
    return re.findall(r"^config\s+(\w+)", spec.read_text(encoding="utf-8"), re.M)


def values_of(rng, name, axes):
    """Some values: small ones, odd ones, and of sizes some that make numbers of more than 64 bits."""
    if name in axes:
        pool = [1, 1, 2, 2, 4, 8, 16, 3, 5, 64]
    elif name in ("batch", "seq", "context", "src", "tgt"):
        pool = [64, 128, 1024, 8192, 96, 100, 2**20, 2**40]
    elif name == "micro":
        pool = [1, 2, 4, 8, 16, 3]
    else:
        size = SMALL.get(name, 8)
        pool = [size, size, 2 * size, 4 * size, size + 1, 1]
    return sorted(set(rng.sample(pool, rng.randrange(1, 4))))


class Sweeps(Case):
    def draw(self, rng):
        """A random sweep: spec, options of both commands, axes with values, expressions."""
        spec = rng.choice([path for path in sorted(MODELS.glob("*.etch"))
                           if path.stem not in ("base", "plans", "gpt_memory")])
        plan = rng.choice(plans_of(spec))
        axes = axes_of(spec, plan)
        params = params_of(spec)
        configs = configs_of(spec)
        fixed = {}
        config = rng.choice(configs) if configs and rng.random() < 0.6 else None
        if config is None:
            fixed = {name: value for name, value in SMALL.items() if name in params}
        else:
            fixed = {name: value for name, value in {"batch": 64, "seq": 1024, "src": 128, "tgt": 64,
                                                     "micro": 2, "context": 128}.items() if name in params}
        swept = rng.sample(sorted(axes), min(len(axes), rng.randrange(1, 4)))
        others = ["batch", "micro", "seq", "context", "layers"] if config else sorted(params)
        swept += [name for name in rng.sample(others, min(len(others), 2)) if name in params]
        rng.shuffle(swept)
        swept = list(dict.fromkeys(swept))
        served = rng.choice(runs_of(spec))
        pool = SERVED if served else OF_JOB + OF_RANK
        exprs = rng.sample(pool, rng.randrange(1, 4))
        common = ["--plan", plan] + (["--config", config] if config else []) + (["--run", served] if served else [])
        return spec, common, fixed, [(name, values_of(rng, name, axes)) for name in swept], exprs

    def query(self, spec, common, sets, expression):
        done = run("query", spec, expression, *common, "--defaults", "-q", "--set", settings(sets))
        self.assertIn(done.status, (0, 1, 4), str(done))
        return done.out.strip() if done.status == 0 else None

    def test_rows_are_queries(self):
        checked = {"printed": 0, "refused": 0, "large": 0}
        for number in range(SWEEPS):
            rng = random.Random(f"{SEED} {number}")
            spec, common, fixed, axes, exprs = self.draw(rng)
            over = [word for name, values in axes
                    for word in ("--over", f"{name} = {', '.join(map(str, values))}")]
            sweep = run("sweep", spec, *common, "--set", settings(fixed), *over, "--select", ", ".join(exprs),
                        "--format", "jsonl", "--jobs", "2")
            self.assertIn(sweep.status, (0, 1), str(sweep))
            rows = [json.loads(line, parse_int=str) for line in sweep.out.splitlines()]
            names = [name for name, _ in axes]
            printed = {tuple(int(row[name]) for name in names): row for row in rows}
            self.assertEqual(len(rows), len(printed), str(sweep))
            points = list(itertools.product(*(values for _, values in axes)))
            self.assertEqual([point for point in points if point in printed], list(printed), str(sweep))
            for point in rng.sample(points, min(len(points), ROWS)):
                sets = dict(fixed, **dict(zip(names, point)))
                if point in printed:
                    expression = rng.choice(exprs)
                    said = self.query(spec, common, sets, expression)
                    self.assertEqual(said, printed[point][expression], f"{sweep.command}\n{expression} {point}")
                    checked["printed"] += 1
                    checked["large"] += len(said or "") > 19
                else:
                    answers = [self.query(spec, common, sets, expression) for expression in exprs]
                    self.assertIn(None, answers, f"{sweep.command}\nnot printed: {point}")
                    checked["refused"] += 1
        self.assertGreater(checked["printed"], 400 * MULT, checked)
        self.assertGreater(checked["refused"], 300 * MULT, checked)
        self.assertGreater(checked["large"], 20 * MULT, checked)


if __name__ == "__main__":
    main()
