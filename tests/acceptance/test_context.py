"""Context parallelism: the sequence is divided over ranks, which gather the keys and values of all before
attention. Each rank has an early and a late chunk of the queries, so that causal work is the same for all."""

import itertools
import math
from fractions import Fraction

from decoder import BF16, F32
from etchtest import GPT, LLAMA, Case, Formula, ask, lower, main, options, run, traces, value
from test_collectives import COLLECTIVES
from test_numbers import LLAMA_DIMS
from test_zero import edited, llama_weights

SIZES = dict(layers=2, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=56, vocab=48)
PLANS = """
parallel context {
  mesh  [dp, cp]
  shard B @ dp, S @ cp
}
"""


def keys_and_values(v):
    """Bytes of the keys, or the values, of one layer and microbatch, of all tokens of a rank's sequences."""
    return BF16 * v.batch / v.micro / v.dp * v.seq * v.kv_heads / v.tp * v.head_dim


def collectives(v):
    """(phase, collective, axes) -> bytes of one rank under `context_gather`."""
    calls = v.micro * v.layers
    whole = BF16 * v.batch / v.micro / v.dp * v.seq / v.cp * v.hidden  # the residual, of a coordinate of cp
    shard = whole / v.tp
    heads = keys_and_values(v)
    tally = {
        ("forward", "all_gather", "cp"): calls * 2 * heads / v.cp,
        ("backward", "all_gather", "cp"): calls * 2 * heads / v.cp,  # again: what is saved is the shards
        ("backward", "reduce_scatter", "cp"): calls * 2 * heads,
        ("forward", "all_gather", "tp"): v.micro * shard + calls * 2 * shard,
        ("forward", "reduce_scatter", "tp"): v.micro * whole + calls * 2 * whole,
        ("forward", "all_reduce", "tp"): v.micro * 3 * F32 * v.batch / v.micro / v.dp * v.seq / v.cp,
        ("backward", "all_gather", "tp"): (2 * v.micro + 4 * calls) * shard,
        ("backward", "reduce_scatter", "tp"): (v.micro + 2 * calls) * whole,
    }
    sync = {"reduce_scatter": 0, "all_gather": 0, "all_reduce": 0}
    for elements, divided, count in llama_weights(v):
        part = math.ceil((elements / v.tp if divided else elements) / (v.dp * v.cp))
        sync["reduce_scatter"] += count * F32 * part * v.dp * v.cp
        sync["all_gather"] += count * BF16 * part
        sync["all_reduce"] += 0 if divided else count * F32 * part
    tally["sync", "reduce_scatter", "(dp,cp)"] = sync["reduce_scatter"]
    tally["sync", "all_gather", "(dp,cp)"] = sync["all_gather"]
    tally["sync", "all_reduce", "tp"] = sync["all_reduce"]
    return tally


