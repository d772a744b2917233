"""What stands on the disk when a command that writes a folder was interrupted: the earlier folder or the
new one, each whole, or no manifest says that there is one, and nothing is lost of the earlier one."""

import dataclasses
import pathlib

import faulty


@dataclasses.dataclass(frozen=True)
class Writer:
    """A command, and the folder that it writes."""
    command: faulty.Command
    target: str


def lowering(*words, finds=(), target):
    return Writer(faulty.Command((*faulty.LOWER, "-j", "1", *words), finds), target)


def assembling(*words, finds=(), target):
    return Writer(faulty.Command(("assemble", "traces.txt", *words), ("traces.txt", *finds)), target)


WRITERS = {
    "lower, a new folder": lowering("-o", "out", target="out"),
    "lower, a new folder, deep": lowering("-o", "a/b/out", target="a/b/out"),
    "lower, an empty folder": lowering("-o", "empty", finds=("empty",), target="empty"),
    "lower, an earlier run": lowering("-o", "traces", "--set", "layers=4", finds=("traces",),
                                      target="traces"),
    "lower, a folder of others": lowering("-o", "mixed", "--force", "--set", "layers=4", finds=("mixed",),
                                          target="mixed"),
    "lower, with links": Writer(faulty.COMMANDS["lower, linked"], "out"),
    "lower, an archive": lowering("-o", "a/out.tar", target="a/out.tar"),
    "lower, an earlier archive": lowering("-o", "traces.tar", finds=("traces.tar",), target="traces.tar"),
    "assemble, a new folder, deep": assembling("-o", "a/out", target="a/out"),
    "assemble, an empty folder": assembling("-o", "empty", finds=("empty",), target="empty"),
    "assemble, earlier files": assembling("-o", "pieces", "--force", finds=("pieces",), target="pieces"),
}
EXCHANGES, PLAIN = {}, {"ETCH_FAULT_PLAIN": "1"}
MANIFEST = "manifest.json"
REFUSED = 1  # assemble finds files


def bench_of(program):
    """A bench on which each of them finds what it needs."""
    bench = faulty.Bench(program)
    (bench.prepared / "empty").mkdir()
    pieces = faulty.Command((*faulty.LOWER, "-o", "pieces", "--set", "layers=4"))
    assert bench.run(pieces).status == 0
    (bench.work / "pieces").rename(bench.prepared / "pieces")
    (bench.prepared / "pieces" / MANIFEST).unlink()
    return bench


def within(files, folder):
    """The files of a folder, by name, without what is hidden, or a file; None: there is neither."""
    if folder not in files:
        return None
    if files[folder] is not None:
        return {"": files[folder]}
    inside = {path[len(folder) + 1:]: data for path, data in files.items() if path.startswith(folder + "/")}
    return {path: data for path, data in inside.items() if ".etch-" not in path}


def hidden(files):
    """The hidden folders."""
    return sorted(path for path in files if pathlib.PurePath(path).name.startswith(".etch-"))


class Standing:
    """What a writer finds, and what it makes of that, on a file system that exchanges names or cannot."""

    def __init__(self, bench, name, way):
        self.bench, self.writer, self.way, self.name = bench, WRITERS[name], way, f"{name} {way}"
        bench.prepare(self.writer.command)
        self.before = faulty.snapshot(bench.work)
        self.usual = bench.run(self.writer.command, **way)
        self.counts = bench.count()
        self.earlier = within(self.before, self.writer.target)
        self.new = within(self.usual.files, self.writer.target)
        assert self.usual.status == 0 and self.new not in (None, self.earlier), self.usual

    def run(self, fault, **more):
        return self.bench.run(self.writer.command, fault, **self.way, **more)

    def mistakes(self, files):
        """What is wrong with files that are left."""
        found = within(files, self.writer.target)
        if found in (self.earlier, self.new):
            return
        if found is not None and (MANIFEST in found or MANIFEST not in self.new):
            yield f"{self.writer.target} holds {sorted(found)}, neither the earlier files nor the new ones"
        if found is None and self.earlier is not None and not self.way:
            yield f"{self.writer.target} is gone"
        names = {}
        for path, data in files.items():
            names.setdefault(pathlib.PurePath(path).name, []).append(data)
        lost = [name for name, data in (self.earlier or {}).items()
                if data is not None and name != MANIFEST and data not in names.get(name, [])]
        if lost:
            yield f"nowhere any more: {lost}"

    def mistakes_of_next(self, left):
        """Runs the command on what is left. It works, and names what it removes and what it must not."""
        again = self.bench.run(self.writer.command, fresh=False)
        stays = hidden(again.files)
        unnamed = [path for path in {*stays, *hidden(left)} if path.encode() not in again.err]
        finds_it_done = within(left, self.writer.target) == self.new and again.status == REFUSED
        ends_well = finds_it_done or (again.status == 0 and not unnamed)
        if not ends_well or within(again.files, self.writer.target) != self.new:
            yield f"again: status {again.status}, unnamed {unnamed}, {again.err.decode()}"
        if self.earlier is None and stays:
            yield f"again: {stays} stay"
