"""Runs that vary one thing: a table of what came out, and the diagrams of it.

What a case is measured by is pooled over its runs (seeds): Φ over all measurements, others as
means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from slackwater_lab.experiment import Cell, Column, Setting, Table
from slackwater_lab.measure import GoalRun, Job
from slackwater_lab.plots import Panel, panels, wrapped

GoalRuns = Sequence[GoalRun]


@dataclass(frozen=True)
class Case:
    """Runs that are one point of one line in one panel."""

    panel: str
    line: str
    x: str
    jobs: tuple[Job, ...]
    gamma: float


@dataclass(frozen=True)
class Measure:
    """A number of a case."""

    name: str
    unit: str
    of: Callable[[GoalRuns, float], float]
    log: bool = False

    @property
    def label(self) -> str:
        """For an axis."""
        return f"{self.name} [{self.unit}]" if self.unit not in ("", "share") else self.name


def phi(runs: GoalRuns, gamma: float) -> float:
    """Φ(Γ): the share of all measurements that are not below Γ."""
    recalls = np.concatenate([run.recalls for run in runs])
    return float(np.mean(recalls >= gamma)) if len(recalls) else 1.0


def mean(name: str) -> Callable[[GoalRuns, float], float]:
    """The mean of a number of the runs."""
    return lambda runs, _: float(np.mean([getattr(run, name) for run in runs]))


PHI = Measure("Φ(Γ)", "share", phi)
PHI_99 = Measure("Φ(.99Γ)", "share", lambda runs, gamma: phi(runs, 0.99 * gamma))
SLACK = Measure("average K", "ms", mean("average_slack"), log=True)
RECALL = Measure("average γ(P)", "share", mean("average_recall"))
LATENCY = Measure("average latency", "ms", mean("average_latency"), log=True)


def vary(
    setting: Setting,
    title: str,
    labels: tuple[str, str, str],
    cases: Sequence[Case],
    measures: Sequence[Measure],
) -> tuple[Table, Figure]:
    """Run all cases; `labels` says what panels, lines and x are.

    Panels are side by side and measures below each other; with one panel, measures side by side.
    """
    names = list(dict.fromkeys(case.panel for case in cases))
    cases = sorted(cases, key=lambda case: names.index(case.panel))
    setting.run([job for case in cases for job in case.jobs])
    cells = {case: [m.of(setting.run(case.jobs), case.gamma) for m in measures] for case in cases}
    columns = tuple(Column(measure.name, measure.unit) for measure in measures)
    rows: list[tuple[tuple[str, ...], list[Cell]]] = [
        ((case.panel, case.line, case.x), list(numbers)) for case, numbers in cells.items()
    ]
    ticks = list(dict.fromkeys(case.x for case in cases))
    grid = [
        [_panel(name, measure, n, cells, ticks) for name in names]
        for n, measure in enumerate(measures)
    ]
    if len(names) == 1:
        grid = [[replace(row[0], title="") for row in grid]]
    if len(measures) == 1:
        grid = wrapped(grid[0])
    return Table(title, labels, columns, rows), panels(title, labels[2], grid, ticks)


def _panel(
    name: str, measure: Measure, n: int, cells: dict[Case, list[float]], ticks: list[str]
) -> Panel:
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for case, numbers in cells.items():
        if case.panel == name:
            x, y = curves.setdefault(case.line, ([], []))
            x.append(ticks.index(case.x))
            y.append(max(numbers[n], 1.0) if measure.log else numbers[n])  # a log has no 0
    lowest = min(min(y) for _, y in curves.values())
    y_range = (min(0.9, lowest - 0.02), 1.005) if measure.unit == "share" else (None, None)
    return Panel("" if n else name, measure.label, curves, measure.log, y_range=y_range)
