"""What one rank holds: weights and what belongs to them, activations of the microbatches under way, and what
is worked on. Held against ZeRO (arXiv 1910.02054), the documentation of Megatron's distributed optimizer,
Korthikanti et al. (arXiv 2205.05198), and a walk through the order of the slots of every stage."""

import re

from etchtest import BASE, GPT, MODELS, Case, main, run, succeed, table, value, with_plans

MIXTRAL = MODELS / "mixtral.etch"

PLANS = """
parallel copies {
  mesh  [dp]
  shard B @ dp
}
parallel zero1 {
  mesh  [dp]
  shard B @ dp
  zero  1 @ dp
}
parallel zero2 {
  mesh  [dp]
  shard B @ dp
  zero  2 @ dp
}
parallel zero3 {
  mesh  [dp]
  shard B @ dp
  zero  3 @ dp
}
"""

STAGED = """
parallel one_chunk {
  mesh  [pp, dp]
  shard B @ dp
  stage (UNITS) @ pp, schedule = SCHEDULE
  recompute = none
}
"""


def gpt(dtypes=None, optimizer=None, facts=(), params=(), plans=""):
    """GPT with other dtypes, another optimizer, more facts and plans."""
    text = re.sub(r"^check .*$", "", with_plans(GPT), flags=re.M)
    if dtypes:
        text = re.sub(r"^dtype .*$", f"dtype {dtypes}", text, count=1, flags=re.M)
    if optimizer:
        text = text.replace("adamw(master = true)", optimizer)
    declared = "".join(f"param {name}\n" for name in params) + "".join(f"assume {fact}\n" for fact in facts)
    return text.replace("param micro = 1\n", "param micro = 1\n" + declared) + plans


