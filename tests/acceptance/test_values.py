"""Values that mean nothing: sizes and counts that are no integers, or too small, wherever a number may stand
in a spec. What `lower` refuses, every other question refuses in the same words; what it takes, they take,
also while some of it has no value yet. ETCH_TEST_SEED chooses the first random spec, ETCH_TEST_MULT
multiplies their number."""

import random

from effort import effort, first_seed
from etchtest import Case, main, options, run

FIRST, COUNT = first_seed(0), effort(2000)

# Each name in braces is a place for a number.
SPEC = """etch 1
param batch, seq, hidden, layers, n, one
dim B = batch, S = seq, P = seq/2, H = {size}, E = 8, Q = {top}, K = 2, U = 8, A = 2, D = 4
dim C ~ {average}
model m(x[B,S,H], e[B,S,U], q[B,S,A,D], k[B,S,A,D], t[B,C]) -> z[B,S,H] {{
  weight w[H], r[H,E], kernel[K,U]
  z = x * w
  repeat {loop} as layer {{ weight g[H]; z = z * g }}
  o              = sdpa(q, k[S->S'], k[S->S'], dot = D, over = S'{pairs})
  c[B,P,U]       = conv(e, kernel, over = S, kernel = K, stride = 2)
  p[B,P,U]       = max_pool(e, over = S, size = {window}, stride = 2)
  s[B,S,E]       = z * r
  i[B,S,Q]: i32  = topk(s, over = E{groups})
  f[B,S,Q]       = gather(s, i, over = E)
  l[]            = mean(z * z, over = (B,S,H))    tag loss
  l1[]           = mean(o * o, over = (B,S,A,D))  tag loss
  l2[]           = mean(c * p, over = (B,P,U))    tag loss
  l3[]           = mean(f * f, over = (B,S,Q))    tag loss
  a[B,C]         = relu(t)
}}
train {{ model = m, optimizer = adamw, accumulate = (B, {micro}){clip} }}
parallel p {{
  mesh  [pp, dp, tp, ax = {axis}]
  shard B @ dp, H @ tp
  stage (layer) @ pp{schedule}
{plan}}}
"""
SERVED = """etch 1
param batch, new, context
param past >= 0 = 0
dim B = batch, S = 1, T ~ past + S, A = 2, D = 8
model m(q[B,S,A,D], k[B,S,A,D]) -> o[B,S,A,D] {{
  c[B,T,A,D] = cache(k, over = S)
  o          = sdpa(q, c, c, dot = D, over = T, causal = true)
}}
infer answer {{ model = m, past = context, steps = {steps} }}
parallel p {{ mesh [dp]; shard B @ dp }}
"""
GOOD = dict(size="hidden", average="seq/3", top="2", loop="layers", pairs="", window="2", groups="",
            micro="2", clip="", axis="1", schedule="", plan="")
SETS = dict(batch=8, seq=8, hidden=16, layers=8, n=5, one=1, pp=2, dp=2, tp=2)

# What is less than 1, no integer, or both: as it is written, or by what its params are bound to.
BELOW_ONE = ("-1", "0", "1/3", "-n", "one - 1", "n/3", "n - n", "-5/2")
# Place -> how a number stands there, and what is wrong there. Of the model and its step; and of the plan,
# which questions that need none do not ask for.
OF_MODEL = {
    "size": ("{}", BELOW_ONE),
    "top": ("{}", (*BELOW_ONE, "9")),
    "average": ("{}", ("-1", "-n", "one - 2", "-1/3")),
    "loop": ("{}", ("-1", "1/3", "-n", "n/3", "one - 2", "layers/3")),
    "micro": ("{}", BELOW_ONE),
    "window": ("{}", tuple(bad for bad in BELOW_ONE if bad not in ("0", "n - n"))),  # 0: none is given
    "pairs": (", pairs = {}", ("-1", "-n", "one - 2", "1/3")),
    "groups": (", groups = {}, keep = 1", ("-1", "1/3", "n/3")),
    "clip": (", clip = {}", ("-1", "0", "-1/3")),
}
OF_PLAN = {
    "axis": ("{}", BELOW_ONE),
    "schedule": (", schedule = interleaved(virtual = {})", BELOW_ONE),
    "plan": (
        ("  stage (layer) @ pp, counts = [{}, 8]\n", ()),
        ("  ranks = {}\n", (*BELOW_ONE, "7", "n")),
        ("  bucket = {}\n", BELOW_ONE),
        ("  pad U = {}\n", BELOW_ONE),
        ("  zero 3 @ dp, prefetch = {}\n", ("-1", "1/3", "one - 2")),
        ("  dtype dispatch = f8(block = {})\n", ("0", "-1", "1/3")),
    ),
}
QUESTIONS = (("check",), ("query", "rank_flops(step)"), ("query", "memory(peak)"),
             ("prove", "comm(step) >= 0"),
             ("show", "--plan", "p"))
