"""The shipped encoder-decoder: published parameters, FLOP by hand, traces of every plan that add up to what
queries say."""

from etchtest import MODELS, Case, lower, main, succeed, value
from pipeline import Stages

T5 = MODELS / "t5.etch"

# Elements of the checkpoints on the Hugging Face hub. Layers, width, heads, width of a head, of the MLP.
PUBLISHED = {
    "t5_small": 60506624,
    "t5_base": 222903552,
    "t5_large": 737668096,
    "t5_3b": 2851598336,
    "t5_11b": 11307321344,
}
SMALL = dict(enc_layers=3, dec_layers=2, hidden=16, heads=4, head_dim=6, ffn=20, vocab=44, buckets=5, batch=8,
             src=12,
             tgt=8)
MESHES = (dict(dp=1, tp=1, micro=1), dict(dp=2, tp=1, micro=2), dict(dp=1, tp=4, micro=1),
          dict(dp=2, tp=2, micro=2))


def products(batch, src, tgt, enc_layers, dec_layers, hidden, heads, head_dim, ffn, vocab, **_):
    """FLOP of a forward pass, two of each multiply-add: of products with weights, and of attention over its
    pairs."""
    inner, causal = heads * head_dim, sum(query + 1 for query in range(tgt))

    def projections(queries, keys):
        return hidden * inner * (2 * queries + 2 * keys)

    def mlp(tokens):
        return 2 * tokens * hidden * ffn

    weights = enc_layers * (projections(src, src) + mlp(src)) + tgt * hidden * vocab
    weights += dec_layers * (projections(tgt, tgt) + projections(tgt, src) + mlp(tgt))
    pairs = enc_layers * src * src + dec_layers * (causal + tgt * src)
    return 2 * batch * weights, 2 * batch * 2 * inner * pairs


class Numbers(Case):
    def test_parameters(self):
        for config, expected in PUBLISHED.items():
            with self.subTest(config):
                self.assertEqual(expected, value(T5, "params(t5)", config, sets={"buckets": 32}))

    def test_products(self):
        weights, attention = products(**SMALL)
        self.assertEqual(weights + attention, value(T5, "matmul_flops(forward)", sets=SMALL))
        # Attention computes its scores again: five products for two.
        self.assertEqual(2 * weights + 5 * attention // 2, value(T5, "matmul_flops(backward)", sets=SMALL))

    def test_its_own_checks(self):
        self.assertEqual(2, succeed("check", T5).out.count("proved"))


class Totals(Case):
    def test_every_plan(self):
        for plan in ("ddp", "megatron", "megatron_sp", "megatron_zero"):
            for mesh in MESHES:
                if plan == "ddp" and mesh["tp"] > 1:
                    continue  # the plan has no such axis
                with self.subTest(plan=plan, **mesh):
                    sets = {**SMALL, **mesh}
                    if plan == "ddp":
                        del sets["tp"]
                    folder = lower(self.scratch / f"{plan}.{mesh['dp']}.{mesh['tp']}", T5, plan=plan,
                                   sets=sets)
                    self.assertTotals(folder, T5, None, plan, sets)
                    self.assertFine(folder)
                    self.assertIn("always", succeed("verify", folder).out)


class Chain(Stages):
    def test_stages(self):
        """The chain of both sides, cut within the encoder, between the two, and within the decoder."""
        for stages in (2, 3, 5):
            for micro in (1, 2, 4):
                with self.subTest(stages=stages, micro=micro):
                    mesh = dict(pp=stages, dp=2, tp=2)
                    sets = {**SMALL, **mesh, "micro": micro}
                    folder = lower(self.scratch / f"{stages}.{micro}", T5, plan="encoder_decoder", sets=sets)
                    self.assertFine(folder)
                    self.assertStages(folder, T5, "encoder_decoder", sets, mesh)
                    self.assertIn("always", succeed("verify", folder).out)


if __name__ == "__main__":
    main()
