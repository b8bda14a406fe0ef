"""The observation of a window at its deadline, and the interface of estimators.

A window is cut into *cells* of equal length. `counts` has the events of each stream by cell,
`products` the results (and the sums of their values) by the cells of their members. Missing events
are expressed with weights: if an event in cell c of stream s represents ``w[s, c]`` events, the
window has so many results:

>>> products = np.array([[[4.0, 0.0], [2.0, 1.0]]])
>>> contracted(products, np.array([[1.0, 1.0], [1.0, 1.0]]))
array([7.])
>>> contracted(products, np.array([[1.0, 2.0], [1.0, 3.0]]))
array([14.])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from slackwater.kernels.records import F64

_MOST_COMBINATIONS = 500
_MOST_CELLS = 20


def cells_for(n_streams: int) -> int:
    """Return how many cells a window has, so that there are few combinations of them.

    >>> [cells_for(m) for m in (2, 3, 4, 8)]
    [20, 7, 4, 2]
    """
    return max(2, min(_MOST_CELLS, int(_MOST_COMBINATIONS ** (1 / n_streams))))


@dataclass(frozen=True)
class WindowObservation:
    """A window at its deadline."""

    counts: F64  # [stream, cell]: events that have arrived
    products: F64  # [value, cell of the first stream, of the second, ...]; value 0 counts results
    delay: F64  # [stream]: how late its events are, on average, the newest counting most
    latest: F64  # [stream]: when its last event arrived, from the start of the window
    length: float  # of the window

    @cached_property
    def observed(self) -> F64:
        """The results so far, and the sums of their values."""
        return np.asarray(self.products.reshape(len(self.products), -1).sum(axis=1))

    @cached_property
    def totals(self) -> F64:
        """Events of each stream."""
        return np.asarray(self.counts.sum(axis=1))

    @cached_property
    def by_cell(self) -> F64:
        """Each parameter as observed in each cell, NaN where it is not: [parameter, cell].

        For the size of a stream, the events in the cell; for the selectivity and for the mean of a
        value, those of the results with their event of the first stream in the cell.
        """
        m, others = len(self.counts), float(self.totals[1:].prod())
        found = self.found
        pairs = self.counts[0] * others
        cells = np.concatenate([self.counts, found])
        cells[m] /= np.maximum(pairs, 1.0)
        cells[m + 1 :] /= np.maximum(found[0], 1.0)
        cells[:m][self.counts == 0.0] = np.nan
        cells[m, pairs == 0.0] = np.nan
        cells[m + 1 :, found[0] == 0.0] = np.nan
        return cells

    @property
    def parts(self) -> F64:
        """Each parameter as the part of it in each cell, times the cells: [parameter, cell].

        The mean over the cells is the parameter itself, whatever the cells have in common.
        """
        return parts_of(self.counts, self.found)

    @property
    def found(self) -> F64:
        """The values by the cell of their event of the first stream: [value, cell]."""
        shape = self.products.shape
        return np.asarray(self.products.reshape(*shape[:2], -1).sum(axis=2))


def parts_of(counts: F64, found: F64) -> F64:
    """Return sizes, selectivity and mean values, by the parts of them in each cell.

    >>> counts, found = np.array([[2.0, 0.0], [3.0, 1.0]]), np.array([[3.0, 1.0], [12.0, 8.0]])
    >>> parts_of(counts, found).mean(axis=1).tolist()  # 2 and 4 events, 4 of 8 pairs, 20 / 4
    [2.0, 4.0, 0.5, 5.0]
    """
    pairs, results = float(counts.sum(axis=1).prod()), float(found[0].sum())
    parts = np.concatenate([counts, found[:1] / max(pairs, 1.0), found[1:] / max(results, 1.0)])
    return np.asarray(parts * counts.shape[1])


class Truth(NamedTuple):
    """The same window when it is complete."""

    counts: F64  # [stream, cell]
    found: F64  # [value, cell of the first stream]

    @property
    def values(self) -> F64:
        """The values of the window: [value]."""
        return np.asarray(self.found.sum(axis=1))


class Estimate(NamedTuple):
    """An estimate of the complete window."""

    weights: F64 | None  # [stream, cell]: events that an arrived one represents; None: 1
    scale: F64  # [value]: a factor beside the weights
    values: F64  # [value]: the estimates
    spread: F64  # [value]: standard error, as a share of the value
    sizes: F64  # [stream]: events that the window will have
    notes: Any = None  # what the estimator needs to learn from it

    def apply(self, products: F64) -> F64:
        """Return the values of a part of the results, a group."""
        if self.weights is None:
            return np.asarray(self.scale * products.reshape(len(products), -1).sum(axis=1))
        return np.asarray(self.scale * contracted(products, self.weights))


class Estimator(Protocol):
    """Estimates complete windows, and learns from them."""

    def estimate(self, observation: WindowObservation) -> Estimate:
        """Estimate the complete window."""

    def learn(self, observation: WindowObservation, estimate: Estimate, truth: Truth) -> None:
        """Learn from a window that is complete."""

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from."""

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""


def contracted(products: F64, weights: F64) -> F64:
    """Return results and sums when each event counts with the weight of its cell."""
    for own in weights:  # the first axis of cells, again and again
        products = np.tensordot(products, own, axes=(1, 0))
    return np.asarray(products)
