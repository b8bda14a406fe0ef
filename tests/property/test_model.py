"""The models of recall and late degrees, and the profiler, against a literal reading."""

from math import ceil, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import engine_query
from naive import Tuples, join, reorder, seen
from property.strategies import cases, tried
from slackwater.controllers.late_degree import behind, quality, quality_curve
from slackwater.kernels import recall as kernels
from slackwater.kernels.cross import CROSSED, JOINED
from slackwater.stats.productivity import Productivity

BUCKETS = 8
HISTOGRAMS = st.lists(st.integers(0, 9), min_size=BUCKETS, max_size=BUCKETS).filter(any)


@st.composite
def models(draw):
    """(delay histograms, leads in buckets, windows in units, g, b in steps of g)."""
    m = draw(st.integers(2, 4))
    several = {"min_size": m, "max_size": m}
    return (
        draw(st.lists(HISTOGRAMS, **several)),
        draw(st.lists(st.integers(0, 4), **several)),
        draw(st.lists(st.integers(1, 40), **several)),
        draw(st.integers(1, 7)),
        draw(st.sampled_from([1, 1, 2, 3, 40])),
    )


def literal(k, histograms, leads, windows, g, basic):
    """Eq. (2), (3) and (5) of ICDE16, for K = k g; |w| by rate."""
    b, m = basic * g, len(histograms)

    def f(i, d):  # Eq. (2)
        share = [n / sum(histograms[i]) for n in histograms[i]]
        shift = k + leads[i]
        return sum(share[: shift + 1]) if d == 0 else sum(share[d + shift : d + shift + 1])

    def basic_window(i, which, n):  # Eq. (3)
        length = b if which < n else windows[i] - (n - 1) * b
        return length * sum(f(i, d) for d in range((which - 1) * b // g + 1))

    def window(i):
        n = ceil(windows[i] / b)
        return sum(basic_window(i, which, n) for which in range(1, n + 1))

    others = [[j for j in range(m) if j != i] for i in range(m)]
    produced = sum(f(i, 0) * prod(window(j) for j in others[i]) for i in range(m))
    return produced / sum(prod(windows[j] for j in others[i]) for i in range(m))  # Eq. (5)


def compiled(histograms, leads, windows, g, basic):
    """The arguments of the kernels."""
    m = len(histograms)
    share, fill = np.zeros((m, BUCKETS)), np.zeros((m, BUCKETS + 1))
    kernels.running_sums(np.array(histograms), share, fill)
    return np.array(leads), np.array(windows) / g, basic, share, fill


@tried(0.1)
@given(models(), st.integers(0, BUCKETS))
def test_recall_is_that_of_the_formulas(model, k):
    assert kernels.recall_at(k, *compiled(*model)) == pytest.approx(literal(k, *model))


@tried(0.25)
@given(models(), st.floats(0, 1.01))
def test_bisection_finds_what_a_scan_finds(model, wanted):
    args = compiled(*model)
    curve = np.zeros(BUCKETS)
    kernels.recall_curve(*args, curve)
    found = kernels.smallest_slack(wanted, BUCKETS - 1, *args)
    assert found == BUCKETS - 1 or curve[found] >= wanted
    assert all(curve[:found] < wanted + 1e-12)  # the curve may fall by rounding
    assert all(np.diff(curve) > -1e-12)


@tried(0.25)
@given(models(), st.lists(st.sampled_from([0.0, 0.5, 0.9, 1.0, 1.3]), min_size=8, max_size=8),
       st.floats(-0.1, 1.3))  # fmt: skip
def test_a_corrected_recall_is_searched_as_by_a_scan(model, ratio, wanted):
    args, ratio = compiled(*model), np.array(ratio)
    curve = np.zeros(BUCKETS)
    kernels.recall_curve(*args, curve)
    found = kernels.smallest_corrected(wanted, BUCKETS - 1, ratio, *args)
    enough = np.flatnonzero(curve * ratio >= wanted - 1e-12)  # the curve may fall by rounding
    assert found >= (enough[0] if len(enough) else BUCKETS - 1)
    enough = np.flatnonzero(curve * ratio >= wanted + 1e-12)
    assert found <= (enough[0] if len(enough) else BUCKETS - 1)


@tried(0.25)
@given(
    st.tuples(HISTOGRAMS, HISTOGRAMS),
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_all_qualities_at_once_are_those_one_by_one(records, windows, leads):
    late = [np.array(record) / sum(record) for record in records]
    one_by_one = [
        quality(behind(late[0], k + leads[0]), behind(late[1], k + leads[1]), *windows)
        for k in range(BUCKETS)
    ]
    assert quality_curve(tuple(late), windows, leads, BUCKETS - 1) == pytest.approx(one_by_one)


@tried(0.1)
@given(cases(windows="mixed"), st.integers(1, 9))
def test_the_profiler_counts_what_events_meet_and_make(case, size):
    ties = any(isinstance(w, Tuples) for w in case.windows)
    order = [e for left, *_ in reorder(case.valid, hold_ties=ties, **case.disorder) for e in left]
    results, late = join(order, *case.query)
    late = {e for e, _ in late}
    made = [sum(max(r, key=order.index) == e for r in results) for e in order]
    profiler = Productivity(engine_query(case), every=5, granularity=1)
    columns = (
        [e.stream for e in order],
        [e.ts for e in order],
        [e.arrival for e in order],  # each a delay of its own, so that the map tells them apart
        made,
        [e in late for e in order],
    )
    for begin in range(0, len(order), size):
        chunk = (np.array(column[begin : begin + size], np.int64) for column in columns)
        profiler.join(*chunk)
        again = Productivity(engine_query(case), every=5, granularity=1)
        again.resume(profiler.state())
        profiler = again
    met = {e: _met(case, order[: n + 1]) for n, e in enumerate(order) if e not in late}
    most = max(met.values(), default=0), max((made[order.index(e)] for e in met), default=0)
    lost = profiler.close()
    if most[CROSSED] == 0:
        return
    for n, e in enumerate(order):
        assert profiler.crossed[e.arrival] == met.get(e, most[CROSSED])
        assert profiler.joined[e.arrival] == (most[JOINED] if e in late else made[n])
    assert sum(lost.values()) == len(late) * most[JOINED]


def _met(case, past):
    """How many combinations the last of `past` meets in the other windows."""
    windows, _, *rule = case.query
    now = past[-1]
    return prod(
        len(seen(sorted(e for e in past if e.stream == j), w, now.ts, *rule))
        for j, w in enumerate(windows)
        if j != now.stream
    )


@given(
    st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=1, max_size=40),
    st.integers(1, 4),
    st.integers(1, 5),
)
def test_deviations_of_periods_are_those_of_their_blocks(bins, block, in_period):
    lost, expected, extra = (np.array(row, np.float64) for row in zip(*bins, strict=True))
    true = lost + extra
    n = len(bins) // block
    sums = [
        r[len(bins) - n * block :].reshape(n, block).sum(axis=1) for r in (lost, expected, true)
    ]
    shares, squares = [], []
    for begin in range(n - min(n, in_period) + 1):
        a, e, t = (row[begin : begin + min(n, in_period)] for row in sums)
        if t.sum() > 0:
            shares.append(e.sum() / t.sum())
            squares.append(((a - e) ** 2).sum() / t.sum() ** 2 * min(n, in_period) / in_period)
    found = kernels.deviations(lost, expected, true, block, in_period)
    wanted = (np.mean(shares), np.mean(squares)) if shares else (0.0, 0.0)
    assert found == pytest.approx(wanted)
