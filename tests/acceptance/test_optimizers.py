"""Optimizers of matrices: lamb and muon. What an update takes is computed here from the sizes of Llama's
weights, for the job, for a rank, and in traces; the reference executor compares values (tests/exec)."""

import json
from fractions import Fraction

from etchtest import MODELS, Case, lower, main, settings, succeed, table, traces, value

H100 = MODELS.parent / "machines" / "h100_sxm.etch"

SIZES = {"hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 16, "ffn": 160, "vocab": 96, "layers": 3,
         "batch": 8, "seq": 16, "micro": 1}
PLANS = """
parallel zero1 { mesh [dp, tp]; shard B @ dp, K @ tp, F @ tp, V @ tp; zero 1 @ dp }
parallel zero3 { mesh [dp, tp]; shard B @ dp, K @ tp, F @ tp, V @ tp; zero 3 @ dp }
parallel alike { mesh [dp, tp]; shard B @ dp }
"""


def matrices():
    """Rows and columns of the matrices of a layer."""
    width, queries = SIZES["hidden"], SIZES["heads"] * SIZES["head_dim"]
    keys = SIZES["kv_heads"] * SIZES["head_dim"]
    return [(width, queries), (width, keys), (width, keys), (queries, width),
            (width, SIZES["ffn"]), (width, SIZES["ffn"]), (SIZES["ffn"], width)]


def elements():
    return SIZES["layers"] * sum(rows * columns for rows, columns in matrices())


def products(steps):
    """FLOP of XX', of the square of that, and of that times X, of all layers."""
    total = 0
    for sides in matrices():
        m, n = sorted(sides)
        total += steps * (2 * m * m * n + 2 * m ** 3 + 2 * m * m * n)
    return SIZES["layers"] * total


