"""The timeline and the page of `etch simulate` are those of the run: begins and durations of every node to
the picosecond, streams in which nothing overlaps, memory as `etch memory` has it. The page is one file that
asks for nothing else; where Chromium is installed it is looked at there, wide and narrow, light and dark."""

import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from decimal import Decimal

sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "acceptance"))
from etchtest import MODELS, SOURCE, Case, run, settings, succeed  # noqa: E402

LLAMA, MIXTRAL, GPT = MODELS / "llama.etch", MODELS / "mixtral.etch", MODELS / "gpt.etch"
SIZES = dict(layers=4, hidden=64, heads=8, vocab=128, batch=16, micro=4, seq=64)
GROUPED = dict(SIZES, kv_heads=8, head_dim=8, ffn=96)
RUNS = [(LLAMA, "megatron_pp", dict(GROUPED, pp=2, dp=2, tp=2), ()),
        (LLAMA, "megatron_interleaved", dict(GROUPED, pp=2, dp=1, tp=2), ()),
        (LLAMA, "megatron_pp", dict(GROUPED, pp=2, dp=2, tp=2), ("--streams", "one")),
        (LLAMA, "fsdp", dict(GROUPED, dp=4, micro=1), ()),
        (GPT, "megatron_pp", dict(SIZES, positions=64, pp=2, dp=1, tp=1), ("--granularity", "op")),
        (MIXTRAL, "moe_pp", dict(GROUPED, experts=4, topk=2, expert_ffn=64, pp=2, dp=2, ep=2, tp=1), ())]
MACHINE = ("--machine", SOURCE / "machines" / "h100_sxm.etch")
PICO = 10**6  # of a microsecond


def picoseconds(number):
    value = number * PICO
    assert value == int(value), number
    return int(value)


