"""The Spark task that this code runs in."""

from __future__ import annotations

from typing import NamedTuple


class Task(NamedTuple):
    """What a task knows of the query and the micro-batch that it works for."""

    query: str  # stays the same as long as the checkpoint
    run: str  # another one after each start
    batch: int
    attempt: int


def task() -> Task | None:
    """The running task; None outside of Spark."""
    from pyspark.taskcontext import TaskContext  # noqa: PLC0415  only where Spark runs anyway

    context = TaskContext.get()
    if context is None:
        return None
    known = context.getLocalProperty
    return Task(
        known("sql.streaming.queryId") or "",
        known("spark.jobGroup.id") or "",
        int(known("streaming.sql.batchId") or 0),
        context.taskAttemptId(),
    )
