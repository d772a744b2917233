"""Microbatches: what they change and what they do not, and that only one of them is in flight."""

import collections
import json
import random

from etchtest import GPT, LLAMA, Case, Formula, ask, lower, main, messages, traces, value
from simulator import check_slots, simulate
from test_numbers import LLAMA_DIMS

LLAMA_SIZES = dict(layers=2, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=56, vocab=48)
GPT_SIZES = dict(layers=2, hidden=32, heads=8, vocab=48, positions=24)
MESH = dict(dp=2, tp=2, batch=16, seq=16)


class Costs(Case):
    def both(self, spec, query, plan, small):
        return [value(spec, query, plan=plan, sets={**small, **MESH, "micro": micro}) for micro in (1, 4)]

    def test_what_stays(self):
        for spec, small in ((LLAMA, LLAMA_SIZES), (GPT, GPT_SIZES)):
            for plan in ("megatron", "megatron_sp"):
                for query in ("matmul_flops(step)", "flops(forward)", "flops(optimizer)",
                              "rank_flops(forward)",
                              "comm(sync)", "comm(step, axis = dp)", "comm(forward, axis = tp)",
                              "comm(step, axis = (dp,tp))"):
                    with self.subTest(model=spec.stem, plan=plan, query=query):
                        one, four = self.both(spec, query, plan, small)
                        self.assertEqual(one, four)

    def test_what_stays_for_llama(self):
        for query in ("flops(step)", "rank_flops(step)", "comm(step)", "comm(step, axis = tp)"):
            for plan in ("megatron", "megatron_sp"):
                with self.subTest(plan=plan, query=query):
                    one, four = self.both(LLAMA, query, plan, LLAMA_SIZES)
                    self.assertEqual(one, four)

    def test_weights_are_read_again(self):
        """Each microbatch reads all weights: traffic grows by the same for every one more."""
        found = [value(LLAMA, "traffic(forward)", plan="megatron",
                       sets={**LLAMA_SIZES, **MESH, "micro": micro})
                 for micro in (1, 2, 4, 8)]
        one, two, four, eight = found
        self.assertTrue(one < two)
        self.assertEqual((2 * (two - one), 4 * (two - one)), (four - two, eight - four))

    def test_formula_has_no_microbatches(self):
        for query in ("flops(step)", "comm(step)"):
            self.assertNotIn("micro", Formula(ask(LLAMA, query, plan="megatron_sp"), LLAMA_DIMS).names())

    def test_nodes(self):
        counts = {}
        for micro in (1, 4):
            folder = lower(self.scratch / f"{micro}", LLAMA, plan="megatron_sp",
                           sets={**LLAMA_SIZES, **MESH, "micro": micro})
            self.assertFine(folder)
            counts[micro] = collections.Counter(node.name[0] for node in messages(traces(folder)[0]))
        for phase in "FB":
            self.assertEqual(4 * counts[1][phase], counts[4][phase])
        for phase in "SO":
            self.assertEqual(counts[1][phase], counts[4][phase])
        self.assertTrue(counts[1]["O"] > 0 and counts[1]["S"] > 0)


class Order(Case):
    def simulated(self, spec, small, plan, seed, sets):
        folder = lower(self.scratch / f"{spec.stem}.{plan}.{seed}", spec, plan=plan, sets={**small, **sets})
        groups = json.loads((folder / "comm_group.json").read_text(encoding="utf-8"))
        return simulate(traces(folder), groups, random.Random(seed))

    def test_one_microbatch_in_flight(self):
        for spec, small in ((LLAMA, LLAMA_SIZES), (GPT, GPT_SIZES)):
            for plan in ("megatron", "megatron_sp"):
                for seed in range(3):
                    with self.subTest(model=spec.stem, plan=plan, seed=seed):
                        ranks = self.simulated(spec, small, plan, seed, {**MESH, "micro": 4})
                        for rank in ranks.values():
                            check_slots(self, rank, 4)

    def test_many_ranks_run_to_the_end(self):
        sets = dict(dp=4, tp=4, micro=2, batch=16, seq=16)
        for plan in ("megatron", "megatron_sp"):
            for rank in self.simulated(LLAMA, LLAMA_SIZES, plan, 11, sets).values():
                check_slots(self, rank, sets["micro"])


if __name__ == "__main__":
    main()
