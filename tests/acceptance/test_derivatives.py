"""Which values the derivatives of functions and quotients keep for backward: the result or the operand,
whichever is kept anyway, as automatic differentiation by hand would have it. All sizes are written down
here."""

from etchtest import Case, main, run, value

HEAD = """etch 1
param b, h, f
dim B = b, I = h, H = h, F = f
dtype act = bf16, weights = bf16, grads = f32, optim = f32
"""
TRAIN = """
train {
  optimizer = adamw()
}
"""
FUNCTIONS = ("relu", "sigmoid", "tanh", "exp", "sqrt", "rsqrt", "reciprocal")
SIZES = {"b": 3, "h": 5, "f": 7}
X, U = 2 * 3 * 5, 2 * 3 * 7  # bytes of a [B,H] and of a [B,F]


def model(lines, weights="w1[H,F], w2[F,H]", arguments="x[B,I]"):
    body = "\n".join(f"  {line}" for line in lines)
    return f"{HEAD}\nmodel m({arguments}) -> l[] {{\n  weight {weights}\n{body}\n}}\n{TRAIN}"


class Derivatives(Case):
    def saved(self, text):
        spec = self.write("m.etch", text)
        return value(spec, "saved(m)", sets=SIZES)

    def ends(self, *lines, weights="w0[I,H], w1[H,F], w2[F,H]"):
        """`a = x w0` is a value of the model: x alone is an input."""
        return self.saved(model(["a[B,H] = x * w0", *lines], weights))

    def test_the_result_serves_where_a_product_keeps_it(self):
        for function in FUNCTIONS:
            with self.subTest(function):
                seen = self.ends("u[B,F] = a * w1", f"v = {function}(u)", "y[B,H] = v * w2",
                                 "l = sum(y, over = (B,H))  tag loss")
                self.assertEqual(X + U, seen)  # a and v

    def test_the_operand_serves_where_it_is_kept(self):
        for function in FUNCTIONS:
            with self.subTest(function):
                seen = self.ends("u[B,F] = a * w1", f"v = {function}(u)", "s[B,F] = v + x2",
                                 "y[B,H] = u * w2",
                                 "l = sum(y, over = (B,H)) + sum(s, over = (B,F))  tag loss",
                                 weights="w0[I,H], w1[H,F], w2[F,H], x2[B,F]")
                self.assertEqual(X + U, seen)  # a and u

    def test_one_of_them_where_neither_is_kept(self):
        for function in FUNCTIONS:
            with self.subTest(function):
                seen = self.ends("u[B,F] = a * w1", f"v = {function}(u)",
                                 "l = sum(v, over = (B,F))  tag loss")
                self.assertEqual(X + U, seen)

    def test_a_chain_keeps_every_other_value(self):
        seen = self.ends("u[B,F] = a * w1", "v = exp(u)", "w = sigmoid(v)",
                         "l = sum(w, over = (B,F))  tag loss")
        self.assertEqual(X + U, seen)  # v serves both
        seen = self.ends("u[B,F] = a * w1", "v = exp(u)", "w = sigmoid(v)", "z = tanh(w)", "q = exp(z)",
                         "l = sum(q, over = (B,F))  tag loss")
        self.assertEqual(X + 2 * U, seen)

    def test_one_operand_of_several_functions_is_kept_once(self):
        seen = self.ends("u[B,F] = a * w1", "v = exp(u) + sigmoid(u) + tanh(u)",
                         "l = sum(v, over = (B,F))  tag loss")
        self.assertEqual(X + U, seen)

    def test_functions_of_their_operand_keep_it(self):
        for function in ("silu", "gelu", "softplus", "square", "abs", "log"):
            with self.subTest(function):
                seen = self.ends("u[B,F] = a * w1", f"v = {function}(u)", "y[B,H] = v * w2",
                                 "l = sum(y, over = (B,H))  tag loss")
                self.assertEqual(X + 2 * U, seen)  # a, u and v

    def test_functions_of_weights_keep_nothing(self):
        seen = self.saved(model(["g = exp(w)", "y[B,I] = x * g", "l = sum(y, over = (B,I))  tag loss"],
                                "w[I]"))
        self.assertEqual(0, seen)

    def test_views_are_the_same_memory(self):
        seen = self.ends("u[B,F] = a * w1", "v = sigmoid(u)", "t = v[F->F']", "y[B,H] = t * w2",
                         "l = sum(y, over = (B,H))  tag loss", weights="w0[I,H], w1[H,F], w2[F',H]")
        self.assertEqual(X + U, seen)

    def test_what_a_loop_carries_is_kept_as_what_enters_it(self):
        text = model(["a[B,H] = x * w0", "repeat n as layers {", "  weight w[H,H']", "  r[B,H'] = a * w",
                      "  a = sigmoid(r[H'->H])", "}", "l = sum(a, over = (B,H))  tag loss"], "w0[I,H]")
        text = text.replace("param b, h, f", "param b, h, f, n")
        spec = self.write("m.etch", text)
        seen = value(spec, "saved(m)", sets={**SIZES, "n": 4})
        self.assertEqual(5 * X, seen)  # what enters each of four iterations, and the last result

    def test_what_each_iteration_keeps_serves_before_what_it_hands_on(self):
        """The last result is handed on to nobody that reads it: of n iterations n operands, which the square
        reads, and n - 1 results, which the products do."""
        body = ["repeat n as layers {", "  weight w[H,H']", "  r[B,H'] = x * w",
                "  a[] = sum(square(r), over = (B,H'))  tag loss", "  y = relu(r)", "  x = y[H'->H]", "}",
                "l = sum(x, over = (B,H))  tag loss"]
        text = model(body, arguments="x[B,H]").replace("  weight w1[H,F], w2[F,H]\n", "")
        spec = self.write("m.etch", text.replace("param b, h, f", "param b, h, f\nparam n >= 0"))
        for count in (0, 1, 2, 5):
            with self.subTest(count=count):
                seen = value(spec, "saved(m)", sets={**SIZES, "n": count})
                self.assertEqual(max(2 * count - 1, 0) * X, seen)

    def test_a_quotient_keeps_both_operands(self):
        seen = self.ends("n[B,F] = a * w1", "d[B,F] = a * w2", "q = n / d",
                         "l = sum(q, over = (B,F))  tag loss", weights="w0[I,H], w1[H,F], w2[H,F]")
        self.assertEqual(X + 2 * U, seen)  # a, n and d

    def test_a_quotient_reads_its_result_where_that_is_kept(self):
        seen = self.ends("n[B,F] = a * w1", "d[B,F] = a * w3", "q = n / d", "y[B,H] = q * w2",
                         "l = sum(y, over = (B,H))  tag loss", weights="w0[I,H], w1[H,F], w2[F,H], w3[H,F]")
        self.assertEqual(X + 2 * U, seen)  # a, d and q

    def test_a_share_keeps_its_sum(self):
        seen = self.ends("n[B,F] = a * w1", "d[B] = sum(n, over = F)", "q = n / d", "y[B,H] = q * w2",
                         "l = sum(y, over = (B,H))  tag loss")
        self.assertEqual(X + U + 2 * 3, seen)  # a, q and d


