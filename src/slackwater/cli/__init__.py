"""The command line. Commands import what they run: ``slackwater --help`` answers at once."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from slackwater.cli import advise, bench, dashboard, demo, lab, run
from slackwater.cli.local_spark import FailedError
from slackwater.errors import SlackwaterError


class _Commands(TyperGroup):
    """A bad request is told in one line and exits with 2; a query that failed exits with 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SlackwaterError as error:
            typer.echo(f"slackwater: {error}", err=True)
            raise typer.Exit(2) from None
        except FailedError as error:
            for text in (f"slackwater: {error}", *getattr(error, "__notes__", ())):
                typer.echo(text, err=True)
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=_Commands,
    help="Joins over disordered streams, with the result quality you ask for.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("advise")(advise.advise)
app.command("dashboard")(dashboard.dashboard)
app.add_typer(bench.app, name="bench")
app.add_typer(lab.app, name="lab")


def main() -> None:
    """Run the command that was asked for."""
    app(prog_name="slackwater")
