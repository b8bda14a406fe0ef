"""A dashboard beside a command: where it listens, and how long it stays open."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from slackwater.dashboard.control import Control
    from slackwater.dashboard.history import History
    from slackwater.dashboard.server import Dashboard

PORT = 8177  # or any free port, unless one is given

ShowDashboard = Annotated[
    bool, typer.Option("--dashboard", help="Show the run on a page while it goes on.")
]


@contextmanager
def serving(
    history: History,
    *,
    host: str | None = None,
    port: int | None = None,
    token: str | None = None,
    control: Control | None = None,
    no_control: str | None = None,
    is_live: bool = True,
) -> Iterator[Dashboard]:
    """Serve the page of `history` until the block ends."""
    from slackwater.dashboard.server import LOOPBACK, Content, Dashboard
    from slackwater.errors import QueryError
    from slackwater.metrics.prometheus import exposition

    def listening(port: int) -> Dashboard:
        return Dashboard(
            history,
            host=host or LOOPBACK,
            port=port,
            token=token,
            control=control,
            no_control=no_control or Content.no_control,
            is_live=is_live,
            exposition=exposition,
        )

    try:
        dashboard = listening(PORT if port is None else port)
    except QueryError:
        if port is not None:
            raise
        dashboard = listening(0)
    with dashboard:
        yield dashboard


@contextmanager
def beside(
    is_wanted: bool,
    control: Control | None = None,
    no_control: str | None = None,
    may_stay: bool = True,
) -> Iterator[History | None]:
    """Serve the page of a run that happens in the block and adds its lines to the history.

    When the run is over, the page stays until Ctrl-C, if stderr is a terminal.
    """
    from slackwater.dashboard.history import History

    if not is_wanted:
        yield None
        return
    history = History()
    with serving(history, control=control, no_control=no_control) as dashboard:
        typer.echo(f"dashboard: {dashboard.url}", err=True)
        yield history
        if may_stay and sys.stderr.isatty():
            with until_stopped():
                typer.echo(f"dashboard: stays at {dashboard.url} until Ctrl-C", err=True)


@contextmanager
def until_stopped() -> Iterator[None]:
    """Run the block, then wait for Ctrl-C or SIGTERM; a signal may come during the block."""
    from slackwater.jobs.watch import stop_signals

    with stop_signals() as stop:
        yield
        while not stop.wait(0.2):
            pass
