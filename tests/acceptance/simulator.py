"""A simulator of traces as simple as can be: every rank has one compute slot and one communication slot,
which collectives and sends share; of the nodes that are ready the one with the smallest id goes first; a
collective takes its slot when it is issued and starts when all members of its group have issued it; a send
takes its slot for a while, then its message has arrived; a receive takes no slot. Under rendezvous a send
holds its slot until its receive is posted, and both end together. Durations are random: what dependencies do
not hold will come apart."""

import collections
import heapq
import re

from etchtest import attribute, messages, trace

SLOTS = {trace.COMP: 0, trace.COLL: 1, trace.SEND: 1}


class Program:
    """The nodes of a rank, to be run any number of times."""

    def __init__(self, nodes):
        self.nodes = {node.id: node for node in nodes}
        self.parents = {node.id: len(node.data_deps) for node in nodes}
        self.children = {node.id: [] for node in nodes}
        self.group, self.message = {}, {}
        for node in nodes:
            for parent in node.data_deps:
                self.children[parent].append(node.id)
            if node.type == trace.COLL:
                self.group[node.id] = attribute(node, "pg_name")
            elif node.type in (trace.SEND, trace.RECV):
                self.message[node.id] = tuple(attribute(node, f"comm_{part}")
                                              for part in ("src", "dst", "tag"))
        self.type = {node.id: node.type for node in nodes}


class Rank:
    def __init__(self, program):
        self.program, self.nodes = program, program.nodes
        self.waits = dict(program.parents)
        self.ready = [], []
        self.busy = [False, False]
        self.posted = []  # receives that have become ready and are not looked at yet
        self.start, self.end = {}, {}
        self.open = self.most_open = 0  # nodes that wait for no other node and have not ended
        for at, count in self.waits.items():
            if not count:
                self.enable(at)

    def enable(self, at):
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        kind = self.program.type[at]
        if kind == trace.RECV:
            self.posted.append(at)
        else:
            heapq.heappush(self.ready[SLOTS[kind]], at)

    def finish(self, at, now):
        self.end[at] = now
        self.open -= 1
        kind = self.program.type[at]
        if kind != trace.RECV:
            self.busy[SLOTS[kind]] = False
        for child in self.program.children[at]:
            self.waits[child] -= 1
            if not self.waits[child]:
                self.enable(child)


class Simulation:
    def __init__(self, programs, groups, chance, rendezvous=False):
        self.groups, self.chance, self.rendezvous = groups, chance, rendezvous
        self.offered = {}  # message -> the send that waits for its receive
        self.ranks = {rank: Rank(program) for rank, program in programs.items()}
        self.issued = {}  # group -> members that have issued its next collective
        self.arrived, self.expected = set(), {}  # messages; message -> the receive that waits for it
        self.events, self.order, self.now = [], 0, 0.0

    def end_later(self, members, message=None):
        self.order += 1
        heapq.heappush(self.events, (self.now + self.chance.expovariate(1), self.order, members, message))

    def end_now(self, number, at):
        self.order += 1
        heapq.heappush(self.events, (self.now, self.order, [(number, at)], None))

    def issue(self, number, rank, at):
        rank.start[at] = self.now
        group, message = rank.program.group.get(at), rank.program.message.get(at)
        if message is not None and self.rendezvous:
            self.meet(message, (number, at), self.offered, self.expected)
            return
        if group is None:
            self.end_later([(number, at)], message)
            return
        members = self.issued.setdefault(group, [])
        members.append((number, at))
        if len(members) == len(self.groups[group]):
            del self.issued[group]
            self.end_later(members)

    def meet(self, message, end, mine, others):
        """One end of a message is there: it waits for the other one, or both begin."""
        other = others.pop(message, None)
        if other is None:
            mine[message] = end
        else:
            self.end_later([end, other])

    def receive(self, number, rank):
        for at in rank.posted:
            rank.start[at] = self.now
            message = rank.program.message[at]
            if self.rendezvous:
                self.meet(message, (number, at), self.expected, self.offered)
            elif message in self.arrived:
                self.end_now(number, at)
            else:
                self.expected[message] = (number, at)
        rank.posted.clear()

    def run(self):
        moved = list(self.ranks)
        while True:
            for number in moved:
                rank = self.ranks[number]
                self.receive(number, rank)
                for slot in (0, 1):
                    if rank.ready[slot] and not rank.busy[slot]:
                        rank.busy[slot] = True
                        self.issue(number, rank, heapq.heappop(rank.ready[slot]))
            if not self.events:
                return self.ranks
            self.now, _, members, message = heapq.heappop(self.events)
            for number, at in members:
                self.ranks[number].finish(at, self.now)
            if message is not None:
                self.arrived.add(message)
                if message in self.expected:
                    self.end_now(*self.expected[message])
            moved = [number for number, _ in members]


def load(paths):
    """`paths`: rank -> trace."""
    return {rank: Program(messages(path)) for rank, path in paths.items()}


def run(programs, groups, chance, rendezvous=False):
    """`groups`: id -> ranks. Gives the ranks with start and end of each node."""
    return Simulation(programs, groups, chance, rendezvous).run()


def simulate(paths, groups, chance):
    return run(load(paths), groups, chance)


SLOT = re.compile(r"([FRB])(\d+)\.")  # phase and microbatch in front of a node's name


def check_slots(case, rank, micro):
    """A rank has run to the end: forward and backward of a microbatch, then those of the next one, then the
    rest."""
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
        case.assertLessEqual(last[before], first[after],
                             f"slot {after} starts before slot {before} has ended")
