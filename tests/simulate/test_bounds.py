"""Bounds of a step: lower <= run <= upper, whatever the model, the plan and the machine; equal where a rank
has one thing to do at a time. Random plans of random models, and those that divide ranks into many classes,
take as long as in a slow simulation of every rank (plain.py), to the picosecond. A step of 65,536 ranks is
that of 64, where groups are the same."""

import collections
import json
import math
import os
import random
import sys
from fractions import Fraction

sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "acceptance"))
import plans  # noqa: E402
from effort import effort, first_seed  # noqa: E402
from etchtest import GPT, LLAMA, MODELS, Case, lower, main, run, settings, trace  # noqa: E402

import plain  # noqa: E402
from scenes import eagerly, random_machine, slowed  # noqa: E402

FIRST = 10**6 * first_seed(1)
BOUNDED, EVENTS, KINDS = effort(250), effort(4), effort(2)  # 10,000 a night
SERVE = MODELS / "serve.etch"
SMALL = dict(layers=2, hidden=64, heads=8, vocab=64, seq=32)
GROUPED = dict(SMALL, kv_heads=8, head_dim=8, ffn=64)

# Of groups of ranks that never meet there are `apart`.
APART = """etch 1
param apart, experts = 3*apart
dim E = experts, B = 64, H = 24, F = 40
dtype act = bf16, weights = bf16, grads = bf16, optim = bf16
module up(x[E,B,H]) -> y[E,B,H] { weight w[E,H,F], v[E,F,H]; a[E,B,F] = x * w; y[E,B,H] = a * v }
model m(x[E,B,H]) -> l[] { repeat 4 as layer { x = up(x) }; l = sum(x, over = (E, B, H))  tag loss }
train { model = m, optimizer = sgd }
parallel flat { mesh [apart, dp, tp]; shard E @ apart, B @ dp, F @ tp }
parallel staged { mesh [pp, apart, dp, tp]; shard E @ apart, B @ dp, F @ tp; stage (layer) @ pp }
"""
CAUSAL = f"""etch 1
import "{LLAMA}"
parallel parts {{
  mesh [pp, dp, cp]; shard B @ dp, S @ cp; balance = false; stage (embed, layer, head) @ pp
}}
parallel inside {{ mesh [dp, pp]; shard B @ dp; stage (embed, layer, head) @ pp }}
parallel ragged {{
  mesh [dp, cp, tp]; shard B @ dp, S @ cp, K @ tp, F @ tp, V @ tp; balance = false; zero 3 @ dp
  pad S = cp; pad V = 3*tp; pad B = dp
}}
"""
# Ranks of nodes of three, and racks of four of these: groups of two and four lie on them in many ways.
STRADDLED = plain.Machine(7 * 10**12, 3 * 10**11, [(3, 3 * 10**11, Fraction(2, 10**6)),
                                                   (4, 5 * 10**10, Fraction(7, 10**6)),
                                                   (None, 9 * 10**9, Fraction(30, 10**6))])


# What makes classes of ranks, by name: a spec (None: the text above), a plan of it, and the sizes that its
# axes may have.
WAYS = {
    "tied": (GPT, "megatron_pp", dict(pp=(2, 4), dp=(1, 2), tp=(1, 2))),
    "causal": (None, "parts", dict(pp=(1, 2), dp=(1, 2), cp=(2, 4))),
    "ragged": (None, "ragged", dict(dp=(2, 4), cp=(1, 2, 3), tp=(1, 2))),
    "slow": (LLAMA, "megatron_sp", dict(dp=(2, 4), tp=(2, 4))),
    "straddling": (LLAMA, "megatron_sp", dict(dp=(2, 4), tp=(2, 4))),
}


class Steps(Case):
    def simulate(self, spec, plan, values, text, *more):
        """The answer; None where the plan cannot be."""
        machine = self.write("machine.etch", text)
        done = run("simulate", spec, "--plan", plan, "--set", settings(values), "--machine", machine,
                   "--stack", "any", "--granularity", "op", "--format", "json", "-q", *more)
        if done.status == 1 and done.errors()[0]["code"] in plans.REASONS:
            return None
        self.assertEqual(0, done.status, done)
        answer = json.loads(done.out)
        self.assertLessEqual(answer["lower_ps"], answer["step_ps"], done.command)
        self.assertLessEqual(answer["step_ps"], answer["upper_ps"], done.command)
        return answer


