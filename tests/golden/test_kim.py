"""Kim: heartbeats and window extents on examples that can be checked by eye."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.controllers.drop_ratio import (
    Beyond,
    DropController,
    HeartbeatSetting,
    KimController,
    Period,
)
from slackwater.controllers.error_bound import ErrorController
from slackwater.disorder.heartbeat import HeartbeatStage
from slackwater.kernels.histogram import BUCKETS, bucket_of, upper_edges
from slackwater.kernels.records import NONE


def test_before_at_and_behind_the_heartbeat():
    # section 3: t < h is discarded, t = h goes straight on, t > h waits
    stage = HeartbeatStage(distance=2)
    assert stage.arrive(10) == []  # h = 8
    assert stage.arrive(8) == [8]
    assert stage.arrive(9) == []
    assert stage.arrive(7) == [7]  # it leaves at once, to be dropped
    assert (stage.dropped, stage.heartbeat, stage.buffered_of(0)) == (1, 8, 2)
    assert stage.arrive(12) == [9, 10]  # h = 10


def test_without_a_distance_what_is_in_order_leaves_as_it_comes():
    stage = HeartbeatStage()
    assert [stage.arrive(ts) for ts in (5, 5, 7)] == [[5], [5], [7]]  # h = 5 5 7
    assert (stage.buffered_of(0), stage.average_buffered) == (0, 0.0)


def test_before_the_first_event_none_has_waited():
    assert HeartbeatStage().average_buffered == 0.0


def test_from_so_many_drops_on_the_distance_is_twice_the_largest():
    stage = HeartbeatStage()
    stage.set_slack(1, limit=2)
    seen = []
    for ts in (10, 7, 9, 6, 8, 10):
        stage.arrive(ts)
        seen.append((stage.dropped, stage.slack))
    #                 10      7       9       6       8       10
    # behind           0      3       1       4       2       0
    assert seen == [(0, 1), (1, 1), (1, 1), (2, 1), (3, 4), (3, 4)]  # from 6 on, 2 * 2


def test_the_distance_may_change_with_each_event_and_again_behind_it():
    stage = HeartbeatStage(follow="largest")
    times = np.array([100, 99, 97, 94, 90])  # 0 1 3 6 10 behind the largest
    at, end = stage.log.append(times, np.zeros(5, int), [np.zeros(5, np.int32)])
    stage.start(5)
    while at < end:
        stage.stop_at(stage.count + 1)
        at, _ = stage.run(at, end)
        stage.set_slack(0, "largest")
    changes = [[100, k] for k in (1, 0, 3, 0, 6, 0, 10, 0)]
    assert stage.changes.tolist() == changes


def test_a_restart_changes_nothing_whatever_the_times_are():
    #   -200 . . . 0 . . . 200      farther apart than there are buckets at first
    stage = HeartbeatStage(distance=500)
    for ts in (-200, 200, 0):
        assert stage.arrive(ts) == []
    again = HeartbeatStage(log=stage.log)
    again.resume(stage.state())
    assert again.about() == stage.about()
    assert again.waiting().tolist() == stage.waiting().tolist() == [0, 2, 1]
    assert again.arrive(500) == [-200, 0]


def test_the_heartbeat_is_the_mean_less_the_largest_distance_and_never_falls():
    # the mean over (nearly) all events; distances from the mean before each event
    stage = HeartbeatStage(heartbeat="mean", recent=10)
    seen = []
    for ts in (10, 14, 12, 20, 6):
        stage.arrive(ts)
        seen.append(stage.heartbeat)
    # mean      10   12   12   14   12.4
    # distance   0    4    0    8    8      the largest so far: 0 4 4 8 8
    # heartbeat 10    8    8    6    4      kept from falling: 10
    assert seen == [10] * 5
    assert stage.dropped == 1  # the 6


def test_the_mean_is_recent():
    # over all it would stay far behind, and an ordered stream would never be let out
    stage = HeartbeatStage(heartbeat="mean", recent=2)
    for ts in range(0, 1000, 10):
        stage.arrive(ts)
    assert stage.buffered_of(0) <= 4


def test_adaptive_takes_the_mean_of_the_two_largest_delays():
    stage = HeartbeatStage(heartbeat="adaptive", span=6)

    def slacks(*times):
        return [(stage.arrive(ts), stage.slack)[1] for ts in times]

    # delays            0    2    0    6    0    0
    assert slacks(100, 98, 110, 104, 112, 113) == [0, 0, 0, 0, 0, 4]  # (6 + 2) / 2
    # Behind a span the smaller one is forgotten, the larger one is not.
    assert slacks(114, 115, 116, 117, 118, 119) == [4, 4, 4, 4, 4, 3]  # (6 + 0) / 2


def marks(times, **options):
    """Where marks stand when these times arrive."""
    stage = HeartbeatStage(**options)
    seen = []
    for ts in times:
        stage.arrive(ts)
        seen += stage.out.ts[stage.out.event == NONE].tolist()
    return seen


def test_marks_stand_where_a_window_has_ended():
    times = (5, 9, 10, 11, 20, 21, 29)
    assert marks(times, slide=10, open_end=True) == [5, 10, 20]  # [0, 10) is over at 10
    assert marks(times, slide=10) == [5, 11, 21]  # (0, 10] is over behind it
    assert marks(times) == []  # nobody asked
    assert marks((10, 7), distance=2) == [8]  # before what is dropped


# ---- one corrupt value


def refused(times, **options):
    """Which of these arrivals are too far ahead, cut after each, with a restart in between."""
    stage, found = HeartbeatStage(**options), []
    for n, ts in enumerate(times):
        stage.arrive(ts)
        found += [n] * len(stage.rejected)
        again = HeartbeatStage(log=stage.log, **options)
        again.resume(stage.state())
        stage = again
    return found, stage.top


def test_a_time_too_far_ahead_is_rejected_until_others_are_there_too():
    # at most 10 ahead. 50 alone: rejected. Then time jumps, and a late 4 speaks against it:
    # votes                50 51 4  53 54 55 56
    #                      1  2  1  2  3  4  5: 56 is believed, and 66 is not far from it
    assert refused([1, 2, 50, 3, 4], max_jump=10) == ([2], 4)
    jump = refused([1, 2, 50, 51, 4, 53, 54, 55, 56, 66], max_jump=10)
    assert jump == ([2, 3, 5, 6, 7], 66)
    # two corrupt values that do not agree with each other are no jump
    assert refused([1, 50, 500, 50, 500, 50, 500, 2], max_jump=10) == ([1, 2, 3, 4, 5, 6], 2)
    assert refused([1, 2, 12, 13, 23], max_jump=10) == ([], 23)
    assert refused([1, 50, 2], max_jump=None) == ([], 50)


def test_what_is_far_follows_from_the_times_themselves():
    # 100 times, each 1 after the last: the largest, 99, is 49.5 before their mean. So far is what
    # is beyond 99 + 100 * 49.5 = 5049; the next one, 100, moves the mean by half of a step
    ordered = list(range(100))
    assert refused([*ordered, 5049], max_jump="usual") == ([], 5049)
    assert refused([*ordered, 5050], max_jump="usual") == ([100], 99)
    assert refused([*ordered[:99], 10**9], max_jump="usual") == ([], 10**9)  # too little is known
    # all so far have covered 10**6: as far again may be
    assert refused([-(10**6), *ordered, 99 + 10**6], max_jump="usual")[0] == []


@pytest.mark.parametrize("heartbeat", ["largest", "mean"])
@pytest.mark.compiled
def test_one_corrupt_value_does_not_break_a_drop_ratio(heartbeat):
    # Q3 of the paper; 20,000 orders, and one id of 10**9 in the middle
    rng = np.random.default_rng(1)
    ids = np.argsort(np.arange(20_000) + rng.exponential(20, 20_000), kind="stable")
    ids[10_000] = 10**9
    orders = pa.table({"orderID": ids, "serviceTime": np.ones(20_000)})
    text = "SELECT AVG(serviceTime) FROM Services [RANGE 100 tuples, WATTR orderID, DRATIO 1%]"
    query = sw.sql(text)
    query = replace(query, goal=replace(query.goal, heartbeat=heartbeat))
    run = query.replay(orders)
    assert run.metrics.streams["Services"].rejected == {"too far in the future": 1}
    assert run.rejected.to_pylist() == [
        {"stream": "Services", "row": 10_000, "reason": "too far in the future"}
    ]
    assert run.drop_ratio < 0.02
    believed = replace(query, max_jump="none").replay(orders)
    if heartbeat == "largest":
        assert believed.drop_ratio > 0.4  # all of the second half
    else:  # the largest distance from the mean is 10**9 for ever
        assert believed.average_buffered > 10 * run.average_buffered
    with pytest.raises(sw.DataError, match="column orderID, row 10000: too far in the future"):
        replace(query, strict=True).replay(orders)


# ---- how far behind the heartbeat should be


def test_buckets_of_distances_are_exact_below_64_and_then_within_a_32nd():
    edges = upper_edges()
    assert edges[:67].tolist() == [*range(64), 65, 67, 69]
    assert [bucket_of(number) for number in (-1, 0, 63, 64, 65, 66)] == [0, 0, 63, 64, 64, 65]
    assert bucket_of(2**62) == BUCKETS - 1
    for bucket in range(1, 64 + (53 - 6) * 32):  # up to 2**53, where floats begin to round
        first, last = int(edges[bucket - 1]) + 1, int(edges[bucket])
        assert bucket_of(first) == bucket_of(last) == bucket
        assert last - first < max(1, first / 32)


def test_a_distance_is_chosen_by_the_events_that_were_beyond_it():
    beyond = Beyond(3)
    for behind in ([5, 3, 2], [5, 0, 0]):  # events of a period by their distance
        period = np.array(behind)
        beyond.learn(period, allowed=1.0)
        assert period.tolist() == [0] * 3
    # beyond 0, 1, 2: first 5 2 0, then 0 0 0; on average, and of the squares
    state = {"periods": 2, "mean": [2.5, 1.0, 0.0], "square": [12.5, 2.0, 0.0]}
    assert beyond.state() == state
    # at worst, four deviations more: 2.5 + 4 * 2.5   1 + 4 * 1   0
    budgets = (12.5, 12.4, 5.0, 4.9, 1.0, 0.9)
    assert [beyond.within(budget, 20.0) for budget in budgets] == [0, 1, 1, 2, 2, None]
    assert beyond.within(5.0, 19.9) is None  # too little is known
    resumed = Beyond(3)
    resumed.resume(state)
    assert resumed.state() == state


def test_what_varies_less_than_by_chance_is_taken_to_vary_by_chance():
    beyond = Beyond(3)
    for _ in range(2):
        beyond.learn(np.array([0, 4, 0]), allowed=1.0)
    assert [beyond.within(budget, 20.0) for budget in (12.0, 11.9)] == [0, 1]  # 4 + 4 * 2


def test_the_past_reaches_back_30_periods_or_as_many_as_allow_50_drops():
    for allowed, memory in ((10.0, 30), (1.0, 50), (0.0, 30)):
        beyond = Beyond(2)
        for _ in range(100):
            beyond.learn(np.array([0, 0]), allowed)
        beyond.learn(np.array([0, 600]), allowed)
        assert beyond.state()["mean"][0] == pytest.approx(600 / memory)


def test_the_budget_is_what_the_ratio_allows_by_the_end_of_the_next_period():
    # a tenth of 100 + 100 events so far and of 100 more is 30; three of them are kept back
    def setting(dropped, behind=(0, 0)):
        controller = DropController(every=100, ratio=0.1)
        controller.begin(100)
        histogram = np.zeros(controller._beyond._mean.shape, np.int64)
        histogram[: len(behind)] = behind
        return controller.next_setting(Period(200, dropped, 7, histogram))

    assert setting(dropped=29) == HeartbeatSetting(0, limit=27)
    assert setting(dropped=30) == HeartbeatSetting(
        14, twice=True
    )  # nothing is left: twice the largest
    # 4 are beyond 0, at worst 4 + 4 * 2 = 12 of a budget of 30 less what was dropped
    assert setting(dropped=18, behind=(96, 4)) == HeartbeatSetting(0, limit=27)
    assert setting(dropped=19, behind=(96, 4)) == HeartbeatSetting(1, limit=27)


def test_a_distance_is_chosen_as_soon_as_the_ratio_allows_20_drops():
    # from the beginning: a tenth of 200 events is 20, of 199 it is 19.9
    def setting(every):
        behind = np.zeros(BUCKETS, np.int64)
        return DropController(every, ratio=0.1).next_setting(Period(every, 0, 7, behind))

    assert setting(199) == HeartbeatSetting(14, twice=True)  # twice the largest
    assert setting(200) == HeartbeatSetting(0, limit=37)  # a tenth of 400, three of them kept back


def test_kims_offset_moves_by_a_fiftieth_of_the_largest_distance():
    controller = KimController(sw.DropRatio(0.1, heartbeat="mean"))
    behind = np.ones(3, np.int64)
    seen = [
        controller.next_setting(Period(100, dropped, largest, behind)).offset
        for dropped, largest in ((11, 100), (10, 100), (10, 101), (11, 51))
    ]
    assert seen == [2, 0, -3, -1]
    assert behind.tolist() == [0, 0, 0]
    finer = KimController(sw.DropRatio(0.1, heartbeat="mean", steps=200))
    assert finer.next_setting(Period(100, 11, 1000, behind)).offset == 5  # 1000 / 200
    with pytest.raises(sw.QueryError, match="steps must be a whole number not below 1, got 0"):
        sw.DropRatio(0.1, heartbeat="mean", steps=0)


def test_the_share_that_may_be_dropped_follows_the_errors_of_100_windows():
    right, wrong = np.zeros(1), np.ones(1)

    def ratio_after(n_wrong, n=100, bound=0.1):
        controller = ErrorController(sw.ErrorBound(bound, confidence=0.75))
        for i in range(n):
            controller.judge(wrong if i < n_wrong else right)
        return controller.ratio

    assert ratio_after(0, n=99) == 0.05  # half the bound, until 100 windows are settled
    assert ratio_after(12) == pytest.approx(0.05 * 1.15)  # less than half of the 25 that may be
    assert ratio_after(13) == ratio_after(25) == 0.05
    assert ratio_after(26) == pytest.approx(0.05 * 0.7)
    assert ratio_after(0, n=199) == pytest.approx(0.05 * 1.15)  # the count begins again
    assert ratio_after(0, bound=0.95) == 0.5  # never more than half


def test_a_run_stops_behind_the_event_that_ends_a_period():
    stage = HeartbeatStage()
    first, end = stage.log.append(np.arange(5), np.zeros(5, int), [np.zeros(5, np.int32)])
    stage.start(5)
    stage.stop_at(2)
    assert stage.run(first, end) == (2, True)
    stage.stop_at(4)
    assert stage.run(2, end) == (4, True)
    stage.stop_at(None)
    assert stage.run(4, end) == (5, False)


@pytest.mark.parametrize("far", [500, 5_000_000], ids=["buckets of one time", "wide buckets"])
def test_forgetting_events_that_have_left_changes_nothing(far):
    plain, trimmed = HeartbeatStage(), HeartbeatStage()

    def arrive(ts):
        left = plain.arrive(ts)
        assert trimmed.arrive(ts) == left
        return left

    for ts in range(20):
        arrive(ts)
    trimmed.log.trim(int(trimmed.waiting().min(initial=trimmed.log.end)))
    assert trimmed.log.base > 10
    for stage in (plain, trimmed):
        stage.set_slack(far)
    for ts in [far, *np.random.default_rng(1).integers(20, 60, 30).tolist()]:
        arrive(ts)
    assert len(arrive(far + 40)) > 10


def test_q1_the_largest_reading_of_the_last_30_seconds():
    # each tuple ends the extent (t - 30, t]
    readings = pa.table({"t": [0, 10, 29, 30, 31, 65], "value": [9, 1, 2, 3, 8, 4]})
    query = sw.window(
        sw.Stream("sensors", ts="t"),
        window=sw.Sliding(30),
        select={"most": sw.functions.max("value")},
    )
    assert query.replay(readings).results.to_pydict() == {
        "result_ts": [0, 10, 29, 30, 31, 65],
        "most": [9, 9, 9, 3, 8, 4],
    }


def test_q3_the_average_of_the_latest_orders_with_a_drop_ratio():
    # the last 3 orders that were not dropped, by their id; 4 comes when 5 and 6 have been let out
    orders = pa.table(
        {"orderID": [1, 3, 2, 5, 6, 4, 7], "serviceTime": [10, 30, 20, 50, 60, 40, 70]}
    )
    query = sw.window(
        sw.Stream("services", order_by="orderID"),
        window=sw.Tuples(3),
        select={"avg_time": sw.avg("serviceTime"), "first": sw.first("orderID")},
        goal=sw.Slack(1),
    )
    run = query.replay(orders)
    assert run.late.to_pylist() == [{"stream": "services", "ts": 4, "late_by": 1}]
    assert run.results.to_pydict() == {
        "result_ts": [1, 2, 3, 5, 6, 7],
        "avg_time": [10.0, 15.0, 20.0, 100 / 3, 140 / 3, 60.0],
        "first": [1, 1, 1, 2, 3, 5],
    }
    assert run.drop_ratio == 1 / 7


def test_tumbling_hopping_and_sampled_windows():
    events = pa.table({"t": [1, 5, 9, 10, 14, 27]})

    def ends(window, **options):
        query = sw.window(
            sw.Stream("s", order_by="t"),
            window=window,
            select={"n": sw.count()},
            **options,
        )
        return [tuple(row.values()) for row in query.replay(events).results.to_pylist()]

    assert ends(sw.Sliding(10, 10)) == [(10, 3), (20, 2), (30, 1)]  # [0, 10), [10, 20), ...
    assert ends(sw.Sliding(10, 10), bounds="(]") == [(10, 4), (20, 1), (30, 1)]  # (0, 10], ...
    assert ends(sw.Sliding(10, 5)) == [(5, 2), (10, 4), (15, 3), (20, 1), (30, 1), (35, 1)]
    assert ends(sw.Sliding(2, 10)) == [(10, 1)]  # [8, 10), [18, 20), [28, 30): most lies between
    assert ends(sw.Tuples(3, slide=2)) == [
        (5, 2),
        (10, 3),
        (27, 3),
    ]  # the last three, at every second event
