"""Parameters and FLOP of the shipped models against published numbers, and formulas against formulas by
hand."""

import decoder
from etchtest import GPT, LLAMA, Case, Formula, Point, ask, main, run, succeed, table, value

LLAMA_PARAMS = {  # as the checkpoints on the Hugging Face hub have them, rotary buffers left out
    "llama2_7b": 6738415616,
    "llama2_70b": 68976648192,
    "llama3_8b": 8030261248,
    "llama3_70b": 70553706496,
    "llama3_405b": 405853388800,
}

# Megatron's count halves causal attention, to s/2 keys per query; here a query sees (s+1)/2. Layers, heads *
# head_dim, sequence, FLOP of a sequence.
MEGATRON_FLOPS = {
    "llama2_7b": (32, 4096, 4096, 175569673125888),
    "llama3_8b": (32, 4096, 8192, 421645529382912),
    "llama3_70b": (80, 8192, 8192, 3680031058427904),
    "llama3_405b": (126, 16384, 8192, 20676247440850944),
}

# Narayanan et al. 2021 (arXiv 2104.04473), table 1: layers, hidden, heads, batch, equation 2, equation 3.
NARAYANAN = [
    (24, 2304, 24, 512, 1652226048, 15466830067924992),
    (36, 4096, 32, 512, 7467778048, 67184558503624704),
    (40, 6144, 48, 1024, 18449743872, 324839715310141440),
    (60, 10240, 80, 1792, 76050718720, 2302047495074611200),
    (96, 16384, 128, 2160, 310130507776, 11194006936108400640),
    (128, 25600, 160, 3072, 1008038707200, 51390513775273574400),
]

LLAMA_DIMS = {"B": "batch", "S": "seq", "T": "seq", "H": "hidden", "K": "kv_heads", "G": "heads/kv_heads",
              "D": "head_dim", "F": "ffn", "V": "vocab", "past": "0"}
GPT_DIMS = {"B": "batch", "S": "seq", "H": "hidden", "A": "heads", "D": "hidden/heads", "F": "4*hidden",
            "V": "vocab",
            "P": "positions"}


class Params(Case):
    def test_llama(self):
        for config, expected in LLAMA_PARAMS.items():
            with self.subTest(config):
                self.assertEqual(str(expected), ask(LLAMA, "params(model)", config))
                self.assertEqual(expected, value(LLAMA, "params(llama)", config))
                self.assertEqual(expected, value(LLAMA, "trainable(model)", config))

    def test_gpt2(self):
        self.assertEqual("124439808", ask(GPT, "params(model)", "gpt2"))

    def test_gpt3_with_the_vocabulary_of_the_paper(self):
        self.assertEqual(174604259328, value(GPT, "params(model)", "gpt3_175b", sets={"vocab": 50257}))

    def test_set_comes_before_config(self):
        one = value(LLAMA, "params(model)", "llama3_8b", sets={"layers": 1})
        two = value(LLAMA, "params(model)", "llama3_8b", sets={"layers": 2})
        self.assertEqual(8030261248, one + 31 * (two - one))

    def test_formula_of_llama(self):
        text = ask(LLAMA, "params(model)")
        self.assertFormula(lambda v: sum(decoder.llama_weights(v)), text, LLAMA_DIMS)

    def test_formula_of_gpt(self):
        text = ask(GPT, "params(model)")
        self.assertFormula(lambda v: sum(decoder.gpt_weights(v)), text, GPT_DIMS)

    def test_formula_takes_values(self):
        """What is bound is a number in the formula, and what is not stays."""
        found = Formula(ask(LLAMA, "params(model)", sets={"vocab": 128256, "hidden": 4096}), LLAMA_DIMS)
        self.assertEqual({"layers", "heads", "kv_heads", "head_dim", "ffn"}, found.names())
        rest = Point(0, layers=32, heads=32, kv_heads=8, head_dim=128, ffn=14336)
        self.assertEqual(8030261248, found.at(rest))


