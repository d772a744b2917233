"""Models that are served: a prompt costs the same at once, in pieces, and token by token; traces of a run are
what queries say of it, and what arithmetic says that knows nothing of graphs."""

import json

import test_shipped
from etchtest import (MODELS, Case, attribute, lower, main, messages, number, run, settings, succeed, trace,
                      traces, value)

SERVE = MODELS / "serve.etch"
SMALL = dict(layers=3, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=48, vocab=64, batch=4)
HALF = 2  # bytes of an activation, of a weight, of what is cached


def kernels_of_a_layer(batch, new, past, tp=1, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=48, **_):
    """(FLOP, bytes) of what one rank computes in a layer, in order; keys and values are written where they
    are kept."""
    rows = batch * new
    wide, narrow, inner = heads * head_dim // tp, kv_heads * head_dim // tp, ffn // tp
    pairs = sum(past + i + 1 for i in range(new))
    norm = (4 * rows * hidden, HALF * (2 * rows * hidden + hidden))

    def product(left, right, more=0):
        return 2 * rows * left * right + more, HALF * (rows * left + left * right + rows * right)

    rotated = product(hidden, wide, 3 * rows * wide)
    attention = (4 * batch * pairs * wide, HALF * (2 * rows * wide + 2 * batch * (past + new) * narrow))
    gate = product(hidden, inner, 5 * rows * inner)
    up = product(hidden, inner, rows * inner)
    added = (rows * hidden, HALF * 3 * rows * hidden)
    return {"norm": norm, "q": rotated, "k": product(hidden, narrow, 3 * rows * narrow),
            "v": product(hidden, narrow),
            "attention": attention, "gate": gate, "up": (up[0], up[1] + HALF * rows * inner), "added": added}


class Values:
    def __init__(self, values):
        vars(self).update(values)




def latent(layers, v):
    """Keys and values of one token, from what latent attention keeps of it."""
    return v.batch * layers * 2 * v.kv_rank * v.heads * (v.nope + v.v_dim)


# What each step makes anew of all tokens that are kept, FLOP of one of these: keys and values where caches
# hold less than attention reads; what ALiBi adds to the scores.
EXPANDED = {"deepseek_v2.etch": lambda v: latent(v.layers, v),
            "deepseek_v3.etch": lambda v: latent(v.layers + v.mtp, v),
            "kimi_k2.etch": lambda v: latent(v.layers + v.mtp, v),
            "bloom.etch": lambda v: v.layers * v.heads}
# They see all positions, train on pairs of sequences, attend in chunks, or begin with an image.
NO_DECODERS = {"albert.etch", "bert.etch", "clip.etch", "dit.etch", "dit_blocks.etch", "dpo.etch",
               "llama4.etch", "llava.etch", "vit.etch"}


