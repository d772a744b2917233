"""Mixture of experts: published sizes, what experts cost whatever the plan, and the all-to-alls that plans
imply."""

import json

from etchtest import (MODELS, Case, Formula, Point, ask, attribute, lower, main, messages, succeed, table,
                      trace, traces,
                      value)

MIXTRAL, QWEN3 = MODELS / "mixtral.etch", MODELS / "qwen3_moe.etch"
ALONE = "moe_ep, tp = 1"  # experts over ep, and nothing over tp
PLANS = {ALONE: ("dp", "ep"), "moe_ep": ("dp", "ep", "tp"), "moe_folded": ("dp", "ep", "tp")}


def under(plan, **sets):
    """A plan of the shipped spec, and what is set for it."""
    return dict(plan=plan.split(",")[0], sets={**({"tp": 1} if plan == ALONE else {}), **sets})

BF16, F32 = 2, 4
DIMS = {"B": "batch", "S": "seq", "H": "hidden", "E": "experts", "Q": "topk", "I": "expert_ffn", "V": "vocab"}

# Megatron's count for a sequence of 4096: causal attention is halved to s/2 keys, the router left out.
MEGATRON_8X7B = 326477644038144
MEGATRON_QWEN3 = 94233729957888

# DeepSeek-V3's layer of experts: sigmoid scores, a bias that only the choice sees, groups, a shared expert.
# The rest of the model is left out.
DEEPSEEK = """etch 1
import "{base}"
import "{mixtral}" (experts_mlp, experts, topk, expert_ffn, E, Q, I, C)
param groups = 8, top_groups = 4, shared = 1
dim J = shared*I
module deepseek_moe(x[B,S,H]) -> y[B,S,H] {{
  weight wr[H,E]
  weight bias[E]: f32  tag frozen
  r[B,S,E]   = x * wr
  p          = sigmoid(r)
  idx[B,S,Q]: i32 = topk(p + bias, over = E, groups = groups, keep = top_groups)
  w[B,S,Q]   = gather(p, idx, over = E)
  xe[E,C,H]  = dispatch(x, idx, over = (B,S), slots = C, limit = top_groups)
  ye         = experts_mlp(xe)
  z[B,S,Q,H] = collect(ye, idx, over = (E,C))
  yr[B,S,H]  = z * normalize(w, over = Q)
  aux[]      = scale(load_balance(p, idx, over = E), 1/10000)  tag loss
  y          = yr + mlp(x, J = J)
}}
model layer(x[B,S,H], t[B,S,H]) -> y[B,S,H] {{
  weight g[H]
  y   = deepseek_moe(x * g)
  e   = y - t
  l[] = sum(e * e, over = (B,S,H))  tag loss
}}
config v3 {{ hidden = 7168, expert_ffn = 2048, experts = 256, topk = 8, shared = 1 }}
train {{ model = layer, optimizer = adamw(master = true), accumulate = (B, micro) }}
param dp = 128
parallel p {{
  mesh  [edp = dp/ep, ep]
  axis  dp = (edp, ep)
  shard B @ dp
  zero  1 @ dp
  for experts_mlp {{ shard E @ ep, C @ edp }}
}}
"""


SERVED = """etch 1
import "{base}"
import "{mixtral}"
param context
infer decode {{ model = mixtral, output = z, seq = 1, past = context }}
infer prefill {{ model = mixtral, output = z, past = 0 }}
parallel served {{ mesh [ep]; shard B @ ep; for experts_mlp {{ shard E @ ep }} }}
"""


def small(**more):
    return {**dict(layers=2, hidden=32, heads=8, kv_heads=4, head_dim=8, ffn=1, expert_ffn=24, vocab=64,
                   experts=8,
                   topk=2, batch=8, seq=16, micro=2, dp=4, ep=2), **more}


