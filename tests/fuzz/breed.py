"""Specs that are bred: a shipped spec or one of the tests, statements of which are changed, taken away, put
into loops and branches, or come from another spec; with plans by the grammar or of another spec, runs, and
values. One number makes one of them, always the same. Most can be lowered, many cannot: what is asked of a
program is in oracles.py."""

import pathlib
import random
import re
import sys

from spectree import Block, blocks, flat, read, split, write

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "acceptance"))
import shipped  # noqa: E402
import specs  # noqa: E402

NAME = re.compile(r"[A-Za-z_]\w*'*$")
AXES = ("dp", "tp", "pp", "cp", "ep", "xp")
POINTWISE = ("gelu", "silu", "relu", "tanh", "sigmoid", "exp", "log", "abs", "square", "sqrt", "rsqrt",
             "softplus",
             "reciprocal", "stop_gradient")
SCHEDULES = ("gpipe", "one_f_one_b", "zb_h1", "zb_v", "interleaved(virtual = 2)", "interleaved(virtual = 3)")
DTYPES = ("act", "weights", "grads", "optim", "master", "moments", "grads_comm", "weights_comm", "dispatch",
          "combine")
TYPES = ("f64", "f32", "bf16", "f16", "f8")
ODD = ("0", "-1", "1/2", "3", "7", "10^6", "2^31", "2^40", "10^30")
WORDS = {"first", "last", "none", "true", "false"}


def imports(path, names=None, seen=None):
    """The statements of a spec and of all that it imports, imported first; None where one is qualified."""
    seen = set() if seen is None else seen
    if path in seen:
        return Block()
    seen.add(path)
    found = Block()
    for statement in read(path.read_text(encoding="utf-8")):
        if statement[0] == "import":
            if "as" in statement:
                return None
            inner = imports((path.parent / statement[1].strip('"')).resolve(), None, seen)
            if inner is None:
                return None
            some = set(statement[2:])
            found += [line for line in inner if not some or line[0] not in ("train", "infer")]
        elif statement[0] != "etch":
            found.append(statement)
    return found


def pool():
    """Name and text of what is bred from: each spec with its imports in one text."""
    paths = sorted(SOURCE.glob("models/*.etch")) + sorted(SOURCE.glob("tests/cli/specs/*.etch")) + \
        sorted(SOURCE.glob("tests/baseline/specs/*.etch"))
    for path in paths:
        block = imports(path)
        if block is not None and any(statement[0] == "model" for statement in block):
            kept, names = Block(), set()
            for statement in reversed(block):  # what the importing text says counts
                if statement[0] in ("check", "use", "sweep", "device", "cluster", "config"):
                    continue
                head = (statement[0], statement[1] if isinstance(statement[1], str) else None)
                if statement[0] in ("module", "model", "parallel", "infer", "train") and head in names:
                    continue
                names.add(head)
                if statement[0] in ("param", "dim", "dtype"):
                    statement = without(statement, names)
                if len(statement) > 1:
                    kept.append(statement)
            yield path.stem, write(Block(reversed(kept)))


def without(statement, names):
    """A line of params, dims or dtypes without those that are there; the others are noted."""
    parts = []
    for part in split(statement[1:]):
        key = part[0] if statement[0] != "dtype" else ("dtype", part[0])
        if key not in names:
            names.add(key)
            parts += [*part, ","]
    return [statement[0], *parts[:-1]]


class Spec:
    """What a text says of names."""

    def __init__(self, block):
        self.block = block
        self.params, self.dims, self.modules, self.models, self.plans = [], {}, {}, {}, {}
        for statement in block:
            word = statement[0]
            if word == "param":
                self.params += [part[0] for part in split(statement[1:])]
            elif word == "dim":
                self.dims.update({part[0]: "".join(part[2:]) for part in split(statement[1:])})
            elif word == "module":
                self.modules[statement[1]] = statement
            elif word == "model":
                self.models[statement[1]] = statement
            elif word == "parallel":
                self.plans[statement[1]] = statement
        self.tags, self.loops, self.tensors = set(), set(), set()
        for where in (*self.modules.values(), *self.models.values()):
            words = list(flat(where))
            for at, word in enumerate(words):
                if word == "tag":
                    self.tags.add(words[at + 1])
                if word == "repeat" and "as" in words[at:at + 12]:
                    self.loops.add(words[words.index("as", at) + 1])
        self.tags -= {"loss", "frozen", "buffer"}

    def bodies(self):
        for where in (*self.modules.values(), *self.models.values()):
            yield from blocks(where[-1])

    def of(self, kind):
        return [statement for statement in self.block if statement[0] == kind]


