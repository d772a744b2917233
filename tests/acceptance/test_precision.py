"""Dtypes by class of tensor, in specs and in plans: what is kept, what the optimizer touches and what
travels, by hand."""

import math

from etchtest import (GPT, LLAMA, MODELS, Case, ask, attribute, lower, main, messages,
                      succeed, traces, value)
from test_numbers import GPT_DIMS, LLAMA_DIMS
from test_routing import DIMS as MOE_DIMS
from test_zero import llama_weights

MIXTRAL = MODELS / "mixtral.etch"
BYTES = {"f32": 4, "bf16": 2, "f8": 1}

PLANS = """
import "{model}"
parallel usual {{ mesh [dp]; shard B @ dp; zero 1 @ dp }}
parallel half {{ mesh [dp]; shard B @ dp; zero 1 @ dp; dtype grads_comm = bf16 }}
parallel small {{ mesh [dp]; shard B @ dp; zero 1 @ dp; dtype grads_comm = f8, weights_comm = f8 }}
parallel lean {{ mesh [dp]; shard B @ dp; zero 1 @ dp; dtype grads = bf16, optim = bf16; dtype master = f32 }}
parallel pure {{ mesh [dp]; shard B @ dp; zero 1 @ dp; dtype moments = bf16, master = none }}
parallel wide {{ mesh [dp]; shard B @ dp; zero 1 @ dp; dtype act = f32, weights = f32, optim = f32 }}
parallel v3 {{ mesh [dp]; shard B @ dp; zero 1 @ dp; dtype moments = bf16 }}
"""

# Of a gradient and of a weight on the way; then what the optimizer reads and writes of one element of a
# weight: the gradient, the copy of the weight that it works on, twice its moments; and the weight itself,
# when there is a copy.
EXPECTED = {"usual": (4, 2, 4 + 2 * 4 + 2 * 8 + 2),
            "half": (2, 2, 4 + 2 * 4 + 2 * 8 + 2),
            "small": (1, 1, 4 + 2 * 4 + 2 * 8 + 2),
            "lean": (2, 2, 2 + 2 * 4 + 2 * 4 + 2),
            "pure": (4, 2, 4 + 2 * 2 + 2 * 4),
            "wide": (4, 4, 4 + 2 * 4 + 2 * 8 + 4),
            "v3": (4, 2, 4 + 2 * 4 + 2 * 4 + 2)}


def parts(v):
    """Elements of all weights that a rank of dp updates."""
    return sum(count * math.ceil(elements / v.dp) for elements, _, count in llama_weights(v))


class DataParallel(Case):
    def setUp(self):
        super().setUp()
        self.spec = self.write("plans.etch", "etch 1" + PLANS.format(model=LLAMA))

    def test_what_travels(self):
        for plan, (gradient, weight, _) in EXPECTED.items():
            with self.subTest(plan):
                self.assertFormula(lambda v: gradient * v.dp * parts(v),
                                   ask(self.spec, "comm(sync, op = reduce_scatter)",
                                      plan=plan), LLAMA_DIMS)
                self.assertFormula(lambda v: weight * parts(v),
                                   ask(self.spec, "comm(sync, op = all_gather)", plan=plan),
                                   LLAMA_DIMS)
                self.assertFormula(lambda v: (gradient + weight) * (v.dp - 1) * parts(v),
                                   ask(self.spec, "wire(sync)",
                                      plan=plan), LLAMA_DIMS)

    def test_what_the_optimizer_touches(self):
        for plan, (_, _, touched) in EXPECTED.items():
            with self.subTest(plan):
                self.assertFormula(lambda v: touched * parts(v),
                                   ask(self.spec, "traffic(optimizer)", plan=plan), LLAMA_DIMS)

    def test_plans_of_one_spec_do_not_meet(self):
        """One question over several plans: each has its own dtypes, whichever is asked first."""
        # f32, whatever activations are: of attention, of the loss
        statistics = "batch*seq/micro*4*(heads*layers + 1)"
        for claim in ("comm(sync, op = reduce_scatter, plan = usual) == 2*comm(sync, op = reduce_scatter, "
                      "plan = half)",
                      "comm(sync, op = reduce_scatter, plan = small)*4 == comm(sync, op = reduce_scatter, "
                      "plan = usual)",
                      f"saved(of = llama, plan = wide) - {statistics} == 2*(saved(of = llama, plan = usual) "
                      f"- {statistics})",
                      "flops(step, plan = wide) == flops(step, plan = pure)",
                      "traffic(optimizer, plan = usual) == traffic(optimizer, plan = half)",
                      "traffic(backward, plan = usual) == traffic(backward, plan = v3)"):
            self.assertIn("proved", succeed("prove", self.spec, claim).out, claim)

    def test_traces(self):
        sets = dict(layers=2, hidden=20, heads=4, kv_heads=2, head_dim=4, ffn=28, vocab=44, batch=8, seq=8,
                    micro=2, dp=4)
        for plan in EXPECTED:
            with self.subTest(plan):
                folder = lower(self.scratch / plan, self.spec, plan=plan, sets=sets)
                self.assertFine(folder)
                self.assertTotals(folder, self.spec, None, plan, sets)


