"""Metrics lines as Prometheus reads them: the text exposition format, version 0.0.4.

The families are those of the table in `metrics.schema` that have a name for Prometheus.

>>> line = {"batch": 3, "rows": 10, "duration_ms": 250, "balanced": None, "metrics": None}
>>> print(exposition({"matches": line}).splitlines()[-1])
slackwater_batch_duration_seconds{query="matches"} 0.25
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from slackwater.metrics.counters import STATES
from slackwater.metrics.schema import METRICS, Metric
from slackwater.query.units import PER_SECOND
from slackwater.stats.recent import EDGES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Line = Mapping[str, Any]
Labels = dict[str, str]
Sample = tuple[str, Labels, float]  # what is added to the name, labels, value
Values = Iterator[tuple[Labels, Any]]  # value None: not known


class Family(NamedTuple):
    """A metric in Prometheus: its name, kind and meaning, and how it is read from a line."""

    name: str
    kind: str
    help: str
    samples: Callable[[Line], Iterator[Sample]]


def exposition(lines_by_query: Mapping[str, Line]) -> str:
    """The latest line of each query as one text.

    Parameters
    ----------
    lines_by_query
        The latest metrics line of each query, by its name.

    Returns
    -------
    str
        The text, to be served as `CONTENT_TYPE`; what is not known is left out.

    Examples
    --------
    >>> exposition({"matches": {"batch": 3}}).splitlines()[-1]
    'slackwater_batch{query="matches"} 3'
    """
    text = []
    for family in FAMILIES:
        samples = [
            f"{family.name}{more}{_labels({'query': query} | labels)} {_number(value)}\n"
            for query, line in lines_by_query.items()
            for more, labels, value in family.samples(line)
        ]
        if samples:
            text.append(f"# HELP {family.name} {family.help}\n")
            text.append(f"# TYPE {family.name} {family.kind}\n")
            text += samples
    return "".join(text)


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if value == int(value) else repr(value)


# ---- where the values are


def _metrics(line: Line) -> Mapping[str, Any]:
    return line.get("metrics") or {}


def _charts(line: Line) -> Mapping[str, Any]:
    return _metrics(line).get("charts") or {}


def _per_second(line: Line) -> int:
    """How many units of time a second has."""
    return PER_SECOND[_charts(line).get("unit", "ms")]


def _values(metric: Metric, line: Line) -> Values:
    """The values of a metric in a line, with the stream as label where there is one for each."""
    if metric.scope == "stream":
        for stream, values in _metrics(line).get("streams", {}).items():
            yield {"stream": stream}, values.get(metric.name)
    elif metric.unit in ("times", "histogram"):
        for stream, value in _charts(line).get(metric.name, {}).items():
            yield {"stream": stream}, value
    else:
        places = {"line": line, "query": _metrics(line), "charts": _charts(line)}
        yield {}, places[metric.scope].get(metric.name)


# ---- how they are written


def _samples(metric: Metric) -> Callable[[Line], Iterator[Sample]]:
    written = _WRITTEN.get(metric.unit, _as_it_is)

    def samples(line: Line) -> Iterator[Sample]:
        for labels, value in _values(metric, line):
            if value is not None:
                for more, own, number in written(value, line):
                    yield more, labels | own, number

    return samples


def _as_it_is(value: Any, line: Line) -> Iterator[Sample]:  # noqa: ARG001
    yield "", {}, value


def _time(value: Any, line: Line) -> Iterator[Sample]:
    yield "", {}, value / _per_second(line)


def _milliseconds(value: Any, line: Line) -> Iterator[Sample]:  # noqa: ARG001
    yield "", {}, value / 1_000


def _flag(value: Any, line: Line) -> Iterator[Sample]:  # noqa: ARG001
    yield "", {}, int(value)


def _state(value: Any, line: Line) -> Iterator[Sample]:  # noqa: ARG001
    """1 for the state that a stream is in, 0 for the others."""
    for state in STATES:
        yield "", {"state": state}, int(value == state)


def _reasons(value: Any, line: Line) -> Iterator[Sample]:  # noqa: ARG001
    for reason, n in value.items():
        yield "", {"reason": reason}, n


def _histogram(value: Any, line: Line) -> Iterator[Sample]:
    """Cumulative buckets, always the same ones.

    Delays are whole numbers: a bucket ends just before the next begins. The sum is not counted; it
    is what it would be if delays were in the middle of their buckets.
    """
    per_second, counts = _per_second(line), value["counts"]
    ends = [edge - 1 for edge in EDGES[1:]]
    cumulative = [*accumulate(counts), *[sum(counts)] * (len(EDGES) - len(counts))]
    for end, n in zip(ends, cumulative, strict=False):
        yield "_bucket", {"le": _number(end / per_second)}, n
    total = sum(1.5 * edge * n for edge, n in zip(EDGES, counts, strict=False))
    yield "_bucket", {"le": "+Inf"}, cumulative[-1]
    yield "_sum", {}, total / per_second
    yield "_count", {}, cumulative[-1]


_WRITTEN = {
    "time": _time,
    "times": _time,
    "milliseconds": _milliseconds,
    "flag": _flag,
    "state": _state,
    "reasons": _reasons,
    "histogram": _histogram,
}  # by unit


def kind_of(metric: Metric) -> str:
    """Counter, gauge or histogram."""
    if metric.unit == "histogram":
        return metric.unit
    return "counter" if str(metric.prometheus).endswith("_total") else "gauge"


FAMILIES = tuple(
    Family(f"slackwater_{metric.prometheus}", kind_of(metric), metric.help, _samples(metric))
    for metric in METRICS
    if metric.prometheus is not None
)
