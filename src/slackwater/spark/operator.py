"""What the operator behind the shuffle does: one call per shard and micro-batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
from pyspark.taskcontext import TaskContext

from slackwater.engine.commands import Command
from slackwater.engine.output import Output
from slackwater.errors import DataError, SnapshotError
from slackwater.spark.blobs import CONTROL, METRICS, PARTIALS, REJECTS, RESULTS, cut, to_ipc
from slackwater.spark.gather import partials_bytes
from slackwater.spark.job import Job
from slackwater.spark.metrics import chart_bytes, numbers
from slackwater.spark.parts import Part
from slackwater.spark.shard import KEPT, Rejects, Shard
from slackwater.spark.worker import settle

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

Blob = tuple[int, bytes | None, list[int] | None]  # kind, data, numbers


class Operator:
    """A shard on Spark: its header is a value, its chunks are a map by name."""

    def __init__(self, job: Job, handle: StatefulProcessorHandle, header: Any, chunks: Any) -> None:
        settle()
        self._job = job
        self._handle = handle
        self._header = header
        self._chunks = chunks

    def batch(
        self, key: Any, frames: Iterator[pd.DataFrame], timers: TimerValues
    ) -> Iterator[pd.DataFrame]:
        """A micro-batch."""
        number = self._job.shard_keys.index(int(key[0]))
        self._check_partition(number)
        shard, restored = self._shard(number)
        parts, commands, refused = read(self._job, _rows(frames))
        for blob in _encoded(self._job, shard.feed(parts, commands)):
            yield _frame(*blob)
        yield self._save(shard, restored, commands, refused)
        if self._job.flush_at_end:
            self._set_timer(timers)

    def end(self, key: Any) -> Iterator[pd.DataFrame]:
        """All sources are quiet: the end of the input."""
        shard, restored = self._shard(self._job.shard_keys.index(int(key[0])))
        shard.told = None  # that was in the last micro-batch
        for blob in _encoded(self._job, shard.flush()):
            yield _frame(*blob)
        yield self._save(shard, restored, [], 0)

    # ---- state

    def _shard(self, number: int) -> tuple[Shard, bool]:
        """The shard, and whether it came from the checkpoint (and not from this process)."""
        saved = self._header.get()
        if saved is None:
            return Shard.new(self._job, number), False
        header = bytes(saved[0])
        before = KEPT.restorations
        shard = KEPT.take(self._job, number, header, self._read_chunk)
        return shard, KEPT.restorations > before

    def _read_chunk(self, name: str) -> bytes:
        data = self._chunks.getValue((name,))
        if data is None:
            msg = f"the checkpoint is damaged: chunk {name} is missing"
            raise SnapshotError(msg)
        return bytes(data[0])

    def _save(
        self, shard: Shard, restored: bool, commands: list[Command], refused: int
    ) -> pd.DataFrame:
        header, saved = shard.save()
        for name, data in saved.new.items():
            self._chunks.updateValue((name,), (data,))
        for name in saved.gone:
            self._chunks.removeKey((name,))
        self._header.update((header,))
        charts = chart_bytes(shard, shard.told, commands)
        figures = numbers(shard, restored, refused)
        if self._job.keep:
            KEPT.put(header, shard, saved)
        return _frame(METRICS, charts, figures)

    def _set_timer(self, timers: TimerValues) -> None:
        """A timer that fires in the first micro-batch that has no data."""
        for due in list(self._handle.listTimers()):
            self._handle.deleteTimer(due)
        self._handle.registerTimer(timers.getCurrentWatermarkInMs() + 1)

    def _check_partition(self, number: int) -> None:
        """Spark keeps the shuffle partitions of a checkpoint, whatever the session says."""
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
    yield from _encoded(job, shard.feed(parts, commands, at_end=True))
    yield METRICS, chart_bytes(shard, shard.told, commands), numbers(shard, False, refused)


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
        except DataError:  # somebody's mistake must not stop the query for ever
            refused += 1
    return parts, commands, refused


def _rows(frames: Iterator[pd.DataFrame]) -> Iterator[dict[str, Any]]:
    for frame in frames:
        yield from frame.to_dict("records")  # type: ignore[misc]


def _encoded(job: Job, outputs: Iterator[Output | Rejects]) -> Iterator[Blob]:
    for output in outputs:
        if isinstance(output, Output) and output.partials:
            yield PARTIALS, partials_bytes(job, output.partials), None
        if isinstance(output, Output):
            for table in cut(output.table, "a result"):
                if table.num_rows:
                    yield RESULTS, to_ipc(table), None
        elif job.rejects:
            for table in cut(_rejected_rows(job, output), "a rejected row"):
                yield REJECTS, to_ipc(table), None


def _rejected_rows(job: Job, rejects: Rejects) -> pa.Table:
    rows = [json.dumps(row, default=str) for row in rejects.rows.to_pylist()]
    names = [job.query.names[rejects.stream]] * len(rows)
    return pa.table({"stream": names, "reason": rejects.reasons, "row": rows})


def _frame(kind: int, data: bytes | None, numbers: list[int] | None) -> pd.DataFrame:
    return pd.DataFrame({"kind": [kind], "data": [data], "numbers": [numbers]})
