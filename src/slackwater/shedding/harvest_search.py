"""The harvest fractions: which setting gives the most results for a budget (GrubJoin IV, V-A).

>>> even = model(  # two streams, two basic windows each; one of them has nine tenths of the results
...     rate=[1.0, 1.0],
...     candidates=[[10.0], [10.0]],
...     matches=[[1.0], [1.0]],
...     scores=[[[0.9, 0.1]], [[0.5, 0.5]]],
... )
>>> cost(full(even), even), output(full(even), even)
(20.0, 2.0)
>>> best = choose(even, budget=10.0)
>>> best.tolist(), output(best, even)
([[1], [1]], 1.4)
>>> with_shares(choose(even, budget=4.0), even, budget=4.0)  # less than one basic window costs
(array([[1],
       [0]]), array([0.8, 1. ]))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slackwater.kernels import harvest as kernels
from slackwater.kernels.records import F64, I64, HarvestModel

Metric = Literal["output", "output per cost", "gain per cost"]
Search = Literal["greedy", "reverse", "double-sided", "better", "exhaustive"]
_METRICS = {
    "output": kernels.BEST_OUTPUT,
    "output per cost": kernels.BEST_OUTPUT_PER_COST,
    "gain per cost": kernels.BEST_GAIN_PER_COST,
}


def model(
    rate: Any,
    candidates: Any,
    matches: Any,
    scores: Sequence[Sequence[Any]],
    pass_scores: Sequence[Sequence[Any]] | None = None,
    entry: Any = None,
    each: Any = None,
    near: Any = None,
) -> HarvestModel:
    """Return cost and output as arrays, by direction and step of its join order.

    Parameters
    ----------
    rate
        Events per time of each direction's stream.
    candidates
        Events in the whole window of the stream that is searched in this step.
    matches
        How many of them pass, for one partial result.
    scores
        Of each basic window, by age: how many results have their event of this stream there.
    pass_scores
        The same for the events that pass this step, which need not become results; by default they
        are taken to be as `scores` are, as in the paper.
    entry, each, near
        Cost of beginning the step, of one basic window, and of the candidates in the whole window
        that an index finds, which lie where partners do; by default of a nested loop: nothing, the
        events in a basic window, and none.
    """
    m, steps = np.shape(matches)
    n = np.array([[len(step) for step in direction] for direction in scores], np.int64)
    each = np.asarray(candidates, float) / n if each is None else np.asarray(each, float)
    return HarvestModel(
        rate=np.asarray(rate, float),
        n=n.reshape(m, steps),
        entry=np.zeros((m, steps)) if entry is None else np.asarray(entry, float),
        each=each,
        near=np.zeros((m, steps)) if near is None else np.asarray(near, float),
        matches=np.asarray(matches, float),
        passed=_yields(scores if pass_scores is None else pass_scores, scores),
        joined=_yields(scores, scores),
    )


def ranking(scores: Any) -> I64:
    """Return basic windows by falling score; equal ones by age, so that the order is defined."""
    return np.argsort(-np.asarray(scores, float), kind="stable")


def _yields(of: Sequence[Sequence[Any]], ranked_by: Sequence[Sequence[Any]]) -> F64:
    """Return the share of the scores `of` in the best basic windows: [direction, step, count]."""
    most = max(len(step) for direction in of for step in direction)
    yields = np.ones((len(of), len(of[0]), most + 1))
    for i, direction in enumerate(of):
        for j, step in enumerate(direction):
            ordered = np.asarray(step, float)[ranking(ranked_by[i][j])]
            total = ordered.sum()
            if total <= 0.0:
                ordered, total = np.ones(len(ordered)), float(len(ordered))
            yields[i, j, 0] = 0.0
            yields[i, j, 1 : len(ordered) + 1] = np.minimum(np.cumsum(ordered) / total, 1.0)
            yields[i, j, len(ordered)] = 1.0
    return yields


def full(known: HarvestModel) -> I64:
    """Return the setting that searches everything."""
    return known.n.copy()


def cost(counts: I64, known: HarvestModel, shares: F64 | None = None) -> float:
    """Return comparisons per time, if a share of each direction's events search."""
    return _evaluate(counts, known, shares)[0]


def output(counts: I64, known: HarvestModel, shares: F64 | None = None) -> float:
    """Return results per time."""
    return _evaluate(counts, known, shares)[1]


def _evaluate(counts: I64, known: HarvestModel, shares: F64 | None) -> tuple[float, float]:
    of = np.ones(len(counts)) if shares is None else shares
    spent, made = kernels.evaluate_shares(counts, of, known)
    return float(spent), float(made)


def choose(
    known: HarvestModel, budget: float, search: Search = "better", metric: Metric = "gain per cost"
) -> I64:
    """Return how many basic windows to search, for a cost of at most `budget`.

    ``"greedy"`` adds the most profitable basic window as long as there is budget, ``"reverse"``
    leaves out the least profitable one until the cost fits, ``"double-sided"`` takes whichever is
    expected to need fewer steps (the paper's three). ``"better"`` is the better outcome of both,
    after the reverse has spent what it left over, polished by single moves; ``"exhaustive"`` tries
    every setting.
    """
    return searched(known, budget, search, metric)[0]


