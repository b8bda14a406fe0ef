"""What the engines of one shard have in common: rows in, output out, in pieces; memory, metrics.

An engine is defined per event in arrival order: the same arrivals cut into any batches give the
same results, the same K series and the same metrics. It reads no clock; time is what arrives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
import pyarrow as pa

from slackwater.disorder.arrival_clock import ArrivalClock
from slackwater.disorder.common_clock import CommonClock
from slackwater.disorder.heartbeat import HeartbeatStage
from slackwater.disorder.stage import ReorderStage
from slackwater.engine.accounting import Counters, add, shard_metrics
from slackwater.engine.checks import REASONS
from slackwater.engine.identity import identities_of, row_schema, with_identities
from slackwater.engine.intake import Intake, Numbers, Rejected
from slackwater.engine.output import Output, Shape
from slackwater.engine.result_schema import check_schema
from slackwater.engine.rows import Rows
from slackwater.errors import DataError, EngineStoppedError
from slackwater.events.batch import Batch
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.events.log import Log
from slackwater.kernels.records import I32, I64, U8
from slackwater.metrics.charts import ChartPart
from slackwater.metrics.counters import Metrics, SheddingMetrics
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.goals import Goal
from slackwater.query.join import JoinQuery
from slackwater.query.window import WindowQuery
from slackwater.shedding.shedder import Shedder
from slackwater.stats.recent import RecentDelays
from slackwater.stats.statistics import Statistics

if TYPE_CHECKING:
    from slackwater.engine.common_slack import CommonSlack

DEAD = 255  # the location of an event that is not needed any more

AQuery = TypeVar("AQuery", JoinQuery, WindowQuery, AggregateQuery)
Stage = TypeVar("Stage", ReorderStage, CommonClock, HeartbeatStage, ArrivalClock)


class ShardEngine(ABC, Generic[AQuery, Stage]):
    """Takes in batches, lets a stage sort them, and hands what leaves it to an operator.

    `reorder` is the stage; subclasses have the operator. `recent` has a sample of the delays, for
    reports only, in engines whose statistics do not have them all.
    """

    reorder: Stage
    statistics: Statistics | None = None  # what a goal that learns has learnt
    common_slack: CommonSlack | None = None  # the part in finding one K for all shards
    shedder: Shedder | None = None  # who leaves work out, in engines that can
    shows_results: ClassVar[bool] = False  # charts have rows of results

    def __init__(
        self,
        query: AQuery,
        schemas: Mapping[str, pa.Schema],
        shape: Shape,
        numbers: Numbers,
        limits: Limits = DEFAULT_LIMITS,
        marks: int = 0,
    ) -> None:
        self.query: AQuery = query
        self.initial_goal = query.goal  # `query.goal` may change while the query runs
        self.limits = limits
        self.schemas = [check_schema(schemas, name) for name in query.names]
        self.shape = shape
        self.intake = Intake(query, self.schemas, numbers, shape.projection, limits)
        self.log = Log(self.intake.n_keys, **numbers.widths, marks=marks)
        self.identities = identities_of(query)
        self.rows = [
            Rows(row_schema(schema, self.intake.kept_columns(s), self.identities))
            for s, schema in enumerate(self.schemas)
        ]
        self.counters = Counters.zero(len(query.streams))
        self.recent: RecentDelays | None = RecentDelays(len(query.streams))
        self.flushed = False  # and nothing has arrived since
        self.has_arrival = True  # the last batch came with arrivals, so waits can be measured
        self._output = Output(shape)
        self._stopped = False

    @property
    def output(self) -> Output:
        """What has come of arrivals, and was not given out yet."""
        return self._output

    # ---- work

    def feed(self, batch: Batch) -> Output:
        """Take in a batch of arrivals; return what came of it."""
        return _whole(self.feed_in_pieces(batch))

    def feed_in_pieces(self, batch: Batch, piece: int | None = None) -> Iterator[Output]:
        """The same, each time about `piece` bytes of results are there: memory stays bounded.

        The pieces must be read to the end; an engine that is left before is of no more use.
        """
        self._check(batch)
        self._stopped = True  # until the batch is through: half a batch must not be built upon
        batch = self.intake.checks.check_batch(batch)
        for part in batch.slices(max(1, self.limits.arrivals_at_once // self.log.breadth)):
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
        yield from self._flush(piece)
        self.flushed = True
        self._stopped = False
        yield self._give_out()

    def finish(self, stream: int) -> None:
        """No more rows of `stream` will come: the others need not wait for it."""
        self.reorder.finish(stream)

    def tick(self, now: int) -> Output:  # noqa: ARG002  for engines with deadlines
        """Advance to the latest arrival seen by any shard."""
        return self._give_out()

    def latest_rows(self, output: Output) -> pa.Table | None:  # noqa: ARG002  of aggregates
        """The rows of `output` that a dashboard shows as the latest ones, if there are such."""
        return None

    def measured(self, busy: float, begin: int) -> None:
        """Take note that arrivals since time `begin` kept the machine busy for `busy` seconds.

        Only load shedding without a budget uses it; it acts from the next batch on.
        """

    def snapshot(self) -> bytes:
        """All that is needed to go on later, elsewhere; between batches."""
        from slackwater.engine.snapshot import snapshot  # noqa: PLC0415  it needs this module

        self._check(None)
        return snapshot(self)

    # ---- what an operator does

    @abstractmethod
    def _run(self, begin: int, end: int, piece: int | None) -> Iterator[Output]:
        """Take in these arrivals of the log."""

    @abstractmethod
    def _flush(self, piece: int | None) -> Iterator[Output]:
        """Let everything out."""

    @abstractmethod
    def reserve_codes(self, size: int) -> None:
        """There are so many key codes by now."""

    @abstractmethod
    def _rename_codes(self, renamed: I32) -> None:
        """Key codes have new numbers."""

    @abstractmethod
    def event_locations(self) -> U8:
        """Where each event of the log is: some number, or DEAD if it is not needed any more."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """The state of stage, operator and controller without the events, as plain data."""

    def attachments(self) -> list[bytes]:
        """What else a snapshot has; `resume` gets it back as `attachments` of the header."""
        return []

    @abstractmethod
    def resume(self, header: dict[str, Any], at: dict[int, I64]) -> None:
        """Continue from the `header` of a snapshot; `at` has the events by their locations."""

    @abstractmethod
    def set_slack(self, slack: int) -> None:
        """Change K by hand."""

    @abstractmethod
    def set_goal(self, goal: Goal) -> None:
        """Change the figures of the goal from here on; what was learnt stays."""

    @abstractmethod
    def stored_events(self) -> int:
        """How many events the operator keeps."""

    @abstractmethod
    def _oldest(self) -> int:
        """The number of the oldest event that the operator may still need."""

    def metrics(self) -> Metrics:
        """Counters since the start."""
        return shard_metrics(self)

    def add_chart_facts(self, part: ChartPart, results: pa.Table | None) -> ChartPart:  # noqa: ARG002
        """`part` with the fields that only this kind of engine has."""
        return part

    def shedding_metrics(self) -> SheddingMetrics | None:
        """Figures of load shedding, in engines that shed."""
        return None

    def _check(self, batch: Batch | None) -> None:
        if self._stopped:
            msg = "the engine failed in the middle of a batch; restore it from a snapshot"
            raise EngineStoppedError(msg)
        if batch is not None:
            _check_columns(self.query.names, self.schemas, batch.tables)

    def _take_in(self, batch: Batch, piece: int | None) -> Iterator[Output]:
        self.flushed = self.flushed and len(batch.stream) == 0
        self._make_room(len(batch.stream))
        self.has_arrival = batch.arrival is not None
        self.has_ticks = any(map(len, batch.ticks))  # among the arrivals in work
        first_rows = [rows.end for rows in self.rows]
        begin = self.log.end
        rejected = self.intake.take_in(batch, self.log, first_rows)
        self._count_rejects(rejected)
        for rows, table in zip(self.rows, with_identities(batch, self.identities), strict=True):
            rows.append(table.select(rows.schema.names))
        self.reserve_codes(self.intake.codes.size)
        add(self.counters.arrivals, [table.num_rows for table in batch.tables])
        end = self.log.end
        if begin == 0 and end > 0:  # the very first arrival starts the K series
            self._output.slack(int(self.log.ts[0]), self.reorder.slack)
        yield from self._run(begin, end, piece)
        if self.recent is not None:
            own = slice(begin - self.log.base, end - self.log.base)
            self.recent.take(begin, self.log.records().event[own], self._delays(own))

    def _delays(self, own: slice) -> I64:
        """How late these events of the log were."""
        return self.log.delay[own]

    def _count_rejects(self, rejected: Rejected) -> None:
        for s, reason in zip(rejected.stream.tolist(), rejected.reason.tolist(), strict=True):
            counts = self.counters.rejected[s]
            counts[REASONS[reason]] = counts.get(REASONS[reason], 0) + 1
        self._output.rejects(rejected)

    def _give_out(self) -> Output:
        """Hand over what came so far."""
        output, self._output = self._output, Output(self.shape)
        output.top = self.reorder.top
        return output

    # ---- memory

    def _make_room(self, n: int) -> None:
        """Forget what is not needed any more before the log would have to grow."""
        if self.log.has_room(n):
            return
        oldest = int(self.reorder.waiting().min(initial=self._oldest()))
        if 2 * (oldest - self.log.base) < self.log.size:
            return  # little to gain: let the log grow, so that this stays rare
        self.log.trim(oldest)
        self.forget_rows(self.log.end)
        if self.intake.codes.size > self.limits.code_cleanup:
            self._forget_codes()

    def forget_rows(self, reached: int) -> None:
        """Drop the rows of events that are not needed any more.

        Those from `reached` on stay: they have not been taken in yet.
        """
        alive = self.event_locations() != DEAD
        alive[reached - self.log.base :] = True
        for s, rows in enumerate(self.rows):
            own = self.log.row[alive & (self.log.stream == s)]
            rows.forget(int(own[0]) if len(own) else rows.end)

    def _forget_codes(self) -> None:
        """Drop keys that no kept event has, when they are the majority."""
        live = np.zeros(self.intake.codes.size, bool)
        for used in self._used_codes():
            live[used[used >= 0]] = True  # not of ticks and shed events
        if 2 * int(live.sum()) > len(live):
            return
        renamed = self.intake.codes.keep(live)
        for used in self._used_codes():
            has_code = used >= 0
            used[has_code] = renamed[used[has_code]]
        self._rename_codes(renamed)

    def _used_codes(self) -> list[I64]:
        """The key codes of all events that are kept, as views."""
        return [self.log.keys]


def _whole(pieces: Iterator[Output]) -> Output:
    output = next(pieces)
    for piece in pieces:
        output.extend(piece)
    return output


def _check_columns(
    names: Sequence[str], schemas: Sequence[pa.Schema], tables: Sequence[pa.Table]
) -> None:
    for name, expected, table in zip(names, schemas, tables, strict=True):
        if not table.schema.equals(expected):
            wanted, got = _brief(expected), _brief(table.schema)
            msg = f"stream {name!r} must have the columns {wanted}, got {got}"
            raise DataError(msg)


def _brief(schema: pa.Schema) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in schema)


AnyEngine = ShardEngine[Any, Any]
