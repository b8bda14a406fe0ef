"""The highest rate that this machine holds, and half an hour of it: `slackwater bench steady`.

Spark's rate source makes rows by the wall clock, whether the query keeps up or not. Rates are
tried, each higher than the last, until one is not held; the one before is held for half an hour,
or, should it turn out too high after all, a lower one. (Too many rows at once would tell sooner
what the query can do, but what waits then makes micro-batches of minutes and gigabytes.) The source
takes its share of the two cores.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from slackwater.jobs.measurement import Measurement
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery, Stream
from slackwater.query.joining import join
from slackwater_lab.benches.resident_memory import resident_family

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyspark.sql import DataFrame, SparkSession

MINUTES = 30.0
GAMMA = 0.95
_FIRST_RATE = 200_000  # rows/s, of both streams together
_STEP = 1.2  # from one rate to the next
_TRIAL_S = 75.0
_WARM_UP_S = 25.0  # Spark's first micro-batches are slow
_TIDE_S = 300  # disorder rises and falls
_MEAN_DELAY_MS = 200
_LARGEST_DELAY_MS = 10_000
_OLDEST_S = 60.0  # rows that waited longer wait in vain: the rate is not held
_PIECES = 5
_SAMPLE_S = 5.0  # between two looks at memory


@dataclass(frozen=True)
class MicroBatch:
    """One of them; times in s since the query began."""

    end: float
    rows: int
    age: float  # of its oldest row when the results are out: nobody waits longer
    produced: int  # since the start, like what follows
    lost: int
    slack: int  # ms
    state_bytes: int


@dataclass(frozen=True)
class Held:
    """How a rate went."""

    rate: int
    batches: list[MicroBatch]  # without the warm-up
    memory: list[tuple[float, int]]  # (s, bytes) of Spark and all its workers

    def pieces(self) -> list[list[MicroBatch]]:
        """Five stretches of equal length."""
        ends = np.array([batch.end for batch in self.batches])
        edges = np.linspace(ends[0], ends[-1], _PIECES + 1)[1:-1]
        cuts = [0, *np.searchsorted(ends, edges).tolist(), len(self.batches)]
        return [self.batches[a:b] for a, b in zip(cuts, cuts[1:], strict=False)]

    def ages(self, quantile: float) -> list[float]:
        """So many micro-batches of each stretch were not older."""
        return [
            float(np.quantile([batch.age for batch in piece], quantile))
            for piece in self.pieces()
            if piece
        ]

    @property
    def is_held(self) -> bool:
        """Whether rows do not get older and older."""
        if len(self.batches) < _PIECES or max(batch.age for batch in self.batches) > _OLDEST_S:
            return False
        ages = self.ages(0.5)
        return ages[-1] < 1.25 * min(ages[:-1])

    @property
    def span(self) -> float:
        """From its first micro-batch to its last, s."""
        return self.batches[-1].end - self.batches[0].end if self.batches else 0.0

    def recalls(self) -> tuple[list[float], list[float]]:
        """Times, and the recall of the minute before, for each micro-batch behind the first one."""
        ends = np.array([batch.end for batch in self.batches])
        made = np.array([batch.produced for batch in self.batches], float)
        lost = np.array([batch.lost for batch in self.batches], float)
        before = np.searchsorted(ends, ends - 60.0, side="right") - 1
        some = before >= 0
        made = (made - made[before])[some]
        lost = (lost - lost[before])[some]
        return ends[some].tolist(), (made / np.maximum(made + lost, 1.0)).tolist()


def query() -> JoinQuery:
    """A two-way join with a promise."""
    streams = (Stream(name, ts="ts", window="2 s") for name in "ab")
    goal = Recall(GAMMA, over="1 minute")
    return join(*streams, on="k", goal=goal, retention=2 * _LARGEST_DELAY_MS)


def source(spark: SparkSession, name: str, rate: int, seed: int) -> DataFrame:
    """Half of `rate` rows per second; their keys and delays depend on their numbers alone."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", rate // 2)
    rows = rows.option("numPartitions", 2)

    def random(what: str, below: int) -> str:
        return f"pmod(xxhash64(value, '{name} {what} {seed}'), {below})"

    tide = f"1 + 0.8 * sin(2 * pi() * unix_millis(timestamp) / {1000 * _TIDE_S})"
    delay = f"-ln(({random('delay', 10**6)} + 1) / 1e6) * {_MEAN_DELAY_MS} * ({tide})"
    late_by = f"if({random('late', 10)} < 3, least({delay}, {_LARGEST_DELAY_MS}), 0)"
    return rows.load().selectExpr(
        f"timestamp_micros(unix_micros(timestamp) - 1000 * cast({late_by} as long)) as ts",
        f"{random('key', 2 * rate)} as k",  # one partner for each event, about
        "value as v",
        "timestamp as arrival",
    )


