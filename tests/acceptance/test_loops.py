"""Loops whose iterations differ: parameters as published, counts by hand, and traces in which every layer
does what it should."""

import collections
import itertools
import re

from etchtest import Case, Formula, Point, ask, attribute, lower, main, messages, run, traces, value

# Gemma 2 without its sliding windows, which the two kinds of layers differ by: here one has rotary positions.
GEMMA = """etch 1
param batch, seq, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, micro = 1
dim B = batch, S = seq, H = hidden, K = kv_heads, G = heads/kv_heads, D = head_dim, F = ffn, V = vocab
dim T = seq
assume kv_heads | heads
dtype act = bf16, weights = bf16, grads = f32, optim = f32
module norm(x[B,S,H]) -> y[B,S,H] {
  weight g[H]
  y = rms_norm(x, g, over = H)
}
module attention(x[B,S,H]; turned = 0) -> y[B,S,H] {
  weight wq[H,K,G,D], wk[H,K,D], wv[H,K,D], wo[K,G,D,H]
  q[B,S,K,G,D] = x * wq
  k[B,S,K,D]   = x * wk
  v[B,S,K,D]   = x * wv
  if turned == 1 {
    q = rope(q, over = D)
    k = rope(k, over = D)
  }
  o = sdpa(q, k[S->T], v[S->T], over = T, dot = D, causal = true)
  y = o * wo
}
module mlp(x[B,S,H]) -> y[B,S,H] {
  weight wg[H,F], wu[H,F], wd[F,H]
  g[B,S,F] = x * wg
  u[B,S,F] = x * wu
  y        = gelu(g) * u * wd
}
module block(x[B,S,H]; turned = 0) -> z[B,S,H] {
  y = x + norm(attention(norm(x), turned = turned))
  z = y + norm(mlp(norm(y)))
}
model gemma(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight emb[V,H]
  x[B,S,H] = gather(emb, ids, over = V)
  repeat layers as layer {
    if layer % 2 == 0 { x = block(x, turned = 1) } else { x = block(x) }
  }
  z[B,S,V] = norm(x) * emb
  l[]      = cross_entropy(z, labels, over = V)  tag loss
}
train { model = gemma, optimizer = adamw, accumulate = (B, micro) }
"""

# Layers, hidden, heads, heads of keys, their width, width of the MLP; parameters of the checkpoints.
GEMMAS = [
    (26, 2304, 8, 4, 256, 9216, 2614341888),
    (42, 3584, 16, 8, 256, 14336, 9241705984),
    (46, 4608, 32, 16, 128, 36864, 27227128320),
]

# A dense prefix, as DeepSeek-V3 has it; {condition} takes its place.
PREFIX = """etch 1
param batch, seq, layers, dense, hidden, ffn, small, vocab, micro = 1{more}
dim B = batch, S = seq, H = hidden, F = ffn, J = small, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
module wide(x[B,S,H]) -> y[B,S,H] {{
  weight up[H,F], down[F,H]
  h[B,S,F] = x * up
  y        = silu(h) * down
}}
module narrow(x[B,S,H]) -> y[B,S,H] {{
  weight up[H,J], down[J,H]
  h[B,S,J] = x * up
  y        = silu(h) * down
}}
model tiny(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {{
  weight emb[V,H]
  x[B,S,H] = gather(emb, ids, over = V)
  repeat layers as layer {{
    if {condition} {{ y = wide(x) }} else {{ y = narrow(x) }}
    x = x + y
  }}
  z[B,S,V] = x * emb
  l[]      = cross_entropy(z, labels, over = V)  tag loss
}}
train {{ model = tiny, optimizer = adamw(master = true), accumulate = (B, micro){train} }}
parallel some {{
  mesh [dp]
  shard B @ dp
  zero 1 @ dp
}}
parallel pipe {{
  mesh [pp]
  stage (layer) @ pp{stage}
}}
"""
SIZES = dict(batch=8, seq=4, hidden=6, ffn=10, small=4, vocab=12)

