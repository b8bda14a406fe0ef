"""What travels from the pack stage to the shards: rows of one stream with their times, as Arrow.

Beside the user's columns a part has two of our own, made once by the pack stage: the event time in
the query's unit, and the reason for which a row is rejected. Shards use these; they neither convert
event times nor check rows. (The arrival is read from the user's column: that is cheaper than eight
more bytes per row through the shuffle.) Ours are the last columns, so the user's row is what is
before them; names that begin with `RESERVED` are refused in the user's frames (`spark.inputs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.events.batch import Checked
from slackwater.kernels.records import I64
from slackwater.spark.blobs import from_ipc
from slackwater.stats.arriving import NO_DELAYS, LastDelays

RESERVED = "__slackwater_"  # begins the names of our own columns
NOW = f"{RESERVED}now"  # the time of the micro-batch in units, until the pack stage
ARRIVED = f"{RESERVED}arrived"  # the same for rows without an arrival column
_TS, _REASON = f"{RESERVED}ts", f"{RESERVED}reason"
_NO_TIMES, _NO_REASONS = np.empty(0, np.int64), np.empty(0, np.uint8)


class PackedRows(NamedTuple):
    """Rows of one stream, and what the pack stage found out about them."""

    table: pa.Table  # the user's columns
    checked: Checked

    def with_own_columns(self) -> pa.Table:
        """One table that `of` takes apart again."""
        table = self.table.append_column(_TS, pa.array(self.checked.ts))
        return table.append_column(_REASON, pa.array(self.checked.reason))

    @classmethod
    def of(cls, table: pa.Table) -> PackedRows:
        """The rows that a table with own columns has."""
        *user, ts, reason = range(table.num_columns)
        numbers = (np.asarray(table.column(place).to_numpy()) for place in (ts, reason))
        return cls(table.select(user), Checked(*numbers))

    @classmethod
    def joined(cls, schema: pa.Schema, parts: Sequence[PackedRows]) -> PackedRows:
        """The rows of any number of parts as one."""
        table = pa.concat_tables([schema.empty_table(), *(rows.table for rows in parts)])
        ts = np.concatenate([_NO_TIMES, *(rows.checked.ts for rows in parts)])
        reason = np.concatenate([_NO_REASONS, *(rows.checked.reason for rows in parts)])
        return cls(table, Checked(ts, reason))


class Part(NamedTuple):
    """Rows of one stream for one shard, and the clock of all rows of the stream around them."""

    stream: int
    clock_arrival: I64  # at these arrivals
    clock_time: I64  # the local time of the stream rose to these
    delays: LastDelays  # of all rows, at their end
    rows: PackedRows

    @classmethod
    def read(cls, stream: int, clock: bytes, data: bytes) -> Part:
        """The part that is in a row of `blobs.PARTS`."""
        numbers = np.frombuffer(clock, np.int64)
        (steps, block), numbers = numbers[:2], numbers[2:]
        arrival, time, buckets, some = np.split(
            numbers, [steps, 2 * steps, (2 * steps + len(numbers)) // 2]
        )
        counts = np.zeros_like(NO_DELAYS.counts)
        counts.ravel()[buckets] = some
        delays = LastDelays(int(block), counts)
        return cls(stream, arrival, time, delays, PackedRows.of(from_ipc(data)))


def clock_bytes(
    arrival: I64 = _NO_TIMES, time: I64 = _NO_TIMES, delays: LastDelays = NO_DELAYS
) -> bytes:
    """A clock as `Part.read` takes it, with the delays at the end of its rows."""
    counts = delays.counts.ravel()
    some = np.flatnonzero(counts)
    first = np.array([len(arrival), delays.block])
    return np.concatenate([first, arrival, time, some, counts[some]]).tobytes()
