"""The decorators of all kernels: compiled once, cached on disk, valid Python without numba.

`kernel` marks what Python calls, `part` what kernels are made of, `rare` what they leave to a call
because it would only make the hot loop longer, `summing` long sums. Two options matter for speed;
together they took the reordering stage from 360 to about 35 ns an event, its Python included:
records of arrays are passed by value, so parts are always inlined; and no kernel allocates, so
reference counting is off.

Numba caches beside the module. Where that folder is read-only (a system-wide install) it falls back
to the user's cache folder by itself; where neither is writable it would raise at import, so caching
is then left out: slower to start, never broken. In a zip or wheel `archive` chooses the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numba

from slackwater.kernels.archive import LOCATOR, is_archived

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def _compiled(function: Kernel, **options: Any) -> Kernel:
    jit = numba.njit
    try:
        with _cache_of(function):
            return jit(cache=True, error_model="python", nogil=True, _nrt=False, **options)(  # type: ignore[no-any-return]
                function
            )
    except RuntimeError:  # numba: "cannot cache function: no locator available"
        return jit(error_model="python", nogil=True, _nrt=False, **options)(function)  # type: ignore[no-any-return]


@contextmanager
def _cache_of(function: Kernel) -> Iterator[None]:
    """Numba looks for the cache when it decorates; what others decorate is not our concern."""
    before = numba.config.CACHE_LOCATOR_CLASSES
    if is_archived(function):
        numba.config.CACHE_LOCATOR_CLASSES = LOCATOR
    try:
        yield
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = before


def kernel(function: Kernel) -> Kernel:
    """Compile `function` on its first call; what a user's expression raises, it raises."""
    return _compiled(function)


def rare(function: Kernel) -> Kernel:
    """Compile `function` on its own; kernels call it."""
    return _compiled(function)


def part(function: Kernel) -> Kernel:
    """Compile `function` into every kernel that calls it."""
    return _compiled(function, forceinline=True)


def summing(function: Kernel) -> Kernel:
    """A `part` that adds up many numbers, in whatever order is fastest on this machine.

    One after the other each addition waits for the last: 512 products take 400 ns. In vector
    registers they take 60 (110 from main memory). The order is that of the compiled code, so the
    same sum is always the same, but its last bits may differ from plain Python's and from another
    processor's. Multiplying and adding in one step (`contract`) gains nothing more.
    """
    return _compiled(function, forceinline=True, fastmath={"reassoc"})
