"""How often the truth is inside our intervals, and what is told of windows without results."""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma, log

import numpy as np

from slackwater.lab.experiment import Cell, Column, Table
from slackwater.lab.pecj_plan import QUERIES, Judged, Query, Rows
from slackwater.lab.pecj_promises import Promises
from slackwater.lab.pecj_runs import CONFIDENCES, OURS, Flags, resampled

_RANGES = {0.95: (0.93, 0.97), 0.8: (0.77, 0.83)}  # promised of Micro
_LEAST_P = 0.01  # promised of real data
_SEED = 1  # of the bootstrap


def binomial_p(inside: int, n: int, chance: float) -> float:
    """The two-sided p value: how likely a count is that is no more likely than this one.

    >>> round(binomial_p(9, 10, 0.5), 4), round(binomial_p(5, 10, 0.5), 4)
    (0.0215, 1.0)
    """
    k = np.arange(n + 1)
    ways = np.array([lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) for i in k])
    likely = np.exp(ways + k * log(chance) + (n - k) * log(1.0 - chance))
    return min(1.0, float(likely[likely <= likely[inside] * (1 + 1e-9)].sum()))


def coverage(judged: Sequence[Judged], promises: Promises) -> list[Table]:
    """On real data and on Micro, by query."""
    tables = []
    for what, is_real, row, columns in (
        ("real data", True, _real_row, _REAL),
        ("Micro", False, _micro_row, _MICRO),
    ):
        rows: Rows = [
            ((query.name, found.data.name, found.omega), row(query, found, promises))
            for query in QUERIES
            for found in query.of(judged)
            if found.data.is_real == is_real
        ]
        if rows:
            title = f"Truth inside our intervals, {what} (windows with results)"
            tables.append(Table(title, ("query", "data", "ω"), columns, rows))
    return tables


def _micro_row(query: Query, found: Judged, promises: Promises) -> list[Cell]:
    """Windows are independent."""
    has_results = ~found.main.is_zero
    cells: list[Cell] = [int(has_results.sum())]
    for confidence in CONFIDENCES:
        inside = found.main.inside(confidence, query.aggregate)[has_results]
        share = float(inside.mean())
        cells += [share, _p(inside, confidence)]
        low, high = _RANGES[confidence]
        what, beyond = f"coverage at {confidence:.0%}, Micro", max(low - share, share - high)
        promises.add(what, f"{low} to {high}", share, _where(query, found), beyond)
    return cells


def _real_row(query: Query, found: Judged, promises: Promises) -> list[Cell]:
    """Windows are independent, but the draws of one window are not."""
    has_results = ~found.main.is_zero
    window, draw = found.main.window[has_results], found.main.draw[has_results]
    cells: list[Cell] = [len(np.unique(window))]
    for confidence in CONFIDENCES:
        inside = found.main.inside(confidence, query.aggregate)[has_results]
        alone = [_p(inside[draw == d], confidence) for d in np.unique(draw)]
        agree = float(np.mean(np.array(alone) >= _LEAST_P))
        low, high = resampled(inside.astype(float), window, 1.0 - _LEAST_P, _SEED)
        pooled = _p(inside, confidence)
        cells += [float(inside.mean()), f"{low:.3f} to {high:.3f}", agree, alone[0], pooled]
        what, where = f"coverage at {confidence:.0%}, real data", _where(query, found)
        promises.add(f"{what}, one draw", f"p ≥ {_LEAST_P}", alone[0], where, _LEAST_P - alone[0])
        promises.add(
            f"{what}, each draw", "99 % of the draws with p ≥ 0.01", agree, where, 0.98 - agree
        )
        promises.add(f"{what}, all draws", f"p ≥ {_LEAST_P}", pooled, where, _LEAST_P - pooled)
    return cells


def _p(inside: Flags, confidence: float) -> float:
    return binomial_p(int(inside.sum()), len(inside), confidence)


def _where(query: Query, found: Judged) -> str:
    return f"{query.name}, {found.data.name}, ω = {found.omega}"


_MICRO = (
    Column("windows"),
    *(
        Column(f"{confidence:.0%}: {what}", unit)
        for confidence in CONFIDENCES
        for what, unit in (("inside", "share"), ("p", ""))
    ),
)
_REAL = (
    Column("windows"),
    *(
        Column(f"{confidence:.0%}: {what}", unit)
        for confidence in CONFIDENCES
        for what, unit in (
            ("inside", "share"), ("99 % range", ""), ("draws with p ≥ 0.01", "share"),
            ("p of one draw", ""), ("p of all", ""),
        )
    ),
)  # fmt: skip


def zeros(judged: Sequence[Judged]) -> list[Table]:
    """Windows without results."""
    rows: Rows = []
    for found in judged:
        zero = found.main.is_zero
        if not zero.any():
            continue
        told, high = found.main.told[OURS][zero, 0], found.main.bounds[0.95][zero, 0, 1]
        rows.append(((found.data.name, found.delta, found.omega), [
            len(found.data.windows), len(np.unique(found.main.window[zero])),
            float(told.mean()), float(told.max()),
            float(high.mean()) if np.isfinite(high).all() else None,
            float(found.main.inside(0.95, 0)[zero].mean()),
        ]))  # fmt: skip
    columns = (
        Column("windows"), Column("without results"), Column("told on average"),
        Column("told at most"), Column("upper end on average"), Column("0 inside 95 %", "share"),
    )  # fmt: skip
    title = "Windows without any result: what was told"
    return [Table(title, ("data", "Δ", "ω"), columns, rows)] if rows else []
