"""What a batch gave: results, counts by result time, late events, rejects, changes of K."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.engine.checks import REASONS
from slackwater.engine.identity import HIDDEN, result_ids
from slackwater.engine.intake import Rejected
from slackwater.engine.result_schema import CHANGE, LATE, join_columns, projection_of, schema_of
from slackwater.engine.rows import Rows
from slackwater.events.log import Log
from slackwater.joins.projection import Projection
from slackwater.kernels import join as fates
from slackwater.kernels.records import BEFORE, I64, Late, Made, Released, Results
from slackwater.query.join import JoinQuery


@dataclass(frozen=True)
class Shape:
    """The columns of results."""

    schema: pa.Schema
    counts: bool  # only how many results there are
    keeps_members: bool  # precision is measured by comparing members
    projection: Projection | None = None  # None: all columns of all streams
    ids_of: JoinQuery | None = None  # whose results have identities; None: they have none

    @classmethod
    def of(cls, query: JoinQuery, schemas: Sequence[pa.Schema]) -> Shape:
        """The columns of the results of a join."""
        projection = projection_of(query, schemas)
        schema = schema_of(join_columns(query, schemas, projection))
        counts = query.select == "count"
        keeps_members = not counts and query.has_tuple_windows
        return cls(schema, counts, keeps_members, projection, query if query.result_id else None)


class Production(NamedTuple):
    """Events that made results: when, how many, and how far local time had moved on."""

    ts: I64  # result time
    n: I64
    latency: I64


class LateEvents(NamedTuple):
    """Events that came behind the join's clock."""

    stream: I64
    ts: I64
    late_by: I64
    kept: NDArray[np.bool_]
    lost: I64
    exact: NDArray[np.bool_]


CHANGES = pa.array(["insert", "delete", "update"])  # what a row does, by number

_NO_NUMBERS = np.empty(0, np.int64)
_NONE_LATE = LateEvents(
    _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS, np.empty(0, bool), _NO_NUMBERS, np.empty(0, bool)
)


