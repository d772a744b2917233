"""What counts as FLOP: presets against the numbers of the programs and papers that they are named after (more
of them are rows of validation.tsv), and each item of a convention against a count by hand."""

import decoder
from etchtest import GPT, LLAMA, MODELS, Case, ask, main, run, succeed, table, value

# Megatron-LM d98e8a64, num_floating_point_operations, evaluated outside.
MEGATRON_GPT3 = 3340597800160198656  # batch 1536, sequence 2048, vocabulary 51200

# pull request 1988: llama2_7b, 4 sequences of 8192, attention alone
MAXTEXT_CAUSAL_ATTENTION = 211106232532992

# Korthikanti et al. 2022 (arXiv 2205.05198), appendix A: layers, hidden, heads, batch, model FLOP, and
# hardware FLOP when the core of attention is recomputed, for which they add its forward and backward once
# more.
KORTHIKANTI = [
    (96, 12288, 96, 64, 141091531099471872, 144891443285065728),
    (128, 25600, 160, 512, 6425875806211276800, 6510318299224473600),
]

LLAMA_DIMS = {"B": "batch", "S": "seq", "T": "seq", "H": "hidden", "K": "kv_heads", "G": "heads/kv_heads",
              "D": "head_dim", "F": "ffn", "V": "vocab", "past": "0"}
GPT_DIMS = {"B": "batch", "S": "seq", "H": "hidden", "A": "heads", "D": "hidden/heads", "F": "4*hidden",
            "V": "vocab",
            "P": "positions"}

# A decoder with fused attention and a plain MLP, as GPT-3 has it.
FUSED = """etch 1
param batch, seq, layers, hidden, heads, vocab
assume heads | hidden
dim B = batch, S = seq, H = hidden, A = heads, D = hidden/heads, F = 4*hidden, V = vocab

module core(q[B,S,A,D], k[B,S,A,D], v[B,S,A,D]) -> o[B,S,A,D] {
  kk[B,S',A,D] = k[S->S']
  vv[B,S',A,D] = v[S->S']
  o = sdpa(q, kk, vv, dot = D, over = S', causal = true)
}
model fused(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight tok[V,H]
  x[B,S,H] = gather(tok, ids, over = V)
  repeat layers as layer {
    weight wq[H,A,D], wk[H,A,D], wv[H,A,D], wo[A,D,H], w1[H,F], w2[F,H], g[H], b[H]
    n = layer_norm(x, g, b, over = H)
    q[B,S,A,D] = n * wq
    k[B,S,A,D] = n * wk
    v[B,S,A,D] = n * wv
    y[B,S,H] = x + core(q, k, v) * wo
    h[B,S,F] = y * w1
    x[B,S,H] = y + gelu(h) * w2
  }
  z[B,S,V] = x * tok
  l[] = cross_entropy(z, labels, over = V)  tag loss
}
train { model = fused, optimizer = adamw, recompute = layer }
"""

# Queries, keys and values from latent vectors, as multi-head latent attention has them, without positions.
LATENT = """etch 1
param batch, seq, layers, hidden, heads, q_rank, kv_rank, nope, v_dim, ffn, vocab
dim B = batch, S = seq, T ~ S, H = hidden, A = heads, RQ = q_rank, RK = kv_rank
dim D = nope, W = v_dim, F = ffn, V = vocab

module norm(x[.., X]; X = H) -> y[.., X] {
  weight g[X]
  y = rms_norm(x, g, over = X)
}
module mla(x[B,S,H]) -> y[B,S,H] {
  weight wqa[H,RQ], wqb[RQ,A,D], wkva[H,RK], wkb[RK,A,D], wvb[RK,A,W], wo[A,W,H]
  cq[B,S,RQ]  = x * wqa
  q[B,S,A,D]  = norm(cq, X = RQ) * wqb
  ckv[B,S,RK] = x * wkva
  c[B,T,RK]   = cache(norm(ckv, X = RK), over = S)
  k[B,T,A,D]  = c * wkb
  v[B,T,A,W]  = c * wvb
  y           = sdpa(q, k, v, dot = D, over = T, causal = true) * wo
}
model latent(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight emb[V,H], head[H,V]
  x[B,S,H] = gather(emb, ids, over = V)
  repeat layers as layer {
    weight wg[H,F], wu[H,F], wd[F,H]
    y = x + mla(norm(x))
    n = norm(y)
    g[B,S,F] = n * wg
    u[B,S,F] = n * wu
    x = y + silu(g) * u * wd
  }
  z[B,S,V] = norm(x) * head
  l[] = cross_entropy(z, labels, over = V)  tag loss
}
train { model = latent, optimizer = adamw }
"""

