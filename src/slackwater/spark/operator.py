"""The operator behind the shuffle: one call per shard and micro-batch.

It owns the state: it takes the shard out of the cache or restores it, feeds it, encodes what comes
out, and saves it. Rows come with times and rejects from the pack stage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd
import pyarrow as pa
from pyspark.taskcontext import TaskContext

from slackwater.engine.commands import Command
from slackwater.engine.output import Output
from slackwater.engine.shard_report import Reports
from slackwater.errors import DataError, SnapshotError, SparkError
from slackwater.spark.blobs import (
    CONTROL,
    METRICS,
    PARTIALS,
    REJECTS,
    RESULTS,
    Blob,
    blob_frame,
    cut,
    to_ipc,
)
from slackwater.spark.gather import partials_bytes
from slackwater.spark.job import Job
from slackwater.spark.metrics import chart_bytes, numbers
from slackwater.spark.parts import Part
from slackwater.spark.shard import Pieces, Rejects, Shard
from slackwater.spark.shard_cache import ShardCache, Taken, process_cache
from slackwater.spark.shared_folder import SharedFolder
from slackwater.spark.task import task
from slackwater.spark.worker import brief_errors, settle

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

Row = TypeVar("Row")


class Operator:
    """A shard on Spark: its header is a value, its chunks are a map by name.

    `cache` gives the cache of the worker on which a micro-batch runs.
    """

    def __init__(
        self,
        job: Job,
        handle: StatefulProcessorHandle,
        header: Any,
        chunks: Any,
        cache: Callable[[], ShardCache] = process_cache,
    ) -> None:
        settle()
        self._job = job
        self._cache = cache
        self._handle = handle
        self._header = header
        self._chunks = chunks

    def batch(
        self, key: Any, frames: Iterator[pd.DataFrame], timers: TimerValues
    ) -> Iterator[pd.DataFrame]:
        """A micro-batch."""
        with brief_errors():
            number = self._job.shard_keys.index(int(key[0]))
            self._check_partition(number)
            shard, restored = self._shard(number)
            parts, commands, refused = read(self._job, _rows(frames))
            shared = self._shared(shard)
            reports = Reports() if shared is None else shared.reports_for(shard)
            fed = shard.feed(parts, commands, reports=reports)
            latest = yield from _encoded(self._job, fed, blob_frame)
            shard.notes.last_report = None if shared is None else shared.report_of(shard)
            yield self._save(shard, latest, restored, commands, refused)
            if self._job.flush_at_end:
                self._set_timer(timers)

    def end(self, key: Any) -> Iterator[pd.DataFrame]:
        """All sources are quiet: the end of the input."""
        shard, restored = self._shard(self._job.shard_keys.index(int(key[0])))
        latest = yield from _encoded(self._job, shard.flush(), blob_frame)
        yield self._save(shard, latest, restored, [], 0)

    def _shared(self, shard: Shard) -> SharedFolder | None:
        """Where shards leave reports for each other; None: they need none."""
        common, now = shard.engine.common_slack, task()
        if common is None or not common.needs_reports or now is None:
            return None
        assert self._job.shared is not None
        if not now.query:  # all queries and micro-batches would write to the same files
            msg = (
                "Spark does not tell this task its query and micro-batch, so the shards cannot "
                "have one K; slack_scope='shard' goes without"
            )
            raise SparkError(msg)
        return SharedFolder(self._job.shared, now)

    # ---- state

    def _shard(self, number: int) -> Taken:
        saved = self._header.get()
        if saved is None:
            return Taken(Shard.new(self._job, number), restored=False)
        return self._cache().take(self._job, number, bytes(saved[0]), self._read_chunk)

    def _read_chunk(self, name: str) -> bytes:
        data = self._chunks.getValue((name,))
        if data is None:
            msg = f"the checkpoint is damaged: chunk {name} is missing"
            raise SnapshotError(msg)
        return bytes(data[0])

    def _save(
        self,
        shard: Shard,
        latest: pa.Table | None,
        restored: bool,
        commands: list[Command],
        refused: int,
    ) -> pd.DataFrame:
        header, saved = shard.save()
        for name, data in saved.new.items():
            self._chunks.updateValue((name,), (data,))
        for name in saved.gone:
            self._chunks.removeKey((name,))
        self._header.update((header,))
        metrics = chart_bytes(shard, latest, commands), numbers(shard, restored, refused)
        if self._job.keep:
            self._cache().put(header, shard, saved)
        return blob_frame((METRICS, *metrics))

    def _set_timer(self, timers: TimerValues) -> None:
        """A timer that fires in the first micro-batch that has no data."""
        for due in list(self._handle.listTimers()):
            self._handle.deleteTimer(due)
        self._handle.registerTimer(timers.getCurrentWatermarkInMs() + 1)

    def _check_partition(self, number: int) -> None:
        """Spark keeps the shuffle partitions of a checkpoint, whatever those of the session are."""
        context = TaskContext.get()
        if context is None:  # in TwsTester
            return
        expected, got = self._job.expected_partition(number), context.partitionId()
        if expected != got:
            msg = (
                f"the checkpoint was made with another number of shuffle partitions than the "
                f"{self._job.partitions} of this session (shard {number} belongs to partition "
                f"{expected}, got {got}); set spark.sql.shuffle.partitions as it was"
            )
            raise SnapshotError(msg)


def run_batch(job: Job, rows: Iterable[dict[str, Any]], number: int) -> Iterator[Blob]:
    """A shard of a batch query: everything at once, from nothing to the end."""
    shard = Shard.new(job, number)
    parts, commands, refused = read(job, rows)
    latest = yield from _encoded(job, shard.feed(parts, commands, at_end=True), _as_it_is)
    yield METRICS, chart_bytes(shard, latest, commands), numbers(shard, False, refused)


def read(job: Job, rows: Iterable[dict[str, Any]]) -> tuple[list[Part], list[Command], int]:
    """Parts, commands in the order of their files' names, and how many commands were refused."""
    parts, texts, commands, refused = [], [], [], 0
    for row in rows:
        if row["stream"] == CONTROL:
            texts.append(bytes(row["data"]).decode())
            continue
        parts.append(Part.read(int(row["stream"]), bytes(row["clock"]), row["data"]))
    for text in sorted(texts):
        try:
            _, command = text.split("\n", 1)
            commands.append(Command.parse(command, job.query))
        except DataError:  # a wrong command must not stop the query for ever
            refused += 1
    return parts, commands, refused


