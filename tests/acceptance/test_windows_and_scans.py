"""Mamba-2 and ResNet-50: published parameter counts, FLOP counted by loops, collectives by hand, and traces
of every plan."""

import itertools
from types import SimpleNamespace

from etchtest import MODELS, SOURCE, Case, lower, main, value

MAMBA = MODELS / "mamba2.etch"
RESNET = SOURCE / "tests" / "cli" / "specs" / "resnet50.etch"
PUBLISHED = {"mamba2_130m": (768, 128989632), "mamba2_780m": (1536, 780161280),
             "mamba2_2_7b": (2560, 2702599680)}
SMALL = dict(layers=2, hidden=16, inner=32, head_dim=4, groups=4, state=8, conv=4, chunk=4, vocab=24, batch=4,
             seq=16)
MESHES = (dict(dp=1, tp=1, micro=1), dict(dp=2, tp=1, micro=2), dict(dp=1, tp=4, micro=1),
          dict(dp=2, tp=2, micro=2))
BF16, F32 = 2, 4


def scan_by_loops(v):
    """Multiply-adds of the chunked scan, forward and backward: counted where they happen."""
    heads = v.inner // v.head_dim // v.groups
    forward = backward = 0
    for _chunk in range(v.batch * v.groups * (v.seq // v.chunk)):
        for t in range(v.chunk):
            for _s in range(t + 1):
                forward += v.state                       # c b
                backward += v.state * 3                  # again, and its two gradients
                forward += heads * v.head_dim            # .. u
                backward += heads * v.head_dim * 2
            forward += heads * v.state * v.head_dim * 2  # into the state, out of the state before
            backward += heads * v.state * v.head_dim * (1 + 2 + 2)
        forward += heads * v.state * v.head_dim          # the state is handed on
        backward += heads * v.state * v.head_dim * (1 + 2)
    return 2 * forward, 2 * backward


class Mamba(Case):
    def test_published_parameters(self):
        for config, (hidden, count) in PUBLISHED.items():
            with self.subTest(config):
                usual = dict(inner=2 * hidden, head_dim=64, groups=1, state=128, conv=4)
                self.assertEqual(count, value(MAMBA, "params(model)", config, None, usual))

    def test_scan_is_counted(self):
        for change in (dict(), dict(chunk=8), dict(chunk=1), dict(chunk=16, groups=1),
                       dict(head_dim=8, state=2)):
            with self.subTest(**change):
                sets = {**SMALL, **change}
                forward, backward = scan_by_loops(SimpleNamespace(**sets))
                sets["micro"] = 1
                products = "matmul_flops({}, of = mixer, op = {})"
                self.assertEqual(forward, value(MAMBA, products.format("forward", "ssd"), None, None, sets))
                self.assertEqual(backward,
                                 value(MAMBA, products.format("backward", "ssd_bwd"), None, None, sets))

    def test_collectives(self):
        """Groups over tp: one all-reduce of the block's result, and one of the cotangent of its input."""
        for mesh in MESHES[2:]:
            with self.subTest(**mesh):
                sets = {**SMALL, **mesh}
                v = SimpleNamespace(**sets)
                tokens = v.batch // v.dp * v.seq
                # z and u, b and c, t
                width, shared, heads = 2 * v.inner, 2 * v.groups * v.state, v.inner // v.head_dim
                weights = v.layers * (v.hidden * (width + shared + heads + v.inner) +
                                      (v.conv + 1) * (v.inner + shared) + 3 * heads + v.inner) // v.tp
                weights += v.vocab * v.hidden // v.tp + (v.layers + 1) * v.hidden
                forward = BF16 * tokens * v.hidden * (v.layers + 1) + 3 * F32 * tokens
                backward = BF16 * tokens * v.hidden * (v.layers + 1)
                comm = "comm({}, axis = {})"
                self.assertEqual(forward, value(MAMBA, comm.format("forward", "tp"), None, "megatron", sets))
                self.assertEqual(backward,
                                 value(MAMBA, comm.format("backward", "tp"), None, "megatron", sets))
                if v.dp > 1:
                    self.assertEqual(F32 * weights,
                                     value(MAMBA, comm.format("sync", "dp"), None, "megatron", sets))

    def test_traces(self):
        for plan, mesh in itertools.product(("ddp", "megatron", "megatron_sp", "megatron_zero"), MESHES):
            if plan == "ddp" and mesh["tp"] > 1:
                continue
            with self.subTest(plan=plan, **mesh):
                sets = {**SMALL, **mesh}
                if plan == "ddp":
                    del sets["tp"]
                folder = lower(self.scratch / f"{plan}.{mesh['dp']}.{mesh['tp']}.{mesh['micro']}", MAMBA,
                               None, plan,
                               sets)
                self.assertTotals(folder, MAMBA, None, plan, sets)
                self.assertFine(folder)


def resnet_by_loops():
    """Parameters and multiply-adds of ResNet-50 for an image of 224 by 224, layer by layer."""
    params, products = 7 * 7 * 3 * 64 + 2 * 64, 112 * 112 * 7 * 7 * 3 * 64
    side, before = 56, 64
    for blocks, middle, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        after = 4 * middle
        for block in range(blocks):
            step = stride if block == 0 else 1
            products += side * side * before * middle
            side //= step
            products += side * side * (9 * middle * middle + middle * after)
            params += before * middle + 9 * middle * middle + middle * after + 2 * (2 * middle + after)
            if block == 0:
                products += side * side * before * after
                params += before * after + 2 * after
            before = after
    return params + before * 1000 + 1000, products + before * 1000


class Resnet(Case):
    def test_published_numbers(self):
        params, products = resnet_by_loops()
        self.assertEqual((25557032, 4089184256), (params, products))  # torchvision
        sets = dict(batch=3, image=224, micro=1)
        self.assertEqual(params, value(RESNET, "params(model)", None, None, sets))
        self.assertEqual(3 * 2 * products, value(RESNET, "matmul_flops(forward)", None, None, sets))

    def test_traces(self):
        for plan, mesh in (("ddp", dict(dp=4, micro=1)), ("tensor", dict(dp=2, tp=2, micro=2))):
            with self.subTest(plan):
                sets = {"batch": 8, "image": 32, **mesh}
                folder = lower(self.scratch / plan, RESNET, None, plan, sets)
                self.assertTotals(folder, RESNET, None, plan, sets)
                self.assertFine(folder)


if __name__ == "__main__":
    main()
