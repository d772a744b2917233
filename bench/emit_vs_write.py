#!/usr/bin/python3
"""How near emission is to writing the same files: Llama-3-8B for 4,096, 32,768 and 131,072 ranks, some
gigabyte of traces each. Beside it, in the same run and folder, in turns: plain_write.c, which writes files of
the same names and sizes from one buffer in memory with as many threads, the least that any program would have
to do. Reading, deriving and planning are taken off: they are what a dry run takes.

An archive is held against plain writing of one file of its size, by one thread from a buffer that its cache
holds; what other threads have made is in no cache of the one that writes.

`--zstd` has no such measure, since it computes: its memory has the same limit.

    emit_vs_write.py [--ranks N] [FOLDER]       FOLDER: where to write; else where temporary files go
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import measure

MOST_TIMES, MOST_BYTES, ROUNDS = {"out": 1.2, "out.tar": 1.5}, 64 << 20, 5
LAYERS = {2048: 32, 4096: 32, 32768: 4, 131072: 1}  # so that the last three write about as much
RANKS = (4096, 32768, 131072)


def compile_plain(folder):
    """The other program, for this machine."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plain_write.c")
    program = f"{folder}/plain_write"
    subprocess.run(["cc", "-O2", "-std=c11", "-o", program, source, "-lpthread"], check=True)
    return program


def words_of(etch, models, ranks):
    bound = f"dp={ranks // 8},tp=8,batch={ranks // 4},micro=2,seq=8192,layers={LAYERS[ranks]}"
    return [etch, "lower", f"{models}/llama.etch", "--config", "llama3_8b", "--plan", "megatron_sp",
            "--set", bound, "--name", "rank", "-q", *measure.unsynced(etch)]


def commands_of(etch, models, out):
    """For against.py."""
    words = words_of(etch, models, 2048)
    return {"dry run": [*words, "--dry-run"],
            **{f"emission, -j {threads}": [*words, "-o", out, "-j", str(threads)]
               for threads in sorted({1, os.cpu_count()})}}


def emit(words, clean):
    """Elapsed seconds, and the most memory, in bytes, of a run of these words. The memory of a child begins
    with that of this process, which is small."""
    clean()
    start = time.perf_counter()
    child = os.posix_spawn(words[0], words, os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, used = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{' '.join(words)} failed")
    return time.perf_counter() - start, used.ru_maxrss * 1024


def write_plainly(plain, names, copy, threads, clean):
    clean()
    done = subprocess.run([plain, names, copy, str(threads)], stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


def sizes_of(out):
    """Names and bytes of the files of a folder, or of an archive."""
    if os.path.isfile(out):
        return [("archive", os.path.getsize(out))]
    return sorted((entry.name, entry.stat().st_size) for entry in os.scandir(out))


def rounds_of(words, plain, folder, threads, name="out"):
    """For each round the seconds of plain writing and of emission; the most memory that emission took; the
    bytes of all files."""
    out, copy, names = f"{folder}/{name}", f"{folder}/plain", f"{folder}/names"
    seconds, memory = [], 0

    def clean():
        if os.path.isfile(out):
            os.unlink(out)
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(copy, ignore_errors=True)
        os.sync()  # lest one pays for what the other has left to be written

    emit([*words, "-o", out], clean)
    files = sizes_of(out)
    with open(names, "w", encoding="utf-8") as file:
        file.writelines(f"{size} {name}\n" for name, size in files)
    for turn in range(ROUNDS):
        first = write_plainly(plain, names, copy, threads, clean) if turn % 2 else 0
        dry = emit([*words, "--dry-run"], clean)[0]
        emission, most = emit([*words, "-o", out, "-j", str(threads)], clean)
        seconds.append((first or write_plainly(plain, names, copy, threads, clean), emission - dry))
        memory = max(memory, most)
    clean()
    return seconds, memory, sum(size for _, size in files)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, choices=LAYERS, action="append")
    parser.add_argument("folder", nargs="?")
    given = parser.parse_args()
    etch, models = measure.program()
    folder, good = tempfile.mkdtemp(prefix="etch-bench.", dir=given.folder), True
    try:
        plain = compile_plain(folder)
        for ranks in given.ranks or RANKS:
            words = words_of(etch, models, ranks)
            for threads, name in [(1, "out"), (os.cpu_count(), "out"), (os.cpu_count(), "out.tar")]:
                seconds, memory, size = rounds_of(words, plain, folder, threads, name)
                write, emission = (statistics.median(column) for column in zip(*seconds))
                times = statistics.median(emission / write for write, emission in seconds)
                fine = times <= MOST_TIMES[name] and memory < MOST_BYTES
                good = good and fine
                print(f"{ranks:6} ranks, {size / 1e6:5.0f} MB, -o {name} -j {threads}: "
                      f"plain writing {1000 * write:6.0f} ms, emission {1000 * emission:6.0f} ms, "
                      f"{times:.2f} times, {memory >> 20} MB of memory{'' if fine else ': TOO MUCH'}",
                      flush=True)
            for more in (["--groups", "dims"], ["--groups", "file"]):
                out = f"{folder}/out"
                taken, memory = emit([*words, *more, "--zstd", "-o", out],
                                     lambda: shutil.rmtree(out, ignore_errors=True))
                good = good and memory < MOST_BYTES
                print(f"{ranks:6} ranks, {' '.join(more)} --zstd: {1000 * taken:6.0f} ms, "
                      f"{memory >> 20} MB of memory{'' if memory < MOST_BYTES else ': TOO MUCH'}", flush=True)
    finally:
        shutil.rmtree(folder)
    print(f"medians of {ROUNDS}; limits: {MOST_TIMES['out']} times, of archives {MOST_TIMES['out.tar']}, "
          f"{MOST_BYTES >> 20} MB")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
