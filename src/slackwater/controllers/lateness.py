"""The default controller of `Recall`: follow the rules that would have held lately, cheaply.

The lateness of results says for every K what it would have lost, whether it was used or not. So
eighty simple rules run beside the query, each with the K it would choose and the losses it would
have had. A rule has a *memory*, from a fortieth of a period to 30 periods, and a *level*: its slack
is the one that would have lost `level` times the allowed share of that time's results. Half of the
rules *react*: they add slack while lateness grows fast, and when the running period has used up
much of its allowance. That pays where disorder moves; where losses come in clusters that say
nothing about the next ones, the rules that hold are better, and the back-test shows it.

Every interval the rule is followed that has the smallest average slack, where a share of bad
periods beyond what is allowed counts as extra slack; rules that are nearly as good count too. Most
of these are a little more careful than the best, so K has a reserve where that is cheap, and it
does not jump. The past may know nothing like the present: so K is never so small that results as
late as the last ones would use up what is left of the allowance within a tenth of a period; but one
burst does not carry it away, it grows by half in an interval. Where bursts outgrow all rules again
and again, K has a margin (`controllers.margin`). Until half a period is over, K is the largest
lateness or delay seen.
docs/goals.md shows it at work; decisions 21 and 26 have what else was tried.
"""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np

from slackwater.controllers.controller import Interval, RecallSeeker
from slackwater.controllers.margin import Margin
from slackwater.kernels import back_test as kernels
from slackwater.kernels.back_test import REACTIONS, Rules
from slackwater.kernels.histogram import BUCKETS, upper_edges
from slackwater.kernels.records import BEFORE
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery
from slackwater.stats.buckets import dense, sparse
from slackwater.stats.lateness import LatenessOf
from slackwater.stats.statistics import Statistics

# Chosen on the data that decisions 23 and 26 name. The first four matter, the others hardly.
_PRICE = 30.0  # 1 % more bad periods than allowed are as bad as so many percent more slack
_FAILING = 1.5  # rules may fail so many times as often as K, which is a mean of many
_FIRST_RESERVE = 0.5  # at the start, halved in each period: little has been seen yet
_GUARD = 0.1  # periods for which the lateness of the last intervals must be bearable
_GUARD_LEAPS = 2.0  # the guard is at most so many times what the rules want,
_GUARD_GROWS = 1.5  # or so many times what K was an interval before
_FARTHEST = 1.5  # times the largest lateness in memory; a margin goes no further
_SPREAD = 0.06  # a rule with so much more slack than the best one counts 1/e
_LEVELS = (1.4, 1.1, 0.85, 0.65, 0.5, 0.35, 0.2, 0.1, 0.05, 0.01)  # times the allowed loss
_MEMORIES = 4  # in equal ratios from ...
_SHORTEST = 1 / 40, 3  # periods, and at least intervals, to ...
_LONGEST = 30.0  # periods
_RULES_OVER = 20.0  # periods after which what a rule lost counts half
_CREDIT = 1.5  # good periods that every rule has to its credit at the start
_SHOWN = 0.01  # a smaller reserve is not mentioned
_START = 0.5  # periods until the rules are trusted
_BLOCKS = 20  # into which a period is cut
_ON_TIME_OVER = 20  # bins over which the rate of results that are not late is learnt

_EDGES = upper_edges().astype(np.float64)


