"""What was asked: streams, windows, join condition, goal. Frozen, validated, serialisable.

>>> quotes = Stream("quotes", ts="time", window="5 seconds")
>>> trades = Stream("trades", ts="time", window="100 tuples")
>>> query = JoinQuery((quotes, trades), on="symbol", goal=Slack("200 ms"))
>>> query.streams[1].window
Tuples(count=100)
>>> JoinQuery.from_dict(query.to_dict()) == query
True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from slackwater.errors import QueryError
from slackwater.query.expression import Condition, Expression, canonical
from slackwater.query.goals import (
    GOALS,
    Deadline,
    DropRatio,
    ErrorBound,
    Goal,
    InputQuantile,
    Latency,
    NoSlack,
    Recall,
    Slack,
    goal_from_dict,
    goal_to_dict,
)
from slackwater.query.keys import Key, keys_of
from slackwater.query.shedding import Asked as Shed
from slackwater.query.shedding import Shedding, shedding_from_dict, shedding_of, shedding_to_dict
from slackwater.query.units import Duration, TimeUnit, as_plain, to_units

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slackwater.engine.replay import Run

Bounds = Literal["[]", "(]", "[)"]
Late = Literal["count", "emit", "drop"]
LateProbe = Literal["none", "window-end"]
Overdue = Literal["advance", "now"]
Select = Literal["*", "count"] | Mapping[str, str | Expression] | tuple[tuple[str, str], ...]
Where = str | Expression | Callable[..., bool] | None  # an Expression becomes its text

_NAME = re.compile(r"[A-Za-z_]\w*")
_TUPLES = re.compile(r"\s*(\d+)\s*(?:tuples?|rows?)\s*", re.IGNORECASE)
MOST_STREAMS = 32


@dataclass(frozen=True)
class Tuples:
    """A tuple-count window: the last `count` events in the order (ts, stream, arrival)."""

    count: int

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            msg = f"a tuple-count window must hold at least 1 tuple, got {self.count!r}"
            raise QueryError(msg)


@dataclass(frozen=True)
class Stream:
    """One input stream.

    Parameters
    ----------
    name
        How conditions and result columns refer to it.
    ts
        Its event-time column: a timestamp, or a number in the query's time unit.
    window
        How long an event can find partners in a join: ``"5 seconds"``, a number in the query's time
        unit, a timedelta, or a tuple-count window, ``"100 tuples"``.
    order_by
        The same as `ts`, for a column that is not a time: a number that mostly grows.
    vectors
        How long the vectors are that `where` compares, by column: ``{"embedding": 512}``. Lists of
        a fixed size need not be here: their type says it.
    source
        What the data is called that it reads, if that is not its name: two streams may read one
        source.
    """

    name: str
    ts: str = ""
    window: Duration | Tuples | None = None
    order_by: InitVar[str | None] = None
    vectors: Mapping[str, int] | tuple[tuple[str, int], ...] = ()  # is the latter, by name
    source: str = ""  # is the name if left out

    def __post_init__(self, order_by: str | None) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            msg = f"a stream's name must be letters, digits and _, got {self.name!r}"
            raise QueryError(msg)
        if order_by is not None:
            if self.ts:
                msg = f"stream {self.name!r}: give ts or order_by, got both"
                raise QueryError(msg)
            object.__setattr__(self, "ts", order_by)
        if not isinstance(self.ts, str) or not self.ts:
            msg = f"stream {self.name!r}: ts must be the name of its time column, got {self.ts!r}"
            raise QueryError(msg)
        if isinstance(self.window, str):
            tuples = _TUPLES.fullmatch(self.window)
            if tuples:
                object.__setattr__(self, "window", Tuples(int(tuples[1])))
        object.__setattr__(self, "vectors", self._lengths())
        object.__setattr__(self, "source", self.source or self.name)

    def _lengths(self) -> tuple[tuple[str, int], ...]:
        """Lengths of vectors in the order of their names."""
        try:
            lengths = dict(self.vectors)
        except (TypeError, ValueError):  # neither a mapping nor pairs
            lengths = {"": 0}
        for column, length in lengths.items():
            is_whole = isinstance(length, int) and not isinstance(length, bool)
            if not (isinstance(column, str) and column and is_whole and length >= 1):
                msg = (
                    f"stream {self.name!r}: vectors must tell lengths not below 1 by column, like "
                    f"{{'embedding': 512}}, got {self.vectors!r}"
                )
                raise QueryError(msg)
        return tuple(sorted(lengths.items()))


@dataclass(frozen=True)
class JoinQuery:
    """An m-way sliding window join; made by `join`, which documents the options."""

    streams: tuple[Stream, ...]
    on: str | tuple[str, ...] | None = None
    where: Where = None
    goal: Goal = field(default_factory=NoSlack)
    select: Select = "*"
    late: Late = "count"
    bounds: Bounds = "[]"
    slide: Duration | None = None
    overdue: Overdue = "advance"
    late_probe: LateProbe = "none"
    retention: Duration | None = None
    unit: TimeUnit = "ms"
    strict: bool = False
    shed: Shed = "off"

    def __post_init__(self) -> None:
        check_streams(self.streams)
        if self.select not in ("*", "count"):
            object.__setattr__(self, "select", self._listed())
        if isinstance(self.where, str | Expression):
            object.__setattr__(self, "where", canonical(self.where, "where"))
        for option, allowed in _CHOICES.items():
            if getattr(self, option) not in allowed:
                listed = ", ".join(map(repr, allowed))
                msg = f"{option} must be one of {listed}, got {getattr(self, option)!r}"
                raise QueryError(msg)
        if not isinstance(self.goal, get_args(Goal)):
            msg = f"goal must be one of {', '.join(GOALS)}, got {self.goal!r}"
            raise QueryError(msg)
        self._check_goal()
        self.lengths, self.slack, self.retained, self.keys, self.condition  # noqa: B018  raise now
        self._check_slide()
        self._check_shedding()
        if self.has_tuple_windows and self.late_probe == "window-end":
            msg = "late_probe='window-end' needs time windows, got a tuple-count window"
            raise QueryError(msg)

    def _listed(self) -> tuple[tuple[str, str], ...]:
        """The selected columns, which must be expressions by name."""
        select: Any = self.select  # users may err
        try:
            listed = tuple((name, text) for name, text in dict(select).items())
        except (TypeError, ValueError):
            listed = ()
        if not all(isinstance(n, str) and isinstance(e, str | Expression) for n, e in listed):
            listed = ()
        if not listed:
            msg = (
                "select must be '*', 'count', columns by name like {'spread': 'a.px - b.px'}, or "
                f"aggregates by name, got {select!r}"
            )
            raise QueryError(msg)
        return tuple((name, self._selected(name, given)) for name, given in listed)

    def _selected(self, name: str, given: str | Expression) -> str:
        """The canonical text of a selected column."""
        if isinstance(given, str) and given.endswith(".*") and given[:-2] in self.names:
            return given
        if not name:
            msg = f"a column of results needs a name, got {name!r} for {given}"
            raise QueryError(msg)
        text = canonical(given, "select")
        self._parsed(text, "select")
        return text

    @property
    def listed(self) -> tuple[tuple[str, str], ...]:
        """The selected columns, name and expression; empty if all are, or none."""
        return self.select if isinstance(self.select, tuple) else ()

    def _check_goal(self) -> None:
        goal = self.goal
        if isinstance(goal, Deadline):
            msg = "a deadline is for aggregates: give select={'n': sw.count()} and window=, "
            msg += f"got select={self.select!r}"
            raise QueryError(msg)
        if isinstance(goal, Recall | InputQuantile | Latency):
            goal.check(self.unit)
        if isinstance(goal, ErrorBound):
            msg = f"an error bound is for windows of one stream; a join takes a Recall, got {goal}"
            raise QueryError(msg)
        if isinstance(goal, DropRatio) and goal.heartbeat in ("mean", "adaptive"):
            msg = (
                "a join has no heartbeat: the drop ratio's must be 'largest' or 'max-delay', "
                f"got {goal.heartbeat!r}"
            )
            raise QueryError(msg)
        if not isinstance(goal, Recall):
            return
        if self.late == "drop":
            msg = "a recall goal must know what is lost: late must be 'count' or 'emit', got 'drop'"
            raise QueryError(msg)
        if goal.model == "late-degree" and len(self.streams) != 2:
            msg = f"model='late-degree' joins two streams, got {len(self.streams)}"
            raise QueryError(msg)

    def _check_shedding(self) -> None:
        if self.shedding is None:
            return
        self.shedding.check(self.unit, self.lengths)
        if self.late_probe == "window-end":
            msg = "load shedding needs late_probe='none', got 'window-end'"
            raise QueryError(msg)

    def _check_slide(self) -> None:
        if self.bounds == "[)" and self.slide is None:
            msg = "bounds='[)' leaves out the window's own end and so needs slide=, got none"
            raise QueryError(msg)
        if self.slide is not None and self.slide_units < 1:
            msg = f"slide must be at least 1 {self.unit}, got {self.slide!r}"
            raise QueryError(msg)
        if self.slide is not None and self.has_tuple_windows:
            msg = "slide= needs time windows on all streams, got a tuple-count window"
            raise QueryError(msg)

    @property
    def shedding(self) -> Shedding | None:
        """What may be left out when the CPU is short; None: nothing."""
        return shedding_of(self.shed)

    # ---- the same in numbers of the time unit

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the streams, in order."""
        return tuple(stream.name for stream in self.streams)

    @property
    def has_tuple_windows(self) -> bool:
        """Whether any window is counted in tuples."""
        return any(isinstance(stream.window, Tuples) for stream in self.streams)

    @property
    def in_one_place(self) -> bool:
        """Whether all events must be in one shard: tuples are counted over all of them."""
        return self.has_tuple_windows

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
        """How long events are kept beyond their window; None: as long as the largest lateness."""
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
        return self._parsed(where, "where")

    def _parsed(self, text: str, what: str) -> Condition:
        parsed = Condition.parse(text, what)
        for column in sorted(parsed.columns):
            if column.stream not in self.names:
                msg = (
                    f"{what} names an unknown stream in {column}; "
                    f"streams are {', '.join(self.names)}"
                )
                raise QueryError(msg)
        return parsed

    # ---- as data

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold; a query whose `where` is a function has none."""
        if callable(self.where):
            msg = f"a query is plain data only if where is text, got the function {self.where!r}"
            raise QueryError(msg)
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["streams"] = [_plain_stream(stream) for stream in self.streams]
        plain["goal"] = goal_to_dict(self.goal)
        plain["shed"] = shedding_to_dict(self.shed)
        plain["on"] = list(self.on) if isinstance(self.on, tuple) else self.on
        plain["select"] = dict(self.listed) or self.select
        return as_plain(plain)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> JoinQuery:
        """The query that `to_dict` described."""
        given = dict(plain)
        on = given.pop("on")
        return cls(
            streams=tuple(Stream(**stream) for stream in given.pop("streams")),
            on=tuple(on) if isinstance(on, list) else on,
            goal=goal_from_dict(given.pop("goal")),
            shed=shedding_from_dict(given.pop("shed", "off")),
            **given,
        )

    def __str__(self) -> str:
        from slackwater.sql.printer import printed  # noqa: PLC0415  the front door

        return printed(self)

    # ---- at work

    def replay(self, tables: Mapping[str, Any], arrival: str | None = None) -> Run:
        """Join recorded streams here, without Spark.

        Parameters
        ----------
        tables
            One Arrow table, pandas or Polars frame per stream, by stream name.
        arrival
            The column that says when a row arrived; rows are taken in the order (arrival, stream,
            ts, row). Without it, rows of a table arrive in table order, and the tables are read
            side by side as their local times (largest ts so far) advance.
        """
        from slackwater.engine.replay import replay  # noqa: PLC0415  the front door, on call

        return replay(self, tables, arrival)

    def stream(
        self,
        inputs: Mapping[str, DataFrame],
        arrival: str | None = None,
        shards: int | None = None,
        *,
        at_end: Literal["hold", "flush"] = "hold",
        control: str | None = None,
        idle_after: Duration | None = None,
        max_future_skew: Duration | None = "1 hour",
        rejects: bool = False,
    ) -> DataFrame:
        """Join Spark DataFrames, streaming or batch; the result is one of the same kind.

        Parameters
        ----------
        inputs
            One DataFrame per stream, by stream name.
        arrival
            The column that says when a row arrived: rows are taken in the order (arrival, stream,
            ts, row), and the results do not depend on how Spark cuts the input into micro-batches.
            Without it a micro-batch is one instant, and its rows are sorted by ts before they are
            judged late; a batch DataFrame then gives the exact join.
        shards
            Over how many shards the join is spread; by default one per shuffle partition. With one
            shard it is the papers' join, event by event; with several, each is a join of its slice
            with a common clock.
        at_end
            What happens to waiting events when all sources are quiet: ``"hold"`` them for the next
            run, or ``"flush"`` them, as a last run should. Batch DataFrames are always flushed.
        control
            A directory that is watched for commands, one JSON object per file:
            ``{"set": {"slack": "1 s"}}``, ``{"finished": ["trades"]}``, ``{"flush": true}``.
        idle_after
            A stream whose local time stands still while another moves on by this is idle: nobody
            waits for it until it speaks again. What it then says may be late. None: wait for ever.
        max_future_skew
            A time that is later than the row's arrival (where both are timestamps, else: than the
            time of the micro-batch) by more than this is rejected, so that one broken clock does
            not make everything else late. None: believe everything.
        rejects
            Return a tagged DataFrame with the rejected rows beside the results; `results` and
            `rejects` take it apart.
        """
        from slackwater.spark.api import Options, stream  # noqa: PLC0415

        options = Options(arrival, shards, at_end, control, idle_after, max_future_skew, rejects)
        return stream(self, inputs, options)

    def with_(self, **others: Any) -> Callable[[DataFrame], DataFrame]:
        """The join as a step of a chain: ``trades.transform(query.with_(quotes=quotes))``.

        `others` has the DataFrames of all streams but one, and options of `stream`.
        """
        frames = {name: others.pop(name) for name in self.names if name in others}
        left = [name for name in self.names if name not in frames]
        if len(left) != 1:
            got = ", ".join(frames) or "none"
            msg = f"with_ takes the DataFrames of all streams but one, got {got}"
            raise QueryError(msg)
        return lambda frame: self.stream({left[0]: frame, **frames}, **others)


def _plain_stream(stream: Stream) -> dict[str, Any]:
    tuples = isinstance(stream.window, Tuples)
    window = f"{stream.window.count} tuples" if tuples else stream.window  # type: ignore[union-attr]
    plain = {"name": stream.name, "ts": stream.ts, "window": window}
    return as_plain(plain | {"vectors": dict(stream.vectors), "source": stream.source})


_CHOICES = {
    "late": get_args(Late),
    "bounds": get_args(Bounds),
    "overdue": get_args(Overdue),
    "late_probe": get_args(LateProbe),
    "unit": get_args(TimeUnit),
    "strict": (True, False),
}


def by_stream(streams: tuple[Stream, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given by the name of a stream, or of its source, by the name of the stream."""
    sources = {stream.source for stream in streams} & set(given)
    named = {stream.name: given[stream.source] for stream in streams if stream.source in sources}
    return named | {name: value for name, value in given.items() if name not in sources}


def check_streams(streams: tuple[Any, ...]) -> None:
    """Raise what is wrong with the streams of a join."""
    for stream in streams:
        if not isinstance(stream, Stream):
            msg = f"a join takes Stream objects, got {stream!r}"
            raise QueryError(msg)
    if not 2 <= len(streams) <= MOST_STREAMS:
        msg = f"a join takes 2 to {MOST_STREAMS} streams, got {len(streams)}"
        raise QueryError(msg)
    names = [stream.name for stream in streams]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        msg = f"streams must have different names, got {', '.join(doubled)} more than once"
        raise QueryError(msg)
