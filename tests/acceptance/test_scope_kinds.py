"""Scopes of plans that speak of more than a module by its name: paths, loops, tags, scopes inside scopes, and
what is run again there. Where two ways of saying it mean the same, their answers are the same; other
collectives by hand."""

import collections
import itertools

import decoder
from decoder import BF16, F32, add
from etchtest import BASE, LLAMA, Case, ask, lower, main, run
from test_collectives import COLLECTIVES
from test_numbers import LLAMA_DIMS

PLANS = """
parallel by_name {
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  for core { shard S @ (), K @ () }
}
parallel by_path {
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  for block.attention.core { shard S @ (), K @ () }
}
parallel by_nest {
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  for block { for attention { for core { shard K @ () } } }
}
parallel nowhere {                               # an MLP calls no core
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  for mlp { for core { shard K @ () } }
}
parallel inside {                                # the MLP of a block, and not its attention, keeps F
  mesh  [dp, tp]
  shard B @ dp, K @ tp, V @ tp
  for block { shard K @ (), F @ tp
    for attention { shard K @ tp } }
}
parallel loop {                                  # the layers divide the batch among all ranks
  mesh  [dp, tp]
  shard B @ dp, V @ tp
  for layer { shard B @ (dp,tp) }
}
parallel loop_maps {                             # weights of the layers, and nothing else, are divided
  mesh  [dp, tp]
  shard B @ dp, V @ tp
  for layer { shard K @ tp, F @ tp }
}
parallel statement {                   # the last norm on a part of the sequence, and the head on all of it
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp
  for head { shard B @ (dp,tp) }
}
parallel staged {
  mesh  [pp, dp]
  shard B @ dp
  stage (embed, layer, head) @ pp
}
parallel staged_by_path {                     # the norm that the model calls itself, not those of the layers
  mesh  [pp, dp]
  shard B @ dp
  stage (llama.x, layer, llama.norm) @ pp
}
parallel again {
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  for attention { recompute = core }
}
parallel again_full {
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  for attention { for core { recompute = full } }
}
parallel again_not {
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  for block { for attention { recompute = norm } }
}
parallel again_norm {
  mesh  [dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  for block { recompute = norm }
}
"""
SIZES = dict(layers=3, hidden=64, heads=8, kv_heads=4, head_dim=16, ffn=96, vocab=128)
MESH = dict(dp=2, tp=4, micro=2, batch=16, seq=32)
QUERIES = ("comm(step)", "rank_flops(step)", "traffic(step)", "wire(backward)")
AXES = ("dp", "tp", "(dp,tp)")


def loop(v):
    """The partial sums of the vocabulary's shards are scattered along the batch; behind the layers, and
    before them in backward, shards are gathered."""
    tally = collections.defaultdict(int)
    products, gains = decoder.llama_weights(v)
    tokens = v.batch / v.micro / v.dp * v.seq
    whole = BF16 * tokens * v.hidden
    ends = 2 * v.vocab * v.hidden
    add(tally, "forward", "reduce_scatter", "tp", v.micro * whole)
    add(tally, "forward", "all_reduce", "tp", v.micro * 3 * F32 * tokens)
    add(tally, "forward", "all_gather", "tp", v.micro * whole / v.tp)
    add(tally, "backward", "all_gather", "tp", v.micro * whole / v.tp)
    # The last norm is computed by all ranks alike, and so is its gradient, from a cotangent that the head's
    # shards sum.
    add(tally, "backward", "all_reduce", "tp", v.micro * whole)
    add(tally, "sync", "all_reduce", "(dp,tp)", F32 * (products - ends + gains - v.hidden))
    add(tally, "sync", "all_reduce", "dp", F32 * (ends / v.tp + v.hidden))
    return tally