WITHOUT_PLAN = (("query", "params(model)"), ("query", "flops(step)"), ("query", "saved(of = layer)"),
                ("show",))


class Values(Case):
    def ask(self, question, path, sets):
        """`question`: a command, and what follows the spec."""
        done = run(question[0], path, *question[1:], *options(sets=sets))
        self.assertIn(done.status, (0, 1, 4, 5), done)
        return done

    @staticmethod
    def said(done):
        return [(error["code"], error["line"], error["column"], error["text"]) for error in done.errors()]

    def spec(self, name, **places):
        return self.write(f"{name}.etch", SPEC.format(**dict(GOOD, **places)))

    def lower(self, path, sets=SETS):
        return self.ask(("lower", "--dry-run"), path, sets)

    def assertRefused(self, path, questions, sets=SETS):
        """By all of them, as by `lower`."""
        lowered = self.lower(path, sets)
        self.assertEqual(1, lowered.status, f"{lowered}\n{path.read_text(encoding='utf-8')}")
        for question in questions:
            done = self.ask(question, path, sets)
            self.assertEqual(self.said(lowered), self.said(done), f"{lowered}\n{done}")
            self.assertEqual(1, done.status, done)

    def test_the_rest_is_fine(self):
        path = self.spec("good")
        self.assertEqual(0, self.lower(path).status, self.lower(path))
        for question in (*QUESTIONS, *WITHOUT_PLAN):
            self.assertEqual(0, self.ask(question, path, SETS).status)

    def test_places_of_the_model(self):
        for place, (text, bad) in OF_MODEL.items():
            for number, value in enumerate(bad):
                with self.subTest(place=place, value=value):
                    path = self.spec(f"{place}{number}", **{place: text.format(value)})
                    self.assertRefused(path, (*QUESTIONS, *WITHOUT_PLAN))

    def plans(self):
        """Name, places and value of each way to say something wrong in the plan."""
        for place in ("axis", "schedule"):
            for number, value in enumerate(OF_PLAN[place][1]):
                yield f"{place}{number}", {place: OF_PLAN[place][0].format(value)}, value
        for line, (text, bad) in enumerate(OF_PLAN["plan"]):
            for number, value in enumerate(bad):
                yield f"plan{line}_{number}", {"plan": text.format(value)}, value
        for number, value in enumerate(BELOW_ONE):
            yield f"counts{number}", {"schedule": f", counts = [{value}, 8]"}, value

    def test_places_of_the_plan(self):
        for name, places, value in self.plans():
            with self.subTest(places=places, value=value):
                self.assertRefused(self.spec(name, **places), QUESTIONS)

    def test_steps_of_a_served_model(self):
        questions = (("check",), ("query", "flops(forward)"), ("query", "traffic(forward)"), ("show",))
        sets = dict(batch=4, context=9, new=2, dp=2)
        for number, value in enumerate(("0", "-1", "1/2", "new - 2", "-new", "new/4")):
            with self.subTest(value=value):
                path = self.write(f"steps{number}.etch", SERVED.format(steps=value))
                self.assertRefused(path, questions, sets)
        path = self.write("steps.etch", SERVED.format(steps="new"))
        for question in questions:
            self.assertEqual(0, self.ask(question, path, sets).status)

    def test_values_that_are_given(self):
        """Of a size that two things share, of assumptions, of axes."""
        path = self.spec("given", size="hidden - one + 1")
        for sets in (dict(hidden=0), dict(hidden="1/2"), dict(tp=0), dict(tp=3), dict(tp="1/2"),
                     dict(batch=6), dict(layers=1),
                     dict(seq=7), dict(hidden="n/0"), dict(hidden="-n"), dict(one="hidden", hidden=3)):
            with self.subTest(sets=sets):
                self.assertRefused(path, QUESTIONS, dict(SETS, **sets))

    def test_what_is_open_may_do(self):
        """No value of what is left out would do; or one would."""
        for number, (places, left, fine) in enumerate((
                (dict(size="-hidden"), "hidden", False), (dict(micro="-n"), "n", False),
                (dict(loop="-n"), "n", False),
                (dict(micro="1 - n"), "n", False), (dict(size="n + 1/2"), "n", False),
                (dict(size="n/2"), "n", True),
                (dict(micro="n - 3"), "n", True), (dict(loop="layers - 5"), "layers", True),
                (dict(size="16*one"), "one", True),
                (dict(axis="-n"), "n", False), (dict(micro="16*n"), "n", False))):
            with self.subTest(places=places):
                path = self.spec(f"open{number}", **places)
                sets = {name: value for name, value in SETS.items() if name != left}
                for question in (*QUESTIONS[:2], *QUESTIONS[3:]):
                    done = self.ask(question, path, sets)
                    if fine:
                        self.assertIn(done.status, (0, 5), done)
                    else:
                        self.assertEqual((1, []), (done.status, [code for code, *_ in self.said(done)
                                                                 if code not in ("E0521", "E0523")]), done)

    def test_nothing_is_too_little(self):
        """Loops without iterations are no mistake."""
        path = self.spec("empty", loop="layers - 8")
        sets = dict(SETS, pp=1)
        self.assertEqual(0, self.lower(path, sets).status)
        for question in (*QUESTIONS, *WITHOUT_PLAN[:2], *WITHOUT_PLAN[3:]):
            done = self.ask(question, path, sets)
            self.assertEqual(0, done.status, done)


