"""Pipelines by hand: which units a stage holds, the order in which it works, how much is in flight; and small
specs to try them on. Link c*p + i of the chain is chunk c of stage i."""

import collections
import json
import re

from etchtest import Case, table, trace

SCHEDULES = ("gpipe", "one_f_one_b", "interleaved(virtual = 2)", "interleaved(virtual = 3)",
             "breadth_first(virtual = 2)")

# A decoder of few nodes. {stage}: what follows `@ pp`; {mesh}, {more}: of the plan.
DECODER = """etch 1
param batch, seq, layers, hidden, vocab, micro = 1
dim B = batch, S = seq, H = hidden, F = 2*hidden, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
module mlp(x[B,S,H]) -> y[B,S,H] {{
  weight up[H,F], down[F,H]
  h[B,S,F] = x * up
  y        = gelu(h) * down
}}
model tiny(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {{
  weight emb[V,H], out[V,H]
  x[B,S,H] = gather(emb, ids, over = V)          tag embed, residual
  repeat layers as layer {{ x = x + mlp(x)  tag residual }}
  z[B,S,V] = x * out                             tag head
  l[]      = cross_entropy(z, labels, over = V)  tag loss
}}
train {{ model = tiny, optimizer = adamw(master = true), accumulate = (B, micro){train} }}
parallel pipe {{
  mesh  {mesh}
  shard B @ dp, F @ tp, V @ tp
  stage (embed, layer, head) @ pp{stage}
  {more}
}}
"""
SIZES = dict(batch=16, seq=8, hidden=8, vocab=16)


def decoder(schedule="one_f_one_b", counts=None, mesh="[pp, dp, tp]", more="", train=""):
    stage = f", schedule = {schedule}" + (f", counts = [{', '.join(map(str, counts))}]" if counts else "")
    return DECODER.format(stage=stage, mesh=mesh, more=more, train=train)


def chunks_of(schedule):
    match = re.search(r"virtual = (\d+)", schedule)
    return int(match[1]) if match else 2 if schedule == "zb_v" else 1


# ---- units -------------------------------------------------------------------------------------------------


