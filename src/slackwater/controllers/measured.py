"""The controller of `Recall` by delays: the model predicts what K costs, the join measures it.

It serves where the lateness of results cannot be measured: tuple-count windows, and the papers'
pipeline.

Feed-forward: the recall model over the delays of the recent past gives the share of results that
each K would lose. Feedback: what late events really lost, counted exactly, shows by which factor
the model is wrong for these data, and how much the loss of a period varies around its mean. K is
the smallest one whose loss stays below 1 - Γ with the wanted confidence. docs/goals.md explains why
it is built this way.
"""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from slackwater.controllers.controller import Interval, RecallSeeker
from slackwater.controllers.model import RecallModel
from slackwater.kernels import recall as kernels
from slackwater.kernels.records import BEFORE, F64
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery
from slackwater.stats.results import Results
from slackwater.stats.statistics import Statistics

# Found on D×2, D×3 and D×4 of the lab, and the same for all of them.
_TRUST = 10  # intervals of the allowed loss for which the model is taken at its word
_SCALE_OVER = 2, 60  # periods, and at least intervals, over which losses are compared
_MEMORY = 10, 300  # periods, and at least intervals, over which their variation is learnt
_BLOCK = 5  # intervals in which losses come together: a hot key, a burst
_FEWEST = 4  # blocks
_CLUMPS = 2.0  # losses vary more than in a normal distribution
_BEFORE_CHANGE = 0.5  # how much of the variation before a change of disorder still counts
_GAIN = 0.5  # how much of what the last period left over, or overspent, the next one gets
_LEAST = 0.1  # times the allowed loss: what the last period leaves of it, however bad it was


class Measured(NamedTuple):
    """What the join measured."""

    scale: float  # measured by predicted loss
    margin: float  # how far a period may exceed the expected loss, by the square root of that
    spent: float  # the loss of the last period, as a share


class MeasuredLossController(RecallSeeker):
    """The smallest K with which the recall over every period is at least Γ."""

    def __init__(self, query: JoinQuery, goal: Recall) -> None:
        super().__init__(query, goal)
        self.start = self._floor = goal.floor(query.unit)
        self._loss = 1.0 - goal.target
        self._deviations = _CLUMPS * NormalDist().inv_cdf(goal.confidence)
        self._on_the_safe_side = (1.0 + goal.confidence) / 2
        self._model = RecallModel(query)
        self._period = self.over // self.every  # in intervals
        self._block = min(_BLOCK, self._period)
        self._memory = self._intervals(_MEMORY) * self.every
        # A late event loses results for as long as a window reaches back.
        self._settling = max((n for n in query.lengths if n is not None), default=self.over)
        # What was spent matters as far as it is still in the period that is judged next.
        self._gain = _GAIN * max(0.0, 1.0 - (self._settling + self.every) / self.over)
        self._begun = BEFORE  # the join's clock when K was first chosen
        self._since = BEFORE  # the join's clock at the last boundary
        self._predicted = 0.0  # the share that should be lost since
        self.scale = 1.0  # by which the loss of the model was mistaken when K was chosen last

    def statistics(self, query: JoinQuery) -> Statistics:
        """Delays, and the results of some periods."""
        return Statistics(query, self.every, self._granularity, self._memory, steady=True)

    def _intervals(self, length: tuple[int, int]) -> int:
        """So many periods, and at least so many intervals, in intervals."""
        periods, least = length
        return max(periods * self._period, least)

    def next_slack(self, interval: Interval) -> int:
        """The smallest K that should do."""
        known, clock = interval.statistics, interval.join_time
        if clock > BEFORE:
            if self._since == BEFORE:
                self._begun = self._since = clock
            known.results.predict(self._since, clock, self._predicted)
            self._since = clock
        self._model.learn(known.delays)
        measured = self._measured(known.results, interval)
        self.scale = measured.scale
        slack = self._model.smallest_slack(1.0 - self._allowed(measured))
        slack = max(slack, self._floor)
        self._predicted = 1.0 - self._model.recall(slack)
        return slack

    def _measured(self, results: Results, interval: Interval) -> Measured:
        """The losses so far; the model counts as right until they contradict it."""
        unknown = Measured(1.0, 0.0, self._loss)
        if interval.join_time == BEFORE:
            return unknown
        until = min(interval.join_time, interval.end - interval.slack - self._settling)
        since = max(self._begun, until - self._memory)  # losses without any K mean nothing
        produced, lost, share = results.between(since, until)
        true = produced + lost
        if not true.any():
            return unknown
        unchanged = max(1, (until - interval.statistics.delays.changed) // self.every)
        trust = _TRUST * self._loss * float(true.mean())
        late = slice(-min(unchanged, self._intervals(_SCALE_OVER)), None)
        expected = share * true
        scale = (lost[late].sum() + trust) / max(expected[late].sum() + trust, 1e-12)
        margin = self._margin(lost, scale * expected, true)
        if _FEWEST * self._block <= unchanged < len(true):
            # What was before a change counts, but less.
            new = slice(-unchanged, None)
            now = self._margin(lost[new], scale * expected[new], true[new])
            margin = max(now, _BEFORE_CHANGE * margin)
        last_true = true[-self._period :].sum()
        spent = lost[-self._period :].sum() / last_true if last_true else self._loss
        return Measured(float(scale), margin, float(spent))

    def _margin(self, lost: F64, expected: F64, true: F64) -> float:
        """How far the loss of a period may exceed the expected one, by the root of that.

        Of periods as short as a block enough are remembered to see it. Longer ones are made of
        blocks that are nearly independent of each other: their deviations add up as squares. Each
        period counts by its own number of results: γ is a ratio.
        """
        in_period = self._period // self._block
        if len(true) < _FEWEST * self._block:
            return 0.0
        if in_period > 1:
            mean, squares = kernels.deviations(lost, expected, true, self._block, in_period)
            return self._deviations * sqrt(squares / max(mean, 1e-12))
        lost, expected, true = (_blocks(row, self._block) for row in (lost, expected, true))
        some = true > 0
        if not some.any():
            return 0.0
        excess = (lost - expected)[some] / true[some]
        most = float(np.quantile(excess, self._on_the_safe_side))
        mean = float(np.mean(expected[some] / true[some]))
        return max(0.0, most) / sqrt(max(mean, 1e-12))

    def _allowed(self, measured: Measured) -> float:
        """The loss that the model may predict: x with x + margin √x = 1 - Γ, unscaled."""
        wanted = self._loss + self._gain * (self._loss - measured.spent)
        wanted = max(wanted, _LEAST * self._loss)
        off = measured.margin
        root = (sqrt(off * off + 4 * wanted) - off) / 2
        return root * root / max(measured.scale, 1e-12)

    def state(self) -> dict[str, Any]:
        """What it predicted last, and since when."""
        return {
            "begun": self._begun, "since": self._since, "predicted": self._predicted,
            "scale": self.scale,
        }  # fmt: skip

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._begun, self._since = state["begun"], state["since"]
        self._predicted = state["predicted"]
        self.scale = state.get("scale", 1.0)  # older states do not have it


def _blocks(row: F64, n: int) -> F64:
    """Sums of `n` values each, up to the last one."""
    blocks = len(row) // n
    return np.asarray(row[-blocks * n :].reshape(blocks, n).sum(axis=1))
