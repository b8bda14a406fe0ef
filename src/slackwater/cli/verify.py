"""``slackwater verify``: what a job has written, against the exact join of what it read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slackwater.cli.console import JobArgument, Json, bar, out, print_figures, print_json

if TYPE_CHECKING:
    from slackwater.jobs.job import JobFile
    from slackwater.jobs.verify import Judgement

_STEPS = ("reading the streams", "computing the truth", "reading the output", "comparing")


def verify(
    file: JobArgument,
    outputs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="OUTPUT",
            help="What the job wrote: Parquet, CSV or JSON files, or directories of them; "
            "that of its sink if left out.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare what a job has written with the exact result over its recorded streams.

    Exits with 1 if results are extra or doubled, or if the recall is below the goal's target.
    """
    from slackwater.jobs.job import read_job
    from slackwater.jobs.measurement import sheet
    from slackwater.jobs.recordings import of_job
    from slackwater.jobs.sink_files import columns_of, read_output
    from slackwater.jobs.verify import judge
    from slackwater.query.join import JoinQuery
    from slackwater.testing.oracle import exact

    job = read_job(file)
    paths = outputs or [_of_sink(job)]
    with bar("verify", quiet=json) as tell:
        tell(_STEPS[0], 0, len(_STEPS))
        recording = of_job(job)
        tell(_STEPS[1], 1, len(_STEPS))
        true = exact(job.query, recording.tables)
        tell(_STEPS[2], 2, len(_STEPS))
        marks_late = isinstance(job.query, JoinQuery) and job.query.late == "emit"
        columns = columns_of(job.sink, true.table, marks_late and job.query.select != "count")
        found = read_output(paths, job.sink, columns)
        tell(_STEPS[3], 3, len(_STEPS))
        judgement = judge(job.query, true, columns, found)
    if job.options["at_end"] == "hold":
        judgement.notes.append(
            'With at_end = "hold" events may still wait: their results count as missing.'
        )
    if json:
        told = sheet("verify", None, judgement.lines)
        print_json(told | {"oracle": true.oracle, "notes": judgement.notes})
    else:
        _print(f"{job.name}: the output against the truth by {true.oracle}", judgement)
    if not all(line.ok for line in judgement.lines):
        raise typer.Exit(1)


def _of_sink(job: JobFile) -> Path:
    from slackwater.jobs.toml_table import JobFileError

    if job.sink.path is None or "://" in job.sink.path:
        msg = f"{job.file}: [sink] has no files on this machine; name the output"
        raise JobFileError(msg)
    return Path(job.sink.path)


def _print(title: str, judgement: Judgement) -> None:
    print_figures(title, judgement.lines)
    console = out()
    for fault, rows in judgement.examples.items():
        console.print(f"{fault}, the first ones:", highlight=False)
        for row in rows:
            console.print(f"  {_row(row)}", highlight=False, markup=False)
    for note in judgement.notes:
        console.print(note, highlight=False, markup=False)
    is_good = all(line.ok for line in judgement.lines)
    console.print("[green]verified[/]" if is_good else "[red]not as promised[/]")


def _row(row: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items())
