"""Arguments of all kinds in the place of every argument of every op, and of every value of every option of
plans and runs. Each either means what it says or is refused with a place and a reason; nothing is ever left
out without a word."""

import json
import random
import re

from effort import effort, first_seed
from etchtest import DIAGNOSTIC, Case, main, run, succeed
from wrong_arguments import (GIVEN, OPS, WITHOUT_MEANING, call, is_open, may_be_taken, right, spec_of,
                             wrong_calls)
from wrong_options import PLANS, RUNS, SPEC, accepts, plain, wrong_options

SEED = first_seed(1)
COUNT = effort(2000)


class Calls(Case):
    def check(self, text):
        path = self.write("call.etch", text)
        done = run("check", path)
        self.assertIn(done.status, (0, 1), f"{text}\n{done}")
        if done.status == 1:
            placed = [error for error in done.errors() if error["line"]]
            self.assertTrue(placed, f"refused without a place\n{text}\n{done}")
        return path, done

    def of_line(self, path, line):
        """What the graph has of a line: names of ops with their FLOP and numbers, and bytes of what they
        make."""
        shown = json.loads(succeed("show", path, "--defaults", "--format", "json").out)
        ops = [op for op in shown["ops"] if op["location"]["line"] == line]
        made = [shown["tensors"][out] for op in ops for out in op["outs"]]
        given = [tensor for tensor in shown["tensors"]
                 if "constant" in tensor and tensor["location"]["line"] == line]
        made += given  # no op makes them
        return ([(op["name"], op["flop"]) for op in ops] + [("constant", "0") for _ in given],
                [(tensor["name"], tensor["bytes"], tensor["dtype"]) for tensor in made])

    def assertMeaning(self, path, text, line):
        """The result is made on this line, by an op or as a constant."""
        ops, made = self.of_line(path, line)
        self.assertTrue(ops, f"nothing came of the call\n{text}")
        self.assertIn("y", [name for name, _, _ in made], text)
        return ops, made

    def test_every_op_that_specs_call_is_here(self):
        listed = succeed("help", "ops").out.split("\n\n")[0].splitlines()[1:]
        self.assertEqual(sorted(line.split()[0] for line in listed), sorted(OPS))
        for line in listed:
            name, optional = line.split()[0], set(re.findall(r"\[(\w+)\]", line))
            said = {argument.name for argument in OPS[name].arguments}
            self.assertEqual(set(), optional - said, f"the call of {name} says not all that it can")

    def test_right_calls_are_taken(self):
        for name in OPS:
            text, line = spec_of(name, right(name))
            path, done = self.check(text)
            self.assertEqual(0, done.status, f"{text}\n{done}")
            self.assertMeaning(path, text, line)

    def test_wrong_arguments_are_refused_and_others_have_a_meaning(self):
        cases = list(wrong_calls())
        random.Random(SEED).shuffle(cases)
        taken = 0
        for name, arguments, index, kind, given in cases[:COUNT]:
            text, line = spec_of(name, arguments)
            path, done = self.check(text)
            if done.status == 1:
                continue
            argument = OPS[name].arguments[index]
            if is_open(given) and not may_be_taken(name, argument, kind, given):
                asked = run("query", path, "flops(forward)", "--defaults")
                self.assertEqual(1, asked.status, f"{text}\n{asked}")  # it is known now
                continue
            self.assertTrue(may_be_taken(name, argument, kind, given),
                            f"{kind} {given} is taken for the {argument.takes} {argument.name}\n{text}")
            taken += 1
            self.assertMeaning(path, text, line)
        self.assertGreater(taken, len(cases[:COUNT]) // 40)  # or the calls were refused for something else

    def test_what_has_a_number_counts_as_that_number(self):
        for name, this in OPS.items():
            for index, argument in enumerate(this.arguments):
                if argument.takes != "number":
                    continue
                found = {}
                for given in GIVEN["number"]:
                    if given in WITHOUT_MEANING.get((argument.name, name), ()):
                        continue
                    arguments = right(name)
                    arguments[index] = (argument.name, given)
                    text, line = spec_of(name, arguments)
                    path, done = self.check(text)
                    found[given] = done.status, done.status == 0 and self.of_line(path, line)
                if found.get("four", [0])[0]:
                    del found["four"]  # of an open param not all is known
                self.assertLessEqual(len(set(map(repr, found.values()))), 1,
                                     f"{call(name, right(name))}: {found}")

    def test_arguments_given_twice_or_unknown_are_refused(self):
        for name, this in OPS.items():
            named = [(argument.name, argument.text) for argument in this.arguments if argument.name]
            extra = [*named, ("bogus", "4"), ("dim", "H"), ("axis", "0"),
                     *((None, text) for text in ("S", "gelu"))]
            for more in extra:
                positional = [(key, text) for key, text in right(name) if key is None]
                rest = [(key, text) for key, text in right(name) if key is not None]
                arguments = positional + ([more] if more[0] is None
                                          else []) + rest + ([more] if more[0] else [])
                text, _ = spec_of(name, arguments)
                _, done = self.check(text)
                self.assertEqual(1, done.status, f"{more} is taken\n{text}\n{done}")


class Options(Case):
    def test_right_options_are_taken(self):
        path = self.write("right.etch", plain(SPEC))
        for of_run in RUNS:
            for plan in PLANS:
                succeed("check", path, "--run", of_run, "--plan", plan)

    def test_wrong_options_are_refused_or_warned_of(self):
        cases = list(wrong_options())
        random.Random(SEED).shuffle(cases)
        taken = 0
        for slot, line, kind, given, text in cases[:COUNT]:
            path = self.write("option.etch", text)
            done = run("check", path)
            self.assertIn(done.status, (0, 1), f"{text}\n{done}")
            if done.status == 1:
                self.assertTrue([error for error in done.errors() if error["line"]], f"{text}\n{done}")
                continue
            taken += 1
            if kind in accepts[slot.kind]:
                continue
            said = [found for found in DIAGNOSTIC.finditer(done.err) if found["line"] == str(line)]
            self.assertTrue(said, f"{kind} {given} is taken for a {slot.kind} without a word\n{text}\n{done}")
        self.assertGreater(taken, len(cases[:COUNT]) // 25)


if __name__ == "__main__":
    main()
