"""What was asked of joined streams: windows, aggregates over the join of each, and a deadline.

>>> from slackwater.query.functions import count, total
>>> query = AggregateQuery(
...     (Stream("r", ts="time"), Stream("s", ts="time")),
...     on="k",
...     select={"n": count(), "volume": total("r.v")},
...     window=Tumbling("10 ms"),
...     goal=Deadline("12 ms"),
...     compensate=True,
... )
>>> query.length, query.step, query.deadline_of(20)
(10, 10, 32)
>>> AggregateQuery.from_dict(query.to_dict()) == query
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from slackwater.errors import QueryError
from slackwater.query.functions import Aggregate
from slackwater.query.goals import Deadline, Goal, goal_from_dict, goal_to_dict
from slackwater.query.join import MOST_STREAMS, Stream, check_streams
from slackwater.query.keys import Key, keys_of
from slackwater.query.units import Duration, TimeUnit, as_plain, to_units

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slackwater.engine.aggregate_replay import AggregateRun

Compensation = Literal["delays", "aema", "svi", "mlp", "mlp-elbo"]
LateAnswer = Literal["count", "emit"]

_FUNCTIONS = ("count", "sum", "avg")
_ORDER_MATTERS = ("min", "max", "first", "last")
_OWN_COLUMNS = ("window_start", "window_end", "completeness", "exact")


@dataclass(frozen=True)
class Tumbling:
    """Windows side by side."""

    length: Duration


@dataclass(frozen=True)
class Sliding:
    """Windows of some length, one each `slide`."""

    length: Duration
    slide: Duration


@dataclass(frozen=True)
class AggregateQuery:
    """Aggregates over the join of each window; made by `join`, which documents the options."""

    streams: tuple[Stream, ...]
    on: str | tuple[str, ...] | None
    select: Mapping[str, Aggregate]
    window: Tumbling | Sliding
    goal: Goal
    by: tuple[str, ...] = ()
    compensate: bool | Compensation | None = None
    confidence: float = 0.95
    late: LateAnswer = "count"
    retention: Duration | None = None
    unit: TimeUnit = "ms"
    strict: bool = False

    def __post_init__(self) -> None:
        check_streams(self.streams)
        for stream in self.streams:
            if stream.window is not None or stream.vectors:
                msg = (
                    f"stream {stream.name!r}: aggregates have one window= for all streams, got "
                    f"Stream(window={stream.window!r}, vectors={dict(stream.vectors)})"
                )
                raise QueryError(msg)
        window: object = self.window  # users may err
        if not isinstance(window, Tumbling | Sliding):
            msg = f"window must be a Tumbling or a Sliding, got {window!r}"
            raise QueryError(msg)
        if not isinstance(self.goal, Deadline):
            msg = f"the goal of aggregates over a join must be a Deadline, got {self.goal!r}"
            raise QueryError(msg)
        self.goal.check(self.unit)
        self._check_choices()
        self._check_windows()
        self._check_select()
        joined = keys_of(self.on, self.names)
        if len(joined) != 1 or not all(joined[0].columns.values()):
            msg = (
                "aggregates over a join are computed from counts per key: on= must name one key "
                f"that all streams share, got {self.on!r}"
            )
            raise QueryError(msg)
        self.group_stream, self.retained  # noqa: B018  raise now

    def _check_choices(self) -> None:
        choices = (*get_args(Compensation), True, False, None)
        if self.compensate not in choices:
            listed = ", ".join(map(repr, choices))
            msg = f"compensate must be one of {listed}, got {self.compensate!r}"
            raise QueryError(msg)
        if self.late not in get_args(LateAnswer):
            msg = f"late must be one of 'count', 'emit' for aggregates, got {self.late!r}"
            raise QueryError(msg)
        good = isinstance(self.confidence, float) and 0.5 <= self.confidence < 1
        if not good:
            msg = f"confidence must be at least 0.5 and below 1, got {self.confidence!r}"
            raise QueryError(msg)

    def _check_windows(self) -> None:
        if self.length < 1 or self.step < 1:
            msg = f"a window must be at least 1 {self.unit} long, got {self.window}"
            raise QueryError(msg)
        if self.step > self.length:
            msg = f"slide must not be longer than the window, got {self.window}"
            raise QueryError(msg)
        if len(self.streams) > MOST_STREAMS // 4:
            msg = f"aggregates join at most {MOST_STREAMS // 4} streams, got {len(self.streams)}"
            raise QueryError(msg)

    def _check_select(self) -> None:
        if not self.select:
            msg = "aggregates are missing: select={'n': sw.count()}"
            raise QueryError(msg)
        for name, aggregate in self.select.items():
            if not isinstance(name, str) or not name or not isinstance(aggregate, Aggregate):
                msg = f"select must have aggregates by name, got {name!r}: {aggregate!r}"
                raise QueryError(msg)
            if aggregate.function not in _FUNCTIONS:
                hint = ""
                if aggregate.function in _ORDER_MATTERS:
                    hint = (
                        ": what has not arrived may hold the extreme value, and counts and means "
                        "of what has tell nothing about it"
                    )
                msg = (
                    f"a join is aggregated by count, sum and avg, got {aggregate.function} as "
                    f"{name!r}{hint}"
                )
                raise QueryError(msg)
            if aggregate.column is not None:
                self.place(aggregate.column)
        names = [*_OWN_COLUMNS, *(column.partition(".")[2] or column for column in self.by)]
        names += [
            name + suffix for name in self.select for suffix in ("", "_observed", "_low", "_high")
        ]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            msg = f"results would have more than one column {', '.join(doubled)}; rename one"
            raise QueryError(msg)

    def place(self, column: str) -> tuple[int, str]:
        """The stream and the name of ``"stream.column"``."""
        stream, dot, name = column.partition(".")
        if not dot or stream not in self.names:
            msg = (
                "a column of joined streams is named 'stream.column', streams are "
                f"{', '.join(self.names)}; got {column!r}"
            )
            raise QueryError(msg)
        return self.names.index(stream), name

    # ---- the same in numbers of the time unit

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the streams, in order."""
        return tuple(stream.name for stream in self.streams)

    @property
    def in_one_place(self) -> bool:
        """Keys may be spread: what they give is added up."""
        return False

    @property
    def keys(self) -> list[Key]:
        """The key of the join, and that of the groups if there are any."""
        keys = keys_of(self.on, self.names)
        groups = {} if self.group_stream is None else {self.group_stream: self.group_columns}
        return [*keys, Key(groups)] if groups else keys

    @property
    def group_stream(self) -> int | None:
        """The stream whose columns make groups."""
        places = [self._group_place(column) for column in self.by]
        streams = sorted({stream for stream, _ in places})
        if len(streams) > 1:
            named = ", ".join(self.by)
            msg = f"groups are made by columns of one stream or of the key, got by={named}"
            raise QueryError(msg)
        return streams[0] if streams else None

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Those columns of `group_stream`."""
        return tuple(self._group_place(column)[1] for column in self.by)

    def _group_place(self, column: str) -> tuple[int, str]:
        if "." not in column and column in keys_of(self.on, self.names)[0].columns[0]:
            return 0, column
        return self.place(column)

    @property
    def length(self) -> int:
        """How long a window is."""
        return to_units(self.window.length, self.unit, "window")

    @property
    def step(self) -> int:
        """From the start of a window to the next."""
        if isinstance(self.window, Tumbling):
            return self.length
        return to_units(self.window.slide, self.unit, "slide")

    @property
    def deadline(self) -> int:
        """From the start of a window to its deadline."""
        assert isinstance(self.goal, Deadline)
        limit = to_units(self.goal.limit, self.unit, "a deadline")
        return limit if self.goal.after == "start" else self.length + limit

    def deadline_of(self, start: int) -> int:
        """When the window that begins at `start` is told."""
        return start + self.deadline

    @property
    def held_back(self) -> int | None:
        """K of a K-slack buffer in front; None: there is none."""
        assert isinstance(self.goal, Deadline)
        return None if self.goal.slack is None else to_units(self.goal.slack, self.unit, "slack")

    @property
    def retained(self) -> int | None:
        """How long events are awaited beyond their window; None: as long as the largest delay."""
        return None if self.retention is None else to_units(self.retention, self.unit, "retention")

    # ---- as data

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["streams"] = [{"name": s.name, "ts": s.ts, "source": s.source} for s in self.streams]
        plain["on"] = list(self.on) if isinstance(self.on, tuple) else self.on
        plain["window"] = {f.name: getattr(self.window, f.name) for f in fields(self.window)}
        plain["select"] = {n: [a.function, a.column] for n, a in self.select.items()}
        plain["by"] = list(self.by)
        plain["goal"] = goal_to_dict(self.goal)
        return as_plain(plain)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> AggregateQuery:
        """The query that `to_dict` described."""
        given = dict(plain)
        on, window = given.pop("on"), given.pop("window")
        return cls(
            streams=tuple(Stream(**stream) for stream in given.pop("streams")),
            on=tuple(on) if isinstance(on, list) else on,
            select={name: Aggregate(*how) for name, how in given.pop("select").items()},
            window=Sliding(**window) if "slide" in window else Tumbling(**window),
            goal=goal_from_dict(given.pop("goal")),
            by=tuple(given.pop("by")),
            **given,
        )

    def __str__(self) -> str:
        from slackwater.sql.printer import printed  # noqa: PLC0415  the front door

        return printed(self)

    # ---- at work

    def replay(self, tables: Mapping[str, Any], arrival: str) -> AggregateRun:
        """Aggregate recorded streams here, without Spark.

        Parameters
        ----------
        tables
            One Arrow table, pandas or Polars frame per stream, by stream name.
        arrival
            The column that says when a row arrived; deadlines are times of arrival.
        """
        from slackwater.engine.aggregate_replay import replay  # noqa: PLC0415  the front door

        return replay(self, tables, arrival)

    def stream(
        self,
        inputs: Mapping[str, DataFrame],
        arrival: str | None = None,
        shards: int | None = None,
        *,
        at_end: Literal["hold", "flush"] = "hold",
        control: str | None = None,
        max_future_skew: Duration | None = "1 hour",
        rejects: bool = False,
    ) -> DataFrame:
        """Aggregate Spark DataFrames, streaming or batch; the result is one of the same kind.

        The options are those of `JoinQuery.stream`. Without `arrival`, a streamed row arrives at
        the time of its micro-batch; batch DataFrames must have the column. Each shard counts its
        keys; what they have counted is added up in one place, and compensated there.
        """
        from slackwater.spark.api import Options, stream  # noqa: PLC0415

        options = Options(arrival, shards, at_end, control, None, max_future_skew, rejects)
        return stream(self, inputs, options)
