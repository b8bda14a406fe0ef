"""The throttle: which share z of the full join's work can be done (GrubJoin III-A).

>>> load = Load(pushed=100, consumed=50.0, left=50.0, possible=0.25, waiting=0.2)
>>> Throttle("rates", boost=1.2).adapt(load)  # half of what came was done
0.5
>>> Throttle("backlog", boost=1.2).adapt(load)  # and half of it is still to be done
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

_SMALLEST = 1e-4  # z is above 0: something must be learnt always
_LEAST_TIME = 0.1  # of Δ is always used, whatever waits


class Load(NamedTuple):
    """What the join was given in the last Δ, and what it managed."""

    pushed: int  # events that came
    consumed: float  # events that were done with
    left: float  # events that wait
    possible: float | None  # the z whose work would take all of Δ; None: nobody knows
    waiting: float  # the time that what waits will take, by Δ


@dataclass
class Throttle:
    """z and how it moves.

    The paper's rule, ``"rates"``, compares what was consumed with what came: z falls by that factor
    β, or rises by `boost` when β is 1. It never works off what waits; ``"backlog"`` adds that to
    what came. Both hear of a change when it is over. Ours, ``"capacity"``, goes by what the join
    costs now: the next Δ has its own time, less what waits, plus what `may_wait` (by Δ), so that
    the server does not run dry. It needs no boost: it knows how far it can go.
    """

    rule: Rule
    boost: float = 1.2
    may_wait: float = 0.0
    z: float = 1.0

    def adapt(self, load: Load) -> float:
        """The next z."""
        if self.rule == "capacity":
            time = max(1.0 + self.may_wait - load.waiting, _LEAST_TIME)
            z = self.z if load.possible is None else time * load.possible
        else:
            came = load.pushed + (load.left if self.rule == "backlog" else 0.0)
            performance = load.consumed / came if came else 1.0  # β
            z = self.z * (performance if performance < 1.0 else self.boost)
        self.z = min(1.0, max(_SMALLEST, z))
        return self.z
