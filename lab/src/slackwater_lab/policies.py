"""What an online policy could reach: the best of a fixed family, chosen in hindsight (decision 20).

A policy sets K at the end of each adaptation interval to a quantile, or the maximum, of the
lateness of results over the last M seconds, times a factor. It knows the results whose last member
had come by then. All policies are judged on the record of one pass (`engine.lateness_curve`): a
larger K takes hold only as the common clock moves on, because the join's clock never goes back. The
best one is run through the engine, to confirm it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from slackwater.controllers.controller import Interval
from slackwater.engine.lateness_curve import LatenessCurve
from slackwater.engine.report import average_slack, columns, recall_series
from slackwater.kernels.records import BEFORE, F64, I64
from slackwater.query.goals import NoSlack
from slackwater.query.join import JoinQuery
from slackwater.query.units import to_units
from slackwater.stats.statistics import Statistics
from slackwater_lab.measure import Data, run_engine

_QUANTILES = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
_MEMORIES = (1, 2, 5, 10, 20, 50, 100, 200, 500, None)  # seconds; None: all
_RUNS = 8  # of the engine, at most, until one of the best is confirmed
_FACTORS = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


class Policy(NamedTuple):
    """A policy and the K it would have set at the end of each interval, in units."""

    name: str
    slacks: I64
    start: int = 0  # K before that


class Judged(NamedTuple):
    """What a policy gives."""

    policy: Policy
    phi: float
    average_slack: float


def best_fixed(curve: LatenessCurve, gamma: float, wanted: float) -> Judged:
    """The smallest fixed K with a Φ(gamma) of `wanted`."""
    slack = curve.smallest_slack(gamma, wanted)
    policy = Policy("fixed", np.full(len(curve.intervals.end), slack), slack)
    return _judged(curve, policy, gamma)


def best_moving(curve: LatenessCurve, data: Data, gamma: float, wanted: float) -> Judged:
    """The smallest average K among those with a Φ(gamma) of `wanted`; if none, the largest Φ.

    The record does not know how the clock moves within an interval. So the engine runs the best
    one, and where that misses `wanted`, the next ones.
    """
    judged = [_judged(curve, policy, gamma) for policy in _family(curve, data.query)]
    enough = [one for one in judged if one.phi >= wanted]
    if enough:
        best = sorted(enough, key=lambda one: one.average_slack)[:_RUNS]
    else:
        best = [max(judged, key=lambda one: (one.phi, -one.average_slack))]
    found = []
    for one in best:
        found.append(confirmed(curve, data, one.policy, gamma))
        if found[-1].phi >= wanted:
            return found[-1]
    return max(found, key=lambda one: one.phi)


def confirmed(curve: LatenessCurve, data: Data, policy: Policy, gamma: float) -> Judged:
    """The same policy in the engine."""
    query = replace(data.query, goal=NoSlack(), select="count", late="drop")
    output = run_engine(query, data.batch, Scripted(policy, curve.every))
    made_ts, made_n, _ = columns(output.made)
    begin, end = output.slacks[0][0] + curve.over, output.top
    series = recall_series(made_ts, made_n, *data.true, begin, end, curve.over, curve.every)
    return Judged(
        policy, _share(series["recall"].to_numpy(), gamma), average_slack(output.slacks, begin, end)
    )


def _share(recalls: F64, gamma: float) -> float:
    return float(np.mean(recalls >= gamma)) if len(recalls) else 1.0


# ---- the family


def _family(curve: LatenessCurve, query: JoinQuery) -> Iterator[Policy]:
    n = len(curve.intervals.end)
    lateness, counts = _histograms(curve)
    totals = np.vstack([np.zeros(len(lateness), np.int64), np.cumsum(counts, axis=0)])
    for seconds in _MEMORIES:
        name = "all" if seconds is None else f"{seconds} s"
        first = np.zeros(n, np.int64)
        if seconds is not None:
            since = curve.intervals.end - to_units(f"{seconds} s", query.unit)
            first = np.searchsorted(curve.intervals.end, since, side="right")
        recent = totals[1:] - totals[first]
        for statistic, slacks in _statistics(lateness, recent):
            for factor in _FACTORS:
                times = "" if factor == 1.0 else f" times {factor:g}"
                yield Policy(f"{statistic}, last {name}{times}", (slacks * factor).astype(np.int64))


def _histograms(curve: LatenessCurve) -> tuple[I64, I64]:
    """The lateness of each column, and how many such results became known in each interval."""
    lateness = curve.slacks()
    counts = np.zeros((len(curve.intervals.end), len(lateness)), np.int64)
    late = curve.late
    np.add.at(counts, (late.interval, np.searchsorted(lateness, curve.lateness)), late.n)
    bins, n = curve.on_time()
    passed = np.searchsorted(curve.intervals.clock, (bins + 1) * curve.width)
    is_known = passed < len(counts)
    np.add.at(counts[:, 0], passed[is_known], n[is_known])
    return lateness, counts


def _statistics(lateness: I64, recent: I64) -> Iterator[tuple[str, I64]]:
    """Quantiles and the maximum of each row of `recent`; 0 where nothing is known."""
    below = np.cumsum(recent, axis=1)
    total = below[:, -1:]
    for q in _QUANTILES:
        yield f"quantile {q:g}", lateness[np.argmax(below >= q * total, axis=1)]
    largest = recent.shape[1] - 1 - np.argmax(recent[:, ::-1] > 0, axis=1)
    yield "maximum", np.where(total[:, 0] > 0, lateness[largest], 0)


# ---- how it would have done


def _judged(curve: LatenessCurve, policy: Policy, gamma: float) -> Judged:
    """What the policy gives by the record; K chosen at the end of an interval is for the next."""
    chosen = np.append(policy.start, policy.slacks[:-1])
    lost = curve.lateness > _in_force(curve, chosen)[curve.late.interval]
    recalls = curve.series_without(lost)["recall"].to_numpy()
    begin, end = int(curve.arrivals.top[0]) + curve.over, int(curve.arrivals.top[-1])
    ends = np.clip(np.concatenate([[begin], curve.intervals.end, [end]]), begin, end)
    lengths, slacks = np.diff(ends), np.append(policy.start, policy.slacks)
    average = float(np.sum(lengths * slacks) / max(1, end - begin))
    return Judged(policy, _share(recalls, gamma), average)


def _in_force(curve: LatenessCurve, chosen: I64) -> I64:
    """How far the join's clock is behind the common clock in each interval, at most K.

    The join's clock is the largest of clock - K so far, of which the end of each interval stands
    for the rest: the K of an interval is in force up to there.
    """
    clock = curve.intervals.clock
    has_begun = clock > BEFORE
    reached = np.maximum.accumulate(np.where(has_begun, clock - chosen, BEFORE))
    return np.where(has_begun, clock - reached, chosen)


class Scripted:
    """A controller that sets the K of a policy, interval by interval."""

    follows_delay = False

    def __init__(self, policy: Policy, every: int) -> None:
        self.start, self.every = policy.start, every
        self._coming = iter(policy.slacks.tolist())

    def statistics(self, query: JoinQuery) -> Statistics:
        """Nothing has to be learnt, but there are intervals."""
        return Statistics(query, self.every, None, self.every)

    def next_slack(self, interval: Interval) -> int:
        """The next one of the list."""
        return next(self._coming, interval.slack)

    def state(self) -> dict[str, Any]:
        """It is never moved."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Nothing to go on from."""
