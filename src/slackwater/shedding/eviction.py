"""Which events leave the windows early when memory is short (GrubJoin VII).

An event grows older: what it will be worth is the sum over the ages still to come. So the oldest
basic window of a stream is never worth more than a younger one, and it is enough to choose between
the streams' oldest. Windows that nobody looks at any more, now or later, are worth nothing: they go
first.

>>> ages = [np.array([10.0, 10.0, 10.0]), np.array([10.0, 10.0, 10.0])]
>>> worth = [np.array([0.0, 9.0, 0.0]), np.array([1.0, 1.0, 1.0])]
>>> ages_kept(ages, worth, limit=60.0), ages_kept(ages, worth, limit=50.0)
([3, 3], [2, 3])
>>> ages_kept(ages, worth, limit=35.0)
[2, 1]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slackwater.kernels.records import F64


def ages_kept(size: Sequence[F64], worth: Sequence[F64], limit: float) -> list[int]:
    """How many basic windows of each stream stay, the youngest ones.

    Parameters
    ----------
    size
        Bytes in each basic window of each stream, by age.
    worth
        Results that a basic window has while it is so old; none where nothing is told.
    limit
        Most bytes of all streams together. The youngest basic window of a stream always stays.
    """
    kept = [len(sizes) for sizes in size]
    to_come = [_to_come(w, len(sizes)) for w, sizes in zip(worth, size, strict=True)]
    total = sum(float(sizes.sum()) for sizes in size)
    while total > limit:
        oldest = [s for s in range(len(size)) if kept[s] > 1]
        if not oldest:
            break
        # equally worthless: take from the stream that has most
        s = min(oldest, key=lambda s: (to_come[s][kept[s] - 1] / _usual(size[s]), -size[s].sum()))
        kept[s] -= 1
        total -= float(size[s][kept[s]])
    return kept


def _to_come(worth: F64, n: int) -> F64:
    padded = np.zeros(n)
    padded[: min(n, len(worth))] = worth[:n]
    return np.cumsum(padded[::-1])[::-1]


def _usual(sizes: F64) -> float:
    """Bytes of a basic window: what it is worth has to be paid with them."""
    return max(1.0, float(sizes.mean()))