def tag(v):
    """Norm and head of 1/tp of the batch; logits are gathered, since the loss is computed on all of it."""
    tally = collections.defaultdict(int)
    products, gains = decoder.llama_weights(v)
    tokens = v.batch / v.micro / v.dp * v.seq
    whole = BF16 * tokens * v.hidden
    calls = v.micro * v.layers
    last = v.vocab * v.hidden + v.hidden  # head and the gain of its norm
    ends = 2 * v.vocab * v.hidden
    add(tally, "forward", "all_reduce", "tp", calls * 2 * whole)
    add(tally, "backward", "all_reduce", "tp", calls * 2 * whole)
    add(tally, "forward", "all_gather", "tp", v.micro * BF16 * tokens * v.vocab / v.tp)
    add(tally, "backward", "all_gather", "tp", v.micro * whole / v.tp)
    add(tally, "sync", "all_reduce", "dp", F32 * ((products - ends) / v.tp + ends / 2 + gains - v.hidden))
    add(tally, "sync", "all_reduce", "(dp,tp)", F32 * last)
    return tally


class ScopeKinds(Case):
    def setUp(self):
        super().setUp()
        self.write("base.etch", BASE.read_text(encoding="utf-8"))
        self.spec = self.write("llama.etch", LLAMA.read_text(encoding="utf-8") + PLANS)

    def compare(self, plan, by_hand):
        for phase, op, axis in itertools.product(("forward", "backward", "sync"), COLLECTIVES, AXES):
            with self.subTest(phase=phase, op=op, axis=axis):
                text = ask(self.spec, f"comm({phase}, op = {op}, axis = {axis})", plan=plan)
                self.assertFormula(lambda v: by_hand(v).get((phase, op, axis), 0), text, LLAMA_DIMS)
        sets = {**SIZES, **MESH}
        folder = lower(self.scratch / plan, self.spec, plan=plan, sets=sets)
        self.assertFine(folder)
        self.assertTotals(folder, self.spec, None, plan, sets)

    def assertAlike(self, *plans, queries=QUERIES):
        for query in queries:
            self.assertEqual(1, len({ask(self.spec, query, plan=plan) for plan in plans}), (query, plans))

    def test_names_paths_and_nests(self):
        self.assertAlike("by_name", "by_path", "by_nest")
        self.assertNotEqual(*(ask(self.spec, "comm(step)", plan=plan) for plan in ("by_name", "megatron")))

    def test_a_scope_inside_another_is_nowhere_else(self):
        self.assertAlike("nowhere", "megatron")

    def test_the_inner_scope_begins_with_the_map_around_it(self):
        self.assertAlike("inside", "megatron")

    def test_weights_of_a_loop(self):
        self.assertAlike("loop_maps", "megatron")

    def test_a_loop(self):
        self.compare("loop", loop)

    def test_a_statement(self):
        self.compare("statement", tag)

    def test_stages_by_paths(self):
        for stage in ("first", "middle", "last"):
            self.assertAlike("staged", "staged_by_path",
                             queries=[query.replace(")", f", stage = {stage})") for query in QUERIES[:3]])

    def test_what_is_run_again_in_a_module(self):
        text = LLAMA.read_text(encoding="utf-8").replace("accumulate = (B, micro)",
                                                         "accumulate = (B, micro), recompute = "
                                                         "attention.core")
        other = self.write("again.etch", text)
        for query in ("flops(recompute)", "comm(step)"):
            wanted = ask(other, query, plan="megatron")
            for plan in ("again", "again_full"):
                self.assertEqual(wanted, ask(self.spec, query, plan=plan))

    def test_what_is_run_again_must_be_there(self):
        done = run("query", self.spec, "flops(recompute)", "--plan", "again_not")
        self.assertEqual((1, ["E0343"]), (done.status, [error["code"] for error in done.errors()]), done)
        # The norms of a block, and not the last one.
        once = ask(self.spec, "flops(recompute)", plan="again_norm")
        each = ask(self.spec, "flops(forward, of = norm)")
        self.assertFormula(lambda v: 2 * v.layers * 4 * v.batch * v.seq * v.hidden, once, LLAMA_DIMS)
        self.assertFormula(lambda v: 4 * v.batch * v.seq * v.hidden, each, LLAMA_DIMS)


if __name__ == "__main__":
    main()
