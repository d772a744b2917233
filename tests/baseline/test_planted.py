"""A small baseline, recorded here, is held against the program, and against ones that change an answer on its
way: each change is found; a formula that is written otherwise, a renamed word and what exceptions have pass;
tables that say nonsense do not."""

import functools
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import baseline  # noqa: E402
import equal  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ETCH = os.environ["ETCH"]
SIZES = ("batch=8,seq=8,layers=4,hidden=16,heads=4,kv_heads=2,head_dim=4,ffn=16,vocab=16,micro=2,pp=2,dp=2,"
         "tp=2")
LLAMA = "models/llama.etch"
FORMULA = f"query {LLAMA} 'matmul_flops(forward, of = head)'"
PEAK = f"query {LLAMA} 'memory(peak)' --plan megatron_pp --stage middle"
TABLE = f"query {LLAMA} 'comm(step)' --plan megatron_pp --set {SIZES} --by collective"
PLACED = f"show {LLAMA} --plan megatron_sp"
SLOTS = f"show {LLAMA} --plan megatron_pp --pipeline --set {SIZES}"
REFUSED = f"query {LLAMA} 'comm(step)' --plan nothing"
TRACES = f"lower {LLAMA} --plan megatron_pp --set {SIZES}"
COMMANDS = ("spec models/llama.etch", FORMULA, PEAK, TABLE, TRACES, f"{TRACES} --dry-run", f"check {LLAMA}",
            PLACED, SLOTS,
            REFUSED)

# The program with a change: `plant` gets the arguments, and what the program said; it says something else.
WRAPPER = """#!{python}
import glob, subprocess, sys
done = subprocess.run([{etch!r}, *sys.argv[1:]], capture_output=True, text=True)
out, err, status, kind = done.stdout, done.stderr, done.returncode, sys.argv[1]
folder = sys.argv[sys.argv.index("-o") + 1] if "-o" in sys.argv else None
{plant}
sys.stdout.write(out), sys.stderr.write(err)
sys.exit(status)
"""


