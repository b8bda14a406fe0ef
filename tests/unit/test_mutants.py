"""The report of tools/mutants.py on its samples; `make mutants` shows that it finds mutants."""

import pytest

from mutants import drawn, interval, table
from mutations import Mutant, annotated


def mutants(group, n):
    return [Mutant(group, "src/x.py", line, "AddNot", line) for line in range(n)]


def test_a_larger_sample_begins_with_the_smaller_one():
    everything = mutants("joins", 50)
    assert drawn(everything, 20, seed=1)[:5] == drawn(everything, 5, seed=1)
    assert drawn(everything, 5, seed=1) != drawn(everything, 5, seed=2)
    assert sorted(drawn(everything, 99, seed=1), key=lambda m: m.line) == everything


def test_wilsons_interval():
    assert interval(0.5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert interval(1.0, 20) == pytest.approx((0.8389, 1.0), abs=1e-4)


def test_a_row_counts_what_became_of_each():
    ends = ["killed"] * 6 + ["timed out"] * 2 + ["survived", "not run"]
    outcomes = dict(zip(mutants("joins", 10), ends, strict=True))
    *_, row = table({"joins": 700, "goals": 600}, outcomes)
    assert row == "| joins | 700 | 10 | 6 | 2 | 2 | 80.0% | 49.0% to 94.3% |"


def test_annotations_are_found():
    assert annotated("def f(x: int | None) -> int: ...") == [((1, 24), (1, 27)), ((1, 9), (1, 19))]
