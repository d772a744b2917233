"""Emitted folders pass every rule of tests/oracle/trace.py; and that oracle is worth its word: it rejects
folders that break one rule each, for the reason that they break.

    test_trace.py EMIT_SAMPLE
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "oracle"))
import trace  # noqa: E402

SAMPLE = sys.argv.pop(1)
PLAIN = pathlib.Path("plain")


def emit(recipe, seed, folder):
    subprocess.run([SAMPLE, recipe, str(seed), str(folder)], check=True)


# ---- taking a trace apart and putting it together ----------------------------------------------------------


def varint(number):
    encoded = bytearray()
    while number >= 128:
        encoded.append(number % 128 + 128)
        number //= 128
    encoded.append(number)
    return bytes(encoded)


def framed(raw):
    return varint(len(raw)) + raw


def load(path):
    """The metadata and the nodes of a trace, to be changed."""
    metadata, *nodes = trace.frames(path.read_bytes())
    return trace.MetadataMessage.FromString(metadata), [trace.NodeMessage.FromString(raw) for raw in nodes]


def store(path, metadata, nodes):
    messages = [metadata, *nodes]
    path.write_bytes(b"".join(framed(one.SerializeToString(deterministic=True)) for one in messages))


def attribute(node, name):
    return next(one for one in node.attr if one.name == name)


def nodes_of(nodes, kind):
    return [node for node in nodes if node.type == kind]


# ---- breaches ----------------------------------------------------------------------------------------------

# name -> (what the oracle must say, a function that breaks a folder)
BREACHES = {}


def breach(complaint):
    def register(function):
        BREACHES[function.__name__] = complaint, function
        return function
    return register


def change(*ranks):
    """Turns a function of the nodes of one trace into a breach: it is applied to the traces of these
    ranks."""
    def wrap(function):
        def apply(folder):
            for rank in ranks:
                path = folder / f"tiny.{rank}.et"
                metadata, nodes = load(path)
                function(nodes)
                store(path, metadata, nodes)
        apply.__name__ = function.__name__
        return apply
    return wrap


def change_bytes(function):
    def apply(folder):
        path = folder / "tiny.1.et"
        path.write_bytes(function(path.read_bytes()))
    apply.__name__ = function.__name__
    return apply


def change_json(file):
    def wrap(function):
        def apply(folder):
            content = json.loads((folder / file).read_text())
            function(content)
            (folder / file).write_text(json.dumps(content))
        apply.__name__ = function.__name__
        return apply
    return wrap


# bytes and files


@breach("ends within a message")
@change_bytes
def truncated_message(content):
    return content[:-3]


@breach("ends within a length")
@change_bytes
def truncated_length(content):
    return content + b"\x80"


@breach("the file is empty")
@change_bytes
def empty_file(content):
    return content[:0]


@breach("there are no nodes")
@change_bytes
def metadata_only(content):
    return content[:8]


@breach("not GlobalMetadata")
@change_bytes
def other_version(content):
    return content.replace(b"0.0.4", b"1.0.0", 1)


@breach("a message")
@change_bytes
def no_metadata(content):
    return content[8:]


@breach("a length is longer")
@change_bytes
def padded_length(content):
    return b"\x87\x00" + content[1:]


@breach("unknown fields or is not in canonical form")
@change_bytes
def unknown_field(content):
    metadata, first, *_ = trace.frames(content)
    rest = content[len(framed(metadata)) + len(framed(first)):]
    return framed(metadata) + framed(first + b"\xf8\x3f\x01") + rest


@breach("unknown fields or is not in canonical form")
@change_bytes
def fields_out_of_order(content):
    metadata, first, *_ = trace.frames(content)
    rest = content[len(framed(metadata)) + len(framed(first)):]
    node = trace.NodeMessage.FromString(first)
    name, node.name = node.name, ""
    moved = node.SerializeToString(deterministic=True) + trace.NodeMessage(name=name
                                                                           or "x").SerializeToString()
    return framed(metadata) + framed(moved) + rest


@breach("no trace of rank 2")
def missing_trace(folder):
    (folder / "tiny.2.et").unlink()


@breach("3 traces of 4 ranks")
def missing_last_trace(folder):
    (folder / "tiny.3.et").unlink()


@breach("no name of a trace")
def padded_rank(folder):
    (folder / "tiny.3.et").rename(folder / "tiny.03.et")


@breach("cannot be read and written")
def read_only_trace(folder):
    (folder / "tiny.1.et").chmod(0o444)


@breach("no regular file")
def linked_trace(folder):
    (folder / "tiny.1.et").unlink()
    (folder / "tiny.1.et").symlink_to("tiny.0.et")


# nodes


@breach("ids are not dense")
@change(1)
def gap_in_ids(nodes):
    nodes[-1].id += 1


@breach("an edge is in ctrl_deps")
@change(0)
def control_edge(nodes):
    nodes[-1].ctrl_deps.append(0)


@breach("dependency is given twice")
@change(0)
def duplicate_edge(nodes):
    nodes[-1].data_deps[:] = [1, 1]


@breach("do not ascend")
@change(0)
def unordered_edges(nodes):
    nodes[-1].data_deps[:] = [1, 0]


@breach("not an earlier node")
@change(0)
def dangling_edge(nodes):
    nodes[-1].data_deps[:] = [len(nodes)]


@breach("not an earlier node")
@change(0)
def edge_to_itself(nodes):
    nodes[3].data_deps[:] = [3]


@breach("neither COMP_NODE nor COMM_COLL_NODE")
@change(0)
def metadata_node(nodes):
    nodes[0].type = 1


@breach("attribute num_ops does not belong here")
@change(0)
def memory_node(nodes):
    nodes[0].type = 2


@breach("no meaning here")
@change(0)
def duration(nodes):
    nodes[0].duration_micros = 1


@breach("is_cpu_op is true")
@change(0)
def on_the_cpu(nodes):
    attribute(nodes[0], "is_cpu_op").bool_val = True


@breach("attribute num_ops is missing")
@change(0)
def missing_attribute(nodes):
    nodes[0].attr.remove(attribute(nodes[0], "num_ops"))


@breach("attribute tensor_size is a int64_val")
@change(0)
def kind_of_size(nodes):
    attribute(nodes[0], "tensor_size").int64_val = 5


@breach("attribute comm_size is a uint64_val")
@change(0)
def kind_of_payload(nodes):
    attribute(nodes_of(nodes, trace.COLL)[0], "comm_size").uint64_val = 64


@breach("attribute pg_name is a int64_val")
@change(0)
def kind_of_group(nodes):
    attribute(nodes_of(nodes, trace.COLL)[0], "pg_name").int64_val = 1


@breach("attribute comm_priority does not belong here")
@change(0)
def additional_attribute(nodes):
    nodes_of(nodes, trace.COLL)[0].attr.add(name="comm_priority", int32_val=1)


@breach("attribute is_cpu_op is given twice")
@change(0)
def attribute_twice(nodes):
    nodes[0].attr.add(name="is_cpu_op", bool_val=False)


@breach("attribute num_ops has a doc_string")
@change(0)
def documented_attribute(nodes):
    attribute(nodes[0], "num_ops").doc_string = "FLOP"


@breach("num_ops is less than 1")
@change(0)
def no_flop(nodes):
    attribute(nodes[0], "num_ops").int64_val = 0


@breach("tensor_size is less than 1")
@change(0)
def no_bytes(nodes):
    attribute(nodes[0], "tensor_size").uint64_val = 0


@breach("may take no time")
@change(0)
def start_of_no_time(nodes):
    attribute(nodes[0], "num_ops").int64_val = 1
    attribute(nodes[0], "tensor_size").uint64_val = 1


@breach("comm_type 5 cannot be simulated")
@change(0, 1, 2, 3)
def broadcast(nodes):
    attribute(nodes_of(nodes, trace.COLL)[0], "comm_type").int64_val = 5


@breach("comm_size is less than 64")
@change(0, 1, 2, 3)
def small_payload(nodes):
    attribute(nodes_of(nodes, trace.COLL)[0], "comm_size").int64_val = 63


@breach("is no id of a group")
@change(0)
def group_zero(nodes):
    attribute(nodes_of(nodes, trace.COLL)[0], "pg_name").string_val = "0"


@breach("is no id of a group")
@change(0)
def named_group(nodes):
    attribute(nodes_of(nodes, trace.COLL)[0], "pg_name").string_val = "tp"


# between nodes, ranks and groups


@breach("does not wait for")
@change(2)
def loose_collective(nodes):
    nodes_of(nodes, trace.COLL)[2].data_deps[:] = []


@breach("group 9 does not exist")
@change(0)
def unknown_group(nodes):
    attribute(nodes_of(nodes, trace.COLL)[0], "pg_name").string_val = "9"


@breach("the rank is not in group")
@change(0)
def group_of_others(nodes):
    attribute(nodes_of(nodes, trace.COLL)[0], "pg_name").string_val = "2"


@breach("issue different collectives")
@change(3)
def other_payload(nodes):
    attribute(nodes_of(nodes, trace.COLL)[1], "comm_size").int64_val += 64


@breach("issue different collectives")
@change(3)
def other_collective(nodes):
    kind = attribute(nodes_of(nodes, trace.COLL)[1], "comm_type")
    kind.int64_val = 0 if kind.int64_val != 0 else 2


@breach("issue different collectives")
@change(3)
def missing_member(nodes):
    last = nodes_of(nodes, trace.COLL)[-1]
    last.type = trace.COMP
    del last.attr[:]
    last.attr.add(name="is_cpu_op", bool_val=False)
    last.attr.add(name="num_ops", int64_val=1)
    last.attr.add(name="tensor_size", uint64_val=1)


@breach("opposite orders")
@change(1, 2)
def opposite_order(nodes):
    """The first two collectives are in different groups; two ranks issue them the other way round, so that in
    the square of ranks each waits for the next."""
    first, second = nodes_of(nodes, trace.COLL)[:2]
    assert attribute(first, "pg_name") != attribute(second, "pg_name")
    for name in ("comm_type", "comm_size", "pg_name"):
        ours, theirs = attribute(first, name), attribute(second, name)
        kept = type(ours).FromString(ours.SerializeToString())
        ours.CopyFrom(theirs)
        theirs.CopyFrom(kept)


@breach("does not hold the groups of the mesh")
@change_json("comm_group.json")
def other_ring(content):
    content["1"].reverse()


@breach("fewer than two ranks")
@change_json("comm_group.json")
def group_of_one(content):
    content["1"] = content["1"][:1]


@breach("a rank twice")
@change_json("comm_group.json")
def rank_twice(content):
    content["1"][1] = content["1"][0]


@breach("a rank that does not exist")
@change_json("comm_group.json")
def rank_of_nobody(content):
    content["1"][1] = 4


@breach("not a list of integers")
@change_json("comm_group.json")
def rank_as_text(content):
    content["1"][1] = str(content["1"][1])


@breach("no decimal id")
@change_json("comm_group.json")
def group_key_zero(content):
    content["0"] = content.pop("1")


@breach("no node uses group 5")
@change_json("comm_group.json")
def unused_group(content):
    content["5"] = [0, 1]


@breach("have gaps")
@change_json("comm_group.json")
def gap_in_groups(content):
    content["6"] = [0, 1]


@breach("has a key twice")
def group_twice(folder):
    path = folder / "comm_group.json"
    path.write_text(path.read_text().replace('"2":', '"1":'))


@breach("is not JSON")
def half_a_group_file(folder):
    path = folder / "comm_group.json"
    path.write_text(path.read_text()[:-3])


# the manifest


@breach("cannot be read")
def no_manifest(folder):
    (folder / "manifest.json").unlink()


@breach("other keys")
@change_json("manifest.json")
def time_in_manifest(content):
    content["time"] = "now"


@breach("another number of ranks")
@change_json("manifest.json")
def other_mesh(content):
    content["mesh"][0]["size"] += 1


@breach("the totals of the stages")
@change_json("manifest.json")
def other_flop(content):
    content["stages"][0]["flop"] = str(int(content["stages"][0]["flop"]) + 1)


@breach("the totals of the stages")
@change_json("manifest.json")
def other_axes(content):
    content["stages"][0]["comm"][0]["axes"] = "cp"


@breach("the classes")
@change_json("manifest.json")
def other_classes(content):
    content["classes"][0]["ranks"] += 1


@breach("another size")
@change_json("manifest.json")
def other_size(content):
    content["traces"]["bytes"] = "1"


# ---- tests -------------------------------------------------------------------------------------------------


class Emitted(unittest.TestCase):
    def test_folders_obey_every_rule(self):
        for recipe in ("plain", "mesh", "alone", "wide"):
            for seed in range(3):
                with self.subTest(recipe=recipe, seed=seed):
                    folder = pathlib.Path(f"{recipe}-{seed}")
                    emit(recipe, seed, folder)
                    self.assertEqual([], trace.check(folder))
                    shutil.rmtree(folder)

    def test_manifest_has_fixed_keys_and_exact_numbers(self):
        folder = pathlib.Path("manifest")
        emit("alone", 1, folder)
        text = (folder / "manifest.json").read_text()
        manifest = json.loads(text)
        self.assertEqual(trace.MANIFEST_KEYS, list(manifest))
        self.assertEqual({"name": "hidden", "value": "18446744073709551616", "from": "config"},
                         manifest["bindings"][1])
        self.assertEqual("tiny.{rank}.et", manifest["traces"]["pattern"])
        self.assertIsNone(manifest["config"])
        self.assertEqual(json.dumps(manifest, indent=2) + "\n", text)
        shutil.rmtree(folder)

    def test_totals_are_sums_over_nodes(self):
        folder = pathlib.Path("totals")
        emit("mesh", 2, folder)
        done = subprocess.run([sys.executable, "-B", trace.__file__, "totals", str(folder)], check=True,
                              stdout=subprocess.PIPE)
        rows = json.loads(done.stdout)
        self.assertEqual(list(range(12)), sorted(rank for row in rows for rank in row["ranks"]))
        for row in rows:
            _, nodes = load(folder / f"tiny.{row['ranks'][0]}.et")
            comp, coll = nodes_of(nodes, trace.COMP), nodes_of(nodes, trace.COLL)
            self.assertEqual(len(nodes), row["nodes"])
            self.assertEqual(sum(attribute(node, "num_ops").int64_val for node in comp), row["num_ops"])
            self.assertEqual(sum(attribute(node, "tensor_size").uint64_val for node in comp),
                             row["tensor_size"])
            self.assertEqual(sum(attribute(node, "comm_size").int64_val for node in coll),
                             sum(part["comm_size"] for part in row["comm"]))
            self.assertEqual(len(coll), sum(part["nodes"] for part in row["comm"]))
            self.assertLessEqual({part["axes"] for part in row["comm"]},
                                 {"pod", "(dp,cp)", "(pod,cp)", "(pod,dp,cp)"})
        shutil.rmtree(folder)


class Oracle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        emit("plain", 0, PLAIN)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(PLAIN)

    def test_every_breach_is_found(self):
        for name, (complaint, break_it) in BREACHES.items():
            with self.subTest(name):
                folder = pathlib.Path("broken")
                shutil.copytree(PLAIN, folder)
                try:
                    break_it(folder)
                    self.assertIn(complaint, "\n".join(trace.check(folder)))
                finally:
                    shutil.rmtree(folder)

    def test_taking_apart_and_putting_together_changes_nothing(self):
        before = (PLAIN / "tiny.1.et").read_bytes()
        store(PLAIN / "tiny.1.et", *load(PLAIN / "tiny.1.et"))
        self.assertEqual(before, (PLAIN / "tiny.1.et").read_bytes())

    def test_status_of_the_command(self):
        command = [sys.executable, "-B", trace.__file__]
        self.assertEqual(0, subprocess.run([*command, "check", PLAIN]).returncode)
        self.assertEqual(2, subprocess.run([*command, "check"], stderr=subprocess.DEVNULL).returncode)
        done = subprocess.run([*command, "check", "nowhere"], stdout=subprocess.PIPE)
        self.assertEqual(1, done.returncode)
        self.assertIn(b"manifest.json cannot be read", done.stdout)


if __name__ == "__main__":
    for left in ("plain", "broken", "manifest", "totals"):
        shutil.rmtree(left, ignore_errors=True)
    unittest.main()
