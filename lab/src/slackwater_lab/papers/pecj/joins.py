"""Two ways to join and count, event by event and at the deadline (PECJ 6.2 B and 6.5).

Both have, for each key, the events of each stream by cell of the window. The *eager* join (SHJ)
looks up the partners of each event when it arrives and adds their products; at the deadline it has
nothing left to count. The *lazy* one (PRJ) only counts the events when they are due, and multiplies
the counts then. Both come to the products that estimators work with (`Tally.products`), each thread
for its share of the keys. They are two streams without groups; the engine itself is lazy.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

import numba as nb
import numpy as np

from slackwater.compensation.tally import Events
from slackwater.kernels.records import F64


class Side(NamedTuple):
    """What a thread has of a window."""

    counts: F64  # [key, stream, cell]: events
    total: F64  # [key, cell]: sum of r.v
    products: F64  # [results and sum of r.v, cell of r, cell of s]


def side(n_keys: int, cells: int) -> Side:
    """Return the state at the start of a window."""
    return Side(
        np.zeros((n_keys, 2, cells)), np.zeros((n_keys, cells)), np.zeros((2, cells, cells))
    )


@nb.njit(nogil=True)
def eager(first, last, part, parts, stream, cell, key, value, counts, total, products):  # type: ignore[no-untyped-def]
    """Join events as they arrive."""
    for i in range(first, last):
        k = key[i]
        if k % parts != part:
            continue
        c = cell[i]
        if stream[i] == 0:
            for d in range(counts.shape[2]):
                products[0, c, d] += counts[k, 1, d]
                products[1, c, d] += value[i] * counts[k, 1, d]
            counts[k, 0, c] += 1.0
            total[k, c] += value[i]
        else:
            for d in range(counts.shape[2]):
                products[0, d, c] += counts[k, 0, d]
                products[1, d, c] += total[k, d]
            counts[k, 1, c] += 1.0


@nb.njit(nogil=True)
def lazy(first, last, part, parts, stream, cell, key, value, counts, total, products):  # type: ignore[no-untyped-def]
    """Join all events at the deadline."""
    for i in range(first, last):
        k = key[i]
        if k % parts != part:
            continue
        counts[k, stream[i], cell[i]] += 1.0
        if stream[i] == 0:
            total[k, cell[i]] += value[i]
    for k in range(part, counts.shape[0], parts):
        for c in range(counts.shape[2]):
            if counts[k, 0, c] > 0.0:
                for d in range(counts.shape[2]):
                    products[0, c, d] += counts[k, 0, c] * counts[k, 1, d]
                    products[1, c, d] += total[k, c] * counts[k, 1, d]


JOINS = {"lazy": lazy, "eager": eager}


def run(kind: str, events: Events, cells: int, threads: int = 1) -> F64:
    """Return the products of a window; keys are small numbers."""
    n_keys = int(events.key.max(initial=0)) + 1
    sides = [side(n_keys, cells) for _ in range(threads)]

    def share(part: int) -> None:
        JOINS[kind](
            0, len(events.key), part, threads, events.stream, events.cell, events.key,
            events.values[0], *sides[part],
        )  # fmt: skip

    if threads == 1:
        share(0)
    else:
        list(_pool(threads).map(share, range(threads)))
    return np.asarray(np.sum([own.products for own in sides], axis=0))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)
