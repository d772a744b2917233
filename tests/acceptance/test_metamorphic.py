"""Rewritings of a shipped spec that mean the same change no total: operands swapped, values passed on under
other names, modules that nobody calls, loops and classes without iterations, a loop as two, a dim as two. And
what is inside a loop grows with its count."""

import json
import random
import re
import types
from fractions import Fraction

from effort import NIGHTLY
from etchtest import MODELS, Case, Formula, POINTS, ask, main, succeed
from rewritings import OPEN, OPEN_OF_CHAIN, REWRITINGS, split_loops, with_halves

QUERIES = ("params(model)", "trainable(model)", "flops(step)", "matmul_flops(step)", "elementwise(step)",
           "saved(model)")
# a chain of two loops has numbers only
BOUND = {(spec, "encoder_decoder"): "pp=3,enc_layers=4,dec_layers=2" for spec in ("t5.etch", "whisper.etch")}
HALVES = {"begun": 1, "left": 3}
PLANS_EACH = 4  # of the plans of a spec every fourth, from another one on for each spec
PLACED = ("rank_flops(step)", "traffic(step)", "comm(step)")
# Where two operands are divided on dims of their own over one axis, the first says how the work is divided
# (R2).
ORDER_COUNTS = {("gpt.etch", plan, "operands swapped") 
                for plan in ("context_gather", "context_ring", "long_context_pp")}
# What is scaled beside a sum is one kernel with it, and two where the term that has a name stands between.
KERNELS_COUNT = {("minimax.etch", "terms negated")}
SPECS = sorted(path.name for path in MODELS.glob("*.etch")
               if re.search(r"^model ", path.read_text(encoding="utf-8"), re.M))


def runs_of(text):
    """Names of train blocks; None is the only one."""
    named = re.findall(r"^train\s+(\w+)\s*\{", text, re.M)
    return named or ([None] if re.search(r"^train\s*\{", text, re.M) else [])


def loops_in(spec):
    """Names of the loops of a spec."""
    return set(re.findall(r"^ *repeat \w+ as (\w+)", spec.read_text(encoding="utf-8"), re.M))


def plans_of(spec):
    """Names of the plans that a spec has or imports."""
    return json.loads(succeed("check", spec, "--format", "json").out)["plans"]


