"""A sum is of all its terms: in whatever order and with whatever parentheses they are written, the same is
computed, kept and sent, whatever names its parts have. Summands that ranks hold in part are added before they
are sent, and so is what is linear in them."""

import itertools

from etchtest import Case, main, value

MODEL = """etch 1
param b, h, f
dim B = b, H = h, F = f
dtype act = bf16, weights = bf16, grads = f32, optim = f32

model m(x[B,H]) -> l[] {{
  weight w1[H,F], w2[F,H], w3[H,F], w4[F,H], g[H]
  i       = square(x * g)  tag start
  p[B,F]  = i * w1
  q[B,F]  = i * w3
  s[B,H]  = p * w2
  t[B,H]  = q * w4
  {sum}
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
  pin   start [B @ tp, H]
  pin   end [B @ tp, H]
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
    def answers(self, text, plan, before="", questions=QUESTIONS):
        """Of the sum `text`, or of statements that end with it."""
        *parts, last = text.split("; ")
        statements = [*parts, f"y[B,H] = {last}  tag end"]
        spec = self.write("m.etch", MODEL.format(sum="\n  ".join(statements)) + before)
        return [value(spec, question, plan=plan, sets=SIZES) for question in questions]

    def assert_same(self, first, texts, plans=("tensor", "sequence"), before=""):
        for plan in plans:
            wanted = self.answers(first, plan, before)
            for text in texts:
                with self.subTest(plan=plan, sum=text):
                    self.assertEqual(wanted, self.answers(text, plan, before))

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

    # ---- parts with names

    def test_names_of_parts(self):
        self.assert_same("i + s + t", ("a = i + s; a + t", "a = s + t; i + a", "a = i + t; s + a",
                                       "a[B,H] = i + s; a + t", "a = i; c = a + s; c + t",
                                       "a = identity(i + s); a + t", "a = i + s; c = identity(a); c + t"))

    def test_names_of_parts_of_parts(self):
        self.assert_same("i + s + t + g", ("a = i + s; c = a + t; c + g", "a = t + g; c = s + a; i + c",
                                           "a = i + s; c = t + g; a + c"))

    def test_names_of_differences(self):
        self.assert_same("i + s - t", ("a = i - t; a + s", "a = s - t; i + a", "a = t - s; i - a",
                                       "a = t - i; s - a", "a = i + s; a - t"))

    def test_names_of_numbers(self):
        self.assert_same("i + s + t + 3", ("a = s + 3; i + a + t", "a = i + s + 1; a + t + 2",
                                           "a = i + 4; c = s - 1; a + c + t", "a = -3 - s; i - a + t"))
        self.assert_same("i + s + t", ("a = s + 3; c = t - 3; i + a + c",))

    def test_more_named_terms_than_an_op_takes(self):
        names = "; ".join(f"a{k + 1} = a{k} + {'st'[k % 2]}" for k in range(40))
        self.assertEqual(ROW, self.answers(f"a0 = s + t; {names}; a40 + i", "tensor")[0])

    def test_what_is_read_elsewhere_is_a_sum_of_its_own(self):
        """The sums of i and s, and of that and t: both are needed whole."""
        found = self.answers("a = i + s; n = tanh(a); a + t + n", "tensor", questions=("comm(forward)",))
        self.assertEqual([2 * ROW], found)

    def test_what_a_plan_pins_is_a_sum_of_its_own(self):
        pinned = "parallel pinned {\n  mesh [tp]\n  shard F @ tp\n  pin m.a [B, H @ tp]\n}\n"
        for text in ("a = i + s; a + t", "a = s + t; i + a"):
            with self.subTest(text):
                self.assertNotEqual(self.answers(text, "tensor"), self.answers(text, "pinned", pinned))

    def test_a_part_is_asked_for_by_its_name(self):
        """It is the sum that it is a part of."""
        spec = self.write("m.etch", MODEL.format(sum="a = i + s\n  y[B,H] = a + t  tag end"))
        for name in ("m.a", "m.y"):
            self.assertEqual(2 * 8 * 4, value(spec, f"flops(forward, of = {name})", sets=SIZES))

    # ---- what is linear

    def test_minus(self):
        self.assert_same("i - s + t", ("-s + i + t", "a = -s; i + a + t", "i + -s + t", "a = -s; t - -a + i",
                                       "a = s - i; t - a", "i + t - identity(s)"))
        self.assert_same("i - (s + t)", ("-(s + t) + i", "a = -(s + t); i + a", "a = -s; c = -t; i + a + c",
                                         "-s - t + i"))

    def test_minus_sends_no_more(self):
        sent = ("comm(forward)", "comm(backward)", "wire(step)")
        for plan in ("tensor", "sequence"):
            wanted = self.answers("i + s + t", plan, questions=sent)
            for text in ("i - s + t", "i + s - t", "-s - t + i", "i - s - t"):
                with self.subTest(plan=plan, sum=text):
                    self.assertEqual(wanted, self.answers(text, plan, questions=sent))

    def test_what_is_linear_sends_no_more(self):
        sent = ("comm(forward)", "comm(backward)", "wire(step)")
        for plan in ("tensor", "sequence"):
            wanted = self.answers("i + s + t", plan, questions=sent)
            for text in ("i + 2*s + t", "i + s + scale(t, 3)", "i + s/2 + t/3", "2*i + 2*s + 2*t",
                         "a = 2*s; c = identity(a); i + c + t", "a = 2*t; c = 3*a; i + s + c",
                         "i + s + cast(t, bf16)", "i + 2*(s + t)", "a = 2*s; i + 3*(a + t)", "2*t + s + i",
                         "i + s - 2*t"):
                with self.subTest(plan=plan, sum=text):
                    self.assertEqual(wanted, self.answers(text, plan, questions=sent))

    def test_alone_it_is_reduced_at_once(self):
        """Then its work is divided."""
        flops = "rank_flops(forward, op = scale)"
        alone, = self.answers("i + 2*s", "sequence", questions=(flops,))
        both, = self.answers("i + 2*s + t", "sequence", questions=(flops,))
        self.assertEqual((8 * 4 // 2, 8 * 4), (alone, both))

    # ---- terms that modules give

    MODULES = """
module biased(a[B,F], w[F,H]) -> y[B,H] {
  weight c[H]
  y[B,H] = a * w + c
}
module doubled(a[B,F], w[F,H]) -> y[B,H] {
  y = 2 * biased(a, w)
}
module beside(x[B,H], a[B,F], w[F,H]) -> y[B,H] {
  y = x + biased(a, w)
}
"""

    def test_terms_of_modules(self):
        """Each result of a module is a sum with a bias, in part: they are added, and sent once."""
        sent = ("comm(forward)", "comm(backward)", "rank_flops(forward)", "rank_saved(m)")
        for plan in ("tensor", "sequence"):
            wanted = self.answers("weight c1[H], c2[H]; u[B,H] = p * w2; v[B,H] = q * w4; "
                                  "i + u + c1 + v + c2", plan, questions=sent)
            for text in ("i + biased(p, w2) + biased(q, w4)", "a = biased(p, w2); biased(q, w4) + i + a",
                         "beside(i, p, w2) + biased(q, w4)", "beside(beside(i, p, w2), q, w4)"):
                with self.subTest(plan=plan, sum=text):
                    self.assertEqual(wanted, self.answers(text, plan, self.MODULES, sent))


if __name__ == "__main__":
    main()