def hold(
    spark: SparkSession,
    rate: int,
    seconds: float,
    seed: int,
    checkpoint: Path,
    warm_up: float = _WARM_UP_S,
    most: int = 10**9,
) -> Held:
    """Run the query at a rate for some time, after a warm-up that is not told.

    It ends earlier after `most` micro-batches, and when rows wait far too long.
    """
    inputs = {name: source(spark, name, rate, seed) for name in "ab"}
    joined = query().stream(inputs, arrival="arrival")
    writer = joined.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    memory: list[tuple[float, int]] = []
    over = Event()
    begin = perf_counter()

    def watch() -> None:
        while not over.wait(_SAMPLE_S):
            memory.append((perf_counter() - begin, resident_family(os.getpid())))

    watcher = Thread(target=watch, daemon=True)
    running = writer.start()
    watcher.start()
    while perf_counter() < begin + warm_up + seconds and len(running.recentProgress) < most:
        running.awaitTermination(1)
        if perf_counter() > begin + warm_up and _took(running.lastProgress) > _OLDEST_S / 2:
            break
    running.stop()
    over.set()
    watcher.join()
    batches = [batch for batch in _told(running, checkpoint) if batch.end > warm_up]
    return Held(rate, batches, [look for look in memory if look[0] > warm_up])


def _took(progress: Any) -> float:
    """Of a micro-batch, s; its rows may have waited as long again before it began."""
    return progress.durationMs["triggerExecution"] / 1000 if progress else 0.0


def _told(running: Any, checkpoint: Path) -> Iterator[MicroBatch]:
    """What Spark says of the micro-batches; the rate source counts seconds from its first start."""
    from slackwater.spark.listener import plain  # noqa: PLC0415

    noted = (checkpoint / "sources" / "0" / "0").read_text().splitlines()
    began = int(noted[-1]) / 1000
    for progress in running.recentProgress:
        row = progress.observedMetrics.get("slackwater")
        if progress.numInputRows == 0 or row is None or not (told := plain(row))["shards"]:
            continue
        start = datetime.fromisoformat(progress.timestamp).timestamp()
        end = start + _took(progress) - began
        oldest = min(json.loads(source.startOffset or "null") or 0 for source in progress.sources)
        yield MicroBatch(
            end, progress.numInputRows, end - oldest, told["produced"], told["lost"],
            told["slack"], told["state_bytes"],
        )  # fmt: skip


@dataclass(frozen=True)
class Steady:
    """What was found."""

    tried: list[Held]  # all but the rate that was held to the end
    held: Held


