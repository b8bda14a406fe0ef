"""What the words mean, measured on small seeded streams: the figures of docs/concepts.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from slackwater.disorder.reorder import Reorder
from slackwater.engine.replay import Run
from slackwater.kernels.records import F64, I64
from slackwater.metrics.counters import Metrics
from slackwater.query.aggregate import aggregate
from slackwater.query.functions import count
from slackwater.query.goals import Goal, InputQuantile, NoSlack, Recall, Slack
from slackwater.query.join import JoinQuery, join
from slackwater.query.shedding import Harvest, RandomDrop, SheddingOption, TailDrop
from slackwater.query.stream import Stream
from slackwater.query.window_goals import Deadline
from slackwater.query.windows import Tumbling
from slackwater.testing.workloads import uniform_keys
from slackwater_lab.papers.overload import Workload, query_of
from slackwater_lab.synthetic import drifting_streams, zipf_streams

SECOND = 1000  # in units
TARGET = 0.95
_SLACKS_MS = (0, 10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000, 5000)


# ---- one stream


@dataclass(frozen=True)
class Arriving:
    """A stream in the order of arrival; times in seconds."""

    ts: F64
    arrival: F64

    @property
    def local(self) -> F64:
        """The largest time so far."""
        return np.maximum.accumulate(self.ts)

    @property
    def delay(self) -> F64:
        """How far each event is behind its own stream."""
        return self.local - self.ts


def one_stream(seed: int, seconds: int = 15, per_second: int = 4) -> Arriving:
    """A few events, one in four of them late."""
    rng = np.random.default_rng(seed)
    ts = np.arange(seconds * per_second) / per_second
    late = rng.random(len(ts)) < 0.25
    arrival = ts + np.where(late, 0.3 + rng.exponential(1.2, len(ts)), 0.0)
    order = np.argsort(arrival, kind="stable")
    return Arriving(ts[order].round(3), arrival[order])


@dataclass(frozen=True)
class Sorted:
    """What K-slack lets out, in that order; times in seconds."""

    slack: float
    ts: F64
    left: F64  # when
    is_late: np.ndarray[tuple[int], np.dtype[np.bool_]]
    wait: float  # of an event, on average


def through_slack(stream: Arriving, slack: float) -> Sorted:
    """The events of a stream behind a K-slack buffer."""
    stage = Reorder(1, round(slack * SECOND))
    order: list[int] = []
    left: list[float] = []
    for ts, now in zip(stream.ts, stream.arrival, strict=True):
        gone = stage.arrive(0, round(ts * SECOND))
        order += gone
        left += [now] * len(gone)
    places, times = np.array(order), np.array(left)  # the last ones still wait
    ts = stream.ts[places]
    late = ts < np.maximum.accumulate(ts)
    return Sorted(slack, ts, times, late, float(np.mean(times - stream.arrival[places])))


# ---- two streams


@dataclass(frozen=True)
class Lead:
    """Two streams, one of which falls behind for a while; times in seconds."""

    arrival: F64
    local: tuple[F64, F64]
    waiting: I64  # events of the first that wait for the second


def two_streams() -> Lead:
    """Ten events a second each; the second is up to 6 s behind between 10 and 30 s."""
    ticks = np.arange(0, 40, 0.1)
    behind = np.interp(ticks, [10, 16, 24, 30], [0, 6, 6, 0])
    stage = Reorder(2)
    measured: list[tuple[float, float, int]] = []
    for now, lag in zip(ticks, behind, strict=True):
        for stream, ts in ((0, now), (1, max(now - lag, 0))):
            stage.arrive(stream, round(ts * SECOND))
        measured.append((stage.local(0), stage.local(1), len(stage.in_sync(0))))
    first, second, waiting = (np.array(column) for column in zip(*measured, strict=True))
    return Lead(ticks, (first / SECOND, second / SECOND), waiting)


@dataclass(frozen=True)
class Pairs:
    """A small join: events by time, and its results; times in seconds."""

    a: F64
    b: F64
    late_event: float  # of a
    in_time: list[tuple[float, float]]
    late: list[tuple[float, float]]
    window: float


def small_join() -> Pairs:
    """Two streams of a few events, one of which comes late."""
    a, b = [1.0, 3.5, 5.6, 7.6, 9.0, 11.0], [0.4, 2.2, 4.6, 6.4, 8.6, 10.2]
    late_event, window = 5.6, 1.5
    tables = {
        name: pa.table({
            "ts": [round(t * SECOND) for t in times],
            "at": [round((t + (4.0 if t == late_event else 0.0)) * SECOND) for t in times],
        })
        for name, times in (("a", a), ("b", b))
    }  # fmt: skip
    streams = (Stream(name, "ts", f"{window} s") for name in tables)
    query = join(*streams, goal=Slack("500 ms"), late="emit", retention="10 s")
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for row in query.replay(tables, arrival="at").results.to_pylist():
        found[row["late"]].append((row["a_ts"] / SECOND, row["b_ts"] / SECOND))
    return Pairs(np.array(a), np.array(b), late_event, found[False], found[True], window)


# ---- quality


def three_way(goal: Goal) -> JoinQuery:
    """The join of D×3 (ICDE16), counted."""
    names = ("s1", "s2", "s3")
    streams = (Stream(name, "ts", "5 seconds") for name in names)
    return join(*streams, on="a1", goal=goal, select="count")


@dataclass(frozen=True)
class Course:
    """A goal over time; times in seconds, slack in ms."""

    name: str
    time: F64
    recall: F64
    slack_time: F64
    slack: F64
    phi: float
    average_slack: float


def _course(name: str, run: Run, begin: int) -> Course:
    report = run.report(TARGET)
    series, slack = report.measurements, run.slack
    ends = [*slack["ts"].to_pylist(), series["ts"][-1].as_py()]
    values = slack["k"].to_pylist()
    return Course(
        name,
        (series["ts"].to_numpy() - begin) / SECOND,
        series["recall"].to_numpy(),
        (np.array(ends) - begin) / SECOND,
        np.array([*values, values[-1]], float),
        report.phi,
        report.average_slack,
    )


def over_time(seed: int, minutes: float) -> tuple[list[Course], float]:
    """A fixed slack that suits the first half, and a recall; and when the delays change [s]."""
    tables = drifting_streams(minutes, seed, "step")
    begin = min(table["ts"].to_numpy().min() for table in tables.values())
    half = begin + round(minutes * 30 * SECOND)
    before = {
        name: table.filter(pa.array(table["arrival"].to_numpy() < half))
        for name, table in tables.items()
    }
    for slack in _SLACKS_MS:  # the smallest that would have done until now
        fixed = Slack(f"{slack} ms")
        if three_way(fixed).replay(before, arrival="arrival").report(TARGET).phi >= 0.97:
            break
    goals: dict[str, Goal] = {
        f"fixed, {fixed.length}": fixed,
        f"Recall({TARGET:g})": Recall(TARGET),
    }
    courses = [
        _course(name, three_way(goal).replay(tables, arrival="arrival"), int(begin))
        for name, goal in goals.items()
    ]
    return courses, (half - begin) / SECOND


@dataclass(frozen=True)
class Price:
    """What a goal gave and what it cost."""

    recall: float
    latency: float  # ms


def curve(seed: int, minutes: float) -> dict[str, list[Price]]:
    """Recall by latency: any fixed slack, recalls, and quantiles of delays."""
    tables = zipf_streams(minutes, seed)
    goals: dict[str, Sequence[Goal]] = {
        "fixed slack": [Slack(f"{slack} ms") for slack in _SLACKS_MS],
        "Recall": [Recall(target, over="10 s") for target in (0.9, 0.95, 0.99)],
        "InputQuantile": [InputQuantile(target) for target in (0.9, 0.95, 0.99)],
    }
    found: dict[str, list[Price]] = {}
    for name, several in goals.items():
        for goal in several:
            report = three_way(goal).replay(tables, arrival="arrival").report()
            found.setdefault(name, []).append(Price(report.recall, report.average_latency))
    return found


@dataclass(frozen=True)
class Fates:
    """What became of events and of true results, as shares."""

    slack: str
    events: tuple[float, float, float]  # in order, late but kept, late and dropped
    results: tuple[float, float, float]  # in time, late, never


def fates(seed: int, rows: int) -> Iterator[Fates]:
    """Two streams under several slacks; late results are emitted, rows kept 2 s for them."""
    tables = {
        name: uniform_keys(rows, seed + i, 200, keys=20, mean_delay_ms=1000)
        for i, name in enumerate("ab")
    }
    streams = [Stream(name, "ts", "1 second") for name in tables]
    query = join(*streams, on="k", goal=NoSlack(), late="emit", retention="2 s")
    exact = replace(query, goal=NoSlack(), retention="1 hour")
    whole = exact.replay(tables, arrival="arrival").metrics
    true = whole.produced + whole.lost
    for slack in ("0 ms", "200 ms", "1 s", "3 s"):
        metrics = replace(query, goal=Slack(slack)).replay(tables, arrival="arrival").metrics
        events = metrics.in_order, metrics.late_kept, metrics.late_dropped
        results = metrics.produced, metrics.lost, true - metrics.produced - metrics.lost
        yield Fates(slack, _shares(events, metrics.arrivals), _shares(results, true))


def _shares(parts: tuple[int, int, int], whole: int) -> tuple[float, float, float]:
    first, second, third = parts
    return first / whole, second / whole, third / whole


# ---- shedding and compensation


def shedding(seed: int, seconds: int, budgets: Sequence[int]) -> dict[str, list[float]]:
    """The share of the results by comparisons per second, for each way to leave something out."""
    tables = Workload(rates=(50.0,), seconds=seconds).tables(seed)

    def metrics_of(shed: SheddingOption) -> Metrics:
        return query_of(3, shed).replay(tables).metrics

    whole = metrics_of("off").produced
    ways: Mapping[str, type[Harvest | RandomDrop | TailDrop]] = {
        "harvest": Harvest,
        "random drop": RandomDrop,
        "tail drop": TailDrop,
    }
    options: dict[str, dict[str, str]] = {"harvest": {"index": "none"}}
    return {
        name: [
            metrics_of(way(budget=budget, **options.get(name, {}))).produced / whole  # type: ignore[arg-type]
            for budget in budgets
        ]
        for name, way in ways.items()
    }


@dataclass(frozen=True)
class Answers:
    """Windows by their end (s): observed at the deadline, emitted, and true values."""

    end: F64
    observed: F64
    emitted: F64
    low: F64
    high: F64
    true: F64

    @property
    def inside(self) -> float:
        """How often the truth lies in the interval."""
        return float(np.mean((self.low <= self.true) & (self.true <= self.high)))


def early_answers(seed: int, windows: int, warm_up: int = 50) -> Answers:
    """Results in windows of 200 ms, emitted 50 ms after their end; events are up to 100 ms late."""
    rng = np.random.default_rng(seed)
    rows = 200 * (windows + warm_up)
    ts = np.arange(rows)
    tables = {
        name: pa.table({
            "ts": ts, "k": rng.integers(0, 20, rows), "at": ts + rng.integers(0, 101, rows),
        })
        for name in ("trades", "quotes")
    }  # fmt: skip
    streams = (Stream(name, "ts") for name in tables)
    query = aggregate(
        *streams, on="k", select={"n": count()}, window=Tumbling("200 ms"),
        deadline=Deadline("50 ms", after="end"), compensate=True, late="emit",
    )  # fmt: skip
    run = query.replay(tables, arrival="at")
    true = {row["window_end"]: row["n"] for row in run.exact.to_pylist()}
    early = [row for row in run.early.to_pylist()[warm_up:] if row["window_end"] in true]
    columns = {
        name: np.array([row[name] for row in early], float) for name in run.early.column_names
    }
    ends = columns["window_end"]
    return Answers(
        ends / SECOND, columns["n_observed"], columns["n"], columns["n_low"], columns["n_high"],
        np.array([true[end] for end in ends], float),
    )  # fmt: skip
