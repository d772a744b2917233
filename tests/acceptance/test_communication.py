"""What systems are published to communicate, derived and proved: each row is a query of what the graph gives,
and the formula of the paper. The formulas stand here alone. Each is proved for all values, and its answer is
held, as numbers, against the published formula by arithmetic of our own.

b is the sequences of a microbatch on one rank; formulas are in elements, of one microbatch and one layer
unless said."""

from etchtest import GPT, LLAMA, MODELS, Case, Formula, ask, lower, main, run, trace
from test_numbers import GPT_DIMS, LLAMA_DIMS

MIXTRAL = MODELS / "mixtral.etch"
MIXTRAL_DIMS = {**LLAMA_DIMS, "E": "experts", "Q": "topk", "I": "expert_ffn"}
BF16, F32 = 2, 4

# Divided evenly, in one dtype: then an element counts alike wherever it goes.
EVEN = """
param dp, tp, cp, pp
assume dp*cp*tp | hidden, tp*cp | {heads}, tp | {inner}, tp | vocab
"""
PLANS = """
parallel kept {{
  mesh  [dp, tp]
  shard B @ dp, {heads} @ tp, F @ tp, V @ tp
  pin   residual [B@dp, S@tp, H]
  keep = gathers
}}
parallel zero_1 {{
  mesh  [dp]
  shard B @ dp
  zero  1 @ dp
}}
parallel zero_2 {{
  mesh  [dp]
  shard B @ dp
  zero  2 @ dp, reduce = step
}}
parallel zero_3 {{                               # gathered once for all microbatches, and reduced once
  mesh  [dp]
  shard B @ dp
  zero  3 @ dp, keep = step, reduce = step
}}
parallel stages {{
  mesh  [pp, dp, tp]
  shard B @ dp, {heads} @ tp, F @ tp, V @ tp
  stage (embed, layer, head) @ pp
}}
parallel stages_by_3 {{
  mesh  [pp, dp, tp]
  shard B @ dp, {heads} @ tp, F @ tp, V @ tp
  stage (embed, layer, head) @ pp, schedule = interleaved(virtual = 3)
}}
"""


