"""Slots that a forward and a backward action share: the same nodes as without, in turns that collectives end;
what a turn computes waits for the turn before and not for the collective that passes meanwhile."""

import collections
import json
import random
import re

from etchtest import Case, attribute, lower, main, run, trace, traces
from pipeline import SIZES, decoder
from simulator import load
from simulator import run as simulate

ORDERS = {"shared": 'list("F0 F1 F2&B0 F3&B1 B2 B3", "F0 B0 F1 F2&B1 F3&B2 B3")',
          "halves": 'list("F0 F1 F2&I0 W0 F3&B1 B2 B3", "F0 I0 W0 F1 F2&B1 F3&B2 B3")',
          "alone": 'list("F0 F1 F2 B0 F3 B1 B2 B3", "F0 B0 F1 F2 B1 F3 B2 B3")'}
SHARED = {0: [(2, 0), (3, 1)], 1: [(2, 1), (3, 2)]}  # by stage: microbatches forward and back
SETS = {**SIZES, "pp": 2, "dp": 1, "tp": 2, "micro": 4, "layers": 6}
PASS = re.compile(r"([FRB])(\d+)\.")
QUANTITY = {trace.COMP: "num_ops", trace.COLL: "comm_size", trace.SEND: "comm_size", trace.RECV: "comm_size"}


def action_of(node):
    """(goes back, microbatch) of a node that computes, or of a collective."""
    match = PASS.match(node.name)
    return (match[1] != "F", int(match[2])) if match and node.type in (trace.COMP, trace.COLL) else None


def before(program):
    """id -> ids of all that the node waits for, at any distance."""
    all_before = {}
    for at, node in sorted(program.nodes.items()):
        all_before[at] = set(node.data_deps).union(*(all_before[parent] for parent in node.data_deps))
    return all_before


class SharedSlots(Case):
    def lowered(self, order, train="", more="pin residual [B@dp, S@tp, H]", dp=1):
        spec = self.write(f"{order}.etch", decoder(ORDERS[order], more=more, train=train))
        number = len(list(self.scratch.iterdir()))
        folder = lower(self.scratch / f"{order}.{number}", spec, sets={**SETS, "dp": dp, "tp": 2 // dp})
        told = json.loads(run("verify", folder, "--format", "json").out)
        for which in ("eager", "rendezvous", "verdict"):
            self.assertEqual("always", told[which], which)
        return folder, load(traces(folder))

    def turns(self, program, forward, back):
        """[ids] of the turns of a slot."""
        actions = (False, forward), (True, back)
        turns, last = [], None
        for at, node in sorted(program.nodes.items()):
            action = action_of(node)
            if action not in actions:
                continue
            if action != last:
                turns.append([])
            turns[-1].append(at)
            last = action
        return turns

    def check_turns(self, program, forward, back):
        turns, waits = self.turns(program, forward, back), before(program)
        kinds = [[program.type[at] for at in turn] for turn in turns]
        self.assertGreater(len(turns), 6)
        self.assertEqual((False, forward), action_of(program.nodes[turns[0][0]]))
        for number, turn in enumerate(turns[:-1]):
            after = turns[number + 1]
            if number + 2 < len(turns):  # else the other action has ended
                self.assertEqual([trace.COLL], [kind for kind in kinds[number] if kind != trace.COMP])
            computes = [at for at in turn if program.type[at] == trace.COMP]
            for at in after:
                if program.type[at] != trace.COMP:
                    continue
                self.assertTrue(not computes or computes[-1] in waits[at], "turns are in no order")
                if program.type[turn[-1]] == trace.COLL and at in after[:1]:
                    self.assertNotIn(turn[-1], waits[at], "a turn waits for what passes meanwhile")

    def test_turns(self):
        for order in ("shared", "halves"):
            _, programs = self.lowered(order)
            for rank, program in programs.items():
                # the second half of the first one has a slot of its own
                for forward, back in SHARED[rank // 2][order == "halves" and rank < 2:]:
                    self.check_turns(program, forward, back)

    def test_the_same_nodes(self):
        def nodes(program):
            return collections.Counter((node.name, attribute(node, QUANTITY[node.type]))
                                       for node in program.nodes.values())
        for train, more in (("", ""), (", recompute = layer", ""), (", clip = 1.0", "zero 3 @ dp")):
            dp = 2 if more else 1
            found = {order: self.lowered(order, train, more, dp)[1] for order in ORDERS}
            for rank in range(4):
                counts = {order: nodes(programs[rank]) for order, programs in found.items()}
                self.assertEqual(counts["alone"], counts["shared"])
                self.assertEqual(counts["alone"], counts["halves"])

    def test_random_durations(self):
        folder, programs = self.lowered("shared")
        groups = json.loads((folder / "comm_group.json").read_text(encoding="utf-8"))
        for seed in range(20):
            for rendezvous in (False, True):
                for rank in simulate(programs, groups, random.Random(seed), rendezvous).values():
                    self.assertEqual(rank.nodes.keys(), rank.end.keys(), "a rank does not run to the end")


if __name__ == "__main__":
    main()
