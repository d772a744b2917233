"""What is read and what is written, and costs by loops: against counts by hand."""

from etchtest import GPT, LLAMA, Case, ask, main, table, value

# A table, a product and a loss.
SMALL = """etch 1
param batch, seq, hidden, vocab
dim B = batch, S = seq, H = hidden, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
model small(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight emb[V,H], head[H,V]
  x[B,S,H] = gather(emb, ids, over = V)
  z[B,S,V] = x * head
  l[] = cross_entropy(z, labels, over = V)  tag loss
}
train { model = small, optimizer = adamw(MASTER) }
parallel one { mesh [dp] \n shard B @ dp }
"""

# Loops in a row and inside each other, some of the same name.
LOOPS = """etch 1
param batch, hidden, vocab, groups, few, many
dim B = batch, H = hidden, V = vocab
model loops(x[B,H], labels[B]: i32) -> z[B,V] {
  weight head[H,V]
  repeat few as layer {
    weight w[H,H']
    y[B,H'] = x * w
    x = y[H'->H]
  }
  repeat groups as group {
    weight w[H,H']
    y[B,H'] = x * w
    x = y[H'->H]
    repeat many as layer {
      weight v[H,H']
      u[B,H'] = x * v
      x = relu(u[H'->H])
    }
  }
  repeat many as layer {
    weight w[H,H']
    y[B,H'] = x * w
    x = y[H'->H]
  }
  z[B,V] = x * head
  l[] = cross_entropy(z, labels, over = V)  tag loss
}
train { model = loops, optimizer = adamw }
"""

# The first layers are wider than the others, and of these every third is as it is by itself.
CLASSES = """etch 1
param batch, hidden, vocab, layers, dense
dim B = batch, H = hidden, V = vocab
model classes(x[B,H], labels[B]: i32) -> z[B,V] {
  weight head[H,V]
  repeat layers as layer {
    weight w[H,H']
    if layer < dense {
      weight v[H,H']
      y[B,H'] = x * w
      t = y[H'->H]
      u[B,H'] = t * v
      x = u[H'->H]
    } else if layer % 3 == 1 {
      s = relu(x)
      y[B,H'] = s * w
      x = y[H'->H]
    } else {
      y[B,H'] = x * w
      x = y[H'->H]
    }
  }
  z[B,V] = x * head
  l[] = cross_entropy(z, labels, over = V)  tag loss
}
train { model = classes, optimizer = adamw }
"""

SIZES = {"batch": 3, "seq": 5, "hidden": 7, "vocab": 11, "dp": 1}
BF16, F32, I32 = 2, 4, 4


