"""The speed of the core: `slackwater bench core`, and its limits (benchmarks/README.md).

Data is made and compilation done outside the timing; each run has a fresh engine; the best of
three counts, because others on the machine only ever make a run slower. Names never change, so that
figures can be compared across versions. ``quick`` runs the same cases on little data, to see that
they work: fixed costs rule there, so nothing has to be reached.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.controllers.controller import Controller, Interval
from slackwater.controllers.factory import controller_for
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.jobs.measurement import Measurement
from slackwater.query.goals import NoSlack, Recall, Slack
from slackwater.query.join import JoinQuery, join
from slackwater.query.shedding import Harvest
from slackwater.query.stream import Stream
from slackwater.shedding import harvest_search as harvest
from slackwater.testing.workloads import soccer, uniform_keys
from slackwater_lab.benches import windows as window_bench
from slackwater_lab.benches.aggregates import Aggregates
from slackwater_lab.benches.join_kinds import asof, eager, three_at_once
from slackwater_lab.benches.metrics_lines import MetricsLines
from slackwater_lab.benches.timed import CoreOptions, Timed
from slackwater_lab.papers.harvest import random_case, seconds_of
from slackwater_lab.papers.overload import Workload, query_of
from slackwater_lab.synthetic import star_streams, zipf_streams

_MICRO_BATCH = 100_000  # rows


@dataclass(frozen=True)
class CoreBenchmark:
    """One benchmark; it may yield several measurements."""

    title: str
    measure: Callable[[CoreOptions], Iterator[Measurement]]


# ---- cases


def _two_way(options: CoreOptions, select: str, name: str, floor: float) -> Iterator[Measurement]:
    timed = Timed(*_pairs(options, select)).run(options.runs)
    yield Measurement(name, timed.rows_per_second, "rows/s", floor=options.at_least(floor))


def _pairs(
    options: CoreOptions, select: str, window_ms: int = 2_000, keys: int = 20_000
) -> tuple[JoinQuery, dict[str, pa.Table]]:
    """Two streams of 10,000 rows/s on one key; about one partner in each window."""
    rows = options.size(1_000_000)
    streams = (Stream("a", ts="ts", window=window_ms), Stream("b", ts="ts", window=window_ms))
    query = JoinQuery(streams, "k", goal=Slack("1 s"), select=select)  # type: ignore[arg-type]
    tables = {
        stream.name: uniform_keys(rows, seed=2 * options.seed + i, keys=keys)
        for i, stream in enumerate(streams)
    }
    return query, tables


def _three_way(options: CoreOptions) -> Iterator[Measurement]:
    streams = [Stream(name, ts="ts", window="1 s") for name in "abc"]
    query = join(*streams, on="k", goal=Slack("1 s"), select="count")
    tables = {
        stream.name: uniform_keys(
            options.size(200_000), seed=3 * options.seed + i, rate_per_s=1_000, keys=100
        )
        for i, stream in enumerate(streams)
    }
    timed = Timed(query, tables).run(options.runs)
    floor = options.at_least(3_000_000)
    yield Measurement("three-way counting", timed.rows_per_second, "rows/s", floor=floor)


def _dx3(options: CoreOptions) -> Iterator[Measurement]:
    streams = [Stream(name, ts="ts", window="5 s") for name in ("s1", "s2", "s3")]
    query = join(*streams, on="a1", goal=Slack("1 s"), select="count")
    tables = zipf_streams(1 if options.quick else 30, options.seed)
    waiting = Timed(query, tables).run(options.runs)
    ceiling = options.at_most(1.0)
    yield Measurement("D×3, K = 1 s: time", _round(waiting.best), "s", ceiling=ceiling)
    yield Measurement("D×3, K = 1 s: results", waiting.metrics.produced, "results")
    at_once = Timed(replace(query, goal=NoSlack()), tables).run(options.runs)
    yield Measurement("D×3, K = 0: time", _round(at_once.best), "s")
    yield Measurement("D×3, K = 0: results", at_once.metrics.produced, "results")


def _condition(options: CoreOptions) -> Iterator[Measurement]:
    """Each event is tested against all events in the other window: those pairs are counted."""
    streams = (Stream("a", ts="ts", window="5 s"), Stream("b", ts="ts", window="5 s"))
    condition = "dist(a.x, a.y, b.x, b.y) < 5"
    query = join(*streams, where=condition, goal=Slack("1 s"), select="count")
    tables = soccer(options.size(300), options.seed)
    every_pair = Timed(replace(query, where=None), tables).run().metrics
    tested = every_pair.produced + every_pair.lost  # a late event is tested too: what did it lose?
    rate = round(tested / Timed(query, tables).run(options.runs).best)
    floor = options.at_least(300_000_000)
    yield Measurement("two-way dist() < 5", rate, "evaluations/s", floor=floor)


_TINY = """
import slackwater as sw
rows = {"ts": [1, 2, 3], "k": [1, 1, 2]}
query = sw.join(sw.Stream("a", ts="ts", window=5), sw.Stream("b", ts="ts", window=5), on="k")
import pyarrow as pa
run = query.replay({"a": pa.table(rows), "b": pa.table(rows)})
assert run.results.num_rows == 5
"""


def _cold_start(options: CoreOptions) -> Iterator[Measurement]:
    """A fresh process; what it needs was compiled and kept on disk by the first one."""
    seconds = []
    for _ in range(1 + options.runs):
        start = perf_counter()
        subprocess.run([sys.executable, "-c", _TINY], check=True)
        seconds.append(perf_counter() - start)
    yield Measurement("cold start", _round(min(seconds[1:])), "s", ceiling=options.at_most(2.0))


def _window_independence(options: CoreOptions, select: str, name: str) -> Iterator[Measurement]:
    window_ms, keys = 2_000, 20_000
    span_ms = options.size(1_000_000) // 10
    # Ten times the window find ten times the partners, but for the time windows take to fill: an
    # event at t has min(t, window) behind it. So many keys give the same number of results.
    behind = [w * (span_ms - w / 2) for w in (window_ms, min(10 * window_ms, span_ms))]
    many_keys = round(keys * behind[1] / behind[0])
    short = Timed(*_pairs(options, select, window_ms, keys))
    long = Timed(*_pairs(options, select, 10 * window_ms, many_keys))
    for _ in range(options.runs):  # in turns, so that a busy moment of the machine hits both
        short.run()
        long.run()
    slower = _round(long.best / short.best)
    yield Measurement(
        f"ten times the window, {name}: time", slower, "times", ceiling=options.at_most(1.5)
    )
    more = long.metrics.produced / max(1, short.metrics.produced)
    yield Measurement(f"ten times the window, {name}: results", _round(more), "times")


def _goal(options: CoreOptions) -> Iterator[Measurement]:
    """What it costs to choose K: the same join with the K that the goal would choose anyway."""
    query, tables = _pairs(options, "count")
    with_goal = Timed(replace(query, goal=Recall(0.95)), tables).run()
    given = Timed(replace(query, goal=Slack(with_goal.metrics.slack)), tables)
    for _ in range(options.runs):
        with_goal.run()
        given.run()
    slower = _round(with_goal.best / given.best)
    yield Measurement(
        "all bookkeeping of a goal: time", slower, "times", ceiling=options.at_most(1.2)
    )


def _lines(options: CoreOptions) -> Iterator[Measurement]:
    """What metrics lines cost; those of a goal that learns have most to show."""
    query, tables = _pairs(options, "*")
    lines = MetricsLines(replace(query, goal=Recall(0.95)), tables, options.size(_MICRO_BATCH))
    for _ in range(options.runs):
        lines.run()
    ceiling = options.at_most(1.01)
    yield Measurement("metrics lines: time", _round(lines.best), "times", ceiling=ceiling)
    yield Measurement("metrics lines: size", lines.size, "bytes", ceiling=options.at_most(8_192))


def _adaptation(options: CoreOptions) -> Iterator[Measurement]:
    """How long a controller takes to choose K; four streams, delays of up to 20 s."""
    tables = star_streams(1 if options.quick else 30, options.seed)
    streams = [Stream(name, ts="ts", window="3 s") for name in tables]
    equal = ["s1.a1 = s2.a1", "s1.a2 = s3.a2", "s1.a3 = s4.a3"]
    query = join(*streams, on=equal, goal=Recall(0.99), select="count")
    batch, _ = recorded(query, tables, "arrival")
    schemas = dict(zip(query.names, (t.schema for t in batch.tables), strict=True))
    clocked = Clocked(controller_for(query))
    engine = JoinEngine(query, schemas, clocked)
    engine.feed(batch)
    average = _round(1000 * sum(clocked.seconds[1:]) / max(1, len(clocked.seconds) - 1))
    yield Measurement("adaptation step, m = 4", average, "ms", ceiling=options.at_most(0.2))


def _sliding(options: CoreOptions) -> Iterator[Measurement]:
    """A window over one stream that ends with each event."""
    speed = window_bench.sliding(options.size(2_000_000), options.runs, options.seed)
    yield Measurement(
        "sliding MAX over 30 s", round(speed), "events/s", options.at_least(8_000_000)
    )


def _slack_buffer(options: CoreOptions) -> Iterator[Measurement]:
    """Whether the slack buffer of one stream is as fast when it is long."""
    sizes = [10**e for e in range(3, 5 if options.quick else 8)]
    lines = list(window_bench.buffer_sizes(sizes, min(3, options.runs), options.seed))
    yield from lines
    slowest = max(line.value for line in lines) / min(line.value for line in lines)
    ceiling = options.at_most(1.5)
    yield Measurement("slack buffer, slowest by fastest", _round(slowest), "times", ceiling=ceiling)


def _idle_shedding(options: CoreOptions) -> Iterator[Measurement]:
    """What it costs that load could be shed, when there is CPU to spare."""
    condition, tables = _epsilon(options)
    for name, query, data, shed in (
        ("materialising", *_pairs(options, "*"), Harvest()),
        ("counting", *_pairs(options, "count"), Harvest()),
        ("an ε-join of three", condition, tables, Harvest()),
        ("the same without index", condition, tables, Harvest(index="none")),
    ):
        off = Timed(query, data)
        on = Timed(replace(query, shed=shed), data)
        for _ in range(2 * options.runs):  # in turns
            off.run()
            on.run()
        slower = _round(on.best / off.best)
        ceiling = options.at_most(1.03)
        yield Measurement(f"shedding at z = 1, {name}: time", slower, "times", ceiling=ceiling)


def _epsilon(options: CoreOptions) -> tuple[JoinQuery, dict[str, pa.Table]]:
    """The join of GrubJoin VI-B, all of it."""
    work = Workload(rates=(150.0,), seconds=options.size(60) or 2)
    tables = work.tables(options.seed)
    return query_of(3, "off"), {
        name: table.append_column("arrival", table["ts"]) for name, table in tables.items()
    }


def _harvest_setting(options: CoreOptions) -> Iterator[Measurement]:
    """How long it takes to set the harvest fractions; the paper needs 10 ms for m = 5."""
    rng = np.random.default_rng(options.seed)
    for m, n, ceiling in ((3, 10, 0.1), (5, 20, 1.0)):
        cases = [random_case(rng, m, n, correlated=True) for _ in range(20)]
        slowest = 0.0
        for known in cases:
            budget = 0.25 * harvest.cost(harvest.full(known), known)
            slowest = max(slowest, seconds_of(partial(harvest.choose, known, budget), 0.005))
        name = f"harvest fractions, m = {m}, n = {n}"
        yield Measurement(name, _round(1000 * slowest), "ms", ceiling=options.at_most(ceiling))


def _compensated(options: CoreOptions) -> Iterator[Measurement]:
    """Aggregates of joined windows, and what it costs to compensate them."""
    for length, windows, warm_up in ((10, 300, 320), (100, 60, 40)):
        aggregates = Aggregates(
            options.size(windows) or 2, length, options.size(warm_up) or 2, options.seed
        )
        for _ in range(options.runs):  # in turns
            for kind in (None, "aema", "mlp", "delays"):
                aggregates.run(kind)
        name = f"aggregates of {length} ms"
        yield Measurement(name, round(aggregates.rows / aggregates.best[None]), "rows/s")
        slower = _round(aggregates.best["aema"] / aggregates.best[None])
        ceiling = options.at_most(1.1)
        yield Measurement(f"{name}, AEMA: time", slower, "times", ceiling=ceiling)
        time = _round(1000 * aggregates.report_seconds("mlp"))
        yield Measurement(f"{name}, mlp: telling", time, "ms", ceiling=options.at_most(0.2))
        for kind in ("mlp", "delays"):
            more = _round(1000 * aggregates.extra_seconds(kind))  # type: ignore[arg-type]
            yield Measurement(f"{name}, {kind}: a window", more, "ms")


class Clocked:
    """A controller that notes how long it took."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self.seconds: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._controller, name)

    def next_slack(self, interval: Interval) -> int:
        """As the controller does."""
        start = perf_counter()
        slack = self._controller.next_slack(interval)
        self.seconds.append(perf_counter() - start)
        return slack


