"""Metrics lines: what a query reports of each micro-batch, as plain data.

`spark.listener` writes them for a query on Spark, `engine.replay_lines` for recorded streams. What
is in them is the table of `metrics.schema`.

>>> counts = {"in_order": 7, "late_kept": 1, "late_dropped": 1, "buffered": 1, "shed": 0}
>>> counts |= {"arrivals": 12, "rejected": {"bad_time": 2, "null_key": 0}, "streams": {}}
>>> is_balanced(counts)
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from slackwater.metrics.counters import (
    REASONS,
    Metrics,
    SheddingMetrics,
    StreamSurroundings,
    Surroundings,
)
from slackwater.metrics.schema import (
    ARRIVALS,
    CHARTS,
    DERIVED,
    FATES,
    MEASURED,
    QUERY,
    STREAM,
    TOTALS,
    Each,
    Fold,
    Scope,
    Share,
)
from slackwater.query import join_kinds
from slackwater.query.goals import Goal, Recall, goal_to_dict
from slackwater.query.join import JoinQuery

if TYPE_CHECKING:
    from slackwater.metrics.charts import Charts
    from slackwater.query.any_query import AnyQuery

ProgressLine = dict[str, Any]

REASON_KEYS = tuple(reason.replace(" ", "_") for reason in REASONS)
"""The keys of `rejected`."""

_SHEDS_NOTHING = SheddingMetrics()
_MEASURED = [metric.name for metric in MEASURED]
_TIMES = [metric.name for metric in MEASURED if metric.unit == "time"]
_OF_STREAM = [metric.name for metric in STREAM]
_BY_REASON = [metric.name for metric in STREAM if metric.unit == "reasons"]
_COUNTS = [metric.name for metric in TOTALS if metric.unit != "reasons"]
_IN_METRICS: dict[Scope, set[str]] = {
    "query": {metric.name for metric in (*TOTALS, *QUERY)},
    "charts": {metric.name for metric in CHARTS},
}


class MetricsView:
    """The metrics of a line by attribute; None for what the line does not have.

    >>> view = MetricsView({"late_kept": 2, "charts": {"recall": 0.9}})
    >>> view.late_kept, view.recall, view.charts.recall
    (2, None, 0.9)
    >>> view.late_keept
    Traceback (most recent call last):
    AttributeError: there is no metric 'late_keept'
    """

    def __init__(self, metrics: Mapping[str, Any] | None, scope: Scope = "query") -> None:
        self._metrics = metrics or {}
        self._scope = scope

    @property
    def charts(self) -> MetricsView:
        """The same of `charts`."""
        return MetricsView(self._metrics.get("charts"), "charts")

    def __getattr__(self, name: str) -> Any:
        if name not in _IN_METRICS[self._scope]:
            msg = f"there is no metric {name!r}"
            raise AttributeError(msg)
        return self._metrics.get(name)


def query_dict(query: AnyQuery, control: bool = False) -> dict[str, Any]:
    """What a reader of metrics lines has to know of a query.

    Parameters
    ----------
    query
        The query.
    control
        Whether it takes commands.

    Returns
    -------
    dict
        Plain data: `sql`, `unit`, `streams`, `goal`, `kind`, `control`.
    """
    return {
        "sql": str(query),
        "unit": query.unit,
        "streams": list(query.names),
        "goal": goal_to_dict(query.goal),
        "kind": query.kind,
        "control": control,
    }


class BatchLine(NamedTuple):
    """The line of a micro-batch, or of a step of a replay."""

    id: str
    run_id: str
    name: str | None
    batch: int
    timestamp: str | None
    rows: int
    duration_ms: float
    balanced: bool | None  # None: there are no metrics
    metrics: dict[str, Any] | None

    def as_dict(self) -> ProgressLine:
        """The line as plain data."""
        return {"event": "batch", **self._asdict()}


def metrics_dict(metrics: Metrics, query: AnyQuery, refused_commands: int = 0) -> dict[str, Any]:
    """The metrics of an engine that is alone, under the names that Spark observes them by.

    Parameters
    ----------
    metrics
        What the engine has counted.
    query
        Its query, with the goal of now.
    refused_commands
        How many commands of this step were refused.

    Returns
    -------
    dict
        Plain data; docs/metrics.md lists it.
    """
    around = Surroundings(
        recall_target(query.goal), right_target(query), refused_commands=refused_commands
    )
    own = query_values(metrics, around)
    streams = stream_values(metrics, around)
    totals = {name: sum(stream[name] for stream in streams) for name in _COUNTS}
    totals |= {name: _added([stream[name] for stream in streams]) for name in _BY_REASON}
    derived = {metric.name: _derived(metric.fold, own, query.has_recall) for metric in DERIVED}
    return totals | own | derived | {"streams": dict(zip(metrics.streams, streams, strict=True))}


def recall_target(goal: Goal) -> float | None:
    """The recall that is requested; None with other goals."""
    return goal.target if isinstance(goal, Recall) else None


def right_target(query: AnyQuery) -> float | None:
    """The share of decided rows that is to be right; None if there are none, or no such goal."""
    return join_kinds.right_target(query) if isinstance(query, JoinQuery) else None


def with_charts(
    metrics: dict[str, Any], charts: Charts | None, commands: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The metrics of a line with its charts, and the commands that the query carried out."""
    return metrics | {"charts": None if charts is None else charts._asdict(), "commands": commands}


def is_balanced(metrics: Mapping[str, Any]) -> bool:
    """Whether each arrival has exactly one fate, over all and in each stream."""
    fates = [metrics[fate.name] for fate in FATES]
    counted = sum(sum(n.values()) if isinstance(n, Mapping) else n for n in fates)
    streams = metrics.get("streams", {}).values()
    return bool(metrics[ARRIVALS.name] == counted) and all(map(is_balanced, streams))


# ---- values, by the table


def query_values(metrics: Metrics, surroundings: Surroundings) -> dict[str, Any]:
    """The metrics that one shard has measured, without those that are counted by stream."""
    shedding = _SHEDS_NOTHING if metrics.shedding is None else metrics.shedding
    known = vars(surroundings) | vars(shedding) | vars(metrics)
    values = {name: known[name] for name in _MEASURED}
    times = {name: values[name] for name in _TIMES}
    return values | {n: None if time is None else round(time) for n, time in times.items()}


def stream_values(metrics: Metrics, surroundings: Surroundings) -> list[dict[str, Any]]:
    """The metrics of each stream."""
    around = surroundings.streams or [StreamSurroundings()] * len(metrics.streams)
    found = []
    for stream, of_stream in zip(metrics.streams.values(), around, strict=True):
        known = vars(stream) | vars(of_stream)
        values = {name: known[name] for name in _OF_STREAM}
        found.append(values | {name: _all_reasons(values[name]) for name in _BY_REASON})
    return found


def _all_reasons(counts: Mapping[str, int]) -> dict[str, int]:
    return {key: counts.get(reason, 0) for key, reason in zip(REASON_KEYS, REASONS, strict=True)}


def _added(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {key: sum(own[key] for own in counts) for key in REASON_KEYS}


def _derived(fold: Fold, own: Mapping[str, Any], has_recall: bool) -> Any:
    """What follows from the metrics of the only shard."""
    if isinstance(fold, Each):
        return [own[fold.name]]
    assert isinstance(fold, Share)
    total = sum(own[name] for name in fold.of)
    if total == 0 or (fold.needs_recall and not has_recall):
        return None
    less = 0 if fold.less is None else own[fold.less]
    return max(0, own[fold.part] - less) / total
