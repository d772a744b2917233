"""Traces that are alike are compared and not decoded, and ranks that do the same are run as one: what is
found of them must be what is found otherwise. A trace that nobody may write is decoded whatever it is
like, and warned of; apart from that, nothing may differ, whatever one of the ranks has in one place."""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import unittest

import effort
from messages import pack, trace

ETCH, MODELS = os.environ["ETCH"], pathlib.Path(os.environ["ETCH_SOURCE_DIR"], "models")
SIZES = "layers=2,hidden=32,heads=8,kv_heads=4,head_dim=4,ffn=56,vocab=48,batch=16,seq=16"
RUNS = {"groups": ("megatron_sp", "dp=2,tp=4,micro=2", ()),
        "stages": ("megatron_pp", "pp=4,dp=2,tp=1,micro=4", ()),
        "dims": ("megatron_sp", "dp=2,tp=4,micro=2", ("--groups", "dims")),
        "alike": ("ddp", "dp=8,micro=2", ())}
NOT_WRITABLE = "E0806"


def lowered(name):
    folder = pathlib.Path(name)
    plan, sets, more = RUNS[name]
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([ETCH, "lower", MODELS / "llama.etch", "--plan", plan, "--set", f"{SIZES},{sets}",
                    "-o", folder, "-q", "--no-sync", *more], check=True, stdout=subprocess.DEVNULL)
    return folder


def verified(folder, mode, threads):
    for path in folder.glob("*.et"):
        path.chmod(mode)
    done = subprocess.run([ETCH, "verify", folder, "--format", "json", "--json", "-j", str(threads)],
                          capture_output=True, check=False)
    said = json.loads(done.stderr or "{}").get("messages", [])
    said = [json.dumps(one) for one in said if one["code"] != NOT_WRITABLE]
    return done.returncode, done.stdout.decode(), said


class Alike(unittest.TestCase):
    def held(self, folder, what):
        seen = verified(folder, 0o644, 1)
        self.assertEqual(verified(folder, 0o444, 1), seen, what)
        self.assertEqual(verified(folder, 0o644, 3), seen, what)
        return seen

    def test_as_they_are(self):
        for name in RUNS:
            status, out, said = self.held(lowered(name), name)
            self.assertEqual((0, "always", []), (status, json.loads(out)["verdict"], said), name)

    def test_one_byte(self):
        """Any byte of any rank is another one: mostly the file is broken, or a number differs."""
        generator, worse = random.Random(effort.first_seed(7)), 0
        for name in RUNS:
            folder = lowered(name)
            for _ in range(effort.effort(20)):
                path = generator.choice(sorted(folder.glob("*.et")))
                raw = path.read_bytes()
                at, other = generator.randrange(len(raw)), generator.randrange(256)
                path.chmod(0o644)
                path.write_bytes(raw[:at] + bytes((other,)) + raw[at + 1:])
                worse += self.held(folder, (name, path.name, at, other))[0] != 0
                path.chmod(0o644)
                path.write_bytes(raw)
        self.assertGreater(worse, 0)

    def test_one_value(self):
        """What ranks may differ in differs in one place more: a group, an end of a message, a tag; and what
        they may not."""
        generator = random.Random(effort.first_seed(8))
        changes = (("pg_name", lambda old: str(int(old) % 6 + 1)), ("comm_src", lambda old: (old + 1) % 8),
                   ("comm_dst", lambda old: (old + 3) % 8), ("comm_tag", lambda old: old ^ 1),
                   ("comm_size", lambda old: old ^ 64), ("num_ops", lambda old: old + 1))
        told = set()
        for name in RUNS:
            folder = lowered(name)
            for field, change in changes:
                path = generator.choice(sorted(folder.glob("*.et")))
                raw = path.read_bytes()
                head, *rest = trace.frames(raw)
                metadata = trace.MetadataMessage.FromString(head)
                nodes = [trace.NodeMessage.FromString(node) for node in rest]
                held = [attr for node in nodes for attr in node.attr if attr.name == field]
                for attr in generator.sample(held, min(3, len(held))):
                    kind = attr.WhichOneof("value")
                    before = getattr(attr, kind)
                    setattr(attr, kind, change(before))
                    path.chmod(0o644)
                    path.write_bytes(pack(metadata, nodes))
                    status, _, said = self.held(folder, (name, path.name, field))
                    told.update(re.findall(r"E08\d\d", " ".join(said)))
                    setattr(attr, kind, before)
                path.chmod(0o644)
                path.write_bytes(raw)
        self.assertLessEqual({"E0829", "E0845", "E0851", "E0855"}, told)


if __name__ == "__main__":
    unittest.main()
