"""What the prior of Eq. 5, the window before, gives SVI or costs it."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater_lab.experiment import Cell, Column, Table
from slackwater_lab.papers.pecj.data import MS, Dataset
from slackwater_lab.papers.pecj.runs import NO_PRIOR, Disorder, Plan

_SHOWN = ("WMJ", "SVI", NO_PRIOR)
_DISORDERS = ((5, 7), (5, 10), (5, 12), (1000, 200), (1000, 600))  # Δ and ω in ms
_DRAWS, _WINDOWS = 2, 200


def prior_gain(datasets: Sequence[Dataset], plan: Plan) -> Table:
    """Errors of SVI with that prior and without it."""
    few = Plan(plan.seed, min(plan.windows, _WINDOWS), min(plan.draws, _DRAWS), plan.warm_up)
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    for data in datasets:
        for most, omega in _DISORDERS:
            found = few.run(data, Disorder(most * MS, omega * MS), _SHOWN[1:])
            cells: list[Cell] = [100 * found.error(name, 0) for name in _SHOWN]
            rows.append(((data.name, f"{most:,} ms", f"{omega} ms"), cells))
    columns = tuple(Column(name, "%") for name in (*_SHOWN[:2], "SVI without it"))
    title = f"What the window before gives SVI as a prior (Q1 and Q3, {few.draws} draws)"
    return Table(title, ("data", "Δ", "ω"), columns, rows)
