"""The live display of running queries: a small table on stderr."""

from __future__ import annotations

import os
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING

from slackwater.cli.console import count, duration, percent
from slackwater.metrics.progress import MetricsView

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from slackwater.jobs.watch import QueryWatch


class Screen:
    """The live display: queries and the current activity; nothing if `quiet` or in a pipe."""

    def __init__(self, quiet: bool) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        # a descriptor of its own: stderr is redirected while the JVM starts
        self._file = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="replace")
        self._console = Console(file=self._file)
        self._spinner = Spinner("dots")
        self._watches: list[QueryWatch] = []
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
        """Show the current activity."""
        self._doing, self._since = what, monotonic()

    def follow(self, watch: QueryWatch) -> None:
        """Show another query."""
        self._watches.append(watch)

    def _render(self) -> Group:
        from rich.console import Group

        self._spinner.update(text=f"{self._doing}, {monotonic() - self._since:.0f} s")
        return Group(*([_table(self._watches)] if self._watches else []), self._spinner)


def _table(watches: Sequence[QueryWatch]) -> Table:
    from rich import box
    from rich.table import Table

    targets = [target_text(watch) for watch in watches if target_text(watch)]
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),  # fits 80 columns
        caption="\n".join(targets) or None,
        caption_justify="left",
    )
    table.add_column("", no_wrap=True)
    for name in ("batch", "rows in", "rows/s", "results", "late", "K", "recall"):
        table.add_column(name, justify="right", no_wrap=True)
    for watch in watches:
        table.add_row(*cells(watch))
    return table


def cells(watch: QueryWatch) -> list[str]:
    """Return the row of a query."""
    done = f"{len(watch.lines)}" + (f"/{watch.expected}" if watch.expected else "")
    metrics = MetricsView(watch.metrics)
    return [
        watch.title,
        done,
        f"{watch.rows:,}",
        count(watch.last_rows_per_s),
        count(watch.results),
        count(watch.late),
        duration(metrics.slack, watch.unit),
        percent(metrics.recall),
    ]


def target_text(watch: QueryWatch) -> str:
    """Return the recall so far beside its target; empty without a target."""
    metrics = MetricsView(watch.metrics)
    if metrics.target is None:
        return ""
    so_far = percent(metrics.recall)
    return f"{watch.title}: recall {so_far} so far, the target is {100 * metrics.target:.6g}%"
