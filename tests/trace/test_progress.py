"""The verdict of `etch verify` on small random traces, against a search through every timing."""

import collections
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "oracle"))
import progress  # noqa: E402
import trace  # noqa: E402

CASES = 450
TYPES = {"compute": 4, "memory": 2, "collective": 7, "send": 5, "receive": 6}
GROUPS = {1: [0, 1], 2: [0, 1, 2], 3: [1, 2], 4: [0, 1]}


def draw_programs(chance):
    """Programs for three ranks whose communication has all its ends; only the order is left to chance."""
    work = [[] for _ in range(3)]
    for number in range(chance.randrange(1, 6)):
        if chance.random() < 0.7:
            group = chance.choice(list(GROUPS))
            for member in GROUPS[group]:
                work[member].append((number, "collective", group))
        else:
            source, target = chance.sample(range(3), 2)
            key = (source, target, chance.randrange(1, 3))
            work[source].append((number, "send", key))
            work[target].append((number, "receive", key))
    loose = chance.random() < 0.4
    return [draw_rank(chance, items, loose, chance.choice([0, 0, 0, 1])) for items in work]


def draw_rank(chance, items, loose, shuffles):
    """Nodes of one rank. Each depends on the one before it; or, where order is loose, on some computation, so
    that it becomes ready when that happens to end."""
    items = list(items)
    for _ in range(shuffles if len(items) > 1 else 0):
        i, k = chance.sample(range(len(items)), 2)
        items[i], items[k] = items[k], items[i]
    for _ in range(chance.randrange(1, 4) if loose else chance.randrange(2)):
        items.insert(chance.randrange(len(items) + 1), (None, "compute", None))
    if chance.random() < 0.2:
        items.insert(chance.randrange(len(items) + 1), (None, "memory", None))
    items = items or [(None, "compute", None)]
    nodes = []
    for at, (_, kind, key) in enumerate(items):
        computations = [before for before in range(at) if items[before][1] == "compute"]
        deps = {at - 1} if at > 0 else set()
        if loose and chance.random() < 0.8:
            deps = {chance.choice(computations)} if computations else set()
        deps |= {dep for dep in range(at - 1) if chance.random() < 0.1}
        nodes.append(progress.Node(sorted(deps), kind, key))
    return nodes


def add(message, name, kind, value):
    attribute = message.attr.add()
    attribute.name = name
    setattr(attribute, kind, value)


def message_of(at, node):
    message = trace.NodeMessage(id=at, name=f"{node.work}{at}", type=TYPES[node.work], data_deps=node.deps)
    add(message, "is_cpu_op", "bool_val", False)
    if node.work == "compute":
        add(message, "num_ops", "int64_val", 1000 * at + 1)
    if node.work in ("compute", "memory"):
        add(message, "tensor_size", "uint64_val", 1 << 15)
        return message
    add(message, "comm_size", "int64_val", 64)
    if node.work == "collective":
        add(message, "comm_type", "int64_val", 0)
        add(message, "pg_name", "string_val", str(node.key))
        return message
    for name, value in zip(("comm_src", "comm_dst", "comm_tag"), node.key):
        add(message, name, "int32_val", value)
    return message


def varint(number):
    encoded = bytearray()
    while number >= 128:
        encoded.append(number % 128 + 128)
        number //= 128
    return bytes(encoded) + bytes([number])


def write(folder, programs):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for rank, nodes in enumerate(programs):
        messages = [trace.MetadataMessage(version="0.0.4"), *(message_of(*pair) for pair in enumerate(nodes))]
        raw = [message.SerializeToString() for message in messages]
        (folder / f"t.{rank}.et").write_bytes(b"".join(varint(len(part)) + part for part in raw))
    (folder / "comm_group.json").write_text(json.dumps(GROUPS))
    (folder / "memory.json").write_text('{"memory-type": "PER_NPU_MEMORY_EXPANSION"}')