class Activations(Case):
    def test_tensor_parallel(self):
        """Two all-reduces forward and two backward in each layer, of the dtype of activations."""
        spec = self.write("tp.etch", f"""etch 1
import "{GPT}"
parallel wide {{ mesh [dp, tp]; shard B @ dp, A @ tp, F @ tp, V @ tp; dtype act = f32, grads = bf16 }}
""")
        for plan, width in (("megatron", 2), ("wide", 4)):
            text = ask(spec, "comm(forward, op = all_reduce, axis = tp, of = layer)", plan=plan)
            self.assertFormula(lambda v: 2 * width * v.batch * v.seq * v.hidden / v.dp, text,
                               GPT_DIMS)

    def test_a_declared_dtype_stays(self):
        spec = self.write("own.etch", """etch 1
param n, micro = 1
dim B = 8, N = n
model m(x[B,N]: f32) -> y[B,N] {
  weight g[N]: f32
  weight h[N]
  y[B,N] = x * g * h
  l[] = sum(y*y, over = (B,N)) tag loss
}
train { model = m, optimizer = sgd }
parallel p { mesh [dp]; shard B @ dp; zero 1 @ dp; dtype weights = f8, act = f8, grads = bf16 }
""")
        self.assertFormula(lambda v: (4 + 1) * math.ceil(v.n / v.dp),
                           ask(spec, "comm(sync, op = all_gather)", plan="p"), {})
        self.assertFormula(lambda v: 2 * 2 * v.dp * math.ceil(v.n / v.dp),
                           ask(spec, "comm(sync, op = reduce_scatter)", plan="p"), {})

    def test_a_cast_widens_what_follows(self):
        """In f32 from the cast on: forward keeps its result, and that of silu and its operand; the product
        that says so is bf16 again. A weight of the class widens nothing, one that is declared f32 does."""
        spec = self.write("cast.etch", """etch 1
param batch, hidden, ffn
dim B = batch, H = hidden, F = ffn
dtype weights = f32
model m(x[B,H]) -> y[B,H] {
  weight w[H,F], u[F,H], g[H], k[H]: f32
  a[B,F]: f32 = cast(x, f32) * w
  c[B,H]: bf16 = silu(a) * u
  d = tanh(c) * g
  e[B,H]: f32 = d * k
  y = tanh(e)
  l[] = sum(y*y, over = (B,H))  tag loss
}
train { model = m, optimizer = sgd }
parallel p { mesh [dp, tp]; shard B @ dp, F @ tp }
""")
        # cast, its product, silu; tanh, d and y
        self.assertFormula(lambda v: (4 + 2 * 2 + 4) * v.batch * v.hidden + 2 * 4 * v.batch * v.ffn,
                           ask(spec, "saved(model)"), {})
        self.assertFormula(lambda v: 2 * v.batch * v.hidden / v.dp, ask(spec, "comm(forward)"), {})

    def test_messages_of_a_pipeline_and_tied_weights(self):
        """What stages send each other is activations; the gradient of a tied embedding travels as gradients
        do."""
        spec = self.write("pp.etch", f"""etch 1
import "{GPT}"
parallel p {{
  mesh [pp, dp]
  shard B @ dp
  stage (embed, layer, head) @ pp
  dtype act = f32, grads_comm = bf16
}}
""")
        sets = dict(layers=4, hidden=24, heads=4, vocab=52, positions=37, batch=16, seq=12, micro=4, dp=2,
                    pp=3)
        message = 4 * 16 // 4 // 2 * 12 * 24
        self.assertEqual(4 * message, value(spec, "comm(forward, stage = first, op = send)", None, "p", sets))
        self.assertEqual(2 * 52 * 24, value(spec, "comm(sync, axis = pp, stage = first)", None, "p", sets))


