"""Before the shuffle: rows of one stream become parts, one per shard (`mapInArrow`).

This stage owns times and checks: each row's event time becomes a number here, once, and each row
that cannot take part gets its reason. Both travel with the rows; later stages use them. Every
arrival leaves in exactly one part (of a copied stream: in one per shard), rejected or not: shards
count them.

Every shard gets a part from every call, if only an empty one: its clock has the local time of the
stream, arrival by arrival. A clock made of the maxima of whole batches would not do: delays
measured on a quiet shard would depend on how the batches are cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.engine.checks import Checks, is_accepted
from slackwater.events.batch import Checked
from slackwater.kernels.records import BEFORE, I64
from slackwater.spark.blobs import BATCH_CLOCK, CONTROL, PARTS, PIECE, cut, to_ipc
from slackwater.spark.job import Job
from slackwater.spark.parts import NOW, PackedRows, clock_bytes
from slackwater.spark.task import task
from slackwater.spark.worker import settle
from slackwater.stats.arriving import NO_DELAYS, last_delays

_PER_MS = {"ms": 1, "us": 1000}


@dataclass(frozen=True)
class Pack:
    """The pack stage of one stream."""

    job: Job
    stream: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Arrow batches of the stream's rows in, rows of `PARTS` out."""
        settle()
        gathered: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:  # a session may cut them very small
            gathered.append(batch)
            size += batch.nbytes
            if size >= PIECE * self.job.partitioning.shards:
                yield from self._pack(gathered)
                gathered, size = [], 0
        yield from self._pack(gathered)

    def _pack(self, batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(batches) if batches else None
        if table is None or table.num_rows == 0:
            return  # no part means that nothing was delivered
        now = None
        if NOW in table.column_names:
            now = table.column(NOW)[0].as_py()
            table = table.drop_columns([NOW])
        schema = self.job.schemas[self.stream]
        table = table.rename_columns(schema.names).cast(schema).combine_chunks()
        arrival = self.job.arrivals(self.stream, table)
        latest = self.job.latest(table.num_rows, arrival, now)
        rows = PackedRows(table, self._checks.check(self.stream, table, latest))
        clock = self._clock(rows.checked, arrival)
        for shard, own in self._split(rows):
            what = f"stream {self.job.query.names[self.stream]!r}"
            for number, part in enumerate(cut(own, what)):
                key = self.job.shard_keys[shard]
                own_clock = clock if number == 0 else clock_bytes()
                yield _row(self.job, (key, self.stream, own_clock, to_ipc(part)))

    @cached_property
    def _checks(self) -> Checks:
        return Checks(self.job.query, self.job.schemas)

    def _clock(self, checked: Checked, arrival: I64 | None) -> bytes:
        """When the local time of the stream rose, as far as these rows show it."""
        job = self.job
        ts = np.where(is_accepted(checked.reason), checked.ts, BEFORE)  # rejects move no clock
        if arrival is None or job.partitioning.shards == 1:  # one shard has all rows anyway
            return clock_bytes(*_end(arrival, ts))
        order = np.lexsort((ts, arrival))
        if job.query.shares_delays:
            good = order[ts[order] != BEFORE]
            steps = _extremes(arrival[good], ts[good])
        else:
            steps = _staircase(arrival[order], ts[order], _PER_MS[job.query.unit])
        known, delays = [steps], NO_DELAYS
        if job.has_common_slack:
            good = order[ts[order] != BEFORE]
            known.append(_most_behind(arrival[good], ts[good]))
            if job.delay_block is not None:
                delays = last_delays(ts[good], job.delay_block)
        known.append(_end(arrival, ts))
        arrivals, times = map(np.concatenate, zip(*known, strict=True))
        return clock_bytes(arrivals, times, delays)

    def _split(self, rows: PackedRows) -> Iterator[tuple[int, pa.Table]]:
        partitioning, table = self.job.partitioning, rows.with_own_columns()
        if partitioning.shards == 1 or partitioning.is_copied(self.stream):
            for shard in range(partitioning.shards):
                yield shard, table
            return
        of = partitioning.shard_of(self.stream, rows.table, self.job.key_types)
        order = np.argsort(of, kind="stable")
        sorted_rows = table.take(pa.array(order))
        ends = np.searchsorted(of[order], np.arange(partitioning.shards + 1))
        for shard, (begin, end) in enumerate(zip(ends, ends[1:], strict=False)):
            yield shard, sorted_rows.slice(begin, end - begin)


def _staircase(arrival: I64, ts: I64, per_ms: int) -> tuple[I64, I64]:
    """Arrivals at which the largest time rose, and to what; at most one step per ms."""
    largest = np.maximum.accumulate(ts // per_ms)
    rose = np.ones(len(largest), bool)
    rose[1:] = largest[1:] > largest[:-1]
    return arrival[rose], ts[rose]


def _most_behind(arrival: I64, ts: I64) -> tuple[I64, I64]:
    """Rows with the largest delay so far, from which K follows at the start."""
    so_far = np.maximum.accumulate(np.maximum.accumulate(ts) - ts)
    rose = np.zeros(len(ts), bool)
    rose[1:] = so_far[1:] > so_far[:-1]
    return arrival[rose], ts[rose]


def _extremes(arrival: I64, ts: I64) -> tuple[I64, I64]:
    """Rows that are later or earlier than all before them, or have the largest delay so far.

    Aggregates wait as long as the largest delay, and all shards must know of the same one. A row
    whose arrival has passed arrives now: then the earliest of them has it.
    """
    delay = arrival - ts
    is_extreme = np.zeros(len(ts), bool)
    for values in (ts, -ts, delay):
        largest = np.maximum.accumulate(values)
        is_extreme[:1] = True
        is_extreme[1:] |= largest[1:] > largest[:-1]
    return arrival[is_extreme], ts[is_extreme]


def _end(arrival: I64 | None, ts: I64) -> tuple[I64, I64]:
    """The last arrival and the largest time."""
    last = np.zeros(1, np.int64) if arrival is None else arrival.max(keepdims=True)
    return last, ts.max(keepdims=True)


@dataclass(frozen=True)
class PackCommands:
    """The pack stage of the control directory: each command goes to every shard."""

    job: Job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """(name, text) of files in, rows of `PARTS` out."""
        for batch in batches:
            for name, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                for key in self.job.shard_keys:
                    text_of = f"{name}\n{text}".encode()
                    yield _row(self.job, (key, CONTROL, clock_bytes(), text_of))


def _row(job: Job, values: tuple[Any, ...]) -> pa.RecordBatch:
    columns = [pa.array([value], kind) for value, kind in zip(values, PARTS.types, strict=True)]
    if not job.flush_at_end:
        return pa.RecordBatch.from_arrays(columns, schema=PARTS)
    now = task()
    second = pa.array([1 if now is None else now.batch + 1], pa.timestamp("s", "UTC"))
    columns.append(second.cast(pa.timestamp("us", "UTC")))
    return pa.RecordBatch.from_arrays(columns, [*PARTS.names, BATCH_CLOCK])
