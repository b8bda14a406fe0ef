"""Measure what each recall costs in latency on recorded streams: several goals, and fixed slacks.

Each goal that sets its own K replays the whole recording, counting results without making them. All
fixed slacks come from one pass that measures how late each result is (`engine.lateness_curve`):
recall is never shown too high, and is at least that of a slack 1/32 smaller. The papers' pipeline
has no such curve: each slack is replayed there.

K* of a target is the smallest fixed slack that, in hindsight, holds it as often as `Recall` does
(DESIGN 5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from slackwater.engine.join import JoinEngine
from slackwater.engine.lateness_curve import LatenessCurve, lateness_curve
from slackwater.engine.replay import recorded
from slackwater.engine.report import average_slack, columns, recall_series, truth, without_gaps
from slackwater.errors import DataError, QueryError
from slackwater.jobs.advise_kinds import KindAdvisor
from slackwater.jobs.explain import text_of
from slackwater.jobs.measurement import Measurement
from slackwater.jobs.recordings import Recording
from slackwater.jobs.toml_table import JobFileError
from slackwater.jobs.waits_tried import TARGETS, GoalResult, Step, fitting_period, tried_slacks
from slackwater.query.goals import Goal, InputQuantile, MaxSlack, NoSlack, Recall, Slack
from slackwater.query.join import DEFAULT_RECALL, JoinQuery
from slackwater.query.units import Duration, TimeUnit, to_units

QUANTILES = (0.9, 0.95, 0.99)

_GRANULARITY = "10 ms"
_EVERY = "1 second"
_CLOSE = 20  # K* is exact to one part in so many, or to the granularity


class Advisor:
    """Measures a recording under one goal after the other, and remembers the results.

    Parameters
    ----------
    query
        The join; its goal is not used.
    tables
        The streams by name.
    arrival
        The column with the arrival time; None means table order.
    target
        The recall to look at.
    over
        The period P of recall; None means a minute, or less if the recording is short.
    """

    def __init__(
        self,
        query: JoinQuery,
        tables: Mapping[str, Any],
        arrival: str | None,
        target: float = 0.95,
        over: Duration | None = None,
    ) -> None:
        if query.has_tuple_windows:
            msg = "advice needs time windows on all streams, got a tuple-count window"
            raise QueryError(msg)
        Recall(target)  # raises if the target is wrong
        self.query = replace(query, goal=NoSlack(), select="count", late="count")
        self.target = target
        self.targets = sorted({*TARGETS, target})
        self.quantiles = sorted({*QUANTILES, target})
        self._batch, _ = recorded(self.query, tables, arrival)
        self.rows = len(self._batch.stream)
        self._true = columns(truth(self.query, self._batch)[0].made)[:2]
        self.true = int(self._true[1].sum())
        self._known: dict[Goal, GoalResult] = {}
        self._best: dict[float, int] = {}
        self._every = to_units(_EVERY, self.unit)
        self._span = self._measured_span()
        over = fitting_period(self._span, query.unit) if over is None else over
        self.over = f"{over} {query.unit}" if isinstance(over, int) else over  # as people read it
        self._over = to_units(self.over, query.unit, "over")
        self._check()
        Recall(target, over=self.over).check(query.unit)

    @property
    def unit(self) -> TimeUnit:
        """The unit of all times."""
        return self.query.unit

    @property
    def granularity(self) -> int:
        """The step between two values of K."""
        return to_units(_GRANULARITY, self.unit)

    @property
    def slacks(self) -> list[int]:
        """The fixed slacks that are tried, from none to the largest delay."""
        return tried_slacks(self.largest_delay, self.granularity)

    # ---- work

    def steps(self) -> list[Step]:
        """Return the work, in steps that can be shown."""
        goals: list[Goal] = [self.recall_goal(target) for target in self.targets]
        goals += [*map(InputQuantile, self.quantiles), NoSlack(), MaxSlack()]
        fixed = [] if self.curve is None else [("fixed slacks", self._all_fixed)]
        if self.curve is None:
            goals += map(Slack, self.slacks)
        return [
            *((named(goal, self.unit), partial(self.result, goal)) for goal in goals),
            *fixed,
            *((f"frontier of {t:g}", partial(self.best_slack, t)) for t in self.targets),
        ]

    @cached_property
    def curve(self) -> LatenessCurve | None:
        """What every fixed slack gives; None: the query does not reorder on the common clock."""
        if not self.query.is_clocked:
            return None
        return lateness_curve(self.query, self._batch, self._true, self._over, self._every)

    def _all_fixed(self) -> None:
        for slack in self.slacks:
            self.result(Slack(slack))

    def recall_goal(self, target: float) -> Recall:
        """Return `Recall` over the period of this advice."""
        return Recall(target, over=self.over)

    def result(self, goal: Goal) -> GoalResult:
        """Measure the recording under `goal`, at most once."""
        if goal not in self._known:
            if isinstance(goal, Slack) and self.curve is not None:
                self._known[goal] = self._from_curve(goal, self.curve)
            else:
                self._known[goal] = self._replayed(goal)
        return self._known[goal]

    def best_slack(self, target: float) -> int:
        """Return K*, the smallest fixed slack that holds `target` as often as `Recall` does."""
        if target not in self._best:
            wanted = self.result(self.recall_goal(target)).phi(target)
            self._best[target] = self._smallest(target, wanted)
        return self._best[target]

    def _smallest(self, target: float, wanted: float) -> int:
        step = self.granularity
        if self.curve is not None:
            return -(-self.curve.smallest_slack(target, wanted) // step) * step

        def holds(slack: int) -> bool:
            return self.result(Slack(slack)).phi(target) >= wanted

        tried = self.slacks
        place = next((i for i, slack in enumerate(tried) if holds(slack)), len(tried) - 1)
        if place == 0:
            return 0
        low, high = tried[place - 1], tried[place]
        while high - low > max(step, high // _CLOSE):
            middle = (low + high) // 2 // step * step
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high

    def _from_curve(self, goal: Slack, curve: LatenessCurve) -> GoalResult:
        """A fixed slack, without a replay."""
        slack = to_units(goal.length, self.unit)
        series = curve.series(slack)
        ts = series["ts"].to_numpy()
        return GoalResult(
            goal,
            recall=curve.recall(slack),
            average_slack=float(slack),
            average_latency=curve.average_latency(slack),
            ts=ts,
            recalls=series["recall"].to_numpy(),
            slacks=np.full(len(ts), slack),
        )

    def _replayed(self, goal: Goal) -> GoalResult:
        query, batch = replace(self.query, goal=goal), self._batch
        schemas = dict(zip(query.names, (table.schema for table in batch.tables), strict=True))
        engine = JoinEngine(query, schemas)
        output = engine.feed(batch)
        output.extend(engine.flush())
        made_ts, made_n, _ = columns(output.made)
        latency = without_gaps(output, batch, self._over)
        begin, end = output.slacks[0][0] + self._over, output.top
        series = recall_series(made_ts, made_n, *self._true, begin, end, self._over, self._every)
        changes, values = np.array(output.slacks).T
        ts = series["ts"].to_numpy()
        return GoalResult(
            goal,
            recall=float(made_n.sum() / self.true),
            average_slack=average_slack(output.slacks, begin, end),
            average_latency=float(np.average(latency, weights=made_n)) if made_n.any() else 0.0,
            ts=ts,
            recalls=series["recall"].to_numpy(),
            slacks=values[np.searchsorted(changes, ts, side="right") - 1],
        )

    # ---- the recording

    def _measured_span(self) -> int:
        """Measure the span of event time, and the largest delay."""
        schemas = {n: t.schema for n, t in zip(self.query.names, self._batch.tables, strict=True)}
        engine = JoinEngine(replace(self.query, goal=MaxSlack(), late="drop"), schemas)
        output = engine.feed(self._batch)
        self.largest_delay = engine.metrics().max_delay
        return output.top - output.slacks[0][0] if output.slacks else 0

    def _check(self) -> None:
        if self.true == 0:
            msg = "the recording has no results, so recall is not defined"
            raise DataError(msg)
        if self._over >= self._span:
            msg = (
                f"over must be shorter than the recording, which has {self._span} {self.unit} of "
                f"event time, got {self.over!r}"
            )
            raise DataError(msg)


def named(goal: Goal, unit: TimeUnit) -> str:
    """Format a goal, without the options that all have in common.

    >>> [named(goal, "ms") for goal in (Recall(0.95), InputQuantile(0.9), Slack(250), NoSlack())]
    ['Recall(0.95)', 'InputQuantile(0.9)', 'Slack(250 ms)', 'NoSlack()']
    """
    if isinstance(goal, Recall | InputQuantile):
        return f"{type(goal).__name__}({goal.target:g})"
    if isinstance(goal, Slack):
        return f"Slack({to_units(goal.length, unit)} {unit})"
    return f"{type(goal).__name__}()"


def sentence(advisor: Advisor, time: Callable[[float], str]) -> str:
    """Return the conclusion in a sentence; `time` formats a time."""
    target = advisor.target
    ours = advisor.result(advisor.recall_goal(target))
    quantile = advisor.result(InputQuantile(target))
    most = advisor.result(MaxSlack())
    return (
        f"Recall({target:g}) gives {ours.recall:.1%} of the results, {time(ours.average_latency)} "
        f"late on average, and holds {target:g} in {ours.phi(target):.0%} of all measurements over "
        f"{advisor.over}. InputQuantile({target:g}), a watermark by delays alone, would give "
        f"{quantile.recall:.1%} at {time(quantile.average_latency)} and hold {target:g} in "
        f"{quantile.phi(target):.0%}; MaxSlack() gives {most.recall:.1%} at "
        f"{time(most.average_latency)}. The best fixed slack, known only in hindsight, is "
        f"{time(advisor.best_slack(target))}."
    )


def advisor_for(
    recording: Recording, target: float | None, over: str | None
) -> Advisor | KindAdvisor:
    """Return the advisor for a recording; by default with the target and period of its goal.

    Joins with rows that need a decision, and those that give out pairs at once, have one of theirs.

    Raises
    ------
    JobFileError
        If the query is not a join.
    """
    query = recording.query
    if not isinstance(query, JoinQuery):
        msg = f"{recording.title}: advice is about joins, got a job with [{text_of(query).kind}]"
        raise JobFileError(msg)
    own, period = recall_of(query.goal)
    if query.how != "inner" or query.emit != "ordered":
        if isinstance(query.goal, Recall) and query.goal.unmatched is not None:
            own = query.goal.unmatched
        return KindAdvisor(
            query,
            recording.tables,
            recording.arrival,
            own if target is None else target,
            period if over is None else over,
        )
    return Advisor(
        query,
        recording.tables,
        recording.arrival,
        own if target is None else target,
        period if over is None else over,
    )


def recall_of(goal: Goal) -> tuple[float, Duration | None]:
    """Return the target and the period by which a recording is judged.

    A goal that nobody chose has no period: one that fits the recording is better.
    """
    if not isinstance(goal, Recall):
        return DEFAULT_RECALL["ordered"], None
    is_default = goal in map(Recall, DEFAULT_RECALL.values())
    return goal.target, None if is_default else goal.over


# ---- tables


def adaptive_goals(advisor: Advisor) -> list[tuple[str, float, GoalResult]]:
    """Return each goal that sets its own K: its name, its target, its result."""
    recalls: list[tuple[Goal, float]] = [(advisor.recall_goal(t), t) for t in advisor.targets]
    quantiles: list[tuple[Goal, float]] = [(InputQuantile(q), q) for q in advisor.quantiles]
    fixed: list[tuple[Goal, float]] = [(g, advisor.target) for g in (NoSlack(), MaxSlack())]
    return [
        (named(goal, advisor.unit), target, advisor.result(goal))
        for goal, target in recalls + quantiles + fixed
    ]


def fixed_slacks(advisor: Advisor) -> list[tuple[int, str, GoalResult]]:
    """Return each fixed slack: its length, the targets for which it is K*, its result."""
    best = frontier_of(advisor)
    return [
        (slack, ", ".join(f"{t:g}" for t in best.get(slack, ())), advisor.result(Slack(slack)))
        for slack in sorted({*advisor.slacks, *best})
    ]


def measurements(advisor: Advisor) -> list[Measurement]:
    """Return all numbers of an advice."""
    rows = adaptive_goals(advisor)
    rows += [
        (named(Slack(slack), advisor.unit), advisor.target, result)
        for slack, _, result in fixed_slacks(advisor)
    ]
    found = [
        Measurement("rows", advisor.rows, "rows"),
        Measurement("true results", advisor.true, "results"),
        Measurement("largest delay", advisor.largest_delay, advisor.unit),
    ]
    for name, target, result in rows:
        latency = round(result.average_latency, 3)
        found += [
            Measurement(f"{name}: recall", round(result.recall, 6), "share"),
            Measurement(f"{name}: Φ({target:g})", round(result.phi(target), 6), "share"),
            Measurement(f"{name}: average K", round(result.average_slack, 3), advisor.unit),
            Measurement(f"{name}: average latency", latency, advisor.unit),
        ]
    best = [(f"K*({t:g})", advisor.best_slack(t)) for t in advisor.targets]
    return found + [Measurement(name, slack, advisor.unit) for name, slack in best]


def frontier_of(advisor: Advisor) -> dict[int, Sequence[float]]:
    """Return, by fixed slack, the targets for which it is K*."""
    found: dict[int, list[float]] = {}
    for target in advisor.targets:
        found.setdefault(advisor.best_slack(target), []).append(target)
    return dict(found)
