"""Breeds specs, and asks of each what must hold.

    hunt.py [--first SEED] [--count N] [--seconds S] FOLDER

What is broken is kept in FOLDER: a spec, and what was said of it. $ETCH is the program."""

import argparse
import collections
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

import breed
import oracles


def ask(program, bred, seed, folder):
    """Whether the spec was lowered; oracles.Broken where something does not hold."""
    path = folder / f"bred{seed}.etch"
    path.write_text(bred.text(), encoding="utf-8")
    asked = oracles.Asked(program, path, bred, random.Random(f"ask {seed}"))
    return oracles.all_of(asked, folder / "traces")


def hunt(program, seeds, kept=None):
    """Asks of each seed. How many were lowered, and what was broken, by seed."""
    oracles.limit_memory()
    pool, lowered, broken = dict(breed.pool()), 0, {}
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="bred.") as scratch:
            folder = pathlib.Path(scratch)
            bred = breed.Breeder(seed, pool)
            try:
                lowered += ask(program, bred, seed, folder)
            except Exception as error:  # of the oracle itself as well
                found = error if isinstance(error, oracles.Broken) else oracles.Broken("the oracle",
                                                                                       repr(error))
                broken[seed] = found
                print(f"{seed}: {found.kind}", flush=True)
                if kept:
                    kept.mkdir(parents=True, exist_ok=True)
                    shutil.copy(folder / f"bred{seed}.etch", kept)
                    (kept / f"bred{seed}.txt").write_text(f"{bred.name} {bred.done}\n{found}\n",
                                                          encoding="utf-8")
    return lowered, broken


def numbers(first, count, seconds):
    """Seeds one after the other, until the time is over."""
    end = time.monotonic() + seconds if seconds else None
    for seed in range(first, first + count):
        if end and time.monotonic() > end:
            return
        yield seed


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--count", type=int, default=10**9)
    options.add_argument("--seconds", type=int)
    options.add_argument("folder", type=pathlib.Path)
    given = options.parse_args()
    done = []
    seeds = (done.append(seed) or seed for seed in numbers(given.first, given.count, given.seconds))
    lowered, broken = hunt(os.environ["ETCH"], seeds, given.folder)
    kinds = collections.Counter(found.kind for found in broken.values())
    print(f"{len(done)} specs from {given.first} on, {lowered} lowered, {len(broken)} broken: {dict(kinds)}")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
