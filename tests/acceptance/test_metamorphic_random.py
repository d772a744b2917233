"""Rewritings that mean the same, of random models: no total changes, of the whole job or of a rank, and loops
without iterations may stand anywhere."""

import random
import re

import specs
from etchtest import Case, main, succeed
from rewritings import OPEN, REWRITINGS, split_loops, with_halves, with_param, write_in_place

SEEDS = range(24)
QUERIES = ("params(model)", "trainable(model)", "flops(forward)", "flops(backward)", "matmul_flops(step)",
           "elementwise(step)", "saved(model)")
PLACED = ("rank_params(model)", "rank_flops(step)", "traffic(step)", "comm(step)", "wire(step)",
          "rank_saved(model)", "memory(states)", "memory(peak)")
MESHES = {None: {}, "ddp": {"dp": 2}, "some": {"dp": 2, "tp": 2, "xp": 3}}
ADDED = tuple(query for query in PLACED if query != "memory(peak)")  # the rest is of all that is there
ENDS_KERNELS = ("traffic(step)", "memory(peak)")
# They speak of dims that random models lack.
OTHERS = ("there and back", "a module more")
# How much of work and room is divided follows from the first operand that is (R2).
ORDERED = ("operands swapped",)


class Idle(specs.Writer):
    """Writes the same, and between the statements loops that count to `count`. Where that is a param, what
    the loops read of values from outside is not kept for backward: which of two values another op reads
    again, of those that are kept anyway, is the same for all counts. `twice`: what a loop does it does again,
    with weights of its own."""

    def __init__(self, seed, count, twice=False):
        self.dice, self.count, self.added, self.twice = random.Random(f"idle {seed}"), count, 0, twice
        super().__init__(seed)

    def said(self, value, dim):
        """After a statement that made `value`."""
        known = [name for name, of in self.body.__dict__.setdefault("known", []) if of == dim] + [value]
        self.body.known.append((value, dim))
        if self.dice.random() < 0.5:
            return value, dim
        self.added += 1
        other, number = self.dice.choice(known), self.added
        kept = f"gelu({other})" if self.count == "0" else f"scale({other}, 2)"
        lines = self.dice.choice((
            [f"{value} = {value} + tanh({value})"],
            [f"{value} = {value} + {other}"],
            [f"t{number} = {kept} * {value}", f"{value} = {value} + t{number}"],
            [f"weight g{number}[{dim}]", f"{value} = rms_norm({value} + {other}, g{number}, over = {dim})"],
            [f"repeat 2 as twice{number} {{", f"{value} = {value} + {kept}", "}"],
            [f"weight a{number}[{dim},{dim}']", f"t{number}[B,S,{dim}'] = {value} * a{number}",
             f"{value} = {value} + t{number}[{dim}'->{dim}]"]))
        if self.twice:
            lines = lines + [re.sub(r"\b([agt]\d+)\b", r"\1_again", line) for line in lines]
        if self.dice.random() < 0.3:  # what nothing reads behind the loop
            self.say(f"u{number} = {value}")
            lines = [f"u{number} = u{number} + {value}", *lines,
                     f"{value} = {value} + gelu(u{number})"]
        self.body.lines += [f"repeat {self.count} as idle{number} {{", *lines, "}"]
        return value, dim

    def product(self, value, dim, to=None):
        return self.said(*super().product(value, dim, to))

    def pointwise(self, value, dim):
        return self.said(*super().pointwise(value, dim))

    def module(self, value, dim):
        return self.said(*super().module(value, dim))

    def residual(self, value, dim):
        return self.said(*super().residual(value, dim))

    def loop(self, value, dim, depth=0):
        return self.said(*super().loop(value, dim, depth))


