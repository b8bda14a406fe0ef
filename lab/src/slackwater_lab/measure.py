"""One run of a goal over a dataset, and its measurements (DESIGN 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import numpy as np

from slackwater.controllers.controller import Controller, Interval
from slackwater.controllers.factory import controller_for
from slackwater.engine.join import JoinEngine
from slackwater.engine.output import Output
from slackwater.engine.replay import recorded
from slackwater.engine.report import average_slack, columns, recall_series, truth
from slackwater.events.batch import Batch
from slackwater.kernels.records import I64
from slackwater.query.goals import Goal, NoSlack
from slackwater.query.join import JoinQuery
from slackwater.query.join_options import Pipeline
from slackwater.query.units import Duration, to_units
from slackwater.stats.statistics import Statistics
from slackwater_lab import debs
from slackwater_lab.datasets import Facts, Tables, dataset, facts_of, get
from slackwater_lab.recorded_streams import recordings_in


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
    pipeline: Pipeline | None = None  # None: that of the dataset's query
    controller: Callable[[JoinQuery, Any], Controller] | None = None  # None: that of the goal
    recordings: str | None = None  # the folder of a recording; None: the dataset is made here


@dataclass(frozen=True)
class GoalRun:
    """The measurements of a run, as plain numbers; times in ms."""

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
    query, batch, true, facts = data_of(job, folder)
    query = replace(query, goal=job.goal, pipeline=job.pipeline or query.pipeline)
    made = job.controller(query, job.goal) if job.controller else controller_for(query)
    clock = Stopwatch(made)
    start = perf_counter()
    output = run_engine(query, batch, clock)
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


class Data(NamedTuple):
    """Streams with a query over them, and the truth."""

    query: JoinQuery
    batch: Batch
    true: tuple[I64, I64]  # result times, and how many true results each has
    facts: Facts


def data_of(job: Job, folder: Path) -> Data:
    """The data of a job; `folder` is where made datasets are kept."""
    return _data(job.dataset, job.seed, job.minutes, folder, job.in_order, job.recordings)


@lru_cache(maxsize=2)  # jobs on the same data often follow each other in a worker
def _data(
    name: str, seed: int, minutes: float, folder: Path, in_order: bool, recordings: str | None
) -> Data:
    arrival = "ts" if in_order else "arrival"
    if name == debs.NAME:
        tables = debs.thinned(debs.read_debs(str(recordings)))
        return _with_truth(dataset("dx2").query, tables, arrival)
    if recordings is None:
        found = get(name, seed, minutes, folder)
        query = found.dataset.query
        batch, _ = recorded(query, found.tables(), arrival)
        return Data(query, batch, found.truth(), found.facts())
    recording = recordings_in(Path(recordings))[name]
    return _with_truth(recording.query, recording.tables(Path(recordings)), arrival)


def _with_truth(query: JoinQuery, tables: Tables, arrival: str) -> Data:
    batch, _ = recorded(query, tables, arrival)
    ts, n, _ = columns(truth(query, batch)[0].made)
    return Data(query, batch, (ts, n), facts_of(tables, int(n.sum())))


def run_engine(query: JoinQuery, batch: Batch, controller: Controller) -> Output:
    """Feed all rows, then flush."""
    schemas = dict(zip(query.names, (table.schema for table in batch.tables), strict=True))
    engine = JoinEngine(query, schemas, controller=controller)
    output = engine.feed(batch)
    output.extend(engine.flush())
    return output


class Stopwatch:
    """A controller that measures how long its decisions take."""

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
        begin = thread_time()  # of a processor: other programs do not count
        slack = self._controller.next_slack(interval)
        self.seconds += thread_time() - begin
        self.steps += 1
        return slack

    def state(self) -> dict[str, Any]:
        """What it has learnt."""
        return self._controller.state()

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._controller.resume(state)
