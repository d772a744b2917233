"""Specs that are bred of those that are shipped keep what oracles.py says; and each oracle finds an answer
that is made wrong. ETCH_TEST_MULT: how many times as many specs; ETCH_TEST_SEED: other ones."""

import json
import os
import pathlib
import random
import re
import tempfile
import unittest

import breed
from effort import effort, first_seed
import hunt
import oracles
import repair
import spectree

ETCH = os.environ["ETCH"]
COUNT = effort(20 if "ETCH_FUZZ_SANITIZED" in os.environ else 90)
FIRST = first_seed(1) * 1000


class Lying(oracles.Asked):
    """A program whose answers to some commands are changed."""

    def __init__(self, lie, *others):
        super().__init__(*others)
        self.lie = lie

    def call(self, *command):
        done = super().call(*command)
        done.status, done.out = self.lie(command, done.status, done.out)
        return done


def more(text):
    """The first number of an answer is one more."""
    return re.sub(r"\d+", lambda found: str(int(found[0]) + 1), text, count=1)


def one_more_row(text):
    answer = json.loads(text)
    answer["rows"].append({"label": "none", "value": "1"})
    return json.dumps(answer)


def one_more_term(text):
    answer = json.loads(text)
    answer["terms"].append({"value": "1", "from": []})
    return json.dumps(answer)


def of(*words, change):
    """A lie about the answers of commands that have all these words."""
    return lambda command, status, out: change(status, out) if status == 0 and all(
        word in command for word in words) else (status, out)


# A word of what must be found -> the oracle, and the lie.
LIES = {
    "takes": (oracles.acceptance, of("check", change=lambda status, out: (1, out))),
    "totals": (oracles.totals, lambda command, status, out: (status, more(out))
               if command[0] == "query" and command[2].startswith("rank_flops(step)") else (status, out)),
    "at values": (oracles.formulas, of("query", "--form", change=lambda status, out: (status, "1 + " + out))),
    "not proved": (oracles.formulas, of("prove", change=lambda status, out: (5, out))),
    "not refuted": (oracles.formulas, lambda command, status,
                    out: (5 if command[0] == "prove" else status, out)),
    "JSON": (oracles.formulas, of("query", "json", change=lambda status, out: (
        status, re.sub(r'"c": "(-?)', r'"c": "\g<1>7', out)))),
    "Python": (oracles.formulas, of("query", "python", change=lambda status, out: (status, "1 + " + out))),
    "rows": (oracles.tables, of("query", "--by", change=lambda status, out: (status, one_more_row(out)))),
    "why": (oracles.tables, of("query", "--why", change=lambda status, out: (status, one_more_term(out)))),
    "in its place": (oracles.written_in_place, lambda command, status, out: (
        status, more(out) if "inlined" in command[1] else out)),
    "dry run says other": (oracles.written, of("lower", "-o", change=lambda status, out: (
        status, re.sub(r'("nodes": )', r"\g<1>1", out, count=1)))),
    "verify": (oracles.written, of("verify", change=lambda status, out: (5, out))),
    "show": (oracles.shown, of("show", change=lambda status, out: (1, out))),
}


class Bred(unittest.TestCase):
    def test_what_must_hold(self):
        lowered, broken = hunt.hunt(ETCH, range(FIRST, FIRST + COUNT))
        self.assertEqual({}, {seed: str(found) for seed, found in broken.items()})
        self.assertGreater(6 * lowered, COUNT)

    def test_lies_are_found(self):
        pool, left, seed = dict(breed.pool()), dict(LIES), 0
        while left and seed < 200:
            seed += 1
            with tempfile.TemporaryDirectory() as scratch:
                bred = breed.Breeder(seed, pool)
                path = pathlib.Path(scratch) / "bred.etch"
                path.write_text(bred.text(), encoding="utf-8")
                asked = oracles.Asked(ETCH, path, bred, random.Random(seed))
                if not repair.repair(asked) or not oracles.small(asked):
                    continue
                lowered = asked.ask("lower", more=("--dry-run", "--format", "json"))
                for word, (oracle, lie) in list(left.items()):
                    try:
                        self.lied_to(oracle, Lying(lie, ETCH, path, bred, random.Random(seed)), lowered)
                    except oracles.Broken as broken:
                        if word in broken.kind:
                            del left[word]
        self.assertEqual({}, left)

    @staticmethod
    def lied_to(oracle, asked, lowered):
        """Asks with what the oracle takes."""
        if oracle is oracles.written:
            oracle(asked, pathlib.Path(asked.folder) / "traces", lowered)
        elif oracle in (oracles.totals, oracles.shown):
            oracle(asked, lowered)
        else:
            oracle(asked)

    def test_trees_are_texts(self):
        """What is written of a tree is the tree, and a seed is one spec."""
        pool = dict(breed.pool())
        for name, text in pool.items():
            tree = spectree.read(text)
            self.assertEqual(tree, spectree.read(spectree.write(tree)), name)
        for seed in range(20):
            self.assertEqual(breed.Breeder(seed, pool).text(), breed.Breeder(seed, pool).text())


if __name__ == "__main__":
    unittest.main()
