"""Which rows a join of two streams has, and when they are given out: its kinds and emission."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.errors import QueryError
from slackwater.query.goals import MaxSlack, NoSlack, Recall, Slack
from slackwater.query.join_options import How
from slackwater.query.units import to_units

if TYPE_CHECKING:
    from slackwater.query.join import JoinQuery

PRESERVED: dict[How, tuple[bool, ...]] = {
    "left": (True, False),
    "right": (False, True),
    "full": (True, True),
    "anti": (True, False),
    "asof": (True, False),
}
WITH_PAIRS: tuple[How, ...] = ("inner", "left", "right", "full")
ONE_SIDED: tuple[How, ...] = ("semi", "anti")  # their rows have the columns of the first stream

_GOALS = (Slack, MaxSlack, NoSlack, Recall)
_ORDERED = "; emit='ordered' takes it"
_FALSE_ROWS = ": a row that is left out would make another one look as if it had no partner"


def check_kind(query: JoinQuery) -> None:
    """Raise `QueryError` if kind and emission do not fit the streams, the goal or each other."""
    _check_asof(query)
    if query.result_id and query.select == "count":
        msg = "result_id=True needs select of columns, got select='count'"
        raise QueryError(msg)
    if query.how == "inner" and query.emit == "ordered":
        _check_unmatched(query)
        return
    option = f"how={query.how!r}" if query.how != "inner" else "emit='eager'"
    _check_streams(query, option)
    _check_goal(query, option)
    _check_unmatched(query)
    is_inner = query.how == "inner"
    emit = "" if is_inner else " or 'emit'"
    why = "" if is_inner else _FALSE_ROWS
    refused = [
        (query.between is not None, "an interval with 0 in it", f"between={query.between!r}"),
        (query.slide is not None, "no slide", f"slide={query.slide!r}"),
        (query.pipeline != "clocked", "pipeline='clocked'", f"pipeline={query.pipeline!r}"),
        (query.select == "count" and not is_inner, "select of columns", "select='count'"),
        (query.late == "drop", f"late='count'{emit}", "late='drop'"),
        (query.shed != "off", "shed='off'", f"{query.shed!r}{why}"),
    ]
    for is_wrong, wanted, got in refused:
        if is_wrong:
            msg = f"{option} needs {wanted}, got {got}{_ORDERED if is_inner else ''}"
            raise QueryError(msg)
    if query.emit == "eager" and query.late == "emit" and query.how in ("inner", "semi"):
        msg = (
            f"late='emit' has nothing to correct with how={query.how!r} and emit='eager': "
            "rows are given out as soon as they are there"
        )
        raise QueryError(msg)


def unmatched_target(query: JoinQuery) -> float | None:
    """The share of rows without partner that the goal wants to be right; None: it says nothing.

    In order, K is chosen for pairs unless ``unmatched=`` says otherwise.
    """
    if not isinstance(query.goal, Recall) or query.how == "asof" or not any(query.preserved):
        return None
    if query.goal.unmatched is None and not query.is_matched:
        return None
    return query.goal.unmatched or query.goal.target


def right_target(query: JoinQuery) -> float | None:
    """The share of rows without partner, or as-of rows, that the goal wants to be right."""
    if query.how == "asof" and isinstance(query.goal, Recall):
        return query.goal.target
    return unmatched_target(query)


def check_plain(query: JoinQuery, what: str) -> None:
    """Raise `QueryError` if `query` is no inner join in order, the only one that `what` knows."""
    given = [
        (query.how != "inner", f"how={query.how!r}"),
        (query.emit != "ordered", f"emit={query.emit!r}"),
        (query.result_id, "result_id=True"),
    ]
    for is_other, option in given:
        if is_other:
            msg = f"{what} knows inner joins in order only so far, got {option}; see replay"
            raise QueryError(msg)


def _check_streams(query: JoinQuery, option: str) -> None:
    if len(query.streams) != 2 and query.how != "inner":
        a, b, c = query.names[:3]
        msg = (
            f"{option} joins two streams, got {len(query.streams)}; join two of them first and the "
            f"results with the third: sw.join(Stream('{a}_{b}', ts='result_ts', ...), "
            f"Stream({c!r}, ...), {option})"
        )
        raise QueryError(msg)
    if query.has_tuple_windows:
        hint = _ORDERED if query.how == "inner" else ""
        msg = f"{option} needs time windows on all streams, got a tuple-count window{hint}"
        raise QueryError(msg)


def _check_goal(query: JoinQuery, option: str) -> None:
    goal = query.goal
    if isinstance(goal, NoSlack) and not goal.synchronize:
        msg = f"{option} needs the common clock of all streams, got {goal}"
        raise QueryError(msg)
    if query.how in WITH_PAIRS and query.emit == "ordered":
        return
    if not isinstance(goal, _GOALS) or (isinstance(goal, Recall) and goal.model != "lateness"):
        listed = ", ".join(kind.__name__ for kind in _GOALS)
        msg = f"the goal with {option} must be one of {listed}, got {goal}"
        raise QueryError(msg)


def _check_unmatched(query: JoinQuery) -> None:
    goal = query.goal
    if not isinstance(goal, Recall) or goal.unmatched is None:
        return
    if query.how == "asof" or query.how not in PRESERVED:
        kinds = ", ".join(repr(how) for how in PRESERVED if how != "asof")
        msg = (
            f"unmatched= is for joins with rows that have no partner, how={kinds}; "
            f"got how={query.how!r}"
        )
        raise QueryError(msg)


def _check_asof(query: JoinQuery) -> None:
    if query.how != "asof":
        for name, given in (("tolerance", query.tolerance), ("direction", query.direction)):
            if given not in (None, "backward"):
                msg = f"{name}= is for how='asof', got {name}={given!r} with how={query.how!r}"
                raise QueryError(msg)
        return
    if query.tolerance is None:
        msg = "how='asof' needs tolerance=, how far the two times may be apart, got none"
        raise QueryError(msg)
    if to_units(query.tolerance, query.unit, "tolerance") < 0:
        msg = f"tolerance must be >= 0, got {query.tolerance!r}"
        raise QueryError(msg)
    if query.bounds != "[]":
        msg = f"how='asof' includes both ends of its tolerance, got bounds={query.bounds!r}"
        raise QueryError(msg)
    for stream in query.streams:
        if stream.window is not None:
            msg = (
                f"stream {stream.name!r}: with how='asof' the tolerance is the window, "
                f"got window={stream.window!r}"
            )
            raise QueryError(msg)
