"""The aggregates of joined windows in one shard: arrivals in, what is told about windows out.

A window is told when the clock of arrivals passes its deadline, with the events that are there by
then. It is complete when the clock is past its end by the largest delay so far (or by `retention`);
events that come later still are dropped and counted. Both happen at *instants*, the deadlines of
all windows, so that they do not depend on how the input is cut into batches.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from math import gcd
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.compensation.compensator import Compensator, Row
from slackwater.compensation.observation import cells_for
from slackwater.compensation.tally import Events, Group, Tally, in_order
from slackwater.compensation.tally_codec import Packing
from slackwater.compensation.values import Values
from slackwater.disorder.arrival_clock import ArrivalClock
from slackwater.engine.base import DEAD, ShardEngine, add, check_schema
from slackwater.engine.output import Output, Shape, time_type
from slackwater.errors import DataError, QueryError
from slackwater.joins.visit_order import key_columns
from slackwater.kernels.records import BEFORE, I32, I64, NEVER, NONE, U8
from slackwater.metrics.charts import ChartPart, aggregate_rows
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.goals import Goal

_STORED = 0  # the place of an event
_MANY = 2**16  # rows of groups that are given out at once


class Partial(NamedTuple):
    """A shard's share of what happens at an instant."""

    instant: int
    start: int
    is_closed: bool  # else it is told
    tally: Tally


