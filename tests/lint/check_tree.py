"""Holds the tree to rules of its own that no compiler knows.

    check_tree.py ROOT         reads the sources below ROOT
    check_tree.py --self-test  shows that each kind of breach is found

- A type that a header of the library defines is defined once, and its name begins with `etch_` or with the
  prefix of
  its module (`sym_`); so do enumerators of headers with `ETCH_`. The program's begin with `cli_` and `CLI_`.
- No function is longer than 60 lines, tables within it not counted: initializers, and a flat switch.
- No file of code is longer than 800 lines.
- Code and comments of the library say the field's terms; `WORDS` has words that those of docs/glossary.md
  have replaced.
- No line of code, comments, docs or Python is wider than 110 columns. Free are tables and fenced
  blocks of Markdown, which are recorded, lines with an address of the web, and
  `.tsv` and cases, which are data.

Each breach is named with file and line.
"""

import collections
import pathlib
import re
import sys
import tempfile

from ctext import enumerators, functions, tags

MOST_LINES, MOST_FUNCTION, MOST_CASE, MOST_COLUMNS = 800, 60, 5, 110
CODE = ("src", "include", "tests", "fuzz", "bench", "examples", "scripts")
# What is not said, in code and comments but not in texts for users, and what is said instead.
WORDS = {r"stretch(es)?": "interval", r"hand(s|ed)?[ _]on": "carry, loop-carried",
         r"demands?": "require, requirement", r"the door": "public functions, header",
         r"run again": "recompute", r"in front of": "before"}
PREFIXES = {"src/cli": ("cli_", "CLI_"), "src/symbolic": ("sym_", "ETCH_")}


def files(root, folders, endings):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in endings and path.is_file():
                yield path


def text_of(path):
    return path.read_text(encoding="utf-8")


def check_names(root):
    """Types and enumerators of headers."""
    found, homes = [], collections.defaultdict(list)
    for path in files(root, ("include", "src"), (".h",)):
        name, text = path.relative_to(root), text_of(path)
        tag, constant = next((p for folder, p in PREFIXES.items() if str(name).startswith(folder)),
                             ("etch_", "ETCH_"))
        for defined, line in tags(text):
            homes[defined].append((str(name), line))
            if not defined.startswith((tag, "etch_")):
                found.append(f"{name}:{line}: the type {defined} of a header begins with {tag}")
        for enumerator, line in enumerators(text):
            if not enumerator.startswith(constant):
                found.append(f"{name}:{line}: the enumerator {enumerator} of a header begins with {constant}")
    for defined, places in homes.items():
        others = {name for name, _ in places}
        if len(others) > 1:
            found.append(f"{places[1][0]}:{places[1][1]}: the type {defined} is defined in {places[0][0]} as "
                         f"well")
    for path in files(root, ("src",), (".c",)):
        for defined, line in tags(text_of(path)):
            if defined in homes:
                name = path.relative_to(root)
                found.append(f"{name}:{line}: the type {defined} is defined in {homes[defined][0][0]} as "
                             f"well")
    return found


def without_tables(body):
    """A function's lines less those of initializers, and of a switch whose cases are short."""
    lines = body.count("\n") + 1
    for match in re.finditer(r"=\s*\{", body):
        lines -= body[match.end():close_of(body, match.end() - 1)].count("\n")
    for match in re.finditer(r"\bswitch\s*\([^{};]*\)\s*\{", body):
        inside = body[match.end():close_of(body, match.end() - 1)]
        cases = re.split(r"(?m)^\s*(?:case\b.*|default\s*):", inside)
        if "{" not in inside and all(len(case.strip().split("\n")) <= MOST_CASE for case in cases):
            lines -= inside.count("\n")
    return lines


def close_of(body, opened):
    depth = 0
    for at in range(opened, len(body)):
        depth += (body[at] == "{") - (body[at] == "}")
        if depth == 0:
            return at
    return len(body)


def check_sizes(root):
    found = []
    for path in files(root, CODE, (".c", ".h", ".inc", ".py", ".sh")):
        name, text = path.relative_to(root), text_of(path)
        count = text.count("\n")
        if count > MOST_LINES:
            found.append(f"{name}:{MOST_LINES + 1}: a file of {count} lines, more than {MOST_LINES}")
        if path.suffix not in (".c", ".h"):
            continue
        for function, line, body in functions(text):
            length = without_tables(body)
            if length > MOST_FUNCTION:
                found.append(f"{name}:{line}: {function} has {length} lines, more than {MOST_FUNCTION}")
    return found


