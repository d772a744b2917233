"""Runs commands of the program in which one call of the C library fails, and holds what they do against the
same command without a fault.

A command that a fault does not hinder ends as it does without: same status, same output, same files. Any
other ends with status 3, says why on stderr, and leaves all files as they were.
"""

import dataclasses
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

from effort import MULT, effort, first_seed

SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
TOWER = SOURCE / "tests/cli/specs/tower.etch"
CHAIN = SOURCE / "tests/cli/specs/chain.etch"
SMALL = ("--config", "small", "--set", "batch=4,seq=8,dp=2,tp=2,layers=2")
ALIKE = ("--config", "small", "--set", "batch=4,seq=8,dp=4,tp=1,layers=2")
STAGES = ("--config", "small", "--plan", "good", "--set", "pp=2,dp=2")
LOWER = ("lower", CHAIN, *STAGES)
FAILED = 3


@dataclasses.dataclass(frozen=True)
class Command:
    """Words of a command line; which of the prepared folders it finds in its own: by name."""
    words: tuple
    finds: tuple = ()


COMMANDS = {
    "check": Command(("check", TOWER)),
    "check, bound": Command(("check", CHAIN, *STAGES, "--bound")),
    "mistakes": Command(("query", TOWER, "params(modle) + layrs", "--json")),
    "a mistake, for people": Command(("query", TOWER, "params(modle)")),
    "query": Command(("query", TOWER, "traffic(step)")),
    "query, long numbers": Command(("query", TOWER,
                                    "(3^900*params(model) + 1/7^80) // 11^30 + 10^20 % 7^30")),
    "query, as table": Command(("query", TOWER, "comm(step)", "--by", "axis", "--format", "json", *SMALL)),
    "show": Command(("show", CHAIN, "--pipeline", *STAGES)),
    "show, the graph": Command(("show", CHAIN)),
    "show, as picture": Command(("show", CHAIN, "mlp", "--format", "dot")),
    "show, as JSON": Command(("show", CHAIN, "ends", "--format", "json")),
    "lower": Command((*LOWER, "-o", "out", "-j", "2")),
    "lower, deep": Command((*LOWER, "-o", "a/b/out", "-j", "1")),
    "lower, again": Command((*LOWER, "-o", "traces", "-j", "1", "--set", "layers=4"), ("traces",)),
    "lower, beside others": Command((*LOWER, "-o", "mixed", "-j", "1", "--force", "--set", "layers=4"),
                                    ("mixed",)),
    "lower, linked": Command(("lower", TOWER, *ALIKE, "-o", "out", "-j", "1", "--link")),
    "lower, compressed": Command(("lower", TOWER, *ALIKE, "-o", "out", "-j", "1", "--zstd")),
    "lower, an archive": Command((*LOWER, "-o", "a/out.tar", "-j", "2")),
    "lower, an archive again": Command((*LOWER, "-o", "traces.tar", "-j", "1", "--zstd"), ("traces.tar",)),
    "lower, to stdout": Command((*LOWER, "-o", "-", "-j", "1")),
    "verify, compressed": Command(("verify", "packed", "-j", "1"), ("packed",)),
    "verify": Command(("verify", "traces", "-j", "2", "--seeds", "2"), ("traces",)),
    "dump": Command(("dump", "traces"), ("traces",)),
    "dump, as JSON": Command(("dump", "traces/chain.1.et", "--format", "json"), ("traces",)),
    "dump, as text": Command(("dump", "traces", "--text"), ("traces",)),
    "assemble": Command(("assemble", "traces.txt", "-o", "out"), ("traces.txt",)),
    "help": Command(("help", "ops")),
}


