"""What `etch show` says of a graph: values are made before they are used, their types agree, costs are those
of the dims and add up to those of queries, and what backward reads is what is kept. Pictures are read by a
parser of DOT."""

import collections
import json
import math
import re
from fractions import Fraction

import specs
from dot import Dot
from etchtest import GPT, LLAMA, Case, main, run, succeed, value

SIZES = dict(layers=3, hidden=32, heads=4, vocab=64, batch=8, seq=16)
LLAMA_SIZES = {**SIZES, "micro": 1, "kv_heads": 2, "head_dim": 8, "ffn": 48}
GPT_SIZES = {**SIZES, "positions": 16, "micro": 1}
VIEWS = {"identity", "rename", "renamed_back", "cache"}
BYTES = {"bf16": 2, "f32": 4, "i32": 4, "bool": 1}
MIXED = """etch 1
param batch, seq, layers, hidden
param micro = 1
dim B = batch, S = seq, H = hidden
dtype act = bf16, weights = bf16, grads = f32, optim = f32
model mixed(x[B,S,H], n[B,S]: i32) -> z[B,S,H] {
  y = x
  repeat layers as layer {
    if layer == 0 {
      weight g[H]
      y = rms_norm(y, g, over = H)
    } else if layer % 3 == 2 {
      weight w[H,H']
      h[B,S,H'] = y * w
      y = y + h[H'->H]
    } else {
      y = relu(y)
    }
  }
  z   = y
  l[] = cross_entropy(z, n, over = H)  tag loss
}
train { model = mixed, optimizer = adamw(master = true), accumulate = (B, micro) }
parallel ddp { mesh [dp]; shard B @ dp }
"""


class Graph:
    """The report, with names in place of indices where that is what a reader wants."""

    def __init__(self, spec, *arguments):
        self.text = succeed("show", spec, *arguments, "--format", "json").out
        self.report = json.loads(self.text)
        for key in ("dims", "tensors", "ops", "loops", "modules", "saved"):
            setattr(self, key, self.report[key])
        self.sizes = {d["name"]: Fraction(d["size"]) for d in self.dims if d["size"].isdigit()}

    def shape(self, tensor):
        return {self.dims[d]["name"] for d in self.tensors[tensor]["dims"]}

    def elements(self, names):
        return math.prod(self.sizes[name] for name in names)

    def sets(self, sizes):
        return [part for name, size in sizes.items() for part in ("--set", f"{name}={size}")]


def arguments(sizes):
    return [part for name, size in sizes.items() for part in ("--set", f"{name}={size}")]


