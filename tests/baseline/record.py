#!/usr/bin/env python3
"""Records a baseline: what the program says about every shipped model under every plan, and under the plans
of specs/, as commands and answers (baseline.py).

    record.py [--etch PROGRAM] [--match REGEX] [--jobs N] -o FILE

The program is $ETCH if it is not named. `--match` keeps the commands that a regular expression is found
in."""

import argparse
import concurrent.futures
import functools
import itertools
import json
import os
import re
import shlex
import subprocess
import sys

import baseline

SOURCE = baseline.SOURCE
SPECS = SOURCE / "tests" / "baseline" / "specs"

# Two sets of sizes: one that everything divides evenly, and one whose layers, microbatches and widths leave
# something over, on more ranks. Those of test_shipped.SMALL hold where nothing else is said.
EVEN = dict(batch=32, micro=4, layers=6, enc_layers=4, dec_layers=4)
UNEVEN = dict(batch=96, micro=12, seq=96, src=96, tgt=48, layers=11, enc_layers=5, dec_layers=6,
              dense_layers=2,
              hidden=72, ffn=104, vocab=136, positions=128, topk=3, expert_ffn=40, q_rank=20, kv_rank=12,
              window=24,
              inner=160, state=24, pp=4, dp=4, tp=4, ep=2, cp=2, rep=2, part=4, context=20, new=12)
# The least of everything, with axes of 1.
LEAST = dict(batch=4, micro=1, layers=1, enc_layers=1, dec_layers=1, dense_layers=1, mtp=0)
# What a small model keeps of a config: a switch, or a size that changes what is built.
SWITCHES = ("tied", "biased", "mtp", "q_rank", "shared", "ffn")
# Values that formulas of pipelines depend on; with these bound a stage has a number, and the rest is open.
PIPELINE = ("pp", "micro", "layers", "enc_layers", "dec_layers", "dense_layers", "mtp")
# Models that stand for others of the same form, which are asked less of.
LIGHT = ("mistral", "qwen2", "qwen3", "olmo2", "llama3_2", "qwen3_moe", "gemma")
# Models whose formulas of memory take long to find, above all with the plans of specs/.
SLOW = ("deepseek_v3", "more_t5", "more_gpt_oss", "more_mixtral")
# Whole jobs, as test_examples.py has them.
JOBS = (("llama", "llama3_405b", "megatron_pp", "dp=64,pp=16,tp=8,seq=8192,batch=2048,micro=32"),
        ("llama", "llama3_405b", "megatron_pp", "dp=128,pp=16,tp=8,seq=8192,batch=2048,micro=16"),
        ("llama", "llama3_405b", "long_context_pp", "dp=8,pp=16,cp=16,tp=8,seq=131072,batch=128,micro=16"),
        ("deepseek_v3", "v3", "expert_pp", "pp=16,dp=128,ep=64,seq=4096,batch=15360,micro=120"),
        ("mixtral", "mixtral_8x22b", "moe_pp", "pp=8,dp=64,ep=8,tp=4,seq=4096,batch=512,micro=8"))
TERMS = ("rank_flops", "traffic", "comm")  # quantities whose formulas are taken apart in every way
OF_RANK = ("rank_", "traffic", "reads", "writes", "comm", "wire", "memory")


# ---- what the program has ----------------------------------------------------------------------------------


