"""A right call of every op, and arguments of all kinds to put in the place of each of its own.

What an argument may be is said here by the kinds of docs/language.md alone: a tensor where the op takes one,
names of dims after `over`, a number after `window`. Whether a number or a tensor fits is the op's to say."""

import collections

# What a spec around a call declares: something of every kind that a name can stand for.
SPEC = """etch 1
param batch = 2, four = 4, flag = 1, unused_rate = 2
dim B = batch, S = 16, H = 8, F = 4, R = 4, V = 32, E = 8, Q = 2, C = 8, A = 4, K = 2, D = 8
dim J = H + F, T = 16, M = 8, L = 3, P = 4, N = 4, W = 4, O = 1, U ~ 9/2
module helper(x[B,S,H]) -> y[B,S,H] {{ y = relu(x) }}
config chosen {{ batch = 2 }}
parallel divided {{ mesh [axis_a = 2]; shard B @ axis_a }}
model m({inputs}, from[B]) -> done[B] {{
  weight w0[H,F]
  repeat 2 as turn {{{before}
    {statement}
  }}
  done = relu(from)
}}

"""

Op = collections.namedtuple("Op", "inputs result arguments before")
Argument = collections.namedtuple("Argument", "name takes text")  # `name`: None where it stands by position


def op(inputs, result, *arguments, before=""):
    """`arguments`: "kind: text" by position or "name kind: text"; the kinds are those of `accepts`. `before`:
    a statement that makes an operand which cannot be an input."""
    found = []
    for argument in arguments:
        said, text = argument.split(": ", 1)
        *name, kind = said.split()
        found.append(Argument(name[0] if name else None, kind, text))
    return Op(inputs, result, found, before and f"\n    {before}")


X = "x[B,S,H]"
FUNCTIONS = ("relu", "sigmoid", "silu", "gelu", "tanh", "exp", "softplus", "log", "sqrt", "rsqrt", "square",
             "abs",
             "reciprocal", "identity", "stop_gradient", "transpose")
ROUTED = "x[B,S,H], p[B,S,E], idx[B,S,Q]: i32"

OPS = {
    **{name: op(X, "y[B,S,H]", "tensor: x") for name in FUNCTIONS},
    **{name: op(X, "y[B,S]", "tensor: x", "over dims: H") for name in ("sum", "mean", "max")},
    "scale": op(X, "y", "tensor: x", "number: 2"),
    "softcap": op(X, "y", "tensor: x", "number: 2"),
    "dropout": op(X, "y", "tensor: x", "number: 1/10"),
    "cast": op(X, "y", "tensor: x", "dtype: f8"),
    "rope": op(X, "y", "tensor: x", "over dims: H"),
    "normalize": op(X, "y", "tensor: x", "over dims: H"),
    "rms_norm": op(X + ", g[H]", "y", "tensor: x", "optional: g", "over dims: H"),
    "layer_norm": op(X + ", g[H], b[H]", "y", "tensor: x", "optional: g", "optional: b", "over dims: H"),
    "batch_norm": op(X + ", g[H], b[H]", "y", "tensor: x", "optional: g", "optional: b", "keep dims: H",
                     "sync flag: false"),
    "cache": op(X, "y[B,T,H]", "tensor: x", "over dim: S", "window number: 4"),
    "slice": op(X, "y[B,S,F]", "tensor: x", "over dim: H", "to dim: F"),
    "pad": op(X, "y[B,S,V]", "tensor: x", "over dim: H", "to dim: V"),
    "concat": op(X + ", z[B,S,F]", "y[B,S,J]", "tensor: x", "tensor: z", "over each: (H,F)"),
    "split": op(X, "(y[B,S,F], z[B,S,R])", "tensor: x", "over dim: H"),
    "conv": op(X + ", k[L,H,F]", "y[B,M,F]", "tensor: x", "tensor: k", "over dims: S", "kernel dims: L",
               "stride number: 2", "causal flag: true"),
    "max_pool": op(X, "y[B,M,H]", "tensor: x", "over dims: S", "size number: 3", "stride number: 2"),
    "avg_pool": op(X, "y[B,M,H]", "tensor: x", "over dims: S", "size number: 3", "stride number: 2"),
    "softmax": op("q[A,S,D]", "y", "tensor: x", "over dims: S'", "causal flag: true", "window number: 4",
                  before="x[A,S,S'] = q * q[S->S']"),
    "sdpa": op("q[B,S,A,D], v[B,S',A,D], s[A], n[A,S,S']", "y[B,S,A,D]", "tensor: q", "tensor: k",
               "tensor: v",
               "over dims: S'", "dot dims: D", "causal flag: true", "window number: 4", "cap number: 4",
               "pairs number: 40", "sink optional: s", "bias optional: n", before="k = q[S->S']"),
    "ssd": op("u[B,S,A,P], dt[B,S,A], a[A], b[B,S,N], c[B,S,N]", "y", "tensor: u", "tensor: dt", "tensor: a",
              "tensor: b", "tensor: c", "over dim: S", "state dims: N", "chunk number: 4"),
    "scan": op("a[B,S], b[B,S,H]", "y[B,S,H]", "tensor: a", "tensor: b", "over dim: S"),
    "iota": op(X, "y[S]: i32", "dim: S"),
    "scatter": op("r[B,S,H], ids[B,S]: i32", "y[V,H]", "tensor: r", "tensor: ids", "over dim: V"),
    "gather": op("t[V,H], ids[B,S]: i32", "y[B,S,H]", "tensor: t", "tensor: ids", "over dim: V"),
    "cross_entropy": op("x[B,S,V], ids[B,S]: i32", "y[]", "tensor: x", "tensor: ids", "over dims: V"),
    "token_nll": op("x[B,S,V], ids[B,S]: i32", "y[B,S]", "tensor: x", "tensor: ids", "over dims: V"),
    "bce": op("x[B,S], l[B,S]", "y[]", "tensor: x", "tensor: l"),
    "kl": op("x[B,S], r[B,S]", "y[B,S]", "tensor: x", "tensor: r"),
    "clipped": op("x[B,S], g[B,S]", "y[B,S]", "tensor: x", "tensor: g", "number: 1/5"),
    "topk": op("p[B,S,E]", "y[B,S,Q]: i32", "tensor: p", "over dim: E", "groups number: 4", "keep number: 2"),
    "dispatch": op(ROUTED, "y[E,C,H]", "tensor: x", "tensor: idx", "over dims: (B,S)", "slots dim: C",
                   "limit number: 2"),
    "collect": op("e[E,C,H], idx[B,S,Q]: i32", "y[B,S,Q,H]", "tensor: e", "tensor: idx", "over dims: (E,C)"),
    "load_balance": op(ROUTED, "y[]", "tensor: p", "tensor: idx", "over dim: E"),
}

