"""Runs etch as one process and as several that mpirun starts, here and over the loopback alone."""

import hashlib
import os
import pathlib
import subprocess
import sys

PLAIN = os.environ["ETCH"]
JOINED, MPIRUN = sys.argv[1:3]
MODELS = pathlib.Path(os.environ["ETCH_SOURCE_DIR"]) / "models"
SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self,vader,tcp",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_oob_tcp_if_include": "lo",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_orte_base_help_aggregate": "0",
    # MPI keeps memory to the end
    "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0",
}
NOISE = ("-----", "Primary job", "a non-zero exit", "mpirun ", "the job to be", "  Process name",
         "  Exit code")


def command(count, *words):
    return [MPIRUN, "-n", str(count), JOINED, *map(str, words)] if count else [PLAIN, *map(str, words)]


def start(count, *words, **more):
    return subprocess.Popen(command(count, *words), env={**os.environ, **SETTINGS}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def say(text):
    """What etch says, without what mpirun says of a status that is not 0."""
    return "\n".join(line for line in text.splitlines() if line.strip() and not line.startswith(NOISE))


def run(count, *words, **more):
    """Of one process where `count` is 0: the status, the result, and what was said."""
    process = start(count, *words, **more)
    out, err = process.communicate()
    return process.returncode, out, say(err)


def run_small(count, *words):
    """Where files of more than 4 KiB find no room: the status, and what was said."""
    limited = ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *command(0, *words)]
    if count:
        limited = [MPIRUN, "-n", str(count), *limited[:4], *command(1, *words)[3:]]
    settings = {**SETTINGS, "OMPI_MCA_btl": "self,tcp"}  # shared memory is a file as well
    ended = subprocess.run(limited, env={**os.environ, **settings}, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, check=False)
    return ended.returncode, say(ended.stderr)


def snapshot(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()}


class Checks:
    def __init__(self):
        self.count, self.wrong = 0, []

    def same(self, what, one, other):
        self.count += 1
        if one != other:
            self.wrong.append(f"{what}:\n  {str(one)[:1500]}\n  {str(other)[:1500]}")

    def holds(self, what, fine):
        self.same(what, True, bool(fine))

    def finish(self):
        print(f"{self.count} checks", *self.wrong, sep="\n")
        sys.exit(1 if self.wrong or not self.count else 0)
