"""A step as events, slowly: every rank by itself, from written traces, which the official protobuf runtime
reads. Durations come from the numbers of a plain machine, as exact fractions. Nothing here is etch's.

A machine has levels, innermost first, each (devices, bandwidth, latency); devices of the last may be None.
What a rank receives to add, it goes through `passes` times in its memory. Where sends are `eager` they wait
for nobody, and a receive lasts until what was sent has arrived.
What runs on it takes `all` times as long, attention `attention` times; a host launches a node in `launch`
picoseconds, one after the other. A computation does 1/`slowdown` of its work in a time in which a collective
runs on its rank; it ends with the first picosecond at whose end nothing is left."""

import collections
import heapq
import math
from fractions import Fraction

LOAD, STORE, COMP, SEND, RECV, COLL = 2, 3, 4, 5, 6, 7
PICO = 10**12

Machine = collections.namedtuple("Machine",
                                 "peak bandwidth levels all attention launch slowdown passes eager "
                                 "host",
                                 defaults=(Fraction(1), Fraction(1), 0, Fraction(1), Fraction(0), False,
                                           None))


def rounded(seconds):
    """Whole picoseconds, the nearest ones; of a half both."""
    low = (seconds * PICO).__floor__()
    rest = seconds * PICO - low
    return {low} if rest < Fraction(1, 2) else {low + 1} if rest > Fraction(1, 2) else {low, low + 1}


def units(machine):
    size, found = 1, []
    for devices, _, _ in machine.levels:
        size = None if devices is None or size is None else size * devices
        found.append(size)
    return found


def unit_at(rank, size):
    return 0 if size is None else rank // size


def spread(machine, ranks):
    """By level: units one level further inside, in the fullest unit of it."""
    inside, counts = 1, []
    for size in units(machine):
        parts = collections.defaultdict(set)
        for rank in ranks:
            parts[unit_at(rank, size)].add(unit_at(rank, inside))
        counts.append(max(len(found) for found in parts.values()))
        inside = size
    return counts


def path(machine, a, b):
    for level, size in enumerate(units(machine)):
        if unit_at(a, size) == unit_at(b, size):
            return level
    raise AssertionError(f"no level holds the ranks {a} and {b}")


def collective(machine, node, ranks):
    buffer = node.comm_size * (len(ranks) if node.collective == "all_gather" else 1)
    times = 2 if node.collective == "all_reduce" else 1
    counts = spread(machine, ranks)
    everyone = 1
    for count in counts:
        everyone *= count
    total, inside = Fraction(0), 1
    for count, (_, bandwidth, latency) in zip(counts, machine.levels):
        if count > 1:
            share = Fraction(buffer * inside * count, everyone) if node.collective == "all_to_all" \
                else Fraction(buffer, inside)
            received = Fraction(count - 1, count) * share.__ceil__()
            total += times * (latency * (count - 1) + received / bandwidth)
            if node.collective in ("all_reduce", "reduce_scatter"):
                total += received * machine.passes / machine.bandwidth
        inside *= count
    return total * machine.all


def message(machine, node):
    _, bandwidth, latency = machine.levels[path(machine, node.message[0], node.message[1])]
    return (latency + Fraction(node.comm_size) / bandwidth) * machine.all


def move(machine, node):
    """To the memory of the host, or from it."""
    return Fraction(node.tensor_size) / machine.host * machine.all


def computation(machine, node, slow=1):
    """Those that it may take: whether its FLOP are those of a product, or of attention, the trace does not
    say."""
    moves = Fraction(node.tensor_size) / machine.bandwidth
    works = max(moves, Fraction(node.num_ops) / machine.peak)
    return set().union(*(rounded(seconds * slow) for seconds in
                         (moves * machine.all, works * machine.all, works * machine.attention)))


class Rank:
    """The nodes of a rank, in two streams; what is `free` is in none, as receives are."""

    def __init__(self, nodes, free):
        self.nodes = {node.id: node for node in nodes}
        self.streams = {"computes": collections.deque(), "communicates": collections.deque()}
        for node in nodes:
            if node.type not in free:
                self.streams["computes" if node.type == COMP else "communicates"].append(node.id)
        self.posted = [node.id for node in nodes if node.type in free]
        self.number, met = {}, collections.Counter()  # of a collective among those of its group
        for node in nodes:
            if node.type == COLL:
                self.number[node.id] = met[node.group]
                met[node.group] += 1
        self.done, self.running, self.waiting = set(), set(), set()
        self.collectives = 0  # that run
        self.computes, self.left, self.since = None, Fraction(0), 0

    def rate(self, slowdown):
        return 1 / slowdown if self.collectives else Fraction(1)

    def work(self, now, slowdown):
        """What is computed until now."""
        self.left -= (now - self.since) * self.rate(slowdown)
        self.since = now

    def stream(self, node):
        return self.streams["computes" if node.type == COMP else "communicates"]

    def heads(self):
        """Nodes that may begin now, as far as this rank is concerned."""
        for queue in self.streams.values():
            if queue and queue[0] not in self.running:
                yield queue[0]
        yield from [node for node in self.posted if node not in self.running and node not in self.done]

    def is_free(self, node, launched):
        return node < launched and all(parent in self.done for parent in self.nodes[node].deps)


