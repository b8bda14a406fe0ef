"""Those who know more than anybody can: the law of the delays, or the size of a window.

They say what is attainable. *ratio* divides what is there by the mean chance of a pair to be there,
*ipw* each pair by its own chance, *size* multiplies the observed selectivity by the true sizes.

>>> from slackwater_lab.papers.pecj.data import window_of
>>> one = window_of([np.array([0, 5000])] * 2, [np.array([1, 2])] * 2, np.array([3.0, 4.0]))
>>> told = oracles(one, np.array([9, 9, 9, 9]), 5_000, 7_500)
>>> {name: values.tolist() for name, values in told.items()}  # both are there, one by luck
{'ratio': [3.55..., 12.44...], 'ipw': [5.0, 19.0], 'size': [2.0, 7.0]}
"""

from __future__ import annotations

import numpy as np

from slackwater.kernels.records import F64, I64
from slackwater_lab.papers.pecj.data import Window

NAMES = ("ratio", "ipw", "size")


def oracles(window: Window, delay: I64, most: int, deadline: int) -> dict[str, F64]:
    """What each says of a window with delays up to `most`: [results, sum of r.v]."""
    left = deadline - window.time
    chance = np.clip(left / most, 0.0, 1.0) if most else (left >= 0).astype(float)
    there = (delay <= left).astype(float)
    weight = np.divide(there, chance, out=np.zeros(len(chance)), where=chance > 0.0)
    sizes, arrived, expected = (
        np.bincount(window.stream, what) for what in (np.ones(len(there)), there, chance)
    )
    observed = _joined(window, there)
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
