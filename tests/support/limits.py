"""Inputs at the limits of docs/limits.md: for each limit one just below it, and one just above.

`CASES` is by the name of the constant. An input is a size, from which `files` makes texts by name, and `arguments` what
the program is run with in a folder that holds them. tests/acceptance/test_limits.py asks what comes of them,
bench/limits.py how much time and memory it takes.
"""

import dataclasses
import typing

HEAD = "etch 1\nparam batch, hidden\ndim B = batch, H = hidden\n"
MODEL = HEAD + "{modules}model m(x[B,H]) -> x[B,H] {{\n{body}}}\n"
TRAINED = """etch 1
param batch, hidden, layers = 1, micro = 1
dim B = batch, H = hidden
dtype act = bf16, weights = bf16, grads = f32, optim = f32
model m(x[B,H]) -> l[] {{
  repeat layers as layer {{
    weight w[H,H']
    y[B,H'] = x * w
    x = x + silu(y[H'->H])
  }}
  l[] = mean(x, over = (B,H))  tag loss
}}
train {{ model = m, optimizer = adamw(master = true), accumulate = (B, micro) }}
parallel p {{ mesh {mesh}; shard B @ dp; zero 1 @ dp{more} }}
"""


@dataclasses.dataclass
class Limit:
    below: int
    above: int
    code: str
    files: typing.Callable[[int], dict]
    arguments: typing.Callable[[int], list]
    status: int = 1  # above
    below_status: int = 0
    holds_below: str = ""  # another limit that the input below meets


def spec(make, *arguments):
    arguments = arguments or ("check",)
    return dict(files=lambda size: {"s.etch": make(size)},
                arguments=lambda size: [arguments[0], "s.etch", *arguments[1:]])


def formula(make, variables=1):
    """A query of `make(size)`."""
    def names(size):
        count = variables if isinstance(variables, int) else variables(size)
        return ", ".join(["a", "b", *(f"v{i}" for i in range(count))])
    return dict(files=lambda size: {"s.etch": f"etch 1\nparam {names(size)}\n"},
                arguments=lambda size: ["query", "s.etch", make(size)])


def loops(count):
    return MODEL.format(modules="", body="repeat 2 {\n" * count + "x = silu(x)\n" + "}\n" * count)


def calls(count):
    """Modules of which each calls the one before it."""
    modules = ["module g0(x[B,H]) -> x[B,H] { x = silu(x) }\n"]
    modules += [f"module g{i}(x[B,H]) -> x[B,H] {{ x = g{i - 1}(x) }}\n" for i in range(1, count)]
    return MODEL.format(modules="".join(modules), body=f"x = g{count - 1}(x)\n")


def ops(count):
    return MODEL.format(modules="", body="x = silu(x)\n" * count)


def statements(count):
    """Of conditions that hold nothing."""
    return MODEL.format(modules="", body="if batch >= 1 { }\n" * (count - 1) + "x = silu(x)\n")


def conditions(count):
    """Each stands for one iteration: two breaks, of which neighbours share one."""
    body = "repeat 1000 as i {\n" + "".join(f"if i < {k + 1} {{ x = silu(x) }}\n" for k in range(count)) + "}\n"
    return MODEL.format(modules="", body=body)


def period(count):
    return MODEL.format(modules="", body=f"repeat 1000 as i {{\nif i % {count} == 0 {{ x = silu(x) }}\n}}\n")


def classes(count):
    """Conditions on remainders, of which any one can hold."""
    arms = " else ".join(f"if i % 200 == {k} {{ x = silu(x) }}" for k in range(count - 1))
    return MODEL.format(modules="", body=f"repeat 1000 as i {{\n{arms}\n}}\n")


def dims(count):
    return HEAD + "".join(f"dim D{i} = {f'D{i + 1} + 1' if i < count - 1 else 'batch'}\n" for i in range(count))


def values(count):
    chain = [f"p{i} = p{i + 1} + 1" for i in range(count - 1)] + [f"p{count - 1} = 1"]
    return f"etch 1\nparam {', '.join(f'p{i}' for i in range(count))}\nconfig c {{ {', '.join(chain)} }}\n"


def imports(count):
    """A chain of files."""
    texts = {f"f{i}.etch": f'etch 1\nimport "f{i + 1}.etch"\n' for i in range(1, count)}
    return {"s.etch": 'etch 1\nimport "f1.etch"\nparam a\n', **texts, f"f{count}.etch": "etch 1\nparam b\n"}


def axes(count):
    return TRAINED.format(mesh="[dp, " + ", ".join(f"a{i}" for i in range(count - 1)) + "]", more="")


def trained(mesh="[dp]", more=""):
    return lambda _: TRAINED.format(mesh=mesh, more=more)


def lowered(**sets):
    """Lowers without writing, `sets` given by functions of the size."""
    def arguments(size):
        given = {"batch": lambda n: 4, "hidden": lambda n: 4, "dp": lambda n: 1, **sets}
        return ["lower", "s.etch", "-n", "--set", ",".join(f"{name}={of(size)}" for name, of in given.items())]
    return arguments


def fractions(count):
    return "+".join(f"1/(v{i}+a)" for i in range(count))


