"""An m-way sliding window join: streams, keys, condition and goal.

>>> from slackwater.query.windows import Tuples
>>> quotes = Stream("quotes", ts="time", window="5 seconds")
>>> trades = Stream("trades", ts="time", window=Tuples(100))
>>> query = join(quotes, trades, on="symbol")
>>> query.goal.target
0.95
>>> JoinQuery.from_dict(query.to_dict()) == query
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from slackwater.errors import QueryError
from slackwater.query.base import Query, QueryKind
from slackwater.query.expression import Condition, Expression, canonical
from slackwater.query.goals import Goal, NoSlack, Recall, Slack, goal_from_dict, goal_to_dict
from slackwater.query.join_checks import (
    check_goal,
    check_pipeline,
    check_shedding,
    check_slide,
    parsed_expression,
    selected_columns,
)
from slackwater.query.keys import Key, On, keys_of
from slackwater.query.shedding import (
    Shedding,
    shedding_from_dict,
    shedding_of,
    shedding_to_dict,
)
from slackwater.query.shedding import SheddingOption as Shed
from slackwater.query.stream import Stream, check_streams, named_inputs
from slackwater.query.units import Duration, TimeUnit, as_plain, to_units
from slackwater.query.windows import Tuples

if TYPE_CHECKING:
    from slackwater.engine.replay import Run

Bounds = Literal["[]", "(]", "[)"]
Late = Literal["count", "emit", "drop"]
LateProbe = Literal["none", "window-end"]
Overdue = Literal["advance", "now"]
Pipeline = Literal["clocked", "icde16"]
Select = Literal["*", "count"] | Mapping[str, str | Expression] | tuple[tuple[str, str], ...]
Where = str | Expression | Callable[..., bool] | None  # an Expression becomes its text

DEFAULT_RECALL = 0.95  # a join without a goal must not lose results silently

_CHOICES = {
    "late": get_args(Late),
    "bounds": get_args(Bounds),
    "pipeline": get_args(Pipeline),
    "overdue": get_args(Overdue),
    "late_probe": get_args(LateProbe),
    "unit": get_args(TimeUnit),
    "strict": (True, False),
}


@dataclass(frozen=True)
class JoinQuery(Query):
    """An m-way sliding window join; made by `join`, which documents the options."""

    kind: ClassVar[QueryKind] = "join"
    has_recall: ClassVar[bool] = True

    streams: tuple[Stream, ...]
    on: str | tuple[str, ...] | None = None
    where: Where = None
    goal: Goal = field(default_factory=lambda: Recall(DEFAULT_RECALL))
    select: Select = "*"
    late: Late = "count"
    bounds: Bounds = "[]"
    slide: Duration | None = None
    pipeline: Pipeline = "clocked"
    overdue: Overdue = "advance"
    late_probe: LateProbe = "none"
    retention: Duration | None = None
    unit: TimeUnit = "ms"
    strict: bool = False
    shed: Shed = "off"

    def __post_init__(self) -> None:
        check_streams(self.streams)
        if self.select not in ("*", "count"):
            object.__setattr__(self, "select", selected_columns(self))
        if isinstance(self.where, str | Expression):
            object.__setattr__(self, "where", canonical(self.where, "where"))
        for option, allowed in _CHOICES.items():
            if getattr(self, option) not in allowed:
                listed = ", ".join(map(repr, allowed))
                msg = f"{option} must be one of {listed}, got {getattr(self, option)!r}"
                raise QueryError(msg)
        check_goal(self)
        self.lengths, self.slack, self.retained, self.keys, self.condition  # noqa: B018  raise now
        check_slide(self)
        check_pipeline(self)
        check_shedding(self)
        if self.has_tuple_windows and self.late_probe == "window-end":
            msg = "late_probe='window-end' needs time windows, got a tuple-count window"
            raise QueryError(msg)

    @property
    def listed(self) -> tuple[tuple[str, str], ...]:
        """The selected columns, name and expression; empty if all are, or none."""
        return self.select if isinstance(self.select, tuple) else ()

    @property
    def shedding(self) -> Shedding | None:
        """What may be left out when the CPU is short; None: nothing."""
        return shedding_of(self.shed)

    # ---- the same in numbers of the time unit

    @property
    def synchronizes(self) -> bool:
        """Whether events wait for the slowest stream; only `NoSlack` can switch it off."""
        return not isinstance(self.goal, NoSlack) or self.goal.synchronize

    @property
    def is_clocked(self) -> bool:
        """Whether one buffer on the common clock reorders; else K-slack and Synchronizer do.

        Tuple-count windows need the total order in which the Synchronizer puts events, without
        synchronising there is no common clock, and the estimates of load shedding are those of the
        papers' pipeline.
        """
        has_common_clock = self.synchronizes and not self.has_tuple_windows
        return self.pipeline == "clocked" and has_common_clock and self.shed == "off"

    @property
    def has_tuple_windows(self) -> bool:
        """Whether any window is counted in tuples."""
        return any(isinstance(stream.window, Tuples) for stream in self.streams)

    @property
    def single_shard_reason(self) -> str | None:
        """Tuples are counted over all events."""
        return "tuple-count windows" if self.has_tuple_windows else None

    @property
    def lengths(self) -> tuple[int | None, ...]:
        """Window lengths with both ends included; None for tuple-count windows."""
        return tuple(self._length(stream) for stream in self.streams)

    def _length(self, stream: Stream) -> int | None:
        if isinstance(stream.window, Tuples):
            return None
        what = f"stream {stream.name!r}: window"
        if stream.window is None:
            msg = f"{what} must say how long an event can find partners, got none"
            raise QueryError(msg)
        if isinstance(stream.window, int) and stream.window < 0:
            msg = f"{what} must be >= 0, got {stream.window!r}"
            raise QueryError(msg)
        length = to_units(stream.window, self.unit, what)
        open_start = self.bounds == "(]"
        if open_start and length < 1:
            msg = f"{what} must be at least 1 {self.unit} with bounds='(]', got {stream.window!r}"
            raise QueryError(msg)
        return length - open_start

    @property
    def slide_units(self) -> int:
        """The slide unit; 1 without one."""
        return 1 if self.slide is None else to_units(self.slide, self.unit, "slide")

    @property
    def slack(self) -> int:
        """K at the start."""
        if isinstance(self.goal, Slack):
            return to_units(self.goal.length, self.unit, "slack")
        return 0

    @property
    def retained(self) -> int | None:
        """How long events are kept beyond their window; None: the engine decides."""
        return None if self.retention is None else to_units(self.retention, self.unit, "retention")

    @property
    def keys(self) -> list[Key]:
        """The keys of the join graph."""
        return keys_of(self.on, self.names)

    @property
    def condition(self) -> Condition | None:
        """The parsed `where`, if it is no function."""
        where: Any = self.where  # users may err
        if where is None or callable(where):
            return None
        if not isinstance(where, str):
            msg = f"where must be an expression or a function, got {where!r}"
            raise QueryError(msg)
        return parsed_expression(self, where, "where")

    # ---- as data

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold.

        Returns
        -------
        dict
            What `from_dict` takes.

        Raises
        ------
        QueryError
            If `where` is a function.
        """
        if callable(self.where):
            msg = f"a query is plain data only if where is text, got the function {self.where!r}"
            raise QueryError(msg)
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["streams"] = [stream.to_dict() for stream in self.streams]
        plain["goal"] = goal_to_dict(self.goal)
        plain["shed"] = shedding_to_dict(self.shed)
        plain["on"] = list(self.on) if isinstance(self.on, tuple) else self.on
        plain["select"] = dict(self.listed) or self.select
        return as_plain(plain)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> JoinQuery:
        """Return the query that `to_dict` described.

        Parameters
        ----------
        plain
            What `to_dict` returned, or the same read from JSON.

        Returns
        -------
        JoinQuery
            Equal to the one that was described.
        """
        given = dict(plain)
        on = given.pop("on")
        return cls(
            streams=tuple(map(Stream.from_dict, given.pop("streams"))),
            on=tuple(on) if isinstance(on, list) else on,
            goal=goal_from_dict(given.pop("goal")),
            shed=shedding_from_dict(given.pop("shed", "off")),
            **given,
        )

    # ---- at work

    def replay(
        self, tables: Mapping[str, Any] | None = None, /, arrival: str | None = None, **streams: Any
    ) -> Run:
        """Join recorded streams in this process, without Spark.

        Parameters
        ----------
        tables
            One Arrow table, pandas or Polars frame per stream, by stream name; for streams whose
            names are not given as keywords.
        arrival
            The column with the arrival of a row; rows are processed in the order (arrival, stream,
            ts, row). Without it, rows of a table arrive in table order, and the tables are read
            side by side as their local times (largest ts so far) advance.
        **streams
            The same tables as keywords: ``query.replay(quotes=a, trades=b)``.

        Returns
        -------
        Run
            Results, metrics, late and rejected rows, and `Run.report`.

        Raises
        ------
        DataError
            If a table or a column is missing, or a time column is not a time.
        """
        from slackwater.engine.replay import replay_join  # the front door, on call

        return replay_join(self, named_inputs(self.streams, tables, streams), arrival)


