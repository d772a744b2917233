"""The manual page has every command and every option, and is well-formed for man(7)."""

import os
import re
import subprocess
import unittest

ETCH = os.environ["ETCH"]


def run(*arguments):
    return subprocess.run([ETCH, *arguments], capture_output=True, text=True, check=True).stdout


class Manual(unittest.TestCase):
    page = run("help", "man")

    def test_commands_and_options_are_all_there(self):
        overview = run("help")
        commands = re.findall(r"^  etch (\w+)", overview, re.MULTILINE)
        self.assertGreater(len(commands), 5)
        for command in commands:
            self.assertIn(f"\n.SS etch {command} ", self.page)
            for option in re.findall(r"--[a-z-]+", run("help", command).split("Options:")[1]):
                self.assertIn(option.replace("-", r"\-"), self.page)

    def test_lines_are_requests_or_text(self):
        for line in self.page.splitlines():
            if line.startswith("."):
                self.assertRegex(line, r"^\.(TH|SH|SS|TP|B|I|nf|fi)\b")
            self.assertFalse(line.startswith("'"))

    def test_the_formatter_has_no_complaint(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=self.page, capture_output=True,
                              text=True, check=True)
        self.assertEqual("", done.stderr)
        self.assertIn("etch lower", done.stdout)


if __name__ == "__main__":
    unittest.main()
