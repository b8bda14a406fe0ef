"""Kim: heartbeats and window extents on examples that can be checked by eye."""

import pyarrow as pa

import slackwater as sw
from slackwater.disorder.heartbeat import HeartbeatStage


def test_before_at_and_behind_the_heartbeat():
    # section 3: t < h is discarded, t = h goes straight on, t > h waits
    stage = HeartbeatStage(distance=2)
    assert stage.arrive(10) == []  # h = 8
    assert stage.arrive(8) == [8]
    assert stage.arrive(9) == []
    assert stage.arrive(7) == [7]  # it leaves at once, to be dropped
    assert (stage.dropped, stage.heartbeat, stage.buffered_of(0)) == (1, 8, 2)
    assert stage.arrive(12) == [9, 10]  # h = 10


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
    for ts in (100, 98, 110, 104, 112, 113):  # delays 0 2 0 6 0 0
        stage.arrive(ts)
    assert stage.slack == 4  # (6 + 2) / 2


def test_q1_the_largest_reading_of_the_last_30_seconds():
    # each tuple ends the extent (t - 30, t]
    readings = pa.table({"t": [0, 10, 29, 30, 31, 65], "value": [9, 1, 2, 3, 8, 4]})
    query = sw.window(
        sw.Stream("sensors", ts="t"), range="30 units", select={"most": sw.max("value")}
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
        range=3,
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

    def ends(range_, slide, **options):
        query = sw.window(
            sw.Stream("s", order_by="t"),
            range=range_,
            slide=slide,
            select={"n": sw.count()},
            **options,
        )
        return [tuple(row.values()) for row in query.replay(events).results.to_pylist()]

    assert ends("10 units", "10 units") == [(10, 3), (20, 2), (30, 1)]  # [0, 10), [10, 20), ...
    assert ends("10 units", "10 units", bounds="(]") == [(10, 4), (20, 1), (30, 1)]  # (0, 10], ...
    assert ends("10 units", "5 units") == [(5, 2), (10, 4), (15, 3), (20, 1), (30, 1), (35, 1)]
    assert ends("2 units", "10 units") == [
        (10, 1)
    ]  # [8, 10), [18, 20), [28, 30): most lies between
    assert ends(3, 2) == [(5, 2), (10, 3), (27, 3)]  # the last three, at every second event
