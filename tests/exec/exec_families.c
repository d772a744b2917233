#include "exec_plans.h"

#include <stddef.h>

#define DENSE                                                                                                \
    "batch = %b, seq = %s, layers = %l, hidden = %w, kv_heads = %h, heads = %g*%h, head_dim = 2, ffn = %f, " \
    "vocab = %v"
#define BIASED \
    "batch = %b, seq = %s, layers = %l, hidden = %w, heads = %h, head_dim = 4, ffn = %f, vocab = %v"
#define SPARSE DENSE ", experts = %e, topk = 2, expert_ffn = %f"

/* Queries, keys and values change hands at the border of `core` in what imports base.etch. */
static const char vision[] =
    "import \"base.etch\"\n"
    "param layers, patches\n"
    "dim P = patches, X = 4, W = hidden, A = kv_heads, U = seq - patches\n"
    "module vision(x[B,P,X]) -> y[B,P,H] {\n"
    "  weight wi[X,W], wq[W,A,D], wk[W,A,D], wv[W,A,D], wo[A,D,W], w1[W,F], w2[F,W], g[W], wp[W,H]\n"
    "  e[B,P,W]    = x * wi\n"
    "  n           = rms_norm(e, g, over = W)\n"
    "  q[B,P,A,D]  = n * wq\n"
    "  k[B,P',A,D] = n[P->P'] * wk\n"
    "  v[B,P',A,D] = n[P->P'] * wv\n"
    "  a[B,P,W]    = sdpa(q, k, v, dot = D, over = P') * wo\n"
    "  b           = e + a\n"
    "  h[B,P,F]    = b * w1\n"
    "  m[B,P,W]    = gelu(h) * w2\n"
    "  y           = (b + m) * wp\n"
    "}\n"
    "module block(x[B,S,H]) -> z[B,S,H] {\n"
    "  y = x + attention(norm(x))  tag residual\n"
    "  z = y + mlp(norm(y))        tag residual\n"
    "}\n"
    "model tower(pixels[B,P,X], ids[B,U]: i32, labels[B,S]: i32) -> z[B,S,V] {\n"
    "  weight emb[V,H], head[H,V]\n"
    "  i[B,P,H] = vision(pixels)\n"
    "  t[B,U,H] = gather(emb, ids, over = V)\n"
    "  x[B,S,H] = concat(i, t, over = (P,U))         tag residual\n"
    "  repeat layers as layer {\n"
    "    x = block(x)\n"
    "  }\n"
    "  z[B,S,V] = norm(x) * head\n"
    "  l[]      = cross_entropy(z, labels, over = V)  tag loss\n"
    "}\n";

/* Attention and MLP beside each other, in parts that have names, less one another and times a number. */
static const char beside[] = "import \"base.etch\"\n"
                             "param layers\n"
                             "module scaled(x[B,S,H]) -> y[B,S,H] {\n"
                             "  weight b[H]\n"
                             "  y = mlp(norm(x)) / 2 + b\n"
                             "}\n"
                             "module block(x[B,S,H]) -> y[B,S,H] {\n"
                             "  a = x - attention(norm(x))\n"
                             "  m = -mlp(norm(x))\n"
                             "  y = a + 2*m + scaled(x)  tag residual\n"
                             "}\n"
                             "model beside(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {\n"
                             "  weight emb[V,H], head[H,V]\n"
                             "  x[B,S,H] = gather(emb, ids, over = V)          tag residual\n"
                             "  repeat layers as layer {\n"
                             "    x = block(x)\n"
                             "  }\n"
                             "  z[B,S,V] = norm(x) * head\n"
                             "  l[]      = cross_entropy(z, labels, over = V)  tag loss\n"
                             "}\n";

static const char tables[] =
    "param batch, micro = 1, rows, width, hots, inner\n"
    "dim B = batch, N = 3, R = rows, D = width, L = hots, X = 4, F = inner, O = 1, M = N + 1\n"
    "dtype act = bf16, weights = bf16, grads = f32, optim = f32\n"
    "module tables(ids[B,N,L]: i32, s[B,N,L]) -> p[B,N,D] {\n"
    "  weight rows[N,R,D]\n"
    "  p[B,N,D] = gather(rows, ids, over = R) * s\n"
    "}\n"
    "module bottom(x[B,X]) -> y[B,D] {\n"
    "  weight w1[X,F], b1[F], w2[F,D], b2[D]\n"
    "  h[B,F] = x * w1 + b1\n"
    "  y      = relu(h) * w2 + b2\n"
    "}\n"
    "module top(z[B,M,M'], h[B,D]) -> y[B] {\n"
    "  weight w1[M,M',F], w2[D,F], b1[F], w3[F]\n"
    "  a[B,F] = z * w1 + h * w2 + b1\n"
    "  y[B]   = relu(a) * w3\n"
    "}\n"
    "model dlrm(dense[B,X], ids[B,N,L]: i32, s[B,N,L], labels[B]) -> y[B] {\n"
    "  h          = bottom(dense)\n"
    "  c[B,M,D]   = concat(tables(ids, s), h, over = (N,O))  tag features\n"
    "  z[B,M,M']  = c * c[M->M']\n"
    "  y          = top(z, h)\n"
    "  l[]        = bce(y, labels)  tag loss\n"
    "}\n";