class Metamorphic(Case):
    known = {}  # answers of the specs as they are
    chains = 0  # of several loops, that were asked

    def rewritten(self, how):
        """The folder of models, rewritten; and whether anything changed."""
        folder = self.scratch / f"models{len(list(self.scratch.iterdir()))}"
        folder.mkdir()
        changed = set()
        for path in MODELS.glob("*.etch"):
            text = path.read_text(encoding="utf-8")
            text = re.sub(r"^check .*\n", "", text, flags=re.M)
            new = how(text)
            if new != text:
                changed.add(path.name)
            (folder / path.name).write_text(new, encoding="utf-8")
        return folder, changed

    def plain(self):
        return self.rewritten(as_it_is)[0]

    def compare(self, old, new, run, plan, of_old=(), of_new=()):
        """`of_old`, `of_new`: settings, of each alone."""
        bound = [] if "pp=3" in of_new else BOUND.get((old.name, plan), "").split(",")

        def asked(spec, query, sets):
            sets = ",".join(filter(None, [*bound, *sets]))
            return succeed("query", spec, query, *(["--run", run] if run else []),
                           *(["--plan", plan] if plan else []), *(["--set", sets] if sets else [])).out

        for query in PLACED if plan else QUERIES:
            with self.subTest(spec=old.name, run=run, plan=plan, query=query):
                key = (old, query, run, plan, *of_old)
                if key not in self.known:
                    self.known[key] = asked(old, query, of_old)
                said = asked(new, query, of_new)
                if said != self.known[key]:
                    self.assertEqual(values(self.known[key]), values(said), (self.known[key], said))

    def each(self, plain, folder, specs, turn=None, **settings):
        """Every spec and run without a plan; in its turn with every other plan, nightly with all."""
        for spec in specs:
            for run in runs_of((plain / spec).read_text(encoding="utf-8")):
                plans = [] if turn is None else plans_of(plain / spec)
                for plan in [None, *(plans if NIGHTLY else plans[(turn or 0) % 2::2])]:
                    yield spec, plan, lambda: self.compare(plain / spec, folder / spec, run, plan, **settings)

    def test_rewritings(self):
        plain = self.plain()
        for turn, (name, how) in enumerate(REWRITINGS.items()):
            folder, changed = self.rewritten(how)
            self.assertTrue({"gpt.etch", "llama.etch", "base.etch", "gpt_neox.etch"} & changed,
                            f"{name} rewrites nothing")
            for spec, plan, compare in self.each(plain, folder, SPECS, turn):
                if (spec, plan, name) not in ORDER_COUNTS and not (plan and (spec, name) in KERNELS_COUNT):
                    compare()

    def some_plans(self, spec):
        """Of a spec, all with a chain of several loops among them, and how many loops the chain has: none
        where there are no stages."""
        texts = "".join(path.read_text(encoding="utf-8") for path in (spec, spec.parent / "plans.etch"))
        for turn, plan in enumerate(plans_of(spec), -SPECS.index(spec.name)):
            body = re.search(rf"^parallel {plan} \{{.*?^\}}", texts, re.M | re.S)
            line = re.search(r"^ *stage\b(.*)@", body[0] if body else "", re.M)
            loops = len(set(re.findall(r"\w+", line[1] if line else "")) & loops_in(spec))
            if turn % PLANS_EACH == 0 or loops > 1:
                yield plan, loops

    def compare_some(self, old, new, counts, of_old=(), of_new=(), chain=None):
        """Without a plan, and with some. `counts`: names of those of loops, and values for stages. `chain`:
        what is compared where these are of several loops, if not `new`."""
        bound = [f"{name}={number}" for name, number in counts.items()] + ["pp=3"]
        for run in runs_of(old.read_text(encoding="utf-8")):
            self.compare(old, new, run, None, of_old=of_old, of_new=of_new)
            for plan, loops in self.some_plans(old):
                more = bound if loops else []
                self.chains += loops > 1
                self.compare(old, chain if chain and loops > 1 else new, run, plan,
                             of_old=[*of_old, *more], of_new=[*of_new, *more])

    def over_stages(self, spec, query, sets):
        """The sum over the stages of a chain of two loops, at some points."""
        rows = succeed("query", spec, query, "--plan", "encoder_decoder", "--by", "stage", "-q",
                       "--set", sets).out
        stages = [Formula(row) for row in re.findall(r"^\d+ +(.*)$", rows, re.M)]
        self.assertEqual(3, len(stages))
        return [sum(stage.at(point) for stage in stages) for point in POINTS]

    def test_what_a_param_keeps_empty(self):
        """A loop that may be empty stands in front of another one and behind it: what they hand on is held
        alike. It is no unit, but what it reads has a place for its sake, as for that of any statement
        (docs/pipelines.md): between the encoder and the decoder of one chain it takes what the decoder begins
        with to the last stage of the encoder, whose ranks compute it instead of the next ones. All stages
        together compute what they did, and where it stands behind the encoder alone each does."""
        plain = self.plain()
        for name, how in OPEN.items():
            folder, changed = self.rewritten(how)
            chained, _ = self.rewritten(OPEN_OF_CHAIN[name])
            self.assertTrue({"gpt.etch", "llama.etch"} <= changed)
            self.chains = 0
            for spec in sorted(set(SPECS) & changed):
                counts = re.findall(r"repeat (\w+) as", (plain / spec).read_text(encoding="utf-8"))
                self.compare_some(plain / spec, folder / spec, dict.fromkeys(counts, 4), of_new=["unset=0"],
                                  chain=chained / spec)
            self.assertGreater(self.chains, 0, "no chain of several loops")
            for (spec, plan), sets in BOUND.items():
                for query in ("rank_flops(forward)", "rank_flops(backward)"):
                    with self.subTest(spec=spec, plan=plan, query=query):
                        self.assertEqual(self.over_stages(plain / spec, query, sets),
                                         self.over_stages(folder / spec, query, f"{sets},unset=0"))

    def test_a_loop_as_two(self):
        """Also where the second has no iteration."""
        counts = set()
        plain, _ = self.rewritten(as_it_is)
        folder, changed = self.rewritten(lambda text: split_loops(text, counts))
        self.assertTrue({"gpt.etch", "llama.etch", "t5.etch"} <= changed)
        for name in changed:
            text = (folder / name).read_text(encoding="utf-8")
            of_it = {count for count in counts if f"repeat {count}_begun" in text}
            for path in (plain / name, folder / name):
                path.write_text(with_halves(path.read_text(encoding="utf-8"), of_it), encoding="utf-8")
            halves = {f"{count}_{half}": number for count in of_it for half, number in HALVES.items()}
            self.compare_some(plain / name, folder / name, halves,
                              of_old=[f"{count}={count}_begun+{count}_left" for count in of_it])

    def test_two_loops_gather_ahead(self):
        """Each counts the copies of one iteration more, also at its ends: of two loops that is a bound, as
        docs/placement.md says (R7)."""
        sizes = "batch=16,seq=128,micro=2,dp=4,hidden=512,heads=8,vocab=1000"
        text = (MODELS / "gpt.etch").read_text(encoding="utf-8")
        names = set()
        two = self.write("two.etch", with_halves(split_loops(text, names), names))
        for path in MODELS.glob("*.etch"):
            self.write(path.name, path.read_text(encoding="utf-8"))

        def asked(spec, query, more):
            return int(succeed("query", spec, query, "--plan", "fsdp", "-q", "--set",
                               f"{sizes},positions=128,{more}").out)

        whole = asked(MODELS / "gpt.etch", "memory(workspace)", "layers=4")
        halves = asked(two, "memory(workspace)", "layers=4,layers_begun=1,layers_left=3")
        layer = asked(MODELS / "gpt.etch", "params(layer)", "layers=4")
        self.assertLessEqual(whole, halves)
        self.assertLessEqual(halves, whole + 2 * 2 * layer)

    def test_a_dim_as_two(self):
        """Heads as rows of heads: the projections have one output dim more, and the same elements."""
        plain = self.plain() / "gpt.etch"
        text = plain.read_text(encoding="utf-8")
        text = text.replace("A = heads,", "A = heads/2, A2 = 2,").replace("assume heads",
                                                                          "assume 2 | heads, heads")
        text = re.sub(r"(?<=[\[,])A(?=[,\]])", "A,A2", text)
        split = self.write("split.etch", text)
        assumed = self.write("assumed.etch",
                             plain.read_text(encoding="utf-8").replace("assume heads",
                                                                       "assume 2 | heads, heads"))
        self.compare(assumed, split, None, None)
        for plan in ("ddp", "megatron", "megatron_sp", "megatron_pp"):
            self.compare(assumed, split, None, plan)

    def test_a_projection_in_two(self):
        """The first projection of the MLP by halves: one weight and one product for each half of its
        output."""
        plain = self.plain() / "gpt.etch"
        text = plain.read_text(encoding="utf-8")
        halves = text.replace("F = 4*hidden", "F1 = 3*hidden, F2 = hidden, F = F1 + F2")
        halves = halves.replace("weight w1[H,F], b1[F]", "weight w1[H,F1], b1[F1], w1b[H,F2], b1b[F2]")
        halves = halves.replace("  h[B,S,F] = x * w1 + b1\n",
                                "  ha[B,S,F1] = x * w1 + b1\n  hb[B,S,F2] = x * w1b + b1b\n"
                                                              "  h[B,S,F] = concat(ha, hb, over = (F1,F2))\n")
        split = self.write("halves.etch", halves)
        self.assertEqual(4,
                         sum(1 for line in halves.splitlines() if line not in text.splitlines()
                             and "F1" in line))
        for query in ("params(model)", "matmul_flops(step)", "matmul_flops(forward, of = mlp)",
                      "matmul_flops(backward)",
                      "matmul_flops(dgrad)", "elementwise(forward)"):
            with self.subTest(query):
                self.assertEqual(ask(plain, query), ask(split, query))

    def test_twice_the_layers(self):
        """What is in the repeat doubles, what is outside stays: f(2n) = 2 f(n) - f(0)."""
        for spec, plans in (("gpt.etch", ("megatron_zero",)),
                            ("llama.etch", ("megatron_zero", "context_gather"))):
            for query, plan in [(query, None) for query in QUERIES] + [(query, plan) for plan in plans
                                                                       for query in PLACED]:
                formula = Formula(ask(MODELS / spec, query, plan=plan))
                for point in POINTS:
                    layers = point.layers
                    values = []
                    for times in (0, 1, 2):
                        point.layers = times * layers
                        values.append(formula.at(point))
                    point.layers = layers
                    with self.subTest(spec=spec, query=query, plan=plan):
                        self.assertEqual(values[2] - values[0], 2 * (values[1] - values[0]))
                        self.assertGreater(values[1], values[0])

    def test_layers_are_what_a_layer_costs(self):
        for spec in ("gpt.etch", "llama.etch"):
            for query in ("flops(forward{})", "matmul_flops(forward{})"):
                whole, layer = (Formula(ask(MODELS / spec, query.format(of))) for of in ("", ", of = layer"))
                for point in POINTS:
                    layers, values = point.layers, []
                    for count in (0, layers):
                        point.layers = count
                        values.append(whole.at(point))
                    with self.subTest(spec=spec, query=query):
                        self.assertEqual(values[1] - values[0], layers * layer.at(point))


def as_it_is(text):
    return text


def values(text):
    """Of formulas that are written otherwise: at some points. What is no formula stays a text."""
    dice = random.Random(14)
    try:
        formula = Formula(text.strip())
        names = sorted(formula.names())
        return [formula.at(types.SimpleNamespace(**{name: Fraction(dice.randint(2, 97)) for name in names}))
                for _ in range(4)]
    except SyntaxError:
        return text


if __name__ == "__main__":
    main()