def searched(
    known: HarvestModel, budget: float, search: Search = "better", metric: Metric = "gain per cost"
) -> tuple[I64, int]:
    """Return what `choose` does, and how many settings were tried to find it."""
    if search == "exhaustive":
        return exhaustive(known, budget), int((known.n.prod(axis=1) + 1).prod())
    everything = full(known)
    if search == "double-sided":
        m = len(known.rate)
        share = budget / max(cost(everything, known), 1e-300)
        search = "greedy" if share <= 0.5 ** ((m - 1) / 2) else "reverse"
    if search == "greedy":
        return _greedy(known, budget, metric)
    if search == "reverse":
        return _reverse(known, budget, metric)
    options = [_greedy(known, budget, metric), _refilled(known, budget, metric)]
    best = max((counts for counts, _ in options), key=lambda counts: output(counts, known))
    tried = kernels.polish(
        _METRICS[metric], budget, best, np.zeros_like(best), np.zeros_like(best), known
    )
    return best, tried + sum(n for _, n in options)


def _greedy(known: HarvestModel, budget: float, metric: Metric) -> tuple[I64, int]:
    counts = np.zeros_like(known.n)
    tried = kernels.pick(_METRICS[metric], budget, -1, counts, np.zeros_like(counts), known)
    return counts, tried


def _reverse(known: HarvestModel, budget: float, metric: Metric) -> tuple[I64, int]:
    counts = full(known)
    return counts, kernels.pick_reverse(_METRICS[metric], budget, -1, counts, known)


def _refilled(known: HarvestModel, budget: float, metric: Metric) -> tuple[I64, int]:
    counts, tried = _reverse(known, budget, metric)
    more = kernels.pick(_METRICS[metric], budget, -1, counts, np.zeros_like(counts), known)
    return counts, tried + more


def shred_fraction(known: HarvestModel, budget: float) -> float:
    """Return the share of every window that can be searched for `budget`."""
    low, high = 1e-6, 1.0
    for _ in range(30):
        middle = (low * high) ** 0.5
        if kernels.shredded_cost(middle, known) > budget:
            high = middle
        else:
            low = middle
    return low


def with_shares(counts: I64, known: HarvestModel, budget: float) -> tuple[I64, F64]:
    """Let a share of the events search where all of them would cost too much.

    Where the budget does not even allow one basic window of each step, a direction is off; its
    best setting for some of its events gives more than nothing, and may give more than all that
    fits. Returns the setting and the share of each direction's events it is for.
    """
    m = len(known.rate)
    alone = np.zeros_like(counts)
    worth = [kernels.best_rate(i, alone, known) for i in range(m)]
    by_rate = sorted(range(m), key=lambda i: -worth[i][1] / max(worth[i][0], 1e-300))
    options = []
    for start in (counts, np.zeros_like(counts)):
        chosen, shares = start.copy(), np.ones(m)
        left = budget - cost(chosen, known)
        gained = output(chosen, known)
        for i in by_rate:
            if chosen[i, 0] == 0 and left > 0.0 and worth[i][0] > 0.0:
                shares[i] = min(1.0, left / worth[i][0])
                chosen[i] = alone[i]
                left -= shares[i] * worth[i][0]
                gained += shares[i] * worth[i][1]
        options.append((gained, chosen, shares))
    _, chosen, shares = max(options, key=lambda option: option[0])
    return chosen, shares


# ---- exhaustive search


def exhaustive(known: HarvestModel, budget: float) -> I64:
    """Return the best of all settings, directions off included; for small cases.

    Directions share only the budget: of each, and of each combination, only settings that are
    worth their cost need to be tried with the rest.
    """
    m, steps = known.n.shape
    kept = _Front(np.zeros(1), np.zeros(1), np.zeros((1, 0), np.int64))
    for i in range(m):
        kept = _combine(kept, _of_direction(i, known, budget), budget)
    best = int(np.argmax(kept.output))
    return np.asarray(kept.counts[best].reshape(m, steps))


class _Front:
    """Settings of some directions, none of which costs more and gives less than another."""

    def __init__(self, costs: F64, outputs: F64, counts: NDArray[np.int64]) -> None:
        order = np.lexsort((costs, -outputs))[::-1]  # by output, the cheaper of equals last
        order = order[np.argsort(costs[order], kind="stable")]
        best_before = np.maximum.accumulate(np.concatenate([[-1.0], outputs[order][:-1]]))
        order = order[outputs[order] > best_before]
        self.cost, self.output, self.counts = costs[order], outputs[order], counts[order]


def _of_direction(i: int, known: HarvestModel, budget: float) -> _Front:
    steps = known.n.shape[1]
    axes = [np.arange(1, known.n[i, j] + 1) for j in range(steps)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, steps)
    partial = np.full(len(grid), known.rate[i])
    joined = partial.copy()
    costs = np.zeros(len(grid))
    for j in range(steps):
        c = grid[:, j]
        found = known.near[i, j] * known.passed[i, j, c]
        costs += partial * (known.entry[i, j] + known.each[i, j] * c + found)
        partial = partial * known.matches[i, j] * known.passed[i, j, c]
        joined = joined * known.matches[i, j] * known.joined[i, j, c]
    affordable = costs <= budget
    off = np.zeros((1, steps), np.int64)
    return _Front(
        np.concatenate([[0.0], costs[affordable]]),
        np.concatenate([[0.0], joined[affordable]]),
        np.concatenate([off, grid[affordable]]),
    )


def _combine(a: _Front, b: _Front, budget: float) -> _Front:
    costs = (a.cost[:, None] + b.cost[None, :]).ravel()
    outputs = (a.output[:, None] + b.output[None, :]).ravel()
    left, right = np.divmod(np.flatnonzero(costs <= budget), len(b.cost))
    affordable = costs <= budget
    counts = np.concatenate([a.counts[left], b.counts[right]], axis=1)
    return _Front(costs[affordable], outputs[affordable], counts)
