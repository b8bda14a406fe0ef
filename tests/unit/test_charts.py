"""What a chart needs of a query: the same however it was cut, saved or spread over shards."""

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.engine.chart_part import chart_part, charts
from slackwater.engine.factory import engine_for, restore
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.kernels.records import KEY, STREAM, TICK
from slackwater.metrics.charts import ChartPart, aggregate_rows, merge
from slackwater.metrics.schema import CHARTS
from slackwater.stats.recent import EDGES, RecentDelays

A, B = (sw.Stream(name, "ts", "500 ms") for name in "ab")
S = sw.Stream("a", "ts")
LEARNS = sw.Recall(0.9, over="5 s")
QUERIES = {
    "slack": sw.join(A, B, on="k", goal=sw.Slack("100 ms")),
    "largest": sw.join(A, B, on="k", goal=sw.MaxSlack()),
    "apart": sw.join(A, B, on="k", goal=sw.NoSlack(synchronize=False)),
    "recall": sw.join(A, B, on="k", goal=LEARNS),
    "measured": sw.join(A, B, on="k", goal=sw.Recall(0.9, over="5 s", model="measured")),
    "eqsel": sw.join(A, B, on="k", goal=sw.Recall(0.9, over="5 s", model="eqsel")),
    "pd": sw.join(A, B, on="k", goal=sw.Recall(0.9, over="5 s", model="pd")),
    "latency": sw.join(A, B, on="k", goal=sw.Latency("200 ms")),
    "quantile": sw.join(A, B, on="k", goal=sw.InputQuantile(0.9)),
    "shedding": sw.join(
        A, B, where="abs(a.x - b.x) < 1", goal=LEARNS, shed=sw.Harvest(budget=2_000, every="1 s")
    ),
    "window": sw.window(
        S, window=sw.Sliding("1 s"), select={"n": sw.count()}, goal=sw.DropRatio(0.05)
    ),
    "aggregate": sw.aggregate(
        S, sw.Stream("b", "ts"), on="k", select={"n": sw.count()}, window=sw.Tumbling("1 s"),
        deadline="1 s", compensate=True, late="emit",
    ),
}  # fmt: skip


def table(seed, rows=2_000, rate=250, longest=400):
    """A third of the events are late by up to `longest` ms."""
    rng = np.random.default_rng(seed)
    ts = np.arange(rows) * 1000 // rate
    late = np.where(rng.random(rows) < 0.3, rng.integers(0, longest, rows), 0)
    return pa.table({
        "ts": ts, "k": rng.integers(0, 5, rows), "x": 10 * rng.random(rows), "arrival": ts + late,
    })  # fmt: skip


def batch_of(query, **options):
    tables = {name: table(i, **options) for i, name in enumerate(query.names)}
    return recorded(query, tables, "arrival")[0]


def engine_of(query, batch):
    return engine_for(query, {n: t.schema for n, t in zip(query.names, batch.tables, strict=True)})


def fed(query, *cuts, **options):
    """The engine when all has arrived, and its output."""
    batch = batch_of(query, **options)
    engine = engine_of(query, batch)
    output = None
    for part in batch.cut([*cuts, len(batch.stream)]):
        more = engine.feed(part)
        output = more if output is None else output
        if output is not more:
            output.extend(more)
    return engine, output


@pytest.mark.compiled
@pytest.mark.parametrize("name", QUERIES)
def test_charts_do_not_depend_on_how_the_input_is_cut(name):
    query = QUERIES[name]
    whole, _ = fed(query)
    cut, _ = fed(query, 1, 2, 700, 1_111, 1_999)
    assert chart_part(whole) == chart_part(cut)
    assert charts(whole).now == 7_996


