"""Other names of dims, modules, tensors, configs and plans, and another order of declarations, change no
number and no byte of a trace but the names of nodes."""

import renaming
from etchtest import (BASE, COMMON, GPT, LLAMA, PLANS, Case, Formula, ask, lower, main, nameless, succeed,
                      table, traces,
                      value)

SEEDS = range(6)
QUERIES = ("params(model)", "flops(step)", "matmul_flops(backward)", "rank_flops(step)", "traffic(step)",
           "comm(step)",
           "comm(backward, axis = tp)", "wire(sync)")
SPECS = {
    "llama": ([LLAMA, BASE, COMMON], "llama3_8b",
              dict(layers=2, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=56, vocab=40)),
    "gpt": ([GPT, COMMON], "gpt3_175b", dict(layers=2, hidden=32, heads=8, vocab=40, positions=24)),
}
MESH = dict(dp=2, tp=2, micro=2, batch=8, seq=16)


def words_of_the_language():
    """Names that mean something: ops, quantities, functions, phases, and what options may say."""
    listing = succeed("help", "ops").out + succeed("help", "quantities").out
    words = {word.strip("(),.:;`'").split("(")[0] for word in listing.split()}
    return words | renaming.KEYWORDS | set(
        "forward backward recompute sync optimizer step adamw master accumulate floor ceil max min abs mod "
        "of op axis "
        "run plan over dot to causal act weights grads optim bf16 f32 i32 none full needed model".split())


class Renamed(Case):
    def sources(self, paths):
        return {path.name: path.read_text(encoding="utf-8") for path in paths}

    def rewritten(self, paths, seed, **what):
        texts, mapping = renaming.rewrite(self.sources(paths), seed, words_of_the_language(), **what)
        folder = self.scratch / f"{paths[0].stem}.{seed}"
        folder.mkdir()
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder / paths[0].name, mapping

    def compare_numbers(self, old, new, mapping, config, sets):
        for plan in PLANS:
            bound = {name: size for name, size in sets.items() if plan != "ddp" or name != "tp"}
            for query in QUERIES:
                if plan == "ddp" and "tp" in query:
                    continue
                with self.subTest(plan=plan, query=query):
                    self.assertEqual(value(old, query, config, plan, bound),
                                     value(new, query, mapping[config], mapping[plan], bound))
            for query, by in (("traffic(step)", "module"), ("comm(step)", "axis"), ("flops(step)", "op")):
                with self.subTest(plan=plan, query=query, by=by):
                    rows, total = table(old, query, by, config, plan, bound)
                    others, other_total = table(new, query, by, mapping[config], mapping[plan], bound)
                    self.assertEqual(list(rows.values()), list(others.values()))
                    self.assertEqual(total, other_total)

    def compare_traces(self, old, new, mapping, config, sets):
        for plan in PLANS:
            bound = {name: size for name, size in sets.items() if plan != "ddp" or name != "tp"}
            first = lower(self.scratch / f"{new.parent.name}.{plan}.old", old, config, plan, bound)
            second = lower(self.scratch / f"{new.parent.name}.{plan}.new", new, mapping[config],
                           mapping[plan], bound)
            self.assertEqual((first / "comm_group.json").read_bytes(),
                             (second / "comm_group.json").read_bytes())
            ranks, others = traces(first), traces(second)
            self.assertEqual(set(ranks), set(others))
            for rank, path in ranks.items():
                with self.subTest(plan=plan, rank=rank):
                    self.assertTrue(nameless(path) == nameless(others[rank]),
                                    "traces differ in more than names")

    def test_shipped_specs(self):
        for name, (paths, config, small) in SPECS.items():
            sets = {**small, **MESH}
            for seed in SEEDS:
                with self.subTest(spec=name, seed=seed):
                    new, mapping = self.rewritten(paths, seed)
                    succeed("check", new)
                    self.compare_numbers(paths[0], new, mapping, config, sets)
                    self.compare_traces(paths[0], new, mapping, config, sets)

    def test_full_size(self):
        for name, (paths, config, _) in SPECS.items():
            with self.subTest(spec=name):
                new, mapping = self.rewritten(paths, 99)
                self.compare_numbers(paths[0], new, mapping, config,
                                     dict(dp=8, tp=4, micro=2, batch=16, seq=1024))

    def test_order_alone(self):
        """Formulas stay the same, whatever order their terms are printed in."""
        for name, (paths, _, _) in SPECS.items():
            new, mapping = self.rewritten(paths, 7, new_names=False)
            self.assertEqual({}, mapping)
            for plan in ("megatron", "megatron_sp"):
                for query in QUERIES:
                    with self.subTest(spec=name, plan=plan, query=query):
                        before = Formula(ask(paths[0], query, plan=plan))
                        self.assertFormula(before.at, ask(new, query, plan=plan), {})


if __name__ == "__main__":
    main()
