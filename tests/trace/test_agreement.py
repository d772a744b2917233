"""`etch verify` and the oracle, which reads traces with the official protobuf runtime, agree on what is wrong
with lowered traces after one change to one node."""

import collections
import os
import random
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "acceptance"))
from etchtest import LLAMA, Case, lower, messages, run, trace  # noqa: E402
from messages import pack  # noqa: E402

ROUNDS = 20
VALUES = dict(layers=1, hidden=8, heads=2, kv_heads=2, head_dim=4, ffn=8, vocab=8, batch=4, micro=2, seq=8,
              pp=2, dp=1,
              tp=2)


def attribute(node, name):
    return next((found for found in node.attr if found.name == name), None)


def set_value(name, kind, value):
    """A change: the attribute, where a node has it, gets a value; `value` may be made from the one before."""
    def change(chance, nodes):
        having = [node for node in nodes if attribute(node, name)]
        if not having:
            return False
        found = attribute(chance.choice(having), name)
        before = getattr(found, found.WhichOneof("value"))
        setattr(found, kind, value(before) if callable(value) else value)
        return True
    return change


def remove_attribute(name):
    def change(chance, nodes):
        having = [node for node in nodes if attribute(node, name)]
        if having:
            node = chance.choice(having)
            node.attr.remove(attribute(node, name))
        return bool(having)
    return change


def repeat_attribute(chance, nodes):
    node = chance.choice(nodes)
    one = chance.choice(node.attr)
    node.attr.add().CopyFrom(one)
    return True


def change_deps(make):
    def change(chance, nodes):
        node = chance.choice(nodes[1:])
        deps = sorted(make(chance, node, list(node.data_deps), len(nodes)))
        del node.data_deps[:]
        node.data_deps.extend(deps)
        return True
    return change


def swap_work(chance, nodes):
    """Two nodes of communication change places; their dependencies stay."""
    communicating = [node for node in nodes if node.type != trace.COMP]
    one, other = chance.sample(communicating, 2)
    kept = trace.NodeMessage.FromString(one.SerializeToString())
    for node, source in ((one, other), (other, kept)):
        node.type = source.type
        del node.attr[:]
        node.attr.extend(source.attr)
    return True


def drop_last(chance, nodes):
    nodes.pop()
    return True


def same_id(chance, nodes):
    chance.choice(nodes[1:]).id = chance.choice(nodes).id
    return True


def change_type(chance, nodes):
    chance.choice(nodes).type = chance.choice([0, 8, 9])
    return True


def drop_dep(chance, node, deps, count):
    return [dep for dep in deps if dep != chance.choice(deps or [0])]


CHANGES = {
    "nothing": lambda chance, nodes: True,
    "more work": set_value("num_ops", "int64_val", lambda before: before + 1),
    "no work": set_value("num_ops", "int64_val", 0),
    "no bytes": set_value("tensor_size", "uint64_val", 0),
    "another kind": set_value("tensor_size", "int64_val", lambda before: before),
    "another size": set_value("comm_size", "int64_val", lambda before: before + 64),
    "a small size": set_value("comm_size", "int64_val", 63),
    "another collective": set_value("comm_type", "int64_val", lambda before: 7 if before != 7 else 2),
    "a collective that throws": set_value("comm_type", "int64_val", 3),
    "another group": set_value("pg_name", "string_val", lambda before: "2" if before == "1" else "1"),
    "no group": set_value("pg_name", "string_val", "77"),
    "a name for a group": set_value("pg_name", "string_val", "dp"),
    "on the CPU": set_value("is_cpu_op", "bool_val", True),
    "another tag": set_value("comm_tag", "int32_val", lambda before: before + 1000),
    "a large tag": set_value("comm_tag", "int32_val", 500_000_000),
    "another source": set_value("comm_src", "int32_val", lambda before: (before + 1) % 4),
    "another destination": set_value("comm_dst", "int32_val", lambda before: (before + 1) % 4),
    "no such rank": set_value("comm_dst", "int32_val", 4),
    "no num_ops": remove_attribute("num_ops"),
    "no comm_size": remove_attribute("comm_size"),
    "no comm_tag": remove_attribute("comm_tag"),
    "an attribute twice": repeat_attribute,
    "a dependency less": change_deps(drop_dep),
    "no dependency": change_deps(lambda chance, node, deps, count: []),
    "a dependency more": change_deps(lambda chance, node, deps, count: {*deps, chance.randrange(node.id)}),
    "a dependency twice": change_deps(lambda chance, node, deps, count: deps + deps[:1]),
    "a dependency on nothing": change_deps(lambda chance, node, deps, count: deps + [count + 5]),
    "a dependency on itself": change_deps(lambda chance, node, deps, count: deps + [node.id]),
    "work in another order": swap_work,
    "a node less": drop_last,
    "an id twice": same_id,
    "another type": change_type,
}
# What verify has no way to know, or no reason to mind: what the manifest says of the traces, and group files
# of a mesh.
BEYOND = ("manifest", "the group file does not hold")
# What a node on the CPU may be: verify minds it on communication only.
CPU = "is_cpu_op is true"


class Agreement(Case):
    def test_changes(self):
        chance, seen = random.Random(3), collections.Counter()
        folder = lower(self.scratch / "good", LLAMA, plan="megatron_pp", sets=VALUES, more=["-q"])
        changed = self.scratch / "changed"
        for name, change in CHANGES.items():
            for number in range(ROUNDS):
                shutil.copytree(folder, changed)
                path = changed / f"llama.{chance.randrange(4)}.et"
                nodes = messages(path)
                if change(chance, nodes):
                    path.write_bytes(pack(trace.MetadataMessage(version="0.0.4"), nodes))
                    told = run("verify", changed)
                    complaints = [text for text in trace.check(changed) if not text.startswith(BEYOND)]
                    if not (complaints and CPU in complaints[0]):
                        with self.subTest(change=name, number=number, told=str(told), complaints=complaints):
                            self.assertEqual(not complaints, told.status == 0 and not told.err)
                            seen[not complaints] += 1
                shutil.rmtree(changed)
        self.assertGreater(seen[True], ROUNDS)
        self.assertGreater(seen[False], 15 * ROUNDS)


if __name__ == "__main__":
    unittest.main()
