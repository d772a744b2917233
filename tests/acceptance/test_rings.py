"""Rings: ranks that share a sequence have its keys and values block by block. Here what a rank computes with
each block is counted token by token, and the nodes of traces are held against that: the order of blocks, to
whom they go, and that what passes is not waited for by the run beside it."""

import collections
import itertools
import re

from etchtest import LLAMA, MODELS, Case, ask, lower, main, messages, run, succeed, trace, traces

SPEC = """
etch 1
param batch, seq, heads, head_dim
dim B = batch, S = seq, A = heads, D = head_dim
model m(x[B,S,D]) -> l[] {
  weight wq[D,A,D'], wk[D,A,D'], wv[D,A,D']
  q[B,S,A,D'] = x * wq
  k[B,S,A,D'] = x * wk
  v[B,S,A,D'] = x * wv
  o[B,S,A,D'] = sdpa(q, k[S->S'], v[S->S'], dot = D', over = S'MASK)
  l[] = mean(o, over = (B,S,A,D'))  tag loss
}
train { model = m, optimizer = sgd }
parallel ring   { mesh [cp]; shard S @ cp; attend = ring }
parallel parts  { mesh [cp]; shard S @ cp; attend = ring; balance = false }
parallel gather { mesh [cp]; shard S @ cp }
"""
SEND, RECV = 5, 6
SIZES = dict(batch=2, seq=48, heads=3, head_dim=4)


def tokens(rank, ranks, balanced):
    """Places in the sequence of what a rank holds: contiguous, or a chunk from both ends."""
    if not balanced:
        part = SIZES["seq"] // ranks
        return range(rank * part, (rank + 1) * part)
    chunk = SIZES["seq"] // (2 * ranks)
    late = 2 * ranks - 1 - rank
    return [*range(rank * chunk, (rank + 1) * chunk), *range(late * chunk, (late + 1) * chunk)]


def pairs(rank, back, ranks, causal, balanced):
    """Queries of a rank that see keys of the one so many places before it, by counting."""
    queries, keys = tokens(rank, ranks, balanced), tokens((rank - back) % ranks, ranks, balanced)
    return sum(key <= query or not causal for query, key in itertools.product(queries, keys))


def waits_for(nodes, node):
    """Ids of all that a node waits for, at any distance."""
    by_id, found, rest = {n.id: n for n in nodes}, set(), list(node.deps)
    while rest:
        at = rest.pop()
        if at not in found:
            found.add(at)
            rest += by_id[at].deps
    return found


Node = collections.namedtuple("Node", "name of")


def nodes_of(folder):
    """rank -> nodes with their names."""
    read, paths = trace.read(folder).traces, traces(folder)
    return {rank: [Node(named.name, node) for named, node in zip(messages(paths[rank]), read[rank])]
            for rank in read}


