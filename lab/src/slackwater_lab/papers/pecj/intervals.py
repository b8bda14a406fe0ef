"""How often the truth is inside our intervals, and the estimates of windows without a result yet.

The estimate of a window without any result at the deadline is 0, and its interval comes from past
windows of this kind. Which windows they are is known at the deadline, so they can be judged apart.
Which windows will have results is not known: among those that do there are more surprises than
among all, and intervals that are right for all miss more of them. Both counts are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma, log

import numpy as np

from slackwater.kernels.records import F64
from slackwater_lab.experiment import Cell, Column, Table
from slackwater_lab.papers.pecj.promises import Promises
from slackwater_lab.papers.pecj.runs import CONFIDENCES, OURS, Flags, resampled
from slackwater_lab.papers.pecj.settings import COUNT, QUERIES, Judged, Query, Rows

_RANGES = {0.95: (0.93, 0.97), 0.8: (0.77, 0.83)}  # promised of Micro
_LEAST_P = 0.01  # promised of real data
_LEAST_AGREE = 0.98  # of the draws, each tested alone
_EACH = f"p ≥ {_LEAST_P} in {_LEAST_AGREE:.0%}"
_WINDOWS = ("with some results there", "with results in the end")
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
    real: Rows = []
    made: Rows = []
    for query in QUERIES:
        for found in query.of(judged):
            labels = (query.name, found.data.name, found.omega)
            if not found.data.is_real:
                made.append((labels, _micro_row(query, found, promises)))
                continue
            for confidence in CONFIDENCES:
                cells = _real_row(query, found, confidence, promises)
                real.append(((*labels, f"{confidence:.0%}"), cells))
    names = ("query", "data", "ω")
    tables = [Table("True values inside our intervals, Micro", names, _MICRO, made)]
    if real:
        title = "True values inside our intervals, real data"
        tables.append(Table(title, (*names, "interval"), _REAL, real))
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
        where = f"{query.name}, {found.data.name}, ω = {found.omega}"
        promises.add(what, f"{low} to {high}", share, where, beyond)
    return cells


def _real_row(query: Query, found: Judged, confidence: float, promises: Promises) -> list[Cell]:
    """Windows are independent, but the draws of one window are not."""
    every = found.main.inside(confidence, query.aggregate)
    some_there = found.main.estimates[OURS][:, COUNT] > 0.0
    where = f"{query.name}, {found.data.name}, ω = {found.omega}"
    cells: list[Cell] = []
    for name, which in zip(_WINDOWS, (some_there, ~found.main.is_zero), strict=True):
        inside, window, draw = every[which], found.main.window[which], found.main.draw[which]
        alone = [_p(inside[draw == d], confidence) for d in np.unique(draw)]
        agree, pooled = float(np.mean(np.array(alone) >= _LEAST_P)), _p(inside, confidence)
        low, high = resampled(inside.astype(float), window, 1.0 - _LEAST_P, _SEED)
        cells += [float(inside.mean()), f"{low:.3f} to {high:.3f}", alone[0], agree, pooled]
        what = f"coverage at {confidence:.0%}, real windows {name}"
        promises.add(f"{what}, each draw", _EACH, agree, where, _LEAST_AGREE - agree)
        promises.add(f"{what}, all draws", f"p ≥ {_LEAST_P}", pooled, where, _LEAST_P - pooled)
    return cells


def _p(inside: Flags, confidence: float) -> float:
    return binomial_p(int(inside.sum()), len(inside), confidence)


_MICRO = (
    Column("windows"),
    *(
        Column(f"{confidence:.0%}: {what}", unit)
        for confidence in CONFIDENCES
        for what, unit in (("inside", "share"), ("p", ""))
    ),
)
_REAL = tuple(
    Column(f"{windows}: {what}", unit)
    for windows in _WINDOWS
    for what, unit in (
        ("inside", "share"), ("99 % range", ""), ("p of one draw", ""),
        ("draws with p ≥ 0.01", "share"), ("p of all", ""),
    )
)  # fmt: skip


def zeros(judged: Sequence[Judged]) -> list[Table]:
    """Windows without results, and those of which none was there at the deadline."""
    rows: Rows = []
    for found in judged:
        zero, estimates = found.main.is_zero, found.main.estimates[OURS][:, COUNT]
        nothing = estimates == 0.0
        if not zero.any() and not nothing.any():
            continue
        inside, high = found.main.inside(0.95, COUNT), found.main.bounds[0.95][:, COUNT, 1]
        late = nothing & ~zero
        draws = len(np.unique(found.main.draw))
        rows.append(((found.data.name, found.delta, found.omega), [
            len(found.data.windows), float(zero.sum()) / draws,
            float(estimates[zero].max(initial=0.0)), float(nothing.sum()) / draws,
            float(late.sum()) / draws, _mean(high[nothing]), _mean(inside[nothing]),
            _mean(inside[late]),
        ]))  # fmt: skip
    columns = (  # names stay in the JSON
        Column("windows"), Column("without results"),
        Column("told of these at most", title="largest estimate of these"),
        Column("0 told", title="reported as 0"), Column("with results later"),
        Column("upper end where 0 was told", title="upper end where 0 was reported"),
        Column("truth inside 95 %", "share"), Column("of those with results later", "share"),
    )  # fmt: skip
    title = "Windows without results, and windows without any at the deadline (per draw)"
    return [Table(title, ("data", "Δ", "ω"), columns, rows)] if rows else []


def _mean(values: F64 | Flags) -> float | None:
    """The mean, if there is one."""
    return float(values.mean()) if len(values) and np.isfinite(values).all() else None
