"""Sends that wait until their receive is posted, as those of large messages do in real libraries: every
shipped model runs to its end under every plan with stages, and under every schedule in place of the plan's
own, whatever the timing; by the verdicts, and in a simulation of its own under random durations."""

import collections
import itertools
import json
import random
import re
import shutil

from effort import NIGHTLY
from etchtest import MODELS, Case, main, run, settings, succeed, traces
from pipeline import SCHEDULES
from shipped import SMALL, axes_of, params_of, runs_of, specs_of
import simulator

SPECS = specs_of(MODELS)
STAGE = re.compile(r"^(  stage [^@\n]*@ pp)[^\n#]*", re.M)
# Stages, ranks of tp and microbatches: less than the stages, as many, some more, and as many again. Under
# interleaved schedules forward and backward take turns from 2*pp microbatches on.
SETTINGS = [dict(pp=2, tp=1, micro=4), dict(pp=2, tp=2, micro=4), dict(pp=3, tp=2, micro=7),
            dict(pp=4, tp=1, micro=8), dict(pp=4, tp=2, micro=2)]
LAYERS = dict(layers=12, enc_layers=6, dec_layers=6, dense_layers=2, pattern='"M*-MM*-MM*-M"')
# An order of a plan's own, as SETTINGS[0] has stages and microbatches.
LISTED = 'list("F0 F1 F2 I0 F3 W0 I1 I2 W1 I3 W2 W3", "F0 I0 F1 I1 W0 F2 B2 W1 F3 B3")'
SHARED = 'list("F0 F1 F2&B0 F3&I1 W1 B2 B3", "F0 B0 F1 F2&B1 F3&B2 B3")'
MOST_READY = 16


def staged_plans(spec):
    """The plans of a spec, its own and those that it imports, that cut it into stages."""
    plans = json.loads(succeed("check", spec, "--format", "json").out)["plans"]
    return [plan for plan in plans if "pp" in axes_of(spec, plan)]


class Rendezvous(Case):
    def models(self, schedule):
        """The shipped specs, with another schedule in all plans, or as they are."""
        folder = self.scratch / re.sub(r"\W", "", schedule or "own")
        folder.mkdir()
        for path in MODELS.glob("*.etch"):
            text = path.read_text(encoding="utf-8")
            text = STAGE.sub(lambda match: f"{match[1]}, schedule = {schedule}", text) if schedule else text
            (folder / path.name).write_text(text, encoding="utf-8")
        return [folder / path.name for path in SPECS]

    def lower(self, spec, plan, of_run, setting):
        names = params_of(spec) | axes_of(spec, plan)
        values = {**SMALL, **LAYERS, **setting, "batch": 4 * setting["micro"]}
        sets = {name: size for name, size in values.items() if name in names}
        folder = self.scratch / "traces"
        shutil.rmtree(folder, ignore_errors=True)
        succeed("lower", spec, "--plan", plan, "--set", settings(sets), "-o", folder, "-q",
                *(["--run", of_run] if of_run else []))
        return folder

    def check_verdicts(self, folder):
        told = json.loads(run("verify", folder, "--format", "json").out)
        for which in ("eager", "rendezvous", "verdict"):
            self.assertEqual("always", told[which], which)

    def check_simulation(self, folder, seed):
        groups = json.loads((folder / "comm_group.json").read_text(encoding="utf-8"))
        programs = simulator.load(traces(folder))
        for rendezvous in (False, True):
            for rank in simulator.run(programs, groups, random.Random(seed), rendezvous).values():
                self.assertEqual(rank.nodes.keys(), rank.end.keys(), "a rank does not run to the end")
                self.assertLessEqual(rank.most_open, MOST_READY)

    def check(self, schedule, settings_of, runs=runs_of, every=1, turn=0):
        """`settings_of`: the settings of the n-th pair of a model and a plan. Of `every` pairs one is looked
        at, from number `turn` on; nightly all are. The simulation, which takes its time, sees one setting of
        some."""
        count = collections.Counter()
        step = 1 if NIGHTLY else every
        for spec in self.models(schedule):
            for plan, of_run in itertools.product(staged_plans(spec), runs(spec)):
                count["seen"] += 1
                if (count["seen"] + turn) % step:
                    continue
                number = count["pairs"]
                count["pairs"] += 1
                for at, setting in enumerate(settings_of(number)):
                    with self.subTest(spec=spec.name, plan=plan, run=of_run, schedule=schedule, **setting):
                        folder = self.lower(spec, plan, of_run, setting)
                        self.check_verdicts(folder)
                        if at == number % len(settings_of(number)) and number % 6 == 0:
                            self.check_simulation(folder, number)
                            count["simulated"] += 1
        self.assertGreater(count["pairs"], 90 // step)
        self.assertGreater(count["simulated"], 15 // step)

    def test_shipped_plans(self):
        own = len(SETTINGS)
        self.check(None, lambda number: SETTINGS if NIGHTLY else [SETTINGS[1], SETTINGS[number % own]])

    def test_every_schedule(self):
        for at, schedule in enumerate((*SCHEDULES, "zb_h1", "zb_h2", "zb_v")):
            self.check(schedule, lambda number, at=at: [SETTINGS[1], SETTINGS[(number + at) % len(SETTINGS)]],
                       every=3, turn=at)

    def test_shared_slots(self):
        """DualPipe has two microbatches for each stage at least."""
        self.check("dualpipev", lambda number: [SETTINGS[1], SETTINGS[number % 4]], every=6)
        self.check("dualpipe", lambda number: SETTINGS[1:4:2],
                   lambda spec: [of for of in runs_of(spec) if not of], every=6, turn=2)
        self.check(SHARED, lambda number: SETTINGS[:1], lambda spec: [of for of in runs_of(spec) if not of],
                   every=6, turn=1)

    def test_listed_order(self):
        """Runs that serve have one microbatch, which is not what the order is of."""
        self.check(LISTED, lambda number: SETTINGS[:1], lambda spec: [of for of in runs_of(spec) if not of],
                   every=3)


if __name__ == "__main__":
    main()
