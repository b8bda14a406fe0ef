"""What travels between the stages: a few large rows instead of millions of small ones.

Before the shuffle a row is a *part*: rows of one stream for one shard as Arrow bytes, with the
clock of all rows it was cut from, so that every shard has the local time of the stream (`parts`).
Behind the operator a row is a piece of the results. No value of a user is read on the way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from slackwater.errors import DataError
from slackwater.events.batch import row_bytes

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
