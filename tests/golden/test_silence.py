"""Streams that fall silent, finish or are elsewhere: who is waited for, and who is late then.

One line per arrival, as in test_synchronizer: what came (S: an event, T: a tick), what left the
Synchronizer, then what the K-slack buffers and the Synchronizer's buffers of all streams hold.
"""

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from helpers import engine_steps, naive_steps
from naive import Event
from slackwater.disorder.reorder import Reorder
from slackwater.engine.join import JoinEngine
from slackwater.engine.snapshot import restored
from slackwater.events.batch import Batch
from slackwater.events.limits import Limits

both = pytest.mark.parametrize("trace", [naive_steps, engine_steps], ids=["oracle", "engine"])


def replay(trace, lines, **options):
    """Run the arrivals of `lines`; return the lines as they really were, and the flush."""
    events = [
        Event(int(what[3:]), int(what[1]) - 1, n, None if what[0] == "T" else ())
        for n, (what, *_) in enumerate(lines)
    ]
    *steps, flush = trace(events, n_streams=2, **options)
    return [(line[0], *step) for line, step in zip(lines, steps, strict=True)], flush.left


# fmt: off


@both
def test_a_stream_that_is_silent_for_too_long_is_not_waited_for(trace):
    lines = [  # leaves       in K-slack   in the Synchronizer
        ("S1:1", [],          [[], []],    [[1], []]),
        ("S2:2", [1],         [[], []],    [[], [2]]),         # T_sync = 1
        ("S1:4", [2],         [[], []],    [[4], []]),         # T_sync = 2
        ("S1:6", [],          [[], []],    [[4, 6], []]),      # S2 is silent since 2
        ("S1:7", [4, 6, 7],   [[], []],    [[], []]),          # 7 - 2 = 5: S2 is idle
        ("S1:9", [9],         [[], []],    [[], []]),
    ]
    assert replay(trace, lines, slack=0, idle_after=5) == (lines, [])


@both
def test_an_idle_stream_that_speaks_again_is_late_up_to_what_has_left(trace):
    lines = [  # leaves       in K-slack   in the Synchronizer
        ("S2:2", [],          [[], []],    [[], [2]]),
        ("S1:6", [2],         [[], []],    [[6], []]),
        ("S1:8", [6, 8],      [[], []],    [[], []]),          # S2 is idle, T_sync = 8
        ("S2:3", [3],         [[], []],    [[], []]),          # late
        ("S1:9", [],          [[], []],    [[9], []]),         # and S2 is waited for again
        ("S2:8", [8],         [[], []],    [[9], []]),         # 8 <= T_sync
        ("S2:9", [9, 9],      [[], []],    [[], []]),          # in time
    ]
    assert replay(trace, lines, slack=0, idle_after=5) == (lines, [])


@both
def test_an_idle_stream_that_comes_back_ahead_is_in_time(trace):
    lines = [  # leaves       in K-slack   in the Synchronizer
        ("S2:2", [],          [[], []],    [[], [2]]),
        ("S1:3", [2],         [[], []],    [[3], []]),
        ("S1:8", [3, 8],      [[], []],    [[], []]),          # S2 is idle, T_sync = 8
        ("S2:11", [],         [[], []],    [[], [11]]),        # S1 is at 8
        ("S1:10", [10],       [[], []],    [[], [11]]),
        ("S2:12", [],         [[], []],    [[], [11, 12]]),
        ("S1:12", [11, 12, 12], [[], []],  [[], []]),
    ]
    assert replay(trace, lines, slack=0, idle_after=5) == (lines, [])


@both
def test_slack_does_not_hold_what_an_idle_stream_has_left_behind(trace):
    lines = [  # leaves       in K-slack         in the Synchronizer
        ("S1:1", [],          [[1], []],         [[], []]),
        ("S2:2", [],          [[1], [2]],        [[], []]),
        ("S1:5", [],          [[5], [2]],        [[1], []]),
        ("S1:7", [1],         [[5, 7], []],      [[], [2]]),   # S2 is idle: 2 moves on
        ("S1:9", [2, 5],      [[7, 9], []],      [[], []]),    # T_sync = 5
        ("S2:1", [],          [[7, 9], [1]],     [[], []]),    # delay 1: within K, and
        ("S1:10", [1, 7],     [[9, 10], []],     [[], []]),    # S2's time has not moved on
    ]
    assert replay(trace, lines, slack=3, idle_after=5) == (lines, [9, 10])


