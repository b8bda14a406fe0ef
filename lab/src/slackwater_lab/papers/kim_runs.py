"""Data and runs of Kim's experiments, and the choice of what the paper does not print.

It makes its own data, "based on user-specified parameters including an arrival rate of input
tuples, a standard deviation of disorder, the maximum value of disorder". Ours are 100 events a
second whose arrivals are late by delays of several shapes. For each shape `Choice` finds the M and
the step of the offset that do best by what the paper shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from slackwater.engine.replay import recorded
from slackwater.engine.window import WindowEngine
from slackwater.kernels.records import F64, I64
from slackwater.query.functions import count
from slackwater.query.stream import Stream
from slackwater.query.window import window
from slackwater.query.window_goals import DropRatio
from slackwater.query.windows import Tuples
from slackwater_lab.experiment import Cell, Column, Table

EVENTS = 200_000
_STEP_MS = 10
RATIOS = (0.001, 0.01, 0.05, 0.1, 0.2)
SHOWN = 0.01  # in the figure
_MEANS = (2, 5, 10, 20, 50, 100)  # M
_OFFSET_STEPS = (10, 50, 200, 1000)  # by how many the largest distance is divided

Rows = list[tuple[tuple[str, ...], list[Cell]]]


# ---- data


def normal(deviation: float, most: float) -> Callable[[int, np.random.Generator], F64]:
    """Delays that are the size of a normal number, up to `most`."""
    return lambda n, rng: np.minimum(np.abs(rng.normal(0, deviation, n)), most)


def _bursts(n: int, rng: np.random.Generator) -> F64:
    """Every tenth block of 500 events is ten times as late, and more."""
    bad = np.arange(n) // 500 % 10 == 0
    return np.where(bad, rng.exponential(1000, n), rng.exponential(30, n))


def _outages(n: int, rng: np.random.Generator) -> F64:
    """Now and then half of the events of some seconds come at once, when it is over."""
    late = np.zeros(n)
    at = int(rng.exponential(3000))
    while at < n:
        end = min(n, at + int(rng.exponential(100)))
        held = np.arange(at, end)[rng.random(end - at) < 0.5]
        late[held] = _STEP_MS * (end - held)
        at = end + int(rng.exponential(3000))
    return late


def _step(n: int, rng: np.random.Generator) -> F64:
    return rng.exponential(1.0, n) * np.where(np.arange(n) < n // 2, 50, 500)


SHAPES: dict[str, Callable[[int, np.random.Generator], F64]] = {
    "normal": normal(100, 1000),
    "uniform": lambda n, rng: rng.random(n) * 500,
    "exponential": lambda n, rng: rng.exponential(100, n),
    "Pareto": lambda n, rng: np.minimum(10 * rng.pareto(1.5, n), 20_000),
    "bursts": _bursts,
    "outages": _outages,
    "step": _step,
}
PROMISED = ("normal", "uniform", "exponential", "Pareto", "bursts")


def arrivals(
    delays: Callable[[int, np.random.Generator], F64], n: int, seed: int
) -> tuple[I64, I64]:
    """Times of `n` events in the order of their arrival, and when they arrive."""
    ts = _STEP_MS * np.arange(n)
    arrived = ts + np.ceil(delays(n, np.random.default_rng(seed))).astype(np.int64)
    order = np.argsort(arrived, kind="stable")
    return ts[order], arrived[order]


def times(delays: Callable[[int, np.random.Generator], F64], n: int, seed: int) -> I64:
    """Times of `n` events in the order of their arrival."""
    return arrivals(delays, n, seed)[0]


# ---- runs


@dataclass(frozen=True)
class Drops:
    """What became of the events, period by period."""

    events: I64
    dropped: I64
    waiting: I64  # events in the buffer
    buffered: float  # on average

    @property
    def ratio(self) -> float:
        """Dropped by all events."""
        return float(self.dropped[-1] / self.events[-1])

    def under(self, ratio: float, every: int) -> float:
        """At which share of the period ends no more than `ratio` was dropped so far."""
        counts = self.events >= max(10 * every, 20 / ratio)
        return float(np.mean(self.dropped[counts] <= ratio * self.events[counts]))


def drops(ts: I64, goal: DropRatio) -> Drops:
    """Run one goal."""
    stream = Stream("events", ts="ts")
    query = window(stream, window=Tuples(1, slide=2**40), select={"n": count()}, goal=goal)
    batch, _ = recorded(query, {"events": pa.table({"ts": ts})}, None)
    engine = WindowEngine(query, {"events": batch.tables[0].schema})
    ends = []
    for part in batch.slices(goal.every.count):
        engine.feed(part)
        stage = engine.reorder
        ends.append((stage.count, stage.dropped, stage.buffered_of(0)))
    events, dropped, waiting = np.array(ends).T
    return Drops(events, dropped, waiting, engine.reorder.average_buffered)


def max_delay(ts: I64, arrived: I64, every: int = 1000) -> Drops:
    """The method Kim compares with: the heartbeat is the arrival less the largest u - t so far."""
    heartbeat = np.maximum.accumulate(arrived - np.maximum.accumulate(arrived - ts))
    before = np.concatenate([[np.iinfo(np.int64).min], heartbeat[:-1]])
    is_dropped = ts < before
    kept = np.flatnonzero(~is_dropped)
    leaves = np.maximum(kept, np.searchsorted(heartbeat, ts[kept]))  # with that arrival
    change = np.zeros(len(ts) + 1, np.int64)
    np.add.at(change, kept, 1)
    np.add.at(change, leaves, -1)
    waiting = np.cumsum(change[:-1])
    ends = np.append(np.arange(every, len(ts), every), len(ts)) - 1
    dropped = np.cumsum(is_dropped)
    return Drops(ends + 1, dropped[ends], waiting[ends], float(waiting.mean()))


def means(runs: Sequence[Drops]) -> tuple[float, float, float]:
    """Dropped events, average buffer, buffer at the end: means over the runs."""
    last = [(run.dropped[-1], run.buffered, run.waiting[-1]) for run in runs]
    dropped, buffered, waiting = np.mean(last, axis=0).tolist()
    return dropped, buffered, waiting


def kims(ratio: float, m: int, steps: int = 50) -> DropRatio:
    """Kim's heartbeat."""
    return DropRatio(ratio, "mean", recent=Tuples(m), steps=steps)


