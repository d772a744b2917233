"""ZeRO-2 and ZeRO-3 (FSDP, HSDP): ranks hold gradients, and weights, in parts. Each microbatch
reduce-scatters the gradients of a unit behind it, and gathers the weights of a unit before it: by hand,
weight by weight; and in traces, where a gather waits for the first node of the unit before."""

import collections
import itertools
import math
import re

import pipeline
from decoder import BF16, F32
from etchtest import (GPT, LLAMA, Case, Point, ask, attribute, lower, main, messages, succeed, table, traces,
                      value,
                      with_plans)
from test_collectives import COLLECTIVES
from test_numbers import GPT_DIMS, LLAMA_DIMS
from test_zero import GPT_SIZES, SIZES, STEP, edited, gpt_weights, llama_weights

# {options}: what follows the axes of the zero line.
SHARDED = """
parallel {name} {{
  mesh  [dp]
  shard B @ dp
  zero  {level} @ dp{options}
}}
"""
HYBRID = """
parallel {name} {{
  mesh  [rep, fsdp, tp]
  axis  data = (rep, fsdp)
  shard B @ data, K @ tp, A @ tp, F @ tp, V @ tp
  pin   residual [B@data, S@tp, H]
  zero  {level} @ fsdp{options}
}}
"""
NODES = """
parallel {name} {{
  mesh  [nodes, gpus]
  shard B @ (nodes,gpus)
  zero  3 @ (nodes,gpus){options}
}}
"""

Way = collections.namedtuple("Way", "text level options forward backward reduced")
# How often a step gathers weights in forward and in backward, and reduce-scatters gradients: of each
# microbatch, or once.
EACH, ONCE, NEVER = (lambda v: v.micro), (lambda v: 1), (lambda v: 0)
WAYS = {
    "z2": Way(SHARDED, 2, "", NEVER, NEVER, EACH),
    "z2_step": Way(SHARDED, 2, ", reduce = step", NEVER, NEVER, ONCE),
    "z3": Way(SHARDED, 3, "", EACH, EACH, EACH),
    "z3_layer": Way(SHARDED, 3, ", group = layer, keep = false, prefetch = 2, reduce = microbatch", EACH,
                    EACH, EACH),
    "z3_kept": Way(SHARDED, 3, ", keep = true", EACH, NEVER, EACH),
    "z3_always": Way(SHARDED, 3, ", keep = step, reduce = step", ONCE, NEVER, ONCE),
    "z3_root": Way(SHARDED, 3, ", root = true", EACH, EACH, EACH),
    "h2": Way(HYBRID, 2, "", NEVER, NEVER, EACH),
    "h3": Way(HYBRID, 3, "", EACH, EACH, EACH),
    "h3_root": Way(HYBRID, 3, ", root = true, keep = false", EACH, EACH, EACH),
    "h3_step": Way(HYBRID, 3, ", keep = microbatch, reduce = step", EACH, NEVER, ONCE),
}


def plans(**more):
    return "".join(way.text.format(name=name, level=way.level, options=way.options)
                   for name, way in {**WAYS, **more}.items())


class WithoutLayers:
    """A point, of a model that has no layers: its weights are those of the root."""

    def __init__(self, v):
        self.v = v

    def __getattr__(self, name):
        return 0 if name == "layers" else getattr(self.v, name)


def by_hand(name, v, weights, tied=0):
    """(phase, collective, axes) -> bytes. `tied`: elements of a weight that two units use; it is among the
    weights. Where its copy lasts, the second unit finds it."""
    way, tally = WAYS[name], collections.defaultdict(int)
    axis, ranks = ("dp", v.dp) if way.text == SHARDED else ("fsdp", v.fsdp)
    has_root = "root" in way.options
    for (elements, divided, count), (_, _, outside) in zip(weights(v), weights(WithoutLayers(v))):
        held = elements / v.tp if divided and axis == "fsdp" else elements
        part = math.ceil(held / ranks)
        again = count - outside if has_root else count
        twice = elements == tied and way.backward is EACH and not has_root
        tally["forward", "all_gather", axis] += way.forward(v) * BF16 * part * (count + twice)
        tally["backward", "all_gather", axis] += way.backward(v) * BF16 * part * (again + twice)
        tally["sync", "reduce_scatter", axis] += way.reduced(v) * F32 * part * ranks * count
        if way.level == 2:
            tally["sync", "all_gather", axis] += BF16 * part * count
        if axis == "fsdp":  # copies of the parts, and what each rank of tp has seen of a gain
            tally["sync", "all_reduce", "rep" if divided else "(rep,tp)"] += F32 * part * count
    return tally


