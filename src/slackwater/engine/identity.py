"""What identifies events and results: declared columns, or all columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.engine.checks import is_accepted
from slackwater.events.batch import Batch, flat, is_set
from slackwater.events.hashing import U64, hash_rows
from slackwater.events.log import Log
from slackwater.kernels.asof import RANK
from slackwater.kernels.records import BEFORE, I64, TICK
from slackwater.query.any_query import AnyQuery
from slackwater.query.join import JoinQuery
from slackwater.query.join_kinds import ONE_SIDED
from slackwater.query.stream import Stream
from slackwater.query.units import TimeUnit, to_units


def set_ranks(log: Log, begin: int, first_row: int, found: I64) -> None:
    """Mark the right events from number `begin` on with what decides between those of one time.

    `found` are the `ranks` of the rows of the right stream from `first_row` on.
    """
    own = slice(begin - log.base, None)
    places = np.flatnonzero((log.stream[own] == 1) & (log.keys[own, 0] != TICK))
    places += begin - log.base
    log.marks[places, RANK] = found[log.row[places] - first_row]


def ranks(table: pa.Table, columns: Sequence[str]) -> I64:
    """Return what decides between rows of one time: these columns, or none to mean all.

    A single whole number counts by its value, anything else by its hash: by content in any case.
    What is selected makes no difference.
    """
    if columns:
        table = table.select(list(columns))
    if len(columns) == 1 and pa.types.is_integer(table.schema.types[0]):
        values = flat(table.column(0))
        if values.type != pa.uint64():
            lowest = np.iinfo(np.int64).min
            return np.asarray(pc.fill_null(values.cast(pa.int64()), lowest))
    return hash_rows([flat(column) for column in table.columns]).view(np.int64)


# ---- identities of results

HIDDEN = (pa.field("identity 1", pa.int64()), pa.field("identity 2", pa.int64()))
"""Columns that rows have behind their own where results have identities."""

_REACH = "1 minute"  # how far back rows of equal content are told apart
_SEEDS = (np.uint64(0x736C61636B), np.uint64(0x7761746572))
_FEWEST = 1024


class Identities:
    """Gives the rows of one stream their identities, which do not change with the release.

    A row is identified by the columns that the stream declares; without any by all of them, and
    among rows of equal content by how many of them came before it. Only those are counted that are
    not older than a minute of event time.
    """

    def __init__(self, stream: Stream, unit: TimeUnit) -> None:
        self._stream = stream
        self._reach = to_units(_REACH, unit)
        self._top = BEFORE
        self._seen: dict[int, list[int]] = {}  # how often, and when; by content
        self._purge_at = _FEWEST

    def columns(self, table: pa.Table, ts: I64, tops: I64) -> list[pa.Array]:
        """The hidden columns of these rows, which come in this order.

        `tops` has the local time of the stream with each of them, as far as this batch shows it.
        """
        declared = [flat(table.column(name)) for name in self._stream.id]
        content = declared or [flat(column) for column in table.columns]
        if not declared:
            content.append(pa.array(self._occurrences(hash_rows(content), ts, tops)))
        return [pa.array(_hashed(seed, content)) for seed in _SEEDS]

    def _occurrences(self, content: U64, ts: I64, tops: I64) -> I64:
        """How many equal rows came before each of these."""
        tops = np.maximum(tops, self._top)
        counted = np.flatnonzero(ts >= tops - self._reach)
        occurrence = np.zeros(len(ts), np.int64)
        if len(ts) == 0:
            return occurrence
        self._top = int(tops[-1])
        for row, hashed in zip(counted.tolist(), content[counted].tolist(), strict=True):
            known = self._seen.setdefault(hashed, [0, int(ts[row])])
            occurrence[row] = known[0]
            known[0] += 1
        if len(self._seen) > self._purge_at:
            oldest = self._top - self._reach
            self._seen = {h: known for h, known in self._seen.items() if known[1] >= oldest}
            self._purge_at = max(_FEWEST, 2 * len(self._seen))
        return occurrence

    def state(self) -> dict[str, Any]:
        """As plain data."""
        oldest = self._top - self._reach
        seen = {str(h): known for h, known in sorted(self._seen.items()) if known[1] >= oldest}
        return {"top": self._top, "seen": seen}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._top = state["top"]
        self._seen = {int(h): list(known) for h, known in state["seen"].items()}
        self._purge_at = max(_FEWEST, 2 * len(self._seen))


def identities_of(query: AnyQuery) -> list[Identities]:
    """What gives the rows of each stream their identities; none if results have none."""
    return [Identities(stream, query.unit) for stream in query.streams if query.has_ids]


def row_schema(
    schema: pa.Schema, kept: Sequence[str], identities: Sequence[Identities]
) -> pa.Schema:
    """The columns of a stream that are kept."""
    own = pa.schema([schema.field(column) for column in kept])
    for field in HIDDEN if identities else ():
        own = own.append(field)
    return own


def with_identities(batch: Batch, identities: Sequence[Identities]) -> Sequence[pa.Table]:
    """The rows of a checked batch, with their identities if results have some."""
    if not identities:
        return batch.tables
    assert batch.checked is not None
    tables = []
    for s, (known, table) in enumerate(zip(identities, batch.tables, strict=True)):
        columns = known.columns(table, batch.checked[s].ts, _tops(batch, s))
        for field, column in zip(HIDDEN, columns, strict=True):
            table = table.append_column(field, column)  # noqa: PLW2901
        tables.append(table)
    return tables


def _tops(batch: Batch, stream: int) -> I64:
    """The local time of a stream with each of its rows, ticks included: alike on all shards."""
    assert batch.checked is not None
    rows = batch.checked[stream]
    tick = len(batch.tables) + stream
    turns = batch.stream[(batch.stream == stream) | (batch.stream == tick)]
    is_row = turns == stream
    times = np.empty(len(turns), np.int64)
    times[is_row] = np.where(is_accepted(rows.reason), rows.ts, BEFORE)
    if not is_row.all():
        times[~is_row] = batch.ticks[stream]
    tops: I64 = np.maximum.accumulate(times)[is_row]
    return tops


def result_ids(query: JoinQuery, members: Sequence[Sequence[pa.Array]]) -> pa.Array:
    """16 bytes for each result: of its kind and of the identities of its members.

    `members` has the hidden columns of the members by stream; null where there is none. A row of an
    as-of join has the identity of its left event, so that corrections replace it.
    """
    counted = members[:1] if query.how in ("asof", *ONE_SIDED) else members
    kind = np.zeros(len(members[0][0]), np.int64)
    for s, (first, _) in enumerate(counted):
        kind |= np.asarray(is_set(flat(first))).astype(np.int64) << s
    content = [pa.array(kind), *(flat(column) for pair in counted for column in pair)]
    halves = np.stack([_hashed(seed, content) for seed in _SEEDS], axis=1)
    data = pa.py_buffer(np.ascontiguousarray(halves.astype("<i8")).tobytes())
    fixed = pa.Array.from_buffers(pa.binary(16), len(halves), [None, data])
    return fixed.cast(pa.binary())


def _hashed(seed: np.uint64, columns: Sequence[pa.Array]) -> I64:
    start = pa.array(np.full(len(columns[0]), seed))
    return hash_rows([start, *columns]).view(np.int64)
