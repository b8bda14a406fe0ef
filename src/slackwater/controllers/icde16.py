"""ICDE16's own controllers of `Recall`: the Buffer-Size Manager, Alg. 3 with Eq. (2) to (7).

At each boundary: K is the smallest multiple of g such that γ(L, K), the recall that the model
expects of the next interval, reaches Γ', the recall that the next interval needs so that the
period P that ends with it reaches Γ. ``eqsel`` takes the selectivity of the join to be the same
whatever K is; ``noneqsel`` corrects it by what events of each delay made in the last interval
(Eq. 6). The correction may fall with K: each K at which it changes is looked at.

Corrected: Γ' is at most 1 (IV-C prints max for min); Eq. (5) has |w_j| / r_j; Eq. (6) sums the
buckets up to K / g; K_sync is rounded to g.

What the text leaves open, and what we do:

- Where "the last P - L" ends. N_prod(P - L) is a count of results, and these come a slack behind
  what arrives. We take the last (P - L) / L intervals of *result time* that the join's clock has
  left behind. A join that is silent because K has just grown then changes nothing.
- N_true(P - L) is the sum of ΣM-join over these intervals, that is of produced results and of
  the largest productivity for every late event. We count a late event in the interval of its own
  time, where its results are missing, not in that in which it came.
- N_true(L), the same of the last interval: of the last one of these that has any. Without one,
  Γ' = Γ.
- Γ' below 0 needs nothing: K = 0.
- ``calibrate=False`` leaves Eq. (7) out: Γ' = Γ. What Γ' corrects shows only K later, and meanwhile
  it goes on correcting; it then stays at 1, whatever the model says (docs/results/fig7.md).
- Alg. 3 stops at the first multiple of g behind MaxD^H, the largest delay in the ADWIN windows; we
  at the first that is not below it: there nothing is late.
"""

from __future__ import annotations

from typing import Any

from slackwater.controllers.controller import Interval, RecallSeeker
from slackwater.controllers.model import RecallModel
from slackwater.kernels.records import BEFORE
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery
from slackwater.stats.results import Results
from slackwater.stats.statistics import Statistics


class BufferSizeManager(RecallSeeker):
    """Smallest K with γ(L, K) >= Γ'."""

    def __init__(self, query: JoinQuery, goal: Recall) -> None:
        super().__init__(query, goal)
        self._equal_selectivity = goal.model == "eqsel"
        self._calibrates, self._adwin = goal.calibrate, goal.adwin
        self._model = RecallModel(query, goal.basic_steps(query.unit))
        self._lost: dict[int, float] = {}  # estimates by the number of the interval

    def statistics(self, query: JoinQuery) -> Statistics:
        """Delays, results of the last period, and productivity by delay."""
        return Statistics(
            query, self.every, self._granularity, self.over, profile=True, adwin=self._adwin
        )

    def next_slack(self, interval: Interval) -> int:
        """Alg. 3."""
        delays, profile = interval.statistics.delays, interval.statistics.productivity
        assert profile is not None
        for number, n in profile.close().items():
            self._lost[number] = self._lost.get(number, 0.0) + n
        wanted = self._target
        if self._calibrates:
            wanted = self.instant_requirement(interval.statistics.results, interval.join_time)
        self._model.learn(delays)
        if self._equal_selectivity:
            return self._model.smallest_slack(wanted)
        return self._model.smallest_corrected(wanted, profile.selectivity_ratio())

    def instant_requirement(self, results: Results, clock: int) -> float:
        """Γ' of Eq. (7), at most 1; `clock` is that of the join."""
        if clock == BEFORE:
            return self._target
        end = clock // self.every  # the interval that the join is in
        begin = end - (self.over // self.every - 1)
        true = self.lost_between(results, begin, end)
        produced = results.between(begin * self.every, end * self.every)[0]
        for number, n in enumerate(produced.tolist(), max(begin, results.first)):
            true[number] = true.get(number, 0.0) + n
        latest = next((true[number] for number in sorted(true, reverse=True) if true[number]), 0.0)
        if latest == 0:
            return self._target
        all_true = sum(true[number] for number in sorted(true))
        wanted = self._target * (all_true + latest) - float(produced.sum())
        return min(wanted / latest, 1.0)

    def lost_between(self, results: Results, begin: int, end: int) -> dict[int, float]:  # noqa: ARG002
        """What was lost in these intervals, by number: estimated as printed, not measured."""
        self._lost = {number: n for number, n in self._lost.items() if number >= begin}
        return {number: n for number, n in self._lost.items() if number < end}

    def state(self) -> dict[str, Any]:
        """What late events should have made."""
        return {"lost": sorted(self._lost.items())}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._lost = dict(state["lost"])