class Formulas(Case):
    def setUp(self):
        super().setUp()
        self.llama = self.write("llama.etch", edited(plans()))
        self.gpt = self.write("gpt.etch", with_plans(GPT) + plans())

    def compare(self, spec, weights, dims, tied=lambda v: 0):
        for name, way in WAYS.items():
            axes = ("dp",) if way.text == SHARDED else ("rep", "fsdp", "(rep,tp)")
            for phase, op, axis in itertools.product(("forward", "backward", "sync"), COLLECTIVES, axes):
                with self.subTest(spec=spec.name, plan=name, phase=phase, op=op, axis=axis):
                    query = f"comm({phase}, op = {op}, axis = {axis})"
                    if phase == "backward":  # GPT recomputes: what is run again gathers for both
                        query += " + " + query.replace(phase, "recompute")
                    text = ask(spec, query, plan=name)
                    self.assertFormula(lambda v: by_hand(name, v, weights,
                                                         tied(v)).get((phase, op, axis), 0), text,
                                       dims)

    def test_llama(self):
        self.compare(self.llama, llama_weights, LLAMA_DIMS)

    def test_gpt_gathers_the_tied_embedding_for_each_unit_while_no_copy_lasts_and_reduces_it_once(self):
        self.compare(self.gpt, gpt_weights, GPT_DIMS, lambda v: v.vocab * v.hidden)

    def test_what_computes_is_as_without(self):
        for query in ("rank_flops(forward)", "rank_flops(backward)", "traffic(forward)", "traffic(backward)"):
            for plan, without in (("z3", "ddp"), ("z2", "ddp"), ("z3_always", "ddp")):
                with self.subTest(query=query, plan=plan):
                    self.assertEqual(ask(self.llama, query, plan=without), ask(self.llama, query, plan=plan))

    def test_optimizer(self):
        """Each rank updates its parts, as with ZeRO-1."""
        for name in ("z2", "z3", "z3_always"):
            text = ask(self.llama, "rank_flops(optimizer)", plan=name)
            self.assertFormula(lambda v: 12 * sum(count * math.ceil(elements / v.dp)
                                                  for elements, _, count in llama_weights(v)), text,
                               LLAMA_DIMS)

    def test_modules_add_up(self):
        sets = {**SIZES, **STEP, "dp": 3}
        for query in ("comm(forward)", "comm(backward)", "wire(step)"):
            rows, total = table(self.llama, query, "module", plan="z3", sets=sets)
            self.assertEqual(total, sum(rows.values()))
            self.assertGreater(len(rows), 3)
        rows, _ = table(self.llama, "comm(forward)", "module", plan="z3", sets=sets)
        v = Point(0, **sets)
        gate = 3 * v.layers * math.ceil(v.hidden * v.ffn / v.dp)
        self.assertEqual(v.micro * BF16 * gate,
                         sum(size for label, size in rows.items() if label.endswith("mlp")))

    def test_what_is_run_again_gathers_once(self):
        """The layers are gathered by the unit that first recomputes them; what lies outside of them goes back
        alone."""
        again = self.write("again.etch", edited(plans(), ("accumulate = (B, micro)",
                                                          "accumulate = (B, micro), recompute = layer")))
        sets = {**SIZES, **STEP, "dp": 3}
        v = Point(0, **sets)
        outside = 2 * math.ceil(v.hidden * v.vocab / v.dp) + math.ceil(v.hidden / v.dp)
        gathered = {phase: value(again, f"comm({phase}, op = all_gather)", plan="z3", sets=sets)
                    for phase in ("forward", "recompute", "backward")}
        self.assertEqual(gathered["forward"], gathered["recompute"] + gathered["backward"])
        self.assertEqual(v.micro * BF16 * outside, gathered["backward"])
        self.assertEqual(value(self.llama, "comm(step)", plan="z3", sets=sets),
                         value(again, "comm(step)", plan="z3", sets=sets))

    def test_backward_gathers_from_the_parts_of_a_node(self):
        """ZeRO++ (Wang et al. 2023, hpZ): forward gathers over all ranks, backward over those of a node."""
        spec = self.write("again.etch", edited(NODES.format(name="near", options=", again = gpus") +
                                               NODES.format(name="far", options="")))

        def payload(v, ranks):
            return BF16 * v.micro * sum(count * math.ceil(elements / ranks) for elements, _,
                                        count in llama_weights(v))

        for plan, phase, axis, ranks in (("near", "forward", "(nodes,gpus)", lambda v: v.nodes * v.gpus),
                                         ("near", "backward", "gpus", lambda v: v.gpus),
                                         ("far", "backward", "(nodes,gpus)", lambda v: v.nodes * v.gpus)):
            with self.subTest(plan=plan, phase=phase):
                self.assertFormula(lambda v: payload(v, ranks(v)),
                                   ask(spec, f"comm({phase}, op = all_gather, axis = {axis})", plan=plan),
                                   LLAMA_DIMS)
                self.assertEqual(ask(spec, f"comm({phase})", plan=plan),
                                 ask(spec, f"comm({phase}, op = all_gather, axis = {axis})", plan=plan))

    def test_each_weight_by_itself(self):
        """What is gathered is the same forward; backward only what is read: not the table that is looked up,
        whose gradient is made without it."""
        spec = self.write("alone.etch", edited(plans(alone=Way(SHARDED, 3, ", group = weight", EACH, EACH,
                                                               EACH))))
        for phase in ("forward", "sync"):
            self.assertEqual(ask(spec, f"comm({phase})", plan="z3"), ask(spec, f"comm({phase})",
                                                                         plan="alone"))
        self.assertFormula(
            lambda v: BF16 * v.micro * (sum(count * math.ceil(elements / v.dp) for elements, _, count in
                                            llama_weights(v)) - math.ceil(v.hidden * v.vocab / v.dp)),
            ask(spec, "comm(backward)", plan="alone"), LLAMA_DIMS)

    def test_a_scope_has_a_line_of_its_own(self):
        """Copies of the MLP last, those of other weights do not; attention is not divided at all."""
        spec = self.write("scopes.etch", edited("""
parallel mixed {
  mesh  [dp]
  shard B @ dp
  zero  3 @ dp, root = true
  for mlp { zero 3 @ dp, keep = microbatch, reduce = step }
  for attention { zero 3 @ () }
}
"""))
        sets = {**SIZES, **STEP, "dp": 3}
        v = Point(0, **sets)
        part = lambda *sizes: sum(math.ceil(size / v.dp) for size in sizes)
        query, key = v.hidden * v.heads * v.head_dim, v.hidden * v.kv_heads * v.head_dim
        outside = part(v.hidden * v.vocab, v.hidden * v.vocab, v.hidden)
        gains, mlp = v.layers * part(v.hidden, v.hidden), 3 * v.layers * part(v.hidden * v.ffn)
        for asked, expected in (("comm(forward)", BF16 * v.micro * (outside + gains + mlp)),
                                ("comm(backward)", BF16 * v.micro * gains),
                                ("comm(sync, op = reduce_scatter)",
                                 F32 * v.dp * (v.micro * (outside + gains) + mlp)),
                                ("comm(sync, op = all_reduce)", F32 * v.layers * 2 * (query + key)),
                                ("comm(sync, op = all_gather)", 0)):
            with self.subTest(asked):
                self.assertEqual(expected, value(spec, asked, plan="mixed", sets=sets))
        whole = BF16 * v.layers * 2 * (query + key)
        self.assertEqual(whole + BF16 * (outside + gains + mlp),
                         value(spec, "memory(weights)", plan="mixed", sets=sets))
        self.assertTotals(lower(self.scratch / "mixed", spec, plan="mixed", sets=sets), spec, None, "mixed",
                          sets)

    def test_what_is_frozen_is_gathered_where_it_is_read(self):
        """A frozen layer goes back, and is read; a frozen embedding does not. Neither has a gradient."""
        spec = self.write("frozen.etch", edited(plans(), ("accumulate = (B, micro)",
                                                          "accumulate = (B, micro), freeze = (embed, mlp)")))
        sets = {**SIZES, **STEP, "dp": 3}
        v = Point(0, **sets)
        part = {name: math.ceil(size / v.dp) for name, size in
                dict(table=v.hidden * v.vocab, mlp=v.hidden * v.ffn).items()}
        whole = sum(count * math.ceil(elements / v.dp) for elements, _, count in llama_weights(v))
        self.assertEqual(v.micro * BF16 * whole, value(spec, "comm(forward)", plan="z3", sets=sets))
        self.assertEqual(v.micro * BF16 * (whole - part["table"]),
                         value(spec, "comm(backward)", plan="z3", sets=sets))
        trained = whole - part["table"] - 3 * v.layers * part["mlp"]
        self.assertEqual(v.micro * F32 * v.dp * trained, value(spec, "comm(sync)", plan="z3", sets=sets))

    def test_what_is_served_is_gathered_once(self):
        spec = self.write("served.etch", edited(plans() + "infer prefill { model = llama }\n"))
        text = ask(spec, "comm(forward, run = prefill)", plan="z3")
        self.assertFormula(lambda v: BF16 * sum(count * math.ceil(elements / v.dp)
                                                for elements, _, count in llama_weights(v)), text, LLAMA_DIMS)