def verdict(folder, *options):
    """What is told, and the codes of all messages."""
    process = subprocess.run([os.environ["ETCH"], "verify", folder, "--format", "json", "--json", *options],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    codes = {message["code"] for message in json.loads(process.stderr)["messages"]}
    told = json.loads(process.stdout)
    status = {"always": 0, "timing": 5, "protocol": 5, "stalls": 1, "none": 1}[told["verdict"]]
    if process.returncode != status:
        raise AssertionError(f"{told} with exit status {process.returncode}")
    return told, codes


def worst(eager, rendezvous):
    """The verdict on both protocols."""
    if eager == "stalls":
        return "stalls"
    if rendezvous == "stalls":
        return "protocol"
    return "always" if {eager, rendezvous} == {"always"} else "timing"


def add_memory(chance, nodes):
    """The same nodes, and up to three memory nodes among them, that wait for any and that any wait for."""
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(nodes) + 1)
        moved = [node._replace(deps=[dep + (dep >= at) for dep in node.deps]) for node in nodes]
        deps = sorted(chance.sample(range(at), chance.randrange(min(at, 2) + 1)))
        nodes = [*moved[:at], progress.Node(deps, "memory", None), *moved[at:]]
        if at + 1 < len(nodes) and chance.random() < 0.7:
            waits = chance.randrange(at + 1, len(nodes))
            nodes[waits] = nodes[waits]._replace(deps=sorted({*nodes[waits].deps, at}))
    return nodes


class Progress(unittest.TestCase):
    def check(self, rendezvous):
        chance, seen = random.Random(17 + rendezvous), collections.Counter()
        folder = pathlib.Path("traces")
        for number in range(CASES):
            programs = draw_programs(chance)
            search = progress.Search(programs, GROUPS, rendezvous)
            write(folder, programs)
            protocol = "rendezvous" if rendezvous else "eager"
            one, codes = verdict(folder, f"--{protocol}")
            both, _ = verdict(folder)
            told = one["verdict"]
            self.assertEqual({"eager": None, "rendezvous": None, protocol: told},
                             {name: one[name] for name in ("eager", "rendezvous")})
            self.assertEqual(told, both[protocol], programs)
            self.assertEqual(worst(both["eager"], both["rendezvous"]), both["verdict"], programs)
            with self.subTest(number=number, programs=programs, told=told, codes=codes):
                if told == "always":
                    self.assertFalse(search.can_stall)
                elif told == "timing":
                    self.assertTrue(search.can_finish)
                    self.assertIn("E0861", codes)
                else:
                    self.assertEqual("stalls", told)
                    self.assertTrue(search.can_stall)
                    self.assertIn("E0860", codes)
                    self.assertTrue("E0861" in codes or not search.can_finish)
            seen[told, search.can_stall, search.can_finish] += 1
        # None of the three is said all the time, and there are traces that stall under some timings only.
        self.assertGreater(seen["always", False, True], CASES // 10, seen)
        self.assertGreater(seen["stalls", True, False], CASES // 20, seen)
        self.assertGreater(seen["timing", False, True], CASES // 20, seen)
        self.assertGreater(seen["timing", True, True], 2, seen)

    def test_memory(self):
        """Memory nodes that nothing orders change no verdict: they end by themselves."""
        chance, seen = random.Random(29), collections.Counter()
        folder = pathlib.Path("traces")
        for rendezvous in (False, True) * (CASES // 10):
            programs = draw_programs(chance)
            protocol = "--rendezvous" if rendezvous else "--eager"
            write(folder, programs)
            before, codes = verdict(folder, protocol)
            if before["verdict"] == "timing":
                continue
            free = [add_memory(chance, nodes) for nodes in programs]
            search = progress.Search(free, GROUPS, rendezvous)
            write(folder, free)
            told, codes = verdict(folder, protocol)
            with self.subTest(programs=free, rendezvous=rendezvous, codes=codes):
                self.assertEqual(before["verdict"], told["verdict"])
                self.assertEqual(told["verdict"] == "stalls", search.can_stall)
            seen[told["verdict"]] += 1
        self.assertGreater(min(seen["always"], seen["stalls"]), 3, seen)

    def test_eager(self):
        self.check(False)

    def test_rendezvous(self):
        self.check(True)


if __name__ == "__main__":
    unittest.main()
