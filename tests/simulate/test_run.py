"""`etch simulate` against a slow simulation of every rank on its own (plain.py), to the picosecond, on random
models, plans and machines: tied tables over stages, causal parts of contexts, experts, chunks, groups that
straddle levels unevenly among them. Where communication has several streams, every node begins as early as it
may and no earlier. Bounds: lower <= run <= upper."""

import json
import math
import os
import random
import re
import sys
import unittest
from fractions import Fraction

sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "acceptance"))
sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "machine"))
from effort import effort, first_seed  # noqa: E402
from etchtest import MODELS, SOURCE, Case, lower, run, settings, trace  # noqa: E402

import oracle  # noqa: E402

import plain  # noqa: E402
from scenes import eagerly, random_machine  # noqa: E402

ROUNDS = effort(24)
SEED = first_seed(1)
LLAMA, MIXTRAL, GPT = MODELS / "llama.etch", MODELS / "mixtral.etch", MODELS / "gpt.etch"
LOWERED = ("--granularity", "op", "--force")
# the plan, and the largest sizes of its axes
PLANS = [(LLAMA, "megatron", dict(dp=4, tp=4)), (LLAMA, "megatron_sp", dict(dp=2, tp=8)),
         (LLAMA, "megatron_zero", dict(dp=4, tp=2)), (LLAMA, "fsdp", dict(dp=8)),
         (LLAMA, "megatron_pp", dict(pp=4, dp=4, tp=2)),
         (LLAMA, "megatron_interleaved", dict(pp=2, dp=4, tp=2)),
         (LLAMA, "context_gather", dict(dp=2, cp=4, tp=2)),
         (LLAMA, "long_context_pp", dict(pp=2, dp=2, cp=2, tp=2)),
         (LLAMA, "ulysses", dict(dp=2, cp=4, tp=2)), (LLAMA, "hsdp", dict(rep=2, part=4)),
         (GPT, "megatron_pp", dict(pp=4, dp=2, tp=2)),
         (MIXTRAL, "moe_ep", dict(dp=4, ep=4, tp=2)), (MIXTRAL, "moe_pp", dict(pp=2, dp=4, ep=2, tp=2))]


def random_values(chance, spec, axes):
    sizes = {axis: chance.choice([n for n in (1, 2, 4, 8) if n <= most]) for axis, most in axes.items()}
    if "ep" in sizes:
        sizes["ep"] = min(sizes["ep"], sizes["dp"])
    micro = chance.choice((4, 8) if "pp" in sizes else (1, 2))
    values = dict(layers=chance.choice((4, 6)) if sizes.get("pp", 1) < 4 else 6, hidden=64, heads=8,
                  vocab=64 * chance.randint(1, 3), batch=8 * micro, micro=micro, seq=64, **sizes)
    if spec != GPT:
        values.update(kv_heads=8, head_dim=8, ffn=8 * chance.choice((8, 24)))
    if spec == MIXTRAL:
        values.update(experts=4, topk=2, expert_ffn=64)
    if spec == GPT:
        values.update(positions=64)
    return values


def fitted(machine, has, groups, keys):
    """Seconds that a node may take: whether it is a product its name does not say."""
    fits = machine.fits
    if "comm_size" in has:
        op = trace.COLLECTIVES[has["comm_type"]]
        ranks = len(groups[int(has["pg_name"])])
        buffer = has["comm_size"] * (ranks if op == "all_gather" else 1)
        return [oracle.collectives(machine, dict(op=op, ranks=ranks, bytes=buffer), fits["collectives"])]
    flop, moved, products = oracle.D(has["num_ops"]), oracle.D(has["tensor_size"]), fits["products"]
    if has["op_type"] in ("sdpa", "sdpa_bwd"):
        fit, backward = fits["attention"], has["op_type"] == "sdpa_bwd"
        rate = machine.peaks["bf16"] * fit["reach"] * (fit["backward"] if backward else 1)
        return [fit["overhead"] + max(flop * (1 + fit["ramp"] / keys) / rate, moved / machine.bandwidth)]
    moves = fits.get("elementwise", products)
    found = [moves["overhead"] + moved / (machine.bandwidth * moves["memory"])]
    if has["op_type"] == "einsum" and flop > 8 * moved:  # more than one of each element
        found = []
    if has["op_type"] == "einsum":
        found.append(products["overhead"] + oracle.norm(flop / (machine.peaks["bf16"] * products["reach"]),
                                                        moved / (machine.bandwidth * products["memory"]),
                                                        products["norm"]))
    return found


