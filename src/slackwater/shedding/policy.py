"""What each kind of load shedding leaves out, given the throttle fraction z."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from slackwater.kernels import drop_rates
from slackwater.kernels import shed as fields
from slackwater.kernels.records import F64, I64, HarvestModel, Shed
from slackwater.query.shedding import Harvest, RandomDrop, Shedding, TailDrop
from slackwater.shedding import harvest_search
from slackwater.shedding.join_orders import JoinOrders
from slackwater.shedding.learning import Learning
from slackwater.shedding.sampling import Sampling
from slackwater.shedding.segments import HarvestSegments
from slackwater.shedding.throttle import Load, Throttle

_BISECTIONS = 8
_LEARN_BIAS = 0.2  # weight of the last interval
_MOST_BIAS = 5.0


class JoinParts(NamedTuple):
    """What policies read and set."""

    shed: Shed
    learning: Learning
    orders: JoinOrders
    sampling: Sampling
    segments: HarvestSegments


class Situation(NamedTuple):
    """What a policy decides on."""

    rate: F64  # [stream]: events per time
    known: HarvestModel  # cost and output
    full_cost: float  # of the whole join, per unit of time
    wanted: float | None  # share of the whole join's results that the goal asks for; None: no goal


class Expectation(NamedTuple):
    """What is expected of a setting."""

    kept: float = 1.0  # share of the results that is produced
    cpu_needed: float | None = None  # how many times the CPU would produce the wanted share


class Policy:
    """Decides what is left out; by default nothing."""

    bias = 1.0  # measured cost by modelled cost
    plans_with_dropped_events = False  # whether windows are taken to have the dropped events too

    def new_throttle(self, may_wait: float) -> Throttle:  # noqa: ARG002
        """Return the throttle, open; `may_wait`: backlog that is kept in quiet times, by Δ."""
        return Throttle("capacity")

    def throttle_load(self, load: Load) -> Load:
        """Return the load as the throttle should see it."""
        return load

    def learn_bias(self, comparisons: int, span: int, z: float, known: HarvestModel) -> None:
        """Compare the modelled cost of the last interval with its comparisons."""

    def apply(self, z: float, situation: Situation) -> Expectation:  # noqa: ARG002
        """Leave out what exceeds the fraction `z` of the whole join's work."""
        return Expectation()

    def take_cost(self) -> float:
        """Return the comparisons that decisions since the last call are charged as."""
        return 0.0

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""


def policy_for(shedding: Shedding, parts: JoinParts) -> Policy:
    """Return the policy of this kind of shedding."""
    match shedding:
        case TailDrop():
            return TailDropPolicy()
        case RandomDrop():
            return RandomDropPolicy(parts)
        case Harvest():
            return HarvestPolicy(shedding, parts)


class TailDropPolicy(Policy):
    """Decides nothing: the kernel drops events while the buffer is full."""


class RandomDropPolicy(Policy):
    """Drops events at random before the join, at the rates that leave most results."""

    plans_with_dropped_events = True

    def __init__(self, parts: JoinParts) -> None:
        self._parts = parts

    def throttle_load(self, load: Load) -> Load:
        """Return the load without its backlog.

        The drop rates are static: dropped events are missing from the windows for as long as these
        are, and a throttle that reacts to the backlog would oscillate.
        """
        return load._replace(waiting=0.0)

    def apply(self, z: float, situation: Situation) -> Expectation:
        """Set the share of each stream's events that are admitted."""
        known, m = situation.known, len(situation.rate)
        keep, log_keep, gradient = np.ones(m), np.zeros(m), np.zeros(m)
        if z < 1.0:
            drop_rates.best_shares(
                z * situation.full_cost, situation.rate, np.array(self._parts.orders.current),
                known.each * known.n + known.near, known.matches, keep, log_keep, gradient,
            )  # fmt: skip
        self._parts.shed.keep[:] = keep
        return Expectation(float(keep.prod()), None if situation.wanted is None else 1.0)