class Output:
    """Filled by the engine, read by its user."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.tables: list[pa.Table] = []
        self.members: list[I64] = []  # rows of each result, by stream
        self.made: list[Production] = []
        self.late: list[LateEvents] = []
        self.rejected: list[Rejected] = []
        self.dropped: list[I64] = []  # rows of events that windows dropped
        self.slacks: list[tuple[int, int]] = []  # (event time, K) where K changed
        self.waits: list[I64] = []  # arrival of the last member to emission, per result
        self.partials: list[Any] = []  # tallies of windows, for others to add up
        self.top = BEFORE  # largest local time

    @property
    def nbytes(self) -> int:
        """Size of the results."""
        return sum(table.nbytes for table in self.tables)

    @property
    def table(self) -> pa.Table:
        """The results, in result-time order but for late ones."""
        if self.shape.counts:
            return counts(self.made, self.shape.schema)
        return pa.concat_tables([self.shape.schema.empty_table(), *self.tables])

    def extend(self, later: Output) -> None:
        """Add what a later batch gave."""
        for name in (
            "tables",
            "members",
            "made",
            "late",
            "rejected",
            "dropped",
            "slacks",
            "waits",
            "partials",
        ):
            getattr(self, name).extend(getattr(later, name))
        self.top = max(self.top, later.top)

    # ---- for the engine

    def slack(self, ts: int, slack: int) -> None:
        """K is `slack` from event time `ts` on."""
        self.slacks.append((ts, slack))

    def rejects(self, rejected: Rejected) -> None:
        """These rows cannot take part."""
        if len(rejected.row):
            self.rejected.append(rejected)

    def results(
        self, found: Results, tables: Sequence[pa.Table], change: I64 | None = None
    ) -> None:
        """These events joined; `tables` has their columns, stream by stream.

        `change` is what each row does (`kernels.matching`); None: it is one more.
        """
        columns = [pa.array(found.ts.copy()).cast(self.shape.schema.field(0).type)]
        if self.shape.ids_of is not None:
            ids = result_ids(self.shape.ids_of, [table.columns[-len(HIDDEN) :] for table in tables])
            tables = [table.select(table.column_names[: -len(HIDDEN)]) for table in tables]
        if self.shape.projection is None:
            columns += [column for table in tables for column in table.columns]
        else:
            columns += self.shape.projection.of_members(tables)
        if self.shape.ids_of is not None:
            columns.append(ids)
        names = self.shape.schema.names
        if LATE in names[len(columns) :]:
            columns.append(pa.array(found.late.astype(bool)))
        if CHANGE in names[len(columns) :]:
            change = np.zeros(len(found.ts), np.int64) if change is None else change
            columns.append(CHANGES.take(pa.array(change)))
        self.tables.append(pa.Table.from_arrays(columns, schema=self.shape.schema))
        if self.shape.keeps_members:
            self.members.append(found.row.T.copy())

    def step(self, log: Log, out: Released, made: Made, late: Late) -> None:
        """These events went through the join."""
        self.made.append(Production(made.ts, made.n, out.top[made.position] - made.ts))
        if len(late.position):
            place = out.event[late.position] - log.base
            self.late.append(
                LateEvents(
                    log.stream[place],
                    log.ts[place],
                    late.by,
                    (late.fate & fates.LATE_KEPT) > 0,
                    late.lost,
                    (late.fate & (fates.LOSS_UNKNOWN | fates.LOSS_ESTIMATED)) == 0,
                )
            )


def counts(made: Sequence[Production], schema: pa.Schema) -> pa.Table:
    """Number of results by result time, ascending."""
    times = np.concatenate([part.ts for part in made]) if made else np.empty(0, np.int64)
    n = np.concatenate([part.n for part in made]) if made else np.empty(0, np.int64)
    if (times[1:] < times[:-1]).any():  # results at once are in no order
        order = np.argsort(times, kind="stable")
        times, n = times[order], n[order]
    is_first = np.ones(len(times), bool)
    is_first[1:] = times[1:] != times[:-1]  # what is equal is side by side
    first = np.flatnonzero(is_first)
    totals = np.add.reduceat(n, first) if len(n) else n
    time = pa.array(times[first]).cast(schema.field(0).type)
    return pa.Table.from_arrays([time, pa.array(totals)], schema=schema)


def rejects_table(
    rejected: Sequence[Rejected], names: Sequence[str], orders: Sequence[I64]
) -> pa.Table:
    """Stream, row of its table and reason of each rejected row.

    `orders` has, for each stream, which row of its table was the n-th to arrive.
    """
    places = [(s, n) for r in rejected for s, n in zip(r.stream, r.row, strict=True)]
    return pa.table({
        "stream": pa.array([names[s] for s, _ in places], pa.string()),
        "row": pa.array([int(orders[s][n]) for s, n in places], pa.int64()),
        "reason": pa.array([REASONS[why] for r in rejected for why in r.reason], pa.string()),
    })  # fmt: skip


def slack_table(slacks: Sequence[tuple[int, int]]) -> pa.Table:
    """K over event time: (ts, k), a row for each change."""
    ts, k = zip(*slacks, strict=True) if slacks else ((), ())
    return pa.table({"ts": pa.array(ts, pa.int64()), "k": pa.array(k, pa.int64())})


def late_table(late: Sequence[LateEvents], names: Sequence[str]) -> pa.Table:
    """One row per late event."""
    columns = zip(_NONE_LATE, *late, strict=True)
    stream, ts, late_by, kept, lost, exact = (np.concatenate(column) for column in columns)
    return pa.table({
        "stream": pa.array([names[int(s)] for s in stream], pa.string()),
        "ts": pa.array(ts, pa.int64()),
        "late_by": pa.array(late_by, pa.int64()),
        "kept": pa.array(kept, pa.bool_()),
        "lost": pa.array(lost, pa.int64()),
        "exact": pa.array(exact, pa.bool_()),
    })  # fmt: skip


def parts_of(found: Results, rows: Sequence[Rows], piece: int | None) -> Iterator[Results]:
    """`found` in parts of about `piece` bytes each, so that large rows cannot pile up."""
    if piece is None:
        yield found
        return
    sizes = np.zeros(len(found.ts), np.int64)
    for s, of_stream in enumerate(rows):
        sizes += of_stream.sizes(found.row[s])
    part = np.cumsum(sizes) // piece
    ends = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(part)]
    for begin, end in pairwise(ends):
        own = slice(begin, end)
        yield found.take(own)
