"""Arrays that begin on a cache line, so that what is read together is not on two of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_CACHE_LINE = 64


def zeros(shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """Zeros whose first byte lies on a cache line."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + _CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % _CACHE_LINE
    return raw[start : start + size].view(dtype).reshape(shape)