class Serving(Case):
    def lowered(self, name, plan="split", **sets):
        folder = lower(self.scratch / f"{name}.{len(list(self.scratch.iterdir()))}", SERVE, plan=plan,
                       sets={**SMALL, **sets}, more=["-q", "--run", name])
        self.assertFine(folder)
        self.assertEqual(name, json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["run"])
        told = run("verify", folder, "--format", "json")
        self.assertEqual("always", json.loads(told.out)["verdict"])
        return folder

    def work(self, name, **sets):
        """FLOP of a rank, from its trace."""
        folder = self.lowered(name, **sets)
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        padding = int(manifest["stages"][0]["flop_padding"])
        return trace.totals(folder)[0]["num_ops"] - padding

    def test_a_prompt_in_pieces_costs_the_same(self):
        whole = self.work("prefill", seq=6)
        self.assertEqual(whole, self.work("prefill", seq=2) + self.work("chunk", new=4, context=2))
        self.assertEqual(whole,
                         self.work("prefill", seq=1) +
                         sum(self.work("decode", context=n) for n in range(1, 6)))
        self.assertEqual(self.work("chunk", new=1, context=7, tp=2), self.work("decode", context=7, tp=2))

    def test_every_shipped_decoder(self):
        """The same for each model that keeps what it has seen, windows and experts included; an answer is its
        tokens."""
        found = 0
        for spec in test_shipped.SPECS:
            names, models = test_shipped.params_of(spec), test_shipped.listing(spec)["models"]
            if not {"past", "seq"} <= names or "src" in names or spec == SERVE or len(models) != 1:
                continue  # no cache, or two sequences
            if spec.name in NO_DECODERS:
                continue
            found += 1
            block = f"model = {models[0]}, seq = 1, past = context"
            served = self.write(f"{spec.stem}.etch", f"""etch 1
import "{spec}"
param context = 8, n = 6
infer prompt {{ model = {models[0]}, seq = n, past = 0 }}
infer token {{ {block} }}
infer answer {{ {block}, steps = n }}
""")
            small = {name: size for name,
                     size in test_shipped.SMALL.items() if name in names - {"seq", "past"}}
            small.update({"window": 3} if "window" in names else {})
            small.update({"chunk": 1} if "chunk" in names else {})  # of a scan, so that a token is one

            def flops(of_run, **sizes):
                done = succeed("query", served, f"flops(step, run = {of_run})", "--defaults", "--set",
                               settings({**small, **sizes}))
                return number(done.out)

            with self.subTest(spec=spec.name):
                token = [flops("prompt", n=1)] + [flops("token", context=past) for past in range(1, 6)]
                again = EXPANDED.get(spec.name, lambda v: 0)(Values(small))
                self.assertEqual(sum(token), flops("prompt", n=6) + again * sum(range(6)))
                self.assertEqual(sum(token[2:5]), flops("answer", context=2, n=3))
        self.assertGreater(found, 5)

    def test_traces_are_what_queries_say(self):
        for name in ("prefill", "chunk", "decode"):
            for mesh in (dict(), dict(dp=2), dict(tp=4), dict(dp=2, tp=2)):
                sizes = {"prefill": dict(seq=5), "chunk": dict(new=3, context=4),
                         "decode": dict(context=9)}[name]
                with self.subTest(name, **mesh):
                    sets = {**SMALL, "dp": 1, "tp": 1, **mesh, **sizes}
                    folder = self.lowered(name, **sets)
                    self.assertTotals(folder, SERVE, None, "split", sets, of_run=name)

    def test_nodes_of_a_layer(self):
        """FLOP and bytes of each node, counted by hand."""
        for name, new, past, sizes in (("prefill", 5, 0, dict(seq=5)),
                                       ("chunk", 3, 4, dict(new=3, context=4)),
                                       ("decode", 1, 9, dict(context=9))):
            for tp in (1, 2):
                with self.subTest(name, tp=tp):
                    path = traces(self.lowered(name, tp=tp, **sizes))[0]
                    layer = [node for node in messages(path) if ".layer1." in f"{node.name}."]
                    found = [(attribute(node, "num_ops"), attribute(node, "tensor_size")) for node in layer
                             if node.type == trace.COMP]
                    for what, pair in kernels_of_a_layer(new=new, past=past, tp=tp, **SMALL).items():
                        if what == "added" and tp == 1:
                            continue  # part of the product before it
                        self.assertIn(pair, found, (what, [node.name for node in layer]))
                    self.assertEqual(2 if tp > 1 else 0, len(layer) - len(found))
                    self.assertTrue(all(node.name.startswith("F") for node in messages(path)))

    def test_what_is_cached(self):
        """Published sizes of a token's keys and values: 128 KiB in Llama-3 8B, 320 KiB in Llama-2 and 3
        70B."""
        for config, kib in (("llama3_8b", 128), ("llama3_70b", 320), ("llama2_70b", 320), ("llama2_7b", 512)):
            held = value(SERVE, "memory(cache, run = decode)", config, "split",
                         dict(batch=3, context=99, dp=1, tp=1))
            self.assertEqual(3 * 100 * kib * 1024, held)
            shared = value(SERVE, "memory(cache, run = decode)", config, "split",
                           dict(batch=3, context=99, dp=3, tp=8))
            self.assertEqual(held, 24 * shared)

    def test_stages(self):
        """Each stage holds the caches of its layers, and hands on one token of each sequence."""
        sets = {**SMALL, "pp": 2, "context": 9}
        folder = self.lowered("decode", plan="staged", **sets)
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        asked = {**sets, "dp": 1, "tp": 1}
        held = [value(SERVE, f"memory(cache, run = decode, stage = {stage})", None, "staged", asked)
                for stage in (0, 1)]
        a_layer = SMALL["batch"] * 10 * 2 * SMALL["kv_heads"] * SMALL["head_dim"] * HALF
        self.assertEqual([2 * a_layer, a_layer], held)  # embedding, three layers, head
        message = SMALL["batch"] * SMALL["hidden"] * HALF
        self.assertEqual([("send", message), ("recv", message)],
                         [(row["collective"], int(row["bytes"])) for stage in manifest["stages"]
                          for row in stage["comm"]])

    def test_the_run_is_named(self):
        for arguments in (("lower", SERVE, "--plan", "split", "-o", self.scratch / "out"),
                          ("query", SERVE, "flops(step)")):
            done = run(*arguments, "--set", settings(SMALL))
            self.assertEqual(1, done.status)
            self.assertIn("prefill, chunk, decode", done.err)
            self.assertFalse((self.scratch / "out").exists())


