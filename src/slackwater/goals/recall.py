"""The default controller of `Recall`: the model says what K costs, the join says what it did cost.

Feed-forward: the recall model over the delays of the recent past gives the share of results that
each K would lose. Feedback: what late events really lost, counted exactly, tells by which factor
the model is wrong for these data, and how much the loss of a measurement period varies around its
mean. K is then the smallest one whose loss stays below 1 - Γ with the wanted confidence.
docs/goals.md tells why it is built this way.
"""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from slackwater.goal import Recall
from slackwater.goals.controller import Interval
from slackwater.goals.model import RecallModel
from slackwater.kernels.records import BEFORE
from slackwater.query import Query
from slackwater.stats.results import Results
from slackwater.stats.statistics import Statistics
from slackwater.units import to_units

TRUST = 10  # intervals of the wanted loss as which the model is believed without a measurement
BLOCK = 5  # intervals; losses are correlated within them (a hot key, a burst)
MEMORY = 10  # periods over which the variation of losses is learnt
GAIN = 0.5  # of the budget that the last period has left
FEWEST = 3.0  # standard deviations of a change


class RecallController:
    """Smallest K such that the recall over every P is at least Γ."""

    follows_delay = False
    start = 0

    def __init__(self, query: Query, goal: Recall) -> None:
        self.every = to_units(goal.every, query.unit, "every")
        self._granularity = to_units(goal.granularity, query.unit, "granularity")
        self._over = to_units(goal.over, query.unit, "over")
        self._loss = 1.0 - goal.target
        self._z = NormalDist().inv_cdf(goal.confidence)
        self._model = RecallModel(query)
        self._window = max((n for n in query.lengths if n is not None), default=self._over)
        self._since = BEFORE  # the join's clock at the last boundary
        self._predicted = 0.0  # the share that should be lost since
        self.trace: list[Any] = []

    def statistics(self, query: Query) -> Statistics:
        """Delays, and the results of some periods."""
        keep = MEMORY * self._over
        return Statistics(query, self.every, self._granularity, keep)

    def next_slack(self, interval: Interval) -> int:
        """The smallest K that should do."""
        known = interval.statistics
        self._note_prediction(known.results, interval.join_time)
        self._model.learn(known.delays)
        scale, spread, spent = self._feedback(known.results, interval)
        allowed = self._allowed(scale, spread, spent)
        slack = self._model.smallest_slack(1.0 - allowed)
        slack = max(slack, self._after_change(known, allowed))
        self._predicted = 1.0 - self._model.recall(slack)
        self.trace.append((interval.end, slack, scale, spread, spent, allowed))
        return slack

    def _note_prediction(self, results: Results, clock: int) -> None:
        if clock > BEFORE:
            results.predict(self._since if self._since > BEFORE else clock, clock, self._predicted)
            self._since = clock

    def _feedback(self, results: Results, interval: Interval) -> tuple[float, float, float]:
        """Measured by predicted loss; variation of a period's loss; loss of the last period."""
        clock = interval.join_time
        if clock == BEFORE:
            return 1.0, 0.0, self._loss
        until = min(clock, interval.end - interval.slack - self._window)
        produced, lost, share = results.between(until - MEMORY * self._over, until)
        true = produced + lost
        n = len(true)
        if n == 0 or true.sum() == 0:
            return 1.0, 0.0, self._loss
        mean = true.sum() / n
        recent = slice(max(0, n - 2 * self._over // self.every), n)
        trust = TRUST * self._loss * mean
        expected = share * true
        scale = (lost[recent].sum() + trust) / (expected[recent].sum() + trust)
        # variation around the expectation, in blocks
        blocks = n // BLOCK
        spread = 0.0
        if blocks >= 4:
            cut = slice(n - blocks * BLOCK, n)
            off = (lost - scale * expected)[cut].reshape(blocks, BLOCK).sum(axis=1)
            size = true[cut].reshape(blocks, BLOCK).sum(axis=1)
            level = (scale * expected)[cut].sum() / size.sum()
            per_period = self._over / (BLOCK * self.every)
            sigma = sqrt(float(np.mean((off / size.mean()) ** 2)) / per_period)
            spread = sigma / sqrt(max(level, 1e-12))
        last = slice(max(0, n - self._over // self.every), n)
        spent = lost[last].sum() / max(true[last].sum(), 1e-12)
        return float(scale), float(spread), float(spent)

    def _allowed(self, scale: float, spread: float, spent: float) -> float:
        """The share of results that the model may say will be lost."""
        want = self._loss + GAIN * (self._loss - spent)
        want = min(max(want, 0.1 * self._loss), 2 * self._loss)
        zs = self._z * spread
        root = (-zs + sqrt(zs * zs + 4 * want)) / 2  # x + z s sqrt(x) = want
        return root * root / scale

    def _after_change(self, known: Statistics, allowed: float) -> int:
        return 0

    def state(self) -> dict[str, Any]:
        """What it predicted last."""
        return {"since": self._since, "predicted": self._predicted}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._since, self._predicted = state["since"], state["predicted"]