class Program:
    """What can be asked for, as the program itself says, so that nothing new is forgotten."""

    def __init__(self, path):
        self.path = path
        text = self.help("quantities")
        # Those of a `step` alone, and of many (`..`), are times: they are of a machine, too, and held by
        # tests/simulate.
        self.quantities = [row for row in re.findall(r"^(\w+)\(([^)]*)\) ", text, re.M)
                           if row[1] not in ("step", "..")]
        self.classes = [part for name, part in self.quantities if name == "memory" and part != "C"]
        phases, halves = re.search(r"^P is (.*?):.*?; (.*?) are the parts", text, re.M | re.S).groups()
        self.phases = [word for word in re.findall(r"[a-z]+", re.sub(r"\(.*?\)", "", f"{phases}, {halves}"))
                       if word not in ("or", "and")]
        ways = re.search(r"--by WHAT +a table by ([\w,\s]+?)\n +--", self.help("query"))[1]
        self.by = ways.replace(",", " ").split()
        self.counts = self.convention(self.help("counts"))
        self.check()

    def help(self, topic):
        return subprocess.run([self.path, "help", topic], capture_output=True, text=True, check=True).stdout

    @staticmethod
    def convention(text):
        items = re.findall(r"^  (\w+)=(\w+(?:\|\w+)+)", text, re.M)
        presets = re.findall(r"^(\w+)\n  values", text, re.M)
        return presets + [f"{name}={value}" for name, values in items for value in values.split("|")[1:]]

    def check(self):
        strange = {argument for name, argument in self.quantities if name != "memory"} - {"X", "P", "of=X"}
        if strange:
            raise SystemExit(f"record.py does not know what to ask of quantities with {sorted(strange)}")
        for found in (self.phases, self.classes, self.by, self.counts):
            if len(found) < 5:
                raise SystemExit(f"the help has another form: {found}")

    def answers(self, *arguments):
        done = subprocess.run([self.path, "query", "models/llama.etch", *arguments, "--plan", "megatron_pp",
                               "--stage",
                               "first"], cwd=SOURCE, capture_output=True, check=False)
        return done.returncode == 0

    def of(self, *kinds, rank):
        """Names of the quantities with such an argument, of a rank or of the whole job."""
        return [name for name, argument in dict(reversed(self.quantities)).items()
                if argument in kinds and name.startswith(OF_RANK) == rank]

    @functools.cached_property
    def splits(self):
        """Quantity -> what it can be split by, as the program itself says when it cannot."""
        found = {}
        for name, argument in dict.fromkeys(self.quantities):
            if name in found:
                continue
            asked = f"{name}({dict(P='step', C='peak').get(argument, 'model')})"
            found[name] = [by for by in self.by if self.answers(asked, "--by", by)]
        return found


# ---- commands ----------------------------------------------------------------------------------------------


def command(kind, spec, *rest):
    return shlex.join([kind, str(spec.relative_to(SOURCE)), *(str(part) for part in rest)])


def bound(values):
    return ["--set", ",".join(f"{name}={value}" for name, value in values.items())] if values else []


