"""What the stages of a pipeline hold and what they send each other, by hand: units, statements around them,
weights that several stages use, values that are handed on from stage to stage; and that the checker of traces
sees what is wrong."""

import json
import math
import re
import shutil

from decoder import BF16, F32
from etchtest import GPT, LLAMA, Case, attribute, lower, main, messages, succeed, table, trace, traces, value
from pipeline import SCHEDULES, SIZES, Chain, chunks_of, decoder, held, stage_of

GPT_SIZES = dict(layers=4, hidden=24, heads=4, vocab=52, positions=37)


def named(nodes, pattern):
    """The nodes whose name is, as a whole, of the pattern."""
    return [node for node in nodes if re.fullmatch(pattern, node.name)]


class Pipeline(Case):
    def stages(self, spec, plan, sets, mesh, name="out"):
        """Nodes of the first rank of each stage. `mesh`: outermost first."""
        self.folder = lower(self.scratch / name, spec, plan=plan, sets={**sets, **mesh})
        self.assertFine(self.folder)
        paths = traces(self.folder)
        self.assertEqual(math.prod(mesh.values()), len(paths))
        found = {}
        for rank in sorted(paths):
            found.setdefault(stage_of(rank, mesh), messages(paths[rank]))
        return [found[stage] for stage in range(mesh["pp"])]

    def groups(self):
        return json.loads((self.folder / "comm_group.json").read_text(encoding="utf-8"))


class Units(Pipeline):
    RUNS = [("one_f_one_b", 6, 4, None), ("one_f_one_b", 7, 4, None), ("gpipe", 5, 3, None),
            ("gpipe", 1, 3, None),
            ("one_f_one_b", 4, 3, [1, 4, 1]), ("one_f_one_b", 4, 3, [4, 1, 1]), ("gpipe", 3, 2, [1, 4]),
            ("interleaved(virtual = 2)", 6, 3, None), ("interleaved(virtual = 2)", 5, 2, [1, 1, 1, 4]),
            ("interleaved(virtual = 3)", 9, 3, None)]

    def expected(self, run, stage):
        """Names of units, as forward, backward and the optimizer have them."""
        schedule, layers, stages, counts = run
        units = held(layers + 2, stages, stage, chunks_of(schedule), counts)
        return {"embed" if unit == 0 else "head" if unit == layers + 1 else f"layer{unit - 1}"
                for unit in units}

    def test_units_of_stages(self):
        for index, run in enumerate(self.RUNS):
            schedule, layers, stages, counts = run
            spec = self.write(f"{index}.etch", decoder(schedule, counts))
            mesh = dict(pp=stages, dp=1, tp=1)
            with self.subTest(run=run):
                found = self.stages(spec, None, {**SIZES, "layers": layers, "micro": 4}, mesh, str(index))
                for stage, nodes in enumerate(found):
                    self.assertEqual(self.expected(run, stage), self.units(nodes, "F0", "x", "z"))
                    self.assertEqual(self.expected(run, stage), self.units(nodes, "B3", "demb", "dout"))
                    self.assertEqual(self.expected(run, stage),
                                     self.units(nodes, "O", r"emb\.adamw", r"out\.adamw"))

    @staticmethod
    def units(nodes, slot, embed, head):
        layers = {match[1] for node in nodes if (match := re.match(rf"{slot}\.(layer\d+)\.", node.name))}
        blocks = {"embed": embed, "head": head}
        return layers | {name for name, tensor in blocks.items() if named(nodes, rf"{slot}\.{tensor}")}

    SURROUNDED = """etch 1
param batch, seq, layers, hidden, vocab, micro = 1
dim B = batch, S = seq, H = hidden, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
model m(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight emb[V,H], pos[S,H], low[S,V], g1[H], g2[H], out[V,H]
  p = gelu(pos)                                   # needs nothing of the chain: where it is used first
  c = gelu(low)                                   # the same, at the other end
  x[B,S,H] = gather(emb, ids, over = V)  tag embed
  y = x + p                                       # with x
  n = rms_norm(y, g1, over = H)                   # with y
  repeat layers as layer {
    weight w[H,H']
    k[B,S,H'] = n * w
    n = n + relu(k[H'->H])
  }
  o = rms_norm(n, g2, over = H)                   # with the last layer
  t[B,S,V] = o * out  tag head
  z = t + c                                       # with t
  l[] = cross_entropy(z, labels, over = V)  tag loss
}
train { model = m, optimizer = adamw(master = true), accumulate = (B, micro) }
parallel pipe { mesh [pp, dp, tp]; shard B @ dp; stage (embed, layer, head) @ pp, counts = [1, 2, 2, 1] }
"""

    def test_what_is_not_listed(self):
        spec = self.write("surrounded.etch", self.SURROUNDED)
        mesh = dict(pp=4, dp=1, tp=1)
        found = self.stages(spec, None, {**SIZES, "layers": 4, "micro": 2}, mesh)
        where = {"p": {0}, "y": set(), "n": {0}, "o": {2}, "c": {3}, "t": {3}, "l": {3}}
        for name, stages in where.items():
            with self.subTest(name):
                nodes = {stage for stage, nodes in enumerate(found) if named(nodes, rf"F0\.{name}")}
                self.assertLessEqual(nodes, stages)  # what joins another node has no name of its own
        weights = {"emb": {0}, "pos": {0}, "g1": {0}, "g2": {2}, "low": {3}, "out": {3}}
        sizes = {"emb": 16 * 8, "pos": 8 * 8, "g1": 8, "g2": 8, "low": 8 * 16, "out": 8 * 16}
        for stage, nodes in enumerate(found):
            updated = sum(attribute(node, "num_ops") for node in nodes
                          if node.name.startswith("O.") and "layer" not in node.name)
            self.assertEqual(12 * sum(sizes[name] for name in weights if stage in weights[name]), updated,
                             stage)
        self.assertTrue(named(found[0], r"F0\.n"))
        self.assertTrue(named(found[2], r"F0\.o"))
        self.assertFalse(named(found[1], r"F0\.(n|o)"))


