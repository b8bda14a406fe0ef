"""How good and how fast the setting of harvest fractions is (GrubJoin VI-A, Fig. 4 and 7 to 10).

The paper draws rates from [100, 500] events per second and "selectivities randomly", and does not
say which time correlations it had. Ours: the lag of each stream is uniform within half a window
either way, its noise normal with a deviation of a twentieth to a half of a window, selectivities
are log-uniform in [0.0005, 0.02]; and once more without time correlations.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import get_args

import numpy as np

from slackwater.kernels.records import F64, HarvestModel
from slackwater.query.shedding import Metric, Search
from slackwater.shedding import harvest_search as setting
from slackwater_lab.experiment import Cell, Column, Table
from slackwater_lab.plots import Panel

_WINDOW = 10.0  # seconds
_THROTTLES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_PRINTED: dict[Metric, str] = {"output": "BO", "output per cost": "BOpC", "gain per cost": "BDOpDC"}

Rows = list[tuple[tuple[str, ...], list[Cell]]]


def random_case(rng: np.random.Generator, m: int, n: int, correlated: bool) -> HarvestModel:
    """A join of `m` streams with `n` basic windows each."""
    rate = rng.uniform(100, 500, m)
    selectivity = np.exp(rng.uniform(math.log(0.0005), math.log(0.02), (m, m)))
    selectivity = np.minimum(selectivity, selectivity.T)
    lag = rng.uniform(-_WINDOW / 2, _WINDOW / 2, m)
    noise = rng.uniform(_WINDOW / 20, _WINDOW / 2, m)
    orders = [
        sorted((s for s in range(m) if s != i), key=lambda s: selectivity[i, s]) for i in range(m)
    ]
    ages = np.linspace(0.0, _WINDOW, n + 1)

    def scores(i: int, s: int) -> F64:
        if not correlated:
            return np.ones(n)
        spread = math.sqrt(2) * math.hypot(noise[i], noise[s])
        below = [math.erf((age - lag[i] + lag[s]) / spread) for age in ages]
        return np.diff(below) / 2 + 1e-9

    return setting.model(
        rate,
        [[rate[s] * _WINDOW for s in order] for order in orders],
        [[selectivity[i, s] * rate[s] * _WINDOW for s in order] for i, order in enumerate(orders)],
        [[scores(i, s) for s in order] for i, order in enumerate(orders)],
    )


def optimality(cases: int, seed: int, correlated: bool) -> tuple[Table, Panel]:
    """Fig. 7: output of each way to choose by that of the best setting there is."""
    ways: dict[str, tuple[Search, Metric]] = {
        name: ("greedy", metric) for metric, name in _PRINTED.items()
    }
    ways |= {search: (search, "gain per cost") for search in get_args(Search)[:4]}
    del ways["greedy"]
    rng = np.random.default_rng(seed)
    found: dict[float, list[list[float]]] = {z: [] for z in _THROTTLES}
    for _ in range(cases):
        known = random_case(rng, 3, 10, correlated)
        everything = setting.cost(setting.full(known), known)
        for z in _THROTTLES:
            best = setting.output(setting.exhaustive(known, z * everything), known)
            if best > 0.0:
                found[z].append([
                    setting.output(setting.choose(known, z * everything, *way), known) / best
                    for way in ways.values()
                ])  # fmt: skip
    means = {z: np.mean(found[z], axis=0) for z in _THROTTLES}
    columns = tuple(
        Column(name, "share", floor={"BDOpDC": 0.98, "better": 0.99}.get(name)) for name in ways
    )
    rows: Rows = [((f"z = {z:g}",), [float(x) for x in means[z]]) for z in _THROTTLES]
    kind = "with" if correlated else "without"
    title = f"Optimality, {kind} time correlations (Fig. 7; m = 3, n = 10, {cases} cases)"
    curves = {
        name: (list(_THROTTLES), [float(means[z][k]) for z in _THROTTLES])
        for k, name in enumerate(ways)
        if name != "double-sided"
    }
    panel = Panel(
        f"{kind} time correlations", "output by the best possible", curves, y_range=(0.7, 1.005)
    )
    return Table(title, ("throttle",), columns, rows), panel


# ---- time


def seconds_of(call: Callable[[], object], least: float = 0.02, once: bool = False) -> float:
    """The time of a call, the best of several rounds."""
    if not once:
        call()
    best, rounds = math.inf, 0
    begin = time.perf_counter()
    while rounds < (1 if once else 3) or (not once and time.perf_counter() - begin < least):
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
        rounds += 1
    return best


def _ms(call: Callable[[], object], once: bool = False) -> float:
    return 1000 * seconds_of(call, once=once)


def _quarter(known: HarvestModel) -> tuple[HarvestModel, float]:
    """A case, and a quarter of what all of it costs."""
    return known, 0.25 * setting.cost(setting.full(known), known)


def naive_exhaustive(known: HarvestModel, budget: float) -> float:
    """The best output, by trying every setting with all directions on, as printed."""
    m, steps = known.n.shape
    best = 0.0
    for counts in product(*(range(1, int(n) + 1) for n in known.n.ravel())):
        tried = np.array(counts).reshape(m, steps)
        if setting.cost(tried, known) <= budget:
            best = max(best, setting.output(tried, known))
    return best


def times(seed: int, quick: bool) -> list[Table]:
    """Fig. 8, 9 and 10: how long it takes."""
    rng = np.random.default_rng(seed)
    by_n: Rows = []
    for n in (5, 10, 20):
        cells: list[Cell] = []
        for m in (3, 4, 5):
            known, budget = _quarter(random_case(rng, m, n, True))
            for search in ("greedy", "better"):
                cells.append(_ms(partial(setting.choose, known, budget, search)))
        known, budget = _quarter(random_case(rng, 3, n, True))
        cells.append(_ms(partial(setting.exhaustive, known, budget)))
        is_long = n > (5 if quick else 10)  # 64 million settings
        cells.append(None if is_long else _ms(partial(naive_exhaustive, known, budget), once=True))
        by_n.append(((f"n = {n}",), cells))
    columns = [Column(f"m = {m}, {way}", "ms") for m in (3, 4, 5) for way in ("greedy", "better")]
    columns += [Column("m = 3, exhaustive", "ms"), Column("as printed", "ms")]
    fig8 = Table("Time of setting (Fig. 8; z = 0.25)", ("basic windows",), tuple(columns), by_n)
    by_z: Rows = []
    searches: Sequence[Search] = ("greedy", "reverse", "double-sided", "better")
    cases = {m: random_case(rng, m, 10, True) for m in (3, 4, 5)}
    for z in _THROTTLES[:: 3 if quick else 1]:
        cells = []
        for m, known in cases.items():
            budget = z * setting.cost(setting.full(known), known)
            for search in searches if m == 3 else searches[:1]:
                cells.append(_ms(partial(setting.choose, known, budget, search)))
        by_z.append(((f"z = {z:g}",), cells))
    names = [f"m = 3, {search}" for search in searches] + ["m = 4, greedy", "m = 5, greedy"]
    fig9 = Table(
        "Time of setting by throttle (Fig. 9 and 10; n = 10)", ("throttle",),
        tuple(Column(name, "ms") for name in names), by_z,
    )  # fmt: skip
    return [fig8, fig9]


# ---- one example


def example() -> Table:
    """Fig. 4: which basic windows are worth a look."""
    rate, n = [300.0, 100.0, 150.0], 5
    selectivity = {(0, 1): 0.003, (1, 2): 0.002, (0, 2): 0.004}
    lag = [0.0, 4.0, 5.0]  # of each stream behind the first
    orders = [[1, 2], [2, 0], [1, 0]]

    def scores(i: int, s: int) -> F64:
        ages = np.linspace(0.0, _WINDOW, n + 1)
        below = [math.erf((age - lag[i] + lag[s]) / math.sqrt(2) / 1.5) for age in ages]
        return np.diff(below) / 2 + 1e-6

    # a direction finds what its lags leave it: those that come before their partners find nothing
    def matches(i: int, s: int) -> float:
        pair = (min(i, s), max(i, s))
        return selectivity[pair] * rate[s] * _WINDOW * float(scores(i, s).sum())

    known = setting.model(
        rate,
        [[rate[s] * _WINDOW for s in order] for order in orders],
        [[matches(i, s) for s in order] for i, order in enumerate(orders)],
        [[scores(i, s) for s in order] for i, order in enumerate(orders)],
    )
    budget = 0.5 * setting.cost(setting.full(known), known)
    rows: Rows = []
    for name, counts in (
        ("exhaustive", setting.exhaustive(known, budget)),
        ("better", setting.choose(known, budget)),
    ):
        looked_at = [
            "off"
            if not counts[i].all()
            else ", ".join(
                f"W{s + 1}: "
                + " ".join(map(str, sorted(setting.ranking(scores(i, s))[: counts[i, j]] + 1)))
                for j, s in enumerate(orders[i])
            )
            for i in range(3)
        ]
        kept = setting.output(counts, known) / setting.output(setting.full(known), known)
        rows.append(((name,), [*looked_at, kept]))
    columns = (
        Column("S1 looks at"),
        Column("S2 looks at"),
        Column("S3 looks at"),
        Column("kept", "share"),
    )
    return Table("Half of the work (Fig. 4; basic windows by age)", ("search",), columns, rows)
