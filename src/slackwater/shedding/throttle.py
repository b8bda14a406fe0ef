"""The throttle: which share z of the full join's work can be done (GrubJoin III-A).

>>> throttle = Throttle(boost=1.2, may_wait=0.1)
>>> load = Load(pushed=100, consumed=50.0, asked=2.0, waiting=1.0)
>>> round(throttle.adapt(load), 3)  # there is time for 0.1 Δ, and twice Δ was asked for
0.05
>>> round(throttle.adapt(Load(pushed=100, consumed=100.0, asked=0.5, waiting=0.0)), 3)
0.06
>>> printed = Throttle(boost=1.2, may_wait=None)
>>> printed.adapt(load), printed.adapt(load)
(0.5, 0.25)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

_SMALLEST = 1e-4  # z is above 0: something must be learnt always
_LARGEST_CUT = 0.05  # of z at once


class Load(NamedTuple):
    """What the join was given in the last Δ, and what it managed."""

    pushed: int  # events that came
    consumed: float  # events that were done with
    asked: float  # time that all of them would have taken, by Δ
    waiting: float  # time that what waits will take, by Δ


@dataclass
class Throttle:
    """z and how it moves.

    The paper's rule (`may_wait` is None) compares rates: β is what was consumed by what came, and z
    falls by that factor, or rises by `boost` when β is 1. It never works off what waits. Ours asks
    how much time the next Δ has: Δ itself, less what waits, plus what `may_wait` (both by Δ; the
    server must not run dry), and moves z by that time over the time that was asked for.
    """

    boost: float
    may_wait: float | None = None
    z: float = 1.0

    def adapt(self, load: Load) -> float:
        """The next z."""
        if self.may_wait is None:
            performance = load.consumed / load.pushed if load.pushed else 1.0  # β
            factor = performance if performance < 1.0 else self.boost
        elif load.asked > 0.0:
            factor = (1.0 + self.may_wait - load.waiting) / load.asked
            factor = min(max(factor, _LARGEST_CUT), self.boost)
        else:
            factor = self.boost
        self.z = min(1.0, max(_SMALLEST, factor * self.z))
        return self.z
