"""Buckets: how many bytes of gradients one collective reduces. Their sizes and places, by hand."""

import itertools
import math
import re

from etchtest import (GPT, LLAMA, SOURCE, Case, ask, attribute, lower, main, messages, run, succeed, trace,
                      traces, value)

SIZES = dict(layers=5, hidden=16, heads=4, kv_heads=2, head_dim=4, ffn=24, vocab=40, batch=16, seq=8, micro=2,
             dp=2)
F32, BF16 = 4, 2


def units(v):
    """Elements of each unit's weights, last used first, and how nodes of its backward pass begin after
    "B1."."""
    layer = 2 * v["hidden"] + 2 * v["hidden"] * v["head_dim"] * (v["heads"] +
                                                                 v["kv_heads"]) + 3 * v["hidden"] * v["ffn"]
    table = v["vocab"] * v["hidden"]
    return ([(table + v["hidden"], "")] + [(layer, f"layer{i}.") for i in reversed(range(v["layers"]))] +
            [(table, "")])


def pieces(total, size):
    """No payload of a trace is below 64 bytes."""
    return [size] * (total // size) + [max(64, total % size)] * (total % size > 0)


class Buckets(Case):
    def plans(self, *options, mesh="[dp]", batch="dp", zero=None, more=""):
        lines = "; ".join(option for option in options if option)
        zero = f"; zero 1 @ {zero}" if zero else ""
        return self.write("buckets.etch", f"""etch 1
import "{LLAMA}"
parallel p {{ mesh {mesh}; shard B @ {batch}{zero}; {lines}{more} }}
""")

    def sent(self, path, op):
        """(id, bytes) of the collectives at the end of a step."""
        return [(node.id, attribute(node, "comm_size")) for node in messages(path)
                if node.name.startswith("S.") and node.name.endswith(op)]

    def test_sizes(self):
        """ceil(total/bucket) collectives, all of them full but the last; totals are those of formulas, which
        know nothing of buckets."""
        total = sum(elements for elements, _ in units(SIZES))
        for (text, size), when, zero in itertools.product(
                (("1000", 1000), ("25*2^20", 25 * 2**20), ("step", 2**62), ("100*dp", 200)), ("layer", "end"),
                (None, "dp")):
            with self.subTest(bucket=text, reduce=when, zero=zero):
                spec = self.plans(f"bucket = {text}", f"reduce = {when}", zero=zero)
                folder = lower(self.scratch / "out", spec, plan="p", sets=SIZES, more=["--force"])
                self.assertFine(folder)
                self.assertTotals(folder, spec, None, "p", SIZES)
                op = "reduce_scatter" if zero else "all_reduce"
                for path in traces(folder).values():
                    self.assertEqual(pieces(F32 * total, size), [sent for _, sent in self.sent(path, op)])
                    if zero:  # of what is gathered a rank has a part
                        self.assertEqual(pieces(BF16 * total // 2, size // 2),
                                         [sent for _, sent in self.sent(path, "all_gather")])
                    self.assertEqual(zero is not None, bool(self.sent(path, "all_gather")))

    def test_formulas_know_nothing_of_them(self):
        plain, cut = self.plans(), self.plans("bucket = 1000")
        self.assertEqual(ask(plain, "comm(step)", plan="p"), ask(cut, "comm(step)", plan="p"))
        for bucket, expected in (("layer", SIZES["layers"] + 2), ("step", 1)):
            folder = lower(self.scratch / bucket, self.plans(f"bucket = {bucket}"), plan="p", sets=SIZES)
            self.assertEqual(expected, len(self.sent(traces(folder)[0], "all_reduce")))

    def ancestors(self, nodes):
        known = {}
        for node in nodes:
            parents = set(node.data_deps) | set(node.ctrl_deps)
            known[node.id] = parents.union(*(known[parent] for parent in parents))
        return known

    def test_places(self):
        """A bucket is sent right behind the unit whose gradients fill it, and waits for all that it has of
        them."""
        size = 3000
        for zero, op in ((None, "all_reduce"), ("dp", "reduce_scatter")):
            folder = lower(self.scratch / op, self.plans(f"bucket = {size}", zero=zero), plan="p", sets=SIZES)
            nodes = messages(traces(folder)[0])
            above, last = self.ancestors(nodes), f"B{SIZES['micro'] - 1}."
            listed = units(SIZES)
            ends = list(itertools.accumulate(F32 * elements for elements, _ in listed))
            found = self.sent(traces(folder)[0], op)
            self.assertLess(len(listed), len(found))
            for k, (node, sent) in enumerate(found):
                begin, end = k * size, min(k * size + sent, ends[-1])
                first = next(i for i, reached in enumerate(ends) if reached > begin)
                full = next(i for i, reached in enumerate(ends) if reached >= end)
                names = {i: [n for n in nodes
                             if re.match(re.escape(last + listed[i][1]) + r"(\w+\.)*d[a-z]*$", n.name)]
                         for i in range(1, len(listed) - 1)}
                before = [n for n in nodes if n.id < node and n.name[0] == "B"][-1]
                if 0 < full < len(listed) - 1:
                    self.assertEqual(last + listed[full][1], before.name[:len(last + listed[full][1])])
                for i in range(first, full + 1):
                    for made in names.get(i, ()):
                        if re.search(r"\.dw[a-z]$", made.name):
                            self.assertIn(made.id, above[node], made.name)

    def test_whole_tensors(self):
        """PyTorch's DDP: gradients in the order in which they are made; a bucket ends with the tensor that
        reaches 1 MiB, the first time, and 25 MiB from then on. Of gains, which take no part of a product, the
        order is that of the layers."""
        sizes = dict(SIZES, layers=4, hidden=512, heads=4, kv_heads=4, head_dim=128, ffn=4096, vocab=600)
        square, wide, gain = 512 * 512, 512 * 4096, 512
        layer = [("wd", wide), ("wu", wide), ("wg", wide), ("g", gain), ("wo", square), ("wv", square),
                 ("wk", square), ("wq", square), ("g", gain)]
        tensors = [("head", 512 * 600), ("g", gain)] + 4 * layer + [("emb", 512 * 600)]
        expected, limit = [0], 2**20
        for _, elements in tensors:
            if expected[-1] >= limit:
                expected.append(0)
                limit = 25 * 2**20
            expected[-1] += F32 * elements
        self.assertEqual(6, len(expected))
        for when, zero in itertools.product(("layer", "end"), (None, "dp")):
            with self.subTest(reduce=when, zero=zero):
                spec = self.plans("bucket = ddp", f"reduce = {when}", zero=zero)
                folder = lower(self.scratch / f"{when}{zero}", spec, plan="p", sets=sizes)
                self.assertFine(folder)
                self.assertTotals(folder, spec, None, "p", sizes)
                self.assertIn("always", succeed("verify", folder).out)
                op = "reduce_scatter" if zero else "all_reduce"
                path = traces(folder)[0]
                self.assertEqual(expected, [sent for _, sent in self.sent(path, op)])
                nodes = messages(path)
                above, rest = self.ancestors(nodes), iter(
                    [node for node in nodes if re.match(r"B1\.(layer\d\.)?(\w+\.)*d(w.|head)$", node.name)])
                begun = iter(tensors)
                for node, sent in self.sent(path, op):  # it waits for all that it has
                    while sent > 0:
                        name, elements = next(begun)
                        sent -= F32 * elements
                        if name[0] in "wh":
                            made = next(rest)
                            self.assertTrue(made.name.endswith(f".d{name}"), made.name)
                            self.assertIn(made.id, above[node])

    def test_whole_tensors_of_resnet(self):
        """ResNet-50: 102,228,128 bytes in five buckets, as in traces that are collected of it; the first has
        the classifier, 2048*1000 + 1000 elements."""
        spec = self.write("resnet.etch", f"""etch 1
import "{SOURCE / "tests/cli/specs/resnet50.etch"}"
parallel p {{ mesh [dp]; shard B @ dp; bucket = ddp }}
""")
        folder = lower(self.scratch / "resnet", spec, plan="p", sets=dict(dp=2, batch=4, micro=1))
        sent = [size for _, size in self.sent(traces(folder)[0], "all_reduce")]
        self.assertEqual((5, 102228128, F32 * 2049000), (len(sent), sum(sent), sent[0]))

    def test_copies_of_shards(self):
        """HSDP-like: what is left partial of the parts is reduced behind the reduce-scatter of the same
        gradients."""
        sets = dict(SIZES, rep=2)
        total = sum(elements for elements, _ in units(SIZES))
        for bucket, size in (("3000", 3000), ("step", 2**62), ("700", 700)):
            spec = self.plans(f"bucket = {bucket}", mesh="[rep, dp]", batch="(rep,dp)", zero="dp")
            folder = lower(self.scratch / bucket, spec, plan="p", sets=sets)
            self.assertFine(folder)
            self.assertTotals(folder, spec, None, "p", sets)
            path = traces(folder)[0]
            scattered, reduced = self.sent(path, "reduce_scatter"), self.sent(path, "all_reduce")
            self.assertEqual(pieces(F32 * total, size), [sent for _, sent in scattered])
            self.assertEqual(pieces(F32 * total // 2, size), [sent for _, sent in reduced])
            above = self.ancestors(messages(path))
            for k, (node, sent) in enumerate(reduced):  # twice as many bytes before their scattering
                scattered_first = next(i for i, _ in enumerate(scattered)
                                       if (i + 1) * size >= min(2 * (k * size + sent), 4 * total))
                self.assertIn(scattered[scattered_first][0], above[node])

    def test_stages(self):
        """Each stage has buckets of its own units; the tied embedding is summed over the stages by itself."""
        spec = self.write("pp.etch", f"""etch 1
import "{GPT}"
parallel p {{
  mesh [pp, dp]
  shard B @ dp
  stage (embed, layer, head) @ pp, schedule = interleaved(virtual = 2)
  bucket = 2000
}}
parallel plain {{
  mesh [pp, dp]
  shard B @ dp
  stage (embed, layer, head) @ pp, schedule = interleaved(virtual = 2)
}}
""")
        sets = dict(layers=6, hidden=12, heads=4, vocab=20, positions=16, batch=16, seq=8, micro=4, dp=2,
                    pp=2)
        cut = lower(self.scratch / "cut", spec, plan="p", sets=sets)
        plain = lower(self.scratch / "plain", spec, plan="plain", sets=sets)
        self.assertFine(cut)
        self.assertIn("always", succeed("verify", cut).out)
        for rank, path in traces(cut).items():
            whole = sum(sent for _, sent in self.sent(traces(plain)[rank], "dp.all_reduce"))
            self.assertEqual(pieces(whole, 2000), [sent for _, sent in self.sent(path, "dp.all_reduce")])
            self.assertEqual([F32 * 20 * 12], [sent for _, sent in self.sent(path, "pp.all_reduce")])

    def test_in_each_microbatch(self):
        """Nobody has told the frameworks that more microbatches come (no_sync): what is reduced once is
        reduced in each."""
        sets, total = dict(SIZES, micro=4), sum(elements for elements, _ in units(SIZES))
        for zero, op in ((None, "all_reduce"), ("dp", "reduce_scatter")):
            once, each = self.write("once.etch",
                                    self.plans(zero=zero).read_text()), self.plans("reduce = microbatch",
                                                                                   zero=zero)
            for asked in (f"comm(sync, op = {op})", f"wire(sync, op = {op})"):
                self.assertIn("proved",
                              succeed("prove",
                                      self.write("both.etch",
                                                 once.read_text().replace("parallel p", "parallel q") +
                                                 each.read_text().split("\n", 2)[2]),
                                      f"{asked[:-1]}, plan = p) == micro*{asked[:-1]}, plan = q)").out)
            folder = lower(self.scratch / op, each, plan="p", sets=sets)
            self.assertFine(folder)
            self.assertTotals(folder, each, None, "p", sets)
            self.assertIn("always", succeed("verify", folder).out)
            nodes = messages(traces(folder)[0])
            found = [node for node in nodes if re.fullmatch(rf"S\d\..*\.{op}", node.name)]
            self.assertEqual([str(micro) for micro in range(4) for _ in range(SIZES["layers"] + 2)],
                             [node.name[1] for node in found])
            self.assertEqual(4 * F32 * total, sum(attribute(node, "comm_size") for node in found))
            above = self.ancestors(nodes)
            for node in found:  # behind what it reduces; the next microbatch adds to it afterwards
                layer = re.match(r"S(\d)\.(layer\d\.)", node.name)
                if not layer:
                    continue
                made = [n.id for n in nodes if re.match(rf"B{layer[1]}\.{layer[2]}.*\.dw[a-z]$", n.name)]
                after = [n.id for n in nodes
                         if re.match(rf"B{int(layer[1]) + 1}\.{layer[2]}.*\.dw[a-z]$", n.name)]
                self.assertEqual(7, len(made))
                self.assertTrue(set(made) <= above[node.id])
                self.assertTrue(all(node.id in above[later] for later in after))
            gathers = [node for node in nodes if node.name.endswith("all_gather")]
            self.assertEqual(SIZES["layers"] + 2 if zero else 0, len(gathers))  # once, behind the optimizer

    def test_mistakes(self):
        for bucket, text in (("0", "a bucket is layer, step, ddp, or at least 1 byte"),
                             ("dp - 2", "is less than 1"), ("dp/4", "not an integer"),
                             ("unbound", "unknown name")):
            done = run("lower", self.plans(f"bucket = {bucket}"), "--plan", "p", "--set",
                       ",".join(f"{k}={v}" for k, v in SIZES.items()), "-o", self.scratch / "wrong")
            self.assertEqual(1, done.status)
            self.assertIn(text, done.err)


if __name__ == "__main__":
    main()
