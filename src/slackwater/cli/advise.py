"""``slackwater advise``: which recall costs how much latency, on streams that were recorded."""

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
    out,
    print_json,
    progress,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from slackwater.jobs.advise import Advisor, Outcome
    from slackwater.jobs.measurement import Measurement
    from slackwater.jobs.recordings import Recording

_CAPTION = (
    "Recall: share of the true results over the whole recording. Φ: how often the recall over the "
    "last {over} was not below the target of the goal; {target:g} where a goal has none. Latency: "
    "how far event time had moved on when a result came out. K*: the smallest fixed slack that, in "
    "hindsight, holds a target as often as Recall does."
)


def advise(
    inputs: Inputs,
    target: Annotated[
        float | None, typer.Option(help="The recall in question; that of the job, or 0.95.")
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(help="Over which time recall is measured; a minute, if that fits."),
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
    from slackwater.jobs.advise import Advisor
    from slackwater.jobs.measurement import sheet
    from slackwater.jobs.recordings import recording_of
    from slackwater.jobs.toml_table import JobFileError
    from slackwater.query.goals import Recall
    from slackwater.query.join import JoinQuery
    from slackwater.query.window import WindowQuery

    _check_plot(plot)
    recording = recording_of(inputs, ts, window, on, where, arrival)
    query = recording.query
    if not isinstance(query, JoinQuery):
        kind = "window" if isinstance(query, WindowQuery) else "aggregate"
        msg = f"{inputs[0]}: advice is about joins, got a job with [{kind}]"
        raise JobFileError(msg)
    asked = query.goal
    wanted, period = (asked.target, asked.over) if isinstance(asked, Recall) else (0.95, None)
    advisor = Advisor(
        query,
        recording.tables,
        recording.arrival,
        wanted if target is None else target,
        period if over is None else over,
    )
    for step in progress(advisor.steps(), "advise", quiet=json):
        step()
    if json:
        print_json(sheet("advise", None, _lines(advisor)))
    else:
        _print(recording, advisor)
    if plot is not None:
        from slackwater.cli.advise_figure import draw

        plot.parent.mkdir(parents=True, exist_ok=True)
        draw(recording.title, advisor).savefig(plot, facecolor="white")
        typer.echo(f"written: {plot}", err=True)


def _check_plot(plot: Path | None) -> None:
    from importlib.util import find_spec

    from slackwater.errors import SlackwaterError

    if plot is None:
        return
    if find_spec("matplotlib") is None:
        msg = (
            "--plot draws with matplotlib, which is not installed: pip install 'slackwater[plots]'"
        )
        raise SlackwaterError(msg)
    if plot.suffix not in (".png", ".svg", ".pdf"):
        msg = f"--plot must be a file that ends in .png, .svg or .pdf, got {plot}"
        raise SlackwaterError(msg)


# ---- what is told


def _goals(advisor: Advisor) -> list[tuple[str, float, Outcome]]:
    """Each goal that chooses its K: its name, its target, what came of it."""
    from slackwater.jobs.advise import named
    from slackwater.query.goals import Goal, InputQuantile, MaxSlack, NoSlack

    recalls: list[tuple[Goal, float]] = [(advisor.recall_goal(t), t) for t in advisor.targets]
    quantiles: list[tuple[Goal, float]] = [(InputQuantile(q), q) for q in advisor.quantiles]
    fixed: list[tuple[Goal, float]] = [(g, advisor.target) for g in (NoSlack(), MaxSlack())]
    return [
        (named(goal, advisor.unit), target, advisor.outcome(goal))
        for goal, target in recalls + quantiles + fixed
    ]


def _slacks(advisor: Advisor) -> list[tuple[int, str, Outcome]]:
    """Each fixed slack: its length, of which targets it is the frontier, what came of it."""
    from slackwater.jobs.advise import frontier_of
    from slackwater.query.goals import Slack

    best = frontier_of(advisor)
    return [
        (slack, ", ".join(f"{t:g}" for t in best.get(slack, ())), advisor.outcome(Slack(slack)))
        for slack in sorted({*advisor.slacks, *best})
    ]


def _lines(advisor: Advisor) -> list[Measurement]:
    from slackwater.jobs.advise import named
    from slackwater.jobs.measurement import Measurement
    from slackwater.query.goals import Slack

    rows = _goals(advisor)
    rows += [
        (named(Slack(slack), advisor.unit), advisor.target, outcome)
        for slack, _, outcome in _slacks(advisor)
    ]
    lines = [
        Measurement("rows", advisor.rows, "rows"),
        Measurement("true results", advisor.true, "results"),
        Measurement("largest delay", advisor.largest_delay, advisor.unit),
    ]
    for name, target, outcome in rows:
        lines += [
            Measurement(f"{name}: recall", round(outcome.recall, 6), "share"),
            Measurement(f"{name}: Φ({target:g})", round(outcome.phi(target), 6), "share"),
            Measurement(f"{name}: average K", round(outcome.average_slack, 3), advisor.unit),
            Measurement(
                f"{name}: average latency", round(outcome.average_latency, 3), advisor.unit
            ),
        ]
    best = [(f"K*({t:g})", advisor.best_slack(t)) for t in advisor.targets]
    return lines + [Measurement(name, slack, advisor.unit) for name, slack in best]


def _print(recording: Recording, advisor: Advisor) -> None:
    from rich import box
    from rich.table import Table

    from slackwater.jobs.advise import sentence

    def time(value: float) -> str:
        return duration(value, advisor.unit)

    console = out()
    console.print(
        f"{recording.title}: {advisor.rows:,} rows, {advisor.true:,} true results, delays up to "
        f"{time(advisor.largest_delay)}.",
        highlight=False,
    )
    table = Table(
        caption=_CAPTION.format(over=advisor.over, target=advisor.target),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("\ngoal", no_wrap=True)
    for name in ("\nrecall", "\nΦ", "average\nK", "average\nlatency"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("\nK* of", no_wrap=True)
    for name, target, outcome in _goals(advisor):
        is_asked = name == f"Recall({advisor.target:g})"
        table.add_row(
            name, *_cells(outcome, target, time), "", style="bold" if is_asked else "",
            end_section=name in (f"Recall({advisor.targets[-1]:g})", "MaxSlack()"),
        )  # fmt: skip
    for slack, best, outcome in _slacks(advisor):
        row = f"Slack({time(slack)})", *_cells(outcome, advisor.target, time), best
        table.add_row(*row, style="" if best else "dim")
    console.print(table)
    console.print("\n" + sentence(advisor, time), highlight=False)


def _cells(outcome: Outcome, target: float, time: Callable[[float], str]) -> list[str]:
    return [
        f"{outcome.recall:.2%}",
        f"{outcome.phi(target):.0%}",
        time(outcome.average_slack),
        time(outcome.average_latency),
    ]
