"""From a batch to the log: times, key codes and numbers of events, rejects with their reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.errors import DataError, QueryError
from slackwater.events import Batch, check_time_column, flat, is_set, time_in_units
from slackwater.graph import Key
from slackwater.joins.conditions import Conditions, NumberColumn
from slackwater.joins.keys import KeyCodes
from slackwater.joins.plan import key_columns
from slackwater.kernels.records import I32, I64, NONE, U8, RawRows
from slackwater.log import Log
from slackwater.query import Query

REASONS = ("", "bad time", "null key", "null in where")
_BAD_TIME, _NULL_KEY, _NULL_NUMBER = 1, 2, 3


@dataclass(frozen=True)
class Rejected:
    """Rows that cannot take part, by stream number and row of the batch's table."""

    stream: I64
    row: I64
    reason: U8  # place in REASONS


class Intake:
    """Checks and converts the rows of all streams of one query."""

    def __init__(self, query: Query, schemas: Sequence[pa.Schema], conditions: Conditions) -> None:
        self._query = query
        self._schemas = schemas
        self._numbers = conditions.columns
        self._widths = conditions.widths
        self._keys = query.keys
        self._own_keys = key_columns(self._keys, len(query.streams))
        for stream, schema in zip(query.streams, schemas, strict=True):
            check_time_column(stream.name, stream.ts, schema)
        # the codes below the number of streams name the streams' timelines
        self.codes = KeyCodes([self._key_types(key) for key in self._keys], len(query.streams))

    def _key_types(self, key: Key) -> dict[int, list[pa.DataType]]:
        types = {}
        for s, columns in key.columns.items():
            schema = self._schemas[s]
            for column in columns:
                if column not in schema.names:
                    name = self._query.names[s]
                    msg = (
                        f"on names {name}.{column}, but stream {name!r} has no column {column!r}; "
                        f"it has {', '.join(schema.names)}"
                    )
                    raise QueryError(msg)
            types[s] = [schema.field(column).type for column in columns]
        return types

    @property
    def n_keys(self) -> int:
        """Keys per event, at most."""
        return max(map(len, self._own_keys))

    def kept_columns(self, stream: int) -> list[str]:
        """Columns of `stream` that must outlive the intake: all, or only keys when counting."""
        schema = self._schemas[stream]
        if self._query.select == "*":
            return list(schema.names)
        keys = [column for key in self._keys for column in key.columns.get(stream, ())]
        return list(dict.fromkeys(keys))

    def take_in(self, batch: Batch, log: Log, first_rows: Sequence[int]) -> Rejected:
        """Append the good rows of `batch` to `log`; tell about the others.

        `first_rows` has, for each stream, the number of its first row in this batch.
        """
        rows = self._raw(batch)
        counts = [table.num_rows for table in batch.tables]
        starts = np.cumsum([0, *counts[:-1]])
        arrival = np.empty(0, np.int64) if batch.arrival is None else batch.arrival
        bad = np.empty(len(batch.stream), np.int64)
        at, first = starts.copy(), np.array(first_rows) - starts
        n_bad = log.take_turns(batch.stream, arrival, at, first, rows, bad)
        bad = bad[:n_bad]
        stream = batch.stream[bad].astype(np.int64)
        turn = [
            int(np.count_nonzero(batch.stream[:i] == s)) for i, s in zip(bad, stream, strict=True)
        ]
        place = starts[stream] + np.array(turn, np.int64)
        rejected = Rejected(stream, first[stream] + place, rows.reason[place])
        if self._query.strict and n_bad:
            self._raise(rejected)
        return rejected

    def _raw(self, batch: Batch) -> RawRows:
        """Times, reasons, key codes and numbers of all rows, stream after stream."""
        n = len(batch.stream)
        code = np.zeros((self.n_keys, n), np.int32)
        ints = np.zeros((self._widths["ints"], n), np.int64)
        floats = np.zeros((self._widths["floats"], n), np.float64)
        ts, reason = np.empty(n, np.int64), np.zeros(n, np.uint8)
        begin = 0
        for s, table in enumerate(batch.tables):
            own = slice(begin, begin + table.num_rows)
            begin = own.stop
            why = reason[own]
            ts[own], good = time_in_units(
                flat(table.column(self._query.streams[s].ts)), self._query.unit
            )
            if not good.all():
                why[~good] = _BAD_TIME
            for column, codes in enumerate(self.key_codes(s, table)):
                code[column, own] = codes
                if codes.min(initial=0) == NONE:
                    why[(codes == NONE) & (why == 0)] = _NULL_KEY
            for number in self._numbers:
                if number.stream == s:
                    values, good = _numbers(table, number)
                    (ints if number.matrix == "ints" else floats)[number.row, own] = values
                    why[~good & (why == 0)] = _NULL_NUMBER
        return RawRows(ts, reason, code, ints, floats)

    def key_codes(self, stream: int, table: pa.Table) -> list[I32]:
        """Codes of each key column of `stream`."""
        return [
            self.codes.encode(
                key,
                [flat(table.column(name)) for name in self._keys[key].columns[stream]],
                table.num_rows,
            )
            for key in self._own_keys[stream]
        ]

    def _raise(self, rejected: Rejected) -> None:
        s, reason = int(rejected.stream[0]), int(rejected.reason[0])
        stream = self._query.streams[s]
        columns = {
            _BAD_TIME: [stream.ts],
            _NULL_KEY: [c for key in self._keys for c in key.columns.get(s, ())],
            _NULL_NUMBER: [number.name for number in self._numbers if number.stream == s],
        }[reason]
        msg = (
            f"stream {stream.name!r}, column {' or '.join(columns)}, row {rejected.row[0]}: "
            f"{REASONS[reason]}; with strict=False such rows are counted and left out"
        )
        raise DataError(msg)


def _numbers(
    table: pa.Table, number: NumberColumn
) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
    column = flat(table.column(number.name))
    good = is_set(column)
    to = pa.int64() if number.matrix == "ints" else pa.float64()
    values = column.cast(to)
    if values.null_count:
        values = values.fill_null(0)
    return values.to_numpy(zero_copy_only=False), good
