"""The order in which the stages of a pipeline work is that of the schedule, and dependencies hold it,
whatever the timing: by the rules of slots, receives and communication, and under random durations."""

import bisect
import itertools
import json
import random
import re

from etchtest import LLAMA, Case, lower, main, trace, traces
from pipeline import (COMPUTES, SCHEDULES, SIZES, TALKS, Chain, chunks_of, decoder, in_flight, of_type,
                      stage_of)
from simulator import load, run

SEEDS = 1000
MOST_READY = 16  # nodes of a rank that wait for nothing but a slot, or for a message


def runs():
    """(schedule, stages, microbatches, layers, counts, tp, train, more): small ones of every kind."""
    for schedule, stages, times in itertools.product(SCHEDULES, (2, 3, 4), (1, 2, 3)):
        chunks = chunks_of(schedule)
        micro = times * stages if chunks > 1 else (1, stages + 1, 8)[times - 1]
        yield schedule, stages, micro, stages * chunks + times - 2, None, 1, "", ""
    for schedule in SCHEDULES:
        links = 3 * chunks_of(schedule)
        yield schedule, 3, 6, links, None, 2, "", "pin residual [B@dp, S@tp, H]" if links == 3 else ""
        yield schedule, 3, 3, 2 * links, [1] * (links - 1) + [links +
                                                              3], 1, ", recompute = layer", "zero 1 @ dp"
    yield "one_f_one_b", 6, 3, 4, None, 1, "", ""  # more stages than microbatches
    yield "one_f_one_b", 4, 8, 3, [1, 2, 1, 1], 1, ", clip = 1.0", ""
    yield "gpipe", 2, 4, 4, [1, 5], 1, ", clip = 1.0", "zero 1 @ dp"
    yield "one_f_one_b", 2, 2, 40, None, 1, ", recompute = layer", "zero 1 @ dp"  # many layers on a stage
    yield "one_f_one_b", 2, 2, 40, None, 1, "", "reduce = end"


class Pipeline(Case):
    def lowered(self, name, schedule, stages, micro, layers, counts, tp, train, more):
        mesh = dict(pp=stages, dp=2 if "zero" in more else 1, tp=tp)
        spec = self.write(f"{name}.etch", decoder(schedule, counts, more=more, train=train))
        sets = {**SIZES, **mesh, "batch": 2 * micro, "micro": micro, "layers": layers}
        folder = lower(self.scratch / f"{name}.out", spec, sets=sets)
        groups = json.loads((folder / "comm_group.json").read_text(encoding="utf-8"))
        chain = Chain(layers, stages, schedule, counts)
        return folder, mesh, groups, load(traces(folder)), chain


class Rules(Pipeline):
    """Direct dependencies, as docs/cli.md describes traces."""

    def check_slots(self, program, places, slots):
        """Slots come one after the other, each in one piece, in the order of the schedule; its first node,
        but for receives, waits for the last computation of the slot before."""
        before = None
        for slot in slots:
            computes = of_type(program, places, slot, *COMPUTES)
            self.assertTrue(computes, slot)
            first = of_type(program, places, slot, trace.COMP, trace.COLL)[0]
            if before is not None:
                self.assertLess(before, first, slot)
                self.assertIn(before, program.nodes[first].data_deps, slot)
            before = computes[-1]

    def check_receives(self, program, places, slots):
        """A receive is posted with what the slot two before sends, when that has computed, and waits for
        nothing else."""
        for before, slot in zip([None, None, *slots], slots):
            posted = [of_type(program, places, before, *COMPUTES)[-1]] if before else []
            for at in of_type(program, places, slot, trace.RECV):
                self.assertEqual(posted, list(program.nodes[at].data_deps), program.nodes[at].name)

    def check_talks(self, program):
        talks = [at for at in program.nodes if program.type[at] in TALKS]
        for before, at in zip(talks, talks[1:]):
            self.assertIn(before, program.nodes[at].data_deps, program.nodes[at].name)

    def check_messages(self, program, places, slots, chain, stage):
        """One in each direction for each microbatch and boundary of the chain, at the ends of slots."""
        last = chain.stages * chain.chunks - 1
        for slot in slots:
            link = slot[1] * chain.stages + stage
            comes, goes = (link < last, link > 0) if slot[0] else (link > 0, link < last)
            self.assertEqual(comes, len(of_type(program, places, slot, trace.RECV)), slot)
            sends = of_type(program, places, slot, trace.SEND)
            self.assertEqual(goes, len(sends), slot)
            if goes:
                self.assertGreater(sends[0], of_type(program, places, slot, *COMPUTES)[-1], slot)
                self.assertIn(self.maker(program, places, slot), program.nodes[sends[0]].data_deps, slot)

    @staticmethod
    def maker(program, places, slot):
        """Forward the residual is what a slot makes last; backward it is the last cotangent of a residual."""
        made = of_type(program, places, slot, trace.COMP, trace.COLL)
        if slot[0]:
            made = [at for at in made if re.search(r"\.dx(\.[a-z_]+)?$", program.nodes[at].name)]
        return made[-1]

    def test_rules(self):
        for name, of_run in enumerate(runs()):
            with self.subTest(run=of_run):
                folder, mesh, _, programs, chain = self.lowered(str(name), *of_run)
                self.assertFine(folder)
                for rank, program in programs.items():
                    self.check_rank(program, chain, stage_of(rank, mesh), of_run[2])

    def check_rank(self, program, chain, stage, micro):
        places, slots = chain.places(program, stage), chain.slots(stage, micro)
        self.assertEqual(set(slots), {place.slot for place in places.values()} - {None})
        self.check_slots(program, places, slots)
        self.check_receives(program, places, slots)
        self.check_talks(program)
        self.check_messages(program, places, slots, chain, stage)


