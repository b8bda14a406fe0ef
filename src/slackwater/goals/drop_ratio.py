"""How far behind its base the heartbeat should be, so that no more than a share is dropped (Kim).

Kim moves an offset up or down each period, by the sign of what was dropped too much. Here the
distance comes from what was seen: the distribution of how far events are behind the base, over the
recent past, says how many of the next period each distance would drop. The distance is the
smallest one that keeps within the budget: what the ratio allows for all events up to the end of
the next period, less what was dropped so far, less a reserve for bad luck.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from slackwater.goal import DropRatio
from slackwater.kernels.histogram import BUCKETS, upper_edges
from slackwater.kernels.records import F64, I64

_MEMORY = 20  # periods over which distances are remembered
_SEEN_OFTEN = 50  # or so many events that the ratio would drop, if that is longer
_RESERVE = 2.0  # deviations of what a period drops, kept back
_EDGES: I64 = upper_edges()


class DropController:
    """Steers the distance by the share of events that was dropped."""

    def __init__(self, goal: DropRatio) -> None:
        self.every = goal.every
        self._ratio = goal.ratio
        memory = max(_MEMORY * goal.every, _SEEN_OFTEN / goal.ratio if goal.ratio else 0)
        self._keep = 1.0 - goal.every / memory
        self._seen: F64 = np.zeros(BUCKETS)
        self._largest = 0  # distance ever seen

    def next_distance(self, count: int, dropped: int, behind: I64) -> int:
        """The distance for the next period.

        `count` events have come, `dropped` of them were dropped; `behind` has how far those of the
        last period were behind the base.
        """
        self._seen = self._keep * self._seen + behind
        used = np.flatnonzero(behind)
        if len(used):
            self._largest = max(self._largest, int(_EDGES[used[-1]]))
        budget = self._ratio * (count + self.every) - dropped
        budget -= _RESERVE * sqrt(self._ratio * self.every)
        if budget <= 0:
            return self._largest
        beyond = np.cumsum(self._seen[::-1])[::-1] - self._seen  # events beyond each bucket
        share = beyond / max(self._seen.sum(), 1.0)
        enough = np.flatnonzero(share * self.every <= budget)
        return int(_EDGES[enough[0]]) if len(enough) else self._largest

    def state(self) -> dict[str, Any]:
        """What it has learnt, as plain data."""
        at = np.flatnonzero(self._seen)
        return {"at": at.tolist(), "seen": self._seen[at].tolist(), "largest": self._largest}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._seen[:] = 0.0
        self._seen[np.array(state["at"], np.int64)] = state["seen"]
        self._largest = state["largest"]