class ShowGraph(Case):
    def graphs(self):
        """Graphs with all values, and what they were made from."""
        for micro in (1, 2):
            for spec, sizes in ((LLAMA, LLAMA_SIZES), (GPT, GPT_SIZES)):
                sets = {**sizes, "micro": micro}
                yield spec, sets, Graph(spec, *arguments(sets))
        spec = self.write("mixed.etch", MIXED)
        for layers in (1, 7):
            sets = dict(layers=layers, batch=4, seq=8, hidden=16, micro=2)
            yield spec, sets, Graph(spec, *arguments(sets))
        for seed in range(12):
            made = specs.make(seed)
            spec, sets = self.write(f"random{seed}.etch", made.text), {**made.sizes, "micro": 2}
            yield spec, sets, Graph(spec, *arguments(sets))

    def test_values_are_made_before_they_are_used(self):
        for spec, _, g in self.graphs():
            known = {i for i,
                     t in enumerate(g.tensors) if t["kind"] in ("input", "weight", "gradient", "constant")}
            entered = []

            def enter(loop):
                """The loops around an op: those that it leaves give their results, new ones their
                arguments."""
                around = []
                while loop is not None:
                    around.insert(0, loop)
                    loop = g.loops[loop]["parent"]
                while entered and entered != around[:len(entered)]:
                    for carry in g.loops[entered.pop()]["carries"]:
                        self.assertIn(carry["out"], known)
                        known.add(carry["result"])
                for new in around[len(entered):]:
                    entered.append(new)
                    for carry in g.loops[new]["carries"]:
                        self.assertTrue(carry["init"] is None or carry["init"] in known)
                        known.add(carry["in"])

            for op in g.ops:
                enter(op["loop"])
                for tensor in op["ins"]:
                    self.assertIn(tensor, known, f"{spec}: {g.tensors[tensor]['name']} of {op}")
                for tensor in op["outs"]:
                    self.assertNotIn(tensor, known)
                    known.add(tensor)
            enter(None)
            self.assertEqual(known, set(range(len(g.tensors))))

    def test_types_agree(self):
        for _, _, g in self.graphs():
            for op in g.ops:
                ins, outs = [g.shape(t) for t in op["ins"]], [g.shape(t) for t in op["outs"]]
                if op["passes"]:
                    self.assertEqual(ins, outs)
                    self.assertEqual(g.tensors[op["ins"][0]]["dtype"], g.tensors[op["outs"][0]]["dtype"])
                elif op["name"] == "einsum":
                    self.assertLessEqual(outs[0], ins[0] | ins[1])
                    if op["phase"] == "forward":  # what is summed is in both factors
                        self.assertEqual((ins[0] | ins[1]) - outs[0], (ins[0] & ins[1]) - outs[0])
                elif op["name"] in ("add", "sub"):
                    self.assertEqual(outs[0], ins[0] | ins[1])
                elif op["name"] == "add_cotangents":
                    self.assertTrue(all(shape == outs[0] for shape in ins))
                elif op["name"] in ("rename", "cache", "renamed_back"):
                    before, after = op["arguments"].split("->")
                    self.assertEqual(outs[0], ins[0] - {before} | {after})
                elif op["name"] in ("softmax", "rms_norm", "layer_norm", "gelu", "silu", "dropout", "rope"):
                    self.assertEqual(outs[0], ins[0])
            for t in g.tensors:
                if t["of"] is not None and t["kind"] != "constant":
                    self.assertEqual(t["dims"], g.tensors[t["of"]]["dims"])
                if t["added_to"] is not None:
                    self.assertEqual((t["dims"], t["dtype"]),
                                     (g.tensors[t["added_to"]]["dims"], g.tensors[t["added_to"]]["dtype"]))
            for loop in g.loops:
                for carry in loop["carries"]:
                    shapes = [g.shape(carry[key]) for key in ("in", "out", "result")]
                    self.assertEqual(shapes, [shapes[0]] * 3)

    def test_every_weight_has_a_gradient_that_ops_add_to(self):
        for _, _, g in self.graphs():
            added = {g.tensors[t]["added_to"] for op in g.ops for t in op["outs"]} - {None}
            gradients = {t["of"]: i for i, t in enumerate(g.tensors) if t["kind"] == "gradient"}
            weights = {i for i, t in enumerate(g.tensors) if t["kind"] == "weight"}
            self.assertEqual(weights, set(gradients))
            self.assertEqual(added, set(gradients.values()))
            for i in added:
                self.assertEqual("f32", g.tensors[i]["dtype"])

    def test_derived_ops_name_what_they_derive_from(self):
        for _, _, g in self.graphs():
            for i, op in enumerate(g.ops):
                if op["phase"] == "forward":
                    self.assertIsNone(op["forward"])
                elif op["forward"] is not None:
                    source = g.ops[op["forward"]]
                    self.assertLess(op["forward"], i)
                    self.assertEqual(source["name"], op["derives"])
                    self.assertEqual((source["location"], source["module"]), (op["location"], op["module"]))
                    if op["phase"] == "recompute":
                        self.assertEqual((source["name"], source["arguments"], source["flop"]),
                                         (op["name"], op["arguments"], op["flop"]))
                    else:  # it gives gradients of operands, or what these need to know of results
                        of = {g.tensors[t]["of"] for t in op["outs"]}
                        again = {i for i, t in enumerate(g.tensors) if t["of"] in source["ins"]}
                        self.assertLessEqual(of, set(source["ins"]) | set(source["outs"]) | again)

    def test_costs_are_those_of_the_dims(self):
        for _, sets, g in self.graphs():
            for op in g.ops:
                names = {"micro": sets["micro"],
                         **{f"d{i}": g.sizes[d["name"]] for i, d in enumerate(g.dims)}}
                formula = op["flop_by_dims"]
                for i, d in sorted(enumerate(g.dims), key=lambda it: -len(it[1]["name"])):
                    formula = re.sub(rf"(?<![\w'])({re.escape(d['name'])})(?![\w'#])", f"d{i}", formula)
                self.assertEqual(int(op["flop"]), eval(formula.replace("^", "**"), {}, names))
                if op["name"] == "einsum":
                    every = g.shape(op["ins"][0]) | g.shape(op["ins"][1])
                    summed = every != g.shape(op["outs"][0])
                    self.assertEqual(int(op["flop"]), (2 if summed else 1) * g.elements(every))
            for t in g.tensors:
                divided = any(g.dims[d]["divided"] for d in t["dims"])
                whole = BYTES[t["dtype"]] * g.elements(g.dims[d]["name"] for d in t["dims"])
                self.assertEqual(Fraction(t["bytes"]), whole / (sets["micro"] if divided else 1))

    def test_costs_add_up_to_those_of_queries(self):
        for spec, sets, g in self.graphs():
            sums = collections.Counter()
            for op in g.ops:
                sums[op["phase"]] += int(op["flop"]) * int(op["runs"])
            for phase in ("forward", "recompute", "backward"):
                self.assertEqual(sums[phase],
                                 value(spec, f"flops({phase})", plan="ddp", sets={**sets, "dp": 1}))
                self.assertEqual(sums[phase], int(g.report["flop"].get(phase, 0)))
        for spec, sizes, parts in ((LLAMA, LLAMA_SIZES,
                                    ("block", "attention", "core", "mlp", "layer", "attention.q")),
                                   (GPT, GPT_SIZES, ("attention", "mlp", "layer", "head", "loss"))):
            for part in parts:
                for phase, flop in Graph(spec, part, *arguments(sizes)).report["flop"].items():
                    self.assertEqual(int(flop), value(spec, f"flops({phase}, of = {part})", sets=sizes))

    def test_what_backward_reads_is_kept(self):
        for _, sets, g in self.graphs():
            producer = {t: op for op in g.ops for t in op["outs"]}
            loops_of = {}
            for index, loop in enumerate(g.loops):
                for carry in loop["carries"]:
                    loops_of[carry["in"]] = index

            def memory(tensor):
                while tensor in producer and producer[tensor]["name"] in VIEWS:
                    tensor = producer[tensor]["ins"][0]
                return tensor

            read = {}
            for i, op in enumerate(g.ops):
                reads = op["phase"] != "forward" and op["name"] not in VIEWS and int(op["runs"]) > 0
                for tensor in op["ins"] if reads else ():
                    kept = memory(tensor)
                    if g.tensors[kept]["kind"] == "value" and g.tensors[kept]["of"] is None:
                        read.setdefault(kept, i)
            # What enters the first iteration is what enters the loop, and an input is there anyway.
            first = {c["in"] for loop in g.loops[:1] for c in loop["carries"]
                     if g.tensors[memory(c["init"])]["kind"] == "input"}
            read = {t: i for t, i in read.items() if t not in first or int(g.loops[loops_of[t]]["count"]) > 1}
            saved = {s["tensor"]: s["reader"] for s in g.saved if int(s["runs"]) > 0}
            self.assertEqual({}, {t: i for t, i in saved.items() if read.get(t) != i})
            # What one iteration hands on has a name there, and another where it enters the next: it is kept
            # under one of them.
            same = {t: t for t in (*read, *saved)}
            for carry in (c for loop in g.loops for c in loop["carries"]):
                names = [memory(t) for t in (carry["init"], carry["in"], carry["out"], carry["result"])
                         if t is not None]
                for name in names:
                    same.setdefault(name, name)
                joined = {same[name] for name in names}
                same = {t: min(joined) if root in joined else root for t, root in same.items()}
            self.assertEqual({same[t] for t in read}, {same[t] for t in saved})
            for s in (s for s in g.saved if s["tensor"] in saved):
                loop = producer[s["tensor"]]["loop"] if s["tensor"] in producer else loops_of.get(s["tensor"])
                runs = 1
                while loop is not None:
                    runs, loop = runs * int(g.loops[loop]["count"]), g.loops[loop]["parent"]
                self.assertEqual(int(s["runs"]), runs)
                self.assertEqual(int(s["bytes"]), runs * int(g.tensors[s["tensor"]]["bytes"]))
                self.assertEqual(s["reader_location"], g.ops[s["reader"]]["location"])

    def test_recomputation_keeps_what_enters_the_loop(self):
        """Korthikanti et al. 2022: 2sbh bytes a layer."""
        g = Graph(GPT, "layer", *arguments(GPT_SIZES))
        self.assertEqual(["x#2"], [g.tensors[s["tensor"]]["name"] for s in g.saved])
        self.assertEqual(3 * 2 * 8 * 16 * 32, int(g.saved[0]["bytes"]))

    def test_explicit_attention_keeps_what_the_papers_count(self):
        """Korthikanti et al. 2022, section 4.1: 34 sbh + 5 a s^2 b bytes a layer with dropout masks of a
        byte. That counts the mask of the attention's dropout as s^2 b a, q, k, v, and inputs of GELU and of
        every product."""
        spec = self.write("gpt.etch",
                          GPT.read_text(encoding="utf-8").replace("recompute = layer", "recompute = none"))
        g = Graph(spec, "layer", *arguments(GPT_SIZES))
        per_layer = sum(int(s["bytes"]) for s in g.saved) // 3
        s, b, h, a = 16, 8, 32, 4
        self.assertEqual(34 * s * b * h + 5 * a * s * s * b, per_layer)

    def test_names_tell_tensors_apart(self):
        for _, _, g in self.graphs():
            seen = {}
            for i, t in enumerate(g.tensors):
                if t["passed"] or t["added_to"] is not None:
                    continue
                self.assertNotIn((t["module"], t["name"]), seen)
                seen[(t["module"], t["name"])] = i
            paths = [m["path"] for m in g.modules]
            self.assertEqual(len(paths), len(set(paths)))
            names = [d["name"] for d in g.dims]
            self.assertEqual(len(names), len(set(names)))

    def test_a_part_is_what_stands_in_it(self):
        whole, part = Graph(LLAMA, *arguments(LLAMA_SIZES)), Graph(LLAMA, "attention",
                                                                   *arguments(LLAMA_SIZES))

        def lines(g, wanted):
            return [(op["name"], op["phase"], op["location"]["line"], op["flop"],
                     [g.tensors[t]["name"] for t in op["ins"] + op["outs"]])
                    for op in g.ops if g.modules[op["module"]]["path"].startswith(wanted)]

        self.assertEqual(lines(whole, "block.attention"), lines(part, ""))
        self.assertEqual(len(part.ops), len(lines(part, "block.attention")))

    def test_the_same_bytes_twice(self):
        for form in ("plain", "json", "dot"):
            self.assertEqual(succeed("show", GPT, "--format", form).out,
                             succeed("show", GPT, "--format", form).out)

    def test_without_training_there_is_no_backward(self):
        text = re.sub(r"^train \{.*?^\}", "", LLAMA.read_text(encoding="utf-8"), flags=re.M | re.S)
        text = text.replace("import \"base.etch\"", f"import \"{LLAMA.parent / 'base.etch'}\"")
        text = "\n".join(line for line in text.splitlines() if not line.startswith("check "))
        g = Graph(self.write("forward.etch", text), *arguments(LLAMA_SIZES))
        self.assertFalse(g.report["trains"])
        self.assertEqual({"forward"}, {op["phase"] for op in g.ops})
        self.assertEqual([], g.saved)

    def test_unknown_parts_are_errors(self):
        for asked, near in (("atention", "attention"), ("layr", "layer"), ("residul", "residual")):
            done = run("show", LLAMA, asked)
            self.assertEqual((1, ""), (done.status, done.out))
            self.assertEqual(["E0624"], [error["code"] for error in done.errors()])
            self.assertIn(f"did you mean '{near}'?", done.err)