class Formulas(Case):
    def test_collectives(self):
        for phase, op, axis in itertools.product(("forward", "backward", "sync", "optimizer"), COLLECTIVES,
                                                 ("dp", "cp", "tp", "(dp,cp)", "(dp,cp,tp)")):
            with self.subTest(phase=phase, op=op, axis=axis):
                text = ask(LLAMA, f"comm({phase}, op = {op}, axis = {axis})", plan="context_gather")
                self.assertFormula(lambda v: collectives(v).get((phase, op, axis), 0), text, LLAMA_DIMS)
        self.assertFormula(lambda v: sum(collectives(v).values()),
                           ask(LLAMA, "comm(step)", plan="context_gather"),
                           LLAMA_DIMS)

    def test_ring_traffic_of_keys_and_values(self):
        """2 b s kv d (cp - 1)/cp elements per layer forward; the same again, and their gradients back,
        backward."""
        for phase, times in (("forward", 1), ("backward", 2)):
            text = ask(LLAMA, f"wire({phase}, axis = cp)", plan="context_gather")
            self.assertFormula(lambda v: times * v.micro * v.layers * 2 * keys_and_values(v) *
                               (v.cp - 1) / v.cp, text,
                               LLAMA_DIMS)

    def test_work_is_shared_evenly(self):
        """All work of the layers is divided by cp, that of causal attention to the last pair."""
        for phase in ("forward", "backward"):
            one = Formula(ask(LLAMA, f"rank_flops({phase})", plan="megatron_sp"), LLAMA_DIMS)
            text = ask(LLAMA, f"rank_flops({phase})", plan="context_gather")
            self.assertFormula(lambda v: one.at(v) / v.cp, text, LLAMA_DIMS)

    def test_proved(self):
        checks = """
check rank_flops(forward, op = sdpa, plan = context)*dp*cp == flops(forward, op = sdpa)
check rank_flops(backward, op = sdpa_bwd, plan = context)*dp*cp == flops(backward, op = sdpa_bwd)
"""
        spec = self.write("llama.etch", edited(PLANS + "param dp, cp\n" + checks))
        done = run("check", spec, "--plan", "context")
        self.assertEqual((0, 4), (done.status, done.out.count("\nproved ")), done)


class Pairs(Case):
    """The rank i of cp has the chunks i and 2 cp - 1 - i of 2 cp: counted, one by one."""

    @staticmethod
    def pairs(rank, cp, seq):
        chunk = seq // (2 * cp)
        queries = [chunk * place + i for place in (rank, 2 * cp - 1 - rank) for i in range(chunk)]
        return sum(1 for query in queries for key in range(seq) if key <= query)

    def test_every_rank_has_the_same(self):
        for cp, seq in ((1, 8), (2, 8), (2, 12), (4, 8), (4, 24), (8, 48)):
            found = {self.pairs(rank, cp, seq) for rank in range(cp)}
            self.assertEqual({Fraction(seq * (seq + 1), 2 * cp)}, found)
            sets = {**SIZES, "batch": 4, "seq": seq, "micro": 1, "dp": 2, "cp": cp, "tp": 2}
            each = 4 * SIZES["layers"] * 4 // 2 * SIZES["heads"] // 2 * SIZES["head_dim"]
            self.assertEqual(each * found.pop(),
                             value(LLAMA, "rank_flops(forward, op = sdpa)", plan="context_gather", sets=sets))

    def test_chunks_must_come_out_even(self):
        sets = {**SIZES, "batch": 4, "micro": 1, "dp": 2, "tp": 1}
        for cp, seq, fits in ((2, 8, True), (2, 6, False), (3, 9, False), (3, 12, True), (1, 5, True)):
            with self.subTest(cp=cp, seq=seq):
                bound = options(plan="context_gather", sets={**sets, "cp": cp, "seq": seq})
                done = run("lower", LLAMA, "--dry-run", *bound)
                self.assertEqual((0, []) if fits else (1, ["E0523"]),
                                 (done.status, [error["code"] for error in done.errors()]), done)
                if not fits:
                    self.assertIn(f"cp * 2 = {cp} * 2 = {2 * cp}", done.errors()[0]["text"])
        done = run("check", LLAMA, "--plan", "context_gather")
        self.assertIn("cp*min(cp, 2) | seq", done.out)

    def test_chunks_of_the_sequence_are_whole(self):
        """What the sequence is split into lies on ranks as it does: an early part and a late one, of whole
        chunks each; so does what is split again, or merged from chunks."""
        text = """etch 1
param batch, seq, hidden, chunk
dim B = batch, S = seq, T = seq, H = hidden, Z = seq/chunk, L = chunk, U = seq, W = seq
model m(x[B,S,H]) -> z[B,Z,H] {
  a[B,S,H]   = sdpa(x, x[S->T], x[S->T], dot = H, over = T, causal = CAUSAL)
  b[B,U,H]   = a[S->U]
  c[B,Z,L,H] = b[U->(Z,L)]
  z[B,Z,H]   = mean(c, over = L)
}
parallel even { mesh [cp]; shard S @ cp }
parallel parts { mesh [cp]; shard S @ cp; balance = false }
"""
        sizes = {"batch": 2, "hidden": 4, "seq": 24}
        for causal, plan, paired in (("true", "even", True), ("true", "parts", False),
                                     ("false", "even", False)):
            spec = self.write("m.etch", text.replace("CAUSAL", causal))
            asked = run("check", spec, "--plan", plan).out
            self.assertEqual(paired, "cp*min(cp, 2) | seq/chunk" in asked, asked)
            self.assertEqual(not paired, "  cp | seq/chunk" in asked, asked)
            for cp, chunk in ((2, 6), (2, 4), (2, 12), (3, 4), (3, 8), (1, 24)):
                with self.subTest(causal=causal, plan=plan, cp=cp, chunk=chunk):
                    done = run("lower", spec, "--dry-run",
                               *options(plan=plan, sets={**sizes, "cp": cp, "chunk": chunk}))
                    fits = cp == 1 or 24 // chunk % (2 * cp if paired else cp) == 0
                    self.assertEqual((0, []) if fits else (1, ["E0523"]),
                                     (done.status, [error["code"] for error in done.errors()]), done)
                    if not fits:
                        self.assertIn(f"Z = seq/chunk = {24 // chunk}", done.errors()[0]["text"])

    def test_attention_that_sees_everything_needs_no_chunks(self):
        """GPT's attention is written out, and not causal: any division of the queries is even."""
        spec = self.write("gpt.etch", GPT.read_text(encoding="utf-8") + PLANS)
        sets = dict(layers=2, hidden=32, heads=8, vocab=48, positions=24, batch=4, micro=1, dp=2, cp=3, seq=9)
        folder = lower(self.scratch / "out", spec, plan="context", sets=sets)
        self.assertFine(folder)
        self.assertTotals(folder, spec, None, "context", sets)


