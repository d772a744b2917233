"""What must hold of every spec, asked of the program: each answer is held against another one, or against
arithmetic of our own."""

import json
import math
import os
import re
import resource
import subprocess
from fractions import Fraction

from inlined import inlined
from repair import repair

STATUSES = {0, 1, 3, 4, 5}
SECONDS, HANGS, BYTES = 20, 900, 3 * 2**30
QUERIES = ("flops({p})", "rank_flops({p})", "traffic({p})", "comm({p})", "wire({p})", "matmul_flops({p})",
           "elementwise({p})", "reads({p})", "writes({p})", "params(model)", "trainable(model)",
           "rank_params(model)",
           "active_params(model)", "memory(weights)", "memory(grads)", "memory(optimizer)",
           "memory(activations)",
           "memory(workspace)", "memory(peak)", "memory(states)", "saved(model)", "rank_saved(model)",
           "memory(cache)",
           "memory(master)", "memory(moments)")
PHASES = ("forward", "recompute", "backward", "sync", "optimizer", "step", "dgrad", "wgrad")
OF_A_RANK = re.compile(r"rank_|traffic|reads|writes|comm|wire|memory")
BY = ("op", "module", "phase", "collective", "axis", "term")
FUNCTIONS = {"max": max, "min": min, "floor": math.floor, "ceil": math.ceil, "abs": abs, "Fraction": Fraction}
# What a formula cannot do with: a branch that nothing decides, stages of several loops.
OPEN = {"E0245", "E0631"}
NUMBER = r"-?\d+(/\d+)?"
PASSES = ("model", "train", "place", "stage", "shard", "fuse", "step")