def steady(seed: int, minutes: float, folder: Path, quick: bool = False) -> Steady:
    """Find the rate and hold it."""
    from slackwater.spark.session import session  # noqa: PLC0415

    settings = {
        "spark.driver.memory": "4g",
        "spark.sql.streaming.numRecentProgressUpdates": 100_000,
    }
    spark = session("slackwater bench", 2, settings)
    try:
        if quick:
            only = hold(spark, 20_000, 120.0, seed, folder / "quick", warm_up=0, most=8)
            return Steady([], only)

        def attempt(rate: float, seconds: float) -> Held:
            rounded = int(rate / 10_000) * 10_000
            return hold(spark, rounded, seconds, seed, folder / f"{rounded}-{seconds:.0f}")

        tried = [attempt(_FIRST_RATE, _TRIAL_S)]
        step = _STEP if tried[0].is_held else 1 / _STEP
        while tried[-1].is_held == tried[0].is_held:
            tried.append(attempt(tried[-1].rate * step, _TRIAL_S))
        rate = float(max(held.rate for held in tried if held.is_held))
        while not (held := attempt(rate, 60 * minutes)).is_held:
            tried.append(held)
            rate /= _STEP
        return Steady(tried, held)
    finally:
        spark.stop()


def lines(seen: Steady, quick: bool) -> Iterator[Measurement]:
    """The figures, with what was promised."""

    def promised(limit: float) -> float | None:
        return None if quick else limit

    held = seen.held
    for trial in seen.tried:
        name = f"{trial.rate:,} rows/s held for {trial.span / 60:.1f} minutes"
        yield Measurement(name, float(trial.is_held), "1 = yes")
    yield Measurement("rate", held.rate, "rows/s")
    yield Measurement("held for", round(held.span / 60, 1), "minutes")
    done = sum(batch.rows for batch in held.batches[1:])
    yield Measurement("rows joined", done, "rows")
    yield Measurement(
        "rows joined by those made", round(done / (held.rate * held.span), 3), "share"
    )
    middle, high = held.ages(0.5), held.ages(0.95)
    yield Measurement("median age of results' rows, first fifth", round(middle[0], 2), "s")
    yield Measurement("median age of results' rows, last fifth", round(middle[-1], 2), "s")
    growth = round(middle[-1] / middle[0], 3)
    yield Measurement("age, last fifth by first", growth, "times", ceiling=promised(1.1))
    yield Measurement("95 % of ages, worst fifth", round(max(high), 2), "s")
    yield Measurement("oldest of all", round(max(batch.age for batch in held.batches), 2), "s")
    memory = [size for _, size in held.memory]
    fifth = max(1, len(memory) // _PIECES)
    yield Measurement(
        "memory of Spark and workers, last fifth", round(max(memory[-fifth:]) / 1e6), "MB"
    )
    growth = round(max(memory[-fifth:]) / max(memory[: 2 * fifth]), 3)
    yield Measurement("memory, last fifth by first two", growth, "times", ceiling=promised(1.1))
    recalls = np.array(held.recalls()[1])
    if len(recalls):
        yield Measurement("Φ(0.95)", round(float(np.mean(recalls >= GAMMA)), 4), "share")
        half = len(recalls) // 2
        for name, part in (("first", recalls[:half]), ("second", recalls[half:])):
            yield Measurement(
                f"Φ(0.95), {name} half", round(float(np.mean(part >= GAMMA)), 4), "share"
            )


def figure(seen: Steady) -> Figure:
    """Age, memory and recall over the time that the rate was held."""
    from slackwater_lab.plots import Panel, panels  # noqa: PLC0415

    held = seen.held
    minutes = [batch.end / 60 for batch in held.batches]
    at, recalls = held.recalls()
    looks = [time / 60 for time, _ in held.memory]
    ages = [batch.age for batch in held.batches]
    sizes = [size / 1e9 for _, size in held.memory]
    zero = (0.0, None)
    return panels(
        f"{held.rate:,} rows/s on two cores, on Spark",
        "minutes",
        [
            [
                Panel(
                    "age of the oldest row of a result", "s", {"age": (minutes, ages)}, y_range=zero
                )
            ],
            [
                Panel(
                    "memory of Spark and its workers",
                    "GB",
                    {"memory": (looks, sizes)},
                    y_range=zero,
                )
            ],
            [
                Panel(
                    "recall over the last minute",
                    "γ(1 minute)",
                    {"recall": ([time / 60 for time in at], recalls)},
                    level=(GAMMA, "what was asked for"),
                )
            ],
        ],
    )
