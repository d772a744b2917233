"""Specs that are bred of those that are shipped keep what oracles.py says; and each oracle finds an answer
that is made wrong. ETCH_TEST_MULT: how many times as many specs; ETCH_TEST_SEED: other ones."""

import os
import pathlib
import random
import re
import tempfile
import unittest

import breed
import hunt
import oracles
import spectree

ETCH = os.environ["ETCH"]
COUNT = 90 * int(os.environ.get("ETCH_TEST_MULT", "1"))
FIRST = int(os.environ.get("ETCH_TEST_SEED", "1")) * 1000


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


def of(*words, change):
    """A lie about the answers of commands that have all these words."""
    return lambda command, status, out: change(status, out) if status == 0 and all(
        word in command for word in words) else (status, out)


def bound(command):
    return "=" in command[-1] and not re.search(r"(\w+)=\1(,|$)", command[-1])


LIES = {
    "takes": of("check", change=lambda status, out: (1, out)),
    "totals": lambda command, status, out: (status, more(out)) if command[:1] == ("query",) and
    re.match(r"rank_flops\(step\)", command[2]) else (status, out),
    "at values": of("query", "--form", change=lambda status, out: (status, f"{out.strip()} + 1")),
    "rows": of("query", "--by", change=lambda status, out: (status, re.sub(
        r'("(?:value|formula)": ")', r"\g<1>1 + ", out))),
    "not proved": of("prove", change=lambda status, out: (5, out)),
    "JSON": lambda command, status, out: (status, re.sub(r'"c": "', r'"c": "7',
                                                         out)) if "--format" in command and
    "--by" not in command and "--why" not in command and command[0] == "query" else (status, out),
    "why": of("query", "--why", change=lambda status, out: (status, re.sub(
        r'("(?:value|formula)": ")', r"\g<1>1 + ", out, count=2))),
    "Python": of("query", "python", change=lambda status, out: (status, "1 + " + out)),
    "in its place": lambda command, status, out: (status, more(out)) if "inlined" in command[1] else (status,
                                                                                                      out),
    "verify": of("verify", change=lambda status, out: (5, out)),
    "dry run says other": of("lower", "-o", change=lambda status, out: (status, re.sub(
        r'("nodes": )', r"\g<1>1", out, count=1))),
    "show": of("show", change=lambda status, out: (1, out)),
}


class Bred(unittest.TestCase):
    def test_what_must_hold(self):
        lowered, broken = hunt.hunt(ETCH, range(FIRST, FIRST + COUNT))
        self.assertEqual({}, {seed: str(found) for seed, found in broken.items()})
        self.assertGreater(6 * lowered, COUNT)

    def test_lies_are_found(self):
        pool = dict(breed.pool())
        left, seed = dict(LIES), 0
        while left and seed < 300:
            seed += 1
            bred = breed.Breeder(seed, pool)
            for word, lie in list(left.items()):
                with tempfile.TemporaryDirectory() as scratch:
                    path = pathlib.Path(scratch) / "bred.etch"
                    path.write_text(bred.text(), encoding="utf-8")
                    asked = Lying(lie, ETCH, path, bred, random.Random(seed))
                    try:
                        if not oracles.all_of(asked, pathlib.Path(scratch) / "traces"):
                            break
                    except oracles.Broken as broken:
                        if word in broken.kind:
                            del left[word]
        self.assertEqual({}, left)

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
