"""Eager and lazy joins (PECJ 6.5): what is done at the deadline, and what before it.

A lazy join (PRJ) begins to count at the deadline. An eager one (SHJ) counts with every event, and
at the deadline all is counted. Both have counted the same events, so both have the same error after
compensation: they differ in time only. Our engine is lazy. What an eager one would save at
the deadline is the counting, which is timed apart here.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

from slackwater_lab.experiment import Cell, Column, Table
from slackwater_lab.papers.pecj.data import MS, Dataset, Published, counted
from slackwater_lab.papers.pecj.runs import OURS, Disorder, EstimatorRun, Outcome

_THEIRS = (("lazy", "PRJ", "PECJL"), ("eager", "SHJ", "PECJ"))


class Times(NamedTuple):
    """In ms."""

    counting: float  # a window
    compensating: float
    learning: float  # from a window that is complete
    waiting: float  # for the deadline: 95 % of the events do not wait longer


def times(data: Dataset, disorder: Disorder, name: str, windows: int, seed: int) -> Times:
    """Run an estimator over some windows with a stopwatch."""
    rng = np.random.default_rng(seed)
    estimator = EstimatorRun(name, 0.95, disorder.lag)
    seconds, waiting = [], []
    for i in range(windows):
        window = data.windows[i % len(data.windows)]
        events = window.events(window.delays(disorder.most, rng), disorder.deadline)
        watch = [perf_counter()]
        arrived = counted(events)
        watch.append(perf_counter())
        estimator.learn()
        watch.append(perf_counter())
        estimator.estimate(arrived, window.whole)
        watch.append(perf_counter())
        seconds.append(np.diff(watch))
        waiting.append(np.quantile(disorder.deadline - events.arrival, 0.95))
    counting, learning, compensating = 1000 * np.median(seconds[windows // 4 :], axis=0)
    return Times(
        float(counting), float(compensating), float(learning), float(np.mean(waiting)) / MS
    )


def integrated(
    cases: Sequence[tuple[Dataset, Outcome]],
    disorder: Disorder,
    windows: int,
    seed: int,
    published: dict[tuple[str, str, str], Published],
) -> Table:
    """Error and latency of both kinds, ours and theirs."""
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    for data, outcome in cases:
        took = times(data, disorder, OURS, windows, seed)
        at_deadline = {"lazy": took.counting + took.compensating, "eager": took.compensating}
        for kind, plain, compensated in _THEIRS:
            theirs = [
                published.get(("Sec6_5Otherq1Normal", name, data.name))
                for name in (plain, compensated)
            ]
            rows.append(((data.name, kind), [
                100 * outcome.error("WMJ", 0), 100 * outcome.error(OURS, 0),
                took.waiting, at_deadline[kind], took.waiting + at_deadline[kind], took.learning,
                *(None if one is None else 100 * one.error for one in theirs),
                *(None if not one or not one.latency else one.latency / MS for one in theirs),
            ]))  # fmt: skip
    columns = (
        Column("not compensated", "%"), Column("compensated", "%"), Column("events wait", "ms"),
        Column("work then", "ms"), Column("95 % latency", "ms"), Column("learning", "ms"),
        Column("authors: not", "%"), Column("authors: compensated", "%"),
        Column("authors: latency, not", "ms"), Column("authors: latency, compensated", "ms"),
    )  # fmt: skip
    title = "Lazy and eager (Fig. 13; Q1, ω = 10 ms; times on this machine)"
    return Table(title, ("data", "join"), columns, rows)