class Buckets(Pipeline):
    def buckets(self, more):
        """Of each rank of a pipeline: its program, and bucket -> id."""
        of_run = "interleaved(virtual = 2)", 2, 4, 6, None, 1, "", more
        _, mesh, _, programs, chain = self.lowered("buckets", *of_run)
        for rank, program in programs.items():
            places = chain.places(program, stage_of(rank, mesh))
            names = {node.name: at for at, node in program.nodes.items() if node.name.startswith("S.")}
            yield program, places, names

    def test_a_layer_is_reduced_when_it_is_complete(self):
        """Behind the last backward run of a layer, and before anything of the next one in the same slot
        computes."""
        for reduce, move in (("zero 1 @ dp", "reduce_scatter"),):
            for program, places, names in self.buckets(reduce):
                layers = {place.layer for place in places.values()} - {None}
                self.assertEqual({f"S.layer{layer}.grads.dp.{move}" for layer in layers},
                                 {name for name in names if ".layer" in name and "grads" in name})
                for layer in layers:
                    bucket = names[f"S.layer{layer}.grads.dp.{move}"]
                    runs = [at for at, place in places.items() if place.layer == layer]
                    self.assertGreater(bucket, max(runs))
                    between = range(max(runs) + 1, bucket)
                    self.assertFalse([at for at in between if program.type[at] == trace.COMP],
                                     "something is between")
                    self.assertTrue(set(program.nodes[bucket].data_deps) & set(runs))

    def test_messages_go_first(self):
        """The stage before waits for the cotangent of the last layer of a slot, nobody for its reduced
        gradients."""
        sends = 0
        for program, places, names in self.buckets("zero 1 @ dp"):
            for slot in {place.slot for place in places.values()} - {None}:
                last = of_type(program, places, slot, *COMPUTES)[-1]
                for at in of_type(program, places, slot, trace.SEND):
                    self.assertFalse([name for name, bucket in names.items() if last < bucket < at], slot)
                    sends += slot[0]
        self.assertGreater(sends, 0)

    def test_at_the_end_when_the_plan_says_so(self):
        for program, places, names in self.buckets("zero 1 @ dp\n  reduce = end"):
            slots = [at for at, place in places.items() if place.slot]
            grads = [at for name, at in names.items() if "grads" in name]
            self.assertTrue(grads)
            self.assertGreater(min(grads), max(slots))

    def test_sums_are_the_same(self):
        """When they are reduced changes nothing but the order."""
        sums = []
        for more in ("zero 1 @ dp", "zero 1 @ dp\n  reduce = layer", "zero 1 @ dp\n  reduce = end"):
            found = []
            for program, _, names in self.buckets(more):
                found.append((len(program.nodes), sorted(names)))
            sums.append(found)
        self.assertEqual(sums[0], sums[1])
        self.assertEqual(sums[0], sums[2])


