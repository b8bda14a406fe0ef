"""What a chart needs of a query: delays, leads, and what each K would give, as plain data.

Each shard makes a `sketch`; `merged` makes one picture of those of all shards. Nothing is computed
here that costs more than a fraction of a millisecond, and nothing depends on how the input was cut
into batches. docs/running.md tells what the fields mean.

>>> sketch = {"unit": "ms", "now": 90, "leads": {"a": 5, "b": 0}, "slack": 10, "lead": 5}
>>> sketch |= {"found": 9.0, "true": 10.0, "delays": {"a": [7, 0, 1]}, "curve": None}
>>> both = merged([sketch, sketch | {"now": 95, "true": 20.0, "delays": {"a": [1]}}])
>>> both["now"], both["recall"], both["latency"], both["delays"]
(95, 0.6, 15.0, {'a': {'edges': [0, 1, 2], 'counts': [8, 0, 1]}})
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.controllers.controller import RecallSeeker
from slackwater.controllers.recall import RecallController
from slackwater.engine.base import AnyEngine
from slackwater.engine.join import JoinEngine
from slackwater.events.batch import flat, time_in_units
from slackwater.kernels.records import BEFORE, I64
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.goals import Recall
from slackwater.query.shedding import Harvest
from slackwater.stats.buckets import BUCKETS
from slackwater.stats.recent import EDGES, OCTAVES, octaves
from slackwater.stats.statistics import Statistics

Sketch = dict[str, Any]
Picture = dict[str, Any]

_MOST_TOLD = 20  # rows
_MOST_VALUES = 40  # aggregates in them
_LONGEST = 60  # characters of a group's name
_RUNGS = [0, 1, *(rung << i for i in range(18) for rung in (2, 3))]  # 2, 3, 4, 6, 8, 12, ...
_MODELS = ("measured", "eqsel")  # whose choice the recall model explains


def picture(engine: AnyEngine, results: pa.Table | None = None) -> Picture | None:
    """The picture of a query that has only one engine; `results` are those of the last batch."""
    return merged([sketch(engine, results)])


# ---- of one shard


def sketch(
    engine: AnyEngine, results: pa.Table | None = None, counted: Sequence[bool] | None = None
) -> Sketch:
    """The share of one shard in a picture.

    Parameters
    ----------
    engine
        The engine of the shard.
    results
        What it has made in the last batch; only that of aggregates is shown.
    counted
        Of which streams the events are counted here; all by default.
    """
    query, stage = engine.query, engine.reorder
    local = {name: stage.local(s) for s, name in enumerate(query.names)}
    known = {name: time for name, time in local.items() if time != BEFORE}
    leads = {name: time - min(known.values()) for name, time in known.items()}
    is_told = isinstance(query, AggregateQuery)
    said: Sketch = {
        "unit": query.unit,
        "now": None if stage.top == BEFORE else stage.top,
        "leads": leads,
        "slack": None if is_told else stage.slack,  # those who tell at a deadline do not wait
        "lead": 0,
        "found": 0.0,
        "true": 0.0,
        "delays": _delays(engine, counted or [True] * len(local)),
        "told": told(query, results) if is_told and results is not None else None,
    }
    return said | (_of_join(engine, leads) if isinstance(engine, JoinEngine) else {})


def _of_join(engine: JoinEngine, leads: dict[str, int]) -> Sketch:
    known = engine.statistics
    found, true = _recent_results(engine)
    said: Sketch = {"found": found, "true": true, "harvest": _harvest(engine)}
    if engine.shedder is not None:
        said["throttle"] = engine.shedder.throttle.z
    if getattr(engine.query.goal, "synchronize", True):
        said["lead"] = max(leads.values(), default=0)
    if known is not None:
        engine.model.learn(known.delays)
        said["lead"] = engine.model.lead
        said |= _curve(engine, known)
    return said


def _delays(engine: AnyEngine, counted: Sequence[bool]) -> dict[str, list[int]]:
    """Counts by octave, up to the last one that has any."""
    if engine.recent is not None:
        counts = engine.recent.counts
    else:
        assert isinstance(engine, JoinEngine)
        assert engine.statistics is not None
        known = engine.statistics.delays
        used = known.histogram[:, : known.top + 1]
        starts, octave = _octave_starts(known.granularity)
        n = int(np.searchsorted(starts, used.shape[1]))
        counts = np.zeros((len(used), OCTAVES), np.int64)
        counts[:, octave[:n]] = np.add.reduceat(used, starts[:n], axis=1)
    return {
        name: _trimmed(counts[s].tolist())
        for s, name in enumerate(engine.query.names)
        if counted[s]
    }


@cache
def _octave_starts(granularity: int) -> tuple[I64, I64]:
    """The buckets with which octaves begin, and these; a bucket ends at its largest delay."""
    octave = octaves(np.arange(BUCKETS) * granularity)
    starts = np.flatnonzero(np.diff(octave, prepend=-1))
    return starts, octave[starts]


def _trimmed(counts: list[int]) -> list[int]:
    while counts and not counts[-1]:
        counts.pop()
    return counts


def _recent_results(engine: JoinEngine) -> tuple[float, float]:
    """Of the last P of result time: results that were found, and those that should have been.

    What load shedding leaves out is missing as much as what came too late.
    """
    seeker, known, clock = engine.controller, engine.statistics, engine.join.time
    if not isinstance(seeker, RecallSeeker) or known is None or clock == BEFORE:
        return 0.0, 0.0
    end = clock // known.every * known.every
    produced, lost = known.results.between(end - seeker.over, end)[:2].sum(axis=1).tolist()
    kept = 1.0 if engine.shedder is None else engine.shedder.kept
    return kept * produced, produced + lost


def _curve(engine: JoinEngine, known: Statistics) -> Sketch:
    """The recall that each K should give, and K: what the goal had to choose from."""
    goal, delays = engine.query.goal, known.delays
    explained = goal.model in _MODELS if isinstance(goal, Recall) else True
    if not explained or not any(delays.counts):
        return {}
    controller = engine.controller
    scale = controller.scale if isinstance(controller, RecallController) else 1.0
    slacks = _ladder(delays.finest, engine.model.largest)
    chosen = engine.reorder.slack
    modelled = np.array([engine.model.recall(slack) for slack in (*slacks, chosen)])
    recalls = (1.0 - scale * (1.0 - modelled)).clip(0.0, 1.0).round(6).tolist()
    points = [[slack, recall] for slack, recall in zip(slacks, recalls, strict=False)]
    return {"curve": points, "chosen": [chosen, recalls[-1]]}


def _ladder(step: int, largest: int) -> list[int]:
    """0, 1, 2, 3, 4, 6, 8, 12, ... steps, up to the first that is not below `largest`.

    >>> _ladder(10, 50)
    [0, 10, 20, 30, 40, 60]
    """
    n = next((n for n, rung in enumerate(_RUNGS) if rung * step >= largest), len(_RUNGS))
    return [rung * step for rung in _RUNGS[: n + 1]]


def _harvest(engine: JoinEngine) -> list[dict[str, Any]] | None:
    """Which share of the events of each direction looks at each basic window, newest first."""
    shedder, names = engine.shedder, engine.query.names
    if shedder is None or not isinstance(shedder.asked, Harvest):
        return None
    directions = []
    for i, order in enumerate(shedder.orders):
        windows = []
        for s in order:
            basic = [round(float(share), 4) for share in shedder.looked_at(i, s)]
            fraction = round(sum(basic) / len(basic), 4)
            windows.append({"stream": names[s], "fraction": fraction, "basic": basic})
        directions.append({"direction": names[i], "windows": windows})
    return directions


def told(query: AggregateQuery, results: pa.Table) -> list[dict[str, Any]]:
    """The last rows of a table of aggregates."""
    most = max(1, min(_MOST_TOLD, _MOST_VALUES // len(query.select)))
    last = results.slice(max(0, results.num_rows - most))
    begins, _ = time_in_units(flat(last.column("window_start")), query.unit)
    return [
        {
            "start": start,
            "end": start + query.length,
            "group": {name: _brief(row[name]) for name in query.group_columns},
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


def _brief(value: Any) -> Any:
    """Something that JSON can hold and that is not long."""
    if value is None or isinstance(value, bool | int | float):
        return _number(value)
    return str(value)[:_LONGEST]


def _number(value: float | None) -> float | None:
    """To eight digits; JSON knows no infinity."""
    if value is None or isinstance(value, int):
        return value
    return float(f"{value:.8g}") if math.isfinite(value) else None


# ---- of all shards


def merged(sketches: Sequence[Sketch]) -> Picture | None:
    """The picture that shards give together; None: nothing has come yet."""
    known = [one for one in sketches if one["now"] is not None]
    if not known:
        return None
    true = sum(one["true"] for one in known)
    waits = [one["slack"] + one["lead"] for one in known if one["slack"] is not None]
    harvests = [one for one in known if one.get("harvest")]
    rows = [row for one in known for row in one.get("told") or ()]
    return {
        "unit": known[0]["unit"],
        "now": max(one["now"] for one in known),
        "recall": round(sum(one["found"] for one in known) / true, 6) if true else None,
        "leads": _largest_leads(known),
        "latency": float(max(waits)) if waits else None,
        "delays": _added_delays(known),
        **_merged_curve(known),
        "harvest": min(harvests, key=lambda one: one["throttle"])["harvest"] if harvests else None,
        "told": rows[-_MOST_TOLD:] if any(one.get("told") is not None for one in known) else None,
    }


def _largest_leads(known: Sequence[Sketch]) -> dict[str, int]:
    names = dict.fromkeys(name for one in known for name in one["leads"])
    return {name: max(one["leads"].get(name, 0) for one in known) for name in names}


def _added_delays(known: Sequence[Sketch]) -> dict[str, dict[str, list[int]]]:
    names = dict.fromkeys(name for one in known for name in one["delays"])
    added = {}
    for name in names:
        counts = [one["delays"].get(name, ()) for one in known]
        total = [sum(column) for column in zip_longest(*counts, fillvalue=0)]
        added[name] = {"edges": EDGES[: len(total)], "counts": total}
    return added


def _merged_curve(known: Sequence[Sketch]) -> Picture:
    """What all shards together should give, by how many results each has; K is the largest one."""
    curves = [one for one in known if one.get("curve")]
    if not curves:
        return {"curve": None, "chosen": None}
    lead = max(one["lead"] for one in curves)
    chosen = max(one["chosen"][0] for one in curves)
    slacks = sorted({chosen, *(point[0] for one in curves for point in one["curve"])})
    weights = [one["true"] for one in curves]
    if not sum(weights):
        weights = [1.0] * len(curves)
    each = []
    for one in curves:
        points = sorted([*one["curve"], one["chosen"]])
        each.append(np.interp(slacks, *np.array(points, float).T))
    recalls = np.average(each, axis=0, weights=weights)
    curve = [
        [slack, round(float(recall), 6), float(slack + lead)]
        for slack, recall in zip(slacks, recalls, strict=True)
    ]
    return {"curve": curve, "chosen": curve[slacks.index(chosen)]}
