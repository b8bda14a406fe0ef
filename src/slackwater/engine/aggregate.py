"""Aggregates of joined windows in one shard: arrivals in, results of windows out.

Events wait in `Panes`; `WindowDeadlines` says when a window is reported and when it is complete;
`WindowTally` counts its events, and a `Compensator` turns the counts into results. Events that
arrive when all their windows are complete are dropped and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.compensation.compensator import Compensator, ResultRow
from slackwater.compensation.observation import cells_for
from slackwater.compensation.tally import Tally
from slackwater.compensation.tally_codec import TallyCodec
from slackwater.compensation.values import Values
from slackwater.disorder.arrival_clock import ArrivalClock
from slackwater.engine.accounting import add
from slackwater.engine.base import DEAD, ShardEngine
from slackwater.engine.deadlines import WindowDeadlines
from slackwater.engine.output import Output, Shape
from slackwater.engine.panes import Panes
from slackwater.engine.result_schema import check_schema, group_types, result_schema
from slackwater.engine.window_tally import WindowTally
from slackwater.errors import DataError, QueryError
from slackwater.kernels.records import BEFORE, I32, I64, TICK, U8
from slackwater.metrics.charts import ChartPart, aggregate_rows
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.goals import Goal

_STORED = 0  # the place of an event
_MANY = 2**16  # rows of groups that are given out at once


class Partial(NamedTuple):
    """The part of one shard in the result of a window."""

    instant: int
    start: int
    is_closed: bool  # the window is complete; else it is reported early
    tally: Tally


class AggregateEngine(ShardEngine[AggregateQuery, ArrivalClock]):
    """Aggregates over the join of each window.

    Parameters
    ----------
    query
        The aggregates.
    schemas
        The Arrow schema of each stream, by name.
    partial
        Give out the tallies of this shard (`Output.partials`), to be added to those of others.
    """

    shows_results: ClassVar[bool] = True

    def __init__(
        self, query: AggregateQuery, schemas: Mapping[str, pa.Schema], partial: bool = False
    ) -> None:
        known = [check_schema(schemas, name) for name in query.names]
        self.values = Values(query, known)
        shape = Shape(result_schema(query, schemas), counts=False, keeps_members=False)
        super().__init__(query, schemas, shape, self.values)
        self.reorder = ArrivalClock(len(query.streams))
        self.codec = codec_for(query, known, self.values)
        self.compensator = None if partial else Compensator(query, self.values, self.codec)
        self._held_back = query.held_back
        self._panes = Panes(query.length, query.step)
        self._deadlines = WindowDeadlines(query, self.reorder)
        self._counting = WindowTally(query, self.values, self.log, self.rows)
        learns = query.compensate not in (None, False)
        self._early_is_final = not (learns or partial or query.late == "emit")
        self._final: set[int] = set()  # starts of windows whose early result is final
        self._results: list[ResultRow] = []

    # ---- arrivals

    def _run(self, begin: int, end: int, piece: int | None) -> Iterator[Output]:
        if begin == end:
            return
        if not self.has_arrival:
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
            due = self._deadlines.instant_after(int(arrival[at]))
            stop = at + int(np.searchsorted(arrival[at:], due, side="right"))
            self._take(begin + at, begin + stop, due)
            at = stop
            if piece is not None and len(self._results) >= _MANY:
                yield self._give_out()

    def tick(self, now: int) -> Output:
        """Advance to the latest arrival seen by any shard."""
        self.advance(now)
        self.reorder.now = max(self.reorder.now, now)
        return self._give_out()

    def advance(self, now: int) -> None:
        """Report and close the windows that are due before `now`."""
        while (due := self._deadlines.next_due()) < now:
            for start in self._deadlines.take_complete(due):
                self._close(start, due)
            for start in self._deadlines.take_due(due):
                self._report(start, due)

    def _take(self, begin: int, end: int, due: int) -> None:
        """Put arrivals into their panes; `due` is the next instant."""
        log, base = self.log, self.log.base
        part = slice(begin - base, end - base)
        stream, ts, arrival = log.stream[part], log.ts[part], log.arrival[part]
        self.reorder.took(stream, ts, arrival)
        number = np.arange(begin, end)
        is_event = log.keys[part, 0] != TICK
        if not is_event.all():
            number, stream = number[is_event], stream[is_event]
            ts, arrival = ts[is_event], arrival[is_event]
        is_lost = self._count(stream, ts, arrival)
        if is_lost.any():
            number, ts = number[~is_lost], ts[~is_lost]
        for pane in self._panes.add(number, ts):
            for start in self._panes.windows_of(pane, self._deadlines.closed):
                self._deadlines.begin(start, due)

    def _count(self, stream: I64, ts: I64, arrival: I64) -> NDArray[np.bool_]:
        """Count what becomes of these events; return those of which all windows are complete."""
        total, m = self.counters, len(self.rows)
        is_lost, is_late, behind = self._deadlines.lateness(ts, arrival)
        add(total.late_dropped, np.bincount(stream[is_lost], minlength=m))
        add(total.late_kept, np.bincount(stream[is_late], minlength=m))
        add(total.in_order, np.bincount(stream[~is_lost & ~is_late], minlength=m))
        total.max_lateness = max(total.max_lateness, int(behind.max(initial=0)))
        return is_lost

    def _delays(self, own: slice) -> I64:
        """Behind the arrival clock."""
        return self.log.arrival[own] - self.log.ts[own]

    # ---- windows

    def _report(self, start: int, now: int) -> None:
        """Give out the early result of a window."""
        if self._early_is_final:
            self._final.add(start)
        until = None
        if self._held_back is not None:  # without what a K-slack buffer would hold back
            local = np.array([self.reorder.local(s) for s in range(len(self.rows))])
            until = local - self._held_back
        tally = self._counting.tally(start, self._panes.events(start), until)
        if self.compensator is None:
            self._output.partials.append(Partial(now, start, False, tally))
        else:
            self._add_results(self.compensator.report_early(start, tally))

    def _close(self, start: int, now: int) -> None:
        """Give out the exact result of a complete window, and forget it."""
        if start in self._final and self.compensator is not None:
            self._final.discard(start)
            self.compensator.forget(start)
        else:
            tally = self._counting.tally(start, self._panes.events(start), None)
            if self.compensator is None:
                self._output.partials.append(Partial(now, start, True, tally))
            else:
                self._add_results(self.compensator.close(start, tally))
        self._panes.drop(start)

    def _flush(self, piece: int | None) -> Iterator[Output]:  # noqa: ARG002  there is little
        now = max(self.reorder.now, BEFORE)
        for start in self._deadlines.take_all():
            self._close(start, now)
        return iter(())

    def _add_results(self, rows: list[ResultRow]) -> None:
        self._results += rows
        self.counters.produced += len(rows)

    def _give_out(self) -> Output:
        if self._results:
            self._output.tables.append(rows_table(self._results, self.query, self.shape.schema))
            self._results = []
        return super()._give_out()

    def latest_rows(self, output: Output) -> pa.Table | None:
        """Return the last rows that were emitted."""
        return output.tables[-1] if output.tables else None

    # ---- commands
    def add_chart_facts(self, part: ChartPart, results: pa.Table | None) -> ChartPart:
        """`part` with the last rows of results."""
        rows = None if results is None else aggregate_rows(self.query, results)
        return part._replace(aggregates=rows)

    def set_slack(self, slack: int) -> None:
        """Refuse: there is no slack."""
        msg = f"a deadline has no slack to set, got {slack}"
        raise QueryError(msg)

    def set_goal(self, goal: Goal) -> None:
        """Refuse: deadlines cannot be changed."""
        msg = f"a running goal {self.query.goal} cannot be changed, got {goal}"
        raise QueryError(msg)

    # ---- snapshot

    def event_locations(self) -> U8:
        """Return which events are in a pane that some window still needs."""
        place = np.full(self.log.size, DEAD, np.uint8)
        place[self._panes.all_events() - self.log.base] = _STORED
        return place

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from, beside the events."""
        return {
            "clock": self.reorder.state(),
            "deadlines": self._deadlines.state(),
            "final": sorted(self._final),
            "compensator": None if self.compensator is None else self.compensator.state(),
        }

    def resume(self, saved: dict[str, Any], at: dict[int, I64]) -> None:
        """Continue from a state; `at` has the events by their places."""
        self.reorder.resume(saved["clock"])
        self._deadlines.resume(saved["deadlines"])
        self._final = set(saved["final"])
        kept = at.get(_STORED, np.empty(0, np.int64))
        self._panes.add(kept, self.log.ts[kept - self.log.base])
        if self.compensator is not None and saved["compensator"] is not None:
            self.compensator.resume(saved["compensator"])

    # ---- memory

    def reserve_codes(self, size: int) -> None:
        """Do nothing: keys are only compared."""

    def _rename_codes(self, renamed: I32) -> None:
        """Do nothing: the codes are in the log."""

    def stored_events(self) -> int:
        """How many events are in panes."""
        return len(self._panes.all_events())

    def _oldest(self) -> int:
        return int(self._panes.all_events().min(initial=self.log.end))


def codec_for(query: AggregateQuery, schemas: Sequence[pa.Schema], values: Values) -> TallyCodec:
    """Return the codec of the tallies of a query."""
    m = len(query.streams)
    return TallyCodec((m, cells_for(m), values.n), group_types(query, schemas))


def rows_table(rows: Sequence[ResultRow], query: AggregateQuery, schema: pa.Schema) -> pa.Table:
    """Return result rows as a table."""
    start = np.array([row.start for row in rows], np.int64)
    columns: list[Any] = [
        pa.array(time).cast(schema.field(0).type) for time in (start, start + query.length)
    ]
    columns += [[row.group[i] for row in rows] for i in range(len(query.by))]
    for a in range(len(query.select)):
        values = [row.aggregates[a] for row in rows]
        columns += [[one.value for one in values], [one.observed for one in values]]
        columns += [[one.low for one in values], [one.high for one in values]]
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
