"""Models with parts that nobody uses: values that no result reads, loops whose result is dropped, weights
that nothing reads; with stages, divided states, recomputation, frozen weights, and as they are served.
Whatever they are, the program answers, its commands agree on what can be, and traces keep all rules, finish,
and add up to what queries say. ETCH_TEST_SEED chooses the first model, ETCH_TEST_MULT multiplies their
number."""

import random
import re

from effort import effort, first_seed
from etchtest import Case, main, number, options, run, succeed, table
from pipeline import Stages

FIRST, COUNT = first_seed(0), effort(150)
SIZES = dict(batch=48, hidden=16)
BUG = 70


class Model:
    """A chain of blocks and loops that carries `v`, among statements, loops and weights that nobody uses.
    `units`: names that a stage line may list, in program order, each with its iterations."""

    def __init__(self, chance):
        self.chance, self.lines, self.units, self.names, self.again = chance, [], [], 0, []
        self.modules, self.loss = [], False
        chain = chance.randrange(1, 5)
        for i in range(chain):
            self.unused()
            self.link()
            if not self.loss and (i == chain - 1 or chance.random() < 0.3):
                self.lines.append("l[] = mean(v, over = (B,H))  tag loss")
                self.loss = True
        self.unused()

    def name(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def frozen(self):
        return "  tag frozen" if self.chance.random() < 0.15 else ""

    def link(self):
        """A part of the chain: a block, or a loop of one or two classes, or in which something is not
        used."""
        if self.chance.random() < 0.4:
            weight, tag = self.name("w"), self.name("block")
            self.lines.append(f"weight {weight}[H]{self.frozen()}; v = {self.call('v', weight)}  tag {tag}")
            self.units.append((tag, 1))
            return
        loop, weight, count = self.name("loop"), self.name("g"), self.chance.choice((0, 1, 2, 3, 4))
        body = [f"weight {weight}[H]{self.frozen()}", f"v = {self.call('v', weight)}"]
        if self.chance.random() < 0.3:
            body[1] = f"if {loop} == 0 {{ v = relu(v) }} else {{ {body[1]} }}"
        for _ in range(self.chance.choice((0, 0, 1, 2))):
            body.insert(self.chance.randrange(len(body) + 1), self.dropped(1))
        self.repeat(loop, count, body)

    def repeat(self, loop, count, body):
        self.lines.append(f"repeat {count} as {loop} {{ {'; '.join(body)} }}")
        self.units.append((loop, count))
        self.again.append(loop)

    def call(self, value, weight):
        """Of a value and a weight, in a module of its own or not."""
        if self.chance.random() < 0.7:
            return f"{value} * {weight}"
        module = self.name("part")
        more = self.chance.choice(("", f"weight {self.name('idle')}[H]; ", f"u = x * {self.name('s')}; "))
        more = re.sub(r"u = x \* (\w+); ", r"weight \1[H]; u = x * \1; ", more)
        self.modules.append(f"module {module}(x[B,H], w[H]) -> y[B,H] {{ {more}y = x * w }}")
        self.again.append(module)
        return f"{module}({value}, {weight})"

    def unused(self):
        for _ in range(self.chance.choice((0, 0, 1, 1, 2))):
            if self.chance.random() < 0.5:
                self.lines.append(self.dropped(0))
            else:
                self.dropped_loop()

    def source(self, inside=False):
        return "v" if self.lines and any("v =" in line for line in self.lines) and not inside else "x"

    def dropped(self, depth):
        """One statement whose value nobody reads, or a weight that no statement reads."""
        weight, value = self.name("w"), self.name("u")
        kind = self.chance.randrange(4 - depth)
        if kind == 0:
            return f"weight {weight}[H]{self.frozen()}"
        if kind == 1:
            return f"weight {weight}[H]{self.frozen()}; {value} = {self.call(self.source(), weight)}"
        if kind == 2:
            return f"{value} = relu({self.source()})"
        tag = self.name("block")
        self.units.append((tag, 1))
        return f"weight {weight}[H]; {value} = {self.source()} * {weight}  tag {tag}"

    def dropped_loop(self):
        """A loop whose result nobody reads: of its iterations, or what the last one leaves; or one that makes
        nothing."""
        loop, weight, value = self.name("loop"), self.name("g"), self.name("u")
        count = self.chance.choice((0, 1, 2, 2, 3))
        own, source = f"weight {weight}[H]{self.frozen()}", self.source()
        kind = self.chance.randrange(6)
        if kind == 0:
            body = [own, f"{value} = {source} * {weight}"]
        elif kind == 1:
            self.lines.append(f"{value} = {source}")
            body = [own, f"{value} = {value} * {weight}"]
        elif kind == 2:
            self.lines.append(f"{value} = {source}")
            body = [f"{value} = relu({value})"]
        elif kind == 3:
            body = [own]
        elif kind == 4:
            inner = self.name("inner")
            body = [f"repeat 2 as {inner} {{ {own}; {value} = {source} * {weight} }}"]
        else:
            self.lines.append(own)
            body = [f"{value} = {source} * {weight}"]
        self.repeat(loop, count, body)

    def text(self):
        lines = "".join(f"  {line}\n" for line in self.lines)
        return ("etch 1\nparam batch, hidden\ndim B = batch, H = hidden\n" +
                "".join(f"{m}\n" for m in self.modules) +
                f"model m(x[B,H]) -> z[B,H] {{\n  v = x\n{lines}  z = v\n}}\n")


class Spec:
    """A model, a way to train it or to serve it, and a plan. `bound`: the mesh."""

    def __init__(self, seed):
        self.seed, chance = seed, random.Random(seed)
        self.model = Model(chance)
        self.micro = chance.choice((1, 2, 4))
        self.serves = chance.random() < 0.2
        self.bound = {"pp": chance.choice((1, 2, 2, 3, 4)), "dp": chance.choice((1, 2)),
                      "tp": chance.choice((1, 2))}
        self.lines = ["shard B @ dp", "shard H @ tp"]
        self.stage(chance)
        if not self.serves:
            self.training(chance)
        self.optimizer = chance.choice(("adamw", "adamw(master = true)", "sgd"))
        self.clip = chance.choice(("", "", ", clip = 1"))

    def stage(self, chance):
        units = [name for name, _ in self.model.units]
        if not units or chance.random() < 0.1:
            del self.bound["pp"]
            return
        listed = units if chance.random() < 0.5 else [name for name in units
                                                      if chance.random() < 0.6] or units[:1]
        schedule = chance.choice(("", ", schedule = gpipe", ", schedule = interleaved(virtual = 2)"))
        if "interleaved" in schedule:
            self.micro = 4 * self.bound["pp"]
            self.bound["dp"] = 1
        self.lines.append(f"stage ({', '.join(listed)}) @ pp{schedule}")

    def training(self, chance):
        if chance.random() < 0.6:
            more = chance.choice(("", "", ", keep = step", ", keep = microbatch", ", reduce = step",
                                  ", prefetch = 2"))
            level = chance.choice((1, 2, 3, 3))
            self.lines.append(f"zero {level} @ dp{more if level == 3 else ''}")
        if self.model.again and chance.random() < 0.4:
            self.lines.append(f"recompute = {chance.choice(self.model.again + ['full', 'needed'])}")
        if chance.random() < 0.2:
            self.lines.append("offload = optimizer")
        if chance.random() < 0.3:
            self.lines.append(chance.choice(("reduce = end", "reduce = microbatch", "bucket = step",
                                             "bucket = 64")))

    def text(self):
        block = (f"infer serve {{ model = m, accumulate = (B, {self.micro}) }}\n" if self.serves else
                 f"train {{ model = m, optimizer = {self.optimizer}, "
                 f"accumulate = (B, {self.micro}){self.clip} }}\n")
        body = "".join(f"  {line}\n" for line in [f"mesh [{', '.join(self.bound)}]", *self.lines])
        return f"{self.model.text()}{block}parallel p {{\n{body}}}\n"

    def sets(self):
        return dict(SIZES, **self.bound)


QUANTITIES = ("rank_flops(step)", "traffic(step)", "comm(step)", "wire(step)", "memory(peak)",
              "rank_params(model)",
              "flops(step)", "params(model)", "trainable(model)")


class Unused(Stages):
    def each(self, check):
        refused = 0
        for seed in range(FIRST, FIRST + COUNT):
            spec = Spec(seed)
            path = self.write(f"{seed}.etch", spec.text())
            with self.subTest(seed=seed):
                try:
                    refused += not check(spec, path)
                except AssertionError as error:
                    raise AssertionError(f"{error}\n{spec.text()}\n{spec.sets()}") from None
        self.assertLess(3 * refused, 2 * COUNT + 4)

    def answers(self, *arguments):
        done = run(*arguments)
        self.assertIn(done.status, (0, 1, 4, 5), done)
        return done

    def test_commands_agree(self):
        """No command ends in a bug of the program; what can be lowered can be checked and asked of."""
        def check(spec, path):
            how = options(plan="p", sets=spec.sets())
            lowered = self.answers("lower", path, "--dry-run", *how)
            bound = self.answers("check", path, "--bound", *how)
            self.assertEqual(lowered.status, bound.status, f"{lowered}\n{bound}")
            for arguments in (["check", path], ["show", path], ["show", path, "--plan", "p"]):
                self.answers(*arguments)
            for query in QUANTITIES:
                asked = self.answers("query", path, query, *how)
                if lowered.status == 0:
                    self.assertEqual(0, asked.status, asked)
            return lowered.status == 0

        self.each(check)

    def test_traces(self):
        """They keep all rules, finish, and add up to what queries say of each stage."""
        def check(spec, path):
            how = options(plan="p", sets=spec.sets())
            folder = self.scratch / f"{spec.seed}.out"
            if self.answers("lower", path, *how, "-o", folder).status != 0:
                return False
            self.assertFine(folder)
            (folder / "memory.json").write_text('{"memory-type": "PER_NPU_MEMORY_EXPANSION"}')
            self.assertIn("verdict   always", succeed("verify", folder).out)
            if spec.bound.get("pp", 1) > 1:
                self.assertStages(folder, path, "p", spec.sets(), spec.bound)
            else:
                self.assertTotals(folder, path, None, "p", spec.sets())
            return True

        self.each(check)

    def test_stages_hold_all(self):
        """Each weight is on some stage: what stages hold together is no less than the model has."""
        def check(spec, path):
            one = dict(spec.sets(), dp=1, tp=1)
            if spec.bound.get("pp", 1) == 1 or self.answers("lower", path, "--dry-run",
                                                            *options(plan="p", sets=one)).status != 0:
                return True
            rows, _ = table(path, "rank_params(model)", "stage", plan="p", sets=one)
            whole = number(succeed("query", path, "params(model)", *options(plan="p", sets=one)).out)
            self.assertGreaterEqual(sum(rows.values()), whole)
            return True

        self.each(check)


if __name__ == "__main__":
    main()
