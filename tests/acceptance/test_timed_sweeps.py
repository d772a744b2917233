"""Sweeps over more than numbers: runs, machines and their numbers, schedules and other options of plans; and
times of the step as columns. Each row is what queries say of it, digit by digit; the queries know nothing of
sweeps."""

import csv
import io
import itertools
import random
import re
import shutil

from effort import effort, first_seed
from etchtest import LLAMA, Case, main, run, settings, succeed
from shipped import SMALL

SEED = first_seed(1)
SWEEPS = effort(8)

SIZES = ("seq", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")
SMALL_LLAMA = {name: SMALL[name] for name in SIZES}
TIMED = ["time(step)", "mfu(step)", "hfu(step)", "tokens_per_second(step)", "2*time(step)",
         "time(step)*tokens_per_second(step)", "comm(step)/time(step)"]
UNTIMED = ["memory(peak)", "comm(step)", "flops(step)"]
CHOICES = {"plan.schedule": ["gpipe", "one_f_one_b", "interleaved(virtual = 2)"],
           "plan.recompute": ["none", "full", "layer", "attention"],
           "nvlink.bandwidth": ["100 GB/s", "450 GB/s", "0.9 TB/s"],
           "network.bandwidth": ["25 GB/s", "400 Gbit/s"]}


def table(done):
    return list(csv.DictReader(io.StringIO(done.out)))


class TimedSweeps(Case):
    def rows_of(self, rng):
        """A random sweep: its command, choices by column, axes."""
        choices = {"plan": rng.sample(["megatron_pp", "megatron", "fsdp"], rng.randrange(1, 3)),
                   "machine": rng.sample(["h100_sxm", "a100_sxm", "b200_sxm"], rng.randrange(1, 3))}
        for name in rng.sample(sorted(CHOICES), rng.randrange(1, 3)):
            choices[name] = rng.sample(CHOICES[name], rng.randrange(1, 3))
        axes = {"batch": [16, 32], "dp": [1, 2], "tp": rng.sample([1, 2, 4, 3], 2), "pp": [1, 2]}
        exprs = rng.sample(TIMED, 2) + rng.sample(UNTIMED, 1)
        over = [word for name, values in list(choices.items())[2:]
                for word in ("--over", f"{name} = {', '.join(values)}")]
        over += [word for name, values in axes.items()
                 for word in ("--over", f"{name} = {', '.join(map(str, values))}")]
        command = [LLAMA, "--plans", ",".join(choices["plan"]), "--machines", ",".join(choices["machine"]),
                   "--set", settings(dict(SMALL_LLAMA, micro=2)), *over, "--select", ", ".join(exprs)]
        return command, choices, axes, exprs

    def query(self, row, choices, axes, expression):
        sets = dict(SMALL_LLAMA, micro=2, **{name: row[name] for name in axes if row[name]})
        others = [word for name in list(choices)[2:] for word in ("--set", f"{name}={row[name]}")]
        done = run("query", LLAMA, expression, "--plan", row["plan"], "--machine", row["machine"], *others,
                   "--defaults", "-q", "--set", settings(sets))
        self.assertIn(done.status, (0, 1), str(done))
        return done.out.strip() if done.status == 0 else None

    def test_rows_are_queries(self):
        printed = refused = 0
        for number in range(SWEEPS):
            rng = random.Random(f"{SEED} {number}")
            command, choices, axes, exprs = self.rows_of(rng)
            done = run("sweep", *command, "--jobs", "2")
            self.assertIn(done.status, (0, 1), str(done))
            rows = table(done)
            names = list(choices) + list(axes)
            found = {tuple(row[name] for name in names): row for row in rows}
            self.assertEqual(len(rows), len(found), str(done))
            for row in rng.sample(rows, min(len(rows), 4)):
                for expression in exprs:
                    self.assertEqual(self.query(row, choices, axes, expression), row[expression],
                                     f"{done.command}\n{expression} of {row}")
                printed += 1
            points = list(itertools.product(*choices.values(), *(map(str, v) for v in axes.values())))
            for point in rng.sample(points, 3):
                row = dict(zip(names, point))
                if row["plan"] != "megatron_pp":
                    row["pp"] = ""
                if row["plan"] == "fsdp":
                    row["tp"] = ""
                if tuple(row[name] for name in names) in found:
                    continue
                self.assertIn(None, [self.query(row, choices, axes, expression) for expression in exprs],
                              f"{done.command}\nnot printed: {row}")
                refused += 1
        self.assertGreater(printed, SWEEPS)
        self.assertGreater(refused, SWEEPS // 4)

    BASE = [LLAMA, "--plan", "megatron_pp", "--machine", "h100_sxm", "--set",
            settings(dict(SMALL_LLAMA, micro=2)), "--over", "batch = 16, 32, 64", "--over", "dp = 1, 2",
            "--over", "tp = 1, 2", "--over", "pp = 1, 2", "--over", "plan.schedule = gpipe, one_f_one_b"]

    def test_best_front_and_conditions(self):
        """Of the rows of a sweep, chosen here."""
        select = ["--select", "time(step), memory(peak)"]
        rows = table(succeed("sweep", *self.BASE, *select))
        self.assertEqual(48, len(rows))
        best = table(succeed("sweep", *self.BASE, *select, "--best", "time(step)", "--top", "7"))
        self.assertEqual(sorted(rows, key=lambda row: float(row["time(step)"]))[:7], best)
        times = sorted({float(row["time(step)"]) for row in rows})
        half = (times[len(times) // 2] + times[len(times) // 2 + 1]) / 2
        some = table(succeed("sweep", *self.BASE, *select, "--where", f"time(step) <= {half*1e12:.0f}/10^12"))
        self.assertEqual([row for row in rows if float(row["time(step)"]) <= half], some)
        front = table(succeed("sweep", *self.BASE, *select, "--pareto", "time(step), memory(peak)"))
        points = {(float(row["time(step)"]), int(row["memory(peak)"])) for row in rows}
        least = {point for point in points
                 if not any(other != point and other[0] <= point[0] and other[1] <= point[1]
                            for other in points)}
        self.assertEqual([row for row in rows
                          if (float(row["time(step)"]), int(row["memory(peak)"])) in least], front)
        picture = self.scratch / "front.svg"
        succeed("sweep", *self.BASE, "--pareto", "10^9*time(step), memory(peak)", "--plot", picture)
        ticks = [float(tick) for tick in re.findall(r">([0-9.]+) M<", picture.read_text(encoding="utf-8"))]
        times = [1e3 * float(row["time(step)"]) for row in front]
        self.assertTrue(any(min(times) <= tick <= max(times) for tick in ticks), ticks)
        sizes = [int(row["memory(peak)"]) / 1e6 for row in front]
        self.assertLess(max(ticks), 2 * max(*times, *sizes))
        done = run("sweep", *self.BASE, "--pareto", "time(step), memory(peak)", "--plot", picture)
        self.assertEqual((1, ["E0661"]), (done.status, [error["code"] for error in done.errors()]))

    def test_bytes_do_not_depend_on_threads_and_shares(self):
        results = ["--select", "time(step), memory(peak)", "--where", "memory(peak) <= 1 MB"]
        for more in ([], ["--best", "time(step)", "--top", "5"], ["--format", "jsonl"]):
            one = succeed("sweep", *self.BASE, *results, *more, "--jobs", "1")
            many = succeed("sweep", *self.BASE, *results, *more, "--jobs", "5")
            self.assertEqual((one.out, one.err), (many.out, many.err))
            parts = [self.scratch / f"part.{i}" for i in range(3)]
            for i, part in enumerate(parts):
                succeed("sweep", *self.BASE, *results, *more, "--shard", f"{i + 1}/3", "-o", part)
            self.assertEqual(one.out, succeed("merge", *parts).out)
            succeed("sweep", *self.BASE, *results, *more, "--resume", "-o", self.scratch / "rows")
            self.assertEqual(one.out, (self.scratch / "rows").read_text(encoding="utf-8"))
            for path in self.scratch.iterdir():
                path.unlink()

    def test_runs(self):
        """Train and infer blocks of a spec, each with its own rows."""
        spec = self.scratch / "runs.etch"
        spec.write_text(f'etch 1\nimport "{LLAMA}"\n'
                        "train other { model = llama, optimizer = sgd }\n"
                        "train third { model = llama, optimizer = adamw }\n", encoding="utf-8")
        sets = settings(dict(SMALL_LLAMA, batch=16, micro=2, tp=2, dp=2))
        done = succeed("sweep", spec, "--plan", "megatron", "--runs", "third,other", "--set", sets,
                       "--select", "memory(states)", "--over", "dp = 1, 2")
        for row in table(done):
            said = succeed("query", spec, "memory(states)", "--plan", "megatron", "--run", row["run"],
                           "--set", sets.replace("dp=2", f"dp={row['dp']}"), "--defaults", "-q")
            self.assertEqual(said.out.strip(), row["memory(states)"])
        self.assertEqual(["third", "third", "other", "other"], [row["run"] for row in table(done)])

    def test_traces_of_the_best(self):
        """A folder for each chosen row, with the bytes that `lower` writes of its values."""
        base = [LLAMA, "--plans", "megatron_pp,megatron", "--set",
                settings(dict(SMALL_LLAMA, batch=16, micro=2)), "--where", "ranks == 4", "--over",
                "plan.recompute = none, layer"]
        out = self.scratch / "traces"
        for choice in (["--best", "comm(step)", "--top", "4"], ["--pareto", "comm(step), memory(peak)"]):
            rows = table(succeed("sweep", *base, *choice, "--lower", out, "--verify"))
            names = [",".join(f"{name}={value}" for name, value in row.items() if value and "(" not in name)
                     for row in rows]
            self.assertEqual(sorted(names), sorted(path.name for path in out.iterdir()))
            for row, name in zip(rows, names):
                sets = dict(SMALL_LLAMA, batch=16, micro=2,
                            **{axis: row[axis] for axis in ("pp", "dp", "tp") if row[axis]})
                single = self.scratch / "single"
                succeed("lower", LLAMA, "--plan", row["plan"], "--set", settings(sets), "--set",
                        "plan.recompute=" + row["plan.recompute"], "-o", single)
                files = {path.name: path.read_bytes() for path in single.iterdir()}
                self.assertEqual(files, {path.name: path.read_bytes() for path in (out / name).iterdir()})
                self.assertGreater(len(files), 4)
                shutil.rmtree(single)
            shutil.rmtree(out)
        best = ["--best", "comm(step)"]
        for words, text in ((["--select", "comm(step)", "--lower", out], "that are chosen"),
                            ([*best, "--verify"], "no traces to be verified"),
                            ([*best, "--lower", out, "--shard", "1/2", "-o", out], "a share"),
                            ([*best, "--lower", out / "none" / "x"], "cannot create")):
            done = run("sweep", *base, *words)
            self.assertIn(done.status, (1, 3), str(done))
            self.assertEqual(1, len(done.errors()), str(done))
            self.assertIn(text, done.err)
            self.assertFalse(out.exists())

    def test_one_message_each(self):
        """What cannot be asked says so once, and why."""
        base = [LLAMA, "--plan", "megatron_pp", "--set", settings(dict(SMALL_LLAMA, batch=16, micro=2)),
                "--over", "tp = 1, 2"]
        timed = ["--select", "time(step)"]
        on = ["--machine", "h100_sxm"]
        for words, code, text in (
                (timed, "E0274", "the spec has no cluster"),
                ([*on, "--select", "time(forward)"], "E0620", "whole step"),
                ([*on, "--select", "time(step, axis = tp)"], "E0621", "no argument 'axis'"),
                ([*on, *timed, "--stack", "nix"], "E0274", "no stack 'nix'"),
                ([*on, *timed, "--granularity", "block"], "E0278", "no time"),
                (["--machine", "nowhere", *timed], "E0203", "nowhere"),
                ([*on, *timed, "--over", "nvlnk.bandwidth = 1 GB/s"], "E0270", "stack 'nvlnk'"),
                ([*on, *timed, "--over", "nvlink.bandwidth = 4 GB"], "E0272", "bytes a second"),
                ([*on, *timed, "--over", "nvlink.bandwidth ="], "E0650", "needs a name"),
                ([*on, *timed, "--over", "nvlink.bandwidth = []"], "E0650", "needs a name"),
                ([*on, *timed, "--over", "plan.schedul = gpipe"], "E0430", "did you mean 'schedule'"),
                ([*on, *timed, "--over", "plan.schedule = gpip"], "E0432", "did you mean 'gpipe'"),
                ([*timed, *["--over", "plan.schedule = gpipe"] * 2], "E0650", "given twice"),
                ([*timed, "--runs", "trai"], "E0221", "did you mean 'train'")):
            done = run("sweep", *base, *words)
            self.assertEqual(1, done.status, str(done))
            self.assertEqual([code], [error["code"] for error in done.errors()], str(done))
            self.assertIn(text, done.err, str(done))
            self.assertEqual("", done.out)


if __name__ == "__main__":
    main()
