"""What each shipped model takes at small sizes, with the plans in turn: nodes and bytes of its traces, and
allocations of the run that works them out, as budgets.tsv has them. More than that fails until somebody has
said why: a rise has a reason in the last column of its line.

    test_budgets.py ETCH_FAULTY     ETCH_FAULTY counts allocations; with UPDATE=1 the file is written anew,
                                    and what has risen asks for its reason"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
FAULTY = pathlib.Path(sys.argv[1]).resolve()
FILE = pathlib.Path(__file__).with_name("budgets.tsv")
COLUMNS = ("nodes", "bytes", "allocations")
# Allocations depend a little on the libraries of the system.
ROOM = {"nodes": 0, "bytes": 0, "allocations": 0.03}
sys.path[:0] = [str(SOURCE / "tests" / "acceptance"), str(SOURCE / "fuzz")]
import corpus  # noqa: E402
import shipped  # noqa: E402


def measured(scratch):
    """(model, run, plan) -> nodes, bytes and allocations, of every use that can be lowered."""
    found = {}
    for spec, run, plan in corpus.uses_of(shipped, sorted(SOURCE.glob("models/*.etch"))):
        options = [*(("--plan", plan) if plan else ()), *(("--run", run) if run else ())]
        counts = scratch / "counts"
        values = corpus.values_of(shipped, spec, plan)
        done = subprocess.run([FAULTY, "lower", spec, *options, "--set", values, "--dry-run", "-q",
                               "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env={**os.environ, "ETCH_FAULT_COUNTS": str(counts), "LC_ALL": "C"},
                              check=False)
        if done.returncode == 0:
            said = json.loads(done.stdout)
            kinds = dict(line.split() for line in counts.read_text(encoding="utf-8").splitlines())
            found[spec.stem, run or "-", plan or "-"] = (said["nodes"], said["bytes"], int(kinds["memory"]))
    return found


def recorded():
    rows = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            model, run, plan, nodes, size, allocations, *why = line.split("\t")
            rows[model, run, plan] = (int(nodes), int(size), int(allocations)), "".join(why)
    return rows


def risen(before, now):
    return [f"{name} {old} -> {new}" for name, old, new in zip(COLUMNS, before, now)
            if new > old * (1 + ROOM[name])]


def write(found, rows):
    lines = ["# model", "run", "plan", *COLUMNS, "why it has risen"]
    text = "\t".join(lines) + "\n"
    for key, numbers in sorted(found.items()):
        before, why = rows.get(key, (numbers, ""))
        why = "?" if risen(before, numbers) else why
        text += "\t".join((*key, *map(str, numbers), why)) + "\n"
    FILE.write_text(text, encoding="utf-8")


def main():
    rows = recorded() if FILE.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        found = measured(pathlib.Path(scratch))
    if os.environ.get("UPDATE"):
        write(found, rows)
        return
    wrong = [f"{' '.join(key)}: no budget" for key in found if key not in rows]
    wrong += [f"{' '.join(key)}: cannot be lowered any more" for key in rows if key not in found]
    wrong += [f"{' '.join(key)}: {', '.join(risen(rows[key][0], numbers))}" for key, numbers in found.items()
              if key in rows and risen(rows[key][0], numbers)]
    wrong += [f"{' '.join(key)}: why has it risen?" for key, (_, why) in rows.items() if why == "?"]
    print("\n".join(wrong) or f"{len(found)} budgets are kept")
    if wrong:
        print("UPDATE=1 writes budgets.tsv anew; give the reason in its last column where there is a ?")
    sys.exit(bool(wrong) or len(found) < 20)


if __name__ == "__main__":
    main()
