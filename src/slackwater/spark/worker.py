"""What every Python worker of Spark should do once."""

from __future__ import annotations

import gc
from functools import cache


@cache
def settle() -> None:
    """Tell Python's garbage collector that what is loaded by now stays.

    Spark's workers collect garbage after every task. With numba loaded that takes some 50 ms, more
    than a small task itself; of what is loaded, nothing is garbage.
    """
    gc.collect()
    gc.freeze()
