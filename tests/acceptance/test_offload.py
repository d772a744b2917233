"""States of the optimizer in the memory of the host: what moves is counted from the params of the model, what
is on the device at a time group by group, and the nodes of traces are held against both."""

import itertools
import math

from etchtest import (LLAMA, MODELS, Case, Formula, Point, ask, lower, main, messages, run, settings, succeed,
                      trace, traces, value)
from shipped import SMALL, params_of
from test_numbers import LLAMA_DIMS
from test_zero import llama_weights

PLAIN = "mesh [dp, tp]; shard B @ dp, K @ tp, F @ tp, V @ tp; zero 1 @ dp"
SIZES = dict(layers=5, hidden=32, heads=4, kv_heads=2, head_dim=8, ffn=48, vocab=96, batch=8, seq=16, micro=2)
MESH = dict(dp=2, tp=2)
LOAD, STORE, COMP = trace.LOAD, trace.STORE, trace.COMP


def elements(v):
    """Of each weight those that a rank of dp and tp updates, and how many weights there are like it."""
    return [(math.ceil((each / v.tp if divided else each) / v.dp), count)
            for each, divided, count in llama_weights(v)]


def group_bytes(width):
    """Bytes of the states of each weight group of the llama of SIZES, in the order of updates: the embedding,
    the layers, the final norm with the head."""
    s = dict(SIZES, **MESH)
    part = lambda count, divided: math.ceil(count / (s["tp"] if divided else 1) / s["dp"])
    query, key = s["hidden"] * s["heads"] * s["head_dim"], s["hidden"] * s["kv_heads"] * s["head_dim"]
    layer = (2 * part(query, True) + 2 * part(key, True) + 3 * part(s["hidden"] * s["ffn"], True)
             + 2 * part(s["hidden"], False))
    table = part(s["hidden"] * s["vocab"], True)
    return [width * count for count in (table, *[layer] * s["layers"], table + part(s["hidden"], False))]


def most_at_once(groups, ahead):
    """Of groups that follow each other: those loaded ahead, the one that is updated, and the one before."""
    return max(sum(groups[first:first + ahead + 2]) for first in range(len(groups)))


def ancestors(nodes):
    """By id: all that a node waits for, at any distance."""
    found = {}
    for node in nodes:
        found[node.id] = set(node.deps).union(*(found[dep] for dep in node.deps))
    return found