class Planted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.once = {command: baseline.answer(ETCH, command) for command in COMMANDS}

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.getcwd())
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.recorded = dict(self.once)
        self.baseline = self.scratch / "baseline.tsv.xz"
        baseline.write(self.baseline, self.recorded)

    def program(self, plant):
        path = self.scratch / "changed"
        path.write_text(WRAPPER.format(python=sys.executable, etch=ETCH, plant=plant), encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def table(self, name, *lines):
        path = self.scratch / name
        path.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
        return path

    def compare(self, plant="", only=None, exceptions=(), renamed=(), said=(), more=()):
        """`only`: of the commands of the baseline this one."""
        match = ["--match", f"^{re.escape(only)}$"] if only else []
        tables = ["--exceptions", self.table("exceptions.tsv", *exceptions),
                  "--renamed", self.table("renamed.tsv", *renamed),
                  "--said", self.table("said.tsv", *said)]
        return subprocess.run([sys.executable, "-B", HERE / "compare.py", "--etch",
                               self.program(plant) if plant else ETCH,
                               *tables, *match, *more, "--jobs", "1", self.baseline],
                              capture_output=True, text=True, check=False)

    def assertPasses(self, done):
        self.assertEqual((0, ""), (done.returncode, done.stderr), done.stdout)
        self.assertRegex(done.stdout, r"commands, 0 differences")

    def assertFound(self, done, *texts):
        self.assertEqual((1, ""), (done.returncode, done.stderr), done.stdout)
        for text in texts:
            self.assertIn(text, done.stdout)

    def replaced(self, old, new, where="out"):
        """A plant that changes a text once."""
        return f"{where} = {where}.replace({old!r}, {new!r}, 1)"

    def test_the_same_program(self):
        self.assertPasses(self.compare())

    def test_a_number(self):
        number = re.search(r'"all_gather":\{"value":"(\d+)"', self.recorded[TABLE])[1]
        done = self.compare(self.replaced(f'"{number}"', f'"{int(number) + 1}"'), TABLE)
        self.assertFound(done, TABLE,
                         f"rows.all_gather.value: different\n    was {number}\n    is  {int(number) + 1}\n")

    def test_a_row(self):
        done = self.compare(self.replaced('"reduce_scatter"', '"scatter"'), TABLE)
        self.assertFound(done, f"{TABLE}\n  result.rows (names)")

    def test_a_formula(self):
        done = self.compare(self.replaced('"2*batch*seq*hidden*vocab"', '"3*batch*seq*hidden*vocab"'),
                            FORMULA)
        self.assertFound(done,
                         f"{FORMULA}\n  result.formula: different\n    was 2*batch*seq*hidden*vocab\n    is  "
                         f"3*batch")

    def test_a_term_of_a_long_formula(self):
        self.assertFound(self.compare('out = out.replace("layers - stage + 2", "layers - stage + 3")', PEAK),
                         PEAK)

    def test_a_formula_of_the_same_numbers_at_small_points_only(self):
        """What arithmetic at points does not tell apart is proved, or not."""
        prover = equal.Prover(ETCH)
        self.assertEqual("not proved to be equal",
                         prover.why_not(FORMULA, "max(batch, 10^9)*seq", "10^9*seq"))
        self.assertIsNone(prover.why_not(FORMULA, "max(batch, 0)*seq + 0*batch", "batch*seq"))

    def test_formulas_read_back(self):
        """The texts of formulas are what is proved, the longest ones, too."""
        prover = equal.Prover(ETCH)
        for command in (FORMULA, PEAK):
            text = re.search(r'"formula":"([^"]*)"', self.recorded[command])[1]
            self.assertIsNone(prover.why_not(command, f"0 + {text}", text))
            self.assertEqual("different", prover.why_not(command, f"1 + {text}", text))

    def test_a_formula_written_otherwise(self):
        done = self.compare(self.replaced('"2*batch*seq*hidden*vocab"', '"2*hidden*vocab*batch*seq"'),
                            FORMULA)
        self.assertPasses(done)

    def test_a_longer_formula(self):
        done = self.compare(self.replaced('"2*batch*seq*hidden*vocab"', '"2*batch*seq*(hidden*vocab)"'),
                            FORMULA)
        self.assertFound(done, "result.formula: equal, but longer")

    def test_lines_of_columns(self):
        """Formulas of a line may be written otherwise, and its columns then lie elsewhere; nothing else."""
        prover = equal.Prover(ETCH)
        why_not = functools.partial(prover.why_not, FORMULA)
        self.assertIsNone(why_not("  all_reduce  tp  batch*seq*1  8", "  all_reduce  tp  batch*seq    8"))
        self.assertIsNone(why_not("  sum  ceil((seq + 1)/2)  8", "  sum  floor((seq + 2)/2)  8"))
        for line in ("  all_reduce  tp  batch*seq  9", "  all_reduce  ep  batch*seq  8",
                     "  all_reduce  tp  2*batch*seq  8", "  all_reduce  tp  batch*seq"):
            self.assertEqual("different", why_not("  all_reduce  tp  batch*seq  8", line))
        self.assertEqual("equal, but longer", why_not("  sum  batch*seq  8", "  sum  seq*(batch)  8"))

    def test_a_formula_where_a_number_was(self):
        number = re.search(r'"all_gather":\{"value":"(\d+)"', self.recorded[TABLE])[1]
        self.assertFound(self.compare(self.replaced(f'"{number}"', f'"{number} + 0*seq"'), TABLE), TABLE)

    def test_a_byte_of_a_trace(self):
        flip = ('if folder and status == 0:\n    path = sorted(glob.glob(folder + "/*.et"))[3]\n'
                '    data = bytearray(open(path, "rb").read())\n    ')
        for place in ("100", "-1"):
            done = self.compare(f'{flip}data[{place}] ^= 1\n    open(path, "wb").write(data)', TRACES)
            self.assertFound(done, f"{TRACES}\n  traces: different", "ranks: different")

    def test_a_missing_trace(self):
        plant = ('if folder and status == 0:\n    import os\n'
                 '    os.unlink(sorted(glob.glob(folder + "/*.et"))[0])')
        self.assertFound(self.compare(plant, TRACES), f"{TRACES}\n  traces: different")

    def test_groups_and_manifest(self):
        for name, place in (("comm_group.json", "files.comm_group.json"),
                            ("manifest.json", "manifest.ranks")):
            plant = (f'if folder and status == 0:\n    path = folder + "/{name}"\n    text = '
                     f'open(path).read()\n'
                     '    text = text.replace("\\"ranks\\": 8", "\\"ranks\\": 9") if "manifest" in path else '
                     'text + " "\n'
                     '    open(path, "w").write(text)')
            self.assertFound(self.compare(plant, TRACES), f"{TRACES}\n  {place}: different")

    def test_version_and_spec_digest_do_not_count(self):
        plant = ('if folder and status == 0:\n    import re\n    path = folder + "/manifest.json"\n'
                 '    text = open(path).read()\n    text = re.sub(r\'"(version|sha256)": "[^"]*"\', '
                 'r\'"\\1": "new"\', text)\n'
                 '    open(path, "w").write(text)')
        self.assertPasses(self.compare(plant, TRACES))

    def test_messages_and_statuses(self):
        self.assertFound(self.compare(self.replaced("E0630", "E0631", "err"), PEAK), "messages[0]: different")
        self.assertFound(self.compare("status = 2 if status == 1 else status", REFUSED),
                         f"{REFUSED}\n  status: different\n    was 1\n    is  2")

    def test_show(self):
        self.assertFound(self.compare(self.replaced("reduce_scatter", "all_gather"), PLACED), PLACED)
        self.assertFound(self.compare(self.replaced('"in_flight": 2', '"in_flight": 3'), SLOTS), SLOTS)

    def test_a_spec_that_has_changed(self):
        self.recorded["spec models/llama.etch"] = '{"sha256":"of another text"}'
        baseline.write(self.baseline, self.recorded)
        self.assertFound(self.compare(), "spec models/llama.etch\n  sha256: different")

    def test_renamed(self):
        plant, words = "out = out.replace('reduce_scatter', 'scatter_sums')", [("reduce_scatter",
                                                                                "scatter_sums")]
        self.assertFound(self.compare(plant, TABLE), "(names)")
        self.assertPasses(self.compare(plant, TABLE, renamed=words))
        self.assertFound(self.compare(only=TABLE, renamed=words), "(names)")

    def test_messages_that_say_more(self):
        plant = "err = err.replace('there is no plan', 'there is no such plan', 1)"
        line = ("no such plan 'nothing'", "no plan 'nothing'", "It is shorter.")
        self.assertFound(self.compare(plant, REFUSED), "messages[0]: different")
        self.assertPasses(self.compare(plant, REFUSED, said=[line]))
        self.assertPasses(self.compare(only=REFUSED, said=[line]))
        plant = "err = err.replace('there is no plan', 'there was no such plan', 1)"
        self.assertFound(self.compare(plant, REFUSED, said=[line]), "messages[0]: different")

    def test_defaults_of_what_a_config_leaves_out(self):
        """A baseline of a time when they stayed open; today's answer must be what that one is at the
        defaults."""
        command = "query models/gpt.etch 'saved(model)' --config gpt2 --set seq=1024"
        self.recorded = {command: baseline.answer(ETCH, f"{command},micro=micro")}
        self.assertIn("batch/micro", self.recorded[command])
        baseline.write(self.baseline, self.recorded)
        self.assertPasses(self.compare())
        open_asked = "any('micro=micro' in word for word in sys.argv)"
        formula = re.search(r'"formula":"(\d+)', self.recorded[command])[1]
        for case in open_asked, f"not {open_asked}":
            plant = f"if {case}:\n    out = out.replace({formula!r}, '9' + {formula!r})"
            self.assertFound(self.compare(plant), command)
        self.recorded = {command: baseline.answer(ETCH, command)}
        self.assertIn("E0510", self.recorded[command])
        baseline.write(self.baseline, self.recorded)
        self.assertPasses(self.compare())

    def test_exceptions(self):
        plant = self.replaced('"2*batch*seq*hidden*vocab"', '"3*batch*seq*hidden*vocab"')
        right = (r"of = head\)': result\.formula$", "shared weight", "The head was counted twice.")
        done = self.compare(plant, exceptions=[right])
        self.assertPasses(done)
        self.assertIn("1 excepted", done.stdout)
        self.assertFound(self.compare(plant,
                                      exceptions=[right, ("nothing", "shared weight", "It is not there.")]),
                         "exceptions.tsv:2: nothing needs this exception", ", 0 differences")
        self.assertFound(self.compare(exceptions=[right]), "exceptions.tsv:1: nothing needs this exception")

    def test_tables_that_say_nonsense(self):
        for line, text in (((".", "better now", "It is."), "'better now' is no reason"),
                           ((".", "shared weight"), "3 columns"),
                           ((".", "show as JSON", "It has other names."), "begins with '^show '"),
                           ((".", "live range", "It is shorter."), "names the executor's case"),
                           ((".", "live range", "tests/exec/exec_plans.c: no_such_case is shorter."),
                            "names the executor's case"),
                           (("(", "shared weight", "It is not closed."), "unterminated")):
            done = self.compare(exceptions=[line])
            self.assertEqual(1, done.returncode, done.stdout)
            self.assertIn(text, done.stderr)
        self.assertIn("2 columns", self.compare(renamed=[("alone",)]).stderr)

    def test_samples(self):
        """All samples of a stride together are the whole."""
        seen = set()
        for seed in range(5):
            done = self.compare("out = out.replace('{', '{\"planted\": 1,', 1)",
                                more=["--sample", "2", "--seed", str(seed)])
            seen |= {line for line in done.stdout.splitlines() if line in COMMANDS}
        # the spec itself, and what ended with an error, have no answer to change
        self.assertLess(len(COMMANDS) - len(seen), 3)

    def test_recorded_alike(self):
        """The recorder finds commands of every kind, and two recordings are one file."""
        files = []
        for name in ("one.tsv.xz", "two.tsv.xz"):
            done = subprocess.run([sys.executable, "-B", HERE / "record.py", "--etch", ETCH, "--match",
                                   r"^(spec|check|show|lower) models/mamba2\.etch($| --plan megatron_pp)",
                                   "-o", self.scratch / name], capture_output=True, text=True, check=False)
            self.assertEqual(0, done.returncode, done.stderr)
            files.append((self.scratch / name).read_bytes())
        self.assertEqual(*files)
        kinds = {command.split()[0] for command in baseline.read(self.scratch / "one.tsv.xz")}
        self.assertLessEqual({"spec", "check", "lower", "show"}, kinds)


if __name__ == "__main__":
    unittest.main()
