"""More input than the machine can join, for real: `slackwater bench overload`.

The speed of the machine is measured first; then the nonaligned streams of GrubJoin VI-B arrive so
fast that the whole join would need three times its capacity. The load is measured with the wall
clock: how long the join was busy with the input of an interval. Figures differ between machines and
runs; the limits are on comparisons within one run.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slackwater.engine.join import JoinEngine
from slackwater.engine.load import LoadMeter
from slackwater.engine.replay import recorded
from slackwater.jobs.measurement import Measurement
from slackwater.query.shedding import Harvest, Shedding, TailDrop
from slackwater_lab.papers.overload import SECOND, WARM_UP, Workload, query_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOO_MUCH = 3.0  # times what the machine can do
_METHODS = (Harvest(index="none"), TailDrop())  # both compare one by one
_SECONDS_PER_FILE = 2
_START_MS = 1_700_000_000_000


@dataclass(frozen=True)
class OverloadSetting:
    """Options of a case."""

    seed: int
    quick: bool
    folder: Path

    @property
    def seconds(self) -> int:
        """Length of the run."""
        return 4 if self.quick else 70

    def at_least(self, floor: float) -> float | None:
        """Return the limit, if there is enough data to compare with it."""
        return None if self.quick else floor

    at_most = at_least

    def tables(self) -> dict[str, pa.Table]:
        """Return streams that overload the machine."""
        rate = 200.0 if self.quick else overloading_rate(self.seed)
        return Workload(rates=(rate,), seconds=self.seconds).tables(self.seed)


@dataclass(frozen=True)
class Case:
    """One benchmark; it may give several lines."""

    title: str
    measure: Callable[[OverloadSetting], Iterator[Measurement]]


def overloading_rate(seed: int) -> float:
    """Return the events per second and stream whose whole join takes three times real time.

    Measured at a rate that the machine can process; the work grows with its third power.
    """
    rate = 400.0
    query, tables = query_of(3, "off"), Workload(rates=(rate,), seconds=WARM_UP + 10).tables(seed)
    batch, _ = recorded(query, tables, None)
    engine = JoinEngine(query, {name: table.schema for name, table in tables.items()})
    assert batch.arrival is not None
    warm, end = np.searchsorted(batch.arrival, [WARM_UP * SECOND, (WARM_UP + 10) * SECOND])
    seconds = []
    for part in batch.cut([int(warm), int(end)]):
        start = perf_counter()
        engine.feed(part)
        seconds.append(perf_counter() - start)
    load = seconds[1] / 10  # once the windows are full
    return float(rate * (_TOO_MUCH * Harvest().usage / load) ** (1 / 3))


@dataclass(frozen=True)
class Overloaded:
    """Figures of a run."""

    output: float  # results per second after the warm-up
    backlog: float  # most seconds of work that waited after the warm-up
    growth: float  # of the memory of the process after the warm-up, as a share
    throttle: float
    shed: float  # share of the events that were dropped


def _embedded_run(shed: Shedding, tables: dict[str, pa.Table], quick: bool) -> Overloaded:
    query = query_of(3, shed)
    batch, _ = recorded(query, tables, None)
    engine = JoinEngine(query, {name: table.schema for name, table in tables.items()})
    arrival = batch.arrival
    assert arrival is not None
    seconds = int(arrival[-1]) // SECOND + 1
    warm = 1 if quick else 2 * WARM_UP
    made, backlogs, memory = 0, [], []
    for second, part in enumerate(
        batch.cut(np.searchsorted(arrival, SECOND * np.arange(1, seconds + 1)).tolist()), start=1
    ):
        before = engine.counters.produced
        with LoadMeter(engine):
            engine.feed(part)
        shedding = engine.metrics().shedding
        assert shedding is not None
        if second > warm:
            made += engine.counters.produced - before
            backlogs.append(shedding.backlog / SECOND)
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    metrics = engine.metrics()
    assert metrics.shedding is not None
    return Overloaded(
        made / max(1, seconds - warm),
        max(backlogs),
        memory[-1] / memory[0] - 1.0,
        metrics.shedding.throttle,
        metrics.shed / metrics.arrivals,
    )


def _lines(
    setting: OverloadSetting, where: str, ours: Overloaded, tail: Overloaded
) -> Iterator[Measurement]:
    yield Measurement(f"{where}: results", round(ours.output), "/s")
    yield Measurement(f"{where}: results of tail drop", round(tail.output), "/s")
    more = round(ours.output / max(tail.output, 1.0), 2)
    yield Measurement(
        f"{where}: results by those of tail drop", more, "times", setting.at_least(2.0)
    )
    yield Measurement(f"{where}: throttle", round(ours.throttle, 4), "of the work")
    yield Measurement(f"{where}: events dropped", round(ours.shed, 4), "share")
    most = setting.at_most(10.0)
    yield Measurement(f"{where}: most work that waited", round(ours.backlog, 2), "s", ceiling=most)
    flat = setting.at_most(0.1)
    yield Measurement(f"{where}: growth of memory", round(ours.growth, 4), "share", ceiling=flat)


def _embedded(setting: OverloadSetting) -> Iterator[Measurement]:
    tables = setting.tables()
    rate = tables["s1"].num_rows / setting.seconds
    yield Measurement("input", round(rate), "events/s and stream")
    runs = [_embedded_run(shed, tables, setting.quick) for shed in _METHODS]
    yield from _lines(setting, "embedded", *runs)


# ---- on Spark


def _spark(setting: OverloadSetting) -> Iterator[Measurement]:
    from slackwater.spark.session import session  # noqa: PLC0415

    folder = _files(setting)
    spark = session("slackwater bench", 2, {"spark.driver.memory": "3g"})
    try:
        runs = [_spark_run(spark, shed, folder, setting) for shed in _METHODS]
    finally:
        spark.stop()
    yield from _lines(setting, "Spark", *runs)


def _files(setting: OverloadSetting) -> Path:
    """Two seconds of each stream in each file."""
    folder = setting.folder / "overload"
    for name, table in setting.tables().items():
        own = folder / name
        own.mkdir(parents=True)
        number = table["ts"].to_numpy() // (_SECONDS_PER_FILE * SECOND)
        time = (
            pc.add(table["ts"], _START_MS).cast(pa.timestamp("ms")).cast(pa.timestamp("us", "UTC"))
        )
        timed = table.set_column(0, "ts", time)
        for file in range(int(number[-1]) + 1):
            begin, end = np.searchsorted(number, [file, file + 1])
            path = own / f"{file:05}.parquet"
            pq.write_table(timed.slice(begin, end - begin), path)
            os.utime(path, (_START_MS // SECOND + file,) * 2)  # Spark reads older files first
    return folder


def _spark_run(
    spark: SparkSession, shed: Shedding, folder: Path, setting: OverloadSetting
) -> Overloaded:
    query = query_of(3, shed)
    sources = {}
    for name in query.names:
        schema = spark.read.parquet(str(folder / name)).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        sources[name] = reader.parquet(str(folder / name))
    joined = query.stream(sources, shards=1)
    kind = type(shed).__name__
    writer = joined.writeStream.format("noop").trigger(availableNow=True)
    started = writer.option("checkpointLocation", str(setting.folder / f"state-{kind}")).start()
    started.awaitTermination()
    observed: list[Any] = [p.observedMetrics.get("slackwater") for p in started.recentProgress]
    known = [row for row in observed if row is not None and row["shards"]]
    first = len(known) // 2
    made = known[-1]["produced"] - known[first]["produced"]
    seconds = max(1, (len(known) - 1 - first) * _SECONDS_PER_FILE)
    states = [row["state_bytes"] for row in known]
    return Overloaded(
        made / seconds,
        max(row["backlog"] for row in known[first:]) / SECOND,
        states[-1] / max(states[first], 1) - 1.0,
        known[-1]["throttle"],
        known[-1]["shed"] / known[-1]["arrivals"],
    )


CASES = (Case("embedded", _embedded), Case("on Spark", _spark))