class LatenessController(RecallSeeker):
    """The smallest K with which the recall over every period is at least Γ, as far as measured."""

    def __init__(self, query: JoinQuery, goal: Recall) -> None:
        super().__init__(query, goal)
        self.start = self._floor = goal.floor(query.unit)
        self._unit = query.unit
        self._loss, self._failing = 1.0 - goal.target, _FAILING * (1.0 - goal.confidence)
        self._period = self.over // self.every  # in intervals
        share, least = _SHORTEST
        shortest = max(share * self._period, least)
        self._memory = np.geomspace(
            shortest, max(_LONGEST * self._period, 10 * shortest), _MEMORIES
        )  # in intervals
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
        self._followed = -1  # the best rule; -1: none yet
        self._is_guarded = False  # K is larger than the best rules want
        self._has_margin = False  # the rules have not been enough
        self._weight = 0.0  # how much of `bad` and `cost` of the rules is known
        self._true = np.zeros(self._n_blocks)  # results of the last period, youngest block first
        self._own = np.zeros(self._n_blocks)  # of them, lost
        self._margin = Margin(self._n_blocks, self._fade, self._period)
        self._before = 0.0  # K of the interval before, without its margin
        slacks = _MEMORIES * len(_LEVELS)
        n = REACTIONS * slacks
        self._rules = Rules(
            decay=np.exp(-2.0 / self._memory),  # as old on average as a window of that length
            level=np.array(_LEVELS),
            recent=np.zeros((_MEMORIES, BUCKETS)),
            totals=np.zeros(_MEMORIES),
            plain=np.zeros(slacks),
            leap=np.ones(slacks),
            slack=np.zeros(n),
            in_force=np.zeros(n),
            lost=np.zeros((self._n_blocks, n)),
            bad=np.zeros(n),
            cost=np.zeros(n),
        )
        # derived at each step
        self._beyond = np.zeros((2, BUCKETS + 1))
        self._score = np.full(n, np.inf)

    def statistics(self, query: JoinQuery) -> Statistics:
        """The lateness of results, and the results of a period."""
        return Statistics(query, self.every, None, self.over, lateness=True)

    def next_slack(self, interval: Interval) -> int:
        """The K of the next interval."""
        known = interval.lateness
        assert known is not None
        self._turn_blocks(interval.end // self.every)
        if known.bins:
            # known only when the join's clock has passed: a rate stands in for the last ones
            weight = 1.0 - exp(-known.bins / _ON_TIME_OVER) if self._on_time else 1.0
            self._on_time += weight * (known.on_time / known.bins - self._on_time)
        late = known.counts.nonzero()[0]
        top = int(late[-1]) if len(late) else 0
        total = float(known.counts.sum()) + self._on_time
        self._true[0] += total
        self._own[0] += known.lost
        self._steps += 1
        if total > 0:
            self._back_test(known, top, total, interval.common_clock)
        self._clock = interval.common_clock
        if self._steps <= _START * self._period:
            self._largest = max(self._largest, int(_EDGES[top]), interval.most_behind)
            self._margin.follow(self._largest)
            return max(self._largest, self._floor)
        if self._weight == 0.0:
            return interval.slack
        return max(self._follow(), self._floor)

    def _turn_blocks(self, now: int) -> None:
        """Move on to the block of the interval `now`; what is older than a period is forgotten."""
        block = now * self._n_blocks // self._period
        passed = min(block - self._block, self._n_blocks) if self._steps else 0
        self._block = block
        if passed > 0:
            for row in (self._rules.lost, self._true, self._own):
                row[passed:] = row[: self._n_blocks - passed].copy()
                row[:passed] = 0.0
            self._margin.turn_blocks(passed)

    def _back_test(self, known: LatenessOf, top: int, total: float, clock: int) -> None:
        """Let all rules learn the last interval, be judged by it, and choose again."""
        late = known.counts[: top + 1].astype(np.float64)
        self._used = max(self._used, top + 1)
        self._weight += self._fade * (1.0 - self._weight)
        settled = self._steps > self._memory[0]
        kernels.learn(late, top, total, self._loss, settled, _EDGES, self._used, self._rules)
        advance = float(clock - self._clock) if self._clock > BEFORE else 0.0
        kernels.judge(
            late, top, advance, *self._allowance(), self._fade, self.largest,
            self._beyond, self._used, _EDGES, self._rules,
        )  # fmt: skip
        of_interval = self._beyond[0, : top + 2]
        self._margin.judge(of_interval, _EDGES, advance, self._allowance()[0])

    def _follow(self) -> int:
        """K: that of the best rules, or what the last results ask for, with a margin."""
        slack, guard = kernels.follow(
            float(self._own.sum()), *self._allowance(), self._weight, self._credit,
            self._failing, _PRICE, _SPREAD, self._reserve, self.largest, self._beyond, self._used,
            _EDGES, self._score, self._rules,
        )  # fmt: skip
        self._followed = int(np.argmin(self._score))
        guard = min(guard, max(_GUARD_LEAPS * (slack + 1.0), _GUARD_GROWS * (self._before + 1.0)))
        self._is_guarded = bool(guard > slack)
        self._before = wanted = float(max(slack, guard))
        self._margin.follow(wanted)
        more = min(wanted * self._margin.factor(self._weight), _FARTHEST * self.largest)
        self._has_margin = bool(more > wanted)
        return self._rounded_up(max(wanted, more))

    def _rounded_up(self, slack: float) -> int:
        """To the granularity that was asked for; 0 only where nothing was ever late."""
        steps = max(-(-int(slack) // self._granularity), int(self.largest > 0))
        return steps * self._granularity

    def _allowance(self) -> tuple[float, float]:
        """Results that the running period may lose; that come while nothing can be done."""
        true = float(self._true.sum())
        return self._loss * true, _GUARD * true * self._period / min(self._steps, self._period)

    @property
    def _reserve(self) -> float:
        return float(_FIRST_RESERVE * 0.5 ** (self._steps / self._period))

    # ---- what a user sees

    @property
    def _spent(self) -> float:
        """How much of its allowance the running period has used up."""
        return float(self._own.sum()) / max(self._allowance()[0], 1e-9)

    def recall_at(self, slacks: list[int]) -> list[float]:
        """The measured recall of each of these K, over about the last period."""
        j = int(np.argmin(np.abs(self._memory - self._period)))
        total = self._rules.totals[j]
        if total == 0.0:
            return []
        beyond = np.cumsum(self._rules.recent[j, ::-1])[::-1]
        places = np.searchsorted(_EDGES, slacks, side="right")
        lost = np.append(beyond, 0.0)[places]
        return [float(share) for share in 1.0 - lost / total]

    @property
    def largest(self) -> int:
        """The largest lateness in the longest memory."""
        some = self._rules.recent[-1, : self._used].nonzero()[0]
        return int(_EDGES[some[-1]]) if len(some) else 0

    def reasons(self) -> list[str]:
        """Why K is what it is, in words."""
        if self._followed < 0:
            return ["the largest lateness seen so far: half a period is not over yet"]
        slack, reacts = self._followed // REACTIONS, self._followed % REACTIONS == 0
        memory, level = divmod(slack, len(_LEVELS))
        share = f"{self._loss * _LEVELS[level]:.2%}"
        periods, late = f"{self._memory[memory] / self._period:.2g}", self._rules.plain[slack]
        words = [
            f"{share} of the results of the last {periods} periods were later than "
            f"{late:.0f} {self._unit}"
        ]
        if reacts and self._rules.leap[slack] > 1.0:
            words.append("lateness grows fast")
        if reacts and self._spent > kernels.CALM:
            words.append(f"the running period has used up {self._spent:.0%} of its allowed loss")
        if (reserve := self._reserve) >= _SHOWN:
            words.append(f"{reserve:.0%} in reserve: little has been seen yet")
        if self._is_guarded:
            words.append("more like the last results would use up the rest of the allowed loss")
        else:
            words.append("the mean of this rule and those that are nearly as good")
        if self._has_margin:
            words.append("more than that: in one period of ten or more it was not enough")
        return words

    # ---- for a snapshot

    _SCALARS = (
        "steps", "block", "clock", "largest", "on_time", "used", "followed", "is_guarded",
        "has_margin", "before", "weight",
    )  # fmt: skip
    _LEARNT = ("recent", "totals", "plain", "leap", "slack", "in_force", "lost", "bad", "cost")

    def state(self) -> dict[str, Any]:
        """All that is remembered, as plain data."""
        known: dict[str, Any] = {name: getattr(self, f"_{name}") for name in self._SCALARS}
        known |= {"true": self._true.tolist(), "own": self._own.tolist()}
        known["margin"] = self._margin.state()
        for name in self._LEARNT:
            known[name] = sparse(getattr(self._rules, name).ravel())
        return known

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        for name in self._SCALARS:
            setattr(self, f"_{name}", state[name])
        self._true[:], self._own[:] = state["true"], state["own"]
        self._margin.resume(state["margin"])
        for name in self._LEARNT:
            dense(state[name], getattr(self._rules, name).reshape(-1))