class Bounds(Steps):
    def test_random(self):
        refused = 0
        for seed in range(FIRST, FIRST + BOUNDED):
            with self.subTest(seed=seed):
                chance = random.Random(seed)
                plan = plans.Plan(seed)
                spec = self.write("random.etch", plan.text())
                more = ["--streams", chance.choice(("one", "axes"))]
                if chance.random() < 0.3:
                    more += ["--slow", f"0:{chance.randint(1, 30) / 10}"]
                machine, text = random_machine(chance)
                if chance.random() < 0.5:
                    machine, text = slowed(machine, text, Fraction(chance.randint(1000, 3000), 1000))
                answer = self.simulate(spec, "random", plan.bound(), text, *more)
                refused += answer is None
        self.assertLess(8 * refused, BOUNDED + 8)

    def test_nothing_overlaps(self):
        """Served models wait for each collective; a stage passes on what it has, and has nothing to do."""
        values = dict(GROUPED, batch=8, new=4, context=32)
        for name, plan, more in (("prefill", "split", dict(dp=2, tp=4)),
                                 ("decode", "split", dict(dp=1, tp=8)),
                                 ("chunk", "split", dict(dp=2, tp=2)),
                                 ("chunk", "staged", dict(pp=2, dp=2, tp=2, micro=1))):
            for seed in range(3):
                _, text = random_machine(random.Random(seed))
                text = text[:text.index("launch = ")] + "launch = 0 ps }\n}\n"
                answer = self.simulate(SERVE, plan, {**values, **more}, text, "--run", name)
                self.assertGreater(answer["ranks"], 1)
                self.assertEqual([answer["step_ps"]] * 2, [answer["lower_ps"], answer["upper_ps"]], name)

    def test_as_many_as_there_are(self):
        spec = self.write("apart.etch", APART)
        for seed in range(6):
            _, text = random_machine(random.Random(seed))
            for plan, ways in (("flat", dict(dp=4, tp=2)), ("staged", dict(pp=2, dp=2, tp=2))):
                found = []
                for apart in (8, 8192):
                    # the groups are the same where levels divide what comes before them
                    whole = text.replace("devices = 3", "devices = 4").replace("devices = 6", "devices = 4")
                    answer = self.simulate(spec, plan, dict(apart=apart, **ways), whole)
                    found.append([answer[key] for key in ("step_ps", "lower_ps", "upper_ps")])
                    self.assertEqual(apart * 8, answer["ranks"])
                self.assertEqual(*found)


def neighbours(ways):
    """By axis, pairs of ranks that differ in it alone; the last axis is the innermost."""
    inside = 1
    for axis, size in reversed(ways.items()):
        for rank in range(math.prod(ways.values())):
            if rank // inside % size:
                yield axis, rank - inside, rank
        inside *= size