class RandomDurations(Pipeline):
    def spans(self, rank, chain, stage, micro):
        """By slot: when it begins and when it ends to compute."""
        spans = {}
        for at, place in chain.places(rank.program, stage).items():
            if place.slot is None or rank.program.type[at] != trace.COMP:
                continue
            begin, end = spans.get(place.slot, (rank.start[at], rank.end[at]))
            spans[place.slot] = min(begin, rank.start[at]), max(end, rank.end[at])
        return [spans[slot] for slot in chain.slots(stage, micro)], spans

    def check(self, rank, chain, stage, micro):
        self.assertEqual(rank.nodes.keys(), rank.end.keys(), "a rank does not run to the end")
        self.assertLessEqual(rank.most_open, MOST_READY)
        ordered, spans = self.spans(rank, chain, stage, micro)
        for before, after in zip(ordered, ordered[1:]):
            self.assertLessEqual(before[1], after[0], "slots overlap")
        begins = sorted(begin for slot, (begin, _) in spans.items() if not slot[0])
        ends = sorted(end for slot, (_, end) in spans.items() if slot[0])
        held = [count + 1 - bisect.bisect_right(ends, begin) for count, begin in enumerate(begins)]
        self.assertLessEqual(max(held), in_flight(chain.schedule, chain.stages, stage, micro))

    def test_in_flight(self):
        """From its first computation forward to its last one backward a microbatch is in flight."""
        every = list(runs())
        for name, of_run in enumerate(every):
            with self.subTest(run=of_run):
                _, mesh, groups, programs, chain = self.lowered(str(name), *of_run)
                for seed in range(name, SEEDS, len(every)):
                    for rank, end in run(programs, groups, random.Random(seed)).items():
                        self.check(end, chain, stage_of(rank, mesh), of_run[2])

    def test_llama(self):
        """A shipped model with everything that its plans know."""
        small = dict(layers=6, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=24, vocab=32, batch=16, seq=16)
        for plan, micro in (("megatron_pp", 5), ("megatron_interleaved", 8)):
            sets = {**small, "pp": 4, "dp": 2, "tp": 2, "micro": micro, "batch": 2 * micro}
            folder = lower(self.scratch / plan, LLAMA, plan=plan, sets=sets)
            self.assertFine(folder)
            groups = json.loads((folder / "comm_group.json").read_text(encoding="utf-8"))
            programs = load(traces(folder))
            for seed in range(3):
                for rank in run(programs, groups, random.Random(seed)).values():
                    self.assertEqual(rank.nodes.keys(), rank.end.keys())
                    self.assertLessEqual(rank.most_open, MOST_READY)


class Branches(Case):
    """Two values go from layer to layer, and only one of them needs communication: the last computation of a
    slot, of the other one, says nothing about the first."""

    ORDERS = {"communication last": "e = silu(k[H'->H])\n n = relu(x)\n h[B,S,F] = n * w1\n g[B,S,H] = "
                                    "silu(h) * w2\n"
                                    "x = x + g",
              "communication first": "n = relu(x)\n h[B,S,F] = n * w1\n g[B,S,H] = silu(h) * w2\n x = x + g\n"
                                     "e = silu(k[H'->H])"}
    SPEC = """etch 1
param batch, seq, hidden, ffn, vocab, layers, micro = 1
dim B = batch, S = seq, H = hidden, F = ffn, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
model m(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight tok[V,H], hd[H,V]
  x[B,S,H] = gather(tok, ids, over = V)  tag embed
  e = relu(x)  tag embed
  repeat layers as layer {
    weight w1[H,F], w2[F,H], c[H,H']
    k[B,S,H'] = e * c
    BODY
  }
  z[B,S,V] = (x + e) * hd  tag head
  l[] = cross_entropy(z, labels, over = V)  tag loss
}
train { model = m, optimizer = adamw(master = true), accumulate = (B, micro) }
parallel pipe { mesh [pp, dp, tp]; shard B @ dp, F @ tp; stage (embed, layer, head) @ pp }
"""

    def test_slots_do_not_overlap(self):
        sets = dict(batch=6, micro=6, seq=8, hidden=12, ffn=16, vocab=20, layers=6, pp=3, dp=1, tp=2)
        for name, body in self.ORDERS.items():
            with self.subTest(name):
                spec = self.write("branches.etch", self.SPEC.replace("BODY", body))
                folder = lower(self.scratch / name.replace(" ", "_"), spec, sets=sets)
                self.assertFine(folder)
                groups = json.loads((folder / "comm_group.json").read_text(encoding="utf-8"))
                programs = load(traces(folder))
                for seed in range(20):
                    for rank in run(programs, groups, random.Random(seed)).values():
                        self.check(rank)

    def check(self, rank):
        """Slots in the order of their first nodes: each ends before the next one begins."""
        spans = {}
        for at, node in rank.nodes.items():
            slot = re.match(r"[FB]\d+(?=\.)", node.name)
            if slot and rank.program.type[at] == trace.COMP:
                spans.setdefault(slot[0], []).append((rank.start[at], rank.end[at]))
        before = 0.0
        for slot, nodes in spans.items():
            self.assertLessEqual(before, min(nodes)[0], slot)
            before = max(end for _, end in nodes)


