"""Measure what quality costs where rows need a decision, or pairs are given out at once.

Each kind of row has its own table: the goal that asks for a quality, as it replays the recording,
beside every fixed wait, which comes from one pass (`engine.wait_curve`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from slackwater.engine.checks import is_accepted
from slackwater.engine.factory import join_engine
from slackwater.engine.lateness_curve import LatenessCurve, lateness_curve
from slackwater.engine.replay import recorded, schemas_of
from slackwater.engine.report import average_slack, columns, recall_series, truth
from slackwater.engine.result_schema import CHANGE, LATE, RESULT_TS
from slackwater.engine.wait_curve import WaitCurves, wait_curves
from slackwater.errors import DataError
from slackwater.events.batch import Batch, flat, time_in_units
from slackwater.jobs.measurement import Measurement
from slackwater.jobs.waits_tried import TARGETS, GoalResult, Step, fitting_period, tried_slacks
from slackwater.kernels.records import I64, NONE
from slackwater.query.goals import Goal, NoSlack, Recall
from slackwater.query.join import JoinQuery
from slackwater.query.join_kinds import WITH_PAIRS
from slackwater.query.units import Duration, TimeUnit, to_units

_EVERY = "1 second"
_ROW = "__row"
_QUANTILES = (0.95, 0.99)


@dataclass(frozen=True)
class Part:
    """Rows of one kind, and what every fixed wait would have given."""

    name: str
    quality: str  # what the share says
    wait: str  # what is waited for
    curve: LatenessCurve


class KindAdvisor:
    """Measures a recording for a join that is not an inner join in order.

    Parameters
    ----------
    query
        The join; its goal is not used.
    tables
        The streams by name.
    arrival
        The column with the arrival time; None means table order.
    target
        The share to look at.
    over
        The period of shares; None means a minute, or less if the recording is short.
    """

    def __init__(
        self,
        query: JoinQuery,
        tables: Mapping[str, Any],
        arrival: str | None,
        target: float = 0.99,
        over: Duration | None = None,
    ) -> None:
        Recall(target)  # raises if the target is wrong
        self.query = replace(query, goal=NoSlack(), select="*", result_id=False)
        self.target = target
        self.targets = sorted({*TARGETS, target})
        batch, _ = recorded(self.query, tables, arrival)
        numbered = (t.append_column(_ROW, [np.arange(t.num_rows)]) for t in batch.tables)
        self._batch = replace(batch, tables=tuple(numbered))
        self.rows = len(batch.stream)
        times = np.concatenate([c.ts[is_accepted(c.reason)] for c in batch.checked or ()])
        span = int(times.max() - times.min()) if len(times) else 0
        over = fitting_period(span, query.unit) if over is None else over
        self.over = f"{over} {query.unit}" if isinstance(over, int) else over
        self._over = to_units(self.over, query.unit, "over")
        self._every = to_units(_EVERY, query.unit)
        Recall(target, over=self.over).check(query.unit)
        if self._over >= span:
            msg = (
                f"over must be shorter than the recording, which has {span} {query.unit} of "
                f"event time, got {self.over!r}"
            )
            raise DataError(msg)
        self._known: dict[tuple[str, float], GoalResult] = {}

    @property
    def unit(self) -> TimeUnit:
        """The unit of all times."""
        return self.query.unit

    # ---- work

    def steps(self) -> list[Step]:
        """Return the work, in steps that can be shown."""
        names = self._names()
        goals = [
            (f"{name}: {target:g}", partial(self.result, name, target))
            for name in names
            for target in self.targets
        ]
        return [("fixed waits", lambda: self.parts), *goals]

    def _names(self) -> list[str]:
        """The kinds of rows, in the order of `parts`."""
        how = self.query.how
        if how in ("asof", "semi"):
            return ["rows"]
        return [*(["pairs"] if how in WITH_PAIRS else []), *(["alone"] if how != "inner" else [])]

    @cached_property
    def _curves(self) -> WaitCurves:
        return wait_curves(self.query, self._batch, self._over, self._every)

    @cached_property
    def parts(self) -> dict[str, Part]:
        """The kinds of rows that the join has."""
        query, curves, found = self.query, self._curves, {}
        wait = "wait" if query.emit == "ordered" or query.how != "inner" else "kept"
        if query.how == "asof" and curves.alone is not None:
            found["rows"] = Part("as-of rows", "right at once", wait, curves.alone)
        elif query.how == "semi" and curves.kept is not None:
            wait = "wait" if query.emit == "ordered" else "kept"
            found["rows"] = Part("rows", "in time", wait, curves.kept)
        elif query.how in WITH_PAIRS:
            kept = curves.kept if curves.kept is not None else self._ordered_pairs()
            wait = "kept" if query.emit == "eager" else "wait"
            name = "pairs" if len(query.streams) == 2 else "results"
            found["pairs"] = Part(name, "found", wait, kept)
        if any(query.preserved) and query.how != "asof" and curves.alone is not None:
            found["alone"] = Part("rows without partner", "right", "wait", curves.alone)
        if not any(part.curve.n_true for part in found.values()):
            msg = "the recording has no results, so there is nothing to advise"
            raise DataError(msg)
        return found

    def _ordered_pairs(self) -> LatenessCurve:
        pairs = replace(self.query, how="inner", late="count", select="count")
        true = columns(truth(pairs, self._batch)[0].made)[:2]
        return lateness_curve(pairs, self._batch, true, self._over, self._every)

    def goal(self, part: str, target: float) -> Recall:
        """Return the goal that asks for this share of these rows."""
        if part == "alone" and self.query.how in WITH_PAIRS:
            return Recall(min(target, 0.95), over=self.over, unmatched=target)
        return Recall(target, over=self.over)

    def result(self, part: str, target: float) -> GoalResult:
        """Measure the recording under the goal that asks for this share, at most once."""
        if (part, target) not in self._known:
            goal = self.goal(part, target)
            for name, result in self._replayed(goal).items():
                if name == part:
                    self._known[name, target] = result
        return self._known[part, target]

    def best_wait(self, part: str, target: float) -> int:
        """Return the smallest fixed wait that holds `target` as often as the goal does."""
        held = self.result(part, target).phi(target)
        return self.parts[part].curve.smallest_slack(target, held)

    @cached_property
    def delay_quantiles(self) -> dict[float, int]:
        """Return quantiles of the delays of events in their streams, by share."""
        delays = []
        for checked in self._batch.checked or ():
            ts = checked.ts[is_accepted(checked.reason)]
            delays.append(np.maximum.accumulate(ts) - ts)
        known = np.concatenate(delays)
        return {q: int(np.quantile(known, q, method="higher")) for q in _QUANTILES}

    @property
    def slacks(self) -> list[int]:
        """The fixed waits that are shown."""
        behind = max(part.curve.arrivals.behind for part in self.parts.values())
        return tried_slacks(behind, to_units("10 ms", self.unit))

    # ---- a goal on the recording

    def _replayed(self, goal: Goal) -> dict[str, GoalResult]:
        query, names = self._query_of(goal), self.query.names
        batch: Batch = self._batch
        engine = join_engine(query, schemas_of(query, batch))
        output = engine.feed(batch)
        output.extend(engine.flush())
        table = output.table
        ts, _ = time_in_units(flat(table.column(RESULT_TS)), query.unit)
        in_time = np.ones(len(ts), bool)
        if LATE in table.schema.names:
            in_time &= ~np.asarray(flat(table.column(LATE)), bool)
        if CHANGE in table.schema.names:
            in_time &= np.asarray(pc.equal(table.column(CHANGE), "insert"), bool)
        members = [
            np.asarray(pc.fill_null(flat(table.column(name)), NONE))
            if query.shows(s)
            else np.full(len(ts), NONE)
            for s, name in enumerate(names)
        ]
        waits = average_slack(output.slacks, output.slacks[0][0] + self._over, output.top)
        return {
            name: self._result(name, goal, ts[in_time], [m[in_time] for m in members], waits)
            for name in self.parts
        }

    def _query_of(self, goal: Goal) -> JoinQuery:
        """The query whose results are the numbers of the rows that are their members."""
        query = self.query
        corrects = query.emit == "ordered" or any(query.preserved)
        shown = [name for s, name in enumerate(query.names) if query.shows(s)]
        select = tuple((name, f"{name}.{_ROW}") for name in shown)
        return replace(query, goal=goal, select=select, late="emit" if corrects else "count")

    def _result(
        self, part: str, goal: Goal, ts: I64, members: list[I64], average: float
    ) -> GoalResult:
        curve, (left, right) = self.parts[part].curve, members[:2]
        has_pair = np.all([of_stream != NONE for of_stream in members], axis=0)
        true_ts, true_n = curve.true
        if part == "alone":
            given = ~has_pair
            true_ts = ts[given]
            is_right = self._are_alone(left[given], right[given])
            made = ts[given][is_right]
            true_n = np.ones(len(true_ts), np.int64)
        elif part == "pairs":
            made = ts[has_pair]
        elif self._curves.partner is not None:  # as-of
            made = ts[self._curves.partner[left] == right]
        else:
            made = ts
        made, true_order = np.sort(made), np.argsort(true_ts, kind="stable")
        true_ts, true_n = true_ts[true_order], true_n[true_order]
        top = curve.arrivals.top
        ones = np.ones(len(made), np.int64)
        begin, end = int(top[0]) + self._over, int(top[-1])
        series = recall_series(made, ones, true_ts, true_n, begin, end, self._over, self._every)
        n_true = int(true_n.sum())
        is_wait = self.parts[part].wait == "wait" or self.query.how in ("inner", "semi")
        at = series["ts"].to_numpy()
        return GoalResult(
            goal,
            recall=len(made) / n_true if n_true else 1.0,
            average_slack=average if is_wait else float("nan"),
            average_latency=curve.average_latency(round(average)) if is_wait else 0.0,
            ts=at,
            recalls=series["recall"].to_numpy(),
            slacks=np.zeros(len(at), np.int64),
        )

    def _are_alone(self, left: I64, right: I64) -> NDArray[np.bool_]:
        """Return which rows without partner are true."""
        of_left, of_right = self._curves.has_partner
        found = np.where(left != NONE, of_left[left], of_right[right])
        return np.asarray(found == 0)


# ---- what is shown


def sentences(advisor: KindAdvisor, time: Callable[[float], str]) -> list[str]:
    """Return the conclusion for each kind of rows; `time` formats a time."""
    found = []
    for name, part in advisor.parts.items():
        ours, target = advisor.result(name, advisor.target), advisor.target
        best = advisor.best_wait(name, target)
        cost = f"at K {time(ours.average_slack)} on average" if part.wait == "wait" else "at once"
        fixed = [
            f"{part.curve.recall(wait):.2%} with the {q:.0%} quantile of the delays, {time(wait)}"
            for q, wait in advisor.delay_quantiles.items()
        ]
        what = "wait" if part.wait == "wait" else "time to keep events"
        found.append(
            f"{part.name.capitalize()}: with {target:g} asked, {ours.recall:.2%} are "
            f"{part.quality}, {cost}; {target:g} holds in {ours.phi(target):.0%} of all "
            f"measurements over {advisor.over}. The best fixed {what}, known only in hindsight, is "
            f"{time(best)}. A fixed one gives {', '.join(fixed)}."
        )
    return found


def measurements(advisor: KindAdvisor) -> list[Measurement]:
    """Return all numbers of an advice."""
    unit = advisor.unit
    found = [Measurement("rows", advisor.rows, "rows")]
    for name, part in advisor.parts.items():
        found.append(Measurement(f"true {part.name}", part.curve.n_true, "results"))
        for target in advisor.targets:
            result, label = advisor.result(name, target), f"{part.name}, {target:g} asked"
            found += [
                Measurement(f"{label}: {part.quality}", round(result.recall, 6), "share"),
                Measurement(f"{label}: Φ({target:g})", round(result.phi(target), 6), "share"),
            ]
            if not np.isnan(result.average_slack):
                average = round(result.average_slack, 3)
                found.append(Measurement(f"{label}: average K", average, unit))
            best = advisor.best_wait(name, target)
            found.append(Measurement(f"{label}: best fixed", best, unit))
        for wait in [*advisor.delay_quantiles.values(), *advisor.slacks]:
            share = round(part.curve.recall(wait), 6)
            found.append(Measurement(f"{part.name}, fixed {wait} {unit}", share, "share"))
    return found