class Sizes(Case):
    def spec(self, name, text):
        return self.write(name, text.format(base=MODELS / "base.etch", mixtral=MIXTRAL))

    def test_flops_of_qwen3(self):
        self.assertMegatron(QWEN3, "qwen3_30b_a3b", MEGATRON_QWEN3, layers=48, width=32 * 128, hidden=2048,
                            experts=128)

    def test_flops_of_mixtral(self):
        self.assertMegatron(MIXTRAL, "mixtral_8x7b", MEGATRON_8X7B, layers=32, width=4096, hidden=4096,
                            experts=8)

    def assertMegatron(self, spec, config, expected, layers, width, hidden, experts):
        """Their attention: 3 * 4 FLOP for s/2 keys. Ours: two products forward, five backward, (s+1)/2
        keys."""
        seq = 4096
        found = value(spec, "matmul_flops(step)", config, sets={"batch": 1, "seq": seq})
        theirs, ours = layers * 12 * width * seq * seq // 2, layers * 14 * width * seq * (seq + 1) // 2
        router = layers * 6 * seq * hidden * experts
        self.assertEqual(expected, found - ours - router + theirs)

    def test_deepseek(self):
        spec = self.spec("deepseek.etch", DEEPSEEK)
        expert, router = 3 * 7168 * 2048, 7168 * 256
        self.assertEqual(257 * expert + router + 256, value(spec, "params(deepseek_moe)", "v3"))
        self.assertEqual(257 * expert + router, value(spec, "trainable(deepseek_moe)", "v3"))
        self.assertEqual(9 * expert + router + 256, value(spec, "active_params(deepseek_moe)", "v3"))
        sets = {"batch": 1, "seq": 64, "micro": 1}
        self.assertEqual(64 * 2 * (9 * expert + router),
                         value(spec, "matmul_flops(forward)", "v3", sets=sets))
        # Nothing needs the gradient of the bias or of the choice.
        rows, _ = table(spec, "flops(backward)", "op", "v3", sets=sets)
        self.assertEqual(set(), {"topk", "load"} & set(rows))
        self.assertEqual(64 * 8, rows["scatter"])
        self.assertEqual(64 * 8 * 7168, rows["dispatch_dx"])

    def test_deepseek_exchange(self):
        """Four all-to-alls of T_local * k * h elements for each layer and microbatch."""
        spec = self.spec("deepseek.etch", DEEPSEEK)
        sets = {"batch": 256, "seq": 4096, "micro": 2, "dp": 128, "ep": 64}
        self.assertEqual(4 * BF16 * (256 // 128) * 4096 * 8 * 7168,
                         value(spec, "comm(step, op = all_to_all)", "v3", "p", sets))


class Costs(Case):
    def test_experts_cost_what_their_tokens_cost(self):
        def products(v):
            return 6 * v.batch * v.seq * v.topk * v.hidden * v.expert_ffn

        self.assertFormula(products, ask(MIXTRAL, "matmul_flops(forward, of = experts_mlp)"), DIMS)
        for plan, axes in PLANS.items():
            with self.subTest(plan):
                for phase, times in (("forward", 1), ("backward", 2)):
                    text = ask(MIXTRAL, f"rank_flops({phase}, of = experts_mlp)", **under(plan))
                    self.assertNotIn("ep", Formula(text, DIMS).names())
                    # Beside products: silu and a product forward; their gradients backward.
                    others = {"forward": 6, "backward": 9 + 2}[phase]
                    self.assertFormula(lambda v: (times * products(v) + others * v.batch * v.seq * v.topk *
                                                  v.expert_ffn) /
                                       (v.dp * (v.tp if "tp" in axes else 1)) + self.sums(phase, plan, v),
                                       text, DIMS)

    @staticmethod
    def sums(phase, plan, v):
        """The cotangents of the two products that read a slot are added, where the rank has them as a
        whole."""
        if phase == "forward":
            return 0
        whole = v.batch * v.seq * v.topk * v.hidden / v.dp
        return whole if plan != "moe_folded" else whole / v.tp

    def test_the_choice_is_cheap(self):
        text = ask(MIXTRAL, "flops(forward, of = moe, op = topk)")
        self.assertFormula(lambda v: v.batch * v.seq * v.experts * v.topk, text, DIMS)
        for op in ("dispatch", "collect", "gather"):
            self.assertEqual("0", ask(MIXTRAL, f"flops(step, of = moe, op = {op})"))

    def test_microbatches_do_not_change_the_work(self):
        for phase in ("forward", "backward"):
            text = ask(MIXTRAL, f"flops({phase}, of = experts_mlp)")
            self.assertNotIn("micro", Formula(text, DIMS).names())


class Exchanges(Case):
    def test_payload_of_a_layer(self):
        """Dispatch and collect, forward and backward, T_local * k * h elements each."""
        for plan in PLANS:
            with self.subTest(plan):
                axis = "(ep,tp)" if plan == "moe_folded" else "ep"
                text = ask(MIXTRAL, f"comm(step, of = block, op = all_to_all, axis = {axis})", **under(plan))
                self.assertEqual(text, ask(MIXTRAL, "comm(step, of = block, op = all_to_all)", **under(plan)))

                def payload(v):
                    tokens = v.batch * v.seq / v.dp / (1 if plan == ALONE else v.tp)
                    return 4 * BF16 * tokens * v.topk * v.hidden

                self.assertFormula(payload, text, DIMS)
                for phase in ("forward", "backward"):
                    half = ask(MIXTRAL, f"comm({phase}, of = block, op = all_to_all)", **under(plan))
                    self.assertFormula(lambda v: payload(v) / 2, half, DIMS)

    def test_ring_traffic(self):
        text = ask(MIXTRAL, "wire(step, of = block, axis = ep)", **under(ALONE))
        self.assertFormula(lambda v: 4 * BF16 * v.batch * v.seq / v.dp * v.topk * v.hidden *
                           (v.ep - 1) / v.ep, text, DIMS)

    def test_tensor_parallel_experts(self):
        """Slots are gathered before the first product of an expert and scattered behind the last, as the
        residual is."""
        slots = lambda v: BF16 * v.batch * v.seq / v.dp * v.topk * v.hidden
        for phase in ("forward", "backward"):
            gathered = ask(MIXTRAL, f"comm({phase}, of = moe, op = all_gather, axis = tp)", plan="moe_ep")
            scattered = ask(MIXTRAL, f"comm({phase}, of = moe, op = reduce_scatter, axis = tp)",
                            plan="moe_ep")
            self.assertFormula(lambda v: slots(v) / v.tp, gathered, DIMS)
            self.assertFormula(slots, scattered, DIMS)

    def test_load_of_the_experts(self):
        """What the loss that balances them reduces: shares, in f32. Sums of scores stay summands, as the loss
        does."""
        text = ask(MIXTRAL, "comm(forward, of = moe, op = all_reduce)", **under(ALONE))
        self.assertFormula(lambda v: v.micro * v.experts * F32, text, DIMS)

    def test_gradients_of_experts(self):
        """Reduced where experts are replicated only."""
        text = ask(MIXTRAL, "comm(sync, of = experts_mlp, axis = edp, op = reduce_scatter)",
                   **under(ALONE, hidden=4096, expert_ffn=4096, dp=16, ep=4, experts=8))
        self.assertEqual(str(F32 * 3 * 8 * 4096 * 4096 // 4), text)


class Served(Case):
    """A token of each sequence: experts that nobody chooses are not read."""

    def spec(self):
        return self.write("served.etch", SERVED.format(base=MODELS / "base.etch", mixtral=MIXTRAL))

    def test_traffic_of_experts(self):
        text = ask(self.spec(), "traffic(forward, of = experts_mlp, run = decode)", plan="served")
        weights = lambda v: 3 * BF16 * v.hidden * v.expert_ffn * min(v.batch * v.topk, v.experts)
        # read twice, written once; g and u written, one of them and then both read
        slots = lambda v: v.batch * v.topk
        self.assertFormula(lambda v: (weights(v) + BF16 * slots(v) *
                                      (3 * v.hidden + 4 * v.expert_ffn)) / v.ep, text, DIMS)

    def test_few_tokens(self):
        spec = self.spec()
        for batch, read in ((1, 2), (3, 6), (4, 8), (100, 8)):
            sets = {"batch": batch, "ep": 1, "context": 1000}
            found = value(spec, "traffic(forward, of = experts_mlp, run = decode)", "mixtral_8x7b", "served",
                          sets)
            self.assertEqual(BF16 * (read * 3 * 4096 * 14336 + 2 * batch * (3 * 4096 + 4 * 14336)), found)

    def test_two_all_to_alls(self):
        text = ask(self.spec(), "comm(forward, of = block, run = decode, op = all_to_all)", plan="served")
        self.assertFormula(lambda v: 2 * BF16 * v.batch / v.ep * v.topk * v.hidden, text, DIMS)

    def test_traces(self):
        sets = {**small(dp=2, micro=1, batch=2), "context": 24}
        for name in ("micro", "seq", "dp"):
            del sets[name]
        folder = self.scratch / "decode"
        succeed("lower", self.spec(), "--run", "decode", "--plan", "served", "--set",
                ",".join(f"{name}={size}" for name, size in sets.items()), "-o", folder)
        self.assertFine(folder)
        self.assertIn("always: every rank finishes", succeed("verify", folder).out)


class Traces(Case):
    def test_totals(self):
        for plan, axes in PLANS.items():
            for mesh in (dict(dp=4, ep=2), dict(dp=2, ep=2, micro=1), dict(dp=4, ep=4), dict(dp=2, ep=1)):
                sets = small(**mesh, tp=2 if "tp" in axes else 1)
                with self.subTest(plan=plan, **mesh):
                    name = under(plan)["plan"]
                    folder = lower(self.scratch / f"{plan}.{mesh['dp']}.{mesh['ep']}", MIXTRAL, None, name,
                                   sets)
                    self.assertTotals(folder, MIXTRAL, None, name, sets)
                    self.assertFine(folder)
                    self.assertIn("always: every rank finishes", succeed("verify", folder).out)

    def test_all_to_alls(self):
        """Of each rank: four for each layer and microbatch, in the groups of ep."""
        sets = small(tp=1)
        folder = lower(self.scratch / "out", MIXTRAL, None, "moe_ep", sets)
        groups = json.loads(next(folder.glob("*comm_group*")).read_text(encoding="utf-8"))
        payload = BF16 * (8 // 2 // 4) * 16 * 2 * 32
        for rank, path in traces(folder).items():
            exchanges = [node for node in messages(path) if node.type == trace.COLL
                         and trace.COLLECTIVES[attribute(node, "comm_type")] == "all_to_all"]
            self.assertEqual(4 * 2 * 2, len(exchanges))
            for node in exchanges:
                self.assertEqual(payload, attribute(node, "comm_size"))
                self.assertEqual([rank - rank % 2, rank - rank % 2 + 1], groups[attribute(node, "pg_name")])

    def test_slots_on_average(self):
        """Three tokens for each of eight experts and a half: what nodes do is rounded up, formulas are
        not."""
        sets = small(seq=13, topk=1, tp=1)
        folder = lower(self.scratch / "odd", MIXTRAL, None, "moe_ep", sets)
        self.assertTotals(folder, MIXTRAL, None, "moe_ep", sets)
        self.assertFine(folder)


if __name__ == "__main__":
    main()
