"""Sweeps in parts: what shares and interrupted runs come to is, byte for byte, what one run writes; and
nothing that looks finished is not. Runs are killed, parts are cut short and damaged at random places, files
may not grow, readers go away, parts are missing."""

import os
import random
import resource
import signal
import subprocess
import time

from effort import effort, first_seed
from etchtest import ETCH, LLAMA, Case, main, run, succeed

SEED = first_seed(1)
CUTS, KILLS = effort(200), effort(20)

GRID = ["--plans", "megatron_pp,fsdp", "--configs", "llama3_8b,llama3_70b", "--set", "batch=512", "--over",
        "pp = 1, 2, 4, 5", "--over", "dp = powers(2, 0, 5)", "--over", "micro = divisors(batch/dp)", "--over",
        "seq = range(512, 8192, 512)", "--where", "memory(peak) <= 640 GB, pp*dp <= 64"]
RESULTS = (["--select", "comm(step), memory(peak)"],
           ["--select", "comm(step)/7, memory(peak)*10^12", "--format", "jsonl"],
           ["--select", "comm(step)", "--format", "table"],
           ["--best", "comm(step)", "--top", "40", "--select", "memory(peak)"],
           ["--pareto", "comm(step), memory(peak), traffic(step)", "--format", "table"])


class Parts(Case):
    def sweep(self, *more, **how):
        return run("sweep", LLAMA, *GRID, *more, **how)

    def whole(self, results):
        """What one run writes, and says."""
        done = self.sweep(*results)
        self.assertEqual(0, done.status, str(done))
        return done

    def read(self, name):
        return (self.scratch / name).read_bytes()

    def names(self):
        return sorted(path.name for path in self.scratch.iterdir())

    def test_shares(self):
        rng = random.Random(SEED)
        for results in RESULTS:
            whole = self.whole(results)
            shares = rng.choice([1, 2, 3, 7])
            parts = [self.scratch / f"part.{i}" for i in range(1, shares + 1)]
            for i, part in enumerate(parts):
                done = self.sweep(*results, "--shard", f"{i + 1}/{shares}", "-o", part)
                self.assertEqual((0, "", ""), (done.status, done.out, done.err), str(done))
            rng.shuffle(parts)
            merged = succeed("merge", *parts)
            self.assertEqual(whole.out, merged.out)
            self.assertEqual(whole.err, merged.err)
            succeed("merge", *parts, "-o", self.scratch / "merged")
            self.assertEqual(whole.out.encode(), self.read("merged"))
            # a part that is finished is not made again
            before = parts[0].stat()
            self.assertEqual(0, self.sweep(*results, "--shard",
                                           parts[0].suffix[1:] + f"/{shares}", "-o", parts[0],
                                           "--resume").status)
            self.assertEqual(before.st_mtime_ns, parts[0].stat().st_mtime_ns)
            for part in parts:
                part.unlink()

    def test_cut_and_damaged(self):
        """Of a part that was cut short anywhere, or has other bytes somewhere, no row is lost or wrong."""
        rng = random.Random(SEED + 1)
        for results in (RESULTS[0], RESULTS[3]):
            part, unfinished = self.scratch / "part", self.scratch / "part.part"
            self.sweep(*results, "--shard", "2/3", "-o", part)
            good = part.read_bytes()
            for number in range(CUTS // 2):
                part.unlink(missing_ok=True)
                at = rng.randrange(len(good))
                bad = good[:at]
                if number % 4 == 3:
                    bad = bad[:-1] + bytes([rng.randrange(256)]) + good[at:]
                unfinished.write_bytes(bad)
                if number % 4 == 3:
                    part.write_bytes(bad)
                    merged = run("merge", part)
                    self.assertEqual((1, ""), (merged.status, merged.out), str(merged))
                    part.unlink()
                done = self.sweep(*results, "--shard", "2/3", "-o", part, "--resume")
                if done.status == 1:  # the header is damaged: that is said
                    self.assertIn("E0660", done.err, str(done))
                    self.assertFalse(part.exists())
                    continue
                self.assertEqual(0, done.status, str(done))
                self.assertEqual(good, part.read_bytes(), f"{at} of {len(good)}")
                self.assertFalse(unfinished.exists())

    def test_killed(self):
        rng = random.Random(SEED + 2)
        whole = self.whole(RESULTS[0]).out.encode()
        kills = 0
        while kills < KILLS:
            out = self.scratch / "rows.csv"
            command = [ETCH, "sweep", str(LLAMA), *GRID, *RESULTS[0], "-o", str(out), "--resume", "-q"]
            for _ in range(100):
                with subprocess.Popen(command) as process:
                    time.sleep(rng.random() * 0.2)
                    process.send_signal(signal.SIGKILL)
                    ended = process.wait()
                if ended == 0:
                    break
                kills += 1
                if out.exists():
                    self.assertEqual(whole, out.read_bytes())
                    out.unlink()
            else:
                self.assertEqual(0, run(*command[1:]).status)
            self.assertEqual(whole, out.read_bytes())
            out.unlink()
            for left in self.scratch.iterdir():
                self.assertTrue(left.name.startswith(".") or left.name.endswith(".part"), left)
                left.unlink()

    def test_full_disk(self):
        """A file that may not grow: no result; with room again, the same command goes on."""
        whole = self.whole(RESULTS[0]).out.encode()
        size = len(whole)
        for limit in (100, 3000, 4 * 4096, size // 3, size - 10):
            def small(limit=limit):
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            done = self.sweep(*RESULTS[0], "-o", self.scratch / "rows.csv", "--resume", preexec_fn=small)
            self.assertEqual(3, done.status, str(done))
            self.assertFalse((self.scratch / "rows.csv").exists())
            self.assertEqual(0, self.sweep(*RESULTS[0], "-o", self.scratch / "rows.csv", "--resume").status)
            self.assertEqual(whole, self.read("rows.csv"))
            self.assertEqual(["rows.csv"], self.names())
            (self.scratch / "rows.csv").unlink()

        def smaller():
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        self.sweep(*RESULTS[0], "--shard", "1/2", "-o", self.scratch / "a")
        self.sweep(*RESULTS[0], "--shard", "2/2", "-o", self.scratch / "b")
        done = run("merge", self.scratch / "a", self.scratch / "b", "-o", self.scratch / "rows.csv",
                   preexec_fn=smaller)
        self.assertEqual(3, done.status, str(done))
        self.assertEqual(["a", "b"], self.names())

    def test_closed_pipe(self):
        for i in (1, 2):
            self.sweep(*RESULTS[0], "--shard", f"{i}/2", "-o", self.scratch / f"p{i}")
        merge = [ETCH, "merge", str(self.scratch / "p1"), str(self.scratch / "p2")]
        sweep = [ETCH, "sweep", str(LLAMA), *GRID]
        reader, writer = os.pipe()
        os.close(reader)
        for command in (merge, [*sweep, *RESULTS[0]], [*sweep, *RESULTS[3]]):
            for ignored in (False, True):
                done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
                                      restore_signals=not ignored)
                self.assertIn(done.returncode, (3, -signal.SIGPIPE), done.stderr)
            with open("/dev/full", "wb") as full:
                done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(3, done.returncode, done.stderr)
            self.assertIn("cannot write the r", done.stderr)
        os.close(writer)

    def test_what_does_not_go_together(self):
        for i in (1, 2, 3):
            self.sweep(*RESULTS[0], "--shard", f"{i}/3", "-o", self.scratch / f"p{i}")
        self.sweep(*RESULTS[1], "--shard", "3/3", "-o", self.scratch / "q3")
        self.sweep(*RESULTS[0], "--shard", "3/3", "-o", self.scratch / "s3", "--set", "dp=1")
        (self.scratch / "cut").write_bytes(self.read("p3")[:-20])
        (self.scratch / "empty").write_bytes(b"")
        for parts, word in ((["p1", "p3"], "1 of 3 parts are missing, the first is 2/3"),
                            (["p1", "p2", "q3"], "another sweep"), (["p1", "p2", "p1"], "the same part"),
                            (["p1", "p2", "cut"], "is not finished"), (["p1", "p2", "empty"], "no part"),
                            ([str(LLAMA), "p1"], "no part"), (["p1", "p2", "none"], "cannot read")):
            done = run("merge", *(self.scratch / part for part in parts), "-o", self.scratch / "rows")
            self.assertIn(done.status, (1, 3), str(done))
            self.assertEqual(1, len(done.errors()), str(done))
            self.assertIn(word, done.err)
            self.assertFalse((self.scratch / "rows").exists())
        for more in (["--shard", "4/3", "-o", "x"], ["--shard", "x", "-o", "x"], ["--shard", "1/2"],
                     ["--resume"], ["--shard", "0/2", "-o", "x"]):
            done = self.sweep(*RESULTS[0], *more)
            self.assertEqual(1, done.status, str(done))
            self.assertIn("E0660", done.err)
        (self.scratch / "rows.part").write_text("precious", encoding="utf-8")
        done = self.sweep(*RESULTS[0], "-o", self.scratch / "rows", "--resume")
        self.assertIn("E0660", done.err, str(done))
        self.assertEqual(b"precious", self.read("rows.part"))


if __name__ == "__main__":
    main()
