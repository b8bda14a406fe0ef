"""What travels between the stages: a few large rows instead of millions of small ones.

Before the shuffle a row is a *part*: rows of one stream for one shard as Arrow bytes, with the
clock of all rows it was cut from, so that every shard knows how far the stream is. Behind the
operator a row is a piece of the results. No value of a user is looked at on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.errors import DataError
from slackwater.events.batch import row_bytes
from slackwater.kernels.records import I64, NEVER

PIECE = 16 * 2**20  # bytes of a blob
MOST = 64 * 2**20  # bytes of a single row

PART_SCHEMA = "shard int, stream int, clock binary, data binary"
PARTS = pa.schema(
    {"shard": pa.int32(), "stream": pa.int32(), "clock": pa.binary(), "data": pa.binary()}
)
BATCH_CLOCK = "batch_clock"  # one more column where Spark has to see the end of the input
CONTROL = -1  # in `stream`: the data is a command

PIECE_SCHEMA = "kind int, data binary, numbers array<long>"
PIECES = (pa.int32(), pa.binary(), pa.list_(pa.int64()))
# `kind`; metrics are `numbers`, and in `data` a sketch as JSON; the others are `data`
RESULTS, REJECTS, METRICS, PARTIALS = range(4)


class Part(NamedTuple):
    """Rows of one stream for one shard, and the clock of the rows they were among."""

    stream: int
    latest: int  # the latest time that is believed; NEVER: no limit, or by arrival
    arrival: I64  # the clock: at these arrivals
    time: I64  # the local time of the stream rose to these
    table: pa.Table

    @classmethod
    def read(cls, stream: int, clock: bytes, data: bytes) -> Part:
        """The part that a row is."""
        numbers = np.frombuffer(clock, np.int64)
        arrival, time = numbers[1:].reshape(2, -1)
        return cls(stream, int(numbers[0]), arrival, time, from_ipc(data))


NO_TIMES = np.empty(0, np.int64)


def clock_bytes(latest: int | None, arrival: I64 = NO_TIMES, time: I64 = NO_TIMES) -> bytes:
    """A clock as `Part.read` takes it."""
    first = np.array([NEVER if latest is None else latest], np.int64)
    return np.concatenate([first, arrival, time]).tobytes()


def to_ipc(table: pa.Table) -> bytes:
    """A table as Arrow bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def from_ipc(data: bytes) -> pa.Table:
    """The table that these bytes are; it shares their memory."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def cut(table: pa.Table, what: str) -> Iterator[pa.Table]:
    """`table` in parts of about a blob each; a row that is too large for any is an error."""
    if table.nbytes <= PIECE:
        yield table
        return
    sizes = row_bytes(table)
    if sizes.max(initial=0) > MOST:
        row = int(sizes.argmax())
        msg = (
            f"{what}, row {row} has {sizes[row] / 2**20:.0f} MB; at most {MOST >> 20} MB per row "
            "can travel through Spark: keep large values elsewhere and join their addresses"
        )
        raise DataError(msg)
    part = np.cumsum(sizes) // PIECE
    ends = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(part)]
    for begin, end in zip(ends, ends[1:], strict=False):
        yield table.slice(begin, end - begin)
