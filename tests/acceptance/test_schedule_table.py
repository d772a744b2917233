"""What goes with which schedule, as the table in docs/pipelines.md says: lowered, verified, and its sums
are those of queries; or refused with a message. What goes alone goes in pairs. UPDATE=1 writes the table
anew."""

import itertools
import json
import os
import pathlib
import re

from effort import NIGHTLY
from etchtest import MODELS, main, messages, run, settings, traces
from pipeline import Stages
from shipped import params_of

PAGE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"]) / "docs" / "pipelines.md"
LISTED = ('list("F0 F1 I0 F2 W0 F3 I1 W1 B2 B3", "F0 I0 F1 I1 W0 F2 B2 W1 F3 B3")')
MIRRORED = ('list("F0.0 F1.0 F0.1 I0.1 F1.1 I1.1 B0.0 B1.0 W0.1 W1.1 '
            'F2.0 F3.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0", '
            '"F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0 F2.0 F2.1 F3.0 F3.1 B2.1 B2.0 B3.1 B3.0", '
            'chunks = mirrored)')
SHARED = 'list("F0 F1 F2&B0 F3&I1 W1 B2 B3", "F0 B0 F1 F2&B1 F3&B2 B3")'
SCHEDULES = {"gpipe": "gpipe", "one_f_one_b": "one_f_one_b", "interleaved": "interleaved(virtual = 2)",
             "breadth_first": "breadth_first(virtual = 2)", "zb_h1": "zb_h1", "zb_h2": "zb_h2",
             "zb_v": "zb_v", "dualpipe": "dualpipe", "dualpipev": "dualpipev", "list": LISTED,
             "list, mirrored": MIRRORED, "list, F&B": SHARED}
# By row: lines of the plan, options of the train block (None: an infer block), sizes that differ, the
# model.
FEATURES = {
    "`zero 1`": ("zero 1 @ dp", "", {}, "llama"),
    "`zero 2`": ("zero 2 @ dp", "", {}, "llama"),
    "`zero 3`": ("zero 3 @ dp", "", {}, "llama"),
    "`keep = microbatch`": ("zero 3 @ dp, keep = microbatch", "", {}, "llama"),
    "`keep = step`": ("zero 3 @ dp, keep = step", "", {}, "llama"),
    "`reduce = microbatch`": ("zero 2 @ dp\n  reduce = microbatch", "", {}, "llama"),
    "`reduce = end`": ("reduce = end", "", {}, "llama"),
    "`bucket = 4096`": ("bucket = 4096", "", {}, "llama"),
    "`bucket = ddp`": ("bucket = ddp", "", {}, "llama"),
    "clip": ("", "clip = 1.0", {}, "llama"),
    "recompute": ("", "recompute = layer", {}, "llama"),
    "`recompute = layer(first = 3)`": ("recompute = layer(first = 3)", "", {}, "llama"),
    "offload": ("offload optimizer @ host", "", {}, "llama"),
    "frozen embedding": ("", "freeze = embed", {}, "llama"),
    "frozen layers": ("", "freeze = (embed, layer)", {}, "llama"),
    "m < p": ("", "", {"pp": 3, "micro": 2, "batch": 8}, "llama"),
    "infer": ("", None, {"micro": 1}, "llama"),
    "MTP": ("", "", {}, "deepseek_v3"),
}
UNITS = {"llama": "(embed, layer, head)", "deepseek_v3": "(embed, layer, head, depth)"}
SIZES = dict(layers=10, dense_layers=2, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=24, vocab=36,
             experts=8, topk=2, expert_ffn=16, shared=1, q_rank=24, kv_rank=16, nope=8, rope_dim=8, v_dim=8,
             groups=1, top_groups=1, biased=0, mtp=1)
STEP = dict(pp=2, dp=2, batch=16, seq=16, micro=4)
BEGIN = "<!-- what goes with which schedule: made by test_schedule_table.py -->\n"
END = "<!-- end -->\n"


def spec_of(schedule, lines, options, model):
    parts = f"model = {model}", "optimizer = adamw", "accumulate = (B, micro)", options
    trained = ", ".join(filter(None, parts))
    served = f"infer own {{ model = {model}, output = z }}"
    block = served if options is None else f"train own {{ {trained} }}"
    return (f'etch 1\nimport "{MODELS / model}.etch"\n{block}\nparallel pipe {{\n  mesh [pp, dp]\n'
            f"  shard B @ dp\n  stage {UNITS[model]} @ pp, schedule = {schedule}\n  {lines}\n}}\n")


