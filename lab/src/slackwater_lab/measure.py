"""One run of a goal over a dataset, and what came of it (DESIGN 1)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from slackwater.controllers.controller import Controller, Interval
from slackwater.controllers.factory import controller_for
from slackwater.engine.join import JoinEngine
from slackwater.engine.output import Output
from slackwater.engine.replay import recorded
from slackwater.engine.report import average_slack, columns, recall_series
from slackwater.events.batch import Batch
from slackwater.query.goals import Goal, NoSlack
from slackwater.query.join import JoinQuery
from slackwater.query.units import Duration, to_units
from slackwater.stats.statistics import Statistics
from slackwater_lab.datasets import Dataset, Facts, dataset, get


@dataclass(frozen=True)
class Job:
    """A goal on a dataset, and how its recall is measured: γ(over) each `every`."""

    dataset: str
    seed: int
    minutes: float
    goal: Goal
    over: Duration = "1 minute"
    every: Duration = "1 second"
    in_order: bool = False  # feed the events sorted by time: nothing is late


@dataclass(frozen=True)
class GoalRun:
    """Plain numbers; times in ms."""

    recall: float  # of the whole run
    average_recall: float  # of γ(P)
    average_slack: float  # K
    average_latency: float
    average_buffer: float  # ABS: K and the lead that the Synchronizer holds back
    largest_delay: float  # of the data
    steps: int  # of adaptation
    step_ms: float  # what one takes on average
    seconds: float  # of the whole run
    ts: list[int] = field(repr=False)
    produced: list[int] = field(repr=False)
    true: list[int] = field(repr=False)
    recalls: list[float] = field(repr=False)  # γ(P) at ts
    slacks: list[int] = field(repr=False)  # K at ts


def measure(job: Job, folder: Path) -> GoalRun:
    """Run it."""
    query = replace(dataset(job.dataset).query, goal=job.goal)
    batch, true, facts = _data(job.dataset, job.seed, job.minutes, folder, job.in_order)
    clock = Stopwatch(controller_for(query))
    start = perf_counter()
    output = _run(query, batch, clock)
    seconds = perf_counter() - start

    made_ts, made_n, latency = columns(output.made)
    begin, end = output.slacks[0][0], output.top
    over, every = (to_units(length, query.unit, "over") for length in (job.over, job.every))
    series = recall_series(made_ts, made_n, *true, begin + over, end, over, every)
    recalls = series["recall"].to_numpy()
    slack = average_slack(output.slacks, begin + over, end)
    waits = not (isinstance(job.goal, NoSlack) and not job.goal.synchronize)
    changes, values = np.array(output.slacks).T
    at = np.searchsorted(changes, series["ts"].to_numpy(), side="right") - 1
    return GoalRun(
        recall=float(made_n.sum() / facts.true) if facts.true else 1.0,
        average_recall=float(recalls.mean()) if len(recalls) else 1.0,
        average_slack=slack,
        average_latency=float(np.average(latency, weights=made_n)) if made_n.any() else 0.0,
        average_buffer=slack + facts.lead * waits,
        largest_delay=facts.largest_delay,
        steps=clock.steps,
        step_ms=1000 * clock.seconds / max(1, clock.steps),
        seconds=seconds,
        ts=series["ts"].to_pylist(),
        produced=series["produced"].to_pylist(),
        true=series["true"].to_pylist(),
        recalls=series["recall"].to_pylist(),
        slacks=values[at].tolist(),
    )


@lru_cache(maxsize=2)  # jobs on the same data often follow each other in a worker
def _data(
    name: str, seed: int, minutes: float, folder: Path, in_order: bool
) -> tuple[Batch, tuple[Any, Any], Facts]:
    found = get(name, seed, minutes, folder)
    batch = _batch(found.dataset, found.tables(), in_order)
    return batch, found.truth(), found.facts()


def _batch(data: Dataset, tables: dict[str, Any], in_order: bool) -> Batch:
    return recorded(data.query, tables, "ts" if in_order else "arrival")[0]


def _run(query: JoinQuery, batch: Batch, controller: Controller) -> Output:
    schemas = dict(zip(query.names, (table.schema for table in batch.tables), strict=True))
    engine = JoinEngine(query, schemas, controller=controller)
    output = engine.feed(batch)
    output.extend(engine.flush())
    return output


class Stopwatch:
    """A controller that says how long it thought."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self.start = controller.start
        self.follows_delay = controller.follows_delay
        self.every = controller.every
        self.seconds = 0.0
        self.steps = 0

    def statistics(self, query: JoinQuery) -> Statistics | None:
        """What the engine has to learn."""
        return self._controller.statistics(query)

    def next_slack(self, interval: Interval) -> int:
        """K, timed."""
        begin = perf_counter()
        slack = self._controller.next_slack(interval)
        self.seconds += perf_counter() - begin
        self.steps += 1
        return slack

    def state(self) -> dict[str, Any]:
        """What it has learnt."""
        return self._controller.state()

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._controller.resume(state)