# Conditions, and the layers for which they hold.
CONDITIONS = [
    ("layer < dense", lambda layer, dense: layer < dense),
    ("layer <= dense", lambda layer, dense: layer <= dense),
    ("dense > layer", lambda layer, dense: layer < dense),
    ("layer >= dense", lambda layer, dense: layer >= dense),
    ("layer > dense/2", lambda layer, dense: 2 * layer > dense),
    ("layer == dense", lambda layer, dense: layer == dense),
    ("layer == dense/2", lambda layer, dense: 2 * layer == dense),
    ("dense != layer", lambda layer, dense: layer != dense),
    ("layer < dense - 2", lambda layer, dense: layer < dense - 2),
    ("layer >= dense - 2", lambda layer, dense: layer >= dense - 2),
    ("layer % 3 == 1", lambda layer, _: layer % 3 == 1),
    ("layer % 3 >= 1", lambda layer, _: layer % 3 >= 1),
    ("1 != layer % 3", lambda layer, _: layer % 3 != 1),
    ("layer % 3", lambda layer, _: layer % 3 != 0),
    ("3 | layer", lambda layer, _: layer % 3 == 0),
    ("layer", lambda layer, _: layer != 0),
    ("layer in [1, 4]", lambda layer, _: layer in (1, 4)),
    ("layer in [0, 1, 2, 7, 7, 3]", lambda layer, _: layer in (0, 1, 2, 3, 7)),
    ("layer % 3 in [2, 0, 5]", lambda layer, _: layer % 3 in (0, 2)),
    ("layer in [2] { y = narrow(x) } else if layer % 2 in [0]",
     lambda layer, _: layer % 2 == 0 and layer != 2),
]


# Conditions on the index of the loop around the loop that they are in.
NESTED = PREFIX.format(condition="group < 2", more=", groups", train="", stage="").replace(
    "  repeat layers as layer {\n", "  repeat groups as group { repeat layers as layer {\n").replace(
    "else { y = narrow(x) }",
    "else if layer % 2 == 0 {\n      if group == 3 { y = narrow(x) } else { y = wide(x) }\n"
    "    } else { y = narrow(x) }").replace("    x = x + y\n  }\n", "    x = x + y\n  } }\n").replace(
    "stage (layer)", "stage (group)")


def prefix(condition="layer < dense", more="", train="", stage=""):
    return PREFIX.format(condition=condition, more=more, train=train, stage=stage)


def weights(v, wide):
    """`wide`: how many layers are."""
    return v["vocab"] * v["hidden"] + 2 * v["hidden"] * (wide * v["ffn"] + (v["layers"] - wide) * v["small"])


