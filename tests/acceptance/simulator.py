"""A simulator of traces as simple as can be: every rank has one compute slot and one communication slot; of the nodes
that are ready the one with the smallest id goes first; a collective takes its slot when it is issued and starts when
all members of its group have issued it. Durations are random: what dependencies do not hold will come apart."""

import collections
import heapq
import re

from etchtest import attribute, messages, trace


class Rank:
    def __init__(self, nodes):
        self.nodes = {node.id: node for node in nodes}
        self.waits = {node.id: len(node.data_deps) for node in nodes}
        self.children = {node.id: [] for node in nodes}
        for node in nodes:
            for parent in node.data_deps:
                self.children[parent].append(node.id)
        self.ready = {trace.COMP: [], trace.COLL: []}
        self.busy = {trace.COMP: False, trace.COLL: False}
        self.start, self.end = {}, {}
        for node in nodes:
            if not node.data_deps:
                heapq.heappush(self.ready[node.type], node.id)

    def finish(self, at, now):
        self.end[at] = now
        self.busy[self.nodes[at].type] = False
        for child in self.children[at]:
            self.waits[child] -= 1
            if not self.waits[child]:
                heapq.heappush(self.ready[self.nodes[child].type], child)


def simulate(paths, groups, chance):
    """`paths`: rank -> trace, `groups`: id -> ranks. Gives the ranks with start and end of each node."""
    ranks = {rank: Rank(messages(path)) for rank, path in paths.items()}
    issued, events, order, now = {}, [], 0, 0.0
    moved = list(ranks)
    while True:
        for number in moved:
            rank = ranks[number]
            for kind in (trace.COMP, trace.COLL):
                if rank.busy[kind] or not rank.ready[kind]:
                    continue
                at = heapq.heappop(rank.ready[kind])
                rank.busy[kind], rank.start[at] = True, now
                members = [(number, at)]
                if kind == trace.COLL:
                    group = attribute(rank.nodes[at], "pg_name")
                    members = issued.setdefault(group, [])
                    members.append((number, at))
                    if len(members) < len(groups[group]):
                        continue
                    del issued[group]
                order += 1
                heapq.heappush(events, (now + chance.expovariate(1), order, members))
        if not events:
            return ranks
        now, _, members = heapq.heappop(events)
        for number, at in members:
            ranks[number].finish(at, now)
        moved = [number for number, _ in members]


SLOT = re.compile(r"([FRB])(\d+)\.")  # phase and microbatch in front of a node's name


def check_slots(case, rank, micro):
    """A rank has run to the end: forward and backward of a microbatch, then those of the next one, then the rest."""
    case.assertEqual(set(rank.nodes), set(rank.end), "a rank does not run to the end")
    first, last = {}, collections.defaultdict(float)
    for at, node in rank.nodes.items():
        match = SLOT.match(node.name)
        if node.type != trace.COMP:
            continue
        slot = (int(match[2]), match[1] != "F") if match else (micro, False)
        first[slot] = min(first.get(slot, rank.start[at]), rank.start[at])
        last[slot] = max(last[slot], rank.end[at])
    slots = sorted(first)
    case.assertEqual([(i, back) for i in range(micro) for back in (False, True)] + [(micro, False)], slots)
    for before, after in zip(slots, slots[1:]):
        case.assertLessEqual(last[before], first[after], f"slot {after} starts before slot {before} has ended")