class Flop(Case):
    def backward(self, lines, weights):
        spec = self.write("m.etch", model(lines, weights))
        return value(spec, "flops(backward)", sets=SIZES)

    def test_less_is_computed_from_the_result(self):
        """The slope from the result: y(1 - y), 1 - y y, y, 1/(2y); from the operand the function is first."""
        loss = ["l = sum(y, over = (B,I))  tag loss"]
        weights = "w[I]"
        plain = self.backward(["y = x * w", *loss], weights)
        for function, result, operand in (("sigmoid", 3, 7), ("tanh", 3, 8), ("exp", 1, 2), ("sqrt", 2, 3),
                                          ("relu", 1, 1), ("rsqrt", 4, 4), ("reciprocal", 3, 3)):
            with self.subTest(function):
                kept = self.backward(["u = x * w", f"y = {function}(u)", *loss], weights)
                self.assertEqual(result * 15, kept - plain)
                argument = self.backward(["u = x * w", f"v = {function}(u)", "y = v + square(u)", *loss],
                                         weights)
                square = self.backward(["u = x * w", "y = u + square(u)", *loss], weights)
                self.assertEqual(operand * 15, argument - square)


UNTRAINED = """etch 1
param batch, hidden, experts
dim B = batch, H = hidden, E = experts, Q = 1
dtype act = bf16, weights = bf16, grads = f32, optim = f32

module inner(x[B,H]) -> y[B,H] {
  weight g[H], unread[H]
  y = x * g
  z = x * unread
}

module outer(x[B,H]) -> y[B,H] {
  y = inner(x)
}

model m(x[B,H]) -> l[] {
  weight w[H], choice[H,E], e[E]
  s[B,E]      = x * choice
  i[B,Q]: i32 = topk(s, over = E)
  y           = outer(x * w)
  q           = gather(e, i, over = E)
  l[]         = sum(y, over = (B,H)) + sum(q, over = (B,Q))  tag loss
}

train {
  optimizer = adamw(master = true)
}

parallel ddp {
  mesh  [dp]
  shard B @ dp
}

parallel sharded {
  mesh  [dp]
  shard B @ dp
  zero  1 @ dp
}
"""


class Untrained(Case):
    """Neither a choice nor what nothing reads has a gradient: all quantities speak of w, g and e alone."""

    def test_one_set_of_weights(self):
        spec = self.write("m.etch", UNTRAINED)
        hidden, experts, dp = 8, 4, 2
        trained, all_of_them = 2 * hidden + experts, 3 * hidden + hidden * experts + experts
        sizes = {"batch": 4, "hidden": hidden, "experts": experts, "dp": dp}
        for plan, parts in (("ddp", 1), ("sharded", dp)):
            for question, expected in (("params(model)", all_of_them), ("trainable(model)", trained),
                                       ("memory(weights)", 2 * all_of_them), ("memory(grads)", 4 * trained),
                                       ("memory(master)", 4 * trained // parts),
                                       ("memory(moments)", 8 * trained // parts),
                                       ("rank_flops(optimizer)", 12 * trained // parts),
                                       ("comm(sync)", 4 * trained if parts == 1 else None)):
                with self.subTest(plan=plan, question=question):
                    if expected is not None:
                        self.assertEqual(expected, value(spec, question, plan=plan, sets=sizes))

    def test_it_is_said(self):
        spec = self.write("m.etch", UNTRAINED)
        said = [line for line in run("check", spec).err.splitlines() if "E0346" in line]
        self.assertEqual(["choice"], [line.split()[2] for line in said])  # nothing reads the other


if __name__ == "__main__":
    main()
