"""Estimators with knowledge that no stream gives: the law of the delays, or the size of a window.

They show what is attainable. *ratio* divides the observed results by the mean chance that a pair
has arrived, *ipw* each pair by its own chance, *size* multiplies the observed selectivity by the
true sizes.

>>> from slackwater_lab.papers.pecj.data import window_of
>>> one = window_of([np.array([0, 5000])] * 2, [np.array([1, 2])] * 2, np.array([3.0, 4.0]))
>>> estimates = oracles(one, np.array([9, 9, 9, 9]), 5_000, 7_500)
>>> {name: values.tolist() for name, values in estimates.items()}  # both have arrived
{'ratio': [3.55..., 12.44...], 'ipw': [5.0, 19.0], 'size': [2.0, 7.0]}
"""

from __future__ import annotations

import numpy as np

from slackwater.kernels.records import F64, I64
from slackwater_lab.papers.pecj.data import Window

NAMES = ("ratio", "ipw", "size")


def oracles(window: Window, delay: I64, most: int, deadline: int) -> dict[str, F64]:
    """Return the estimates of a window with delays up to `most`: [results, sum of r.v]."""
    left = deadline - window.time
    chance = np.clip(left / most, 0.0, 1.0) if most else (left >= 0).astype(float)
    has_arrived = (delay <= left).astype(float)
    weight = np.divide(has_arrived, chance, out=np.zeros(len(chance)), where=chance > 0.0)
    sizes, arrived, expected = (
        np.bincount(window.stream, what) for what in (np.ones(len(chance)), has_arrived, chance)
    )
    observed = _joined(window, has_arrived)
    return {
        "ratio": observed * (sizes / np.maximum(expected, 1e-9)).prod(),
        "ipw": _joined(window, weight),
        "size": observed * (sizes / np.maximum(arrived, 1.0)).prod(),
    }


def _joined(window: Window, weight: F64) -> F64:
    """The results and the sum of r.v when each event counts so many times."""
    first, n = window.stream == 0, int(window.code.max()) + 1
    r, s, own = window.code[first], window.code[~first], weight[first]
    other = np.bincount(s, weight[~first], n)
    return np.array([
        np.bincount(r, own, n) @ other,
        np.bincount(r, own * window.value[first], n) @ other,
    ])  # fmt: skip
