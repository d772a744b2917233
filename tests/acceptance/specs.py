"""Random specs: chains of products, norms, functions, biases, residuals, gated products, modules and loops
between an embedding and a head, with random plans, scopes and pins; and what they hold and compute forward,
counted while they are written."""

import random
import re
from types import SimpleNamespace

FUNCTIONS = {"relu": 1, "sigmoid": 4, "silu": 5, "tanh": 5, "gelu": 8, "exp": 1, "softplus": 3, "abs": 1,
             "square": 1, "log": 1,
             "sqrt": 1, "rsqrt": 2, "reciprocal": 1}
AXES = ("tp", "xp")


class Count:
    """Of weights, and of the FLOP of forward: all, and those of products."""

    def __init__(self, params=0, flops=0, products=0):
        self.params, self.flops, self.products = params, flops, products

    def add(self, other, times=1, owned=1):
        """`owned`: sets of weights."""
        self.params += owned * other.params
        self.flops += times * other.flops
        self.products += times * other.products


class Body:
    """Statements of a model, a module or a loop, with the weights that it declares."""

    def __init__(self):
        self.weights, self.lines, self.count = [], [], Count()

    def text(self):
        return ([f"weight {', '.join(self.weights)}"] if self.weights else []) + self.lines


class Writer:
    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.sizes = {"batch": 24, "seq": self.chance.choice((12, 24)), "vocab": 24}
        self.dims = {"B": "batch", "S": "seq", "V": "vocab"}
        for number in range(self.chance.randint(2, 4)):
            self.dims[f"H{number}"] = f"width{number}"
            self.sizes[f"width{number}"] = 12 * self.chance.randint(1, 4)
        self.hidden = [dim for dim in self.dims if dim.startswith("H")]
        self.tokens = self.sizes["batch"] * self.sizes["seq"]
        self.modules = []  # name, dim, text, count
        self.pairs = []    # dims of weights that have two
        self.tags = set()  # residuals, by their dim
        self.names = 0
        self.shared = None  # weights of the body around a loop
        self.body = Body()

    def size(self, dim):
        return self.sizes[self.dims[dim]]

    def name(self, letter="v"):
        self.names += 1
        return f"{letter}{self.names}"

    def say(self, text):
        self.body.lines.append(text)

    def weight(self, *dims):
        name = self.name("w")
        self.body.weights.append(f"{name}[{','.join(dims)}]")
        count = 1
        for dim in dims:
            count *= self.size(dim)
        self.body.count.add(Count(params=count))
        if len(dims) == 2:
            self.pairs.append(dims)
        return name

    def spend(self, elements, each, product=False):
        self.body.count.add(Count(flops=elements * each, products=elements * each * product))

    # Each of these writes statements that turn a value over [B,S,dim] into another, and gives its name and
    # dim.

    def other(self, dim):
        return self.chance.choice([other for other in self.hidden if other != dim])

    def product(self, value, dim, to=None):
        to = to or self.other(dim)
        name = self.name()
        text = f"{name}[B,S,{to}] = {value} * {self.weight(dim, to)}"
        self.spend(self.tokens * self.size(dim) * self.size(to), 2, product=True)
        if self.chance.random() < 0.4:
            text += f" + {self.weight(to)}"
            self.spend(self.tokens * self.size(to), 1)
        self.say(text)
        return name, to

    def gated(self, value, dim):
        """Two products of the same value, multiplied element by element."""
        to = self.other(dim)
        gate, _ = self.product(value, dim, to)
        up, _ = self.product(value, dim, to)
        name = self.name()
        self.say(f"{name}[B,S,{dim}] = silu({gate}) * {up} * {self.weight(to, dim)}")
        self.spend(self.tokens * self.size(to), FUNCTIONS["silu"] + 1)
        self.spend(self.tokens * self.size(dim) * self.size(to), 2, product=True)
        return name, dim

    def pointwise(self, value, dim):
        name = self.name()
        kind = self.chance.choice(("function", "norm", "layer_norm", "dropout", "scale", "softcap",
                                   "quotient", "centred",
                                   "shares"))
        elements = self.tokens * self.size(dim)
        if kind == "function":
            function = self.chance.choice(sorted(FUNCTIONS))
            self.say(f"{name} = {function}({value})")
            self.spend(elements, FUNCTIONS[function])
        elif kind == "norm":
            self.say(f"{name} = rms_norm({value}, {self.weight(dim)}, over = {dim})")
            self.spend(elements, 4)
        elif kind == "layer_norm":
            gain, bias = self.weight(dim), self.weight(dim)
            self.say(f"{name} = layer_norm({value}, {gain}, {bias}, over = {dim})")
            self.spend(elements, 5)
        elif kind == "dropout":
            self.say(f"{name} = dropout({value}, 1/10)")
            self.spend(elements, 2)
        elif kind == "softcap":
            self.say(f"{name} = softcap({value}, 30.0)")
            self.spend(elements, 7)
        elif kind == "quotient":
            self.say(f"{name} = {value} / (1 + square({value}))")
            self.spend(elements, 3)
        elif kind == "centred":
            self.say(f"{name} = {value} - mean({value}, over = {dim})")
            self.spend(elements, 2)
            self.spend(self.tokens, 1)
        elif kind == "shares":
            self.say(f"{name} = {value} / max({value}, over = {dim})")
            self.spend(elements, 2)
        else:
            self.say(f"{name} = scale({value}, 2)")
            self.spend(elements, 1)
        return name, dim

    def branch(self, value, dim):
        """There and back again."""
        if self.chance.random() < 0.4:
            return self.gated(value, dim)
        inner, middle = self.product(value, dim)
        inner, middle = self.pointwise(inner, middle)
        return self.product(inner, middle, dim)

    def module(self, value, dim):
        """A call of a new module, or of one that is there: every call has weights of its own."""
        fitting = [made for made in self.modules if made.dim == dim]
        if fitting and self.chance.random() < 0.5:
            made = self.chance.choice(fitting)
        else:
            outer, self.body = self.body, Body()
            inner, _ = self.branch("x", dim)
            if self.chance.random() < 0.5:
                inner, _ = self.pointwise(inner, dim)
            self.say(f"y = {inner}")
            made = SimpleNamespace(name=self.name("m"), dim=dim, body=self.body)
            self.body = outer
            self.modules.append(made)
        name = self.name()
        self.say(f"{name} = {made.name}({value})")
        self.body.count.add(made.body.count)
        return name, dim

    def residual(self, value, dim):
        step = self.chance.choice((self.branch, self.module))
        inner, _ = step(value, dim)
        name = self.name()
        tag = ""
        if self.chance.random() < 0.5:
            tag = f"  tag residual{dim}"
            self.tags.add(dim)
        others = ""
        if self.chance.random() < 0.3:
            beside, _ = self.branch(value, dim)
            others = f" + {beside}"
            self.spend(self.tokens * self.size(dim), 1)
        self.say(f"{name} = {value} + {inner}{others}{tag}")
        self.spend(self.tokens * self.size(dim), 1)
        return name, dim

    def condition(self, index, count):
        """On the index of a loop, and the iterations for which it holds."""
        at, period = self.chance.randint(0, count), self.chance.randint(1, 3)
        rest = self.chance.randint(0, period - 1)
        cut = self.name("cut")
        kind = self.chance.randint(0, 9)
        text, test = [
            (f"{index} < {at}", lambda i: i < at),
            (f"{at} < {index}", lambda i: at < i),
            (f"{index} == {at}", lambda i: i == at),
            (f"{index} != {at}", lambda i: i != at),
            (f"{index} % {period} == {rest}", lambda i: i % period == rest),
            (f"{index} % {period} <= {rest}", lambda i: i % period <= rest),
            (f"{period} | {index}", lambda i: i % period == 0),
            (f"{index} % {period}", lambda i: i % period != 0),
            (f"{index} < {cut}", lambda i: i < at + 1),
            (f"{index} >= {cut} - 1", lambda i: i >= at)][kind]
        if cut in text:
            self.sizes[cut] = at + 1
        return text, {i for i in range(count) if test(i)}

    def choice(self, carried, dim, index, count):
        """Arms of an `if` on the index, which change the carried value in some iterations."""
        left, lines, around = set(range(count)), [], self.shared
        for number in range(self.chance.randint(1, 3)):
            outer, self.body = self.body, Body()
            text, meant = self.condition(index, count)
            if number > 0 and self.chance.random() < 0.5:
                text, meant = None, left
            inner, _ = self.residual(carried, dim)
            self.say(f"{carried} = {inner}")
            body, self.body = self.body, outer
            opening = "if" if number == 0 else "} else if" if text else "} else"
            # Weights of the iterations' own, or one set for all of them, declared before the loop.
            times = len(left & meant)
            own = self.chance.random() < 0.6 or times == 0 or re.search(r"\bm\d+\(", " ".join(body.lines))
            if not own:
                around += body.weights
            lines += [f"{opening} {text} {{" if text else "} else {", *(body.text() if own else body.lines)]
            self.body.count.add(body.count, times=times, owned=times if own else 1)
            left -= meant
            if text is None:
                break
        return [*lines, "}"]

    def classes(self, value, dim):
        """A loop whose iterations differ."""
        count = self.chance.randint(1, 6)
        carried, times = self.name("c"), self.name("depth")
        self.sizes[times] = count
        self.say(f"{carried} = {value}")
        outer, self.body = self.body, Body()
        self.shared = outer.weights
        lines = self.choice(carried, dim, f"i{times}", count)
        always, self.body = Body(), self.body
        differing, self.body = self.body, always
        inner, _ = self.residual(carried, dim)
        self.say(f"{carried} = {inner}")
        if self.chance.random() < 0.5:
            self.body.lines, lines = lines, self.body.lines
        text = self.body.text() + lines
        self.body = outer
        self.say(f"repeat {times} as i{times} {{")
        self.body.lines += text
        self.say("}")
        self.body.count.add(always.count, times=count, owned=count)
        self.body.count.add(differing.count)
        return carried, dim

    def loop(self, value, dim, depth=0):
        if depth == 0 and self.chance.random() < 0.6:
            return self.classes(value, dim)
        count = self.chance.randint(1, 3)
        carried, times = self.name("c"), self.name("depth")
        self.sizes[times] = count
        self.say(f"{carried} = {value}")
        outer, self.body = self.body, Body()
        inner, _ = self.residual(carried, dim)
        if depth == 0 and self.chance.random() < 0.3:
            inner, _ = self.loop(inner, dim, depth=1)
        self.say(f"{carried} = {inner}")
        body, self.body = self.body, outer
        # Weights of the loop's own: a set for each iteration. Otherwise one set for all of them.
        own = self.chance.random() < 0.7 or depth > 0 or "(" in "".join(body.lines)
        if not own:
            self.body.weights += body.weights
        self.say(f"repeat {times} as i{times} {{")
        self.body.lines += body.text() if own else body.lines
        self.say("}")
        self.body.count.add(body.count, times=count, owned=count if own else 1)
        return carried, dim

    def model(self):
        value, dim = self.name(), self.hidden[0]
        table = self.weight("V", dim)
        self.say(f"{value}[B,S,{dim}] = gather({table}, ids, over = V)")
        for _ in range(self.chance.randint(2, 5)):
            step = self.chance.choice((self.product, self.pointwise, self.residual, self.module, self.loop))
            value, dim = step(value, dim)
        tied = dim == self.hidden[0] and self.chance.random() < 0.5
        head = table if tied else self.weight(dim, "V")
        self.say(f"z[B,S,V] = {value} * {head}")
        self.spend(self.tokens * self.size(dim) * self.size("V"), 2, product=True)
        self.say("l[] = cross_entropy(z, labels, over = V)  tag loss")
        self.spend(self.tokens * self.size("V"), 5)
        return self.body.text()

    def shards(self, chances):
        """Axes for some dims, never one axis for both dims of a weight."""
        where = {}
        for dim in self.chance.sample(["V", "S", *self.hidden], 2 + len(self.hidden)):
            axis = self.chance.choice(AXES)
            used = {where.get(other) for pair in self.pairs if dim in pair for other in pair}
            if self.chance.random() < chances and axis not in used:
                where[dim] = axis
        return where

    def plan(self):
        where = self.shards(0.5)
        where.pop("S", None)
        places = ", ".join(f"{dim} @ {axis}" for dim, axis in {"B": "dp", **where}.items())
        lines = ["mesh [dp, tp, xp]", f"shard {places}"]
        # One axis for each dim: where two meet on a dim, only the inner one can be taken away again.
        inside, along = self.shards(0.6), self.chance.choice(AXES)
        for dim in sorted(self.tags):
            if self.chance.random() < 0.5:
                lines.append(f"pin residual{dim} [B@dp, S@{along}, {dim}]")
        for made in self.modules:
            if self.chance.random() < 0.4:
                # What the plan divides stays whole inside, what it does not is divided.
                changes = {dim: "()" if dim in where else inside.get(dim) for dim in self.hidden}
                changes = {dim: axis for dim, axis in changes.items() if axis}
                if changes:
                    places = ", ".join(f"{dim} @ {axis}" for dim, axis in changes.items())
                    lines.append(f"for {made.name} {{ shard {places} }}")
        return lines

    def text(self):
        model = "\n  ".join(self.model())
        plan = "\n  ".join(self.plan())
        modules = "".join(f"module {made.name}(x[B,S,{made.dim}]) -> y[B,S,{made.dim}] {{\n  "
                          + "\n  ".join(made.body.text()) + "\n}\n" for made in self.modules)
        params = ", ".join(self.sizes)
        dims = ", ".join(f"{dim} = {param}" for dim, param in self.dims.items())
        return (f"etch 1\nparam {params}\nparam micro = 1\ndim {dims}\n"
                f"dtype act = bf16, weights = bf16, grads = f32, optim = f32\n{modules}"
                f"model chain(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {{\n  {model}\n}}\n"
                "train { model = chain, optimizer = adamw(master = true), accumulate = (B, micro) }\n"
                f"parallel some {{\n  {plan}\n}}\n"
                "parallel ddp {\n  mesh [dp]\n  shard B @ dp\n}\n")


def make(seed):
    """`text`; `sizes` to bind; `dims` and their sizes; `params`; FLOP of `forward` and of its `products`."""
    writer = Writer(seed)
    text, count = writer.text(), writer.body.count
    return SimpleNamespace(text=text, sizes=writer.sizes, dims=writer.dims, params=count.params,
                           forward=count.flops,
                           products=count.products)
