"""Where load shedding meets the join: what the shedder needs, what it drops, and its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from slackwater.engine.accounting import Counters, add
from slackwater.engine.join_state import STORED
from slackwater.joins.conditions import Conditions, may_reorder
from slackwater.joins.sorted_windows import SortedWindows, sorted_windows
from slackwater.joins.visit_order import counted, direct_steps, lookups, steps_from, tied
from slackwater.kernels import shed as fields
from slackwater.kernels.records import I64, NONE, Made, Released, Sampled
from slackwater.metrics.counters import SheddingMetrics
from slackwater.query.goals import Goal, Recall
from slackwater.query.join import JoinQuery
from slackwater.shedding.kernel_state import AccessPaths, basic_windows
from slackwater.shedding.shedder import Shedder
from slackwater.stats.statistics import Statistics

if TYPE_CHECKING:
    from slackwater.engine.join import JoinEngine


def index_for(query: JoinQuery, conditions: Conditions) -> SortedWindows | None:
    """Return sorted basic windows, if the query asks for them and can use them."""
    shedding = query.shedding
    if shedding is None or not shedding.uses_sorted_windows:
        return None
    return sorted_windows(query, conditions, int(basic_windows(query, shedding)[1].max()))


def shedder_for(
    query: JoinQuery, conditions: Conditions, index: SortedWindows | None = None
) -> Shedder | None:
    """Return the shedder of a query; None: nothing is shed."""
    shedding = query.shedding
    if shedding is None:
        return None
    keys = query.keys
    direct = direct_steps(query, conditions.site_of)
    if not may_reorder(query):
        direct[:] = NONE  # other orders need not be tried
    paths = AccessPaths(
        orders=[[step.stream for step in steps_from(s, keys)] for s in range(len(query.streams))],
        direct=direct,
        lookup=lookups(query),
        counted=counted(query),
        linked=np.zeros_like(counted(query)) if index is None else index.arrays.linked,
        tied=tied(query),
        any_order=may_reorder(query),
        short_cut=len(keys) == 1 and not query.has_condition,
    )
    return Shedder(query, shedding, paths)


def wanted(goal: Goal, statistics: Statistics | None) -> float | None:
    """Return the share of the join's results that a recall goal needs, given the loss by disorder.

    A recall goal does not distinguish what is lost by disorder from what is lost by shedding.
    """
    if not isinstance(goal, Recall) or statistics is None:
        return None
    found = statistics.produced + statistics.lost
    return min(1.0, goal.target * found / statistics.produced) if statistics.produced else None


def evict(engine: JoinEngine, shedder: Shedder, reached: int) -> None:
    """Drop the least valuable events when the windows hold more than they may.

    Events from `reached` on stay: they have not been taken in yet.
    """
    assert shedder.eviction is not None
    log, join = engine.log, engine.join
    stored = engine.event_locations() == STORED
    stored[reached - log.base :] = False
    age, size = [], []
    for s, rows in enumerate(engine.rows):
        own = np.flatnonzero(stored & (log.stream == s))
        age.append(np.maximum(0, join.time - log.ts[own]) // shedder.shed.basic[s])
        sizes = rows.sizes(log.row[own]) + log.bytes_per_event
        size.append(np.bincount(age[s], sizes).astype(float))
    for s, kept in enumerate(shedder.eviction.ages_kept(size, engine.reorder.top)):
        if np.any(age[s] >= kept):
            basic = int(shedder.shed.basic[s])
            first = join.first_to_keep(join.time - kept * basic + 1, basic)
            own = stored & (log.stream == s)
            engine.counters.evicted += int(np.count_nonzero(log.ts[own] < first))
            join.forget_before(s, first)


def made_without_shedding(out: Released, sampled: Sampled) -> Made:
    """Return the results that a step could have made; the goal is about disorder alone.

    Late events, which come last, make nothing.
    """
    own = sampled.n > 0
    position = sampled.position[own]
    return Made(position, out.ts[position], sampled.n[own])


def count_shed(counters: Counters, shedder: Shedder, streams: I64, made: Made) -> None:
    """Count what was left out of a step: events of `streams`, which made `made`."""
    dropped, estimates = shedder.count_arrivals(streams)
    add(counters.shed, dropped)
    add(counters.in_order, -dropped)
    counters.lost_variance += estimates.lost_variance
    if shedder.is_shedding:
        counters.missed += estimates.full_results - int(made.n.sum())
        counters.missed_variance += estimates.full_results_variance


def metrics_of(shedder: Shedder, counters: Counters, now: int) -> SheddingMetrics:
    """Return the metrics of load shedding."""
    return SheddingMetrics(
        throttle=shedder.throttle.z,
        kept=shedder.kept,
        comparisons=int(shedder.shed.ctl[fields.COMPARED]),
        full_cost=shedder.full_cost * shedder.second,
        missed=max(0, round(counters.missed)),
        missed_error=2.0 * counters.missed_variance**0.5,
        lost_error=2.0 * counters.lost_variance**0.5,
        backlog=shedder.load.backlog(now),
        evicted=counters.evicted,
        cpu_needed=shedder.cpu_needed,
    )