class AggregateEngine(ShardEngine[AggregateQuery, ArrivalClock]):
    """Aggregates over the join of each window.

    With `partial`, others add up the tallies of several shards: `Output.partials` has them.
    """

    shows_results: ClassVar[bool] = True

    def __init__(
        self, query: AggregateQuery, schemas: Mapping[str, pa.Schema], partial: bool = False
    ) -> None:
        known = [check_schema(schemas, name) for name in query.names]
        self.values = Values(query, known)
        shape = Shape(result_schema(query, known), counts=False, keeps_members=False)
        super().__init__(query, schemas, shape, self.values)
        m, cells = len(query.streams), cells_for(len(query.streams))
        self.reorder = ArrivalClock(m)
        self._sizes = (m, cells, self.values.n)
        self._by = query.group_stream
        self._group_column = 0
        if self._by is not None:
            self._group_column = key_columns(query.keys, m)[self._by].index(1)
        self.packing = packing_for(query, known, self.values)
        self.compensator = None if partial else Compensator(query, self.values, self.packing)
        self._length, self._step, self._deadline = query.length, query.step, query.deadline
        self._retained, self._held_back = query.retained, query.held_back
        self._pane = gcd(self._length, self._step)
        self._panes: dict[int, list[I64]] = {}  # events by pane, in arrival order
        self._to_tell: list[int] = []  # starts of windows, a heap
        self._open: list[int] = []  # the same of those that are not complete
        self._known: set[int] = set()  # all of these
        self._done: set[int] = set()  # those of which all has been said
        learns = query.compensate not in (None, False)
        self._is_final = not (learns or partial or query.late == "emit")
        self._closed = BEFORE  # windows that end by then are complete
        self._rows: list[Row] = []

    # ---- arrivals

    def _run(self, begin: int, end: int, piece: int | None) -> Iterator[Output]:
        if begin == end:
            return
        if not self.knows_arrival:
            msg = (
                "a deadline is a time of arrival, so rows must say when they arrived; "
                "name the column with arrival="
            )
            raise DataError(msg)
        base = self.log.base
        arrival = self.log.arrival[begin - base : end - base]
        at = 0
        while at < len(arrival):
            self.advance(int(arrival[at]))
            due = self._instant_from(int(arrival[at]))
            if self.reorder.now != BEFORE:
                self._closed = max(self._closed, due - self._step - self._awaited)
            stop = at + int(np.searchsorted(arrival[at:], due, side="right"))
            self._take(begin + at, begin + stop, due)
            at = stop
            if piece is not None and len(self._rows) >= _MANY:
                yield self._give_out()

    def tick(self, now: int) -> Output:
        """It is so late by now, says somebody who has seen other shards."""
        self.advance(now)
        self.reorder.now = max(self.reorder.now, now)
        return self._give_out()

    def advance(self, now: int) -> None:
        """Do what was due before."""
        while (due := self._next_due()) < now:
            self._at_instant(due)

    def _take(self, begin: int, end: int, due: int) -> None:
        """Put arrivals into their panes; `due` is the next instant."""
        log, base = self.log, self.log.base
        part = slice(begin - base, end - base)
        stream, ts, arrival = log.stream[part], log.ts[part], log.arrival[part]
        self.reorder.took(stream, ts, arrival)
        number = np.arange(begin, end)
        real = log.keys[part, 0] != NONE  # ticks are no events
        if not real.all():
            number, stream, ts, arrival = number[real], stream[real], ts[real], arrival[real]
        is_lost = self._count(stream, ts, arrival)
        pane = ts // self._pane
        if is_lost.any():
            number, pane = number[~is_lost], pane[~is_lost]
        order = np.argsort(pane, kind="stable")
        edges = np.flatnonzero(np.diff(pane[order])) + 1
        for own in np.split(number[order], edges) if len(order) else []:
            p = int(log.ts[own[0] - base]) // self._pane
            self._panes.setdefault(p, []).append(own)
            for start in self._windows_of(p):
                if start not in self._known:
                    self._begin(start, due)

    def _begin(self, start: int, due: int) -> None:
        """The first event of a window has arrived."""
        self._known.add(start)
        heapq.heappush(self._open, start)
        if start + self._deadline >= due:
            heapq.heappush(self._to_tell, start)

    def _windows_of(self, pane: int) -> Iterator[int]:
        """The starts of the windows that a pane is in, of those that are not complete."""
        length, step = self._length, self._step
        begin = pane * self._pane
        first = -((length - self._pane - begin) // step) * step
        for start in range(first, begin + 1, step):
            if start + length > self._closed:
                yield start

    def _count(self, stream: I64, ts: I64, arrival: I64) -> NDArray[np.bool_]:
        """Count what becomes of these events; return those of which all windows are complete."""
        total, m = self.counters, len(self.rows)
        ends = ts // self._step * self._step + self._length  # of the last window
        first = -((self._length - 1 - ts) // self._step) * self._step
        behind = arrival - (first + self._deadline)
        is_lost = ends <= self._closed
        is_late = (behind > 0) & ~is_lost
        add(total.late_dropped, np.bincount(stream[is_lost], minlength=m))
        add(total.late_kept, np.bincount(stream[is_late], minlength=m))
        add(total.in_order, np.bincount(stream[~is_lost & ~is_late], minlength=m))
        total.max_lateness = max(total.max_lateness, int(behind.max(initial=0)))
        return np.asarray(is_lost)

    def _delays(self, own: slice) -> I64:
        """Behind the clock of arrivals."""
        return self.log.arrival[own] - self.log.ts[own]

    # ---- instants

    def _instant_from(self, now: int) -> int:
        """The first deadline of any window that is not before `now`."""
        deadline, step = self._deadline, self._step
        return -((deadline - now) // step) * step + deadline

    def _next_due(self) -> int:
        """When a window has to be told, or is complete."""
        due = NEVER
        if self._to_tell:
            due = self._to_tell[0] + self._deadline
        if self._open:
            due = min(due, self._instant_from(self._open[0] + self._length + self._awaited))
        return due

    @property
    def _awaited(self) -> int:
        """How long after its end a window waits for its events: until the deadline at least.

        What comes before it belongs into the answer, however long nothing was as late as that.
        """
        known = self.reorder.max_delay if self._retained is None else self._retained
        return max(known, self._deadline - self._length)

    def _at_instant(self, now: int) -> None:
        self._closed = max(self._closed, now - self._awaited)
        while self._open and self._open[0] + self._length <= self._closed:
            self._close(heapq.heappop(self._open), now)
        while self._to_tell and self._to_tell[0] + self._deadline <= now:
            start = heapq.heappop(self._to_tell)
            if start in self._known:  # else it is complete by now
                self._tell(start, now)

    def _tell(self, start: int, now: int) -> None:
        if self._is_final:
            self._done.add(start)
        tally = self._tally(start, self._held_back)
        if self.compensator is None:
            self._output.partials.append(Partial(now, start, False, tally))
        else:
            self._say(self.compensator.tell(start, tally))

    def _close(self, start: int, now: int) -> None:
        self._known.discard(start)
        if start in self._done and self.compensator is not None:
            self._done.discard(start)
            self.compensator.forget(start)
        else:
            self._say_exact(start, now)
        for pane in range(start // self._pane, (start + self._step) // self._pane):
            self._panes.pop(pane, None)

    def _say_exact(self, start: int, now: int) -> None:
        tally = self._tally(start, None)
        if self.compensator is None:
            self._output.partials.append(Partial(now, start, True, tally))
        else:
            self._say(self.compensator.close(start, tally))

    def _flush(self, piece: int | None) -> Iterator[Output]:  # noqa: ARG002  there is little
        now = max(self.reorder.now, BEFORE)
        while self._open:
            start = heapq.heappop(self._open)
            self._close(start, now)
            self._closed = max(self._closed, start + self._length)
        self._to_tell = []
        return iter(())

    def _tally(self, start: int, held_back: int | None) -> Tally:
        """Count a window, without what a K-slack buffer would hold back."""
        log, length = self.log, self._length
        panes = range(start // self._pane, (start + length) // self._pane)
        parts = [part for pane in panes for part in self._panes.get(pane, ())]
        place = np.sort(np.concatenate([np.empty(0, np.int64), *parts])) - log.base
        stream, ts = log.stream[place], log.ts[place]
        if held_back is not None:
            local = np.array([self.reorder.local(s) for s in range(len(self.rows))])
            out = ts <= local[stream] - held_back
            place, stream, ts = place[out], stream[out], ts[out]
        group, groups = self._groups(place, stream)
        arrival = log.arrival[place]
        events = Events(
            stream,
            (ts - start) * self._sizes[1] // length,
            log.keys[place, 0],
            group,
            log.records().floats[:, place],
            (arrival - ts).astype(float),
            (arrival - start).astype(float),
        )
        return Tally.of(events, self._sizes, self.values.streams, self._by, groups)

    def _groups(self, place: I64, stream: I64) -> tuple[I64, list[Group]]:
        """The group of each event, and what the groups are."""
        group = np.zeros(len(place), np.int64)
        if self._by is None:
            return group, [()]
        own = np.flatnonzero(stream == self._by)
        codes, first, inverse = np.unique(
            self.log.keys[place[own], self._group_column], return_index=True, return_inverse=True
        )
        table = self.rows[self._by].take(self.log.row[place[own[first]]])
        columns = [table.column(name).to_pylist() for name in self.query.group_columns]
        named = list(zip(*columns, strict=True))
        order = sorted(range(len(codes)), key=lambda i: in_order(named[i]))
        rank = np.empty(len(codes), np.int64)
        rank[order] = np.arange(len(codes))
        group[own] = rank[inverse]
        return group, [named[i] for i in order]

    # ---- results

    def _say(self, rows: list[Row]) -> None:
        self._rows += rows
        self.counters.produced += len(rows)

    def _give_out(self) -> Output:
        if self._rows:
            self._output.tables.append(rows_table(self._rows, self.query, self.shape.schema))
            self._rows = []
        return super()._give_out()

    def add_chart_facts(self, part: ChartPart, results: pa.Table | None) -> ChartPart:
        """`part` with the last rows of results."""
        rows = None if results is None else aggregate_rows(self.query, results)
        return part._replace(aggregates=rows)

    def set_slack(self, slack: int) -> None:
        """There is none."""
        msg = f"a deadline has no slack to set, got {slack}"
        raise QueryError(msg)

    def set_goal(self, goal: Goal) -> None:
        """Deadlines stay as they are."""
        msg = f"a running goal {self.query.goal} cannot be changed, got {goal}"
        raise QueryError(msg)

    # ---- for a snapshot

    def places(self) -> U8:
        """In a pane that some window still needs."""
        place = np.full(self.log.size, DEAD, np.uint8)
        place[self._kept() - self.log.base] = _STORED
        return place

    def _kept(self) -> I64:
        return np.concatenate(
            [np.empty(0, np.int64), *(p for own in self._panes.values() for p in own)]
        )

    def state(self) -> dict[str, Any]:
        """What is known beside the events, as plain data."""
        return {
            "clock": self.reorder.state(),
            "open": sorted(self._open),
            "to_tell": sorted(self._to_tell),
            "done": sorted(self._done),
            "closed": self._closed,
            "compensator": None if self.compensator is None else self.compensator.state(),
        }

    def resume(self, said: dict[str, Any], at: dict[int, I64]) -> None:
        """Go on from `said`."""
        self.reorder.resume(said["clock"])
        self._open, self._to_tell = list(said["open"]), list(said["to_tell"])
        self._known, self._done = set(self._open), set(said["done"])
        self._closed = said["closed"]
        kept = at.get(_STORED, np.empty(0, np.int64))
        pane = self.log.ts[kept - self.log.base] // self._pane
        for p in np.unique(pane).tolist():
            self._panes[p] = [kept[pane == p]]
        if self.compensator is not None and said["compensator"] is not None:
            self.compensator.resume(said["compensator"])

    # ---- memory

    def reserve_codes(self, size: int) -> None:
        """Keys are only compared."""

    def _rename_codes(self, renamed: I32) -> None:
        """The log has the codes."""

    def _stored(self) -> int:
        return len(self._kept())

    def _oldest(self) -> int:
        return int(self._kept().min(initial=self.log.end))


def packing_for(query: AggregateQuery, schemas: Sequence[pa.Schema], values: Values) -> Packing:
    """How the tallies of a query are written."""
    m = len(query.streams)
    return Packing((m, cells_for(m), values.n), group_types(query, schemas))


def group_types(query: AggregateQuery, schemas: Sequence[pa.Schema]) -> list[pa.DataType]:
    """The types of the columns that make groups."""
    types = []
    for name in query.group_columns:
        assert query.group_stream is not None
        schema = schemas[query.group_stream]
        if name not in schema.names:
            stream = query.names[query.group_stream]
            msg = (
                f"by names {stream}.{name}, but stream {stream!r} has no such column; "
                f"it has {', '.join(schema.names)}"
            )
            raise QueryError(msg)
        types.append(schema.field(name).type)
    return types


def result_schema(query: AggregateQuery, schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The window, the group, the aggregates, how complete they are."""
    time = time_type(query, schemas)
    fields = [pa.field(name, time, nullable=False) for name in ("window_start", "window_end")]
    types = group_types(query, schemas)
    fields += [pa.field(n, kind) for n, kind in zip(query.group_columns, types, strict=True)]
    for name, how in query.select.items():
        whole = pa.int64() if how.function == "count" else pa.float64()
        fields += [pa.field(name, pa.float64()), pa.field(f"{name}_observed", whole)]
        fields += [pa.field(f"{name}_{end}", pa.float64()) for end in ("low", "high")]
    fields += [
        pa.field("completeness", pa.float64()),
        pa.field("exact", pa.bool_(), nullable=False),
    ]
    return pa.schema(fields)


def rows_table(rows: Sequence[Row], query: AggregateQuery, schema: pa.Schema) -> pa.Table:
    """What is told, as a table."""
    start = np.array([row.start for row in rows], np.int64)
    columns: list[Any] = [
        pa.array(time).cast(schema.field(0).type) for time in (start, start + query.length)
    ]
    columns += [[row.group[i] for row in rows] for i in range(len(query.by))]
    for a in range(len(query.select)):
        told = [row.told[a] for row in rows]
        columns += [[one.value for one in told], [one.observed for one in told]]
        columns += [[one.low for one in told], [one.high for one in told]]
    columns += [[row.completeness for row in rows], [row.exact for row in rows]]
    arrays = [
        column if isinstance(column, pa.Array) else _column(column, field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_integer(kind):
        return pa.array([None if v is None else round(v) for v in values], kind)
    return pa.array(values, kind)
