"""Files that were cut, damaged or made to hurt: `etch verify` and `etch dump` say what is wrong, in little
memory.

Every run has a limit of its address space, unless a sanitizer needs more than any limit."""

import json
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import unittest

import messages
from messages import framed, trace, varint

ETCH = messages.os.environ["ETCH"]
ADDRESS_SPACE = 1 << 30
FORMS = ([], ["--format", "json"], ["--text"])


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


LIMITED = subprocess.run([ETCH, "--version"], preexec_fn=limit_memory, capture_output=True,
                         check=False).returncode == 0


def run(*arguments):
    """Exit status and messages."""
    done = subprocess.run([ETCH, *arguments], preexec_fn=limit_memory if LIMITED else None,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stderr.decode("utf-8", "replace")


def fresh(name):
    folder = pathlib.Path(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def node(number, kind, deps, *attributes):
    made = trace.NodeMessage(id=number, name=f"n{number}", type=kind, data_deps=deps)
    made.attr.add(name="is_cpu_op", bool_val=False)
    for name, field, value in attributes:
        setattr(made.attr.add(name=name), field, value)
    return made


def computation(number, deps):
    return node(number, 4, deps, ("num_ops", "int64_val", 1000), ("tensor_size", "uint64_val", 65536))


def collective(number, deps, group="1"):
    return node(number, 7, deps, ("comm_type", "int64_val", 0), ("comm_size", "int64_val", 4096),
                ("pg_name", "string_val", group))


METADATA = trace.MetadataMessage(version="0.0.4")
GOOD = [computation(0, []), computation(1, [0]), collective(2, [1])]
START = messages.pack(METADATA, [])


def write_pair(folder, second, groups='{"1": [0, 1]}'):
    """A folder of two ranks: a good trace, and the bytes at hand."""
    (folder / "t.0.et").write_bytes(messages.pack(METADATA, GOOD))
    (folder / "t.1.et").write_bytes(second)
    (folder / "comm_group.json").write_text(groups)
    return folder


class Cut(unittest.TestCase):
    def test_every_prefix(self):
        whole = messages.pack(METADATA, GOOD)
        folder = fresh("prefix")
        boundaries = {len(messages.pack(METADATA, GOOD[:count])) for count in range(len(GOOD) + 1)}
        self.assertEqual(run("verify", str(write_pair(folder, whole))), (0, ""))
        for length in range(len(whole)):
            write_pair(folder, whole[:length])
            status, said = run("verify", str(folder))
            self.assertEqual(status, 1, f"{length} bytes: {said}")
            self.assertIn("error[E08", said)
            status, said = run("dump", str(folder / "t.1.et"))
            self.assertEqual(status, 0 if length in boundaries else 1, f"{length} bytes: {said}")


class Flipped(unittest.TestCase):
    """Bits that changed on the way: any answer is fine, as long as it is one."""

    def flipped(self, source, raw, count):
        raw = bytearray(raw)
        for _ in range(count):
            raw[source.randrange(len(raw))] ^= 1 << source.randrange(8)
        return bytes(raw)

    def test_traces(self):
        source = random.Random(11)
        whole = messages.pack(METADATA, [computation(0, []), collective(1, [0]), computation(2, [0, 1]),
                                         node(3, 5, [2], ("comm_size", "int64_val", 64),
                                              ("comm_src", "int32_val", 0),
                                              ("comm_dst", "int32_val", 1), ("comm_tag", "int32_val", 3))])
        ranks = 50
        for _ in range(60):
            folder = fresh("flipped")
            for rank in range(ranks):
                (folder / f"t.{rank}.et").write_bytes(self.flipped(source, whole,
                                                                   source.choice([1, 1, 2, 8])))
            (folder / "comm_group.json").write_text(json.dumps({"1": list(range(ranks))}))
            self.assert_answered(folder)

    def test_unused_groups(self):
        text = json.dumps({str(key): [0, 1] for key in range(1, MILLION + 1)})
        folder = write_pair(fresh("hostile"), messages.pack(METADATA, GOOD), text)
        status, said = run("verify", str(folder))
        self.assertEqual(status, 0, said[:2000])
        self.assertIn("warning[E0849]", said)
        self.assertLess(len(said), 20000)

    def test_groups(self):
        source = random.Random(12)
        folder = write_pair(fresh("flipped"), messages.pack(METADATA, GOOD))
        good = b'{\n  "1": [0, 1],\n  "2": [1, 0]\n}\n'
        for _ in range(150):
            (folder / "comm_group.json").write_bytes(self.flipped(source, good, source.choice([1, 1, 3])))
            self.assert_answered(folder, ["verify"])

    def assert_answered(self, folder, commands=("verify", "dump")):
        for command in commands:
            status, said = run(command, str(folder))
            self.assertIn(status, (0, 1, 4, 5), said)
            self.assertEqual(status in (1, 4), "error[E" in said, said)


class Large(unittest.TestCase):
    """A dump holds one message in memory, however many there are."""

    def peak(self, nodes, form):
        """Kilobytes that a dump needed at most."""
        path = fresh("large") / "t.0.et"
        named = framed(b"\x12" + varint(4000) + b"n" * 4000 + b"\x18\x04")
        path.write_bytes(START + named * nodes)
        measure = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], "
                   "stdout=subprocess.DEVNULL, check=True); "
                   "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        done = subprocess.run([sys.executable, "-c", measure, ETCH, "dump", str(path), *form],
                              capture_output=True,
                              check=True)
        path.unlink()
        return int(done.stdout)

    def test_memory(self):
        for form in FORMS:
            # of 48,000 in the file
            self.assertLess(self.peak(12_000, form) - self.peak(10, form), 15_000, form)