class SeveralChunks(Case):
    """A weight that several chunks of a stage use is reduced when all of them have made its gradient, in
    whatever order they do: here the second halves of chunk 0 come before those of chunk 1."""

    SPEC = """etch 1
param batch, seq, hidden, vocab, layers, micro = 1
dim B = batch, S = seq, H = hidden, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
model m(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight tok[V,H], hd[H,V], w[H,H']
  x[B,S,H] = gather(tok, ids, over = V)  tag embed
  repeat layers as layer {
    y[B,S,H'] = x * w
    x = x + relu(y[H'->H])
  }
  z[B,S,V] = x * hd  tag head
  l[] = cross_entropy(z, labels, over = V)  tag loss
}
train { model = m, optimizer = adamw(master = true), accumulate = (B, micro) }
parallel pipe {
  mesh [pp, dp]
  shard B @ dp
  zero 2 @ dp
  reduce = microbatch
  stage (embed, layer, head) @ pp, schedule = list("F0.0 F0.1 I0.1 I0.0 W0.0 W0.1", "F0.0 F0.1 B0.1 B0.0")
}
"""

    def test_all_chunks_come_first(self):
        spec = self.write("shared.etch", self.SPEC)
        folder = lower(self.scratch / "shared", spec,
                       sets=dict(batch=4, seq=8, hidden=8, vocab=16, layers=6, pp=2, dp=2))
        self.assertFine(folder)
        for program in load(traces(folder)).values():
            names = {node.name: at for at, node in program.nodes.items()}
            made = [at for name, at in names.items() if re.fullmatch(r"B0\.layer\d+\.dw", name)]
            self.assertEqual(3, len(made))
            self.assertGreater(names["S0.w.grads.dp.reduce_scatter"], max(made))


class SideBySide(Case):
    """However many products a layer has side by side, few nodes are ready at once."""

    MANY = 24

    def test_few_are_ready(self):
        weights = ", ".join(f"w{i}[H,H']" for i in range(self.MANY))
        products = "\n".join(f"  y{i}[B,S,H'] = x * w{i}" for i in range(self.MANY))
        total = " + ".join(f"y{i}" for i in range(self.MANY))
        spec = self.write("wide.etch", f"""etch 1
param batch, seq, hidden, vocab, layers, micro = 1
dim B = batch, S = seq, H = hidden, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
module wide(x[B,S,H]) -> z[B,S,H] {{
  weight {weights}
{products}
  t[B,S,H'] = {total}
  z = t[H'->H]
}}
model m(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {{
  weight tok[V,H], hd[H,V]
  x[B,S,H] = gather(tok, ids, over = V)  tag embed
  repeat layers as layer {{ x = wide(x) }}
  z[B,S,V] = x * hd  tag head
  l[] = cross_entropy(z, labels, over = V)  tag loss
}}
train {{ model = m, optimizer = adamw(master = true), accumulate = (B, micro) }}
parallel pipe {{ mesh [pp, dp]; shard B @ dp; stage (embed, layer, head) @ pp }}
""")
        folder = lower(self.scratch / "wide", spec,
                       sets=dict(batch=8, micro=4, seq=8, hidden=12, vocab=20, layers=4, pp=2, dp=2))
        self.assertFine(folder)
        groups = json.loads((folder / "comm_group.json").read_text(encoding="utf-8"))
        programs = load(traces(folder))
        for seed in range(10):
            for rank in run(programs, groups, random.Random(seed)).values():
                self.assertLessEqual(rank.most_open, MOST_READY)


if __name__ == "__main__":
    main()
