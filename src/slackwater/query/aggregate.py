"""Aggregates over the join of each window, reported at a deadline.

>>> from slackwater.query.functions import count, sum
>>> query = aggregate(
...     Stream("r", ts="time"),
...     Stream("s", ts="time"),
...     on="k",
...     select={"n": count(), "volume": sum("r.v")},
...     window=Tumbling("10 ms"),
...     deadline="12 ms",
...     compensate=True,
... )
>>> query.length, query.step, query.deadline_of(20)
(10, 10, 32)
>>> AggregateQuery.from_dict(query.to_dict()) == query
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from slackwater.errors import QueryError
from slackwater.query.aggregate_checks import (
    Compensation,
    LateAnswer,
    check_choices,
    check_select,
    check_windows,
)
from slackwater.query.base import Query, QueryKind
from slackwater.query.functions import Aggregate
from slackwater.query.goals import Goal, goal_from_dict, goal_to_dict
from slackwater.query.keys import Key, On, keys_of, on_texts
from slackwater.query.shedding_checks import refuse_shedding
from slackwater.query.stream import Stream, check_streams, named_inputs
from slackwater.query.units import Duration, TimeUnit, to_units
from slackwater.query.window_goals import Deadline
from slackwater.query.windows import Sliding, Tumbling, window_from_dict, window_to_dict

if TYPE_CHECKING:
    from slackwater.engine.replay import AggregateRun


@dataclass(frozen=True)
class AggregateQuery(Query):
    """Aggregates over the join of each window; made by `aggregate`, which documents the options."""

    kind: ClassVar[QueryKind] = "aggregate"
    needs_arrival: ClassVar[bool] = True  # a deadline is a time of arrival
    has_slack: ClassVar[bool] = False
    adds_up_shards: ClassVar[bool] = True
    shares_delays: ClassVar[bool] = True  # windows wait as long as the largest delay

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
            msg = f"aggregates over a join have a Deadline, deadline='12 s', got {self.goal!r}"
            raise QueryError(msg)
        self.goal.check(self.unit)
        check_choices(self)
        check_windows(self)
        check_select(self)
        joined = keys_of(self.on, self.names)
        if len(joined) != 1 or not all(joined[0].columns.values()):
            msg = (
                "aggregates over a join are computed from counts per key: on= must name one key "
                f"that all streams share, got {self.on!r}"
            )
            raise QueryError(msg)
        self.group_stream, self.retained  # noqa: B018  raise now

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
    def single_shard_reason(self) -> str | None:
        """Keys may be spread: what they give is added up."""
        return None

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
        return self.window.in_units(self.unit)[0]

    @property
    def step(self) -> int:
        """From the start of a window to the next."""
        step = self.window.in_units(self.unit)[1]
        assert step is not None
        return step

    @property
    def deadline(self) -> int:
        """From the start of a window to its deadline."""
        assert isinstance(self.goal, Deadline)
        limit = to_units(self.goal.limit, self.unit, "a deadline")
        return limit if self.goal.after == "start" else self.length + limit

    def deadline_of(self, start: int) -> int:
        """Return the arrival time at which the window that begins at `start` is reported."""
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

    def _plain(self) -> dict[str, Any]:
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["streams"] = [stream.to_dict() for stream in self.streams]
        plain["on"] = list(self.on) if isinstance(self.on, tuple) else self.on
        plain["window"] = window_to_dict(self.window)
        plain["select"] = {n: [a.function, a.column] for n, a in self.select.items()}
        plain["by"] = list(self.by)
        plain["goal"] = goal_to_dict(self.goal)
        return plain

    @classmethod
    def _options(cls, plain: dict[str, Any]) -> dict[str, Any]:
        on = plain["on"]
        return {
            **plain,
            "streams": tuple(map(Stream.from_dict, plain["streams"])),
            "on": tuple(on) if isinstance(on, list) else on,
            "select": {name: Aggregate(*how) for name, how in plain["select"].items()},
            "window": window_from_dict(plain["window"]),
            "by": tuple(plain["by"]),
            "goal": goal_from_dict(plain["goal"]),
        }

    # ---- at work

    def replay(
        self,
        tables: Mapping[str, Any] | None = None,
        /,
        arrival: str = "",
        weights: str | Path | None = None,
        **streams: Any,
    ) -> AggregateRun:
        """Aggregate recorded streams in this process, without Spark.

        Parameters
        ----------
        tables
            One Arrow table, pandas or Polars frame per stream, by stream name; for streams whose
            names are not given as keywords.
        arrival
            The column with the arrival of a row; deadlines are times of arrival.
        weights
            A file of `AggregateRun.save_weights`, with which ``compensate="mlp"`` begins.
        **streams
            The same tables as keywords: ``query.replay(r=a, s=b, arrival="arrived")``.

        Returns
        -------
        AggregateRun
            Results at the deadline and exact ones, metrics, and rejected rows.

        Raises
        ------
        DataError
            If a table or a column is missing, `arrival` among them; or `weights` is no such file.
        QueryError
            If `weights` were made by another recipe, or the estimator has none.
        """
        from slackwater.engine.replay import replay_aggregate  # the front door, on call

        inputs = named_inputs(self.streams, tables, streams)
        return replay_aggregate(self, inputs, arrival, weights)


def aggregate(
    *streams: Stream,
    on: On = None,
    window: Tumbling | Sliding,
    select: Mapping[str, Aggregate],
    deadline: Duration | Deadline,
    by: str | Sequence[str] = (),
    compensate: bool | Compensation | None = None,
    confidence: float = 0.95,
    late: LateAnswer = "count",
    retention: Duration | None = None,
    unit: TimeUnit = "ms",
    strict: bool = False,
    shed: str = "off",
) -> AggregateQuery:
    """Describe aggregates over the join of each window, reported at a deadline.

    All members of a result lie in the window, so the streams have no windows of their own.

    Parameters
    ----------
    *streams
        Two or more.
    on
        The key that all streams share: ``"symbol"``, ``["symbol", "venue"]``, or equalities.
    window
        `Tumbling` or `Sliding`.
    select
        Aggregates by name: ``{"n": sw.count(), "volume": sw.functions.sum("r.v")}``; `count`,
        `sum` and `avg`.
    deadline
        When a window is reported, in time of arrival: so long after its start. `Deadline` has more
        settings.
    by
        Columns of one stream (``"r.region"``), or of the key, that make groups.
    compensate
        Estimate what has not arrived by the deadline. True: with our best estimator; ``"aema"``,
        ``"svi"``, ``"mlp"``, ``"mlp-elbo"``: as PECJ does; None: report what has arrived.
    confidence
        How often the truth lies between low and high.
    late
        For events after the deadline: ``"count"`` them, or ``"emit"`` the exact value later too.
    retention
        How long events are awaited beyond their window. None: as long as the largest delay
        observed.
    unit
        The time unit inside: ``"ms"`` or ``"us"``.
    strict
        Whether a row with a bad time or key is an error instead of a counted reject.
    shed
        Only ``"off"``: joins shed load. Events of a key are counted once whatever their partners
        are, so sampling keys before the aggregate saves more than skipping work in it.

    Returns
    -------
    AggregateQuery
        Frozen and validated; `AggregateQuery.stream` runs it on Spark, `AggregateQuery.replay` in
        this process.

    Raises
    ------
    QueryError
        If the options contradict each other or cannot be run.

    Examples
    --------
    >>> from slackwater.query.functions import count
    >>> r, s = Stream("r", ts="event_time"), Stream("s", ts="event_time")
    >>> n = {"n": count()}
    >>> print(aggregate(r, s, on="k", window=Tumbling("10 s"), select=n, deadline="12 s"))
    SELECT COUNT(*) AS n
    FROM r [WATTR event_time]
         JOIN s [WATTR event_time] USING (k)
    WINDOW TUMBLING 10 S
    WITH DEADLINE 12 S
    """
    refuse_shedding(
        shed,
        "aggregates over a join",
        "keep a share of the keys of all streams with a filter, and divide counts and sums by it",
    )
    return AggregateQuery(
        streams,
        on_texts(on),
        dict(select),
        window,
        deadline if isinstance(deadline, Deadline) else Deadline(deadline),
        (by,) if isinstance(by, str) else tuple(by),
        compensate,
        confidence,
        late,
        retention,
        unit,
        strict,
    )
