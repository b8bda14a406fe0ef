"""A streaming query while it runs: what it has told so far, as a small table on stderr."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any

from slackwater.cli.console import count, duration, percent
from slackwater.jobs.local_spark import FailedError, explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener
    from pyspark.sql.streaming.query import StreamingQuery
    from rich.console import Group
    from rich.table import Table

_WAKE_S = 0.2
_LAST_EVENTS_S = 10.0


class Watch:
    """What one query has told; `take` gets the lines of `spark.listener.Lines`.

    Parameters
    ----------
    name
        The name of the query; lines of others are left alone.
    unit
        The time unit of its metrics.
    title
        What people call it.
    batches
        How many micro-batches there will be, if that is known.
    """

    def __init__(
        self, name: str, unit: str = "ms", title: str | None = None, batches: int | None = None
    ) -> None:
        self.name = name
        self.title = title or name
        self.unit = unit
        self.expected = batches
        self.lines: list[dict[str, Any]] = []  # those of micro-batches, without their metrics
        self.metrics: dict[str, Any] | None = None  # the last ones
        self.ended = Event()

    def take(self, line: dict[str, Any]) -> None:
        """Take in a line; called from Spark's thread."""
        if line["name"] != self.name:
            return
        if line["event"] == "batch":
            self.metrics = line.pop("metrics") or self.metrics
            told = self.metrics or {}
            picture = told.get("picture") or {}
            self.lines.append(line | {"slack": told.get("slack"), "recall": picture.get("recall")})
        elif line["event"] == "terminated":
            self.ended.set()

    @property
    def rows(self) -> int:
        """Rows that came in."""
        return sum(line["rows"] for line in self.lines)

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
        """How long all micro-batches took."""
        ms: int = sum(line["duration_ms"] for line in self.lines)
        return ms / 1000

    @property
    def asked(self) -> str | None:
        """Which recall is asked for, beside the one so far; None: none is."""
        told = self.metrics or {}
        if told.get("target") is None:
            return None
        so_far = percent(told["recall"])
        return f"{self.title}: recall {so_far} so far, {100 * told['target']:.6g}% is asked for"

    def cells(self) -> list[str]:
        """The row of the table."""
        done = f"{len(self.lines)}" + (f"/{self.expected}" if self.expected else "")
        last = next((line for line in reversed(self.lines) if line["rows"]), None)
        speed = last["rows"] / last["duration_ms"] * 1000 if last and last["duration_ms"] else None
        told = self.metrics or {}
        late = told["late_kept"] + told["late_dropped"] if told else None
        return [
            self.title,
            done,
            f"{self.rows:,}",
            count(speed),
            count(told.get("produced")),
            count(late),
            duration(told.get("slack"), self.unit),
            percent(told.get("recall")),
        ]


class NativeWatch(Watch):
    """The same for a query of Spark's own, which tells less of itself."""

    def cells(self) -> list[str]:
        """The row of the table; Spark does not know what it has lost."""
        cells = super().cells()
        cells[4] = count(self.total("results"))
        cells[5] = count(self.total("dropped"))
        return cells

    def total(self, name: str) -> int:
        """The sum of what each micro-batch told."""
        return sum(line[name] for line in self.lines)


class Screen:
    """The live display: queries and what is going on; nothing if `quiet` or in a pipe."""

    def __init__(self, quiet: bool) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        # a descriptor of its own: that of stderr points elsewhere while the JVM starts
        self._file = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="replace")
        self._console = Console(file=self._file)
        self._spinner = Spinner("dots")
        self._watches: list[Watch] = []
        self._doing = ""
        self._since = monotonic()
        self._is_shown = self._console.is_terminal and not quiet
        self._live = Live(
            console=self._console,
            transient=True,
            refresh_per_second=4,
            get_renderable=self._render,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Screen:
        if self._is_shown:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            self._live.stop()
        self._file.close()

    def doing(self, what: str) -> None:
        """Say what is going on."""
        self._doing, self._since = what, monotonic()

    def follow(self, watch: Watch) -> None:
        """Show one more query."""
        self._watches.append(watch)

    def _render(self) -> Group:
        from rich.console import Group

        self._spinner.update(text=f"{self._doing}, {monotonic() - self._since:.0f} s")
        return Group(*([_table(self._watches)] if self._watches else []), self._spinner)


def _table(watches: Sequence[Watch]) -> Table:
    from rich import box
    from rich.table import Table

    asked = [watch.asked for watch in watches if watch.asked is not None]
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),  # fits 80 columns
        caption="\n".join(asked) or None,
        caption_justify="left",
    )
    table.add_column("", no_wrap=True)
    for name in ("batch", "rows in", "rows/s", "results", "late", "K", "recall"):
        table.add_column(name, justify="right", no_wrap=True)
    for watch in watches:
        table.add_row(*watch.cells())
    return table


# ---- waiting


def follow(
    spark: SparkSession,
    start: Callable[[], StreamingQuery],
    watch: Watch,
    listeners: Sequence[StreamingQueryListener],
    is_over: Callable[[], bool] = lambda: False,
) -> bool:
    """Start a query and wait until it ends; whether it was stopped (Ctrl-C or SIGTERM).

    A query that does not end by itself is ended when `is_over`, which is asked now and then.

    A query that fails raises `FailedError`.
    """
    for listener in listeners:
        spark.streams.addListener(listener)
    try:
        with asking() as asked:
            query = start()
            # Spark tells the end to the listeners, normally; `isActive` is for the other days.
            over = False
            while not (asked.is_set() or over or watch.ended.wait(_WAKE_S)) and query.isActive:
                over = is_over()
            if asked.is_set() or over:
                query.stop()
            watch.ended.wait(_LAST_EVENTS_S)
    finally:
        for listener in listeners:
            spark.streams.removeListener(listener)
    failure = query.exception()
    if failure is not None and not asked.is_set():
        raise FailedError(explained(failure)) from failure
    return asked.is_set()


@contextmanager
def asking() -> Iterator[Event]:
    """While the block runs, signals only ask: Spark's own handler would break off its jobs."""
    asked = Event()

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()

    signals = (signal.SIGINT, signal.SIGTERM)
    old = [signal.signal(number, ask) for number in signals]
    try:
        yield asked
    finally:
        for number, handler in zip(signals, old, strict=True):
            signal.signal(number, handler)
