"""The code that CONTRIBUTING.md shows is code that is compiled and tested: each block stands in a source of
the tests."""

import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])


def words(text):
    return "".join(text.split())


def main():
    blocks = re.findall(r"^ *```c\n(.*?)^ *```", (SOURCE / "CONTRIBUTING.md").read_text(encoding="utf-8"),
                        re.M | re.S)
    sources = [words(path.read_text(encoding="utf-8")) for path in sorted((SOURCE / "tests").glob("*/*.c"))]
    wrong = [block for block in blocks if not any(words(block) in source for source in sources)]
    for block in wrong:
        print(f"no source has\n{block}")
    sys.exit(1 if wrong or not blocks else 0)


main()
