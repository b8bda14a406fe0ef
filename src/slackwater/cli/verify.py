"""``slackwater verify``: the output of a job against the exact results of what it read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slackwater.cli.console import JobArgument, Json, bar, out, print_json, print_measurements

if TYPE_CHECKING:
    from slackwater.jobs.verification import Verification


def verify(
    file: JobArgument,
    outputs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="OUTPUT",
            help="What the job wrote: Parquet, CSV or JSON files, or directories of them; "
            "by default those of its sink.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare what a job has written with the exact result over its recorded streams.

    Exits with 1 if results are extra or doubled, or if a share is below the goal's target.
    """
    from slackwater.jobs.job import read_job
    from slackwater.jobs.measurement import sheet
    from slackwater.jobs.verify import verify as verified

    job = read_job(file)
    with bar("verify", quiet=json) as show_step:
        verification = verified(job, outputs or (), show_step)
    if json:
        found = sheet("verify", None, verification.measurements)
        print_json(found | {"oracle": verification.oracle, "notes": verification.notes})
    else:
        _print(f"{job.name}: the output against the truth by {verification.oracle}", verification)
    if not verification.ok:
        raise typer.Exit(1)


def _print(title: str, verification: Verification) -> None:
    print_measurements(title, verification.measurements)
    console = out()
    for fault, rows in verification.examples.items():
        console.print(f"{fault}, the first ones:", highlight=False)
        for row in rows:
            console.print(f"  {_row(row)}", highlight=False, markup=False)
    for note in verification.notes:
        console.print(note, highlight=False, markup=False)
    console.print("[green]verified[/]" if verification.ok else "[red]not as promised[/]")


def _row(row: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items())