class Breeder:
    def __init__(self, seed, specs_of_pool):
        self.chance = random.Random(f"bred {seed}")
        self.pool = specs_of_pool
        self.number = 0
        self.name, text = self.choose()
        self.spec = Spec(read(text))
        self.done = []
        for _ in range(self.chance.choice((0, 0, 1, 1, 2, 3))):
            self.edit()
            self.spec = Spec(self.spec.block)
        self.train()
        self.infers()
        if "micro" not in self.spec.params:
            self.spec.block.insert(0, self.words("param micro = 1"))
            self.spec.params.append("micro")
        self.plan_name = self.plans()
        self.values()

    def likely(self, probability):
        return self.chance.random() < probability

    def choose(self):
        if self.likely(0.3):
            made = specs.make(self.chance.randrange(10**6))
            self.base_sizes = dict(made.sizes)
            return "random", re.sub(r"^etch 1\n", "", made.text)
        self.base_sizes = {}
        name = self.chance.choice(sorted(self.pool))
        return name, self.pool[name]

    def fresh(self, stem):
        self.number += 1
        return f"{stem}_{self.number}"

    def words(self, text):
        """A statement of a text."""
        return read(text)[0]

    # ---- statements of models ----

    def edit(self):
        bodies = [body for body in self.spec.bodies() if body]
        body = self.chance.choice(bodies)
        how = self.chance.choice((self.insert, self.insert, self.insert, self.insert, self.loop, self.loop,
                                  self.branch,
                                  self.delete, self.again, self.swap, self.other_number, self.other_name,
                                  self.count,
                                  self.count, self.tag, self.tag, self.foreign, self.foreign_module,
                                  self.weight_tag))
        how(body)
        self.done.append(how.__name__)

    def lets(self, body):
        """Index, name and dims (or none) of what a body computes."""
        found = []
        for at, statement in enumerate(body):
            if statement[0] in ("weight", "dim", "repeat", "if", "(") or not NAME.match(str(statement[0])):
                continue
            dims = None
            if len(statement) > 1 and statement[1] == "[" and "]" in statement:
                dims = [word for word in statement[2:statement.index("]")] if word != ","]
            found.append((at, statement[0], dims))
        return found

    def dim(self):
        return self.chance.choice(sorted(self.spec.dims)) if self.spec.dims else "B"

    def insert(self, body):
        lets = self.lets(body)
        if not lets:
            return
        at, name, dims = self.chance.choice(lets)
        over = self.chance.choice(dims) if dims else self.dim()
        if dims == []:
            kinds = [f"{name} = scale({name}, 2)", f"{name} = {name} + {name}"]
        else:
            weight, other = self.fresh("w"), self.fresh("t")
            shape = ",".join(dims) if dims else "B,S,H"
            kinds = [
                f"{name} = {self.chance.choice(POINTWISE)}({name})",
                f"{name} = {name} {self.chance.choice('+-*/')} {name}",
                f"{name} = scale({name}, {self.chance.choice(('1/3', '2', 'B', '0', '-1'))})",
                f"{name} = cast({name}, {self.chance.choice(TYPES)})",
                f"{name} = softcap({name}, 30.0)", f"{name} = dropout({name}, 1/10)",
                f"{name} = {name} {self.chance.choice('+-*/')} "
                f"{self.chance.choice(('sum', 'mean', 'max'))}({name}, over = {over})",
                f"{name} = softmax({name}, over = {over})",
                f"weight {weight}[{over}]; {name} = rms_norm({name}, {weight}, over = {over})",
                f"weight {weight}[{over}]; {name} = {name} * {weight}",
                f"weight {weight}[{over}]; {name} = {name} + {weight}",
                f"{name} = {name} * {self.chance.choice(lets)[1]}",
                f"{name} = {name} + {self.chance.choice(lets)[1]}",
                f"weight {weight}[{over},{over}']; {other}[{shape}] = 0; {other} = {name} * {weight}",
                f"{other} = {name} * {name}; {name} = {name} + {other}",
                f"l_{weight}[] = mean({name}, over = ({shape}))  tag loss",
                f"{other}[{shape}] = {self.chance.choice(('0', '1', '1/2'))}; {name} = {name} + {other}",
            ]
            if dims and over in dims and "'" not in over:
                prime = ",".join(word if word != over else over + "'" for word in dims)
                kinds += [f"weight {weight}[{over},{over}']; {other}[{prime}] = {name} * {weight}; "
                          f"{name} = {other}[{over}'->{over}]"] * 3
                wide = self.dim()
                if wide not in dims:
                    prime = ",".join(word if word != over else wide for word in dims)
                    down = self.fresh("d")
                    kinds += [f"weight {weight}[{over},{wide}], {down}[{wide},{over}]; "
                              f"{other}[{prime}] = {name} * "
                              f"{weight}; {other} = gelu({other}); {name}[{shape}] = {other} * {down}"] * 4
        body[at + 1:at + 1] = read(self.chance.choice(kinds))

    def index_of(self, body):
        """The index of a loop around a body, or none."""
        for outer in self.spec.bodies():
            for statement in outer:
                if statement[0] == "repeat" and "as" in statement and any(inner is body for inner in
                                                                          blocks(statement[-1])):
                    return statement[statement.index("as") + 1]
        return None

    def condition(self, body):
        number = self.chance.randint(0, 4)
        param = self.chance.choice(self.spec.params or ["n"])
        index = self.index_of(body)
        if index is None and self.likely(0.95):
            return self.chance.choice((f"{param} > {number}", f"{param} % 2 == 0", f"{param} != {number}",
                                       "1 == 0"))
        index = index or "layer"
        return self.chance.choice((
            f"{index} % {self.chance.randint(1, 3)} == {self.chance.randint(0, 2)}", f"{index} < {number}",
            f"{index} >= {number}", f"{index} == {number}", f"{index} != {number}", f"{param} > {number}",
            f"{param} % 2 == 0", f"{index} == {param} - 1", f"{index} < {param} - 1", "1 == 0",
            f"2 | {index}"))

    def loop(self, body):
        at = self.chance.randrange(len(body))
        till = min(len(body), at + self.chance.randint(1, 3))
        if any(statement[0] in ("weight", "dim") for statement in body[at:till]) and self.likely(0.5):
            return
        count = self.chance.choice(("0", "1", "2", "2", "3", self.chance.choice(self.spec.params or ["2"])))
        inner = Block(body[at:till])
        # what behind the loop is read must be there before
        before = Block()
        if self.likely(0.6):
            for _, name, _ in self.lets(inner):
                if name not in list(word for statement in body[:at] for word in flat(statement)):
                    before += [statement for statement in inner if statement[0] == name][:1]
        body[at:till] = [*before, ["repeat", *self.words(count), "as", self.fresh("loop"), inner]]

    def branch(self, body):
        at = self.chance.randrange(len(body))
        inner = Block([body[at]])
        statement = ["if", *self.words(self.condition(body)), inner]
        if self.likely(0.5):
            statement += ["else", Block(read(write(inner)))]
        keep = [body[at]] if self.likely(0.6) and body[at][0] not in ("weight", "dim", "repeat") else []
        body[at:at + 1] = [*keep, statement]

    def delete(self, body):
        del body[self.chance.randrange(len(body))]

    def again(self, body):
        at = self.chance.randrange(len(body))
        body.insert(at, read(write(Block([body[at]])))[0])

    def swap(self, body):
        at = self.chance.randrange(len(body))
        other = self.chance.randrange(len(body))
        body[at], body[other] = body[other], body[at]

    def words_at(self, body, fits):
        found = []
        for block in blocks(body):
            for statement in block:
                found += [(statement, at) for at, part in enumerate(statement) if isinstance(part, str) and
                          fits(part)]
        return found

    def other_number(self, body):
        found = self.words_at(body, lambda word: word[0].isdigit())
        if found:
            statement, at = self.chance.choice(found)
            statement[at] = self.chance.choice(("0", "1", "2", "3", "5", "16", "0.5", "1000000"))

    def other_name(self, body):
        dims = set(self.spec.dims)
        found = self.words_at(body, lambda word: word in dims)
        if found:
            statement, at = self.chance.choice(found)
            statement[at] = self.chance.choice((self.dim(), statement[at] + "'"))

    def count(self, body):
        loops = [statement for inner in self.spec.bodies() for statement in inner if statement[0] == "repeat"]
        if not loops:
            return
        statement = self.chance.choice(loops)
        till = next(at for at, part in enumerate(statement) if part == "as" or isinstance(part, Block))
        old = " ".join(statement[1:till])
        new = self.chance.choice((f"({old}) - 1", f"({old}) + 1", f"2*({old})", f"({old})//2", "0", "1", "2",
                                  "3",
                                  f"max({old} - 2, 0)", f"min({old}, 2)", f"({old}) % 2", f"ceil(({old})/2)"))
        statement[1:till] = self.words(new)

    def tag(self, body):
        lets = self.lets(body)
        if lets:
            at, _, _ = self.chance.choice(lets)
            tag = self.chance.choice((self.fresh("tag"), "residual", "head", "embed", "loss"))
            body[at] += [",", tag] if "tag" in body[at] else ["tag", tag]

    def weight_tag(self, body):
        found = [statement for inner in self.spec.bodies() for statement in inner
                 if statement[0] == "weight" and "tag" not in statement]
        if found:
            self.chance.choice(found).extend(["tag", self.chance.choice(("frozen", "frozen", "buffer"))])

    def other_spec(self):
        return Spec(read(self.pool[self.chance.choice(sorted(self.pool))]))

    def foreign(self, body):
        """A statement of another spec, with names of this one."""
        other = self.other_spec()
        their = self.chance.choice([inner for inner in other.bodies() if inner])
        statement = read(write(Block([self.chance.choice(their)])))[0]
        mine = [name for _, name, _ in self.lets(body)] or ["x"]
        theirs = [name for _, name, _ in self.lets(their)]
        mapping = {name: self.chance.choice(mine) for name in theirs}
        body.insert(self.chance.randint(0, len(body)), [mapping.get(part, part) if isinstance(part,
                                                                                              str) else part
                                                        for part in statement])
        self.borrow(other, statement)

    def borrow(self, other, statement):
        """Params, dims and modules that a statement of another spec speaks of."""
        for word in set(flat(statement)):
            if word in other.dims and word not in self.spec.dims:
                size = other.dims[word]
                kind = next(st for st in other.of("dim") for part in split(st[1:]) if part[0] == word)
                sign = next(part[1] for part in split(kind[1:]) if part[0] == word)
                self.spec.block.insert(0, self.words(f"dim {word} {sign} {size}"))
                self.spec.dims[word] = size
                self.borrow(other, self.words(size))
            elif word in other.params and word not in self.spec.params:
                self.spec.block.insert(0, ["param", word])
                self.spec.params.append(word)
            elif word in other.modules and word not in self.spec.modules:
                self.spec.modules[word] = other.modules[word]
                self.spec.block.append(other.modules[word])
                self.borrow(other, other.modules[word])

    def foreign_module(self, _):
        """A module of the same name, or of the same number of operands, has the body of another spec's."""
        other = self.other_spec()
        if not self.spec.modules or not other.modules:
            return
        name = self.chance.choice(sorted(self.spec.modules))
        their = name if name in other.modules else self.chance.choice(sorted(other.modules))
        mine, new = self.spec.modules[name], other.modules[their]
        mine[2:] = read(write(Block([new])))[0][2:]
        self.borrow(other, mine)

    # ---- runs ----

    def train(self):
        for statement in [*self.spec.of("train"), *self.spec.of("infer")]:
            if self.likely(0.5) and statement[0] == "train":
                continue
            lines = [part for line in statement[-1] for part in split(line)]
            lines = [line for line in lines if line[0] not in ("optimizer", "recompute", "clip", "freeze")
                     or self.likely(0.4)]
            keys = {line[0] for line in lines}
            if statement[0] == "train":
                if "optimizer" not in keys:
                    lines.append(self.words("optimizer = " + self.chance.choice((
                        "sgd", "sgd(momentum = 0.9)", "adamw", "adamw(master = true)",
                        "adamw(master = true, main_grads = true)", "adamw(main_grads = true)"))))
                if self.likely(0.3) and "clip" not in keys:
                    lines.append(self.words("clip = 1.0"))
                if self.likely(0.3) and "recompute" not in keys:
                    lines.append(self.words(f"recompute = {self.again_of()}"))
                if self.likely(0.2) and "freeze" not in keys:
                    lines.append(self.words(f"freeze = {self.selector()}"))
                if self.likely(0.1):
                    lines = [line for line in lines if line[0] != "accumulate"]
            flattened = []
            for line in lines:
                flattened += [*line, ","]
            statement[-1][:] = [flattened[:-1]] if flattened else []

    def again_of(self):
        kind = self.chance.choice(("full", "needed", "none", self.selector(), self.selector(),
                                   f"needed({self.selector()})", f"({self.selector()}, {self.selector()})"))
        return kind

    def selector(self):
        names = [*sorted(self.spec.tags), *sorted(self.spec.modules), *sorted(self.spec.loops),
                 *sorted(self.spec.models)]
        name = self.chance.choice(names or ["x"])
        if name in self.spec.modules and self.likely(0.3):
            body = self.spec.modules[name][-1]
            inner = [tensor for _, tensor, _ in self.lets(body)]
            calls = [word for word in flat(self.spec.modules[name]) if word in self.spec.modules and
                     word != name]
            if inner + calls:
                return f"{name}.{self.chance.choice(inner + calls)}"
        return name

    def infers(self):
        if not self.spec.models:
            return
        if self.likely(0.15):
            model = self.chance.choice(sorted(self.spec.models))
            more = self.chance.choice(("", "", ", accumulate = (B, micro)", ", steps = 3"))
            sets = ", seq = 1, past = 5" if "past" in self.spec.params and self.likely(0.7) else ""
            self.spec.block.append(self.words(f"infer served {{ model = {model}{sets}{more} }}"))
        runs = [(statement[1] if isinstance(statement[1], str) else None) for statement in self.spec.block
                if statement[0] in ("train", "infer")]
        self.run = self.chance.choice(runs) if runs and (len(runs) > 1 or self.likely(0.5)) else None

    # ---- plans ----

    def at(self, dim, axes):
        return f"{dim} @ {axes[0]}" if len(axes) == 1 else f"{dim} @ ({','.join(axes)})"

    def some(self, axes, most=3):
        return self.chance.sample(axes, self.chance.randint(1, min(most, len(axes)))) if axes else []

    def shards(self, axes, most=5, batch=True):
        dims = sorted(self.spec.dims)
        places = {}
        free = [axis for axis in axes if axis != "pp"]
        left = list(free)
        if batch and "B" in self.spec.dims and self.likely(0.85):
            first = "dp" if "dp" in free else free[0] if free else None
            if first:
                places["B"] = [first]
                left.remove(first)
        shared = {"S": "cp", "K": "tp", "A": "tp", "F": "tp", "V": "tp", "E": "ep", "I": "tp", "J": "tp",
                  "G": "tp"}
        for dim in self.chance.sample(dims, self.chance.randint(0, min(most, len(dims)))):
            if dim in places:
                continue
            usual = shared.get(dim)
            if usual in free and self.likely(0.7):
                places[dim] = [usual]
            elif self.likely(0.15):
                places[dim] = []
            elif left or self.likely(0.1):
                places[dim] = self.some(left or free, 2)
            if usual not in places.get(dim, [usual]) and self.likely(0.7):
                left = [axis for axis in left if axis not in places[dim]]
        return ", ".join(self.at(dim, over) for dim, over in places.items())

    def plan_text(self, name):
        axes = self.chance.sample(AXES, self.chance.choice((1, 2, 2, 3, 3, 4)))
        if "dp" not in axes and self.likely(0.7):
            axes.insert(0, "dp")
        self.chance.shuffle(axes)
        lines, extra = [], []
        mesh = []
        for axis in axes:
            how = self.chance.random()
            mesh.append(f"{axis} = {self.chance.choice('1223')}" if how < 0.1 else axis)
        lines.append(f"mesh [{', '.join(mesh)}]")
        named = []
        if len(axes) > 1 and self.likely(0.2):
            named = ["both"]
            pair = [axis for axis in axes if axis != "pp"][:2]
            if len(pair) == 2:
                lines.append(f"axis both = ({','.join(pair)})")
            else:
                named = []
        free = [axis for axis in axes if axis != "pp"]
        shard = self.shards(axes)
        if shard:
            lines.append(f"shard {shard}")
        if self.spec.tags and self.likely(0.5):
            tag = self.chance.choice(sorted(self.spec.tags))
            dims = self.tagged_dims(tag)
            if dims:
                shape = []
                left = list(free)
                for dim in dims:
                    over = [axis for axis in self.some(left, 2)] if left and self.likely(0.5) else []
                    if dim == "B" and "dp" in left:
                        over = ["dp"]
                    left = [axis for axis in left if axis not in over]
                    shape.append(self.at(dim, over) if over else dim)
                lines.append(f"pin {tag} [{', '.join(shape)}]")
        if self.likely(0.5) and free:
            lines.append(self.zero([*free, *named]))
        if "pp" in axes and self.likely(0.9):
            lines.append(self.stage())
        options = {
            "bucket": ("layer", "step", "ddp", "1000", "25*2^20", "1"),
            "reduce": ("layer", "end", "microbatch"), "keep": ("gathers", "none"),
            "balance": ("false", "true"),
            "offload": ("optimizer", "master", "moments", "(master, moments)"),
            "recompute": (self.again_of(), ),
            "ranks": ("*".join(axes), "8")}
        for key, values in options.items():
            if self.likely(0.2 if key != "ranks" else 0.03):
                lines.append(f"{key} = {self.chance.choice(values)}")
        if self.likely(0.2):
            kinds = self.chance.sample(DTYPES, self.chance.randint(1, 3))
            lines.append("dtype " + ", ".join(f"{kind} = {self.dtype(kind)}" for kind in kinds))
        if self.likely(0.2):
            order = self.chance.sample(axes, len(axes))
            lines.append(f"order = ({', '.join(order)})" if len(order) > 1 else f"order = {order[0]}")
        if self.likely(0.2) and self.spec.dims:
            axis = self.chance.choice(axes)
            size = self.chance.choice((axis, f"8*{axis}", "3", "*".join(free) or "2"))
            lines.append(f"pad {self.dim()} = {size}")
        for _ in range(self.chance.choice((0, 0, 1, 1, 2))):
            extra.append(self.scope(axes))
        return f"parallel {name} {{\n  " + "\n  ".join(lines + [line for line in extra if line]) + "\n}"

    def dtype(self, kind):
        if kind in ("dispatch", "combine") and self.likely(0.4):
            return "f8(block = 16)"
        if kind == "master" and self.likely(0.3):
            return "none"
        return self.chance.choice(TYPES)

    def tagged_dims(self, tag):
        for body in self.spec.bodies():
            for _, name, dims in self.lets(body):
                for statement in body:
                    if statement[0] == name and "tag" in statement and tag in statement:
                        if dims:
                            return dims
                        return ["B", "S", "H"] if {"B", "S", "H"} <= set(self.spec.dims) else None
        return None

    def zero(self, axes):
        level = self.chance.choice((1, 1, 2, 3, 3, 3)) if self.likely(0.98) else 0
        options = []
        if self.likely(0.4) and level > 1:
            options.append(f"reduce = {self.chance.choice(('microbatch', 'step'))}")
        if level == 3 or self.likely(0.02):
            for option in (f"keep = {self.chance.choice(('false', 'true', 'microbatch', 'step'))}",
                           "root = true",
                           f"prefetch = {self.chance.randint(0, 3)}",
                           f"group = {self.chance.choice(['weight', *sorted(self.spec.loops)])}",
                           f"again = {self.chance.choice(axes)}"):
                if self.likely(0.3):
                    options.append(option)
        elif self.likely(0.2):
            options.append("group = weight")
        over = self.some(axes, 3)
        place = f"({','.join(over)})" if len(over) != 1 else over[0]
        return ", ".join((f"zero {level} @ {place}", *options))

    def stage(self):
        units = [*sorted(self.spec.loops)]
        if {"embed", "head"} <= self.spec.tags and self.likely(0.6):
            units = ["embed", *units, "head"]
        if self.likely(0.1) and self.spec.modules:
            units.append(self.chance.choice(sorted(self.spec.modules)))
        units = units or ["layer"]
        units = units if self.likely(0.8) else self.some(units, 3)
        text = f"stage {units[0]} @ pp" if len(units) == 1 else f"stage ({', '.join(units)}) @ pp"
        if self.likely(0.6):
            text += f", schedule = {self.chance.choice(SCHEDULES)}"
        if self.likely(0.12):
            counts = [str(self.chance.randint(0, 4)) for _ in range(self.chance.randint(1, 4))]
            text += f", counts = [{', '.join(counts)}]"
        return text

    def scope(self, axes):
        lines = []
        if self.likely(0.8):
            shard = self.shards(axes, 3, batch=False)
            if shard:
                lines.append(f"shard {shard}")
        if self.likely(0.2):
            lines.append(self.zero([axis for axis in axes if axis != "pp"] or ["dp"]))
        if self.likely(0.15):
            lines.append(f"recompute = {self.chance.choice(('full', self.selector()))}")
        if self.likely(0.1):
            inner = self.scope(axes)
            if inner:
                lines.append(inner)
        names = {self.selector() for _ in range(self.chance.choice((1, 1, 2)))}
        names = sorted(names)
        selector = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return f"for {selector} {{ {'; '.join(lines)} }}" if lines else None

    def plans(self):
        """The plan that is used. Of another spec, of the spec itself, or new."""
        kind = self.chance.random()
        if kind < 0.1:
            other = self.other_spec()
            if other.plans:
                name = self.chance.choice(sorted(other.plans))
                if name not in self.spec.plans:
                    self.spec.block.append(other.plans[name])
                    self.spec.plans[name] = other.plans[name]
                return name
        if kind < 0.3 and self.spec.plans:
            name = self.chance.choice(sorted(self.spec.plans))
            if self.likely(0.5):
                self.change_plan(self.spec.plans[name][-1])
            return name
        statement = self.words(self.plan_text("bred"))
        self.spec.block.append(statement)
        self.spec.plans["bred"] = statement
        return "bred"

    def change_plan(self, body):
        """One line more, one less, or the lines of another plan."""
        axes = [word for line in body if line[0] == "mesh" for word in line if word in AXES] or ["dp"]
        free = [axis for axis in axes if axis != "pp"] or ["dp"]
        how = self.chance.random()
        if how < 0.2:
            del body[self.chance.randrange(len(body))]
        elif how < 0.5:
            body[:] = [line for line in body if line[0] != "zero"]
            body.append(self.words(self.zero(free)))
        elif how < 0.7:
            text = self.scope(axes)
            if text:
                body.append(self.words(text))
        elif how < 0.85:
            made = self.words(self.plan_text("made"))[-1]
            body += [line for line in made[1:] if self.likely(0.5) and
                     line[0] not in [old[0] for old in body]]
        else:
            body.append(self.words(f"recompute = {self.again_of()}"))

    # ---- values ----

    def values(self):
        plan = self.spec.plans.get(self.plan_name)
        words = list(flat(plan)) if plan else []
        self.staged = "stage" in words
        mesh = []
        if "mesh" in words:
            at = words.index("mesh")
            mesh = split(words[at + 2:words.index("]", at)])
        axes = [part[0] for part in mesh if len(part) == 1]
        # names of products of axes, that sizes of axes are worked out from
        axes += sorted({word for part in mesh for word in part[2:] if NAME.match(word)}
                       - {*axes, *self.spec.params, "min", "max"})
        self.axes = axes
        self.literal = {part[0]: part[2] for part in mesh if len(part) == 3 and part[2].isdigit()}
        small = self.likely(0.1)
        self.sets = {}
        for name in self.spec.params:
            if name in self.base_sizes:
                self.sets[name] = self.base_sizes[name]
            elif name in shipped.SMALL:
                self.sets[name] = shipped.SMALL[name]
            elif self.likely(0.97):
                self.sets[name] = self.chance.choice((1, 2, 4, 8, 12, 24))
        for axis in axes:
            self.sets[axis] = self.chance.choice((1, 2, 2, 2, 3, 4))
        if "batch" in self.sets:
            self.sets["batch"] = self.chance.choice((24, 48, 144, 16, 12))
        if "micro" in self.spec.params:
            self.sets["micro"] = self.chance.choice((1, 1, 2, 2, 3, 4, 6))
        for name in ("layers", "enc_layers", "dec_layers"):
            if name in self.sets:
                self.sets[name] = self.chance.choice((1, 2, 3, 4, 6, 8))
        for name in list(self.sets):
            if name in axes or name in ("micro",):
                continue
            if name == "past" and self.run is None:
                self.sets[name] = 0
            if small and self.likely(0.1):
                self.sets[name] = self.chance.choice((1, 2, 3, 5, 7, 9, 13))
            if self.likely(0.004):
                self.sets[name] = self.chance.choice(ODD)
            elif self.likely(0.01):
                del self.sets[name]

    def text(self):
        return "etch 1\n" + write(self.spec.block) + "\n"
