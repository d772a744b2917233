"""`mpirun -n N etch lower` writes the folder of one process, and says what that says, once."""

import shutil

import world

RUN = (world.MODELS / "llama.etch", "--config", "llama3_8b", "--plan", "megatron_pp",
       "--set", "batch=64,seq=4096,micro=4,pp=4,dp=4,tp=4")
WAYS = {
    "plain": (),
    "ranks": ("--ranks", "0,5,9-30"),
    "links": ("--link",),
    "all files": ("--astra-sim", "--format", "json", "--name", "other"),
    "dry": ("--dry-run",),
    "an error": ("--ranks", "64"),
}


def files():
    found = world.snapshot("out") if world.pathlib.Path("out").exists() else None
    inodes = len({path.stat().st_ino for path in world.pathlib.Path("out").glob("*")})
    shutil.rmtree("out", ignore_errors=True)
    return found, inodes


def main():
    checks = world.Checks()
    files()
    for name, way in WAYS.items():
        one = (*world.run(0, "lower", *RUN, *way, "-o", "out"), files())
        checks.same(name, one, (*world.run(3, "lower", *RUN, *way, "-o", "out"), files()))
        checks.same(f"{name}: nothing hidden stays", [], list(world.pathlib.Path(".").glob(".etch-*")))
    world.run(3, "lower", *RUN, "-o", "out")
    status, _, said = world.run(3, "lower", *RUN, "-o", "out")
    checks.same("an earlier run is replaced", (0, ""), (status, said))
    files()
    status, _, said = world.run(3, "lower", *RUN, "--zstd", "-o", "out")
    checks.holds(f"they do not compress: {said}", status == 1 and "E0721" in said and files()[0] is None)
    checks.finish()


main()
