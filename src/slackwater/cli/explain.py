"""``slackwater explain``: what a job will do, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.console import JobArgument, Json, out, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slackwater.jobs.explain import Section


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
    """Describe in words what a job does, what it keeps and what may change; without Spark."""
    from slackwater.jobs.explain import explain as explanation_of
    from slackwater.jobs.job import read_job
    from slackwater.jobs.measurement import sheet

    job = read_job(file)
    explanation = explanation_of(job, rate, delay)
    if json:
        facts = sheet("explain", None, explanation.measurements)
        print_json(facts | {"plan": explanation.plan})
    else:
        _print(job.name, explanation.sections)


def _print(title: str, sections: Sequence[Section]) -> None:
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
