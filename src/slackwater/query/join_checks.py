"""What must hold between the options of a join."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from slackwater.errors import QueryError
from slackwater.query.expression import Condition, Expression, canonical
from slackwater.query.goals import GOALS, Goal, InputQuantile, Latency, Recall
from slackwater.query.interval import windows_of
from slackwater.query.keys import is_spark_column
from slackwater.query.stream import Stream
from slackwater.query.units import to_units
from slackwater.query.window_goals import Deadline, DropRatio, ErrorBound
from slackwater.query.windows import Tuples

if TYPE_CHECKING:
    from slackwater.query.join import JoinQuery
    from slackwater.query.stream import Stream


def parsed_expression(query: JoinQuery, text: str, what: str) -> Condition:
    """Return the parsed `text`, whose columns are of streams that the query has."""
    parsed = Condition.parse(text, what)
    for column in sorted(parsed.columns):
        if column.stream not in query.names:
            msg = (
                f"{what} names an unknown stream in {column}; streams are {', '.join(query.names)}"
            )
            raise QueryError(msg)
    return parsed


def parsed_condition(query: JoinQuery) -> Condition | None:
    """Return the parsed `where`, if it is no function."""
    where: Any = query.where  # users may err
    if where is None or callable(where):
        return None
    if not isinstance(where, str):
        given = "a Spark column: write sw.col('a.x')" if is_spark_column(where) else repr(where)
        msg = f"where must be an expression or a function, got {given}"
        raise QueryError(msg)
    return parsed_expression(query, where, "where")


def selected_columns(query: JoinQuery) -> tuple[tuple[str, str], ...]:
    """Return the selected columns as canonical text; they must be expressions by name."""
    select: Any = query.select  # users may err
    try:
        listed = tuple((name, given) for name, given in dict(select).items())
    except (TypeError, ValueError):
        listed = ()
    if not all(isinstance(n, str) and isinstance(e, str | Expression) for n, e in listed):
        listed = ()
    if not listed:
        msg = (
            "select must be '*', 'count' or columns by name like {'spread': 'a.px - b.px'}, got "
            f"{select!r}; aggregates are for sw.aggregate"
        )
        raise QueryError(msg)
    return tuple((name, _selected(query, name, given)) for name, given in listed)


def _selected(query: JoinQuery, name: str, given: str | Expression) -> str:
    if isinstance(given, str) and given.endswith(".*") and given[:-2] in query.names:
        return given
    if not name:
        msg = f"a column of results needs a name, got {name!r} for {given}"
        raise QueryError(msg)
    text = canonical(given, "select")
    parsed_expression(query, text, "select")
    return text


def window_length(query: JoinQuery, stream: Stream) -> int | None:
    """Return how far a window reaches, both ends included; None: it is counted in tuples."""
    if isinstance(stream.window, Tuples):
        return None
    what = f"stream {stream.name!r}: window"
    if stream.window is None:
        msg = f"{what} must say how long an event can find partners, got none"
        raise QueryError(msg)
    if isinstance(stream.window, int) and stream.window < 0:
        msg = f"{what} must be >= 0, got {stream.window!r}"
        raise QueryError(msg)
    length = to_units(stream.window, query.unit, what)
    open_start = query.bounds == "(]"
    if open_start and length < 1:
        msg = f"{what} must be at least 1 {query.unit} with bounds='(]', got {stream.window!r}"
        raise QueryError(msg)
    return length - open_start


def check_choices(query: JoinQuery, choices: Mapping[str, tuple[Any, ...]]) -> None:
    """Raise `QueryError` if an option is not one of its choices."""
    for option, allowed in choices.items():
        if getattr(query, option) not in allowed:
            listed = ", ".join(map(repr, allowed))
            msg = f"{option} must be one of {listed}, got {getattr(query, option)!r}"
            raise QueryError(msg)


def check_goal(query: JoinQuery) -> None:
    """Raise `QueryError` if the goal is not one of a join, or does not fit its options."""
    goal = query.goal
    if not isinstance(goal, get_args(Goal)):
        msg = f"goal must be one of {', '.join(GOALS)}, got {goal!r}"
        raise QueryError(msg)
    if isinstance(goal, Deadline):
        msg = f"a deadline is for aggregates over a join, sw.aggregate(..., deadline=), got {goal}"
        raise QueryError(msg)
    if isinstance(goal, Recall | InputQuantile | Latency):
        goal.check(query.unit)
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
    if query.late == "drop":
        msg = (
            "a recall goal must know what is lost: late must be 'count' or 'emit', got 'drop'; "
            "without goal= the goal is Recall(0.95)"
        )
        raise QueryError(msg)
    if goal.model == "late-degree" and len(query.streams) != 2:
        msg = f"model='late-degree' joins two streams, got {len(query.streams)}"
        raise QueryError(msg)


def check_interval(query: JoinQuery) -> None:
    """Raise `QueryError` if windows, bounds or slide do not fit the interval of times."""
    if query.gap is None or query.between is None:
        return
    low, high = query.gap
    if query.lengths != (max(high, 0), max(-low, 0)) or query.bounds != "[]" or query.slide:
        msg = (
            f"between={query.between!r} is the windows {windows_of(query.between)}, with both "
            "ends and without a slide"
        )
        raise QueryError(msg)


def check_shedding(query: JoinQuery) -> None:
    """Raise `QueryError` if load shedding does not fit the windows."""
    if query.shedding is None:
        return
    query.shedding.check(query.unit, query.lengths)
    if query.late_probe == "window-end":
        msg = "load shedding needs late_probe='none', got 'window-end'"
        raise QueryError(msg)


def check_pipeline(query: JoinQuery) -> None:
    """Raise `QueryError` if an option of the papers' pipeline is used with another one."""
    for option, default in (("overdue", "advance"), ("late_probe", "none")):
        given = getattr(query, option)
        if given != default and query.is_clocked:
            msg = f"{option}={given!r} belongs to pipeline='icde16', got pipeline='clocked'"
            raise QueryError(msg)
    if query.has_tuple_windows and query.late_probe == "window-end":
        msg = "late_probe='window-end' needs time windows, got a tuple-count window"
        raise QueryError(msg)


def check_slide(query: JoinQuery) -> None:
    """Raise `QueryError` if slide and bounds do not fit each other or the windows."""
    if query.bounds == "[)" and query.slide is None:
        msg = "bounds='[)' leaves out the window's own end and so needs slide=, got none"
        raise QueryError(msg)
    if query.slide is not None and query.slide_units < 1:
        msg = f"slide must be at least 1 {query.unit}, got {query.slide!r}"
        raise QueryError(msg)
    if query.slide is not None and query.has_tuple_windows:
        msg = "slide= needs time windows on all streams, got a tuple-count window"
        raise QueryError(msg)


def window_lengths(query: JoinQuery) -> tuple[int | None, ...]:
    """Window lengths with both ends included; None for tuple-count windows."""
    if query.how != "asof":
        return tuple(window_length(query, stream) for stream in query.streams)
    within = to_units(query.tolerance or 0, query.unit, "tolerance")
    return {"backward": (0, within), "forward": (within, 0), "nearest": (within, within)}[
        query.direction
    ]
