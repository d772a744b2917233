"""Cotangents that ranks hold in part are added up once, before several operands get their gradients of
them: a norm that is written by hand sends what the function does, and gradients of gains and biases are not
reduced over the ranks that divide a product behind them."""

from etchtest import Case, main, value

MODEL = """etch 1
param batch, seq, hidden, ffn, layers
dim B = batch, S = seq, H = hidden, F = ffn
dtype act = bf16, weights = bf16, grads = f32, optim = f32

model m(x[B,S,H]) -> l[] {{
  y = x
  repeat layers as layer {{
    weight g[H], c[H], up[H,F], down[F,H]
    n = {norm}
    h[B,S,F] = n * up
    y[B,S,H] = y + silu(h) * down  tag residual
  }}
  l[] = sum(y, over = (B,S,H))  tag loss
}}

train {{
  optimizer = adamw()
}}

parallel tensor {{
  mesh  [tp]
  shard F @ tp
}}

parallel sequence {{
  mesh  [tp]
  shard F @ tp
  pin   residual [B, S @ tp, H]
}}
"""
SIZES = {"batch": 2, "seq": 8, "hidden": 4, "ffn": 16, "layers": 3, "tp": 2}
ROW = 2 * 2 * 8 * 4  # bytes of a [B,S,H]


class Cotangents(Case):
    def sent(self, norm, plan, phase):
        spec = self.write("m.etch", MODEL.format(norm=norm))
        return value(spec, f"comm({phase})", plan=plan, sets=SIZES)

    def test_norms_by_hand(self):
        root = "rsqrt(mean(square(y), over = H) + 1)"
        deviation = "sqrt(mean(square(y - mean(y, over = H)), over = H) + 1)"
        for norm in ("rms_norm(y, g, over = H)", "rms_norm(y, over = H) * g",
                     "rms_norm(y, over = H) * (g + 1)",
                     "(g + 1) * rms_norm(y, over = H)", f"y * {root} * g", f"g * (y * {root})",
                     f"(y - mean(y, over = H)) / {deviation} * g + c", "layer_norm(y, over = H) * g + c",
                     "rms_norm(y, over = H) * g + c - g"):
            for phase, bytes_sent in (("forward", 3 * ROW), ("backward", 3 * ROW), ("sync", 0)):
                with self.subTest(norm=norm, phase=phase):
                    self.assertEqual(bytes_sent, self.sent(norm, "tensor", phase))

    def test_parts_of_the_sequence(self):
        """Gains see a part of the tokens: their gradients are reduced, as those of the function's gain."""
        for norm in ("rms_norm(y, over = H) * g", "rms_norm(y, over = H) * (g + 1)",
                     "y * rsqrt(mean(square(y), over = H) + 1) * g"):
            for phase in ("forward", "backward", "sync"):
                with self.subTest(norm=norm, phase=phase):
                    self.assertEqual(self.sent("rms_norm(y, g, over = H)", "sequence", phase),
                                     self.sent(norm, "sequence", phase))

    def test_products_pass_partial_cotangents_on(self):
        """Queries, keys and values of one input: their cotangents meet, and are added up once."""
        text = MODEL.replace("    h[B,S,F] = n * up\n", "    h[B,S,F] = n * up\n    v[B,S,F] = n * up2\n")
        text = text.replace("up[H,F]", "up[H,F], up2[H,F]").replace("silu(h)", "silu(h) * v")
        spec = self.write("m.etch", text.format(norm="rms_norm(y, over = H) * g"))
        found = [value(spec, f"comm({phase})", plan="tensor", sets=SIZES)
                 for phase in ("forward", "backward", "sync")]
        self.assertEqual([3 * ROW, 3 * ROW, 0], found)


class SharedByLoops(Case):
    """A loop adds its part of a value's cotangent to what those behind it have left, not to zeros first: two
    loops add as often as one of all their iterations."""

    MODEL = """etch 1
param batch, hidden
dim B = batch, H = hidden
dtype act = bf16, weights = bf16, grads = f32, optim = f32
model m(x[B,H]) -> l[] {{
  weight g[H]
  shared = x * g
  y = x
{body}
  l[] = sum(y, over = (B,H))  tag loss
}}
train {{ optimizer = sgd }}
"""
    LOOP = "  repeat {count} as {name} {{ weight w[H]; y = y + silu(y * w) * shared }}\n"

    def flops(self, name, *parts):
        spec = self.write(f"{name}.etch", self.MODEL.format(body="".join(parts)))
        return value(spec, "flops(backward)", sets={"batch": 3, "hidden": 5})

    def test_two_loops_are_one(self):
        self.assertEqual(self.flops("one", self.LOOP.format(count=6, name="layer")),
                         self.flops("two", self.LOOP.format(count=2, name="layer"),
                                    self.LOOP.format(count=4, name="more")))


if __name__ == "__main__":
    main()