const exec_family exec_families[] = {
    {.name = "llama",
     .text = "import \"llama.etch\"\n",
     .run = "model = llama, optimizer = adamw(master = true)",
     .sizes = DENSE,
     .heads = "K",
     .groups = "G",
     .inner = "F",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .again = {"layer", "core", "mlp", "norm"}},
    {.name = "gpt",
     .text = "import \"gpt.etch\"\n",
     .run = "model = gpt, optimizer = adamw(master = true)",
     .sizes = "batch = %b, seq = %s, positions = 2*%s, layers = %l, hidden = 2*%h, heads = %h, vocab = %v",
     .heads = "A",
     .inner = "F",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .again = {"layer", "core", "mlp", "ln"}},
    {.name = "gpt_neox",
     .text = "import \"gpt_neox.etch\"\n",
     .run = "model = gpt_neox, optimizer = adamw",
     .sizes = BIASED ", rotary_dim = 2",
     .heads = "A",
     .inner = "F",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .again = {"layer", "core", "mlp", "ln"}},
    {.name = "bloom",
     .text = "import \"bloom.etch\"\n",
     .run = "model = bloom, optimizer = adamw",
     .sizes = BIASED,
     .heads = "A",
     .inner = "F",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .again = {"layer", "core", "mlp", "ln"}},
    {.name = "bert",
     .text = "import \"bert.etch\"\n",
     .run = "model = bert, optimizer = adamw",
     .sizes = BIASED ", positions = 2*%s",
     .heads = "A",
     .inner = "F",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .again = {"layer", "core", "mlp", "ln"}},
    {.name = "albert",
     .text = "import \"albert.etch\"\n",
     .run = "model = albert, optimizer = adamw",
     .sizes = BIASED ", positions = 2*%s, narrow = 2",
     .heads = "A",
     .inner = "F",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .again = {"layer", "core", "mlp", "ln"}},
    {.name = "falcon",
     .text = "import \"falcon.etch\"\n",
     .run = "model = falcon, optimizer = adamw",
     .sizes = DENSE ", norms = 2",
     .heads = "K",
     .groups = "G",
     .inner = "F",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .again = {"layer", "core", "mlp", "ln"}},
    {.name = "olmo2",
     .text = "import \"olmo2.etch\"\n",
     .run = "model = olmo2, optimizer = adamw",
     .sizes = DENSE,
     .heads = "K",
     .groups = "G",
     .inner = "F",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .again = {"layer", "core", "mlp", "norm"}},
    {.name = "qwen3",
     .text = "import \"qwen3.etch\"\n",
     .run = "model = qwen3, optimizer = adamw",
     .sizes = DENSE ", tied = 1",
     .heads = "K",
     .groups = "G",
     .inner = "F",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .again = {"layer", "core", "mlp", "norm"}},
    {.name = "gemma2",
     .text = "import \"gemma2.etch\"\n",
     .run = "model = gemma2, optimizer = adamw",
     .sizes = DENSE ", window = 3",
     .heads = "K",
     .groups = "G",
     .inner = "F",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .again = {"layer", "attention", "mlp", "norm"},
     .whole_sequences = true},
    {.name = "t5",
     .text = "import \"t5.etch\"\n",
     .run = "model = t5, optimizer = adamw",
     .sizes = "batch = %b, src = %s, tgt = %s, enc_layers = 1, dec_layers = %l, hidden = %w, heads = %h, "
              "head_dim = 2, ffn = %f, vocab = "
              "%v, buckets = 4",
     .heads = "A",
     .inner = "F",
     .pins = {"residual", "answer"},
     .seqs = {"S", "U"},
     .again = {"enc", "dec", "mlp", "attention"}},
    {.name = "mamba2",
     .text = "import \"mamba2.etch\"\n",
     .run = "model = mamba2, optimizer = adamw",
     .sizes = "batch = %b, seq = %s, layers = %l, hidden = 2*%h, head_dim = 2, groups = %h, state = 2, conv "
              "= 2, chunk = 2, vocab = %v",
     .heads = "K",
     .pins = {"residual"},
     .seqs = {"S"},
     .again = {"layer", "mixer", "norm", NULL},
     .whole_sequences = true},
    {.name = "nemotron_h",
     .text = "import \"nemotron_h.etch\"\n",
     .run = "model = nemotron_h, optimizer = adamw",
     .sizes = "pattern = \"M*-M\", batch = %b, seq = %s, hidden = %w, kv_heads = 4, heads = %g*4, "
              "attention_dim = 2, ffn = %f, inner = 2*%h, head_dim = 2, groups = %h, state = 2, conv = 2, "
              "chunk = 2, vocab = %v",
     .heads = "K",
     .groups = "Q",
     .inner = "F",
     .pins = {"residual"},
     .seqs = {"S"},
     .again = {"layer", "mixer", "mlp", "norm"},
     .whole_sequences = true},
    {.name = "mixtral",
     .text = "import \"mixtral.etch\"\n",
     .run = "model = mixtral, optimizer = adamw(master = true)",
     .sizes = SPARSE,
     .heads = "K",
     .groups = "G",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .experts = "experts_mlp",
     .again = {"layer", "core", "moe", "norm"}},
    {.name = "qwen3_moe",
     .text = "import \"qwen3_moe.etch\"\n",
     .run = "model = qwen3_moe, optimizer = adamw",
     .sizes = SPARSE,
     .heads = "K",
     .groups = "G",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .experts = "experts_mlp",
     .again = {"layer", "attention", "moe", "experts_mlp"}},
    {.name = "minimax",
     .text = "import \"minimax.etch\"\n",
     .run = "model = minimax, optimizer = adamw",
     .sizes = SPARSE ", rotary_dim = 1, chunk = 2",
     .heads = "K",
     .groups = "G",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .experts = "experts_mlp",
     .again = {"layer", "lightning", "moe", "experts_mlp"},
     .whole_sequences = true},
    {.name = "gpt_oss",
     .text = "import \"gpt_oss.etch\"\n",
     .run = "model = gpt_oss, optimizer = adamw",
     .sizes = SPARSE ", window = 3",
     .heads = "K",
     .groups = "G",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .experts = "experts_mlp",
     .again = {"layer", "attention", "moe", "experts_mlp"},
     .whole_sequences = true},
    {.name = "deepseek_v3",
     .text = "import \"deepseek_v3.etch\"\n",
     .run = "model = deepseek_v3, optimizer = adamw(master = true)",
     .sizes = "batch = %b, seq = %s, layers = %l, dense_layers = 1, hidden = %w, heads = %h, q_rank = 3, "
              "kv_rank = 2, nope = 1, rope_dim = 2, v_dim "
              "= 2, ffn = %f, vocab = %v, experts = %e, topk = 2, expert_ffn = %f, shared = 1",
     .heads = "A",
     .inner = "F",
     .shared = "J",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .experts = "experts_mlp",
     .again = {"layer", "mla", "moe", "kv_up"}},
    {.name = "glm4_moe",
     .text = "import \"glm4_moe.etch\"\n",
     .run = "model = glm4_moe, optimizer = adamw",
     .sizes = SPARSE ", rotary_dim = 1, dense_layers = 1, shared = 1, biased = 1, head_norms = 1",
     .heads = "K",
     .groups = "G",
     .inner = "F",
     .shared = "J",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .experts = "experts_mlp",
     .again = {"layer", "core", "moe", "norm"}},
    {.name = "llama4",
     .text = "import \"llama4.etch\"\n",
     .run = "model = llama4, optimizer = adamw",
     .sizes = "batch = %b, seq = %s, layers = 4, hidden = %w, kv_heads = %h, heads = %g*%h, head_dim = 2, "
              "ffn = %f, vocab = %v, experts = %e, topk = 1, expert_ffn = %f, chunk = 2, moe_every = 2, "
              "head_norms = 1",
     .heads = "K",
     .groups = "G",
     .inner = "F",
     .shared = "J",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .experts = "experts_mlp",
     .again = {"layer", "core", "moe", "norm"},
     .whole_sequences = true},
    {.name = "tower",
     .text = vision,
     .run = "model = tower, optimizer = adamw",
     .sizes = "batch = %b, seq = 2*%s, patches = %s, layers = 1, hidden = %w, kv_heads = %h, heads = %g*%h, "
              "head_dim = 2, ffn = %f, vocab = %v",
     .heads = "K",
     .groups = "G",
     .inner = "F",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .tower = "vision",
     .again = {"layer", "core", "vision", "norm"}},
    {.name = "beside",
     .text = beside,
     .run = "model = beside, optimizer = adamw",
     .sizes = DENSE,
     .heads = "K",
     .groups = "G",
     .inner = "F",
     .pins = {"residual"},
     .seqs = {"S"},
     .core = "core",
     .again = {"layer", "core", "mlp", "norm"}},
    {.name = "dlrm",
     .text = tables,
     .run = "model = dlrm, optimizer = adamw",
     .sizes = "batch = %b, rows = %v, width = %h, hots = 2, inner = %f",
     .inner = "F",
     .pins = {"features"},
     .tables = "tables",
     .again = {"bottom", "top", "tables", NULL}},
    {.name = NULL},
};
