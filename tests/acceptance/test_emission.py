"""Traces in bulk: traces of equal bytes as one file with several names (`--link`), and the memory that many
ranks and long programs take."""

import collections
import json
import os
import resource
import subprocess
import sys

from etchtest import ETCH, LLAMA, Case, lower, main, options, run, snapshot, succeed

SIZES = dict(layers=2, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=56, vocab=48, batch=16, seq=16,
             micro=2)
ALIKE = {**SIZES, "dp": 8, "tp": 1}  # one group of all ranks: all traces are equal
PAIRS = {**SIZES, "dp": 2, "tp": 4}  # each rank is in groups of its own


def files_by_inode(folder):
    found = collections.defaultdict(set)
    for path in folder.glob("*.et"):
        found[path.stat().st_ino].add(path.name)
    return {frozenset(names) for names in found.values()}


def files_by_bytes(folder):
    found = collections.defaultdict(set)
    for path in folder.glob("*.et"):
        found[path.read_bytes()].add(path.name)
    return {frozenset(names) for names in found.values()}


class Links(Case):
    def test_equal_bytes_are_one_file(self):
        for sets in (ALIKE, PAIRS):
            plain = lower(self.scratch / "plain", LLAMA, plan="megatron_sp", sets=sets)
            for threads in (1, 3):
                linked = lower(self.scratch / "linked", LLAMA, plan="megatron_sp", sets=sets,
                               more=["--link", "-j", threads])
                self.assertEqual(snapshot(plain), snapshot(linked))
                self.assertEqual(files_by_bytes(linked), files_by_inode(linked))
        self.assertEqual(1, len(files_by_inode(lower(self.scratch / "linked", LLAMA, plan="megatron_sp",
                                                     sets=ALIKE, more=["--link"]))))

    def test_what_is_told(self):
        words = ("lower", LLAMA, "--plan", "megatron_sp", "--set",
                 ",".join(f"{name}={size}" for name, size in ALIKE.items()), "--link", "--format", "json")
        told = json.loads(succeed(*words, "-o", self.scratch / "out").out)
        self.assertEqual((8, 7), (told["ranks_written"], told["links"]))
        self.assertEqual(told["bytes"], sum(map(len, snapshot(self.scratch / "out").values())))
        dry = json.loads(succeed(*words, "--dry-run").out)
        self.assertEqual({**told, "written": None}, dry)
        some = json.loads(succeed(*words, "--dry-run", "--ranks", "2,5-7").out)
        self.assertEqual((4, 3), (some["ranks_written"], some["links"]))

    def test_verified_like_others(self):
        folder = lower(self.scratch / "out", LLAMA, plan="megatron_sp", sets=ALIKE, more=["--link"])
        told = json.loads(succeed("verify", folder, "--format", "json").out)
        self.assertEqual(("always", 8), (told["verdict"], told["ranks"]))

    def test_names_of_others_keep_their_bytes(self):
        """A later run puts new files in the place of names: whoever holds a link to an old one keeps it."""
        folder = lower(self.scratch / "out", LLAMA, plan="megatron_sp", sets=ALIKE, more=["--link"])
        kept = self.scratch / "kept.et"
        os.link(folder / "llama.3.et", kept)
        before = kept.read_bytes()
        (folder / "notes.txt").write_text("mine", encoding="utf-8")
        refused = run("lower", LLAMA, "--plan", "megatron_sp", "-o", folder, "--set",
                      ",".join(f"{name}={size}" for name, size in {**ALIKE, "layers": 3}.items()))
        self.assertEqual(1, refused.status, refused)
        for more in (["--link", "--force"], ["--force"]):
            lower(folder, LLAMA, plan="megatron_sp", sets={**ALIKE, "layers": 3}, more=more)
            self.assertEqual(before, kept.read_bytes())
            self.assertEqual("mine", (folder / "notes.txt").read_text(encoding="utf-8"))
            self.assertNotEqual(before, (folder / "llama.3.et").read_bytes())
            self.assertEqual(1 if "--link" in more else 8, len(files_by_inode(folder)))


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))


class Memory(Case):
    """What emission holds is a chunk of each thread and some words of each rank, and never a trace: less than
    64 MB, unless a sanitizer has its share in it."""

    def peak(self, config, sets):
        """Bytes of memory that the program takes."""
        script = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
                  "stdout=subprocess.DEVNULL); "
                  "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        command = [sys.executable, "-c", script, ETCH, "lower", str(LLAMA), "-o", str(self.scratch / "out"),
                   "-q", "--no-sync", "-j", "2", *options(config, "megatron_sp", sets)]
        return 1024 * int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)

    def test_emission(self):
        if subprocess.run([ETCH, "--version"], preexec_fn=limit_memory, capture_output=True,
                          check=False).returncode != 0:
            return  # a sanitizer's memory is no measure
        for config, sets in ((None, {**SIZES, "layers": 1, "batch": 4096, "dp": 1024, "tp": 4}),
                             ("llama3_8b", {"layers": 320, "dp": 1, "tp": 4, "batch": 8, "seq": 64,
                                            "micro": 8})):
            self.assertLess(self.peak(config, sets), 64 << 20, sets)


if __name__ == "__main__":
    main()
