"""Parts of the engine by themselves, with numbers that can be checked by eye."""

import math
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.disorder.arrival_clock import ArrivalClock
from slackwater.engine.deadlines import WindowDeadlines
from slackwater.engine.scale import in_unit, typical
from slackwater.engine.snapshot import Archive, _Held
from slackwater.joins.undecided import Undecided
from slackwater.kernels import shed as places
from slackwater.kernels import stacks
from slackwater.kernels.join import LOSS_UNKNOWN
from slackwater.kernels.records import Late
from slackwater.metrics.counters import Metrics, SheddingMetrics, StreamMetrics
from slackwater.query.functions import count
from slackwater.shedding.load import LoadMonitor
from slackwater.stats.adwin import Adwin, Chunk
from slackwater.stats.retention import Retention
from slackwater.stats.sampling import Arriving, ByCluster, ByEvent, Sampling
from slackwater.windows.accuracy import MeasuredAggregate, WindowAccuracy

# ---- units of times

NOW = 1_700_000_000  # seconds: November 2023


@pytest.mark.parametrize(
    ("time", "other", "unit", "seems"),
    [
        (NOW, NOW * 10**3, "ms", "seconds"),
        (NOW * 10**6, NOW * 10**3, "ms", "microseconds"),
        (NOW * 10**9, NOW * 10**3, "ms", "nanoseconds"),
        (NOW * 10**8, NOW * 10**3, "ms", None),
        (NOW * 10**3, NOW * 10**3, "ms", None),
        (NOW * 10**3, NOW * 10**6, "us", "milliseconds"),
        (1.09 * NOW, NOW * 10**3, "ms", "seconds"),
        (1.11 * NOW, NOW * 10**3, "ms", None),
        (631_152, 631_152_000_000, "ms", None),  # a thousand times too small for seconds
        (631_152_000, 631_152_000_000, "ms", "seconds"),  # the first day that counts
        (631_151_999, 631_151_999_000, "ms", None),
        (4_102_444_800, 4_102_444_800_000, "ms", "seconds"),  # the last one
        (4_102_444_801, 4_102_444_801_000, "ms", None),
    ],
)
def test_times_a_power_of_a_thousand_away_from_another_clock_are_in_another_unit(
    time, other, unit, seems
):
    assert in_unit(time, other, unit) == seems


def test_the_typical_time_is_the_median_of_a_thousand_or_so():
    every = np.ones(3_000, bool)
    assert typical(np.arange(3_000), every) == 1_498.5  # of 0, 3, ... 2,997
    assert typical(np.array([5, 1, 900]), np.array([True, True, False])) == 3.0
    assert typical(np.array([5]), np.array([False])) is None


# ---- counters


def test_counters_begin_at_zero():
    assert {v for v in vars(Metrics()).values() if isinstance(v, int | float)} == {0}
    shedding = vars(SheddingMetrics())
    assert (shedding.pop("throttle"), shedding.pop("kept"), shedding.pop("cpu_needed")) == (
        1,
        1,
        None,
    )
    assert set(shedding.values()) == {0}
    assert {v for v in vars(StreamMetrics()).values() if isinstance(v, int)} == {0}


def test_nothing_is_dropped_of_nothing():
    query = sw.window(sw.Stream("a", "ts"), window=sw.Tumbling(10), select={"n": count()})
    assert query.replay(pa.table({"ts": pa.array([], pa.int64())})).drop_ratio == 0.0
    one = query.replay(pa.table({"ts": [7]}))
    assert (one.drop_ratio, one.results.to_pydict()) == (0.0, {"result_ts": [10], "n": [1]})


# ---- sums, and moments of nothing

MOST, LEAST = 2**63 - 1, -(2**63)


@pytest.mark.parametrize(
    ("a", "b", "total", "overflow"),
    [
        (MOST - 1, 1, MOST, 0),
        (MOST, 1, MOST, 1),
        (LEAST + 1, -1, LEAST, 0),
        (LEAST, -1, LEAST, 1),
        (LEAST, 0, LEAST, 0),
        (MOST, LEAST, -1, 0),
    ],
)
def test_a_sum_of_whole_numbers_notes_that_it_leaves_64_bits(a, b, total, overflow):
    ctl = np.zeros(1, np.int64)
    assert stacks._checked_sum(a, b, ctl) == total
    assert ctl.tolist() == [overflow]