def ratio_cells(runs: Sequence[Drops], ratio: float) -> list[Cell]:
    """Measured by target, share of the period ends at or under it, average buffer."""
    measured = float(np.mean([run.ratio for run in runs]))
    under = min(run.under(ratio, 1000) for run in runs)
    return [measured / ratio, under, float(np.mean([run.buffered for run in runs]))]


class Choice:
    """Kim's M and step: runs of all, and for each shape those that do best by Fig. 3 and 4."""

    def __init__(self, n: int, seeds: tuple[int, ...], quick: bool) -> None:
        self.n, self.seeds = n, seeds
        self.ratios = RATIOS[:2] if quick else RATIOS
        self.means = (5, 100) if quick else _MEANS
        self.steps = (10, 50) if quick else _OFFSET_STEPS
        self._known: dict[tuple[str, DropRatio], list[Drops]] = {}

    def runs(self, shape: str, goal: DropRatio) -> list[Drops]:
        """One run for each seed."""
        if (shape, goal) not in self._known:
            made = [drops(times(SHAPES[shape], self.n, seed), goal) for seed in self.seeds]
            self._known[shape, goal] = made
        return self._known[shape, goal]

    def baseline(self, shape: str) -> list[Drops]:
        """Max-delay."""
        return [max_delay(*arrivals(SHAPES[shape], self.n, seed)) for seed in self.seeds]

    def mean(self, shape: str) -> DropRatio:
        """Best effort: the smallest buffer that drops no more than max-delay (Fig. 3 b)."""
        most = np.mean([run.dropped[-1] for run in self.baseline(shape)])

        def judged(goal: DropRatio) -> tuple[bool, float]:
            dropped, buffered, _ = means(self.runs(shape, goal))
            return dropped > most, buffered

        return min((kims(0.0, m) for m in self.means), key=judged)

    def pair(self, shape: str) -> tuple[int, int]:
        """The smallest buffer that violates no ratio at the end (Fig. 4); else the least one."""

        def judged(pair: tuple[int, int]) -> tuple[float, float]:
            runs = {r: self.runs(shape, kims(r, *pair)) for r in self.ratios}
            worst = max(np.mean([run.ratio for run in group]) / r for r, group in runs.items())
            buffered = np.mean([run.buffered for group in runs.values() for run in group])
            return max(1.0, float(worst)), float(buffered)

        return min(((m, steps) for m in self.means for steps in self.steps), key=judged)

    def by_mean(self) -> Table:
        """Best effort by M."""
        columns = (Column("dropped", "events"), Column("average buffer", "events"))
        rows: Rows = [
            ((shape, str(m)), list(means(self.runs(shape, kims(0.0, m)))[:2]))
            for shape in PROMISED
            for m in self.means
        ]
        return Table("Kim's best effort by M", ("disorder", "M"), columns, rows)

    def by_step(self) -> Table:
        """A target of 1 % by M and step."""
        columns = (
            Column("measured / target"), Column("at or under", "share"), Column("buffer", "events"),
        )  # fmt: skip
        rows: Rows = []
        for shape in SHAPES:
            for m in self.means[1 :: len(self.means) // 2]:
                for steps in self.steps:
                    runs = self.runs(shape, kims(SHOWN, m, steps))
                    rows.append(((shape, str(m), f"1/{steps}"), ratio_cells(runs, SHOWN)))
        title = f"Kim's offset by M and step: a target of {100 * SHOWN:g} %"
        return Table(title, ("disorder", "M", "step"), columns, rows)
