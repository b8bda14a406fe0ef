"""What was asked of one stream: a window, aggregates over it, and a goal.

>>> from slackwater.query.functions import avg
>>> query = window(
...     Stream("services", order_by="orderID"),
...     range=100,
...     select={"avg_time": avg("serviceTime")},
...     goal=DropRatio(0.01),
... )
>>> query.length
Tuples(count=100)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from slackwater.errors import QueryError
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.functions import Aggregate
from slackwater.query.goals import (
    DropRatio,
    ErrorBound,
    Goal,
    MaxSlack,
    NoSlack,
    Slack,
    goal_from_dict,
    goal_to_dict,
)
from slackwater.query.join import JoinQuery, Stream, Tuples
from slackwater.query.keys import Key
from slackwater.query.protocol import Query, QueryKind
from slackwater.query.units import Duration, TimeUnit, as_plain, to_units

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slackwater.engine.window_replay import WindowRun

Bounds = Literal["(]", "[)"]
AtEnd = Literal["hold", "flush"]
Length = int | Duration | Tuples

_TUPLES = re.compile(r"\s*(\d+)\s*(?:tuples?|rows?)\s*", re.IGNORECASE)
_UNITS = re.compile(r"\s*(\d+)\s*units?\s*", re.IGNORECASE)
_GOALS = (DropRatio, ErrorBound, Slack, MaxSlack, NoSlack)


@dataclass(frozen=True)
class WindowQuery(Query):
    """Aggregates over windows of one stream; made by `window`, which documents the options."""

    kind: ClassVar[QueryKind] = "window"
    numbers_are_times: ClassVar[bool] = False  # any number can be the order

    streams: tuple[Stream, ...]
    range: Length
    slide: Length | None
    select: Mapping[str, Aggregate]
    by: tuple[str, ...] = ()
    goal: Goal = field(default_factory=DropRatio)
    bounds: Bounds = "(]"
    unit: TimeUnit = "ms"
    strict: bool = False

    def __post_init__(self) -> None:
        if len(self.streams) != 1 or not isinstance(self.streams[0], Stream):
            msg = f"a window takes one Stream, got {self.streams!r}"
            raise QueryError(msg)
        if self.streams[0].window is not None:
            msg = "the stream of a window has no window of its own; give range= instead"
            raise QueryError(msg)
        if self.streams[0].vectors:
            msg = f"vectors are for the where of a join, got {dict(self.streams[0].vectors)}"
            raise QueryError(msg)
        if not isinstance(self.goal, _GOALS):
            listed = ", ".join(goal.__name__ for goal in _GOALS)
            msg = f"the goal of a window must be one of {listed}, got {self.goal!r}"
            raise QueryError(msg)
        if self.bounds not in ("(]", "[)"):
            msg = f"bounds must be one of '(]', '[)', got {self.bounds!r}"
            raise QueryError(msg)
        self._check_select()
        length, step = self.length, self.step
        if step is not None and isinstance(step, Tuples) != isinstance(length, Tuples):
            msg = (
                "range and slide must be of one kind, both in tuples or both in time, "
                f"got {self.range!r} and {self.slide!r}"
            )
            raise QueryError(msg)
        if self.bounds == "[)" and (step is None or isinstance(step, Tuples)):
            msg = "bounds='[)' leaves out the window's own end and so needs slide= in time"
            raise QueryError(msg)
        if isinstance(self.goal, ErrorBound):
            self._check_error_bound()
        if isinstance(self.goal, Slack):
            to_units(self.goal.length, self.unit, "slack")
        for name, units in (("range", length), ("slide", step)):
            if isinstance(units, Tuples):  # however it was written
                object.__setattr__(self, name, units)

    def _check_error_bound(self) -> None:
        if isinstance(self.length, Tuples) or self.by:
            msg = (
                "an error bound is for windows in time and without groups, "
                f"got range={self.range!r} and by={self.by!r}"
            )
            raise QueryError(msg)
        if not self.watched:
            msg = "an error bound needs an aggregate that can be wrong, got first and last only"
            raise QueryError(msg)

    @property
    def watched(self) -> dict[str, Aggregate]:
        """The aggregates that have an error."""
        return {n: a for n, a in self.select.items() if a.function not in ("first", "last")}

    def _check_select(self) -> None:
        if not self.select:
            msg = "a window needs at least one aggregate: select={'n': sw.count()}"
            raise QueryError(msg)
        for name, aggregate in self.select.items():
            if not isinstance(name, str) or not name or not isinstance(aggregate, Aggregate):
                msg = f"select must have aggregates by name, got {name!r}: {aggregate!r}"
                raise QueryError(msg)
        names = ["result_ts", *self.by, *self.select]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            msg = f"results would have more than one column {', '.join(doubled)}; rename one"
            raise QueryError(msg)

    # ---- the same in numbers

    @property
    def single_shard_reason(self) -> str | None:
        """Only groups can be spread over shards."""
        return None if self.by else "windows without groups"

    @property
    def keys(self) -> list[Key]:
        """What groups are told apart by."""
        return [Key({0: self.by})]

    @property
    def length(self) -> int | Tuples:
        """How long a window is, in units or tuples."""
        return self._units(self.range, "range")

    @property
    def step(self) -> int | Tuples | None:
        """From one end of a window to the next; None: each event is one."""
        return None if self.slide is None else self._units(self.slide, "slide")

    def _units(self, length: Length, what: str) -> int | Tuples:
        if isinstance(length, Tuples):
            return length
        if isinstance(length, int) and not isinstance(length, bool):
            return Tuples(length)
        if isinstance(length, str) and (tuples := _TUPLES.fullmatch(length)):
            return Tuples(int(tuples[1]))
        if isinstance(length, str) and (units := _UNITS.fullmatch(length)):
            n = int(units[1])
        else:
            n = to_units(length, self.unit, what)
        if n < 1:
            msg = f"{what} must be at least 1 {self.unit}, got {length!r}"
            raise QueryError(msg)
        return n

    # ---- as data

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["streams"] = [{"name": s.name, "ts": s.ts, "source": s.source} for s in self.streams]
        plain["range"], plain["slide"] = map(_plain_length, (self.range, self.slide))
        plain["select"] = {n: [a.function, a.column] for n, a in self.select.items()}
        plain["by"] = list(self.by)
        plain["goal"] = goal_to_dict(self.goal)
        return as_plain(plain)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> WindowQuery:
        """The query that `to_dict` described."""
        given = dict(plain)
        return cls(
            streams=tuple(Stream(**stream) for stream in given.pop("streams")),
            select={name: Aggregate(*how) for name, how in given.pop("select").items()},
            by=tuple(given.pop("by")),
            goal=goal_from_dict(given.pop("goal")),
            **given,
        )

    def __str__(self) -> str:
        from slackwater.sql.printer import printed  # noqa: PLC0415  the front door

        return printed(self)

    # ---- at work

    def replay(self, table: Any, arrival: str | None = None) -> WindowRun:
        """Aggregate a recorded stream here, without Spark.

        Parameters
        ----------
        table
            An Arrow table, pandas or Polars frame, or such a table by the stream's name.
        arrival
            The column that says when a row arrived. Without it, rows arrive in table order.
        """
        from slackwater.engine.window_replay import replay  # noqa: PLC0415  the front door

        return replay(self, table, arrival)

    def stream(
        self,
        frame: DataFrame,
        arrival: str | None = None,
        shards: int | None = None,
        *,
        at_end: AtEnd = "hold",
        control: str | None = None,
        max_future_skew: Duration | None = "1 hour",
        rejects: bool = False,
    ) -> DataFrame:
        """Aggregate a Spark DataFrame, streaming or batch; the result is one of the same kind.

        The options are those of `JoinQuery.stream`. Groups are spread over shards; without groups
        there is one. A number that is no time has no future: `max_future_skew` is for times only.
        With ``rejects=True`` events that were dropped are there too, with the reason ``late``.
        """
        from slackwater.spark.api import Options, stream  # noqa: PLC0415

        options = Options(arrival, shards, at_end, control, None, max_future_skew, rejects)
        return stream(self, {self.names[0]: frame}, options)


AnyQuery = JoinQuery | WindowQuery | AggregateQuery


def _plain_length(length: Length | None) -> Any:
    return f"{length.count} tuples" if isinstance(length, Tuples) else length


def window(
    stream: Stream,
    *,
    range: Length,  # noqa: A002
    slide: Length | None = None,
    select: Mapping[str, Aggregate],
    by: str | Sequence[str] = (),
    goal: Goal | None = None,
    bounds: Bounds | None = None,
    unit: TimeUnit = "ms",
    strict: bool = False,
) -> WindowQuery:
    """Describe aggregates over windows of one stream that may be out of order.

    Parameters
    ----------
    stream
        ``Stream("services", order_by="orderID")``: any time or whole number can be the order.
    range
        How long a window is: ``100`` or ``"100 tuples"`` are the last 100 events that were not
        dropped (of its group, if there are groups); ``"30 seconds"`` or a timedelta are for times;
        ``"500 units"`` for other numbers.
    slide
        Windows end at the multiples of this, or with every so many events for a range in tuples.
        None: each event is the end of a window. As long as the range: the windows tumble. Longer:
        what lies between two windows is in none of them.
    select
        Aggregates by the name of their column: `avg`, `sum`, `count`, `min`, `max`, `stddev`,
        `first`, `last`.
    by
        One or more columns whose values make groups; each has windows of its own.
    goal
        `DropRatio` (the default, with best effort), `ErrorBound`, `Slack`, `MaxSlack` or
        `NoSlack`.
    bounds
        ``"(]"``: windows contain their end; ``"[)"``: their beginning instead. By default the
        latter if windows do not overlap, else the former.
    unit
        The time unit inside: ``"ms"`` or ``"us"``.
    strict
        Whether a row with a null or unusable order is an error instead of a counted reject.
    """
    groups = (by,) if isinstance(by, str) else tuple(by)
    query = WindowQuery(
        (stream,), range, slide, dict(select), groups, goal or DropRatio(), "(]", unit, strict
    )
    return replace(query, bounds=bounds or natural_bounds(query.length, query.step))


def natural_bounds(length: int | Tuples, step: int | Tuples | None) -> Bounds:
    """The bounds of windows that nobody has said: their beginning if they do not overlap."""
    apart = isinstance(step, int) and isinstance(length, int) and step >= length
    return "[)" if apart else "(]"
