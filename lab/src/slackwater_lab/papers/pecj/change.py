"""How long intervals are wrong after a sudden change of the disorder."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

from slackwater.kernels.records import F64
from slackwater_lab.experiment import Column, Table
from slackwater_lab.papers.pecj.data import MS, Dataset, Window
from slackwater_lab.papers.pecj.promises import Promises
from slackwater_lab.papers.pecj.runs import (
    OURS,
    Disorder,
    EstimatorRun,
    estimator_group,
    warm_up_on,
)
from slackwater_lab.papers.pecj.settings import Lab, Rows
from slackwater_lab.plots import Panel

_KEYS = 100
_DEADLINE = 10
_BEFORE = 5
_AFTER = (8, 2)
_FOLLOWED = 30  # windows after the change
_BACK = 20  # windows, after which coverage was promised to be
_LEAST = 0.93
_SHOWN = (1, 2, 3, 4, 5, 10, 20, 30)
_BETWEEN = 20  # windows from one run to the next


@dataclass(frozen=True)
class Change:
    """The windows after a change: [run, window]."""

    inside: F64
    error: F64


def changed(data: Dataset, after: int, runs: int, warm_up: int, seed: int) -> Change:
    """Delays of up to `_BEFORE` ms, then suddenly of up to `after` ms."""
    before, then = (Disorder(most * MS, _DEADLINE * MS) for most in (_BEFORE, after))
    rng = np.random.default_rng((seed, after))
    windows = cycle(data.windows)
    group = estimator_group([OURS], (0.95,), before.lag)
    warm_up_on(group, islice(windows, warm_up), before, rng)
    found = []
    for _ in range(runs):
        judge = deepcopy(group)
        found.append(_follow(judge.runs[0], islice(windows, _FOLLOWED), then, rng))
        warm_up_on(group, islice(windows, _BETWEEN), before, rng)
    return Change(*np.array(found).transpose(2, 0, 1))


def _follow(
    estimator: EstimatorRun, windows: Iterable[Window], disorder: Disorder, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """For each window whether the truth was inside, and the error."""
    found = []
    for window in windows:
        arrived = window.arrived(window.delays(disorder.most, rng), disorder.deadline)
        early = estimator.estimate(arrived, window.whole)[0]
        truth = float(window.truth[0])
        inside = early.low is None or early.high is None or early.low <= truth <= early.high
        found.append((float(inside), abs((early.value or 0.0) / truth - 1.0)))
    return found


def changes(lab: Lab, promises: Promises) -> tuple[list[Table], list[list[Panel]]]:
    """Both changes, on windows that are all of one size and on random ones."""
    runs, warm_up = (4, 30) if lab.quick else (200, 300)
    inside: Rows = []
    errors: Rows = []
    grid = []
    for name, data in (("steady", lab.micro(_KEYS)), ("random sizes", lab.random_micro(_KEYS))):
        row = []
        for after in _AFTER:
            found = changed(data, after, runs, warm_up, lab.seed)
            share, error = found.inside.mean(axis=0), 100 * found.error.mean(axis=0)
            labels = (name, f"Δ {_BEFORE} → {after} ms")
            back = float(share[_BACK - 1 :].mean())
            what = f"coverage at 95% from {_BACK} windows after a change on"
            promises.add(what, f"≥ {_LEAST}", back, ", ".join(labels), _LEAST - back)
            inside.append((labels, [float(share[n - 1]) for n in _SHOWN]))
            errors.append((labels, [float(error[n - 1]) for n in _SHOWN]))
            x = [float(n) for n in range(1, _FOLLOWED + 1)]
            row.append(
                Panel(
                    ", ".join(labels), "inside the 95 % interval", {OURS: (x, share.tolist())},
                    level=(0.95, "95 %"), y_range=(0.0, 1.03),
                )
            )  # fmt: skip
        grid.append(row)
    labels = ("windows", "change")
    titles = (f"true values inside the 95 % interval, {runs} runs", "mean error of the count")
    tables = [
        Table(
            f"After a change of the disorder: {title}", labels,
            tuple(Column(f"window {n}", unit) for n in _SHOWN), rows,
        )
        for title, unit, rows in zip(titles, ("share", "%"), (inside, errors), strict=True)
    ]  # fmt: skip
    return tables, grid
