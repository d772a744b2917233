"""Rewritings of a spec that mean the same change no total: operands swapped, values passed on under other
names, modules that nobody calls, a dim written as two. And what is inside a loop grows with its count."""

import json
import re

from etchtest import MODELS, Case, Formula, POINTS, ask, main, succeed

QUERIES = ("params(model)", "trainable(model)", "flops(step)", "matmul_flops(step)", "elementwise(step)")
# a chain of two loops has numbers only
BOUND = {("t5.etch", "encoder_decoder"): "pp=3,enc_layers=4,dec_layers=2"}
PLACED = ("rank_flops(step)", "traffic(step)", "comm(step)")
# Where two operands are divided on dims of their own over one axis, the first says how the work is divided
# (R2).
ORDER_COUNTS = {("gpt.etch", plan, "operands swapped") for plan in ("context_gather", "long_context_pp")}
NAME = r"[A-Za-z_]\w*"
SPECS = sorted(path.name for path in MODELS.glob("*.etch")
               if re.search(r"^model ", path.read_text(encoding="utf-8"), re.M))


def runs_of(text):
    """Names of train blocks; None is the only one."""
    named = re.findall(r"^train\s+(\w+)\s*\{", text, re.M)
    return named or ([None] if re.search(r"^train\s*\{", text, re.M) else [])


def plans_of(spec):
    """Names of the plans that a spec has or imports."""
    return json.loads(succeed("check", spec, "--format", "json").out)["plans"]


def swap_operands(text):
    """a * b and a + b of two names, with or without dims declared."""
    return re.sub(rf"(=\s+)({NAME}) ([*+]) ({NAME})(?= *(#|tag|$))", r"\1\4 \3 \2", text, flags=re.M)


def pass_on(text):
    """The first operand of such a statement is another name for the value."""
    return re.sub(rf"(=\s+)({NAME}) ([*+]) ({NAME})(?= *(#|tag|$))", r"\1identity(\2) \3 \4", text,
                  flags=re.M)


def pass_on_weights(text):
    """The second operand, which is a weight for most, is another name for the value."""
    return re.sub(rf"(=\s+)({NAME}) ([*+]) ({NAME})(?= *(#|tag|$))", r"\1\2 \3 identity(\4)", text,
                  flags=re.M)


def outline(text):
    """A product with a weight is a module of its own, which has the weight as an argument."""
    dims = set(re.findall(r"[A-Z]\w*(?= *=)", " ".join(re.findall(r"^dim (.*)$", text, re.M))))
    for names in re.findall(r"^import .*\((.*)\)", text, re.M):
        dims |= {name.strip() for name in names.split(",")}
    modules = []

    def called(match):
        indent, result, shape, space, first, second = match.groups()
        declared = re.findall(rf"\b{second}\[([^\]]*)\]", text[:match.start()])
        used = {name.rstrip("'") for name in (declared[-1:] or [".."])[0].split(",") + shape.split(",")}
        if not used <= dims:
            return match.group()
        name = f"outlined_{len(modules)}"
        modules.append(f"\nmodule {name}(a[..], w[{declared[-1]}]) -> y[{shape}] {{\n"
                       f"  y[{shape}] = a * w\n}}\n")
        return f"{indent}{result}[{shape}]{space}= {name}({first}, {second})"

    text = re.sub(rf"^( +)({NAME})\[([^\]]*)\]( *)= ({NAME}) \* ({NAME})(?= *(?:#|tag|$))", called, text,
                  flags=re.M)
    return text + "".join(modules)


def there_and_back(text):
    """x[H->H'] and back, in front of every contraction of a tensor that has H."""
    def renamed(match):
        indent, result, first, second = match.groups()
        return f"{indent}there_{first} = {first}[H->H']\n{indent}{result} = there_{first}[H'->H] * {second}"
    return re.sub(rf"^( +)([qkv]\[B,S'?,K?,?G?,?A?,?D\]) *= (x) \* ({NAME}) *$", renamed, text, flags=re.M)


UNUSED = """
module nobody_calls(x[B,S,H]) -> y[B,S,H] {
  weight unused_up[H,F], unused_down[F,H]
  t[B,S,F] = x * unused_up
  y        = gelu(t) * unused_down
}
"""


def add_module(text):
    return text + (UNUSED if re.search(r"^model ", text, re.M) else "")


def add_empty_loop(text):
    """In front of every outer loop stands one that does the same, and never."""
    added, done = "", 0
    for match in re.finditer(r"^( *)repeat \w+ as (\w+) \{\n", text, re.M):
        if match.start() < done:
            continue
        depth, end = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        body = re.sub(rf"\b{match[2]}\b", "nothing", text[match.end():end])
        added += f"{text[done:match.start()]}{match[1]}repeat 0 as nothing {{\n{body}\n"
        added += text[match.start():end]
        done = end
    return added + text[done:]


REWRITINGS = {"operands swapped": swap_operands, "passed on": pass_on, "weights passed on": pass_on_weights,
              "modules outlined": outline, "there and back": there_and_back,
              "a module more": add_module, "an empty loop added": add_empty_loop}
# What a loop carries is held by its map (R7): plans see a loop, also an empty one.
UNPLACED = {"an empty loop added"}
# Not so yet: where a loop of no iterations reads a value that others read too, their cotangents are added to
# its zeros.
KNOWN = {("t5.etch", "an empty loop added")}


class Metamorphic(Case):
    known = {}  # answers of the specs as they are

    def rewritten(self, how):
        """The folder of models, rewritten; and whether anything changed."""
        folder = self.scratch / how.__name__
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

    def compare(self, old, new, run, plan):
        sets = BOUND.get((old.name, plan))
        more = [*(["--run", run] if run else []), *(["--plan", plan] if plan else []),
                *(["--set", sets] if sets else [])]
        for query in PLACED if plan else QUERIES:
            with self.subTest(spec=old.name, run=run, plan=plan, query=query):
                if (old, query, *more) not in self.known:
                    self.known[old, query, *more] = succeed("query", old, query, *more).out
                self.assertEqual(self.known[old, query, *more], succeed("query", new, query, *more).out)

    def test_rewritings(self):
        plain = self.plain()
        for name, how in REWRITINGS.items():
            folder, changed = self.rewritten(how)
            self.assertTrue({"gpt.etch", "llama.etch", "base.etch"} & changed, f"{name} rewrites nothing")
            for spec in SPECS:
                if (spec, name) in KNOWN:
                    continue
                text = (plain / spec).read_text(encoding="utf-8")
                for run in runs_of(text):
                    self.compare(plain / spec, folder / spec, run, None)
                    for plan in plans_of(plain / spec):
                        if name in UNPLACED or (spec, plan, name) in ORDER_COUNTS:
                            continue
                        self.compare(plain / spec, folder / spec, run, plan)

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


if __name__ == "__main__":
    main()