class InParts(Case):
    """Weights and gradients that ranks hold in parts travel in the same classes."""

    def test_zero_2_and_3(self):
        spec = self.write("parts.etch", f"""etch 1
import "{LLAMA}"
parallel two {{ mesh [dp]; shard B @ dp; zero 2 @ dp; dtype grads_comm = bf16, weights_comm = f8 }}
parallel three {{ mesh [dp]; shard B @ dp; zero 3 @ dp }}
parallel small {{ mesh [dp]; shard B @ dp; zero 3 @ dp; dtype grads_comm = bf16, weights_comm = f8 }}
""")
        self.assertFormula(lambda v: v.micro * 2 * v.dp * parts(v),
                           ask(spec, "comm(sync, op = reduce_scatter)", plan="two"),
                           LLAMA_DIMS)
        self.assertFormula(lambda v: parts(v), ask(spec, "comm(sync, op = all_gather)", plan="two"),
                           LLAMA_DIMS)
        self.assertFormula(lambda v: v.micro * parts(v),
                           ask(spec, "comm(forward, op = all_gather)", plan="small"), LLAMA_DIMS)
        for claim in ("comm(forward, plan = three) == 2*comm(forward, plan = small)",
                      "comm(backward, plan = three) == 2*comm(backward, plan = small)",
                      "comm(sync, plan = three) == 2*comm(sync, plan = small)"):
            self.assertIn("proved", succeed("prove", spec, claim).out, claim)
        sets = dict(layers=2, hidden=20, heads=4, kv_heads=2, head_dim=4, ffn=28, vocab=44, batch=8, seq=8,
                    micro=2, dp=4)
        for plan in ("two", "small"):
            folder = lower(self.scratch / plan, spec, plan=plan, sets=sets)
            self.assertFine(folder)
            self.assertTotals(folder, spec, None, plan, sets)


class Memory(Case):
    """What a rank holds of one element of a weight: the copy that the optimizer works on, and its two
    moments."""

    LINES = {"": (4, 8), "dtype moments = bf16": (4, 4), "dtype master = bf16": (2, 8),
             "dtype master = none": (0, 8),
             "dtype optim = bf16": (2, 4), "offload = optimizer": (0, 0),
             "offload = (master, moments)": (0, 0),
             "offload = master": (0, 8), "offload = moments; dtype master = f64": (8, 0),
             "offload = none": (4, 8)}

    def test_states(self):
        plans = "".join(f"parallel p{i} {{ mesh [dp]; shard B @ dp; {line} }}\nparallel z{i} "
                        f"{{ mesh [dp]; shard B @ dp; "
                        f"zero 1 @ dp; {line} }}\n" for i, line in enumerate(self.LINES))
        spec = self.write("memory.etch", f'etch 1\nimport "{LLAMA}"\n' + plans)
        for i, (line, (master, moments)) in enumerate(self.LINES.items()):
            with self.subTest(line):
                for plan, elements in ((f"p{i}", lambda v: sum(e * n for e, _, n in llama_weights(v))),
                                       (f"z{i}", parts)):
                    for held, width in (("master", master), ("moments", moments),
                                        ("optimizer", master + moments)):
                        self.assertFormula(lambda v: width * elements(v),
                                           ask(spec, f"memory({held})", plan=plan), LLAMA_DIMS)
                self.assertFormula(lambda v: (2 + 4 + master + moments) *
                                   sum(e * n for e, _, n in llama_weights(v)),
                                   ask(spec, "memory(states)", plan=f"p{i}"), LLAMA_DIMS)

    def test_what_is_offloaded_changes_no_other_costs(self):
        spec = self.write("offload.etch", f"""etch 1
import "{LLAMA}"
parallel here {{ mesh [dp]; shard B @ dp; zero 1 @ dp }}
parallel away {{ mesh [dp]; shard B @ dp; zero 1 @ dp; offload = (optimizer, master) }}
""")
        for asked in ("traffic(step)", "comm(step)", "rank_flops(step)"):
            self.assertEqual(ask(spec, asked, plan="here"), ask(spec, asked, plan="away"))


