"""``slackwater demo``: disordered streams through Slackwater and through Spark's own join."""

from __future__ import annotations

from math import floor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from slackwater.cli.console import Json, Seed, bars, count, duration, out, percent, print_json
from slackwater.cli.dashboard_server import ShowDashboard

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from rich.table import Table

    from slackwater.cli.watch import NativeWatch, Screen, Watch
    from slackwater.dashboard.control import CommandFiles
    from slackwater.dashboard.history import History
    from slackwater.jobs.measurement import Measurement

_NAME = "slackwater demo"
_PAUSE = "1 second"  # between micro-batches that a page shows
_MAIN = ("target", "recall in time", "average K", "rows/s")


def demo(
    seconds: Annotated[
        int, typer.Option(min=1, max=3600, help="How long the streams are, in their own time.")
    ] = 60,
    seed: Seed = 1,
    keep: Annotated[
        Path | None, typer.Option(help="Write the streams here, and leave them.")
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
    from slackwater.cli.watch import Screen
    from slackwater.dashboard.control import CommandFiles, Control
    from slackwater.jobs.measurement import sheet

    if not json:
        out().print(_intro() + "\n", highlight=False)
    with TemporaryDirectory(prefix="slackwater-demo-") as scratch:
        files = CommandFiles(Path(scratch) / "control")
        with beside(dashboard, Control(files.set, _NAME), may_stay=not json) as history:
            page = None if history is None else Page(history, files)
            with Screen(quiet=json) as screen:
                streams = keep or Path(scratch) / "streams"
                outcome = _compete(streams, Path(scratch), seconds, seed, screen, page)
            if json:
                print_json(sheet("demo", seed, outcome.lines()))
            else:
                console = out()
                console.print(outcome.table())
                console.print("\n" + outcome.chart(), highlight=False)
                console.print("\n" + outcome.moral(), highlight=False)


class Page(NamedTuple):
    """What a dashboard shows, and how it commands."""

    history: History
    files: CommandFiles


def _intro() -> str:
    from slackwater.jobs import demo as contest

    return (
        f"Quotes and trades of {contest.SYMBOLS:,} symbols, {contest.RATE_PER_S:,} a second each. "
        f"{100 * contest.LATE_SHARE:.0f} % of them arrive late, by "
        f"{duration(contest.MEAN_DELAY_MS)} on average. Which quotes and trades of a symbol are "
        f"at most {contest.WINDOW} apart? Both joins read the same files. Slackwater is asked for "
        f"{contest.GOAL.target:.0%} of the true results in time, over any {contest.GOAL.over}; "
        f"Spark's own join is given a watermark delay, a guess: {duration(contest.DELAY_MS)}."
    )


class Outcome(NamedTuple):
    """How both joins did."""

    ours: Watch
    theirs: NativeWatch
    told: dict[str, Any]  # the last metrics of ours
    delay_ms: int  # of theirs
    true: int

    @property
    def figures(self) -> list[Figure]:
        """What is compared; None: that join has no such figure."""
        told = self.told
        found, native = told["produced"] + told["lost"], self.theirs.total("results")
        return [
            Figure("rows in", "rows", told["arrivals"], self.theirs.rows),
            Figure("results", "results", found, native),
            Figure("results in time", "results", told["produced"], None),
            Figure("results late, and marked", "results", told["lost"], None),
            Figure("recall", "share", found / self.true, native / self.true),
            Figure("target", "share", told["target"], None),
            Figure("recall in time", "share", told["produced"] / self.true, None),
            Figure("recall in time, as it counts", "share", told["recall"], None),
            Figure("late events", "events", told["late_kept"] + told["late_dropped"], None),
            Figure("dropped events", "events", None, self.theirs.total("dropped")),
            Figure("average K", "ms", self.ours.average_slack, self.delay_ms),
            Figure("rows/s", "rows/s", self.ours.rows_per_s, self.theirs.rows_per_s),
            Figure("whole run", "s", self.ours.seconds, self.theirs.seconds),
        ]

    def lines(self) -> list[Measurement]:
        """The figures for programs."""
        from slackwater.jobs.measurement import Measurement

        ours = [(f"Slackwater: {figure.name}", figure.ours, figure.unit) for figure in self.figures]
        theirs = [(f"Spark: {figure.name}", figure.theirs, figure.unit) for figure in self.figures]
        known = [
            Measurement(name, round(n, 4), unit) for name, n, unit in ours + theirs if n is not None
        ]
        return [Measurement("true results", self.true, "results"), *known]

    def table(self) -> Table:
        """The figures for people."""
        from rich import box
        from rich.table import Table

        from slackwater.jobs.demo import RETENTION

        table = Table(
            caption=(
                f"{self.true:,} true results, counted by a batch join; recall is the share of them "
                "that was found. K is how long Slackwater holds events back to put them in order, "
                "the average over micro-batches; beyond that it keeps them "
                f"{RETENTION} for late ones to find. For Spark it is the delay of its watermarks, "
                "which says when it forgets events: it holds nothing back, and its results come in "
                "any order. rows/s is without the first micro-batch, which starts the workers."
            ),
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 2, 0, 0),
        )
        table.add_column("", no_wrap=True)
        for watch in (self.ours, self.theirs):
            table.add_column(watch.title, justify="right", no_wrap=True)
        for figure in self.figures:
            table.add_row(*figure.cells(), style="bold" if figure.name in _MAIN else "")
        return table

    def chart(self) -> str:
        """How recall and K went, a bar for each micro-batch."""
        from slackwater.jobs.demo import GOAL

        known = [line for line in self.ours.lines if line["recall"] is not None]
        if not known:
            return ""
        recalls, slacks = ([line[name] for line in known] for name in ("recall", "slack"))
        low, most = min(*recalls, GOAL.target), max(slacks)
        return (
            f"  recall over {GOAL.over}  {bars(recalls, low, 1)}  {percent(low)} to 100.0%\n"
            f"  K                       {bars(slacks, 0, most)}  0 to {duration(most)}"
        )

    def moral(self) -> str:
        """What to see."""
        from slackwater.jobs.demo import GOAL

        told, dropped = self.told, self.theirs.total("dropped")
        times = (self.ours.rows_per_s or 1) / (self.theirs.rows_per_s or 1)
        is_changed = told["target"] != GOAL.target  # on the dashboard
        asked = f"{GOAL.target:.0%}" + (
            f" and later {100 * told['target']:.6g}%" if is_changed else ""
        )
        return (
            f"What to see: asked for {asked} of the results in time, over any "
            f"{GOAL.over}, Slackwater gave {told['produced'] / self.true:.1%}, with a K of "
            f"{duration(self.ours.average_slack)} on average that it found by itself. The other "
            f"{count(told['lost'])} results that it found came late, and marked. Spark's join was "
            f"given {duration(self.delay_ms)}, a guess; it tells that it dropped {count(dropped)} "
            f"events, but not what they cost. Slackwater took {times:.1f} times as many rows a "
            "second."
        )


class Figure(NamedTuple):
    """One line of the comparison."""

    name: str
    unit: str
    ours: float | None
    theirs: float | None

    def cells(self) -> list[str]:
        """The row of the table."""
        return [self.name, self._text(self.ours), self._text(self.theirs)]

    def _text(self, value: float | None) -> str:
        if self.unit == "share":
            return "–" if value is None else f"{floor(1e4 * value) / 1e4:.2%}"  # no 100% but all
        if self.unit in ("ms", "s"):
            return duration(None if value is None else value * (1000 if self.unit == "s" else 1))
        return count(value)


def _compete(
    directory: Path, scratch: Path, seconds: int, seed: int, screen: Screen, page: Page | None
) -> Outcome:
    """Write the streams, run both joins over them, and count the truth."""
    from slackwater.cli.watch import NativeWatch, Watch
    from slackwater.jobs import demo as contest
    from slackwater.jobs.local_spark import local_spark

    screen.doing("writing the streams")
    batches = contest.write_streams(directory, seconds, seed) + 1  # the last has no data
    screen.doing("starting Spark")
    with local_spark("slackwater demo", None, {}) as spark:
        ours = Watch(_NAME, "ms", "Slackwater", batches)
        control = None if page is None else page.files.made()
        joined = contest.by_slackwater(spark, directory, control)
        _stream(joined, ours, spark, scratch, screen, page, seconds)
        theirs = NativeWatch("native demo", "ms", "Spark's own join", batches)
        _stream(contest.by_spark(spark, directory), theirs, spark, scratch, screen)
        screen.doing("counting the true results with a batch join")
        true = contest.true_results(spark, directory)
    return Outcome(ours, theirs, ours.metrics or {}, contest.DELAY_MS, true)


def _stream(
    joined: DataFrame,
    watch: Watch,
    spark: SparkSession,
    scratch: Path,
    screen: Screen,
    page: Page | None = None,
    seconds: int = 0,
) -> None:
    from slackwater.cli.watch import follow
    from slackwater.jobs.demo import QUERY, RATE_PER_S, STREAMS, ContestLines

    screen.follow(watch)
    screen.doing(f"{watch.title} reads the streams")
    writer = joined.writeStream.format("noop").queryName(watch.name)
    writer = writer.option("checkpointLocation", str(scratch / watch.name))
    listeners = [ContestLines(watch.take)]
    if page is None:
        is_stopped = follow(spark, writer.trigger(availableNow=True).start, watch, listeners)
    else:
        # such a query does not see files that come later, and so no commands: it runs on instead
        rows = len(STREAMS) * round(seconds * RATE_PER_S)
        start = writer.trigger(processingTime=_PAUSE).start
        listeners.append(ContestLines(page.history.take, QUERY, control=True))
        is_stopped = follow(spark, start, watch, listeners, End(watch, rows, page.files))
    if is_stopped:
        raise KeyboardInterrupt


class End:
    """Whether a query that runs on is done: all rows are in, and those that wait were let out."""

    def __init__(self, watch: Watch, rows: int, files: CommandFiles) -> None:
        self._watch = watch
        self._rows = rows
        self._files = files
        self._is_flushed = False

    def __call__(self) -> bool:
        """Ask for the flush when it is time; whether nothing waits any more."""
        told = self._watch.metrics or {}
        if told.get("arrivals", 0) < self._rows:
            return False
        if not self._is_flushed:
            self._files.write({"flush": True})
            self._is_flushed = True
        return told.get("buffered") == 0
