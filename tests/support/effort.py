"""How much a random test tries, and from which seed: ETCH_TEST_MULT multiplies the usual number (40, or 1/4
for a part of it), ETCH_TEST_SEED chooses other ones."""
import fractions
import math
import os

MULT = fractions.Fraction(os.environ.get("ETCH_TEST_MULT", "1"))
NIGHTLY = MULT > 1


def effort(usual):
    """How many of `usual` tries to make: of a part the next whole number."""
    return math.ceil(usual * MULT)


def first_seed(usual):
    return int(os.environ.get("ETCH_TEST_SEED", usual))