GEMMA3 = """etch 1
import "{models}/gemma3.etch"
param context = 8, new = 3, gen = 4
infer prefill {{ model = gemma3, output = z, past = 0 }}
infer chunk   {{ model = gemma3, output = z, seq = new, past = context }}
infer decode  {{ model = gemma3, output = z, seq = 1, past = context }}
infer answer  {{ model = gemma3, output = z, seq = 1, past = context, steps = gen }}
parallel split {{ mesh [dp, tp]; shard B @ dp, K @ tp, F @ tp, V @ tp }}
parallel parts {{ mesh [cp, tp]; shard S @ cp, K @ tp, F @ tp, V @ tp; balance = false }}
parallel staged {{ mesh [pp, tp]; shard K @ tp, F @ tp, V @ tp; stage layer @ pp }}
"""


HEAD = """etch 1
param b = 2, s = 1, past = 0, w = 3
dim B = b, S = s, T ~ past + S, D = 4
infer one {{ model = m }}
parallel p {{ mesh [dp]; shard B @ dp }}
"""
KEPT = {"module": HEAD + """module keep(k[B,S,D]) -> kc[B,T,D] {{
  kc = cache(k, over = S, window = {w})
}}
module core(q[B,S,D], kc[B,T,D]) -> o[B,S,D] {{
  o = sdpa(q, kc, kc, dot = D, over = T, causal = true, window = {w})
}}
model m(x[B,S,D]) -> y[B,S,D] {{
  weight wk[D,D']
  k[B,S,D'] = x * wk
  y = core(x, keep(k[D'->D]))
}}
""", "line": HEAD + """model m(x[B,S,D]) -> y[B,S,D] {{
  weight wk[D,D']
  k[B,S,D'] = x * wk
  z = k[D'->D]
  kc[B,T,D] = cache(z, over = S, window = {w})
  kd = kc
  y = sdpa(x, kc, kd, dot = D, over = T, causal = true, window = {w})
}}
""", "scores": HEAD + """model m(x[B,S,D]) -> y[B,S,D] {{
  weight wk[D,D']
  k[B,S,D'] = x * wk
  z = k[D'->D]
  kc[B,T,D] = cache(z, over = S, window = {w})
  s[B,S,T] = x * kc
  p = softmax(s, over = T, causal = true, window = {w})
  y[B,S,D] = p * kc
}}
"""}


