"""Attention with windows, in training and behind a cache, against counting its pairs one by one."""

from fractions import Fraction
from types import SimpleNamespace

from etchtest import SOURCE, Case, Formula, ask, main, value

SPEC = SOURCE / "tests" / "cli" / "specs" / "attention.etch"
SIZES = dict(batch=2, hidden=4, heads=3, head_dim=2, vocab=4)


def pairs(seq, window):
    return sum(1 for query in range(seq) for key in range(query + 1) if query - key < window)


SERVED = """etch 1
param batch, seq, past = 0, micro = 1, hidden, heads, head_dim, window
dim B = batch, S = seq, T ~ past + S, H = hidden, A = heads, D = head_dim
module core(q[B,S,A,D], k[B,S,A,D], v[B,S,A,D]) -> o[B,S,A,D] {
  kc[B,T,A,D] = cache(k, over = S)
  vc[B,T,A,D] = cache(v, over = S)
  o           = sdpa(q, kc, vc, dot = D, over = T, causal = true, window = window)
}
model m(x[B,S,H]) -> y[B,S,H] {
  weight wq[H,A,D], wk[H,A,D], wv[H,A,D], wo[A,D,H]
  q[B,S,A,D] = x * wq
  k[B,S,A,D] = x * wk
  v[B,S,A,D] = x * wv
  y[B,S,H]   = core(q, k, v) * wo
}
infer decode { model = m, output = y, seq = 1, past = PAST }
infer chunk  { model = m, output = y, past = PAST }
"""


class Served(Case):
    def test_past(self):
        """Queries behind tokens of the cache see as many of them as the window reaches."""
        for past in (1, 5, 9):
            spec = self.write("served.etch", SERVED.replace("PAST", str(past)))
            sizes = dict(batch=1, hidden=2, heads=1, head_dim=1)
            for run, lengths in (("decode", (1,)), ("chunk", (1, 2, 4, 7))):
                formula = Formula(ask(spec, f"flops(forward, of = core, run = {run})"))
                for seq in lengths:
                    for window in range(1, 20):
                        seen = sum(min(window, past + query + 1) for query in range(seq))
                        point = SimpleNamespace(**{name: Fraction(size) for name, size in
                                                   {**sizes, "seq": seq, "window": window}.items()})
                        self.assertEqual(4 * seen, formula.at(point), (run, past, seq, window))


class Window(Case):
    def formula(self, spec, expression="flops(forward, of = banded)"):
        return Formula(ask(spec, expression))

    def flops(self, seq, window):
        """Two products over the pairs, of every sequence, head and element of a head."""
        return 4 * pairs(seq, window) * SIZES["batch"] * SIZES["heads"] * SIZES["head_dim"]

    def at(self, formula, seq, window):
        sizes = {name: Fraction(size) for name, size in {**SIZES, "seq": seq, "window": window}.items()}
        return formula.at(SimpleNamespace(**sizes))

    def test_formula(self):
        formula, backward = self.formula(SPEC), self.formula(SPEC, "flops(backward, of = banded)")
        for seq in range(1, 20):
            for window in range(1, 24):
                self.assertEqual(self.flops(seq, window), self.at(formula, seq, window), (seq, window))
                self.assertEqual(Fraction(5, 2) * self.flops(seq, window), self.at(backward, seq, window))

    def test_formula_with_facts(self):
        text = SPEC.read_text(encoding="utf-8")
        for fact, holds in (("window <= seq", lambda seq, window: window <= seq),
                            ("window >= seq", lambda seq, window: window >= seq),
                            ("2*window <= seq", lambda seq, window: 2 * window <= seq)):
            spec = self.write("facts.etch", text.replace("\ndim B", f"\nassume {fact}\ndim B"))
            formula = self.formula(spec)
            self.assertNotIn("m", formula.text.replace("head_dim", ""), "neither max nor min")
            for seq in range(1, 16):
                for window in range(1, 20):
                    if holds(seq, window):
                        self.assertEqual(self.flops(seq, window), self.at(formula, seq, window),
                                         (seq, window))

    def test_numbers(self):
        for seq, window in ((8, 1), (8, 3), (8, 8), (8, 9), (1, 1), (7, 100)):
            sets = {**SIZES, "seq": seq, "window": window}
            self.assertEqual(self.flops(seq, window), value(SPEC, "flops(forward, of = banded)", sets=sets))

    def test_ranks(self):
        """Heads and batch divide it evenly."""
        sets = {**SIZES, "batch": 4, "heads": 4, "vocab": 8, "seq": 8, "window": 3}
        whole = value(SPEC, "flops(forward, of = banded)", sets=sets)
        for dp, tp in ((1, 1), (2, 1), (1, 4), (2, 2)):
            part = value(SPEC, "rank_flops(forward, of = banded)", sets={**sets, "dp": dp, "tp": tp})
            self.assertEqual(whole, part * dp * tp)


if __name__ == "__main__":
    main()
