"""What is known of a window at its deadline, and the interface of those who guess the rest.

A window is cut into *cells* of equal length. `counts` has the events of each stream by cell,
`products` the results (and the sums of their values) by the cells of their members. Whatever is
believed about missing events can be said with weights: if an event in cell c of stream s stands
for ``w[s, c]`` events, the window has so many results:

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
    """How many cells a window has: few enough that their combinations are few.

    >>> [cells_for(m) for m in (2, 3, 4, 8)]
    [20, 7, 4, 2]
    """
    return max(2, min(_MOST_CELLS, int(_MOST_COMBINATIONS ** (1 / n_streams))))


@dataclass(frozen=True)
class Seen:
    """A window at its deadline."""

    counts: F64  # [stream, cell]: events that have arrived
    products: F64  # [value, cell of the first stream, of the second, ...]; value 0 counts results
    delay: F64  # [stream]: how late its events are, on average, the newest counting most
    latest: F64  # [stream]: when its last event arrived, from the start of the window
    length: float  # of the window

    @cached_property
    def observed(self) -> F64:
        """The results there are, and the sums of their values."""
        return np.asarray(self.products.reshape(len(self.products), -1).sum(axis=1))

    @cached_property
    def totals(self) -> F64:
        """Events of each stream."""
        return np.asarray(self.counts.sum(axis=1))

    @cached_property
    def by_cell(self) -> F64:
        """What each cell tells of each parameter, NaN where it tells nothing: [parameter, cell].

        Of the size of a stream, its events; of the selectivity and of the mean of a value, those of
        the results that its events of the first stream are in.
        """
        m, others = len(self.counts), float(self.totals[1:].prod())
        found = self.products.reshape(*self.products.shape[:2], -1).sum(axis=2)
        pairs = self.counts[0] * others
        told = np.concatenate([self.counts, found])
        told[m] /= np.maximum(pairs, 1.0)
        told[m + 1 :] /= np.maximum(found[0], 1.0)
        told[:m][self.counts == 0.0] = np.nan
        told[m, pairs == 0.0] = np.nan
        told[m + 1 :, found[0] == 0.0] = np.nan
        return told


class Truth(NamedTuple):
    """The same window when all has arrived."""

    counts: F64  # [stream, cell]
    values: F64  # [value]


class Guess(NamedTuple):
    """What somebody believes."""

    weights: F64 | None  # [stream, cell]: for how many events one that has arrived stands; None: 1
    scale: F64  # [value]: and what is to be multiplied with that
    values: F64  # [value]: what comes out
    spread: F64  # [value]: standard error, as a share of the value
    sizes: F64  # [stream]: events that the window will have
    notes: Any = None  # what the estimator needs to learn from it

    def apply(self, products: F64) -> F64:
        """The same for a part of the results, a group."""
        if self.weights is None:
            return np.asarray(self.scale * products.reshape(len(products), -1).sum(axis=1))
        return np.asarray(self.scale * contracted(products, self.weights))


class Estimator(Protocol):
    """Guesses what a window will be, and learns from what it was."""

    def guess(self, seen: Seen) -> Guess:
        """What the window will be."""

    def learn(self, seen: Seen, guess: Guess, truth: Truth) -> None:
        """A window that was guessed is complete."""

    def state(self) -> dict[str, Any]:
        """What was learnt, as plain data."""

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""


def contracted(products: F64, weights: F64) -> F64:
    """Results and sums when each event counts as many times as its cell's weight says."""
    for own in weights:  # the first axis of cells, again and again
        products = np.tensordot(products, own, axes=(1, 0))
    return np.asarray(products)
