"""What `etch solve` answers, held against `etch query`: random statements about the shipped models under
their plans. The statement holds for the answer and not for the value that is said to fail; values between the
two are refused. Where no value is said to do, none that is tried does. Closed forms and bisection agree, and
what they say of values far from the answer is so."""

import json
import random
import re
import resource
from fractions import Fraction

from effort import MULT, effort, first_seed
from etchtest import LLAMA, MODELS, Case, main, run, settings, succeed
from shipped import SMALL, axes_of, params_of, runs_of
from test_sweeps import OF_JOB, OF_RANK, SERVED, configs_of, is_spec, plans_of

SEED = first_seed(1)
STATEMENTS = effort(200)

# Sides that rise, fall, or turn, and what they are.
TURNING = (("n % {k}", lambda n, k, j: n % k), ("n*({k} - n)", lambda n, k, j: n * (k - n)),
           ("max({k} - n, n - {j})", lambda n, k, j: max(k - n, n - j)),
           ("min(n, {k} - n)", lambda n, k, j: min(n, k - n)), ("n^2 - {k}*n", lambda n, k, j: n * n - k * n),
           ("ceil(n/{j})", lambda n, k, j: -(-n // j)), ("floor(n/{k})*n", lambda n, k, j: n // k * n),
           ("floor(n/{j}) + n % {k}", lambda n, k, j: n // j + n % k),
           ("n + floor((n + {k})/{j})", lambda n, k, j: n + (n + k) // j),
           ("max(n, {k}) - {j}*n", lambda n, k, j: max(n, k) - j * n),
           ("{k}*n - floor(n/{j})", lambda n, k, j: k * n - n // j),
           ("ceil(n/{k})*{k} - n", lambda n, k, j: -(-n // k) * k - n))
HOLDS = {"<=": lambda a, b: a <= b, "<": lambda a, b: a < b, ">=": lambda a, b: a >= b,
         ">": lambda a, b: a > b}
SIZES = ["batch", "seq", "context", "hidden", "vocab", "ffn", "micro", "layers", "src", "tgt"]


class Solve(Case):
    def draw(self, rng):
        """A spec, options, values, the variable, a quantity."""
        spec = rng.choice([path for path in sorted(MODELS.glob("*.etch"))
                           if is_spec(path) and plans_of(path) and path.stem != "gpt_memory"])
        plan = rng.choice(plans_of(spec))
        axes, params, configs = axes_of(spec, plan), params_of(spec), configs_of(spec)
        config = rng.choice(configs) if configs and rng.random() < 0.6 else None
        fixed = {name: value for name, value in SMALL.items() if name in params}
        if config is not None:
            fixed = {name: value for name, value in {"batch": 64, "seq": 1024, "src": 128, "tgt": 64,
                                                     "micro": 2, "context": 128}.items() if name in params}
        fixed.update({name: rng.choice([1, 2, 2, 4]) for name in axes})
        served = rng.choice(runs_of(spec))
        choice = sorted(axes) if rng.random() < 0.3 else [name for name in SIZES if name in params]
        name = rng.choice(choice)
        fixed.pop(name, None)
        common = ["--plan", plan, *(["--config", config] if config else []),
                  *(["--run", served] if served else [])]
        return spec, common, fixed, name, rng.choice(SERVED if served else OF_JOB + OF_RANK)

    def value(self, problem, at):
        """The quantity at a value of the variable; None: a query refuses it."""
        spec, common, fixed, name, quantity = problem
        if (spec, *common, str(fixed), name, quantity, at) not in self.known:
            done = run("query", spec, quantity, *common, "--defaults", "-q", "--set",
                       settings(dict(fixed, **{name: at})))
            self.assertIn(done.status, (0, 1, 4), str(done))
            self.known[spec, *common, str(fixed), name, quantity, at] = (
                Fraction(done.out.strip()) if done.status == 0 else None)
        return self.known[spec, *common, str(fixed), name, quantity, at]

    def solve(self, problem, statement, *more):
        spec, common, fixed, name, _ = problem
        done = run("solve", spec, statement, *common, "--set", settings(fixed), "--for", name, "--format",
                   "json", *more)
        self.assertIn(done.status, (0, 1, 5), str(done))
        return done, json.loads(done.out)["rows"][0] if done.status == 0 else None

    def check_row(self, rng, problem, statement, holds, row):
        name = problem[3]

        def at(point):
            return int(point["values"][name])

        answer, fails = row["answer"], row["fails"]
        for point, meant in ((answer, True), (fails, False), *((p, True) for p in row["answers"])):
            if point is not None:
                said = self.value(problem, at(point))
                self.assertIsNotNone(said, f"{problem}\n{statement}: {point} is refused")
                self.assertEqual(Fraction(point["left"]), said, f"{problem}\n{statement}")
                self.assertEqual(meant, holds(said), f"{problem}\n{statement}: {point}")
        if answer and fails:
            low, high = sorted((at(answer), at(fails)))
            self.assertEqual(row["kind"] == "largest", at(answer) == low)
            for between in rng.sample(range(low + 1, high), min(high - low - 1, 4)):
                self.assertIsNone(self.value(problem, between), f"{problem}\n{statement}: {between}")
        return answer and fails

    def test_statements(self):
        self.known = {}
        seen = dict.fromkeys(("largest", "least", "every", "some", "none", "closed", "bisection", "each"), 0)
        answered, number = 0, 0
        while answered < STATEMENTS:
            number += 1
            rng = random.Random(f"{SEED} {number}")
            problem = self.draw(rng)
            points = [2 ** rng.randrange(1, 9), rng.choice([8, 16, 32, 64, 128, 512, 4096])]
            values = [value for value in (self.value(problem, at) for at in points) if value is not None]
            if not values:
                continue
            relation = rng.choice(list(HOLDS))
            bound = rng.choice(values) + rng.choice([0, 0, 1, -1, Fraction(abs(values[0]) // 3)])
            statement = f"{problem[4]} {relation} {bound}"
            done, row = self.solve(problem, statement)

            def holds(value, relation=relation, bound=bound):
                return HOLDS[relation](value, bound)
            if done.status == 5:
                self.assertIn("E0659", done.err)
                continue
            answered += 1
            if done.status == 1:
                self.assertIn("E0658", done.err, str(done))
                seen["none"] += 1
                self.assertFalse(any(holds(value) for value in values), str(done))
                continue
            seen[row["kind"]] += 1
            seen[row["method"]] += 1
            self.check_row(rng, problem, statement, holds, row)
            if row["kind"] == "every":
                self.assertTrue(all(holds(value) for value in values), str(done))
            if row["method"] in ("closed", "bisection") and row["kind"] in ("largest", "least"):
                turn = int(row["answer"]["values"][problem[3]])
                for at in points:
                    value = self.value(problem, at)
                    if value is not None and at > 1:
                        self.assertEqual(at <= turn if row["kind"] == "largest" else at >= turn,
                                         holds(value), f"{problem}\n{statement}: {at}")
            if row["method"] == "closed":
                _, other = self.solve(problem, statement, "--method", "bisection")
                self.assertEqual(dict(row, method="bisection"), other, str(done))
        for kind, least in (("largest", 30), ("least", 20), ("every", 10), ("closed", 40), ("bisection", 20),
                            ("each", 20)):
            self.assertGreaterEqual(seen[kind], least * MULT, seen)

    def test_what_turns_is_not_bisected(self):
        """Sides of all kinds, held against every value up to 300: one answer is given only where the values
        for which the statement holds have no gap, and it is the last of them, or the first."""
        rng, seen = random.Random(SEED), dict.fromkeys(("refused", "bisection", "closed"), 0)
        spec = self.write("n.etch", "etch 1\nparam n, other\ndim N = n\n"
                                    "model m(x[N]) -> y[N] { y = x + x }\n")
        count = effort(60)
        for _ in range(count):
            k, j = rng.randrange(2, 40), rng.randrange(2, 40)
            (text, side), relation = rng.choice(TURNING), rng.choice(sorted(HOLDS))
            limit = rng.randrange(-60, 120)
            statement = f"{text.format(k=k, j=j)} {relation} {limit}"
            done, row = self.solve((spec, [], {"other": 1}, "n", None), statement)
            holds = [HOLDS[relation](side(n, k, j), limit) for n in range(1, 301)]
            seen[row["method"] if row else "refused"] += 1
            if not row:
                self.assertRegex(done.err, "E0658|E0659", statement)
                continue
            self.assertLessEqual(sum(a != b for a, b in zip(holds, holds[1:])), 1, str(done))
            for point, meant in ((row["answer"], True), (row["fails"], False)):
                if point and int(point["values"]["n"]) <= 300:
                    self.assertEqual(meant, holds[int(point["values"]["n"]) - 1], str(done))
            if row["answer"] and row["fails"]:
                self.assertEqual(1, abs(int(row["answer"]["values"]["n"]) - int(row["fails"]["values"]["n"])))
        for kind, least in (("refused", count // 4), ("bisection", count // 12)):
            self.assertGreaterEqual(seen[kind], least, seen)

    def test_frontier(self):
        """Of all pairs, chosen here; by the same numbers."""
        base = ["--config", "llama3_8b", "--plan", "megatron", "--set", "dp=2,seq=4096"]
        done = succeed("solve", LLAMA, "memory(peak) <= 120 GB", *base, "--for", "tp = 1, 2, 3, 4, 8",
                       "--for", "batch = range(1, 64)", "--format", "json")
        found = [tuple(int(row["answer"]["values"][name]) for name in ("tp", "batch"))
                 for row in json.loads(done.out)["rows"]]
        sweep = succeed("sweep", LLAMA, *base, "--over", "tp = 1, 2, 3, 4, 8", "--over",
                        "batch = range(1, 64)", "--select", "memory(peak)", "--where",
                        "memory(peak) <= 120 GB")
        pairs = [tuple(map(int, line.split(",")[:2])) for line in sweep.out.splitlines()[1:]]
        best = {}
        for tp, batch in pairs:
            best[tp] = max(best.get(tp, 0), batch)
        self.assertEqual([(tp, batch) for tp, batch in sorted(best.items())
                          if not any(other < tp and best[other] >= batch for other in best)], found)

    def test_frontier_of_three(self):
        """Of all triples, chosen here: more of each variable is paid for with the others."""
        batches, widths = range(1, 25), range(1000, 40001, 1000)
        done = succeed("solve", LLAMA, "batch*seq + 3*ffn <= 10^6", "--for", "batch = range(1, 24)", "--for",
                       "ffn = range(1000, 40000, 1000)", "--for", "seq", "--format", "json")
        found = [tuple(int(row["answer"]["values"][name]) for name in ("batch", "ffn", "seq"))
                 for row in json.loads(done.out)["rows"]]
        answers = {(b, f): (10**6 - 3*f) // b for b in batches for f in widths}
        self.assertEqual([(b, f, s) for (b, f), s in answers.items()
                          if not any(b2 >= b and f2 >= f and s2 >= s and (b2, f2, s2) != (b, f, s)
                                     for (b2, f2), s2 in answers.items())], found)

    def test_many_combinations(self):
        """Memory grows with the combinations, and not with their square, which is asked unless a sanitizer
        needs more than any limit; how many may be is said."""
        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))
        small = run("--version", preexec_fn=limited).status == 0
        count = effort(3000)
        done = succeed("solve", LLAMA, "batch*seq + 3*dp <= 10^9", "--config", "llama3_8b", "--plan", "fsdp",
                       "--for", f"batch = range(1, {count})", "--for", "seq", "-q", "--format", "json",
                       preexec_fn=limited if small else None)
        answers = {b: (10**9 - 3) // b for b in range(1, count + 1)}
        self.assertEqual([(b, s) for b, s in answers.items() if answers.get(b + 1) != s],
                         [tuple(int(row["answer"]["values"][name]) for name in ("batch", "seq"))
                          for row in json.loads(done.out)["rows"]])
        done = run("solve", LLAMA, "batch*seq <= 10^9", "--for", "batch = range(1, 1000)", "--for",
                   "ffn = range(1, 1000)", "--for", "seq = 1", "-q")
        self.assertEqual((1, ["E0657"]), (done.status, [error["code"] for error in done.errors()]), str(done))
        self.assertIn("100000 combinations", done.err)

    def test_requests(self):
        """What is wrong with a request is one message."""
        base = ["solve", LLAMA]
        for statement, names, code in (
                ("memory(peak)", ["batch"], "E0657"), ("batch != 3", ["batch"], "E0657"),
                ("memory(peak) <= 8", [], "E0657"), ("memory(peak) <= 8", ["batch", "seq"], "E0657"),
                ("memory(peak) <= 8 GB", ["btch"], None), ("memory(peek) <= 8", ["batch"], None),
                ("memory(peak) <= 8", ["batch ="], "E0650"),
                ("memory(peak) <= 8", ["nvlink.bandwidth"], "E0657"),
                ("memory(peak) <= 8", ["plan.schedule = gpipe"], "E0657"),
                ("memory(peak) <= 80 GB", ["pp"], "E0659")):
            done = run(*base, statement, "--config", "llama3_8b", "--plan", "megatron_pp", "--set",
                       "seq=4096,dp=2,tp=2", *(word for name in names for word in ("--for", name)))
            self.assertIn(done.status, (1, 5), str(done))
            self.assertEqual("", done.out)
            self.assertEqual(1, len(done.errors()), str(done))
            if code:
                self.assertEqual(code, done.errors()[0]["code"], str(done))

    def test_equations(self):
        """Where two plans send equally much: found, or between two values."""
        base = ["--config", "llama3_8b", "--plan", "megatron", "--set", "dp=8,tp=8,seq=8192"]
        for statement in ("comm(step, axis = tp) == 500*comm(step, axis = dp)",
                          "matmul_flops(step) == 6*params(model)*batch*seq + 7*batch"):
            done = run("solve", LLAMA, statement, *base, "--for", "batch", "--format", "json")
            self.assertIn(done.status, (0, 1), str(done))
            if done.status:
                continue
            row = json.loads(done.out)["rows"][0]
            self.assertEqual("equal", row["kind"])
            for point in [row["answer"]] if row["answer"] else row["answers"]:
                for side, text in zip(("left", "right"), statement.split("==")):
                    said = succeed("query", LLAMA, text, *base[:-1], base[-1] + ",batch="
                                   + point["values"]["batch"], "--defaults", "-q")
                    self.assertEqual(said.out.strip(), point[side])
            if not row["answer"]:
                order = [Fraction(p["left"]) < Fraction(p["right"]) for p in row["answers"]]
                self.assertEqual(2, len(set(order)))

    def test_two_plans_take_equally_long(self):
        """Over the bandwidth of links, a param of the spec: a fraction of any length, at which queries say
        the same of both sides, and more of the one below and of the other above."""
        spec = self.scratch / "links.etch"
        spec.write_text(f'etch 1\nimport "{LLAMA}"\nparam bandwidth real, peak real\n', encoding="utf-8")
        lengths = set()
        for plan, other, sizes, peak in (("megatron", "megatron_zero", "dp=8,tp=8", 989 * 10**12),
                                         ("context_gather", "megatron_sp", "dp=8,tp=8", 312 * 10**12),
                                         ("megatron", "megatron_sp", "dp=2,tp=4", 7)):
            base = ["--config", "llama3_8b", "--plan", plan]
            sets = f"batch=16,seq=8192,{sizes},peak={peak}"
            sides = [f"rank_flops(step{of})/peak + comm(step{of})/bandwidth"
                     for of in ("", f", plan = {other}")]
            done = run("solve", spec, " == ".join(sides), *base, "--set", sets, "--for", "bandwidth",
                       "--format", "json")
            self.assertIn(done.status, (0, 1), str(done))
            if done.status:
                continue
            row = json.loads(done.out)["rows"][0]
            root = Fraction(row["answer"]["values"]["bandwidth"])
            lengths.add(len(str(root)) > 18)
            self.assertEqual(row["answer"]["left"], row["answer"]["right"])

            def said(at, sides=sides, base=base, sets=sets):
                return [Fraction(succeed("query", spec, side, *base, "--set", f"{sets},bandwidth={at}", "-q",
                                         "--defaults").out) for side in sides]
            self.assertEqual([Fraction(row["answer"]["left"])] * 2, said(root))
            below, above = said(root / 2), said(root * 2)
            self.assertNotEqual(below[0] < below[1], above[0] < above[1])
        self.assertIn(True, lengths)

    def test_times(self):
        """Results of runs: of the values that are named, or of all where they are few, each is run as a query
        runs it. Nothing is said where they have no end, for nothing proves how a time moves."""
        sets = {name: value for name, value in SMALL.items() if name in params_of(LLAMA)}
        sets.update(dp=2, tp=2, micro=1, batch=4)
        for plan, machine, name, values in (("megatron_sp", "h100_sxm", "batch", [4, 8, 16, 32, 64]),
                                            ("fsdp", "a100_sxm", "seq", [64, 8, 16, 24]),
                                            ("megatron", "h100_sxm", "tp", None)):
            base = ["--plan", plan, "--machine", machine]
            fixed = {key: value for key, value in sets.items()
                     if key != name and (plan != "fsdp" or key != "tp")}
            times = {}
            for at in sorted(values or [1, 2, 4, 8]):
                done = run("query", LLAMA, "time(step)", *base, "-q", "--set", settings({**fixed, name: at}))
                if done.status == 0:
                    times[at] = Fraction(done.out.strip())
            bound = sorted(times.values())[len(times) // 2]
            listed = name if values is None else f"{name} = {', '.join(map(str, values))}"
            command = ["solve", LLAMA, f"time(step) <= {bound}", *base, "--set", settings(fixed), "--for"]
            row = json.loads(succeed(*command, listed, "--format", "json").out)["rows"][0]
            holds = [at for at in times if times[at] <= bound]
            said = [row["answer"]] if row["kind"] in ("largest", "least", "every") else row["answers"]
            self.assertEqual("each", row["method"])
            for point in said:
                self.assertEqual(times[int(point["values"][name])], Fraction(point["left"]))
            self.assertEqual({"largest": holds[-1:], "least": holds[:1], "every": holds[-1:],
                              "some": holds}[row["kind"]], [int(p["values"][name]) for p in said])
            self.assertEqual(row["kind"], "some" if [times[at] <= bound for at in times] not in (
                sorted((times[at] <= bound for at in times), reverse=True),
                sorted(times[at] <= bound for at in times)) else row["kind"])
            if row["fails"]:
                self.assertGreater(times[int(row["fails"]["values"][name])], bound)
            if values:
                done = run(*command, name)
                self.assertEqual((5, ["E0659"]), (done.status, [error["code"] for error in done.errors()]))
                self.assertIn("name its values", done.err)

    def test_plans_that_take_equally_long(self):
        """By their runs: the two values between which one overtakes the other, or where they are equal."""
        base = ["--config", "llama3_8b", "--set", "layers=2,dp=8,tp=8,micro=1,seq=4096", "--machine",
                "h100_sxm"]
        statement = "time(step) == time(step, plan = megatron_zero)"
        done = run("solve", LLAMA, statement, *base, "--plan", "megatron_sp", "--for",
                   "batch = powers(2, 3, 7)", "--format", "json")
        times = [[Fraction(succeed("query", LLAMA, "time(step)", "--plan", plan, *base[:3],
                                   f"{base[3]},batch={2**i}", *base[4:], "-q").out)
                  for plan in ("megatron_sp", "megatron_zero")] for i in range(3, 8)]
        turns = [i + 3 for i in range(1, 5) if (times[i][0] < times[i][1]) != (times[i - 1][0]
                                                                              < times[i - 1][1])]
        if not turns:
            self.assertIn("E0658", done.err, str(done))
        else:
            row = json.loads(done.out)["rows"][0]
            self.assertEqual([2 ** (turns[0] - 1), 2 ** turns[0]],
                             [int(point["values"]["batch"]) for point in row["answers"]])


if __name__ == "__main__":
    main()