class Optimizers(Case):
    def spec(self, optimizer, name="spec"):
        return self.write(f"{name}.etch", f'etch 1\nimport "{MODELS / "llama.etch"}"\n{PLANS}\n'
                                          f"train own {{ model = llama, optimizer = {optimizer}, "
                                          "accumulate = (B, micro) }\n")

    def test_products_of_muon(self):
        """Three products a step, of each matrix once in the job, and on every rank."""
        for steps in (1, 5, 7):
            spec = self.spec(f"muon(steps = {steps})", f"steps{steps}")
            self.assertEqual(products(steps), value(spec, "matmul_flops(optimizer)", sets=SIZES))
            by_op, _ = table(spec, "rank_flops(optimizer)", "op", plan="zero1",
                             sets={**SIZES, "dp": 2, "tp": 2})
            beside = SIZES["layers"] * sum(
                3 * rows * columns + steps * (2 * rows * columns + 3 * min(rows, columns) ** 2)
                for rows, columns in matrices())
            self.assertEqual(products(steps) + beside, by_op["newton_schulz"])
            self.assertEqual(elements(), by_op["muon_momentum"])  # 4 of each, a fourth on a rank

    def test_states(self):
        """One momentum of a matrix; two moments of a table, a head, a gain."""
        spec = self.spec("muon")
        others = 2 * SIZES["vocab"] * SIZES["hidden"] + (2 * SIZES["layers"] + 1) * SIZES["hidden"]
        sets = {**SIZES, "dp": 1, "tp": 1}
        self.assertEqual(4 * (elements() + 2 * others),
                         value(spec, "memory(moments)", plan="alike", sets=sets))
        spec = self.spec("muon(rest = sgd)", "sgd")
        self.assertEqual(4 * elements(), value(spec, "memory(moments)", plan="alike", sets=sets))
        spec = self.spec("lamb", "lamb")
        self.assertEqual(8 * (elements() + others), value(spec, "memory(moments)", plan="alike", sets=sets))

    def test_what_ranks_share(self):
        """Beyond what adamw sends: parts of matrices in bf16; two sums in f32 for each weight in parts."""
        usual = self.spec("adamw", "usual")
        tensors = SIZES["layers"] * len(matrices()) + 2
        gains = 2 * SIZES["layers"] + 1
        for plan, dp, tp, parts in (("zero1", 2, 2, 4), ("zero3", 2, 2, 4), ("zero1", 1, 2, 2),
                                    ("alike", 2, 2, 1)):
            sets = {**SIZES, "dp": dp, "tp": tp}
            sent = value(usual, "comm(step)", plan=plan, sets=sets)
            muon = value(self.spec("muon"), "comm(step)", plan=plan, sets=sets) - sent
            self.assertEqual(2 * elements() // parts if parts > 1 else 0, muon, (plan, sets))
            lamb = value(self.spec("lamb", "lamb"), "comm(step)", plan=plan, sets=sets) - sent
            divided = tensors if parts > 1 else 0
            if parts > 1 and dp > 1:
                divided += gains
            self.assertEqual(8 * divided, lamb, (plan, sets))

    def test_traces(self):
        """Of each layer the momentum, its gather, the products, and the change, one after the other."""
        spec = self.spec("muon")
        sets = {**SIZES, "dp": 2, "tp": 2}
        folder = lower(self.scratch / "traces", spec, plan="zero1", sets=sets)
        self.assertFine(folder)
        self.assertTotals(folder, spec, None, "zero1", sets)
        for path in traces(folder).values():
            nodes = [json.loads(line) for line in succeed("dump", path, "--format", "json").out.splitlines()]
            own = [node for node in nodes
                   if any(word in node["name"] for word in ("muon", "newton", ".update."))]
            layers = [f"{phase}.layer{i}.{what}" for i in range(SIZES["layers"])
                      for phase, what in (("O", "muon_momentum"), ("S", "update.(dp,tp).all_gather"),
                                          ("O", "newton_schulz"), ("O", "muon"))]
            self.assertEqual(layers, [node["name"] for node in own])
            for place, (before, after) in enumerate(zip(own, own[1:])):
                if place % 4 < 3:
                    self.assertIn(before["id"], after["data_deps"])

    def test_why(self):
        """A placement says why, between the norm for clipping and the gather of weights."""
        spec = self.spec("muon(rest = lamb), clip = 1.0")
        shown = json.loads(succeed("show", spec, "--plan", "zero1", "--format", "json").out)
        rows = [row for row in shown["collectives"] if row["step"] is None and row["phase"] == "sync"]
        order = [row["rule"] for row in rows]
        self.assertEqual(sorted(order, key=["reduce", "clip", "optimizer", "update"].index), order)
        kinds = {(row["collective"], row["group"]) for row in rows if row["rule"] == "optimizer"}
        self.assertEqual({("all_gather", "(dp,tp)"), ("all_reduce", "(dp,tp)"), ("all_reduce", "dp")}, kinds)
        for row in rows:
            if row["rule"] == "optimizer":
                why = next(part for part in row["why"] if part["part"] == "needed")
                self.assertIn("muon asks" if row["collective"] == "all_gather" else "lamb asks", why["text"])

    def test_time(self):
        """Products take the time of products: no less than at the peak of an H100, 989 TFLOP/s."""
        sets = {**SIZES, "hidden": 4096, "ffn": 14336, "head_dim": 128, "heads": 32, "kv_heads": 8, "dp": 1,
                "tp": 1}
        times, done = [], []
        for steps in (1, 11):
            spec = self.spec(f"muon(steps = {steps})", f"time{steps}")
            answer = json.loads(succeed("query", spec, "time(step)", "--plan", "alike", "--machine", H100,
                                        "--set", settings(sets), "-q", "--format", "json").out)
            times.append(Fraction(answer["low"]))
            done.append(value(spec, "matmul_flops(optimizer)", sets=sets))
        least = (done[1] - done[0]) / Fraction("989.4e12")
        self.assertGreater(times[1] - times[0], least)
        self.assertLess(times[1] - times[0], 3 * least)


if __name__ == "__main__":
    main()
