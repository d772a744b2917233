"""The power goes at every moment of a command that writes a folder, on a disk that loses whatever was not
synced: any part of it, in any order. On the disk is then the earlier folder or the new one, each whole, or
no manifest says that there is one; once the command has ended, it is the new one.

The disk is worked out from the log of a run: folders and files have numbers, an entry of a folder is one of
them, and a change sets entries, all at once. What a sync of a folder covers is there, and so is what came
before it in the same entries; of all else any choice is. Where there are few, all choices are tried."""

import itertools
import os
import random
import sys

from effort import effort
import faulty
import standing

ALL = 6  # changes of which all choices are tried
CHOICES = 100  # of more changes
AGAIN = 3  # next runs
ROOT = 0


class Log:
    """The changes of a run, one after the other."""

    def __init__(self, stand, lines):
        self.work, self.entries, self.data = str(stand.bench.work), {}, {}
        self.folders, self.changes = {ROOT}, []
        self.count = 1
        for path, data in stand.before.items():
            self.add(path, data)
        self.first, self.old = dict(self.entries), frozenset(self.data)
        for line in lines:
            self.read(*line.split("\t"))
        for path, data in stand.usual.files.items():
            if data is not None:
                self.data[self.at(path)] = data
        assert None not in self.data.values()

    def key(self, path):
        """The folder and the name of an entry."""
        folder, _, name = path.rpartition("/")
        return (self.at(folder), name)

    def at(self, path):
        return self.entries[self.key(path)] if path else ROOT

    def add(self, path, data):
        """A new folder or file; the change that its entry is."""
        key, number = self.key(path), self.count
        self.count += 1
        self.entries[key] = number
        if data is None:
            self.folders.add(number)
        else:
            self.data[number] = data
        return {key: number}

    def read(self, what, path, to):
        path, to = (os.path.relpath(name, self.work) if name.strip() else "" for name in (path, to.strip()))
        if what == "sync_all":
            self.changes.append(("sync_all", None))
        elif what == "sync":
            self.changes.append(("sync", self.at("" if path == "." else path)))
        elif what in ("file", "folder"):
            change = self.add(path, b"" if what == "file" else None)
            self.changes.append(("set", change))
        else:
            change = {} if what == "link" else {self.key(path): None}
            if what != "remove":
                change[self.key(to)] = self.at(path)
            if what == "exchange":
                change[self.key(path)] = self.at(to)
            self.entries.update(change)
            self.changes.append(("set", change))

    def kept(self, end):
        """Which of the changes before `end` are on the disk for sure, and which files with all they hold."""
        kept, whole = set(), set(self.old)
        for i, (what, of) in enumerate(self.changes[:end]):
            if what == "sync_all":
                kept |= set(range(i))
                whole |= {number for _, change in self.sets(i) for number in change.values() if number}
            elif what == "sync":
                whole |= {of} & self.data.keys()
                kept |= {j for j, change in self.sets(i) if any(folder == of for folder, _ in change)}
        return self.closed(kept, end), whole

    def sets(self, end):
        return [(i, of) for i, (what, of) in enumerate(self.changes[:end]) if what == "set"]

    def closed(self, kept, end):
        """With the earlier changes of the same entries."""
        needed = set()
        for i, change in reversed(self.sets(end)):
            if i in kept or needed & change.keys():
                kept.add(i)
                needed |= change.keys()
        return kept

    def choices(self, end, source):
        """What may be on the disk when the power goes before change `end`."""
        sure, whole = self.kept(end)
        open_changes = [i for i, _ in self.sets(end) if i not in sure]
        if len(open_changes) <= ALL:
            picks = itertools.product((False, True), repeat=len(open_changes))
        else:
            shares = itertools.islice(itertools.cycle((0, 1, .2, .5, .8)), effort(CHOICES))
            picks = ([source.random() < share for _ in open_changes] for share in shares)
        for pick in picks:
            more = {i for i, on in zip(open_changes, pick) if on}
            yield self.files(self.closed(sure | more, end), whole, source, end)

    def files(self, kept, whole, source, end):
        """The files of one choice, by path."""
        entries = dict(self.first)
        for i, change in self.sets(end):
            if i in kept:
                entries.update(change)
        inside, found = {}, {}
        for (folder, name), number in entries.items():
            if number is not None:
                inside.setdefault(folder, []).append((name, number))

        def walk(folder, prefix):
            for name, number in inside.get(folder, ()):
                if number in self.folders:
                    found[prefix + name] = None
                    walk(number, f"{prefix}{name}/")
                else:
                    data = self.data[number]
                    part = data[:len(data) // source.choice((2, 99))]
                    found[prefix + name] = data if number in whole else part

        walk(ROOT, "")
        return found


def put(folder, files):
    """Writes files as they are on the disk."""
    for path, data in sorted(files.items()):
        if data is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(data)


def hold(bench, name, way, source):
    """Returns the number of disks that were looked at, and what is wrong with them."""
    stand = standing.Standing(bench, name, way)
    path = bench.prepared.parent / "log"
    assert stand.run(None, ETCH_FAULT_LOG=str(path)).files == stand.usual.files
    log = Log(stand, path.read_text(encoding="utf-8").splitlines())
    last = len(log.changes)
    disks, wrong, kinds = 0, [], {}
    for end in range(last + 1):
        for files in log.choices(end, source):
            disks += 1
            kinds[frozenset(files)] = files
            mistakes = list(stand.mistakes(files))
            if end == last and standing.within(files, stand.writer.target) != stand.new:
                mistakes.append("the command has ended, and what it wrote is not there")
            wrong += [f"{stand.name}, before {log.changes[end:end + 1]}: {what}" for what in mistakes]
    empty = faulty.Command((), ())
    for files in source.sample(list(kinds.values()), min(len(kinds), effort(AGAIN))):
        bench.prepare(empty)
        put(bench.work, files)
        wrong += [f"{stand.name}: {what}" for what in stand.mistakes_of_next(files)]
    return disks, wrong


def main():
    bench, source = standing.bench_of(sys.argv[1]), random.Random(faulty.SEED)
    disks, wrong = 0, []
    for name in standing.WRITERS:
        for way in (standing.EXCHANGES, standing.PLAIN):
            more, mistaken = hold(bench, name, way, source)
            disks += more
            wrong += mistaken
    faulty.finish("faults.disk", disks, wrong, "disks")


main()