class Counts(Case):
    def test_published(self):
        spec = self.write("gemma.etch", GEMMA)
        names = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn")
        for *sizes, params in GEMMAS:
            self.assertEqual(params, value(spec, "params(model)", sets=dict(zip(names, sizes), vocab=256000)))

    def test_alike_together(self):
        """What the classes have in common is counted once for every layer, whatever their number."""
        text = ask(self.write("gemma.etch", GEMMA), "params(model)")
        self.assertNotRegex(text, "ceil|floor")

    def test_conditions(self):
        for condition, holds in CONDITIONS:
            spec = self.write("prefix.etch", prefix(condition))
            text = ask(spec, "params(model)")
            for layers, dense in itertools.product((1, 2, 5, 6), (1, 3, 4, 9)):
                with self.subTest(condition=condition, layers=layers, dense=dense):
                    sizes = dict(SIZES, layers=layers, dense=dense)
                    wide = sum(holds(layer, dense) for layer in range(layers))
                    self.assertEqual(weights(sizes, wide), Formula(text).at(Point(0, **sizes)))
                    self.assertEqual(weights(sizes, wide), value(spec, "params(model)", sets=sizes))

    def test_facts(self):
        """An assumption says that the prefix is not longer than the model: no maximum is left."""
        spec = self.write("prefix.etch", prefix() + "assume layers >= dense\n")
        text = ask(spec, "params(model)")
        self.assertFormula(lambda v: v.vocab * v.hidden
                           + 2 * v.hidden * (v.dense * v.ffn + (v.layers - v.dense) * v.small), text, {})

    def test_indices_of_two_loops(self):
        spec = self.write("nested.etch", NESTED)
        for groups, layers in itertools.product((1, 2, 4), (1, 3, 4)):
            sizes = dict(SIZES, groups=groups, layers=layers, dense=1)
            kinds = [group < 2 or (layer % 2 == 0 and group != 3)
                     for group in range(groups) for layer in range(layers)]
            sizes_now = dict(sizes, layers=len(kinds))
            self.assertEqual(weights(sizes_now, sum(kinds)), value(spec, "params(model)", sets=sizes))

    def test_one_kind(self):
        """A condition that always holds makes no classes."""
        spec = self.write("prefix.etch", prefix("layer >= 0"))
        self.assertEqual("2*layers*hidden*ffn + hidden*vocab", ask(spec, "params(model)"))

    def test_defaults_decide_periods(self):
        spec = self.write("prefix.etch", prefix("layer % period == 1", more=", period = 4"))
        sizes = dict(SIZES, layers=7, dense=1)
        self.assertEqual(weights(sizes, 2), value(spec, "params(model)", sets=sizes))
        self.assertEqual(weights(sizes, 3), value(spec, "params(model)", sets=dict(sizes, period=2)))


# Layers by a text, each of whose letters has an MLP of its own width, and of a width by layer.
PATTERN = """etch 1
param batch, hidden, kinds text, widths list, period = 2
dim B = batch, H = hidden
dtype act = bf16, weights = bf16, grads = f32, optim = f32
module mlp(x[B,H]; width) -> y[B,H] {
  dim F = width
  weight up[H,F], down[F,H]
  h[B,F] = x * up
  y      = silu(h) * down
}
model pattern(x[B,H]) -> z[B,H] {
  z = x
  repeat len(kinds) as layer {
    if at(kinds, layer) == "M" {
      z = z + mlp(z, width = at(widths, layer % period))
    } else if at(kinds, layer) in ["*", "-"] {
      weight w[H]
      z = silu(z * w)
    } else if 20 > at(widths, layer % period) {
      dim G = 3 + at(widths, 0)
      weight v[H,G], u[G,H]
      g[B,G] = z * v
      z      = g * u
    }
  }
  l[] = mean(z, over = (B,H))  tag loss
}
train { model = pattern, optimizer = adamw }
parallel some { mesh [dp]; shard B @ dp; zero 1 @ dp }
parallel pipe { mesh [pp]; stage (layer) @ pp }
"""


