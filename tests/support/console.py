"""Runs shell commands as a user of etch would, in a folder where `etch`, `models` and `specs` are at hand.

The environment says where things are: ETCH, the program; ETCH_SOURCE_DIR, the sources. UPDATE=1 asks tests to
write what they see in place of what they expect.
"""

import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
UPDATE = os.environ.get("UPDATE") == "1"


class Shell:
    """A scratch folder below the current one, emptied first, and an environment for commands in it."""

    def __init__(self, name, links):
        self.folder = pathlib.Path.cwd() / name
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "bin").mkdir(parents=True)
        (self.folder / "bin" / "etch").symlink_to(os.environ["ETCH"])
        (self.folder / "work").mkdir()
        for target in links:
            (self.folder / "work" / target.name).symlink_to(target)
        self.environment = {
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]

    def run(self, command):
        """Returns what the command wrote to stdout and to stderr, and its exit status."""
        done = subprocess.run(["sh", "-c", command], cwd=self.folder / "work", env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        decode = lambda text: text.decode("utf-8", "backslashreplace")
        return decode(done.stdout), decode(done.stderr), done.returncode


def show_difference(title, expected, seen):
    import difflib
    print(f"--- {title}")
    for line in difflib.unified_diff(expected, seen, "expected", "seen", lineterm=""):
        print(line)


def finish(failed, what):
    if failed:
        print(f"{failed} of {what} differ; UPDATE=1 takes over what was seen")
    sys.exit(1 if failed else 0)