def prose(text):
    """Lines of Markdown that are neither tables nor in fenced blocks."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence:
            fence = None if line.strip() == fence else fence
        elif mark:
            fence = mark[1]
        elif not line.lstrip().startswith("|"):
            yield number, line


def check_columns(root):
    found = []
    code = [*files(root, CODE, (".c", ".h", ".inc", ".def", ".py", ".sh"))]
    docs = [*files(root, ("docs", "bench"), (".md",)), *sorted(root.glob("*.md"))]
    for path in code + docs:
        name, text = path.relative_to(root), text_of(path)
        for number, line in prose(text) if path.suffix == ".md" else enumerate(text.split("\n"), 1):
            if len(line) > MOST_COLUMNS and not re.search(r"https?://", line):
                found.append(f"{name}:{number}: a line of {len(line)} columns, more than {MOST_COLUMNS}")
    return found


def check_words(root):
    found = []
    for path in files(root, ("include", "src"), (".c", ".h")):
        name = path.relative_to(root)
        for number, line in enumerate(text_of(path).split("\n"), 1):
            said = re.sub(r'"(\\.|[^"\\])*"', '""', line)
            for word, better in WORDS.items():
                match = re.search(rf"(?<![a-z])({word})(?![a-z])", said)
                if match:
                    found.append(f"{name}:{number}: '{match[0]}' is not said: {better}")
    return found


def breaches(root):
    return check_names(root) + check_sizes(root) + check_columns(root) + check_words(root)


def self_test():
    table = "".join(f"        {{{i}, 0}},\n" for i in range(80))
    cases = "".join(f"    case {i}:\n        return {i};\n" for i in range(80))
    steps = "".join(f"    a += {i};\n" for i in range(70))
    good = {
        "include/etch/a.h": "typedef struct etch_a etch_a;\nenum { ETCH_ONE = sizeof(int), ETCH_TWO };\n",
        "src/low/low.h": "typedef struct etch_b {\n    int a;\n} etch_b;\n/* struct copy { enum { ONE } } "
                         "*/\n",
        "src/low/a.c": "struct etch_a {\n    int a;\n};\ntypedef struct row {\n    int a;\n} row;\n"
                       f"int f(void)\n{{\n    static const row rows[] = {{\n{table}    }};\n"
                       f"    return rows[0].a;\n}}\n"
                       f"int g(int a)\n{{\n    switch (a) {{\n{cases}    }}\n    return 0;\n}}\n",
        "src/low/b.c": "typedef struct row {\n    int b;\n} row;\n",
        "src/cli/cli_int.h": "typedef enum cli_kind { CLI_A } cli_kind;\n",
        "docs/a.md": f"{'a' * 110}\n| {'a' * 110} |\n\n```console\n$ {'a' * 110}\n```\nhttps://{'a' * 110}\n",
        "tests/a.py": f"A = '{'a' * 104}'\n",
        "src/symbolic/symbolic_int.h": "typedef struct sym_a {\n    int a;\n} sym_a;\n",
    }
    bad = [
        ("src/low/c.h", "typedef struct copy {\n    int a;\n} copy;\n",
         "src/low/c.h:1: the type copy of a header begins with etch_"),
        ("src/low/c.h", "\nenum etch_k { ETCH_A = 1, KIND_B };\n",
         "src/low/c.h:2: the enumerator KIND_B of a header begins with ETCH_"),
        ("src/top/c.h", "typedef struct etch_b {\n    int c;\n} etch_b;\n",
         "src/top/c.h:1: the type etch_b is defined in src/low/low.h as well"),
        ("src/top/c.c", "struct etch_b {\n    int c;\n};\n",
         "src/top/c.c:1: the type etch_b is defined in src/low/low.h as well"),
        ("tests/a.c", f"int f(int a)\n{{\n{steps}    return a;\n}}\n",
         "tests/a.c:2: f has 73 lines, more than 60"),
        ("tests/a.c", f"START_TEST(long_one)\n{{\n    int a = 0;\n{steps}}}\nEND_TEST\n",
         "tests/a.c:2: long_one has 73 lines, more than 60"),
        ("src/low/d.c", f"int a;\n/* {'a' * 105} */\n",
         "src/low/d.c:2: a line of 111 columns, more than 110"),
        ("src/low/d.c", "int find_handed_on;\n",
         "src/low/d.c:1: 'handed_on' is not said: carry, loop-carried"),
        ("src/low/d.c", "/* What a plan demands. */\n",
         "src/low/d.c:1: 'demands' is not said: require, requirement"),
        ("scripts/b.py", f"A = '{'a' * 105}'\n", "scripts/b.py:1: a line of 111 columns, more than 110"),
        ("docs/b.md", f"```text\n{'a' * 111}\n```\n{'a' * 111}\n",
         "docs/b.md:4: a line of 111 columns, more than 110"),
        ("scripts/a.py", "a = 1\n" * 801, "scripts/a.py:801: a file of 801 lines, more than 800"),
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
        assert breaches(root) == [], breaches(root)
        for name, text, expected in bad:
            path = write(name, text)
            found = breaches(root)
            assert expected in found and len(found) <= 2, f"expected {expected!r}, found {found!r}"
            path.unlink()


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    found = breaches(pathlib.Path(arguments[0]))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