# Kind of what is given -> texts. Those of a number are all 4, or say by themselves that they are another.
GIVEN = {
    "number": ["four", "W", "max(3, 4)", "8 - 4", "R", "2*2", "4.0"],
    "other number": ["2", "-1", "0", "1/3", "0.5", "-four", "four/3", "U", "O", "unused_rate", "2^70"],
    "dim": ["W", "H", "S'", "V", "E", "U", "P"],
    "unknown": ["nowhere", "nowhere'"],
    "none": ["none"],
    "truth": ["true", "false"],
    "input": ["x"],
    "tensor": ["w0", "x + x", "w0[H->D]", "relu(w0)", "w0 * 2"],
    "module": ["helper"],
    "op": ["gelu"],
    "model": ["m"],
    "config": ["chosen"],
    "plan": ["divided"],
    
    "axis": ["axis_a"],
    "index": ["turn"],
    "text": ['"four"'],
    "dims": ["(H,F)", "(W,H)", "(S,E)", "(B,S)"],
    "same dims": ["(H,H)", "(S,H,S)", "(E,E)", "(D,D)", "(V,V)"],
    "numbers": ["(1,2)", "(four,four)"],
    "list": ["[4]", "[H]", "[1, 2]", "[]"],
    "comparison": ["four == 4", "1 < 2", "four | H"],
    "dtype": ["f32", "bf16"],
    "integer dtype": ["i32"],
}

# What may be meant by an argument of a kind; anything else has to be refused.
accepts = {
    "number": {"number", "other number", "none"},
    "flag": {"truth", "none"},
    "dims": {"dim", "dims"},
    "dim": {"dim"},
    "each": {"dim", "dims", "same dims"},
    "dtype": {"dtype"},
    "tensor": {"input", "tensor"},
    "optional": {"input", "tensor", "none"},
}
# What a number may be, where not every number may: whole from 1 on (0 leaves the option out), or within
# bounds.
WHOLE = {"window", "stride", "size", "chunk", "groups", "keep", "limit", "pairs"}
WITHOUT_MEANING = {
    (None, "softcap"): {"-1", "0", "-four"},
    (None, "dropout"): {"-1", "2", "-four", "four/3", "U", "unused_rate", "2^70", "four", "W", "max(3, 4)",
                        "8 - 4", "R",
                        "2*2", "4.0", "H", "S'", "V", "E", "P"},
    (None, "clipped"): {"-1", "-four"},
    ("cap", "sdpa"): {"-1", "-four"},
}
# Both sides of a kind: the same text can be read as either.
BOTH = {"W": ("number", "dim"), "R": ("number", "dim"), "U": ("other number", "dim"),
        "O": ("other number", "dim")}


def is_open(text):
    """Does it speak of a param, whose value is not known before it is asked for?"""
    return "four" in text or text == "unused_rate"


def may_be_taken(name, argument, kind, text):
    kinds = BOTH.get(text, (kind,))
    if argument.takes == "number" and argument.name in WHOLE and text in ("-1", "1/3", "0.5", "-four",
                                                                          "four/3", "U"):
        return False
    if text in WITHOUT_MEANING.get((argument.name, name), ()):
        return False
    if argument.takes == "flag" and text in ("0", "O", "flag"):
        return True  # 1 and 0 say true and false
    if argument.takes == "number" and kind == "dim":
        return True  # its size
    return any(kind in accepts[argument.takes] for kind in kinds)


def call(name, arguments):
    return f"{name}({', '.join(text if key is None else f'{key} = {text}' for key, text in arguments)})"


def spec_of(name, arguments):
    """The text of a spec with this call, and the number of its line."""
    this = OPS[name]
    text = SPEC.format(inputs=this.inputs, before=this.before,
                       statement=f"{this.result} = {call(name, arguments)}")
    line = next(i for i, line in enumerate(text.split("\n"), 1) if line.endswith(call(name, arguments)))
    return text, line


def right(name):
    return [(argument.name, argument.text) for argument in OPS[name].arguments]


def wrong_calls():
    """(op, arguments, index of the argument that was replaced, its kind, its text), in a fixed order."""
    for name, this in OPS.items():
        for index, argument in enumerate(this.arguments):
            for kind, texts in GIVEN.items():
                for text in texts:
                    arguments = right(name)
                    arguments[index] = (argument.name, text)
                    yield name, arguments, index, kind, text
