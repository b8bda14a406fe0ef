"""Where load shedding meets the join: what the shedder needs to know, and its metrics."""

from __future__ import annotations

import numpy as np

from slackwater.engine.base import Counters
from slackwater.joins.conditions import Conditions, may_reorder
from slackwater.joins.sorted_windows import SortedWindows, sorted_windows
from slackwater.joins.visit_order import counted, direct_steps, lookups, steps_from, tied
from slackwater.kernels import shed as fields
from slackwater.kernels.records import NONE
from slackwater.metrics.counters import SheddingMetrics
from slackwater.query.goals import Goal, Recall
from slackwater.query.join import JoinQuery
from slackwater.shedding.kernel_state import AccessPaths, basic_windows
from slackwater.shedding.shedder import Shedder
from slackwater.stats.statistics import Statistics


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
        short_cut=len(keys) == 1 and query.where is None,
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
