"""How far behind its base the heartbeat should be, so that no more than a share is dropped.

**Ours.** The distance comes from what was observed: how many events of a period each distance would
have dropped, on average and how much that varies. It is the smallest one that should stay within
the budget even in a bad period: what the ratio allows for all events up to the end of the next
period, less what was dropped so far. When a period has used up its budget all the same, and in the
beginning, the distance becomes twice that of the event furthest behind, but for a few: a tenth of
what the ratio allows, and one as soon as there are 20 events. Otherwise a single event an hour late
would cost two hours whenever a budget is used up.

**Kim's.** The heartbeat is the recent mean less the largest distance from it, and an offset that
goes up a step after each period in which more was dropped than the ratio allows so far, and down a
step otherwise. The paper does not define how long a step is: ours is the largest distance divided
by `goal.steps`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from slackwater.kernels import drops as kernels
from slackwater.kernels.histogram import BUCKETS, upper_edges
from slackwater.kernels.records import F64, I64, NEVER
from slackwater.query.window_goals import DropRatio

_MEMORY = 30  # periods over which distances are remembered
_SEEN_OFTEN = 50  # or so many events that the ratio would drop, if that is longer
_DEVIATIONS = 4.0  # how bad a bad period is
_FEWEST = 20  # events that the ratio allows to drop, before any is dropped on purpose
_LEFT_OUT = 0.1  # of the events that the ratio allows to drop: too far behind to be followed
_KEPT_BACK = 3  # events of the budget that only an event further behind than any before may use
_EDGES: I64 = upper_edges()


class Period(NamedTuple):
    """What is known at the end of a period."""

    events: int  # so far
    dropped: int  # of them
    largest: int  # distance of an event from the base so far
    behind: I64  # how far the events of the period were behind the base; to be emptied


class HeartbeatSetting(NamedTuple):
    """What the heartbeat should do in the next period."""

    distance: int | None = None  # None: it follows the largest one
    twice: bool = False  # whether it rises with the event furthest behind
    limit: int = NEVER  # of dropped events, beyond which it does
    offset: int = 0  # to the largest distance


class Beyond:
    """How many events of a period are beyond each bucket of distance: on average, and at worst."""

    def __init__(self, buckets: int) -> None:
        self._periods = 0
        self._mean: F64 = np.zeros(buckets)
        self._square: F64 = np.zeros(buckets)  # mean of the square
        self._top = 0  # no bucket beyond this was ever used

    def learn(self, behind: I64, allowed: float) -> None:
        """Take in a period by its events in each bucket, of which so many may be dropped.

        The past reaches back some periods, or as many as allow some drops. `behind` is emptied.
        """
        self._periods += 1
        weight = 1.0 / self._remembered(allowed)
        self._top = kernels.learn(self._top, weight, behind, self._mean, self._square)

    def _remembered(self, allowed: float) -> float:
        """How many periods the past reaches back."""
        memory = max(_MEMORY, _SEEN_OFTEN / allowed if allowed > 0 else 0.0)
        return min(self._periods, memory)

    def within(self, budget: float, allowed_so_far: float) -> int | None:
        """The first bucket beyond which even a bad period has no more than `budget` events.

        None: there is no budget, or too little is known to use it.
        """
        if budget < 1.0 or allowed_so_far < _FEWEST:
            return None
        found = kernels.smallest_within(budget, _DEVIATIONS, self._top, self._mean, self._square)
        return int(found)

    def furthest(self, allowed: float, events: int) -> int:
        """The bucket of the event furthest behind in the past, but for a few.

        These are a share of the drops that are `allowed`, of which the argument is a period's, and
        one if there are enough `events`.
        """
        periods = self._remembered(allowed)
        left_out = max(_LEFT_OUT * allowed * periods, float(events >= _FEWEST))
        beyond = self._mean[: self._top + 1] * periods
        return int(np.argmax(beyond <= left_out + 1e-6))  # beyond the last there is none

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        used = slice(self._top + 1)
        mean, square = self._mean[used].tolist(), self._square[used].tolist()
        return {"periods": self._periods, "mean": mean, "square": square}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._periods, self._top = state["periods"], len(state["mean"]) - 1
        self._mean[: self._top + 1] = state["mean"]
        self._square[: self._top + 1] = state["square"]


class DropController:
    """Steers the distance by the share of events that was dropped."""

    def __init__(self, every: int, ratio: float) -> None:
        self.every = every
        self.ratio = ratio  # it may change on the way
        self._allowed = 0.0  # drops, of the events so far
        self._beyond = Beyond(BUCKETS)

    def begin(self, events: int) -> None:
        """Start to steer when so many events have come."""
        self._allowed = self.ratio * events

    def next_setting(self, period: Period) -> HeartbeatSetting:
        """The distance for the next period."""
        in_period = self.ratio * self.every
        self._allowed += in_period
        is_known = period.behind.any()
        self._beyond.learn(period.behind, in_period)
        allowed = self._allowed + in_period
        best = self._beyond.within(allowed - period.dropped, self._allowed)
        if best is None:
            largest = period.largest
            if is_known:
                furthest = self._beyond.furthest(in_period, period.events)
                largest = min(largest, int(_EDGES[furthest]))
            return HeartbeatSetting(2 * largest, twice=True)
        return HeartbeatSetting(int(_EDGES[best]), limit=int(allowed) - _KEPT_BACK)

    def state(self) -> dict[str, Any]:
        """What it has learnt, as plain data."""
        return self._beyond.state() | {"allowed": self._allowed}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._beyond.resume(state)
        self._allowed = state["allowed"]


class KimController:
    """Moves the offset by the sign of what was dropped too much."""

    def __init__(self, goal: DropRatio) -> None:
        self.every = goal.every.count
        self._ratio, self._steps = goal.ratio, goal.steps
        self._offset = 0

    def begin(self, events: int) -> None:
        """Start to steer when so many events have come; nothing depends on them."""

    def next_setting(self, period: Period) -> HeartbeatSetting:
        """The offset for the next period; it may take the heartbeat beyond the mean."""
        period.behind[:] = 0
        step = -(-period.largest // self._steps)
        too_many = period.dropped > self._ratio * period.events
        self._offset += step if too_many else -step
        return HeartbeatSetting(offset=self._offset)

    def state(self) -> dict[str, Any]:
        """The offset."""
        return {"offset": self._offset}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._offset = state["offset"]