def chunk_layers(units, links):
    """How many units each link of the chain has: spread evenly, the first take what is left over."""
    return [(units + links - 1 - link) // links for link in range(links)]


def slots(stages, chunks, micro, stage, schedule):
    """(backward?, chunk) of each slot, as Narayanan et al. 2021 order them: a last group of fewer
    microbatches than stages is filled up with some that are then left out."""
    group = stages * chunks
    total = -(-micro // stages) * group
    warmup = {"gpipe": micro, "one_f_one_b": stages - stage - 1,
              "interleaved": 2 * (stages - stage - 1) + (chunks - 1) * stages}[schedule]
    warmup = min(warmup, total)

    def slot(k, backward):
        chunk = k % group // stages
        return backward, chunks - 1 - chunk if backward else chunk, k // group * stages + k % stages

    order = []
    for k in range(total + warmup):
        order += [slot(k, False)] if k < total else []
        order += [slot(k - warmup, True)] if k >= warmup else []
    return [(backward, chunk) for backward, chunk, microbatch in order if microbatch < micro]


def most_kept(stages, chunks, micro, stage, schedule, kept):
    """The most bytes that a stage keeps at a time; `kept[chunk]`: of one microbatch."""
    now = most = 0
    for backward, chunk in slots(stages, chunks, micro, stage, schedule):
        now += -kept[chunk] if backward else kept[chunk]
        most = max(most, now)
    return most


class States(Case):
    """Bytes of a parameter: Psi parameters, divided among N ranks."""

    def prove(self, spec, statement):
        done = run("prove", spec, statement)
        self.assertEqual((0, "proved"), (done.status, done.out.strip()), done)

    def states(self, dtypes, optimizer, whole, divided):
        """States of `whole` bytes are held by every rank, `divided` bytes by one of dp."""
        spec = self.write("gpt.etch", gpt(dtypes, optimizer, ["dp | hidden"], ["dp"], PLANS))
        psi = "rank_params(model, plan = copies)"
        self.prove(spec, f"memory(states, plan = copies) == {whole + divided}*{psi}")
        self.prove(spec, f"memory(states, plan = zero1) == {whole}*{psi} + {divided}*{psi}/dp")
        self.prove(spec, f"{psi} == params(model)")
        return spec

    def test_zero(self):
        """2 bytes of weights, 2 of gradients, K = 12 of the optimizer."""
        spec = self.states("act = f16, weights = f16, grads = f16, optim = f32", "adamw(master = true)", 4,
                           12)
        psi = "params(model)"
        for what, size in (("weights", 2), ("grads", 2), ("master", 4), ("moments", 8), ("optimizer", 12)):
            self.prove(spec, f"memory({what}, plan = copies) == {size}*{psi}")
        self.prove(spec, f"memory(states, plan = zero2) == 2*{psi} + 14*{psi}/dp")
        self.prove(spec, f"memory(states, plan = zero3) == 16*{psi}/dp")
        self.prove(spec, f"rank_params(model, plan = zero3) == {psi}/dp")

    def test_units_are_whole_while_they_are_worked_on(self):
        """With ZeRO-3 copies of a layer's weights, and of the next one's, and with ZeRO-2 its gradients."""
        spec = self.write("gpt.etch", gpt(plans=PLANS))
        sizes = dict(layers=9, hidden=64, heads=4, vocab=16, positions=8, seq=2, batch=2, micro=1, dp=2)
        weights, grads = 2*(12*64*64 + 13*64), 4*(12*64*64 + 13*64)
        most = {plan: value(spec, "memory(workspace)", plan=plan, sets=sizes)
                for plan in ("zero1", "zero2", "zero3")}
        self.assertLess(most["zero1"], weights//10)
        self.assertGreaterEqual(most["zero2"], grads)
        self.assertLess(most["zero2"], grads + weights//10)
        self.assertGreaterEqual(most["zero3"], grads + 2*weights)
        self.assertLess(most["zero3"], grads + 2*weights + weights//10)

    def test_megatron(self):
        """The table of its documentation: bytes of a parameter without and with the distributed optimizer."""
        self.states("act = f16, weights = f16, grads = f16, optim = f32",
                    "adamw(master = true, main_grads = true)", 4, 16)
        self.states("act = bf16, weights = bf16, grads = f32, optim = f32", "adamw(master = true)", 6, 12)
        self.states("act = f32, weights = f32, grads = f32, optim = f32", "adamw", 8, 8)

    def test_other_optimizers(self):
        self.states("act = bf16, weights = bf16, grads = bf16, optim = f32", "sgd", 4, 0)
        self.states("act = bf16, weights = bf16, grads = bf16, optim = f32", "sgd(momentum = true)", 4, 4)

    def test_8_bits(self):
        """A byte of each moment, and a scale of 4 bytes for each 2,048 elements of what a rank has of a
        tensor; the update reads and writes them, with 4 FLOP more for each."""
        def spec(optimizer, more=""):
            return self.write("bits.etch", f"""etch 1
param big, small
dim B = 64, N = big, M = small
model m(x[B,N], z[B,M]) -> l[] {{
  weight a[N], b[M]
  y[B,N] = x * a
  u[B,M] = z * b
  l[] = mean(square(y), over = (B,N)) + mean(square(u), over = (B,M))  tag loss
}}
train {{ model = m, optimizer = {optimizer} }}
parallel copies {{ mesh [dp]; shard B @ dp; {more} }}
parallel zero1 {{ mesh [dp]; shard B @ dp; zero 1 @ dp; {more} }}
""")
        for big, small in ((4096, 16), (4104, 2048), (100000, 2040)):
            for dp in (1, 2, 8):
                for master in ("false", "true"):
                    sets = dict(big=big, small=small, dp=dp)
                    text = spec(f"adamw(bits = 8, master = {master})")
                    plain = spec(f"adamw(bits = 32, master = {master})").read_text(encoding="utf-8")
                    for plan, parts in (("copies", 1), ("zero1", dp)):
                        text = spec(f"adamw(bits = 8, master = {master})")
                        shards = [-(-size // parts) for size in (big, small)]
                        kept = sum(2 * (shard + 4 * -(-shard // 2048)) for shard in shards)
                        other = sum(shards) * (4 + 4 + 4 + 2 if master == "true" else 4 + 2 + 2)
                        with self.subTest(big=big, dp=dp, plan=plan, master=master):
                            self.assertEqual(kept, value(text, "memory(moments)", plan=plan, sets=sets))
                            self.assertEqual(other + 2 * kept,
                                             value(text, "traffic(optimizer)", plan=plan, sets=sets))
                            self.assertEqual(20 * sum(shards),
                                             value(text, "rank_flops(optimizer)", plan=plan, sets=sets))
                            text = self.write("plain.etch", plain)
                            self.assertEqual(8 * sum(shards),
                                             value(text, "memory(moments)", plan=plan, sets=sets))
        for more in "dtype moments = bf16", "dtype moments = f32":
            done = run("query", spec("adamw(bits = 8)", more), "memory(moments)", "--plan", "zero1")
            self.assertEqual(["E0220"], [error["code"] for error in done.errors()], done)

    def test_averages(self):
        """An average of the weights: 4 bytes of a parameter, 3 FLOP, and 8 bytes of traffic in the update."""
        plain = "act = bf16, weights = bf16, grads = f32, optim = f32"
        self.states(plain, "adamw(master = true), ema = 0.9999", 6, 16)
        self.states(plain, "sgd, ema = 1/2", 6, 4)
        self.states(plain + ", master = bf16", "adamw, ema = 0.9999", 6, 10)
        specs = [self.write(f"{i}.etch",
                            gpt(plain, f"adamw(master = true){more}", ["dp | hidden"], ["dp"], PLANS))
                 for i, more in enumerate(("", ", ema = 0.9999", ", ema = none"))]
        sizes = dict(layers=3, hidden=8, heads=2, vocab=16, positions=8, seq=4, batch=8, micro=1, dp=2)
        for plan, held in (("copies", 1), ("zero1", 2)):
            params = value(specs[0], "params(model)", plan=plan, sets=sizes) // held
            for expr, each in (("rank_flops(step)", 3), ("traffic(step)", 8), ("memory(master)", 4),
                               ("comm(step)", 0)):
                found = [value(spec, expr, plan=plan, sets=sizes) for spec in specs]
                self.assertEqual([each * params, 0], [found[1] - found[0], found[2] - found[0]], (plan, expr))

    def test_tensor_parallelism_divides_what_it_shards(self):
        """All matrices; gains, and biases behind partial sums, are held by all ranks of tp."""
        spec = self.write("gpt.etch", gpt())
        self.prove(spec, "rank_params(model, plan = megatron) == (12*layers*H^2 + V*H)/tp + positions*H"
                         " + layers*7*H/tp + layers*6*H + 2*H")

    def test_padded_parts(self):
        """Parts of unequal weights are padded, tensor by tensor."""
        spec = self.write("gpt.etch", gpt(plans=PLANS))
        sizes = dict(layers=1, hidden=6, heads=2, vocab=11, positions=7, batch=4, seq=4, dp=4)
        by_hand = 0
        for count, elements in ((9, 6), (1, 24), (4, 36), (2, 144), (1, 66), (1, 42), (2, 6)):
            by_hand += count * -(-elements // 4)
        self.assertEqual(12 * by_hand, value(spec, "memory(optimizer)", plan="zero1", sets=sizes))

    def test_stages_share_weights(self):
        """A tied embedding is held by the first and by the last stage."""
        spec = self.write("gpt.etch", gpt())
        sizes = dict(layers=4, hidden=8, heads=2, vocab=32, positions=16, batch=8, seq=4, dp=1, tp=1, pp=3)
        rows, _ = table(spec, "rank_params(model)", "stage", plan="megatron_pp", sets=sizes)
        layer = 12 * 64 + 13 * 8
        self.assertEqual({"0": 32 * 8 + 16 * 8 + layer, "1": 2 * layer, "2": layer + 32 * 8 + 2 * 8}, rows)


class Pipelines(Case):
    """Korthikanti, section 4.2.3: what the first stage keeps, of L layers in all."""

    def prove(self, schedule, facts, statement):
        plans = STAGED.replace("UNITS", "layer").replace("SCHEDULE", schedule)
        spec = self.write("gpt.etch", gpt(facts=facts, params=["pp", "dp"], plans=plans))
        done = run("prove", spec, statement, "--plan", "one_chunk")
        self.assertEqual((0, "proved"), (done.status, done.out.strip()), done)

    LAYER = "rank_saved(of = layer)"
    MASK = "S*B*H/(micro*dp)"  # of the embedding's dropout, which lies with the first layer

    def test_one_f_one_b(self):
        self.prove("one_f_one_b", ["pp | layers", "pp <= micro"],
                   f"memory(activations, stage = 0) == layers*{self.LAYER} + pp*{self.MASK}")

    def test_gpipe(self):
        self.prove("gpipe", ["pp | layers"],
                   f"memory(activations, stage = 0) == micro*layers/pp*{self.LAYER} + micro*{self.MASK}")

    def test_interleaved(self):
        for chunks in (2, 3, 4):
            self.prove(f"interleaved(virtual = {chunks})", [f"{chunks}*pp | layers", "2*pp <= micro"],
                       f"memory(activations, stage = 0) == layers*{self.LAYER}*(1 + (pp - 1)/(pp*{chunks}))"
                       f" + 2*pp*{self.MASK}")

    def kept_of(self, sizes, stages, chunks, whole):
        """Bytes that each link keeps of one microbatch, by hand; `whole`: are embedding and head units of
        their own?"""
        s, h, v = sizes["seq"], sizes["hidden"], sizes["vocab"]
        b = sizes["batch"] // sizes["micro"]
        layer = 34 * s * b * h + 5 * sizes["heads"] * s * s * b
        links = stages * chunks
        kept = [layer * n for n in chunk_layers(sizes["layers"] + (2 if whole else 0), links)]
        kept[0] += s * b * h - (layer if whole else 0)
        kept[-1] += 4 * s * b * h + 2 * s * b * v + 4 * s * b - (layer if whole else 0)
        return [[kept[chunk * stages + stage] for chunk in range(chunks)] for stage in range(stages)]

    def check_stages(self, schedule, chunks, units, layers, stages, micro):
        plans = STAGED.replace("UNITS", units).replace(
            "SCHEDULE", schedule + (f"(virtual = {chunks})" if schedule == "interleaved" else ""))
        spec = self.write("gpt.etch", gpt(plans=plans))
        sizes = dict(layers=layers, hidden=8, heads=2, vocab=24, positions=16, seq=6, batch=2 * micro,
                     micro=micro)
        rows, _ = table(spec, "memory(activations)", "stage", plan="one_chunk",
                        sets={**sizes, "dp": 1, "pp": stages})
        by_link = self.kept_of(sizes, stages, chunks, units != "layer")
        for stage in range(stages):
            exact = most_kept(stages, chunks, micro, stage, schedule, by_link[stage])
            said = rows["whole" if stages == 1 else str(stage)]
            self.assertGreaterEqual(said, exact, (schedule, chunks, units, stages, micro, stage))
            if chunks == 1 or len(set(by_link[stage])) == 1:
                self.assertEqual(said, exact, (schedule, units, stages, micro, stage))

    def test_every_stage(self):
        for micro in (1, 3, 8):
            for stages in (2, 3):
                for units in ("layer", "embed, layer, head"):
                    for schedule in ("gpipe", "one_f_one_b"):
                        self.check_stages(schedule, 1, units, 5, stages, micro)
                    self.check_stages("interleaved", 2, units, 6 * stages, stages, micro)
                    self.check_stages("interleaved", 3, units, 3 * stages + 1, stages, micro)

    def test_numbers_and_formulas_agree(self):
        """What is asked of a stage with values is the formula of its class with these values."""
        spec = self.write("gpt.etch", gpt(plans=STAGED.replace("UNITS", "embed, layer, head").replace(
            "SCHEDULE", "interleaved(virtual = 2)")))
        sizes = dict(layers=14, hidden=8, heads=2, vocab=24, positions=16, seq=6, batch=16, micro=8, dp=1)
        by_number, _ = table(spec, "memory(peak)", "stage", plan="one_chunk", sets={**sizes, "pp": 4})
        for label, number in (("first", "0"), ("last", "3")):
            text = succeed("query", spec, "memory(peak)", "--plan", "one_chunk", "--stage", label, "-q").out
            found = succeed("query", spec, text.strip(), "--plan", "one_chunk", "--set",
                            ",".join(f"{k}={v}" for k, v in {**sizes, "pp": 4}.items())).out
            self.assertEqual(by_number[number], int(found))


class Experts(Case):
    PLANS = """
parallel alone {
  mesh  [edp = dp/ep, ep]
  axis  dp = (edp, ep)
  shard B @ dp
  for experts_mlp { shard E @ ep, C @ edp }
}
parallel whole {                                 # each expert over all of tp
  mesh  [edp = dp/ep, ep, tp]
  axis  dp = (edp, ep)
  shard B @ dp, K @ tp, V @ tp
  pin   residual [B@dp, S@tp, H]
  for experts_mlp { shard E @ ep, C @ edp, I @ tp }
}
parallel folded {                                # whole experts over ep and tp
  mesh  [edp = dp/ep, ep, tp]
  axis  dp = (edp, ep)
  shard B @ dp, K @ tp, V @ tp
  pin   residual [B@dp, S@tp, H]
  for experts_mlp { shard E @ (ep,tp), C @ edp }
}
parallel split {                                 # each expert over etp of the tp ranks that share a token
  mesh  [edp = dp/ep, ep, out = tp/etp, etp]
  axis  dp = (edp, ep), tp = (out, etp)
  shard B @ dp, K @ tp, V @ tp
  pin   residual [B@dp, S@tp, H]
  for experts_mlp { shard E @ (ep,out), C @ edp, I @ etp }
}
"""

    def mixtral(self):
        self.write("base.etch", with_plans(BASE))
        return self.write("mixtral.etch", with_plans(MIXTRAL) + self.PLANS)

    def test_activations_are_not_divided_by_ep(self):
        """The ranks of ep are some of those of dp, which divide the batch already."""
        spec = self.mixtral()
        for plan in ("alone", "whole", "folded", "moe_ep"):
            for what in ("rank_saved(model)", "memory(activations)"):
                text = succeed("query", spec, what, "--plan", plan, "-q").out.strip()
                self.assertNotRegex(text, r"\be?d?ep\b", plan)
                self.assertIn("dp", text)

    def test_attention_is_divided_among_all_of_dp(self):
        spec = self.mixtral()
        for plan, ranks in (("alone", "dp"), ("whole", "dp*tp"), ("moe_ep", "dp*tp")):
            done = run("prove", spec,
                       f"rank_flops(forward, op = sdpa) == flops(forward, op = sdpa)/({ranks})",
                       "--plan", plan)
            self.assertEqual("proved", done.out.strip(), done)

    def test_dispatched_tokens(self):
        """topk*s*b*etp/tp tokens are on a rank, 2 bytes of hidden each; b the microbatch of the rank."""
        spec = self.mixtral()
        tokens = "topk*S*B/(micro*dp)"
        for plan, divided in (("whole", "1"), ("folded", "1/tp"), ("split", "etp/tp")):
            statement = (f"rank_saved(of = experts_mlp) == 2*{tokens}*{divided}*H"
                         f" + 8*{tokens}*expert_ffn/tp")
            done = run("prove", spec, statement, "--plan", plan)
            self.assertEqual("proved", done.out.strip(), done)


class Peak(Case):
    SIZES = dict(layers=4, hidden=16, heads=4, vocab=64, positions=32, batch=8, seq=8, micro=1, dp=2, tp=2)

    def test_it_is_the_sum_of_its_classes(self):
        for plan in ("ddp", "megatron", "megatron_sp", "megatron_zero"):
            sizes = {name: size for name, size in self.SIZES.items() if plan != "ddp" or name != "tp"}
            rows, total = table(GPT, "memory(peak)", "class", plan=plan, sets=sizes)
            self.assertEqual(["weights", "grads", "master", "moments", "activations", "workspace"],
                             list(rows))
            for what, size in rows.items():
                self.assertEqual(size, value(GPT, f"memory({what})", plan=plan, sets=sizes), what)
            self.assertEqual(total, sum(rows.values()))
            self.assertEqual(rows["master"] + rows["moments"],
                             value(GPT, "memory(optimizer)", plan=plan, sets=sizes))

    def test_a_layer_that_is_run_again_is_worked_on_as_a_whole(self):
        """What Table 2 keeps of a layer without recomputation is there while its gradient is computed: all of
        it, when the gradient of its last product is to be made, together with what enters and leaves that."""
        spec = self.write("gpt.etch", gpt(plans="""
parallel again {
  mesh  [dp]
  shard B @ dp
  recompute = full
}
parallel kept {
  mesh  [dp]
  shard B @ dp
  recompute = none
}
"""))
        sizes = dict(layers=2, hidden=16, heads=4, vocab=32, positions=64, seq=64, batch=2, micro=1, dp=1)
        layer = value(spec, "rank_saved(of = layer)", plan="kept", sets=sizes)
        inputs = value(spec, "rank_saved(of = layer)", plan="again", sets=sizes)
        working = value(spec, "memory(workspace)", plan="again", sets=sizes)
        self.assertGreaterEqual(working, layer - inputs)
        self.assertLess(working, 2 * layer)
        self.assertLess(value(spec, "memory(workspace)", plan="kept", sets=sizes), working)

    def test_served(self):
        """Weights, caches, and what the forward pass works on."""
        serve = MODELS / "serve.etch"
        done = succeed("query", serve, "memory(peak, run = decode)", "--plan", "split", "--by", "class", "-q")
        labels = [line.split()[0] for line in done.out.splitlines()]
        self.assertEqual(["weights", "workspace", "cache", "total"], labels)


if __name__ == "__main__":
    main()
