"""The text form of traces stands for their bytes: whatever a file holds, `etch dump --text` and `etch
assemble` give it back. What a dump says is what the official protobuf runtime reads."""

import json
import math
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import unittest

import messages
from messages import trace

ETCH = messages.os.environ["ETCH"]
MODELS = pathlib.Path(messages.os.environ["ETCH_SOURCE_DIR"]) / "models"
LLAMA = [str(MODELS / "llama.etch"), "--config", "llama3_8b", "--plan", "megatron_sp", "--set",
         "dp=2,tp=2,batch=4,micro=2,seq=128,layers=2"]


def run(*arguments, status=0, **options):
    done = subprocess.run([ETCH, *arguments], capture_output=True, check=False, **options)
    if done.returncode != status:
        sys.exit(f"etch {' '.join(arguments)}: exit status {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def fresh(name):
    folder = pathlib.Path(name)
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def nodes_in(path):
    first, *rest = trace.frames(path.read_bytes())
    return [trace.NodeMessage.FromString(raw) for raw in rest]


def random_traces(folder, seed, count, encode):
    """Writes traces of random messages; `encode(random, message)` gives the bytes of one."""
    source = random.Random(seed)
    folder.mkdir()
    for rank in range(count):
        nodes = [messages.random_node(source, number) for number in range(source.randrange(8))]
        metadata = messages.random_metadata(source)
        raw = b"".join(encode(source, message) for message in [metadata, *nodes])
        (folder / f"t.{rank}.et").write_bytes(raw)


def plain_encoding(_, message):
    return messages.framed(messages.serialize(message))


class RoundTrip(unittest.TestCase):
    def assert_round_trip(self, folder, status=0):
        text = run("dump", str(folder), "--text", status=status)
        again = fresh(str(folder) + ".again")
        run("assemble", "-", "-o", str(again), input=text)
        self.assertEqual(content(folder), content(again))
        return text.decode()

    def test_lowered_traces(self):
        folder = fresh("lowered")
        run("lower", *LLAMA, "-o", str(folder))
        (folder / "manifest.json").unlink()  # a dump is of traces and groups
        text = self.assert_round_trip(folder)
        self.assertNotIn("\nbytes ", text)

    def test_random_messages(self):
        folder = fresh("random")
        random_traces(folder, 1, 150, plain_encoding)
        text = self.assert_round_trip(folder)
        self.assertNotIn("\nbytes ", text)  # every kind of value has a line of its own

    def test_odd_encodings(self):
        folder = fresh("odd")
        random_traces(folder, 2, 150, messages.odd_encoding)
        self.assertIn("\nbytes ", self.assert_round_trip(folder))

    def test_broken_files(self):
        folder = fresh("broken")
        random_traces(folder, 3, 60, plain_encoding)
        source = random.Random(4)
        for path in sorted(folder.iterdir()):
            raw = bytearray(path.read_bytes())
            if source.random() < 0.5:
                del raw[source.randrange(len(raw) + 1):]
            else:
                raw[source.randrange(len(raw)):] = source.randbytes(20)
            path.write_bytes(raw)
        (folder / "comm_group.json").write_bytes(b'{\r\n  "1": [0,\x80 1]\n}')
        self.assert_round_trip(folder, status=1)


class Assembly(unittest.TestCase):
    """The text means what docs/trace-text.md says: the official runtime reads it so."""

    TEXT = """
        # a comment
        file t.0.et "t.1.et"          # two files of one content
        metadata "0.0.4"
          int64_val answer = 42 doc "why"
        node 3 COMM_COLL_NODE "a \\"b\\" \\x41"
          data_deps 1 2
          ctrl_deps 0
          start_time_micros 5
          duration_micros 6
          inputs "i" "j" "k"
          bool_val is_cpu_op = false
          sint32_list list = -1 2 doc "d"
          float_val half = 0.5
          bytes_val raw = "\\xff\\x00"
          raw 98 06 07
        node 0 4
        bytes 0a0b
        cut 1
    """

    def test_fields(self):
        folder = fresh("fields")
        run("assemble", "-", "-o", str(folder), input=self.TEXT.encode())
        raw = (folder / "t.0.et").read_bytes()
        self.assertEqual(raw, (folder / "t.1.et").read_bytes())
        self.assertEqual(raw[-1:], b"\x0a")
        metadata, node, last = trace.frames(raw[:-1])
        attribute = trace.MetadataMessage.FromString(metadata).attr[0]
        self.assertEqual((attribute.name, attribute.int64_val, attribute.doc_string), ("answer", 42, "why"))
        self.assertTrue(node.endswith(b"\x98\x06\x07"))
        expected = trace.NodeMessage(id=3, name='a "b" A', type=7, data_deps=[1, 2], ctrl_deps=[0],
                                     start_time_micros=5, duration_micros=6)
        expected.inputs.values, expected.inputs.shapes, expected.inputs.types = "i", "j", "k"
        expected.attr.add(name="is_cpu_op", bool_val=False)
        expected.attr.add(name="list", doc_string="d").sint32_list.values.extend([-1, 2])
        expected.attr.add(name="half", float_val=0.5)
        expected.attr.add(name="raw", bytes_val=b"\xff\x00")
        self.assertEqual(node[:-3], messages.serialize(expected))
        self.assertEqual(last, messages.serialize(trace.NodeMessage(type=4)))

    def test_example_of_the_documentation(self):
        page = (MODELS.parent / "docs" / "trace-text.md").read_text(encoding="utf-8")
        example = page.split("```trace-text\n")[1].split("```")[0]
        folder = fresh("example")
        run("assemble", "-", "-o", str(folder), input=example.encode())
        run("verify", str(folder))

    def test_nothing_is_left_when_the_disk_is_full(self):
        before = sorted(pathlib.Path().iterdir())
        text = b'file a\n| x\nfile b\n' + b"| " + b"x" * 100000 + b"\n"
        full = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))
        run("assemble", "-", "-o", "full", status=3, input=text, preexec_fn=full)
        self.assertEqual(sorted(pathlib.Path().iterdir()), before)

    def test_nothing_is_left_of_a_text_with_mistakes(self):
        folder = fresh("mistakes")
        before = sorted(pathlib.Path().iterdir())
        run("assemble", "-", "-o", str(folder), status=1, input=b"file a\n| x\nfile b\nnode 0 COMPP\n")
        run("assemble", "-", "-o", str(folder), status=1, input=b"file a\n| x\nfile a\n")
        self.assertEqual(sorted(pathlib.Path().iterdir()), before)


