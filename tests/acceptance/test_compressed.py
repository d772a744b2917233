"""Traces as zstd frames (`--zstd`): they hold the bytes that they would be otherwise, and whatever reads
traces reads them. What is in a frame is what libzstd says."""

import json
import os
import shutil

import zstd
from etchtest import LLAMA, Case, lower, main, options, run, snapshot, succeed

SIZES = dict(layers=2, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=56, vocab=48, batch=16, seq=16,
             micro=2)
ALIKE = ("megatron_sp", {**SIZES, "dp": 8, "tp": 1})  # all traces are equal
PAIRS = ("megatron_sp", {**SIZES, "dp": 2, "tp": 4})  # groups differ
STAGES = ("megatron_pp", {**SIZES, "pp": 2, "dp": 2, "tp": 2, "micro": 4})  # stages and peers, too
LONG = ("ddp", {**SIZES, "dp": 2, "layers": 400, "micro": 16, "batch": 32})  # emitted in several pieces


def names_of(folder):
    return sorted(path.name for path in folder.iterdir())


class Written(Case):
    def pair(self, case, *more):
        plan, sets = case
        plain = lower(self.scratch / "plain" / "out", LLAMA, plan=plan, sets=sets)
        return plain, lower(self.scratch / "packed" / "out", LLAMA, plan=plan, sets=sets,
                            more=["--zstd", *more])

    def test_frames_hold_the_same_bytes(self):
        for case in (ALIKE, PAIRS, STAGES, LONG):
            plain, packed = self.pair(case, "-j", 1)
            self.assertEqual(sorted(name + ".zst" * name.endswith(".et") for name in names_of(plain)),
                             names_of(packed))
            for path in plain.glob("*.et"):
                frame = (packed / (path.name + ".zst")).read_bytes()
                self.assertLess(len(frame), path.stat().st_size)
                self.assertEqual(path.read_bytes(), zstd.unpack(frame), path.name)
            self.assertEqual((plain / "comm_group.json").read_bytes(),
                             (packed / "comm_group.json").read_bytes())
            self.assertEqual(snapshot(packed), snapshot(self.pair(case, "-j", 3)[1]))
            self.assertEqual(snapshot(packed), snapshot(self.pair(case, "-j", 3, "--link")[1]))

    def test_equal_traces_are_equal_frames(self):
        _, packed = self.pair(ALIKE)
        self.assertEqual(1, len({path.read_bytes() for path in packed.glob("*.zst")}))
        self.assertEqual(8, len({path.stat().st_ino for path in packed.glob("*.zst")}))
        _, linked = self.pair(ALIKE, "--link")
        self.assertEqual(1, len({path.stat().st_ino for path in linked.glob("*.zst")}))

    def test_what_is_told(self):
        plain, packed = self.pair(PAIRS)
        said = [json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
                for folder in (plain, packed)]
        traces = {**said[0]["traces"], "pattern": "llama.{rank}.et.zst", "compression": "zstd"}
        self.assertEqual({**said[0], "traces": traces}, said[1])
        self.assertEqual(int(said[1]["traces"]["bytes"]),
                         sum(path.stat().st_size for path in plain.glob("*.et")))
        words = ("lower", LLAMA, *options(None, *PAIRS), "--zstd", "--format", "json")
        told = json.loads(succeed(*words, "-o", packed).out)
        self.assertEqual(told["bytes"], sum(path.stat().st_size for path in packed.iterdir()))
        kept = sum(path.stat().st_size for path in packed.glob("*.json"))
        self.assertEqual(told["unpacked_bytes"], kept + int(said[0]["traces"]["bytes"]))
        dry = json.loads(succeed(*words, "--dry-run").out)
        self.assertEqual({**told, "written": None, "bytes": None}, dry)

    def test_takes_the_place_of_an_earlier_run(self):
        for force in ((), ("--force",)):
            folder = self.scratch / f"out{len(force)}"
            if force:
                folder.mkdir()
                (folder / "notes.et.zst").write_text("mine", encoding="utf-8")
            for more in ((), ("--zstd",), ()):
                lower(folder, LLAMA, plan=PAIRS[0], sets=PAIRS[1], more=[*more, *force])
                kept = ["notes.et.zst"] if force else []
                suffix = ".et.zst" if more else ".et"
                self.assertEqual(sorted([*(f"llama.{rank}{suffix}" for rank in range(8)), *kept,
                                         "comm_group.json", "manifest.json"]), names_of(folder))

    def test_simulators(self):
        done = succeed("lower", LLAMA, *options(None, *PAIRS), "--zstd", "--astra-sim", "-o",
                       self.scratch / "out")
        self.assertIn("E0720", done.err)
        self.assertNotIn("astra-sim.sh", done.out)


