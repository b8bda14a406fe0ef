"""The input and the output of an experiment: its options; tables, words and figures.

>>> table = Table("Speed", ("goal",), (Column("average K", "ms"),), [(("ours",), [50.0])])
>>> table.lines()
[Measurement(name='ours: average K', value=50.0, unit='ms', floor=None, ceiling=None)]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from slackwater.jobs.measurement import Measurement, amount
from slackwater.query.goals import Goal, NoSlack, Recall
from slackwater.query.units import Duration
from slackwater_lab.datasets import Recorded, dataset, get
from slackwater_lab.measure import GoalRun, Job
from slackwater_lab.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_QUICK_MINUTES = 0.75
_QUICK_OVER = "10 s"

Cell = float | str | None  # a measured number, or one from a paper
Value = TypeVar("Value")


@dataclass(frozen=True)
class Column:
    """Of a table; its numbers may have limits, which may be in other columns."""

    name: str
    unit: str = ""
    floor: float | str | None = None  # a number, or the name of a column; so is a ceiling
    ceiling: float | str | None = None
    title: str = ""  # of the column on a page; by default its name


@dataclass(frozen=True)
class Table:
    """Rows of labels and cells."""

    title: str
    labels: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: list[tuple[tuple[str, ...], list[Cell]]]

    def header(self) -> list[str]:
        """Names of all columns."""
        return [*self.labels, *(column.title or column.name for column in self.columns)]

    def text(self) -> list[list[str]]:
        """All cells for people."""
        return [
            [*labels, *(shown(cell, c.unit) for cell, c in zip(cells, self.columns, strict=True))]
            for labels, cells in self.rows
        ]

    def lines(self) -> list[Measurement]:
        """The measured numbers."""
        lines = []
        for labels, cells in self.rows:
            by_name = {c.name: cell for c, cell in zip(self.columns, cells, strict=True)}
            for column in self.columns:
                cell = by_name[column.name]
                if isinstance(cell, int | float):
                    name = f"{', '.join(filter(None, labels))}: {column.name}"
                    limits = (_limit(limit, by_name) for limit in (column.floor, column.ceiling))
                    lines.append(Measurement(name, round(cell, 6), column.unit, *limits))
        return lines


def _limit(given: float | str | None, by_name: dict[str, Cell]) -> float | None:
    """A number, or the number in the column of that name."""
    found = by_name.get(given) if isinstance(given, str) else given
    return found if isinstance(found, int | float) else None


def shown(cell: Cell, unit: str) -> str:
    """A cell for people.

    >>> [shown(c, u) for c, u in ((0.98765, "share"), (1250.0, "ms"), (40, "ms"), (None, ""))]
    ['0.988', '1.25 s', '40 ms', '–']
    """
    if cell is None or isinstance(cell, str):
        return "–" if cell is None else cell
    if unit == "share":
        return f"{cell:.3f}"
    if unit == "ms":
        return f"{cell / 1000:.4g} s" if cell >= 1000 else f"{cell:.3g} ms"
    return f"{amount(cell)} {unit}".rstrip()


@dataclass
class Findings:
    """The results of an experiment."""

    tables: list[Table]
    words: list[str] = field(default_factory=list)  # where ours and the paper's differ, and why
    figures: dict[str, Figure] = field(default_factory=dict)  # by the end of their file's name

    def lines(self) -> list[Measurement]:
        """All measured numbers."""
        return [line for table in self.tables for line in table.lines()]


@dataclass(frozen=True)
class Setting:
    """The options of an experiment; `quick` uses little data, to see whether it works."""

    sweep: Sweep
    seed: int
    quick: bool
    recordings: Path | None = None  # the folder of recorded streams that was given

    @property
    def over(self) -> Duration:
        """P."""
        return _QUICK_OVER if self.quick else "1 minute"

    def seeds(self, n: int) -> list[int]:
        """So many seeds."""
        return [self.seed + i for i in range(1 if self.quick else n)]

    def some(self, values: Sequence[Value]) -> Sequence[Value]:
        """All values, or the first and the last."""
        return [values[0], values[-1]] if self.quick and len(values) > 2 else values

    def recall(self, gamma: float, **options: Any) -> Recall:
        """A goal of recall over P."""
        return Recall(gamma, **{"over": self.over} | options)

    def job(self, data: str, goal: Goal, seed: int | None = None, **options: Any) -> Job:
        """A run; by default recall is measured over P."""
        minutes = _QUICK_MINUTES if self.quick else dataset(data).minutes
        seed = self.seed if seed is None else seed
        given: dict[str, Any] = {"minutes": minutes, "over": self.over} | options
        return Job(data, seed, goal=goal, **given)

    def run(self, jobs: Sequence[Job]) -> list[GoalRun]:
        """Run them."""
        return self.sweep.run(jobs)

    def recorded(self, data: str) -> Recorded:
        """A dataset itself; it is made if it is not there."""
        job = self.job(data, NoSlack())
        self.sweep.make([job])
        return get(job.dataset, job.seed, job.minutes, self.sweep.folder)


@dataclass(frozen=True)
class Experiment:
    """A question, and the function that answers it."""

    name: str
    source: str  # where the question is from
    title: str
    run: Callable[[Setting], Findings]
