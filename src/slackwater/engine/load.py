"""Measures how long the engine is busy, with the wall clock; the engine itself reads no clock.

Load shedding without a budget needs it. The load of a batch acts from the next batch on, and is
part of the engine's state, so that a repeated batch gives the same results.
"""

from __future__ import annotations

import time
from types import TracebackType

from slackwater.engine.base import AnyEngine


class LoadMeter:
    """Reports to `engine` how long it was busy inside the ``with`` block."""

    def __init__(self, engine: AnyEngine) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        self._begin = self._engine.reorder.top
        self._started = time.perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._engine.measured(time.perf_counter() - self._started, self._begin)
