"""The throttle: which share z of the full join's work can be done (GrubJoin III-A).

>>> throttle = Throttle(boost=1.2)
>>> load = Load(pushed=100, consumed=50.0, waiting=50.0, behind=0.5, spare=0.5)
>>> throttle.adapt(load), throttle.adapt(load)
(0.3333333333333333, 0.1111111111111111)
>>> throttle.adapt(Load(pushed=100, consumed=100.0, waiting=0.0, behind=0.0, spare=9.0))
0.13333333333333333
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

_SMALLEST = 1e-4  # z is above 0: something must be learnt always
_IN_WORK = 0.01  # less than this share of Δ is not a backlog: it is what is in work


class Load(NamedTuple):
    """What the join was given in the last Δ, in events, and what it managed."""

    pushed: int  # that came, whether they were let in or not
    consumed: float
    waiting: float  # in the input buffer at the end
    behind: float  # the time that they will take, as a share of Δ
    spare: float  # so many times the work could have been done in the time


@dataclass
class Throttle:
    """z and how it moves.

    With `drains`, what waits counts as if it came in the next Δ, so that a backlog is worked off,
    and z is not raised further than the spare time allows; otherwise as printed.
    """

    boost: float
    drains: bool = True
    z: float = 1.0

    def adapt(self, load: Load) -> float:
        """The next z."""
        asked = load.pushed + (load.waiting if self.drains else 0.0)
        performance = load.consumed / asked if asked > 0 else 1.0  # β
        if self.drains and load.spare >= 1.0 and load.behind <= _IN_WORK:
            performance = max(performance, 1.0)
        if performance < 1.0:
            self.z = max(_SMALLEST, performance * self.z)
        else:
            most = min(self.boost, max(load.spare, 1.0)) if self.drains else self.boost
            self.z = min(1.0, most * self.z)
        return self.z