class Proofs(Case):
    """Rajbhandari et al. 2020 (arXiv 1910.02054), 7: with ZeRO-1 and 2 the ranks send 2 Psi (d - 1)/d
    elements in a ring, as without; with ZeRO-3 3 Psi (d - 1)/d. Psi are the weights."""

    def test_ring_traffic(self):
        facts = "param dp, rep, part\nassume dp | hidden, part | hidden\ndtype grads = bf16\n"
        hybrid = SHARDED.replace("mesh  [dp]", "mesh  [rep, part]").replace("@ dp", "@ (rep,part)", 1)
        hybrid = hybrid.replace("zero  {level} @ dp", "zero  {level} @ part")
        checks = """
check wire(step, plan = z2_step) == 2*2*params(model)*(dp - 1)/dp
check wire(step, plan = z2) == (1 + micro)*2*params(model)*(dp - 1)/dp
check wire(step, plan = z3) == micro*3*2*params(model)*(dp - 1)/dp
check wire(step, plan = z3_kept) == micro*2*2*params(model)*(dp - 1)/dp
check wire(step, plan = z3_always) == 2*2*params(model)*(dp - 1)/dp
check wire(step, plan = hybrid) == 2*params(model)*(3*micro*(part - 1)/part + 2*(rep - 1)/rep/part)
check comm(step, axis = rep, plan = hybrid) == 2*params(model)/part
"""
        spec = self.write("proofs.etch",
                          edited(plans() + hybrid.format(name="hybrid", level=3, options="") + facts +
                                 checks))
        done = succeed("check", spec)
        self.assertEqual(7, len(re.findall(r"(?m)^proved +(?:wire|comm)", done.out)), done)

    def test_one_microbatch(self):
        """The table of the paper: without accumulation, 2 Psi and 3 Psi."""
        spec = self.write("proofs.etch", edited(plans() + """
param dp
assume dp | hidden
dtype grads = bf16
"""))
        for plan, factor in (("z2", 2), ("z2_step", 2), ("z3", 3)):
            with self.subTest(plan):
                done = succeed("prove", spec,
                               f"wire(step, plan = {plan}) == {factor}*2*params(model)*(dp - 1)/dp",
                               "--set", "micro=1")
                self.assertIn("proved", done.out)


