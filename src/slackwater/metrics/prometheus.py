"""Metrics lines as Prometheus reads them: the text exposition format, version 0.0.4.

>>> line = {"batch": 3, "rows": 10, "duration_ms": 250, "balanced": None, "metrics": None}
>>> print(exposition({"matches": line}).splitlines()[-1])
slackwater_batch_duration_seconds{query="matches"} 0.25
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from slackwater.query.units import PER_SECOND
from slackwater.stats.recent import EDGES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Line = Mapping[str, Any]
Sample = tuple[str, dict[str, str], float]  # what is added to the name, labels, value
Numbers = Iterator[tuple[dict[str, str], Any]]  # labels, value; None: not known

_STATES = ("active", "slow", "idle", "finished")


class Family(NamedTuple):
    """A metric: its name, kind and meaning, and how it is read from a line."""

    name: str
    kind: str
    about: str
    samples: Callable[[Line], Iterator[Sample]]


def exposition(lines_by_query: Mapping[str, Line]) -> str:
    """The latest line of each query, by its name, as one text."""
    told = []
    for family in FAMILIES:
        samples = [
            f"{family.name}{more}{_labels({'query': query} | labels)} {_number(value)}\n"
            for query, line in lines_by_query.items()
            for more, labels, value in family.samples(line)
        ]
        if samples:
            told.append(f"# HELP {family.name} {family.about}\n")
            told.append(f"# TYPE {family.name} {family.kind}\n")
            told += samples
    return "".join(told)


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if value == int(value) else repr(value)


# ---- where the figures are


def _metrics(line: Line) -> Mapping[str, Any]:
    return line.get("metrics") or {}


def _picture(line: Line) -> Mapping[str, Any]:
    return _metrics(line).get("picture") or {}


def _per_second(line: Line) -> int:
    """How many units of time a second has."""
    return PER_SECOND[_picture(line).get("unit", "ms")]


def _known(numbers: Callable[[Line], Numbers]) -> Callable[[Line], Iterator[Sample]]:
    def samples(line: Line) -> Iterator[Sample]:
        for labels, value in numbers(line):
            if value is not None:
                yield "", labels, value

    return samples


def _of_query(place: Callable[[Line], Mapping[str, Any]], name: str) -> Callable[[Line], Numbers]:
    def numbers(line: Line) -> Numbers:
        yield {}, place(line).get(name)

    return numbers


def _of_streams(name: str) -> Callable[[Line], Numbers]:
    def numbers(line: Line) -> Numbers:
        for stream, told in _metrics(line).get("streams", {}).items():
            yield {"stream": stream}, told.get(name)

    return numbers


def _in_seconds(numbers: Callable[[Line], Numbers]) -> Callable[[Line], Numbers]:
    def seconds(line: Line) -> Numbers:
        for labels, value in numbers(line):
            yield labels, None if value is None else value / _per_second(line)

    return seconds


def _rejected(line: Line) -> Numbers:
    for stream, told in _metrics(line).get("streams", {}).items():
        for reason, n in told.get("rejected", {}).items():
            yield {"stream": stream, "reason": reason}, n


def _states(line: Line) -> Numbers:
    for stream, told in _metrics(line).get("streams", {}).items():
        for state in _STATES:
            yield {"stream": stream, "state": state}, int(told.get("state") == state)


def _leads(line: Line) -> Numbers:
    for stream, lead in _picture(line).get("leads", {}).items():
        yield {"stream": stream}, lead


def _duration(line: Line) -> Numbers:
    duration = line.get("duration_ms")
    yield {}, None if duration is None else duration / 1_000


def _balanced(line: Line) -> Numbers:
    balanced = line.get("balanced")
    yield {}, None if balanced is None else int(balanced)


def _delays(line: Line) -> Iterator[Sample]:
    """Cumulative buckets, always the same ones.

    Delays are whole numbers: a bucket ends just before the next begins. The sum is not counted; it
    is what it would be if delays were in the middle of their buckets.
    """
    per_second = _per_second(line)
    ends = [edge - 1 for edge in EDGES[1:]]
    for stream, told in _picture(line).get("delays", {}).items():
        labels, counts = {"stream": stream}, told["counts"]
        cumulative = [*accumulate(counts), *[sum(counts)] * (len(EDGES) - len(counts))]
        for end, seen in zip(ends, cumulative, strict=False):
            yield "_bucket", labels | {"le": _number(end / per_second)}, seen
        total = sum(1.5 * edge * n for edge, n in zip(EDGES, counts, strict=False))
        yield "_bucket", labels | {"le": "+Inf"}, cumulative[-1]
        yield "_sum", labels, total / per_second
        yield "_count", labels, cumulative[-1]


def _counter(name: str, about: str, numbers: Callable[[Line], Numbers]) -> Family:
    return Family(f"slackwater_{name}_total", "counter", about, _known(numbers))


def _gauge(name: str, about: str, numbers: Callable[[Line], Numbers]) -> Family:
    return Family(f"slackwater_{name}", "gauge", about, _known(numbers))


def _line(name: str) -> Callable[[Line], Numbers]:
    return _of_query(lambda line: line, name)


def _metric(name: str) -> Callable[[Line], Numbers]:
    return _of_query(_metrics, name)


def _drawn(name: str) -> Callable[[Line], Numbers]:
    return _of_query(_picture, name)


FAMILIES = (
    # events: each arrival has exactly one of the fates that follow
    _counter("arrivals", "Rows that came in.", _of_streams("arrivals")),
    _counter("in_order", "Events that went through in time.", _of_streams("in_order")),
    _counter("late_kept", "Late events that were stored.", _of_streams("late_kept")),
    _counter("late_dropped", "Late events that were dropped.", _of_streams("late_dropped")),
    _gauge("buffered", "Events that wait for others.", _of_streams("buffered")),
    _counter("shed", "Events that were not let in for lack of CPU.", _of_streams("shed")),
    _counter("rejected", "Rows that could not take part, by reason.", _rejected),
    _gauge("balanced", "1 if each arrival has exactly one fate.", _balanced),
    _counter("behind", "Rows whose arrival had passed already.", _of_streams("behind")),
    # results
    _counter("results", "Results in time.", _metric("produced")),
    _counter("results_lost", "Results that late events cost.", _metric("lost")),
    _counter("lost_unknown", "Late events whose loss is a lower bound.", _metric("lost_unknown")),
    _gauge("results_missed", "Results left out by load shedding, estimated.", _metric("missed")),
    _gauge("results_missed_error", "Two standard errors of that.", _metric("missed_error")),
    _gauge("recall_ratio", "Recall since the first start.", _metric("recall")),
    _gauge("recall_recent_ratio", "Recall over the period of the goal.", _drawn("recall")),
    _gauge("recall_target_ratio", "Recall that is asked for.", _metric("target")),
    # time
    _gauge("slack_seconds", "K.", _in_seconds(_metric("slack"))),
    _gauge("latency_seconds", "Expected latency of a result.", _in_seconds(_drawn("latency"))),
    _gauge("max_delay_seconds", "Largest delay so far.", _in_seconds(_metric("max_delay"))),
    _gauge(
        "max_lateness_seconds", "Largest lateness so far.", _in_seconds(_metric("max_lateness"))
    ),
    _gauge("lead_seconds", "Lead over the slowest stream.", _in_seconds(_leads)),
    _gauge(
        "local_time_seconds",
        "Largest event time that a stream has delivered.",
        _in_seconds(_of_streams("local_time")),
    ),
    _gauge("stream_state", "1 for the state that a stream is in.", _states),
    Family(
        "slackwater_delay_seconds",
        "histogram",
        "Delays of the recent past, so counts also fall; the sum is an estimate.",
        _delays,
    ),
    # resources
    _gauge("stored", "Events in the windows.", _metric("stored")),
    _gauge("state_bytes", "Size of the state.", _metric("state_bytes")),
    _counter("copies", "Events copied to more than one shard.", _metric("copies")),
    _counter("evicted", "Events that left early for want of memory.", _metric("evicted")),
    _gauge("throttle_ratio", "Share of the work that the busiest shard does.", _metric("throttle")),
    _gauge("backlog_seconds", "Time that waiting work will take.", _in_seconds(_metric("backlog"))),
    _gauge("shards", "Shards that had work.", _metric("shards")),
    _gauge("restored_shards", "Shards from the checkpoint, in this batch.", _metric("restored")),
    _gauge(
        "refused_commands", "Files that were no commands, in this batch.",
        _metric("refused_commands"),
    ),
    # micro-batches
    _gauge("batch", "Number of the last micro-batch.", _line("batch")),
    _gauge("batch_rows", "Rows of the last micro-batch.", _line("rows")),
    _gauge("batch_duration_seconds", "Time it took.", _duration),
)  # fmt: skip
