"""Many runs at once: each is a task of one Spark job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from slackwater_lab.datasets import get
from slackwater_lab.measure import GoalRun, Job, measure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ShowStep = Callable[[str, int, int], None]  # the current step, how many are done, of how many

_TYPES = {  # of the columns of a task's row, for Spark and for Arrow
    "float": ("double", pa.float64()),
    "str": ("string", pa.string()),
    "int": ("long", pa.int64()),
    "list[int]": ("array<long>", pa.list_(pa.int64())),
    "list[float]": ("array<double>", pa.list_(pa.float64())),
}
_FIELDS = {"number": "int"} | {field.name: str(field.type) for field in fields(GoalRun)}


class Sweep:
    """Runs jobs, and remembers their results."""

    def __init__(
        self, spark: SparkSession, folder: Path, on_step: ShowStep = lambda *_: None
    ) -> None:
        self.spark = spark
        self.folder = folder
        self.on_step = on_step
        self._known: dict[Job, GoalRun] = {}

    def run(self, jobs: Sequence[Job]) -> list[GoalRun]:
        """Return the runs, in the order of the jobs; what was run before is not run again."""
        new = [job for job in dict.fromkeys(jobs) if job not in self._known]
        if new:
            self.make(new)
            folder = self.folder
            rows = self.task_each(new, lambda job: asdict(measure(job, folder)), _FIELDS, "runs")
            self._known |= {new[row.pop("number")]: GoalRun(**row) for row in rows}
        return [self._known[job] for job in jobs]

    def make(self, jobs: Sequence[Job]) -> None:
        """Make the datasets that are not there, each once."""
        made = [job for job in jobs if job.recordings is None]
        wanted = list(dict.fromkeys((job.dataset, job.seed, job.minutes) for job in made))
        folder = self.folder

        def make(data: tuple[str, int, float]) -> dict[str, Any]:
            get(*data, folder)
            return {}

        self.task_each(wanted, make, {"number": "int"}, "datasets")

    def task_each(
        self,
        items: Sequence[Any],
        work: Callable[[Any], dict[str, Any]],
        columns: dict[str, str],
        what: str,
    ) -> list[dict[str, Any]]:
        """One task for each item; rows of what `work` returns, and the number of the item.

        `columns` has the type of each, `number` included: "int", "list[float]", ...
        """
        if not items:
            return []
        schema = ", ".join(f"{name} {_TYPES[kind][0]}" for name, kind in columns.items())
        arrow = pa.schema([(name, _TYPES[kind][1]) for name, kind in columns.items()])

        def do(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    row = {"number": number} | work(items[number])
                    yield pa.RecordBatch.from_pylist([row], arrow)

        numbers = self.spark.range(0, len(items), 1, len(items))
        with _watched(self.spark, lambda done: self.on_step(what, done, len(items))):
            rows: list[dict[str, Any]] = numbers.mapInArrow(do, schema).toArrow().to_pylist()
        return rows


class _watched:  # noqa: N801  used as a statement
    """Reports every half second how many tasks are done."""

    def __init__(self, spark: SparkSession, on_done: Callable[[int], None]) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._on_done = on_done
        self._over = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._on_done(0)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            for stage in self._tracker.getActiveStageIds():
                info = self._tracker.getStageInfo(stage)
                if info is not None:
                    self._on_done(info.numCompletedTasks)