class Bytes(Case):
    def small(self, master="master = true"):
        return self.write("small.etch", SMALL.replace("MASTER", master).replace("\\n", "\n"))

    def test_by_hand(self):
        """Each op moves its operands and results once: rows that are looked up, or added to, and not the
        table; a gradient of a weight is read and written back."""
        spec = self.small()
        tokens, hidden, vocab = 15, 7, 11
        ids, rows, logits, table_ = I32 * tokens, tokens * hidden, tokens * vocab, hidden * vocab
        statistic, loss = F32 * tokens, F32
        forward = ((BF16 * rows + ids) + BF16 * (rows + table_) + (BF16 * logits + ids),
                   BF16 * rows + BF16 * logits + (statistic + loss))
        backward = ((F32 + BF16 * logits + ids + statistic) + BF16 * (logits + table_)  # of the loss, 1; of x
                    + (BF16 * (rows + logits) + F32 * table_)                       # of the head
                    + (BF16 * rows + ids + F32 * rows),                             # of the embedding
                    BF16 * logits + BF16 * rows + F32 * table_ + F32 * rows)
        for phase, (read, written) in (("forward", forward), ("backward", backward)):
            with self.subTest(phase):
                self.assertEqual(read, value(spec, f"reads({phase})", sets=SIZES))
                self.assertEqual(written, value(spec, f"writes({phase})", sets=SIZES))

    def test_optimizer(self):
        """AdamW reads gradient, master copy and two moments; it writes master copy, moments and the
        weight."""
        weights = 2 * 7 * 11
        spec = self.small()
        self.assertEqual((F32 + F32 + 2 * F32) * weights, value(spec, "reads(optimizer)", sets=SIZES))
        self.assertEqual((F32 + 2 * F32 + BF16) * weights, value(spec, "writes(optimizer)", sets=SIZES))
        spec = self.small("master = false")
        self.assertEqual((F32 + BF16 + 2 * F32) * weights, value(spec, "reads(optimizer)", sets=SIZES))
        self.assertEqual((BF16 + 2 * F32) * weights, value(spec, "writes(optimizer)", sets=SIZES))

    def test_clipping(self):
        """The norm reads every gradient and writes one number."""
        plain = self.small()
        text = plain.read_text(encoding="utf-8")
        spec = self.write("clipped.etch",
                          text.replace("adamw(master = true)", "adamw(master = true), clip = 1"))
        weights = 2 * 7 * 11
        self.assertEqual(F32 * weights, value(spec, "reads(optimizer)", sets=SIZES)
                         - value(plain, "reads(optimizer)", sets=SIZES))
        self.assertEqual(F32, value(spec, "writes(optimizer)", sets=SIZES)
                         - value(plain, "writes(optimizer)", sets=SIZES))

    def test_reads_and_writes_are_the_traffic(self):
        for spec, plan in ((LLAMA, "megatron_zero"), (LLAMA, "context_gather"), (GPT, "megatron_sp")):
            for phase in ("forward", "backward", "recompute", "optimizer", "step"):
                with self.subTest(spec=spec.name, plan=plan, phase=phase):
                    self.assertEqual("0", ask(spec, f"reads({phase}) + writes({phase}) - traffic({phase})",
                                              plan=plan))

    def test_tables_add_up(self):
        sets = {"batch": 16, "seq": 128, "micro": 2, "dp": 2, "tp": 2}
        for quantity in ("reads(step)", "writes(step)", "traffic(step)", "rank_flops(step)", "flops(step)"):
            total = value(LLAMA, quantity, "llama3_8b", "megatron_sp", sets)
            for by in ("op", "module", "layer", "phase"):
                with self.subTest(quantity=quantity, by=by):
                    rows, told = table(LLAMA, quantity, by, "llama3_8b", "megatron_sp", sets)
                    self.assertEqual((total, total), (told, sum(rows.values())))

    def test_stages(self):
        sets = {"batch": 16, "seq": 128, "micro": 4, "dp": 2, "tp": 2, "pp": 4}
        for quantity in ("reads(step)", "writes(step)", "rank_flops(step)"):
            rows, _ = table(LLAMA, quantity, "stage", "llama3_8b", "megatron_pp", sets)
            for stage in range(4):
                asked = quantity.replace(")", f", stage = {stage})")
                self.assertEqual(rows[str(stage)], value(LLAMA, asked, "llama3_8b", "megatron_pp", sets))


class Layers(Case):
    def test_body_times_count(self):
        rows, _ = table(LLAMA, "flops(forward)", "layer", "llama3_8b", sets={"batch": 2, "seq": 8})
        body = value(LLAMA, "flops(forward, of = layer)", "llama3_8b", sets={"batch": 2, "seq": 8})
        self.assertEqual({"layer", "outside loops"}, set(rows))
        self.assertEqual(32 * body, rows["layer"])
        self.assertEqual(2 * 16 * 4096 * 128256 + 4 * 16 * 4096 + 5 * 16 * 128256, rows["outside loops"])

    def test_loops_of_one_name(self):
        spec = self.write("loops.etch", LOOPS)
        sets = {"batch": 2, "hidden": 3, "vocab": 5, "groups": 2, "few": 4, "many": 7}
        rows, total = table(spec, "params(model)", "layer", sets=sets)
        self.assertEqual({"layer#1": 4 * 9, "group": 2 * 9, "group.layer": 2 * 7 * 9, "layer#2": 7 * 9,
                          "outside loops": 15}, rows)
        self.assertEqual(sum(rows.values()), total)
        products, _ = table(spec, "matmul_flops(forward)", "layer", sets=sets)
        self.assertEqual({label: 2 * 2 * amount for label, amount in rows.items()}, products)
        both, _ = table(spec, "flops(optimizer)", "layer", sets=sets)
        self.assertEqual({label: 12 * amount for label, amount in rows.items()}, both)

    def test_classes_of_iterations(self):
        """A class is called by its first iteration."""
        spec = self.write("classes.etch", CLASSES)
        sets = {"batch": 2, "hidden": 3, "vocab": 5, "layers": 12, "dense": 5}
        rows, _ = table(spec, "params(model)", "layer", sets=sets)
        self.assertEqual({"layer[0]": 5 * 2 * 9, "layer[7]": 2 * 9, "layer[5]": 5 * 9, "outside loops": 15},
                         rows)
        rows, _ = table(spec, "elementwise(forward)", "layer", sets=sets)
        self.assertEqual({"layer[7]": 2 * 2 * 3, "outside loops": 5 * 2 * 5}, rows)


if __name__ == "__main__":
    main()
