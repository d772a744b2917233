"""What can become of small traces: every order in which things may finish is tried.

A rank has one compute slot and one communication slot. Of the nodes that are ready and wait for a slot, the
one with the smallest id takes it. Collectives, sends and memory nodes share the communication slot, receives
take none. A collective can finish when all members of its group hold their slot for one of the group; a
receive, when it is ready and a message of its key has arrived: the first that was posted takes the first. An
eager send can finish as soon as it has the slot, and its message arrives then; under rendezvous it can finish
when its receive is posted. Everything that can finish may do so at any moment, and that is all that is
uncertain: so the search sees every timing.
"""

import collections

# `work`: "compute", "memory", "collective" (key: the group), "send" and "receive" (key: anything).
Node = collections.namedtuple("Node", "deps work key")

# done: set of nodes; computing, held: node or None; met: may the collective or send that is held finish?;
# posted: receives without a message, in order; ready_to_receive: receives with one.
Rank = collections.namedtuple("Rank", "done computing held met posted matched")


class Search:
    """`programs`: for each rank a list of nodes, whose index is their id. `groups`: key -> ranks. Afterwards
    `can_finish` and `can_stall` say which ends there are."""

    def __init__(self, programs, groups, rendezvous=False, most_states=200_000):
        self.programs, self.groups, self.rendezvous = programs, groups, rendezvous
        self.can_finish = self.can_stall = False
        self.seen = set()
        empty = Rank(frozenset(), None, None, False, (), frozenset())
        stack = [self.settle([empty] * len(programs), collections.Counter())]
        while stack:
            state = stack.pop()
            if state in self.seen:
                continue
            self.seen.add(state)
            if len(self.seen) > most_states:
                raise OverflowError("too many states")
            following = list(self.following(state))
            stack.extend(following)
            if not following:
                ranks = state[0]
                if all(len(rank.done) == len(program) for rank, program in zip(ranks, programs)):
                    self.can_finish = True
                else:
                    self.can_stall = True

    def ready(self, number, rank):
        for at, node in enumerate(self.programs[number]):
            if at not in rank.done and all(dep in rank.done for dep in node.deps):
                yield at, node

    def settle(self, ranks, arrived):
        """Everything that happens at once: slots are taken, receives posted, those who meet know of it."""
        ranks, arrived = list(ranks), collections.Counter(arrived)
        for number, rank in enumerate(ranks):
            for at, node in self.ready(number, rank):
                if node.work == "compute" and rank.computing is None:
                    rank = rank._replace(computing=at)
                elif node.work == "receive" and at not in rank.posted and at not in rank.matched:
                    rank = rank._replace(posted=rank.posted + (at,))
                elif node.work in ("collective", "send", "memory") and rank.held is None:
                    rank = rank._replace(held=at, met=node.work == "memory" or
                                         node.work == "send" and not self.rendezvous)
            ranks[number] = rank
        self.meet(ranks)
        self.match(ranks, arrived)
        return tuple(ranks), frozenset(arrived.items())

    def holds(self, number, rank, work, key):
        if rank.held is None or rank.met:
            return False
        node = self.programs[number][rank.held]
        return node.work == work and node.key == key

    def meet(self, ranks):
        for group, members in self.groups.items():
            if len(members) > 1 and all(self.holds(m, ranks[m], "collective", group) for m in members):
                for member in members:
                    ranks[member] = ranks[member]._replace(met=True)

    def match(self, ranks, arrived):
        for number, rank in enumerate(ranks):
            for at in rank.posted:
                key = self.programs[number][at].key
                sender = next((i for i, other in enumerate(ranks) if self.holds(i, other, "send", key)), None)
                if self.rendezvous and sender is not None:
                    ranks[sender] = ranks[sender]._replace(met=True)
                elif arrived[key] > 0:
                    arrived[key] -= 1
                else:
                    continue
                rank = rank._replace(posted=tuple(p for p in rank.posted if p != at),
                                     matched=rank.matched | {at})
            ranks[number] = rank

    def following(self, state):
        ranks, arrived = state[0], collections.Counter(dict(state[1]))
        for number, rank in enumerate(ranks):
            def after(at, arrived=arrived, number=number, **changes):
                changed = list(ranks)
                changed[number] = ranks[number]._replace(done=ranks[number].done | {at}, **changes)
                return self.settle(changed, arrived)
            if rank.computing is not None:
                yield after(rank.computing, computing=None)
            for at in rank.matched:
                yield after(at, matched=rank.matched - {at})
            if rank.held is not None and rank.met:
                node = self.programs[number][rank.held]
                if node.work == "send" and not self.rendezvous:
                    more = arrived.copy()
                    more[node.key] += 1
                    yield after(rank.held, more, held=None, met=False)
                else:
                    yield after(rank.held, held=None, met=False)
