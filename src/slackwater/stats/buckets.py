"""Counts by delay: bucket 0 is no delay, bucket d reaches from (d - 1) g, not included, to d g."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from slackwater.kernels.records import F64, I64

BUCKETS = 4096  # when a delay is beyond them, buckets become twice as wide

Counts = TypeVar("Counts", I64, F64)


def widened(counts: Counts) -> Counts:
    """The same counts in buckets of twice the width: 1 and 2 become 1, 3 and 4 become 2.

    >>> widened(np.arange(6)).tolist()  # 1 and 2, 3 and 4, 5
    [0, 3, 7, 5, 0, 0]
    """
    n = counts.shape[-1]
    wide = np.zeros_like(counts)
    wide[..., 0] = counts[..., 0]
    wide[..., 1 : n // 2 + 1] = counts[..., 1::2]
    wide[..., 1 : (n + 1) // 2] += counts[..., 2::2]
    return wide


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
