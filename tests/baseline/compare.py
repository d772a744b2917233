#!/usr/bin/env python3
"""Holds the program against a baseline: the commands of the baseline are run again. Numbers, digests and
texts must be what they were. A formula may be written otherwise where that is not longer, the numbers of a
few points are the same, and `etch prove` says that it is equal. All else is a difference, unless
exceptions.tsv has it; words that have changed stand in renamed.tsv, messages that say more in said.tsv.

    compare.py [--etch PROGRAM] [--sample N] [--seed N] [--match REGEX] [--exceptions FILE] [--renamed FILE]
               [--said FILE] [--jobs N] BASELINE

The program is $ETCH if it is not named. `--sample N` runs about N of the commands, spread evenly; `--seed`
says which (else $ETCH_TEST_SEED). Status 1: there are differences, or an exception that nothing needs. Of an
exception of a live range the executor's case is looked up in tests/exec.

exceptions.tsv: a regular expression that is searched for in `COMMAND: PLACE`, the reason, one sentence; tabs
between."""

import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import sys

import baseline
from equal import Prover

HERE = baseline.SOURCE / "tests" / "baseline"
REASONS = ("empty loop or class", "shared weight", "live range", "renamed word", "show as JSON",
           "default of a config", "groups along dimensions")
SHOWN = 300  # characters of a value


# ---- tables beside this file -------------------------------------------------------------------------------


class Mistake(Exception):
    """A line of a table that says nothing, or something unknown."""


def rows(path, columns):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            cells = line.split("\t")
            if len(cells) != columns or not all(cells):
                raise Mistake(f"{path}:{number}: {columns} columns, parted by tabs: {line}")
            yield number, cells


class Exceptions:
    def __init__(self, path):
        self.path, self.lines = path, []
        for number, (pattern, reason, sentence) in rows(path, 3):
            if reason not in REASONS:
                raise Mistake(f"{path}:{number}: '{reason}' is no reason; there are {', '.join(REASONS)}")
            if reason == "show as JSON" and not pattern.startswith("^show "):
                raise Mistake(f"{path}:{number}: the pattern of such an exception begins with '^show '")
            if reason == "live range" and not self.case(sentence):
                raise Mistake(f"{path}:{number}: the sentence names the executor's case, as tests/exec/FILE: "
                              f"NAME")
            self.lines.append((number, re.compile(pattern)))
        self.needed = set()

    @staticmethod
    def case(sentence):
        named = re.search(r"tests/exec/(\w+\.\w+): (\w+)", sentence)
        path = named and baseline.SOURCE / "tests" / "exec" / named[1]
        text = path.read_text(encoding="utf-8") if path and path.exists() else ""
        return bool(named) and bool(re.search(rf"\b{named[2]}\b", text))

    def have(self, place):
        found = {number for number, pattern in self.lines if pattern.search(place)}
        self.needed |= found
        return bool(found)

    def idle(self):
        numbers = [number for number, _ in self.lines if number not in self.needed]
        return [f"{self.path}:{number}: nothing needs this exception" for number in numbers]


class Renamed:
    """Words of the baseline that are others now; in commands, texts and names of what was said."""

    def __init__(self, path):
        self.words = {old: new for _, (old, new) in rows(path, 2)}
        words = "|".join(re.escape(word) for word in sorted(self.words, key=len, reverse=True))
        self.pattern = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None

    def __call__(self, text):
        return self.pattern.sub(lambda match: self.words[match[0]], text) if self.pattern else text


class Said:
    """What messages say today, as a regular expression, and what they said instead when the baseline was
    recorded; of both answers, so that a baseline of today passes as well."""

    def __init__(self, path):
        self.lines = [(re.compile(pattern), old if old != "nothing" else "")
                      for _, (pattern, old, _) in rows(path, 3)]

    def message(self, text):
        for pattern, old in self.lines:
            text = pattern.sub(old, text)
        return text

    def __call__(self, answer):
        answer["messages"] = [self.message(text) for text in answer.get("messages", [])]
        return answer


# ---- differences -------------------------------------------------------------------------------------------


def differences(old, new, place=""):
    """(place, old, new) wherever two answers are not the same."""
    if type(old) is not type(new):
        yield place, old, new
    elif isinstance(old, dict):
        if list(old) != list(new):
            yield f"{place} (names)", list(old), list(new)
        for key in old:
            if key in new:
                yield from differences(old[key], new[key], f"{place}.{key}" if place else key)
    elif isinstance(old, list):
        if len(old) != len(new):
            yield f"{place} (how many)", len(old), len(new)
        for index, (one, other) in enumerate(zip(old, new)):
            yield from differences(one, other, f"{place}[{index}]")
    elif old != new:
        yield place, old, new


