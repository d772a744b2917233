"""How much time and memory the inputs just below the limits of docs/limits.md take, as a table; then what a
counted operation takes in expressions that pass the limit of a request.

    bench/limits.py [ETCH]

Ends with status 1 when one takes more than 2 s (user and system time) or 512 MB.
"""

import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/support"))
import limits  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_SECONDS, MOST_BYTES = 2, 512 << 20


def write(folder, limit):
    """In a process of its own: what is measured begins with the memory of this one."""
    child = os.fork()
    if child == 0:
        limits.write(pathlib.Path(folder), limit.files(limit.below))
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("the files cannot be written")


def measure(etch, limit):
    """Seconds, bytes. The child is one of a small process: its memory begins with its parent's."""
    with tempfile.TemporaryDirectory() as folder:
        write(folder, limit)
        words = [str(word) for word in limit.arguments(limit.below)]
        silent = os.open(os.devnull, os.O_RDWR)
        child = os.posix_spawn("/usr/bin/env", ["env", "-C", folder, etch, *words], os.environ,
                               file_actions=[(os.POSIX_SPAWN_DUP2, silent, 1),
                                             (os.POSIX_SPAWN_DUP2, silent, 2)])
        os.close(silent)
        _, status, used = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) != limit.below_status:
        sys.exit(f"{' '.join(words)[:200]} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def per_operation(etch):
    """Nanoseconds of a counted operation: those that take far more than others are charged too little."""
    most = int(re.search(r"ETCH_REQUEST_OPERATIONS = (\d+)",
                         (ROOT / "src/session/core/core.h").read_text())[1])
    print("\n| expression | size | ns per counted operation |\n|---|---|---|")
    for name, make in limits.EXPRESSIONS.items():
        for size in (100, 300):
            definitions, expression = make(size)
            names = ", ".join(["a", "b", *(f"v{i}" for i in range(size))])
            with tempfile.TemporaryDirectory() as folder:
                spec = pathlib.Path(folder) / "s.etch"
                spec.write_text(f"etch 1\nparam {names}\n{definitions}", encoding="utf-8")
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                done = subprocess.run([etch, "query", spec, expression], capture_output=True, text=True,
                                      check=False)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            if "the limit of counted operations" in done.stderr:
                print(f"| {name} | {size} | {seconds / most * 1e9:.1f} |", flush=True)


def main():
    etch = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/etch").resolve())
    good = True
    print("| limit | size | s | MB |\n|---|---|---|---|")
    for name, limit in (*limits.CASES.items(), *(("ETCH_TOTAL_LIMIT", also) for also in limits.ALSO)):
        seconds, size = measure(etch, limit)
        good = good and seconds <= MOST_SECONDS and size <= MOST_BYTES
        print(f"| `{name}` | {limit.below:,} | {seconds:.2f} | {size >> 20} |", flush=True)
    per_operation(etch)
    sys.exit(0 if good else 1)


main()
