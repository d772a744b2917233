"""The limits of docs/limits.md: the values that the source has, what is accepted just below them and refused
just above, and expressions that would take minutes if a limit did not count their work."""

import re
import resource
import shutil
import subprocess

from effort import NIGHTLY
from etchtest import ETCH, LLAMA, SOURCE, Case, main, run
import limits

ROW = re.compile(r"^\| [^|]+\| `(?P<name>\w+)` \(`(?P<file>[^`]+)`\) \| (?P<value>[\d,]+) "
                 r"\| (?P<code>[^|]*)\|$", re.M)
DECLARED = re.compile(r"\b(\w*(?:_LIMIT|_DEPTH|MOST_\w+|MAX_\w+|LOOPS_NESTED|MODEL_\w+|SPEC_\w+|REQUEST_\w+))"
                      r"(?: =|\s+(?=\(?[\dU(]))\s*"
                      r"((?:\(size_t\)|UINT\d+_C|UINT32_MAX|U?INT64_MAX|[\d\s*()<+-])+)")

# What decides how something is done, and refuses nothing that a user wrote: budgets of proofs, sizes of
# tables, numbers of the trace format.
NO_LIMITS = {
    "CLI_LIMIT", "CLI_MAX_WORDS", "ETCH_KW_LIMIT", "ETCH_MAX_OPERANDS", "ETCH_MOST_PEERS",
    "ETCH_MOST_PARTS_BEFORE",
    "ETCH_MOST_ALONG", "ETCH_MOST_DIMENSIONS", "GCD_DEPTH", "HORNER_DEPTH", "MAX_ARGUMENTS",
    "MAX_COMPARED", "MAX_DEPTH", "MAX_FLAT_ARGUMENTS", "MAX_ITEMS", "MAX_PRODUCT", "MAX_ROUNDS", "MAX_SHOWN",
    "ETCH_SYM_MAX_VIEWS", "MOST_CHANGES", "MOST_SESSIONS", "MOST_OPEN_STEPS", "MOST_STEPS",
    "MAX_THREADS", "MOST_ALTERNATIVES", "MOST_AT_ONCE", "MOST_BITS", "MOST_BODIES",
    "MOST_CASES", "MOST_COVERING", "MOST_DIGITS", "MOST_DOUBLED", "MOST_EXPONENT", "MOST_FACTORS",
    "MOST_LIMBS", "MOST_MISTAKES", "MOST_MODULUS",
    "MOST_PACKED_ATOMS", "MOST_POWER", "MOST_PRODUCTS", "MOST_RECENT", "MOST_REFUSALS", "MOST_SPLIT",
    "MOST_SYMBOLS", "MOST_TERMS", "MOST_VALUES",
    "MOST_VARS", "MOST_WORK", "PROOF_DEPTH", "SPEND_DEPTH", "ETCH_SYM_MAX_NESTED", "GROUP_DEPTH",
    "MANIFEST_LIMIT", "MOST_TAG", "MOST_MODEL_CHUNKS", "MOST_MODULES", "ETCH_MOST_TAG",
    "MOST_CUT", "MOST_CUTS", "MOST_HOLES", "MOST_KINDS", "MOST_LEADS", "MOST_LOCALS", "MOST_PATTERNS",
    "MOST_EVENTS", "MOST_FLOWS", "MOST_PLACES", "MOST_SECOND_DIGITS", "MOST_SHAPES",
    "MOST_AXES", "MOST_FORMULAS", "MOST_INPUTS", "MOST_PACKED", "MOST_RUN", "MOST_SIZE", "MOST_SLOTS",
    "MOST_ROUNDS", "MAX_PIECES", "MOST_EACH", "MOST_SHIFT", "MOST_TICKS", "MOST_WALKED", "MOST_WALKS",
}


def formulas():
    """Names of the table whose limits all end with exit status 4, as its text says."""
    text = (SOURCE / "docs/limits.md").read_text(encoding="utf-8")
    return {match["name"] for match in ROW.finditer(text.split("## Formulas")[1].split("## Programs")[0])}


def rows():
    text = (SOURCE / "docs/limits.md").read_text(encoding="utf-8")
    return {match["name"]: match for match in ROW.finditer(text)}


def number(expression):
    """Of an expression of C."""
    expression = re.sub(r"\(size_t\)|UINT\d+_C", "", expression.replace("UINT32_MAX", str(2**32 - 1)))
    return eval(expression, {"__builtins__": {}})  # pylint: disable=eval-used


