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
