"""`between=` against all pairs of two streams: results, losses, lateness, and the curve of K."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from property.strategies import tried
from slackwater.jobs.advise import Advisor
from slackwater.testing.oracle import exact

pytestmark = pytest.mark.differential

EVENTS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(0, 2)), min_size=2, max_size=24
)  # stream, time, key; in arrival order
ENDS = st.tuples(st.integers(-12, 12), st.integers(-12, 12)).map(sorted).map(tuple)
OPTIONS = {"retention": 200, "late": "emit"}


def tables(events):
    rows = [[], []]
    for arrival, (s, ts, k) in enumerate(events):
        rows[s].append({"ts": ts, "k": k, "n": arrival})
    schema = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("n", pa.int64())])
    return {name: pa.Table.from_pylist(own, schema) for name, own in zip("ab", rows, strict=True)}


def query(ends, **options):
    return sw.join(sw.Stream("a", "ts"), sw.Stream("b", "ts"), on="k", between=ends, **options)


def pairs(events, ends):
    """All true pairs by the arrivals of their members, with what they are late by."""
    local, clock = [None, None], []
    for s, ts, _ in events:
        local[s] = ts if local[s] is None else max(local[s], ts)
        clock.append(None if None in local else min(local))
    found = {}
    for i, (s, ts, k) in enumerate(events):
        for j, (other, ts2, k2) in enumerate(events):
            if (s, other) == (0, 1) and k == k2 and ends[0] <= ts2 - ts <= ends[1]:
                last, t = max(i, j), max(ts, ts2)
                behind = clock[last] - t + (events[last][1] < t)
                found[i, j] = max(0, behind)
    return found


def members(table, late):
    rows = table.to_pylist()
    return sorted((row["a_n"], row["b_n"]) for row in rows if row["late"] == late)


@tried(0.5)
@given(EVENTS, ENDS, st.integers(0, 20))
def test_a_pair_is_true_iff_its_times_are_so_far_apart(events, ends, slack):
    true = pairs(events, ends)
    run = query(ends, goal=sw.Slack(slack), **OPTIONS).replay(tables(events), arrival="n")
    in_time = sorted(pair for pair, late_by in true.items() if late_by <= slack)
    assert members(run.results, late=False) == in_time
    assert members(run.results, late=True) == sorted(set(true) - set(in_time))
    assert run.metrics.lost == len(true) - len(in_time)
    counted = query(ends, goal=sw.Slack(slack), select="count", retention=200)
    counted = counted.replay(tables(events), arrival="n")
    assert counted.metrics.produced == len(in_time)
    assert counted.metrics.lost == run.metrics.lost


@tried(0.1)
@given(EVENTS, ENDS, st.integers(0, 20))
def test_oracle_and_curve_know_intervals_too(events, ends, slack):
    true = pairs(events, ends)
    asked = query(ends, goal=sw.Slack(slack))
    assert exact(asked, tables(events)).table.num_rows == len(true)
    again = sw.sql(str(asked))
    assert again.lengths == asked.lengths and again.gap == asked.gap
    if true:
        try:
            advisor = Advisor(asked, tables(events), "n", over=1)
        except sw.DataError:
            return  # too short for a period
        produced = sum(late_by <= slack for late_by in true.values())
        assert advisor.true == len(true)
        assert advisor.curve.recall(slack) == pytest.approx(produced / len(true))