class Timelines(Case):
    def draw(self, spec, plan, sets, more=()):
        words = (spec, "--plan", plan, "--set", settings(sets), *MACHINE, *more)
        path = self.scratch / "t.json"
        succeed("simulate", *words, "--timeline", path)
        timeline = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
        run_ = json.loads(succeed("simulate", *words, "--times", "--format", "json").out)
        memory = json.loads(succeed("memory", spec, "--plan", plan, "--set", settings(sets),
                                    "--format", "json").out)
        return timeline, run_, memory

    def assertRank(self, rank, events, of_class):
        nodes = {event["args"]["id"]: event for event in events if event["ph"] == "X"}
        self.assertEqual(len(of_class["begins"]), len(nodes))
        streams = {}
        for i, (begins, lasts) in enumerate(zip(of_class["begins"], of_class["lasts"])):
            self.assertEqual((begins, lasts), (picoseconds(nodes[i]["ts"]), picoseconds(nodes[i]["dur"])))
            streams.setdefault(nodes[i]["tid"], []).append((begins, begins + lasts))
        for stream in streams.values():
            stream.sort()
            for before, after in zip(stream, stream[1:]):
                self.assertLessEqual(before[1], after[0])
        self.assertEqual(of_class["computing"], sum(end - begin for begin, end in streams[0]))
        named = {event["tid"] for event in events if event["name"] == "thread_name"}
        self.assertLessEqual(set(streams), named)
        self.assertEqual([f"rank {rank}, stage {of_class['stage']}"],
                         [event["args"]["name"] for event in events if event["name"] == "process_name"])

    def assertMemory(self, events, stage, kinds):
        """A counter has a row of the stage each, in their order; the row that holds the most among them."""
        counters = [event for event in events if event["ph"] == "C"]
        rows = [row["bytes"] for row in stage["rows"]]
        at = -1
        for counter in counters:
            at = rows.index([counter["args"][kind] for kind in kinds], at + 1)
        self.assertEqual(sorted(event["ts"] for event in counters), [event["ts"] for event in counters])
        self.assertIn(rows[stage["peak"]], [[event["args"][kind] for kind in kinds] for event in counters])

    def test_runs(self):
        for spec, plan, sets, more in RUNS:
            with self.subTest(spec=spec.name, plan=plan, more=more):
                timeline, run_, memory = self.draw(spec, plan, sets, more)
                self.assertEqual(str(run_["step_ps"]), timeline["otherData"]["step_ps"])
                by_rank = {}
                for event in timeline["traceEvents"]:
                    by_rank.setdefault(event["pid"], []).append(event)
                self.assertEqual({c["first_rank"] for c in run_["classes"]}, set(by_rank))
                for rank, events in by_rank.items():
                    of_class = run_["classes"][run_["class_of"][rank]]
                    self.assertRank(rank, events, of_class)
                    self.assertMemory(events, memory["stages"][of_class["stage"]], memory["kinds"])

    def test_ranks(self):
        spec, plan, sets, _ = RUNS[0]
        words = ("simulate", spec, "--plan", plan, "--set", settings(sets), *MACHINE)
        texts = []
        for _ in range(2):
            succeed(*words, "--ranks", "1,4-5", "--timeline", self.scratch / "t.json")
            texts.append((self.scratch / "t.json").read_bytes())
        self.assertEqual(*texts)
        events = json.loads(texts[0])["traceEvents"]
        self.assertEqual({1, 4, 5}, {event["pid"] for event in events})
        for bad in ("8", "x", "1,", "3-1", ""):
            done = run(*words, "--ranks", bad, "--timeline", self.scratch / "u.json")
            self.assertEqual((2, ""), (done.status, done.out), done)
        self.assertEqual(["t.json"], [path.name for path in self.scratch.iterdir()])

    def test_refused(self):
        spec, plan, sets, _ = RUNS[0]
        words = ("simulate", spec, "--plan", plan, "--set", settings(sets), *MACHINE)
        for option in ("--timeline", "--report"):
            done = run(*words, option, self.scratch / "none" / "t.json")
            self.assertEqual((3, ""), (done.status, done.out))
            self.assertIn("cannot write", done.err)
            self.assertEqual(3, run(*words, option, self.scratch).status)
        self.assertEqual([], list(self.scratch.iterdir()))
        many = dict(sets, micro=2000, batch=8000, layers=8, pp=8)
        done = run("simulate", spec, "--plan", plan, "--set", settings(many), *MACHINE, "--ranks", "0-31",
                   "--timeline", self.scratch / "t.json")
        self.assertEqual((4, ""), (done.status, done.out), done)
        self.assertEqual([], list(self.scratch.iterdir()))