# What of these goes together: of each no value or one, and of every two every pair of values.
OPTIONS = {
    "zero": ("", "zero 1 @ dp", "zero 2 @ dp", "zero 3 @ dp", "zero 3 @ dp, keep = microbatch",
             "zero 3 @ dp, keep = step"),
    "reduce": ("", "reduce = microbatch", "reduce = end"),
    "bucket": ("", "bucket = 4096", "bucket = ddp"),
    "recompute": ("", "recompute = layer", "recompute = layer(first = 3)"),
    "offload": ("", "offload = optimizer"),
    "clip": ("", "clip = 1.0"),
    "freeze": ("", "freeze = embed", "freeze = (embed, layer)"),
    "model": ("llama", "deepseek_v3"),
}
OF_TRAIN = "clip", "freeze"


def pairs_of(choice):
    return set(itertools.combinations(enumerate(choice), 2))


def every_pair():
    """Choices of a value of each option, so few that every pair of values is in one."""
    everything = list(itertools.product(*OPTIONS.values()))
    left = set().union(*map(pairs_of, everything))
    while left:
        best = max(everything, key=lambda choice: len(pairs_of(choice) & left))
        left -= pairs_of(best)
        yield dict(zip(OPTIONS, best))


class Table(Stages):
    def lower(self, spec, sets):
        """The folder of the traces, and None; or None, and how it is refused: the code and what is said."""
        folder = self.scratch / "out"
        done = run("lower", spec, "--plan", "pipe", "--run", "own", "--set", settings(sets), "-o", folder,
                   "-q", "--force", "--astra-sim")
        said = re.search(r"error\[(E\d+)\]: (.*)", done.err)
        return (None, said.groups()) if done.status else (folder, None)

    def sets_of(self, model, step):
        params = params_of(MODELS / f"{model}.etch")
        return {**{name: size for name, size in SIZES.items() if name in params}, **STEP, **step}

    def assertRuns(self, folder, spec, sets, what, sums):
        """`sums`: traces are what queries say, too."""
        told = json.loads(run("verify", folder, "--format", "json").out)
        for which in ("eager", "rendezvous", "verdict"):
            self.assertEqual("always", told[which], (what, which))
        if sums:
            self.assertStages(folder, spec, "pipe", sets, dict(pp=sets["pp"], dp=sets["dp"]))

    def cell(self, schedule, column, sums):
        """`yes`, or the code that refuses it, and what is said."""
        lines, options, step, model = FEATURES[column]
        spec = self.write("own.etch", spec_of(schedule, lines, options, model))
        sets = self.sets_of(model, step)
        folder, refused = self.lower(spec, sets)
        if refused:
            return refused
        self.assertRuns(folder, spec, sets, (schedule, column), sums)
        return "yes", None

    def test_table(self):
        rows = [["", *SCHEDULES], ["---"] * (1 + len(SCHEDULES))]
        refusals = []
        for number, column in enumerate(FEATURES):
            row = [column]
            for at, (name, schedule) in enumerate(SCHEDULES.items()):
                sums = column != "infer" and (NIGHTLY or (number + at) % 5 == 0)
                word, said = self.cell(schedule, column, sums)
                row.append(word)
                if said:
                    refusals.append(f"- {column}, `{name}`: {said}\n")
            rows.append(row)
        found = "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n" + "".join(refusals)
        text = PAGE.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        said, after = rest.split(END)
        if os.environ.get("UPDATE"):
            PAGE.write_text(before + BEGIN + found + END + after, encoding="utf-8")
        else:
            self.assertEqual(said, found)

    def test_pairs(self):
        """Nothing is refused, or breaks, only because of something else."""
        choices = list(every_pair())
        self.assertLess(len(choices), 30)
        for (number, choice), (at, (name, schedule)) in itertools.product(enumerate(choices),
                                                                          enumerate(SCHEDULES.items())):
            if not NIGHTLY and (number + at) % 3:
                continue
            lines = "\n  ".join(value for option, value in choice.items()
                                if value and option not in (*OF_TRAIN, "model"))
            options = ", ".join(choice[option] for option in OF_TRAIN if choice[option])
            spec = self.write("own.etch", spec_of(schedule, lines, options, choice["model"]))
            sets = self.sets_of(choice["model"], {})
            with self.subTest(schedule=name, **choice):
                folder, refused = self.lower(spec, sets)
                self.assertIsNone(refused)
                self.assertRuns(folder, spec, sets, name, sums=NIGHTLY or (number + at) % 9 == 0)

    def test_frozen_stage(self):
        """A first stage of frozen layers has no node that is of the way back, one with the head has."""
        for name, schedule in SCHEDULES.items():
            spec = self.write("own.etch", spec_of(schedule, "", "freeze = (embed, layer)", "llama"))
            folder, _ = self.lower(spec, self.sets_of("llama", {}))
            back = [node.name for node in messages(traces(folder)[0]) if re.match(r"[BIWR]\d+\.", node.name)]
            has_head = name in ("zb_v", "dualpipe", "dualpipev", "list, mirrored")
            self.assertEqual(has_head, bool(back), (name, back[:1]))


if __name__ == "__main__":
    main()
