"""What one bad minute, or one bad event, does to K: it passes."""

import numpy as np
import pyarrow as pa
import pytest

import profiles
import slackwater as sw

pytestmark = pytest.mark.skipif(
    profiles.PLAIN, reason="minutes of events are too many for kernels as plain Python"
)

MINUTE, HOUR = 60_000, 3_600_000
MINUTES, RATE = 8, 100  # per second and stream


def streams(seed, burst=False, late_by=0):
    """Exponential delays of 50 ms; a burst of 5 s in the third minute; one event that is late.

    Times begin at one day, so that an event can be a day late.
    """
    tables = {}
    for s, name in enumerate("ab"):
        rng = np.random.default_rng([seed, s])
        rows = MINUTES * 60 * RATE
        ts = np.arange(rows) * 1000 // RATE
        delay = rng.exponential(50.0, rows)
        if burst:
            delay = np.where((ts >= 2 * MINUTE) & (ts < 3 * MINUTE), 100.0 * delay, delay)
        arrival = ts + delay.astype(np.int64)
        if late_by and s == 0:
            ts = np.where(np.arange(rows) == 2 * 60 * RATE, ts - late_by, ts)
        order = np.argsort(arrival, kind="stable")
        tables[name] = pa.table(
            {
                "ts": (24 * HOUR + ts)[order],
                "k": rng.integers(0, 20, rows)[order],
                "arrival": (24 * HOUR + arrival)[order],
            }
        )
    return tables


def replayed(tables, target):
    pair = [sw.Stream(name, ts="ts", window="2 s") for name in "ab"]
    query = sw.join(*pair, on="k", select="count", goal=sw.Recall(target))
    return query.replay(tables, arrival="arrival")


def slack_from(run, minute):
    """The average K from there on."""
    ts, k = (column.to_numpy() for column in run.slack.columns)
    begin, end = 24 * HOUR + minute * MINUTE, 24 * HOUR + MINUTES * MINUTE
    grid = np.arange(begin, end, 1000)
    return float(k[np.searchsorted(ts, grid, side="right") - 1].mean())


@pytest.mark.parametrize("target", [0.9, 0.95, 0.99])
def test_two_periods_after_a_burst_the_slack_is_what_the_stream_needs_without_it(target):
    calm, after = (replayed(streams(1, burst), target) for burst in (False, True))
    assert max(k for _, k in after.output.slacks) > 3_000  # the burst was noticed
    assert slack_from(after, 5) <= 1.5 * slack_from(calm, 5)


@pytest.mark.parametrize("late_by", [HOUR, 6 * HOUR, 24 * HOUR - 2 * MINUTE])
def test_one_event_hours_late_changes_neither_slack_nor_state(late_by):
    calm, one = (replayed(streams(2, late_by=by), 0.95) for by in (0, late_by))
    assert slack_from(one, 4) == pytest.approx(slack_from(calm, 4), rel=0.05)
    assert one.metrics.stored <= 2 * calm.metrics.stored
    unseen = [run.metrics.lost_not_estimated for run in (calm, one)]
    assert unseen == [0, 1]  # too late even for the sample, and counted
