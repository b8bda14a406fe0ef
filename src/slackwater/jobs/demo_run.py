"""Run the demo on Spark: both joins over the same files, and the truth by a batch join."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from slackwater.jobs.demo import (
    DELAY_MS,
    GOAL,
    QUERY,
    RATE_PER_S,
    STREAMS,
    DemoLines,
    by_slackwater,
    by_spark,
    true_results,
    write_streams,
)
from slackwater.jobs.local_spark import local_spark
from slackwater.jobs.measurement import Measurement
from slackwater.jobs.watch import NativeWatch, QueryWatch, follow
from slackwater.metrics.progress import MetricsView

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener

NAME = "slackwater demo"  # of the query
_PAUSE = "1 second"  # between micro-batches that a page shows


class Figure(NamedTuple):
    """One row of the comparison; None where a join does not have it."""

    name: str
    unit: str
    ours: float | None
    theirs: float | None


class DemoResult(NamedTuple):
    """What both joins did, and the truth."""

    ours: QueryWatch
    theirs: NativeWatch
    metrics: dict[str, Any]  # the last ones of ours
    delay_ms: int  # of theirs
    true: int

    @property
    def figures(self) -> list[Figure]:
        """All that is compared."""
        metrics, theirs = MetricsView(self.metrics), self.theirs
        found, native = metrics.produced + metrics.lost, theirs.total("results")
        late = metrics.late_kept + metrics.late_dropped
        return [
            Figure("rows in", "rows", metrics.arrivals, theirs.rows),
            Figure("results", "results", found, native),
            Figure("results in time", "results", metrics.produced, None),
            Figure("results late, and marked", "results", metrics.lost, None),
            Figure("recall", "share", found / self.true, native / self.true),
            Figure("target", "share", metrics.target, None),
            Figure("recall in time", "share", metrics.produced / self.true, None),
            Figure("recall in time, as it counts", "share", metrics.recall, None),
            Figure("late events", "events", late, None),
            Figure("dropped events", "events", None, theirs.total("dropped")),
            Figure("average K", "ms", self.ours.average_slack, self.delay_ms),
            Figure("rows/s", "rows/s", self.ours.rows_per_s, theirs.rows_per_s),
            Figure("whole run", "s", self.ours.seconds, theirs.seconds),
        ]

    @property
    def times_faster(self) -> float:
        """Our rows per second by Spark's."""
        return (self.ours.rows_per_s or 1) / (self.theirs.rows_per_s or 1)

    @property
    def targets(self) -> list[float]:
        """The recall targets of the run; the second one was set on the dashboard."""
        return list(dict.fromkeys([GOAL.target, MetricsView(self.metrics).target]))

    def measurements(self) -> list[Measurement]:
        """Return all numbers."""
        ours = [(f"Slackwater: {figure.name}", figure.ours, figure.unit) for figure in self.figures]
        theirs = [(f"Spark: {figure.name}", figure.theirs, figure.unit) for figure in self.figures]
        known = [
            Measurement(name, round(n, 4), unit) for name, n, unit in ours + theirs if n is not None
        ]
        return [Measurement("true results", self.true, "results"), *known]


class DemoPage(NamedTuple):
    """A dashboard beside the demo."""

    receive: Callable[[dict[str, Any]], None]  # gets progress lines
    control: Path  # the directory for commands
    flush: Callable[[], object]  # writes the command to flush


class DemoDisplay(NamedTuple):
    """How the demo shows its progress."""

    doing: Callable[[str], None]  # shows the current activity
    follow: Callable[[QueryWatch], None]  # shows another query


def run_demo(
    directory: Path,
    scratch: Path,
    seconds: int,
    seed: int,
    display: DemoDisplay,
    page: DemoPage | None,
) -> DemoResult:
    """Write the streams, run both joins over them, and count the true results."""
    display.doing("writing the streams")
    batches = write_streams(directory, seconds, seed) + 1  # the last has no data
    display.doing("starting Spark")
    with local_spark(NAME, None, {}) as spark:
        ours = QueryWatch(NAME, "ms", "Slackwater", batches)
        control = None if page is None else page.control
        joined = by_slackwater(spark, directory, control)
        _stream(joined, ours, spark, scratch, display, page, seconds)
        theirs = NativeWatch("native demo", "ms", "Spark's own join", batches)
        _stream(by_spark(spark, directory), theirs, spark, scratch, display)
        display.doing("counting the true results with a batch join")
        true = true_results(spark, directory)
    return DemoResult(ours, theirs, ours.metrics or {}, DELAY_MS, true)


def _stream(
    joined: DataFrame,
    watch: QueryWatch,
    spark: SparkSession,
    scratch: Path,
    display: DemoDisplay,
    page: DemoPage | None = None,
    seconds: int = 0,
) -> None:
    display.follow(watch)
    display.doing(f"{watch.title} reads the streams")
    writer = joined.writeStream.format("noop").queryName(watch.name)
    writer = writer.option("checkpointLocation", str(scratch / watch.name))
    listeners: list[StreamingQueryListener] = [DemoLines(watch.take)]
    if page is None:
        is_stopped = follow(spark, writer.trigger(availableNow=True).start, watch, listeners)
    else:
        # an available-now query does not read files that come later, and so no commands
        rows = len(STREAMS) * round(seconds * RATE_PER_S)
        start = writer.trigger(processingTime=_PAUSE).start
        listeners.append(DemoLines(page.receive, QUERY, control=True))
        is_stopped = follow(spark, start, watch, listeners, FlushAtEnd(watch, rows, page.flush))
    if is_stopped:
        raise KeyboardInterrupt


class FlushAtEnd:
    """Whether a query that runs on is done: all rows are in, and none of them waits.

    Parameters
    ----------
    watch
        The query.
    rows
        The number of rows that come in.
    flush
        Called once, when all rows are in, to release those that wait.
    """

    def __init__(self, watch: QueryWatch, rows: int, flush: Callable[[], object]) -> None:
        self._watch = watch
        self._rows = rows
        self._flush = flush
        self._is_flushed = False

    def __call__(self) -> bool:
        """Flush when it is time; return whether no row waits any more."""
        metrics = MetricsView(self._watch.metrics)
        if (metrics.arrivals or 0) < self._rows:
            return False
        if not self._is_flushed:
            self._flush()
            self._is_flushed = True
        return bool(metrics.buffered == 0)
