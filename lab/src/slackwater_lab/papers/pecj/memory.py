"""Why the network does badly on Stock: what it knows are the windows that it has learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import cycle, islice

import numpy as np

from slackwater_lab.experiment import Cell, Column, Table
from slackwater_lab.papers.pecj.data import MS, Dataset
from slackwater_lab.papers.pecj.runs import Disorder, EstimatorGroup, EstimatorRun, warm_up_on

_DELTA = 5 * MS
_NAME = "MLP"


def memorised(datasets: Sequence[Dataset], warm_ups: Sequence[int], seeds: Sequence[int]) -> Table:
    """Errors with new delays on windows that were learnt from, and on the other half.

    `warm_ups` are numbers of windows to learn from, again and again with new delays.
    """
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    for data in datasets:
        distinct = sum(window.truth[0] > 0.0 for window in data.windows) / 2
        for deadline in (7, 10, 12):
            for warm_up in warm_ups:
                disorder = Disorder(_DELTA, deadline * MS)
                each = [errors_after(data, disorder, warm_up, seed) for seed in seeds]
                cells: list[Cell] = [*(100 * np.mean(each, axis=0)).tolist(), distinct]
                rows.append(((data.name, f"{deadline} ms", f"{warm_up:,}"), cells))
    columns = (
        Column("of windows learnt from", "%"), Column("of the others", "%"), Column("WMJ", "%"),
        Column("distinct windows with results"),
    )  # fmt: skip
    title = "The network on windows that it has learnt from, with new delays, and on others (Q1)"
    return Table(title, ("data", "ω", "learnt from, in all"), columns, rows)


def errors_after(
    data: Dataset, disorder: Disorder, warm_up: int, seed: int
) -> tuple[float, float, float]:
    """Return the errors of windows that were learnt from, of the others, and of WMJ."""
    n = len(data.windows)
    halves = range(n // 2), range(n // 2, n)
    rng = np.random.default_rng((seed, disorder.deadline))
    seen: list[float] = []
    others: list[float] = []
    plain: list[float] = []
    for own, other in (halves, halves[::-1]):
        learner = EstimatorGroup([EstimatorRun(_NAME, 0.95, disorder.lag)])
        rest = cycle([data.windows[i] for i in own])
        warm_up_on(learner, islice(rest, warm_up), disorder, rng)
        for places, errors in ((own, seen), (other, others)):
            judge = deepcopy(learner)  # which goes on to learn
            for i in places:
                window = data.windows[i]
                if (truth := window.truth[0]) == 0.0:
                    continue
                delay = window.delays(disorder.most, rng)
                arrived = window.arrived(delay, disorder.deadline)
                ((value, _),) = judge.estimate(arrived, window.whole)
                errors.append(abs((value.value or 0.0) / truth - 1.0))
                plain.append(abs(float(arrived.values[0, 0]) / truth - 1.0))
    return float(np.mean(seen)), float(np.mean(others)), float(np.mean(plain))