class Experts(Case):
    SPEC = """etch 1
import "{model}"
parallel sent {{
  mesh  [edp = dp/ep, ep]
  axis  dp = (edp, ep)
  shard B @ dp
  for experts_mlp {{ shard E @ ep, C @ edp }}
  dtype dispatch = {dispatch}, combine = {combine}
}}
parallel sent_tp {{
  mesh  [edp = dp/ep, ep, tp]
  axis  dp = (edp, ep)
  shard B @ dp, K @ tp, V @ tp
  pin   residual [B@dp, S@tp, H]
  for experts_mlp {{ shard E @ ep, C @ edp, I @ tp }}
  dtype dispatch = {dispatch}, combine = {combine}
}}
"""

    def test_dispatch_and_combine(self):
        """As DeepSeek-V3 does it: what goes to experts in f8, tokens forward and cotangents backward, what
        comes back in bf16."""
        for dispatch, combine in (("f8", "bf16"), ("bf16", "f8"), ("f8", "f8"), ("f32", "bf16")):
            spec = self.write("moe.etch", self.SPEC.format(model=MIXTRAL, dispatch=dispatch, combine=combine))
            out, back = BYTES[dispatch], BYTES[combine]
            with self.subTest(dispatch=dispatch, combine=combine):
                for phase in ("forward", "backward"):
                    text = ask(spec, f"comm({phase}, op = all_to_all)", plan="sent")
                    self.assertFormula(lambda v: (out + back) * v.layers * v.batch * v.seq * v.topk *
                                       v.hidden / v.dp, text,
                                       MOE_DIMS)
                    text = ask(spec, f"comm({phase}, op = all_to_all)", plan="sent_tp")
                    self.assertFormula(lambda v: (out + back) * v.layers * v.batch * v.seq * v.topk *
                                       v.hidden / v.dp / v.tp,
                                       text, MOE_DIMS)

    def test_scales(self):
        """DeepSeek-V3's tokens go out in f8, with a scale in f32 for each 128 elements."""
        spec = self.write("moe.etch",
                          self.SPEC.format(model=MIXTRAL, dispatch="f8(block = 128)", combine="bf16"))
        for phase in ("forward", "backward"):
            slots = 8 * 16 * 2 * 32 // 4 // 2
            found = value(spec, f"comm({phase}, op = all_to_all)", None, "sent", dict(
                layers=2, hidden=32, batch=8, seq=16, topk=2, micro=2, dp=4, ep=2))
            self.assertEqual(2 * 2 * (3 * slots + 4 * math.ceil(slots / 128)), found)

    def test_experts_that_are_divided(self):
        """Slots are gathered over tp before the experts, and summed and divided behind them; so are their
        cotangents backward, on the way to the experts and back."""
        spec = self.write("moe.etch", self.SPEC.format(model=MIXTRAL, dispatch="f8", combine="f32"))
        for phase in ("forward", "backward"):
            for op, width in (("all_gather", 1), ("reduce_scatter", 4)):
                text = ask(spec, f"comm({phase}, op = {op}, axis = tp, of = moe)", plan="sent_tp")
                self.assertFormula(lambda v: width * v.batch * v.seq * v.topk * v.hidden / v.dp /
                                   (v.tp if op == "all_gather" else 1), text, MOE_DIMS)

    def test_traces(self):
        spec = self.write("moe.etch", self.SPEC.format(model=MIXTRAL, dispatch="f8", combine="bf16"))
        sets = dict(layers=2, hidden=32, heads=8, kv_heads=4, head_dim=8, ffn=1, expert_ffn=24, vocab=64,
                    experts=8, topk=2,
                    batch=8, seq=16, micro=2, dp=4, ep=2)
        slots = 8 * 16 * 2 * 32 // (4 * 2)
        folder = lower(self.scratch / "out", spec, plan="sent", sets=sets)
        self.assertFine(folder)
        self.assertTotals(folder, spec, None, "sent", sets)
        exchanges = [node for node in messages(traces(folder)[0]) if "all_to_all" in node.name]
        sizes = sorted(attribute(node, "comm_size") for node in exchanges)
        self.assertEqual(sorted([slots, 2 * slots] * 2 * 2 * 2), sizes)  # phases, layers, microbatches
        folder = lower(self.scratch / "tp", spec, plan="sent_tp", sets=dict(sets, tp=2))
        self.assertFine(folder)
        self.assertTotals(folder, spec, None, "sent_tp", dict(sets, tp=2))


if __name__ == "__main__":
    main()
