"""``slackwater dashboard``: a metrics log on a page, complete or while it grows."""

from __future__ import annotations

import sys
import webbrowser
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.console import Json, print_json

if TYPE_CHECKING:
    from slackwater.dashboard.follow import LogFile
    from slackwater.dashboard.history import History


def dashboard(
    file: Annotated[Path, typer.Argument(help="A metrics log, JSON lines; see docs/running.md.")],
    follow: Annotated[
        bool, typer.Option("--follow", help="Show what is added to the log, too.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Where to listen; other machines need a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="By default 8177, or any free port.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="The token that a browser must send; generated where one is needed."),
    ] = None,
    control: Annotated[
        Path | None, typer.Option(help="The control directory of the query, to command it.")
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    json: Json = False,
) -> None:
    """Show a recorded run, or one that is under way, on a page."""
    from slackwater.cli.dashboard_server import serving, until_stopped
    from slackwater.dashboard.control import CommandFiles, Control
    from slackwater.dashboard.follow import Follower, LogFile
    from slackwater.dashboard.history import History

    history, log = History(), LogFile(file)
    _read(log, history, follow)
    served = serving(
        history,
        host=host,
        port=port,
        token=token,
        control=None if control is None else Control(CommandFiles(control).set),
        no_control=(
            "To change the target here, name the control directory of the query with --control."
            if follow
            else "This run was recorded; its target cannot be changed any more."
        ),
        is_live=follow,
    )
    followed = Follower(log, history.take) if follow else nullcontext()
    with served as page, followed, until_stopped():
        if json:
            queries = [query["name"] for query in history.known()["queries"]]
            print_json({"command": "dashboard", "url": page.url, "queries": queries})
            sys.stdout.flush()
        else:
            typer.echo(f"dashboard: {page.url}\nCtrl-C ends it.", err=True)
        if not no_open and sys.stdout.isatty():
            webbrowser.open(page.url)


def _read(log: LogFile, history: History, follow: bool) -> None:
    from slackwater.errors import DataError

    count = 0
    try:
        for line in log.lines():
            history.take(line)
            count += 1
    except OSError as error:
        if follow and isinstance(error, FileNotFoundError):
            return  # it is created when the query starts
        msg = f"{log.path} cannot be read: {error.strerror}"
        raise DataError(msg) from error
    if log.skipped and not count:
        msg = f"{log.path} must be a metrics log, JSON lines with an event; got something else"
        raise DataError(msg)
    if not count and not follow:
        msg = f"{log.path} has no lines; --follow waits for them"
        raise DataError(msg)
    if log.skipped:
        typer.echo(
            f"slackwater: {log.skipped} lines of {log.path} were skipped",
            err=True,
        )
