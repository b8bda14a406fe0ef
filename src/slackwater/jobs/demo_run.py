"""Run the demo on Spark: an inner and a left join, each by Slackwater and by Spark itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from slackwater.jobs.demo import DemoLines, Scale, by_slackwater, by_spark, query, write_streams
from slackwater.jobs.local_spark import local_spark
from slackwater.jobs.measurement import Measurement
from slackwater.jobs.watch import QueryWatch, follow
from slackwater.metrics.progress import MetricsView
from slackwater.query.join_options import How
from slackwater.spark.session import STATE_PROVIDER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener

NAME = "slackwater demo"  # of the query that a page shows
PHASES = ("calm", "rough")

_PAUSE = "1 second"  # between micro-batches that a page shows
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
# Spark's own join is faster with its default store than with RocksDB, which Slackwater needs
_SPARKS_STORE = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


class Side(NamedTuple):
    """What one system did in one act."""

    watch: QueryWatch
    true_pairs: int
    change: int  # the first micro-batch with the new delays

    def total(self, name: str) -> int:
        """Return the sum of a count over all micro-batches."""
        return sum(line.get(name, 0) for line in self.watch.lines)

    @property
    def found(self) -> float:
        """The share of the true pairs that was given out."""
        return self.total("pairs") / self.true_pairs

    @property
    def kept(self) -> int:
        """The most events that were kept between two micro-batches."""
        return max((line["kept"] for line in self.watch.lines), default=0)

    def wrong(self, phase: str) -> float | None:
        """The share of the rows without payment whose order was paid."""
        alone = self.total(f"alone_{phase}")
        return self.total(f"wrong_{phase}") / alone if alone else None

    def wait_ms(self, phase: str) -> float | None:
        """The average K of the micro-batches of a phase: how long these rows waited for it."""
        lines = [line for line in self.watch.lines if line["rows"] and line["slack"] is not None]
        own = lines[: self.change] if phase == "calm" else lines[self.change :]
        return sum(line["slack"] for line in own) / len(own) if own else None


class Act(NamedTuple):
    """One join by both systems."""

    ours: Side
    theirs: Side

    @property
    def times_faster(self) -> float:
        """Our rows per second by Spark's."""
        return (self.ours.watch.rows_per_s or 1) / (self.theirs.watch.rows_per_s or 1)


class DemoResult(NamedTuple):
    """What happened."""

    at_once: Act
    alone: Act

    def measurements(self) -> list[Measurement]:
        """Return all numbers."""
        made = []
        for title, one in (("Slackwater", 0), ("Spark", 1)):
            pairs, rows = self.at_once[one], self.alone[one]
            figures: list[tuple[str, float | None, str]] = [
                ("rows in", pairs.watch.rows, "rows"),
                ("pairs found", pairs.found, "share"),
                ("rows/s", pairs.watch.rows_per_s, "rows/s"),
                ("events kept", pairs.kept, "events"),
            ]
            for phase in PHASES:
                figures += [
                    (f"rows without payment, {phase}", rows.total(f"alone_{phase}"), "results"),
                    (f"wrong, {phase}", rows.wrong(phase), "share"),
                    (f"withdrawn, {phase}", rows.total(f"withdrawn_{phase}"), "results"),
                    (f"wait, {phase}", rows.wait_ms(phase), "ms"),
                ]
            figures.append(("left join: whole run", rows.watch.seconds, "s"))
            made += [
                Measurement(f"{title}: {name}", round(n, 4), unit)
                for name, n, unit in figures
                if n is not None
            ]
        return made


class DemoPage(NamedTuple):
    """A dashboard beside the demo."""

    receive: Callable[[dict[str, Any]], None]  # gets progress lines
    control: Path  # the directory for commands
    flush: Callable[[], object]  # writes the command to flush


class DemoDisplay(NamedTuple):
    """How the demo shows its progress."""

    doing: Callable[[str], None]  # shows the current activity
    follow: Callable[[QueryWatch], None]  # shows another query