class Patterns(Case):
    """Texts and lists as values: what each layer is, told by hand from the letters."""

    def costs(self, kinds, widths, hidden, period=2):
        """Of each layer: weights, FLOP of products of a row of the batch forward."""
        for layer, kind in enumerate(kinds):
            width = widths[layer % period]
            if kind == "M":
                yield 2 * hidden * width, 4 * hidden * width
            elif kind in "*-":
                yield hidden, 0
            elif width < 20:
                yield 2 * hidden * (3 + widths[0]), 4 * hidden * (3 + widths[0])
            else:
                yield 0, 0

    def sets(self, kinds, widths, **more):
        values = dict(dict(batch=4, hidden=6), **more)
        return [f'kinds="{kinds}",widths={widths}'] + [f"{name}={value}" for name, value in values.items()]

    def answer(self, spec, expr, sets, *more):
        done = run("query", spec, expr, "-q", *more, *(part for one in sets for part in ("--set", one)))
        self.assertEqual(0, done.status, done.err)
        return done.out.strip()

    def test_counts(self):
        spec = self.write("pattern.etch", PATTERN)
        for kinds, widths in (("M", [8, 8]), ("MM-M*-", [5, 7]), ("-" * 40 + "M" * 90, [30, 10]),
                              ("xMx", [20, 19]), ("xxxx", [19, 20]), ("M-x*" * 50, [4, 9]),
                              ("M" * 255 + "-", [3, 2])):
            sets = self.sets(kinds, widths)
            costs = list(self.costs(kinds, widths, 6))
            self.assertEqual(str(sum(cost[0] for cost in costs)), self.answer(spec, "params(model)", sets))
            self.assertEqual(str(4 * sum(cost[1] for cost in costs)),
                             self.answer(spec, "matmul_flops(forward)", sets), kinds)
            self.assertEqual(str(len(kinds)), self.answer(spec, "len(kinds)", sets))

    def test_longest_text(self):
        spec = self.write("text.etch", "etch 1\nparam kinds text\n")
        for length, status in ((100000, 0), (100001, 1)):
            config = self.write(f"{length}.etch", 'etch 1\nimport "text.etch"\n'
                                f'config c {{ kinds = "{"M" * length}" }}\n')
            done = run("query", config, "len(kinds)", "--config", "c")
            self.assertEqual((status, str(length) if status == 0 else ""), (done.status, done.out.strip()))
            self.assertEqual(status == 1, "E0223" in done.err)
        self.assertEqual(0, run("check", spec).status)

    def test_no_layers(self):
        spec = self.write("none.etch", PATTERN.replace("repeat len(kinds)", "repeat len(kinds) - 1"))
        for widths in ([8, 8], [5, 7]):
            self.assertEqual("0", self.answer(spec, "params(model)", self.sets("M", widths)))

    def test_stages(self):
        """Each stage has the weights of its own layers."""
        spec = self.write("pattern.etch", PATTERN)
        kinds, widths = "M-Mxx*MM", [8, 30]
        costs = [cost[0] for cost in self.costs(kinds, widths, 6)]
        for pp in (1, 2, 4):
            sets = self.sets(kinds, widths, pp=pp)
            for stage in range(pp):
                held = sum(costs[stage * 8 // pp:(stage + 1) * 8 // pp])
                self.assertEqual(str(held), self.answer(spec, "rank_params(model)", sets, "--plan", "pipe",
                                                        "--stage", str(stage)))

    def test_traces(self):
        spec = self.write("pattern.etch", PATTERN + 'config c { kinds = "M-Mx*", widths = [8, 12] }\n')
        sets = dict(batch=4, hidden=6, dp=2)
        folder = lower(self.scratch / "out", spec, config="c", plan="some", sets=sets)
        self.assertFine(folder)
        self.assertTotals(folder, spec, "c", "some", sets)
        found = {}
        for node in messages(traces(folder)[0]):
            match = re.match(r"F0\.layer(\d+)\.", node.name)
            if match:
                found[int(match[1])] = found.get(int(match[1]), 0) + attribute(node, "num_ops")
        matmul = [2 * cost[1] for cost in self.costs("M-Mx*", [8, 12], 6)]
        self.assertEqual([flops > 0 for flops in matmul], [found[layer] > 100 for layer in range(5)])

    def test_like_a_list_of_layers(self):
        """The letters say what lists of layers say, to the last digit of every quantity."""
        text = self.write("text.etch", prefix('at(kinds, layer) == "w"', more=', kinds text = "nwnnwwnwn"'))
        lists = self.write("lists.etch", prefix("layer in [1, 4, 5, 7]"))
        sets = [f"{name}={value}" for name, value in dict(SIZES, layers=9, dense=1, micro=2).items()]
        for plan, axes in (("some", ["dp=2"]), ("pipe", ["pp=3"])):
            for expr in ("flops(step)", "memory(peak)", "comm(step)", "memory(states)", "traffic(step)"):
                answers = [self.answer(spec, expr, sets + axes, "--plan", plan) for spec in (text, lists)]
                self.assertEqual(answers[0], answers[1], (plan, expr))


class Calls(Case):
    def test_one_class_at_a_time(self):
        spec = self.write("prefix.etch", prefix())
        for module, width in (("wide", "ffn"), ("narrow", "small")):
            self.assertFormula(lambda v,
                               width=width: v.batch * v.seq * getattr(v, width) * (4 * v.hidden + 5),
                               ask(spec, f"flops(forward, of = {module})"), {})
        self.assertEqual(["E0625"], [error["code"] for error in
                                     run("query", spec, "flops(forward, of = layer)").errors()])
        alike = self.write("alike.etch", prefix().replace("narrow(x)", "wide(x)"))
        self.assertFormula(lambda v: v.batch * v.seq * (v.ffn * (4 * v.hidden + 5) + v.hidden),
                           ask(alike, "flops(forward, of = layer)"), {})


class Traces(Case):
    SIZES = dict(SIZES, layers=5, dense=2, micro=2)

    def kinds(self, folder):
        """rank -> [(phase and microbatch, layer, module)] in the order of the nodes, each once."""
        found = collections.defaultdict(list)
        for rank, path in sorted(traces(folder).items()):
            for node in messages(path):
                match = re.match(r"([FRB]\d+)\.layer(\d+)\.(\w+)\.", node.name)
                if match and match.groups() not in found[rank]:
                    found[rank].append(match.groups())
        return found

    def expected(self, layers, holds, phases="FB"):
        for micro in range(self.SIZES["micro"]):
            for phase in phases:
                order = layers if phase == "F" else layers[::-1]
                for layer in order:
                    yield (f"{phase}{micro}", str(layer), "wide" if holds(layer) else "narrow")

    def test_layers_in_turn(self):
        for condition, holds in CONDITIONS:
            with self.subTest(condition=condition):
                spec = self.write("prefix.etch", prefix(condition))
                sets = dict(self.SIZES, dp=2)
                folder = lower(self.scratch / "out", spec, plan="some", sets=sets, more=["--force"])
                self.assertFine(folder)
                self.assertTotals(folder, spec, None, "some", sets)
                dense = sets["dense"]
                expected = list(self.expected(range(5), lambda layer: holds(layer, dense)))
                for found in self.kinds(folder).values():
                    self.assertEqual(expected, found)

    def test_again(self):
        """With recomputation each layer is run again before it is undone."""
        spec = self.write("prefix.etch", prefix("layer % 3 == 1", train=", recompute = full"))
        folder = lower(self.scratch / "out", spec, plan="some", sets=dict(self.SIZES, dp=1))
        expected = []
        for phase, layer, module in self.expected(range(5), lambda layer: layer % 3 == 1):
            if phase[0] == "B":
                expected.append(("R" + phase[1:], layer, module))
            expected.append((phase, layer, module))
        self.assertEqual(expected, self.kinds(folder)[0])

    def test_weights_of_each_layer(self):
        """The optimizer goes through the layers; each has as much to update as it holds."""
        spec = self.write("prefix.etch", prefix())
        folder = lower(self.scratch / "out", spec, plan="some", sets=dict(self.SIZES, dp=1))
        flops = {}
        for node in messages(traces(folder)[0]):
            match = re.match(r"O\.layer(\d+)\.adamw", node.name)
            if match:
                flops[int(match[1])] = attribute(node, "num_ops")
        hidden = self.SIZES["hidden"]
        self.assertEqual({layer: 12 * 2 * hidden * self.SIZES["ffn" if layer < 2 else "small"]
                          for layer in range(5)},
                         flops)

    def test_stages(self):
        """Each stage runs its own layers."""
        holds = lambda layer: layer < 2  # noqa: E731
        spec = self.write("prefix.etch", prefix(stage=", schedule = gpipe"))
        folder = lower(self.scratch / "out", spec, plan="pipe", sets=dict(self.SIZES, pp=3))
        self.assertFine(folder)
        for rank, layers in enumerate((range(2), range(2, 4), range(4, 5))):
            expected = sorted(self.expected(layers, holds), key=lambda row: row[0][0] != "F")
            self.assertEqual(expected, self.kinds(folder)[rank])


class Stages(Case):
    def test_formulas_of_stages(self):
        """First, middle and last stage as formulas, and as numbers."""
        for condition, stage in itertools.product(("layer < dense", "layer % 3 == 1"),
                                                  ("", ", schedule = interleaved(virtual = 2)")):
            spec = self.write("prefix.etch", prefix(condition, stage=stage))
            for number, label in ((0, "first"), (1, "1"), (-1, "last")):
                formula = Formula(self.flops(spec, label, dict(SIZES, micro=4)))
                for layers, dense, pp in itertools.product((8, 11, 13), (1, 3, 9), (3, 4)):
                    sizes = dict(SIZES, micro=4, layers=layers, dense=dense, pp=pp)
                    self.assertEqual(int(self.flops(spec, str(number % pp), sizes)),
                                     formula.at(Point(0, **sizes)),
                                     (condition, stage, label, sizes))

    def test_units_around_the_loop(self):
        """What stands before the loop and behind it is a unit as well. The bounds of three kinds of layers
        come in any order."""
        for condition in ("layer < dense", "layer == dense", "layer % 3 == 1",
                          "layer < ffn/5 { y = narrow(x) } else if layer < dense"):
            spec = self.with_ends(condition)
            for number, label in ((0, "first"), (1, "1"), (-1, "last")):
                formula = Formula(self.weights(spec, label, SIZES))
                for layers, dense, pp in itertools.product((8, 11, 13), (1, 3, 8), (3, 4)):
                    sizes = dict(SIZES, layers=layers, dense=dense, pp=pp)
                    self.assertEqual(int(self.weights(spec, str(number % pp), sizes)),
                                     formula.at(Point(0, **sizes)), (condition, label, sizes))

    def test_counts_of_classes_add_up(self):
        """Iterations that cost the same say what a loop of one kind says; two kinds take one maximum."""
        plain = self.with_ends("layer < dense").read_text(encoding="utf-8")
        for condition in ("layer < dense", "layer == dense", "layer % 3 == 1"):
            alike = self.write("alike.etch", self.with_ends(condition).read_text(encoding="utf-8").replace(
                "narrow(x)", "wide(x)"))
            one = self.write("one.etch", re.sub(r"    if .*else .*\n", "    y = wide(x)\n", plain))
            for stage in ("first", "middle", "last"):
                self.assertEqual(self.weights(one, stage, {}), self.weights(alike, stage, {}), condition)
        for stage in ("first", "middle", "last"):
            text = self.weights(self.with_ends("layer < dense"), stage, {})
            self.assertLessEqual(text.count("max("), 1, text)

    def with_ends(self, condition):
        text = prefix(condition).replace("stage (layer)", "stage (embed, layer, head)")
        text = text.replace("ids, over = V)", "ids, over = V)  tag embed")
        text = text.replace("x * emb", "x * emb  tag head")
        text = text.replace("dtype act", "assume dense <= layers\ndtype act", 1)
        return self.write("ends.etch", text)

    @staticmethod
    def weights(spec, stage, sets):
        values = ",".join(f"{name}={value}" for name, value in sets.items())
        return run("query", spec, "rank_params(model)", "--plan", "pipe", "--stage", stage, "-q",
                   *(["--set", values] if values else [])).out.strip()

    @staticmethod
    def flops(spec, stage, sets):
        values = ",".join(f"{name}={value}" for name, value in sets.items())
        done = run("query", spec, "rank_flops(forward)", "--plan", "pipe", "--stage", stage, "--set", values)
        return done.out.strip()


# `counts` are those of loops inside each other; {before} stands in front of each inner loop.
NEST = """etch 1
param batch, hidden
dim B = batch, H = hidden
dtype act = bf16, weights = bf16, grads = f32, optim = f32
model nest(x[B,H]) -> y[B,H] {{
  {first}
{loops}
  weight up[H,H']
  h[B,H'] = x * up
  {last}
{ends}
  y    = silu(x)
  l[]  = mean(y, over = (B,H))  tag loss
}}
train {{ model = nest, optimizer = adamw(master = true){train} }}
parallel some {{ mesh [dp]; shard B @ dp; zero 1 @ dp }}
"""
ASKED = ("params(model)", "flops(step)", "flops(forward)", "comm(step)", "memory(weights)",
         "memory(activations)")


def nest(counts, first="", before="", last="x = x + silu(h[H'->H])", train=""):
    names = [f"i{number}" for number in range(len(counts) - 1)] + ["layer"]
    loops = [f"repeat {count} as {name} {{ {before}" for name, count in zip(names, counts)]
    return NEST.format(first=first, loops="\n".join(loops), last=last, ends="}" * len(counts), train=train)


class Nested(Case):
    """Loops around nothing but a loop are one loop; and none of what is asked takes longer than the text is
    long."""

    # What one iteration hands on: a value; the one before it as well; two that change places.
    HANDED = [
        dict(),
        dict(first="z = silu(x)", last="z = x\n  x = x + silu(h[H'->H]) * z"),
        dict(first="z = silu(x)\n  v = silu(z)", last="v = z\n  z = x\n  x = x + silu(h[H'->H]) * v"),
        dict(train=", recompute = layer"),
    ]

    def answers(self, spec):
        return [ask(spec, quantity, plan="some") for quantity in ASKED]

    def test_one_loop(self):
        for handed in self.HANDED:
            alone = self.answers(self.write("one.etch", nest([64], **handed)))
            for counts in ([2, 32], [4, 4, 4], [2] * 6):
                self.assertEqual(alone, self.answers(self.write("nest.etch", nest(counts, **handed))),
                                 (counts, handed))

    def test_deepest(self):
        for handed in self.HANDED:
            alone = self.answers(self.write("one.etch", nest(["2^60"], **handed)))
            spec = self.write("nest.etch", nest(([2] * 3 + [1] * 17) * 20, **handed))
            self.assertEqual(alone, self.answers(spec), handed)
            for command in (["check", spec], ["show", spec], ["show", spec, "--plan", "some"],
                            ["query", spec, "flops(step)", "--by", "layer"]):
                self.assertEqual(0, run(*command).status, command)

    def test_work_in_each(self):
        """Every loop has an op of its own."""
        spec = self.write("nest.etch", nest([2] * 400, before="x = gelu(x)"))
        shallow = self.write("few.etch", nest([2] * 3, before="x = gelu(x)"))
        einsums = "matmul_flops(forward)"
        self.assertEqual(2**400 // 8, int(value(spec, einsums, sets={"batch": 1, "hidden": 1}))
                         // int(value(shallow, einsums, sets={"batch": 1, "hidden": 1})))
        for quantity in ASKED:
            ask(spec, quantity, plan="some")

    def refused(self, *arguments):
        done = run(*arguments)
        return done.status, re.findall(r"error\[(E\d+)\]", done.err)

    def test_too_deep(self):
        """Loops of callers count."""
        called = nest([2] * 200).replace("model nest",
                                         "module half(x[B,H]) -> x[B,H] {\n" + "repeat 2 {\n" * 201 +
                                         "x = silu(x)\n" + "}" * 201 + "\n}\nmodel nest")
        called = called.replace("x = x + silu(h[H'->H])", "x = half(x)")
        self.assertEqual((1, ["E0913"]), self.refused("check", self.write("called.etch", called)))
        self.assertEqual((1, ["E0913"]), self.refused("check", self.write("deep.etch", nest([2] * 401))))
        spec = self.write("nest.etch", nest([1] * 65))
        self.assertEqual((4, ["E0913"]), self.refused("lower", spec, "--set", "batch=2,hidden=2,dp=2", "-n"))


main()