# A decoder that predicts one token more: the joined norms of the hidden state and of a token, a layer, and
# logits.
PREDICTION = """etch 1
param batch, seq, hidden, ffn, vocab, depth = 1
dim B = batch, S = seq, H = hidden, F = ffn, V = vocab

module norm(x[B,S,H]) -> y[B,S,H] {
  weight g[H]
  y = rms_norm(x, g, over = H)
}
module mlp(x[B,S,H]) -> y[B,S,H] {
  weight w1[H,F], w2[F,H]
  h[B,S,F] = x * w1
  y        = relu(h) * w2
}
model further(ids[B,S]: i32, ids1[B,S]: i32, labels[B,S]: i32, labels1[B,S]: i32) -> z[B,S,V] {
  weight emb[V,H], head[H,V]
  x[B,S,H] = gather(emb, ids, over = V)
  x = x + mlp(norm(x))
  z[B,S,V] = norm(x) * head
  l[] = cross_entropy(z, labels, over = V)  tag loss
  repeat depth as deep {
    weight pa[H,H'], pb[H,H']
    e[B,S,H]  = gather(emb, ids1, over = V)
    m[B,S,H'] = norm(x) * pa + norm(e) * pb  tag mtp
    a = m[H'->H]
    x = a + mlp(norm(a))
    z1[B,S,V] = norm(x) * head               tag mtp
    l1[] = cross_entropy(z1, labels1, over = V)  tag loss
  }
}
train { model = further, optimizer = adamw }
"""

# A norm of each head's queries and keys stands between a projection and attention: it is no latent norm.
HEADS_NORM = """etch 1
param batch, seq, hidden, heads, head_dim, vocab
dim B = batch, S = seq, H = hidden, A = heads, D = head_dim, V = vocab
model m(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight emb[V,H], head[H,V], wq[H,A,D], wk[H,A,D], wv[H,A,D], wo[A,D,H], gq[D], gk[D]
  x[B,S,H] = gather(emb, ids, over = V)
  q[B,S,A,D] = x * wq
  k[B,S',A,D] = x[S->S'] * wk
  v[B,S',A,D] = x[S->S'] * wv
  qn = rms_norm(q, gq, over = D)
  kn = rms_norm(k, gk, over = D)
  s[B,A,S,S'] = qn * kn
  o[B,S,A,D] = softmax(s, over = S') * v
  y[B,S,H] = o * wo
  z[B,S,V] = y * head
  l[] = cross_entropy(z, labels, over = V)  tag loss
}
train { model = m, optimizer = adamw }
"""

# Experts weighted by a softmax; the logits pass a bias, a scale and a function on their way to the loss.
MIXTURE = """etch 1
param batch, seq, hidden, experts, ffn, vocab
dim B = batch, S = seq, H = hidden, E = experts, F = ffn, V = vocab
model m(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight emb[V,H], head[H,V], bias[V], wr[H,E], w1[E,H,F], w2[E,F,H]
  x[B,S,H] = gather(emb, ids, over = V)
  r[B,S,E] = x * wr  tag router
  p = softmax(r, over = E)
  h[B,S,E,F] = x * w1
  e[B,S,E,H] = relu(h) * w2
  y[B,S,H] = p * e
  c[B,S,V] = y * head + bias
  z = scale(tanh(scale(c, 1/30)), 30)
  l[] = cross_entropy(z, labels, over = V)  tag loss
}
train { model = m, optimizer = adamw }
"""


