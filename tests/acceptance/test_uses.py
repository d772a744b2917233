"""What some iterations of a loop read is held, reduced and sent where such iterations run, and nowhere else;
a loop of no iterations reads nothing. By hand, and as the traces have it."""

from decoder import F32
from etchtest import MODELS, Case, ask, lower, main, table, trace, value

HEAD = """etch 1
param batch = 8, n = 64, layers = 6, micro = 1
param extra >= 0 = 0
dim B = batch, N = n
"""
TAIL = """  l[] = mean(z, over = (B,N))  tag loss
}
train { model = m, optimizer = adamw, accumulate = (B, micro) }
parallel p { mesh [pp]; stage (embed, layer) @ pp }
"""
LAYER = """    weight w[N,N']
    t[B,N'] = z * w
    z = z + t[N'->N]
"""
FRONT = """  y[B,N'] = x * e  tag embed
  z = y[N'->N]
"""
TWICE = HEAD + """model m(x[B,N]) -> l[] {
  weight e[N,N']
""" + FRONT + """  repeat layers as layer {
""" + LAYER + """  }
  repeat extra as more {
    t[B,N'] = z * e
    z = z + t[N'->N]
  }
""" + TAIL
# the block g is of every third layer
THIRD = HEAD + """model m(x[B,N]) -> l[] {
  weight e[N,N'], g[N,N']
""" + FRONT + """  repeat layers as layer {
""" + LAYER + """    if layer % 3 == 2 {
      s[B,N'] = z * g
      z = z + s[N'->N]
    }
  }
""" + TAIL
# f is read by the first two layers
FEATURES = HEAD + """model m(x[B,N]) -> l[] {
  weight e[N,N'], h[N,N']
  f[B,N'] = x * h  tag embed
""" + FRONT + """  repeat layers as layer {
""" + LAYER + """    if layer < 2 {
      u = tanh(f)
      z = z + u[N'->N]
    }
  }
""" + TAIL
# all layers read f, and what is read after them is made of it
READ_BEHIND = HEAD + """model m(x[B,N]) -> l[] {
  weight h[N,N']
  g[B,N'] = x * h
  f = g[N'->N]
  z = tanh(f)
  k = gelu(f)
  repeat layers as layer {
""" + LAYER + """    z = z + tanh(f)
  }
  z = z + k
""" + TAIL.replace("(embed, layer)", "layer")
ACT = 2 * 8 * 64  # bytes of an activation
WEIGHT = 64 * 64  # elements of a weight
SIZES = {"batch": 8, "n": 64, "layers": 6, "micro": 1, "extra": 0}


