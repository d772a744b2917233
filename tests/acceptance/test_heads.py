"""Keys and values with fewer heads than ranks: their cotangents stay partial until the gradients of the
weights, and the cotangent of what queries, keys and values read is reduced once."""

from etchtest import Case, main, value

MODEL = """etch 1
param batch, seq, hidden, groups, width, heads, layers
dim B = batch, S = seq, H = hidden, K = groups, G = heads, D = width, T = seq, E = hidden
dtype act = bf16, weights = bf16, grads = f32, optim = f32

model m(x[B,S,H]) -> l[] {{
  y = x
  repeat layers as layer {{
    weight gain[H], wq[H,K,G,D], wk[H,K,D], wv[H,K,D], wo[K,G,D,H]{weights}
    n = {norm}
    q[B,S,K,G,D] = n * wq
    k[B,S,K,D] = n * wk{bias}
    v[B,S,K,D] = n * wv{turned}
    a[B,S,K,G,D] = sdpa(q, k[S->T], v[S->T], dot = D, over = T, causal = true)
    y = y + a * wo  tag residual
  }}
  l[] = sum(y, over = (B,S,H))  tag loss
}}
train {{ optimizer = adamw() }}
parallel both {{
  mesh  [dp, kv, g]
  shard B @ dp, K @ kv, G @ g
}}
parallel sequence {{
  mesh  [dp, kv, g]
  shard B @ dp, K @ kv, G @ g
  pin   residual [B@dp, S@(kv,g), H]
}}
"""
SIZES = {"batch": 4, "seq": 8, "hidden": 16, "groups": 4, "heads": 2, "width": 4, "layers": 3,
         "kv": 2, "g": 2}
PLAIN = {"norm": "rms_norm(y, gain, over = H)", "turned": "", "bias": "", "weights": ""}
VARIANTS = ({}, {"turned": "\n    q = rope(q, over = D)\n    k = rope(k, over = D)"},
            {"bias": " + bk", "weights": ", bk[K,D]"}, {"norm": "rms_norm(y, over = H) * (gain + 1)"})


class Heads(Case):
    def sent(self, phase, plan, dp, **parts):
        spec = self.write("m.etch", MODEL.format(**{**PLAIN, **parts}))
        return value(spec, f"comm({phase})", plan=plan, sets={**SIZES, "dp": dp})

    def test_cotangents_are_reduced_once(self):
        """A [B,S,H] in each layer, and nothing of keys and values."""
        for dp in (1, 2):
            row = 2 * 4 * 8 * 16 // dp
            for parts in VARIANTS:
                for plan in ("both", "sequence"):
                    with self.subTest(dp=dp, parts=parts, plan=plan):
                        forward, backward = (self.sent(p, plan, dp, **parts) for p in ("forward", "backward"))
                        # whole: one all-reduce; sharded: a reduce-scatter, and a gather of one shard each
                        # for the products before it
                        self.assertEqual(3 * row if plan == "both" else 3 * (row + row // 4), forward)
                        self.assertEqual(3 * row if plan == "both" else 3 * (row + row // 4 + row // 4),
                                         backward)

    def test_gradients_of_keys_and_values(self):
        """They are reduced once a step, over g as well: those of queries over dp alone."""
        of_keys = 2 * 4 * 16 * 4 * 4 // 2
        others = 2 * 4 * 16 * 4 * 2 * 4 // 4 + 4 * 16
        for dp in (1, 2):
            with self.subTest(dp=dp):
                self.assertEqual(3 * (of_keys + (others if dp > 1 else 0)), self.sent("sync", "both", dp))

    def test_what_has_no_other_reduction(self):
        """Only keys and values read the second input: its cotangent is not reduced otherwise."""
        text = MODEL.format(**PLAIN).replace("n * wk", "c * wk").replace("n * wv", "c * wv")
        text = text.replace("  y = x\n", "  weight wc[H,E]\n  p[B,S,E] = x * wc\n  c = tanh(p)\n  y = x\n")
        text = text.replace("wk[H,K,D], wv[H,K,D]", "wk[E,K,D], wv[E,K,D]")
        spec = self.write("m.etch", text)
        keys = 2 * 4 * 8 * 4 * 4 // 2
        found = value(spec, "comm(backward)", plan="both", sets={**SIZES, "dp": 1})
        self.assertEqual(3 * (2 * 2 * 4 * 8 * 16 + 2 * keys), found)


if __name__ == "__main__":
    main()