@both
def test_ticks_tell_how_far_the_streams_are_elsewhere(trace):
    lines = [  # leaves       in K-slack     in the Synchronizer
        ("S1:2", [],          [[2], []],     [[], []]),
        ("T2:3", [],          [[2], []],     [[], []]),        # S1 has passed 1, S2 has passed 2
        ("T1:5", [2],         [[], []],      [[], []]),        # 4 and 2: no event of S2 is needed
        ("S2:4", [],          [[], [4]],     [[], []]),        # 4 and 3: T_sync = 3
        ("S2:2", [],          [[], [2, 4]],  [[], []]),        # overdue
        ("T2:6", [2, 4],      [[], []],      [[], []]),        # 4 and 5; 2 <= T_sync: late
        ("T1:3", [],          [[], []],      [[], []]),        # known already
        ("S1:9", [],          [[9], []],     [[], []]),        # 8 and 5
    ]
    assert replay(trace, lines, slack=1, common_clock=True) == (lines, [9])


@both
@pytest.mark.parametrize("most", [64, 2**20], ids=["wide buckets", "buckets of one time"])
def test_what_an_idle_stream_has_left_behind_may_be_far_ahead_of_what_waits(
    trace, most
):
    # K = 100 needs 128 buckets, or 64 of two times each. When S2 is idle, its 190 joins its 0 and
    # 90 in the Synchronizer: that is more than 128.
    limits = {"limits": Limits(most_buckets=most)} if trace is engine_steps else {}
    lines = [  # leaves         in K-slack           in the Synchronizer
        ("S1:10", [],           [[10], []],          [[], []]),
        ("S2:0", [],            [[10], [0]],         [[], []]),
        ("S2:90", [],           [[10], [0, 90]],     [[], []]),
        ("S2:190", [],          [[10], [190]],       [[], [0, 90]]),
        ("S1:900", [0, 10],     [[900], []],         [[], [90, 190]]),   # S2 is idle, T_sync = 10
        ("S1:950", [],          [[900, 950], []],    [[], [90, 190]]),
        ("S1:1000", [90, 190, 900], [[950, 1000], []], [[], []]),
    ]
    assert replay(trace, lines, slack=100, idle_after=500, **limits) == (lines, [950, 1000])


# fmt: on


@pytest.mark.parametrize("origin", [0, -9], ids=["behind zero", "before zero"])
def test_a_finished_stream_is_not_waited_for_until_it_speaks(origin):
    stage = Reorder(n_streams=2)
    assert [stage.arrive(0, origin + ts) for ts in (1, 3)] == [[], []]
    stage.finish(1)
    assert stage.arrive(0, origin + 4) == [0, 1, 2]
    assert stage.arrive(1, origin + 5) == []
    assert stage.arrive(0, origin + 6) == [3]
    assert stage.in_sync(0) == [origin + 6]


@pytest.mark.parametrize("overdue", ["advance", "now"])
def test_when_all_streams_are_finished_everything_may_leave(overdue):
    stage = Reorder(n_streams=2, overdue=overdue)
    assert [stage.arrive(0, 7), stage.arrive(1, 5)] == [[], [1]]
    stage.finish(0)
    stage.finish(1)
    left = stage.arrive(0, 6)  # behind local time: nobody moves on
    assert left == ([2, 0] if overdue == "now" else [])
    assert stage.sync_time == (7 if overdue == "now" else 5)
    assert left + stage.arrive(0, 8) == [2, 0, 3]


# ---- states


class Shard:
    """An engine that takes arrivals "a:5" and tells the states of its streams."""

    def __init__(self, n=2, slack=2, **options):
        self.names = "abc"[:n]
        streams = [sw.Stream(name, "ts", 10) for name in self.names]
        self.table = pa.table({"ts": pa.array([], pa.int64())})
        query = sw.join(*streams, goal=sw.Slack(slack))
        self.engine = JoinEngine(query, dict.fromkeys(self.names, self.table.schema), **options)
        self.results = 0

    def arrive(self, what):
        stream = self.names.index(what[0])
        one = pa.table({"ts": [int(what[2:])]})
        tables = tuple(one if s == stream else self.table for s in range(len(self.names)))
        self.results += self.engine.feed(Batch(tables, np.array([stream], np.uint8))).table.num_rows
        return self.states

    @property
    def states(self):
        return " ".join(stream.state for stream in self.engine.metrics().streams.values())

    def story(self, *lines):
        """The lines as they really were."""
        return tuple((what, self.arrive(what)) for what, _ in lines)


