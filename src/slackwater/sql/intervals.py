"""Intervals between the times of two streams, as Spark and Flink write them.

``r.ts BETWEEN l.ts AND l.ts + INTERVAL 30 MINUTES`` is ``between=("0 s", "30 min")``; so are the
two comparisons with ``>=`` and ``<=``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from slackwater.query.interval import Between
from slackwater.query.units import is_time_unit
from slackwater.sql.literals import identifier

if TYPE_CHECKING:
    from sqlglot import exp

    from slackwater.query.join import JoinQuery

Fail = Callable[["exp.Expr", str], Exception]


class End(NamedTuple):
    """One end of an interval: ``right.ts - left.ts`` is at least or at most so much."""

    is_low: bool
    length: str  # a duration, perhaps with a minus in front


class Interval(NamedTuple):
    """An interval, and where it stands."""

    between: Between
    nodes: list[exp.Expr]


class Times:
    """The time columns of two streams; left is the first."""

    def __init__(self, left: tuple[str, str], right: tuple[str, str], fail: Fail) -> None:
        self._left, self._right = left, right
        self._fail = fail

    def take(self, nodes: list[exp.Expr], wanted: bool) -> tuple[Interval | None, list[exp.Expr]]:
        """The interval that conditions give, and the other conditions.

        Comparisons of times without INTERVAL count only if an interval is `wanted`: if the streams
        have no windows.
        """
        from sqlglot import exp

        ends: dict[bool, str] = {}
        own: list[exp.Expr] = []
        others: list[exp.Expr] = []
        for node in nodes:
            found = list(self._ends(node))
            if not found or not (wanted or node.find(exp.Interval)):
                others.append(node)
                continue
            for end in found:
                if end.is_low in ends:
                    raise self._fail(node, "the times of the streams are compared twice")
                ends[end.is_low] = end.length
            own.append(node)
        if not own:
            return None, others
        if len(ends) < 2:
            msg = "the times of two streams need both ends: r.ts BETWEEN l.ts AND l.ts + INTERVAL …"
            raise self._fail(own[0], msg)
        return Interval((ends[True], ends[False]), own), others

    def _ends(self, node: exp.Expr) -> Iterator[End]:
        """What a condition says of right - left."""
        from sqlglot import exp

        if isinstance(node, exp.Between):
            low = exp.GTE(this=node.this, expression=node.args["low"])
            yield from self._ends(low)
            yield from self._ends(exp.LTE(this=node.this, expression=node.args["high"]))
        if not isinstance(node, exp.GTE | exp.LTE):
            return
        sides = [self._side(node.left), self._side(node.right)]
        if None in sides:
            return
        (first, plus), (second, more) = sides  # type: ignore[misc]
        if first == second:
            return
        # first + plus <= second + more, or the other way round
        is_less = isinstance(node, exp.LTE)
        if plus is not None and more is not None:
            raise self._fail(node, "write the INTERVAL on one side only")
        length = _minus(plus) if more is None else more
        if first == self._left:  # left <= right + more: right - left >= -more
            yield End(is_less, _minus(length) or "0 s")
        else:
            yield End(not is_less, length or "0 s")

    def _side(self, node: exp.Expr) -> tuple[tuple[str, str], str | None] | None:
        """A time column, and the interval that is added to it."""
        from sqlglot import exp

        node = node.unnest()
        if isinstance(node, exp.Column):
            column = (node.table, node.name)
            return (column, None) if column in (self._left, self._right) else None
        if isinstance(node, exp.Add | exp.Sub):
            side = self._side(node.left)
            shift = node.right.unnest()
            if side is None or side[1] is not None or not isinstance(shift, exp.Interval):
                return None
            length = self._length(shift)
            return side[0], (_minus(length) if isinstance(node, exp.Sub) else length)
        return None

    def _length(self, node: Any) -> str:
        unit = node.args.get("unit")
        number, word = node.this, unit.name.lower() if unit is not None else ""
        if not number.is_number and not number.is_string or not is_time_unit(word):
            msg = f"an interval is a number and a unit, INTERVAL 30 MINUTES, got {node.sql()}"
            raise self._fail(node, msg)
        return f"{number.name} {word}"


def _minus(length: str | None) -> str | None:
    if length is None:
        return None
    return length[1:] if length.startswith("-") else f"-{length}"


def interval_text(query: JoinQuery) -> str | None:
    """The interval of a query that windows cannot say, as SQL; None: there is none."""
    if query.gap is None:
        return None
    left, right = (f"{identifier(s.name)}.{identifier(s.ts)}" for s in query.streams)
    low, high = (
        f"{left} {'-' if end < 0 else '+'} INTERVAL {abs(end)} {query.unit.upper()}"
        for end in query.gap
    )
    return f"{right} BETWEEN {low} AND {high}"