@pytest.mark.compiled
@pytest.mark.parametrize("name", QUERIES)
def test_charts_are_saved_with_the_engine(name):
    query = QUERIES[name]
    engine, _ = fed(query)
    schemas = dict(zip(query.names, engine.schemas, strict=True))
    assert chart_part(restore(engine.snapshot(), query, schemas)) == chart_part(engine)
    batch = batch_of(query)
    first, rest = batch.cut([len(batch.stream) // 2, len(batch.stream)])
    half = engine_of(query, batch)
    half.feed(first)
    again = restore(half.snapshot(), query, schemas)
    again.feed(rest)
    assert chart_part(again) == chart_part(engine)


@pytest.mark.parametrize("name", QUERIES)
def test_charts_are_small_and_have_every_field(name):
    engine, output = fed(QUERIES[name])
    drawn = charts(engine, output.table)._asdict()
    assert list(drawn) == [metric.name for metric in CHARTS]
    assert len(json.dumps(drawn, allow_nan=False)) < 5_000


def test_nothing_has_come_yet():
    assert charts(engine_of(QUERIES["recall"], batch_of(QUERIES["recall"]))) is None


def local_delays(batch, s):
    """Of stream `s`, how far each event is behind the largest time before it."""
    ts = batch.tables[s].column("ts").to_numpy()
    return np.maximum.accumulate(ts) - ts


def by_edges(delays):
    counts = np.histogram(delays, [*EDGES, 2**62])[0]
    return counts[: np.flatnonzero(counts)[-1] + 1].tolist()


@pytest.mark.parametrize("name", ["slack", "largest", "window"])
def test_delays_without_a_goal_that_learns_are_sampled_and_few_are_all_in_the_sample(name):
    query = QUERIES[name]
    engine, _ = fed(query)
    for s, delays_shown in enumerate(charts(engine).delays.values()):
        counts = by_edges(local_delays(batch_of(query), s))
        assert delays_shown == {"edges": EDGES[: len(counts)], "counts": counts}


def test_delays_of_aggregates_are_those_behind_the_arrival():
    query = QUERIES["aggregate"]
    engine, _ = fed(query)
    rows = batch_of(query).tables[1]
    delays = rows.column("arrival").to_numpy() - rows.column("ts").to_numpy()
    assert charts(engine).delays["b"]["counts"] == by_edges(delays)


def test_delays_of_a_goal_that_learns_them_are_those_it_knows():
    engine, _ = fed(QUERIES["measured"])
    known = engine.statistics.delays
    for s, delays_shown in enumerate(charts(engine).delays.values()):
        assert sum(delays_shown["counts"]) == known.counts[s] > 1_500
        assert delays_shown["counts"][0] == known.histogram[s, 0]
        upper = np.repeat(np.arange(known.top + 1), known.histogram[s, : known.top + 1])
        assert delays_shown["counts"] == by_edges(upper * known.granularity)


def test_a_sample_goes_by_numbers_and_forgets():
    n = 400_000
    delays = np.where(np.arange(n) < 60_000, 1_000, 3)  # they were long once
    events = np.zeros((n, 4), np.int64)
    events[1::2, STREAM] = 1
    events[:3_000, KEY] = TICK
    whole, cut = RecentDelays(2), RecentDelays(2)
    whole.take(0, events, delays)
    for begin, end in pairwise([*range(0, n, 997), n]):
        cut.take(begin, events[begin:end], delays[begin:end])
        if 3_000 < end <= 4_096:  # all of the first ones are in it, but for ticks
            assert cut.counts.sum() == end - 3_000
            assert cut.counts[:, 10].sum() == end - 3_000
    assert whole.state() == cut.state()
    assert np.flatnonzero(whole.counts.any(axis=0)).tolist() == [2]
    spans = 2**17 + n % 2**17
    assert whole.counts.sum(axis=1) == pytest.approx([spans / 2] * 2, rel=0.05)


def test_the_recall_is_that_of_the_last_period_of_result_time():
    engine, output = fed(QUERIES["recall"])
    every = engine.statistics.every
    end = engine.join.time // every * every
    period = range(end - 5_000, end)
    made = sum(int(n) for p in output.made for t, n in zip(p.ts, p.n, strict=True) if t in period)
    lost = sum(
        int(n) for late in output.late for t, n in zip(late.ts, late.lost, strict=True)
        if t in period
    )  # fmt: skip
    assert lost > 0
    assert charts(engine).recall == pytest.approx(made / (made + lost), abs=1e-6)
    assert charts(fed(QUERIES["slack"])[0]).recall is None  # without a period


@pytest.mark.parametrize("name", ["recall", "eqsel", "latency", "quantile"])
def test_the_curve_rises_and_passes_through_what_was_chosen(name):
    engine, _ = fed(QUERIES[name])
    drawn = charts(engine)
    slacks, recalls, latencies = zip(*drawn.curve, strict=True)
    assert slacks[0] == 0
    assert all(a < b for a, b in pairwise(slacks))
    assert all(a <= b for a, b in pairwise(recalls))
    assert recalls[0] < recalls[-1] == 1.0
    assert len(slacks) <= 40
    assert drawn.chosen in drawn.curve
    assert drawn.chosen[0] == engine.reorder.slack
    assert drawn.chosen[2] == drawn.latency
    lead = latencies[0]
    assert list(latencies) == [slack + lead for slack in slacks]


def test_a_slack_that_is_set_by_hand_is_on_the_curve_too():
    engine, _ = fed(QUERIES["recall"])
    engine.set_slack(77)
    drawn = charts(engine)
    assert drawn.chosen[0] == 77
    assert drawn.chosen in drawn.curve
    engine.set_slack(5_000)  # behind the largest delay
    drawn = charts(engine)
    assert drawn.chosen[:2] == [5_000, 1.0]
    assert drawn.curve[-1] == drawn.chosen


def test_the_measured_curve_is_the_share_of_results_that_were_not_later():
    engine, _ = fed(QUERIES["recall"])
    drawn = chart_part(engine)
    recalls = [recall for _, recall in drawn.curve]
    assert recalls == sorted(recalls)
    assert recalls[0] < 0.9
    assert recalls[-1] == 1.0
    assert "of the results of the last" in drawn.slack_reason[0]
    slack, recall = drawn.chosen
    assert recall == pytest.approx(engine.controller.recall_at([slack])[0], abs=1e-6)


def test_a_controller_that_was_mistaken_expects_what_it_has_learnt():
    engine, _ = fed(QUERIES["measured"])
    modelled = [engine.model.recall(point[0]) for point in chart_part(engine).curve]
    engine.controller.scale = 2.0
    for (_, recall), share in zip(chart_part(engine).curve, modelled, strict=True):
        assert recall == pytest.approx(max(0.0, 1 - 2 * (1 - share)), abs=1e-6)


@pytest.mark.parametrize("name", ["slack", "pd", "window", "aggregate"])
def test_there_is_no_curve_without_a_model(name):
    drawn = charts(fed(QUERIES[name])[0])
    assert drawn.curve is None
    assert drawn.chosen is None


def test_leads_and_latency():
    query = QUERIES["slack"]
    tables = {"a": pa.table({"ts": [100, 300], "k": [1, 1], "x": [0.0, 0.0]}),
              "b": pa.table({"ts": [50], "k": [1], "x": [0.0]})}  # fmt: skip
    batch, _ = recorded(query, tables, None)
    for name, latency in (("slack", 350.0), ("apart", 0.0)):
        engine = engine_of(QUERIES[name], batch)
        engine.feed(batch)
        drawn = charts(engine)
        assert (drawn.leads, drawn.latency) == ({"a": 250, "b": 0}, latency)


def test_harvest_fractions():
    query = QUERIES["shedding"]
    engine, _ = fed(query)
    assert engine.shedder.is_shedding
    drawn = charts(engine).harvest
    assert [one["direction"] for one in drawn] == ["a", "b"]
    windows = [one["windows"][0] for one in drawn]
    assert [window["stream"] for window in windows] == ["b", "a"]
    for window in windows:
        assert len(window["basic"]) == 20
        assert window["fraction"] == pytest.approx(sum(window["basic"]) / 20, abs=1e-4)
    assert sum(window["fraction"] for window in windows) < 2.0
    engine.shedder.open_throttle()
    assert {f for one in charts(engine).harvest for f in one["windows"][0]["basic"]} == {1.0}
    assert charts(fed(QUERIES["recall"])[0]).harvest is None


def test_rows_of_aggregates_are_few_and_short():
    time = pa.timestamp("ms", "UTC")
    query = sw.aggregate(
        sw.Stream("r", "t"), sw.Stream("s", "t"), on="k",
        select={"n": sw.count(), "mean": sw.avg("r.v")}, by="r.g", window=sw.Tumbling("1 s"),
        deadline="1 s", late="emit",
    )  # fmt: skip
    rows = {"t": pa.array([100, 200, 1_500], time), "k": [1, 1, 1], "v": [1.0, 2.0, float("nan")],
            "g": ["x" * 500, "y", "y"], "arrival": pa.array([100, 1_200, 1_600], time)}  # fmt: skip
    run = query.replay({"r": pa.table(rows), "s": pa.table(rows)}, arrival="arrival")
    shown = aggregate_rows(query, run.results)
    assert [(one["start"], one["exact"]) for one in shown] == list(
        zip([t.as_py().timestamp() * 1000 for t in run.results["window_start"]],
            run.results["exact"].to_pylist(), strict=True)
    )  # fmt: skip
    first, *_, last = shown
    assert first["end"] - first["start"] == 1_000
    assert first["group"] == {"g": "x" * 60}
    assert first["values"]["n"]["observed"] == 1
    assert last["values"]["mean"]["value"] is None  # not a number
    json.dumps(shown, allow_nan=False)
    many = pa.concat_tables([run.results] * 50)
    assert aggregate_rows(query, many) == aggregate_rows(query, many.slice(many.num_rows - 20))


def test_charts_of_shards_add_up():
    query = QUERIES["recall"]
    engines = [fed(query, rows=rows, longest=longest)[0] for rows, longest in
               ((2_000, 400), (1_500, 80))]  # fmt: skip
    parts = [chart_part(engine) for engine in engines]
    both, each = merge(parts), [merge([one]) for one in parts]
    assert both.now == each[0].now > each[1].now
    for name in "ab":
        alone = [np.array(one.delays[name]["counts"]) for one in each]
        alone[1] = np.pad(alone[1], (0, len(alone[0]) - len(alone[1])))
        assert both.delays[name]["counts"] == sum(alone).tolist()
    found, true = ([getattr(one, what) for one in parts] for what in ("found", "true"))
    assert both.recall == pytest.approx(sum(found) / sum(true), abs=1e-6)
    assert both.chosen in both.curve
    assert both.chosen[0] == max(engine.reorder.slack for engine in engines)
    at_0 = [one.curve[0][1] for one in each]
    assert min(at_0) < both.curve[0][1] < max(at_0)
    assert both.curve[0][1] == pytest.approx(np.average(at_0, weights=true), abs=1e-6)
    assert len(both.curve) <= 40


def test_of_shards_the_one_that_sheds_most_is_shown_and_rows_follow_each_other():
    base = ChartPart("ms", 1, leads={}, delays={}, slack=None)
    one = base._replace(throttle=0.9, harvest=["little"], aggregates=[1, 2])
    other = base._replace(throttle=0.3, harvest=["much"], aggregates=list(range(30)))
    drawn = merge([one, other, base._replace(now=None)])
    assert drawn.harvest == ["much"]
    assert drawn.aggregates == list(range(10, 30))
    assert merge([base]).aggregates is None
    assert merge([]) is None


def test_a_stream_that_is_counted_elsewhere_is_left_out():
    engine, _ = fed(QUERIES["slack"])
    assert isinstance(engine, JoinEngine)
    assert set(chart_part(engine, counted=[True, False]).delays) == {"a"}
