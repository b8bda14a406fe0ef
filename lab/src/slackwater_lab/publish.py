"""What a user publishes: windows over the results of a join, each written once, on Spark.

Two streams are calm, then their delays grow by a factor of eight, then they are calm again. Results
are counted in windows (append mode), by Spark's own join with some watermark delays and by ours
with some goals; a micro-batch has two seconds of arrivals, and in a second run five. Of each window
is noted how complete it was, and how long after its end it was written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.kernels.records import I64
from slackwater.query.goals import Recall
from slackwater.query.join import join
from slackwater.query.stream import Stream
from slackwater.testing.workloads import arriving, generator
from slackwater_lab.experiment import Cell, Column, Experiment, Findings, Setting, Table
from slackwater_lab.plots import Panel, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyspark.sql import DataFrame, SparkSession

GAMMAS = (0.95, 0.99)
WATERMARKS_S = {2: (2, 10, 18, 30), 5: (10, 18)}  # by the length of a micro-batch
PHASES = ("calm", "delays grow", "calm again")
_MEAN_DELAYS_MS = (500.0, 4_000.0, 500.0)
_PHASE_S = 240
_QUICK_PHASE_S = 40
_RATE_PER_S, _KEYS = 100, 50
_JOIN_S, _WINDOW_S = 2, 10
_STATE = "spark.sql.streaming.stateStore.providerClass"
_SPARKS_DEFAULT = (  # gives the same as RocksDB, in less time
    "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
)
_MAY_MISS = 0.05  # by which the worst window may be below the target


@dataclass(frozen=True)
class Published:
    """The windows that one way has written, in order of their ends; times in s."""

    end: list[float]
    complete: list[float]  # share of the true results
    after: list[float]  # when, counted from the end of the window

    def between(self, begin: float, end: float) -> Published:
        """Those that end in this time."""
        own = [i for i, at in enumerate(self.end) if begin < at <= end]
        columns = (self.end, self.complete, self.after)
        return Published(*([column[i] for i in own] for column in columns))


def streams(phase_s: int, seed: int) -> dict[str, pa.Table]:
    """Streams a and b of (ts, k, arrival), in ms."""
    tables = {}
    n = len(PHASES) * phase_s * _RATE_PER_S
    for s, name in enumerate("ab"):
        rng = generator(seed, s)
        ts = np.sort(rng.integers(0, len(PHASES) * phase_s * 1000, n))
        mean = np.array(_MEAN_DELAYS_MS)[ts // (1000 * phase_s)]
        arrival = ts + rng.exponential(mean).astype(np.int64)
        tables[name] = arriving(arrival, ts=ts, k=rng.integers(0, _KEYS, n))
    return tables


def write_streams(tables: dict[str, pa.Table], batch_s: int, folder: Path) -> None:
    """One file for each micro-batch and stream."""
    for name, table in tables.items():
        (folder / name).mkdir(parents=True)
        batch = table["arrival"].to_numpy() // (1000 * batch_s)
        ts, arrival = (1000 * table[column].to_numpy() for column in ("ts", "arrival"))
        times = {"at": ts, "arrived": arrival}
        rows = table.select(["k"])
        for column, us in times.items():
            rows = rows.append_column(column, pa.array(us, pa.timestamp("us", tz="UTC")))
        for number in range(int(batch.max()) + 1):
            file = folder / name / f"{number:05}.parquet"
            pq.write_table(rows.filter(pa.array(batch == number)), file)
            os.utime(file, (1_000_000_000 + number,) * 2)  # Spark takes the oldest first


def true_windows(tables: dict[str, pa.Table]) -> tuple[dict[int, int], dict[int, int]]:
    """True results by the end of their window in s: by result time, and by the time of a."""
    a, b = (tables[name].sort_by([("k", "ascending"), ("ts", "ascending")]) for name in "ab")
    place = (2 * _KEYS) * 10**9  # keys do not meet
    a_at, b_at = (t["k"].to_numpy() * place + t["ts"].to_numpy() for t in (a, b))
    first = np.searchsorted(b_at, a_at - 1000 * _JOIN_S)
    end = np.searchsorted(b_at, a_at + 1000 * _JOIN_S, side="right")
    partners = np.repeat(first - np.cumsum(end - first) + (end - first), end - first)
    partners += np.arange(len(partners))
    a_ts = np.repeat(a["ts"].to_numpy(), end - first)
    return _by_window(np.maximum(a_ts, b["ts"].to_numpy()[partners])), _by_window(a_ts)


def _by_window(ts: I64) -> dict[int, int]:
    ends, counts = np.unique(ts // (1000 * _WINDOW_S) * _WINDOW_S + _WINDOW_S, return_counts=True)
    return dict(zip(ends.tolist(), counts.tolist(), strict=True))


# ---- the two ways


def by_slackwater(inputs: dict[str, DataFrame], gamma: float, shared: Path) -> DataFrame:
    """Results in time, in windows of their result time, which need no watermark delay."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    a, b = (Stream(name, ts="at", window=f"{_JOIN_S} seconds") for name in "ab")
    query = join(a, b, on="k", goal=Recall(gamma, over="1 minute"))
    results = query.stream(inputs, arrival="arrived", shared=str(shared))
    times = results.select("result_ts").withWatermark("result_ts", "0 seconds")
    return times.groupBy(F.window("result_ts", f"{_WINDOW_S} seconds")).count()