def windows(units, stages, chunks=1, counts=None):
    """For each link the units that it holds, as a range. What is left over goes to the first links, one
    each."""
    links = stages * chunks
    if counts is None:
        counts = [units // links + (link < units % links) for link in range(links)]
    ends = [sum(counts[:link + 1]) for link in range(links)]
    return [range(end - count, end) for end, count in zip(ends, counts)]


def held(units, stages, stage, chunks=1, counts=None):
    """The units of a stage."""
    return [unit for window in windows(units, stages, chunks, counts)[stage::stages] for unit in window]


def stage_of(rank, mesh):
    """`mesh`: name -> size, outermost first; the stages are the places along pp."""
    names = list(mesh)
    for name in reversed(names):
        if name == "pp":
            return rank % mesh[name]
        rank //= mesh[name]
    return 0


def partition(total, parts, chance):
    """Random counts of units, one at least of each part."""
    ends = sorted(chance.sample(range(1, total), parts - 1)) + [total]
    return [end - begin for begin, end in zip([0, *ends], ends)]


# ---- schedules ---------------------------------------------------------------------------------------------


def slots(schedule, stages, stage, micro):
    """[(is backward, chunk, microbatch)] in the order of the papers: all forward first, chunk by chunk;
    or as many forward as there are stages behind, then by turns; or the latter with chunks, `stages`
    microbatches of one chunk at a time (Narayanan et al. 2021, 2.2), which is for multiples of `stages`
    microbatches."""
    if schedule == "gpipe":
        return [(back, 0, i) for back in (False, True) for i in range(micro)]
    if schedule.startswith("breadth_first"):
        chunks = range(chunks_of(schedule))
        return ([(False, chunk, i) for chunk in chunks for i in range(micro)]
                + [(True, chunk, i) for chunk in reversed(chunks) for i in range(micro)])
    if schedule == "one_f_one_b":
        forward, backward = ([(back, 0, i) for i in range(micro)] for back in (False, True))
        before = min(stages - stage - 1, micro)
    else:
        chunks = chunks_of(schedule)
        assert micro % stages == 0
        order = [(chunk, first + i) for first in range(0, micro, stages) for chunk in range(chunks)
                 for i in range(stages)]
        forward = [(False, chunk, i) for chunk, i in order]
        backward = [(True, chunks - 1 - chunk, i) for chunk, i in order]
        before = min(2 * (stages - stage - 1) + (chunks - 1) * stages, len(forward))
    turns = [slot for pair in zip(forward[before:], backward) for slot in pair]
    return forward[:before] + turns + backward[len(forward) - before:]


def in_flight(schedule, stages, stage, micro):
    """The most that a stage may hold, in microbatches, or in microbatches of one chunk."""
    chunks = chunks_of(schedule)
    if schedule == "gpipe" or schedule.startswith("breadth_first"):
        return chunks * micro
    if chunks == 1:
        return min(micro, stages - stage)
    return min(2 * (stages - stage - 1) + (chunks - 1) * stages + 1, chunks * micro)


# ---- names of nodes ----------------------------------------------------------------------------------------

NAME = re.compile(r"(?P<phase>[FRB])(?P<micro>\d+)\.(?:layer(?P<layer>\d+)\.)?")

# Where a node of DECODER belongs: in slot (is backward, chunk, microbatch), or None at the end of the step.
Place = collections.namedtuple("Place", "slot layer")


class Chain:
    """DECODER over stages: unit 0 is the embedding, then come the layers, then the head."""

    def __init__(self, layers, stages, schedule, counts=None):
        self.layers, self.stages, self.schedule = layers, stages, schedule
        self.chunks = chunks_of(schedule)
        self.windows = windows(layers + 2, stages, self.chunks, counts)

    def link_of(self, unit):
        return next(link for link, window in enumerate(self.windows) if unit in window)

    def place(self, node, stage):
        """The chunk is known by the layer, by where a message goes, and around the loop by the stage: the
        first one has the embedding, the last one the head."""
        match = NAME.match(node.name)
        if not match:
            return Place(None, None)
        back, layer = match["phase"] != "F", match["layer"] and int(match["layer"])
        message = re.search(r"\.(send|recv)\.stage(\d+)(?:\.chunk(\d+))?$", node.name)
        if message:
            other = int(message[2]) + self.stages * int(message[3] or 0)
            later = (message[1] == "send") != back  # the other link is the one behind this one
            link = other - 1 if later else other + 1
        elif layer is not None:
            link = self.link_of(layer + 1)
        else:
            link = self.link_of(self.layers + 1 if stage else 0)
        assert link % self.stages == stage, node.name
        return Place((back, link // self.stages, int(match["micro"])), layer)

    def slots(self, stage, micro):
        return slots(self.schedule, self.stages, stage, micro)

    def places(self, program, stage):
        return {at: self.place(node, stage) for at, node in program.nodes.items()}


def of_type(program, places, slot, *types):
    """Ids of the nodes of a slot, ascending."""
    return [at for at, place in places.items() if place.slot == slot and program.type[at] in types]


COMPUTES, TALKS = (trace.COMP,), (trace.COLL, trace.SEND)


# ---- totals ------------------------------------------------------------------------------------------------


class Stages(Case):
    """Tests that hold stages of traces against queries."""

    def assertStages(self, folder, spec, plan, sets, mesh):
        """Of every rank: sums over the nodes, less the paddings that the manifest counts, are those of its
        stage."""
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        self.assertEqual(mesh["pp"], len(manifest["stages"]))
        of_stages = [{} for _ in range(mesh["pp"])]
        for row in trace.totals(folder):
            for stage in {stage_of(rank, mesh) for rank in row["ranks"]}:
                of_stages[stage] = row
        found = [self.without_padding(row, stage) for row, stage in zip(of_stages, manifest["stages"])]
        for query in ("rank_flops", "traffic", "comm"):
            rows, _ = table(spec, f"{query}(step)", "stage", plan=plan, sets=sets)
            self.assertEqual([row[query] for row in found], [rows[str(stage)] for stage in range(mesh["pp"])],
                             query)
        for key in sorted({key for row in found for key in row} - {"rank_flops", "traffic", "comm"}):
            rows, _ = table(spec, f"comm(step, op = {key[0]}, axis = {key[1]})", "stage", plan=plan,
                            sets=sets)
            self.assertEqual([row.get(key, 0) for row in found],
                             [rows[str(stage)] for stage in range(mesh["pp"])], key)

    @staticmethod
    def without_padding(row, stage):
        padding = {(comm["collective"], comm["axes"]): int(comm["bytes_padding"]) for comm in stage["comm"]}
        sums = {"rank_flops": row["num_ops"] - int(stage["flop_padding"]),
                "traffic": row["tensor_size"] - int(stage["bytes_padding"]), "comm": 0}
        for comm in row["comm"]:
            key = comm["collective"], comm["axes"]
            if key[0] != "recv":  # a message is counted where it is sent
                sums[key] = comm["comm_size"] - padding[key]
                sums["comm"] += sums[key]
        return sums