class Read(Case):
    def alike(self, *words):
        """What the program says of the plain traces, once it says the same of the packed ones."""
        said = [run(*words, cwd=self.scratch / folder) for folder in ("plain", "packed")]
        self.assertEqual((said[0].status, said[0].out, said[0].err),
                         (said[1].status, said[1].out, said[1].err), words)
        self.assertNotEqual("", said[0].out)

    def test_whatever_reads_traces(self):
        for plan, sets in (ALIKE, PAIRS, STAGES):
            lower(self.scratch / "plain" / "out", LLAMA, plan=plan, sets=sets)
            lower(self.scratch / "packed" / "out", LLAMA, plan=plan, sets=sets, more=["--zstd"])
            self.alike("verify", "out", "--format", "json", "--seeds", "2")
            self.alike("verify", "out/llama")
            self.alike("dump", "out")
            self.alike("dump", "out", "--text", "--ranks", "1,6-7")
            self.alike("simulate", "out", "--machine", "h100_sxm")
        dumped = [succeed("dump", self.scratch / folder / "out", "--format", "json").out
                  for folder in ("plain", "packed")]
        self.assertEqual(dumped[0], dumped[1].replace(".et.zst", ".et"))

    def test_some_of_them(self):
        """Frames of other levels, in several pieces, with a frame to skip; ranks that are not compressed."""
        plain = lower(self.scratch / "plain" / "out", LLAMA, plan=STAGES[0], sets=STAGES[1])
        packed = self.scratch / "packed" / "out"
        shutil.copytree(plain, packed)
        skipped = bytes((0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0)) + b"abc"
        for rank, pack in enumerate((lambda raw: zstd.pack(raw, 19), lambda raw: zstd.pack(raw, 1),
                                     lambda raw: zstd.pack(raw[:100]) + skipped + zstd.pack(raw[100:]))):
            path = packed / f"llama.{rank}.et"
            path.with_suffix(".et.zst").write_bytes(pack(path.read_bytes()))
            path.unlink()
        self.alike("verify", "out", "--format", "json")
        self.alike("dump", "out", "--text")

    def refused(self, folder, code, *texts):
        for command in ("verify", "dump"):
            done = run(command, folder)
            self.assertEqual(1, done.status, done)
            for text in texts:
                self.assertIn(text, done.err, done)
        self.assertIn(code, run("verify", folder).err)

    def test_damaged(self):
        folder = lower(self.scratch / "out", LLAMA, plan=ALIKE[0], sets=ALIKE[1], more=["--zstd"])
        path = folder / "llama.3.et.zst"
        frame = path.read_bytes()
        for cut in {1, 4, 9, len(frame) // 2, len(frame) - 1}:
            path.write_bytes(frame[:cut])
            self.refused(folder, "E0802", "3", "zstd")
        for at in range(0, len(frame), len(frame) // 40):
            path.write_bytes(frame[:at] + bytes((frame[at] ^ 0x10,)) + frame[at + 1:])
            self.refused(folder, "E0802", "3")
        path.write_bytes(frame + b"more")
        self.refused(folder, "E0802", "something follows its zstd frame")
        path.write_bytes(b"")
        self.refused(folder, "E0802", "the file is empty")

    def test_named_otherwise(self):
        folder = lower(self.scratch / "out", LLAMA, plan=ALIKE[0], sets=ALIKE[1], more=["--zstd"])
        packed, plain = folder / "llama.3.et.zst", folder / "llama.3.et"
        frame = packed.read_bytes()
        packed.write_bytes(zstd.unpack(frame))
        self.refused(folder, "E0802", "it is not compressed with zstd, as its name says")
        os.rename(packed, plain)
        plain.write_bytes(frame)
        self.refused(folder, "E0802",
                     "the file is compressed with zstd, and its name does not end in .et.zst")
        plain.write_bytes(zstd.unpack(frame))
        self.assertEqual(0, run("verify", folder).status)
        packed.write_bytes(frame)
        both = run("verify", folder)
        self.assertEqual(1, both.status)
        self.assertIn("E0807", both.err)
        self.assertIn("'llama.3.et' and 'llama.3.et.zst'", both.err)

    def test_what_a_frame_asks_for(self):
        """8 MB for its window at most, however much it would hold."""
        folder = lower(self.scratch / "out", LLAMA, plan=ALIKE[0], sets=ALIKE[1], more=["--zstd"])
        path = folder / "llama.3.et.zst"
        path.write_bytes(zstd.run_frame(1, window_log=24))
        self.refused(folder, "E0802", "its zstd frame needs more than 8 MB")
        path.write_bytes(zstd.run_frame(1, window_log=23))
        self.assertNotIn("8 MB", run("verify", folder).err)


if __name__ == "__main__":
    main()
