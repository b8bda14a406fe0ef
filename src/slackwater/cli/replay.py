"""``slackwater replay``: run a query over recorded streams, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    print_json,
    print_measurements,
)
from slackwater.cli.dashboard_server import ShowDashboard
from slackwater.cli.goal_option import GoalText, RecallShort, SlackShort, given_goal

if TYPE_CHECKING:
    from slackwater.jobs.recordings import Recording

_STEPS = ("reading the streams", "replaying them", "comparing with the truth", "writing")


def replay(
    inputs: Inputs,
    goal: GoalText = None,
    recall: RecallShort = None,
    slack: SlackShort = None,
    over: Annotated[
        str | None,
        typer.Option(help="The period of recall; by default that of the goal, or one that fits."),
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
            min=0.001, help="For the page: times as fast as it arrived; else without pauses."
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
    from slackwater.jobs.goal import goal_text
    from slackwater.jobs.measurement import sheet
    from slackwater.jobs.recordings import recording_of
    from slackwater.jobs.replay import measure, with_goal
    from slackwater.jobs.replay import replay as replayed
    from slackwater.jobs.result_file import check_suffix, write

    if target is not None:
        check_suffix(target)
    given = given_goal(goal, recall, slack)
    with bar("replay", quiet=json) as show_step:
        show_step(_STEPS[0], 0, len(_STEPS))
        recording = recording_of(inputs, ts, window, on, where, arrival)
        if given is not None:
            recording = with_goal(recording, given)
        show_step(_STEPS[1], 1, len(_STEPS))
        run = replayed(recording)
        show_step(_STEPS[2], 2, len(_STEPS))
        result = measure(recording, run, over)
        show_step(_STEPS[3], 3, len(_STEPS))
        if target is not None:
            write(result.results, target)
    if json:
        print_json(sheet("replay", None, result.measurements) | {"oracle": result.oracle})
    else:
        title = f"{recording.title}, {goal_text(recording.query.goal)}"
        print_measurements(title, result.measurements)
        out().print(f"The truth is by {result.oracle}.", highlight=False)
    if target is not None:
        typer.echo(f"written: {target}", err=True)
    if dashboard or metrics is not None:
        _show_progress(recording, dashboard, metrics, speed, may_stay=not json)


def _show_progress(
    recording: Recording, on_page: bool, log: Path | None, speed: float | None, may_stay: bool
) -> None:
    """Replay once more, with progress lines on a page, in a log, or both."""
    from contextlib import ExitStack
    from queue import SimpleQueue

    from slackwater.cli.dashboard_server import beside
    from slackwater.dashboard.control import Control
    from slackwater.jobs.replay import metrics_log, progress_lines

    queue: SimpleQueue[dict[str, Any]] = SimpleQueue()
    control = None if speed is None else Control(queue.put, recording.title)
    no_control = "A replay at full speed takes no commands; give it a --speed."
    with ExitStack() as stack:
        receivers = [stack.enter_context(metrics_log(log))] if log is not None else []
        shown = beside(on_page, control, no_control, may_stay=may_stay)
        history = stack.enter_context(shown)
        receivers += [] if history is None else [history.take]

        def commands() -> list[dict[str, Any]]:
            return [queue.get() for _ in range(queue.qsize())]  # only this thread takes

        for line in progress_lines(recording, speed, None if control is None else commands):
            for receive in receivers:
                receive(line)
