"""`ErrorBound`: how much may be dropped, so that aggregates stay within their error bound.

How wrong a window is without an event depends on the aggregate and on the data, so it is measured:
the errors of windows that are settled show whether the share of events that may be dropped has to
fall, or may rise. `DropController` keeps that share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.controllers.drop_ratio import DropController
from slackwater.kernels.records import F64
from slackwater.query.window_goals import ErrorBound

_FIRST = 0.5  # the share at first, by the bound: a sum is as wrong as what it lacks
_LESS, _MORE = 0.7, 1.15  # steps of the share
_PATIENCE = 100  # windows between two steps
_MOST = 0.5  # share


class ErrorController(DropController):
    """Steers the share of events that may be dropped by the errors of windows."""

    def __init__(self, goal: ErrorBound) -> None:
        self._bound = goal.bound
        self._too_often = 1.0 - goal.confidence
        self._judged = 0  # windows since the last step
        self._wrong = 0  # of them
        super().__init__(goal.every.count, min(_FIRST * goal.bound, _MOST))

    def judge(self, errors: F64) -> None:
        """These windows are settled."""
        self._judged += len(errors)
        self._wrong += int(np.count_nonzero(errors > self._bound))
        if self._judged < _PATIENCE:
            return
        share = self._wrong / self._judged
        if share > self._too_often:
            self.ratio *= _LESS
        elif share < self._too_often / 2:
            self.ratio = min(self.ratio * _MORE, _MOST)
        self._judged = self._wrong = 0

    def state(self) -> dict[str, Any]:
        """What it has learnt, as plain data."""
        own = {"ratio": self.ratio, "judged": self._judged, "wrong": self._wrong}
        return super().state() | own

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        super().resume(state)
        self.ratio, self._judged, self._wrong = state["ratio"], state["judged"], state["wrong"]
