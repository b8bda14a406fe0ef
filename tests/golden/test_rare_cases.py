"""What ordinary inputs hardly ever reach, made on purpose and small enough to check by eye."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import profiles
import slackwater as sw
from golden.behaviour import Case as Recorded
from golden.behaviour import batch_of, given, started
from golden.behaviour_cases import FAR, joined
from helpers import Case, engine_run, naive_losses
from naive import Event
from slackwater.controllers.late_degree import LateDegreeController
from slackwater.disorder.heartbeat import HeartbeatStage
from slackwater.disorder.rings import BucketRings
from slackwater.engine import lateness_curve as curves
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import at_once, recorded
from slackwater.engine.report import columns, truth
from slackwater.events.limits import Limits
from slackwater.events.log import Log
from slackwater.joins import numba_source
from slackwater.kernels import buckets, sorted_windows
from slackwater.kernels import shed as places
from slackwater.kernels.records import BEFORE, NONE, TICK, Index
from slackwater.metrics.prometheus import _number
from slackwater.query.functions import count, sum
from slackwater.stats.novelty import Novelty

plain = pytest.mark.skipif(
    not profiles.PLAIN, reason="compiled, parts of kernels are in those that call them"
)

# ---- what is news


def news(means):
    """After which of these means something is news."""
    novelty = Novelty()
    return [at for at, mean in enumerate(means, 1) if novelty.add(mean)]


def test_two_worse_intervals_or_five_better_ones_are_news():
    """Among equal ones, if they differ by more than 0.02."""
    assert news([1.0] * 30 + [1.024] * 2) == [32]
    assert news([1.0] * 30 + [0.976] * 5) == [35]
    assert news([1.0] * 30 + [1.0199] * 9) == news([1.0] * 30 + [0.9801] * 9) == []


def test_nothing_is_news_before_there_are_twenty_others():
    assert news([1.0] * 20 + [1.5] * 2) == [22]
    assert news([1.0] * 19 + [1.5] * 2) == []


def test_news_is_forgotten_with_what_was_before_it_and_the_past_is_limited():
    novelty = Novelty()
    for mean in [1.0] * 150:
        novelty.add(mean)
    assert len(novelty.means) == 120
    assert [novelty.add(1.024), novelty.add(1.024)] == [0, 2]
    assert novelty.means.tolist() == [1.024, 1.024]


# ---- times too far ahead, ticks, and sums, in windows over one stream


def window_of(strict=False, **options):
    table = pa.table({"ts": [1, 5, 1000, 7, 57, 30], "n": [1] * 6})
    query = sw.window(
        sw.Stream("a", "ts"),
        window=sw.Tumbling(10),
        select={"n": count(), "total": sum("n")},
        goal=sw.Slack(60),
        strict=strict,
        **options,
    )
    return query.replay(a=table)


def test_a_row_may_be_as_far_ahead_as_the_query_says():
    run = window_of(max_jump=50)
    assert run.metrics.rejected == {"too far in the future": 1}
    assert run.results["n"].to_pylist() == [3, 1, 1]
    assert window_of(max_jump=49).metrics.rejected == {"too far in the future": 2}
    assert window_of(max_jump="none").metrics.rejected == {}


def test_strict_takes_no_row_that_is_too_far_ahead():
    with pytest.raises(sw.DataError, match="stream 'a', column ts, row 2: too far in the future"):
        window_of(strict=True, max_jump=50)
    assert window_of(strict=True, max_jump="none").metrics.rejected == {}


def arrive(stage, ts, tick=False):
    key = np.array([TICK if tick else 0], np.int32)
    stage.start(1)
    stage.run(*stage.log.append(np.array([ts]), np.array([0]), [key]))
    return stage.out.ts[stage.out.event != NONE].tolist()


def test_a_tick_moves_the_heartbeat_once_there_are_events_and_is_none_itself():
    stage = HeartbeatStage(distance=10)
    assert arrive(stage, 100, tick=True) == []
    assert (stage.top, stage.count, stage.buffered_of(0)) == (100, 0, 0)
    assert arrive(stage, 95) == []  # h = 90
    assert (stage.top, stage.heartbeat, stage.max_delay) == (100, 90, 5)
    assert arrive(stage, 105, tick=True) == [95]  # h = 95
    assert arrive(stage, 60, tick=True) == []  # it does not go back
    assert (stage.top, stage.heartbeat, stage.count) == (105, 95, 1)


def test_a_tick_says_nothing_about_the_mean():
    stage = HeartbeatStage(heartbeat="mean", recent=10)
    for ts in (10, 14):
        arrive(stage, ts)
    before = stage.heartbeat
    assert arrive(stage, 1000, tick=True) == []
    assert (stage.heartbeat, stage.top) == (before, 1000)


def test_a_sum_that_cannot_be_taken_back_is_an_error():
    """The smallest number of 64 bits has no negative."""
    table = pa.table({"ts": [1, 2, 3, 4], "n": [-(2**63), 1, 1, 1]})
    query = sw.window(
        sw.Stream("a", "ts"), window=sw.Tuples(2), select={"n": sum("n")}, goal=sw.NoSlack()
    )
    with pytest.raises(sw.DataError, match="a sum of whole numbers is beyond 64 bits"):
        query.replay(a=table)


# ---- buckets of events that wait


@plain
@pytest.mark.parametrize(
    ("there", "more", "is_appended", "then"),
    [
        ([], [0, 1], True, [0, 1]),
        ([0], [1, 3], True, [0, 1, 3]),
        ([0, 2], [1, 3], False, [0, 2]),
        ([2], [0, 1], False, [2]),
    ],
)
def test_a_list_is_appended_to_a_bucket_only_if_that_keeps_its_order(
    there, more, is_appended, then
):
    log = Log()
    log.append(np.full(4, 50), np.zeros(4, int), [np.zeros(4, np.int32)])
    rings, records = BucketRings(2, log), log.records()
    rings.insert(0, np.array(there, np.int64))
    rings.insert(1, np.array(more))
    assert buckets.earliest(1, rings.arrays) == more[0]
    taken = buckets.take_bucket(1, rings.arrays, records)
    assert taken == (more[0], more[-1], len(more))
    assert buckets.append_bucket(*taken, 50, 0, rings.arrays, records) == is_appended
    assert rings.contents(0).tolist() == then
    assert (rings.size(0), rings.size(1)) == (len(then), 0)


# ---- joins


def test_an_event_may_have_more_partners_than_there_is_room_for_at_first():
    many = pa.table({"ts": range(1, 1301), "k": [1] * 1300})
    one = pa.table({"ts": [1300, 1301], "k": [1, 2]})
    query = sw.join(
        sw.Stream("a", "ts", 2000), sw.Stream("b", "ts", 2000), on="k", emit="eager",
        goal=sw.Slack(0),
    )  # fmt: skip
    run = query.replay(a=many, b=one)
    assert sorted(run.results["a_ts"].to_pylist()) == list(range(1, 1301))


@pytest.mark.parametrize("options", [{"how": "left"}, {"emit": "eager"}, {"how": "semi"}])
def test_a_condition_that_raises_stops_any_kind_of_join_and_says_where(options):
    a = pa.table({"ts": [1, 2, 3], "x": [1, 0, 2]})
    b = pa.table({"ts": [1, 2, 3], "x": [5, 5, 5]})
    streams = [sw.Stream(name, "ts", 10) for name in "ab"]
    query = sw.join(*streams, where="b.x // a.x > 0", goal=sw.NoSlack(), **options)
    with pytest.raises(
        sw.ConditionError, match="where raised ZeroDivisionError .* row . of stream"
    ):
        query.replay(a=a, b=b)


def test_texts_are_compared_in_a_row():
    x, y = ["u", "v", "w", "u"], ["u", "w", "w", "v"]
    query = sw.join(
        *(sw.Stream(name, "ts", 10) for name in "ab"), where="a.x = b.x = b.y", goal=sw.NoSlack()
    )
    table = pa.table({"ts": [1, 2, 3, 4], "x": x, "y": y})
    found = query.replay(a=table, b=table).results
    pairs = zip(found["a_ts"].to_pylist(), found["b_ts"].to_pylist(), strict=True)
    assert sorted(pairs) == [
        (i + 1, j + 1) for i in range(4) for j in range(4) if x[i] == x[j] == y[j]
    ]


@pytest.mark.parametrize("x", [-7, -6, 0, 6, 7])
@pytest.mark.parametrize("y", [-3, -2, 2, 3])
def test_whole_numbers_are_divided_towards_zero(x, y):
    assert numba_source._div(x, y) == math.trunc(x / y)
    assert numba_source._mod(x, y) == x - y * math.trunc(x / y) == math.fmod(x, y)


@pytest.mark.parametrize("pipeline", ["clocked", "icde16"])
@pytest.mark.parametrize("bounds", ["[]", "[)"])
def test_losses_with_events_between_two_windows_are_those_of_the_oracle(pipeline, bounds):
    """Windows of 24, 4 and 13 that end at multiples of 10: events may be in none of the second."""
    rng = np.random.default_rng(5)
    ts = np.repeat(np.arange(0, 44, 2), 3)
    times = np.maximum(0, ts - rng.choice([0, 0, 0, 9, 17], len(ts)))
    turn, x = rng.integers(0, 3, len(ts)), rng.integers(0, 5, len(ts)) // 4
    events = [
        Event(int(t), int(s), n, (int(k), int(k), 0))
        for n, (t, s, k) in enumerate(zip(times, turn, x, strict=True))
    ]
    case = Case(events, [24, 4, 13], "chain", 1, bounds, 10, pipeline=pipeline)
    run = engine_run(case, retention=10**6)
    wanted = naive_losses(case)
    found = run.late.select(["stream", "ts", "late_by", "kept", "lost"]).to_pylist()
    as_rows = [
        ("abc".index(r["stream"]), r["ts"], r["late_by"], r["kept"], r["lost"]) for r in found
    ]
    assert as_rows == wanted
    assert len([lost for *_, lost in wanted if lost > 0]) > 2


LEARNT = sw.Recall(0.9, over=200, every=40)
ROOM = {
    "star": Recorded(joined(3, on=["a.k = b.k", "a.x = c.y"], goal=LEARNT), n=60),
    "condition": Recorded(joined(on=None, where="abs(a.x - b.x) <= 1", goal=LEARNT), n=70),
    "key": Recorded(joined(goal=LEARNT), delays=FAR),
}


@pytest.mark.parametrize("name", ROOM)
def test_how_much_room_there_is_at_first_changes_nothing(name):
    def answer(limits):
        case = ROOM[name]._replace(limits=limits)
        batch, _ = batch_of(case)
        engine = started(case, batch)
        output = engine.feed(batch)
        output.extend(engine.flush())
        return given(output, case.query.names), engine.metrics()

    small = Limits(smallest_store=16, smallest_table=4, fewest_buckets=8, results_at_once=16)
    assert answer(small) == answer(Limits())


# ---- who leads


def test_a_stream_leads_by_its_local_time_in_steps_once_both_have_begun():
    goal = sw.Recall(0.9, model="late-degree", granularity=10)
    controller = LateDegreeController(joined(goal=goal), goal)

    def leads(*local):
        return controller._leads(SimpleNamespace(local=local))

    assert [leads(70, 30), leads(30, 74), leads(5, 5)] == [(4, 0), (0, 4), (0, 0)]
    assert [leads(BEFORE, 30), leads(30, BEFORE)] == [(0, 0)] * 2


# ---- curves of lateness


def test_bins_of_a_curve_become_wider_where_there_would_be_too_many(monkeypatch):
    case = Recorded(joined(goal=sw.Slack(0), select="count"), n=60)
    batch, _ = batch_of(case)
    known = columns(truth(case.query, batch)[0].made)[:2]
    fine = curves.lateness_curve(case.query, batch, known, 205, 50)
    assert (fine.width, fine.over, fine.every, fine.is_exact) == (5, 205, 50, True)
    monkeypatch.setattr(curves, "_MOST_ROWS", 10)
    wide = curves.lateness_curve(case.query, batch, known, 205, 50)
    assert (wide.width, wide.over, wide.every, wide.is_exact) == (20, 220, 60, False)
    for slack in (0, 10, 40, 90):
        assert wide.lost(slack) == fine.lost(slack)
        assert wide.recall(slack) == fine.recall(slack)


# ---- load shedding


CHAIN = {
    name: pa.table({
        "ts": range(s, 90, 4), "k": [(t // 4) % 3 for t in range(s, 90, 4)],
        "x": [(t // 4) % 2 for t in range(s, 90, 4)],
    })
    for s, name in enumerate("abcd")
}  # fmt: skip


def along_a_chain(select, sheds, sample):
    """An engine that had the chain, and what it made; it harvests what is chosen, if it sheds."""
    query = sw.join(
        *(sw.Stream(name, "ts", 29) for name in "abcd"),
        on=["a.k = b.k", "b.x = c.x", "c.k = d.k"],
        select=select,
        shed=sw.Harvest(budget=1e15, every=10**6, basic_window=10),
        goal=sw.NoSlack(),
    )
    engine = JoinEngine(query, {name: table.schema for name, table in CHAIN.items()})
    engine.shedder.shed.number[places.SAMPLE] = sample
    engine.shedder.shed.ctl[places.SHEDDING] = sheds
    for start in range(4):
        for s in range(4):
            if s != start:
                engine.shedder.segments.choose(start, s, [0, 2] if s < 2 else [0, 1])
    output = engine.feed(recorded(query, CHAIN, None)[0])
    output.extend(engine.flush())
    return engine, [np.concatenate(column).tolist() for column in zip(*output.made, strict=True)]


def test_what_is_harvested_along_a_chain_of_four_is_counted_as_it_is_made():
    _, made = along_a_chain("*", sheds=1, sample=0.0)
    assert along_a_chain("count", sheds=1, sample=0.0)[1] == made
    assert np.sum(made[1]) > 300


def test_what_is_learnt_along_a_chain_of_four_is_the_same_when_results_are_counted():
    (one, made), (two, counted) = (along_a_chain(s, sheds=0, sample=1.0) for s in ("*", "count"))
    assert counted == made
    found, wanted = two.shedder.shed, one.shedder.shed
    assert wanted.joined.sum() > 1_000
    assert found.joined.ravel() == pytest.approx(wanted.joined.ravel())
    assert found.passed[places.FIRST].tolist() == wanted.passed[places.FIRST].tolist()
    # a later step is entered less often where its events are only counted
    assert 0 < found.passed[places.LATER].sum() < wanted.passed[places.LATER].sum()


@plain
def test_sorted_windows_take_each_others_place_when_the_room_is_used_up():
    """Room for 25 events of the second stream, behind that of the first."""
    slot = np.full((2, 4, 4), NONE)
    index = Index(
        None, None, None, None, slot, np.array([[0, 25, 0], [25, 25, 0]]), None, None
    )  # fmt: skip
    begins = []
    for g, n in enumerate((10, 8, 7)):
        begins.append(sorted_windows._allocate(1, n, index))
        slot[1, g] = g, begins[-1], n, 0
    assert begins == [25, 35, 43]
    assert sorted_windows._allocate(1, 9, index) == 25  # the first of them has to go
    assert slot[1, :, 0].tolist() == [NONE, 1, 2, NONE]
    assert sorted_windows._allocate(1, 2, index) == 34  # and with one place the second
    assert slot[1, :, 0].tolist() == [NONE, NONE, 2, NONE]
    assert index.room.tolist() == [[0, 25, 0], [25, 25, 11]]


def test_where_load_is_measured_a_recording_is_cut_into_the_intervals_of_the_measurement():
    arrivals = [3, 5, 13, 14, 22, 23, 50, 63]
    query = sw.join(
        sw.Stream("a", "ts", 10), sw.Stream("b", "ts", 10), on="k", goal=sw.NoSlack(),
        shed=sw.Harvest(every=10),
    )  # fmt: skip
    one = pa.table({"ts": arrivals, "k": [1] * 8, "at": arrivals})
    batch, _ = recorded(query, {"a": one, "b": one.slice(0, 0)}, "at")
    engine = JoinEngine(query, {"a": one.schema, "b": one.schema})
    parts = [part.arrival.tolist() for part in at_once(batch, engine)]
    assert [part for part in parts if part] == [[3, 5], [13, 14, 22], [23], [50], [63]]
    assert [*itertools.chain(*parts)] == arrivals
    fixed = JoinEngine(replace(query, shed="off"), {"a": one.schema, "b": one.schema})
    assert [part.arrival.tolist() for part in at_once(batch, fixed)] == [arrivals]


# ---- metrics


def test_prometheus_writes_what_has_no_end():
    assert [_number(x) for x in (math.inf, -math.inf, 2.0, 0.5)] == ["+Inf", "-Inf", "2", "0.5"]