def join(
    *streams: Stream,
    on: On = None,
    where: Where = None,
    goal: Goal | None = None,
    select: Select = "*",
    late: Late = "count",
    bounds: Bounds = "[]",
    slide: Duration | None = None,
    pipeline: Pipeline = "clocked",
    overdue: Overdue = "advance",
    late_probe: LateProbe = "none",
    retention: Duration | None = None,
    unit: TimeUnit = "ms",
    strict: bool = False,
    shed: Shed = "off",
) -> JoinQuery:
    """Describe a sliding window join of two or more streams.

    A result has one event of each stream. Its time t is the largest among them; it is true iff
    every member is in its stream's window at t and the conditions hold.

    Parameters
    ----------
    *streams
        Two or more, each with a `window`.
    on
        The columns that must be equal: one shared column (``"symbol"``), several of them
        (``["symbol", "venue"]``), or equalities that form an acyclic graph
        (``["a.x = b.x", "b.y = c.y"]``). None: no equality.
    where
        A condition over numeric columns, ``"abs(a.px - b.px) < 1"`` or the same built with `col`,
        or a function that takes one record per stream (``lambda a, b: abs(a.px - b.px) < 1``); it
        is compiled. Text and `col` may compare vectors too, columns of lists:
        ``"cosine(a.v, b.v) > 0.8"``, `dot` and `l2`.
    goal
        The quality target, which sets the slack K: `Recall`, `Latency`, `InputQuantile`,
        `DropRatio` (of events that are late), `Slack`, `MaxSlack`, `NoSlack`. Default:
        ``Recall(0.95)``.
    select
        ``"*"``: results with all columns of all streams, as ``<stream>_<column>``. ``"count"``:
        only how many there are. Columns by name, ``{"symbol": "q.symbol", "gap": "q.px - t.px"}``:
        these, behind the result time.
    late
        For late events: ``"count"`` the results lost with them, ``"emit"`` these results too
        (marked in a column `late`), or ``"drop"`` them without counting.
    bounds
        Which ends a window includes: ``"[]"`` both, ``"(]"`` the later one, ``"[)"`` the earlier
        one (needs `slide`).
    slide
        The slide unit U: all members must lie in windows that end at a common multiple of U.
    pipeline
        How events are put in order: ``"clocked"``, one buffer on the common clock of all streams,
        or ``"icde16"``, the papers' K-slack buffer per stream and Synchronizer, to which the next
        two options belong. Tuple-count windows and queries with `shed` always have the latter.
    overdue
        Whether an event that K does not cover leaves with the next advance of local time or now.
    late_probe
        ``"window-end"``: a late event still joins partners at the join's own time (Thesis 4.2).
    retention
        How long events are kept beyond their window so that losses are counted exactly. Longer
        costs memory. None: so long that next to nothing is lost beyond it; the rest is estimated
        from a sample that is kept longer (``lost_estimated``).
    unit
        The time unit inside: ``"ms"`` or ``"us"``.
    strict
        Whether a row with a bad time or key is an error instead of a counted reject.
    shed
        What happens when the input outruns the CPU: ``"adaptive"``: the least profitable work is
        left out and counted (`Harvest` has the settings; `RandomDrop` and `TailDrop` are baselines
        to compare with); ``"off"``: nothing is left out, however long it takes.

    Returns
    -------
    JoinQuery
        Frozen and validated; `JoinQuery.stream` runs it on Spark, `JoinQuery.replay` in this
        process.

    Raises
    ------
    QueryError
        If the options contradict each other or cannot be run.

    Examples
    --------
    >>> quotes = Stream("quotes", ts="event_time", window="5 seconds")
    >>> trades = Stream("trades", ts="event_time", window="5 seconds")
    >>> print(join(quotes, trades, on="symbol", late="emit"))
    SELECT *
    FROM quotes [RANGE 5 SECONDS, WATTR event_time]
         JOIN trades [RANGE 5 SECONDS, WATTR event_time] USING (symbol)
    WITH RECALL 0.95 OVER 1 MINUTE, LATE EMIT
    """
    return JoinQuery(
        streams,
        on if on is None or isinstance(on, str) else tuple(on),
        where,
        Recall(DEFAULT_RECALL) if goal is None else goal,
        select,
        late,
        bounds,
        slide,
        pipeline,
        overdue,
        late_probe,
        retention,
        unit,
        strict,
        shed,
    )