def kinds_of(answer, folder, machine, values, ways):
    """Of WAYS those that the run is of. Groups over stages are of tied weights, ranks that differ in cp
    and in their work have parts of a causal context; shards are not full where axes do not divide a size."""
    classes = [answer["classes"][c] for c in answer["class_of"]]
    found = {"slow"} if "slow" in answer and len(answer["classes"]) > 1 else set()
    inside = machine.levels[0][0]
    work = {rank: sum(node.num_ops for node in nodes if node.type == plain.COMP)
            for rank, nodes in folder.traces.items()}
    for axis, a, b in neighbours(ways):
        if axis == "cp" and work[a] != work[b]:
            found.add("causal")
    if any(values[size] % ways.get(axis, 1)
           for size, axis in (("batch", "dp"), ("seq", "cp"), ("vocab", "tp"))):
        found.add("ragged")
    for ranks in folder.groups.values():
        if len({classes[rank]["stage"] for rank in ranks}) > 1:
            found.add("tied")
        parts = collections.Counter(rank // inside for rank in ranks) if inside else {0: 1}
        if len(set(parts.values())) > 1:
            found.add("straddling")
    return found


def axes_of(ranks, ways):
    """As answers name them: the axes in which some ranks differ."""
    names, inside = [], 1
    for axis, size in reversed(ways.items()):
        if len({rank // inside % size for rank in ranks}) > 1:
            names.insert(0, axis)
        inside *= size
    return names[0] if len(names) == 1 else f"({','.join(names)})"


class Free(plain.Events):
    """What communicates over the axes takes no time."""

    def __init__(self, machine, folder, lasts, axes, ways):
        self.axes, self.ways = axes, ways
        super().__init__(machine, folder, lasts)

    def meeting(self, rank, node):
        key, needed, seconds = super().meeting(rank, node)
        found = self.ranks[rank].nodes[node]
        ranks = self.folder.groups[found.group] if found.type == plain.COLL else found.message[:2]
        return key, needed, 0 if axes_of(ranks, self.ways) == self.axes else seconds


class Events(Steps):
    """The classes of a run against all ranks."""

    def check(self, spec, plan, values, machine, text, slow=None, slowdown=None):
        """The answer; None where the plan cannot be."""
        more = ("--streams", "one", "--times")
        more += ("--slow", f"{slow[0]}:{float(slow[1])}") if slow else ()
        answer = self.simulate(spec, plan, values, text, *more)
        if answer is None:
            return None
        folder = trace.read(lower(self.scratch / "out", spec, plan=plan, sets=values,
                                  more=("--granularity", "op", "--force")))
        took = [answer["classes"][c]["lasts"] for c in answer["class_of"]]

        def lasts(rank, node):
            times = slow[1] if slow and rank == slow[0] else 1
            self.assertIn(took[rank][node], plain.computation(machine, folder.traces[rank][node], times))
            return took[rank][node]

        events = plain.Events(machine, folder, lasts)
        self.check_times(events, answer)
        self.check_path(answer, folder, machine)
        self.check_bounds(answer, folder, machine, lasts, took)
        if slowdown:
            machine, text = slowed(machine, text, slowdown)
            later = self.simulate(spec, plan, values, text, *more)
            self.check_times(plain.Events(machine, folder, lasts), later)
            self.check_path(later, folder, machine)
            self.assertEqual(answer["lower_ps"], later["lower_ps"])
        return answer

    def check_free(self, answer, machine, ways):
        """The step with one thing for nothing."""
        folder = trace.read(self.scratch / "out")

        def lasts(rank, node):
            return answer["classes"][answer["class_of"][rank]]["lasts"][node]

        for what, step in answer["free"].items():
            events = plain.Events(machine, folder, lambda rank, node: 0) if what == "computing" \
                else Free(machine, folder, lasts, what, ways)
            self.assertEqual(events.run(), step, what)

    def check_path(self, answer, folder, machine):
        """The critical path is a chain without gaps from the beginning of the step to its end: of two nodes
        that follow each other the second one waits for the first, on a rank that takes part in it."""
        path = [tuple(place) for place in answer["path"]]
        begins, ends = ([answer["classes"][c]["begins"][node] + late * answer["classes"][c]["lasts"][node]
                         for c, node in path] for late in (0, 1))
        self.assertEqual(begins[1:], ends[:-1])
        self.assertEqual(answer["step_ps"], ends[-1])
        waits = plain.Waits(folder)
        first = answer["class_of"].index(path[0][0]), path[0][1]
        sends = folder.traces[first[0]][first[1]].type == plain.SEND
        launched = [machine.launch * (node.id + 1) for rank, node in waits.meetings[waits.key[first]]
                    if rank == first[0] or not (sends and machine.eager)]
        self.assertIn(begins[0], (0, max(launched)))
        for before, after in zip(path, path[1:]):
            rank = answer["class_of"].index(after[0])
            self.assertIn(before, {(answer["class_of"][other], node)
                                   for other, node in waits.before(rank, after[1])})

    def check_times(self, events, answer):
        self.assertEqual(events.run(), answer["step_ps"])
        classes = [answer["classes"][c] for c in answer["class_of"]]
        for (rank, node), begins in events.begins.items():
            self.assertEqual((begins, events.ends[rank, node]),
                             (classes[rank]["begins"][node],
                              classes[rank]["begins"][node] + classes[rank]["lasts"][node]))

    def check_bounds(self, answer, folder, machine, lasts, took):
        """Where communication waits for what it depends on alone, the order of traces among that, a step is
        no shorter than `lower`; upper has all that a rank does."""
        streams = [0]
        for rank, nodes in folder.traces.items():
            for communicates in (False, True):
                streams.append(sum(took[rank][node.id] for node in nodes
                                   if node.type != plain.RECV and communicates == (node.type != plain.COMP)))
        loose = plain.Events(machine, folder, lasts, (plain.RECV, plain.SEND, plain.COLL)).run()
        self.assertLessEqual(max(streams), answer["lower_ps"])
        self.assertLessEqual(answer["lower_ps"], max(loose, *streams))
        self.assertLessEqual(max(map(sum, took)), answer["upper_ps"])

    def test_random(self):
        for seed in range(FIRST, FIRST + EVENTS):
            with self.subTest(seed=seed):
                chance = random.Random(seed)
                plan = plans.Plan(seed)
                slow = (0, Fraction(chance.randint(100, 3000), 1000)) if chance.random() < 0.5 else None
                machine = random_machine(chance)
                if seed % 2:
                    machine = eagerly(*machine)
                self.check(self.write("random.etch", plan.text()), "random", plan.bound(), *machine, slow,
                           Fraction(chance.randint(1001, 2500), 1000))

    def test_kinds(self):
        """What makes classes, each as often at least: looked for in the traces and the answer."""
        causal, counts = self.write("causal.etch", CAUSAL), collections.Counter()
        for number, kind in enumerate(sorted(WAYS) * KINDS):
            chance = random.Random(f"{kind} {FIRST + number}")
            spec, plan, axes = WAYS[kind]
            ways = {axis: chance.choice(sizes) for axis, sizes in axes.items()}
            micro = ways.get("pp", 1)
            values = dict(SMALL if spec == GPT else GROUPED, layers=max(2, ways.get("pp", 2)), micro=micro,
                          batch=micro * ways["dp"] * chance.randint(1, 2), **ways)
            if spec == GPT:
                values["positions"] = 64
            if kind == "ragged":
                values.update(seq=32 - chance.randint(1, 5), vocab=64 - chance.randint(1, 5))
                values["batch"] += 1
            slow = chance.randrange(math.prod(ways.values())), Fraction(chance.randint(1001, 3000), 1000)
            machine, text = random_machine(chance)
            while kind == "straddling" and machine.levels[0][0] != 3:
                machine, text = random_machine(chance)
            with self.subTest(kind=kind, values=values):
                answer = self.check(spec or causal, plan, values, machine, text,
                                    slow if kind == "slow" else None)
                kinds = kinds_of(answer, trace.read(self.scratch / "out"), machine, values, ways)
                self.assertIn(kind, kinds)
                counts.update(kinds)
                self.check_free(answer, machine, ways)
        self.assertGreaterEqual(min(counts[kind] for kind in WAYS), KINDS)

    def test_many_classes(self):
        """Tied tables, parts of causal sequences, stages near and far, shards that are not full, 64 ranks;
        levels divide none of the groups. With each, how many classes there are at least."""
        text = """etch 1
device any { products bf16 = 7 TFLOP/s, f32 = 7 TFLOP/s; bandwidth = 300 GB/s }
cluster all {
  device = any
  level node { devices = 3, kind = switch, bandwidth = 300 GB/s, latency = 2 us }
  level rack { devices = 4, kind = switch, bandwidth = 50 GB/s, latency = 7 us }
  level hall { kind = switch, bandwidth = 9 GB/s, latency = 30 us }
  stack any { all = 1 }
}
"""
        causal = self.write("causal.etch", CAUSAL)
        for spec, plan, values, slow, least in (
                (GPT, "megatron_pp", dict(SMALL, positions=64, pp=2, dp=2, tp=2, batch=8, micro=2), None, 4),
                (causal, "parts", dict(GROUPED, pp=2, dp=2, cp=4, batch=4, micro=2), (5, Fraction(3, 2)), 8),
                (causal, "inside", dict(GROUPED, pp=4, dp=2, batch=8, micro=2), None, 8),
                (causal, "ragged", dict(GROUPED, dp=4, cp=3, tp=2, seq=31, vocab=61, batch=6, micro=1),
                 (17, Fraction(5, 4)), 6),
                (LLAMA, "megatron_sp", dict(GROUPED, layers=1, dp=8, tp=8, batch=8, micro=1),
                 (20, Fraction(6, 5)), 4)):
            with self.subTest(spec=spec.name, plan=plan):
                answer = self.check(spec, plan, values, STRADDLED, text, slow, Fraction(5, 4))
                self.assertGreaterEqual(len(answer["classes"]), least)


main()
