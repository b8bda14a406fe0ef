"""``slackwater advise``: which recall costs how much latency, on recorded streams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.console import (
    Arrival,
    Inputs,
    Json,
    On,
    Ts,
    Where,
    Window,
    duration,
    need_matplotlib,
    out,
    print_json,
    progress,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from slackwater.jobs.advise import Advisor
    from slackwater.jobs.advise_kinds import KindAdvisor
    from slackwater.jobs.recordings import Recording
    from slackwater.jobs.waits_tried import GoalResult

_CAPTION = (
    "Recall: share of the true results over the whole recording. Φ: how often the recall over the "
    "last {over} was not below the target of the goal; {target:g} where a goal has none. Latency: "
    "how far event time had advanced when a result came out. K*: the smallest fixed slack that, in "
    "hindsight, holds a target as often as Recall does."
)
_FROM_CURVE = (
    " Fixed slacks come from one pass that measures how late each result is: K* is at most 3 % and "
    "10 ms too large, latencies are approximate."
)


def advise(
    inputs: Inputs,
    target: Annotated[
        float | None, typer.Option(help="The recall target; by default that of the job, or 0.95.")
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(help="The period of recall; by default a minute, if that fits."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a figure here (PNG, SVG, PDF).")] = None,
    window: Window = None,
    on: On = None,
    where: Where = None,
    ts: Ts = "ts",
    arrival: Arrival = None,
    json: Json = False,
) -> None:
    """Show what recall costs on recorded streams, before you choose a goal."""
    from slackwater.jobs import advise_kinds
    from slackwater.jobs.advise import advisor_for, measurements
    from slackwater.jobs.measurement import sheet
    from slackwater.jobs.recordings import recording_of

    _check_plot(plot)
    recording = recording_of(inputs, ts, window, on, where, arrival)
    advisor = advisor_for(recording, target, over)
    for step in progress(advisor.steps(), "advise", quiet=json):
        step()
    if isinstance(advisor, advise_kinds.KindAdvisor):
        from slackwater.cli.advise_kinds import print_kinds

        if json:
            print_json(sheet("advise", None, advise_kinds.measurements(advisor)))
        else:
            print_kinds(recording.title, advisor)
    elif json:
        print_json(sheet("advise", None, measurements(advisor)))
    else:
        _print(recording, advisor)
    if plot is not None:
        plot.parent.mkdir(parents=True, exist_ok=True)
        _figure(recording.title, advisor).savefig(plot, facecolor="white")
        typer.echo(f"written: {plot}", err=True)


def _figure(title: str, advisor: Advisor | KindAdvisor) -> Figure:
    from slackwater.cli.advise_figure import draw
    from slackwater.cli.advise_kinds_figure import draw_kinds
    from slackwater.jobs.advise import Advisor

    return draw(title, advisor) if isinstance(advisor, Advisor) else draw_kinds(title, advisor)


def _check_plot(plot: Path | None) -> None:
    from slackwater.errors import SlackwaterError

    if plot is None:
        return
    need_matplotlib("--plot draws")
    if plot.suffix not in (".png", ".svg", ".pdf"):
        msg = f"--plot must be a file that ends in .png, .svg or .pdf, got {plot}"
        raise SlackwaterError(msg)


def _print(recording: Recording, advisor: Advisor) -> None:
    from rich import box
    from rich.table import Table

    from slackwater.jobs.advise import adaptive_goals, fixed_slacks, sentence

    def time(value: float) -> str:
        return duration(value, advisor.unit)

    console = out()
    console.print(
        f"{recording.title}: {advisor.rows:,} rows, {advisor.true:,} true results, delays up to "
        f"{time(advisor.largest_delay)}.",
        highlight=False,
    )
    caption = _CAPTION.format(over=advisor.over, target=advisor.target)
    table = Table(
        caption=caption + (_FROM_CURVE if advisor.curve is not None else ""),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("\ngoal", no_wrap=True)
    for name in ("\nrecall", "\nΦ", "average\nK", "average\nlatency"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("\nK* of", no_wrap=True)
    for name, target, result in adaptive_goals(advisor):
        is_target = name == f"Recall({advisor.target:g})"
        table.add_row(
            name, *_cells(result, target, time), "", style="bold" if is_target else "",
            end_section=name in (f"Recall({advisor.targets[-1]:g})", "MaxSlack()"),
        )  # fmt: skip
    for slack, best, result in fixed_slacks(advisor):
        row = f"Slack({time(slack)})", *_cells(result, advisor.target, time), best
        table.add_row(*row, style="" if best else "dim")
    console.print(table)
    console.print("\n" + sentence(advisor, time), highlight=False)


def _cells(result: GoalResult, target: float, time: Callable[[float], str]) -> list[str]:
    return [
        f"{result.recall:.2%}",
        f"{result.phi(target):.0%}",
        time(result.average_slack),
        time(result.average_latency),
    ]
