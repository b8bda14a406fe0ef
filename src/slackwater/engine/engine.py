"""One shard: arrivals in, results out (DESIGN 2).

The engine is defined per event in arrival order: the same arrivals cut into any batches give the
same results, the same K series and the same metrics. It reads no clock; time is what arrives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from slackwater.disorder.reorder import Reorder, Step
from slackwater.engine.intake import REASONS, Intake, Rejected
from slackwater.engine.metrics import Metrics
from slackwater.engine.output import Output, Shape
from slackwater.engine.rows import Rows
from slackwater.errors import DataError, EngineStoppedError
from slackwater.events import Batch
from slackwater.goals.controller import Controller, Interval
from slackwater.goals.fixed import controller_for
from slackwater.joins.conditions import compile_conditions
from slackwater.joins.window_join import WindowJoin
from slackwater.kernels import join as fates
from slackwater.kernels.records import BEFORE, NONE, Late, Made, Results
from slackwater.log import Log
from slackwater.query import Query

_AT_ONCE = 2**16  # arrivals per pass: small enough for the cache, large enough for the overhead
_FEWEST_CODES = 2**16  # key codes are cleaned up beyond this


@dataclass
class Counters:
    """Running totals behind `Metrics`; part of a snapshot."""

    arrivals: int = 0
    in_order: int = 0
    late_kept: int = 0
    late_dropped: int = 0
    produced: int = 0
    lost: int = 0
    lost_unknown: int = 0
    max_lateness: int = 0


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
    """

    def __init__(
        self,
        query: Query,
        schemas: Mapping[str, pa.Schema],
        controller: Controller | None = None,
    ) -> None:
        self.query = query
        self.schemas = [_schema(schemas, name) for name in query.names]
        self._shape = Shape.of(query, self.schemas)
        conditions = compile_conditions(query, self.schemas)
        self.intake = Intake(query, self.schemas, conditions)
        self.log = Log(self.intake.n_keys, **conditions.widths)
        self.controller = controller or controller_for(query)
        self.reorder = Reorder(
            len(query.streams),
            self.controller.start,
            query.overdue,
            follow=self.controller.follows_delay,
            hold_ties=query.has_tuple_windows,
            log=self.log,
        )
        self.join = WindowJoin(query, conditions, self.log)
        self.rows = [
            Rows(pa.schema([schema.field(c) for c in self.intake.kept_columns(s)]))
            for s, schema in enumerate(self.schemas)
        ]
        self.counters = Counters()
        self.rejected = dict.fromkeys(REASONS[1:], 0)
        self.interval = [0, 0, 0]  # arrivals, produced, lost since the last boundary
        self._stopped = False
        self._knows_arrival = True  # of the last batch; waits are measured only then

    # ---- work

    def feed(self, batch: Batch) -> Output:
        """Take in a batch of arrivals; return what came of it."""
        self._check(batch)
        output = Output(self._shape)
        self._stopped = True  # until the batch is through: half a batch must not be built upon
        for part in batch.slices(_AT_ONCE):
            self._take_in(part, output)
        output.top = self.reorder.top
        self._stopped = False
        return output

    def flush(self) -> Output:
        """End of input: let everything out that waits."""
        self._check(None)
        output = Output(self._shape)
        self._stopped = True
        self._join(self.reorder.flush(), output)
        self._stopped = False
        return output

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
    ) -> Engine:
        """The engine whose `snapshot` this is; the query may change its goal and retention."""
        from slackwater.engine.snapshot import restore  # noqa: PLC0415

        return restore(data, query, schemas, controller)

    def metrics(self) -> Metrics:
        """Counters since the start."""
        return Metrics(
            buffered=self.reorder.buffered,
            rejected={reason: n for reason, n in self.rejected.items() if n},
            slack=self.reorder.slack,
            max_delay=self.reorder.max_delay,
            stored=self._stored(),
            **vars(self.counters),
        )

    def _stored(self) -> int:
        """How many events wait in the windows for partners, or for late events to be counted."""
        log = self.log
        horizons = np.array([self.join.stream_horizon(s) for s in range(len(self.rows))])
        kept = log.ts >= horizons[log.stream]
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

    def _take_in(self, batch: Batch, output: Output) -> None:
        self._make_room(len(batch.stream))
        self._knows_arrival = batch.arrival is not None
        first_rows = [rows.end for rows in self.rows]
        begin = self.log.end
        rejected = self.intake.take_in(batch, self.log, first_rows)
        self._count_rejects(rejected, output)
        for rows, table in zip(self.rows, batch.tables, strict=True):
            rows.append(table.select(rows.schema.names))
        self.join.reserve_codes(self.intake.codes.size)
        self.counters.arrivals += len(batch.stream)
        end = self.log.end
        if begin == 0 and end > 0:  # the very first arrival starts the K series
            output.slack(int(self.log.ts[0]), self.reorder.slack)
        while begin < end:
            self._set_boundary()
            step = self.reorder.run(begin, end)
            self.interval[0] += step.reached - begin
            for top, slack in step.changes:
                output.slack(int(top), int(slack))
            self._join(step, output)
            if step.at_boundary:
                self._adapt(output)
            begin = step.reached

    def _count_rejects(self, rejected: Rejected, output: Output) -> None:
        for reason, n in enumerate(np.bincount(rejected.reason, minlength=len(REASONS)).tolist()):
            if n:
                self.rejected[REASONS[reason]] += n
        output.rejects(rejected)

    # ---- adaptation

    def _set_boundary(self) -> None:
        every = self.controller.every
        if every is None:
            return
        top = self.reorder.top
        if top == BEFORE:  # the grid is that of event time, wherever it starts
            top = int(self.log.ts[0])
        self.reorder.stop_at((top // every + 1) * every)

    def _adapt(self, output: Output) -> None:
        """An adaptation interval is over: let the controller choose the next K."""
        before = self.reorder.slack
        interval = Interval(self.reorder.top, before, *self.interval)
        self.interval = [0, 0, 0]
        slack = self.controller.next_slack(interval)
        if slack != before:
            self.reorder.set_slack(slack)
            output.slack(interval.end, slack)

    # ---- join

    def _join(self, step: Step, output: Output) -> None:
        """Join what left the Synchronizer."""
        if len(step.out.event) == 0:
            return
        made, late = self.join.process(
            step.out, lambda found: self._materialise(found, step, output)
        )
        self._count(len(step.out.event), made, late)
        output.step(self.log, step.out, made, late)

    def _count(self, n: int, made: Made, late: Late) -> None:
        total = self.counters
        kept = int(np.count_nonzero(late.fate & fates.LATE_KEPT))
        total.in_order += n - len(late.fate)
        total.late_kept += kept
        total.late_dropped += len(late.fate) - kept
        total.lost_unknown += int(np.count_nonzero(late.fate & fates.LOSS_UNKNOWN))
        total.max_lateness = max(total.max_lateness, int(late.by.max(initial=0)))
        produced, lost = int(made.n.sum()), int(late.lost.sum())
        total.produced += produced
        total.lost += lost
        self.interval[1] += produced
        self.interval[2] += lost

    def _materialise(self, found: Results, step: Step, output: Output) -> None:
        tables = [rows.take(found.row[s]) for s, rows in enumerate(self.rows)]
        output.results(found, tables)
        if not self._knows_arrival:
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


def _schema(schemas: Mapping[str, pa.Schema], name: str) -> pa.Schema:
    if name not in schemas:
        msg = f"there is no data for stream {name!r}; got {', '.join(schemas) or 'none'}"
        raise DataError(msg)
    return schemas[name].remove_metadata()


def _brief(schema: pa.Schema) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in schema)
