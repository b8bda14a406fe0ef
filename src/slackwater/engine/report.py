"""How good a run was, against the exact truth (DESIGN 1).

The truth comes from the engine itself on the sorted input with nothing late; the property tests
prove that against a naive oracle. Counting makes it cheap, however many results there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from slackwater.engine.event_gaps import Gaps, largest_times, slack_at
from slackwater.engine.join import JoinEngine
from slackwater.engine.output import Output, Production
from slackwater.errors import QueryError
from slackwater.events.batch import Batch, in_arrival_order
from slackwater.kernels.records import I64
from slackwater.query.goals import NoSlack
from slackwater.query.join import JoinQuery
from slackwater.query.join_kinds import WITH_PAIRS
from slackwater.query.join_options import Select
from slackwater.query.units import Duration, to_units

if TYPE_CHECKING:
    from slackwater.engine.replay import Run


@dataclass(frozen=True)
class Report:
    """Recall, latency and slack of a run; times in the query's unit."""

    true: int
    produced: int
    recall: float  # over the whole run; 1.0 when there is nothing to find
    precision: float | None  # share of the produced results that are true; None: not known
    target: float  # Γ
    phi: float  # Φ(Γ): share of the measurements not below Γ
    measurements: pa.Table  # (ts, produced, true, recall): γ(P) on the grid of L
    average_slack: float  # over event time after the first P
    average_latency: float  # gaps of event time longer than P are no latency beyond K
    latency_95: float
    average_wait: float | None  # from the arrival of the last member to emission
    wait_95: float | None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, without the series."""
        return {name: value for name, value in vars(self).items() if name != "measurements"}


def truth(query: JoinQuery, batch: Batch, select: Select = "count") -> tuple[Output, list[I64]]:
    """All true results: the join of the same rows in (ts, stream, arrival) order.

    Returns also, for each stream, which row of its table came n-th in that order.
    """
    if query.how not in WITH_PAIRS:
        msg = f"a report compares pairs, and how={query.how!r} has none"
        raise QueryError(msg)
    exact = replace(
        query, goal=NoSlack(), late="drop", select=select, late_probe="none", shed="off",
        how="inner", emit="ordered", result_id=False,
    )  # fmt: skip
    engine = JoinEngine(
        exact, dict(zip(query.names, (t.schema for t in batch.tables), strict=True))
    )
    checked = engine.intake.checks.check_batch(batch).checked
    assert checked is not None
    times, rows = [c.ts for c in checked], [np.arange(len(c.ts)) for c in checked]
    in_order, orders = in_arrival_order(batch.tables, checked, times, rows)
    output = engine.feed(in_order)
    output.extend(engine.flush())
    return output, orders


def report(run: Run, target: float, over: Duration, every: Duration) -> Report:
    """Measure `run`."""
    if not 0 <= target <= 1:
        msg = f"target must be between 0 and 1, got {target!r}"
        raise QueryError(msg)
    p = to_units(over, run.query.unit, "over")
    step = to_units(every, run.query.unit, "every")
    if p < 1 or step < 1:
        msg = f"over and every must be at least 1 {run.query.unit}, got {over!r} and {every!r}"
        raise QueryError(msg)
    made_ts, made_n, _ = columns(run.output.made)
    latency = without_gaps(run.output, run.batch, p)
    if run.query.emit == "eager":
        order = np.argsort(made_ts, kind="stable")
        made_ts, made_n, latency = made_ts[order], made_n[order], latency[order]
    true_ts, true_n, _ = columns(truth(run.query, run.batch)[0].made)
    begin, end = _span(run)
    series = recall_series(made_ts, made_n, true_ts, true_n, begin + p, end, p, step)
    recalls = series.column("recall").to_numpy()
    true, made = int(true_n.sum()), int(made_n.sum())
    precision = _precision(run)
    right = made if precision is None else round(made * precision)
    waits = np.concatenate(run.output.waits) if run.has_arrival and run.output.waits else None
    return Report(
        true=true,
        produced=made,
        recall=right / true if true else 1.0,
        precision=precision,
        target=target,
        phi=float(np.mean(recalls >= target)) if len(recalls) else 1.0,
        measurements=series,
        average_slack=average_slack(run.output.slacks, begin + p, end),
        average_latency=float(np.average(latency, weights=made_n)) if made else 0.0,
        latency_95=_weighted_quantile(latency, made_n, 0.95),
        average_wait=float(waits.mean()) if waits is not None and len(waits) else None,
        wait_95=float(np.quantile(waits, 0.95)) if waits is not None and len(waits) else None,
    )


def without_gaps(output: Output, batch: Batch, over: int) -> I64:
    """The latencies of results, without gaps of event time that are longer than `over`."""
    ts, _, latency = columns(output.made)
    gaps = Gaps.of(largest_times(batch), over)
    return gaps.latency(ts, latency, slack_at(output.slacks, ts))


def columns(made: list[Production]) -> tuple[I64, I64, I64]:
    """Result times, numbers and latencies, in order."""
    if not made:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    ts, n, latency = (np.concatenate(column) for column in zip(*made, strict=True))
    return ts, n, latency


def _span(run: Run) -> tuple[int, int]:
    """The first and the largest event time that arrived."""
    slacks = run.output.slacks
    return (slacks[0][0], run.output.top) if slacks else (0, 0)


def recall_series(
    made_ts: I64, made_n: I64, true_ts: I64, true_n: I64, begin: int, end: int, p: int, step: int
) -> pa.Table:
    """γ(P) at the multiples of `step` in [begin, end], where there is a true result."""
    grid = _grid(true_ts, p, step)
    grid = grid[(grid >= begin) & (grid <= end)]
    made = sum_within(made_ts, made_n, grid, p)
    true = sum_within(true_ts, true_n, grid, p)
    some = true > 0
    recall = made[some] / true[some]
    return pa.table(
        {"ts": grid[some], "produced": made[some], "true": true[some], "recall": recall}
    )


def _grid(ts: I64, p: int, step: int) -> I64:
    """The multiples of `step` at most `p` behind one of `ts`, which ascends.

    Not all between the first and the last: one wrong time can be thousands of years away.
    """
    first, last = -(-ts // step), (ts + p - 1) // step
    first[1:] = np.maximum(first[1:], last[:-1] + 1)
    count = np.maximum(0, last - first + 1)
    run = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return np.asarray((np.repeat(first, count) + run) * step)


def sum_within(ts: I64, n: I64, grid: I64, p: int) -> I64:
    """Sum of `n` with ``t - p < ts <= t`` for each t of `grid`; `ts` ascends."""
    total = np.concatenate([[0], np.cumsum(n)])
    upper = np.searchsorted(ts, grid, side="right")
    lower = np.searchsorted(ts, grid - p, side="right")
    return np.asarray(total[upper] - total[lower])


def average_slack(slacks: list[tuple[int, int]], begin: int, end: int) -> float:
    """K averaged over event time in [begin, end]; its last value if that is empty."""
    if not slacks:
        return 0.0
    if end <= begin:
        return float(slacks[-1][1])
    ts = np.clip(np.array([t for t, _ in slacks] + [end]), begin, end)
    ts[0] = begin
    return float(np.sum(np.diff(ts) * np.array([float(k) for _, k in slacks])) / (end - begin))


def _weighted_quantile(values: I64, weights: I64, q: float) -> float:
    """The smallest value that at least a share `q` of the weight does not exceed."""
    if len(values) == 0:
        return 0.0
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, q * total[-1])])


def _precision(run: Run) -> float | None:
    """Share of produced results that are true: all with time windows, else a comparison."""
    if not run.query.has_tuple_windows:
        return 1.0
    if run.query.select == "count":
        return None
    exact, orders = truth(run.query, run.batch, "*")
    true = {
        tuple(order[row] for order, row in zip(orders, rows, strict=True))
        for members in exact.members
        for rows in members.tolist()
    }
    made = [tuple(rows) for members in run.output.members for rows in members.tolist()]
    return sum(rows in true for rows in made) / len(made) if made else 1.0
