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

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from slackwater.query.base import Query, QueryKind
from slackwater.query.expression import Condition, Expression, canonical
from slackwater.query.goals import Goal, NoSlack, Recall, Slack
from slackwater.query.interval import Between, interval_units, with_interval
from slackwater.query.join_checks import (
    check_choices,
    check_goal,
    check_interval,
    check_pipeline,
    check_shedding,
    check_slide,
    parsed_condition,
    selected_columns,
    window_lengths,
)
from slackwater.query.join_kinds import ONE_SIDED, PRESERVED, WITH_PAIRS, check_kind
from slackwater.query.join_options import (
    CHOICES,
    Bounds,
    Direction,
    Emit,
    How,
    Late,
    LateProbe,
    Overdue,
    Pipeline,
    Select,
    SlackScope,
    Where,
)
from slackwater.query.join_plain import options_of, plain_options
from slackwater.query.keys import Key, On, keys_of, on_texts
from slackwater.query.shedding import Shedding, shedding_of
from slackwater.query.shedding import SheddingOption as Shed
from slackwater.query.stream import Stream, check_streams, named_inputs
from slackwater.query.units import Duration, TimeUnit, to_units
from slackwater.query.windows import Tuples

if TYPE_CHECKING:
    from slackwater.engine.replay import Run

# a join without a goal must not lose results silently
DEFAULT_RECALL: dict[Emit, float] = {"ordered": 0.95, "eager": 0.999}


