"""Counts by delay, on the scale of `kernels.delay_scale`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.kernels.delay_scale import BUCKETS
from slackwater.kernels.records import I64

__all__ = ["BUCKETS", "dense", "sparse", "together", "used"]


def used(counts: NDArray[Any]) -> int:
    """How many buckets there are up to the last one that has counts.

    >>> used(np.array([3, 0, 1, 0])), used(np.zeros(4))
    (3, 0)
    """
    at = np.flatnonzero(counts)
    return int(at[-1]) + 1 if len(at) else 0


def together(counts: I64, others: I64) -> I64:
    """The sum of both; buckets that one does not have are empty.

    >>> together(np.array([1, 2]), np.array([3, 4, 5])).tolist()
    [4, 6, 5]
    """
    longer, shorter = (counts, others) if len(counts) >= len(others) else (others, counts)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total


def sparse(counts: NDArray[Any]) -> list[list[Any]]:
    """Which buckets have counts, and the counts: plain data."""
    at = np.flatnonzero(counts)
    return [at.tolist(), counts[at].tolist()]


def dense(given: list[list[Any]], into: NDArray[Any]) -> NDArray[Any]:
    """Fill `into` with the counts that `sparse` wrote down."""
    into[:] = 0
    into[np.array(given[0], np.int64)] = given[1]
    return into
