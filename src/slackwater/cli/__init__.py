"""The command line. Commands import what they run, so that ``slackwater --help`` is fast."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer

from slackwater.cli import advise, dashboard, demo, explain, replay, run, verify
from slackwater.cli.console import EXIT_CODES, Command, CommandGroup, example
from slackwater.errors import SlackwaterError
from slackwater.jobs.local_spark import FailedError

_LAB_COMMANDS = ("bench", "lab")  # of slackwater-lab, another distribution


class _Commands(CommandGroup):
    """A bad request prints one line and exits with 2; a query that failed exits with 1."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name in _LAB_COMMANDS and self.get_command(ctx, name) is None:
            msg = (
                f"the command {name} is in slackwater-lab, which is not installed: in a clone of "
                "the repository, make setup or pip install ./lab"
            )
            raise SlackwaterError(msg)
        return super().resolve_command(ctx, args)

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
    no_args_is_help=True,
    epilog=EXIT_CODES,
    pretty_exceptions_enable=False,
)
_COMMANDS: dict[Callable[..., None], tuple[str, ...]] = {
    demo.demo: ("slackwater demo", "slackwater demo --embedded --seconds 30"),
    explain.explain: ('slackwater explain matches.toml --rate "quotes=1000/s, trades=200/s"',),
    run.run: ("slackwater run --check matches.toml", "slackwater run matches.toml"),
    advise.advise: (
        "slackwater advise matches.toml --target 0.99",
        'slackwater advise a.parquet b.parquet --on k --window "5 s"',
    ),
    replay.replay: (
        "slackwater replay matches.toml --recall 0.95 --out results.parquet",
        'slackwater replay a.csv b.csv --on k --window "5 s" --slack "1 s"',
    ),
    dashboard.dashboard: (
        "slackwater dashboard log/matches.jsonl",
        "slackwater dashboard log/matches.jsonl --follow",
    ),
    verify.verify: ("slackwater verify matches.toml", "slackwater verify matches.toml out/matches"),
}
for _command, _examples in _COMMANDS.items():
    app.command(cls=Command, epilog=example(*_examples))(_command)
for _plugin in sorted(entry_points(group="slackwater.commands"), key=lambda plugin: plugin.name):
    app.add_typer(_plugin.load(), name=_plugin.name)  # if slackwater-lab is installed


def _show_version(is_given: bool) -> None:
    if is_given:
        from importlib.metadata import version

        typer.echo(f"slackwater {version('slackwater')}")
        raise typer.Exit


@app.callback()
def _slackwater(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Join disordered streams with a quality target for the results."""


def main() -> None:
    """Run the command line."""
    app(prog_name="slackwater")
