"""Random models, cut at random: traces keep all rules and run to the end, whatever the timing; stages have
what queries say, and together what one stage would have."""

import json
import random
import re
from types import SimpleNamespace

import specs
from effort import effort
from etchtest import Case, lower, main, succeed, table, traces, value
from pipeline import SCHEDULES, Stages, chunks_of, partition
from simulator import load, run

SEEDS = range(effort(30))


def cut(text, sizes, chance):
    """The text with tags, and a stage line that lists some of its blocks and loops. Gives it with the
    units."""
    lines, units, depth, inside = [], {}, 0, False
    for line in text.splitlines():
        if inside and depth == 0 and line.startswith("  ") and line.strip() != "}":
            loop = re.match(r"  repeat (\w+) as (\w+) ", line)
            if loop and chance.random() < 0.9:
                units[loop[2]] = sizes[loop[1]]
            elif " = " in line and chance.random() < 0.5 and not re.match(r"  [cl]\w* *(\[\])? = ", line):
                name = f"unit{len(units)}"
                units[name] = 1
                line += f", {name}" if "  tag " in line else f"  tag {name}"
        depth += line.count("{") - line.count("}") if inside else 0
        if line.startswith("model "):
            inside, depth = True, 0
        elif depth < 0:
            inside = False
        lines.append(line)
    return "\n".join(lines) + "\n", units


def make(seed):
    chance = random.Random(f"pipeline {seed}")
    for attempt in range(100):
        made = specs.make(1000 * seed + attempt)
        text, units = cut(made.text, made.sizes, chance)
        total = sum(units.values())
        schedule = chance.choice((*SCHEDULES, "zb_v"))
        chunks = chunks_of(schedule)
        if total >= 2 * chunks:
            break
    stages = chance.randint(2, min(4, total // chunks))
    names = list(units)
    chance.shuffle(names)
    line = f"stage ({', '.join(names)}) @ pp, schedule = {schedule}"
    if chance.random() < 0.5:
        line += f", counts = {partition(total, stages * chunks, chance)}"
    axes = ["dp", "tp", "xp"]
    axes.insert(chance.randint(0, 3), "pp")
    more = "".join(f"\n  {option}" for option in ("zero 1 @ dp", "reduce = end") if chance.random() < 0.4)
    text = text.replace("mesh [dp, tp, xp]", f"mesh [{', '.join(axes)}]\n  {line}{more}")
    if chance.random() < 0.4:
        text = text.replace("accumulate = (B, micro)", "accumulate = (B, micro), clip = 1.0")
    if chance.random() < 0.4:
        loops = re.findall(r"(?m)^  repeat \w+ as (\w+) ", text)
        if loops:
            text = text.replace("accumulate", f"recompute = {chance.choice(loops)}, accumulate")
    mesh = {"dp": chance.choice((1, 2)), "tp": chance.choice((1, 2, 3)), "xp": chance.choice((1, 2)),
            "pp": stages}
    return SimpleNamespace(text=text, mesh={axis: mesh[axis] for axis in axes}, sizes=made.sizes,
                           micro=chance.choice((1, 2, 3, 4)), seed=seed)


class Random(Stages):
    def each(self, check, every=1):
        for seed in SEEDS[::every]:
            made = make(seed)
            with self.subTest(seed=seed):
                try:
                    check(made, self.write(f"{seed}.etch", made.text),
                          {**made.sizes, **made.mesh, "micro": made.micro})
                except AssertionError as error:
                    raise AssertionError(f"{error}\n{made.mesh}, {made.micro} microbatches, in this spec:\n"
                                         f"{made.text}") from None

    def test_traces(self):
        def check(made, spec, sets):
            folder = lower(self.scratch / f"{made.seed}", spec, plan="some", sets=sets)
            self.assertFine(folder)
            self.assertStages(folder, spec, "some", sets, made.mesh)
            self.assertIn("verdict   always", succeed("verify", folder).out)

        self.each(check)

    def test_every_rank_finishes(self):
        def check(made, spec, sets):
            folder = lower(self.scratch / f"{made.seed}", spec, plan="some", sets=sets)
            groups = json.loads((folder / "comm_group.json").read_text(encoding="utf-8"))
            for rank in run(load(traces(folder)), groups, random.Random(made.seed)).values():
                self.assertEqual(rank.nodes.keys(), rank.end.keys(), "a rank does not run to the end")

        self.each(check, every=3)

    def test_stages_add_up(self):
        def check(made, spec, sets):
            for query in ("rank_flops(forward)", "rank_flops(recompute)", "rank_flops(backward)",
                          "comm(forward, axis = tp)", "comm(backward, axis = xp)"):
                rows, _ = table(spec, query, "stage", plan="some", sets=sets)
                whole = value(spec, query, plan="some", sets={**sets, "pp": 1})
                self.assertEqual(whole, sum(rows[str(stage)] for stage in range(made.mesh["pp"])), query)

        self.each(check)


if __name__ == "__main__":
    main()