# ---- pictures ----------------------------------------------------------------------------------------------


class Pictures(Case):
    def test_nodes_stand_in_their_modules_and_edges_join_them(self):
        made = [specs.make(seed) for seed in range(6)]
        texts = [(GPT, GPT_SIZES), (LLAMA, LLAMA_SIZES), (self.write("mixed.etch", MIXED), dict(layers=7))]
        texts += [(self.write(f"random{i}.etch", m.text), m.sizes) for i, m in enumerate(made)]
        for spec, sizes in texts:
            g = Graph(spec, *arguments(sizes))
            picture = Dot(succeed("show", spec, "--format", "dot", *arguments(sizes)).out)
            ops = {f"o{i}": op for i, op in enumerate(g.ops) if not op["passes"]}
            self.assertEqual(set(ops), {node for node in picture.nodes if node[0] == "o"})
            for a, b, _ in picture.edges:
                self.assertIn(a, picture.nodes)
                self.assertIn(b, picture.nodes)
            for node, op in ops.items():
                way, attributes = picture.nodes[node]
                labels = [picture.clusters[way[:i + 1]] for i in range(len(way))]
                self.assertEqual("forward" if op["phase"] == "forward" else "backward", labels[0])
                modules = [label for label in labels[1:] if not label.startswith("repeat ")]
                self.assertEqual(self.way(g, op["module"]), modules)
                self.assertEqual(op["name"], attributes["label"].split("\n")[0])
                into = [a for a, b, more in picture.edges if b == node and more.get("style") != "dotted"]
                self.assertEqual(len(op["ins"]), len(into))

    def way(self, g, module):
        names = []
        while module is not None:
            names.insert(0, g.modules[module]["name"])
            module = g.modules[module]["parent"]
        return names


if __name__ == "__main__":
    main()