class Spec:
    def __init__(self, program, path):
        import test_shipped  # of tests/acceptance: which models, plans and runs there are
        self.program, self.path, self.shipped = program, path, test_shipped
        self.own = path.parent == SPECS
        self.text = path.read_text(encoding="utf-8")
        listing = json.loads(subprocess.run([program.path, "check", path, "--format", "json", "-q"],
                                            text=True,
                                            capture_output=True, check=True).stdout)
        self.modules, self.configs = listing["modules"], listing["configs"]
        self.plans = re.findall(r"^parallel (\w+)", self.text, re.M) if self.own else self.plans_of(listing)
        self.runs = [None] if self.own else self.runs_of()
        self.params = test_shipped.params_of(path)
        everything = self.text + "".join(other.read_text(encoding="utf-8") for other in self.imports(path))
        self.loops = re.findall(r"^ *repeat .* as (\w+)", everything, re.M)
        tags = itertools.chain(*(line.split(",") for line in re.findall(r"  tag ([\w, ]+)", everything)))
        self.tags = sorted({tag.strip() for tag in tags} - {"loss"})
        self.light, self.slow = path.stem in LIGHT, path.stem.endswith(SLOW)

    def imports(self, path):
        for name in re.findall(r'^import "([^"]+)"', path.read_text(encoding="utf-8"), re.M):
            if not name.endswith("plans.etch"):
                yield (path.parent / name).resolve()
                yield from self.imports((path.parent / name).resolve())

    def plans_of(self, listing):
        return self.shipped.own_plans(self.path) or listing["plans"]

    def runs_of(self):
        served = re.findall(r"^infer\s+(\w+)", self.text, re.M)
        return served or [None]

    @property
    def selectors(self):
        return list(dict.fromkeys([*self.modules, *self.loops, *self.tags]))

    def values(self, sizes, plan=None):
        """The values of one set of sizes for the params of the spec, and for the axes of a plan."""
        names = self.params | (self.shipped.axes_of(self.path, plan) if plan else set())
        return {name: size for name, size in {**self.shipped.SMALL, **EVEN, **sizes}.items() if name in names}

    def points(self, plan):
        """The values that are bound for a plan, even ones first."""
        if not self.own:
            return [self.values({}, plan), self.values(UNEVEN, plan)]
        sizes = re.search(rf"^# sizes ((?:.*\n#)*.*)\nparallel {plan} ", self.text, re.M)[1]
        return [dict(re.findall(r"(\w+)=(\w+)", sizes))]

    def config(self, name):
        """What a config says, as text."""
        for path in (self.path, *self.imports(self.path)):
            found = re.search(rf"^config {name}\s*\{{(.*?)\}}", path.read_text(encoding="utf-8"), re.M | re.S)
            if found:
                return {key: int(size) for key, size in re.findall(r"(\w+) = (\d+)", found[1])}
        return {}

    def variants(self):
        """Small models with the switches of each config, but for the one that SMALL is."""
        found = []
        for name in self.configs:
            config = self.config(name)
            sizes = {key: config[key] for key in SWITCHES if config.get(key, 2) in (0, 1)}
            heads, shared = config.get("heads", 0), config.get("kv_heads", 0)
            if shared in (1, heads):
                sizes["kv_heads"] = 1 if shared == 1 else self.shipped.SMALL["heads"]
            if sizes not in [{}, *found]:
                found.append(sizes)
        return found

    def commands(self):
        yield command("spec", self.path)
        yield command("check", self.path)
        sizes = {key: size for key,
                 size in self.values({}).items() if key in ("batch", "seq", "src", "tgt", "micro")}
        for name in self.configs if not self.own else ():
            for asked in ("params(model)", "active_params(model)", "flops(step)", "saved(model)"):
                yield command("query", self.path, asked, "--config", name)
                yield command("query", self.path, asked, "--config", name, *bound(sizes))
        for run in self.runs:
            chosen = ["--run", run] if run else []
            if not self.own:
                yield from self.of_model(chosen)
            for plan in self.plans:
                yield from Planned(self, plan, chosen).commands()
            for sizes in self.variants() if not self.own else ():
                yield from self.of_variant(chosen, sizes)

    def of_model(self, chosen):
        """What no plan changes."""
        ask, program = functools.partial(command, "query", self.path), self.program
        for more in ([], ["--defaults"], bound(self.values({}))):
            yield command("show", self.path, *chosen, *more)
        for sizes in ([], bound(self.values({}))):
            for name in program.of("P", rank=False):
                for phase in program.phases if sizes or not self.light else ("step",):
                    yield ask(f"{name}({phase})", *chosen, *sizes)
                for by in program.splits[name]:
                    yield ask(f"{name}(step)", *chosen, *sizes, "--by", by)
                for selector in self.selectors if name == "flops" or not self.light else ():
                    yield ask(f"{name}(step, of = {selector})", *chosen, *sizes)
                    if name == "flops":
                        yield ask(f"{name}(forward, of = {selector})", *chosen, *sizes)
                for count in program.counts:
                    yield ask(f"{name}(step)", *chosen, *sizes, "--count", count)
            for name in program.of("X", "of=X", rank=False):
                for selector in ("model", *self.selectors):
                    text = selector if name != "saved" or selector == "model" else f"of = {selector}"
                    yield ask(f"{name}({text})", *chosen, *sizes)
                for by in program.splits[name]:
                    yield ask(f"{name}(model)", *chosen, *sizes, "--by", by)
            for name in ("flops(step)", "params(model)"):
                yield ask(name, *chosen, *sizes, "--why")
            yield ask("matmul_flops(step)", *chosen, *sizes, "--count", "megatron", "--by", "module")
        for form in ("plain", "dot"):
            yield command("show", self.path, *chosen, "--format", form)
        for form in ("factored", "relative"):
            yield ask("flops(step)", *chosen, "--form", form)
        for form in ("plain", "latex", "c", "python"):
            yield ask("flops(step)", *chosen, "--format", form)

    def of_variant(self, chosen, sizes):
        """A small model of another form, under two plans that it has."""
        for plan in [plan for plan in ("megatron_sp", "megatron_pp", "split") if plan in self.plans]:
            values = self.values({**EVEN, **sizes}, plan)
            more = [*chosen, "--plan", plan, *bound(values)]
            if not Planned(self, plan, chosen).steps:
                yield command("lower", self.path, *more)
            switches = bound({name: sizes[name] for name in sizes if name in SWITCHES})
            for name in ("rank_flops(step)", "traffic(step)", "comm(step)", "memory(peak)",
                         "rank_params(model)"):
                yield command("query", self.path, name, *chosen, "--plan", plan, *switches, "--by", "stage")
                yield command("query", self.path, name, *more, "--by", "module")


