"""Random specs: chains of products, norms, functions, biases, residuals and loops between an embedding and a head, with
random plans; and what they hold and compute forward, counted while they are written."""

import random
from types import SimpleNamespace

FUNCTIONS = {"relu": 1, "sigmoid": 4, "silu": 5, "tanh": 5, "gelu": 8, "exp": 1, "softplus": 3}
AXES = ("tp", "xp")


class Writer:
    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.sizes = {"batch": 8, "seq": self.chance.choice((12, 24)), "vocab": 24}
        self.dims = {"B": "batch", "S": "seq", "V": "vocab"}
        for number in range(self.chance.randint(2, 4)):
            self.dims[f"H{number}"] = f"width{number}"
            self.sizes[f"width{number}"] = 12 * self.chance.randint(1, 4)
        self.hidden = [dim for dim in self.dims if dim.startswith("H")]
        self.weights, self.pairs, self.lines = [], [], []
        self.local = None  # weights that the loop being written has of its own for each iteration
        self.names = 0
        self.params = self.flops = self.products = 0
        self.times = 1  # iterations of the loop around
        self.tokens = self.sizes["batch"] * self.sizes["seq"]

    def size(self, dim):
        return self.sizes[self.dims[dim]]

    def weight(self, *dims):
        name = f"w{self.names}"
        self.names += 1
        where, count = (self.weights, 1) if self.local is None else (self.local, self.times)
        where.append(f"{name}[{','.join(dims)}]")
        for dim in dims:
            count *= self.size(dim)
        self.params += count  # what is declared outside loops is one weight, however often it is used
        if len(dims) == 2:
            self.pairs.append(dims)
        return name

    def count(self, elements, each, product=False):
        self.flops += self.times * elements * each
        self.products += self.times * elements * each * product

    # Each of these writes statements that turn a value over [B,S,dim] into another, and gives its name and dim.

    def product(self, value, dim, to=None):
        to = to or self.chance.choice(self.hidden)
        while to == dim:
            to = self.chance.choice(self.hidden)
        name = f"v{len(self.lines)}"
        text = f"{name}[B,S,{to}] = {value} * {self.weight(dim, to)}"
        self.count(self.tokens * self.size(dim) * self.size(to), 2, product=True)
        if self.chance.random() < 0.4:
            text += f" + {self.weight(to)}"
            self.count(self.tokens * self.size(to), 1)
        self.lines.append(text)
        return name, to

    def pointwise(self, value, dim):
        name = f"v{len(self.lines)}"
        kind = self.chance.choice(("function", "norm", "layer_norm", "dropout", "scale"))
        elements = self.tokens * self.size(dim)
        if kind == "function":
            function = self.chance.choice(sorted(FUNCTIONS))
            self.lines.append(f"{name} = {function}({value})")
            self.count(elements, FUNCTIONS[function])
        elif kind == "norm":
            self.lines.append(f"{name} = rms_norm({value}, {self.weight(dim)}, over = {dim})")
            self.count(elements, 4)
        elif kind == "layer_norm":
            gain, bias = self.weight(dim), self.weight(dim)
            self.lines.append(f"{name} = layer_norm({value}, {gain}, {bias}, over = {dim})")
            self.count(elements, 5)
        elif kind == "dropout":
            self.lines.append(f"{name} = dropout({value}, 1/10)")
            self.count(elements, 2)
        else:
            self.lines.append(f"{name} = scale({value}, 2)")
            self.count(elements, 1)
        return name, dim

    def residual(self, value, dim):
        inner, middle = self.product(value, dim)
        inner, middle = self.pointwise(inner, middle)
        inner, _ = self.product(inner, middle, dim)
        name = f"v{len(self.lines)}"
        tag = "  tag residual" if self.chance.random() < 0.5 else ""
        self.lines.append(f"{name} = {value} + {inner}{tag}")
        self.count(self.tokens * self.size(dim), 1)
        return name, dim

    def loop(self, value, dim):
        count = self.chance.randint(1, 3)
        carried = f"c{len(self.lines)}"
        depth = f"depth{len(self.lines)}"
        self.sizes[depth] = count
        if self.chance.random() < 0.7:
            self.local = []
        self.lines += [f"{carried} = {value}", f"repeat {depth} as i{depth} {{"]
        start = len(self.lines)
        self.times = count
        inner, _ = self.residual(carried, dim)
        self.times = 1
        if self.local:
            self.lines.insert(start, f"weight {', '.join(self.local)}")
        self.local = None
        self.lines += [f"{carried} = {inner}", "}"]
        return carried, dim

    def body(self):
        value, dim = "v0", self.hidden[0]
        table = self.weight("V", dim)
        self.lines.append(f"v0[B,S,{dim}] = gather({table}, ids, over = V)")
        for _ in range(self.chance.randint(2, 5)):
            step = self.chance.choice((self.product, self.pointwise, self.residual, self.loop))
            value, dim = step(value, dim)
        head = self.weight(dim, "V")
        self.lines.append(f"z[B,S,V] = {value} * {head}")
        self.count(self.tokens * self.size(dim) * self.size("V"), 2, product=True)
        self.lines.append("l[] = cross_entropy(z, labels, over = V)  tag loss")
        self.count(self.tokens * self.size("V"), 5)

    def plan(self):
        """Axes for some dims, never one axis for both dims of a weight."""
        lines = ["mesh [dp, tp, xp]"]
        where = {}
        for dim in self.chance.sample(["V", "S", *self.hidden], self.chance.randint(0, 1 + len(self.hidden))):
            axis = self.chance.choice(AXES)
            used = {where.get(other) for pair in self.pairs if dim in pair for other in pair}
            if axis not in used and (dim != "S" or axis not in where.values()) and where.get("S") != axis:
                where[dim] = axis
        lines.append("shard " + ", ".join(["B @ dp", *(f"{dim} @ {axis}" for dim, axis in where.items())]))
        return lines

    def text(self):
        self.body()
        params = ", ".join(self.sizes)
        dims = ", ".join(f"{dim} = {param}" for dim, param in self.dims.items())
        plan = self.plan()
        model = [f"weight {', '.join(self.weights)}", *self.lines]
        body = "\n  ".join(model)
        return (f"etch 1\nparam {params}\nparam micro = 1\ndim {dims}\n"
                "dtype act = bf16, weights = bf16, grads = f32, optim = f32\n"
                f"model chain(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {{\n  {body}\n}}\n"
                "train { model = chain, optimizer = adamw(master = true), accumulate = (B, micro) }\n"
                "parallel some {\n  " + "\n  ".join(plan) + "\n}\n"
                "parallel ddp {\n  mesh [dp]\n  shard B @ dp\n}\n")


def make(seed):
    """`text`; `sizes` to bind; `dims` and their sizes; `params`; FLOP of `forward` and of its `products`."""
    writer = Writer(seed)
    text = writer.text()
    return SimpleNamespace(text=text, sizes=writer.sizes, dims=writer.dims, params=writer.params, forward=writer.flops,
                           products=writer.products)
