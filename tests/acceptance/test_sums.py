"""A sum is of all its terms: in whatever order and with whatever parentheses they are written, the same is
computed, kept and sent. Summands that ranks hold in part are added before they are sent."""

import itertools

from etchtest import Case, main, value

MODEL = """etch 1
param b, h, f
dim B = b, H = h, F = f
dtype act = bf16, weights = bf16, grads = f32, optim = f32

model m(x[B,H]) -> l[] {{
  weight w1[H,F], w2[F,H], w3[H,F], w4[F,H], g[H]
  i       = square(x * g)
  p[B,F]  = i * w1
  q[B,F]  = i * w3
  s[B,H]  = p * w2
  t[B,H]  = q * w4
  y[B,H]  = {sum}
  z       = square(y)
  l[]     = sum(z, over = (B,H))  tag loss
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
  pin   i [B @ tp, H]
  pin   y [B @ tp, H]
}}
"""
SIZES = {"b": 8, "h": 4, "f": 16, "tp": 2}
ROW = 2 * 8 * 4  # bytes of a [B,H]
QUESTIONS = ("comm(forward)", "comm(backward)", "comm(step)", "wire(step)", "rank_flops(forward)",
             "rank_flops(backward)", "rank_saved(m)", "memory(peak)", "traffic(step)")


def parenthesised(terms):
    """All ways to add them up by pairs, in this order."""
    if len(terms) == 1:
        yield terms[0]
    for cut in range(1, len(terms)):
        for left in parenthesised(terms[:cut]):
            for right in parenthesised(terms[cut:]):
                yield f"({left} + {right})" if len(terms) > 2 or cut else f"{left} + {right}"


class Sums(Case):
    def answers(self, text, plan):
        spec = self.write("m.etch", MODEL.format(sum=text))
        return [value(spec, question, plan=plan, sets=SIZES) for question in QUESTIONS]

    def test_summands_are_added_before_they_are_sent(self):
        """Forward reduces the sum of both products once, backward the cotangent of what both read."""
        found = dict(zip(QUESTIONS, self.answers("i + s + t", "tensor")))
        self.assertEqual((ROW, ROW), (found["comm(forward)"], found["comm(backward)"]))

    def test_order_has_no_meaning(self):
        for plan in ("tensor", "sequence"):
            first = self.answers("i + s + t", plan)
            for order in itertools.permutations(("i", "s", "t")):
                for text in parenthesised(order):
                    with self.subTest(plan=plan, sum=text):
                        self.assertEqual(first, self.answers(text, plan))

    def test_four_terms(self):
        first = self.answers("i + s + t + g", "tensor")
        for order in itertools.permutations(("i", "s", "t", "g")):
            with self.subTest(order=order):
                self.assertEqual(first, self.answers(" + ".join(order), "tensor"))
        self.assertEqual(first, self.answers("(i + s) + (t + g)", "tensor"))

    def test_differences(self):
        first = self.answers("i + s - t", "tensor")
        for text in ("i - t + s", "s - t + i", "s - (t - i)", "(i + s) - t", "s + (i - t)"):
            with self.subTest(text):
                self.assertEqual(first, self.answers(text, "tensor"))
        self.assertEqual(first[0], ROW)

    def test_numbers(self):
        first = self.answers("i + s + t + 1", "tensor")
        for text in ("1 + i + s + t", "(i + 1) + s + t", "i + (s + 3) + (t - 2)", "i + s - 1 + t + 2"):
            with self.subTest(text):
                self.assertEqual(first, self.answers(text, "tensor"))
        self.assertEqual(first[0], ROW)

    def test_numbers_that_cancel(self):
        self.assertEqual(self.answers("i + s + t", "tensor"), self.answers("i + 1 + s + t - 1", "tensor"))

    def test_more_terms_than_an_op_takes(self):
        text = " + ".join(["s", "t"] * 20)
        self.assertEqual(ROW, self.answers(text, "tensor")[0])


if __name__ == "__main__":
    main()