def field(number, raw):
    """A field of bytes."""
    return varint(number << 3 | 2) + varint(len(raw)) + raw


LONG_VARINT = b"\xff" * 10 + b"\x01"
MILLION = 1_000_000
BASE = messages.serialize(computation(0, []))

# What is in the second trace, behind its metadata; None where the file is broken from its first byte.
HOSTILE = {
    "a length of 11 bytes": LONG_VARINT,
    "a tag of 11 bytes": framed(LONG_VARINT),
    "an id of 11 bytes": framed(b"\x08" + LONG_VARINT),
    "a dependency of 11 bytes": framed(field(5, LONG_VARINT)),
    "a message of 2^60 bytes": varint(1 << 60) + b"\x08\x01",
    "a name of 2^60 bytes": framed(b"\x12" + varint(1 << 60) + b"x"),
    "an attribute of 2^63 bytes": framed(b"\x52" + varint(1 << 63) + b"x"),
    "a field of number 0": framed(b"\x00\x01"),
    "a wire type that does not exist": framed(b"\x0f\x01"),
    "a group without an end": framed(b"\x9b\x06" * 5),
    "groups in groups": framed(b"\x9b\x06" * MILLION),
    "a million attributes": framed(BASE + field(10, b"\x0a\x01x\x48\x01") * MILLION),
    "a list of a million values": framed(BASE +
                                         field(10, b"\x0a\x01x" + field(10, field(1, b"\x01" * MILLION)))),
    "two million edges to one node": framed(BASE + field(5, b"\x00" * 2 * MILLION)),
    "a name that is not UTF-8": framed(BASE + b"\x12\x02\xff\xfe"),
    "a name of 20 megabytes": framed(field(2, b"x" * 20 * MILLION)),
    "a million nodes of one id": framed(b"\x18\x04") * MILLION,
    "two nodes of far ids": framed(BASE) + framed(b"\x08" + varint(2**64 - 1) + BASE[2:]),
    "a million messages of nothing": b"\x00" * MILLION,
    "zeros instead of a trace": None,
}

GROUPS = {
    "deep lists": "[" * MILLION,
    "deep objects": '{"1":' * MILLION,
    "a million groups of one": json.dumps({str(key): [0] for key in range(1, MILLION + 1)}),
    "a million groups of a rank that does not exist": json.dumps({str(key): [0, 1, 2]
                                                                  for key in range(1, MILLION + 1)}),
    "a group of a million ranks": json.dumps({"1": list(range(MILLION))}),
    "a number of a million digits": '{"1": [' + "9" * MILLION + "]}",
    "a key of a million letters": '{"' + "x" * MILLION + '": [0, 1]}',
    "a real rank": '{"1": [0.5, 1e400]}',
    "a key twice": '{"1": [0, 1], "1": [0]}',
    "not UTF-8": '{"1": [0, 1], "\x00": []}',
    "nothing": "",
}


class Hostile(unittest.TestCase):
    def assert_refused(self, name, *arguments):
        status, said = run(*arguments)
        self.assertIn(status, (1, 4), f"{name}: {' '.join(arguments)}: {said[:2000]}")
        self.assertIn("error[E", said, name)
        self.assertLess(len(said), 20000, name)

    def test_traces(self):
        for name, behind in HOSTILE.items():
            raw = b"\x00" * MILLION if behind is None else START + behind
            folder = write_pair(fresh("hostile"), raw)
            self.assert_refused(name, "verify", str(folder))
            for form in FORMS:
                status, said = run("dump", str(folder), *form)
                self.assertIn(status, (0, 1), f"{name}: {said}")

    def test_unused_groups(self):
        text = json.dumps({str(key): [0, 1] for key in range(1, MILLION + 1)})
        folder = write_pair(fresh("hostile"), messages.pack(METADATA, GOOD), text)
        status, said = run("verify", str(folder))
        self.assertEqual(status, 0, said[:2000])
        self.assertIn("warning[E0849]", said)
        self.assertLess(len(said), 20000)

    def test_groups(self):
        for name, text in GROUPS.items():
            folder = write_pair(fresh("hostile"), messages.pack(METADATA, GOOD), text)
            self.assert_refused(name, "verify", str(folder))
            self.assertEqual(run("dump", str(folder)), (0, ""), name)

    def test_texts(self):
        texts = {
            "a long line": b"file a\n| " + b"x" * MILLION,
            "many files": b"".join(b"file f%d\n" % number for number in range(3000)),
            "many mistakes": b"nonsense\n" * MILLION,
            "many attributes": b"file a\nnode 0 COMP\n" + b"int64_val x = 1\n" * MILLION,
            "many nodes": b"file a\n" + b"node 0 COMP\n" * MILLION,
            "zeros": b"\0" * MILLION,
        }
        for name, text in texts.items():
            path = pathlib.Path("hostile.txt")
            path.write_bytes(text)
            shutil.rmtree("texts", ignore_errors=True)
            status, said = run("assemble", str(path), "-o", "texts")
            self.assertIn(status, (0, 1), f"{name}: {said[:2000]}")
            self.assertEqual(status == 1, "error[E" in said, name)


if __name__ == "__main__":
    unittest.main()
