"""Random plans for the shipped models: data parallelism in one axis or split, stages, sequences, heads and
experts over meshes of up to five axes in any order, with pins, scopes, divided states, recomputation,
schedules, dtypes, other orders of ranks. The same plan can be written without the axes that have one rank."""

import math
import random
import re

from etchtest import MODELS
from pipeline import SCHEDULES, chunks_of, partition


class Family:
    """What plans can say of some models. `heads`, `inner`: dims that tp divides; `sequences`: tag -> its dim;
    `units`: of stages; `again`: what can be run again; `core`: a module that has the queries S, and its dim
    of heads; `whole`: models that need sequences as a whole, or, but for the last, parts that are not
    balanced."""

    def __init__(self, models, heads, sizes, again, inner=("F",), sequences=None,
                 units=("embed", "layer", "head"),
                 core=None, experts=False, whole=()):
        self.models, self.heads, self.sizes, self.again, self.inner = models, heads, sizes, again, inner
        self.sequences = sequences or {"residual": "S"}
        self.units, self.core, self.experts, self.whole = units, core, experts, whole
        self.loops = f"({', '.join(unit for unit in units if unit not in ('embed', 'head', 'depth'))})"


DENSE = dict(hidden=64, heads=8, kv_heads=4, head_dim=8, ffn=64, vocab=64, window=8)
SPARSE = dict(DENSE, ffn=1, experts=8, topk=2, expert_ffn=32)
GPT = dict(hidden=64, heads=8, vocab=64, positions=64)
DEEPSEEK = dict(hidden=64, heads=8, q_rank=24, kv_rank=16, nope=8, rope_dim=8, v_dim=8, ffn=64, experts=8,
                topk=2,
                expert_ffn=32, shared=1, dense_layers=1, groups=4, top_groups=2, vocab=64, mtp=1, biased=1)
T5 = dict(hidden=64, heads=8, head_dim=8, ffn=64, vocab=64, buckets=8)
MAMBA = dict(hidden=64, vocab=64, inner=128, head_dim=8, groups=4, state=16, conv=4, chunk=8)
FAMILIES = (
    Family(("llama", "mistral", "qwen2", "qwen3", "olmo2", "llama3_2"), "K", DENSE,
           ("layer", "block", "attention", "mlp", "norm", "core"), core=("core", "K")),
    Family(("gemma", "gemma2"), "K", DENSE, ("layer", "attention", "mlp", "norm"), whole=("gemma2",)),
    Family(("gpt",), "A", GPT, ("layer", "attention", "core", "mlp", "ln"), core=("core", "A")),
    Family(("mixtral", "qwen3_moe", "gpt_oss"), "K", SPARSE,
           ("layer", "moe", "attention", "experts_mlp", "norm"),
           inner=(), experts=True, whole=("gpt_oss",)),
    Family(("deepseek_v3",), "A", DEEPSEEK, ("layer", "mla", "moe", "kv_up", "mlp"), inner=("F", "J"),
           units=("embed", "layer", "head", "depth"), experts=True),
    Family(("t5",), "A", T5, ("enc", "dec", "mlp", "attention", "norm"),
           sequences={"residual": "S", "answer": "U"},
           units=("enc", "dec")),
    Family(("mamba2",), "G", MAMBA, ("layer", "mixer", "norm"), inner=(), whole=("mamba2",)),
)
# Codes of what a plan may be refused for: an axis twice on one tensor, a move that cannot be, no meaning yet,
# a size that is not divided.
REASONS = ("E0401", "E0402", "E0420", "E0523")
# Sizes that may be any multiple of some number; with 1, of what no plan here divides.
VARIED = {"hidden": 16, "ffn": 16, "vocab": 16, "expert_ffn": 16, "q_rank": 1, "kv_rank": 1, "buckets": 1,
          "window": 1}
LEVELS = (1, 1, 2, 3, 3)  # of zero
DTYPES = ("act = f32", "weights = f32", "grads = bf16", "moments = bf16", "master = none",
          "grads_comm = bf16",
          "weights_comm = f8", "dispatch = f8", "combine = f8")
LAYERS = {"t5": ("enc_layers", "dec_layers")}


def text_of(model):
    """The text of a model for a folder of its own."""
    return (MODELS / f"{model}.etch").read_text(encoding="utf-8").replace('import "', f'import "{MODELS}/')


