"""Load shedding of one join: measures the load each Δ and decides what is left out.

Decisions and statistics are in `Shedder.shed`, which the join kernel reads and writes. Each part
has one job: `load` measures, `learning` keeps the statistics of the sample, `costs` makes a model
of them, `throttle` finds the fraction z of the work that can be done, `policy` decides what to
leave out for it, `eviction` frees memory.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from slackwater.kernels import shed as fields
from slackwater.kernels.records import I64
from slackwater.query.join import JoinQuery
from slackwater.query.shedding import Shedding
from slackwater.query.units import to_units
from slackwater.shedding import harvest_search
from slackwater.shedding.cost_model import CostModel
from slackwater.shedding.eviction import Eviction
from slackwater.shedding.join_orders import JoinOrders
from slackwater.shedding.kernel_state import SAVED_FIELDS, AccessPaths, new_shed
from slackwater.shedding.learning import Learning
from slackwater.shedding.load import LoadMonitor
from slackwater.shedding.policy import Expectation, JoinParts, Situation, policy_for
from slackwater.shedding.sampling import SampleEstimates, Sampling
from slackwater.shedding.segments import HarvestSegments

_MAY_WAIT = 0.25  # share of the buffer that is used in quiet times, so that the server never idles
_MOST_MAY_WAIT = 0.25  # of Δ
_OPTIONS = [fields.SAMPLE, fields.BUFFER, fields.COMPARISON]  # numbers that the query sets


class SheddingCounts(NamedTuple):
    """What became of some events that came to the join."""

    dropped: I64  # [stream]: events that were not admitted
    estimates: SampleEstimates


class Shedder:
    """Decides what is left out.

    Parameters
    ----------
    query
        The join.
    shedding
        How to shed.
    paths
        How the join finds partners.
    """

    def __init__(self, query: JoinQuery, shedding: Shedding, paths: AccessPaths) -> None:
        self.shedding = shedding
        self._paths = paths
        self.second = to_units("1 second", query.unit)
        self.every = to_units(shedding.every, query.unit, "every")
        lengths = [length for length in query.lengths if length is not None]
        self._longest = max(*lengths, 1)
        self.shed = shed = new_shed(query, shedding, paths)
        self._buffer = float(shed.number[fields.BUFFER])
        self.load = LoadMonitor(shed, lengths)
        self.learning = Learning(shed, lengths, shedding.scores_per_stream)
        self._orders = JoinOrders(shed, paths)
        self._costs = CostModel(shed, paths, self.learning, self._orders)
        self._sampling = Sampling(shed, first_step_only=shedding.scores_per_stream)
        self.segments = HarvestSegments(shed, lengths, self._orders)
        parts = JoinParts(shed, self.learning, self._orders, self._sampling, self.segments)
        self._policy = policy_for(shedding, parts)
        may_wait = min(_MAY_WAIT * self._buffer / self.every, _MOST_MAY_WAIT)
        self.throttle = self._policy.new_throttle(may_wait)
        if shedding.fixed_fraction is not None:
            self.throttle.z = shedding.fixed_fraction
        self.eviction: Eviction | None = None
        if shedding.memory_bytes is not None:
            self.eviction = Eviction(
                shed, self.segments, shedding.memory_bytes, self.every, self._longest
            )
        self._reported = np.zeros(len(lengths), np.int64)  # dropped events that were reported
        self.full_cost = 0.0  # of the whole join, per unit of time
        self._expected = Expectation()
        self._update_short_cut()

    @property
    def orders(self) -> list[list[int]]:
        """The present join orders, by starting stream."""
        return self._orders.current

    @property
    def uses_measured_load(self) -> bool:
        """Whether the load is measured with the wall clock, outside the engine."""
        return self.shedding.uses_measured_load

    @property
    def is_shedding(self) -> bool:
        """Whether results are left out by choice."""
        return bool(self.shed.ctl[fields.SHEDDING])

    @property
    def kept(self) -> float:
        """Share of the results that is expected to be produced."""
        return self._expected.kept

    @property
    def cpu_needed(self) -> float | None:
        """How many times the CPU would produce what the goal wants; None: no such goal."""
        return self._expected.cpu_needed

    # ---- events and load

    def count_arrivals(self, streams: I64) -> SheddingCounts:
        """Count events that came to the join; return what became of them."""
        self.load.add_arrivals(streams)
        dropped = self.shed.dropped + self.shed.thinned
        counts = SheddingCounts(dropped - self._reported, self._sampling.take_estimates())
        self._reported = dropped
        return counts

    def add_busy_time(self, busy: float, begin: int, now: int) -> bool:
        """Record that the engine was busy for `busy` seconds while time went from `begin` to `now`.

        Returns
        -------
        bool
            Whether the interval is over, so that `adapt` is due.
        """
        self.load.add_work(busy * self.second / self.shedding.usage, begin)
        self.load.begin_at(begin)
        self._update_short_cut(now)
        return now - self.load.since >= self.every

    def open_throttle(self) -> None:
        """Do all of the work, as at the start."""
        self.throttle.z = 1.0
        self._sampling.open()
        self.shed.ctl[fields.SHEDDING] = 0

    def lift_buffer_limit(self) -> None:
        """Drop no more events for a full buffer: the input has ended."""
        self.shed.number[fields.BUFFER] = math.inf

    def restore_buffer_limit(self) -> None:
        """Drop events for a full buffer again: more input may follow."""
        self.shed.number[fields.BUFFER] = self._buffer

    # ---- each Δ

    def adapt(self, now: int, wanted: float | None = None) -> None:
        """End the interval, and set everything for the next one.

        Parameters
        ----------
        now
            Event time.
        wanted
            Share of the whole join's results that the goal asks for; None: no goal.
        """
        self.load.begin_at(now - self.every)
        span = max(1, now - self.load.since)
        self.load.record_history(now)
        if self.shedding.sample_rate > 0.0:
            window = self.load.window_sizes(admitted=True)
            self.learning.close(0.5 ** (4 * span / self._longest), window)
            if self._has_to_decide(now, span):
                self._decide(now, span, wanted)
        self.load.next_interval(now)
        # the server is busy with the decision before it is with events
        self.load.charge(self._policy.take_cost(), now)
        self._update_short_cut(now)

    def _has_to_decide(self, now: int, span: int) -> bool:
        """Return whether something must be left out, or may no longer be.

        A decision takes milliseconds: it is skipped where intervals are replayed in less than that.
        """
        is_fixed = self.shedding.fixed_fraction is not None
        return is_fixed or self.throttle.z < 1.0 or self.load.is_busy(now, span)

    def _decide(self, now: int, span: int, wanted: float | None) -> None:
        policy = self._policy
        rate, admitted = self.load.rate(span), self.load.window_sizes(admitted=True)
        if not policy.plans_with_dropped_events:
            known = self._costs.model(rate, admitted)
            policy.learn_bias(self.load.comparisons, span, self.throttle.z, known)
        # Windows that lack dropped events are cheap to search. Where the buffer is full before the
        # throttle can react, the join would go on dropping events instead of skipping work.
        is_slow = self.every > self._buffer
        window = self.load.window_sizes(admitted=not (policy.plans_with_dropped_events or is_slow))
        self._orders.adapt(self.learning, window)
        known = self._costs.model(rate, window)
        self.full_cost = harvest_search.cost(harvest_search.full(known), known)
        if self.shedding.fixed_fraction is None:
            load = self.load.load(now, span, policy.bias * self.full_cost)
            self.throttle.adapt(policy.throttle_load(load))
        z = self.throttle.z
        self._sampling.limit(z, known, self.full_cost)
        self._expected = policy.apply(z, Situation(rate, known, self.full_cost, wanted))

    def _update_short_cut(self, now: int | None = None) -> None:
        """Let the join take its short cut while nothing is shed, charged or evicted."""
        is_full = now is not None and self.load.is_full(now)
        is_idle = self.uses_measured_load and self.eviction is None
        is_idle = is_idle and not is_full and self.throttle.z >= 1.0
        self.shed.ctl[fields.IDLE] = self._paths.short_cut and is_idle

    # ---- snapshot

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from."""
        return {
            "kind": type(self.shedding).__name__,
            "basic": self.shed.basic.tolist(),
            "z": self.throttle.z,
            "orders": self.orders,
            "kernel": {name: getattr(self.shed, name).tolist() for name in SAVED_FIELDS},
            "learning": self.learning.state(),
            "load": self.load.state(),
            "policy": self._policy.state(),
            "full_cost": self.full_cost,
            "expected": list(self._expected),
        }

    def fits(self, state: dict[str, Any] | None) -> bool:
        """Return whether `state` is of the same kind of shedding with the same basic windows."""
        return (
            state is not None
            and state["kind"] == type(self.shedding).__name__
            and state["basic"] == self.shed.basic.tolist()
            and len(state["learning"]["lags"]) == self.shed.lags.size
        )

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`; the options may have changed."""
        shed, fixed = self.shed, self.shedding.fixed_fraction
        self.throttle.z = state["z"] if fixed is None else fixed
        self._orders.set(state["orders"])
        options = shed.number[_OPTIONS].copy()
        for name in SAVED_FIELDS:
            getattr(shed, name)[...] = state["kernel"][name]
        shed.number[_OPTIONS] = options
        self.learning.resume(state["learning"])
        self.load.resume(state["load"])
        self._policy.resume(state["policy"])
        self._reported = shed.dropped + shed.thinned
        self.full_cost = state["full_cost"]
        self._expected = Expectation(*state["expected"])
