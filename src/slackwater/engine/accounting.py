"""Every arrival is counted once: running totals of a shard, and the metrics made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from slackwater.events.log import Log
from slackwater.joins.at_once import JoinAtOnce
from slackwater.joins.matcher import Matcher
from slackwater.kernels import accounting as kernels
from slackwater.kernels.records import BEFORE, I64, ClockSeries, Late, Made
from slackwater.metrics.counters import Metrics, State, StreamMetrics

if TYPE_CHECKING:
    from slackwater.engine.base import AnyEngine


@dataclass
class Counters:
    """Running totals behind `Metrics`, lists by stream; part of a snapshot."""

    arrivals: list[int]
    in_order: list[int]
    late_kept: list[int]
    late_dropped: list[int]
    rejected: list[dict[str, int]]  # by reason
    shed: list[int]
    produced: int = 0
    lost: int = 0
    lost_unknown: int = 0
    max_lateness: int = 0
    evicted: int = 0
    missed: float = 0.0  # results left out by load shedding, estimated
    missed_variance: float = 0.0
    lost_variance: float = 0.0
    lost_estimated: float = 0.0  # results beyond retention
    lost_estimated_variance: float = 0.0
    lost_not_estimated: int = 0  # events
    # pairs at once, by stream: how much of what its late events may join was forgotten, in time
    forgotten: list[int] = field(default_factory=list)

    @classmethod
    def zero(cls, m: int) -> Counters:
        """Nothing has happened yet."""
        rejected: list[dict[str, int]] = [{} for _ in range(m)]
        return cls([0] * m, [0] * m, [0] * m, [0] * m, rejected, [0] * m, forgotten=[0] * m)


def add(totals: list[int], more: Sequence[int] | I64) -> None:
    """Add to each total."""
    totals[:] = [total + int(n) for total, n in zip(totals, more, strict=True)]


def count_results(total: Counters, streams: I64, made: Made, late: Late) -> int:
    """Count a step of a join: events of `streams`, the results they made, those that were late.

    Returns how many of the late ones lost more than is known.
    """
    by_stream = np.zeros((kernels.BY_STREAM, len(total.in_order)), np.int64)
    produced, lost, unknown, most = kernels.count_step(streams, made.n, late, by_stream)
    _add_events(total, by_stream, int(most))
    total.produced += int(produced)
    total.lost += int(lost)
    total.lost_unknown += int(unknown)
    return int(unknown)


def count_arrivals(
    total: Counters,
    first: int,
    series: ClockSeries,
    matcher: Matcher | JoinAtOnce,
    log: Log,
    ordered: bool,
    window_units: int,
) -> None:
    """Count arrivals that do not wait, from number `first` on: see the kernel of this name."""
    by_stream = np.zeros((kernels.BY_STREAM, len(total.in_order)), np.int64)
    forgotten = np.zeros(len(total.in_order), np.int64)
    unknown, most = kernels.count_arrivals(
        first, series, ordered, window_units, matcher.record, log.records(), by_stream, forgotten
    )
    _add_events(total, by_stream, int(most))
    total.lost_unknown += int(unknown)
    add(total.forgotten, forgotten)


def _add_events(total: Counters, by_stream: I64, most: int) -> None:
    in_order, kept, dropped = by_stream.tolist()
    add(total.in_order, in_order)
    add(total.late_kept, kept)
    add(total.late_dropped, dropped)
    total.max_lateness = max(total.max_lateness, most)


def shard_metrics(engine: AnyEngine) -> Metrics:
    """Counters since the start."""
    total = engine.counters
    return Metrics(
        {name: _stream_metrics(engine, s) for s, name in enumerate(engine.query.names)},
        produced=total.produced,
        lost=total.lost,
        lost_unknown=total.lost_unknown,
        lost_estimated=round(total.lost_estimated),
        lost_estimated_error=2.0 * math.sqrt(total.lost_estimated_variance),
        lost_not_estimated=total.lost_not_estimated,
        slack=engine.reorder.slack,
        max_delay=engine.reorder.max_delay,
        max_lateness=total.max_lateness,
        stored=engine.stored_events(),
        shedding=engine.shedding_metrics(),
    )


def with_matches(metrics: Metrics, matcher: Matcher) -> Metrics:
    """`metrics` with what became of rows without partner, and of as-of rows."""
    known = matcher.counters
    return replace(
        metrics,
        unmatched_rows=known["alone"],
        unmatched_rows_late=known["alone_late"],
        withdrawn_rows=known["withdrawn"],
    )


def with_pairs_lost(
    metrics: Metrics, total: Counters, matcher: Matcher | JoinAtOnce, window_units: int
) -> Metrics:
    """`metrics` with an estimate of the results that were lost since events had been forgotten.

    A late event is taken to have as many results as others of its stream have; `total.forgotten`
    says how many of its `window_units` it missed. The error is that of results that come at random.
    """
    pairs, estimate = matcher.counters["pairs"], 0.0
    for s, forgotten in enumerate(total.forgotten):
        events = total.in_order[s] + total.late_kept[s] + total.late_dropped[s]
        unseen = forgotten / window_units
        estimate += unseen * pairs / max(events - unseen, 1.0)
    return replace(
        metrics,
        lost_estimated=round(estimate),
        lost_estimated_error=2.0 * math.sqrt(estimate),
        lost_not_estimated=0,
    )


def _stream_metrics(engine: AnyEngine, s: int) -> StreamMetrics:
    total, local = engine.counters, engine.reorder.local(s)
    return StreamMetrics(
        arrivals=total.arrivals[s],
        in_order=total.in_order[s],
        late_kept=total.late_kept[s],
        late_dropped=total.late_dropped[s],
        buffered=engine.reorder.buffered_of(s),
        shed=total.shed[s],
        rejected=dict(sorted(total.rejected[s].items())),
        local_time=None if local == BEFORE else local,
        state=_stream_state(engine, s),
    )


def _stream_state(engine: AnyEngine, s: int) -> State:
    reorder = engine.reorder
    if engine.flushed or reorder.is_finished(s):
        return "finished"
    if reorder.is_idle(s):
        return "idle"
    behind = reorder.top - reorder.local(s)
    return "slow" if behind > reorder.slack and reorder.is_awaited(s) else "active"
