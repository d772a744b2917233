"""The inputs that fuzzing of specs begins with, beside those of corpus/spec: every shipped spec and every
spec of the tests, each in one file with all that it imports, as bundle.h says.

    corpus.py SOURCE FOLDER     empties the folder and writes them there

Each spec comes once with a run, a plan and small values that it can be lowered with, where it has them. Over
all of them every run of every spec and every plan comes up."""

import pathlib
import re
import shutil
import sys
import zlib

IMPORT = re.compile(r'^(import\s+")([^"]+)(".*)$', re.M)


def imports_of(spec):
    """The paths that a spec imports, and the names that it takes of each; None: all."""
    for found in IMPORT.finditer(spec.read_text(encoding="utf-8")):
        names = re.search(r"\(([^)]*)\)", found[3])
        yield spec.parent / found[2], names and re.findall(r"\w+", names[1])


def plans_of(spec):
    """The plans that a spec sees, its own first."""
    plans = re.findall(r"^parallel\s+(\w+)", spec.read_text(encoding="utf-8"), re.M)
    for path, names in imports_of(spec):
        plans += [plan for plan in plans_of(path) if names is None or plan in names]
    return plans


def files_of(spec, seen):
    """The spec and all that it needs, each once, by the names that they have in a bundle."""
    if spec.name in seen and seen[spec.name] != spec.resolve():
        raise SystemExit(f"corpus.py: two files are called {spec.name}")
    if spec.name not in seen:
        seen[spec.name] = spec.resolve()
        for path, _ in imports_of(spec):
            files_of(path, seen)
    return seen


def text_of(path):
    """What stands in a bundle: imports lie beside the file."""
    text = IMPORT.sub(lambda found: found[1] + pathlib.PurePath(found[2]).name + found[3],
                      path.read_text(encoding="utf-8"))
    if re.search(r"^#(file|config|plan|run|set) ", text, re.M):
        raise SystemExit(f"corpus.py: {path} has a comment that means something in a bundle")
    return text if text.endswith("\n") else text + "\n"


def bundle(spec, options):
    first, *others = files_of(spec, {}).items()
    heads = "".join(f"#{name} {value}\n" for name, value in options if value)
    return heads + text_of(first[1]) + "".join(f"#file {name}\n" + text_of(path) for name, path in others)


def values_of(shipped, spec, plan):
    names = shipped.params_of(spec) | (shipped.axes_of(spec, plan) if plan else set())
    return ",".join(f"{name}={size}" for name, size in shipped.SMALL.items() if name in names)


def has_model(spec):
    return re.search(r"^model ", spec.read_text(encoding="utf-8"), re.M) or any(has_model(path) for path,
                                                                                _ in imports_of(spec))


def by_lot(*names):
    """A number that names draw: another model or plan changes nothing of what the rest drew."""
    return zlib.crc32(" ".join(names).encode())


def uses_of(shipped, specs):
    """Triples of spec, run and plan: every run of every spec with a plan by lot; and then the plans that are
    left, each with a spec by lot."""
    used = set()
    plans = {spec: plans_of(spec) if has_model(spec) else [] for spec in specs}
    for spec in specs:
        for run in shipped.runs_of(spec):
            plan = min(plans[spec], key=lambda name: by_lot(spec.stem, run or "", name), default=None)
            used.add(plan)
            yield spec, run, plan
    for plan in sorted({name for names in plans.values() for name in names} - used):
        spec = min((spec for spec in specs if plan in plans[spec]), key=lambda spec: by_lot(spec.stem, plan))
        yield spec, shipped.runs_of(spec)[0], plan


def pack(source, folder):
    sys.path.insert(0, str(source / "tests" / "acceptance"))
    import shipped

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    places = ("models/*.etch", "models/*/*.etch", "tests/**/*.etch")
    specs = [path for place in places for path in sorted(source.glob(place))]
    for spec, run, plan in uses_of(shipped, specs):
        name = ".".join(part for part in (spec.stem, run, plan) if part)
        options = [("plan", plan), ("run", run), ("set", values_of(shipped, spec, plan))]
        (folder / name).write_text(bundle(spec, options), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: corpus.py SOURCE FOLDER")
    pack(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
