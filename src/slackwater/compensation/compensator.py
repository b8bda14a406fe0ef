"""From the tallies of windows to what is told about them, early and in the end."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import numpy as np

from slackwater.compensation.factory import estimator_for
from slackwater.compensation.intervals import Intervals
from slackwater.compensation.observation import Estimator, Guess, Truth
from slackwater.compensation.tally import Group, Tally
from slackwater.compensation.tally_codec import Packing
from slackwater.compensation.values import Values
from slackwater.query.aggregate import AggregateQuery

_MOST_GROUPS = 50  # per window, whose errors are learnt from


class Told(NamedTuple):
    """An aggregate."""

    observed: float | None
    value: float | None
    low: float | None
    high: float | None


class Row(NamedTuple):
    """What is told about a window, or about a group in it."""

    start: int
    group: Group
    told: list[Told]  # [aggregate]
    completeness: float | None  # share of the events that have arrived
    exact: bool


class _Early(NamedTuple):
    """A window that was told before it was complete."""

    tally: Tally
    bounds: dict[str, list[tuple[float, float] | None]]  # by group as JSON: [aggregate]
    guess: Guess | None  # None: it is guessed anew when the truth is known


class Compensator:
    """Tells windows, and learns from those that are complete."""

    def __init__(self, query: AggregateQuery, values: Values, packing: Packing) -> None:
        self._query, self._values, self._packing = query, values, packing
        self._is_count = [how.function == "count" for how in query.select.values()]
        self._estimator = estimator_for(query, values)
        self._intervals = [Intervals(query.confidence) for _ in query.select]
        self._of_nothing = [Intervals(query.confidence) for _ in query.select]
        self._early: dict[int, _Early | None] = {}  # by start

    # ---- early

    def tell(self, start: int, tally: Tally) -> list[Row]:
        """A window is due: say what it will be."""
        if self._estimator is None:
            self._early[start] = None
            rows = []
            for group, values in zip(tally.groups, tally.values, strict=True):
                told = [Told(v, v, None, None) for v in self._values.told(values)]
                rows.append(Row(start, group, told, None, exact=False))
            return rows
        seen = tally.seen(self._query.length)
        guess = self._estimator.guess(seen)
        arrived, expected = seen.totals.sum(), guess.sizes.sum()
        completeness = float(arrived / expected) if expected > 0 else None
        rows, bounds = [], {}
        for g, group in enumerate(tally.groups):
            told = self._told(tally, g, guess)
            rows.append(Row(start, group, told, completeness, exact=False))
            bounds[_name(group)] = [
                None if one.low is None or one.high is None else (one.low, one.high) for one in told
            ]
        again = None if guess.weights is not None else guess
        self._early[start] = _Early(tally, bounds, again)
        return rows

    def _told(self, tally: Tally, g: int, guess: Guess) -> list[Told]:
        observed = self._values.told(tally.values[g])
        told = []
        for a, (value, error) in enumerate(self._estimates(tally, g, guess)):
            if value is None:
                told.append(Told(observed[a], None, None, None))
                continue
            low, high = self._pool(a, value).around(value, error)
            least = float(observed[a] or 0.0) if self._is_count[a] else -math.inf  # there are more
            low, best, high = (max(number, least) for number in (low, value, high))
            told.append(Told(observed[a], best, _finite(low), _finite(high)))
        return told

    def _pool(self, a: int, value: float) -> Intervals:
        return self._of_nothing[a] if value == 0.0 else self._intervals[a]

    def _estimates(self, tally: Tally, g: int, guess: Guess) -> list[tuple[float | None, float]]:
        """Each aggregate of a group, with its standard error."""
        values, spreads = guess.values, guess.spread
        if len(tally.groups) > 1:  # a smaller part is less certain
            values = guess.apply(tally.tensor(g))
            part, whole = np.abs(values), np.abs(guess.values)
            times = np.where(part > 0.0, whole / np.where(part > 0.0, part, 1.0), 1.0)
            spreads = spreads * np.sqrt(np.maximum(times, 1.0))
        estimates: list[tuple[float | None, float]] = []
        for value, main in zip(self._values.told(values), self._values.main, strict=True):
            spread = float(spreads[main])
            error = 1.0 if value == 0.0 and math.isfinite(spread) else spread
            scale = 1.0 if not value or not math.isfinite(spread) else abs(value)
            estimates.append((value, error * scale))
        return estimates

    # ---- in the end

    def forget(self, start: int) -> None:
        """Nothing more is to be said about a window."""
        self._early.pop(start, None)

    def close(self, start: int, tally: Tally) -> list[Row]:
        """A window is complete: learn from it, and say what it is if that is not known yet."""
        told_before = start in self._early
        early = self._early.pop(start, None)
        if early is not None and self._estimator is not None:
            self._learn(self._estimator, early, tally)
        if told_before and self._query.late != "emit":
            return []
        rows = []
        for group, values in zip(tally.groups, tally.values, strict=True):
            told = [Told(v, v, v, v) for v in self._values.told(values)]
            rows.append(Row(start, group, told, 1.0, exact=True))
        return rows

    def _learn(self, estimator: Estimator, early: _Early, tally: Tally) -> None:
        seen = early.tally.seen(self._query.length)
        truth = Truth(tally.counts, tally.values.sum(axis=0))
        guess = early.guess or estimator.guess(seen)  # as it would be told now
        place = {group: i for i, group in enumerate(tally.groups)}
        for g, group in enumerate(early.tally.groups[:_MOST_GROUPS]):
            true = self._values.told(tally.values[place[group]])
            bounds = early.bounds[_name(group)]
            for a, (value, error) in enumerate(self._estimates(early.tally, g, guess)):
                exact, told = true[a], bounds[a]
                if value is None or exact is None:
                    continue
                inside = told is None or told[0] <= exact <= told[1]
                self._pool(a, value).learn(value, error, exact, inside)
        estimator.learn(seen, guess, truth)

    # ---- as data

    def state(self) -> dict[str, Any]:
        """All it knows, as plain data."""
        return {
            "kind": [self._query.compensate, self._query.confidence],
            "estimator": None if self._estimator is None else self._estimator.state(),
            "intervals": [own.state() for own in self._intervals],
            "of_nothing": [own.state() for own in self._of_nothing],
            "early": {
                str(start): None if early is None else self._saved(early)
                for start, early in self._early.items()
            },
        }

    def _saved(self, early: _Early) -> list[Any]:
        guess = early.guess
        said = None
        if guess is not None:
            said = [a.tolist() for a in (guess.scale, guess.values, guess.spread, guess.sizes)]
        return [self._packing.pack(early.tally), early.bounds, said]

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`; somebody else begins to learn anew."""
        if state["kind"] == [self._query.compensate, self._query.confidence]:
            if self._estimator is not None:
                self._estimator.resume(state["estimator"])
            for mine, known in ((self._intervals, "intervals"), (self._of_nothing, "of_nothing")):
                for own, said in zip(mine, state[known], strict=True):
                    own.resume(said)
        self._early = {int(start): self._revived(said) for start, said in state["early"].items()}

    def _revived(self, said: list[Any] | None) -> _Early | None:
        if said is None:
            return None
        packed, bounds, guessed = said
        guess = None if guessed is None else Guess(None, *(np.array(part) for part in guessed))
        pairs = {
            group: [None if ends is None else (ends[0], ends[1]) for ends in own]
            for group, own in bounds.items()
        }
        return _Early(self._packing.unpack(packed), pairs, guess)


def _name(group: Group) -> str:
    return json.dumps([str(value) for value in group]) if group else ""


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