class Random(Case):
    """Forms of numbers and values for them by chance."""

    ask, said, lower = Values.ask, staticmethod(Values.said), Values.lower

    @staticmethod
    def number(chance, usual, vars):
        """A number for a place: mostly the usual one."""
        if chance.random() < 0.85:
            return usual
        var, small = chance.choice(vars), chance.choice(("1", "2", "3", "4", "8"))
        return chance.choice((small, var, f"{var}/{small}", f"{var} - {small}", f"{small} - {var}",
                              f"{small}*{var}",
                              f"-{var}", f"({var} + 1)/2", f"{var}*{var}/{small}", f"max({var}, {small})",
                              f"min({var} - 3, {small})", f"{var}//{small}", f"{var} % {small}", "0", "-1",
                              "1/2"))

    def places(self, chance):
        def number(usual):
            return self.number(chance, usual, ("n", "one", "layers", "hidden", "batch"))

        places = dict(size=number("hidden"), average=number("n/2"), top=number("2"), loop=number("layers"),
                      micro=number("2"), axis=number("1"),
                      window=number("2"))
        places["schedule"] = chance.choice(("", "", f", schedule = interleaved(virtual = {number('2')})",
                                            f", counts = [{number('4')}, {number('4')}]"))
        lines = (f"  ranks = {number('pp*dp*tp*ax')}\n", f"  bucket = {number('64')}\n",
                 f"  pad U = {number('4')}\n",
                 f"  zero 3 @ dp, prefetch = {number('1')}\n")
        places["plan"] = chance.choice(("", "", *lines))
        if chance.random() < 0.2:
            places["pairs"] = f", pairs = {number('S*S')}"
        return places

    @staticmethod
    def sets(chance):
        usual = dict(SETS, pp=chance.choice((1, 2, 2, 3)), dp=chance.choice((1, 2)), tp=chance.choice((1, 2)))
        for name in ("batch", "hidden", "layers", "n", "one", "pp", "dp", "tp"):
            if chance.random() < 0.08:
                usual[name] = chance.randrange(1, 13)
        return usual

    def test_all_agree(self):
        taken = refused = 0
        for seed in range(FIRST, FIRST + COUNT):
            chance = random.Random(seed)
            text = SPEC.format(**dict(GOOD, **self.places(chance)))
            sets = self.sets(chance)
            path = self.write("random.etch", text)
            with self.subTest(seed=seed):
                try:
                    status = self.agree(path, sets, chance)
                except AssertionError as error:
                    raise AssertionError(f"{error}\n{text}\n{sets}") from None
                taken += status == 0
                refused += status == 1
        self.assertGreater(6 * min(taken, refused), COUNT)

    def agree(self, path, sets, chance):
        lowered = self.lower(path, sets)
        if lowered.status == 4:  # a limit of traces
            return 4
        for question in (("check",), chance.choice(QUESTIONS[1:])):
            done = self.ask(question, path, sets)
            self.assertEqual(self.said(lowered), self.said(done), f"{lowered}\n{done}")
            self.assertEqual(lowered.status == 0, done.status in (0, 5), f"{lowered}\n{done}")
        left = chance.choice(list(sets))
        some = self.ask(("query", "traffic(forward)", "--stage", "first"), path,
                        {name: value for name, value in sets.items() if name != left})
        refusals = [code for code, *_ in self.said(some) if code.startswith("E05")]
        if lowered.status == 0:
            self.assertEqual([], refusals, f"without {left}: {some}")
        return lowered.status


if __name__ == "__main__":
    main()
