"""Traces as one file, or stream: `etch lower -o X.tar`, `-o -`. What is in the archive is what Python's
tarfile and GNU tar find in it, and has the bytes of the folder; the file is there as a whole or not at all.
"""

import os
import random
import re
import resource
import signal
import subprocess
import sys
import tarfile

from effort import effort, first_seed
from etchtest import ETCH, LLAMA, Case, main, options, run, snapshot, succeed
from test_compressed import ALIKE, LONG, PAIRS, STAGES

SEED = first_seed(1)


def words_of(case, *more):
    return ["lower", LLAMA, *options(None, *case), "-q", "--no-sync", *more]


def piped(*words, **how):
    """The status, and what went into a pipe."""
    done = subprocess.run([ETCH, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, **how)
    return done.returncode, done.stdout, done.stderr.decode()


class Archives(Case):
    def names(self):
        return sorted(path.name for path in self.scratch.iterdir())

    def test_same_files_as_the_folder(self):
        for case, more in ((ALIKE, ()), (PAIRS, ("--astra-sim",)), (STAGES, ()), (LONG, ()),
                           (ALIKE, ("--link",)), (ALIKE, ("--zstd",)), (STAGES, ("--zstd",)),
                           (LONG, ("--zstd", "--link")), (STAGES, ("--ranks", "1,5-6"))):
            folder, archive = self.scratch / "out", self.scratch / "out.tar"
            told = [re.sub(r"(?m)^run .*\n", "", succeed(*words_of(case, *more, "-o", path)).out)
                    for path in (folder, archive)]
            self.assertEqual(told[0].replace(str(folder), str(archive)), told[1])
            bytes_of = archive.read_bytes()
            for threads in (1, 3):
                self.assertEqual((0, bytes_of, ""), piped(*words_of(case, *more, "-o", "-", "-j", threads)))
            with tarfile.open(archive) as tar:
                entries = tar.getmembers()
                self.assertEqual(snapshot(folder), {entry.name: tar.extractfile(entry).read()
                                                    for entry in entries})
            self.assertEqual("comm_group.json", entries[0].name)
            self.assertEqual("manifest.json", entries[-1].name)
            self.assertEqual({(0, 0, 0o644, 0, "", "")}, {(e.uid, e.gid, e.mode, e.mtime, e.uname, e.gname)
                                                          for e in entries})
            self.unpack(archive, folder)

    def unpack(self, archive, folder):
        other = self.scratch / "other"
        other.mkdir()
        subprocess.run(["tar", "-xf", archive, "-C", other], check=True)
        self.assertEqual(snapshot(folder), snapshot(other))
        subprocess.run(["rm", "-r", other, folder, archive], check=True)

    def test_links(self):
        succeed(*words_of(ALIKE, "--link", "-o", self.scratch / "out.tar"))
        with tarfile.open(self.scratch / "out.tar") as tar:
            links = [entry.linkname for entry in tar if entry.islnk()]
        self.assertEqual(["llama.0.et"] * 7, links)
        subprocess.run(["tar", "-xf", "out.tar"], cwd=self.scratch, check=True)
        self.assertEqual(1, len({path.stat().st_ino for path in self.scratch.glob("*.et")}))

    def test_names(self):
        """Longer than a header has room for, and of other letters."""
        for name in ("a" * 88, "a" * 94, "a" * 95, "a" * 230, "é" * 20, "wörter" * 20):
            for more in ((), ("--link",), ("--zstd",)):
                archive = self.scratch / "out.tar"
                succeed(*words_of(ALIKE, *more, "--name", name, "-o", archive))
                suffix = ".et.zst" if "--zstd" in more else ".et"
                expected = sorted([*(f"{name}.{rank}{suffix}" for rank in range(8)), "comm_group.json",
                                   "manifest.json"])
                with tarfile.open(archive) as tar:
                    self.assertEqual(expected, sorted(tar.getnames()))
                said = subprocess.run(["tar", "-tf", archive, "--quoting-style=literal"], check=True,
                                      stdout=subprocess.PIPE, text=True)
                self.assertEqual(expected, sorted(said.stdout.splitlines()))

    def test_what_is_in_the_place(self):
        archive = self.scratch / "out.tar"
        succeed(*words_of(ALIKE, "-o", archive))
        archive.chmod(0o600)
        succeed(*words_of(STAGES, "-o", archive))  # of an earlier run
        self.assertEqual(piped(*words_of(STAGES, "-o", "-"))[1], archive.read_bytes())
        self.assertEqual(0o600, archive.stat().st_mode & 0o777)
        archive.write_bytes(b"")
        succeed(*words_of(ALIKE, "-o", archive))
        kept = archive.read_bytes()
        for name, make in (("text.tar", lambda path: path.write_text("mine" * 500, encoding="utf-8")),
                           ("other.tar", lambda path: tarfile.open(path, "w").close()),
                           ("folder.tar", lambda path: path.mkdir()),
                           ("link.tar", lambda path: path.symlink_to("out.tar"))):
            make(self.scratch / name)
            before = None if name == "folder.tar" else (self.scratch / name).read_bytes()
            done = run(*words_of(ALIKE, "-o", self.scratch / name))
            self.assertEqual((1, 1), (done.status, len(done.errors())), str(done))
            self.assertIn(done.errors()[0]["code"], ("E0701", "E0702"))
            self.assertEqual(before, None if before is None else (self.scratch / name).read_bytes())
        done = run(*words_of(ALIKE, "-o", archive, "--force"))
        self.assertEqual((1, ["E0701"]), (done.status, [error["code"] for error in done.errors()]))
        succeed(*words_of(ALIKE, "-o", str(self.scratch / "folder.tar") + "/"))
        self.assertIn("manifest.json", os.listdir(self.scratch / "folder.tar"))
        self.assertEqual(2, run(*words_of(ALIKE, "-o", "-", "--format", "json")).status)
        self.assertEqual(kept, archive.read_bytes())
        for command in ("verify", "simulate"):
            done = run(command, archive, *(["--machine", "h100_sxm"] if command == "simulate" else []))
            self.assertEqual(1, done.status, str(done))
            self.assertIn("tar -xf", done.err)

    def test_a_file_that_may_not_grow(self):
        succeed(*words_of(ALIKE, "-o", self.scratch / "old.tar"))
        old = (self.scratch / "old.tar").read_bytes()
        size = len(piped(*words_of(LONG, "-o", "-"))[1])
        for limit in (0, 700, 70000, size // 2, size - 1):
            def small(limit=limit):
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            for name in ("old.tar", "new.tar"):
                done = run(*words_of(LONG, "-o", self.scratch / name, "-j", "3"), preexec_fn=small)
                self.assertEqual(3, done.status, str(done))
                self.assertIn("E0704", done.err)
                self.assertEqual(["old.tar"], self.names())
        self.assertEqual(old, (self.scratch / "old.tar").read_bytes())
        with open("/dev/full", "wb") as full:
            done = subprocess.run([ETCH, *map(str, words_of(LONG, "-o", "-"))], stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        self.assertEqual(3, done.returncode)
        self.assertIn(b"E0704", done.stderr)

    def test_a_reader_that_goes(self):
        """The pipe is closed, or what was read is cut short: nothing of it looks finished."""
        whole = piped(*words_of(LONG, "-o", "-"))[1]
        rng = random.Random(SEED)
        for ignored in (False, True):
            for _ in range(3):
                command = [ETCH, *map(str, words_of(LONG, "-o", "-"))]
                with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      restore_signals=not ignored) as process:
                    got = process.stdout.read(rng.randrange(1, len(whole) // 2))
                    process.stdout.close()
                    said = process.stderr.read()
                self.assertIn(process.returncode, (3, -signal.SIGPIPE), said)
                self.assertTrue(whole.startswith(got))
        for _ in range(effort(20)):
            part = self.scratch / "part.tar"
            part.write_bytes(whole[:rng.randrange(512, len(whole) - 8192)])
            subprocess.run(["tar", "-xf", "part.tar"], cwd=self.scratch, stderr=subprocess.DEVNULL,
                           check=False)
            self.assertNotIn("manifest.json", self.names())

    def test_a_reader_that_stops(self):
        """A signal ends the run, though nobody takes what it writes."""
        for end in (signal.SIGTERM, signal.SIGINT):
            command = [ETCH, *map(str, words_of(LONG, "-o", "-", "-j", "3"))]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                process.stdout.read(100000)
                process.send_signal(end)
                said = process.stderr.read()
                self.assertEqual(4, process.wait(), said)
                self.assertIn(b"E0705", said)

    def test_killed(self):
        """At any moment: the file of the earlier run, or that of the new one."""
        archive = self.scratch / "out.tar"
        succeed(*words_of(ALIKE, "-o", archive))
        known = {archive.read_bytes(), piped(*words_of(LONG, "-o", "-"))[1]}
        rng = random.Random(SEED)
        killed = 0
        while killed < effort(10):
            with subprocess.Popen([ETCH, *map(str, words_of(LONG, "-o", archive))],
                                  stdout=subprocess.DEVNULL) as process:
                try:
                    process.wait(rng.uniform(0, 0.3))
                except subprocess.TimeoutExpired:
                    process.kill()
                    killed += 1
            self.assertIn(archive.read_bytes(), known)
        succeed(*words_of(LONG, "-o", archive))
        self.assertEqual(["out.tar"], self.names())

    def test_memory(self):
        """A chunk of each thread is held, and never a trace, unless a sanitizer has its share in it."""
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))
        if run("--version", preexec_fn=limit).status != 0:
            return
        script = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
                  "stdout=subprocess.DEVNULL); "
                  "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        long = ("megatron_sp", {"layers": 320, "dp": 1, "tp": 4, "batch": 8, "seq": 64, "micro": 8})
        for more in ((), ("--zstd",)):
            words = ["lower", LLAMA, *options("llama3_8b", *long), "-q", "--no-sync", "-j", "2", *more]
            done = subprocess.run([sys.executable, "-c", script, ETCH, *map(str, words), "-o",
                                   self.scratch / "out.tar"], stdout=subprocess.PIPE, check=True)
            self.assertLess(1024 * int(done.stdout), 64 << 20)


if __name__ == "__main__":
    main()
