"""Processes that are killed, stopped, or cannot write: all end, and nothing looks finished that is not."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import effort
import world

LOWER = ("lower", world.MODELS / "llama.etch", "--config", "llama3_70b", "--plan", "megatron_pp",
         "--set", "batch=512,seq=4096,micro=16,pp=8,dp=8,tp=8", "-o", "out")
SWEEP = ("sweep", world.MODELS / "llama.etch", "--config", "llama3_8b", "--plan", "megatron_pp",
         "--set", "seq=8192,pp=1,tp=2,micro=1", "--over", "dp = 1, 2, 4",
         "--over", "batch = range(4, 4000000, 4)",
         "--select", "comm(step), memory(peak)", "-o", "rows")


def clean():
    for path in (*pathlib.Path(".").glob(".etch-*"), pathlib.Path("out"), *pathlib.Path(".").glob("*rows*")):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def processes_of(parent):
    """The processes of etch that mpirun has started."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent and world.JOINED in (folder / "cmdline").read_text():
                found.append(int(folder.name))
        except OSError:
            pass
    return sorted(found)


def has_rows():
    return any(path.stat().st_size for path in pathlib.Path(".").glob(".etch-rows-*"))


def end_one(words, kill, wait):
    """Sends a signal to one process, once all have begun, or have written: how mpirun ended."""
    job = world.start(3, *words)
    while (len(processes_of(job.pid)) < 3 if wait else not has_rows()) and job.poll() is None:
        time.sleep(0.005)
    time.sleep(wait)
    those = processes_of(job.pid)
    if those:
        try:
            os.kill(random.choice(those), kill)
        except ProcessLookupError:
            pass
    _, err = job.communicate()
    return job.returncode, err


def killed(checks):
    for _ in range(effort.effort(1)):
        clean()
        status, _ = end_one(LOWER, signal.SIGKILL, random.uniform(0.01, 0.8))
        checks.holds("lower: whole, or nothing that looks so",
                     status == 0 if pathlib.Path("out").exists() else status != 0)
        checks.same("lower: the next run works", 0, world.run(2, *LOWER, "--no-sync")[0])
        checks.same("lower: and clears", [], list(pathlib.Path(".").glob(".etch-*")))
        clean()
        status, _ = end_one(SWEEP, signal.SIGKILL, random.uniform(0.01, 0.8))
        checks.holds("sweep: whole, or nothing that looks so",
                     status == 0 if pathlib.Path("rows").exists() else status != 0)


def stopped(checks):
    """A process that is told to end tells the others; rows that are complete are kept."""
    clean()
    status, err = end_one(SWEEP, signal.SIGTERM, 0)
    partial = pathlib.Path("rows.partial")
    checks.holds(f"stopped: {status} {err}", status == 0 or (status == 4 and "E0656" in err))
    if status:
        rows = partial.read_bytes()
        checks.holds("whole lines", not rows or rows.endswith(b"\n"))
        checks.holds("no result", not pathlib.Path("rows").exists())
        world.run(0, *SWEEP)
        checks.holds("the first rows of all", pathlib.Path("rows").read_bytes().startswith(rows))


def full(checks):
    """Any of the processes may be the one that finds no room."""
    clean()
    for words, left in ((LOWER, "out"), (SWEEP, "rows")):
        one, three = (world.run_small(count, *words) for count in (0, 3))
        checks.same(f"{left}: a full disk", (one[0], 3), (three[0], 3))
        checks.same(f"{left}: said once: {three[1]}", 1, three[1].count("File too large"))
        checks.same(f"{left}: nothing is left", ([], False),
                    (list(pathlib.Path(".").glob(".etch-*")), pathlib.Path(left).exists()))


def closed(checks):
    """Who reads the rows may go: all end."""
    clean()
    job = world.start(3, *SWEEP[:-2])
    job.stdout.readline()
    job.stdout.close()
    job.stdout = None
    job.communicate()
    checks.holds("a closed pipe ends it", job.returncode is not None)


def differing(checks):
    """A process that reads another spec is found."""
    clean()
    for name, more in (("a", ""), ("b", "# other\n")):
        shutil.rmtree(name, ignore_errors=True)
        shutil.copytree(world.MODELS, name)
        with open(f"{name}/llama.etch", "a", encoding="utf-8") as spec:
            spec.write(more)
    for words in (LOWER, SWEEP):
        command = [world.MPIRUN]
        for name in ("a", "b"):
            command += ["-n", "1", "-wdir", name, world.JOINED, words[0], "llama.etch",
                        *map(str, words[2:-1]), f"../{words[-1]}", ":"]
        ended = subprocess.run(command[:-1], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                               env={**os.environ, **world.SETTINGS}, check=False)
        checks.holds(f"{words[0]}: {ended.stderr}", ended.returncode == 1 and "E0721" in ended.stderr)
        checks.holds("nothing is written", not pathlib.Path(words[-1]).exists())


def refused(checks):
    """Without MPI all would do all of it; and standard input is one process's."""
    clean()
    many = subprocess.run([world.MPIRUN, "-n", "2", world.PLAIN, *map(str, SWEEP)], capture_output=True,
                          text=True, env={**os.environ, **world.SETTINGS}, stdin=subprocess.DEVNULL,
                          check=False)
    checks.holds(f"without MPI: {many.stderr}", world.JOINED == world.PLAIN or
                 (many.returncode == 2 and "built without MPI" in many.stderr))
    status, _, said = world.run(2, "sweep", "-", *SWEEP[2:])
    checks.holds(f"a spec on standard input: {said}", status == 2 and "from a file" in said)
    checks.holds("nothing is written", not pathlib.Path("rows").exists())
    checks.same("a share is one process's own", 0, world.run(1, *SWEEP, "--shard", "1/3")[0])


def main():
    checks = world.Checks()
    random.seed(effort.first_seed(1))
    for check in (killed, stopped, full, closed, differing, refused):
        check(checks)
    clean()
    checks.finish()


main()
