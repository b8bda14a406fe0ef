"""The throttle: the fraction z of the full join's work that can be done (GrubJoin III-A).

>>> load = Load(pushed=100, consumed=50.0, left=50.0, possible=0.25, waiting=0.2)
>>> Throttle("rates", boost=1.2).adapt(load)  # half of what arrived was done
0.5
>>> Throttle("backlog", boost=1.2).adapt(load)  # and half of it still waits
0.3333333333333333
>>> Throttle("capacity", boost=1.2, may_wait=0.2).adapt(load)  # a quarter can be done in Δ
0.25
>>> Throttle("rates", boost=1.2, z=0.5).adapt(load._replace(consumed=100.0))
0.6
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from slackwater.query.shedding import Rule

_SMALLEST = 1e-4  # z stays above 0, so that learning goes on
_LEAST_TIME = 0.1  # of Δ is always used, however large the backlog is


class Load(NamedTuple):
    """The load of the last interval of length Δ."""

    pushed: int  # events that arrived
    consumed: float  # events that were processed
    left: float  # events that wait
    possible: float | None  # the z whose work would take all of Δ; None: unknown
    waiting: float  # time that the waiting work will take, by Δ


@dataclass
class Throttle:
    """The throttle fraction z and the rule by which it changes.

    The paper's rule, ``"rates"``, divides the events consumed by those that arrived: z falls by
    that factor β, or rises by `boost` when β is 1. It never reduces the backlog; ``"backlog"`` adds
    that to what arrived. Both react to a change when it is over. Ours, ``"capacity"``, uses what
    the join costs now: the next Δ has its own time, less the backlog, plus `may_wait` (by Δ), so
    that the server does not idle. It needs no boost: it knows how much work is possible.
    """

    rule: Rule
    boost: float = 1.2
    may_wait: float = 0.0
    z: float = 1.0

    def adapt(self, load: Load) -> float:
        """Set and return the next z."""
        if self.rule == "capacity":
            time = max(1.0 + self.may_wait - load.waiting, _LEAST_TIME)
            z = self.z if load.possible is None else time * load.possible
        else:
            arrived = load.pushed + (load.left if self.rule == "backlog" else 0.0)
            performance = load.consumed / arrived if arrived else 1.0  # β
            z = self.z * (performance if performance < 1.0 else self.boost)
        self.z = min(1.0, max(_SMALLEST, z))
        return self.z
