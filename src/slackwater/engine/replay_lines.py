"""Metrics lines of recorded streams, without Spark: what a query would report as they arrive.

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
from slackwater.engine.chart_part import charts
from slackwater.engine.commands import Command
from slackwater.engine.factory import engine_for
from slackwater.engine.load import LoadMeter
from slackwater.engine.output import Output
from slackwater.engine.replay import at_once, recorded
from slackwater.errors import DataError, QueryError
from slackwater.events.batch import Batch
from slackwater.metrics.progress import (
    BatchLine,
    ProgressLine,
    metrics_dict,
    query_dict,
    with_charts,
)
from slackwater.query.any_query import AnyQuery
from slackwater.query.units import Duration, TimeUnit, to_units

_STEPS = 200
_MOST_STEPS = 2_000
_SETTINGS = ("slack", "recall")  # of a command


def lines(
    query: AnyQuery,
    tables: Mapping[str, Any],
    arrival: str | None,
    every: Duration | None = None,
    *,
    name: str = "replay",
    commands: Callable[[], Iterable[Mapping[str, Any]]] | None = None,
    results: Callable[[pa.Table], None] | None = None,
) -> Iterator[ProgressLine]:
    """Feed recorded tables step by step, and report each step.

    The first line is that of the start, the last one that of the end; the one before it is that of
    the flush. Their times are those of arrival. The result does not depend on who reads the lines,
    nor on when: only `duration_ms` is measured.

    Parameters
    ----------
    query
        The query.
    tables, arrival
        See `JoinQuery.replay`.
    every
        How much arrives in a step; by default a two-hundredth of all. There are never more than
        2,000 steps.
    name
        The name of the query in the lines.
    commands
        Called before each step, for the commands since the last one: ``{"recall": 0.99}``,
        ``{"slack": "1 s"}``. Those that cannot be carried out are counted in `refused_commands`.
    results
        Gets the results of each step.

    Yields
    ------
    dict
        The lines, as plain data; docs/metrics.md lists what is in them.

    Raises
    ------
    DataError
        If the tables are not those of the query, or it needs arrivals and there are none.
    QueryError
        If `every` is not a duration of at least one unit.

    Examples
    --------
    >>> for line in lines(query, tables, "arrived", every="10 s"):  # doctest: +SKIP
    ...     print(line["batch"], line["metrics"]["recall"])
    """
    batch, _ = recorded(query, tables, arrival)
    if query.needs_arrival and arrival is None:
        msg = "a deadline is a time of arrival: arrival= must name a column, got None"
        raise DataError(msg)
    engine = engine_for(
        query, dict(zip(query.names, (t.schema for t in batch.tables), strict=True))
    )
    head = {"id": name, "run_id": name, "name": name}
    about = query_dict(query, control=commands is not None)
    yield {"event": "started", **head, "timestamp": None, "query": about}
    steps: Iterable[Batch | None] = [*_steps(query, batch, every), None]
    now: str | None = None
    for number, step in enumerate(steps):
        obeyed, refused = _obey(engine, commands() if commands and step is not None else ())
        begin = perf_counter()
        output = engine.flush() if step is None else _feed(engine, step)
        seconds = perf_counter() - begin
        if any(command.flush for command in obeyed):
            output.extend(engine.flush())
        made = output.table if results or engine.shows_results else None
        if results and made is not None:
            results(made)
        metrics = engine.metrics()
        now = now if step is None else _timestamp(step, query.unit) or now
        yield BatchLine(
            **head,
            batch=number,
            timestamp=now,
            rows=0 if step is None else len(step.stream),
            duration_ms=round(1000 * seconds, 3),
            balanced=metrics.is_balanced,
            metrics=with_charts(
                metrics_dict(metrics, engine.query, refused),
                charts(engine, made),
                [command.as_dict() for command in obeyed],
            ),
        ).as_dict()
    yield {"event": "terminated", **head, "exception": None}


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


def _timestamp(step: Batch, unit: TimeUnit) -> str | None:
    """When the last row of a step arrived, as Spark writes times; numbers count from 1970."""
    if step.arrival is None or not len(step.arrival):
        return None
    seconds = int(step.arrival[-1]) / to_units("1 s", unit)
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):  # beyond the calendar
        return None


def _feed(engine: AnyEngine, step: Batch) -> Output:
    output = Output(engine.shape)
    for part in at_once(step, engine):
        with LoadMeter(engine):
            output.extend(engine.feed(part))
    return output


def _obey(engine: AnyEngine, commands: Iterable[Mapping[str, Any]]) -> tuple[list[Command], int]:
    """Carry out the commands that can be; return those, and how many were refused."""
    obeyed, refused = [], 0
    for given in commands:
        settings = {name: given[name] for name in _SETTINGS if name in given}
        others = {name: value for name, value in given.items() if name not in _SETTINGS}
        try:
            command = Command.read({"set": settings} | others, engine.query)
        except DataError:
            refused += 1
            continue
        command.obey(engine)
        obeyed.append(command)
    return obeyed, refused