class Demo:
    """Runs the joins one after the other.

    Parameters
    ----------
    directory
        A new or empty folder for the streams.
    scratch
        A folder for checkpoints.
    display
        Shows the progress.
    page
        A dashboard that shows the left join by Slackwater; None: there is none.
    """

    def __init__(
        self, directory: Path, scratch: Path, display: DemoDisplay, page: DemoPage | None
    ) -> None:
        self._directory = directory
        self._scratch = scratch
        self._display = display
        self._page = page

    def run(self, seconds: int, seed: int) -> DemoResult:
        """Write the streams and run both joins over them, by both systems."""
        # pairs: half as long, ten times as many rows; the other has small micro-batches
        fast = Scale(10_000, max(2, seconds // 2), max(1, seconds // 12), changes=False)
        slow = Scale(1_000, max(2, seconds), max(1, seconds // 30), changes=True)
        self._display.doing("writing the streams")
        pairs, alone = self._directory / "pairs", self._directory / "alone"
        known = [write_streams(pairs, fast, seed), write_streams(alone, slow, seed)]
        self._display.doing("starting Spark")
        with local_spark(NAME, None, {}) as spark:
            at_once = self._act(spark, pairs, fast, "inner", known[0])
            return DemoResult(at_once, self._act(spark, alone, slow, "left", known[1]))

    def _act(
        self, spark: SparkSession, folder: Path, scale: Scale, how: How, known: dict[str, int]
    ) -> Act:
        page = self._page if how == "left" else None
        control = None if page is None else page.control
        name, batches = NAME if how == "left" else "pairs", scale.files + 1  # the last has no data
        ours = QueryWatch(name, "ms", f"Slackwater, {how} join", batches)
        shared = self._scratch / "shared"
        joined = by_slackwater(spark, folder, scale, how, shared, control)
        self._stream(joined, ours, how, page, known["rows"])
        theirs = QueryWatch(f"{how} by Spark", "ms", f"Spark's own {how} join", batches)
        with _own_store(spark):
            self._stream(by_spark(spark, folder, scale, how), theirs, how)
        change = scale.files // 2
        return Act(*(Side(watch, known["pairs"], change) for watch in (ours, theirs)))

    def _stream(
        self, joined: Any, watch: QueryWatch, how: How, page: DemoPage | None = None, rows: int = 0
    ) -> None:
        self._display.follow(watch)
        self._display.doing(f"{watch.title} reads the streams")
        writer = joined.writeStream.format("noop").queryName(watch.name)
        writer = writer.option("checkpointLocation", str(self._scratch / watch.name))
        listeners: list[StreamingQueryListener] = [DemoLines(watch.take)]
        spark = joined.sparkSession
        if page is None:
            is_stopped = follow(spark, writer.trigger(availableNow=True).start, watch, listeners)
        else:
            # an available-now query does not read files that come later, and so no commands
            start = writer.trigger(processingTime=_PAUSE).start
            listeners.append(DemoLines(page.receive, query(how), control=True))
            is_stopped = follow(spark, start, watch, listeners, FlushAtEnd(watch, rows, page.flush))
        if is_stopped:
            raise KeyboardInterrupt


@contextmanager
def _own_store(spark: SparkSession) -> Iterator[None]:
    """Let Spark's own join have the state store that is Spark's default."""
    spark.conf.set(_PROVIDER, _SPARKS_STORE)
    try:
        yield
    finally:
        spark.conf.set(_PROVIDER, STATE_PROVIDER)


class FlushAtEnd:
    """Whether a query that runs on is done: all rows are in, and the last ones were flushed.

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
        self._flushed_at: int | None = None  # micro-batches then

    def __call__(self) -> bool:
        """Flush when it is time; return whether that is done."""
        metrics, done = MetricsView(self._watch.metrics), len(self._watch.lines)
        if (metrics.arrivals or 0) < self._rows:
            return False
        if self._flushed_at is None:
            self._flush()
            self._flushed_at = done
        return done > self._flushed_at and bool(metrics.buffered == 0)