class Runs(Case):
    machine = spec = None

    def simulate(self, spec, plan, values, *more):
        done = run("simulate", spec, "--plan", plan, "--set", settings(values), "--machine", self.machine,
                   "--granularity", "op", "--format", "json", *more)
        self.assertEqual(done.status, 0, f"{done}")
        self.about = f"{done.command}\n{self.machine.read_text(encoding='utf-8')}"
        return json.loads(done.out)

    def cases(self):
        chance = random.Random(SEED)
        for number in range(ROUNDS):
            spec, plan, axes = PLANS[number % len(PLANS)]
            values = random_values(chance, spec, axes)
            machine, text = random_machine(chance)
            self.machine = self.write("machine.etch", text)
            yield spec, plan, values, machine

    def check_accounts(self, answer, machine):
        self.assertLessEqual(answer["lower_ps"], answer["step_ps"])
        self.assertLessEqual(answer["step_ps"], answer["upper_ps"])
        self.assertEqual(sum(found["ranks"] for found in answer["classes"]), answer["ranks"])
        for found in answer["classes"]:
            parts = found["computing"] + sum(found["exposed"].values()) + found["waiting"] + found["idle"]
            self.assertEqual(parts, answer["step_ps"])
        if answer["ranks"] == 1 and not machine.launch:
            self.assertEqual(answer["lower_ps"], answer["upper_ps"])

    @staticmethod
    def ranks_of(spec, plan, values):
        axes = next(axes for other, name, axes in PLANS if (other, name) == (spec, plan))
        return math.prod(values[axis] for axis in axes if axis != "ep")

    def test_one_stream(self):
        chance = random.Random(SEED)
        for number, (spec, plan, values, machine) in enumerate(self.cases()):
            if number % 2:
                machine, text = eagerly(machine, self.machine.read_text(encoding="utf-8"))
                self.machine = self.write("machine.etch", text)
            slow_rank, slow = chance.randrange(64), Fraction(chance.randint(100, 3000), 1000)
            more = ("--slow", f"{slow_rank}:{float(slow)}") if chance.random() < 0.5 else ()
            more = more if slow_rank < self.ranks_of(spec, plan, values) else ()
            answer = self.simulate(spec, plan, values, "--streams", "one", "--times", "--stack", "any", *more)
            found_slow = slow_rank if more else None
            self.check_accounts(answer, machine)
            folder = trace.read(lower(self.scratch / "out", spec, plan=plan, sets=values, more=LOWERED))

            def lasts(rank, node):
                took = answer["classes"][answer["class_of"][rank]]["lasts"][node]
                times = slow if rank == found_slow else 1
                self.assertIn(took, plain.computation(machine, folder.traces[rank][node], times))
                return took

            events = plain.Events(machine, folder, lasts)
            self.assertEqual(events.run(), answer["step_ps"], self.about)
            for (rank, node), begins in events.begins.items():
                self.assertEqual(answer["classes"][answer["class_of"][rank]]["begins"][node], begins)

    def test_streams_of_axes(self):
        """A node begins when what it waits for has ended, and no later: of communication, the one before it
        in the trace counts or does not."""
        for spec, plan, values, machine in self.cases():
            answer = self.simulate(spec, plan, values, "--times", "--stack", "any")
            self.check_accounts(answer, machine)
            folder = trace.read(lower(self.scratch / "out", spec, plan=plan, sets=values, more=LOWERED))
            Schedule(self, folder, answer, machine.launch).check()


    def test_host(self):
        """States go to the memory of the host and back. In one stream communication and they wait for each
        other; else each direction has a stream of its own, and no rank waits for another one's."""
        chance = random.Random(SEED)
        spec = self.write("away.etch", f"""etch 1
import "{LLAMA}"
parallel near {{ mesh [dp, tp]; shard B @ dp, F @ tp; zero 1 @ dp; offload optimizer @ host }}
parallel far  {{ mesh [pp, dp]; shard B @ dp; zero 1 @ dp; stage (embed, layer, head) @ pp
  offload moments @ host, ahead = 3 }}
""")
        for number in range(ROUNDS // 4):
            plan, axes = (("near", dict(dp=4, tp=2)), ("far", dict(pp=2, dp=4)))[number % 2]
            values = random_values(chance, LLAMA, axes)
            machine, text = random_machine(chance)
            machine = machine._replace(host=chance.randint(1, 90) * 10**9)
            text = text.replace("bandwidth", f"host = {machine.host // 10**9} GB/s, bandwidth", 1)
            self.machine = self.write("machine.etch", text)
            answer = self.simulate(spec, plan, values, "--streams", "one", "--times", "--stack", "any")
            folder = trace.read(lower(self.scratch / "out", spec, plan=plan, sets=values, more=LOWERED))
            events = plain.Events(machine, folder, lambda rank, node: answer["classes"][
                answer["class_of"][rank]]["lasts"][node])
            self.assertEqual(events.run(), answer["step_ps"], self.about)
            for (rank, node), begins in events.begins.items():
                self.assertEqual(answer["classes"][answer["class_of"][rank]]["begins"][node], begins)
            answer = self.simulate(spec, plan, values, "--times", "--stack", "any")
            for rank, nodes in folder.traces.items():
                one = answer["classes"][answer["class_of"][rank]]
                ends = [begins + lasts for begins, lasts in zip(one["begins"], one["lasts"])]
                for kind in (plain.LOAD, plain.STORE):
                    moves = [node for node in nodes if node.type == kind]
                    self.assertTrue(moves)
                    for before, node in zip([None, *moves], moves):
                        waits = [ends[dep] for dep in node.deps] + ([ends[before.id]] if before else [])
                        waits.append(machine.launch * (node.id + 1))
                        self.assertEqual(max(waits), one["begins"][node.id])
                        self.assertIn(one["lasts"][node.id], plain.rounded(plain.move(machine, node)))
            brief = run("query", spec, "time(step)", "--plan", plan, "--set", settings(values), "--machine",
                        self.machine, "--granularity", "op", "--stack", "any", "-q")
            self.assertEqual(0, brief.status, brief)

    def test_fitted_kernels(self):
        """Every node of a step within a node, against the formulas of the tests of kernels."""
        values = dict(layers=1, hidden=1024, heads=8, kv_heads=8, head_dim=128, ffn=4096, vocab=2048, batch=2,
                      micro=1, seq=4096, dp=2, tp=4)
        for name in ("h100_sxm", "a100_sxm"):
            self.machine = SOURCE / "machines" / f"{name}.etch"
            machine = oracle.Machine(self.machine)
            answer = self.simulate(LLAMA, "megatron_sp", values, "--times", "-q")
            folder = lower(self.scratch / name, LLAMA, plan="megatron_sp", sets=values,
                           more=(*LOWERED, "--attrs", "op_type"))
            groups = trace.read(folder).groups
            dumped = run("dump", folder, "--ranks", "0", "--format", "json").out.splitlines()
            nodes = [node for node in map(json.loads, dumped) if "id" in node]
            self.assertGreater(len(nodes), 60)
            for node in nodes:
                took = answer["classes"][0]["lasts"][node["id"]]
                least = min(abs(took - seconds * plain.PICO) for seconds in fitted(machine, node["attr"],
                                                                                   groups, values["seq"]))
                self.assertLessEqual(least, 1, node)

    def test_reads_of_communication(self):
        """Copies of parts add up what has been reduced among the parts, and not before that; what is reduced
        next among the parts does not wait for it."""
        values = dict(layers=3, hidden=64, heads=4, kv_heads=4, head_dim=16, ffn=64, vocab=64, batch=8,
                      micro=1, seq=16, rep=2, part=2)
        slow = SMALL.replace("bandwidth = 1 TB/s, l", "bandwidth = 1 MB/s, l")
        self.machine = self.write("machine.etch", slow)
        answer = self.simulate(LLAMA, "hsdp", values, "--times")["classes"][0]
        dumped = run("dump", lower(self.scratch / "out", LLAMA, plan="hsdp", sets=values, more=LOWERED),
                     "--ranks", "0", "--format", "json").out.splitlines()
        ids = {node["name"]: node["id"] for node in map(json.loads, dumped) if "name" in node}
        last = None
        for layer in ("layer2", "layer1", "layer0"):
            first, then = (next(ids[name] for name in ids
                                if re.fullmatch(rf"S0?\.{layer}\.grads\.{what}", name))
                           for what in (r"part\.reduce_scatter", r"rep\.all_reduce"))
            self.assertGreaterEqual(answer["begins"][then], answer["begins"][first] + answer["lasts"][first])
            if last is not None:
                self.assertLess(answer["begins"][first], answer["begins"][last] + answer["lasts"][last])
            last = then

    def query(self, spec, plan, values, expression):
        done = run("query", spec, expression, "--plan", plan, "--set", settings(values), "--machine",
                   self.machine, "--stack", "any", "--granularity", "op", "--format", "json", "-q")
        self.assertEqual(done.status, 0, f"{done}")
        return json.loads(done.out)

    def test_queries(self):
        """Quantities of time are what the run of the step comes to; digits that are printed are certain."""
        for number, (spec, plan, values, machine) in enumerate(self.cases()):
            if number % 4:
                continue
            answer = self.simulate(spec, plan, values, "--stack", "any")
            ends = [Fraction(answer["step_ps"] + sign * answer["error_ps"], plain.PICO) for sign in (-1, 1)]
            products = sum(int(self.query(spec, plan, values, f"matmul_flops({phase})")["value"])
                           for phase in ("forward", "backward"))
            again = int(self.query(spec, plan, values, "matmul_flops(recompute)")["value"])
            most = machine.peak * answer["ranks"]
            for expression, of in (("time(step)", lambda t: t),
                                   ("mfu(step)", lambda t: products / (most * t)),
                                   ("hfu(step)", lambda t: (products + again) / (most * t)),
                                   ("tokens_per_second(step)", lambda t: answer["tokens"] / t),
                                   ("days(tokens = 10^9)", lambda t: 10**9 * t / answer["tokens"] / 86400),
                                   ("device_hours(step, tokens = 10^9)", lambda t: (
                                       answer["ranks"] * 10**9 * t / answer["tokens"] / 3600)),
                                   ("cost(tokens = batch, price = 2.5)", lambda t: (
                                       Fraction(5, 2) * answer["ranks"] * values["batch"] * t /
                                       answer["tokens"] / 3600))):
                found = self.query(spec, plan, values, expression)
                low, high = sorted(map(of, ends))
                self.assertLessEqual(Fraction(found["low"]), low)
                self.assertGreaterEqual(Fraction(found["high"]), high)
                self.assertLessEqual(Fraction(found["high"]) - Fraction(found["low"]), (high - low) +
                                     high / 10**15)
                digits, _, power = found["value"].partition("e")
                unit = Fraction(10)**(int(power or 0) - len(digits.partition(".")[2]))
                for end in (low, high):
                    self.assertLessEqual(abs(Fraction(found["value"]) - end), unit)

    def test_goodput(self):
        """The least that is lost, over all times between checkpoints; its digits are certain."""
        spec, plan, values, _ = next(self.cases())
        ranks = self.simulate(spec, plan, values, "--stack", "any")["ranks"]
        for mtbf, checkpoint, restart in ((10**6, 3, 100), (3 * 10**5, Fraction(1, 2), 7)):
            fails = Fraction(ranks, mtbf)
            found = self.query(spec, plan, values, f"goodput(mtbf = {mtbf}, restart = {restart}, "
                                                   f"checkpoint = {float(checkpoint)})")
            low, high = (1 - restart * fails - Fraction(found[end]) for end in ("high", "low"))
            self.assertLessEqual(low**2, 2 * checkpoint * fails)
            self.assertLessEqual(2 * checkpoint * fails, high**2)
            self.assertLess(high - low, Fraction(1, 10**15))
            best = min(checkpoint / every + every * fails / 2
                       for every in (Fraction(n, 10) for n in range(1, 10**5, 7)))
            self.assertAlmostEqual(float(low), float(best), 4)

    def test_arrays(self):
        """Products of a step on an array of 8 by 8: (8 + 8 + k - 2) ceil(m/8) ceil(n/8) - 1 cycles of 1 ns
        for each expert. Forward m are the tokens of a rank, n 40, k 24; in the gradient of the weights k are
        the tokens."""
        for experts in (1, 3):
            spec = self.write("array.etch", ARRAY.replace("E = 3", f"E = {experts}"))
            self.machine = self.write("machine.etch", SMALL.replace(" = 1 TB/s }", """ = 1 TB/s
  array rows = 8, columns = 8, dataflow = output
  clock = 1 GHz
  fit systolic overhead = 5 us, reach = 1
}""", 1))
            for dp in (1, 2):
                tokens = 64 // dp
                answer = self.simulate(spec, "data", dict(dp=dp), "--times")
                found = [took for took in answer["classes"][0]["lasts"] if took >= 5 * 10**6]
                cycles = [(16 + 24 - 2) * (tokens // 8) * 5 - 1, (16 + tokens - 2) * 3 * 5 - 1]
                self.assertEqual(found, [5 * 10**6 + experts * count * 10**3 for count in cycles])

    def test_kinds_of_kernels(self):
        """Experts have three weights, each a product forward and two backward; a layer has attention forward
        and backward, and four more products with a weight and the router's, each three times."""
        values = dict(layers=2, hidden=64, heads=4, kv_heads=4, head_dim=16, ffn=64, expert_ffn=64, vocab=64,
                      experts=4, topk=2, batch=4, micro=1, seq=16, dp=2, ep=2, tp=1)
        self.machine = self.write("machine.etch", SMALL.replace("bandwidth = 1 TB/s }", """bandwidth = 1 TB/s
  other = 1 TFLOP/s
  fit elementwise overhead = 0 s, memory = 1
  fit products overhead = 1 s, reach = 1, memory = 1, norm = 2
  fit attention overhead = 2 s, reach = 1, ramp = 1, backward = 1
  fit grouped overhead = 4 s, reach = 1, memory = 1, norm = 2
}""", 1))
        answer = self.simulate(MIXTRAL, "moe_ep", values, "--times")
        for found in answer["classes"]:
            kinds = [took // 10**12 for took in found["lasts"]]
            self.assertEqual(kinds.count(4), 9 * values["layers"])
            self.assertEqual(kinds.count(2), 2 * values["layers"])
            self.assertEqual(kinds.count(1), 3 * (5 * values["layers"] + 1))

    def chain(self, stages):
        """A pipeline whose stages are all different."""
        self.spec, self.machine = self.write("chain.etch", CHAIN), self.write("machine.etch", SMALL)
        return run("simulate", self.spec, "--set", f"stages={stages}", "--machine", self.machine)

    def test_most_classes(self):
        done = self.chain(4096)
        self.assertEqual(done.status, 0, f"{done}")
        done = self.chain(4097)
        self.assertEqual((done.status, [error["code"] for error in done.errors()]), (4, ["E0279"]), f"{done}")

    def test_longest_node(self):
        """Of 64 bytes and more, a day and a bit less."""
        self.spec = self.write("chain.etch", CHAIN)
        for latency, status in ((86399, 0), (86400, 1)):
            text = SMALL.replace("latency = 0 s", f"latency = {latency} s")
            self.machine = self.write("machine.etch", text)
            done = run("simulate", self.spec, "--set", "stages=2", "--machine", self.machine)
            self.assertEqual(done.status, status, f"{done}")
            self.assertEqual([error["code"] for error in done.errors()], ["E0278"] if status else [])


CHAIN = """etch 1
param stages
dim B = 1, H = 8
module part(x[B,H]) -> y[B,H] { weight w[H]; y = x * w }
model chain(x[B,H]) -> l[] { repeat stages as layer { x = part(x) }; l = sum(x, over = (B, H))  tag loss }
train { model = chain, optimizer = sgd }
parallel pipeline { mesh [pp = stages]; stage (layer) @ pp }
"""
ARRAY = """etch 1
dim E = 3, B = 64, H = 24, F = 40
dtype act = bf16, weights = bf16, grads = bf16, optim = bf16
module up(x[E,B,H]) -> y[E,B,F] { weight w[E,H,F]; y = x * w }
model m(x[E,B,H]) -> l[] { y[E,B,F] = up(x); l = sum(y, over = (E, B, F))  tag loss }
train { model = m, optimizer = sgd }
parallel data { mesh [dp]; shard B @ dp }
"""
SMALL = """etch 1
device any { products bf16 = 1 TFLOP/s; bandwidth = 1 TB/s }
cluster all { device = any; level all { kind = switch, bandwidth = 1 TB/s, latency = 0 s } }
"""


class Schedule:
    """The times of every node, held against the traces."""

    def __init__(self, case, folder, answer, launch):
        self.case, self.folder, self.launch = case, folder, launch
        self.begins, self.ends = {}, {}
        for rank, nodes in folder.traces.items():
            found = answer["classes"][answer["class_of"][rank]]
            for node in nodes:
                self.begins[rank, node.id] = found["begins"][node.id]
                self.ends[rank, node.id] = found["begins"][node.id] + found["lasts"][node.id]

    def axes_of(self, node):
        """The stream of a node: groups of one family have their axes in common."""
        if node.type == plain.COLL:
            ranks = self.folder.groups[node.group]
            return ("group", tuple(rank - ranks[0] for rank in ranks))
        return node.type

    def bounds(self, rank):
        """By node: when it may begin at the earliest, and what may hold it up besides."""
        found, last, last_comm = {}, {}, None
        for node in self.folder.traces[rank]:
            stream = self.axes_of(node)
            needed = [self.ends[rank, parent] for parent in node.deps if parent != last_comm]
            needed.append(self.launch * (node.id + 1))
            if node.type != plain.RECV and stream in last:
                needed.append(self.ends[rank, last[stream]])
            besides = {self.ends[rank, last_comm]} if last_comm in node.deps else set()
            if node.type in (plain.SEND, plain.COLL):  # tied weights may be summed over the axis of stages
                besides |= {self.ends[rank, last[other]] for other in last if plain.SEND in (other, stream)}
            found[node.id] = (max(needed, default=0), besides)
            last[stream] = node.id
            if node.type in (plain.COLL, plain.SEND):
                last_comm = node.id
        return found

    def check(self):
        bounds = {rank: self.bounds(rank) for rank in self.folder.traces}
        meetings, seen = {}, {}
        for rank, nodes in self.folder.traces.items():
            for node in nodes:
                key = (rank, node.id)
                if node.type == plain.COLL:
                    seen[rank, node.group] = seen.get((rank, node.group), 0) + 1
                    key = ("group", node.group, seen[rank, node.group])
                elif node.message:
                    key = ("message", node.message)
                meetings.setdefault(key, []).append((rank, node.id))
        for members in meetings.values():
            begins = {self.begins[member] for member in members}
            self.case.assertEqual(len(begins), 1)
            least = max(bounds[rank][node][0] for rank, node in members)
            besides = set().union(*(bounds[rank][node][1] for rank, node in members))
            self.case.assertGreaterEqual(min(begins), least)
            self.case.assertTrue(begins == {least} or begins <= besides, (members, begins, least, besides))


if __name__ == "__main__":
    unittest.main()