def constant(path, name):
    text = (SOURCE / path).read_text(encoding="utf-8")
    if name.islower():  # of the algebra, by default; of a session
        given = re.search(rf"\.{name} = limit_or\(given\.{name}, (\d+)", text)
    else:
        given = re.search(rf"\b{name}(?: =)? ((?:\(size_t\)|UINT\d+_C|\(|\d)"
                          r"(?:\(size_t\)|UINT\d+_C|[\d *()<+-])*)", text)
    if not given:
        raise AssertionError(f"{path} does not set {name}")
    return number(given[1].strip())


class Limits(Case):
    def outcome(self, limit, size):
        """The exit status, and the first code of the limit's severity; above, the message has to say which
        limit."""
        folder = self.scratch / "limits"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        limits.write(folder, limit.files(size))
        done = run(*limit.arguments(size), cwd=folder)
        self.assertTrue(size != limit.above or limit.says in done.err, done.err)
        return done.status, re.findall(limit.severity + r"\[(E\d+)\]", done.err)[:1]

    def test_table(self):
        for name, row in rows().items():
            self.assertEqual(int(row["value"].replace(",", "")), constant(row["file"], name), name)

    def test_all_are_listed(self):
        found = set()
        for path in (*sorted((SOURCE / "src").rglob("*.[ch]")), *sorted((SOURCE / "include").rglob("*.h"))):
            found |= {match[1] for match in DECLARED.finditer(path.read_text(encoding="utf-8"))}
        self.assertEqual(set(), found - NO_LIMITS - set(rows()))

    def test_just_below_and_above(self):
        for name, limit in (*limits.CASES.items(), *(("of " + also.code, also) for also in limits.ALSO)):
            if limit.nightly and not NIGHTLY:
                continue
            below = (limit.below_status, [limit.below_code] if limit.below_code else [])
            self.assertEqual(below, self.outcome(limit, limit.below), name)
            self.assertEqual((limit.status, [limit.code]), self.outcome(limit, limit.above), name)

    def test_counts_of_options(self):
        spec = self.scratch / "counted.etch"
        spec.write_text("etch 1\nparam a\n", encoding="utf-8")
        rows_of = ["sweep", spec, "--over", "a = 1, 2", "--select", "a", "--best", "a"]
        for option, most in (("--jobs", 1024), ("--top", 1000000)):
            self.assertEqual(0, run(*rows_of, option, str(most)).status, option)
            self.assertEqual(2, run(*rows_of, option, str(most + 1)).status, option)

    def test_rows(self):
        spec = self.scratch / "rows.etch"
        names = ", ".join(f"p{i}" for i in range(16))
        spec.write_text(f"etch 1\nparam a, b, {names}\n", encoding="utf-8")
        picture = self.scratch / "rows.svg"

        def plotted(*words):
            return run("sweep", spec, *words, "--plot", picture)

        def solved(*listed):
            named = [word for axis in (*listed, "a") for word in ("--for", axis)]
            return run("solve", spec, "a <= 10", *named)

        cases = {
            "front": lambda n: plotted("--over", f"a = range(1, {n})", "--select", "a", "--pareto", "a, -a"),
            "map": lambda n: plotted("--over", "a = 1", "--over", f"b = range(1, {n})", "--select", "a*b"),
            "names": lambda n: solved(*(f"p{i} = 1" for i in range(n - 1))),
        }
        for name, most, code in (("front", 1000, "E0661"), ("map", 2500, "E0661"), ("names", 15, "E0657")):
            self.assertEqual(0, cases[name](most).status, name)
            above = cases[name](most + 1)
            self.assertEqual((1, True), (above.status, code in above.err), name)

    def test_codes_and_statuses(self):
        for name, limit in limits.CASES.items():
            told = rows()[name]["code"]
            status = re.search(r"exit status (\d)", told)
            self.assertIn(limit.code, told, name)
            self.assertEqual(limit.severity == "warning", "a warning" in told, name)
            if limit.severity == "error":
                expected = int(status[1]) if status else 4 if name in formulas() else 1
                self.assertEqual(limit.status, expected, name)

    def test_every_row_has_inputs(self):
        self.assertEqual(set(rows()), set(limits.CASES) | set(limits.ELSEWHERE))
        self.assertEqual(set(), set(limits.CASES) & set(limits.ELSEWHERE))
        for name, test in limits.ELSEWHERE.items():
            path, function = test.split()
            self.assertTrue(re.search(rf"\b{function}\b", (SOURCE / path).read_text(encoding="utf-8")), name)

    def test_errors(self):
        """Of a file with more errors than are reported, the rest is not read."""
        for count in (20, 21, 40):
            spec = self.write("s.etch", "etch 1\n" + "param = 1\n" * count)
            self.assertEqual(min(count, 20), len(re.findall(r"error\[", run("check", spec).err)))


ADDRESS_SPACE = 512 << 20


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


