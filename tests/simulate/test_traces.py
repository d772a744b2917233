"""`etch simulate DIR`: traces in the same engine. On a machine where every kernel takes as long as its bytes,
traces that etch has written take as long as their spec, node by node; durations that a trace says are taken;
by hand, what two ranks do."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "acceptance"))
from etchtest import MODELS, Case, lower, run, settings, succeed  # noqa: E402

LLAMA, MIXTRAL, GPT = MODELS / "llama.etch", MODELS / "mixtral.etch", MODELS / "gpt.etch"
SIZES = dict(layers=4, hidden=64, heads=8, vocab=128, batch=16, micro=4, seq=64)
GROUPED = dict(SIZES, kv_heads=8, head_dim=8, ffn=96)
PLANS = [(LLAMA, "megatron_sp", dict(GROUPED, dp=4, tp=4)),
         (LLAMA, "megatron_pp", dict(GROUPED, pp=2, dp=2, tp=2)),
         (LLAMA, "megatron_interleaved", dict(GROUPED, pp=2, dp=2, tp=1)),
         (LLAMA, "long_context_pp", dict(GROUPED, pp=2, dp=1, cp=2, tp=2)),
         (LLAMA, "fsdp", dict(GROUPED, dp=8, micro=1)),
         (GPT, "megatron_pp", dict(SIZES, positions=64, pp=4, dp=2, tp=1)),
         (MIXTRAL, "moe_pp", dict(GROUPED, experts=4, topk=2, expert_ffn=64, pp=2, dp=4, ep=2, tp=1))]
# FLOP take next to nothing; ranks lie on two levels, unevenly
MACHINE = """etch 1
device d {
  products bf16 = 900000000 PFLOP/s, f32 = 900000000 PFLOP/s
  other = 900000000 PFLOP/s
  memory = 80 GB, bandwidth = 3 TB/s
}
cluster c {
  device = d
  level a { devices = 3, kind = switch, bandwidth = 300 GB/s, latency = 2 us }
  level b { kind = switch, bandwidth = 50 GB/s, latency = 20 us }
}
"""
COMPUTE = """node {id} COMP "x"
  {more}
  bool_val is_cpu_op = false
  int64_val num_ops = 1
  uint64_val tensor_size = {bytes}
"""
MESSAGE = """node {id} COMM_{what} "m"
  data_deps {after}
  bool_val is_cpu_op = false
  int64_val comm_size = 100000
  int32_val comm_src = {src}
  int32_val comm_dst = {dst}
  int32_val comm_tag = 7
