"""Metrics lines of recorded streams, without Spark: what a query would tell while they arrive.

The lines are those that `spark.listener` writes, one for each step of arrival instead of each
micro-batch. Between two steps the query takes commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.engine.base import AnyEngine
from slackwater.engine.checks import REASONS
from slackwater.engine.commands import Command
from slackwater.engine.join import JoinEngine
from slackwater.engine.load import LoadMeter
from slackwater.engine.output import Output
from slackwater.engine.replay import at_once, recorded
from slackwater.engine.snapshot import engine_for
from slackwater.errors import DataError, QueryError
from slackwater.events.batch import Batch
from slackwater.metrics.counters import Metrics, StreamMetrics
from slackwater.metrics.picture import picture
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.goals import Recall, goal_to_dict
from slackwater.query.join import JoinQuery
from slackwater.query.units import Duration, TimeUnit, to_units
from slackwater.query.window import AnyQuery, WindowQuery

Line = dict[str, Any]

_STEPS = 200
_MOST_STEPS = 2_000
_COUNTS = ("arrivals", "in_order", "late_kept", "late_dropped", "buffered", "shed")
_SETTINGS = ("slack", "recall")


def lines(
    query: AnyQuery,
    tables: Mapping[str, Any],
    arrival: str | None,
    every: Duration | None = None,
    *,
    name: str = "replay",
    commands: Callable[[], Iterable[Mapping[str, Any]]] | None = None,
    results: Callable[[pa.Table], None] | None = None,
) -> Iterator[Line]:
    """Feed recorded tables step by step, and tell about each step.

    The first line is that of the start, the last one that of the end; the one before it is that of
    the flush. Their times are those of arrival. What is done does not depend on who reads, nor on
    when: only `duration_ms` is measured.

    Parameters
    ----------
    query
        What was asked.
    tables, arrival
        See `JoinQuery.replay`.
    every
        How much arrives in a step; by default a two-hundredth of all. There are never more than
        2,000 steps.
    name
        What the query is called in the lines.
    commands
        Asked before each step what has been commanded: ``{"recall": 0.99}``, ``{"slack": "1 s"}``.
        What cannot be obeyed is counted in `refused_commands`.
    results
        Gets the results of each step.
    """
    batch, _ = recorded(query, tables, arrival)
    if isinstance(query, AggregateQuery) and arrival is None:
        msg = "a deadline is a time of arrival: arrival= must name a column, got None"
        raise DataError(msg)
    engine = engine_for(
        query, dict(zip(query.names, (t.schema for t in batch.tables), strict=True))
    )
    head = {"id": name, "run_id": name, "name": name}
    yield {"event": "started", **head, "timestamp": None, "query": asked(query, bool(commands))}
    steps: Iterable[Batch | None] = [*_steps(query, batch, every), None]
    now: str | None = None
    for number, step in enumerate(steps):
        obeyed, refused = _obey(engine, commands() if commands and step is not None else ())
        begin = perf_counter()
        output = engine.flush() if step is None else _fed(engine, step)
        seconds = perf_counter() - begin
        if any(command.flush for command in obeyed):
            output.extend(engine.flush())
        made = output.table if results or isinstance(query, AggregateQuery) else None
        if results and made is not None:
            results(made)
        metrics = engine.metrics()
        now = now if step is None else _written(step, query.unit) or now
        yield {
            "event": "batch",
            **head,
            "batch": number,
            "timestamp": now,
            "rows": 0 if step is None else len(step.stream),
            "duration_ms": round(1000 * seconds, 3),
            "balanced": metrics.is_balanced,
            "metrics": told(metrics, engine.query, refused)
            | {
                "picture": picture(engine, made),
                "commands": [command.as_dict() for command in obeyed],
            },
        }
    yield {"event": "terminated", **head, "exception": None}


def asked(query: AnyQuery, control: bool = False) -> dict[str, Any]:
    """What a dashboard has to know of a query; `control`: whether it takes commands."""
    kinds = {JoinQuery: "join", WindowQuery: "window", AggregateQuery: "aggregate"}
    return {
        "sql": str(query),
        "unit": query.unit,
        "streams": list(query.names),
        "goal": goal_to_dict(query.goal),
        "kind": kinds[type(query)],
        "control": control,
    }


def told(metrics: Metrics, query: AnyQuery, refused_commands: int = 0) -> dict[str, Any]:
    """The metrics of an engine that is alone, under the names that Spark observes them by."""
    goal, shed = query.goal, metrics.shedding
    missed = 0 if shed is None else shed.missed
    true = metrics.produced + metrics.lost + missed
    throttle = 1.0 if shed is None else shed.throttle
    has_recall = isinstance(query, JoinQuery) and true > 0
    return {
        **{name: getattr(metrics, name) for name in _COUNTS},
        "behind": 0,
        "rejected": _rejected(metrics.rejected),
        "shards": 1,
        "produced": metrics.produced,
        "lost": metrics.lost,
        "lost_unknown": metrics.lost_unknown,
        "slack": metrics.slack,
        "max_delay": metrics.max_delay,
        "max_lateness": metrics.max_lateness,
        "stored": metrics.stored,
        "copies": 0,
        "state_bytes": 0,  # nothing is saved
        "restored": 0,
        "refused_commands": refused_commands,
        "target": goal.target if isinstance(goal, Recall) else None,
        "missed": missed,
        "missed_error": 0.0 if shed is None else shed.missed_error,
        "evicted": 0 if shed is None else shed.evicted,
        "backlog": 0 if shed is None else round(shed.backlog),
        "throttle": throttle,
        "recall": metrics.produced / true if has_recall else None,
        "throttles": [throttle],
        "streams": {name: _stream(stream) for name, stream in metrics.streams.items()},
    }


def _stream(stream: StreamMetrics) -> dict[str, Any]:
    return {
        **{name: getattr(stream, name) for name in _COUNTS},
        "behind": 0,
        "rejected": _rejected(stream.rejected),
        "local_time": stream.local_time,
        "state": stream.state,
    }


def _rejected(counts: Mapping[str, int]) -> dict[str, int]:
    return {reason.replace(" ", "_"): counts.get(reason, 0) for reason in REASONS[1:]}


def _steps(query: AnyQuery, batch: Batch, every: Duration | None) -> Iterator[Batch]:
    """What arrives in each step."""
    assert batch.arrival is not None
    if not len(batch.arrival):
        return iter(())
    begin, end = int(batch.arrival[0]), int(batch.arrival[-1])
    span = end - begin + 1
    step = -(-span // _STEPS) if every is None else to_units(every, query.unit, "every")
    if step < 1:
        msg = f"every must be at least 1 {query.unit}, got {every!r}"
        raise QueryError(msg)
    step = max(step, -(-span // _MOST_STEPS))
    ends = np.arange(begin + step, end + step + 1, step)
    return batch.cut(np.searchsorted(batch.arrival, ends).tolist())


def _written(step: Batch, unit: TimeUnit) -> str | None:
    """When the last of a step arrived, as Spark writes times; numbers count from 1970."""
    if step.arrival is None or not len(step.arrival):
        return None
    seconds = int(step.arrival[-1]) / to_units("1 s", unit)
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):  # beyond the calendar
        return None


def _fed(engine: AnyEngine, step: Batch) -> Output:
    output = Output(engine.shape)
    for part in at_once(step, engine) if isinstance(engine, JoinEngine) else [step]:
        with LoadMeter(engine):
            output.extend(engine.feed(part))
    return output


def _obey(engine: AnyEngine, commands: Iterable[Mapping[str, Any]]) -> tuple[list[Command], int]:
    """Obey what can be obeyed; return that, and how many commands were refused."""
    obeyed, refused = [], 0
    for said in commands:
        settings = {name: said[name] for name in _SETTINGS if name in said}
        others = {name: value for name, value in said.items() if name not in _SETTINGS}
        try:
            command = Command.read({"set": settings} | others, engine.query)
        except DataError:
            refused += 1
            continue
        command.obey(engine)
        obeyed.append(command)
    return obeyed, refused
