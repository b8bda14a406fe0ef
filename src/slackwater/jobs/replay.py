"""Replay a recording in this process, and measure the results against the truth."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.engine.replay import Run
from slackwater.engine.replay_lines import lines
from slackwater.engine.report import average_slack
from slackwater.errors import DataError
from slackwater.jobs.advise import recall_of
from slackwater.jobs.goal import goal_of
from slackwater.jobs.job import Sink
from slackwater.jobs.measurement import Measurement
from slackwater.jobs.recordings import Recording
from slackwater.jobs.sink_files import columns_of
from slackwater.jobs.toml_table import Table
from slackwater.jobs.verify import compare, marks_of
from slackwater.jobs.waits_tried import fitting_period
from slackwater.metrics.counters import Metrics
from slackwater.metrics.progress import ProgressLine
from slackwater.query.any_query import AnyQuery
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery
from slackwater.query.units import Duration, to_units
from slackwater.testing.oracle import EMBEDDED, exact

_STEP_S = 0.5  # between two progress lines, at a given speed


class ReplayResult(NamedTuple):
    """The results of a replay, and their measurements."""

    results: pa.Table
    measurements: list[Measurement]
    oracle: str  # what computed the truth


def with_goal(recording: Recording, goal: Any) -> Recording:
    """Return the recording under another goal, which is given as in a job file."""
    query = recording.query
    table = Table("the command line:", {"goal": goal})
    made = goal_of(table, query.unit, query.goal)
    return recording._replace(query=table.checked(lambda: replace(query, goal=made)))


def replay(recording: Recording) -> Any:
    """Replay a recording; the run has `results` and `metrics`."""
    query: Any = recording.query  # raises by itself if it needs an arrival column
    return query.replay(recording.tables, recording.arrival)


# ---- against the truth


def measure(recording: Recording, run: Any, over: Duration | None) -> ReplayResult:
    """Measure a run; `over` is the period of recall, by default that of the goal."""
    measured, oracle = _against_truth(recording.query, recording, run, over)
    return ReplayResult(run.results, [*measured, *_accounting(run.metrics)], oracle)


@singledispatch
def _against_truth(
    query: AnyQuery, recording: Recording, run: Any, over: Duration | None
) -> tuple[list[Measurement], str]:
    """Compare windows with the exact ones, as `verify` does."""
    return _compared(query, recording, run)


def _compared(query: AnyQuery, recording: Recording, run: Any) -> tuple[list[Measurement], str]:
    true = exact(query, recording.tables)
    columns = columns_of(Sink("parquet", None, {}, (), ()), true.table, marks_of(query))
    return compare(query, true, columns, run.results).measurements, true.oracle


@_against_truth.register
def _(
    query: JoinQuery, recording: Recording, run: Run, over: Duration | None
) -> tuple[list[Measurement], str]:
    """Measure recall, K and latency against the full join."""
    slacks = run.output.slacks
    span = run.output.top - slacks[0][0] if slacks else 0
    gamma, own = recall_of(query.goal)
    period = over or own or fitting_period(span, query.unit)
    if query.how != "inner":
        return _of_kind(query, recording, run, period)
    report = run.report(gamma, period)
    measured = [
        Measurement("results", report.produced, "results"),
        Measurement("true results", report.true, "results"),
        Measurement("recall", round(report.recall, 6), "share"),
    ]
    if report.measurements.num_rows:
        measured.append(Measurement(f"Φ({gamma:g}) over {period}", round(report.phi, 6), "share"))
    if report.precision is not None and report.precision < 1:
        measured.append(Measurement("precision", round(report.precision, 6), "share"))
    measured += [
        Measurement(_name_of_slack(query), round(report.average_slack, 3), query.unit),
        Measurement("average latency", round(report.average_latency, 3), query.unit),
        Measurement("95 % latency", round(report.latency_95, 3), query.unit),
    ]
    if report.average_wait is not None:
        measured.append(Measurement("average wait", round(report.average_wait, 3), query.unit))
    measured.append(Measurement("results lost", run.metrics.lost, "results"))
    if run.metrics.lost_unknown:
        unknown = Measurement("events of unknown loss", run.metrics.lost_unknown, "events")
        measured.append(unknown)
        estimate = Measurement("results lost, estimated", run.metrics.lost_estimated, "results")
        measured.append(estimate)
    return measured, EMBEDDED


def _of_kind(
    query: JoinQuery, recording: Recording, run: Run, period: Duration
) -> tuple[list[Measurement], str]:
    """Measure rows without partner, as-of rows and corrections as `verify` does, and the waits."""
    if isinstance(query.goal, Recall):
        query = replace(query, goal=replace(query.goal, over=period))
    measured, oracle = _compared(query, recording, run)
    slacks, unit = run.output.slacks, query.unit
    begin = slacks[0][0] + to_units(period, unit) if slacks else 0
    slack = average_slack(slacks, begin, run.output.top)
    measured.append(Measurement(_name_of_slack(query), round(slack, 3), unit))
    if run.has_arrival and run.output.waits:
        wait = float(np.concatenate(run.output.waits).mean())
        measured.append(Measurement("average wait", round(wait, 3), unit))
    if run.metrics.lost_unknown:
        unknown = Measurement("events of unknown loss", run.metrics.lost_unknown, "events")
        measured.append(unknown)
    return measured, oracle


def _name_of_slack(query: JoinQuery) -> str:
    """K is how long rows wait; where none does, how long events are kept."""
    waits = query.emit == "ordered" or any(query.preserved)
    return "average K" if waits else "average time that events are kept"


def _accounting(metrics: Metrics) -> list[Measurement]:
    """Count rows by their fate; every row has exactly one."""
    fates = {
        "in order": metrics.in_order,
        "late, kept": metrics.late_kept,
        "late, dropped": metrics.late_dropped,
        "waiting": metrics.buffered,
        "shed": metrics.shed,
    }
    counts = [Measurement("rows in", metrics.arrivals, "rows")]
    counts += [Measurement(f"  {name}", n, "rows") for name, n in fates.items()]
    counts += [Measurement(f"  rejected: {why}", n, "rows") for why, n in metrics.rejected.items()]
    total = sum(fates.values()) + sum(metrics.rejected.values())
    rest = metrics.arrivals - total
    return [*counts, Measurement("rows without a fate", rest, "rows", ceiling=0)]


# ---- step by step, for a page or a log


def progress_lines(
    recording: Recording,
    speed: float | None,
    commands: Callable[[], list[dict[str, Any]]] | None = None,
) -> Iterator[ProgressLine]:
    """Replay a recording and yield its progress lines.

    Parameters
    ----------
    recording
        The recording.
    speed
        How many times as fast as it arrived; None means without pauses.
    commands
        Returns the commands that came since the last line.
    """
    every = None if speed is None else f"{round(1000 * _STEP_S * speed)} ms"
    found = lines(
        recording.query,
        recording.tables,
        recording.arrival,
        every,
        name=recording.title,
        commands=commands,
    )
    return found if speed is None else _paced(found)


def _paced(found: Iterator[ProgressLine]) -> Iterator[ProgressLine]:
    """Yield a line each half second, or more slowly if the replay is slower."""
    pause, due = Event(), perf_counter()
    for line in found:
        due += _STEP_S
        yield line
        pause.wait(max(0.0, due - perf_counter()))


@contextmanager
def metrics_log(path: Path) -> Iterator[Callable[[ProgressLine], None]]:
    """Open a metrics log, and yield the function that writes a line to it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        msg = f"the metrics cannot be written to {path}: {error.strerror}"
        raise DataError(msg) from error
    with file:

        def write(line: ProgressLine) -> None:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()

        yield write