class Uses(Case):
    def stages(self, spec, query, **sets):
        rows, _ = table(spec, query, "stage", plan="p", sets={**SIZES, **sets})
        return [int(row) for label, row in rows.items() if label.isdigit()]

    def lowered(self, spec, **sets):
        """Traces send what queries say, stage by stage: a stage is a rank."""
        folder = self.scratch / f"traces{len(list(self.scratch.iterdir()))}"
        folder = lower(folder, spec, plan="p", sets={**SIZES, **sets})
        self.assertFine(folder)
        sent = {rank: sum(comm["comm_size"] for comm in row["comm"] if comm["collective"] != "recv")
                for row in trace.totals(folder) for rank in row["ranks"]}
        self.assertEqual(self.stages(spec, "comm(step)", **sets), [sent[rank] for rank in sorted(sent)])

    def test_no_iterations(self):
        spec = self.write("twice.etch", TWICE)
        for extra in (0, 1, 3):
            sets = {"pp": 2, "layers": 4, "extra": extra}
            shared = F32 * WEIGHT if extra else 0
            with self.subTest(extra=extra):
                self.assertEqual([ACT + shared] * 2, self.stages(spec, "comm(step)", **sets))
                self.assertEqual([4 - 1, 2 + (extra > 0)],
                                 [held // WEIGHT for held in self.stages(spec, "rank_params(model)", **sets)])
                self.lowered(spec, **sets)
        self.assertEqual("4*n^2*min(extra, 1)",
                         ask(spec, "comm(step, op = all_reduce, stage = last)", plan="p").strip())

    def test_a_ring_of_those_that_share(self):
        """2*(n - 1)/n of the payload, of the stages that hold the weight."""
        spec = self.write("twice.etch", TWICE)
        for extra in (0, 1):
            wire = self.stages(spec, "wire(step, op = all_reduce)", pp=4, extra=extra)
            self.assertEqual([extra * F32 * WEIGHT, 0, 0, extra * F32 * WEIGHT], wire)
        self.assertEqual("4*n^2*min(extra, 1)",
                         ask(spec, "wire(step, op = all_reduce, stage = last)", plan="p").strip())
        third = self.write("third.etch", THIRD)  # two of seven stages
        self.assertEqual([0] + [0, 0, F32 * WEIGHT] * 2,
                         self.stages(third, "wire(step, op = all_reduce)", pp=7))

    def test_a_block_of_some_layers(self):
        spec = self.write("third.etch", THIRD)
        sets = {"pp": 7}  # each layer is a stage
        self.assertEqual([1] + [1, 1, 2] * 2,
                         [held // WEIGHT for held in self.stages(spec, "rank_params(model)", **sets)])
        self.assertEqual([0] + [0, 0, F32 * WEIGHT] * 2,
                         self.stages(spec, "comm(step, op = all_reduce)", **sets))
        self.lowered(spec, **sets)

    def test_features_of_some_layers(self):
        spec = self.write("features.etch", FEATURES)
        sends = [2, 2, 1, 1, 1, 1, 0]  # z, and f up to the second layer
        self.assertEqual([ACT * count for count in sends],
                         self.stages(spec, "comm(forward)", pp=7))
        self.assertEqual([0, *[ACT * count for count in sends[:-1]]],
                         self.stages(spec, "comm(backward)", pp=7))
        self.lowered(spec, pp=7)

    def test_one_cotangent_of_a_value(self):
        """That of z, and of f the sum, to which what comes after the layers has added first."""
        spec = self.write("behind.etch", READ_BEHIND)
        self.assertEqual([0, *[2 * ACT] * 5], self.stages(spec, "comm(backward)", pp=6))
        self.lowered(spec, pp=6)

    def test_flop_of_cotangents(self):
        """By hand: behind a loop that reads f, and one that does not run, and before them."""
        spec = self.write("sums.etch", HEAD + """model m(x[B,N]) -> l[] {
  weight e[N,N']
  f[B,N'] = x * e
  u[B,N'] = tanh(f)
  z = u[N'->N]
  repeat extra as more {
    z = z + f[N'->N]
  }
  l[] = mean(z, over = (B,N))  tag loss
}
train { model = m, optimizer = sgd }
parallel p { mesh [dp]; shard B @ dp }
""")
        # forward: a product, tanh, the mean; backward: the gradient of tanh and of e, in each iteration an
        # addition to what others have made, and one of that to what tanh has made
        numbers = {extra: 4 * 8 * 64 * 64 + 8 * 64 * (5 + 1 + 3) + 2 + 8 * 64 * (2 * extra + (extra > 0))
                   for extra in (0, 1, 3)}
        for extra, flops in numbers.items():
            with self.subTest(extra=extra):
                sets = {"batch": 8, "n": 64, "extra": extra}
                for phases in ("flops(forward) + flops(backward)",
                               "rank_flops(forward) + rank_flops(backward)"):
                    self.assertEqual(flops, value(spec, phases, plan="p", sets={**sets, "dp": 1, "micro": 1}))

    def test_a_loop_of_none(self):
        """It can be named; of its weights there are none."""
        spec = self.write("none.etch", TWICE.replace("repeat extra as more", "repeat 0 as more")
                          .replace("t[B,N'] = z * e\n    z", "weight v[N,N']\n    t[B,N'] = z * v\n    z"))
        self.assertEqual("0", ask(spec, "flops(forward, of = more)").strip())
        self.assertEqual("0", ask(spec, "params(more)").strip())
        self.assertEqual(2 * WEIGHT, value(spec, "params(model)", sets={"n": 64, "layers": 1}))

    def test_as_shipped(self):
        """DeepSeek-V3 without the module that predicts a second token: nothing of it is on the last stage."""
        spec = MODELS / "deepseek_v3.etch"
        sets = {"pp": 16, "dp": 128, "ep": 64}
        states = {mtp: value(spec, "memory(states, stage = 15)", "v3", "expert_pp", {**sets, "mtp": mtp})
                  for mtp in (0, 1)}
        self.assertEqual(16248258720, states[0])
        text = spec.read_text(encoding="utf-8").replace('import "', f'import "{MODELS}/')
        never = self.write("never.etch", text.replace("repeat mtp as", "repeat 0 as"))
        for query in ("flops(step)", "elementwise(backward)", "saved(model)"):
            values = [ask(of, query, "v3", sets={"mtp": 0}) for of in (never, spec)]
            self.assertEqual(*values, query)
        self.assertGreater(states[1], 21895209120)


if __name__ == "__main__":
    main()