"""


class Traces(Case):
    def setUp(self):
        super().setUp()
        self.machine = self.write("m.etch", MACHINE)

    def simulate(self, *words):
        return json.loads(succeed("simulate", *words, "--machine", self.machine, "--times", "--format",
                                  "json").out)

    def test_as_their_spec(self):
        for spec, plan, sets in PLANS:
            with self.subTest(spec=spec.name, plan=plan):
                folder = lower(self.scratch / f"{spec.stem}.{plan}", spec, plan=plan, sets=sets)
                of_spec = self.simulate(spec, "--plan", plan, "--set", settings(sets), "--streams", "one")
                of_traces = self.simulate(folder)
                for key in ("ranks", "step_ps", "error_ps", "upper_ps"):
                    self.assertEqual(of_spec[key], of_traces[key], key)
                for a, b in zip(of_spec["class_of"], of_traces["class_of"], strict=True):
                    a, b = of_spec["classes"][a], of_traces["classes"][b]
                    for key in ("begins", "lasts", "computing", "waiting", "idle"):
                        self.assertEqual(a[key], b[key], key)
                self.assertLessEqual(of_traces["lower_ps"], of_traces["step_ps"])

    def assemble(self, *ranks):
        text = "".join(f'file t.{rank}.et\nmetadata "0.0.4"\n{nodes}' for rank, nodes in enumerate(ranks))
        self.write("t.txt", text)
        folder = self.scratch / f"made{len(list(self.scratch.iterdir()))}"
        succeed("assemble", self.scratch / "t.txt", "-o", folder)
        return folder

    def test_by_hand(self):
        """3 MB are a microsecond, a message of 100 kB inside a level 1/3 us and 2 us; what is measured is as
        long as it says."""
        first = (COMPUTE.format(id=3, more="", bytes=3000000) +
                 MESSAGE.format(id=5, what="SEND", after=3, src=0, dst=1))
        second = (COMPUTE.format(id=1, more="duration_micros 40", bytes=1) +
                  MESSAGE.format(id=2, what="RECV", after=1, src=0, dst=1) +
                  COMPUTE.format(id=9, more="ctrl_deps 2", bytes=6000000))
        answer = self.simulate(self.assemble(first, second))
        by_rank = [answer["classes"][c] for c in answer["class_of"]]
        self.assertEqual([[0, 40000000], [0, 40000000, 42333333]], [c["begins"] for c in by_rank])
        self.assertEqual([[1000000, 2333333], [40000000, 2333333, 2000000]], [c["lasts"] for c in by_rank])
        self.assertEqual(44333333, answer["step_ps"])
        self.assertEqual((None, None, "t"), (answer["plan"], answer["tokens"], answer["model"]))

    def test_eager(self):
        """As above, but the send waits for nobody; and two ranks that both send before they receive, which
        never end otherwise."""
        eager = self.write("e.etch", MACHINE.replace("device = d", "device = d, eager = true"))
        first = (COMPUTE.format(id=3, more="", bytes=3000000) +
                 MESSAGE.format(id=5, what="SEND", after=3, src=0, dst=1))
        second = (COMPUTE.format(id=1, more="duration_micros 40", bytes=1) +
                  MESSAGE.format(id=2, what="RECV", after=1, src=0, dst=1) +
                  COMPUTE.format(id=9, more="ctrl_deps 2", bytes=6000000))
        late = self.assemble(first, second)
        crossed = self.assemble(*(
            MESSAGE.format(id=1, what="SEND", after=0, src=a, dst=b).replace("  data_deps 0\n", "") +
            MESSAGE.format(id=2, what="RECV", after=1, src=b, dst=a) for a, b in ((0, 1), (1, 0))))
        self.assertEqual(1, run("simulate", crossed, "--machine", self.machine).status)
        self.machine = eager
        answer = self.simulate(late)
        by_rank = [answer["classes"][c] for c in answer["class_of"]]
        self.assertEqual([[0, 1000000], [0, 40000000, 40000000]], [c["begins"] for c in by_rank])
        self.assertEqual([[1000000, 2333333], [40000000, 0, 2000000]], [c["lasts"] for c in by_rank])
        self.assertEqual(42000000, answer["step_ps"])
        self.assertEqual(2333333, self.simulate(crossed)["step_ps"])

    def test_refused(self):
        later = COMPUTE.format(id=1, more="data_deps 2", bytes=9) + COMPUTE.format(id=2, more="", bytes=9)
        memory = """node 1 MEM_LOAD "x"
  bool_val is_cpu_op = false
  uint64_val tensor_size = 64
"""
        twice = [COMPUTE.format(id=1, more="", bytes=9)
                 + MESSAGE.format(id=2, what=what, after=1, src=0, dst=1)
                 + MESSAGE.format(id=3, what=what, after=2, src=0, dst=1) for what in ("SEND", "RECV")]
        stalls = [MESSAGE.format(id=2, what="SEND", after=1, src=0, dst=1).replace("  data_deps 1\n", ""),
                  COMPUTE.format(id=1, more="", bytes=9)]
        for ranks, says in (([later], "higher id"), ([memory], "memory"), (twice, "tag 7"), (stalls, "")):
            done = run("simulate", self.assemble(*ranks), "--machine", self.machine)
            self.assertEqual((1, ""), (done.status, done.out), done)
            self.assertIn(says, " ".join(error["text"] for error in done.errors()), done)
        folder = self.assemble(COMPUTE.format(id=1, more="", bytes=9))
        for words in (("--plan", "ddp"), ("--set", "dp=2"), ("--timeline", "t.json"), ("--report", "r.html")):
            self.assertEqual(2, run("simulate", folder, "--machine", self.machine, *words).status, words)
        self.assertEqual(1, run("simulate", folder).status)
        self.assertEqual(1, run("simulate", self.scratch).status)


if __name__ == "__main__":
    unittest.main()