class Planned:
    """One plan of a spec, for one run."""

    def __init__(self, spec, plan, chosen):
        self.spec, self.plan, self.program = spec, plan, spec.program
        self.more = [*chosen, "--plan", plan]
        self.steps = bool(chosen) and re.search(rf"^infer {chosen[-1]} .*steps", spec.text, re.M)
        body = self.body(spec.path)
        self.axis = re.search(r"^ *stage .*@ *(\w+)", body, re.M)
        self.stages = ["first", "middle", "last"] if self.axis else [None]

    def body(self, path):
        """The lines of the plan, wherever it stands."""
        text = path.read_text(encoding="utf-8")
        found = re.search(rf"^parallel {self.plan}\s*\{{.*?^\}}", text, re.M | re.S)
        if found:
            return found[0]
        for name in re.findall(r'^import "([^"]+)"', text, re.M):
            text = self.body((path.parent / name).resolve())
            if text:
                return text
        return ""

    def ask(self, text, *more):
        return command("query", self.spec.path, text, *self.more, *more)

    def commands(self):
        points = self.spec.points(self.plan)
        yield command("show", self.spec.path, *self.more)
        yield command("show", self.spec.path, *self.more, *bound(points[0]))
        if self.plan.startswith(("megatron_", "random")) and not self.spec.light:
            yield command("show", self.spec.path, *self.more, "--format", "plain")
            yield self.ask("comm(step)", *bound(points[0]), "--by", "term", "--format", "plain")
        yield from self.formulas()
        for point in points[:1] if self.spec.light else points:
            yield from self.numbers(point, even=point is points[0])
        if self.axis:
            for point in points:
                yield command("show", self.spec.path, *self.more, "--pipeline", *bound(point))
            yield from self.pipelines(points[-1])
        if not self.steps:
            for point in points:
                yield from self.traces(point, even=point is points[0])
        yield from self.edges(points[0])

    @staticmethod
    def at(stage):
        return ["--stage", stage] if stage else []

    def edges(self, point):
        """Axes of 1, all of them or one while the others are open; axes that do not divide what they
        should."""
        axes = self.spec.shipped.axes_of(self.spec.path, self.plan)
        least = bound({**point, **{name: size for name, size in LEAST.items() if name in point},
                       **dict.fromkeys(axes, 1)})
        for name in ("rank_flops(step)", "traffic(step)", "comm(step)", "memory(peak)"):
            yield self.ask(name, *least)
        odd = bound({**point, **dict.fromkeys(axes, 3)})
        for sizes in () if self.steps else (least, odd):
            yield command("lower", self.spec.path, *self.more, *sizes)
        for axis in sorted(axes):
            yield self.ask("comm(step)", "--set", f"{axis}=1", *self.by_stage())

    def by_stage(self):
        return ["--by", "stage"] if self.axis else []

    def formulas(self):
        program, heavy = self.program, not self.spec.light
        for name in program.of("P", rank=True):
            some = heavy and name in TERMS
            for phase in ("dgrad", "wgrad", "step") if some else ("step",):
                yield self.ask(f"{name}({phase})", *self.by_stage())
            for stage in self.stages if some else self.stages[-2:-1] or [None]:
                yield self.ask(f"{name}(step)", *self.at(stage), "--by", "phase")
                for by in program.splits[name] if some and stage in (None, "middle") else ():
                    if by not in ("phase", "stage"):
                        yield self.ask(f"{name}(step)", *self.at(stage), "--by", by)
        for name in program.of("P", rank=False) if heavy else ():
            yield self.ask(f"{name}(step)", "--by", "phase")
        yield self.ask("saved(model)")
        yield self.ask("memory(peak)", *self.at(self.stages[-1]), "--by", "class")
        for part in program.classes if heavy and not self.spec.slow else ("peak",):
            yield self.ask(f"memory({part})", *self.by_stage())
        for name in ("rank_params", "rank_saved"):
            yield self.ask(f"{name}(model)", *self.by_stage())
        for selector in self.spec.selectors if heavy and not self.spec.slow and not self.spec.own else ():
            yield self.ask(f"rank_saved(of = {selector})", *self.by_stage())
        for way in ("op", "block"):
            yield self.ask("traffic(step)", *self.by_stage(), "--granularity", way)

    def pipelines(self, point):
        """Formulas of a pipeline whose shape has numbers."""
        shape = bound({name: point[name] for name in (self.axis[1], *PIPELINE) if name in point})
        for name in ("rank_flops(step)", "traffic(step)", "comm(step)", "rank_params(model)",
                     "memory(states)",
                     "memory(activations)", "memory(working)"):
            if not self.spec.slow or not name.startswith("memory"):
                yield self.ask(name, *shape, "--by", "stage")

    def numbers(self, point, even):
        program, sizes, heavy = self.program, bound(point), even and not self.spec.light
        stages = ["0", "1", "last"] if self.axis else [None]
        for name in program.of("P", rank=True) if even else TERMS:
            yield self.ask(f"{name}(step)", *sizes, *self.by_stage())
            for stage in stages if name in TERMS else ["1"] if self.axis else [None]:
                for by in program.splits[name] if heavy and name in TERMS else ("phase", "op"):
                    if stage in (None, "1") or by == "phase":
                        yield self.ask(f"{name}(step)", *sizes, *self.at(stage), "--by", by)
            for phase in program.phases if heavy and name in TERMS else ():
                yield self.ask(f"{name}({phase})", *sizes, *self.by_stage())
        if self.spec.slow and not even:
            return
        for stage in stages if heavy else stages[:1]:
            for by in program.splits["memory"] if heavy and not self.spec.slow else ("class",):
                yield self.ask("memory(peak)", *sizes, *self.at(stage), "--by", by)
        for part in program.classes if heavy and not self.spec.slow else ("peak",):
            yield self.ask(f"memory({part})", *sizes, *self.by_stage())
        for name in ("rank_params", "rank_saved"):
            yield self.ask(f"{name}(model)", *sizes, *self.by_stage())
            for by in program.splits[name] if heavy and not self.spec.slow else ():
                yield self.ask(f"{name}(model)", *sizes, "--by", by)
        if heavy:
            yield from self.parts(sizes)

    def parts(self, sizes):
        """What parts of the model have, other granularities and conventions, and why."""
        for selector in self.spec.selectors:
            texts = [f"{name}(step, of = {selector})" for name in TERMS]
            if not self.spec.slow:
                texts += [f"rank_params({selector})", f"rank_saved(of = {selector})"]
            for text in texts:
                yield self.ask(text, *sizes, *self.by_stage())
        for way in ("op", "block"):
            for name, by in (("traffic", "op"), ("traffic", "module"), ("reads", "phase"),
                             ("writes", "phase")):
                yield self.ask(f"{name}(step)", *sizes, "--by", by, "--granularity", way)
        for count in self.program.counts:
            if "=" not in count or self.plan.startswith("megatron"):
                yield self.ask("rank_flops(step)", *sizes, "--count", count)
        for name in ("comm(step)", "memory(states)"):
            yield self.ask(name, *sizes, "--why")

    def traces(self, point, even):
        lower = functools.partial(command, "lower", self.spec.path, *self.more, *bound(point))
        yield lower()
        for way in ("op", "block") if even and not self.spec.light else ():
            yield lower("--granularity", way)
        if even and not self.spec.light:
            everything = ["--names", "full", "--attrs", "phase,layer,microbatch,op_type,module"]
            yield lower(*everything, "--astra-sim")
            yield lower(*everything, "--granularity", "op")