def test_a_stream_is_slow_then_idle_and_active_again_when_it_has_caught_up():
    #   arrives   1 2 3 4 5 6 7 8 9      K = 2, idle after 6
    #   a         1   3 4 6 7
    #   b           1           2 7 10
    lines = (
        ("a:1", "active slow"),  # nothing is known of b
        ("b:1", "active active"),
        ("a:3", "active active"),  # b is 2 behind: that is within K
        ("a:4", "active slow"),
        ("a:6", "active slow"),
        ("a:7", "active idle"),  # 7 - 1 = 6
        ("b:2", "active slow"),  # it speaks, and is waited for: 7 - 2 > K
        ("b:7", "active active"),
        ("b:10", "slow active"),  # now a is behind
    )
    assert Shard(slack=2, idle_after=6).story(*lines) == lines


def test_only_the_stream_that_everybody_waits_for_is_slow():
    #   arrives   1  2  3  4  5  6  7  8  9      K = 2, idle after 10
    #   a         10       13    18    20
    #   b            5        6     7
    #   c               3                 19
    lines = (
        ("a:10", "active slow slow"),
        ("b:5", "active active slow"),
        ("c:3", "active active slow"),  # b is 5 behind, but nobody waits for it
        ("a:13", "active active slow"),
        ("b:6", "active active slow"),
        ("a:18", "active active slow"),
        ("b:7", "active active slow"),
        ("a:20", "active slow idle"),  # c moved last at 10: without it, b is the last
        ("c:19", "active slow active"),
    )
    assert Shard(n=3, idle_after=10).story(*lines) == lines


def test_without_a_limit_a_silent_stream_stays_slow():
    shard = Shard()
    assert shard.arrive("b:1") == "slow active"
    assert shard.arrive("a:1") == "active active"
    assert shard.arrive("a:1000000000") == "active slow"


def test_finished_streams_are_finished_until_they_speak():
    shard = Shard()
    assert shard.arrive("a:1") == "active slow"
    shard.engine.finish(1)
    assert shard.states == "active finished"
    assert shard.arrive("a:5") == "active finished"
    assert shard.engine.metrics().buffered == 1  # 1 has left, K holds 5
    assert shard.arrive("b:4") == "active active"
    shard.engine.flush()
    assert shard.states == "finished finished"
    nothing = Batch((shard.table, shard.table), np.empty(0, np.uint8))
    shard.engine.feed(nothing)
    assert shard.states == "finished finished"
    assert shard.arrive("b:6") == "active active"


def test_a_state_outlives_a_restart():
    shard = Shard(n=3, idle_after=5)
    shard.engine.finish(2)
    shard.story(*((what, None) for what in ("a:1", "b:1", "a:8")))
    assert shard.states == "active idle finished"
    schemas = dict.fromkeys("abc", shard.table.schema)
    saved = shard.engine.snapshot()
    shard.engine = restored(saved, JoinEngine(shard.engine.query, schemas, idle_after=5))
    assert shard.states == "active idle finished"
    assert shard.arrive("c:8") == "active idle active"


def test_what_an_idle_stream_delivers_late_is_counted():
    #   arrives   1 2 3 4 5 6 7      K = 0, idle after 5, windows of 10
    #   a         1   2 8   9
    #   b           1     4   9
    shard = Shard(slack=0, idle_after=5)
    for what in ("a:1", "b:1", "a:2", "a:8"):
        shard.arrive(what)
    assert shard.results == 3  # b is idle: 1, 2 and 8 of a have met its 1
    shard.arrive("b:4")
    metrics = shard.engine.metrics()
    assert metrics.streams["b"].late_kept == 1
    assert metrics.lost == 3  # with 1, 2 and 8
    assert metrics.max_lateness == 4
    shard.arrive("a:9")
    shard.arrive("b:9")
    assert shard.engine.metrics().late_kept == 1  # 9 is in time
    # The 9 of a met the 1 and the 4 of b, the 9 of b met all four of a.
    assert shard.results == 3 + 2 + 4
