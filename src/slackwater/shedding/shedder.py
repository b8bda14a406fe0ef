"""Load shedding of one join: looks at the load each Δ and decides what is left out.

What it decides and what it learns lies in `shed`, which the join kernel works with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slackwater.kernels import drop_rates
from slackwater.kernels import shed as places
from slackwater.kernels.records import BEFORE, F64, I64, HarvestModel
from slackwater.query.join import JoinQuery
from slackwater.query.shedding import Harvest, RandomDrop, Shedding
from slackwater.query.units import to_units
from slackwater.shedding import harvest_search as setting
from slackwater.shedding.eviction import ages_kept
from slackwater.shedding.kernel_state import LASTING, Ways, new_shed
from slackwater.shedding.learning import Learning
from slackwater.shedding.throttle import Load, Throttle

_BISECTIONS = 8
_LEARN_BIAS = 0.2  # weight of the last interval
_MOST_BIAS = 5.0
_MAY_WAIT = 0.25  # so much of the buffer is used in quiet times, so that the server never runs dry
_MOST_MAY_WAIT = 0.25  # of Δ
_BUSY = 0.1  # of the time: below that nothing has to be decided

_ESTIMATES = [places.WOULD_MAKE, places.WOULD_MAKE_VARIANCE, places.LOST_VARIANCE]


class Taken(NamedTuple):
    """What became of some events that came to the join."""

    dropped: I64  # [stream]: those that were not let in
    would_make: float  # results of the whole join while it was shedding, estimated
    would_make_variance: float
    lost_variance: float  # of what was lost with late events


class Shedder:
    """Decides what is left out.

    Parameters
    ----------
    query
        What was asked.
    asked
        How to shed.
    ways
        How the join finds partners.
    """

    def __init__(self, query: JoinQuery, asked: Shedding, ways: Ways) -> None:
        self.asked = asked
        self.orders = ways.orders
        self._ways = ways
        self.second = to_units("1 second", query.unit)
        self._lengths = [length for length in query.lengths if length is not None]
        self.every = to_units(asked.every, query.unit, "every")
        self.shed = new_shed(query, asked, ways)
        self._buffer = float(self.shed.number[places.BUFFER])
        may_wait = min(_MAY_WAIT * self._buffer / self.every, _MOST_MAY_WAIT)
        self.throttle = Throttle("capacity")
        if isinstance(asked, Harvest):
            self.throttle = Throttle(asked.throttle, asked.boost, may_wait)
        self._given = asked.fraction if isinstance(asked, RandomDrop) else None
        if self._given is not None:
            self.throttle.z = self._given
        self._as_printed = isinstance(asked, Harvest) and asked.scores == "per-stream"
        self.learning = Learning(self.shed, self._lengths, self._as_printed)
        m = len(self._lengths)
        self._since = BEFORE  # the beginning of this interval
        self._backlog = 0.0  # then
        self._pushed = np.zeros(m, np.int64)  # in this interval
        self._dropped = np.zeros(m, np.int64)  # for want of room, before it
        self._thinned = np.zeros(m, np.int64)  # at random, before it
        self._history: list[list[list[int]]] = [[] for _ in range(m)]  # [end, pushed, let in]
        self._told = np.zeros(m, np.int64)  # events that were dropped, as far as the engine knows
        self._compared = 0  # before it
        self._counts = np.zeros((m, m - 1), np.int64)  # basic windows that are looked at
        self._bias = 1.0  # by how much cost is underestimated
        self.full_cost = 0.0  # of the whole join, per unit of time
        self.kept = 1.0  # share of the results that is expected to be made
        self.cpu_needed: float | None = None  # so many times as much would make what is wanted
        self._tell()

    # ---- what the engine tells

    @property
    def is_told(self) -> bool:
        """Whether the load is measured outside, with a clock."""
        return self.asked.budget is None

    @property
    def is_shedding(self) -> bool:
        """Whether results are left out by choice."""
        return bool(self.shed.ctl[places.SHEDDING])

    def took(self, streams: I64) -> Taken:
        """These events came to the join; return what became of them."""
        self._pushed += np.bincount(streams, minlength=len(self._pushed))
        dropped = self.shed.dropped + self.shed.thinned
        estimates = self.shed.number[_ESTIMATES]
        taken = Taken(dropped - self._told, *(float(value) for value in estimates))
        self._told = dropped
        self.shed.number[_ESTIMATES] = 0.0
        return taken

    def measured(self, busy: float, begin: int, now: int) -> bool:
        """The engine was busy for so many seconds while time went on from `begin` to `now`.

        Returns whether it is time to adapt.
        """
        usage = self.asked.usage
        work = busy * self.second / usage
        number = self.shed.number
        number[places.WORK] += work
        number[places.FREE_AT] = max(number[places.FREE_AT], float(begin)) + work
        if self._since == BEFORE:
            self._since = begin
        self._tell(now)
        return now - self._since >= self.every

    def open(self) -> None:
        """Open the throttle wholly, as in the beginning."""
        self.throttle.z = 1.0
        self.shed.number[[places.FIRST_FRACTION, places.LATER_FRACTION]] = 1.0
        self.shed.ctl[places.SHEDDING] = 0

    def end(self) -> None:
        """No more is to come: whoever waits can wait."""
        self.shed.number[places.BUFFER] = math.inf

    def go_on(self) -> None:
        """Something may come after all."""
        self.shed.number[places.BUFFER] = self._buffer

    # ---- each Δ

    def adapt(self, now: int, wanted: float | None = None) -> None:
        """An interval is over: set everything for the next.

        `wanted` is the share of the whole join's results that somebody hopes for.
        """
        if self._since == BEFORE:
            self._since = now - self.every
        span = max(1, now - self._since)
        self._remember(now)
        if isinstance(self.asked, RandomDrop):
            window = self._window(let_in=True)
            self.learning.close(0.5 ** (4 * span / max(*self._lengths, 1)), window)
            if self._has_to_decide(now, span):
                self._set(now, span, wanted)
        self._since = now
        self._backlog = self.backlog(now)
        self.shed.number[places.WORK] = 0.0
        self._pushed[:] = 0
        self._dropped = self.shed.dropped.copy()
        self._thinned = self.shed.thinned.copy()
        self._compared = int(self.shed.ctl[places.COMPARED])
        self._tell(now)

    def _has_to_decide(self, now: int, span: int) -> bool:
        """Deciding takes milliseconds: not where intervals are replayed in less, with ease."""
        busy = float(self.shed.number[places.WORK]) + self.backlog(now)
        return self._given is not None or self.throttle.z < 1.0 or busy > _BUSY * span

    def backlog(self, now: int) -> float:
        """How long the work that waits will take."""
        return max(0.0, float(self.shed.number[places.FREE_AT]) - now)

    def _load(self, now: int, span: int) -> Load:
        pushed = int((self._pushed - (self.shed.thinned - self._thinned)).sum())
        let_in = pushed - int((self.shed.dropped - self._dropped).sum())
        work, backlog = float(self.shed.number[places.WORK]), self.backlog(now)
        if work <= 0.0 or let_in == 0:
            nothing_to_do = math.inf if backlog <= 0.0 else None
            return Load(pushed, float(let_in), 0.0, nothing_to_do, backlog / span)
        each = work / let_in
        consumed = let_in - (backlog - self._backlog) / each
        compared = int(self.shed.ctl[places.COMPARED]) - self._compared
        possible = None
        if compared > 0 and self.full_cost > 0.0:
            possible = compared / work / (self._bias * self.full_cost)
        return Load(pushed, consumed, backlog / each, possible, backlog / span)

    def _correct(self, span: int, known: HarvestModel) -> None:
        """Learn by how much the cost of settings is mistaken: what was done by what was expected.

        Expected with what is known now, so that a change of rates is no mistake.
        """
        compared = int(self.shed.ctl[places.COMPARED]) - self._compared
        whole = setting.cost(setting.full(known), known)
        expected = whole
        if self.is_shedding:
            sample = self._sample
            harvested = setting.cost(self._counts, known, self.shed.share)
            expected = (1.0 - sample) * harvested + sample * self.throttle.z * whole
        if compared > 0 and expected > 0.0:
            seen = min(max(compared / span / expected, 1 / _MOST_BIAS), _MOST_BIAS)
            self._bias *= (seen / self._bias) ** _LEARN_BIAS

    def _remember(self, now: int) -> None:
        left_out = self.shed.dropped - self._dropped + self.shed.thinned - self._thinned
        let_in = self._pushed - left_out
        for s, past in enumerate(self._history):
            past.append([now, int(self._pushed[s]), int(let_in[s])])
            while len(past) > 1 and past[0][0] <= now - self._lengths[s]:
                past.pop(0)

    def _window(self, let_in: bool) -> F64:
        """How many events of each stream there are in its window."""
        column = 2 if let_in else 1
        return np.array([float(sum(entry[column] for entry in past)) for past in self._history])

    # ---- what is left out

    def _set(self, now: int, span: int, wanted: float | None) -> None:
        drops = not isinstance(self.asked, Harvest)
        window, rate = self._window(let_in=not drops), self._pushed / span
        known = self.model(rate, window)
        if not drops:
            self._correct(span, known)
        if self._ways.any_order:
            before = self.orders
            self.orders = self.learning.orders(before, self._ways.tied, window)
            if self.orders != before:
                self._set_lookups()
                known = self.model(rate, window)
        self.full_cost = setting.cost(setting.full(known), known)
        if self._given is None:
            # RandomDrop is static: dropped events are missing from the windows for as long as
            # these are, and a throttle that answers to what waits would swing
            load = self._load(now, span)
            self.throttle.adapt(load._replace(waiting=0.0) if drops else load)
        z = self.throttle.z
        self.kept = 1.0
        self.cpu_needed = None if wanted is None else 1.0
        self._set_shredding(z, known)
        if drops:
            self._set_shares(z, rate, known)
            return
        self.shed.ctl[places.SHEDDING] = z < 1.0
        if z < 1.0:
            # a throttle that is found knows of the bias already
            asked = z if self._given is None else min(1.0, z / self._bias)
            self._counts, self.shed.share[:], harvested = self._harvest(asked, known)
            sample, (first, later) = self._sample, self._shredded
            self.kept = (1 - sample) * harvested + sample * first * later ** (len(rate) - 2)
            for i, order in enumerate(self.orders):
                for j, s in enumerate(order):
                    best = setting.ranking(self.learning.scores(i, s))
                    self.look_at(i, s, best[: self._counts[i, j]].tolist())
            if wanted is not None and self.kept < wanted:
                self.cpu_needed = self._fraction_for(wanted, known) / z

    @property
    def _sample(self) -> float:
        return float(self.shed.number[places.SAMPLE])

    @property
    def _shredded(self) -> tuple[float, float]:
        """Share of the first and of later windows that events in the sample look at."""
        number = self.shed.number
        return float(number[places.FIRST_FRACTION]), float(number[places.LATER_FRACTION])

    def _set_shredding(self, z: float, known: HarvestModel) -> None:
        """An event in the sample does z of the work: of the first step, or of all alike."""
        first, later = z, 1.0
        if not self._as_printed and z < 1.0:
            first = later = setting.shred_fraction(known, z * self.full_cost)
        self.shed.number[[places.FIRST_FRACTION, places.LATER_FRACTION]] = first, later

    def _harvest(self, z: float, known: HarvestModel) -> tuple[I64, F64, float]:
        """The setting for z, the share of events it is for, and of the results it makes."""
        assert isinstance(self.asked, Harvest)
        budget, shares = z * self.full_cost, np.ones(len(known.rate))
        counts = setting.choose(known, budget, self.asked.search, self.asked.metric)
        if self.asked.search == "better":
            counts, shares = setting.with_shares(counts, known, budget)
        made = setting.output(counts, known, shares)
        return counts, shares, _ratio(made, setting.output(setting.full(known), known))

    def _fraction_for(self, wanted: float, known: HarvestModel) -> float:
        """The smallest z that makes so large a share of the results."""
        low, high = self.throttle.z, 1.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if self._harvest(middle, known)[2] >= wanted:
                high = middle
            else:
                low = middle
        return high

    def model(self, rate: F64, window: F64) -> HarvestModel:
        """What is known of cost and output, in the present orders."""
        learning, streams = self.learning, range(len(self.orders))
        which = [places.FIRST] + [places.LATER] * (len(self.orders) - 2)
        steps = [list(zip(which, self.orders[i], strict=True)) for i in streams]
        candidates = [[learning.candidates(w, i, s, window) for w, s in steps[i]] for i in streams]
        return setting.model(
            rate,
            candidates,
            [[learning.matches(w, i, s, window) for w, s in steps[i]] for i in streams],
            [[learning.scores(i, s) for s in self.orders[i]] for i in streams],
            [[learning.pass_scores(i, s, w) for w, s in steps[i]] for i in streams],
            **self._costs(candidates, window),
        )

    def _costs(self, candidates: list[list[float]], window: F64) -> dict[str, list[list[float]]]:
        """What a step costs, by how the join finds candidates.

        A nested loop looks at all events of a basic window. A hash finds those with the right key,
        a bisection in each sorted basic window those that are near enough: both are where partners
        are. Counting them costs the same for all of a window as for part of it.
        """
        ways, n = self._ways, self.shed.n
        bisect = 2.0 * np.log2(window / n + 1.0)
        costs: dict[str, list[list[float]]] = {"entry": [], "each": [], "near": []}
        for i, order in enumerate(self.orders):
            rows: dict[str, list[float]] = {name: [] for name in costs}
            bound = [i]
            for c, s in zip(candidates[i], order, strict=True):
                counted, hashed = ways.counted[i, s], ways.lookup[i, s]
                by_value = ways.linked[bound, s].any()
                bound.append(s)
                rows["entry"].append(float(hashed + counted))
                rows["each"].append(
                    0.0 if counted or hashed else bisect[s] if by_value else c / n[s]
                )
                rows["near"].append(c if (hashed or by_value) and not counted else 0.0)
            for name, row in rows.items():
                costs[name].append(row)
        return costs

    def _set_lookups(self) -> None:
        for i, order in enumerate(self.orders):
            self.shed.lookup[i] = self._ways.lookup[i, order]

    def look_at(self, start: int, stream: int, ages: Sequence[int]) -> None:
        """Let events of `start` look only at these basic windows of `stream`, by age."""
        shed, step = self.shed, self.orders[start].index(stream)
        stretches = _stretches(sorted(ages))
        shed.n_segments[start, step] = len(stretches)
        for k, (first, last) in enumerate(stretches):
            is_last = last == shed.n[stream] - 1
            end = self._lengths[stream] if is_last else (last + 1) * shed.basic[stream] - 1
            shed.segment[start, step, 2 * k : 2 * k + 2] = first * shed.basic[stream], end

    def looked_at(self, start: int, stream: int) -> F64:
        """Which share of the events of `start` looks at each basic window of `stream`, by age."""
        shed, step = self.shed, self.orders[start].index(stream)
        seen = np.zeros(int(shed.n[stream]))
        if not self.is_shedding:
            return seen + 1.0
        for k in range(shed.n_segments[start, step]):
            first, last = shed.segment[start, step, 2 * k : 2 * k + 2] // shed.basic[stream]
            seen[first : last + 1] = shed.share[start]
        return seen

    def _set_shares(self, z: float, rate: F64, known: HarvestModel) -> None:
        m = len(rate)
        keep, log_keep, gradient = np.ones(m), np.zeros(m), np.zeros(m)
        if z < 1.0:
            drop_rates.best_shares(
                z * self.full_cost, rate, np.array(self.orders), known.each * known.n + known.near,
                known.matches, keep, log_keep, gradient,
            )  # fmt: skip
        self.shed.keep[:] = keep
        self.kept = float(keep.prod())

    @property
    def memory(self) -> int | None:
        """Most bytes of events in the windows."""
        return self.asked.memory_bytes if isinstance(self.asked, Harvest) else None

    def ages_kept(self, size: list[F64]) -> list[int]:
        """How many basic windows of each stream stay, given their bytes by age.

        What came in the last Δ will come in the next one too, and has to fit.
        """
        assert self.memory is not None
        streams = range(len(size))
        worth = [self.shed.joined[:, s].sum(axis=0) * self._is_used(s) for s in streams]
        if not any(w.any() for w in worth):
            # Nothing was found yet: partners may be older than what all windows can hold together.
            # One stream gives way to the others, and each in its turn.
            first = self._since // max(*self._lengths, 1)
            worth = [np.full(len(w), float((s + first) % len(size))) for s, w in enumerate(worth)]
        coming = [
            sizes[: -(-self.every // int(self.shed.basic[s]))] for s, sizes in enumerate(size)
        ]
        spare = min(sum(float(sizes.sum()) for sizes in coming), self.memory / 2)
        return ages_kept(size, worth, self.memory - spare)

    def _is_used(self, stream: int) -> NDArray[np.bool_]:
        """Which basic windows of `stream` somebody looks at."""
        used = np.zeros(self.shed.joined.shape[2], bool)
        for i, order in enumerate(self.orders):
            for j in (j for j, s in enumerate(order) if s == stream):
                for k in range(self.shed.n_segments[i, j]):
                    first, last = self.shed.segment[i, j, 2 * k : 2 * k + 2]
                    basic = self.shed.basic[stream]
                    used[first // basic : last // basic + 1] = True
        return used if self.is_shedding else np.ones_like(used)

    def _tell(self, now: int | None = None) -> None:
        """Let the join take its short cut when nothing is shed or charged."""
        full = now is not None and self.backlog(now) > self.shed.number[places.BUFFER]
        sheds = self.throttle.z < 1.0
        free = self.is_told and self.memory is None and not full and not sheds
        self.shed.ctl[places.IDLE] = self._ways.short_cut and free

    # ---- as data

    def state(self) -> dict[str, Any]:
        """All it would need to go on elsewhere."""
        shed = self.shed
        return {
            "kind": type(self.asked).__name__,
            "basic": shed.basic.tolist(),
            "z": self.throttle.z,
            "orders": self.orders,
            **{name: getattr(shed, name).tolist() for name in LASTING},
            "learnt": self.learning.state(),
            "interval": [self._since, self._backlog, self._pushed.tolist(), self._compared],
            "before": [self._dropped.tolist(), self._thinned.tolist()],
            "history": self._history,
            "counts": self._counts.tolist(),
            "bias": self._bias,
            "expected": [self.full_cost, self.kept, self.cpu_needed],
        }

    def fits(self, state: dict[str, Any] | None) -> bool:
        """Whether this is the state of the same kind of shedding with the same basic windows."""
        return (
            state is not None
            and state["kind"] == type(self.asked).__name__
            and state["basic"] == self.shed.basic.tolist()
            and len(state["learnt"]["lags"]) == self.shed.lags.size
        )

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        shed = self.shed
        self.throttle.z = state["z"] if self._given is None else self._given
        self.orders = [list(order) for order in state["orders"]]
        self._set_lookups()
        own = [places.SAMPLE, places.BUFFER, places.COMPARISON]  # as it is asked for now
        asked = shed.number[own].copy()
        for name in LASTING:
            getattr(shed, name)[...] = state[name]
        shed.number[own] = asked
        self.learning.resume(state["learnt"])
        self._since, self._backlog, pushed, self._compared = state["interval"]
        self._pushed[:] = pushed
        self._dropped, self._thinned = (np.array(counts) for counts in state["before"])
        self._told = shed.dropped + shed.thinned
        self._history = state["history"]
        self._counts = np.array(state["counts"])
        self._bias = state["bias"]
        self.full_cost, self.kept, self.cpu_needed = state["expected"]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else 1.0


def _stretches(chosen: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbours in one: [0, 1, 4] is 0 to 1 and 4 to 4."""
    found: list[tuple[int, int]] = []
    for k in chosen:
        if found and found[-1][1] == k - 1:
            found[-1] = (found[-1][0], k)
        else:
            found.append((k, k))
    return found