def _round(value: float) -> float:
    return round(value, 4)


CASES = (
    CoreBenchmark(
        "two-way join",
        partial(_two_way, select="*", name="two-way materialising", floor=5_000_000),
    ),
    CoreBenchmark(
        "two-way join, counting",
        partial(_two_way, select="count", name="two-way counting", floor=7_000_000),
    ),
    CoreBenchmark("three-way join, counting", _three_way),
    CoreBenchmark("pairs at once", eager),
    CoreBenchmark("three streams at once", three_at_once),
    CoreBenchmark("an as-of join", asof),
    CoreBenchmark("D×3 of ICDE16", _dx3),
    CoreBenchmark("a condition on each pair", _condition),
    CoreBenchmark("a goal beside a fixed slack", _goal),
    CoreBenchmark("metrics lines of a join", _lines),
    CoreBenchmark("choosing K", _adaptation),
    CoreBenchmark("a window over one stream", _sliding),
    CoreBenchmark("a long slack buffer", _slack_buffer),
    CoreBenchmark("shedding that is not needed", _idle_shedding),
    CoreBenchmark("setting harvest fractions", _harvest_setting),
    CoreBenchmark("compensated aggregates", _compensated),
    CoreBenchmark("cold start", _cold_start),
    CoreBenchmark(
        "ten times the window, counting",
        partial(_window_independence, select="count", name="counting"),
    ),
    CoreBenchmark(
        "ten times the window",
        partial(_window_independence, select="*", name="materialising"),
    ),
)
