"""The bytes of every file depend on the spec and the values, and on nothing else."""

import json
import os

from etchtest import GPT, LLAMA, Case, main, options, run, snapshot, succeed

RUNS = (
    (LLAMA, "llama3_8b", "megatron_sp", dict(layers=3, dp=8, tp=4, batch=16, micro=2, seq=512)),
    (LLAMA, "llama2_7b", "megatron", dict(layers=2, dp=2, tp=8, batch=8, micro=1, seq=128)),
    (GPT, "gpt2", "megatron_sp", dict(layers=2, vocab=50304, dp=4, tp=4, batch=16, micro=4, seq=64)),
    (GPT, "gpt2", "ddp", dict(layers=2, dp=16, batch=16, micro=1, seq=64)),
)


class SameBytes(Case):
    def written(self, name, spec, chosen, *more, **how):
        folder = self.scratch / name
        succeed("lower", spec, *chosen, "-o", folder, *more, **how)
        return snapshot(folder)

    def test_runs_threads_and_folders(self):
        for spec, config, plan, sets in RUNS:
            with self.subTest(config=config, plan=plan):
                chosen = options(config, plan, sets)
                prefix = f"{config}.{plan}"
                first = self.written(f"{prefix}.one", spec, chosen)
                self.assertEqual(first, self.written(f"{prefix}.another/folder/further/down", spec, chosen))
                for threads in (1, 2, 8):
                    self.assertEqual(first,
                                     self.written(f"{prefix}.{threads}", spec, chosen, "-j", str(threads)))
                # In place of the first run.
                self.assertEqual(first, self.written(f"{prefix}.one", spec, chosen, "-j", "3"))

    def test_surroundings(self):
        """Neither the working folder, nor the way the spec is named, nor the locale changes a byte."""
        spec, config, plan, sets = RUNS[0]
        chosen = options(config, plan, sets)
        first = self.written("plain", spec, chosen)
        elsewhere = self.scratch / "elsewhere"
        elsewhere.mkdir()
        short = os.path.relpath(spec, elsewhere)
        self.assertEqual(first, self.written("relative", short, chosen, cwd=elsewhere))
        changed = {**os.environ, "LC_ALL": "C", "TZ": "Asia/Tokyo", "HOME": "/", "COLUMNS": "40"}
        self.assertEqual(first, self.written("changed", spec, chosen, env=changed))
        copy = self.scratch / "copy"
        copy.mkdir()
        for path in spec.parent.glob("*.etch"):
            (copy / path.name).write_bytes(path.read_bytes())
        self.assertEqual(first, self.written("copied", copy / spec.name, chosen))

    def test_answers(self):
        for arguments in (("check", LLAMA),
                          ("query", LLAMA, "traffic(step)", "--plan", "megatron_sp", "--by", "op"),
                          ("query", GPT, "comm(step)", "--plan", "megatron_sp"),
                          ("check", GPT, "--format", "json")):
            first, second = run(*arguments), run(*arguments)
            self.assertEqual((first.status, first.out, first.err), (second.status, second.out, second.err))
            self.assertEqual(0, first.status, first)

    def test_dry_run_tells_what_is_written(self):
        spec, config, plan, sets = RUNS[0]
        chosen = options(config, plan, sets)
        told = succeed("lower", spec, *chosen, "--dry-run", "--format", "json", cwd=self.scratch)
        self.assertEqual({}, snapshot(self.scratch))
        done = succeed("lower", spec, *chosen, "-o", self.scratch / "out", "--format", "json")
        written = snapshot(self.scratch / "out")
        told, done = json.loads(told.out), json.loads(done.out)
        self.assertEqual((None, str(self.scratch / "out")), (told.pop("written"), done.pop("written")))
        self.assertEqual(told, done)
        self.assertEqual((32, len(written)), (done["ranks"], done["files"]))
        self.assertEqual(sum(map(len, written.values())), done["bytes"])
        groups = json.loads(written["comm_group.json"])
        self.assertEqual(len(groups), done["groups"])


if __name__ == "__main__":
    main()
