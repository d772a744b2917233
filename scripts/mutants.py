#!/usr/bin/env python3
"""Changes the product, one place at a time, and asks whether a test notices.

    mutants.py [--build DIR] [--coverage DIR] [--tests REGEX] [--count N] [--seed N] [--survivors PERCENT]
               [--list] FILE.c...

A mutant has one condition negated, one operator or constant changed, or one statement taken away. Sources
and build stay as they are: the mutant is compiled and linked elsewhere. Of each, the tests whose names REGEX
matches are run until one fails. Those that no test kills are listed by line; the exit status is 1 if there
are any, or more than --survivors allows. --count takes so many mutants by chance, --list only shows them.

FILE.c is a file of src/. --build is a build of any preset, build/release without it. With --coverage, a build
of that preset in which tests have run, only lines are changed that they run: coverage.py lists the others."""

import argparse
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SWAPS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",),
         "!=": ("==",),
         "&&": ("||",), "||": ("&&",), "+": ("-",), "-": ("+",), "*": ("+",), "/": ("*",), "%": ("*",),
         "+=": ("-=",), "-=": ("+=",), "true": ("false",), "false": ("true",)}
TOKEN = re.compile(r'''"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|/\*.*?\*/|//[^\n]*|[A-Za-z_]\w*|\d[\w.]*|
                   ->|\+\+|--|&&|\|\||[-+*/%=!<>]=|<<|>>|[^\s]''', re.X | re.S)
OTHERS = r"return|const|static|struct|enum|typedef|case|break|continue|goto"
STATEMENT = re.compile(rf"^(?!(?:{OTHERS})\b|#)"
                       r"[A-Za-z_][\w.>\-\[\]]*(\(.*\)|(\[.*\])?\s*[-+|&]?=[^=].*|\+\+|--);$")


class Mutant:
    def __init__(self, path, line, start, end, new, what):
        self.path, self.line, self.start, self.end, self.new, self.what = path, line, start, end, new, what

    def __str__(self):
        return f"{self.path.relative_to(ROOT)}:{self.line}: {' '.join(self.what.split())}"


def condition_end(text, start):
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
    return None


def mutants_of(path):
    """All of a file. What stands outside of functions, and in asserts, is no part of it."""
    text = path.read_text(encoding="utf-8")
    found, depth, last = [], 0, ""
    skip_until = 0

    def add(start, end, new, what):
        found.append(Mutant(path, text.count("\n", 0, start) + 1, start, end, new, what))

    for match in TOKEN.finditer(text):
        word, start, end = match[0], match.start(), match.end()
        if word.startswith(("/*", "//", '"', "'", "#")):
            continue
        depth += (word == "{") - (word == "}")
        if word == "assert":
            skip_until = condition_end(text, text.index("(", end)) or end
        if depth == 0 or start < skip_until:
            last = word
            continue
        if word in ("if", "while") and text[end:end + 2] == " (":
            close = condition_end(text, end + 1)
            inner = text[end + 2:close]
            add(end + 2, close, f"!({inner})", f"negated: {inner}")
        elif word in SWAPS:
            binary = re.match(r"[\w)\]]", last[-1:]) and text[start - 1] == " " and text[end:end + 1] == " "
            if word in ("true", "false") or (binary and last not in ("return", "case")):
                for new in SWAPS[word]:
                    add(start, end, new, f"{word} is {new}: {line_at(text, start)}")
        elif re.fullmatch(r"\d+", word) and last != "case":
            add(start, end, str(int(word) + 1), f"{word} is {int(word) + 1}: {line_at(text, start)}")
        last = word
    offset = 0
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        whole = stripped.count("(") == stripped.count(")")
        if line.startswith("    ") and STATEMENT.match(stripped) and whole:
            start = offset + line.index(stripped)
            add(start, start + len(stripped), ";", f"left out: {stripped}")
        offset += len(line)
    return found


def line_at(text, at):
    return text[text.rfind("\n", 0, at) + 1:text.find("\n", at)].strip()


def lines_run(build, path):
    """Lines of a file that tests have run."""
    run = set()
    for found in build.rglob(f"{path.name}.gcda"):
        done = subprocess.run(["gcov", "--json-format", "--stdout", str(found)], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, cwd=build, check=True)
        for part in done.stdout.splitlines():
            for unit in json.loads(part)["files"]:
                if unit["file"].endswith(str(path.relative_to(ROOT))):
                    run |= {line["line_number"] for line in unit["lines"] if line["count"] > 0}
    return run