def test_moments_of_two_parts_are_those_of_all():
    # 1, 3 (mean 2, squares 2) and 8: mean 4, squares 9 + 1 + 16
    assert stacks._moments(2.0, 2.0, 2.0, 1.0, 8.0, 0.0) == (3.0, 4.0, 26.0)
    assert stacks._moments(0.0, 0.0, 0.0, 0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
    assert stacks._moments(0.0, 0.0, 0.0, 2.0, 5.0, 8.0) == (2.0, 5.0, 8.0)


def test_min_and_max_take_numbers_rather_than_nan():
    nan = math.nan
    assert stacks._combined(stacks.MIN_FLOAT, nan, 2.0) == 2.0
    assert stacks._combined(stacks.MIN_FLOAT, 1.0, 2.0) == 1.0
    assert math.isnan(stacks._combined(stacks.MAX_FLOAT, nan, 2.0))  # it is the largest
    assert stacks._combined(stacks.MAX_FLOAT, 3.0, 2.0) == 3.0
    assert stacks._combined(stacks.SUM_FLOAT, 3.0, 2.0) == 5.0


# ---- what windows of numbers forget


def test_adwin_forgets_all_but_the_latest_chunks():
    window = Adwin(merge=lambda a, b: a + b)
    for x in range(7):  # the oldest two of size 1 become one of size 2
        window.add(Chunk(1, float(x), 0.0, (x,)))
    assert [c.size for c in window.chunks] == [2, 1, 1, 1, 1, 1]
    assert [c.payload for c in window.forget(2)] == [(0, 1), (2,), (3,), (4,)]
    assert [c.payload for c in window.chunks] == [(5,), (6,)]
    assert (window.size, window.mean) == (2, 5.5)


def late(*events):
    """(late by, lost, is not known) of late events."""
    by, lost, unknown = (np.array(column, np.int64) for column in zip(*events, strict=True))
    fate = np.where(unknown > 0, LOSS_UNKNOWN, 0)
    given = {"by": by, "lost": lost, "fate": fate, "position": np.arange(len(by))}
    return Late(**{name: given[name] for name in Late._fields})


def test_retention_covers_all_but_a_fiftieth_of_what_may_be_lost():
    retention = Retention(allowed=0.5, first=10)  # 1 % may lie beyond
    retention.join(100, 980, late((20, 19, 0), (60, 1, 0)))
    # 1 result of 1,000 is lost with the event that is late by 60: 20 * 1.25 is enough
    assert retention.next_length(slack=0) == 25
    assert retention.rate == 10.0
    retention.join(100, 800, late((60, 100, 0)))
    assert retention.next_length(slack=0) == 75
    assert retention.next_length(slack=90) == 90


def test_an_event_whose_loss_is_not_known_counts_like_others():
    retention = Retention(allowed=0.5, first=10)
    retention.join(10, 100, late((40, 0, 1), (3, 0, 0)))
    # 100 results of 10 events: 10 lost with the event that is late by 40
    assert retention.next_length(slack=0) == 50
    assert retention.state()["loss"] == [[40], [10.0]]
    assert retention.state()["faded"] == [100.0, 10.0, 1.0]


def test_retention_is_reconsidered_less_often_after_ten_intervals():
    retention = Retention(allowed=0.5, first=10, times=10)
    lengths = []
    for _ in range(12):
        lengths.append(retention.every)
        retention.join(retention.every, 100, late((40, 10, 0)))  # an event in each unit of time
        retention.next_length(slack=0)
    assert lengths == [10] * 10 + [100] * 2
    assert round(retention.rate, 9) == 1.0


# ---- samples


def test_squares_of_a_cluster_grow_with_all_that_was_found_in_it():
    units = ByCluster(Sampling(share=1.0), pane=10, lengths=[10, 10, 10], hashes=None)
    looking = Arriving(np.array([3, 7, 12]), np.array([0, 1, 2]), np.array([0, 0, 0]))
    # panes of even number, of odd number: 2 and 1, then 3 in the first pane, then 4 in the second
    found = np.array([[2, 1], [3, 0], [0, 4]])
    assert units.add(found, looking) == (10, 5**2 + 5**2)
    assert units.state() == {"found": [[0, 0, 5], [0, 1, 5]]}
    units.forget_before(10)
    assert units.state() == {"found": [[0, 1, 5]]}
    assert units.add(np.array([[0, 1]]), Arriving(*looking)._replace(
        ts=np.array([15]), stream=np.array([0]), code=np.array([0])
    )) == (1, 6**2 - 5**2)  # fmt: skip


def test_a_sample_of_all_keeps_all_and_has_no_error():
    every = Sampling(share=1.0)
    assert (every.weight(7), every.variance(9), every.error_of_none) == (7.0, 0.0, 0.0)
    half = Sampling(share=0.5)
    assert (half.weight(7), half.variance(9), half.error_of_none) == (14.0, 18.0, 6.0)
    events = Arriving(np.arange(64), np.zeros(64, int), np.zeros(64, int))
    assert ByEvent(every).choose(events).all()
    kept = ByEvent(half).choose(events)
    assert 20 < kept.sum() < 44


# ---- rows that are due


@pytest.mark.parametrize("far", [1, 2**20])
def test_rows_are_due_by_time_and_then_by_arrival_however_far_apart_the_times_are(far):
    events, due = np.arange(5), np.array([5, 3, 5, 3, 4]) * far
    queue = Undecided()
    queue.add(events, due)
    assert queue.take_before(6 * far).tolist() == [1, 3, 4, 0, 2]
    queue.add(events, due)
    given, at = queue.take(first=0, after=np.array([4, 4, 4, 4, 4, 6]) * far)
    assert (given.tolist(), at.tolist()) == ([1, 3, 4, 0, 2], [1, 3, 5, 5, 5])


# ---- deadlines


def deadlines(**options):
    streams = [sw.Stream(name, "ts") for name in "ab"]
    given = {"window": sw.Tumbling(10), "select": {"n": count()}, "deadline": 12}
    query = sw.aggregate(*streams, on="k", **given | options)
    return WindowDeadlines(query, ArrivalClock(2))


def test_an_event_is_late_behind_the_deadline_of_its_window_not_with_it():
    found = deadlines().lateness(np.array([3, 3, 3, 9, 10]), np.array([11, 12, 13, 12, 22]))
    assert found.behind.tolist() == [-1, 0, 1, 0, 0]
    assert found.is_late.tolist() == [False, False, True, False, False]
    assert not found.is_lost.any()


def test_an_event_of_sliding_windows_is_late_for_the_first_of_them():
    sliding = deadlines(window=sw.Sliding(10, 5))
    sliding.closed = 15
    found = sliding.lateness(np.array([4, 5, 9, 10]), np.array([8, 12, 13, 20]))
    # windows of 4 begin at -5 and 0; of 5 and 9 at 0 and 5; of 10 at 5 and 10
    assert found.behind.tolist() == [1, 0, 1, 3]
    assert found.is_lost.tolist() == [True, True, True, False]


# ---- the load of shedding


def shed(m=2):
    return SimpleNamespace(
        number=np.zeros(16), ctl=np.zeros(places.CTL_LENGTH, np.int64),
        dropped=np.zeros(m, np.int64), thinned=np.zeros(m, np.int64), starts=np.empty(0),
    )  # fmt: skip


def test_windows_hold_the_arrivals_of_the_intervals_that_reach_into_them():
    state = shed()
    load = LoadMonitor(state, [25, 10])
    for end, streams in ((10, [0, 0, 1]), (20, [0, 1, 1, 1]), (30, [0]), (40, [1, 1])):
        load.add_arrivals(np.array(streams))
        if end == 20:
            state.dropped[1] += 1
            state.thinned[1] += 1
        load.record_history(end)
        load.next_interval(end)
    # of the first: intervals that end behind 15; of the second: behind 30
    assert load.window_sizes(admitted=False).tolist() == [1.0 + 1.0 + 0.0, 2.0]
    assert load.state()["history"] == [[[20, 1, 1], [30, 1, 1], [40, 0, 0]], [[40, 2, 2]]]


def test_the_load_of_an_interval():
    state = shed()
    load = LoadMonitor(state, [10, 10])
    load.begin_at(0)
    load.add_arrivals(np.array([0, 0, 0, 1, 1]))
    state.thinned[0] = 1
    state.number[places.WORK] = 12.0
    state.number[places.FREE_AT] = 16.0
    # 4 were pushed and admitted, 3 units of time each; at 10, two of them wait
    at_ten = load.load(10, 10, 0.0)
    assert tuple(at_ten) == (4, 2.0, 2.0, None, 0.6)  # nothing is known of the whole join
    state.ctl[places.COMPARED] = 24
    assert load.load(10, 10, 4.0).possible == 24 / 12 / 4
    assert load.load(10, 10, 0.0).possible is None
    state.ctl[places.COMPARED] = 0
    assert load.load(10, 10, 4.0).possible is None
    assert load.is_busy(10, 10)
    assert load.rate(10).tolist() == [0.3, 0.2]


def test_events_that_left_the_buffer_are_those_that_the_virtual_server_has_begun():
    state = shed()
    load = LoadMonitor(state, [10, 10])
    load.begin_at(0)
    load.add_arrivals(np.array([0, 0, 0, 1]))
    state.number[places.WORK], state.number[places.FREE_AT] = 12.0, 16.0
    state.starts = np.array([4.0, 7.0, 10.0, 13.0, -np.inf])
    assert load.load(10, 10, 0.0)[:3] == (4, 3.0, 1.0)  # only the last one waits at 10
    load.next_interval(10)
    load.add_arrivals(np.array([1]))
    state.number[places.WORK], state.number[places.FREE_AT] = 3.0, 19.0
    state.starts[4] = 16.0
    assert load.load(20, 10, 0.0)[:3] == (1, 2.0, 0.0)  # the one that waited and the new one
    load.next_interval(20)
    load.add_arrivals(np.array([0, 0, 1, 1]))
    state.number[places.WORK], state.number[places.FREE_AT] = 8.0, 36.0
    state.starts[:] = 31.0  # more wait than are remembered: by time, 2 each; 3 of 6 time units wait
    assert load.load(30, 10, 0.0)[:3] == (4, 4 - (6 - 0) / 2, 3.0)


# ---- accuracy of windows


def test_the_error_of_a_window_is_that_of_its_worst_aggregate():
    aggregates = [MeasuredAggregate("count", 0), MeasuredAggregate("sum", 1)]
    windows = WindowAccuracy(aggregates, 10, 2, False)  # of two bins, (0, 10] and so on
    ts = np.array([5, 10, 11, 25, 40])
    values = np.array([[1.0] * 5, [4.0, 6.0, 5.0, 10.0, 1.0]])
    windows.add(ts, values, np.array([False, False, True, False, False]))
    # (0, 20]: 2 of 3 events, 10 of 15; (10, 30]: 1 of 2 events, 10 of 15
    assert windows.settled(20).tolist() == pytest.approx([1 / 3])
    assert windows.settled(30).tolist() == pytest.approx([1 / 2])
    assert windows.settled(39).tolist() == []
    assert windows.settled(40).tolist() == [0.0]


# ---- chunks of snapshots


def test_chunks_are_merged_if_they_fit_and_are_of_similar_size():
    archive = Archive(SimpleNamespace(
        limits=SimpleNamespace(chunk_bytes=100), log=SimpleNamespace(base=0)
    ))  # fmt: skip

    def merges(older, newer, name=""):
        nothing = np.empty(0, np.int64)
        return archive._should_merge(_Held("old", nothing, older), _Held(name, nothing, newer))

    assert merges(60, 40)
    assert not merges(61, 40)
    assert merges(30, 20)
    assert not merges(31, 20)
    assert merges(10, 40, "new")
    assert not merges(9, 40, "new")
    assert merges(9, 40)
