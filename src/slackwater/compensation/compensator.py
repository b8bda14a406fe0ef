"""From the tallies of windows to result rows: estimates at the deadline, exact values later."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import numpy as np

from slackwater.compensation.factory import estimator_for
from slackwater.compensation.intervals import Intervals
from slackwater.compensation.observation import Estimate, Estimator
from slackwater.compensation.tally import Group, Tally
from slackwater.compensation.tally_codec import TallyCodec
from slackwater.compensation.values import Values
from slackwater.query.aggregate import AggregateQuery

_MOST_GROUPS = 50  # per window, whose errors are learnt from

Bounds = tuple[float, float] | None  # None: without limits


class AggregateValue(NamedTuple):
    """One aggregate of a window, or of a group in it."""

    observed: float | None  # from the events that have arrived
    value: float | None  # of the complete window, estimated or exact
    low: float | None
    high: float | None


class ResultRow(NamedTuple):
    """The result of a window, or of a group in it."""

    start: int
    group: Group
    aggregates: list[AggregateValue]
    completeness: float | None  # share of the events that have arrived
    exact: bool


class _EarlyReport(NamedTuple):
    """A window that was reported before it was complete."""

    tally: Tally
    bounds: dict[str, list[Bounds]]  # by group as JSON: [aggregate]
    estimate: Estimate | None  # None: it is estimated again when the window is complete


class Compensator:
    """Reports windows at their deadlines, and learns from complete ones.

    Parameters
    ----------
    query
        The aggregates.
    values
        The values that they are computed from.
    codec
        How tallies are saved.
    """

    def __init__(self, query: AggregateQuery, values: Values, codec: TallyCodec) -> None:
        self._query, self._values, self._codec = query, values, codec
        self._is_count = [how.function == "count" for how in query.select.values()]
        self.estimator = estimator_for(query, values)
        self._intervals = [Intervals(query.confidence) for _ in query.select]
        self._intervals_of_zero = [Intervals(query.confidence) for _ in query.select]
        self._early: dict[int, _EarlyReport | None] = {}  # by start

    # ---- at the deadline

    def report_early(self, start: int, tally: Tally) -> list[ResultRow]:
        """Report a window at its deadline; `tally` has what has arrived."""
        rows = []
        if self.estimator is None:
            self._early[start] = None
            for group, values in zip(tally.groups, tally.values, strict=True):
                observed = self._values.aggregates(values)
                aggregates = [AggregateValue(v, v, None, None) for v in observed]
                rows.append(ResultRow(start, group, aggregates, None, exact=False))
            return rows
        observation = tally.observation(self._query.length)
        estimate = self.estimator.estimate(observation)
        arrived, expected = observation.totals.sum(), estimate.sizes.sum()
        completeness = float(arrived / expected) if expected > 0 else None
        bounds: dict[str, list[Bounds]] = {}
        for g, group in enumerate(tally.groups):
            aggregates = self._with_intervals(tally, g, estimate)
            rows.append(ResultRow(start, group, aggregates, completeness, exact=False))
            bounds[_name(group)] = [
                None if one.low is None or one.high is None else (one.low, one.high)
                for one in aggregates
            ]
        kept = None if estimate.weights is not None else estimate
        self._early[start] = _EarlyReport(tally, bounds, kept)
        return rows

    def _with_intervals(self, tally: Tally, g: int, estimate: Estimate) -> list[AggregateValue]:
        observed = self._values.aggregates(tally.values[g])
        aggregates = []
        for a, (value, error) in enumerate(self._with_errors(tally, g, estimate)):
            if value is None:
                aggregates.append(AggregateValue(observed[a], None, None, None))
                continue
            low, high = self._intervals_for(a, value).around(value, error)
            # a count can only grow
            least = float(observed[a] or 0.0) if self._is_count[a] else -math.inf
            low, best, high = (max(number, least) for number in (low, value, high))
            aggregates.append(AggregateValue(observed[a], best, _finite(low), _finite(high)))
        return aggregates

    def _intervals_for(self, a: int, value: float) -> Intervals:
        return self._intervals_of_zero[a] if value == 0.0 else self._intervals[a]

    def _with_errors(
        self, tally: Tally, g: int, estimate: Estimate
    ) -> list[tuple[float | None, float]]:
        """Return each aggregate of a group, with its standard error."""
        values, spreads = estimate.values, estimate.spread
        if len(tally.groups) > 1:  # a smaller part is less certain
            values = estimate.apply(tally.tensor(g))
            part, whole = np.abs(values), np.abs(estimate.values)
            times = np.where(part > 0.0, whole / np.where(part > 0.0, part, 1.0), 1.0)
            spreads = spreads * np.sqrt(np.maximum(times, 1.0))
        estimates: list[tuple[float | None, float]] = []
        for value, main in zip(self._values.aggregates(values), self._values.main, strict=True):
            spread = float(spreads[main])
            error = 1.0 if value == 0.0 and math.isfinite(spread) else spread
            scale = 1.0 if not value or not math.isfinite(spread) else abs(value)
            estimates.append((value, error * scale))
        return estimates

    # ---- complete windows

    def forget(self, start: int) -> None:
        """Forget a window: its early result was final."""
        self._early.pop(start, None)

    def close(self, start: int, tally: Tally) -> list[ResultRow]:
        """Learn from a complete window; return its exact rows unless early ones are enough."""
        was_reported = start in self._early
        early = self._early.pop(start, None)
        if early is not None and self.estimator is not None:
            self._learn(self.estimator, early, tally)
        if was_reported and self._query.late != "emit":
            return []
        rows = []
        for group, values in zip(tally.groups, tally.values, strict=True):
            aggregates = [AggregateValue(v, v, v, v) for v in self._values.aggregates(values)]
            rows.append(ResultRow(start, group, aggregates, 1.0, exact=True))
        return rows

    def _learn(self, estimator: Estimator, early: _EarlyReport, tally: Tally) -> None:
        observation = early.tally.observation(self._query.length)
        estimate = early.estimate or estimator.estimate(observation)  # as it would be now
        place = {group: i for i, group in enumerate(tally.groups)}
        for g, group in enumerate(early.tally.groups[:_MOST_GROUPS]):
            exact_values = self._values.aggregates(tally.values[place[group]])
            bounds = early.bounds[_name(group)]
            for a, (value, error) in enumerate(self._with_errors(early.tally, g, estimate)):
                exact, reported = exact_values[a], bounds[a]
                if value is None or exact is None:
                    continue
                was_inside = reported is None or reported[0] <= exact <= reported[1]
                self._intervals_for(a, value).learn(value, error, exact, was_inside)
        estimator.learn(observation, estimate, tally.truth)

    # ---- snapshot

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from."""
        return {
            "kind": [self._query.compensate, self._query.confidence],
            "estimator": None if self.estimator is None else self.estimator.state(),
            "intervals": [own.state() for own in self._intervals],
            "intervals_of_zero": [own.state() for own in self._intervals_of_zero],
            "early": {
                str(start): None if early is None else self._early_state(early)
                for start, early in self._early.items()
            },
        }

    def _early_state(self, early: _EarlyReport) -> list[Any]:
        known = early.estimate
        estimate = None
        if known is not None:
            parts = (known.scale, known.values, known.spread, known.sizes)
            estimate = [part.tolist() for part in parts]
        return [self._codec.encode(early.tally), early.bounds, estimate]

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`; another estimator starts to learn from the beginning."""
        if state["kind"] == [self._query.compensate, self._query.confidence]:
            if self.estimator is not None:
                self.estimator.resume(state["estimator"])
            for name, all_intervals in (
                ("intervals", self._intervals),
                ("intervals_of_zero", self._intervals_of_zero),
            ):
                for intervals, saved in zip(all_intervals, state[name], strict=True):
                    intervals.resume(saved)
        self._early = {
            int(start): None if saved is None else self._early_from(saved)
            for start, saved in state["early"].items()
        }

    def _early_from(self, saved: list[Any]) -> _EarlyReport:
        tally, saved_bounds, parts = saved
        estimate = None if parts is None else Estimate(None, *(np.array(part) for part in parts))
        bounds = {
            group: [None if ends is None else (ends[0], ends[1]) for ends in own]
            for group, own in saved_bounds.items()
        }
        return _EarlyReport(self._codec.decode(tally), bounds, estimate)


def _name(group: Group) -> str:
    return json.dumps([str(value) for value in group]) if group else ""


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
