"""An embedding that is the head as well: one weight, one gradient, reduced once, whatever divides the model.
By hand, weight by weight; where its uses are in two stages, each holds it, and they add up what they have
(Megatron's embedding group)."""

import json
import math
import re

from decoder import BF16, F32
from etchtest import GPT, Case, ask, attribute, lower, main, messages, table, traces, value
from test_numbers import GPT_DIMS
from test_zero import gpt_weights

PLANS = """etch 1
import "{gpt}"
parallel data    {{ mesh [dp]; shard B @ dp }}
parallel zeroed  {{ mesh [dp]; shard B @ dp; zero 1 @ dp }}
parallel rows    {{ mesh [dp, tp]; shard B @ dp, A @ tp, F @ tp, V @ tp }}
parallel rows_z  {{ mesh [dp, tp]; shard B @ dp, A @ tp, F @ tp, V @ tp; zero 1 @ dp }}
parallel stages  {{
  mesh [pp, dp, tp]; shard B @ dp, A @ tp, F @ tp, V @ tp; stage (embed, layer, head) @ pp
}}
parallel stages_z {{
  mesh [pp, dp, tp]; shard B @ dp, A @ tp, F @ tp, V @ tp; zero 1 @ dp; stage (embed, layer, head) @ pp
}}
parallel chunks  {{
  mesh [pp, dp, tp]
  shard B @ dp, A @ tp, F @ tp, V @ tp
  stage (embed, layer, head) @ pp, schedule = interleaved(virtual = 2)
}}
"""
UNTIED = ("weight tok[V,H], pos[P,H]", "weight tok[V,H], pos[P,H], out[V,H]"), ("ln(x) * tok", "ln(x) * out")
SIZES = dict(layers=6, hidden=24, heads=4, vocab=52, positions=16, batch=16, seq=8, micro=2)


def held(v, plan, tied=True):
    """(elements of one weight on a rank, how many there are)."""
    tp = 1 if plan in ("data", "zeroed") else v.tp
    weights = [(elements / tp if divided else elements, count) for elements, divided, count in gpt_weights(v)]
    return weights if tied else [*weights, (v.vocab * v.hidden / tp, 1)]


class OneStage(Case):
    def setUp(self):
        super().setUp()
        self.tied = self.write("tied.etch", PLANS.format(gpt=GPT))
        text = GPT.read_text(encoding="utf-8")
        for old, new in UNTIED:
            self.assertIn(old, text)
            text = text.replace(old, new)
        text = re.sub(r"import \"(\w+\.etch)\"", lambda match: f'import "{GPT.parent}/{match[1]}"', text)
        untied = self.write("gpt.etch", re.sub(r"^check .*$", "", text, flags=re.M))
        self.untied = self.write("untied.etch", PLANS.format(gpt=untied))

    def test_reduced_once(self):
        for spec, tied in ((self.tied, True), (self.untied, False)):
            for plan in ("data", "rows"):
                with self.subTest(plan=plan, tied=tied):
                    text = ask(spec, "comm(sync, axis = dp)", plan=plan)
                    self.assertFormula(lambda v: F32 * sum(e * n for e, n in held(v, plan, tied)), text,
                                       GPT_DIMS)
            for plan in ("zeroed", "rows_z"):
                with self.subTest(plan=plan, tied=tied):
                    parts = lambda v: sum(math.ceil(e / v.dp) * n for e, n in held(v, plan, tied))
                    self.assertFormula(lambda v: F32 * v.dp * parts(v),
                                       ask(spec, "comm(sync, op = reduce_scatter, axis = dp)",
                                         plan=plan), GPT_DIMS)
                    self.assertFormula(lambda v: BF16 * parts(v),
                                       ask(spec, "comm(sync, op = all_gather, axis = dp)", plan=plan),
                                       GPT_DIMS)
                    self.assertFormula(lambda v: 12 * parts(v), ask(spec, "rank_flops(optimizer)", plan=plan),
                                       GPT_DIMS)

    def test_what_divides_the_vocabulary_does_not_reduce_its_gradient(self):
        """Each rank of tp has the rows of its part of the vocabulary, from the lookup as from the head."""
        for spec in (self.tied, self.untied):
            self.assertEqual("0", ask(spec, "comm(sync, axis = tp)", plan="rows"))

    def test_traces(self):
        """One collective for what both uses have added to, behind the later of the two in the backward pass:
        the lookup."""
        sets = dict(SIZES, dp=2)
        folder = lower(self.scratch / "out", self.tied, plan="data", sets=sets)
        self.assertFine(folder)
        nodes = messages(traces(folder)[0])
        reduced = [node for node in nodes if re.fullmatch(r"S\.tok\.grads\.dp\.all_reduce", node.name)]
        self.assertEqual(1, len(reduced))
        made = {node.name: node.id for node in nodes}
        lookups = [node for node in nodes if re.fullmatch(r"B1\.dtok.*", node.name)]
        self.assertLessEqual(2, len(lookups))
        self.assertLess(max(node.id for node in lookups), reduced[0].id)
        self.assertIn("O.tok.adamw", made)
        self.assertIn(reduced[0].id, next(node for node in nodes if node.name == "O.tok.adamw").data_deps)


