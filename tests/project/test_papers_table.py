"""docs/results/papers.md has a row for every figure and table of the papers, with real commands.

The lists of figures come from the papers' texts, in `shared/seeds` beside the checkout. They are
not part of the project, so that test is skipped where they are not there.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from slackwater_lab.catalogue import EXPERIMENTS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results" / "papers.md"
SEEDS = ROOT.parent / "shared" / "seeds"
# The titles of the papers, at the beginning of their texts, by the section of the page.
TITLES = {
    "ICDE16": "Quality-Driven Disorder Handling for M-way Sliding Window",
    "Thesis": "MASTER THESIS",
    "Kim": "Efficient Window Processing over Disordered Data Streams",
    "GrubJoin": "GRUBJOIN: An Adaptive, Multi-Way, Windowed Stream Join",
    "PECJ": "PECJ: Stream Window Join on Disorder Data Streams",
}
VERDICTS = {"reproduced", "better", "differs", "no claim", "not run"}
NUMBER = r"(?:\d+(?:\.\d+)?|[IVX]+)(?!\.?\d)(?=[a-d]?\b)"
NAMED = re.compile(  # not those of another document: "Table 3 in [49]"
    rf"\b(Fig|Table)(?:s|ure|ures)?\.?\s+({NUMBER}(?:[a-d]?,\s{NUMBER})*)(?![a-d]? in \[)", re.I
)


class Row(NamedTuple):
    """A row of the page."""

    paper: str
    what: str
    theirs: str
    ours: str
    verdict: str
    reason: str
    command: str


def named(text: str) -> set[str]:
    """The figures and tables that a text names: `Fig. 6.1, 6.2` is two."""
    return {
        f"{kind.title()} {number}"
        for kind, numbers in NAMED.findall(text)
        for number in re.findall(NUMBER, numbers)
    }


def rows() -> list[Row]:
    """All rows of the page."""
    found, paper = [], ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            paper = line[3:]
        elif line.startswith("| ") and paper in TITLES and not re.match(r"\| (what|-+) \|", line):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            found.append(Row(paper, *cells))
    return found


def test_names_of_figures_are_found():
    text = "Fig. 3a and Figures 8(a), TABLE II. Fig. 6.1, 6.2: x, Table 6.3, Fig. 12 of 13, "
    text += "Figure 6.9b, Table 3 in [49]"
    wanted = ["Fig 12", "Fig 3", "Fig 6.1", "Fig 6.2", "Fig 6.9", "Fig 8", "Table 6.3", "Table II"]
    assert sorted(named(text)) == wanted


@pytest.mark.parametrize("paper", TITLES)
def test_every_figure_and_table_has_a_row(paper):
    if not SEEDS.is_dir():
        pytest.skip(f"the texts of the papers are not in {SEEDS.parent.name}/{SEEDS.name}")
    [text] = [t for t in map(Path.read_text, SEEDS.glob("*.txt")) if TITLES[paper] in t[:1000]]
    printed = named(text)
    assert len(printed) >= 4
    assert not printed - named(" ".join(row.what for row in rows() if row.paper == paper))


def test_every_row_is_judged_and_no_difference_is_without_a_tested_reason():
    assert {row.paper for row in rows()} == set(TITLES)
    assert not {row.verdict for row in rows()} - VERDICTS
    for row in rows():
        assert row.verdict in ("reproduced", "no claim") or row.reason, row
        assert row.verdict in ("no claim", "not run") or (row.ours and row.command), row


def test_every_command_is_an_experiment_or_a_test():
    folder = ROOT / "tests"
    tests = {path.relative_to(ROOT).as_posix(): path.read_text() for path in folder.rglob("*.py")}
    for row in rows():
        names = re.findall(r"`([^`]+)`", row.command)
        files = [name for name in names if name.endswith(".py")]
        meant = [tests[name] for name in files] or list(tests.values())
        for name in set(names) - set(files) - set(EXPERIMENTS):
            wanted = f"def {name}(" if name.startswith("test_") else name
            assert any(wanted in text for text in meant), row
