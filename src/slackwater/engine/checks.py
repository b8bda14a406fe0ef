"""Which rows can take part: those with a usable time, keys and numbers.

Times are converted and rows checked once, where they come in: by the pack stage on Spark, by
`recorded` in a replay, by the engine for a batch that was not checked before. The result travels
with the rows (`events.batch.Checked`), and a row that is rejected moves no clock anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.errors import DataError, QueryError
from slackwater.events.batch import (
    Batch,
    Checked,
    check_time_column,
    flat,
    is_set,
    time_in_units,
)
from slackwater.joins.columns import columns_read
from slackwater.kernels.records import I64, U8
from slackwater.metrics import counters as metrics
from slackwater.query.any_query import AnyQuery
from slackwater.query.goals import Goal
from slackwater.query.stream import Stream

REASONS = ("", *metrics.REASONS)  # by number; 0: the row is accepted
BAD_TIME, NULL_KEY, NULL_NUMBER, TOO_FAR, BAD_VECTOR = range(1, 6)
NO_PARTNER = 255  # the row is accepted, and a null in it makes it a partner of none


def is_accepted(reason: U8) -> NDArray[np.bool_]:
    """Which rows take part."""
    accepted: NDArray[np.bool_] = (reason == 0) | (reason == NO_PARTNER)
    return accepted


class Checks:
    """The checks of all streams of one query."""

    def __init__(self, query: AnyQuery, schemas: Sequence[pa.Schema]) -> None:
        for stream, schema in zip(query.streams, schemas, strict=True):
            check_time_column(stream.name, stream.ts, schema)
            _check_unit(query, stream, schema)
        self._query = query
        streams = range(len(query.streams))
        self._keys = [[c for key in query.keys for c in key.columns.get(s, ())] for s in streams]
        for s in streams:
            _check_names("on", query.names[s], self._keys[s], schemas[s])
            _check_names("id", query.names[s], query.streams[s].id, schemas[s])
        read = columns_read(query, schemas)
        self._numbers = [[name for of, name in read.required if of == s] for s in streams]
        self._vectors = [[c for c in read.vectors if c.stream == s] for s in streams]

    def columns(self, reason: int, stream: int) -> list[str]:
        """The columns of `stream` that can have a value for which rows are rejected."""
        time = [self._query.streams[stream].ts]
        vectors = [vector.name for vector in self._vectors[stream]]
        return {
            BAD_TIME: time,
            NULL_KEY: self._keys[stream],
            NULL_NUMBER: self._numbers[stream] + vectors,
            TOO_FAR: time,
            BAD_VECTOR: vectors,
        }[reason]

    def times(self, stream: int, table: pa.Table) -> tuple[I64, NDArray[np.bool_]]:
        """Event times in units, and which of them are usable."""
        query = self._query
        return time_in_units(flat(table.column(query.streams[stream].ts)), query.unit)

    def check(self, stream: int, table: pa.Table, latest: I64 | None = None) -> Checked:
        """Convert the times of a stream's rows and find out which rows are rejected, and why.

        `latest` has, for each row, the largest time that is accepted; None: there is no limit.
        """
        ts, good = self.times(stream, table)
        reason = np.zeros(len(ts), np.uint8)
        reason[~good] = BAD_TIME
        for why, names in ((NULL_KEY, self._keys[stream]), (NULL_NUMBER, self._numbers[stream])):
            for name in names:
                if table.column(name).null_count:
                    reason[~is_set(flat(table.column(name))) & (reason == 0)] = why
        for vector in self._vectors[stream]:
            null, of_another_length = vector.flaws(flat(table.column(vector.name)))
            reason[null & (reason == 0)] = NULL_NUMBER
            reason[of_another_length & (reason == 0)] = BAD_VECTOR
        if self._query.preserved[stream]:
            reason[(reason == NULL_KEY) | (reason == NULL_NUMBER)] = NO_PARTNER
        if latest is not None:
            reason[(ts > latest) & is_accepted(reason)] = TOO_FAR
        return Checked(ts, reason)

    def check_batch(self, batch: Batch) -> Batch:
        """`batch` with its rows checked, if they were not before."""
        if batch.checked is not None:
            return batch
        rows = (self.check(s, table) for s, table in enumerate(batch.tables))
        return replace(batch, checked=tuple(rows))

    def raise_first(self, stream: int, row: int, reason: int) -> None:
        """Raise an error with the reason for which this row was rejected."""
        columns = " or ".join(self.columns(reason, stream))
        msg = (
            f"stream {self._query.names[stream]!r}, column {columns}, row {row}: "
            f"{REASONS[reason]}; with strict=False such rows are counted and left out"
        )
        raise DataError(msg)


def check_zones(query: AnyQuery, schemas: Sequence[pa.Schema]) -> None:
    """Local time and points in time cannot be compared without a zone."""
    kinds = [schema.field(s.ts).type for s, schema in zip(query.streams, schemas, strict=True)]
    if len({kind.tz is not None for kind in kinds if pa.types.is_timestamp(kind)}) > 1:
        got = ", ".join(f"{s.name}.{s.ts} {k}" for s, k in zip(query.streams, kinds, strict=True))
        msg = f"the time columns of all streams must have a zone, or none of them, got {got}"
        raise DataError(msg)


def _check_unit(query: AnyQuery, stream: Stream, schema: pa.Schema) -> None:
    """Refuse a bare number as the window over times that have a unit of their own."""
    kind, length = schema.field(stream.ts).type, stream.window
    if isinstance(length, int) and length and pa.types.is_temporal(kind):
        msg = (
            f"stream {stream.name!r}: window = {length} needs a unit, because the times in "
            f"{stream.ts!r} have one ({kind}): '{length} {query.unit}', '{length} seconds'"
        )
        raise QueryError(msg)


def _check_names(option: str, stream: str, keys: Sequence[str], schema: pa.Schema) -> None:
    for column in keys:
        if column not in schema.names:
            msg = (
                f"{option} names {stream}.{column}, but stream {stream!r} has no column "
                f"{column!r}; it has {', '.join(schema.names)}"
            )
            raise QueryError(msg)


def check_new_goal(before: Goal, goal: Goal, can_change: bool) -> None:
    """Raise `QueryError` if a running query cannot go on with `goal`."""
    if not isinstance(goal, type(before)) or not can_change:
        msg = f"a running goal {before} can only get other figures, got {goal}"
        raise QueryError(msg)
