"""What charts of a query show beside the counters: delays, leads, and what each K would give.

Each shard gives a `ChartPart` (`engine.chart_part` collects it); `merge` makes the `Charts` of a
metrics line of the parts of all shards. docs/metrics.md lists the fields.

>>> part = ChartPart("ms", 90, {"a": 5, "b": 0}, {"a": [7, 0, 1]}, slack=10)
>>> part = part._replace(lead=5, found=9, true=10)
>>> both = merge([part, part._replace(now=95, true=20, delays={"a": [1]})])
>>> both.now, both.recall, both.latency, both.delays
(95, 0.6, 15.0, {'a': {'edges': [0, 1, 2], 'counts': [8, 0, 1]}})
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.events.batch import flat, time_in_units
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.units import TimeUnit
from slackwater.stats.recent import EDGES

_MOST_ROWS = 20  # of aggregates
_MOST_VALUES = 40  # aggregates in them
_LONGEST = 60  # characters of a group's name


class ChartPart(NamedTuple):
    """What one shard knows at the end of a micro-batch."""

    unit: TimeUnit
    now: int | None  # None: nothing has come yet
    leads: dict[str, int]
    delays: dict[str, list[int]]  # counts by octave, up to the last one that has any
    slack: int | None  # None: results do not wait for K
    lead: int = 0  # how long results wait for the slowest stream
    found: float = 0.0  # results of the last period that were found,
    true: float = 0.0  # and all that there should be
    curve: list[list[float]] | None = None  # [K, recall]
    chosen: list[float] | None = None  # the same of the K in force
    slack_reason: list[str] | None = None  # why K is what it is, in words
    harvest: list[dict[str, Any]] | None = None
    throttle: float = 1.0
    aggregates: list[dict[str, Any]] | None = None


class Charts(NamedTuple):
    """What all shards know together; the fields are in the table of `metrics.schema`."""

    unit: TimeUnit
    now: int
    recall: float | None
    leads: dict[str, int]
    latency: float | None
    delays: dict[str, dict[str, list[int]]]
    curve: list[list[float]] | None
    chosen: list[float] | None
    slack_reason: list[str] | None
    harvest: list[dict[str, Any]] | None
    aggregates: list[dict[str, Any]] | None


def merge(parts: Sequence[ChartPart]) -> Charts | None:
    """The charts of all shards together.

    Parameters
    ----------
    parts
        Those of the shards that had work.

    Returns
    -------
    Charts or None
        None if nothing has come yet.
    """
    known = [part for part in parts if part.now is not None]
    if not known:
        return None
    true = sum(part.true for part in known)
    waits = [part.slack + part.lead for part in known if part.slack is not None]
    harvests = [part for part in known if part.harvest]
    rows = [part.aggregates for part in known if part.aggregates is not None]
    curve, chosen = _merged_curve(known)
    return Charts(
        unit=known[0].unit,
        now=max(part.now for part in known if part.now is not None),
        recall=round(sum(part.found for part in known) / true, 6) if true else None,
        leads=_largest_leads(known),
        latency=float(max(waits)) if waits else None,
        delays=_added_delays(known),
        curve=curve,
        chosen=chosen,
        slack_reason=max(known, key=lambda part: part.slack or 0).slack_reason,
        harvest=min(harvests, key=lambda part: part.throttle).harvest if harvests else None,
        aggregates=[row for own in rows for row in own][-_MOST_ROWS:] if rows else None,
    )


def _largest_leads(known: Sequence[ChartPart]) -> dict[str, int]:
    names = dict.fromkeys(name for part in known for name in part.leads)
    return {name: max(part.leads.get(name, 0) for part in known) for name in names}


def _added_delays(known: Sequence[ChartPart]) -> dict[str, dict[str, list[int]]]:
    names = dict.fromkeys(name for part in known for name in part.delays)
    added = {}
    for name in names:
        counts = [part.delays.get(name, ()) for part in known]
        total = [sum(column) for column in zip_longest(*counts, fillvalue=0)]
        added[name] = {"edges": EDGES[: len(total)], "counts": total}
    return added


def _merged_curve(
    known: Sequence[ChartPart],
) -> tuple[list[list[float]], list[float]] | tuple[None, None]:
    """What all shards together should give, by how many results each has; K is the largest one."""
    curves = [
        (part.curve, part.chosen, part) for part in known if part.curve and part.chosen is not None
    ]
    if not curves:
        return None, None
    lead = max(part.lead for _, _, part in curves)
    largest = max(chosen[0] for _, chosen, _ in curves)
    slacks = sorted({largest, *(point[0] for points, _, _ in curves for point in points)})
    weights = [part.true for _, _, part in curves]
    if not sum(weights):
        weights = [1.0] * len(curves)
    each = []
    for points, chosen, _ in curves:
        each.append(np.interp(slacks, *np.array(sorted([*points, chosen]), float).T))
    recalls = np.average(each, axis=0, weights=weights)
    curve = [
        [slack, round(float(recall), 6), float(slack + lead)]
        for slack, recall in zip(slacks, recalls, strict=True)
    ]
    return curve, curve[slacks.index(largest)]


# ---- rows of aggregates


def aggregate_rows(query: AggregateQuery, results: pa.Table) -> list[dict[str, Any]]:
    """The last rows of a table of aggregates, few and short enough for a metrics line."""
    most = max(1, min(_MOST_ROWS, _MOST_VALUES // len(query.select)))
    last = results.slice(max(0, results.num_rows - most))
    begins, _ = time_in_units(flat(last.column("window_start")), query.unit)
    return [
        {
            "start": start,
            "end": start + query.length,
            "group": {name: _short(row[name]) for name in query.group_columns},
            "completeness": _number(row["completeness"]),
            "exact": row["exact"],
            "values": {
                name: {
                    "observed": _number(row[f"{name}_observed"]),
                    "value": _number(row[name]),
                    "low": _number(row[f"{name}_low"]),
                    "high": _number(row[f"{name}_high"]),
                }
                for name in query.select
            },
        }
        for start, row in zip(begins.tolist(), last.to_pylist(), strict=True)
    ]


def _short(value: Any) -> Any:
    """A value that JSON can hold and that is not long."""
    if value is None or isinstance(value, bool | int | float):
        return _number(value)
    return str(value)[:_LONGEST]


def _number(value: float | None) -> float | None:
    """To eight digits; JSON knows no infinity."""
    if value is None or isinstance(value, int):
        return value
    return float(f"{value:.8g}") if math.isfinite(value) else None
