"""The report of tools/mutants.py on its samples; `make mutants` shows that it finds mutants."""

import pytest

from mutants import chosen, drawn, groups_of, interval, table
from mutations import GROUPS, PACKAGES, SOURCE, UNREAD, Mutant, annotated, files, statement


def mutants(group, n):
    return [Mutant(group, "src/x.py", line, "AddNot", line) for line in range(n)]


def test_a_larger_sample_begins_with_the_smaller_one():
    everything = mutants("joins", 50)
    assert drawn(everything, 20, seed=1)[:5] == drawn(everything, 5, seed=1)
    assert drawn(everything, 5, seed=1) != drawn(everything, 5, seed=2)
    assert sorted(drawn(everything, 99, seed=1), key=lambda m: m.line) == everything


def test_a_sample_is_of_the_engine_or_of_each_group():
    groups = [mutants("joins", 90), mutants("events", 10)]
    assert chosen(groups, 20, seed=1, each=False) == drawn(groups[0] + groups[1], 20, seed=1)
    each = chosen(groups, 20, seed=1, each=True)
    assert [mutant.group for mutant in each] == ["joins", "events"] * 10 + ["joins"] * 10


def test_a_sample_can_be_of_some_packages():
    assert groups_of(["windows"]) == ["windows", "windows, kernels"]
    assert groups_of(list(PACKAGES)) == list(GROUPS)
    with pytest.raises(SystemExit, match="no package window; there are compensation, controllers"):
        groups_of(["window"])


def test_every_file_of_the_engine_is_in_one_group():
    grouped = sorted(path for group in GROUPS for path in files(group))
    found = {path for package in PACKAGES for path in (SOURCE / package).glob("*.py")}
    unread = {SOURCE / f"{name}.py" for name in UNREAD}
    assert unread <= found
    assert grouped == sorted(found - unread - {SOURCE / "kernels/__init__.py"})


def test_wilsons_interval():
    assert interval(0.5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert interval(1.0, 20) == pytest.approx((0.8389, 1.0), abs=1e-4)


def test_a_row_counts_what_became_of_each():
    ends = ["killed"] * 6 + ["timed out"] * 2 + ["survived", "not run"]
    outcomes = dict(zip(mutants("joins", 10), ends, strict=True))
    *_, row, together = table({"joins": 700, "goals": 600}, outcomes)
    assert row == "| joins | 700 | 10 | 6 | 2 | 2 | 80.0% | 49.0% to 94.3% |"
    assert together == row.replace("joins | 700", "all | 1300")


def test_annotations_are_found():
    assert annotated("def f(x: int | None) -> int: ...") == [((1, 24), (1, 27)), ((1, 9), (1, 19))]


def test_a_statement_on_several_lines_has_them_all_but_its_body():
    source = ["def f(", "    a,", "):", "    if (", "        a", "        or b", "    ):"]
    source += ["        c = (", "            1", "        )"]
    found = [statement("\n".join(source), line) for line in range(1, 11)]
    assert found == [range(1, 4)] * 3 + [range(4, 8)] * 4 + [range(8, 11)] * 3
