"""Slackwater on Spark beside other engines, in one run: `slackwater bench peers`.

The same rows and the same delay for all; each run in a process of its own. Engines that are slow
get the first rows only: a rate does not need more. Rates are steady: on Spark the first
micro-batches are left out; elsewhere two runs of different length are compared, so that what both
pay (the start of the engine and of the query) drops out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from slackwater.jobs.measurement import Measurement
from slackwater_lab.benches.spark import SparkBenchmark, SparkOptions
from slackwater_lab.benches.spark_run import Plan, SparkRun, in_own_process
from slackwater_lab.peers.job import Told, missing, run
from slackwater_lab.peers.load import Load

PEERS = ("flink", "pathway", "duckdb", "polars")
_SLACK_MS = 5_000  # more than any delay in the data of the rates
_TARGET = 0.95
_Lengths = Mapping[str, tuple[int, int]]  # rows of a stream in the short and in the whole run


def skipped() -> list[str]:
    """What is not installed, and what to do about it."""
    return [message for peer in PEERS if (message := missing(peer))]


def _peers() -> list[str]:
    return [peer for peer in PEERS if missing(peer) is None]


def _two_way(options: SparkOptions) -> Iterator[Measurement]:
    """All columns of all results, into nowhere."""
    rows, per_file = (20_000, 5_000) if options.quick else (10_000_000, 100_000)
    data = options.files("two-way", "ab", rows, per_file, 10_000, 20_000)
    load = Load("two-way", data, ("a", "b"), 2_000, _SLACK_MS)
    ours = in_own_process(_plan(load, "slackwater", 4 if options.quick else 8))
    few = 4 if options.quick else 12  # files of each stream: three micro-batches
    native = in_own_process(replace(_plan(load, "native hdfs", few // 3), most_files=few))
    rate = ours.steady(len(ours.batches) // 2)  # the JVM compiles on for half a minute
    yield from _on_spark(load, "slackwater", ours, rate)
    yield from _on_spark(load, "spark native", native, native.steady(skip=1))
    lengths: _Lengths = {
        "flink": (300_000, 1_500_000), "pathway": (20_000, 80_000),
        "duckdb": (500_000, 1_500_000), "polars": (500_000, 1_500_000),
    }  # fmt: skip
    yield from _rates(options, load, lengths, rate, times_flink=2)


def _three_way(options: SparkOptions) -> Iterator[Measurement]:
    """Counted only."""
    rows, per_file = (3_000, 1_000) if options.quick else (800_000, 100_000)
    data = options.files("three-way", "abc", rows, per_file, 1_000, 100)
    load = Load("three-way", data, ("a", "b", "c"), 1_000, _SLACK_MS, count=True)
    ours = in_own_process(_plan(load, "slackwater", 2))
    # Spark's own chain takes minutes for the whole.
    first = replace(load, data=load.first(min(rows, 10_000), "parquet"))
    native = in_own_process(_plan(first, "native rocksdb", 1))
    yield from _on_spark(load, "slackwater", ours, ours.steady(skip=1))
    yield from _on_spark(load, "spark native", native, native.steady(skip=0))
    lengths: _Lengths = {
        "flink": (20_000, 100_000), "pathway": (500, 2_500),
        "duckdb": (50_000, 200_000), "polars": (50_000, 200_000),
    }  # fmt: skip
    yield from _rates(options, load, lengths, ours.steady(skip=1), times_flink=10)


def _recall(options: SparkOptions) -> Iterator[Measurement]:
    """Delays beyond the delay that is set: its 90 % quantile, the same for every engine.

    In micro-batches of two seconds of arrivals; Flink with one reader, to keep the order.
    """
    if missing("duckdb"):
        return
    seconds = 8 if options.quick else 120
    rows, per_file = 1_000 * seconds, 2_000
    data = options.files("recall", "ab", rows, per_file, 1_000, 200, mean_delay_ms=2_000)
    load = Load("recall", data, ("a", "b"), 2_000, 0)
    load = replace(load, slack_ms=int(np.quantile(load.delays(), 0.9)))
    truth = _truth(load, rows)
    yield Measurement("recall: delay that is set", load.slack_ms, "ms")
    plan = replace(_plan(load, "slackwater", 1), arrival="arrival")
    yield _share("slackwater", in_own_process(plan).results, truth)
    late = in_own_process(replace(plan, late="emit")).results
    yield _share("slackwater, late results too", late, truth)
    yield _share("spark native", in_own_process(_plan(load, "native rocksdb", 1)).results, truth)
    for peer in _peers():
        if peer in ("flink", "pathway"):
            told = run(load.job(peer, (rows,), parallelism=1, rows_per_commit=per_file))
            yield _share(peer, told.results, truth)
    asked = in_own_process(replace(plan, recall=_TARGET))
    floor = options.at_least(_TARGET)
    found = round(asked.results / truth, 4)
    yield Measurement("recall: slackwater, 0.95 asked for", found, "share", floor=floor)
    yield Measurement("recall: mean delay it chose", round(asked.slack_ms), "ms")


def _plan(load: Load, engine: str, files_per_trigger: int) -> Plan:
    return Plan(
        engine, str(load.data), load.streams, load.window_ms, load.slack_ms, files_per_trigger,
        load.count, checksum=False,
    )  # fmt: skip


def _on_spark(load: Load, engine: str, result: SparkRun, rate: float) -> Iterator[Measurement]:
    yield Measurement(f"{load.name}: {engine}", round(rate), "rows/s")
    yield from _found(load, engine, result.rows // len(load.streams), result.results)


def _rates(
    options: SparkOptions, load: Load, lengths: _Lengths, ours: float, times_flink: float
) -> Iterator[Measurement]:
    for peer in _peers():
        short, whole = (1_000, 2_000) if options.quick else lengths[peer]
        told = run(load.job(peer, (short, short, whole)))  # the first warms up
        rate = _steady(load, told, short, whole)
        yield Measurement(f"{load.name}: {peer}", round(rate), "rows/s")
        yield from _found(load, peer, whole, told.results)
        if peer == "flink":
            floor = options.at_least(times_flink)
            yield Measurement(
                f"times flink, {load.name}", round(ours / rate, 1), "times", floor=floor
            )


def _steady(load: Load, told: Told, short: int, whole: int) -> float:
    return told.steady([len(load.streams) * rows for rows in (short, whole)])


def _found(load: Load, engine: str, rows: int, results: int) -> Iterator[Measurement]:
    """Nothing is later than the delay, so all should be there."""
    if not missing("duckdb"):
        share = round(results / _truth(load, rows), 6)
        yield Measurement(f"{load.name}: {engine}, results found", share, "share")


def _share(engine: str, results: int, truth: int) -> Measurement:
    return Measurement(f"recall: {engine}", round(results / truth, 4), "share")


def _truth(load: Load, rows: int) -> int:
    """How many results the first rows have: DuckDB's word."""
    return run(replace(load, count=True).job("duckdb", (rows,))).results


CASES = (
    SparkBenchmark("two-way join", _two_way),
    SparkBenchmark("three-way join", _three_way),
    SparkBenchmark("recall at the same delay", _recall),
)