def _rows(frames: Iterator[pd.DataFrame]) -> Iterator[dict[str, Any]]:
    for frame in frames:
        yield from frame.to_dict("records")  # type: ignore[misc]


def _encoded(
    job: Job, pieces: Pieces, as_row: Callable[[Blob], Row]
) -> Generator[Row, None, pa.Table | None]:
    """The pieces of a micro-batch as rows of blobs; returns the latest rows, as `pieces` does."""
    while True:
        try:
            piece = next(pieces)
        except StopIteration as end:
            latest: pa.Table | None = end.value
            return latest
        yield from map(as_row, _blobs(job, piece))


def _blobs(job: Job, piece: Output | Rejects) -> Iterator[Blob]:
    if isinstance(piece, Rejects):
        for table in cut(_rejected_rows(job, piece), "a rejected row") if job.rejects else ():
            yield REJECTS, to_ipc(table), None
        return
    if piece.partials:
        yield PARTIALS, partials_bytes(job, piece.partials), None
    for table in cut(piece.table, "a result"):
        if table.num_rows:
            yield RESULTS, to_ipc(table), None


def _rejected_rows(job: Job, rejects: Rejects) -> pa.Table:
    rows = [json.dumps(row, default=str) for row in rejects.rows.to_pylist()]
    names = [job.query.names[rejects.stream]] * len(rows)
    return pa.table({"stream": names, "reason": rejects.reasons, "row": rows})


def _as_it_is(blob: Blob) -> Blob:
    return blob
