"""The default controller of `Recall`: follow the cheapest rule that would have held lately.

The lateness of results says for every K what it would have lost, whether it was used or not. So
forty simple rules run beside the query, each with the K it would choose and the losses it would
have had. A rule has a *memory*, from the last 3 intervals to the last 30 periods, and a *level*:
its slack is the one that would have lost `level` times the allowed share of that time's results.

Every interval K is that of the rule with the smallest average slack, where a share of bad periods
beyond 1 - confidence counts as extra slack. Each rule, like K itself, adds slack when the running
period has used up much of its allowance, and while lateness grows fast. The past may know nothing
like the present: so K is never so small that results as late as the last ones would use up what is
left of the allowance within a tenth of a period. Until half a period is over, K is the largest
lateness seen. docs/goals.md shows it at work; decision 21 has what else was
tried.
"""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np

from slackwater.controllers.controller import Interval, RecallSeeker
from slackwater.kernels import back_test as kernels
from slackwater.kernels.histogram import BUCKETS, upper_edges
from slackwater.kernels.records import BEFORE, F64
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery
from slackwater.stats.buckets import dense, sparse
from slackwater.stats.lateness import LatenessOf
from slackwater.stats.statistics import Statistics

# Chosen on the first half of the data of decision 20. The first six matter, the others hardly.
_PRICE = 30.0  # 1 % more bad periods than allowed are as bad as so many percent more slack
_RESERVE = 0.05  # K is larger than the back-test wants by this: the future is not the past
_FIRST_RESERVE = 1.0  # at the start, halved in each period: little has been seen yet
_GUARD = 0.1  # periods for which the lateness of the last intervals must be bearable
_CALM = 0.4  # share of a period's allowance that may be used up before slack is added
_LEVELS = (1.4, 1.1, 0.85, 0.65, 0.5, 0.35, 0.2, 0.1, 0.05, 0.01)  # times the allowed loss
_MEMORIES = 4  # in equal ratios from ...
_SHORTEST = 3.0  # intervals to ...
_LONGEST = 30.0  # periods
_RULES_OVER = 10.0  # periods after which what a rule lost counts half
_CREDIT = 1.5  # good periods that every rule has to its credit at the start
_LEAP = 1.2  # slack that grew by more than this in an interval is taken to grow so again,
_MOST_LEAP = 2.0  # but by no more than this
_START = 0.5  # periods until the rules are trusted
_BLOCKS = 20  # into which a period is cut

_EDGES = upper_edges().astype(np.float64)


