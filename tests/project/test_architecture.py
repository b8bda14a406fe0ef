"""The map of the code is true: contracts, picture and page have every package."""

import re
from itertools import pairwise

import pytest

import architecture_picture as picture

ROOT = picture.ROOT
CONTRACTS = picture.contracts((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LAYERED = [name for layer in CONTRACTS.layers for name in layer]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MAY_IMPORT_SPARK = {"cli", "jobs", "lab", "spark"}


def test_every_package_is_in_the_contracts_once():
    assert sorted(LAYERED) == sorted({*picture.packages(), "lab"})


def test_every_package_must_do_without_spark_or_is_known_to_need_it():
    assert CONTRACTS.without_spark | MAY_IMPORT_SPARK == set(LAYERED)
    assert not CONTRACTS.without_spark & MAY_IMPORT_SPARK


def test_the_picture_is_current():
    assert picture.PICTURE.read_text(encoding="utf-8") == picture.current(), (
        "docs/images/architecture.svg is old: run .venv/bin/python tools/architecture_picture.py"
    )


def test_every_package_is_on_the_picture_and_none_covers_another():
    drawn = picture.PICTURE.read_text(encoding="utf-8")
    assert sorted(re.findall(r'<text x="[^"]*" y="[^"]*">(\w+)</text>', drawn)) == sorted(LAYERED)
    boxes = picture.placed(CONTRACTS.layers)
    for layer in CONTRACTS.layers:
        row = [boxes[name] for name in layer]
        assert all(a.x + a.width < b.x or a.y + picture.HEIGHT < b.y for a, b in pairwise(row))


@pytest.mark.parametrize("name", LAYERED)
def test_the_page_describes_every_package(name):
    match = re.search(rf"^### {name}\n\n(?P<words>.+?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert match, f"docs/architecture.md has no heading {name}"
    assert match["words"].endswith(".")


def test_the_page_describes_no_package_that_is_gone():
    assert sorted(re.findall(r"^### (\w+)$", PAGE, re.MULTILINE)) == sorted(LAYERED)


def test_exceptions_of_the_contract_are_arrows():
    drawn = picture.drawn(
        picture.Contracts((("a",), ("b", "c"), ("d",)), (("d", "a"), ("a", "b")), frozenset("ab"))
    )
    assert drawn.count('class="up"') == 2  # one that points up, and its mark in the legend
    assert drawn.count('class="down"') == 2
