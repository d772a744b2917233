"""Rows of sweeps are what queries say, digit by digit: random axes, values, plans and configs of the shipped
specs. A row that is printed has the numbers of as many queries; one that is not printed, some query of it is
refused. The rows are enumerated here, and the queries know nothing of sweeps."""

import itertools
import json
import random
import re
import signal
import subprocess
import time
from xml.etree import ElementTree

from effort import MULT, effort, first_seed
from etchtest import ETCH, LLAMA, MODELS, Case, main, run, settings, succeed
from shipped import SMALL, axes_of, params_of, runs_of

SEED = first_seed(1)
SWEEPS, ROWS = effort(100), 20
EDGES = {"pp = 1": 12, "dp = 1": 20, "pp > layers": 5, "pp = units": 1, "batch does not divide": 20}

OF_JOB = ["params(model)", "flops(step)", "flops(forward)", "matmul_flops(step)", "flops(step)/batch",
          "flops(step)/(3*params(model))"]
OF_RANK = ["rank_flops(step)", "comm(step)", "wire(step)", "traffic(step)", "memory(states)", "memory(peak)",
           "memory(activations)", "memory(workspace)", "rank_params(model)", "comm(forward)",
           "max(comm(step), memory(peak))", "comm(step) + 7*rank_flops(forward)"]
SERVED = ["flops(forward)", "rank_flops(forward)", "comm(forward)", "memory(cache)", "memory(peak)",
          "params(model)"]


def plans_of(spec):
    """Names of the plans that a spec sees."""
    text = re.sub(r"#.*", "", spec.read_text(encoding="utf-8"))
    found = re.findall(r"^parallel\s+(\w+)", text, re.M)
    for path, names in re.findall(r'^import "([^"]+)"[ \t]*(\([^)]*\))?', text, re.M):
        other = plans_of(spec.parent / path)
        found += [name for name in other if not names or name in re.findall(r"\w+", names)]
    return found


def configs_of(spec):
    return re.findall(r"^config\s+(\w+)", spec.read_text(encoding="utf-8"), re.M)


def is_spec(spec):
    """Libraries have neither."""
    return re.search(r"^(config|model|train|infer)\b", spec.read_text(encoding="utf-8"), re.M)


def values_of(rng, name, axes):
    """Some values: small ones, odd ones, and of sizes some that make numbers of more than 64 bits."""
    if name in axes:
        pool = [1, 1, 2, 2, 4, 8, 16, 3, 5, 64] + [5, 6, 6, 7] * (name == "pp")
    elif name in ("batch", "seq", "context", "src", "tgt"):
        pool = [64, 128, 1024, 8192, 96, 100, 2**20, 2**40]
    elif name == "micro":
        pool = [1, 2, 4, 8, 16, 3]
    else:
        size = SMALL.get(name, 8)
        pool = [size, size, 2 * size, 4 * size, size + 1, 1]
    return sorted(set(rng.sample(pool, rng.randrange(1, 4))))


def edges_of(spec, config, sets):
    """Which of the cases that are easily wrong a row is: one stage, one replica, as many stages as units or
    more than layers, microbatches that do not divide the batch."""
    text = spec.read_text(encoding="utf-8")
    of_config = re.search(rf"^config\s+{config}\s*\{{(.*?)\}}", text, re.M | re.S)
    layers = re.search(r"\blayers\s*=\s*(\d+)", of_config[1]) if of_config else None
    layers = sets.get("layers", int(layers[1]) if layers else 0)
    stages, batch = sets.get("pp", 0), sets.get("batch", 0)
    found = {"pp = 1": stages == 1, "dp = 1": sets.get("dp") == 1, "pp > layers": stages > layers > 0,
             "pp = units": stages > 1 and stages == layers + 2,
             "batch does not divide": batch % (sets.get("dp", 1) * (sets.get("micro") or 1)) != 0}
    return [name for name, is_so in found.items() if is_so]


