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

    >>> [int(n) for n in widened(np.arange(BUCKETS))[:4]]  # 1 and 2, 3 and 4, 5 and 6
    [0, 3, 7, 11]
    """
    wide = np.zeros_like(counts)
    wide[..., 0] = counts[..., 0]
    wide[..., 1 : BUCKETS // 2] = counts[..., 1:-1:2] + counts[..., 2::2]
    wide[..., BUCKETS // 2] = counts[..., -1]
    return wide


def sparse(counts: NDArray[Any]) -> list[list[Any]]:
    """Which buckets have counts, and the counts: plain data."""
    at = np.flatnonzero(counts)
    return [at.tolist(), counts[at].tolist()]


def dense(given: list[list[Any]], into: NDArray[Any]) -> NDArray[Any]:
    """Fill `into` with the counts that `sparse` wrote down."""
    into[:] = 0
    into[np.array(given[0], np.int64)] = given[1]
    return into
