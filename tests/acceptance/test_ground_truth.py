"""Published numbers: every row of ground_truth.tsv is a query of a shipped spec whose exact answer somebody
else has published, or that follows from published shapes by arithmetic that its source column names."""

import csv
import pathlib
from fractions import Fraction

from etchtest import MODELS, Case, main, number, succeed

TABLE = pathlib.Path(__file__).with_name("ground_truth.tsv")
COLUMNS = ["id", "spec", "options", "query", "expected", "source"]


def rows():
    with TABLE.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, delimiter="\t")
        assert reader.fieldnames == COLUMNS, reader.fieldnames
        return list(reader)


class GroundTruth(Case):
    def test_rows(self):
        for row in rows():
            with self.subTest(row["id"]):
                seen = succeed("query", MODELS / row["spec"], row["query"], *row["options"].split()).out
                self.assertEqual(number(seen), Fraction(row["expected"]))

    def test_the_table_is_one(self):
        names = [row["id"] for row in rows()]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreater(len(names), 30)
        for row in rows():
            self.assertTrue(row["source"], row["id"])


if __name__ == "__main__":
    main()
