"""From a checked batch to the log: times, key codes and numbers of events; rejects are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from slackwater.engine.checks import NO_PARTNER, Checks
from slackwater.events.batch import Batch, Checked, flat
from slackwater.events.limits import Limits
from slackwater.events.log import Log
from slackwater.joins.keys import KeyCodes
from slackwater.joins.projection import Projection
from slackwater.joins.visit_order import key_columns
from slackwater.kernels.records import F64, I32, I64, TICK, U8, RawRows
from slackwater.query.any_query import AnyQuery


@dataclass(frozen=True)
class Rejected:
    """Rows that cannot take part, by stream number and row of the batch's table."""

    stream: I64
    row: I64
    reason: U8  # place in REASONS

    @property
    def columns(self) -> tuple[I64, I64, U8]:
        """Stream, row and reason."""
        return self.stream, self.row, self.reason


_NO_ROWS = np.empty(0, np.int64)
_NONE_REJECTED = Rejected(_NO_ROWS, _NO_ROWS, np.empty(0, np.uint8))


class Numbers(Protocol):
    """The columns that kernels read as numbers."""

    @property
    def widths(self) -> dict[str, int]:
        """How many rows of `ints` and `floats` there are, and how wide `vectors` is."""

    def read(self, stream: int) -> list[str]:
        """The columns of `stream` that the numbers come from."""

    def fill(self, stream: int, table: pa.Table, ints: I64, floats: F64, vectors: F64) -> None:
        """Write the numbers of a table of `stream`."""


class Intake:
    """Turns the rows of all streams of one query into events.

    Times and rejects are those of the batch; a batch that was not checked before is checked first.
    """

    def __init__(
        self,
        query: AnyQuery,
        schemas: Sequence[pa.Schema],
        numbers: Numbers,
        projection: Projection | None,
        limits: Limits,
    ) -> None:
        self._query = query
        self._schemas = schemas
        self._numbers = numbers
        self._projection = projection
        self._keys = query.keys
        self._own_keys = key_columns(self._keys, len(query.streams))
        self.checks = Checks(query, schemas)
        # the codes below the number of streams name the streams' timelines
        types = [
            {s: [schemas[s].field(c).type for c in columns] for s, columns in key.columns.items()}
            for key in self._keys
        ]
        self.codes = KeyCodes(types, len(query.streams), limits)

    @property
    def n_keys(self) -> int:
        """Keys per event, at most."""
        return max(map(len, self._own_keys))

    def kept_columns(self, stream: int) -> list[str]:
        """Columns of `stream` that must outlive the intake.

        All, or those that are selected and those from which a restored engine works out times, keys
        and numbers.
        """
        schema = self._schemas[stream]
        if self._query.select == "*" and self._query.shows(stream):
            return list(schema.names)
        name, projection = self._query.names[stream], self._projection
        selected = [] if projection is None else projection.read(name)
        return list(dict.fromkeys([*self.read_columns(stream), *selected]))

    def read_columns(self, stream: int) -> list[str]:
        """Columns of `stream` from which times, keys and numbers come."""
        keys = [column for key in self._keys for column in key.columns.get(stream, ())]
        numbers = self._numbers.read(stream)
        of_stream = self._query.streams[stream]
        return list(dict.fromkeys([of_stream.ts, *keys, *numbers, *of_stream.id]))

    def take_in(self, batch: Batch, log: Log, first_rows: Sequence[int]) -> Rejected:
        """Append the good rows and the ticks of a checked `batch` to `log`; return the rejects.

        `first_rows` has, for each stream, the number of its first row in this batch.
        """
        m = len(batch.tables)
        assert batch.checked is not None
        rows = self.raw(batch.tables, batch.checked, batch.ticks)
        counts = [table.num_rows for table in batch.tables] + [len(t) for t in batch.ticks]
        starts = np.cumsum([0, *counts[:-1]])
        arrival = np.empty(0, np.int64) if batch.arrival is None else batch.arrival
        if m == 1 and not any(map(len, batch.ticks)) and not rows.reason.any():
            self._append(rows, batch.arrival, log, first_rows[0])
            return _NONE_REJECTED
        bad = np.empty(len(batch.stream), np.int64)
        at, first = starts.copy(), np.array(first_rows) - starts[:m]
        n_bad = log.take_turns(batch.stream, arrival, at, first, rows, bad)
        bad = bad[:n_bad]
        stream = batch.stream[bad].astype(np.int64)
        place = starts[stream]
        for s in range(m if n_bad else 0):  # how many rows of its stream came before
            own = stream == s
            place[own] += np.searchsorted(np.flatnonzero(batch.stream == s), bad[own])
        rejected = Rejected(stream, first[stream] + place, rows.reason[place])
        if self._query.strict and n_bad:
            self.checks.raise_first(*(int(column[0]) for column in rejected.columns))
        return rejected

    def _append(self, rows: RawRows, arrival: I64 | None, log: Log, first: int) -> None:
        """Append the rows of a single stream, all of them good."""
        n = len(rows.ts)
        known = {} if arrival is None else {"arrival": arrival}
        log.append(
            rows.ts, np.zeros(n, np.int64), list(rows.code), row=first + np.arange(n),
            ints=rows.ints, floats=rows.floats, **known,
        )  # fmt: skip

    def restored(self, tables: Sequence[pa.Table]) -> RawRows:
        """The rows of a snapshot, which have been accepted before."""
        checked = (self.checks.check(s, table) for s, table in enumerate(tables))
        return self.raw(
            tables,
            [Checked(ts, np.where(why == NO_PARTNER, why, np.uint8(0))) for ts, why in checked],
        )

    def raw(
        self,
        tables: Sequence[pa.Table],
        checked: Sequence[Checked],
        ticks: Sequence[I64] = (),
    ) -> RawRows:
        """Times, reasons, key codes and numbers of all rows, stream after stream, then ticks."""
        n = sum(table.num_rows for table in tables) + sum(map(len, ticks))
        code = np.full((self.n_keys, n), TICK, np.int32)  # rows get codes below
        ints = np.zeros((self._numbers.widths["ints"], n), np.int64)
        floats = np.zeros((self._numbers.widths["floats"], n), np.float64)
        vectors = np.zeros((n, self._numbers.widths["vectors"]), np.float64)
        ts, reason = np.empty(n, np.int64), np.zeros(n, np.uint8)
        begin = 0
        for s, table in enumerate(tables):
            own = slice(begin, begin + table.num_rows)
            begin = own.stop
            ts[own], reason[own] = checked[s]
            code[:, own] = 0
            for column, codes in enumerate(self.key_codes(s, table)):
                code[column, own] = codes
            alone = reason[own] == NO_PARTNER
            if alone.any():  # the code of the stream itself: no other stream has it
                code[:, own][:, alone] = s
                reason[own][alone] = 0
            self._numbers.fill(s, table, ints[:, own], floats[:, own], vectors[own])
        for times in ticks:
            ts[begin : begin + len(times)] = times
            begin += len(times)
        return RawRows(ts, reason, code, ints, floats, vectors)

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
