"""`recompute = fit(..)`: the fewest layers with which a rank of every stage fits, found by asking for the
peak with each number of them."""

from etchtest import MODELS, Case, lower, main, nameless, run, settings, succeed, traces, value

SIZES = dict(layers=7, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=24, vocab=36, batch=16, seq=16,
             micro=4, pp=2, dp=2, tp=2)
PLAN = """parallel {name} {{
  mesh [pp, dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  stage (embed, layer, head) @ pp, schedule = {schedule}
  recompute = {what}
}}
"""


class RecomputeFit(Case):
    def spec(self, what, schedule="one_f_one_b"):
        kinds = {"fits": what, "some": "full(first = n)", "more": "(core, full(first = n))"}
        plans = "".join(PLAN.format(name=name, what=text, schedule=schedule) for name, text in kinds.items())
        header = f'etch 1\nimport "{MODELS / "llama.etch"}"\nparam n >= 0 = 0, most = 1\n'
        return self.write("own.etch", header + plans)

    def peaks(self, spec, plan="some"):
        """By number of layers: of the fullest stage."""
        return [max(value(spec, f"memory(peak, stage = {stage})", plan=plan, sets={**SIZES, "n": n})
                    for stage in range(2)) for n in range(SIZES["layers"] + 1)]

    def fitted(self, spec, most):
        sets = settings({**SIZES, "most": most})
        shown = succeed("show", spec, "--plan", "fits", "--set", sets, "-q").out
        line = next(line for line in shown.splitlines() if line.startswith("recompute"))
        return int(line.split()[1]), int(line.split()[3])

    def test_fewest(self):
        """Of all numbers of layers the first that fits, also where one layer more would need more."""
        for schedule in ("one_f_one_b", "gpipe", "zb_v"):
            spec = self.spec("fit(most)", schedule)
            peaks = self.peaks(spec)
            for most in sorted({peak + less for peak in peaks for less in (0, -1)}):
                fits = [n for n, peak in enumerate(peaks) if peak <= most]
                if not fits:
                    continue
                self.assertEqual((fits[0], 7), self.fitted(spec, most), (schedule, most))
                self.assertEqual(peaks[fits[0]], max(
                    value(spec, f"memory(peak, stage = {stage})", plan="fits", sets={**SIZES, "most": most})
                    for stage in range(2)))

    def test_beside_others(self):
        """What is recomputed anyway is, and layers come on top."""
        spec = self.spec("(core, fit(most))")
        peaks = self.peaks(spec, "more")
        for most in set(peaks):
            fits = [n for n, peak in enumerate(peaks) if peak <= most]
            self.assertEqual((fits[0], 7), self.fitted(spec, most))

    def test_traces(self):
        """They are those of so many layers, by name."""
        spec = self.spec("fit(most)")
        most = self.peaks(spec)[3]
        number, _ = self.fitted(spec, most)
        fits = lower(self.scratch / "fits", spec, plan="fits", sets={**SIZES, "most": most})
        some = lower(self.scratch / "some", spec, plan="some", sets={**SIZES, "n": number})
        self.assertFine(fits)
        for rank, file in traces(fits).items():
            self.assertEqual(nameless(traces(some)[rank]), nameless(file))

    def test_refused(self):
        """Too little memory, no values, and where it has no meaning."""
        spec = self.spec("fit(most)")
        least = min(self.peaks(spec))
        sets = settings({**SIZES, "most": least - 1})
        done = run("query", spec, "memory(peak)", "--plan", "fits", "--set", sets, "-q")
        self.assertEqual((1, ["E0444"]), (done.status, [error["code"] for error in done.errors()]), done)
        done = run("query", spec, "memory(peak)", "--plan", "fits", "--set", "layers=4", "-q")
        self.assertEqual((1, ["E0520"]), (done.status, [error["code"] for error in done.errors()]), done)
        for name in ("batch", "seq", "hidden", "dp"):
            self.assertIn(name, done.err)
        done = run("query", self.spec("fit(most, 2)"), "memory(peak)", "--plan", "fits", "-q")
        self.assertEqual((1, ["E0220"]), (done.status, [error["code"] for error in done.errors()]), done)

    def test_most_layers(self):
        """So many layers that a number of them is looked for, and one more."""
        spec = self.spec("fit(most)")
        for layers, status in ((4096, 0), (4097, 1)):
            sets = settings({**SIZES, "pp": 1, "layers": layers, "most": 10**15})
            done = run("query", spec, "memory(peak)", "--plan", "fits", "--set", sets, "-q")
            self.assertEqual(status, done.status, done)
        self.assertEqual(["E0444"], [error["code"] for error in done.errors()])


if __name__ == "__main__":
    main()
