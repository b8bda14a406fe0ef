"""``slackwater explain``: what a job will do, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.console import JobArgument, Json, out, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slackwater.jobs.figures import Line
    from slackwater.jobs.job import JobFile
    from slackwater.jobs.state_estimate import Kept
    from slackwater.spark.partitioning import Partitioning


def explain(
    file: JobArgument,
    rate: Annotated[
        str | None,
        typer.Option(help='Rows a second, "quotes=1000/s,trades=30/min": how much is kept?'),
    ] = None,
    delay: Annotated[
        str | None, typer.Option(help='The largest delay that you expect, "10 s".')
    ] = None,
    json: Json = False,
) -> None:
    """Tell in words what a job will do, what it keeps and what may change; without Spark."""
    from slackwater.jobs.explain import kind_of, may_change, sections
    from slackwater.jobs.figures import sheet
    from slackwater.jobs.job import read_job
    from slackwater.jobs.state_estimate import kept, rates
    from slackwater.query.units import to_units

    job = read_job(file)
    query = job.query
    partitioning = _partitioning(job)
    copies = [partitioning.shards if partitioning.is_copied(s) else 1 for s in _streams(job)]
    per_s = {} if rate is None else rates(rate, query.names)
    late = None if delay is None else to_units(delay, query.unit, "--delay")
    estimate = kept(job, copies, per_s, late)
    told = sections(job, partitioning)
    told.insert(6, ("What is kept", _kept_in_words(job, estimate)))
    if json:
        facts = {
            "kind": kind_of(query),
            "streams": list(query.names),
            "partitioning": str(partitioning),
            "copied": [n for s, n in enumerate(query.names) if partitioning.is_copied(s)],
            "may_change": may_change(query),
            "words": dict(told),
        }
        print_json(sheet("explain", None, _lines(estimate)) | {"plan": facts})
        return
    _print(job.name, told)


def _streams(job: JobFile) -> range:
    return range(len(job.query.streams))


def _partitioning(job: JobFile) -> Partitioning:
    """As it would be in a new checkpoint on this machine."""
    import os

    from slackwater.jobs.checkpoint import Checkpoint
    from slackwater.jobs.plan import PARTITIONS, settings
    from slackwater.spark.partitioning import Partitioning

    saved = Checkpoint(job.checkpoint, job.file).saved
    partitions = settings(job, saved).get(PARTITIONS) or job.cores or os.cpu_count() or 1
    shards = 1 if job.query.single_shard else job.options["shards"] or int(partitions)
    return Partitioning.of(job.query, shards)


def _kept_in_words(job: JobFile, estimate: Sequence[Kept]) -> list[str]:
    from slackwater.jobs.state_estimate import STATE_BY_ROW
    from slackwater.query.aggregate import AggregateQuery
    from slackwater.query.window import WindowQuery

    query = job.query
    told = ["Events that K holds back, and those in the windows"]
    if isinstance(query, WindowQuery):
        told[0] += "."
    else:
        retention = "the largest lateness so far" if query.retention is None else query.retention
        waits = "awaited" if isinstance(query, AggregateQuery) else "kept beyond their window"
        told[0] += f"; they are {waits} for {retention} (retention)."
    for of in estimate:
        size = "columns unknown" if of.row_bytes is None else f"{of.row_bytes} bytes a row"
        how_long = "as long as delays last" if of.seconds is None else f"{of.seconds:g} s"
        copies = f", {of.copies} copies" if of.copies > 1 else ""
        line = f"{of.stream}: {how_long}; {size} and {of.bookkeeping} beside it{copies}"
        if of.rows is not None:
            line += f"; {of.rows:,.0f} rows"
        if of.memory is not None and of.state is not None:
            line += f", {_bytes(of.memory)} of memory at least, {_bytes(of.state)} of state"
        told.append(line + ".")
    if any(of.memory is not None for of in estimate):
        told.append(
            f"State takes {STATE_BY_ROW:g} of a row, as measured with rows of four numbers; text "
            "of unknown length counts 20 bytes."
        )
    else:
        told.append("--rate and --delay turn this into bytes.")
    return told


def _lines(estimate: Sequence[Kept]) -> list[Line]:
    from slackwater.jobs.figures import Line

    lines = []
    for of in estimate:
        figures = {
            ("kept for", "s"): of.seconds,
            ("rows kept", "rows"): of.rows,
            ("row", "bytes"): of.row_bytes,
            ("beside the row", "bytes"): of.bookkeeping,
            ("memory", "bytes"): of.memory,
            ("state", "bytes"): of.state,
        }
        lines += [
            Line(f"{of.stream}: {name}", round(value, 3), unit)
            for (name, unit), value in figures.items()
            if value is not None
        ]
    return lines


def _bytes(n: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} GB"


def _print(title: str, sections: Sequence[tuple[str, list[str]]]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console = out()
    console.print(Text(title, style="bold"))
    for name, sentences in sections:
        if not sentences:
            continue
        console.print(Text(f"\n{name}", style="bold"))
        for sentence in sentences:
            indent = 2 + len(sentence) - len(sentence.lstrip())
            console.print(Padding(Text(sentence.strip()), (0, 0, 0, indent), expand=False))
