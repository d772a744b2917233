"""Random specs and plans: counts by hand, queries that agree with each other, and with traces that keep all
rules."""

import json
import random

import renaming
import specs
from etchtest import Case, Formula, Point, ask, lower, main, nameless, succeed, traces, value
from simulator import check_slots, simulate
from test_renaming import words_of_the_language

SEEDS = range(40)
MESHES = (dict(dp=2, tp=2, xp=3, micro=2), dict(dp=1, tp=3, xp=2, micro=4), dict(dp=4, tp=4, xp=1, micro=1))


class Random(Case):
    def setUp(self):
        super().setUp()
        self.made = [(seed, specs.make(seed)) for seed in SEEDS]

    def each(self, check, every=1):
        """Runs `check` with the number, the file and the content of every so many specs."""
        for seed, made in self.made[::every]:
            with self.subTest(seed=seed):
                try:
                    check(seed, self.write(f"random{seed}.etch", made.text), made)
                except AssertionError as error:
                    raise AssertionError(f"{error}\nin this spec:\n{made.text}") from None

    def test_counts(self):
        def check(_, spec, made):
            def asked(query, **more):
                return value(spec, query, plan="ddp", sets={**made.sizes, "micro": 1, **more})

            self.assertEqual(made.params, asked("params(model)"))
            self.assertEqual(made.forward, asked("flops(forward)"))
            self.assertEqual(made.products, asked("matmul_flops(forward)"))
            # Everything depends on the embedding: every product has two gradients of its size.
            self.assertEqual(2 * made.products, asked("matmul_flops(backward)"))
            self.assertEqual(12 * made.params, asked("flops(optimizer)"))
            self.assertEqual(4 * made.params, asked("comm(step)", dp=2))
            self.assertEqual(0, asked("comm(step)", dp=1))

        self.each(check)

    def test_one_rank_does_everything(self):
        def check(_, spec, made):
            sets = {**made.sizes, "micro": 2, "dp": 1, "tp": 1, "xp": 1}
            for phase in ("forward", "optimizer"):
                self.assertEqual(value(spec, f"flops({phase})", plan="some", sets=sets),
                                 value(spec, f"rank_flops({phase})", plan="some", sets=sets))
            self.assertEqual(0, value(spec, "comm(step)", plan="some", sets=sets))

        self.each(check, every=2)

    def test_traces(self):
        def check(seed, spec, made):
            mesh = MESHES[seed % len(MESHES)]
            sets = {**made.sizes, **mesh}
            folder = lower(self.scratch / f"{seed}", spec, plan="some", sets=sets)
            self.assertFine(folder)
            self.assertTotals(folder, spec, None, "some", sets)
            ranks = mesh["dp"] * mesh["tp"] * mesh["xp"]
            self.assertGreaterEqual(ranks * value(spec, "rank_flops(forward)", plan="some", sets=sets),
                                    value(spec, "flops(forward)", plan="some", sets=sets))

        self.each(check)

    def test_formulas_have_the_values(self):
        def check(_, spec, made):
            sets = {**made.sizes, **MESHES[0]}
            for query in ("rank_flops(step)", "traffic(step)", "comm(step)", "wire(step)"):
                found = Formula(ask(spec, query, plan="some"), made.dims)
                self.assertEqual(value(spec, query, plan="some", sets=sets), found.at(Point(0, **sets)),
                                 query)

        self.each(check, every=3)

    def test_one_microbatch_in_flight(self):
        def check(seed, spec, made):
            sets = {**made.sizes, **MESHES[1]}
            folder = lower(self.scratch / f"{seed}", spec, plan="some", sets=sets)
            groups = json.loads((folder / "comm_group.json").read_text(encoding="utf-8"))
            for rank in simulate(traces(folder), groups, random.Random(seed)).values():
                check_slots(self, rank, sets["micro"])

        self.each(check, every=4)

    def test_other_names_and_order(self):
        taken = words_of_the_language()

        def check(seed, spec, made):
            texts, mapping = renaming.rewrite({"a": made.text}, seed, taken)
            other = self.write(f"renamed{seed}.etch", texts["a"])
            succeed("check", other)
            sets = {**made.sizes, **MESHES[seed % 2]}
            first = lower(self.scratch / f"{seed}.old", spec, plan="some", sets=sets)
            second = lower(self.scratch / f"{seed}.new", other, plan=mapping["some"], sets=sets)
            others = traces(second)
            for rank, path in traces(first).items():
                self.assertTrue(nameless(path) == nameless(others[rank]), f"rank {rank}\n{texts['a']}")

        self.each(check, every=4)


if __name__ == "__main__":
    main()