def counted(spec, expression, count, config=None, sets=None, plan=None):
    """The answer to a query under a convention, as text."""
    arguments = ["query", spec, expression, "--count", count]
    if config:
        arguments += ["--config", config]
    if plan:
        arguments += ["--plan", plan]
    if sets:
        arguments += ["--set", ",".join(f"{name}={size}" for name, size in sets.items())]
    return succeed(*arguments).out.strip()


def attention(v, per_pair, pairs):
    return per_pair * v.layers * v.batch * pairs * v.heads * v.head_dim


def projections(v):
    """FLOP of the products with weights of one forward pass of llama: of the layers, and of the head."""
    query, key = v.heads * v.head_dim, v.kv_heads * v.head_dim
    layer = 2 * v.batch * v.seq * (2 * v.hidden * query + 2 * v.hidden * key + 3 * v.hidden * v.ffn)
    return v.layers * layer, 2 * v.batch * v.seq * v.hidden * v.vocab


class Presets(Case):
    def test_megatron_counts_gpt3_however_it_is_trained(self):
        """Recomputation is no part of what Megatron counts."""
        spec = self.write("fused.etch", FUSED)
        sets = {"layers": 96, "hidden": 12288, "heads": 96, "vocab": 51200, "batch": 1536, "seq": 2048}
        self.assertEqual(str(MEGATRON_GPT3), counted(spec, "flops(step)", "megatron", sets=sets))

    def test_megatron_counts_latent_norms_as_one_product(self):
        spec = self.write("latent.etch", LATENT)

        def by_hand(v):  # the terms of Megatron's source, without positions
            latent = (v.q_rank * (v.hidden + v.heads * v.nope + 1)
                      + v.kv_rank * (v.hidden + v.heads * (v.nope + v.v_dim) + 1) + v.heads * v.v_dim *
                      v.hidden)
            core = v.seq * v.heads * (v.nope + v.v_dim) / 2
            return 6 * v.batch * v.seq * (v.layers * (latent + core + 3 * v.hidden * v.ffn) + v.hidden *
                                          v.vocab)

        dims = {"T": "seq"}
        self.assertFormula(by_hand, counted(spec, "flops(step)", "megatron"), dims)
        rows, _ = table(spec, "flops(step, count = megatron)", "op", sets=dict.fromkeys(
            ("batch", "seq", "layers", "hidden", "heads", "q_rank", "kv_rank", "nope", "v_dim", "ffn",
             "vocab"), 4))
        self.assertEqual(2 * 16 * 4 * (4 + 4), rows["rms_norm"])  # nothing of the norms of the residual
        self.assertEqual(4 * 16 * 4 * (4 + 4), rows["rms_norm_bwd"])

    def test_megatron_counts_no_other_norms(self):
        """None of a dense decoder, whose norms are of the residual, of heads, or behind a block."""
        for name in ("gemma", "gpt", "llama", "llama3_2", "mistral", "olmo2", "qwen2", "qwen3"):
            spec = MODELS / f"{name}.etch"
            with self.subTest(name):
                products = counted(spec, "matmul_flops(step)", "megatron")
                self.assertEqual(products, counted(spec, "flops(step)", "megatron"))

    def test_megatron_counts_norms_of_further_tokens(self):
        spec = self.write("further.etch", PREDICTION)

        def by_hand(v):  # a layer, and for each prediction 3h + 2h^2, a layer and the logits
            layer, logits = 2 * v.hidden * v.ffn, v.hidden * v.vocab
            return 6 * v.batch * v.seq * (layer + logits + v.depth *
                                          (3 * v.hidden + 2 * v.hidden ** 2 + layer + logits))

        self.assertFormula(by_hand, counted(spec, "flops(step)", "megatron"), {})

    def test_torchtitan(self):
        """6 for each parameter but the embedding, and 6*L*a*(d_qk + d_v)*s for a token; norms are parameters,
        too."""
        statement = ("flops(step) == B*S*(6*(params(model) - V*H) + 12*layers*K*G*D*S)"
                     " - 6*B*S*(2*layers + 1)*H")
        done = succeed("prove", LLAMA, statement, "--count", "causal=full,rescore=no,elementwise=no")
        self.assertEqual("proved", done.out.strip())

    def test_norms_of_heads_are_no_latent_norms(self):
        spec = self.write("heads.etch", HEADS_NORM)
        self.assertEqual(ask(spec, "matmul_flops(step)"), counted(spec, "flops(step)", "megatron"))

    def test_narayanan(self):
        self.assertFormula(decoder.gpt_matmul, counted(GPT, "flops(step)", "narayanan"), GPT_DIMS)
        spec = self.write("fused.etch", FUSED)
        self.assertFormula(decoder.gpt_matmul, counted(spec, "flops(step)", "narayanan"), GPT_DIMS)

    def test_korthikanti(self):
        spec = self.write("fused.etch", FUSED)
        for layers, hidden, heads, batch, model, hardware in KORTHIKANTI:
            sets = {"layers": layers, "hidden": hidden, "heads": heads, "batch": batch, "seq": 2048,
                    "vocab": 51200}
            with self.subTest(hidden=hidden):
                count = "narayanan,recompute=no"
                self.assertEqual(str(model), counted(spec, "flops(step)", count, sets=sets))
                again = f"flops(step) + {layers}*(flops(forward, of = core) + flops(backward, of = core))"
                self.assertEqual(str(hardware), counted(spec, again, count, sets=sets))

    def test_maxtext_attention(self):
        core = "layers*(flops(forward, of = core) + flops(backward, of = core))"
        sets = {"batch": 4, "seq": 8192}
        self.assertEqual(str(MAXTEXT_CAUSAL_ATTENTION), counted(LLAMA, core, "megatron", "llama2_7b", sets))