class Program:
    """The nodes of a rank by name."""

    def __init__(self, path):
        self.nodes = {node.name: node for node in messages(path)}
        self.order = {name: i for i, name in enumerate(self.nodes)}
        self.names = {node.id: name for name, node in self.nodes.items()}
        self.kin = {}

    def parents(self, name):
        return {self.names[parent] for parent in self.nodes[name].data_deps}

    def above(self, name):
        """All that must have ended before it begins."""
        if name not in self.kin:
            found = set()
            for parent in self.parents(name):
                found |= {parent} | self.above(parent)
            self.kin[name] = found
        return self.kin[name]

    def unit(self, prefix):
        """Nodes of a unit without its collectives of weights and gradients."""
        return [name for name in self.nodes if name.startswith(prefix) and ".weights." not in name]


class Traces(Case):
    def setUp(self):
        super().setUp()
        self.llama = self.write("llama.etch",
                                edited(plans() + NODES.format(name="near", options=", again = gpus")))
        self.gpt = self.write("gpt.etch", with_plans(GPT) + plans())

    def lowered(self, spec, plan, sets):
        folder = lower(self.scratch / f"{spec.stem}.{plan}.{'.'.join(str(size) for size in sets.values())}",
                       spec,
                       plan=plan, sets=sets)
        self.assertFine(folder)
        self.assertTotals(folder, spec, None, plan, sets)
        self.assertIn("always", succeed("verify", folder).out)
        return folder

    def test_totals(self):
        for (spec, sizes), (plan, way) in itertools.product(((self.llama, SIZES), (self.gpt, GPT_SIZES)),
                                                            WAYS.items()):
            meshes = [dict(dp=3), dict(dp=1)] if way.text == SHARDED else [dict(rep=2, fsdp=3, tp=2),
                                                                          dict(rep=1, fsdp=4, tp=1)]
            for mesh in meshes:
                with self.subTest(spec=spec.stem, plan=plan, **mesh):
                    self.lowered(spec, plan, {**sizes, **STEP, **mesh})
        self.lowered(self.llama, "near", {**SIZES, **STEP, "nodes": 2, "gpus": 3})

    def program(self, plan, **more):
        sets = {**SIZES, **STEP, "layers": 3, "dp": 3, **more}
        return Program(traces(self.lowered(self.llama, plan, sets))[0])

    UNITS = ["F{}.emb.", "F{}.layer0.", "F{}.layer1.", "F{}.layer2.", "F{}.g.", "B{}.head.", "B{}.layer2.",
             "B{}.layer1.",
             "B{}.layer0.", "B{}.emb."]

    def test_a_gather_is_issued_one_unit_ahead(self):
        """It waits for the first node of the unit before, and nothing else of that unit has to have ended.
        What the unit computes waits for it."""
        p = self.program("z3")
        gathers = [f"{unit.format(m)}weights.dp.all_gather" for m in range(2) for unit in self.UNITS]
        self.assertEqual(gathers, [name for name in p.nodes if ".weights." in name])
        for m in range(2):
            for i in range(3):
                first = p.unit(f"F{m}.layer{i}.")[0]
                group = f"layer{i + 1}" if i < 2 else "g"
                after = f"F{m}.{group}.weights.dp.all_gather"
                self.assertIn(first, p.parents(after))
                self.assertEqual({first}, p.above(after) & set(p.unit(f"F{m}.layer{i}.")))
                for name in p.unit(f"F{m}.layer{i}."):
                    self.assertIn(f"F{m}.layer{i}.weights.dp.all_gather", p.above(name))
        backward = p.unit("B1.layer1.")[0]
        self.assertEqual({backward}, p.above("B1.layer0.weights.dp.all_gather") & set(p.unit("B1.layer1.")))

    def test_prefetch(self):
        none = self.write("none.etch", edited(plans(none=Way(SHARDED, 3, ", prefetch = 0", EACH, EACH, EACH),
                                                    far=Way(SHARDED, 3, ", prefetch = 3", EACH, EACH, EACH))))
        sets = {**SIZES, **STEP, "layers": 4, "dp": 3}
        p = Program(traces(self.lowered(none, "none", sets))[0])
        last = p.unit("F0.layer1.")[-1]
        self.assertIn(last, p.above("F0.layer2.weights.dp.all_gather"))
        p = Program(traces(self.lowered(none, "far", sets))[0])
        first = p.unit("F0.layer0.")[0]
        self.assertIn(first, p.parents("F0.layer3.weights.dp.all_gather"))
        self.assertFalse(p.above("F0.layer3.weights.dp.all_gather") & set(p.unit("F0.layer1.")))

    def test_gradients_go_out_behind_their_unit(self):
        p = self.program("z3")
        for m in range(2):
            for i in range(3):
                reduced = f"S{m}.layer{i}.grads.dp.reduce_scatter"
                made = [name for name in p.unit(f"B{m}.layer{i}.") if re.search(r"\.d(w.|g)$", name)]
                self.assertTrue(made)
                self.assertTrue(set(made) <= p.above(reduced))
                self.assertGreater(p.order[reduced], max(p.order[name] for name in p.unit(f"B{m}.layer{i}.")))
                if i > 0:
                    self.assertLess(p.order[reduced], p.order[p.unit(f"B{m}.layer{i - 1}.")[0]])
                self.assertIn(f"S1.layer{i}.grads.dp.reduce_scatter", p.above(f"O.layer{i}.adamw"))
        # The second microbatch makes gradients anew: it does not wait until those of the first have gone out.
        self.assertFalse({name for name in p.nodes if name.startswith("S0.")} &
                         {parent for name in p.unit("B1.layer2.") if ".dw" in name
                          for parent in p.parents(name)})

    def test_copies_that_last(self):
        p = self.program("z3_kept")
        self.assertEqual([f"{unit.format(m)}weights.dp.all_gather" for m in range(2)
                          for unit in self.UNITS[:5]],
                         [name for name in p.nodes if ".weights." in name])
        for i in range(3):
            self.assertIn(f"F1.layer{i}.weights.dp.all_gather", p.above(p.unit(f"B1.layer{i}.")[0]))
        p = self.program("z3_always")
        self.assertEqual([f"{unit.format(0)}weights.dp.all_gather" for unit in self.UNITS[:5]],
                         [name for name in p.nodes if ".weights." in name])
        self.assertFalse([name for name in p.nodes if "reduce_scatter" in name and not name.startswith("S.")])

    def test_the_root(self):
        """What no layer has is one group: gathered where forward begins, for both ends, and not again;
        reduced once, when the table's gradient is there, the last of all."""
        p = self.program("z3_root")
        layers = range(3)
        for m in range(2):
            gathers = [name for name in p.nodes if ".weights." in name and name[1] == str(m)]
            self.assertEqual([f"F{m}.emb.weights.dp.all_gather"] +
                             [f"F{m}.layer{i}.weights.dp.all_gather" for i in layers] +
                             [f"B{m}.layer{i}.weights.dp.all_gather" for i in reversed(layers)], gathers)
            for name in p.unit(f"B{m}.head."):
                self.assertIn(f"F{m}.emb.weights.dp.all_gather", p.above(name))
            self.assertEqual([f"S{m}.layer{i}.grads.dp.reduce_scatter" for i in reversed(layers)] +
                             [f"S{m}.emb.grads.dp.reduce_scatter"],
                             [name for name in p.nodes if name.startswith(f"S{m}.")])
            self.assertTrue({name for name in p.nodes if re.fullmatch(rf"B{m}\.d(emb|head|g)", name)}
                            <= p.above(f"S{m}.emb.grads.dp.reduce_scatter"))
        self.assertEqual(1, sum(name.startswith("O.") and "layer" not in name for name in p.nodes))

    def test_weights_by_themselves(self):
        """As many collectives as tensors; each gradient goes out as soon as its layer has gone back, in the
        order in which they are made."""
        alone = self.write("alone.etch", edited(plans(alone=Way(SHARDED, 3, ", group = weight, root = true",
                                                                EACH, EACH, EACH))))
        sets = {**SIZES, **STEP, "layers": 3, "dp": 3}
        p = Program(traces(self.lowered(alone, "alone", sets))[0])
        of_layer = 9  # four products of attention, three of the MLP, two gains
        for m in range(2):
            for i in range(3):
                for direction in "FB":
                    self.assertEqual(of_layer, sum(name.startswith(f"{direction}{m}.layer{i}.") and
                                                   ".weights." in name for name in p.nodes))
                reduced = [name for name in p.nodes if name.startswith(f"S{m}.layer{i}.")]
                self.assertEqual(of_layer, len(reduced))
                products = [name for name in reduced if re.match(rf"S{m}\.layer{i}\.w", name)]
                made = [name for name in p.unit(f"B{m}.layer{i}.") if re.search(r"\.dw.$", name)]
                order = [re.search(r"\.d(\w+)$", name)[1] for name in made]
                self.assertEqual(order, [re.match(rf"S{m}\.layer{i}\.(\w+)", name)[1] for name in products])
                for name, gradient in zip(products, made):
                    self.assertIn(gradient, p.above(name))
            self.assertEqual(3, sum(name.startswith(f"F{m}.") and ".weights." in name and "layer" not in name
                                    for name in p.nodes))

    def test_replicas_are_added_up_once(self):
        sets = {**SIZES, **STEP, "rep": 2, "fsdp": 3, "tp": 1}
        p = Program(traces(self.lowered(self.llama, "h3", sets))[0])
        # of gains tp sees a part each, if there is one
        reduced = [name for name in p.nodes if "all_reduce" in name]
        self.assertEqual(["S.g", "S.g", "S.layer1", "S.layer1", "S.layer0", "S.layer0", "S.emb"],
                         [name.split(".grads")[0] for name in reduced])
        self.assertIn("S1.layer0.grads.fsdp.reduce_scatter", p.above("S.layer0.grads.rep.all_reduce"))


