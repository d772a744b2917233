"""`mpirun -n N etch sweep` writes the bytes of one process, and says what that says, once."""

import pathlib
import shutil

import world

GRID = (world.MODELS / "llama.etch", "--config", "llama3_8b", "--plan", "megatron_pp",
        "--set", "batch=256,seq=8192", "--over", "micro = powers(2, 0, 8)", "--over", "pp = divisors(8)",
        "--over", "tp = powers(2, 0, 3)", "--over", "dp = powers(2, 0, 4)")
CSV = ("--select", "comm(step), memory(peak)")
WAYS = {
    "csv": CSV,
    "jsonl": (*CSV, "--format", "jsonl"),
    "table": (*CSV, "--format", "table", "--where", "ranks == 64"),
    "conditions": (*CSV, "--where", "ranks == 64, memory(peak) <= 80 GB", "--explain"),
    "best": ("--best", "memory(peak)", "--top", "7", "--where", "ranks == 64"),
    "front": ("--pareto", "comm(step), memory(peak)", "--where", "ranks == 64", "--plot", "front.svg"),
    "nothing": (*CSV, "--where", "ranks == 63"),
    "an error": ("--select", "comm(step), nothing(peak)"),
    "traces": ("--best", "memory(peak)", "--where", "ranks == 4, micro == 1", "--lower", "traces"),
}


def files():
    """Takes away what a run has written."""
    found = {}
    for name in ("rows", "front.svg"):
        path = pathlib.Path(name)
        found[name] = path.read_bytes() if path.exists() else None
        path.unlink(missing_ok=True)
    found["traces"] = world.snapshot("traces")
    shutil.rmtree("traces", ignore_errors=True)
    return found


def resumed(checks):
    """What one process has left, others go on with; and the other way round."""
    world.run(0, "sweep", *GRID, *CSV, "-o", "rows")
    whole = files()
    for first, then in ((0, 3), (3, 0), (3, 2)):
        status, _ = world.run_small(first, "sweep", *GRID, *CSV, "--resume", "-o", "rows")
        checks.same(f"{first} stop with a full disk", 3, status)
        checks.holds(f"{first} leave what is done, and no result",
                     pathlib.Path("rows.part").stat().st_size > 0 and not pathlib.Path("rows").exists())
        status, _, _ = world.run(then, "sweep", *GRID, *CSV, "--resume", "-o", "rows")
        checks.same(f"{then} go on after {first}", (0, whole), (status, files()))
        checks.holds("nothing stays", not pathlib.Path("rows.part").exists())


def main():
    checks = world.Checks()
    files()
    for name, way in WAYS.items():
        one = (*world.run(0, "sweep", *GRID, *way, "-o", "rows"), files())
        checks.same(name, one, (*world.run(3, "sweep", *GRID, *way, "-o", "rows"), files()))
    one = world.run(0, "sweep", *GRID, *CSV)
    checks.same("on stdout", one, world.run(3, "sweep", *GRID, *CSV))
    checks.same("one process of mpirun", one, world.run(1, "sweep", *GRID, *CSV))
    checks.holds("there are rows", one[1].count("\n") > 300)
    resumed(checks)
    checks.finish()


main()
