"""Pictures of pipelines as SVG: every slot once, as long as it takes, in the color of its kind, and a line
for each message between stages; read back from the picture and held against the JSON of the same."""

import collections
import json
import re
import xml.etree.ElementTree as tree

from etchtest import LLAMA, Case, main, succeed

SPEC = """etch 1
import "{model}"
parallel pipe {{ mesh [pp]; stage (embed, layer, head) @ pp, schedule = {schedule} }}
"""
SVG = "{http://www.w3.org/2000/svg}"
KINDS = dict(f="forward", b="backward", i="input_gradients", w="weight_gradients")
WAYS = [("one_f_one_b", 3, 4), ("interleaved(virtual = 2)", 2, 4), ("zb_h1", 4, 5), ("zb_v", 4, 3),
        ("zb_v", 2, 6), ("gpipe", 1, 2)]


class Pictures(Case):
    def pictures(self, schedule, stages, micro):
        spec = self.write("svg.etch", SPEC.format(model=LLAMA, schedule=schedule))
        arguments = ("show", spec, "--pipeline", "--plan", "pipe", "--set", f"pp={stages},micro={micro}")
        return (tree.fromstring(succeed(*arguments, "--format", "svg").out),
                json.loads(succeed(*arguments, "--format", "json").out))

    @staticmethod
    def slots(picture):
        """[(row, kind, begin, end, what is written in it)], in units of time, the legend left out."""
        rows = sorted({int(rect.get("y")) for rect in picture.iter(f"{SVG}rect") if rect.get("class") == "r"})
        first = next(int(rect.get("x")) for rect in picture.iter(f"{SVG}rect") if rect.get("class") == "r")
        rects = [rect for rect in picture.iter(f"{SVG}rect") if int(rect.get("y")) in rows]
        texts = [text.text for text in picture.iter(f"{SVG}text") if text.get("class") == "n"]
        found = [(rows.index(int(rect.get("y"))), KINDS[rect.get("class")], int(rect.get("x")) - first,
                  int(rect.get("width"))) for rect in rects if rect.get("class") != "r"]
        unit = min(width for _, kind, _, width in found if kind == "forward")
        return [(row, kind, x // unit, (x + width) // unit, text)
                for (row, kind, x, width), text in zip(found, texts, strict=True)]

    @staticmethod
    def messages(report):
        """Between links of the chain on different stages, forward and back, of each microbatch."""
        stage_of = {slot["link"]: stage for stage, row in enumerate(report["stages"])
                    for slot in row["slots"]}
        hops = sum(stage_of[link] != stage_of[link + 1] for link in range(len(stage_of) - 1))
        return 2 * hops * report["microbatches"]

    def test_pictures(self):
        for schedule, stages, micro in WAYS:
            with self.subTest(schedule=schedule, stages=stages, micro=micro):
                picture, report = self.pictures(schedule, stages, micro)
                expected = [(stage, slot["direction"], slot["start"], slot["end"],
                             f"{slot['microbatch']}.{slot['chunk']}" if report["chunks"] > 1 else
                             str(slot["microbatch"]))
                            for stage, row in enumerate(report["stages"]) for slot in row["slots"]]
                self.assertEqual(collections.Counter(expected), collections.Counter(self.slots(picture)))
                lines = [path for path in picture.iter(f"{SVG}path") if "L" in path.get("d")]
                self.assertEqual(self.messages(report), len(lines))
                for line in lines:
                    x, _, to, _ = map(int, re.findall(r"\d+", line.get("d")))
                    self.assertLessEqual(x, to)


if __name__ == "__main__":
    main()
