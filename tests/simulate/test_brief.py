"""`time(step)` of steps of many microbatches, which queries tell from a few of them, against `etch simulate`,
which runs every node: both ends of the interval, on random plans, schedules, machines and stacks. What
simulate finds is held against a simulation of all ranks in test_run.py."""

import csv
import io
import json
import os
import random
import re
import sys
import unittest
from fractions import Fraction

sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "acceptance"))
from effort import effort, first_seed  # noqa: E402
from etchtest import MODELS, Case, run, settings, succeed  # noqa: E402

import plain  # noqa: E402
from scenes import random_machine, slowed  # noqa: E402

ROUNDS = effort(24)
SWEEPS = effort(12)
SEED = first_seed(1)
# the plan, and the largest sizes of its axes
PLANS = [("llama", "megatron_pp", dict(pp=4, dp=4, tp=2)), ("llama", "fsdp", dict(dp=8)),
         ("llama", "megatron_interleaved", dict(pp=4, dp=2, tp=2)), ("llama", "hsdp", dict(rep=2, part=4)),
         ("llama", "long_context_pp", dict(pp=4, dp=2, cp=2, tp=2)),
         ("mixtral", "moe_pp", dict(pp=4, dp=4, ep=2, tp=2)), ("llama", "megatron_sp", dict(dp=2, tp=4)),
         ("gpt", "megatron_pp", dict(pp=4, dp=2, tp=2)), ("llama", "megatron_zero", dict(dp=4, tp=2)),
         ("llama", "context_gather", dict(dp=2, cp=4, tp=2)), ("llama", "ulysses", dict(dp=2, cp=4, tp=2)),
         ("mixtral", "moe_ep", dict(dp=4, ep=4, tp=2))]
SCHEDULES = ["gpipe", "one_f_one_b", "zb_h1", "zb_h2", "zb_v", "dualpipe", "dualpipev",
             "interleaved(virtual = 2)", "interleaved(virtual = 4)"]


def random_sets(chance, spec, axes):
    sizes = {axis: chance.choice([n for n in (1, 2, 4, 8) if n <= most]) for axis, most in axes.items()}
    if "ep" in sizes:
        sizes["ep"] = min(sizes["ep"], sizes["dp"])
    micro = chance.choice((9, 13, 16, 24, 32, 40, 64))
    values = dict(layers=chance.choice((6, 14, 30)), hidden=64, heads=8, vocab=64, batch=16 * micro,
                  micro=micro, seq=64, **sizes)
    if spec != "gpt":
        values.update(kv_heads=8, head_dim=8, ffn=64 * chance.choice((1, 3)))
    if spec == "mixtral":
        values.update(experts=4, topk=2, expert_ffn=64)
    if spec == "gpt":
        values.update(positions=64)
    options = []
    if sizes.get("pp", 1) > 1 and chance.random() < 0.7:
        options.append(f"plan.schedule={chance.choice(SCHEDULES)}")
    if chance.random() < 0.3:
        options.append(f"plan.recompute={chance.choice(('none', 'attention', 'full'))}")
    return [word for text in (settings(values), *options) for word in ("--set", text)]


def certain_digits(low, high):
    """A number between two, as a quantity that is known so far is printed: at most 15 digits."""
    def at(value, places):
        return int(value * 10 ** places + Fraction(1, 2)) if places >= 0 else None
    places = 14
    while high < Fraction(10) ** (14 - places):
        places += 1
    while high >= Fraction(10) ** (15 - places):
        places -= 1
    while at(low, places) != at(high, places):
        places -= 1
    return Fraction(at((low + high) / 2, places), 10 ** places)


class Brief(Case):
    def row_of(self, spec, words, row):
        """The step of a row, of a run of all of its nodes. None: it has none."""
        axes = {name: value for name, value in row.items() if value and name not in ("plan", "time(step)")}
        whole = run("simulate", spec, *words, "--set", settings(axes), "--format", "json")
        self.assertEqual(0, whole.status, str(whole))
        answer = json.loads(whole.out)
        return certain_digits(*(Fraction(answer["step_ps"] + sign * answer["error_ps"], plain.PICO)
                                for sign in (-1, 1)))

    def test_rows_of_sweeps_are_runs(self):
        """Most rows of these sweeps have the shape of others: session.shapes says which."""
        printed = 0
        for number in range(SWEEPS):
            chance = random.Random(f"{SEED} sweep {number}")
            spec, plan, axes = PLANS[number % len(PLANS)]
            _, text = random_machine(chance)
            machine = self.write("machine.etch", re.sub(r"launch = \d+ ps", "launch = 0 ps", text))
            fixed = dict(layers=chance.choice((6, 14)), heads=8, vocab=64, batch=19200)
            if spec != "gpt":
                fixed.update(kv_heads=8, head_dim=8, ffn=64)
            fixed.update(dict(experts=4, topk=2, expert_ffn=64) if spec == "mixtral" else {})
            fixed.update(dict(positions=256) if spec == "gpt" else {})
            over = dict(hidden=[64, 128], seq=[64, 128, 192],
                        micro=chance.sample((1, 4, 8, 24, 40, 75, 80), 3))
            over.update({axis: [n for n in (1, 2, 4, 8) if n <= most][-2:] for axis, most in axes.items()})
            words = ["--plan", plan, "--machine", machine, "--set", settings(fixed), "--stack", "any", "-q"]
            if "pp" in axes and chance.random() < 0.7:
                words += ["--set", f"plan.schedule={chance.choice(SCHEDULES)}"]
            ranges = [word for name, values in over.items()
                      for word in ("--over", f"{name} = {', '.join(map(str, values))}")]
            spec = MODELS / f"{spec}.etch"
            done = succeed("sweep", spec, *words, *ranges, "--select", "time(step)", "--jobs", "2")
            alone = succeed("sweep", spec, *words, *ranges, "--select", "time(step)", "--jobs", "1")
            self.assertEqual(done.out, alone.out)
            rows = list(csv.DictReader(io.StringIO(done.out)))
            for row in chance.sample(rows, min(3, len(rows))):
                self.assertEqual(self.row_of(spec, words, row), Fraction(row["time(step)"]),
                                 f"{done.command}\n{row}\n{text}")
                printed += 1
        self.assertGreater(printed, 2 * SWEEPS)

    def test_queries_are_runs(self):
        answered = 0
        for number in range(ROUNDS):
            chance = random.Random(f"{SEED} {number}")
            spec, plan, axes = PLANS[number % len(PLANS)]
            machine, text = random_machine(chance)
            if chance.random() < 0.1:
                text = slowed(machine, text, Fraction(5, 4))[1]
            words = ["--plan", plan, *random_sets(chance, spec, axes), "--machine",
                     self.write("machine.etch", text), "--stack", "any", "--granularity",
                     chance.choice(("op", "kernel")), "--format", "json", "-q"]
            spec = MODELS / f"{spec}.etch"
            whole = run("simulate", spec, *words)
            asked = run("query", spec, "time(step)", *words)
            self.assertEqual(whole.status, asked.status, f"{whole}\n{asked}")
            if whole.status:
                continue
            found, answer = json.loads(asked.out), json.loads(whole.out)
            for end, sign in (("low", -1), ("high", 1)):
                time = Fraction(answer["step_ps"] + sign * answer["error_ps"], plain.PICO)
                self.assertEqual(Fraction(found[end]), time, f"{whole.command}\n{text}")
            answered += 1
        self.assertGreater(answered, ROUNDS // 2)


if __name__ == "__main__":
    unittest.main()
