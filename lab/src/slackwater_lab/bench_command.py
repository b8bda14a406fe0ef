"""``slackwater bench``: measure, and fail where a floor is missed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slackwater.cli.console import (
    Command,
    CommandGroup,
    Json,
    Seed,
    example,
    need_matplotlib,
    out,
    print_json,
    progress,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from slackwater.jobs.measurement import Measurement

Quick = Annotated[
    bool, typer.Option("--quick", help="Little data, nothing to reach: do the cases work?")
]

Out = Annotated[Path | None, typer.Option("--out", help="Write a chart to this folder.")]

app = typer.Typer(
    cls=CommandGroup,
    help="Measure the speed of this installation.",
    no_args_is_help=True,
    epilog=example("slackwater bench core --json > core.json"),
)
command = partial(app.command, cls=Command)


@app.callback()
def _bench() -> None:
    """Each benchmark is a command of its own."""


@command(epilog=example("slackwater bench core", "slackwater bench core --quick --json"))
def core(
    json: Json = False,
    seed: Seed = 1,
    quick: Quick = False,
) -> None:
    """Measure the join without Spark; exit with 1 if a limit is missed."""
    from slackwater_lab.benches.core import CASES
    from slackwater_lab.benches.timed import CoreOptions

    options = CoreOptions(seed, quick)
    cases = progress([(case.title, case) for case in CASES], "bench core", quiet=json)
    lines = [line for case in cases for line in case.measure(options)]
    _finish("bench core", lines, json, seed, quick)


@command(epilog=example("slackwater bench spark --json"))
def spark(
    json: Json = False,
    seed: Seed = 1,
    quick: Quick = False,
) -> None:
    """Measure the join on Spark beside Spark's own; takes about ten minutes."""
    from slackwater_lab.benches.spark import CASES, SparkOptions

    _measure("spark", CASES, SparkOptions, json, seed, quick)


@command(epilog=example("slackwater bench shards --quick"))
def shards(
    json: Json = False,
    seed: Seed = 1,
    quick: Quick = False,
) -> None:
    """Measure what one K for all shards costs on Spark; takes about four minutes."""
    from slackwater_lab.benches.shards import CASES
    from slackwater_lab.benches.spark import SparkOptions

    _measure("shards", CASES, SparkOptions, json, seed, quick)


@command(epilog=example("slackwater bench overload --quick"))
def overload(
    json: Json = False,
    seed: Seed = 1,
    quick: Quick = False,
) -> None:
    """Give the join three times what this machine can do; takes about six minutes."""
    from slackwater_lab.benches.overload import CASES, OverloadSetting

    _measure("overload", CASES, OverloadSetting, json, seed, quick)


@command(epilog=example("slackwater bench peers", "slackwater bench peers --out results"))
def peers(json: Json = False, seed: Seed = 1, quick: Quick = False, out: Out = None) -> None:
    """Measure beside Flink, Pathway, DuckDB and Polars; takes about ten minutes."""
    from slackwater_lab.benches.spark import SparkOptions
    from slackwater_lab.peers.bench import CASES, skipped

    _can_draw(out)
    for message in skipped():
        typer.echo(message, err=True)
    lines = _lines("peers", CASES, SparkOptions, json, seed, quick)
    if out is not None:
        from slackwater_lab.peers.chart import draw

        _draw(out / "peers.png", draw(lines))
    _finish("bench peers", lines, json, seed, quick)


@command(epilog=example("slackwater bench soak --events 50000000"))
def soak(
    json: Json = False,
    seed: Seed = 1,
    quick: Quick = False,
    events: Annotated[int, typer.Option(help="How many to join.", min=1)] = 1_000_000_000,
    out: Out = None,
) -> None:
    """Join a thousand million events; memory and recall must not drift. About 20 minutes."""
    from slackwater_lab.benches import soak as soak_bench

    _can_draw(out)
    record = soak_bench.soak(seed, soak_bench.QUICK_EVENTS if quick else events)
    if out is not None:
        _draw(out / "soak.png", soak_bench.figure(record))
    _finish("bench soak", list(soak_bench.lines(record, quick)), json, seed, quick)


@command(epilog=example("slackwater bench steady --minutes 5"))
def steady(
    json: Json = False,
    seed: Seed = 1,
    quick: Quick = False,
    minutes: Annotated[float, typer.Option(help="How long to hold the rate.", min=0.1)] = 30.0,
    out: Out = None,
) -> None:
    """Find the highest rate that Spark holds here, and hold it. About 40 minutes."""
    from tempfile import TemporaryDirectory

    from slackwater_lab.benches import steady as steady_bench

    _can_draw(out)
    with TemporaryDirectory() as folder:
        record = steady_bench.steady(seed, minutes, Path(folder), quick)
    if out is not None:
        _draw(out / "steady.png", steady_bench.figure(record))
    _finish("bench steady", list(steady_bench.lines(record, quick)), json, seed, quick)


def _can_draw(folder: Path | None) -> None:
    """Better now than after the run."""
    if folder is not None:
        need_matplotlib("the chart is drawn")


def _draw(path: Path, figure: Figure) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, facecolor="white", metadata={"Software": None})
    typer.echo(f"written: {path}", err=True)


def _measure(
    name: str, benchmarks: Sequence[Any], setting: Any, json: bool, seed: int, quick: bool
) -> None:
    lines = _lines(name, benchmarks, setting, json, seed, quick)
    _finish(f"bench {name}", lines, json, seed, quick)


def _lines(
    name: str, benchmarks: Sequence[Any], setting: Any, json: bool, seed: int, quick: bool
) -> list[Measurement]:
    """Run benchmarks that need a folder for their files."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        cases = progress([(case.title, case) for case in benchmarks], f"bench {name}", quiet=json)
        chosen = setting(seed, quick, Path(folder))
        return [line for case in cases for line in case.measure(chosen)]


def _finish(command: str, lines: Sequence[Measurement], json: bool, seed: int, quick: bool) -> None:
    """Show the figures; fail if one of them is not as promised."""
    from slackwater.jobs.measurement import sheet

    if json:
        print_json(sheet(f"{command} --quick" if quick else command, seed, lines))
    else:
        _print_table(lines)
    if not all(line.ok for line in lines):
        raise typer.Exit(1)


def _print_table(lines: Sequence[Measurement]) -> None:
    from rich import box
    from rich.table import Table

    from slackwater.jobs.measurement import amount

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))  # fits 80 columns
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("unit")
    table.add_column("promised", justify="right")
    table.add_column("")
    for line in lines:
        verdict = "" if not line.limit else "[green]ok[/]" if line.ok else "[red]missed[/]"
        table.add_row(line.name, amount(line.value), line.unit, line.limit, verdict)
    out().print(table)
