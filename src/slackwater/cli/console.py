"""Parts that commands share: options, progress on stderr, results on stdout."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import floor
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from slackwater.jobs.measurement import Measurement

# ---- options that several commands have


def without_values(params: list[Any]) -> list[Any]:
    """Options of a command; help shows no value for those that take none."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class CommandGroup(TyperGroup):
    """The same for a group of commands."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options and arguments."""
        return without_values(super().get_params(ctx))


class Command(TyperCommand):
    """A command whose help does not show a value for options that take none."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options and arguments."""
        return without_values(super().get_params(ctx))


Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
Seed = Annotated[int, typer.Option(help="The seed of the generated data.")]
Inputs = Annotated[
    list[Path],
    typer.Argument(
        metavar="JOB|FILE", help="A job (TOML or SQL), or one Parquet, CSV or JSON file per stream."
    ),
]
JobArgument = Annotated[
    Path, typer.Argument(metavar="JOB", help="The job, a TOML or SQL file; see docs/running.md.")
]
Window = Annotated[str | None, typer.Option(help="For files: the window of each stream, '5 s'.")]
On = Annotated[str | None, typer.Option(help="For files: the key column, or several: k1,k2.")]
Where = Annotated[str | None, typer.Option(help="For files: a further condition.")]
Ts = Annotated[str, typer.Option(help="For files: the event time column.")]
Arrival = Annotated[
    str | None,
    typer.Option(help="For files: the arrival time column; the order of rows by default."),
]

Item = TypeVar("Item")
_BARS = "▁▂▃▄▅▆▇█"
EXIT_CODES = "Exit codes: 0 success, 1 failure or a missed limit, 2 a bad request."
_PATIENCE_S = 1.0  # work that takes less has no progress bar


def example(*lines: str) -> str:
    """Commands to show at the end of a command's help."""
    return "\n\n".join(["Examples:" if len(lines) > 1 else "Example:", *lines, EXIT_CODES])


def progress(items: Iterable[tuple[str, Item]], what: str, quiet: bool) -> Iterator[Item]:
    """Iterate over the items with a progress bar; not if `quiet` or in a pipe."""
    steps = list(items)
    with bar(what, quiet) as show:
        for done, (title, item) in enumerate(steps):
            show(title, done, len(steps))
            yield item


@contextmanager
def bar(what: str, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar on stderr after a second; not if `quiet` or in a pipe.

    Yields a function that takes the title of the current step, how many steps are done, and of how
    many.
    """
    from rich.console import Console

    console = Console(stderr=True)
    with _patient(console, hidden=quiet or not console.is_terminal) as shown:
        task = shown.add_task(what, total=None)

        def show(title: str, done: int, of: int) -> None:
            shown.update(task, description=f"{what}: {title}", completed=done, total=of)

        yield show


def _patient(console: Console, hidden: bool) -> Progress:
    """Return a progress display that appears only after a second."""
    from rich.console import RenderableType
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    class Patient(Progress):
        def get_renderables(self) -> Iterable[RenderableType]:
            if monotonic() - began >= _PATIENCE_S:
                yield from super().get_renderables()

    began = monotonic()
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    return Patient(*columns, console=console, transient=True, disable=hidden)


def need_matplotlib(what: str) -> None:
    """Raise if matplotlib is not installed; before the work, not after it."""
    from importlib.util import find_spec

    from slackwater.errors import SlackwaterError

    if find_spec("matplotlib") is None:
        msg = f"{what} with matplotlib, which is not installed: pip install matplotlib"
        raise SlackwaterError(msg)


def out() -> Console:
    """Return the console for results: plain text in a pipe; NO_COLOR is respected."""
    from rich.console import Console

    return Console()


def print_measurements(title: str, measurements: Sequence[Measurement]) -> None:
    """Print a title and a table of measurements; those outside their limits are marked."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, show_header=False, padding=(0, 1, 0, 0))
    for justify in ("left", "right", "left", "left"):
        table.add_column(justify=justify)
    for one in measurements:
        unit = "" if one.unit == "share" else one.unit
        table.add_row(one.name, shown(one), unit, _verdict(one))
    console = out()
    console.print(title, highlight=False)
    console.print(table)


def _verdict(measured: Measurement) -> str:
    if measured.ok:
        return "[green]ok[/]" if measured.limit else ""
    is_share = measured.unit == "share" and measured.floor is not None
    limit = f">= {100 * (measured.floor or 0):.6g}%" if is_share else measured.limit
    return f"[red]should be {limit}[/]"


def shown(measured: Measurement) -> str:
    """Format the value of a measurement."""
    from slackwater.jobs.measurement import amount

    if measured.unit != "share":
        return amount(measured.value)
    return f"{floor(round(1e4 * measured.value, 6)) / 1e4:.2%}"  # no 100% but all


def print_json(data: dict[str, Any]) -> None:
    """Print plain data for programs."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))


# ---- numbers for people


def count(value: float | None) -> str:
    """Format a whole number; None is a dash."""
    return "–" if value is None else f"{value:,.0f}"


def percent(value: float | None) -> str:
    """Format a share; None is a dash."""
    return "–" if value is None else f"{value:.1%}"


def bars(values: Sequence[float], low: float, high: float) -> str:
    """Draw a chart in one line of text.

    >>> bars([0, 1, 2, 7], 0, 7)
    '▁▂▃█'
    """
    span = (high - low) or 1
    return "".join(_BARS[round(7 * min(max((v - low) / span, 0), 1))] for v in values)


def duration(value: float | None, unit: str = "ms") -> str:
    """Format a time; None is a dash.

    >>> duration(250), duration(2500), duration(2000), duration(2500, "us"), duration(None)
    ('250 ms', '2.5 s', '2 s', '2 ms', '–')
    """
    if value is None:
        return "–"
    ms = value / 1000 if unit == "us" else value
    return f"{ms:.0f} ms" if ms < 999.5 else f"{ms / 1000:.1f}".removesuffix(".0") + " s"
