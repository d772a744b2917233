"""The dictionary of the target `spec` has every word of the grammar, every op that help lists, and what else
specs say."""

import os
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
DICTIONARY = pathlib.Path(os.environ["ETCH_BINARY_DIR"]) / "fuzz" / "spec.dict"


def words():
    """The entries, read as libFuzzer reads them: "text" with \\\\, \\" and \\xAB."""
    for line in DICTIONARY.read_text(encoding="ascii").splitlines():
        entry = re.fullmatch(r'"((?:[^"\\]|\\["\\]|\\x[0-9A-F]{2})+)"', line)
        if not entry:
            raise AssertionError(f"not an entry: {line}")
        yield re.sub(r'\\(x[0-9A-F]{2}|.)',
                     lambda m: chr(int(m[1][1:], 16)) if m[1][0] == "x" and len(m[1]) == 3 else m[1],
                     entry[1])


class Dictionary(unittest.TestCase):
    def assertHas(self, wanted, least):
        self.assertGreaterEqual(len(wanted), least)
        self.assertEqual(sorted(set(wanted) - set(words())), [])

    def test_grammar(self):
        """Words and marks of the second grammar, which is written by hand."""
        text = (SOURCE / "grammar" / "etch.y").read_text(encoding="utf-8").split("%%")[0]
        self.assertHas(re.findall(r'"([a-z]{2,}|[^\w\s"]{2})"', text), 39)

    def test_ops(self):
        listing = subprocess.run([os.environ["ETCH"], "help", "ops"], capture_output=True, text=True,
                                 check=True).stdout
        self.assertHas(re.findall(r"^([a-z]\w*) {2,}", listing.split("\n\n")[0], re.M), 45)

    def test_values_and_options(self):
        self.assertHas("one_f_one_b interleaved gpipe bf16 f8 master moments adamw sgd causal over counts "
                       "schedule accumulate "
                       "optimizer recompute reduce bucket unit prefetch steps max ceildiv".split(), 20)

    def test_entries_fit(self):
        self.assertLessEqual(max(len(word) for word in words()), 64)
        self.assertIn("\n#plan ", set(words()))


if __name__ == "__main__":
    unittest.main()