class Rolling(Case):
    """Five of six layers see a window, and their caches keep no more."""
    SMALL = dict(layers=7, hidden=16, heads=4, kv_heads=2, head_dim=4, ffn=24, vocab=32, batch=2)

    def setUp(self):
        super().setUp()
        self.spec = self.write("gemma3.etch", GEMMA3.format(models=MODELS))

    @staticmethod
    def kept(layers, seen, window, batch, kv_heads, head_dim, **_):
        """Position by position, layer by layer."""
        positions = sum(1 for layer in range(layers) for at in range(seen)
                        if layer % 6 == 5 or at >= seen - window)
        return positions * batch * 2 * kv_heads * head_dim * HALF

    @staticmethod
    def attention(layers, new, past, window, batch, heads, kv_heads, head_dim, **_):
        """Bytes that attention moves: each key that some query sees once, queries and results."""
        keys = sum(1 for layer in range(layers) for at in range(past + new)
                   if layer % 6 == 5 or at > past - window)
        return batch * HALF * head_dim * (keys * 2 * kv_heads + layers * 2 * new * heads)

    def test_published(self):
        """The caches of 32768 tokens: 29 of 34 layers hold 1024 of them in Gemma 3 4B, 22 of 26 hold 512 in
        1B, 52 of 62 hold 1024 in 27B."""
        for config, bytes_of, all_of, windows, window in (("gemma3_4b", 2 * 4 * 256 * 2, 5, 29, 1024),
                                                          ("gemma3_1b", 2 * 1 * 256 * 2, 4, 22, 512),
                                                          ("gemma3_27b", 2 * 16 * 128 * 2, 10, 52, 1024)):
            for asked, sizes in (("decode", dict(context=32767)), ("prefill", dict(seq=32768))):
                held = value(self.spec, f"memory(cache, run = {asked})", config, "split",
                             dict(sizes, batch=1, dp=1, tp=1))
                self.assertEqual(bytes_of * (all_of * 32768 + windows * window), held)
        self.assertEqual(792723456, 2 * 4 * 256 * 2 * (5 * 32768 + 29 * 1024))

    def test_against_counting(self):
        for window in (1, 2, 5, 30):
            for asked, new, past, sizes in (("prefill", 6, 0, dict(seq=6)), ("prefill", 1, 0, dict(seq=1)),
                                            ("chunk", 3, 4, dict(new=3, context=4)),
                                            ("chunk", 7, 2, dict(new=7, context=2)),
                                            ("decode", 1, 9, dict(context=9))):
                sets = dict(self.SMALL, window=window, dp=1, tp=1, **sizes)
                with self.subTest(asked, **sets):
                    self.assertEqual(self.kept(seen=past + new, **{**self.SMALL, "window": window}),
                                     value(self.spec, f"memory(cache, run = {asked})", None, "split", sets))
                    rows = succeed("query", self.spec, f"traffic(step, run = {asked})", "--plan", "split",
                                   "--by", "op", "--set", settings(sets)).out
                    attended = next(int(row[4:]) for row in rows.splitlines() if row.startswith("sdpa"))
                    self.assertEqual(self.attention(new=new, past=past, **{**self.SMALL, "window": window}),
                                     attended)

    def test_an_answer_is_its_tokens(self):
        for window in (2, 6):
            sets = dict(self.SMALL, window=window, dp=1, tp=1)
            for asked in ("traffic(step, run = {})", "flops(step, run = {})"):
                steps = [value(self.spec, asked.format("decode"), None, "split", dict(sets, context=past))
                         for past in range(3, 7)]
                self.assertEqual(sum(steps), value(self.spec, asked.format("answer"), None, "split",
                                                   dict(sets, context=3, gen=4)))
            self.assertEqual(self.kept(seen=7, **{**self.SMALL, "window": window}),
                             value(self.spec, "memory(cache, run = answer)", None, "split",
                                   dict(sets, context=3, gen=4)))

    def test_what_a_prompt_shows_is_there_while_it_is_read(self):
        """Rows of keys that are not kept: 8 bytes each, beside results of 8 and statistics of 4."""
        spec = self.write("line.etch", KEPT["line"].format(w="w"))
        for window in (1, 3, 16, 32, 64):
            for new, past in ((32, 0), (8, 0), (8, 40), (1, 40)):
                sets = dict(b=2, s=new, past=past, w=window, dp=1)
                held, work = (value(spec, f"memory({what})", None, "p", sets)
                              for what in ("cache", "workspace"))
                shown = min(past, window - 1) + new
                self.assertEqual((16 * min(past + new, window), 2 * (8 * shown + 12 * new)),
                                 (held, held + work))

    def test_ranks_and_traces(self):
        for plan, mesh in (("split", dict(dp=2, tp=2)), ("split", dict(dp=1, tp=2)),
                           ("parts", dict(cp=2, tp=2)), ("staged", dict(pp=3, tp=2))):
            for asked, sizes in (("prefill", dict(seq=6)), ("chunk", dict(new=4, context=5)),
                                 ("decode", dict(context=9))):
                if plan == "parts" and asked == "decode":
                    continue  # nothing to divide
                sets = dict(self.SMALL, window=4, **mesh, **sizes)
                with self.subTest(plan, asked=asked, **mesh):
                    name = f"{plan}.{asked}.{len(list(self.scratch.iterdir()))}"
                    folder = lower(self.scratch / name, self.spec, plan=plan, sets=sets,
                                   more=["-q", "--run", asked])
                    self.assertFine(folder)
                    if plan == "split":
                        self.assertTotals(folder, self.spec, None, plan, sets, of_run=asked)
                    held = sum(value(self.spec, f"memory(cache, run = {asked}, stage = {stage})", None, plan,
                                     sets) for stage in range(mesh.get("pp", 1)))
                    seen = {"prefill": 6, "chunk": 9, "decode": 10}[asked]
                    self.assertEqual(self.kept(seen=seen, **{**self.SMALL, "window": 4}),
                                     held * 2 * mesh.get("dp", 1))

    def test_modules_and_rows_in_line(self):
        """A cache is one wherever it is written: in a module of its own, in the block, with an alias."""
        for name, text in KEPT.items():
            spec = self.write(f"{name}.etch", text.format(w=3))
            for new, past in ((1, 9), (4, 0), (4, 1), (2, 5)):
                sets = dict(b=2, s=new, past=past, dp=1)
                with self.subTest(name, **sets):
                    self.assertEqual(min(new + past, 3) * 2 * 4 * HALF,
                                     value(spec, "memory(cache)", None, "p", sets))
                    if name == "scores":
                        shown = min(past + new, 3 + new - 1)
                        self.assertEqual(2 * 2 * 4 * new * (4 + 2 * shown) + 5 * 2 * new * shown,
                                         value(spec, "flops(step)", None, "p", sets))


if __name__ == "__main__":
    main()
