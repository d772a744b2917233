"""scripts/fuzz.sh ends with an error and says why, when there is no fuzzer and when a target breaks. The
targets and the compiler here are small scripts that behave as real ones would."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
# What clang would have made: it succeeds, as the probe of scripts/fuzzer.sh does.
CLANG = """#!/bin/sh
while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
printf '#!/bin/sh\\nexit 0\\n' >"$out" && chmod +x "$out"
"""
# A target that a hunt finds to break with the input "bad", which it wrote; alone it breaks with inputs that
# say so.
TARGET = """#!/bin/sh
for word; do
    case $word in
    -artifact_prefix=*) place=${word#*=} ;;
    -fork=*) hunts=yes ;;
    -*) ;;
    *) last=$word ;;
    esac
done
if [ "$hunts" ]; then
    %s
fi
grep -q bad "$last" && echo "SUMMARY: broken" && exit 77
exit 0
"""


class Script(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.bin = self.scratch / "bin"
        self.bin.mkdir()
        for place in ("/usr/bin", "/bin"):
            for tool in pathlib.Path(place).iterdir():
                if not tool.name.startswith("clang") and not (self.bin / tool.name).exists():
                    (self.bin / tool.name).symlink_to(tool)

    def program(self, path, text):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def fuzz(self, hunt=None):
        """Status and output of the script over one target, whose hunt does this."""
        if hunt is not None:
            self.program(self.bin / "clang", CLANG)
            self.program(self.scratch / "built" / "fuzz_render", TARGET % hunt)
        environment = {**os.environ, "PATH": str(self.bin), "ETCH_FUZZ_SECONDS": "1",
                       "ETCH_FUZZ_BUILD": str(self.scratch / "built"),
                       "ETCH_FUZZ_FOUND": str(self.scratch / "found")}
        done = subprocess.run([SOURCE / "scripts" / "fuzz.sh", "render"], env=environment,
                              capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout + done.stderr

    def test_without_clang(self):
        status, said = self.fuzz()
        self.assertEqual(status, 2)
        self.assertIn("NOTHING WAS FUZZED", said)

    def test_without_its_library(self):
        self.program(self.bin / "clang", "#!/bin/sh\necho cannot find libclang_rt.fuzzer >&2; exit 1\n")
        status, said = self.fuzz()
        self.assertEqual(status, 2)
        self.assertIn("cannot find libclang_rt.fuzzer", said)
        self.assertIn("NOTHING WAS FUZZED", said)

    def test_nothing_breaks(self):
        status, said = self.fuzz("exit 0")
        self.assertEqual((status, said.splitlines()[-1]), (0, "scripts/fuzz.sh: nothing breaks: render"))

    def test_input_is_named(self):
        """Whatever status the hunt itself ends with; and again in the next night, until it is repaired."""
        for hunt in ('echo bad >"${place}crash-1"; exit 77', 'echo bad >"${place}crash-1"; exit 0', "exit 0"):
            with self.subTest(hunt):
                status, said = self.fuzz(hunt)
                self.assertEqual(status, 1)
                self.assertIn(f"target render is broken by {self.scratch}/found/broken/render/crash-1", said)
                self.assertEqual(said.splitlines()[-1], "scripts/fuzz.sh: FAILED: render")
        (self.scratch / "found" / "broken" / "render" / "crash-1").write_text("good", encoding="utf-8")
        self.assertEqual(self.fuzz("exit 0")[0], 0)
        self.assertTrue((self.scratch / "found" / "render" / "crash-1").exists())

    def test_broken_fuzzer(self):
        status, said = self.fuzz("exit 1")
        self.assertEqual(status, 1)
        self.assertIn("the fuzzer of render ended with status 1", said)


if __name__ == "__main__":
    unittest.main()
