"""``slackwater lab``: the papers' experiments and our own."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.console import (
    Command,
    CommandGroup,
    Json,
    Seed,
    bar,
    example,
    need_matplotlib,
    out,
    print_json,
)

if TYPE_CHECKING:
    from slackwater_lab.experiment import Findings

app = typer.Typer(
    cls=CommandGroup,
    help="Repeat the papers' experiments.",
    no_args_is_help=True,
    epilog=example("slackwater lab list", "slackwater lab run kim --quick"),
)
command = partial(app.command, cls=Command)

_CORES = 2  # each runs one replay at a time


@app.callback()
def _lab() -> None:
    """Refuse early what cannot be drawn."""
    need_matplotlib("the lab draws")


@command("list", epilog=example("slackwater lab list --json"))
def show_list(json: Json = False) -> None:
    """Show which experiments there are."""
    from rich import box
    from rich.table import Table

    from slackwater_lab.catalogue import EXPERIMENTS

    if json:
        names = [
            {"name": e.name, "source": e.source, "title": e.title} for e in EXPERIMENTS.values()
        ]
        print_json({"experiments": names})
        return
    table = Table("name", "from", "what", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for experiment in EXPERIMENTS.values():
        table.add_row(experiment.name, experiment.source, experiment.title)
    out().print(table)


@command("run", epilog=example("slackwater lab run kim --quick"))
def run(
    name: Annotated[str, typer.Argument(help="An experiment; see `slackwater lab list`.")],
    json: Json = False,
    seed: Seed = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="Little data, few values: does it work?")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Write NAME.md and its figures to this folder.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Recorded streams: a folder for `real` and `kinds`, a file for `debs`."),
    ] = None,
) -> None:
    """Run an experiment; ours beside the paper's numbers."""
    from slackwater.jobs.local_spark import local_spark
    from slackwater.jobs.measurement import sheet
    from slackwater_lab.catalogue import experiment
    from slackwater_lab.datasets import default_folder
    from slackwater_lab.experiment import Setting
    from slackwater_lab.page import write
    from slackwater_lab.sweep import Sweep

    chosen = experiment(name)
    command = f"lab run {name}{' --quick' if quick else ''}"
    with local_spark(f"lab {name}", _CORES, {}) as spark, bar(name, json) as show:
        sweep = Sweep(spark, default_folder(), show)
        findings = chosen.run(Setting(sweep, seed, quick, data))
    if json:
        print_json(sheet(command, seed, findings.lines()))
    else:
        _print(findings)
    if folder is not None:
        page = write(folder, chosen, findings, f"slackwater {command} --seed {seed}")
        typer.echo(f"written: {page}", err=True)


def _print(findings: Findings) -> None:
    from rich import box
    from rich.table import Table

    for found in findings.tables:
        table = Table(title=found.title, title_justify="left", box=box.SIMPLE_HEAD)
        for label in found.labels:
            table.add_column(label)
        for column in found.columns:
            table.add_column(column.title or column.name, justify="right")
        for row in found.text():
            table.add_row(*row)
        out().print(table)
    for sentence in findings.words:
        out().print(sentence)
