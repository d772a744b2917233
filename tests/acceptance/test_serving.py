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


# Caches that hold less than attention reads: each step makes keys and values of all that is kept, FLOP of one
# token of these.
EXPANDED = {"deepseek_v3.etch": lambda v: v.batch * (v.layers + v.mtp) * 2 * v.kv_rank * v.heads *
            (v.nope + v.v_dim)}


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


if __name__ == "__main__":
    main()
