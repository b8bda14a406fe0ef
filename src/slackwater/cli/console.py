"""What the commands share: options, progress on stderr, results on stdout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
Seed = Annotated[int, typer.Option(help="The same seed makes the same data.")]
Item = TypeVar("Item")


def progress(items: Iterable[tuple[str, Item]], what: str, quiet: bool) -> Iterator[Item]:
    """Go through (title, item) behind a progress bar that vanishes; not if `quiet` or in a pipe."""
    from rich.console import Console
    from rich.progress import Progress

    steps = list(items)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(what, total=len(steps))
        for title, item in steps:
            bar.update(task, description=f"{what}: {title}")
            yield item
            bar.advance(task)


def out() -> Console:
    """The console for results; plain text in a pipe, colours by NO_COLOR and the terminal."""
    from rich.console import Console

    return Console()


def print_json(data: dict[str, Any]) -> None:
    """Print plain data for programs."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))


# ---- numbers for people


def count(value: float | None) -> str:
    """A whole number, or a dash."""
    return "–" if value is None else f"{value:,.0f}"


def percent(value: float | None) -> str:
    """A share, or a dash."""
    return "–" if value is None else f"{value:.1%}"


def duration(value: float | None, unit: str = "ms") -> str:
    """A time, or a dash.

    >>> duration(250), duration(2500), duration(2000), duration(2500, "us"), duration(None)
    ('250 ms', '2.5 s', '2 s', '2 ms', '–')
    """
    if value is None:
        return "–"
    ms = value / 1000 if unit == "us" else value
    return f"{ms:.0f} ms" if ms < 999.5 else f"{ms / 1000:.1f}".removesuffix(".0") + " s"
