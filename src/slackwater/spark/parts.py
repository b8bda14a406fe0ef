"""What travels from the pack stage to the shards: rows of one stream with their times, as Arrow.

Beside the user's columns a part has columns of our own, made once by the pack stage: the event time
and the arrival as numbers in the query's unit, and the reason for which a row is rejected. Shards
use these and convert nothing. They are the last columns, so the user's row is what is before them;
names that begin with `RESERVED` are refused in the user's frames (`spark.inputs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.events.batch import Checked
from slackwater.kernels.records import I64
from slackwater.spark.blobs import from_ipc

RESERVED = "__slackwater_"  # begins the names of our own columns
NOW = f"{RESERVED}now"  # the time of the micro-batch in units, until the pack stage
ARRIVED = f"{RESERVED}arrived"  # the same for rows without an arrival column
_TS, _REASON, _ARRIVAL = (f"{RESERVED}{name}" for name in ("ts", "reason", "arrival"))
_NO_TIMES = np.empty(0, np.int64)


class PackedRows(NamedTuple):
    """Rows of one stream, and what the pack stage found out about them."""

    table: pa.Table  # the user's columns
    checked: Checked
    arrival: I64 | None  # in units; None: there is no arrival column

    def with_own_columns(self) -> pa.Table:
        """One table that `of` takes apart again."""
        table = self.table.append_column(_TS, pa.array(self.checked.ts))
        table = table.append_column(_REASON, pa.array(self.checked.reason))
        return table if self.arrival is None else table.append_column(_ARRIVAL, [self.arrival])

    @classmethod
    def of(cls, table: pa.Table) -> PackedRows:
        """The rows that a table with own columns has."""
        n_user = table.column_names.index(_TS)
        ts, reason, *arrival = (_numbers(column) for column in table.columns[n_user:])
        user = table.select(list(range(n_user)))
        return cls(user, Checked(ts, reason), arrival[0] if arrival else None)

    @classmethod
    def joined(cls, parts: Sequence[PackedRows], empty: PackedRows) -> PackedRows:
        """The rows of several parts as one; `empty` has the columns if there are none."""
        every = [empty, *parts]
        arrivals = [rows.arrival for rows in every if rows.arrival is not None]
        return cls(
            pa.concat_tables([rows.table for rows in every]),
            Checked(
                np.concatenate([rows.checked.ts for rows in every]),
                np.concatenate([rows.checked.reason for rows in every]),
            ),
            np.concatenate(arrivals) if arrivals else None,
        )


class Part(NamedTuple):
    """Rows of one stream for one shard, and the clock of all rows of the stream around them."""

    stream: int
    clock_arrival: I64  # at these arrivals
    clock_time: I64  # the local time of the stream rose to these
    rows: PackedRows

    @classmethod
    def read(cls, stream: int, clock: bytes, data: bytes) -> Part:
        """The part that is in a row of `blobs.PARTS`."""
        arrival, time = np.frombuffer(clock, np.int64).reshape(2, -1)
        return cls(stream, arrival, time, PackedRows.of(from_ipc(data)))


def clock_bytes(arrival: I64 = _NO_TIMES, time: I64 = _NO_TIMES) -> bytes:
    """A clock as `Part.read` takes it."""
    return np.concatenate([arrival, time]).tobytes()


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(column.to_numpy())