def commands(program):
    import test_shipped
    for path in [*test_shipped.SPECS, *sorted(SPECS.glob("*.etch"))]:
        yield from Spec(program, path).commands()
    for topic in ("ops", "quantities", "counts"):
        yield f"help {topic}"
    for name in ("base", "plans"):
        yield command("spec", SOURCE / "models" / f"{name}.etch")
    for model, config, plan, sets in JOBS:
        path = SOURCE / "models" / f"{model}.etch"
        chosen = ["--config", config, "--plan", plan, "--set", sets]
        yield command("lower", path, *chosen, "--dry-run")
        for name in ("rank_flops(step)", "traffic(step)", "comm(step)", "memory(peak)",
                     "memory(activations)"):
            yield command("query", path, name, *chosen, "--by", "stage")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--etch", default=os.environ.get("ETCH"))
    parser.add_argument("--match", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="print the commands and run none")
    parser.add_argument("-o", "--output")
    chosen = parser.parse_args()
    if not chosen.etch or not (chosen.output or chosen.list):
        parser.error("say which program, and where to")
    program = os.path.abspath(chosen.etch)
    os.environ.update(ETCH=program, ETCH_SOURCE_DIR=str(SOURCE))
    sys.path.insert(0, str(SOURCE / "tests" / "acceptance"))
    wanted = sorted({text for text in commands(Program(program)) if re.search(chosen.match, text)})
    if chosen.list:
        print("\n".join(wanted))
        return
    with concurrent.futures.ProcessPoolExecutor(chosen.jobs) as pool:
        found = pool.map(functools.partial(baseline.answer, program), wanted, chunksize=32)
        baseline.write(chosen.output, dict(zip(wanted, found)))
    print(f"{len(wanted)} commands")


if __name__ == "__main__":
    main()
