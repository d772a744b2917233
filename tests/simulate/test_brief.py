"""`time(step)` of steps of many microbatches, which queries tell from a few of them, against `etch simulate`,
which runs every node: both ends of the interval, on random plans, schedules, machines and stacks. What
simulate finds is held against a simulation of all ranks in test_run.py."""

import json
import os
import random
import sys
import unittest
from fractions import Fraction

sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "acceptance"))
from effort import effort, first_seed  # noqa: E402
from etchtest import MODELS, Case, run, settings  # noqa: E402

import plain  # noqa: E402
from scenes import random_machine, slowed  # noqa: E402

ROUNDS = effort(24)
SEED = first_seed(1)
# the plan, and the largest sizes of its axes
PLANS = [("llama", "megatron_pp", dict(pp=4, dp=4, tp=2)), ("llama", "fsdp", dict(dp=8)),
         ("llama", "megatron_interleaved", dict(pp=4, dp=2, tp=2)), ("llama", "hsdp", dict(rep=2, part=4)),
         ("llama", "long_context_pp", dict(pp=4, dp=2, cp=2, tp=2)),
         ("mixtral", "moe_pp", dict(pp=4, dp=4, ep=2, tp=2)), ("llama", "megatron_sp", dict(dp=2, tp=4)),
         ("gpt", "megatron_pp", dict(pp=4, dp=2, tp=2)), ("llama", "megatron_zero", dict(dp=4, tp=2)),
         ("llama", "context_gather", dict(dp=2, cp=4, tp=2)), ("llama", "ulysses", dict(dp=2, cp=4, tp=2)),
         ("mixtral", "moe_ep", dict(dp=4, ep=4, tp=2))]
SCHEDULES = ["gpipe", "one_f_one_b", "zb_h1", "zb_h2", "zb_v", "dualpipev", "interleaved(virtual = 2)",
             "interleaved(virtual = 4)"]


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


class Brief(Case):
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
