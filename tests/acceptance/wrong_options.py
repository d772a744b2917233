"""Options of plans and runs that are right, and texts of all kinds to put in the place of each of their
values."""

import collections
import re

# A slot is «kind|text»: what it takes, and what stands there in the spec that is right. W and O are dims that
# no tensor has.
SPEC = """etch 1
param batch = 16, four = 4, one = 1, layers = 4, micro = 2
dim B = batch, S = 16, H = 8, F = 16, K = 4, D = 2, V = 32, W = 4, O = 1
module mlp(x[B,S,H]) -> y[B,S,H] {
  weight up[H,F], down[F,H]
  h[B,S,F] = x * up      tag hidden
  y        = gelu(h) * down
}
model m(ids[B,S]: i32, labels[B,S]: i32) -> loss[] {
  weight table[V,H], head[H,V]
  x[B,S,H] = gather(table, ids, over = V)      tag embed, residual
  repeat layers as layer {
    x = x + mlp(x)                             tag residual
  }
  z[B,S,V] = x * head                          tag last
  loss     = cross_entropy(z, labels, over = V)   tag loss
}
config chosen { batch = 32 }
train fit {
  model = «model|m»
  optimizer = «optimizer|adamw»(master = «flag|true»)
  accumulate = («dim|B», «count|micro»)
  recompute = «selector|layer»
  clip = «number|1.0»
  freeze = «selector|embed»
  four = «param|4»
}
train slow { model = m, optimizer = sgd(momentum = «rate|0.9») }
infer served { model = m, output = «output|z», accumulate = (B, «count|1»), steps = «count|2» }
parallel p {
  mesh  [dp = «count|2», tp = «count|2», pp = «count|2»]
  axis  both = («axis|dp»,«axis|tp»)
  shard «sharded|B» @ «axis|dp», «sharded|F» @ «axis|tp»
  pin   «tagged|residual» [«pinned|B»@«axis|dp», S, H]
  zero  «level|1» @ «axis|dp»
  pad   «sharded|V» = «count|8»
  stage («unit|embed», «unit|layer», «unit|last») @ «axis|pp», schedule = «schedule|one_f_one_b»
  bucket = «bucket|1024»
  reduce = «reduce|end»
  recompute = «selector|layer»
  dtype grads_comm = «dtype|bf16»
  balance = «truth|false»
  ranks = «count|8»
  order = «order|(pp,dp,tp)»
  offload «offload|optimizer» @ host, ahead = «prefetch|1»
  for «selector|mlp» { shard «sharded|H» @ () }
}
parallel full {
  mesh  [dp = 2, pp = 2]
  shard B @ dp
  zero 3 @ dp, keep=«keep|microbatch»,prefetch=«prefetch|1»,reduce=«zero_reduce|microbatch»,group=«loop|layer»
  stage (embed, layer, last) @ pp, schedule = interleaved(virtual = «count|2»)
  keep = «gathers|gathers»
}
parallel counted {
  mesh  [pp = 2]
  stage (embed, layer, last) @ pp, counts = [«unit_count|3», «unit_count|3»]
}
"""
RUNS = ("fit", "slow", "served")
PLANS = ("p", "full", "counted")

# Kind of what is given -> texts.
GIVEN = {
    "number": ["2", "four", "1", "4", "max(1, 2)", "four/2", "2*one", "W", "O"],
    "odd number": ["-1", "0", "1/3", "0.5", "-four", "2^70", "four/3", "10^40"],
    "dim": ["B", "S", "H", "F", "K", "V", "F'"],
    "unknown": ["nowhere", "nowhere'", "nowhere.x"],
    "truth": ["true", "false"],
    "none": ["none", "full", "needed"],
    "call": ["needed(mlp)", "adamw(master = true)", "interleaved(virtual = 2)", "gelu(4)", "range(1, 4)"],
    "tag": ["embed", "residual", "hidden", "last", "loss"],
    "loop": ["layer"],
    "module": ["mlp"],
    "tensor": ["z", "mlp.up", "mlp.h", "x"],
    "path": ["m.mlp", "mlp.mlp"],
    "optimizer": ["adamw", "sgd"],
    "op": ["gelu"],
    "model": ["m"],
    "config": ["chosen"],
    "plan": ["p"],
    "run": ["fit", "served"],
    "axis": ["dp", "tp", "pp", "both"],
    "schedule": ["gpipe", "one_f_one_b"],
    "choice": ["layer", "step", "end", "microbatch", "gathers", "optimizer", "master", "moments",
               "activations", "grads"],
    "text": ['"dp"', '"2"'],
    "tuple": ["(dp,tp)", "(B,S)", "(1,2)", "(layer,embed)", "()", "(dp,dp)", "(pp,tp,dp)", "(tp,dp)"],
    "list": ["[2]", "[dp]", "[]", "[1,2]"],
    "comparison": ["1 < 2", "four == 4", "2 | four"],
    "dtype": ["f32", "bf16", "f8"],
    "integer dtype": ["i32"],
    "renaming": ["x[B->S]"],
}

NUMBERS = {"number", "odd number", "dim", "axis"}  # a dim and an axis are their sizes
SELECTORS = {"tag", "loop", "module", "model", "tensor", "path", "tuple", "choice"}
AXES = {"axis", "tuple"}
accepts = {
    "model": {"model"},
    "optimizer": {"optimizer"},
    "flag": {"truth", "number", "odd number"},
    "truth": {"truth"},
    "dim": {"dim"},
    "count": NUMBERS,
    "param": NUMBERS | {"truth"},
    "unit_count": NUMBERS,
    "number": NUMBERS | {"none"},
    "rate": NUMBERS | {"truth"},
    "selector": SELECTORS | {"none", "call"},
    "output": {"tensor", "tuple", "tag", "loop"},
    "axis": AXES,
    "sharded": {"dim"},
    "tagged": SELECTORS,
    "pinned": {"dim"},
    "level": {"number"},
    "unit": {"tag", "loop", "module", "choice"},
    "schedule": {"schedule", "call"},
    "bucket": NUMBERS | {"choice", "loop"},
    "reduce": {"choice", "loop"},
    "dtype": {"dtype"},
    "order": AXES,
    "offload": {"choice", "none", "tuple"},
    "keep": {"choice", "truth"},
    "prefetch": NUMBERS,
    "zero_reduce": {"choice"},
    "loop": {"loop", "tuple", "choice"},
    "gathers": {"choice", "none"},
}

Slot = collections.namedtuple("Slot", "kind text start end")
SLOT = re.compile(r"«(\w+)\|([^»]*)»")


def plain(text):
    return SLOT.sub(lambda match: match[2], text)


def slots():
    return [Slot(match[1], match[2], match.start(), match.end()) for match in SLOT.finditer(SPEC)]


def wrong_options():
    """(slot, line, kind, text, spec), in a fixed order."""
    for slot in slots():
        line = SPEC.count("\n", 0, slot.start) + 1
        for kind, texts in GIVEN.items():
            for text in texts:
                yield slot, line, kind, text, plain(SPEC[:slot.start]) + text + plain(SPEC[slot.end:])