@dataclass(frozen=True)
class JoinQuery(Query):
    """A sliding window join; made by `join`, which documents the options."""

    kind: ClassVar[QueryKind] = "join"

    streams: tuple[Stream, ...]
    on: str | tuple[str, ...] | None = None
    where: Where = None
    goal: Goal = field(default_factory=lambda: Recall(DEFAULT_RECALL["ordered"]))
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
    between: Between | None = None  # only if 0 is not in it: else windows say the same
    slack_scope: SlackScope = "query"
    how: How = "inner"
    tolerance: Duration | None = None
    direction: Direction = "backward"
    emit: Emit = "ordered"
    result_id: bool = False

    def __post_init__(self) -> None:
        check_streams(self.streams)
        if self.select not in ("*", "count"):
            object.__setattr__(self, "select", selected_columns(self))
        if isinstance(self.where, str | Expression):
            object.__setattr__(self, "where", canonical(self.where, "where"))
        check_choices(self, CHOICES)
        check_goal(self)
        check_interval(self)
        check_kind(self)
        self.lengths, self.slack, self.retained, self.keys, self.condition  # noqa: B018  raise now
        check_slide(self)
        check_pipeline(self)
        check_shedding(self)

    @property
    def listed(self) -> tuple[tuple[str, str], ...]:
        """The selected columns, name and expression; empty if all are, or none."""
        return self.select if isinstance(self.select, tuple) else ()

    @property
    def shedding(self) -> Shedding | None:
        """What may be left out when the CPU is short."""
        return shedding_of(self.shed)

    @property
    def synchronizes(self) -> bool:
        """Whether events wait for the slowest stream; only `NoSlack` can switch it off."""
        return not isinstance(self.goal, NoSlack) or self.goal.synchronize

    @property
    def is_clocked(self) -> bool:
        """Whether one buffer on the common clock reorders; else K-slack and Synchronizer do.

        Tuple-count windows need the Synchronizer's total order, `NoSlack` may leave no common
        clock, and the estimates of load shedding are those of the papers' pipeline.
        """
        has_common_clock = self.synchronizes and not self.has_tuple_windows
        return self.pipeline == "clocked" and has_common_clock and self.shed == "off"

    @property
    def shares_slack(self) -> bool:
        """Whether all shards are to have one K; only those of the clocked pipeline can."""
        return self.slack_scope == "query" and self.is_clocked

    @property
    def has_fixed_slack(self) -> bool:
        """Whether K is what the goal says, whatever arrives."""
        return isinstance(self.goal, Slack | NoSlack)

    @property
    def is_matched(self) -> bool:
        """Whether rows come from arrivals; else pairs come from events that are put in order."""
        return self.emit == "eager" or self.how not in WITH_PAIRS

    @property
    def has_recall(self) -> bool:
        """Whether single results can be lost: not of kinds whose rows are all decided."""
        return self.how not in ("anti", "asof")

    @property
    def has_ids(self) -> bool:
        """Whether results have identities."""
        return self.result_id

    @property
    def has_tuple_windows(self) -> bool:
        """Whether any window is counted in tuples."""
        return any(isinstance(stream.window, Tuples) for stream in self.streams)

    @property
    def single_shard_reason(self) -> str | None:
        """Tuples are counted over all events; without a key, partners may be anywhere."""
        if self.how == "full" and self.on is None:
            return "full outer joins without an equality"
        return "tuple-count windows" if self.has_tuple_windows else None

    @property
    def lengths(self) -> tuple[int | None, ...]:
        """Window lengths with both ends included; None for tuple-count windows."""
        return window_lengths(self)

    @property
    def gap(self) -> tuple[int, int] | None:
        """The least and the largest ``right.ts - left.ts``, if each pair is tested with them."""
        return None if self.between is None else interval_units(self.between, self.unit)

    @property
    def has_condition(self) -> bool:
        """Whether pairs are tested, beside keys and windows."""
        return self.where is not None or self.between is not None

    @property
    def preserved(self) -> tuple[bool, ...]:
        """For each stream, whether its events give a row also without a partner."""
        return PRESERVED.get(self.how, (False,) * len(self.streams))

    def shows(self, stream: int) -> bool:
        """Whether results have columns of this stream."""
        return stream == 0 or self.how not in ONE_SIDED

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
        return parsed_condition(self)

    def _plain(self) -> dict[str, Any]:
        return plain_options(self)

    @classmethod
    def _options(cls, plain: dict[str, Any]) -> dict[str, Any]:
        return options_of(plain)

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
    between: Between | None = None,
    slack_scope: SlackScope = "query",
    how: How = "inner",
    tolerance: Duration | None = None,
    direction: Direction = "backward",
    emit: Emit = "ordered",
    result_id: bool = False,
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
        (``["a.x = b.x", "b.y = c.y"]``, or ``sw.col("a.x") == sw.col("b.x")``). None: no equality.
    where
        A condition in the grammar of SQL, ``"abs(a.px - b.px) < 1 AND a.venue IN ('X', 'Y')"``, or
        the same built with `col`; or a function of one record of numbers per stream
        (``lambda a, b: abs(a.px - b.px) < 1``). It is compiled. Text and `col` may compare vectors
        too, columns of lists: ``"cosine(a.v, b.v) > 0.8"``, `dot` and `l2`.
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
    between
        For two streams without windows: how much later an event of the second may be than one of
        the first, ``("0 s", "30 min")``; both ends belong to it. A negative end is earlier.
    slack_scope
        Who has a K on Spark: ``"query"``: all shards have the same one, learnt from all of them,
        and results are in order from one micro-batch to the next; or each ``"shard"`` its own.
        Queries of the papers' pipeline, batch DataFrames, and streams that have no folder to share
        (`JoinQuery.stream`) always have the latter.
    how
        Which rows there are, for two streams: ``"inner"``; ``"left"``, ``"right"``, ``"full"``,
        also the events of these sides that have no partner; ``"semi"`` and ``"anti"``, the events
        of the first stream that have a partner or none; ``"asof"``, each event of the first stream
        with the one of the second whose time is nearest.
    tolerance
        ``how="asof"``: how far the two times may be apart. The streams then have no windows.
    direction
        ``how="asof"``: the partner is not later (``"backward"``), not earlier (``"forward"``) or
        either (``"nearest"``; at equal distance the earlier one).
    emit
        ``"ordered"``: results in the order of their times, behind the slack K; ``"eager"``: a
        result as soon as its last member arrives, without an order. Then the goal sets how long
        events are kept, and how long a row without a partner waits.
    result_id
        Whether results have a column `result_id`: 128 bits made of the kind of row and of what
        identifies its members (`Stream.id`, else all columns).

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
    if between is not None:
        streams, between = with_interval(streams, between, unit, bounds)
    if goal is None:
        goal = Recall(DEFAULT_RECALL.get(emit, DEFAULT_RECALL["ordered"]))
    return JoinQuery(
        streams, on_texts(on), where, goal, select, late, bounds, slide, pipeline, overdue,
        late_probe, retention, unit, strict, shed, between, slack_scope, how, tolerance, direction,
        emit, result_id,
    )  # fmt: skip
