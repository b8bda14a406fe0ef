"""``slackwater demo``: disordered streams through Slackwater and through Spark's own join."""

from __future__ import annotations

from math import floor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.console import Json, Seed, bars, count, duration, out, percent, print_json
from slackwater.cli.dashboard_server import ShowDashboard

if TYPE_CHECKING:
    from rich.table import Table

    from slackwater.jobs.demo_run import DemoResult, Figure

_MAIN = ("target", "recall in time", "average K", "rows/s")


def demo(
    seconds: Annotated[
        int, typer.Option(min=1, max=3600, help="The length of the streams, in event time.")
    ] = 60,
    seed: Seed = 1,
    keep: Annotated[
        Path | None, typer.Option(help="Write the streams here, and keep them.")
    ] = None,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="Compare goals in this process, without Spark.")
    ] = False,
    dashboard: ShowDashboard = False,
    json: Json = False,
) -> None:
    """Join disordered streams on a local Spark, beside Spark's own join."""
    if embedded:
        from slackwater.cli.demo_embedded import embedded_demo

        embedded_demo(seconds, seed, json)
        return
    from slackwater.cli.dashboard_server import beside
    from slackwater.cli.screen import Screen
    from slackwater.dashboard.control import CommandFiles, Control
    from slackwater.jobs.demo_run import NAME, DemoDisplay, DemoPage, run_demo
    from slackwater.jobs.measurement import sheet

    if not json:
        out().print(_intro() + "\n", highlight=False)
    with TemporaryDirectory(prefix="slackwater-demo-") as scratch:
        files = CommandFiles(Path(scratch) / "control")
        with beside(dashboard, Control(files.set, NAME), may_stay=not json) as history:
            page = None
            if history is not None:
                page = DemoPage(history.take, files.created(), lambda: files.write({"flush": True}))
            streams = keep or Path(scratch) / "streams"
            with Screen(quiet=json) as screen:
                display = DemoDisplay(screen.doing, screen.follow)
                result = run_demo(streams, Path(scratch), seconds, seed, display, page)
            if json:
                print_json(sheet("demo", seed, result.measurements()))
            else:
                console = out()
                console.print(table(result))
                console.print("\n" + chart(result), highlight=False)
                console.print("\n" + conclusion(result), highlight=False)


def _intro() -> str:
    from slackwater.jobs import demo

    return (
        f"Quotes and trades of {demo.SYMBOLS:,} symbols, {demo.RATE_PER_S:,} a second each. "
        f"{100 * demo.LATE_SHARE:.0f} % of them arrive late, by {duration(demo.MEAN_DELAY_MS)} on "
        "average. Which quotes and trades of a symbol are at most "
        f"{demo.WINDOW} apart? Both joins read the same files. Slackwater has a target: "
        f"{demo.GOAL.target:.0%} of the true results in time, over any {demo.GOAL.over}. Spark's "
        f"own join has a fixed watermark delay: {duration(demo.DELAY_MS)}."
    )


def table(result: DemoResult) -> Table:
    """Return the comparison as a table."""
    from rich import box
    from rich.table import Table

    from slackwater.jobs.demo import RETENTION

    made = Table(
        caption=(
            f"{result.true:,} true results, counted by a batch join; recall is the share of them "
            "that was found. K is how long Slackwater holds events back to put them in order, "
            "the average over micro-batches; beyond that it keeps them "
            f"{RETENTION} for late events to find. For Spark it is the delay of its watermarks, "
            "after which it forgets events: it holds nothing back, and its results come in "
            "any order. rows/s is without the first micro-batch, which starts the workers."
        ),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 2, 0, 0),
    )
    made.add_column("", no_wrap=True)
    for watch in (result.ours, result.theirs):
        made.add_column(watch.title, justify="right", no_wrap=True)
    for figure in result.figures:
        cells = [_cell(figure, value) for value in (figure.ours, figure.theirs)]
        made.add_row(figure.name, *cells, style="bold" if figure.name in _MAIN else "")
    return made


def _cell(figure: Figure, value: float | None) -> str:
    if figure.unit == "share":
        return "–" if value is None else f"{floor(1e4 * value) / 1e4:.2%}"  # no 100% but all
    if figure.unit in ("ms", "s"):
        return duration(None if value is None else value * (1000 if figure.unit == "s" else 1))
    return count(value)


def chart(result: DemoResult) -> str:
    """Return recall and K over time, a bar for each micro-batch."""
    from slackwater.jobs.demo import GOAL

    known = [line for line in result.ours.lines if line["recall"] is not None]
    if not known:
        return ""
    recalls, slacks = ([line[name] for line in known] for name in ("recall", "slack"))
    low, most = min(*recalls, GOAL.target), max(slacks)
    return (
        f"  recall over {GOAL.over}  {bars(recalls, low, 1)}  {percent(low)} to 100.0%\n"
        f"  K                       {bars(slacks, 0, most)}  0 to {duration(most)}"
    )


def conclusion(result: DemoResult) -> str:
    """Return what happened, in numbers."""
    from slackwater.metrics.progress import MetricsView

    metrics = MetricsView(result.metrics)
    targets = ", then ".join(f"{100 * target:.6g}%" for target in result.targets)
    return (
        f"Slackwater found {metrics.produced / result.true:.1%} of the results in time "
        f"(target {targets}) with an average K of {duration(result.ours.average_slack)}, and "
        f"{count(metrics.lost)} more late; Spark's own join dropped "
        f"{count(result.theirs.total('dropped'))} events. Slackwater processed "
        f"{result.times_faster:.1f} times as many rows a second."
    )
