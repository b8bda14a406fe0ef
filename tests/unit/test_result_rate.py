"""How many results are not late: a rate that quiet times count for, and gaps do not."""

import numpy as np
import pytest

from slackwater.stats.lateness import ResultLateness
from slackwater.stats.results import Results

EVERY = 100


def closed(times, clocks):
    """(on time, bins) of each interval that ends with one of these clocks of the join."""
    lateness, results = ResultLateness(EVERY), Results(EVERY, 100)
    rows = []
    for clock, before in zip(clocks, [None, *clocks[:-1]], strict=True):
        ts = np.array([t for t in times if (before is None or t >= before) and t < clock], np.int64)
        results.produce(ts, np.ones(len(ts), np.int64))
        interval = lateness.close(clock, results)
        rows.append((interval.on_time, interval.bins))
    return rows


def test_quiet_intervals_count_for_the_rate():
    rows = closed([0, 10, 20, 410, 420, 430], range(100, 900, 100))
    on_time, bins = np.sum(rows, axis=0)
    assert on_time == 6
    assert bins == 8  # six results in eight intervals, not in the two that have any


@pytest.mark.parametrize("gap", [5_000, 7_000])
def test_a_gap_that_one_interval_passes_is_no_quiet_time(gap):
    rows = closed([0, 110, 220, gap + 10], [100, 200, gap, gap + 100])
    assert [bins for _, bins in rows] == [1, 1, 3, 1]
