"""Pictures of pipelines as SVG: every slot once, as long as it takes, in the color of its kind, and a line
for each message between stages; read back from the picture and held against the JSON of the same."""

import collections
import json
import re
import xml.etree.ElementTree as tree
from fractions import Fraction

from etchtest import LLAMA, Case, main, succeed

SPEC = """etch 1
import "{model}"
parallel pipe {{ mesh [pp]; stage (embed, layer, head) @ pp, schedule = {schedule} }}
"""
SVG = "{http://www.w3.org/2000/svg}"
KINDS = dict(f="forward", b="backward", i="input_gradients", w="weight_gradients")
WAYS = [("one_f_one_b", 3, 4), ("interleaved(virtual = 2)", 2, 4), ("zb_h1", 4, 5), ("zb_v", 4, 3),
        ("zb_v", 2, 6), ("dualpipev", 2, 5), ("dualpipe", 4, 10), ("gpipe", 1, 2)]


class Pictures(Case):
    def pictures(self, schedule, stages, micro):
        spec = self.write("svg.etch", SPEC.format(model=LLAMA, schedule=schedule))
        arguments = ("show", spec, "--pipeline", "--plan", "pipe", "--set", f"pp={stages},micro={micro}")
        return (tree.fromstring(succeed(*arguments, "--format", "svg").out),
                json.loads(succeed(*arguments, "--format", "json").out))

    @staticmethod
    def slots(picture):
        """[(row, kind, begin, end, what is written in it)], in units of time, the legend left out."""
        rows = {int(rect.get("y")): int(rect.get("height")) for rect in picture.iter(f"{SVG}rect")
                if rect.get("class") == "r"}
        first = next(int(rect.get("x")) for rect in picture.iter(f"{SVG}rect") if rect.get("class") == "r")
        texts = [text.text for text in picture.iter(f"{SVG}text") if text.get("class") == "n"]
        found = []
        for rect in picture.iter(f"{SVG}rect"):
            inside = [at for at, (y, height) in enumerate(sorted(rows.items()))
                      if y <= int(rect.get("y")) < y + height]
            if inside and rect.get("class") != "r":
                found.append((inside[0], KINDS[rect.get("class")], int(rect.get("x")) - first,
                              int(rect.get("width"))))
        unit = min(width for _, kind, _, width in found if kind == "forward")
        return [(row, kind, Fraction(x, unit), Fraction(x + width, unit), text)
                for (row, kind, x, width), text in zip(found, texts, strict=True)]

    @staticmethod
    def expected(report):
        """The same of the JSON. In a slot that is shared, forward takes all of its time, and so do the halves
        of backward together, one after the other."""
        for stage, row in enumerate(report["stages"]):
            slots = row["slots"]
            for at, slot in enumerate(slots):
                begin, end = at, at + 1
                while slots[begin].get("overlaps"):
                    begin -= 1
                while end < len(slots) and slots[end].get("overlaps"):
                    end += 1
                begin += end - begin > 1 and slots[begin]["direction"] == "forward"
                place, count = (0, 1) if slot["direction"] == "forward" else (at - begin, end - begin)
                each = Fraction(slot["end"] - slot["start"], count)
                text = f"{slot['microbatch']}.{slot['chunk']}" if report["chunks"] > 1 else slot["microbatch"]
                yield (stage, slot["direction"], slot["start"] + place * each,
                       slot["start"] + (place + 1) * each, str(text))

    @staticmethod
    def messages(report):
        """Between links of the chain on different stages, forward and back, of each microbatch."""
        stage_of = {(slot["microbatch"], slot["link"]): stage for stage, row in enumerate(report["stages"])
                    for slot in row["slots"]}
        return 2 * sum(stage_of.get((microbatch, link + 1), stage) != stage
                       for (microbatch, link), stage in stage_of.items())

    def test_pictures(self):
        for schedule, stages, micro in WAYS:
            with self.subTest(schedule=schedule, stages=stages, micro=micro):
                picture, report = self.pictures(schedule, stages, micro)
                self.assertEqual(collections.Counter(self.expected(report)),
                                 collections.Counter(self.slots(picture)))
                lines = [path for path in picture.iter(f"{SVG}path") if "L" in path.get("d")]
                self.assertEqual(self.messages(report), len(lines))
                for line in lines:
                    x, _, to, _ = map(int, re.findall(r"\d+", line.get("d")))
                    self.assertLessEqual(x, to)


if __name__ == "__main__":
    main()