class States(Case):
    def spec(self, *lines, train=""):
        plans = "".join(f"parallel p{i} {{ {line} }}\n" for i, line in enumerate(lines))
        return self.write("offload.etch", f'etch 1\nimport "{LLAMA}"\n{train}\n{plans}')

    def test_bytes(self):
        """What is loaded is what the optimizer keeps, weight by weight, and is stored as it was."""
        ways = {"optimizer": 12, "(master, moments)": 12, "master": 4, "moments": 8}
        spec = self.spec(PLAIN, *(f"{PLAIN}; offload {what} @ host" for what in ways))
        for i, (what, width) in enumerate(ways.items()):
            plan = f"p{i + 1}"
            for asked, times in (("reads(host)", 1), ("writes(host)", 1), ("traffic(host)", 2),
                                 ("memory(host)", 1)):
                with self.subTest(what=what, asked=asked):
                    self.assertFormula(lambda v: times * width * sum(e * n for e, n in elements(v)),
                                       ask(spec, asked, plan=plan), LLAMA_DIMS)
            for asked in ("traffic(step)", "comm(step)", "rank_flops(step)", "memory(activations)",
                          "memory(workspace)", "memory(weights)", "memory(grads)"):
                self.assertEqual(ask(spec, asked, plan="p0"), ask(spec, asked, plan=plan))
            left = ask(spec, f"memory(optimizer, plan = p0) - memory(optimizer, plan = {plan}) - "
                             f"memory(host, plan = {plan})")
            self.assertEqual("0", left.strip())
        self.assertEqual("0", ask(spec, "traffic(host)", plan="p0").strip())

    def test_optimizers(self):
        """Moments of a byte have scales, averages of weights are copies; a copy of a gradient is made anew in
        each step, and stays."""
        one = dict(SIZES, dp=1, tp=1)
        weights = [(e, n) for e, _, n in llama_weights(type("V", (), one))]
        count = lambda width: sum(width(e) * n for e, n in weights)
        for train, moved, stays in (("adamw", lambda e: 8 * e, 0),
                                    ("adamw(bits = 8)", lambda e: 2 * (e + 4 * math.ceil(e / 2048)), 0),
                                    ("adamw(master = true, main_grads = true)", lambda e: 12 * e, 4),
                                    ("adamw(master = true), ema = 0.999", lambda e: 16 * e, 0),
                                    ("sgd(momentum = 0.9)", lambda e: 4 * e, 0)):
            with self.subTest(train):
                spec = self.spec(f"{PLAIN}; offload optimizer @ host",
                                 train=f"train own {{ model = llama, optimizer = {train}, "
                                       f"accumulate = (B, micro) }}")
                self.assertEqual(count(moved), value(spec, "reads(host, run = own)", None, "p0", one))
                self.assertEqual(count(moved), value(spec, "memory(host, run = own)", None, "p0", one))
                self.assertEqual(count(lambda e: stays * e),
                                 value(spec, "memory(optimizer, run = own)", None, "p0", one))

    def test_peak(self):
        """It falls by what is away, less what is on its way at a time."""
        groups = group_bytes(12)
        for ahead in (0, 1, 2, 4, 50):
            with self.subTest(ahead=ahead):
                spec = self.spec(PLAIN, f"{PLAIN}; offload optimizer @ host, ahead = {ahead}")
                peak = [value(spec, "memory(peak)", None, f"p{i}", SIZES | MESH) for i in (0, 1)]
                staging = value(spec, "memory(staging)", None, "p1", SIZES | MESH)
                self.assertEqual(most_at_once(groups, ahead), staging)
                self.assertEqual(sum(groups) - staging, peak[0] - peak[1])
                held = value(spec, "memory(optimizer)", None, "p1", SIZES | MESH)
                self.assertEqual(0, held)

    def test_layers_of_any_number(self):
        """The formula of what is on its way, with an open number of layers, is that number for each."""
        spec = self.spec(f"{PLAIN}; offload optimizer @ host, ahead = 2")
        sets = {**SIZES, **MESH}
        del sets["layers"]
        formula = ask(spec, "memory(staging)", plan="p0", sets=sets)
        table, layer, *_, last = group_bytes(12)
        for layers in (1, 2, 3, 4, 9):
            self.assertEqual(most_at_once([table, *[layer] * layers, last], 2),
                             Formula(formula).at(Point(0, layers=layers)))

    def test_traces(self):
        """Each load is before its update, which is before its store; what is not needed yet waits for room,
        and nothing else: loads and stores pass each other."""
        for (ahead, clip), zero in itertools.product(((0, ""), (1, ", clip = 1.0"), (3, "")),
                                                     ("zero 1 @ dp", "zero 3 @ dp")):
            with self.subTest(ahead=ahead, zero=zero):
                spec = self.spec(PLAIN.replace("zero 1 @ dp", zero) +
                                 f"; offload optimizer @ host, ahead = {ahead}",
                                 train=f"train own {{ model = llama, optimizer = adamw(master = true), "
                                       f"accumulate = (B, micro){clip} }}")
                folder = lower(self.scratch / "t", spec, plan="p0", sets=SIZES | MESH,
                               more=("--run", "own", "--astra-sim", "--force"))
                self.assertIn("always", succeed("verify", folder).out)
                self.assertFine(folder)
                self.order_of(folder, ahead)

    def order_of(self, folder, ahead):
        read, paths = trace.read(folder).traces, traces(folder)
        for rank, nodes in read.items():
            names = [message.name for message in messages(paths[rank])]
            of = lambda kind, ends: [node for node in nodes if node.type == kind
                                     and names[node.id].endswith(ends)]
            loads, stores = of(LOAD, "states.load"), of(STORE, "states.store")
            updates = of(COMP, "adamw")
            self.assertEqual(group_bytes(12), [node.tensor_size for node in loads])
            self.assertEqual(group_bytes(12), [node.tensor_size for node in stores])
            self.assertEqual(len(loads), len(updates))
            before = ancestors(nodes)
            last_back = max(node.id for node in nodes if node.type == COMP and names[node.id][0] == "B")
            for i, (load, update, store) in enumerate(zip(loads, updates, stores)):
                self.assertIn(load.id, before[update.id])
                self.assertIn(update.id, before[store.id])
                self.assertIn(last_back, before[load.id])
                room = [*(stores[k].id for k in range(max(i - ahead - 1, 0)))]
                self.assertEqual(room, [s.id for s in stores if s.id in before[load.id]])
                served = [*(updates[k].id for k in range(max(i - ahead, 0)))]
                self.assertEqual(served, [u.id for u in updates if u.id in before[load.id]])
                for other in stores:
                    self.assertEqual(other.id in before[load.id], other.id in room)
                self.assertFalse(set(before[update.id]) & {s.id for s in stores[max(i - ahead - 1, 0):]})

    def test_several_optimizers(self):
        """Where matrices of a layer have one optimizer and its vectors another, states of both are loaded
        before the first update of the layer, and go back after the last."""
        spec = self.spec("mesh [dp]; shard B @ dp; zero 1 @ dp; offload optimizer @ host",
                         train="train own { model = llama, optimizer = muon(momentum = 0.95, rest = adamw), "
                               "accumulate = (B, micro) }")
        folder = lower(self.scratch / "two", spec, plan="p0", sets=SIZES | {"dp": 2}, more=("--run", "own"))
        self.assertIn("always", succeed("verify", folder).out)
        self.assertFine(folder)
        nodes, names = trace.read(folder).traces[0], [m.name for m in messages(traces(folder)[0])]
        before = ancestors(nodes)
        for layer in range(SIZES["layers"]):
            at = [node for node in nodes if names[node.id].startswith(f"O.layer{layer}.")]
            load, store = ([node for node in at if node.type == kind] for kind in (LOAD, STORE))
            updates = [node for node in at if node.type == COMP]
            self.assertEqual((1, 1), (len(load), len(store)))
            self.assertGreater(len(updates), 1)
            for update in updates:
                self.assertIn(load[0].id, before[update.id])
                self.assertIn(update.id, before[store[0].id])

    def test_families(self):
        """Families, and stages: traces are fine on any timing, and sums are those of queries."""
        for model, mesh in (("llama", "pp, dp"), ("gpt", "dp"), ("mixtral", "dp"), ("deepseek_v3", "pp, dp"),
                            ("mamba2", "dp"), ("t5", "dp")):
            with self.subTest(model):
                stage = "; stage layer @ pp" if "pp" in mesh else ""
                spec = self.write("own.etch", f'etch 1\nimport "{MODELS / model}.etch"\n'
                                              f"parallel own {{ mesh [{mesh}]; shard B @ dp; zero 1 @ dp"
                                              f"{stage}; offload optimizer @ host }}")
                params = params_of(MODELS / f"{model}.etch")
                sets = {name: size for name, size in SMALL.items() if name in params}
                sets.update(dp=2, **({"pp": 2} if stage else {}))
                folder = self.scratch / model
                done = run("lower", spec, "--plan", "own", "--set", settings(sets), "-o", folder,
                           "--astra-sim", "-q")
                self.assertEqual(0, done.status, done)
                self.assertFine(folder)
                self.assertIn("always", succeed("verify", folder).out)
                for stage_number, row in enumerate(self.stages_of(folder)):
                    at = f", stage = {stage_number}" if stage else ""
                    for asked, key in (("reads", "bytes_loaded"), ("writes", "bytes_stored")):
                        self.assertEqual(int(row[key]),
                                         value(spec, f"{asked}(host{at})", None, "own", sets))

    def stages_of(self, folder):
        return [stage["host"] for stage in trace.read(folder).manifest["stages"]]

    def test_time(self):
        """Without a way to the host there is no time, and the message says what to write; with one that takes
        no time a step takes as long as without offload; a slow one takes what its bytes take."""
        machine = ("etch 1\ndevice d {{ products bf16 = 1 TFLOP/s, f32 = 1 TFLOP/s\n"
                   "  bandwidth = 1 TB/s{host} }}\n"
                   "cluster c {{ device = d; level l {{ kind = switch; bandwidth = 10 GB/s }} }}\n")
        spec = self.spec(PLAIN, f"{PLAIN}; offload optimizer @ host")
        sets = ("--set", settings(SIZES | MESH))

        def seconds(plan, host):
            path = self.write("machine.etch", machine.format(host=host))
            return run("query", spec, "time(step)", "--plan", plan, *sets, "--machine", path, "-q")

        lacks = seconds("p1", "")
        self.assertEqual(1, lacks.status)
        self.assertRegex(lacks.err, r"(?s)error\[E\d+\].*host = 64 GB/s")
        here, fast = (float(seconds(*of).out.split()[0])
                      for of in (("p0", ""), ("p1", ", host = 900000 TB/s")))
        self.assertAlmostEqual(here, fast, delta=here * 1e-4)
        slow = float(seconds("p1", ", host = 1 MB/s").out.split()[0])
        groups = group_bytes(12)
        # The first load, then loads, updates and stores side by side, and the last store.
        self.assertGreater(slow, (sum(groups) + groups[-1]) / 1e6)
        self.assertLess(slow, here + (sum(groups) + groups[-1] + max(groups)) / 1e6)

    def test_refused(self):
        for line, code, says in (
                ("offload optimizer @ dp", "E0430", "memory of the host"),
                ("offload optimizer @ (host, dp)", "E0430", "memory of the host"),
                ("offload optimizer @ host, ahead = 1.5", "E0430", "ahead"),
                ("offload optimizer @ host, ahed = 1", "E0430", "did you mean 'ahead'"),
                ("offload optimizer @ host, ahead = 1, ahead = 2", "E0430", "given twice"),
                ("offload optimizer @ host; offload = master", "E0430", "given twice"),
                ("offload weights @ host", "E0420", "not given meaning yet"),
                ("offload master + 1 @ host", "E0430", "lists what the optimizer keeps"),
                ("for layer { offload optimizer @ host }", "E0420", "in a scope")):
            with self.subTest(line):
                done = run("query", self.spec(f"{PLAIN}; {line}"), "traffic(host)", "--plan", "p0")
                self.assertEqual((1, ""), (done.status, done.out), done)
                self.assertIn(code, done.err)
                self.assertIn(says, done.err)

    def test_nothing_to_move(self):
        spec = self.spec(f"{PLAIN}; offload optimizer @ host",
                         train="train own { model = llama, optimizer = sgd, accumulate = (B, micro) }")
        told = run("query", spec, "traffic(host, run = own)", "--plan", "p0")
        self.assertEqual((0, "0"), (told.status, told.out.strip()), told)
        self.assertIn("remark[E0447]", told.err)

    def test_option(self):
        """The option says the same as the line, and a setting takes the place of both."""
        spec = self.spec(f"{PLAIN}; offload = optimizer", f"{PLAIN}; offload optimizer @ host")
        for asked in ("traffic(host)", "memory(peak)"):
            self.assertEqual(ask(spec, asked, plan="p0"), ask(spec, asked, plan="p1"))
            self.assertNotEqual(ask(spec, asked, plan="p0"),
                                ask(spec, asked, plan="p1", sets={"plan.offload": "none"}))


if __name__ == "__main__":
    main()