class Items(Case):
    def test_nothing_said_is_as_executed(self):
        said = ("causal=exact,rescore=yes,recompute=yes,elementwise=yes,norms=same,embedding=no,router=yes,"
                "logits=all")
        for spec in (LLAMA, GPT):
            self.assertEqual(ask(spec, "flops(step)"), counted(spec, "flops(step)", said))

    def test_pairs_and_scores(self):
        pairs = {"full": lambda v: v.seq ** 2, "half": lambda v: v.seq ** 2 / 2,
                 "exact": lambda v: v.seq * (v.seq + 1) / 2}
        for name, of_tokens in pairs.items():
            for rescore, backward in (("yes", 10), ("no", 8)):
                with self.subTest(causal=name, rescore=rescore):
                    count = f"elementwise=no,causal={name},rescore={rescore}"
                    self.assertFormula(lambda v: 3 * sum(projections(v)) +
                                       attention(v, 4 + backward, of_tokens(v)),
                                       counted(LLAMA, "flops(step)", count), LLAMA_DIMS)

    def test_more_keys_than_queries(self):
        """Of T = past + S keys, the last of S queries sees all."""
        spec = self.write("keys.etch", "etch 1\nparam batch, seq, past, heads, head_dim\n"
                          "dim B = batch, S = seq, T = past + S, A = heads, D = head_dim\n"
                          "model m(q[B,S,A,D], k[B,T,A,D], v[B,T,A,D]) -> o[B,S,A,D] {\n"
                          "  o = sdpa(q, k, v, dot = D, over = T, causal = true)\n}\n")
        sets = {"past": 5, "seq": 3, "batch": 2, "heads": 4, "head_dim": 16}
        hand = {"exact": 6 + 7 + 8, "half": 3 * 8 // 2, "full": 3 * 8}
        for name, pairs in hand.items():
            with self.subTest(name):
                found = counted(spec, "flops(forward)", f"causal={name}", sets=sets)
                self.assertEqual(str(4 * 2 * pairs * 4 * 16), found)

    def test_without_elementwise_the_products_remain(self):
        for spec in (LLAMA, GPT):
            for phase in ("forward", "backward", "recompute", "optimizer", "step"):
                with self.subTest(spec=spec.name, phase=phase):
                    self.assertEqual(ask(spec, f"matmul_flops({phase})"),
                                     counted(spec, f"flops({phase})", "elementwise=no"))

    def test_recompute(self):
        self.assertEqual("0", counted(GPT, "flops(recompute)", "recompute=no"))
        rest = ask(GPT, "flops(step) - flops(recompute)")
        self.assertEqual(rest, counted(GPT, "flops(step)", "recompute=no"))

    def test_norms(self):
        """4 for an element forward, 9 backward; there are 2 in a layer and 1 before the head."""
        def norms(v):
            return (4 + 9) * v.batch * v.seq * v.hidden * (2 * v.layers + 1)

        self.assertFormula(norms,
                           counted(LLAMA, "flops(step) - matmul_flops(step)", "elementwise=no,norms=yes"),
                           LLAMA_DIMS)
        less = counted(LLAMA, "flops(step)", "norms=no")
        self.assertFormula(norms, f"({ask(LLAMA, 'flops(step)')}) - ({less})", LLAMA_DIMS)

    def test_embedding(self):
        """A product of one-hot rows with the table, and one for the gradient of the table; nothing
        without."""
        rows, _ = table(LLAMA, "flops(step)", "op", "llama3_8b", sets={"batch": 2, "seq": 8})
        self.assertNotIn("gather", rows)

        def lookups(v):
            return (2 + 2) * v.batch * v.seq * v.vocab * v.hidden

        for quantity in ("flops(step)", "matmul_flops(step)"):
            less = counted(LLAMA, quantity, "elementwise=no")
            more = counted(LLAMA, quantity, "elementwise=no,embedding=yes")
            self.assertFormula(lookups, f"({more}) - ({less})", LLAMA_DIMS)

    def test_lookups_in_activations_embed_nothing(self):
        spec = self.write("picked.etch",
                          "etch 1\nparam batch, hidden, picks\ndim B = batch, H = hidden, P = picks\n"
                          "model m(x[B,H], ids[P]: i32) -> y[P,B] { y = gather(x, ids, over = H) }\n")
        self.assertEqual("0", counted(spec, "flops(forward)", "embedding=yes"))

    def test_logits(self):
        def head(v):
            return projections(v)[1]

        everything = counted(LLAMA, "flops(step)", "elementwise=no")
        for word, rest in (("no", lambda v: 3 * head(v)), ("last", lambda v: 3 * head(v) * (1 - 1 / v.seq))):
            with self.subTest(word):
                less = counted(LLAMA, "flops(step)", f"elementwise=no,logits={word}")
                self.assertFormula(rest, f"({everything}) - ({less})", LLAMA_DIMS)

    def test_logits_of_explicit_scores(self):
        self.assertFormula(lambda v: 2 * v.batch * v.hidden * v.vocab * (v.seq - 1),
                           counted(GPT, "matmul_flops(forward, logits = all) - matmul_flops(forward)",
                                   "logits=last"),
                           GPT_DIMS)

    def test_logits_of_a_prefill(self):
        """Where no loss reads them, logits are what the run puts out; nobody needs more than those of the
        last token."""
        less = ("matmul_flops(forward, run = prefill, logits = all) - "
                "matmul_flops(forward, run = prefill, logits = last)")
        self.assertFormula(lambda v: 2 * v.batch * (v.seq - 1) * v.hidden * v.vocab,
                           ask(MODELS / "serve.etch", less), LLAMA_DIMS)

    def test_pairs_after_a_cache(self):
        """Each of `new` queries sees what is cached, and of the new keys those up to its own."""
        more = "matmul_flops(forward, run = chunk, causal = full) - matmul_flops(forward, run = chunk)"
        self.assertFormula(lambda v: attention(v, 4, v.new * (v.new - 1) / 2),
                           ask(MODELS / "serve.etch", more),
                           LLAMA_DIMS)

    def test_logits_behind_elementwise_ops(self):
        spec = self.write("mixture.etch", MIXTURE)
        self.assertFormula(lambda v: 3 * 2 * v.batch * v.seq * v.hidden * v.vocab,
                           counted(spec, "matmul_flops(step, logits = all) - matmul_flops(step)",
                                   "logits=no"), {})

    def test_router(self):
        """What chooses experts is told by its tag; its softmax is elementwise work like any other."""
        spec = self.write("mixture.etch", MIXTURE)
        self.assertFormula(lambda v: 3 * 2 * v.batch * v.seq * v.hidden * v.experts,
                           counted(spec, "flops(step, router = yes) - flops(step)", "router=no"), {})
        self.assertEqual(counted(spec, "flops(step)", "elementwise=no,router=no,causal=half"),
                         counted(spec, "flops(step)", "megatron"))

    def test_attention_is_quadratic_in_the_sequence(self):
        done = succeed("query", LLAMA, "flops(step)", "--leading", "seq", "--count", "megatron")
        self.assertFormula(lambda v: 12 * v.layers * v.batch * v.seq ** 2 / 2 * v.heads * v.head_dim,
                           done.out.strip(), LLAMA_DIMS)
        rest = succeed("query", LLAMA, "flops(forward, of = mlp)", "--diff", "seq").out
        self.assertNotIn("seq", rest)


class Ranks(Case):
    def test_ranks_share_the_products(self):
        """Of plans that divide every product among all ranks."""
        sets = {"batch": 16, "seq": 64, "micro": 2, "dp": 2, "tp": 2}
        for count in ("megatron", "elementwise=no", "causal=full,elementwise=no,embedding=yes"):
            with self.subTest(count):
                whole = int(counted(LLAMA, "flops(step)", count, "llama3_8b", sets))
                part = int(counted(LLAMA, "rank_flops(step)", count, "llama3_8b", sets, "megatron_sp"))
                self.assertEqual(whole, 4 * part)

    def test_context_parallelism(self):
        sets = {"batch": 4, "seq": 64, "dp": 2, "cp": 2, "tp": 2}
        whole = int(counted(LLAMA, "flops(step)", "megatron", "llama3_8b", sets))
        part = int(counted(LLAMA, "rank_flops(step)", "megatron", "llama3_8b", sets, "context_gather"))
        self.assertEqual(whole, 8 * part)

    def test_stages(self):
        sets = {"batch": 16, "seq": 64, "micro": 4, "pp": 4, "dp": 2, "tp": 2}
        whole = int(counted(LLAMA, "flops(step)", "megatron", "llama3_8b", sets))
        parts = [int(counted(LLAMA, f"rank_flops(step, stage = {stage})", "megatron", "llama3_8b", sets,
                             "megatron_pp"))
                 for stage in range(4)]
        self.assertEqual(whole, 4 * sum(parts))

    def test_traces_do_not_change(self):
        self.assertEqual(2, run("lower", LLAMA, "--count", "megatron", "-n").status)


class Arguments(Case):
    def test_in_an_expression(self):
        for option, argument in (("megatron", "count = megatron"), ("causal=full", "causal = full"),
                                 ("megatron,causal=full", "causal = full, count = megatron")):
            self.assertEqual(counted(LLAMA, "flops(step)", option), ask(LLAMA, f"flops(step, {argument})"))

    def test_an_argument_comes_before_the_option(self):
        self.assertEqual(ask(LLAMA, "flops(step, count = narayanan)"),
                         counted(LLAMA, "flops(step, count = narayanan)", "megatron"))
        self.assertEqual(ask(LLAMA, "flops(step, count = megatron, causal = full)"),
                         counted(LLAMA, "flops(step, causal = full)", "megatron"))

    def test_other_quantities_stay(self):
        sets = {"dp": 2, "tp": 2, "batch": 4, "seq": 8, "micro": 1}
        for quantity in ("params(model)", "traffic(step)", "comm(step)"):
            self.assertEqual(str(value(LLAMA, quantity, "llama3_8b", "megatron", sets)),
                             counted(LLAMA, quantity, "megatron", "llama3_8b", sets, "megatron"))

    def test_in_proofs_and_checks(self):
        statement = "flops(step, count = megatron) == 6*B*S*(layers*(2*H*D*K*(G+1) + 3*H*F + S*K*G*D) + H*V)"
        self.assertEqual("proved", succeed("prove", LLAMA, statement).out.strip())
        self.assertEqual("proved", succeed("prove", LLAMA, statement.replace(", count = megatron", ""),
                                           "--count", "megatron").out.strip())
        spec = self.write("llama.etch", LLAMA.read_text(encoding="utf-8").replace(
            'import "base.etch"', f'import "{LLAMA.parent}/base.etch"') + f"\ncheck {statement}\n")
        self.assertEqual(3, succeed("check", spec).out.count("proved"))


if __name__ == "__main__":
    main()
