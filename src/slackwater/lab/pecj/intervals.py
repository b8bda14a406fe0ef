"""How often the truth is inside our intervals, and what is told where no result is there yet.

Of a window without any result at the deadline 0 is told, and its interval comes from the past of
such windows. They are counted apart: which windows they are is known at the deadline. Whether a
window will have results is not; of those that do, intervals miss more than they say where many
come as a surprise.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma, log

import numpy as np

from slackwater.kernels.records import F64
from slackwater.lab.experiment import Cell, Column, Table
from slackwater.lab.pecj.plan import COUNT, QUERIES, Judged, Query, Rows
from slackwater.lab.pecj.promises import Promises
from slackwater.lab.pecj.runs import CONFIDENCES, OURS, Flags, resampled

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
            title = f"Truth inside our intervals, {what}"
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
    is_told = found.main.told[OURS][:, COUNT] > 0.0
    window, draw = found.main.window[is_told], found.main.draw[is_told]
    cells: list[Cell] = [len(np.unique(window))]
    for confidence in CONFIDENCES:
        every = found.main.inside(confidence, query.aggregate)
        inside = every[is_told]
        alone = [_p(inside[draw == d], confidence) for d in np.unique(draw)]
        agree, pooled = float(np.mean(np.array(alone) >= _LEAST_P)), _p(inside, confidence)
        low, high = resampled(inside.astype(float), window, 1.0 - _LEAST_P, _SEED)
        cells += [float(inside.mean()), f"{low:.3f} to {high:.3f}", agree, alone[0], pooled]
        cells += [float(every[~found.main.is_zero].mean())]
        what, where = f"coverage at {confidence:.0%}, real data", _where(query, found)
        least = f"p ≥ {_LEAST_P}"
        promises.add(f"{what}, one draw", least, alone[0], where, _LEAST_P - alone[0])
        promises.add(f"{what}, each draw", f"{least} in 98 %", agree, where, 0.98 - agree)
        promises.add(f"{what}, all draws", least, pooled, where, _LEAST_P - pooled)
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
            ("p of one draw", ""), ("p of all", ""), ("windows with results", "share"),
        )
    ),
)  # fmt: skip


def zeros(judged: Sequence[Judged]) -> list[Table]:
    """Windows without results, and those of which none was there at the deadline."""
    rows: Rows = []
    for found in judged:
        zero, told = found.main.is_zero, found.main.told[OURS][:, COUNT]
        nothing = told == 0.0
        if not zero.any() and not nothing.any():
            continue
        inside, high = found.main.inside(0.95, COUNT), found.main.bounds[0.95][:, COUNT, 1]
        late = nothing & ~zero
        draws = len(np.unique(found.main.draw))
        rows.append(((found.data.name, found.delta, found.omega), [
            len(found.data.windows), float(zero.sum()) / draws,
            float(told[zero].max(initial=0.0)), float(nothing.sum()) / draws,
            float(late.sum()) / draws, _mean(high[nothing]), _mean(inside[nothing]),
            _mean(inside[late]),
        ]))  # fmt: skip
    columns = (
        Column("windows"), Column("without results"), Column("told of these at most"),
        Column("0 told"), Column("with results later"), Column("upper end where 0 was told"),
        Column("truth inside 95 %", "share"), Column("of those with results later", "share"),
    )  # fmt: skip
    title = "Windows without results, and windows without any at the deadline (per draw)"
    return [Table(title, ("data", "Δ", "ω"), columns, rows)] if rows else []


def _mean(values: F64 | Flags) -> float | None:
    """The mean, if there is one."""
    return float(values.mean()) if len(values) and np.isfinite(values).all() else None
