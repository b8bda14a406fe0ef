"""Aggregates over windows of one stream that may be out of order.

>>> from slackwater.query.functions import avg
>>> query = window(
...     Stream("services", order_by="orderID"),
...     window=Tuples(100),
...     select={"avg_time": avg("serviceTime")},
...     goal=DropRatio(0.01),
... )
>>> query.length
Tuples(count=100)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from slackwater.errors import QueryError
from slackwater.query.base import Query, QueryKind
from slackwater.query.functions import Aggregate
from slackwater.query.goals import Goal, MaxSlack, NoSlack, Slack, goal_from_dict, goal_to_dict
from slackwater.query.keys import Key
from slackwater.query.shedding_checks import refuse_shedding
from slackwater.query.stream import Stream, named_inputs
from slackwater.query.units import Duration, TimeUnit, to_units
from slackwater.query.window_goals import DropRatio, ErrorBound
from slackwater.query.windows import (
    Sliding,
    Tumbling,
    Tuples,
    Window,
    window_from_dict,
    window_to_dict,
)

if TYPE_CHECKING:
    from slackwater.engine.replay import WindowRun

Bounds = Literal["(]", "[)"]

_GOALS = (DropRatio, ErrorBound, Slack, MaxSlack, NoSlack)


@dataclass(frozen=True)
class WindowQuery(Query):
    """Aggregates over windows of one stream; made by `window`, which documents the options."""

    kind: ClassVar[QueryKind] = "window"
    numbers_are_times: ClassVar[bool] = False  # any number can be the order

    streams: tuple[Stream, ...]
    window: Window
    select: Mapping[str, Aggregate]
    by: tuple[str, ...] = ()
    goal: Goal = field(default_factory=DropRatio)
    bounds: Bounds = "(]"
    unit: TimeUnit = "ms"
    strict: bool = False
    max_jump: Duration | Literal["auto", "none"] = "auto"

    def __post_init__(self) -> None:
        if len(self.streams) != 1 or not isinstance(self.streams[0], Stream):
            msg = f"a window takes one Stream, got {self.streams!r}"
            raise QueryError(msg)
        if self.streams[0].window is not None:
            msg = "the stream of a window has no window of its own; give window= beside it"
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
        self._check_window()
        if isinstance(self.goal, ErrorBound):
            self._check_error_bound()
        if isinstance(self.goal, Slack):
            to_units(self.goal.length, self.unit, "slack")
        if self.max_jump not in ("auto", "none"):
            to_units(self.max_jump, self.unit, "max_jump")

    def _check_window(self) -> None:
        window: object = self.window  # users may err
        if not isinstance(window, Window):
            msg = f"window must be a Tumbling, a Sliding or Tuples, got {window!r}"
            raise QueryError(msg)
        length, step = self.length, self.step
        if self.bounds == "[)" and (step is None or isinstance(step, Tuples)):
            msg = "bounds='[)' leaves out the window's own end and so needs a slide in time"
            raise QueryError(msg)
        if isinstance(self.window, Sliding) and step == length:  # one way to describe it
            object.__setattr__(self, "window", Tumbling(self.window.length))

    def _check_error_bound(self) -> None:
        if isinstance(self.length, Tuples) or self.by:
            msg = (
                "an error bound is for windows in time and without groups, "
                f"got window={self.window!r} and by={self.by!r}"
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
        if isinstance(self.window, Tuples):
            return Tuples(self.window.count)
        return self.window.in_units(self.unit)[0]

    @property
    def step(self) -> int | Tuples | None:
        """From one end of a window to the next; None: each event is one."""
        if isinstance(self.window, Tuples):
            return None if self.window.slide is None else Tuples(self.window.slide)
        return self.window.in_units(self.unit)[1]

    # ---- as data

    def _plain(self) -> dict[str, Any]:
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["streams"] = [stream.to_dict() for stream in self.streams]
        plain["window"] = window_to_dict(self.window)
        plain["select"] = {n: [a.function, a.column] for n, a in self.select.items()}
        plain["by"] = list(self.by)
        plain["goal"] = goal_to_dict(self.goal)
        return plain

    @classmethod
    def _options(cls, plain: dict[str, Any]) -> dict[str, Any]:
        return {
            **plain,
            "streams": tuple(map(Stream.from_dict, plain["streams"])),
            "window": window_from_dict(plain["window"]),
            "select": {name: Aggregate(*how) for name, how in plain["select"].items()},
            "by": tuple(plain["by"]),
            "goal": goal_from_dict(plain["goal"]),
        }

    # ---- at work

    def replay(self, table: Any = None, /, arrival: str | None = None, **streams: Any) -> WindowRun:
        """Aggregate a recorded stream in this process, without Spark.

        Parameters
        ----------
        table
            An Arrow table, pandas or Polars frame, or such a table by the stream's name.
        arrival
            The column with the arrival of a row. Without it, rows arrive in table order.
        **streams
            The same table as a keyword: ``query.replay(services=table)``.

        Returns
        -------
        WindowRun
            Results, metrics, and dropped and rejected rows.

        Raises
        ------
        DataError
            If the table or a column is missing, or the order column cannot be one.
        """
        from slackwater.engine.replay import replay_window  # the front door, on call

        return replay_window(self, named_inputs(self.streams, table, streams), arrival)


def window(
    stream: Stream,
    *,
    window: Window,
    select: Mapping[str, Aggregate],
    by: str | Sequence[str] = (),
    goal: Goal | None = None,
    bounds: Bounds | None = None,
    unit: TimeUnit = "ms",
    strict: bool = False,
    max_jump: Duration | Literal["auto", "none"] = "auto",
    shed: str = "off",
) -> WindowQuery:
    """Describe aggregates over windows of one stream that may be out of order.

    Parameters
    ----------
    stream
        ``Stream("services", order_by="orderID")``: any time or whole number can be the order.
    window
        ``Tumbling("10 s")``, ``Sliding("30 s", "10 s")`` (without a slide each event is the end of
        a window), or ``Tuples(100)``: the last 100 events that were not dropped (of their group, if
        there are groups). Windows end at the multiples of the slide, or with every so many events.
        A bare integer is in the unit of the order column.
    select
        Aggregates by the name of their column: `avg`, `count`, `stddev`, `first`, `last`, and
        `sum`, `min`, `max` in `slackwater.functions`.
    by
        One or more columns whose values make groups; each has windows of its own.
    goal
        `DropRatio` (the default, with best effort), `ErrorBound`, `Slack`, `MaxSlack` or
        `NoSlack`.
    bounds
        ``"(]"``: windows contain their end; ``"[)"``: their beginning instead. Default: ``"[)"`` if
        windows do not overlap, else ``"(]"``.
    unit
        The time unit inside: ``"ms"`` or ``"us"``.
    strict
        Whether a row with a null or unusable order is an error instead of a counted reject.
    max_jump
        How far ahead of the largest order so far a row may be. One that is further ahead is
        rejected, unless four more follow that are as far: then the order has really jumped.
        ``"auto"``: for an order of numbers, from the hundredth row on, as far as all rows so far
        reach, and at least 100 times the lead of the largest over the recent mean; for timestamps
        there is no limit (``max_future_skew`` has them on Spark). ``"none"``: there is none.
    shed
        Only ``"off"``: joins shed load. An event costs constant time here, so sampling events
        before the window saves as much as anything in it could.

    Returns
    -------
    WindowQuery
        Frozen and validated; `WindowQuery.stream` runs it on Spark, `WindowQuery.replay` in this
        process.

    Raises
    ------
    QueryError
        If the options contradict each other or cannot be run.

    Examples
    --------
    >>> from slackwater.query.functions import avg
    >>> services = Stream("services", ts="event_time")
    >>> print(window(services, window=Sliding("30 s", "10 s"), select={"avg": avg("x")}))
    SELECT AVG(x) AS avg
    FROM services [RANGE 30 S, SLIDE 10 S, WATTR event_time]
    WITH DROP RATIO 0.0
    """
    refuse_shedding(
        shed,
        "windows of one stream",
        "keep a share of the events with a filter, and divide counts and sums by it",
    )
    groups = (by,) if isinstance(by, str) else tuple(by)
    query = WindowQuery(
        (stream,), window, dict(select), groups, goal or DropRatio(), "(]", unit, strict, max_jump
    )
    return replace(query, bounds=bounds or natural_bounds(query.length, query.step))


def natural_bounds(length: int | Tuples, step: int | Tuples | None) -> Bounds:
    """Return the default bounds: the beginning belongs to windows that do not overlap."""
    apart = isinstance(step, int) and isinstance(length, int) and step >= length
    return "[)" if apart else "(]"