LEFT_OUT = re.compile(r"remark E0510 [^|\"]*: the config leaves out [^:]*: [^,]* taken, ([^|\"]*) \|")


def left_out(answer):
    """The params that took their defaults because a config leaves them out, with these: {name: value}."""
    found = LEFT_OUT.search(answer)
    return dict(part.split(" = ", 1) for part in found[1].split(", ")) if found else {}


def shown_value(answer):
    result = json.loads(answer).get("result")
    return result.get("formula") or result.get("value") if isinstance(result, dict) else None


def follows(prover, opened, closed, defaults):
    """Is what is said with the defaults what is said without them, at their values?"""
    one, other = shown_value(opened), shown_value(closed)
    if not one or not other:
        return True
    put = re.sub(r"[A-Za-z_]\w*'*", lambda name: f"({defaults[name[0]]})" if name[0] in defaults else name[0],
                 one)
    return prover.same_numbers(put, other)


def answered(program, prover, command, old):
    """The answer of today. A baseline that was recorded when a config bound what it names and nothing else is
    held against the answer that leaves the rest open, and that one against the answer with the defaults."""
    new = baseline.answer(program, command)
    defaults = {} if "E0510" in old else left_out(new)
    if not defaults:
        return new
    opened = baseline.answer(program, f"{command} --set {','.join(f'{name}={name}' for name in defaults)}")
    return opened if follows(prover, opened, new, defaults) else new


def compared(program, said, prover, command, old):
    """What is different now: (place, why, old, new)."""
    new = answered(program, prover, command, old)
    if new == old:
        return []
    found = []
    old, new = json.loads(old), json.loads(new)
    if "messages" in old and "messages" in new:
        old, new = said(old), said(new)
    for place, one, other in differences(old, new):
        texts = isinstance(one, str) and isinstance(other, str)
        why = prover.why_not(command, one, other) if texts else "different"
        if why:
            found.append((place, why, one, other))
    return found


def work(program, said, pair):
    return compared(program, said, Prover(program), *pair)


def shown(value, other):
    """A value, or of a long one what is around the first difference."""
    value, other = str(value), str(other)
    if len(value) <= SHOWN:
        return value
    first = len(os.path.commonprefix((value, other)))
    begin = max(0, first - SHOWN // 2)
    return f"{'..' if begin else ''}{value[begin:begin + SHOWN]}{'..' if begin + SHOWN < len(value) else ''}"


def sampled(commands, count, seed):
    step = max(1, len(commands) // count) if count else 1
    return commands[seed % step::step]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--etch", default=os.environ.get("ETCH"))
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("ETCH_TEST_SEED") or 0))
    parser.add_argument("--match", default="")
    parser.add_argument("--exceptions", type=pathlib.Path, default=HERE / "exceptions.tsv")
    parser.add_argument("--renamed", type=pathlib.Path, default=HERE / "renamed.tsv")
    parser.add_argument("--said", type=pathlib.Path, default=HERE / "said.tsv")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("baseline")
    chosen = parser.parse_args()
    if not chosen.etch:
        parser.error("say which program")
    program = os.path.abspath(chosen.etch)
    try:
        exceptions, renamed, said = Exceptions(chosen.exceptions), Renamed(chosen.renamed), Said(chosen.said)
    except (Mistake, re.error) as mistake:
        sys.exit(f"{mistake}")

    old = baseline.read(chosen.baseline)
    old = {command: old[command] for command in old if re.search(chosen.match, command)}
    commands = sampled(sorted(old), chosen.sample, chosen.seed)
    if not commands:
        sys.exit("no command of the baseline is chosen")
    count, excepted = 0, 0
    with concurrent.futures.ProcessPoolExecutor(chosen.jobs) as pool:
        pairs = [(renamed(command), renamed(old[command])) for command in commands]
        works = pool.map(functools.partial(work, program, said), pairs, chunksize=16)
        for command, found in zip(commands, works):
            left = [line for line in found if not exceptions.have(f"{command}: {line[0]}")]
            excepted += len(found) - len(left)
            count += len(left)
            if left:
                print(command)
            for place, why, one, other in left:
                print(f"  {place}: {why}\n    was {shown(one, other)}\n    is  {shown(other, one)}")
    idle = exceptions.idle() if len(commands) == len(old) and not chosen.match else []
    print("\n".join([*idle, f"{len(commands)} commands, {count} differences, {excepted} excepted"]))
    sys.exit(1 if count or idle else 0)


if __name__ == "__main__":
    main()
