"""The glossary: each term stands there once, in alphabetical order, with a file that exists. README and
CONTRIBUTING link it.

    check_glossary.py              of this repository
    check_glossary.py --self-test  shows that each kind of breach is found
"""

import os
import pathlib
import re
import sys
import tempfile

ENTRY = re.compile(r"^- \*\*(.+?)\*\*: (.+?) \[([^\]]+)\]\(\.\./([^)]+)\)$", re.M | re.S)
LINKS = {"README.md": "docs/glossary.md", "CONTRIBUTING.md": "docs/glossary.md"}


def breaches(root):
    text = (root / "docs" / "glossary.md").read_text(encoding="utf-8")
    items = re.findall(r"^- .*(?:\n  .*)*", text, re.M)
    found, terms = [], []
    for item in items:
        entry = ENTRY.match(item.replace("\n  ", " "))
        if not entry:
            found.append(f"no entry: {item.splitlines()[0]}")
            continue
        term, _, label, path = entry.groups()
        terms.append(term)
        if not (root / path).is_file() or pathlib.PurePath(path).name != label:
            found.append(f"{term}: there is no file {path}, or it is called otherwise than {label}")
    found += [f"{term} stands there twice" for term in sorted(set(terms)) if terms.count(term) > 1]
    found += [f"{two} stands after {one}" for one, two in zip(terms, terms[1:]) if one.lower() > two.lower()]
    found += [f"{name} does not link it" for name, link in LINKS.items()
              if link not in (root / name).read_text(encoding="utf-8")]
    return found + ([] if len(terms) > 0 else ["there are no terms"])


def self_test():
    entry = "- **{}**: a thing that is\n  there. [a.c](../src/{})\n"
    good = entry.format("one", "a.c") + entry.format("two", "a.c")
    bad = {
        entry.format("one", "b.c"): "one: there is no file src/b.c, or it is called otherwise than a.c",
        good + entry.format("two", "a.c"): "two stands there twice",
        good + entry.format("four", "a.c"): "four stands after two",
        good + "- three: a thing\n": "no entry: - three: a thing",
    }
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for folder in ("src", "docs"):
            (root / folder).mkdir()
        (root / "src" / "a.c").touch()
        for name, link in LINKS.items():
            (root / name).write_text(link, encoding="utf-8")
        glossary = root / "docs" / "glossary.md"
        glossary.write_text(good, encoding="utf-8")
        assert breaches(root) == [], breaches(root)
        for text, expected in bad.items():
            glossary.write_text(text, encoding="utf-8")
            assert breaches(root) == [expected], breaches(root)
        glossary.write_text(good, encoding="utf-8")
        (root / "README.md").write_text("", encoding="utf-8")
        assert breaches(root) == ["README.md does not link it"], breaches(root)


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    found = breaches(pathlib.Path(os.environ["ETCH_SOURCE_DIR"]))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
