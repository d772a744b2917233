#!/usr/bin/python3
"""How near emission is to writing the same bytes: Llama-3-8B for 2,048 ranks, about half a gigabyte of
traces. Beside it, in the same run and folder: one thread that writes as many files of the same size from one
buffer in memory, the least that any program would have to do. Reading, deriving and planning are taken off:
they are what a dry run takes.

    emit_vs_write.py [FOLDER]       where to write; else where temporary files go
"""

import os
import shutil
import statistics
import sys
import tempfile
import time

import measure

RANKS, ROUNDS, PIECE = 2048, 5, 1 << 20
BOUND = ["--config", "llama3_8b", "--plan", "megatron_sp", "--set",
         f"dp={RANKS // 8},tp=8,batch=512,micro=2,seq=8192"]


def write_plainly(folder, content):
    """Elapsed seconds for RANKS files of `content`."""
    start = time.perf_counter()
    os.mkdir(folder)
    for rank in range(RANKS):
        file = os.open(f"{folder}/plain.{rank}.et", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        for at in range(0, len(content), PIECE):
            os.write(file, content[at:at + PIECE])
        os.close(file)
    return time.perf_counter() - start


def commands_of(etch, models, out):
    lower = [etch, "lower", f"{models}/llama.etch", *BOUND, "--name", "rank", "-q", *measure.unsynced(etch)]
    return {"dry run": [*lower, "--dry-run"],
            "emission, 1 thread": [*lower, "-o", out, "-j", "1"],
            f"emission, {os.cpu_count()} threads": [*lower, "-o", out, "-j", str(os.cpu_count())]}


def main():
    etch, models = measure.program()
    folder = tempfile.mkdtemp(prefix="etch-bench.", dir=sys.argv[1] if len(sys.argv) > 1 else None)
    out, plain = f"{folder}/out", f"{folder}/plain"
    commands = commands_of(etch, models, out)

    def clean():
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(plain, ignore_errors=True)

    def emit(label):
        dry = measure.once(commands["dry run"], clean)[0]
        return measure.once(commands[label], clean)[0] - dry

    try:
        emit("emission, 1 thread")
        with open(f"{out}/rank.{RANKS - 1}.et", "rb") as file:
            content = file.read()
        size = sum(entry.stat().st_size for entry in os.scandir(out))
        taken = {"plain writing": [], **{label: [] for label in commands if label != "dry run"}}
        for _ in range(ROUNDS):
            clean()
            for label, times in taken.items():
                times.append(emit(label) if label in commands else write_plainly(plain, content))
    finally:
        shutil.rmtree(folder)
    print(f"{size} bytes in {RANKS} traces; medians of {ROUNDS}")
    for label, times in taken.items():
        seconds = statistics.median(times)
        print(f"{label:22}  {1000 * seconds:7.0f} ms  {size / seconds / 1e6:7.0f} MB/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