def params_of(model):
    """Names of the params of a model and of what it imports."""
    text = re.sub(r"#.*", "", (MODELS / f"{model}.etch").read_text(encoding="utf-8"))
    found = set()
    for line in re.findall(r"^param (.*)$", text, re.M):
        found |= set(re.findall(r"(?:^|,)\s*([a-z_]\w*)", line))
    for name in re.findall(r'^import "(\w+)\.etch"', text, re.M):
        found |= params_of(name)
    return found


class Plan:
    """A random plan. `mesh`: axis -> ranks, outermost first; `sets`: values of params."""

    def __init__(self, seed):
        self.seed, self.chance = seed, random.Random(f"plan {seed}")
        self.family = self.chance.choice(FAMILIES)
        self.model = self.chance.choice(self.family.models)
        self.axes()
        self.stages()
        self.sizes()
        self.say()

    def likely(self, probability):
        return self.chance.random() < probability

    # ---- the mesh ----

    def axes(self):
        """At most five axes. Those of data and of experts are parts of dp."""
        data = self.chance.choice((["edp" if self.family.experts else "dp"], ["rep", "part"]))
        self.inside = ["ep"] if self.family.experts and self.likely(0.8) else []
        others = self.chance.sample(["pp", "cp", "tp"], self.chance.randint(0, 3))
        # more ranks than heads with keys
        if "tp" in others and self.family.heads == "K" and self.likely(0.3):
            others[others.index("tp"):others.index("tp") + 1] = ["kv", "g"]
        names = (data + self.inside + others)[:5]
        if not self.likely(0.6):
            self.chance.shuffle(names)
        else:
            names.sort(key=["pp", "rep", "part", "dp", "edp", "ep", "cp", "tp", "kv", "g"].index)
        while True:
            mesh = {name: self.chance.choice((1, 2, 2, 2, 4)) for name in names}
            if 2 <= math.prod(mesh.values()) <= 32 and mesh.get("g", 1) <= 2:
                break
        self.mesh = mesh
        self.batch = [axis for axis in ("rep", "part", "dp", "edp", "ep") if axis in mesh]
        self.inside = [axis for axis in self.inside if axis in mesh]
        self.cp = ["cp"] if "cp" in mesh else []
        self.tp = [axis for axis in ("tp", "kv", "g") if axis in mesh]

    def stages(self):
        self.schedule, self.chunks = None, 1
        if "pp" in self.mesh:
            self.schedule = self.chance.choice(SCHEDULES)
            self.chunks = chunks_of(self.schedule)

    def sizes(self):
        chance, mesh = self.chance, self.mesh
        links = mesh.get("pp", 1) * self.chunks
        layers = {name: max(chance.randint(1, 4), links // 2 + 1) if name != "layers"
                  else max(chance.randint(1, 4), links)
                  for name in LAYERS.get(self.model, ("layers",))}
        micro = chance.randint(1, 4)
        if self.chunks > 1:
            micro = mesh["pp"] * chance.randint(1, 2)
        batch = micro * chance.randint(1, 2) * math.prod(mesh[axis] for axis in self.batch)
        sequences = dict(src=64, tgt=32) if self.model == "t5" else dict(seq=chance.choice((32, 64)))
        known = params_of(self.model)
        self.units = sum(layers.values()) + (2 if "head" in self.family.units else 0)
        sizes = {"batch": batch, "micro": micro, **sequences, **layers, **self.family.sizes}
        for name, unit in VARIED.items():
            if name in sizes and sizes[name] > 1:
                sizes[name] = unit * chance.randint(1, 96 // unit)
        if "mtp" in sizes:
            sizes["mtp"] = chance.choice((0, 1))
            self.units += sizes["mtp"]
        sizes["dp"] = math.prod(mesh[axis] for axis in self.batch)  # where models ask that ep divide it
        self.sets = {name: size for name, size in sizes.items() if name in known}

    # ---- lines ----

    def say(self):
        """A line is a function of the axes that are left; it gives its text, or None."""
        chance, family, self.lines = self.chance, self.family, []
        places = {"B": self.batch}
        sequences = list(dict.fromkeys(family.sequences.values()))
        self.balanced = not self.cp or self.model == "mamba2" or self.likely(0.75)
        inner = self.cp and self.likely(0.05 if self.balanced and self.model in family.whole else 0.9)
        for dim in sequences if inner else []:
            places[dim] = self.cp + (self.tp if self.likely(0.15) else [])
        if self.tp and self.likely(0.9):
            for dim in (family.heads, *family.inner, "V"):
                if self.likely(0.9):
                    places[dim] = self.tp
            if "g" in self.tp and family.heads in places:
                places["K"] = [axis for axis in self.tp if axis != "g"]
                places["G"] = ["g"]
        self.lines.append(lambda left: "shard " +
                          ", ".join(self.at(dim, axes, left) for dim, axes in places.items()))
        for tag, dim in family.sequences.items():
            if self.likely(0.5):
                self.pin(tag, dim, places)
        self.zero()
        self.recompute()
        self.scopes(places)
        self.pads(places)
        if not self.balanced:
            self.lines.append(lambda left: "balance = false")
        if self.likely(0.3):
            self.lines.append(lambda left: "reduce = end")
        if self.likely(0.3):
            bucket = chance.choice(("layer", "step", "ddp", f"{chance.randint(100, 40000)}"))
            self.lines.append(lambda left: f"bucket = {bucket}")
        if self.likely(0.3):
            self.lines.append(lambda left: "keep = gathers")
        if self.likely(0.3):
            some = chance.sample(DTYPES if family.experts else DTYPES[:-2], chance.randint(1, 3))
            dtypes = ", ".join(some)
            self.lines.append(lambda left: f"dtype {dtypes}")
        if self.likely(0.2):
            order = chance.sample(list(self.mesh), len(self.mesh))
            self.lines.append(lambda left: f"order = ({', '.join(axis for axis in order if axis in left)})")
        if "pp" in self.mesh:
            self.stage()
        self.clip = self.likely(0.3)
        self.uneven()

    @staticmethod
    def at(dim, axes, left):
        axes = [axis for axis in axes if axis in left]
        return f"{dim} @ {axes[0]}" if len(axes) == 1 else f"{dim} @ ({','.join(axes)})"

    def pin(self, tag, dim, places):
        """Tagged values along the sequence over tp, or as the map has them, or along the width."""
        along = places.get(dim, [])
        kind = self.chance.choice(("sequence", "sequence", "whole", "width"))
        seq = along + [axis for axis in self.tp if axis not in along] if kind == "sequence" else along
        width = self.tp if kind == "width" and not set(self.tp) & set(along) else []
        self.lines.append(lambda left: f"pin {tag} [{self.at('B', self.batch, left)}, "
                                       f"{self.at(dim, seq, left)}, "
                                       f"{self.at('H', width, left)}]")

    def zero(self):
        self.weights_in_parts = False
        if not self.likely(0.6):
            return
        axes = [axis for axis in (*self.batch, *self.cp, *self.tp) if self.likely(0.7)]
        if self.likely(0.3):
            self.chance.shuffle(axes)

        level = self.chance.choice(LEVELS)
        self.weights_in_parts = level > 2
        again = [axis for axis in axes if self.likely(0.6)]
        texts = [f"keep = {self.chance.choice(('false', 'microbatch', 'step'))}",
                 f"prefetch = {self.chance.randint(0, 3)}",
                 "root = true"] if level > 2 else []
        groups = ("weight", self.family.loops) if level > 2 else ("weight", )
        texts += [f"group = {self.chance.choice(groups)}"]
        texts += [f"reduce = {self.chance.choice(('microbatch', 'step'))}"] if level > 1 else []
        texts = [text for text in texts if self.likely(0.4)]
        with_again = level > 2 and self.likely(0.4) and not {"keep = microbatch", "keep = step"} & set(texts)
        # else backward would gather nothing
        with_again = with_again and any(self.mesh[axis] > 1 for axis in again)

        def line(left):
            found, some = ([axis for axis in which if axis in left] for which in (axes, again))
            more = [*texts, f"again = ({', '.join(some)})"] if with_again and some else texts
            return ", ".join((f"zero {level} @ ({','.join(found)})", *more)) if found else None

        self.lines.append(line)

    def recompute(self):
        again = self.chance.sample(self.family.again, self.chance.randint(1, 2))
        both = f"({', '.join(again)})"
        text = self.chance.choice((None, None, None, "full", "needed", "none", again[0], both,
                                   f"needed{both}"))
        self.some_needed = text is not None and text.startswith("needed")
        self.lines.append(lambda left: text and f"recompute = {text}")

    def scopes(self, places):
        """Experts over a part of the ranks, heads over those of the sequence, the MLP as a whole."""
        family, chance = self.family, self.chance
        if family.experts and self.likely(0.9):
            over = list(self.inside)
            for axis in (*self.cp, *self.tp):
                if self.likely(0.3):
                    over.insert(chance.randint(0, len(over)), axis)
            slots = [axis for axis in self.batch if axis not in over]
            within = self.tp if not set(self.tp) & set(over) and self.likely(0.5) else []
            self.lines.append(lambda left: "for experts_mlp { shard " + ", ".join(
                (self.at("E", over, left), self.at("C", slots, left), self.at("I", within, left))) + " }")
        if family.core and self.cp and self.likely(0.3):
            module, heads = family.core
            sequence = [axis for axis in places.get("S", []) if axis not in self.cp]
            over = [axis for axis in places.get(heads, []) if axis not in sequence] + self.cp
            self.lines.append(lambda left: f"for {module} {{ shard {self.at('S', sequence, left)}, "
                                           f"{self.at(heads, over, left)} }}")
        for _ in range(chance.choice((0, 0, 0, 1, 1, 2))):
            self.part()

    def part(self):
        """A part of the model with a placement of its own: of a module, a loop, a tag, or of a module in one
        of these."""
        chance, family = self.chance, self.family
        names = [*family.again, *family.sequences, *(unit for unit in family.units if unit != "depth")]
        selectors = chance.sample([name for name in names if name != "block"], chance.choice((1, 1, 2)))
        dims = chance.sample(["H", "V", family.heads, *family.inner], chance.choice((1, 1, 2)))
        axes = [chance.choice(([], self.tp)) for _ in dims]
        alone = len(selectors) == 1 and not self.some_needed
        more = "; recompute = full" if alone and self.likely(0.2) else ""

        def line(left):
            text = "shard " + ", ".join(self.at(dim, over, left) for dim, over in zip(dims, axes))
            for selector in selectors:
                text = f"for {selector} {{ {text}{more} }}"
            return text

        self.lines.append(line)

    def pads(self, places):
        """Sizes that their axes need not divide."""
        for dim, param in (("V", "vocab"), ("F", "ffn")):
            if places.get(dim) and self.sets.get(param, 1) > 1 and self.likely(0.2):
                self.sets[param] += self.chance.randint(1, 15)
                unit, axes = self.chance.choice((1, 3, 8, 16)), places[dim]
                self.lines.append(lambda left, dim=dim, unit=unit, axes=axes: (
                    f"pad {dim} = {'*'.join([str(unit), *(axis for axis in axes if axis in left)])}"))

    def uneven(self):
        """Sequences and batches that no axis divides; nothing is routed along them, or scanned."""
        if self.family.experts or self.model == "mamba2":
            return
        for dim, param in (("S", "src" if "src" in self.sets else "seq"), ("U", "tgt")):
            if param in self.sets and self.likely(0.15):
                self.sets[param] -= self.chance.randint(1, self.sets[param] // 2)
                self.lines.append(lambda left, dim=dim: f"pad {dim} = " + "*".join(
                    ["2", *(axis for axis in (*self.cp, *self.tp) if axis in left)]))
        if self.likely(0.15):
            self.sets["batch"] += self.chance.randint(1, 3) * self.sets["micro"]
            self.lines.append(lambda left: "pad B = " + "*".join(
                ["1", *(axis for axis in self.batch if axis in left)]))

    def stage(self):
        units = list(self.family.units)
        if "head" in units and not self.sets.get("mtp", 0):
            units = [unit for unit in units if unit != "depth"]
        links = self.mesh["pp"] * self.chunks
        counts = f", counts = {partition(self.units, links, self.chance)}" if self.likely(0.3) else ""
        line = f"stage ({', '.join(units)}) @ pp, schedule = {self.schedule}{counts}"
        self.lines.append(lambda left: line if "pp" in left else None)

    # ---- texts ----

    def body(self, left):
        lines = [f"mesh [{', '.join(axis for axis in self.mesh if axis in left)}]"]
        lines += [text for text in (line(left) for line in self.lines) if text]
        return "parallel random {\n  " + "\n  ".join(lines) + "\n}\n"

    def text(self, left=None):
        """The spec, with the axes of `left` alone."""
        text = text_of(self.model)
        if self.clip:
            text = text.replace("accumulate = (B, micro)", "accumulate = (B, micro), clip = 1.0")
        return text + self.body(self.mesh if left is None else left)

    def bound(self, left=None):
        """Values of params and axes."""
        return {**self.sets,
                **{axis: size for axis, size in self.mesh.items() if left is None or axis in left}}
