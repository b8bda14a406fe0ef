"""Conditions over vectors against the oracle: each function, each type of list, lists that are bad.

The other properties have vectors among their conditions too; theirs are all good.
"""

from collections import Counter
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from helpers import NAMES, fed, members
from naive import Event, cosine, dot, l2, truth
from property.strategies import tried
from slackwater.engine.replay import recorded

WINDOW = 20
SLACK = 10  # no delay is longer


class Condition(NamedTuple):
    """A condition over vectors v: as text, and as a function of them.

    Beside v, which may be bad, an event has w, which is 1 followed by v, and the largest component.
    """

    text: str
    holds: object
    length: int
    types: tuple  # of the lists of each stream


DOUBLES, FLOATS, BYTES = pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.int8())

CONDITIONS = [  # few, so that each is compiled once
    Condition("dot(a.v, b.v) > 1", lambda a, b: dot(a, b) > 1, 3, (DOUBLES, FLOATS)),
    Condition("cosine(a.v, b.v) > 0.65", lambda a, b: cosine(a, b) > 0.65, 2,
              (FLOATS, pa.list_(pa.float32(), 2))),
    Condition("l2(a.v, b.v) <= 2", lambda a, b: l2(a, b) <= 2, 4,
              (BYTES, pa.list_(pa.int64(), 4))),
    Condition("cosine(a.v, b.v) < 0.15 or b.v_max > l2(a.v, b.v)",
              lambda a, b: cosine(a, b) < 0.15 or max(b) > l2(a, b), 1, (DOUBLES, BYTES)),
    Condition("cosine(a.v, b.v) > 0.65 and cosine(b.v, c.v) > 0.65",
              lambda a, b, c: cosine(a, b) > 0.65 and cosine(b, c) > 0.65, 2,
              (FLOATS, DOUBLES, pa.list_(pa.float16(), 2))),
    Condition("dot(a.v, b.v) + dot(b.v, c.v) > dot(a.v, c.v)",
              lambda a, b, c: dot(a, b) + dot(b, c) > dot(a, c), 3, (BYTES, FLOATS, DOUBLES)),
    # those that meet lie at different places of their rows
    Condition("cosine(a.v, a.v) > 0 and cosine(a.w, b.w) > 0.9 and dot(a.v, b.v) > 0",
              lambda a, b: any(a) and cosine([1, *a], [1, *b]) > 0.9 and dot(a, b) > 0, 2,
              (DOUBLES, BYTES)),
]  # fmt: skip


@st.composite
def cases(draw):
    """A condition, and events whose vectors may be null, hold a null or have another length."""
    condition = draw(st.sampled_from(CONDITIONS))
    m, n = len(condition.types), condition.length
    component = st.integers(-2, 2)
    good = st.lists(component, min_size=n, max_size=n)
    with_null = st.lists(st.none() | component, min_size=n, max_size=n)
    other = st.lists(st.none() | component, max_size=n + 1)
    clock, events = 0, []
    for number in range(draw(st.integers(0, 14))):
        stream = draw(st.integers(0, m - 1))
        is_fixed = pa.types.is_fixed_size_list(condition.types[stream])
        bad = with_null if is_fixed else with_null | other
        clock += draw(st.integers(0, 4))
        delay = draw(st.integers(0, SLACK))
        vector = draw(st.one_of(good, good, good, bad, st.none()))
        events.append(Event(max(0, clock - delay), stream, number, vector))
    return condition, events


def reason(event, condition):
    """Why it is rejected, if it is."""
    if event.values is None or None in event.values:
        return "null in where"
    return "bad vector" if len(event.values) != condition.length else None


def tables(condition, events):
    found = {}
    for s, kind in enumerate(condition.types):
        own = [e for e in events if e.stream == s]
        good = [e.values if reason(e, condition) is None else [0] * condition.length for e in own]
        wider = pa.list_(pa.float64(), condition.length + 1)
        columns = {
            "ts": pa.array([e.ts for e in own], pa.int64()),
            "id": pa.array([e.arrival for e in own], pa.int64()),
            "v": pa.array([e.values for e in own], kind),
            "w": pa.array([[1, *v] for v in good], wider),
            "v_max": pa.array([max(v) for v in good], pa.int64()),
        }
        found[NAMES[s]] = pa.table(columns)
    return found


@pytest.mark.differential
@pytest.mark.determinism
@tried(0.5)
@given(cases(), st.lists(st.integers(1, 6), min_size=1, max_size=4), st.booleans())
def test_any_cut_and_restart_gives_the_true_results_and_the_reasons_of_the_rest(
    case, sizes, restart
):
    condition, events = case
    streams = [
        sw.Stream(name, "ts", WINDOW, vectors={"v": condition.length})
        for name in NAMES[: len(condition.types)]
    ]
    query = sw.join(*streams, where=condition.text, goal=sw.Slack(SLACK))
    batch, _ = recorded(query, tables(condition, events), "id")
    whole = fed(query, batch)
    assert fed(query, batch, sizes, restart) == whole
    valid = [e for e in events if reason(e, condition) is None]
    true = truth(valid, [WINDOW] * len(streams), lambda *r: condition.holds(*(e.values for e in r)))
    expected = sorted((max(r).ts, tuple(e.arrival for e in r)) for r in true)
    table, *_, metrics = whole
    assert sorted(members(table, len(streams))) == expected
    reasons = Counter(reason(e, condition) for e in events if e not in valid)
    assert metrics.rejected == dict(reasons)
    assert metrics.is_balanced
