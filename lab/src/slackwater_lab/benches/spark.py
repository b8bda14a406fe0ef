"""Slackwater on Spark beside Spark's own stream-stream join: `slackwater bench spark`.

The same files, the same number of files per micro-batch, the same session settings, a noop sink;
each run in a process of its own. Spark's own join is slow, so where only its steady rate is needed
it gets the first files only; the name of the measurement or benchmarks/README.md states it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slackwater.jobs.measurement import Measurement
from slackwater.query.join_options import Emit, How
from slackwater.testing.workloads import uniform_keys
from slackwater_lab.benches.spark_run import Plan, in_own_process

_START_MS = 1_700_000_000_000  # event times are timestamps: Spark's watermark needs them
_WINDOW_MS = 2_000
_DECIDED: tuple[tuple[str, How, Emit], ...] = (
    ("left outer", "left", "ordered"), ("left outer, eager", "left", "eager"),
    ("as-of", "asof", "ordered"),
)  # fmt: skip
_SLACK_MS = 5_000  # more than any delay in the data, so both joins find everything


@dataclass(frozen=True)
class SparkOptions:
    """The options of a benchmark."""

    seed: int
    quick: bool
    folder: Path  # for generated files

    def at_least(self, floor: float) -> float | None:
        """A limit, if there is enough data to measure against it."""
        return None if self.quick else floor

    at_most = at_least

    def files(
        self,
        name: str,
        streams: str,
        rows: int,
        per_file: int,
        rate_per_s: int,
        keys: int,
        mean_delay_ms: float = 200,
    ) -> Path:
        """Parquet files of disordered streams, made once."""
        folder = self.folder / name
        for i, stream in enumerate(streams if not folder.exists() else ""):
            seed = len(streams) * self.seed + i
            table = uniform_keys(rows, seed, rate_per_s, keys, mean_delay_ms=mean_delay_ms)
            own = folder / stream
            own.mkdir(parents=True)
            for column in ("ts", "arrival"):
                place = table.column_names.index(column)
                table = table.set_column(place, column, _timestamps(table[column]))
            for number, first in enumerate(range(0, rows, per_file)):
                path = own / f"{number:05}.parquet"
                pq.write_table(table.slice(first, per_file), path)
                os.utime(path, (_START_MS // 1000 + number,) * 2)  # Spark reads older files first
        return folder


@dataclass(frozen=True)
class SparkBenchmark:
    """One comparison; it may yield several measurements."""

    title: str
    measure: Callable[[SparkOptions], Iterator[Measurement]]


def _timestamps(ms: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.add(ms, _START_MS).cast(pa.timestamp("ms")).cast(pa.timestamp("us", "UTC"))


def _two_way(options: SparkOptions) -> Iterator[Measurement]:
    rows, per_file = (20_000, 5_000) if options.quick else (5_000_000, 100_000)
    data = options.files("two-way", "ab", rows, per_file, 10_000, 20_000)
    plan = Plan("slackwater", str(data), ("a", "b"), _WINDOW_MS, _SLACK_MS, files_per_trigger=4)
    ours = in_own_process(plan)
    yield Measurement("slackwater, steady", round(ours.steady()), "rows/s")
    yield Measurement("slackwater, whole run", round(ours.rows / ours.seconds), "rows/s")
    few = None if options.quick else 12  # files of each stream: three micro-batches
    for engine in ("native rocksdb", "native rocksdb v4"):
        native = in_own_process(replace(plan, engine=engine, most_files=few))
        rate = native.steady(skip=1)
        yield Measurement(f"{engine}, steady", round(rate), "rows/s")
        floor = options.at_least(10)
        yield Measurement(f"times {engine}", round(ours.steady() / rate, 1), "times", floor=floor)
    native = in_own_process(replace(plan, engine="native hdfs"))
    yield Measurement("native hdfs, steady", round(native.steady()), "rows/s")
    times = round(ours.steady() / native.steady(), 1)
    yield Measurement("times native hdfs", times, "times", floor=options.at_least(8))
    whole = round(native.seconds / ours.seconds, 1)
    yield Measurement("times native hdfs, whole run", whole, "times", floor=options.at_least(5))
    same = (native.results, native.checksum) == (ours.results, ours.checksum)
    yield Measurement("results", ours.results, "results")
    yield Measurement("the same results", float(same), "1 = yes", floor=1)


def _kinds(options: SparkOptions) -> Iterator[Measurement]:
    """Pairs at once, a left and an as-of join, beside Spark's own inner and left outer joins."""
    rows, per_file = (20_000, 5_000) if options.quick else (5_000_000, 100_000)
    data = options.files("two-way", "ab", rows, per_file, 10_000, 20_000)
    plan = Plan("slackwater", str(data), ("a", "b"), _WINDOW_MS, _SLACK_MS, files_per_trigger=4)
    in_order, at_once = in_own_process(plan), in_own_process(replace(plan, emit="eager"))
    few = None if options.quick else 12  # files of each stream: three micro-batches
    native = replace(plan, engine="native rocksdb", most_files=few)
    inner = in_own_process(native).steady(skip=1)
    yield Measurement("pairs in order, steady", round(in_order.steady()), "rows/s")
    yield Measurement("pairs at once, steady", round(at_once.steady()), "rows/s")
    faster = round(at_once.steady() / in_order.steady(), 2)
    floor = options.at_least(1)
    yield Measurement("pairs at once: times in order", faster, "times", floor=floor)
    yield Measurement("native rocksdb inner, steady", round(inner), "rows/s")
    times = round(at_once.steady() / inner, 1)
    floor = options.at_least(10)
    yield Measurement("pairs at once: times native rocksdb", times, "times", floor=floor)
    same = (in_order.results, in_order.checksum) == (at_once.results, at_once.checksum)
    yield Measurement("pairs at once: the same results", float(same), "1 = yes", floor=1)
    outer = in_own_process(replace(native, how="left")).steady(skip=1)
    yield Measurement("native rocksdb left outer, steady", round(outer), "rows/s")
    for name, how, emit in _DECIDED:
        ours = in_own_process(replace(plan, how=how, emit=emit)).steady()
        yield Measurement(f"{name}, steady", round(ours), "rows/s")
        times = round(ours / outer, 1)
        floor = options.at_least(8)
        yield Measurement(f"{name}: times native rocksdb", times, "times", floor=floor)