class HarvestPolicy(Policy):
    """Searches only the most profitable basic windows."""

    def __init__(self, shedding: Harvest, parts: JoinParts) -> None:
        self._shedding = shedding
        self._parts = parts
        self._counts = np.zeros_like(parts.shed.n_segments)  # basic windows that are searched
        self.bias = 1.0
        self._tried = 0  # settings, since they were charged

    def new_throttle(self, may_wait: float) -> Throttle:
        """Return the throttle, open; `may_wait`: backlog that is kept in quiet times, by Δ."""
        return Throttle(self._shedding.throttle, self._shedding.boost, may_wait)

    def learn_bias(self, comparisons: int, span: int, z: float, known: HarvestModel) -> None:
        """Compare the modelled cost of the last interval with its comparisons.

        The model is the present one, so that a change of rates is no error of the model.
        """
        shed = self._parts.shed
        whole = harvest_search.cost(harvest_search.full(known), known)
        expected = whole
        if shed.ctl[fields.SHEDDING]:
            sample = self._parts.sampling.rate
            harvested = harvest_search.cost(self._counts, known, shed.share)
            expected = (1.0 - sample) * harvested + sample * z * whole
        if comparisons > 0 and expected > 0.0:
            observed = min(max(comparisons / span / expected, 1 / _MOST_BIAS), _MOST_BIAS)
            self.bias *= (observed / self.bias) ** _LEARN_BIAS

    def apply(self, z: float, situation: Situation) -> Expectation:
        """Set the segments that are searched."""
        shed, sampling = self._parts.shed, self._parts.sampling
        wanted = situation.wanted
        cpu_needed = None if wanted is None else 1.0
        shed.ctl[fields.SHEDDING] = z < 1.0
        if z >= 1.0:
            return Expectation(1.0, cpu_needed)
        # a throttle that is found includes the bias already
        is_found = self._shedding.fixed_fraction is None
        corrected = z if is_found else min(1.0, z / self.bias)
        self._counts, shed.share[:], harvested = self._search(corrected, situation)
        m = len(situation.rate)
        kept = (1 - sampling.rate) * harvested + sampling.share_of_results(m)
        for i, order in enumerate(self._parts.orders.current):
            for j, s in enumerate(order):
                best = harvest_search.ranking(self._parts.learning.scores(i, s))
                self._parts.segments.choose(i, s, best[: self._counts[i, j]].tolist())
        if wanted is not None and kept < wanted:
            cpu_needed = self._fraction_for(wanted, z, situation) / z
        return Expectation(kept, cpu_needed)

    def _search(self, z: float, situation: Situation) -> tuple[I64, F64, float]:
        """Return the setting for z, the share of events it is for, and of the results it makes."""
        known = situation.known
        budget, shares = z * situation.full_cost, np.ones(len(known.rate))
        counts, tried = harvest_search.searched(
            known, budget, self._shedding.search, self._shedding.metric
        )
        self._tried += tried
        if self._shedding.search == "better":
            counts, shares = harvest_search.with_shares(counts, known, budget)
        made = harvest_search.output(counts, known, shares)
        whole = harvest_search.output(harvest_search.full(known), known)
        return counts, shares, made / whole if whole > 0.0 else 1.0

    def _fraction_for(self, wanted: float, z: float, situation: Situation) -> float:
        """Return the smallest fraction above `z` that makes so large a share of the results."""
        low, high = z, 1.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if self._search(middle, situation)[2] >= wanted:
                high = middle
            else:
                low = middle
        return high

    def take_cost(self) -> float:
        """Return the comparisons that decisions since the last call are charged as."""
        tried, self._tried = self._tried, 0
        return tried * self._shedding.setting_cost

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from."""
        return {"counts": self._counts.tolist(), "bias": self.bias}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self._counts, self.bias = np.array(state["counts"]), state["bias"]
