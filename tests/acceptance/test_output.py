"""The output folder: made when it is missing, replaced as a whole, never mixed with files of others, and
nothing that looks finished after a failure."""

import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess

from etchtest import ETCH, LLAMA, Case, lower, main, options, run, snapshot

SIZES = dict(layers=2, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=56, vocab=48, batch=16, seq=16,
             micro=2)
FOUR, TWO = {**SIZES, "dp": 2, "tp": 2}, {**SIZES, "dp": 2, "tp": 1}


def chosen(sets):
    return options(None, "megatron_sp", sets)


class Folder(Case):
    def setUp(self):
        super().setUp()
        self.out = self.scratch / "out"

    def test_made_with_its_parents(self):
        deep = self.scratch / "a" / "b" / "c"
        lower(deep, LLAMA, plan="megatron_sp", sets=FOUR)
        self.assertEqual({"llama.0.et", "llama.1.et", "llama.2.et", "llama.3.et", "comm_group.json",
                          "manifest.json"},
                         set(snapshot(deep)))
        self.assertEqual(["a"], os.listdir(self.scratch))
        self.assertEqual(["c"], os.listdir(deep.parent))

    def test_files_can_be_read_and_written(self):
        lower(self.out, LLAMA, plan="megatron_sp", sets=FOUR)
        umask = os.umask(0)
        os.umask(umask)
        for path in self.out.iterdir():
            self.assertEqual(0o666 & ~umask, path.stat().st_mode & 0o7777, path)

    def test_an_empty_folder_is_used(self):
        self.out.mkdir()
        lower(self.out, LLAMA, plan="megatron_sp", sets=FOUR)
        self.assertEqual(6, len(snapshot(self.out)))

    def test_an_earlier_run_is_replaced_as_a_whole(self):
        lower(self.out, LLAMA, plan="megatron_sp", sets=FOUR)
        lower(self.out, LLAMA, plan="megatron_sp", sets=TWO, more=["--name", "other"])
        self.assertEqual({"other.0.et", "other.1.et", "comm_group.json", "manifest.json"},
                         set(snapshot(self.out)))
        fresh = lower(self.scratch / "fresh", LLAMA, plan="megatron_sp", sets=TWO, more=["--name", "other"])
        self.assertEqual(snapshot(fresh), snapshot(self.out))
        self.assertEqual(["fresh", "out"], sorted(os.listdir(self.scratch)))

    def test_an_earlier_run_stays_when_this_one_fails(self):
        lower(self.out, LLAMA, plan="megatron_sp", sets=FOUR)
        before = snapshot(self.scratch)
        for sets in ({**FOUR, "tp": 3}, {name: size for name, size in FOUR.items() if name != "seq"}):
            done = run("lower", LLAMA, *chosen(sets), "-o", self.out)
            self.assertEqual(1, done.status, done)
            self.assertEqual(before, snapshot(self.scratch))

    def test_files_of_others(self):
        self.out.mkdir()
        (self.out / "notes.txt").write_text("mine", encoding="utf-8")
        before = snapshot(self.scratch)
        done = run("lower", LLAMA, *chosen(FOUR), "-o", self.out)
        self.assertEqual((1, 1), (done.status, len(done.errors())), done)
        self.assertIn("--force", done.err)
        self.assertEqual(before, snapshot(self.scratch))
        lower(self.out, LLAMA, plan="megatron_sp", sets=FOUR, more=["--force"])
        after = snapshot(self.out)
        self.assertEqual(b"mine", after.pop("notes.txt"))
        fresh = lower(self.scratch / "fresh", LLAMA, plan="megatron_sp", sets=FOUR)
        self.assertEqual(snapshot(fresh), after)

    def test_files_of_others_beside_an_earlier_run(self):
        lower(self.out, LLAMA, plan="megatron_sp", sets=FOUR)
        for name in ("notes.txt", "llama.4.et", "llama.0.et.bak", ".hidden"):
            with self.subTest(name):
                (self.out / name).write_text("mine", encoding="utf-8")
                before = snapshot(self.scratch)
                done = run("lower", LLAMA, *chosen(TWO), "-o", self.out)
                self.assertEqual(1, done.status, done)
                self.assertEqual(before, snapshot(self.scratch))
                (self.out / name).unlink()

    def test_a_manifest_of_others_is_no_earlier_run(self):
        self.out.mkdir()
        (self.out / "manifest.json").write_text(json.dumps({"name": "a web page"}), encoding="utf-8")
        before = snapshot(self.scratch)
        done = run("lower", LLAMA, *chosen(FOUR), "-o", self.out)
        self.assertEqual(1, done.status, done)
        self.assertEqual(before, snapshot(self.scratch))

    def test_a_file_in_its_place(self):
        self.out.write_text("mine", encoding="utf-8")
        for more in ([], ["--force"]):
            done = run("lower", LLAMA, *chosen(FOUR), "-o", self.out, *more)
            self.assertIn(done.status, (1, 3), done)
            self.assertEqual({"out": b"mine"}, snapshot(self.scratch))

    def test_the_manifest_says_nothing_of_here_and_now(self):
        lower(self.out, LLAMA, plan="megatron_sp", sets=FOUR)
        text = (self.out / "manifest.json").read_text(encoding="utf-8")
        for word in (str(self.scratch), "out", str(LLAMA.parent), os.uname().nodename):
            self.assertNotIn(f'"{word}', text)
        manifest = json.loads(text)
        bound = {row["name"]: row["value"] for row in manifest["bindings"]}
        for name, size in FOUR.items():
            self.assertEqual(str(size), bound[name])

    def test_dry_run_touches_nothing(self):
        lower(self.out, LLAMA, plan="megatron_sp", sets=FOUR)
        before = snapshot(self.scratch)
        done = run("lower", LLAMA, *chosen(TWO), "-o", self.out, "--dry-run")
        self.assertEqual(0, done.status, done)
        for word in ("ranks", "class", "nodes", "bytes", "groups"):
            self.assertIn(word, done.out)
        self.assertEqual(before, snapshot(self.scratch))


