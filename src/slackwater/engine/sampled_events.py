"""The events of a sample: copies from the engine's log, and the columns that a snapshot needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.engine.rows import Rows
from slackwater.engine.snapshot_format import Chunk, chunk_bytes, chunk_from
from slackwater.joins.sampled_join import SampledJoin
from slackwater.kernels.records import I64

if TYPE_CHECKING:
    from slackwater.engine.join import JoinEngine

Flags = NDArray[np.bool_]


class SampledEvents:
    """The events in the log of `join`, taken from `engine`.

    Key codes are not saved: a restored engine makes them anew from the columns in `_rows`. The last
    rows there are those of the events in the log, stream by stream; events that only look for
    results have none. New ones are copied when they are needed here or would be gone there: many at
    once are faster.
    """

    def __init__(self, engine: JoinEngine, join: SampledJoin) -> None:
        self._engine = engine
        self._join = join
        self._columns = [engine.intake.read_columns(s) for s in range(len(engine.schemas))]
        self._rows = [
            Rows(pa.schema([schema.field(c) for c in columns]))
            for schema, columns in zip(engine.schemas, self._columns, strict=True)
        ]
        self._new: list[list[I64]] = [[] for _ in engine.schemas]  # rows to copy, by stream

    def copy_rows(self) -> None:
        """Copy the new rows, before the engine forgets them."""
        for s, new in enumerate(self._new):
            if new:
                taken = self._engine.rows[s].take(np.concatenate(new), self._columns[s])
                self._rows[s].append(taken)
                new.clear()

    def is_alive(self, horizons: I64) -> Flags:
        """Which events of the log are not before these times, and not there to look only."""
        log = self._join.log
        alive: Flags = (log.ts >= horizons[log.stream]) & (log.keys[:, 0] >= 0)
        return alive

    def append(self, place: Any, taken: I64, kept: Flags) -> I64:
        """Copy the `taken` ones of the events at `place`; return their numbers in the sample.

        Those that are not `kept` only look for results.
        """
        engine, join = self._engine, self._join
        if not join.log.has_room(len(taken)):
            self._trim()
        at = place.start + taken if isinstance(place, slice) else place[taken]
        known = engine.log.records()
        stream = engine.log.stream[at]
        first, end = join.append(
            {
                "ts": engine.log.ts[at],
                "stream": stream,
                "keys": list(engine.log.keys[at].T),
                "delay": np.zeros(len(at), np.int64),
                "ints": known.ints[:, at],
                "floats": known.floats[:, at],
                "vectors": known.vectors[at],
            }
        )
        for s, new in enumerate(self._new):
            own = at[kept & (stream == s)]
            if len(own):
                new.append(engine.log.row[own])
        return np.arange(first, end)

    def _trim(self) -> None:
        """Forget what is out of reach, if it is much."""
        log = self._join.log
        alive = self.is_alive(self._join.stored_from)
        dead = int(np.argmax(alive)) if alive.any() else log.size
        if 2 * dead < log.size:
            return
        log.trim(log.base + dead)
        self.copy_rows()
        for s, rows in enumerate(self._rows):
            rows.forget(rows.end - int(np.count_nonzero(self._has_row(s))))

    def _has_row(self, stream: int) -> Flags:
        log = self._join.log
        has_row: Flags = (log.stream == stream) & (log.keys[:, 0] >= 0)
        return has_row

    # ---- for a snapshot

    def saved(self, horizons: I64) -> bytes:
        """The events that are not before these times."""
        log = self._join.log
        alive = self.is_alive(horizons)
        self.copy_rows()
        tables = []
        for s, rows in enumerate(self._rows):
            own = alive[self._has_row(s)]
            tables.append(rows.take(rows.end - len(own) + np.flatnonzero(own)))
        stream = log.stream[alive].astype(np.uint8)
        none = np.zeros(len(stream), np.int64)
        return chunk_bytes(Chunk(stream, none, log.delay[alive], tuple(tables)))

    def put_back(self, events: bytes) -> I64:
        """Fill the log with what `saved` returned; return the numbers of the events."""
        engine, chunk = self._engine, chunk_from(events)
        raw = engine.intake.restored([table.combine_chunks() for table in chunk.tables])
        engine.reserve_codes(engine.intake.codes.size)
        place = np.argsort(np.argsort(chunk.stream, kind="stable"), kind="stable")
        first, end = self._join.append(
            {
                "ts": raw.ts[place],
                "stream": chunk.stream,
                "keys": [codes[place] for codes in raw.code],
                "delay": chunk.delay,
                "ints": raw.ints[:, place],
                "floats": raw.floats[:, place],
                "vectors": raw.vectors[place],
            }
        )
        for rows, table in zip(self._rows, chunk.tables, strict=True):
            rows.append(table)
        return np.arange(first, end)
