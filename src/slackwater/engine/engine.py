"""One shard: arrivals in, results out (DESIGN 2).

The engine is defined per event in arrival order: the same arrivals cut into any batches give the
same results, the same K series and the same metrics. It reads no clock; time is what arrives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from slackwater.disorder.reorder import Reorder, Step
from slackwater.engine.checks import REASONS
from slackwater.engine.intake import Intake, Rejected
from slackwater.engine.metrics import Metrics, State, StreamMetrics
from slackwater.engine.output import Output, Shape
from slackwater.engine.rows import Rows
from slackwater.errors import DataError, EngineStoppedError, QueryError
from slackwater.events import Batch
from slackwater.goal import Goal
from slackwater.goals.choice import controller_for
from slackwater.goals.controller import Controller, Interval
from slackwater.joins.conditions import compile_conditions
from slackwater.joins.window_join import WindowJoin
from slackwater.kernels import join as fates
from slackwater.kernels.records import BEFORE, I64, NONE, Late, Made, Results
from slackwater.log import Log
from slackwater.query import Query

_AT_ONCE = 2**16  # arrivals per pass: small enough for the cache, large enough for the overhead
_FEWEST_CODES = 2**16  # key codes are cleaned up beyond this


@dataclass
class Counters:
    """Running totals behind `Metrics`, lists by stream; part of a snapshot."""

    arrivals: list[int]
    in_order: list[int]
    late_kept: list[int]
    late_dropped: list[int]
    rejected: list[dict[str, int]]  # by reason
    produced: int = 0
    lost: int = 0
    lost_unknown: int = 0
    max_lateness: int = 0

    @classmethod
    def zero(cls, m: int) -> Counters:
        """Nothing has happened yet."""
        return cls([0] * m, [0] * m, [0] * m, [0] * m, [{} for _ in range(m)])


class Engine:
    """The join of one shard.

    Parameters
    ----------
    query
        What was asked.
    schemas
        The Arrow schema of each stream, by name.
    controller
        Who sets K; by default what the query's goal says.
    common_clock, idle_after
        See `Reorder`: whether ticks tell how far the streams are elsewhere, and after which silence
        (in units) a stream is not waited for.
    """

    def __init__(
        self,
        query: Query,
        schemas: Mapping[str, pa.Schema],
        controller: Controller | None = None,
        common_clock: bool = False,
        idle_after: int | None = None,
    ) -> None:
        self.query = query
        self.asked = query.goal  # at the start; `set_goal` may change what the query says
        self.schemas = [_schema(schemas, name) for name in query.names]
        self._shape = Shape.of(query, self.schemas)
        conditions = compile_conditions(query, self.schemas)
        self.intake = Intake(query, self.schemas, conditions)
        self.log = Log(self.intake.n_keys, **conditions.widths)
        self.controller = controller or controller_for(query)
        self.statistics = self.controller.statistics(query)
        self.reorder = Reorder(
            len(query.streams),
            self.controller.start,
            query.overdue,
            follow=self.controller.follows_delay,
            hold_ties=query.has_tuple_windows,
            common_clock=common_clock,
            idle_after=idle_after,
            synchronize=getattr(query.goal, "synchronize", True),
            log=self.log,
        )
        self.join = WindowJoin(query, conditions, self.log)
        self.rows = [
            Rows(pa.schema([schema.field(c) for c in self.intake.kept_columns(s)]))
            for s, schema in enumerate(self.schemas)
        ]
        self.counters = Counters.zero(len(query.streams))
        self.flushed = False  # and nothing has arrived since
        self.knows_arrival = True  # of the last batch; waits are measured only then
        self._output = Output(self._shape)
        self._stopped = False

    # ---- work

    def feed(self, batch: Batch) -> Output:
        """Take in a batch of arrivals; return what came of it."""
        return _whole(self.feed_in_pieces(batch))

    def feed_in_pieces(self, batch: Batch, piece: int | None = None) -> Iterator[Output]:
        """The same, each time about `piece` bytes of results are there: memory stays bounded.

        The pieces must be asked for to the end; an engine that is left before is of no more use.
        """
        self._check(batch)
        self._stopped = True  # until the batch is through: half a batch must not be built upon
        for part in batch.slices(_AT_ONCE):
            yield from self._take_in(part, piece)
        self._stopped = False
        yield self._give_out()

    def flush(self) -> Output:
        """End of input: let everything out that waits."""
        return _whole(self.flush_in_pieces())

    def flush_in_pieces(self, piece: int | None = None) -> Iterator[Output]:
        """The same in pieces, like `feed_in_pieces`."""
        self._check(None)
        self._stopped = True
        yield from self._join(self.reorder.flush(), piece)
        self.flushed = True
        self._stopped = False
        yield self._give_out()

    def finish(self, stream: int) -> None:
        """No more is to be expected of `stream`: the others need not wait for it."""
        self.reorder.finish(stream)

    def set_goal(self, goal: Goal) -> None:
        """Ask for more or less of the same from here on; what was learnt stays."""
        if type(goal) is not type(self.query.goal) or self.statistics is None:
            msg = f"a running goal {self.query.goal} can only get other figures, got {goal}"
            raise QueryError(msg)
        self.query = replace(self.query, goal=goal)
        self.controller = controller_for(self.query)
        statistics = self.controller.statistics(self.query)
        if statistics is not None and statistics.kind != self.statistics.kind:
            self.statistics = statistics

    def set_slack(self, slack: int) -> None:
        """Change K by hand."""
        self._set_slack(slack, self.reorder.top)

    def snapshot(self) -> bytes:
        """All that is needed to go on later, elsewhere; between batches."""
        from slackwater.engine.snapshot import snapshot  # noqa: PLC0415  it builds engines itself

        self._check(None)
        return snapshot(self)

    @classmethod
    def restore(
        cls,
        data: bytes,
        query: Query,
        schemas: Mapping[str, pa.Schema],
        controller: Controller | None = None,
        common_clock: bool = False,
        idle_after: int | None = None,
    ) -> Engine:
        """The engine whose `snapshot` this is; the query may change its goal and retention."""
        from slackwater.engine.snapshot import restore  # noqa: PLC0415

        options = {"common_clock": common_clock, "idle_after": idle_after}
        return restore(data, query, schemas, controller=controller, **options)

    def metrics(self) -> Metrics:
        """Counters since the start."""
        total = self.counters
        return Metrics(
            {name: self._stream_metrics(s) for s, name in enumerate(self.query.names)},
            produced=total.produced,
            lost=total.lost,
            lost_unknown=total.lost_unknown,
            slack=self.reorder.slack,
            max_delay=self.reorder.max_delay,
            max_lateness=total.max_lateness,
            stored=self._stored(),
        )

    def _stream_metrics(self, s: int) -> StreamMetrics:
        total, local = self.counters, self.reorder.local(s)
        return StreamMetrics(
            arrivals=total.arrivals[s],
            in_order=total.in_order[s],
            late_kept=total.late_kept[s],
            late_dropped=total.late_dropped[s],
            buffered=self.reorder.buffered_of(s),
            rejected=dict(sorted(total.rejected[s].items())),
            local_time=None if local == BEFORE else local,
            state=self._stream_state(s),
        )

    def _stream_state(self, s: int) -> State:
        reorder = self.reorder
        if self.flushed or reorder.is_finished(s):
            return "finished"
        if reorder.is_idle(s):
            return "idle"
        behind = reorder.top - reorder.local(s)
        return "slow" if behind > reorder.slack and reorder.is_awaited(s) else "active"

    def _stored(self) -> int:
        """How many events wait in the windows for partners, or for late events to be counted."""
        log = self.log
        horizons = np.array([self.join.stream_horizon(s) for s in range(len(self.rows))])
        kept = (log.ts >= horizons[log.stream]) & (log.keys[:, 0] != NONE)
        kept[self.reorder.waiting() - log.base] = False
        return int(np.count_nonzero(kept))

    def _check(self, batch: Batch | None) -> None:
        if self._stopped:
            msg = "the engine failed in the middle of a batch; restore it from a snapshot"
            raise EngineStoppedError(msg)
        if batch is None:
            return
        for name, expected, table in zip(self.query.names, self.schemas, batch.tables, strict=True):
            if not table.schema.equals(expected):
                wanted, got = _brief(expected), _brief(table.schema)
                msg = f"stream {name!r} must have the columns {wanted}, got {got}"
                raise DataError(msg)

    def _take_in(self, batch: Batch, piece: int | None) -> Iterator[Output]:
        self.flushed = self.flushed and len(batch.stream) == 0
        self._make_room(len(batch.stream))
        self.knows_arrival = batch.arrival is not None
        first_rows = [rows.end for rows in self.rows]
        begin = self.log.end
        rejected = self.intake.take_in(batch, self.log, first_rows)
        self._count_rejects(rejected)
        for rows, table in zip(self.rows, batch.tables, strict=True):
            rows.append(table.select(rows.schema.names))
        self.join.reserve_codes(self.intake.codes.size)
        _add(self.counters.arrivals, [table.num_rows for table in batch.tables])
        end = self.log.end
        if begin == 0 and end > 0:  # the very first arrival starts the K series
            self._output.slack(int(self.log.ts[0]), self.reorder.slack)
        while begin < end:
            self._set_boundary()
            step = self.reorder.run(begin, end)
            if self.statistics is not None:
                self.statistics.arrive(
                    begin, step.reached, self.reorder.max_delay, self.log.records()
                )
            for top, slack in step.changes:
                self._output.slack(int(top), int(slack))
            yield from self._join(step, piece)
            if step.at_boundary:
                self._adapt()
            begin = step.reached

    def _count_rejects(self, rejected: Rejected) -> None:
        for s, reason in zip(rejected.stream.tolist(), rejected.reason.tolist(), strict=True):
            counts = self.counters.rejected[s]
            counts[REASONS[reason]] = counts.get(REASONS[reason], 0) + 1
        self._output.rejects(rejected)

    def _give_out(self) -> Output:
        """What came so far; from here on it is somebody else's."""
        output, self._output = self._output, Output(self._shape)
        output.top = self.reorder.top
        return output

    # ---- adaptation

    def _set_boundary(self) -> None:
        every = self.controller.every
        if every is None:
            return
        top = self.reorder.top
        if top == BEFORE:  # the grid is that of event time, wherever it starts
            top = int(self.log.ts[0])
        self.reorder.stop_at((top // every + 1) * every)

    def _adapt(self) -> None:
        """An adaptation interval is over: let the controller choose the next K."""
        assert self.statistics is not None
        reorder = self.reorder
        interval = Interval(
            reorder.top,
            reorder.slack,
            self.join.time,
            tuple(reorder.local(s) for s in range(reorder.n_streams)),
            self.statistics,
        )
        self.statistics.delays.close(reorder.top)
        self._set_slack(self.controller.next_slack(interval), interval.end)

    def _set_slack(self, slack: int, now: int) -> None:
        if slack != self.reorder.slack:
            self.reorder.set_slack(slack)
            self._output.slack(now, slack)

    # ---- join

    def _join(self, step: Step, piece: int | None) -> Iterator[Output]:
        """Join what left the Synchronizer."""
        if len(step.out.event) == 0:
            return
        joining = self.join.process(step.out)
        while True:
            try:
                found = next(joining)
            except StopIteration as end:
                made, late = end.value
                break
            for part in self._cut(found, piece):
                self._materialise(part, step)
                if piece is not None and self._output.nbytes >= piece:
                    yield self._give_out()
        self._count(step.out.stream, made, late)
        if self.statistics is not None:
            self.statistics.join(
                step.out.stream,
                step.out.ts,
                lambda: self.log.delay[step.out.event - self.log.base],
                (made.position, made.n),
                (late.position, late.lost),
            )
        self._output.step(self.log, step.out, made, late)

    def _count(self, streams: I64, made: Made, late: Late) -> None:
        total, m = self.counters, len(self.rows)
        kept = (late.fate & fates.LATE_KEPT) > 0
        behind = np.bincount(streams[late.position], minlength=m)
        behind_kept = np.bincount(streams[late.position[kept]], minlength=m)
        _add(total.in_order, np.bincount(streams, minlength=m) - behind)
        _add(total.late_kept, behind_kept)
        _add(total.late_dropped, behind - behind_kept)
        total.lost_unknown += int(np.count_nonzero(late.fate & fates.LOSS_UNKNOWN))
        total.max_lateness = max(total.max_lateness, int(late.by.max(initial=0)))
        produced, lost = int(made.n.sum()), int(late.lost.sum())
        total.produced += produced
        total.lost += lost

    def _cut(self, found: Results, piece: int | None) -> Iterator[Results]:
        """`found` in parts of about `piece` bytes each, so that large rows cannot pile up."""
        if piece is None:
            yield found
            return
        sizes = np.zeros(len(found.ts), np.int64)
        for s, rows in enumerate(self.rows):
            sizes += rows.sizes(found.row[s])
        part = np.cumsum(sizes) // piece
        ends = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(part)]
        for begin, end in pairwise(ends):
            own = slice(begin, end)
            yield Results(
                found.row[:, own], found.ts[own], found.position[own], found.last[own],
                found.late[own],
            )  # fmt: skip

    def _materialise(self, found: Results, step: Step) -> None:
        output = self._output
        tables = [rows.take(found.row[s]) for s, rows in enumerate(self.rows)]
        output.results(found, tables)
        if not self.knows_arrival:
            return
        emitted = self.log.arrival[step.out.during[found.position] - self.log.base]
        waits = emitted - self.log.arrival[found.last - self.log.base]
        output.waits.append(waits if self.query.late != "emit" else waits[found.late == 0])

    # ---- memory

    def _make_room(self, n: int) -> None:
        """Forget what no longer matters before the log would have to grow."""
        if self.log.has_room(n):
            return
        alive = self.log.ts >= self.join.horizon  # what is stored is not older
        oldest = self.log.base + int(np.argmax(alive)) if alive.any() else self.log.end
        oldest = int(self.reorder.waiting().min(initial=oldest))
        if 2 * (oldest - self.log.base) < self.log.size:
            return  # little to gain: let the log grow, so that this stays rare
        self.log.trim(oldest)
        for s, rows in enumerate(self.rows):
            own = self.log.row[self.log.stream == s]
            rows.forget(int(own[0]) if len(own) else rows.end)
        if self.intake.codes.size > _FEWEST_CODES:
            self._forget_codes()

    def _forget_codes(self) -> None:
        """Drop keys that no kept event has, when they are the majority."""
        live = np.zeros(self.intake.codes.size, bool)
        used = self.log.keys
        live[used[used != NONE]] = True
        if 2 * int(live.sum()) > len(live):
            return
        renamed = self.intake.codes.keep(live)
        used[used != NONE] = renamed[used[used != NONE]]
        self.join.rename_codes(renamed)


def _whole(pieces: Iterator[Output]) -> Output:
    output = next(pieces)
    for piece in pieces:
        output.extend(piece)
    return output


def _add(totals: list[int], more: Sequence[int] | I64) -> None:
    totals[:] = [total + int(n) for total, n in zip(totals, more, strict=True)]


def _schema(schemas: Mapping[str, pa.Schema], name: str) -> pa.Schema:
    if name not in schemas:
        msg = f"there is no data for stream {name!r}; got {', '.join(schemas) or 'none'}"
        raise DataError(msg)
    return schemas[name].remove_metadata()


def _brief(schema: pa.Schema) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in schema)
