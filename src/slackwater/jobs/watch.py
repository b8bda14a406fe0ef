"""A streaming query while it runs: its progress lines, and how it is started and stopped."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any

from slackwater.jobs.local_spark import FailedError, error_text
from slackwater.metrics.progress import MetricsView

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener
    from pyspark.sql.streaming.query import StreamingQuery

_WAKE_S = 0.2
_LAST_EVENTS_S = 60.0  # Spark reports the end later than it happens, on a busy machine much later


class QueryWatch:
    """Collects the progress lines of one query; `take` gets those of `spark.listener.Lines`.

    Parameters
    ----------
    name
        The name of the query; lines of others are ignored.
    unit
        The time unit of its metrics.
    title
        The name to show; by default `name`.
    batches
        The number of micro-batches, if it is known.
    """

    def __init__(
        self, name: str, unit: str = "ms", title: str | None = None, batches: int | None = None
    ) -> None:
        self.name = name
        self.title = title or name
        self.unit = unit
        self.expected = batches
        self.lines: list[dict[str, Any]] = []  # of micro-batches, without their metrics
        self.metrics: dict[str, Any] | None = None  # the last ones
        self.ended = Event()

    def take(self, line: dict[str, Any]) -> None:
        """Take in a line; called from Spark's thread."""
        if line["name"] != self.name:
            return
        if line["event"] == "batch":
            self.metrics = line.pop("metrics") or self.metrics
            metrics = MetricsView(self.metrics)
            self.lines.append(line | {"slack": metrics.slack, "recall": metrics.charts.recall})
        elif line["event"] == "terminated":
            self.ended.set()

    @property
    def rows(self) -> int:
        """Rows that came in."""
        return sum(line["rows"] for line in self.lines)

    @property
    def results(self) -> int | None:
        """Results so far; None before the first metrics."""
        produced: int | None = MetricsView(self.metrics).produced
        return produced

    @property
    def late(self) -> int | None:
        """Late events so far; None before the first metrics."""
        metrics = MetricsView(self.metrics)
        return None if self.metrics is None else metrics.late_kept + metrics.late_dropped

    @property
    def last_rows_per_s(self) -> float | None:
        """Rows per second of the last micro-batch with rows."""
        last = next((line for line in reversed(self.lines) if line["rows"]), None)
        return last["rows"] / last["duration_ms"] * 1000 if last and last["duration_ms"] else None

    @property
    def rows_per_s(self) -> float | None:
        """Rows per second of work, without the first micro-batch, which starts everything."""
        later = self.lines[1:]
        ms = sum(line["duration_ms"] for line in later)
        rows = sum(line["rows"] for line in later)
        return rows / ms * 1000 if rows and ms else None

    @property
    def average_slack(self) -> float | None:
        """The average of K over micro-batches."""
        slacks = [line["slack"] for line in self.lines if line["slack"] is not None]
        return sum(slacks) / len(slacks) if slacks else None

    @property
    def seconds(self) -> float:
        """The duration of all micro-batches."""
        ms: int = sum(line["duration_ms"] for line in self.lines)
        return ms / 1000


# ---- start and wait


def follow(
    spark: SparkSession,
    start: Callable[[], StreamingQuery],
    watch: QueryWatch,
    listeners: Sequence[StreamingQueryListener],
    is_over: Callable[[], bool] = lambda: False,
) -> bool:
    """Start a query, wait until it ends, and return whether Ctrl-C or SIGTERM stopped it.

    Parameters
    ----------
    spark
        The session.
    start
        Starts the query.
    watch
        Receives the lines of the query, by one of the listeners.
    listeners
        Listeners to add while the query runs.
    is_over
        For a query that does not end by itself: polled, and the query is stopped when it is true.

    Raises
    ------
    FailedError
        If the query fails.
    """
    for listener in listeners:
        spark.streams.addListener(listener)
    try:
        with stop_signals() as stop:
            query = start()
            # Normally a listener reports the end; `isActive` is for the case that none does.
            over = False
            while not (stop.is_set() or over or watch.ended.wait(_WAKE_S)) and query.isActive:
                over = is_over()
            if stop.is_set() or over:
                query.stop()
            watch.ended.wait(_LAST_EVENTS_S)
    finally:
        for listener in listeners:
            spark.streams.removeListener(listener)
    failure = query.exception()
    if failure is not None and not stop.is_set():
        raise FailedError(error_text(failure)) from failure
    return stop.is_set()


@contextmanager
def stop_signals() -> Iterator[Event]:
    """Yield an event that Ctrl-C and SIGTERM set; Spark's own handler would abort its jobs."""
    stop = Event()

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()

    signals = (signal.SIGINT, signal.SIGTERM)
    old = [signal.signal(number, handle) for number in signals]
    try:
        yield stop
    finally:
        for number, handler in zip(signals, old, strict=True):
            signal.signal(number, handler)