def snapshot(folder):
    """Every file with its bytes, every folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
            for path in sorted(folder.rglob("*"))}


@dataclasses.dataclass
class Outcome:
    status: int
    out: bytes
    err: bytes
    files: dict


class Bench:
    """A folder to run commands in, and folders that they may find there."""

    def __init__(self, program):
        self.program = program
        self.prepared = pathlib.Path("prepared").resolve()
        self.work = pathlib.Path("work").resolve()
        self.counts = pathlib.Path("counts").resolve()
        shutil.rmtree(self.prepared, ignore_errors=True)
        self.prepared.mkdir()
        for words in ((*LOWER, "-o", "traces"), (*LOWER, "-o", "mixed"), (*LOWER, "-o", "packed", "--zstd"),
                      (*LOWER, "-o", "traces.tar", "--set", "layers=4")):
            subprocess.run([program, *words], cwd=self.prepared, check=True, stdout=subprocess.DEVNULL)
        (self.prepared / "mixed" / "notes").write_text("of somebody else\n", encoding="utf-8")
        text = subprocess.run([program, "dump", "traces", "--text"], cwd=self.prepared, check=True,
                              capture_output=True)
        (self.prepared / "traces.txt").write_bytes(text.stdout)

    def prepare(self, command):
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        for name in command.finds:
            source = self.prepared / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, self.work / name)

    def run(self, command, fault=None, out=subprocess.PIPE, fresh=True, **more):
        """The outcome; `fault` is "KIND:N" or None; `out` is where the result goes; not `fresh`: in the
        folder as the last run left it; `more`: of the environment."""
        if fresh:
            self.prepare(command)
        environment = {**os.environ, "ETCH_FAULT_COUNTS": str(self.counts), "LC_ALL": "C", **more}
        if fault:
            environment["ETCH_FAULT"] = fault
        done = subprocess.run([self.program, *command.words], cwd=self.work, env=environment,
                              stdin=subprocess.DEVNULL,
                              stdout=out, stderr=subprocess.PIPE, check=False)
        return Outcome(done.returncode, done.stdout, done.stderr, snapshot(self.work))

    def count(self):
        """How many calls of each kind the last run made."""
        return {kind: int(number) for kind,
                number in (line.split() for line in self.counts.read_text().splitlines())}


def chosen(count):
    """The numbers of the calls that fail: each of the first, then ever fewer; or a part of those."""
    n = 1
    while n <= count:
        yield n
        n += int((1 + n // 25) / PART)


PART = min(MULT, 1)  # of what docs/reliability.md says
SEED = first_seed(1)


def sampled(count, wanted):
    """`wanted` of the numbers from 1 to `count`, or all; others with each seed, more in the nights."""
    wanted = min(count, effort(wanted))
    return sorted(random.Random(f"{SEED} {count}").sample(range(1, count + 1), wanted))


def finish(test, runs, wrong, what="runs"):
    """Ends a test: there were as many runs as docs/reliability.md says at least, and none was wrong."""
    page = (SOURCE / "docs" / "reliability.md").read_text(encoding="utf-8")
    promised = re.search(rf"^\| `{re.escape(test)}` \|.*\| ([0-9,]+) {what} \|$", page, re.MULTILINE)
    least = int(promised[1].replace(",", "")) if promised else sys.maxsize
    print("\n".join(sorted(set(wrong))))
    print(f"{runs} {what}, of at least {least}; {len(wrong)} wrong")
    sys.exit(1 if wrong or runs < least * PART else 0)


def hold_full_disk(bench):
    """The commands that say something wrong when nobody can take their result."""
    wrong = []
    for name, command in COMMANDS.items():
        with open("/dev/full", "wb") as full:
            seen = bench.run(command, out=full)
        if bench.run(command).out and (seen.status, b"cannot write " in seen.err) != (FAILED, True):
            wrong.append(f"{name}, into a full disk: status {seen.status}, {seen.err[-400:].decode()!r}")
    return wrong


def hold(test, kinds, or_else=lambda usual, seen: False):
    """Fails calls of `kinds` in every command. `or_else` knows what else is right."""
    bench, runs = Bench(sys.argv[1]), 0
    wrong = hold_full_disk(bench) if "write" in kinds else []
    for name, command in COMMANDS.items():
        usual = bench.run(command)
        counts = bench.count()
        bench.prepare(command)
        before = snapshot(bench.work)
        for kind in kinds:
            for n in chosen(counts[kind]):
                seen = bench.run(command, f"{kind}:{n}")
                runs += 1
                unhindered = (seen.status, seen.out, seen.files) == (usual.status, usual.out, usual.files) \
                    and (usual.status == 0 or seen.err == usual.err)
                refused = seen.status == FAILED and seen.err != b"" and seen.files == before
                if not unhindered and not refused and not or_else(usual, seen):
                    changed = sorted(set(seen.files.items()) ^ set(before.items()), key=lambda item: item[0])
                    wrong.append(f"{name}, {kind}:{n}: status {seen.status}, {len(seen.out)} bytes, files "
                                 f"{sorted({path for path, _ in changed})}, {seen.err[-400:].decode()!r}")
    finish(test, runs, wrong)