class Page(html.parser.HTMLParser):
    """Tags in their order, and text."""

    VOID = {"meta", "link", "rect", "path"}
    OPTIONAL = {"td", "th", "tr"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.styles = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link") and tag not in self.OPTIONAL:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in self.OPTIONAL:
            assert self.open.pop() == tag, tag

    def handle_data(self, data):
        (self.styles if self.open and self.open[-1] == "style" else self.text).append(data)


class Reports(Case):
    def report(self, index=0):
        spec, plan, sets, more = RUNS[index]
        words = (spec, "--plan", plan, "--set", settings(sets), *MACHINE, *more)
        path = self.scratch / f"r{index}.html"
        succeed("simulate", *words, "--report", path)
        return path, json.loads(succeed("simulate", *words, "--format", "json").out)

    def test_page(self):
        for index in range(len(RUNS)):
            path, run_ = self.report(index)
            page = Page(path.read_text(encoding="utf-8"))
            self.assertEqual([], page.open)
            self.assertNotIn("script", [tag for tag, _ in page.tags])
            for tag, attrs in page.tags:
                for name in ("src", "href", "xlink:href", "action", "data"):
                    self.assertIn(attrs.get(name), (None, "data:,"), tag)
            self.assertNotRegex("".join(page.styles), r"@import|url\(")
            text = "".join(page.text)
            if run_["tokens_per_second"]:
                self.assertIn(str(run_["tokens_per_second"]), text)
            step = run_["step_ps"]
            for of_class in run_["classes"]:
                tenths = (of_class["computing"] * 100000 // step + 50) // 100
                self.assertIn(f"computing {tenths // 10}.{tenths % 10} %", text)
                self.assertIn(f"stage {of_class['stage']}, {of_class['ranks']} rank", text)
            bars = [attrs for tag, attrs in page.tags if tag == "rect"]
            self.assertTrue(all(0 <= int(bar["x"]) <= 100000 and int(bar["x"]) + int(bar["width"]) <= 100001
                                for bar in bars))

    def kernels(self, index):
        """(op, module, phase) of the kernels of each class: FLOP, bytes, picoseconds."""
        spec, plan, sets, more = RUNS[index]
        succeed("simulate", spec, "--plan", plan, "--set", settings(sets), *MACHINE, *more, "--timeline",
                self.scratch / "t.json")
        found = {}
        for event in json.loads((self.scratch / "t.json").read_text(encoding="utf-8"))["traceEvents"]:
            if event["ph"] == "X" and event["tid"] == 0:
                args = event["args"]
                sums = found.setdefault(event["pid"], {}).setdefault(
                    (args["op"], args.get("module", ""), event["cat"]), [0, 0, 0])
                for i, more_ in enumerate((args["flop"], args["bytes"], round(event["dur"] * PICO))):
                    sums[i] += more_
        return found

    def test_critical_path(self):
        """Its parts are as long as the step, and each is what the path of the run says."""
        for index in range(len(RUNS)):
            spec, plan, sets, more = RUNS[index]
            path, _ = self.report(index)
            text = path.read_text(encoding="utf-8")
            text = text[text.index("The critical path"):text.index("Computing, to scale")]
            times = json.loads(succeed("simulate", spec, "--plan", plan, "--set", settings(sets), *MACHINE,
                                       *more, "--times", "--format", "json").out)
            parts = re.findall(r"</i>(\S+) (\d+\.\d) %", text)
            self.assertAlmostEqual(100, sum(float(share) for _, share in parts),
                                   delta=0.05 * len(parts) + 1e-9)
            bars = sorted((int(x), int(width)) for x, width in
                          re.findall(r'<rect class="c\d" x="(\d+)" y="0" width="(\d+)"', text))
            rows = re.findall(r", first \d+: (\d+\.\d) % of the step", text)
            self.assertAlmostEqual(100, sum(map(float, rows)), delta=0.05 * len(rows) + 1e-9)
            self.assertEqual(0, bars[0][0])
            for before, after in zip(bars, bars[1:] + [(100000, 0)]):
                self.assertEqual(before[0] + before[1], after[0])
            ranks = {str(times["classes"][c]["first_rank"]) for c, _ in times["path"]}
            self.assertEqual(ranks, set(re.findall(r"<title>rank (\d+), ", text)))

    def test_roofline(self):
        """A dot for each kernel with FLOP, where its FLOP, bytes and time put it, and below the roof."""
        for index in (0, 4):
            path, run_ = self.report(index)
            text = path.read_text(encoding="utf-8")
            busiest = max(run_["classes"], key=lambda c: (c["computing"], -c["first_rank"]))["first_rank"]
            text = text[text.index(f"Roofline of rank {busiest}<"):text.index("Communication of rank")]
            kernels = {" ".join(name[:2]) + ", " + name[2]: sums
                       for name, sums in self.kernels(index)[busiest].items() if sums[0]}
            dots = re.findall(r'd="M(\d+) (\d+)h0"><title>([^:]*): '
                              r'([\d.e+-]+) FLOP a byte, ([\d.e+-]+) TFLOP/s', text)
            self.assertEqual(set(kernels), {dot[2] for dot in dots})
            self.assertEqual(len(kernels), len(dots))
            roof = re.search(r'd="M(-?\d+) (-?\d+)L(\d+) (\d+)L(\d+) (\d+)"', text)
            left, low, ridge, top, _, flat = map(int, roof.groups())
            self.assertEqual(top, flat)
            places = []
            for x, y, name, intensity, rate in dots:
                flop, moved, picoseconds = kernels[name]
                self.assertAlmostEqual(1, float(intensity) / (flop / moved), places=2)
                self.assertAlmostEqual(1, float(rate) / (flop / picoseconds), places=2)
                above = top if int(x) >= ridge else top + (low - top) * (ridge - int(x)) / (ridge - left)
                self.assertGreaterEqual(int(y), above - 1, name)
                places.append((flop / moved, int(x), flop / picoseconds, -int(y)))
            for by, of in ((0, 1), (2, 3)):
                places.sort(key=lambda place: (place[by], place[of]))
                self.assertEqual(sorted(place[of] for place in places), [place[of] for place in places])

    @unittest.skipUnless(shutil.which("chromium"), "Chromium is not installed")
    def test_browser(self):
        """Nothing is wider than the window but tables, which scroll; no text is smaller than 14 pixels; ink
        stands out from paper; nothing is fetched, and no error is said."""
        path, _ = self.report()
        probe = self.scratch / "probe.html"
        for dark in (False, True):
            text = path.read_text(encoding="utf-8")
            if dark:  # headless, there is no switch for what the system prefers
                text = text.replace("@media(prefers-color-scheme:dark)", "@media all")
            probe.write_text(text + PROBE, encoding="utf-8")
            for width in (1280, 400):
                with self.subTest(dark=dark, width=width):
                    self.look(probe, width)

    def look(self, page, width):
        frame = self.scratch / "frame.html"
        # windows of headless Chromium are 500 pixels wide at least: a frame is as narrow as it is asked to be
        frame.write_text(FRAME.replace("WIDTH", str(width)).replace("PAGE", page.name), encoding="utf-8")
        done = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--allow-file-access-from-files", "--enable-logging=stderr",
             "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self.scratch / 'profile'}",
             "--virtual-time-budget=4000", "--window-size=1400,900", "--dump-dom", frame.as_uri()],
            capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(0, done.returncode, done.stderr[-2000:])
        self.assertNotIn("CONSOLE", done.stderr)
        found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)
        self.assertTrue(found, done.stdout[-2000:])
        seen = json.loads(found[1].replace("&quot;", '"'))
        self.assertEqual(width, seen["width"])
        self.assertLessEqual(seen["scroll"], width)
        self.assertEqual([], seen["small"])
        self.assertEqual([], seen["fetched"])
        self.assertGreaterEqual(seen["contrast"], 4.5)
        self.assertGreater(seen["rects"], 8)


PROBE = """<script>
const light = c => { const p = c.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * p[0] + 0.7152 * p[1] + 0.0722 * p[2]; };
const paper = light(getComputedStyle(document.body).backgroundColor), small = [];
let contrast = 21;
for (const e of document.querySelectorAll("h1,h2,h3,p,span,td,th,dt,dd")) {
  const style = getComputedStyle(e), ink = light(style.color);
  if (e.textContent && parseFloat(style.fontSize) < 14) small.push(e.tagName);
  contrast = Math.min(contrast, (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05));
}
parent.postMessage({width: innerWidth, scroll: document.documentElement.scrollWidth, small, contrast,
  fetched: performance.getEntriesByType("resource").map(e => e.name),
  rects: [...document.querySelectorAll("rect,path")]
    .filter(e => e.getBoundingClientRect().height > 0).length},
  "*");
</script>"""
FRAME = """<!DOCTYPE html><html><body><script>
addEventListener("message", e => { const found = document.createElement("pre"); found.id = "found";
  found.textContent = JSON.stringify(e.data); document.body.append(found); });
</script><iframe src="PAGE" style="width:WIDTHpx;height:800px;border:0"></iframe></body></html>"""

if __name__ == "__main__":
    unittest.main()