class Disk(Case):
    """Exit status 3."""

    def setUp(self):
        super().setUp()
        self.out = self.scratch / "out"

    def broken(self, done):
        self.assertEqual((3, ""), (done.status, done.out), done)
        self.assertNotEqual("", done.err)

    def test_a_folder_that_cannot_be_made(self):
        self.write("file", "mine")
        before = snapshot(self.scratch)
        for folder in map(pathlib.Path,
                          (self.scratch / "file" / "out", "/proc/nothing/out", "/dev/null/out")):
            with self.subTest(folder):
                done = run("lower", LLAMA, *chosen(FOUR), "-o", folder)
                self.broken(done)
                self.assertIn(str(folder.parent), done.err)
                self.assertEqual(before, snapshot(self.scratch))

    def test_files_may_not_grow(self):
        """A write fails in the middle of a trace, as on a full disk."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        for threads in ("1", "4"):
            self.broken(run("lower", LLAMA, *chosen(FOUR), "-o", self.out, "-j", threads, preexec_fn=limit))
            self.assertEqual({}, snapshot(self.scratch))
        lower(self.out, LLAMA, plan="megatron_sp", sets=FOUR)
        before = snapshot(self.scratch)
        self.broken(run("lower", LLAMA, *chosen(TWO), "-o", self.out, preexec_fn=limit))
        self.assertEqual(before, snapshot(self.scratch))

    def test_full_disk(self):
        """A file system of 32 kB, where one can be mounted; elsewhere files that may not grow stand for
        it."""
        disk = self.scratch / "disk"
        disk.mkdir()
        script = f"""
mount -t tmpfs -o size=32k none {disk} || exit 99
{ETCH} lower {LLAMA} {' '.join(chosen(FOUR))} -o {disk}/out >{self.scratch}/stdout 2>{self.scratch}/stderr
status=$?
ls -AR {disk} >{self.scratch}/left
umount {disk}
exit $status
"""
        unshare = shutil.which("unshare")
        prefix = [unshare, "--map-root-user", "--user", "--mount"] if unshare else []
        if os.geteuid() == 0 and unshare:
            prefix = [unshare, "--mount"]
        done = subprocess.run([*prefix, "sh", "-c", script], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              check=False)
        if done.returncode in (1, 99) and not (self.scratch / "left").exists():
            disk.rmdir()
            self.test_files_may_not_grow()
            return
        self.assertEqual(3, done.returncode, (self.scratch / "stderr").read_text(encoding="utf-8"))
        self.assertEqual("", (self.scratch / "stdout").read_text(encoding="utf-8"))
        self.assertIn("space", (self.scratch / "stderr").read_text(encoding="utf-8"))
        left = (self.scratch / "left").read_text(encoding="utf-8").split()
        self.assertEqual([f"{disk}:"], left)

    def test_results_that_cannot_be_written(self):
        for arguments in (("query", LLAMA, "params(model)"), ("check", LLAMA), ("help",)):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([ETCH, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE,
                                      check=False)
            self.assertEqual(3, done.returncode, done.stderr)

    def test_interrupted(self):
        """A run that is ended from outside leaves nothing that looks finished."""
        for end in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU):
            with self.subTest(end.name):
                self.hold_interrupted(end)

    def hold_interrupted(self, end):
        sets = {**FOUR, "layers": 400, "dp": 16, "batch": 64, "micro": 4}
        process = subprocess.Popen([ETCH, "lower", str(LLAMA), *chosen(sets), "-o", str(self.out)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while process.poll() is None and not os.listdir(self.scratch):
            pass
        process.send_signal(end)
        process.communicate()
        if process.returncode == 0:  # it was faster
            self.assertFalse([name for name in os.listdir(self.scratch) if name != "out"])
            shutil.rmtree(self.out)
            return
        self.assertEqual(4, process.returncode)
        self.assertEqual({}, snapshot(self.scratch))


if __name__ == "__main__":
    main()