class Bench:
    """Tests of a build, which are run with programs that have a mutant in them."""

    def __init__(self, build, tests):
        self.build, self.linked = build, {}
        entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
        self.entries = {pathlib.Path(entry["file"]).resolve(): entry for entry in entries}
        shown = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1", "-R", tests],
                               stdout=subprocess.PIPE, check=True)
        self.tests = [test for test in json.loads(shown.stdout)["tests"] if "command" in test]
        if not self.tests:
            raise SystemExit(f"mutants.py: no test is called {tests}")

    def link(self, target, entry, mutant, output):
        """Links a program of the build once more, with the mutant in place of its object."""
        if target not in self.linked:
            shown = subprocess.run(["ninja", "-C", str(self.build), "-t", "commands", target],
                                   stdout=subprocess.PIPE, text=True, check=True)
            self.linked[target] = shown.stdout.splitlines()[-1].split("&&")[1]
        words = shlex.split(self.linked[target])
        command = shlex.split(entry["command"])
        original = command[command.index("-o") + 1]
        if original in words:
            words[words.index(original)] = str(mutant)
        else:  # it comes from an archive, behind all objects
            words.insert(1, str(mutant))
        words[words.index("-o") + 1] = str(output)
        subprocess.run(words, cwd=self.build, check=True)

    def compile(self, source, entry, output):
        words = [word for word in shlex.split(entry["command"]) if word != "-Werror"]
        words[words.index("-o") + 1], words[-1] = str(output), str(source)
        words += ["-w", "-iquote", str(pathlib.Path(entry["file"]).parent)]
        return subprocess.run(words, cwd=self.build, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def fails(self, test, entry, mutant, scratch):
        properties = {known["name"]: known["value"] for known in test.get("properties", [])}
        words = dict(item.split("=", 1) for item in properties.get("ENVIRONMENT", []))
        command = list(test["command"])
        program = pathlib.Path(words.get("ETCH", command[0]))
        output = scratch / program.name
        if not output.exists():
            self.link(str(program.relative_to(self.build)), entry, mutant, output)
        command = [str(output) if word == str(program) else word for word in command]
        words = {name: str(output) if value == str(program) else value for name, value in words.items()}
        folder = scratch / "folder"
        folder.mkdir(exist_ok=True)
        try:
            done = subprocess.run(command, cwd=folder, env={**os.environ, **words}, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=1800,
                                  check=False)
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0

    def killer(self, mutant, original):
        """What notices it: the compiler, a test; or nothing, None."""
        entry = self.entries[mutant.path]
        with tempfile.TemporaryDirectory(prefix="mutant.") as name:
            scratch = pathlib.Path(name)
            source, made = scratch / mutant.path.name, scratch / "mutant.o"
            source.write_text(original[:mutant.start] + mutant.new + original[mutant.end:], encoding="utf-8")
            if not self.compile(source, entry, made):
                return "the compiler"
            return next((test["name"] for test in self.tests if self.fails(test, entry, made, scratch)), None)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    options.add_argument("--coverage", type=pathlib.Path)
    options.add_argument("--tests", default="^(cli|docs)")
    options.add_argument("--count", type=int)
    options.add_argument("--seed", default="1")
    options.add_argument("--survivors", type=float, default=0)
    options.add_argument("--list", action="store_true")
    options.add_argument("files", nargs="+", type=pathlib.Path)
    given = options.parse_args()
    every = []
    for path in (path.resolve() for path in given.files):
        run = lines_run(given.coverage.resolve(), path) if given.coverage else None
        found = mutants_of(path)
        every += [mutant for mutant in found if run is None or mutant.line in run]
    if given.count and given.count < len(every):
        every = sorted(random.Random(given.seed).sample(every, given.count), key=str)
    if given.list:
        print("\n".join(map(str, every)))
        return
    bench = Bench(given.build.resolve(), given.tests)
    survivors, compiled = 0, 0
    for mutant in every:
        killer = bench.killer(mutant, mutant.path.read_text(encoding="utf-8"))
        compiled += killer != "the compiler"
        survivors += killer is None
        print(f"{'SURVIVES' if killer is None else 'killed by ' + killer}: {mutant}", flush=True)
    print(f"{compiled} mutants, {compiled - survivors} killed, {survivors} survive")
    sys.exit(100 * survivors > given.survivors * compiled)


if __name__ == "__main__":
    main()
