"""Published numbers: every row of validation.tsv is a query of a shipped spec whose answer somebody else has
published or measured, or that follows from published shapes by arithmetic that its source column names. The
page docs/validation.md is what they give; UPDATE=1 writes it anew."""

import concurrent.futures
import csv
import os
import pathlib
import unittest
from decimal import Decimal
from fractions import Fraction

from etchtest import MODELS, SOURCE, Case, main, number, succeed

TABLE = pathlib.Path(__file__).with_name("validation.tsv")
PAGE = SOURCE / "docs" / "validation.md"
COLUMNS = ["section", "id", "spec", "options", "query", "published", "allowed", "beside", "source"]

BEGIN = """# What is reproduced

Numbers that others have published or measured, and what etch says. A test runs every command of this page and
writes the page from what it sees (`UPDATE=1 ctest --preset release -R acceptance.validation`): the rows are
in `tests/acceptance/validation.tsv`, the specs in `models/`, and in `models/published/` where a setting is
that of a paper alone.

A difference is relative to the published number. `exact`: the two are the same number. `rounds`: ours, to as
many digits as were published, is the published one. `open`: they differ, and the difference is not explained.
"""

SECTIONS = {
    "params": ("Parameters", """
Elements of the distinct tensors of a checkpoint: what is stored twice counts once.
"""),
    "active": ("Parameters that one token uses", """
`active_params(model)`: of the experts of a layer as many as a token is sent to; embeddings, router and norms
count.
"""),
    "work": ("Work", """
FLOP, a multiply-add is 2. Conventions differ (`etch help counts`): each command says which one.
"""),
    "memory": ("Memory", """
Of one rank.
"""),
    "comm": ("Communication", """
Payload of collectives, and what it takes at a bandwidth that the source gives.
"""),
    "measured": ("Measured communication", """
What one GPU of a cluster sent in a step of NeMo, in 10^6 elements, beside what STAGE synthesises for it
(arXiv 2511.10480, table VII). The paper names models, GPUs and batches; lengths, vocabularies and the numbers
of microbatches here are those with which the measured cells of a row agree, so that a row shows that the
collectives are the same ones, and does not predict. The specs compute in numbers of four bytes, so that bytes
count elements. What data parallelism reduces is in none of the paper's columns.
"""),
    "rates": ("Rates", """
From times that others measured; the work is ours.
"""),
}

END = """
## Not among these

- Cycles of systolic arrays as SCALE-Sim counts them, and measured times: [time.md](time.md) says how far
  estimates are from measured ones.
- Rates that hold only measured numbers, such as the aggregate of arXiv 2104.04473 (GPUs times what one of
  them reaches).
- The most loaded rank of a case of Megatron's tests (3,195 bytes of weights and optimizer under expert tensor
  parallelism): it is that of an average stage, which no rank has.
"""


def rows():
    with TABLE.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, delimiter="\t")
        assert reader.fieldnames == COLUMNS, reader.fieldnames
        return list(reader)


def arguments(row):
    return ["query", f"models/{row['spec']}", row["query"], *row["options"].split()]


def answer(row):
    name, _, query, *rest = arguments(row)
    return Fraction(number(succeed(name, MODELS / row["spec"], query, *rest).out))


def digits(text):
    """Behind the point of a published number."""
    return len(text.partition(".")[2])


def rounds_to(seen, published):
    return abs(seen - Fraction(published)) <= Fraction(1, 2 * 10 ** digits(published))


def shown(seen, row):
    """A number with two digits more than were published, if it has any."""
    if seen.denominator == 1 and row["allowed"] == "exact":
        return str(seen.numerator)
    places = 9 if row["allowed"] == "exact" else digits(row["published"]) + 2
    scaled = round(seen * 10 ** places)
    text = str(Decimal(scaled).scaleb(-places))
    return text.rstrip("0").rstrip(".") if row["allowed"] == "exact" else text


def difference(seen, row):
    if seen == Fraction(row["published"]):
        return "exact"
    part = (seen - Fraction(row["published"])) / Fraction(row["published"]) * 100
    said = f"{'+' if part > 0 else '-'}{float(abs(part)):.2g} %"
    return f"{said}, {'rounds' if row['allowed'] == 'rounded' else 'open'}"


def command(row):
    name, spec, query, *rest = arguments(row)
    return " ".join(["etch", name, spec, f"'{query}'", *rest])


def page(seen):
    ends = [difference(value, row).rpartition(", ")[2] for row, value in seen]
    exact, rounded, apart = (ends.count(end) for end in ("exact", "rounds", "open"))
    text = [BEGIN, f"\nOf {len(ends)} numbers {exact} are exact, {rounded} round to what was published, "
            f"{apart} are open.\n"]
    for section, (title, words) in SECTIONS.items():
        here = [(row, value) for row, value in seen if row["section"] == section]
        beside = any(row["beside"] for row, _ in here)
        head = ["what", "published", *(["STAGE"] if beside else []), "etch", "difference", "from", "command"]
        text.append(f"\n## {title}\n{words}\n| {' | '.join(head)} |\n|{'---|' * len(head)}\n")
        for row, value in here:
            cells = [row["id"], row["published"], *([row["beside"]] if beside else []), shown(value, row),
                     difference(value, row), row["source"], f"`{command(row)}`"]
            text.append(f"| {' | '.join(cells)} |\n")
    return "".join([*text, END])


class Validation(Case):
    @classmethod
    def setUpClass(cls):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            cls.seen = list(zip(rows(), pool.map(answer, rows())))

    def test_rows(self):
        for row, seen in self.seen:
            with self.subTest(row["id"]):
                if row["allowed"] == "exact":
                    self.assertEqual(seen, Fraction(row["published"]))
                elif row["allowed"] == "rounded":
                    self.assertTrue(rounds_to(seen, row["published"]), f"{float(seen)} {row['published']}")
                else:  # a cell that agrees is open no more
                    self.assertFalse(rounds_to(seen, row["published"]), row["published"])

    def test_the_table_is_one(self):
        names = [row["id"] for row in rows()]
        self.assertEqual(len(names), len(set(names)))
        for row in rows():
            self.assertTrue(row["source"], row["id"])
            self.assertIn(row["section"], SECTIONS)
            self.assertIn(row["allowed"], ("exact", "rounded", "open"))
            self.assertNotIn("|", "".join(row.values()))
        used = {row["spec"] for row in rows()}
        specs = {f"published/{path.name}" for path in (MODELS / "published").glob("*.etch")}
        self.assertEqual(specs - used, set())

    def test_specs(self):
        for path in sorted((MODELS / "published").glob("*.etch")):
            succeed("check", path)

    def test_page(self):
        text = page(self.seen)
        if os.environ.get("UPDATE") == "1":
            PAGE.write_text(text, encoding="utf-8")
        self.assertEqual(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "", text)


class Rounding(unittest.TestCase):
    """The checks of this file can fail."""

    def test_halves(self):
        for seen, published, fits in (("1075.126", "1075.1", True), ("1075.16", "1075.1", False),
                                      ("119.996", "120.00", True), ("119.99", "120.00", False)):
            self.assertEqual(rounds_to(Fraction(seen), published), fits, seen)

    def test_differences(self):
        row = {"published": "200", "allowed": "open"}
        self.assertEqual(difference(Fraction(201), row), "+0.5 %, open")
        self.assertEqual(difference(Fraction(199), row), "-0.5 %, open")
        self.assertEqual(difference(Fraction(200), row), "exact")


if __name__ == "__main__":
    main()