class Traces(Case):
    def test_totals(self):
        for mesh in (dict(dp=1, cp=2, tp=1), dict(dp=2, cp=2, tp=2), dict(dp=1, cp=4, tp=2),
                     dict(dp=3, cp=2, tp=1),
                     dict(dp=2, cp=1, tp=2), dict(dp=1, cp=1, tp=1)):
            with self.subTest(**mesh):
                sets = {**SIZES, **mesh, "batch": 12, "micro": 2, "seq": 16}
                folder = lower(self.scratch / "x".join(str(size) for size in mesh.values()), LLAMA,
                               plan="context_gather", sets=sets)
                self.assertFine(folder)
                self.assertTotals(folder, LLAMA, None, "context_gather", sets)
                self.assertEqual(mesh["dp"] * mesh["cp"] * mesh["tp"], len(traces(folder)))

    def test_one_program_for_all_ranks(self):
        """Balanced ranks differ in nothing but their groups."""
        sets = {**SIZES, "batch": 4, "micro": 1, "seq": 16, "dp": 1, "cp": 4, "tp": 1}
        done = run("lower", LLAMA, "--dry-run", *options(plan="context_gather", sets=sets))
        self.assertRegex(done.out, r"ranks +4 in 1 class")

    def test_published_size(self):
        """Llama-3 405B at 131,072 tokens, cp = 16: keys and values of a layer are 2 x 131072 x 8 x 128
        elements."""
        sets = dict(dp=8, cp=16, tp=8, batch=128, micro=16, seq=131072)
        deep, flat = (value(LLAMA, "comm(forward, op = all_gather, axis = cp)", "llama3_405b",
                            "context_gather",
                            {**sets, "layers": layers}) for layers in (126, 125))
        self.assertEqual(16 * 2 * 2 * 131072 * 8 * 128 // (16 * 8), deep - flat)


if __name__ == "__main__":
    main()