class Stages(Case):
    def setUp(self):
        super().setUp()
        self.spec = self.write("tied.etch", PLANS.format(gpt=GPT))

    def test_embedding_group(self):
        """First and last stage add up the table's gradient, or their parts of it; the stages between them
        have none."""
        for plan, elements in (("stages", lambda v: v.vocab * v.hidden / v.tp),
                               ("stages_z", lambda v: math.ceil(v.vocab * v.hidden / v.tp / v.dp)),
                               ("chunks", lambda v: v.vocab * v.hidden / v.tp)):
            for stage in ("first", "last"):
                text = ask(self.spec, f"comm(sync, op = all_reduce, axis = pp, stage = {stage})", plan=plan)
                self.assertFormula(lambda v: F32 * elements(v), text, GPT_DIMS)
                text = ask(self.spec, f"wire(sync, op = all_reduce, axis = pp, stage = {stage})", plan=plan,
                           sets={"pp": 2})
                # 2*(2 - 1)/2 of it in a ring of two
                self.assertFormula(lambda v: F32 * elements(v), text, GPT_DIMS)
            text = ask(self.spec, "comm(sync, op = all_reduce, axis = pp, stage = middle)", plan=plan)
            self.assertEqual("0", text)

    def test_one_copy_in_each(self):
        """All stages together: every weight once, and the table once more."""
        sets = dict(SIZES, pp=4, dp=2, tp=2)
        for plan in ("stages", "chunks"):
            if plan == "chunks":
                sets = dict(sets, pp=2)
            stages = range(sets["pp"])
            found = sum(value(self.spec, f"rank_params(model, stage = {stage})", None, plan, sets)
                        for stage in stages)
            whole = value(self.spec, "rank_params(model)", None, "rows", dict(SIZES, dp=2, tp=2))
            self.assertEqual(whole + 52 * 24 // 2, found)
            reduced = sum(value(self.spec, f"comm(sync, axis = dp, stage = {stage})", None, plan, sets)
                          for stage in stages)
            self.assertEqual(F32 * found, reduced)

    def test_one_stage_has_nothing_to_add_up(self):
        sets = dict(SIZES, pp=1, dp=2, tp=2)
        self.assertEqual(0, value(self.spec, "comm(sync, axis = pp)", None, "stages", sets))
        folder = lower(self.scratch / "out", self.spec, plan="stages", sets=sets)
        self.assertEqual([], [node.name for node in messages(traces(folder)[0]) if ".pp." in node.name])

    def test_norm_counts_it_once(self):
        """Of the squares of all gradients, over all ranks of a pipeline: as many as there are weights."""
        spec = self.write("clipped.etch", PLANS.format(gpt=GPT) +
                          "train clipped { model = gpt, optimizer = adamw, accumulate = (B, micro), clip = "
                          "1.0 }\n")
        sets = dict(SIZES, pp=4, dp=1, tp=1)
        norms = 0
        for stage in range(4):
            rows, _ = table(spec, f"rank_flops(optimizer, stage = {stage})", "op", None, "stages", sets)
            norms += sum(row for op, row in rows.items() if op != "adamw")
        weights = value(spec, "params(model)", sets=SIZES)
        self.assertEqual(2 * weights, norms)

    def test_groups_of_traces(self):
        """Ranks of the first and the last stage that are alike in all else."""
        for plan, pp in (("stages", 4), ("stages_z", 3), ("chunks", 2)):
            sets = dict(SIZES, pp=pp, dp=2, tp=2)
            folder = lower(self.scratch / plan, self.spec, plan=plan, sets=sets)
            self.assertFine(folder)
            groups = json.loads((folder / "comm_group.json").read_text(encoding="utf-8"))
            size = 52 * 24 // 2 // (2 if plan == "stages_z" else 1)
            for rank, path in traces(folder).items():
                ties = [node for node in messages(path)
                        if re.fullmatch(r"S\.tok\.grads\.pp\.all_reduce", node.name)]
                stage, inside = divmod(rank, 4)
                self.assertEqual(stage in (0, pp - 1), len(ties) == 1)
                for tie in ties:
                    self.assertEqual([inside, 4 * (pp - 1) + inside], groups[attribute(tie, "pg_name")])
                    self.assertEqual(F32 * size, attribute(tie, "comm_size"))


if __name__ == "__main__":
    main()
