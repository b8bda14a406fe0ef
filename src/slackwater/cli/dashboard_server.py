"""A dashboard beside a command: where it listens, and how long it stays."""

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

PORT = 8177  # or any that is free, unless one was asked for

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
    """The page of what `history` knows, until the block ends."""
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
    """The page of a run that happens in the block, which hands its lines to the history.

    When the run is over, the page stays until Ctrl-C if somebody is there to press it.
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
            with until_asked():
                typer.echo(f"dashboard: stays at {dashboard.url} until Ctrl-C", err=True)


@contextmanager
def until_asked() -> Iterator[None]:
    """Stay until Ctrl-C or SIGTERM, which may come as soon as the block says that it can."""
    from slackwater.cli.watch import asking

    with asking() as asked:
        yield
        while not asked.wait(0.2):
            pass
