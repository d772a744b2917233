"""What `etch lower` writes for the shipped models under every plan runs to its end whatever the timing, and
under random durations no stage holds more microbatches, and no rank more ready nodes, than it should."""

import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "acceptance"))
from etchtest import BASE, GPT, LLAMA, Case, lower, run, trace, with_plans  # noqa: E402

SIZES = {LLAMA: dict(layers=6, hidden=64, heads=8, kv_heads=4, head_dim=16, ffn=128, vocab=64),
         GPT: dict(layers=6, hidden=64, heads=4, vocab=64, positions=64)}
STEP = dict(batch=32, micro=8, seq=64)
PLAN = re.compile(r"^parallel (\w+) \{.*?^\}", re.MULTILINE | re.DOTALL)
MOST_READY = 16  # nodes of a rank: simulators slow down with more


def plans(spec):
    """name -> text"""
    return {match[1]: match[0] for match in PLAN.finditer(with_plans(spec))}


def axes(text):
    return re.findall(r"\w+", re.search(r"mesh\s*\[(.*?)\]", text)[1])


def schedule(text):
    """None, or the schedule of the plan's stages."""
    if not re.search(r"^\s*stage\b", text, re.MULTILINE):
        return None
    found = re.search(r"schedule\s*=\s*(\w+)", text)
    return found[1] if found else "one_f_one_b"


def stages(folder):
    """For each rank its stage, and how many there are."""
    mesh = json.loads((folder / "manifest.json").read_text())["mesh"]
    sizes = [axis["size"] for axis in mesh]
    names = [axis["axis"] for axis in mesh]
    ranks = range(len(list(folder.glob("*.et"))))
    if "pp" not in names:
        return [0 for _ in ranks], 1
    at = names.index("pp")
    return [trace.coordinates(rank, sizes)[at] for rank in ranks], sizes[at]


def peak(*arguments):
    """Kilobytes of memory that the program takes. A sanitizer may not hold back what is freed."""
    script = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
              "stdout=subprocess.DEVNULL); "
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    environment = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0"}
    command = [sys.executable, "-c", script, os.environ["ETCH"], *map(str, arguments)]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment).stdout)


class Lowered(Case):
    def verify(self, folder, *options):
        done = run("verify", folder, "--format", "json", *options)
        self.assertEqual((0, ""), (done.status, done.err), done)
        return json.loads(done.out)

    def check(self, spec, plan, text, seeds, **more):
        """Lowers, verifies, and holds what happens under random durations against the schedule."""
        values = {**SIZES[LLAMA if "llama" in spec.name else GPT], **STEP, **{axis: 2 for axis in axes(text)},
                  **more}
        folder = lower(self.scratch / f"{spec.stem}.{plan}", spec, plan=plan, sets=values, more=["-q"])
        told = self.verify(folder, "--seeds", seeds)
        for which in ("verdict", "eager", "rendezvous"):
            self.assertEqual("always", told[which], which)
        self.assertEqual(told["ranks"], len(told["marks"]))
        stage_of, count = stages(folder)
        for rank, marks in enumerate(told["marks"]):
            self.assertLessEqual(marks["ready"], MOST_READY, (plan, rank))
            most = {None: 1, "one_f_one_b": min(values["micro"], count - stage_of[rank])}
            self.assertLessEqual(marks["in_flight"], most.get(schedule(text), values["micro"]), (plan, rank))
            self.assertGreater(marks["in_flight"], 0)
        return folder, told

    def test_every_plan(self):
        for spec in SIZES:
            self.assertTrue(plans(spec))
            for plan, text in plans(spec).items():
                with self.subTest(spec=spec.name, plan=plan):
                    folder, told = self.check(spec, plan, text, 50)
                    self.assertEqual([], trace.check(folder))
                    self.assertEqual(sum(1 for _ in folder.glob("*.et")), told["ranks"])

    def staged(self, wanted):
        """Llama with another schedule: a plan with stages, and its text."""
        name, text = next(item for item in plans(LLAMA).items() if schedule(item[1]) == "one_f_one_b")
        line = re.search(r"stage \(.*?\) @ pp[^#\n]*", text)[0]
        changed = text.replace(line,
                               re.sub(r",\s*schedule.*", "", line).rstrip() + f", schedule = {wanted}\n")
        spec = self.scratch / f"llama_{re.sub(r'[^a-z_]', '', wanted)}.etch"
        spec.write_text(with_plans(LLAMA).replace(text, changed), encoding="utf-8")
        (self.scratch / BASE.name).write_bytes(BASE.read_bytes())
        return spec, name, changed

    def test_one_f_one_b_holds_under_a_thousand_seeds(self):
        spec, plan, text = self.staged("one_f_one_b")
        _, told = self.check(spec, plan, text, 1000, pp=4, dp=1, tp=1)
        self.assertEqual([4, 3, 2, 1], [marks["in_flight"] for marks in told["marks"]])

    def test_gpipe_holds_all(self):
        spec, plan, text = self.staged("gpipe")
        _, told = self.check(spec, plan, text, 100, pp=4, dp=1, tp=1)
        self.assertEqual([8, 8, 8, 8], [marks["in_flight"] for marks in told["marks"]])

    def test_names_and_threads(self):
        """Two sets of traces in one folder are told apart; threads change nothing."""
        folder = lower(self.scratch / "one", LLAMA, plan="ddp", sets={**SIZES[LLAMA], **STEP, "dp": 4},
                       more=["-q"])
        first = self.verify(folder, "-j", "1")
        self.assertEqual(first, self.verify(folder, "-j", "7"))
        self.assertEqual(first, self.verify(folder / "llama"))
        for path in folder.glob("llama.*.et"):
            (folder / path.name.replace("llama", "again")).write_bytes(path.read_bytes())
        self.assertEqual(first, self.verify(folder / "again"))
        refused = run("verify", folder)
        self.assertEqual(1, refused.status)
        self.assertIn("E0807", refused.err)

    def test_full_names(self):
        """Microbatches in flight are told from full names as from short ones."""
        spec, plan, text = self.staged("one_f_one_b")
        values = {**SIZES[LLAMA], **STEP, **{axis: 2 for axis in axes(text)}, "pp": 4}
        told = [self.verify(lower(self.scratch / names, spec, plan=plan, sets=values,
                                  more=["-q", "--names", names]),
                            "--seeds", "5")["marks"] for names in ("short", "full")]
        self.assertEqual(*told)

    def test_memory_does_not_grow_with_ranks(self):
        """Ranks of one program are held once: 16 times as many take less than twice the memory, sanitizers'
        share included."""
        peaks = []
        for ranks in (4, 64):
            folder = lower(self.scratch / f"dp{ranks}", LLAMA, plan="ddp", more=["-q"],
                           sets={**SIZES[LLAMA], "batch": 4 * ranks, "micro": 4, "seq": 64, "layers": 50,
                                 "dp": ranks})
            peaks.append(peak("verify", folder, "-j", "1"))
        self.assertLess(peaks[1], 2 * peaks[0], peaks)


if __name__ == "__main__":
    unittest.main()
