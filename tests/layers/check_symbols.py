"""Holds the directions between rooms and sub-rooms as the linker sees them, and that no files of a room use
each other in a circle.

    check_symbols.py NM OBJECTS ROOM:SEEN,SEEN... ROOM/SUB:SEEN,SEEN... ...
                                      OBJECTS: a file of lines "ROOM OBJECT", all object files of the build
    check_symbols.py NM --self-test   compiles small modules with $CC, shows that each kind of breach is found

A file uses another one when it needs a symbol, of a function or an object, that the other one defines. What
it includes says less: a header declares more than its file defines. Directions are those of check_layers.py.
`CORES` lists circles that are meant, with the reason; what is listed and no longer in a circle is a breach as
well.
"""

import collections
import os
import pathlib
import subprocess
import sys
import tempfile

from check_layers import Directions, label

CORES = {
    # To be canonical, a sum of floors, minima and powers asks what is true of its terms, and whoever decides
    # what is true computes with canonical forms.
    "symbolic": set("""
        arith.c atoms.c calculus.c coef.c context.c facts.c fraction.c integrality.c mono.c points.c poly.c
        powers.c product.c proof_atoms.c prove.c subst.c sums.c
        """.split()),
}


class File:
    def __init__(self, room, name):
        self.room, self.name = room, name
        self.defines, self.needs = set(), set()


def read_objects(nm, listing):
    """The files of the build, by object: 'src/ROOM/CMakeFiles/TARGET.dir/SUB/FILE.c.o' is SUB/FILE.c of
    ROOM."""
    files = []
    objects = [line.split(" ", 1) for line in listing.read_text(encoding="utf-8").splitlines() if line]
    for room, path in objects:
        parts = pathlib.PurePath(path).parts
        inside = parts[max(i for i, part in enumerate(parts) if part.endswith(".dir")) + 1:]
        files.append(File(room, str(pathlib.PurePath(*inside).with_suffix(""))))
    by_path = {path: file for (_, path), file in zip(objects, files)}
    shown = subprocess.run([nm, "-P", *by_path], check=True, capture_output=True, text=True).stdout
    file = files[0] if len(files) == 1 else None  # a single object is shown without its name
    for line in shown.splitlines():
        if line[:-1] in by_path:
            file = by_path[line[:-1]]
        elif line:
            symbol, kind = line.split()[:2]
            if kind == "U":
                file.needs.add(symbol)
            elif kind.isupper():
                file.defines.add(symbol)
    return files


def uses_of(files):
    """By file: the files that it uses, each with a symbol of it."""
    home = {symbol: file for file in files for symbol in file.defines}
    uses = {file: {} for file in files}
    for file in files:
        for symbol in sorted(file.needs):
            other = home.get(symbol)
            if other is not None and other is not file:
                uses[file].setdefault(other, symbol)
    return uses


def circles(files, uses):
    """Sets of files that use each other in a circle: strongly connected, two or more. By Tarjan, without
    recursion."""
    number, low, on_stack, stack, found = {}, {}, set(), [], []
    for root in files:
        if root in number:
            continue
        work = [(root, iter([]))]
        while work:
            file, rest = work[-1]
            if file not in number:
                number[file] = low[file] = len(number)
                stack.append(file)
                on_stack.add(file)
                rest = iter([other for other in uses[file] if other.room == file.room])
                work[-1] = (file, rest)
            for other in rest:
                if other not in number:
                    work.append((other, iter([])))
                    break
                if other in on_stack:
                    low[file] = min(low[file], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[file])
                if low[file] == number[file]:
                    circle = set(stack[stack.index(file):])
                    del stack[stack.index(file):]
                    on_stack -= circle
                    if len(circle) > 1:
                        found.append(circle)
    return found


def judge(file, other, directions):
    """Why `file` may not use `other`, or None."""
    if file.room != other.room:
        seen = other.room in directions.rooms[file.room]
        return None if seen else f"{file.room} does not see {other.room}"
    sub, of = (directions.sub_of(f.room, pathlib.PurePath(f.name).parts) for f in (file, other))
    if sub == of or of in directions.subs[file.room][sub]:
        return None
    return f"{label(file.room, sub)} does not see {label(file.room, of)}"


def breaches(files, directions, cores):
    uses, found = uses_of(files), []
    for file in files:
        for other, symbol in uses[file].items():
            reason = judge(file, other, directions)
            if reason:
                found.append(f"{file.room}/{file.name} uses {symbol} of {other.room}/{other.name}: {reason}")
    met = collections.defaultdict(set)
    for circle in circles(files, uses):
        room = next(iter(circle)).room
        names = {file.name for file in circle}
        met[room] |= names
        if not names <= cores.get(room, set()):
            found.append(f"{room}: these files use each other in a circle: {' '.join(sorted(names))}")
    for room, names in cores.items():
        for name in sorted(names - met[room]):
            found.append(f"{room}/{name} is listed as of a circle, and is in none")
    return found


def self_test(nm):
    directions = Directions(["low:", "high:low", "high/core:", "high/roof:core", "high/.:core,roof"])
    good = {
        ("low", "a.c"): "int low_a(void); int low_a(void) { return 1; }",
        ("low", "x.c"): "int low_y(void); int low_x(void); int low_x(void) { return low_y(); }",
        ("low", "y.c"): "int low_y(void); int low_x(void); int low_y(void) { return low_x(); }",
        ("high",
         "core/b.c"): "extern int table; int table = 2; int low_a(void); int b(void); int b(void) { return "
                      "low_a(); }",
        ("high", "roof/c.c"): "extern int table; int c(void); int c(void) { return table; }",
        ("high", "page.c"): "int b(void); int c(void); int page(void); int page(void) { return b() + c(); }",
    }
    bad = [
        (("low", "up.c"), "int c(void); int up(void); int up(void) { return c(); }",
         "low/up.c uses c of high/roof/c.c: low does not see high"),
        (("high", "core/up.c"), "int c(void); int up(void); int up(void) { return c(); }",
         "high/core/up.c uses c of high/roof/c.c: high/core does not see high/roof"),
        (("high", "core/d.c"), "extern int (*d)(void); int page(void); int (*d)(void) = page;",
         "high/core/d.c uses page of high/page.c: high/core does not see high"),
        (("low", "a.c"), "int low_a(void); int e(void); int low_a(void) { return e(); }",
         "low: these files use each other in a circle: a.c e.c"),
        (("low", "x.c"), "int low_x(void); int low_x(void) { return 3; }",
         "low/x.c is listed as of a circle, and is in none"),
    ]
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)

        def found(sources):
            lines = []
            for (room, name), text in sources.items():
                source, built = root / "source.c", root / f"src/{room}/x.dir/{name}.o"
                source.write_text(text, encoding="utf-8")
                built.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run([os.environ["CC"], "-c", "-o", built, source], check=True)
                lines.append(f"{room} {built}")
            (root / "objects").write_text("\n".join(lines), encoding="utf-8")
            return breaches(read_objects(nm, root / "objects"), directions, {"low": {"x.c", "y.c"}})

        end = {("low", "e.c"): "int low_a(void); int e(void); int e(void) { return low_a(); }"}
        assert found(good | end) == [], found(good | end)
        for where, text, expected in bad:
            lines = found(good | end | {where: text})
            assert expected in lines, f"expected {expected!r}, found {lines!r}"


def main(arguments):
    nm = arguments[0]
    if arguments[1:] == ["--self-test"]:
        self_test(nm)
        return 0
    files = read_objects(nm, pathlib.Path(arguments[1]))
    found = breaches(files, Directions(arguments[2:]), CORES)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
