"""One K for all instances of a join, or one for each: ICDE16 V's two readings, without Spark.

The rows of a key go to one shard; the others get the clock of its stream where it moves. Each
micro-batch the shards either choose K alone, or from the reports of all (decision 24).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.controllers.factory import controller_for
from slackwater.engine.common_slack import Clocks
from slackwater.engine.join import JoinEngine
from slackwater.engine.output import Production
from slackwater.engine.report import average_slack, columns, recall_series
from slackwater.engine.shard_report import Reports
from slackwater.events.batch import Batch
from slackwater.kernels.records import F64, I64
from slackwater.query.join import JoinQuery
from slackwater.stats.arriving import coarse_counts
from slackwater_lab.measure import Data


class Sharded(NamedTuple):
    """What the shards of a query do together; times in ms."""

    slack: float  # K on average, over time and shards
    recalls: F64  # γ(over)
    recall: float
    behind: float  # the most that a result is behind one of an earlier micro-batch


class Parts(NamedTuple):
    """The input of all shards: where each turn goes, and which ones move a stream's clock."""

    batches: list[Batch]
    turns: list[I64]  # of each shard, by their number in the whole input
    clocks: Clocks  # of the whole input, and at which turns
    moves: I64
    delays: I64  # of each turn


def parts_of(batch: Batch, times: list[I64], keys: list[I64], n: int) -> Parts:
    """The rows of each shard, with ticks where another's row moves the clock of a stream."""
    m, turns = len(batch.tables), len(batch.stream)
    time, key = np.empty(turns, np.int64), np.empty(turns, np.int64)
    for s in range(m):
        time[batch.stream == s], key[batch.stream == s] = times[s], keys[s]
    moved, delays = np.zeros(turns, bool), np.empty(turns, np.int64)
    for s in range(m):
        own = batch.stream == s
        local = np.maximum.accumulate(time[own])
        moved[own] = np.diff(local, prepend=local[0] - 1) > 0
        delays[own] = local - time[own]
    batches, where = [], []
    for shard in range(n):
        mine = key % n == shard
        kept = np.flatnonzero(mine | moved)
        stream = np.where(mine, batch.stream, batch.stream + m)[kept].astype(np.uint8)
        tables = tuple(
            table.filter(pa.array(mine[batch.stream == s])) for s, table in enumerate(batch.tables)
        )
        ticks = tuple(time[kept][stream == m + s] for s in range(m))
        arrival = None if batch.arrival is None else batch.arrival[kept]
        batches.append(Batch(tables, stream, arrival, ticks))
        where.append(kept)
    moves = np.flatnonzero(moved)
    clocks = Clocks(batch.stream[moves], time[moves], 0)
    return Parts(batches, where, clocks, moves, delays)


def run_shards(
    query: JoinQuery, data: Data, keys: list[I64], n: int, *, sharing: bool, every: int, over: int
) -> Sharded:
    """All micro-batches of `every` ms of arrivals."""
    batch, unit = data.batch, 1_000
    times = [table[stream.ts].to_numpy().astype(np.int64) for table, stream in
             zip(batch.tables, query.streams, strict=True)]  # fmt: skip
    parts = parts_of(batch, times, keys, n)
    assert batch.arrival is not None
    step = np.arange(batch.arrival[0] + every, batch.arrival[-1] + every, every)
    ends = np.append(np.searchsorted(batch.arrival, step), len(batch.stream))
    schemas = dict(zip(query.names, (table.schema for table in batch.tables), strict=True))
    engines = [
        JoinEngine(query, schemas, controller_for(query), True, sharing=n if sharing else 1)
        for _ in range(n)
    ]
    cuts = [
        list(own.cut(np.searchsorted(turns, ends).tolist()))
        for own, turns in zip(parts.batches, parts.turns, strict=True)
    ]
    made: list[list[Production]] = [[] for _ in range(n)]
    slacks: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    reports = Reports()
    reached: int | None = None
    behind, begin, top = 0, 0, 0
    for number, end in enumerate(ends.tolist()):
        first, last = np.searchsorted(parts.moves, (begin, end))
        delays = parts.delays[begin:end]
        clocks = Clocks(
            parts.clocks.stream[first:last], parts.clocks.time[first:last],
            int(delays.max(initial=0)), coarse_counts(delays),
        )  # fmt: skip
        lows, highs = [], [] if reached is None else [reached]
        for shard, engine in enumerate(engines):
            common = engine.common_slack
            if common is not None:
                common.learn(reports if common.needs_reports else Reports())
                common.begin(clocks)
            output = engine.feed(cuts[shard][number])
            if common is not None:
                for more in common.end(None):
                    output.extend(more)
            if number == len(ends) - 1:
                output.extend(engine.flush())
            made[shard] += output.made
            slacks[shard] += output.slacks
            lows += [int(ts.min()) for ts, _, _ in output.made if len(ts)]
            highs += [int(ts.max()) for ts, _, _ in output.made if len(ts)]
            top = max(top, output.top)
        reports = Reports(e.common_slack.report() for e in engines if e.common_slack is not None)
        if lows and reached is not None:
            behind = max(behind, reached - min(lows))
        reached, begin = max(highs, default=None), end
    ts, count, _ = columns([one for shard in made for one in shard])
    order = np.argsort(ts, kind="stable")
    start = min(own[0][0] for own in slacks)
    series = recall_series(ts[order], count[order], *data.true, start + over, top, over, unit)
    each = [average_slack(own, start + over, top) for own in slacks]
    return Sharded(
        float(np.mean(each)), series["recall"].to_numpy(), float(count.sum() / data.facts.true),
        float(behind),
    )  # fmt: skip
