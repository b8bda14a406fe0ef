"""How a join is asked for: `join` makes a `JoinQuery`, or for aggregates an `AggregateQuery`.

>>> from slackwater.query.goals import Recall
>>> quotes = Stream("quotes", ts="time", window="5 seconds")
>>> trades = Stream("trades", ts="time", window="5 seconds")
>>> join(quotes, trades, on="symbol", goal=Recall(0.95)).goal.target
0.95
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, overload

from slackwater.errors import QueryError
from slackwater.query.aggregate import AggregateQuery, Compensation, Sliding, Tumbling
from slackwater.query.expression import Expression
from slackwater.query.functions import Aggregate
from slackwater.query.goals import Goal
from slackwater.query.join import Bounds, JoinQuery, Late, LateProbe, Overdue, Select, Stream, Where
from slackwater.query.keys import On
from slackwater.query.shedding import Asked as Shed
from slackwater.query.units import Duration, TimeUnit


@overload
def join(
    *streams: Stream,
    on: On = None,
    select: Mapping[str, Aggregate],
    window: Tumbling | Sliding | None = None,
    goal: Goal | None = None,
    by: str | Sequence[str] = (),
    compensate: bool | Compensation | None = None,
    confidence: float = 0.95,
    late: Late = "count",
    retention: Duration | None = None,
    unit: TimeUnit = "ms",
    strict: bool = False,
) -> AggregateQuery: ...


@overload
def join(
    *streams: Stream,
    on: On = None,
    where: Where = None,
    goal: Goal | None = None,
    select: Select = "*",
    late: Late = "count",
    bounds: Bounds = "[]",
    slide: Duration | None = None,
    overdue: Overdue = "advance",
    late_probe: LateProbe = "none",
    retention: Duration | None = None,
    unit: TimeUnit = "ms",
    strict: bool = False,
    shed: Shed = "off",
) -> JoinQuery: ...


def join(
    *streams: Stream,
    on: On = None,
    select: Select | Mapping[str, Aggregate] = "*",
    **options: Any,
) -> JoinQuery | AggregateQuery:
    """Describe a sliding window join of two or more streams.

    A result has one event of each stream. Its time t is the largest among them; it is true iff
    every member is in its stream's window at t and the conditions hold.

    Parameters
    ----------
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
        What is asked for, and so who sets the slack K: `Recall`, `Latency`, `InputQuantile`,
        `DropRatio` (of events that are late), `Slack`, `MaxSlack`, `NoSlack` (default).
    select
        ``"*"``: results with all columns of all streams, as ``<stream>_<column>``. ``"count"``:
        only how many there are. Columns by name, ``{"symbol": "q.symbol", "gap": "q.px - t.px"}``:
        these, behind the result time. Or aggregates by name, ``{"n": sw.count(), "volume":
        sw.sum("r.v")}``: see below.
    late
        For late events: ``"count"`` the results lost with them, ``"emit"`` these results too
        (marked in a column `late`), or ``"drop"`` them without looking.
    bounds
        Which ends a window includes: ``"[]"`` both, ``"(]"`` the later one, ``"[)"`` the earlier
        one (needs `slide`).
    slide
        The slide unit U: all members must lie in windows that end at a common multiple of U.
    overdue
        Whether an event that K does not cover leaves with the next advance of local time or now.
    late_probe
        ``"window-end"``: a late event still joins partners at the join's own time (Thesis 4.2).
    retention
        How long events are kept beyond their window so that losses are counted exactly. None: as
        long as the largest lateness seen. Longer costs memory.
    unit
        The time unit inside: ``"ms"`` or ``"us"``.
    strict
        Whether a row with a bad time or key is an error instead of a counted reject.
    shed
        What happens when the input outruns the CPU: ``"adaptive"``: the least profitable work is
        left out and counted (`Harvest` has the settings; `RandomDrop` and `TailDrop` are baselines
        to compare with); ``"off"``: nothing is left out, however long it takes.
    window
        With aggregates: `Tumbling` or `Sliding`; all members of a result lie in the window. Streams
        then have no windows of their own, and all share one key.
    by
        With aggregates: columns of one stream (``"r.region"``), or of the key, that make groups.
    compensate
        With aggregates: guess what has not arrived by the `Deadline`. True: as well as we can;
        ``"aema"``, ``"svi"``, ``"mlp"``, ``"mlp-elbo"``: as PECJ does; None: tell what is there.
    confidence
        With aggregates: how often the truth lies between low and high.
    """
    equal = on if on is None or isinstance(on, str) else tuple(on)
    given = {name: value for name, value in options.items() if value is not None}
    chosen: Any = select
    if not isinstance(select, Mapping) or ("window" not in given and _names_columns(select)):
        return JoinQuery(streams, equal, select=chosen, **_known(given, JoinQuery))
    if "window" not in given or "goal" not in given:
        msg = "aggregates over a join need window= and goal=, like sw.Tumbling('10 s') and "
        msg += "sw.Deadline('12 s')"
        raise QueryError(msg)
    by = given.pop("by", ())
    given["by"] = (by,) if isinstance(by, str) else tuple(by)
    return AggregateQuery(streams, equal, dict(chosen), **_known(given, AggregateQuery))


def _names_columns(select: Mapping[str, Any]) -> bool:
    return any(isinstance(what, str | Expression) for what in select.values())


def _known(options: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """The options, which must be ones of this kind of query."""
    allowed = [f.name for f in fields(kind) if f.name not in ("streams", "on", "select")]
    for name in options:
        if name not in allowed:
            what = "aggregates over a join" if kind is not JoinQuery else "a join"
            msg = f"{what} must have options out of {', '.join(allowed)}; got {name}"
            raise QueryError(msg)
    return options
