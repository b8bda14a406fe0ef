"""``slackwater demo``: the same streams through Slackwater and through Spark's own joins."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.console import Json, Seed, bars, count, duration, out, percent, print_json
from slackwater.cli.dashboard_server import ShowDashboard
from slackwater.errors import SlackwaterError

if TYPE_CHECKING:
    from rich.table import Table

    from slackwater.jobs.demo_run import DemoResult, Side


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
    """Join disordered streams on a local Spark, beside Spark's own joins."""
    if embedded:
        for option, is_given in (("--dashboard", dashboard), ("--keep", keep is not None)):
            if is_given:
                msg = (
                    f"{option} is for the demonstration on Spark, got it with --embedded; "
                    "`slackwater replay --dashboard` shows a recording on a page, without Spark"
                )
                raise SlackwaterError(msg)
        from slackwater.cli.demo_embedded import embedded_demo

        embedded_demo(seconds, seed, json)
        return
    from slackwater.cli.dashboard_server import beside
    from slackwater.cli.screen import Screen
    from slackwater.dashboard.control import CommandFiles, Control
    from slackwater.jobs.demo_run import NAME, Demo, DemoDisplay, DemoPage
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
                result = Demo(streams, Path(scratch), display, page).run(seconds, seed)
            if json:
                print_json(sheet("demo", seed, result.measurements()))
            else:
                console = out()
                console.print(table(result))
                console.print(chart(result) + "\n", highlight=False)
                console.print(conclusion(result), highlight=False)


def _intro() -> str:
    from slackwater.jobs import demo

    return (
        f"Which orders are paid within {demo.IN_TIME_S} seconds, and which are not? "
        f"{demo.LATE_SHARE:.0%} of the rows arrive late, by {duration(demo.CALM_MS)} on average, "
        f"and from the middle on by {duration(demo.ROUGH_MS)}. Spark needs a guess, how late rows "
        f"can be: {demo.GUESS}. Slackwater needs a goal: {demo.RIGHT:.0%} of the orders that it "
        "calls unpaid are unpaid."
    )


def table(result: DemoResult) -> Table:
    """Return the comparison as a table."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0))
    made.add_column("", no_wrap=True)
    for title in ("Slackwater", "Spark's own"):
        made.add_column(title, justify="right", no_wrap=True)

    def add(name: str, cells: list[str], style: str = "") -> None:
        made.add_row(name, *cells, style=style)

    pairs, alone = result.at_once, result.alone
    add("Orders with their payments, at once (inner join)", ["", ""], "bold")
    add("  found", [percent(side.found) for side in pairs])
    add("  rows per second", [count(side.watch.rows_per_s) for side in pairs])
    add("  events kept, at most", [count(side.kept) for side in pairs])
    add("Orders without payment (left join)", ["", ""], "bold")
    for phase, when in (("calm", ""), ("rough", ", when delays have grown")):
        waits = [duration(alone.ours.wait_ms(phase)), f"{_guess()} (guess)"]
        add(f"  wrong{when}", [_wrong(side, phase) for side in alone])
        add(f"  wait for late rows{when}", waits)
    return made


def _wrong(side: Side, phase: str) -> str:
    return percent(side.wrong(phase))


def _guess() -> str:
    from slackwater.jobs.demo import GUESS

    return GUESS.replace("second", "s")


def chart(result: DemoResult) -> str:
    """Return the share of wrong rows over time, a bar for each part of the run."""
    sides = {"Slackwater": result.alone.ours, "Spark's own": result.alone.theirs}
    shares = {name: _shares(side) for name, side in sides.items()}
    most = max((share for of in shares.values() for share in of), default=0.0)
    lines = [
        f"  wrong over time  {name:11}  {bars(of, 0, most)}  0 to {percent(max(of, default=0.0))}"
        for name, of in shares.items()
    ]
    return "\n".join(lines)


def _shares(side: Side, parts: int = 30) -> list[float]:
    """The share of wrong rows in each part of the micro-batches that gave out any."""
    from slackwater.jobs.demo_run import PHASES

    rows = [
        [sum(line.get(f"{what}_{phase}", 0) for phase in PHASES) for what in ("wrong", "alone")]
        for line in side.watch.lines
    ]
    known = [(wrong, alone) for wrong, alone in rows if alone]
    size = max(1, -(-len(known) // parts))
    chunks = [known[at : at + size] for at in range(0, len(known), size)]
    return [sum(w for w, _ in chunk) / sum(a for _, a in chunk) for chunk in chunks]


def conclusion(result: DemoResult) -> str:
    """Return what it is, what it is good for and what it costs, in numbers."""
    from slackwater.jobs.demo import RIGHT

    pairs, alone = result.at_once, result.alone
    ours, theirs = alone
    withdrawn = sum(ours.total(f"withdrawn_{phase}") for phase in ("calm", "rough"))
    return (
        "Slackwater joins streams on Spark: it gave out pairs in the same micro-batch as Spark's "
        f"own join, {percent(pairs.ours.found)} of them against {percent(pairs.theirs.found)}, at "
        f"{pairs.times_faster:.1f} times the rows a second.\n"
        f"It is good where delays change: of the orders that it called unpaid, "
        f"{_wrong(ours, 'rough')} were wrong when delays had grown (the goal allows "
        f"{1 - RIGHT:.0%}), and it took {count(withdrawn)} of its rows back; with a fixed guess "
        f"{_wrong(theirs, 'rough')} were wrong, and nothing said so.\n"
        f"It costs time: these rows waited {duration(ours.wait_ms('rough'))} for late ones, where "
        f"{duration(ours.wait_ms('calm'))} had been enough before."
    )
