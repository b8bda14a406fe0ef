"""What one K for all shards costs: `slackwater bench shards`.

The same small micro-batches for queries of which each shard has its own K, and of which all have
one. The queries live in one session and take turns, micro-batch by micro-batch, so that whatever
else the machine does reaches all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from threading import Condition
from time import perf_counter
from typing import TYPE_CHECKING

from slackwater.jobs.local_spark import local_spark
from slackwater.jobs.measurement import Measurement
from slackwater.query.goals import Recall
from slackwater.query.join import join
from slackwater.query.join_options import SlackScope
from slackwater.query.stream import Stream
from slackwater_lab.benches.spark import SparkBenchmark, SparkOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CORES = 2
_SHARDS = (2, 32)
_SCOPES: dict[SlackScope, str] = {"shard": "each shard its own K", "query": "one K"}
_ROWS = 500  # of each stream in a micro-batch
_BATCHES, _WARM_UP, _QUICK_BATCHES = 80, 20, 4
_MOST = 1.05  # times as long


class Turns:
    """Some queries run one micro-batch each, in turn; the others wait.

    A turn begins when the sink of a query returns, and ends when it has written the next
    micro-batch: commit, planning, input, join, state and output are all in it.
    """

    def __init__(self, n: int, batches: int) -> None:
        self._n, self._batches = n, batches
        self._current = 0
        self._changed = Condition()
        self._begin = [perf_counter()] * n
        self.seconds: list[list[float]] = [[] for _ in range(n)]

    def next(self, who: int) -> None:
        """The turn of `who` is over; wait for the next."""
        with self._changed:
            self._changed.wait_for(lambda: self._current == who)
            self.seconds[who].append(perf_counter() - self._begin[who])
            self._current = (who + 1) % self._n
            self._changed.notify_all()
            if len(self.seconds[who]) < self._batches:
                self._changed.wait_for(lambda: self._current == who)
                self._begin[who] = perf_counter()


def _scopes(options: SparkOptions) -> Iterator[Measurement]:
    batches = _QUICK_BATCHES if options.quick else _BATCHES
    warm_up = 1 if options.quick else _WARM_UP
    options.files("shards", "ab", _ROWS * batches, _ROWS, 10_000, 20_000)
    ways = [(shards, scope) for shards in _SHARDS for scope in _SCOPES]
    turns = Turns(len(ways), batches)
    with local_spark("bench shards", _CORES, {}) as spark:
        for who, (shards, scope) in enumerate(ways):
            _start(spark, options, turns, who, shards, scope)
        for query in spark.streams.active:
            query.awaitTermination()
    found = {way: turns.seconds[who][warm_up:] for who, way in enumerate(ways)}
    for shards in _SHARDS:
        name = f"{2 * _ROWS:,} rows, {shards} shards"
        for scope, title in _SCOPES.items():
            yield Measurement(f"{name}, {title}", round(1000 * median(found[shards, scope])), "ms")
        pairs = zip(found[shards, "query"], found[shards, "shard"], strict=True)
        times = round(median(one / own for one, own in pairs), 3)
        most = options.at_most(_MOST) if shards == _SHARDS[0] else None
        yield Measurement(f"{name}, one K", times, "times", ceiling=most)


def _start(
    spark: SparkSession, options: SparkOptions, turns: Turns, who: int, shards: int,
    scope: SlackScope,
) -> None:  # fmt: skip
    data = options.folder / "shards"
    inputs = {}
    for name in "ab":
        schema = spark.read.parquet(str(data / name)).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        inputs[name] = reader.parquet(str(data / name))
    a, b = (Stream(name, ts="ts", window="2 seconds") for name in "ab")
    query = join(a, b, on="k", goal=Recall(0.95, over="1 minute"), slack_scope=scope)
    shared = None if scope == "shard" else str(options.folder / f"shared {who}")
    joined = query.stream(inputs, arrival="arrival", shards=shards, shared=shared)

    def write(batch: DataFrame, _: int) -> None:
        batch.write.format("noop").mode("overwrite").save()
        turns.next(who)

    writer = joined.writeStream.foreachBatch(write)
    writer = writer.option("checkpointLocation", str(options.folder / f"checkpoint {who}"))
    writer.trigger(availableNow=True).start()


CASES = (SparkBenchmark("one K for all shards", _scopes),)
