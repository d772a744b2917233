"""`etch lower` is killed at random moments: what it leaves never looks finished unless it is.

A folder looks finished when it has a manifest. It must then hold every file of a run, byte for byte, under
whatever name it is left."""

import hashlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

ETCH = os.environ["ETCH"]
SHIPPED = pathlib.Path(os.environ["ETCH_SOURCE_DIR"]) / "models"
MODELS = pathlib.Path("models")  # a copy that nobody edits meanwhile: the manifest has the hash of the spec
KILLS = 200
FOREIGN = "notes.txt"


def command(layers, target, *options):
    return [ETCH, "lower", str(MODELS / "llama.etch"), "--config", "llama3_8b", "--plan", "megatron_sp", "-q",
            "-o", str(target), "--set",
            f"dp=32,tp=2,batch=64,micro=2,seq=128,layers={layers}", *options]


def content(folder):
    """Hashes of the files by name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
            if path.is_file()}


def complete_run(layers):
    """The content of a whole run."""
    folder = pathlib.Path(f"whole{layers}")
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(command(layers, folder), stdout=subprocess.DEVNULL, check=True)
    return folder, content(folder)


def prepare(place, kind, old_folder):
    """A target as one may be: missing, empty, with an earlier run, with files of others."""
    target = place / "out"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    if kind in ("earlier", "foreign"):
        shutil.copytree(old_folder, target)
    elif kind == "empty":
        target.mkdir()
    if kind == "foreign":
        (target / FOREIGN).write_text("mine")
    return target


def kill_at(arguments, delay):
    """None when the process was killed after `delay` seconds; how long it took when it ended by itself
    before."""
    begun = time.monotonic()
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    if process.returncode not in (0, -signal.SIGKILL):
        sys.exit(f"etch lower ended with {process.returncode}")
    return time.monotonic() - begun if process.returncode == 0 else None


def complaints(place, kind, runs):
    """What is wrong with what is left in `place`."""
    found = []
    for folder in [path for path in place.rglob("*") if path.is_dir()]:
        files = content(folder)
        if "manifest.json" in files and {name: files[name] for name in files if name != FOREIGN} not in runs:
            found.append(f"{folder.name} has a manifest, and its files are not those of a run")
    if kind == "foreign" and not (place / "out" / FOREIGN).is_file():
        found.append("a file of somebody else is gone")
    if kind == "empty" and not (place / "out").is_dir():
        found.append("the folder is gone")
    return found


def main():
    source = random.Random(7)
    place = pathlib.Path("killed")
    shutil.rmtree(MODELS, ignore_errors=True)
    shutil.copytree(SHIPPED, MODELS)
    _, new = complete_run(2)
    old_folder, old = complete_run(1)
    whole = 0.1  # seconds that a run takes; the first rounds find it
    killed = failed = rounds = 0
    while killed < KILLS and rounds < 20 * KILLS:
        kind = ("missing", "empty", "earlier", "foreign")[rounds % 4]
        target = prepare(place, kind, old_folder)
        options = ["--force"] if kind == "foreign" else []
        took = kill_at(command(2, target, *options), source.uniform(0, whole))
        whole = took or whole
        killed += took is None
        rounds += 1
        for complaint in complaints(place, kind, (old, new)):
            print(f"round {rounds}, {kind}: {complaint}")
            failed += 1
    if killed < KILLS:
        print(f"only {killed} of {rounds} runs could be killed before they ended")
        failed += 1
    sys.exit(1 if failed else 0)


main()
