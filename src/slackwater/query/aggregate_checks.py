"""What must hold between the options of aggregates over a join."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from slackwater.errors import QueryError
from slackwater.query.functions import Aggregate
from slackwater.query.stream import MOST_STREAMS
from slackwater.query.windows import Sliding

if TYPE_CHECKING:
    from slackwater.query.aggregate import AggregateQuery

Compensation = Literal["delays", "aema", "svi", "mlp", "mlp-elbo"]
LateAnswer = Literal["count", "emit"]

_FUNCTIONS = ("count", "sum", "avg")
_ORDER_MATTERS = ("min", "max", "first", "last")
_OWN_COLUMNS = ("window_start", "window_end", "completeness", "exact")


def check_choices(query: AggregateQuery) -> None:
    """Raise `QueryError` for an option that is none of the choices."""
    choices = (*get_args(Compensation), True, False, None)
    if query.compensate not in choices:
        listed = ", ".join(map(repr, choices))
        msg = f"compensate must be one of {listed}, got {query.compensate!r}"
        raise QueryError(msg)
    if query.late not in get_args(LateAnswer):
        msg = f"late must be one of 'count', 'emit' for aggregates, got {query.late!r}"
        raise QueryError(msg)
    good = isinstance(query.confidence, float) and 0.5 <= query.confidence < 1
    if not good:
        msg = f"confidence must be at least 0.5 and below 1, got {query.confidence!r}"
        raise QueryError(msg)


def check_windows(query: AggregateQuery) -> None:
    """Raise `QueryError` if the windows, or the number of streams, cannot be aggregated."""
    if isinstance(query.window, Sliding) and query.window.slide is None:
        msg = f"the sliding windows of a join need a slide, got {query.window}"
        raise QueryError(msg)
    if query.step > query.length:
        msg = f"slide must not be longer than the window, got {query.window}"
        raise QueryError(msg)
    if len(query.streams) > MOST_STREAMS // 4:
        msg = f"aggregates join at most {MOST_STREAMS // 4} streams, got {len(query.streams)}"
        raise QueryError(msg)


def check_select(query: AggregateQuery) -> None:
    """Raise `QueryError` for aggregates that a join does not have."""
    if not query.select:
        msg = "aggregates are missing: select={'n': sw.count()}"
        raise QueryError(msg)
    for name, aggregate in query.select.items():
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
            query.place(aggregate.column)
    names = [*_OWN_COLUMNS, *(column.partition(".")[2] or column for column in query.by)]
    names += [
        name + suffix for name in query.select for suffix in ("", "_observed", "_low", "_high")
    ]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        msg = f"results would have more than one column {', '.join(doubled)}; rename one"
        raise QueryError(msg)