CASES = {
    "ETCH_AST_DEPTH": Limit(499, 501, "E0901", **spec(lambda n: f"etch 1\nparam a = {'(' * n}1{')' * n}\n")),
    "ETCH_NAME_LIMIT": Limit(200, 201, "E0123", **spec(lambda n: f"etch 1\nparam {'a' * n}\n")),
    "ETCH_FILE_LIMIT": Limit(64 * 1024 * 1024, 64 * 1024 * 1024 + 1, "E0203", status=3,
                             **spec(lambda n: "etch 1\nparam a\n" + "#" * (n - 16) + "\n")),
    "ETCH_IMPORT_DEPTH": Limit(64, 65, "E0902", files=imports, arguments=lambda _: ["check", "s.etch"]),
    "ETCH_CALL_DEPTH": Limit(64, 65, "E0243", **spec(calls)),
    "ETCH_LOOPS_NESTED": Limit(400, 401, "E0913", **spec(loops, "query", "flops(forward)")),
    "ETCH_MODEL_OPS": Limit(50000, 50001, "E0920", **spec(ops, "query", "flops(forward)")),
    "ETCH_MODEL_STATEMENTS": Limit(400000, 400001, "E0920", **spec(statements)),
    "MOST_BREAKS": Limit(30, 31, "E0250", **spec(conditions)),
    "MOST_PERIOD": Limit(256, 257, "E0250", **spec(period)),
    "MOST_CLASSES": Limit(64, 65, "E0250", **spec(classes)),
    "ETCH_DIM_DEPTH": Limit(200, 201, "E0901", **spec(dims)),
    "ETCH_VALUE_DEPTH": Limit(200, 201, "E0901", **spec(values, "query", "p0", "--config", "c")),
    "ETCH_MAX_AXES": Limit(16, 17, "E0422", **spec(axes)),
    "terms": Limit(17, 18, "E0904", status=4, **formula(fractions, lambda n: n)),
    "exponent": Limit(1000000, 1000001, "E0904", status=4, **formula(lambda n: f"a^{n}")),
    "digits": Limit(99999, 102000, "E0904", status=4, **formula(lambda n: f"(10^{n // 2})*(10^{n - n // 2})*7/(a+b)")),
    "depth": Limit(100, 101, "E0904", status=4,
                   files=lambda n: {"s.etch": "etch 1\nparam a\ndim E0 = a\n" + "".join(
                       f"dim E{i + 1} = (E{i} + 1)//2*a\n" for i in range(n))},
                   arguments=lambda n: ["query", "s.etch", f"E{n}"]),
    "ETCH_REQUEST_OPERATIONS": Limit(80, 160, "E0904", status=4,
                        **formula(lambda n: "+".join(f"1/(a+{i + 1})" for i in range(n)))),
    "MOST_LISTED": Limit(100, 300, "E0904", status=4, **formula(lambda n: f"({'+'.join(f'v{i}' for i in range(n))})^3",
                                                               lambda n: n)),
    "ETCH_LOOP_DEPTH": Limit(64, 65, "E0913", status=4,
                             files=lambda n: {"s.etch": loops(n).replace("repeat 2", "repeat 1") +
                                              "parallel p { mesh [dp]; shard B @ dp }\n"},
                             arguments=lowered()),
    "ETCH_MAX_RANKS": Limit(2**20, 2**20 + 1, "E0910", status=4, **dict(
        spec(trained()), arguments=lowered(dp=lambda n: n, batch=lambda n: n))),
}


def chain(step):
    """Sizes of dims, each made from the one before it: `@`."""
    def make(size):
        lines = [f"dim E{i + 1} = {step.replace('@', f'E{i}').replace('#', f'v{i}')}\n" for i in range(size)]
        return "dim E0 = a\n" + "".join(lines), f"E{size}"
    return make


def joined(operator, part):
    return lambda size: ("", operator.join(part.format(i=i, k=(i + 1) % size, n=i + 1) for i in range(size)))


# By name, from a size: definitions, and an expression in a, b, v0, v1 ...
EXPRESSIONS = {
    "sum of fractions": joined("+", "1/(v{i}+a)"),
    "sum of squared fractions": joined("+", "1/(v{i}+a)^2"),
    "sum of fractions of one variable": joined("+", "1/(a+{n})"),
    "sum of fractions of pairs": joined("+", "1/(v{i}*v{k}+a)"),
    "product of sums": joined("*", "(v{i}+a+b)"),
    "product of maxima": joined("*", "max(v{i},a)"),
    "product of distances": joined("*", "abs(v{i}-v{k})"),
    "product of floors": joined("*", "(1+floor(a/(v{i}+1)))"),
    "power of a sum": lambda n: ("", f"(a+b+v0+v1)^{n}"),
    "reciprocal of a power": lambda n: ("", f"(a+b+v0)^-{n}"),
    "power of fractions": lambda n: ("", f"(1/(a+b)+1/(v0+v1))^{n}"),
    "quotient of powers": lambda n: ("", f"((a+b)^{n}-(a-b)^{n})/((a+b)^{n}+(a-b)^{n})"),
    "greatest of products": lambda n: ("", f"max({','.join(f'v{i}*v{(i * 7 + 3) % n}' for i in range(n))})"),
    "greatest of fractions": lambda n: ("", f"max({','.join(f'1/(v{i}+a)' for i in range(n))})"),
    "maxima inside maxima": chain("max(@+#,@-#)"),
    "floors inside floors": chain("floor(@/#)+1"),
    "remainders of remainders": chain("(@*#+1)%(#+2)"),
    "fractions inside fractions": chain("1/(#+@)"),
}
