#!/usr/bin/python3
"""Compiling specs: start, parse, derive, place, cost. At most 20 ms of process time for the slowest shipped
spec with a plan of its own, and the same for 2 layers as for 2,000, for few microbatches and ranks as for
many; the status is 1 otherwise. The slowest with a common plan is shown, and held to nothing."""

import pathlib
import re
import subprocess
import sys

import measure

LIMIT = 0.020
GROWTH = 1.5  # most that a size may change the time: what is left is noise
SMALL = "layers=2,micro=1,dp=1,tp=2,pp=2,batch=4096,seq=8192"
SIZES = {"2 layers, 4 ranks": SMALL, "2,000 layers": SMALL.replace("layers=2", "layers=2000"),
         "4,096 microbatches": SMALL.replace("micro=1", "micro=4096"),
         "4,096 times the ranks": SMALL.replace("dp=1", "dp=4096")}


def plans(etch, spec):
    """Also those that it imports; none of a spec without a model."""
    told = subprocess.run([etch, "check", spec], capture_output=True, text=True, check=False).stdout
    listed = re.search(r"^plans\s+(.*)$", told, re.MULTILINE)
    return listed[1].split(", ") if listed and re.search(r"^models\s", told, re.MULTILINE) else []


def is_own(spec, plan):
    return re.search(rf"^parallel\s+{plan}\b", spec.read_text(encoding="utf-8"), re.MULTILINE) is not None


def runs(spec):
    """The first of several train or infer blocks."""
    named = re.findall(r"^(?:train|infer)\s+(\w+)\s*\{", spec.read_text(encoding="utf-8"), re.MULTILINE)
    return ["--run", named[0]] if len(named) > 1 else []


def compile_all(etch, models, own):
    """Queries that need everything, by spec and plan: the spec's own, or the common ones. Stages over two
    loops have no open formula."""
    return {f"{spec.stem} {plan}": [etch, "query", spec, "comm(step)", "--plan", plan, *runs(spec),
                                    *(["--set", "pp=2,enc_layers=24,dec_layers=24"]
                                      if plan == "encoder_decoder" else [])]
            for spec in sorted(pathlib.Path(models).glob("*.etch")) for plan in plans(etch, spec)
            if is_own(spec, plan) == own}


def sizes_of(etch, models):
    bound = [etch, "query", f"{models}/llama.etch", "traffic(step)", "--config", "llama3_8b", "--plan",
             "megatron_pp"]
    return {label: [*bound, "--set", sets] for label, sets in SIZES.items()}


def main():
    etch, models = measure.program()
    results = measure.compare({"nothing (/bin/true)": ["/bin/true"], **compile_all(etch, models, True)},
                              rounds=10)
    measure.show(results)
    slowest = max(results, key=lambda label: results[label][1])
    print(f"slowest: {slowest}, {1000 * results[slowest][1]:.1f} ms; the limit is {1000 * LIMIT:.0f} ms\n")

    common = measure.compare(compile_all(etch, models, False), rounds=10)
    measure.show(common)
    last = max(common, key=lambda label: common[label][1])
    print(f"slowest with a common plan: {last}, {1000 * common[last][1]:.1f} ms\n")

    sizes = measure.compare(sizes_of(etch, models), rounds=30)
    measure.show(sizes)
    least = min(used for _, used in sizes.values())
    growth = max(used for _, used in sizes.values()) / least
    print(f"largest over smallest: {growth:.2f}; the limit is {GROWTH}")
    return 1 if results[slowest][1] > LIMIT or growth > GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
