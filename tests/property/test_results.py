"""Results by result time: bins against a dictionary, however far apart the times are."""

from collections import Counter
from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.stats.results import LOST, PRODUCED, Results

EVERY, KEEP = 10, 6
GAPS = st.one_of(st.integers(0, 30), st.integers(0, 200), st.just(10**12))
STEPS = st.lists(
    st.tuples(
        st.lists(st.tuples(GAPS, st.integers(0, 9)), max_size=6),  # what is produced: gap, results
        st.lists(st.tuples(st.integers(0, 300), st.integers(0, 9)), max_size=3),  # lost: how late
    ),
    max_size=8,
)


@given(STEPS, st.integers(0, 7))
def test_the_latest_bins_have_all_results_of_their_time(steps, resumed_after):
    results, time, totals = Results(EVERY, KEEP), 1000, [0, 0]
    expected = {PRODUCED: Counter(), LOST: Counter()}
    for number, (made, late) in enumerate(steps):
        ts = np.array(list(accumulate((gap for gap, _ in made), initial=time)), np.int64)
        time = int(ts[-1])
        n = np.array([n for _, n in made], np.int64)
        totals[PRODUCED] += results.produce(ts[1:], n)
        late_ts = np.array([time - by for by, _ in late], np.int64)
        lost = np.array([n for _, n in late], np.int64)
        totals[LOST] += results.lose(late_ts, lost)
        for t, results_of_it in zip(ts[1:].tolist(), n.tolist(), strict=True):
            expected[PRODUCED][t // EVERY] += results_of_it
        for t, results_of_it in zip(late_ts.tolist(), lost.tolist(), strict=True):
            expected[LOST][t // EVERY] += results_of_it
        if number == resumed_after:
            state = results.state()
            results = Results(EVERY, KEEP)
            results.resume(state)
    assert totals == [sum(expected[PRODUCED].values()), sum(expected[LOST].values())]
    seen = [*expected[PRODUCED], *expected[LOST]]
    if not seen:
        return
    newest = max(seen)
    assert results.first == max(min(seen), newest - KEEP + 1)
    found = results.between(results.first * EVERY, (newest + 1) * EVERY)
    for row, counts in expected.items():
        assert found[row].tolist() == [counts[b] for b in range(results.first, newest + 1)]