class Broken(Exception):
    """What should hold does not: a short name of what, and all that was said."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Done:
    def __init__(self, command, process):
        self.command, self.status = command, process.returncode
        self.out, self.err = process.stdout, process.stderr

    def codes(self):
        return re.findall(r"error\[(E\d{4})\]", self.err)

    def __str__(self):
        words = " ".join(f"'{word}'" if re.search(r"[ ()*,|]", word) else word for word in self.command)
        return f"$ etch {words}\nstatus {self.status}\n{self.out[-1500:]}{self.err[-2500:]}"


def limit_memory():
    """Of this process, and of all that it starts from now on. Sanitizers reserve more than there is."""
    if "ETCH_FUZZ_SANITIZED" not in os.environ:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Asked:
    """A spec in a file, with the plan, run and values that it is asked with."""

    def __init__(self, program, path, bred, chance):
        self.program, self.path, self.bred, self.chance = program, str(path), bred, chance
        self.folder = os.path.dirname(self.path)
        self.sets, self.plan, self.run = bred.sets, bred.plan_name, bred.run

    def call(self, *command):
        before = seconds_of_children()
        try:
            process = subprocess.run([self.program, *command], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace",
                                     check=False, timeout=HANGS, cwd=self.folder, close_fds=False)
        except subprocess.TimeoutExpired as error:
            raise Broken("hangs", f"{command} does not end in {HANGS} s") from error
        done = Done(command, process)
        if seconds_of_children() - before > SECONDS:
            raise Broken("slow", f"{command[0]} takes more than {SECONDS} s\n{done}")
        if done.status not in STATUSES:
            text = re.findall(r"[a-z_/]+\.c:\d+|Assertion.*", done.err)
            raise Broken(f"status {done.status} {text[:1]}", str(done))
        if done.status == 3:
            raise Broken("status 3", str(done))
        if done.status == 0 and re.search(r"\berror\[", done.err):
            raise Broken("an error and status 0", str(done))
        if done.status in (1, 3, 4) and command[0] not in ("prove", "check", "verify") and not done.codes():
            raise Broken("refused without an error", str(done))
        return done

    def options(self, sets=None, plan=True):
        sets = self.sets if sets is None else sets
        found = ["--run", self.run] if self.run else []
        if plan and self.plan:
            found += ["--plan", self.plan]
        if sets:
            found += ["--set", ",".join(f"{name}={value}" for name, value in sets.items())]
        return found

    def ask(self, command, *words, sets=None, plan=True, more=()):
        return self.call(command, self.path, *words, *self.options(sets, plan), *more)


def of_a_stage(asked, query):
    """What a question about ranks is asked with: one of the stages."""
    stages = stages_of(asked)
    return ["--stage", str(asked.chance.randrange(stages))] if stages > 1 and OF_A_RANK.match(query) else []


def stages_of(asked):
    return int(asked.sets.get("pp", asked.bred.literal.get("pp", 1)))


def number(text):
    return Fraction(text.strip())


def valued(text, sets):
    """A printed formula at values."""
    code = re.sub(r"(?<![\w.'])\d+(?![\w.])", lambda match: f"Fraction({match[0]})", text.replace("^", "**"))
    values = {name: Fraction(str(value)) for name, value in sets.items()}
    return Fraction(eval(code, {"__builtins__": {}}, {**FUNCTIONS, **values}))


def valued_tree(tree, sets):
    """The same of a formula as JSON."""
    total = Fraction(0)
    for term in tree["terms"]:
        part = Fraction(term["c"])
        for name, power in term.get("m", {}).items():
            part *= Fraction(str(sets[name]))**int(power)
        for factor in term.get("f", []):
            args = [valued_tree(arg, sets) for arg in factor["args"]]
            inner = {"floor": lambda a: Fraction(math.floor(a[0])), "max": max,
                     "recip": lambda a: 1 / a[0]}[factor["op"]](args)
            part *= inner**int(factor.get("power", 1))
        total += part
    return total


def small(asked):
    """Whether the numbers are such that all can be evaluated here."""
    known = {*asked.bred.spec.params, *asked.bred.axes} <= set(asked.sets)
    return known and all(re.fullmatch(r"\d+", str(value)) and int(value) < 10**7
                         for value in asked.sets.values())


# ---- oracles -----------------------------------------------------------------------------------------

# What only traces cannot have, and what `check` asks of more than this plan and this run.
TRACES_ONLY = {"E0910", "E0911", "E0913", "E0244", "E0524", "E0525"}


def acceptance(asked):
    """`check --bound` and `lower --dry-run` take and refuse the same."""
    lowered = asked.ask("lower", more=("--dry-run", "--format", "json"))
    checked = asked.ask("check", more=("--bound",))
    took, takes = lowered.status == 0, checked.status in (0, 5)
    if lowered.status == 4 or checked.status == 4:
        return lowered
    # check looks at modules that nothing calls, and at other runs and their models, too
    runs = len(asked.bred.spec.of("train")) + len(asked.bred.spec.of("infer"))
    others = runs > 1 or any(code[1:3] in ("02", "03") for code in checked.codes())
    if took and not takes and not others:
        raise Broken(f"lower takes what check refuses {checked.codes()[:1]}", f"{lowered}\n{checked}")
    if takes and not took and not set(lowered.codes()) <= TRACES_ONLY:
        raise Broken(f"check takes what lower refuses {lowered.codes()[:1]}", f"{lowered}\n{checked}")
    return lowered


def totals(asked, lowered):
    """What lowering counts is what queries say, stage by stage."""
    made = json.loads(lowered.out)
    stages = made["stages"]
    parts = '"part"' in lowered.out or len(stages) > stages_of(asked)
    if parts and stages_of(asked) > 1:
        return
    if parts:  # of ranks that do not do equal parts; a query is of the most
        most = {key: str(max(int(row[key]) for row in stages)) for key in ("rank_flops", "traffic")}
        stages = [{**stages[0], **most}]
    for at in asked.chance.sample(range(len(stages)), min(2, len(stages))):
        more = ("--stage", str(at)) if len(stages) > 1 else ()
        row = stages[at]
        pairs = [("rank_flops(step)", row["rank_flops"]), ("traffic(step)", row["traffic"]),
                 ("comm(step)", str(sum(int(comm["bytes"]) for comm in row["comm"]
                                        if comm["collective"] != "recv")))]
        for comm in row["comm"]:
            if comm["collective"] != "recv":
                axes = f"({comm['axes']})" if "," in comm["axes"] else comm["axes"]
                axes = comm["axes"] if comm["axes"].startswith("(") else axes
                pairs.append((f"comm(step, op = {comm['collective']}, axis = {axes})", comm["bytes"]))
        for query, counted in pairs:
            said = asked.ask("query", query, more=more)
            if "E0623" in said.codes():  # nothing trains the model: a step is forward
                said = asked.ask("query", query.replace("step", "forward"), more=more)
            if said.status == 4:
                continue
            if said.status != 0:
                raise Broken(f"lower takes what query refuses {said.codes()[:1]}", f"{lowered}\n{said}")
            if re.fullmatch(NUMBER, said.out.strip()) and number(said.out) != number(counted):
                raise Broken(f"totals of {query.split('(')[0]}",
                             f"{counted} is counted at stage {at}\n{lowered}\n{said}")


def query_of(asked):
    query = asked.chance.choice(QUERIES).format(p=asked.chance.choice(PHASES))
    if asked.chance.random() < 0.15 and "(model)" not in query and "memory" not in query:
        part = asked.bred.selector()
        query = query[:-1] + f", of = {part})"
    elif asked.chance.random() < 0.1 and "model" in query:
        query = query.replace("model", asked.bred.selector())
    return query


def condition_holds(asked, done, sets):
    """Whether what a remark says of axes is so here."""
    if "E0245" in done.err:  # decided by defaults
        return False
    for found in re.findall(r"holds for ([^\n:]*)", done.err):
        if "stages" in found or "iteration" in found:
            return False
        for name in re.findall(r"([A-Za-z_]\w*) > 1", found):
            if int(sets.get(name, 1)) <= 1:
                return False
    return True


def opened_names(asked, query, chance):
    """Params and axes that a formula is to keep: no axis of one rank. Formulas of what is worked on are of
    loops that are long enough (docs/memory.md)."""
    left = {name for name in asked.sets if asked.chance.random() < chance and name != "pp"}
    left -= {name for name in asked.bred.axes if int(asked.sets[name]) == 1}
    if "workspace" in query or "peak" in query:
        left -= {word for body in asked.bred.spec.bodies() for line in body for word in line
                 if line[0] == "repeat" and isinstance(word, str)}
        left -= {word for body in asked.bred.spec.bodies() for line in body for word in line
                 if line[0] == "if" and isinstance(word, str)}
    return left


def formulas(asked, count=5):
    """An open formula, evaluated, is the answer with values; in each form."""
    for _ in range(count):
        query = query_of(asked)
        more = of_a_stage(asked, query)
        bound = asked.ask("query", query, more=more)
        if bound.status != 0:
            continue
        if not re.fullmatch(NUMBER, bound.out.strip()):
            continue  # of a param that has a default only
        value = number(bound.out)
        left = opened_names(asked, query, 0.6)
        sets = {name: number for name, number in asked.sets.items() if name not in left}
        # a param that has a default would take it
        sets.update({name: name for name in left if name not in asked.bred.axes})
        form = asked.chance.choice(("shortest", "expanded", "factored", "relative"))
        opened = asked.ask("query", query, sets=sets, more=[*more, "--form", form])
        if opened.status != 0:
            if opened.status == 1 and not set(opened.codes()) & OPEN:
                raise Broken(f"a formula that is refused {opened.codes()[:1]}", f"{bound}\n{opened}")
            continue
        if not condition_holds(asked, opened, asked.sets):
            continue
        if "\n" in opened.out.strip():
            continue
        found = valued(opened.out.strip(), asked.sets)
        if found != value:
            raise Broken(f"a formula of {query.split('(')[0]} at values",
                         f"{found} is its value\n{bound}\n{opened}")
        kind = asked.chance.randrange(4)
        if kind == 0:
            data = asked.ask("query", query, sets=sets, more=[*more, "--format", "json"])
            answer = json.loads(data.out)
            if "expression" in answer and valued_tree(answer["expression"], asked.sets) != value:
                raise Broken("a formula as JSON", f"{bound}\n{data}")
        elif kind == 1:
            proved = asked.ask("prove", f"{query} == {opened.out.strip()}", sets=sets, more=more)\
                if not more else None
            if proved is not None and proved.status not in (0, 4):
                raise Broken(f"a formula as text is not proved {proved.status}", f"{opened}\n{proved}")
        elif kind == 2:
            code = asked.ask("query", query, sets=sets, more=[*more, "--format", "python"])
            values = {name: int(number) for name, number in asked.sets.items()}
            text = re.sub(r"(?<![\w.'])\d+(?![\w.])", lambda match: f"Fraction({match[0]})", code.out.strip())
            try:
                made = eval(text, {"Fraction": Fraction, "Rational": Fraction, "math": math},
                            {name: Fraction(number) for name, number in values.items()})
            except NameError as error:
                raise Broken("a formula as Python", f"{error}\n{code}") from error
            if made != value:
                raise Broken("a formula as Python", f"{made}\n{bound}\n{code}")
        else:
            false = asked.ask("prove", f"{query} == {value} + 1") if not more else None
            if false is not None and false.status not in (1, 4):
                raise Broken(f"what is wrong is not refuted {false.status}", f"{bound}\n{false}")


def tables(asked, count=3):
    """Rows add up to the total, of values and of formulas; so do terms and what they come from."""
    for _ in range(count):
        query, by = query_of(asked), asked.chance.choice(BY)
        more = of_a_stage(asked, query)
        bound = asked.ask("query", query, more=more)
        if bound.status != 0:
            continue
        opened = asked.chance.random() < 0.5
        if not re.fullmatch(NUMBER, bound.out.strip()):
            continue
        left = opened_names(asked, query, 0.5 if opened else 0)
        sets = {name: number for name, number in asked.sets.items() if name not in left}
        sets.update({name: name for name in left if name not in asked.bred.axes})
        table = asked.ask("query", query, sets=sets, more=[*more, "--by", by, "--format", "json"])
        if table.status != 0:
            if table.status == 1 and not set(table.codes()) & {"E0610",
                                                               *OPEN} and not re.search("by|table|part",
                                                                                        table.err):
                raise Broken(f"a table that is refused {table.codes()[:1]}", f"{bound}\n{table}")
            continue
        if not condition_holds(asked, table, asked.sets):
            continue
        answer = json.loads(table.out)
        total = sum(valued(row.get("value") or row.get("formula"), asked.sets) for row in answer["rows"])
        if total != number(bound.out):
            raise Broken(f"rows by {by} of {query.split('(')[0]}", f"{total} is their sum\n{bound}\n{table}")
        why = asked.ask("query", query, sets=sets, more=[*more, "--why", "--format", "json"])
        if why.status != 0:
            continue
        answer = json.loads(why.out)
        if "terms" not in answer:
            continue
        total = Fraction(0)
        for term in answer["terms"]:
            whole = valued(term.get("value") or term.get("formula") or term.get("term"), asked.sets)
            total += whole
            parts = sum(valued(part.get("value") or part.get("formula"), asked.sets) for part in term["from"])
            if term["from"] and parts != whole:
                raise Broken("what a term comes from", f"{parts} is not {whole}\n{why}")
        if total != number(bound.out):
            raise Broken("terms of why", f"{total} is their sum\n{bound}\n{why}")


def shown(asked, lowered):
    """Each view of what can be lowered is there."""
    chance = asked.chance
    views = [("--plan",), ("--plan", "json"), ("--plan", "dot"), ("--pipeline",), ("--after",), ("json", ),
             ("dot", ), ()]
    for view in chance.sample(views, 3):
        more = []
        if "--pipeline" in view:
            more.append("--pipeline")
        if "--after" in view:
            more += ["--after", chance.choice(PASSES)]
        for form in ("json", "dot"):
            if form in view:
                more += ["--format", form]
        sets = asked.sets if chance.random() < 0.5 or "--pipeline" in view else {}
        done = asked.ask("show", plan="--plan" in view or "--pipeline" in view or "--after" in view,
                         sets=sets, more=more)
        if done.status == 1 and lowered.status == 0 and not ("--pipeline" in view and not asked.bred.staged):
            fine = {"E0245", "E0631"} if sets == {} else {"E0245"}
            # without its plan a model may lack the dtypes that make it whole
            if not set(done.codes()) & {*fine, "E0308"}:
                raise Broken(f"show {' '.join(view)} refuses what lower takes {done.codes()[:1]}",
                             f"{lowered}\n{done}")
        if "--format" in more and "json" in more and done.status == 0:
            json.loads(done.out)


def written(asked, folder, lowered):
    """Traces run to their end, and are as many bytes as was said."""
    made = json.loads(lowered.out)
    if made["nodes"] > 30000 or made["ranks"] > 64:
        return
    done = asked.ask("lower", more=("-o", str(folder), "--no-sync", "--format", "json"))
    if done.status != 0:
        raise Broken("lower refuses what the dry run takes", f"{lowered}\n{done}")
    real = json.loads(done.out)
    for key in ("nodes", "ranks", "classes", "groups", "bytes", "files", "stages"):
        if real[key] != made[key]:
            raise Broken(f"a dry run says other {key}", f"{lowered}\n{done}")
    verified = asked.call("verify", str(folder))
    if verified.status != 0 and "E0838" not in verified.err:  # a message too large for a simulator
        raise Broken(f"verify of what lower writes {verified.status}", f"{done}\n{verified}")


def written_in_place(asked):
    """A module written where it is called changes no total."""
    text = inlined(asked.bred, asked.chance)
    if text is None:
        return
    path = asked.path.replace(".etch", ".inlined.etch")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    for query in asked.chance.sample(("params(model)", "trainable(model)", "flops(forward)", "flops(step)",
                                      "saved(model)",
                                      "matmul_flops(backward)", "elementwise(step)", "rank_flops(step)",
                                      "comm(step)",
                                      "traffic(step)", "memory(peak)", "memory(activations)"), 4):
        plan = bool(OF_A_RANK.match(query))
        first = asked.ask("query", query, plan=plan)
        second = asked.call("query", path, query, *asked.options(plan=plan))
        if first.status == 0 and (second.status != 0 or first.out != second.out):
            raise Broken(f"a module in its place: {query} {second.codes()[:1]}", f"{first}\n{second}\n{text}")


def plain(asked):
    """Commands with no values, or some."""
    chance = asked.chance
    some = {name: value for name, value in asked.sets.items() if chance.random() < 0.5}
    commands = [lambda: asked.ask("check", sets={}), lambda: asked.ask("check", sets=some),
                lambda: asked.ask("check", sets={}, plan=False),
                lambda: asked.ask("query", query_of(asked), sets=some,
                                  more=["--by", chance.choice((*BY, "stage", "layer"))]),
                lambda: asked.ask("query", query_of(asked), sets={}, more=["--why"]),
                lambda: asked.ask("query", query_of(asked), sets=some,
                                  more=["--granularity", chance.choice(("op", "block"))]),
                lambda: asked.ask("query", query_of(asked), sets=some, more=["--leading", chance.choice(
                    asked.bred.spec.params or ["n"])]),
                lambda: asked.ask("query", query_of(asked), sets=some, more=["--diff", chance.choice(
                    asked.bred.spec.params or ["n"])]),
                lambda: asked.ask("query", query_of(asked), sets={}, more=["--count", chance.choice(
                    ("megatron", "palm", "causal = full", "torchtitan"))]),
                lambda: asked.ask("query", query_of(asked), sets={},
                                  more=["--format", chance.choice(("latex", "c"))]),
                lambda: asked.ask("prove", f"{query_of(asked)} >= {query_of(asked)}", sets=some),
                lambda: asked.ask("show", sets=some),
                lambda: asked.ask("show", sets={}, more=["--after", chance.choice(PASSES)]),
                lambda: asked.ask("lower", sets=some, more=["--dry-run", "--granularity",
                                                            chance.choice(("op", "block"))])]
    for command in chance.sample(commands, 4):
        done = command()
        if done.status == 2:
            raise Broken("status 2", str(done))


def all_of(asked, folder):
    """How far the spec came: whether it was lowered."""
    lowered = acceptance(asked)
    plain(asked)
    if lowered.status != 0:
        if not repair(asked):
            return False
        lowered = acceptance(asked)
        plain(asked)
    if small(asked):
        totals(asked, lowered)
        formulas(asked)
        tables(asked)
        written_in_place(asked)
    shown(asked, lowered)
    if asked.chance.random() < 0.3:
        written(asked, folder, lowered)
    return True