class Sweeps(Case):
    def draw(self, rng):
        """A random sweep: spec, options of both commands, axes with values, expressions."""
        spec = rng.choice([path for path in sorted(MODELS.glob("*.etch"))
                           if is_spec(path) and plans_of(path) and path.stem != "gpt_memory"])
        plan = rng.choice(plans_of(spec))
        axes = axes_of(spec, plan)
        params = params_of(spec)
        configs = configs_of(spec)
        fixed = {}
        config = rng.choice(configs) if configs and rng.random() < 0.6 else None
        if config is None:
            fixed = {name: value for name, value in SMALL.items() if name in params}
        else:
            fixed = {name: value for name, value in {"batch": 64, "seq": 1024, "src": 128, "tgt": 64,
                                                     "micro": 2, "context": 128}.items() if name in params}
        swept = rng.sample(sorted(axes), min(len(axes), rng.randrange(1, 4)))
        others = ["batch", "micro", "seq", "context", "layers"] if config else sorted(params)
        swept += [name for name in rng.sample(others, min(len(others), 2)) if name in params]
        rng.shuffle(swept)
        swept = list(dict.fromkeys(swept))
        served = rng.choice(runs_of(spec))
        pool = SERVED if served else OF_JOB + OF_RANK
        exprs = rng.sample(pool, rng.randrange(1, 4))
        common = ["--plan", plan]
        common += ["--config", config] if config else []
        common += ["--run", served] if served else []
        return spec, common, fixed, [(name, values_of(rng, name, axes)) for name in swept], exprs

    def query(self, spec, common, sets, expression):
        done = run("query", spec, expression, *common, "--defaults", "-q", "--set", settings(sets))
        self.assertIn(done.status, (0, 1, 4), str(done))
        return done.out.strip() if done.status == 0 else None

    AXES = ["--config", "llama3_8b", "--plan", "megatron_pp", "--set", "batch=512", "--over", "pp = 1, 2, 4",
            "--over", "dp = powers(2, 0, 5)", "--over", "micro = divisors(batch/dp)", "--over",
            "seq = range(512, 32768, 512)", "--where", "memory(peak) <= 640 GB"]

    def test_bytes_do_not_depend_on_threads(self):
        for results in (["--select", "comm(step), memory(peak)"],
                        ["--best", "comm(step)", "--top", "50"],
                        ["--pareto", "comm(step), memory(peak), traffic(step)", "--format", "jsonl"]):
            one = succeed("sweep", LLAMA, *self.AXES, *results, "--jobs", "1", "--explain")
            many = succeed("sweep", LLAMA, *self.AXES, *results, "--jobs", "7", "--explain")
            self.assertEqual(one.out, many.out)
            self.assertEqual(one.err, many.err)

    STATEMENTS = ["tp <= 4", "pp*dp <= 8", "pp*dp*tp == 16", "ranks == 8", "ranks <= 16", "seq <= 100",
                  "batch/dp/micro >= 4", "micro >= 2", "tp | 8", "dp != 2", "batch/micro > dp*pp",
                  "seq*batch >= 10^6", "micro % 2 == 0", "seq - 512*dp >= 0", "10/micro >= 1", "tp - pp",
                  "2*pp - 7*tp + micro/3 < 0", "memory(peak) <= 100 GB"]

    def test_cut_rows_count(self):
        """Where statements fail for all rows with some values in common: rows, counts and messages are those
        of looking at each row, whatever the order of axes and statements, and of shares."""
        tried = dict.fromkeys(("rows", "none"), 0)
        for number in range(effort(40)):
            rng = random.Random(f"{SEED} cuts {number}")
            axes = {"pp": [1, 2, 4], "tp": [1, 2, 8, 16], "dp": [1, 2, 4, 3], "batch": [64, 32, 512],
                    "seq": list(range(512, 512 * 40, 512)),
                    "micro": rng.choice([[1, 2, 4, 16], [0, 1, 2, -1, 8]])}
            names = rng.sample(sorted(axes), rng.randrange(3, 7))
            over = [word for name in names
                    for word in ("--over", f"{name} = {', '.join(map(str, axes[name]))}")]
            if "micro" in names and rng.random() < 0.5:
                over[2 * names.index("micro") + 1] = "micro = 1, divisors(batch/2)"
                if "batch" in names[names.index("micro"):]:
                    over[2 * names.index("micro") + 1] = "micro = divisors(48)"
            fixed = {name: values[0] for name, values in dict(axes, micro=[2]).items()
                     if name not in names and name in ("batch", "seq", "micro")}
            command = ["sweep", LLAMA, "--config", "llama3_8b", "--plan", "megatron_pp",
                       *(["--set", settings(fixed)] if fixed else []), *over, "--where",
                       ", ".join(rng.sample(self.STATEMENTS, rng.randrange(1, 5))), "--select", "comm(step)"]
            done, every = run(*command), run(*command, "--every-row")
            self.assertEqual((every.status, every.out, every.err), (done.status, done.out, done.err),
                             str(done))
            tried["rows" if done.status == 0 else "none"] += 1
            if done.status == 0 and number % 4 == 0:
                parts = [self.scratch / f"cut.{i}" for i in (1, 2, 3)]
                for i, part in enumerate(parts):
                    succeed(*command, "--shard", f"{i + 1}/3", "-o", part)
                merged = succeed("merge", *parts)
                self.assertEqual((every.out, every.err.count("refused")),
                                 (merged.out, merged.err.count("refused")), str(merged))
                for part in parts:
                    part.unlink()
        self.assertGreater(min(tried.values()), 0, tried)

    def test_cut_rows_are_not_looked_at(self):
        """10^14 rows, of which a few values of the first axes leave one."""
        done = succeed("sweep", LLAMA, "--config", "llama3_8b", "--plan", "megatron", "--over",
                       "tp = range(1, 10000)", "--over", "batch = range(1, 100000)", "--over",
                       "seq = range(1, 100000)", "--where", "tp*batch*2 <= 3, seq == 64", "--select",
                       "7*seq", "--yes")
        self.assertEqual("tp,batch,seq,7*seq\n1,1,64,448\n", done.out)
        self.assertIn(f"1 of {10**14} rows: for {10**14 - 1} a condition does not hold, 0 are refused",
                      done.err)

    OF_QUANTITIES = ["memory(peak) <= {} GB", "memory(activations) < {} GB", "{} GB >= memory(states)",
                     "comm(step) <= {} GB", "rank_flops(step) >= {}*10^12", "traffic(step) > {} GB",
                     "memory(peak) <= {}*seq*10^5", "flops(step)/batch >= {}*10^11",
                     "comm(step) - memory(peak) <= {} GB", "max(comm(step), memory(peak)) > {} GB",
                     "memory(peak)/(seq - 3000) <= {} GB", "comm(step) == {} GB"]

    def draw_of_quantities(self, rng):
        """A sweep with statements about quantities, and axes of many values behind others."""
        plan = rng.choice(["fsdp", "ddp", "megatron", "megatron_sp", "megatron_pp", "megatron_zero"])
        axes = {name: values for name, values in (
            ("pp", "1, 2, 4"), ("tp", "1, 2, 4, 8"), ("dp", "1, 2, 8, 3")) if name in axes_of(LLAMA, plan)}
        axes.update(rng.choice([
            {"batch": "range(24, 960, 24)", "seq": "range(512, 16384, 256)"},
            {"batch": "48, 96, 7", "seq": "range(16384, 64, -64)"},
            {"seq": "1000, 4096, 8192", "batch": "range(48, 48000, 48)"},
            {"batch": "768", "micro": "1, 2, 4, 16", "seq": "range(768, 700000, 768)"},
            {"seq": "range(1024, 8192, 1024)", "batch": "range(1, 400)"},
            {"batch": "range(1, 50)", "vocab": "range(32000, 48000, 16)", "seq": "4096, 8192"}]))
        names = list(axes)
        if rng.random() < 0.3:
            rng.shuffle(names)
        statements = [text.format(rng.choice([1, 5, 20, 80, 300, 2000]))
                      for text in rng.sample(self.OF_QUANTITIES, rng.randrange(1, 3))]
        if rng.random() < 0.4:
            statements.append(rng.choice(["tp <= 4", "batch >= 100", "seq > 2000", "dp*batch >= 96",
                                          "batch/(dp - 2) >= 1"]))
        rng.shuffle(statements)
        statements = [text for text in statements if "tp" not in text or "tp" in axes]
        return ["sweep", LLAMA, "--config", "llama3_8b", "--plan", plan, "--set",
                "seq=4096,batch=96,micro=2" if rng.random() < 0.8 else "seq=4096,batch=96,micro=1",
                *(word for name in names for word in ("--over", f"{name} = {axes[name]}")), "--where",
                ", ".join(statements), "--select", "comm(step)", "--explain"]

    def test_rows_cut_by_quantities_count(self):
        """The same of statements about quantities: rows, and counts by reason, are those of each row."""
        tried = dict.fromkeys(("rows", "none"), 0)
        for number in range(effort(25)):
            rng = random.Random(f"{SEED} quantities {number}")
            command = self.draw_of_quantities(rng)
            if number == 0:  # a plain statement that is undefined for some of the rows that memory cuts
                command = ["sweep", LLAMA, "--config", "llama3_8b", "--plan", "fsdp", "--set", "micro=1",
                           "--over", "dp = 8, 2, 4", "--over", "batch = range(8, 96, 8)",
                           "--over", "seq = range(1024, 4096000, 1024)", "--where",
                           "14/(dp - 2) >= 1, memory(peak) <= 60 GB", "--select", "comm(step)", "--explain"]
            done, every = run(*command, "-j", "1"), run(*command, "--every-row", "-j", "2")
            self.assertEqual((every.status, every.out, every.err), (done.status, done.out, done.err),
                             str(done))
            tried["rows" if done.status == 0 else "none"] += 1
            if done.status == 0 and number % 5 == 0:
                parts = [self.scratch / f"cut.{i}" for i in (1, 2, 3)]
                for i, part in enumerate(parts):
                    succeed(*command[:-1], "--shard", f"{i + 1}/3", "-o", part)
                self.assertEqual(every.out, succeed("merge", *parts).out)
        self.assertGreater(min(tried.values()), 0, tried)

    def test_rows_cut_by_quantities_are_not_looked_at(self):
        """5*10^12 rows, of which memory leaves those with the least values of the first axes."""
        done = succeed("sweep", LLAMA, "--config", "llama3_8b", "--plan", "fsdp", "--set", "dp=8,micro=1",
                       "--over", "layers = 32, 33", "--over", "batch = range(8, 8*10^5, 8)", "--over",
                       "seq = range(4096, 10^7, 4096)", "--over", "vocab = range(128000, 1408000, 128)",
                       "--where", "memory(peak) <= 60 GB", "--select", "7*seq", "--yes", "--best", "-seq")
        count = 2 * 10**5 * (10**7 // 4096) * 10001
        self.assertIn(f" of {count} rows: for ", done.err)
        layers, batch, seq, vocab = done.out.splitlines()[1].split(",")[:4]
        at = ["--config", "llama3_8b", "--plan", "fsdp", "--set", "dp=8,micro=1"]

        def peak(**sets):
            return int(succeed("query", LLAMA, "memory(peak)", *at[:-1], at[-1] + "," + settings(sets),
                               "-q").out)
        known = {"layers": layers, "batch": batch, "vocab": vocab}
        self.assertLessEqual(peak(**known, seq=seq), 60 * 10**9)
        self.assertGreater(peak(**known, seq=int(seq) + 4096), 60 * 10**9)

    def test_best_and_front(self):
        """Of the rows of a sweep, chosen here."""
        select = ["--select", "comm(step), memory(peak)", "--format", "jsonl"]
        rows = [json.loads(line) for line in succeed("sweep", LLAMA, *self.AXES, *select).out.splitlines()]
        self.assertGreater(len(rows), 1000)
        best = succeed("sweep", LLAMA, *self.AXES, *select, "--best", "comm(step)", "--top", "100")
        self.assertEqual(sorted(rows, key=lambda row: row["comm(step)"])[:100],
                         [json.loads(line) for line in best.out.splitlines()])
        front = succeed("sweep", LLAMA, *self.AXES, *select, "--pareto", "comm(step), memory(peak)")
        points = {(row["comm(step)"], row["memory(peak)"]) for row in rows}
        least = {point for point in points
                 if not any(other != point and other[0] <= point[0] and other[1] <= point[1]
                            for other in points)}
        self.assertEqual([row for row in rows if (row["comm(step)"], row["memory(peak)"]) in least],
                         [json.loads(line) for line in front.out.splitlines()])

    def test_factorisations(self):
        """`ranks == N` has all of them, each once, and is the same as the product filtered."""
        for ranks in (1, 24, 64):
            base = ["--config", "llama3_70b", "--plan", "megatron_pp", "--set", "batch=1024,seq=4096"]
            solved = succeed("sweep", LLAMA, *base, "--where", f"ranks == {ranks}", "--select", "pp*dp*tp",
                             "--format", "jsonl")
            found = [tuple(json.loads(line)[name] for name in ("pp", "dp", "tp"))
                     for line in solved.out.splitlines()]
            divisors = [d for d in range(1, ranks + 1) if ranks % d == 0]
            self.assertEqual([(pp, dp, ranks // pp // dp) for pp in divisors for dp in divisors
                              if ranks % (pp * dp) == 0], found)

    def test_best_of_512_ranks(self):
        """The ten best of all plans and factorisations of 512 ranks are those of all rows; rows with the
        tensor and pipeline sizes that Llama-3-405B was trained with are among those that fit."""
        base = [LLAMA, "--config", "llama3_405b", "--plans", "all", "--set", "batch=2048,seq=8192", "--over",
                "micro = powers(2, 9, 11)", "--where", "ranks == 512, memory(peak) <= 80 GB", "--format",
                "jsonl", "--select", "memory(peak), comm(step)"]
        rows = [json.loads(line) for line in succeed("sweep", *base).out.splitlines()]
        best = [json.loads(line) for line in succeed("sweep", *base, "--best", "comm(step)", "--top",
                                                     "10").out.splitlines()]
        self.assertEqual(sorted(rows, key=lambda row: row["comm(step)"])[:10], best)
        self.assertTrue(all(row["memory(peak)"] <= 80 * 10**9 for row in rows))
        self.assertTrue(any((row["tp"], row["pp"]) == (8, 16) for row in rows), rows)

    def test_plots(self):
        """Well-formed pictures, with a mark for each row, in the order of the values."""
        front = succeed("sweep", LLAMA, *self.AXES, "--pareto", "comm(step), memory(peak)", "--plot",
                        self.scratch / "front.svg")
        root = ElementTree.parse(self.scratch / "front.svg").getroot()
        marks = [(float(mark.get("cx")), float(mark.get("cy")))
                 for mark in root.iter("{http://www.w3.org/2000/svg}circle")]
        self.assertEqual(len(front.out.splitlines()) - 1, len(marks))
        self.assertEqual(sorted(marks), marks)
        self.assertEqual(sorted((y for _, y in marks)), [y for _, y in marks])
        for x, y in marks:
            self.assertTrue(0 < x < 720 and 0 < y < 480)
        rows = succeed("sweep", LLAMA, "--config", "llama3_8b", "--plan", "megatron", "--set",
                       "batch=64,seq=4096", "--over", "tp = 1, 2, 4, 8", "--over", "dp = 1, 2, 4", "--select",
                       "memory(peak)", "--plot", self.scratch / "map.svg")
        boxes = [box.get("fill") for box in ElementTree.parse(self.scratch / "map.svg").getroot().iter(
            "{http://www.w3.org/2000/svg}rect")]
        self.assertEqual(len(rows.out.splitlines()) - 1, len(boxes) - 1 - 50)
        shown = [text.text for text in ElementTree.parse(self.scratch / "map.svg").getroot().iter(
            "{http://www.w3.org/2000/svg}text")]
        values = [int(line.split(",")[2]) for line in rows.out.splitlines()[1:]]
        for value in values:
            if 10**11 <= value < 10**12:
                self.assertIn(f"{value // 10**9} G", shown)
        self.assertGreater(sum(10**11 <= value < 10**12 for value in values), 5)
        self.assertEqual(["front.svg", "map.svg"], sorted(path.name for path in self.scratch.iterdir()))

    def test_stopped(self):
        """A signal ends a sweep: the rows that are complete are in a file that says so."""
        out = self.scratch / "rows.csv"
        command = [ETCH, "sweep", str(LLAMA), "--config", "llama3_8b", "--plan", "megatron", "--set", "tp=2",
                   "--over", "batch = range(1, 10000)", "--over", "seq = range(2, 20000, 2)", "--select",
                   "comm(step)", "-o", str(out), "--jobs", "1"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            while not any(path.stat().st_size > 1000 for path in self.scratch.iterdir()):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            said = process.communicate()[1]
        self.assertEqual(4, process.returncode, said)
        self.assertIn("E0656", said)
        self.assertEqual(["rows.csv.partial"], [path.name for path in self.scratch.iterdir()])
        lines = (self.scratch / "rows.csv.partial").read_text(encoding="utf-8").splitlines()
        count = int(re.search(r"the first (\d+) rows", said)[1])
        self.assertEqual("batch,seq,comm(step)", lines[0])
        self.assertEqual([[1 + i // 10000, 2 + 2 * (i % 10000)] for i in range(count)],
                         [[int(cell) for cell in line.split(",")[:2]] for line in lines[1:]])

    def test_rows_are_queries(self):
        checked = dict.fromkeys(("printed", "refused", "large", *EDGES), 0)
        for number in range(SWEEPS):
            rng = random.Random(f"{SEED} {number}")
            spec, common, fixed, axes, exprs = self.draw(rng)
            over = [word for name, values in axes
                    for word in ("--over", f"{name} = {', '.join(map(str, values))}")]
            sweep = run("sweep", spec, *common, "--set", settings(fixed), *over, "--select", ", ".join(exprs),
                        "--format", "jsonl", "--jobs", "2")
            self.assertIn(sweep.status, (0, 1), str(sweep))
            rows = [json.loads(line, parse_int=str) for line in sweep.out.splitlines()]
            names = [name for name, _ in axes]
            printed = {tuple(int(row[name]) for name in names): row for row in rows}
            self.assertEqual(len(rows), len(printed), str(sweep))
            points = list(itertools.product(*(values for _, values in axes)))
            self.assertEqual([point for point in points if point in printed], list(printed), str(sweep))
            for point in rng.sample(points, min(len(points), ROWS)):
                sets = dict(fixed, **dict(zip(names, point)))
                config = common[common.index("--config") + 1] if "--config" in common else None
                for edge in edges_of(spec, config, sets):
                    checked[edge] += 1
                if point in printed:
                    expression = rng.choice(exprs)
                    said = self.query(spec, common, sets, expression)
                    self.assertEqual(said, printed[point][expression],
                                     f"{sweep.command}\n{expression} {point}")
                    checked["printed"] += 1
                    checked["large"] += len(said or "") > 19
                else:
                    answers = [self.query(spec, common, sets, expression) for expression in exprs]
                    self.assertIn(None, answers, f"{sweep.command}\nnot printed: {point}")
                    checked["refused"] += 1
        self.assertGreater(checked["printed"], 250 * MULT, checked)
        self.assertGreater(checked["refused"], 200 * MULT, checked)
        self.assertGreater(checked["large"], 10 * MULT, checked)
        for edge, least in EDGES.items() if MULT >= 1 else ():  # a sweep has an edge in many rows, or in none
            self.assertGreaterEqual(checked[edge], least * MULT + 1, checked)


if __name__ == "__main__":
    main()