def _three_way(options: SparkOptions) -> Iterator[Measurement]:
    rows, per_file = (3_000, 1_000) if options.quick else (200_000, 10_000)
    data = options.files("three-way", "abc", rows, per_file, 1_000, 100)
    plan = Plan(
        "slackwater", str(data), ("a", "b", "c"), 1_000, _SLACK_MS, files_per_trigger=4, count=True
    )
    ours = in_own_process(plan)
    # Spark's own chain takes minutes for the whole: it gets the first file of each stream.
    prefix = replace(plan, files_per_trigger=1, most_files=1)
    native = in_own_process(replace(prefix, engine="native rocksdb"))
    same = in_own_process(prefix)
    slow = sum(n for n, _ in native.batches) / (sum(ms for n, ms in native.batches if n) / 1000)
    yield Measurement("three-way: slackwater", round(ours.steady(skip=1)), "rows/s")
    yield Measurement("three-way: native chain, first files", round(slow), "rows/s")
    times = round(ours.steady(skip=1) / slow, 1)
    yield Measurement("three-way: times native", times, "times", floor=options.at_least(50))
    agree = float(same.results == native.results)
    yield Measurement("three-way: the same count on the first files", agree, "1 = yes", floor=1)


def _small_batches(options: SparkOptions) -> Iterator[Measurement]:
    """500 rows of each stream per micro-batch: what is left is the fixed cost.

    The JVM needs some twenty micro-batches to get warm; the second half counts.
    """
    batches = 4 if options.quick else 40
    data = options.files("tiny", "ab", 500 * batches, 500, 10_000, 20_000)
    plan = Plan("slackwater", str(data), ("a", "b"), _WINDOW_MS, _SLACK_MS, files_per_trigger=1)
    ours, native = (
        in_own_process(replace(plan, engine=engine)).batch_ms(skip=batches // 2)
        for engine in ("slackwater", "native rocksdb")
    )
    yield Measurement("1,000 rows: native rocksdb", round(native), "ms")
    yield Measurement(
        "1,000 rows: slackwater", round(ours), "ms", ceiling=options.at_most(round(native))
    )


def _state(options: SparkOptions) -> Iterator[Measurement]:
    """Ten times the window: ten times the state, but not the time of a micro-batch."""
    rows, per_file = (20_000, 2_500) if options.quick else (1_200_000, 50_000)
    data = options.files("state", "ab", rows, per_file, 10_000, 20_000)
    plan = Plan("slackwater", str(data), ("a", "b"), _WINDOW_MS, _SLACK_MS, files_per_trigger=1)
    half = rows // per_file // 2
    short = in_own_process(plan)
    long = in_own_process(replace(plan, window_ms=10 * _WINDOW_MS))
    grown = round(long.batch_ms(half) / short.batch_ms(half), 2)
    yield Measurement("100,000 rows, window 2 s", round(short.batch_ms(half)), "ms")
    yield Measurement("100,000 rows, window 20 s", round(long.batch_ms(half)), "ms")
    yield Measurement("ten times the window", grown, "times", ceiling=options.at_most(2))
    row_bytes = 4 * 8  # ts, k, v, arrival
    share = round(long.state_bytes / long.stored / row_bytes, 2)
    yield Measurement("state per kept row", round(long.state_bytes / long.stored, 1), "bytes")
    yield Measurement("state by the size of the row", share, "times", ceiling=options.at_most(2))
    batches = 4 if options.quick else 16
    small = options.files("small", "ab", 500 * batches, 500, 10_000, 20_000)
    for keep in (True, False):
        with_cache = "with" if keep else "without"
        times = [
            in_own_process(replace(plan, data=str(small), window_ms=window, keep=keep)).batch_ms(
                batches // 2
            )
            for window in (_WINDOW_MS, 10 * _WINDOW_MS)
        ]
        name = f"1,000 rows, ten times the window, {with_cache} cache"
        yield Measurement(name, round(times[1] / times[0], 2), "times")


CASES = (
    SparkBenchmark("two-way join beside Spark's own", _two_way),
    SparkBenchmark("other kinds of joins beside Spark's own", _kinds),
    SparkBenchmark("three-way join beside Spark's own", _three_way),
    SparkBenchmark("small micro-batches", _small_batches),
    SparkBenchmark("state", _state),
)