class MetamorphicRandom(Case):
    known = {}  # answers of the specs as they are

    def ask(self, spec, query, plan, sets):
        values = ",".join(f"{name}={number}" for name, number in {**sets, **MESHES[plan]}.items())
        return succeed("query", spec, query, "-q", "--set", values, *(["--plan", plan] if plan else [])).out

    def compare(self, seed, how, made, text, plans, but=(), **more):
        """`but`: not these quantities; `more`: what only the rewritten one is to be asked with."""
        old, new = self.write(f"{seed}.etch", made.text), self.write(f"{seed}.new.etch", text)
        sets = {**made.sizes, "micro": 2}
        for plan in plans:
            for query in [query for query in (PLACED if plan else QUERIES) if query not in but]:
                with self.subTest(seed=seed, how=how, plan=plan, query=query):
                    if (seed, plan, query) not in self.known:
                        self.known[seed, plan, query] = self.ask(old, query, plan, sets)
                    self.assertEqual(self.known[seed, plan, query],
                                     self.ask(new, query, plan, {**sets, **more}), text)

    def test_rewritings(self):
        changed = set()
        for seed in SEEDS:
            made = specs.make(seed)
            for name, how in REWRITINGS.items():
                text = how(made.text)
                if name in OTHERS or text == made.text:
                    continue
                changed.add(name)
                self.compare(seed, name, made, text, [None, "ddp"] if name in ORDERED else MESHES)
        self.assertEqual(set(REWRITINGS) - set(OTHERS), changed)

    def test_modules_written_in_place(self):
        changed = 0
        for seed in SEEDS:
            made = specs.make(seed)
            text = write_in_place(made.text)
            changed += text != made.text
            self.compare(seed, "in place", made, text, [None, "ddp"])
        self.assertGreater(changed, len(SEEDS) // 3)

    def test_what_a_param_keeps_empty(self):
        for seed in SEEDS:
            made = specs.make(seed)
            for name, how in OPEN.items():
                text = how(made.text)
                if text != made.text:
                    self.compare(seed, name, made, text, MESHES, unset=0)

    def test_a_loop_as_two(self):
        """Also where the second one has no iteration."""
        for seed in SEEDS:
            counts, made = set(), specs.make(seed)
            text = with_halves(split_loops(made.text, counts), counts)
            halves = {f"{count}_begun": 1 for count in counts}
            halves.update({f"{count}_left": made.sizes[count] - 1 for count in counts})
            self.compare(seed, "a loop as two", made, text, MESHES, **halves)

    def test_loops_that_never_run(self):
        for seed in SEEDS:
            self.compare(seed, "never", specs.make(seed), Idle(seed, "0").text(), MESHES)

    def test_loops_that_do_not_run(self):
        """Where nothing but the batch is divided all ranks hold alike what such loops hand on. A kernel ends
        where one stands: more is read and written."""
        for seed in SEEDS:
            made, text = specs.make(seed), with_param(Idle(seed, "unset").text(), "unset")
            self.compare(seed, "unset", made, text, [None, "ddp"], ENDS_KERNELS, unset=0)
            sets, new = {**made.sizes, "micro": 2}, self.write(f"{seed}.new.etch", text)
            old = self.write(f"{seed}.etch", made.text)
            for query in ENDS_KERNELS:
                self.assertLessEqual(int(self.ask(old, query, "ddp", sets)),
                                     int(self.ask(new, query, "ddp", {**sets, "unset": 0})), text)

    def test_what_a_loop_that_does_not_run_would_do(self):
        """Under plans that divide more than the batch, too: how a loop holds what it hands on does not depend
        on what it does, and what it does is not done."""
        for seed in SEEDS[::2]:
            made, text = specs.make(seed), with_param(Idle(seed, "unset").text(), "unset")
            once, sets = self.write(f"{seed}.once.etch", text), {**made.sizes, "micro": 2, "unset": 0}
            twice = with_param(Idle(seed, "unset", twice=True).text(), "unset")
            self.assertNotEqual(text, twice)
            new = self.write(f"{seed}.twice.etch", twice)
            for plan in MESHES:
                for query in PLACED if plan else QUERIES:
                    with self.subTest(seed=seed, plan=plan, query=query):
                        self.assertEqual(self.ask(once, query, plan, sets), self.ask(new, query, plan, sets),
                                         twice)

    def test_each_further_iteration_adds_the_same(self):
        """Under all plans: each iteration more of all those loops is as much as the last one was, but for the
        first, with which what is added up behind them begins."""
        for seed in SEEDS[::2]:
            made, text = specs.make(seed), with_param(Idle(seed, "unset").text(), "unset")
            spec, sets = self.write(f"{seed}.count.etch", text), {**made.sizes, "micro": 2}
            for plan in MESHES:
                for query in ADDED if plan else QUERIES:
                    with self.subTest(seed=seed, plan=plan, query=query):
                        one, two, three = (int(self.ask(spec, query, plan, {**sets, "unset": count}))
                                           for count in (1, 2, 3))
                        self.assertEqual(three - two, two - one, text)


if __name__ == "__main__":
    main()