def value_of(attribute):
    """An attribute as the JSON form shows it."""
    def shown(value):
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        return value
    kind = attribute.WhichOneof("value")
    if kind is None:
        return None
    value = getattr(attribute, kind)
    return [shown(one) for one in value.values] if kind.endswith("_list") else shown(value)


class Json(unittest.TestCase):
    def test_lines_are_the_messages(self):
        folder = fresh("json")
        random_traces(folder, 5, 80, plain_encoding)
        lines = [json.loads(line)
                 for line in run("dump", str(folder), "--format", "json").decode().splitlines()]
        expected = []
        for rank in range(80):
            expected += [(rank, node) for node in nodes_in(folder / f"t.{rank}.et")]
        self.assertEqual(len(lines), len(expected))
        for line, (rank, node) in zip(lines, expected):
            self.assertEqual((line["file"], line["rank"]), (f"t.{rank}.et", rank))
            self.assertEqual((line["id"], line["name"]), (node.id, node.name))
            self.assertEqual(line["data_deps"], list(node.data_deps))
            self.assertEqual(line.get("ctrl_deps", []), list(node.ctrl_deps))
            self.assertEqual(line.get("duration_micros", 0), node.duration_micros)
            self.assertEqual(line["attr"], {one.name: value_of(one) for one in node.attr})

    def test_name_that_is_not_utf8(self):
        folder = fresh("names")
        folder.mkdir()
        for name in (b"\xff.0.et", "größe.1.et".encode()):
            (pathlib.Path(messages.os.fsdecode(bytes(folder) + b"/" + name))).write_bytes(
                messages.pack(messages.random_metadata(random.Random(8)), [trace.NodeMessage(type=4)]))
        lines = run("dump", str(folder), "--format", "json").decode().splitlines()
        self.assertEqual([json.loads(line)["file"] for line in lines], ["größe.1.et", "?.0.et"])

    def test_ranks(self):
        folder = fresh("ranks")
        random_traces(folder, 6, 14, plain_encoding)
        text = run("dump", str(folder), "--text", "--ranks", "11,2,3-5").decode()
        files = [line.split()[1] for line in text.splitlines() if line.startswith("file ")]
        self.assertEqual(files, [f"t.{rank}.et" for rank in (2, 3, 4, 5, 11)])
        run("dump", str(folder), "--ranks", "14", status=1)


class Summary(unittest.TestCase):
    """Tables are read by their columns."""

    @staticmethod
    def tables(folder, *options):
        parts = run("dump", str(folder), *options).decode().split("\n\n")
        return {part.split()[0]: [line.split() for line in part.splitlines()[1:]] for part in parts[1:]}

    def test_sums(self):
        folder = fresh("sums")
        run("lower", *LLAMA, "-o", str(folder))
        tables = self.tables(folder, "--ranks", "1-2")
        read = trace.read(folder)
        flop = moved = 0
        groups = {}
        for rank in (1, 2):
            for node in read.traces[rank]:
                if node.collective is None:
                    flop, moved = flop + node.num_ops, moved + node.tensor_size
                else:
                    row = groups.setdefault((node.collective, str(node.group)), [0, 0])
                    row[0] += 1
                    row[1] += node.comm_size
        rows = {row[0]: row[1:] for row in tables["type"]}
        self.assertEqual(rows["COMP"][1:], [str(flop), str(moved)])
        self.assertEqual(int(rows["COMM_COLL"][0]), sum(row[0] for row in groups.values()))
        self.assertEqual(sum(int(row[2]) for row in tables["phase"]), flop)
        self.assertEqual({row[0] for row in tables["phase"]}, {"forward", "backward", "sync", "optimizer"})
        shown = {}
        for name, group, *rest in tables["collective"]:
            each = rest[0] == "each"
            first, _, last = group.rstrip(",").partition("-")
            for one in range(int(first), int(last or first) + 1):
                shown[name, str(one)] = [int(number) for number in rest[each:]]
        self.assertEqual(shown, groups)

    def test_sums_of_any_size(self):
        folder = fresh("large")
        node = 'node 0 COMP "F0.x"\n uint64_val tensor_size = 18446744073709551615\n int64_val num_ops = -5\n'
        names = " ".join(f"t.{rank}.et" for rank in range(100))
        run("assemble", "-", "-o", str(folder), input=f'file {names}\nmetadata "x"\n{node}'.encode())
        self.assertEqual(self.tables(folder)["type"], [["COMP", "100", "-500", str(100 * (2**64 - 1))]])


if __name__ == "__main__":
    unittest.main()