class LatenessController(RecallSeeker):
    """The smallest K with which the recall over every period is at least Γ, as far as measured."""

    def __init__(self, query: JoinQuery, goal: Recall) -> None:
        super().__init__(query, goal)
        self.start = self._floor = goal.floor(query.unit)
        self._loss, self._failing = 1.0 - goal.target, 1.0 - goal.confidence
        self._period = self.over // self.every  # in intervals
        self._levels = np.array(_LEVELS)
        longest = max(_LONGEST * self._period, 10 * _SHORTEST)
        self._memory = np.geomspace(_SHORTEST, longest, _MEMORIES)  # in intervals
        self._decay = np.exp(-2.0 / self._memory)  # as old on average as a window of that length
        n = _MEMORIES * len(_LEVELS)
        self._n_blocks = min(self._period, _BLOCKS)
        self._fade = 1.0 - 0.5 ** (1.0 / (_RULES_OVER * self._period))
        self._credit = _CREDIT * (1.0 - 0.5 ** (1.0 / _RULES_OVER))
        # all that is remembered:
        self._steps = 0  # intervals so far
        self._block = 0  # the number of the running one
        self._clock = BEFORE
        self._largest = 0  # lateness or delay seen at the start
        self._on_time = 0.0  # results per interval that are not late
        self._used = 1  # buckets
        self._recent = np.zeros((_MEMORIES, BUCKETS))  # decayed histograms of lateness
        self._totals = np.zeros(_MEMORIES)  # with the results that were not late
        self._plain = np.zeros(n)  # slack of each rule, before anything is added
        self._leap = np.ones(n)  # factors of growth
        self._slack = np.zeros(n)  # with all that is added
        self._in_force = np.zeros(n)
        self._lost = np.zeros((self._n_blocks, n))  # in the last period, youngest block first
        self._true = np.zeros(self._n_blocks)
        self._own = np.zeros(self._n_blocks)
        self._bad = np.zeros(n)  # share of bad periods, so far `_weight` of it is known
        self._cost = np.zeros(n)  # average slack
        self._weight = 0.0
        self._followed = -1  # the rule that chose K; -1: none yet

    def statistics(self, query: JoinQuery) -> Statistics:
        """The lateness of results, and the results of a period."""
        return Statistics(query, self.every, None, self.over, lateness=True)

    def next_slack(self, interval: Interval) -> int:
        """The K of the next interval."""
        known = interval.lateness
        assert known is not None
        self._turn_blocks(interval.end // self.every)
        if known.bins and known.on_time:
            # known only when the join's clock has passed: a rate stands in for the last ones
            weight = 1.0 - exp(-known.bins / 5) if self._on_time else 1.0
            self._on_time += weight * (known.on_time / known.bins - self._on_time)
        late = np.flatnonzero(known.counts)
        top = int(late[-1]) if len(late) else 0
        total = float(known.counts.sum()) + self._on_time
        self._true[0] += total
        self._own[0] += known.lost
        if total > 0:
            self._back_test(known, top, total, interval.common_clock)
        self._clock = interval.common_clock
        self._steps += 1
        if self._steps <= _START * self._period:
            self._largest = max(self._largest, int(_EDGES[top]), interval.most_behind)
            return max(self._largest, self._floor)
        if self._weight == 0.0:
            return interval.slack
        return max(self._follow(), self._guard(), self._floor)

    def _turn_blocks(self, now: int) -> None:
        """Move on to the block of the interval `now`; what is older than a period is forgotten."""
        block = now * self._n_blocks // self._period
        passed = min(block - self._block, self._n_blocks) if self._steps else 0
        self._block = block
        if passed > 0:
            for row in (self._lost, self._true, self._own):
                row[passed:] = row[: self._n_blocks - passed].copy()
                row[:passed] = 0.0

    def _back_test(self, known: LatenessOf, top: int, total: float, clock: int) -> None:
        """Judge all rules by the last interval; then let them learn it and choose again."""
        late = known.counts[: top + 1].astype(np.float64)
        self._used = max(self._used, top + 1)
        if clock > BEFORE:
            advance = float(clock - self._clock) if self._clock > BEFORE else 0.0
            beyond = np.cumsum(late[::-1])[::-1].copy()
            kernels.judge(beyond, top, advance, _EDGES, self._slack, self._in_force, self._lost[0])
        spent = self._lost.sum(axis=0) / max(self._loss * self._true.sum(), 1e-9)
        self._bad += self._fade * ((spent > 1.0) - self._bad)
        self._cost += self._fade * (self._slack - self._cost)
        self._weight += self._fade * (1.0 - self._weight)

        kernels.learn(late, top, total, self._decay, self._recent, self._totals, self._used)
        before, self._plain = self._plain, np.empty(len(self._plain))
        kernels.choose(
            self._recent, self._used, self._loss, self._levels, self._totals, _EDGES, self._plain
        )
        growth = np.ones(len(before))
        if self._steps > _SHORTEST:
            growth = self._plain / np.maximum(before, 1.0)
        self._leap = np.where(growth > _LEAP, np.minimum(growth, _MOST_LEAP), 1.0)
        self._slack = self._plain * self._leap * _added(spent)

    def _follow(self) -> int:
        """Choose a rule; return its slack, with the reserve."""
        excess = np.maximum(self._failed - self._failing, 0.0)
        score = np.log(self._cost / self._weight + 1.0) + _PRICE * excess
        rule = self._followed = int(np.argmin(score))
        factor = self._leap[rule] * float(_added(self._spent)) * (1.0 + self._reserve)
        return int(self._plain[rule] * factor)

    def _guard(self) -> int:
        """The smallest K with which the running period can bear the last intervals' lateness."""
        true = self._true.sum()
        left = max(0.0, self._loss * true - self._own.sum())
        coming = _GUARD * true * self._period / min(self._steps, self._period)  # results
        some = self._recent[0, : self._used]
        beyond = np.append(np.cumsum(some[::-1])[::-1][1:], 0.0)  # later than each bucket
        enough = np.flatnonzero(beyond <= left / max(coming, 1e-9) * self._totals[0])
        return int(_EDGES[enough[0]])

    @property
    def _reserve(self) -> float:
        return float(max(_RESERVE, _FIRST_RESERVE * 0.5 ** (self._steps / self._period)))

    # ---- what a user sees

    @property
    def _failed(self) -> F64:
        """The share of bad periods of each rule."""
        return np.asarray(self._bad / (self._weight + self._credit))

    @property
    def _spent(self) -> float:
        """How much of its allowance the running period has used up."""
        return float(self._own.sum() / max(self._loss * self._true.sum(), 1e-9))

    def recall_at(self, slacks: list[int]) -> list[float]:
        """The measured recall of each of these K, over about the last period."""
        j = int(np.argmin(np.abs(self._memory - self._period)))
        if self._totals[j] == 0.0:
            return []
        beyond = np.cumsum(self._recent[j, ::-1])[::-1]
        places = np.searchsorted(_EDGES, slacks, side="right")
        lost = np.append(beyond, 0.0)[places]
        return [float(share) for share in 1.0 - lost / self._totals[j]]

    @property
    def largest(self) -> int:
        """The largest lateness in memory."""
        some = np.flatnonzero(self._recent.any(axis=0))
        return int(_EDGES[some[-1]]) if len(some) else 0

    @property
    def reason(self) -> str:
        """Why K is what it is, in words."""
        if self._followed < 0:
            return "the largest lateness seen so far: half a period is not over yet"
        memory, level = divmod(self._followed, len(_LEVELS))
        share = f"{self._loss * _LEVELS[level]:.2%}"
        intervals, slack = f"{self._memory[memory]:.0f}", f"{self._plain[self._followed]:.0f}"
        words = (
            f"{share} of the results of the last {intervals} intervals came later than {slack}; "
            f"{self._reserve:.0%} in reserve"
        )
        if self._leap[self._followed] > 1.0:
            words += "; lateness grows fast"
        if self._spent > _CALM:
            words += f"; the running period has used up {self._spent:.0%} of its allowed loss"
        return words

    # ---- for a snapshot

    _SCALARS = ("steps", "block", "clock", "largest", "on_time", "used", "weight", "followed")
    _ARRAYS = (
        "totals", "plain", "leap", "slack", "in_force", "lost", "true", "own", "bad", "cost",
        "recent",
    )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """All that is remembered, as plain data."""
        known: dict[str, Any] = {name: getattr(self, f"_{name}") for name in self._SCALARS}
        for name in self._ARRAYS:
            known[name] = sparse(getattr(self, f"_{name}").ravel())
        return known

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        for name in self._SCALARS:
            setattr(self, f"_{name}", state[name])
        for name in self._ARRAYS:
            dense(state[name], getattr(self, f"_{name}").reshape(-1))


def _added(spent: Any) -> Any:
    """The factor for a period that has used up so much of its allowance."""
    return 1.0 + np.maximum(np.minimum(spent, 1.0) - _CALM, 0.0)
