"""Conditions over vectors that can be checked by eye; the oracle and the engine answer each.

Vectors are ways on the map: N is (0, 1), E is (1, 0), 3NE is (3, 3), and o stays where it is.
"""

import pyarrow as pa
import pytest

import slackwater as sw
from naive import cosine, dot, l2
from slackwater.joins.columns import VectorColumn

STEPS = {"N": (0, 1), "E": (1, 0), "S": (0, -1), "W": (-1, 0), "o": (0, 0)}
A, B = "N 4E o".split(), "N 3NE W 2S o 3N".split()


def vector(word):
    times = int(word[0]) if word[0].isdigit() else 1
    return [times * sum(way) for way in zip(*(STEPS[c] for c in word.strip("234")), strict=True)]


def by_oracle(where, holds):
    return [f"{a} {b}" for a in A for b in B if holds(vector(a), vector(b))]


def by_engine(where, holds):
    tables = {
        name: pa.table({"ts": [0] * len(words), "way": words, "v": [vector(w) for w in words]})
        for name, words in (("a", A), ("b", B))
    }
    streams = [sw.Stream(name, "ts", 0, vectors={"v": 2}) for name in "ab"]
    results = sw.join(*streams, where=where, goal=sw.NoSlack()).replay(tables).results
    ways = zip(results["a_way"].to_pylist(), results["b_way"].to_pylist(), strict=True)
    return [f"{a} {b}" for a, b in sorted(ways, key=lambda way: (A.index(way[0]), B.index(way[1])))]


@pytest.mark.parametrize("answer", [by_oracle, by_engine], ids=["oracle", "engine"])
@pytest.mark.parametrize(
    ("where", "holds", "expected"),
    [
        # the cosine is that of the angle, whatever the lengths: 45 degrees have 0.71
        ("cosine(a.v, b.v) > 0.7", lambda a, b: cosine(a, b) > 0.7,
         "N N, N 3NE, N 3N, 4E 3NE"),
        ("cosine(a.v, b.v) < 0", lambda a, b: cosine(a, b) < 0, "N 2S, 4E W"),
        # at right angles it is 0, and also where a vector is zero
        ("cosine(a.v, b.v) == 0", lambda a, b: cosine(a, b) == 0,
         "N W, N o, 4E N, 4E 2S, 4E o, 4E 3N, o N, o 3NE, o W, o 2S, o o, o 3N"),
        # the product grows with the lengths
        ("dot(a.v, b.v) >= 3", lambda a, b: dot(a, b) >= 3, "N 3NE, N 3N, 4E 3NE"),
        # from the end of one way to the end of the other; the last is Pythagoras' triangle
        ("l2(a.v, b.v) <= 1", lambda a, b: l2(a, b) <= 1, "N N, N o, o N, o W, o o"),
        ("l2(a.v, b.v) == 5", lambda a, b: l2(a, b) == 5, "4E W, 4E 3N"),
    ],
)  # fmt: skip
def test_vectors_meet(answer, where, holds, expected):
    assert answer(where, holds) == expected.split(", ")


def test_whole_numbers_that_a_float_cannot_hold_are_rounded():
    column = VectorColumn(stream=0, name="v", first=0, length=2)
    given = pa.array([[2**53 + 1, 3], [-(2**62) - 1, 0]], pa.list_(pa.int64()))
    assert column.values(given).tolist() == [[2.0**53, 3.0], [-(2.0**62), 0.0]]
