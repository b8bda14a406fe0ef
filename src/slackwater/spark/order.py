"""The arrivals of a micro-batch in an order that a replay repeats.

Spark hands the parts of a batch over in any order, and lays the rows out anew when it repeats a
batch on other cores. So they are sorted by what they are: with an arrival column by (arrival,
stream, ts, row), else a micro-batch is one instant and sorted by (ts, stream, row). Times and
rejects are those that the pack stage found; the row is that of the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.engine.checks import BAD_TIME
from slackwater.engine.common_slack import Clocks
from slackwater.events.batch import Batch, Checked
from slackwater.events.hashing import hash_rows
from slackwater.kernels import hashing as kernels
from slackwater.kernels.records import BEFORE, I64
from slackwater.spark.job import Job
from slackwater.spark.parts import PackedRows, Part
from slackwater.stats.arriving import NO_COUNTS, counts_at_the_end

_NOTHING = np.empty(0, np.int64)
_SHORT = 64  # runs of ties up to this are sorted by insertion


class Ordered(NamedTuple):
    """The arrivals, the last of them, and how many came with a number that had passed."""

    batch: Batch
    last: int
    behind: list[int]  # by stream


def in_order(job: Job, parts: Sequence[Part], local: Sequence[int], last: int) -> Ordered:
    """Sort the parts of a micro-batch.

    `local` has the local time of each stream, `last` the last arrival before. A number below it
    counts as arriving now.
    """
    m = len(job.schemas)
    tables, checked, keys, behind = [], [], [], []
    for s in range(m):
        own = [part.rows for part in parts if part.stream == s]
        rows = PackedRows.joined(job.schemas[s], own)
        arrival = job.arrivals(s, rows.table)
        behind.append(0 if arrival is None else int(np.count_nonzero(arrival < last)))
        order, key = _sorted(rows, arrival, last)
        tables.append(rows.table.take(pa.array(order)).combine_chunks())
        checked.append(rows.checked.rows(order))
        keys.append(key)
    if job.arrival is None:
        batch = _one_instant(tables, checked, keys, _ticks_at_end(job, parts, local))
    else:
        ticks = [_ticks(job, parts, s, local[s], last) for s in range(m)]
        batch = _by_arrival(tables, checked, keys, ticks)
        clocks = (part.clock_arrival for part in parts)
        last = max([last, *(int(clock[-1]) for clock in clocks if len(clock))])
    return Ordered(batch, last, behind)


def _sorted(rows: PackedRows, arrival: I64 | None, last: int) -> tuple[I64, I64]:
    """The order of the rows of a stream, and in that order what they are merged by."""
    ts = np.where(rows.checked.reason != BAD_TIME, rows.checked.ts, BEFORE)
    if arrival is None:
        order = np.argsort(ts, kind="stable")
        key = ts[order]
        same = key[1:] == key[:-1]
    else:
        now = np.maximum(arrival, last)
        order = np.lexsort((ts, now))
        key = now[order]
        times = ts[order]
        same = (key[1:] == key[:-1]) & (times[1:] == times[:-1])
    if same.any():
        order = _break_ties(rows.table, order, same)
    return order, key


def _break_ties(table: pa.Table, order: I64, same: np.ndarray) -> I64:
    """Sort rows that are equal so far by their content."""
    edges = np.flatnonzero(np.concatenate([[True], ~same, [True]]))
    begin, end = edges[:-1], edges[1:]
    tied = np.zeros(len(order), bool)
    tied[1:] |= same
    tied[:-1] |= same
    content = np.zeros(len(order), np.uint64)
    content[tied] = hash_rows(table.take(pa.array(order[tied])).columns)
    short = end - begin <= _SHORT
    kernels.sort_runs(begin[short], end[short], content, order)
    for first, last in zip(begin[~short], end[~short], strict=True):
        run = slice(first, last)
        order[run] = order[run][np.argsort(content[run], kind="stable")]
    return order


def clocks_of(job: Job, parts: Sequence[Part], last: int) -> Clocks:
    """The clocks of all streams in a micro-batch, which all shards know alike."""
    streams, arrivals, times, largest, delays = [], [], [], 0, NO_COUNTS
    for s in range(len(job.schemas)):
        own = [part for part in parts if part.stream == s]
        arrival = np.concatenate([_NOTHING, *(part.clock_arrival for part in own)])
        time = np.concatenate([_NOTHING, *(part.clock_time for part in own)])
        arrival, time = np.maximum(arrival, last)[time != BEFORE], time[time != BEFORE]
        order = np.lexsort((time, arrival))
        arrival, time = arrival[order], time[order]
        delay = np.maximum.accumulate(time) - time
        rises = np.diff(np.maximum.accumulate(time), prepend=BEFORE) > 0
        largest = max(largest, int(delay.max(initial=0)))
        streams.append(np.full(np.count_nonzero(rises), s, np.uint8))
        arrivals.append(arrival[rises])
        times.append(time[rises])
        delays = delays + counts_at_the_end(part.delays for part in own)
    stream, when, time = map(np.concatenate, (streams, arrivals, times))
    in_turn = np.lexsort((time, stream, when))
    if job.arrival is None:  # one instant: its rows are sorted by time
        in_turn = np.lexsort((stream, time))
    return Clocks(stream[in_turn], time[in_turn], largest, delays)


# ---- merging the streams


def _one_instant(
    tables: Sequence[pa.Table],
    checked: Sequence[Checked],
    times: Sequence[I64],
    ticks: Sequence[I64],
) -> Batch:
    """Rows by (ts, stream), then the ticks."""
    stream = np.repeat(np.arange(len(tables), dtype=np.uint8), [len(t) for t in times])
    merged = np.argsort(np.concatenate(times), kind="stable")
    turns = [np.full(len(t), len(tables) + s, np.uint8) for s, t in enumerate(ticks)]
    in_turn = np.concatenate([stream[merged], *turns])
    return Batch(tuple(tables), in_turn, None, tuple(ticks), tuple(checked))


def _by_arrival(
    tables: Sequence[pa.Table],
    checked: Sequence[Checked],
    arrivals: Sequence[I64],
    ticks: Sequence[tuple[I64, I64]],
) -> Batch:
    """Rows and ticks by (arrival, stream)."""
    m = len(tables)
    when = np.concatenate([*arrivals, *(arrival for arrival, _ in ticks)])
    counts = [len(a) for a in arrivals] + [len(a) for a, _ in ticks]
    turn = np.repeat(np.arange(2 * m, dtype=np.uint8), counts)
    rank = np.repeat(np.array([2 * (t % m) + t // m for t in range(2 * m)], np.uint8), counts)
    merged = np.lexsort((rank, when))
    times = tuple(time for _, time in ticks)
    return Batch(tuple(tables), turn[merged], when[merged], times, tuple(checked))


def _ticks(job: Job, parts: Sequence[Part], stream: int, local: int, last: int) -> tuple[I64, I64]:
    """The clock of a stream: arrivals at which its local time rose, and to what."""
    if job.partitioning.shards == 1 or job.partitioning.is_copied(stream):
        return _NOTHING, _NOTHING  # this shard sees every row itself
    own = [part for part in parts if part.stream == stream]
    arrival = np.maximum(np.concatenate([_NOTHING, *(part.clock_arrival for part in own)]), last)
    time = np.concatenate([_NOTHING, *(part.clock_time for part in own)])
    order = np.lexsort((time, arrival))
    arrival, time = arrival[order], time[order]
    if job.query.shares_delays:  # then earlier and equal times matter too
        return arrival[time != BEFORE], time[time != BEFORE]
    before = np.concatenate([[local], np.maximum.accumulate(np.maximum(time, local))[:-1]])
    rose = time > before[: len(time)]
    return arrival[rose], time[rose]


def _ticks_at_end(job: Job, parts: Sequence[Part], local: Sequence[int]) -> list[I64]:
    """The local time of each stream at the end of the instant, where it rose."""
    ticks = []
    for s in range(len(job.schemas)):
        clocks = [part.clock_time for part in parts if part.stream == s]
        times = [int(clock.max()) for clock in clocks if len(clock)]
        rose = max(times, default=BEFORE) > local[s] and job.partitioning.shards > 1
        ticks.append(np.array([max(times)] if rose else [], np.int64))
    return ticks
