"""Two plans of one spec compared: what is proved holds where numbers are put in, and what is refuted comes
with values that both plans can divide, for which each plan by itself has the numbers that the proof shows."""

import itertools
import json

from etchtest import GPT, LLAMA, MODELS, Case, main, run, settings, succeed, value
from test_shipped import SMALL, axes_of, params_of

MIXTRAL = MODELS / "mixtral.etch"
PAIRS = [(spec, pair) for spec,
         plans in ((LLAMA, ("ddp", "megatron", "megatron_sp", "megatron_pp", "context_gather", "ulysses")),
                   (GPT, ("megatron", "megatron_zero", "megatron_interleaved")),
                   (MIXTRAL, ("megatron_zero", "moe_ep", "moe_folded", "moe_pp")))
         for pair in itertools.combinations(plans, 2)]
QUANTITIES = ("comm(step{})", "wire(backward{})", "rank_flops(step{})", "traffic(forward{})")


def of_plan(quantity, plan):
    return quantity.format(f", plan = {plan}")


class ComparedPlans(Case):
    def prove(self, spec, statement, *more):
        done = run("prove", spec, statement, "--format", "json", *more)
        self.assertIn(done.status, (0, 1, 5), done)
        return json.loads(done.out)

    def numbers(self, spec, plan, quantity, values, stage=None):
        """The number that one plan alone has at the values; the rest takes the values of a small model."""
        known = params_of(spec) | axes_of(spec, plan)
        sets = {name: size for name, size in {**SMALL, **values}.items() if name in known}
        self.assertLowers(spec, plan, sets)
        return value(spec, of_plan(quantity, plan), None, None, sets)

    def assertLowers(self, spec, plan, sets):
        succeed("lower", spec, "--plan", plan, "--set", settings(sets), "-o", self.scratch / "none",
                "--dry-run", "-q")

    def test_pairs(self):
        refuted = 0
        for (spec, (one, other)), quantity in itertools.product(PAIRS, QUANTITIES):
            with self.subTest(spec=spec.name, one=one, other=other, quantity=quantity):
                proof = self.prove(spec, f"{of_plan(quantity, one)} == {of_plan(quantity, other)}")
                if proof["verdict"] == "proved":
                    small = {name: size for name, size in SMALL.items() if name in params_of(spec)}
                    self.assertEqual(self.numbers(spec, one, quantity, small),
                                     self.numbers(spec, other, quantity, small))
                    continue
                self.assertEqual("refuted", proof["verdict"])
                refuted += 1
                values = {name: int(size) for name, size in proof["witness"].items()}
                self.assertNotEqual(proof["left_value"], proof["right_value"])
                if "stage" in values:
                    continue  # the heaviest of the stages of a formula, one of them with a number of its own
                self.assertEqual(int(proof["left_value"]), self.numbers(spec, one, quantity, values))
                self.assertEqual(int(proof["right_value"]), self.numbers(spec, other, quantity, values))
        self.assertGreater(refuted, 20)

    def test_axes_of_one_plan(self):
        """A value for an axis that only one of the plans has; without it a plan is the smaller one."""
        for spec, larger, smaller, sets in ((LLAMA, "megatron", "ddp", "tp=1"),
                                            (LLAMA, "megatron_pp", "megatron_zero", "pp=1"),
                                            (LLAMA, "ulysses", "megatron_zero", "cp=1"),
                                            (MIXTRAL, "moe_pp", "moe_ep", "pp=1"),
                                            (MIXTRAL, "moe_folded", "moe_ep", "tp=1")):
            # traffic is that of kernels, which a collective parts also when its axis is 1
            for quantity in QUANTITIES[:3]:
                with self.subTest(spec=spec.name, larger=larger, smaller=smaller, quantity=quantity):
                    statement = f"{of_plan(quantity, larger)} == {of_plan(quantity, smaller)}"
                    self.assertEqual("proved", self.prove(spec, statement, "--set", sets)["verdict"])

    def test_an_axis_of_no_plan(self):
        done = run("prove", LLAMA, "comm(step, plan = ddp) == comm(step, plan = megatron)", "--set", "cp=2")
        self.assertEqual(1, done.status, done)
        self.assertEqual({"E0502"}, {error["code"] for error in done.errors()}, done)


if __name__ == "__main__":
    main()
