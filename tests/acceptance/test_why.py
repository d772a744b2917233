"""`query --why`: each term of a formula, and the places of the spec that it comes from. Where things stand in
the spec is found by searching its text; what they cost is counted by hand."""

import json

from etchtest import GPT, LLAMA, POINTS, Case, Formula, main, number, options, succeed, value

TWO = """etch 1
param batch, hidden, wide, layers
dim B = batch, H = hidden, F = wide*hidden
module mlp(x[B,H]) -> y[B,H] {
  weight up[H,F], down[F,H]
  h[B,F] = x * up
  y      = gelu(h) * down
}
model two(x[B,H], t[B,H]) -> y[B,H] {
  weight first[H,H']
  z[B,H'] = x * first
  a[B,H]  = z[H'->H]
  repeat layers as layer {
    a = a + mlp(a)
  }
  y = a
}
"""


def why(spec, expression, config=None, plan=None, sets=None, more=()):
    done = succeed("query", spec, expression, *options(config, plan, sets), "--why", "--format", "json",
                   *more)
    return json.loads(done.out)


def place(spec, text, within):
    """Line and column of `within` inside the only place of `text` in the spec."""
    lines = spec.read_text(encoding="utf-8").splitlines()
    found = [(number, line.index(text) + text.index(within)) for number,
             line in enumerate(lines, 1) if text in line]
    assert len(found) == 1, (text, found)
    return found[0][0], found[0][1] + 1


def places(answer):
    """(line, column) -> op, module, phase, tensor, and the formula of all its parts."""
    found = {}
    for term in answer["terms"]:
        for reason in term["from"]:
            at = reason["location"]["line"], reason["location"]["column"]
            what = tuple(reason[key] for key in ("op", "module", "phase", "tensor"))
            found.setdefault((at, what), []).append(reason["formula"])
    return {key: " + ".join(formulas) for key, formulas in found.items()}


class Why(Case):
    def test_places_of_products(self):
        spec = self.write("two.etch", TWO)
        found = places(why(spec, "matmul_flops(forward)"))
        expected = {
            (place(spec, "= x * first", "x"), ("einsum", "two", "forward", "z")): lambda v: 2 * v.batch *
            v.hidden ** 2,
            (place(spec, "= x * up", "x"), ("einsum", "two.mlp", "forward", "h")):
                lambda v: 2 * v.batch * v.hidden ** 2 * v.wide * v.layers,
            (place(spec, "gelu(h) * down", "gelu"), ("einsum", "two.mlp", "forward", "y")):
                lambda v: 2 * v.batch * v.hidden ** 2 * v.wide * v.layers,
        }
        self.assertEqual(set(expected), set(found))
        for key, by_hand in expected.items():
            self.assertFormula(by_hand, found[key], {})

    def test_each_reason_of_one_place(self):
        """Two collectives of one tensor, which two loops ask for: each with its own reason and share."""
        spec = self.write("two.etch", """etch 1
param batch, hidden, layers
dim B = batch, H = hidden
model m(x[B,H]) -> z[B,H] {
  y[B,H] = tanh(x)  tag parts
  s[B,H] = tanh(x)
  repeat layers as first {
    s = s + softmax(y, over = H)
  }
  repeat layers + 3 as second {
    s = s + rms_norm(y, over = H)
  }
  z = s
}
parallel p {
  mesh [tp]
  pin  parts [B, H@tp]
}
""")
        found = {}
        for term in why(spec, "comm(forward)", plan="p")["terms"]:
            for reason in term["from"]:
                needs = reason["why"][-1]["text"]
                found[needs] = found.get(needs, "") + f" + {reason['formula']}"
        by_hand = {"needed whole by softmax(y) in m": lambda v: 2 * v.batch * v.hidden / v.tp * v.layers,
                   "needed whole by rms_norm(y) in m":
                       lambda v: 2 * v.batch * v.hidden / v.tp * (v.layers + 3)}
        self.assertEqual(set(by_hand), set(found))
        for needs, bytes_brought in by_hand.items():
            self.assertFormula(bytes_brought, found[needs], {})

    def test_places_of_weights(self):
        spec = self.write("two.etch", TWO)
        found = places(why(spec, "params(model)"))
        self.assertEqual({(place(spec, "weight first[H,H']", "first"), ("weight", "two", None, "first")),
                          (place(spec, "weight up[H,F], down[F,H]", "up"), ("weight", "two.mlp", None, "up")),
                          (place(spec, "weight up[H,F], down[F,H]", "down"),
                           ("weight", "two.mlp", None, "down"))},
                         set(found))

    def test_an_op_may_be_behind_several_terms(self):
        """Causal attention: S(S+1)/2 pairs are two terms of one op."""
        terms = why(LLAMA, "matmul_flops(forward, of = core)")["terms"]
        self.assertEqual(2, len(terms))
        self.assertEqual(1,
                         len({json.dumps(reason["location"]) for term in terms for reason in term["from"]}))

    def test_parts_add_up(self):
        cases = [(LLAMA, "flops(step)", None), (LLAMA, "params(model)", None),
                 (LLAMA, "comm(step)", "megatron_sp"),
                 (LLAMA, "traffic(step)", "megatron"), (LLAMA, "wire(step)", "context_gather"),
                 (GPT, "flops(step)", None), (GPT, "rank_flops(step)", "megatron_zero"),
                 (LLAMA, "flops(step, count = megatron)", None)]
        for spec, expression, plan in cases:
            with self.subTest(spec=spec.name, expression=expression):
                answer = why(spec, expression, plan=plan)
                for point in POINTS:
                    terms = [Formula(term["formula"]).at(point) for term in answer["terms"]]
                    self.assertEqual(Formula(answer["formula"]).at(point), sum(terms))
                    for term, amount in zip(answer["terms"], terms):
                        parts = [Formula(reason["formula"]).at(point) for reason in term["from"]]
                        self.assertTrue(parts)
                        self.assertEqual(amount, sum(parts))
                self.assertEqual(len({term["formula"] for term in answer["terms"]}), len(answer["terms"]))
                for term in answer["terms"]:
                    rows = [json.dumps({**reason, "formula": None, "expression": None, "tensor": None})
                            for reason in term["from"]]
                    self.assertEqual(len(set(rows)), len(rows))

    def test_numbers_add_up(self):
        sets = {"batch": 8, "seq": 64}
        answer = why(LLAMA, "flops(step)", "llama3_8b", sets=sets)
        total = value(LLAMA, "flops(step)", "llama3_8b", sets=sets)
        self.assertEqual(1, len(answer["terms"]))
        self.assertEqual(total, number(answer["terms"][0]["value"]))
        self.assertEqual(total, sum(number(reason["value"]) for reason in answer["terms"][0]["from"]))

    def test_derivative(self):
        answer = why(GPT, "matmul_flops(forward)", more=("--diff", "seq"))
        for point in POINTS:
            found = sum(Formula(reason["formula"]).at(point) for term in answer["terms"]
                        for reason in term["from"])
            v = point
            by_hand = v.batch * (8 * v.seq * v.layers * v.hidden + 24 * v.layers * v.hidden ** 2
                                 + 2 * v.hidden * v.vocab)
            self.assertEqual(by_hand, found)

    def test_same_output_every_time(self):
        outputs = {succeed("query", LLAMA, "comm(step)", "--plan", "megatron_pp", "--config", "llama3_8b",
                           "--stage",
                           "middle", "--why").out for _ in range(3)}
        self.assertEqual(1, len(outputs))


if __name__ == "__main__":
    main()
