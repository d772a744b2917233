"""The packed inputs of the target `spec` are the shipped specs and those of the tests: out of the bundle,
beside nothing else, each says the same as where it comes from; and the values and plans that come with a
model can be used with it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ETCH, UNPACK = os.environ["ETCH"], sys.argv.pop(1)
SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
PACKED = pathlib.Path(os.environ["ETCH_BINARY_DIR"]) / "fuzz" / "packed" / "spec"


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def without_places(value):
    """An answer but for where its parts stand: a bundle has lines of its own."""
    if isinstance(value, dict):
        return {key: without_places(part) for key, part in value.items() if key not in ("location", "file")}
    return [without_places(part) for part in value] if isinstance(value, list) else value


def answer(*command):
    status, out = run(ETCH, *command, "--format", "json")
    return status, without_places(json.loads(out)) if out else None


def origin(name):
    """The spec that an input is made of."""
    stem = name.split(".")[0] + ".etch"
    return next(path for place in ("models", "tests") for path in sorted((SOURCE / place).rglob(stem)))


class Corpus(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def unpacked(self, path):
        """The spec of a bundle, alone with its imports in a folder, and the options that come with it."""
        folder = self.scratch / path.name
        folder.mkdir()
        status, out = run(UNPACK, path, folder)
        self.assertEqual(status, 0)
        spec, *options = out.splitlines()
        return pathlib.Path(spec), options

    def test_all_are_there(self):
        packed = {path.name.split(".")[0] for path in PACKED.iterdir()}
        self.assertEqual(packed,
                         {path.stem for place in ("models", "tests")
                          for path in (SOURCE / place).rglob("*.etch")})

    def test_same_answers(self):
        for path in sorted(PACKED.iterdir()):
            with self.subTest(path.name):
                spec, _ = self.unpacked(path)
                was = origin(path.name)
                self.assertEqual(answer("check", spec), answer("check", was))
                self.assertEqual(answer("query", spec, "params(model)"),
                                 answer("query", was, "params(model)"))

    def test_lowered(self):
        """Every shipped model; libraries hold none."""
        libraries = {"base", "biased", "encoder", "plans", "rotary"}
        shipped = {path.stem for path in (SOURCE / "models").glob("*.etch")} - libraries
        for path in sorted(PACKED.iterdir()):
            if path.name.split(".")[0] not in shipped:
                continue
            with self.subTest(path.name):
                spec, options = self.unpacked(path)
                self.assertEqual(run(ETCH, "lower", spec, "--dry-run", *options)[0], 0)


if __name__ == "__main__":
    unittest.main()