class Messages(Pipeline):
    def sizes(self, nodes, kind, phase):
        return [attribute(node, "comm_size") for node in nodes if node.type == kind and node.name[0] == phase]

    def test_residual(self):
        """One activation, or its shard, for each microbatch, boundary and direction."""
        for schedule in SCHEDULES:
            for pin in ("", "pin residual [B@dp, S@tp, H]"):
                stages, chunks, micro = 3, chunks_of(schedule), 6
                spec = self.write("decoder.etch", decoder(schedule, more=pin))
                mesh = dict(pp=stages, dp=2, tp=2)
                sets = {**SIZES, "batch": 24, "layers": 7, "micro": micro}
                with self.subTest(schedule=schedule, pin=pin):
                    found = self.stages(spec, None, sets, mesh, f"{schedule[:13]}.{chunks}.{len(pin)}")
                    size = BF16 * 24 // micro // 2 * SIZES["seq"] * SIZES["hidden"] // (2 if pin else 1)
                    for stage, nodes in enumerate(found):
                        onward = micro * (chunks - (stage == stages - 1))  # to the link behind
                        back = micro * (chunks - (stage == 0))
                        self.assertEqual([size] * onward, self.sizes(nodes, trace.SEND, "F"))
                        self.assertEqual([size] * back, self.sizes(nodes, trace.RECV, "F"))
                        self.assertEqual([size] * back, self.sizes(nodes, trace.SEND, "B"))
                        self.assertEqual([size] * onward, self.sizes(nodes, trace.RECV, "B"))

    def test_neighbours(self):
        """Ranks that differ in the stage only; the last stage sends on to the first one when there are
        chunks."""
        for mesh in (dict(pp=3, dp=2, tp=2), dict(dp=2, pp=3, tp=2), dict(dp=2, tp=2, pp=3)):
            spec = self.write("decoder.etch",
                              decoder("interleaved(virtual = 2)", mesh=f"[{', '.join(mesh)}]"))
            self.stages(spec, None, {**SIZES, "batch": 24, "layers": 5, "micro": 3}, mesh, "".join(mesh))
            step = math.prod(size for name,
                             size in mesh.items() if list(mesh).index(name) > list(mesh).index("pp"))
            for rank, path in traces(self.folder).items():
                for node in messages(path):
                    if node.type not in (trace.SEND, trace.RECV):
                        continue
                    me, other = (attribute(node, f"comm_{end}") for end in
                                 (("src", "dst") if node.type == trace.SEND else ("dst", "src")))
                    self.assertEqual(rank, me)
                    onward = (node.type == trace.SEND) == node.name.startswith("F")
                    stage = stage_of(rank, mesh)
                    following = (stage + (1 if onward else -1)) % 3
                    self.assertEqual(rank + (following - stage) * step, other, node.name)

    def test_no_partial_sums(self):
        """What is a partial sum is resolved by the stage that has it, before it is sent."""
        mesh = dict(pp=3, dp=1, tp=2)
        for pin, move in (("", "all_reduce"), ("pin residual [B@dp, S@tp, H]", "reduce_scatter")):
            spec = self.write("decoder.etch", decoder(counts=[1, 3, 1], more=pin))
            found = self.stages(spec, None, {**SIZES, "layers": 3, "micro": 2}, mesh, move)
            for stage, last in ((0, rf"F0\.x\.{move}"), (1, rf"F0\.layer2\..*\.{move}"),
                                (2, rf"B0\.dx\.{move}"),
                                (1, rf"B0\.layer0\..*dx\.{move}")):
                with self.subTest(pin=pin, stage=stage, last=last):
                    nodes = found[stage]
                    self.assertEqual(1, len(named(nodes, last)), [node.name for node in nodes])
                    sends = named(nodes, rf"{last[0]}0\.send\..*")
                    self.assertEqual(1, len(sends))
                    self.assertLess(named(nodes, last)[0].id, sends[0].id)

    SLICED = """etch 1
param batch, seq, hidden, vocab, micro = 1
dim B = batch, S = seq, H = hidden, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
module part(x[B,S,H]) -> y[B,S,H] {
  weight gain[H]
  y = rms_norm(x, gain, over = H)
}
model m(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight emb[V,H], out[V,H]
  x[B,S,H] = gather(emb, ids, over = V)  tag embed
  y = part(x)                            tag second
  z[B,S,V] = y * out                     tag head
  l[]      = cross_entropy(z, labels, over = V)  tag loss
}
train { model = m, optimizer = adamw(master = true), accumulate = (B, micro) }
parallel pipe { mesh [pp, dp, tp]; shard B @ dp; for part { shard S @ tp }; stage (embed, second, head) @ pp }
"""

    def test_shards_are_cut_before_they_are_sent(self):
        """What the next stage needs a shard of is cut by the stage that has it whole."""
        sets = {**SIZES, "micro": 4}
        whole = BF16 * SIZES["batch"] // 4 * SIZES["seq"] * SIZES["hidden"]
        found = self.stages(self.write("sliced.etch", self.SLICED), None, sets, dict(pp=3, dp=1, tp=4))
        self.assertEqual([whole // 4] * 4, self.sizes(found[0], trace.SEND, "F"))
        self.assertEqual([whole // 4] * 4, self.sizes(found[1], trace.SEND, "F"))

    def test_an_axis_of_one_sends_nothing(self):
        for schedule in SCHEDULES:
            spec = self.write("decoder.etch", decoder(schedule, counts=[1] * chunks_of(schedule)))
            found, = self.stages(spec, None, {**SIZES, "layers": 2, "micro": 2}, dict(pp=1, dp=1, tp=1),
                                 schedule)
            self.assertFalse([node for node in found if node.type in (trace.SEND, trace.RECV)])
            order = [node.name[:2] for node in found if node.name[0] in "FB"]
            self.assertEqual(["F0", "B0", "F1", "B1"], [a for a, b in zip(order, [None, *order]) if a != b])


class Relays(Pipeline):
    """A memory that is made at the beginning and read in all layers of one loop, as a decoder reads its
    encoder."""

    SPEC = """etch 1
param batch, seq, readers, others, hidden, vocab, micro = 1
dim B = batch, S = seq, H = hidden, F = 2*hidden, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
module mlp(x[B,S,H]) -> y[B,S,H] {
  weight up[H,F], down[F,H]
  h[B,S,F] = x * up
  y        = gelu(h) * down
}
model m(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight emb[V,H], out[V,H]
  x[B,S,H] = gather(emb, ids, over = V)  tag embed, residual
  memory   = silu(x)
  repeat readers as reader { x = x + mlp(x) * memory  tag residual }
  repeat others as other { x = x + mlp(x)  tag residual }
  z[B,S,V] = x * out  tag head
  l[]      = cross_entropy(z, labels, over = V)  tag loss
}
train { model = m, optimizer = adamw(master = true), accumulate = (B, micro) }
parallel pipe {
  mesh [pp, dp, tp]; shard B @ dp, F @ tp, V @ tp
  stage (embed, reader, other, head) @ pp SCHEDULE; PIN
}
"""
    PIN = "pin residual [B@dp, S@tp, H]"

    def lowered(self, stages, readers, others, schedule, tp, pin):
        text = self.SPEC.replace("SCHEDULE", f", schedule = {schedule}").replace("PIN", pin)
        spec = self.write("relay.etch", text)
        sets = {**SIZES, "readers": readers, "others": others, "micro": 4}
        name = f"{stages}.{readers}.{others}.{schedule[:13]}.{tp}.{len(pin)}"
        return spec, sets, self.stages(spec, None, sets, dict(pp=stages, dp=1, tp=tp), name)

    def test_sizes_of_messages(self):
        for stages, readers, others, schedule in ((4, 5, 1, "one_f_one_b"), (3, 2, 5, "gpipe"),
                                                  (2, 6, 4, SCHEDULES[2]),
                                                  (4, 2, 2, "gpipe")):
            for tp, pin in ((1, ""), (2, ""), (2, self.PIN)):
                with self.subTest(stages=stages, readers=readers, others=others, tp=tp, pin=pin):
                    _, _, found = self.lowered(stages, readers, others, schedule, tp, pin)
                    chain = Chain(readers + others, stages, schedule)
                    value = BF16 * SIZES["batch"] // 4 * SIZES["seq"] * SIZES["hidden"] // (tp if pin else 1)
                    for link, window in enumerate(chain.windows[:-1]):
                        # Behind the cut there is a layer that reads the memory.
                        size = value * (2 if window.stop <= readers else 1)
                        self.check_link(found, chain, link, size)

    def check_link(self, found, chain, link, size):
        """Sizes of what goes over the cut behind a link, both ways, as sender and receiver say."""
        def name(verb, other):
            chunk = rf"\.chunk{other // chain.stages}" if chain.chunks > 1 else ""
            return rf"[FB]0\.{verb}\.stage{other % chain.stages}{chunk}"

        def sizes(at, verb, other, phase):
            return [attribute(node, "comm_size")
                    for node in named(found[at % chain.stages], name(verb, other))
                    if node.name[0] == phase and self.chunk_before(chain, node, at, other)]

        for at, verb, other, phase in ((link, "send", link + 1, "F"), (link + 1, "recv", link, "F"),
                                       (link + 1, "send", link, "B"), (link, "recv", link + 1, "B")):
            self.assertEqual([size], sizes(at, verb, other, phase), (at, verb, other))

    @staticmethod
    def chunk_before(chain, node, at, other):
        """Of two stages, tell what goes to a chunk from the link before it from what comes from the link
        behind."""
        return chain.stages > 2 or chain.chunks == 1 or (
            (attribute(node, "comm_tag") // 2) % chain.chunks == min(at, other) // chain.stages)

    def test_cotangents_are_added_up(self):
        """Whatever the stages: the work of all of them is that of one, so no part of the sum is lost or done
        twice."""
        for stages, readers, others, schedule in ((4, 5, 1, "one_f_one_b"), (3, 2, 5, "gpipe"),
                                                  (2, 6, 4, SCHEDULES[2])):
            spec, sets, found = self.lowered(stages, readers, others, schedule, 1, "")
            whole = value(spec, "rank_flops(step)", sets={**sets, "pp": 1, "dp": 1, "tp": 1})
            rows = [value(spec, f"rank_flops(step, stage = {stage})",
                          sets={**sets, "pp": stages, "dp": 1, "tp": 1})
                    for stage in range(stages)]
            self.assertEqual(whole, sum(rows))
            manifest = json.loads((self.folder / "manifest.json").read_text(encoding="utf-8"))
            self.assertEqual(rows, [int(stage["flop"]) for stage in manifest["stages"]])

    def test_the_memory_waits_for_all_of_its_cotangents(self):
        """Its gradient, in the first stage, waits for the message that brings what later stages have added
        up."""
        _, _, found = self.lowered(4, 5, 1, "one_f_one_b", 1, "")
        nodes = {node.id: node for node in found[0]}
        last = named(found[0], r"B0\.demb")[0]
        above, open_ = set(), [last.id]
        while open_:
            for parent in nodes[open_.pop()].data_deps:
                if parent not in above:
                    above.add(parent)
                    open_.append(parent)
        self.assertIn("B0.recv.stage1", {nodes[at].name for at in above})
        computes = [at for at in above if nodes[at].type == trace.COMP and nodes[at].name.startswith("B0.")]
        self.assertTrue([at for at in computes if "B0.recv.stage1" in
                         {nodes[parent].name for parent in nodes[at].data_deps}])


class SharedValues(Pipeline):
    """Of a value that several units read one cotangent goes back, the sum so far, beside that of the
    residual."""

    LOOPS = """etch 1
param batch, width, vocab, layers, micro = 1
dim B = batch, H = width, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
model m(ids[B]: i32, labels[B]: i32) -> z[B,V] {
  weight emb[V,H], out[V,H]
  x[B,H] = gather(emb, ids, over = V)  tag embed
  shared = silu(x)
  repeat layers as first { weight v[H]; a = silu(x * v) * shared; x = x + a }
  repeat layers as second { weight w[H]; b = relu(x * w) * shared; x = x + b }
  y = x + shared  tag end
  z[B,V] = y * out  tag head
  l[] = cross_entropy(z, labels, over = V)  tag loss
}
train { model = m, optimizer = sgd, accumulate = (B, micro) }
parallel pipe { mesh [pp]; stage (embed, first, second, end, head) @ pp }
"""
    UNITS = """etch 1
param batch, width, vocab, micro = 1
dim B = batch, H = width, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
module unit(x[B,H], y[B,H]) -> z[B,H] {
  weight w[H]
  z = silu(x * w) + y
}
module one(x[B,H], y[B,H]) -> z[B,H] { z = unit(x, y) }
module two(x[B,H], y[B,H]) -> z[B,H] { z = unit(x, y) }
module three(x[B,H], y[B,H]) -> z[B,H] { z = unit(x, y) }
model m(ids[B]: i32, labels[B]: i32) -> z[B,V] {
  weight emb[V,H], out[V,H]
  x[B,H] = gather(emb, ids, over = V)  tag embed
  y = silu(x)  tag begin
  z[B,V] = three(x, two(x, one(x, y))) * out  tag head
  l[] = cross_entropy(z, labels, over = V)  tag loss
}
train { model = m, optimizer = sgd, accumulate = (B, micro) }
parallel pipe { mesh [pp]; stage (embed, begin, one, two, three, head) @ pp }
"""
    ROW = BF16 * 4 * 48  # bytes of a [B,H] of one of two microbatches

    def sent_back(self, text, stages, sets):
        """Bytes of what each stage but the first sends to the one before it."""
        spec = self.write(f"{stages}.etch", text)
        sets = {"batch": 8, "width": 48, "vocab": 16, "micro": 2, **sets}
        found = self.stages(spec, None, sets, {"pp": stages}, f"{stages}.{len(text)}")
        rows = [[attribute(node, "comm_size") for node in named(nodes, r"B\d\.send\..*")] for nodes in found]
        for sizes in rows[1:]:
            self.assertEqual(2, len(sizes))
            self.assertEqual(sizes[0], sizes[1])
        parts = [value(spec, f"rank_flops(step, stage = {stage})", sets={**sets, "pp": stages})
                 for stage in range(stages)]
        self.assertEqual(value(spec, "rank_flops(step)", sets={**sets, "pp": 1}), sum(parts))
        return [sizes[0] // self.ROW for sizes in rows[1:]]

    def test_loops(self):
        """Layers send back the residual's and the shared value's; of a sum both terms have one."""
        self.assertEqual([2, 2, 2, 2, 1, 1], self.sent_back(self.LOOPS, 7, {"layers": 2}))
        self.assertEqual([2, 1], self.sent_back(self.LOOPS, 3, {"layers": 2}))

    def test_units(self):
        """Behind `begin` there is a cotangent of y and one of x, before it that of x alone."""
        self.assertEqual([1, 2, 2, 2, 1], self.sent_back(self.UNITS, 6, {}))


class SharedWeights(Pipeline):
    def test_tied_embedding(self):
        """First and last stage add up its gradient, in groups of two, after each has reduced its own."""
        line = "  stage (embed, layer, head) @ pp\n"
        late = GPT.read_text(encoding="utf-8").replace(line, line + "  reduce = end\n")
        late = self.write("late.etch", late)
        for spec, stages, dp, tp in ((GPT, 2, 1, 1), (GPT, 3, 2, 1), (GPT, 4, 3, 2), (GPT, 2, 2, 2),
                                     (GPT, 5, 1, 2),
                                     (late, 3, 2, 2)):
            sets = {**GPT_SIZES, "batch": 12, "seq": 12, "micro": 2}
            mesh = dict(pp=stages, dp=dp, tp=tp)
            with self.subTest(spec=spec.stem, **mesh):
                found = self.stages(spec, "megatron_pp", sets, mesh, f"{spec.stem}.{stages}.{dp}.{tp}")
                size = F32 * math.ceil(52 * 24 // tp / dp)
                users = {0, stages - 1}
                for stage, nodes in enumerate(found):
                    ties = named(nodes, r"S\..*\.pp\.all_reduce")
                    self.assertEqual([size] * (stage in users),
                                     [attribute(node, "comm_size") for node in ties])
                    if stage in users:
                        self.check_order(nodes, ties[0], dp)
                self.check_groups(found, mesh)

    def check_order(self, nodes, tie, dp):
        names = {node.id: node.name for node in nodes}
        weight = re.fullmatch(r"S\.(.*)\.grads\.pp\.all_reduce", tie.name)[1]
        reduced = named(nodes, rf"S\.{re.escape(weight)}\.grads\.dp\.reduce_scatter")
        self.assertEqual(dp > 1, len(reduced) == 1)
        if reduced:
            self.assertIn(reduced[0].id, tie.data_deps)
        update, = named(nodes, rf"O\.{re.escape(weight)}\.adamw")
        self.assertIn(tie.name, {names[parent] for parent in update.data_deps})

    def check_groups(self, found, mesh):
        alike = mesh["dp"] * mesh["tp"]
        expected = [[rank, rank + (mesh["pp"] - 1) * alike] for rank in range(alike)]
        of_ties = {attribute(node, "pg_name") for path in traces(self.folder).values()
                   for node in messages(path)
                   if node.name.endswith(".pp.all_reduce")}
        groups = self.groups()
        self.assertEqual(expected, sorted(groups[group] for group in of_ties))

    EVERYWHERE = """etch 1
param batch, seq, layers, hidden, vocab, micro = 1
dim B = batch, S = seq, H = hidden, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
model m(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight emb[V,H], gain[H]
  x[B,S,H] = gather(emb, ids, over = V)  tag embed
  repeat layers as layer {
    weight w[H,H']
    k[B,S,H'] = rms_norm(x, gain, over = H) * w
    x = x + relu(k[H'->H])
  }
  z[B,S,V] = x * emb  tag head
  l[] = cross_entropy(z, labels, over = V)  tag loss
}
train { model = m, optimizer = adamw(master = true), accumulate = (B, micro), clip = 1.0 }
parallel pipe { mesh [pp, dp, tp]; shard B @ dp; stage (embed, layer, head) @ pp, counts = COUNTS }
"""

    def test_a_weight_of_all_layers(self):
        """The stages that have a layer share the gain, those that have an end the embedding."""
        for counts in ([1, 2, 2, 1], [2, 2, 1, 1], [3, 1, 1, 1], [1, 3, 2], [3, 3]):
            text = self.EVERYWHERE.replace("COUNTS", str(counts))
            stages, layers = len(counts), sum(counts) - 2
            mesh = dict(pp=stages, dp=2, tp=1)
            with self.subTest(counts=counts):
                spec = self.write("everywhere.etch", text)
                sets = {**SIZES, "layers": layers, "micro": 2}
                found = self.stages(spec, None, sets, mesh, "-".join(map(str, counts)))
                layered = [stage for stage in range(stages)
                           if set(held(layers + 2, stages, stage, counts=counts)) & set(range(1, layers + 1))]
                self.check_ties(found, mesh, {F32 * 8: layered, F32 * 8 * 16: [0, stages - 1]})
                self.check_norm(found, layers)

    def test_a_weight_of_several_chunks(self):
        """A stage whose chunks share the gain reduces its gradient once, when the last of them has gone
        back."""
        for virtual, counts in ((2, [2, 2, 1, 1]), (2, [1, 2, 2, 3]), (3, [1, 1, 2, 1, 1, 1]),
                                (3, [2, 1, 1, 1, 1, 2])):
            pipe = f"schedule = interleaved(virtual = {virtual}), counts = {counts}"
            spec = self.write("everywhere.etch", self.EVERYWHERE.replace("counts = COUNTS", pipe))
            mesh = dict(pp=2, dp=2, tp=1)
            with self.subTest(counts=counts):
                sets = {**SIZES, "layers": sum(counts) - 2, "micro": 2}
                found = self.stages(spec, None, sets, mesh, "-".join(map(str, counts)))
                self.check_ties(found, mesh, {F32 * 8: [0, 1], F32 * 8 * 16: [0, 1]})
                for nodes in found:
                    self.check_last_adder(nodes)

    def check_last_adder(self, nodes):
        """The sum of the gain's gradients waits for the lowest layer of the stage, in the last microbatch."""
        names = {node.id: node.name for node in nodes}
        lowest = min(int(match[1]) for match in map(re.compile(r"B1\.layer(\d+)\.").match, names.values())
                     if match)
        reduce, = named(nodes, r"S\.gain\.grads\.dp\.all_reduce")
        parents = [names[parent] for parent in reduce.data_deps]
        self.assertTrue(any(name.startswith(f"B1.layer{lowest}.") for name in parents), parents)

    def check_ties(self, found, mesh, shared):
        """`shared`: payload -> stages. A weight of one stage needs no sum."""
        groups = self.groups()
        for stage, nodes in enumerate(found):
            ties = {attribute(node, "comm_size"): groups[attribute(node, "pg_name")]
                    for node in named(nodes, r"S\..*\.pp\.all_reduce")}
            expected = {max(size, 64): [mesh["dp"] * other for other in stages] for size,
                        stages in shared.items()
                        if stage in stages and len(stages) > 1}
            self.assertEqual(expected, ties, stage)

    def check_norm(self, found, layers):
        """Squares of all gradients, each counted by one stage; their sum goes over all ranks. A stage that
        counts none has a node all the same, of 1 FLOP as traces want it."""
        norms = [attribute(node, "num_ops") for nodes in found for node in named(nodes, r"O\.grad_norm")]
        self.assertEqual(len(found), len(norms))
        self.assertEqual(2 * (16 * 8 + 8 + layers * 64), sum(norm for norm in norms if norm > 1))
        for nodes in found:
            reduce, = named(nodes, r"S\.grad_norm\.all_reduce")
            self.assertEqual(list(range(2 * len(found))), self.groups()[attribute(reduce, "pg_name")])

    def test_parameters(self):
        """A stage has what it uses: with both ends on a stage of their own the embedding is there twice."""
        sets = {**GPT_SIZES, "batch": 12, "seq": 12, "micro": 2, "dp": 1, "tp": 1, "pp": 3}
        rows, _ = table(GPT, "rank_flops(optimizer)", "stage", plan="megatron_pp", sets=sets)
        whole = value(GPT, "flops(optimizer)", plan="megatron_pp", sets=sets)
        self.assertEqual(whole + 12 * 52 * 24, sum(rows[str(stage)] for stage in range(3)))


class Checker(Pipeline):
    """tests/oracle/trace.py rejects folders whose messages are wrong, each for its reason."""

    def rewrite(self, folder, rank, change):
        path = traces(folder)[rank]
        metadata, *_ = trace.frames(path.read_bytes())
        nodes = messages(path)
        change(nodes)
        content = b""
        for raw in [metadata] + [node.SerializeToString(deterministic=True) for node in nodes]:
            length = len(raw)
            while length >= 128:
                content += bytes([length % 128 + 128])
                length //= 128
            content += bytes([length]) + raw
        path.write_bytes(content)

    @staticmethod
    def message(nodes, kind):
        return next(node for node in nodes if node.type == kind)

    @staticmethod
    def put(node, name, number):
        attr = next(attr for attr in node.attr if attr.name == name)
        setattr(attr, attr.WhichOneof("value"), number)

    def test_breaches(self):
        self.stages(self.write("decoder.etch", decoder()), None, {**SIZES, "layers": 2, "micro": 4},
                    dict(pp=2, dp=1, tp=1))

        def wider(nodes):
            attr = next(attr for attr in self.message(nodes, trace.SEND).attr if attr.name == "comm_tag")
            attr.int64_val = attr.int32_val

        def sends(nodes):
            return [node for node in nodes if node.type == trace.SEND]

        def circle(nodes):
            """The first send waits for the answer to it."""
            first = sends(nodes)[0]
            first.data_deps[:] = []
            answer = self.message(nodes, trace.RECV)
            back, forth = answer.id, first.id
            answer.id, first.id = forth, back
            answer.data_deps[:] = []
            first.data_deps[:] = [forth]
            nodes.sort(key=lambda node: node.id)

        breaches = {
            "has one end only": lambda nodes: self.put(self.message(nodes, trace.SEND), "comm_tag", 77),
            "for a second time": lambda nodes: self.put(sends(nodes)[1], "comm_tag",
                                                        attribute(sends(nodes)[0], "comm_tag")),
            "has two sizes": lambda nodes: self.put(self.message(nodes, trace.SEND), "comm_size", 65),
            "of another rank": lambda nodes: self.put(self.message(nodes, trace.SEND), "comm_src", 1),
            "a message from rank 0 to rank 0": lambda nodes: self.put(self.message(nodes, trace.SEND),
                                                                      "comm_dst", 0),
            "a message from rank 0 to rank 9": lambda nodes: self.put(self.message(nodes, trace.SEND),
                                                                      "comm_dst", 9),
            "is a int64_val": wider,
            "not one that messages may have": lambda nodes: self.put(sends(nodes)[0], "comm_tag",
                                                                     500_000_000),
            "does not wait for": lambda nodes: sends(nodes)[1].ClearField("data_deps"),
            "waits for ever": circle,
        }
        for complaint, change in breaches.items():
            with self.subTest(complaint):
                folder = self.scratch / "broken"
                shutil.copytree(self.folder, folder)
                self.rewrite(folder, 0, change)
                self.assertIn(complaint, "\n".join(trace.check(folder)))
                shutil.rmtree(folder)


class Verified(Pipeline):
    def test_every_rank_finishes(self):
        """Of the shipped plans, and of schedules with what they may meet."""
        cases = [(GPT, "megatron_pp", {**GPT_SIZES, "batch": 12, "seq": 12, "micro": 3},
                  dict(pp=3, dp=2, tp=2)),
                 (LLAMA, "megatron_interleaved",
                  dict(layers=6, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=24,
                       vocab=32, batch=16, seq=16, micro=4), dict(pp=2, dp=2, tp=2))]
        for spec, plan, sets, mesh in cases:
            self.stages(spec, plan, sets, mesh, plan)
            self.assertIn("verdict   always", succeed("verify", self.folder).out)


if __name__ == "__main__":
    main()
