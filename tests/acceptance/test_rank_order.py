"""`order = (tp, dp)` numbers the ranks otherwise than the mesh does, and `ranks = N` says how many there are:
groups by coordinates, worked out here; formulas do not change."""

import itertools
import json
import random

from etchtest import BASE, LLAMA, Case, ask, attribute, lower, main, messages, options, run

SIZES = dict(layers=4, hidden=64, heads=8, kv_heads=4, head_dim=8, ffn=96, vocab=64, batch=24, seq=8, micro=2)
PLAN = """
parallel numbered {{
  mesh  [pp, dp, cp, tp]
  axis  all = (pp, dp)
  shard B @ dp, S @ cp, K @ tp, F @ tp, V @ tp
  pin   residual [B@dp, S@(cp,tp), H]
  zero  1 @ (dp,cp)
  stage (embed, layer, head) @ pp
  {more}
}}
"""


def groups_of(sizes, order, inside):
    """Sets of ranks that share all coordinates but those inside; ranks count up along `order`, the last axis
    fastest."""
    groups = {}
    for rank, place in enumerate(itertools.product(*(range(sizes[axis]) for axis in order))):
        at = dict(zip(order, place))
        groups.setdefault(tuple(at[axis] for axis in order if axis not in inside), []).append(rank)
    return sorted(groups.values())


class RankOrder(Case):
    def setUp(self):
        super().setUp()
        self.write("base.etch", BASE.read_text(encoding="utf-8"))

    def spec(self, more):
        text = LLAMA.read_text(encoding="utf-8") + "param world\n" + PLAN.format(more=more)
        return self.write(f"{more.replace(' ', '')}.etch".replace("/", ""), text)

    def families(self, folder):
        """axes -> the groups of the family, as sorted lists of ranks."""
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        groups = json.loads((folder / "comm_group.json").read_text(encoding="utf-8"))
        rows = [row for row in manifest["comm_groups"]["families"] if row["size"] > 1]
        return manifest, {frozenset(row["mesh_axes"]): sorted(groups[str(row["first_id"] + i)]
                                                               for i in range(row["groups"])) for row in rows}

    def test_groups_follow_the_order(self):
        dice = random.Random(6)
        stages = None  # what a rank of each stage does and sends is the same
        orders = list(itertools.permutations(("pp", "dp", "cp", "tp")))
        for order in [("pp", "dp", "cp", "tp"), ("tp", "cp", "dp", "pp")] + dice.sample(orders, 4):
            with self.subTest(order=order):
                spec = self.spec(f"order = ({', '.join(order)})")
                sizes = dict(pp=2, dp=3, cp=2, tp=2)
                sets = {**SIZES, **sizes}
                folder = lower(self.scratch / "".join(order), spec, plan="numbered", sets=sets)
                self.assertFine(folder)
                manifest, families = self.families(folder)
                stages = manifest["stages"] if stages is None else stages
                self.assertEqual(stages, manifest["stages"])
                self.assertEqual([(axis, sizes[axis]) for axis in order],
                                 [(row["axis"], row["size"]) for row in manifest["mesh"]])
                for axes in (("tp",), ("cp",), ("dp", "cp")):
                    self.assertEqual(groups_of(sizes, order, axes), families[frozenset(axes)])

    def test_messages_go_between_the_same_coordinates(self):
        order = ("dp", "pp", "tp", "cp")
        folder = lower(self.scratch / "out", self.spec(f"order = ({', '.join(order)})"), plan="numbered",
                       sets={**SIZES, "pp": 4, "dp": 2, "cp": 1, "tp": 2, "layers": 6})
        done = run("verify", folder)
        self.assertEqual(0, done.status, done)
        pairs = groups_of(dict(pp=4, dp=2, cp=1, tp=2), order, ("pp",))
        peers = {attribute(node, "comm_dst") for node in messages(folder / "llama.4.et") if node.type == 5}
        mine = next(group for group in pairs if 4 in group)
        self.assertTrue(peers and peers < set(mine), (peers, mine))

    def test_formulas_do_not_change(self):
        plain, other = self.spec("reduce = layer"), self.spec("order = (tp, cp, all)")
        for query in ("comm(step, stage = first)", "rank_flops(step, stage = middle)",
                      "traffic(step, stage = last)"):
            self.assertEqual(ask(plain, query, plan="numbered"), ask(other, query, plan="numbered"))

    def test_number_of_ranks(self):
        spec = self.spec("ranks = world")
        for world, fits in ((24, True), (48, False), (7, False)):
            sets = {**SIZES, "pp": 2, "dp": 3, "cp": 2, "tp": 2, "world": world}
            for command in (("lower", "--dry-run"), ("check", "--bound")):
                done = run(command[0], spec, *command[1:], *options(plan="numbered", sets=sets))
                self.assertEqual((0, []) if fits else (1, ["E0438"]),
                                 (done.status, [error["code"] for error in done.errors()]), done)
                if not fits:
                    self.assertIn(f"{world} ranks, and its mesh has 24", done.errors()[0]["text"])
        self.assertIn("pp*dp*cp*tp == world", run("check", spec, "--plan", "numbered").out)


if __name__ == "__main__":
    main()