class Tables(Case):
    def test_rows_add_up(self):
        for spec, config in ((LLAMA, "llama3_8b"), (LLAMA, "llama2_70b"), (GPT, "gpt2")):
            with self.subTest(config):
                total = value(spec, "params(model)", config)
                rows, told = table(spec, "params(model)", "module", config)
                self.assertEqual(total, told)
                self.assertEqual(total, sum(rows.values()))
                self.assertTrue(len(rows) > 3, rows)
                plain = succeed("query", spec, "params(model)", "--config", config, "--by", "module").out
                for label, amount in rows.items():
                    self.assertRegex(plain, rf"(?m)^{label}\s+{amount}$")

    def test_modules_of_a_layer(self):
        rows, _ = table(LLAMA, "params(model)", "module", "llama3_8b")
        attention = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024)
        self.assertEqual(attention, sum(amount for label, amount in rows.items() if "attention" in label))
        mlp = 32 * 3 * 4096 * 14336
        self.assertEqual(mlp, sum(amount for label, amount in rows.items() if "mlp" in label))

    def test_flops_add_up(self):
        sets = {"batch": 16, "seq": 128, "micro": 2, "dp": 2, "tp": 2}
        for quantity in ("flops(step)", "matmul_flops(step)", "rank_flops(step)", "traffic(step)",
                         "comm(step)"):
            total = value(LLAMA, quantity, "llama3_8b", "megatron_sp", sets)
            for by in ("module", "phase", "op"):
                with self.subTest(quantity=quantity, by=by):
                    rows, told = table(LLAMA, quantity, by, "llama3_8b", "megatron_sp", sets)
                    self.assertEqual((total, total), (told, sum(rows.values())))
        for by in ("collective", "axis"):
            rows, told = table(LLAMA, "comm(step)", by, "llama3_8b", "megatron_sp", sets)
            self.assertEqual((total, total), (told, sum(rows.values())))


class Flops(Case):
    def test_published_by_megatron(self):
        for config, (layers, width, seq, expected) in MEGATRON_FLOPS.items():
            with self.subTest(config):
                found = value(LLAMA, "matmul_flops(step)", config, sets={"batch": 1, "seq": seq})
                # Their attention: 3 * 4 FLOP for s/2 keys. Ours: two products forward, five backward, (s+1)/2
                # keys.
                theirs, ours = layers * 12 * width * seq * seq // 2, layers * 14 * width * seq * (seq +
                                                                                                  1) // 2
                self.assertEqual(expected, found - ours + theirs)

    def test_formulas_of_llama(self):
        for expression, by_hand in (("matmul_flops(step)", decoder.llama_matmul),
                                    ("flops(forward)", decoder.llama_forward),
                                    ("flops(optimizer)", lambda v: 12 * sum(decoder.llama_weights(v)))):
            with self.subTest(expression):
                self.assertFormula(by_hand, ask(LLAMA, expression), LLAMA_DIMS)

    def test_phases_of_llama(self):
        sets = {"batch": 8, "seq": 256, "micro": 2}
        phases = [value(LLAMA, f"flops({phase})", "llama3_8b", sets=sets)
                  for phase in ("forward", "recompute", "backward", "sync", "optimizer")]
        self.assertEqual(0, phases[1])
        self.assertEqual(value(LLAMA, "flops(step)", "llama3_8b", sets=sets), sum(phases))

    def test_calls_of_a_block(self):
        sets = {"batch": 8, "seq": 256}
        block = value(LLAMA, "flops(forward, of = block)", "llama3_8b", sets=sets)
        layer = value(LLAMA, "flops(forward, of = layer)", "llama3_8b", sets=sets)
        self.assertEqual(block, layer)
        rest = value(LLAMA, "flops(forward)", "llama3_8b", sets={**sets, "layers": 1}) - block
        self.assertEqual(value(LLAMA, "flops(forward)", "llama3_8b", sets=sets), 32 * block + rest)


class Narayanan(Case):
    def test_table_1(self):
        for layers, hidden, heads, batch, params, flops in NARAYANAN:
            sets = {"layers": layers, "hidden": hidden, "heads": heads, "batch": batch, "vocab": 51200,
                    "seq": 2048,
                    "positions": 2048}
            with self.subTest(hidden=hidden):
                # Equation 2 leaves out the last norm.
                self.assertEqual(params + 2 * hidden, value(GPT, "params(model)", sets=sets))
                self.assertEqual(flops, value(GPT, "matmul_flops(step)", sets=sets))

    def test_formula(self):
        self.assertFormula(decoder.gpt_matmul, ask(GPT, "matmul_flops(step)"), GPT_DIMS)

    def test_recomputation_is_another_forward_of_the_layers(self):
        layer = Formula(ask(GPT, "matmul_flops(forward, of = layer)"), GPT_DIMS)
        text = ask(GPT, "matmul_flops(recompute)")
        self.assertFormula(lambda v: v.layers * layer.at(v), text, GPT_DIMS)


class Checks(Case):
    def test_shipped_checks_are_proved(self):
        for spec, count in ((LLAMA, 2), (GPT, 1)):
            with self.subTest(spec.name):
                done = succeed("check", spec)
                self.assertEqual(count, done.out.count("proved"), done)
                self.assertNotIn("refuted", done.out)
                self.assertNotIn("unknown", done.out)

    def test_a_wrong_check_is_refuted(self):
        text = GPT.read_text(encoding="utf-8")
        wrong = self.write("wrong.etch", text.replace("S/(6*H)", "S/(5*H)"))
        done = run("check", wrong)
        self.assertEqual(1, done.status, done)
        self.assertEqual(1, len(done.errors()), done)
        self.assertIn("does not hold", done.err)


if __name__ == "__main__":
    main()
