"""``slackwater replay``: a query over recorded streams, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from slackwater.cli.console import (
    Arrival,
    Inputs,
    Json,
    On,
    Ts,
    Where,
    Window,
    bar,
    out,
    print_figures,
    print_json,
)
from slackwater.cli.dashboard_server import ShowDashboard
from slackwater.cli.goal_option import GoalText, RecallShort, SlackShort, asked

if TYPE_CHECKING:
    import pyarrow as pa

    from slackwater.engine.replay import Run
    from slackwater.jobs.measurement import Measurement
    from slackwater.jobs.recordings import Recording
    from slackwater.metrics.counters import Metrics
    from slackwater.query.units import Duration

_STEPS = ("reading the streams", "replaying them", "comparing with the truth", "writing")


class Replayed(NamedTuple):
    """What came of a replay."""

    results: pa.Table
    lines: list[Measurement]
    truth: str  # who computed it


def replay(
    inputs: Inputs,
    goal: GoalText = None,
    recall: RecallShort = None,
    slack: SlackShort = None,
    over: Annotated[
        str | None,
        typer.Option(help="Over which time recall is measured; that of the goal, or what fits."),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Write the results to this file: .parquet, .csv or .json (a line each)."
        ),
    ] = None,
    metrics: Annotated[
        Path | None, typer.Option(help="Write metrics lines to this file, for the dashboard.")
    ] = None,
    dashboard: ShowDashboard = False,
    speed: Annotated[
        float | None,
        typer.Option(
            min=0.001, help="For the page: so many times as fast as it arrived; else at once."
        ),
    ] = None,
    window: Window = None,
    on: On = None,
    where: Where = None,
    ts: Ts = "ts",
    arrival: Arrival = None,
    json: Json = False,
) -> None:
    """Run a query over recorded streams in this process, without Spark."""
    from slackwater.jobs.measurement import sheet
    from slackwater.jobs.recordings import recording_of
    from slackwater.jobs.result_file import check_suffix, write

    if target is not None:
        check_suffix(target)
    wanted = asked(goal, recall, slack)
    with bar("replay", quiet=json) as tell:
        tell(_STEPS[0], 0, len(_STEPS))
        recording = recording_of(inputs, ts, window, on, where, arrival)
        if wanted is not None:
            recording = _with_goal(recording, wanted)
        tell(_STEPS[1], 1, len(_STEPS))
        run = _run(recording)
        tell(_STEPS[2], 2, len(_STEPS))
        done = _measured(recording, run, over)
        tell(_STEPS[3], 3, len(_STEPS))
        if target is not None:
            write(done.results, target)
    if json:
        print_json(sheet("replay", None, done.lines) | {"oracle": done.truth})
    else:
        print_figures(f"{recording.title}, {_told(recording.query.goal)}", done.lines)
        out().print(f"The truth is by {done.truth}.", highlight=False)
    if target is not None:
        typer.echo(f"written: {target}", err=True)
    if dashboard or metrics is not None:
        from slackwater.cli.paced_replay import play

        play(recording, dashboard, metrics, speed, may_stay=not json)


def _with_goal(recording: Recording, wanted: Any) -> Recording:
    from dataclasses import replace

    from slackwater.jobs.goal import goal_of
    from slackwater.jobs.toml_table import Table

    query = recording.query
    table = Table("the command line:", {"goal": wanted})
    made = goal_of(table, query.unit)
    return recording._replace(query=table.checked(lambda: replace(query, goal=made)))


def _told(goal: Any) -> str:
    """The goal with the options that are not as usual."""
    from dataclasses import MISSING, fields

    given = [
        str(getattr(goal, f.name)) if f.default is MISSING else f"{f.name}={getattr(goal, f.name)}"
        for f in fields(goal)
        if getattr(goal, f.name) != f.default
    ]
    return f"{type(goal).__name__}({', '.join(given)})"


def _run(recording: Recording) -> Any:
    query: Any = recording.query  # one that needs an arrival says so itself
    return query.replay(recording.tables, recording.arrival)


# ---- how good it was


def _measured(recording: Recording, run: Any, over: Duration | None) -> Replayed:
    from slackwater.jobs.job import Sink
    from slackwater.jobs.sink_files import columns_of
    from slackwater.jobs.verify import judge
    from slackwater.query.join import JoinQuery
    from slackwater.testing.oracle import EMBEDDED, exact

    query = recording.query
    if isinstance(query, JoinQuery):
        lines = _of_join(run, over)
        truth = EMBEDDED
    else:
        true = exact(query, recording.tables)
        columns = columns_of(Sink("parquet", None, {}, (), ()), true.table, marks_late=False)
        lines, truth = judge(query, true, columns, run.results).lines, true.oracle
    return Replayed(run.results, [*lines, *_accounting(run.metrics)], truth)


def _of_join(run: Run, over: Duration | None) -> list[Measurement]:
    """Recall, K and latency against the full join."""
    from slackwater.jobs.advise import fitting_period
    from slackwater.jobs.measurement import Measurement
    from slackwater.query.goals import Recall

    query, goal = run.query, run.query.goal
    slacks = run.output.slacks
    span = run.output.top - slacks[0][0] if slacks else 0
    gamma, period = 0.95, over or fitting_period(span, query.unit)
    if isinstance(goal, Recall):
        gamma, period = goal.target, over or goal.over
    report = run.report(gamma, period)
    lines = [
        Measurement("results", report.produced, "results"),
        Measurement("true results", report.true, "results"),
        Measurement("recall", round(report.recall, 6), "share"),
    ]
    if report.measurements.num_rows:
        lines.append(Measurement(f"Φ({gamma:g}) over {period}", round(report.phi, 6), "share"))
    if report.precision is not None and report.precision < 1:
        lines.append(Measurement("precision", round(report.precision, 6), "share"))
    lines += [
        Measurement("average K", round(report.average_slack, 3), query.unit),
        Measurement("average latency", round(report.average_latency, 3), query.unit),
        Measurement("95 % latency", round(report.latency_95, 3), query.unit),
    ]
    if report.average_wait is not None:
        lines.append(Measurement("average wait", round(report.average_wait, 3), query.unit))
    lines.append(Measurement("results lost", run.metrics.lost, "results"))
    if run.metrics.lost_unknown:
        lines.append(Measurement("events of unknown loss", run.metrics.lost_unknown, "events"))
    return lines


def _accounting(metrics: Metrics) -> list[Measurement]:
    """Every row has one fate."""
    from slackwater.jobs.measurement import Measurement

    fates = {
        "in order": metrics.in_order,
        "late, kept": metrics.late_kept,
        "late, dropped": metrics.late_dropped,
        "waiting": metrics.buffered,
        "shed": metrics.shed,
    }
    lines = [Measurement("rows in", metrics.arrivals, "rows")]
    lines += [Measurement(f"  {name}", n, "rows") for name, n in fates.items()]
    lines += [Measurement(f"  rejected: {why}", n, "rows") for why, n in metrics.rejected.items()]
    total = sum(fates.values()) + sum(metrics.rejected.values())
    return [*lines, Measurement("rows without a fate", metrics.arrivals - total, "rows", ceiling=0)]