class Memory(Case):
    """What asks for far too much is answered, or refused by a limit that its message names, in little memory:
    within a limit of the address space, unless a sanitizer needs more than any limit."""

    LARGE = {
        "params in a line": ("E0906", "words and signs", lambda: (
            "check", "etch 1\nparam " + ", ".join(f"p{i} >= 1" for i in range(2000000)) + "\n")),
        "files that are long together": ("E0906", "words and signs", lambda: (
            "check", 'etch 1\nimport "more.etch"\n' + limits.tokens(800000).replace("etch 1\n", ""),
            "etch 1\nparam b\ndim B = b\nmodule f(x[B]) -> x[B] {\n" + "x = x\n" * 200000 + "}\n")),
        "assumptions": ("E0906", "assumptions", lambda: (
            "check", "etch 1\nparam a, b\n" + "".join(f"assume a*{i + 2} >= b - {i * 3}\n"
                                                     for i in range(20000)))),
        "plans": ("E0906", "plans", lambda: ("check", limits.plans(20000))),
    }
    RUNS = {
        "millions of layers": ("E0911", "layers=2000000,pp=1,micro=1,batch=4", "lower", "-n"),
        "billions of layers": ("E0911", "layers=2147483648,pp=1,micro=1,batch=4", "lower", "-n"),
        "many stages and microbatches": ("E0911", "layers=2000,pp=2000,micro=2000,batch=8000", "lower", "-n"),
        "the same, shown": ("E0919", "layers=2000,pp=2000,micro=2000,batch=8000", "show", "--pipeline"),
    }

    def outcome(self, *arguments):
        """Exit status, result and messages."""
        done = subprocess.run([ETCH, *map(str, arguments)], preexec_fn=limit_memory if self.limited else None,
                              capture_output=True, text=True, check=False, cwd=self.scratch)
        return done.returncode, done.stdout, done.stderr

    def setUp(self):
        super().setUp()
        self.limited = subprocess.run([ETCH, "--version"], preexec_fn=limit_memory, capture_output=True,
                                      check=False).returncode == 0

    def test_specs(self):
        for name, (code, says, make) in self.LARGE.items():
            command, spec, *more = make()
            for text in more:
                self.write("more.etch", text)
            status, _, err = self.outcome(command, self.write("s.etch", spec))
            self.assertEqual((1, [code]), (status, re.findall(r"error\[(E\d+)\]", err)), (name, err[:300]))
            self.assertIn(says, err, name)

    def pipeline(self):
        spec = limits.TRAINED.format(mesh="[dp, pp]", more="; stage layer @ pp")
        return self.write("s.etch", spec)

    def test_runs(self):
        spec = self.pipeline()
        for name, (code, values, command, option) in self.RUNS.items():
            status, _, err = self.outcome(command, spec, option, "--set", f"{values},hidden=4,dp=1")
            self.assertEqual((4, [code]), (status, re.findall(r"error\[(E\d+)\]", err)), (name, err[:300]))

    def test_memory_of_many_stages(self):
        """Of each stage only what it says is kept. The first has as many microbatches under way as there are
        stages."""
        values = "layers=2000,pp=2000,micro=2000,batch=8000,hidden=4,dp=1"
        status, out, err = self.outcome("query", LLAMA, "memory(peak)", "--config", "llama3_8b", "--plan",
                                        "megatron_pp", "--set", "layers=2000,dp=1,tp=1,pp=2000,batch=2000,"
                                        "micro=2000,seq=128")
        self.assertEqual((0, True), (status, int(out) > 0), err)
        few, many = (self.outcome("query", self.pipeline(), "memory(activations)", "--stage", "first",
                                  "--set", values.replace("2000", count).replace("8000", f"{4 * int(count)}"))
                     for count in ("20", "2000"))
        self.assertEqual((0, 0, 100 * int(few[1])), (few[0], many[0], int(many[1])))


class Expressions(Case):
    """Every expression is answered, or refused by a limit that its message names."""

    def test_ends(self):
        sizes = (4, 40) if not NIGHTLY else (4, 7, 10, 14, 20, 30, 40, 60, 80, 100)
        for name, make in limits.EXPRESSIONS.items():
            for size in sizes:
                definitions, expression = make(size)
                names = ", ".join(["a", "b", *(f"v{i}" for i in range(size))])
                spec = self.write("s.etch", f"etch 1\nparam {names}\n{definitions}")
                for more in ((), ("--form", "factored"), ("--diff", "a"))[:1 if size > 12 else 3]:
                    done = run("query", spec, expression, *more)
                    self.assertIn(done.status, (0, 4), (name, size, more, done.err))
                    self.assertEqual(done.status == 4,
                                     "error[E0904]: a formula is too large: the limit of" in done.err,
                                     (name, size, more, done.err))


main()