class Events:
    """`lasts(rank, id)`: of computations, chosen by the caller. Nodes of types that are `free` wait for what
    they depend on alone."""

    def __init__(self, machine, folder, lasts, free=(RECV,)):
        self.machine, self.folder, self.lasts, self.free = machine, folder, lasts, free
        self.ranks = {rank: Rank(nodes, free) for rank, nodes in folder.traces.items()}
        self.now, self.queue, self.number = 0, [], 0
        self.begins, self.ends = {}, {}
        self.arrived = collections.defaultdict(dict)  # who has come to a meeting
        self.sent, self.awaited = {}, {}  # by message: when it is there; the receive that waits for it

    def start(self, members, picoseconds):
        for rank, node in members:
            state = self.ranks[rank]
            state.running.add(node)
            self.begins[rank, node] = self.now
            state.work(self.now, self.machine.slowdown)
            if state.nodes[node].type == COMP:
                state.computes, state.left = node, Fraction(picoseconds)
            state.collectives += state.nodes[node].type == COLL
        self.number += 1
        if state.nodes[node].type == COMP:
            self.foresee(rank)
        else:
            heapq.heappush(self.queue, (self.now + picoseconds, self.number, members))
            for rank, _ in members if self.machine.slowdown != 1 else ():
                self.foresee(rank)

    def foresee(self, rank):
        """When what the rank computes ends if nothing changes. What was foreseen before is looked at, too."""
        state = self.ranks[rank]
        if state.computes is not None:
            rest = max(state.left, 0) / state.rate(self.machine.slowdown)
            self.number += 1
            heapq.heappush(self.queue, (self.now + rest.__ceil__(), self.number, [(rank, state.computes)]))

    def is_over(self, rank, node):
        """Whether the node ends now: a computation that was foreseen to may have been slowed down."""
        state = self.ranks[rank]
        if state.nodes[node].type != COMP:
            return True
        if state.computes != node:
            return False
        state.work(self.now, self.machine.slowdown)
        return state.left <= 0

    def meeting(self, rank, node):
        """What the node waits for others at, how many they are, and how long it then takes."""
        found = self.ranks[rank].nodes[node]
        if found.type == COLL:
            ranks = self.folder.groups[found.group]
            return (("group", found.group, self.ranks[rank].number[node]), len(ranks),
                    collective(self.machine, found, ranks))
        return ("message", found.message), 2, message(self.machine, found)

    def send(self, rank, node, found):
        lasts = min(rounded(message(self.machine, found)))
        self.sent[found.message] = self.now + lasts
        self.start([(rank, node)], lasts)
        if found.message in self.awaited:
            self.start([self.awaited.pop(found.message)], lasts)

    def receive(self, rank, node, found):
        self.ranks[rank].waiting.add(node)
        if found.message in self.sent:
            self.start([(rank, node)], max(self.sent[found.message] - self.now, 0))
        else:
            self.awaited[found.message] = (rank, node)

    def begin(self, rank, node):
        found = self.ranks[rank].nodes[node]
        if found.type in (COMP, LOAD, STORE):
            self.start([(rank, node)], self.lasts(rank, node) if found.type == COMP
                       else min(rounded(move(self.machine, found))))
            return True
        if node in self.ranks[rank].waiting:
            return False
        if self.machine.eager and found.type in (SEND, RECV):
            (self.send if found.type == SEND else self.receive)(rank, node, found)
            return True
        self.ranks[rank].waiting.add(node)
        key, needed, seconds = self.meeting(rank, node)
        self.arrived[key][rank] = node
        if len(self.arrived[key]) < needed:
            return False
        self.start(sorted(self.arrived.pop(key).items()), min(rounded(seconds)))
        return True

    def begin_all(self):
        launched = self.now // self.machine.launch if self.machine.launch else math.inf
        again = True
        while again:
            again = False
            for rank, state in self.ranks.items():
                for node in list(state.heads()):
                    if state.is_free(node, launched):
                        again = self.begin(rank, node) or again

    def run(self):
        longest = max(len(nodes) for nodes in self.folder.traces.values())
        for node in range(longest if self.machine.launch else 0):  # the hosts have launched one node more
            heapq.heappush(self.queue, (self.machine.launch * (node + 1), -1, []))
        self.begin_all()
        while self.queue:
            self.now = self.queue[0][0]
            while self.queue and self.queue[0][0] == self.now:
                for rank, node in heapq.heappop(self.queue)[2]:
                    state = self.ranks[rank]
                    if not self.is_over(rank, node):
                        continue
                    if state.nodes[node].type == COMP:
                        state.computes = None
                    if state.nodes[node].type == COLL:
                        state.work(self.now, self.machine.slowdown)
                        state.collectives -= 1
                        if self.machine.slowdown != 1:
                            self.foresee(rank)
                    state.done.add(node)
                    state.running.discard(node)
                    self.ends[rank, node] = self.now
                    if state.nodes[node].type not in self.free:
                        assert state.stream(state.nodes[node]).popleft() == node
            self.begin_all()
        self.now = max(self.ends.values())
        assert all(len(state.done) == len(state.nodes) for state in self.ranks.values()), "ranks never finish"
        return self.now


class Waits:
    """What nodes wait for: what they depend on, and what is before them in their stream, on all ranks that
    take part."""

    def __init__(self, folder):
        self.folder, self.stream, self.meetings, self.key = folder, {}, collections.defaultdict(list), {}
        for rank, nodes in folder.traces.items():
            last, met = {}, collections.Counter()
            for node in nodes:
                computes = node.type == COMP
                if node.type != RECV:
                    self.stream[rank, node.id] = last.get(computes)
                    last[computes] = node.id
                key = ("message", node.message) if node.message else (rank, node.id)
                if node.type == COLL:
                    key = ("group", node.group, met[node.group])
                    met[node.group] += 1
                self.key[rank, node.id] = key
                self.meetings[key].append((rank, node))

    def before(self, rank, node):
        """Pairs of a rank and a node."""
        found = set()
        for other, member in self.meetings[self.key[rank, node]]:
            found |= {(other, parent) for parent in member.deps}
            if self.stream.get((other, member.id)) is not None:
                found.add((other, self.stream[other, member.id]))
        return found