class Pipelines(pipeline.Stages):
    """With stages each holds, gathers and reduces its own units."""

    WAYS = [("gpipe", 3, 5, 1), ("one_f_one_b", 2, 3, 1), ("one_f_one_b", 4, 2, 1),
            ("interleaved(virtual = 2)", 2, 5, 2)]
    LINES = [(2, ""), (3, ""), (3, ", root = true, group = weight"), (3, ", keep = microbatch"),
             (3, ", keep = step, prefetch = 2"),
             (3, ", reduce = step"),
             (3, ", prefetch = 0")]

    def test_totals(self):
        for (schedule, stages, layers, _), (level, options) in itertools.product(self.WAYS, self.LINES):
            for model, sizes in ((LLAMA, SIZES), (GPT, GPT_SIZES)):
                with self.subTest(model=model.stem, schedule=schedule, level=level, options=options):
                    plan = f"""
parallel cut {{
  mesh  [pp, rep, dp, tp]
  shard B @ (rep,dp), K @ tp, A @ tp, F @ tp, V @ tp
  pin   residual [B@(rep,dp), S@tp, H]
  zero  {level} @ dp{options}
  stage (embed, layer, head) @ pp, schedule = {schedule}
}}
"""
                    spec = self.write(f"{model.stem}.etch",
                                      edited(plan) if model == LLAMA else with_plans(GPT) + plan)
                    mesh = dict(pp=stages, rep=2, dp=2,
                                tp=1) if level == 3 else dict(pp=stages, rep=1, dp=2, tp=2)
                    sets = {**sizes, **STEP, "micro": 2 * stages, "batch": 8 * stages, "layers": layers,
                            **mesh}
                    name = f"{model.stem}.{schedule[:8]}.{level}.{len(options)}.{options[-1:]}"
                    folder = lower(self.scratch / name, spec, plan="cut", sets=sets)
                    self.assertFine(folder)
                    self.assertStages(folder, spec, "cut", sets, mesh)
                    self.assertIn("always", succeed("verify", folder).out)

    def test_of_one_stage(self):
        """An axis of stages of one rank changes nothing, with and without a root."""
        for options in ("", ", root = true"):
            self.compare_one_stage(options)

    def compare_one_stage(self, options):
        plan = """
parallel {} {{
  mesh  [{}dp]
  shard B @ dp
  zero  3 @ dp{}
{}}}
"""
        spec = self.write("llama.etch", edited(plan.format("whole", "", options, "") +
                                               plan.format("cut", "pp, ", options,
                                                           "  stage (embed, layer, head) @ pp\n")))
        sets = {**SIZES, **STEP, "dp": 3}
        for query in ("comm(step)", "comm(forward)", "traffic(step)"):
            self.assertEqual(value(spec, query, plan="whole", sets=sets),
                             value(spec, query, plan="cut", sets={**sets, "pp": 1}))


if __name__ == "__main__":
    main()
