"""Columnar batches of events: the only shape in which data enters an engine.

A `Batch` has one Arrow table per stream, rows in arrival order, and the order in which the streams
take turns. Its rows are `Checked` once, where they come in: by the pack stage on Spark, by
`engine.replay.recorded` for recorded tables, else by the engine that is fed. Later stages use the
times and reasons they find there. Nothing here reads user columns except the time column.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from slackwater.errors import DataError
from slackwater.kernels.records import I64, U8
from slackwater.query.units import TimeUnit

_LARGEST_TIME = 2**60  # leaves room for adding windows and slack
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Checked(NamedTuple):
    """What the checks found out about the rows of one stream."""

    ts: I64  # event times in the query's unit
    reason: U8  # why a row is rejected, an index of `engine.checks.REASONS`; 0: it is not

    def rows(self, own: slice | I64) -> Checked:
        """The same of some of the rows."""
        return Checked(self.ts[own], self.reason[own])


@dataclass(frozen=True)
class Batch:
    """Arrivals: `stream` has the stream of each turn; each stream's rows come in table order.

    With m streams, a turn of ``m + s`` is a tick of stream s: the local time of s elsewhere.
    """

    tables: tuple[pa.Table, ...]
    stream: U8
    arrival: I64 | None = None  # when; only used to report latency
    ticks: tuple[I64, ...] = ()  # times of each stream's ticks, if there are any
    checked: tuple[Checked, ...] | None = None  # by stream; None: the engine checks the rows

    def __post_init__(self) -> None:
        rows = [table.num_rows for table in self.tables] + [len(ticks) for ticks in self.ticks]
        turns = np.bincount(self.stream, minlength=len(rows)).tolist()
        if turns != rows:
            msg = f"a batch must have a turn for each row, got {turns} turns for {rows} rows"
            raise DataError(msg)
        if self.checked is not None:
            times = [len(checked.ts) for checked in self.checked]
            if times != rows[: len(self.tables)]:
                msg = f"a checked batch must have a time for each row, got {times} for {rows}"
                raise DataError(msg)

    def slices(self, size: int) -> Iterator[Batch]:
        """The same arrivals in batches of at most `size`."""
        if len(self.stream) <= size:
            yield self
            return
        yield from self.cut(range(size, len(self.stream) + size, size))

    def cut(self, ends: Iterable[int]) -> Iterator[Batch]:
        """The same arrivals in batches that end there; ends ascend, the last is behind all."""
        m = len(self.tables)
        done = np.zeros(m + len(self.ticks), np.int64)
        begin = 0
        for until in ends:
            turns = self.stream[begin:until]
            end = done + np.bincount(turns, minlength=len(done))
            own = [slice(*rows) for rows in zip(done.tolist(), end.tolist(), strict=True)]
            part = object.__new__(Batch)  # a part of a batch that was checked
            vars(part).update(
                tables=tuple(
                    table.slice(rows.start, rows.stop - rows.start)
                    for table, rows in zip(self.tables, own, strict=False)
                ),
                stream=turns,
                arrival=None if self.arrival is None else self.arrival[begin:until],
                ticks=tuple(t[ticks] for t, ticks in zip(self.ticks, own[m:], strict=True)),
                checked=None
                if self.checked is None
                else tuple(c.rows(rows) for c, rows in zip(self.checked, own, strict=False)),
            )
            yield part
            begin, done = until, end


def as_table(data: Any, stream: str) -> pa.Table:
    """An Arrow table from an Arrow, pandas or Polars frame (or anything with an Arrow stream)."""
    names = [str(name) for name in getattr(data, "column_names", getattr(data, "columns", []))]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        msg = f"stream {stream!r} has more than one column named {', '.join(doubled)}"
        raise DataError(msg)
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if type(data).__module__.startswith("pandas."):
        return pa.Table.from_pandas(data, preserve_index=False)
    if type(data).__module__.startswith("polars."):  # its view types have few Arrow functions yet
        return data.to_arrow(compat_level=sys.modules["polars"].CompatLevel.oldest())
    if hasattr(data, "__arrow_c_stream__"):  # the Arrow PyCapsule interface
        return pa.table(data)
    got = type(data).__name__
    msg = f"stream {stream!r} must be an Arrow table, a pandas or a Polars frame, got {got}"
    raise DataError(msg)


def flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column as one array."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def is_set(column: pa.Array) -> NDArray[np.bool_]:
    """Which values are not null."""
    if column.null_count == 0:
        return np.ones(len(column), bool)
    return np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False))


def row_bytes(table: pa.Table) -> I64:
    """Size of each row's values, without the overhead of columns.

    >>> row_bytes(pa.table({"x": [1, 2], "s": ["", "four"]})).tolist()
    [12, 16]
    """
    return _total([flat(column) for column in table.columns], table.num_rows)


def _value_bytes(column: pa.Array) -> I64:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if pa.types.is_struct(kind):
        return _total([column.field(i) for i in range(kind.num_fields)], len(column))
    if pa.types.is_fixed_size_list(kind):
        shape = len(column), kind.list_size
        inner = _value_bytes(column.values.slice(column.offset * kind.list_size))
        return np.asarray(inner[: shape[0] * shape[1]].reshape(shape).sum(axis=1))
    ends = offsets(column)
    if ends is None:
        return np.full(len(column), max(1, _width(column)), np.int64)
    if pa.types.is_nested(kind):
        values = [column.keys, column.items] if pa.types.is_map(kind) else [column.values]
        ends = np.concatenate([[0], np.cumsum(_total(values, len(values[0])))])[ends]
    return 4 + np.diff(ends)


def _width(column: pa.Array) -> int:
    """Bytes per value; the mean where a type has no width."""
    try:
        return int(column.type.bit_width) // 8
    except ValueError:
        return int(column.nbytes) // max(1, len(column))


def _total(columns: Sequence[pa.Array], n: int) -> I64:
    size = np.zeros(n, np.int64)
    for column in columns:
        size += _value_bytes(column)
    return size


def offsets(column: pa.Array) -> I64 | None:
    """Where the values of a text, bytes, list or map column begin and end; None for others."""
    kind = column.type
    types = pa.types
    if types.is_large_string(kind) or types.is_large_binary(kind) or types.is_large_list(kind):
        width = np.int64
    elif (
        types.is_string(kind) or types.is_binary(kind) or types.is_list(kind) or types.is_map(kind)
    ):
        width = np.int32  # type: ignore[assignment]
    else:
        return None
    if len(column) == 0:
        return np.zeros(1, np.int64)
    buffer = column.buffers()[1]
    found = np.frombuffer(buffer, width, len(column) + 1, column.offset * np.dtype(width).itemsize)
    return found.astype(np.int64)


def check_time_column(stream: str, name: str, schema: pa.Schema, what: str = "time") -> None:
    """Raise unless the stream has a usable time column."""
    if name not in schema.names:
        has = ", ".join(schema.names) or "none"
        msg = f"stream {stream!r} has no {what} column {name!r}; it has {has}"
        raise DataError(msg)
    kind = schema.field(name).type
    tests = (
        pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer, pa.types.is_floating,
        pa.types.is_decimal,
    )  # fmt: skip
    if not any(test(kind) for test in tests):
        msg = (
            f"stream {stream!r}: {what} column {name!r} must be a timestamp or a number, got {kind}"
        )
        raise DataError(msg)


def time_in_units(column: pa.Array, unit: TimeUnit) -> tuple[I64, NDArray[np.bool_]]:
    """Event times in whole units, rounded down, and which of them are usable.

    Numbers are taken as they are. Null, NaN, infinite and absurdly large times are not usable.

    >>> ts, good = time_in_units(pa.array([1.9, None, float("nan")]), "ms")
    >>> ts.tolist(), good.tolist()
    ([1, 0, 0], [True, False, False])
    """
    good = is_set(column)
    kind = column.type
    if pa.types.is_date(kind):
        column, kind = column.cast(pa.timestamp("ms")), pa.timestamp("ms")
    if pa.types.is_uint64(kind):  # exact: nanoseconds are too large for a float
        numbers = column.fill_null(0).to_numpy(zero_copy_only=False)
        ts = np.minimum(numbers, np.uint64(2 * _LARGEST_TIME)).astype(np.int64)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        good = good & np.isfinite(numbers)
        numbers = np.where(good, np.clip(numbers, -2.0 * _LARGEST_TIME, 2.0 * _LARGEST_TIME), 0.0)
        ts = np.floor(numbers).astype(np.int64)
    else:
        whole = column.cast(pa.int64())
        if whole.null_count:
            whole = whole.fill_null(0)
        ts = whole.to_numpy(zero_copy_only=False)
        if pa.types.is_timestamp(kind):
            ts = _rescale(ts, _PER_SECOND[kind.unit], _PER_SECOND[unit])
    if ts.min(initial=0) < -_LARGEST_TIME or ts.max(initial=0) > _LARGEST_TIME:
        good = good & (ts >= -_LARGEST_TIME) & (ts <= _LARGEST_TIME)
    return ts, good


def _rescale(ts: I64, per_second: int, wanted: int) -> I64:
    if per_second > wanted:
        return ts // (per_second // wanted)
    if per_second < wanted:
        factor = wanted // per_second
        limit = 2 * _LARGEST_TIME // factor
        return np.clip(ts, -limit, limit) * factor
    return ts


def in_arrival_order(
    tables: Sequence[pa.Table],
    checked: Sequence[Checked],
    arrivals: Sequence[I64],
    within: Sequence[I64],
) -> tuple[Batch, list[I64]]:
    """One batch from whole tables, sorted by (arrival, stream, `within`, row).

    Returns also, for each stream, which row of its table became the n-th to arrive.
    """
    orders = [np.lexsort((key, arrival)) for arrival, key in zip(arrivals, within, strict=True)]
    ordered = tuple(
        table if _is_identity(order) else table.take(pa.array(order))
        for table, order in zip(tables, orders, strict=True)
    )
    arrival = np.concatenate([a[order] for a, order in zip(arrivals, orders, strict=True)])
    stream = np.repeat(np.arange(len(tables), dtype=np.uint8), [table.num_rows for table in tables])
    merged = np.argsort(arrival, kind="stable")  # equal arrivals stay in stream order
    rows = tuple(c.rows(order) for c, order in zip(checked, orders, strict=True))
    return Batch(ordered, stream[merged], arrival[merged], checked=rows), orders


def _is_identity(order: I64) -> bool:
    return bool(len(order) == 0 or (order[0] == 0 and np.all(np.diff(order) == 1)))
