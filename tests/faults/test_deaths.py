"""The process is killed before each call that changes files, and in half of the runs the power goes with it:
what was not synced is lost. On disk is then the earlier run or the new one, each whole, or no manifest says
that there is one. The next run works, takes away what the killed one left, and names what it must not."""

import pathlib
import sys

import faulty

KILLED = -9
COMMANDS = {
    "a new folder": (("-o", "out"), (), "out"),
    "a new folder, deep": (("-o", "a/b/out"), (), "a/b/out"),
    "an empty folder": (("-o", "empty"), ("empty",), "empty"),
    "an earlier run": (("-o", "traces", "--set", "layers=4"), ("traces",), "traces"),
    "a folder of others": (("-o", "mixed", "--force", "--set", "layers=4"), ("mixed",), "mixed"),
}
WAYS = ({}, {"ETCH_FAULT_LOSES": "1"}, {"ETCH_FAULT_PLAIN": "1"},
        {"ETCH_FAULT_PLAIN": "1", "ETCH_FAULT_LOSES": "1"})


def within(files, folder):
    """The files of a folder, by name, without what is hidden; None: there is no such folder."""
    if folder not in files:
        return None
    inside = {path[len(folder) + 1:]: data for path, data in files.items() if path.startswith(folder + "/")}
    return {path: data for path, data in inside.items() if ".etch-" not in path}


def hidden(files):
    """The hidden folders."""
    return sorted(path for path in files if pathlib.PurePath(path).name.startswith(".etch-"))


def mistakes(seen, target, earlier, new):
    """What is wrong with what a killed run left."""
    found = within(seen.files, target)
    if found in (earlier, new):
        return
    if found is not None and "manifest.json" in found:
        yield f"the manifest of {target} stands over {sorted(found)}"
    if earlier is not None and any(data is not None for data in earlier.values()):
        lost = {name for name, data in earlier.items() if data is not None and name != "manifest.json" and
                data not in (seen.files.get(path) for path in seen.files
                             if pathlib.PurePath(path).name in (name, "." + name))}
        if lost:
            yield f"nowhere any more: {sorted(lost)}"


def hold(bench, name, way):
    words, finds, target = COMMANDS[name]
    command = faulty.Command((*faulty.LOWER, "-j", "1", *words), finds)
    usual = bench.run(command, **way)
    deaths = bench.count()["death"]
    new = within(usual.files, target)
    bench.prepare(command)
    earlier = within(faulty.snapshot(bench.work), target)
    wrong, kept, runs = [], 0, 0
    for n in range(1, deaths + 1):
        seen = bench.run(command, f"death:{n}", **way)
        if seen.status != KILLED and (seen.status, seen.files) != (usual.status, usual.files):
            wrong.append(f"{name} {way} {n}: status {seen.status}")
        wrong += [f"{name} {way} {n}: {what}" for what in mistakes(seen, target, earlier, new)]
        again = bench.run(command, fresh=False)
        left = hidden(again.files)
        unnamed = [path for path in left if path.encode() not in again.err]
        named = [path for path in hidden(seen.files) if path.encode() not in again.err]
        if (again.status, within(again.files, target)) != (0, new) or unnamed or named:
            wrong.append(f"{name} {way} {n}, again: status {again.status}, {unnamed} {named} "
                         f"{again.err.decode()}")
        kept += len(left)
        runs += 1
    if not way.get("ETCH_FAULT_PLAIN") and finds != ("mixed",) and kept:
        wrong.append(f"{name} {way}: {kept} hidden folders stay")
    return runs, wrong


def main():
    bench = faulty.Bench(sys.argv[1])
    (bench.prepared / "empty").mkdir()
    runs, wrong = 0, []
    for name in COMMANDS:
        for way in WAYS:
            more, mistaken = hold(bench, name, way)
            runs += more
            wrong += mistaken
    print("\n".join(wrong))
    print(f"{runs} runs, {len(wrong)} wrong")
    sys.exit(1 if wrong or runs < 400 else 0)


main()
