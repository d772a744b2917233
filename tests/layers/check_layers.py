"""Holds the directions between the rooms of src/, and between the sub-rooms of a room.

    check_layers.py ROOT ROOM:SEEN,SEEN... ROOM/SUB:SEEN,SEEN... ...
                                                   reads every #include below ROOT/src and ROOT/include
    check_layers.py --self-test                    shows that each kind of breach is found

A file may include: headers of its own room; the door `room/room.h` of a room that its own room sees; public
headers `etch/...`; headers of the system. Public headers see each other and the system only. Includes are
written from src, except for a file in the same folder.

Where a room has sub-rooms, `room/sub/...` is of the sub-room `sub`, and what lies in the folder of the room
itself of `.`. A file may then include headers of its own sub-room and those of sub-rooms that its own one
sees, but of these not `*_int.h`, which are for the files of one sub-room. Each breach is named with file and
line.
"""

import pathlib
import re
import sys
import tempfile

INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]+)[">]')


class Directions:
    """Who sees whom: `rooms` by name; `subs` by name of a room that has them, then by name of the
    sub-room."""

    def __init__(self, arguments):
        self.rooms, self.subs = {}, {}
        for argument in arguments:
            name, seen = argument.split(":")
            seen = set(filter(None, seen.split(",")))
            room, _, sub = name.partition("/")
            if sub:
                self.subs.setdefault(room, {})[sub] = seen
            else:
                self.rooms[room] = seen

    def sub_of(self, room, parts):
        """The sub-room of a file, `parts` of whose path come after src/room; None: the room has none."""
        if room not in self.subs:
            return None
        return parts[0] if len(parts) > 1 else "."


def label(room, sub):
    return room if sub == "." else f"{room}/{sub}"


def includes(path):
    """Yields (line number, quoted?, target) for each #include of a file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] == '"', match[2]


def judge_public(target, quoted, directions):
    """Why a public header may not include `target`, or None."""
    if target.split("/")[0] in directions.rooms:
        return "a public header sees no room"
    if quoted and not target.startswith("etch/"):
        return "public headers include each other as \"etch/...\""
    return None


def judge_inside(room, sub, target, directions):
    """Why a file of the sub-room may not include `target`, which is of the same room, or None."""
    if sub is None:
        return None
    other = directions.sub_of(room, target.split("/")[1:])
    if other == sub:
        return None
    if other not in directions.subs[room].get(sub, ()):
        return f"{label(room, sub)} does not see {label(room, other)}"
    if other != "." and target.endswith("_int.h"):
        return f"it is for the files of {label(room, other)}"
    return None


def judge_room(path, room, sub, target, quoted, directions):
    """Why a file of `room` may not include `target`, or None."""
    if ".." in target.split("/"):
        return "includes are written from src, without '..'"
    other = target.split("/")[0] if "/" in target else None
    if other == room:
        return judge_inside(room, sub, target, directions)
    if other == "etch":
        return None
    if other in directions.rooms:
        if other not in directions.rooms[room]:
            return f"{room} does not see {other}"
        if target != f"{other}/{other}.h":
            return f"the door of {other} is {other}/{other}.h"
        return None
    generated = target.endswith(".pb-c.h")
    if quoted and not generated and not (path.parent / target).is_file():
        return "neither in this folder nor in a room"
    return None


def breaches(root, directions):
    """All breaches below `root`, as 'file:line: reason' in the order of the files."""
    found = []
    for top in ("include", "src"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in (".c", ".h", ".def") or not path.is_file():
                continue
            name = path.relative_to(root)
            parts = name.parts
            room = parts[1] if top == "src" else None
            if room is not None and room not in directions.rooms:
                found.append(f"{name}:1: {room} is not a room")
                continue
            sub = directions.sub_of(room, parts[2:])
            if sub is not None and sub not in directions.subs[room]:
                found.append(f"{name}:1: {room}/{sub} is not a sub-room")
                continue
            for line, quoted, target in includes(path):
                if room is None:
                    reason = judge_public(target, quoted, directions)
                else:
                    reason = judge_room(path, room, sub, target, quoted, directions)
                if reason:
                    found.append(f"{name}:{line}: {target}: {reason}")
    return found


def self_test():
    directions = Directions(["low:", "side:low", "high:low", "high/core:", "high/roof:core",
                             "high/.:core,roof"])
    good = {
        "include/etch/a.h": "#include <stdio.h>\n#include \"etch/b.h\"\n",
        "include/etch/b.h": "",
        "src/low/low.h": "#include \"etch/a.h\"\n#include \"table.def\"\n",
        "src/low/table.def": "",
        "src/low/low_int.h": "#include \"low/low.h\"\n",
        "src/high/high.h": "#include \"low/low.h\"\n#include \"messages.pb-c.h\"\n#include "
                           "\"high/core/core.h\"\n",
        "src/high/core/core.h": "#include \"low/low.h\"\n",
        "src/high/core/core_int.h": "#include \"high/core/core.h\"\n",
        "src/high/core/deep/a.c": "#include \"high/core/core_int.h\"\n",
        "src/high/roof/a.c": "#include \"high/core/core.h\"\n#include \"low/low.h\"\n",
        "src/side/side.c": "#include <low/low.h>\n",
    }
    bad = [
        ("src/low/up.c", "\n\n# include \"high/high.h\"\n",
         "src/low/up.c:3: high/high.h: low does not see high"),
        ("src/high/peep.c", "#include \"low/low_int.h\"\n",
         "src/high/peep.c:1: low/low_int.h: the door of low is low/low.h"),
        ("src/side/peep.c", "#include \"low/low_int.h\"\n",
         "src/side/peep.c:1: low/low_int.h: the door of low is low/low.h"),
        ("src/high/sibling.c", "#include <side/side.h>\n",
         "src/high/sibling.c:1: side/side.h: high does not see side"),
        ("src/high/dots.c", "#include \"../low/low.h\"\n",
         "src/high/dots.c:1: ../low/low.h: includes are written from src, without '..'"),
        ("src/high/lost.c", "int a;\n#include \"low.h\"\n",
         "src/high/lost.c:2: low.h: neither in this folder nor in a room"),
        ("include/etch/c.h", "#include \"low/low.h\"\n",
         "include/etch/c.h:1: low/low.h: a public header sees no room"),
        ("src/attic/a.c", "", "src/attic/a.c:1: attic is not a room"),
        ("src/high/core/up.c", "#include \"high/roof/roof.h\"\n",
         "src/high/core/up.c:1: high/roof/roof.h: high/core does not see high/roof"),
        ("src/high/core/door.c", "#include \"high/high.h\"\n",
         "src/high/core/door.c:1: high/high.h: high/core does not see high"),
        ("src/high/roof/peep.c", "#include \"high/core/core_int.h\"\n",
         "src/high/roof/peep.c:1: high/core/core_int.h: it is for the files of high/core"),
        ("src/high/attic/a.c", "", "src/high/attic/a.c:1: high/attic is not a sub-room"),
    ]
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)

        def write(name, text):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return path

        for name, text in good.items():
            write(name, text)
        assert breaches(root, directions) == [], breaches(root, directions)
        for name, text, expected in bad:
            path = write(name, text)
            found = breaches(root, directions)
            assert found == [expected], f"expected {expected!r}, found {found!r}"
            path.unlink()


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    found = breaches(pathlib.Path(arguments[0]), Directions(arguments[1:]))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
