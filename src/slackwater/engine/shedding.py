"""Load shedding meets the join here: what the shedder has to know, and what is told about it."""

from __future__ import annotations

import numpy as np

from slackwater.engine.base import Counters
from slackwater.joins.conditions import Conditions, may_reorder
from slackwater.joins.sorted_windows import SortedWindows, sorted_windows
from slackwater.joins.visit_order import counted, direct_steps, lookups, steps_from, tied
from slackwater.kernels import shed as places
from slackwater.kernels.records import NONE
from slackwater.metrics.counters import SheddingMetrics
from slackwater.query.goals import Goal, Recall
from slackwater.query.join import JoinQuery
from slackwater.query.shedding import Harvest
from slackwater.shedding.kernel_state import Ways, basic_windows
from slackwater.shedding.shedder import Shedder
from slackwater.stats.statistics import Statistics


def index_for(query: JoinQuery, conditions: Conditions) -> SortedWindows | None:
    """Sorted basic windows, where they are asked for and of use."""
    asked = query.shedding
    if not isinstance(asked, Harvest) or asked.index != "sorted":
        return None
    return sorted_windows(query, conditions, int(basic_windows(query, asked)[1].max()))


def shedder_for(
    query: JoinQuery, conditions: Conditions, index: SortedWindows | None = None
) -> Shedder | None:
    """Who sheds load, if anybody does."""
    asked = query.shedding
    if asked is None:
        return None
    keys = query.keys
    direct = direct_steps(query, conditions.site_of)
    if not may_reorder(query):
        direct[:] = NONE  # other orders need not be tried
    ways = Ways(
        orders=[[step.stream for step in steps_from(s, keys)] for s in range(len(query.streams))],
        direct=direct,
        lookup=lookups(query),
        counted=counted(query),
        linked=np.zeros_like(counted(query)) if index is None else index.arrays.linked,
        tied=tied(query),
        any_order=may_reorder(query),
        short_cut=len(keys) == 1 and query.where is None,
    )
    return Shedder(query, asked, ways)


def wanted(goal: Goal, statistics: Statistics | None) -> float | None:
    """The share of the work's results that a recall needs, given what is lost by disorder.

    Both kinds of loss are the same to who asked for a recall.
    """
    if not isinstance(goal, Recall) or statistics is None:
        return None
    found = statistics.produced + statistics.lost
    return min(1.0, goal.target * found / statistics.produced) if statistics.produced else None


def metrics_of(shedder: Shedder, counters: Counters, now: int) -> SheddingMetrics:
    """What is told about load shedding."""
    return SheddingMetrics(
        throttle=shedder.throttle.z,
        kept=shedder.kept,
        comparisons=int(shedder.shed.ctl[places.COMPARED]),
        full_cost=shedder.full_cost * shedder.second,
        missed=max(0, round(counters.missed)),
        missed_error=2.0 * counters.missed_variance**0.5,
        lost_error=2.0 * counters.lost_variance**0.5,
        backlog=shedder.backlog(now),
        evicted=counters.evicted,
        cpu_needed=shedder.cpu_needed,
    )