class Rings(Case):
    def test_traces(self):
        for causal, plan, ranks in itertools.product((True, False), ("ring", "parts"), (2, 3, 4, 8)):
            with self.subTest(causal=causal, plan=plan, ranks=ranks):
                spec = self.write("ring.etch", SPEC.replace("MASK", ", causal = true" if causal else ""))
                sets = SIZES | {"cp": ranks}
                folder = lower(self.scratch / f"{plan}{ranks}{causal}", spec, plan=plan, sets=sets)
                for protocol in ((), ("--rendezvous",)):
                    self.assertIn("always", succeed("verify", folder, *protocol).out)
                if plan == "ring" or not causal:
                    self.assertTotals(folder, spec, None, plan, sets)
                for rank, nodes in nodes_of(folder).items():
                    self.work_of_blocks(rank, nodes, ranks, causal, plan == "ring" and causal)
                    self.messages_of(rank, nodes, ranks)
                    self.overlap(nodes, ranks)

    def work_of_blocks(self, rank, nodes, ranks, causal, balanced):
        """A rank computes with each block what its tokens see of it, and with none of which they see nothing;
        with two chunks that is the same for all ranks and blocks but their own."""
        for phase, products in (("F", 2), ("B", 5)):
            made = {int(match[1]): node.of.num_ops for node in nodes
                    if (match := re.fullmatch(rf"{phase}0\..*\.block(\d+)", node.name))}
            each = 2 * products * SIZES["batch"] * SIZES["heads"] * SIZES["head_dim"]
            counted = {back: each * pairs(rank, back, ranks, causal, balanced) for back in range(ranks)}
            self.assertEqual({back: flop for back, flop in counted.items() if flop}, made)
            if balanced:
                self.assertEqual(1, len({flop for back, flop in made.items() if back}))

    def messages_of(self, rank, nodes, ranks):
        """Blocks go to the next rank, and come from the one before, as often as there are others; so do
        gradients. All are equally large: keys and values are one message."""
        block = 2 * 2 * SIZES["batch"] * SIZES["seq"] * SIZES["heads"] * SIZES["head_dim"]
        sent = [node.of for node in nodes if node.of.type == SEND]
        received = [node.of for node in nodes if node.of.type == RECV]
        self.assertEqual({(rank, (rank + 1) % ranks)}, {node.message[:2] for node in sent})
        self.assertEqual({((rank - 1) % ranks, rank)}, {node.message[:2] for node in received})
        self.assertEqual([block // ranks] * 3 * (ranks - 1), [node.comm_size for node in sent])
        self.assertEqual(3 * (ranks - 1), len({node.message for node in sent}))

    def overlap(self, nodes, ranks):
        """A run, the send of its block and the receive of the next wait for each other in neither
        direction."""
        named = {node.name: node.of for node in nodes}
        waited = {name: waits_for(named.values(), node) for name, node in named.items()}
        beside = 0
        for run_name in named:
            found = re.fullmatch(r"([FB]0\.).*\.block(\d+)", run_name)
            if not found or int(found[2]) + 1 >= ranks:
                continue
            block = int(found[2])
            if found[1] == "B0." and block == 0:
                continue  # which backward ends with
            for other in named:
                is_next = re.fullmatch(rf"{re.escape(found[1])}(?:.*\.)?[^d.][^.]*\.permute\."
                                       rf"(send{block}|recv{block + 1})", other)
                if is_next:
                    beside += 1
                    self.assertNotIn(named[other].id, waited[run_name])
                    self.assertNotIn(named[run_name].id, waited[other])
        self.assertGreater(beside, 0)

    def test_formulas(self):
        """Communication and FLOP are those of the gathered form on rings, whatever the sizes."""
        spec = self.write("ring.etch", SPEC.replace("MASK", ", causal = true"))
        for of, ring, gather in ((spec, "ring", "gather"), (LLAMA, "context_ring", "context_gather")):
            wire = " + ".join(f"wire({phase}, axis = cp, plan = {gather})"
                              for phase in ("forward", "backward"))
            for claim in (f"comm(step, op = permute, plan = {ring}) == {wire}",
                          f"rank_flops(step, plan = {ring}) == rank_flops(step, plan = {gather})"):
                said = succeed("prove", of, claim, "-q").out
                self.assertEqual("proved", said.split()[0], claim)

    def test_memory(self):
        """Beside its own block a rank holds two, and three of gradients: the more ranks, the less."""
        spec = self.write("ring.etch", SPEC.replace("MASK", ""))
        block = 2 * 2 * SIZES["batch"] * SIZES["seq"] * SIZES["heads"] * SIZES["head_dim"]
        for ranks in (2, 4, 8, 16, 48):
            most = int(ask(spec, "memory(workspace)", plan="ring", sets=SIZES | {"cp": ranks}))
            # the gradients of o and q are there as well
            self.assertLessEqual((min(ranks - 1, 2) + 3) * block // ranks, most)
            self.assertLessEqual(most, (min(ranks - 1, 2) + 4) * block // ranks)

    def test_refused(self):
        base = SPEC.replace("MASK", ", causal = true")
        biased = [("model m(x[B,S,D])", "dim T = seq\nmodel m(x[B,S,D], near[S,T])"),
                  ("k[S->S'], v[S->S']", "k[S->T], v[S->T]"), ("over = S'", "over = T, bias = near")]
        for changes, why, instead in (
                ([("mesh [cp]; shard S @ cp", "mesh [cp,c]; shard S @ (cp,c)")],
                 "the sequence is divided over (cp,c) in the attention", "and the others the heads"),
                ([("causal = true", "causal = true, window = 4"), ("ring }", "ring; balance = false }")],
                 "a query sees a window of the keys", "without the line ranks gather"),
                (biased, "near has an element for each key", "without the line ranks gather")):
            text = base
            for old, new in changes:
                self.assertIn(old, text)
                text = text.replace(old, new, 1)
            done = run("query", self.write("refused.etch", text), "comm(step)", "--plan", "ring")
            self.assertEqual(1, done.status, done)
            for part in ("E0420", why, instead):
                self.assertIn(part, done.err)

    def test_without_effect(self):
        text = SPEC.replace("MASK", "").replace("shard S @ cp; attend", "shard A @ cp; attend")
        spec = self.write("idle.etch", text)
        self.assertIn("no attention of model m shares its sequence", run("check", spec, "--plan", "ring").err)

    def test_without_effect_of_many_models(self):
        """Scores of gpt.etch are written by hand: a check of all plans lists it, and whoever asks is told."""
        spec, why = MODELS / "gpt.etch", "no attention of model gpt shares its sequence"
        self.assertIn(why, run("query", spec, "comm(step)", "--plan", "context_ring").err)
        done = run("check", spec)
        self.assertNotIn(why, done.err)
        self.assertIn("attention that goes round   of plan context_ring", done.out)


if __name__ == "__main__":
    main()