class Table(Case):
    b = "(B/(micro*dp))"

    def dense(self, model, heads, inner, dtype=""):
        name, dim = heads
        text = EVEN.format(heads=name, inner=inner) + PLANS.format(heads=dim)
        # What a layer runs again, and communicates for it, is no part of the table.
        lines = [] if model == LLAMA else model.read_text(encoding="utf-8").splitlines(True)
        train = "".join(line for line in lines if line.startswith("  model = "))
        train = train.replace(", recompute = layer", "")
        spec = f'etch 1\nimport "{model}"\n{dtype}{text}' + (f"train plain {{\n{train}}}\n" if train else "")
        return self.write(f"{model.stem}{len(dtype)}.etch", spec)

    def llama(self, dtype=""):
        return self.dense(LLAMA, ("kv_heads", "K"), "ffn", dtype)

    def gpt(self, dtype=""):
        return self.dense(GPT, ("heads", "A"), "4*hidden", dtype)

    def proved(self, spec, dims, query, published, width=BF16):
        """`published`: elements."""
        with self.subTest(spec=spec.stem, query=query):
            published = f"{width}*({published.format(b=self.b)})"
            done = run("prove", spec, f"{query} == {published}")
            self.assertEqual((0, "proved"), (done.status, done.out.strip()), done)
            self.assertFormula(Formula(published, dims).at, ask(spec, query), dims)

    # ---- tensor and sequence parallelism -------------------------------------------------------------------

    def of_layer(self, plan, published):
        for spec, dims, more in ((self.llama(), LLAMA_DIMS, ""), (self.gpt(), GPT_DIMS, ", run = plain")):
            for quantity, elements in published:
                self.proved(spec, dims, f"{quantity[:-1]}, of = layer, axis = tp, plan = {plan}{more})",
                            f"micro*{elements}")

    def test_tensor_parallelism(self):
        self.of_layer("megatron", (("wire(step)", "8*{b}*S*H*(tp - 1)/tp"),
                                   ("comm(forward, op = all_reduce)", "2*{b}*S*H"),
                                   ("comm(backward, op = all_reduce)", "2*{b}*S*H"),
                                   ("comm(step)", "4*{b}*S*H")))

    def test_sequence_parallelism_with_shards_gathered_again(self):
        self.of_layer("megatron_sp", (("wire(step)", "10*{b}*S*H*(tp - 1)/tp"),
                                      ("wire(step, op = all_gather)", "6*{b}*S*H*(tp - 1)/tp"),
                                      ("comm(step, op = reduce_scatter)", "4*{b}*S*H"),
                                      ("comm(step, op = all_reduce)", "0")))

    def test_sequence_parallelism_with_gathered_copies_kept(self):
        self.of_layer("kept", (("wire(step)", "8*{b}*S*H*(tp - 1)/tp"),
                               ("wire(step, op = all_gather)", "4*{b}*S*H*(tp - 1)/tp"),
                               ("comm(step, op = reduce_scatter)", "4*{b}*S*H"),
                               ("comm(step, op = all_reduce)", "0")))

    def test_vocabulary(self):
        """One all-reduce of the embedding's rows, a reduce-scatter with sequence parallelism; three of tokens
        in the loss."""
        for spec, dims, more in ((self.llama(), LLAMA_DIMS, ""), (self.gpt(), GPT_DIMS, ", run = plain")):
            tensor = "embed" if spec.stem.startswith("llama") else "gpt.e"
            self.proved(spec, dims, f"comm(forward, of = {tensor}, plan = megatron{more})", "micro*{b}*S*H")
            self.proved(spec, dims,
                        f"comm(forward, of = {tensor}, op = reduce_scatter, plan = megatron_sp{more})",
                        "micro*{b}*S*H")
            for plan in ("megatron", "megatron_sp"):
                self.proved(spec, dims, f"comm(step, of = loss, plan = {plan}{more})", "micro*3*{b}*S", F32)
                self.proved(spec, dims,
                            f"comm(forward, of = loss, op = all_reduce, axis = tp, plan = {plan}{more})",
                            "micro*3*{b}*S", F32)

    def test_gains_of_norms(self):
        """With sequence parallelism a rank of tp has seen a part of the tokens: their gradients are reduced
        over tp, too."""
        for spec, dims, norm, weights in ((self.llama(), LLAMA_DIMS, "norm", 1),
                                          (self.gpt(), GPT_DIMS, "ln", 2)):
            every = f"{weights}*(2*layers + 1)*H"
            # positions, and biases added to the residual
            other = "0" if norm == "norm" else "P*H + 2*layers*H"
            self.proved(spec, dims, "comm(sync, axis = (dp,tp), plan = megatron_sp)", f"{every} + {other}",
                        F32)
            self.proved(spec, dims, "comm(sync, axis = (dp,tp), plan = megatron)", "0", F32)

    def test_a_tied_embedding_is_reduced_once(self):
        spec = self.gpt()
        self.proved(spec, GPT_DIMS, "comm(sync, of = gpt.tok, plan = ddp)", "V*H", F32)
        self.proved(spec, GPT_DIMS, "comm(sync, of = gpt.tok, plan = megatron_sp)", "V*H/tp", F32)
        # Of a pipeline both ends have it: what is left of it after zero 1 is added up among them.
        for stage, times in (("first", 1), ("middle", 0), ("last", 1)):
            self.proved(spec, GPT_DIMS,
                        f"comm(sync, axis = pp, op = all_reduce, plan = stages, stage = {stage})",
                        f"{times}*V*H/tp", F32)

    # ---- data parallelism ----------------------------------------------------------------------------------

    def test_data_parallelism(self):
        """Once a step, however many microbatches there are."""
        for model, dims in ((self.llama, LLAMA_DIMS), (self.gpt, GPT_DIMS)):
            spec = model("dtype grads = bf16\n")
            psi = ask(spec, "params(model)")
            for plan in ("ddp", "zero_1", "zero_2"):
                for quantity in ("wire(step, plan = {})",
                                 "wire(sync, plan = {}) + wire(optimizer, plan = {})"):
                    self.proved(spec, dims, quantity.replace("{}", plan), f"2*({psi})*(dp - 1)/dp")
            self.proved(spec, dims, "comm(step, op = all_reduce, plan = ddp)", psi)
            self.proved(spec, dims, "comm(sync, op = reduce_scatter, plan = zero_1)", psi)
            self.proved(spec, dims, "comm(step, op = all_gather, plan = zero_1)", f"({psi})/dp")

    def test_weights_in_parts(self):
        """FSDP: a gather forward, one backward, a reduce-scatter, in each microbatch; what its root has (the
        table, last norm, head) is not gathered backward. HSDP adds the parts of the copies up, once."""
        spec = self.write("hsdp.etch", self.llama("dtype grads = bf16\n").read_text(encoding="utf-8")
                          + "param part\nassume part*tp | hidden\n")
        psi, root = f"({ask(spec, 'params(model)')})", "(2*V*H + H)"
        self.proved(spec, LLAMA_DIMS, "wire(step, plan = fsdp)", f"micro*(3*{psi} - {root})*(dp - 1)/dp")
        for phase, weights in (("forward", psi), ("backward", f"({psi} - {root})")):
            self.proved(spec, LLAMA_DIMS, f"wire({phase}, op = all_gather, plan = fsdp)",
                        f"micro*{weights}*(dp - 1)/dp")
        self.proved(spec, LLAMA_DIMS, "wire(step, op = reduce_scatter, plan = fsdp)",
                    f"micro*{psi}*(dp - 1)/dp")
        self.proved(spec, LLAMA_DIMS, "wire(step, plan = zero_3)", f"2*{psi}*(dp - 1)/dp")
        self.proved(spec, LLAMA_DIMS, "wire(step, axis = part, plan = hsdp)",
                    f"micro*(3*{psi} - {root})*(part - 1)/part")
        self.proved(spec, LLAMA_DIMS, "comm(step, axis = rep, op = all_reduce, plan = hsdp)", f"{psi}/part")
        self.proved(spec, LLAMA_DIMS, "wire(step, axis = rep, plan = hsdp)", f"2*{psi}/part*(rep - 1)/rep")

    # ---- stages --------------------------------------------------------------------------------------------

    def test_boundaries_of_stages(self):
        spec = self.llama()
        for stage, forward, backward in (("first", 1, 0), ("middle", 1, 1), ("last", 0, 1)):
            for plan, size in (("stages", "{b}*S*H"), ("megatron_pp", "{b}*S*H/tp")):
                self.proved(spec, LLAMA_DIMS, f"comm(forward, op = send, plan = {plan}, stage = {stage})",
                            f"{forward}*micro*{size}")
                self.proved(spec, LLAMA_DIMS, f"comm(backward, op = send, plan = {plan}, stage = {stage})",
                            f"{backward}*micro*{size}")
        # A stage with v chunks sends v times; the last chunk of all has no next one, the first none before.
        for plan, size, chunks in (("stages_by_3", "{b}*S*H", 3), ("megatron_interleaved", "{b}*S*H/tp", 2)):
            for stage, forward, backward in (("first", chunks, chunks - 1), ("middle", chunks, chunks),
                                             ("last", chunks - 1, chunks)):
                for phase, times in (("forward", forward), ("backward", backward)):
                    self.proved(spec, LLAMA_DIMS, f"comm({phase}, op = send, plan = {plan}, stage = {stage})",
                                f"{times}*micro*{size}")

    # ---- context -------------------------------------------------------------------------------------------

    def test_context_by_gathers(self):
        spec, kv = self.llama(), "{b}*S*(K/tp)*D"
        query = "wire({}, of = layer, axis = cp, plan = context_gather)"
        self.proved(spec, LLAMA_DIMS, query.format("forward, op = all_gather"), f"micro*2*{kv}*(cp - 1)/cp")
        self.proved(spec, LLAMA_DIMS, query.format("forward"), f"micro*2*{kv}*(cp - 1)/cp")
        self.proved(spec, LLAMA_DIMS, query.format("backward, op = reduce_scatter"),
                    f"micro*2*{kv}*(cp - 1)/cp")
        # once more
        self.proved(spec, LLAMA_DIMS, query.format("backward, op = all_gather"), f"micro*2*{kv}*(cp - 1)/cp")

    def test_context_by_all_to_alls(self):
        spec = self.llama()
        for phase in ("forward", "backward"):
            for more in ("", ", op = all_to_all"):
                self.proved(spec, LLAMA_DIMS, f"wire({phase}, of = layer, axis = cp, plan = ulysses{more})",
                            "micro*(2*heads + 2*K)/tp*D*{b}*S/cp*(cp - 1)/cp")
        sets = dict(layers=1, hidden=64, heads=8, kv_heads=4, head_dim=8, ffn=96, vocab=128, batch=4, seq=32,
                    micro=1,
                    dp=1, cp=4, tp=1)
        folder = lower(self.scratch / "ulysses", LLAMA, None, "ulysses", sets)
        found = [comm for row in trace.totals(folder) for comm in row["comm"]
                 if comm["collective"] == "all_to_all"]
        # four, and four backward; all ranks run one program
        self.assertEqual([8], [comm["nodes"] for comm in found])

    # ---- experts -------------------------------------------------------------------------------------------

    def test_experts(self):
        spec = self.write("experts.etch", f'etch 1\nimport "{MIXTRAL}"\nparam dp, ep, tp\nassume ep | dp\n')
        tokens = "B*S/(micro*dp*tp)"
        query = "wire({}, of = layer, op = all_to_all, axis = ep, plan = moe_ep)"
        self.proved(spec, MIXTRAL_DIMS, query.format("step"), f"micro*4*{tokens}*Q*H*(ep - 1)/ep")
        self.proved(spec, MIXTRAL_DIMS, query.format("forward"), f"micro*2*{tokens}*Q*H*(ep - 1)/ep")
        self.proved(spec, MIXTRAL_DIMS, "wire(step, of = layer, axis = ep, plan = moe_ep)",
                    f"micro*4*{tokens}*Q*H*(ep - 1)/ep")


if __name__ == "__main__":
    main()