def by_spark(inputs: dict[str, DataFrame], watermark_s: int) -> DataFrame:
    """The same by Spark's own join; windows must be of a column that has the watermark."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    delay = f"{watermark_s} seconds"
    a, b = (
        inputs[name].selectExpr(f"at as {name}_at", f"k as {name}_k")
        .withWatermark(f"{name}_at", delay)
        for name in "ab"
    )  # fmt: skip
    within = f"interval {_JOIN_S} seconds"
    condition = f"a_k = b_k and b_at between a_at - {within} and a_at + {within}"
    joined = a.join(b, F.expr(condition))
    return joined.groupBy(F.window("a_at", f"{_WINDOW_S} seconds")).count()


def _inputs(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    reader = spark.readStream.schema("k long, at timestamp, arrived timestamp")
    reader = reader.option("maxFilesPerTrigger", 1)
    return {name: reader.parquet(str(folder / name)) for name in "ab"}


def start(
    windows: DataFrame, checkpoint: Path, true: dict[int, int], batch_s: int
) -> Callable[[], Published]:
    """Start a run to the end of the files; returns what waits for it.

    Each micro-batch notes which windows it writes.
    """
    found: list[tuple[int, float, float]] = []

    def note(batch: DataFrame, number: int) -> None:
        arrived = (number + 1) * batch_s  # when the micro-batch had its last row
        for row in batch.collect():
            end = round(row["window"]["end"].timestamp())
            found.append((end, row["count"] / true[end], float(arrived - end)))

    writer = windows.writeStream.foreachBatch(note)
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    while not query.recentProgress and not query.awaitTermination(1):
        pass  # starting is slow: one after the other

    def published() -> Published:
        query.awaitTermination()
        ends, complete, after = zip(*sorted(found), strict=True)
        return Published([float(end) for end in ends], list(complete), list(after))

    return published


# ---- the experiment


def _publish(setting: Setting) -> Findings:
    """Short micro-batches, and longer ones."""
    phase_s = _QUICK_PHASE_S if setting.quick else _PHASE_S
    tables = streams(phase_s, setting.seed)
    ways = {
        batch_s: _all_ways(setting, tables, batch_s, setting.some(watermarks))
        for batch_s, watermarks in list(WATERMARKS_S.items())[: 1 if setting.quick else None]
    }
    found = [_table(own, phase_s, batch_s, setting.quick) for batch_s, own in ways.items()]
    findings = Findings(found, [_TEXT])
    findings.figures[""] = _figure(next(iter(ways.values())), phase_s)
    return findings


def _all_ways(
    setting: Setting, tables: dict[str, pa.Table], batch_s: int, watermarks: Sequence[int]
) -> dict[str, Published]:
    """What each way publishes, over the same files."""
    by_result, by_a = true_windows(tables)
    from slackwater.spark.session import STATE_PROVIDER  # noqa: PLC0415

    spark, ways = setting.sweep.spark, dict[str, Published]()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_streams(tables, batch_s, folder)
        inputs, gammas = _inputs(spark, folder), setting.some(GAMMAS)
        plans = {
            f"Recall({gamma:g})": (by_slackwater(inputs, gamma, folder / f"{gamma:g}"), by_result)
            for gamma in gammas
        }
        plans |= {f"Spark, {s} s": (by_spark(inputs, s), by_a) for s in watermarks}
        running = {}  # time is that of arrivals, so all may run side by side
        for number, (name, (windows, true)) in enumerate(plans.items()):
            provider = STATE_PROVIDER if number < len(gammas) else _SPARKS_DEFAULT
            spark.conf.set(_STATE, provider)  # read when the query starts
            running[name] = start(windows, folder / f"checkpoint {number}", true, batch_s)
        spark.conf.set(_STATE, STATE_PROVIDER)
        for number, (name, published) in enumerate(running.items()):
            setting.sweep.on_step(f"{name}, {batch_s} s", number, len(plans))
            ways[name] = published()
    return ways


_TEXT = (
    f"Two streams of {_RATE_PER_S} events per second each, {_KEYS} keys, windows of the join "
    f"{_JOIN_S} s, exponential delays of "
    f"{' s, '.join(f'{mean / 1000:g}' for mean in _MEAN_DELAYS_MS)} s on average, {_PHASE_S} s "
    f"each. Results are counted in windows of {_WINDOW_S} s; ours by the time of the result, "
    f"Spark's by that of a, because it must have a watermark, so {_JOIN_S} s later. A window is "
    "published with the micro-batch that writes it, at its last arrival. The first minute of each "
    "phase is left out. "
    "Better: Spark's watermarks that are more complete and earlier.\n\n"
    "With long micro-batches a fixed watermark gains. Spark uses a watermark one micro-batch after "
    "it was reached, and drops rows by the one before that: a row may be late by the delay and one "
    "to two micro-batches more, and its window is published no later for that. Our K counts from "
    "the arrival of each row, and results are in order from one micro-batch to the next. Both "
    "lengths are judged; the shorter one was added when a simulation showed that the longer one "
    "favours Spark."
)


def _table(ways: dict[str, Published], phase_s: int, batch_s: int, is_quick: bool) -> Table:
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    first, length = 0 if is_quick else 60, f"{batch_s} s"
    for n, phase in enumerate(PHASES):
        own = {
            name: way.between(n * phase_s + first, (n + 1) * phase_s) for name, way in ways.items()
        }
        for name, way in own.items():
            gamma = next((g for g in GAMMAS if name == f"Recall({g:g})"), None)
            if not way.end:
                rows.append(((length, phase, name), [0.0, *[None] * 5]))
                continue
            mean, after = float(np.mean(way.complete)), float(np.mean(way.after))
            better = [
                other
                for other, spark in own.items()
                if other.startswith("Spark") and spark.end
                if np.mean(spark.complete) > mean and np.mean(spark.after) < after
            ]
            least = None if gamma is None else gamma - _MAY_MISS
            count = None if gamma is None else float(len(better))
            cells: list[Cell] = [len(way.end), mean, min(way.complete), after, count, least]
            rows.append(((length, phase, name), cells))
    judged = not is_quick
    columns = (
        Column("windows", ""),
        Column("mean completeness", "share"),
        Column("worst window", "share", floor="worst ≥" if judged else None),
        Column("published after", "s"),
        Column("better watermarks", "", ceiling=0.0 if judged else None),
        Column("worst ≥", "share"),
    )
    return Table(f"Micro-batches of {batch_s} s", ("micro-batches", "phase", "way"), columns, rows)


def _figure(ways: dict[str, Published], phase_s: int) -> Figure:
    shown = {name: way for name, way in ways.items() if name != "Spark, 10 s"}
    marks = {phase_s / 60: PHASES[1], 2 * phase_s / 60: PHASES[2]}
    minutes = {name: [end / 60 for end in way.end] for name, way in shown.items()}
    complete = {name: (minutes[name], way.complete) for name, way in shown.items()}
    after = {name: (minutes[name], way.after) for name, way in shown.items()}
    grid = [
        [Panel("completeness of each window", "share", complete, marks=marks)],
        [Panel("published after its end", "s", after, marks=marks)],
    ]
    return panels("Windows over joined results, published once", "event time, minutes", grid)


EXPERIMENTS = (
    Experiment("publish", "ours", "windows over joined results, published once", _publish),
)
