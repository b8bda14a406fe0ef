"""The numbers that name places in arrays of kernels: no two of a list are the same."""

import ast
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

import slackwater.kernels

FOLDER = Path(slackwater.kernels.__file__).parent


def numbered(path):
    """Lists of names in adjacent lines whose numbers begin with 0 and go up by 1."""
    given = [
        (node.lineno, node.targets[0].id, node.value.value)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and type(node.value.value) is int
    ]
    found = []
    for before, (line, name, number) in pairwise([(0, "", 0), *given]):
        if number == 0:
            found.append([name])
        elif (
            found
            and found[-1][-1] == before[1]
            and before[0] == line - 1
            and number == before[2] + 1
        ):
            found[-1].append(name)
    return [names for names in found if len(names) > 1]


LISTS = [(path.stem, names) for path in sorted(FOLDER.glob("*.py")) for names in numbered(path)]


@pytest.mark.parametrize(
    ("module", "names"), LISTS, ids=[f"{m}, {n[0]} to {n[-1]}" for m, n in LISTS]
)
def test_places_are_numbered_without_gaps(module, names):
    kernels = import_module(f"slackwater.kernels.{module}")
    assert [getattr(kernels, name) for name in names] == list(range(len(names)))


def test_the_lists_are_found():
    assert len(LISTS) > 20
    assert ("heartbeat", ["DONE", "NO_ROOM", "AT_BOUNDARY"]) in LISTS
